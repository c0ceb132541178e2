#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How long `tt goto` takes in a recorded run.

  tests/bench/bench-goto.py [-n COUNT] [--seed N] [--cold] [--memory SIZE] RUN

Passes once through the run, then goes to COUNT random positions; then from each
checkpoint to its neighbour, and to others further away. --cold: without the pass,
with what the recorder stored. Prints median, the slowest of ten, and worst, in
milliseconds: by the clock, and of CPU time, which other work on the machine lengthens less.
"""
import argparse
import glob
import os
import random
import statistics
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, 'tests', 'functional'))
sys.dont_write_bytecode = True
from ttlib import end_of, goto, stopped_replay  # noqa: E402

LIMIT = 3600


def cpu_ms(vm):
    """CPU time of all threads."""
    total = 0
    for path in glob.glob(f'/proc/{vm.process.pid}/task/*/schedstat'):
        with open(path, encoding='ascii') as f:
            total += int(f.read().split()[0])
    return total / 1e6


def timed(vm, position):
    cpu, began = cpu_ms(vm), time.monotonic()
    goto(vm, LIMIT, position=position)
    return 1000 * (time.monotonic() - began), cpu_ms(vm) - cpu


def show(what, pairs):
    for name, times in zip((what, '  CPU'), zip(*pairs)):
        times = sorted(times)
        print(f'{name:28} median {statistics.median(times):7.1f}  nine of ten '
              f'{times[len(times) * 9 // 10]:7.1f}  worst {times[-1]:7.1f} ms',
              flush=True)


def neighbours(vm, count, rng):
    places = [c['position'] for c in vm.qmp.cmd('query-tt-checkpoints')]
    times = []
    for _ in range(min(count, len(places) - 1)):
        i = rng.randrange(len(places) - 1)
        goto(vm, LIMIT, position=places[i])
        times.append(timed(vm, places[i + 1]))
    return times


def spread(vm, count, rng):
    """From checkpoints to those so many further."""
    places = [c['position'] for c in vm.qmp.cmd('query-tt-checkpoints')]
    k = 1
    while k < len(places) / 2:
        pairs = []
        for _ in range(min(count, 30)):
            i = rng.randrange(len(places) - k)
            goto(vm, LIMIT, position=places[i])
            pairs.append(timed(vm, places[i + k]))
        show(f'{k} checkpoints further', pairs)
        k *= 4


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('run')
    p.add_argument('-n', '--count', type=int, default=200)
    p.add_argument('--seed', type=int, default=random.randrange(1 << 32))
    p.add_argument('--cold', action='store_true')
    p.add_argument('--memory', default='1G')
    args = p.parse_args()
    rng = random.Random(args.seed)
    with tempfile.TemporaryDirectory(prefix='tt-goto-') as work:
        with stopped_replay(work, os.path.abspath(args.run), timeout=LIMIT,
                            options=f',checkpoint-memory={args.memory}') as vm:
            end = end_of(vm)
            if not args.cold:
                cpu, began = cpu_ms(vm), time.monotonic()
                vm.qmp.hmp('tt verify', LIMIT)  # goto end takes a short cut
                print(f'one pass: {time.monotonic() - began:.1f} s, CPU '
                      f'{(cpu_ms(vm) - cpu) / 1000:.1f} s, for {end} positions',
                      flush=True)
            count = len(vm.qmp.cmd('query-tt-checkpoints'))
            print(f'{count} checkpoints, seed {args.seed}', flush=True)
            show(f'{args.count} random positions',
                 [timed(vm, rng.randrange(end + 1))
                  for _ in range(args.count)])
            show('checkpoint to checkpoint', neighbours(vm, args.count, rng))
            spread(vm, args.count, rng)


if __name__ == '__main__':
    sys.exit(main())
