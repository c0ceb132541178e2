# SPDX-License-Identifier: GPL-2.0-or-later
"""tt disk export, serve and diff: versions of a disk as files, over NBD, compared."""

import hashlib
import json
import os
import signal
import socket
import subprocess

from disker import checked, contents, new_disk, qemu_img, write_disk
from ext import MB, change_ext4, gpt, make_ext4, mbr, put, read_ext4
from guests import own_args
from test_disk_collect import disk_args
from test_full import add_full
from ttlib import (Vm, check, equal, limit, one_sentence, recorder, run_tool, seed, tool,
                   tt)

SIZE = 3 << 20


def write(path, *commands):
    write_disk(os.path.dirname(path), path, *commands)


def two_versions(work):
    path = new_disk(work, size=SIZE)
    write(path, 'write -P 1 0 1m')
    qemu_img('snapshot', '-c', 'first', path)
    write(path, 'write -P 2 512k 64k', 'write -z 0 4k', 'write -P 1 900k 64k',
          'write -P 3 2m 5000')
    qemu_img('snapshot', '-c', 'second', path)
    write(path, 'write -P 4 100k 4k')
    return path


def image(path, versions, convert=True):
    """A disk whose versions 1, 2, ... are these raw images."""
    for n, raw in enumerate(versions, 1):
        more = ['-n'] if n > 1 else []
        qemu_img('convert', *more, '-O', 'tt', raw, path)
        qemu_img('snapshot', '-c', f'v{n}', path)
    return path


def test_export(work):
    """A version becomes a raw or qcow2 file, equal to it; nothing is written over."""
    path = two_versions(work)
    for what, options in (('1', ',version=1'), ('second', ',version=2'), ('now', '')):
        wanted = contents(work, path, options)
        out = os.path.join(work, f'{what}.raw')
        said = tt('disk', 'export', path, out, '--version', what).stdout
        check('version' in said or 'now' in said, said)
        with open(out, 'rb') as f:
            equal(f.read() == wanted, True, f'{what} as a raw file')
        out = os.path.join(work, f'{what}.qcow2')
        tt('disk', 'export', path, out, '--version', what)
        equal(json.loads(qemu_img('info', '--output=json', out))['format'], 'qcow2', out)
        qemu_img('compare', os.path.join(work, f'{what}.raw'), out)
    out = os.path.join(work, '1.raw')
    said = one_sentence(tt('disk', 'export', path, out, rc=1).stderr, 'a file in the way')
    check('exists' in said and '--force' in said, said)
    for own in (path, json.loads(qemu_img('info', '--output=json', path)).get(
            'full-backing-filename', path)):
        said = one_sentence(tt('disk', 'export', path, own, '--force', rc=1).stderr, own)
        check('is the disk itself, or an image below it' in said, said)
    answer = json.loads(tt('disk', 'export', path, out, '--version', '2', '--force',
                           '--json').stdout)
    equal((answer['version'], answer['format']), (2, 'raw'), 'the answer')
    qemu_img('compare', out, os.path.join(work, 'second.raw'))
    check(not [n for n in os.listdir(work) if n.endswith('.part')], os.listdir(work))


def test_in_use(work):
    """A version can be taken out while a VM writes the disk; the disk as it is now
    cannot."""
    path = two_versions(work)
    wanted = contents(work, path, ',version=1')
    node = f'driver=tt,node-name=disk,file.driver=file,file.filename={path}'
    with Vm(work, ['-machine', 'none', '-nodefaults', '-display', 'none', '-blockdev',
                   node], qmp=1, serial=False) as vm:
        for n in range(5):
            vm.qmp.hmp(f'qemu-io disk "write -P {10 + n} 0 3m"')
            vm.qmp.cmd('blockdev-snapshot-internal-sync', device='disk', name=f'x{n}')
            out = os.path.join(work, f'out{n}')
            tt('disk', 'export', path, out, '--version', 'first')
            with open(out, 'rb') as f:
                equal(f.read() == wanted, True, 'the version beside a writer')
        diff = json.loads(tt('disk', 'diff', path, 'x0', 'x4', '--json',
                             '--blocks').stdout)
        equal((diff['disk'], diff['changed_bytes']), (path, SIZE), 'x0 and x4')
        said = tt('disk', 'diff', path, 'x0', 'x4', '--blocks').stdout
        check(said.startswith(f"Disk '{path}', from version "), said)
        said = tt('disk', 'export', path, os.path.join(work, 'now'), rc=1).stderr
        check('name a version of it' in said and said.count('\n') == 1, said)
        vm.qmp.cmd('quit')
        vm.wait(0)
    checked(path)


def test_preallocation(work):
    """Space that is asked for ahead is refused, not ignored."""
    path = os.path.join(work, 'disk.tt')
    for mode in ('metadata', 'falloc', 'full'):
        said = run_tool(tool('qemu-img'), 'create', '-f', 'tt', '-o',
                        f'preallocation={mode}', path, '1M', rc=1)[1]
        check(f"Unsupported preallocation mode '{mode}'" in said and "only 'off'" in said,
              said)
        check(not os.path.exists(path), 'it was made')
    new_disk(work, '-o', 'preallocation=off', size=1 << 20)
    equal(len(contents(work, path)), 1 << 20, 'the size')


class Server:
    """tt disk serve, in the background."""

    def __init__(self, *args):
        self.process = subprocess.Popen([tool('tt'), 'disk', 'serve', *args, '--json'],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)
        self.answer = json.loads(self.process.stdout.readline() or '{}')
        self.uri = self.answer.get('uri')

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(30)
        self.process.stdout.close()
        self.process.stderr.close()

    def read(self, work):
        out = os.path.join(work, 'served.raw')
        qemu_img('convert', '-f', 'raw', '-O', 'raw', self.uri, out)
        with open(out, 'rb') as f:
            return f.read()


def test_serve(work):
    """A version over NBD, on a Unix socket or on loopback: read-only, and it ends."""
    path = two_versions(work)
    wanted = contents(work, path, ',version=1')
    sock = os.path.join(work, 's,ock')
    with Server(path, '--version', '1', '--socket', sock) as server:
        equal(os.stat(sock).st_mode & 0o777, 0o700, 'who may use the socket')
        equal(server.read(work) == wanted, True, 'what is served on a Unix socket')
        equal(server.process.wait(30), 0, 'its end, when the client has left')
    check(not os.path.exists(sock), 'the socket is still there')
    with Server(path, '--version', 'first', '--port', '0', '--keep') as server:
        for _ in range(3):
            equal(server.read(work) == wanted, True, 'what is served on loopback')
        said = run_tool(tool('qemu-img'), 'convert', '-n', '-O', 'raw',
                        os.path.join(work, 'served.raw'), server.uri, rc=1)[1]
        check('ermission' in said, said)
        server.process.send_signal(signal.SIGTERM)
        equal(server.process.wait(30), 0, 'its end by a signal')
    with Server(path, '--version', '2', '--port', '0', '--keep', '--seconds', '1') as server:
        equal(server.process.wait(60), 0, 'its end after a second')
    said = tt('disk', 'serve', path, rc=2).stderr
    check('--socket' in said, said)
    said = tt('disk', 'serve', path, '--socket', sock, '--port', '0', rc=2).stderr
    check('not both' in said, said)
    said = tt('disk', 'serve', path, '--socket', path, rc=1).stderr
    check('another name' in said, said)
    said = tt('disk', 'list', work, rc=1).stderr
    check('neither a disk nor a run' in said, said)
    foreign = os.path.join(work, 'foreign.raw')
    with open(foreign, 'wb') as f:
        f.write(bytes(65536))
    said = tt('disk', 'list', foreign, rc=1).stderr
    check(foreign in said and 'not a disk with versions' in said, said)


def test_diff_blocks(work):
    """Exactly the blocks that differ, of any two versions, in either direction."""
    path = two_versions(work)
    there = json.loads(tt('disk', 'diff', path, 'first', 'second', '--json',
                          '--blocks').stdout)
    back = json.loads(tt('disk', 'diff', path, '2', '1', '--json', '--blocks').stdout)
    equal(there['blocks'], back['blocks'], 'there and back')
    equal([(b['offset'], b['length']) for b in there['blocks']],
          [(0, 4096), (512 << 10, 64 << 10), (2 << 20, 8192)], 'what differs')
    said = tt('disk', 'diff', path, '2', 'now').stdout
    check('0x0000019000  4096 bytes' in said and
          'No ext2, ext3 or ext4 file system' in said, said)
    equal(json.loads(tt('disk', 'diff', path, '2', '2', '--json').stdout)['blocks'], [],
          'a version and itself')
    for name in ('7', 'third'):
        said = one_sentence(tt('disk', 'diff', path, '2', name, rc=1).stderr, name)
        check(f"no version '{name}': it has 1 (first), 2 (second); see tt disk list" in said,
              said)
    equal(tt('disk', 'diff', path, '2', rc=2).stdout, '', 'one version only')


FILES = {'etc/same': b'same\n', 'etc/changed': b'old\n', 'gone/file': b'g' * 5000,
         'big': bytes(range(256)) * 2000, 'mode': b'm'}


def ext_pair(work):
    """The same file system twice; the second one with changes."""
    old = make_ext4(os.path.join(work, 'old.fs'), FILES)
    new = os.path.join(work, 'new.fs')
    subprocess.run(['cp', old, new], check=True)
    change_ext4(new, 'rm etc/changed', 'write {changed} etc/changed', 'rm gone/file',
                'write {added} added', 'set_inode_field mode mode 0100600',
                changed=b'newer\n', added=b'a' * 100000)
    return old, new


def sha(data):
    return hashlib.sha256(data).hexdigest()


def check_files(volume, partition):
    equal(volume['partition'], partition, 'the partition')
    seen = {f['path']: (f['change'], f['old'] and f['old']['sha256'],
                        f['new'] and f['new']['sha256'], f['old'] and f['old']['bytes'],
                        f['new'] and f['new']['bytes']) for f in volume['files']}
    equal(seen, {
        '/added': ('added', None, sha(b'a' * 100000), None, 100000),
        '/etc/changed': ('changed', sha(b'old\n'), sha(b'newer\n'), 4, 6),
        '/gone/file': ('deleted', sha(FILES['gone/file']), None, 5000, None),
        '/mode': ('attributes', sha(b'm'), sha(b'm'), 1, 1)}, 'the files')


def test_diff_files(work):
    """The files that differ, with sizes and hashes: on a whole disk, in partitions of a
    GPT and of an MBR, primary and logical."""
    old, new = ext_pair(work)
    size = os.path.getsize(old)
    path = image(os.path.join(work, 'whole.tt'), (old, new))
    answer = json.loads(tt('disk', 'diff', path, 'v1', 'v2', '--json').stdout)
    check_files(answer['volumes'][0], 0)
    said = tt('disk', 'diff', path, 'v1', 'v2', '--files').stdout
    for text in ('deleted', '/gone/file', '5,000 bytes', sha(b'newer\n')[:16]):
        check(text in said, said)
    total = 2 * size + 8 * MB
    starts = [MB, size + 3 * MB]
    for name, table, numbers in (
            ('gpt', gpt(total, [(s, size) for s in starts]), (1, 2)),
            ('mbr', mbr([(0x83, starts[0], size),
                         (5, starts[1] - MB, total - starts[1] + MB)],
                        [(starts[1], size)]), (1, 5))):
        versions = []
        for n, second in enumerate((old, new)):
            raw = os.path.join(work, f'{name}{n}.raw')
            with open(old, 'rb') as a, open(second, 'rb') as b:
                put(raw, [*table, (starts[0], a.read()), (starts[1], b.read())], total)
            versions.append(raw)
        path = image(os.path.join(work, f'{name}.tt'), versions)
        volumes = json.loads(tt('disk', 'diff', path, 'v1', 'v2', '--json').stdout)[
            'volumes']
        equal([v['partition'] for v in volumes], list(numbers), f'partitions of {name}')
        equal(volumes[0]['files'], [], 'the first partition')
        check_files(volumes[1], numbers[1])
    with open(old, 'rb') as f:
        data = f.read()
    for n, name in ((2, 'both'), (1, 'one')):
        put(os.path.join(work, name), [*gpt(total, [(s, size) for s in starts[:n]]),
                                       *[(s, data) for s in starts]], total)
    path = image(os.path.join(work, 'fewer.tt'), [os.path.join(work, 'both'),
                                                  os.path.join(work, 'one')])
    done = tt('disk', 'diff', path, 'v1', 'v2', rc=1)
    said = one_sentence(done.stderr, 'a partition is gone')
    check("partition 2: only 'v1' has an ext2" in said, said)
    blank = os.path.join(work, 'blank.raw')
    put(blank, [], size)
    path = image(os.path.join(work, 'half.tt'), (old, blank))
    done = tt('disk', 'diff', path, 'v1', '2', rc=1)
    said = one_sentence(done.stderr, 'one has none')
    check("only 'v1' has an ext2, ext3 or ext4 file system there, '2' has none" in said, said)
    check('not compared' in done.stdout and 'no difference' not in done.stdout,
          done.stdout)
    for kind in ('ext2', 'ext3'):
        other = make_ext4(os.path.join(work, kind), FILES, kind=kind)
        both = image(os.path.join(work, f'{kind}.tt'), (other, other))
        volumes = json.loads(tt('disk', 'diff', both, 'v1', 'v2', '--json').stdout)[
            'volumes']
        equal(volumes[0]['files'], [], kind)


@limit(300)
def test_hostile(work):
    """Damaged file systems and partition tables: an answer or sentences, never a
    crash."""
    rng = seed()
    old, new = ext_pair(work)
    size = os.path.getsize(old)
    for n in range(30):
        raw = os.path.join(work, 'bad.raw')
        if n % 3:
            subprocess.run(['cp', new, raw], check=True)
            low, high = (1024, 3 << 20) if n % 3 == 1 else (1024, 1300)
        else:
            with open(new, 'rb') as f:
                put(raw, [*gpt(size + 8 * MB, [(MB, size)]), (MB, f.read())],
                    size + 8 * MB)
            low, high = 0, 4096
        put(raw, [(rng.randrange(low, high), rng.randbytes(rng.choice((1, 4, 64))))
                  for _ in range(rng.choice((1, 10, 200)))])
        path = os.path.join(work, f'bad{n}.tt')
        image(path, (old if n % 3 else raw, raw))
        done = tt('disk', 'diff', path, 'v1', 'v2', '--json', '--files', rc=None)
        check(done.returncode in (0, 1), f'{n}: status {done.returncode}: {done.stderr}')
        check('signal' not in done.stderr, f'{n}: {done.stderr}')
        json.loads(done.stdout)
        for line in done.stderr.splitlines():
            check(line.startswith('tt: ') and line.isprintable(), f'{n}: {line!r}')
        os.unlink(path)


GUEST = b'''#!/bin/busybox sh
mount -t ext4 /dev/vda /mnt
exec 3< /dev/ttyS1
wait_host() { echo "TT-STEP $1"; read -r unused <&3; }
wait_host mounted
echo "made in the guest" > /mnt/made
sync
wait_host written
rm /mnt/precious
echo "more" >> /mnt/made
sync
wait_host deleted
umount /mnt
echo "TT-DONE own"
'''


def talking_guest(work):
    """The guest above, which waits after each step for a byte on its socket."""
    sock = os.path.join(work, 'talk')
    return sock, own_args(work, {'own/run': GUEST}) + [
        '-chardev', f'socket,id=talk,path={sock},server=on,wait=off',
        '-device', 'isa-serial,chardev=talk,index=1']


def talk_through(vm, sock, do):
    """Calls do(step) at each step of the guest, up to its end."""
    vm.qmp.cmd('query-status')
    with socket.socket(socket.AF_UNIX) as talk:
        talk.connect(sock)
        for step in ('mounted', 'written', 'deleted'):
            vm.wait_serial(f'TT-STEP {step}', 200)
            do(step)
            talk.sendall(b'\n')
        vm.wait(0)
    check(b'TT-DONE own' in vm.serial, vm.serial[-300:])


def precious_disk(work):
    precious = os.urandom(100000)
    return precious, make_ext4(os.path.join(work, 'base.fs'),
                               {'precious': precious, 'other': b'o'})


def check_deletion(answer, precious):
    files = {f['path']: f for f in answer['volumes'][0]['files']}
    equal({n: f['change'] for n, f in files.items()},
          {'/precious': 'deleted', '/made': 'changed'}, 'what the guest did')
    equal((files['/precious']['old']['sha256'], files['/made']['old']['sha256'],
           files['/made']['new']['sha256']),
          (sha(precious), sha(b'made in the guest\n'), sha(b'made in the guest\nmore\n')),
          'the contents, old and new')


@limit(300)
def test_deleted_file(work):
    """A guest deletes a file; an earlier version has it, by export and by NBD, and the
    difference names it, though the file system was in use and its journal not empty."""
    precious, base = precious_disk(work)
    path = new_disk(work, '-b', base, '-F', 'raw')
    sock, args = talking_guest(work)
    args += ['-drive', f'file={path},format=tt,if=none,id=disk0',
             '-device', 'virtio-blk-pci,drive=disk0']
    with Vm(work, args, qmp=1, timeout=250) as vm:
        talk_through(vm, sock, lambda step: vm.qmp.cmd(
            'blockdev-snapshot-internal-sync', device='disk0', name=step))
    checked(path)
    check_deletion(json.loads(tt('disk', 'diff', path, 'written', 'deleted',
                                 '--json').stdout), precious)
    out = os.path.join(work, 'out.raw')
    tt('disk', 'export', path, out, '--version', 'written')
    equal(read_ext4(out, 'precious') == precious, True, 'the file in the export')
    with Server(path, '--version', 'mounted', '--port', '0') as server:
        with open(out, 'wb') as f:
            f.write(server.read(work))
    equal(read_ext4(out, 'precious') == precious, True, 'the file over NBD')
    tt('disk', 'export', path, out, '--force')
    equal(read_ext4(out, 'precious'), b'', 'the file on the disk as it is now')


@limit(300)
def test_run(work):
    """The same in a recording: the disk of a position, of a full checkpoint and of a
    mark, of which the nearest full checkpoint before has pinned a version."""
    precious, base = precious_disk(work)
    with open(base, 'rb') as f:
        before = sha(f.read())
    sock, args = talking_guest(work)
    args += ['-drive', f'file={base},format=raw,if=none,id=disk0',
             '-device', 'virtio-blk-pci,drive=disk0']
    points = {}

    def checkpoint(step):
        points[step] = vm.qmp.cmd('tt-checkpoint-add', timeout=60, full=True, name=step)
        if step == 'written':
            vm.qmp.cmd('tt-mark', name='here')

    with recorder(work, args, qmp=1, timeout=250) as vm:
        talk_through(vm, sock, checkpoint)
    run = vm.run
    with open(base, 'rb') as f:
        equal(sha(f.read()), before, 'the image that was given')
    listed = json.loads(tt('disk', 'list', run, '--json').stdout)['versions']
    equal([(v['checkpoint'], v['position']) for v in listed],
          [(p['id'], p['position']) for p in points.values()], 'the pinned versions')
    ids = [str(points[s]['id']) for s in ('written', 'deleted')]
    for pair in (ids, ['@here', '@deleted'],
                 [str(points['written']['position'] + 5), str(points['deleted']['position'])]):
        check_deletion(json.loads(tt('disk', 'diff', run, *pair, '--json').stdout),
                       precious)
    out = os.path.join(work, 'out.raw')
    said = tt('disk', 'export', run, out, '--at', '@here').stdout
    check(f'of checkpoint {ids[0]} written at position' in said, said)
    equal(read_ext4(out, 'precious') == precious, True, 'the file in the export')
    with Server(run, '--at', '@mounted', '--port', '0') as server:
        with open(out, 'wb') as f:
            f.write(server.read(work))
    equal(read_ext4(out, 'precious') == precious, True, 'the file over NBD')
    tt('disk', 'export', run, out, '--force')
    equal(read_ext4(out, 'precious'), b'', 'the file at the end of the run')
    said = one_sentence(tt('disk', 'export', run, out, '--force', '--at', '5000', rc=1).stderr,
                        'a position before all checkpoints')
    check('first one is at position' in said, said)
    said = one_sentence(tt('disk', 'export', run, out, '--force', '--at', '@none',
                           rc=1).stderr, 'no such mark')
    check("nor a mark named 'none': it has @mounted, @written, @deleted, @here" in said,
          said)
    said = tt('disk', 'diff', run, '@here', 'now', '--blocks').stdout
    check("of checkpoint " in said and "the nearest one before '@here'" in said, said)
    said = one_sentence(tt('disk', 'diff', run, 'here', 'now', rc=1).stderr, 'no place')
    check("'here' is no place in a run" in said, said)
    said = one_sentence(tt('disk', 'list', run, '--disk', 'hda', rc=1).stderr, 'no disk')
    check("no disk 'hda'" in said, said)


@limit(60)
def test_no_name(work):
    """An @ without a name is refused: it is not the last checkpoint without one."""
    with recorder(work, disk_args(work), qmp=1) as vm:
        vm.wait_serial('ticks')
        add_full(vm)
        vm.qmp.send('quit')
        vm.wait(0)
    out = os.path.join(work, 'out.raw')
    for args in (('export', vm.run, out, '--at', '@'), ('diff', vm.run, '@', 'now')):
        said = one_sentence(tt('disk', *args, rc=1).stderr, args[0])
        check("is missing after '@'" in said, said)
    check(not os.path.exists(out), 'something was exported')


@limit(60)
def test_changed_base(work):
    """A version of a run whose image has changed is not passed off as whole."""
    with recorder(work, disk_args(work), qmp=1, options=',disk=commit') as vm:
        vm.wait_serial('ticks')
        point = str(add_full(vm)['id'])
        vm.qmp.hmp('qemu-io disk0 "write -P 2 0 64k"')
        out = os.path.join(work, 'out.raw')
        equal(tt('disk', 'export', vm.run, out, '--at', point).stderr, '', 'what is said')
        vm.qmp.send('quit')
        vm.wait(0)
    said = one_sentence(tt('disk', 'export', vm.run, out, '--force', '--at', point).stderr,
                        'behind the commit')
    check('disk.img' in said and f'has changed since checkpoint {point}' in said, said)


def test_another_base(work):
    """A disk of a run that was put on another image: its versions do not pass for what they
    were. The same image elsewhere is no other."""
    with recorder(work, disk_args(work), qmp=1) as vm:
        vm.wait_serial('ticks')
        point = str(add_full(vm)['id'])
        vm.qmp.send('quit')
        vm.wait(0)
    disk, out = f'{vm.run}/disks/disk0.tt', os.path.join(work, 'out.raw')
    image = os.path.join(work, 'disk.img')
    other = os.path.join(work, 'other.img')
    with open(other, 'wb') as f:
        f.write(b'\x55' * os.path.getsize(image))
    rebase = ('rebase', '-u', '-f', 'tt', '-F', 'raw', '-b')
    qemu_img(*rebase, other, disk)
    said = one_sentence(tt('disk', 'export', vm.run, out, '--at', point).stderr, 'export')
    check('is on another image than it was' in said, said)
    said = tt('check', vm.run, rc=1)
    check('is on another image' in said.stdout + said.stderr, said.stdout)
    said = tt('branch', vm.run, '--at', point, '--to', f'{work}/b', rc=1).stderr
    check('is on another image' in said, said)
    os.rename(image, f'{work}/moved.img')
    qemu_img(*rebase, f'{work}/moved.img', disk)
    tt('check', vm.run)
    equal(tt('disk', 'export', vm.run, out, '--force', '--at', point).stderr, '', 'moved')


def test_version_below(work):
    """A disk over a version of another: qemu-img info shows it, and while a VM uses it nobody
    writes the image at the bottom."""
    image = os.path.join(work, 'image.raw')
    with open(image, 'wb') as f:
        f.write(b'\x33' * SIZE)
    other = os.path.join(work, 'other.raw')
    with open(other, 'wb') as f:
        f.truncate(SIZE)
    lower, upper = new_disk(work, '-b', image, '-F', 'raw'), os.path.join(work, 'upper.tt')
    qemu_img('snapshot', '-c', 'one', lower)
    qemu_img('create', '-q', '-u', '-f', 'tt', '-b', lower, '-F', 'tt@1', upper, str(SIZE))
    check(lower in qemu_img('info', '-f', 'tt', upper), 'qemu-img info')
    node = f'driver=tt,node-name=disk,file.driver=file,file.filename={upper}'
    machine = ['-machine', 'none', '-nodefaults', '-display', 'none', '-blockdev']
    with Vm(work, [*machine, node], qmp=1, serial=False) as vm:
        vm.qmp.cmd('query-status')              # it has opened the disk
        said = run_tool(tool('qemu-img'), 'convert', '-n', '-f', 'raw', '-O', 'raw', other,
                        image, rc=1)[1]
        check('lock' in said, said)
        write_disk(work, lower, 'write -P 9 0 64k')     # no version of it changes
        vm.qmp.send('quit')
        vm.wait(0)
    equal(contents(work, upper) == b'\x33' * SIZE, True, 'the disk over a version')
    for own in (lower, image):
        said = one_sentence(tt('disk', 'export', upper, own, '--force', rc=1).stderr, own)
        check('or an image below it' in said, said)


@limit(400)
def test_branches(work):
    """A thousand branches from one version cost what each of them writes; each keeps its
    own, and the version they come from stays."""
    n, cluster = 1000, 32768
    path = new_disk(work, size=64 * MB)
    write(path, 'write -P 1 0 16m')
    qemu_img('snapshot', '-c', 'base', path)
    before = os.stat(path).st_blocks * 512
    node = {'driver': 'tt', 'node-name': 'disk', 'file': {'driver': 'file',
                                                          'filename': path}}
    with Vm(work, ['-machine', 'none', '-nodefaults', '-display', 'none'], qmp=1,
            serial=False, timeout=380) as vm:
        for k in range(n):
            qemu_img('snapshot', '-a', 'base', path)
            vm.qmp.cmd('blockdev-add', **node)
            said = vm.qmp.hmp(f'qemu-io disk "write -P {k % 251 + 2} {k * 16384} 4k"')
            check('failed' not in said, said)
            vm.qmp.cmd('blockdev-snapshot-internal-sync', device='disk', name=f'b{k}')
            vm.qmp.cmd('blockdev-del', **{'node-name': 'disk'})
        vm.qmp.cmd('quit')
        vm.wait(0)
    used = os.stat(path).st_blocks * 512 - before
    print(f'{n} branches of one cluster ({cluster} bytes) each: {used} bytes')
    check(used < n * cluster + (2 << 20), f'{used} bytes are used by {n} branches')
    checked(path)
    versions = json.loads(tt('disk', 'list', path, '--json').stdout)['versions']
    equal({v['parent'] for v in versions[1:]}, {versions[0]['id']}, 'their parents')
    equal(contents(work, path, ',version=1') == b'\1' * (16 * MB) + bytes(48 * MB), True,
          'the version they come from')
    for k in (0, 1, 500, 999):
        answer = json.loads(tt('disk', 'diff', path, 'base', f'b{k}', '--json',
                               '--blocks').stdout)
        equal([(b['offset'], b['length']) for b in answer['blocks']],
              [(k * 16384, 4096)], f'what branch {k} changed')
