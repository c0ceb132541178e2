# SPDX-License-Identifier: GPL-2.0-or-later
"""tt group on groups that are being recorded, copied, damaged, or were never any: one clear
sentence each, and nothing is left behind."""

import contextlib
import fcntl
import hashlib
import importlib.util
import json
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import uuid

from group_peer import no_time
from guests import guest_args
from strangers import xxh
from test_group import group_gdb, group_points, guest, nic, shown
from test_group_live import quit_all
from ttlib import (MACHINE, REPO, SLOW, check, equal, limit, one_sentence, read_bytes,
                   read_text, record, recorder, seed, tool, tt, wait_until)

PINGS = '''
ifconfig lo 127.0.0.1 up
ifconfig eth0 10.9.0.NUMBER netmask 255.255.255.0 up
while :; do
    ping -c 1 -W 1 10.9.0.OTHER | grep ' 0% packet loss' && echo TT-ANSWERED
done
'''
# A QEMU for b only: it stands still like another one, and fails when it is told to go on, once
# there is more and more in the log of a.
FAILS = '''#!/usr/bin/python3
import json, os, re, socket, subprocess, sys, time
line = ' '.join(sys.argv)
if 'second/b' not in line:
    os.execv({qemu!r}, [{qemu!r}, *sys.argv[1:]])
s = socket.socket(fileno=int(re.search(r'id=tt-live,fd=(\\d+)', line).group(1)))
s.sendall(b'{{"QMP": {{}}}}\\n')
a = re.search(r'(/[^,=]*second)/b', line).group(1) + '/a'
def end():
    done = subprocess.run([{tt!r}, 'info', a, '--json'], capture_output=True, text=True)
    return json.loads(done.stdout)['end'] if done.returncode == 0 else None
while True:
    asked = s.recv(4096)
    if b'cont' in asked:
        ends = set()
        while len(ends - {{None}}) < 2:
            ends.add(end())
            time.sleep(.1)
        s.sendall(b'{{"error": {{"class": "x", "desc": "it cannot"}}}}\\n')
    elif asked:
        s.sendall(b'{{"return": {{}}}}\\n')
    else:
        break
'''


def member(work, name, number, options):
    script = PINGS.replace('NUMBER', str(number)).replace('OTHER', str(3 - number))
    return guest(work, name, script) + nic(number, options)


@contextlib.contextmanager
def pair(work, options=''):
    """Two members that talk, {name: Vm}."""
    path = os.path.join(work, 'link')
    os.makedirs(os.path.join(work, 'group'))
    with contextlib.ExitStack() as running:
        vms = {}
        for number, (name, how) in enumerate((('a', 'listen'), ('b', 'connect')), 1):
            args = member(work, name, number, f'{how}={path}')
            vms[name] = running.enter_context(recorder(work, args, f'group/{name}', options,
                                                       qmp=3, timeout=200))
            wait_until(lambda: os.path.exists(path), 'a listens')
        for vm in vms.values():
            vm.wait_serial('TT-ANSWERED', timeout=100)
        yield vms


@limit(200)
def test_pair(work):
    """A group that is still recorded is checked as far as it goes; all who ask for a
    checkpoint at once get one; a copy is not another group; and tt group live that fails
    leaves nothing behind, unless something was recorded."""
    folder = os.path.join(work, 'group')
    with pair(work) as vms:
        # A log is on disk some time after the guest has said what is in it.
        wait_until(lambda: 'fit together' in tt('group', 'check', folder).stdout,
                   'the logs have frames', 30)
        for _ in range(10):
            done = tt('group', 'check', folder)
            check('fit together so far' in done.stdout, done.stdout)
            check(re.search(r'^still recorded: a, b; frames in flight: \d+$', done.stdout,
                            re.M), done.stdout)
            check('a.run' in done.stderr and 'b.run' in done.stderr, done.stderr)
        told = ask_at_once(vms)
        ask_in_the_past(vms['b'])
        quit_all(vms)
    equal(tt('group', 'check', folder).stdout.count('so far'), 0, 'it has ended')
    check_positions(folder, told)
    check_in_flight(work, folder)
    check_copy(work, folder)
    check_leaves_nothing(work, folder)


@limit(100)
def test_goto_while_recorded(work):
    """The logs of a group have more than its replays by now: the members stand where these
    have something."""
    folder = os.path.join(work, 'group')
    os.makedirs(folder)
    endless = guest_args(work, 'still64', 'rounds=2000000000')

    def ends_of_logs():
        return [m['end'] for m in json.loads(tt('group', 'info', folder,
                                                '--json').stdout)['members']]

    with recorder(work, endless, 'group/a', qmp=1) as a, \
            recorder(work, endless, 'group/b', qmp=1) as b:
        wait_until(lambda: all(os.path.exists(f'{vm.run}/manifest') for vm in (a, b)) and
                   min(ends_of_logs()) > 1000, 'two logs', 60)
        text = group_gdb(f'tt group open {folder}', 'python before = dict((n, (select(i), '
                         'when()[1])[1]) for n, i in the_group.members.items())',
                         # Until the logs have more than the replays.
                         'python import time', 'python until = time.monotonic() + 60',
                         'python more = lambda: min(m["end"] - before[m["name"]] for m in '
                         f'json.loads(ask("group", "info", "{folder}", "--json"))["members"])',
                         'python while more() <= 0 and time.monotonic() < until: '
                         'time.sleep(.2)',
                         'python print("more", more())',
                         'tt group goto a:1000', 'tt group goto a:end',
                         'python print("ends", before)')
        for vm in a, b:
            vm.qmp.send('quit')
            vm.wait(0)
    check('past the end' not in text and 'Error' not in text, text)
    check(int(re.search(r'(?m)^more (-?\d+)', text)[1]) > 0, 'the logs have no more')
    stood = [int(n) for n in re.findall(r'^[* ] [ab] +(\d+) ', text, re.M)]
    ends = [int(n) for n in re.findall(r"'[ab]': (\d+)", text)]
    equal(stood[-4:], [1000, ends[1], *ends], 'where they stand')


def ask_at_once(vms):
    """Five at each member, of which QEMU serves two at a time. Those of one member have a
    number each; the number of one member's may be that of the other's."""
    asking = [subprocess.Popen([tool('tt'), 'group', 'checkpoint', path],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
              for vm in vms.values() for path in (*vm.qmp_paths[1:3], *[vm.qmp_paths[1]] * 3)]
    places = []
    for process in asking:
        said, wrong = process.communicate(timeout=60 * SLOW)
        equal(process.returncode, 0, f'{said} {wrong}')
        places += re.findall(r'has its checkpoint @group-(\d+) at position (\d+)', said)
    equal(len(places), 10, f'answers: {places}')
    for name, vm in vms.items():
        at = {str(c['position']) for c in vm.qmp.cmd('query-tt-checkpoints') if c['full']}
        mine = places[:5] if name == 'a' else places[5:]
        check(len({number for number, _ in mine}) == 5 and at >= {pos for _, pos in mine},
              f'answers of {name}: {mine}, its checkpoints: {at}')
    return {'a': places[:5], 'b': places[5:]}


def check_positions(folder, told):
    """A checkpoint has one position: who asked for it, the list of the group, the marks of the
    run all say the same."""
    listed = {(name, p['number']): m['position'] for p in group_points(folder)
              for name, m in p['members'].items()}
    for name, places in told.items():
        for number, position in places:
            equal(listed[name, int(number)], int(position), f'{name}, checkpoint {number}')
    text = tt('group', 'checkpoints', folder).stdout
    for (name, number), position in listed.items():
        check(re.search(rf'^  {name} +{position}  ', text, re.M), f'{position} in {text}')
        cut = tt('group', 'cut', folder, f'{name}:@group-{number}').stdout
        check(re.search(rf'^{name} +{position}$', cut, re.M), f'{position} in {cut}')


def ask_in_the_past(vm):
    vm.qmp.cmd('tt-goto', 60, position=vm.qmp.cmd('query-tt')['position'] // 2)
    said = one_sentence(tt('group', 'checkpoint', vm.qmp_paths[1], rc=1).stderr, 'in the past')
    check('the past of the recording is shown: return' in said, said)
    vm.qmp.cmd('tt-goto', 60, where='end')


def check_in_flight(work, folder):
    """What the log of a member does not have: lost, or, while it is recorded, in flight."""
    part = os.path.join(work, 'part')
    shutil.copytree(folder, part)
    log = os.path.join(part, 'a.run', 'log')
    os.truncate(log, os.path.getsize(log) * 3 // 4)
    done = tt('group', 'check', part, rc=1)
    check('which is lost' in done.stderr, done.stderr)
    check('note: the run of a, ' in done.stderr, done.stderr)
    fd = os.open(os.path.join(part, 'a.run'), os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)          # as its recorder does
    said = tt('group', 'check', part).stdout
    found = re.search(r'^still recorded: a; frames in flight: (\d+)$', said, re.M)
    check(found and int(found.group(1)), said)
    answer = json.loads(tt('group', 'check', part, '--json').stdout)
    equal([answer['fine'], answer['recording'], answer['findings'], answer['in_flight']],
          [True, ['a'], [], int(found.group(1))], 'in JSON')
    info = json.loads(tt('group', 'info', part, '--json').stdout)
    equal([info['lost'], info['in_flight'], [m['recording'] for m in info['members']]],
          [0, int(found.group(1)), [True, False]], 'tt group info')
    said = one_sentence(tt('group', 'cut', part, 'b:end', rc=1).stderr.split('\n', 1)[1],
                        'a cut')
    check('in flight' in said, said)
    os.close(fd)


def check_copy(work, folder):
    copy = os.path.join(work, 'copy')
    shutil.copytree(folder, copy)
    for second in folder, copy:
        said = one_sentence(tt('group', 'compare', folder, second, rc=1).stderr, second)
        check('has only runs of' in said and 'or copies of them' in said, said)
    shutil.rmtree(os.path.join(copy, 'b.run'))
    said = one_sentence(tt('group', 'compare', copy, folder, rc=1).stderr, 'a part')
    check('no member of' in said, said)


def check_leaves_nothing(work, folder):
    second = os.path.join(work, 'second')
    only = os.path.join(work, 'only')
    os.makedirs(os.path.join(only, 'a'))
    own = ['--without', 'serial', '--', '-serial', f'file:{second}/{{member}}.console']
    for args, why in (
            (['--', '-device', 'no-such'], 'a did not begin: .*no-such'),
            # The other one has loaded its state by then, and has written files.
            ([*own, '-chardev', f'file,id=x,path={only}/{{member}}/x'], 'b did not begin'),
            (['--qemu', '/none'], 'a did not begin: .*not an executable program')):
        done = tt('group', 'live', folder, '--to', second, *args, rc=1)
        check(re.search(why, one_sentence(done.stderr, f'{args}')), done.stderr)
        check(not done.stdout, done.stdout)
        check(not os.path.exists(second), f'{args}: {second} is left')
    said = tt('group', 'live', folder, '--to', second, '--frames', only, rc=2).stderr
    check('--frames: no member of group has a frame store' in said, said)
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        check_is_told(folder, second, own, number)
    check_foreign(folder, second)
    check_killed(folder, second)
    listed = os.path.join(work, 'named')
    with open(listed, 'w', encoding='ascii') as out:
        out.write(f'[members]\na={folder}/a.run\na.out={folder}/b.run\n')
    said = one_sentence(tt('group', 'live', listed, '--to', second, rc=1).stderr, 'names')
    check("'a.out' is also the name of an output file" in said, said)
    check(not os.path.exists(second), f'names: {second} is left')
    # Files that are there already are not touched, nor the directory of somebody else.
    os.mkdir(second)
    said = one_sentence(tt('group', 'live', folder, '--to', second, rc=1).stderr,
                        'it is there')
    check('it exists; give the name of a new one' in said and os.path.isdir(second), said)
    os.rmdir(second)
    said = one_sentence(tt('group', 'live', folder, '--to', '/proc/x', rc=1).stderr, '/proc')
    check('its file system has no place for it' in said, said)
    # One goes on and the other does not.
    fails = os.path.join(work, 'fails')
    with open(fails, 'w', encoding='ascii') as out:
        out.write(FAILS.format(qemu=tool('qemu-system-x86_64'), tt=tool('tt')))
    os.chmod(fails, 0o700)
    done = tt('group', 'live', folder, '--to', second, '--qemu', fails, rc=1)
    check('b does not go on: it cannot' in done.stderr, done.stderr)
    check(f"'{second}/a' has recorded something, so '{second}' stays" in done.stderr,
          done.stderr)
    check(tt('check', os.path.join(second, 'a')).stdout, 'it is a run')
    said = one_sentence(tt('group', 'live', folder, '--to', second, rc=1).stderr, 'again')
    check('with runs in it that an earlier tt group live has made; delete it' in said, said)


def check_is_told(folder, second, own, number):
    """A signal while the members load their state."""
    with subprocess.Popen([tool('tt'), 'group', 'live', folder, '--to', second, *own],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        wait_until(lambda: os.path.exists(f'{second}/a.out') or process.poll() is not None,
                   'it begins')
        process.send_signal(number)
        said, wrong = process.communicate(timeout=60 * SLOW)
    if 'goes on' in said:                   # it was faster
        shutil.rmtree(second)
        return
    equal(process.returncode, 1, f'{said} {wrong}')
    check('was told to end' in one_sentence(wrong, 'a signal'), wrong)
    check(not os.path.exists(second), f'{second} is left')


@contextlib.contextmanager
def live_stopped(folder, second):
    """tt group live -S once all stand still; what it is, and its members."""
    with subprocess.Popen([tool('tt'), 'group', 'live', folder, '--to', second, '--without',
                           'serial', '--', '-S', '-serial', 'null'], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        pids = []
        for line in process.stdout:
            pids += re.findall(r'process (\d+),', line)
            if len(pids) == 2:
                break
        yield process, pids
        process.kill()


def check_foreign(folder, second):
    """A directory of the user's with a file of the name of the lock is left alone; so is what
    a command has left, if nobody can say whether something was recorded."""
    def refused(text, log, why):
        os.makedirs(f'{second}/a/log' if log else f'{second}/a')
        for name, has in (('.live', text), ('a/own', ''), ('empty', '')):
            with open(f'{second}/{name}', 'w', encoding='ascii') as out:
                out.write(has)
        said = one_sentence(tt('group', 'live', folder, '--to', second, rc=1).stderr, why)
        check(why in said, said)
        check(all(os.path.exists(f'{second}/{name}') for name in ('a/own', 'empty')), why)
        shutil.rmtree(second)

    refused('', False, 'cannot create')
    refused('mine, and mine alone\n', False, 'cannot create')
    refused('tt group live\n', False, 'it is not known whether')
    refused('tt group live\n', True, 'it is not known whether')


def check_killed(folder, second):
    """kill -9 leaves no process, and what it leaves on disk the next one takes away. Nobody
    takes the directory of one that lives. With -S nothing is left if nobody went on."""
    def members():
        found = []
        for pid in filter(str.isdigit, os.listdir('/proc')):
            with contextlib.suppress(OSError):
                found += [pid] if second.encode() in read_bytes(f'/proc/{pid}/cmdline') else []
        return found

    for name in ('.live', 'a.out', 'b.out') * 2:        # at several moments of its beginning
        with subprocess.Popen([tool('tt'), 'group', 'live', folder, '--to', second],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            wait_until(lambda n=name: os.path.exists(f'{second}/{n}'), 'it begins')
            process.kill()
        wait_until(lambda: not members(), 'all members have ended')
        done = tt('group', 'live', folder, '--to', second, '--', '-device', 'no-such', rc=1)
        if 'has recorded something' in done.stderr:     # it was faster
            shutil.rmtree(second)
            continue
        said = one_sentence(done.stderr.split('\n', 1)[0], 'what was left')
        check('was killed: what it had left is deleted' in said, done.stderr)
        check('a did not begin' in done.stderr and not os.path.exists(second), done.stderr)
    with live_stopped(folder, second) as (first, pids):
        said = one_sentence(tt('group', 'live', folder, '--to', second, rc=1).stderr, 'two')
        check('another tt group live is at work' in said, said)
        first.kill()
    wait_until(lambda: not any(os.path.exists(f'/proc/{pid}') for pid in pids), 'their end')
    for number in signal.SIGINT, signal.SIGHUP:
        with live_stopped(folder, second) as (again, _):
            again.send_signal(number)
            said, wrong = again.communicate(timeout=60 * SLOW)
        if number == signal.SIGINT:
            check('was killed: what it had left is deleted' in one_sentence(wrong, 'after -S'),
                  wrong)
        check('is deleted again: no member has recorded anything' in said, said)
        check(not os.path.exists(second), f'{second} is left')
        equal(again.returncode, 0, 'its end')
    with live_stopped(folder, second) as (unsure, _):
        open(f'{second}/a/own', 'w', encoding='ascii').close()
        unsure.send_signal(signal.SIGINT)
        said, wrong = unsure.communicate(timeout=60 * SLOW)
    check('it is not known whether' in one_sentence(wrong, 'a file of others'), wrong)
    check('is deleted' not in said and os.path.exists(f'{second}/a/own'), said)
    shutil.rmtree(second)


# Windows

def members(folder):
    return {m['name']: m for m in
            json.loads(tt('group', 'info', folder, '--json').stdout)['members']}


def starts(folder):
    """{member: where its window begins}, which is where tt info says that a replay can."""
    return {name: m['first'] for name, m in members(folder).items()}


def until_past(folder, name, position):
    wait_until(lambda: starts(folder)[name] > position, f'{name} forgets {position}', 60)


@limit(200)
def test_windows(work):
    """Two flight recorders forget. What a saved window has is still known; what is no longer
    known is not made up: a moment before a window is refused, as is an order that depends on
    it."""
    folder = os.path.join(work, 'group')
    with pair(work, ',last=4s') as vms:        # a window is saved 1.5 s later
        a, b = vms['a'], vms['b']
        found = a.qmp.cmd('tt-incident', what='it is slow')
        wait_until(lambda: os.path.isdir(f'{b.run}-peer-1') and
                   os.path.isdir(f'{a.run}-incident-1'), 'both windows are saved', 60)
        saving = f'{a.run}-incident-2.saving'
        os.mkdir(saving)
        for name in 'log', 'unfinished':
            open(os.path.join(saving, name), 'w', encoding='ascii').close()
        check('.saving' not in tt('group', 'check', folder).stderr, 'a window is being saved')
        until_past(folder, 'a', found['position'])
        until_past(folder, 'b', b.qmp.cmd('query-tt')['position'])
        tt('group', 'checkpoint', b.qmp_paths[1])
        wait_until(lambda: any(c['full'] for c in a.qmp.cmd('query-tt-checkpoints')),
                   'the checkpoint of a')
        b.qmp.send('quit')
        b.wait(0)
        until_past(folder, 'a', a.qmp.cmd('query-tt')['position'])
        # A frame that is sent after the checkpoint has its number: then a would be sure that
        # the checkpoint is past.
        wait_until(lambda: not any(members(folder)['a'][what] for what in ('got', 'sent')),
                   'a forgets what it had with b', 60)
        a.qmp.send('quit')
        a.wait(0)
    check_sent_later(folder)
    check_forgotten(folder, found)
    check_moments(folder, starts(folder))


def check_sent_later(folder):
    """What b has sent after its window was saved is in no log: a has forgotten it. Two windows
    that were saved together have the incident in them. Their ends are not one moment: b may
    have received there what a sent after its window was saved."""
    path = os.path.join(folder, 'list')
    for a_run, place, refuses in (('a.run', 'b:end', True), ('a.run', 'b:@peer-1', True),
                                  ('a.run-incident-1', 'b:@peer-1', False)):
        with open(path, 'w', encoding='ascii') as out:
            out.write(f'[members]\na = {a_run}\nb = b.run-peer-1\n')
        done = tt('group', 'cut', path, place, rc=int(refuses))
        check('the window of a begins after' in done.stderr or not refuses, f'{a_run}: {done}')
    done = tt('group', 'cut', path, 'b:end', rc=None)
    check(done.returncode == 0 or done.returncode == 1 and
          "is lost, because its sender's log ends before it" in done.stderr, f'{done}')
    os.unlink(path)


def check_forgotten(folder, found):
    said = tt('group', 'incidents', folder).stdout
    for name, window in (('a', 'a.run-incident-1'), ('b', 'b.run-peer-1')):
        check(re.search(rf'^  {name} +\d+  no longer in its window; saved in {window}$', said,
                        re.M), said)
    listed, = json.loads(tt('group', 'incidents', folder, '--json').stdout)['incidents']
    equal([listed['windows'], listed['past'], listed['members']['a']],
          [{'a': 'a.run-incident-1', 'b': 'b.run-peer-1'}, ['a', 'b'], found['position']],
          'in JSON')
    shutil.rmtree(os.path.join(folder, 'a.run-incident-1'))
    said = tt('group', 'incidents', folder).stdout
    check(re.search(r'^  a +-  no longer in its window$', said, re.M), said)
    said = tt('group', 'checkpoints', folder).stdout
    check(re.search(r'^  a +-  perhaps no longer in its window$', said, re.M), said)
    said = tt('group', 'live', folder, '--to', f'{folder}/x', '--at', '@group-1', rc=1).stderr
    check('the window of a does not have checkpoint @group-1, and perhaps' in said, said)
    said = tt('group', 'live', folder, '--to', f'{folder}/x', '--at', '@group-99', rc=1).stderr
    check('no member of group has a checkpoint @group-99' in said, said)


def check_moments(folder, first):
    for name, position in first.items():
        run = json.loads(tt('info', os.path.join(folder, f'{name}.run'), '--json').stdout)
        equal(run['start'], position, f'the first position of {name}')
    early = 'the window of a begins after that moment, at position %d' % first['a']
    for place in 'b:start', f'b:{first["b"] + 1}':
        said = one_sentence(tt('group', 'cut', folder, place, rc=1).stderr, place)
        check(early in said and '; from position ' in said, said)
    works = re.search('; from position ([0-9]+) of b on it does not', said).group(1)
    cut = json.loads(tt('group', 'cut', folder, f'b:{works}', '--json').stdout)['cut']
    check(cut['b'] == int(works) and cut['a'] >= first['a'], f'{cut}')
    said = one_sentence(tt('group', 'cut', folder, f'a:{first["a"] - 1}', rc=1).stderr, 'a')
    check('is not in the window of a' in said, said)
    done = tt('group', 'order', folder, 'b:start', 'a:start', rc=None)
    check(done.stdout == 'before\n' or
          'their order is not known: what a got before its window' in done.stderr, f'{done}')
    text = group_gdb(f'tt group open {folder}', 'echo OPEN\n', 'tt group goto b:start',
                     f'tt group goto b:{works}')
    begun, went = text.split('OPEN')
    check('are not known to be one moment: ' + early in begun, begun)
    check(early in went and 'These positions' not in went, went)
    equal(dict(shown(went)), cut, 'the moment in gdb')


def says_that_it_waits(work):
    """As for a QEMU that is stopped: somebody listens and says nothing; another one has so
    many waiting that no more can."""
    silent, full = os.path.join(work, 'silent'), os.path.join(work, 'full')
    with socket.socket(socket.AF_UNIX) as listener, no_time(full) as busy:
        listener.bind(silent)
        listener.listen(1)
        with asked(silent) as asking, asked(full) as second:
            said = asking.stderr.readline()
            check('does not answer: is it stopped, or is another program' in said, said)
            said = second.stderr.readline()
            check('and no more can wait there: tt tries it again' in said, said)
            listener.close()
            busy.close()
            check('there is no QMP at' in asking.stderr.read(), 'it is gone')
            said = one_sentence(second.stderr.read(), 'the other one is gone, too')
            check('the program that made this socket has ended' in said, said)
            equal([asking.wait(30 * SLOW), second.wait(30 * SLOW)], [1, 1], 'status')


def asked(path):
    return subprocess.Popen([tool('tt'), 'group', 'checkpoint', path], text=True,
                            stderr=subprocess.PIPE)


def asks_no_socket(*paths):
    for path in paths:
        said = one_sentence(tt('group', 'checkpoint', path, rc=1).stderr, path)
        check('this is not a socket: give that of its QMP' in said, said)


@limit(100)
def test_hostile(work):
    """Thousands of directories, equal names, loops, pipes, runs that are cut off: tt group
    ends soon, with a sentence that names the run."""
    many = os.path.join(work, 'many')
    for i in range(12000):
        os.makedirs(f'{many}/r{i}.run')
        open(f'{many}/r{i}.run/manifest', 'w', encoding='ascii').close()
    # Seconds of CPU time: 0.1, and 10 if each name is compared with each other.
    done = subprocess.run([tool('tt'), 'group', 'info', many], capture_output=True, text=True,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (3, 3)))
    check('has 12000 runs: a group has 1 to 4096' in done.stderr, f'many: {done}')
    shutil.rmtree(many)
    run = record(work, guest_args(work, 'hlt'), 'one').dir
    folder = os.path.join(work, 'group')
    for why, change in (
            ("two members 'x'", lambda: shutil.copytree(run, f'{folder}/x')),
            ('is a copy of another', lambda: shutil.copytree(run, f'{folder}/y')),
            ('the run of y, .*manifest', lambda: empty(run, f'{folder}/y', 'manifest')),
            ('the run of y, .*log', lambda: empty(run, f'{folder}/y', 'log')),
            ('special file', lambda: pipe(run, f'{folder}/y')),
            ('y.run, which is not counted.*symbolic', lambda: loop(f'{folder}/y.run')),
            ('has 0 runs', lambda: os.symlink('/none', f'{folder}/x.run/manifest'))):
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
        if why != 'has 0 runs':
            shutil.copytree(run, f'{folder}/x.run')
        else:
            os.mkdir(f'{folder}/x.run')
        change()
        done = tt('group', 'check', folder, rc=None)
        check(re.search(why, one_sentence(done.stderr, why)), f'{why}: {done.stderr}')
    listed = os.path.join(work, 'list')
    os.mkfifo(listed)
    said = one_sentence(tt('group', 'info', listed, rc=1, timeout=10).stderr, 'a pipe')
    check('special file' in said, said)
    os.unlink(listed)
    said = one_sentence(tt('group', 'info', run, rc=1).stderr, 'a run')
    check('is itself a run' in said, said)
    says_that_it_waits(work)
    asks_no_socket(run, os.path.join(run, 'manifest'))
    with open(listed, 'w', encoding='utf-8-sig') as out:    # with a byte order mark
        out.write(f'[group]\nname=one\n[members]\na={run}\n')
    check(tt('group', 'info', listed).stdout.startswith('one '), 'a byte order mark')
    for text, why in (('', 'neither'), ('[members]\n', 'has 0 runs'),
                      ('[members]\na=\n', "names no run for member 'a'"),
                      ('[members]\na=list\n', 'is not a run'),
                      (b'[members]\n\xff\x9b2J=\n', "for member '\xff?2J'"),
                      (b'\x1b[2J\xc2\x9b2J\n', 'line \u201c?[2J??2J\u201d'),
                      ('[members]\n' + ''.join(f'm{i}={run}\n' for i in range(5000)),
                       'has 5000 runs'),
                      (f'[members]\na={run}\na={run}\n', "two members 'a'")):
        with open(listed, 'wb') as out:
            out.write(text if isinstance(text, bytes) else text.encode())
        said = one_sentence(said_by('group', 'info', listed), repr(text[:40]))
        check(why in said, f'{text[:40]}: {said}')


@limit(60)
def test_many_cut_off(work):
    """A group of many runs that were all cut off, beside as many that have no manifest: some
    sentences of each kind, and that there are more."""
    logs = golden_logs()
    run = record(work, guest_args(work, 'hlt'), 'one').dir
    folder = os.path.join(work, 'group')
    for number in range(50):
        logs.UUID = uuid.uuid4().bytes
        logs.SEED, = struct.unpack('<Q', logs.UUID[:8])
        log = os.path.join(folder, f'm{number}', 'log')
        forge(logs, run, os.path.dirname(log), [(3, 1, 1), (3, 2, 1)])
        os.truncate(log, os.path.getsize(log) - 3)
        os.mkdir(f'{folder}/x{number}')
        shutil.copy(log, f'{folder}/x{number}/log')
    said = tt('group', 'info', folder, rc=None).stderr
    equal([said.count('tt: note: the run of m'), said.count('has a log but no manifest'),
           said.count('and more like this')], [20, 20, 2], said)


def said_by(*args):
    """What tt says on stderr, which may be no UTF-8."""
    done = subprocess.run([tool('tt'), *args], stderr=subprocess.PIPE, check=False,
                          env={**os.environ, 'LC_ALL': 'C.UTF-8'}, timeout=60 * SLOW)
    equal(done.returncode, 1, f'{args}: {done}')
    return re.sub(rb'\xff', '\xff'.encode(), done.stderr).decode()


def empty(run, to, name):
    shutil.copytree(run, to)
    os.truncate(os.path.join(to, name), 0)


def pipe(run, to):
    shutil.copytree(run, to)
    os.unlink(os.path.join(to, 'log'))
    os.mkfifo(os.path.join(to, 'log'))


def loop(path):
    os.symlink(os.path.basename(path), path)


def golden_logs(run=None):
    """The writer of logs that shares nothing with that in C."""
    path = os.path.join(REPO, 'tests', 'golden', 'make-golden-logs.py')
    spec = importlib.util.spec_from_file_location('golden_logs', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if run:
        module.UUID, module.SEED = run, struct.unpack('<Q', run[:8])[0]
    return module


def frame_note(logs, what, val, aux, data=None):
    """An event of kind frame, or of kind note (35), the first of its segment; one position
    later."""
    if what == 35:
        return logs.event(what, delta=1, data=data)
    return logs.event(38, delta=1, aux=aux, addr=what, val=val, data=data)


def forge(logs, run, to, notes, is_window=False, change=None):
    """A run whose log has these notes, each in a segment of its own, [(fields)]; that of a
    window begins at position 1000. @change: of the text of the manifest."""
    shutil.copytree(run, to)
    os.unlink(os.path.join(to, 'log'))
    path = os.path.join(to, 'manifest')
    text = re.sub('^uuid=.*$', f'uuid={uuid.UUID(bytes=logs.UUID)}', read_text(path),
                  flags=re.M)
    text = text[:text.rindex('# sha256')]
    text = change(text) if change else text
    with open(path, 'w', encoding='utf-8') as out:
        out.write(f'{text}# sha256 {hashlib.sha256(text.encode()).hexdigest()}\n')
    writer = logs.Writer(7, 100, 1000) if is_window else logs.Writer()
    with open(os.path.join(to, 'log'), 'wb') as out:
        out.write(writer.part(uuid=logs.UUID) if is_window else logs.head())
        for i, (what, val, aux, *data) in enumerate(notes):
            data = data[0] if data else None
            long = data if data and len(data) > 16 else b''
            out.write(writer.segment(frame_note(logs, what, val, aux, data), 1,
                                     end=writer.pos + 1, pl=long,
                                     flags=int(i == len(notes) - 1)))


def kept(data, seq, epoch=0, name=b'net0'):
    """The note of a frame that was kept, and of its rest."""
    whole = struct.pack('<QI16sQ', xxh(data), epoch, b'r' * 16, 7) + bytes([len(name)]) + \
        name + data
    notes = [(4, seq, len(data), whole[:65536])]
    return notes + ([(6, seq, len(data), whole[65536:])] if len(whole) > 65536 else [])


@limit(100)
def test_forged(work):
    """Logs that no VM writes, with right checksums: notes in a wrong order, of a wrong
    length, the rest of no frame. A sentence, or they are passed over."""
    logs = golden_logs()
    run = record(work, guest_args(work, 'hlt'), 'one').dir
    rng = seed()
    short, long = rng.randbytes(60), rng.randbytes(69632)
    folder = os.path.join(work, 'group')
    for notes, why in (
            ([(3, 2, 1), (3, 1, 1)], 'has checkpoint 1 of the group behind checkpoint 2'),
            ([(3, 1, 1), (3, 1, 0)], 'has checkpoint 1 of the group behind checkpoint 1'),
            ([(3, 1, 2)], 'damaged'), ([(3, 1 << 40, 1)], 'damaged'),
            ([(9, 1, 60)], 'damaged'),
            ([(1, 5, 60, bytes(12)), (1, 7, 60, bytes(12))], 'frame 7 where frame 6'),
            ([(1, 5, 60, bytes(13))], 'damaged'), ([(2, 5, 60, bytes(35))], 'damaged'),
            ([(3, 1, 1), (4, 1, 60, kept(short, 1)[0][3][:-1])], 'damaged'),
            ([(3, 1, 1), *kept(long, 1)[:1], (6, 1, 69632, b'x' * 20)], 'damaged'),
            ([(3, 1, 1), *kept(long, 1)[:1], (6, 1, 69631, kept(long, 1)[1][3])], 'damaged'),
            ([(3, 1, 1), *kept(long, 1)[:1], (6, 1, 69632, bytes(len(kept(long, 1)[1][3])))],
             'its hash is wrong')):
        shutil.rmtree(folder, ignore_errors=True)
        forge(logs, run, f'{folder}/x', notes)
        for verb in 'check', 'checkpoints':
            said = one_sentence(tt('group', verb, folder, rc=1).stderr, why)
            check(why in said and 'the run of x' in said, f'{why}: {said}')
    rest = kept(long, 1)[1]
    for notes, number in (([*kept(long, 1), *kept(short, 2)], 2), ([rest], 0),
                          ([*kept(short, 1), rest], 1), ([kept(long, 1)[0]], 0),
                          ([kept(long, 1)[0], *kept(short, 2), rest], 1),
                          ([kept(long, 1)[0], (6, 2, *rest[2:])], 0),       # of another
                          # Sent behind the first one, and so on its way at the second only.
                          ([(3, 2, 1), *kept(long, 1, 1)], 0)):
        shutil.rmtree(folder)
        forge(logs, run, f'{folder}/x', [(3, 1, 1), *notes])
        equal(group_points(folder)[0]['members']['x']['kept'], number, f'kept: {number}')


def delivered(logs, seq, position):
    """The note that frame @seq of the run of @logs was delivered, sent at @position."""
    return (2, seq, 60, struct.pack('<QI16sQ', 7, 0, logs.UUID, position))


def test_sent_later(work):
    """A member got what another one sent after its window was saved. That is no fault, and it
    came after all that the window has."""
    x, y = golden_logs(), golden_logs(bytes(range(0x30, 0x40)))
    run = record(work, guest_args(work, 'hlt'), 'one').dir
    folder = os.path.join(work, 'group')
    sends, saved = (1, 5, 60, bytes(12)), (35, 0, 0, b'a window ends here, for x')
    for notes, why in (([sends, saved], None), ([saved], None), ([sends], 'which is lost'),
                       ([(3, 1, 1)], 'that run has sent nothing')):
        shutil.rmtree(folder, ignore_errors=True)
        forge(x, run, f'{folder}/x', notes)
        forge(y, run, f'{folder}/y', [(3, 1, 1), delivered(x, 6, 100)])
        said = tt('group', 'check', folder, rc=int(why is not None)).stderr
        check(not said if why is None else why in said, f'{notes}: {said}')
        for place, order in ('x:end', 'before'), ('x:0', 'before'):
            equal(tt('group', 'order', folder, place, 'y:2').stdout, f'{order}\n', place)
        equal(tt('group', 'order', folder, 'y:1', 'x:0').stdout, 'concurrent\n', 'y:1')


# What windows do not tell

SENT = struct.pack('<QI', 7, 0)        # the data of a note: a frame was sent


def incident(logs, ways=0):
    """The note of an incident that the run of @logs found."""
    return (5, 0, ways, logs.UUID + struct.pack('<Q', 2) + b'\x0aincident-1it is slow')


def with_command(*options):
    line = 'command-line=' + ' '.join(('qemu', *options)).replace('\\', '\\\\')
    return lambda text: re.sub('^command-line=.*$', lambda _: line, text, flags=re.M)


def without_directory(text):
    return re.sub('^directory=.*\n', '', text, flags=re.M)


def as_branch(text):
    parent = {'path': '../old', 'uuid': uuid.UUID(int=1), 'checkpoint': 1, 'position': 5}
    text = re.sub('^features=0x0$', 'features=0x1', text, flags=re.M)
    return '\n'.join([text, '[parent]', *(f'{k}={v}' for k, v in parent.items()), ''])


@limit(100)
def test_proofs(work):
    """The window of y begins with an incident, or with a checkpoint of the group, of which x
    was at position 2; then y got what x had sent at 4. So what x sent at 3 may have come
    before the window, if not both have been at one moment: not where a frame can pass an
    incident by, nor where a checkpoint of an old recording has the same number."""
    x, y = golden_logs(), golden_logs(bytes(range(0x30, 0x40)))
    run = record(work, guest_args(work, 'hlt'), 'one').dir
    folder = os.path.join(work, 'group')

    def check_cut(is_known, note, of_x=None, of_y=None, more=None):
        shutil.rmtree(folder, ignore_errors=True)
        forge(x, run, f'{folder}/x', [(1, 0, 60, SENT), note, (1, 1, 60, SENT),
                                      (1, 2, 60, SENT)], change=of_x)
        forge(y, run, f'{folder}/y', [more or note, delivered(x, 2, 4)], True, of_y)
        done = tt('group', 'cut', folder, 'x:3', '--json', rc=int(not is_known))
        if is_known:
            equal(json.loads(done.stdout)['cut'], {'x': 3, 'y': 1002}, f'{note}')
        else:
            check('the window of y begins after that moment, at position 1000, as far as' in
                  one_sentence(done.stderr, f'{note}'), done.stderr)
        check('fit together' in tt('group', 'check', folder).stdout, f'{note}')

    one, two = (['-netdev', f'tt,id=n{i},group=g,connect=p{i}'] for i in (1, 2))
    check_cut(True, incident(x))
    check_cut(True, incident(x), with_command(*one), with_command(*two))
    check_cut(False, incident(x), with_command(*one, *two), with_command(*one))
    for more in (['-object', 'filter-tt,id=f,netdev=n1,group=g'],
                 ['--object', '\'{"qom-type": "filter-tt", "id": "f"}\''],
                 ['-readconfig', 'file']):
        check_cut(False, incident(x), None, with_command(*one, *more))
    check_cut(False, incident(x), without_directory)
    # QEMU itself has noted by which ways it got frames.
    check_cut(False, incident(x), more=incident(x, 1))
    check_cut(False, incident(x), more=incident(x, 2))
    check_cut(True, (3, 2, 1))
    check_cut(False, (3, 2, 1), None, as_branch)
    check_cut(False, (3, 2, 1), as_branch)


@limit(60)
def test_without_sends(work):
    """y got what the window of x, in which x sent nothing, does not have. Under KVM frames do
    not tell whether they were sent before it, nor where it begins; else it was sent later, and
    is lost."""
    x, y = golden_logs(), golden_logs(bytes(range(0x30, 0x40)))
    run = record(work, guest_args(work, 'hlt'), 'one').dir
    folder = os.path.join(work, 'group')
    unknown = "is not in its sender's window, which does not tell whether it was sent before"
    for accel, sent_at, is_lost in ('kvm', 2000, 0), ('tcg', 1000, 0), ('tcg', 1001, 1):
        shutil.rmtree(folder, ignore_errors=True)
        forge(y, run, f'{folder}/y', [(3, 1, 1), delivered(x, 6, sent_at)])
        forge(x, run, f'{folder}/x', [(3, 1, 1)], True,
              lambda text, a=accel: re.sub('^accel=.*$', f'accel={a}', text, flags=re.M))
        what = f'{accel}, sent at {sent_at}'
        said = one_sentence(tt('group', 'cut', folder, 'y:end', rc=1).stderr, what)
        why = "is lost, because its sender's log ends before it" if is_lost else unknown
        check(f'the frame that it received at 2 {why}' in said, f'{what}: {said}')
        info = json.loads(tt('group', 'info', folder, '--json').stdout)
        equal([info['lost'], info['unknown']], [is_lost, 1 - is_lost], what)
        check(('sent before the window of the sender or after it' in
               tt('group', 'info', folder).stdout) != is_lost, what)
        tt('group', 'check', folder, rc=is_lost)
    # What was sent later is lost, whatever is not known of one that was sent before it.
    shutil.rmtree(folder, ignore_errors=True)
    forge(y, run, f'{folder}/y', [delivered(x, 6, 1000), delivered(x, 7, 1500)])
    forge(x, run, f'{folder}/x', [(3, 1, 1)], True)
    info = json.loads(tt('group', 'info', folder, '--json').stdout)
    equal([info['lost'], info['unknown']], [1, 1], 'two frames')


@limit(60)
def test_surely_wrong(work):
    """A frame whose fate is not known hides no checkpoint that cannot be right whatever it
    was: z got before checkpoint 1 what y sent after it."""
    x, y, z = (golden_logs(bytes(range(n, n + 16))) for n in (0x20, 0x30, 0x50))
    run = record(work, guest_args(work, 'hlt'), 'one').dir
    folder = os.path.join(work, 'group')
    for is_wrong in False, True:
        for more in [], [delivered(x, 6, 1000)]:
            is_open = int(bool(more and not is_wrong))
            shutil.rmtree(folder, ignore_errors=True)
            forge(x, run, f'{folder}/x', [(3, 1, 1)], True)
            forge(y, run, f'{folder}/y', [*more, (3, 1, 1), (1, 0, 60, SENT)])
            got = [(3, 1, 1), delivered(y, 0, 3 if more else 2)]
            forge(z, run, f'{folder}/z', got[::-1] if is_wrong else got)
            done = tt('group', 'check', folder, rc=int(is_wrong))
            if is_wrong:
                check('z has received what y sent' in one_sentence(done.stderr, f'{more}'),
                      done.stderr)
            equal('cannot be checked' in done.stdout, bool(is_open), done.stdout)
            info = json.loads(tt('group', 'check', folder, '--json', rc=int(is_wrong)).stdout)
            equal([info['unknown'], info['undecided']], [len(more), is_open],
                  f'{is_wrong} {more}')


@limit(60)
def test_incidents_forgotten(work):
    """What is said of a member whose log does not have the incident of x at position 2."""
    x, y = golden_logs(), golden_logs(bytes(range(0x30, 0x40)))
    run = record(work, guest_args(work, 'hlt'), 'one').dir
    folder = os.path.join(work, 'group')
    ours, alone = (1, 0, 60, SENT), (3, 1, 1)
    for of_x, x_is_window, of_y, y_is_window, name, said in (
            # Nothing in the window of y is known to be before that.
            ([ours, incident(x)], False, [delivered(x, 0, 1)], True, 'y',
             'has not heard of it, or no longer in its window'),
            ([delivered(y, 0, 1001), incident(x)], False, [ours], True, 'y',
             'has not heard of it'),
            ([ours, incident(x)], False, [delivered(x, 0, 1)], False, 'y',
             'has not heard of it'),
            ([ours], True, [incident(x)], False, 'x', 'no longer in its window'),
            ([alone], False, [incident(x)], False, 'x', 'its log ends before it')):
        shutil.rmtree(folder, ignore_errors=True)
        forge(x, run, f'{folder}/x', of_x, x_is_window)
        forge(y, run, f'{folder}/y', of_y, y_is_window)
        lines = tt('group', 'incidents', folder).stdout.splitlines()
        check(any(re.fullmatch(f'  {name} +-  {said}', line) for line in lines), f'{lines}')
        listed, = json.loads(tt('group', 'incidents', folder, '--json').stdout)['incidents']
        equal([listed['past'], listed['perhaps_past']],
              [[name] if said == 'no longer in its window' else [],
               [name] if ', or' in said else []], said)


@limit(60)
def test_ways(work):
    """The note of an incident says by which ways frames came, also by what was plugged in."""
    args = [*MACHINE, '-netdev', f'tt,id=n0,group=g,listen={work}/p0']
    with recorder(work, args, 'one', qmp=1) as vm:
        wait_until(lambda: vm.qmp.cmd('query-tt')['position'] > 0, 'it runs')
        vm.qmp.cmd('tt-incident', what='one link')
        vm.qmp.cmd('netdev_add', type='hubport', id='n1', hubid=0)
        vm.qmp.cmd('object-add', **{'qom-type': 'filter-tt', 'id': 'f', 'netdev': 'n1',
                                    'group': 'g'})
        vm.qmp.cmd('tt-incident', what='and a filter')
        vm.qmp.cmd('object-del', id='f')
        vm.qmp.cmd('netdev_add', type='tt', id='n2', group='g', listen=f'{work}/p2')
        vm.qmp.cmd('tt-incident', what='and another link')
        vm.qmp.send('quit')
        vm.wait(0)
    lines = tt('log', vm.run, '--kind', 'frame', '--json').stdout.splitlines()
    equal([json.loads(line).get('aux', 0) for line in lines], [0, 1, 3], f'{lines}')
