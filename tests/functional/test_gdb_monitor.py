# SPDX-License-Identifier: GPL-2.0-or-later
"""gdb can leave a monitor command that moves the VM."""

import os
import signal
import subprocess

from test_gdb_lines import Packets, debugged, lines_run
from ttlib import (GDB_PATIENCE, SLOW, check, digest, digest_at, end_of, equal, limit,
                   read_text, stopped_replay, wait_until)

# Several seconds of replay on the fastest host: no movement may end by itself
# before a silent gdb is given up.
APPEND = 'rounds=5 spins=120000000'


def position(vm):
    return vm.qmp.cmd('query-tt')['position']


def stands(vm):
    return not vm.qmp.cmd('query-tt')['travelling']


def command(text):
    return 'qRcmd,' + text.encode().hex()


def silent(vm, gdb):
    """A gdb that no longer acknowledges has gone."""
    gdb.send(command('tt goto end'))
    wait_until(lambda: not stands(vm), 'the movement')
    wait_until(lambda: stands(vm), 'the end of the movement')


def next_packet(vm, gdb):
    """So has one that asks for something else, and it gets its answer."""
    gdb.send(command('tt verify'))
    wait_until(lambda: not stands(vm) and position(vm), 'the movement')
    gdb.send('qtt.when')
    answers = [gdb.answer()]
    while ',' not in answers[-1]:
        answers.append(gdb.answer())
    check(stands(vm), f'answered while it moved: {answers}')
    equal(int(answers[-1].split(',')[0], 16), position(vm), 'the answer')


def ctrl_c(vm, gdb):
    gdb.send(command('tt goto end'))
    wait_until(lambda: not stands(vm) and position(vm), 'the movement')
    gdb.interrupt()
    wait_until(lambda: stands(vm), 'the end of the movement')


def sigint(vm, path):
    """Ctrl-C in the stock gdb, whose next commands are right."""
    out = f'{vm.base}.sigint'
    with open(out, 'wb') as log, subprocess.Popen(
            [os.environ.get('TT_GDB', 'gdb'), '-nx', '-q', '-ex', 'set confirm off', '-ex',
             'set arch i386:x86-64', '-ex', GDB_PATIENCE, '-ex', f'target remote {path}'],
            stdin=subprocess.PIPE, stdout=log,
            stderr=subprocess.STDOUT, text=True) as gdb:
        gdb.stdin.write('monitor tt goto end\n')
        gdb.stdin.flush()
        wait_until(lambda: not stands(vm), 'the movement')
        gdb.send_signal(signal.SIGINT)
        wait_until(lambda: 'Quit' in read_text(out), "gdb's prompt")
        gdb.stdin.write('maintenance flush register-cache\n'
                        'p $tt_position\n')
        gdb.stdin.flush()
        wait_until(lambda: stands(vm), 'the end of the movement')
        here = position(vm)
        gdb.stdin.write('stepi\np $tt_position\ndisconnect\nquit\n')
        gdb.stdin.close()
        gdb.wait(30 * SLOW)
    text = read_text(out)
    check('Quit' in text and f'$1 = {here}\n' in text and
          f'$2 = {here + 1}\n' in text, f'gdb said {text}')


@limit(120)
def test_monitor_interrupted(work):
    """A movement of the monitor's ends when gdb has left it (Ctrl-C, the next
    packet, or silence); one that gdb waits for does not."""
    run = lines_run(work, APPEND)
    vm, _ = debugged(work, run, timeout=100)
    seen = {}
    with vm:
        end = end_of(vm)
        path = vm.socket_path('gdb')
        for leave in (silent, next_packet, ctrl_c):
            vm.qmp.cmd('tt-goto', 60, position=0)
            gdb = Packets(path)
            leave(vm, gdb)
            seen[leave] = digest(vm)
            check(0 < position(vm) < end, f'{leave.__name__}: at '
                                          f'{position(vm)} of {end}')
            gdb.close()
        gdb = Packets(path)
        target = position(vm) + (1 << 26)
        answers = [gdb(command(f'tt goto {target}'))]
        while answers[-1] != 'OK':
            answers.append(gdb.answer())
        equal(position(vm), target, f'position after {answers}')
        gdb.close()
        vm.qmp.cmd('tt-goto', 60, position=0)
        sigint(vm, path)
        check(0 < position(vm) < end, f'it went on to {position(vm)}')
        with stopped_replay(work, run, 'other', timeout=100) as other:
            for leave in sorted((next_packet, ctrl_c), key=seen.get):
                equal(digest_at(other, seen[leave][0]), seen[leave],
                      f'digest after {leave.__name__}')
