# SPDX-License-Identifier: GPL-2.0-or-later
"""Any mix of recording, past, checkpoints and branches stays exact."""

from guests import guest_args
from historian import live_through
from ttlib import check, limit, seed


@limit(300)
def test_torture(work):
    """25 random steps in a run, and in its branch: each digest that was seen on
    the way is that of a straight replay."""
    args = guest_args(work, 'torture', 'rounds=100000 percent=20')
    count = live_through(work, args, seed(), 25, 1, 'sum=')
    check(count > 20, f'only {count} digests were compared')
