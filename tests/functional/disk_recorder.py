# SPDX-License-Identifier: GPL-2.0-or-later
"""Recorders with disks that are killed, and what they must leave.

A guest runs, with two disks that only we write, through QMP: so the model (disker.py) knows
what each disk holds at each full checkpoint that was acknowledged. More full checkpoints
are made on time, and all of them pin versions. After SIGKILL the run is whole, each disk
opens, each version that a checkpoint names is as it was, and the recording replays up to
its last byte.
"""

import json
import os
import threading

from disker import BLOCK, BLOCKS, Writer, checked, contents, lives_on
from guests import guest_args
from ttlib import (QmpError, TestFailure, check, equal, fail, recorder, replayer,
                   run_tool, tool, tt, wait_until)

DEVICES = ('disk0', 'disk1')


def disk_args(work):
    args = []
    for device in DEVICES:
        image = os.path.join(work, f'{device}.img')
        with open(image, 'wb') as out:
            out.truncate(BLOCKS * BLOCK)
        args += ['-drive', f'file={image},format=raw,if=none,id={device},discard=unmap',
                 '-device', f'ide-hd,drive={device}']
    return args


class Disk(Writer):
    """One of the disks: its checkpoints are its versions."""

    def path_in(self, run):
        return os.path.join(run, 'disks', f'{self.device}.tt')

    def look(self, run, gone):
        """What it is after the kill; ids of the checkpoints that it has versions of."""
        path = self.path_in(run)
        checked(path)
        listed = json.loads(tt('disk', 'list', run, '--disk', self.device,
                               '--json').stdout)['versions']
        named = {v['name']: v for v in listed if v['name']}
        for name in set(self.versions) - self.maybe:
            check('checkpoint' in named.get(name, {}),
                  f'{self.device}: no version of checkpoint {name}')
        for name in gone:
            check('checkpoint' not in named.get(name, {}),
                  f'{self.device}: checkpoint {name} is there again')
        for name in set(named) - set(self.versions) - gone:
            fail(f'{self.device}: nobody made a version {name}')
        for version in listed:
            data = contents(self.work, path, f',version={version["id"]}')
            equal(len(data), BLOCKS * BLOCK, f'bytes of version {version["id"]}')
            if version['name'] in self.versions:
                self.compare(data, self.versions[version['name']], {},
                             f'{self.device}: version {version["name"]}')
        self.compare(contents(self.work, path), self.sure, self.later, self.device)
        return {v['checkpoint'] for v in listed if 'checkpoint' in v}


class Recorder:
    """A recorder, and the models of its disks."""

    def __init__(self, work, rng, count):
        self.work, self.rng, self.count = work, rng, count
        self.disks = [Disk(work, None, rng, count, device) for device in DEVICES]
        self.ids, self.gone = {}, set()
        self.made = 0

    def write(self, vm):
        self.rng.choice(self.disks).write(vm)

    def flush(self, vm):
        self.rng.choice(self.disks).flush(vm)

    def checkpoint(self, vm):
        self.made += 1
        name = f'c{self.made}'
        heads = [{b: d.head(b) for b in range(BLOCKS)} for d in self.disks]
        for disk, head in zip(self.disks, heads):
            disk.maybe.add(name)
            disk.versions[name] = head
        self.ids[name] = vm.qmp.cmd('tt-checkpoint-add', timeout=60, full=True,
                                    name=name)['id']
        for disk, head in zip(self.disks, heads):
            disk.maybe.discard(name)
            disk.settle(head)

    def delete(self, vm):
        if len(self.ids) < 4:
            return
        name = self.rng.choice(sorted(self.ids))
        for disk in self.disks:
            disk.maybe.add(name)
        vm.qmp.cmd('tt-checkpoint-delete', timeout=60, id=self.ids[name])
        del self.ids[name]
        self.gone.add(name)
        for disk in self.disks:
            disk.maybe.discard(name)
            del disk.versions[name]

    def work_on(self, vm, seconds):
        """Until it is killed, after that time."""
        timer = threading.Timer(seconds, vm.process.kill)
        timer.start()
        try:
            while True:
                self.rng.choice((self.write,) * 8 + (self.flush,) * 2 +
                                (self.checkpoint,) * 2 + (self.delete,))(vm)
        except QmpError:
            raise                       # an answer: it was alive
        except (OSError, TestFailure) as error:
            if lives_on(vm) or 'failed:' in str(error):
                raise
        finally:
            timer.join()

    def life(self, seconds):
        """What became of it."""
        often = self.rng.choice(('0.05', '0.1', '0.3'))
        args = guest_args(self.work, 'torture', 'rounds=100000 percent=30')
        with recorder(self.work, args + disk_args(self.work), f'life{self.count}', qmp=1,
                      options=f',full=on,checkpoint-interval={often}') as vm:
            wait_until(lambda: is_live(vm), 'the recording')
            self.work_on(vm, seconds)
            vm.kill()
        return vm

    def inspect(self, vm):
        out, said = run_tool(tool('tt'), 'check', '--json', vm.run, rc=None)
        found = json.loads(out)
        check(found['intact'] or not found['segments'], f'tt check: {said}')
        points, others = (disk.look(vm.run, self.gone) for disk in self.disks)
        equal(points, others, 'the checkpoints that have versions of either disk')
        if not found['segments']:       # killed before it had written anything
            return len(points)
        with replayer(self.work, vm.run, options=',at-end=exit', timeout=120) as rep:
            rep.wait(0)
            check('replay exact' in rep.stderr and
                  f' {found["end"]} positions' in rep.stderr, rep.stderr)
            check(vm.serial.startswith(rep.serial), 'the console is another')
        return len(points)


def is_live(vm):
    """Not before its first instruction: until then a recorder has not begun."""
    try:
        return vm.qmp.cmd('query-tt', timeout=60)['live']
    except QmpError as error:
        check('not begun' in str(error), str(error))
    return False


def kill_recorders(work, rng, runs, longest):
    """As many recorders; how many full checkpoints they left."""
    total = 0
    for n in range(runs):
        one = Recorder(work, rng, n)
        total += one.inspect(one.life(rng.uniform(0.02, longest)))
    return total
