# SPDX-License-Identifier: GPL-2.0-or-later
"""A Debian kernel at work is recorded, replayed and travelled exactly."""

import json
import os
import random
import time

from guests import linux_args, linux_disk, linux_net
from ttlib import (Gdb, check, check_exact, digest, digest_at, end_of, equal,
                   goto, limit, record, recorder, replay, replayer,
                   run_tool, seed, stopped_replay, tool, wait_until,
                   web_server)

DOWNLOAD = 4 << 20
READY = 'TT-GUEST-READY'


def check_works(serial, *works):
    text = serial.decode(errors='replace')
    check('TT-FAIL' not in text, f'a work failed: {text[-600:]}')
    for work in works:
        check(f'TT-DONE {work}' in text,
              f'the work {work} was not done: {text[-600:]}')


@limit(180)
def test_disk_net_and_more(work):
    """A boot with disk, network, random and process work replays exactly,
    twice, with no disk and no server at hand."""
    payload = random.Random(1).randbytes(DOWNLOAD)
    with web_server({'/file': payload}) as port:
        args = linux_args('vda,net,rand,procs',
                          f'n=60 u=http://10.0.2.2:{port}/file')
        args += linux_disk(work) + linux_net()
        run = record(work, [*args, '-device', 'virtio-rng-pci'],
                     timeout=100)
    check_works(run.serial, 'vda', f'net pings=3 bytes={DOWNLOAD}', 'rand',
                'procs')
    os.unlink(os.path.join(work, 'disk.img'))
    check_exact(work, run, name='first', timeout=100)
    check_exact(work, run, name='second', timeout=100)


@limit(240)
def test_thirty_positions(work):
    """30 random positions of a boot, in random order both ways, have the
    digests of a run straight through, and so have those of the recorder."""
    args = linux_args('idle,rand,hold', 's=2') + linux_disk(work) + linux_net()
    with recorder(work, args, qmp=1) as vm:
        vm.qmp.cmd('query-status')
        vm.wait_serial(READY)
        vm.qmp.cmd('stop')
        recorded = digest(vm)
        vm.qmp.cmd('cont')
        vm.wait_serial('TT-DONE rand')
        vm.qmp.send('quit')
        vm.wait(0)
    rng = seed()
    wanted = {}
    with stopped_replay(work, vm.run, 'straight', timeout=120) as rep:
        end = end_of(rep)
        positions = [rng.randrange(end + 1) for _ in range(30)]
        positions.append(recorded[0])
        for position in sorted(positions):
            wanted[position] = digest_at(rep, position)
    equal(wanted[recorded[0]], recorded, 'digest of the stopped recorder')
    with stopped_replay(work, vm.run, 'random', timeout=200) as rep:
        for position in positions:
            equal(digest_at(rep, position), wanted[position],
                  f'digest at {position}')


@limit(120)
def test_ide(work):
    """The same with an IDE disk and bus-master DMA."""
    disk = linux_disk(work)
    disk[-1] = 'ide-hd,drive=disk0'
    run = record(work, linux_args('sda') + disk, timeout=100)
    check_works(run.serial, 'sda')
    check_exact(work, run, timeout=100)


@limit(150)
def test_q35_nvme_usb(work):
    """The same on q35 with NVMe, VGA, USB and an e1000 card present."""
    disk = linux_disk(work)
    disk[-1] = 'nvme,drive=disk0,serial=1'
    args = linux_args('rand,procs', 'n=40', machine='q35') + disk
    args += ['-device', 'VGA', '-device', 'qemu-xhci', '-device', 'usb-kbd',
             '-device', 'e1000,netdev=n0', '-netdev', 'user,id=n0']
    run = record(work, args, timeout=100)
    check(b'nvme nvme0' in run.serial, 'the kernel found no NVMe disk')
    check_works(run.serial, 'rand', 'procs')
    check_exact(work, run, timeout=100)


@limit(120)
def test_boot_one_insn(work):
    """The first part of a boot has the same digests when it is replayed with
    one instruction per block (the whole of it would take minutes)."""
    places = [20_000_000, 40_000_000, 60_000_000]
    with recorder(work, linux_args('rand,hold'), qmp=1, timeout=60) as vm:
        wait_until(lambda: vm.qmp.cmd('query-tt')['position'] > places[-1], 'so much of it')
        vm.signal(15)
        vm.wait(0)
    with stopped_replay(work, vm.run, 'normal') as rep:
        check(end_of(rep) > places[-1], f'the run ends at {end_of(rep)}')
        wanted = [digest_at(rep, place) for place in places]
    with stopped_replay(work, vm.run, 'one-insn', timeout=100,
                        args=['-accel', 'tcg,one-insn-per-tb=on']) as rep:
        for place, digests in zip(places, wanted):
            goto(rep, 100, position=place)
            equal(digest(rep), digests, f'digest at {place}')


def log_size(path):
    return os.path.getsize(os.path.join(path, 'log'))


def wait_for_seal(vm):
    before = log_size(vm.run)
    wait_until(lambda: log_size(vm.run) > before, 'it seals')


@limit(90)
def test_idle_growth(work):
    """An idle Linux guest adds at most 4 KB per second to its log."""
    seconds = 16
    args = linux_args('idle', 's=1000')
    began = time.monotonic()
    with recorder(work, args, qmp=1) as vm:
        vm.wait_serial(READY)
        for _ in range(2):      # what the boot left is sealed by then
            wait_for_seal(vm)
        since, before = time.monotonic(), log_size(vm.run)
        time.sleep(seconds)
        grown = log_size(vm.run) - before
        seconds = int(time.monotonic() - since)     # more if the host is slow
        check('TT-DONE' not in vm.serial.decode(errors='replace'),
              'the guest was not idle all the time')
        vm.qmp.send('quit')
        vm.wait(0)
        serial = vm.serial
    recorded = time.monotonic() - began
    print(f'{grown} bytes in {seconds} s')
    check(0 < grown <= 4096 * seconds,
          f'{grown} bytes in {seconds} idle seconds')
    began = time.monotonic()
    check_exact(work, vm.run, serial_wanted=serial)
    took = time.monotonic() - began
    check(took < recorded, f'the replay took {took:.1f} s, the recording '
          f'{recorded:.1f} s: idle time is not left out')


def boot_log_bytes(work, name):
    """Bytes of the log of a boot to user space and off, without payload."""
    run = record(work, linux_args(''), name=name, timeout=60)
    text, _ = run_tool(tool('tt'), 'stats', run.dir, '--json')
    stats = json.loads(text)
    size = os.path.getsize(os.path.join(run.dir, 'log'))
    equal(stats['bytes'], size, 'bytes of the log in tt stats')
    print(f'log {size} bytes, payload {stats["payload_stored_bytes"]}')
    return size - stats['payload_stored_bytes']


@limit(120)
def test_boot_log_size(work):
    """The log of a boot, without payload, has at most 1 MB; tt stats
    accounts for every byte of it. (A kernel that is kept waiting by other
    work of the host polls its clocks more often: the better of two counts.)
    """
    sizes = [boot_log_bytes(work, 'first')]
    if sizes[0] > 1_000_000:
        sizes.append(boot_log_bytes(work, 'second'))
    check(min(sizes) <= 1_000_000, f'{sizes} bytes without payload')


@limit(120)
def test_killed(work):
    """A recorder of Linux killed with SIGKILL leaves a run that replays to
    the last sealed byte, up to shortly before the end."""
    rng = seed()
    args = linux_args('sh,rand,hold') + linux_disk(work)
    with recorder(work, args, timeout=60) as vm:
        vm.wait_serial(READY)
        for _ in range(2):              # then that is sealed
            wait_for_seal(vm)
        time.sleep(rng.uniform(0.5, 2))
        vm.kill()
        serial = vm.serial
    rep = replay(work, vm.run, timeout=60)
    check(serial.startswith(rep.serial), 'the replay shows another console')
    check(READY.encode() in rep.serial,
          f'only {len(rep.serial)} of {len(serial)} bytes of console')
    check(rep.stderr.strip(), 'the replay does not say that the run is torn')


@limit(120)
def test_reverse_to_a_function(work):
    """gdb goes back from the end to a kernel function, and there again."""
    run = record(work, linux_args('rand', 'nokaslr syms=kernel_power_off,'
                                  'run_init_process'), timeout=60)
    places = {}
    for line in run.serial.decode(errors='replace').splitlines():
        if line.startswith('TT-SYM '):
            _, address, _, name = line.split()[:4]
            places[name] = int(address, 16)
    check(len(places) == 2, f'the guest named {places}')
    vm = replayer(work, run, ['-S', *Gdb.args(work, 'rep')], qmp=1,
                  timeout=100)
    with vm:
        gdb = Gdb(vm)
        goto(vm, where='end')
        text = gdb(f'hbreak *{places["kernel_power_off"]:#x}',
                   f'hbreak *{places["run_init_process"]:#x}',
                   'reverse-continue', 'p/x $pc', 'reverse-continue',
                   'p/x $pc', 'continue', 'p/x $pc', timeout=90)
        for number, name in enumerate(('kernel_power_off',
                                       'run_init_process',
                                       'kernel_power_off'), 1):
            check(f'${number} = {places[name]:#x}' in text,
                  f'stop {number} is not at {name}: {text[-500:]}')
