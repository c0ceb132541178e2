# SPDX-License-Identifier: GPL-2.0-or-later
"""A few random programs on random machines; more: tests/functional/torture."""

from torturer import torture
from ttlib import limit, seed


def torture_test(kinds, digit):
    def test(work):
        rng = seed()
        number = rng.randrange(1 << 20) * 10 + digit
        print(torture(work, rng, number, kinds))
    test.__doc__ = (f'A random recording of guest {kinds[0]} replays exactly in '
                    'any shape, and is travelled exactly.')
    return limit(200)(test)


test_one = torture_test(['random'], 1)
test_another = torture_test(['random'], 2)
test_many_cpus = torture_test(['smp'], 3)
