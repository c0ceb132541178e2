#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the note of a frame without a trailer costs a VM with a filter-tt: CPU time and bytes
of log a frame, beside a recorded VM without a filter. The NIC takes none of the frames.

  tests/bench/bench-bare.py [-n FRAMES] [--times N]"""

import argparse
import fcntl
import os
import random
import socket
import statistics
import struct
import sys
import tempfile
import termios

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'functional'))

from ttlib import MACHINE, recorder, wait_until  # noqa: E402

HEAD = bytes.fromhex('5254000900ff 525400090002 88b5')
FILTER = ['-object', 'filter-tt,id=f0,netdev=net0,group=g']


def send(sock, frames):
    """All of them, and waits until QEMU has read them."""
    lengths = random.Random(1)
    for _ in range(frames // 100):
        some = [HEAD + bytes(lengths.randrange(46, 1501)) for _ in range(100)]
        sock.sendall(b''.join(struct.pack('>I', len(frame)) + frame for frame in some))
    wait_until(lambda: not any(fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4))), 'all are read')


def log_bytes(run):
    return sum(entry.stat().st_size for entry in os.scandir(run)
               if entry.name.startswith('log'))


def measure(args, frames):
    """Microseconds of CPU a frame, and bytes of the whole log."""
    with tempfile.TemporaryDirectory(prefix='tt-bare-') as work:
        path = os.path.join(work, 'sock')
        netdev = f'stream,id=net0,server=on,addr.type=unix,addr.path={path}'
        with recorder(work, [*MACHINE, '-netdev', netdev, '-device',
                             'rtl8139,netdev=net0,romfile=', *args], 'one', qmp=1,
                      timeout=600) as vm, socket.socket(socket.AF_UNIX) as sock:
            wait_until(lambda: sock.connect_ex(path) == 0, 'the netdev listens')
            wait_until(lambda: vm.qmp.cmd('query-tt')['position'] > 1000000, 'it runs')
            send(sock, 1000)
            before = vm.cpu_seconds()
            send(sock, frames)
            spent = vm.cpu_seconds() - before
            vm.qmp.send('quit')
            vm.wait(0)
        return spent * 1e6 / frames, log_bytes(vm.run)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('-n', type=int, default=200000)
    parser.add_argument('--times', type=int, default=5)
    o = parser.parse_args()
    plain, noted = [], []
    for _ in range(o.times):
        plain.append(measure([], o.n))
        noted.append(measure(FILTER, o.n))
    cpu = [statistics.median(us for us, _ in all_of) for all_of in (plain, noted)]
    logs = [statistics.median(size for _, size in all_of) for all_of in (plain, noted)]
    print(f'{o.n} frames of 60 to 1514 bytes, {o.times} times: {cpu[0]:.2f} us of CPU a frame '
          f'without a filter, {cpu[1]:.2f} with one; {(logs[1] - logs[0]) / o.n:.2f} bytes of '
          'log a frame')


if __name__ == '__main__':
    main()
