#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How long stock gdb waits for reverse commands in a recorded run.

  tests/bench/bench-reverse.py [-n PLACES] [--steps N] [--seed N] [--cold]
                               [--watch ADDRESS] [--walks N] RUN

Passes once through the run (not with --cold), goes to PLACES random positions and
gives N + 1 reverse-stepi at each: the first one of each place and those after it
are told apart. --walks N: instead, N fresh replays each go to the end without a pass
and walk back from there, in turn with near checkpoints and without (x-omit=near); the
ratio is that of the medians behind the first step. --watch: from the end,
reverse-continue to a watchpoint on the four bytes at ADDRESS, against the time of the
pass, which is a full replay. All times are gdb's, by the clock, in one session.
"""
import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, 'tests', 'functional'))
sys.dont_write_bytecode = True
from ttlib import Gdb, end_of, stopped_replay  # noqa: E402

LIMIT = 3600

# Runs within gdb.
SCRIPT = '''
import gdb, json, time

def timed(command):
    began = time.monotonic()
    text = gdb.execute(command, to_string=True)
    return 1000 * (time.monotonic() - began), text

out = {'first': [], 'next': [], 'watch': []}
for position in POSITIONS:
    gdb.execute(f'monitor tt goto {position}', to_string=True)
    out['first'].append(timed('reverse-stepi')[0])
    out['next'] += [timed('reverse-stepi')[0] for _ in range(STEPS)]
if WATCH:
    gdb.execute('monitor tt goto end', to_string=True)
    gdb.execute(f'watch *(int *){WATCH}')
    for _ in range(2):
        ms, text = timed('reverse-continue')
        out['watch'].append((ms, text, str(gdb.parse_and_eval('$tt_position'))))
with open(OUTPUT, 'w') as f:
    json.dump(out, f)
'''


def show(what, times):
    times = sorted(times)
    print(f'{what:28} median {statistics.median(times):7.1f}  nine of ten '
          f'{times[len(times) * 9 // 10]:7.1f}  worst {times[-1]:7.1f} ms  '
          f'({len(times)})', flush=True)


def one_pass(vm, end):
    began = time.monotonic()
    vm.qmp.hmp('tt verify', LIMIT)          # goto end takes a short cut
    seconds = time.monotonic() - began
    print(f'one pass: {seconds:.1f} s for {end} positions', flush=True)
    return seconds


WALK = '''
import gdb, json, time
gdb.execute('monitor tt goto end', to_string=True)
out = []
for _ in range(STEPS):
    began = time.monotonic()
    gdb.execute('reverse-stepi', to_string=True)
    out.append(1000 * (time.monotonic() - began))
with open(OUTPUT, 'w') as f:
    json.dump(out, f)
'''


def script_of(work, text, **values):
    """Its path, and that of what it writes."""
    output = os.path.join(work, 'out.json')
    path = os.path.join(work, 'script.py')
    with open(path, 'w', encoding='utf-8') as f:
        for key, value in {**values, 'OUTPUT': output}.items():
            f.write(f'{key} = {value!r}\n')
        f.write(text)
    return path, output


def one_walk(run, steps, options):
    with tempfile.TemporaryDirectory(prefix='tt-rev-') as work:
        with stopped_replay(work, run, timeout=LIMIT, options=options,
                            args=Gdb.args(work, 'rep')) as vm:
            path, output = script_of(work, WALK, STEPS=steps)
            said = Gdb(vm)(f'source {path}', timeout=LIMIT)
            if not os.path.exists(output):
                sys.exit(said)
            with open(output, encoding='utf-8') as f:
                return json.load(f)


def walks(run, n, steps):
    """Cold ones from the end, with near checkpoints and without, in turn."""
    first, later = {}, {}
    for _ in range(n):
        for name, options in (('with', ''), ('without', ',x-omit=near')):
            times = one_walk(run, steps + 1, options)
            first.setdefault(name, []).append(times[0])
            later.setdefault(name, []).extend(times[1:])
    for name in first:
        show(f'first step {name}', first[name])
        show(f'steps after it {name}', later[name])
    ratio = statistics.median(later['with']) / statistics.median(later['without'])
    print(f'with to without, steps after the first: {ratio:.3f}')


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('run')
    p.add_argument('-n', '--places', type=int, default=50)
    p.add_argument('--steps', type=int, default=10)
    p.add_argument('--seed', type=int, default=random.randrange(1 << 32))
    p.add_argument('--cold', action='store_true')
    p.add_argument('--watch')
    p.add_argument('--walks', type=int, default=0)
    args = p.parse_args()
    if args.walks:
        walks(os.path.abspath(args.run), args.walks, args.steps)
        return
    rng = random.Random(args.seed)
    with tempfile.TemporaryDirectory(prefix='tt-rev-') as work:
        with stopped_replay(work, os.path.abspath(args.run), timeout=LIMIT,
                            args=Gdb.args(work, 'rep')) as vm:
            gdb = Gdb(vm)
            end = end_of(vm)
            seconds = 0 if args.cold else one_pass(vm, end)
            script, output = script_of(
                work, SCRIPT, STEPS=args.steps, WATCH=args.watch,
                POSITIONS=[rng.randrange(1, end) for _ in range(args.places)])
            said = gdb(f'source {script}', timeout=LIMIT)
            if not os.path.exists(output):
                sys.exit(said)
            with open(output, encoding='utf-8') as f:
                out = json.load(f)
    print(f'seed {args.seed}')
    if args.places:
        show('first reverse-stepi of a place', out['first'])
        show('reverse-stepi after it', out['next'])
    for ms, text, position in out['watch']:
        ratio = f'{ms / 1000 / seconds:.3f} of the pass' if seconds else ''
        print(f'reverse-continue to a write: {ms / 1000:.2f} s, {ratio}, at '
              f'position {position} of {end}')
        print('  ' + ' | '.join(text.split('\n')[:6]))


if __name__ == '__main__':
    sys.exit(main())
