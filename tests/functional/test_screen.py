# SPDX-License-Identifier: GPL-2.0-or-later
"""A replay shows the screen: what screendump gave while the VM was recorded, it
gives at the same position."""

import os
import random
import time

from guests import guest_args
from ttlib import (check, digest, equal, goto_exact, limit, read_bytes,
                   recorder, stopped_replay)


def picture(vm, name):
    path = os.path.join(vm.work, name)
    vm.qmp.cmd('screendump', filename=path)
    return read_bytes(path)


def record_pictures(work, args, count, pause):
    """Stops the VM now and then; {position: picture}."""
    pictures = {}
    with recorder(work, args, qmp=1) as vm:
        vm.wait_serial('start')
        for _ in range(count):
            time.sleep(pause)
            if vm.process.poll() is not None:
                break
            vm.qmp.cmd('stop')
            place = digest(vm)[0]
            pictures[place] = picture(vm, f'recorded{place}.ppm')
            vm.qmp.cmd('cont')
        vm.wait(0)
    return vm.run, pictures


def head(data):
    return b' '.join(data.split(None, 3)[:3])


def differing(a, b):
    return sum(x != y for x, y in zip(a, b))


@limit(90)
def test_screendump(work):
    """Text, 256 colours and true colours look the same in a replay, whether it
    comes to the position forwards or backwards. A text cursor blinks by the
    host's clock and may be seen or not."""
    args = guest_args(work, 'screen')
    run, pictures = record_pictures(work, args, 12, 0.03)
    sizes = {head(p) for p in pictures.values()}
    check(len(sizes) == 3, f'the recorder saw only {sizes}')
    order = sorted(pictures)
    with stopped_replay(work, run) as rep:
        for place in [*order, *random.Random(1).sample(order, len(order))]:
            goto_exact(rep, place)
            seen, wanted = picture(rep, f'replayed{place}.ppm'), pictures[place]
            equal(head(seen), head(wanted), f'size of the picture at {place}')
            most = 16 * 9 * 3 if b'720 400' in head(wanted) else 0
            check(differing(seen, wanted) <= most,
                  f'{differing(seen, wanted)} bytes differ at {place}')
