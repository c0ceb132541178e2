# SPDX-License-Identifier: GPL-2.0-or-later
"""Breakpoints and watchpoints of one process of a Linux guest, right across
context switches: three programs at the same addresses, at work at once."""

import os
import re

from guests import own_args
from ttlib import (REPO, Gdb, check, digest, digest_at, end_of, equal, limit,
                   record, replayer, run_tool, stopped_replay)

SCRIPT = f'source {REPO}/scripts/tt-gdb.py'
WHERE = 'p $tt_position'
NAMES = ('alpha', 'a-name-of-17-byte', 'gamma')
COUNT = 30
WORK = '/own/run'

RUN = ''.join([
    '#!/bin/busybox sh\n',
    *(f'cp /own/twins /tmp/{name}\n' for name in NAMES),
    *(f'/tmp/{name} {COUNT} &\n' for name in NAMES),
    'wait\necho TT-DONE own\n']).encode()


def build_twins(work):
    path = os.path.join(work, 'twins')
    run_tool('gcc', '-g', '-O1', '-static', '-no-pie', '-nostdlib',
             '-fno-stack-protector', '-fcf-protection=none', '-o', path,
             f'{REPO}/tests/guest-linux/twins.c')
    return path


def twins_run(work, extra, devices=()):
    with open(build_twins(work), 'rb') as twins:
        files = {'own/run': RUN, 'own/twins': twins.read()}
    run = record(work, [*own_args(work, files, extra, '128'), *devices], timeout=90)
    said = re.findall(rb'TT-TWIN (\S+) (\d+)', run.serial)
    equal(sorted(said), sorted(
        (f'/tmp/{name}'.encode(), b'%d' % (7 + COUNT * (COUNT + 1) // 2))
        for name in NAMES), 'what the twins said')
    return run


class Session:
    def __init__(self, work, run):
        self.vm = replayer(work, run, ['-S', '-serial', 'null',
                                       *Gdb.args(work, 'rep')], qmp=1,
                           serial=False, timeout=150)
        self.gdb = Gdb(self.vm)
        self.program = os.path.join(work, 'twins')

    def __call__(self, *commands):
        text = self.gdb(SCRIPT, f'file {self.program}', *commands,
                        timeout=120)
        check('Traceback' not in text and 'Python Exception' not in text,
              f'an error of the script: {text}')
        return text


def values(text):
    return [int(n) for n in re.findall(r'^\$\d+ = (-?\d+)$', text, re.M)]


def stops(text):
    """How often the VM stopped while packets were shown, breakpoints' own
    steps included."""
    return text.count('received: T')


def check_breakpoints(session, name):
    """The n-th call of work() by this process has n in it."""
    look = ['p n', 'p counted', WHERE]
    text = session(f'tt break-in {name} work', 'set debug remote 1',
                   *(['continue', *look] * 4),
                   *(['reverse-continue', *look] * 2),
                   'set debug remote 0', 'p $tt_pid')
    seen = values(text)
    equal(seen[0:18:3], [1, 2, 3, 4, 3, 2], f'{name}: n')
    equal(seen[1:18:3], [7, 8, 10, 13, 10, 8], f'{name}: counted')
    places = seen[2:18:3]
    equal(places[4:], places[2:0:-1], f'{name}: positions going back')
    check(stops(text) <= 18, f'{name}: gdb heard of {stops(text)} stops')
    return places, seen[-1]


def check_watch(session, who):
    text = session(f'tt watch-in {who} counted', 'set debug remote 1',
                   *(['continue', 'p counted', WHERE] * 3),
                   *(['reverse-continue', 'p counted', WHERE] * 2),
                   'set debug remote 0', 'delete', 'tbreak power_off')
    seen = values(text)
    equal(seen[::2], [8, 10, 13, 10, 8], f'{who}: values of the counter')
    equal(seen[7::2], [seen[5] - 1, seen[3] - 1], f'{who}: positions')
    check(stops(text) <= 15, f'{who}: gdb heard of {stops(text)} stops')
    return seen[1]


def check_two_watches(session, pid):
    """The same bytes for two processes: no stop for a third, and none for a read."""
    text = session('tt watch-in alpha counted', 'tt watch-in gamma counted',
                   'set debug remote 1', *(['continue', 'p $tt_pid', 'p counted'] * 6),
                   'set debug remote 0', 'delete', 'tbreak power_off')
    seen = values(text)
    stopped = list(zip(seen[::2], seen[1::2]))
    equal(len(set(stopped)), 6, f'processes and values of the counter: {stopped}')
    check({who for who, _ in stopped} <= {pid['alpha'], pid['gamma']}, f'{stopped}')
    check(stops(text) <= 18, f'gdb heard of {stops(text)} stops')


def check_hits(session, places, pid):
    """An interrupt at the very place makes a second hit of one call."""
    text = session('tt hits work --in gamma', 'tt hits work --in 999999',
                   f'tt hits work --in {pid["alpha"]} --limit 2')
    found = re.findall(r'^ *\d+ +(\d+)$', text, re.M)
    check(COUNT <= len(found) - 2 < COUNT * 3 / 2, f'hits of gamma: {text}')
    equal([n for n in places['gamma'] if str(n) not in found], [],
          'stops of gamma that are no hits')
    for sentence in ('0 hits of work', '2 hits of work ('):
        check(sentence in text, f'no "{sentence}": {text}')


@limit(240)
def test_one_of_three(work):
    """By name before the process exists, by number, and by its page tables;
    with page table isolation; other processes cost gdb no stop."""
    run = twins_run(work, 'pti=on')
    session = Session(work, run)
    with session.vm as vm:
        places, pid, begin = {}, {}, 0
        for name in NAMES:
            vm.qmp.cmd('tt-goto', 60, position=begin)
            places[name], pid[name] = check_breakpoints(session, name)
            begin = places['alpha'][0] - 3000000
        equal(len(set(pid.values())), 3, f'numbers of the processes: {pid}')
        for who in ('gamma', f'pid={pid["alpha"]}'):
            vm.qmp.cmd('tt-goto', 60, position=begin)
            check_watch(session, who)
        vm.qmp.cmd('tt-goto', 60, position=begin)
        check_two_watches(session, pid)
        vm.qmp.cmd('tt-goto', 60, position=places['alpha'][1])
        text = session('tt tbreak-in this work if n > 20', 'continue', 'p n',
                       'p $tt_pid', 'info breakpoints', WHERE)
        equal(values(text)[:2], [21, pid['alpha']], 'this, with a condition')
        check('No breakpoints' in text, f'not temporary: {text}')
        here = digest(vm)
        check_hits(session, places, pid)
        equal(digest(vm), here, 'digest after the searches')
        text = session('tt break-in', 'tt break-in alpha', 'tt watch-in 1 5',
                       'tt watch-in 1 none', 'tt break-in who=1 work',
                       'tt break-in 1 work if')
        for sentence in ('takes a process and a location',
                         '5 is not in memory', 'No symbol "none"',
                         "'who=1' is not a process",
                         'a condition is missing after "if"'):
            check(sentence in text, f'no sentence "{sentence}": {text}')
        with stopped_replay(work, run, 'other', timeout=100) as other:
            equal(digest_at(other, here[0]), here, 'digest after it all')
        check(here[0] < end_of(vm), 'it went to the end')
