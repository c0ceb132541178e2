# SPDX-License-Identifier: GPL-2.0-or-later
"""File systems and partition tables in images, made and changed without mounting."""

import os
import shutil
import struct
import subprocess
import zlib

from ttlib import check

SECTOR = 512
MB = 1 << 20


def program(name):
    path = shutil.which(name, path=os.environ['PATH'] + ':/sbin:/usr/sbin')
    check(path, f'there is no {name}: install e2fsprogs')
    return path


def make_ext4(path, files, size=24 * MB, kind='ext4', options=(), mode=0o644):
    """A file system with these files: {name: bytes}."""
    tree = path + '.tree'
    for name, data in files.items():
        full = os.path.join(tree, name)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, 'wb') as f:
            f.write(data)
        os.chmod(full, mode)
    with open(path, 'wb') as f:
        f.truncate(size)
    subprocess.run([program('mke2fs'), '-q', '-F', '-t', kind, *options, '-d', tree, path],
                   check=True, timeout=60, stdin=subprocess.DEVNULL)
    shutil.rmtree(tree)
    return path


def change_ext4(path, *commands, **files):
    """Runs commands of debugfs in it; files: for `write NAME ...`."""
    for name, data in files.items():
        with open(f'{path}.{name}', 'wb') as f:
            f.write(data)
    lines = [c.format(**{n: f'{path}.{n}' for n in files}) for c in commands]
    subprocess.run([program('debugfs'), '-w', '-f', '-', path], check=True, timeout=60,
                   input='\n'.join(lines), text=True, capture_output=True)
    for name in files:
        os.unlink(f'{path}.{name}')


def read_ext4(path, name):
    """The contents of a file in it."""
    return subprocess.run([program('debugfs'), '-R', f'cat {name}', path], check=True,
                          timeout=60, capture_output=True,
                          stdin=subprocess.DEVNULL).stdout


def guid(n):
    return bytes([n] * 16)


def gpt(bytes_, parts):
    """Head and table at both ends of a disk: [(offset, bytes)]; parts: [(start, len)]."""
    last = bytes_ // SECTOR - 1
    entries = b''.join(
        guid(0xaa) + guid(i + 1) + struct.pack('<QQQ', start // SECTOR,
                                               (start + length) // SECTOR - 1, 0) +
        f'part{i}'.encode('utf-16le').ljust(72, b'\0')
        for i, (start, length) in enumerate(parts)).ljust(128 * 128, b'\0')

    def head(own, other, table):
        def pack(crc):
            return struct.pack('<8sIIIIQQQQ16sQIII', b'EFI PART', 0x10000, 92, crc, 0, own,
                               other, 34, last - 33, guid(9), table, 128, 128,
                               zlib.crc32(entries))
        return pack(zlib.crc32(pack(0))).ljust(SECTOR, b'\0')
    protective = mbr([(0xee, SECTOR, bytes_ - SECTOR)])
    return [*protective, (SECTOR, head(1, last, 2)), (2 * SECTOR, entries),
            ((last - 32) * SECTOR, entries), (last * SECTOR, head(last, 1, last - 32))]


def mbr_sector(entries):
    body = b''.join(struct.pack('<B3xB3xII', 0, kind, start // SECTOR, length // SECTOR)
                    for kind, start, length in entries)
    return body.ljust(64, b'\0').rjust(510, b'\0') + b'\x55\xaa'


def mbr(entries, logical=()):
    """entries: [(type, start, len)]; logical partitions [(start, len)], each with its
    table 1 MB before it, in an extended partition that the entries name."""
    writes = [(0, mbr_sector(entries))]
    extended = [e[1] for e in entries if e[0] == 5]
    for i, (start, length) in enumerate(logical):
        table = [(0x83, MB, length)]
        if i + 1 < len(logical):
            table.append((5, logical[i + 1][0] - MB - extended[0], MB))
        writes.append((start - MB, mbr_sector(table)))
    return writes


def put(path, writes, size=None):
    """Writes [(offset, bytes)] into a file."""
    with open(path, 'r+b' if os.path.exists(path) else 'w+b') as f:
        if size:
            f.truncate(size)
        for offset, data in writes:
            f.seek(offset)
            f.write(data)
    return path
