#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Steps back by the undo log of single steps against near checkpoints.

  tests/bench/bench-ring.py [-n PLACES] [--steps N] [--seed N] RUN

Talks the remote protocol itself, so the times are QEMU's and not gdb's. Two processes of
one binary replay the same run: one with the log (step-memory=), one without. Both go to
PLACES random positions, the same ones; at each, by turns in stretches of 50:

  bs   a step back
  s    as many steps forward
  g    the registers are read: nothing runs, so no step can take less

Printed: for each process its times, with all that fills the log in them; the steps that
the log led to, and those that filled it, apart; what it costs to fill the log by a
position, of the latter; how many bytes a position takes, of the steps that a small log
holds; and after how many steps back a log of some sizes has paid for its filling.
"""
import argparse
import contextlib
import os
import random
import statistics
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, 'tests', 'functional'))
sys.dont_write_bytecode = True
from remote import Remote  # noqa: E402
from ttlib import Gdb, end_of, stopped_replay  # noqa: E402

LIMIT = 600
TURN = 50
SIZES = (1 << 11, 1 << 14, 1 << 17)
SMALL = 64 << 10
OFF = ',step-memory=0'


def show(what, times):
    if not times:
        return
    times = sorted(times)
    print(f'{what:34} median {statistics.median(times):8.3f}  mean '
          f'{statistics.mean(times):8.3f}  nine of ten '
          f'{times[len(times) * 9 // 10]:8.3f}  worst {times[-1]:8.3f} ms  '
          f'({len(times)})', flush=True)


def position(vm):
    return vm.qmp.cmd('query-tt')['position']


def check_moved(what, begin, end, n):
    """A step may be longer than a position where none is a resting place."""
    moved = end - begin
    if abs(moved) < abs(n) or abs(moved) > 2 * abs(n) or moved * n < 0:
        sys.exit(f'{abs(n)} times {what} moved from {begin} to {end}')
    return end


class Process:
    def __init__(self, stack, run, name, options):
        work = stack.enter_context(tempfile.TemporaryDirectory(prefix='tt-ring-'))
        self.vm = stack.enter_context(stopped_replay(
            work, run, name, timeout=LIMIT, options=options, args=Gdb.args(work, name)))
        self.remote = Remote(self.vm, LIMIT)
        self.times = {'bs': [], 's': [], 'g': []}
        self.by_log, self.fills = [], []

    def logged(self):
        return self.vm.qmp.cmd('query-tt')['logged-steps']

    def back(self, n):
        """@n steps; which of them were by the log is asked between them."""
        top, was = position(self.vm), self.logged()
        for _ in range(n):
            ms = self.remote.timed('bs', b'T')
            now = self.logged()
            self.times['bs'].append(ms)
            if 0 < was and now < was:
                self.by_log.append(ms)
            elif now > 16:
                self.fills.append((ms, now))
            was = now
        return check_moved('bs', top, position(self.vm), -n)

    def rest(self, n):
        low = position(self.vm)
        self.times['g'] += [self.remote.timed('g', b'') for _ in range(n)]
        check_moved('g', low, position(self.vm), 0)
        self.times['s'] += [self.remote.timed('s', b'T') for _ in range(n)]
        check_moved('s', low, position(self.vm), n)


def steps(run, places, n, rng):
    with contextlib.ExitStack() as stack:
        processes = [Process(stack, run, 'near', OFF), Process(stack, run, 'log', '')]
        end = end_of(processes[0].vm)
        for _ in range(places):
            at = rng.randrange(end // 10, end)
            for p in processes:
                p.remote.goto(at)
                p.remote.timed('bs', b'T')
            for _ in range(0, n, TURN):
                if len({p.back(TURN) for p in processes}) > 1:
                    sys.exit('the log leads elsewhere')
            for p in processes:
                p.rest(n)
        return *processes, end


def bytes_each(run, at):
    """Of a log that is full: it holds fewer steps than were made."""
    with contextlib.ExitStack() as stack:
        p = Process(stack, run, 'small', f',step-memory={SMALL}')
        p.remote.goto(at)
        most = 0
        for _ in range(3000):
            p.remote.timed('s', b'T')
            now = p.logged()
            if 0 < most == now:
                break
            most = max(most, now)
        return SMALL / most if most else 0


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('run')
    p.add_argument('-n', '--places', type=int, default=10)
    p.add_argument('--steps', type=int, default=1000)
    p.add_argument('--seed', type=int, default=random.randrange(1 << 32))
    args = p.parse_args()
    run = os.path.abspath(args.run)
    rng = random.Random(args.seed)
    load = os.getloadavg()[0]
    near, log, end = steps(run, args.places, args.steps, rng)
    print(f'seed {args.seed}, {end} positions, load {load:.1f} at the start')
    show('bs: without the log', near.times['bs'])
    show('bs: with it, all', log.times['bs'])
    show('   led to by it', log.by_log)
    show('   that filled it', [ms for ms, _ in log.fills])
    show('s: without', near.times['s'])
    show('s: with it', log.times['s'])
    show('g: nothing runs', near.times['g'] + log.times['g'])
    took = sorted(bytes_each(run, rng.randrange(end // 10, end)) for _ in range(5))
    print('bytes a position: ' + ' '.join(f'{b:.0f}' for b in took))
    saved = statistics.mean(near.times['bs']) - statistics.mean(log.by_log or [0])
    base = statistics.median(near.times['bs'])
    many = [(ms - base) / n for ms, n in log.fills if n >= 128]
    if not many:
        print('the log was never filled by 128 positions or more')
        return
    each = statistics.median(many)
    print(f'filled by {sum(n for _, n in log.fills)} positions in {len(log.fills)} goes; '
          f'a position costs {1000 * each:.3f} us (median of {len(many)}), a step back by '
          f'the log saves {saved:.3f} ms (of the means)')
    for size in SIZES:
        print(f'  a log of {size:6}: filled in {size * each:8.2f} ms, paid for by '
              f'{size * each / saved:8.1f} steps')


if __name__ == '__main__':
    sys.exit(main())
