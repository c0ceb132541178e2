#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""CPU time of each thread of a recording: what the checkpoints' own takes.

  tests/bench/bench-checkpointer.py [--interval S] [--works W[,W...]] [--procs N]
                              [--seconds S] [--full]

Records the Linux guest (scripts/guest, 512 MiB) at work and prints the CPU seconds of
each thread until it ends, or for so long, and the share of the one that compares,
compresses and writes checkpoints. Ratios of whole processes (bench-checkpoints.py)
scatter by more than that.

--full: each checkpoint is a full one. Prints instead for how long the VM stood, from
vm_stop to vm_start, what each checkpoint takes in the store, and by how much RUN/disks
grew; then the same for a recording without full ones: the rest is what versions keep.
"""
import argparse
import glob
import os
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f'{TOP}/tests/functional')
from guests import linux_args                               # noqa: E402
from many_branches import used                              # noqa: E402
from ttlib import recorder                                  # noqa: E402

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


def spread(values, scale=1):
    values = [v / scale for v in values] or [0]
    return f'{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})'


def watch(vm, seconds):
    """What is known of the checkpoints: {how many: ns that the VM stood for the last},
    and the list of them. Then the recording ends."""
    stood, points, end = {}, [], time.monotonic() + seconds
    while vm.qmp.cmd('query-status')['status'] == 'running' and time.monotonic() < end:
        store = vm.qmp.cmd('query-tt')['store']
        stood[store['taken']] = store['last-pause-ns'], store['last-pause-pages']
        time.sleep(0.05)
    points = vm.qmp.cmd('query-tt-checkpoints')
    vm.qmp.send('quit')
    vm.wait(0)
    return stood, points


def with_full(args, full):
    """Records the works once; prints, and returns what RUN/disks takes."""
    with tempfile.TemporaryDirectory(prefix='tt-checkpointer-') as tmp:
        with open(f'{tmp}/disk', 'wb') as f:
            f.truncate(256 << 20)
        with recorder(tmp, [*linux_args(args.works, f'n={args.procs}', memory='512'),
                            '-no-shutdown', '-drive',
                            f'file={tmp}/disk,if=virtio,format=raw'],
                      options=f',checkpoint-interval={args.interval},full={full}', qmp=1,
                      timeout=args.seconds + 60) as vm:
            stood, points = watch(vm, args.seconds)
        points = [p for p in points if p['full'] == (full == 'on')][1:]
        stood = [v for taken, v in stood.items() if taken > 1]
        disks = used(f'{vm.run}/disks')
    print(f'full={full}: {len(points)} checkpoints, VM stood '
          f'{spread([ns for ns, _ in stood], 1e6)} ms, pages '
          f'{spread([n for _, n in stood])}, of {len(stood)} that were seen; bytes of each '
          f'in the store {spread([p["bytes"] for p in points], 1024)} KiB; RUN/disks '
          f'{disks >> 20} MiB', flush=True)
    return disks, len(points)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('--interval', default='25')
    p.add_argument('--works', default=WORKS)
    p.add_argument('--procs', default='4000')
    p.add_argument('--seconds', type=float, default=600)
    p.add_argument('--qemu', default=f'{TOP}/build/qemu-system-x86_64')
    p.add_argument('--full', action='store_true')
    args = p.parse_args()
    if args.full:
        disks, count = with_full(args, 'on')
        plain, _ = with_full(args, 'off')
        print(f'RUN/disks grew by {(disks - plain) / max(count, 1) / (1 << 20):.2f} MiB for '
              'each full checkpoint')
        return
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
