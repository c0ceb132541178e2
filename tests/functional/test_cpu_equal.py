# SPDX-License-Identifier: GPL-2.0-or-later
"""With tt-like-hardware TCG computes what the CPU of this machine computes."""

import os
import re

from guests import CPU_MAX, guest_args
from ttlib import (REPO, Skip, build_guest, check, check_exact, equal, fail, limit,
                   record, run_tool)

LIKE = ['-accel', 'tcg,tt-like-hardware=on']
PLAIN_RUNS_MAX = 8


def core():
    """Vendors and generations differ: what was measured, and is emulated, is AMD's Zen 4.
    Zen 3 is of the same family, and was measured, too."""
    with open('/proc/cpuinfo', encoding='ascii') as info:
        text = info.read()
    found = re.search(r'^cpu family\s*: 25\nmodel\s*: (\d+)$', text, re.M)
    if 'AuthenticAMD' not in text or not found:
        return None
    model = int(found.group(1))
    return 'Zen 3' if model < 0x10 or 0x20 <= model < 0x60 else 'Zen 4'


# Where Zen 3 leaves all flags but ZF as they were.
ZEN_3 = [f'bits {name}{size} %{b}, %{a}' for name in ('bsf', 'bsr')
         for size, b, a in (('w', 'bx', 'ax'), ('l', 'ebx', 'eax'), ('q', 'rbx', 'rax'))]


@limit(120)
def test_same_as_host(work):
    """Random operands leave the same registers, flags and memory on both, in each form
    but those that are known to differ."""
    del work
    known = {'Zen 4': [], 'Zen 3': ZEN_3}.get(core())
    if known is None:
        raise Skip('this CPU is not of the family that was measured (AMD, 25)')
    said, _ = run_tool(os.path.join(REPO, 'tests', 'cpu-equal', 'compare'), timeout=100,
                       rc=1 if known else 0)
    equal(re.findall(r'^   (\w.*)$', said, re.M), known, 'forms that differ')
    equal(len(re.findall(r' 0 forms differ', said)), 9 if known else 10,
          'classes without a difference')


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
