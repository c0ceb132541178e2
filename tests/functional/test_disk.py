# SPDX-License-Identifier: GPL-2.0-or-later
"""A disk with versions: the block driver tt, in QEMU and its tools."""

import json
import os

from disker import (NbdServer, checked, contents, kill_writers, new_disk, qemu_img,
                    write_disk)
from guests import guest_args, linux_args
from test_branch import brancher
from test_full import add_full
from ttlib import (Vm, check, check_exact, equal, limit, one_sentence, read_bytes, recorder,
                   run_tool, seed, tool, tt, wait_until)

SIZE = 3 << 20


def base_image(work, size=SIZE):
    path = os.path.join(work, 'base.raw')
    with open(path, 'wb') as f:
        for n in range(size // 512):
            f.write(n.to_bytes(4, 'little') * 128)
    return path


def write(path, *commands):
    write_disk(os.path.dirname(path), path, *commands)


def shows_its_base(work, before, base, fmt):
    path = new_disk(work, '-b', base, '-F', fmt)
    equal(contents(work, path) == before, True, 'the new disk is the base')
    write(path, 'write -P 7 10000 20000', 'write -z 1m 64k', 'discard 2m 64k',
          'write -P 9 0 512')
    wanted = bytearray(before)
    wanted[10000:30000] = b'\x07' * 20000
    wanted[1 << 20:(1 << 20) + 65536] = bytes(65536)
    wanted[:512] = b'\x09' * 512
    qemu_img('snapshot', '-c', 'v', path)
    write(path, 'write -P 4 20000 4000')
    equal(contents(work, path, ',version=1') == wanted, True, 'the version')
    wanted[20000:24000] = b'\x04' * 4000
    equal(contents(work, path) == wanted, True, 'the disk is what was written')
    checked(path)


def test_base(work):
    """A disk over a base, raw, qcow2 or NBD, shows it until it is written; the base
    stays."""
    raw, qcow2 = base_image(work), os.path.join(work, 'base.qcow2')
    qemu_img('convert', '-O', 'qcow2', raw, qcow2)
    files = {path: read_bytes(path) for path in (raw, qcow2)}
    shows_its_base(work, files[raw], raw, 'raw')
    shows_its_base(work, files[raw], qcow2, 'qcow2')
    with NbdServer(work, raw) as server:
        shows_its_base(work, files[raw], server.uri, 'raw')
        shows_its_base(work, files[raw], server.uri, 'nbd')
    with NbdServer(work, qcow2, 'qcow2') as server:
        shows_its_base(work, files[raw], server.uri, 'raw')
    for path, before in files.items():
        equal(read_bytes(path) == before, True, f'{path} is as it was')


def test_convert(work):
    """qemu-img makes, describes, maps, checks and converts such disks."""
    base = base_image(work)
    path = os.path.join(work, 'copy.tt')
    qemu_img('convert', '-O', 'tt', '-o', 'cluster_size=16k', base, path)
    info = json.loads(qemu_img('info', '--output=json', path))
    equal((info['format'], info['virtual-size'], info['cluster-size']),
          ('tt', SIZE, 16384), 'what qemu-img info says')
    spans = json.loads(qemu_img('map', '--output=json', path))
    equal(sum(s['length'] for s in spans), SIZE, 'the map covers the disk')
    check(any(s['data'] and 'offset' in s for s in spans), 'the map has no data')
    qcow2 = os.path.join(work, 'copy.qcow2')
    qemu_img('convert', '-O', 'qcow2', path, qcow2)
    qemu_img('compare', base, qcow2)
    qemu_img('compare', base, path)
    checked(path)


def test_versions(work):
    """Each version stays what it was, by version= and by -l; the head goes back."""
    path = new_disk(work, size=SIZE)
    wanted = {}
    for n in range(1, 6):
        write(path, f'write -P {n} {n * 50000} 100000', f'write -P {n + 100} 0 512')
        qemu_img('snapshot', '-c', f'v{n}', path)
        wanted[n] = contents(work, path)
    write(path, 'write -P 99 0 3m')
    for n in range(1, 6):
        equal(contents(work, path, f',version={n}') == wanted[n], True,
              f'version {n} by its number')
    out = os.path.join(work, 'old.raw')
    qemu_img('convert', '-l', 'snapshot.name=v2', '-O', 'raw', path, out)
    equal(open(out, 'rb').read() == wanted[2], True, 'version v2 by qemu-img -l')
    qemu_img('snapshot', '-d', 'v3', path)
    qemu_img('snapshot', '-a', 'v2', path)
    equal(contents(work, path) == wanted[2], True, 'the disk after going back')
    write(path, 'write -P 55 1m 64k')
    qemu_img('snapshot', '-c', 'branch', path)
    for n in (1, 2, 4, 5):
        equal(contents(work, path, f',version={n}') == wanted[n], True,
              f'version {n} beside a branch')
    checked(path)


def test_space(work):
    """Two hundred versions cost what they changed; deleting them gives it back."""
    path = new_disk(work, size=64 << 20)
    node = f'driver=tt,node-name=disk,file.driver=file,file.filename={path}'
    with Vm(work, ['-machine', 'none', '-nodefaults', '-display', 'none', '-blockdev',
                   f'{node},discard=unmap,file.discard=unmap'], qmp=1,
            serial=False) as vm:
        vm.qmp.hmp('qemu-io disk "write -P 1 0 32m"')
        for n in range(200):
            vm.qmp.hmp(f'qemu-io disk "write -P 2 {n * 32768} 32k"')
            vm.qmp.cmd('blockdev-snapshot-internal-sync', device='disk', name=f'v{n}')
        vm.qmp.hmp('qemu-io disk flush')
        full = os.stat(path).st_blocks * 512
        check(full < (32 << 20) + 200 * 32768 + (2 << 20), f'{full} bytes are used')
        for n in range(200):
            vm.qmp.cmd('blockdev-snapshot-delete-internal-sync', device='disk',
                       name=f'v{n}')
        left = os.stat(path).st_blocks * 512
        check(left < (32 << 20) + (2 << 20), f'{left} bytes are left, of {full}')
        vm.qmp.cmd('quit')
        vm.wait(0)
    checked(path)


def test_refused(work):
    """A version cannot be written or does not exist, a file is foreign or damaged:
    one sentence each."""
    path = new_disk(work, size=SIZE)
    write(path, 'write -P 1 0 64k')
    qemu_img('snapshot', '-c', 'v', path)
    image = f'driver=tt,file.driver=file,file.filename={path}'
    said = run_tool(tool('qemu-img'), 'info', '--image-opts', f'{image},version=7',
                    rc=1)[1]
    check('no version 7' in said, said)
    with Vm(work, ['-machine', 'none', '-nodefaults', '-display', 'none', '-blockdev',
                   f'{image},node-name=d,version=1'], serial=False) as vm:
        vm.wait(1)
        check('read-only=on' in vm.stderr, vm.stderr)
    with open(path, 'r+b') as f:
        f.seek(100)
        f.write(b'damage')
        f.seek(4196)
        f.write(b'damage')
    said = run_tool(tool('qemu-img'), 'info', '-f', 'tt', path, rc=1)[1]
    check('damaged' in said, said)
    for odd in ('5000', '1'):
        said = run_tool(tool('qemu-img'), 'create', '-f', 'tt', '-o',
                        f'cluster_size={odd}', os.path.join(work, 'odd.tt'), '1m',
                        rc=1)[1]
        check('power of two' in said, said)


def test_names(work):
    """A name that is not UTF-8 is refused. A number, or now, is never taken for a name."""
    path = new_disk(work, size=SIZE)
    said = run_tool(tool('qemu-img'), 'snapshot', '-c', '\udcff\udcfe', path, rc=1)[1]
    check('UTF-8' in said, said)
    for n, name in enumerate(('3', 'now', 'three'), 1):
        write(path, f'write -P {n} 0 64k')
        qemu_img('snapshot', '-c', name, path)
    write(path, 'write -P 9 0 64k')
    for version, byte in (('3', 3), ('now', 9), ('1', 1), ('three', 3)):
        out = os.path.join(work, version + '.raw')
        tt('disk', 'export', path, out, '--version', version)
        equal(read_bytes(out)[0], byte, version)


def of_version(path, n):
    return f'driver=tt,file.driver=file,file.filename={path}' + (f',version={n}' if n else '')


def test_cut_off(work):
    """A file whose end is missing, if only a byte: what does not need it is read exactly,
    the rest cannot be read, and it is said what is missing."""
    path, out = new_disk(work, size=SIZE), os.path.join(work, 'out.raw')
    wanted = {}
    for n in range(1, 5):
        write(path, f'write -P {n} {n * 64}k 64k', f'write -P {n + 100} 2m 64k')
        qemu_img('snapshot', '-c', f'v{n}', path)
        wanted[n] = contents(work, path)
    write(path, 'write -P 99 0 32k')
    whole, size = read_bytes(path), os.path.getsize(path)
    # The head's 32 KiB are the last ones, those of version 4 come before.
    for less, lost in ((1, [0]), (700, [0]), (32768, [0]), (32769, [0, 4]),
                       (5 * 32768, [0, 4])):
        with open(path, 'wb') as f:
            f.write(whole[:size - less])
        said = run_tool(tool('qemu-img'), 'check', '-f', 'tt', path, rc=2)
        check(f'cut off at byte {size - less}' in said[1] and
              ('missing clusters: 4;' if 4 in lost else 'no version needs') in said[1],
              f'{said}')
        check(path in qemu_img('info', '-f', 'tt', path), 'qemu-img info')
        for n in range(5):
            args = ('convert', '--image-opts', '-O', 'raw', of_version(path, n), out)
            if n in lost:
                anyway = args[:-2] + (args[-2] + (',damaged=on' if not n else ''), out)
                said = run_tool(tool('qemu-img'), *anyway, rc=1)[1]
                check('Input/output error' in said, said)
                said = run_tool(tool('qemu-img'), *args, rc=1)[1]
                check('cut off' in said if not n else 'Input/output error' in said, said)
            else:
                qemu_img(*args)
                equal(read_bytes(out) == wanted[n], True, f'version {n}, less {less}')
        with Vm(work, ['-machine', 'none', '-nodefaults', '-display', 'none', '-blockdev',
                       f'{of_version(path, 0)},node-name=d'], serial=False) as vm:
            vm.wait(1)
        check('has been cut off' in vm.stderr, vm.stderr)


def damage_journal(path):
    """In the record before the last one. Returns the file as it was."""
    whole = read_bytes(path)
    image = bytearray(whole)
    at = [i for i in range(0, len(image), 512) if image[i:i + 4] == b'TTJR']
    last = max(i for i in at if image[i + 4:i + 8] != b'\0\0\0\0')
    before = max(i for i in at if i < last and image[i + 4:i + 8] != b'\0\0\0\0')
    image[before + 26] ^= 1
    with open(path, 'wb') as f:
        f.write(image)
    return whole


def test_damaged_journal(work):
    """Where the journal is damaged the disk is older than it was. That does not pass for the
    newest state anywhere, but versions and what is left can be read."""
    path, out = new_disk(work, size=SIZE), os.path.join(work, 'out.raw')
    write(path, 'write -P 1 0 64k')
    qemu_img('snapshot', '-c', 'v', path)
    wanted = contents(work, path)
    for n in range(2, 5):
        write(path, f'write -P {n} {n * 64}k 64k')
    damage_journal(path)
    program = tool('qemu-img')
    for args in (('convert', '-O', 'raw', path, out), ('snapshot', '-l', path),
                 ('snapshot', '-c', 'new', path), ('compare', path, path),
                 ('convert', '-f', 'tt', '-O', 'raw', path, out)):
        said = run_tool(program, *args, rc=2 if args[0] == 'compare' else 1)[1]
        check('journal of the disk is damaged' in said and 'damaged=on' in said, said)
    said = run_tool(program, 'info', path)[1]
    check('warning' in said and 'journal of the disk is damaged' in said, said)
    with Vm(work, ['-machine', 'none', '-nodefaults', '-display', 'none', '-tt',
                   f'record,dir={work}/run', '-drive', f'file={path},format=tt,if=none'],
            serial=False) as vm:
        vm.wait(1)
    check('journal of the disk is damaged' in vm.stderr, vm.stderr)
    qemu_img('convert', '--image-opts', '-O', 'raw', of_version(path, 1), out)
    equal(read_bytes(out) == wanted, True, 'the version')
    qemu_img('convert', '--image-opts', '-O', 'raw', of_version(path, 0) + ',damaged=on',
             out)
    os.remove(out)
    said = tt('disk', 'export', path, out, '--version', 'v').stderr
    equal((read_bytes(out) == wanted, said.count('damaged')), (True, 1), said)
    said = tt('disk', 'export', path, out, '--force', rc=1).stderr
    check('may be older' in said, said)
    tt('disk', 'diff', path, 'v', 'v', '--blocks')
    said = tt('disk', 'diff', path, 'v', 'now', '--blocks', rc=1).stderr
    equal(said.count('journal'), 1, said)


def test_handed_over(work):
    """A node that becomes active has what others made of the disk meanwhile: its new size;
    and it stays inactive if the disk is damaged."""
    path = new_disk(work, size=SIZE)
    for n in range(1, 5):
        write(path, f'write -P {n} {n * 64}k 64k')
    node = f'driver=tt,node-name=d,active=off,file.driver=file,file.filename={path}'
    with Vm(work, ['-S', '-machine', 'none', '-nodefaults', '-display', 'none', '-blockdev',
                   node], qmp=1, serial=False) as vm:
        def size():
            nodes = vm.qmp.cmd('query-named-block-nodes')
            return [n for n in nodes if n['node-name'] == 'd'][0]['image']['virtual-size']

        equal(size(), SIZE, 'the size, when it was opened')
        qemu_img('resize', '-f', 'tt', path, str(2 * SIZE))
        vm.qmp.cmd('blockdev-set-active', **{'node-name': 'd', 'active': True})
        equal(size(), 2 * SIZE, 'the size')
        vm.qmp.cmd('blockdev-set-active', **{'node-name': 'd', 'active': False})
        write(path, 'write -P 8 0 64k')
        write(path, 'write -P 9 1m 64k')
        whole = damage_journal(path)
        said = vm.qmp.error('blockdev-set-active', **{'node-name': 'd', 'active': True})
        check('journal of the disk is damaged' in said, said)
        with open(path, 'wb') as f:
            f.write(whole)
        vm.qmp.cmd('blockdev-set-active', **{'node-name': 'd', 'active': True})
        vm.qmp.cmd('quit')
        vm.wait(0)
    checked(path)


def test_no_name(work):
    """No name stands for a version without a name: it has its number."""
    path = new_disk(work, size=SIZE)
    write(path, 'write -P 1 0 64k')
    qemu_img('snapshot', '-c', '', path)
    write(path, 'write -P 2 0 64k')
    before = contents(work, path)
    out = os.path.join(work, 'out')
    said = run_tool(tool('qemu-img'), 'snapshot', '-a', '', path, rc=1)[1]
    equal(said.count('\n'), 1, said)
    run_tool(tool('qemu-img'), 'convert', '-l', 'snapshot.name=', '-O', 'raw', path, out,
             rc=1)
    said = one_sentence(tt('disk', 'export', path, out, '--version', '', rc=1).stderr,
                        'a version without a name')
    check('a version is missing' in said, said)
    equal(contents(work, path) == before, True, 'the disk as it was')
    qemu_img('snapshot', '-a', '1', path)
    equal(contents(work, path)[:65536] == b'\1' * 65536, True, 'version 1')
    checked(path)


def test_rebase(work):
    """The disk can be put on another base, and on none."""
    base = base_image(work)
    other = os.path.join(work, 'other.raw')
    with open(other, 'wb') as f:
        f.write(b'\x44' * SIZE)
    path = new_disk(work, '-b', base, '-F', 'raw')
    write(path, 'write -P 7 0 64k')
    before = contents(work, path)
    qemu_img('rebase', '-f', 'tt', '-b', other, '-F', 'raw', path)
    equal(contents(work, path) == before, True, 'the disk on another base')
    qemu_img('rebase', '-f', 'tt', '-b', '', path)
    equal(contents(work, path) == before, True, 'the disk on no base')
    checked(path)


def run_node(work, node, *commands):
    """Commands of qemu-io for a node, in QEMU without a machine; what they said."""
    with Vm(work, ['-machine', 'none', '-nodefaults', '-display', 'none', '-blockdev',
                   f'{node},node-name=disk'], qmp=1, serial=False) as vm:
        for command in commands:
            vm.qmp.hmp(f'qemu-io disk "{command}"')
        vm.qmp.cmd('quit')
        vm.wait(0)
        return vm.stdout.decode(errors='replace')


def test_zeros_over_a_base(work):
    """Zeros stay zeros when a base that was left out is there again, and where the node has
    one that the file does not name; also those of a disk that grows."""
    base = base_image(work)
    below = f'backing.driver=raw,backing.file.driver=file,backing.file.filename={base}'
    path = new_disk(work, '-b', base, '-F', 'raw')
    node = f'driver=tt,file.driver=file,file.filename={path}'
    with Vm(work, ['-machine', 'none', '-nodefaults', '-display', 'none'], qmp=1,
            serial=False) as vm:
        vm.qmp.cmd('blockdev-add', **{
            'driver': 'tt', 'node-name': 'disk', 'backing': None,
            'file': {'driver': 'file', 'filename': path}})
        vm.qmp.hmp('qemu-io disk "write -z 64k 128k"')
        vm.qmp.cmd('quit')
        vm.wait(0)
    equal(contents(work, path)[65536:196608] == bytes(131072), True, 'the base was left out')
    qemu_img('create', '-q', '-f', 'tt', path, '1M')
    said = run_node(work, f'{node},{below}', 'write -z 64k 128k', 'read -P 0 64k 128k',
                    'truncate 2M', 'read -P 0 1M 1M')
    check('failed' not in said and 'rror' not in said, said)
    checked(path)


def test_read_beside_a_flush(work):
    """A read that waits while its cluster is given up, freed and written for another one
    does not get what that one has."""
    path = new_disk(work, size=SIZE)
    node = (f'driver=tt,file.driver=blkdebug,file.image.driver=file,'
            f'file.image.filename={path},if=none,id=disk')
    with Vm(work, ['-machine', 'none', '-nodefaults', '-display', 'none', '-drive', node],
            qmp=1, serial=False) as vm:
        for command in ('write -P 1 0 1M', 'flush', 'break read_aio A',
                        'aio_read -P 0 0 4k', 'write -z 0 512k', 'flush',
                        'write -P 9 1M 512k', 'resume A', 'aio_flush'):
            vm.qmp.hmp(f'qemu-io disk "{command}"')
        vm.qmp.cmd('quit')
        vm.wait(0)
        said = vm.stdout.decode(errors='replace')
    check('read 4096/4096' in said and 'verification failed' not in said, said)
    checked(path)


def test_resize(work):
    """A disk can be made larger, with versions and over a longer base that stays hidden;
    not smaller."""
    base = base_image(work)
    path = os.path.join(work, 'disk.tt')
    qemu_img('create', '-q', '-f', 'tt', '-b', base, '-F', 'raw', path, '1M')
    write(path, 'write -P 7 1000k 24k')
    before = contents(work, path)
    qemu_img('snapshot', '-c', 'small', path)
    qemu_img('resize', path, '2500k')
    after = contents(work, path)
    equal(after == before + bytes(2500 * 1024 - (1 << 20)), True, 'the larger disk')
    write(path, 'write -P 9 2000k 300k')
    equal(contents(work, path, ',version=1')[:1 << 20] == before, True, 'the version')
    checked(path)
    said = run_tool(tool('qemu-img'), 'resize', '--shrink', path, '1M', rc=1)[1]
    check('smaller' in said, said)
    odd = os.path.join(work, 'odd.tt')
    qemu_img('create', '-q', '-f', 'tt', odd, '70000')
    write(odd, 'write -P 5 0 512', 'write -P 6 68k 512')
    before = contents(work, odd)
    said = run_tool(tool('qemu-img'), 'resize', odd, '200k')[1]
    check('cannot grow again' in said, said)
    equal(contents(work, odd) == before.ljust(200 << 10, b'\0'), True,
          'a disk that ended within a cluster')
    checked(odd)


@limit(120)
def test_large(work):
    """A disk of 16 TiB: it is recorded, has versions, replays and is branched; made by hand
    it has clusters that are large enough, too."""
    image, mark = os.path.join(work, 'large.qcow2'), 'write -P 7 15T 64k'
    qemu_img('create', '-q', '-f', 'qcow2', image, '16T')
    before = read_bytes(image)
    args = [*guest_args(work, 'torture', 'rounds=100000 percent=30'), '-drive',
            f'file={image},format=qcow2,if=none,id=disk0', '-device',
            'virtio-blk-pci,drive=disk0']
    with recorder(work, args, qmp=1) as vm:
        vm.wait_serial('ticks')
        said = vm.qmp.hmp(f'qemu-io disk0 "{mark}"')
        check('failed' not in said and 'rror' not in said, said)
        point = add_full(vm)['id']
        vm.qmp.hmp('qemu-io disk0 "write -P 8 15T 64k"')
        vm.qmp.send('quit')
        vm.wait(0)
    store = os.path.join(vm.run, 'disks', 'disk0.tt')
    checked(store)
    info = json.loads(qemu_img('info', '--output=json', store))
    equal((info['virtual-size'], info['cluster-size']), (16 << 40, 128 << 10), 'the store')
    equal(read_bytes(image) == before, True, 'the image is as it was')
    check_exact(work, vm.run, serial_wanted=vm.serial)
    with brancher(work, args, vm.run, point, qmp=1) as branch:
        said = branch.qmp.hmp(f'qemu-io disk0 "{mark.replace("write", "read")}"')
        check('failed' not in said and 'rror' not in said, said)
    path = new_disk(work, size='16T')
    write(path, mark, 'read -P 7 15T 64k', 'read -P 0 14T 64k')
    checked(path)
    said = run_tool(tool('qemu-img'), 'create', '-f', 'tt', '-o', 'cluster_size=32k',
                    path, '16T', rc=1)[1]
    check('larger clusters' in said, said)


def test_blockdev_create(work):
    """blockdev-create makes such a disk, on a node."""
    path = os.path.join(work, 'made.tt')
    open(path, 'wb').close()
    with Vm(work, ['-machine', 'none', '-nodefaults', '-display', 'none', '-blockdev',
                   f'driver=file,node-name=f,filename={path}'], qmp=1,
            serial=False) as vm:
        vm.qmp.cmd('blockdev-create', **{'job-id': 'j', 'options': {
            'driver': 'tt', 'file': 'f', 'size': SIZE, 'cluster-size': 8192}})
        wait_until(lambda: vm.qmp.cmd('query-jobs')[0]['status'] == 'concluded',
                   'the end of the job')
        check('error' not in vm.qmp.cmd('query-jobs')[0], vm.qmp.cmd('query-jobs'))
        vm.qmp.cmd('quit')
        vm.wait(0)
    info = json.loads(qemu_img('info', '--output=json', path))
    equal((info['format'], info['virtual-size'], info['cluster-size']), ('tt', SIZE, 8192),
          'what was made')
    checked(path)


@limit(240)
def test_killed(work):
    """A writer is killed at random moments: the disk is clean each time, what was
    flushed is there, and every version is as it was."""
    kill_writers(work, seed(), 8, 0.6)


@limit(400)
def test_linux(work):
    """A Linux guest makes a file system on a disk with versions, while versions are
    made, and reads back what it wrote."""
    base = base_image(work, 64 << 20)
    path = new_disk(work, '-b', base, '-F', 'raw')
    drive = ['-drive', f'file={path},format=tt,if=none,id=disk0,discard=unmap',
             '-device', 'virtio-blk-pci,drive=disk0']
    with Vm(work, linux_args('vda,vda,hold') + drive, qmp=1, timeout=300) as vm:
        vm.wait_serial('TT-GUEST-READY', 200)
        made = 0
        while b'TT-HOLDS' not in vm.serial and made < 200:
            vm.qmp.cmd('blockdev-snapshot-internal-sync', device='disk0',
                       name=f'v{made}', timeout=60)
            made += 1
        vm.wait_serial('TT-HOLDS', 200)
        vm.qmp.send('quit')
        vm.wait(0)
        equal(vm.serial.count(b'TT-DONE vda'), 2, 'disks that were read back')
    checked(path)
    check(made > 3, f'only {made} versions were made')
    equal(contents(work, path, ',version=1') == open(base, 'rb').read(), True,
          'the first version is the base')


def test_tool(work):
    """tt disk lists the versions of a disk, and says what it is, without QEMU."""
    path = new_disk(work, size=SIZE)
    write(path, 'write -P 1 0 64k')
    qemu_img('snapshot', '-c', 'first', path)
    write(path, 'write -P 2 0 32k')
    qemu_img('snapshot', '-c', 'second', path)
    listed = json.loads(tt('disk', 'list', path, '--json').stdout)['versions']
    equal([(v['id'], v['parent'], v['name'], v['clusters']) for v in listed],
          [(1, 0, 'first', 2), (2, 1, 'second', 1)], 'what tt disk list says')
    check('second' in tt('disk', 'list', path).stdout, 'the list for people')
    info = json.loads(tt('disk', 'info', path, '--json').stdout)
    equal((info['size_bytes'], info['versions'], info['errors']), (SIZE, 2, 0),
          'what tt disk info says')
    said = tt('disk', 'info', os.path.join(work, 'none.tt'), rc=1)
    check('none.tt' in said.stderr, said.stderr)
