#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the link between two VMs carries: a bulk transfer between two Linux guests over
upstream's netdev stream and over netdev tt, plain and recorded; bytes of the logs. The
ratios are of the best of all rounds, and the medians of those of each round.

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

CLOCK = 0.01        # seconds: what the guest's /proc/uptime can tell apart

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
echo TT-START
sleep 1
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
    """Seconds of the transfer as the guest sees them, CPU seconds of both processes, bytes
    of both logs."""
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
                source.wait_serial('TT-START', timeout=300)
                cpu = -source.cpu_seconds() - sink.cpu_seconds()
                source.wait_serial('TT-TOOK', timeout=300)
                cpu += source.cpu_seconds() + sink.cpu_seconds()
                source.wait(0)
                sink.wait(0)
        found = re.search(rb'TT-TOOK ([0-9.]+) ([0-9.]+) (\d+)', source.serial)
        check(found and int(found.group(3)) == args.n << 20,
              f'{source.serial[-300:]} {sink.serial[-300:]}')
        size = sum(os.path.getsize(os.path.join(v.run, 'log')) for v in (sink, source)) \
            if recorded else 0
        took = float(found.group(2)) - float(found.group(1))
        return max(took, CLOCK), max(cpu, CLOCK), size

    if args.hub and kind == 'tt':
        with hub(work) as sock:
            return both(sock, False)
    return both(path, True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('-n', type=int, default=20, help='megabytes, 30 at most')
    parser.add_argument('--times', type=int, default=3)
    parser.add_argument('--key', action='store_true', help='authenticated')
    parser.add_argument('--hub', action='store_true', help='through tt hub')
    args = parser.parse_args()
    seen = {}
    with tempfile.TemporaryDirectory(prefix='tt-group-') as work:
        for i in range(args.times):
            for recorded in (False, True):
                for kind in ('stream', 'tt'):
                    seen.setdefault((kind, recorded), []).append(
                        one(work, kind, recorded, args, f'{kind[0]}{i}'))
    best = {}
    for (kind, recorded), each in seen.items():
        took, cpu, size = (min(column) for column in zip(*each))
        best[kind, recorded] = took, cpu
        print(f'{kind:7} {"recorded" if recorded else "plain":9} best of {len(each)}: '
              f'{args.n * 1.048576 / took:7.2f} MB/s, {cpu / args.n:.3f} CPU s a MB, '
              f'logs {size / 1e6:.1f} MB')
    for what, a, b in (('tt over stream, plain', ('stream', False), ('tt', False)),
                       ('tt over stream, recorded', ('stream', True), ('tt', True)),
                       ('tt recorded over stream plain', ('stream', False), ('tt', True))):
        rounds = statistics.median(x[0] / y[0] for x, y in zip(seen[a], seen[b]))
        print(f'{what}: {best[a][0] / best[b][0]:.2f} of the speed (of each round '
              f'{rounds:.2f}), by CPU time {best[a][1] / best[b][1]:.2f}')


if __name__ == '__main__':
    main()
