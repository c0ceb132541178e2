# SPDX-License-Identifier: GPL-2.0-or-later
"""gdb's remote protocol, as much of it as steps need: a gdb of its own takes most of the
time of a step."""

import socket
import time

from ttlib import SLOW, fail, wait_until


class Remote:
    """One connection. A call sends a packet and returns the answer."""

    def __init__(self, vm, timeout=60):
        self.timeout = timeout * SLOW
        self.path = vm.socket_path('gdb')
        wait_until(self.connect, 'the gdb socket')
        self.socket.settimeout(self.timeout)
        self.data = b''
        self('qSupported:swbreak+;hwbreak+')
        self('?')

    def connect(self):
        self.socket = socket.socket(socket.AF_UNIX)
        try:
            self.socket.connect(self.path)
        except OSError:                         # it is not there, or nobody listens yet
            self.socket.close()
            return False
        return True

    def read(self):
        while True:
            self.data = self.data.lstrip(b'+')
            at = self.data.find(b'#')
            if at >= 0 and len(self.data) >= at + 3:
                packet, self.data = self.data[1:at], self.data[at + 3:]
                self.socket.sendall(b'+')
                return packet
            more = self.socket.recv(1 << 16)
            if not more:
                fail('QEMU closed the connection of gdb')
            self.data += more

    def __call__(self, command):
        text = command.encode()
        self.socket.sendall(b'$%s#%02x' % (text, sum(text) & 255))
        while (answer := self.read())[:1] == b'O' and answer != b'OK':
            pass
        return answer

    def moves(self, command):
        """A packet that moves the VM; where it stops is told."""
        answer = self(command)
        if answer[:1] != b'T':
            fail(f'{command} is answered by {answer[:60]!r}')
        return answer

    def timed(self, command, begins):
        began = time.monotonic()
        answer = self(command)
        ms = 1000 * (time.monotonic() - began)
        if not answer.startswith(begins):
            fail(f'{command} is answered by {answer[:60]!r}')
        return ms

    def goto(self, position):
        self('qRcmd,' + f'tt goto {position}'.encode().hex())
        while True:                             # a stop may be told, too
            self.socket.settimeout(0.1)
            try:
                self.read()
            except TimeoutError:
                break
        self.socket.settimeout(self.timeout)
