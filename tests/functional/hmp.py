# SPDX-License-Identifier: GPL-2.0-or-later
"""An HMP monitor on a socket of its own."""

import socket
import time

from ttlib import SLOW, check, wait_until

PROMPT = '(qemu) '


def hmp_args(path):
    """What gives a VM such a monitor."""
    return ['-monitor', f'unix:{path},server=on,wait=off']


class Hmp:
    """A client. It fails at once when QEMU closes the monitor, so a process that is
    gone is never waited for."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        wait_until(lambda: self.sock.connect_ex(path) == 0, f'the monitor {path}')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, line):
        self.sock.sendall(line.encode() + b'\n')

    def read_until(self, text, timeout=60):
        """Returns what it says, up to the text, which is in it."""
        said, end = b'', time.monotonic() + timeout * SLOW
        while text.encode() not in said:
            self.sock.settimeout(max(end - time.monotonic(), 0.01))
            try:
                got = self.sock.recv(1)
            except socket.timeout:
                got = None
            except ConnectionResetError:
                got = b''
            check(got is not None, f'HMP does not say {text!r} within {timeout} s; it '
                  f'said {said[-200:]!r}')
            check(got, f'QEMU closed HMP; it said {said[-200:]!r}')
            said += got
        return said.decode()

    def read_prompt(self, timeout=60):
        """Returns what it says until it takes the next command."""
        return self.read_until(PROMPT, timeout)
