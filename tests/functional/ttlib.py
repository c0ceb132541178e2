# SPDX-License-Identifier: GPL-2.0-or-later
"""What the functional tests are built of: VMs, QMP, gdb, runs and digests.

A Vm is one QEMU process with a bounded life, a QMP socket and its console in
a file. record() and replay() start one with -tt. Everything a test makes
lies in its work directory, so that the runner can keep it as evidence.
"""

import collections
import contextlib
import http.server
import hashlib
import json
import os
import random
import re
import shutil
import signal
import select
import socket
import subprocess
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
REPO = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(REPO, 'build')

# Multiplies every time limit; the runner's --slow sets it.
SLOW = float(os.environ.get('TT_SLOW', '3'))


class TestFailure(Exception):
    """The promise of a test does not hold; the text says how."""


class Skip(Exception):
    """The test cannot run here; the text says what is missing."""


def fail(message):
    raise TestFailure(message)


def check(condition, message):
    if not condition:
        raise TestFailure(message)


def equal(seen, wanted, what):
    if seen != wanted:
        raise TestFailure(f'{what}: {short(seen)} instead of {short(wanted)}')


def short(value, most=200):
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= most else text[:most] + '...'


def limit(seconds):
    """Gives a test another time limit than the runner's default."""
    def mark(function):
        function.limit = seconds
        return function
    return mark


def seed():
    """A printed seed: a failing random test can be run again."""
    value = int(os.environ.get('TT_SEED', random.randrange(1 << 32)))
    print(f'seed {value} (repeat with TT_SEED={value})')
    return random.Random(value)


def qemu_binary():
    path = os.environ.get('TT_QEMU',
                          os.path.join(BUILD, 'qemu-system-x86_64'))
    check(os.access(path, os.X_OK),
          f'there is no QEMU binary {path}: run scripts/build first')
    return path


def tool(name):
    path = os.path.join(os.path.dirname(qemu_binary()), name)
    if not os.access(path, os.X_OK):
        path = os.path.join(BUILD, name)
    check(os.access(path, os.X_OK),
          f'there is no {name} beside the QEMU binary: run scripts/build')
    return path


def run_tool(*argv, timeout=30, rc=0):
    """Runs a program to its end; returns (stdout, stderr) as text."""
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, text=True,
                          capture_output=True, timeout=timeout * SLOW,
                          errors='replace')
    if rc is not None and done.returncode != rc:
        fail(f'{os.path.basename(argv[0])} {" ".join(argv[1:])} ended with '
             f'{done.returncode} instead of {rc}: '
             f'{short(done.stderr or done.stdout)}')
    return done.stdout, done.stderr


def tt(*args, rc=0, timeout=200):
    """Runs the tt tool; rc None: whatever it ends with."""
    done = subprocess.run([tool('tt'), *args], capture_output=True, text=True,
                          timeout=timeout * SLOW)
    if rc is not None:
        equal(done.returncode, rc, f'tt {" ".join(args)}: {done.stdout}'
              f'{done.stderr}')
    return done


def wait_until(condition, what, timeout=20):
    end = time.monotonic() + timeout * SLOW
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            fail(f'not within {timeout} s: {what}')
        time.sleep(0.01)


def listens(path):
    """Does a process listen at the path of a socket? That it is there may be earlier, and
    to connect would stop the VM."""
    accepts = 1 << 16                   # __SO_ACCEPTCON of the kernel
    for line in read_text('/proc/net/unix').splitlines()[1:]:
        words = line.split(maxsplit=7)
        if len(words) == 8 and words[7] == path and int(words[3], 16) & accepts:
            return True
    return False


class QmpError(TestFailure):
    """QEMU answered a command with an error."""


class Qmp:
    """A QMP connection; answers are matched by id, events are kept."""

    def __init__(self, path, timeout=15, process=None):
        self.timeout = timeout
        self.process = process
        self.events = collections.deque()
        self.answers = {}
        self.next_id = 1
        self.pending = b''
        self.sock = self._connect(path)
        greeting = self._read_message(timeout)
        while 'event' in greeting:      # QEMU may tell one while a client connects
            self.events.append(greeting)
            greeting = self._read_message(timeout)
        check('QMP' in greeting, f'no QMP greeting but {greeting}')
        self.oob = 'oob' in greeting['QMP'].get('capabilities', [])
        enable = {'enable': ['oob']} if self.oob else {}
        self.cmd('qmp_capabilities', **enable)

    def _connect(self, path):
        end = time.monotonic() + self.timeout * SLOW
        while True:
            sock = socket.socket(socket.AF_UNIX)
            try:
                sock.connect(path)
                return sock
            except OSError as error:
                sock.close()
                ended = self.process and self.process.poll() is not None
                if time.monotonic() > end or ended:
                    fail(f'cannot connect to QMP at {path}: {error}')
                time.sleep(0.02)

    def close(self):
        self.sock.close()

    def _read_message(self, timeout):
        end = time.monotonic() + timeout * SLOW
        while b'\n' not in self.pending:
            left = end - time.monotonic()
            if left <= 0:
                fail(f'no answer on QMP within {timeout} s')
            self.sock.settimeout(left)
            try:
                data = self.sock.recv(1 << 16)
            except socket.timeout:
                continue
            except OSError as error:
                fail(f'QMP connection broke: {error}')
            if not data:
                fail('QEMU closed the QMP connection')
            self.pending += data
        line, self.pending = self.pending.split(b'\n', 1)
        return json.loads(line)

    def _take(self, timeout):
        message = self._read_message(timeout)
        if 'event' in message:
            self.events.append(message)
        else:
            self.answers[message.get('id')] = message

    def send(self, command, oob=False, **arguments):
        """Sends a command and returns its id, without waiting."""
        number = self.next_id
        self.next_id += 1
        request = {'exec-oob' if oob else 'execute': command, 'id': number}
        if arguments:
            request['arguments'] = arguments
        self.sock.sendall(json.dumps(request).encode() + b'\n')
        return number

    def has_answer(self, number):
        while number not in self.answers and (
                self.pending or select.select([self.sock], [], [], 0)[0]):
            self._take(self.timeout)
        return number in self.answers

    def answer(self, number, timeout=None):
        end = time.monotonic() + (timeout or self.timeout) * SLOW
        while number not in self.answers:
            left = (end - time.monotonic()) / SLOW
            if left <= 0:
                fail(f'no answer to QMP command {number} in time')
            self._take(left)
        message = self.answers.pop(number)
        if 'error' in message:
            raise QmpError(message['error']['desc'])
        return message['return']

    def cmd(self, command, timeout=None, **arguments):
        arguments = {k.replace('_', '-'): v for k, v in arguments.items()}
        try:
            return self.answer(self.send(command, **arguments), timeout)
        except QmpError:
            raise
        except TestFailure as error:
            raise TestFailure(f'{command}: {error}') from None

    def sends(self, *commands):
        """Commands, or pairs of one and its arguments, that come to QEMU in one piece, however
        slow this process is; returns their ids."""
        numbers = range(self.next_id, self.next_id + len(commands))
        self.next_id += len(commands)
        requests = []
        for command, number in zip(commands, numbers):
            name, arguments = (command, {}) if isinstance(command, str) else command
            requests.append({'execute': name, 'id': number, 'arguments': arguments})
        self.sock.sendall(b''.join(json.dumps(r).encode() + b'\n' for r in requests))
        return list(numbers)

    def cmds(self, *commands):
        """Their answers."""
        return [self.answer(number) for number in self.sends(*commands)]

    def error(self, command, **arguments):
        """Runs a command that must fail; returns its message."""
        try:
            value = self.cmd(command, **arguments)
        except QmpError as error:
            return str(error)
        fail(f'{command} {arguments} was accepted: {short(value)}')
        return ''

    def hmp(self, line, timeout=None):
        return self.cmd('human-monitor-command', timeout,
                        command_line=line).replace('\r', '')

    def event(self, name, timeout=None):
        """Takes the oldest event of that name, waiting for one."""
        end = time.monotonic() + (timeout or self.timeout) * SLOW
        while True:
            for message in self.events:
                if message['event'] == name:
                    self.events.remove(message)
                    return message.get('data', {})
            left = (end - time.monotonic()) / SLOW
            if left <= 0:
                fail(f'no event {name} in time')
            self._take(left)


class Vm:
    """One QEMU process: use it in a with statement, so that it ends.

    qmp is the number of QMP sockets (each serves one client at a time). With typed=True
    the serial port takes what type() sends.
    """

    count = 0

    def __init__(self, work, args, name=None, qmp=0, serial=True, typed=False,
                 timeout=60, cwd=None, binary=None):
        Vm.count += 1
        self.name = name or f'vm{Vm.count}'
        self.work = work
        self.base = os.path.join(work, self.name)
        self.args = [binary or qemu_binary(), *args]
        self.deadline = time.monotonic() + timeout * SLOW
        self.timeout = timeout
        self.monitor = None
        self.process = None
        self.cwd = cwd
        self.serial_path = f'{self.base}.serial'
        if typed:
            self.args += ['-chardev', f'socket,id=typed,path={self.socket_path("con")},'
                          f'server=on,wait=off,logfile={self.serial_path}',
                          '-serial', 'chardev:typed']
        elif serial:
            self.args += ['-serial', f'file:{self.serial_path}']
        self.qmp_paths = [self.socket_path(f'qmp{i}') for i in range(qmp)]
        for path in self.qmp_paths:
            self.args += ['-qmp', f'unix:{path},server=on,wait=off']

    def socket_path(self, kind):
        """Socket names are limited to some 100 bytes, so keep them short."""
        path = f'{self.base}.{kind}'
        check(len(path) < 100, f'the work directory has too long a name: '
                               f'{path}')
        return path

    def __enter__(self):
        return self.start()

    def __exit__(self, *unused):
        self.kill()

    def start(self):
        if f'file:{self.serial_path}' in self.args and os.path.exists(self.serial_path):
            os.remove(self.serial_path)     # that of an earlier Vm of this name
        with open(f'{self.base}.cmd', 'w', encoding='utf-8') as out:
            out.write(' '.join(self.args) + '\n')
        with open(f'{self.base}.stderr', 'wb') as err, \
                open(f'{self.base}.stdout', 'wb') as out:
            self.process = subprocess.Popen(
                self.args, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                cwd=self.cwd or self.work)
        return self

    @property
    def qmp(self):
        if not self.monitor:
            self.monitor = self.connect(0)
        return self.monitor

    def connect(self, number):
        """A connection to QMP socket number; 0 is the one of vm.qmp."""
        try:
            return Qmp(self.qmp_paths[number], process=self.process)
        except TestFailure as error:
            self.check_alive(str(error))
            raise

    def check_alive(self, context):
        if self.process.poll() is not None:
            fail(f'{self.name} ended early with {self.process.returncode} '
                 f'({context}): {short(self.stderr)}')

    @property
    def stderr(self):
        return read_text(f'{self.base}.stderr')

    @property
    def stdout(self):
        return read_bytes(f'{self.base}.stdout')

    @property
    def serial(self):
        return read_bytes(self.serial_path)

    def wait(self, rc=None):
        """Waits for the process' own end; checks its exit status."""
        left = max(10 * SLOW, self.deadline - time.monotonic())
        try:
            self.process.wait(left)
        except subprocess.TimeoutExpired:
            self.kill()
            fail(f'{self.name} did not end within {self.timeout} s; '
                 f'console ends with {short(self.serial[-160:])}; '
                 f'stderr: {short(self.stderr)}')
        seen = self.process.returncode
        if rc is not None and seen != rc:
            fail(f'{self.name} ended with {describe_status(seen)} instead of '
                 f'{rc}: {short(self.stderr) or "(nothing on stderr)"}')
        return seen

    def kill(self):
        if self.monitor:
            self.monitor.close()
            self.monitor = None
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def signal(self, number):
        self.process.send_signal(number)

    def cpu_seconds(self):
        with open(f'/proc/{self.process.pid}/stat', encoding='ascii') as f:
            fields = f.read().rsplit(')', 1)[1].split()
        ticks = int(fields[11]) + int(fields[12])
        return ticks / os.sysconf('SC_CLK_TCK')

    def type(self, line):
        """Types a line at the serial port of a Vm with typed=True."""
        def reached():                  # its path is there before it listens
            with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
                keys.connect(f'{self.base}.con')
                return True
            return False

        with socket.socket(socket.AF_UNIX) as keys:
            keys.settimeout(30 * SLOW)
            wait_until(reached, f'the port of {self.name}')
            keys.sendall(line.encode() + b'\r')
            # It is taken when the other side has read it; then the port is free again.
            keys.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionError):
                while keys.recv(4096):
                    pass

    def wait_serial(self, text, timeout=30):
        """Waits until the console shows a text."""
        needle = text.encode()

        def shown():
            has_ended = self.process.poll() is not None     # before it is read
            if needle in self.serial:
                return True
            if has_ended:
                self.check_alive(f'waiting for "{text}" on the console')
            return False
        wait_until(shown, f'"{text}" on the console of {self.name}', timeout)


def describe_status(status):
    if status < 0:
        return f'signal {signal.Signals(-status).name}'
    return f'exit status {status}'


def read_bytes(path):
    try:
        with open(path, 'rb') as f:
            return f.read()
    except FileNotFoundError:
        return b''


def read_text(path):
    return read_bytes(path).decode(errors='replace')


def one_sentence(vm_or_text, what):
    """Checks a refusal: one clear line, nothing else, no crash."""
    text = vm_or_text if isinstance(vm_or_text, str) else vm_or_text.stderr
    lines = [line for line in text.split('\n') if line.strip()]
    equal(len(lines), 1, f'{what}: lines on stderr ({short(text)})')
    check(lines[0].isprintable(),
          f'{what}: control characters in the message: {lines[0]!r}')
    line = re.sub(r'^\S*qemu-system-x86_64: ', '', lines[0])
    check(len(line.split()) >= 4, f'{what}: no clear sentence: {line}')
    return line


# Guests

MACHINE = ['-M', 'pc', '-cpu', 'qemu64', '-m', '64', '-nodefaults',
           '-display', 'none', '-no-reboot']


def build_guest(name):
    """Builds tests/guests/NAME and returns its ELF file."""
    out = os.path.join(BUILD, 'guests')
    run_tool(os.path.join(REPO, 'tests', 'guests', 'build'), '-o', out, name,
             timeout=60)
    return os.path.join(out, f'{name}.elf')


def edit_manifest(run, change):
    """Puts change(text) into a run directory, with a checksum that fits."""
    name = os.path.join(run, 'manifest')
    with open(name, encoding='utf-8') as manifest:
        text = manifest.read()
    changed = change(text[:text.rindex('# sha256 ')])
    check(changed not in text, f'no change: {text}')
    digest_of = hashlib.sha256(changed.encode()).hexdigest()
    with open(name, 'w', encoding='utf-8') as manifest:
        manifest.write(f'{changed}# sha256 {digest_of}\n')


class Run:
    """A finished (or killed) recording."""

    def __init__(self, path, serial, vm):
        self.dir = path
        self.serial = serial
        self.vm = vm

    def size(self):
        total = 0
        for folder, _, files in os.walk(self.dir):
            for name in files:
                total += os.path.getsize(os.path.join(folder, name))
        return total


def recorder(work, args, name='rec', options='', **kw):
    """A Vm that records to WORK/NAME.run; start it with 'with'."""
    path = os.path.join(work, f'{name}.run')
    shutil.rmtree(path, ignore_errors=True)
    vm = Vm(work, [*args, '-tt', f'record,dir={path}{options}'], name=name,
            **kw)
    vm.run = path
    return vm


def record(work, args, name='rec', options='', rc=0, **kw):
    """Records a guest to its own end."""
    with recorder(work, args, name, options, **kw) as vm:
        vm.wait(rc)
        return Run(vm.run, vm.serial, vm)


def record_in_parts(work, args, name='rec', least=2, interval=0.02):
    """A run with so many checkpoints: on a busy host there may be fewer, as the recorder
    leaves one out that is due while the one before is being stored."""
    for _ in range(8):
        run = record(work, args, name=name, options=f',checkpoint-interval={interval}').dir
        found, _ = run_tool(tool('tt'), 'info', run, '--json')
        if json.loads(found)['checkpoints'] >= least:
            return run
    raise TestFailure(f'no recording of eight has {least} checkpoints')


def ends_behind_checkpoints(vm, least=1):
    """Stopped behind the last one, by so many positions: a VM that is told to end while one is
    made ends there."""
    vm.qmp.cmd('stop')
    here = vm.qmp.cmd('query-tt')['position']
    last = max(c['position'] for c in vm.qmp.cmd('query-tt-checkpoints'))
    if here >= last + least:
        return True
    vm.qmp.cmd('cont')
    return False


def replayer(work, run, args=(), name='rep', options='', **kw):
    """A Vm that replays a run (a Run or a directory)."""
    path = run.dir if isinstance(run, Run) else run
    return Vm(work, ['-tt', f'replay,dir={path}{options}', '-display', 'none',
                     *args], name=name, **kw)


def replay(work, run, args=(), name='rep', options=',at-end=exit', rc=0,
           **kw):
    """Replays to the end of the run; returns the ended Vm."""
    with replayer(work, run, args, name, options, **kw) as vm:
        vm.wait(rc)
        return vm


def check_exact(work, run, args=(), name='rep', serial_wanted=None, **kw):
    """A replay is exact: status 0, no divergence, the same console."""
    vm = replay(work, run, args, name, **kw)
    check('diverged' not in vm.stderr,
          f'{name} says diverged but ends with 0: {short(vm.stderr)}')
    if serial_wanted is None:
        serial_wanted = run.serial
    same_console(vm.serial, serial_wanted, name)
    return vm


def same_console(seen, wanted, name):
    if seen == wanted:
        return
    at = next((i for i, (a, b) in enumerate(zip(seen, wanted)) if a != b),
              min(len(seen), len(wanted)))
    fail(f'{name}: console differs at byte {at} of {len(wanted)}: '
         f'{seen[max(0, at - 20):at + 20]!r} instead of '
         f'{wanted[max(0, at - 20):at + 20]!r}')


# Travelling

def stopped_replay(work, run, name='rep', args=(), **kw):
    """A replay that stands at its start with QMP."""
    kw.setdefault('qmp', 1)
    return replayer(work, run, ['-S', *args], name, **kw)


def goto(vm, timeout=60, **where):
    """tt-goto; checks that it stands where it says."""
    answer = vm.qmp.cmd('tt-goto', timeout, **where)
    status = vm.qmp.cmd('query-tt')
    equal(status['position'], answer['position'],
          f'position in query-tt after tt-goto {where}')
    return answer


def stands_behind_a_trap(vm):
    """At the trap of a watchpoint in the guest's own debug registers: it comes
    together with its instruction, nothing stands between the two."""
    dr6 = re.search(r'DR6=([0-9a-f]+)', vm.qmp.hmp('info registers'))
    return int(dr6.group(1), 16) & 0xf != 0


def goto_exact(vm, position, timeout=60):
    """Goes there, or to the next position if none can stand there."""
    answer = goto(vm, timeout, position=position)
    if answer['position'] == position + 1 and stands_behind_a_trap(vm):
        position += 1
    equal((answer['position'], answer['reason']), (position, 'target'),
          f'tt-goto {position}')


def run_to_end(vm, timeout=60):
    """From here on all of it is executed, and no checkpoint restored."""
    status = vm.qmp.cmd('query-tt')
    if status['position'] == status['end']:
        return
    vm.qmp.events.clear()
    vm.qmp.cmd('cont')
    equal(vm.qmp.event('TT_STOPPED', timeout),
          {'position': status['end'], 'reason': 'end'}, 'TT_STOPPED')


def digest(vm):
    value = vm.qmp.cmd('query-tt-digest', 60)
    for part in ('cpu', 'ram'):
        check(re.fullmatch('[0-9a-f]{16}', value[part]),
              f'digest has no 16 hex digits: {value}')
    return value['position'], value['cpu'], value['ram']


def digest_at(vm, position, timeout=60):
    goto_exact(vm, position, timeout)
    return digest(vm)


def end_of(vm):
    return vm.qmp.cmd('query-tt')['end']


# gdb

# gdb gives up on who says nothing for 2 s, as a QEMU does on a busy host.
GDB_PATIENCE = f'set remotetimeout {int(60 * SLOW)}'


class Gdb:
    """Batch sessions of the stock gdb with one gdbstub."""

    def __init__(self, vm, arch='i386:x86-64'):
        self.vm, self.arch = vm, arch
        self.path = vm.socket_path('gdb')
        self.calls = 0
        self.program = os.environ.get('TT_GDB', 'gdb')
        if not shutil.which(self.program):
            raise Skip(f'{self.program} is not installed')

    @staticmethod
    def args(work, name):
        path = os.path.join(work, f'{name}.gdb')
        return ['-chardev',
                f'socket,id=gdb0,path={path},server=on,wait=off',
                '-gdb', 'chardev:gdb0']

    def ready(self):
        """Waits until gdb can connect; returns where."""
        def is_there():
            self.vm.check_alive('waiting for the gdb socket')
            return listens(self.path)
        wait_until(is_there, 'the gdb socket')
        return self.path

    def __call__(self, *commands, timeout=60):
        """Runs commands in one session; returns gdb's output as text."""
        self.calls += 1
        self.ready()
        argv = [self.program, '-nx', '-batch', '-q', '-ex', 'set pagination off',
                '-ex', 'set confirm off', '-ex', GDB_PATIENCE,
                '-ex', f'set architecture {self.arch}']
        argv += ['-ex', f'target remote {self.path}']
        for command in commands:
            argv += ['-ex', command]
        argv += ['-ex', 'disconnect']
        try:
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, text=True,
                                  stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, errors='replace',
                                  timeout=timeout * SLOW)
        except subprocess.TimeoutExpired as error:
            text = (error.stdout or b'').decode(errors='replace')
            self._log(commands, text)
            fail(f'gdb did not end within {timeout} s after '
                 f'{commands}: ...{text[-200:]}')
        self._log(commands, done.stdout)
        check('Remote connection closed' not in done.stdout,
              f'the gdbstub closed the connection: {short(done.stdout)}')
        return done.stdout

    def _log(self, commands, text):
        with open(f'{self.vm.base}.gdb-log', 'a', encoding='utf-8') as out:
            out.write(f'--- session {self.calls}: {commands}\n{text}\n')

    def values(self, *commands, **kw):
        """Runs commands; returns what each "p/x" or "output" said, $N order.
        """
        text = self(*commands, **kw)
        return [int(v, 16) for v in
                re.findall(r'^\$\d+ = (0x[0-9a-f]+)', text, re.M)]


# A web server for guests

@contextlib.contextmanager
def web_server(files):
    """Serves {path: bytes} on a free loopback port; yields the port."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = files.get(self.path)
            if body is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header('Content-Length', str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *unused):
            pass

    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
