# SPDX-License-Identifier: GPL-2.0-or-later
"""A stock gdb walks a replay at random; a straight replay is its judge.

After each command gdb's registers, the position and the digest must be those
of a second process that goes through all the positions once, forwards. Where
a command ends must be right, too: a step moves by one position, and no
breakpoint or watchpoint that any command of the walk has met may lie between
where a command that continues began and where it ended.
"""

import bisect
import json
import os
import re
import subprocess

from guests import linux_args
from matrix_run import need_guests, other
from ttlib import (GDB_PATIENCE, HERE, SLOW, Gdb, check, digest, end_of, fail, goto,
                   read_text, record, replayer, short, stopped_replay)

# Called and written often, in the works that the guest does.
BREAKS = ('do_exit', 'handle_mm_fault', 'vfs_write', 'ksys_mmap_pgoff')
WATCHES = (('watch', 'long', 'jiffies_64'), ('awatch', 'int', 'total_forks'))


def record_guest(work, processes=12):
    """A run of Linux and the addresses of its symbols."""
    names = [*BREAKS, *(name for _, _, name in WATCHES)]
    run = record(work, linux_args('rand,procs', f'n={processes} '
                                  f'syms={",".join(names)}', memory='128'),
                 timeout=100)
    return run, symbols(run, 'procs')


def symbols(run, last_work):
    text = run.serial.decode(errors='replace')
    check(f'TT-DONE {last_work}' in text, f'the guest failed: {text[-300:]}')
    return {name: int(address, 16) for address, name in
            re.findall(r'TT-SYM ([0-9a-f]+) \w (\w+)', text)}


def make_plan(work, seed, count, end, places, socket):
    breaks = [places[name] for name in BREAKS if name in places]
    watches = [(kind, size, places[name]) for kind, size, name in WATCHES
               if name in places]
    check(len(breaks) >= 2 and watches, f'the guest named only {places}')
    return {'seed': seed, 'count': count, 'low': end // 3, 'high': end,
            'socket': socket, 'patience': GDB_PATIENCE, 'breaks': breaks, 'watches': watches,
            'out': os.path.join(work, 'walk.jsonl')}


def walk(work, run, places, seed, count, timeout):
    """Lets gdb walk; returns (plan, what it wrote down)."""
    vm = replayer(work, run, ['-S', '-serial', 'null',
                              *Gdb.args(work, 'walk')], 'walk', qmp=1,
                  serial=False, timeout=timeout)
    with vm:
        gdb = Gdb(vm)
        plan = make_plan(work, seed, count, end_of(vm), places, gdb.ready())
        path = os.path.join(work, 'plan.json')
        with open(path, 'w', encoding='utf-8') as out:
            json.dump(plan, out)
        try:
            done = subprocess.run(
                [os.environ.get('TT_GDB', 'gdb'), '-nx', '-q', '-batch', '-x',
                 os.path.join(HERE, 'walk_gdb.py')], text=True,
                env=dict(os.environ, TT_WALK=path), stdout=subprocess.PIPE,
                stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT,
                timeout=timeout * SLOW, errors='replace')
            said, status = done.stdout, done.returncode
        except subprocess.TimeoutExpired:
            said, status = f'took more than {timeout} s', -1
        steps = [json.loads(line) for line in
                 read_text(plan['out']).splitlines()]
        check(status == 0 and len(steps) == count,
              f'seed {seed}: gdb made {len(steps)} of {count} steps: '
              f'{short(said[-300:])}')
        check('diverged' not in vm.stderr, f'seed {seed}: {short(vm.stderr)}')
    return plan, steps


def record_compiler(work):
    """The same of four vCPUs that run make -j4 (scripts/guest --devices)."""
    need_guests()
    names = [*BREAKS, *(name for _, _, name in WATCHES)]
    run = record(work, [
        '-M', 'pc', '-cpu', 'qemu64', '-m', '512', '-smp', '4', '-nodefaults',
        '-display', 'none', '-no-reboot', '-kernel', other('vmlinuz'),
        '-initrd', other('compiler.img'), '-append',
        f'console=ttyS0 panic=-1 t=own syms={",".join(names)}'], timeout=300)
    return run, symbols(run, 'own')


def all_registers(vm):
    """What the straight replay says, by gdb's numbers of threads."""
    parts = vm.qmp.hmp('info registers -a').split('CPU#')[1:]
    return {int(p.split()[0]) + 1: registers(p) for p in parts}


def registers(text):
    """Registers as the monitor shows them, by gdb's names."""
    values = {}
    for name, value in re.findall(
            r'\b([ER]\w\w|R\d+|CR\d|EFER) *=([0-9a-f]+)', text):
        name = re.sub('^e(..)$', r'r\1', name.lower())     # not in 64-bit mode
        values['eflags' if name == 'rfl' else name] = int(value, 16)
    for name, selector, base in re.findall(
            r'\b([CSDEFG]S) *=([0-9a-f]+) ([0-9a-f]+)', text):
        values[name.lower()] = int(selector, 16)
        if name in ('FS', 'GS'):
            values[f'{name.lower()}_base'] = int(base, 16)
    check('rip' in values, f'no RIP in: {short(text)}')
    return values


class Judge:
    """Compares a walk with a straight replay; collects what is wrong."""

    def __init__(self, seed, plan, steps, end):
        self.seed, self.plan, self.steps, self.end = seed, plan, steps, end
        self.wrong = []
        self.has_turns = False  # of several vCPUs
        self.asked = {}         # position -> where a goto there ends

    def blame(self, number, why):
        step = self.steps[number]
        self.wrong.append(
            f'step {number} "{step["command"]}" from {step["before"]} to '
            f'{step["position"]}, stop {step["stops"]}: {why}')

    def wanted(self, step):
        """The position where a step or a goto must end; None: it may not be
        one, or a breakpoint cut it short."""
        words = step['command'].split()
        if words[0] == 'monitor':
            return int(words[-1])
        if 'continue' in words[0]:
            return None
        if step['stops'] and step['stops'][-1][1]:
            return None
        many = int(words[1]) if len(words) > 1 else 1
        if words[0].startswith('reverse'):
            return max(0, step['before'] - many)
        return min(self.end, step['before'] + many)

    def questions(self):
        """All positions to visit, in order."""
        places = {step['position'] for step in self.steps}
        for step in self.steps:
            place = self.wanted(step)
            if place is not None:
                places.add(place)
        return sorted(places)

    def visit(self, vm, timeout):
        """The straight replay."""
        self.has_turns = len(all_registers(vm)) > 1
        seen = {}
        for place in self.questions():
            at = goto(vm, timeout, position=place)['position']
            self.asked[place] = at
            if at == place:
                seen[place] = (list(digest(vm)[1:]), all_registers(vm))
        for number, step in enumerate(self.steps):
            self.compare(number, step, seen.get(step['position']))

    def compare(self, number, step, straight):
        if not straight:
            self.blame(number, 'a straight replay does not stand there but '
                       f'at {self.asked[step["position"]]}')
            return
        if step['digest'] != straight[0]:
            self.blame(number, f'digest {step["digest"]} instead of '
                               f'{straight[0]}')
        for name, value in straight[1][step['thread']].items():
            seen = step['registers'].get(name)
            if seen is not None and seen != value:
                self.blame(number, f'{name} {seen:#x} instead of {value:#x}')

    def check_ends(self):
        """Steps end where they should; a place that is none may be passed."""
        for number, step in enumerate(self.steps):
            place = self.wanted(step)
            if place is None or step['position'] in (place,
                                                     self.asked[place]):
                continue
            if step['command'].startswith('reverse') and \
                    self.asked[place] >= step['before']:
                continue
            if self.has_turns and self.is_beyond(step, place):
                continue
            self.blame(number, f'should end at {place}')

    @staticmethod
    def is_beyond(step, place):
        """A step is one of its vCPU: the turns of others may lie between."""
        if step['command'].startswith('reverse-stepi'):
            return step['position'] < place
        return step['command'].startswith('stepi') and step['position'] > place

    def watches(self):
        first = len(self.plan['breaks']) + 1
        return range(first, first + len(self.plan['watches']))

    def mark_news(self):
        """After a goto of the monitor, gdb's next stop may say what that
        changed: once for each watchpoint, and without a move if it was to
        continue."""
        unheard = set()
        for number, step in enumerate(self.steps):
            named = set(step['stops'][-1][1] if step['stops'] else ())
            step['news'] = False
            if step['command'].startswith('monitor'):
                unheard = set(self.watches())
                continue
            if 'continue' not in step['command']:
                continue
            watched = named & set(self.watches())
            if watched and step['position'] == step['before']:
                step['news'] = True     # and a breakpoint may stand there
                if not watched <= unheard:
                    self.blame(number, 'stopped where it stood, for a change '
                                       'that gdb knew')
                unheard -= watched
            else:
                unheard.clear()

    def hits(self):
        """(number of the breakpoint, position of the access or of the
        instruction) of each stop that names one."""
        for step in self.steps:
            forward = step['command'] == 'continue'
            if not step['news'] and \
                    (forward or step['command'] == 'reverse-continue'):
                for kind in step['stops'][-1][1] if step['stops'] else ():
                    yield kind, step['position'] - (forward and
                                                    kind in self.watches())

    def check_hits(self):
        """No command ran past a hit that another one has found."""
        known = {}
        for kind, place in self.hits():
            known.setdefault(kind, set()).add(place)
        first_watch = len(self.plan['breaks']) + 1
        for number, step in enumerate(self.steps):
            if step['command'] not in ('continue', 'reverse-continue'):
                continue
            low, high = sorted((step['before'], step['position']))
            for kind in step['enabled']:
                places = sorted(known.get(kind, ()))
                # An access at N is over at N + 1; a breakpoint is at N.
                first, last = low, high - 1
                if step['command'] == 'reverse-continue':
                    first = low + 1
                elif kind < first_watch:
                    first = low + 1
                else:
                    last = high - 2
                at = bisect.bisect_left(places, first)
                if at < len(places) and places[at] <= last:
                    self.blame(number, f'ran past breakpoint {kind} at '
                                       f'{places[at]}')


def judge(work, run, seed, plan, steps, timeout):
    with stopped_replay(work, run, 'straight', timeout=timeout) as vm:
        judge_ = Judge(seed, plan, steps, end_of(vm))
        judge_.visit(vm, timeout)
    judge_.mark_news()
    judge_.check_ends()
    judge_.check_hits()
    hits = len(list(judge_.hits()))
    if judge_.wrong:
        print('\n'.join(judge_.wrong))
        fail(f'seed {seed}: {len(judge_.wrong)} mismatches in {len(steps)} '
             f'commands; the first: {judge_.wrong[0]}')
    return hits
