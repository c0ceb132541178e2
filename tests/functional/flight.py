# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of the flight recorder, and its soak, look at."""

import os
import time

from ttlib import (check, digest, digest_at, end_of, equal, goto, replay,
                   run_tool, stopped_replay, tool, wait_until)

ONE_INSN = ('-accel', 'tcg,one-insn-per-tb=on')


def query(vm):
    """Of a replay, when it stands where it begins: that takes a moment."""
    info = vm.qmp.cmd('query-tt', timeout=60)
    while info['mode'] == 'replay' and not info['live']:
        time.sleep(0.01)
        info = vm.qmp.cmd('query-tt', timeout=60)
    return info


def wait_moved(vm, times=3, timeout=60):
    """Until the window has begun at so many different places; those."""
    seen = {query(vm)['start']}

    def moved():
        vm.check_alive('waiting for the window to move')
        seen.add(query(vm)['start'])
        return len(seen) > times
    wait_until(moved, f'the window moves {times} times', timeout)
    return sorted(seen)


def stop_for_digest(vm):
    """(position, cpu, ram) of the recording, which goes on."""
    vm.qmp.cmd('stop')
    found = digest(vm)
    vm.qmp.cmd('cont')
    return found


def disk_bytes(run):
    """What the files of the recording take, as du counts; a file that goes
    meanwhile takes nothing."""
    total = 0
    for name in os.listdir(run):
        try:
            total += os.lstat(os.path.join(run, name)).st_blocks * 512
        except FileNotFoundError:
            pass
    return total


def check_window(work, run, rng, recorded=(), count=8, name='w',
                 is_long=False):
    """The run begins where it says, straight replays are exact in both shapes
    of blocks (not of what @is_long), intervals verify, and random positions have, in
    any order, the digests of a straight replay from the start, and those of the
    recorder. Returns the start."""
    out, _ = run_tool(tool('tt'), 'check', run, timeout=60)
    check('is intact' in out, out)
    replay(work, run, name=f'{name}-straight', timeout=120)
    if not is_long:
        replay(work, run, ONE_INSN, name=f'{name}-single', timeout=240)
    out, _ = run_tool(tool('tt'), 'verify', '-j', '2', run, timeout=240)
    check('replays exactly' in out, out)
    wanted = {}
    with stopped_replay(work, run, f'{name}-first', timeout=120) as rep:
        start, end = query(rep)['start'], end_of(rep)
        equal(query(rep)['position'], start, 'where a replay begins')
        recorded = [d for d in recorded if start <= d[0] <= end]
        places = [rng.randrange(start, end + 1) for _ in range(count)]
        places += [start, end] + [d[0] for d in recorded]
        for place in sorted(places):
            wanted[place] = digest_at(rep, place)
    for seen in recorded:
        equal(wanted[seen[0]], seen, 'digest of the recorder')
    rng.shuffle(places)
    with stopped_replay(work, run, f'{name}-second', timeout=120) as rep:
        for place in places:
            equal(digest_at(rep, place), wanted[place], f'digest at {place}')
        goto(rep, where='start')
        equal(query(rep)['position'], start, 'tt goto start')
        if start:
            text = rep.qmp.error('tt-goto', position=start - 1)
            check('before the window' in text, text)
    return start


def marks_of(run):
    out, _ = run_tool(tool('tt'), 'log', '--kind', 'mark', run)
    return [line.split('"')[1] for line in out.splitlines() if '"' in line]
