# SPDX-License-Identifier: GPL-2.0-or-later
"""A database on the disk of a recorded guest: each version is a disk after a power cut."""

from databaser import pull_the_plug
from ttlib import equal, limit, seed


@limit(400)
def test_power_cuts(work):
    """SQLite's database is whole in the versions of ten random full checkpoints, and has
    all that was committed before each."""
    equal(pull_the_plug(work, seed(), 10), 10, 'databases')


@limit(400)
def test_going_live(work):
    """The same database goes on for real from three random full checkpoints, and is whole
    when these branches are killed."""
    equal(pull_the_plug(work, seed(), 3, 'live'), 3, 'databases')


@limit(400)
def test_going_back_and_live(work):
    """A replay goes to each of three random full checkpoints (`tt goto`), the VM goes on
    for real from there with the same vCPU, the database finds nothing wrong, and
    is whole when these branches are killed."""
    equal(pull_the_plug(work, seed(), 3, 'goto'), 3, 'databases')
