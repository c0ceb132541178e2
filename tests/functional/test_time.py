# SPDX-License-Identifier: GPL-2.0-or-later
"""tt time: what time it was at a position of a recording. How exact that is shows
tests/bench/bench-time.py."""

import json
import os

from guests import guest_args
from ttlib import (REPO, check, equal, goto_exact, record, replay, run_tool,
                   stopped_replay, tool, tt)


def time_at(run, pos):
    return json.loads(tt('time', run, str(pos), '--json').stdout)


def events(run, kind):
    out, _ = run_tool(tool('tt'), 'log', run, '--kind', kind, '--json')
    return [json.loads(line) for line in out.splitlines()]


def check_order(run, positions):
    """Time does not go back, and lies between the two bounds."""
    last = 0
    for pos in sorted(positions):
        at = time_at(run, pos)
        check(last <= at['host_ns'], f'{pos}: {at}, before: {last}')
        check(at['earlier']['position'] <= pos, f'{pos}: {at}')
        check(at['earlier']['host_ns'] <= at['host_ns'], f'{pos}: {at}')
        if at['later']:
            check(pos < at['later']['position'], f'{pos}: {at}')
            check(at['host_ns'] <= at['later']['host_ns'], f'{pos}: {at}')
        last = at['host_ns']
    check(last > 0, 'no time has passed')


def test_reads(work):
    """Where the guest reads its time stamp counter, tt time says what it read; between two
    reads it says something between. A replay is exact, and needs no times."""
    run = record(work, guest_args(work, 'tsc', 'rounds=2000'))
    replay(work, run)
    reads = events(run.dir, 'tsc')
    times = events(run.dir, 'time')
    check(len(times) > 3, f'{len(times)} times')
    first, last = times[0]['position'], times[-1]['position']
    some = [r for r in reads if first < r['position'] < last][::len(reads) // 10]
    check(len(some) > 5, f'{len(some)} reads between the times {first} and {last}')
    for r in some:
        at = time_at(run.dir, r['position'])
        equal((at['read']['position'], at['tsc']), (r['position'], int(r['val'], 16)),
              'the counter where it is read')
        behind = time_at(run.dir, r['position'] + 1)
        check(at['tsc'] <= behind['tsc'] <= at['later']['tsc'], f'{at}, {behind}')
    check_order(run.dir, [r['position'] for r in some] + [0, first, last])
    asked_in_the_monitor(work, run, [r['position'] for r in some])


def asked_in_the_monitor(work, run, positions):
    """QMP and HMP say the same, of any position and of the present one."""
    with stopped_replay(work, run) as vm:
        for pos in positions:
            at, said = time_at(run.dir, pos), vm.qmp.cmd('query-tt-time', position=pos)
            equal((said['position'], said['host-ns'], said['tsc'], said['read-tsc']),
                  (pos, at['host_ns'], at['tsc'], at['read']['tsc']), f'QMP at {pos}')
            equal(said['earlier']['host-ns'], at['earlier']['host_ns'], f'before {pos}')
        goto_exact(vm, positions[-1])
        equal(vm.qmp.cmd('query-tt-time'), said, 'where the VM stands')
        check(f'TSC {said["tsc"]}' in vm.qmp.hmp('tt time'), vm.qmp.hmp('tt time'))
        vm.qmp.error('query-tt-time', position=1 << 60)
        check('is not a position' in vm.qmp.hmp('tt time soon'), vm.qmp.hmp('tt time soon'))


def test_halts(work):
    """Around a halt there are two times: its length is not spread over instructions."""
    run = record(work, guest_args(work, 'hlt', 'hz=100 rounds=10'))
    replay(work, run)
    times = [(e['position'], int(e['addr'], 16)) for e in events(run.dir, 'time')]
    halts = [(a, b) for a, b in zip(times, times[1:]) if a[0] == b[0]]
    check(len(halts) >= 5, f'{len(halts)} halts')
    for a, b in halts:
        equal(time_at(run.dir, a[0])['host_ns'], b[1], f'the time after the halt at {a[0]}')
        before = time_at(run.dir, a[0] - 1)
        check(before['host_ns'] <= a[1], f'before the halt of {a}, {b}: {before}')


def test_interrupts(work):
    """A guest that only computes has times, too: at its interrupts."""
    run = record(work, guest_args(work, 'apic', 'rounds=2000'))
    replay(work, run)
    out, _ = run_tool(tool('tt'), 'log', run.dir, '--json')
    log = [json.loads(line) for line in out.splitlines()]
    at = [a['position'] for a, b in zip(log, log[1:])
          if (a['kind'], b['kind'], b['position']) == ('time', 'intr', a['position'])]
    check(len(at) > 3, f'{len(at)} times at interrupts')
    check_order(run.dir, at)


def test_old_runs(work):
    """A recording without times has those of its segments."""
    run = os.path.join(work, 'run')
    run_tool(tool('tt'), 'unpack', os.path.join(REPO, 'tests/golden/runs/kvm-exits.ttrun'),
             run)
    replay(work, run)
    equal(events(run, 'time'), [], 'times in an old run')
    end = json.loads(tt('info', run, '--json').stdout)['end']
    check('tsc' not in time_at(run, end // 2), 'a counter')
    check_order(run, [0, end // 4, end // 2, end - 1, end])
