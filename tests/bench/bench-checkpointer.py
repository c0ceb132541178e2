#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""CPU time of each thread of a recording: what the checkpoints' own takes.

  tests/bench/bench-checkpointer.py [--interval S] [--works W[,W...]] [--procs N]
                              [--seconds S]

Records the Linux guest (scripts/guest, 512 MiB) at work and prints the CPU seconds of
each thread until it ends, or for so long, and the share of the one that compares,
compresses and writes checkpoints. Ratios of whole processes (bench-checkpoints.py)
scatter by more than that.
"""
import argparse
import glob
import os
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORKS = 'procs,sha,vda,sh,procs,sha,vda,sh,procs,sha,vda,sh,procs,procs,sh,sha'


def sample(pid, seen):
    for task in glob.glob(f'/proc/{pid}/task/*'):
        try:
            with open(f'{task}/comm', encoding='ascii') as f:
                name = f.read().strip()
            with open(f'{task}/schedstat', encoding='ascii') as f:
                seen[task] = (name, int(f.read().split()[0]) / 1e9)
        except OSError:
            pass                        # it has ended just now


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('--interval', default='25')
    p.add_argument('--works', default=WORKS)
    p.add_argument('--procs', default='4000')
    p.add_argument('--seconds', type=float, default=600)
    p.add_argument('--qemu', default=f'{TOP}/build/qemu-system-x86_64')
    args = p.parse_args()
    with tempfile.TemporaryDirectory(prefix='tt-checkpointer-') as tmp:
        with open(f'{tmp}/disk', 'wb') as f:
            f.truncate(256 << 20)
        vm = subprocess.Popen(
            [args.qemu, '-name', 'bench,debug-threads=on', '-M', 'pc', '-m', '512',
             '-nodefaults', '-display', 'none', '-no-reboot', '-kernel',
             f'{TOP}/build/guest/vmlinuz', '-initrd',
             f'{TOP}/build/guest/initrd.img', '-append',
             f'console=ttyS0 panic=-1 t={args.works} n={args.procs}', '-serial',
             'null', '-drive', f'file={tmp}/disk,if=virtio,format=raw', '-tt',
             f'record,dir={tmp}/run,checkpoint-interval={args.interval}'])
        seen, end = {}, time.monotonic() + args.seconds
        while vm.poll() is None and time.monotonic() < end:
            sample(vm.pid, seen)
            time.sleep(0.1)
        vm.kill()
        vm.wait()
    total = sum(seconds for _, seconds in seen.values())
    for name, seconds in sorted(seen.values(), key=lambda v: -v[1]):
        print(f'{seconds:8.2f} s  {100 * seconds / total:5.1f} %  {name}')


if __name__ == '__main__':
    sys.exit(main())
