#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What a breakpoint costs whose condition is false a million times.

  tests/bench/bench-condition.py [-n COUNT]

Records guest lines64, whose loop of some 128 instructions has the breakpoint,
with COUNT rounds. Prints the time of a replay from end to end without it, and
with it forward and backward, in seconds and in times of the plain one.
"""
import argparse
import os
import re
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, 'tests', 'functional'))
sys.dont_write_bytecode = True
from guests import guest_args  # noqa: E402
from test_gdb_lines import Packets  # noqa: E402
from ttlib import Gdb, record, replayer  # noqa: E402

# i == 50000000, as gdb 13 sends it for a local variable of spin()
CONDITION = '26000622100222d81608021a2402faf0802a401327'
LIMIT = 3600


def best(gdb, *packets, times=3):
    """The best time of each packet, sent in turn."""
    seen = [[] for _ in packets]
    for _ in range(times):
        for packet, all_times in zip(packets, seen):
            began = time.monotonic()
            reply = gdb(packet)
            all_times.append(time.monotonic() - began)
            if 'replaylog' not in reply:
                sys.exit(f'{packet} stopped half way: {reply}')
    return [min(t) for t in seen]


def show(what, seconds, plain):
    print(f'{what:20} {seconds:7.3f} s  {seconds / plain:5.1f} times the '
          'plain replay', flush=True)


def first_line():
    """Where a breakpoint on spin stands: behind its first instructions."""
    text = os.popen('gdb -nx -batch -ex "break spin" '
                    f'{TOP}/build/guests/lines64.debug').read()
    return int(re.search(r' at 0x([0-9a-f]+)', text).group(1), 16)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('-n', '--count', type=int, default=1000000)
    args = p.parse_args()
    with tempfile.TemporaryDirectory(prefix='tt-cond-') as work:
        run = record(work, guest_args(work, 'lines64', f'spins={args.count}'),
                     timeout=LIMIT)
        vm = replayer(work, run, ['-S', *Gdb.args(work, 'rep')], timeout=LIMIT)
        with vm:
            gdb = Packets(vm.socket_path('gdb'))
            gdb.sock.settimeout(LIMIT)
            plain, _ = best(gdb, 'vCont;c', 'bc')
            place = first_line()
            gdb(f'Z0,{place:x},1;X{len(CONDITION) // 2:x},{CONDITION}')
            forward, back = best(gdb, 'vCont;c', 'bc')
    show('plain', plain, plain)
    show(f'{args.count} times, forward', forward, plain)
    show(f'{args.count} times, backward', back, plain)


if __name__ == '__main__':
    sys.exit(main())
