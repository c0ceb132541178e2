#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What reading from a disk adds to a run.

  tests/bench/bench-disk-reads.py [-m MIB] [--reads log|store] [--replay]

A Linux guest reads a disk of MIB random bytes from its begin to its end. Prints how long
that took, and how much the log grew meanwhile; with --replay also whether the replay was
exact, and how long it took.
"""
import argparse
import os
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, 'tests', 'functional'))
sys.dont_write_bytecode = True
from guests import linux_args  # noqa: E402
from test_branch import Console, console  # noqa: E402
from ttlib import recorder, replay  # noqa: E402


def random_image(work, mib):
    path = os.path.join(work, 'disk.img')
    with open(path, 'wb') as out:
        for _ in range(mib):
            out.write(os.urandom(1 << 20))
    return ['-drive', f'file={path},format=raw,if=none,id=disk0',
            '-device', 'virtio-blk-pci,drive=disk0']


def measure(work, args):
    disk = random_image(work, args.mib)
    vm = recorder(work, linux_args('shell') + disk, qmp=1, serial=False, timeout=3000,
                  options=f',disk-reads={args.reads}')
    path = console(vm)
    with vm:
        con = Console(path)
        con.wait('guest# ')
        time.sleep(1)
        log = os.path.join(vm.run, 'log')
        before, began = os.path.getsize(log), time.monotonic()
        con.type('dd if=/dev/vda of=/dev/null bs=1M; echo d$((1))ne')
        con.wait('d1ne', 3000)
        took = time.monotonic() - began
        time.sleep(1)
        grown = os.path.getsize(log) - before
        con.type('exit')
        vm.wait(0)
    print(f'{args.mib} MiB read in {took:.1f} s; the log grew by {grown} bytes '
          f'({grown / (args.mib << 20):.5f} of what was read)')
    if args.replay:
        began = time.monotonic()
        replay(work, vm.run, timeout=3000)
        print(f'replayed exactly in {time.monotonic() - began:.1f} s')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('-m', dest='mib', type=int, default=4096)
    parser.add_argument('--reads', choices=('log', 'store'), default='store')
    parser.add_argument('--replay', action='store_true')
    with tempfile.TemporaryDirectory(prefix='tt-reads-') as work:
        measure(work, parser.parse_args())


main()
