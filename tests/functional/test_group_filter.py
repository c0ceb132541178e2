# SPDX-License-Identifier: GPL-2.0-or-later
"""Recorded VMs that talk to each other by QEMU's own network backends, each with a
filter-tt: each replays alone, and the group fits together."""

import contextlib
import hashlib
import hmac
import json
import os
import socket
import struct
import subprocess
import time

from group_peer import NO_POSITION, xxh3
from guests import guest_args
from test_group import (CLIENT, SERVER, UNTIL_TOLD, all_have, both_are_at, check_consoles,
                        check_group, check_rounds, compare, frame_notes, group_points, guest,
                        md5_of, read_frames, round_of_branch, stand_still, tell_clients)
from test_group_frames import CLIENT as BULK_CLIENT, SERVER as BULK_SERVER, named
from ttlib import (MACHINE, SLOW, Skip, Vm, check, check_exact, equal, limit, one_sentence,
                   recorder, replayer, seed, tt, wait_until)

GROUP = 'a-group-with-a-long-name'      # group_peer's XXH3 is for 17 bytes and more
TRAILER = 104


def card(number, model='virtio-net-pci'):
    return ['-device', f'{model},netdev=net0,romfile=,mac=52:54:00:09:00:{number:02x}']


def stream(path, is_server, name='net0'):
    return f'stream,id={name},server={"on" if is_server else "off"},addr.type=unix,' \
        f'addr.path={path}' + ('' if is_server else ',reconnect-ms=300')


def dgram(mine, other):
    return f'dgram,id=net0,local.type=unix,local.path={mine},remote.type=unix,' \
        f'remote.path={other}'


def netdevs(*all_of_them):
    return [arg for netdev in all_of_them for arg in ('-netdev', netdev)]


def filtered(options=''):
    return ['-object', f'filter-tt,id=f0,netdev=net0,group={GROUP}{options}']


def key_of(work):
    path = os.path.join(work, 'key')
    with open(path, 'w', encoding='ascii') as out:
        out.write('sixteen bytes and more\n')
    os.chmod(path, 0o600)
    return path


def server_guest(work, clients=1):
    return guest(work, 's', SERVER.replace('CLIENTS', str(clients)))


def client_guest(work, number=2, script=CLIENT):
    return guest(work, f'c{number}', script.replace('NUMBER', str(number)))


def frames_from(dump, number):
    """How many frames of a guest a file of filter-dump has."""
    with open(dump, 'rb') as f:
        data = f.read()
    at, n = 24, 0
    while at < len(data):
        size = struct.unpack_from('<I', data, at + 8)[0]
        n += data[at + 22:at + 28] == b'RT\0\x09\0' + bytes([number])
        at += 16 + size
    return n


def nothing_missing(sender, receiver):
    """What one sent the other has noted, up to the last frame that it has."""
    sent = [seq for _, seq, _ in read_frames(sender)[0]]
    got = {seq for _, _, seq, _, _ in read_frames(receiver)[1]}
    last = max(i for i, seq in enumerate(sent) if seq in got)
    missing = [seq for seq in sent[:last] if seq not in got]
    check(not missing, f'{len(missing)} of {len(sent)} frames are not noted')


@limit(400)
def test_two(work):
    """Two recorded Linux guests over -netdev stream, with a key; one is stopped and shows
    its past meanwhile: nothing is lost, each replays exactly alone, cuts and orders are
    right."""
    path, key = os.path.join(work, 'sock'), f',key-file={key_of(work)}'
    os.makedirs(os.path.join(work, 'group'))
    s = recorder(work, server_guest(work) + netdevs(stream(path, True)) + filtered(key) +
                 card(1), 'group/server', timeout=350, qmp=1)
    c = recorder(work, client_guest(work) + netdevs(stream(path, False)) + filtered(key) +
                 card(2), 'group/client2', timeout=350)
    with s, c:
        stand_still(s)
        c.wait(0)
        s.wait(0)
    check_consoles(s.serial, c.serial)
    check_group(work, [s, c], 30)
    nothing_missing(c.run, s.run)
    nothing_missing(s.run, c.run)


@limit(300)
def test_outside(work):
    """A VM without a filter and without a recording takes part: it sees padding, and its
    frames count as from outside, and break nothing."""
    path = os.path.join(work, 'sock')
    os.makedirs(os.path.join(work, 'group'))
    s = recorder(work, server_guest(work) + netdevs(stream(path, True)) + filtered() +
                 card(1), 'group/server', timeout=250)
    dump = os.path.join(work, 'frames.pcap')
    c = Vm(work, client_guest(work) + netdevs(stream(path, False)) +
           ['-object', f'filter-dump,id=d0,netdev=net0,file={dump}'] + card(2), name='client',
           timeout=250)
    with s, c:
        c.wait(0)
        s.wait(0)
    check_consoles(s.serial, c.serial)
    sent, got = read_frames(s.run)
    check(len(sent) > 40 and not got, f'{len(sent)} frames sent, {len(got)} delivered')
    info = json.loads(tt('group', 'info', os.path.dirname(s.run), '--json').stdout)
    outside, n = info['members'][0]['outside'], frames_from(dump, 2)
    # The server may have gone before the last ones came.
    check(n - 4 <= outside <= n and outside > 15, f'of {n} frames from outside: {info}')
    tt('group', 'check', os.path.dirname(s.run))
    check_exact(work, s.run, serial_wanted=s.serial, timeout=200)


@limit(400)
def test_frames(work):
    """With frames= the receiver's log names what came by a filter, and both replay exactly."""
    size, path, frames = 2 << 20, os.path.join(work, 'sock'), os.path.join(work, 'frames')
    s = recorder(work, guest(work, 's', BULK_SERVER.replace('BYTES', str(size))) +
                 netdevs(stream(path, True)) + filtered() + card(1), 'server',
                 f',frames={frames}', timeout=350)
    c = recorder(work, guest(work, 'c', BULK_CLIENT) + netdevs(stream(path, False)) +
                 filtered() + card(2), 'client', f',frames={frames}', timeout=350)
    with s, c:
        c.wait(0)
        s.wait(0)
    equal(md5_of(c.serial), md5_of(s.serial), 'the file that the client got')
    part = sum(n for _, n, _, _ in named(c.run))
    check(part > size * .9, f'{part} bytes of {size} are named')
    for vm in s, c:
        check_exact(work, vm.run, name=f'{vm.name}-rep', serial_wanted=vm.serial, timeout=200)


@limit(60)
def test_attach(work):
    """A VM is recorded later: from then on what comes is noted, and its log replays."""
    path, run = os.path.join(work, 'sock'), os.path.join(work, 'later.run')
    with Vm(work, [*MACHINE, *netdevs(stream(path, True)), *filtered(),
                   *card(1, 'rtl8139')], qmp=1) as vm:
        check(vm.qmp, 'it runs')
        with Cable(path) as c:
            for seq in 1, 2:
                c.send(sealed(b'x' * 60, seq))
            # Seen before: a sentence, and what was sent before it has been seen, too.
            c.send(sealed(b'x' * 60, 2))
            wait_until(lambda: 'seen before' in vm.stderr, 'the frames that nobody notes')
            vm.qmp.cmd('tt-record-start', 60, dir=run)
            for seq in 3, 4:
                c.send(sealed(b'x' * 60, seq))
            wait_until(lambda: len(read_frames(run)[1]) == 2, 'the frames of the recording')
        vm.qmp.send('quit')
        vm.wait(0)
    equal([seq for _, _, seq, _, _ in read_frames(run)[1]], [3, 4], 'frames delivered')
    check_exact(work, run, serial_wanted=b'')


@limit(60)
def test_cannot_listen(work):
    """A stream that cannot listen, or does not yet, is a network without anybody."""
    with Vm(work, [*MACHINE, *netdevs(stream(os.path.join(work, 'no', 'sock'), True)),
                   *filtered(), *card(1, 'rtl8139')], qmp=1) as vm:
        vm.qmp.cmd('announce-self', initial=50, max=50, rounds=3, step=0)
        wait_until(lambda: 'No such file' in vm.qmp.hmp('info network'), 'it cannot listen')
        vm.qmp.cmd('announce-self', initial=50, max=50, rounds=1, step=0)
        vm.qmp.send('quit')
        vm.wait(0)


@limit(60)
def test_taken_away(work):
    """A filter of a VM that is recorded is taken away: its user and its log hear of it. At the
    end of a VM nothing is said."""
    args = [*MACHINE, '-netdev', 'hubport,id=n0,hubid=0', '-object',
            'filter-tt,id=f,netdev=n0,group=g', '-device', 'rtl8139,netdev=n0,romfile=']
    said = 'filter-tt of netdev n0 is taken away'
    for goes in False, True:
        with recorder(work, args, f'run{goes:d}', qmp=1) as vm:
            wait_until(lambda: vm.qmp.cmd('query-tt')['position'] > 0, 'it runs')
            if goes:
                vm.qmp.cmd('object-del', id='f')
            vm.qmp.send('quit')
            vm.wait(0)
        equal([said in vm.stderr, said in tt('log', vm.run, '--kind', 'note').stdout],
              [goes] * 2, vm.stderr)
    # A VM that nobody records has nothing to lose.
    with Vm(work, args, name='plain', qmp=1) as vm:
        vm.qmp.cmd('object-del', id='f')
        vm.qmp.send('quit')
        vm.wait(0)
    check(said not in vm.stderr, vm.stderr)


# Checkpoints

def lan(work, clients):
    """{name: arguments} of a server and its clients. The server's process is their switch:
    each backend is a port of it, and so is its own NIC."""
    ports, names = [], []
    for number in range(2, clients + 2):
        path = os.path.join(work, f'link{number}')
        names.append(path)
        ports += [stream(path, True, f'up{number}'),
                  f'hubport,id=port{number},hubid=0,netdev=up{number}']
    args = {'server': server_guest(work, clients) +
            netdevs(*ports, 'hubport,id=net0,hubid=0') + filtered() + card(1)}
    for number, path in enumerate(names, 2):
        args[f'client{number}'] = client_guest(work, number, UNTIL_TOLD) + \
            netdevs(stream(path, False)) + filtered() + card(number)
    return args


@limit(400)
def test_checkpoint(work):
    """Three VMs on a hub of QEMU make checkpoints of the group; from one of them all go on
    as branches."""
    os.makedirs(os.path.join(work, 'group'))
    args = lan(work, 2)
    with contextlib.ExitStack() as running:
        vms = {name: running.enter_context(
            recorder(work, a, f'group/{name}', typed=name != 'server', timeout=350, qmp=1))
               for name, a in args.items()}
        for n, number in enumerate((3, 6), 1):
            both_are_at(vms, number)
            said = vms['client3'].qmp.hmp('tt checkpoint add -g')
            check('full' in said, f'tt checkpoint add -g: {said}')
            all_have(vms, n)
        tell_clients(vms)
        for vm in reversed(list(vms.values())):
            vm.wait(0)
    md5 = md5_of(vms['server'].serial)
    for name in 'client2', 'client3':
        check_rounds(vms[name], md5)
    folder = os.path.join(work, 'group')
    check('fit together' in tt('group', 'check', folder).stdout, 'tt group check')
    points = group_points(folder)
    equal([sorted(p['members']) for p in points], [sorted(vms)] * 2, 'checkpoints')
    compare(folder, {name: vm.run for name, vm in vms.items()}, 10)
    check_exact(work, vms['client2'].run, serial_wanted=vms['client2'].serial, timeout=200)
    branches = {}
    with contextlib.ExitStack() as running:
        os.makedirs(os.path.join(work, 'second'))
        for name, a in args.items():
            run = os.path.join(work, 'second', f'{name}.run')
            vm = Vm(work, [*a, '-tt', f'branch,dir={vms[name].run},at=@group-1,to={run}'],
                    name=f'second-{name}', typed=name != 'server', timeout=200)
            branches[name] = running.enter_context(vm)
        tell_clients(branches)
        for vm in reversed(list(branches.values())):
            vm.wait(0)
    for name in 'client2', 'client3':
        check_rounds(branches[name], md5, round_of_branch(name, branches[name].serial))
    folder = os.path.join(work, 'second')
    check('fit together' in tt('group', 'check', folder).stdout, 'tt group check')
    kept = sum(m['kept'] for m in points[0]['members'].values())
    print(f'{kept} frames were on their way')


@limit(100)
def test_idle(work):
    """A VM that sends nothing, and gets nothing, hears of a checkpoint of the group."""
    one, two = os.path.join(work, 'one'), os.path.join(work, 'two')
    a = recorder(work, [*MACHINE, *netdevs(dgram(one, two)), *filtered(), *card(1)], 'a',
                 qmp=2)
    b = recorder(work, [*MACHINE, *netdevs(dgram(two, one)), *filtered(), *card(2)], 'b',
                 qmp=1)
    with a, b:
        # QMP may answer before the netdevs are there, but not before the VM runs.
        wait_until(lambda: all(vm.qmp.cmd('query-tt')['position'] > 0 for vm in (a, b)),
                   'both run')
        said = tt('group', 'checkpoint', a.qmp_paths[1]).stdout
        check('has its checkpoint @group-1 at position' in said, said)
        all_have({'a': a, 'b': b}, 1)
        for vm in a, b:
            vm.qmp.send('quit')
            vm.wait(0)
    for vm in a, b:
        equal(read_frames(vm.run), ([], []), f'frames of {vm.name}')
        check('"0x3"' in tt('log', vm.run, '--kind', 'frame', '--json').stdout,
              f'no checkpoint in the log of {vm.name}')


@limit(60)
def test_incident(work):
    """An incident does not go through filters. By a second NIC with a netdev tt it does, to
    VMs whose frames go through filters."""
    one, two, sock = (os.path.join(work, name) for name in ('one', 'two', 'sock'))

    def second(how):
        return ['-netdev', f'tt,id=net1,group={GROUP},{how}={sock}', '-device',
                'rtl8139,netdev=net1,romfile=']

    for more in ([], []), (second('listen'), second('connect')):
        a = recorder(work, [*MACHINE, *netdevs(dgram(one, two)), *filtered(), *card(1),
                            *more[0]], 'a', qmp=1)
        b = recorder(work, [*MACHINE, *netdevs(dgram(two, one)), *filtered(), *card(2),
                            *more[1]], 'b', qmp=1)
        with a, b:
            wait_until(lambda: all(vm.qmp.cmd('query-tt')['position'] > 0 for vm in (a, b)),
                       'both run')
            if more[0]:
                wait_until(lambda: 'connected' in a.qmp.hmp('info network'), 'the link')
            check('@incident-1' in a.qmp.hmp('tt incident it fails'), 'tt incident')
            if more[0]:
                equal(b.qmp.event('TT_INCIDENT')['mark'], 'peer-1', 'the mark of the other')
            for vm in a, b:
                vm.qmp.send('quit')
                vm.wait(0)
        marks = tt('log', b.run, '--kind', 'mark').stdout
        equal('peer-1' in marks, bool(more[0]), f'a mark in the log of b: {marks}')
        for path in one, two:
            os.unlink(path)


# Strangers

def sealed(data, seq=0, key=None, group=GROUP, **changed):
    """A frame with its trailer, written from docs/reference/group-format.rst alone."""
    own = {'kind': 2, 'flags': 0, 'zero': 0, 'len': len(data), 'epoch': 0, 'run': b'r' * 16,
           'pos': NO_POSITION, 'seq': seq, 'digest': xxh3(data), **changed}
    head = struct.pack('<4sBBHII16sQQQQ', b'TTMF', own['kind'], own['flags'], own['zero'],
                       own['len'], own['epoch'], own['run'], own['pos'], own['seq'],
                       own['digest'], xxh3(group.encode()))
    if key:
        mine = hmac.new(key, b'TTVMTR1\n' + group.encode(), hashlib.sha256).digest()
        covered = data if own['kind'] == 2 else b''
        seal = hmac.new(mine, head + covered, hashlib.sha256).digest()
    else:
        seal = struct.pack('<Q24x', xxh3(head))
    return data + head + seal + b'TTVMTR1\n'


class Cable:
    """The other end of a -netdev stream."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20 * SLOW)
        # QMP may answer before QEMU makes its netdevs.
        wait_until(lambda: self.sock.connect_ex(path) == 0, 'the netdev listens')

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.sock.close()

    def send(self, frame):
        self.sock.sendall(struct.pack('>I', len(frame)) + frame)


def hostile_frames(rng, data, key):
    """Frames with a wrong trailer; none of them may be delivered."""
    right = sealed(data, 1000, key)
    for _ in range(60):                         # any bit of a right one
        text = bytearray(right)
        # Without its magics it would be a frame from outside.
        at = rng.choice([i for i in range(len(right) - 8) if not 60 <= i < 64])
        text[at] ^= 1 << rng.randrange(8)
        yield bytes(text)
    yield sealed(data, 1001, b'another key of 16')
    yield sealed(data, 1002, None if key else b'sixteen bytes and more')
    yield sealed(data, 1003, key, group=GROUP + '-2')
    for wrong in ({'epoch': 1000001}, {'len': 59}, {'len': 0}, {'digest': 7}, {'kind': 9},
                  {'kind': 4, 'flags': 1, 'pos': 7}, {'kind': 1, 'len': 0}, {'flags': 6},
                  {'zero': 1}, {'flags': 1}, {'pos': 7}, {'kind': 3, 'len': 0,
                                                        'epoch': 1 << 31}):
        yield sealed(data, 1004, key, **wrong)
    yield right[:TRAILER + 8] + right           # two, the first cut off


def hostile(work, key, options):
    path = os.path.join(work, 'sock')
    rng = seed()
    vm = recorder(work, [*MACHINE, *netdevs(stream(path, True)), *filtered(options),
                         *card(1, 'rtl8139')], 'rec', qmp=1)
    right, n_hostile = [], 0
    with vm:
        check(vm.qmp, 'it runs')
        with Cable(path) as c:
            for i in range(20):                 # from outside: with no trailer, or half
                c.send(rng.randbytes(60 + i))
                c.send(sealed(rng.randbytes(60), i, key)[:-1 - i])
            for frame in hostile_frames(rng, rng.randbytes(60), key):
                c.send(frame)
                n_hostile += 1
            for seq in range(1, 40, 3):         # seen before: once each
                right.append(seq)
                for _ in range(1 + rng.randrange(3)):
                    c.send(sealed(rng.randbytes(60), seq, key))
            wait_until(lambda: delivered(vm) >= len(right), 'the right frames')
            vm.qmp.cmd('object-del', id='f0')
            vm.qmp.cmd('object-add', qom_type='filter-tt', id='f1', netdev='net0',
                       group=GROUP, **({'key-file': f'{work}/key'} if key else {}))
            c.send(sealed(rng.randbytes(60), 51, key))
            right.append(51)
            wait_until(lambda: delivered(vm) >= len(right), 'the frame of the new filter')
        vm.qmp.send('quit')
        vm.wait(0)
    equal([seq for _, _, seq, _, _ in read_frames(vm.run)[1]], right, 'frames delivered')
    lines = [line for line in vm.stderr.splitlines() if 'filter-tt' in line]
    check(0 < len(lines) < 4 + 40 * SLOW, f'{len(lines)} sentences: {vm.stderr[-900:]}')
    check('is dropped' in lines[0], lines[0])
    check_exact(work, vm.run, serial_wanted=vm.serial)


def bare(vm):
    """Of each frame without a trailer: was it from the address of a member?"""
    return [int(ev['val'], 16) for what, ev in frame_notes(vm.run) if what == 7]


def delivered(vm):
    return len(read_frames(vm.run)[1])


@limit(60)
def test_cut(work):
    """A member whose frames come without their trailer: a sentence says so. Frames of others
    are nobody's business."""
    path = os.path.join(work, 'sock')
    with Vm(work, [*MACHINE, *netdevs(stream(path, True)), *filtered(),
                   *card(1, 'rtl8139')], qmp=1) as vm:
        check(vm.qmp, 'it runs')
        member, other = b'\xff' * 6 + b'member', b'\xff' * 6 + b'other.'
        with Cable(path) as c:
            c.send(other + bytes(48))
            c.send(sealed(member + bytes(48)))
            c.send(other + bytes(48))
            c.send(sealed(other + bytes(48)))           # number 0 again
            wait_until(lambda: 'seen before' in vm.stderr, 'a sentence on the number')
            check('without its trailer' not in vm.stderr, vm.stderr)
        vm.qmp.send('quit')
        vm.wait(0)
    os.makedirs(os.path.join(work, 'group'))
    with recorder(work, [*MACHINE, *netdevs(stream(path, True)), *filtered(),
                         *card(1, 'rtl8139')], 'group/vm', qmp=1) as vm:
        wait_until(lambda: vm.qmp.cmd('query-tt')['position'] > 0, 'that it runs')
        with Cable(path) as c:
            c.send(other + bytes(48))
            c.send(sealed(member + bytes(48)))
            c.send(member + bytes(48))
            c.send(member + bytes(4))
            wait_until(lambda: 'without its trailer' in vm.stderr, 'a sentence on the cut')
            check('its filter-tt was taken away, or something' in vm.stderr, vm.stderr)
            wait_until(lambda: bare(vm) == [0, 1, 1], 'the frames from outside')
        vm.qmp.send('quit')
        vm.wait(0)
    info = json.loads(tt('group', 'info', f'{work}/group', '--json').stdout)['members'][0]
    equal((info['got'], info['outside']), (1, 4), 'frames, and those from outside')
    said = tt('group', 'check', f'{work}/group', rc=1).stderr
    check('vm received 2 frames without a trailer from the MAC address of a member' in said,
          said)
    check_exact(work, vm.run, serial_wanted=vm.serial)


@limit(100)
def test_hostile(work):
    """Damaged, foreign, repeated and cut trailers: what is right is delivered once, all with
    a wrong trailer is dropped, in few sentences."""
    hostile(work, None, '')


@limit(100)
def test_hostile_key(work):
    """The same at a filter with a key, which nobody without it can deliver to."""
    key_of(work)
    hostile(work, b'sixteen bytes and more', f',key-file={work}/key')


@limit(60)
def test_blocked(work):
    """A NIC that nobody drives takes no frames: they wait, up to a limit, and the filter can
    be taken away and given back."""
    path = os.path.join(work, 'sock')
    with Vm(work, [*MACHINE, *netdevs(stream(path, True)), *filtered(), *card(1)],
            qmp=1) as vm:
        check(vm.qmp, 'it runs')
        with Cable(path) as c:
            for i in range(3000):
                c.send(sealed(b'x' * 60, i))
            wait_until(lambda: 'are waiting' in vm.stderr, 'a sentence on the limit')
            vm.qmp.cmd('object-del', id='f0')
            vm.qmp.cmd('object-add', qom_type='filter-tt', id='f1', netdev='net0',
                       group=GROUP)
            c.send(sealed(b'x' * 60, 9000))
        vm.qmp.send('quit')
        vm.wait(0)


@limit(100)
def test_waits(work):
    """What came before the peer went away is delivered when the VM goes on; a checkpoint of
    the group that is announced while the past is shown is made afterwards."""
    path = os.path.join(work, 'sock')
    vm = recorder(work, [*guest_args(work, 'torture', 'rounds=1000000 percent=30'),
                         *netdevs(stream(path, True)), *filtered(), *card(1, 'rtl8139')],
                  'rec', qmp=1, timeout=90)
    with vm:
        vm.wait_serial('\n')
        vm.qmp.cmd('stop')
        with Cable(path) as c:
            for seq in range(3):
                c.send(sealed(b'x' * 60, seq))
            time.sleep(1)                       # they are in
        equal(delivered(vm), 0, 'frames, while it stands still')
        vm.qmp.cmd('cont')
        wait_until(lambda: delivered(vm) == 3, 'the frames of the peer that is gone')
        vm.qmp.cmd('tt-goto', 60, position=vm.qmp.cmd('query-tt')['position'] // 2)
        with Cable(path) as c:
            c.send(sealed(bytes(60), 0, kind=3, len=0, digest=0, epoch=1, pos=NO_POSITION))
            time.sleep(1)
            vm.qmp.cmd('tt-goto', 60, where='end')
            vm.qmp.cmd('cont')
            wait_until(lambda: any(p['full'] for p in vm.qmp.cmd('query-tt-checkpoints')),
                       'the checkpoint that was announced in the past', 60)
        vm.qmp.send('quit')
        vm.wait(0)
    check_exact(work, vm.run, serial_wanted=vm.serial, timeout=90)


@limit(100)
def test_refused(work):
    """Wrong options are one sentence each. A replay has no netdevs, and so no filters."""
    user = ['-netdev', 'user,id=net0']
    for args, why in (([*user, '-object', 'filter-tt,id=f0,netdev=net0'],
                       "'group' is missing"),
                      ([*user, '-object', 'filter-tt,id=f0,netdev=net0,group=a b'],
                       'name of a group'),
                      ([*user, '-object', 'filter-tt,id=f0,netdev=no,group=g'], 'netdev'),
                      ([*user, *filtered(f',key-file={work}/none')], 'cannot be read'),
                      ([*user, *filtered(), '-object', 'filter-tt,id=f1,netdev=net0,group=h'],
                       'is in a group already'),
                      ([*user, *filtered(',queue=rx')], 'all frames'),
                      ([*user, *filtered(',status=off')], 'all frames'),
                      ([*user, '-netdev', 'hubport,id=h,hubid=0,netdev=net0', *filtered()],
                       'the hubport of the NIC'),
                      (['-netdev', f'tt,id=net0,group=g,listen={work}/a', *filtered()],
                       'is in a group already')):
        with Vm(work, [*MACHINE, *args]) as vm:
            vm.wait(1)
        said = one_sentence(vm, str(args))
        check(why in said, f'{args}: {said}')
    vm = recorder(work, [*MACHINE, *user, *filtered(), *card(1)], qmp=1)
    with vm:
        wait_until(lambda: vm.qmp.cmd('query-tt')['position'] > 0, 'that it runs')
        vm.qmp.send('quit')
        vm.wait(0)
    check_exact(work, vm.run, serial_wanted=vm.serial)
    with replayer(work, vm.run, filtered(), 'filtered') as rep:
        rep.wait(1)
    check('netdev' in one_sentence(rep, 'a filter in a replay'), rep.stderr)


# A tap: with offloads, and through the host's kernel


@contextlib.contextmanager
def bridge(taps):
    """A network namespace in which these taps are ports of a bridge. Yields the command that
    enters it."""
    with subprocess.Popen(['unshare', '-n', 'sh', '-c', 'echo made; exec sleep 900'],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as holder:
        try:
            if not holder.stdout.readline():
                raise Skip('no network namespace can be made here')
            enter = ['nsenter', '-t', str(holder.pid), '-n']
            # With these the host cuts an IP packet to its own length.
            script = 'for f in /proc/sys/net/bridge/bridge-nf-call-*; do echo 0 > $f; done; ' \
                'ip link add br0 type bridge && ip link set br0 mtu 1700 up'
            for tap in taps:
                script += f' && ip tuntap add {tap} mode tap && ip link set {tap} ' \
                    'mtu 1700 master br0 up'
            if subprocess.run([*enter, 'sh', '-c', script], stderr=subprocess.DEVNULL,
                              check=False).returncode:
                raise Skip('no tap can be made here')
            yield enter
        finally:
            holder.terminate()


@limit(400)
def test_tap(work):
    """Two recorded Linux guests over -netdev tap and a bridge of the host: the filter has
    turned the offloads of the tap off."""
    def tap(name):
        return f'tap,id=net0,ifname={name},script=no,downscript=no'

    os.makedirs(os.path.join(work, 'group'))
    with bridge(['tap1', 'tap2']) as enter:
        s = recorder(work, server_guest(work) + netdevs(tap('tap1')) + filtered() + card(1),
                     'group/server', timeout=350)
        c = recorder(work, client_guest(work) + netdevs(tap('tap2')) + filtered() + card(2),
                     'group/client2', timeout=350)
        for vm in s, c:
            vm.args[:0] = enter
        with s, c:
            c.wait(0)
            s.wait(0)
    check_consoles(s.serial, c.serial)
    check_group(work, [s, c], 20)
    nothing_missing(c.run, s.run)


@limit(60)
def test_tap_late(work):
    """A filter that comes after the NIC has seen the offloads is refused."""
    with bridge(['tap1']) as enter:
        vm = Vm(work, [*MACHINE, '-netdev', 'tap,id=net0,ifname=tap1,script=no,downscript=no',
                       *card(1)], qmp=1)
        vm.args[:0] = enter
        with vm:
            said = vm.qmp.hmp(f'object_add filter-tt,id=f0,netdev=net0,group={GROUP}')
            check('on the command line' in said, said)
            vm.qmp.send('quit')
            vm.wait(0)
