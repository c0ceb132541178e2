# SPDX-License-Identifier: GPL-2.0-or-later
"""Recorded VMs that talk to each other: each replays alone, and their cuts and orders are
what brute force says."""

import bisect
import contextlib
import ctypes
import json
import os
import re
import signal
import socket
import struct
import subprocess
import threading
import time

from group_peer import (FRAME, HEAD, HELLO, INCIDENT, READY, Peer, frame_of, incident_of,
                        is_read, message, no_time)
from guests import guest_args, own_args
from strangers import LONGEST, Member, session
from test_branch import brancher
from ttlib import (BUILD, MACHINE, REPO, SLOW, Gdb, Skip, TestFailure, Vm, check,
                   check_exact, equal, limit, one_sentence, read_bytes, record, recorder,
                   run_tool, seed, stopped_replay, tool, tt, wait_until)

HUB_PORTS = 256                             # TT_SHAPE_PORTS_MAX
TO_ALL = b'\xff' * 6 + bytes(54)

SERVER = '''
ifconfig lo 127.0.0.1 up
ifconfig eth0 10.9.0.1 netmask 255.255.255.0 up
mkdir -p /tmp/www
head -c 60000 /dev/urandom > /tmp/www/file
echo "TT-FILE $(md5sum /tmp/www/file | cut -d ' ' -f 1)"
httpd -h /tmp/www
echo TT-SERVES
i=0
while [ $i -lt CLIENTS ]; do
    # A port for each: one listener refuses whoever comes while it ends.
    nc -l -p $((102 + i)) < /dev/null >> /tmp/bye &
    i=$((i + 1))
done
wait
# The host stops this VM again and again, and must find it running.
sleep 4
echo "TT-DONE own" $(cat /tmp/bye)
'''

CLIENT = '''
ifconfig lo 127.0.0.1 up
ifconfig eth0 10.9.0.NUMBER netmask 255.255.255.0 up
i=0
until wget -q -O /tmp/got http://10.9.0.1/file || [ $i -gt 60 ]; do
    i=$((i + 1))
    sleep 1
done
echo "TT-FILE $(md5sum /tmp/got | cut -d ' ' -f 1)"
ping -c 5 -i 0.2 10.9.0.1 | grep transmitted
i=0
until echo bye | nc -w 60 10.9.0.1 10NUMBER || [ $i -gt 20 ]; do
    i=$((i + 1))
    sleep 1
done
# A FIN that is lost is sent again, but not by a VM that is off.
sleep 4
echo "TT-DONE own"
'''


def nic(number, options):
    return ['-netdev', f'tt,id=net0,group=g,{options}', '-device',
            f'virtio-net-pci,netdev=net0,romfile=,mac=52:54:00:09:00:{number:02x}']


def guest(work, name, script):
    """The arguments of a Linux guest that runs a script."""
    own = os.path.join(work, name)
    os.makedirs(own, exist_ok=True)
    return own_args(own, {'own/run': script.encode()}, 'syms=icmp_rcv', memory='128')


@contextlib.contextmanager
def hub(work, *options):
    """A hub; yields the path of its socket."""
    path = os.path.join(work, 'hub')
    with open(f'{path}.stderr', 'wb') as err, \
            subprocess.Popen([tool('tt'), 'hub', '--group', 'g', '--listen', path,
                              '--seconds', '900', *options], stdout=subprocess.PIPE,
                             stderr=err) as process:
        try:
            check(b'listening' in process.stdout.readline(), 'the hub listens')
            yield path
        finally:
            process.terminate()
            process.wait(20 * SLOW)


def md5_of(serial):
    found = re.search(rb'TT-FILE ([0-9a-f]{32})', serial)
    check(found, f'the guest says {serial[-300:]}')
    return found.group(1)


def server_args(work, options, clients=1):
    return guest(work, 's', SERVER.replace('CLIENTS', str(clients))) + nic(1, options)


def client_args(work, options, number=2):
    return guest(work, f'c{number}', CLIENT.replace('NUMBER', str(number))) + \
        nic(number, options)


def check_consoles(server, *clients):
    check(b'TT-DONE own' + b' bye' * len(clients) in server,
          f'the server says {server[-300:]}')
    for client in clients:
        check(b'TT-DONE own' in client, f'the client says {client[-300:]}')
        equal(md5_of(client), md5_of(server), 'the file that the client got')


def record_group(work, path, clients=1, name='group', during=None):
    """Records a server and its clients behind the hub at path, all to their end. Returns
    their ended Vms."""
    os.makedirs(os.path.join(work, name))
    vms = [recorder(work, server_args(work, f'connect={path}', clients),
                    f'{name}/server', timeout=350, qmp=1)]
    vms += [recorder(work, client_args(work, f'connect={path}', number),
                     f'{name}/client{number}', timeout=350)
            for number in range(2, clients + 2)]
    with contextlib.ExitStack() as running:
        for vm in vms:
            running.enter_context(vm)
        if during:
            during(vms[0])
        for vm in reversed(vms):
            vm.wait(0)
    check_consoles(*(vm.serial for vm in vms))
    return vms


def check_group(work, vms, cuts, name='group'):
    """Each replays exactly alone, and the group fits together."""
    folder = os.path.join(work, name)
    for vm in vms:
        check_exact(work, vm.run, name=f'{vm.name}-rep', serial_wanted=vm.serial,
                    timeout=200)
    check('fit together' in tt('group', 'check', folder).stdout, 'tt group check')
    compare(folder, {os.path.basename(vm.name): vm.run for vm in vms}, cuts)


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


@limit(200)
def test_plain(work):
    """Two VMs that nobody records, one beside the other, over TCP and with a key."""
    key = os.path.join(work, 'key')
    with open(key, 'w', encoding='ascii') as out:
        out.write('sixteen bytes and more\n')
    port = free_port()
    client = client_args(work, f'connect=:{port},key-file={key}')
    server = server_args(work, f'listen=127.0.0.1:{port},key-file={key}')
    with Vm(work, client, name='client', timeout=150) as c:
        # The client tries again until there is a server.
        wait_until(lambda: 'trying again' in c.stderr, 'a sentence on no server')
        with Vm(work, server, name='server', timeout=150) as s:
            c.wait(0)
            s.wait(0)
        check_consoles(s.serial, c.serial)
    check('connected' in c.stderr, c.stderr)


# Brute force, from the lists of events as tt log prints them

def frame_notes(run):
    """Each as (what, event): sent, delivered, and the numbers of other notes."""
    out = tt('log', run, '--kind', 'frame', '--kind', 'frame-in', '--kind', 'frame-out',
             '--json', '--data').stdout
    for line in out.splitlines():
        ev = json.loads(line)
        yield {'frame-out': 'sent', 'frame-in': 'delivered'}.get(ev['kind']) or int(
            ev['addr'], 16), ev


def read_frames(run):
    """([(position, sequence, hash)] sent, [(position, run, sequence, hash)] delivered)."""
    sent, got = [], []
    for what, ev in frame_notes(run):
        data = bytes.fromhex(ev.get('data', ''))
        seq = int(ev['val'], 16)
        if what == 'sent':
            sent.append((ev['position'], seq, data[:8]))
        elif what == 'delivered':
            got.append((ev['position'], data[8:24].hex(), seq, data[:8],
                        int(ev['addr'], 16)))
    return sent, got


class Brute:
    """The messages of a group, and its cuts by going round until nothing changes."""

    def __init__(self, runs):
        self.ends, self.messages, self.sends = {}, [], {}
        info = json.loads(tt('group', 'info', os.path.dirname(next(iter(runs.values()))),
                             '--json').stdout)
        ids = {m['id']: m['name'] for m in info['members']}
        self.ends = {m['name']: m['end'] for m in info['members']}
        frames = {name: read_frames(run) for name, run in runs.items()}
        for name, (sent, _) in frames.items():
            self.sends[name] = {seq: (pos, digest) for pos, seq, digest in sent}
        for name, (_, got) in frames.items():
            for pos, run, seq, digest, claimed in got:
                sent_at, sent_digest = self.sends[ids[run]][seq]
                equal(digest, sent_digest, f'hash of frame {seq}')
                equal(claimed, sent_at, f'position of frame {seq}')
                self.messages.append((ids[run], sent_at, name, pos))

    def cut(self, member, pos):
        at = {**self.ends, member: pos}
        changed = True
        while changed:
            changed = False
            for src, sent, dst, got in self.messages:
                if got < at[dst] and sent >= at[src]:
                    at[dst], changed = got, True
        equal(at[member], pos, 'the position asked for')
        return at

    def leads(self, a, pos_a, b, pos_b):
        """Is there a chain of frames from one place to the other?"""
        reach = {a: pos_a}
        changed = True
        while changed:
            changed = False
            for src, sent, dst, got in self.messages:
                if src in reach and sent >= reach[src] and \
                        got < reach.get(dst, 1 << 63):
                    reach[dst], changed = got, True
        return reach.get(b, 1 << 63) <= pos_b

    def order(self, a, pos_a, b, pos_b):
        before = self.leads(a, pos_a, b, pos_b)
        after = self.leads(b, pos_b, a, pos_a)
        return {(True, True): 'both', (True, False): 'before', (False, True): 'after',
                (False, False): 'concurrent'}[before, after]


def compare(folder, runs, times):
    """Cuts and orders of random places, and of those at which frames were."""
    brute = Brute(runs)
    rng = seed()
    names = sorted(runs)
    marks = sorted({(m[0], m[1]) for m in brute.messages} |
                   {(m[2], m[3]) for m in brute.messages})
    check(len(brute.messages) > 50, f'{len(brute.messages)} frames were delivered')
    inside = 0
    for i in range(times):
        if i % 2:
            name, pos = rng.choice(marks)
            pos += rng.choice((0, 1))
        else:
            name = rng.choice(names)
            # Most of a run is the boot: half of the places are among the frames.
            first = marks[bisect.bisect(marks, (name, 0))][1]
            pos = rng.randrange(rng.choice((0, first)), brute.ends[name])
        seen = json.loads(tt('group', 'cut', folder, f'{name}:{pos}', '--json').stdout)
        want = brute.cut(name, pos)
        equal(seen['cut'], want, f'cut at {name}:{pos}')
        inside += want != {**brute.ends, name: pos}
        other, place = rng.choice(marks)
        if other != name and i % 4 == 1:
            equal(json.loads(tt('group', 'order', folder, f'{name}:{pos}',
                                f'{other}:{place}', '--json').stdout)['order'],
                  brute.order(name, pos, other, place), f'{name}:{pos} {other}:{place}')
    check(inside > times / 4, f'only {inside} cuts of {times} hold anybody back')
    print(f'{len(brute.messages)} frames delivered, {inside} of {times} cuts hold back')


def stand_still(vm):
    """While frames come: the VM stops, shows its past, and goes on."""
    vm.wait_serial('TT-SERVES', timeout=150)
    for past in (False, True, False, True):
        time.sleep(.5)
        vm.qmp.cmd('stop')
        if past:
            here = vm.qmp.cmd('query-tt')['position']
            vm.qmp.cmd('tt-goto', 120, position=here - 20000)
            vm.qmp.cmd('tt-goto', 120, where='end')
        time.sleep(.2)
        vm.qmp.cmd('cont')


def nothing_unnoted(log, run):
    """Of what the hub sent to the run all is in its log, up to the last that is."""
    fates = [json.loads(line) for line in open(log, encoding='ascii')]
    got = {(name, seq) for _, name, seq, _, _ in read_frames(run)[1]}
    others = {name for name, _ in got}
    port = next(f['from'] for f in fates if f['run'] not in others)
    went = [(f['ns'] + f['after_ns'], (f['run'], f['sequence'])) for f in fates
            if f['fate'] == 'goes' and f['to'] == port]
    went = [frame for _, frame in sorted(went)]
    last = max(i for i, frame in enumerate(went) if frame in got)
    missing = [frame for frame in went[:last] if frame not in got]
    check(not missing, f'{len(missing)} of {len(went)} frames are not noted')


@limit(400)
def test_two(work):
    """Two recorded Linux guests, with frames delayed, overtaking and lost: each replays
    exactly alone, the group fits together, cuts and orders are right."""
    log = os.path.join(work, 'hub.log')
    with hub(work, '--delay', '1', '--jitter', '3', '--loss', '2', '--log', log) as path:
        vms = record_group(work, path, during=stand_still)
    check_group(work, vms, int(os.environ.get('TT_CUTS', '60')))
    fates = [json.loads(line)['fate'] for line in open(log, encoding='ascii')]
    check('lost' in fates and 'goes' in fates, f'fates: {set(fates)}')
    nothing_unnoted(log, vms[0].run)
    group_says_no(work, os.path.join(work, 'group'))
    step_messages(work, *vms)
    travel_together(os.path.join(work, 'group'), *vms)


def step_messages(work, server, client):
    """One gdb with both replays goes from a frame's arrival to its sending, and back."""
    with stopped_replay(work, server.run, 'gs', Gdb.args(work, 'gs')) as s, \
            stopped_replay(work, client.run, 'gc', Gdb.args(work, 'gc')) as c:
        text = Gdb(c)('add-inferior -no-connection', 'inferior 2',
                      f'target remote {Gdb(s).ready()}', f'source {REPO}/scripts/tt-gdb.py',
                      'inferior 1', 'tt goto end', 'reverse-step-message', 'tt when',
                      'step-message', 'tt when', 'tt goto start', 'reverse-step-message')
    got = read_frames(client.run)[1][-1]
    sent = {seq: pos for pos, seq, _ in read_frames(server.run)[0]}[got[2]]
    for said in (f'frame {got[2]} is sent, at position {sent} of inferior 2',
                 f'position {sent} of', f'frame {got[2]} is delivered, at position {got[0]} '
                 'of inferior 1', f'position {got[0]} of', 'no frame received up to here'):
        check(said in text, f'not said: {said}: {text[-1500:]}')
    check('Traceback' not in text and 'Python Exception' not in text, text[-1500:])


def group_gdb(*commands, quiet=False):
    """A gdb that starts the replays itself; what it says."""
    argv = [os.environ.get('TT_GDB', 'gdb'), '-nx', '-batch', '-q']
    for command in ('set width 0', f'source {REPO}/scripts/tt-gdb.py', *commands):
        argv += ['-ex', command]
    text = subprocess.run(argv, stdin=subprocess.DEVNULL, text=True, timeout=150 * SLOW,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          errors='replace').stdout
    if not quiet:
        print(text)
    check('Traceback' not in text and 'Python Exception' not in text, text[-1500:])
    return text


# All hits, from the last one to the first. A client that comes before its server has more of
# them: its kernel tells it by ICMP that nobody is there.
BACK_TO_THE_START = '''
def back_to_the_start():
    try:
        for _ in range(200):
            gdb.execute('tt group reverse-continue')
            gdb.execute('tt group when')
    except gdb.error as e:
        print(e)
back_to_the_start()
'''


def travel_together(folder, server, client):
    """tt group goto is the cut of brute force; tt group reverse-continue meets all hits of
    both, none before one that comes after it, each at a consistent cut."""
    brute = Brute({'server': server.run, 'client2': client.run})
    at = {name: int(re.search(rb'TT-SYM ([0-9a-f]+) \w icmp_rcv', vm.serial).group(1), 16)
          for name, vm in (('server', server), ('client2', client))}
    here = sorted(m[3] for m in brute.messages if m[2] == 'client2')[-3]
    text = group_gdb(f'tt group open {folder}', f'tt group goto client2:{here}',
                     'inferior 2', f'break *{at["server"]:#x}', 'echo HITS\\n',
                     f'tt hits *{at["server"]:#x}', 'inferior 1',
                     f'break *{at["client2"]:#x}', f'tt hits *{at["client2"]:#x}',
                     'echo BACK\\n', 'tt group goto client2:end',
                     f'python exec({BACK_TO_THE_START!r})',
                     'tt group goto nobody:7', 'tt group goto client2:nowhere',
                     'tt group goto', 'tt group open /nowhere')
    gone, rest = text.split('HITS')
    wanted = brute.cut('client2', here)
    equal(dict(shown(gone)[-2:]), wanted, f'tt group goto client2:{here}')
    listed, back = rest.split('BACK')
    # breakpoint 1 is the server's, 2 the client's: tt hits of each in that order
    parts = re.split(r'hits of .*', listed)
    hits = {(name, int(pos)) for name, part in zip(('server', 'client2'), parts)
            for pos in re.findall(r'^ *\d+ +(\d+)$', part, re.M)}
    visited = [(name, int(pos)) for name, pos in
               re.findall(r'^breakpoint \d of (\w+), at position (\d+)$', back, re.M)]
    check(len(hits) > 2, f'{len(hits)} hits of icmp_rcv')
    equal(sorted(visited), sorted(hits), 'the hits that were met')
    for earlier, later in zip(visited, visited[1:]):
        check(brute.order(*later, *earlier) in ('before', 'concurrent'),
              f'{later} was met behind {earlier}')
    check('no member reaches a breakpoint or watchpoint' in back, 'the end of the hits')
    check('These positions are not one' not in text, 'a cut is not consistent')
    for why in ("no member 'nobody'", "'nowhere' is not a position", 'neither a directory'):
        check(why in back, f'not said: {why}')


def test_slow_socket(work):
    """gdb opens a group though the sockets of its replays are there long before they take
    connections."""
    library = os.path.join(work, 'slow_listen.so')
    run_tool('gcc', '-shared', '-fPIC', '-o', library,
             os.path.join(REPO, 'tests/functional/slow_listen.c'), '-ldl')
    record(work, guest_args(work, 'hlt'), 'a')
    record(work, guest_args(work, 'hlt'), 'b')
    record(work, guest_args(work, 'hlt'), 'c')
    listed = os.path.join(work, 'list')
    with open(listed, 'w', encoding='ascii') as out:
        out.write('[group]\nname=two\n[members]\na=a.run\nb=b.run\n')
    text = group_gdb(f'python os.environ["LD_PRELOAD"] = "{library}"',
                     f'tt group open {listed}', 'tt group when',
                     'tt group goto a:99999999999999')
    equal(shown(text)[-2:], [('a', 0), ('b', 0)], 'members at their start')
    check('position 99999999999999 is not in the run of a' in text, text)
    busy_host(listed)
    replay_ends(listed)


# A replay that says nothing for longer than gdb waits, and one that is gone when gdb comes.
BUSY = '''
import signal, subprocess
is_there = started.is_listening
def seen(path):
    there = is_there(path)
    if there and {way} == 'slow':
        pid = started.processes[-1].pid
        os.kill(pid, signal.SIGSTOP)
        subprocess.Popen(['sh', '-c', f'sleep 3; kill -CONT {{pid}}'])
    elif there:
        started.processes[-1].kill()
        started.processes[-1].wait()
    return there
started.is_listening = seen
'''


def busy_host(listed):
    def opened(way, *more):
        return group_gdb('set remotetimeout 1', f'python exec({BUSY.format(way=repr(way))!r})',
                         f'tt group open {listed}', *more)
    text = opened('slow', 'show remotetimeout')
    equal(shown(text)[-2:], [('a', 0), ('b', 0)], 'members at their start')
    check('to respond is 1.' in text, 'the time that the user has set')
    check('tt: gdb cannot connect to the replay of' in opened('dead'), 'one that is gone')


def replay_ends(listed):
    """The replay of a member is killed: gdb says which, and where the others are."""
    kill = 'python started.processes[{0}].kill(); started.processes[{0}].wait()'
    text = group_gdb(f'tt group open {listed}', kill.format(1), 'echo ONE\\n', 'tt group when',
                     'tt group when', 'tt group goto a:0', 'inferior 1', 'tt when',
                     kill.format(0), 'echo BOTH\\n', 'tt group when')
    one, both = text.split('ONE', 1)[1].split('BOTH', 1)
    equal(one.count('tt: the replay of b (inferior 2) has ended: open the group again'), 3,
          one)
    equal(re.findall(r'^[* ] (a|b) +(\d+|-)  inferior \d$', one, re.M),
          [('a', '0'), ('b', '-')] * 2, one)
    check('position 0' in one, one)
    check('the replays of a (inferior 1), of b (inferior 2) have ended' in both, both)
    left = group_gdb(f'tt group open {listed}', 'inferior 2', 'disconnect', 'tt group when',
                     f'tt group open {listed}')
    check('the replays of a (inferior 1), of b (inferior 2) have ended: open' in left, left)
    equal(shown(left)[-2:], [('a', 0), ('b', 0)], 'members that were opened again')
    frame_of_ended(listed, kill)


# a sends two frames: to b, then to c; and gets two: from c, then from b.
PASSED = '''
class Passed:
    def __init__(self, name, sent, got):
        self.id, self.sent, self.got = name, sent, got
        self.sent_at = {seq: pos for pos, _, seq in sent}
        self.got_at = {(run, seq): pos for pos, run, seq in got}
for run, num in replays().items():
    known[run] = {
        1: Passed('a', [(3, 'a', 1), (5, 'a', 2)], [(1, 'c', 1), (2, 'b', 1)]),
        2: Passed('b', [(1, 'b', 1)], [(6, 'a', 1)]),
        3: Passed('c', [(1, 'c', 1)], [(7, 'a', 2)])}[num]
'''


def frame_of_ended(listed, kill):
    """A frame of a replay that has ended is not taken for the next one, whether gdb has
    noticed that or not, in a group and without one."""
    there = listed + '3'
    with open(listed, encoding='ascii') as f, open(there, 'w', encoding='ascii') as out:
        out.write(f.read() + 'c=c.run\n')
    begin = f'tt group open {there}', f'python exec({PASSED!r})', 'tt goto 3'
    text = group_gdb(*begin, 'step-message', 'inferior 1', 'reverse-step-message')
    for said in ('frame 1 is delivered, at position 6 of inferior 2',
                 'frame 1 is sent, at position 1 of inferior 2'):
        check(said in text, f'not said: {said}: {text}')
    ended = {'pass': 'the replay of b (inferior 2) has ended: open the group again',
             'the_group = None': 'gdb is not connected to what inferior 2 debugged: connect'}
    for change, why in ended.items():
        for noticed in ([], ['inferior 2', 'tt when', 'inferior 1']):
            text = group_gdb(*begin, kill.format(1), f'python {change}', *noticed,
                             'step-message', 'reverse-step-message', 'tt when')
            equal(text.count(f'tt: {why}'), 2, text)
            check('position 3 of' in text, text)


def test_no_manifest(work):
    """A run that has lost its manifest is no member, which is said."""
    os.makedirs(os.path.join(work, 'group'))
    for name in 'ab':
        record(work, guest_args(work, 'hlt'), f'group/{name}')
    folder = os.path.join(work, 'group')
    check(not tt('group', 'info', folder).stderr, 'nothing to say')
    os.unlink(os.path.join(folder, 'b.run', 'manifest'))
    said = one_sentence(tt('group', 'info', folder).stderr, 'a run without a manifest')
    check('b.run has a log but no manifest' in said, said)


def shown(text):
    """(member, position) of each line of tt group when."""
    return [(name, int(pos)) for name, pos in
            re.findall(r'^[* ] (\w+) +(\d+)  inferior \d+$', text, re.M)]


def group_says_no(work, folder):
    for args, why in ((['cut', folder, 'nobody:1'], 'not a place'),
                      (['cut', folder, 'client2:x'], 'not a position'),
                      (['cut', folder, 'client2:@x'], 'no mark'),
                      (['cut', folder, f'client2:{1 << 62}'], 'is not in the run'),
                      (['info', os.path.join(work, 'no')], 'neither'),
                      (['info', work], 'has 0 runs')):
        said = one_sentence(tt('group', *args, rc=1).stderr, str(args))
        check(why in said, f'{args}: {said}')
    listed = os.path.join(work, 'list')
    with open(listed, 'w', encoding='ascii') as out:
        out.write('[group]\nname=both\n[members]\na=group/client2.run\n')
    info = json.loads(tt('group', 'info', listed, '--json').stdout)
    equal([info['group'], info['members'][0]['name'], info['members'][0]['got']],
          ['both', 'a', 0 if not info['members'][0]['outside'] else
           info['members'][0]['got']], 'a list of one run')
    check(info['members'][0]['outside'] > 0, 'frames of a run that is not there')
    with open(listed, 'a', encoding='ascii') as out:
        out.write('b=group/client2.run\n')
    said = one_sentence(tt('group', 'info', listed, rc=1).stderr, 'a run twice')
    check('is listed twice' in said, said)


# Checkpoints of the group

ROUNDS = '''
ifconfig lo 127.0.0.1 up
ifconfig eth0 10.9.0.NUMBER netmask 255.255.255.0 up
i=0
until wget -q -O /tmp/got http://10.9.0.1/file || [ $i -gt 60 ]; do
    i=$((i + 1))
    sleep 1
done
i=1
while [ $i -le 20 ]; do
    wget -q -O /tmp/got http://10.9.0.1/file
    echo "TT-ROUND $i $(md5sum /tmp/got | cut -d ' ' -f 1)"
    i=$((i + 1))
done
i=0
until echo bye | nc -w 60 10.9.0.1 10NUMBER || [ $i -gt 20 ]; do
    i=$((i + 1))
    sleep 1
done
# A FIN that is lost is sent again, but not by a VM that is off.
sleep 4
echo "TT-DONE own"
'''

# However slow the host is, it finds the client at its rounds until it says something.
UNTIL_TOLD = ROUNDS.replace('''
while [ $i -le 20 ]; do
''', '''
(read -r said < /dev/console && touch /tmp/told) &
more=0
while [ $more -lt 5 ]; do
    [ ! -e /tmp/told ] || more=$((more + 1))
''')


def members_args(work, path, clients):
    """{name: arguments} of a server and its clients, which fetch a file again and again."""
    args = {'server': server_args(work, f'connect={path}', clients)}
    for number in range(2, clients + 2):
        args[f'client{number}'] = nic(number, f'connect={path}')
        args[f'client{number}'][:0] = guest(work, f'c{number}',
                                            UNTIL_TOLD.replace('NUMBER', str(number)))
    return args


def check_rounds(vm, md5, first=1, last=None):
    """last=None: as many as it did until it was told to end."""
    found = re.findall(rb'TT-ROUND (\d+) ([0-9a-f]{32})', vm.serial)
    check(len(found) >= 5, f'rounds of {vm.name}: {vm.serial[-300:]}')
    last = last or first + len(found) - 1
    equal([int(n) for n, _ in found], list(range(first, last + 1)), f'rounds of {vm.name}')
    equal({digest for _, digest in found}, {md5}, f'files of {vm.name}')
    check(b'TT-DONE own' in vm.serial, f'{vm.name} says {vm.serial[-300:]}')


def group_points(folder):
    return json.loads(tt('group', 'checkpoints', folder, '--json').stdout)['checkpoints']


@limit(400)
def test_checkpoint(work):
    """Three VMs that talk make checkpoints of the group: each is one moment. From one of them
    all go on as branches, with what was on its way, and lose nothing that matters."""
    checkpoint(work)


def both_are_at(vms, number):
    """Waits for that round of both clients: on a busy machine one may be far behind."""
    for name in 'client2', 'client3':
        vms[name].wait_serial(f'TT-ROUND {number} ', 150)


def tell_clients(vms):
    """They do a few rounds more, and end."""
    for name in 'client2', 'client3':
        vms[name].type('end')


def round_of_branch(name, serial):
    """The first one of a client that went on, and did not begin anew."""
    first = re.search(rb'TT-ROUND (\d+)', serial)
    check(first, f'{name} did not go on: {serial[-300:]}')
    check(int(first.group(1)) > 1 or b'TT-GUEST-READY' not in serial,
          f'{name} began anew: {serial[:300]}')
    return int(first.group(1))


def all_have(vms, n):
    """A member that hears of the next one first makes only that."""
    wait_until(lambda: all(len([c for c in vm.qmp.cmd('query-tt-checkpoints') if c['full']])
                           >= n for vm in vms.values()), f'checkpoint {n} of all', 60)


def checkpoint(work, options=''):
    os.makedirs(os.path.join(work, 'group'))
    bad = ['--delay', '10', '--jitter', '30']
    with hub(work, *bad) as path, contextlib.ExitStack() as running:
        args = members_args(work, path, 2)
        vms = {name: running.enter_context(
            recorder(work, a, f'group/{name}', options, typed=name != 'server', timeout=350,
                     qmp=1)) for name, a in args.items()}
        both_are_at(vms, 3)
        said = vms['client3'].qmp.hmp('tt checkpoint add -g')
        check('full' in said, f'tt checkpoint add -g: {said}')
        all_have(vms, 1)
        for n, number in enumerate((5, 7), 2):
            both_are_at(vms, number)
            vms['client3'].qmp.hmp('tt checkpoint add -g')
            all_have(vms, n)
        # The last one is asked for by two at a time, in the middle of the frames.
        both_are_at(vms, 9)
        for name in 'server', 'client2':
            vms[name].qmp.cmd('tt-checkpoint-add', 60, group=True, job_id='g')
        all_have(vms, 4)
        tell_clients(vms)
        for vm in reversed(list(vms.values())):
            vm.wait(0)
    md5 = md5_of(vms['server'].serial)
    for name in 'client2', 'client3':
        check_rounds(vms[name], md5)
    folder = os.path.join(work, 'group')
    check('fit together' in tt('group', 'check', folder).stdout, 'tt group check')
    points = group_points(folder)
    check(len(points) in (4, 5), f'checkpoints: {points}')
    for point in points:
        # The last two may come together: then some make the second only.
        check(sorted(point['members']) == sorted(vms) or point['number'] > 3,
              f'members of {point}')
    points = [point for point in points if sorted(point['members']) == sorted(vms)]
    check(points, 'no checkpoint has all members')
    compare(folder, {name: vm.run for name, vm in vms.items()}, 10)
    for name, vm in vms.items():
        check_exact(work, vm.run, name=f'{name}-rep', serial_wanted=vm.serial, timeout=200)
    branch_group(work, args, vms, points, md5, bad, options)
    group_points_say_no(work, vms)


def branch_group(work, args, vms, points, md5, bad, options=''):
    """From the checkpoint with most on its way: at one of them there may be nothing."""
    point = max(points, key=lambda p: sum(m['kept'] for m in p['members'].values()))
    number = point['number']
    with hub(work, *bad), contextlib.ExitStack() as running:
        branches = {}
        for name, a in args.items():
            run = os.path.join(work, 'second', f'{name}.run')
            os.makedirs(os.path.dirname(run), exist_ok=True)
            vm = Vm(work, [*a, '-tt', f'branch,dir={vms[name].run},at=@group-{number},'
                           f'to={run}{options}'], name=f'second-{name}',
                    typed=name != 'server', timeout=200)
            vm.run = run
            branches[name] = running.enter_context(vm)
        tell_clients(branches)
        for vm in reversed(list(branches.values())):
            vm.wait(0)
    for name in 'client2', 'client3':
        check_rounds(branches[name], md5, round_of_branch(name, branches[name].serial))
    check(b'TT-DONE own bye bye' in branches['server'].serial, 'the server did not end')
    folder = os.path.join(work, 'second')
    check('fit together' in tt('group', 'check', folder).stdout, 'tt group check')
    equal(group_points(folder), [], 'checkpoints that nobody asked for')
    kept = {name: m['kept'] for name, m in point['members'].items()}
    outside = {m['name']: m['outside'] for m in
               json.loads(tt('group', 'info', folder, '--json').stdout)['members']}
    print(f'frames on their way: {kept}')
    check(sum(kept.values()) > 0, 'nothing was on its way')
    equal(outside, kept, 'frames that the branches got of the group before')
    check_exact(work, branches['server'].run, name='second-rep',
                serial_wanted=branches['server'].serial, timeout=200)


def group_points_say_no(work, vms):
    del vms
    with recorder(work, MACHINE, 'alone', qmp=2) as vm:
        said = vm.qmp.hmp('tt checkpoint add -g')
        check('not in a group' in said, said)
        said = vm.qmp.hmp('tt checkpoint add -g name')
        check('is named by its number' in said, said)
        said = one_sentence(tt('group', 'checkpoint', vm.qmp_paths[1], rc=1).stderr,
                            'tt group')
        check('not in a group' in said, said)
        vm.qmp.send('quit')
        vm.wait(0)


# Strangers

def friend(path, key=None):
    """A peer who is let in: while the one before is not gone yet, he is turned away."""
    def try_it():
        p = None
        try:
            p = Peer(path, key)
            p.hello()
            p.ready()
            return p
        except (OSError, TestFailure):
            if p:
                p.sock.close()
            return None
    return wait_until(try_it, 'the netdev lets a peer in')


@limit(60)
def test_hostile(work):
    """Garbage, another group, no key, half a hello, wrong hashes, repeated frames: the VM
    goes on, and says few sentences."""
    path = os.path.join(work, 'sock')
    with Vm(work, [*MACHINE, '-netdev', f'tt,id=net0,group=g,listen={path}'], qmp=1) as vm:
        wait_until(lambda: 'listening' in vm.qmp.hmp('info network'), 'it listens')
        rng = seed()
        with Peer(path) as p:
            p.hello(flags=8)
            check(p.is_closed(), 'a feature that is not known')
        with Peer(path) as p:                       # nothing but noise
            p.send(rng.randbytes(5000))
            check(p.is_closed(), 'noise is not left')
        with Peer(path) as p:
            p.hello(group='h')
            check(p.is_closed(), 'another group is not left')
        with Peer(path) as p:
            p.hello(flags=1)
            check(p.is_closed(), 'a key is expected')
        with Peer(path) as p, Peer(path) as q:      # one peer at a time
            p.hello()
            p.ready()
            p.send(frame_of(bytes(60), 1, seq=77))
            wait_until(lambda: 'connected' in vm.qmp.hmp('info network'), 'p is let in')
            with Peer(path) as r:
                check(r.is_closed(), 'a third peer is let in')
            q.hello()
            q.ready()
            check(q.is_closed(), 'a second peer is let in')
            for i in range(2000):
                p.send(frame_of(rng.randbytes(60), i + 2, seq=rng.randrange(50),
                                damaged=rng.random() < .3))
            p.send(frame_of(b'x' * 60, 77))
            check(p.is_closed(), 'a message out of turn is not left')
        for _ in range(30):                         # changed bytes of right messages
            with friend(path) as p:
                text = bytearray(frame_of(rng.randbytes(60), 1, seq=1))
                text[rng.randrange(64)] = rng.randrange(256)
                p.send(bytes(text))
        with Peer(path) as p:                       # half a hello, and gone
            p.send(b'TTVMNET\n')
        check('netdev' not in vm.qmp.hmp('info status'), 'the monitor answers')
        wait_until(lambda: 'listening' in vm.qmp.hmp('info network'), 'it listens again')
        vm.qmp.send('quit')
        vm.wait(0)
    check('the peer needs feature 8 of the protocol' in vm.stderr, vm.stderr[-900:])
    lines = [line for line in vm.stderr.splitlines() if line]
    check(0 < len(lines) < 10 + 40 * SLOW, f'{len(lines)} sentences: {vm.stderr[-900:]}')
    check(all('netdev ' in line for line in lines), vm.stderr[-900:])


@limit(60)
def test_link_hostile(work):
    """A short link-hostile, on a VM without a system: strangers and members that went mad at
    a hub, at netdevs and at a filter. Honest members lose nothing that the hub's log does not
    say, and the VM replays exactly."""
    said = session(work, seed().randrange(1 << 32), 10)
    print(said)
    check(said['did'] and said['sent'], f'{said}')


@limit(60)
def test_many_leave_one(work):
    """Peers that come, send a frame while the VM is stopped and go: 64 frames wait at most.
    This NIC takes, and drops, what comes before it has a driver."""
    def numbers(run):
        return [seq for _, _, seq, _, _ in read_frames(run)[1]]
    path = os.path.join(work, 'sock')
    with recorder(work, [*MACHINE, '-netdev', f'tt,id=net0,group=g,listen={path}', '-device',
                         'rtl8139,netdev=net0,romfile='], qmp=1) as vm:
        wait_until(lambda: 'listening' in vm.qmp.hmp('info network'), 'it listens')
        vm.qmp.cmd('stop')
        for i in range(200):
            with friend(path) as p:
                p.send(frame_of(b'x' * 60, 1, seq=i))
            wait_until(lambda: 'listening' in vm.qmp.hmp('info network'), 'it listens again')
        with friend(path):                  # the last of them has been read
            pass
        vm.qmp.cmd('cont')
        # The recording has to begin before they are let in; until then no other has room.
        wait_until(lambda: 63 in numbers(vm.run), 'the frames that waited')
        with friend(path) as p:
            p.send(frame_of(b'x' * 60, 1, seq=1000))
            wait_until(lambda: 1000 in numbers(vm.run), 'the frame of the last one')
        vm.qmp.send('quit')
        vm.wait(0)
    equal(numbers(vm.run), [*range(64), 1000], 'frames that came')
    check('64 others are waiting already' in vm.stderr, vm.stderr)


@limit(60)
def test_blocked(work):
    """A NIC that nobody drives takes no frames: that its peer goes is noticed, and the
    next is let in."""
    path = os.path.join(work, 'sock')
    with Vm(work, [*MACHINE, *nic(1, f'listen={path}')], qmp=1) as vm:
        wait_until(lambda: 'listening' in vm.qmp.hmp('info network'), 'it listens')
        for _ in range(3):
            with friend(path) as p:
                p.send(b''.join(frame_of(b'x' * 60, i + 1, seq=i) for i in range(100)))
            wait_until(lambda: 'listening' in vm.qmp.hmp('info network'),
                       'it listens again')
        vm.qmp.send('quit')
        vm.wait(0)


@limit(60)
def test_nobody_takes(work):
    """A program that neither takes the connection nor refuses it: that is said once, and the
    netdev connects when it can."""
    path = os.path.join(work, 'hub')
    with no_time(path) as busy, Vm(work, [*MACHINE, *nic(1, f'connect={path}')], qmp=1) as vm:
        wait_until(lambda: 'nobody takes the connection to' in vm.stderr, 'that is said', 30)
        busy.close()
        with hub(work):
            wait_until(lambda: 'connected' in vm.qmp.hmp('info network'), 'it connects', 30)
        vm.qmp.send('quit')
        vm.wait(0)
    equal(vm.stderr.count('nobody takes'), 1, vm.stderr)
    check('net0: connected' in vm.stderr, vm.stderr)


@limit(60)
def test_refused_by_peer(work):
    """A netdev whose peer has another one is refused. When nobody listens any more, or one of
    another group, it is connecting, and that is said, too."""
    path = os.path.join(work, 'sock')

    def listener(group):
        return Vm(work, [*MACHINE, '-netdev', f'tt,id=a,group={group},listen={path}'], qmp=1)

    def is_in(state):
        wait_until(lambda: f', {state}' in vm.qmp.hmp('info network'), state)
    with listener('g') as first:
        wait_until(lambda: os.path.exists(path), 'the first one listens')
        with friend(path), Vm(work, [*MACHINE, *nic(1, f'connect={path}')], qmp=1) as vm:
            is_in('refused')
            first.qmp.send('quit')
            first.wait(0)
            is_in('connecting')
            wait_until(lambda: vm.stderr.count('not connected') == 2, 'nobody is there')
            with listener('h') as second:
                wait_until(lambda: "belongs to the group 'h'" in vm.stderr, 'another group')
                is_in('connecting')
                second.qmp.send('quit')
                second.wait(0)
            vm.qmp.send('quit')
            vm.wait(0)
    said = [line for line in vm.stderr.splitlines() if 'not connected' in line]
    check('has its peer already' in said[0] and 'ailed to connect' in said[1], f'{said}')


@limit(60)
def test_sentences_of_kinds(work):
    """Strangers do not keep a netdev from saying something else."""
    path = os.path.join(work, 'sock')
    with Vm(work, [*MACHINE, '-netdev', f'tt,id=a,group=g,listen={path}'], qmp=1) as vm:
        wait_until(lambda: 'listening' in vm.qmp.hmp('info network'), 'it listens')
        for _ in range(3):
            with Peer(path) as p:
                p.hello(group='h')
                check(p.is_closed(), 'a stranger')
        with friend(path) as p:
            p.send(frame_of(bytes(60), 1, seq=1, damaged=True))
            wait_until(lambda: 'a frame is dropped' in vm.stderr, 'a damaged frame')
            check('more like this' not in vm.stderr, vm.stderr)
        vm.qmp.send('quit')
        vm.wait(0)


@limit(60)
def test_blocked_by_tcp(work):
    """The same by TCP, where nobody is told of a peer that goes: it makes room for the next
    one."""
    port = free_port()
    with Vm(work, [*MACHINE, *nic(1, f'listen=127.0.0.1:{port}')], qmp=1) as vm:
        wait_until(lambda: 'listening' in vm.qmp.hmp('info network'), 'it listens')
        for i in range(3):
            with friend(port) as p:
                p.send(frame_of(b'x' * 60, 1, seq=i) + bytes(20000))
        vm.qmp.send('quit')
        vm.wait(0)


def stranger(path):
    """None: too many wait already to be let in."""
    try:
        return Peer(path)
    except BlockingIOError:
        return None


@limit(60)
def test_silent(work):
    """Strangers who say nothing, though many, do not keep a member out for a moment, at a
    netdev and at a hub, with a key."""
    path, key = os.path.join(work, 'sock'), key_file(work)
    with Vm(work, [*MACHINE, '-netdev', f'tt,id=net0,group=g,listen={path},key-file={key}'],
            qmp=1) as vm, contextlib.ExitStack() as silent:
        wait_until(lambda: 'listening' in vm.qmp.hmp('info network'), 'it listens')
        crowd = [silent.enter_context(wait_until(lambda: stranger(path), 'there is room'))
                 for _ in range(DOOR_PLACES + 40)]
        with Peer(path, KEY) as p:
            p.hello()
            check(p.ready(), 'the netdev has another key')
            wait_until(lambda: 'connected' in vm.qmp.hmp('info network'), 'p is let in')
            check(crowd[0].is_closed(), 'the first one is not left')
            p.put(frame_of(b'x' * 60, 1, seq=1))
            check('connected' in vm.qmp.hmp('info network'), 'p is not left')
        vm.qmp.send('quit')
        vm.wait(0)
    check('gives way' in vm.stderr, vm.stderr)
    with hub(work, '--key-file', key) as path, contextlib.ExitStack() as silent:
        for _ in range(HUB_PORTS + 40):
            silent.enter_context(wait_until(lambda: stranger(path), 'there is room'))
        with Peer(path, KEY) as p, Peer(path, KEY) as q:
            for peer in (p, q):
                peer.hello()
                check(peer.ready(), 'the hub has another key')
            q.put(frame_of(b'\xff' * 6 + b'q' * 54, 1, seq=50))
            equal(p.frame()[0], 50, 'the frame of the second')


@limit(60)
def test_wrong_key(work):
    """Whoever has another key, or none, is left with a sentence; whoever has the key is let
    in. At a netdev and at a hub."""
    path, key = os.path.join(work, 'sock'), key_file(work)
    with Vm(work, [*MACHINE, '-netdev', f'tt,id=net0,group=g,listen={path},key-file={key}'],
            qmp=1) as vm:
        wait_until(lambda: 'listening' in vm.qmp.hmp('info network'), 'it listens')
        wrong_keys(path)
        check('listening' in vm.qmp.hmp('info network'), 'somebody was let in')
        with Peer(path, KEY) as p:
            p.hello()
            check(p.ready(), 'the netdev has another key')
            wait_until(lambda: 'connected' in vm.qmp.hmp('info network'), 'p is let in')
        vm.qmp.send('quit')
        vm.wait(0)
    check('the peer has another key: give all members' in vm.stderr, vm.stderr)
    with hub(work, '--key-file', key) as path, Peer(path, KEY) as p:
        p.hello()
        check(p.ready(), 'the hub has another key')
        wrong_keys(path)
        with Peer(path, KEY) as q:
            q.hello()
            check(q.ready(), 'the hub has another key')
            q.put(frame_of(b'\xff' * 6 + b'q' * 54, 1, seq=50))
            equal(p.frame()[0], 50, 'the first frame that the hub forwards')
            q.send(frame_of(b'\xff' * 6 + b'q' * 54, 2, seq=51) + bytes(32))
            check(q.is_closed(), 'a frame without authentication')
    with open(f'{path}.stderr', encoding='utf-8') as said:
        check('the peer has another key: give all members' in said.read(), 'no sentence')


KEY = b'sixteen bytes and more'
DOOR_PLACES = 64                            # GUESTS_MAX of a netdev


def key_file(work):
    path = os.path.join(work, 'key')
    with open(path, 'wb') as out:
        out.write(KEY + b'\n')
    os.chmod(path, 0o600)
    return path


def wrong_keys(path):
    """Of the same length, of another one, none, and none though it says so."""
    for key, flags in ((KEY[::-1], None), (KEY + b'.', None), (None, 0), (None, 1)):
        with Peer(path, key) as p:
            p.hello(flags=flags)
            with contextlib.suppress(TestFailure, ConnectionError):
                p.ready()
                p.put(frame_of(b'\xff' * 6 + bytes(54), 1, seq=1))
            check(p.is_closed(), f'{key} is let in')


@limit(60)
def test_stopped_while_full(work):
    """A frame that waits for a NIC when the VM stops still waits when it runs again: QEMU
    empties its queues at a stop, also at that of a checkpoint."""
    path = os.path.join(work, 'sock')
    with recorder(work, [*MACHINE, *nic(1, f'listen={path}')], qmp=1) as vm:
        wait_until(lambda: 'listening' in vm.qmp.hmp('info network'), 'it listens')
        with friend(path) as p:
            p.send(b''.join(frame_of(b'x' * 60, i + 1, seq=i) for i in range(3)))
            wait_until(lambda: len(read_frames(vm.run)[1]) == 1, 'the first frame came')
            for _ in range(2):
                vm.qmp.cmd('stop')
                vm.qmp.cmd('cont')
            time.sleep(.5)              # the next would come, if it did not wait
            vm.qmp.send('quit')
            vm.wait(0)
    equal([seq for _, _, seq, _, _ in read_frames(vm.run)[1]], [0], 'frames, each once')


@limit(60)
def test_noted_is_kept(work):
    """A frame that the NIC had no room for, and that was noted, at a checkpoint of the group
    while the VM stands still: it is kept with the checkpoint, though it never arrives."""
    path = os.path.join(work, 'sock')
    with recorder(work, [*MACHINE, *nic(1, f'listen={path}')], qmp=1) as vm:
        wait_until(lambda: 'listening' in vm.qmp.hmp('info network'), 'it listens')
        with friend(path) as p:
            p.send(frame_of(b'x' * 60, 1, seq=7))
            wait_until(lambda: len(read_frames(vm.run)[1]) == 1, 'the frame was noted')
            vm.qmp.cmd('stop')
            vm.qmp.cmd('tt-checkpoint-add', 30, group=True)
            vm.qmp.send('quit')
            vm.wait(0)
    equal([(what, int(e['val'], 16)) for what, e in frame_notes(vm.run)],
          [('delivered', 7), (3, 1), (4, 7)],
          'delivered, checkpoint, kept')


@limit(60)
def test_too_long_to_keep(work):
    """A frame that is on its way at a checkpoint of the group and longer than an event of the
    log is kept in two of them. A branch from there gets it, whole."""
    path = os.path.join(work, 'sock')
    args = [*MACHINE, *nic(1, f'listen={path}')]
    os.makedirs(os.path.join(work, 'group'))
    with recorder(work, args, 'group/a', qmp=1) as vm:
        wait_until(lambda: 'listening' in vm.qmp.hmp('info network'), 'it listens')
        with Member(path).join() as p:
            p.send(p.framed(b'\xff' * 6 + seed().randbytes(LONGEST - 6)))
            wait_until(lambda: read_frames(vm.run)[1], 'the frame was noted')
            vm.qmp.cmd('tt-checkpoint-add', 30, group=True)
        vm.qmp.send('quit')
        vm.wait(0)
    # It is kept again when it comes to the NIC after the stop for the checkpoint.
    equal([(what, int(e['val'], 16)) for what, e in frame_notes(vm.run)][:4],
          [('delivered', 1), (3, 1), (4, 1), (6, 1)], 'delivered, checkpoint, kept, the rest')
    equal([p['members']['a']['kept'] for p in group_points(os.path.join(work, 'group'))], [1],
          'frames on their way')
    check_exact(work, vm.run, serial_wanted=vm.serial)
    with brancher(work, args, vm.run, '@group-1', qmp=1) as child:
        wait_until(lambda: 'listening' in child.qmp.hmp('info network'), 'it listens')
        wait_until(lambda: read_frames(child.run)[1], 'it comes again')
        child.qmp.send('quit')
        child.wait(0)
    frames = [[f[1:4] for f in read_frames(run)[1]] for run in (vm.run, child.run)]
    equal([len(frames[0]), frames[1]], [1, frames[0]], 'the frame, and its hash')
    check(not child.stderr.count('lost'), child.stderr)


SENDER = '''
ip link set eth0 up
ip addr add 10.0.0.1/24 broadcast + dev eth0
exec /own/send
'''
SENDER_C = '''
#include <arpa/inet.h>
#include <stdio.h>
int main(void)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(7) };
    int fd = socket(AF_INET, SOCK_DGRAM, 0), one = 1;
    static char text[1200];

    setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &one, sizeof(one));
    inet_aton("10.0.0.255", &to.sin_addr);
    for (unsigned i = 1; i < 1000000; i++) {
        snprintf(text, sizeof(text), "n=%u ", i);
        if (sendto(fd, text, sizeof(text), 0, (void *)&to, sizeof(to)) < 0) {
            perror("send");
            return 1;
        }
    }
    return 0;
}
'''


def sender_args(work, path):
    """A guest that sends numbered datagrams as fast as it can."""
    program = os.path.join(work, 'send')
    with open(f'{program}.c', 'w', encoding='ascii') as out:
        out.write(SENDER_C)
    run_tool('gcc', '-static', '-O1', '-o', program, f'{program}.c')
    own = os.path.join(work, 's')
    os.makedirs(own)
    return own_args(own, {'own/run': SENDER.encode(), 'own/send': read_bytes(program)}, '',
                    memory='128') + nic(1, f'listen={path}')


def has_stalled(vm):
    """Nothing is sent any more, though much was."""
    before = len(read_frames(vm.run)[0])
    time.sleep(2)
    return 200 < before == len(read_frames(vm.run)[0])


def numbers(peer, count):
    """The numbers in the next datagrams of SENDER; fewer when no more come."""
    found = []
    with contextlib.suppress(socket.timeout):
        while len(found) < count:
            m = re.search(rb'n=(\d+) ', peer.frame()[1])
            if m:
                found.append(int(m.group(1)))
    return found


@limit(120)
def test_full_checkpoint_while_full(work):
    """A peer that does not read makes a virtio NIC wait. A full checkpoint is made then: a
    branch sends what comes next, and nothing is missing."""
    path = os.path.join(work, 'sock')
    args = sender_args(work, path)
    with recorder(work, [*args, '-S'], qmp=1) as vm:
        wait_until(lambda: 'listening' in vm.qmp.hmp('info network'), 'it listens')
        with friend(path) as p:
            vm.qmp.cmd('cont')
            wait_until(lambda: has_stalled(vm), 'the netdev is full', 60)
            wait_until(lambda: 'the peer has not read for' in vm.stderr, 'that is said', 30)
            vm.qmp.cmd('stop')
            point = vm.qmp.cmd('tt-checkpoint-add', full=True, timeout=20)
            before = numbers(p, 1 << 20)
        vm.qmp.send('quit')
        vm.wait(0)
    with brancher(work, [*args, '-S'], vm.run, point['id'], qmp=1) as child:
        wait_until(lambda: 'listening' in child.qmp.hmp('info network'), 'it listens')
        with friend(path) as p:
            child.qmp.cmd('cont')
            after = numbers(p, 500)
        child.qmp.send('quit')
        child.wait(0)
    equal(vm.stderr.count('has not read'), 1, vm.stderr)
    equal(before, list(range(1, len(before) + 1)), 'what the VM sent')
    equal(after, list(range(after[0], after[0] + 500)), 'what the branch sends')
    equal(after[0], before[-1] + 1, 'the first of the branch')
    check_exact(work, vm.run, name='whole', serial_wanted=vm.serial)
    check_exact(work, child.run, serial_wanted=child.serial)


@limit(100)
def test_hub_hostile(work):
    """The same strangers at a hub, which then still joins two friends."""
    rng = seed()
    with hub(work) as path:
        for _ in range(20):
            with Peer(path) as p:
                p.send(rng.randbytes(300))
                check(p.is_closed(), 'noise is not left')
        with Peer(path) as p, Peer(path) as q, Peer(path) as idle:
            idle.send(b'TTVM')
            for peer in (p, q):
                peer.hello()
                peer.ready()
            q.send(frame_of(b'\xff' * 6 + b'q' * 54, 1, seq=50, run=b'q' * 16))
            equal(p.frame()[0], 50, 'the frame by which the hub knows q')
            data = rng.randbytes(6) + bytes(60)
            for i in range(40):
                p.send(frame_of(data, i + 1, seq=i, damaged=i == 5))
            seen = [q.frame() for _ in range(39)]
            equal([f[0] for f in seen], [i for i in range(40) if i != 5], 'frames')
            equal({f[1] for f in seen}, {data}, 'their bytes')
    lines = open(f'{path}.stderr', encoding='utf-8').read().splitlines()
    check(len(lines) < 10 * SLOW, f'{len(lines)} sentences')


@contextlib.contextmanager
def two_members(where):
    """Both are members when a frame of the second has come to the first."""
    with Peer(where) as p, Peer(where) as q:
        for peer in (p, q):
            peer.hello()
            peer.ready()
        q.send(frame_of(TO_ALL, 1, seq=7, run=b'q' * 16))
        equal(p.frame()[0], 7, 'the frame by which the hub knows q')
        yield p, q


def without_first(lines):
    """Of a log, all but that frame."""
    lines = [json.loads(line) for line in lines]
    equal(lines[0].get('run'), '71' * 16, 'the first line')
    return lines[1:]


@limit(120)
def test_hub_left(work):
    """Frames on their way to a peer that leaves are lost, and reported as lost; the
    next peer at its port does not get them. With --once the hub ends when the last has
    left."""
    log = os.path.join(work, 'hub.log')
    path = os.path.join(work, 'hub')
    # However slow the host is, the hub sees that one leave before its frames are due.
    with subprocess.Popen([tool('tt'), 'hub', '--group', 'g', '--listen', path, '--delay',
                           '10000', '--log', log, '--once', '--seconds', '600'],
                          stdout=subprocess.PIPE) as process:
        check(b'listening' in process.stdout.readline(), 'the hub listens')
        with Peer(path) as sender:
            sender.sock.settimeout(30 * SLOW)
            sender.hello()
            sender.ready()
            with Peer(path) as gone:
                gone.hello()
                gone.ready()
                # The hub knows it from here on.
                gone.send(frame_of(TO_ALL, 1, seq=9, run=b'g' * 16))
                equal(sender.frame()[0], 9, 'the frame of the one that leaves')
                for i in range(5):
                    sender.send(frame_of(TO_ALL, i + 1, seq=i))
                wait_until(lambda: is_read(sender.sock), 'the hub has them')
            with Peer(path) as heir:
                heir.sock.settimeout(30 * SLOW)
                heir.hello()
                heir.ready()
                heir.send(frame_of(TO_ALL, 1, seq=8, run=b'h' * 16))
                equal(sender.frame()[0], 8, 'the frame of the heir')
                sender.send(frame_of(TO_ALL, 6, seq=5))
                equal(heir.frame()[0], 5, 'the first frame that the heir gets')
        process.wait(20 * SLOW)
        said = process.stdout.read().decode()
    fates = [(f['sequence'], f['fate']) for f in map(json.loads, open(log, encoding='ascii'))]
    equal(sorted(fates), [(i, 'peer gone') for i in range(5)] +
          [(i, 'goes') for i in (5, 8, 9)], 'fates')
    check('8 frames received, 3 forwarded, 5 lost' in said, said)


@limit(60)
def test_hub_log_fails(work):
    """A log that cannot be written: said at once, the hub goes on, and ends with 1."""
    path = os.path.join(work, 'hub')
    with open(f'{path}.stderr', 'wb') as err, \
            subprocess.Popen([tool('tt'), 'hub', '--group', 'g', '--listen', path, '--log',
                              '/dev/full', '--once', '--seconds', '600'],
                             stdout=subprocess.PIPE, stderr=err) as process:
        check(b'listening' in process.stdout.readline(), 'the hub listens')
        with two_members(path) as (p, q):
            for i in range(3):
                p.send(frame_of(TO_ALL, i + 1, seq=i))
                equal(q.frame()[0], i, 'the frame')
            said = read_bytes(f'{path}.stderr').decode()
            equal(said.count('cannot write the log: No space left'), 1, said)
        equal(process.wait(20 * SLOW), 1, 'its end')


@contextlib.contextmanager
def hub_for_once(work):
    """A hub with --once: (its process, the path of its socket)."""
    path = os.path.join(work, 'hub')
    with subprocess.Popen([tool('tt'), 'hub', '--group', 'g', '--listen', path, '--once',
                           '--seconds', '600'], stdout=subprocess.PIPE) as process:
        try:
            check(b'listening' in process.stdout.readline(), 'the hub listens')
            yield process, path
        finally:
            if process.poll() is None:
                process.kill()


def stop_process(pid):
    """It stands still, and has not only been told to."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: read_bytes(f'/proc/{pid}/stat').rsplit(b')', 1)[1].split()[0] == b'T',
               'the process stops')


def frames_pass(path, new):
    """Another member's frame comes to the new one."""
    with Peer(path) as friendly:
        friendly.hello()
        friendly.ready()
        friendly.send(frame_of(b'\xff' * 6 + bytes(54), 1, seq=2, run=b'f' * 16))
        equal(new.frame()[0], 2, 'a frame for the new one')


@limit(60)
def test_once_enters(work):
    """--once: the last member has gone, as the first frame of a new one finds out. The hub
    has a member, and stays."""
    with hub_for_once(work) as (process, path):
        with Peer(path) as new:             # the hub looks at it first
            new.hello()
            new.take(HELLO + HEAD)
            with Peer(path) as last:
                last.hello()
                last.ready()
                wait_until(lambda: is_read(last.sock), 'the hub has it')
                stop_process(process.pid)
            new.send(message(READY, 0) + frame_of(b'\xff' * 6 + bytes(54), 1, seq=1))
            os.kill(process.pid, signal.SIGCONT)
            frames_pass(path, new)
        equal(process.wait(20 * SLOW), 0, 'its end')


@limit(60)
def test_once_waits(work):
    """--once: the last member leaves while others are at the door. The hub waits until none
    of them is there any more, and stays if one has become a member."""
    with hub_for_once(work) as (process, path):
        with Peer(path) as new, Peer(path) as silent:
            with Peer(path) as last:
                last.hello()
                last.ready()
                new.hello()
                silent.take(HELLO)          # the hub has all three
                new.take(HELLO)
            time.sleep(.3)                  # it has gone
            equal(process.poll(), None, 'its end while two are at the door')
            new.send(message(READY, 0))
            frames_pass(path, new)
            new.sock.close()
            time.sleep(.3)
            equal(process.poll(), None, 'its end while one is at the door')
        equal(process.wait(20 * SLOW), 0, 'its end')


@limit(60)
def test_once_loses_patience(work):
    """--once: however many come to the door and say nothing, the hub ends some seconds after
    the last member has left."""
    with hub_for_once(work) as (process, path), contextlib.ExitStack() as stack:
        stack.enter_context(Peer(path))
        with Peer(path) as last:
            last.hello()
            last.ready()
        wait_until(lambda: process.poll() is not None or came(stack, path), 'its end', 15)
        equal(process.wait(20 * SLOW), 0, 'its end')


def came(stack, path):
    """One more stranger."""
    time.sleep(.2)
    with contextlib.suppress(OSError):
        one = stack.enter_context(socket.socket(socket.AF_UNIX))
        one.settimeout(5 * SLOW)
        one.connect(path)


@contextlib.contextmanager
def two_hosts():
    """Two network namespaces with a cable between them: 10.77.0.1 and 10.77.0.2. Yields the
    ids of processes in them."""
    def run(pid, script):
        if subprocess.run(['nsenter', '-t', str(pid), '-n', 'sh', '-c', script],
                          stderr=subprocess.DEVNULL, check=False).returncode:
            raise Skip('no cable between network namespaces can be made here')

    with contextlib.ExitStack() as stack:
        pids = []
        for _ in range(2):
            holder = stack.enter_context(subprocess.Popen(
                ['unshare', '-n', 'sh', '-c', 'echo made; exec sleep 900'],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
            stack.callback(holder.terminate)
            if not holder.stdout.readline():
                raise Skip('no network namespace can be made here')
            pids.append(holder.pid)
        # The addresses of the hosts' cards stay known when one host is gone.
        run(pids[0], f'ip link add tt0 address 02:00:00:00:00:01 type veth peer name tt1 '
                     f'address 02:00:00:00:00:02 netns {pids[1]}')
        for i, pid in enumerate(pids):
            run(pid, f'ip link set lo up && ip link set tt{i} up && '
                     f'ip addr add 10.77.0.{1 + i}/24 dev tt{i} && ip neigh replace '
                     f'10.77.0.{2 - i} lladdr 02:00:00:00:00:0{2 - i} dev tt{i} '
                     'nud permanent')
        yield pids


def connected_from(pid, address):
    """A socket in the network namespace of a process, connected to an address."""
    made = []

    def connect():                              # setns is for this thread only
        with open(f'/proc/{pid}/ns/net', 'rb') as ns:
            libc = ctypes.CDLL(None, use_errno=True)
            equal(libc.setns(ns.fileno(), 0), 0, os.strerror(ctypes.get_errno()))
        sock = socket.socket()
        sock.settimeout(20)
        sock.connect(address)
        made.append(sock)

    thread = threading.Thread(target=connect)
    thread.start()
    thread.join()
    return made[0]


@limit(150)
def test_hub_silent_host(work):
    """The host of a member is gone while a frame is on its way to it: the hub closes its
    port within a minute."""
    to_all, key = b'\xff' * 6 + bytes(54), key_file(work)
    with two_hosts() as (here, there), open(f'{work}/stderr', 'wb') as err, \
            subprocess.Popen(['nsenter', '-t', str(here), '-n', tool('tt'), 'hub', '--group',
                              'g', '--listen', '10.77.0.1:7000', '--key-file', key,
                              '--seconds', '400'], stdout=subprocess.PIPE,
                             stderr=err) as process:
        try:
            check(b'listening' in process.stdout.readline(), 'the hub listens')
            with Peer(connected_from(there, ('10.77.0.1', 7000)), KEY) as lost, \
                    Peer(connected_from(here, ('10.77.0.1', 7000)), KEY) as stays:
                for peer in (lost, stays):
                    peer.hello()
                    check(peer.ready(), 'the hub has another key')
                stays.put(frame_of(to_all, 1, seq=1))
                equal(lost.frame()[0], 1, 'the first frame')
                run_tool('nsenter', '-t', str(there), '-n', 'ip', 'addr', 'flush', 'dev',
                         'tt1')
                stays.put(frame_of(to_all, 2, seq=2))
                began = time.monotonic()
                wait_until(lambda: b'host of its peer does not answer' in
                           read_bytes(f'{work}/stderr'), 'the hub notices it', 90)
                print(f'noticed after {time.monotonic() - began:.0f} s')
        finally:
            process.terminate()
            process.wait(20 * SLOW)


@limit(150)
def test_silent_host(work):
    """The same where this program is the other end, as tt group live --exact is: it leaves
    the peer, and takes another."""
    to_all, key = b'\xff' * 6 + bytes(54), key_file(work)
    end = os.path.join(BUILD, 'cores', 'tests', 'tool', 'tt-link-end')
    if not os.path.exists(end):
        raise Skip('the cores are not built: scripts/test cores')
    with two_hosts() as (here, there), \
            subprocess.Popen(['nsenter', '-t', str(here), '-n', end, '10.77.0.1:7000', key],
                             stdout=subprocess.PIPE, text=True) as process:
        try:
            equal(process.stdout.readline(), 'listening\n', 'it listens')
            with Peer(connected_from(there, ('10.77.0.1', 7000)), KEY) as lost:
                lost.hello()
                check(lost.ready(), 'it has another key')
                lost.put(frame_of(to_all, 1, seq=1))
                equal(process.stdout.readline(), 'open\n', 'what it says')
                run_tool('nsenter', '-t', str(there), '-n', 'ip', 'addr', 'flush', 'dev',
                         'tt1')
                began = time.monotonic()
                equal(process.stdout.readline(), 'closed\n', 'what it says')
                print(f'noticed after {time.monotonic() - began:.0f} s')
                with Peer(connected_from(here, ('10.77.0.1', 7000)), KEY) as stays:
                    stays.hello()
                    check(stays.ready(), 'it has another key')
                    equal(process.stdout.readline(), 'open\n', 'what it says')
        finally:
            process.terminate()
            process.wait(20 * SLOW)


@limit(60)
def test_hub_address_in_use(work):
    """The socket of somebody who has no time to look: the hub does not wait for him, and does
    not take it. That of one who is gone it takes."""
    path = os.path.join(work, 'sock')
    with socket.socket(socket.AF_UNIX) as busy, contextlib.ExitStack() as waiting:
        busy.bind(path)
        busy.listen(0)
        with contextlib.suppress(BlockingIOError):
            while True:
                one = waiting.enter_context(socket.socket(socket.AF_UNIX))
                one.setblocking(False)
                one.connect(path)
        said = one_sentence(tt('hub', '--group', 'g', '--listen', path, rc=1,
                               timeout=10).stderr, 'a path that is in use')
        check('cannot listen' in said and 'in use' in said, said)
    said = tt('hub', '--group', 'g', '--listen', path, '--seconds', '1').stdout
    check('listening at' in said, said)


@limit(60)
def test_hub_in_use_keeps_log(work):
    """A second hub at the same place, and with the same log: that of the first stays."""
    log = os.path.join(work, 'hub.log')
    with hub(work, '--log', log) as path, two_members(path) as (p, q):
        for i in range(2):
            p.send(frame_of(TO_ALL, i + 1, seq=i))
            equal(q.frame()[0], i, 'the frame')
            lines = without_first(read_bytes(log).splitlines())
            equal(len(lines), i + 1, 'lines of the log')
            check(lines[i]['sequence'] == i, f'{lines}')
            tt('hub', '--group', 'g', '--listen', path, '--log', log, rc=1)
            tt('hub', '--group', 'g', '--log', log, rc=2)
    tt('hub', '--group', 'g', '--listen', path, '--log', log, '--seconds', '1')
    equal(len(without_first(read_bytes(log).splitlines())), 2,
          'lines of the log, after another hub')


@limit(60)
def test_hub_says_it_is_ready(work):
    """Once it listens at all addresses; a hub that cannot say so ends."""
    args = ['hub', '--group', 'g', '--listen', f'{work}/a', '--listen', f'{work}/b',
            '--seconds', '1']
    lines = tt(*args).stdout.splitlines()
    equal([line.split()[0] for line in lines[:3]], ['listening', 'listening', 'the'], lines)
    with open('/dev/full', 'w', encoding='ascii') as full:
        done = subprocess.run([tool('tt'), *args], stdout=full, stderr=subprocess.PIPE,
                              text=True, timeout=20 * SLOW, check=False)
    equal(done.returncode, 1, 'its end')
    check('No space left' in one_sentence(done.stderr, 'a full disk'), done.stderr)


@limit(60)
def test_hub_unknown_name(work):
    """Why a name has no number, in the resolver's own words."""
    key = os.path.join(work, 'key')
    with open(key, 'w', encoding='ascii') as out:
        out.write('sixteen bytes and more\n')
    os.chmod(key, 0o600)
    said = one_sentence(tt('hub', '--group', 'g', '--listen', 'nosuch.invalid:7000',
                           '--key-file', key, rc=1).stderr, 'a name that nobody has')
    check('not known' in said or 'name resolution' in said, said)


@limit(60)
def test_hub_names(work):
    """A name with several numbers: the hub listens at each, at the same port, as QEMU does."""
    hosts = os.path.join(work, 'hosts')
    with open(hosts, 'w', encoding='ascii') as out:
        out.write('127.0.0.1 localhost\n::1 localhost\n')
    script = f'mount --bind {hosts} /etc/hosts && exec "$0" "$@"'
    port = free_port()
    again = [f'--listen={name}:{port}' for name in ('localhost', '[::1]', '127.0.0.1')]
    with subprocess.Popen(['unshare', '-m', 'sh', '-c', script, tool('tt'), 'hub', '--group',
                           'g', '--listen', 'localhost:0', *again, '--seconds', '600'],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        try:
            places = [re.fullmatch(r'listening at (.*):(\d+)\n', process.stdout.readline())
                      for _ in range(2)]
            if not places[0]:
                raise Skip('this host mounts nothing here, or has no IPv6')
            check(places[1], f'the hub listens only at {places[0].group(1)}')
            wanted = [p.group(1) for p in places]
            equal(sorted(wanted), ['127.0.0.1', '[::1]'], 'the numbers')
            equal(places[0].group(2), places[1].group(2), 'the ports')
            equal([process.stdout.readline() for _ in range(3)],
                  [f'listening at {at}:{port}\n' for at in wanted] + ['the hub is ready\n'],
                  'an address that it has already')
            port = int(places[0].group(2))
            six = socket.create_connection(('::1', port))
            with Peer(port) as p, Peer(six) as q:
                for peer in (p, q):
                    peer.hello()
                    peer.ready()
                q.send(frame_of(b'\xff' * 6 + b'q' * 54, 1, seq=50))
                equal(p.frame()[0], 50, 'the frame of the other')
        finally:
            process.terminate()
            process.wait(20 * SLOW)


def kinds_to_frame(peer):
    """The kinds of the messages that come, up to a frame."""
    kinds = []
    while FRAME not in kinds:
        fields = struct.unpack('<4sBBHII16sQQQQ', peer.take(HEAD))
        peer.take(fields[4])
        kinds.append(fields[1])
    return kinds


@limit(60)
def test_hub_number_in_use(work):
    """Of a name with two numbers one is in use: the hub listens at the other, and says so."""
    hosts = os.path.join(work, 'hosts')
    with open(hosts, 'w', encoding='ascii') as out:
        out.write('127.0.0.1 localhost\n127.0.0.2 localhost\n')
    with socket.socket() as busy:
        busy.bind(('127.0.0.2', 0))
        busy.listen()
        port = busy.getsockname()[1]
        script = f'mount --bind {hosts} /etc/hosts && exec "$0" "$@"'
        done = subprocess.run(['unshare', '-m', 'sh', '-c', script, tool('tt'), 'hub',
                               '--group', 'g', '--listen', f'localhost:{port}', '--seconds',
                               '1'], capture_output=True, text=True, timeout=30 * SLOW,
                              check=False)
    if 'unshare' in done.stderr or 'mount' in done.stderr:
        raise Skip('this host mounts nothing here')
    check(f'listening at 127.0.0.1:{port}' in done.stdout, done.stdout)
    check(f'not listening at 127.0.0.2, port {port}: Address already in use' in
          one_sentence(done.stderr, 'a number in use'), done.stderr)


@limit(60)
def test_hub_incidents(work):
    """A member that reports incidents without end, another one that does not read for a
    moment: the hub forwards five by each port, ten in all, and leaves neither."""
    with hub(work) as path, Member(path).join() as busy, Member(path) as mad:
        busy.send(busy.framed(b'\xff' * 6 + bytes(54)))
        mad.join()
        for _ in range(60):
            mad.send(b''.join(mad.incident(b'mark', b'w' * 120, seq=i, run=os.urandom(16))
                              for i in range(1000)))
        mad.send(mad.framed(b'\xff' * 6 + bytes(54), seq=7))
        equal(kinds_to_frame(busy), [INCIDENT] * 5 + [FRAME], 'what the other got')
        for n in (5, 0):                    # however many connections it has
            with Member(path).join() as again:
                again.send(b''.join(again.incident(b'mark', b'w' * 120, seq=i)
                                    for i in range(10)) +
                           again.framed(b'\xff' * 6 + bytes(54)))
                equal(kinds_to_frame(busy), [INCIDENT] * n + [FRAME],
                      'what the other got then')
    check('incident' in read_bytes(f'{path}.stderr').decode(), 'no sentence')


@limit(60)
def test_path_in_use(work):
    """A VM takes no file and no other's socket for its own; one whose owner is gone it
    takes."""
    path = os.path.join(work, 'file')
    left = os.path.join(work, 'left')
    with open(path, 'w', encoding='ascii') as out:
        out.write('precious')
    with hub(work) as busy:
        for where, why in ((path, 'not a socket'), (busy, 'already')):
            with Vm(work, [*MACHINE, '-netdev', f'tt,id=n,group=g,listen={where}']) as vm:
                vm.wait(1)
            said = one_sentence(vm, where)
            check('cannot listen' in said and why in said, said)
        with Peer(busy) as p:
            p.hello()
            check(p.ready(), 'the hub is still there')
    equal(read_bytes(path), b'precious', 'the file')
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(left)
    with Vm(work, [*MACHINE, '-netdev', f'tt,id=n,group=g,listen={left}'], qmp=1) as vm:
        wait_until(lambda: 'listening' in vm.qmp.hmp('info network'), 'it listens')
        vm.qmp.send('quit')
        vm.wait(0)


@limit(60)
def test_refused(work):
    """Wrong options are one sentence each."""
    long = 'x' * 200
    for options, why in (('group=g', 'either'),
                         ('group=g,listen=/tmp/a,connect=/tmp/b', 'either'),
                         ('group=a b,listen=/tmp/a', 'name of a group'),
                         ('group=g,listen=nothing', 'an address is'),
                         (f'group=g,listen=/{long}', 'path of a Unix socket'),
                         ('group=g,listen=0.0.0.0:1', 'without a key of the group'),
                         ('group=g,connect=192.0.2.1:1', 'without a key of the group'),
                         ('group=g,connect=127.0.0.1:0', 'nobody listens at port 0'),
                         (f'group=g,listen={work}/no/where', 'No such file'),
                         (f'group=g,listen=:0,key-file={work}/none', 'cannot be read')):
        with Vm(work, [*MACHINE, '-netdev', f'tt,id=n,{options}']) as vm:
            vm.wait(1)
        said = one_sentence(vm, options)
        check(why.replace('needs', 'need') in said or why in said, f'{options}: {said}')
    for args, why in ((['--group', 'g'], '--listen'),
                      (['--group', 'g', '--listen', ':0', '--loss', '101'], '--loss'),
                      (['--listen', ':0'], '--group is missing'),
                      (['--group', 'a b', '--listen', ':0'], "not 'a b'")):
        check(why in tt('hub', *args, rc=2).stderr, f'{args}')
    said = one_sentence(tt('hub', '--group', 'g', '--listen', '0.0.0.0:0', rc=1).stderr,
                        'a hub for all')
    check('without a key of the group' in said, said)
