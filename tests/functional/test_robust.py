# SPDX-License-Identifier: GPL-2.0-or-later
"""Killed recorders, damaged runs and bad places: never a crash or a hang.

A damaged run gives one clear sentence and status 1, a torn one replays to
its last sealed byte and says so. Where the segments of a log lie is read
from the bytes, as docs/reference/log-format.rst describes them.
"""

import contextlib
import json
import os
import random
import re
import resource
import shutil
import subprocess
import time

from guests import guest_args
from ttlib import (Skip, Vm, check, digest, edit_manifest, equal, goto, limit,
                   one_sentence, qemu_binary, record, recorder, run_tool, seed,
                   short, stopped_replay, tool, wait_until)

SEGMENT_MAGIC = b'TTVMSEG\n'
HEAD_BYTES = 64
# Short, and with several segments in its log.
GUEST = ('tsc', 'rounds=150000')
ENDLESS = ('tsc', 'rounds=1000000000')


def recorded(work):
    return record(work, guest_args(work, *GUEST))


def replay_status(work, path, name):
    """Replays a run that may be broken: (status, stderr, console)."""
    with Vm(work, ['-tt', f'replay,dir={path},at-end=exit', '-display',
                   'none'], name=name, timeout=30) as vm:
        status = vm.wait()
        return status, vm.stderr, vm.serial


def check_graceful(outcome, what, wanted, console):
    """One of the wanted statuses, with its message; never a crash."""
    status, stderr, serial = outcome
    check(status in wanted,
          f'{what}: ended with {status} instead of {wanted}: '
          f'{short(stderr)}')
    if status == 1:
        one_sentence(stderr, what)
    if status == 0:
        check(console.startswith(serial),
              f'{what}: a shortened run shows another console')


def copy_run(work, run, name='copy'):
    path = os.path.join(work, name)
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(run.dir, path)
    return path


def segments(log):
    """Offsets of the segment headers of a log."""
    found, at = [], log.find(SEGMENT_MAGIC)
    while at >= 0:
        found.append(at)
        at = log.find(SEGMENT_MAGIC, at + 1)
    check(found, 'the log has no segment')
    return found


def read_log(path):
    with open(os.path.join(path, 'log'), 'rb') as f:
        return f.read()


def write_log(path, data):
    with open(os.path.join(path, 'log'), 'wb') as f:
        f.write(data)


def look_at_growing(work, vm):
    """A run whose recorder is at work is not called cut off, and is nobody else's."""
    status, stderr, shown = replay_status(work, vm.run, 'growing')
    equal(status, 0, f'status of the replay ({short(stderr)})')
    check('still being recorded' in stderr, f'the replay says {stderr!r}')
    check(vm.serial.startswith(shown), 'the replay shows another console')
    for command in ('info', 'check'):
        got = json.loads(run_tool(tool('tt'), command, '--json', vm.run)[0])
        check(got['recording'] and got['torn'], f'tt {command}: {got}')


@limit(150)
def test_killed_recorder(work):
    """A recorder killed with SIGKILL at random moments leaves a run that
    replays to its last sealed byte, which the replay says."""
    rng = seed()
    args = guest_args(work, 'torture', 'rounds=100000 percent=10')
    for number in range(5):
        with recorder(work, args, name=f'rec{number}', qmp=1) as vm:
            vm.wait_serial('sum=')
            time.sleep(rng.uniform(1.0, 2.5))
            if number == 0:
                look_at_growing(work, vm)
            vm.kill()
            serial = vm.serial
        status, stderr, shown = replay_status(work, vm.run, f'rep{number}')
        equal(status, 0, f'status of the replay ({short(stderr)})')
        check('the recorder was cut off' in stderr, f'the replay says {stderr!r}')
        check(serial.startswith(shown), 'the replay shows another console')
        check(len(shown) > 40, f'hardly anything was kept: {shown!r}')
        with stopped_replay(work, vm.run, f'go{number}') as rep:
            goto(rep, where='end')
            end = digest(rep)
            goto(rep, where='start')
            rep.qmp.cmd('tt-goto', 60, position=end[0])
            equal(digest(rep), end, 'digest at the end of the torn run')


def test_killed_at_once(work):
    """A recorder killed in its first moments leaves a run that replays or
    is refused in one sentence."""
    rng = seed()
    args = guest_args(work, *GUEST)
    for number in range(12):
        with recorder(work, args, name=f'rec{number}') as vm:
            time.sleep(rng.uniform(0, 0.25))
            vm.kill()
            serial = vm.serial
        if not os.path.exists(vm.run):
            continue
        check_graceful(replay_status(work, vm.run, f'rep{number}'),
                       f'run killed at once ({number})', (0, 1), serial)


@limit(120)
def test_truncated_log(work):
    """A log cut at every kind of place replays as far as it is sealed, or
    is refused when not even its head is there."""
    run = recorded(work)
    log = read_log(run.dir)
    places = segments(log)
    check(len(places) > 2, f'the log has {len(places)} segments')
    rng = seed()
    last = places[-1]
    cuts = {0: (1,), 1: (1,), 8: (1,), HEAD_BYTES - 1: (1,)}
    for at in (HEAD_BYTES, places[0] + 4, places[0] + 95, places[0] + 96,
               last, last + 1, last + 50, last + 96, last + 97,
               len(log) - 1, len(log) // 2,
               *(rng.randrange(HEAD_BYTES, len(log)) for _ in range(12))):
        cuts[at] = (0,) if at >= places[1] else (1,)
    for number, (at, wanted) in enumerate(sorted(cuts.items())):
        path = copy_run(work, run)
        write_log(path, log[:at])
        outcome = replay_status(work, path, f'cut{number}')
        check_graceful(outcome, f'log cut at {at} of {len(log)}', wanted,
                       run.serial)
        check(outcome[1].strip(), f'cut at {at}: no word about it')


@limit(150)
def test_flipped_bytes(work):
    """A log with one byte changed, anywhere, gives status 1 and one sentence
    that names the damage: at once, or when the replay comes to it."""
    run = recorded(work)
    log = read_log(run.dir)
    rng = seed()
    last = segments(log)[-1]
    places = [0, 3, 8, 12, 16, 24, 40, 56, 63]
    for base in (segments(log)[0], last):
        places += [base + i for i in (0, 8, 12, 16, 24, 32, 48, 52, 56, 60,
                                      64, 72, 80, 88, 96)]
    places += [rng.randrange(len(log)) for _ in range(25)]
    for number, at in enumerate(places):
        path = copy_run(work, run)
        broken = bytearray(log)
        broken[at] ^= 1 << rng.randrange(8)
        write_log(path, broken)
        outcome = replay_status(work, path, f'flip{number}')
        check_graceful(outcome, f'byte {at} of {len(log)} flipped', (1,), b'')
        check(at < HEAD_BYTES or 'damaged' in outcome[1],
              f'byte {at} flipped: no damage is named: {outcome[1]}')


@limit(90)
def test_damaged_segment(work):
    """A damaged segment, also the last, is no divergence: the replay is exact
    up to it, and says at which byte the log is damaged."""
    run = recorded(work)
    log = read_log(run.dir)
    places = segments(log)
    for number, base in enumerate((places[len(places) // 2], places[-1])):
        path = copy_run(work, run)
        broken = bytearray(log)
        broken[base + 100] ^= 4
        write_log(path, broken)
        status, stderr, serial = replay_status(work, path, f'exit{number}')
        equal(status, 1, f'status ({short(stderr)})')
        line = one_sentence(stderr, 'damage')
        check(f'byte {base}: ' in line and 'damaged' in line, line)
        check(run.serial.startswith(serial), 'another console')
        with stopped_replay(work, path, f'stays{number}') as vm:
            vm.qmp.cmd('cont')
            equal(vm.qmp.event('TT_STOPPED', 30)['reason'], 'damaged', 'stop')
            state = vm.qmp.cmd('query-tt')
            check(not state['diverged'] and f'byte {base}: ' in
                  state['damage'], f'query-tt: {state}')
            here = state['position']
            check(here > 0, 'nothing was replayed')
            message = vm.qmp.error('tt-goto', position=here + 1)
            check('damaged' in message or here == end_of(vm), message)
            vm.qmp.cmd('tt-trace-start', file=os.path.join(work, f'{number}.trace'))
            vm.qmp.error('tt-goto', position=here + 1)
            for back in (1, 3, 1000):
                goto(vm, position=max(0, here - back))
                equal(goto(vm, where='end'), {'reason': 'damaged', 'position': here},
                      f'the place of the damage, from {back} before it')


@limit(90)
def test_flipped_manifest(work):
    """A manifest with one byte changed is refused clearly, by tt check as well."""
    run = recorded(work)
    rng = seed()
    with open(os.path.join(run.dir, 'manifest'), 'rb') as f:
        manifest = f.read()
    for number in range(40):
        path = copy_run(work, run)
        broken = bytearray(manifest)
        broken[rng.randrange(len(broken))] ^= rng.randrange(1, 256)
        with open(os.path.join(path, 'manifest'), 'wb') as f:
            f.write(broken)
        check_graceful(replay_status(work, path, f'flip{number}'),
                       f'manifest {number}', (1,), run.serial)
        _, said = run_tool(tool('tt'), 'check', path, rc=1)
        check('manifest' in said, said)


def break_empty(path, name):
    with open(os.path.join(path, name), 'wb'):
        pass


def break_missing(path, name):
    os.unlink(os.path.join(path, name))


def break_directory(path, name):
    os.unlink(os.path.join(path, name))
    os.mkdir(os.path.join(path, name))


def break_rubbish(path, name):
    with open(os.path.join(path, name), 'wb') as f:
        f.write(random.Random(1).randbytes(100000))


def break_foreign(path, name):
    """Belongs to another run of the same kind."""
    shutil.copy(os.path.join(path, '..', 'other.run', name),
                os.path.join(path, name))


def break_endless(path, name):
    os.unlink(os.path.join(path, name))
    os.symlink('/dev/zero', os.path.join(path, name))


@limit(90)
def test_broken_files(work):
    """A file of the run that is empty, missing, a directory, rubbish, of
    another run, or endless is refused in one sentence that names it."""
    run = recorded(work)
    record(work, guest_args(work, *GUEST), name='other')
    for way in (break_empty, break_missing, break_directory, break_rubbish,
                break_foreign, break_endless):
        for name in ('manifest', 'log'):
            path = copy_run(work, run)
            way(path, name)
            outcome = replay_status(work, path,
                                    f'{way.__name__[6:]}-{name}')
            check_graceful(outcome, f'{way.__name__} {name}', (1,), b'')


def test_foreign_versions(work):
    """A manifest or log with a feature from the future is refused, and the
    message says that it is newer."""
    run = recorded(work)
    path = copy_run(work, run)
    edit_manifest(path, lambda text: re.sub(
        r'(?m)^features=.*$', 'features=0x4000', text))
    status, stderr, _ = replay_status(work, path, 'future')
    equal(status, 1, 'status')
    line = one_sentence(stderr, 'features')
    check('newer' in line or '4000' in line,
          f'the message does not tell that the run is newer: {line}')


def test_other_rules(work):
    """A run recorded by other rules of execution is refused, and the message
    names the version to replay it with."""
    run = recorded(work)
    with open(os.path.join(run.dir, 'manifest'), encoding='utf-8') as f:
        text = f.read()
    for number, (pattern, other) in enumerate((
            ('^rules=.*$', 'rules=0x1'), ('^rules=.*$', 'rules=0x8000000f'),
            ('^tlb-entries=.*$', 'tlb-entries=64'))):
        path = copy_run(work, run)
        edit_manifest(path, lambda old, p=pattern, o=other: re.sub(
            '(?m)' + p, o, old))
        status, stderr, _ = replay_status(work, path, f'other{number}')
        equal(status, 1, f'status with {other}')
        line = one_sentence(stderr, other)
        version = re.search('(?m)^tt-version=(.*)$', text).group(1)
        check(line.endswith(f'that recorded it, {version}'), line)
        run_tool(tool('tt'), 'info', path)


def test_nothing_recorded(work):
    """A recorder that ends before the VM ran leaves no directory behind; one
    that was killed leaves one that is refused in one sentence."""
    args = ['-S', *guest_args(work, *GUEST)]
    with recorder(work, args, name='quit', qmp=1) as vm:
        state = vm.qmp.cmd('query-tt')
        equal((state['mode'], state['live']), ('record', False), 'state')
        check('begun' in vm.qmp.error('tt-mark', name='m'), 'tt-mark')
        check('begun' in vm.qmp.hmp('info tt'), 'info tt')
        vm.qmp.cmd('quit')
        vm.wait(0)
        check('nothing was recorded' in vm.stderr, vm.stderr)
        check(not os.path.exists(vm.run), 'the directory is still there')
    with recorder(work, args, name='killed', qmp=1) as vm:
        vm.qmp.cmd('query-tt')
        vm.kill()
        status, stderr, _ = replay_status(work, vm.run, 'rep')
        equal(status, 1, 'status of the replay')
        line = one_sentence(stderr, 'replay')
        check('nothing was recorded' in line, line)
        said = run_tool(tool('tt'), 'info', vm.run, rc=1)[1]
        check('nothing was recorded' in one_sentence(said, 'tt info'), said)
    with recorder(work, [*guest_args(work, *ENDLESS), '-S'], name='runs',
                  qmp=1) as vm:
        vm.qmp.cmd('cont')
        wait_until(lambda: vm.qmp.cmd('query-tt')['live'], 'it has begun')
        vm.qmp.cmd('quit')
        vm.wait(0)


def refuse_record(work, directory, name, *words):
    args = guest_args(work, *GUEST)
    with Vm(work, [*args, '-tt', f'record,dir={directory}'], name=name,
            timeout=20) as vm:
        vm.wait(1)
        line = one_sentence(vm, name)
        check(any(word in line for word in words),
              f'{name}: the message names none of {words}: {line}')


def test_places_to_record(work):
    """A directory that is a file, cannot be made, holds other files or a run
    already is refused, and the run in it stays as it is."""
    run = recorded(work)
    before = read_log(run.dir)
    refuse_record(work, run.dir, 'occupied', 'already', 'holds', 'exists')
    check(read_log(run.dir) == before, 'the run that was there has changed')
    plain = os.path.join(work, 'plain')
    with open(plain, 'w', encoding='utf-8') as f:
        f.write('text')
    refuse_record(work, plain, 'file', 'directory')
    refuse_record(work, f'{plain}/run', 'below-file', 'plain')
    refuse_record(work, work, 'other-files', 'empty')
    refuse_record(work, f'{work}/none/at/all', 'no-parent', 'none')
    refuse_record(work, '/proc/tt-run', 'proc', '/proc/tt-run')


def test_unwritable_directory(work):
    """A directory without write permission is refused."""
    if os.geteuid() == 0:
        raise Skip('root may write everywhere')
    closed = os.path.join(work, 'closed')
    os.mkdir(closed, 0o500)
    refuse_record(work, f'{closed}/run', 'closed', 'closed')


def test_empty_directory_is_fine(work):
    """An empty directory is taken for the run; so is a fresh name."""
    path = os.path.join(work, 'rec.run')
    os.mkdir(path)
    args = guest_args(work, *GUEST)
    with Vm(work, [*args, '-tt', f'record,dir={path}'], name='rec') as vm:
        vm.wait(0)
    equal(replay_status(work, path, 'rep')[0], 0, 'status of the replay')


@limit(150)
def test_one_of_several_at_once(work):
    """Of several recorders that are told the same directory at the same moment, one
    gets it."""
    args = guest_args(work, *GUEST)
    for number in range(4):
        path = os.path.join(work, f'shared{number}')
        if number % 2:
            os.mkdir(path)
        with contextlib.ExitStack() as stack:
            vms = [stack.enter_context(
                Vm(work, [*args, '-tt', f'record,dir={path}'],
                   name=f'rec{number}-{n}')) for n in range(4)]
            status = [vm.wait() for vm in vms]
            equal(sorted(status), [0, 1, 1, 1], 'status of the recorders')
            for vm in vms:
                if vm is not vms[status.index(0)]:
                    one_sentence(vm, 'one that comes too late')
            serial = vms[status.index(0)].serial
        again = replay_status(work, path, f'rep{number}')
        equal((again[0], again[2]), (0, serial), 'the replay')


def test_default_directory(work):
    """Without dir= a fresh directory is made and named on stderr."""
    names = set()
    for number in range(2):
        with Vm(work, [*guest_args(work, *GUEST), '-tt', 'record'],
                name=f'rec{number}') as vm:
            vm.wait(0)
            made = {n for n in os.listdir(work) if n.startswith('tt-run-')}
            fresh = made - names
            equal(len(fresh), 1, f'new directories ({made})')
            name = fresh.pop()
            check(name in vm.stderr, f'{name} is not named in {vm.stderr}')
            names = made
        equal(replay_status(work, os.path.join(work, name), f'rep{number}')[0],
              0, 'status of the replay')


def mount_small(work, size, name='small'):
    if os.geteuid() != 0:
        raise Skip('a small file system needs root')
    place = os.path.join(work, name)
    os.mkdir(place)
    done = subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={size}',
                           'tmpfs', place], capture_output=True, text=True)
    if done.returncode:
        raise Skip(f'cannot mount a tmpfs: {done.stderr.strip()}')
    return place


def wait_recording_ends(vm, *words):
    """The recording ends by itself with a warning that names the reason;
    the VM goes on."""
    wait_until(lambda: 'the recording ends' in vm.stderr,
               'the recording ends by itself', 40)
    lines = [line for line in vm.stderr.splitlines()
             if 'the recording ends' in line]
    equal(len(lines), 1, f'warnings ({vm.stderr})')
    check(any(word in lines[0] for word in words),
          f'the warning names none of {words}: {lines[0]}')
    before = vm.cpu_seconds()
    wait_until(lambda: vm.cpu_seconds() > before + 0.2,
               'the VM goes on after the recording has ended')


@limit(90)
def test_full_disk(work):
    """With on-error=continue a disk that fills up ends the recording with one
    sentence; the VM goes on, and what was sealed before replays."""
    place = mount_small(work, '2m')
    try:
        args = guest_args(work, *ENDLESS)
        with Vm(work, [*args, '-tt', f'record,dir={place}/run,'
                       'on-error=continue'], name='rec',
                qmp=1) as vm:
            wait_recording_ends(vm, 'space', 'full')
            told = vm.qmp.cmd('query-tt')['end']
            vm.qmp.send('quit')
            vm.wait(0)
            serial = vm.serial
        info, _ = run_tool(tool('tt'), 'info', f'{place}/run', '--json')
        equal(told, json.loads(info)['end'], 'where it says that it ends')
        check(f'ends at position {told},' in vm.stderr, vm.stderr)
        check_graceful(replay_status(work, f'{place}/run', 'rep'),
                       'run of a full disk', (0,), serial)
    finally:
        subprocess.run(['umount', '-l', place], check=False)


def test_deleted_while_recorded(work):
    """A recording whose directory was deleted meanwhile does not say that it is there;
    where there is no current directory, none is made elsewhere."""
    with recorder(work, guest_args(work, *ENDLESS), qmp=1) as vm:
        vm.wait_serial('\n')
        shutil.rmtree(vm.run)
        vm.qmp.send('quit')
        vm.wait(0)
    check('is gone: it was deleted' in vm.stderr and
          'tt: recorded' not in vm.stderr, vm.stderr)
    lost = os.path.join(work, 'lost')
    os.mkdir(lost)
    with Vm(work, ['-c', 'cd "$0" && rmdir "$0" && exec "$@"', lost, qemu_binary(),
                   '-tt', 'record,dir=nowhere'], binary='sh', serial=False) as vm:
        vm.wait(1)
    one_sentence(vm, 'nowhere')
    check(not os.path.exists('/nowhere'), 'a run in the root directory')


def test_another_in_its_place(work):
    """A recorder whose directory was deleted leaves alone what is there now: one that
    never began, and one that keeps making files."""
    small = guest_args(work, *GUEST)
    path = os.path.join(work, 'shared')
    with Vm(work, ['-S', *small, '-tt', f'record,dir={path}'], name='idle',
            qmp=1) as idle:
        idle.qmp.cmd('query-tt')
        with Vm(work, [*small, '-tt', f'record,dir={path}'], name='refused') as vm:
            vm.wait(1)
            line = one_sentence(vm, 'refused')
            check('another process is recording' in line and 'delete' not in line, line)
        shutil.rmtree(path)
        with Vm(work, [*small, '-tt', f'record,dir={path}'], name='whole') as vm:
            vm.wait(0)
        idle.qmp.cmd('quit')
        idle.wait(0)
    run_tool(tool('tt'), 'check', path)
    equal(replay_status(work, path, 'rep')[0], 0, 'status of the replay')


@limit(150)
def test_moved_while_recorded(work):
    """A flight recorder whose directory is moved says so; another one in its place is
    not disturbed, and what was moved replays."""
    args = guest_args(work, 'torture', 'rounds=1000000 percent=30')
    options = ',last=1,max-size=3M,checkpoint-interval=0.1'
    with recorder(work, args, name='first', qmp=1, options=options,
                  timeout=90) as first:
        first.wait_serial('sum=')
        time.sleep(2)
        os.rename(first.run, first.run + '.moved')
        with Vm(work, [*args, '-tt', f'record,dir={first.run}{options}'], qmp=1,
                name='second', timeout=90) as second:
            wait_until(lambda: 'is no longer the run directory' in first.stderr, 'word')
            check('deleted or moved' in first.qmp.error('tt-save'), 'tt-save')
            second.wait_serial('sum=')
            time.sleep(4)
            for vm in (first, second):
                vm.qmp.send('quit')
                vm.wait(0)
    check('is gone' not in second.stderr and 'is gone' in first.stderr,
          f'{first.stderr}{second.stderr}')
    for path in (first.run, first.run + '.moved'):
        run_tool(tool('tt'), 'check', path)
        equal(replay_status(work, path, os.path.basename(path))[0], 0, path)


def test_short_of_memory(work):
    """A replay for which memory is short has not diverged."""
    run = record(work, [*guest_args(work, *GUEST), '-m', '1536'])

    def limited():
        resource.setrlimit(resource.RLIMIT_AS, (1900 << 20, 1900 << 20))

    done = subprocess.run(
        [qemu_binary(), '-display', 'none', '-serial', 'null', '-accel',
         'tcg,tb-size=512', '-tt', f'replay,dir={run.dir},at-end=exit'], text=True,
        capture_output=True, timeout=60, preexec_fn=limited)
    equal(done.returncode, 1, f'status ({done.stderr})')
    check('memory' in done.stderr and 'diverged' not in done.stderr, done.stderr)


def test_short_of_file_size(work):
    """Where files may have some bytes only (ulimit -f) a replay says that it shows no
    screen, and is exact; so is what tt verify does there."""
    run = recorded(work)

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

    replay = [qemu_binary(), '-display', 'none', '-serial', 'null', '-tt',
              f'replay,dir={run.dir},at-end=exit']
    verify = [tool('tt'), 'verify', run.dir, '--qemu', qemu_binary()]
    for argv in (replay, verify):
        done = subprocess.run(argv, text=True, capture_output=True, timeout=60,
                              preexec_fn=limited)
        equal(done.returncode, 0, f'status ({done.stdout}{done.stderr})')
        check('exact' in done.stdout + done.stderr, f'{done}')
        check(argv is verify or done.stderr.count('ulimit -f') == 1, done.stderr)


@limit(90)
def test_max_size(work):
    """max-size bounds the run; the VM goes on, and what was recorded until
    then replays as a whole run."""
    args = guest_args(work, *ENDLESS)
    with recorder(work, args, options=',max-size=4M', qmp=1) as vm:
        wait_recording_ends(vm, 'max-size')
        got = json.loads(run_tool(tool('tt'), 'check', '--json', vm.run)[0])
        check(not got['recording'], f'it is said to be recorded: {got}')
        vm.qmp.send('quit')
        vm.wait(0)
        serial = vm.serial
    size = os.path.getsize(os.path.join(vm.run, 'log'))
    check(0.95 < size / ((4 << 20) * 2 / 3) < 1.05, f'the log has {size} bytes')
    outcome = replay_status(work, vm.run, 'rep')
    check_graceful(outcome, 'bounded run', (0,), serial)
    check('cut off' not in outcome[1], f'it counts as torn: {outcome[1]}')


@limit(90)
def test_tt_tool_on_damage(work):
    """The tt tool says what is wrong with a damaged run: status 1, one
    sentence, and no crash; and 0 for a good run."""
    run = recorded(work)
    log = read_log(run.dir)
    tt = tool('tt')
    for command in ('info', 'log', 'stats', 'check'):
        run_tool(tt, command, run.dir)
    rng = seed()
    for number in range(30):
        path = copy_run(work, run)
        broken = bytearray(log)
        at = rng.randrange(segments(log)[-1])
        broken[at] ^= 1 << rng.randrange(8)
        write_log(path, broken)
        done = subprocess.run([tt, 'check', path], capture_output=True,
                              text=True, timeout=20)
        if done.returncode == 0 and 24 <= at < 40:
            continue
        equal(done.returncode, 1, f'tt check with byte {at} flipped')
        check(done.stderr.strip(), f'tt check says nothing (byte {at})')
    equal(subprocess.run([tt], capture_output=True, timeout=20).returncode,
          2, 'tt without a command')


def test_divergence_is_reported(work):
    """A replay that diverges stops there, says where, and stays usable."""
    run = record(work, guest_args(work, 'dmacode'))
    omit = ',x-omit=dma-invalidate'
    status = Vm(work, ['-tt', f'replay,dir={run.dir},at-end=exit{omit}',
                       '-display', 'none'], name='exits', timeout=30)
    with status as vm:
        vm.wait(3)
        lines = [line for line in vm.stderr.splitlines()
                 if 'tt: diverged at position ' in line]
        equal(len(lines), 1, f'lines about the divergence: {vm.stderr}')
    with stopped_replay(work, run, 'stays', options=omit) as vm:
        vm.qmp.cmd('cont')
        event = vm.qmp.event('TT_DIVERGED', 30)
        check(event['position'] > 0 and event['expected'] != event['seen'],
              f'TT_DIVERGED {event}')
        state = vm.qmp.cmd('query-tt')
        check(state['diverged'] and state['divergence'],
              f'query-tt tells no divergence: {state}')
        equal(vm.qmp.cmd('query-status')['status'], 'paused', 'status')
        check('EIP' in vm.qmp.hmp('info registers'), 'no registers')
        goto(vm, where='start')
        equal(digest(vm)[0], 0, 'position after going back to the start')
