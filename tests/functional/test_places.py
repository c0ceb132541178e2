# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a recorder puts its files: into its own run directory, wherever it was started,
and nowhere else, whatever happens to that directory meanwhile."""

import os

from guests import guest_args
from ttlib import Vm, check, equal, limit, recorder, run_tool, tool

ENDLESS = ('tsc', 'rounds=1000000000')


def disk(work, name='disk.img'):
    """An IDE disk, by a name that is relative to the work directory."""
    with open(os.path.join(work, name), 'wb') as out:
        out.truncate(1 << 20)
    return ['-drive', f'file={name},format=raw,if=ide']


def tree(path):
    return sorted(os.path.join(folder, name)
                  for folder, folders, files in os.walk(path)
                  for name in folders + files)


def refused_where_it_was(vm):
    for arguments in ({'full': True}, {}):
        said = vm.qmp.error('tt-checkpoint-add', **arguments)
        check('moved away' in said, said)
    check('moved away' in vm.qmp.error('tt-goto', position=1), 'tt-goto')


@limit(120)
def test_moved_run(work):
    """A recorder whose directory was moved puts no disk and no checkpoint into what has
    its name now, a plain directory or another recording, and shows no past of that."""
    args = guest_args(work, *ENDLESS)
    with recorder(work, [*args, *disk(work)], name='first', qmp=1, timeout=90,
                  options=',checkpoint-interval=0') as first:
        first.wait_serial('\n')
        os.rename(first.run, first.run + '.moved')
        os.mkdir(first.run)
        refused_where_it_was(first)
        equal(tree(first.run), [], 'what is in the new directory')
        with Vm(work, [*args, '-tt', f'record,dir={first.run}'], name='second',
                qmp=1) as second:
            second.wait_serial('\n')
            before = tree(first.run)
            refused_where_it_was(first)
            equal(tree(first.run), before, 'what is in the run of another')
            for vm in (first, second):
                vm.qmp.send('quit')
                vm.wait(0)
    for path in (first.run, first.run + '.moved'):
        run_tool(tool('tt'), 'check', path)
