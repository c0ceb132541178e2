# SPDX-License-Identifier: GPL-2.0-or-later
"""A device of the host is driven through the kernel's VFIO (in the emulated host), is
recorded, and is replayed where there is neither device nor VFIO."""

import os

from guests import linux_args, linux_disk
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


# Level 2's own IOMMU: what Linux has not mapped for the device is not shadowed.
VIOMMU = ['-device', 'intel-iommu,caching-mode=on,intremap=off']


def nvme_job(name='nvme', accel='tcg', viommu=True):
    args = linux_args('nvme0n1,rand', 'quiet intel_iommu=on' if viommu else 'quiet',
                      machine='q35' if viommu else 'pc', memory='96')
    return job(name, passed_on(args + (VIOMMU if viommu else [])), accel=accel, limit=300)


def nvme(work):
    linux_disk(work)
    disk = os.path.join(work, 'disk.img')
    return ['-drive', f'file={disk},format=raw,if=none,id=nvme',
            *host_device('nvme', ',serial=1,drive=nvme')]


@limit(600)
def test_nvme(work):
    """Linux's own driver makes a file system on the disk; replays need none."""
    run = in_vfio_host(work, [nvme_job()], nvme(work), timeout=500)['nvme']
    check(b'TT-DONE nvme0n1' in run.serial, f'the guest says {run.serial[-400:]}')
    for i in range(2):
        check_exact(work, run, name=f'rep{i}', timeout=100)
