# SPDX-License-Identifier: GPL-2.0-or-later
"""The scenario of QEMU's own test of reverse debugging, against a recording of
ours or one of -icount rr=: ten steps of the firmware's first instructions, back,
forward again, breakpoints on all of them, to the end, and back to the last."""

import os
import time

from test_gdb_lines import Packets
from ttlib import (SLOW, Gdb, Vm, check, equal, recorder, replayer, run_tool,
                   tool)

STEPS = 10
MACHINE = ['-M', 'pc', '-display', 'none', '-net', 'none']


class Ours:
    """Recorded and replayed by -tt."""

    @staticmethod
    def record(work, limit):
        with recorder(work, MACHINE, qmp=1, timeout=limit, serial=False) as vm:
            while vm.qmp.cmd('query-tt')['position'] <= STEPS:
                time.sleep(0.01)
            vm.qmp.cmd('stop')
            last = vm.qmp.cmd('query-tt')['position']
            vm.qmp.send('quit')
            vm.wait(0)
        return vm.run, last

    @staticmethod
    def replayer(work, recorded, limit):
        return replayer(work, recorded, ['-S', *Gdb.args(work, 'rep')],
                        qmp=1, timeout=limit, serial=False)

    @staticmethod
    def stop_at_end(vm, last):
        """It does so by itself."""


class Upstream:
    """Recorded and replayed by the same binary's -icount rr=."""

    @staticmethod
    def args(work, mode):
        return [*MACHINE, '-icount',
                f'shift=7,rr={mode},rrfile={work}/replay.bin,rrsnapshot=init',
                '-drive', f'file={work}/disk.qcow2,if=none']

    @classmethod
    def record(cls, work, limit):
        run_tool(tool('qemu-img'), 'create', '-f', 'qcow2',
                 f'{work}/disk.qcow2', '128M')
        with Vm(work, cls.args(work, 'record'), 'rec', qmp=1, timeout=limit,
                serial=False) as vm:
            while vm.qmp.cmd('query-replay')['icount'] <= STEPS:
                pass
            last = vm.qmp.cmd('query-replay')['icount']
            vm.qmp.send('quit')
            vm.wait(0)
        return None, last

    @classmethod
    def replayer(cls, work, recorded, limit):
        return Vm(work, [*cls.args(work, 'replay'), '-S',
                         *Gdb.args(work, 'rep')], 'rep', qmp=1, timeout=limit,
                  serial=False)

    @staticmethod
    def stop_at_end(vm, last):
        vm.qmp.cmd('replay-break', icount=last - 1)


def register(gdb, number):
    return int.from_bytes(bytes.fromhex(gdb(f'p{number:x}')), 'little')


def pc(gdb):
    return register(gdb, 0x10) + 0x10 * register(gdb, 0x12)


def step(gdb, packet):
    reply = gdb(packet)
    check(reply.startswith('T05') and 'replaylog' not in reply,
          f'{packet} answered {reply}')


def drive(gdb, vm, side, last):
    seen = []
    for _ in range(STEPS):
        seen.append(pc(gdb))
        step(gdb, 's')
    for place in reversed(seen):
        step(gdb, 'bs')
        equal(pc(gdb), place, 'pc of a step back')
    for place in seen:
        equal(pc(gdb), place, 'pc of a step forward')
        step(gdb, 's')
    for place in seen:
        equal(gdb(f'Z1,{place:x},1'), 'OK', 'a breakpoint')
    side.stop_at_end(vm, last)
    reply = gdb('c')
    check(reply.startswith(('T02', 'T05')), f'c answered {reply}')
    step(gdb, 'bc')
    equal(pc(gdb), seen[-1], 'pc where reverse-continue ended')


def scenario(work, side, limit=30):
    """Raises TestFailure where the side fails or takes longer than @limit."""
    os.makedirs(work, exist_ok=True)
    recorded, last = side.record(work, limit)
    with side.replayer(work, recorded, limit) as vm:
        gdb = Packets(vm.socket_path('gdb'))
        gdb.sock.settimeout(limit * SLOW)
        drive(gdb, vm, side, last)
        vm.qmp.cmd('quit')
        vm.wait(0)
