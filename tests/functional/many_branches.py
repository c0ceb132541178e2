# SPDX-License-Identifier: GPL-2.0-or-later
"""Many branches of one full checkpoint, each of which writes 4 KiB to its disk, and what
they take: tests/functional/test_many_branches.py, tests/bench/bench-branches.py."""

import os
import re
import shutil

from guests import guest_args
from test_branch import brancher, tree_hash
from test_full import add_full
from ttlib import check, equal, read_bytes, recorder

WRITE = 4096
IMAGE = 'write.img'                 # of the guest


def used(path):
    """What `du` says, in bytes."""
    total = os.lstat(path).st_blocks * 512
    for folder, folders, files in os.walk(path):
        for name in [*folders, *files]:
            total += os.lstat(os.path.join(folder, name)).st_blocks * 512
    return total


def parent_of(work):
    """A run that has not written yet, its options, and its full checkpoint."""
    args = guest_args(work, 'diskwrite', 'nmis=1')
    with recorder(work, args, 'parent', qmp=1) as vm:
        vm.wait_serial('ready')
        point = add_full(vm)['id']
        vm.qmp.send('quit')
        vm.wait(0)
    return vm.run, args, point


def store_in(run):
    disks = [n for n in os.listdir(os.path.join(run, 'disks')) if n.endswith('.tt')]
    equal(len(disks), 1, f'disks of {run}')
    return os.path.join(run, 'disks', disks[0])


def written_by(vm):
    """(where, what) the guest says that it wrote."""
    found = re.findall(rb'place=(\w+) what=(\w+)', vm.serial)
    equal(len(found), 1, f'writes of {vm.name} ({vm.serial[-200:]})')
    return tuple(int(value, 16) for value in found[0])


def expected(work, place, what):
    """The disk of that branch."""
    data = bytearray(read_bytes(os.path.join(work, IMAGE)))
    data[place * WRITE:(place + 1) * WRITE] = what.to_bytes(4, 'little') * (WRITE // 4)
    return bytes(data)


def branch(work, parent, args, point, number):
    """Its Vm, which has ended."""
    with brancher(work, args, parent, point, f'child{number}', qmp=1) as vm:
        vm.qmp.cmd('inject-nmi')
        vm.wait(0)
    return vm


def parts_of(run):
    """{file or folder of a run: bytes that it takes}."""
    return {name: used(os.path.join(run, name)) for name in os.listdir(run)}


def many(work, count, look=None, keep=True):
    """The parts of each branch. @look: called with each, while it is there."""
    parent, args, point = parent_of(work)
    before, parts = tree_hash(parent), []
    for number in range(count):
        vm = branch(work, parent, args, point, number)
        parts.append(dict(parts_of(vm.run), all=used(vm.run)))
        if look:
            look(vm)
        if not keep:
            shutil.rmtree(vm.run)
    check(tree_hash(parent) == before, 'the parent has changed')
    return parent, parts
