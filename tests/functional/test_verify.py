# SPDX-License-Identifier: GPL-2.0-or-later
"""A recording can be trusted: what was changed in it, or left out, is found and
named by tt check and tt verify."""

import glob
import json
import os
import re
import shutil
import struct
import subprocess
import time

from guests import guest_args, own_args
from test_branch import brancher, record_with_full
from test_flight import several_parts
from test_full import add_full
from test_stored import copy_of
from ttlib import (BUILD, Gdb, check, check_exact, edit_manifest, ends_behind_checkpoints,
                   equal, goto, limit,
                   one_sentence, qemu_binary, read_bytes, record, recorder,
                   replay, replayer, run_tool, seed, stopped_replay, tool, tt,
                   wait_until)

OFTEN = ',checkpoint-interval=0.02'
ROUNDS = 'rounds=1500'


def verify(run, *args, rc=0):
    return tt('verify', run, '--qemu', qemu_binary(), *args, rc=rc)


def found(run, rc=3):
    answer = json.loads(verify(run, '--json', rc=rc).stdout)
    equal(answer['exact'], rc != 3, f'{answer}')
    return answer


def checkpoints(run):
    """(position, host time) are in the journal's records: see the format."""
    data = read_bytes(os.path.join(run, 'checkpoints'))
    at, places = struct.unpack_from('<I', data, 8)[0], []
    while at < len(data):
        length, kind = struct.unpack_from('<II', data, at + 8)
        if kind == 1:
            places.append(struct.unpack_from('<Q', data, at + 32)[0])
        at += length + sum(struct.unpack_from('<II', data, at + 52))
    return sorted(places)


def with_checkpoints(work):
    """A run of some length that has several."""
    with recorder(work, guest_args(work, 'dmacode', 'rounds=100000000'),
                  options=OFTEN, qmp=1) as vm:
        wait_until(lambda: len(vm.qmp.cmd('query-tt-checkpoints')) >= 6 and
                   vm.qmp.cmd('query-tt')['position'] > 40000000, 'six checkpoints')
        wait_until(lambda: ends_behind_checkpoints(vm), 'an end that is no checkpoint')
        vm.qmp.send('quit')
        vm.wait(0)
    return vm


@limit(120)
def test_a_good_run(work):
    """A run verifies, however many processes do it, also one without
    checkpoints and one that was cut off; its pack, too."""
    vm = with_checkpoints(work)
    n = len(checkpoints(vm.run))
    check(n >= 4, f'{n} checkpoints')
    for jobs in (1, 2, 5):
        answer = json.loads(verify(vm.run, f'-j{jobs}', '--json').stdout)
        check(answer['exact'] and answer['complete'], f'{answer}')
        equal(answer['intervals'], n, f'intervals with -j{jobs}')
    bare = copy_of(vm.run, os.path.join(work, 'bare.run'),
                   ('pages', 'checkpoints'))
    equal(found(bare, rc=0)['intervals'], 1, 'intervals without checkpoints')
    cut = copy_of(vm.run, os.path.join(work, 'cut.run'))
    log = os.path.join(cut, 'log')
    segments = [m.start() for m in re.finditer(b'TTVMSEG\n', read_bytes(log))]
    os.truncate(log, segments[len(segments) * 3 // 4] + 100)
    check(found(cut, rc=0)['complete'], 'a run that was cut off')
    pack, back = os.path.join(work, 'p.ttrun'), os.path.join(work, 'back.run')
    tt('pack', vm.run, pack)
    tt('unpack', pack, back)
    tt('check', back)
    equal(found(back, rc=0)['intervals'], n, 'intervals of the pack')
    check_exact(work, back, serial_wanted=vm.serial)


@limit(120)
def test_unlogged_dma(work):
    """A device's write to RAM that is not in the log is found, wherever it is;
    what nobody reads, as the page that differs at the next checkpoint."""
    n_found = pages = 0
    for number in (100, 150, 1001, 6002):
        run = record(work, guest_args(work, 'dmacode', ROUNDS),
                     name=f'hole{number}', options=OFTEN +
                     f',x-unlogged={number}')
        tt('check', run.dir)
        answer = json.loads(verify(run.dir, '--json', rc=None).stdout)
        if answer['exact']:         # it wrote what was there already: see the
            continue                # digest of all RAM at the end
        n_found += 1
        first, last = answer['first_wrong']
        places = checkpoints(run.dir)
        check(first in places and last >= first, f'{answer}')
        equal(answer['second']['replay'], 'alike', f'{answer}')
        text = ' '.join(answer['found'])
        check('but not at' in text or 'page ' in text, text)
        if 'an input is missing' in text:
            pages += 1
            check(re.search(r'block \S+ offset 0x[0-9a-f]+ recorded', text), text)
        shutil.rmtree(run.dir)
    check(n_found >= 2, f'only {n_found} of 4 holes made a difference')
    print(f'{n_found} of 4 holes made a difference, {pages} of them in a page')


def flip(path, at):
    data = bytearray(read_bytes(path))
    data[at] ^= 1 << at % 8
    with open(path, 'wb') as out:
        out.write(data)


def places_in(run, rng):
    """(file, byte) for each kind of place in a run, as its formats say."""
    log = read_bytes(os.path.join(run, 'log'))
    pages = read_bytes(os.path.join(run, 'pages'))
    points = read_bytes(os.path.join(run, 'checkpoints'))
    segments = [m.start() for m in re.finditer(b'TTVMSEG\n', log)]
    groups = [m.start() for m in re.finditer(b'TTVMGRP\n', pages)]
    records = [m.start() for m in re.finditer(b'TTVMREC\n', points)]
    middle = [seg for seg in segments[1:-1]] or segments
    for _ in range(6):
        yield 'log', rng.choice(middle) + rng.randrange(96, 200)
    yield 'log', rng.choice(segments) + rng.randrange(8, 88)
    yield 'log', rng.randrange(64)
    for _ in range(4):
        group = rng.choice(groups)
        count, stored = struct.unpack_from('<II', pages, group + 32)
        data = group + 64 + 18 * count
        # In the second half of a page: in its frame, or in what it holds.
        yield 'pages', data + rng.randrange(stored // 2, stored)
    yield 'pages', rng.choice(groups) + rng.randrange(64, 64 + 18)
    yield 'pages', rng.choice(groups[:-1] or groups) + rng.randrange(56)
    yield 'pages', rng.randrange(64)
    for _ in range(3):
        yield 'checkpoints', rng.choice(records) + 88 + rng.randrange(40)
    yield 'checkpoints', rng.choice(records[1:] or records) + rng.randrange(8, 88)
    yield 'checkpoints', rng.randrange(64)


@limit(240)
def test_planted_corruptions(work):
    """Each flipped bit of log, pages and checkpoints is found by tt check, and
    named at its file; tt info, tt verify and tt pack notice, too; nothing
    crashes."""
    run = record(work, guest_args(work, 'dmacode', 'rounds=3000'),
                 options=OFTEN)
    tt('check', run.dir)
    rng = seed()
    harmless = n_packed = 0
    for number, (name, at) in enumerate(places_in(run.dir, rng)):
        copy = copy_of(run.dir, os.path.join(work, f'harmed{number}.run'))
        flip(os.path.join(copy, name), at)
        done = subprocess.run([tool('tt'), 'check', '--json', copy],
                              capture_output=True, text=True, timeout=60)
        if done.returncode == 0 and name == 'pages':
            harmless += 1           # a bit of a frame that means nothing
            verify(copy, '-j2')
            shutil.rmtree(copy)
            continue
        equal(done.returncode, 1, f'tt check with byte {at} of {name} flipped')
        said = done.stdout + done.stderr
        check(name in said or (name == 'checkpoints' and 'manifest' in said),
              f'byte {at} of {name}: {said}')
        packed = tt('pack', copy, copy + '.ttrun', rc=1)
        check(('as it is' in packed.stderr) == os.path.exists(copy + '.ttrun'),
              f'byte {at} of {name}: {packed.stderr}')
        n_packed += os.path.exists(copy + '.ttrun')
        if name != 'log' and number % 4 == 0:
            answer = verify(copy, '--json', rc=None)
            check(answer.returncode in (0, 1), f'{answer}')
        shutil.rmtree(copy)
    check(number + 1 >= 20 and harmless < 3, f'{harmless} of {number + 1} flips '
          'were harmless')
    check(n_packed > 3, f'{n_packed} were packed')
    print(f'{number + 1} corruptions, {harmless} harmless, {n_packed} packed')


def damaged(run, *words, args=()):
    """tt verify calls it damage, with these words, and nothing else."""
    done = verify(run, '--json', *args, rc=1)
    answer = json.loads(done.stdout)
    check(not answer['complete'] and 'second' not in answer and
          'first_wrong' not in answer, f'{answer}')
    said = '\n'.join(answer['damaged'])
    for word in words:
        check(word in said, f'{word}: {answer}')
    text = verify(run, *args, rc=1).stdout
    check('is damaged, or a part of it is missing (see also tt check' in text and
          'does not replay exactly' not in text and
          'determin' not in text and
          'replays exactly' not in text, text)
    equal('Nothing of the run could be verified' in text,
          answer['intervals'] == 0, text)
    equal(answer['exact'], answer['intervals'] > 0, f'{answer}')
    return answer['intervals']


@limit(200)
def test_damage_is_no_divergence(work):
    """Where the log cannot be read nothing is said of the replay: the status is
    that of damage, and what lies before and after it is verified."""
    run = with_checkpoints(work).run
    whole = found(run, rc=0)
    equal(whole['damaged'], [], 'a good run')
    n = whole['intervals']
    log = read_bytes(os.path.join(run, 'log'))
    segments = [m.start() for m in re.finditer(b'TTVMSEG\n', log)]
    check(n >= 4 and len(segments) >= 3, f'{n} intervals, {len(segments)} segments')
    for number, at in enumerate((segments[0] + 120, segments[1] + 120,
                                 min(segments[-1] + 120, len(log) - 9),
                                 len(log) - 5)):
        copy = copy_of(run, os.path.join(work, f'harmed{number}.run'))
        flip(os.path.join(copy, 'log'), at)
        counts = [damaged(copy, 'log, byte', 'is damaged', args=jobs)
                  for jobs in (['-j1'], ['-j2'])]
        equal(counts[0], counts[1], 'intervals with one process and with two')
        check(counts[0] < n and (counts[0] > 0 or number < 2),
              f'{counts[0]} of {n} intervals with byte {at} flipped')
        if number:
            with replayer(work, copy, options=',verify=all', name='q') as vm:
                vm.wait(1)
            said = str(vm.stdout)
            check('how=damaged' in said and 'end code=1' in said and
                  'how=diverged' not in said, said)


def first_damaged(run, at):
    """The position from which on the log is damaged with the byte at @at flipped."""
    flip(os.path.join(run, 'log'), at)
    said = tt('check', run, rc=1).stderr
    flip(os.path.join(run, 'log'), at)
    return int(re.search(r'first damaged segment is \d+, at position (\d+);', said).group(1))


def has_digest(run, position):
    """Is one of this position in a segment that has ended? QEMU still records."""
    return subprocess.run([tool('tt'), 'log', run, '--from', str(position), '--kind',
                           'digest'], capture_output=True, check=False).stdout


def n_segments(log):
    return read_bytes(log).count(b'TTVMSEG\n') if os.path.exists(log) else 0


@limit(60)
def test_damage_where_a_checkpoint_stands(work):
    """The log cannot be read from where one of the checkpoints is: that is one
    interval, and those after it are verified."""
    with recorder(work, guest_args(work, 'abits', 'rounds=1000000'), qmp=1,
                  options=',checkpoint-interval=1000') as vm:
        pages, middle = os.path.join(vm.run, 'pages'), [0]
        log = os.path.join(vm.run, 'log')
        for _ in range(3):
            n = n_segments(log)         # so that there are some before each
            wait_until(lambda: n_segments(log) > n + 2, 'the log grows')
            vm.qmp.cmd('stop')
            last = vm.qmp.cmd('query-tt-digest')['position']
            wait_until(lambda: has_digest(vm.run, last), "the log's segment ends")
            size = os.path.getsize(pages)
            check('kept' in vm.qmp.hmp('tt checkpoint add'), 'added')
            middle.append((size + os.path.getsize(pages)) // 2)
            vm.qmp.cmd('cont')
        vm.qmp.send('quit')
        vm.wait(0)
    n = len(checkpoints(vm.run))
    data = read_bytes(os.path.join(vm.run, 'log'))
    segments = [m.start() for m in re.finditer(b'TTVMSEG\n', data)]
    inside = [end - 9 for end in segments[1:] + [len(data)]]     # however short it is
    places = {first_damaged(vm.run, at): at for at in inside[1:]}
    common = [p for p in checkpoints(vm.run)[1:-1] if p in places]
    check(common, f'{places}, {checkpoints(vm.run)}')
    both = 0
    for position in common:
        copy = copy_of(vm.run, os.path.join(work, f'harmed{position}.run'))
        flip(os.path.join(copy, 'log'), places[position])
        left = [damaged(copy, 'log, byte', args=[jobs]) for jobs in ('-j1', '-j2')]
        equal(left[0], left[1], 'intervals with one process and with two')
        check(n - 2 <= left[0] < n, f'{left} of {n}')   # it may begin with events there
        at_the_border(work, copy, position)
        if places[position] == segments[1] + 120:
            continue                    # no segment before it to damage, too
        both += 1
        # Nor can the checkpoint be used, or the log before it be read.
        check(places[position] != inside[1], 'a second flip would mend it')
        flip(os.path.join(copy, 'log'), inside[1])
        flip(os.path.join(copy, 'pages'), middle[checkpoints(vm.run).index(position)])
        damaged(copy, 'log, byte', args=['-j2'])
        comes_to_nothing(work, copy, position)
    check(both, f'{places}, {segments}')


def at_the_border(work, run, position):
    """What lies after the next checkpoint can be reached from there, too."""
    behind = next(p for p in checkpoints(run) if p > position)
    with stopped_replay(work, run, f'b{position}') as vm:
        for target in (behind + 1, position + 9, behind + 1, position + 9):
            answer = vm.qmp.cmd('tt-goto', 60, position=target)
            equal((answer['reason'], answer['position']),
                  ('target', target) if target > behind else ('damaged', position),
                  f'going to {target}')
        said = vm.qmp.error('tt-goto', position=position + 5)
        check(f', and from {behind} on, can be reached' in said, said)
        goto(vm, where='end')
        vm.qmp.send('quit')
        vm.wait(0)


def comes_to_nothing(work, run, position):
    with replayer(work, run, options=f',verify={position}-', name=f'v{position}') as vm:
        vm.wait(1)
    check('end code=1' in str(vm.stdout) and 'cannot be used' in vm.stderr, vm.stderr)


@limit(120)
def test_lost_checkpoints(work):
    """What is verified without checkpoints that are damaged is not all: it is
    said, and the status is that of damage."""
    run = with_checkpoints(work).run
    n = found(run, rc=0)['intervals']
    check(n >= 2, f'{n} intervals')
    for number, (name, at, left) in enumerate((
            ('checkpoints', 5, 1), ('pages', 0, 1), ('checkpoints', -1, n - 1))):
        copy = copy_of(run, os.path.join(work, f'harmed{number}.run'))
        flip(os.path.join(copy, name), at)
        equal(damaged(copy, name), left, f'intervals, byte {at} of {name}')
    os.unlink(os.path.join(copy, 'pages'))
    damaged(copy, 'pages')


@limit(120)
def test_damage_of_a_window(work):
    """Parts of a flight recorder's window that are damaged, exchanged or missing
    are damage."""
    run = several_parts(work)
    n = found(run, rc=0)['intervals']
    parts = sorted(p for p in os.listdir(run) if p.startswith('log.'))
    check(n > 3 and len(parts) > 3, f'{n} intervals, {parts}')
    copies = [copy_of(run, os.path.join(work, f'harmed{i}')) for i in range(4)]
    path = os.path.join(copies[0], parts[-2])
    flip(path, os.path.getsize(path) // 2)
    check(damaged(copies[0], 'log') < n, 'intervals, a bit flipped')
    for a, b in ((-2, -3), (-3, -2)):
        shutil.copy(os.path.join(run, parts[a]), os.path.join(copies[1], parts[b]))
    check(damaged(copies[1], 'log') < n, 'intervals, exchanged')
    os.unlink(os.path.join(copies[2], parts[1]))
    check(0 < damaged(copies[2], 'missing') < n, 'intervals, one is missing')
    for name in ('pages', 'checkpoints'):
        os.unlink(os.path.join(copies[3], name))
    equal(damaged(copies[3], 'no checkpoint'), 0, 'intervals, no beginning')


def test_nothing_is_verified(work):
    """A QEMU that says nothing verifies nothing; a signal is named."""
    run = record(work, guest_args(work, 'hlt', 'rounds=3'))
    said = tt('verify', run.dir, '--qemu', '/bin/true', rc=1).stdout
    check('QEMU ended without a result' in said and
          'Nothing of the run could be verified' in said, said)
    answer = json.loads(tt('verify', run.dir, '--json', '--qemu', '/bin/true',
                           rc=1).stdout)
    equal((answer['exact'], answer['complete'], answer['damaged']),
          (False, False, []), f'{answer}')
    killed = script(os.path.join(work, 'killed'), '#!/bin/sh\nkill -9 $$\n')
    for args in (), ('--json',):
        said = tt('verify', run.dir, '--qemu', killed, *args, rc=1).stdout
        check('QEMU was killed by signal 9 (Killed)' in said, said)
    one = 'echo tt-verify interval from=0 to=5 how=equal; echo tt-verify end '
    for number, text in enumerate(('echo tt-verify end code=0 whole=1',
                                   f'{one}code=0 whole=1; kill -11 $$',
                                   f'{one}code=0 whole=1; exit 1',
                                   f'{one}code=2 whole=1; exit 2',
                                   f'{one}code=0 whole=0', f'{one}code=0')):
        qemu = script(os.path.join(work, f'fake{number}'), f'#!/bin/sh\n{text}\n')
        equal(verdict(run.dir, '--qemu', qemu)[::2], (1, False), text)


def test_refusals(work):
    """Wrong parts are refused in one sentence."""
    run = record(work, guest_args(work, 'hlt', 'rounds=3'))
    for part in ('', 'x', '5', '5-4', '5-5', '-5', '1-2-3'):
        with replayer(work, run, options=f',verify={part}', name='no') as vm:
            vm.wait(1)
        check('verify takes' in one_sentence(vm, f'verify={part}'), vm.stderr)
    said = verify(os.path.join(work, 'nowhere'), rc=1).stderr
    check(said.count('\n') == 1 and 'nowhere' in said, said)


def part(work, run, text, rc):
    with replayer(work, run, options=f',verify={text}', name='part') as vm:
        vm.wait(rc)
    return vm.stdout.decode()


@limit(120)
def test_parts_at_checkpoints(work):
    """From QEMU the start, the end and positions of stored checkpoints bound a part; what
    is none of them is refused in one sentence, which names the next ones."""
    run = with_checkpoints(work).run
    places = checkpoints(run)
    end = json.loads(tt('info', run, '--json').stdout)['end']
    last = places[-1]
    for text, n in (('all', len(places)), ('0-', len(places)), (f'0-{end}', len(places)),
                    (f'{places[2]}-{places[3]}', 1), (f'{last}-{end}', 1)):
        said = part(work, run, text, 0)
        equal((said.count('how=equal'), said.count('tt-verify interval')), (n, n),
              f'intervals of {text}: {said}')
    for text, next_ones in (('0-5', (0, places[1])), ('5-', (0, places[1])),
                            (f'{last + 1}-', (last, end)),
                            (f'{places[2]}-{last + 1}', (last, end)),
                            ('99999999999-', (last, end)),
                            ('0-99999999999', (last, end))):
        said = part(work, run, text, 1)
        lines = said.splitlines()
        equal(lines[1:], ['tt-verify end code=1 whole=0'], f'what {text} says: {said}')
        check(lines[0].startswith('tt-verify failed text=verify takes the start') and
              lines[0].endswith('before is %d, the nearest one after is %d' %
                                next_ones), said)


POKED = 0x3000000           # RAM that the guest does not use


def poked(work, name, options=''):
    """A run in which a debugger changed a byte of unused RAM."""
    args = [*guest_args(work, 'hlt', 'rounds=1000000'),
            *Gdb.args(work, name)]
    with recorder(work, args, name, OFTEN + options, qmp=1, timeout=60) as vm:
        vm.wait_serial('\n')
        Gdb(vm)(f'set {{int}}{POKED:#x} = 0x12345678')
        vm.qmp.cmd('cont')
        vm.qmp.cmd('tt-checkpoint-add', timeout=60)
        vm.qmp.send('quit')
        vm.wait(0)
    return vm.run


@limit(120)
def test_a_page_that_nobody_reads(work):
    """A change of RAM that is not logged, and that no instruction meets, is
    found at the next checkpoint: page, bytes, and that no input explains it."""
    events = [json.loads(line) for line in
              tt('log', poked(work, 'logged'), '--kind', 'ram',
                 '--json').stdout.splitlines()]
    events = [e for e in events if e['position']]
    number = next(i for i, e in enumerate(events, 1)
                  if int(e['val'], 16) == POKED and e['length'] == 4)
    run = poked(work, 'hole', f',x-unlogged={number}')
    tt('check', run)
    answer = found(run)
    text = '\n'.join(answer['found'])
    check(f'offset {POKED:#x} recorded 78563412' in text and
          'replayed 00000000' in text, text)
    check(f'page {POKED >> 12}: no instruction of this interval' in text and
          'an input is missing' in text, text)
    details = {d['what']: d for d in answer['details']}
    equal({k: details['page'][k] for k in ('page', 'physical', 'bytes',
                                           'recorded', 'block')},
          {'page': POKED >> 12, 'physical': f'{POKED:#x}', 'bytes': 4,
           'recorded': '7856341200000000', 'block': 'pc.ram'}, 'the page')
    check(re.match(r'\d+ \S+', details['before']['text']), details)
    equal(details['nowrite']['page'], POKED >> 12, 'who wrote it')
    equal(answer['second']['replay'], 'alike', 'a second replay')
    said = verify(run, rc=3).stdout
    check('finds the same: the replays agree with each other' in said, said)


def changed_register(work, then):
    """A run in which a debugger changed a register, and no event says so; the
    position where that was. Then @then(vm)."""
    args = [*guest_args(work, 'hlt', 'rounds=1000000'), *Gdb.args(work, 'reg')]
    with recorder(work, args, 'reg', OFTEN + ',check-interval=20000,x-omit=cpu-reset',
                  qmp=1, timeout=40) as vm:
        vm.wait_serial('\n')
        Gdb(vm)('set $xmm5.v4_int32[1] = 0x1234')
        vm.qmp.cmd('stop')
        at = vm.qmp.cmd('query-tt')['position']
        vm.qmp.cmd('cont')
        wait_until(lambda: vm.qmp.cmd('query-tt')['position'] > at + 50000,
                   'the guest runs on')
        then(vm)
        vm.qmp.send('quit')
        vm.wait(0)
    return vm.run, at


@limit(60)
def test_a_register(work):
    """A register that is not as it was recorded, and whose change is in no event, is
    found between two digests that lie as close as the recorder was told; with the
    registers of the replay there, and the function."""
    run, at = changed_register(work, lambda vm: None)
    answer = found(run)
    text = '\n'.join(answer['found'])
    places = re.search(r'as recorded at position (\d+), but not at (\d+), pc '
                       r'(0x[0-9a-f]+)', text)
    check(places, text)
    after, no_longer = (int(n) for n in places.groups()[:2])
    check(no_longer - after <= 20001 + 1000 and after <= at <= no_longer + 21000,
          f'{after} {at} {no_longer}: {text}')
    state = next(d for d in answer['details'] if d['what'] == 'state')
    equal(state['position'], no_longer, 'where the registers are from')
    check(re.search(r'\bEIP=0*%x\b.* EFL=\S+ ESP=\S+ CR3=' %
                    int(places.group(3), 16), state['text']), state)
    symbols = os.path.join(work, 'symbols')
    with open(symbols, 'w', encoding='ascii') as out:
        out.write(f'{int(places.group(3), 16) - 2:016x} T where_it_was\n')
    named = json.loads(verify(run, '--symbols', symbols, '--json', rc=3).stdout)
    check('where_it_was+0x2' in named['found'][0], f'{named}')
    equal(named['details'][0]['symbol'], 'where_it_was+0x2', 'symbol')


TERMINATED = '''#!/usr/bin/env python3
import subprocess, sys
p = subprocess.Popen([%r, *sys.argv[1:]], stdout=subprocess.PIPE)
for line in p.stdout:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
    if line.startswith(b'tt-verify diverged'):
        p.terminate()
sys.exit(p.wait())
'''


def script(path, text):
    with open(path, 'w', encoding='ascii') as out:
        out.write(text)
    os.chmod(path, 0o755)
    return path


def verdict(run, *args):
    done = tt('verify', run, '--once', '--json', *args, rc=None)
    answer = json.loads(done.stdout)
    return (done.returncode, answer['exact'], answer['complete'],
            answer.get('first_wrong'))


@limit(120)
def test_divergence_beside_damage(work):
    """What diverged has done so, whatever is damaged after it or ends the replay; and
    one process finds what several do."""
    run, at = changed_register(work, lambda vm: time.sleep(1.5))
    wrong = found(run)['first_wrong']
    qemu = script(os.path.join(work, 'terminated'), TERMINATED % qemu_binary())
    code, exact, _, where = verdict(run, '--qemu', qemu)
    equal((code, exact, where), (3, False, wrong), 'of one that was ended')
    log, pages = (os.path.join(run, name) for name in ('log', 'pages'))
    segments = [m.start() for m in re.finditer(b'TTVMSEG\n', read_bytes(log))]
    behind = [s for s in segments[1:]
              if at + 42000 < first_damaged(run, s + 120) < wrong[1]]
    check(behind, f'{len(segments)} segments, {at}, {wrong}')
    for spot in behind[0] + 120, behind[-1] + 120:
        flip(log, spot)
        equal(verdict(run, '--qemu', qemu_binary()), (3, False, False, wrong),
              'damage behind it')
        flip(log, spot)
    rng = seed()
    for _ in range(6):
        spot = rng.randrange(100, os.path.getsize(pages))
        flip(pages, spot)
        one, three = (verdict(run, '--qemu', qemu_binary(), f'-j{n}') for n in (1, 3))
        equal(one[:3], three[:3], f'one process and three, byte {spot} of pages')
        equal(one[3][0], three[3][0], f'where, byte {spot} of pages')
        flip(pages, spot)


@limit(60)
def test_a_register_at_a_checkpoint(work):
    """Where a checkpoint has what the register should be, both sides are named, and
    that nothing in the replay changed it; no other register is."""
    run, at = changed_register(
        work, lambda vm: vm.qmp.cmd('tt-checkpoint-add', timeout=60))
    answer = found(run)
    of_kind = {}
    for d in answer['details']:
        of_kind.setdefault(d['what'], []).append(d)
    equal([(d['cpu'], d['name'], d['recorded'], d['replayed'])
           for d in of_kind['register']],
          [(0, 'XMM05', '0000000000000000 0000123400000000',
            '0000000000000000 0000000000000000')], 'registers that differ')
    kept, wrong = of_kind['kept'][0], of_kind['diverged'][0]
    check(kept['name'] == 'XMM05' and kept['from'] == wrong['after'] and
          kept['from'] <= at < kept['to'], f'{at}: {kept} {wrong}')
    equal(answer['second']['replay'], 'alike', 'a second replay')


@limit(60)
def test_another_release(work):
    """Releases of QEMU mend instructions: where a run of another one goes wrong, both
    are named, by the replay, too."""
    run, _ = changed_register(work, lambda vm: None)
    info, _ = run_tool(tool('tt'), 'info', run, '--json')
    release = json.loads(info)['qemu']
    check('was recorded with QEMU' not in '\n'.join(found(run)['found']), 'the same one')
    edit_manifest(run, lambda text: text.replace(f'qemu-version={release}',
                                                 'qemu-version=10.0.99'))
    words = f'the run was recorded with QEMU 10.0.99, and this is {release}: '
    check(any(words in line for line in found(run)['found']), f'{found(run)}')
    vm = replay(work, run, name='other', rc=3)
    check(words in vm.stderr, vm.stderr)


def second_replay(work, guest, append, omitted):
    """What tt verify says of a second replay, if replays are not exact."""
    run = record(work, guest_args(work, guest, append), name=guest,
                 options=OFTEN)
    found(run.dir, rc=0)
    wrapper = os.path.join(work, f'qemu-{guest}')
    with open(wrapper, 'w', encoding='ascii') as out:
        out.write(f'#!/bin/sh\nvalue=$2\nshift 2\nexec "{qemu_binary()}" -tt '
                  f'"replay,x-omit={omitted},${{value#replay,}}" "$@"\n')
    os.chmod(wrapper, 0o755)
    answer = json.loads(tt('verify', run.dir, '--json', '--qemu', wrapper,
                           rc=3).stdout)['second']
    equal(answer['replay'], 'different', 'a second replay')
    equal(answer['second_found'], 'nothing is wrong', 'and what it finds')
    check('but not at' in answer['first_found'], f'{answer}')
    said = tt('verify', run.dir, '--qemu', wrapper, rc=3).stdout
    check('The replay itself is not deterministic' in said, said)
    return answer, said


@limit(60)
def test_a_replay_that_is_not_deterministic(work):
    """Where two replays of an interval go wrong in different ways, it is the replay
    that is at fault, and the branch where they part is named, if they do."""
    os.environ['TMPDIR'] = work
    answer, said = second_replay(work, 'exceptions', 'rounds=10', 'resume-flag')
    check(answer['first_went'] != answer['second_went'] and
          answer['last_alike']['position'] < answer['first_went']['position'],
          f'{answer}')
    check('the last branch that both took: position' in said, said)
    answer, said = second_replay(work, 'btflags', None, 'bt-flags')
    check('last_alike' not in answer, f'{answer}')
    check('The control flow is the same in both' in said, said)
    equal([n for n in os.listdir(work) if n.startswith('tt-verify-')], [],
          'traces that are left')


@limit(120)
def test_a_branch_of_a_branch(work):
    """A branch is checked and verified with its parents; its pack replays where
    these are not, and without them it is no longer packed."""
    args = guest_args(work, 'torture', 'rounds=100000 percent=30')
    first, (point,) = record_with_full(work, args, text='ticks')
    with brancher(work, args, first, point['id'], 'second', qmp=1,
                  timeout=60) as second:
        second.wait_serial('ticks')
        point = add_full(second)
        second.qmp.send('quit')
        second.wait(0)
    with brancher(work, args, second, point['id'], 'third', OFTEN, qmp=1,
                  timeout=60) as third:
        third.wait_serial('ticks')
        third.qmp.cmd('tt-checkpoint-add', timeout=60)
        third.qmp.send('quit')
        third.wait(0)
    tt('check', third.run)
    for name in ('check', 'info'):      # as one types it
        said = subprocess.run([tool('tt'), name, os.path.basename(third.run)],
                              cwd=os.path.dirname(third.run), timeout=30,
                              capture_output=True, text=True)
        equal((said.returncode, said.stderr), (0, ''), f'tt {name}, relative')
    check(found(third.run, rc=0)['complete'], 'verified')
    pack, back = os.path.join(work, 'p.ttrun'), os.path.join(work, 'back.run')
    tt('pack', third.run, pack)
    check(work.encode() not in read_bytes(pack), 'a path of the host')
    os.rename(second.run, second.run + '.gone')
    check('parent' in json.loads(
        tt('check', '--json', third.run, rc=1).stdout)['problems'][-1], 'check')
    equal(damaged(third.run, 'parent'), 0, 'intervals without the parent')
    said = tt('pack', third.run, pack + '2', rc=1).stderr
    check('is a branch and needs its parent' in said, said)
    os.rename(first.run, first.run + '.gone')
    tt('unpack', pack, back)
    tt('check', back)
    check(found(back, rc=0)['complete'], 'verified')
    check_exact(work, back, serial_wanted=third.serial)


FILLS = b'''#!/bin/busybox sh
insmod /own/virtio_balloon.ko
mkdir -p /t
mount -t tmpfs -o size=150M t /t
head -c 8192 /bin/busybox > /t/f
while cat /t/f /t/f > /t/g 2> /dev/null && [ "$(stat -c %s /t/g)" -lt 60000000 ]; do
    mv /t/g /t/f
done
rm /t/*
echo TT-FILLED
sleep 1000
'''


def given_away(work, name, more, give):
    """A guest with virtio-balloon gives RAM away between two checkpoints. The run is exact."""
    (module,) = glob.glob(f'{BUILD}/guest-packages/**/virtio_balloon.ko', recursive=True)
    args = own_args(work, {'own/run': FILLS, 'own/virtio_balloon.ko': read_bytes(module)},
                    'init_on_alloc=0')
    with recorder(work, [*args, '-device', f'virtio-balloon-pci{more}'], name, options=
                  ',checkpoint-interval=0', qmp=1, timeout=120) as vm:
        vm.wait_serial('TT-FILLED', 100)
        vm.qmp.cmd('tt-checkpoint-add', 60)
        give(vm)
        vm.qmp.cmd('tt-checkpoint-add', 60)
        vm.qmp.send('quit')
        vm.wait(0)
    pieces = tt('log', vm.run).stdout.count('ram-fill')
    check(pieces > 10, f'{pieces} pieces of RAM were given away')
    check('replays exactly' in verify(vm.run).stdout, 'verified')


@limit(150)
def test_pages_that_a_balloon_took(work):
    """Pages that the guest gives away as they are, with what was in them: a checkpoint
    behind it has zeros there."""
    def give(vm):
        vm.qmp.cmd('balloon', value=100 << 20)
        wait_until(lambda: vm.qmp.cmd('query-balloon')['actual'] == 100 << 20,
                   'the balloon has its pages', 60)
    given_away(work, 'balloon', '', give)


@limit(150)
def test_pages_that_were_reported(work):
    """The same with pages of which the guest only says that they are free."""
    def give(vm):
        wait_until(lambda: 'ram-fill' in tt('log', vm.run).stdout, 'a report', 60)
    given_away(work, 'report', ',free-page-reporting=on', give)
