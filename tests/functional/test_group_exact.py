# SPDX-License-Identifier: GPL-2.0-or-later
"""A group goes on while one of its members does what it did (tt group live --exact): what the
others send it is compared with what they had sent, byte for byte."""

import json
import os
import re
import select
import shutil
import signal
import subprocess
import time

from test_group import frame_notes, guest, nic
from test_group_frames import events, frames_in, store_of, uuid_of
from ttlib import (SLOW, Qmp, check, check_exact, equal, limit, one_sentence, read_bytes,
                   read_text, recorder, tool, tt, wait_until)

ALONE = '''
for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do
    echo 1 > $f
done
ifconfig lo 127.0.0.1 up
ifconfig eth0 10.9.0.NUMBER netmask 255.255.255.0 up
# Or it would ask where the other one is, now and then.
arp -s 10.9.0.1 52:54:00:09:00:01
arp -s 10.9.0.2 52:54:00:09:00:02
'''
# The kernel answers, until a large one came; a busy host makes it wait long.
SERVER = ALONE.replace('NUMBER', '1') + '''
echo TT-SERVES
i=0
while [ $(cat /sys/class/net/eth0/statistics/rx_bytes) -lt 15000 ] && [ $i -lt 200 ]; do
    sleep 1
    i=$((i + 1))
done
echo TT-DONE $i
'''
# busybox puts the time into what it sends.
CLIENT = ALONE.replace('NUMBER', '2') + '''
i=0
until ping -c 1 -W 1 10.9.0.1 > /dev/null || [ $i -gt 30 ]; do
    i=$((i + 1))
done
i=1
while [ $i -le 12 ]; do
    echo "TT-ROUND $i $(ping -c 1 -W 15 10.9.0.1 | grep -c '1 packets received')"
    # The host makes a checkpoint; a branch has nobody who could say that it is there.
    [ $i != 3 ] || sleep 15
    i=$((i + 1))
    sleep 0.4
done
ping -c 1 -W 15 -s 20000 10.9.0.1
echo TT-DONE
'''


def record_two(work):
    group, path = os.path.join(work, 'group'), os.path.join(work, 'sock')
    frames = os.path.join(group, 'frames')
    os.makedirs(group)
    with recorder(work, guest(work, 's', SERVER) + nic(1, f'listen={path}'),
                  'group/server', f',frames={frames},payload=both', timeout=300) as s:
        # Its run stands alone, and names no store; the client's does.
        wait_until(lambda: os.path.exists(path), 'the socket')
        with recorder(work, guest(work, 'c', CLIENT) + nic(2, f'connect={path}'),
                      'group/client', f',frames={frames}', timeout=300, qmp=1) as c:
            c.wait_serial('TT-ROUND 3', timeout=150)
            check('full' in c.qmp.hmp('tt checkpoint add -g', 60), 'no checkpoint')
            c.wait(0)
            s.wait(0)
    rounds = re.findall(rb'TT-ROUND (\d+) (\d)', c.serial)
    equal(rounds, [(b'%d' % i, b'1') for i in range(1, 13)], 'rounds of the client')
    return s, c, frames


def live(work, to, exact, other, *more, group='group'):
    """tt group live to its end; what it says, and the line of the other member. Where the host
    stood still for seconds, once more: there was no order then."""
    for more_tries in 2, 1, 0:
        said = tt('group', 'live', os.path.join(work, group), '--to',
                  os.path.join(work, to), '--exact', exact, *more, timeout=150).stdout
        print(said)
        if 'is not waited for' not in said or not more_tries:
            break
        shutil.rmtree(os.path.join(work, to))
    check(f'{exact} has sent all that it had sent' in said, said)
    return said, row_of(said, other)


def list_with(work, server, client):
    """A list of the two under other names, which no line of it can begin with."""
    with open(os.path.join(work, 'named'), 'w', encoding='utf-8') as out:
        out.write('[members]\nm=group/server.run\nmember-1=group/client.run\n[names]\n'
                  f'm={server}\nmember-1={client}\n')


def row_of(said, name):
    """[the same, different, missing, more], and what is said of the first."""
    found = re.search(rf'(?m)^{re.escape(name)} +(\d+) +(\d+) +(\d+) +(\d+)\n(  first: .*)?',
                      said)
    check(found, f'no line of {name}: {said}')
    return [int(n) for n in found.groups()[:4]], found.group(5)


def console_of(work, to, name):
    return ['--without', 'serial', '--', '-serial', f'file:{work}/{to}/{name}.console']


@limit(400)
def test_surrounding(work):
    """The server goes on with the client as it was: it answers the same. The client goes on
    with the server as it was: what it sends is new, which is found out to the byte."""
    s, c, frames = record_two(work)
    says_no(work, c, frames)

    _, (row, first) = live(work, 'second', 'client', 'server',
                           *console_of(work, 'second', 'server'))
    check_answers(row, first)
    second = os.path.join(work, 'second')
    check('fit together' in tt('group', 'check', f'{second}/group').stdout, 'tt group check')
    check(b'TT-DONE' in read_bytes(f'{second}/server.console'), 'the server did not end')
    check_exact(work, f'{second}/server', name='second-rep', timeout=200,
                serial_wanted=read_bytes(f'{second}/server.console'))
    check_turns(c.run, f'{second}/server')
    answer = compare(work, f'{second}/group')
    equal([m['name'] for m in answer['members']], ['server'], 'members that are compared')
    equal([answer['members'][0][k] for k in ('same', 'different', 'missing', 'more')], row,
          f'{answer}')

    named = '.client [b] = é'
    list_with(work, '# sérver', named)
    said, (row, first) = live(work, 'third', '# sérver', named,
                              *console_of(work, 'third', 'client'), group='named')
    console = read_bytes(f'{work}/third/client.console')
    check(b'TT-DONE' in console and row[1] >= 6, f'{row} {console[-300:]}')
    widths = {len(line) for line in said.splitlines()
              if re.match(rf'to # s|{re.escape(named)} +[0-9]', line)}
    equal(len(widths), 1, f'widths of {said}')
    check_first(work, frames, first, f'{work}/third/{named}')
    answer = compare(work, f'{work}/third/group')
    equal(answer['same'], False, f'{answer}')
    equal(answer['members'][0]['first']['byte'], int(re.search(r'byte (\d+)', first)[1]),
          f'{answer} {first}')
    stands_still(work)
    moved(work, frames)


def moved(work, frames):
    """A copy of the group goes on where the original is no longer: what its branches send is
    kept beside them, and what others keep stays as it was. With --frames it is kept there."""
    copy, fourth = os.path.join(work, 'copy'), os.path.join(work, 'fourth')
    shutil.copytree(os.path.join(work, 'group'), copy)
    os.rename(os.path.join(work, 'group'), os.path.join(work, 'away'))
    before = sorted(os.listdir(f'{copy}/frames'))
    tt('group', 'live', copy, '--to', fourth, *console_of(work, 'fourth', '{member}'),
       timeout=150)
    check(not os.path.exists(frames), f'{frames} is there again')
    equal(sorted(os.listdir(f'{copy}/frames')), before, 'stores of the copy')
    equal(sorted(os.listdir(f'{fourth}/frames')),
          sorted(f'{uuid_of(f"{fourth}/{name}")}.frames' for name in ('client', 'server')),
          'stores of the branches')
    check('[frames]\npath=../frames\n' in read_text(f'{fourth}/client/manifest'), 'the path')
    check_exact(work, f'{fourth}/client', name='fourth-rep', timeout=200,
                serial_wanted=read_bytes(f'{fourth}/client.console'))
    # A branch of one run has the stores of the run's own group.
    for name in 'client', 'server':
        said = tt('branch', f'{copy}/{name}.run', '--at', '@group-1', '--print').stdout
        check(f'frames={copy}/frames' in said and frames not in said.split('-tt')[1], said)
    elsewhere(work, copy)
    takes_away(work, copy)
    stores = os.path.join(work, 'stores')
    os.rename(f'{copy}/frames', stores)
    for verb in 'check', 'info':
        said = one_sentence(tt(verb, f'{copy}/client.run').stderr, verb)
        check(f"note: the frame stores '{copy}/frames' are missing" in said, said)
    fifth = ['group', 'live', copy, '--to', f'{work}/fifth', '--exact', 'client']
    said = one_sentence(tt(*fifth, rc=1).stderr, 'no stores')
    check('or say with --frames where the stores are' in said, said)
    said = one_sentence(tt(*fifth, '--frames', f'{work}/place', rc=1).stderr, 'no store there')
    check(f"there is no '{work}/place/{uuid_of(copy + '/client.run')}.frames': give with "
          '--frames the directory' in said and 'or say' not in said, said)
    said = live_stalled(*fifth, '--frames', stores, *console_of(work, 'fifth', 'server'))
    check(sum(row_of(said, 'server')[0]) >= 9, said)
    check(os.path.exists(store_of(stores, f'{work}/fifth/server')), 'no store in --frames')
    check(not os.path.exists(f'{work}/fifth/frames'), 'stores in two places')


def live_stalled(*command):
    """The host of the live member stands still until the other one waits no longer: this is
    said, once. What the command says."""
    silent = 'server has not sent what it had sent by then: after 3 s it is not waited for ' \
             'until it sends again\n'
    with subprocess.Popen([tool('tt'), *command], stdout=subprocess.PIPE,
                          text=True) as process:
        said = ''.join(process.stdout.readline() for _ in range(3))
        pid = int(re.search(r'(?m)^ +server +process (\d+),', said)[1])
        os.kill(pid, signal.SIGSTOP)
        said += process.stdout.readline()
        os.kill(pid, signal.SIGCONT)
        said += process.communicate(timeout=150 * SLOW)[0]
    equal(process.returncode, 0, said)
    equal(said.count('\n' + silent), 1, said)
    return said


def elsewhere(work, copy):
    """By a link to a run its stores are found beside the run. A run that stands alone has its
    store where the others have theirs, also if it was moved without them."""
    links, place = os.path.join(work, 'links'), os.path.join(work, 'place')
    os.mkdir(links)
    os.mkdir(place)
    for name in 'client', 'server':
        os.symlink(f'../copy/{name}.run', f'{links}/{name}')
        said = tt('branch', f'{links}/{name}', '--at', '@group-1', '--print').stdout
        check(f'frames={copy}/frames' in said, said)
    os.rename(f'{copy}/server.run', f'{place}/server.run')
    with open(f'{work}/apart', 'w', encoding='ascii') as out:
        out.write('[members]\nclient=copy/client.run\nserver=place/server.run\n')
    said, _ = live(work, 'apart-on', 'server', 'client',
                   *console_of(work, 'apart-on', 'client'), group='apart')
    check('fit together' in tt('group', 'check', f'{work}/apart-on/group').stdout, said)
    os.rename(f'{place}/server.run', f'{copy}/server.run')


def takes_away(work, copy):
    """A group that has recorded nothing leaves no directory for frames that it has made, and
    leaves the one that was there."""
    to, there = os.path.join(work, 'none'), os.path.join(work, 'empty')
    os.mkdir(there)
    for frames in f'{work}/new', f'{to}/stores', there:
        with subprocess.Popen([tool('tt'), 'group', 'live', copy, '--to', to, '--frames',
                               frames, *console_of(work, 'none', '{member}'), '-S'], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            said = process.stdout.readline()
            made = os.path.isdir(frames)
            process.send_signal(signal.SIGTERM)
            more, wrong = process.communicate(timeout=60 * SLOW)
        check(made and f"'{to}' is deleted again" in more, f'{frames}: {said} {more} {wrong}')
        check(not wrong and not os.path.exists(to), f'{frames}: {wrong}')
        equal(os.path.exists(frames), frames == there, f'{frames} is there')


def check_turns(client, branch):
    """Before each frame that the client sends again the server has sent as many as before
    it then; both counts are those of the two logs."""
    then, got = {}, None
    for what, ev in frame_notes(client):
        if what == 3:
            got = 0                             # the checkpoint
        elif got is not None and what == 'delivered':
            got += bytes.fromhex(ev['data'])[24:] != bytes(1)   # its epoch
        elif got is not None and what == 'sent':
            then[int(ev['val'], 16)] = got
    sent = n = 0
    for what, ev in frame_notes(branch):
        number = int(ev['val'], 16)
        sent += what == 'sent'
        if what == 'delivered' and number in then:
            n += 1
            check(sent >= then[number], f'frame {number}: {sent} instead of {then[number]}')
    equal(n, len(then), 'frames that the server got')
    check(max(then.values()) > 5, f'{then}')


def check_answers(row, first):
    """One answer to each question. Linux takes the number of a packet (bytes 18 and 19) from
    the clock, and the sum over the header (24, 25) with it."""
    check(sum(row[:2]) >= 9 and row[2:] == [0, 0], f'{row} {first}')
    check(row[1] == 0 or re.search(r'byte (18|19|24|25) is', first), f'{row} {first}')


def compare(work, second):
    return json.loads(tt('group', 'compare', f'{work}/group', second, '--json').stdout)


def check_first(work, frames, said, branch):
    """The first byte that differs, read from the two frame stores by another reader."""
    found = re.search(r'first: frame (\d+) of (\d+) bytes, was frame (\d+) of (\d+) bytes: '
                      r'byte (\d+) is (\w\w), was (\w\w)', said or '')
    check(found, f'no difference is said: {said}')
    new, new_len, old, old_len, byte = (int(n) for n in found.groups()[:5])
    bytes_of = {}
    for name, where, run, number in (
            ('is', f'{os.path.dirname(branch)}/frames', branch, new),
            ('was', frames, f'{work}/group/client.run', old)):
        path = store_of(where, run)
        at, size = frames_in(path)[number]
        bytes_of[name] = read_bytes(path)[at:at + size]
    equal([len(bytes_of['is']), len(bytes_of['was'])], [new_len, old_len], 'lengths')
    equal([bytes_of[k][byte:byte + 1].hex() for k in ('is', 'was')], list(found.groups()[5:]),
          f'the byte of {said}')
    equal(bytes_of['is'][:byte], bytes_of['was'][:byte], 'what is before it')


def stands_still(work):
    """While the only live member is stopped, the other one does nothing."""
    to = os.path.join(work, 'still')
    with subprocess.Popen([tool('tt'), 'group', 'live', os.path.join(work, 'group'), '--to',
                           to, '--exact', 'client', *console_of(work, 'still', 'server'),
                           '-S', '-qmp', f'unix:{work}/q,server=on,wait=off'],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        try:
            said = ''.join(process.stdout.readline() for _ in range(3))
            check('goes on from' in said and 'as it was' in said, said)
            qmp = Qmp(f'{work}/q')
            time.sleep(9)
            equal(select.select([process.stdout], [], [], 0)[0], [], 'it has sent all')
            equal(qmp.cmd('query-status')['running'], False, 'it is stopped')
            # At once, or it might send all before it is told to stop.
            answers = qmp.cmds('cont', 'query-status', 'stop')
            check(answers[1]['running'], 'it goes on')
            time.sleep(9)
            equal(select.select([process.stdout], [], [], 0)[0], [], 'it has sent all')
            qmp.cmd('cont')
            said, wrong = process.communicate(timeout=60 * SLOW)
        finally:
            process.kill()
    row, first = row_of(said, 'server')
    equal(process.returncode, 0, f'{said} {wrong}')
    check_answers(row, first)


def says_no(work, c, frames):
    group, where = os.path.join(work, 'group'), ['--to', os.path.join(work, 'no')]
    store = store_of(frames, c.run)
    os.rename(store, store + '-away')
    said = one_sentence(tt('group', 'live', group, *where, '--exact', 'client', rc=1).stderr,
                        'without its store')
    check('is missing' in said, said)
    os.rename(store + '-away', store)
    said = one_sentence(tt('group', 'live', group, *where, '--exact', 'nobody', rc=1).stderr,
                        'no such member')
    check("no member 'nobody'" in said, said)
    said = one_sentence(tt('group', 'compare', group, group, rc=1).stderr, 'with itself')
    check('has only runs of' in said, said)
    check('only for tt group live' in tt('group', 'info', group, '--exact', 'x', rc=2).stderr,
          'an option of another verb')
    check('needs a second' in tt('group', 'compare', group, rc=2).stderr, 'no second group')
    check('--frames is empty' in tt('group', 'live', group, *where, '--frames', '',
                                    rc=2).stderr, 'an empty --frames')
    with open(f'{work}/list', 'w', encoding='ascii') as out:
        out.write(f'[members]\nframes={c.run}\n')
    said = one_sentence(tt('group', 'live', f'{work}/list', *where, '--print',
                           rc=1).stderr, 'a name')
    check("'frames' is also the name of the directory of the frame stores" in said, said)
    check(not os.path.exists(where[1]), 'nothing was made')
