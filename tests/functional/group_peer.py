# SPDX-License-Identifier: GPL-2.0-or-later
"""A peer of a group that may say anything; written from docs/reference/group-format.rst
alone."""

import contextlib
import fcntl
import hashlib
import hmac
import os
import socket
import struct
import termios

from ttlib import SLOW, check, wait_until

HELLO = 96
HEAD = 64
MAC = 32
AUTHENTICATED, HUB = 1, 2
NO_POSITION = (1 << 64) - 1
READY, FRAME, INCIDENT = 1, 2, 4


def message(kind, number, data=b'', seq=0, digest=0, run=b'r' * 16):
    return struct.pack('<4sBBHII16sQQQQ', b'TTMF', kind, 0, 0, len(data), 0, run,
                       NO_POSITION, seq, digest, number) + data


def incident_of(mark, what, number, seq=0, run=b'r' * 16):
    """The sender says that it is recorded, at position 7."""
    text = bytes([len(mark)]) + mark.encode() + what
    # XXH3 here is for 17 bytes and more.
    text += b' ' * max(0, 17 - len(text))
    return struct.pack('<4sBBHII16sQQQQ', b'TTMF', INCIDENT, 1, 0, len(text), 0, run, 7, seq,
                       xxh3(text), number) + text


def frame_of(data, number, seq=0, damaged=False, run=b'r' * 16):
    digest = 0 if damaged else xxh3(data)
    return message(FRAME, number, data, seq, digest, run)


def mac_of(key, *parts):
    return hmac.new(key, b''.join(parts), hashlib.sha256).digest()


# XXH3-64 of 17 to 128 bytes, seed 0, from its specification

SECRET = bytes.fromhex(
    'b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f'
    'cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c'
    '3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8'
    'a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364')
MASK = (1 << 64) - 1
PRIME64_1 = 0x9E3779B185EBCA87


def mix16(data, at, secret):
    low, high = struct.unpack_from('<QQ', data, at)
    a, b = struct.unpack_from('<QQ', SECRET, secret)
    product = (low ^ a) * (high ^ b)
    return (product ^ product >> 64) & MASK


def xxh3(data):
    n = len(data)
    check(17 <= n <= 128, 'a frame of 17 to 128 bytes')
    acc = n * PRIME64_1 & MASK
    for i in range((n - 1) // 32, -1, -1):
        acc += mix16(data, 16 * i, 32 * i)
        acc += mix16(data, n - 16 * (i + 1), 32 * i + 16)
    acc &= MASK
    acc ^= acc >> 37
    acc = acc * 0x165667919E3779F9 & MASK
    return acc ^ acc >> 32


class Peer:
    """A connection to a netdev or a hub."""

    def __init__(self, where, key=None):
        """@where: a path, a port of this host, or a socket that is connected."""
        self.key, self.group, self.nonce = key, b'g', os.urandom(16)
        self.out_key = None
        self.pending = b''
        if isinstance(where, socket.socket):
            self.sock = where
        else:
            is_port = isinstance(where, int)
            self.sock = socket.socket(socket.AF_INET if is_port else socket.AF_UNIX)
        self.sock.settimeout(5 * SLOW)
        if self.sock is not where:
            wait_until(lambda: self.connects(('127.0.0.1', where) if is_port else where),
                       f'somebody listens at {where}')

    def connects(self, where):
        """The path of a socket is there before anybody listens."""
        try:
            self.sock.connect(where)
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        return True

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.sock.close()

    def send(self, data):
        try:
            self.sock.sendall(data)
        except OSError:
            pass                    # it has left us

    def hello(self, group='g', flags=None):
        self.group = group.encode()
        flags = (AUTHENTICATED if self.key else 0) if flags is None else flags
        self.send(struct.pack('<8sII16s64s', b'TTVMNET\n', 2, flags, self.nonce, self.group))

    def put(self, text):
        """A message, with a MAC if there is a key."""
        if self.key:
            text = text[:HEAD] + mac_of(self.out_key, text) + text[HEAD:]
        self.send(text)

    def ready(self):
        """Says so, and waits until the other side does."""
        fields = struct.unpack('<8sII16s64s', self.take(HELLO))
        if self.key:
            self.out_key = mac_of(self.key, self.nonce, fields[3], b'\0', self.group)
        self.put(message(READY, 0))
        head = self.take(HEAD)
        if self.key:
            is_hub = bytes([fields[2] & HUB > 0])
            theirs = mac_of(self.key, fields[3], self.nonce, is_hub, self.group)
            return self.take(MAC) == mac_of(theirs, head)
        return True

    def is_closed(self):
        """Waits until the other side closes."""
        try:
            while self.sock.recv(65536):
                pass
        except ConnectionError:
            pass
        except socket.timeout:
            return False
        return True

    def take(self, n):
        while len(self.pending) < n:
            more = self.sock.recv(65536)
            check(more, 'the other side has closed')
            self.pending += more
        taken, self.pending = self.pending[:n], self.pending[n:]
        return taken

    def frame(self):
        """(sequence, bytes) of the next frame that comes."""
        while True:
            fields = struct.unpack('<4sBBHII16sQQQQ', self.take(HEAD))
            self.take(MAC if self.key else 0)
            data = self.take(fields[4])
            if fields[1] == FRAME:
                return fields[8], data


def is_read(sock):
    """The other side has read all that was sent."""
    return not struct.unpack('i', fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4)))[0]


@contextlib.contextmanager
def no_time(path):
    """Somebody listens there, and so many wait that no more can."""
    with socket.socket(socket.AF_UNIX) as listener, contextlib.ExitStack() as waiting:
        listener.bind(path)
        listener.listen(0)
        for _ in range(100):
            one = waiting.enter_context(socket.socket(socket.AF_UNIX))
            one.setblocking(False)
            try:
                one.connect(path)
            except BlockingIOError:
                break
        yield listener
