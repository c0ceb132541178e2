# SPDX-License-Identifier: GPL-2.0-or-later
"""The bare-metal guests and the machine that each of them needs."""

import collections

from ttlib import MACHINE, build_guest

# append: command line of the short form; machine: arguments in place of
# MACHINE; prepare: makes files in the work directory, returns arguments.
Guest = collections.namedtuple('Guest', 'append machine prepare')


def guest(append='', machine=MACHINE, prepare=None):
    return Guest(append, machine, prepare)


GUESTS = {
    'torture': guest('rounds=1 percent=30'),
}


def guest_args(work, name, append=None):
    """The QEMU arguments of a guest; append replaces its short form."""
    entry = GUESTS[name]
    args = [*entry.machine, '-kernel', build_guest(name), '-append',
            entry.append if append is None else append]
    if entry.prepare:
        args += entry.prepare(work)
    return args
