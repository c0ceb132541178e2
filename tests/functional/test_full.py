# SPDX-License-Identifier: GPL-2.0-or-later
"""Full checkpoints of a recording: they disturb nothing, and the disks of a moment
stay as they were."""

import hashlib
import os
import time

from guests import guest_args, linux_args, linux_disk, linux_net
from ttlib import (check, check_exact, equal, limit, recorder, run_tool, tool,
                   wait_until)


def add_full(vm, name=None):
    more = {'name': name} if name else {}
    point = vm.qmp.cmd('tt-checkpoint-add', timeout=60, full=True, **more)
    check(point['full'] and point['pinned'] and point['stored'], f'{point}')
    return point


def image_hash(path, fmt=None):
    """Hash of what a guest would read."""
    raw = path + '.as-raw'
    source = ['-f', fmt] if fmt else []
    run_tool(tool('qemu-img'), 'convert', '-U', *source, '-O', 'raw', path, raw)
    with open(raw, 'rb') as f:
        value = hashlib.sha256(f.read()).hexdigest()
    os.unlink(raw)
    return value


@limit(120)
def test_torture(work):
    """A guest that is interrupted all the time, with full checkpoints."""
    with recorder(work, guest_args(work, 'torture', 'rounds=100000 percent=30'),
                  qmp=1, timeout=100) as vm:
        vm.wait_serial('\n')
        for _ in range(8):
            add_full(vm)
            time.sleep(0.2)
        vm.qmp.send('quit')
        vm.wait(0)
    check_exact(work, vm.run, serial_wanted=vm.serial, timeout=100)


@limit(200)
def test_linux(work):
    """Linux with a raw disk and network: the image never changes."""
    disk = linux_disk(work)
    image = os.path.join(work, 'disk.img')
    before = image_hash(image, 'raw')
    with recorder(work, linux_args('vda,net,rand,procs,hold', 'n=50') +
                  disk + linux_net(), qmp=1, timeout=150) as vm:
        vm.wait_serial('Run /init')      # earlier Linux calibrates its timers
        point = add_full(vm, 'early')
        check('version 1 of' in point['notes'] and 'disk0.tt' in point['notes'],
              f'notes: {point["notes"]}')
        vm.wait_serial('TT-HOLDS')
        add_full(vm)
        vm.qmp.send('quit')
        vm.wait(0)
    equal(image_hash(image, 'raw'), before, 'image after the run')
    check_exact(work, vm.run, serial_wanted=vm.serial, timeout=150)


@limit(120)
def test_by_itself(work):
    """Where each disk has a store, the recorder's own checkpoints are full ones, and
    nobody is told that the VM stops for them. Elsewhere they are not, but on request."""
    def flags(name, options, disk, wanted):
        image = os.path.join(work, f'{name}.img')
        with open(image, 'wb') as out:
            out.truncate(1 << 20)
        drive = f'file={image},format=raw,if=none,id=disk0{disk}'
        args = [*guest_args(work, 'torture', 'rounds=100000 percent=30'), '-drive', drive,
                '-device', 'ide-hd,drive=disk0']
        with recorder(work, args, name, qmp=1, timeout=60,
                      options=f',checkpoint-interval=0.1{options}') as vm:
            def points():
                return vm.qmp.cmd('query-tt-checkpoints')

            vm.wait_serial('\n')
            wait_until(lambda: sum(p['stored'] for p in points()) >= 4,
                       'checkpoints')
            full = [p['full'] for p in points()[1:]]
            equal(set(full), {wanted}, f'{name}: full')
            told = {message['event'] for message in vm.qmp.events}
            equal(told & {'STOP', 'RESUME'}, set(), f'{name}: events')
            vm.qmp.send('quit')
            vm.wait(0)
        check('warning' not in vm.stderr, vm.stderr)
        return vm

    vm = flags('private', '', '', True)
    check_exact(work, vm.run, serial_wanted=vm.serial, timeout=60)
    flags('off', ',full=off', '', False)
    flags('image', ',disk=image', '', False)
    flags('snapshot', '', ',snapshot=on', False)
    flags('on', ',full=on', ',snapshot=on', True)
