# SPDX-License-Identifier: GPL-2.0-or-later
"""With tt-like-hardware TCG computes what the CPU of this machine computes."""

import os
import re

from guests import CPU_MAX, guest_args
from ttlib import (REPO, Skip, build_guest, check, check_exact, equal, fail, limit,
                   record, run_tool)

LIKE = ['-accel', 'tcg,tt-like-hardware=on']
PLAIN_RUNS_MAX = 8


def is_measured():
    """Vendors differ: what was measured, and is emulated, is AMD's Zen 4."""
    with open('/proc/cpuinfo', encoding='ascii') as info:
        text = info.read()
    return 'AuthenticAMD' in text and re.search(r'^cpu family\s*: 25$', text, re.M)


@limit(120)
def test_same_as_host(work):
    """Random operands leave the same registers, flags and memory on both, in each form
    but those that are known to differ."""
    del work
    if not is_measured():
        raise Skip('this CPU is not of the family that was measured (AMD, 25)')
    said, _ = run_tool(os.path.join(REPO, 'tests', 'cpu-equal', 'compare'), timeout=100)
    equal(len(re.findall(r' 0 forms differ', said)), 10, 'classes without a difference')


def test_replays(work):
    """A run with tt-like-hardware replays exactly; the manifest alone asks for it."""
    args = [*CPU_MAX, '-kernel', build_guest('cpueq64'), '-append', 'count=100']
    run = record(work, [*args, *LIKE])
    plain = record(work, args, name='plain')
    check(run.serial != plain.serial, 'the flag changes nothing')
    check_exact(work, run)
    check_exact(work, plain)


def test_resume_flag(work):
    """The frames of interrupts have no resume flag, as on every CPU; upstream sets it,
    and it outlives its instruction."""
    args = guest_args(work, 'codebits', 'rounds=3 rf=1')
    run = record(work, [*args, *LIKE])
    check(b'codebits: end' in run.serial, f'guest: {run.serial[-200:]}')
    check_exact(work, run)
    # An interrupt must hit an instruction after a fault: a plain recording shows the
    # flag in 19 of 20 runs.
    for part in range(PLAIN_RUNS_MAX):
        plain = record(work, args, name=f'plain{part}')
        if b'RF set' in plain.serial:
            return
    fail(f'upstream has changed: {plain.serial[-200:]}')
