# SPDX-License-Identifier: GPL-2.0-or-later
"""Somebody who types on a guest's terminal, and takes it back."""

import contextlib
import os
import socket
import threading
import time

from debian_guest import debian_args, free_port, ssh
from guests import linux_args
from ttlib import SLOW, check, equal, fail, recorder, short

PROMPT = 'guest# '


class Terminal:
    """A console of the guest on a socket: it stays connected, whatever is undone."""

    def __init__(self, path, timeout=20):
        end = time.monotonic() + timeout * SLOW
        self.sock = socket.socket(socket.AF_UNIX)
        while True:
            try:
                self.sock.connect(path)
                break
            except OSError as error:
                if time.monotonic() > end:
                    fail(f'no terminal at {path}: {error}')
                time.sleep(0.05)
        self.text, self.seen = b'', 0
        self.more = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        while True:
            try:
                data = self.sock.recv(1 << 16)
            except OSError:
                return
            if not data:
                return
            with self.more:
                self.text += data
                self.more.notify_all()

    def send(self, text):
        self.sock.sendall(text.encode() if isinstance(text, str) else text)

    def wait(self, text, timeout=60):
        """Until the text comes, after all that was waited for before."""
        needle = text.encode() if isinstance(text, str) else text
        end = time.monotonic() + timeout * SLOW
        with self.more:
            while needle not in self.text[self.seen:]:
                left = end - time.monotonic()
                if left <= 0 or not self.more.wait(left):
                    fail(f'not within {timeout} s on the terminal: {text!r}, but '
                         f'{short(self.text[self.seen:][-300:])}')
            self.seen += self.text[self.seen:].index(needle) + len(needle)

    def forget(self):
        with self.more:
            self.seen = len(self.text)

    def line(self, text, answer=PROMPT):
        """One line, and what comes of it."""
        self.forget()
        self.send(f'{text}\r')
        self.wait('\n')
        self.wait(answer)

    def close(self):
        self.sock.close()


def undo_recorder(work, args=(), name='u', options='', works='shell', mux='off', **kw):
    """A Vm with a shell of the guest's on a socket, and undo. On a busy host a line may come
    in pieces; it is one input all the same."""
    if 'undo-pause' not in options:
        options += ',undo-pause=30'
    path = os.path.join(work, f'{name}.con')
    args = [*linux_args(works, 'quiet', memory='128'), *args, '-chardev',
            f'socket,id=con,path={path},server=on,wait=off,mux={mux}', '-serial',
            'chardev:con']
    vm = recorder(work, args, name, f',undo=console{options}', qmp=1, serial=False, **kw)
    vm.console = path
    return vm


def counts(vm):
    info = vm.qmp.cmd('query-tt')
    return info['undos'], info['redos']


def move(vm, verb, count=1):
    """tt-undo or tt-redo; returns the run that is recorded now."""
    answer = vm.qmp.cmd(f'tt-{verb}', timeout=60, count=count)
    check(os.path.isfile(os.path.join(answer['dir'], 'manifest')) or
          vm.qmp.cmd('query-status')['status'] == 'paused', f'no run in {answer}')
    equal(counts(vm), (answer['undos'], answer['redos']), 'counts afterwards')
    return answer['dir']


def state(vm):
    """What the stopped VM is: digests of its vCPUs and of its RAM. Whose turn it is among
    several vCPUs may change, as whenever a VM stands still."""
    said = vm.qmp.cmd('query-tt-digest')
    return *said['vcpus'], said['ram']


# In the Debian of `long_recorder`: work that goes on, and a shell on the second serial port.
WORK = """cd /root
work() { while :; do
    tar c /usr/share/doc /etc 2> /dev/null | gzip -1 > archive
    sha256sum archive > sum
    dd if=/dev/urandom of=noise bs=1M count=4 2> /dev/null
    rm archive noise
    sleep 1
done; }
work > /dev/null 2>&1 < /dev/null &
stty -F /dev/ttyS1 sane -echoctl
setsid env PS1='guest# ' bash --noprofile --norc --noediting -i <> /dev/ttyS1 >&0 2>&1 &
"""


@contextlib.contextmanager
def long_recorder(work, minutes, name='u', options='', **kw):
    """A Vm with a whole Debian, of which so many minutes are recorded while its disk, its
    processors and a shell are at work, and undo."""
    path, port = os.path.join(work, f'{name}.con'), free_port()
    args = [*debian_args(port), '-serial', f'file:{os.path.join(work, name)}.log', '-chardev',
            f'socket,id=con,path={path},server=on,wait=off', '-serial', 'chardev:con']
    with recorder(work, args, name, f',undo=console{options}', qmp=1, serial=False,
                  **kw) as vm:
        vm.console = path
        end = time.monotonic() + 60 * minutes
        ssh(port, 'cat > work', WORK.encode(), tries=30)
        ssh(port, 'setsid bash work > /dev/null 2>&1 < /dev/null &')
        vm.term = Terminal(path)
        vm.term.wait(PROMPT)
        lines = 0
        while time.monotonic() < end:
            lines += 1
            vm.term.line(f'echo $(({lines} + 1000)) $(ls /usr/bin | wc -l)',
                         f'{lines + 1000} ')
            time.sleep(10)
        yield vm
