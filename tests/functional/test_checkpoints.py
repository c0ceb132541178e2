# SPDX-License-Identifier: GPL-2.0-or-later
"""Checkpoints of a replay come and go, and every position stays exact."""

import contextlib
import os
import threading

from guests import guest_args, linux_args, linux_disk
from ttlib import (Vm, check, digest, digest_at, end_of, equal, goto, limit,
                   one_sentence, record, seed, stopped_replay)

SYNC = 1 << 23                  # positions between sync points


def listed(vm):
    return vm.qmp.cmd('query-tt-checkpoints')


def add_here(vm, position):
    """Adds a checkpoint where the VM stands; it must not move, and the
    checkpoint must be near."""
    point = vm.qmp.cmd('tt-checkpoint-add', timeout=60)
    equal(vm.qmp.cmd('query-tt')['position'], position, 'position after add')
    check(position - (1 << 24) < point['position'] <= position,
          f"asked at {position}, stands at {point['position']}")
    check(point['pinned'], 'a checkpoint of the user is pinned')
    check(point in listed(vm), f'{point} is not in the list')
    return point


def delete_any(vm, rng, kept):
    """Deletes a checkpoint, the user's own as well; not the first one."""
    choice = [c for c in listed(vm) if c['position']]
    if choice:
        victim = rng.choice(choice)
        vm.qmp.cmd('tt-checkpoint-delete', id=victim['id'])
        check(victim['id'] not in [c['id'] for c in listed(vm)],
              'a deleted checkpoint is listed')
        kept.discard(victim['id'])


@limit(300)
def test_random_work(work):
    """Checkpoints are added and deleted between movements, in random order:
    each digest equals that of a run straight through; what the user added
    stays until it is deleted."""
    run = record(work, linux_args('vda,procs', 'n=30') + linux_disk(work),
                 timeout=100)
    rng = seed()
    wanted = {}
    with stopped_replay(work, run, 'straight', timeout=120) as vm:
        end = end_of(vm)
        for position in sorted(rng.randrange(end + 1) for _ in range(40)):
            wanted[position] = digest_at(vm, position)
    places = sorted(wanted)
    kept = set()
    with stopped_replay(work, run, 'random', timeout=200,
                        options=',checkpoint-memory=200M') as vm:
        for _ in range(120):
            position = rng.choice(places)
            equal(digest_at(vm, position), wanted[position],
                  f'digest at {position}')
            what = rng.randrange(4)
            if what == 0:
                point = add_here(vm, position)
                if point['position']:       # the first one stays in any case
                    kept.add(point['id'])
                equal(digest(vm), wanted[position], 'digest after add')
            elif what == 1:
                delete_any(vm, rng, kept)
                equal(digest(vm), wanted[position], 'digest after delete')
        left = {c['id'] for c in listed(vm) if c['pinned'] and c['position']}
        equal(left, kept, 'checkpoints of the user')
        for point in listed(vm):
            if point['position']:
                vm.qmp.cmd('tt-checkpoint-delete', id=point['id'])
        equal(len(listed(vm)), 1, 'checkpoints at the end')
        for position in rng.sample(places, 4):
            equal(digest_at(vm, position), wanted[position],
                  f'digest at {position} with one checkpoint')


@limit(120)
def test_progress(work):
    """A movement of more than a second tells how far it is, in QMP and HMP,
    and never backwards."""
    # From a checkpoint that the recorder has kept it would be a shorter way to the end.
    run = record(work, linux_args('procs', 'n=60'), options=',checkpoint-interval=0',
                 timeout=100)
    with stopped_replay(work, run) as vm:
        end = end_of(vm)
        goto(vm, 100, where='end')
        seen = []
        event = vm.qmp.event('TT_PROGRESS')
        while event and len(seen) < 3:
            seen.append((event['done'], event['total']))
            if len(seen) < 3:
                event = vm.qmp.event('TT_PROGRESS')
    equal(seen, sorted(seen), 'progress')
    check(all(0 < done <= total == end for done, total in seen), f'{seen}')
    with stopped_replay(work, run, 'hmp') as vm:
        text = vm.qmp.hmp('tt goto end', timeout=100)
        check('#' in text and '%' in text and f'at {end} (' in text, text)


@limit(60)
def test_commands(work):
    """HMP adds, lists and deletes; what cannot be deleted is refused."""
    run = record(work, guest_args(work, 'hlt', 'rounds=5'))
    with stopped_replay(work, run) as vm:
        check(' kept' in vm.qmp.hmp('tt checkpoint add'), 'add')
        table = vm.qmp.hmp('tt checkpoint list')
        equal(table, vm.qmp.hmp('tt checkpoint'), 'list is the default')
        check('position' in table and len(table.split('\n')) >= 2, table)
        first = listed(vm)[0]
        for line, answer in (
                (f"tt checkpoint delete {first['id']}", 'is the beginning'),
                ('tt checkpoint delete 0', 'there is no checkpoint 0'),
                ('tt checkpoint delete 4294967297', 'there is no checkpoint'),
                ('tt checkpoint delete -1', 'the number of a'),
                ('tt checkpoint delete x', 'the number of a'),
                ('tt checkpoint burn', "takes 'add ")):
            text = vm.qmp.hmp(line)
            check(answer in text, f'{line}: {text}')
        os.mkdir(os.path.join(run.dir, 'marks'))        # where no mark can be added
        before = listed(vm)
        text = vm.qmp.hmp('tt checkpoint add here')
        check('no checkpoint was made, since its name is to be a mark' in
              one_sentence(text, 'add') and 'cannot add the mark' in text, text)
        equal(listed(vm), before, 'the checkpoints then')


@limit(60)
def test_refused_alone(work):
    """Where there is nothing to travel in, adding a checkpoint is refused and
    the VM runs on."""
    with Vm(work, guest_args(work, 'torture', 'rounds=100000'), name='off',
            qmp=1) as vm:
        vm.wait_serial('torture')
        check('no past' in vm.qmp.error('tt-checkpoint-add'), 'QMP')
        check('no past' in vm.qmp.hmp('tt checkpoint add'), 'HMP')
        equal(vm.qmp.cmd('query-status')['status'], 'running', 'status')
        vm.qmp.send('quit')
        vm.wait(0)


@contextlib.contextmanager
def polled(monitor):
    """Somebody asks all the time, as a client does that shows how far it is."""
    over = threading.Event()

    def ask():
        while not over.is_set():
            monitor.cmd('query-status', 60)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@limit(120)
def test_no_room(work):
    """Where the last checkpoint before the place to go to has no room it is given up
    once, not at each turn: the movement arrives, whoever else wants the token."""
    run = record(work, linux_args('rand'), options=',checkpoint-interval=0')
    with stopped_replay(work, run, options=',checkpoint-memory=1', qmp=2,
                        timeout=100) as vm, polled(vm.connect(1)):
        for position in (SYNC * 2 + 5, SYNC * 2 + 300, SYNC * 5 + 5):
            equal(goto(vm, position=position),
                  {'position': position, 'reason': 'target'}, 'movement')
        equal(len(listed(vm)), 1, 'checkpoints with so little memory')
