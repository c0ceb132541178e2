# SPDX-License-Identifier: GPL-2.0-or-later
"""Checkpoints that are added to a recording: at any position, while the VM runs
or stands, and each is as good as those of the clock."""

import os
import shutil
import time

from guests import guest_args, linux_args, linux_disk
from test_robust import ENDLESS, wait_recording_ends
from ttlib import (Vm, check, check_exact, digest_at, end_of, equal, goto,
                   limit, recorder, replay, seed, stopped_replay, wait_until)

NONE = ',checkpoint-interval=0'


def listed(vm):
    return vm.qmp.cmd('query-tt-checkpoints')


def add_some(vm, rng, count, pause):
    """Adds checkpoints at random moments; now and then the VM stands."""
    points = []
    for number in range(count):
        time.sleep(rng.random() * pause)
        stands = rng.random() < 0.3
        if stands:
            vm.qmp.cmd('stop')
        point = vm.qmp.cmd('tt-checkpoint-add', timeout=60,
                           **({'name': f'n{number}'} if number % 2 else {}))
        check(point['pinned'] and point['stored'], f'{point}')
        status = vm.qmp.cmd('query-status')['status']
        equal(status, 'paused' if stands else 'running', 'status after add')
        if stands:
            equal(vm.qmp.cmd('query-tt')['position'], point['position'] + 1,
                  'position after add')
            vm.qmp.cmd('cont')
        check(point in listed(vm), f'{point} is not in {listed(vm)}')
        points.append(point)
    return points


def digests_straight(work, run, positions, name):
    """Digests of a replay that knows nothing of stored checkpoints."""
    bare = os.path.join(work, f'{name}.run')
    os.mkdir(bare)
    for file in ('manifest', 'log'):
        shutil.copy(os.path.join(run, file), bare)
    found = {}
    with stopped_replay(work, bare, name, timeout=120) as vm:
        for position in sorted(positions):
            found[position] = digest_at(vm, position)
    return found


def check_places(work, run, points, rng, names=True):
    """From each checkpoint a cold replay goes on as a straight one does."""
    with stopped_replay(work, run, 'cold', timeout=120) as vm:
        end = end_of(vm)
        have = {c['id']: c for c in listed(vm)}
        for point in points:
            equal(have.get(point['id']), point, 'stored checkpoint')
        places = [p['position'] for p in points] + [end]
        near = [min(p + rng.randrange(1 << 21), end) for p in places]
        places += near + [rng.randrange(end + 1) for _ in range(6)]
        wanted = digests_straight(work, run, places, 'bare')
        rng.shuffle(places)
        for position in places:
            equal(digest_at(vm, position), wanted[position],
                  f'digest at {position}')
        for number, point in enumerate(points):
            if number % 2 and names:
                goto(vm, mark=f'n{number}')
                equal(vm.qmp.cmd('query-tt')['position'], point['position'],
                      f'mark n{number}')


def added(work, args, count, pause, options=NONE):
    rng = seed()
    with recorder(work, args, options=options, qmp=1, timeout=100) as vm:
        vm.wait_serial('\n')
        points = add_some(vm, rng, count, pause)
        vm.qmp.send('quit')
        vm.wait(0)
    check_places(work, vm.run, points, rng)
    check_exact(work, vm.run, serial_wanted=vm.serial, timeout=100)


@limit(120)
def test_abits(work):
    """A guest that watches accessed bits without flushing."""
    added(work, guest_args(work, 'abits', 'rounds=100000000'), 8, 0.3)


@limit(120)
def test_codebits(work):
    """The same for pages of code."""
    added(work, guest_args(work, 'codebits', 'rounds=100000000'), 8, 0.3)


@limit(120)
def test_torture(work):
    """A guest that is interrupted, faults and traps all the time, with
    checkpoints of the clock in between."""
    added(work, guest_args(work, 'torture', 'rounds=100000 percent=30'), 12, 0.2,
          options=',checkpoint-interval=0.5')


@limit(200)
def test_linux(work):
    """Linux with a disk."""
    added(work, linux_args('vda,procs,sha,hold', 'n=100') + linux_disk(work), 8,
          1.0)


@limit(120)
def test_deleted(work):
    """Some are deleted while the VM is recorded, the newest also: the others,
    and what is added then, are exact."""
    rng = seed()
    with recorder(work, guest_args(work, 'torture', 'rounds=100000'),
                  options=',checkpoint-interval=0.3', qmp=1) as vm:
        vm.wait_serial('\n')
        for turn in range(6):
            add_some(vm, rng, 2, 0.3)
            victims = listed(vm)[1:]
            victim = victims[-1] if turn % 2 else rng.choice(victims)
            vm.qmp.cmd('tt-checkpoint-delete', id=victim['id'])
            check(victim['id'] not in [c['id'] for c in listed(vm)],
                  'a deleted checkpoint is listed')
        vm.qmp.cmd('stop')
        wait_until(lambda: vm.qmp.cmd('query-tt')['checkpoints'] ==
                   len(listed(vm)), 'number')
        points = listed(vm)
        vm.qmp.send('quit')
        vm.wait(0)
    check_places(work, vm.run, points[1:], rng, names=False)
    check_exact(work, vm.run, serial_wanted=vm.serial, timeout=100)


@limit(60)
def test_commands(work):
    """What HMP says; what cannot be is refused with a sentence."""
    with recorder(work, [*guest_args(work, 'torture', 'rounds=100000'), '-S'],
                  options=',checkpoint-interval=1000', qmp=1) as vm:
        check('not begun' in vm.qmp.error('tt-checkpoint-add'), 'before cont')
        vm.qmp.cmd('cont')
        vm.wait_serial('\n')
        check(' kept' in vm.qmp.hmp('tt checkpoint add here'), 'add')
        info = vm.qmp.hmp('info tt')
        check('bytes of checkpoints; last pause' in info, info)
        first, last = listed(vm)
        for line, answer in (
                ('tt checkpoint add end', "'end'"),
                (f"tt checkpoint delete {first['id']}", 'is the first one'),
                ('tt checkpoint delete 77', 'there is no checkpoint 77'),
                ('tt checkpoint burn', "takes 'add")):
            text = vm.qmp.hmp(line)
            check(answer in text, f'{line}: {text}')
        equal(vm.qmp.hmp(f"tt checkpoint delete {last['id']}"), '', 'delete')
        equal(listed(vm), [first], 'the list then')
        vm.qmp.cmd('tt-record-stop')
        check('no past' in vm.qmp.error('tt-checkpoint-add'), 'after the stop')
        vm.qmp.send('quit')
        vm.wait(0)


@limit(60)
def test_record_start_options(work):
    """tt record start takes max-size and checkpoint-interval as -tt does."""
    with Vm(work, guest_args(work, *ENDLESS), name='on', qmp=1) as vm:
        vm.wait_serial('\n')
        for words, answer in (
                ('checkpoint-interval=often', 'takes seconds'),
                ('checkpoint-interval=-1', 'takes seconds'),
                ('checkpoint-interval=1000001', 'to 1000000, not 1000001'),
                ('guard=perhaps', 'guard'),
                ('max-size=huge', 'not a size'), ('one two', 'one directory')):
            text = vm.qmp.hmp(f'tt record start {words}')
            check(answer in text, f'{words}: {text}')
        check('takes seconds' in vm.qmp.error(
            'tt-record-start', dir=f'{work}/no', **{'checkpoint-interval':
                                                    1e9}), 'QMP')
        text = vm.qmp.hmp(f'tt record start {work}/a checkpoint-interval=0')
        check(f'recording into {work}/a' in text, text)
        equal(listed(vm), [], 'checkpoints')
        vm.qmp.cmd('tt-record-stop')
        vm.qmp.cmd('tt-record-start', dir=f'{work}/b',
                   **{'checkpoint-interval': 0.1})
        wait_until(lambda: len(listed(vm)) > 3, 'checkpoints are made')
        vm.qmp.cmd('tt-record-stop')
        text = vm.qmp.hmp(f'tt record start max-size=2M {work}/c')
        check(f'recording into {work}/c' in text, text)
        wait_recording_ends(vm, 'max-size')
        vm.qmp.send('quit')
        vm.wait(0)
    for run in 'ab':
        replay(work, f'{work}/{run}')
