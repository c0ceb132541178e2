# SPDX-License-Identifier: GPL-2.0-or-later
"""Recorded VMs that name in their logs what others sent (frames=): replays find it in the
frame stores; what is lost there is said, with what can be reached without it."""

import contextlib
import json
import os
import re
import shutil

from test_group import checkpoint, guest, nic
from test_stores import lost
from ttlib import (MACHINE, Vm, check, check_exact, digest_at, equal, limit, one_sentence,
                   read_bytes, recorder, stopped_replay, tt, wait_until)

HEAD, RECORD = 48, 32           # docs/reference/group-format.rst

SERVER = '''
ifconfig lo 127.0.0.1 up
ifconfig eth0 10.9.0.1 netmask 255.255.255.0 up
mkdir -p /tmp/www
head -c BYTES /dev/urandom > /tmp/www/file
echo "TT-FILE $(md5sum /tmp/www/file | cut -d ' ' -f 1)"
httpd -h /tmp/www
echo TT-SERVES
nc -l -p 99 < /dev/null
sleep 2
echo TT-DONE
'''

CLIENT = '''
ifconfig lo 127.0.0.1 up
ifconfig eth0 10.9.0.2 netmask 255.255.255.0 up
i=0
until wget -q -O /tmp/got http://10.9.0.1/file || [ $i -gt 60 ]; do
    i=$((i + 1))
    sleep 1
done
echo "TT-FILE $(md5sum /tmp/got | cut -d ' ' -f 1)"
i=0
until echo bye | nc -w 60 10.9.0.1 99 || [ $i -gt 20 ]; do
    i=$((i + 1))
    sleep 1
done
echo TT-DONE
'''

# However slow the host is, it finds the client at work.
GET = 'wget -q -O /tmp/got http://10.9.0.1/file'
ENDLESS = CLIENT.replace(f'until {GET} || [ $i -gt 60 ]; do\n', f'while :; do\n    {GET}\n')


def record_two(work, size, server=',frames={}', client=',frames={}'):
    """A file of random bytes goes from one VM to the other; {} is the directory of the
    stores. Returns the ended Vms, and that directory."""
    group = os.path.join(work, 'group')
    frames, path = os.path.join(group, 'frames'), os.path.join(work, 'sock')
    os.makedirs(group)
    s = recorder(work, guest(work, 's', SERVER.replace('BYTES', str(size))) +
                 nic(1, f'listen={path}'), 'group/server', server.format(frames),
                 timeout=350)
    c = recorder(work, guest(work, 'c', CLIENT) + nic(2, f'connect={path}'), 'group/client',
                 client.format(frames), timeout=350)
    with s:
        wait_until(lambda: os.path.exists(path), 'the socket')
        with c:
            c.wait(0)
            s.wait(0)
    files = {re.search(rb'TT-FILE (\S+)', vm.serial).group(1) for vm in (s, c)}
    check(len(files) == 1 and b'TT-DONE' in c.serial, f'{files} {c.serial[-300:]}')
    return s, c, frames


def events(run, kind):
    return [json.loads(line) for line in
            tt('log', run, '--kind', kind, '--json', '--data').stdout.splitlines()]


def named(run):
    """(position, bytes, run of the sender, number) of each part of a frame that the log
    names."""
    found = []
    for ev in events(run, 'payload'):
        data = bytes.fromhex(ev['data'])
        seq = shift = 0
        for byte in data[24:]:
            seq |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                break
        found.append((ev['position'], ev['aux'], data[8:24].hex(), seq))
    return found


def uuid_of(run):
    text = read_bytes(os.path.join(run, 'manifest')).decode()
    return re.search(r'(?m)^uuid=(.*)$', text).group(1)


def store_of(frames, run):
    return os.path.join(frames, uuid_of(run) + '.frames')


def frames_in(path):
    """{number: (offset, length)} of the frames of a store: a second reader."""
    data, at, found = read_bytes(path), HEAD, {}
    equal(data[:8], b'TTVMFRM\n', 'magic of a frame store')
    while at < len(data):
        equal(data[at:at + 4], b'TTFR', f'magic of a record at {at}')
        size = int.from_bytes(data[at + 4:at + 8], 'little')
        found[int.from_bytes(data[at + 8:at + 16], 'little')] = (at + RECORD, size)
        at += RECORD + size
    equal(at, len(data), 'the end of the store')
    return found


def info_of(run, rc=0):
    done = tt('info', run, '--json', rc=rc)
    return json.loads(done.stdout), done.stderr


@limit(400)
def test_bulk(work):
    """A bulk transfer: 98 % of it is not in the receiver's log; both replay exactly, also
    elsewhere with the stores, and packed without; what a store has lost is said."""
    size = 4 << 20
    s, c, frames = record_two(work, size)
    for vm in (s, c):
        check_exact(work, vm.run, name=f'{vm.name}-rep', serial_wanted=vm.serial,
                    timeout=200)
        equal(info_of(vm.run)[0]['lost_frames'], [], 'what tt info misses')
        tt('check', vm.run)
    check('fit together' in tt('group', 'check', os.path.join(work, 'group')).stdout,
          'tt group check')
    equal(len(frames_in(store_of(frames, c.run))), len(
        events(c.run, 'frame-out')),
          'frames that the client sent')
    packed = pack_and_compare(work, c, size)
    move_and_replay(work, c)
    lose(work, s, c, frames)
    # What was packed needs no store.
    os.rename(frames, frames + '-away')
    check_exact(work, packed, name='unpacked', serial_wanted=c.serial, timeout=200)
    said = one_sentence(tt('pack', c.run, os.path.join(work, 'no'), rc=1).stderr, 'tt pack')
    check('is missing' in said and not os.path.exists(os.path.join(work, 'no')), said)


def pack_and_compare(work, c, size):
    """The log of a pack has what this one names: the difference is what was saved."""
    pack, where = os.path.join(work, 'pack'), os.path.join(work, 'unpacked.run')
    tt('pack', c.run, pack)
    tt('unpack', pack, where)
    log, whole = (os.path.getsize(os.path.join(run, 'log')) for run in (c.run, where))
    bytes_named = sum(n for _, n, _, _ in named(c.run))
    print(f'{size} bytes were got; {bytes_named} are named; the log has {log} bytes, that of '
          f'the pack {whole}: {(whole - log) / size:.4f} of what was got are saved')
    check(bytes_named > size, f'only {bytes_named} bytes are named')
    check(whole - log > .98 * size, f'only {whole - log} bytes of {size} are saved')
    equal(named(where), [], 'what the log of the pack names')
    check('[frames]' not in read_bytes(os.path.join(where, 'manifest')).decode(),
          'the manifest of the pack has frames')
    return where


def move_and_replay(work, c):
    """The runs and their stores are moved together."""
    moved, serial = os.path.join(work, 'elsewhere'), c.serial
    shutil.copytree(os.path.join(work, 'group'), moved)
    os.rename(os.path.join(work, 'group'), os.path.join(work, 'away'))
    check_exact(work, os.path.join(moved, 'client.run'), name='moved',
                serial_wanted=serial, timeout=200)
    os.rename(os.path.join(work, 'away'), os.path.join(work, 'group'))


def lose(work, s, c, frames):
    """The server's store is missing, damaged, cut off, another one: one sentence."""
    store, kept = store_of(frames, s.run), os.path.join(work, 'kept')
    parts = [part for part in named(c.run) if part[2] == uuid_of(s.run).replace('-', '')]
    places = frames_in(store)
    first, middle = parts[0], parts[len(parts) // 2]
    offset, length = places[middle[3]]
    whole = read_bytes(store)
    damaged = bytearray(whole)
    damaged[offset + length // 2] ^= 4
    head = bytearray(whole)
    head[offset - RECORD + 9] ^= 4
    other = read_bytes(store_of(frames, c.run))
    os.rename(store, kept)
    os.mkdir(store)
    said = one_sentence(tt('check', c.run, rc=1).stderr, 'a directory')
    check(': it is not a regular file: ' in said, said)
    os.rmdir(store)
    for content, part, why in (
            (None, first, 'whose frame store is missing in \'frames\': put it back'),
            (bytes(damaged), middle, 'its bytes are damaged'),
            (bytes(head), middle, 'later ones are: the store is damaged'),
            (whole[:offset + 10], middle, 'the store ends before it'),
            (other, first, 'it is the frame store of another run'),
            (b'', first, 'not a frame store')):
        if content is not None:
            with open(store, 'wb') as out:
                out.write(content)
        frame = f'frame {part[3]} of run {uuid_of(s.run)}'
        info, said = info_of(c.run, 1)
        equal(len(info['lost_frames']), 1, info['lost_frames'])
        span = info['reachable'][0]
        equal(span, [0, part[0]], f'what can be reached: {why}')
        replayed = lost(work, c.run, why)
        for text in (info['lost_frames'][0], one_sentence(said, 'tt info'), replayed,
                     one_sentence(tt('check', c.run, rc=1).stderr, 'tt check'),
                     one_sentence(tt('pack', c.run, os.path.join(work, 'no'), rc=1).stderr,
                                  'tt pack')):
            check(frame in text and why in text, f'not said: {frame}, {why}: {text}')
        check(f'cannot go on from position {part[0]}: ' in replayed and
              f'positions 0 to {part[0]} can still be reached' in replayed and
              'tt info lists all' in replayed, replayed)
    # One that is there again is found by the same process.
    with stopped_replay(work, c.run, 'again', timeout=200) as rep:
        answer = rep.qmp.cmd('tt-goto', position=first[0] + 1)
        equal((answer['position'], answer['reason']), (first[0], 'damaged'), answer)
        os.replace(kept, store)
        rep.qmp.cmd('tt-goto', position=0)
        answer = rep.qmp.cmd('tt-goto', position=first[0] + 1)
        equal(answer['position'], first[0] + 1, answer)
        check(digest_at(rep, first[0] + 1), 'a digest')


@limit(300)
def test_not_named(work):
    """What no store of ours has stays in the log: of a VM that keeps none, or all of it
    with payload=both; that one's frames can be named by others."""
    s, c, frames = record_two(work, 100000, server='', client=',frames={}')
    equal(named(c.run), [], 'frames of a VM that has no store')
    check(not os.path.exists(store_of(frames, s.run)), 'a store that nobody asked for')
    shutil.rmtree(os.path.join(work, 'group'))
    s, c, frames = record_two(work, 100000, server=',frames={},payload=both')
    equal(named(s.run), [], 'frames in a log that is to have all')
    check(sum(n for _, n, _, _ in named(c.run)) > 100000, 'what the client names')
    check_exact(work, c.run, name='c-rep', serial_wanted=c.serial, timeout=200)
    os.rename(frames, frames + '-away')
    check_exact(work, s.run, name='s-rep', serial_wanted=s.serial, timeout=200)


@limit(300)
def test_killed(work):
    """The sender is killed in the middle: whoever got its frames replays exactly."""
    path, frames = os.path.join(work, 'sock'), os.path.join(work, 'frames')
    with recorder(work, guest(work, 's', SERVER.replace('BYTES', str(24 << 20))) +
                  nic(1, f'listen={path}'), 'server', f',frames={frames}',
                  timeout=200) as s:
        s.wait_serial('TT-SERVES', timeout=150)
        with recorder(work, guest(work, 'c', ENDLESS) + nic(2, f'connect={path}'), 'client',
                      f',frames={frames}', timeout=200, qmp=1) as c:
            wait_until(lambda: os.path.exists(store_of(frames, s.run)) and
                       os.path.getsize(store_of(frames, s.run)) > 3 << 20,
                       'some of the file was sent', 150)
            s.kill()
            c.qmp.send('quit')
            c.wait(0)
    got = {part[3] for part in named(c.run)}
    check(len(got) > 1000, f'{len(got)} frames')
    check_exact(work, c.run, name='c-rep', serial_wanted=c.serial, timeout=200)


@limit(300)
def test_past(work):
    """The process that records shows its past, with frames that its log only names, and
    goes on; what it sends and gets afterwards is kept and named as before."""
    path, frames = os.path.join(work, 'sock'), os.path.join(work, 'frames')
    s = recorder(work, guest(work, 's', SERVER.replace('BYTES', '300000')) +
                 nic(1, f'listen={path}'), 'server', f',frames={frames}', timeout=200)
    until_told = CLIENT.replace('i=0\nuntil echo', 'read -r said < /dev/console\ni=0\nuntil '
                                'echo')
    c = recorder(work, guest(work, 'c', until_told) + nic(2, f'connect={path}'), 'client',
                 f',frames={frames}', timeout=200, qmp=1, typed=True)
    with s:
        wait_until(lambda: os.path.exists(path), 'the socket')
        with c:
            c.wait_serial('TT-FILE', timeout=150)
            c.qmp.cmd('stop')
            here = c.qmp.cmd('query-tt')['position']
            answer = c.qmp.cmd('tt-goto', 120, position=here - 20000)
            equal(answer['position'], here - 20000, answer)
            answer = c.qmp.cmd('tt-goto', 120, where='end')
            check(answer['position'] >= here, answer)
            c.qmp.cmd('cont')
            c.type('end')
            c.wait(0)
            s.wait(0)
    parts = [part[0] for part in named(c.run)]
    check(parts[0] < here - 20000 and parts[-1] > here, 'nothing is named there')
    check_exact(work, c.run, name='c-rep', serial_wanted=c.serial, timeout=200)


@limit(500)
def test_checkpoint(work):
    """A group with frame stores goes on from one of its checkpoints, as one without does,
    and the branches name frames of each other."""
    checkpoint(work, ',frames=' + os.path.join(work, 'frames'))
    check(named(os.path.join(work, 'second', 'client2.run')), 'the branch names nothing')


@limit(60)
def test_refused(work):
    """Options that make no sense, and places that cannot be used."""
    plain = os.path.join(work, 'plain')
    with open(plain, 'w', encoding='ascii') as out:
        out.write('x')
    run = os.path.join(work, 'x.run')
    os.symlink(work, os.path.join(work, 'aside'))
    for options, why in (('payload=both', 'payload needs frames='),
                         (f'frames={work}/f,payload=log', "'reference' or 'both'"),
                         (f'frames={work}/f,last=10s', 'exclude each other'),
                         ('frames=', 'takes a directory'),
                         (f'frames={plain}', 'Not a directory'),
                         (f'frames={work}/no/f', 'No such file'),
                         (f'frames={run}', "in the run's own directory"),
                         (f'frames={run}/f', "in the run's own directory"),
                         (f'frames={work}/aside/x.run', "in the run's own directory")):
        with Vm(work, [*MACHINE, '-tt', f'record,dir={run},{options}'], name='no') as vm:
            vm.wait(1)
        said = one_sentence(vm, options)
        check(why in said, f'{options}: {said}')
        check(not os.path.exists(os.path.join(run, 'manifest')), f'{options}: a run')
    with contextlib.suppress(FileNotFoundError):
        os.rmdir(run)
