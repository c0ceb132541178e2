#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How exact is `tt time`? Records guests that read their time stamp counter, and predicts
each value that they read from the times in the log.

    bench-time.py [--span MS] [--run RUN]...

A span is two reads that are so far apart (default: 10 ms). Its error is the predicted
distance against the one that the guest saw. It is predicted from the times alone, and, as
`tt time` does, from times and the guest's other reads: every second read is used for that,
and the rest are predicted. With --run, of runs that are there.

At the end is XenTT's table 2 (VEE'16, section 5.3): stretches of X instructions, the cycles
that the guest counted, and those predicted from the times alone, in the middle of rounds.
"""
import argparse
import bisect
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, '..', 'functional'))
from guests import guest_args, linux_args  # noqa: E402
from ttlib import record, tool  # noqa: E402


def log_of(run):
    """Times as (position, host ns, TSC), and reads as (position, TSC)."""
    times, reads = [], []
    with subprocess.Popen([tool('tt'), 'log', run, '--kind', 'time', '--kind', 'tsc',
                           '--json'], stdout=subprocess.PIPE, text=True) as p:
        for line in p.stdout:
            ev = json.loads(line)
            if ev['kind'] == 'time':
                times.append((ev['position'], int(ev['addr'], 16), int(ev['val'], 16)))
            else:
                reads.append((ev['position'], int(ev['val'], 16)))
    return times, reads


def predicted(times, starts, pos):
    """As tt time does it. None: not between two times: (position, TSC)."""
    i = bisect.bisect_right(starts, pos)
    if not 0 < i < len(times):
        return None
    a, b = times[i - 1], times[i]
    return a[1] + (b[1] - a[1]) * (pos - a[0]) / (b[0] - a[0])


def errors(times, reads, ticks):
    """Of spans, in percent of their length."""
    starts = [t[0] for t in times]
    known = [(tsc, predicted(times, starts, pos)) for pos, tsc in reads]
    known = [k for k in known if k[1] is not None]
    values, out, at = [k[0] for k in known], [], 0
    while at < len(known):
        to = bisect.bisect_left(values, values[at] + ticks)
        if to == len(known):
            break
        true = values[to] - values[at]
        if true < 2 * ticks:            # a longer one is no such span
            out.append(100 * abs(known[to][1] - known[at][1] - true) / true)
        at = bisect.bisect_left(values, values[at] + ticks / 10)
    return sorted(out)


def show(name, run, span_ms):
    times, reads = log_of(run)
    per_ms = (times[-1][2] - times[0][2]) * 1e6 / (times[-1][1] - times[0][1])
    clock = [(pos, tsc) for pos, _, tsc in times]
    for what, some in (('times', clock), ('reads', sorted(clock + reads[::2]))):
        e = errors(some, reads[1::2], per_ms * span_ms)
        if not e:
            print(f'{name:<8} {what:<5} no spans of {span_ms} ms')
            continue
        print(f'{name:<8} {what:<5} from {len(some):>7}, {len(reads) // 2:>8} reads '
              f'{len(e):>6} spans  error %: median {e[len(e) // 2]:.3f}, '
              f'95 of 100 below {e[len(e) * 95 // 100]:.3f}, most {e[-1]:.3f}, '
              f'above 1 %: {100 * sum(x > 1 for x in e) / len(e):.1f} of 100',
              flush=True)


def sequences(work):
    """Guest 'sequences': none of the reads is used to predict another."""
    run = record(work, guest_args(work, 'sequences', 'rounds=9'), name='sequences',
                 timeout=600)
    times, reads = log_of(run.dir)
    starts, clock = [t[0] for t in times], [(pos, tsc) for pos, _, tsc in times]
    per_ms = (times[-1][2] - times[0][2]) * 1e6 / (times[-1][1] - times[0][1])
    at = {tsc: pos for pos, tsc in reads}
    found = {}
    for name, *values in re.findall(rb'(nop|real) n=(\w+) from=(\w+) to=(\w+)', run.serial):
        n, a, b = (int(v, 16) for v in values)
        model = predicted(clock, starts, at[b]) - predicted(clock, starts, at[a])
        found.setdefault((name.decode(), n), []).append((b - a, model))
    print(f'{"stretch":<16} {"cycles":>14} {"predicted":>14} {"ratio":>8}  span     of rounds')
    for (name, n), each in sorted(found.items()):
        native, model = (statistics.median(column) for column in zip(*each))
        ratios = sorted(m / t for t, m in each)
        print(f'{name + str(n):<16} {native:>14,.0f} {model:>14,.0f} '
              f'{statistics.median(ratios):>7.3f}x  {native / per_ms:.3f} ms  '
              f'{ratios[0]:.3f} to {ratios[-1]:.3f}', flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('--span', type=float, default=10, metavar='MS')
    p.add_argument('--run', action='append', default=[])
    args = p.parse_args()
    for run in args.run:
        show(os.path.basename(run.rstrip('/')), run, args.span)
    if args.run:
        return
    with tempfile.TemporaryDirectory(prefix='tt-bench-') as work:
        for name, line in (('tsc', guest_args(work, 'tsc', 'rounds=400000')),
                           ('linux', [*linux_args('rand,procs', 'n=50')])):
            run = record(work, line, name=name, timeout=300)
            show(name, run.dir, args.span)
        sequences(work)


if __name__ == '__main__':
    main()
