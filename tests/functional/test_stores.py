# SPDX-License-Identifier: GPL-2.0-or-later
"""Disks of a recording: the guest writes to the run, its image stays as it is or gets the
result at the end, and what it reads may be named instead of logged."""

import json
import os
import shutil

from disker import checked, qemu_img
from guests import guest_args, linux_args, linux_disk
from test_branch import add_full_stopped, brancher, refused, tree_hash
from test_full import add_full
from test_linux import READY
from test_robust import ENDLESS
from ttlib import (REPO, Vm, check, check_exact, digest_at, equal, limit, one_sentence,
                   read_bytes, recorder, replay, run_tool, stopped_replay, tool, tt,
                   wait_until)

WORK = 'vda,rand'


def image_of(work):
    return os.path.join(work, 'disk.img')


def store_of(run):
    return os.path.join(run, 'disks', 'disk0.tt')


def same_disk(store, image):
    qemu_img('compare', '-U', store, image)


def linux(work, options, **kw):
    """A Linux that writes to its disk, up to its end; its Vm, and the image before."""
    disk = linux_disk(work)
    before = read_bytes(image_of(work))
    with recorder(work, linux_args(WORK) + disk, options=options, timeout=200,
                  **kw) as vm:
        vm.wait(0)
    check(b'TT-DONE vda' in vm.serial, 'the guest did not write')
    return vm, before


@limit(400)
def test_private(work):
    """The image never changes. What is read from disks is named, not logged: a replay
    reads it from the run and the image, a pack has it, and where it is lost the replay
    ends there with one sentence. Then the image gets the writes by command."""
    vm, before = linux(work, ',disk-reads=store,full=on,checkpoint-interval=1', qmp=1)
    check(read_bytes(image_of(work)) == before, 'the image has changed')
    checked(store_of(vm.run))
    kinds = tt('stats', vm.run).stdout
    check('disk ' in kinds, f'nothing was named: {kinds}')
    check_exact(work, vm.run, serial_wanted=vm.serial, timeout=200)
    check('exact' in tt('verify', vm.run).stdout, 'tt verify')

    fulls = json.loads(tt('info', vm.run, '--json').stdout)['full']
    check(fulls, 'no checkpoint is a full one')
    versions = json.loads(tt('disk', 'list', vm.run, '--json').stdout)['versions']
    equal(versions[0]['name'], 'start', 'the first version')
    equal([v.get('checkpoint') for v in versions[1:]], [f['checkpoint'] for f in fulls],
          'the versions of full checkpoints')
    qemu_img('compare', '--image-opts',
             f'driver=tt,version=1,file.driver=file,file.filename={store_of(vm.run)}',
             f'driver=raw,file.driver=file,file.filename={image_of(work)}')

    pack = os.path.join(work, 'run.pack')
    tt('pack', vm.run, pack)
    tt('unpack', pack, os.path.join(work, 'whole.run'))
    moved = image_of(work) + '.moved'
    os.rename(image_of(work), moved)
    rep = replay(work, os.path.join(work, 'whole.run'), name='whole', timeout=200)
    equal(rep.serial, vm.serial, 'the console of the pack')
    lost(work, vm.run, 'cannot be opened')
    shutil.copy(moved, image_of(work))
    with open(image_of(work), 'r+b') as image:
        image.write(b'another image')
    said = lost(work, vm.run, 'was changed')
    check('can still be reached' in said and 'tt info' not in said, said)
    said = tt('pack', vm.run, pack + '2', rc=1).stderr
    check('was changed' in said and not os.path.exists(pack + '2'), said)
    os.rename(moved, image_of(work))

    said = one_sentence(tt('disk', 'commit', vm.run, rc=1).stderr, 'a run that reads')
    check('disk-reads=store' in said and '--force' in said, said)
    equal(read_bytes(image_of(work)), before, 'the image')
    tt('disk', 'commit', vm.run, '--force')
    check(read_bytes(image_of(work)) != before, 'nothing was committed')
    same_disk(store_of(vm.run), image_of(work))


def lost(work, run, why):
    """The replay gets as far as it can, and says where that is."""
    with Vm(work, ['-tt', f'replay,dir={run}'], name='lost', timeout=200) as vm:
        vm.wait(1)
    said = one_sentence(vm, 'lost')
    check('cannot go on from position' in said and why in said, said)
    return said


@limit(400)
def test_missing(work):
    """A disk that the log names is missing: the replay, tt info and tt check say so, and
    which positions can still be reached; and these are what they were."""
    vm = linux(work, ',disk-reads=store,checkpoint-interval=1')[0]
    store, moved = store_of(vm.run), os.path.join(work, 'moved')
    equal(json.loads(tt('info', vm.run, '--json').stdout)['missing_disks'], [], 'missing')
    os.rename(store, moved)
    done = tt('info', vm.run, '--json', rc=1)
    info = json.loads(done.stdout)
    equal(info['missing_disks'], ['disks/disk0.tt'], 'what is missing')
    spans = info['reachable']
    check(len(spans) > 1 and spans[0][0] == 0 and spans[0][1] < info['end'], spans)
    said = one_sentence(done.stderr, 'tt info')
    check('is missing' in said and f'positions 0 to {spans[0][1]:,}, ' in said, said)
    said = one_sentence(tt('check', vm.run, rc=1).stderr, 'tt check')
    check('is missing' in said and 'tt info' in said, said)
    said = lost(work, vm.run, 'is missing')
    for words in (f'cannot go on from position {spans[0][1]}: ',
                  f'positions 0 to {spans[0][1]} can still be reached; tt info lists all'):
        check(words in said, said)

    os.rename(moved, store)
    places = sorted({p for span in spans[:2] + spans[-2:] for p in span})
    with stopped_replay(work, vm.run, 'whole', timeout=200) as rep:
        wanted = {p: digest_at(rep, p) for p in places}
    os.rename(store, moved)
    with stopped_replay(work, vm.run, 'without', timeout=200) as rep:
        for place in places[::-1] + places:
            equal(digest_at(rep, place), wanted[place], f'position {place}')
        answer = rep.qmp.cmd('tt-goto', position=spans[0][1] + 1)
        equal((answer['position'], answer['reason']), (spans[0][1], 'damaged'), answer)
        said = rep.stderr.splitlines()[-1]
        for words in (f'positions 0 to {spans[0][1]} can still be reached, ',
                      f'from the checkpoint at position {spans[1][0]} up to the next'):
            check(words in said, said)


def add_disk(vm, name, image):
    if name == 'monitor':
        vm.qmp.hmp(f'drive_add 0 if=none,id={name},file={image},format=raw')
    else:
        vm.qmp.cmd('blockdev-add', **{'driver': 'raw', 'node-name': name,
                                      'file': {'driver': 'file', 'filename': image}})


def devices_of(vm, name, is_writable=None):
    return [b['qdev'] for b in vm.qmp.cmd('query-block') if f'{name}-device' in
            b.get('qdev', '') and is_writable in (None, not b['inserted']['ro'])]


def plug_in(vm, name, value=5):
    """Writes to a disk as soon as it is there; its device."""
    driver = {'node': 'virtio-blk-pci', 'usb': 'usb-storage'}.get(name, 'scsi-hd')
    vm.qmp.cmd('device_add', driver=driver, id=f'{name}-device', drive=name)
    found = devices_of(vm, name, True)
    equal(len(found), 1, f'devices of {name}')
    said = vm.qmp.hmp(f'qemu-io -d {found[0]} "write -P {value} 64k 64k"')
    check('failed' not in said and 'rror' not in said, said)
    return found[0]


def plug_out(vm, name):
    vm.qmp.cmd('device_del', id=f'{name}-device')
    wait_until(lambda: not devices_of(vm, name), f'{name} is plugged out')


@limit(120)
def test_plugged_in(work):
    """A disk that is plugged in later stays as it is, too: what is written goes to the run,
    full checkpoints have versions of it; with disk=image the image gets it."""
    args = [*guest_args(work, 'torture', 'rounds=100000 percent=30'), '-device',
            'virtio-scsi-pci', '-usb']
    names, blank = ('node', 'usb', 'scsi', 'monitor'), bytes(1 << 20)
    images = {name: os.path.join(work, f'{name}.img') for name in names}
    for how in ('private', 'image'):
        for path in images.values():
            with open(path, 'wb') as f:
                f.write(blank)
        with recorder(work, args, how, options=f',disk={how}', qmp=1) as vm:
            vm.wait_serial('ticks')
            for name in names:
                add_disk(vm, name, images[name])
            devices = [plug_in(vm, name) for name in names]
            first = add_full(vm)['id']
            vm.qmp.hmp(f'qemu-io -d {devices[0]} "write -P 6 64k 64k"')
            vm.qmp.send('quit')
            vm.wait(0)
        check_exact(work, vm.run, serial_wanted=vm.serial)
        wanted = blank if how == 'private' else blank[:1 << 16] + b'\5' * (1 << 16)
        for name, path in images.items():
            equal(read_bytes(path)[:len(wanted)] == wanted, True, f'{how}: image {name}')
            checked(os.path.join(vm.run, 'disks', f'{name}.tt'))
            check(how == 'image' or f"to '{vm.run}/disks/{name}.tt'" in vm.stderr,
                  vm.stderr)
        out = os.path.join(work, 'out.raw')
        for at, value in ((['--at', str(first)], b'\5'), ([], b'\6')):
            tt('disk', 'export', vm.run, out, '--disk', 'node', '--force', *at)
            equal(read_bytes(out)[1 << 16:1 << 17] == value * (1 << 16), True, f'{how} {at}')


@limit(100)
def test_plugged_again(work):
    """A disk that was plugged out can be plugged in again, and the guest can write to it,
    whether or not it had a full checkpoint."""
    args = [*guest_args(work, 'torture', 'rounds=100000 percent=30'), '-device',
            'virtio-scsi-pci', '-usb']
    blank = bytes(1 << 20)
    images = {name: os.path.join(work, f'{name}.img') for name in ('usb', 'scsi')}
    for how in ('private', 'image'):
        for path in images.values():
            with open(path, 'wb') as f:
                f.write(blank)
        with recorder(work, args, how, options=f',disk={how}', qmp=1) as vm:
            vm.wait_serial('ticks')
            for name in images:
                add_disk(vm, name, images[name])
                plug_in(vm, name)
            add_full(vm)
            for name in images:
                plug_out(vm, name)
                plug_in(vm, name, 6)
            vm.qmp.send('quit')
            vm.wait(0)
        check_exact(work, vm.run, serial_wanted=vm.serial)
        wanted = blank[:1 << 16] * (how == 'private') or b'\6' * (1 << 16)
        for name, path in images.items():
            equal(read_bytes(path)[1 << 16:1 << 17] == wanted, True, f'{how}: {name}')
        if how == 'private':
            said = one_sentence(tt('disk', 'commit', vm.run, rc=1).stderr, 'two on one image')
            check(f"are both on top of the image '{images['scsi']}'" in said and
                  '--disk' in said, said)


@limit(60)
def test_filtered_once(work):
    """Which disk is behind a block filter is said once, when it is plugged in, and not again
    for each device after it."""
    args = [*guest_args(work, 'torture', 'rounds=100000 percent=30'), '-device',
            'virtio-scsi-pci', '-usb']
    for name in ('scsi', 'usb'):
        shutil.copyfile('/dev/null', f'{work}/{name}.img')
        os.truncate(f'{work}/{name}.img', 1 << 20)
    with recorder(work, args, qmp=1) as vm:
        vm.wait_serial('ticks')
        add_disk(vm, 'below', f'{work}/scsi.img')
        vm.qmp.cmd('blockdev-add', **{'driver': 'copy-on-read', 'node-name': 'scsi',
                                      'file': 'below'})
        plug_in(vm, 'scsi')
        vm.qmp.cmd('device_add', driver='usb-tablet', id='tablet')
        add_disk(vm, 'usb', f'{work}/usb.img')
        plug_in(vm, 'usb')
        vm.qmp.send('quit')
        vm.wait(0)
    equal(vm.stderr.count('is behind a block filter'), 1, vm.stderr)
    check(f"to '{vm.run}/disks/usb.tt'" in vm.stderr, vm.stderr)


@limit(60)
def test_after_the_end(work):
    """When the recording has ended by itself, since it reached its limit, the guest writes
    to the image of a disk that is plugged in."""
    image = os.path.join(work, 'scsi.img')
    shutil.copyfile('/dev/null', image)
    os.truncate(image, 1 << 20)
    args = [*guest_args(work, *ENDLESS), '-device',
            'virtio-scsi-pci']
    with recorder(work, args, options=',max-size=2M', qmp=1) as vm:
        wait_until(lambda: 'max-size' in vm.stderr, 'the end of the recording')
        add_disk(vm, 'scsi', image)
        plug_in(vm, 'scsi')
        vm.qmp.send('quit')
        vm.wait(0)
    equal(read_bytes(image)[1 << 16], 5, 'what the image has')
    check(not os.path.exists(f'{vm.run}/disks'), 'there is a store')


@limit(300)
def test_commit(work):
    """The image gets the result at the end; after a kill, by command."""
    vm, before = linux(work, ',disk=commit')
    image = read_bytes(image_of(work))
    check(image != before, 'the image has nothing of it')
    same_disk(store_of(vm.run), image_of(work))
    check_exact(work, vm.run, serial_wanted=vm.serial, timeout=200)
    disk = linux_disk(work)
    before = read_bytes(image_of(work))
    args = linux_args('vda,hold') + disk
    with recorder(work, args, 'killed', options=',disk=commit', qmp=1, timeout=200) as vm:
        vm.wait_serial('TT-DONE vda', 100)
        point = add_full(vm)['id']
        vm.kill()
    check('tt disk commit' in vm.stderr, vm.stderr)
    check(read_bytes(image_of(work)) == before, 'a killed one wrote to the image')
    tt('disk', 'commit', vm.run)
    check(read_bytes(image_of(work)) != before, 'nothing was committed')
    same_disk(store_of(vm.run), image_of(work))
    said = refused(work, args, vm.run, point)
    check('has changed since' in said and image_of(work) in said, said)


@limit(60)
def test_committed_without(work):
    """A disk that was plugged out gets nothing at the end; QEMU says that, and where it is."""
    image = os.path.join(work, 'scsi.img')
    with open(image, 'wb') as f:
        f.write(bytes(1 << 20))
    args = guest_args(work, 'torture', 'rounds=100000 percent=30')
    with recorder(work, [*args, '-device', 'virtio-scsi-pci'], options=',disk=commit',
                  qmp=1) as vm:
        vm.wait_serial('ticks')
        for name in ('scsi', 'other'):
            shutil.copy(image, f'{work}/{name}.new')
            add_disk(vm, name, f'{work}/{name}.new')
            plug_in(vm, name)
        plug_out(vm, 'scsi')
        vm.qmp.send('quit')
        vm.wait(0)
    wanted = f"tt disk commit {vm.run}/disks/scsi.tt'"
    equal(vm.stderr.count(wanted), 1, vm.stderr)
    check('is in your images, except for disks that were unplugged\n' in vm.stderr, vm.stderr)
    written = [read_bytes(f'{work}/{n}.new')[1 << 16] for n in ('scsi', 'other')]
    equal(written, [0, 5], 'what the images have')
    tt('disk', 'commit', f'{vm.run}/disks/scsi.tt')
    same_disk(f'{vm.run}/disks/scsi.tt', f'{work}/scsi.new')
    check_exact(work, vm.run, serial_wanted=vm.serial)


@limit(300)
def test_image(work):
    """With disk=image the guest writes to the image, until there is a full checkpoint;
    a branch does not change the parent's disk."""
    args = linux_args('vda,hold', 'n=50') + linux_disk(work)
    with recorder(work, args, options=',disk=image', qmp=1, timeout=200) as vm:
        vm.wait_serial('TT-GUEST-READY', 60)
        check(not os.path.exists(store_of(vm.run)), 'there is a store')
        point = add_full_stopped(vm)
        before = read_bytes(image_of(work))
        vm.wait_serial('TT-DONE vda', 100)
        vm.qmp.send('quit')
        vm.wait(0)
    check(read_bytes(image_of(work)) == before, 'the image has changed')
    parent = tree_hash(vm.run)
    with brancher(work, args, vm, point['id'], qmp=1, timeout=200) as child:
        child.wait_serial('TT-DONE vda', 100)
        child.qmp.send('quit')
        child.wait(0)
    equal(tree_hash(vm.run), parent, 'the parent afterwards')
    said = tt('disk', 'commit', child.run, rc=1).stderr
    check('disk of a branch' in said, said)


@limit(300)
def test_started_later(work):
    """tt record start takes disk=, too: the image stays as it was at that moment, or gets
    the result when QEMU ends, also what was written after the recording."""
    for disk in 'private', 'commit':
        args = linux_args('sh,vda,hold', 'n=200') + linux_disk(work)
        run = os.path.join(work, disk)
        with Vm(work, args, disk, qmp=1, timeout=200) as vm:
            vm.wait_serial(READY, 60)
            said = vm.qmp.hmp(f'tt record start {run} disk=other')
            check("'private', 'commit' or 'image'" in said, said)
            began = len(vm.serial)
            vm.qmp.cmd('tt-record-start', 60, dir=run, disk=disk)
            before = read_bytes(image_of(work))
            vm.wait_serial('TT-DONE vda', 100)
            vm.qmp.cmd('tt-record-stop', 60)
            console = vm.serial[began:]
            check(read_bytes(image_of(work)) == before, 'the image was written')
            vm.qmp.send('quit')
            vm.wait(0)
        checked(store_of(run))
        same = read_bytes(image_of(work)) == before
        check(same == (disk == 'private'), f'disk={disk}: the image is as before: {same}')
        if disk == 'commit':
            same_disk(store_of(run), image_of(work))
        rep = replay(work, run, name=f'{disk}-again', timeout=200)
        check('replay exact' in rep.stderr and rep.serial in console, rep.stderr)


def versions_of(run):
    return {v['id'] for v in json.loads(tt('disk', 'list', store_of(run),
                                           '--json').stdout)['versions']}


@limit(300)
def test_versions_go(work):
    """With a checkpoint goes the version of the disk that it pinned, also while the guest
    writes; what others have stays what it was, and the disk is whole."""
    args = linux_args('vda,hold', 'n=50') + linux_disk(work)
    with recorder(work, args, qmp=1, timeout=200) as vm:
        vm.wait_serial('TT-GUEST-READY', 60)
        vm.qmp.cmd('stop')              # its work may take less time than these
        points = [add_full(vm, f'p{i}')['id'] for i in range(1, 5)]
        equal(versions_of(vm.run), {1, 2, 3, 4}, 'the versions')
        said = vm.qmp.error('blockdev-snapshot-delete-internal-sync', device='disk0', id='1')
        check('needs it' in said and "'tt checkpoint delete'" in said, said)
        vm.qmp.cmd('cont')
        for point in points[1], points[2]:
            vm.qmp.cmd('tt-checkpoint-delete', id=point, timeout=60)
        last = add_full_stopped(vm, 'p5')
        equal(versions_of(vm.run), {1, 4, 5}, 'the versions afterwards')
        vm.wait_serial('TT-DONE vda', 100)
        vm.qmp.send('quit')
        vm.wait(0)
    checked(store_of(vm.run))
    equal(versions_of(vm.run), {1, 4, 5}, 'the versions at the end')
    from_outside(store_of(vm.run))
    with brancher(work, args, vm, last['id'], qmp=1, timeout=200) as child:
        if 'vda' in last['done']:
            wait_until(lambda: child.qmp.cmd('query-tt')['position'] > 100000,
                       'the branch goes on')
        else:
            child.wait_serial('TT-DONE vda', 100)
        child.qmp.send('quit')
        child.wait(0)
    said = tt('check', vm.run).stdout
    check('is intact' in said, said)
    broken_disks(vm.run, child.run)


@limit(60)
def test_no_space(work):
    """When a version cannot be written the checkpoint is kept, but is no full one, and the
    version goes; there can be another one as soon as there is space."""
    image = os.path.join(work, 'disk.img')
    with open(image, 'wb') as out:
        out.truncate(1 << 20)
    library, flag = os.path.join(work, 'full_disk.so'), os.path.join(work, 'full')
    run_tool('gcc', '-shared', '-fPIC', '-o', library,
             os.path.join(REPO, 'tests/functional/full_disk.c'))
    args = guest_args(work, 'torture', 'rounds=100000 percent=30')
    args += ['-drive', f'file={image},format=raw,if=none,id=disk0', '-device',
             'ide-hd,drive=disk0']
    vm = recorder(work, args, qmp=1, timeout=50)
    os.environ.update(LD_PRELOAD=library, TT_NO_SPACE=flag)
    with vm:
        del os.environ['LD_PRELOAD'], os.environ['TT_NO_SPACE']
        vm.wait_serial('ticks')
        add_full(vm, 'before')
        with open(flag, 'wb'):
            said = vm.qmp.error('tt-checkpoint-add', full=True)
        check('no branch can start from this checkpoint' in said and
              "cannot make a version of disk '" in said and "': No space left" in said, said)
        os.remove(flag)
        add_full(vm, 'behind')
        full = [c['full'] for c in vm.qmp.cmd('query-tt-checkpoints')]
        equal(full, [False, True, False, True], 'which are full ones')
        vm.qmp.send('quit')
        vm.wait(0)
    equal(versions_of(vm.run), {1, 3}, 'the versions')
    check('is intact' in tt('check', vm.run).stdout, 'the run')
    check_exact(work, vm.run, serial_wanted=vm.serial)


def delete_by_force(run, name):
    """A version that the run needs; qemu-img refuses that."""
    store = store_of(run)
    for path in store, os.path.basename(store):
        said = run_tool('env', '-C', os.path.dirname(store), tool('qemu-img'), 'snapshot',
                        '-d', name, path, rc=1)[1]
        check('needs it' in said and f"'{run}'" in said and said.count('\n') == 1, said)
    os.rename(store, f'{run}.tt')
    qemu_img('snapshot', '-d', name, f'{run}.tt')
    os.rename(f'{run}.tt', store)


def from_outside(store):
    """What a user may do with a disk of a run, and what not."""
    qemu_img('snapshot', '-c', 'mine', store)
    qemu_img('snapshot', '-d', 'mine', store)
    before = read_bytes(store)
    said = run_tool(tool('qemu-img'), 'snapshot', '-a', '1', store, rc=1)[1]
    check('which needs it as it is' in said and "--version 1'" in said, said)
    equal(read_bytes(store), before, 'the disk after it was refused')


def broken_disks(run, branch):
    """tt check and tt info say what is wrong with the disks of a run and of its branch."""
    check('no branch can start' not in tt('info', run).stdout, 'tt info before')
    delete_by_force(run, 'p4')
    said = tt('check', run, rc=1).stderr
    check("version 4 of disk" in said and 'no branch can start' in said, said)
    said = [line for line in tt('info', run).stdout.split('\n') if 'no branch can' in line]
    check(len(said) == 1 and '@p4 ' in said[0], f'{said}')
    equal([f['has-disks'] for f in json.loads(tt('info', run, '--json').stdout)['full']],
          [True, False, True], 'who has its disks')
    check('is intact' in tt('check', branch).stdout, 'the branch')
    delete_by_force(run, 'p5')
    said = tt('check', branch, rc=1).stderr
    check('is based on version 5 of' in said, said)
    with open(store_of(run), 'r+b') as disk:
        disk.write(bytes(8192))
    said = tt('check', run, rc=1).stderr
    check(f"disk '{store_of(run)}': " in said and said.count('\n') == 1, said)
    os.remove(store_of(run))
    said = tt('check', run, rc=1).stderr
    check(f"disk '{store_of(run)}' is missing" in said and said.count('\n') == 1, said)


def test_refused(work):
    """What does not go together gets one sentence."""
    for options, words in (('disk=other', "'private', 'commit' or 'image'"),
                           ('disk-reads=other', "'log' or 'store'"),
                           ('disk=commit,disk-reads=store', 'needs disk=private')):
        with Vm(work, ['-M', 'none', '-tt', f'record,dir={work}/r,{options}']) as vm:
            vm.wait(1)
        said = one_sentence(vm, options)
        check(words in said, said)
    said = tt('disk', 'commit', work, rc=1).stderr
    check('has no disk' in said, said)
