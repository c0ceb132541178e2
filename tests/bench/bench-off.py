#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Host instructions of a boot without -tt, against an unpatched build.

  tests/bench/bench-off.py --plain OTHER-QEMU [--qemu QEMU] [-v]

CPU seconds of a shared machine differ by more than the 2 % in question, so this
counts: both binaries run under valgrind (cachegrind), with -icount, so that the
guest executes the same instructions in both. Takes some ten minutes, also on a
busy machine. -v lists the functions that differ most.
"""
import argparse
import collections
import glob
import os
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIRMWARE = ['/usr/share/seabios', '/usr/share/qemu', '/usr/lib/ipxe/qemu']
LIMIT_SECONDS = 3000


def guest(qemu, disk):
    args = [qemu, '-M', 'pc', '-accel', 'tcg,thread=single', '-icount',
            'shift=0,sleep=off', '-m', '256', '-nodefaults', '-display', 'none',
            '-no-reboot', '-kernel', f'{TOP}/build/guest/vmlinuz', '-initrd',
            f'{TOP}/build/guest/initrd.img', '-append',
            'console=ttyS0 panic=-1 t=none', '-serial', 'null', '-drive',
            f'file={disk},if=virtio,format=raw']
    for directory in FIRMWARE:
        args += ['-L', directory]
    return args


def count(qemu, tmp):
    """Function -> instructions."""
    disk = os.path.join(tmp, 'disk.img')
    with open(disk, 'wb') as f:
        f.truncate(256 << 20)
    for old in glob.glob(f'{tmp}/out*'):
        os.unlink(old)
    out = os.path.join(tmp, 'out')
    subprocess.run(['valgrind', '--tool=cachegrind', '--cache-sim=no',
                    '--smc-check=all-non-file',
                    f'--cachegrind-out-file={out}', *guest(qemu, disk)],
                   check=True, timeout=LIMIT_SECONDS,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found, name = collections.Counter(), None
    with open(out, encoding='utf-8', errors='replace') as f:
        for line in f:
            if line.startswith('fn='):
                name = line[3:].strip()
            elif line[:1].isdigit() and name:
                found[name] += int(line.split()[1])
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('--qemu', default=f'{TOP}/build/qemu-system-x86_64')
    p.add_argument('--plain', required=True, help='the unpatched build')
    p.add_argument('-v', action='store_true', help='list functions')
    args = p.parse_args()
    with tempfile.TemporaryDirectory(prefix='tt-bench-') as tmp:
        plain = count(args.plain, tmp)
        ours = count(args.qemu, tmp)
    base = sum(plain.values())
    print(f'unpatched {base} instructions, ours {sum(ours.values())}: ratio '
          f'{sum(ours.values()) / base:.4f}')
    if args.v:
        def difference(name):
            return ours[name] - plain[name]
        for name in sorted(plain | ours, key=difference)[::-1][:20]:
            print(f'{100 * difference(name) / base:+7.3f} %  {name}')


if __name__ == '__main__':
    sys.exit(main())
