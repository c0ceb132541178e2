# SPDX-License-Identifier: GPL-2.0-or-later
"""A VM with a history: recorded, sent into its past, given checkpoints, branched,
by turns and at random. Whatever was seen must be what a straight replay sees."""

import os
import time

from test_branch import brancher, tree_hash
from test_full import add_full
from ttlib import (check, digest, digest_at, equal, fail, goto, goto_exact,
                   recorder, stopped_replay)

LIMIT = 900


class History:
    """One run of the tree, with all digests that were seen in it."""

    def __init__(self, vm, rng, log):
        self.vm, self.rng, self.log = vm, rng, log
        self.seen = {}
        self.full = []          # full checkpoints: their answers
        self.added = []         # ids of plain ones
        self.count = 0

    def note(self, value):
        position, *rest = value
        known = self.seen.setdefault(position, rest)
        equal(rest, known, f'{self.vm.name}: digest at {position}')

    # Steps while it is recorded

    def run(self):
        self.vm.qmp.cmd('cont')
        time.sleep(self.rng.uniform(0.05, 0.4))

    def stop(self):
        self.vm.qmp.cmd('stop')
        self.note(digest(self.vm))

    def visit(self):
        """The past, and back: the present is as it was."""
        self.stop()
        before = digest(self.vm)
        end = self.vm.qmp.cmd('query-tt')['end']
        if not end:
            return              # a branch that has not run yet
        for _ in range(self.rng.randrange(1, 4)):
            position = self.rng.randrange(end)
            goto_exact(self.vm, position, LIMIT)
            self.note(digest(self.vm))
        if self.rng.random() < 0.5:
            self.vm.qmp.cmd('tt-checkpoint-add', timeout=LIMIT)
        if self.rng.random() < 0.3:
            goto(self.vm, LIMIT, position=self.vm.qmp.cmd('query-tt')['end'])
        goto(self.vm, LIMIT, where='end')
        after = digest(self.vm)
        equal(after[1:], before[1:], 'the present after the past')
        self.note(after)

    def add(self):
        point = self.vm.qmp.cmd('tt-checkpoint-add', timeout=LIMIT)
        if point['id'] > 1:                     # the first one stays
            self.added.append(point['id'])

    def add_full(self):
        self.count += 1
        self.full.append(add_full(self.vm, f'f{self.count}'))

    def delete(self):
        if self.added:
            at = self.rng.randrange(len(self.added))
            self.vm.qmp.cmd('tt-checkpoint-delete', id=self.added.pop(at))

    def step(self):
        kinds = [self.run] * 3 + [self.stop, self.visit, self.visit, self.add,
                                  self.add_full, self.delete]
        kind = self.rng.choice(kinds)
        self.log(f'{self.vm.name}: {kind.__name__}')
        kind()

    def live(self, steps):
        while not self.vm.qmp.cmd('query-tt')['live']:
            time.sleep(0.01)    # a branch that has not run yet
        for _ in range(steps):
            if self.vm.process.poll() is not None:
                fail(f'{self.vm.name} ended early: {self.vm.stderr[-300:]}')
            self.step()
        if not self.full:
            self.add_full()
        self.vm.qmp.cmd('cont')
        self.vm.qmp.send('quit')
        self.vm.wait(0)

    # Afterwards

    def judge(self, work, count):
        """A straight replay; then one that jumps, adds and deletes."""
        rng = self.rng
        with stopped_replay(work, self.vm.run, f'{self.vm.name}-s',
                            timeout=LIMIT) as rep:
            end = rep.qmp.cmd('query-tt')['end']
            places = {rng.randrange(end + 1) for _ in range(count)}
            for position in sorted(places | set(self.seen)):
                self.note(digest_at(rep, position))
        with stopped_replay(work, self.vm.run, f'{self.vm.name}-r',
                            timeout=LIMIT,
                            options=',checkpoint-memory=32M') as rep:
            mine = []
            for _ in range(count):
                goto_exact(rep, rng.choice(sorted(self.seen)), LIMIT)
                self.note(digest(rep))
                if rng.random() < 0.3:
                    point = rep.qmp.cmd('tt-checkpoint-add', timeout=LIMIT)
                    # The first one stays; between two fences it is the same.
                    if point['position'] and point['id'] not in mine:
                        mine.append(point['id'])
                if mine and rng.random() < 0.2:
                    rep.qmp.cmd('tt-checkpoint-delete',
                                id=mine.pop(rng.randrange(len(mine))))


def live_through(work, args, rng, steps, depth, ready, log=lambda text: None):
    """A run of @steps, then branches of branches, @depth deep. Returns how many
    digests were compared."""
    options = ',checkpoint-interval=' + rng.choice(['0.2', '1', '0'])
    total, parent = 0, None
    for level in range(depth + 1):
        name = f'run{level}'
        if parent is None:
            vm = recorder(work, args, name, options, qmp=1, timeout=LIMIT)
        else:
            point = rng.choice(parent.full)
            before = tree_hash(parent.vm.run)
            log(f'{name}: a branch of {parent.vm.name} at {point["id"]}')
            vm = brancher(work, args, parent.vm, point['id'], name, options,
                          qmp=1, timeout=LIMIT)
        with vm:
            if parent is None:
                vm.wait_serial(ready, LIMIT)
            history = History(vm, rng, log)
            history.live(steps)
        history.judge(work, 6)
        total += len(history.seen)
        if parent is not None:
            equal(tree_hash(parent.vm.run), before, f'{parent.vm.name} after '
                  'its branch')
            check(os.path.isdir(vm.run), f'{name} has no run')
        parent = history
    return total
