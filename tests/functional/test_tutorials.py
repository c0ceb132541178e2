# SPDX-License-Identifier: GPL-2.0-or-later
"""The tutorials' pages are done as they are written, and find their bugs."""

import os
import re

from page import Page, line_of
from ttlib import REPO, check, equal, limit, read_text


def hunt(work, name, source, remark):
    """Does a page; its session stops in the line that has the remark."""
    page = Page(work, name)
    seconds = page.run()
    session = page.output[-1]
    line = line_of(source, remark)
    stops = re.findall(rf'^.* at {re.escape(source)}:(\d+)$', session, re.M)
    check(str(line) in stops, f'no stop in line {line} of {source}, only in '
                              f'{stops}')
    shown = [text for text in session.splitlines()
             if text.startswith(f'{line}\t') and remark in text]
    check(shown, f'gdb does not show line {line}')
    path = os.path.join(REPO, 'docs', 'tutorials', f'{name}.rst')
    check(f'{source}:{line}\n' in read_text(path),
          f'{path} says another line than {line}')
    print(f'hunt: {seconds:.1f} s from the connection to the last answer')
    return page, session


@limit(300)
def test_smashed_stack(work):
    """Stock gdb on a crash whose return address is gone finds the function
    and the line that overwrote it, by the commands of the page."""
    _, session = hunt(work, 'smashed-stack', 'tests/tutorials/smash.c',
                      'the bug: who says')
    found = re.findall(r'^0x[0-9a-f]+ in collect \(.*smash.c:', session, re.M)
    equal(len(found), 1, 'stops in collect()')


@limit(300)
def test_wild_write(work):
    """From the panic of a kernel with a module's wild write, one
    reverse-continue to a watchpoint finds the guilty line, by the commands
    of the page."""
    page, session = hunt(work, 'wild-write', 'tests/tutorials/wild.c',
                         'the bug shows here')
    check('Kernel panic' in ''.join(page.output[:-1]),
          'the guest did not panic')
    check(', probe_stop () at tests/tutorials/wild.c' in session,
          'the one who freed was not found')


@limit(300)
def test_asleep(work):
    """From a panic that a device's answer caused, gdb goes back to the driver's line and
    the log tells the answer, with the device long gone."""
    page, _ = hunt(work, 'asleep-in-an-interrupt', 'tests/tutorials/nap.c',
                   'the bug shows here')
    check('scheduling while atomic' in ''.join(page.output[:-1]),
          'the guest did not panic')


@limit(300)
def test_lost_update(work):
    """One gdb with the replays of two machines goes from a wrong answer on one of them back
    to the cause on the other, and to who sent it, by the commands of the page."""
    page, session = hunt(work, 'lost-update', 'tests/tutorials/stock.c',
                         'the bug shows here')
    sent = re.findall(r'^#0 +set_price \(version=(\d+),', session, re.M)
    check(len(sent) == 2 and int(sent[0]) == int(sent[1]) + 1,
          f'the till sent {sent}, backwards')
    equal(re.findall(r'^\$[34] = (\d)$', session, re.M), ['1', '1'], 'the two versions')
    check(f'and I have set {100 + int(sent[0])}' in ''.join(page.output[:-1]),
          'the till has not complained')
    check('These positions are not one' not in session, 'a cut is not consistent')
