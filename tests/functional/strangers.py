# SPDX-License-Identifier: GPL-2.0-or-later
"""Hostile and broken peers of a group, at a hub and at the netdevs and the filter of a
recorded VM, while two honest members exchange frames by the hub. What they do follows from
a seed, when they do it does not."""

import contextlib
import ctypes
import hashlib
import hmac
import json
import multiprocessing
import os
import random
import select
import signal
import socket
import struct
import subprocess
import time
import uuid

from group_peer import FRAME, HEAD, HELLO, INCIDENT, MAC, NO_POSITION, READY, Peer, mac_of
from guests import own_args
from ttlib import (MACHINE, SLOW, QmpError, TestFailure, Vm, check, check_exact, equal,
                   read_text, recorder, tool, wait_until)

EPOCH = 3
GROUP = 'g'
KEY = b'sixteen bytes and more'
LONGEST = 69632
EPOCH_MAX = 1000000
FIELDS = ('magic', 'kind', 'flags', 'zero', 'len', 'epoch', 'run', 'pos', 'seq', 'digest',
          'number')
LAYOUT = struct.Struct('<4sBBHII16sQQQQ')
# What the log of the hub may say of a frame that did not arrive.
LOSSES = {'lost', 'queue full', 'hub full', 'peer slow'}
QUIET = 12                              # seconds: a hub on a slow host may stand still
OURS = b'\x88\xb5'                      # Ethernet type: for experiments
HUB_MIB = 700                           # 256 may wait, and 4 for each member that is slow
VISITS_MOST = 2                         # to the past, each of which takes memory
VM_MIB = 800                            # above what it has before: also what QEMU needs

LINUX = '''
for i in 0 1 2 3; do
    ip link set eth$i up
    ip addr add 10.9.$i.1/24 dev eth$i
done
echo TT-SERVES
while :; do
    cat /proc/net/dev
    ping -c 1 -W 1 10.9.0.77
    ping -c 1 -W 1 10.9.3.77
done
'''

libxxhash = ctypes.CDLL('libxxhash.so.0')
libxxhash.XXH3_64bits.restype = ctypes.c_uint64
libxxhash.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def xxh(data):
    return libxxhash.XXH3_64bits(bytes(data), len(data))


# Peers

class Member(Peer):
    """A peer that can keep to the protocol, and need not."""

    def __init__(self, where, key=None, run=None, patience=20 * SLOW):
        super().__init__(where, key)
        self.sock.settimeout(patience)
        self.number, self.run, self.seq = 0, run or os.urandom(16), 0

    def join(self):
        self.hello(GROUP)
        self.ready()
        self.number = 1
        return self

    def sealed(self, kind, data=b'', **changed):
        """A message; with another MAC than the right one if there is 'mac'."""
        mac = changed.pop('mac', None)
        fields = {'magic': b'TTMF', 'kind': kind, 'flags': 0, 'zero': 0, 'len': len(data),
                  'epoch': 0, 'run': self.run, 'pos': NO_POSITION, 'seq': self.seq,
                  'digest': xxh(data) if data else 0, 'number': self.number, **changed}
        self.number += 1
        head = LAYOUT.pack(*(fields[f] for f in FIELDS))
        if self.key:
            head += mac or mac_of(self.out_key, head, data)
        return head + data

    def framed(self, data, **changed):
        self.seq += 1
        return self.sealed(FRAME, data, **changed)

    def epoch(self, number):
        return self.sealed(EPOCH, epoch=number, run=bytes(16), seq=0)

    def incident(self, mark, what, **changed):
        text = bytes([len(mark)]) + mark + what
        return self.sealed(INCIDENT, text, **{'flags': 1, 'pos': 7, **changed})

    def reset(self):
        """RST where there is such a thing."""
        with contextlib.suppress(OSError):
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                 struct.pack('ii', 1, 0))
        self.sock.close()

    def part(self, rng):
        if rng.random() < .4:
            self.reset()
        else:
            self.sock.close()


def ethernet(rng, size, to=b'\xff' * 6):
    """From an address that no honest member has."""
    return to + b'\x02\xbb' + rng.randbytes(4) + OURS + rng.randbytes(size - 14)


# Two honest members, in a process of their own

class Friend(Member):
    def __init__(self, where, key, number):
        super().__init__(where, key, b'friend %d' % number + os.urandom(8), 10 * SLOW)
        self.mac = b'\x02\xaa\0\0\0' + bytes([number])
        self.buffer, self.got, self.closed = bytearray(), {}, ''

    def say(self, other, n):
        to = b'\xff' * 6 if n % 2 else other.mac
        self.seq = n - 1
        self.send_all(self.framed(payload(to, self.mac, n), seq=n))

    def send_all(self, data):
        try:
            self.sock.sendall(data)
        except OSError as error:
            self.closed = self.closed or f'it cannot be sent: {error}'

    def listen(self, other):
        """Takes what has come."""
        try:
            more = self.sock.recv(1 << 20)
        except OSError as error:
            more, self.closed = b'', str(error)
        if not more:
            self.closed = self.closed or 'the hub has closed it'
            return
        buffer, at, before = self.buffer, 0, HEAD + (MAC if self.key else 0)
        buffer += more
        while len(buffer) - at >= before:
            size = struct.unpack_from('<I', buffer, at + 8)[0]
            end = at + before + size
            if len(buffer) < end:
                break
            if buffer[at + 4] == FRAME and buffer[at + 16:at + 32] == other.run:
                seq = struct.unpack_from('<Q', buffer, at + 40)[0]
                data = bytes(buffer[at + before:end])
                if data != payload(data[:6], other.mac, seq):
                    self.closed = f'frame {seq} has other bytes: {data}'
                self.got[seq] = self.got.get(seq, 0) + 1
            at = end
        del buffer[:at]


def payload(to, mac, n):
    return to + mac + OURS + struct.pack('<Q', n) * (1 + n % 10)


def friends(where, key, pipe, arrived):
    """Until something comes by the pipe; what was sent and came goes there."""
    a, b = Friend(where, key, 1).join(), Friend(where, key, 2).join()
    n, due, quiet = 0, time.monotonic(), None
    while quiet is None or time.monotonic() < quiet:
        ready = select.select([a.sock, b.sock, pipe], [], [], 0.02)[0]
        for one, other in ((a, b), (b, a)):
            if one.sock in ready:
                before = len(one.got)
                one.listen(other)
                arrived.value += len(one.got) - before
                if quiet and len(one.got) > before:
                    quiet = time.monotonic() + QUIET
        if a.closed or b.closed:
            break
        if pipe in ready and quiet is None:
            pipe.recv()
            quiet = time.monotonic() + QUIET
        if quiet is None and time.monotonic() >= due:
            n, due = n + 1, time.monotonic() + 0.02
            a.say(b, n)
            b.say(a, n)
        if quiet and len(a.got) == n == len(b.got):
            break
    pipe.send((n, a.closed or b.closed, a.run, a.got, b.run, b.got))
    pipe.recv()                         # the connections stay until then


class Pair:
    def __init__(self, where, key):
        self.pipe, theirs = multiprocessing.Pipe()
        self.arrived = multiprocessing.Value('Q', 0)
        self.process = multiprocessing.Process(
            target=friends, args=(where, key, theirs, self.arrived), daemon=True)
        self.process.start()
        theirs.close()
        self.seen, self.when = 0, time.monotonic()

    def look(self):
        """Frames arrive."""
        now, count = time.monotonic(), self.arrived.value
        if count > self.seen:
            self.seen, self.when = count, now
        if self.pipe.poll() or not self.process.is_alive():
            report = self.pipe.recv()
            raise TestFailure(f'an honest member was left: {report[1]}')
        check(now - self.when < 20 * SLOW, f'no frame of an honest member arrived for '
                                           f'{now - self.when:.0f} s')

    def finish(self, log):
        """Every frame came once, or the log says why not. Returns what is to be told."""
        self.pipe.send(None)
        check(self.pipe.poll(60 * SLOW), 'the honest members do not end')
        n, closed, run_a, got_a, run_b, got_b = self.pipe.recv()
        check(not closed, f'an honest member was left: {closed}')
        fates, ports = {}, {}
        names = {run_a.hex(): run_b.hex(), run_b.hex(): run_a.hex()}
        with open(log, encoding='ascii') as lines:
            for line in lines:
                if any(name in line for name in names):
                    f = json.loads(line)
                    ports[f['run']] = f['from']
                    fates.setdefault((f['run'], f['sequence'], f['to']), []).append(f['fate'])
        lost = {}
        for run, got in ((run_a.hex(), got_b), (run_b.hex(), got_a)):
            to = ports[names[run]]
            for seq in range(1, n + 1):
                count, why = got.get(seq, 0), fates.get((run, seq, to), ['nothing'])
                check(count <= 1, f'frame {seq} came {count} times')
                # Before the hub knows the other's port, or while it is not open, it is not
                # sent there.
                if not count and not (seq < 10 and why == ['nothing']):
                    check(set(why) <= LOSSES, f'frame {seq} of an honest member has not '
                                              f'arrived, and the log says {why}')
                    lost[why[0]] = lost.get(why[0], 0) + 1
        self.close()
        return n, lost

    def close(self):
        with contextlib.suppress(OSError):
            self.pipe.send(None)
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()


# What strangers do at a link. Each gets the world, a peer that is connected, and its chance.

def noise(world, peer, rng):
    """Random bytes instead of a hello."""
    peer.send(rng.randbytes(rng.choice((1, 7, 95, 96, 97, 5000, 200000))))
    if rng.random() < .5:
        peer.is_closed()


def hello_bytes(world, peer, **changed):
    fields = {'magic': b'TTVMNET\n', 'version': 2, 'flags': 1 if world.key else 0,
              'nonce': peer.nonce, 'group': GROUP.encode(), **changed}
    return struct.pack('<8sII16s64s', *fields.values())


def bad_hello(world, peer, rng):
    """A hello with a bit changed, another group, version, flags, or that of the other side."""
    text = bytearray(hello_bytes(world, peer))
    what = rng.randrange(4)
    if what == 0:
        text[rng.randrange(HELLO)] ^= 1 << rng.randrange(8)
    elif what == 1:
        text = hello_bytes(world, peer, version=rng.choice((0, 1, 3, 1 << 31)))
    elif what == 2:
        text = hello_bytes(world, peer, flags=rng.randrange(8), group=rng.randbytes(64))
    else:
        with contextlib.suppress(OSError, TestFailure):
            text = peer.take(HELLO)
    peer.send(bytes(text) + rng.randbytes(rng.choice((0, 64, 5000))))


def half_way(world, peer, rng):
    """A right hello, then noise, or a READY that is changed, cut off or comes twice."""
    peer.hello(GROUP)
    with contextlib.suppress(OSError, TestFailure):
        fields = struct.unpack('<8sII16s64s', peer.take(HELLO))
        peer.out_key = mac_of(peer.key or b'x', peer.nonce, fields[3], b'\0', peer.group)
        ready = bytearray(peer.sealed(READY))
        what = rng.randrange(5)
        if what == 0:
            ready[rng.randrange(len(ready))] ^= 1 << rng.randrange(8)
        elif what == 1:
            ready = rng.randbytes(rng.choice((64, 96, 5000)))
        elif what == 2:
            ready = ready[:rng.randrange(len(ready))]
        elif what == 3:
            ready = ready + ready
        else:
            ready = peer.framed(ethernet(rng, 60))
        peer.send(bytes(ready))
        if rng.random() < .5:
            peer.sock.shutdown(rng.choice((socket.SHUT_RD, socket.SHUT_WR)))


def other_key(world, peer, rng):
    """Another key, or none where there is one."""
    peer.key = rng.choice((None, KEY[::-1], b'0123456789abcdef'))
    peer.hello(GROUP, flags=rng.choice((None, 0, 1)))
    with contextlib.suppress(OSError, TestFailure):
        peer.ready()
        peer.send(peer.framed(ethernet(rng, 60)))


def quiet(world, peer, rng):
    """Says nothing, or half of something, and stays for a while."""
    if rng.random() < .5:
        peer.send(hello_bytes(world, peer)[:rng.randrange(1, HELLO)])
    world.keep(peer, rng.uniform(0, 12))


def changed_message(rng, peer):
    """One message of a member that went mad; most of them end the connection."""
    data = ethernet(rng, rng.choice((14, 60, 60, 1514, LONGEST)))
    what = rng.randrange(12)
    if what == 0:
        text = bytearray(peer.framed(data))
        text[rng.randrange(min(len(text), 160))] ^= 1 << rng.randrange(8)
        return bytes(text)
    if what == 1:
        return peer.framed(data, len=rng.choice((0, 1, 13, len(data) - 1, len(data) + 1,
                                                 LONGEST, LONGEST + 1, 1 << 31,
                                                 (1 << 32) - 1)))
    if what == 2:
        return peer.sealed(rng.randrange(256), rng.choice((b'', data)))
    if what == 3:
        return peer.framed(data, flags=rng.randrange(256), zero=rng.choice((0, 1)))
    if what == 4:
        return peer.framed(data, epoch=rng.choice((EPOCH_MAX + 1, 1 << 31, (1 << 32) - 1)))
    if what == 5:
        return peer.framed(data, pos=rng.getrandbits(64), flags=rng.randrange(2))
    if what == 6:
        return peer.framed(data, seq=(1 << 64) - 1)
    if what == 7:
        return peer.framed(data, number=rng.choice((0, peer.number + 1, 1 << 63)))
    if what == 8:
        return peer.framed(data, digest=rng.getrandbits(64))
    if what == 9:
        return peer.framed(data, mac=rng.randbytes(MAC))
    if what == 10:
        return peer.incident(rng.choice((b'', b'a b', b'x' * 65, b'm')),
                             rng.choice((b'\0', b'x' * 200, b'\x1b[2J\n\r', b'')),
                             **rng.choice(({}, {'flags': 0}, {'pos': NO_POSITION},
                                           {'seq': (1 << 64) - 1})))
    return peer.sealed(READY)


def mad(world, peer, rng):
    """Some right frames, then a message that is changed, then more frames."""
    peer.join()
    for _ in range(rng.randrange(5)):
        peer.send(peer.framed(ethernet(rng, rng.randrange(14, 200))))
    peer.send(changed_message(rng, peer))
    for _ in range(rng.randrange(5)):
        peer.send(peer.framed(ethernet(rng, 60)))


def lies(world, peer, rng):
    """Right messages that say what is not so: sequence numbers, runs, positions; frames of
    others that came before; the receiver's own."""
    peer.join()
    for _ in range(rng.randrange(1, 200)):
        data = ethernet(rng, rng.randrange(14, 300))
        what = rng.randrange(6)
        if what == 0:
            peer.send(peer.framed(data, seq=rng.getrandbits(rng.choice((4, 15, 63)))))
        elif what == 1:
            peer.send(peer.framed(data, run=rng.randbytes(16), seq=rng.getrandbits(63)))
        elif what == 2:
            peer.send(peer.framed(data, run=world.vm_run, seq=rng.randrange(100)))
        elif what == 3:
            peer.send(peer.framed(data, flags=1, pos=rng.getrandbits(63)))
        elif what == 4 and world.old:
            fields, old = rng.choice(world.old)
            peer.send(peer.sealed(FRAME, old, **fields))
        else:
            peer.send(peer.framed(data))


def overhear(world, peer, rng):
    """Joins and keeps what others send, to send it again later; some of it at once."""
    peer.join()
    with contextlib.suppress(OSError, TestFailure):
        for _ in range(rng.randrange(2, 20)):
            fields = LAYOUT.unpack(peer.take(HEAD))
            peer.take(MAC if peer.key else 0)
            data = peer.take(fields[4])
            if fields[1] == FRAME:
                kept = dict(zip(('run', 'pos', 'seq', 'epoch', 'flags'),
                                (fields[6], fields[7], fields[8], fields[5], fields[2])))
                world.old.append((kept, data))
                del world.old[:-200]
                if rng.random() < .5:
                    peer.send(peer.sealed(FRAME, data, **kept))


def incidents(world, peer, rng):
    """One, or far too many."""
    peer.join()
    count = rng.choice((1, 1, 3, 500, 20000))
    text = b''.join(peer.incident(b'm%d' % i, rng.choice((b'', b'what', b'x' * 120)), seq=i,
                                  run=rng.choice((peer.run, world.vm_run)))
                    for i in range(count))
    peer.send(text)


def checkpoints(world, peer, rng):
    """Announces checkpoints that nobody has made, in messages or in frames."""
    peer.join()
    if world.epoch < world.epochs_most:
        for _ in range(rng.randrange(1, 4)):
            world.epoch += 1
            peer.send(peer.epoch(world.epoch) if rng.random() < .5 else
                      peer.framed(ethernet(rng, 60), epoch=world.epoch))
    for _ in range(rng.choice((5, 2000))):
        peer.send(peer.epoch(rng.randrange(world.epoch + 1)))


def flood(world, peer, rng):
    """As many frames as it can, in one piece or byte by byte."""
    peer.join()
    if rng.random() < .2:
        for byte in peer.framed(ethernet(rng, 100)) * 2:
            peer.send(bytes([byte]))
        return
    size = rng.choice((14, 60, 1514, 9000, LONGEST))
    text = b''.join(peer.framed(ethernet(rng, size))
                    for _ in range(rng.choice((100, 2000)) if size < 2000 else 200))
    for _ in range(3):
        peer.send(text)                 # from the second on: out of turn


def deaf(world, peer, rng):
    """A member that reads nothing, and stays."""
    with contextlib.suppress(OSError):
        peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    peer.join()
    peer.send(peer.framed(ethernet(rng, 60)))
    world.keep(peer, rng.uniform(5, 40))


def half_closed(world, peer, rng):
    """A member that shuts down one half."""
    peer.join()
    peer.send(peer.framed(ethernet(rng, 60)))
    with contextlib.suppress(OSError):
        peer.sock.shutdown(rng.choice((socket.SHUT_RD, socket.SHUT_WR)))
    peer.send(peer.framed(ethernet(rng, 60)) * 20)
    world.keep(peer, rng.uniform(0, 5))


def torn(world, peer, rng):
    """A member that goes in the middle of a message."""
    peer.join()
    text = b''.join(peer.framed(ethernet(rng, 500)) for _ in range(20))
    peer.send(text[:rng.randrange(len(text))])
    peer.reset()


AT_LINKS = [noise, bad_hello, half_way, other_key, quiet, mad, mad, mad, lies, overhear,
            incidents, checkpoints, flood, deaf, half_closed, torn]


# Several at once

def crowd(world, target, rng):
    """Many strangers at once; some of them say something."""
    peers = []
    for _ in range(rng.choice((20, 80, 300))):
        peer = world.connect(target, patience=.2)
        if not peer:
            break
        peers.append(peer)
        if rng.random() < .2:
            peer.send(rng.choice((hello_bytes(world, peer), rng.randbytes(50))))
    for peer in peers:
        world.keep(peer, rng.uniform(0, 3))


def hasty(world, target, rng):
    """Comes and goes, again and again."""
    for _ in range(rng.randrange(5, 60)):
        peer = world.connect(target)
        if not peer:
            break
        with contextlib.suppress(OSError, TestFailure):
            if rng.random() < .7:
                peer.hello(GROUP)
            if rng.random() < .5:
                peer.ready()
                peer.number = 1
                peer.send(peer.framed(ethernet(rng, 60)))
        peer.part(rng)


# At the filter, which has no connection

def trailer(data, key, seq=0, group=GROUP, seal=None, **changed):
    fields = {'magic': b'TTMF', 'kind': 2, 'flags': 0, 'zero': 0, 'len': len(data), 'epoch': 0,
              'run': b'r' * 16, 'pos': NO_POSITION, 'seq': seq, 'digest': xxh(data),
              'number': xxh(group.encode()), **changed}
    head = LAYOUT.pack(*(fields[f] for f in FIELDS))
    if not seal and key:
        mine = hmac.new(key, b'TTVMTR1\n' + group.encode(), hashlib.sha256).digest()
        covered = data if fields['kind'] == 2 else b''
        seal = hmac.new(mine, head + covered, hashlib.sha256).digest()
    return data + head + (seal or struct.pack('<Q24x', xxh(head))) + b'TTVMTR1\n'


def cable(world, rng):
    """Frames with a trailer that is right, changed, cut off, or says what is not so."""
    out, key = world.cable, world.key
    run, misses = rng.randbytes(16), 0
    for i in range(rng.choice((5, 100, 1500))):
        data = ethernet(rng, rng.choice((14, 60, 1000, 9000, 60000)))
        what = rng.randrange(8)
        if what == 0:
            text = bytearray(trailer(data, key, i, run=run))
            text[-1 - rng.randrange(110)] ^= 1 << rng.randrange(8)
        elif what == 1:
            text = trailer(data, key, i, run=run)[rng.randrange(200):]
        elif what == 2:
            text = rng.randbytes(rng.choice((1, 13, 60, 104, 118, 2000)))
        elif what == 3:
            text = trailer(data, key, run=run, **rng.choice((
                {'len': rng.getrandbits(32)}, {'kind': rng.randrange(256)},
                {'flags': rng.randrange(256)}, {'epoch': EPOCH_MAX + 1}, {'zero': 1},
                {'digest': 5}, {'pos': 5}, {'seq': (1 << 64) - 1}, {'group': 'h'},
                {'seal': rng.randbytes(32)})))
        elif what == 4:
            text = trailer(data, key, seq=rng.getrandbits(rng.choice((4, 14, 63))),
                           run=rng.choice((run, rng.randbytes(16), world.vm_run)))
        elif what == 5 and world.epoch < world.epochs_most and rng.random() < .02:
            world.epoch += 1
            text = trailer(ethernet(rng, 60), key, kind=3, len=0, epoch=world.epoch, digest=0)
        else:
            text = trailer(data, key, i, run=run)
        try:
            out.sendto(bytes(text), world.filter_path)
        except OSError:
            misses += 1                     # too long; or the NIC takes none, and nobody reads
            if misses > 20:
                break


# The user, who goes on working

def user(world, rng):
    """Stops the VM for a moment, shows its past, pulls a cable out, reports an incident, makes
    a checkpoint of the group, changes the filter."""
    qmp, what = world.vm.qmp, rng.randrange(8)
    if what == 0:
        qmp.cmd('stop')
        time.sleep(rng.uniform(0, 1))
        qmp.cmd('cont')
    elif what == 1:
        qmp.hmp('tt incident the user says so')
    elif what == 2:
        qmp.hmp('info network')
    elif what == 3:
        name = f'net{rng.randrange(4)}'
        qmp.cmd('set_link', name=name, up=False)
        time.sleep(rng.uniform(0, 1))
        qmp.cmd('set_link', name=name, up=True)
    elif what == 4:
        qmp.cmd('object-del', id='f0')
        time.sleep(rng.uniform(0, .2))
        qmp.cmd('object-add', qom_type='filter-tt', id='f0', netdev='net3', group=GROUP,
                **({'key-file': f'{world.work}/key'} if world.key else {}))
    elif what == 5 and world.visits < VISITS_MOST:
        world.visits += 1
        qmp.cmd('stop')
        here = qmp.cmd('query-tt')['position']
        with contextlib.suppress(QmpError):     # it has gone less far
            qmp.cmd('tt-goto', 120, position=max(0, here - 20000))
            time.sleep(rng.uniform(0, 1))
        qmp.cmd('tt-goto', 120, where='end')
        qmp.cmd('cont')
    elif world.epoch < world.epochs_most:
        world.epoch += 1
        qmp.hmp('tt checkpoint add -g', 60)


# The world they live in

def memory_of(pid):
    """In MiB."""
    for line in read_text(f'/proc/{pid}/status').splitlines():
        if line.startswith('VmRSS'):
            return int(line.split()[1]) >> 10
    return 0


class World:
    def __init__(self, work, seed, programs, linux, epochs_most):
        rng = random.Random(seed)
        self.work, self.seed, self.linux, self.epochs_most = work, seed, linux, epochs_most
        self.qemu, self.tt = programs
        self.key = KEY if rng.random() < .7 else None
        self.by_tcp = rng.random() < .5
        self.shape = rng.choice(([], ['--delay', '5', '--jitter', '20'],
                                 ['--loss', '5', '--rate', '50'],
                                 ['--delay', '300']))
        self.log = os.path.join(work, 'hub.log')
        self.paths = {name: os.path.join(work, name) for name in ('net', 'call', 'filter',
                                                                  'cable')}
        self.filter_path = self.paths['filter']
        self.kept, self.old, self.epoch = [], [], 0
        self.vm_run, self.hub_mib, self.vm_mib, self.vm_base = bytes(16), 0, 0, 0
        self.did, self.visits = {}, 0
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            if self.key:
                with open(os.path.join(self.work, 'key'), 'wb') as out:
                    out.write(KEY + b'\n')
            self.key_option = f',key-file={self.work}/key' if self.key else ''
            self.start_hub(stack)
            for name in 'call', 'cable':
                kind = socket.SOCK_STREAM if name == 'call' else socket.SOCK_DGRAM
                sock = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
                sock.bind(self.paths[name])
                sock.settimeout(1 if name == 'call' else .05)
                setattr(self, name, sock)
            self.call.listen(16)
            self.vm = stack.enter_context(self.start_vm())
            # QMP may answer before QEMU makes its netdevs.
            wait_until(lambda: 'net3' in self.vm.qmp.hmp('info network'), 'the netdevs')
            self.vm_run = uuid.UUID(manifest_uuid(self.vm.run)).bytes
            self.vm_base = memory_of(self.vm.process.pid)
            self.pair = Pair(self.where, self.key)
            stack.callback(self.pair.close)
            stack.callback(self.let_go)
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *unused):
        self.stack.close()

    def start_hub(self, stack):
        address = '127.0.0.1:0' if self.by_tcp else os.path.join(self.work, 'hub')
        self.said = os.path.join(self.work, 'hub.stderr')
        err = stack.enter_context(open(self.said, 'wb'))
        self.hub = subprocess.Popen(
            [self.tt, 'hub', '--group', GROUP, '--listen', address, '--log', self.log,
             *(['--key-file', f'{self.work}/key'] if self.key else []), *self.shape],
            stdout=subprocess.PIPE, stderr=err)
        stack.callback(self.hub.stdout.close)
        stack.callback(self.hub.wait)
        stack.callback(self.hub.kill)
        line = self.hub.stdout.readline().decode()
        check('listening at' in line, f'the hub says {line}')
        self.hub_address = line.split()[-1]
        self.where = int(line.rsplit(':', 1)[1]) if self.by_tcp else address

    def start_vm(self):
        netdevs = [f'tt,id=net0,group={GROUP},connect={self.hub_address}{self.key_option}',
                   f'tt,id=net1,group={GROUP},listen={self.paths["net"]}{self.key_option}',
                   f'tt,id=net2,group={GROUP},connect={self.paths["call"]}{self.key_option}',
                   f'dgram,id=net3,local.type=unix,local.path={self.filter_path},'
                   f'remote.type=unix,remote.path={self.paths["cable"]}']
        args = own_args(self.work, {'own/run': LINUX.encode()}, '', memory='128') \
            if self.linux else list(MACHINE)
        model = 'virtio-net-pci' if self.linux else 'rtl8139'
        for i, netdev in enumerate(netdevs):
            args += ['-netdev', netdev, '-device', f'{model},netdev=net{i},romfile=,'
                                                   f'mac=52:54:00:09:00:0{i}']
        args += ['-object', f'filter-tt,id=f0,netdev=net3,group={GROUP}{self.key_option}']
        return recorder(self.work, args, 'vm', qmp=1, timeout=24 * 3600, binary=self.qemu)

    # Peers

    def connect(self, target, patience=1):
        """A peer that is connected, or None."""
        try:
            if target == 'call':
                where = self.call.accept()[0]
            else:
                where = self.where if target == 'hub' else self.paths['net']
            return Member(where, self.key, patience=patience)
        except (OSError, TestFailure):
            return None                     # full, or the VM does not call just now

    def keep(self, peer, seconds):
        """It stays for so long, and does nothing."""
        self.kept.append((time.monotonic() + seconds, peer))

    def let_go(self, all_of_them=True):
        now = time.monotonic()
        for when, peer in self.kept:
            if all_of_them or when < now:
                peer.sock.close()
        self.kept = [] if all_of_them else [k for k in self.kept if k[0] >= now]

    # One thing after the other

    def attack(self, number):
        rng = random.Random(f'{self.seed}.{number}')
        target = rng.choice(('hub', 'hub', 'net', 'net', 'call', 'filter', 'user'))
        if target in ('filter', 'user'):
            what = cable if target == 'filter' else user
            what(self, rng)
        elif rng.random() < .15:
            what = rng.choice((crowd, hasty))
            what(self, target, rng)
        else:
            what = rng.choice(AT_LINKS)
            peer = self.connect(target)
            if not peer:
                return
            with contextlib.suppress(OSError, TestFailure, struct.error):
                what(self, peer, rng)
            if not any(k[1] is peer for k in self.kept):
                peer.part(rng)
        name = f'{what.__name__}/{target}'
        self.did[name] = self.did.get(name, 0) + 1

    def look(self):
        """All are well."""
        self.let_go(False)
        with contextlib.suppress(OSError):
            while True:
                self.cable.recv(1 << 17, socket.MSG_DONTWAIT)
        status = self.hub.poll()
        check(status is None, f'the hub ended with {status}: {read_text(self.said)[-3000:]}')
        self.vm.check_alive('under attack')
        self.vm.qmp.cmd('query-status', 60)
        self.vm.qmp.events.clear()
        self.pair.look()
        self.hub_mib = max(self.hub_mib, memory_of(self.hub.pid))
        self.vm_mib = max(self.vm_mib, memory_of(self.vm.process.pid) - self.vm_base)
        check(self.hub_mib < HUB_MIB, f'the hub has {self.hub_mib} MiB')
        check(self.vm_mib < VM_MIB, f'the VM has {self.vm_mib} MiB more than before')

    def run(self, seconds):
        began = time.monotonic()
        number = 0
        while time.monotonic() - began < seconds:
            self.attack(number)
            self.look()
            number += 1
        return self.end(time.monotonic() - began)

    def end(self, seconds):
        self.let_go()
        sent, lost = self.pair.finish(self.log)
        self.vm.qmp.send('quit')
        self.vm.wait(0)
        self.hub.send_signal(signal.SIGTERM)
        status = self.hub.wait(20 * SLOW)
        said = read_text(self.said)
        equal(status, 0, f'how the hub ended; it said {said[-3000:]}')
        lines = {'hub': len(said.splitlines()), 'vm': len(self.vm.stderr.splitlines())}
        check(lines['hub'] < 10 + 1.5 * seconds, f'the hub said {lines["hub"]} sentences')
        check(lines['vm'] < 20 + 6 * seconds, f'the VM said {lines["vm"]} sentences')
        for text in said, self.vm.stderr:
            check(all(c.isprintable() or c == '\n' for c in text), 'control characters')
        began = time.monotonic()
        check_exact(self.work, self.vm.run, serial_wanted=self.vm.serial,
                    timeout=600 + 3 * seconds)
        return {'sent': 2 * sent, 'lost': lost, 'lines': lines, 'hub_mib': self.hub_mib,
                'vm_mib': self.vm_mib, 'did': self.did,
                'replay_s': time.monotonic() - began}


def manifest_uuid(run):
    def line():
        return next((line for line in read_text(f'{run}/manifest').splitlines()
                     if line.startswith('uuid')), None)
    return wait_until(line, 'the manifest').split('=' if '=' in line() else None)[-1].strip()


def programs(folder=None):
    """QEMU and tt; of link-sanitized, if there is a folder."""
    if folder:
        return os.path.join(folder, 'qemu-system-x86_64'), os.path.join(folder, 'tt')
    return None, tool('tt')


def session(work, seed, seconds, linux=False, where=None, epochs_most=3):
    """Strangers for some seconds. Returns numbers."""
    with World(work, seed, programs(where), linux, epochs_most) as world:
        if linux and random.Random(seed).random() < .7:
            world.vm.wait_serial('TT-SERVES', 120)
            world.vm_base = max(world.vm_base, memory_of(world.vm.process.pid))
        return world.run(seconds)
