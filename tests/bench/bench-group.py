#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the link between two VMs carries: a bulk transfer between two Linux guests over
upstream's netdev stream and over netdev tt, plain and recorded; bytes of the logs.

  tests/bench/bench-group.py [-n MEGABYTES] [--times N] [--key] [--hub]"""

import argparse
import os
import re
import statistics
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'functional'))

from guests import own_args  # noqa: E402
from test_group import hub  # noqa: E402
from ttlib import Vm, check, recorder, wait_until  # noqa: E402

SERVER = '''
ifconfig lo 127.0.0.1 up
ifconfig eth0 10.9.0.2 netmask 255.255.255.0 up
mkdir -p /tmp/www
head -c 1048576 /dev/urandom > /tmp/mb
i=0
while [ $i -lt %d ]; do cat /tmp/mb; i=$((i + 1)); done > /tmp/www/file
httpd -h /tmp/www
echo TT-SERVES
nc -l -p 99 < /dev/null
sleep 1
'''

CLIENT = '''
ifconfig lo 127.0.0.1 up
ifconfig eth0 10.9.0.1 netmask 255.255.255.0 up
i=0
until wget -q -O /dev/null http://10.9.0.2/ || [ $i -gt 60 ]; do
    wget -O /dev/null http://10.9.0.2/ 2>&1 | grep -q 404 && break
    i=$((i + 1))
    sleep 1
done
up=$(cut -d ' ' -f 1 /proc/uptime)
bytes=$(wget -q -O - http://10.9.0.2/file | wc -c)
echo "TT-TOOK $up $(cut -d ' ' -f 1 /proc/uptime) $bytes"
echo bye | nc -w 5 10.9.0.2 99
'''


def link(kind, path, listens, key):
    if kind == 'stream':
        how = 'server=on' if listens else 'server=off,reconnect-ms=200'
        return f'stream,id=net0,{how},addr.type=unix,addr.path={path}'
    return f'tt,id=net0,group=g,{"listen" if listens else "connect"}={path}' + \
        (f',key-file={key}' if key else '')


def one(work, kind, recorded, args, name):
    """Seconds of the transfer as the guest sees them, bytes of both logs."""
    path = os.path.join(work, f'{name}.sock')
    key = os.path.join(work, 'key') if args.key else None
    if key:
        with open(key, 'w', encoding='ascii') as out:
            out.write('x' * 40)

    def vm(role, script, number, listens, sock):
        own = os.path.join(work, f'{name}{role}')
        os.makedirs(own, exist_ok=True)
        argv = own_args(own, {'own/run': script.encode()}, memory='128') + [
            '-netdev', link(kind, sock, listens, key), '-device',
            f'virtio-net-pci,netdev=net0,romfile=,mac=52:54:00:09:00:0{number}']
        make = recorder if recorded else Vm
        return make(work, argv, name=f'{name}{role}', timeout=600)

    def both(sock, listens):
        with vm('a', SERVER % args.n, 2, listens, sock) as sink:
            if listens:
                wait_until(lambda: os.path.exists(sock), 'the socket')
            with vm('b', CLIENT, 1, False, sock) as source:
                source.wait(0)
                sink.wait(0)
        found = re.search(rb'TT-TOOK ([0-9.]+) ([0-9.]+) (\d+)', source.serial)
        check(found and int(found.group(3)) == args.n << 20,
              f'{source.serial[-300:]} {sink.serial[-300:]}')
        size = sum(os.path.getsize(os.path.join(v.run, 'log')) for v in (sink, source)) \
            if recorded else 0
        return float(found.group(2)) - float(found.group(1)), size

    if args.hub and kind == 'tt':
        with hub(work) as sock:
            return both(sock, False)
    return both(path, True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('-n', type=int, default=20, help='megabytes')
    parser.add_argument('--times', type=int, default=3)
    parser.add_argument('--key', action='store_true', help='authenticated')
    parser.add_argument('--hub', action='store_true', help='through tt hub')
    args = parser.parse_args()
    took, logs = {}, {}
    with tempfile.TemporaryDirectory(prefix='tt-group-') as work:
        for i in range(args.times):
            for recorded in (False, True):
                for kind in ('stream', 'tt'):
                    seconds, size = one(work, kind, recorded, args, f'{kind[0]}{i}')
                    took.setdefault((kind, recorded), []).append(seconds)
                    logs.setdefault((kind, recorded), []).append(size)
    for (kind, recorded), seconds in took.items():
        best = min(seconds)
        print(f'{kind:7} {"recorded" if recorded else "plain":9} '
              f'{args.n * 1.048576 / best:7.2f} MB/s (best of {len(seconds)}: {seconds})'
              f' logs {statistics.median(logs[kind, recorded]) / 1e6:.1f} MB')
    for kind, recorded in (('tt', False), ('tt', True)):
        print(f'{kind} {"recorded" if recorded else "plain"} over stream '
              f'{"recorded" if recorded else "plain"}: '
              f'{min(took["stream", recorded]) / min(took[kind, recorded]):.2f}')


if __name__ == '__main__':
    main()
