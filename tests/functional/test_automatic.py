# SPDX-License-Identifier: GPL-2.0-or-later
"""The recorder's own full checkpoints (full=on): a VM goes on for real from any of them, and
what once kept one from being full does not keep those after it."""

import contextlib
import json
import os
import signal
import time

from guests import guest_args, linux_args, linux_disk
from many_branches import used
from test_branch import brancher, refused, results
from test_disk_collect import Faults, disk_args, end
from test_full import add_full, full_points
from ttlib import (REPO, check, check_exact, digest_at, equal, limit, read_bytes, record,
                   recorder, run_tool, seed, stopped_replay, tt, wait_until)

OFTEN = ',full=on,checkpoint-interval=0.1'


def quit_now(vm):
    vm.qmp.send('quit')
    vm.wait(0)


def same_start(work, parent, point, child):
    """The branch begins with the vCPU and the RAM that a replay of the parent has there.
    (Digests of RAM may differ: one has seen more ROMs.)"""
    def low_ram(vm):
        path = os.path.join(work, 'ram')
        vm.qmp.cmd('pmemsave', val=0, size=4 * MIB, filename=path)
        return read_bytes(path)

    with stopped_replay(work, parent, 'before') as vm:
        wanted = digest_at(vm, point['position'])[1], low_ram(vm)
    with stopped_replay(work, child, 'after') as vm:
        equal(digest_at(vm, 0)[1], wanted[0], f'the vCPU at {point}')
        check(low_ram(vm) == wanted[1], f'the RAM at {point} is another one')


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


def said_at(run, text):
    """The position at which the serial port was told the first byte of a text."""
    out = [line.split() for line in tt('log', run, '--kind', 'pio-out').stdout.splitlines()
           if 'port=0x3f8 ' in line]
    told = bytes(int(words[-1].split('=')[1], 16) for words in out)
    check(text in told, f'{text} was not said')
    return int(out[told.index(text)][0])


@limit(300)
def test_linux(work):
    """A Linux that writes to its disk goes on from a random one, to its end; the branch
    replays exactly."""
    rng = seed()
    args = linux_args('vda,vdb,rand') + linux_disk(work) + [
        '-drive', f'file={work}/disk1.img,format=raw,if=virtio']
    with open(f'{work}/disk1.img', 'wb') as out:
        out.truncate(64 << 20)
    run = record(work, args, options=',full=on,checkpoint-interval=0.5', timeout=150).dir
    before = said_at(run, b'TT-DONE vda')
    points = [p for p in json.loads(tt('info', run, '--json').stdout)['full']
              if p['position'] < before]
    check(points, f'no full checkpoint before position {before}')
    point = rng.choice(points)
    with brancher(work, args, run, point['checkpoint'], timeout=150) as child:
        child.wait(0)
    check('rand' in results(child.serial), f'the branch of {point} did not get to its end')
    check_exact(work, child.run, serial_wanted=child.serial, timeout=150)


@limit(60)
def test_full_disk_and_a_branch(work):
    """When the disk is full, checkpoints make room for the log; but not the one where a
    branch starts."""
    args, full = with_disk(work, MIB), os.path.join(work, 'full')
    library = os.path.join(work, 'full_disk.so')
    run_tool('gcc', '-shared', '-fPIC', '-o', library,
             os.path.join(REPO, 'tests/functional/full_disk.c'))
    os.environ.update(LD_PRELOAD=library, TT_NO_SPACE=full, TT_NO_SPACE_IN='/pages')
    with recorder(work, args, options=OFTEN, qmp=1) as vm:
        for name in 'LD_PRELOAD', 'TT_NO_SPACE', 'TT_NO_SPACE_IN':
            del os.environ[name]
        vm.wait_serial('working')
        more(vm, True, 2)
        child = branch_of(work, args, vm.run, full_points(vm)[-1]['id'])
        with open(full, 'wb'):
            wait_until(lambda: 'where a branch starts' in vm.stderr, 'what is kept')
        end(vm)
    check_exact(work, child.run, serial_wanted=child.serial)
    check_exact(work, vm.run, serial_wanted=vm.serial)


def more(vm, is_full, count=1):
    """Waits for so many checkpoints of that kind that are not there yet."""
    def new():
        return [c for c in vm.qmp.cmd('query-tt-checkpoints')
                if c['id'] > last and c['full'] == is_full]

    last = max((c['id'] for c in vm.qmp.cmd('query-tt-checkpoints')), default=0)
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


@limit(60)
def test_alternate(work):
    """Of two causes that alternate each is told once."""
    def plug(stick):
        vm.qmp.cmd('device_add', driver='usb-storage', id=f'stick{stick}',
                   drive=f'filter{stick}', bus='usb.0')

    args = [*guest_args(work, 'torture', 'rounds=100000 percent=30'), '-device',
            'qemu-xhci,id=usb']
    with recorder(work, args, options=OFTEN, qmp=1) as vm:
        vm.wait_serial('ticks')
        for stick in range(2):
            vm.qmp.cmd('blockdev-add', driver='null-co', node_name=f'below{stick}')
            vm.qmp.cmd('blockdev-add', driver='copy-on-read', node_name=f'filter{stick}',
                       file=f'below{stick}')
        plug(0)
        plug(1)
        more(vm, False, 2)
        for stick in range(4):
            vm.qmp.cmd('device_del', id=f'stick{stick % 2}')
            more(vm, False, 2)
            plug(stick % 2)
        quit_now(vm)
    equal(vm.stderr.count('no branch can start'), 2, f'warnings ({vm.stderr})')


@limit(60)
def test_impossible(work):
    """Nothing of a disk with snapshot=on is copied for a full checkpoint that cannot be,
    because another disk is behind a filter."""
    with open(f'{work}/disk.img', 'wb') as out:
        out.truncate(1 << 20)
    args = [*guest_args(work, 'torture', 'rounds=100000 percent=30'), '-drive',
            f'file={work}/disk.img,format=raw,if=none,id=disk0,snapshot=on', '-device',
            'ide-hd,drive=disk0', '-blockdev', 'null-co,node-name=below', '-blockdev',
            'copy-on-read,node-name=filter,file=below', '-device', 'ide-hd,drive=filter']
    with recorder(work, args, options=OFTEN, qmp=1) as vm:
        vm.wait_serial('ticks')
        more(vm, False, 3)
        quit_now(vm)
    equal(vm.stderr.count('no branch can start'), 1, f'warnings ({vm.stderr})')
    check('leave out the filter' in vm.stderr, vm.stderr)
    check(not os.path.exists(os.path.join(vm.run, 'disks')), 'something was copied')
    check_exact(work, vm.run, serial_wanted=vm.serial)


def runs(vm):
    wait_until(lambda: vm.qmp.cmd('query-tt')['position'] > 100000, 'that it runs')


MIB = 1 << 20
HEAD, KEPT, EACH, WRITES = 32 * MIB, 64 * MIB, 16 * MIB, 20


def with_disk(work, size):
    with open(f'{work}/disk.img', 'wb') as out:
        out.truncate(size)
    return [*guest_args(work, 'panic', 'how=0'), '-drive',
            f'file={work}/disk.img,format=raw,if=none,id=disk0', '-device',
            'ide-hd,drive=disk0']


def branch_of(work, args, parent, point):
    """The Vm of a branch that has run and ended."""
    with brancher(work, args, parent, point, f'child{point}', qmp=1) as child:
        runs(child)
        quit_now(child)
    return child


def write_all(vm, byte):
    said = vm.qmp.hmp(f'qemu-io disk0 "write -P {byte} 0 {HEAD}"')
    check('failed' not in said and 'rror' not in said, said)


@limit(60)
def test_asked_for(work):
    """With max-size, when those that the user asked for keep more than there is for all:
    the newest four are full all the same, and that is said once."""
    args = with_disk(work, HEAD)
    with recorder(work, args, options=f',full=on,checkpoint-interval=0.1,max-size='
                  f'{3 * EACH}', qmp=1) as vm:
        vm.wait_serial('working')
        write_all(vm, 1)
        mine = add_full(vm)['id']
        write_all(vm, 2)
        more(vm, True, 4)
        more(vm, True, 4)
        full = full_points(vm)
        os.mkdir(os.path.join(work, 'elsewhere'))
        said = refused(work, args, vm.run, mine, 'elsewhere/child')
        check('knows only branches beside it' in said, said)
        end(vm)
    check(mine in [p['id'] for p in full], f'{mine} is gone')
    check(3 <= len([p for p in full if not p['pinned']]) <= 4, f'the newest: {full}')
    equal(vm.stderr.count('for the newest 4'), 1, f'warnings ({vm.stderr})')
    check_exact(work, vm.run, serial_wanted=vm.serial)
    os.truncate(os.path.join(vm.run, 'disks', 'disk0.tt'), MIB)
    said = refused(work, args, vm.run, mine)
    check('which is needed, cannot be used' in said, said)


@limit(60)
def test_thinned(work):
    """With max-size some of them go again, but for one where a branch beside the run
    began: the branch still replays."""
    args = with_disk(work, MIB)
    with recorder(work, args, options=f'{OFTEN},max-size={24 * MIB}', qmp=1) as vm:
        vm.wait_serial('working')
        more(vm, True, 3)
        vm.qmp.cmd('stop')              # or it may be thinned out before the branch is there
        first = full_points(vm)[0]['id']
        child = branch_of(work, args, vm.run, first)
        vm.qmp.cmd('cont')
        wait_until(lambda: max(p['id'] for p in full_points(vm)) >= first + 20 >
                   first + len(full_points(vm)) + 5, 'that some are thinned out')
        check(first in [p['id'] for p in full_points(vm)], f'{first} is gone')
        end(vm)
    check_exact(work, child.run, serial_wanted=child.serial)


def files_of(process):
    """Those that it has open."""
    files, folder = set(), f'/proc/{process.pid}/fd'
    for fd in os.listdir(folder):
        with contextlib.suppress(OSError):
            files.add(os.readlink(os.path.join(folder, fd)))
    return files


def caught(work, args, parent, point, number):
    """A branch that stands where it has its disks and no manifest yet; None: it was missed."""
    child = brancher(work, args, parent, point, f'child{number}', qmp=1).start()
    disks = {os.path.join(run, 'disks', 'disk0.tt') for run in (parent, child.run)}
    while child.process.poll() is None and not disks <= files_of(child.process):
        pass
    time.sleep(0.01 * number)           # elsewhere each time
    if child.process.poll() is None:
        os.kill(child.process.pid, signal.SIGSTOP)
        if not os.path.exists(os.path.join(child.run, 'manifest')):
            return child
    child.kill()
    return None


@limit(100)
def test_overtaken(work):
    """A checkpoint that becomes plain while a branch is being made there: the branch says
    so, and leaves nothing."""
    args, n_caught = with_disk(work, HEAD), 0
    with recorder(work, args, options=f',full=on,checkpoint-interval=0.3,max-size='
                  f'{3 * EACH}', qmp=1) as vm:
        vm.wait_serial('working')
        write_all(vm, 1)
        add_full(vm)
        write_all(vm, 2)
        for n in range(3):              # later the store is at its limit, and the recorder
            more(vm, True)              # decides before that is on disk
            point = full_points(vm)[-1]['id']
            child = caught(work, args, vm.run, point, n)
            if not child:
                continue
            wait_until(lambda: point not in [p['id'] for p in full_points(vm)],
                       f'that {point} is plain')
            more(vm, True)
            more(vm, True)
            os.kill(child.process.pid, signal.SIGCONT)
            child.wait(1)
            check(not os.path.exists(child.run), f'it left {child.run}')
            n_caught += 1
            break
        end(vm)
    check(n_caught, 'no branch was caught before it had a manifest')


def undecided(vm, hold):
    """The id of a full checkpoint that the recorder has let go in memory, while its files
    still have it: they are written when the file HOLD is gone."""
    def ids():
        return {p['id'] for p in full_points(vm)}

    for _ in range(100):
        more(vm, True, 2)
        with open(hold, 'w'):
            known, end_at = ids(), time.monotonic() + 2
        while time.monotonic() < end_at:
            gone = known - ids()
            if gone:
                return min(gone)
            time.sleep(0.01)
        os.unlink(hold)
    return check(False, 'nothing was thinned out')


@limit(100)
def test_decided(work):
    """A branch from a checkpoint that the recorder has just decided to delete, when that is
    not on disk yet: the branch waits for it, and says so. Else its replay would lack RAM."""
    args, hold = with_disk(work, MIB), os.path.join(work, 'hold')
    slow = os.path.join(work, 'slow_disk.so')
    run_tool('gcc', '-shared', '-fPIC', '-o', slow,
             os.path.join(REPO, 'tests/functional/slow_disk.c'))
    os.environ.update(LD_PRELOAD=slow, SLOW_WHILE=hold, SLOW_FILE='checkpoints')
    with recorder(work, args, options=f'{OFTEN},max-size={24 * MIB}', qmp=1) as vm:
        for name in 'LD_PRELOAD', 'SLOW_WHILE', 'SLOW_FILE':
            del os.environ[name]
        vm.wait_serial('working')
        point = undecided(vm, hold)
        child = brancher(work, args, vm.run, point, qmp=1).start()
        manifest = os.path.join(child.run, 'manifest')
        wait_until(lambda: os.path.exists(manifest) or child.process.poll() is not None,
                   'the manifest of the branch')
        time.sleep(1)                   # for it to look at its parent
        os.unlink(hold)
        child.wait(1)
        check(not os.path.exists(child.run), f'it left {child.run}')
        check(f'checkpoint {point}' in child.stderr, child.stderr)
        end(vm)
    check_exact(work, vm.run, serial_wanted=vm.serial)


@limit(100)
def test_bounded(work):
    """With max-size, what they keep of the disks is bounded: the oldest are full no more,
    but for the user's and those where a branch begins, and go on to serve `tt goto`."""
    args = with_disk(work, HEAD)
    with recorder(work, args, options=f',full=on,checkpoint-interval=0.3,max-size='
                  f'{3 * KEPT}', qmp=1, timeout=90) as vm:
        vm.wait_serial('working')
        mine = add_full(vm)['id']
        more(vm, True)
        first = [p for p in full_points(vm) if not p['pinned']]
        child = branch_of(work, args, vm.run, first[0]['id'])
        for n in range(WRITES):
            said = vm.qmp.hmp(f'qemu-io disk0 "write -P {n + 1} {n % 2 * EACH} {EACH}"')
            check('failed' not in said and 'rror' not in said, said)
            more(vm, True)
        points = vm.qmp.cmd('query-tt-checkpoints')
        end(vm)
    taken = used(os.path.join(vm.run, 'disks'))
    print(f'{WRITES * EACH} bytes were written, RUN/disks takes {taken}')
    check(taken < HEAD + KEPT + 4 * EACH, f'RUN/disks takes {taken}')
    full = {p['id'] for p in points if p['full']}
    plain = [p for p in points[1:] if not p['full']]
    check({mine, first[0]['id']} <= full and len(full) > 3,
          f'{mine} and {first[0]}; full ones: {full}')
    check(len(plain) > WRITES // 2, f'{len(plain)} are full no more')
    said = refused(work, args, vm.run, plain[0]['id'])
    check('no full checkpoint' in said, said)
    check_exact(work, child.run, serial_wanted=child.serial)
    for point in max(full), first[0]['id']:
        again = branch_of(work, args, vm.run, point)
        check_exact(work, again.run, serial_wanted=again.serial)
    check_exact(work, vm.run, serial_wanted=vm.serial)
