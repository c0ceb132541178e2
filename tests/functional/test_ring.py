# SPDX-License-Identifier: GPL-2.0-or-later
"""The undo log of single steps: going back in it leads to the same states as going there
by checkpoints, and what is executed from there on is the same."""

import os
import re

from guests import guest_args
from remote import Remote
from test_gdb_lines import debugged, lines_run, positions
from test_gdb_watch import FLUSH, WHERE
from test_refuse import refused
from ttlib import (BUILD, MACHINE, REPO, Gdb, Vm, check, digest, end_of, equal, fail, goto,
                   goto_exact, limit, read_bytes, record, run_to_end, run_tool, seed,
                   stopped_replay, tt)
from walker import record_guest


def state(vm, remote):
    """Where it stands; digests, and the registers of the vCPU whose turn it is."""
    where, *found = digest(vm)
    remote(f"Hg{vm.qmp.cmd('query-tt')['cpu'] + 1}")
    return where, [*found, remote('g')]


def position(vm):
    return vm.qmp.cmd('query-tt')['position']


class Walk:
    """Steps back and forth by gdb, and gotos. Remembers where it stood, in what state."""

    def __init__(self, vm, rng, end):
        self.vm, self.rng, self.end = vm, rng, end
        self.remote = Remote(vm)
        self.seen = {}
        self.by_log = self.back = 0

    def note(self):
        where, found = state(self.vm, self.remote)
        self.seen.setdefault(where, found)
        equal(found, self.seen[where], f'state at {where}')

    def step(self, packet):
        was = self.vm.qmp.cmd('query-tt')
        if packet == 's' and was['position'] >= self.end - 2:
            return
        self.remote.moves(packet)
        if packet == 'bs':
            now = self.vm.qmp.cmd('query-tt')
            check(now['position'] < was['position'], 'a step back leads on')
            self.back += 1
            self.by_log += now['logged-steps'] < was['logged-steps'] and \
                was['logged-steps'] > 0

    def round(self):
        rng = self.rng
        what = rng.randrange(10)
        if what == 0:
            where = max(0, position(self.vm) - rng.randrange(1, 300))
            goto(self.vm, position=where)
        elif what == 1:
            where = min(self.end, position(self.vm) + rng.randrange(1, 5000))
            goto(self.vm, position=where)
        else:
            for _ in range(rng.choice((1, 2, 5, 20, 80))):
                self.step('bs' if what < 7 else 's')
        self.note()


def at_end(vm):
    """The digest there."""
    run_to_end(vm, 120)
    return digest(vm)


def judge(work, run, seen):
    """The states in a process without the log that only goes forward, and at the end."""
    with stopped_replay(work, run, 'judge', options=',step-memory=0', timeout=200,
                        args=Gdb.args(work, 'judge')) as vm:
        remote = Remote(vm)
        for where in sorted(seen):
            goto_exact(vm, where)
            equal(seen[where], state(vm, remote)[1], f'state at {where}')
        return at_end(vm)


def judge_walk(work, run, walk, last):
    equal(last, judge(work, run, walk.seen), 'digest at the end')


def walk(work, run, rng, walks, rounds, least=0.3):
    seen, by_log, back = {}, 0, 0
    ends = []
    with stopped_replay(work, run, 'end') as vm:
        end = end_of(vm)
    with stopped_replay(work, run, 'walk', timeout=400, args=Gdb.args(work, 'walk')) as vm:
        w = Walk(vm, rng, end)
        for _ in range(walks):
            goto(vm, position=rng.randrange(min(1000, end // 2), end))
            for _ in range(rounds):
                w.round()
            ends.append(at_end(vm))
            check(not vm.qmp.cmd('query-tt')['diverged'], 'it diverged')
        seen, by_log, back = w.seen, w.by_log, w.back
    print(f'{by_log} of {back} steps back by the log, {len(seen)} states')
    check(by_log > least * back, f'only {by_log} of {back} steps back were by the log')
    judged = judge(work, run, seen)
    for end in ends:
        equal(end, judged, 'digest at the end')


def addresses(guest, pattern):
    """Of the guest's instructions that match."""
    text = run_tool('objdump', '-d', os.path.join(BUILD, 'guests', f'{guest}.elf'))[0]
    found = [int(line.split(':')[0], 16) for line in text.splitlines()
             if re.search(pattern, line) and '\t' in line]
    check(found, f'no instruction of {guest} matches {pattern}')
    return found[1:] or found               # the first of many is in the start code


def run_to(vm, remote, where):
    for address in where:
        check(remote(f'Z0,{address:x},1') == b'OK', 'no breakpoint')
    remote.moves('c')
    for address in where:
        remote(f'z0,{address:x},1')
    return position(vm)


def run_into(vm, remote, rng, where, end, then=None):
    """Goes on from a random position to one of the instructions @where, and to one of
    @then."""
    for _ in range(40):
        goto(vm, position=rng.randrange(end // 10, end * 9 // 10))
        there = run_to(vm, remote, where)
        if then and there < end - 500:
            there = run_to(vm, remote, then)
        if there < end - 500:
            return there
    fail('the guest does not come there')


def passes_test(guest, append, pattern, n, after=-3, then=None):
    @limit(200)
    def test(work):
        run = record(work, guest_args(work, guest, append))
        rng = seed()
        where = addresses(guest, pattern)
        with stopped_replay(work, run, 'passes', timeout=300,
                            args=Gdb.args(work, 'passes')) as vm:
            end = end_of(vm)
            w = Walk(vm, rng, end)
            for _ in range(12):
                there = run_into(vm, w.remote, rng, where, end,
                                 then and addresses(guest, then))
                goto(vm, position=there + after)
                start = position(vm)
                for _ in range(2):
                    for _ in range(n):
                        w.step('s')
                        w.note()
                    check(vm.qmp.cmd('query-tt')['logged-steps'] > 0, 'nothing is logged')
                    for _ in range(0, n, 50):       # each a short way, which is logged
                        goto(vm, position=max(start, position(vm) - 50))
                    goto(vm, position=start)
            last = at_end(vm)
        judge_walk(work, run, w, last)
    test.__doc__ = f'Steps over "{pattern}" in guest {guest}, again and again, are exact.'
    return test


test_changed_code = passes_test('smc', 'rounds=100', r'call +\*%edi', 40, after=0)
test_entered_code = passes_test('codebits', 'rounds=3', r'%eax,%cr3$', 12, after=-2,
                                then=r'call +\*%edx')


@limit(120)
def test_barriers(work):
    """Behind what notes do not undo, the log begins anew."""
    rng = seed()
    for guest, append, pattern in (('abits', 'rounds=12', '%cr3$'),
                                   ('debug', 'rounds=20', '%eax,%db7$'),
                                   ('ports', None, r'\tin  |\tout ')):
        run = record(work, guest_args(work, guest, append), name=guest)
        where = addresses(guest, pattern)
        with stopped_replay(work, run, f'{guest}.rep', timeout=100,
                            args=Gdb.args(work, f'{guest}.rep')) as vm:
            remote = Remote(vm)
            end = end_of(vm)
            for _ in range(4):
                there = run_into(vm, remote, rng, where, end)
                goto(vm, position=there - 9)
                while position(vm) < there:
                    remote.moves('s')
                for _ in range(3):
                    remote.moves('s')
                most = position(vm) - there - 1
                logged = vm.qmp.cmd('query-tt')['logged-steps']
                check(logged <= most, f'{guest}: {logged} steps logged {most} positions '
                      'behind a barrier')


@limit(120)
def test_stops_are_the_same(work):
    """Watchpoints and breakpoints stop steps and searches at the same places."""
    run = lines_run(work)
    back, forth = ['reverse-stepi', WHERE], ['stepi', WHERE]
    said = []
    for options in (',step-memory=0', ''):
        vm, gdb = debugged(work, run, f'replay{len(said)}', options=options)
        with vm:
            there = positions(gdb('watch counter', *['continue'] * 3, WHERE))[-1]
            text = ''
            for kind in ('watch', 'rwatch', 'awatch'):
                text += gdb(f'monitor tt goto {there + 12}', FLUSH, f'{kind} counter',
                            *back * 25, *forth * 25, *back * 8, 'reverse-step', WHERE,
                            'reverse-continue', WHERE, 'tbreak *$pc', *forth * 9,
                            'reverse-continue', WHERE, timeout=100)
            said.append([line for line in text.splitlines()
                         if re.match('position|Hardware|Old|New|Value|Temporary', line)])
    equal(said[1], said[0], 'what gdb says')
    check(any('Hardware' in line for line in said[0]), f'nothing stopped it: {said[0]}')


@limit(60)
def test_off(work):
    """step-memory=0: no step is logged; too large a one is refused; a small one holds
    fewer steps than a large one."""
    run = record(work, guest_args(work, 'torture', 'rounds=1 percent=10'))
    held = []
    for size in ('0', '16k', '4M'):
        with stopped_replay(work, run, f'with{size}', options=f',step-memory={size}',
                            args=Gdb.args(work, f'with{size}')) as vm:
            remote = Remote(vm)
            goto(vm, position=end_of(vm) // 2)
            most = 0
            for _ in range(600):
                remote.moves('s')
                most = max(most, vm.qmp.cmd('query-tt')['logged-steps'])
            held.append(most)
    equal(held[0], 0, 'steps in a log of no bytes')
    check(20 < held[1] < held[2], f'steps in logs of 0, 16 KiB, 4 MiB: {held}')
    refused(work, 'large', ['-tt', f'replay,dir={run.dir},step-memory=2G'], 'step-memory')


def memory(vm):
    state = vm.qmp.cmd('query-tt')
    return state['step-memory'], state['logged-steps']


def steps(vm, remote, count):
    for _ in range(count):
        remote.moves('s')
    return vm.qmp.cmd('query-tt')['logged-steps']


def mapped(vm):
    return int(read_bytes(f'/proc/{vm.process.pid}/statm').split()[0]) * PAGE


@limit(100)
def test_switched(work):
    """step-memory is switched while debugging, by the monitor, QMP and gdb: off, what is
    logged is forgotten and its memory free; on, it is filled anew. Steps lead to the same
    states."""
    run = record(work, guest_args(work, 'torture', 'rounds=1 percent=10'))
    with stopped_replay(work, run, options=',step-memory=256M', timeout=90,
                        args=Gdb.args(work, 'rep')) as vm:
        w = Walk(vm, seed(), end_of(vm))
        goto(vm, position=w.end // 2)
        w.note()
        check(steps(vm, w.remote, 100) > 0, 'nothing is logged')
        equal(memory(vm)[0], 256 << 20, 'memory at first')
        was = mapped(vm)
        equal(vm.qmp.hmp('tt set step-memory 0'), '', 'tt set')
        equal(memory(vm), (0, 0), 'memory and steps, off')
        check(mapped(vm) < was - (256 << 20), 'no memory is free')
        equal(steps(vm, w.remote, 100), 0, 'steps in no log')
        for _ in range(100):
            w.step('bs')
        for size in (16 << 10, 4 << 20):
            vm.qmp.cmd('tt-set', **{'step-memory': size})
            equal(memory(vm), (size, 0), 'memory by QMP')
            check(steps(vm, w.remote, 20) > 0, 'nothing is logged again')
        w.note()
        equal(w.remote('qtt.step-memory:64K'), b'OK', 'the packet')
        equal(w.remote('qtt.step-memory'), b'10000', 'what it says')
        equal(memory(vm), (64 << 10, 0), 'memory by gdb')
        for _ in range(130):
            w.step('bs')
        w.note()
        check(w.by_log > 0, 'no step was by the log')
        for error in (vm.qmp.hmp('tt set step-memory 2G'),
                      vm.qmp.hmp('tt set step-memory x'),
                      vm.qmp.error('tt-set', **{'step-memory': 2 << 30}),
                      w.remote('qtt.step-memory:-1').decode()):
            check('takes a size up to 1G' in error, error)
        check('tt set takes' in vm.qmp.hmp('tt set'), 'tt set without a name')
        check('tt set takes' in vm.qmp.hmp('tt set unit 1'), 'tt set of another')
        equal(memory(vm)[0], 64 << 10, 'memory after what was refused')
    judge(work, run, w.seen)


@limit(60)
def test_not_switched_while_running(work):
    """step-memory stays as it is while the VM runs."""
    run = record(work, guest_args(work, 'still64', 'rounds=20000000'))
    with stopped_replay(work, run) as vm:
        for _ in range(20):                 # it may be at the end before the answer
            goto(vm, where='start')
            was = memory(vm)
            vm.qmp.cmd('cont')
            said = vm.qmp.hmp('tt set step-memory 1M')
            if said:
                break
        check('the VM is running' in said, f'it says {said}')
        equal(memory(vm), was, 'memory')
        vm.qmp.cmd('stop')


@limit(60)
def test_switched_by_gdb(work):
    """set tt-step-memory, show tt-step-memory."""
    run = record(work, guest_args(work, 'torture', 'rounds=1 percent=10'))
    with stopped_replay(work, run, args=Gdb.args(work, 'rep')) as vm:
        show = 'show tt-step-memory'
        change = 'set tt-step-memory'
        text = Gdb(vm)(f'source {REPO}/scripts/tt-gdb.py', show, f'{change} 32M', show,
                       f'{change} 2G', show, f'{change} 0', show)
        equal([int(n) for n in re.findall(r'has (\d+) bytes', text)],
              [4 << 20, 32 << 20, 32 << 20, 0], 'what gdb shows')
        check('takes a size up to 1G' in text and 'Traceback' not in text, text)
        equal(memory(vm)[0], 0, 'memory')
    with Vm(work, MACHINE, 'plain', qmp=1) as vm:
        check('there is none' in vm.qmp.error('tt-set', **{'step-memory': 1}), 'no replay')


SYNC = 1 << 23
PAGE = os.sysconf('SC_PAGE_SIZE')


def flushes(work, run):
    """Positions at which guest "abits" flushes the TLB."""
    found, where = [], addresses('abits', r'mov +%eax,%cr3')
    with stopped_replay(work, run, 'flushes', timeout=200,
                        args=Gdb.args(work, 'flushes')) as vm:
        remote = Remote(vm)
        while run_to(vm, remote, where) < end_of(vm):
            found.append(position(vm))
            remote.moves('s')
    check(found, 'no flush')
    return found


def quiet_places(work, run, end):
    """Positions, as (from, to), a bit behind a sync point, and behind 6500 positions in which
    nothing bars the log of steps: no flush, nor an event, as the timer's interrupts are. On a
    busy host these come after few positions."""
    lines = tt('log', run.dir).stdout.splitlines()
    at = sorted([int(line.split()[0]) for line in lines] + flushes(work, run))
    quiet = [(max(before + 6500, sync + 20000), min(event, sync + 24400))
             for sync in range(SYNC, end - 30000, SYNC)
             for before, event in zip(at, at[1:])]
    quiet = [(low, high) for low, high in quiet if low < high]
    check(quiet, f'no place without events in {end} positions')
    return quiet


@limit(200)
def test_long_walk(work):
    """A walk back leaves a near checkpoint in what is logged, goes on behind it, and comes
    back to it: what was put back differs from it."""
    run = record(work, guest_args(work, 'abits', 'rounds=100'))
    rng = seed()
    with stopped_replay(work, run, 'walk', timeout=300, args=Gdb.args(work, 'walk')) as vm:
        end = end_of(vm)
        quiet = quiet_places(work, run, end)
        w = Walk(vm, rng, end)
        for _ in range(3):
            # The last near checkpoint lies an eighth of the way to a sync point before, and
            # before where the walk fills much. (From one on it can fill only that way.)
            place = rng.randrange(*rng.choice(quiet))
            goto(vm, position=place)
            sync = place // SYNC * SYNC
            logged = 0
            for _ in range(5000):
                was = logged
                w.remote.moves('bs')
                logged = vm.qmp.cmd('query-tt')['logged-steps']
                if logged > was + 3000:
                    break
            check(logged > 3000, 'the walk fills little')
            at = position(vm)
            near = at - (at - sync) // 8
            while position(vm) > near - rng.randrange(20, 300):
                w.remote.moves('bs')
            w.note()
            for on in (320, -200, 500, 1000):
                goto(vm, position=position(vm) + on)
                w.note()
        last = at_end(vm)
    judge_walk(work, run, w, last)


@limit(120)
def test_checkpoint_between(work):
    """A goto that only restores a checkpoint ends the log: what led back from another place
    is not put back there."""
    run = record(work, guest_args(work, 'still64', 'rounds=20000000'))
    rng = seed()
    with stopped_replay(work, run, 'walk', timeout=200, args=Gdb.args(work, 'walk')) as vm:
        end = end_of(vm)
        w = Walk(vm, rng, end)
        for part in (4, 6, 8):
            goto(vm, position=part * end // 10)
            point = vm.qmp.cmd('tt-checkpoint-add', timeout=60)['position']
            goto(vm, position=point - rng.randrange(1000, 1000000))
            for _ in range(5):
                w.step('bs')
            w.note()
            check(vm.qmp.cmd('query-tt')['logged-steps'] > 0, 'nothing is logged')
            was = position(vm)
            goto_exact(vm, point)
            equal(vm.qmp.cmd('query-tt')['logged-steps'], 0, 'steps at the checkpoint')
            w.note()
            goto(vm, position=was - 1)
            w.note()
        last = at_end(vm)
    judge_walk(work, run, w, last)


@limit(300)
def test_linux(work):
    """Random steps in a Linux guest are exact."""
    run, _ = record_guest(work)
    walk(work, run, seed(), 4, 25)


@limit(100)
def test_flags_of_sse(work):
    """Who looks at MXCSR gets what SSE's instructions have raised; a step back over the one
    that raised it leads to where nobody had."""
    run = record(work, guest_args(work, 'fp', 'rounds=2000'))
    with stopped_replay(work, run, 'walk', timeout=90, args=Gdb.args(work, 'walk')) as vm:
        end, remote, rng = end_of(vm), Remote(vm), seed()
        seen = {}
        for _ in range(3):
            run_into(vm, remote, rng, addresses('fp', 'ldmxcsr'), end)
            for _ in range(4):
                remote.moves('s')
            where, found = state(vm, remote)
            logged = [vm.qmp.cmd('query-tt')['logged-steps']]
            remote.moves('bs')
            logged.append(vm.qmp.cmd('query-tt')['logged-steps'])
            equal(logged, [3, 3], 'steps in the log, but for the last one')
            equal(position(vm), where - 1, 'a step back')
            seen[where - 1] = state(vm, remote)[1]
            check(seen[where - 1] != found, 'nothing was raised')
        last = at_end(vm)
    equal(last, judge(work, run, seen), 'digest at the end')


def walk_test(guest, append, walks=4, rounds=25, least=0.3):
    def test(work):
        run = record(work, guest_args(work, guest, append))
        walk(work, run, seed(), walks, rounds, least)
    test.__doc__ = f'Random steps in guest {guest} are exact.'
    return limit(300)(test)


for _guest, _append, _least in (
        ('random', 'seed=10 blocks=30', 0.3), ('torture', 'rounds=1 percent=10', 0.3),
        ('abits', None, 0.3), ('codebits', 'rounds=20', 0.3), ('crossing', None, 0.1),
        ('victims', 'rounds=2', 0.1), ('debug', 'rounds=20', 0.1),
        ('exceptions', 'rounds=10', 0.1), ('svm', 'rounds=2000', 0.1), ('smm', None, 0.1),
        ('smc', None, 0.1), ('smp', None, 0.1), ('fp', None, 0.1)):
    globals()['test_' + _guest] = walk_test(_guest, _append, least=_least)
