# SPDX-License-Identifier: GPL-2.0-or-later
"""The stock gdb walks a replay forwards and backwards, exactly."""

import re

from guests import guest_args
from test_robust import read_log, segments, write_log
from ttlib import (BUILD, Gdb, check, digest, digest_at, end_of, equal, fail, goto,
                   goto_exact, limit, record, replayer, run_tool,
                   stopped_replay)


def symbol(guest, name):
    text, _ = run_tool('nm', f'{BUILD}/guests/{guest}.elf')
    found = re.search(rf'^([0-9a-f]+) \w {name}$', text, re.M)
    check(found, f'guest {guest} has no symbol {name}')
    return int(found.group(1), 16)


def debugged(work, run, name='rep', **kw):
    """A stopped replay with a gdbstub; returns (vm, gdb) when entered."""
    vm = replayer(work, run, ['-S', *Gdb.args(work, name)], name, qmp=1, **kw)
    return vm, Gdb(vm)


def positions(text):
    """What each "monitor info tt" in a gdb session said."""
    return [int(n) for n in
            re.findall(r'position\D{0,12}(\d+)', text, re.I)]


WHERE = 'monitor info tt'


@limit(90)
def test_breakpoint_both_ways(work):
    """A breakpoint is met at the same positions going forward and back."""
    run = record(work, guest_args(work, 'exceptions', 'rounds=6'))
    place = symbol('exceptions', 'exc_loop')
    vm, gdb = debugged(work, run)
    with vm:
        there = gdb(f'break *{place:#x}', *(['continue', WHERE] * 4),
                    *(['reverse-continue', WHERE] * 3), 'p/x $pc')
        seen = positions(there)
        equal(len(seen), 7, f'positions in {there}')
        check(seen[0] < seen[1] < seen[2] < seen[3],
              f'forward positions do not grow: {seen}')
        equal(seen[4:], seen[2::-1], 'positions met going backwards')
        check(f'= {place:#x}' in there, f'$pc is elsewhere: {there[-300:]}')
        equal(vm.qmp.cmd('query-tt')['position'], seen[0],
              'position after the session')
        first = digest(vm)
        with stopped_replay(work, run, 'other') as other:
            for position in seen[:4]:
                goto_exact(vm, position)
                equal(digest(vm), digest_at(other, position),
                      f'digest at {position}')
            equal(digest_at(other, seen[0]), first,
                  'digest where gdb had stopped')


@limit(90)
def test_reverse_over_faults(work):
    """Going back over a breakpoint on an instruction that faults each time
    misses no hit: the fault right after a hit does not blind the search."""
    run = record(work, guest_args(work, 'torture', 'rounds=1 percent=30'))
    code, _ = run_tool('objdump', '-d', '--disassemble=torture_faults',
                       f'{BUILD}/guests/torture.elf')
    place = re.search(r'([0-9a-f]+):.*\bud2', code)
    check(place, f'torture_faults has no ud2: {code}')
    vm, gdb = debugged(work, run)
    with vm:
        seen = positions(gdb(f'break *0x{place.group(1)}',
                             *(['continue', WHERE] * 12),
                             *(['reverse-continue', WHERE] * 11)))
        equal(len(seen), 23, 'stops')
        equal(seen[12:], seen[10::-1], 'positions met going backwards')


@limit(90)
def test_reverse_to_the_start(work):
    """reverse-continue without a hit ends at the start, continue at the
    end, and gdb says so."""
    run = record(work, guest_args(work, 'exceptions', 'rounds=2'))
    vm, gdb = debugged(work, run)
    with vm:
        end = end_of(vm)
        text = gdb('continue', WHERE, 'reverse-continue', WHERE)
        equal(positions(text), [end, 0], f'positions in {text}')
        said = re.findall('No more reverse-execution history|'
                          'Reached end of recorded history', text)
        check(len(said) == 2, f'gdb was not told that history ends: {text}')


HISTORY_ENDS = ('No more reverse-execution history|Reached end of recorded history|'
                'Reached beginning of recorded history|to the beginning')


def behind_damage(work, run, name):
    """Damages the log in its middle. Where does a replay come to it, and where is
    the first checkpoint after that from which it can go on?"""
    log = read_log(run.dir)
    places = segments(log)
    broken = bytearray(log)
    broken[places[len(places) // 2] + 100] ^= 4
    write_log(run.dir, broken)
    with stopped_replay(work, run, name) as vm:
        points = [c['position'] for c in vm.qmp.cmd('query-tt-checkpoints')]
        vm.qmp.cmd('cont')
        stop = vm.qmp.event('TT_STOPPED', 30)
        equal(stop['reason'], 'damaged', 'what is in the way')
        for point in points:
            if point > stop['position'] and \
                    goto(vm, position=point + 1)['reason'] == 'target':
                return stop['position'], point
    return fail(f'no checkpoint behind the damage at {stop}: {points}')


@limit(120)
def test_behind_damage(work):
    """On both sides of what cannot be read of the log, gdb is told that history ends
    there, and the VM stands as near to it as it can."""
    run = record(work, guest_args(work, 'codebits', 'rounds=3000'),
                 options=',checkpoint-interval=0.05', timeout=60)
    damage, behind = behind_damage(work, run, 'look')
    vm, gdb = debugged(work, run)
    with vm:
        goto_exact(vm, behind + 1)
        text = gdb('reverse-stepi', WHERE, 'reverse-stepi', WHERE,
                   'stepi', 'stepi', WHERE, 'break *0x7000', 'reverse-continue', WHERE)
        equal(positions(text), [behind, behind, behind + 2, behind],
              f'positions behind the damage: {text}')
        equal(len(re.findall(HISTORY_ENDS, text)), 2, f'ends of history in {text}')
        here = digest(vm)
        goto_exact(vm, damage - 1)
        text = gdb('continue', WHERE, 'reverse-stepi', WHERE)
        equal(positions(text), [damage, damage - 1], f'before the damage: {text}')
        equal(len(re.findall(HISTORY_ENDS, text)), 1, f'end of history in {text}')
        equal(digest_at(vm, behind), here, 'digest behind the damage')


def step_check(work, vm, gdb, run, start, steps):
    """stepi and reverse-stepi from start move by one position each."""
    goto_exact(vm, start)
    forward = gdb(*(['stepi', WHERE] * steps))
    equal(positions(forward), [start + i + 1 for i in range(steps)],
          'positions of stepi')
    after = digest(vm)
    back = gdb(*(['reverse-stepi', WHERE] * steps))
    equal(positions(back), [start + steps - i - 1 for i in range(steps)],
          'positions of reverse-stepi')
    before = digest(vm)
    with stopped_replay(work, run, f'other{start}') as other:
        equal(digest_at(other, start + steps), after, 'digest after stepi')
        equal(digest_at(other, start), before,
              'digest after reverse-stepi')


@limit(120)
def test_steps_through_faults(work):
    """stepi and reverse-stepi count faults and interrupts as one step."""
    run = record(work, guest_args(work, 'exceptions', 'rounds=6'))
    vm, gdb = debugged(work, run)
    with vm:
        text = gdb(f'break *{symbol("exceptions", "exc_loop"):#x}',
                   'continue', 'continue', WHERE)
        step_check(work, vm, gdb, run, positions(text)[-1], 40)


@limit(120)
def test_steps_over_rep(work):
    """A string instruction is one step, also with a fault inside."""
    run = record(work, guest_args(work, 'torture', 'rounds=1 percent=5'))
    vm, gdb = debugged(work, run)
    with vm:
        place = symbol('torture', 'on_string_fault')
        text = gdb(f'break *{place:#x}', 'continue', 'continue', WHERE)
        found = positions(text)[-1]
        step_check(work, vm, gdb, run, found - 30, 60)


@limit(90)
def test_step_over_halt(work):
    """Stepping over HLT and the interrupt that ends it, both ways."""
    run = record(work, guest_args(work, 'hlt', 'rounds=4'))
    vm, gdb = debugged(work, run)
    with vm:
        text = gdb(f'break *{symbol("hlt", "on_timer"):#x}', 'continue',
                   'continue', 'continue', WHERE)
        step_check(work, vm, gdb, run, positions(text)[-1] - 60, 60)


@limit(90)
def test_two_sessions(work):
    """A second gdb finds the VM where the first left it, with none of the
    first one's breakpoints, and the replay is exact to the end."""
    run = record(work, guest_args(work, 'exceptions', 'rounds=3'))
    place = symbol('exceptions', 'exc_loop')
    vm, gdb = debugged(work, run)
    with vm:
        first = gdb(f'break *{place:#x}', 'continue', 'continue', WHERE)
        second = gdb(WHERE, 'p/x $pc')
        equal(positions(second), positions(first), 'position of session 2')
        check(f'= {place:#x}' in second, f'$pc in session 2: {second}')
        vm.qmp.events.clear()
        vm.qmp.cmd('cont')
        event = vm.qmp.event('TT_STOPPED', 30)
        equal(event['reason'], 'end', 'where the replay stopped')
        equal(vm.serial, run.serial, 'console after the debugging')


@limit(60)
def test_memory_and_registers(work):
    """gdb reads the memory and the registers of the place, and its writes
    do not change history."""
    run = record(work, guest_args(work, 'exceptions', 'rounds=2'))
    place = symbol('exceptions', 'exc_counts')
    code = symbol('exceptions', 'exc_loop')
    vm, gdb = debugged(work, run)
    with vm:
        values = gdb.values(f'break *{code:#x}', 'continue', 'continue',
                            f'p/x *(unsigned *){place}', 'p/x $sp')
        line = vm.qmp.hmp(f'xp /1wx {place}')
        check(f'{values[0]:08x}' in line, f'{values[0]:#x} is not in {line}')
        registers = vm.qmp.hmp('info registers')
        check(f'{values[1]:08x}' in registers.lower(),
              f'$sp {values[1]:#x} is not in {registers}')
        before = digest(vm)
        gdb(f'set {{int}}{place} = 0x12345678')
        gdb('set $rax = 0x12345678')
        position = before[0]
        equal(vm.qmp.cmd('query-tt')['position'], position,
              'position after refused writes')
        goto_exact(vm, position - 1)
        goto_exact(vm, position)
        equal(digest(vm), before, 'digest after refused writes')
        vm.qmp.cmd('tt-goto', 60, where='end')
        check(not vm.qmp.cmd('query-tt')['diverged'],
              'a write by gdb changed history')


@limit(90)
def test_monitor_goto_in_gdb(work):
    """"monitor tt goto" moves under a running gdb session."""
    run = record(work, guest_args(work, 'exceptions', 'rounds=3'))
    place = symbol('exceptions', 'exc_loop')
    vm, gdb = debugged(work, run)
    with vm:
        text = gdb(f'break *{place:#x}', 'continue', 'continue', WHERE,
                   'monitor tt goto start', 'maint flush register-cache',
                   WHERE, 'continue', WHERE, 'continue', WHERE)
        seen = positions(text)
        equal(len(seen), 4, f'positions in {text}')
        equal(seen[1], 0, 'position after tt goto start')
        check(0 < seen[2] < seen[3], f'positions: {seen}')
        equal(seen[3], seen[0], 'the second hit, met again')


@limit(90)
def test_breakpoint_where_the_guest_has_one(work):
    """The guest's debug register has gdb's address: gdb stops before the guest's trap,
    and again after it, where the resume flag is set."""
    run = record(work, guest_args(work, 'debug', 'rounds=2 parts=8 quiet=1'))
    look = ['p $eflags & 0x10000', WHERE]
    vm, gdb = debugged(work, run)
    with vm:
        text = gdb(f'break *{symbol("debug", "debug_here"):#x}',
                   *(['continue', *look] * 4), *(['reverse-continue', *look] * 2))
        flags = [int(n) for n in re.findall(r'^\$\d+ = (\d+)$', text, re.M)]
        equal(flags, [0, 0x10000, 0, 0x10000, 0, 0x10000], f'resume flags: {text}')
        seen = positions(text)
        equal(seen[4:], [seen[2], seen[1]], 'positions met going backwards')


@limit(90)
def test_breakpoints_do_not_disturb(work):
    """A replay that stops at hundreds of breakpoint hits stays exact."""
    run = record(work, guest_args(work, 'torture', 'rounds=1 percent=5'))
    place = symbol('torture', 'on_timer')
    vm, gdb = debugged(work, run)
    with vm:
        text = gdb(f'break *{place:#x}', 'ignore 1 100', 'continue', WHERE,
                   'delete', f'hbreak *{symbol("torture", "torture_pf"):#x}',
                   'continue', 'continue', WHERE, 'delete', 'continue')
        check(len(positions(text)) == 2, f'gdb session: {text}')
        state = vm.qmp.cmd('query-tt')
        equal((state['position'], state['diverged']), (end_of(vm), False),
              'after the last continue')
        equal(vm.serial, run.serial, 'console')


@limit(90)
def test_huge_watchpoint(work):
    """A watchpoint on 4 GiB, which each access hits, does not slow tt goto."""
    run = record(work, guest_args(work, 'torture', 'rounds=1 percent=30'))
    vm, gdb = debugged(work, run)
    with vm:
        end = end_of(vm)
        began = vm.cpu_seconds()
        gdb('monitor tt goto end', 'monitor tt goto start')
        plain = vm.cpu_seconds() - began
        text = gdb('maint packet Z2,0,100000000', 'monitor tt goto end', WHERE,
                   'monitor tt goto 1000', WHERE)
        watched = vm.cpu_seconds() - began - plain
        check('received: "OK"' in text, f'no watchpoint: {text}')
        equal(positions(text), [end, 1000], 'positions')
        check(watched < 3 * plain + 3, f'{watched:.1f} s of CPU time with the '
                                       f'watchpoint, {plain:.1f} s without')


@limit(90)
def test_watchpoint_after_travel(work):
    """A watchpoint that a movement passed blindly counts again after it."""
    run = record(work, guest_args(work, 'exceptions', 'rounds=6'))
    place = symbol('exceptions', 'exc_counts')
    vm, gdb = debugged(work, run)
    with vm:
        back = ('monitor tt goto start', 'maint flush register-cache')
        text = gdb(f'watch *(unsigned *){place}', 'continue', WHERE,
                   'continue', WHERE, *back, 'continue', WHERE,
                   'continue', WHERE, 'monitor tt goto +1',
                   'maint flush register-cache', 'continue', WHERE)
        seen = [int(n) for n in re.findall(r'^position (\d+)', text, re.M)]
        equal(len(seen), 5, f'positions in {text}')
        equal(seen[2:], [0, *seen[:2]], 'hits after going back')


def changes(text):
    """(old, new, pc, position) of each stop at a watchpoint."""
    return [tuple(int(n, 0) for n in found) for found in re.findall(
        r'Old value = (\d+)\s+New value = (\d+)[^$]*?\$\d+ = (0x[0-9a-f]+)'
        r'[^$]*?position\D{0,12}(\d+)', text)]


@limit(120)
def test_reverse_watchpoint(work):
    """A watchpoint met going back names itself, with the old and the new
    value, and stops at the instruction that writes; the positions are one
    before those where it stops going forward."""
    run = record(work, guest_args(work, 'hlt', 'rounds=8'))
    place = symbol('hlt', 'rt_ticks')
    look = ['p/x $pc', WHERE]
    vm, gdb = debugged(work, run)
    with vm:
        text = gdb(f'watch *(unsigned int *){place:#x}',
                   *(['continue', *look] * 5),
                   *(['reverse-continue', *look] * 4),
                   *(['continue', *look] * 2))
        seen = changes(text)
        equal(len(seen), 11, f'stops in {text}')
        there, back, again = seen[:5], seen[5:9], seen[9:]
        equal([n for _, n, _, _ in there], [1, 2, 3, 4, 5], 'values forward')
        equal([(old, new) for old, new, _, _ in back],
              [(5, 4), (4, 3), (3, 2), (2, 1)], 'values going back')
        equal([p for _, _, _, p in back],
              [p - 1 for _, _, _, p in there[:0:-1]], 'positions going back')
        equal(again, there[1:3], 'stops going forward again')
        code = gdb(f'x/i {back[0][2]:#x}')
        check(re.search(r'(add|inc|mov).*(0x[0-9a-f]*3004|%e|%r)', code),
              f'no write at the stop: {code}')
        goto_exact(vm, back[-1][3])
        here = digest(vm)
        with stopped_replay(work, run, 'other') as other:
            equal(digest_at(other, back[-1][3]), here, 'digest before a write')


@limit(90)
def test_reverse_read_watchpoint(work):
    """rwatch and awatch stop going back as well."""
    run = record(work, guest_args(work, 'hlt', 'rounds=5'))
    place = symbol('hlt', 'rt_ticks')
    vm, gdb = debugged(work, run)
    with vm:
        for kind, said in (('rwatch', 'read watchpoint'),
                           ('awatch', 'access (read/write) watchpoint')):
            text = gdb('monitor tt goto end',
                       'maintenance flush register-cache',
                       f'{kind} *(unsigned int *){place:#x}',
                       *(['reverse-continue', WHERE] * 3))
            seen = positions(text)
            check(text.count(f'Hardware {said}') >= 4,
                  f'{kind} was not named at each stop: {text}')
            equal(seen, sorted(set(seen), reverse=True),
                  f'positions of {kind} going back')
