# SPDX-License-Identifier: GPL-2.0-or-later
"""A replay shows the screen: what screendump gave while the VM was recorded, it
gives at the same position."""

import os
import random
import re
import time

from guests import guest_args
from ttlib import (check, digest, equal, goto_exact, limit, read_bytes,
                   record, recorder, run_tool, stopped_replay, tool)

GRAPHICS = {b'P6 320 200', b'P6 640 480'}


def picture(vm, name):
    path = os.path.join(vm.work, name)
    vm.qmp.cmd('screendump', filename=path)
    return read_bytes(path)


def record_pictures(work, args, least):
    """Stops the VM now and then, until both graphics modes were seen; {position:
    picture}."""
    pictures = {}
    with recorder(work, args, qmp=1) as vm:
        vm.wait_serial('start')
        while len(pictures) < least or not GRAPHICS <= sizes(pictures):
            time.sleep(0.03)
            vm.qmp.cmd('stop')
            place = digest(vm)[0]
            pictures[place] = picture(vm, f'recorded{place}.ppm')
            vm.qmp.cmd('cont')
        vm.qmp.send('quit')
        vm.wait(0)
    return vm.run, pictures


def sizes(pictures):
    return {head(p) for p in pictures.values()}


def head(data):
    return b' '.join(data.split(None, 3)[:3])


def differing(a, b):
    return sum(x != y for x, y in zip(a, b))


@limit(90)
def test_screendump(work):
    """Text, 256 colours and true colours look the same in a replay, whether it
    comes to the position forwards or backwards. A text cursor blinks by the
    host's clock and may be seen or not."""
    args = guest_args(work, 'screen', 'rounds=20 turns=10000')
    run, pictures = record_pictures(work, args, 10)
    order = sorted(pictures)
    with stopped_replay(work, run) as rep:
        for place in [*order, *random.Random(1).sample(order, len(order))]:
            goto_exact(rep, place)
            seen, wanted = picture(rep, f'replayed{place}.ppm'), pictures[place]
            equal(head(seen), head(wanted), f'size of the picture at {place}')
            most = 16 * 9 * 3 if b'720 400' in head(wanted) else 0
            check(differing(seen, wanted) <= most,
                  f'{differing(seen, wanted)} bytes differ at {place}')


@limit(60)
def test_at_the_instruction(work):
    """The instruction that switches a mode on shows: the picture changes where it
    is over, not before, not after."""
    run = record(work, guest_args(work, 'screen', 'rounds=3'))
    text, _ = run_tool(tool('tt'), 'log', run.dir)
    place = int(re.search(r'(\d+) mmio-st addr=\w+508 size=2 val=0x41',
                          text).group(1))
    with stopped_replay(work, run) as rep:
        for where, wanted in ((place, b'P6 640 480'), (place - 1, b'P6 320 200'),
                              (place, b'P6 640 480')):
            goto_exact(rep, where)
            equal(head(picture(rep, 'switch.ppm')), wanted,
                  f'size of the picture at {where}')
