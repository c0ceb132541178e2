# SPDX-License-Identifier: GPL-2.0-or-later
"""Disks over NBD: a recording whose disk another process has, and an old version of a disk
that a second guest mounts."""

import os
import socket

from disker import NbdServer, checked, contents
from ext import read_ext4
from guests import guest_args, own_args
from test_branch import brancher, tree_hash
from test_disk_tools import Server, precious_disk, sha, talk_through, talking_guest
from test_full import add_full
from test_stores import store_of
from ttlib import Vm, check, check_exact, equal, limit, read_bytes, recorder, tt


def record_deletion(work, disk):
    """A guest that deletes a file, with a full checkpoint at each step."""
    sock, args = talking_guest(work)
    args += [*disk, '-device', 'virtio-blk-pci,drive=disk0']
    points = {}

    def checkpoint(step):
        points[step] = vm.qmp.cmd('tt-checkpoint-add', timeout=60, full=True,
                                  name=step)['id']

    with recorder(work, args, qmp=1, timeout=250) as vm:
        talk_through(vm, sock, checkpoint)
    checked(store_of(vm.run))
    return vm, args, sock, points


def go_on(work, vm, args, sock, point):
    """A branch from where the file is still there; it deletes the file, too."""
    with brancher(work, args, vm.run, point, qmp=1, timeout=250) as branch:
        branch.qmp.cmd('query-status')
        with socket.socket(socket.AF_UNIX) as talk:
            talk.connect(sock)
            talk.sendall(b'\n')
            branch.wait_serial('TT-STEP deleted', 200)
            talk.sendall(b'\n')
            branch.wait(0)
        check(b'TT-DONE own' in branch.serial, branch.serial[-300:])
    return branch


@limit(400)
def test_recorded(work):
    """A disk over NBD stays as it is while its guest is recorded; the run replays without
    it; with it, old versions can be exported, and a branch goes on."""
    precious, base = precious_disk(work)
    before = read_bytes(base)
    out = os.path.join(work, 'out.raw')
    with NbdServer(work, base) as server:
        vm, args, sock, points = record_deletion(work, [
            '-drive', f'file={server.uri},format=raw,if=none,id=disk0'])
        tt('disk', 'export', vm.run, out, '--at', '@written')
        equal(read_ext4(out, 'precious') == precious, True, 'the file in the export')
        parent = tree_hash(vm.run)
        branch = go_on(work, vm, args, sock, points['written'])
        equal(tree_hash(vm.run), parent, 'the parent of the branch')
        for run in (vm.run, branch.run):
            tt('disk', 'export', run, out, '--force')
            equal(read_ext4(out, 'precious'), b'', f'the file at the end of {run}')
            equal(read_ext4(out, 'made'), b'made in the guest\nmore\n', 'another one')
    equal(read_bytes(base) == before, True, 'the image')
    check_exact(work, vm.run, serial_wanted=vm.serial, timeout=200)
    check_exact(work, branch.run, serial_wanted=branch.serial, timeout=200)
    said = tt('disk', 'export', vm.run, out, '--force', rc=1).stderr
    check(f"connect to '{server.socket}'" in said, said)


@limit(120)
def test_blockdev(work):
    """The same with -blockdev, where NBD is all that there is below the device."""
    image, out = os.path.join(work, 'disk.img'), os.path.join(work, 'out.raw')
    with open(image, 'wb') as f:
        f.write(bytes(range(256)) * 4096)
    before = read_bytes(image)
    with NbdServer(work, image) as server:
        args = [*guest_args(work, 'torture', 'rounds=100000 percent=30'), '-blockdev',
                'driver=nbd,node-name=disk0,server.type=unix,server.path=' + server.socket,
                '-device', 'ide-hd,drive=disk0,id=hd0']
        with recorder(work, args, qmp=1) as vm:
            vm.wait_serial('ticks')
            for value in (5, 6):
                said = vm.qmp.hmp(f'qemu-io -d hd0 "write -P {value} 512k 64k"')
                check('failed' not in said and 'rror' not in said, said)
                point = add_full(vm)['id'] if value == 5 else point
            vm.qmp.send('quit')
            vm.wait(0)
        tt('disk', 'export', vm.run, out, '--at', str(point))
        equal(read_bytes(out) == before[:1 << 19] + b'\5' * (1 << 16) +
              before[(1 << 19) + (1 << 16):], True, 'the disk of the checkpoint')
        with brancher(work, args, vm.run, point, qmp=1) as branch:
            said = branch.qmp.hmp('qemu-io -d hd0 "read -P 5 512k 64k"')
            check('failed' not in said and 'rror' not in said, said)
        equal(contents(work, store_of(vm.run))[1 << 19:][:1 << 16], b'\6' * (1 << 16),
              'the disk at the end')
    equal(read_bytes(image) == before, True, 'the image')
    check_exact(work, vm.run, serial_wanted=vm.serial)


READER = b'''#!/bin/busybox sh
mount -t ext4 -o ro,noload /dev/vda /mnt
sha256sum /mnt/precious /mnt/made
echo "TT-DONE own"
'''


@limit(400)
def test_mounted(work):
    """Another guest mounts, over NBD, the disk of a position before a file was deleted, and
    reads that file; the disk of the end does not have it."""
    precious, base = precious_disk(work)
    vm = record_deletion(work, ['-drive', f'file={base},format=raw,if=none,id=disk0'])[0]
    sock = os.path.join(work, 'old.sock')
    drive = f'driver=nbd,server.type=unix,server.path={sock},readonly=on,if=none,id=old'
    for at, wanted, other in ((['--at', '@written'], precious, b''),
                              ([], b'made in the guest\nmore\n', precious)):
        with Server(vm.run, *at, '--socket', sock):
            with Vm(work, [*own_args(work, {'own/run': READER}), '-drive', drive, '-device',
                           'virtio-blk-pci,drive=old'], name='reader',
                    timeout=150) as reader:
                reader.wait(0)
        check(b'TT-DONE own' in reader.serial, reader.serial[-300:])
        check(sha(wanted).encode() in reader.serial, f'{at}: {reader.serial[-300:]}')
        check(sha(other).encode() not in reader.serial, f'{at}: {reader.serial[-300:]}')
