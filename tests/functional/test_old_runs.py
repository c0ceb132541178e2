# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs that earlier versions recorded (tests/golden/runs, packed) are read and
replay exactly. They are never made again: who changes a format reads the old one."""

import glob
import json
import os

from ttlib import (REPO, check, equal, goto_exact, limit, qemu_binary, replay,
                   run_tool, stopped_replay, tool)

# Name: last position, marks, whether it is a branch
RUNS = {
    '2026-11-first': (58996939, {'middle': 5309743}, False),
    '2026-11-checks': (58701997, {}, False),    # digests between fences
    '2026-11-branch': (57817170, {}, True),     # with its parent in the pack
}


def test_none_is_forgotten(work):
    """Each packed run is tested."""
    there = {os.path.basename(f)[:-len('.ttrun')] for f in
             glob.glob(os.path.join(REPO, 'tests', 'golden', 'runs', '*.ttrun'))}
    equal(there, set(RUNS), 'packed runs')
    check(work, 'work')


def old_run_test(name, end, marks, is_branch):
    def test(work):
        run = os.path.join(work, 'old.run')
        run_tool(tool('tt'), 'unpack', os.path.join(
            REPO, 'tests', 'golden', 'runs', f'{name}.ttrun'), run)
        run_tool(tool('tt'), 'check', run)
        out, _ = run_tool(tool('tt'), 'verify', run, '--qemu', qemu_binary(),
                          '--json', timeout=60)
        answer = json.loads(out)
        equal((answer['exact'], answer['complete'], answer['end']),
              (True, True, end), 'tt verify')
        check(answer['intervals'] > 3, f'its checkpoints are used: {answer}')
        vm = replay(work, run)
        check('replay exact' in vm.stderr, vm.stderr)
        check(len(vm.serial) > 300, f'its console: {vm.serial!r}')
        check(os.path.isdir(os.path.join(run, 'parent')) == is_branch, 'parent')
        with stopped_replay(work, run, 'walk') as vm:
            for mark, position in marks.items():
                equal(vm.qmp.cmd('tt-goto', mark=mark)['position'], position,
                      f'@{mark}')
            goto_exact(vm, end // 2)
            goto_exact(vm, 1000)
    test.__doc__ = f'{name} replays as it was recorded.'
    return limit(60)(test)


for _name, _what in RUNS.items():
    globals()['test_' + _name.replace('-', '_')] = old_run_test(_name, *_what)
