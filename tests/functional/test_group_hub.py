# SPDX-License-Identifier: GPL-2.0-or-later
"""What a hub, a netdev and tt group live --exact stand: logs that nobody reads, others who
begin at the same address, keys from odd files, strangers at the door."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess

from group_peer import (HEAD, HELLO, INCIDENT, MAC, READY, Peer, frame_of, message,
                        no_time)
from guests import guest_args
from strangers import EPOCH, Member
from test_group import (KEY, TO_ALL, connected_from, free_port, hub, key_file,
                        kinds_to_frame, stop_process, stranger, two_members,
                        without_first)
from test_group_live import CONSOLE, group_points, quit_all
from ttlib import (BUILD, MACHINE, REPO, SLOW, Skip, TestFailure, Vm, check, equal, limit,
                   one_sentence, read_bytes, recorder, run_tool, tool, tt, wait_until)


def pass_on(p, q, first, n):
    """Frames from one to the other, none of which is lost."""
    for i in range(first, first + n):
        p.send(frame_of(TO_ALL, i + 1, seq=i))
        equal(q.frame()[0], i, 'the frame')


@limit(100)
def test_log_fifo(work):
    """A log that nobody reads: the hub forwards, says once that lines are lost, and keeps some
    of them. Who reads at last learns how many."""
    fifo, n = os.path.join(work, 'fifo'), 9000
    os.mkfifo(fifo)
    with hub(work, '--log', fifo, '--once') as path, two_members(path) as (p, q):
        pass_on(p, q, 0, n)
        said = read_bytes(f'{path}.stderr').decode()
        check('the log is behind' in one_sentence(said, 'the hub'), said)
        got = b''
        with open(fifo, 'rb', buffering=0) as log:
            while len(got) < 3 << 18:       # then there is room for more of WAITING_MAX
                got += log.read(1 << 16)
            pass_on(p, q, n, 1)
            while not re.search(b'"sequence": %d,.*\n' % n, got):
                got += log.read(1 << 16)
    lines = without_first(got.splitlines())
    lost = [line for line in lines if 'lines_lost' in line]
    equal([lines.index(line) for line in lost], [len(lines) - 2], 'where lines are lost')
    equal(len(lines) - 1 + lost[0]['lines_lost'], n + 1, 'lines')
    equal([line['sequence'] for line in lines[:-2]], list(range(len(lines) - 2)), 'lines')
    check('lines of the log were lost' in read_bytes(f'{path}.stderr').decode(), 'the end')


@limit(60)
def test_log_stdout(work):
    """The same of its own output, into a pipe: it forwards, and ends when it is told to."""
    path = os.path.join(work, 'hub')
    with open(f'{path}.stderr', 'wb') as err, \
            subprocess.Popen([tool('tt'), 'hub', '--group', 'g', '--listen', path, '--log',
                              '/dev/stdout', '--seconds', '600'], stdout=subprocess.PIPE,
                             stderr=err) as process:
        try:
            with two_members(path) as (p, q):       # once it listens
                pass_on(p, q, 0, 800)
            process.terminate()
            equal(process.wait(20 * SLOW), 1, 'its end')
        finally:
            process.kill()
    said = read_bytes(f'{path}.stderr').decode()
    check('lines of the log were lost' in one_sentence(said, 'the hub'), said)


@limit(60)
def test_log_into_output(work):
    """Output and log in one file: neither overwrites the other."""
    path, out = os.path.join(work, 'hub'), os.path.join(work, 'out')
    with open(out, 'wb') as file, \
            subprocess.Popen([tool('tt'), 'hub', '--group', 'g', '--listen', path, '--log',
                              '/dev/stdout', '--once'], stdout=file) as process:
        try:
            wait_until(lambda: b'ready' in read_bytes(out), 'the hub is ready')
            with two_members(path) as (p, q):
                pass_on(p, q, 0, 2)
            equal(process.wait(20 * SLOW), 0, 'its end')
        finally:
            process.kill()
    lines = read_bytes(out).decode().splitlines()
    equal([lines[0].split()[0], lines[1], lines[5].split()[0], len(lines)],
          ['listening', 'the hub is ready', '3', 6], 'the output')
    equal([f['sequence'] for f in without_first(lines[2:5])], [0, 1], 'the log')


@limit(60)
def test_unread_sentences(work):
    """Nobody reads what the hub says: it forwards all the same."""
    path = os.path.join(work, 'hub')
    read, write = os.pipe()
    os.set_blocking(write, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write, b'x' * 4096)
    os.set_blocking(write, True)
    with subprocess.Popen([tool('tt'), 'hub', '--group', 'g', '--listen', path, '--once'],
                          stdout=subprocess.PIPE, stderr=write) as process:
        try:
            check(b'listening' in process.stdout.readline(), 'the hub listens')
            with Peer(path) as mad:
                mad.send(bytes(300))
                check(mad.is_closed(), 'noise is not left')
            with two_members(path) as (p, q):
                pass_on(p, q, 0, 3)
            equal(process.wait(20 * SLOW), 0, 'its end')
        finally:
            process.kill()
    os.close(read)
    os.close(write)


# Two who begin at one address

def slow_listen(work):
    library = os.path.join(work, 'slow_listen.so')
    run_tool('gcc', '-shared', '-fPIC', '-o', library,
             os.path.join(REPO, 'tests/functional/slow_listen.c'), '-ldl')
    return {**os.environ, 'LD_PRELOAD': library}


@contextlib.contextmanager
def slow_hub(work, path):
    """A hub that refuses connections for a second after it has taken the place of a socket
    that was left."""
    with socket.socket(socket.AF_UNIX) as left:         # so that its number is not used again
        left.bind(path)
        before = os.stat(path).st_ino
        with subprocess.Popen([tool('tt'), 'hub', '--group', 'g', '--listen', path,
                               '--seconds', '600'], stdout=subprocess.PIPE,
                              env=slow_listen(work)) as process:
            try:
                wait_until(lambda: os.path.exists(path) and os.stat(path).st_ino != before,
                           'it has its socket')
                yield process
            finally:
                process.terminate()
                process.wait(20 * SLOW)


@limit(100)
def test_two_at_once(work):
    """Somebody is about to listen, and refuses connections yet: his socket is not that of one
    who is gone, neither to a hub nor to a VM."""
    path = os.path.join(work, 'sock')
    with slow_hub(work, path) as slow:
        with subprocess.Popen([tool('tt'), 'hub', '--group', 'g', '--listen', path,
                               '--seconds', '3'], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True) as second, \
                Vm(work, [*MACHINE, '-netdev', f'tt,id=n,group=g,listen={path}']) as vm:
            _, said = second.communicate(timeout=30 * SLOW)
            equal(second.returncode, 1, f'a second hub: {said}')
            vm.wait(1)
        for text in (said, vm.stderr):
            check('in use' in one_sentence(text, 'who came second'), text)
        check(b'listening' in slow.stdout.readline(), 'the first one listens')
        with two_members(path) as (p, q):
            pass_on(p, q, 0, 2)
    check(not os.path.exists(path), 'its socket is left')


@limit(60)
def test_leaves_others(work):
    """A hub whose socket was removed, and replaced by another's, lets that one be; a VM,
    too."""
    with hub(work) as path:
        os.unlink(path)
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(path)
            other.listen()
            tt('hub', '--group', 'g', '--listen', path, rc=1)
    check(os.path.exists(path), 'the socket of the other')
    sock = os.path.join(work, 'sock')
    with Vm(work, [*MACHINE, '-netdev', f'tt,id=n,group=g,listen={sock}'], qmp=1) as vm:
        wait_until(lambda: 'listening' in vm.qmp.hmp('info network'), 'it listens')
        os.unlink(sock)
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(sock)
            vm.qmp.send('quit')
            vm.wait(0)
    check(os.path.exists(sock), 'the socket of the other')


# Keys

@limit(60)
def test_wrong_key_is_told(work):
    """Whoever has another key hears READY, and so of it, also if he says all at once; and a VM
    says it once."""
    with hub(work, '--key-file', key_file(work)) as path:
        with Peer(path, KEY[::-1]) as p:
            hello = struct.pack('<8sII16s64s', b'TTVMNET\n', 2, 1, p.nonce, b'g')
            p.send(hello + message(READY, 0) + bytes(32))
            p.take(HELLO)
            equal(p.take(HEAD + MAC)[4], READY, 'what it says')
        other = os.path.join(work, 'other')
        with open(other, 'wb') as out:
            out.write(KEY[::-1])
        os.chmod(other, 0o600)
        with Vm(work, [*MACHINE, '-netdev',
                       f'tt,id=n,group=g,connect={path},key-file={other}'], qmp=1) as vm:
            wait_until(lambda: 'has another key' in vm.stderr, 'the VM hears it')
            wait_until(lambda: 'more like this' in read_bytes(f'{path}.stderr').decode(),
                       'the hub sums up')
            equal(vm.stderr.count('another key'), 1, f'sentences: {vm.stderr}')
            vm.qmp.send('quit')
            vm.wait(0)
    with Vm(work, [*MACHINE, '-netdev', f'tt,id=n,group=g,listen={work}/a'], qmp=1) as vm, \
            contextlib.ExitStack() as peers:
        wait_until(lambda: 'listening' in vm.qmp.hmp('info network'), 'it listens')
        one = peers.enter_context(Peer(f'{work}/a'))
        one.hello()
        one.ready()
        wait_until(lambda: 'connected' in vm.qmp.hmp('info network'), 'it has a peer')
        two = peers.enter_context(Peer(f'{work}/a'))
        two.take(HELLO)
        equal(struct.unpack('<4sBBHII16sQQQQ', two.take(HEAD))[1::7], (5, 1), 'why not')
        vm.qmp.send('quit')
        vm.wait(0)


@limit(100)
def test_odd_keys(work):
    """The key in something that is no file, or not one of a key: one sentence, at once."""
    fifo, empty, huge, same, public = (os.path.join(work, n) for n in
                                       ('fifo', 'empty', 'huge', 'same', 'public'))
    os.mkfifo(fifo)
    for name, size in ((empty, 0), (huge, 10 << 30)):
        with open(name, 'wb') as out:
            out.truncate(size)
    for name in same, public:
        with open(name, 'wb') as out:
            out.write(KEY if name == public else b'\n' * 20)
    os.chmod(public, 0o644)
    said = tt('hub', '--group', 'g', '--listen', ':0', '--key-file', public, '--seconds',
              '1').stderr
    check('everybody on this host can read' in one_sentence(said, 'the hub'), said)
    with Vm(work, [*MACHINE, '-S', '-netdev', f'tt,id=n,group=g,listen=:0,key-file={public}',
                   '-netdev', f'tt,id=m,group=g,listen=:0,key-file={public}'], qmp=1) as vm:
        vm.qmp.send('quit')
        vm.wait(0)
    equal(vm.stderr.count('everybody on this host can read'), 1, vm.stderr)
    said = tt('hub', '--group', 'g', '--listen', '0.0.0.0:0', rc=1).stderr
    check('only loopback addresses' in one_sentence(said, 'no key'), said)
    for where, why in ((same, 'is no key'), ('/dev/zero', 'not a regular file'),
                       (fifo, 'not a regular file'), (work, 'not a regular file'),
                       (empty, 'has 0'), (huge, 'has more')):
        said = tt('hub', '--group', 'g', '--listen', ':0', '--key-file', where, rc=1,
                  timeout=10).stderr
        check(why in one_sentence(said, where), said)
        for args in (['-netdev', f'tt,id=n,group=g,listen=:0,key-file={where}'],
                     ['-netdev', 'user,id=n', '-object',
                      f'filter-tt,id=f,netdev=n,group=g,key-file={where}']):
            with Vm(work, [*MACHINE, *args]) as vm:
                vm.wait(1)
            check(why in one_sentence(vm, where), f'{args}: {vm.stderr}')


# The door of tt group live --exact

@contextlib.contextmanager
def link_end(*args):
    end = os.path.join(BUILD, 'cores', 'tests', 'tool', 'tt-link-end')
    if not os.path.exists(end):
        raise Skip('the cores are not built: scripts/test cores')
    with subprocess.Popen([end, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        try:
            equal(process.stdout.readline(), 'listening\n', 'it listens')
            yield process
        finally:
            process.terminate()


@limit(60)
def test_exact_door(work):
    """Strangers who say nothing, more than there is room for, and such with another key: the
    right one comes in beside them, and when it has gone the next one."""
    path = os.path.join(work, 'sock')
    with link_end(path, key_file(work)) as process, contextlib.ExitStack() as silent:
        crowd = [silent.enter_context(Peer(path)) for _ in range(10)]
        with Peer(path, KEY[::-1]) as wrong:
            wrong.hello()
            with contextlib.suppress(TestFailure, ConnectionError):
                wrong.ready()
            check(wrong.is_closed(), 'another key is let in')
        check(crowd[0].take(96), 'it says hello to each')
        for _ in range(2):
            with Peer(path, KEY) as p:
                p.hello()
                check(p.ready(), 'it has another key')
                equal(process.stdout.readline(), 'open\n', 'what it says')
                with Peer(path, KEY) as second:
                    check(second.is_closed(), 'two are let in')
                equal(p.frame()[1][:6], b'\xff' * 6, 'a frame')
            equal(process.stdout.readline(), 'closed\n', 'what it says')
        crowd += [silent.enter_context(Peer(path)) for _ in range(60)]
        check(crowd[0].is_closed(), 'the oldest does not give way')
        with Peer(path, KEY) as p:
            p.hello()
            check(p.ready(), 'it has another key')
            equal(process.stdout.readline(), 'open\n', 'what it says')
        check(crowd[-1].is_closed(), 'who says nothing is not left')


@limit(60)
def test_exact_takes_next(work):
    """A member has gone, and its successor is there when this side looks: it is let in."""
    path = os.path.join(work, 'sock')
    with link_end(path) as process, Peer(path) as first:
        first.hello()
        first.ready()
        equal(process.stdout.readline(), 'open\n', 'what it says')
        stop_process(process.pid)
        with Peer(path) as second:
            second.hello()
            first.sock.close()
            os.kill(process.pid, signal.SIGCONT)
            check(second.ready(), 'it is let in')
            second.frame()


# Numbers and rates

def places_of(process):
    places = []
    while (line := process.stdout.readline()).startswith('listening'):
        places.append(line.split()[-1])
    if not line:
        said = process.stderr.read()
        if 'unshare' in said or 'RTNETLINK' in said:
            raise Skip('no network namespace can be made here')
        raise AssertionError(said)
    return places


@limit(60)
def test_any_number(work):
    """All numbers of IPv6 are those of IPv4, too; after these a hub takes them for IPv6
    only."""
    key = f'--key-file={key_file(work)}'
    for listen, wanted in ((['[::]:7000', '0.0.0.0:7000', '127.0.0.1:7000'], ['[::]:7000']),
                           (['127.0.0.1:7000', '[::]:7000', '[::1]:7000'],
                            ['127.0.0.1:7000', '[::]:7000']),
                           (['0.0.0.0:7000', '[::]:7000'], ['0.0.0.0:7000', '[::]:7000'])):
        script = 'ip link set lo up && exec "$0" "$@"'
        with subprocess.Popen(['unshare', '-n', 'sh', '-c', script, tool('tt'), 'hub',
                               '--group', 'g', '--seconds', '600', key,
                               *(f'--listen={at}' for at in listen)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as process:
            try:
                equal(places_of(process), wanted, f'{listen}')
                with Peer(connected_from(process.pid, ('127.0.0.1', 7000)), KEY) as p:
                    p.hello()
                    check(p.ready(), 'the hub has another key')
            finally:
                process.terminate()
            equal(process.communicate(timeout=20 * SLOW)[1], '', f'{listen}: what is said')


@limit(60)
def test_rates(work):
    """A rate that is too low is refused, and not taken for none."""
    for rate in ('0.0000001', '0.0000009', '0.0009'):
        said = tt('hub', '--group', 'g', '--listen', f'{work}/s', '--rate', rate, rc=2).stderr
        check('at least 0.001' in said, f'{rate}: {said}')
    said = tt('hub', '--group', 'g', '--listen', f'127.0.0.1:{free_port()}', '--rate', '0',
              '--seconds', '1').stdout
    check(re.search('listening at', said), said)


@limit(60)
def test_incidents_of_two(work):
    """One member reports incidents without end: those of another one come through."""
    with hub(work) as path, Member(path).join() as busy, Member(path) as mad, \
            Member(path) as honest:
        for peer in (mad, honest):
            peer.join()
        busy.send(busy.framed(TO_ALL))
        for i in range(100):
            mad.send(mad.incident(b'mark', b'w' * 20, seq=i, run=os.urandom(16)))
        mad.send(mad.framed(TO_ALL, seq=7))
        equal(kinds_to_frame(busy), [INCIDENT] * 5 + [2], 'what the mad one may say')
        honest.send(honest.incident(b'mine', b'w' * 20) + honest.framed(TO_ALL, seq=8))
        equal(kinds_to_frame(busy), [INCIDENT, 2], 'what the honest one says')


@limit(60)
def test_port_chosen(work):
    """A netdev that listens at port 0 says which one it has, in each way."""
    for at in '127.0.0.1', 'localhost':
        with Vm(work, [*MACHINE, '-S', '-netdev', f'tt,id=net0,group=g,listen={at}:0'],
                qmp=1) as vm:
            about = vm.qmp.cmd('query-tt-netdevs')
            where = about[0]['address']
            port = int(re.search(r'127\.0\.0\.1:(\d+)', where)[1])
            equal(about, [{'id': 'net0', 'group': 'g', 'address': where, 'listens': True,
                           'state': 'listening'}], 'the netdev')
            with Peer(port) as p:
                p.hello()
                p.ready()
                wait_until(lambda: f'listen={where}, connected' in
                           vm.qmp.hmp('info network'), 'info network')
            check(f'netdev tt net0: listening at {where}' in vm.stderr, vm.stderr)
            vm.qmp.send('quit')
            vm.wait(0)


@limit(60)
def test_options(work):
    """What a hub cannot do with its options it says, with what would be right."""
    where = ['--group', 'g', '--listen', os.path.join(work, 'hub'), '--seconds', '1']
    for more, why in ((['--queue', '50'], 'give --rate, too'),
                      (['--queue', '50', '--rate', '0'], 'give --rate, too'),
                      (['--seed', '18446744073709551616'], 'from 0 to 18446744073709551615'),
                      (['--members', '257'], 'up to 256'),
                      (['--delay', '0x10'], 'a number from 0 to 60000'),
                      (['--seed', '-1'], 'from 0 to 18446744073709551615')):
        said = tt('hub', *where, *more, rc=2).stderr
        check(why in said.splitlines()[0], f'{more}: {said}')
    tt('hub', *where, '--queue', '50', '--rate', '1', '--seed', '18446744073709551615')


@limit(60)
def test_members(work):
    """A hub for two members lets in no third, until one of them has left; whoever only stands
    at the door keeps nobody out."""
    with hub(work, '--members', '2') as path, stranger(path), two_members(path) as (p, q):
        with Peer(path) as third:
            third.hello()
            third.take(HELLO)
            equal(struct.unpack('<4sBBHII16sQQQQ', third.take(HEAD))[1::7], (5, 2), 'why not')
            check(third.is_closed(), 'a third one')
        with Vm(work, [*MACHINE, '-netdev', f'tt,id=n,group=g,connect={path}'], qmp=1) as vm:
            wait_until(lambda: 'has all its members' in vm.stderr, 'a VM hears why')
            # It tries again each second.
            wait_until(lambda: read_bytes(f'{path}.stderr').count(b'is refused') > 1,
                       'the hub says it again')
            equal(vm.stderr.count('not connected'), 1, f'sentences: {vm.stderr}')
            check('refused' in vm.qmp.hmp('info network'), 'its state')
            vm.qmp.send('quit')
            vm.wait(0)
        pass_on(p, q, 0, 3)
        q.sock.close()

        p.sock.settimeout(2)

        def is_heard():                 # not if the hub has yet to see that one has left
            with contextlib.suppress(OSError, TestFailure), Member(path).join() as another:
                another.send(another.framed(TO_ALL, seq=9, run=b'a' * 16))
                return p.frame()[0] == 9
            return False
        wait_until(is_heard, 'another one is let in')
    said = read_bytes(f'{path}.stderr').decode()
    check('the hub has its 2 members' in said, said)


@limit(60)
def test_checkpoints_in_one_read(work):
    """Several checkpoints of the group that come at once are passed on one by one, in their
    order with the frames; of very many, ten and the last."""
    with hub(work) as path, Member(path).join() as p, Member(path) as q:
        q.join()
        q.send(q.framed(TO_ALL, seq=0))
        equal(kinds_to_frame(p), [2], 'both are members')
        q.send(b''.join(q.epoch(number) for number in (1, 2, 3)) + q.framed(TO_ALL, seq=1) +
               q.epoch(4) + q.framed(TO_ALL, seq=2))
        equal(kinds_to_frame(p), [EPOCH] * 3 + [2], 'three checkpoints')
        equal(kinds_to_frame(p), [EPOCH, 2], 'the fourth')
        q.send(b''.join(q.epoch(number) for number in range(5, 1000)) +
               q.framed(TO_ALL, seq=3))
        kinds = kinds_to_frame(p)
        check(7 <= len(kinds) < 40, f'of very many: {kinds}')
        with Member(path).join() as late:
            late.send(late.framed(TO_ALL))
            kinds_to_frame(p)
            q.send(q.framed(TO_ALL, seq=4))
            equal(kinds_to_frame(late), [EPOCH, 2], 'what one hears who comes later')


@limit(60)
def test_few_descriptors(work):
    """A hub that may open only some files: strangers who say nothing give way to members."""
    path = os.path.join(work, 'hub')
    with open(f'{path}.stderr', 'wb') as err, \
            subprocess.Popen(['sh', '-c', 'ulimit -n 40; exec "$0" "$@"', tool('tt'), 'hub',
                              '--group', 'g', '--listen', path, '--seconds', '600'],
                             stdout=subprocess.PIPE, stderr=err) as process, \
            contextlib.ExitStack() as silent:
        try:
            check(b'listening' in process.stdout.readline(), 'the hub listens')
            for _ in range(120):
                silent.enter_context(wait_until(lambda: stranger(path), 'there is room'))
            with two_members(path) as (p, q):
                pass_on(p, q, 0, 3)
        finally:
            process.terminate()


# Where members meet, by other names

def recorded_pair(work, folder, first, second):
    """Two VMs of a group, with one checkpoint; the options of their netdevs."""
    with contextlib.ExitStack() as running:
        vms = {}
        for name, options in (('a', first), ('b', second)):
            args = [*guest_args(work, 'torture', 'rounds=1000000 percent=30'), '-netdev',
                    f'tt,id=net0,group=g,{options}', '-device',
                    'virtio-net-pci,netdev=net0,romfile=']
            vms[name] = running.enter_context(recorder(work, args, f'{folder}/{name}', qmp=1,
                                                       timeout=90))
        for vm in vms.values():
            wait_until(lambda vm=vm: 'connected' in vm.qmp.hmp('info network'),
                       'it is connected')
            vm.wait_serial('\n')            # the recording has begun
        vms['a'].qmp.hmp('tt checkpoint add -g', 60)
        path = os.path.join(work, folder)
        wait_until(lambda: [sorted(p['members']) for p in group_points(path)] == [['a', 'b']],
                   'the checkpoint', 60)
        quit_all(vms)
    return path


def live_commands(work, folder, rc):
    done = tt('group', 'live', folder, '--to', f'{work}/none', '--hub', '', '--print',
              *CONSOLE, 'null', rc=rc)
    return done.stdout + done.stderr


@limit(100)
def test_other_names(work):
    """A member connects by another name to where the other one listens: no hub is put in its
    place. Two keys are one if they have the same bytes."""
    port, path = free_port(), os.path.join(work, 'sock')
    one, other = key_file(work), os.path.join(work, 'other')
    shutil.copy(one, other)
    for i, (first, second) in enumerate(((f'listen=localhost:{port},key-file={one}',
                                          f'connect=127.0.0.1:{port},key-file={other}'),
                                         (f'listen={path}', f'connect={work}/../'
                                          f'{os.path.basename(work)}/sock'))):
        os.makedirs(os.path.join(work, f'direct{i}'))
        folder = recorded_pair(work, f'direct{i}', first, second)
        said = live_commands(work, folder, 2)
        check('no member connects to a hub' in said, said)
    os.makedirs(os.path.join(work, 'group'))
    with hub(work, '--key-file', one) as path:
        folder = recorded_pair(work, 'group', f'connect={path},key-file={one}',
                               f'connect={work}/./hub,key-file={other}')
    said = live_commands(work, folder, 0)
    equal(said.splitlines()[0].count('--listen'), 1, said)
    hub_has_no_time(work, folder, path)
    with open(other, 'ab') as out:
        out.write(b'!')
    said = one_sentence(live_commands(work, folder, 1), 'two keys')
    check('different keys' in said, said)


def hub_has_no_time(work, folder, path):
    """One who does not take who connects is there all the same."""
    with no_time(path):
        said = one_sentence(tt('group', 'live', folder, '--to', f'{work}/late', rc=1).stderr,
                            'too many')
    check('too many wait at' in said and not os.path.exists(f'{work}/late'), said)
