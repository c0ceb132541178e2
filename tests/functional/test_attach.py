# SPDX-License-Identifier: GPL-2.0-or-later
"""A recording begins and ends at any moment of a VM's life, and is exact."""

import json
import os
import random
import re
import subprocess
import time

from guests import guest_args, linux_args, linux_disk, linux_net
from test_linux import READY, check_works
from test_robust import ENDLESS, mount_small
from test_token import Hammer, finish_all, looking, poking
from ttlib import (Gdb, TestFailure, Vm, check, digest, digest_at, equal, limit,
                   read_bytes, recorder, replay, seed, short, stopped_replay, tt, wait_until,
                   web_server)

TORTURE = 'rounds=100000 percent=30'
THREADS = {'multi': [], 'single': ['-accel', 'tcg,thread=single']}


def start(vm, name):
    """Begins a recording into WORK/NAME; returns its directory."""
    run = os.path.join(vm.work, name)
    began = len(vm.serial)
    answer = vm.qmp.cmd('tt-record-start', 60, dir=run)
    equal(answer['dir'], run, 'the directory that is recorded into')
    equal(vm.qmp.cmd('query-tt')['mode'], 'record', 'mode')
    vm.console = began
    return run


def stop(vm):
    """Ends the recording; returns what it says of it."""
    answer = vm.qmp.cmd('tt-record-stop', 60)
    check(answer['whole'], f'the recording is not whole: {answer}')
    equal(vm.qmp.cmd('query-tt')['mode'], 'off', 'mode afterwards')
    vm.console = vm.serial[vm.console:]
    return answer


def replays(work, run, console, name, args=(), **kw):
    """The run replays exactly, and shows a part of the recorded console."""
    rep = replay(work, run, args, name, **kw)
    check('replay exact' in rep.stderr,
          f'{name}: the replay does not say exact: {short(rep.stderr)}')
    check(rep.serial in console,
          f'{name}: the console of the replay, {short(rep.serial)}, is no '
          f'part of {short(console)}')
    return rep


def is_running(vm):
    return vm.qmp.cmd('query-status')['status'] == 'running'


def goes_on(vm, text='sum='):
    seen = vm.serial.count(text.encode())
    wait_until(lambda: vm.serial.count(text.encode()) > seen + 1,
               'the guest goes on')


def check_no_failure(vm):
    check(b'FAIL' not in vm.serial, f'the guest failed: {vm.serial[-200:]}')


def lives(vm):
    before = vm.cpu_seconds()
    wait_until(lambda: vm.cpu_seconds() > before + 0.2, 'the VM goes on')


def torture(work, extra=(), **kw):
    return Vm(work, [*guest_args(work, 'torture', TORTURE), *extra], qmp=1,
              **kw)


def attach_often(work, threads, times, seconds):
    rng = random.Random(times)
    runs = []
    with torture(work, THREADS[threads], timeout=100) as vm:
        vm.wait_serial('sum=')
        for number in range(times):
            time.sleep(rng.uniform(0, 0.3))
            run = start(vm, f'run{number}')
            check(is_running(vm), 'the VM does not go on after the start')
            time.sleep(rng.uniform(0, seconds))
            answer = stop(vm)
            check(is_running(vm), 'the VM does not go on after the stop')
            check(answer['position'] > 0, f'nothing was recorded: {answer}')
            runs.append((run, vm.console))
        goes_on(vm)
        vm.qmp.send('quit')
        vm.wait(0)
        check_no_failure(vm)
    for number, (run, console) in enumerate(runs):
        replays(work, run, console, f'rep{number}', timeout=100)


@limit(200)
def test_torture(work):
    """A guest of hazards is recorded five times in its life, with the vCPU
    thread that QEMU chooses by itself; each run replays exactly."""
    attach_often(work, 'multi', 5, 2)


@limit(200)
def test_torture_single(work):
    """The same with thread=single."""
    attach_often(work, 'single', 5, 2)


def churn(work, threads):
    args = guest_args(work, 'torture', 'rounds=100000 percent=10')
    args += ['-device', 'VGA', *THREADS[threads]]
    runs = []
    with Vm(work, args, qmp=4, name=threads, timeout=100) as vm:
        vm.wait_serial('sum=')
        hammers = [Hammer(vm.connect(1), looking(work)),
                   Hammer(vm.connect(2), poking(work)),
                   Hammer(vm.connect(3), [('stop', {}), ('cont', {})])]
        for number in range(12):
            run = start(vm, f'{threads}{number}.run')
            time.sleep(0.25)
            stop(vm)
            runs.append((run, vm.console))
        finish_all(hammers)
        vm.qmp.cmd('cont')
        goes_on(vm)
        check_no_failure(vm)
    for number, (run, console) in enumerate(runs):
        replays(work, run, console, f'{threads}{number}.rep', timeout=100)


@limit(240)
def test_monitors_at_work(work):
    """Recordings begin and end while three monitors look, poke, stop and
    continue; all are answered, and every run replays exactly."""
    for threads in THREADS:
        churn(work, threads)


def part_of(work, guest, times, seconds):
    """Records parts of a guest's long life; returns them."""
    runs = []
    args = guest_args(work, guest, 'rounds=1000000000')
    with Vm(work, args, qmp=1, name=guest) as vm:
        vm.wait_serial('start')
        time.sleep(0.2)
        for number in range(times):
            run = start(vm, f'{guest}{number}.run')
            time.sleep(seconds)
            stop(vm)
            runs.append((run, vm.console))
        lives(vm)
        check_no_failure(vm)
    return runs


@limit(240)
def test_hazards(work):
    """The middle of the life of guests that show one hazard each replays
    exactly."""
    for guest in ('abits', 'codebits', 'exceptions', 'debug', 'btflags',
                  'rdmsr', 'a20', 'ignne', 'dmacode', 'smm', 'rdrand', 'apic',
                  'cpuid', 'selfdma', 'fp', 'smc', 'undef', 'mmiox', 'ins'):
        for run, console in part_of(work, guest, 2, 0.3):
            replays(work, run, console, f'{guest}-rep')


@limit(120)
def test_tsc(work):
    """The time stamp counter never goes back, in and between recordings."""
    for run, console in part_of(work, 'tsc', 20, 0.05):
        replays(work, run, console, 'rep')


@limit(120)
def test_one_insn(work):
    """Such a run replays with one instruction per block."""
    with torture(work, timeout=60) as vm:
        vm.wait_serial('sum=')
        run = start(vm, 'run')
        time.sleep(0.3)
        stop(vm)
        console = vm.console
    replays(work, run, console, 'one',
            args=['-accel', 'tcg,one-insn-per-tb=on'], timeout=100)


@limit(240)
def test_linux(work):
    """Linux at work with disk and network is recorded twice in one process;
    it does its work, and both runs replay exactly."""
    payload = random.Random(1).randbytes(4 << 20)
    runs = []
    with web_server({'/file': payload}) as port:
        args = linux_args('sh,vda,net,procs,rand,hold',
                          f'n=200 u=http://10.0.2.2:{port}/file')
        args += linux_disk(work) + linux_net()
        with Vm(work, [*args, '-device', 'virtio-rng-pci'], qmp=1,
                timeout=150) as vm:
            vm.wait_serial(READY)
            for name, until in (('one', 'TT-DONE vda'), ('two', 'TT-HOLDS')):
                run = start(vm, name)
                vm.wait_serial(until)
                stop(vm)
                runs.append((run, vm.console))
            vm.qmp.send('quit')
            vm.wait(0)
            check_works(vm.serial, 'sh', 'vda', 'net', 'procs', 'rand')
    for number, (run, console) in enumerate(runs):
        replays(work, run, console, f'rep{number}', timeout=100)


def linux_to_its_end(work, args, *works):
    """Recorded from user space on until the guest powers off."""
    with Vm(work, args, qmp=1, timeout=150) as vm:
        vm.qmp.cmd('query-status')      # connected before there is something to be late for
        vm.wait_serial(READY)
        run = start(vm, 'run')
        vm.wait(0)
        check_works(vm.serial, *works)
        console = vm.serial[vm.console:]
    replays(work, run, console, 'rep', timeout=150)


@limit(240)
def test_linux_devices(work):
    """NVMe, an e1000, VGA and USB on q35 are at work before the recording; it
    ends when the guest powers off."""
    disk = linux_disk(work)
    disk[-1] = 'nvme,drive=disk0,serial=1'
    args = linux_args('procs,rand,nvme0n1', 'n=50', machine='q35') + disk
    args += ['-device', 'VGA', '-device', 'qemu-xhci', '-device', 'usb-kbd',
             '-device', 'e1000,netdev=n0', '-netdev', 'user,id=n0']
    linux_to_its_end(work, args, 'procs', 'rand', 'nvme0n1')


@limit(240)
def test_linux_single_ide(work):
    """The same with an IDE disk and thread=single."""
    disk = linux_disk(work)
    disk[-1] = 'ide-hd,drive=disk0'
    args = linux_args('sda,rand') + disk + THREADS['single']
    linux_to_its_end(work, args, 'sda', 'rand')


@limit(120)
def test_ahci(work):
    """The firmware has AHCI's mappings stand while it waits for a key; the
    recording begins then, and what is read afterwards (the disk is chosen
    first) is part of it."""
    disk = os.path.join(work, 'cd.img')
    with open(disk, 'wb') as out:
        out.write(random.Random(2).randbytes(1 << 20))
    args = guest_args(work, 'torture', TORTURE)
    args[args.index('pc')] = 'q35'
    args += ['-drive', f'file={disk},format=raw,if=none,id=cd,readonly=on',
             '-device', 'ide-cd,drive=cd,bootindex=1',
             '-boot', 'menu=on,splash-time=60000']
    with Vm(work, args, qmp=1, timeout=100) as vm:
        wait_until(lambda: disk_reads(vm), 'the firmware reads the disk')
        time.sleep(0.5)
        vm.qmp.cmd('stop')
        before = disk_reads(vm)
        run = start(vm, 'run')
        vm.qmp.cmd('cont')
        for key in ('esc', '2'):
            vm.qmp.hmp(f'sendkey {key}')
            time.sleep(1)
        vm.wait_serial('sum=')
        check(before and disk_reads(vm) > before,
              f'{before} reads before, {disk_reads(vm)} at the end')
        stop(vm)
        console = vm.console
    replays(work, run, console, 'rep')


def disk_reads(vm):
    return sum(device['stats']['rd_operations']
               for device in vm.qmp.cmd('query-blockstats'))


@limit(120)
def test_halted(work):
    """A recording begins and ends while the guest sleeps in HLT."""
    args = guest_args(work, 'hlt', 'rounds=1 nmis=60')
    for threads, extra in THREADS.items():
        with Vm(work, [*args, *extra], qmp=1, name=threads) as vm:
            vm.wait_serial('ready')
            vm.qmp.cmd('inject-nmi')
            time.sleep(0.2)
            run = start(vm, f'{threads}.run')
            for _ in range(10):
                vm.qmp.cmd('inject-nmi')
                time.sleep(0.01)
            time.sleep(0.2)
            stop(vm)
            console = vm.console
            while vm.process.poll() is None:
                try:
                    vm.qmp.cmd('inject-nmi')
                except Exception:
                    break           # the guest has powered off
                time.sleep(0.005)
            vm.wait(0)
            # One more may come before the guest has looked.
            seen = re.search(rb'nmis=([0-9a-f]{8})', vm.serial)
            check(seen and int(seen.group(1), 16) >= 60,
                  f'not 60 NMIs: {vm.serial[-200:]}')
        replays(work, run, console, f'{threads}-rep')


@limit(120)
def test_before_cont(work):
    """A recording begins before the VM has run, and another, and one ends
    before it has run."""
    for threads, extra in THREADS.items():
        name = f'{threads}-'
        with torture(work, ['-S', *extra], name=threads) as vm:
            first = start(vm, f'{name}none')
            equal(stop(vm)['position'], 0, 'position of a run of nothing')
            run = start(vm, f'{name}run')
            check(not is_running(vm), 'the VM runs without cont')
            vm.qmp.cmd('cont')
            vm.wait_serial('sum=')
            stop(vm)
            goes_on(vm)
            console = vm.serial
        replays(work, first, b'', f'{name}rep0')
        rep = replays(work, run, console, f'{name}rep')
        check(b'start' in rep.serial, 'the replay does not begin at the start')


@limit(120)
def test_while_paused(work):
    """A recording begins and ends while the VM is paused, what gdb writes in
    between is part of it, and digests of the recorder hold."""
    with torture(work, Gdb.args(work, 'gdb'), name='gdb') as vm:
        vm.wait_serial('sum=')
        gdb = Gdb(vm)
        vm.qmp.cmd('stop')
        run = start(vm, 'run')
        first = digest(vm)
        gdb(f'set {{int}}{0x2000000 - 64} = 12345', 'set $xmm0.v4_int32[0]=7')
        second = digest(vm)
        vm.qmp.cmd('cont')
        goes_on(vm)
        vm.qmp.cmd('stop')
        third = digest(vm)
        stop(vm)
        check(not is_running(vm), 'the VM runs although it was paused')
        vm.qmp.cmd('cont')
        goes_on(vm)
        console = vm.console
    check(first[1:] != second[1:], 'gdb wrote nothing')
    replays(work, run, console, 'rep')
    with stopped_replay(work, run, 'look') as rep:
        for wanted in (third, first, second):
            equal(digest_at(rep, wanted[0]), wanted, 'digest')


@limit(120)
def test_quit(work):
    """A VM that quits while it is recorded on demand leaves a whole run."""
    with torture(work) as vm:
        vm.wait_serial('sum=')
        run = start(vm, 'run')
        goes_on(vm)
        vm.qmp.send('quit')
        vm.wait(0)
        check('recorded' in vm.stderr, f'it says: {vm.stderr}')
        console = vm.serial
    replays(work, run, console, 'rep')


@limit(120)
def test_stop_of_the_option(work):
    """What -tt record began, tt record stop ends; another one follows."""
    with recorder(work, guest_args(work, 'torture', TORTURE), qmp=1) as vm:
        vm.wait_serial('sum=')
        vm.console = 0
        time.sleep(0.5)
        equal(stop(vm)['dir'], vm.run, 'the directory')
        runs = [(vm.run, vm.console)]
        goes_on(vm)
        vm.qmp.cmd('migrate', uri=f'file:{work}/migration')
        wait_until(lambda: vm.qmp.cmd('query-migrate').get('status') ==
                   'completed', 'a migration that nothing forbids any more')
        vm.qmp.cmd('cont')
        run = start(vm, 'second')
        goes_on(vm)
        stop(vm)
        runs.append((run, vm.console))
    for number, (run, console) in enumerate(runs):
        replays(work, run, console, f'rep{number}')
    with recorder(work, [*guest_args(work, 'torture', TORTURE), '-S'],
                  name='early', qmp=1) as vm:
        vm.console = 0
        equal(stop(vm)['position'], 0, 'position')
        vm.qmp.cmd('cont')
        vm.wait_serial('sum=')
    replays(work, vm.run, b'', 'rep-early')


@limit(120)
def test_reset_and_hotplug(work):
    """Resets and a device that comes and goes, before and while recording."""
    disk = os.path.join(work, 'd.img')
    with open(disk, 'wb') as out:
        out.truncate(1 << 20)
    args = guest_args(work, 'torture', TORTURE)
    args.remove('-no-reboot')
    args += ['-blockdev', f'driver=file,node-name=d0,filename={disk}']
    with Vm(work, args, qmp=1) as vm:
        vm.wait_serial('sum=')
        vm.qmp.cmd('system_reset')
        vm.qmp.cmd('device_add', driver='virtio-blk-pci', drive='d0',
                   id='disk')
        goes_on(vm)
        run = start(vm, 'run')
        vm.qmp.cmd('system_reset')
        goes_on(vm)
        vm.qmp.cmd('device_del', id='disk')
        goes_on(vm)
        stop(vm)
        goes_on(vm)
        console = vm.console
    replays(work, run, console, 'rep')


def refused(vm, command, *words, **arguments):
    message = vm.qmp.error(command, **arguments)
    check(len(message.split()) > 4 and '\n' not in message,
          f'{command}: no sentence: {message}')
    check(any(word in message for word in words),
          f'{command}: the message names none of {words}: {message}')


@limit(120)
def test_refusals(work):
    """What cannot be begins nothing: the VM goes on, and a proper start
    works afterwards."""
    with torture(work) as vm:
        vm.wait_serial('sum=')
        refused(vm, 'tt-record-stop', 'no recording')
        refused(vm, 'tt-record-start', 'directory', dir='/proc/none/here')
        refused(vm, 'tt-record-start', 'directory', dir=vm.serial_path)
        run = start(vm, 'run')
        refused(vm, 'tt-record-start', 'already', dir=f'{work}/other')
        check(not os.path.exists(f'{work}/other'), 'a second run was begun')
        refused(vm, 'migrate', 'record', uri=f'file:{work}/migration')
        stop(vm)
        console = vm.console
        refused(vm, 'tt-record-start', 'already contains a run', dir=run)
        check(is_running(vm), 'the VM stands')
        text = vm.qmp.hmp(f'tt record start {run}')     # this command has no dir=
        check('already contains a run: give another directory or' in text, text)
        text = vm.qmp.hmp(f'tt record start {work}/hmp')
        check('recording into' in text, f'it says {text}')
        text = vm.qmp.hmp('tt record stop')
        check('positions' in text, f'it says {text}')
        for line in ('tt record', 'tt record begin', 'tt record stop'):
            text = vm.qmp.hmp(line)
            check(text.startswith('Error'), f'{line}: {short(text)}')
        text = vm.qmp.hmp('info tt')
        equal(text.strip(), 'tt: off', 'info tt')
        goes_on(vm)
    replays(work, run, console, 'rep')


def machine_test(promise, name, add, *words):
    def test(work):
        args = guest_args(work, 'torture', TORTURE)
        with Vm(work, [*args, *add], qmp=1, name=name) as vm:
            vm.wait_serial('start')
            refused(vm, 'tt-record-start', *words, dir=f'{work}/run')
            check(not os.path.exists(f'{work}/run'), 'a directory was made')
            check(is_running(vm), 'the VM stands')
    test.__doc__ = promise
    return test


test_no_smp = machine_test('Several vCPUs, each in a thread of its own, are '
                           'refused.', 'smp', ['-smp', '2'], 'thread=single')
test_no_icount = machine_test('Instruction counting as a clock is refused.',
                              'icount', ['-icount', 'shift=auto'], 'icount')
test_no_iothread = machine_test('An iothread that is at work is refused.',
                                'io', ['-object', 'iothread,id=io0'],
                                'iothread', '-tt record')


@limit(60)
def test_no_replay(work):
    """A replay cannot be recorded, nor stopped as if it were one."""
    with torture(work) as vm:
        vm.wait_serial('sum=')
        run = start(vm, 'run')
        stop(vm)
    with stopped_replay(work, run) as rep:
        refused(rep, 'tt-record-start', 'replay', dir=f'{work}/other')
        refused(rep, 'tt-record-stop', 'recording')


@limit(90)
def test_after_max_size(work):
    """A recording that max-size ended is stopped like another; a new one
    follows, into a directory of its own choice."""
    args = guest_args(work, *ENDLESS)
    with recorder(work, args, options=',max-size=2M', qmp=1) as vm:
        wait_until(lambda: 'max-size' in vm.stderr, 'the end by max-size')
        vm.console = 0
        stop(vm)
        console = vm.console
        lives(vm)
        second = vm.qmp.cmd('tt-record-start', 60)['dir']
        equal(os.path.dirname(second), work, 'the directory of the directory')
        lives(vm)
        vm.console = 0
        stop(vm)
    replays(work, vm.run, console, 'rep1')
    replays(work, second, vm.console, 'rep2')


@limit(90)
def test_end_of_what_was_recorded(work):
    """When max-size has ended a recording, the warning, query-tt, what stopping it says
    and tt info name the same position, however far the VM went on."""
    for size in ('200K', '2M'):
        with recorder(work, guest_args(work, *ENDLESS), name=f'rec{size}', qmp=1,
                      options=f',max-size={size}') as vm:
            wait_until(lambda: 'ends at position' in vm.stderr, 'the end by max-size')
            before = vm.cpu_seconds()
            wait_until(lambda: vm.cpu_seconds() > before + 0.3, 'the VM goes on')
            told = vm.qmp.cmd('query-tt')
            ended = vm.qmp.cmd('tt-record-stop')
            warned = int(re.search(r'ends at position (\d+)', vm.stderr).group(1))
        recorded = json.loads(tt('info', vm.run, '--json').stdout)['end']
        equal((told['position'], told['end'], ended['position'], warned),
              (recorded,) * 4, f'the end with {size}')
        check(ended['whole'], f'{ended}')


@limit(120)
def test_full_disk(work):
    """A disk too small for the start refuses it; one that fills up later ends
    the recording with a warning. The VM goes on, and can be recorded again."""
    tiny = mount_small(work, '4k')
    try:
        with open(f'{tiny}/rest', 'wb') as out:
            out.write(b'x' * 4096)
        with Vm(work, guest_args(work, *ENDLESS), qmp=1) as vm:
            vm.wait_serial('start')
            refused(vm, 'tt-record-start', 'space', dir=f'{tiny}/run')
            check(not os.path.exists(f'{tiny}/run'), 'a directory stays')
            os.unlink(f'{tiny}/rest')
            refused(vm, 'tt-record-start', 'space', dir=f'{tiny}/run')
            check(not os.path.exists(f'{tiny}/run'), 'a directory stays')
            equal(vm.qmp.cmd('query-tt')['mode'], 'off', 'mode')
            lives(vm)
            subprocess.run(['mount', '-o', 'remount,size=1m', tiny],
                           check=True)
            vm.qmp.cmd('tt-record-start', 60, dir=f'{tiny}/run',
                       **{'on-error': 'continue'})
            wait_until(lambda: 'the recording ends' in vm.stderr,
                       'the recording ends by itself')
            lives(vm)
            check(not vm.qmp.cmd('tt-record-stop')['whole'], 'it is whole')
            run = start(vm, 'run')
            lives(vm)
            stop(vm)
            lives(vm)
        replays(work, run, vm.console, 'rep')
    finally:
        subprocess.run(['umount', '-l', tiny], check=False)


def resident_kib(vm):
    with open(f'/proc/{vm.process.pid}/status', encoding='ascii') as status:
        return next(int(line.split()[1]) for line in status
                    if line.startswith('VmRSS'))


def files_and_threads(vm):
    return tuple(len(os.listdir(f'/proc/{vm.process.pid}/{what}')) for what in ('fd', 'task'))


@limit(120)
def test_leaves_nothing(work):
    """Ten recordings leave no threads, open files or memory behind."""
    with torture(work, timeout=100) as vm:
        vm.wait_serial('sum=')
        counts, sizes = [], []
        for number in range(12):
            start(vm, f'run{number}')
            time.sleep(0.2)
            stop(vm)
            if number == 1:             # a thread is listed for a moment after it was joined
                time.sleep(1)
            counts.append(files_and_threads(vm))
            sizes.append(resident_kib(vm))
        print(f'{counts} {sizes}')
        wait_until(lambda: files_and_threads(vm) == counts[1],
                   f'{counts[1]} open files and threads again, after {counts[-1]}')
        check(sizes[-1] < sizes[1] + 32768, f'resident KiB: {sizes}')
        goes_on(vm)


@limit(100)
def test_moved(work):
    """A VM that moves to other processes by migration, up to six times and at any moment,
    computes what one does that stays, with each state of SSE and x87 on its way."""
    args = guest_args(work, 'fp', 'rounds=300000')
    with Vm(work, args, name='stays') as vm:
        vm.wait()
        wanted = re.search(rb'sum=(\w+)', vm.serial)[1]
    console, rng, came = os.path.join(work, 'console'), seed(), []
    args += ['-tt', 'ready', '-chardev', f'file,id=con,path={console},append=on', '-serial',
             'chardev:con']
    for number in range(7):
        with Vm(work, [*args, *came], name=f'moved{number}', qmp=1, serial=False) as vm:
            check(vm.qmp, 'it is there')
            if number == 6:
                vm.wait()
                break
            time.sleep(rng.uniform(0.1, 0.3))
            state = os.path.join(work, f'state{number}')
            try:
                vm.qmp.cmd('migrate', uri=f'file:{state}')
                wait_until(lambda: vm.qmp.cmd('query-migrate')['status'] == 'completed',
                           'a move')
            except (TestFailure, OSError):  # it was done before: this process was slow
                check(number > 2 and b'sum=' in read_bytes(console), f'{number} moves')
                break
            vm.qmp.send('quit')
            vm.wait(0)
            came = ['-incoming', f'file:{state}']
    equal(re.search(rb'sum=(\w+)', read_bytes(console))[1], wanted, 'what it computes')
