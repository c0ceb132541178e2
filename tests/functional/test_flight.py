# SPDX-License-Identifier: GPL-2.0-or-later
"""Flight recorder: a window that moves can be replayed and travelled at any
moment, stays within its limits, and is kept when something happens."""

import fcntl
import glob
import json
import os
import re
import shutil
import socket
import subprocess
import time

from flight import (check_window, disk_bytes, marks_of, query,
                    stop_for_digest, wait_moved)
from guests import guest_args, linux_args, linux_disk, own_args
from hmp import Hmp, hmp_args
from test_gdb import symbol
from test_gdb_lines import Packets
from test_robust import mount_small
from ttlib import (REPO, Gdb, Vm, check, digest, digest_at, equal, goto, limit,
                   one_sentence, read_bytes, recorder, replay, run_tool, seed, stopped_replay,
                   tool, tt, wait_until)

TORTURE = ('torture', 'rounds=1000000 percent=30')
TINY = ',last=1s,checkpoint-interval=0.12,max-size=3M'


def finish(vm):
    vm.qmp.send('quit')
    vm.wait(0)
    return vm.run


def begins_a_part(vm):
    taken = query(vm)['store']['taken']
    wait_until(lambda: query(vm)['store']['taken'] > taken, 'a checkpoint', 60)
    vm.qmp.cmd('tt-save', timeout=60)
    parts = [p for p in os.listdir(vm.run) if p.startswith('log.')]
    return len(parts) > 3 and len(vm.qmp.cmd('query-tt-checkpoints')) > 4


def several_parts(work):
    """A window whose log has several parts."""
    with recorder(work, guest_args(work, *TORTURE), qmp=1, timeout=90,
                  options=',last=10s,checkpoint-interval=0.12') as vm:
        wait_moved(vm, 1)
        wait_until(lambda: begins_a_part(vm), 'parts and checkpoints', 60)
        return finish(vm)


@limit(200)
def test_torture(work):
    """A window of a guest that is interrupted and faults all the time has the
    digests that the recorder saw, in any order and shape."""
    rng = seed()
    with recorder(work, guest_args(work, *TORTURE), options=TINY, qmp=1,
                  timeout=100) as vm:
        wait_moved(vm, 2)
        recorded = [stop_for_digest(vm) for _ in range(6)
                    if not time.sleep(rng.random() * 0.3)]
        info = query(vm)
        check(0 < info['start'] < info['position'], f'{info}')
        run = finish(vm)
    start = check_window(work, run, rng, recorded)
    check(start >= info['start'], f'the window went back: {start} {info}')
    first = sorted(os.listdir(run))[1]
    check(first.startswith('log.') and first != 'log.000001',
          f'the beginning is still there: {os.listdir(run)}')


@limit(150)
def test_abits(work):
    """The same of a guest that watches accessed bits without flushing, which
    begins in the middle with an empty TLB."""
    rng = seed()
    with recorder(work, guest_args(work, 'abits', 'rounds=1000000'),
                  options=',last=1s,checkpoint-interval=0.1', qmp=1,
                  timeout=100) as vm:
        wait_moved(vm, 2)
        recorded = [stop_for_digest(vm)]
        run = finish(vm)
    check_window(work, run, rng, recorded)


@limit(200)
def test_linux(work):
    """A window of Linux with a disk, whose boot is no longer in it."""
    rng = seed()
    args = linux_args('vda,procs,sha', 'n=4000') + linux_disk(work)
    with recorder(work, args, options=',last=1s,checkpoint-interval=0.3', qmp=1,
                  timeout=150) as vm:
        vm.wait_serial('TT-GUEST-READY', timeout=90)
        wait_moved(vm, 2)
        recorded = [stop_for_digest(vm)]
        check(query(vm)['start'] > 10 ** 8, f'{query(vm)}')
        run = finish(vm)
    os.unlink(os.path.join(work, 'disk.img'))
    check_window(work, run, rng, recorded, count=2, is_long=True)


def keeps_its_size(work, n_looks):
    most = 6 << 20
    args = guest_args(work, 'selfdma', 'rounds=1000000')
    with recorder(work, args, options=',last=1h,max-size=6M', qmp=1,
                  timeout=80) as vm:
        vm.wait_serial('\n')
        for _ in range(n_looks):
            time.sleep(0.01)
            size = disk_bytes(vm.run)
            check(size <= most, f'{size} bytes: {os.listdir(vm.run)}')
        wait_moved(vm, 2)
        info = query(vm)
        told = info['bytes'] + info['store']['bytes']
        check(info['live'] and told <= most, f'{info}')
        return finish(vm)


@limit(100)
def test_size(work):
    """max-size bounds what is kept, at any moment, and ends nothing."""
    replay(work, keeps_its_size(work, 400))


@limit(150)
def test_size_on_a_slow_disk(work):
    """The window moves when a checkpoint is on disk: until it is, a guest that
    reads much waits."""
    library = os.path.join(work, 'slow_disk.so')
    run_tool('gcc', '-shared', '-fPIC', '-o', library,
             os.path.join(REPO, 'tests/functional/slow_disk.c'))
    os.environ['LD_PRELOAD'] = library
    run = keeps_its_size(work, 600)
    del os.environ['LD_PRELOAD']
    replay(work, run)


@limit(150)
def test_pack_while_it_moves(work):
    """A pack of a window that moves is whole, or refused; never damaged."""
    library = os.path.join(work, 'slow_open.so')
    run_tool('gcc', '-shared', '-fPIC', '-o', library,
             os.path.join(REPO, 'tests/functional/slow_open.c'), '-ldl')
    made = 0
    with recorder(work, guest_args(work, *TORTURE), options=TINY, qmp=1,
                  timeout=90) as vm:
        wait_moved(vm, 2)
        for number in range(12):
            pack, copy = (os.path.join(work, f'{x}{number}') for x in ('p', 'c'))
            env = {**os.environ, 'LD_PRELOAD': library if number % 4 == 0 else ''}
            done = subprocess.run([tool('tt'), 'pack', vm.run, pack], text=True,
                                  capture_output=True, env=env, timeout=60)
            if done.returncode:
                check('tt save' in done.stderr and not os.path.exists(pack),
                      f'{done.returncode}: {done.stderr}')
                continue
            made += 1
            last = copy
            run_tool(tool('tt'), 'unpack', pack, copy)
            run_tool(tool('tt'), 'check', copy)
        finish(vm)
    check(made >= 6, f'{made} of 12 packs were made')
    replay(work, last)


@limit(100)
def test_past(work):
    """In the process that records, history begins with the window; it goes on
    after the visit."""
    rng = seed()
    with recorder(work, guest_args(work, *TORTURE), options=TINY, qmp=1,
                  timeout=90) as vm:
        wait_moved(vm, 2)
        for _ in range(2):
            vm.qmp.cmd('stop')
            seen = vm.qmp.cmd('query-tt-digest')
            goto(vm, where='start')
            info = query(vm)
            start = info['start']
            equal((info['position'], info['start'], info['past']),
                  (start, start, True), 'the start of the past')
            check('before the window' in vm.qmp.error(
                'tt-goto', position=start - 1), 'before it')
            for _ in range(3):
                place = rng.randrange(start, info['end'])
                equal(digest_at(vm, place), digest_at(vm, place), 'twice')
            equal(digest_at(vm, seen['position'])[1:],
                  (seen['cpu'], seen['ram']), 'digest of the present')
            check('tt-goto' in vm.qmp.error('tt-save'), 'save')
            goto(vm, where='end')
            vm.qmp.cmd('cont')
            wait_moved(vm, 1)
        run = finish(vm)
    check_window(work, run, rng, count=3)


@limit(100)
def test_gdb(work):
    """gdb's history ends where the window begins, and its script says so; checkpoints
    that are added and deleted are as elsewhere, and the first one stays."""
    header = 0x200000                   # the guest's multiboot header: nobody writes it
    with recorder(work, guest_args(work, *TORTURE), options=TINY, qmp=1,
                  timeout=90) as vm:
        wait_moved(vm, 2)
        vm.qmp.cmd('stop')                  # so that the window keeps it
        added = vm.qmp.cmd('tt-checkpoint-add', name='here', timeout=60)
        check(added['position'] > query(vm)['start'], f'{added}')
        run = finish(vm)
    with stopped_replay(work, run, args=Gdb.args(work, 'rep')) as rep:
        start = query(rep)['start']
        equal(json.loads(tt('time', run, 'start', '--json').stdout)['position'], start,
              'tt time RUN start')
        said = tt('origin', run, str(start - 1), '$rax', rc=2).stderr
        check(f'is outside the run, which goes from {start} to' in said, said)
        said = tt('find', run, '$rip == 1', '--to', str(start), rc=2).stderr
        check(f'is not behind the beginning of the run, position {start}' in said, said)
        said = tt('find', run, '$rip == 1', '--from', '5', '--json', timeout=60).stdout
        equal(json.loads(said)['from'], start, 'where the search begins')
        goto(rep, mark='here')
        equal(query(rep)['position'], added['position'], 'mark in the window')
        points = rep.qmp.cmd('query-tt-checkpoints')
        equal(points[0]['position'], start, 'first checkpoint')
        text = rep.qmp.error('tt-checkpoint-delete', id=points[0]['id'])
        check('is the beginning of the run' in text, text)
        gdb = Gdb(rep)
        text = gdb('stepi', 'reverse-stepi', 'reverse-continue',
                   'p $tt_position')
        check(re.search('No more reverse-execution history|'
                        'Reached end of recorded history', text) and
              f'= {start}' in text, text)
        text = gdb(f'source {REPO}/scripts/tt-gdb.py', 'reverse-stepi', 'p $tt_position',
                   'python print(when()[2])', 'tt goto +1000',
                   f'tt last-change *(int *){header}')
        check(f'= {start}' in text and re.search('^start$', text, re.M), text)
        check('no instruction has changed' in text, text)


@limit(200)
def test_save(work):
    """tt save keeps what is there; the recording goes on, and moves away."""
    rng = seed()
    with recorder(work, guest_args(work, *TORTURE), options=TINY, qmp=1,
                  timeout=90) as vm:
        vm.wait_serial('\n')
        text = vm.qmp.hmp('tt save')
        check('saved in' in text, f'before the window moves: {text}')
        wait_moved(vm, 2)
        seen = stop_for_digest(vm)
        saved = vm.qmp.cmd('tt-save', name='first', timeout=60)['dir']
        equal(saved, f'{vm.run}-first', 'where it is')
        equal(vm.qmp.event('TT_SAVED')['dir'], f'{vm.run}-save-1', 'events')
        equal(vm.qmp.event('TT_SAVED')['dir'], saved, 'events')
        check('File exists' in vm.qmp.error('tt-save', name='first'), 'twice')
        check('is not a valid name' in vm.qmp.error('tt-save', name='-x'), 'a bad name')
        where = os.path.join(work, 'elsewhere')
        equal(vm.qmp.cmd('tt-save', name=where, timeout=60)['dir'], where,
              'a directory')
        check('No such file' in vm.qmp.error(
            'tt-save', name=f'{work}/not/there'), 'no place')
        start = query(vm)['position']
        wait_until(lambda: query(vm)['start'] > start, 'it moves away', 60)
        run = finish(vm)
    equal(marks_of(saved)[-1], 'first', 'the mark')
    check_window(work, saved, rng, [seen], count=2, name='saved', is_long=True)
    for other in (run, where, f'{run}-save-1'):
        replay(work, other, name=os.path.basename(other))


@limit(150)
def test_save_in_the_middle(work):
    """What a save notes in the log does not disturb those who come by."""
    args = linux_args('procs,hold', 'n=20')
    with recorder(work, args, options=',last=60s', qmp=1, timeout=100) as vm:
        for number, text in enumerate(('Linux version', 'Run /init',
                                       'TT-GUEST-READY', 'TT-HOLDS')):
            vm.wait_serial(text)
            vm.qmp.cmd('tt-save', name=f'{work}/saved{number}', timeout=60)
        run = finish(vm)
    replay(work, run, name='rep', timeout=60)
    replay(work, f'{work}/saved2', name='saved', timeout=60)


def watch_a_save(vm, monitor, hold):
    """While a window is saved (QMP would wait for its end, so it is not asked): where
    the VM was at each look, and what is said to who wants a checkpoint. File @hold is
    removed after six looks."""
    places, said = set(), []
    with socket.socket(socket.AF_UNIX) as hmp:
        hmp.connect(monitor)
        hmp.sendall(b'tt save\n')
        wait_until(lambda: glob.glob(f'{vm.run}-*.saving/pages'), 'the copy', 30)
        taken = query(vm)['store']['taken']
        while glob.glob(f'{vm.run}-*.saving'):
            now = query(vm), vm.qmp.hmp('tt checkpoint add'), \
                vm.qmp.hmp('tt checkpoint delete 2')
            if glob.glob(f'{vm.run}-*.saving'):
                places.add(now[0]['position'])
                equal(now[0]['store']['taken'], taken, 'checkpoints that were taken')
                said += now[1:]
            if len(places) > 5 and os.path.exists(hold):
                os.unlink(hold)
            time.sleep(0.1)
    return places, said


@limit(60)
def test_save_on_a_slow_disk(work):
    """The VM runs while its window is saved, also one that writes to more RAM than a
    checkpoint takes aside, and checkpoints wait: who asks for one is told."""
    library = os.path.join(work, 'slow_copy.so')
    run_tool('gcc', '-shared', '-fPIC', '-o', library,
             os.path.join(REPO, 'tests/functional/slow_copy.c'))
    args = guest_args(work, 'bigram', 'mb=1100 rounds=1000000')
    args[args.index('-m') + 1] = '1200'
    args += ['-monitor', f'unix:{work}/hmp,server=on,wait=off']
    hold = os.path.join(work, 'hold')
    with open(hold, 'wb'):
        os.environ.update(LD_PRELOAD=library, SLOW_WHILE=hold)
    with recorder(work, args, options=',last=60s,checkpoint-interval=0.2', qmp=1,
                  timeout=60) as vm:
        wait_until(lambda: query(vm)['store']['taken'] > 1, 'a checkpoint', 40)
        places, said = watch_a_save(vm, f'{work}/hmp', hold)
        taken = query(vm)['store']['taken']
        wait_until(lambda: query(vm)['store']['taken'] > taken, 'the next one', 40)
        check('kept' in vm.qmp.hmp('tt checkpoint add'), 'behind it')
        finish(vm)
    del os.environ['LD_PRELOAD'], os.environ['SLOW_WHILE']
    check(len(places) > 5, f'the VM was at {places}')
    check(all('a window is being saved' in text for text in said), f'{said}')
    check(len(said) > 5, f'{said}')
    replay(work, f'{vm.run}-save-1', timeout=60)


@limit(60)
def test_save_to_another_disk(work):
    """There the window is copied; when it does not fit, nothing is left, and the
    recording goes on."""
    large, small = mount_small(work, '16m', 'large'), None
    try:
        small = mount_small(work, '128k', 'small')
        with recorder(work, guest_args(work, *TORTURE), options=TINY, qmp=1,
                      timeout=50) as vm:
            wait_moved(vm, 1)
            text = vm.qmp.error('tt-save', name=f'{small}/w', timeout=60)
            check('No space left' in text, text)
            check(not os.path.exists(f'{small}/w'), 'something is left')
            vm.qmp.cmd('tt-save', name=f'{large}/w', timeout=60)
            wait_moved(vm, 1)
            finish(vm)
        replay(work, f'{large}/w')
    finally:
        for place in (large, small):
            if place:
                subprocess.run(['umount', '-l', place], check=False)


@limit(60)
def test_save_is_refused(work):
    """Where there is no window to save a sentence says so."""
    path = os.path.join(work, 'hmp')
    with recorder(work, [*guest_args(work, *TORTURE), '-S', *hmp_args(path)],
                  qmp=1) as vm, Hmp(path) as hmp:
        check('not begun' in vm.qmp.error('tt-save'), 'before')
        hmp.read_prompt()
        hmp.send('tt save')
        check('Error: ' in hmp.read_prompt(), 'in the monitor')
        vm.qmp.cmd('cont')
        vm.wait_serial('\n')
        check('keeps everything' in vm.qmp.hmp('tt save'), 'no window')
        vm.qmp.cmd('tt-record-stop')
        check('no recording' in vm.qmp.error('tt-save'), 'behind')
        text = vm.qmp.hmp(f'tt record start {work}/on last=forever')
        check("'last' takes a time" in text, text)
        for how in ('on', 'off'):
            text = vm.qmp.hmp(f'tt record start {work}/on save-on-panic={how}')
            check('save-on-panic is valid with last= only' in text, text)
        text = vm.qmp.error('tt-record-start', dir=f'{work}/on', save_on_panic=True)
        check('save-on-panic is valid with last= only' in text, text)
        text = vm.qmp.hmp(f'tt record start {work}/on last=1s '
                          'checkpoint-interval=0')
        check('needs checkpoints' in text, text)
        text = vm.qmp.hmp(f'tt record start {work}/on last=1s max-size=3M '
                          'checkpoint-interval=0.1 panic-pattern=x(')
        check('not a regular expression' in text, text)
        text = vm.qmp.hmp(f'tt record start {work}/on last=1s max-size=3M '
                          'checkpoint-interval=0.1')
        check('recording into' in text, text)
        wait_moved(vm, 2)
        vm.qmp.cmd('tt-record-stop')
        vm.qmp.send('quit')
        vm.wait(0)
    run = os.path.join(work, 'on')
    with stopped_replay(work, run) as rep:
        digest(rep)             # it has begun
        check('only a recording with last=' in rep.qmp.error('tt-save'),
              'in a replay')
    replay(work, run, name='again')


@limit(60)
def test_options(work):
    """What cannot be is refused with one sentence."""
    for options, words in (
            ('record,last=soon', 'takes a time'), ('record,last=', 'a time'),
            ('record,last=-1s', 'takes a time'), ('record,last=1y', 'a time'),
            ('record,last=1158d', 'from 0.1s to 1157d'),
            ('record,checkpoint-interval=1000001', 'to 1000000'),
            ('record,last=1s,checkpoint-interval=0', 'needs checkpoints'),
            ('record,panic-pattern=(', 'not a regular expression'),
            ('record,save-on-panic=on', 'with last= only'),
            ('replay,dir=x,last=1s', 'with record and branch only')):
        with Vm(work, ['-display', 'none', '-tt', options],
                serial=False) as vm:
            vm.wait(1)
        check(words in one_sentence(vm, options), f'{options}: {vm.stderr}')


@limit(60)
def test_a_limit_that_holds_nothing(work):
    """A max-size that has no room for a window's first checkpoint is refused when
    the recording begins, and leaves nothing; one for a recording without a window is
    not, and the advice is of use."""
    tiny = 'last=1s,checkpoint-interval=0.1,max-size='
    args = guest_args(work, *TORTURE)
    run = os.path.join(work, 'no')
    with Vm(work, [*args, '-tt', f'record,dir={run},{tiny}300K'],
            name='no') as vm:
        vm.wait(1)
    said = [line for line in vm.stderr.splitlines() if 'too small' in line]
    check(len(said) == 1 and 'give a larger max-size' in said[0] and 'window' in said[0],
          vm.stderr)
    check(not os.path.exists(run), 'the run directory is left')
    with Vm(work, args, name='on', qmp=1) as vm:
        vm.wait_serial('\n')
        text = vm.qmp.hmp(f'tt record start {run} {tiny.replace(",", " ")}550K')
        check('too small for a window' in text, text)
        check(not os.path.exists(run), 'the run directory is left')
        equal(vm.qmp.cmd('query-tt')['mode'], 'off', 'mode')
        equal(vm.qmp.cmd('query-status')['status'], 'running', 'the VM')


def starts_under(work, kib, last, wait_ms):
    """Does a recording of a VM that has run for a while begin with this max-size?
    If not, one sentence says so and nothing is left. If so, it is of use."""
    name = f'{"w" if last else "r"}{kib}'
    run = os.path.join(work, f'run-{name}')
    with Vm(work, guest_args(work, *TORTURE), name=name, qmp=1) as vm:
        vm.wait_serial('\n')
        time.sleep(wait_ms / 1000)
        text = vm.qmp.hmp(f'tt record start {run} max-size={kib}K {last}')
        if 'recording into' not in text:
            check('max-size' in one_sentence(text.strip(), f'{kib}K'), text)
            check(not os.path.exists(run), 'the run directory is left')
            equal(vm.qmp.cmd('query-tt')['mode'], 'off', 'mode')
            equal(vm.qmp.cmd('query-status')['status'], 'running', 'the VM')
            return False
        if last:
            wait_moved(vm, 1)
            check('ends at' not in vm.stderr, vm.stderr)
        else:
            wait_until(lambda: query(vm)['position'] > 10 ** 6, 'some way', 60)
        vm.qmp.send('quit')
        vm.wait(0)
    out, _ = run_tool(tool('tt'), 'check', run)
    check('is intact' in out, out)
    return True


@limit(150)
def test_small_limits(work):
    """What the log takes for RAM at the start is known, not guessed: a recording of a
    running VM begins with any max-size in which RAM has room, or is refused. (By the
    guess it ended at position 0 with 3M, of which it needs 0.3.)"""
    rng = seed()
    last = 'last=1s checkpoint-interval=0.1'
    for how, small, large in (last, (60, 160, 400), (1500, 3072)), \
            ('', (60, 160), (600, 1500, 3072)):
        for kib in small + large:
            equal(starts_under(work, kib, how, rng.randrange(1500)), kib in large,
                  f'a recording with {kib}K {how}')


def saving(run, name):
    """What a process leaves that is killed while it saves."""
    place = f'{run}-{name}.saving'
    os.mkdir(place)
    for file in ('log.000007', 'pages', 'unfinished'):
        with open(os.path.join(place, file), 'wb') as out:
            out.write(b'part of it')
    return place


@limit(60)
def test_save_is_whole_or_nothing(work):
    """A saved window gets its name when it is whole. What a killed process left goes
    with the next save, not what another one is at work on, nor what is not ours."""
    with recorder(work, guest_args(work, *TORTURE), options=TINY,
                  qmp=1) as vm:
        wait_moved(vm, 1)
        left = [saving(vm.run, name) for name in ('save-1', 'other')]
        foreign, busy = saving(vm.run, 'foreign'), saving(vm.run, 'busy')
        with open(os.path.join(foreign, 'letter.txt'), 'wb'):
            pass
        lock = os.open(busy, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        saved = vm.qmp.cmd('tt-save', timeout=60)['dir']
        equal(saved, f'{vm.run}-save-1', 'its name')
        for place in left:
            check(not os.path.exists(place), f'{place} is left')
        for place in (foreign, busy):
            check(os.path.exists(f'{place}/pages'), f'{place} has changed')
        check('File exists' in vm.qmp.error('tt-save', name='busy'), 'busy')
        os.close(lock)
        vm.qmp.cmd('tt-save', name='busy', timeout=60)
        check(not os.path.exists(busy), 'the one that was busy')
        for name in ('.', '..', '...', f'{vm.run}/', f'{vm.run}/in',
                     f'{vm.run}/../{os.path.basename(vm.run)}/in', './', '/'):
            for text in (vm.qmp.error('tt-save', name=name),
                         vm.qmp.hmp(f'tt save {name}')):
                check(('cannot be the name of' in text or 'is inside' in text
                       or 'File exists' in text) and '\n' not in text.strip(),
                      f'{name}: {text}')
        check('is inside the' in vm.qmp.error('tt-save', name=f'{vm.run}/in'), 'in')
        for name in ('a\nb', f'{work}/a\nb', f'{work}/a\u0085b'):
            text = vm.qmp.error('tt-save', name=name)
            check('give another' in text or 'not a valid name for a mark' in text, text)
            check('\n' not in text, text)
        check('still being saved' in vm.qmp.error('tt-save', name='x.saving'),
              'a name that is kept for windows in the making')
        whole = f'{vm.run}-whole.saving'
        shutil.copytree(saved, whole)
        vm.qmp.cmd('tt-save', name='after', timeout=60)
        run_tool(tool('tt'), 'check', whole)
        run = finish(vm)
    for window in (saved, f'{run}-busy', run):
        run_tool(tool('tt'), 'check', window)
        replay(work, window, name=os.path.basename(window))


@limit(100)
def test_killed(work):
    """A recorder that is killed at any moment leaves a window."""
    rng = seed()
    for turn in range(2):
        with recorder(work, guest_args(work, *TORTURE), options=TINY, qmp=1,
                      name=f'rec{turn}', timeout=60) as vm:
            wait_moved(vm, 1)
            start = query(vm)['start']
            time.sleep(rng.random())
            vm.kill()
        run_tool(tool('tt'), 'check', vm.run)
        with stopped_replay(work, vm.run, f'rep{turn}') as rep:
            digest(rep)         # it has begun
            check(query(rep)['start'] >= start > 0, f'{query(rep)} {start}')
        replay(work, vm.run, name=f'again{turn}')


def runs(vm):
    """Or can: it may wait for room that the next checkpoint makes."""
    if vm.qmp.cmd('query-status')['status'] == 'io-error':
        vm.qmp.cmd('cont')
    return vm.qmp.cmd('query-status')['status'] == 'running'


@limit(100)
def test_disk_full(work):
    """When the disk is full the window gets shorter, again and again, and the VM
    runs on; what is on a disk that stays full replays."""
    place = mount_small(work, '8m')
    try:
        with Vm(work, [*guest_args(work, 'tsc', 'rounds=1000000000'), '-tt',
                       f'record,dir={place}/run,last=1h,'
                       'checkpoint-interval=0.3'], name='rec', qmp=1,
                timeout=80) as vm:
            vm.wait_serial('\n')
            wait_moved(vm, 3, 60)
            wait_until(lambda: runs(vm), f'it runs on: {vm.stderr}')
            vm.kill()
        run_tool(tool('tt'), 'check', f'{place}/run')
        replay(work, f'{place}/run')
    finally:
        subprocess.run(['umount', '-l', place], check=False)


@limit(120)
def test_branch(work):
    """A full checkpoint of a window can be branched from in the saved window,
    when the recording has forgotten it."""
    args = guest_args(work, *TORTURE)
    with recorder(work, args, options=TINY, qmp=1, timeout=90) as vm:
        wait_moved(vm, 1)
        vm.qmp.cmd('stop')                  # so that the window keeps it
        point = vm.qmp.cmd('tt-checkpoint-add', name='full', full=True,
                           timeout=60)
        saved = vm.qmp.cmd('tt-save', name='kept', timeout=60)['dir']
        vm.qmp.cmd('cont')
        wait_until(lambda: query(vm)['position'] > point['position'], 'it goes on')
        vm.qmp.cmd('stop')
        vm.qmp.cmd('tt-checkpoint-add', name='now', full=True, timeout=60)
        for run, warns in ((vm.run, True), (saved, False)):
            at = 'now' if warns else 'full'
            with Vm(work, [*args, '-S', '-tt', f'branch,dir={run},at=@{at},'
                           f'to={work}/never'], name=f'at-{at}', qmp=1) as never:
                never.qmp.cmd('quit')
                never.wait(0)
            check(('still being recorded' in never.stderr) == warns, never.stderr)
        vm.qmp.cmd('cont')
        wait_until(lambda: query(vm)['start'] > point['position'],
                   'it is forgotten')
        check(point['id'] not in [c['id'] for c in
                                  vm.qmp.cmd('query-tt-checkpoints')], 'list')
        run = finish(vm)
    child = os.path.join(work, 'child')
    refused = Vm(work, [*args, '-tt', f'branch,dir={run},at=@full,to={child}'])
    with refused as vm:
        vm.wait(1)
    one_sentence(vm, 'a branch of what is forgotten')
    with Vm(work, [*args, '-tt', f'branch,dir={saved},at=@full,to={child},'
                   'last=1s,checkpoint-interval=0.12,max-size=3M'],
            name='branch', qmp=1) as vm:
        wait_moved(vm, 2)
        vm.qmp.send('quit')
        vm.wait(0)
    replay(work, child, name='child-replay')
    run_tool(tool('tt'), 'check', child)


@limit(60)
def test_tool(work):
    """tt looks into a window, packs it into one file, and what is unpacked is the
    same; its checkpoints cannot be left out."""
    with recorder(work, guest_args(work, *TORTURE), options=TINY,
                  qmp=1) as vm:
        wait_moved(vm, 2)
        run = finish(vm)
    with stopped_replay(work, run) as rep:
        start = query(rep)['start']
    info = json.loads(run_tool(tool('tt'), 'info', '--json', run)[0])
    equal((info['window'], info['start']), (True, start), 'tt info')
    check('a window of the recording' in run_tool(tool('tt'), 'info', run)[0],
          'tt info for people')
    stats = json.loads(run_tool(tool('tt'), 'stats', '--json', run)[0])
    equal(stats['events'], info['events'], 'tt stats')
    lines = run_tool(tool('tt'), 'log', '--from', str(start), '--limit', '1',
                     run)[0].split()
    check(int(lines[0]) >= start, f'tt log: {lines}')
    text = run_tool(os.path.join(REPO, 'scripts', 'tt-log-dump.py'), run)[0]
    equal(text.count('\nevent '), info['events'], 'events in the second reader')
    pack, again = os.path.join(work, 'w.ttrun'), os.path.join(work, 'again')
    out = run_tool(tool('tt'), 'pack', '--no-checkpoints', run, pack, rc=1)[1]
    check('begins at a checkpoint' in out, out)
    run_tool(tool('tt'), 'pack', run, pack)
    run_tool(tool('tt'), 'unpack', pack, again)
    check('log' in os.listdir(again), f'{os.listdir(again)}')
    run_tool(tool('tt'), 'verify', again, timeout=60)
    os.unlink(pack)
    run_tool(tool('tt'), 'pack', '--scrub', run, pack)
    shutil.rmtree(again)
    run_tool(tool('tt'), 'unpack', pack, again)
    equal(json.loads(run_tool(tool('tt'), 'stats', '--json', again)[0])
          ['events'], info['events'], 'events of what was scrubbed')


@limit(60)
def test_pieces_are_missing(work):
    """Without checkpoints a window has no beginning: one sentence. The first
    that is damaged makes it begin later. A part too many does not matter."""
    with recorder(work, guest_args(work, *TORTURE), options=TINY,
                  qmp=1) as vm:
        wait_moved(vm, 2)
        run = finish(vm)
    bare = os.path.join(work, 'bare')
    shutil.copytree(run, bare)
    for name in ('pages', 'checkpoints'):
        os.unlink(os.path.join(bare, name))
    rep = replay(work, bare, rc=1)
    check('begins with a checkpoint' in rep.stderr, rep.stderr)
    out = run_tool(tool('tt'), 'check', bare, rc=1)[1]
    check('no checkpoint from which a replay' in out, out)
    out = run_tool(tool('tt'), 'info', bare)[0]
    check('without a checkpoint from which' in out, out)
    parts = sorted(n for n in os.listdir(run) if n.startswith('log.'))
    if parts[0] > 'log.000002':
        with open(os.path.join(run, 'log.000001'), 'wb') as old:
            old.write(b'before a gap')
    replay(work, run, name='gap')


def group_offsets(data):
    return [m.start() for m in re.finditer(b'TTVMGRP\n', data)]


def stands_with_groups(vm, n):
    """Stops the VM if its window has that many groups of pages."""
    vm.qmp.cmd('stop')
    found = len(group_offsets(read_bytes(os.path.join(vm.run, 'pages'))))
    if found < n:
        vm.qmp.cmd('cont')
    return found >= n


@limit(60)
def test_a_group_of_pages_is_damaged(work):
    """A flipped bit in the header of any group of pages is damage of that file: tt
    check says neither that the checkpoints are damaged nor that somebody deleted a
    part of the log."""
    with recorder(work, guest_args(work, *TORTURE), options=TINY,
                  qmp=1) as vm:
        wait_moved(vm, 3)
        wait_until(lambda: query(vm)['store']['taken'] > 8, 'checkpoints', 60)
        wait_until(lambda: stands_with_groups(vm, 4), 'groups', 60)
        run = finish(vm)
    pages = os.path.join(run, 'pages')
    with open(pages, 'rb') as file:
        good = file.read()
    groups = group_offsets(good)
    check(len(groups) > 2, f'{len(groups)} groups')
    for at in groups[::max(1, len(groups) // 5)]:
        with open(pages, 'wb') as file:
            file.write(good[:at + 20] + bytes([good[at + 20] ^ 4]) + good[at + 21:])
        out = run_tool(tool('tt'), 'check', run, rc=1)[1]
        check(f'tt: pages: damaged at byte {at};' in out, out)
        check('checkpoints: damaged' not in out and 'deleted' not in out, out)


@limit(60)
def test_parts_are_missing(work):
    """Parts of the log that somebody deleted are named, in the middle and at the
    beginning; what is after them replays."""
    run = several_parts(work)
    parts = sorted(n for n in os.listdir(run) if n.startswith('log.'))
    check(len(parts) > 3, f'{parts}')
    late = os.path.join(work, 'late')       # the beginning was deleted
    shutil.copytree(run, late)
    points = vm_points(work, run)
    while len(vm_points(work, late)) == len(points):
        gone = sorted(n for n in os.listdir(late) if n.startswith('log.'))[0]
        os.unlink(os.path.join(late, gone))
    out = run_tool(tool('tt'), 'check', late, rc=1)[1]
    check(f"{gone}' is missing, and checkpoint" in out and
          'the beginning of the window was deleted' in out, out)
    replay(work, late, name='late')         # what is left of it replays
    holed = os.path.join(work, 'holed')     # and here the middle
    shutil.copytree(run, holed)
    os.unlink(os.path.join(holed, parts[-2]))
    out = run_tool(tool('tt'), 'check', holed, rc=1)[1]
    check(f"{parts[-2]}' is missing, so the parts before it, from" in out and
          f'{parts[0]}\' on' in out, out)
    out = run_tool(tool('tt'), 'info', holed, rc=None)[1]
    check(f"{parts[-2]}' is missing" in out, out)
    rep = replay(work, holed, name='holed', rc=None)
    check(f"{parts[-2]}' is missing: the replay begins after it" in rep.stderr,
          rep.stderr)


def test_pattern_too_hard(work):
    """A pattern with which the library gives up says so, once for each that is set."""
    guest = guest_args(work, 'torture', 'rounds=1')
    pattern = '([a-z0-9=: ]+)+[~!]|torture: end'
    with recorder(work, guest, options=f',panic-pattern={pattern}') as vm:
        vm.wait(0)
    lines = [line for line in vm.stderr.splitlines() if pattern in line]
    equal(len(lines), 1, f'sentences about it ({vm.stderr})')
    check('may be missed' in lines[0], lines[0])
    with recorder(work, guest, 'good', options=',panic-pattern=torture: end') as vm:
        vm.wait(0)
    check('may be missed' not in vm.stderr, vm.stderr)
    equal(marks_of(vm.run), ['panic-1'], 'marks')


def vm_points(work, run):
    """Positions of the checkpoints that a replay of the run has."""
    with stopped_replay(work, run, 'look') as rep:
        return [c['position'] for c in rep.qmp.cmd('query-tt-checkpoints')]


def panics(work, how, options='', args=(), serial='behind it'):
    """Records guest "panic"; returns the Vm, the mark, and where it was saved
    (None: it was not)."""
    guest = [*guest_args(work, 'panic', f'how={how}'), *args, '-S']
    with recorder(work, guest, options=',last=30s,checkpoint-interval=0.2' +
                  options, qmp=1) as vm:
        vm.qmp.cmd('cont')              # not before somebody listens
        event = vm.qmp.event('TT_GUEST_PANIC', timeout=40)
        equal(event['mark'], 'panic-1', 'mark')
        saved = vm.qmp.event('TT_SAVED', timeout=30)['dir']
        vm.wait_serial(serial)
        info = query(vm)
        check(info['live'] and info['position'] > event['position'], f'{info}')
        run = finish(vm)
    equal(saved, f'{run}-panic-1', 'where it is saved')
    # Long after one, the next of a guest that reboots is another.
    equal(marks_of(run)[:1 if serial == 'working' else None], ['panic-1'], 'marks')
    with stopped_replay(work, saved) as rep:
        goto(rep, mark='panic-1')
        equal(query(rep)['position'], event['position'], '@panic-1')
    replay(work, saved, name='saved')
    replay(work, run, name='whole')
    return event


@limit(60)
def test_pvpanic(work):
    """A guest that tells pvpanic gets a mark, and its window is saved."""
    event = panics(work, 1, args=('-action', 'panic=none'))
    equal(event['what'], 'panicked', 'what')


def panic_during_save(vm, hmp, hold):
    """The guest panics while a window is being saved, as long as file @hold exists: it
    stands before its trouble until then."""
    gdb = Packets(vm.socket_path('gdb'))
    where = symbol('panic', 'work')
    equal(gdb(f'Z0,{where:x},1'), 'OK', 'a breakpoint')
    check(gdb('vCont;c').startswith('T05'), 'the guest does not get to its work')
    equal(gdb(f'z0,{where:x},1'), 'OK', 'removing it')
    gdb.close()
    hmp.sendall(b'tt save\n')
    wait_until(lambda: glob.glob(f'{vm.run}-save-1.saving/pages'), 'the copy', 30)
    vm.qmp.cmd('cont')
    vm.qmp.event('TT_GUEST_PANIC', timeout=40)
    time.sleep(2)                       # its window would be saved after 1.5 s
    os.unlink(hold)
    equal(vm.qmp.event('TT_SAVED', 30)['dir'], f'{vm.run}-save-1', 'first')


def past_after_panic(vm):
    vm.qmp.cmd('cont')
    vm.qmp.event('TT_GUEST_PANIC', timeout=40)
    goto(vm, where='start')
    time.sleep(2)
    goto(vm, where='end')
    vm.qmp.cmd('cont')


@limit(60)
def test_panic_while_a_window_is_saved(work):
    """It is saved, too, a bit later; and one after which somebody looks at the past."""
    library = os.path.join(work, 'slow_copy.so')
    run_tool('gcc', '-shared', '-fPIC', '-o', library,
             os.path.join(REPO, 'tests/functional/slow_copy.c'))
    hold = os.path.join(work, 'hold')
    for name in 'saving', 'past':
        if name == 'saving':
            with open(hold, 'wb'):
                os.environ['SLOW_WHILE'] = hold
        os.environ['LD_PRELOAD'] = library
        args = [*guest_args(work, 'panic', 'how=3'), '-S', *Gdb.args(work, name), '-monitor',
                f'unix:{work}/{name}.hmp,server=on,wait=off']
        with recorder(work, args, options=',last=30s,checkpoint-interval=0.2', qmp=1,
                      name=name) as vm, socket.socket(socket.AF_UNIX) as hmp:
            os.mkdir(f'{vm.run}-panic-1')       # what an earlier recording has saved
            vm.qmp.cmd('query-status')          # it listens
            hmp.connect(f'{work}/{name}.hmp')
            if name == 'saving':
                panic_during_save(vm, hmp, hold)
            else:
                past_after_panic(vm)
            equal(vm.qmp.event('TT_SAVED', 30)['dir'], f'{vm.run}-panic-1-2', 'then')
            finish(vm)
        del os.environ['LD_PRELOAD']
        os.environ.pop('SLOW_WHILE', None)
        replay(work, f'{vm.run}-panic-1-2', name=f'{name}2')


@limit(60)
def test_save_of_what_is_gone(work):
    """Without its manifest, or with no checkpoints, a window is no run."""
    for gone in 'manifest', 'pages', 'checkpoints':
        with recorder(work, guest_args(work, *TORTURE), options=TINY, qmp=1,
                      name=gone) as vm:
            wait_moved(vm, 1)
            os.unlink(os.path.join(vm.run, gone))
            text = vm.qmp.error('tt-save', timeout=30)
            check(gone in text and 'No such file' in text, text)
            equal([n for n in os.listdir(work) if 'save' in n], [], 'left behind')
            vm.qmp.send('quit')
            vm.wait()


@limit(60)
def test_triple_fault(work):
    """So does one whose CPU gives up; it reboots, and goes on."""
    event = panics(work, 2, serial='working')
    equal(event['what'], 'had a triple fault', 'what')


@limit(60)
def test_console(work):
    """So does one that says on its console what Linux says."""
    event = panics(work, 3)
    equal(event['what'], 'reports a crash on its console', 'what')


@limit(60)
def test_watchdog(work):
    """So does one that does not answer its watchdog."""
    event = panics(work, 4, args=('-action', 'watchdog=none'))
    equal(event['what'], 'did not answer its watchdog', 'what')


@limit(60)
def test_no_panic(work):
    """Other lines are none; nor is the pattern when it is empty, and without
    save-on-panic there is only the mark. One's own pattern counts."""
    for how, options, marks in (
            (5, '', []), (3, ',panic-pattern=', []),
            (3, ',last=10s,save-on-panic=off', ['panic-1']),
            (5, ',panic-pattern=is no Oops', ['panic-1'])):
        guest = guest_args(work, 'panic', f'how={how} rounds=2')
        with recorder(work, guest, options=options, qmp=1) as vm:
            vm.wait(0)
        equal(marks_of(vm.run), marks, f'marks of {how}{options}')
        equal([n for n in os.listdir(work) if 'run-' in n], [], 'saved')
        replay(work, vm.run)


@limit(60)
def test_incident_without_window(work):
    """Who says that no window is to be saved by itself is told that none is."""
    with recorder(work, guest_args(work, 'torture', 'rounds=1000000 percent=30'),
                  options=',last=1h,save-on-panic=off', qmp=1) as vm:
        vm.wait_serial('\n')
        equal(vm.qmp.cmd('tt-incident')['window'], False, 'a window')
        vm.qmp.send('quit')
        vm.wait(0)
    check(not os.path.exists(f'{vm.run}-incident-1'), 'a window')


@limit(60)
def test_second_incident(work):
    """Of the second one within a window's length there is a mark and no window, which is
    said."""
    guest = guest_args(work, 'torture', 'rounds=1000000 percent=30')
    with recorder(work, guest, options=',last=1h', qmp=2) as vm:
        vm.wait_serial('\n')
        check('window' not in vm.qmp.cmd('tt-incident', what='one'), 'the first one')
        wait_until(lambda: os.path.exists(f'{vm.run}-incident-1'), 'the window')
        check('no window' not in vm.stderr, vm.stderr)
        equal(vm.qmp.cmd('tt-incident', what='two')['window'], False, 'a window')
        said = tt('watch', vm.qmp_paths[1], '--every', '1', '--fails', '1', '--once',
                  '--script', f'test ! -e {work}/was && touch {work}/was', rc=None,
                  timeout=40).stdout
        check('mark @incident-3, and no window' in said, said)
        check('no window is saved for @incident-2: that for @incident-1' in vm.stderr,
              vm.stderr)
        vm.qmp.send('quit')
        vm.wait(0)


@limit(120)
def test_sysrq(work):
    """Linux that crashes by sysrq-c, on a plain machine."""
    script = (b'#!/bin/sh\necho 1 > /proc/sys/kernel/sysrq\n'
              b'echo c > /proc/sysrq-trigger\n')
    with recorder(work, own_args(work, {'own/run': script}),
                  options=',last=1h', qmp=1, timeout=100) as vm:
        event = vm.qmp.event('TT_GUEST_PANIC', timeout=90)
        vm.wait(0)
    check(b'Kernel panic - not syncing' in vm.serial, 'no panic')
    with stopped_replay(work, vm.run) as rep:
        goto(rep, mark=event['mark'])
        equal(query(rep)['position'], event['position'], 'position')


@limit(60)
def test_shutdown_at_once(work):
    """A machine that ends with the panic leaves the mark in its run."""
    guest = [*guest_args(work, 'panic', 'how=2'), '-no-reboot']
    with recorder(work, guest, options=',last=10s') as vm:
        vm.wait(0)
    equal(marks_of(vm.run), ['panic-1'], 'marks')
    replay(work, vm.run)
