# SPDX-License-Identifier: GPL-2.0-or-later
"""A device of the host is driven through the kernel's VFIO (in the emulated host), is
recorded, and is replayed where there is neither device nor VFIO."""

from ttlib import MACHINE, build_guest, check, check_exact, limit
from vfio_host import host_device, in_vfio_host, job, passed_on

# It looks at a page at 33 MiB; each sync compares all of RAM.
SMALL = ['-m', '36']


def edu_job(append='rounds=8', accel='tcg'):
    return job('edu', passed_on([*MACHINE, *SMALL, '-kernel', build_guest('vfuedu'),
                                 '-append', append]), accel=accel)


@limit(300)
def test_edu(work):
    """A bare-metal guest drives the device: registers, DMA both ways, interrupts."""
    run = in_vfio_host(work, [edu_job()], host_device('edu'))['edu']
    check(b'rounds=00000008' in run.serial, f'the guest says {run.serial[-200:]}')
    for i in range(3):
        check_exact(work, run, name=f'rep{i}')
