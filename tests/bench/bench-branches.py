#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What branches of one run take on disk.

  tests/bench/bench-branches.py [-n BRANCHES] [--work DIR]

Records a bare guest with a disk of 1 MiB, makes one full checkpoint, and lets so many
branches (1000) go on from there, one after the other: each writes 4 KiB to its disk and
ends. Prints what the branches take (blocks on disk, as `du` counts), of each part of a
run, and checks that the parent is byte for byte what it was, and that each disk has what
its branch wrote.
"""
import argparse
import os
import statistics
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f'{TOP}/tests/functional')
from disker import contents                                 # noqa: E402
from many_branches import expected, many, store_in, used, written_by  # noqa: E402
from ttlib import check                                     # noqa: E402


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('-n', '--branches', type=int, default=1000)
    p.add_argument('--work', help='a folder for the runs (a temporary one)')
    args = p.parse_args()
    began, wrote = time.monotonic(), set()
    with tempfile.TemporaryDirectory(prefix='tt-branches-', dir=args.work) as work:
        def look(vm):
            wrote.add(written_by(vm))
            if len(wrote) % 50 == 1:
                check(contents(work, store_in(vm.run)) == expected(
                    work, *written_by(vm)), f'the disk of {vm.name} has something else')

        parent, parts = many(work, args.branches, look)
        print(f'parent {used(parent)} bytes, of which disks '
              f'{used(os.path.join(parent, "disks"))}; byte for byte as before')
    print(f'{len(parts)} branches, {len(wrote)} different writes of 4096 bytes, in '
          f'{time.monotonic() - began:.0f} s')
    for name in sorted({n for p in parts for n in p}):
        sizes = [p.get(name, 0) for p in parts]
        print(f'{name:12} {sum(sizes):12} bytes, each {statistics.median(sizes):8.0f} '
              f'({min(sizes)} to {max(sizes)})')


if __name__ == '__main__':
    sys.exit(main())
