# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs inside gdb: makes the commands of a random walk and writes down, after
each, where the VM stands and what gdb believes. See walker.py.

gdb is started with TT_WALK naming a file (JSON): seed, count, low, high,
socket, breaks, watches, out.
"""

import json
import os
import random
import re
import time

import gdb

REGISTERS = ('rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 '
             'rip eflags cs ss ds es fs gs fs_base gs_base cr0 cr2 cr3 cr4 '
             'efer').split()

# What a walker does, and how often.
COMMANDS = (('stepi', 24), ('reverse-stepi', 24), ('stepi 50', 7),
            ('reverse-stepi 50', 7), ('continue', 8), ('reverse-continue', 8),
            ('near', 7), ('far', 7), ('toggle', 8))

stops = []


def run(command):
    return gdb.execute(command, to_string=True)


def on_stop(event):
    numbers = [b.number for b in getattr(event, 'breakpoints', [])]
    stops.append([type(event).__name__, numbers])


def look():
    """Position and digest by the monitor, registers of the selected thread by
    gdb's cache."""
    text = run('monitor tt digest')
    found = re.search(r'position (\d+) cpu (\w+) ram (\w+)', text)
    if not found:
        raise gdb.GdbError(f'no digest: {text}')
    values = {name: int(gdb.parse_and_eval(f'${name}')
                        .format_string(format='x'), 16)
              for name in REGISTERS}
    return int(found.group(1)), [found.group(2), found.group(3)], values


class Walk:
    def __init__(self, plan):
        self.plan = plan
        self.rng = random.Random(plan['seed'])
        self.position = 0
        self.enabled = []

    def connect(self):
        run('set pagination off')
        run('set confirm off')
        run('set architecture i386:x86-64')
        run(self.plan['patience'])
        run(f'target remote {self.plan["socket"]}')
        run(f'monitor tt goto {self.plan["low"]}')
        run('maintenance flush register-cache')
        for address in self.plan['breaks']:
            run(f'hbreak *{address:#x}')
        for kind, size, address in self.plan['watches']:
            run(f'{kind} *(unsigned {size} *) {address:#x}')
        self.enabled = [b.number for b in gdb.breakpoints()]
        gdb.events.stop.connect(on_stop)

    def toggle(self):
        chosen = self.rng.choice(gdb.breakpoints())
        chosen.enabled = not chosen.enabled
        self.enabled = [b.number for b in gdb.breakpoints() if b.enabled]

    def choose(self):
        low, high = self.plan['low'], self.plan['high']
        names = [name for name, _ in COMMANDS]
        weights = [weight for _, weight in COMMANDS]
        command = self.rng.choices(names, weights)[0]
        while command == 'toggle':
            self.toggle()
            command = self.rng.choices(names, weights)[0]
        if command == 'far' or not low <= self.position <= high:
            return f'monitor tt goto {self.rng.randint(low, high)}'
        if command == 'near':
            near = self.position + self.rng.randint(-100000, 100000)
            return f'monitor tt goto {min(max(near, low), high)}'
        return command

    def step(self, out):
        command = self.choose()
        stops.clear()
        began = time.monotonic()
        said = run(command)
        if command.startswith('monitor'):
            run('maintenance flush register-cache')
        before = self.position
        self.position, digest, registers = look()
        json.dump({'command': command, 'before': before,
                   'position': self.position, 'digest': digest,
                   'registers': registers, 'stops': list(stops),
                   'thread': gdb.selected_thread().num,
                   'enabled': self.enabled,
                   'ended': 'history' in said,
                   'seconds': round(time.monotonic() - began, 4)}, out)
        out.write('\n')

    def go(self):
        self.connect()
        self.position = look()[0]
        with open(self.plan['out'], 'w', encoding='utf-8') as out:
            for _ in range(self.plan['count']):
                self.step(out)
        run('disconnect')


with open(os.environ['TT_WALK'], encoding='utf-8') as plan_file:
    Walk(json.load(plan_file)).go()
