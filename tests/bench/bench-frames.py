#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What frame stores save: a bulk transfer between two recorded Linux guests.

  tests/bench/bench-frames.py [-n MEGABYTES] [--replay]

The file has random bytes. Prints by how much the receiver's log grew during the
transfer, how much of it is named, and what a pack of the run, which has all of it, has
more; the bytes of the stores; how long the transfer took in the guest. The same for a pair
without stores. With --replay also whether the replay of the receiver was exact, and how
long it took."""

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
echo TT-START
sleep 3
up=$(cut -d ' ' -f 1 /proc/uptime)
bytes=$(wget -q -O - http://10.9.0.1/file | wc -c)
echo "TT-TOOK $up $(cut -d ' ' -f 1 /proc/uptime) $bytes"
sleep 3
echo bye | nc -w 5 10.9.0.1 99
'''


def transfer(work, name, size, options):
    """The receiver's run, the seconds that the guest saw, and by how much the log grew."""
    path = os.path.join(work, f'{name}.sock')
    s = recorder(work, guest(work, f'{name}s', SERVER % size) + nic(1, f'listen={path}'),
                 f'{name}-server', options, timeout=900)
    c = recorder(work, guest(work, f'{name}c', CLIENT) + nic(2, f'connect={path}'),
                 f'{name}-client', options, timeout=900)
    with s:
        wait_until(lambda: os.path.exists(path), 'the socket')
        with c:
            c.wait_serial('TT-START', timeout=600)
            time.sleep(1)
            log = os.path.join(c.run, 'log')
            before = os.path.getsize(log)
            c.wait_serial('TT-TOOK', timeout=600)
            time.sleep(1)
            grown = os.path.getsize(log) - before
            c.wait(0)
            s.wait(0)
    found = re.search(rb'TT-TOOK ([0-9.]+) ([0-9.]+) (\d+)', c.serial)
    check(found and int(found.group(3)) == size, f'{c.serial[-300:]} {s.serial[-300:]}')
    return c.run, float(found.group(2)) - float(found.group(1)), grown


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('-n', type=int, default=20, help='megabytes, 30 at most')
    parser.add_argument('--replay', action='store_true')
    args = parser.parse_args()
    size = args.n << 20
    with tempfile.TemporaryDirectory(prefix='tt-frames-') as work:
        frames = os.path.join(work, 'frames')
        run, took, grown = transfer(work, 'with', size, f',frames={frames}')
        pack, where = os.path.join(work, 'pack'), os.path.join(work, 'unpacked')
        tt('pack', '--no-checkpoints', run, pack)
        tt('unpack', pack, where)
        log, whole = (os.path.getsize(os.path.join(r, 'log')) for r in (run, where))
        named = [json.loads(line) for line in
                 tt('log', run, '--kind', 'payload', '--json').stdout.splitlines()]
        stores = sum(os.path.getsize(os.path.join(frames, f)) for f in os.listdir(frames))
        _, plain, all_of_it = transfer(work, 'plain', size, '')
        print(f'{size} bytes got in {took:.2f} s (without stores {plain:.2f} s); '
              f'{len(named)} parts of frames with {sum(ev["aux"] for ev in named)} bytes are '
              'named')
        print(f'the log grew by {grown} bytes (without stores {all_of_it}): '
              f'{1 - grown / all_of_it:.4f} of that are saved, '
              f'{(all_of_it - grown) / size:.4f} of the bytes got')
        print(f'log {log} bytes, {whole} in the pack: {(whole - log) / size:.4f} of the bytes '
              f'got; the stores have {stores}')
        if args.replay:
            began = time.monotonic()
            replay(work, run, timeout=900)
            print(f'replayed exactly in {time.monotonic() - began:.1f} s')


main()
