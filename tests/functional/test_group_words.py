# SPDX-License-Identifier: GPL-2.0-or-later
"""What tt group says is so, and what it advises helps: of groups that cannot go on, of members
that never met, of sockets and lists that are not what they should be."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess

from group_peer import is_read
from guests import guest_args
from strangers import Member, ethernet
from test_group import group_points, hub, nic, stop_process
from test_group_live import CONSOLE, quit_all
from test_group_tool import SENT, delivered, forge, golden_logs, incident
from ttlib import (MACHINE, SLOW, check, equal, limit, one_sentence, read_bytes,
                   read_text, record, recorder, seed, tool, tt, wait_until)

ENDLESS = 'rounds=1000000 percent=30'
# Stands still and is never connected, without a word.
SILENT = '''#!/usr/bin/env python3
import re, socket, sys
peer = socket.socket(fileno=int(re.search('fd=([0-9]+)', ' '.join(sys.argv))[1]))
peer.sendall(b'{"QMP": {}}\\n')
for _ in peer.makefile():
    peer.sendall(b'{"return": [{"state": "connecting", "address": ADDRESS}]}\\n')
'''


def key_file(work, name, text):
    path = os.path.join(work, name)
    with open(path, 'w', encoding='ascii') as out:
        out.write(f'{text} and more than sixteen bytes')
    os.chmod(path, 0o600)
    return path


def sentences(said, what):
    """What is on stderr without notes: one sentence."""
    return one_sentence(''.join(line for line in said.splitlines(True)
                                if not line.startswith('tt: note: ')), what)


def ask_both(folder, vms):
    """Until a checkpoint of both is in both logs."""
    def both_have_one():
        return any(sorted(p['members']) == ['a', 'b'] for p in group_points(folder))

    def again():
        for vm in vms.values():
            vm.qmp.cmd('tt-checkpoint-add', 60, group=True)
        return both_have_one()

    wait_until(again, 'a checkpoint of both', 60)


@limit(240)
def test_at_a_hub(work):
    """Two members at a hub with a key, in a directory whose name is not ASCII. While they are
    recorded the group does not go on, and what is printed says why. Later it does, but not
    with a hub that turns all away, nor with a program that is no QEMU; its commands are
    printed without any hub."""
    key = key_file(work, 'key', 'a')
    folder, where = os.path.join(work, 'group'), os.path.join(work, 'hüb 𝄞')
    os.makedirs(folder)
    os.mkdir(where)
    with hub(where, '--key-file', key) as path, contextlib.ExitStack() as running:
        vms = {}
        for number, name in enumerate('ab', 1):
            args = [*guest_args(work, 'torture', ENDLESS),
                    *nic(number, f'connect={path},key-file={key}')]
            vms[name] = running.enter_context(recorder(work, args, f'group/{name}', qmp=2,
                                                       timeout=100))
            wait_until(lambda vm=vms[name]: 'connected' in vm.qmp.hmp('info network'), name)
        for vm in vms.values():
            wait_until(lambda vm=vm: vm.qmp.cmd('query-tt')['position'] > 0, 'it runs')
        said = tt('group', 'checkpoint', vms['a'].qmp_paths[1]).stdout
        check(said.endswith(', and tells the others\n'), said)
        ask_both(folder, vms)
        check_still_recorded(work, folder)
        quit_all(vms)
    check_no_hub(work, folder, path)


def check_still_recorded(work, folder):
    for more in [], ['--print'], ['--hub', '']:
        done = tt('group', 'live', folder, '--to', f'{work}/second', *more, rc=1)
        check('a is still being recorded: the group can go on when' in
              sentences(done.stderr, f'{more}'), done.stderr)
    # One note for all of them.
    said = tt('group', 'info', folder).stderr
    check('these runs are being recorded' in one_sentence(said, 'tt group info'), said)
    check('a.run' in said and 'b.run' in said, said)


def check_no_hub(work, folder, path):
    second = os.path.join(work, 'second')
    said = tt('group', 'live', folder, '--to', second, '--print').stdout
    equal(said.count(f'connect={path}'), 2, 'commands that are printed')
    said = one_sentence(tt('group', 'live', folder, '--to', second, rc=1).stderr, 'no hub')
    check('nobody is at' in said, said)
    other = key_file(work, 'other', 'b')
    for more in f',key-file={other}', '':
        done = tt('group', 'live', folder, '--to', second, '--hub', '', '--without',
                  'netdev', *CONSOLE, 'null', '-netdev',
                  f'tt,id=net0,group=g,connect={path}{more}', rc=1)
        check(not done.stdout and not os.path.exists(second), f'{done}')
        check(re.search('^tt: a does not come to the hub that --hub has started: .*key',
                        one_sentence(done.stderr, 'another key')), done.stderr)
    done = tt('group', 'live', folder, '--to', second, '--hub', '', '--qemu', '/bin/true',
              *CONSOLE, 'null', rc=1)
    check("a did not begin: '/bin/true' ended without a word: is it the QEMU of TTVM" in
          one_sentence(done.stderr, 'no QEMU'), done.stderr)
    check_bad_qemu(work, folder, path)
    check_hub_ends(work, folder)
    # A hub that takes one only; and one for all.
    done = tt('group', 'live', folder, '--to', second, '--hub', '--members 1', *CONSOLE,
              'null', rc=1)
    check('does not come to the hub' in one_sentence(done.stderr, 'one member'), done.stderr)
    with subprocess.Popen([tool('tt'), 'group', 'live', folder, '--to', second, '--hub',
                           '', *CONSOLE, 'null'], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        said = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        _, wrong = process.communicate(timeout=60 * SLOW)
    check('the group goes on from @group-' in said, f'{said} {wrong}')
    run = f'{folder}/a.run'
    for frames, why in ('x', 'the recording has no frame stores'), ('', '--frames is empty'):
        check(why in tt('branch', run, '--at', '@group-1', '--frames', frames, '--print',
                        rc=2).stderr, f'--frames {frames}')
    check_lost(work, folder)


def program(work, name, text):
    path = os.path.join(work, name)
    with open(path, 'w', encoding='ascii') as out:
        out.write(text)
    os.chmod(path, 0o700)
    return path


def check_bad_qemu(work, folder, path):
    """A QEMU that crashes, and one that does not say why it is not connected."""
    live = ['group', 'live', folder, '--to', f'{work}/second', '--hub', '', '--qemu']
    crashes = program(work, 'crashes', '#!/bin/sh\nkill -SEGV $$\n')
    said = one_sentence(tt(*live, crashes, *CONSOLE, 'null', rc=1).stderr, 'it crashes')
    check(f"a did not begin: '{crashes}' was ended by signal 11" in said, said)
    silent = program(work, 'silent', SILENT.replace('ADDRESS', json.dumps(f'unix:{path}')))
    said = one_sentence(tt(*live, silent, *CONSOLE, 'null', rc=1).stderr, 'it is silent')
    check(said.endswith('a does not come to the hub that --hub has started: it does not say '
                        'why'), said)


def hub_of(process):
    """The hub that this tt group live has started."""
    pids = read_text(f'/proc/{process.pid}/task/{process.pid}/children').split()
    return [int(pid) for pid in pids if b'\0hub\0' in read_bytes(f'/proc/{pid}/cmdline')][0]


def check_hub_ends(work, folder):
    """The hub ends before the members are there; and it hangs, and is ended all the same."""
    def going_on(to, members):
        return subprocess.Popen([tool('tt'), 'group', 'live', folder, '--to', to, '--hub',
                                 f'--members {members}', *CONSOLE, 'null'], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    with going_on(f'{work}/second', 1) as process:
        wait_until(lambda: os.path.exists(f'{work}/second/b.out'), 'the members begin')
        os.kill(hub_of(process), signal.SIGKILL)
        _, wrong = process.communicate(timeout=60 * SLOW)
    said = one_sentence(wrong, 'the hub was killed')
    check('the hub that --hub has started was ended by signal 9 before' in said, said)
    with going_on(f'{work}/third', 2) as process:
        check('goes on from' in process.stdout.readline(), 'the group goes on')
        pid = hub_of(process)
        try:
            stop_process(pid)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60 * SLOW)
        finally:
            if process.poll() is None:
                os.kill(pid, signal.SIGKILL)
                process.kill()
    check(not os.path.exists(f'/proc/{pid}'), 'the hub is still there')


def check_lost(work, folder):
    """The checkpoint of a member is damaged or deleted: the list says so, and so do tt group
    live and tt branch."""
    number = [p['number'] for p in group_points(folder) if len(p['members']) == 2][-1]
    for name, change, why in (
            ('pages', lambda path: os.truncate(path, 30000), 'this file has lost pages'),
            ('checkpoints', lambda path: spoil(path, 200), 'checkpoints: '),
            ('pages', os.unlink, 'the stored checkpoints are lost')):
        part = os.path.join(work, 'part')
        shutil.copytree(folder, part)
        change(os.path.join(part, 'b.run', name))
        done = tt('group', 'checkpoints', part)
        check(re.search(r'^  b +\d+  .*; its files no longer have it$', done.stdout, re.M),
              done.stdout)
        check(not re.search(r'^  a .*no longer', done.stdout, re.M), done.stdout)
        said = one_sentence(done.stderr, f'tt group checkpoints, {name}')
        check('the checkpoints of b are damaged: ' in said and why in said, said)
        listed = json.loads(tt('group', 'checkpoints', part, '--json').stdout)['checkpoints']
        equal([p['lost'] for p in listed if p['number'] == number], [['b']], 'lost, in JSON')
        said = one_sentence(tt('group', 'live', part, '--to', f'{work}/x', '--at',
                               f'@group-{number}', '--hub', '', rc=1).stderr, name)
        check(f'b has lost its checkpoint @group-{number} (' in said and why in said and
              'see what tt check says of' in said, said)
        said = one_sentence(tt('branch', f'{part}/b.run', '--at', f'@group-{number}',
                               '--print', rc=1).stderr, f'tt branch, {name}')
        check(why in said and 'make them while recording' not in said, said)
        shutil.rmtree(part)
    shutil.copytree(folder, part)
    for name in 'pages', 'checkpoints':
        os.unlink(os.path.join(part, 'b.run', name))
    said = one_sentence(tt('group', 'live', part, '--to', f'{work}/x', '--hub', '',
                           rc=1).stderr, 'deleted')
    check('(its files no longer have it)' in said, said)


def spoil(path, at):
    with open(path, 'r+b') as out:
        out.seek(at)
        out.write(b'no checkpoint of anybody' * 4)


@limit(60)
def test_not_qmp(work):
    """tt group checkpoint at a socket that is not of QMP: a sentence, and nobody waits for an
    answer that cannot come. A VM without others says so."""
    human, pretty, other, here = (os.path.join(work, name) for name in ('h', 'p', 'o', 'net'))
    with recorder(work, [*MACHINE, *nic(1, f'listen={here}'), '-monitor',
                         f'unix:{human},server=on,wait=off', '-qmp-pretty',
                         f'unix:{pretty},server=on,wait=off'], qmp=2) as vm, \
            socket.socket(socket.AF_UNIX) as listener:
        wait_until(lambda: vm.qmp.cmd('query-tt')['position'] > 0, 'it runs')
        for path, why in ((human, 'this is a monitor for people: give the socket of its QMP'),
                          (pretty, 'line breaks in what it says (-qmp-pretty)')):
            said = one_sentence(tt('group', 'checkpoint', path, rc=1).stderr, why)
            check(f'there is no QMP at {path}: ' in said and why in said, said)
        listener.bind(other)
        listener.listen(1)
        for parts, why in (([b'220 mail'], 'what is there does not speak QMP'),
                           ([b'\0'], 'what is there does not speak QMP'),
                           ([b'\r\n QE', b'MU 10.0'], 'this is a monitor for people')):
            said = one_sentence(said_of(listener, parts), f'{parts}')
            check(why in said, said)
        said = tt('group', 'checkpoint', vm.qmp_paths[1]).stdout
        check('has its checkpoint @group-1 at position' in said and 'nobody is connected to it'
              in said and 'tells the others' not in said, said)
        with Member(here).join():
            said = tt('group', 'checkpoint', vm.qmp_paths[1]).stdout
            check('and tells the others' in said, said)
        vm.qmp.send('quit')
        vm.wait(0)


def said_of(listener, parts):
    """What is said of who sends these, each when the one before was read."""
    with subprocess.Popen([tool('tt'), 'group', 'checkpoint', listener.getsockname()],
                          text=True, stderr=subprocess.PIPE) as asking:
        peer, _ = listener.accept()
        with peer, contextlib.suppress(BrokenPipeError):
            for part in parts:
                peer.sendall(part)
                wait_until(lambda: is_read(peer), 'it is read')
            return asking.stderr.read()
        return asking.stderr.read()


@limit(60)
def test_strangers(work):
    """Of members that no frame has brought together tt group check does not say that they fit
    together: it calls them strangers, which a group without traffic also has."""
    x, y, z = (golden_logs(bytes(range(n, n + 16))) for n in (0x20, 0x30, 0x50))
    run = record(work, guest_args(work, 'hlt'), 'one').dir
    folder = os.path.join(work, 'group')
    alone = [(3, 1, 1), (1, 0, 60, SENT)]

    def checked(*logs):
        shutil.rmtree(folder, ignore_errors=True)
        for name, (log, notes) in zip('xyz', logs):
            forge(log, run, f'{folder}/{name}', notes)
        done = tt('group', 'check', folder)
        listed = json.loads(tt('group', 'check', folder, '--json').stdout)
        equal([listed['fine'], listed['findings']], [True, []], 'in JSON')
        return done, listed['strangers']

    done, names = checked((x, alone), (y, alone))
    equal(names, ['x', 'y'], 'strangers')
    check(done.stdout.startswith('nothing shows that the members of group were in one group'),
          done.stdout)
    check('fit together' not in done.stdout, done.stdout)
    done, names = checked((x, alone), (y, [(3, 1, 1), delivered(x, 0, 2)]), (z, alone))
    equal(names, ['z'], 'strangers')
    check('fit together: 1 frame of 3 members' in done.stdout, done.stdout)
    check('strangers, as no frame went between them and others: z\n' in done.stdout,
          done.stdout)
    # They know of one incident; and one alone is a group that nothing is wrong with.
    for logs in ((x, [incident(x)]), (y, [incident(x)])), ((x, alone),):
        done, names = checked(*logs)
        equal(names, [], f'strangers of {len(logs)}')
        check('fit together' in done.stdout and 'strangers' not in done.stdout, done.stdout)


@limit(60)
def test_lists(work):
    """A list that names a member which it does not have is refused."""
    run = record(work, guest_args(work, 'hlt'), 'one').dir
    listed = os.path.join(work, 'list')
    for names, why in (('one=x', None), ('two=x', "a name for 'two', which is not among"),
                       ('one=x\ntwo=y', "a name for 'two'")):
        with open(listed, 'w', encoding='ascii') as out:
            out.write(f'[members]\none={run}\n[names]\n{names}\n')
        done = tt('group', 'info', listed, rc=int(why is not None))
        if why:
            check(why in one_sentence(done.stderr, names), done.stderr)
        else:
            check(re.search('^x ', done.stdout, re.M), done.stdout)


@limit(60)
def test_last_line(work):
    """The last line of a hub writes all numbers in one way."""
    path, rng = os.path.join(work, 'hub'), seed()
    with subprocess.Popen([tool('tt'), 'hub', '--group', 'g', '--listen', path, '--once',
                           '--seconds', '600'], stdout=subprocess.PIPE, text=True) as process:
        check('listening' in process.stdout.readline(), 'the hub listens')
        with Member(path).join() as a, Member(path).join() as b:
            b.send(b.framed(ethernet(rng, 60)))
            a.frame()                   # now the hub has heard that both are ready
            for _ in range(1099):
                a.send(a.framed(ethernet(rng, 60)))
                b.frame()
        said, _ = process.communicate(timeout=60 * SLOW)
    check(said.endswith('1,100 frames received, 1,100 forwarded, 0 lost\n'), said)
