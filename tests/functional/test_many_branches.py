# SPDX-License-Identifier: GPL-2.0-or-later
"""Branches of one checkpoint cost what they change. A thousand: bench-branches.py."""

from disker import checked, contents
from many_branches import expected, many, store_in, written_by
from ttlib import check, check_exact, equal, limit

CLUSTER = 32768
# Two heads, a record and its mark, the list of the images below, and the directory.
BESIDES = 6 * 4096


@limit(100)
def test_twenty(work):
    """Twenty branches of one checkpoint each write 4 KiB: each disk takes one cluster and
    what says where it is, each branch little more; every one has what it wrote, the parent
    is as it was, and they replay exactly."""
    seen = []

    def look(vm):
        seen.append(written_by(vm))
        disk = store_in(vm.run)
        checked(disk)
        equal(contents(work, disk) == expected(work, *seen[-1]), True,
              f'the disk of {vm.name}')
        if len(seen) % 5 == 0:
            check_exact(work, vm.run, name=f'{vm.name}r', serial_wanted=vm.serial)

    _, parts = many(work, 20, look)
    check(len(set(seen)) > 1, f'all wrote the same: {seen}')
    for number, part in enumerate(parts):
        check(part['disks'] <= CLUSTER + BESIDES, f'disks of branch {number}: {part}')
        check(part['all'] <= 256 << 10, f'branch {number}: {part}')
