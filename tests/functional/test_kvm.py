# SPDX-License-Identifier: GPL-2.0-or-later
"""What was recorded under KVM (in the emulated host) replays exactly under TCG, and is a
run like any other then. Linux: kvm_report.py, by hand."""

import re

from guests import guest_args
from kvm_host import Job, in_host
from ttlib import (Gdb, check, check_exact, end_of, equal, goto_exact, limit, replayer,
                   stopped_replay)

# Linux takes longer: kvm_report.py has it, and all guests.
EXACT = ('hlt', 'smc', 'lines64', 'fp', 'selfdma', 'btflags', 'debug', 'mmiox', 'window')
NO_CHAINS = ['-d', 'nochain']   # each block is looked up


def converted(work, run, name):
    """The first replay converts; what it says of that."""
    vm = check_exact(work, run, name=name, timeout=120)
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


@limit(300)
def test_guests(work):
    """Bare-metal guests, one after the other in one emulated host."""
    runs = in_host(work, [Job(name, guest_args(work, name)) for name in EXACT],
                   timeout=240)
    landmarks = 0
    for name, run in runs.items():
        check(f'{name}: end'.encode() in run.serial,
              f'guest {name} did not end under KVM: {run.serial[-200:]}')
        landmarks += converted(work, run, f'{name}-rep')[1]
        check_exact(work, run, NO_CHAINS, f'{name}-again')
    check(landmarks > 100, f'only {landmarks} landmarks')
    travelled(work, runs['fp'])
    print(f'{landmarks} landmarks in {len(runs)} guests')
