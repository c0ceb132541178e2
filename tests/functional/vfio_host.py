# SPDX-License-Identifier: GPL-2.0-or-later
"""Devices passed through by the kernel's VFIO, without hardware: level 0 gives the
emulated host (kvm_host.py) a device behind an IOMMU, and level 1 binds it to vfio-pci.
"""
from kvm_host import Job, in_host

SLOT = 5
PLACE = f'0000:00:{SLOT:02x}.0'
# Level 0's IOMMU does not remap interrupts; init-nested allows for that.
IOMMU = ['-device', 'intel-iommu,intremap=off']
BIND = f'''d=/sys/bus/pci/devices/{PLACE}
echo vfio-pci > $d/driver_override
[ ! -e $d/driver ] || echo {PLACE} > $d/driver/unbind
echo {PLACE} > /sys/bus/pci/drivers_probe'''


def host_device(device, more=''):
    """What gives level 1 this device."""
    return ['-device', f'{device},addr={SLOT:x}.0{more}']


def passed_on(args, more=''):
    """What gives it on to level 2."""
    return [*args, '-device', f'vfio-pci,host={PLACE}{more}']


def job(name, args, accel='tcg', **more):
    return Job(name, args, before=BIND, accel=accel, **more)


def in_vfio_host(work, jobs, devices, **more):
    return in_host(work, jobs, machine='q35', more=[*IOMMU, *devices],
                   kernel='intel_iommu=on iommu=nopt', **more)
