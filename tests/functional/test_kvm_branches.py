# SPDX-License-Identifier: GPL-2.0-or-later
"""Counts of branches as places of a recording under KVM, in an emulated host that has
performance counters."""

import os
import re

from kvm_host import LEVEL0_PMU, Program, in_host
from ttlib import check, limit, read_text, run_tool


def built(work, name):
    """The program NAME.c of this directory, linked statically."""
    path = os.path.join(work, name)
    run_tool('cc', '-O1', '-Wall', '-Werror', '-static', '-o', path,
             os.path.join(os.path.dirname(__file__), f'{name}.c'))
    return path


@limit(100)
def test_counters(work):
    """Linux in the emulated host has AMD's counters, and they are exact: of a guest of
    KVM's alone, of its conditional branches, and without it."""
    job = Program('count', built(work, 'branch_count'))
    in_host(work, [job], timeout=90, level0=LEVEL0_PMU)
    text = read_text(os.path.join(work, 'count.log'))
    check('AMD PMU driver' in text, 'Linux found no counters')
    counts = re.findall(r'^(\w+) rounds=(\d+) counted=(\d+) expected=(\d+)$', text, re.M)
    check(len(counts) == 18, f'not all was counted: {text[-600:]}')
    check(all(counted == wanted for _, _, counted, wanted in counts), f'{counts}')
    print(text[text.index('branches rounds'):])
