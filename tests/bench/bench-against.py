#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Host instructions of recording and replaying, against another build of TTVM.

  tests/bench/bench-against.py --other OTHER-QEMU [--qemu QEMU] [WORK...]

CPU seconds of a shared machine differ by far more than 1 %, so this counts: both
binaries run under valgrind (cachegrind). A run is recorded by the other one, without
valgrind, and both replay it to its end: the guest executes the same in both. A work
whose guest has no timer is recorded under valgrind as well; with a timer, how often it
fires would depend on the time that passes. Where the two recordings differ by over 2 % in
length (a guest that finds a fault in one of them ends there), they are not compared.
Minutes, also on a busy machine; `boot` takes some twenty.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, 'tests', 'functional'))
sys.dont_write_bytecode = True
from guests import guest_args, linux_args  # noqa: E402

# Guest and command line; is it recorded under valgrind?
WORKS = {'codebits': ('rounds=300', True), 'exceptions': ('', True),
         'ins': ('', True), 'rdmsr': ('', True), 'torture': ('rounds=1', False),
         'random': ('seed=10 blocks=40 dma=0', False),
         'smp': ('cpus=4 rounds=200', False), 'boot': (None, False)}
LIMIT_SECONDS = 3000


def run(argv, want):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, timeout=LIMIT_SECONDS,
                          check=False, errors='replace')
    if done.returncode != 0 or want not in done.stderr:
        sys.exit(f"{' '.join(argv)}\nended with {done.returncode}: "
                 f"{done.stderr[-400:]}")
    found = re.search(r'recorded (\d+) positions', done.stderr)
    return int(found.group(1)) if found else 0


def count(argv, want, tmp):
    """Host instructions, and positions if it records."""
    out = os.path.join(tmp, 'out')
    positions = run(['valgrind', '--tool=cachegrind', '--cache-sim=no',
                     '--smc-check=all-non-file', f'--cachegrind-out-file={out}', *argv],
                    want)
    with open(out, encoding='utf-8', errors='replace') as f:
        return int(re.search(r'^summary: (\d+)', f.read(), re.M).group(1)), positions


def measure(args, name, tmp):
    append, is_recorded = WORKS[name]
    guest = guest_args(tmp, name, append) if append is not None else \
        linux_args('none')
    guest = [*guest, '-serial', 'null', '-tt']

    def record(where):
        return [*guest, f'record,dir={os.path.join(tmp, where)}']
    run([args.other, *record('run')], 'recorded')
    replay = ['-tt', f'replay,dir={tmp}/run,at-end=exit', '-serial', 'null']
    kinds = [('replay', 'replay exact', lambda who: replay)]
    if is_recorded:
        kinds.append(('record', 'recorded', record))
    line = f'{name:10}'
    for kind, want, argv in kinds:
        (other, length), (ours, our_length) = (
            count([qemu, *argv(who)], want, tmp)
            for who, qemu in (('other', args.other), ('ours', args.qemu)))
        if abs(our_length - length) > length / 50:
            line += f'  {kind}: {length} and {our_length} positions: not compared'
            continue
        line += f'  {kind}: {other} -> {ours}, ratio {ours / other:.4f}'
    print(line, flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('--qemu', default=f'{TOP}/build/qemu-system-x86_64')
    p.add_argument('--other', required=True, help='the build to compare with')
    p.add_argument('works', nargs='*', metavar='WORK', help=f"of {', '.join(WORKS)}")
    args = p.parse_args()
    for name in args.works or WORKS:
        if name not in WORKS:
            sys.exit(f"there is no work '{name}'")
        with tempfile.TemporaryDirectory(prefix='tt-bench-') as tmp:
            measure(args, name, tmp)


if __name__ == '__main__':
    main()
