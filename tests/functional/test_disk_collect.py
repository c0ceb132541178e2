# SPDX-License-Identifier: GPL-2.0-or-later
"""Versions of disks that no checkpoint has are collected, and never one that a checkpoint
has, whatever fails: a disk, the store of checkpoints, the recorder itself."""

import contextlib
import json
import os
import time

from disker import checked
from guests import guest_args, linux_disk
from test_full import add_full
from test_stores import store_of, versions_of
from ttlib import (REPO, check, check_exact, equal, limit, read_text, recorder, run_tool,
                   seed, tt, wait_until)
from undoer import PROMPT, Terminal, undo_recorder


class Faults:
    """Switches of disk_faults.c, for a Vm that is started by it."""

    def __init__(self, work):
        self.folder = os.path.join(work, 'faults')
        self.library = os.path.join(work, 'disk_faults.so')
        os.mkdir(self.folder)
        run_tool('gcc', '-shared', '-fPIC', '-o', self.library,
                 os.path.join(REPO, 'tests/functional/disk_faults.c'))

    @contextlib.contextmanager
    def running(self, vm):
        os.environ.update(LD_PRELOAD=self.library, TT_FAULTS=self.folder)
        try:
            vm.start()
        finally:
            del os.environ['LD_PRELOAD'], os.environ['TT_FAULTS']
        try:
            yield vm
        finally:
            vm.kill()

    def put(self, name, on=True):
        path = os.path.join(self.folder, name)
        if on:
            with open(path, 'wb'):
                pass
        else:
            os.remove(path)

    def calls(self):
        return read_text(os.path.join(self.folder, 'calls')).splitlines()


def disk_args(work):
    image = os.path.join(work, 'disk.img')
    with open(image, 'wb') as out:
        out.truncate(1 << 20)
    return [*guest_args(work, 'torture', 'rounds=100000 percent=30'), '-drive',
            f'file={image},format=raw,if=none,id=disk0', '-device', 'ide-hd,drive=disk0']


def end(vm):
    vm.qmp.send('quit')
    vm.wait(0)
    checked(store_of(vm.run))
    check('is intact' in tt('check', vm.run).stdout, 'the run')


@limit(60)
def test_stores(work):
    """A checkpoint that the store of checkpoints does not take leaves no version."""
    with recorder(work, disk_args(work), options=',checkpoint-interval=0', qmp=1) as vm:
        vm.wait_serial('ticks')
        in_the_way = os.path.join(vm.run, 'pages')
        with open(in_the_way, 'wb'):
            said = vm.qmp.error('tt-checkpoint-add', full=True)
        check('pages' in said, said)
        os.remove(in_the_way)
        add_full(vm)
        end(vm)
    equal(versions_of(vm.run), {2}, 'the versions')
    check_exact(work, vm.run, serial_wanted=vm.serial)


@limit(60)
def test_stored(work):
    """The first checkpoint is stored while the VM stands: if its disks fail, whoever
    asked is told so, it is no full one, and its version goes."""
    faults = Faults(work)
    with faults.running(recorder(work, disk_args(work), qmp=1,
                                 options=',checkpoint-interval=0')) as vm:
        vm.wait_serial('ticks')
        faults.put('full')
        said = vm.qmp.error('tt-checkpoint-add', full=True)
        check('no branch can start at this checkpoint' in said, said)
        faults.put('full', False)
        add_full(vm)
        full = [c['full'] for c in vm.qmp.cmd('query-tt-checkpoints')]
        equal(full, [False, True], 'which are full ones')
        end(vm)
    equal(versions_of(vm.run), {2}, 'the versions')


@limit(60)
def test_checkpoints(work):
    """That a checkpoint is deleted is on the disk before its version goes there: a power
    cut in between leaves no checkpoint without its version."""
    faults = Faults(work)
    with faults.running(recorder(work, disk_args(work), qmp=1)) as vm:
        vm.wait_serial('ticks')
        vm.qmp.cmd('stop')          # no page goes with it, for which all is flushed
        points = [add_full(vm)['id'] for _ in range(3)]
        before = len(faults.calls())
        vm.qmp.cmd('tt-checkpoint-delete', id=points[1], timeout=60)
        add_full(vm)
        wait_until(lambda: versions_of(vm.run) == {1, 3, 4}, 'the versions')
        calls = [c for c in faults.calls()[before:] if c.split()[-1] in
                 ('checkpoints', 'disk0.tt')]
        equal(calls[:1], ['sync checkpoints'], f'what was flushed first of {calls}')
        end(vm)
    equal(versions_of(vm.run), {1, 3, 4}, 'the versions at the end')


@limit(60)
def test_killed_recorders(work):
    """A recorder that is killed leaves a whole disk and the version of each checkpoint,
    and one more version at most."""
    rng = seed()
    for n in range(4):
        args = disk_args(work)
        with recorder(work, args, f'killed{n}', qmp=1,
                      options=',full=on,checkpoint-interval=0.1') as vm:
            vm.wait_serial('ticks')
            wait_until(lambda v=vm: [c for c in v.qmp.cmd('query-tt-checkpoints')
                                     if c['full']], 'a full checkpoint')
            time.sleep(rng.random() / 2)
            vm.kill()
        checked(store_of(vm.run))
        check('is intact' in tt('check', vm.run).stdout, 'the run')
        listed = json.loads(tt('disk', 'list', vm.run, '--json').stdout)
        spare = [v for v in listed['versions'] if 'checkpoint' not in v]
        check(len(spare) <= 1, f'versions of no checkpoint: {spare}')


@limit(60)
def test_undo_without_a_disk(work):
    """When the second disk of an undo cannot be made, the VM has both disks that it had,
    can go on with them, and nothing is left of the run that was to begin."""
    faults, image = Faults(work), os.path.join(work, 'second.img')
    with open(image, 'wb') as out:
        out.truncate(1 << 20)
    args = [*linux_disk(work), '-drive', f'file={image},format=raw,if=none,id=disk1',
            '-device', 'virtio-blk-pci,drive=disk1']
    with faults.running(undo_recorder(work, args, timeout=50)) as vm:
        term = Terminal(vm.console)
        term.wait(PROMPT)
        term.line('a=1')
        faults.put('no-file-disk1.tt')
        said = vm.qmp.error('tt-undo')
        check('could not go back' in said and 'No space left' in said, said)
        equal([n for n in os.listdir(work) if '-undo-' in n], [], 'runs that are left')
        used = {b['file'] for b in vm.qmp.cmd('query-named-block-nodes')
                if b['drv'] == 'tt'}
        equal(used, {os.path.join(vm.run, 'disks', f'disk{i}.tt') for i in (0, 1)},
              'the disks')
        vm.qmp.cmd('cont')
        term.line('echo x | dd of=/dev/vdb conv=notrunc,fsync 2> /dev/null; echo "r"=$?',
                  'r=0')
        vm.qmp.send('quit')
        vm.wait(0)
        term.close()
    for i in 0, 1:
        checked(os.path.join(vm.run, 'disks', f'disk{i}.tt'))
