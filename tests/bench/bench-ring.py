#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What a ring of undo entries could save of a step backwards, at most.

  tests/bench/bench-ring.py [-n PLACES] [--steps N] [--seed N] [--span N] RUN

Talks the remote protocol itself, so the times are QEMU's and not gdb's. Goes to PLACES
random positions; at each, after a first step that is not counted, times:

  bs   a step back by near checkpoints, as it is
  s    a step forward: the vCPU executes one instruction and stops
  g    the registers are read: nothing runs

A ring restores registers and some bytes instead of bs, and answers: that cannot be
faster than g. In turn it has to be filled by executing each instruction on its own. What
that costs is taken from a scan that visits every position of a span (a tt find with a
register): it evaluates a condition where a ring would log, so it stands for the fill,
and is not one. Printed: bs - g, the most that a step saves, and how many steps of a
filled ring pay for its fill, at sizes of one interval between near checkpoints and more.
"""
import argparse
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, 'tests', 'functional'))
sys.dont_write_bytecode = True
from ttlib import Gdb, end_of, stopped_replay, tool, wait_until  # noqa: E402

LIMIT = 600
SIZES = (1 << 11, 1 << 14, 1 << 17)


class Remote:
    """The remote protocol, as much of it as is needed."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(LIMIT)
        self.socket.connect(path)
        self.data = b''
        self('qSupported:swbreak+;hwbreak+')
        self('?')

    def read(self):
        while True:
            self.data = self.data.lstrip(b'+')
            at = self.data.find(b'#')
            if at >= 0 and len(self.data) >= at + 3:
                packet, self.data = self.data[1:at], self.data[at + 3:]
                self.socket.sendall(b'+')
                return packet
            more = self.socket.recv(1 << 16)
            if not more:
                sys.exit('QEMU closed the connection of gdb')
            self.data += more

    def __call__(self, command):
        text = command.encode()
        self.socket.sendall(b'$%s#%02x' % (text, sum(text) & 255))
        while (answer := self.read())[:1] == b'O' and answer != b'OK':
            pass
        return answer

    def timed(self, command, begins):
        began = time.monotonic()
        answer = self(command)
        ms = 1000 * (time.monotonic() - began)
        if not answer.startswith(begins):
            sys.exit(f'{command} is answered by {answer[:60]!r}')
        return ms

    def goto(self, position):
        self('qRcmd,' + f'tt goto {position}'.encode().hex())
        while True:                             # a stop may be told, too
            self.socket.settimeout(0.1)
            try:
                self.read()
            except TimeoutError:
                break
        self.socket.settimeout(LIMIT)


def show(what, times):
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


def steps(run, places, n, rng):
    times = {'bs': [], 's': [], 'g': []}
    with tempfile.TemporaryDirectory(prefix='tt-ring-') as work:
        with stopped_replay(work, run, timeout=LIMIT, args=Gdb.args(work, 'rep')) as vm:
            end = end_of(vm)
            path = vm.socket_path('gdb')
            wait_until(lambda: os.path.exists(path), 'the gdb socket')
            remote = Remote(path)
            for _ in range(places):
                remote.goto(rng.randrange(end // 10, end))
                remote.timed('bs', b'T')
                top = position(vm)
                times['bs'] += [remote.timed('bs', b'T') for _ in range(n)]
                low = check_moved('bs', top, position(vm), -n)
                times['g'] += [remote.timed('g', b'') for _ in range(n)]
                check_moved('g', low, position(vm), 0)
                times['s'] += [remote.timed('s', b'T') for _ in range(n)]
                check_moved('s', low, position(vm), n)
    return times, end


def scan(run, start, length):
    """Seconds of a search that visits each of @length positions and hits none."""
    began = time.monotonic()
    done = subprocess.run([tool('tt'), 'find', run, '$rax == 0x5eedfacecafe1234', '-j',
                           '1', '--from', str(start), '--to', str(start + length)],
                          timeout=LIMIT, capture_output=True, text=True)
    if done.returncode not in (0, 1) or 'position' in done.stdout:
        sys.exit(f'tt find: {done.returncode}: {done.stdout}{done.stderr}')
    return time.monotonic() - began


def fill_ms(run, end, span, rng):
    """Milliseconds for each position: two lengths, so that the start cancels out."""
    found = []
    for _ in range(5):
        start = rng.randrange(1, end // 10)
        found.append(1000 * (scan(run, start, 2 * span) - scan(run, start, span)) / span)
    print('visits: ' + ' '.join(f'{1000 * ms:.3f}' for ms in found) + ' us a position')
    return statistics.median(found)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('run')
    p.add_argument('-n', '--places', type=int, default=10)
    p.add_argument('--steps', type=int, default=100)
    p.add_argument('--span', type=int, default=1000000)
    p.add_argument('--seed', type=int, default=random.randrange(1 << 32))
    args = p.parse_args()
    run = os.path.abspath(args.run)
    rng = random.Random(args.seed)
    load = os.getloadavg()[0]
    times, end = steps(run, args.places, args.steps, rng)
    print(f'seed {args.seed}, {end} positions, load {load:.1f} at the start')
    show('bs: back by near checkpoints', times['bs'])
    show('s: forward', times['s'])
    show('g: nothing runs', times['g'])
    saved = statistics.mean(times['bs']) - statistics.mean(times['g'])
    print(f'a ring saves at most {saved:.3f} ms a step (of the means)')
    each = fill_ms(run, end, args.span, rng)
    print(f'a visit of each position: {1000 * each:.3f} us')
    if saved > 0 and each > 0:
        for size in SIZES:
            print(f'  a ring of {size:6}: filled in {size * each:8.2f} ms, paid for by '
                  f'{size * each / saved:8.1f} steps')


if __name__ == '__main__':
    sys.exit(main())
