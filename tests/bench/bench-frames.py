#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What frame stores save: a bulk transfer between two recorded Linux guests.

  tests/bench/bench-frames.py [-n MEGABYTES] [--replay]

The file has random bytes. Prints how much of it the receiver's log does not have, compared
with the log of a pack of the same run, which has all; the bytes of the stores; how long the
transfer took in the guest, also for a pair without stores. With --replay also whether the
replay of the receiver was exact, and how long it took."""

import argparse
import json
import os
import re
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'functional'))
sys.dont_write_bytecode = True

from test_group import guest, nic  # noqa: E402
from ttlib import check, recorder, replay, tt, wait_until  # noqa: E402

SERVER = '''
ifconfig lo 127.0.0.1 up
ifconfig eth0 10.9.0.1 netmask 255.255.255.0 up
mkdir -p /tmp/www
head -c %d /dev/urandom > /tmp/www/file
httpd -h /tmp/www
echo TT-SERVES
nc -l -p 99 < /dev/null
sleep 1
'''

CLIENT = '''
ifconfig lo 127.0.0.1 up
ifconfig eth0 10.9.0.2 netmask 255.255.255.0 up
i=0
until wget -O /dev/null http://10.9.0.1/ 2>&1 | grep -q 404 || [ $i -gt 60 ]; do
    i=$((i + 1))
    sleep 1
done
up=$(cut -d ' ' -f 1 /proc/uptime)
bytes=$(wget -q -O - http://10.9.0.1/file | wc -c)
echo "TT-TOOK $up $(cut -d ' ' -f 1 /proc/uptime) $bytes"
echo bye | nc -w 5 10.9.0.1 99
'''


def transfer(work, name, size, options):
    """The receiver's run, and the seconds that the guest saw."""
    path = os.path.join(work, f'{name}.sock')
    s = recorder(work, guest(work, f'{name}s', SERVER % size) + nic(1, f'listen={path}'),
                 f'{name}-server', options, timeout=900)
    c = recorder(work, guest(work, f'{name}c', CLIENT) + nic(2, f'connect={path}'),
                 f'{name}-client', options, timeout=900)
    with s:
        wait_until(lambda: os.path.exists(path), 'the socket')
        with c:
            c.wait(0)
            s.wait(0)
    found = re.search(rb'TT-TOOK ([0-9.]+) ([0-9.]+) (\d+)', c.serial)
    check(found and int(found.group(3)) == size, f'{c.serial[-300:]} {s.serial[-300:]}')
    return c.run, float(found.group(2)) - float(found.group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('-n', type=int, default=20, help='megabytes, 30 at most')
    parser.add_argument('--replay', action='store_true')
    args = parser.parse_args()
    size = args.n << 20
    with tempfile.TemporaryDirectory(prefix='tt-frames-') as work:
        frames = os.path.join(work, 'frames')
        run, took = transfer(work, 'with', size, f',frames={frames}')
        pack, where = os.path.join(work, 'pack'), os.path.join(work, 'unpacked')
        tt('pack', '--no-checkpoints', run, pack)
        tt('unpack', pack, where)
        log, whole = (os.path.getsize(os.path.join(r, 'log')) for r in (run, where))
        named = [json.loads(line) for line in
                 tt('log', run, '--kind', 'payload', '--json').stdout.splitlines()]
        stores = sum(os.path.getsize(os.path.join(frames, f)) for f in os.listdir(frames))
        print(f'{size} bytes got in {took:.2f} s, {len(named)} parts of frames with '
              f'{sum(ev["aux"] for ev in named)} bytes named')
        print(f'log {log} bytes, with all in it {whole}: {(whole - log) / size:.4f} of the '
              f'bytes got are saved; the stores have {stores}')
        _, plain = transfer(work, 'plain', size, '')
        print(f'without stores: {plain:.2f} s')
        if args.replay:
            began = time.monotonic()
            replay(work, run, timeout=900)
            print(f'replayed exactly in {time.monotonic() - began:.1f} s')


main()
