# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs one cell of the matrix: records it, replays it three times, compares.

The world around a cell is made here: its files, what it is connected to, and
what the host does while the guest runs. The cells are in matrix_cells.py.
"""
import functools
import os
import re
import socket
import struct
import subprocess
import threading
import time

from guests import write
from ttlib import (BUILD, REPO, SLOW, Skip, TestFailure, Vm, check, check_exact,
                   digest, digest_at, end_of, equal, goto, listens, one_sentence,
                   recorder, run_tool, stopped_replay, tool, wait_until)

OTHERS = os.path.join(BUILD, 'guest-devices')
DEBIAN = os.path.join(BUILD, 'guest-debian')


def other(name):
    return os.path.join(OTHERS, name)


def guest_of(cell, name):
    return os.path.join(BUILD, f'guest-{cell.guest}', name)


def need_guests(cells=()):
    """Makes the guests of the cells (80 MB of packages; for Debian, 150)."""
    for guest in {cell.guest for cell in cells} or {'devices'}:
        script = ['guest-debian'] if guest == 'debian' else \
            ['guest', f'--{guest}']
        run_tool(os.path.join(REPO, 'scripts', script[0]), *script[1:],
                 timeout=1200)
    for name in {cell.mini for cell in cells if cell.mini}:
        run_tool(os.path.join(REPO, 'tests', 'guests', 'build-mini'), name,
                 timeout=60)


def linux(cell):
    kernel = guest_of(cell, 'vmlinux' if cell.boot == 'pvh' else 'vmlinuz')
    words = f'console=ttyS0 panic=-1 no_timer_check t={cell.works} m={cell.modules}'
    return ['-kernel', kernel, '-initrd',
            guest_of(cell, 'initrd.img'), '-append',
            f'{words} n=60 {cell.append}']


@functools.cache
def port_of(work):
    """A port that nobody listens at."""
    with socket.socket() as sock:
        sock.bind(('127.0.0.1', 0))
        return str(sock.getsockname()[1])


def filled(value, work):
    """The words in braces in the texts of a cell."""
    if isinstance(value, str):
        value = value.replace('{work}', work).replace('{guests}', OTHERS)
        value = value.replace('{debian}', DEBIAN)
        return value.replace('{port}', port_of(work)) if '{port}' in value \
            else value
    if isinstance(value, dict):
        return {k: filled(v, work) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [filled(v, work) for v in value]
    return value


def cell_args(cell, work):
    args = ['-M', cell.machine, '-cpu', cell.cpu, '-m', cell.memory,
            '-nodefaults', '-display', 'none', *filled(cell.args, work)]
    if cell.mini:
        elf = os.path.join(BUILD, 'guests', f'mini-{cell.mini}.elf')
        args = [elf if a == '{mini}' else a for a in args]
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


def serve_tpm(work, path):
    """A TPM; it ends when QEMU does."""
    tpm = subprocess.Popen(
        ['timeout', str(300 * SLOW), 'swtpm', 'socket', '--tpm2', '--terminate',
         '--tpmstate', f'dir={work}', '--ctrl', f'type=unixio,path={path}'],
        stdin=subprocess.DEVNULL)
    # To be connected to and left would end it.
    wait_until(lambda: listens(path) or tpm.poll() is not None, 'the socket of swtpm')


def make_world(cell, work):
    for name, size in cell.files:
        path = write(os.path.join(work, name), bytes(range(256)) * 4096)
        os.truncate(path, size)
    for name, source in cell.copies:
        with open(filled(source, work), 'rb') as data:
            write(os.path.join(work, name), data.read())
    for kind, name in cell.peers:
        path = os.path.join(work, name)
        if kind == 'swtpm':
            serve_tpm(work, path)
        else:
            Peer(kind, path).start()


# ---- recording ----

SSH = ('-q', '-F', 'none', '-i', os.path.join(DEBIAN, 'key'), '-o',
       'StrictHostKeyChecking=no', '-o', 'UserKnownHostsFile=/dev/null', '-o',
       'BatchMode=yes', '-o', f'ConnectTimeout={int(60 * SLOW)}')


def run_ssh(what, *args, data=None):
    done = subprocess.run([what, *SSH, *args], input=data, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=300 * SLOW)
    said = done.stdout.decode(errors='replace')
    check(done.returncode == 0, f'{what} {args[-1]}: {said[-500:]}')
    return said


def ssh(work, command, source=None):
    data = None
    if source:
        with open(filled(source, work), 'rb') as f:
            data = f.read()
    return run_ssh('ssh', '-p', port_of(work), 'root@127.0.0.1', command,
                   data=data)


def copy_in_and_out(work, size):
    """A file goes in by scp, and comes back the same."""
    there, back = os.path.join(work, 'there'), os.path.join(work, 'back')
    write(there, os.urandom(size))
    port = port_of(work)
    run_ssh('scp', '-P', port, there, 'root@127.0.0.1:/var/tmp/copy')
    run_ssh('scp', '-P', port, 'root@127.0.0.1:/var/tmp/copy', back)
    with open(there, 'rb') as a, open(back, 'rb') as b:
        check(a.read() == b.read(), 'the file that came back is another')


def act(vm, command, arguments, work):
    if command == 'sleep':
        time.sleep(arguments)
    elif command == 'event':
        vm.qmp.event(arguments, 60)
    elif command == 'ssh':
        ssh(work, *arguments)
    elif command == 'copy':
        copy_in_and_out(work, arguments)
    elif command == 'look':
        for _ in range(arguments):
            time.sleep(0.5)
            look(vm)
    elif command == 'keys':
        for key in arguments.split():
            vm.qmp.cmd('send-key', keys=[{'type': 'qcode', 'data': key}])
            time.sleep(0.1)
    elif command == 'hmp':
        text = vm.qmp.hmp(filled(arguments, work))
        check('rror' not in text, f'{arguments}: {text}')
    else:
        vm.qmp.cmd(command, 60, **filled(arguments, work))


def picture(vm, name):
    path = os.path.join(vm.work, name)
    vm.qmp.cmd('screendump', filename=path)
    with open(path, 'rb') as f:
        return f.read()


def look(vm):
    """Stops the VM for a picture of its screen."""
    try:
        vm.qmp.cmd('stop')
        place = digest(vm)[0]
        seen = picture(vm, 'recorded.ppm')
        if digest(vm)[0] == place:      # nothing was under way
            vm.pictures[place] = seen
        vm.qmp.cmd('cont')
    except (OSError, TestFailure) as why:
        if isinstance(why, TestFailure) and 'closed' not in str(why):
            raise                       # it has not just powered off


def watch(vm, limit):
    end = time.monotonic() + limit * SLOW
    while vm.process.poll() is None and time.monotonic() < end:
        time.sleep(0.3)
        look(vm)


def record_cell(cell, work):
    make_world(cell, work)
    args = cell_args(cell, work)
    with recorder(work, args, qmp=1, timeout=cell.limit,
                  options=cell.options) as vm:
        vm.pictures = {}
        vm.qmp.cmd('query-status')
        for text, commands in cell.steps:
            if text:
                vm.wait_serial(text, timeout=cell.limit)
            for command, *arguments in commands:
                if command != 'ssh':
                    arguments, = arguments
                act(vm, command, arguments, work)
        if cell.pictures:
            watch(vm, cell.limit)
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
        wanted = {p: digest_at(rep, p, cell.limit)
                  for p in sorted(positions)}
        goto(rep, cell.limit, where='end')
        last = digest(rep)
        check(not rep.qmp.cmd('query-tt')['diverged'], 'it diverged')
        rng.shuffle(positions)
        for position in positions:
            equal(digest_at(rep, position, cell.limit), wanted[position],
                  f'digest at {position}')
        goto(rep, cell.limit, where='end')
        equal(digest(rep), last, 'digest at the end')
    return end


def picture_size(data):
    return data.split(None, 3)[1:3]


def differing(a, b):
    return sum(x != y for x, y in zip(a, b)) + abs(len(a) - len(b))


def compare_pictures(cell, work, run, pictures, rng, count):
    """The screen at so many positions, in order and then at random, is as it was.
    A text cursor blinks by the host's clock and may be seen or not."""
    order = sorted(p for p in pictures if cell.pictures != 'graphics' or
                   picture_size(pictures[p]) != [b'720', b'400'])
    check(order, 'no picture is of the graphics mode')
    while len(order) > count:
        order.pop(rng.randrange(len(order)))
    with stopped_replay(work, run, 'pictures', timeout=cell.limit) as rep:
        for place in [*order, *rng.sample(order, len(order))]:
            equal(goto(rep, cell.limit, position=place)['position'], place,
                  'position')
            seen, wanted = picture(rep, 'replayed.ppm'), pictures[place]
            size = picture_size(seen)
            equal(size, picture_size(wanted), f'size of picture {place}')
            most = 16 * 9 * 3 if size == [b'720', b'400'] else 0
            bad = differing(seen, wanted)
            check(bad <= most, f'picture at {place}: {bad} bytes differ')
    kinds = len({pictures[place] for place in order})
    return f', {len(order)} pictures equal ({kinds} different)'


def compare_output(work, run):
    """What a mini kernel wrote to port e9h, and a replay compares with each OUT,
    is what the recorded one's device got."""
    text, _ = run_tool(tool('tt'), 'log', run, timeout=120)
    replayed = bytes(int(v, 16) for v in re.findall(
        r'pio-out port=0xe9 size=1 val=0x(\w+)', text))
    with open(os.path.join(work, 'output'), 'rb') as output:
        check(output.read() == replayed, 'the output of the replay is another')
    return f', {len(replayed)} bytes of output equal'


def refused(cell, work):
    make_world(cell, work)
    args = [*cell_args(cell, work), '-tt', f'record,dir={work}/rec.run']
    with Vm(work, args, name='rec', timeout=20) as vm:
        vm.wait(1)
        line = one_sentence(vm, cell.name)
    check(cell.refused in line, f'the message says: {line}')
    return 'refused: ' + line


def refused_by_qemu(cell, work, text):
    with Vm(work, cell_args(cell, work), name='rec', timeout=20) as vm:
        vm.wait(1)
    check(text in vm.stderr, f'the message says: {vm.stderr}')
    return f'QEMU says "{text}"'


def run_cell(cell, work, rng, positions=5, replays=1):
    """One line that says what was seen; raises TestFailure or Skip."""
    lack = cell.lacks()
    if lack:
        raise Skip(lack)
    if cell.absent:
        return 'not built: ' + refused_by_qemu(cell, work, cell.absent)
    if cell.barred:
        return 'barred: ' + refused_by_qemu(cell, work, cell.barred)
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
    if cell.mini:
        line += compare_output(work, vm.run)
    if cell.pictures:
        check(len(vm.pictures) > 2, 'no pictures were taken')
        line += compare_pictures(cell, work, vm.run, vm.pictures, rng, 12)
    return line
