# SPDX-License-Identifier: GPL-2.0-or-later
"""Checkpoints that the recorder made serve each replay, and only serve."""

import hashlib
import os
import random
import shutil
import subprocess
import threading
import time

from guests import guest_args, linux_args, linux_disk
from test_robust import (ENDLESS, check_graceful, mount_small, replay_status,
                         wait_recording_ends)
from ttlib import (check, check_exact, digest, digest_at, end_of, equal, goto,
                   REPO, limit, one_sentence, read_bytes, record, record_in_parts,
                   recorder, run_tool, seed, stopped_replay, tool, tt, wait_until, Vm)

FILES = ('pages', 'checkpoints')
OFTEN = ',checkpoint-interval=0.3'
FENCE = 1 << 23


def stored(vm):
    return [c for c in vm.qmp.cmd('query-tt-checkpoints') if c['stored']]


def sums(run):
    return {name: hashlib.sha256(read_bytes(os.path.join(run, name)))
            .hexdigest() for name in os.listdir(run)
            if name not in ('marks', 'disks')}


def copy_of(run, to, without=()):
    """A copy of a run directory in which some files are left out."""
    os.mkdir(to)
    for name in os.listdir(run):
        if name == 'disks' and name not in without:
            run_tool('cp', '-r', '--sparse=always', os.path.join(run, name), to)
        elif name not in without:
            shutil.copy(os.path.join(run, name), to)
    return to


def digests_without_store(work, run, positions, name):
    bare = copy_of(run, os.path.join(work, f'{name}.run'), FILES)
    found = {}
    with stopped_replay(work, bare, name, timeout=300) as vm:
        equal(stored(vm), [], 'stored checkpoints of a run without them')
        for position in sorted(positions):
            found[position] = digest_at(vm, position, 200)
        goto(vm, 200, where='end')
        found['end'] = digest(vm)
    return found


def linux_run(work, **kw):
    return record(work, linux_args('vda,procs', 'n=60') + linux_disk(work),
                  options=OFTEN, timeout=100, **kw)


def random_positions(run_end, count):
    rng = seed()
    return [rng.randrange(run_end + 1) for _ in range(count)]


@limit(120)
def test_fences(work):
    """What stands at a fence is one state: that of a checkpoint, of the recorder's
    or the replay's, and of a replay that comes by. The fetch of what follows
    belongs to it."""
    run = record(work, guest_args(work, 'codebits', 'rounds=6000'),
                 options=',checkpoint-interval=0.05', timeout=60)
    with stopped_replay(work, run.dir, timeout=100) as vm:
        end = end_of(vm)
        check(end // FENCE > 30, f'{end // FENCE} fences')
        goto(vm, 60, where='end')
        places = [c['position'] for c in stored(vm)
                  if c['position'] and c['position'] % FENCE == 0][:60]
        check(len(places) > 4, f'{len(places)} checkpoints at fences')
        restored = {p: digest_at(vm, p) for p in reversed(places)}
    straight = digests_without_store(work, run.dir, places, 'bare')
    for place, seen in restored.items():
        equal(seen, straight[place], f'digest at the fence {place}')


@limit(240)
def test_serves_replays(work):
    """A fresh replay goes to any position from what the recorder stored: the
    digests are those of a replay without it, and the run is not changed."""
    run = linux_run(work)
    before = sums(run.dir)
    with stopped_replay(work, run, 'cold', timeout=120) as vm:
        points = stored(vm)
        check(len(points) >= 4, f'{len(points)} checkpoints were stored')
        positions = random_positions(end_of(vm), 20)
        positions += [c['position'] for c in points[1:]]
        wanted = digests_without_store(work, run.dir, positions, 'bare')
        goto(vm, where='end')
        equal(digest(vm), wanted['end'], 'digest at the end, from a checkpoint')
        for position in positions:
            equal(digest_at(vm, position), wanted[position],
                  f'digest at {position}')
        victim = points[len(points) // 2]
        vm.qmp.cmd('tt-checkpoint-delete', id=victim['id'])
        for position in positions[-6:]:
            equal(digest_at(vm, position), wanted[position],
                  f'digest at {position} after a delete')
    equal(sums(run.dir), before, 'the files of the run')
    with stopped_replay(work, run, 'again') as vm:
        equal(len(stored(vm)), len(points), 'checkpoints of the next replay')
    check_exact(work, run, timeout=100)


@limit(180)
def test_killed(work):
    """A recorder that is killed leaves checkpoints that can be used, up to
    where the log was sealed."""
    args = linux_args('sha,hold')
    with recorder(work, args, options=OFTEN, qmp=1, timeout=100) as vm:
        vm.wait_serial('TT-GUEST-READY', 100)
        wait_until(lambda: len(stored(vm)) > 5, 'checkpoints', 60)
        time.sleep(random.Random().random())
        vm.kill()
    with stopped_replay(work, vm.run, 'cold', timeout=100) as rep:
        end = end_of(rep)
        points = stored(rep)
        check(len(points) >= 3, f'{len(points)} checkpoints were stored')
        check(all(c['position'] <= end for c in points), 'beyond the log')
        positions = random_positions(end, 6) + [points[-1]['position']]
        wanted = digests_without_store(work, vm.run, positions, 'bare')
        for position in positions:
            equal(digest_at(rep, position), wanted[position],
                  f'digest at {position}')


def flip(path, rng):
    data = bytearray(read_bytes(path))
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    with open(path, 'wb') as f:
        f.write(data)


def cut(path, rng):
    os.truncate(path, rng.randrange(os.path.getsize(path)))


def replace(path, _):
    with open(path, 'wb') as f:
        f.write(b'nothing that anybody wrote' * 100)


@limit(240)
def test_damaged(work):
    """Damage of the stored checkpoints costs time only: a replay uses what is
    whole, or makes its own, and is exact."""
    with recorder(work, guest_args(work, 'torture', 'rounds=100000'), qmp=1,
                  options=',checkpoint-interval=0.02') as vm:
        wait_until(lambda: len(stored(vm)) >= 6, 'checkpoints', 60)
        vm.qmp.send('quit')
        vm.wait(0)
    run, rng = vm.run, seed()
    with stopped_replay(work, run, 'whole') as vm:
        check(len(stored(vm)) >= 3, f'{len(stored(vm))} were stored')
        positions = random_positions(end_of(vm), 3)
    wanted = digests_without_store(work, run, positions, 'bare')
    for turn in range(8):
        harm = (flip, flip, cut, replace)[turn % 4]
        name = FILES[turn % 2 if turn % 4 else turn // 4 % 2]
        copy = copy_of(run, os.path.join(work, f'harmed{turn}.run'))
        harm(os.path.join(copy, name), rng)
        with stopped_replay(work, copy, f'harmed{turn}') as vm:
            for position in positions:
                equal(digest_at(vm, position), wanted[position],
                      f'{harm.__name__} of {name}: digest at {position}')
            goto(vm, where='end')
            equal(digest(vm), wanted['end'], 'digest at the end')
    with stopped_replay(work, copy_of(run, os.path.join(work, 'half.run'),
                                      ['pages']), 'half') as vm:
        equal(stored(vm), [], 'checkpoints without their pages')
        goto(vm, where='end')
        equal(digest(vm), wanted['end'], 'digest at the end')


@limit(120)
def test_damaged_ahead(work):
    """What lies between here and there turns out to be damaged: the movement goes on
    from where it stands, as if it had not looked."""
    run = record_in_parts(work, guest_args(work, 'torture', 'rounds=6'), least=3)
    with stopped_replay(work, run, 'whole') as vm:
        places = [c['position'] for c in stored(vm)]
    check(len(places) > 2, f'{len(places)} were stored')
    here = places[1] - FENCE // 3
    wanted = digests_without_store(work, run, [here], 'bare')
    with stopped_replay(work, run, 'damaged') as vm:
        equal(digest_at(vm, here), wanted[here], f'digest at {here}')
        path = os.path.join(run, 'pages')
        size = os.path.getsize(path)
        with open(path, 'r+b') as f:
            f.seek(64)
            f.write(bytes(size - 64))
        goto(vm, where='end')
        equal(digest(vm), wanted['end'], 'digest at the end')
    check('cannot be used' in vm.stderr, vm.stderr)


def spoil_first_group(path):
    """Its table, after two heads, no longer has the checksum that it should."""
    data = bytearray(read_bytes(path))
    at = int.from_bytes(data[8:12], 'little')
    at += int.from_bytes(data[at + 8:at + 12], 'little')
    data[at] ^= 1
    with open(path, 'wb') as f:
        f.write(data)


def check_lost(work, run, name):
    """Without one of its two files the stored checkpoints are lost, and everybody says so."""
    why = f"checkpoints are lost, as '{run}/{name}' is missing"
    os.unlink(os.path.join(run, name))
    done = tt('info', run, rc=1)
    check('cannot be used: a replay makes its own' in done.stdout and why in done.stderr,
          f'{done}')
    said = one_sentence(tt('check', run, rc=1).stderr, name)
    check(why in said and 'takes it longer to travel' in said, said)
    with stopped_replay(work, run, f'no-{name}') as vm:
        goto(vm, position=5)
    check('makes its own checkpoints' in vm.stderr and why in vm.stderr, vm.stderr)


@limit(120)
def test_damaged_start(work):
    """The start is what all movements backwards end with. Where it is damaged the
    replay makes its own checkpoints; where that comes to light too late they end
    and say so, and the rest can be gone about in."""
    run = record(work, guest_args(work, 'torture', 'rounds=2'),
                 options=',checkpoint-interval=0.02')
    wanted = digests_without_store(work, run.dir, [0], 'bare')
    copy = copy_of(run.dir, os.path.join(work, 'before.run'))
    spoil_first_group(os.path.join(copy, 'pages'))
    with stopped_replay(work, copy, 'before') as vm:
        equal(stored(vm), [], 'checkpoints whose start is damaged')
        goto(vm, where='end')
        equal(digest_at(vm, 0), wanted[0], 'digest at the start')
    check('makes its own' in vm.stderr, vm.stderr)
    for name in FILES:
        check_lost(work, copy_of(run.dir, os.path.join(work, f'no-{name}.run')), name)
    copy = copy_of(run.dir, os.path.join(work, 'behind.run'))
    with stopped_replay(work, copy, 'behind',
                        options=',checkpoint-memory=1') as vm:
        goto(vm, where='end')
        with open(os.path.join(copy, 'pages'), 'r+b') as f:
            size = os.path.getsize(f.name)
            f.seek(64)
            f.write(bytes(size - 64))
        for _ in range(2):
            equal(goto(vm, position=0), {'position': end_of(vm),
                                         'reason': 'damaged'}, 'to the start')
        said = vm.qmp.hmp('tt verify')
        check('cannot be restored' in said, said)
        equal(digest(vm), wanted['end'], 'digest at the end, afterwards')
    check('without them' in vm.stderr, vm.stderr)


@limit(120)
def test_full_disk(work):
    """On a disk with room for the log but not for the checkpoints, these give
    way, with one sentence, and the run is whole."""
    place = mount_small(work, '24m')
    try:
        with Vm(work, [*linux_args('procs', 'n=60'), '-tt',
                       f'record,dir={place}/run{OFTEN}'], name='rec',
                timeout=100) as vm:
            vm.wait(0)
        check('the disk is full' in vm.stderr, vm.stderr)
        check('the recording ends' not in vm.stderr, vm.stderr)
        check('tt: recorded' in vm.stderr, vm.stderr)
        equal(sorted(os.listdir(f'{place}/run')), ['log', 'manifest'], 'files')
        check_exact(work, f'{place}/run', serial_wanted=vm.serial, timeout=100)
    finally:
        subprocess.run(['umount', '-l', place], check=False)


@limit(90)
def test_full_disk_log_first(work):
    """It is the log that finds the disk full: the checkpoints go, and the
    recording ends only when there is nothing more to give."""
    place = mount_small(work, '3m')
    try:
        with Vm(work, [*guest_args(work, *ENDLESS), '-tt',
                       f'record,dir={place}/run,on-error=continue'],
                name='rec', qmp=1) as vm:
            wait_recording_ends(vm, 'space', 'full')
            vm.qmp.send('quit')
            vm.wait(0)
        check('is given to the log' in vm.stderr, vm.stderr)
        equal(sorted(os.listdir(f'{place}/run')), ['log', 'manifest'], 'files')
        check_graceful(replay_status(work, f'{place}/run', 'rep'),
                       'run of a full disk', (0,), vm.serial)
    finally:
        subprocess.run(['umount', '-l', place], check=False)


@limit(60)
def test_interval(work):
    """checkpoint-interval=0 stores nothing; nonsense is refused."""
    run = record(work, guest_args(work, 'hlt', 'rounds=3'),
                 options=',checkpoint-interval=0')
    equal(sorted(os.listdir(run.dir)), ['log', 'manifest'], 'files')
    check_exact(work, run)
    for value in ('-1', 'often', '1e9', '5s', 'nan'):
        vm = Vm(work, ['-tt', f'record,dir={work}/no,checkpoint-interval='
                       f'{value}'], name=f'bad{value}')
        with vm:
            vm.wait(1)
        one_sentence(vm, f'checkpoint-interval={value}')
        check('checkpoint-interval' in vm.stderr, vm.stderr)


def told_to_delete(work, caps):
    """Adds checkpoints until there is no room; was the advice to delete others?"""
    told = set()
    for cap in caps:
        with recorder(work, guest_args(work, 'abits', 'rounds=1000000'),
                      name=f'cap{cap}', qmp=1, timeout=40,
                      options=f',checkpoint-interval=1000,max-size={cap}') as vm:
            vm.wait_serial('\n')
            text, ids = 'kept', []
            while 'kept' in text:
                text = vm.qmp.hmp('tt checkpoint add')
                ids += text.split()[:1]
            equal(len(set(ids)), len(ids), f'checkpoints that were added: {ids}')
            check('max-size leaves no room' in text and 'record with' in text,
                  text)
            others = len(vm.qmp.cmd('query-tt-checkpoints')) > 1
            equal('delete others' in text, others, text)
            told.add(others)
            vm.qmp.send('quit')
            vm.wait(0)
    return told


def test_advice(work):
    """Where max-size has no room for a checkpoint one is told to delete others only
    if there are others."""
    equal(told_to_delete(work, ('1M', '2M', '4M')), {False, True},
          'there were others')


def test_advice_that_comes_late(work):
    """The answer is that of the user's command, also when the recorder has deleted
    meanwhile what had no room."""
    libraries = []
    for name in ('late_waiter', 'slow_disk'):
        libraries.append(os.path.join(work, f'{name}.so'))
        run_tool('gcc', '-shared', '-fPIC', '-o', libraries[-1],
                 os.path.join(REPO, f'tests/functional/{name}.c'))
    os.environ['LD_PRELOAD'] = ' '.join(libraries)
    told_to_delete(work, ('4M',))
    del os.environ['LD_PRELOAD']


class Sizes:
    """What log and store take, sampled all the time: length and blocks."""

    def __init__(self, run, cap):
        self.run, self.cap = run, cap
        self.most = {'length': 0, 'blocks': 0}
        self.samples, self.over, self.stop = 0, None, False
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def sample(self):
        length = blocks = 0
        for entry in os.scandir(self.run):
            try:
                st = entry.stat()
            except FileNotFoundError:       # a file made anew, just now
                continue
            length += st.st_size
            blocks += st.st_blocks * 512
        self.samples += 1
        self.most['length'] = max(self.most['length'], length)
        self.most['blocks'] = max(self.most['blocks'], blocks)

    def watch(self):
        while not self.stop:
            self.sample()
            time.sleep(0.002)

    def check(self):
        self.stop = True
        self.thread.join()
        check(self.samples > 100, f'{self.samples} samples')
        check(max(self.most.values()) <= self.cap,
              f'{self.most} under a cap of {self.cap}')


def thinned(vm):
    return vm.qmp.cmd('query-tt')['store']['taken'] - len(stored(vm))


def made_anew(vm):
    """Was the file of the pages? Then its head names a version."""
    with open(os.path.join(vm.run, 'pages'), 'rb') as f:
        return any(f.read(16)[12:])


def record_under_cap(work, args, cap):
    """A recording until many were thinned; checks sizes and what is left."""
    with recorder(work, args, qmp=1, timeout=500, options=',checkpoint-'
                  f'interval=0.05,max-size={cap}') as vm:
        vm.wait_serial('\n')
        sizes = Sizes(vm.run, cap)
        time.sleep(3)
        mine = vm.qmp.cmd('tt-checkpoint-add', timeout=60)
        wait_until(lambda: thinned(vm) > 20 and made_anew(vm),
                   'many are thinned, and the pages made anew', 400)
        info = vm.qmp.cmd('query-tt')
        vm.qmp.send('quit')
        vm.wait(0)
        sizes.check()
    check(info['live'], f'the recording has ended: {vm.stderr}')
    return vm, mine


def cap(work, args, size):
    """With a small max-size the store thins itself: log and store stay below
    it at any moment, what the user added stays, and replays are exact."""
    vm, mine = record_under_cap(work, args, size)
    rng = seed()
    with stopped_replay(work, vm.run, 'cold', timeout=200) as rep:
        end = end_of(rep)
        points = stored(rep)
        check(len(points) >= 3, f'{len(points)} checkpoints are left')
        check(mine['id'] in [c['id'] for c in points], "the user's is gone")
        equal(points[0]['position'], 0, 'the first one')
        positions = rng.sample(points[1:], min(3, len(points) - 1))
        positions = [c['position'] for c in positions + points[-1:]]
        positions += random_positions(end, 8)
        wanted = digests_without_store(work, vm.run, positions, 'bare')
        rng.shuffle(positions)
        for position in positions:
            equal(digest_at(rep, position), wanted[position],
                  f'digest at {position}')


@limit(300)
def test_cap(work):
    """A guest that writes many pages, some of them each time."""
    cap(work, guest_args(work, 'abits', 'rounds=1000000'), 24 << 20)


@limit(900)
def test_cap_linux(work):
    """Linux at work."""
    cap(work, linux_args('hold') + linux_disk(work), 320 << 20)


@limit(60)
def test_sparse_tail(work):
    """A hole of terabytes after the pages, which is nothing of the run's, is not
    packed: the pack is as long as without it, and whole."""
    run = record(work, guest_args(work, 'torture', 'rounds=1'))
    whole, cut = os.path.join(work, 'whole.ttrun'), os.path.join(work, 'cut.ttrun')
    run_tool(tool('tt'), 'pack', run.dir, whole)
    os.truncate(os.path.join(run.dir, 'pages'), 4 << 40)
    run_tool(tool('tt'), 'pack', run.dir, cut)
    equal(sums_of(cut), sums_of(whole), 'the pack')
    unpacked = os.path.join(work, 'again.run')
    run_tool(tool('tt'), 'unpack', cut, unpacked)
    check_exact(work, unpacked, serial_wanted=run.serial)


def sums_of(path):
    return hashlib.sha256(read_bytes(path)).hexdigest()
