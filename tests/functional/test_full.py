# SPDX-License-Identifier: GPL-2.0-or-later
"""Full checkpoints of a recording: they disturb nothing, and the disks of a moment
stay as they were."""

import hashlib
import os
import re
import time

from guests import guest_args, linux_args, linux_disk, linux_net
from test_gdb_lines import Packets
from ttlib import (BUILD, check, check_exact, equal, limit, recorder, run_tool, tool,
                   wait_until)


def add_full(vm, name=None):
    more = {'name': name} if name else {}
    point = vm.qmp.cmd('tt-checkpoint-add', timeout=60, full=True, **more)
    check(point['full'] and point['pinned'] and point['stored'], f'{point}')
    return point


def address_in(guest, name):
    text, _ = run_tool('nm', os.path.join(BUILD, 'guests', f'{guest}.elf'))
    return int(re.search(rf'^([0-9a-f]+) \w {name}$', text, re.M).group(1), 16)


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


def disk_args(work):
    image = os.path.join(work, 'disk.img')
    with open(image, 'wb') as out:
        out.truncate(1 << 20)
    return ['-drive', f'file={image},format=raw,if=none,id=disk0', '-device',
            'ide-hd,drive=disk0']


def full_points(vm):
    return [p for p in vm.qmp.cmd('query-tt-checkpoints') if p['full'] and p['stored']]


@limit(60)
def test_unnoticed(work):
    """The recorder's own full checkpoints stop the VM, but nobody is told: no event of QMP,
    no signal in gdb; and gdb's breakpoints are met where they are."""
    path = os.path.join(work, 'gdb')
    args = [*guest_args(work, 'panic', 'how=0'), *disk_args(work), '-gdb',
            f'unix:{path},server=on,wait=off']
    with recorder(work, args, options=',full=on,checkpoint-interval=0.1', qmp=1,
                  timeout=50) as vm:
        vm.wait_serial('working')
        gdb = Packets(path)
        before = len(full_points(vm))
        vm.qmp.events.clear()
        gdb.send('vCont;c')
        wait_until(lambda: len(full_points(vm)) >= before + 5, 'full checkpoints')
        gdb.interrupt()
        check(gdb.answer().startswith('T02'), 'the only stop is that of gdb')
        vm.qmp.event('RESUME')
        vm.qmp.event('STOP')
        told = [m['event'] for m in vm.qmp.events if m['event'] in ('STOP', 'RESUME')]
        equal(told, [], 'events but those of gdb')
        at = address_in('panic', 'on_timer')
        equal(gdb(f'Z1,{at:x},1'), 'OK', 'a breakpoint')
        before = len(full_points(vm))
        for _ in range(300):
            reply = gdb('vCont;c')
            check(reply.startswith('T05'), reply)
            equal(int.from_bytes(bytes.fromhex(gdb('p10'))[:4], 'little'), at, 'where')
            gdb('vCont;s')
        check(len(full_points(vm)) > before, 'no full checkpoint meanwhile')
        gdb(f'z1,{at:x},1')
        gdb.send('vCont;c')
        vm.qmp.send('quit')
        vm.wait(0)
        gdb.close()
    check_exact(work, vm.run, serial_wanted=vm.serial)
