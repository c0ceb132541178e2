#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How fast the conversion of a run of KVM's looks for a landmark.

  tests/bench/bench-kvm-search.py [--seconds N]

The run of tests/golden is given a landmark that never comes, at the first instruction of a
small loop. Each time the guest comes by is a candidate. The loops count in a register and
in memory. Printed: candidates, and how many for each second of the converter's CPU time.
It needs the cores (scripts/test cores), which make the forged log.
"""
import argparse
import os
import re
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, '..', 'functional'))
from test_hostile import events_of, forge  # noqa: E402
from test_kvm_convert import (COUNTING, at_start, converter_of, fresh,  # noqa: E402
                              started, told_to_end)
from ttlib import read_bytes, wait_until  # noqa: E402

LOOPS = {'register': bytes.fromhex('6640ebfc'),     # inc eax; jmp to it
         'memory': COUNTING}
PASSED = re.compile(rb'0xf0000 was passed ([\d,]+)')


def cpu_seconds(pid):
    fields = read_bytes(f'/proc/{pid}/stat').rsplit(b')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def newest(said):
    """How many candidates the last progress line names."""
    found = PASSED.findall(read_bytes(said))
    return int(found[-1].replace(b',', b'')) if found else 0


def measure(work, name, loop, seconds):
    run, _ = fresh(work, f'{name}-run')
    forged, there, _ = at_start(events_of(run), loop)
    place = forge(run, os.path.join(work, name), [*forged, there])
    said = f'{place}.said'
    with started(place) as p:
        wait_until(lambda: newest(said), 'progress', 120)
        pid, first = converter_of(p), newest(said)
        # Both ends of the span are moments at which a line was written.
        wait_until(lambda: newest(said) > first, 'progress', 120)
        begin = newest(said), cpu_seconds(pid)
        time.sleep(seconds)
        last = newest(said)
        wait_until(lambda: newest(said) > last, 'progress', 120)
        end = newest(said), cpu_seconds(pid)
        told_to_end(p, place, name)
    n, cpu = end[0] - begin[0], end[1] - begin[1]
    print(f'{name:<10} {n:>14,} candidates in {cpu:6.2f} s of CPU: {n / cpu / 1e6:.1f} M/s')


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('--seconds', type=float, default=20)
    args = p.parse_args()
    with tempfile.TemporaryDirectory(prefix='tt-bench-') as work:
        for name, loop in LOOPS.items():
            measure(work, name, loop, args.seconds)


if __name__ == '__main__':
    main()
