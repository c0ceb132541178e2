# SPDX-License-Identifier: GPL-2.0-or-later
"""The execution token: other threads get in quickly, always, and exactly.

While a busy guest is recorded, several monitors hammer it with commands that
need the vCPU stopped or its state read. Every command must be answered in
time, the guest must get on, and the replay must be exact.
"""

import os
import re
import threading
import time

from guests import guest_args
from ttlib import (SLOW, Gdb, Vm, check, check_exact, fail, limit, record, recorder,
                   replayer, wait_until)

# The longest time that a command may take on a loaded two-core machine; a
# lost wake-up would take for ever.
ANSWER_SECONDS = 10
HAMMER_SECONDS = 6


class Hammer:
    """Sends commands in turn on its own connection until told to stop."""

    def __init__(self, qmp, commands):
        self.qmp, self.commands = qmp, commands
        self.count, self.slowest, self.failure = 0, (0.0, ''), None
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def _work(self):
        try:
            while not self.stop.is_set():
                for command, arguments in self.commands:
                    began = time.monotonic()
                    self.qmp.cmd(command, ANSWER_SECONDS, **arguments)
                    took = time.monotonic() - began
                    self.slowest = max(self.slowest, (took, command))
                    self.count += 1
        except Exception as error:
            self.failure = error

    def finish(self):
        self.stop.set()
        self.thread.join((ANSWER_SECONDS + 5) * SLOW)
        check(not self.thread.is_alive(), 'a monitor hangs')
        if self.failure:
            fail(f'a monitor command failed: {self.failure}')
        print(f'{self.count} commands, slowest {self.slowest}')
        return self.count


def finish_all(hammers, least=20):
    """Ends them when each has been answered so often."""
    wait_until(lambda: min(hammer.count for hammer in hammers) >= least or
               any(hammer.failure for hammer in hammers),
               f'{least} commands of each monitor', 30)
    counts = [hammer.finish() for hammer in hammers]
    check(min(counts) >= least, f'commands answered: {counts}')


def hmp(line):
    return 'human-monitor-command', {'command_line': line}


def looking(work):
    return [('query-status', {}), hmp('info registers'), hmp('info mem'),
            ('query-tt', {}),
            ('memsave', {'val': 0x200000, 'size': 4096,
                         'filename': os.path.join(work, 'memory')})]


def stopping():
    return [('stop', {}), ('query-tt-digest', {}), ('cont', {}),
            ('query-status', {})]


def poking(work):
    return [('inject-nmi', {}),
            ('pmemsave', {'val': 0x100000, 'size': 65536,
                          'filename': os.path.join(work, 'memory2')}),
            ('screendump', {'filename': os.path.join(work, 'screen.ppm')}),
            hmp('info irq'), hmp('info pic')]


def watch_progress(vm, seconds):
    """The position grows from second to second, whatever the monitors do."""
    qmp = vm.connect(3)

    def position():
        return qmp.cmd('query-tt', ANSWER_SECONDS)['position']
    last = position()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(1)
        wait_until(lambda was=last: position() > was,
                   f'the guest goes on from position {last}', ANSWER_SECONDS)
        last = position()


@limit(150)
def test_monitors_at_work(work):
    """Three monitors hammer a recording; all are answered, the guest gets
    on, and the replay is exact."""
    args = guest_args(work, 'torture', 'rounds=1000 percent=10')
    args += ['-device', 'VGA']
    with recorder(work, args, qmp=4, timeout=90) as vm:
        vm.wait_serial('sum=')
        hammers = [Hammer(vm.connect(0), looking(work)),
                   Hammer(vm.connect(1), stopping()),
                   Hammer(vm.connect(2), poking(work))]
        watch_progress(vm, HAMMER_SECONDS)
        finish_all(hammers)
        hammers[1].qmp.cmd('cont')
        hammers[0].qmp.send('quit')
        vm.wait(0)
        serial = vm.serial
    check(b'FAIL' not in serial, f'the guest failed: {serial[-200:]}')
    check_exact(work, vm.run, serial_wanted=serial, timeout=90)


@limit(90)
def test_nmi_while_idle(work):
    """NMIs wake an idle guest at the recorded places."""
    args = guest_args(work, 'hlt', 'rounds=1 nmis=60')
    with recorder(work, args, qmp=1) as vm:
        vm.wait_serial('ready')
        deadline = time.monotonic() + 40
        while vm.process.poll() is None and time.monotonic() < deadline:
            try:
                vm.qmp.cmd('inject-nmi')
            except Exception:
                break           # the guest has powered off
            time.sleep(0.005)
        vm.wait(0)
        serial = vm.serial
    # One more may come before the guest has looked.
    seen = re.search(rb'nmis=([0-9a-f]{8})', serial)
    check(seen and int(seen.group(1), 16) >= 60, f'not 60 NMIs: {serial[-200:]}')
    check_exact(work, vm.run, serial_wanted=serial)


@limit(90)
def test_hotplug_and_reset(work):
    """A device plugged in and out and a reset, all from the monitor, are
    replayed exactly."""
    disk = os.path.join(work, 'd.img')
    with open(disk, 'wb') as out:
        out.truncate(1 << 20)
    args = guest_args(work, 'torture', 'rounds=1000 percent=10')
    args.remove('-no-reboot')
    args += ['-blockdev', f'driver=file,node-name=d0,filename={disk}']
    with recorder(work, args, qmp=1) as vm:
        vm.wait_serial('sum=')
        vm.qmp.cmd('device_add', driver='virtio-blk-pci', drive='d0',
                   id='disk')
        before = vm.serial.count(b'start')
        vm.qmp.cmd('system_reset')
        wait_until(lambda: vm.serial.count(b'start') > before,
                   'the guest starts again after system_reset')
        vm.qmp.cmd('device_del', id='disk')
        marks = vm.serial.count(b'sum=')
        wait_until(lambda: vm.serial.count(b'sum=') > marks + 1,
                   'the guest goes on')
        vm.qmp.send('quit')
        vm.wait(0)
        serial = vm.serial
    check_exact(work, vm.run, serial_wanted=serial)


@limit(90)
def test_monitor_writes_are_inputs(work):
    """Memory that gdb writes in a recording is an input of the replay."""
    args = guest_args(work, 'torture', 'rounds=1000 percent=10')
    with recorder(work, [*args, *Gdb.args(work, 'rec')], qmp=1) as vm:
        vm.wait_serial('sum=')
        gdb = Gdb(vm)
        place = 0x2000000 - 64
        for value in (0x11111111, 0x22222222):
            gdb(f'set {{int}}{place} = {value}')
            vm.qmp.cmd('cont')
            time.sleep(0.2)
        vm.qmp.cmd('stop')
        line = vm.qmp.hmp(f'xp /1wx {place}')
        check('22222222' in line, f'gdb did not write: {line}')
        wanted = (vm.qmp.cmd('query-tt-digest'))
        vm.qmp.send('quit')
        vm.wait(0)
        serial = vm.serial
    check_exact(work, vm.run, serial_wanted=serial)
    with replayer(work, vm.run, ['-S'], name='look', qmp=1) as rep:
        rep.qmp.cmd('tt-goto', 60, position=wanted['position'])
        seen = rep.qmp.cmd('query-tt-digest')
        check(seen == wanted, f'{seen} instead of {wanted}')
        line = rep.qmp.hmp(f'xp /1wx {place}')
        check('22222222' in line, f'the replay has other memory: {line}')


@limit(90)
def test_plain_is_not_slowed(work):
    """Monitors are answered without -tt just as well (the control)."""
    args = guest_args(work, 'torture', 'rounds=1000 percent=10')
    with Vm(work, [*args, '-device', 'VGA'], qmp=2) as vm:
        vm.wait_serial('sum=')
        hammers = [Hammer(vm.connect(0), looking(work)),
                   Hammer(vm.connect(1), [('stop', {}), ('cont', {})])]
        finish_all(hammers)


@limit(60)
def test_replay_answers(work):
    """A running replay answers its monitor, and SIGTERM ends it."""
    run = record(work, guest_args(work, 'torture', 'rounds=6'))
    with replayer(work, run, name='rep', qmp=2) as vm:
        vm.qmp.cmd('query-tt-checkpoints')      # waits until it has RAM
        hammers = [Hammer(vm.qmp, looking(work)),
                   Hammer(vm.connect(1), stopping())]
        time.sleep(1.5)
        for hammer in hammers:
            hammer.finish()
        hammers[1].qmp.cmd('cont')
        vm.signal(15)
        vm.wait(0)
