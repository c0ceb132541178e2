# SPDX-License-Identifier: GPL-2.0-or-later
"""Near checkpoints: they stand where the TLB is not empty, and nothing of what the
guest sees is another one behind them."""

import re

from guests import guest_args
from test_gdb_lines import debugged, lines_run, positions
from test_gdb_watch import FLUSH, WHERE
from ttlib import (QmpError, TestFailure, check, digest, digest_at, end_of, equal, goto,
                   goto_exact, limit, record, run_to_end, seed, stopped_replay)


def straight(work, run, places):
    """Digests of a process that goes forward only and leaves no near checkpoints."""
    found = {}
    with stopped_replay(work, run, 'straight', options=',x-omit=near',
                        timeout=120) as vm:
        for place in sorted(set(places)):
            found[place] = digest_at(vm, place)
        run_to_end(vm)
        found['end'] = digest(vm)
    return found


def walk_back(vm, top, steps, wanted=None):
    """From @top by each of @steps; then all that follows is executed. Its end."""
    goto_exact(vm, top)
    for step in steps:
        top -= step
        if wanted and top in wanted:
            equal(digest_at(vm, top), wanted[top], f'digest at {top}')
        else:
            goto(vm, position=top)
    run_to_end(vm, 120)
    check(not vm.qmp.cmd('query-tt')['diverged'], 'it diverged')
    return digest(vm)


def walk_test(guest, append, walks):
    def test(work):
        run = record(work, guest_args(work, guest, append))
        rng = seed()
        with stopped_replay(work, run, 'end') as vm:
            end = end_of(vm)
        plans = []
        for _ in range(walks):
            top = rng.randrange(end // 3, end)
            steps = [1 << rng.randrange(18) for _ in range(12)]
            while sum(steps) >= top:
                steps.pop()
            plans.append((top, steps))
        places = [top - sum(steps[:i]) for top, steps in plans
                  for i in range(1, len(steps) + 1, 3)]
        wanted = straight(work, run, places)
        with stopped_replay(work, run, 'walks', timeout=120) as vm:
            for top, steps in plans:
                equal(walk_back(vm, top, steps, wanted), wanted['end'],
                      'digest at the end')
    test.__doc__ = f'Walks back in guest {guest}, and all behind them, are exact.'
    return limit(120)(test)


for _guest, _append in (('torture', 'rounds=1 percent=10'), ('abits', None),
                        ('codebits', 'rounds=20'), ('crossing', None),
                        ('victims', 'rounds=2'), ('debug', 'rounds=20'),
                        ('exceptions', 'rounds=10'), ('apic', 'rounds=1500'),
                        ('svm', 'rounds=2000'), ('smm', None), ('smc', None),
                        ('reset', None), ('ptmmio', None), ('dmacode', None),
                        ('random', 'seed=10 blocks=30'), ('smp', None)):
    globals()['test_' + _guest] = walk_test(_guest, _append, 4)


def end_of_walk(vm, top):
    try:
        return walk_back(vm, top, [1] * 10)
    except (TestFailure, QmpError) as why:
        check('diverged' in str(why), str(why))
        return 'diverged'


@limit(120)
def test_near_tlb(work):
    """Remedy near-tlb: without the TLB a near checkpoint shows in accessed bits."""
    run = record(work, guest_args(work, 'abits', 'rounds=12'))
    rng = seed()

    def ends(options, name):
        with stopped_replay(work, run, name, options=options, timeout=100) as vm:
            end = end_of(vm)
            while True:
                yield end_of_walk(vm, rng.randrange(end // 4, end))

    walks = ends('', 'with')
    right = {next(walks) for _ in range(8)}
    walks.close()
    equal(len(right), 1, 'states at the end')
    # By chance a walk ends right without it, too: most do not.
    walks = ends(',x-omit=near-tlb', 'omit')
    check(any(next(walks) not in right for _ in range(60)),
          'the guest does not see whether the TLB is there')
    walks.close()


@limit(90)
def test_not_listed(work):
    """They are nobody's: no list has them, and none can be deleted."""
    run = record(work, guest_args(work, 'torture', 'rounds=1 percent=10'))
    with stopped_replay(work, run) as vm:
        middle = end_of(vm) // 2
        goto_exact(vm, middle)
        goto_exact(vm, middle - 1)
        fence = 1 << 23
        ids = set()
        for line in vm.qmp.hmp('tt checkpoint list').splitlines():
            found = re.match(r'\s*(\d+)\s+([\d,]+)', line)
            if found:
                ids.add(int(found[1]))
                equal(int(found[2].replace(',', '')) % fence, 0, f'place of: {line}')
        check(ids, 'there are no checkpoints')
        equal(vm.qmp.cmd('query-tt')['checkpoints'], len(ids), 'their number')
        for number in range(1, max(ids) + 8):
            if number not in ids:
                check('there is no checkpoint' in
                      vm.qmp.hmp(f'tt checkpoint delete {number}'),
                      f'checkpoint {number} is there')
        vm.qmp.hmp('tt checkpoint add')
        check(all(int(p.replace(',', '')) % fence == 0 for p in re.findall(
            r'^\s*\d+\s+([\d,]+)', vm.qmp.hmp('tt checkpoint list'), re.M)),
            'one that was asked for stands between fences')


@limit(120)
def test_watchpoint_behind_one(work):
    """A watchpoint that comes when a near checkpoint has been left before the write
    stops there, too."""
    run = lines_run(work)
    said = []
    for options in (',x-omit=near', ''):
        vm, gdb = debugged(work, run, 'with' if not options else 'without',
                           options=options)
        with vm:
            there = positions(gdb('watch counter', *['continue'] * 3, WHERE))[-1]
            said.append([positions(gdb(
                f'monitor tt goto {there + behind}', FLUSH, 'reverse-stepi', WHERE,
                'watch counter', 'reverse-continue', WHERE, 'reverse-continue', WHERE))
                for behind in (100, 2000, 4000, 9000, 15000)])
    equal(said[1], said[0], 'positions')
    check(all(a > b > c for a, b, c in said[0]), f'it did not stop at: {said[0]}')
