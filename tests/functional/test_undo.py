# SPDX-License-Identifier: GPL-2.0-or-later
"""Undo and redo of what was typed on a terminal of the guest, in the process that
records: a shell, a debugger and an editor, with a disk, and the keyboard."""

import fcntl
import glob
import json
import os
import pty
import re
import struct
import subprocess
import termios
import threading
import time

from guests import guest_args, linux_args, linux_disk
from programs import MOUNT, program_disk
from test_waiting import Hold, job_ends
from ttlib import (REPO, Gdb, Vm, check, digest_at, equal, goto, limit, one_sentence,
                   qemu_binary, recorder, replay, run_tool, stopped_replay, tool, tt,
                   wait_until)
from undoer import PROMPT, Terminal, counts, move, state, undo_recorder

SIZE = 400 << 20
INPUTS = 20
PAUSE = 1.5     # seconds: longer than a busy host takes for one line

DEBUGGED = b'''my $sum = 0;
for my $i (1 .. 5) {
    $sum += $i;
}
print "sum=$sum\\n";
'''


def perl_files():
    """What `perl -d` needs, as files of a disk."""
    asked = ('require "perl5db.pl"; require Term::ReadLine; require "dumpvar.pl"; '
             'require Term::Cap; require IO::Handle; require Cwd; '
             'require "Config_heavy.pl"; print map { "$_ $INC{$_}\\n" } keys %INC')
    said = subprocess.run(['/usr/bin/perl', '-e', asked], check=True, text=True,
                          capture_output=True, timeout=60, stdin=subprocess.DEVNULL,
                          env={'PERLDB_OPTS': 'NonStop=1 noTTY', 'TERM': 'dumb'}).stdout
    files = {}
    for line in said.splitlines():
        name, _, path = line.partition(' ')
        if os.path.isfile(path):
            with open(path, 'rb') as f:
                files[f'perl/{name}'] = f.read()
            base = os.path.dirname(path)
            for lib in ('auto/IO/IO.so', 'auto/Cwd/Cwd.so'):
                if os.path.isfile(os.path.join(base, lib)):
                    with open(os.path.join(base, lib), 'rb') as f:
                        files[f'perl/{lib}'] = f.read()
    return files


def disks(work):
    """vda to be written, vdb with perl and what it debugs."""
    files = {**perl_files(), 'sum.pl': DEBUGGED}
    path = program_disk(os.path.join(work, 'perl.img'), 'perl', more=files)
    return [*linux_disk(work), '-drive', f'file={path},format=raw,if=none,id=disk1',
            '-device', 'virtio-blk-pci,drive=disk1']


def undo_lines(vm, term):
    """Five lines of a shell are undone, and it is answered differently."""
    before = counts(vm)[0]
    term.line('a=1')
    for _ in range(4):
        term.line('a=$((a * 3))')
    equal(counts(vm), (before + 5, 0), 'inputs')
    term.line('echo "r"=$a', 'r=81')
    move(vm, 'undo', 6)
    equal(counts(vm), (before, 6), 'inputs after an undo of all')
    move(vm, 'redo', 5)
    term.line('echo "r"=$a,$((a + 1))', 'r=81,82')
    move(vm, 'undo', 6)
    term.line('a=7')
    term.line('a=$((a * 3))')
    term.line('echo "r"=$a', 'r=21')
    error = vm.qmp.error('tt-redo')
    check('nothing was undone' in error, error)
    move(vm, 'undo', 3)
    term.line('echo "r"=$a', 'r=\r\n')


def undo_disk(term, vm):
    """What was written to a disk is gone with the input that wrote it."""
    read = 'echo 3 > /proc/sys/vm/drop_caches; echo "r"=$(head -c 3 /dev/vda)'
    put = 'echo %s | dd of=/dev/vda conv=notrunc,fsync 2> /dev/null'
    term.line(put % 'one')
    term.line(put % 'two')
    term.line(read, 'r=two')
    move(vm, 'undo', 2)
    term.line(read, 'r=one')
    move(vm, 'undo', 1)
    move(vm, 'redo', 1)
    term.line(read, 'r=one')
    term.line(put % 'six')
    term.line(read, 'r=six')


def undo_debugger(vm, term):
    """perl -d: five steps back, and the loop goes on with another sum."""
    prompt = 'DB<'
    for line in MOUNT.splitlines():
        term.line(line)
    term.line('export PERL5LIB=/t/perl TERM=dumb')
    term.line('t perl -d /t/sum.pl', prompt)
    for _ in range(5):
        term.line('s', prompt)
    term.line('print "i=$i sum=$sum,"', 'i=4 sum=6,')
    move(vm, 'undo', 5)
    term.line('$sum = 1000', prompt)
    term.line('c', 'sum=1015')
    term.wait(prompt)
    term.line('q')


def undo_editor(vm, term):
    """A program that owns the screen: vi, key by key; a pause parts the keys."""
    term.forget()
    term.send('TERM=vt100 vi /tmp/text\r')
    term.wait('~')
    for key in 'iAB':
        known = counts(vm)[0]
        time.sleep(PAUSE + 0.1)             # a longer one does no harm
        term.send(key)
        wait_until(lambda n=known: counts(vm)[0] == n + 1, f'an input for {key}')
        if key != 'i':
            term.wait(key)
    move(vm, 'undo')
    term.send('X')
    term.wait('X')
    equal(counts(vm)[1], 0, 'what can be redone after another key')
    term.send('\033')
    time.sleep(PAUSE + 0.1)
    term.forget()
    term.send(':wq\r')
    term.wait(PROMPT)
    term.line('echo "r"=$(cat /tmp/text)', 'r=AX\r')


def same_states(vm, term):
    """Stopped, there and back is the same state; it is the recorded one."""
    root = vm.qmp.cmd('query-tt')['dir']
    term.line('b=1')
    term.line('b=2')
    term.line('b=3')
    vm.qmp.cmd('stop')
    tip, states = state(vm), {}
    for verb, count, where in (('undo', 2, 1), ('undo', 1, 0), ('redo', 2, 2),
                               ('undo', 1, 1), ('redo', 2, 3), ('undo', 3, 0)):
        move(vm, verb, count)
        equal(vm.qmp.cmd('query-status')['status'], 'paused', 'a stopped VM')
        now = state(vm)
        equal(now, tip if where == 3 else states.setdefault(where, now),
              f'state {where} after tt-{verb} {count}')
    equal(len({tip, *states.values()}), 4, 'states that differ')
    points = [c for c in vm.qmp.cmd('query-tt-checkpoints') if c['full']]
    check(not points, f'a branch that never ran has {points}')
    vm.qmp.cmd('cont')
    term.line('echo "r"=$b,', 'r=,')
    return root, states


def undo_end(vm, term):
    """The input that ended the VM is taken back."""
    term.send('poweroff -f\r')
    wait_until(lambda: vm.qmp.cmd('query-status')['status'] == 'shutdown', 'the end')
    move(vm, 'undo')
    equal(vm.qmp.cmd('query-status')['status'], 'running', 'alive')
    term.line('echo "r"=alive', 'r=alive')


def undo_keys(vm):
    """A key of the keyboard is an input, too."""
    undos = counts(vm)[0]
    vm.qmp.cmd('send-key', keys=[{'type': 'qcode', 'data': 'shift'}])
    wait_until(lambda: counts(vm)[0] == undos + 1, 'an input of the keyboard')
    move(vm, 'undo')
    equal(counts(vm), (undos, 1), 'after the undo of a key')


def check_runs(work, root, states):
    """Each branch says where it comes from; parent and child replay, and the parent has
    the states that the branches began with."""
    info = json.loads(tt('info', root, '--json').stdout)
    places = {c['position'] for c in info['full']}
    begun = {b['position'] for b in info['branches']}
    check(len(begun) >= 3 and begun <= places, f'branches of {root}: {info}')
    with stopped_replay(work, root, 'places', timeout=120) as vm:
        seen = {digest_at(vm, p)[1:] for p in sorted(places)}
    equal(set(states.values()) - seen, set(), 'states that the parent has not')


@limit(240)
def test_terminal(work):
    """One VM: shell, disk, debugger, editor, keyboard; then all of its runs replay."""
    args = [*disks(work), '-no-shutdown']
    with undo_recorder(work, args, options=f',undo-pause={PAUSE}', timeout=200) as vm:
        term = Terminal(vm.console)
        term.wait(PROMPT)
        check('nothing was typed' in vm.qmp.error('tt-undo'), 'an undo of nothing')
        undo_lines(vm, term)
        undo_disk(term, vm)
        undo_debugger(vm, term)
        undo_editor(vm, term)
        root, states = same_states(vm, term)
        undo_keys(vm)
        undo_end(vm, term)
        said = vm.qmp.hmp('tt undo 100000')
        check('can be undone' in said, said)
        last = vm.qmp.cmd('query-tt')['dir']
        vm.qmp.send('quit')
        vm.wait(0)
        term.close()
    check_runs(work, root, states)
    for run in (vm.run, last):
        rep = replay(work, run, name='exact', timeout=120)
        check('replay exact' in rep.stderr, rep.stderr)
    tt('check', last)


@limit(120)
def test_bounded(work):
    """With max-size the states far back become sparse; the command says which one is
    there, and that is exact."""
    with undo_recorder(work, options=f',max-size={SIZE}', timeout=100) as vm:
        term = Terminal(vm.console)
        term.wait(PROMPT)
        term.line('a=0')
        for _ in range(INPUTS):
            term.line('head -c 6000000 /dev/urandom > /tmp/f; a=$((a + 1))')
        store = vm.qmp.cmd('query-tt')['store']
        check(store['bytes'] < SIZE, f'the checkpoints take {store["bytes"]}')
        full = [c for c in vm.qmp.cmd('query-tt-checkpoints') if c['full']]
        check(2 < len(full) < INPUTS, f'{len(full)} states are kept of {INPUTS}')
        for count in range(INPUTS, 1, -1):
            said = vm.qmp.hmp(f'tt undo {count}')
            if 'the nearest is that of' in said:
                break
            move(vm, 'redo', count)
        found = re.search(r"the nearest is that of 'tt undo (\d+)'", said)
        check(found, f'none was thinned out: {said}')
        move(vm, 'undo', int(found.group(1)))
        term.line('echo "r"=$a,', f'r={INPUTS - int(found.group(1))},')
        vm.qmp.send('quit')
        vm.wait(0)


@limit(60)
def test_in_gdb(work):
    """gdb holds the VM: it undoes, sees the state of then, and does it again. Where the
    next run's directory cannot be made, nothing is lost."""
    with undo_recorder(work, Gdb.args(work, 'u')) as vm:
        term = Terminal(vm.console)
        term.wait(PROMPT)
        term.line('a=1')
        term.line('a=2')
        os.symlink('/nowhere', f'{vm.run}-undo-1')
        check('cannot create the run directory' in vm.qmp.error('tt-undo'), 'no directory')
        equal(vm.qmp.cmd('query-tt')['dir'], vm.run, 'what is recorded')
        term.line('echo "r"=$a,', 'r=2,')
        vm.qmp.cmd('tt-undo')
        gdb = Gdb(vm)
        look = ['p $tt_position', 'p/x $rsp']
        said = gdb(f'source {REPO}/scripts/tt-gdb.py', *look, 'tt undo 1', *look,
                   'tt redo', *look, 'tt undo 2', 'tt redo', 'tt undo x')
        seen = re.findall(r'^\$\d+ = (\w+)', said, re.M)
        check(len(seen) == 6 and int(seen[2]) == 0 and 'Traceback' not in said, said)
        check('takes a number of inputs' in said, said)
        vm.qmp.cmd('cont')
        term.line('echo "r"=$a', 'r=1')
        term.close()


@limit(100)
def test_jobs(work):
    """Undo and redo as jobs: refused at once, or they end and query-tt has the rest; one
    that is cancelled while its checkpoint waits for the disk changes nothing."""
    hold = Hold(work)
    os.environ.update(LD_PRELOAD=hold.library, TT_HOLD=hold.path)
    with undo_recorder(work, options=',checkpoint-interval=1000') as vm:
        del os.environ['LD_PRELOAD'], os.environ['TT_HOLD']
        term = Terminal(vm.console)
        term.wait(PROMPT)
        check('nothing was typed' in vm.qmp.error('tt-undo', job_id='u'), 'at once')
        equal(vm.qmp.cmd('query-jobs'), [], 'jobs')
        term.line('a=1')
        term.line('a=2')
        before = vm.qmp.cmd('query-tt')
        points = vm.qmp.cmd('query-tt-checkpoints')
        hold.on()
        said = vm.qmp.cmd('tt-undo', job_id='c')
        equal(said, {k: before[k] for k in said}, 'answer of a job')
        vm.qmp.cmd('job-cancel', id='c')
        hold.off()
        job_ends(vm, 'c', '')
        equal(vm.qmp.cmd('query-tt')['dir'], before['dir'], 'run after it was cancelled')
        equal(vm.qmp.cmd('query-tt-checkpoints'), points, 'checkpoints then')
        term.line('echo "r"=$a,', 'r=2,')
        vm.qmp.cmd('tt-undo', count=2, job_id='u')
        equal(job_ends(vm, 'u')['type'], 'tt-undo', 'job')
        info = vm.qmp.cmd('query-tt')
        equal((info['dir'] != before['dir'], info['redos']), (True, 2), 'after the undo')
        vm.qmp.cmd('tt-redo', job_id='r')
        equal(job_ends(vm, 'r')['type'], 'tt-redo', 'job')
        equal(counts(vm)[1], 1, 'redos')
        term.line('echo "r"=$a,', 'r=2,')
        vm.qmp.send('quit')
        vm.wait(0)
        term.close()


def unread(sock):
    """Was something sent on the Unix socket that is not read yet?"""
    return struct.unpack('i', fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4)))[0]


def undo_into_full(vm, term, hold):
    """The port is full in the state it goes back to, and empty in the one it leaves. The
    undo lasts until the text is read: the store waits for it."""
    term.line('echo 14 > /sys/class/tty/ttyS0/rx_trig_bytes')
    vm.qmp.cmd('stop')
    before = counts(vm)[0]
    for line in ('echo "r"1234\r', 'echo "s"\r'):
        before += 1
        term.send(line)
        wait_until(lambda n=before: counts(vm)[0] == n, 'an input')
    term.forget()
    vm.qmp.cmd('cont')
    term.wait('s\r\n')
    term.wait(PROMPT)
    term.forget()
    vm.qmp.cmd('stop')
    with open(hold, 'wb'):
        undo = vm.qmp.send('tt-undo')
        time.sleep(0.5)
        term.send('echo "t"1234\r')
        wait_until(lambda: not unread(term.sock), 'QEMU to read what is typed')
        check(not vm.qmp.has_answer(undo), 'the undo is over')
    os.remove(hold)
    equal(vm.qmp.answer(undo, 60)['undos'], before - 1, 'inputs: the text is none of them')
    time.sleep(1)                   # for its checkpoint; a VM that runs would make room
    vm.qmp.cmd('cont')
    term.wait('r1234')
    term.wait('t1234\r\n')


def undo_with_mux(vm, term, _):
    """A multiplexer's bytes wait for the port's word; after an undo that is another."""
    before = counts(vm)[0]
    vm.qmp.cmd('stop')
    term.send('v=1\r')
    wait_until(lambda: counts(vm)[0] == before + 1, 'an input')
    term.send('echo "w"123456789123456789\r')
    wait_until(lambda: counts(vm)[0] == before + 2, 'an input')
    wait_until(lambda: not unread(term.sock), 'what the multiplexer takes')
    term.forget()
    move(vm, 'undo', 2)
    vm.qmp.cmd('cont')
    term.wait('123456789\r\n')
    term.wait(PROMPT)
    undo_by_keys(vm, term)


def drop_by_key(vm, term):
    """What the port has no room for yet is undone with what it has: no end of it comes."""
    before, said = counts(vm)[0], len(term.text)
    term.forget()
    vm.qmp.cmd('stop')
    term.send('echo "d"123456789012345678\r')
    wait_until(lambda: counts(vm)[0] == before + 1, 'an input')
    wait_until(lambda: not unread(term.sock), 'what the multiplexer takes')
    term.send('\1u')
    term.wait('more can be undone')
    vm.qmp.cmd('cont')
    term.line('echo "k"$a', 'k0\r\n')
    check(b'5678' not in term.text[said:], f'{term.text[said:]}')


def undo_by_keys(vm, term):
    """The keys of a multiplexer; what is typed right after them comes after the undo."""
    for n in range(3):
        term.line(f'a={n}')
    before = counts(vm)
    term.forget()
    term.send('\1?')
    term.wait('C-a u    takes back')
    term.wait('C-a b    send break')
    term.send('\1u\1u' + 'echo "a"=$a\r')
    term.wait('more can be undone, 2 redone\r\n')
    term.wait('a=0\r\n')
    equal(counts(vm), (before[0] - 1, 0), 'counts after undos by keys')
    term.wait(PROMPT)
    term.send('\1r')
    term.wait('tt: nothing was undone that can be redone')
    term.send('\1u')
    term.wait('1 redone')
    term.send('\1r')
    term.wait('0 redone')
    term.line('echo "b"=$a', 'b=0\r\n')
    term.forget()
    vm.qmp.cmd('stop')              # refused: what the port has no room for yet stays
    term.send('echo "n"12345678901234567890\r')
    term.send('\1r')
    term.wait('tt: nothing was undone that can be redone')
    vm.qmp.cmd('cont')
    term.wait('n12345678901234567890\r\n')
    term.wait(PROMPT)
    drop_by_key(vm, term)
    term.send('\1u' * (counts(vm)[0] + 3))         # more than there are
    term.wait('tt: 0 more can be undone')


@limit(150)
def test_typed_ahead(work):
    """What is typed while an undo goes on reaches the guest whole."""
    slow, hold = os.path.join(work, 'slow_disk.so'), os.path.join(work, 'hold')
    run_tool('gcc', '-shared', '-fPIC', '-o', slow,
             os.path.join(REPO, 'tests/functional/slow_disk.c'))
    for case, mux, preload in ((undo_into_full, 'off', slow), (undo_with_mux, 'on', '')):
        os.environ.update(LD_PRELOAD=preload, SLOW_WHILE=hold)
        with undo_recorder(work, name=case.__name__, mux=mux, timeout=50) as vm:
            del os.environ['LD_PRELOAD'], os.environ['SLOW_WHILE']
            term = Terminal(vm.console)
            term.wait(PROMPT)
            case(vm, term, hold)
            vm.qmp.send('quit')
            vm.wait(0)
            term.close()
    for case in (undo_into_full, undo_with_mux):
        dirs = sorted(glob.glob(f'{work}/{case.__name__}.run*/manifest'))
        check(len(dirs) > 1, f'runs that {case.__name__} made: {dirs}')
        rep = replay(work, os.path.dirname(dirs[-1]), name=f'{case.__name__}-exact')
        check('replay exact' in rep.stderr, rep.stderr)


class Pty(Terminal):
    """A program on a terminal of its own."""

    def __init__(self, *args):
        pid, fd = pty.fork()
        if not pid:
            try:
                os.execv(args[0], args)
            finally:
                os._exit(127)
        self.pid, self.text, self.seen = pid, b'', 0
        self.sock, self.more = self, threading.Condition()
        self.fd = fd
        threading.Thread(target=self._read, daemon=True).start()

    def recv(self, size):
        return os.read(self.fd, size)

    def sendall(self, data):
        os.write(self.fd, data)

    def end(self):
        equal(os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]), 0, 'exit status')
        os.close(self.fd)


def use_term(term):
    term.wait(PROMPT)
    term.line('a=1')
    term.line('a=$((a + 1))')
    term.forget()
    term.send('\1u')
    term.wait('1 redone')
    term.line('echo "a"=$a', 'a=1\r')


@limit(90)
def test_term(work):
    """tt term: a new VM, then a branch of it, with undo keys on a real terminal."""
    run, branch = os.path.join(work, 'wörk dir'), os.path.join(work, 'zweig "1"')
    args = [*linux_args('shell', 'quiet', memory='128'), '-nic', 'none']
    term = Pty(tool('tt'), 'term', '--to', run, '--qemu', qemu_binary(), '--', *args)
    use_term(term)
    term.send('\1x')
    term.end()
    info = json.loads(tt('info', run, '--json').stdout)
    full = info['full']
    check(len(full) >= 2, f'full checkpoints: {full}')
    undone = os.path.join(work, info['branches'][0]['path'])
    with stopped_replay(work, undone, 'undone') as vm:
        goto(vm, position=vm.qmp.cmd('query-tt')['position'] + 1000)
    tt('check', undone)
    term = Pty(tool('tt'), 'term', run, '--at', str(full[1]['checkpoint']), '--to', branch,
               '--qemu', qemu_binary())
    term.wait('recording into')
    term.line('echo "a"=$a', 'a=1\r')
    term.forget()
    term.send('a=5\r')
    term.wait(PROMPT)
    term.send('\1u')
    term.wait('redone')
    term.line('echo "a"=$a', 'a=1\r')
    term.send('\1x')
    term.end()
    check('replay exact' in replay(work, branch, name='exact', timeout=60).stderr, branch)


def test_term_refuses(work):
    """What cannot be a terminal with undo is one sentence."""
    for args, why in (((), 'give a RUN'), (('--',), 'give a RUN'),
                      (('--at', '1', '--', '-m', '64'), 'need a RUN'),
                      (('--', '-serial', 'stdio'), 'mon:stdio'),
                      (('--', '-tt', 'record,dir=x'), 'undo=console'),
                      (('--', '-tt', 'replay,dir=x,undo=console'), 'undo=console'),
                      (('--to', '', '--', '-m', '64'), '--to is empty'),
                      (('--qemu', '/bin/true', '--', 'q', '-m', '64'), 'both say'),
                      (('--', '-serial', 'file:x', '-nographic'), 'mon:stdio'),
                      (('--to', 'x', '--', '-tt', 'record,undo=console'), 'leave one'),
                      ((work,), '--at is missing')):
        said = tt('term', *args, rc=2).stderr
        check(why in said, f'{args}: {said}')
    said = tt('term', '--', '/no/qemu', '-m', '64', rc=1).stderr
    check("cannot run '/no/qemu'" in said, said)
    for args, more in ((['-display', 'none'], "'-serial' 'mon:stdio'"),
                       (['-nographic'], "'-serial' 'mon:stdio'"),
                       (['-qmp', 'unix:x'], "'-display' 'none' '-serial' 'mon:stdio'"),
                       (['-serial', 'mon:stdio'], '')):
        said = tt('term', '--print', '--', 'q', *args).stdout
        words = ' '.join(f"'{a}'" for a in ['q', *args])
        equal(said.strip(), f"{words} '-tt' 'record,undo=console' {more}".strip(), 'command')


@limit(60)
def test_refusals(work):
    """What undo cannot do is said, and nothing is left."""
    args = guest_args(work, 'torture', 'rounds=100000 percent=30')
    for number, (options, why) in enumerate((
            ('undo=all', "undo takes 'console'"),
            ('undo-pause=1', 'with undo=console only'),
            ('undo=console,undo-pause=0', 'undo-pause takes seconds'),
            ('undo=console,undo-pause=x', 'undo-pause takes seconds'),
            ('undo=console,last=10s', 'last='), ('undo=console,guard=on', 'guard=on'),
            ('undo=console,disk=commit', 'disk=commit'),
            ('undo=console,disk=image', 'disk=image'))):
        with recorder(work, args, f'no{number}', f',{options}') as vm:
            vm.wait(1)
        check(why in one_sentence(vm, options), vm.stderr)
        check(not os.path.exists(vm.run), f'{options} left {vm.run}')
    long = os.path.join(work, 'n' * 241)
    with Vm(work, [*args, '-tt', f'record,undo=console,dir={long}'], name='long') as vm:
        vm.wait(1)
    check('too long' in one_sentence(vm, 'long'), vm.stderr)
    check(not os.path.exists(long), 'a run of a name that is too long')
    with Vm(work, [*args, '-tt', f'record,undo=console,dir={work}/a\nb'], name='odd') as vm:
        vm.wait(1)
    check('control characters' in one_sentence(vm, 'odd'), vm.stderr)
    check(not os.path.exists(f'{work}/a\nb'), 'a run of an odd name')
    with recorder(work, args, 'plain', qmp=1) as vm:
        check('undo=console' in vm.qmp.error('tt-undo'), 'an undo without the option')
        check('undo=console' in vm.qmp.hmp('tt redo'), 'a redo without the option')
        check('a number of inputs' in vm.qmp.hmp('tt undo 0'), 'tt undo 0')
        check('a number of inputs' in vm.qmp.hmp('tt undo -1'), 'tt undo -1')
        check('a number of inputs' in vm.qmp.hmp('tt undo 4294967296'), 'too large')
        check('at least 1' in vm.qmp.error('tt-undo', count=0), 'count 0')
