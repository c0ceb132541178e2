#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The tables of Koju et al. (VEE 2005) for a whole machine: what each mode costs.

  tests/bench/bench-koju.py [-n ROUNDS] [--steps N] [--seed N] [KIND...]

Five kinds of programs in the Linux guest (scripts/guest): compute, memory, processes,
disk, network. In each round, in turn: without -tt, -tt ready, recording, replay. Printed
are the medians, over the rounds, of the CPU seconds without -tt and of each mode's ratio
to it in the same round, with the least and the most. A boot is part of every run, so it
dilutes the ratios alike.

Then the last recording of each kind is stepped in, at one random position: means of N
steps forward (s) and backward (bs), with the undo log of single steps, with near
checkpoints only (step-memory=0), and backward without either (x-omit=near); the first
step backward is not counted. Those are QEMU's times, by the clock (see bench-ring.py).
"""
import argparse
import importlib.util
import os
import random
import shutil
import statistics
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, 'tests', 'functional'))
sys.dont_write_bytecode = True
from guests import linux_args, linux_disk, linux_net, own_args  # noqa: E402
from ttlib import Gdb, end_of, stopped_replay  # noqa: E402

MODES = ('ready', 'record', 'replay')
KINDS = {'compute': 'sha', 'memory': 'own', 'processes': 'procs', 'disk': 'vda',
         'network': 'net'}
MEMORY = b'''#!/bin/sh
for i in 1 2 3 4; do
    dd if=/dev/zero of=/tmp/a bs=1M count=24 2>/dev/null
    cp /tmp/a /tmp/b && cmp /tmp/a /tmp/b || exit 1
done
echo "TT-DONE own"
'''


def module(name):
    spec = importlib.util.spec_from_file_location(name.replace('-', '_'),
                                                  os.path.join(HERE, name + '.py'))
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


COST = module('bench-cost')
RING = module('bench-ring')


def guest(tmp, kind, url):
    if kind == 'memory':
        return own_args(tmp, {'own/run': MEMORY})
    args = linux_args(KINDS[kind], f'u={url}')
    if kind == 'disk':
        args += linux_disk(tmp)
    if kind == 'network':
        args += linux_net()
    return args


def one_round(tmp, kind, url, qemu):
    run, serial = os.path.join(tmp, 'run'), os.path.join(tmp, 'serial')
    shutil.rmtree(run, ignore_errors=True)
    out = {}
    for mode, options, says in (('off', [], b''), ('ready', ['-tt', 'ready'], b''),
                                ('record', ['-tt', f'record,dir={run}'], b'recorded')):
        out[mode] = COST.cpu_seconds(
            [qemu, '-accel', 'tcg,thread=single', *guest(tmp, kind, url), '-serial',
             f'file:{serial}', *options], says)
        with open(serial, 'rb') as f:
            text = f.read()
        if b'TT-DONE ' + KINDS[kind].encode() not in text or b'TT-FAIL' in text:
            sys.exit(f'the guest did not do its work ({mode}): {text[-400:]}')
    out['replay'] = COST.cpu_seconds([qemu, '-tt', f'replay,dir={run},at-end=exit',
                                      '-serial', 'null'], b'replay exact')
    return out


def stepping(run, options, n, part, packets):
    """The mean milliseconds of @n of each of @packets at @part of the run."""
    with tempfile.TemporaryDirectory(prefix='tt-koju-') as work:
        with stopped_replay(work, run, timeout=RING.LIMIT, options=options,
                            args=Gdb.args(work, 'rep')) as vm:
            remote = RING.Remote(vm, RING.LIMIT)
            remote.goto(int(part * end_of(vm)))
            remote.timed('bs', b'T')
            found = {}
            for packet in packets:
                at = RING.position(vm)
                found[packet] = statistics.mean(remote.timed(packet, b'T')
                                                for _ in range(n))
                RING.check_moved(packet, at, RING.position(vm),
                                 -n if packet == 'bs' else n)
            return found


def measure(kind, args, rng):
    with tempfile.TemporaryDirectory(prefix='tt-koju-') as tmp:
        with open(os.path.join(tmp, 'blob'), 'wb') as f:
            f.write(rng.randbytes(20_000_000))
        url = f'http://10.0.2.2:{COST.serve(tmp)}/blob'
        rounds = [one_round(tmp, kind, url, args.qemu) for _ in range(args.rounds)]
        line = f"{kind:10} {statistics.median(r['off'] for r in rounds):7.2f} "
        for mode in MODES:
            each = sorted(r[mode] / r['off'] for r in rounds)
            line += f' {statistics.median(each):5.2f} ({each[0]:.2f}-{each[-1]:.2f})'
        run, part = os.path.join(tmp, 'run'), rng.uniform(0.1, 0.9)
        log = stepping(run, '', args.steps, part, ('bs', 's'))
        near = stepping(run, RING.OFF, args.steps, part, ('bs', 's'))
        none = stepping(run, RING.OFF + ',x-omit=near', args.steps, part, ('bs',))
        print(f"{line}  {log['s']:8.3f} {near['s']:8.3f} {log['bs']:8.3f} "
              f"{near['bs']:8.3f} {none['bs']:8.3f}", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('-n', '--rounds', type=int, default=5)
    p.add_argument('--steps', type=int, default=50)
    p.add_argument('--seed', type=int, default=random.randrange(1 << 32))
    p.add_argument('--qemu', default=f'{TOP}/build/qemu-system-x86_64')
    p.add_argument('kinds', nargs='*', metavar='KIND', help=f"of {', '.join(KINDS)}")
    args = p.parse_args()
    for kind in args.kinds:
        if kind not in KINDS:
            p.error(f"there is no kind '{kind}': it is one of {', '.join(KINDS)}")
    rng = random.Random(args.seed)
    print(f'{args.rounds} rounds, seed {args.seed}, load {os.getloadavg()[0]:.1f} at '
          'the start; off in CPU seconds, ratios to it: median (least-most); steps in ms')
    print('kind           off  ready             record            replay            '
          '  s: log     near  bs: log     near  without')
    for kind in args.kinds or KINDS:
        measure(kind, args, rng)


if __name__ == '__main__':
    sys.exit(main())
