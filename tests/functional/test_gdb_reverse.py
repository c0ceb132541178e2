# SPDX-License-Identifier: GPL-2.0-or-later
"""The scenario of QEMU's own test of reverse debugging."""

from reverse_scenario import Ours, scenario
from ttlib import limit


@limit(60)
def test_scenario_of_upstream(work):
    """Steps, steps back, and reverse-continue to breakpoints in the firmware's
    first instructions; tests/functional/reverse runs it many times."""
    scenario(work, Ours)
