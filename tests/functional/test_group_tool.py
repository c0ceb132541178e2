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
import struct
import subprocess
import uuid

from guests import guest_args
from strangers import xxh
from test_group import group_points, guest, nic
from test_group_live import quit_all
from ttlib import (REPO, SLOW, check, equal, limit, one_sentence, read_bytes, read_text, record,
                   recorder, seed, tool, tt, wait_until)

PINGS = '''
ifconfig lo 127.0.0.1 up
ifconfig eth0 10.9.0.NUMBER netmask 255.255.255.0 up
while :; do
    ping -c 1 -W 1 10.9.0.OTHER | grep ' 0% packet loss' && echo TT-ANSWERED
done
'''
# A QEMU for b only: it stands still like another one, and fails when it is told to go on.
FAILS = '''#!/usr/bin/python3
import os, re, socket, sys, time
line = ' '.join(sys.argv)
if 'second/b' not in line:
    os.execv({qemu!r}, [{qemu!r}, *sys.argv[1:]])
s = socket.socket(fileno=int(re.search(r'id=tt-live,fd=(\\d+)', line).group(1)))
s.sendall(b'{{"QMP": {{}}}}\\n')
while True:
    asked = s.recv(4096)
    if b'cont' in asked:
        time.sleep(2)
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
def pair(work):
    """Two members that talk, {name: Vm}."""
    path = os.path.join(work, 'link')
    os.makedirs(os.path.join(work, 'group'))
    with contextlib.ExitStack() as running:
        vms = {}
        for number, (name, how) in enumerate((('a', 'listen'), ('b', 'connect')), 1):
            args = member(work, name, number, f'{how}={path}')
            vms[name] = running.enter_context(recorder(work, args, f'group/{name}', qmp=3,
                                                       timeout=200))
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
            (['--qemu', '/none'], 'a did not begin: .*cannot run')):
        done = tt('group', 'live', folder, '--to', second, *args, rc=1)
        check(re.search(why, one_sentence(done.stderr, f'{args}')), done.stderr)
        check(not done.stdout, done.stdout)
        check(not os.path.exists(second), f'{args}: {second} is left')
    for number in signal.SIGINT, signal.SIGTERM:
        check_is_told(folder, second, own, number)
    check_killed(folder, second)
    listed = os.path.join(work, 'named')
    with open(listed, 'w', encoding='ascii') as out:
        out.write(f'[members]\na={folder}/a.run\na.out={folder}/b.run\n')
    said = one_sentence(tt('group', 'live', listed, '--to', second, rc=1).stderr, 'names')
    check("'a.out' is also the name of an output file" in said, said)
    check(not os.path.exists(second), f'names: {second} is left')
    # Files that are there already are not touched, nor the directory of somebody else.
    os.mkdir(second)
    said = one_sentence(tt('group', 'live', folder, '--to', second, rc=1).stderr, 'it is there')
    check('cannot create' in said and os.path.isdir(second), said)
    os.rmdir(second)
    # One goes on and the other does not.
    fails = os.path.join(work, 'fails')
    with open(fails, 'w', encoding='ascii') as out:
        out.write(FAILS.format(qemu=tool('qemu-system-x86_64')))
    os.chmod(fails, 0o700)
    done = tt('group', 'live', folder, '--to', second, '--qemu', fails, rc=1)
    check('b does not go on: it cannot' in done.stderr, done.stderr)
    check(f"'{second}/a' has recorded something, so '{second}' stays" in done.stderr,
          done.stderr)
    check(tt('check', os.path.join(second, 'a')).stdout, 'it is a run')


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
    with live_stopped(folder, second) as (again, _):
        again.send_signal(signal.SIGINT)
        said, wrong = again.communicate(timeout=60 * SLOW)
    check('was killed: what it had left is deleted' in one_sentence(wrong, 'after -S'), wrong)
    check('is deleted again: no member went on' in said and not os.path.exists(second), said)
    equal(again.returncode, 0, 'its end')


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


def golden_logs():
    """The writer of logs that shares nothing with that in C."""
    path = os.path.join(REPO, 'tests', 'golden', 'make-golden-logs.py')
    spec = importlib.util.spec_from_file_location('golden_logs', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def frame_note(logs, what, val, aux, data=None):
    """An event of kind frame, the first of its segment; one position later."""
    return logs.event(38, delta=1, aux=aux, addr=what, val=val, data=data)


def forge(logs, run, to, notes):
    """A run whose log has these notes, each in a segment of its own, [(fields)]."""
    shutil.copytree(run, to)
    os.unlink(os.path.join(to, 'log'))
    path = os.path.join(to, 'manifest')
    text = re.sub('^uuid=.*$', f'uuid={uuid.UUID(bytes=logs.UUID)}', read_text(path),
                  flags=re.M)
    text = text[:text.rindex('# sha256')]
    with open(path, 'w', encoding='utf-8') as out:
        out.write(f'{text}# sha256 {hashlib.sha256(text.encode()).hexdigest()}\n')
    writer, pos = logs.Writer(), 0
    with open(os.path.join(to, 'log'), 'wb') as out:
        out.write(logs.head())
        for i, (what, val, aux, *data) in enumerate(notes):
            pos += 1
            data = data[0] if data else None
            long = data if data and len(data) > 16 else b''
            out.write(writer.segment(frame_note(logs, what, val, aux, data), 1, end=pos,
                                     pl=long, flags=int(i == len(notes) - 1)))


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
            ([(3, 1, 2)], 'damaged'), ([(3, 1 << 40, 1)], 'damaged'), ([(9, 1, 60)], 'damaged'),
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
