# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs that earlier versions recorded (tests/golden/runs, packed) are read, and
replay exactly if they were recorded by the rules of execution of today; if not, that
is said. They are never made again: a new format, or new rules, add one."""

import fcntl
import glob
import json
import os
import tarfile

from disker import qemu_img
from test_branch import brancher, tree_hash
from ttlib import (REPO, check, equal, goto_exact, limit, one_sentence,
                   qemu_binary, replay, replayer, run_tool, stopped_replay,
                   tool, wait_until)

PLACE = os.path.join(REPO, 'tests', 'golden', 'runs')
OLD_IMAGE = '/tmp/tt-old/disk.img'

# Name: last position, a mark, least intervals, whether it is a branch
RUNS = {
    'rules-7d-marks': (58800310, ('middle', 23992063), 3, False),
    'rules-3d-marks': (58898625, ('middle', 23992063), 5, False),
    'rules-3d-branch': (35004875, ('panic-1', 35004875), 1, True),
}
# By rules that this version does not have any more: their number.
REFUSED = {'rules-0f': '0xf'}
# Of KVM's, not converted: test_kvm_convert.py.
ELSEWHERE = ('kvm-exits', 'kvm-checkpoints')


def unpacked(work, name):
    run = os.path.join(work, 'old.run')
    run_tool(tool('tt'), 'unpack', os.path.join(PLACE, f'{name}.ttrun'), run)
    run_tool(tool('tt'), 'check', run)
    return run


def test_none_is_forgotten(work):
    """Each packed run is tested."""
    there = {os.path.basename(f)[:-len('.ttrun')] for f in
             glob.glob(os.path.join(PLACE, '*.ttrun'))}
    equal(there, {*RUNS, *REFUSED, *ELSEWHERE}, f'packed runs (beside {work})')


def test_other_rules(work):
    """A run by other rules can be looked at, and is not replayed wrongly."""
    for name, rules in REFUSED.items():
        run = unpacked(work, name)
        out, _ = run_tool(tool('tt'), 'info', run, '--json')
        check(json.loads(out), 'tt info')
        out, _ = run_tool(tool('tt'), 'log', run, '--kind', 'mark')
        check('middle' in out, out)
        with replayer(work, run, name='no') as vm:
            vm.wait(1)
        line = one_sentence(vm, name)
        check(f'with rules ({rules},' in line and 'that recorded it' in line,
              line)


def old_run_test(name, end, mark, least, is_branch):
    def test(work):
        run = unpacked(work, name)
        out, _ = run_tool(tool('tt'), 'verify', run, '--qemu', qemu_binary(),
                          '--json', timeout=60)
        answer = json.loads(out)
        equal((answer['exact'], answer['complete'], answer['end']),
              (True, True, end), 'tt verify')
        check(answer['intervals'] >= least, f'intervals: {answer}')
        vm = replay(work, run)
        check('replay exact' in vm.stderr, vm.stderr)
        check(len(vm.serial) > 300, f'its console: {vm.serial!r}')
        equal(os.path.isdir(os.path.join(run, 'parent')), is_branch, 'parent')
        with stopped_replay(work, run, 'walk') as vm:
            equal(vm.qmp.cmd('tt-goto', mark=mark[0])['position'], mark[1],
                  f'@{mark[0]}')
            goto_exact(vm, end // 2)
            goto_exact(vm, 1000)
    test.__doc__ = f'{name} replays as it was recorded.'
    return limit(60)(test)


def filled(path, size, byte):
    with open(path, 'wb') as out:
        out.write(bytes([byte]) * size)
    return path


@limit(60)
def test_branch_of_overlays(work):
    """A run from before there were disks with versions kept its disk in qcow2 overlays: a
    branch has what its checkpoint had, and leaves the overlays alone. (The machine of the
    packed runs, and a disk of 1 MiB; the first 64 KiB were written between the two full
    checkpoints 2 and 3, and again after them.)"""
    with open(f'{os.path.dirname(OLD_IMAGE)}.lock', 'wb') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)        # for all on this host the image has one place
        check_branch_of_overlays(work)


def check_branch_of_overlays(work):
    with tarfile.open(os.path.join(PLACE, 'qcow2-overlays.tar.xz')) as tar:
        tar.extractall(work)
    run = os.path.join(work, 'rec.run')
    os.makedirs(os.path.dirname(OLD_IMAGE), exist_ok=True)      # its checkpoints name it
    image = filled(OLD_IMAGE, 1 << 20, 0x11)
    bios = filled(os.path.join(work, 'bios'), 64 << 10, 0)     # the checkpoint has it
    qemu_img('rebase', '-u', '-f', 'qcow2', '-F', 'raw', '-b', image,
             os.path.join(run, 'disks', 'ide0-hd0-1.qcow2'))
    before = tree_hash(run)
    args = ['-M', 'isapc', '-cpu', 'qemu64', '-m', '1', '-nodefaults', '-display', 'none',
            '-bios', bios, '-drive', f'file={image},format=raw,if=ide,index=0']
    for at, byte in (2, 0x11), (3, 0x5a):
        with brancher(work, args, run, at, f'at{at}', ',force=on', qmp=1) as vm:
            wait_until(lambda v=vm: v.qmp.cmd('query-tt')['live'], 'it has run')
            for what in (f'read -P {byte} 0 64k', 'read -P 0x11 64k 64k',
                         'write -P 0x77 32k 64k', 'read -P 0x77 32k 64k'):
                said = vm.qmp.hmp(f'qemu-io ide0-hd0 "{what}"')
                check('failed' not in said and 'rror' not in said, f'{at}, {what}: {said}')
            vm.qmp.send('quit')
            vm.wait(0)
        run_tool(tool('tt'), 'check', vm.run)
    equal(tree_hash(run), before, 'the run')
    os.remove(image)
    os.rmdir(os.path.dirname(image))


for _name, _what in RUNS.items():
    globals()['test_' + _name.replace('-', '_')] = old_run_test(_name, *_what)
