# SPDX-License-Identifier: GPL-2.0-or-later
"""A device of another process is driven, recorded, and replayed when it is gone."""

import json
import os

from guests import REBOOT, linux_args, linux_disk
from ttlib import (MACHINE, REPO, Vm, check, check_exact, equal, limit, one_sentence,
                   read_text, record, recorder, seed, tt, wait_until)
from vfu import edu_args, hostile, vfio_device, vfio_server


@limit(120)
def test_plain(work):
    """Without -tt the device works: registers, DMA both ways, interrupts."""
    with vfio_server(work) as (_, path), Vm(work, edu_args(path)) as vm:
        vm.wait()
        check(b'rounds=00000028' in vm.serial, f'the guest says {vm.serial[-200:]}')


@limit(300)
def test_edu(work):
    """A bare-metal guest and its DMA are recorded; ten replays without the server are
    exact."""
    with vfio_server(work) as (server, path):
        run = record(work, edu_args(path))
        server.kill()
    check(b'rounds=00000028' in run.serial, f'the guest says {run.serial[-200:]}')
    for i in range(10):
        check_exact(work, run, name=f'rep{i}')


def test_picky(work):
    """A server answers writes that want no answer, and reads what it has just written:
    it gets that."""
    with vfio_server(work, args=['--picky']) as (server, path):
        run = record(work, edu_args(path))
        check(server.wait(10) == 0, 'the server found something else in memory')
    check(b'rounds=00000028' in run.serial, f'the guest says {run.serial[-200:]}')
    check_exact(work, run)


@limit(400)
def test_nvme(work):
    """Linux's own driver makes a file system on the server's disk; replays without
    server and disk are exact."""
    linux_disk(work)
    disk = os.path.join(work, 'disk.img')
    with vfio_server(work, 'nvme', disk=disk) as (server, path):
        run = record(work, linux_args('nvme0n1,rand') + vfio_device(path), timeout=100)
        server.kill()
    check(b'TT-DONE nvme0n1' in run.serial, f'the guest says {run.serial[-400:]}')
    os.unlink(disk)
    for i in range(int(os.environ.get('TT_REPLAYS', '2'))):
        check_exact(work, run, name=f'rep{i}', timeout=100)


REGISTERS = os.path.join(REPO, 'docs', 'reference', 'registers', 'nvme.txt')


@limit(200)
def test_dialogue(work):
    """tt log --device tells what driver and device said, with names, and plots it."""
    linux_disk(work)
    disk = os.path.join(work, 'disk.img')
    with vfio_server(work, 'nvme', disk=disk) as (_, path):
        run = record(work, linux_args('rand') + vfio_device(path, ',id=disk'),
                     timeout=100)
    check_exact(work, run, timeout=100)
    lines = tt('log', run.dir, '--device', 'disk', '--registers',
               REGISTERS).stdout.splitlines()
    places = [int(line.split()[0]) for line in lines]
    equal(places, sorted(places), 'order of the dialogue')
    text = '\n'.join(lines)
    where = [text.find(words) for words in
             ('CC\n', 'SQ0 tail', 'device reads', 'device writes', 'CQ0 head',
              'interrupt MSI-X 0')]
    check(-1 not in where and where == sorted(where),
          f'the dialogue of the start is not in order: {where}: {text[:3000]}')
    rows = [json.loads(line) for line in
            tt('log', run.dir, '--device', 'disk', '--json').stdout.splitlines()]
    equal(len(rows), len(lines), 'lines of JSON')
    some = tt('log', run.dir, '--device', 'disk', '--registers', REGISTERS, '--from',
              str(places[-20]), '--limit', '5').stdout.splitlines()
    equal(some, lines[-20:-15], 'five lines from a place on')
    plot = tt('log', run.dir, '--device', 'disk', '--timeline').stdout.splitlines()
    equal(len(plot), 33, 'lines of the timeline')
    one_sentence(tt('log', run.dir, '--device', 'nobody', rc=1).stderr, 'no such device')
    bad = os.path.join(work, 'bad.registers')
    with open(bad, 'w', encoding='ascii') as out:
        out.write('0 zz CAP\n')
    one_sentence(tt('log', run.dir, '--device', 'disk', '--registers', bad,
                    rc=1).stderr, 'a bad file of registers')


@limit(120)
def test_killed(work):
    """A server that is killed while it works is one sentence: the guest goes on, sees
    all ones, and the run replays exactly."""
    with vfio_server(work) as (server, path):
        with recorder(work, edu_args(path, 'lost=1'), qmp=1) as vm:
            vm.wait_serial('READY')
            server.kill()
            vm.wait_serial('the device is gone')
            vm.wait(0)
    said = [line for line in vm.stderr.splitlines() if 'vfio-user-pci' in line]
    line = one_sentence('\n'.join(said), 'a server that is gone')
    check('unplugged' in line, line)
    check_exact(work, vm.run, serial_wanted=vm.serial)


@limit(200)
def test_lost(work):
    """A server that lied is lost: what it writes and signals afterwards reaches nobody."""
    for dma in ('messages', 'shared'):
        with vfio_server(work, 'edu-late', dma) as (_, path):
            run = record(work, edu_args(path, 'lost=1', f',dma={dma},interval=1', 'vfulate'),
                         name=dma)
        check(b'id=ffffffff interrupts=00000000 others=00000000' in run.serial,
              f'the guest says {run.serial[-200:]}')
        check_exact(work, run, name=f'{dma}-rep')


def iommu_args(works, caching='on', extra=''):
    return [*linux_args(works, f'intel_iommu=on {extra}', machine='q35'), '-device',
            f'intel-iommu,caching-mode={caching},intremap=off']


@limit(200)
def test_killed_linux(work):
    """A Linux guest whose disk dies goes on, behind an IOMMU, too."""
    linux_disk(work)
    disk = os.path.join(work, 'disk.img')
    for name, args in (('messages', linux_args('idle,rand', 's=8')),
                       ('shared', iommu_args('idle,rand', extra='s=8'))):
        with vfio_server(work, 'nvme', name, disk=disk) as (server, path), \
                recorder(work, args + vfio_device(path, f',dma={name}'), name=name,
                         timeout=100) as vm:
            vm.wait_serial('TT-GUEST-READY', timeout=60)
            server.kill()
            vm.wait(0)
        check('unplugged' in vm.stderr and b'TT-DONE rand' in vm.serial,
              f'the guest says {vm.serial[-400:]}')
        check_exact(work, vm.run, name=f'{name}-rep', serial_wanted=vm.serial, timeout=100)


@limit(120)
def test_direct(work):
    """Without -tt a server with descriptors has guest RAM itself, and cannot be
    recorded then."""
    ram = ['-object', 'memory-backend-memfd,id=ram,share=on,size=64M', '-machine',
           'memory-backend=ram']
    for name, rounds in ('refused', 100000000), ('ends', 100):
        with vfio_server(work, name=name) as (_, path), \
                Vm(work, edu_args(path, f'rounds={rounds}', ',dma=shared') + ram, name,
                   qmp=1 if name == 'refused' else 0) as vm:
            if name == 'refused':
                said = vm.qmp.error('tt-record-start', dir=os.path.join(work, 'run'))
                check('shares guest memory' in said, said)
                vm.qmp.send('quit')
            vm.wait(0)
    check(b'rounds=00000064' in vm.serial, f'the guest says {vm.serial[-200:]}')


@limit(300)
def test_shared_edu(work):
    """With descriptors the server has shadow memory: the guest gets its DMA all the
    same, and ten replays are exact."""
    with vfio_server(work) as (server, path):
        run = record(work, edu_args(path, more=',dma=shared'))
        server.kill()
    check(b'rounds=00000028' in run.serial, f'the guest says {run.serial[-200:]}')
    for i in range(10):
        check_exact(work, run, name=f'rep{i}')


@limit(400)
def test_shared_nvme(work):
    """Linux's driver and a server with shadow memory: the disk is as it should be, and
    replays are exact."""
    linux_disk(work)
    disk = os.path.join(work, 'disk.img')
    with vfio_server(work, 'nvme', disk=disk) as (server, path):
        run = record(work, linux_args('nvme0n1,rand') +
                     vfio_device(path, ',dma=shared'), timeout=120)
        server.kill()
    check(b'TT-DONE nvme0n1' in run.serial, f'the guest says {run.serial[-400:]}')
    for i in range(int(os.environ.get('TT_REPLAYS', '2'))):
        check_exact(work, run, name=f'rep{i}', timeout=100)


def stray(work, interval):
    """Behind a virtual IOMMU a server with shadow memory touches memory that the guest did
    not give it, some before the guest gives it that. Gives what is said of it."""
    linux_disk(work)
    with vfio_server(work, 'nvme-stray', disk=os.path.join(work, 'disk.img')) as (_, path):
        args = [*iommu_args('nvme0n1,rand'),
                *vfio_device(path, f',dma=shared,interval={interval}')]
        with recorder(work, args, timeout=120) as vm:
            vm.wait(0)
    check(b'TT-DONE nvme0n1' in vm.serial, f'the guest says {vm.serial[-400:]}')
    check_exact(work, vm.run, serial_wanted=vm.serial, timeout=100)
    return '\n'.join(line for line in vm.stderr.splitlines() if 'vfio-user-pci' in line)


@limit(300)
def test_stray(work):
    """What a server writes outside of what it was given is reported, once."""
    said = one_sentence(stray(work, 10), 'a stray write')
    check('goes nowhere' in said, said)


@limit(300)
def test_stray_comes_nowhere(work):
    """It does not reach the guest either when the guest gives that memory to the device
    later."""
    equal(stray(work, 0), '', 'what is said where nothing looks')
    check('wrote into holes' in read_text(os.path.join(work, 'vfu.err')),
          'the server found no holes')


@limit(200)
def test_iommu_is_silent(work):
    """An IOMMU that does not tell what it maps costs the guest its device, not the VM."""
    linux_disk(work)
    with vfio_server(work, 'nvme', disk=os.path.join(work, 'disk.img')) as (_, path):
        with recorder(work, [*iommu_args('rand', 'off'), *vfio_device(path, ',dma=shared')],
                      qmp=1, timeout=120) as vm:
            wait_until(lambda: 'does not tell what it maps' in vm.stderr, 'the warning', 60)
            vm.wait_serial('nvme0: ', timeout=60)
            vm.qmp.send('quit')
            vm.wait(0)
    check_exact(work, vm.run, serial_wanted=vm.serial, timeout=100)


VIOMMU = [*('q35' if a == 'pc' else a for a in REBOOT), '-device', 'virtio-iommu-pci']
NOT_RAM, FAR = 'not only, pages of RAM', 'only the first 64 GiB'
TWO_MEMORIES = [word for name in 'ab' for word in
                ('-object', f'memory-backend-ram,id={name},size=32M', '-numa',
                 f'node,memdev={name}')]
HOSTILE_MAPPINGS = (NOT_RAM, FAR, 'goes nowhere', 'is refused')


def check_warnings(said):
    """Each kind at most once, the first two in any case."""
    lines = [line for line in said.splitlines() if not line.startswith('tt: ')]
    kinds = [next((kind for kind in HOSTILE_MAPPINGS if kind in
                   one_sentence(line, 'a warning')), line) for line in lines]
    check(len(set(kinds)) == len(kinds) and {NOT_RAM, FAR} <= set(kinds) <=
          set(HOSTILE_MAPPINGS), f'warnings: {said}')


@limit(60)
def test_viommu(work):
    """A guest gives memory through a virtio-iommu, well and badly: its DMA is right, the VM
    lives, and replays are exact."""
    for interval, more in ((0, []), (10, TWO_MEMORIES)):
        with vfio_server(work, 'edu-bold', f'vfu{interval}') as (_, path):
            run = record(work, edu_args(path, 'reset=1', f',dma=shared,interval={interval}',
                                        'viommu', VIOMMU + more),
                         name=f'rec{interval}')
        check(b'viommu: end' in run.serial and b'FAIL' not in run.serial and
              run.serial.count(b'elsewhere') == 3, f'the guest says {run.serial[-300:]}')
        check_warnings(run.vm.stderr)
        for i in range(2):
            check_exact(work, run, name=f'rep{interval}-{i}')


@limit(120)
def test_slow(work):
    """A server that is slow in each of its requests keeps nobody waiting for longer than
    the deadline: it is lost."""
    with vfio_server(work, 'edu-slow') as (_, path), \
            Vm(work, edu_args(path, 'slow=1', ',timeout=1', 'vfulate')) as vm:
        vm.wait()
    check('unplugged' in vm.stderr and b'id=ffffffff' in vm.serial,
          f'{vm.stderr}; the guest says {vm.serial[-200:]}')


def check_late(serial):
    """What the device wrote at last came at once, all of it, and nothing later."""
    check(b'came=00000400' in serial and b'others=00000000' in serial,
          f'the guest says {serial[-200:]}')


@limit(120)
def test_master(work):
    """A device has DMA to do when it stops being bus master: its last bytes come then, and
    none later, when it is bus master again."""
    with vfio_server(work, 'edu-late') as (_, path):
        run = record(work, edu_args(path, 'master=1', ',dma=shared,interval=1', 'vfulate'))
    check_late(run.serial)
    check_exact(work, run)


@limit(200)
def test_reset(work):
    """The machine is reset while the device has DMA to do, and more MSI vectors than the
    next driver will have: its last bytes come with the reset, and none later."""
    for dma in ('messages', 'shared'):
        with vfio_server(work, 'edu-late', dma) as (_, path):
            run = record(work, edu_args(path, '', f',dma={dma},interval=1', 'vfulate',
                                        REBOOT), name=dma)
        check_late(run.serial)
        check_exact(work, run, name=f'{dma}-rep')


def test_refused(work):
    """What is no server is refused in one sentence."""
    cases = [('vfio-user-pci', 'needs the server'),
             ('vfio-user-pci,socket=none.sock', 'none.sock'),
             ('vfio-user-pci,socket=none.sock,timeout=0', 'takes seconds, from 1')]
    for device, words in cases:
        with Vm(work, [*MACHINE, '-device', device]) as vm:
            equal(vm.wait(), 1, f'exit status with {device}')
            line = one_sentence(vm, device)
            check(words in line, line)
    with vfio_server(work) as (_, path), \
            Vm(work, ['-M', 'q35', '-nodefaults', '-display', 'none', '-device',
                      'intel-iommu', *vfio_device(path, ',dma=shared')]) as vm:
        equal(vm.wait(), 1, 'exit status behind an IOMMU')
        check('does not work behind a virtual IOMMU' in one_sentence(vm, 'dma=shared'),
              vm.stderr)
    with vfio_server(work, name='locked') as (_, path), \
            Vm(work, ['-M', 'q35', '-nodefaults', '-display', 'none', '-device',
                      'intel-iommu', *vfio_device(path, ',dma=shared'), '-overcommit',
                      'mem-lock=on', '-tt', f'record,dir={work}/never']) as vm:
        equal(vm.wait(), 1, 'exit status with locked memory')
        check('memory that is not locked' in one_sentence(vm, 'mem-lock'), vm.stderr)


@limit(240)
def test_hostile(work):
    """Servers that damage, drop, repeat and invent messages cost the guest its device,
    and nobody anything else; what was recorded replays exactly."""
    said = hostile(work, 2035) or 'nothing'         # DMA first of all
    check('sends a request before it answers to the version' in said, said)
    first = seed().randrange(1 << 30)
    said = [hostile(work, first + i) for i in range(12)]
    check(any(said), 'no lie was noticed')
