# SPDX-License-Identifier: GPL-2.0-or-later
"""gdb walks about at random and always stands where a straight replay does."""

from ttlib import check, limit, seed
from walker import judge, record_guest, walk

COUNT = 80


@limit(400)
def test_random_walk(work):
    """80 random commands of gdb over a Linux run, both ways: after each,
    registers, position and digest are those of a straight replay."""
    number = seed().randrange(1 << 32)
    run, places = record_guest(work)
    plan, steps = walk(work, run, places, number, COUNT, 300)
    hits = judge(work, run, number, plan, steps, 300)
    print(f'{COUNT} commands, {hits} hits of breakpoints and watchpoints')
    check(hits > 0, 'the walk met no breakpoint')
