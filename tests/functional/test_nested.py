# SPDX-License-Identifier: GPL-2.0-or-later
"""A recorded machine that itself runs KVM: Debian's kvm-amd boots a Linux guest."""

import json
import os

from guests import nested_args
from ttlib import check, check_exact, limit, record, run_tool, tool

INTERCEPTED = 0x80


def check_inner(serial):
    """KVM was there, with nested paging, and the inner guest came to its end."""
    text = serial.decode(errors='replace')
    check('TT-FAIL' not in text, f'the host or its guest failed: {text[-600:]}')
    for words in ('Nested Paging enabled', 'TT-HOST-READY', 'TT-DONE rand',
                  'TT-GUEST-END', 'TT-HOST-END 0'):
        check(words in text, f'no "{words}" from the host: {text[-600:]}')


def exits_by_interrupts(run):
    """How often an interrupt ended the inner guest's turn."""
    out, _ = run_tool(tool('tt'), 'log', run.dir, '--json', timeout=120)
    return sum(1 for line in out.splitlines() if '"intr"' in line and
               int(json.loads(line)['addr'], 16) & INTERCEPTED)


@limit(300)
def test_kvm(work):
    """A Debian host whose KVM boots a Linux guest is recorded and replays exactly."""
    run = record(work, nested_args('rand'), timeout=250)
    check_inner(run.serial)
    exits = exits_by_interrupts(run)
    check(exits > 100, f'only {exits} interrupts ended a turn of the inner guest')
    check_exact(work, run, timeout=250)
    print(f'{exits} exits by interrupts, log of {os.path.getsize(run.dir + "/log")}')
