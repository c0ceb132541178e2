# SPDX-License-Identifier: GPL-2.0-or-later
"""Without -tt the emulator is upstream's: guests simply run."""

from guests import GUESTS, guest_args
from ttlib import Vm, check, limit


@limit(200)
def test_all_guests(work):
    """Every bare-metal guest runs to its own end without -tt."""
    for name in GUESTS:
        # QEMU itself runs stale code from flash that was programmed again.
        append = 'rounds=16' if name == 'pflash' else None
        args = guest_args(work, name, append)
        with Vm(work, args, name=name, timeout=30) as vm:
            vm.wait(0)
            check(f'{name}: end'.encode() in vm.serial,
                  f'guest {name} did not end: {vm.serial[-200:]}')
            check(b'FAIL' not in vm.serial,
                  f'guest {name} found a fault: {vm.serial[-200:]}')
