# SPDX-License-Identifier: GPL-2.0-or-later
"""Counts of branches as places of a recording under KVM, in an emulated host that has
performance counters."""

import os
import re
import shutil
import signal

from guests import guest_args
from kvm_host import LEVEL0_PMU, Job, Program, in_host
from test_hostile import events_of, forge
from test_kvm import EXACT, NO_CHAINS, check_ended
from test_kvm_convert import check_kept, replayed, result
from test_kvm_points import cut_behind_a_point, ended
from ttlib import check, check_exact, equal, limit, read_bytes, read_text, run_tool, seed

SAME = 4                        # so often one place may be looked at
RUNG = 'exits, landmarks and branch counts; the TSC is frozen'

def built(work, name):
    """The program NAME.c of this directory, linked statically."""
    path = os.path.join(work, name)
    run_tool('cc', '-O1', '-Wall', '-Werror', '-static', '-o', path,
             os.path.join(os.path.dirname(__file__), f'{name}.c'))
    return path


@limit(200)
def test_counters(work):
    """Linux in the emulated host has AMD's counters, and they are exact: of a guest of
    KVM's alone, of its conditional branches, and without it."""
    job = Program('count', built(work, 'branch_count'))
    in_host(work, [job], timeout=180, level0=LEVEL0_PMU)
    text = read_text(os.path.join(work, 'count.log'))
    check('AMD PMU driver' in text, 'Linux found no counters')
    counts = re.findall(r'^(\w+) rounds=(\d+) counted=(\d+) expected=(\d+)$', text, re.M)
    check(len(counts) == 18, f'not all was counted: {text[-600:]}')
    check(all(counted == wanted for _, _, counted, wanted in counts), f'{counts}')
    print(text[text.index('branches rounds'):])


def kinds(events):
    return [e['kind'] for e in events if e['kind'] in ('landmark', 'branches')]


def check_counted(name, events, is_counted=True):
    """Before each landmark its branches were counted, or before none. How many there
    are."""
    found = kinds(events)
    n = found.count('landmark')
    equal(found, ['branches', 'landmark'] * n if is_counted else ['landmark'] * n,
          f'{name}: landmarks and counts')
    return n


def converted(work, run, name, more=()):
    """Candidates of a landmark."""
    vm = check_exact(work, run, more, name=name, timeout=120)
    found = re.search(r'converted: .* ([\d.]+) candidates each', vm.stderr)
    check(found, f'{name} was not converted: {vm.stderr[-500:]}')
    return float(found[1])


def positions(run):
    return re.search(r'^positions=(.*)$', read_text(f'{run.dir}/manifest'), re.M)[1]


def check_guests(work, names, more=()):
    """Each landmark of these has its count, and is where that says."""
    jobs = [*(Job(name, guest_args(work, name)) for name in names), *more]
    runs = in_host(work, jobs, timeout=200, level0=LEVEL0_PMU)
    landmarks = 0
    for name in names:
        check_ended(name, runs[name])
        n = check_counted(name, events_of(runs[name].dir))
        equal(positions(runs[name]), RUNG, f'{name}: positions')
        each = converted(work, runs[name], f'{name}-rep')
        check_exact(work, runs[name], NO_CHAINS, f'{name}-again')
        check(each <= SAME, f'{name}: {each} candidates of a landmark')
        print(f'{name}: {n} landmarks, {each} candidates each')
        landmarks += n
    check(landmarks > 20, f'only {landmarks} landmarks')
    return runs


@limit(240)
def test_guests(work):
    """Bare-metal guests. A recording can leave the counts out."""
    without = Job('without', guest_args(work, 'fp'), options=',x-omit=branch-counts')
    run = check_guests(work, EXACT[:5], [without])['without']
    check_counted('without', events_of(run.dir), False)
    check('(branches are not counted: x-omit says so)' in positions(run), positions(run))
    check(converted(work, run, 'without-rep') > 10, 'too few candidates')


@limit(240)
def test_more_guests(work):
    """The others."""
    check_guests(work, EXACT[5:])


@limit(240)
def test_conversion(work):
    """A wrong count is found out, and can be passed over. With checkpoints a run is
    converted in parallel. A conversion that was broken off between two places goes on, and
    makes the same run."""
    rng = seed()
    jobs = [Job('fp', guest_args(work, 'fp')),
            Job('parts', guest_args(work, 'fp', 'rounds=20000'),
                options=',checkpoint-interval=0.1')]
    runs = in_host(work, jobs, timeout=180, level0=LEVEL0_PMU)
    check_counted('parts', events_of(runs['parts'].dir))
    status, _, said = replayed(runs['parts'].dir)
    check(status == 0 and ' intervals' in said and 'replay exact' in said, said)
    run = runs['fp'].dir
    cut, log = os.path.join(work, 'cut'), read_bytes(f'{run}/log')
    events = events_of(run)
    shutil.copytree(run, cut)
    at = [i for i, e in enumerate(events) if e['kind'] == 'branches'][20]
    for name, change in (('less', -1), ('more', 1)):
        wrong = {**events[at], 'val': events[at]['val'] + change}
        forged = forge(run, os.path.join(work, name),
                       events[:at] + [wrong] + events[at + 1:])
        status, _, said = replayed(forged)
        check(status == 1 and 'was not where its branches are' in said, f'{name}: {said}')
        status, _, said = replayed(forged, more=',x-omit=branch-counts')
        check(status == 0 and 'replay exact' in said, f'{name}, not asked: {said}')
    never = forge(run, os.path.join(work, 'never'), events[:at] +
                  [{**events[at], 'val': 2**64 - 1}] + events[at + 1:])
    status, _, said = replayed(never)
    check(status == 1 and f'of {2**64 - 1} recorded ones' in said,
          f'a count that is never reached: {said}')
    equal(replayed(run)[0], 0, 'the status of the replay')
    for _ in range(2):
        cut_behind_a_point(cut, rng, signal.SIGKILL)
    ended(cut)
    check_kept(cut, log, 'cut')
    equal(result(cut), result(run), 'the run whose conversion was cut')
