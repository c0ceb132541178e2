# SPDX-License-Identifier: GPL-2.0-or-later
"""Each remedy is needed: without it a guest's replay is wrong.

x-omit leaves one remedy out. The same guest, recorded and replayed in the
same way with the remedy in place, is exact: so the guest is able to show the
fault, and the remedy is what mends it. Faults that depend on timing get a
few recordings to appear.
"""

import collections
import json
import time

from guests import guest_args
from ttlib import (SLOW, Gdb, check, check_exact, digest, end_of, equal, fail,
                   goto, goto_exact, limit, record, recorder, replay, replayer,
                   seed, stopped_replay, tt, wait_until)

FENCE = 1 << 23
ARENA = 16 << 20                # RT_ARENA of the guests
ONE_INSN = ('-accel', 'tcg,one-insn-per-tb=on')

# Where the remedy is left out (recording, replay), and how often to try.
Hazard = collections.namedtuple('Hazard', 'guest append record replay args '
                                          'tries promise')

HAZARDS = {
    'exception-count': Hazard(
        'exceptions', '', True, True, (), 10,
        'positions that do not count exceptions misplace interrupts'),
    'unwind-count': Hazard(
        'exceptions', 'rounds=10', True, True, ONE_INSN, 10,
        'a fault in the middle of a block must take its count back'),
    'fixed-tlb': Hazard(
        'abits', '', True, False, (), 10,
        'accessed bits depend on the geometry of the TLB'),
    'bt-flags': Hazard(
        'btflags', '', True, True, ONE_INSN, 1,
        'undefined flags of bit tests depend on the shape of blocks'),
    'rdmsr-io': Hazard(
        'rdmsr', '', True, True, ONE_INSN, 1,
        'a register read must end its block to have a position'),
    'unhalt': Hazard(
        'hlt', '', True, False, (), 1,
        'waking up from HLT is an input'),
    'cpu-reset': Hazard(
        'reset', '', True, False, (), 1,
        'a reset of the CPU is an input'),
    'fetch': Hazard(
        'codebits', '', True, True, ONE_INSN, 10,
        'code pages must be looked up when control enters them'),
    'second-fetch': Hazard(
        'crossing', '', True, True, (), 10,
        'the second page of an instruction is looked up when it runs'),
    'victims': Hazard(
        'victims', 'rounds=8', True, True, ('-accel', 'tcg,tb-size=1'), 1,
        'the TLB finds what it pushed out whatever TCG has translated'),
    'resume-flag': Hazard(
        'exceptions', 'rounds=10', True, True, ONE_INSN, 10,
        'the resume flag must end with an instruction, not with a block'),
    'into': Hazard(
        'random', 'seed=10 blocks=30 modes=0', True, True, ONE_INSN, 10,
        'INTO must end its block: it raises without taking a count back'),
    'dma-invalidate': Hazard(
        'dmacode', '', False, True, (), 1,
        'code that a device wrote must be translated anew'),
    'a20': Hazard(
        'a20', '', True, False, (), 1,
        'the A20 gate is an input'),
    'ignne': Hazard(
        'ignne', '', True, False, (), 1,
        'port F0h changes the CPU and is an input'),
    'device-regs': Hazard(
        'vmport', '', True, False, (), 1,
        'general registers that a device changes are an input'),
    'bounce': Hazard(
        'selfdma', 'rounds=200', True, False, (), 10,
        'direct DMA is visible to the guest before it is logged'),
}


def omitting(really, name):
    return f',x-omit={name}' if really else ''


def goes_wrong(work, name, hazard, attempt):
    run = record(work, guest_args(work, hazard.guest, hazard.append),
                 name=f'rec{attempt}',
                 options=omitting(hazard.record, name))
    vm = replay(work, run, hazard.args, name=f'rep{attempt}', rc=None,
                options=omitting(hazard.replay, name) + ',at-end=exit')
    status = vm.process.returncode
    check(status in (0, 3),
          f'a replay that must diverge ended with {status}: {vm.stderr}')
    if status == 3:
        check('tt: diverged at position ' in vm.stderr,
              f'no message about the divergence but: {vm.stderr}')
    return status == 3 or vm.serial != run.serial


def hazard_test(name, hazard):
    def test(work):
        run = record(work, guest_args(work, hazard.guest, hazard.append))
        check_exact(work, run, hazard.args)
        for attempt in range(hazard.tries):
            if goes_wrong(work, name, hazard, attempt):
                return
        fail(f'without {name}, guest {hazard.guest} still replayed exactly '
             f'({hazard.tries} recordings): the remedy is not needed, or '
             'x-omit does not leave it out')
    test.__doc__ = f'Remedy {name}: {hazard.promise}.'
    return limit(120)(test)


for _name, _hazard in HAZARDS.items():
    globals()['test_' + _name.replace('-', '_')] = hazard_test(_name, _hazard)


MACHINE_CHECK = 'mce 0 1 0x9400000000000000 0 0x1000 0'


def let_run(vm):
    """The guest does some hundred rounds."""
    events = vm.qmp.cmd('query-tt')['events']
    wait_until(lambda: vm.qmp.cmd('query-tt')['events'] > events + 100, 'it works')


def disturbed(work, guest, steps, name='rec', options='', args=()):
    """Each of @steps is done to a guest that is at work; the ended recorder."""
    with recorder(work, [*guest_args(work, guest, 'rounds=1000000000'), *args], name,
                  options, qmp=1) as vm:
        vm.wait_serial('start')
        for step in steps:
            let_run(vm)
            step(vm)
        let_run(vm)
        vm.qmp.send('quit')
        vm.wait(0)
    return vm


def then_replayed(work, vm, name):
    """The ended replay, and the recorder."""
    with replayer(work, vm.run, (), f'{name}-rep', ',at-end=exit') as rep:
        rep.wait()
    return rep, vm


def plugged_in(work, name, options=''):
    """Devices that map nothing are plugged in."""
    steps = [lambda vm, i=i: vm.qmp.cmd('device_add', driver='virtio-rng-pci', id=f'rng{i}')
             for i in range(8)]
    return then_replayed(work, disturbed(work, 'abits', steps, name, options), name)


@limit(120)
def test_map_commit(work):
    """Remedy map-commit: TCG empties its TLBs when a device is plugged in, whether or not
    the map that the guest sees is another then."""
    rep, vm = plugged_in(work, 'with')
    equal((rep.process.returncode, rep.serial), (0, vm.serial), rep.stderr)
    for attempt in range(5):
        rep, vm = plugged_in(work, f'without{attempt}', omitting(True, 'map-commit'))
        if rep.process.returncode == 3:
            check('tt: diverged at position ' in rep.stderr, rep.stderr)
            return
    fail('without map-commit it still replayed exactly')


def looked_at(work, name, options=''):
    """A checkpoint in the midst of the run, at which the vCPU is logged, and a machine
    check."""
    steps = [lambda vm, command=command: vm.qmp.hmp(command)
             for command in ('tt checkpoint add', MACHINE_CHECK, 'tt checkpoint add')]
    return then_replayed(work, disturbed(work, 'fpenv', steps, name, options), name)


@limit(100)
def test_unkept(work):
    """Remedy unkept: what QEMU's own state of a vCPU has not is kept, too: selectors of
    the last x87 instruction. And a machine check of the monitor's is an input."""
    rep, vm = looked_at(work, 'kept')
    check('replay exact' in rep.stderr, rep.stderr)
    with stopped_replay(work, vm.run, 'walk', timeout=100) as walk:
        goto_exact(walk, end_of(walk) // 2)
        goto_exact(walk, end_of(walk) // 3)
    rep, vm = looked_at(work, 'omitted', ',x-omit=unkept')
    check('diverged' in rep.stderr, 'the selectors are 0 anyhow')


def watched_replay(work, run, name, options=''):
    """gdb watches pages whose accessed bits the guest looks at; is the end right?"""
    with stopped_replay(work, run, name, Gdb.args(work, name), options=options,
                        timeout=100) as vm:
        gdb = Gdb(vm)
        end = end_of(vm)
        for part in range(3, 10):
            pages = [f'watch *(char *) {ARENA + page * 4096:#x}'
                     for page in range(part, 60 + part, 20)]
            gdb(f'monitor tt goto {end * part // 10}', *pages, 'continue',
                'continue', 'delete')
        gdb('monitor tt goto end')
        return not vm.qmp.cmd('query-tt')['diverged'] and digest(vm)


@limit(120)
def test_watch_tlb(work):
    """Remedy watch-tlb: a watchpoint that comes or goes must not flush the TLB, which
    shows in accessed bits."""
    run = record(work, guest_args(work, 'abits', 'rounds=12'))
    with stopped_replay(work, run, 'straight', timeout=100) as vm:
        goto(vm, where='end')
        wanted = digest(vm)
    equal(watched_replay(work, run, 'watched'), wanted, 'digest at the end')
    check(watched_replay(work, run, 'omitted', ',x-omit=watch-tlb') != wanted,
          'without watch-tlb gdb still leaves no trace in accessed bits')


@limit(100)
def test_state_tlb(work):
    """A vCPU whose state others have changed begins with an empty TLB, in the recording
    as in the replay, which loads it: accessed bits would show the difference."""
    vm = disturbed(work, 'abits', 8 * [lambda vm: vm.qmp.hmp(MACHINE_CHECK)])
    check_exact(work, vm.run, serial_wanted=vm.serial, timeout=90)


@limit(100)
def test_written_back(work):
    """gdb writes a register and writes it back: nothing differs but the TLB, which is
    empty now."""
    def write_back(vm):
        Gdb(vm)('set $old = $cr3', 'set $cr3 = $old + 4096', 'set $cr3 = $old')
        vm.qmp.cmd('cont')

    vm = disturbed(work, 'abits', 5 * [write_back], 'g', args=Gdb.args(work, 'g'))
    check_exact(work, vm.run, serial_wanted=vm.serial, timeout=90)


@limit(100)
def test_flags_that_wait(work):
    """A digest adds flags of SSE to MXCSR that were waiting: no change of the vCPU."""
    with recorder(work, guest_args(work, 'fp', 'rounds=1000000000'), qmp=1) as vm:
        vm.wait_serial('start')
        for _ in range(20):
            let_run(vm)
            vm.qmp.cmd('stop')
            digest(vm)
            vm.qmp.cmd('cont')
        vm.qmp.send('quit')
        vm.wait(0)
    states = tt('log', vm.run, '--kind', 'cpu-state', '--json').stdout.splitlines()
    equal(len([s for s in states if json.loads(s)['position']]), 0, 'states that were logged')
    check_exact(work, vm.run, serial_wanted=vm.serial, timeout=90)


@limit(120)
def test_fence_digest(work):
    """A digest that was asked for, and an end, exactly at a fence are seen after the
    fetch that follows it. The guest's many written pages, stored at each fence, are
    why a stop comes there."""
    args = guest_args(work, 'codebits', 'rounds=1000000000 dirty=7000')
    with recorder(work, args, options=',checkpoint-interval=0.001', qmp=1,
                  timeout=100) as vm:
        vm.wait_serial('sum')
        hits, rng = 0, seed()
        end = time.monotonic() + 60 * SLOW
        while hits < 6 and time.monotonic() < end:
            vm.qmp.cmd('stop')
            if vm.qmp.cmd('query-tt')['position'] % FENCE == 0:
                digest(vm)
                hits += 1
            vm.qmp.cmd('cont')
            time.sleep(rng.random() / 20)
        vm.qmp.send('quit')
        vm.wait(0)
    equal(hits, 6, 'stops at a fence')
    check_exact(work, vm.run, serial_wanted=vm.serial, timeout=100)


def test_unknown_remedy(work):
    """A misspelt name in x-omit is refused."""
    args = guest_args(work, 'cpuid')
    run = record(work, args, options=',x-omit=no-such-remedy', rc=1)
    check('no-such-remedy' in run.vm.stderr,
          f'the message does not name it: {run.vm.stderr}')
