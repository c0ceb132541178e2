# SPDX-License-Identifier: GPL-2.0-or-later
"""A replay shows the screen: what screendump gave while the VM was recorded, it
gives at the same position."""

import os
import random
import re
import socket
import struct
import time

from guests import guest_args
from ttlib import (TestFailure, Vm, check, check_exact, digest, equal, goto_exact,
                   limit, read_bytes, record, recorder, run_tool, stopped_replay, tool,
                   wait_until)

GRAPHICS = {b'P6 320 200', b'P6 640 480'}


def picture(vm, name):
    path = os.path.join(vm.work, name)
    vm.qmp.cmd('screendump', filename=path)
    return read_bytes(path)


def record_pictures(work, args, least):
    """Stops the VM now and then, until both graphics modes were seen; {position:
    picture}."""
    pictures = {}
    with recorder(work, args, qmp=1) as vm:
        vm.wait_serial('start')
        while len(pictures) < least or not GRAPHICS <= sizes(pictures):
            time.sleep(0.03)
            vm.qmp.cmd('stop')
            place = digest(vm)[0]
            pictures[place] = picture(vm, f'recorded{place}.ppm')
            vm.qmp.cmd('cont')
        vm.qmp.send('quit')
        vm.wait(0)
    return vm.run, pictures


def sizes(pictures):
    return {head(p) for p in pictures.values()}


def head(data):
    return b' '.join(data.split(None, 3)[:3])


def differing(a, b):
    return sum(x != y for x, y in zip(a, b))


@limit(90)
def test_screendump(work):
    """Text, 256 colours and true colours look the same in a replay, whether it
    comes to the position forwards or backwards. A text cursor blinks by the
    host's clock and may be seen or not."""
    args = guest_args(work, 'screen', 'rounds=20 turns=10000')
    run, pictures = record_pictures(work, args, 10)
    order = sorted(pictures)
    with stopped_replay(work, run) as rep:
        for place in [*order, *random.Random(1).sample(order, len(order))]:
            goto_exact(rep, place)
            seen, wanted = picture(rep, f'replayed{place}.ppm'), pictures[place]
            equal(head(seen), head(wanted), f'size of the picture at {place}')
            most = 16 * 9 * 3 if b'720 400' in head(wanted) else 0
            check(differing(seen, wanted) <= most,
                  f'{differing(seen, wanted)} bytes differ at {place}')


def record_gpu(work, append, begin=None, **how):
    """Pictures of guest gpu, which draws on a virtio-gpu."""
    pictures = {}
    args = guest_args(work, 'gpu', append)
    starter = recorder(work, args, qmp=1, **how) if not begin else \
        Vm(work, args, name='rec', qmp=1)
    with starter as vm:
        vm.wait_serial('start')
        if begin:
            vm.run = begin(vm)
        while vm.process.poll() is None and len(pictures) < 30:
            time.sleep(0.05)
            try:
                vm.qmp.cmd('stop')
                place, seen = digest(vm)[0], picture(vm, 'recorded.ppm')
                if digest(vm)[0] == place:
                    pictures[place] = seen
                vm.qmp.cmd('cont')
            except (OSError, TestFailure):
                break                           # it has powered off
        vm.wait(0)
    check(len(set(pictures.values())) > 2, 'too few pictures')
    return vm.run, pictures


def same_pictures(work, run, pictures):
    order = sorted(pictures)
    with stopped_replay(work, run) as rep:
        for place in [*order, *random.Random(2).sample(order, len(order))]:
            goto_exact(rep, place)
            check(picture(rep, 'replayed.ppm') == pictures[place],
                  f'the picture at {place} is another')


@limit(60)
def test_greedy_gpu_guest(work):
    """A guest offers a device several times as much memory as it has: the recorder does not
    take that much of the host's. The device says that it has had enough."""
    for how in 1, 2:
        run = record(work, guest_args(work, 'gpu', f'rounds=3 greedy={how}'), name=f'rec{how}')
        check(b'status=0000004f' in run.serial, f'the guest says {run.serial}')
        check_exact(work, run, name=f'rep{how}')


@limit(90)
def test_virtio_gpu(work):
    """What a virtio-gpu shows, which is seldom what is in RAM, a replay shows at the
    same position, also when it begins at a checkpoint of the recorder's."""
    same_pictures(work, *record_gpu(work, 'rounds=300',
                                    options=',checkpoint-interval=0.1'))


@limit(90)
def test_virtio_gpu_later(work):
    """The same when the recording began later."""
    def begin(vm):
        run = os.path.join(work, 'late.run')
        time.sleep(0.3)
        vm.qmp.cmd('tt-record-start', dir=run)
        return run
    same_pictures(work, *record_gpu(work, 'rounds=900', begin))


@limit(60)
def test_at_the_instruction(work):
    """The instruction that switches a mode on shows: the picture changes where it
    is over, not before, not after."""
    run = record(work, guest_args(work, 'screen', 'rounds=3'))
    text, _ = run_tool(tool('tt'), 'log', run.dir)
    place = int(re.search(r'(\d+) mmio-st addr=\w+508 size=2 val=0x41',
                          text).group(1))
    with stopped_replay(work, run) as rep:
        for where, wanted in ((place, b'P6 640 480'), (place - 1, b'P6 320 200'),
                              (place, b'P6 640 480')):
            goto_exact(rep, where)
            equal(head(picture(rep, 'switch.ppm')), wanted,
                  f'size of the picture at {where}')


class Rfb:
    """As much of a VNC client as it takes to see the picture once."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        wait_until(lambda: self.sock.connect_ex(path) == 0, 'the VNC socket')
        self.read(12)
        self.sock.sendall(b'RFB 003.008\n')
        self.read(self.read(1)[0])
        self.sock.sendall(b'\x01')                      # no authentication
        equal(self.read(4), bytes(4), 'result of the handshake')
        self.sock.sendall(b'\x01')                      # shared
        self.size = struct.unpack('>HH', self.read(4))
        self.read(16)
        self.read(struct.unpack('>I', self.read(4))[0])

    def read(self, n):
        data = b''
        while len(data) < n:
            more = self.sock.recv(n - len(data))
            check(more, 'the VNC server closed the connection')
            data += more
        return data

    def pixels(self):
        """The picture as a screendump has it: red, green, blue."""
        width, height = self.size
        self.sock.sendall(struct.pack('>BxxxBBBBHHHBBBxxx', 0, 32, 24, 0, 1, 255,
                                      255, 255, 16, 8, 0))
        self.sock.sendall(struct.pack('>BxHi', 2, 1, 0))    # raw only
        self.sock.sendall(struct.pack('>BBHHHH', 3, 0, 0, 0, width, height))
        out = bytearray(width * height * 3)
        seen = 0
        while seen < width * height:
            equal(self.read(1), b'\0', 'message of the VNC server')
            for _ in range(struct.unpack('>xH', self.read(3))[0]):
                x, y, w, h, kind = struct.unpack('>HHHHi', self.read(12))
                equal(kind, 0, 'encoding')
                data = self.read(w * h * 4)
                for row in range(h):
                    for i in range(3):
                        at = ((y + row) * width + x) * 3 + i
                        out[at:at + 3 * w:3] = data[row * w * 4 + 2 - i:
                                                    (row + 1) * w * 4:4]
                seen += w * h
        return bytes(out)


@limit(60)
def test_vnc(work):
    """VNC of a replay shows what screendump does."""
    run = record(work, guest_args(work, 'screen', 'rounds=3'))
    path = os.path.join(work, 'vnc')
    with stopped_replay(work, run, args=('-vnc', f'unix:{path}')) as rep:
        text, _ = run_tool(tool('tt'), 'log', run.dir)
        place = int(re.search(r'(\d+) mmio-st addr=\w+508 size=2 val=0x41',
                              text).group(1))
        goto_exact(rep, place + 400000)     # it has begun to draw
        wanted = picture(rep, 'wanted.ppm').split(b'\n', 3)[3][-640 * 480 * 3:]
        client = Rfb(path)
        equal(client.size, (640, 480), 'size by VNC')
        check(client.pixels() == wanted, 'VNC and screendump differ')
        check(len(set(wanted)) > 1, 'the picture is empty')
