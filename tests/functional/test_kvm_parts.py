# SPDX-License-Identifier: GPL-2.0-or-later
"""A run of KVM's with checkpoints: they are compared with what the conversion comes to,
and the intervals between them are converted by several processes. The run was recorded
once (tests/golden/runs), with checkpoint-interval=0.2."""

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time

from test_hostile import events_of, forge
from ttlib import (REPO, SLOW, check, equal, goto_exact, limit, qemu_binary, read_bytes,
                   run_tool, seed, short, stopped_replay, tool, wait_until)

PACK = os.path.join(REPO, 'tests', 'golden', 'runs', 'kvm-checkpoints.ttrun')
PARTS = 8                               # checkpoints, of which one is the start
EACH = 4                                # so many intervals a process does, if one is free


def fresh(work, name):
    run = os.path.join(work, name)
    shutil.rmtree(run, ignore_errors=True)
    run_tool(tool('tt'), 'unpack', PACK, run)
    return run


def command(run, options=''):
    return [qemu_binary(), '-tt', f'replay,dir={run},at-end=exit{options}', '-display',
            'none', '-serial', 'stdio']


def replayed(run, options='', **env):
    done = subprocess.run(command(run, options), stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=60 * SLOW,
                          env={**os.environ, **env})
    return done.returncode, done.stdout, done.stderr.decode(errors='replace')


def contents(run):
    """Digests of all its files."""
    return {name: hashlib.sha256(read_bytes(os.path.join(run, name))).hexdigest()
            for name in sorted(os.listdir(run))}


def part(run, which):
    """The process that converts a part, or puts them together; what it said."""
    done = subprocess.run(
        [qemu_binary(), '-tt', f'convert,dir={run},part={which}', '-display', 'none',
         '-serial', 'null', '-monitor', 'none'], stdin=subprocess.DEVNULL,
        capture_output=True, timeout=60 * SLOW)
    equal(done.returncode, 0, f'part {which}: {done.stderr.decode(errors="replace")}')


def in_one(work):
    """The whole pass in one process: what all others have to be equal to."""
    run = fresh(work, 'one')
    part(run, '0-')
    part(run, 'join-1')
    return contents(run)


@limit(60)
def test_equal(work):
    """Converted in parts, by one process or two at a time, in any order, and in one
    process: all files are equal. The run replays exactly, also from its checkpoints."""
    wanted = in_one(work)
    equal(sorted(wanted), ['checkpoints', 'exits', 'log', 'manifest', 'pages'], 'files')
    for jobs in (1, 2):
        run = fresh(work, f'jobs{jobs}')
        status, _, said = replayed(run, f',convert-jobs={jobs}')
        equal(status, 0, said)
        check(f'{PARTS} of {PARTS} intervals' in said and 'replay exact' in said, said)
        check(f'{PARTS - 1} checkpoints compared' in said, said)
        equal(contents(run), wanted, f'{jobs} at a time')
    run = fresh(work, 'backwards')
    for i in reversed(range(PARTS)):
        part(run, f'{i}-{i + 1}')
    part(run, 'join-1')
    equal(contents(run), wanted, 'backwards')
    info = json.loads(run_tool(tool('tt'), 'info', run, '--json')[0])
    equal(info['checkpoints'], PARTS - 1, 'checkpoints of the converted run')
    run_tool(tool('tt'), 'check', run)
    run_tool(tool('tt'), 'verify', run, '--qemu', qemu_binary(), timeout=60)
    travelled(work, run)


def travelled(work, run):
    """To its checkpoints and beside them: the same state from wherever one comes."""
    with stopped_replay(work, run) as vm:
        digests = {}
        for p in vm.qmp.cmd('query-tt-checkpoints'):
            for at in (p['position'] + n for n in (-1, 0, 1) if p['position']):
                goto_exact(vm, at)
                digests[at] = vm.qmp.cmd('query-tt-digest', 60)
        for at in sorted(digests, reverse=True):
            goto_exact(vm, at)
            equal(vm.qmp.cmd('query-tt-digest', 60), digests[at], f'digest at {at}')


def with_other_byte(run):
    """Its events, with another byte in a page of RAM that the guest never looks at."""
    events = events_of(run)
    for e in events:
        if e['kind'] == 'ram' and e['nested'] and e['position'] == 0:
            last = e
    data = bytearray.fromhex(last['data'])
    data[-1] ^= 0xff
    return [e if e is not last else {**e, 'data': data.hex()} for e in events]


@limit(60)
def test_other_ram(work):
    """RAM that differs where no landmark looks is found at the next checkpoint."""
    run = fresh(work, 'run')
    other = forge(run, os.path.join(work, 'other'), with_other_byte(run))
    for name in ('pages', 'checkpoints'):
        shutil.copy(f'{run}/{name}', other)
    status, _, said = replayed(other)
    equal(status, 1, f'status: {said}')
    check('RAM differs from the checkpoint that was recorded here, in 1 pages' in said,
          short(said, 600))
    check('exits' not in os.listdir(other), 'it was converted')


@contextlib.contextmanager
def started(run):
    """A replay in its own session, and what it has begun ends with it."""
    with open(f'{run}.said', 'ab') as said:
        p = subprocess.Popen(command(run, ',convert-jobs=2'), stdin=subprocess.DEVNULL,
                             stderr=said, stdout=subprocess.DEVNULL,
                             start_new_session=True)
    try:
        yield p
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(p.pid, signal.SIGKILL)
        p.wait()
        wait_until(lambda: is_gone(p.pid), 'its children have ended')


def is_gone(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def finished(run):
    """Parts that are there, and when each was finished."""
    found = {}
    for name in os.listdir(run):
        if name.endswith('.done'):
            with contextlib.suppress(FileNotFoundError):
                found[name] = os.stat(os.path.join(run, name)).st_mtime_ns
    return found


@limit(60)
def test_killed(work):
    """Killed again and again, the pass does no part twice, and the result is the same."""
    rng = seed()
    wanted = in_one(work)
    run = fresh(work, 'run')
    before = {}
    for turn in range(6):
        with started(run) as p:
            wait_until(lambda: p.poll() is not None or
                       len(finished(run)) > len(before), 'a part')
            time.sleep(rng.random() * 0.2)
        if 'exits' in os.listdir(run):  # it was done before it was killed
            if before:
                break
            run = fresh(work, 'run')
            continue
        kept = finished(run)
        equal({n: t for n, t in kept.items() if n in before}, before,
              f'turn {turn}: parts that were done')
        before = kept
    check(before, 'it was done before it was killed')
    status, _, said = replayed(run)
    equal(status, 0, said)
    equal(contents(run), wanted, 'the result')


@limit(60)
def test_damaged_parts(work):
    """What is left of a part is damaged: it is made again, and no other."""
    rng = seed()
    whole = fresh(work, 'whole')
    for i in range(PARTS):
        part(whole, f'{i}-{i + 1}')
    for turn in range(2):
        run = os.path.join(work, f'd{turn}')
        shutil.copytree(whole, run)
        name = f'part-{rng.randrange(PARTS)}.{("new", "done")[turn % 2]}'
        data = bytearray(read_bytes(f'{run}/{name}'))
        if rng.random() < 0.5:
            data = data[:rng.randrange(len(data))]
        else:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        with open(f'{run}/{name}', 'wb') as out:
            out.write(data)
        before = finished(run)
        status, _, said = replayed(run)
        equal(status, 0, f'turn {turn}, {name}: {said}')
        check('replay exact' in said and 'converted in one' not in said, said)
        equal(said.count(' intervals'), 1, f'parts that were made again: {said}')
        check(len(before) == PARTS, before)
        shutil.rmtree(run)


@limit(60)
def test_full_disk(work):
    """There is no room for a part, then none to put the parts together: the replay says so
    and ends, what is done stays, and with room the result is the same."""
    wanted = in_one(work)
    run = fresh(work, 'run')
    library, flag = os.path.join(work, 'full_disk.so'), os.path.join(work, 'full')
    run_tool('gcc', '-shared', '-fPIC', '-o', library,
             os.path.join(REPO, 'tests/functional/full_disk.c'))
    with open(flag, 'wb'):
        pass
    kept = 0
    for name in (f'part-{EACH}.new', 'log.new'):
        status, _, said = replayed(run, ',convert-jobs=1', LD_PRELOAD=library,
                                   TT_NO_SPACE=flag, TT_NO_SPACE_IN=name)
        equal(status, 1, f'{name}: {said}')
        check('No space left' in said and 'converted in one' not in said, said)
        check(len(finished(run)) > kept, f'{name}: parts {finished(run)}')
        kept = len(finished(run))
    equal(kept, PARTS // EACH, 'parts that are done')
    status, _, said = replayed(run)
    equal((status, said.count(' intervals')), (0, 0), said)
    equal(contents(run), wanted, 'with room')
