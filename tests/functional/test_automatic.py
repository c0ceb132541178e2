# SPDX-License-Identifier: GPL-2.0-or-later
"""The recorder's own full checkpoints (full=on): a VM goes on for real from any of them, and
what once kept one from being full does not keep those after it."""

from guests import guest_args, linux_args, linux_disk
from test_branch import brancher, results
from test_disk_collect import Faults, disk_args, end
from test_full import full_points
from ttlib import (check, check_exact, digest_at, equal, limit, recorder, seed,
                   stopped_replay, wait_until)

OFTEN = ',full=on,checkpoint-interval=0.1'


def quit_now(vm):
    vm.qmp.send('quit')
    vm.wait(0)


def same_start(work, parent, point, child):
    """The branch begins with the vCPU that a replay of the parent has there."""
    with stopped_replay(work, parent, 'before') as vm:
        wanted = digest_at(vm, point['position'])
    with stopped_replay(work, child, 'after') as vm:
        equal(digest_at(vm, 0)[1], wanted[1], f'the vCPU at {point}')


@limit(100)
def test_torture(work):
    """A guest that is interrupted all the time goes on from three of them, and each branch
    replays exactly."""
    rng, args = seed(), disk_args(work)
    with recorder(work, args, options=OFTEN, qmp=1) as vm:
        vm.wait_serial('ticks')
        wait_until(lambda: len(full_points(vm)) >= 8, 'full checkpoints')
        points = full_points(vm)
        quit_now(vm)
    check(not [p for p in points if p['pinned']], f'{points}')
    for point in rng.sample(points, 3):
        with brancher(work, args, vm.run, point['id'], qmp=1) as child:
            child.wait_serial('ticks')
            quit_now(child)
        same_start(work, vm.run, point, child.run)
        check_exact(work, child.run, serial_wanted=child.serial)


@limit(300)
def test_linux(work):
    """A Linux that writes to its disk goes on from a random one, to its end; the branch
    replays exactly."""
    rng = seed()
    args = linux_args('vda,vdb,rand') + linux_disk(work) + [
        '-drive', f'file={work}/disk1.img,format=raw,if=virtio']
    with open(f'{work}/disk1.img', 'wb') as out:
        out.truncate(64 << 20)
    with recorder(work, args, options=',full=on,checkpoint-interval=0.5', qmp=1,
                  timeout=150) as vm:
        vm.wait_serial('TT-DONE vda', 100)
        points = full_points(vm)
        vm.wait(0)
    point = rng.choice(points)
    with brancher(work, args, vm.run, point['id'], timeout=150) as child:
        child.wait(0)
    check('rand' in results(child.serial), f'the branch of {point} did not get to its end')
    check_exact(work, child.run, serial_wanted=child.serial, timeout=150)


def more(vm, is_full, count=1):
    """Waits for so many checkpoints of that kind that are not there yet."""
    def new():
        return [c for c in vm.qmp.cmd('query-tt-checkpoints')
                if c['id'] > last and c['full'] == is_full]

    last = max(c['id'] for c in vm.qmp.cmd('query-tt-checkpoints'))
    wait_until(lambda: len(new()) >= count, f'{count} checkpoints, full: {is_full}')


@limit(60)
def test_full_disk(work):
    """While a disk is full they are no full ones; as soon as there is space they are. That
    is said once each time."""
    faults = Faults(work)
    with faults.running(recorder(work, disk_args(work), options=OFTEN, qmp=1)) as vm:
        vm.wait_serial('ticks')
        for _ in range(2):
            more(vm, True)
            faults.put('full')
            more(vm, False, 3)
            faults.put('full', False)
        more(vm, True)
        end(vm)
    equal(vm.stderr.count('no branch can start from checkpoints that are made while'), 2,
          f'warnings ({vm.stderr})')
    check_exact(work, vm.run, serial_wanted=vm.serial)


@limit(60)
def test_plugged(work):
    """A disk that no full checkpoint can have comes and goes: those before and after are
    full ones, those between are kept, too."""
    args = [*guest_args(work, 'torture', 'rounds=100000 percent=30'), '-device',
            'qemu-xhci,id=usb']
    with recorder(work, args, options=OFTEN, qmp=1) as vm:
        vm.wait_serial('ticks')
        more(vm, True)
        vm.qmp.cmd('blockdev-add', driver='null-co', node_name='below')
        vm.qmp.cmd('blockdev-add', driver='copy-on-read', node_name='filter', file='below')
        vm.qmp.cmd('device_add', driver='usb-storage', id='stick', drive='filter',
                   bus='usb.0')
        more(vm, False, 3)
        vm.qmp.cmd('device_del', id='stick')
        more(vm, True)
        quit_now(vm)
    equal(vm.stderr.count('no branch can start'), 1, f'warnings ({vm.stderr})')
    check('leave out the filter' in vm.stderr, vm.stderr)
    check_exact(work, vm.run, serial_wanted=vm.serial)
