# SPDX-License-Identifier: GPL-2.0-or-later
"""Frames between the VMs of a group, in a gdb that has the replay of each as an inferior.

scripts/tt-gdb.py sources this file, and what is defined there is known here. The
monitor of an inferior tells which run it replays; sender and receiver of a frame are in
the logs, which the tt tool prints.
"""
# pylint: disable=undefined-variable
import bisect
import contextlib
import json
import os
import re
import shutil
import subprocess

import gdb

SENT, DELIVERED = 1, 2
# Kinds of events: what they are, and where in their data the run is. Older runs have `frame`.
PASSED = {'frame-out': (SENT, 0), 'frame-in': (DELIVERED, 8)}


def built(name):
    """A program of ours: beside this script's tree, or in PATH."""
    path = os.path.join(FOLDER, '..', 'build', name)
    found = path if os.access(path, os.X_OK) else shutil.which(name)
    if not found:
        raise gdb.GdbError(f'tt: {name} is neither in build nor in PATH: run '
                           'scripts/build')
    return found


def ask(*args):
    done = subprocess.run([built('tt'), *args], capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines()     # notes come before
        raise gdb.GdbError(said[-1] if said else f'tt: {args[0]} failed')
    return done.stdout


# ---- which inferior is which ----

chosen = {}                             # number of an inferior -> its thread that was selected


@contextlib.contextmanager
def selection_kept():
    here = gdb.selected_inferior().num
    try:
        yield
    finally:
        select(here)


def select(num):
    """Without a word, where gdb's command would print a frame."""
    here = gdb.selected_inferior().num
    if here == num:
        return
    chosen[here] = gdb.selected_thread()
    there = next(i for i in gdb.inferiors() if i.num == num)
    thread = chosen.get(num)
    if not thread or not thread.is_valid():
        thread = min(there.threads(), key=lambda t: t.num, default=None)
    if thread:
        thread.switch()
    else:
        gdb.execute(f'inferior {num}', to_string=True)


def run_here():
    """The run that the selected inferior replays; None: it replays none."""
    try:
        what, run = state()
    except (gdb.error, gdb.GdbError):
        return None
    return os.path.realpath(run) if what == 'replay' else None


def replays():
    """{run: number of its inferior}."""
    found = {}
    with selection_kept():
        for inferior in gdb.inferiors():
            if is_there(inferior.num):
                select(inferior.num)
                found.setdefault(run_here(), inferior.num)
    found.pop(None, None)
    return found


def all_replays():
    """The same. The frame that is asked for may be one of a replay that gdb has lost, and then
    another one would be a wrong answer."""
    if the_group:
        the_group.positions()
    found = replays()
    gone = [str(i.num) for i in gdb.inferiors() if i.num in met and not is_there(i.num)]
    if gone:
        raise gdb.GdbError('tt: gdb is not connected to what inferior '
                           f'{gone[0]} debugged: connect it again with "target remote", or '
                           'take it away, from another inferior, with "remove-inferiors '
                           f'{gone[0]}"')
    return found


# ---- frames ----

class Frames:
    """What a run sent and got: for each frame where, and in the order of the log."""

    def __init__(self, run):
        path = os.path.join(run, 'manifest')
        try:
            with open(path, encoding='utf-8') as manifest:
                found = re.search(r'^\[run\]$.*?^uuid=([0-9a-f-]+)$', manifest.read(),
                                  re.M | re.S)
        except OSError as error:
            raise gdb.GdbError(f'tt: {path} cannot be read ({error.strerror}): start gdb '
                               'where QEMU was started') from None
        if not found:
            raise gdb.GdbError(f'tt: {path} has no uuid: it is not the manifest of a run')
        self.id = found.group(1).replace('-', '')
        self.sent, self.got = [], []            # (position, run, sequence)
        for line in ask('log', run, '--kind', 'frame', '--kind', 'frame-out', '--kind',
                        'frame-in', '--json', '--data').splitlines():
            ev = json.loads(line)
            seq, data = int(ev['val'], 16), bytes.fromhex(ev.get('data', ''))
            what, run_at = PASSED.get(ev['kind']) or (int(ev['addr'], 16), 12)
            if what == SENT:
                self.sent.append((ev['position'], self.id, seq))
            elif what == DELIVERED:
                self.got.append((ev['position'], data[run_at:run_at + 16].hex(), seq))
        self.sent_at = {seq: pos for pos, _, seq in self.sent}
        self.got_at = {}
        for pos, source_run, seq in self.got:
            self.got_at.setdefault((source_run, seq), pos)


known = {}                              # run -> Frames


def frames_of(run):
    if run not in known:
        known[run] = Frames(run)
    return known[run]


def frames_here():
    run = run_here()
    if not run:
        raise gdb.GdbError('tt: this inferior is not a replay of TTVM')
    return frames_of(run)


def visit(num, place, what):
    select(num)
    go(place)
    gdb.write(f'{what}, at position {place} of inferior {num}\n')


class StepMessage(TtCommand):
    """Go to where the next frame that this VM sends arrives, in the VM that receives it."""

    prefix, name = '', 'step-message'

    def invoke(self, arg, from_tty):
        there = all_replays()
        mine = frames_here()
        first = bisect.bisect_left(mine.sent, (when()[0],))
        others = [(num, frames_of(run)) for run, num in there.items()]
        for lost, (_, run, seq) in enumerate(mine.sent[first:]):
            for num, frames in others:
                if (run, seq) in frames.got_at:
                    if lost:
                        gdb.write(f'{lost} earlier frame{"s" if lost > 1 else ""} '
                                  'reached no inferior\n')
                    visit(num, frames.got_at[run, seq], f'frame {seq} is delivered')
                    return
        raise gdb.GdbError('tt: no frame sent from here on reaches another inferior')


class ReverseStepMessage(TtCommand):
    """Go to where the last frame that this VM received was sent, in the VM that sent it."""

    prefix, name = '', 'reverse-step-message'

    def invoke(self, arg, from_tty):
        there = all_replays()
        mine = frames_here()
        n_got = bisect.bisect_left(mine.got, (when()[0] + 1,))
        senders = {frames_of(run).id: (num, frames_of(run)) for run, num in there.items()}
        for _, run, seq in reversed(mine.got[:n_got]):
            num, frames = senders.get(run, (0, None))
            if frames and seq in frames.sent_at:
                visit(num, frames.sent_at[seq], f'frame {seq} is sent')
                return
        raise gdb.GdbError('tt: no frame received up to here was sent by another '
                           'inferior')


StepMessage()
ReverseStepMessage()
