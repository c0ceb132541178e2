# SPDX-License-Identifier: GPL-2.0-or-later
"""Frames between the VMs of a group, in a gdb that has the replay of each as an inferior.

scripts/tt-gdb.py sources this file, and what is defined there is known here. Which run an
inferior replays is asked of its monitor; who sent and who got a frame is in the logs, which
the tt tool prints.
"""
# pylint: disable=undefined-variable
import json
import os
import re
import shutil
import subprocess

import gdb

SENT, DELIVERED = 1, 2


class Frames:
    """What a run sent and got, in the order of its log."""

    def __init__(self, run):
        path = os.path.join(run, 'manifest')
        try:
            with open(path, encoding='utf-8') as manifest:
                found = re.search(r'^\[run\]$.*?^uuid=([0-9a-f-]+)$', manifest.read(),
                                  re.M | re.S)
        except OSError as error:
            raise gdb.GdbError(f'tt: {path} cannot be read ({error.strerror}): start gdb '
                               'where QEMU was started') from None
        self.id = found.group(1).replace('-', '')
        self.sent, self.got = [], []            # (position, run, sequence)
        for line in ask('log', run, '--kind', 'frame', '--json', '--data').splitlines():
            ev = json.loads(line)
            seq, data = int(ev['val'], 16), bytes.fromhex(ev['data'])
            if int(ev['addr'], 16) == SENT:
                self.sent.append((ev['position'], self.id, seq))
            else:
                self.got.append((ev['position'], data[12:28].hex(), seq))


def ask(*args):
    built = os.path.join(FOLDER, '..', 'build', 'tt')
    tool = built if os.access(built, os.X_OK) else shutil.which('tt')
    if not tool:
        raise gdb.GdbError('tt: the tool tt is neither in build nor in PATH')
    done = subprocess.run([tool, *args], capture_output=True, text=True, check=False)
    if done.returncode:
        raise gdb.GdbError(done.stderr.strip() or f'tt: {args[0]} failed')
    return done.stdout


known = {}                              # run -> Frames


def frames_here():
    """Those of the inferior that is selected."""
    said = gdb.execute('monitor info tt', to_string=True)
    found = re.match(r'tt: replay (.*)', said)
    if not found:
        raise gdb.GdbError('tt: this inferior is no replay of TTVM')
    run = os.path.realpath(found.group(1).strip())
    if run not in known:
        known[run] = Frames(run)
    return known[run]


def members():
    """(number of the inferior, Frames) of each that replays a run."""
    here = gdb.selected_inferior().num
    all_of_them = []
    try:
        for inferior in gdb.inferiors():
            if inferior.pid:
                gdb.execute(f'inferior {inferior.num}', to_string=True)
                try:
                    all_of_them.append((inferior.num, frames_here()))
                except gdb.error:
                    continue                    # no replay
    finally:
        gdb.execute(f'inferior {here}', to_string=True)
    return all_of_them


def visit(number, place, what):
    gdb.execute(f'inferior {number}', to_string=True)
    go(place)
    gdb.write(f'{what}, at position {place} of inferior {number}\n')


class StepMessage(gdb.Command):
    """Go to where the next frame that this VM sends arrives, in the VM that gets it."""

    def __init__(self):
        super().__init__('step-message', gdb.COMMAND_RUNNING)

    def invoke(self, arg, from_tty):
        position, lost = when()[0], 0
        mine, others = frames_here(), members()
        for sent, run, seq in mine.sent:
            if sent < position:
                continue
            for number, frames in others:
                for got, source_run, got_seq in frames.got:
                    if (source_run, got_seq) == (run, seq):
                        if lost:
                            gdb.write(f'{lost} before it reached nobody here\n')
                        visit(number, got, f'frame {seq} is delivered')
                        return
            lost += 1
        raise gdb.GdbError('tt: no frame that is sent from here on reaches another '
                           'inferior')


class ReverseStepMessage(gdb.Command):
    """Go to where the last frame that this VM has got was sent, in the VM that sent it."""

    def __init__(self):
        super().__init__('reverse-step-message', gdb.COMMAND_RUNNING)

    def invoke(self, arg, from_tty):
        position = when()[0]
        mine, others = frames_here(), members()
        for got, run, seq in reversed(mine.got):
            if got > position:
                continue
            for number, frames in others:
                for sent, _, sent_seq in frames.sent if frames.id == run else ():
                    if sent_seq == seq:
                        visit(number, sent, f'frame {seq} is sent')
                        return
        raise gdb.GdbError('tt: no frame that came up to here was sent by another '
                           'inferior')


StepMessage()
ReverseStepMessage()
