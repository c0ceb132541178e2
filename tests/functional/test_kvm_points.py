# SPDX-License-Identifier: GPL-2.0-or-later
"""The points from which the conversion of a run of KVM's goes on after it was broken off,
and the names that its files get in the end."""

import contextlib
import json
import os
import shutil
import signal
import struct
import subprocess
import time

from test_kvm_convert import (CONSOLE, PAUSES, check_kept, check_whole, fresh, reference,
                              replayed, result)
from test_hostile import events_of, forge
from ttlib import (REPO, SLOW, check, equal, limit, qemu_binary, read_bytes, run_tool,
                   seed, tool, tt, wait_until)

POINTS = 0.05                   # seconds between two, in place of 25
NEW = ('log.new', 'pages.new', 'checkpoints.new', 'point.new')
PAGES = 8 * (16 + 20 + 3)       # the number of them in a landmark
POINT_EXITS_POS = 8 + 6 * 8     # the seventh number behind the magic


def converting(run, **env):
    """The process that converts, with points to go on from."""
    return subprocess.Popen(
        [qemu_binary(), '-tt', f'convert,dir={run},checkpoint-interval={POINTS}',
         '-display', 'none', '-serial', 'null', '-monitor', 'none'],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env={**os.environ, **env})


def behind_a_point(run, p, before):
    """It has made another point, or is done."""
    path = f'{run}/point.new'
    wait_until(lambda: p.poll() is not None or
               (os.path.exists(path) and read_bytes(path) != before), 'a point')


def cut_behind_a_point(run, rng, how=signal.SIGKILL):
    """It has a point more than before, and some work behind it, but is not done. What it
    said."""
    before, kept = read_bytes(f'{run}/point.new'), f'{run}.kept'
    shutil.copytree(run, kept)
    for pause in PAUSES:
        with converting(run) as p:
            behind_a_point(run, p, before)
            time.sleep(rng.random() * pause)
            with contextlib.suppress(ProcessLookupError):
                p.send_signal(how)
            said = p.communicate(timeout=60 * SLOW)[1].decode(errors='replace')
        if 'exits' not in os.listdir(run):
            break
        shutil.rmtree(run)
        shutil.copytree(kept, run)
    shutil.rmtree(kept)
    check(read_bytes(f'{run}/point.new') != before, f'no cut behind a new point: {said}')
    return said


def part_done(run):
    """How far its last point is, of its log of exits."""
    at = struct.unpack_from('<Q', read_bytes(f'{run}/point.new'), POINT_EXITS_POS)[0]
    return at / json.loads(tt('info', run, '--json').stdout)['end']


def ended(run):
    """Converted to the end. What was said."""
    with converting(run) as p:
        said = p.communicate(timeout=60 * SLOW)[1].decode(errors='replace')
    equal(p.returncode, 0, f'status: {said}')
    return said


@limit(60)
def test_goes_on(work):
    """Killed or told to end again and again, the conversion goes on from its last point;
    the result is the same, and the points are checkpoints of the run."""
    rng = seed()
    _, wanted = reference(work)
    run, log = fresh(work, 'run')
    turns = 0
    while turns < 2 or (turns < 5 and part_done(run) < 0.5):
        said = cut_behind_a_point(run, rng, rng.choice((signal.SIGKILL, signal.SIGINT)))
        check(bool(turns) == ('continuing an interrupted' in said), said)
        turns += 1
    check('continuing an interrupted' in ended(run), 'it began anew')
    check_whole(run, wanted, 'cut again and again')
    check_kept(run, log, 'cut again and again')
    equal(sorted(os.listdir(run)), ['checkpoints', 'exits', 'log', 'manifest', 'pages'],
          'its files')
    run_tool(tool('tt'), 'check', run)
    run_tool(tool('tt'), 'verify', run, '--qemu', qemu_binary(), timeout=60)


def in_two_events(events):
    """Half of the pages of each landmark stand in an event before it, as the first ones of
    more than 3,000 do."""
    moved, out = 0, []
    for e in events:
        e = {**e, 'position': e['position'] + moved}
        data = bytes.fromhex(e['data']) if e['kind'] == 'landmark' else b''
        n = struct.unpack_from('<I', data, PAGES)[0] if data else 0
        if n:
            at = PAGES + 4 + 20 * ((n + 1) // 2)
            out.append({**e, 'kind': 'landmark-pages', 'data': data[PAGES + 4:at].hex()})
            moved += 1
            e = {**e, 'position': e['position'] + 1,
                 'data': (data[:PAGES] + struct.pack('<I', n // 2) + data[at:]).hex()}
        out.append(e)
    return out


@limit(90)
def test_pages_in_two_events(work):
    """Landmarks with pages in events of their own are found all the same, also if the
    conversion was cut between these and the place."""
    rng = seed()
    plain, _ = fresh(work, 'plain')
    events = in_two_events(events_of(plain))
    run = forge(plain, os.path.join(work, 'run'), events)
    at = [e['kind'] for e in events].index('landmark-pages') + 1
    other = forge(plain, os.path.join(work, 'other'), events[:at] + events[at + 1:])
    said = cut_behind_a_point(run, rng)
    said = ended(run)
    check('continuing an interrupted' in said, said)
    ended(plain)
    equal([e for e in events_of(run) if e['kind'] != 'time'],
          [e for e in events_of(plain) if e['kind'] != 'time'], 'events')
    equal(replayed(run)[:2], (0, CONSOLE), 'its replay')
    status, _, said = replayed(other)
    check(status == 1 and 'pages of a recorded place are damaged' in said, said)


@limit(60)
def test_killed_between_two_files(work):
    """The checkpoint was stored, and the point that names it was not: the conversion goes
    on from the one before, and stores it again."""
    rng = seed()
    _, wanted = reference(work)
    run, _ = fresh(work, 'run')
    cut_behind_a_point(run, rng)
    before = read_bytes(f'{run}/point.new')
    cut_behind_a_point(run, rng)
    with open(f'{run}/point.new', 'wb') as out:
        out.write(before)
    said = ended(run)
    check('continuing an interrupted' in said and 'beginning' not in said, said)
    equal(result(run), wanted, 'the result')
    check('checkpoints' in os.listdir(run), 'no checkpoints')


def damage_of_point(rng, run):
    """Of one of the files from which it would go on."""
    name = rng.choice(NEW)
    data = bytearray(read_bytes(f'{run}/{name}'))
    how = rng.choice(('flip', 'cut', 'gone', 'old'))
    if how == 'flip':
        for _ in range(rng.choice((1, 40))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif how == 'cut':
        data = data[:rng.randrange(len(data))]
    with open(f'{run}/{name}', 'wb') as out:
        out.write(b'' if how == 'old' else data)
    if how == 'gone':
        os.unlink(f'{run}/{name}')
    return f'{name}, {how}'


@limit(120)
def test_damaged_points(work):
    """What was left of an earlier conversion is damaged: the next one begins anew or
    goes on, and the result is never another one."""
    rng = seed()
    _, wanted = reference(work)
    cut, _ = fresh(work, 'cut')
    cut_behind_a_point(cut, rng)
    check('point.new' in os.listdir(cut), 'no point')
    for turn in range(8):
        run = os.path.join(work, f'p{turn}')
        shutil.copytree(cut, run)
        what = f'turn {turn}: {damage_of_point(rng, run)}'
        status, console, said = replayed(run)
        equal((status, console), (0, CONSOLE), f'{what}: {said}')
        equal(result(run), wanted, what)
        shutil.rmtree(run)


def full_behind_a_point(work, run, name, **more):
    """A conversion that has no space in its file of that name, from its first point on: its
    status, and what it says."""
    library = os.path.join(work, 'full_disk.so')
    run_tool('gcc', '-shared', '-fPIC', '-o', library,
             os.path.join(REPO, 'tests/functional/full_disk.c'))
    with converting(run, LD_PRELOAD=library, TT_NO_SPACE=f'{run}/point.new',
                    TT_NO_SPACE_IN=name, **more) as p:
        said = p.communicate(timeout=60 * SLOW)[1].decode(errors='replace')
        return p.returncode, said


@limit(60)
def test_full_behind_a_point(work):
    """The disk is full when there are points: they stay, this is said once, and the
    conversion ends; the next one goes on from the last of them."""
    _, wanted = reference(work)
    run, log = fresh(work, 'run')
    status, said = full_behind_a_point(work, run, 'log.new')
    equal(status, 76, f'status: {said}')
    equal(said.count('No space left'), 1, f'said of the log: {said}')
    check('continues from the last point' in said, said)
    check('continuing an interrupted' in ended(run), 'it began anew')
    equal(result(run), wanted, 'the result')
    check_kept(run, log, 'full')


@limit(60)
def test_full_for_a_while(work):
    """When only points find no room, the conversion goes on without them, says so once,
    and makes more when there is room again."""
    _, wanted = reference(work)
    run, _ = fresh(work, 'run')
    status, said = full_behind_a_point(work, run, 'pages.new', TT_NO_SPACE_TIMES='3')
    equal(status, 0, f'status: {said}')
    check('until there is room' in said, said)
    equal(said.count('No space left'), 1, f'said of a point: {said}')
    check_whole(run, wanted, 'without room for points')
    run_tool(tool('tt'), 'check', run)
    points = json.loads(tt('info', run, '--json').stdout)['checkpoints']
    check(points >= 3, f'{points} checkpoints: one before, one that waited, more')


@limit(60)
def test_names_half_changed(work):
    """Killed between two of the names that change in the end, with points and without."""
    manifest = read_bytes(os.path.join(fresh(work, 'old')[0], 'manifest'))
    bare, wanted = reference(work)
    with_points = fresh(work, 'points')[0]
    ended(with_points)
    check('checkpoints' in os.listdir(with_points), 'no point was made')
    for run, names in ((bare, ('log',)), (with_points, ('checkpoints', 'pages', 'log'))):
        for n in range(len(names) + 1):     # so many have their old names
            for name in names[:n]:
                os.rename(f'{run}/{name}', f'{run}/{name}.new')
            with open(f'{run}/manifest', 'wb') as out:
                out.write(manifest)
            if n and run == with_points:
                with open(f'{run}/point.new', 'wb') as out:
                    out.write(b'a point')
            check_whole(run, wanted, f'{n} old names')
            equal(sorted(os.listdir(run)), sorted([*names, 'exits', 'manifest']),
                  'its files')
    run_tool(tool('tt'), 'check', with_points)
    run_tool(tool('tt'), 'verify', with_points, '--qemu', qemu_binary(), timeout=60)
