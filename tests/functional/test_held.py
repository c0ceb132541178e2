# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages that the host has not given memory to are taken for zero: only where they are.
"""

import os
import re

from guests import guest_args
from ttlib import check, check_exact, equal, goto, limit, record, stopped_replay

MEGABYTE = 1 << 20
PLACE = 40 * MEGABYTE
PATTERN = b'\xc3\xa5\x96\x69'


def at_the_place(vm):
    found = re.search(r': 0x([0-9a-f]{8})', vm.qmp.hmp(f'xp /1wx {PLACE:#x}'))
    return bytes.fromhex(found[1])[::-1]


def file_test(share):
    def test(work):
        path = os.path.join(work, 'ram')
        with open(path, 'wb') as f:
            f.truncate(64 * MEGABYTE)
            f.seek(PLACE)
            f.write(PATTERN)
        run = record(work, guest_args(work, 'cpuid') + [
            '-machine', 'memory-backend=ram', '-object',
            f'memory-backend-file,id=ram,size=64M,mem-path={path},share={share}'])
        os.unlink(path)
        check_exact(work, run)
        with stopped_replay(work, run, 'look') as vm:
            goto(vm, where='end')
            equal(at_the_place(vm), PATTERN, 'bytes of the file at the end')
            goto(vm, position=0)
            equal(at_the_place(vm), PATTERN, 'bytes of the file at the start')
    test.__doc__ = (f'RAM from a file (share={share}): what was in it and nobody touched '
                    'is in the run.')
    return limit(60)(test)


test_shared_file = file_test('on')
test_private_file = file_test('off')


@limit(60)
def test_touched_by_the_monitor(work):
    """A page that only the checkpoint at the start has: the guest's program, far away
    from all that it touches."""
    payload = os.path.join(work, 'payload')
    with open(payload, 'wb') as f:
        f.write(PATTERN * 4096)
    run = record(work, guest_args(work, 'cpuid') + [
        '-device', f'loader,file={payload},addr={PLACE:#x},force-raw=on'])
    check_exact(work, run)
    with stopped_replay(work, run, 'look') as vm:
        goto(vm, where='end')
        equal(at_the_place(vm), PATTERN, 'the payload at the end')
        goto(vm, position=0)
        equal(at_the_place(vm), PATTERN, 'the payload at the start')
        check(at_the_place(vm) != bytes(4), 'it is zero')
