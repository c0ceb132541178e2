# SPDX-License-Identifier: GPL-2.0-or-later
"""gdb as the adapter of an editor (gdb -i=dap), both ways in a replay."""

import json
import os
import re
import shutil
import subprocess
import threading

from test_gdb_lines import lines_run
from ttlib import (BUILD, GDB_PATIENCE, REPO, Gdb, Skip, check, equal, limit,
                   read_text, replayer, run_tool, wait_until)
from undoer import PROMPT, Terminal, undo_recorder

SOURCE = os.path.join(REPO, 'tests', 'guests', 'lines64.c')


def dap_gdb():
    """A gdb of version 15 or newer, or a skip."""
    for program in (os.environ.get('TT_GDB', 'gdb'),
                    os.path.join(BUILD, 'gdb-newer', 'gdb')):
        if shutil.which(program):
            said, _ = run_tool(program, '-nx', '--version')
            found = re.search(r'(\d+)\.\d+', said)
            if found and int(found.group(1)) >= 15:
                return program
    raise Skip('needs gdb 15 or newer: install it, or run '
               'tests/functional/newer-gdb')


class Dap:
    """An editor, as far as the protocol sees it."""

    def __init__(self, program, log):
        self.next_seq, self.messages, self.error = 1, [], None
        self.log = open(log, 'wb')
        self.gdb = subprocess.Popen(
            [program, '-nx', '-q', '-i=dap', '-iex', 'set pagination off',
             '-iex', GDB_PATIENCE,
             '-x', f'{REPO}/scripts/tt-gdb.py'],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        out = self.gdb.stdout
        while True:
            head = out.readline()
            if not head:
                return
            length = int(head.split(b':')[1])
            out.readline()
            body = out.read(length)
            self.log.write(body + b'\n')
            self.messages.append(json.loads(body))

    def send(self, command, **arguments):
        seq = self.next_seq
        self.next_seq += 1
        body = json.dumps({'seq': seq, 'type': 'request', 'command': command,
                           'arguments': arguments}).encode()
        self.log.write(b'-> ' + body + b'\n')
        self.gdb.stdin.write(b'Content-Length: %d\r\n\r\n' % len(body) + body)
        self.gdb.stdin.flush()
        return seq

    def take(self, what, **wanted):
        """Takes the oldest message that has these fields."""
        def find():
            has_ended = self.gdb.poll() is not None
            for message in self.messages:
                if all(message.get(k) == v for k, v in wanted.items()):
                    self.messages.remove(message)
                    return message
            check(not has_ended, f'gdb ended: {what}')
            return None
        return wait_until(find, what, 40)

    def answer(self, seq, what):
        message = self.take(f'the answer to {what}', type='response',
                            request_seq=seq)
        check(message['success'], f'{what}: {message.get("message")}')
        return message.get('body')

    def __call__(self, command, **arguments):
        return self.answer(self.send(command, **arguments), command)

    def stop_of(self, command, **arguments):
        """(reason, function, line) where a command leads."""
        self(command, **arguments)
        event = self.take(f'the stop of {command}', type='event',
                          event='stopped')['body']
        frame = self('stackTrace', threadId=1, levels=1)['stackFrames'][0]
        return event['reason'], frame['name'], frame['line']

    def value(self, text):
        return self('evaluate', expression=text, context='repl')['result']

    def close(self):
        self.gdb.kill()
        self.gdb.wait()
        self.log.close()


def line_of(text):
    lines = read_text(SOURCE).splitlines()
    return next(n for n, line in enumerate(lines, 1) if text in line)


def attach(dap, target):
    can = dap('initialize', adapterID='gdb', linesStartAt1=True)
    check(can.get('supportsStepBack'), f'the adapter cannot go back: {can}')
    dap.take('initialized', type='event', event='initialized')
    attached = dap.send('attach', target=target,
                        program=f'{BUILD}/guests/lines64.debug')
    points = dap('setBreakpoints', source={'path': SOURCE},
                 breakpoints=[{'line': line_of('counter++;')}])
    equal(len(points['breakpoints']), 1, 'breakpoints')
    dap('configurationDone')
    dap.answer(attached, 'attach')
    dap.take('the stop', type='event', event='stopped')


def walk(dap):
    here = line_of('counter++;')
    for _ in range(3):
        equal(dap.stop_of('continue', threadId=1),
              ('breakpoint', 'leaf', here), 'continue')
    there = dap.value('p $tt_position')
    equal(dap.value('p counter').strip(), '$2 = 2', 'counter')
    reason, name, line = dap.stop_of('next', threadId=1)
    equal((reason, name, line), ('step', 'leaf', here + 1), 'next')
    equal(dap.stop_of('stepBack', threadId=1), ('breakpoint', 'leaf', here),
          'stepBack')
    equal(dap.value('p $tt_position').split('=')[1], there.split('=')[1],
          'position after stepBack')
    equal(dap.stop_of('reverseContinue', threadId=1),
          ('breakpoint', 'leaf', here), 'reverseContinue')
    equal(dap.value('p counter').strip(), '$4 = 1', 'counter, earlier')
    dap.stop_of('stepBack', threadId=1, granularity='instruction')
    before = int(dap.value('p $tt_position').split('=')[1])
    dap.stop_of('stepIn', threadId=1, granularity='instruction')
    equal(int(dap.value('p $tt_position').split('=')[1]), before + 1,
          'a step of one instruction')
    said = dap.value('tt origin counter')
    check('add rax, 1' in said and 'lines64.c:' in said, f'tt origin: {said}')
    check('0 found' in dap.value('tt find $rip == 1'), 'tt find')
    check('undo is not enabled' in dap.value('tt undo'), 'tt undo')
    dap.value('tt goto end')
    dap.take('the stop of tt goto', type='event', event='stopped')
    equal(dap.value('p counter').strip(), '$7 = 10', 'counter at the end')
    check(dap.stop_of('reverseContinue', threadId=1)[1:] == ('leaf', here),
          'from the end to the last call')


@limit(90)
def test_editor(work):
    """An editor attaches, sets a breakpoint, steps and continues both ways, and
    goes to a position."""
    program = dap_gdb()
    run = lines_run(work)
    vm = replayer(work, run, ['-S', *Gdb.args(work, 'rep')], 'rep', qmp=1)
    with vm:
        vm.qmp.cmd('query-tt')
        dap = Dap(program, f'{vm.base}.dap-log')
        try:
            attach(dap, vm.socket_path('gdb'))
            walk(dap)
            dap('disconnect', terminateDebuggee=False)
        finally:
            dap.close()
        vm.check_alive('after the editor has left')


def commands(dap):
    """What has no button is a command in the console."""
    place = dap.value('output/x (long)&counter')
    said = dap.value(f'tt find *(u64 *){place} == 3')
    hits = re.findall(r'position (\d+)', said)
    check(len(hits) == 1 and '1 found' in said, f'tt find: {said}')
    dap.value(f'tt goto {hits[0]}')
    dap.take('the stop of tt goto', type='event', event='stopped')
    frame = dap('stackTrace', threadId=1, levels=1)['stackFrames'][0]
    equal((frame['name'], dap.value('output counter')), ('leaf', '3'), 'the hit')
    said = dap.value('tt origin counter')
    check('add rax, 1' in said and 'lines64.c:' in said, f'tt origin: {said}')


@limit(90)
def test_console(work):
    """In the console of an editor find and origin are commands, and tt goto leads to what they
    have found."""
    program = dap_gdb()
    run = lines_run(work)
    with replayer(work, run, ['-S', *Gdb.args(work, 'rep')], 'rep', qmp=1) as vm:
        vm.qmp.cmd('query-tt')
        dap = Dap(program, f'{vm.base}.dap-log')
        try:
            attach(dap, vm.socket_path('gdb'))
            commands(dap)
            dap('disconnect', terminateDebuggee=False)
        finally:
            dap.close()


@limit(90)
def test_undo(work):
    """In the console of an editor at a recording: what was typed is taken back, and brought
    back."""
    program = dap_gdb()
    with undo_recorder(work, Gdb.args(work, 'u')) as vm:
        term = Terminal(vm.console)
        term.wait(PROMPT)
        for line in 'a=1', 'a=2', 'a=3':
            term.line(line)
        dap = Dap(program, f'{vm.base}.dap-log')
        try:
            attach(dap, vm.socket_path('gdb'))
            for command, undos, redos in (('tt undo 2', 1, 2), ('tt redo', 2, 1)):
                dap.value(command)
                now = vm.qmp.cmd('query-tt')
                equal((now['undos'], now['redos']), (undos, redos), command)
            dap('disconnect', terminateDebuggee=False)
        finally:
            dap.close()
        vm.qmp.cmd('cont')
        term.line('echo "r"=$a', 'r=2')
        term.close()
