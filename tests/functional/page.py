# SPDX-License-Identifier: GPL-2.0-or-later
"""Does what a tutorial says, and compares what comes out with the page.

In the literal blocks of a page a line "$ COMMAND" is for the shell and a line
"(gdb) COMMAND" for gdb; the lines up to the next of them are the answer, in
which numbers may differ and "..." stands for the rest, or for other lines. All
of gdb's commands are one session, with the one replay that the page starts or with those
that gdb starts. A command that ends with "&" goes on until "$ wait". A block without
commands is for the reader alone.
"""

import collections
import os
import re
import subprocess
import threading
import time

from ttlib import (BUILD, GDB_PATIENCE, REPO, SLOW, Gdb, Vm, check, fail, qemu_binary,
                   read_text, short)

Step = collections.namedtuple('Step', 'kind command answer')

NUMBER = re.compile(r'0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+')
QEMU = 'build/qemu-system-x86_64 '
MARK = '--- step '


def literal_lines(text):
    """The lines of the literal blocks, without their indentation; a None
    before each block."""
    lines, inside, after_colons = [], False, False
    for line in text.splitlines():
        if inside and line.strip() and not line.startswith('   '):
            inside = False
        if line.startswith('   ') and (inside or after_colons):
            if not inside:
                lines.append(None)
            inside, after_colons = True, False
            lines.append(line[3:])
        elif line.strip():
            after_colons = line.rstrip().endswith('::')
    return lines


def read_page(name):
    """The steps of docs/tutorials/NAME.rst."""
    path = os.path.join(REPO, 'docs', 'tutorials', f'{name}.rst')
    steps, goes_on, answers = [], False, False
    for line in literal_lines(read_text(path)):
        if line is None:
            answers = False
            continue
        start = re.match(r'(\$|\(gdb\)) (.*)', line)
        if goes_on:
            last = steps[-1]
            steps[-1] = last._replace(command=f'{last.command}\n{line}')
        elif start:
            kind = 'shell' if start.group(1) == '$' else 'gdb'
            steps.append(Step(kind, start.group(2), []))
            answers = True
        elif answers and line.strip() and line.strip() != '...':
            steps[-1].answer.append(line.strip())
        goes_on = bool(steps) and line.endswith('\\')
    check(steps, f'{path} has no steps')
    return steps


def plain(line):
    """A line without what may differ from run to run."""
    return ' '.join(NUMBER.sub('#', line).split())


def compare(step, output):
    """Each line of the page's answer is in the output, in that order."""
    seen = [plain(line) for line in output.splitlines()]
    for line in step.answer:
        wanted, whole = plain(line), True
        if wanted.endswith(' ...'):
            wanted, whole = wanted[:-4], False
        at = next((i for i, text in enumerate(seen) if text == wanted or
                   not whole and text.startswith(wanted)), None)
        if at is None:
            fail(f'the page says "{line}" after "{step.command}", but there '
                 f'is: {short(output, 600)}')
        seen = seen[at + 1:]


class Page:
    """One page at work in a directory that looks like the repository."""

    def __init__(self, work, name):
        self.work, self.steps = work, read_page(name)
        self.vm = None
        self.output = []
        self.behind = []                # (command, process) that go on
        os.symlink(BUILD, os.path.join(work, 'build'))
        for folder in 'docs', 'tests', 'scripts':
            os.symlink(os.path.join(REPO, folder), os.path.join(work, folder))

    def _shell(self, step):
        """The page's QEMU is the one under test."""
        command = step.command.replace(QEMU, f'{qemu_binary()} ')
        if command == 'wait':
            self._wait()
            return
        if command.endswith('&'):
            self.behind.append((command, subprocess.Popen(
                ['bash', '-c', f'exec {command[:-1]}'], cwd=self.work,
                stdin=subprocess.DEVNULL)))
            return
        done = subprocess.run(['bash', '-o', 'pipefail', '-c', command],
                              cwd=self.work, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, errors='replace',
                              timeout=300 * SLOW)
        self.output.append(done.stdout)
        check(done.returncode == 0, f'"{command}" ended with '
              f'{done.returncode}: {short(done.stdout[-300:])}')
        compare(step, done.stdout)

    def _wait(self):
        for command, process in self.behind:
            try:
                process.wait(100 * SLOW)
            except subprocess.TimeoutExpired:
                fail(f'"{command}" does not end')
            check(process.returncode == 0,
                  f'"{command}" ended with {process.returncode}')

    def _replay(self, step):
        """Starts the page's replay with a socket in place of its port."""
        words = step.command.replace('\\\n', ' ').replace('&', ' ').split()
        check('-gdb' in words, f'no -gdb in {step.command}')
        at = words.index('-gdb')
        words[at:at + 2] = []
        self.vm = Vm(self.work, [*words[1:], '-display', 'none',
                                 *Gdb.args(self.work, 'page')],
                     name='page', serial=False, timeout=300)
        self.vm.start()
        Gdb(self.vm).ready()

    def _gdb_argv(self, steps):
        argv = ['gdb', '-nx', '-q', '-batch', '-ex', 'set width 0',
                '-ex', 'set style enabled off', '-ex', GDB_PATIENCE]
        for number, step in enumerate(steps):
            command = step.command
            if command.startswith('target remote '):
                command = f'target remote {self.vm.socket_path("gdb")}'
            argv += ['-ex', f'echo {MARK}{number}\\n', '-ex', command]
        return argv

    def _gdb(self, program, steps):
        """One session; returns the seconds from its first to its last step.

        gdb's lines come through a pipe as they are written.
        """
        times = []
        argv = self._gdb_argv(steps) + program
        session = subprocess.Popen(argv, cwd=self.work, text=True,
                                   stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, errors='replace',
                                   stderr=subprocess.STDOUT)
        watchdog = threading.Timer(240 * SLOW, session.kill)
        watchdog.start()
        parts = collections.defaultdict(list)
        number = -1
        for line in session.stdout:
            if line.startswith(MARK):
                number = int(line[len(MARK):])
                times.append(time.monotonic())
            parts[number].append(line)
        session.wait()
        watchdog.cancel()
        text = ''.join(line for part in parts.values() for line in part)
        print(text)
        self.output.append(text)
        check(session.returncode == 0, f'gdb ended with {session.returncode} '
              f'after {number + 1} of {len(steps)} steps: '
              f'{short(text[-300:])}')
        for number, step in enumerate(steps):
            compare(step, ''.join(parts[number][1:]))
        return time.monotonic() - times[1]

    def run(self):
        """All steps; returns the seconds of the hunt in gdb."""
        try:
            return self._steps()
        finally:
            if self.vm:
                self.vm.kill()
            for _, process in self.behind:
                process.kill()
                process.wait()

    def _steps(self):
        program, session = [], []
        for step in self.steps:
            if step.kind == 'gdb':
                session.append(step)
            elif re.match('gdb( |$)', step.command):
                program = step.command.split()[1:]
            elif ' -tt replay' in step.command:
                self._replay(step)
            else:
                self._shell(step)
        check(session, 'the page has no session with a replay')
        return self._gdb(program, session)


def line_of(path, remark):
    """The number of the one line of a source file that has a remark."""
    lines = [number for number, line in
             enumerate(read_text(os.path.join(REPO, path)).splitlines(), 1)
             if remark in line]
    check(len(lines) == 1, f'"{remark}" is on lines {lines} of {path}')
    return lines[0]
