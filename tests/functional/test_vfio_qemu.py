# SPDX-License-Identifier: GPL-2.0-or-later
"""Devices of QEMU's own vfio-user server, built from the same source: Linux drives them,
is recorded, and is replayed when server and disk are gone."""

import os
import re

from guests import linux_args, linux_disk, loop
from matrix_run import need_guests, other
from ttlib import (Gdb, TestFailure, Vm, check, check_exact, equal, limit, one_sentence,
                   read_text, record, recorder, replayer, tt, wait_until)
from vfu import qemu_server, vfio_device

REPLAYS = int(os.environ.get('TT_REPLAYS', '2'))
FLUSH = 'maintenance flush register-cache'
VIOMMU = ['-device', 'intel-iommu,caching-mode=on,intremap=off']
DIRECT_MAP = 0xffff888000000000         # of Linux with nokaslr


def devices_args(works, modules):
    """Debian's generic kernel: it has the drivers. Behind a virtual IOMMU."""
    need_guests()
    return ['-M', 'q35', '-cpu', 'qemu64', '-m', '128', '-nodefaults', '-display', 'none',
            '-no-reboot', '-kernel', other('vmlinuz'), '-initrd', other('initrd.img'),
            '-append', 'console=ttyS0 panic=-1 no_timer_check intel_iommu=on '
            f't={works} m={modules}', *VIOMMU]


def disk_of(work):
    linux_disk(work)
    return ['-drive', f'file={work}/disk.img,format=raw,if=none,id=d']


def recorded(work, served, args, wanted, **kw):
    """A run whose server is gone."""
    with qemu_server(work, *served) as (server, path):
        run = record(work, [*args, *vfio_device(path, ',dma=shared,id=dev')], **kw)
        server.kill()
    for words in wanted:
        check(words in run.serial, f'the guest says {run.serial[-400:]}')
    said = read_text(os.path.join(work, 'rec.stderr'))
    check('warning' not in said, said)
    return run


def replays(work, run):
    for i in range(REPLAYS):
        check_exact(work, run, name=f'rep{i}', timeout=150)


def dialogue(run):
    return tt('log', run.dir, '--device', 'dev').stdout


def check_queue(run, text):
    """tt find tells where the device wrote the first completion into the driver's admin
    queue."""
    queue = int(re.findall(r'driver writes +bar 0 \+30 +4 +<- (\w+)', text)[-1], 16)
    wrote = [int(n) for n in re.findall(rf'^ *(\d+) +device writes {queue:x} ', text, re.M)]
    found = [int(n) for n in re.findall(
        r'^position (\d+)', tt('find', run.dir, f'*(u32 *)({DIRECT_MAP + queue:#x} + 12)',
                        '--written', '--from', str(wrote[0] - 9), '--to',
                        str(wrote[0] + 9)).stdout, re.M)]
    equal(found, [wrote[0] + 1], 'who wrote the first completion')


# A load or a store of 16 bits.
ACCESS = (r'mov(?:zwl| +%(?:[abcd]x|[sd]i|bp|r\d+w),) *(-?0x\w+)?\(%(\w+)\).*?\s+'
          r'position (\d+)')


def held(gdb, position, value):
    """Where the driver has the 16 bits that it is about to write to a register: something
    that it has just loaded or stored."""
    text = gdb(f'monitor tt goto {position}', FLUSH,
               *(['reverse-stepi', 'x/i $pc', 'monitor info tt'] * 120), timeout=200)
    for offset, base, at in re.findall(ACCESS, re.sub(r'tt: replay.*', '', text)):
        address, = gdb.values(f'monitor tt goto {at}', FLUSH,
                              f'p/x ${base} + {offset or 0}')
        seen, = gdb.values(f'monitor tt goto {position}', FLUSH,
                           f'p/x *(unsigned short *){address:#x}')
        if seen == value:
            return address
    raise TestFailure(f'nothing holds {value} before position {position}: {text}')


def check_watched(work, run):
    """Reverse watchpoints on what the driver knows of its queue: each goes back to where
    the driver counted on."""
    text = dialogue(run)
    check_queue(run, text)
    last, head = [(at, int(head, 16)) for at, head in re.findall(
        r'(\d+) +driver writes +bar 0 \+100c +4 +<- (\w+)', text) if int(head, 16) > 2][-1]
    with replayer(work, run, ['-S', *Gdb.args(work, 'gdb')], 'gdb', qmp=1,
                  timeout=200) as vm:
        gdb = Gdb(vm)
        address = held(gdb, int(last), head)
        seen = gdb(f'monitor tt goto {last}', FLUSH,
                   f'watch *(unsigned short *){address:#x}',
                   *(['reverse-continue'] * 3), timeout=200)
    steps = re.findall(r'Old value = (\d+)\s+New value = (\d+)', seen)
    equal(steps, [(str(head - i), str(head - i - 1)) for i in range(3)],
          f'the head of the queue, backwards: {seen}')


@limit(600)
def test_nvme(work):
    """An NVMe disk: a file system, reverse watchpoints on the driver's queue and on its
    own state."""
    args = linux_args('nvme0n1,rand', 'nokaslr')
    served = [*disk_of(work), '-device', 'nvme,id=served,serial=1,drive=d,dbcs=off']
    run = recorded(work, served, args, [b'TT-DONE nvme0n1'], timeout=200)
    os.unlink(os.path.join(work, 'disk.img'))
    replays(work, run)
    check_watched(work, run)


@limit(200)
def test_plain(work):
    """Without -tt the server has guest RAM itself."""
    ram = ['-object', 'memory-backend-memfd,id=ram,share=on,size=256M', '-machine',
           'memory-backend=ram']
    served = [*disk_of(work), '-device', 'nvme,id=served,serial=1,drive=d']
    with qemu_server(work, *served) as (_, path), \
            Vm(work, linux_args('nvme0n1') + ram + vfio_device(path, ',dma=shared')) as vm:
        vm.wait()
    check(b'TT-DONE nvme0n1' in vm.serial, f'the guest says {vm.serial[-400:]}')
    equal(vm.stderr, '', 'what QEMU says')


@limit(120)
def test_no_messages(work):
    """Without dma=shared the driver waits in vain for this server, and QEMU says why."""
    served = [*disk_of(work), '-device', 'nvme,id=served,serial=1,drive=d']
    with qemu_server(work, *served) as (_, path), \
            Vm(work, linux_args('nvme0n1') + vfio_device(path), qmp=1) as vm:
        wait_until(lambda: 'wants shared memory' in vm.stderr, 'the warning', 60)
        vm.qmp.send('quit')
        vm.wait(0)
    one_sentence(vm, 'a device that does nothing')


@limit(600)
def test_e1000e(work):
    """A nic: packets there and back."""
    run = recorded(work, ['-netdev', 'user,id=n', '-device',
                          'e1000e,id=served,netdev=n,romfile='],
                   devices_args('ping:eth0', 'e1000e'), [b'TT-DONE ping:eth0 5'],
                   timeout=200)
    replays(work, run)


@limit(600)
def test_xhci(work):
    """A USB controller with a disk and a serial line."""
    with loop(os.path.join(work, 'loop')) as line:
        served = [*disk_of(work), '-device', 'qemu-xhci,id=served', '-device',
                  'usb-storage,bus=served.0,drive=d', '-chardev', f'pipe,id=c,path={line}',
                  '-device', 'usb-serial,bus=served.0,chardev=c']
        run = recorded(work, served, devices_args(
            'disk:sda,stream:ttyUSB0', 'xhci-pci,usb-storage,sd_mod,ftdi_sio'),
            [b'TT-DONE sda', b'TT-DONE stream:ttyUSB0'], timeout=200)
    replays(work, run)


@limit(600)
def test_iommu(work):
    """Behind a virtual IOMMU: only what the driver maps has a shadow."""
    served = [*disk_of(work), '-device', 'nvme,id=served,serial=1,drive=d,dbcs=off']
    args = linux_args('nvme0n1,rand', 'intel_iommu=on', machine='q35') + VIOMMU
    run = recorded(work, served, args, [b'TT-DONE nvme0n1'], timeout=200)
    replays(work, run)


@limit(300)
def test_reboot(work):
    """Behind a virtual IOMMU the guest reboots, and firmware and Linux find the disk again:
    without the IOMMU and with it."""
    served = [*disk_of(work), '-device', 'nvme,id=served,serial=1,drive=d,dbcs=off']
    args = [a for a in devices_args('raw:nvme0n1,reboot', 'nvme') if a != '-no-reboot']
    done = b'TT-DONE raw:nvme0n1'
    with qemu_server(work, *served) as (_, path), \
            recorder(work, [*args, *vfio_device(path, ',dma=shared')], qmp=1,
                     timeout=200) as vm:
        wait_until(lambda: vm.serial.count(done) == 2, 'the second boot', 150)
        vm.qmp.send('quit')
        vm.wait(0)
    check('warning' not in vm.stderr, vm.stderr)
    check_exact(work, vm.run, serial_wanted=vm.serial, timeout=150)
