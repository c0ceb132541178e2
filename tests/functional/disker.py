# SPDX-License-Identifier: GPL-2.0-or-later
"""Disks with versions: writers that are killed, and what they must leave.

A writer is QEMU without a machine: QMP writes, flushes, makes and deletes versions. The
model knows, for each block of 4 KiB, the last value that was flushed and all that were
written since. After SIGKILL `qemu-img check` must find nothing, and the disk and every
version that was acknowledged must hold what they should.
"""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import threading

from ttlib import SLOW, Vm, check, fail, run_tool, tool, wait_until

BLOCK = 4096
BLOCKS = 300


def qemu_img(*args, rc=0, timeout=60):
    return run_tool(tool('qemu-img'), *args, rc=rc, timeout=timeout)[0]


def checked(path):
    """qemu-img check finds nothing; what it says, as JSON."""
    said = json.loads(qemu_img('check', '-f', 'tt', '--output=json', path))
    for bad in ('corruptions', 'leaks', 'check-errors'):
        check(not said.get(bad), f'qemu-img check {path}: {bad}: {said.get(bad)}')
    return said


def contents(work, path, options=''):
    """All bytes of a disk, or (",version=N") of a version of it."""
    raw = os.path.join(work, 'contents.raw')
    qemu_img('convert', '--image-opts', '-O', 'raw',
             f'driver=tt,file.driver=file,file.filename={path}{options}', raw)
    with open(raw, 'rb') as f:
        data = f.read()
    os.unlink(raw)
    return data


def new_disk(work, *options, size=None):
    path = os.path.join(work, 'disk.tt')
    qemu_img('create', '-q', '-f', 'tt', *options, path, *([str(size)] if size else []))
    return path


def write_disk(work, path, *commands):
    """Commands of qemu-io, in QEMU without a machine."""
    node = f'driver=tt,node-name=disk,file.driver=file,file.filename={path}'
    with Vm(work, ['-machine', 'none', '-nodefaults', '-display', 'none', '-blockdev',
                   node], qmp=1, serial=False) as vm:
        for command in commands:
            vm.qmp.hmp(f'qemu-io disk "{command}"')
        vm.qmp.cmd('quit')
        vm.wait(0)
        said = vm.stdout.decode(errors='replace')       # the monitor gets nothing of it
        check('failed' not in said and 'rror' not in said, f'{commands}: {said}')


def takes_lock(file):
    """The process that held it is gone, and has closed all that it had open."""
    with contextlib.suppress(BlockingIOError):
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


class NbdServer:
    """qemu-nbd: an image on a Unix socket, for as many clients as come."""

    def __init__(self, work, image, fmt='raw'):
        self.socket = os.path.join(work, 'nbd.sock')
        self.uri = f'nbd+unix:///?socket={self.socket}'
        self.image, self.format = image, fmt
        self.pid_file = os.path.join(work, 'nbd.pid')

    def __enter__(self):
        run_tool(tool('qemu-nbd'), '--fork', '--persistent', '--shared=0', '-f', self.format,
                 '--pid-file', self.pid_file, '-k', self.socket, self.image)
        return self

    def __exit__(self, *unused):
        with open(self.pid_file, 'r+', encoding='ascii') as f:
            os.kill(int(f.read()), signal.SIGTERM)
            wait_until(lambda: takes_lock(f), 'the end of qemu-nbd')


def lives_on(vm):
    """Its connections end before the process is gone, which may take a while."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        vm.process.wait(10 * SLOW)
    return vm.process.poll() is None


class Writer:
    """A QEMU that has the disk open, and the model of what it does."""

    def __init__(self, work, path, rng, count, device='disk'):
        self.work, self.path, self.rng, self.count = work, path, rng, count
        self.device = device
        self.sure = {}                  # block -> value flushed
        self.later = {}                 # block -> values since
        self.versions = {}              # name -> {block: value}
        self.maybe = set()              # being made or deleted when it ended
        self.flushed_names = set()

    def head(self, block):
        return self.later[block][-1] if self.later.get(block) else \
            self.sure.get(block, 0)

    def settle(self, head):
        """All that was written before is on the disk now."""
        self.sure = head
        self.later = {}

    def write(self, vm):
        first = self.rng.randrange(BLOCKS)
        n = min(self.rng.choice((1, 1, 1, 2, 5, 20)), BLOCKS - first)
        value = self.rng.choice((0, *range(1, 256)))
        for block in range(first, first + n):
            self.later.setdefault(block, []).append(value)
        how = '-z' if value == 0 else f'-P {value}'
        # One that failed is seen as a difference from the model.
        vm.qmp.hmp(f'qemu-io {self.device} "write {how} {first * BLOCK} {n * BLOCK}"')

    def flush(self, vm):
        head = {b: self.head(b) for b in range(BLOCKS)}
        vm.qmp.hmp(f'qemu-io {self.device} flush')
        self.settle(head)

    def version(self, vm):
        name = f'v{self.count}-{len(self.versions)}-{vm.qmp.next_id}'
        head = {b: self.head(b) for b in range(BLOCKS)}
        self.maybe.add(name)
        self.versions[name] = head
        vm.qmp.cmd('blockdev-snapshot-internal-sync', device='disk', name=name)
        self.maybe.discard(name)
        self.settle(head)

    def delete(self, vm):
        if len(self.versions) < 4:
            return
        name = self.rng.choice(sorted(self.versions))
        self.maybe.add(name)
        vm.qmp.cmd('blockdev-snapshot-delete-internal-sync', device='disk', name=name)
        self.maybe.discard(name)
        del self.versions[name]

    def life(self, seconds):
        """Works until it is killed, after that time."""
        node = (f'driver=tt,node-name=disk,file.driver=file,'
                f'file.filename={self.path},discard=unmap')
        with Vm(self.work, ['-machine', 'none', '-nodefaults', '-display', 'none',
                            '-blockdev', node], name=f'writer{self.count}', qmp=1,
                serial=False) as vm:
            vm.qmp.cmd('query-status')
            timer = threading.Timer(seconds, vm.process.kill)
            timer.start()
            try:
                while True:
                    work = self.rng.choice((self.write,) * 8 + (self.flush,) * 2 +
                                           (self.version, self.delete))
                    work(vm)
            except Exception as error:      # the connection ends with it
                if lives_on(vm) or 'failed:' in str(error):
                    raise
            finally:
                timer.join()
        return self

    def inspect(self):
        checked(self.path)
        info = json.loads(qemu_img('info', '--output=json', self.path))
        there = {s['name']: s['id'] for s in info.get('snapshots', [])}
        for name in set(self.versions) - set(there) - self.maybe:
            fail(f'version {name} is gone')
        for name in set(there) - set(self.versions):
            fail(f'version {name} is there again')
        for name, number in there.items():
            self.compare(contents(self.work, self.path, f',version={number}'),
                         self.versions[name], {}, f'version {name}')
        data = contents(self.work, self.path)
        self.compare(data, self.sure, self.later, 'the disk')
        self.versions = {n: v for n, v in self.versions.items() if n in there}
        self.maybe = set()
        self.settle({b: data[b * BLOCK] for b in range(BLOCKS)})

    @staticmethod
    def compare(data, sure, later, what):
        for block in range(BLOCKS):
            seen = data[block * BLOCK:(block + 1) * BLOCK]
            allowed = {sure.get(block, 0), *later.get(block, ())}
            # Two writes of which the later was cut: a sector each.
            values = {seen[i] for i in range(0, BLOCK, 512)}
            check(values <= allowed and (len(values) == 1 or later.get(block)),
                  f'{what}: block {block} holds {sorted(values)}, not one of '
                  f'{sorted(allowed)}')


def kill_writers(work, rng, runs, longest):
    """As many lives of one disk after each other; how many writers were killed."""
    path = os.path.join(work, 'disk.tt')
    qemu_img('create', '-q', '-f', 'tt', path, str(BLOCKS * BLOCK))
    writer = Writer(work, path, rng, 0)
    for n in range(runs):
        writer.count = n
        writer.life(rng.uniform(0.02, longest)).inspect()
    return runs
