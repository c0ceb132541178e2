# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs one cell of the matrix: records it, replays it three times, compares.

The world around a cell is made here: its files, what it is connected to, and
what the host does while the guest runs. The cells are in matrix_cells.py.
"""
import os
import socket
import struct
import threading
import time

from guests import write
from ttlib import (BUILD, REPO, Skip, Vm, check, check_exact, digest,
                   digest_at, end_of, equal, fail, goto, one_sentence,
                   recorder, run_tool, stopped_replay, wait_until)

OTHERS = os.path.join(BUILD, 'guest-devices')


def other(name):
    return os.path.join(OTHERS, name)


def need_guests(make):
    """The guests of scripts/guest --devices (80 MB of packages)."""
    if make:
        run_tool(os.path.join(REPO, 'scripts', 'guest'), '--devices',
                 timeout=600)
    elif not os.path.exists(other('key')):
        raise Skip('build/guest-devices is missing: scripts/guest --devices')


def linux(cell):
    kernel = other('vmlinux' if cell.boot == 'pvh' else 'vmlinuz')
    words = f'console=ttyS0 panic=-1 no_timer_check t={cell.works} m={cell.modules}'
    return ['-kernel', kernel, '-initrd', other('initrd.img'), '-append',
            f'{words} n=60 {cell.append}']


def filled(value, work):
    """{work} and {guests} in the texts of a cell."""
    if isinstance(value, str):
        return value.replace('{work}', work).replace('{guests}', OTHERS)
    if isinstance(value, dict):
        return {k: filled(v, work) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [filled(v, work) for v in value]
    return value


def cell_args(cell, work):
    args = ['-M', cell.machine, '-cpu', cell.cpu, '-m', cell.memory,
            '-nodefaults', '-display', 'none', *filled(cell.args, work)]
    if not cell.reboots:
        args.append('-no-reboot')
    return args + (linux(cell) if cell.boot else [])


# ---- what a VM is connected to ----

def checksum(data):
    data += b'\0' * (len(data) % 2)
    total = sum(struct.unpack(f'>{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return struct.pack('>H', total ^ 0xffff)


def net_answer(frame):
    """What a host at 10.0.2.2 says to an ARP request or a ping."""
    us, them = b'\x52\x55\x0a\x00\x02\x02', frame[6:12]
    if frame[12:14] == b'\x08\x06' and frame[20:22] == b'\0\1':
        return (them + us + frame[12:20] + b'\0\2' + us + frame[38:42] +
                them + frame[28:32])
    if frame[12:14] == b'\x08\0' and frame[23] == 1 and frame[34] == 8:
        rest = b'\0\0\0\0' + frame[38:]
        rest = rest[:2] + checksum(rest) + rest[4:]
        return (them + us + frame[12:26] + frame[30:34] + frame[26:30] +
                rest)
    return None


def serve_frames(sock):
    """A host at the other end of -netdev stream or socket."""
    data = sock.makefile('rb')
    while True:
        head = data.read(4)
        if len(head) < 4:
            return
        answer = net_answer(data.read(struct.unpack('>I', head)[0]))
        if answer:
            sock.sendall(struct.pack('>I', len(answer)) + answer)


def serve_echo(sock):
    while True:
        data = sock.recv(4096)
        if not data:
            return
        sock.sendall(data)


class Peer(threading.Thread):
    """Listens at a socket and serves whoever connects, one at a time."""

    serve = {'frames': serve_frames, 'echo': serve_echo}

    def __init__(self, kind, path):
        super().__init__(daemon=True)
        self.kind = kind
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(1)

    def run(self):
        while True:
            sock, _ = self.listener.accept()
            try:
                self.serve[self.kind](sock)
            except OSError:
                pass
            sock.close()


def make_world(cell, work):
    for name, size in cell.files:
        path = write(os.path.join(work, name), bytes(range(256)) * 4096)
        os.truncate(path, size)
    for name, source in cell.copies:
        with open(filled(source, work), 'rb') as data:
            write(os.path.join(work, name), data.read())
    for kind, name in cell.peers:
        Peer(kind, os.path.join(work, name)).start()


# ---- recording ----

def act(vm, command, arguments, work):
    if command == 'sleep':
        time.sleep(arguments)
    elif command == 'event':
        vm.qmp.event(arguments, 60)
    elif command == 'keys':
        for key in arguments.split():
            vm.qmp.cmd('send-key', keys=[{'type': 'qcode', 'data': key}])
            time.sleep(0.1)
    elif command == 'hmp':
        text = vm.qmp.hmp(filled(arguments, work))
        check('rror' not in text, f'{arguments}: {text}')
    else:
        vm.qmp.cmd(command, 60, **filled(arguments, work))


def record_cell(cell, work):
    make_world(cell, work)
    args = cell_args(cell, work)
    with recorder(work, args, qmp=1, timeout=cell.limit) as vm:
        vm.qmp.cmd('query-status')
        for text, commands in cell.steps:
            if text:
                vm.wait_serial(text, timeout=cell.limit)
            for command, arguments in commands:
                act(vm, command, arguments, work)
        vm.wait(0)
    text = vm.serial.decode(errors='replace')
    check('TT-FAIL' not in text, f'a work failed: {text[-700:]}')
    works = cell.works.replace('disk:', '').split(',')
    wanted = [f'TT-DONE {w}' for w in works if w]
    for line in [*wanted, *cell.shows]:
        check(line in text, f'the console lacks "{line}": {text[-700:]}')
    return vm


# ---- replaying ----

def visit(cell, work, run, rng, count):
    """Straight through some positions, then to them in random order."""
    with stopped_replay(work, run, 'visits', timeout=cell.limit) as rep:
        end = end_of(rep)
        positions = [rng.randrange(end + 1) for _ in range(count)]
        wanted = {p: digest_at(rep, p) for p in sorted(positions)}
        goto(rep, cell.limit, where='end')
        last = digest(rep)
        check(not rep.qmp.cmd('query-tt')['diverged'], 'it diverged')
        rng.shuffle(positions)
        for position in positions:
            equal(digest_at(rep, position), wanted[position],
                  f'digest at {position}')
        goto(rep, cell.limit, where='end')
        equal(digest(rep), last, 'digest at the end')
    return end


def refused(cell, work):
    make_world(cell, work)
    args = [*cell_args(cell, work), '-tt', f'record,dir={work}/rec.run']
    with Vm(work, args, name='rec', timeout=20) as vm:
        vm.wait(1)
        line = one_sentence(vm, cell.name)
    check(cell.refused in line, f'the message says: {line}')
    return 'refused: ' + line


def absent(cell, work):
    with Vm(work, cell_args(cell, work), name='rec', timeout=20) as vm:
        vm.wait(1)
    check(cell.absent in vm.stderr, f'the message says: {vm.stderr}')
    return f'not built: QEMU says "{cell.absent}"'


def run_cell(cell, work, rng, positions=5, replays=1):
    """One line that says what was seen; raises TestFailure or Skip."""
    lack = cell.lacks()
    if lack:
        raise Skip(lack)
    if cell.absent:
        return absent(cell, work)
    if cell.refused:
        return refused(cell, work)
    began = time.monotonic()
    vm = record_cell(cell, work)
    took = time.monotonic() - began
    for number in range(replays):
        check_exact(work, vm.run, name=f'rep{number}', timeout=cell.limit,
                    serial_wanted=vm.serial)
    line = f'exact: recorded in {took:.0f} s, {replays} replays to the end'
    if positions:
        end = visit(cell, work, vm.run, rng, positions)
        line += f', {positions} of {end} positions visited twice'
    return line
