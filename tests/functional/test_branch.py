# SPDX-License-Identifier: GPL-2.0-or-later
"""Branches: a VM goes on for real from a full checkpoint, is recorded, replayed and
branched; the run that it came from never changes."""

import contextlib
import hashlib
import json
import os
import re
import shutil
import socket
import time

from guests import guest_args, linux_args, linux_net
from test_full import add_full
from test_stored import spoil_first_group
from ttlib import (SLOW, Skip, Vm, check, check_exact, digest_at, end_of, equal,
                   goto, limit, one_sentence, read_bytes, recorder, replay, run_tool,
                   seed, stopped_replay, tool, tt, wait_until)


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


def add_full_stopped(vm, name=None):
    """The guest cannot end meanwhile: on a busy host this takes longer than all its work,
    if a checkpoint that was due is just being stored. point['done']: works that the
    console tells of until then, at least the beginning of the line."""
    vm.qmp.cmd('stop')
    point = add_full(vm, name)
    point['done'] = {w.decode() for w in re.findall(rb'TT-DONE (\w+) ', vm.serial)}
    vm.qmp.cmd('cont')
    return point


def record_with_full(work, args, names=('middle',), text='\n', **kw):
    """A recording that is ended by quit, if the guest has not ended before; returns it
    and its full checkpoints."""
    with recorder(work, args, qmp=1, **kw) as vm:
        vm.qmp.cmd('query-status')      # connected before there is something to be late for
        points = []
        for name in names:
            vm.wait_serial(text)
            points.append(add_full_stopped(vm, name))
        with contextlib.suppress(BrokenPipeError):
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
        child.qmp.cmd('stop')
        again = add_full(child, 'again')    # its own past, while it records
        goto(child, position=again['position'] // 2)
        goto(child, where='end')
        child.qmp.cmd('cont')
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


@limit(60)
def test_what_a_branch_needs_stays(work):
    """The checkpoint at which a branch began is not deleted while there is the
    branch; another full one is."""
    args = guest_args(work, 'torture', 'rounds=100000 percent=30')
    with recorder(work, args, qmp=1, timeout=50) as parent:
        points = []
        for _ in range(2):
            parent.wait_serial('ticks')
            points.append(add_full(parent))
        with brancher(work, args, parent, points[0]['id'], qmp=1) as child:
            child.wait_serial('ticks')
            child.qmp.send('quit')
            child.wait(0)
        text = parent.qmp.error('tt-checkpoint-delete', id=points[0]['id'])
        check(f"the branch '{child.run}' starts" in text and
              'delete the branch first' in text, text)
        check_exact(work, child.run, serial_wanted=child.serial)
        parent.qmp.cmd('tt-checkpoint-delete', id=points[1]['id'], timeout=60)
        shutil.rmtree(child.run)
        parent.qmp.cmd('tt-checkpoint-delete', id=points[0]['id'], timeout=60)
        left = [c['id'] for c in parent.qmp.cmd('query-tt-checkpoints')]
        check(not {p['id'] for p in points} & set(left), f'{left}')
        parent.qmp.send('quit')
        parent.wait(0)


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
            late = add_full_stopped(parent, 'late')
            a.wait_serial('TT-DONE vda', 60)
            inner = add_full_stopped(a, 'inner')
            parent.wait(0)
            a.wait(0)
    whole = results(parent.serial)
    equal(sorted(whole), sorted(WORKS.split(',')), 'works of the parent')
    before = tree_hash(parent.run)
    seldom = ',checkpoint-interval=100000'
    with brancher(work, args, parent, late['id'], 'b', seldom, timeout=200) as b, \
            brancher(work, args, parent, '@late', 'c', seldom, timeout=200) as c:
        b.wait(0)
        c.wait(0)
    with brancher(work, args, a, inner['id'], 'd', timeout=200) as d:
        d.wait(0)
    equal(tree_hash(parent.run), before, 'the parent after its branches')
    equal([read_bytes(i) for i in images], frozen, 'the images')
    equal(sorted(results(a.serial)), sorted(WORKS.split(',')), 'works of a')
    for vm in (b, c):
        equal(set(results(vm.serial)), set(WORKS.split(',')) - late['done'],
              f'works of {vm.name}')
    check('rand' in results(d.serial), 'd did not get to its end')
    for vm in (a, b, c, d):
        check_befores(vm.serial, whole)
        check_exact(work, vm.run, name=f'{vm.name}r', serial_wanted=vm.serial,
                    timeout=200)
    check_random(work, d.run, seed(), 4, 'random')
    for vm in (b, c):           # their first checkpoint is the parent's
        sizes = [os.path.getsize(os.path.join(run, 'pages'))
                 for run in (vm.run, parent.run)]
        check(sizes[0] < sizes[1] / 4, f'the store of {vm.name} has {sizes[0]} '
              f'bytes, that of its parent {sizes[1]}')


# Refusals and accidents

@limit(200)
def test_refusals(work):
    """What cannot be done gets one sentence, and leaves nothing behind."""
    image = pattern_image(work, 'a', 'raw', 1)
    disk = ['-drive', f'file={image},format=raw,if=ide']
    args = guest_args(work, 'torture', 'rounds=100000 percent=30') + disk
    with recorder(work, args, qmp=1, timeout=60) as parent:
        parent.wait_serial('ticks')
        early = parent.qmp.cmd('tt-checkpoint-add')
        time.sleep(0.2)
        parent.qmp.cmd('tt-mark', name='between')
        time.sleep(0.2)
        full = add_full(parent, 'good')
        time.sleep(0.2)
        parent.qmp.cmd('tt-mark', name='later')
        parent.qmp.send('quit')
        parent.wait(0)
    before = tree_hash(parent.run)
    none = 'no full checkpoint'
    for at, text in ((early['id'], none), ('@between', none),
                     ('@nowhere', "no mark 'nowhere'"), ('77', 'no checkpoint'),
                     ('x', 'number of a checkpoint'),
                     ('@later', f'at={full["id"]}')):
        said = refused(work, args, parent, at)
        check(text in said, f'at={at}: {said}')
    more = args[:]
    more[more.index('-m') + 1] = '65'
    for other, text in (
            (more, '(-m)'), ([*args, '-smp', '2'], '(-smp)'),
            ([*args, '-cpu', 'max'], '(-cpu)'),
            ([*args, '-M', 'q35'], '(-machine)'),
            ([*args, '-device', 'VGA'], 'RAM block'),
            (args[:-len(disk)], 'disk')):
        said = refused(work, other, parent, full['id'])
        check(text in said and 'options' in said, f'{text}: {said}')
    said = refused(work, args, os.path.join(work, 'nothing'), 1)
    check('this is not a run' in said, said)
    with Vm(work, [*args, '-tt', f'branch,dir={parent.run}']) as vm:
        vm.wait(1)
    check('-tt branch needs' in one_sentence(vm, 'no at'), vm.stderr)
    os.utime(image, (1, 1))
    said = refused(work, args, parent, full['id'])
    check(image in said and 'force=on' in said, said)
    with brancher(work, args, parent, full['id'], 'forced', ',force=on',
                  qmp=1) as vm:
        vm.wait_serial('ticks')
        vm.qmp.send('quit')
        vm.wait(0)
    check('has changed' in vm.stderr, vm.stderr)
    os.unlink(image)
    said = refused(work, args, parent, full['id'], 'gone', ',force=on')
    check(image in said, said)
    equal(tree_hash(parent.run), before, 'the parent afterwards')


@limit(100)
def test_full_refused(work):
    """Where there can be no full checkpoint, nothing changes."""
    image = pattern_image(work, 'a', 'raw', 1)
    args = guest_args(work, 'torture', 'rounds=100000 percent=30')
    disk = ['-blockdev', f'driver=file,filename={image},node-name=f',
            '-blockdev', 'driver=raw,file=f,node-name=r',
            '-blockdev', 'driver=copy-on-read,file=r,node-name=d']
    with recorder(work, [*args, *disk, '-device', 'nvme,serial=x,drive=d'],
                  qmp=1) as vm:
        vm.wait_serial('ticks')
        said = vm.qmp.error('tt-checkpoint-add', full=True)
        check('cannot be saved' in said and 'nvme' in said, said)
    with recorder(work, [*args, *disk, '-device', 'virtio-blk-pci,drive=d'],
                  'filter', qmp=1) as vm:
        vm.wait_serial('ticks')
        said = vm.qmp.error('tt-checkpoint-add', full=True)
        check('leave out the filter' in said, said)
        check(not vm.qmp.cmd('query-block-jobs'), 'jobs')
        left = os.path.join(vm.run, 'disks')
        check(not os.path.exists(left) or not os.listdir(left),
              'files are left')
        equal(vm.qmp.cmd('query-status')['status'], 'running', 'status')
        vm.qmp.send('quit')
        vm.wait(0)
    with stopped_replay(work, vm.run) as rep:
        said = rep.qmp.error('tt-checkpoint-add', full=True)
        check('take it while recording' in said, said)


@limit(100)
def test_killed(work):
    """A branch that is killed leaves a run that replays to its last sealed byte;
    without its parent it gets one sentence."""
    args = guest_args(work, 'torture', 'rounds=100000 percent=30')
    parent, (point,) = record_with_full(work, args, text='ticks')
    before = tree_hash(parent.run)
    with brancher(work, args, parent, point['id'], timeout=60) as child:
        # A log is on disk some time after the guest has said what is in it.
        wait_until(lambda: 'ticks' in tt('console', child.run, rc=None).stdout, 'a round')
        child.kill()
        serial = child.serial
    equal(tree_hash(parent.run), before, 'the parent afterwards')
    rep = replay(work, child.run, timeout=60)
    check(serial.startswith(rep.serial) and b'ticks' in rep.serial,
          'the replay shows another console')
    away = parent.run + '.away'
    os.rename(parent.run, away)
    with stopped_replay(work, child.run, 'lost', qmp=0) as vm:
        vm.wait(1)
    check('its parent' in one_sentence(vm, 'parent gone'), vm.stderr)
    shutil.copytree(child.run, parent.run)      # another run in its place
    with stopped_replay(work, child.run, 'wrong', qmp=0) as vm:
        vm.wait(1)
    check('another run' in one_sentence(vm, 'wrong parent'), vm.stderr)
    shutil.rmtree(parent.run)
    os.rename(away, parent.run)
    replay(work, child.run, name='back', timeout=60)


@limit(60)
def test_damaged_parent(work):
    """RAM that the parent no longer has whole is damage, not a divergence."""
    args = guest_args(work, 'torture', 'rounds=30 percent=30')
    parent, (point,) = record_with_full(work, args, text='ticks')
    with brancher(work, args, parent, point['id'], timeout=60) as child:
        child.wait(0)
    spoil_first_group(os.path.join(parent.run, 'pages'))
    rep = replay(work, child.run, rc=1)
    check('cannot go on' in rep.stderr and 'parent' in rep.stderr and
          'diverged' not in rep.stderr, rep.stderr)
    with stopped_replay(work, child.run, 'looked') as vm:
        equal(vm.qmp.cmd('query-tt')['diverged'], False, 'diverged')
        for where in ('end', 'start'):
            said = vm.qmp.error('tt-goto', where=where)
            check('cannot go on' in said and 'parent' in said, said)


@limit(100)
def test_tool(work):
    """tt branch runs it; tt info shows where it stands."""
    args = guest_args(work, 'torture', 'rounds=30 percent=30')
    parent, (point,) = record_with_full(work, args, ('here',), 'ticks')
    path = os.path.join(work, 'child.run')
    for to in '/dev/full', os.path.join(work, 'x' * 300), work, parent.run:
        said = tt('branch', parent.run, '--at', '@here', '--to', to, rc=1).stderr
        check('--to' in said and 'dir=' not in said and said.count('\n') == 1, said)
    before = len(parent.serial)
    run_tool(tool('tt'), 'branch', parent.run, '--at', '@here', '--to', path,
             timeout=80)
    check(len(parent.serial) > before, 'the console file did not grow')
    info = json.loads(run_tool(tool('tt'), 'info', parent.run, '--json')[0])
    equal(info['full'], [{'name': 'here', 'checkpoint': point['id'],
                          'position': point['position'], 'has-disks': True}],
          'full checkpoints')
    equal(info['branches'], [{'path': path, 'checkpoint': point['id'],
                              'position': point['position']}], 'branches')
    info = json.loads(run_tool(tool('tt'), 'info', path, '--json')[0])
    equal([p['path'] for p in info['parents']], [parent.run], 'parents')
    check_exact(work, path, serial_wanted=parent.serial[before:])
    vm = Vm(work, ['-S', *args, '-tt', f'branch,dir={parent.run},at=@here'],
            qmp=1)
    with vm:
        equal(vm.qmp.cmd('query-status')['status'], 'prelaunch', 'with -S')
        vm.qmp.send('quit')
        vm.wait(0)
    check(not [n for n in os.listdir(work) if n.startswith('tt-run')],
          'a branch that never ran left something')


@limit(200)
def test_smp(work):
    """Two vCPUs."""
    args = linux_args('procs,rand', 'n=150') + ['-smp', '2']
    parent, (point,) = record_with_full(work, args, text='TT-GUEST-READY',
                                        timeout=90)
    with brancher(work, args, parent, point['id'], timeout=120) as child:
        child.wait(0)
    check('rand' in results(child.serial), 'the branch did not do its work')
    check_exact(work, child.run, serial_wanted=child.serial, timeout=120)


class Console:
    """A guest's serial port on a socket: type, and wait for what it prints."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        wait_until(lambda: self.connects(path), f'the socket {path}')
        self.text = b''

    def connects(self, path):
        """It is there a moment before somebody listens."""
        return self.sock.connect_ex(path) == 0

    def wait(self, text, timeout=60):
        end = time.monotonic() + timeout * SLOW
        while text.encode() not in self.text:
            self.sock.settimeout(max(end - time.monotonic(), 0.01))
            try:
                data = self.sock.recv(4096)
            except socket.timeout:
                data = b''
            check(data, f'no "{text}" on the console; it ends with '
                        f'{self.text[-200:]!r}')
            self.text += data
        before, _, self.text = self.text.partition(text.encode())
        return before

    def type(self, line):
        self.sock.sendall(line.encode() + b'\r')


def console(vm, kind='con'):
    path = vm.socket_path(kind)
    vm.args += ['-chardev', f'socket,id=con,path={path},server=on,wait=off',
                '-serial', 'chardev:con']
    return path


@limit(200)
def test_shell(work):
    """Linux at a shell, with an IDE disk that -snapshot protects: each branch knows
    what was typed before it began, and nothing of the others."""
    image = pattern_image(work, 'a', 'qcow2', 1)
    args = linux_args('shell') + linux_net() + [
        '-snapshot', '-drive', f'file={image},if=ide']
    before = read_bytes(image)
    rng = seed()
    vm = recorder(work, args, qmp=1, serial=False, timeout=150)
    path = console(vm)
    with vm:
        con = Console(path)
        con.wait('guest# ')
        con.type('echo first > /dev/sda; x=seven; sync')
        con.wait('guest# ')
        point = add_full(vm, 'shell')
        con.type('echo second > /dev/sda; x=nine; sync; echo d$((1))ne')
        con.wait('d1ne')
        vm.qmp.send('quit')
        vm.wait(0)
    equal(read_bytes(image), before, 'the image under -snapshot')
    kids = []
    for number in range(2):
        kid = brancher(work, args, vm, point['id'], f'kid{number}', qmp=1,
                       serial=False, timeout=100)
        path = console(kid)
        with kid:
            con = Console(path)
            con.type('head -c 6 /dev/sda; echo x=$x; '
                     'ping -c 1 10.0.2.2 | grep -c from; echo d$((1))ne')
            seen = con.wait('d1ne')
            check(b'first' in seen and b'x=seven' in seen,
                  f'kid{number}: {seen}')
            con.type(f'echo other{number} > /dev/sda; sync; exit')
            kid.wait(0)
        kids.append(kid)
    equal(read_bytes(image), before, 'the image after the branches')
    for kid in kids:
        replay(work, kid.run, name=f'{kid.name}r', timeout=100)
    check_random(work, kids[0].run, rng, 3, 'random')


@limit(300)
def test_uefi(work):
    """A q35 machine with UEFI, whose variables are on a flash that the guest
    writes, with a screen, USB, a CD and two disks."""
    firmware = '/usr/share/OVMF'
    if not os.path.exists(f'{firmware}/OVMF_VARS_4M.fd'):
        raise Skip('OVMF is not installed')
    flash = os.path.join(work, 'vars.fd')
    shutil.copy(f'{firmware}/OVMF_VARS_4M.fd', flash)
    images = [pattern_image(work, 'a', 'qcow2', 1),
              pattern_image(work, 'b', 'raw', 2),
              pattern_image(work, 'c', 'raw', 3)]
    args = linux_args('vda,rand', machine='q35') + [
        '-drive', f'if=pflash,format=raw,readonly=on,'
                  f'file={firmware}/OVMF_CODE_4M.fd',
        '-drive', f'if=pflash,format=raw,file={flash}',
        '-device', 'VGA', '-device', 'qemu-xhci', '-device', 'usb-kbd',
        '-device', 'e1000e', '-device', 'virtio-rng-pci',
        '-drive', f'file={images[0]},if=virtio',
        '-drive', f'file={images[1]},format=raw,if=ide,index=0',
        '-drive', f'file={images[2]},format=raw,if=ide,index=1,media=cdrom']
    with recorder(work, args, qmp=1, timeout=150) as parent:
        parent.wait_serial('TT-GUEST-READY', 120)
        point = add_full_stopped(parent)
        parent.wait(0)
    with brancher(work, args, parent, point['id'], timeout=100) as child:
        child.wait(0)
    equal(sorted(results(child.serial)), ['rand', 'vda'], 'works')
    check_befores(child.serial, results(parent.serial))
    equal(len([n for n in os.listdir(os.path.join(child.run, 'disks')) if
               n.endswith('.tt')]), 3, 'disks')
    check_exact(work, child.run, serial_wanted=child.serial, timeout=100)
