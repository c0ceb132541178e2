# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs of other people: a replay needs no right but to read, and a hostile run does
nothing but end."""

import os
import pwd
import shutil
import stat
import subprocess

from guests import guest_args
from ttlib import (BUILD, SLOW, Skip, check, equal, limit, qemu_binary, read_bytes,
                   record, recorder, seed, short, tool, wait_until)

SANDBOX = ('on,obsolete=deny,elevateprivileges=deny,spawn=deny,'
           'resourcecontrol=deny')


def private_copy(work, run):
    """What everybody may read and nobody may write, out of the way of the work
    directory's own rights."""
    copy = os.path.join(work, 'shared.run')
    shutil.copytree(run, copy, ignore=shutil.ignore_patterns('disks'))
    for name in os.listdir(copy):
        os.chmod(os.path.join(copy, name), 0o444)
    os.chmod(copy, 0o555)
    os.chmod(work, 0o755)
    return copy


def as_nobody():
    if os.geteuid():
        return None
    user = pwd.getpwnam('nobody')

    def drop():
        os.setgroups([])
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
    return drop


def replayed(run, how='at-end=exit'):
    done = subprocess.run([qemu_binary(), '-sandbox', SANDBOX, '-tt',
                           f'replay,dir={run},{how}', '-display', 'none',
                           '-serial', 'stdio'], cwd='/',
                          stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=60 * SLOW, preexec_fn=as_nobody())
    return done.returncode, done.stdout, done.stderr.decode(errors='replace')


def may_be_run():
    """The binary must be where nobody may come by."""
    path = qemu_binary()
    while path != '/':
        path = os.path.dirname(path)
        if not os.stat(path).st_mode & stat.S_IXOTH:
            raise Skip(f'others may not enter {path}')


def tree(path):
    return {name: read_bytes(os.path.join(path, name))
            for name in os.listdir(path)}


@limit(60)
def test_without_rights(work):
    """A replay in QEMU's sandbox, by a user that may only read the run, is
    exact and changes nothing."""
    may_be_run()
    run = record(work, guest_args(work, 'dmacode', 'rounds=300'),
                 options=',checkpoint-interval=0.02')
    copy = private_copy(work, run.dir)
    before = tree(copy)
    status, console, said = replayed(copy)
    equal(status, 0, f'status ({said})')
    check('replay exact' in said, said)
    equal(console, run.serial, "console")
    equal(tree(copy), before, 'the run')
    status, _, said = replayed(copy, 'verify=all')
    equal(status, 0, f'status of verify ({said})')


def checked(run):
    """What tt check says to nobody."""
    done = subprocess.run([tool('tt'), 'check', run], cwd='/', text=True,
                          capture_output=True, timeout=60 * SLOW,
                          preexec_fn=as_nobody())
    return done.returncode, done.stderr


@limit(60)
def test_locked_runs(work):
    """Where a run may not be entered or listed this is said, not that it is not
    there."""
    may_be_run()
    if os.geteuid():
        raise Skip('only root can make what others may not see')
    os.chmod(work, 0o755)
    with recorder(work, guest_args(work, 'torture', 'rounds=100000000'), qmp=1,
                  options=',last=1s,checkpoint-interval=0.12') as vm:
        vm.wait_serial('\n')
        wait_until(lambda: vm.qmp.cmd('query-tt')['events'] > 1000, 'events')
        vm.qmp.send('quit')
        vm.wait(0)
    for name in os.listdir(vm.run):
        os.chmod(os.path.join(vm.run, name), 0o444)
    os.chmod(vm.run, 0o755)
    equal(checked(vm.run)[0], 0, 'tt check by nobody')
    for mode, words in ((0o711, 'cannot list'), (0o744, "manifest'")):
        os.chmod(vm.run, mode)
        status, said = checked(vm.run)
        check(status == 1 and words in said and 'Permission denied' in said and
              said.count('\n') == 1, f'{mode:o}: {said}')
        status, _, said = replayed(vm.run)
        check(status == 1 and words in said and 'Permission denied' in said,
              f'{mode:o}: {said}')
    locked = os.path.join(work, 'locked')
    os.mkdir(locked, 0o700)
    os.rename(vm.run, os.path.join(locked, 'run'))
    status, said = checked(os.path.join(locked, 'run'))
    check(status == 1 and 'cannot access the run' in said and
          'Permission denied' in said, said)


@limit(60)
def test_directory_that_cannot_be_read(work):
    """Without reading it a recorder cannot lock it: two might record into it."""
    may_be_run()
    if os.geteuid():
        raise Skip('only root can be somebody else')
    os.chmod(work, 0o755)
    place = os.path.join(work, 'dark')
    os.mkdir(place)
    os.chown(place, pwd.getpwnam('nobody').pw_uid, -1)
    os.chmod(place, 0o300)
    done = subprocess.run([qemu_binary(), '-tt', f'record,dir={place}', '-display',
                           'none', *guest_args(work, 'torture', 'rounds=1')], cwd='/',
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60 * SLOW, preexec_fn=as_nobody())
    equal(done.returncode, 1, f'status ({done.stderr})')
    check('cannot open the directory' in done.stderr and
          'Permission denied: make it readable' in done.stderr and
          done.stderr.count('\n') == 1, done.stderr)
    equal(os.listdir(place), [], 'what was left there')


@limit(120)
def test_hostile_runs(work):
    """Random damage of any file: the replay ends by itself, with a status of
    ours, and nothing appears beside the run."""
    may_be_run()
    run = record(work, guest_args(work, 'dmacode', 'rounds=100'),
                 options=',checkpoint-interval=0.02')
    rng = seed()
    place = os.path.join(work, 'h')
    os.chmod(work, 0o755)
    for turn in range(24):
        shutil.copytree(run.dir, place, ignore=shutil.ignore_patterns('disks'))
        name = rng.choice(sorted(os.listdir(place)))
        path = os.path.join(place, name)
        data = bytearray(read_bytes(path))
        for _ in range(rng.choice((1, 3, 40))):
            at = rng.randrange(len(data))
            end = min(len(data), at + rng.choice((1, 4, 8)))
            data[at:end] = rng.choice((b'\0', b'\xff', b'\x7f')) * (end - at)
        with open(path, 'wb') as out:
            out.write(data)
        for file in os.listdir(place):
            os.chmod(os.path.join(place, file), 0o444)
        os.chmod(place, 0o555)
        status, _, said = replayed(place)
        check(status in (0, 1, 3), f'turn {turn}, {name}: status {status}: '
              f'{short(said)}')
        check(status == 0 or said.strip(), f'turn {turn}: nothing is said')
        os.chmod(place, 0o755)
        shutil.rmtree(place)


def forger(name):
    path = os.path.join(BUILD, 'cores', 'tests', 'tool', name)
    if not os.path.exists(path):
        raise Skip('the cores are not built: scripts/test cores')
    return path


def ends_by_itself(run, what, how):
    status, _, said = replayed(run, how)
    check(status in (0, 1, 3), f'{what}: status {status}: {short(said)}')
    check(all(line.isprintable() for line in said.splitlines()),
          f'{what}: control characters: {said!r}')


@limit(120)
def test_forged_runs(work):
    """Logs and checkpoints that make no sense, with right checksums: a replay
    says so, or goes another way, and ends by itself."""
    may_be_run()
    run = record(work, guest_args(work, 'dmacode', 'rounds=20'),
                 options=',checkpoint-interval=0.02')
    log, points = forger('tt-forge'), forger('tt-forge-points')
    first = seed().randrange(1 << 30)
    os.chmod(work, 0o755)
    for turn in range(16):
        place = os.path.join(work, f'f{turn}')
        shutil.copytree(run.dir, place)
        name = ('log', 'log', 'log', 'checkpoints')[turn % 4]
        os.unlink(os.path.join(place, name))
        forge = [log, f'{run.dir}/log', f'{place}/log', str(first + turn), '3'] \
            if name == 'log' else [points, run.dir, f'{place}/checkpoints',
                                   str(first + turn)]
        subprocess.run(forge, check=True, stdout=subprocess.DEVNULL)
        for file in os.listdir(place):
            os.chmod(os.path.join(place, file), 0o444)
        os.chmod(place, 0o555)
        ends_by_itself(place, f'{name}, seed {first + turn}', 'at-end=exit'
                       if name == 'log' else 'verify=all')
        os.chmod(place, 0o755)
        shutil.rmtree(place)
