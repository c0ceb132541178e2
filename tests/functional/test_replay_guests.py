# SPDX-License-Identifier: GPL-2.0-or-later
"""Each bare-metal guest is recorded and replays exactly, in any block shape.

The guests print checksums over what they saw and over where each interrupt
came, so a console that is equal byte for byte says a lot; the replay itself
compares every output and the digest at the end.
"""

import json
import re

from guests import CPU_MAX, GUESTS, guest_args
from ttlib import (Vm, check, check_exact, equal, limit, record, recorder, replay, tt)

ONE_INSN = ['-accel', 'tcg,one-insn-per-tb=on']
TINY_CACHE = ['-accel', 'tcg,tb-size=1']


def ended_well(run, name):
    check(f'{name}: end'.encode() in run.serial,
          f'guest {name} did not end while recorded: {run.serial[-200:]}')
    check(b'FAIL' not in run.serial,
          f'guest {name} found a fault while recorded: {run.serial[-200:]}')


def replay_test(name):
    def test(work):
        run = record(work, guest_args(work, name))
        ended_well(run, name)
        check_exact(work, run, name='again')
        check_exact(work, run, ONE_INSN, name='one-insn')
    test.__doc__ = (f'Guest {name} replays exactly, as recorded and with one '
                    'instruction per block.')
    return limit(90)(test)


for _name in GUESTS:
    globals()[f'test_{_name}'] = replay_test(_name)


@limit(150)
def test_torture_long(work):
    """The torture guest in full (some seconds) replays exactly, also with a
    translation cache so small that it is flushed all the time."""
    run = record(work, guest_args(work, 'torture', ''))
    ended_well(run, 'torture')
    check_exact(work, run, name='again')
    check_exact(work, run, TINY_CACHE, name='tiny-cache')


def test_watch_when_full(work):
    """A guest's watchpoint traps at its instruction also when the buffer of translated
    code is full just then: the guest looks, and a replay with room is exact."""
    run = record(work, [*guest_args(work, 'debug', 'rounds=1 parts=16'), *TINY_CACHE])
    ended_well(run, 'debug')
    check_exact(work, run)


def test_recorded_one_insn(work):
    """A recording made with one instruction per block replays normally."""
    run = record(work, [*guest_args(work, 'torture', 'rounds=1 percent=10'),
                        *ONE_INSN])
    ended_well(run, 'torture')
    check_exact(work, run)


def test_q35(work):
    """Machine q35 with its devices: record and replay of a guest."""
    args = guest_args(work, 'mmiox')
    args[args.index('pc')] = 'q35'
    run = record(work, args)
    ended_well(run, 'mmiox')
    check_exact(work, run, name='again')
    check_exact(work, run, ONE_INSN, name='one-insn')


def test_default_devices(work):
    """A machine with all default devices (VGA, network card, floppy,
    CD-ROM) needs no option at replay."""
    drop = {'-nodefaults'}
    args = [a for a in guest_args(work, 'torture') if a not in drop]
    run = record(work, [*args, '-monitor', 'none'])
    ended_well(run, 'torture')
    check_exact(work, run)


def test_many_devices(work):
    """A crowd of devices (virtio, NVMe, USB, sound card, watchdog, e1000)
    initialized by the firmware replays exactly."""
    disk = f'{work}/disk.img'
    with open(disk, 'wb') as out:
        out.truncate(1 << 20)
    devices = ['-drive', f'file={disk},format=raw,if=none,id=d0,'
                         'file.locking=off',
               '-drive', f'file={disk},format=raw,if=none,id=d1,'
                         'file.locking=off,readonly=on',
               '-device', 'virtio-blk-pci,drive=d0,disable-legacy=off',
               '-device', 'nvme,drive=d1,serial=1',
               '-device', 'qemu-xhci', '-device', 'usb-kbd',
               '-device', 'virtio-rng-pci',
               '-device', 'e1000,netdev=n0', '-netdev', 'user,id=n0',
               '-device', 'i6300esb', '-device', 'VGA']
    args = [a if a != 'pc' else 'q35' for a in guest_args(work, 'torture')]
    run = record(work, [*args, *devices])
    ended_well(run, 'torture')
    check_exact(work, run)


def test_large_memory(work):
    """A guest with 3 GiB of RAM, mostly unused, gives a small run."""
    args = guest_args(work, 'tsc')
    args[args.index('64')] = '3G'
    run = record(work, args)
    ended_well(run, 'tsc')
    check(run.size() < 8 << 20, f'the run has {run.size()} bytes')
    check_exact(work, run)


def test_quit_ends_the_run(work):
    """QMP quit and SIGTERM during a recording both leave a whole run."""
    for name, end in (('quit', lambda vm: vm.qmp.send('quit')),
                      ('term', lambda vm: vm.signal(15))):
        args = guest_args(work, 'torture', 'rounds=100')
        with recorder(work, args, name, qmp=1) as vm:
            vm.wait_serial('sum=')
            end(vm)
            vm.wait(0)
            again = check_exact(work, vm.run, name=f'{name}-again',
                                serial_wanted=vm.serial)
            check('sealed' not in again.stderr,
                  f'a run that was closed counts as torn: {again.stderr}')


def test_cpu_max(work):
    """The torture guest on -cpu max replays exactly in both shapes."""
    args = guest_args(work, 'torture')
    at = args.index('qemu64')
    args[at] = CPU_MAX[CPU_MAX.index('-cpu') + 1]
    run = record(work, args)
    ended_well(run, 'torture')
    check_exact(work, run, name='again')
    check_exact(work, run, ONE_INSN, name='one-insn')


def test_serial_stdio(work):
    """-serial stdio on a replay shows the console on standard output."""
    run = record(work, guest_args(work, 'cpuid'))
    with Vm(work, ['-tt', f'replay,dir={run.dir}', '-display', 'none',
                   '-serial', 'stdio'], name='rep', serial=False) as vm:
        vm.wait(0)
        check(vm.stdout == run.serial,
              f'standard output shows {vm.stdout[:200]!r}')


def test_counts_of_events(work):
    """The recorder and the replay count the same events, without annotations; the
    tool counts all."""
    run = record(work, guest_args(work, 'torture', 'rounds=3 percent=10'))
    stats = json.loads(tt('stats', run.dir, '--json').stdout)
    notes = sum(stats['kinds'].get(kind, {'events': 0})['events']
                for kind in ('check', 'digest', 'mark', 'note', 'finish', 'time'))
    counts = [int(re.search(r' (\d+) events, ', said).group(1))
              for said in (run.vm.stderr, replay(work, run).stderr)]
    equal(counts, [stats['events'] - notes] * 2, 'events that are counted')
    for command in 'info', 'check':
        counted = json.loads(tt(command, run.dir, '--json').stdout)['events']
        equal(counted, stats['events'], f'events of tt {command}')
    check(notes > 1, f'{notes} annotations')
