#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How long each VM of a group stands still for a checkpoint of the group, and for an
incident, and what each file costs: small Linux guests that fetch files from one of them
through a hub.

  tests/bench/bench-group-pause.py [-n TIMES] [--members N]... [--memory MB] [--seconds S]"""

import argparse
import contextlib
import os
import re
import statistics
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'functional'))

from test_group import CLIENT, guest, hub, nic, server_args  # noqa: E402
from ttlib import recorder  # noqa: E402

ENDLESS = CLIENT[:CLIENT.index('ping -c')] + '''
while true; do
    wget -q -O /tmp/got http://10.9.0.1/file
    echo TT-ROUND
done
'''
TOLD = re.compile(rb'@(\d+)\.(\d+):vm_state_notify running (\d)')


def pauses(path):
    """Milliseconds of each time that the VM stood still, by QEMU's own trace."""
    spans, since = [], None
    with open(path, 'rb') as log:
        for s, us, running in TOLD.findall(log.read()):
            at = int(s) * 1000 + int(us) / 1000
            if running == b'0':
                since = at
            elif since is not None:
                spans.append(at - since)
                since = None
    return spans


def show(what, members, spans):
    print(f'{members} members, {what}: {len(spans)} pauses, median '
          f'{statistics.median(spans):.1f} ms, most {max(spans):.1f} ms', flush=True)


def log_bytes(vm):
    return sum(entry.stat().st_size for entry in os.scandir(vm.run)
               if entry.name.startswith('log'))


def traffic(vms, seconds):
    """What goes through in this time, what it costs, and what the logs take for it."""
    def now():
        return (sum(vm.serial.count(b'TT-ROUND') for vm in vms[1:]),
                sum(vm.cpu_seconds() for vm in vms), sum(log_bytes(vm) for vm in vms))

    before = now()
    time.sleep(seconds)
    files, cpu, logs = (b - a for a, b in zip(before, now()))
    print(f'{len(vms)} members: {files} files in {seconds} s, {cpu / max(files, 1):.3f} CPU s '
          f'and {logs / max(files, 1) / 1e3:.0f} kB of logs a file', flush=True)


def measure(members, args):
    with tempfile.TemporaryDirectory(prefix='tt-pause-') as work, hub(work) as path, \
            contextlib.ExitStack() as running:
        os.makedirs(os.path.join(work, 'group'))
        argv = [server_args(work, f'connect={path}')]
        argv += [guest(work, f'c{i}', ENDLESS.replace('NUMBER', str(i))) +
                 nic(i, f'connect={path}') for i in range(2, members + 1)]
        vms, logs = [], []
        for i, a in enumerate(argv):
            logs.append(os.path.join(work, f'trace{i}'))
            vms.append(running.enter_context(recorder(
                work, [*a, '-m', str(args.memory), '-trace', 'vm_state_notify', '-D', logs[-1],
                       '-msg', 'timestamp=on'], f'group/vm{i}', ',last=10min', qmp=1,
                timeout=900)))
        for vm in vms[1:]:
            vm.wait_serial('TT-ROUND', timeout=600)
        traffic(vms, args.seconds)
        for what, ask in (('checkpoint', lambda vm: vm.qmp.cmd('tt-checkpoint-add', 60,
                                                               group=True)),
                          ('incident', lambda vm: vm.qmp.cmd('tt-incident', 60))):
            before = [len(pauses(log)) for log in logs]
            for i in range(args.n):
                ask(vms[i % members])
                time.sleep(2 + members / 2)
            show(what, members, [span for log, k in zip(logs, before)
                                 for span in pauses(log)[k:]])
        for vm in vms:
            vm.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('-n', type=int, default=6, help='checkpoints, and incidents')
    parser.add_argument('--members', type=int, action='append')
    parser.add_argument('--memory', type=int, default=128)
    parser.add_argument('--seconds', type=int, default=20, help='of traffic')
    args = parser.parse_args()
    for members in args.members or (2, 4, 8):
        measure(members, args)


if __name__ == '__main__':
    main()
