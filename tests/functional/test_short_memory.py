# SPDX-License-Identifier: GPL-2.0-or-later
"""Host memory that is short in the midst of a restore loses nothing.

x-short-memory=N makes the page store's allocation N fail in every other
restore, from the first one on; N+ also those behind it.
"""

import os

from guests import guest_args
from test_stored import FILES, copy_of, digests_without_store
from ttlib import (check, check_exact, digest, digest_at, end_of, equal, goto, limit,
                   read_text, record, replay, replayer, stopped_replay, tt)

MOST = 12                       # allocations of a restore, and some


def long_run(work):
    return record(work, guest_args(work, 'codebits', 'rounds=3000'),
                  options=',checkpoint-interval=0.05', timeout=60)


def places_in(vm):
    """Forwards, back, and to where the recorder has a checkpoint."""
    end = end_of(vm)
    stored = [c['position'] for c in vm.qmp.cmd('query-tt-checkpoints')
              if c['stored']]
    return [end * 7 // 8, end // 8 | 1, end // 2 | 1, stored[-1], end // 3 | 1,
            end * 2 // 3]


def visit(vm, position, wanted):
    """Goes there, and once more if memory was short. What did it cost?"""
    before, said = digest(vm), len(vm.stderr)
    answer = goto(vm, position=position)
    if answer['reason'] == 'target':
        equal(digest(vm), wanted[position], f'digest at {position}')
        return 'nothing'
    said = vm.stderr[said:]
    lost = 'at this position was lost' in said
    equal(answer['reason'], 'damaged' if lost else 'interrupted',
          f'reason of a movement to {position}')
    check('not enough memory' in said, f'what is wrong is not said: {said}')
    check('cannot be used' not in said, f'a good checkpoint is given up: {said}')
    if lost and position % 2:           # what was given up can be reached, too
        equal(digest_at(vm, before[0]), before, 'digest of what was given up')
        return 'present'
    if not lost:
        equal(digest(vm), before, 'digest where it stayed')
    equal(digest_at(vm, position), wanted[position],
          f'digest at {position} in the second go')
    return 'present' if lost else 'movement'


def work_with(work, run, option, wanted, places, args):
    """What short memory cost in a replay that goes to all places."""
    with stopped_replay(work, run, option.replace('+', 'p'), args=args, timeout=100,
                        options=f',x-short-memory={option}') as vm:
        costs = [visit(vm, position, wanted) for position in places]
        goto(vm, where='end')           # one of the two has memory
        goto(vm, where='end')
        equal(digest(vm), wanted['end'], 'digest at the end')
        check('diverged' not in vm.stderr, vm.stderr)
    return costs


def check_all(work, run, places, wanted, args=()):
    """The failing allocation goes through all there are."""
    refused = given_up = 0
    for nth in range(1, MOST):
        costs = work_with(work, run, f'{nth}+', wanted, places, args)
        given_up += 'present' in costs
        refused += len([c for c in costs if c != 'nothing'])
        if costs == ['nothing'] * len(places):
            break
        work_with(work, run, f'{nth}', wanted, places, args)
    check(nth > 1 and refused, f'memory was never short: {nth}, {refused}')
    check(given_up <= 1, f'{given_up} allocations cost the state that was there')
    check(nth < MOST - 1, f'a restore has more than {MOST} allocations')


@limit(240)
def test_of_stored_checkpoints(work):
    """A restore of what the recorder stored that lacks memory, at whichever
    allocation, leaves the VM as it is, or says that it could not, after the
    trial of what comes from a file; the next one is exact."""
    run = long_run(work)
    with stopped_replay(work, run, 'places') as vm:
        places = places_in(vm)
    check_all(work, run.dir, places,
              digests_without_store(work, run.dir, places, 'bare'))


@limit(240)
def test_of_its_own_checkpoints(work):
    """The same of the checkpoints that the replay made itself and may thin."""
    run = long_run(work)
    with stopped_replay(work, run, 'places') as vm:
        places = places_in(vm)
    bare = copy_of(run.dir, os.path.join(work, 'bare.run'), FILES)
    wanted = digests_without_store(work, run.dir, places, 'straight')
    check_all(work, bare, places, wanted)


@limit(120)
def test_of_verify(work):
    """Short memory is no divergence to a verification: it says what it could not
    look at, and ends with 1."""
    run = long_run(work)
    for option in '1+', '2', '3+':
        with replayer(work, run, name=option.replace('+', 'p'), timeout=100,
                      options=f',verify=all,x-short-memory={option}') as vm:
            vm.wait(1)
            lines = read_text(f'{vm.base}.stdout').splitlines()
        equal(lines[-1], 'tt-verify end code=1 whole=0', 'the verdict')
        check(any('unusable' in line for line in lines), f'{lines}')
        check('not enough memory for checkpoint' in vm.stderr, vm.stderr)
        check(not any('diverged' in line for line in lines), f'{lines}')


@limit(120)
def test_of_a_window(work):
    """A window begins with a restore: without memory for it there is no replay."""
    run = record(work, guest_args(work, 'codebits', 'rounds=3000'), timeout=60,
                 options=',checkpoint-interval=0.05,last=0.5')
    check(tt('info', run.dir, '--json').stdout.find('"start": 0,') < 0,
          'the window begins at 0')
    with replayer(work, run, options=',at-end=exit,x-short-memory=1+') as vm:
        vm.wait(1)
    check('not enough memory for' in vm.stderr, vm.stderr)
    check_exact(work, run, serial_wanted=replay(work, run, name='once').serial)
