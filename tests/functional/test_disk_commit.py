# SPDX-License-Identifier: GPL-2.0-or-later
"""tt disk commit and disk=commit: an image gets the writes of one history, whole or not at
all, or it can be repeated; whatever cannot be done is said before anything is written."""

import contextlib
import fcntl
import os
import resource
import shutil
import subprocess

from disker import qemu_img
from guests import guest_args
from test_disk_collect import Faults
from test_places import daemon
from ttlib import (SLOW, Vm, check, equal, limit, one_sentence, read_bytes, recorder, run_tool,
                   tool, tt, wait_until)

KB = 1 << 10
SIZE = 2 << 20


def image_at(work, name='disk.img', size=SIZE, fill=b'\x77'):
    path = os.path.join(work, name)
    with open(path, 'wb') as f:
        f.write(fill * size)
    return path


def disks(work, *images):
    args = guest_args(work, 'torture', 'rounds=100000 percent=30')
    for i, image in enumerate(images):
        fmt = 'qcow2' if image.endswith('.qcow2') else 'raw'
        args += ['-drive', f'file={image},format={fmt},if=none,id=disk{i}', '-device',
                 f'ide-hd,drive=disk{i}']
    return args


def write(vm, disk, value, at, size=64 * KB):
    vm.qmp.hmp(f'qemu-io {disk} "write -P {value} {at} {size}"')


def record(work, name, images, writes, options='', rc=0, before_end=lambda: None):
    """A run with writes (disk, value, at[, size]); its Vm."""
    with recorder(work, disks(work, *images), name, options=options, qmp=1) as vm:
        vm.wait_serial('ticks')
        for each in writes:
            write(vm, *each)
        before_end()
        vm.qmp.send('quit')
        vm.wait(rc)
    said = vm.stdout.decode(errors='replace')
    check('failed' not in said and 'rror' not in said, f'qemu-io: {said}')
    return vm


def refused(*words, args, verb='commit'):
    said = one_sentence(tt('disk', verb, *args, rc=1).stderr, args)
    for word in words:
        check(word in said, f'{word}: {said}')
    return said


@contextlib.contextmanager
def held(path):
    """Another program reads the image and does not want it to be written: the lock of
    QEMU's that says so."""
    with open(path, 'r+b') as f:
        fcntl.lockf(f, fcntl.LOCK_SH, 1, 201)
        yield


@limit(100)
def test_two_runs(work):
    """Of two runs over one image one can be committed, and it can be repeated; the other is
    refused, as after any other change, and --force does it."""
    image, out = image_at(work), os.path.join(work, 'out.raw')
    first = record(work, 'first', [image], [('disk0', 1, 0)]).run
    second = record(work, 'second', [image], [('disk0', 2, 64 * KB)]).run
    said = tt('disk', 'commit', first).stdout
    check('1 disk committed' in said, said)
    wanted = b'\1' * 64 * KB + b'\x77' * (SIZE - 64 * KB)
    equal(read_bytes(image) == wanted, True, 'the image behind the first commit')
    for disk in (second, f'{second}/disks/disk0.tt'):
        refused(image, 'has changed since the run began to use it', "'tt disk export",
                '--force', args=[disk])
    equal(read_bytes(image) == wanted, True, 'the image behind a refused commit')
    said = one_sentence(tt('disk', 'export', second, out).stderr, 'the export')
    check('has changed since the run began to use it' in said, said)
    said = tt('disk', 'commit', first).stdout
    check('nothing to do' in said, said)

    tt('disk', 'commit', second, '--force')
    wanted = b'\1' * 64 * KB + b'\2' * 64 * KB + b'\x77' * (SIZE - 128 * KB)
    equal(read_bytes(image) == wanted, True, 'the image behind --force')
    equal(tt('disk', 'commit', second, '--json').stdout, '{"committed": 0, "before": 1}\n',
          'the same run again')
    refused('has changed since the disk', 'was committed', '--force', args=[first])
    equal(read_bytes(image) == wanted, True, 'the image at the end')


@limit(60)
def test_hidden_change(work):
    """A change is seen, too, when somebody has set the time of the file back, or has put
    another file there."""
    image = image_at(work)
    run = record(work, 'run', [image], [('disk0', 1, 0)]).run
    times = os.stat(image)
    with open(image, 'r+b') as f:
        f.seek(1000)
        f.write(b'x')
    os.utime(image, ns=(times.st_atime_ns, times.st_mtime_ns))
    refused(image, 'has changed', args=[run])


@limit(60)
def test_killed(work):
    """A commit that was killed is done again; when the image has changed since it began, by
    it or by somebody else, only with --force."""
    image = image_at(work)
    run = record(work, 'run', [image], [('disk0', 1, 0)]).run
    bases = os.path.join(run, 'disks', 'bases')
    text = read_bytes(bases)
    with open(bases, 'wb') as f:
        f.write(text.replace(b'state=fresh', b'state=begun'))
    tt('disk', 'commit', run)
    qemu_img('compare', f'{run}/disks/disk0.tt', image)
    with open(bases, 'wb') as f:
        f.write(text.replace(b'state=fresh', b'state=begun'))
    refused(f"'{image}' has changed since it began", 'was killed', '--force', args=[run])
    tt('disk', 'commit', run, '--force')
    with open(bases, 'wb') as f:
        f.write(b'nonsense')
    refused('is damaged', '--force', args=[run])
    tt('disk', 'commit', run, '--force')
    os.remove(bases)
    refused('does not say what the image', 'is missing', '--force', args=[run])
    tt('disk', 'commit', run, '--force')


@limit(60)
def test_notes(work):
    """What a run notes of its images: two commits of it do not change that at once; without
    it, or if it is damaged or a disk is missing, somebody says so."""
    images = [image_at(work, 'a.img'), image_at(work, 'b.img')]
    run = record(work, 'run', images, [('disk0', 1, 0), ('disk1', 2, 0)]).run
    folder = os.path.join(run, 'disks')
    fd = os.open(folder, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    refused('another tt disk commit', args=[run, '--disk', 'disk0'])
    os.close(fd)
    tt('check', run)
    bases = os.path.join(folder, 'bases')
    text = read_bytes(bases)
    with open(bases, 'wb') as f:
        f.write(b'nonsense')
    said = tt('check', run, rc=1)
    check('bases' in said.stdout + said.stderr, said.stdout)
    with open(bases, 'wb') as f:
        f.write(text)
    os.rename(f'{folder}/disk1.tt', f'{folder}/gone')
    said = tt('check', run, rc=1)
    check("disk1.tt' is missing" in said.stdout + said.stderr, said.stdout)

    before = read_bytes(images[0])
    vm = record(work, 'auto', images[:1], [('disk0', 3, 0)], ',disk=commit', rc=None,
                before_end=lambda: os.remove(f'{work}/auto.run/disks/bases'))
    check('is gone, so nobody knows' in vm.stderr, vm.stderr)
    equal(read_bytes(images[0]) == before, True, 'the image')


@limit(60)
def test_from_where_it_lies(work):
    """A run that is named by a relative path; an image into which another commit writes; no
    export takes the place of a device."""
    image, pipe = image_at(work), os.path.join(work, 'pipe')
    run = record(work, 'run', [image], [('disk0', 1, 0)]).run
    os.mkfifo(pipe)
    refused('is not a file', args=[run, pipe, '--force'], verb='export')
    with open(image, 'rb') as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        refused("another 'tt disk commit'", args=[run])
    with held(image):
        refused('is in use', args=[os.path.relpath(run)])
    said = tt('disk', 'commit', os.path.relpath(run))
    equal((said.stdout.count('1 disk committed'), said.stderr), (1, ''), 'a relative path')
    qemu_img('compare', f'{run}/disks/disk0.tt', image)


@limit(100)
def test_one_after_the_other(work):
    """Two runs with disk=commit: the second goes on from what the first has made."""
    image = image_at(work)
    first = record(work, 'first', [image], [('disk0', 1, 0)], ',disk=commit').run
    second = record(work, 'second', [image], [('disk0', 2, 64 * KB)], ',disk=commit').run
    wanted = b'\1' * 64 * KB + b'\2' * 64 * KB + b'\x77' * (SIZE - 128 * KB)
    equal(read_bytes(image) == wanted, True, 'the image')
    check('nothing to do' in tt('disk', 'commit', second).stdout, 'the second')
    refused('has changed since the disk', 'was committed', args=[first])
    equal(read_bytes(image) == wanted, True, 'the image at the end')


@limit(100)
def test_chain(work):
    """An image of the format qcow2 on top of another image, which may change as little."""
    below, image = image_at(work), os.path.join(work, 'disk.qcow2')
    qemu_img('create', '-q', '-f', 'qcow2', '-b', below, '-F', 'raw', image)
    first = record(work, 'first', [image], [('disk0', 1, 0)]).run
    check('1 disk committed' in tt('disk', 'commit', first).stdout, 'the first')
    second = record(work, 'second', [image], [('disk0', 2, 0)], ',disk=commit').run
    for run, words in ((first, 'was committed'), (second, 'nothing to do')):
        said = tt('disk', 'commit', run, rc=None)
        check(words in said.stdout + said.stderr, said)
    qemu_img('compare', f'{second}/disks/disk0.tt', image)
    third = record(work, 'third', [image], [('disk0', 3, 0)]).run
    refused('or an image below it', args=[third, below, '--force'], verb='export')
    with open(below, 'r+b') as f:
        f.write(b'somebody')
    refused(f"'{below}' has changed", args=[third])


@limit(100)
def test_started_twice(work):
    """Two recordings of one VM, which writes its disk in between: the image has all when
    QEMU ends, and a commit of either has nothing left to do."""
    image = image_at(work)
    runs = [os.path.join(work, name) for name in ('first', 'second')]
    with Vm(work, disks(work, image), qmp=1) as vm:
        vm.wait_serial('ticks')
        for n, run in enumerate(runs):
            vm.qmp.cmd('tt-record-start', 60, dir=run, disk='commit')
            write(vm, 'disk0', n + 1, n * 64 * KB)
            vm.qmp.cmd('tt-record-stop', 60)
            write(vm, 'disk0', n + 5, n * 64 * KB, KB)
        vm.qmp.send('quit')
        vm.wait(0)
    wanted = b''.join(bytes([n + 5]) * KB + bytes([n + 1]) * 63 * KB for n in (0, 1))
    equal(read_bytes(image)[:128 * KB] == wanted, True, 'the image')
    for run in runs:
        check('nothing to do' in tt('disk', 'commit', run).stdout, run)


@limit(60)
def test_daemonized(work):
    """An image with a relative name gets the result, too, when QEMU has left the directory
    where it was started."""
    image = image_at(work)
    with daemon(work, 'first', *disks(work, 'disk.img'), '-tt',
                'record,dir=run,disk=commit') as qmp:
        qmp.cmd('human-monitor-command', command_line='qemu-io disk0 "write -P 1 0 64k"')
    equal(read_bytes(image)[:64 * KB] == b'\1' * 64 * KB, True, 'the image')
    check('nothing to do' in tt('disk', 'commit', f'{work}/run').stdout, 'the commit')


def commit_with(run, most_bytes):
    """tt disk commit, where no file can be longer."""
    def bound():
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    return subprocess.run([tool('tt'), 'disk', 'commit', run], capture_output=True,
                          text=True, preexec_fn=bound, timeout=60 * SLOW)


@limit(100)
def test_several(work):
    """What can be found out about any disk is said before the first byte is written; if it
    fails half-way, which images have what, and it can be repeated."""
    small, big = image_at(work, 'a.img', 512 * KB), image_at(work, 'b.img')
    before = read_bytes(small), read_bytes(big)
    run = record(work, 'run', [small, big], [('disk0', 1, 0), ('disk1', 2, 0, SIZE)]).run
    stores = [f'{run}/disks/disk{i}.tt' for i in (0, 1)]

    os.rename(big, f'{big}.moved')
    refused(big, 'is not there', 'put it back', 'qemu-img rebase -u', args=[run])
    os.rename(f'{big}.moved', big)
    with held(big):
        refused(big, 'is in use', args=[run])
    with held(stores[0]):
        refused(stores[0], 'is in use', args=[run])
    equal((read_bytes(small), read_bytes(big)) == before, True, 'the images')

    done = commit_with(run, 1 << 20)
    equal(done.returncode, 1, f'{done.stdout}{done.stderr}')
    said = done.stderr.splitlines()[-1]
    for words in (f"'{small}' has all of it, '{big}' only a part",
                  'the run still has all of it', 'repeat the same command'):
        check(words in said, said)
    equal(read_bytes(small)[:64 * KB] == b'\1' * 64 * KB, True, 'the first image')
    check(read_bytes(big) not in (before[1], b'\2' * SIZE), 'the second image')
    said = tt('disk', 'commit', run).stdout
    check('1 disk committed, the others were before' in said, said)
    for store, image in zip(stores, (small, big)):
        qemu_img('compare', store, image)


@limit(100)
def test_room(work):
    """That there is too little room for all is said before."""
    full = os.path.join(work, 'full')
    os.mkdir(full)
    if subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=1m', 'none', full],
                      capture_output=True, check=False).returncode:
        return                      # not as this user
    try:
        images = [os.path.join(full, f'{n}.img') for n in 'ab']
        for image in images:
            with open(image, 'wb') as f:
                f.truncate(SIZE)
        run = record(work, 'run', images, [(f'disk{i}', 1, 0, 600 * KB)
                                           for i in (0, 1)]).run
        refused('needs room', 'are free', args=[run])
        equal(os.stat(images[0]).st_blocks, 0, 'what was written')
        tt('disk', 'commit', run, '--disk', 'disk0')
    finally:
        run_tool('umount', full)


@limit(60)
def test_moved(work):
    """An image that has moved: every command says where it was, and what to do."""
    image, out = image_at(work), os.path.join(work, 'out.raw')
    run = record(work, 'run', [image], [('disk0', 1, 0)]).run
    store, moved = f'{run}/disks/disk0.tt', f'{image}.moved'
    os.rename(image, moved)
    for args in (['commit', run], ['export', run, out],
                 ['serve', run, '--port', '0'], ['diff', run, 'now', 'now']):
        said = one_sentence(tt('disk', *args, rc=1).stderr, args)
        check(f"'{image}'" in said and 'put it back' in said and
              'qemu-img rebase -u -f tt -F raw -b IMAGE' in said, said)
    qemu_img('rebase', '-u', '-f', 'tt', '-F', 'raw', '-b', moved, store)
    equal(tt('disk', 'commit', run).stderr, '', 'what is said')
    equal(read_bytes(moved)[:64 * KB] == b'\1' * 64 * KB, True, 'the image')


@limit(100)
def test_end_fails(work):
    """A recording whose images cannot get the result at the end says how to repeat that,
    and ends with a status other than 0."""
    images = [image_at(work, name) for name in ('a.img', 'b.img')]
    before = [read_bytes(image) for image in images]
    writes = [('disk0', 1, 0), ('disk1', 2, 0)]
    with contextlib.ExitStack() as stack:
        vm = record(work, 'locked', images, writes, ',disk=commit', 1,
                    lambda: stack.enter_context(held(images[1])))
    said = vm.stderr.splitlines()[-1]
    check(images[1] in said and f"repeat with 'tt disk commit {vm.run}'" in said and
          'the run still has it' in said, said)
    check(f"'{images[0]}' has all of it" in said, said)
    equal(read_bytes(images[1]) == before[1], True, 'the second image')
    said = tt('disk', 'commit', vm.run).stdout
    check('1 disk committed, the others were before' in said, said)
    equal([read_bytes(image)[0] for image in images], [1, 2], 'the images')

    def change():
        with open(images[0], 'r+b') as f:
            f.write(b'somebody')

    after = read_bytes(images[1])
    vm = record(work, 'changed', images, writes, ',disk=commit', 1, change)
    said = vm.stderr.splitlines()[-1]
    check(images[0] in said and 'has changed since the recording began' in said and
          f"'tt disk export {vm.run} OUT --disk disk0'" in said, said)
    equal(read_bytes(images[1]) == after, True, 'the second image')
    refused(images[0], 'has changed since', args=[vm.run])


@limit(60)
def test_not_flushed(work):
    """An image that cannot be flushed has not got the result, whatever was written."""
    image, faults = image_at(work), Faults(work)
    vm = recorder(work, disks(work, image), options=',disk=commit', qmp=1)
    with faults.running(vm):
        vm.wait_serial('ticks')
        write(vm, 'disk0', 1, 0)
        faults.put('no-sync-disk.img')
        vm.qmp.send('quit')
        vm.wait(1)
    said = vm.stderr.splitlines()[-1]
    check(image in said and f"repeat with 'tt disk commit {vm.run}'" in said, said)
    tt('disk', 'commit', vm.run)
    equal(read_bytes(image)[:64 * KB] == b'\1' * 64 * KB, True, 'the image')


@limit(60)
def test_missing(work):
    """A disk of the run that is not there any more is named; no other one is taken for
    it."""
    images = [image_at(work, name) for name in ('a.img', 'b.img')]
    run = record(work, 'run', images, [('disk0', 1, 0), ('disk1', 2, 0)]).run
    stores, out = [f'{run}/disks/disk{i}.tt' for i in (0, 1)], os.path.join(work, 'out')
    os.remove(stores[0])
    said = one_sentence(tt('disk', 'list', run, rc=1).stderr, 'a disk is missing')
    check('--disk NAME' in said and 'disk0 (missing), disk1' in said, said)
    for args in (['commit', run], ['export', run, out, '--disk', 'disk0']):
        said = one_sentence(tt('disk', *args, rc=1).stderr, args)
        check("disk 'disk0' of the run is missing" in said and stores[0] in said, said)
    tt('disk', 'commit', run, '--disk', 'disk1')
    equal([read_bytes(image)[0] for image in images], [0x77, 2], 'the images')
    os.remove(stores[1])
    said = one_sentence(tt('disk', 'list', run, rc=1).stderr, 'both are missing')
    check('disk0 (missing), disk1 (missing)' in said, said)
    shutil.rmtree(f'{run}/disks')
    said = one_sentence(tt('disk', 'list', run, rc=1).stderr, 'all are missing')
    check("the directory 'disks' of the run was deleted" in said, said)


@limit(60)
def test_missing_meanwhile(work):
    """A disk that is deleted while it is recorded is named at once; the image gets what the
    guest wrote all the same."""
    image = image_at(work)
    with recorder(work, disks(work, image), options=',disk=commit', qmp=1) as vm:
        vm.wait_serial('ticks')
        write(vm, 'disk0', 1, 0)
        os.remove(f'{vm.run}/disks/disk0.tt')
        wait_until(lambda: "'disks/disk0.tt' is no longer in the run directory" in vm.stderr,
                   'the warning')
        vm.qmp.send('quit')
        vm.wait(0)
    equal(read_bytes(image)[:64 * KB] == b'\1' * 64 * KB, True, 'the image')
