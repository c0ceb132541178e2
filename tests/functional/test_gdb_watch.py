# SPDX-License-Identifier: GPL-2.0-or-later
"""What gdb believes of a watched variable stays right, whoever moves the VM.

gdb passes a hit of "watch" over where it reads the value that it saw last."""

import json
import re

from guests import guest_args
from test_full import address_in
from test_gdb_lines import (Packets, address, debugged, is_end, lines_run,
                            positions)
from ttlib import (Gdb, check, digest, digest_at, equal, goto, limit, qemu_binary, record,
                   stopped_replay, tt)

WHERE = 'monitor info tt'
FLUSH = 'maintenance flush register-cache'


def changes(text):
    """(old, new, position) of each stop at a watchpoint that shows both."""
    return [tuple(int(n) for n in found) for found in re.findall(
        r'Old value = (\d+)\s+New value = (\d+)[^$]*?^position (\d+)', text,
        re.M)]


@limit(90)
def test_step_back_over_a_write(work):
    """reverse-stepi over a write says what it undid, and the next hit is not
    passed over."""
    run = lines_run(work)
    vm, gdb = debugged(work, run)
    with vm:
        text = gdb('watch counter', *(['continue', WHERE] * 3),
                   'reverse-stepi', WHERE, 'continue', WHERE,
                   'reverse-stepi', WHERE, 'reverse-stepi', WHERE,
                   'continue', WHERE)
        seen = changes(text)
        equal([c[:2] for c in seen],
              [(0, 1), (1, 2), (2, 3), (3, 2), (2, 3), (3, 2), (2, 3)],
              'values')
        there = seen[2][2]
        equal([c[2] for c in seen[2:]],
              [there, there - 1, there, there - 1, there], 'positions')
        equal(len(positions(text)), 8, 'stops')
        with stopped_replay(work, run, 'other') as other:
            equal(digest_at(other, there), digest(vm), 'digest')


@limit(90)
def test_step_back_over_a_read(work):
    """rwatch and awatch are named by a step back over an access, and only
    there."""
    run = lines_run(work)
    vm, gdb = debugged(work, run)
    with vm:
        for kind in ('rwatch', 'awatch'):
            text = gdb(f'{kind} rare', 'tbreak power_off', 'continue')
            check('Temporary' in text, f'rare is read before the end? {text}')
            text = gdb('tbreak leaf', 'reverse-continue', f'{kind} counter',
                       'continue', WHERE, 'reverse-stepi', WHERE,
                       'reverse-stepi', WHERE, 'stepi', WHERE)
            stops = re.split(r'^position (\d+).*$', text, flags=re.M)
            place = int(stops[1])
            equal([int(p) for p in stops[1::2]],
                  [place, place - 1, place - 2, place - 1], f'{kind}: where')
            equal(['Hardware' in said and 'atchpoint 2: counter' in said
                   for said in [stops[0].split('tbreak')[-1], *stops[2:8:2]]],
                  [True, True, False, False], f'{kind}: {text}')


@limit(90)
def test_line_back_over_a_write(work):
    """reverse-step and reverse-next stop where the line changes what is
    watched, as step and next do."""
    run = lines_run(work)
    vm, gdb = debugged(work, run)
    with vm:
        for command in ('next', 'step'):
            text = gdb('tbreak leaf', 'continue', 'next', WHERE,
                       'watch counter', f'reverse-{command}', WHERE, 'delete',
                       f'reverse-{command}', WHERE, 'p counter')
            check('Hardware watchpoint 2: counter' in text,
                  f'reverse-{command} passed the write: {text}')
            after, write, before = positions(text)[-3:]
            check(before < write < after, f'positions {positions(text)}')


@limit(90)
def test_moved_by_the_monitor(work):
    """After "monitor tt goto" gdb shows once what changed behind its back, and
    misses no hit; where nothing changed it says nothing."""
    run = lines_run(work)
    vm, gdb = debugged(work, run)
    with vm:
        there = changes(gdb('watch counter', *(['continue', WHERE] * 6)))
        equal([c[:2] for c in there], [(n, n + 1) for n in range(6)],
              'values forward')
        at = [c[2] for c in there]
        vm.qmp.cmd('tt-goto', 60, position=0)
        text = gdb('watch counter', *(['continue', WHERE] * 3),
                   f'monitor tt goto {at[1] + 5}', FLUSH,
                   'continue', WHERE, 'continue', WHERE,
                   f'monitor tt goto {at[2] + 1}', FLUSH, 'continue', WHERE,
                   f'monitor tt goto {at[5] + 3}', FLUSH,
                   'reverse-continue', WHERE, 'reverse-continue', WHERE)
        equal(changes(text)[3:],
              [(3, 2, at[1] + 5), (2, 3, at[2]), (3, 4, at[3]),
               (4, 6, at[5] + 3), (6, 5, at[5] - 1)], 'after the monitor')
        text = gdb('monitor tt goto start', FLUSH, 'watch counter',
                   'watch total', f'monitor tt goto {at[4]}', FLUSH, 'stepi',
                   WHERE, 'continue', WHERE, 'continue', WHERE)
        seen = changes(text)
        equal(sorted(seen[:2]), [(0, 5, at[4] + 1), (0, 18, at[4] + 1)],
              'a step after the monitor, and what is left to say')
        check(seen[2][2] > at[4] + 1, f'the third stop: {seen}')


@limit(90)
def test_moved_by_qmp(work):
    """The same when QMP moved the VM while gdb stood; a gdb that comes later
    believes nothing."""
    run = lines_run(work)
    vm, _ = debugged(work, run)
    with vm:
        gdb = Packets(vm.socket_path('gdb'))
        watch = f'{address("counter"):x},8'
        equal(gdb(f'Z2,{watch}'), 'OK', 'a watchpoint')
        first = gdb('vCont;c')
        check('watch:' in first, f'the first hit: {first}')
        place = vm.qmp.cmd('query-tt')['position']
        check('watch:' in gdb('vCont;c'), 'the second hit')
        vm.qmp.cmd('tt-goto', 60, position=place)
        reply = gdb('vCont;c')
        check('watch:' in reply, f'after the move: {reply}')
        equal(vm.qmp.cmd('query-tt')['position'], place, 'nothing ran')
        gdb('vCont;c')
        check(vm.qmp.cmd('query-tt')['position'] > place, 'nothing ran')
        gdb(f'z2,{watch}')
        vm.qmp.cmd('tt-goto', 60, position=place + 1)
        gdb('vCont;s')
        vm.qmp.cmd('query-tt')
        equal(gdb(f'Z2,{watch}'), 'OK', 'one that is set after the move')
        gdb('vCont;c')
        check(vm.qmp.cmd('query-tt')['position'] > place + 2,
              'what is new was called changed')
        vm.qmp.cmd('tt-goto', 60, position=place)
        gdb.close()
        gdb = Packets(vm.socket_path('gdb'))
        equal(gdb(f'Z2,{watch}'), 'OK', 'a watchpoint')
        gdb('vCont;c')
        check(vm.qmp.cmd('query-tt')['position'] > place,
              'a new gdb was told of a move')


@limit(100)
def test_what_the_guest_watches(work):
    """A word that the guest's own debug registers watch: gdb and a search stop behind the
    guest's trap, which is not lost. (It was, and the replay diverged.)"""
    run = record(work, guest_args(work, 'debug', 'rounds=2 parts=33 quiet=1'))
    at = address_in('debug', 'watched')
    found = json.loads(tt('find', run.dir, f'*(u32 *){at:#x}', '--changes', '--all', '--json',
                          '--qemu', qemu_binary()).stdout)
    places = [f['position'] for f in found['found']]
    check(found['complete'] and len(places) > 20, f'{found}')
    with stopped_replay(work, run, args=Gdb.args(work, 'rep')) as vm:
        def value_at(position):
            goto(vm, position=position)
            return int(vm.qmp.hmp(f'xp /1xw {at:#x}').split()[-1], 16)
        for one in found['found'][::5]:
            # No place is between the write and its trap.
            check(value_at(one['position'] - 2) != value_at(one['position']), f'{one}')
            equal(value_at(one['position']), int(one['value'], 16), f'value of {one}')
        goto(vm, where='start')
        text = Gdb(vm)(f'watch *(unsigned *){at:#x}', *['continue', WHERE] * 3, 'delete',
                       'continue')
        equal(positions(text)[:3], places[:3], 'the first stops')
        check(is_end(text), text[-300:])
