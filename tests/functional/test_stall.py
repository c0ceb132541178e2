# SPDX-License-Identifier: GPL-2.0-or-later
"""A disk that is full costs nothing that was recorded: the VM waits for room, and
what the user asked for is kept."""

import os
import subprocess

from guests import guest_args
from test_robust import (ENDLESS, check_graceful, mount_small, replay_status,
                         wait_recording_ends)
from ttlib import (Vm, check, check_exact, digest_at, end_of, equal, limit,
                   one_sentence, run_tool, stopped_replay, tool,
                   wait_until)


def fill(place, mib):
    path = os.path.join(place, 'ballast')
    with open(path, 'wb') as out:
        out.write(b'x' * (mib << 20))
    return path


def waits(vm):
    """The recording waits, and says so in one sentence."""
    wait_until(lambda: vm.qmp.cmd('query-status')['status'] == 'io-error',
               'the VM is stopped when the disk is full', 40)
    wait_until(lambda: 'its recording cannot be written' in vm.stderr,
               'it says why')
    info = vm.qmp.cmd('query-tt')
    check(info['live'] and 'space' in info['trouble'], f'{info}')
    return info['position']


def warnings(vm):
    return [line for line in vm.stderr.splitlines()
            if 'its recording cannot be written' in line]


@limit(120)
def test_waits_for_room(work):
    """The VM stops when the disk is full, and goes on, recorded, when there is
    room: the run has no gap and ends cleanly."""
    place = mount_small(work, '6m')
    try:
        ballast = fill(place, 3)
        with Vm(work, [*guest_args(work, *ENDLESS), '-tt',
                       f'record,dir={place}/run,checkpoint-interval=0'],
                name='rec', qmp=1) as vm:
            first = waits(vm)
            equal(len(warnings(vm)), 1, vm.stderr)
            vm.qmp.cmd('cont')                  # no room yet: it stops again
            wait_until(lambda: len(warnings(vm)) == 2, 'it says so again')
            again = waits(vm)
            check('the recording waits' in vm.qmp.hmp('info tt'), 'info tt')
            for _ in range(250):                # more than there are segments
                vm.qmp.cmd('tt-incident')
            check(vm.qmp.cmd('query-tt')['live'], 'still recorded')
            vm.qmp.error('tt-goto', where='start')
            os.unlink(ballast)
            vm.qmp.cmd('cont')
            wait_until(lambda: vm.qmp.cmd('query-tt')['position'] >
                       again + 1000000, 'it goes on')
            check('trouble' not in vm.qmp.cmd('query-tt'), 'trouble is left')
            vm.qmp.cmd('stop')
            vm.qmp.send('quit')
            vm.wait(0)
            check('tt: recorded' in vm.stderr, vm.stderr)
            check(first <= again, f'{first}, {again}')
        run_tool(tool('tt'), 'check', f'{place}/run')
        check_exact(work, f'{place}/run', serial_wanted=vm.serial, timeout=100)
    finally:
        subprocess.run(['umount', '-l', place], check=False)


@limit(90)
def test_ends_while_it_waits(work):
    """quit and tt record stop end a recording that waits; what was sealed
    replays, and the VM can go on unrecorded."""
    for how in ('quit', 'stop'):
        place = mount_small(work, '3m', name=how)
        try:
            with Vm(work, [*guest_args(work, *ENDLESS), '-tt',
                           f'record,dir={place}/run,checkpoint-interval=0'],
                    name=how, qmp=1) as vm:
                waits(vm)
                if how == 'stop':
                    answer = vm.qmp.cmd('tt-record-stop', 30)
                    check(not answer['whole'], f'{answer}')
                    vm.qmp.cmd('cont')
                    before = vm.cpu_seconds()
                    wait_until(lambda: vm.cpu_seconds() > before + 0.2,
                               'the VM goes on')
                vm.qmp.send('quit')
                vm.wait(0)
                check('is incomplete' in vm.stderr or how == 'stop', vm.stderr)
            check_graceful(replay_status(work, f'{place}/run', f'rep-{how}'),
                           f'run that waited until {how}', (0,), vm.serial)
        finally:
            subprocess.run(['umount', '-l', place], check=False)


@limit(120)
def test_keeps_what_the_user_added(work):
    """A full disk takes the recorder's own checkpoints, not the user's."""
    place = mount_small(work, '6m')
    try:
        with Vm(work, [*guest_args(work, *ENDLESS), '-tt',
                       f'record,dir={place}/run,checkpoint-interval=0.05'],
                name='rec', qmp=1) as vm:
            vm.wait_serial('\n')
            mine = vm.qmp.cmd('tt-checkpoint-add', name='mine', timeout=60)
            waits(vm)
            stored = vm.qmp.cmd('query-tt-checkpoints')
            check(mine['id'] in [c['id'] for c in stored], f'{stored}')
            taken = vm.qmp.cmd('query-tt')['store']['taken']
            check(len(stored) <= 5 < taken, f'{len(stored)} of {taken} are '
                  'left')             # one may have been under way
            wait_until(lambda: 'that you added are kept' in vm.stderr, 'advice')
            vm.qmp.send('quit')
            vm.wait(0)
        run_tool(tool('tt'), 'check', f'{place}/run')
        with stopped_replay(work, f'{place}/run', 'rep') as vm:
            check(mine['id'] in [c['id'] for c in
                                 vm.qmp.cmd('query-tt-checkpoints')
                                 if c['stored']], 'mine is not there')
            digest_at(vm, mine['position'])
            digest_at(vm, end_of(vm))
    finally:
        subprocess.run(['umount', '-l', place], check=False)


def test_on_error_is_one_of_two(work):
    """Nonsense is refused in one sentence."""
    with Vm(work, ['-tt', f'record,dir={work}/r,on-error=ignore'],
            name='no') as vm:
        vm.wait(1)
    check('on-error' in one_sentence(vm, 'on-error=ignore'), vm.stderr)
    with Vm(work, guest_args(work, *ENDLESS), name='att', qmp=1) as vm:
        check('on-error' in vm.qmp.hmp('tt record start on-error=x'), 'HMP')
        vm.qmp.error('tt-record-start', **{'on-error': 'x'})


@limit(60)
def test_attached_goes_on_when_told(work):
    """tt record start on-error=continue: the VM goes on unrecorded; without it,
    it waits."""
    for how in ('continue', None):
        place = mount_small(work, '3m', name=f'a-{how}')
        try:
            with Vm(work, guest_args(work, *ENDLESS), name=f'att-{how}',
                    qmp=1) as vm:
                vm.wait_serial('\n')
                more = {'on-error': how} if how else {}
                vm.qmp.cmd('tt-record-start', 30, dir=f'{place}/run', **more,
                           **{'checkpoint-interval': 0})
                if how:
                    wait_recording_ends(vm, 'space')
                else:
                    waits(vm)
                vm.qmp.send('quit')
                vm.wait(0)
        finally:
            subprocess.run(['umount', '-l', place], check=False)
