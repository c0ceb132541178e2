# SPDX-License-Identifier: GPL-2.0-or-later
"""What was recorded under KVM (in the emulated host) replays exactly under TCG, and is a
run like any other then. Linux: test_kvm_linux.py."""

import os
import re

from guests import guest_args
from kvm_host import Job, in_host
from ttlib import (Gdb, check, check_exact, end_of, equal, goto_exact, limit, replayer,
                   replay, stopped_replay)

# kvm_report.py has all guests.
EXACT = ('hlt', 'smc', 'lines64', 'fp', 'selfdma', 'btflags', 'debug', 'mmiox', 'window')
# Recorded in parts. Their rounds last several times as long as the parts before the last
# one, which lasts to their end.
PARTS = {'fp': 'rounds=20000', 'selfdma': 'rounds=120'}
WANTED_PARTS = 3
NO_CHAINS = ['-d', 'nochain']   # each block is looked up


def converted(work, run, name):
    """The first replay converts; what it says of that."""
    return figures(check_exact(work, run, name=name, timeout=120), name)


def figures(vm, name):
    """Of a conversion: positions and landmarks."""
    found = re.search(r'converted: (\d+) positions, .*; (\d+) landmarks', vm.stderr)
    check(found, f'{name} was not converted: {vm.stderr[-500:]}')
    return int(found[1]), int(found[2])


def watch_back(vm, end):
    """gdb goes back to who wrote a word of the stack last, and to the time before."""
    gdb = Gdb(vm)
    text = gdb(f'monitor tt goto {end}', 'set $at = $rsp', 'watch *(int *)$at',
               'reverse-continue', 'monitor info tt', 'reverse-stepi', 'monitor info tt')
    seen = [int(n) for n in re.findall(r'^position (\d+)', text, re.M)]
    check(len(seen) == 2 and 0 < seen[1] < seen[0] < end, f'watch, going back: {text}')
    return seen[0]


def travelled(work, run):
    with stopped_replay(work, run, 'walk') as vm:
        end = end_of(vm)
        for at in (end // 3, end // 2, end - 1000):
            goto_exact(vm, at)
    with replayer(work, run, ['-S', *Gdb.args(work, 'gdb')], 'gdb', qmp=1) as vm:
        watch_back(vm, end * 9 // 10)


def check_parts(work, name, run):
    """Recordings that began, and ended, in the midst of the guest's life. The landmarks
    of each."""
    if len(run.parts) < WANTED_PARTS:
        print(f'{name}: it ended early, {len(run.parts)} parts of {WANTED_PARTS}')
    check(len(run.parts) >= 2, f'{name}: only {len(run.parts)} parts have positions')
    check(run.serial.startswith(f'{name.split("-")[0]}: start\n'.encode()),
          f'{name}: the console begins with {run.serial[:100]}')
    landmarks, consoles = [], []
    for path in run.parts:
        part = os.path.basename(path)
        vm = replay(work, path, name=f'{part}-rep', timeout=120)
        check('replay exact' in vm.stderr and 'diverged' not in vm.stderr,
              f'the replay of part {part}: {vm.stderr[-500:]}')
        positions, found = figures(vm, part)
        check(positions > 0, f'part {part} has no positions')
        landmarks.append(found)
        consoles.append(vm.serial)
    said = b'.*'.join(re.escape(c) for c in consoles)
    check(re.search(said + (b'$' if len(run.parts) == WANTED_PARTS else b''),
                    run.serial, re.S),
          f'{name}: the parts print {consoles}, the guest printed {run.serial}')
    return landmarks


def check_ended(name, run):
    guest = name.split('-')[0]
    check(run.serial.count(f'{guest}: end'.encode()) == 1 and run.serial.endswith(b'\n'),
          f'guest {name} did not end under KVM: {run.serial[-200:]}')


@limit(300)
def test_guests(work):
    """Bare-metal guests, one after the other in one emulated host; two of them again, in
    recordings that begin and end in the midst of their life."""
    jobs = [Job(name, guest_args(work, name)) for name in EXACT]
    jobs += [Job(f'{name}-parts', guest_args(work, name, rounds), parts=WANTED_PARTS)
             for name, rounds in PARTS.items()]
    runs = in_host(work, jobs, timeout=240)
    for name, run in runs.items():
        check_ended(name, run)
    in_parts = {name: check_parts(work, name, runs.pop(name))
                for name in [f'{guest}-parts' for guest in PARTS]}
    check(all(in_parts['fp-parts']), f'a part without landmarks: {in_parts}')
    landmarks = 0
    for name, run in runs.items():
        landmarks += converted(work, run, f'{name}-rep')[1]
        check_exact(work, run, NO_CHAINS, f'{name}-again')
    check(landmarks > 100, f'only {landmarks} landmarks')
    travelled(work, runs['fp'])
    print(f'{landmarks} landmarks in {len(runs)} guests; of parts: {in_parts}')
