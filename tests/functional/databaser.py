# SPDX-License-Identifier: GPL-2.0-or-later
"""A database in a recorded guest, and its disk as it was at random moments.

The guest moves money between accounts with sqlite3 and says how many transactions are
committed. Full checkpoints pin versions of its disk meanwhile. Each of these, as a disk
after a power cut, is given to a guest that mounts it: the database must be whole, no
money may be missing, and no transaction that had been committed before. (With
synchronous=FULL the directory of a deleted journal is not synced, and the last one may.)

Or a VM goes on for real from each of them: the database works on, every transaction comes
in its turn and its own check finds nothing, then QEMU is killed, and the disk of that
branch is looked at. Or a replay of the run goes to each first (`tt goto`), in any order:
the VM goes on where the replay stands, with the same state of the vCPU.
"""

import contextlib
import os
import re
import shutil
import time

from ext import make_ext4
from guests import own_args
from programs import MOUNT, program_disk
from test_branch import brancher
from ttlib import (Vm, check, digest, digest_at, equal, goto, recorder, stopped_replay, tt,
                   wait_until)

ACCOUNTS, EACH = 50, 1000
MODES = ('WAL', 'DELETE')           # of the journal

WORK = f'''#!/bin/busybox sh
{MOUNT}
mount -t ext4 /dev/vda /mnt
(
echo "PRAGMA journal_mode=JOURNAL; PRAGMA synchronous=EXTRA;
CREATE TABLE account (id INTEGER PRIMARY KEY, money INTEGER);
CREATE TABLE done (n INTEGER PRIMARY KEY, text TEXT);
WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < {ACCOUNTS})
INSERT INTO account SELECT i, {EACH} FROM c;"
n=0
while :; do
    n=$((n + 1))
    echo "BEGIN; UPDATE account SET money = money - $n WHERE id = $((n % {ACCOUNTS} + 1));
UPDATE account SET money = money + $n WHERE id = $((n * 7 % {ACCOUNTS} + 1));
INSERT INTO done VALUES ($n, hex(randomblob(500 + $n * 37 % 3000))); COMMIT;
SELECT 'TT-COMMIT ' || $n;"
    [ $((n % 10)) -ne 0 ] || echo "SELECT 'TT-CHECK ' || $n || ' ' || integrity_check
FROM pragma_integrity_check;"
done ) | t sqlite3 /mnt/data.db
'''

# Disks from /dev/vdc on.
CHECK = f'''#!/bin/busybox sh
{MOUNT}
for d in $(ls /dev/vd? | tail -n +3); do
    mount -t ext4 $d /mnt || echo "TT-BAD $d cannot be mounted"
    echo "TT-BASE $d $(t sqlite3 /mnt/data.db "PRAGMA integrity_check;
SELECT sum(money) FROM account; SELECT count(*), max(n) FROM done;" | tr '\\n|' '  ')"
    umount /mnt
done
echo TT-DONE own
'''


def disk(path, name):
    fixed = ',readonly=on' if name == 'tools' else ''
    return ['-drive', f'file={path},format=raw,if=none,id={name}{fixed}', '-device',
            f'virtio-blk-pci,drive={name},bus=pci.0']


def commits(vm):
    found = re.findall(rb'TT-COMMIT (\d+)\s', vm.serial)
    return int(found[-1]) if found else 0


def work_and_pin(work, rng, count, tools, mode):
    """A run, and [(a checkpoint, commits before it)]."""
    print(f'journal mode {mode}', flush=True)
    image = make_ext4(os.path.join(work, 'data.fs'), {'empty': b''}, size=64 << 20)
    script = WORK.replace('=JOURNAL', f'={mode}').encode()
    args = own_args(work, {'own/run': script}) + disk(image, 'data') + disk(tools, 'tools')
    pinned = []
    with recorder(work, args, qmp=1, timeout=100 + 10 * count) as vm:
        vm.wait_serial('TT-COMMIT 5', 100)
        for _ in range(count):
            time.sleep(rng.uniform(0, 0.6))
            before = commits(vm)
            point = vm.qmp.cmd('tt-checkpoint-add', timeout=60, full=True)
            pinned.append((point, before))
        vm.qmp.send('quit')
        vm.wait(0)
    check(pinned[-1][1] > pinned[0][1], f'the database did not work: {pinned}')
    return vm.run, pinned, args


def checks(vm):
    """What the database's own check said."""
    return re.findall(rb'TT-CHECK \d+ ([^\r\n]+)\r', vm.serial)


def has_sealed(run):
    """A replay can begin: there is more than the head of its log."""
    return os.path.getsize(os.path.join(run, 'log')) > 64


def go_live(work, run, args, point, before):
    """The branch's run, and how many transactions it has seen committed."""
    with brancher(work, args, run, point, f'child{point}', qmp=1, timeout=200) as vm:
        wait_until(lambda: commits(vm) > before + 4 and checks(vm) and has_sealed(vm.run),
                   'the database goes on', 150)
        vm.kill()
    equal(set(checks(vm)), {b'ok'}, f'checks in branch {point}')
    seen = [int(n) for n in re.findall(rb'TT-COMMIT (\d+)\s', vm.serial)]
    check(seen[0] > before, f'checkpoint {point}: transaction {seen[0]} is committed again')
    equal(seen, list(range(seen[0], seen[-1] + 1)), f'transactions of branch {point}')
    return vm.run, seen[-1]


def go_back_and_live(work, run, args, point, before, replay):
    """As go_live, from where a replay of the run goes to."""
    goto(replay, 100, position=point['position'])
    wanted = digest(replay)
    child, seen = go_live(work, run, args, point['id'], before)
    with stopped_replay(work, child, 'start') as vm:
        equal(digest_at(vm, 0)[1], wanted[1],
              f'the vCPU at the start of the branch at {point}')
    equal(digest(replay), wanted, 'the replay afterwards')
    return child, seen


def check_some(work, run, pinned, tools, live_args=None, replay=None):
    """@live_args: a VM goes on from each. @replay: and from where this goes to."""
    images, wanted = [], []
    for number, (whole, before) in enumerate(pinned):
        point = whole['id']
        images.append(os.path.join(work, f'at{number}.raw'))
        if replay:
            child, before = go_back_and_live(work, run, live_args, whole, before, replay)
        elif live_args:
            child, before = go_live(work, run, live_args, point, before)
        if live_args:
            tt('disk', 'export', child, images[-1], '--disk', 'data')
            shutil.rmtree(child)
        else:
            tt('disk', 'export', run, images[-1], '--at', str(point), '--disk', 'data')
        wanted.append((point, before))
    args = own_args(work, {'own/run': CHECK.encode()}) + disk(images[0], 'unused') + \
        disk(tools, 'tools')
    for number, image in enumerate(images):
        args += disk(image if number else images[0] + '.copy', f'd{number}')
    os.replace(images[0], images[0] + '.copy')
    with open(images[0], 'wb') as f:
        f.truncate(1 << 20)
    with Vm(work, args, timeout=120) as vm:
        vm.wait(0)
    text = vm.serial.decode(errors='replace')
    check('TT-BAD' not in text and 'TT-DONE own' in text, text[-400:])
    found = re.findall(r'TT-BASE \S+ (\S+) (\d+) (\d+) (\d+)', text)
    equal(len(found), len(pinned), f'databases that could be read ({text[-300:]})')
    for (whole, money, n, last), (point, before) in zip(found, wanted):
        equal((whole, int(money), n), ('ok', ACCOUNTS * EACH, last),
              f'the database of checkpoint {point}')
        check(int(last) >= before, f'checkpoint {point}: {before} transactions were '
              f'committed, {last} are there')
    for image in [*images, images[0] + '.copy']:
        if os.path.exists(image):
            os.unlink(image)


def pull_the_plug(work, rng, count, how='kept', mode=None):
    """How many databases were whole. @how: 'kept', 'live', or 'goto' and live."""
    tools = program_disk(os.path.join(work, 'tools.img'), 'sqlite3')
    mode = mode or rng.choice(MODES)
    run, pinned, args = work_and_pin(work, rng, count, tools, mode)
    with contextlib.ExitStack() as stack:
        replay = None
        if how == 'goto':
            rng.shuffle(pinned)
            replay = stack.enter_context(stopped_replay(work, run, 'past',
                                                        timeout=200 + 30 * count))
        for first in range(0, count, 10):
            check_some(work, run, pinned[first:first + 10], tools,
                       args if how != 'kept' else None, replay)
    return len(pinned)
