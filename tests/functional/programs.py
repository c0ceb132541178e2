# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of this Debian, with their libraries, on a disk for the Linux guest."""

import os
import re
import shutil
import subprocess

from ext import make_ext4
from ttlib import check

# How the guest runs one of them: `$T NAME ARGUMENTS`, with the disk at /t.
MOUNT = ('mkdir -p /t; mount -t ext4 -o ro /dev/vdb /t; '
         't() { p=$1; shift; /t/lib/ld.so --library-path /t/lib "/t/bin/$p" "$@"; }\n')


def read(path):
    with open(path, 'rb') as f:
        return f.read()


def program_disk(path, *names, more=()):
    """An ext4 image with bin/NAME and lib, and more files; the guest has it as
    /dev/vdb."""
    files = dict(more)
    for name in names:
        where = shutil.which(name)
        check(where, f'there is no {name}: install it (Debian has it)')
        files[f'bin/{name}'] = read(where)
        said = subprocess.run(['ldd', where], check=True, capture_output=True, text=True,
                              timeout=60).stdout
        for lib in re.findall(r'(?:=> |^\s*)(/\S+)', said, re.M):
            base = os.path.basename(lib)
            files['lib/ld.so' if base.startswith('ld-linux') else f'lib/{base}'] = read(lib)
    size = sum(map(len, files.values())) * 5 // 4 + (16 << 20)
    return make_ext4(path, files, size=size >> 20 << 20, mode=0o755)
