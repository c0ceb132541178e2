# SPDX-License-Identifier: GPL-2.0-or-later
"""Branches: a VM goes on for real from a full checkpoint, is recorded, replayed and
branched; the run that it came from never changes."""

import hashlib
import os
import shutil

from guests import guest_args, linux_args, linux_net
from test_full import add_full
from ttlib import (MACHINE, Vm, check, check_exact, digest_at, end_of, equal,
                   fail, goto, limit, one_sentence, read_bytes, record,
                   recorder, run_tool, seed, stopped_replay, tool)


def tree_hash(path):
    """Of all files in a run: names, contents and times."""
    total = hashlib.sha256()
    for folder, folders, files in sorted(os.walk(path)):
        for name in sorted(files):
            file = os.path.join(folder, name)
            total.update(file.encode())
            total.update(str(os.stat(file).st_mtime_ns).encode())
            total.update(read_bytes(file))
    return total.hexdigest()


def brancher(work, args, parent, at, name='child', options='', **kw):
    """A Vm that branches from a run; start it with 'with'."""
    path = os.path.join(work, f'{name}.run')
    shutil.rmtree(path, ignore_errors=True)
    parent = getattr(parent, 'run', parent)
    vm = Vm(work, [*args, '-tt', f'branch,dir={parent},at={at},to={path}'
                   f'{options}'], name=name, **kw)
    vm.run = path
    return vm


def refused(work, args, parent, at, name='refused', options=''):
    """A branch that does not start leaves nothing; returns why."""
    with brancher(work, args, parent, at, name, options) as vm:
        vm.wait(1)
    check(not os.path.exists(vm.run), f'{name} left {vm.run}')
    return one_sentence(vm, name)


def check_random(work, run, rng, count, name):
    """Random positions of a replay are those of a straight one."""
    with stopped_replay(work, run, name, timeout=150) as vm:
        end = end_of(vm)
        places = [rng.randrange(end + 1) for _ in range(count)] + [0, end]
        wanted = {p: digest_at(vm, p) for p in sorted(places)}
        rng.shuffle(places)
        for position in places:
            equal(digest_at(vm, position), wanted[position],
                  f'digest at {position} of {name}')


def record_with_full(work, args, names=('middle',), text='\n', **kw):
    """A recording that is ended by quit; returns it and its full checkpoints."""
    with recorder(work, args, qmp=1, **kw) as vm:
        points = []
        for name in names:
            vm.wait_serial(text)
            points.append(add_full(vm, name))
        vm.qmp.send('quit')
        vm.wait(0)
    return vm, points


@limit(150)
def test_torture(work):
    """A bare guest from its middle to its end, twice over."""
    args = guest_args(work, 'torture', 'rounds=30 percent=30')
    parent, (point,) = record_with_full(work, args, text='ticks')
    before = tree_hash(parent.run)
    with brancher(work, args, parent, point['id'], qmp=1, timeout=60) as child:
        child.wait_serial('ticks')
        again = add_full(child, 'again')
        child.wait(0)
    equal(tree_hash(parent.run), before, 'the parent afterwards')
    check_exact(work, child.run, serial_wanted=child.serial, timeout=60)
    check_random(work, child.run, seed(), 5, 'random')
    with stopped_replay(work, parent.run, 'before') as vm:
        wanted = digest_at(vm, point['position'])
    with stopped_replay(work, child.run, 'after') as vm:
        seen = digest_at(vm, 0)
    equal(seen[1], wanted[1], "the vCPU's digest at the start of the branch")
    with brancher(work, args, child, '@again', 'grandchild') as third:
        third.wait(0)
    check_exact(work, third.run, serial_wanted=third.serial, timeout=60)


# Linux

WORKS = 'vda,vdb,vdc,net,rand'


def pattern_image(work, name, fmt, byte):
    """An image of 64 MiB whose first blocks hold a pattern."""
    raw = os.path.join(work, f'{name}.raw')
    with open(raw, 'wb') as out:
        out.write(bytes([byte]) * (4 << 20))
        out.truncate(64 << 20)
    if fmt == 'raw':
        return raw
    path = os.path.join(work, f'{name}.{fmt}')
    run_tool(tool('qemu-img'), 'convert', '-f', 'raw', '-O', fmt, raw, path)
    os.unlink(raw)
    return path


def three_disks(work):
    """One of each kind: a raw -drive, a qcow2 -blockdev made of two nodes, and a
    qcow2 with snapshot=on."""
    images = [pattern_image(work, 'a', 'raw', 1),
              pattern_image(work, 'b', 'qcow2', 2),
              pattern_image(work, 'c', 'qcow2', 3)]
    return images, [
        '-drive', f'file={images[0]},format=raw,if=none,id=a,cache=unsafe',
        '-device', 'virtio-blk-pci,drive=a',
        '-blockdev', f'driver=file,filename={images[1]},node-name=bfile',
        '-blockdev', 'driver=qcow2,file=bfile,node-name=b',
        '-device', 'virtio-blk-pci,drive=b,id=blk',
        '-drive', f'file={images[2]},if=virtio,snapshot=on']


def results(serial):
    """What each work printed, by its name."""
    found = {}
    for line in serial.decode(errors='replace').split('\n'):
        words = line.split()
        check(not line.startswith('TT-FAIL'), line)
        if line.startswith('TT-DONE'):
            found[words[1]] = dict(w.split('=') for w in words[2:])
    return found


def check_befores(serial, parent):
    """A disk that is worked on in a branch is as the parent found it."""
    for name, values in results(serial).items():
        if 'before' in values:
            equal(values['before'], parent[name]['before'],
                  f'{name} before the work')


@limit(400)
def test_linux(work):
    """Linux with three kinds of disks and a network: branches while the parent
    records, two of one checkpoint at once, and a branch of a branch."""
    images, disks = three_disks(work)
    args = linux_args(WORKS) + disks + linux_net()
    with recorder(work, args, qmp=1, timeout=300) as parent:
        parent.wait_serial('TT-GUEST-READY', 60)
        early = add_full(parent, 'early')
        frozen = [read_bytes(image) for image in images]
        with brancher(work, args, parent, early['id'], 'a', qmp=1,
                      timeout=200) as a:
            parent.wait_serial('TT-DONE vda', 60)
            late = add_full(parent, 'late')
            parent.wait(0)
            a.wait_serial('TT-DONE vda', 60)
            inner = add_full(a, 'inner')
            a.wait(0)
    whole = results(parent.serial)
    equal(sorted(whole), sorted(WORKS.split(',')), 'works of the parent')
    before = tree_hash(parent.run)
    with brancher(work, args, parent, late['id'], 'b', timeout=200) as b, \
            brancher(work, args, parent, '@late', 'c', timeout=200) as c:
        b.wait(0)
        c.wait(0)
    with brancher(work, args, a, inner['id'], 'd', timeout=200) as d:
        d.wait(0)
    equal(tree_hash(parent.run), before, 'the parent after its branches')
    equal([read_bytes(i) for i in images], frozen, 'the images')
    equal(sorted(results(a.serial)), sorted(WORKS.split(',')), 'works of a')
    for vm in (b, c):
        equal(sorted(results(vm.serial)), sorted(WORKS.split(',')[1:]),
              f'works of {vm.name}')
    check('rand' in results(d.serial), 'd did not get to its end')
    for vm in (a, b, c, d):
        check_befores(vm.serial, whole)
        check_exact(work, vm.run, name=f'{vm.name}r', serial_wanted=vm.serial,
                    timeout=200)
    check_random(work, d.run, seed(), 4, 'random')
