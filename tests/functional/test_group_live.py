# SPDX-License-Identifier: GPL-2.0-or-later
"""A whole group goes on for real from a checkpoint of the group, and a whole group keeps
what led to an incident in one of its members."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time

from group_peer import Peer, incident_of
from guests import guest_args
from strangers import Member
from test_group import (UNTIL_TOLD, check_rounds, free_port, friend, group_points, guest, hub,
                        md5_of, nic, server_args)
from test_robust import mount_small
from ttlib import (MACHINE, SLOW, TestFailure, Vm, check, check_exact, equal, limit,
                   one_sentence, read_bytes, recorder, tool, tt, wait_until)

# The host does something between the rounds, and must find the guests running.
SLOWLY = UNTIL_TOLD.replace('while [ $more -lt 5 ]; do\n',
                            'while [ $more -lt 5 ]; do\n    sleep 0.5\n')
# What the guest's kernel would print, in the eighth round.
CRASH = SLOWLY.replace('sleep 0.5\n', 'sleep 0.5\n    [ $i != 8 ] || echo "Oops: a test"\n')


def clients_args(options, numbers, script=SLOWLY):
    def make(work, number):
        return guest(work, f'c{number}', script.replace('NUMBER', str(number))) + \
            nic(number, options)
    return {f'client{number}': (make, number) for number in numbers}


@contextlib.contextmanager
def recorded(work, server, clients, path, options=''):
    """{name: running Vm} of a server and its clients, with their monitors."""
    os.makedirs(os.path.join(work, 'group'))
    with contextlib.ExitStack() as running:
        def add(name, args):
            return running.enter_context(recorder(work, args, f'group/{name}', options,
                                                  timeout=300, qmp=1, typed=True))
        vms = {'server': add('server', server_args(work, server, len(clients)))}
        if 'listen' in server:
            wait_until(lambda: os.path.exists(path), 'the server listens')
        for name, (make, number) in clients.items():
            vms[name] = add(name, make(work, number))
        yield vms


def quit_all(vms):
    """At once: nobody is to wait for one that has gone."""
    for vm in vms.values():
        vm.qmp.send('quit')
    for vm in vms.values():
        vm.wait(0)


def live(work, *more):
    """tt group live to its end; what it says."""
    text = tt('group', 'live', os.path.join(work, 'group'), '--to',
              os.path.join(work, 'second'), *more, timeout=150).stdout
    print(text)
    return text


def last_round(vm):
    """The last round of one that is being recorded; it has not ended."""
    check(vm.serial.count(b'TT-DONE') == 0, f'{vm.name} has ended')
    return int(re.findall(rb'TT-ROUND (\d+) ', vm.serial)[-1])


def check_went_on(work, name, md5, last):
    """The branch's part of the console: the rounds from where the checkpoint was."""
    text = read_bytes(os.path.join(work, 'second', f'{name}.console'))
    first = re.search(rb'TT-ROUND (\d+)', text)
    check(first and 1 < int(first.group(1)) <= last + 1,
          f'{name} did not go on: {text[-300:]}')

    class Console:
        serial = text
    Console.name = name
    check_rounds(Console, md5, int(first.group(1)))


# Each branch has a console of its own, beside its run.
CONSOLE = ['--without', 'serial', '--', '-serial']
UNTYPED = ['--without', 'chardev', *CONSOLE]


def told_console(work):
    """The same, and each branch is told at once to end after some rounds."""
    word = os.path.join(work, 'word')
    with open(word, 'w', encoding='ascii') as out:
        out.write('end\n')
    return [*UNTYPED, 'chardev:told', '-chardev',
            f'file,id=told,path={work}/second/{{member}}.console,input-path={word}']


def members_of_incidents(*args):
    return json.loads(tt('group', 'incidents', *args, '--json').stdout)['incidents']


def list_of(work, name, members):
    path = os.path.join(work, name)
    with open(path, 'w', encoding='utf-8') as out:
        out.write(f'[group]\nname={name}\n[members]\n')
        out.writelines(f'{member}={run}\n' for member, run in members.items())
    return path


def wait_windows(paths):
    wait_until(lambda: all(os.path.isdir(p) for p in paths), f'windows {paths}', 60)


@limit(300)
def test_two(work):
    """Two flight recorders: what one says on its console keeps the windows of both, at one
    moment. Then both go on for real from a checkpoint of the group, with no hub."""
    path = os.path.join(work, 'link')
    clients = clients_args(f'connect={path}', [2], CRASH)
    with recorded(work, f'listen={path}', clients, path, ',last=10min') as vms:
        client, server = vms['client2'], vms['server']
        check(client.qmp and server.qmp, 'events are kept from here on')
        client.wait_serial('TT-ROUND 2', timeout=150)
        said = client.qmp.hmp('tt checkpoint add -g', 60)
        check('full' in said, f'tt checkpoint add -g: {said}')
        event = client.qmp.event('TT_GUEST_PANIC', 120)
        equal(event['mark'], 'panic-1', 'the mark of the crash')
        event = server.qmp.event('TT_INCIDENT', 30)
        equal(event['mark'], 'peer-1', 'the mark of the peer')
        check('@panic-1' in event['what'], event['what'])
        windows = {'client2': f'{client.run}-panic-1', 'server': f'{server.run}-peer-1'}
        wait_windows(windows.values())
        client.wait_serial('TT-ROUND 9', timeout=60)
        last = last_round(client)
        quit_all(vms)
    check_windows(work, windows, event['position'])
    md5 = md5_of(server.serial)
    live_says_no(work)
    live_is_told(work, signal.SIGTERM)
    live_is_told(work, signal.SIGKILL)
    second = os.path.join(work, 'second')
    live(work, *told_console(work))
    check_went_on(work, 'client2', md5, last)
    check('fit together' in tt('group', 'check', second).stdout, 'tt group check')
    equal(group_points(second), [], 'checkpoints that nobody asked for')
    answer = json.loads(tt('group', 'compare', os.path.join(work, 'group'), second,
                           '--json').stdout)
    equal([m['name'] for m in answer['members']], ['client2', 'server'], f'{answer}')
    check(all(m['same'] + m['different'] > 20 for m in answer['members']), f'{answer}')
    check_exact(work, os.path.join(second, 'client2'), name='second-rep',
                serial_wanted=read_bytes(f'{second}/client2.console'), timeout=200)


def check_windows(work, windows, position):
    """The saved windows are a group, in which the incident is at a consistent cut; the
    directory of the runs does not count them as members."""
    folder = os.path.join(work, 'group')
    for where in (list_of(work, 'windows', windows), folder):
        check('fit together' in tt('group', 'check', where).stdout, 'tt group check')
        found = members_of_incidents(where)
        equal([(i['mark'], i['found_by'], sorted(i['members'])) for i in found],
              [('panic-1', 'client2', ['client2', 'server'])], 'incidents')
        check(found[0]['members']['server'] >= position, f'{found} {position}')
        check('console' in found[0]['what'], found[0]['what'])
    check('of client2' in tt('group', 'incidents', folder).stdout, 'for people')


def live_says_no(work):
    group = os.path.join(work, 'group')
    there = os.path.join(work, 'there')
    os.mkdir(there)
    for args, why in ((['--at', '@group-7', '--to', f'{work}/x'], 'no member of group has'),
                      (['--to', there], 'cannot create'),
                      (['--to', f'{group}/server.run/x'], 'inside the run')):
        said = one_sentence(tt('group', 'live', group, *args, rc=1).stderr, str(args))
        check(why in said, f'{args}: {said}')
    for args, why in ((['--to', f'{work}/x', '--at', 'first'], '--at takes'),
                      ([], '--to is missing'),
                      (['--to', f'{work}/x', '--hub', ''], 'no member connects to a hub'),
                      (['--to', f'{work}/x', '--json'], 'no --json')):
        check(why in tt('group', 'live', group, *args, rc=2).stderr, f'{args}')
    check('only for tt group live' in tt('group', 'info', group, '--to', 'x', rc=2).stderr,
          'an option of another verb')
    # One that cannot begin: none does.
    bad = os.path.join(work, 'bad')
    done = tt('group', 'live', group, '--to', bad, '--', '-device', 'no-such-thing', rc=1)
    check('did not begin' in done.stderr and 'no-such-thing' in done.stderr, done.stderr)
    check(not done.stdout, done.stdout)
    printed = tt('group', 'live', group, '--to', f'{work}/x', '--print').stdout
    equal(printed.count('at=@group-1'), 2, f'commands: {printed}')


def live_is_told(work, number):
    """The group has gone on, and the command gets a signal: all members end."""
    pids = []
    with subprocess.Popen([tool('tt'), 'group', 'live', os.path.join(work, 'group'), '--to',
                           os.path.join(work, f'told{number}'), *UNTYPED, 'null'],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        for line in process.stdout:
            pids += re.findall(r'process (\d+),', line)
            if len(pids) == 2:
                break
        process.send_signal(number)
        said, wrong = process.communicate(timeout=60 * SLOW)
    wait_until(lambda: not any(os.path.exists(f'/proc/{pid}') for pid in pids),
               'all members have ended')
    if number == signal.SIGTERM:
        equal([process.returncode, said.count('has ended')], [0, 2], f'{said} {wrong}')


@limit(300)
def test_four(work):
    """Four members at a hub that delays: a look from outside keeps all four windows at one
    moment; then all go on from a checkpoint of the group, with a hub of their own."""
    bad = ['--delay', '10', '--jitter', '30']
    with hub(work, *bad) as path:
        clients = clients_args(f'connect={path}', [2, 3, 4])
        with recorded(work, f'connect={path}', clients, path, ',last=10min') as vms:
            for vm in vms.values():
                vm.wait_serial('TT-SERVES' if vm is vms['server'] else 'TT-ROUND 2',
                               timeout=200)
            check('full' in vms['client3'].qmp.hmp('tt checkpoint add -g', 60), 'no -g')
            vms['client3'].wait_serial('TT-ROUND 4', timeout=100)
            answer = vms['client4'].qmp.cmd('tt-incident', what='it is slow')
            equal(answer['mark'], 'incident-1', 'the mark')
            windows = {name: f'{vm.run}-{"incident" if name == "client4" else "peer"}-1'
                       for name, vm in vms.items()}
            wait_windows(windows.values())
            last = {name: last_round(vms[name]) for name in clients}
            quit_all(vms)
    folder = os.path.join(work, 'group')
    equal([sorted(p['members']) for p in group_points(folder)], [sorted(vms)],
          'members of the checkpoint')
    for where in (list_of(work, 'windows', windows), folder):
        check('fit together' in tt('group', 'check', where).stdout, 'tt group check')
        equal([(i['mark'], i['what'], i['found_by'], sorted(i['members'])) for i in
               members_of_incidents(where)],
              [('incident-1', 'it is slow', 'client4', sorted(vms))], 'incidents')
    said = one_sentence(tt('group', 'live', folder, '--to', f'{work}/x', rc=1).stderr,
                        'without a hub')
    check('nobody is at' in said, said)
    live_hub_fails(work, folder)
    second, md5 = os.path.join(work, 'second'), md5_of(vms['server'].serial)
    live(work, '--hub', ' '.join(bad), *told_console(work))
    for name in clients:
        check_went_on(work, name, md5, last[name])
    check(b'TT-DONE own bye bye bye' in read_bytes(f'{second}/server.console'),
          'the server did not end')
    check('fit together' in tt('group', 'check', second).stdout, 'tt group check')


def live_hub_fails(work, folder):
    """A hub that does not begin says why; of one that dies the user is told."""
    said = one_sentence(tt('group', 'live', folder, '--to', f'{work}/wrong', '--hub',
                           '--delay x', rc=1).stderr, 'an option of the hub')
    check("--delay takes a number from 0 to 60000, not 'x'" in said, said)
    with subprocess.Popen([tool('tt'), 'group', 'live', folder, '--to', f'{work}/dies',
                           '--hub', '', *UNTYPED, 'null'], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        check('goes on from' in process.stdout.readline(), 'it goes on')
        children = read_bytes(f'/proc/{process.pid}/task/{process.pid}/children').split()
        hubs = [pid for pid in children
                if b'hub' in read_bytes(f'/proc/{int(pid)}/cmdline').split(b'\0')]
        equal(len(hubs), 1, 'hubs')
        # Another one from the same recording would meet these members at the hub.
        again = ['group', 'live', folder, '--to', f'{work}/again']
        wait_until(lambda: tt(*again, '--print', rc=None).returncode,
                   'the hub has its members')
        said = one_sentence(tt(*again, rc=1).stderr, 'two at once')
        check('lets nobody else in' in said and not os.path.exists(f'{work}/again'), said)
        os.kill(int(hubs[0]), signal.SIGKILL)
        said = process.stderr.readline()
        process.terminate()
        process.communicate(timeout=60 * SLOW)
    check('the hub was ended by signal 9' in said, said)
    equal(process.returncode, 1, 'its end')


# tt watch

class Agent(threading.Thread):
    """A guest agent that knows guest-sync only, until it is told to be silent."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.is_silent = False
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()

    def run(self):
        while True:
            peer, _ = self.listener.accept()
            with peer, contextlib.suppress(OSError):
                peer.settimeout(5)
                asked = json.loads(peer.recv(4096))
                if not self.is_silent:
                    peer.sendall(b'{"return": %d}\n' % asked['arguments']['id'])
                else:
                    time.sleep(2)


@contextlib.contextmanager
def watching(vm, *args):
    """tt watch, once it has had an answer."""
    with subprocess.Popen([tool('tt'), 'watch', vm.qmp_paths[1], '--every', '1',
                           '--patience', '1', '--fails', '2', '--once', *args],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        try:
            check('watched from here on' in process.stdout.readline(), f'{args}')
            yield process
        finally:
            process.kill()


@limit(120)
def test_watch(work):
    """A port, an agent, a script: when one fails the VM has a mark and saves its window; it
    need not be in a group. Before the first success nothing counts."""
    flag, path = os.path.join(work, 'flag'), os.path.join(work, 'agent')
    agent = Agent(path)
    agent.start()
    with recorder(work, guest_args(work, 'torture', 'rounds=1000000 percent=30'),
                  options=',last=1s', qmp=2, timeout=100) as vm, socket.socket() as port:
        port.bind(('127.0.0.1', 0))
        port.listen()
        vm.wait_serial('\n')
        check(vm.qmp.cmd('query-tt')['live'], 'it is recorded')
        number = port.getsockname()[1]
        open(flag, 'w', encoding='ascii').close()
        for mark, args, stop, what in (
                (1, ['--script', f'test -e {flag}'], lambda: os.unlink(flag),
                 'this fails: test -e'),
                (2, ['--tcp', f':{number}'], port.close, f':{number} does not answer'),
                (3, ['--agent', path], lambda: setattr(agent, 'is_silent', True),
                 'the guest agent is silent')):
            with watching(vm, *args) as process:
                stop()
                said, wrong = process.communicate(timeout=60 * SLOW)
            equal(process.returncode, 0, f'{args}: {said} {wrong}')
            check(f'mark @incident-{mark}' in said, f'{args}: {said}')
            event = vm.qmp.event('TT_INCIDENT', 20)
            equal(event['mark'], f'incident-{mark}', 'the event')
            check(what in event['what'], event['what'])
        wait_windows([f'{vm.run}-incident-1'])
        check_stopped_is_no_failure(work, vm, flag)
        check_watch_says_no(work, vm, flag)
        vm.qmp.send('quit')
        vm.wait(0)
    marks = json.loads(tt('info', f'{vm.run}-incident-1', '--json').stdout)
    check('incident-1' in json.dumps(marks), f'{marks}')


def check_stopped_is_no_failure(work, vm, flag):
    """A VM that is stopped, or shows its past; then it fails. Nor does an agent's socket
    that takes no more connections hold the watcher."""
    full = os.path.join(work, 'full')
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as peer:
        listener.bind(full)
        listener.listen(0)
        open(flag, 'w', encoding='ascii').close()
        with watching(vm, '--script', f'test -e {flag}') as process:
            vm.qmp.cmd('stop', 30)
            os.unlink(flag)
            time.sleep(4)
            check(process.poll() is None, 'tt watch takes a stopped VM for a failed one')
            vm.qmp.cmd('cont', 30)
            equal(process.wait(60 * SLOW), 0, 'status')
        agent = Agent(os.path.join(work, 'agent-2'))
        agent.start()
        with watching(vm, '--agent', os.path.join(work, 'agent-2')) as process:
            os.rename(full, os.path.join(work, 'agent-2'))
            peer.connect(os.path.join(work, 'agent-2'))
            equal(process.wait(60 * SLOW), 0, 'status')


def check_watch_says_no(work, vm, flag):
    where = vm.qmp_paths[1]
    for args, rc, why in (([where], 2, 'give one of'),
                          ([where, '--tcp', 'x'], 2, 'HOST:PORT'),
                          ([where, '--script', 'true', '--fails', '0'], 2, 'from 1 to'),
                          ([f'{work}/none', '--script', 'true'], 1, 'cannot connect')):
        check(why in tt('watch', *args, rc=rc).stderr, f'{args}')
    # The VM is asked, and cannot: nothing is recorded any more.
    open(flag, 'w', encoding='ascii').close()
    with watching(vm, '--script', f'test -e {flag}') as process:
        vm.qmp.cmd('tt-record-stop', 30)
        os.unlink(flag)
        _, wrong = process.communicate(timeout=60 * SLOW)
    equal(process.returncode, 1, 'status')
    check('could not mark it' in one_sentence(wrong, 'tt watch'), wrong)


@limit(100)
def test_hub_by_two_names(work):
    """Members that connect to one hub by two names of its number: tt group live starts one
    hub for both."""
    port = free_port()
    os.makedirs(os.path.join(work, 'group'))
    with contextlib.ExitStack() as running:
        process = running.enter_context(
            subprocess.Popen([tool('tt'), 'hub', '--group', 'g', '--listen',
                              f'127.0.0.1:{port}', '--once', '--seconds', '600'],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        check('listening' in process.stdout.readline(), 'the hub listens')
        vms = {}
        for name, host in (('a', '127.0.0.1'), ('b', 'localhost')):
            args = [*guest_args(work, 'torture', 'rounds=1000000 percent=30'), '-netdev',
                    f'tt,id=net0,group=g,connect={host}:{port}', '-device',
                    'virtio-net-pci,netdev=net0,romfile=']
            vms[name] = running.enter_context(recorder(work, args, f'group/{name}', qmp=1,
                                                       timeout=90))
            wait_until(lambda vm=vms[name]: 'connected' in vm.qmp.hmp('info network'),
                       'it is connected')
            vms[name].wait_serial('\n')     # the recording has begun
        vms['a'].qmp.hmp('tt checkpoint add -g', 60)
        folder = os.path.join(work, 'group')
        wait_until(lambda: [sorted(p['members']) for p in group_points(folder)] ==
                   [['a', 'b']], 'the checkpoint', 60)
        quit_all(vms)
    with subprocess.Popen([tool('tt'), 'group', 'live', folder, '--to', f'{work}/second',
                           '--hub', '', *CONSOLE, 'null'], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        said = process.stdout.readline()
        process.terminate()
        _, wrong = process.communicate(timeout=60 * SLOW)
    check('goes on from' in said, f'{said} {wrong}')
    equal(process.returncode, 0, wrong)
    if os.geteuid() == 0:
        live_on_full_disk(work, vms)


def live_on_full_disk(work, vms):
    """The command says which member stands still since the disk is full. Names that are no
    ASCII take as much room as others."""
    place = mount_small(work, '4m')
    try:
        listed = list_of(work, 'named', {'é': vms['a'].run, 'b': vms['b'].run})
        with subprocess.Popen([tool('tt'), 'group', 'live', listed, '--to', f'{place}/second',
                               '--hub', '', *CONSOLE, 'null'], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, encoding='utf-8') as process:
            try:
                said = [process.stdout.readline() for _ in range(3)]
                equal(len({line.index('process') for line in said[1:]}), 1, f'{said}')
                for name in 'é', 'b':           # what it begins with is written
                    wait_until(lambda run=f'{place}/second/{name}':
                               os.path.exists(f'{run}/manifest') and
                               os.path.getsize(f'{run}/log') > 0, f'{name} records')
                with contextlib.suppress(OSError), open(f'{place}/full', 'wb', 0) as out:
                    while True:
                        out.write(bytes(4096))
                wrong = process.stderr.readline()
            finally:
                process.terminate()
            process.communicate(timeout=60 * SLOW)
    finally:
        subprocess.run(['umount', '-l', place], check=False)
    check(re.match(r'tt: (é|b) is stopped because its recording cannot be written: .*No '
                   "space left on device; use 'cont'", wrong), wrong)


@limit(100)
def test_checkpoints_too_soon(work):
    """The others ask for checkpoints faster than this VM makes them: it says which ones are
    without it."""
    path = os.path.join(work, 'sock')
    with recorder(work, [*guest_args(work, 'torture', 'rounds=1000000 percent=30'),
                         '-netdev', f'tt,id=net0,group=g,listen={path}', '-device',
                         'virtio-net-pci,netdev=net0,romfile='], qmp=1,
                  timeout=90) as vm:
        vm.wait_serial('\n')
        with Member(path).join() as p:
            for number in range(1, 300):
                p.send(p.epoch(number))
                time.sleep(.1)
                if 'none includes' in vm.stderr:
                    break
        vm.qmp.send('quit')
        vm.wait(0)
    found = re.search(r'of the group from (\d+) to (\d+) none includes', vm.stderr)
    check(found, vm.stderr)
    without = range(int(found.group(1)), int(found.group(2)) + 1)
    made = [p['number'] for p in group_points(list_of(work, 'alone', {'alone': vm.run}))
            if 'alone' in p['members']]
    check(made and without and not set(made) & set(without), f'{made}, without {without}')


@limit(60)
def test_checkpoints_in_one_read(work):
    """Several checkpoints of the group are announced by one write: this VM makes the last
    and says which it has not made."""
    path = os.path.join(work, 'sock')
    with recorder(work, [*MACHINE, *nic(1, f'listen={path}')], qmp=1) as vm:
        wait_until(lambda: 'listening' in vm.qmp.hmp('info network'), 'it listens')
        wait_until(lambda: tt('info', vm.run, rc=None).returncode == 0, 'the log has begun')
        for numbers, said in (((1, 2), 'checkpoint 1 of the group does not include'),
                              ((3, 4, 5), 'from 3 to 4 none includes this VM')):
            with friend_member(path) as p:
                p.send(b''.join(p.epoch(number) for number in numbers))
                wait_until(lambda last=numbers[-1]: last in made_of(work, vm), 'the last one',
                           30)
            check(said in vm.stderr, vm.stderr)
        said_is_kept(work, vm)
        vm.qmp.send('quit')
        vm.wait(0)
    equal(made_of(work, vm), [2, 5, 6, 7, 8, 9], 'checkpoints')
    equal(vm.stderr.count('it heard of the next'), 2, vm.stderr)


def said_is_kept(work, vm):
    """What QEMU says is done is in the files, should it be killed at once; and the incident is
    where its mark is."""
    alone = list_of(work, 'alone', {'alone': vm.run})
    for number in range(6, 10):
        vm.qmp.cmd('tt-checkpoint-add', 30, group=True)
        equal(made_of(work, vm)[-1:], [number], 'the last checkpoint')
        incident = vm.qmp.cmd('tt-incident', what='none')
        found = members_of_incidents(alone)[-1:]
        equal([(i['mark'], i['members']) for i in found],
              [(incident['mark'], {'alone': incident['position']})], 'the last incident')


def friend_member(path):
    """The one before may not be gone yet."""
    def try_it():
        with contextlib.suppress(OSError, TestFailure):
            return Member(path).join()
        return None
    return wait_until(try_it, 'the netdev lets a peer in')


def made_of(work, vm):
    return [p['number'] for p in group_points(list_of(work, 'alone', {'alone': vm.run}))
            if 'alone' in p['members']]


@limit(100)
def test_strangers(work):
    """A peer that reports incidents without end: ten are marked, the others dropped; one
    that is damaged ends the connection. A VM that is not recorded, or shows its past, goes
    on."""
    path = os.path.join(work, 'sock')
    with recorder(work, [*guest_args(work, 'torture', 'rounds=1000000 percent=30'),
                         '-netdev', f'tt,id=net0,group=g,listen={path}', '-device',
                         'virtio-net-pci,netdev=net0,romfile='], qmp=1,
                  timeout=90) as vm:
        vm.wait_serial('\n')
        here = vm.qmp.cmd('query-tt')['position']
        vm.qmp.cmd('tt-goto', 60, position=here // 2)
        check('past' in vm.qmp.error('tt-incident'), 'in the past')
        with Peer(path) as p:
            p.hello()
            p.ready()
            p.send(incident_of('late', b'', 1, seq=300, run=b's' * 16))
            vm.qmp.cmd('tt-goto', 60, where='end')
            event = vm.qmp.event('TT_INCIDENT', 20)
            equal([event['mark'], '@late' in event['what']], ['peer-1', True], 'from then')
            check(event['position'] >= here, f'in the present: {event} {here}')
            vm.qmp.cmd('cont')
        with friend(path) as p:
            for i in range(100):
                p.send(incident_of(f'x-{i % 50}', b'\x1b[2Jwords', i + 1, seq=i % 50))
            event = vm.qmp.event('TT_INCIDENT', 20)
            equal(event['mark'], 'peer-2', 'the second mark')
            check(event['what'].isprintable() and 'words' in event['what'], event['what'])
            p.send(incident_of('', b'no mark', 101, seq=200))
            check(p.is_closed(), 'an incident without a mark')
        check(vm.qmp.cmd('query-status')['running'], 'it goes on')
        vm.qmp.send('quit')
        vm.wait(0)
    marks = [e for e in tt('log', vm.run, '--kind', 'mark').stdout.splitlines()]
    check(10 <= len(marks) <= 11, f'{len(marks)} marks: {marks}')
    check(len(vm.stderr.splitlines()) < 20, vm.stderr[-900:])
    check_exact(work, vm.run, serial_wanted=vm.serial, timeout=90)
    with Vm(work, [*MACHINE, '-netdev', f'tt,id=net0,group=g,listen={path}'], name='plain',
            qmp=1) as vm:
        wait_until(lambda: 'listening' in vm.qmp.hmp('info network'), 'it listens')
        with Peer(path) as p:
            p.hello()
            p.ready()
            p.send(incident_of('x-1', b'', 1))
            check('no recording' in vm.qmp.hmp('tt incident'), 'nothing is recorded')
            said = vm.qmp.hmp('tt checkpoint add -g')
            check('this VM is not recorded' in said, said)
        vm.qmp.send('quit')
        vm.wait(0)
