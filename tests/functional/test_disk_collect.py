# SPDX-License-Identifier: GPL-2.0-or-later
"""Versions of disks that no checkpoint has are collected, and never one that a checkpoint
has, whatever fails: a disk, the store of checkpoints, the recorder itself."""

import contextlib
import json
import os
import time

from disk_recorder import is_live, kill_recorders
from disker import checked, contents, new_disk, qemu_img
from guests import guest_args, linux_disk
from test_branch import brancher
from test_full import add_full
from test_stores import store_of, versions_of
from ttlib import (REPO, Vm, check, check_exact, equal, limit, read_text, recorder, run_tool,
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
        check('no branch can start from this checkpoint' in said, said)
        faults.put('full', False)
        add_full(vm)
        full = [c['full'] for c in vm.qmp.cmd('query-tt-checkpoints')]
        equal(full, [False, True], 'which are full ones')
        end(vm)
    equal(versions_of(vm.run), {2}, 'the versions')


@limit(60)
def test_flushes(work):
    """What a full checkpoint waits for: a flush of each disk, and one more if it was
    written since the last one."""
    faults = Faults(work)
    with faults.running(recorder(work, disk_args(work), qmp=1)) as vm:
        vm.wait_serial('ticks')
        add_full(vm)                        # the files of checkpoints are made
        vm.qmp.cmd('stop')
        for written, wanted in ((True, 2), (False, 1), (True, 2), (False, 1)):
            if written:
                vm.qmp.hmp('qemu-io disk0 "write -P 1 0 64k"')
            before = len(faults.calls())
            add_full(vm)
            calls = faults.calls()[before:]
            equal(calls, ['sync disk0.tt'] * wanted, f'calls (written: {written})')
        end(vm)


def copies_of(run):
    return sorted(n for n in os.listdir(os.path.join(run, 'disks'))
                  if n.endswith('.qcow2'))


@limit(60)
def test_copies(work):
    """The copy of a disk with snapshot=on goes with its checkpoint, and stays behind no
    checkpoint that could not be made or stored."""
    faults, image = Faults(work), os.path.join(work, 'second.img')
    with open(image, 'wb') as out:
        out.truncate(1 << 20)
    args = [*disk_args(work), '-drive', f'file={image},format=raw,if=none,id=disk1,'
            'snapshot=on', '-device', 'ide-hd,drive=disk1']
    with faults.running(recorder(work, args, qmp=1,
                                 options=',checkpoint-interval=0')) as vm:
        vm.wait_serial('ticks')
        vm.qmp.hmp('qemu-io disk1 "write -P 5 0 64k"')
        in_the_way = os.path.join(vm.run, 'pages')
        with open(in_the_way, 'wb'):
            said = vm.qmp.error('tt-checkpoint-add', full=True)
        check('pages' in said, said)
        os.remove(in_the_way)
        equal(copies_of(vm.run), [], 'copies when the store did not take it')
        for _ in range(2):              # with a store that is new, and one that is not
            faults.put('full')
            said = vm.qmp.error('tt-checkpoint-add', full=True)
            check('no branch can start from this checkpoint' in said, said)
            faults.put('full', False)
            wait_until(lambda: not copies_of(vm.run), 'no copy of one that failed')
            first = add_full(vm)['id']
            vm.qmp.cmd('tt-checkpoint-delete', id=first, timeout=60)
            wait_until(lambda: not copies_of(vm.run), 'no copy of one that was deleted')
        last = add_full(vm)['id']
        end(vm)
    equal(len(copies_of(vm.run)), 1, 'copies')
    check_exact(work, vm.run, serial_wanted=vm.serial)
    copy = os.path.join(vm.run, 'disks', copies_of(vm.run)[0])
    qemu_img('compare', copy, image, rc=1)
    with brancher(work, args, vm.run, last, qmp=1) as branch:
        said = branch.qmp.hmp('qemu-io disk1 "read -P 5 0 64k"')
        check('failed' not in said, said)


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
            wait_until(lambda v=vm: is_live(v) and [
                c for c in v.qmp.cmd('query-tt-checkpoints') if c['full']],
                       'a full checkpoint')
            time.sleep(rng.random() / 2)
            vm.kill()
        checked(store_of(vm.run))
        check('is intact' in tt('check', vm.run).stdout, 'the run')
        listed = json.loads(tt('disk', 'list', vm.run, '--json').stdout)
        spare = [v for v in listed['versions'] if 'checkpoint' not in v]
        check(len(spare) <= 1, f'versions of no checkpoint: {spare}')


def two_disks(work):
    """A Linux with disk.img and second.img."""
    image = os.path.join(work, 'second.img')
    with open(image, 'wb') as out:
        out.truncate(1 << 20)
    return [*linux_disk(work), '-drive', f'file={image},format=raw,if=none,id=disk1',
            '-device', 'virtio-blk-pci,drive=disk1']


def undo_fails(work, fault, words):
    """An undo fails with a fault of its second disk: the VM has both disks that it had, can
    go on with them, and nothing is left of the run that was to begin."""
    faults = Faults(work)
    with faults.running(undo_recorder(work, two_disks(work), timeout=50)) as vm:
        term = Terminal(vm.console)
        term.wait(PROMPT)
        term.line('a=1')
        faults.put(fault)
        said = vm.qmp.error('tt-undo')
        check('could not go back' in said and words in said, said)
        equal([n for n in os.listdir(work) if '-undo-' in n], [], 'runs that are left')
        used = {b['file'] for b in vm.qmp.cmd('query-named-block-nodes')
                if b['drv'] == 'tt'}
        equal(used, {os.path.join(vm.run, 'disks', f'disk{i}.tt') for i in (0, 1)},
              'the disks')
        vm.qmp.cmd('cont')
        for letter in 'ab':
            term.line(f'echo x | dd of=/dev/vd{letter} conv=notrunc,fsync 2> /dev/null; '
                      f'echo "{letter}"=$?', f'{letter}=0')
        vm.qmp.send('quit')
        vm.wait(0)
        term.close()
    for i in 0, 1:
        checked(os.path.join(vm.run, 'disks', f'disk{i}.tt'))


@limit(60)
def test_killed_recordings(work):
    """A recorder with two disks that is killed leaves every version that was acknowledged
    as it was, and a run that replays to its last byte. More: disk-killer --recording."""
    kill_recorders(work, seed(), 8, 1.5)


@limit(60)
def test_undo_without_a_disk(work):
    """The second disk of an undo cannot be made."""
    undo_fails(work, 'no-file-disk1.tt', 'No space left')


@limit(60)
def test_undo_half_way(work):
    """The first disk of an undo is in its place, the second cannot be put there."""
    undo_fails(work, 'no-lock-second.img', 'lock')


def spoil_page_data(path):
    """Of the first group; its table stays (docs/reference/page-store-format.rst)."""
    with open(path, 'r+b') as f:
        head = f.read(12)
        at = int.from_bytes(head[8:], 'little')
        f.seek(at)
        group = f.read(40)
        n, length = (int.from_bytes(group[i:i + 4], 'little') for i in (32, 36))
        f.seek(at + int.from_bytes(group[8:12], 'little') + 18 * n)
        f.write(bytes(length))


@limit(60)
def test_undo_of_damaged_pages(work):
    """An undo finds that RAM of its checkpoint is damaged when both disks are changed
    already: the VM can be reset, but not go on in a state of two moments."""
    with undo_recorder(work, two_disks(work), timeout=50) as vm:
        term = Terminal(vm.console)
        term.wait(PROMPT)
        term.line('a=1')
        spoil_page_data(os.path.join(vm.run, 'pages'))
        said = vm.qmp.error('tt-undo')
        check('could not go back, and cannot go on before a reset' in said, said)
        check('is required' in vm.qmp.error('cont'), 'cont')
        vm.qmp.cmd('set-action', reboot='reset')
        vm.qmp.cmd('system_reset')
        term.forget()
        vm.qmp.cmd('cont')
        term.wait(PROMPT)
        vm.qmp.send('quit')
        vm.wait(0)
        term.close()


@limit(60)
def test_no_holes(work):
    """Where no file can give space back, the space of versions that go is used again."""
    faults, args = Faults(work), disk_args(work)
    args[-3] += ',discard=unmap'
    faults.put('no-holes')
    with faults.running(recorder(work, args, qmp=1)) as vm:
        vm.wait_serial('ticks')
        last = None
        for n in range(9):
            said = vm.qmp.hmp(f'qemu-io disk0 "write -P {n + 1} 0 1m"')
            check('failed' not in said and 'rror' not in said, said)
            new = add_full(vm)['id']
            if last:
                vm.qmp.cmd('tt-checkpoint-delete', id=last, timeout=60)
            last = new
        add_full(vm)
        wait_until(lambda: versions_of(vm.run) == {9, 10}, 'the versions')
        holes = {c for c in faults.calls() if c.startswith('hole')}
        equal(holes, {'hole disk0.tt', 'hole pages'}, 'what was to give space back')
        end(vm)
    used = os.stat(store_of(vm.run)).st_blocks * 512
    check(used < 5 << 20, f'the disk uses {used} bytes')
    check_exact(work, vm.run, serial_wanted=vm.serial)


@limit(60)
def test_grows_beside_a_flush(work):
    """A disk grows while it is flushed."""
    faults, path = Faults(work), new_disk(work, size=1 << 20)
    drive = f'file={path},format=tt,if=none,id=disk'
    with faults.running(Vm(work, ['-machine', 'none', '-nodefaults', '-display', 'none',
                                  '-drive', drive], qmp=1, serial=False)) as vm:
        vm.qmp.hmp('qemu-io disk "truncate 2M"')        # it keeps the permission
        faults.put('slow-sync')
        for number in range(1, 6):
            before = len(faults.calls())
            at = (number - 1) * 65536
            said = vm.qmp.hmp(f'qemu-io disk "aio_write -f -P 1 {at} 64k"')
            wait_until(lambda: len(faults.calls()) > before, 'the flush')
            if len(faults.calls()) > before + 1:
                continue                                # it has ended: once more
            said += vm.qmp.hmp('qemu-io disk "truncate 3M"')
            check('rror' not in said and 'failed' not in said, said)
            break
        else:
            check(False, 'no flush was still running when the disk could grow')
        vm.qmp.cmd('quit')
        vm.wait(0)
    checked(path)
    equal(contents(work, path) == b'\1' * (at + 65536) + bytes((3 << 20) - at - 65536),
          True, 'the disk')


@limit(60)
def test_cannot_grow(work):
    """A disk that could not grow for lack of space is as large as it was."""
    faults, path = Faults(work), new_disk(work, size=1 << 20)
    drive = f'file={path},format=tt,if=none,id=disk'
    with faults.running(Vm(work, ['-machine', 'none', '-nodefaults', '-display', 'none',
                                  '-drive', drive], qmp=1, serial=False)) as vm:
        vm.qmp.hmp('qemu-io disk "write -P 1 0 64k"')
        faults.put('full')
        vm.qmp.hmp('qemu-io disk "truncate 3M"')
        faults.put('full', False)
        vm.qmp.hmp('qemu-io disk "flush"')
        equal(len(contents(work, path, ',file.locking=off')), 1 << 20, 'bytes')
        vm.qmp.hmp('qemu-io disk "truncate 2M"')
        vm.qmp.cmd('quit')
        vm.wait(0)
    checked(path)
    equal(contents(work, path) == b'\1' * 65536 + bytes((2 << 20) - 65536), True, 'the disk')


@limit(60)
def test_not_cached(work):
    """Where nothing can be read without waiting, that is not tried each time; later it
    is again."""
    faults, path = Faults(work), new_disk(work, size=1 << 20)
    drive = f'file={path},format=tt,if=none,id=disk'
    with faults.running(Vm(work, ['-machine', 'none', '-nodefaults', '-display', 'none',
                                  '-drive', drive], qmp=1, serial=False)) as vm:
        vm.qmp.hmp('qemu-io disk "write -P 7 0 1m"')

        def tries(n):
            before = len(faults.calls())
            for i in range(n):
                said = vm.qmp.hmp(f'qemu-io disk "read -P 7 {i * 4096} 4k"')
                check('failed' not in said, said)
            return faults.calls()[before:].count('try disk.tt')

        equal(tries(10), 10, 'tries')
        faults.put('not-cached')
        n = tries(100)
        check(1 <= n <= 20, f'{n} tries of 100')
        faults.put('not-cached', False)
        n = tries(100)
        check(90 <= n, f'{n} tries of 100, later')
        vm.qmp.cmd('quit')
        vm.wait(0)
