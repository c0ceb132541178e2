# SPDX-License-Identifier: GPL-2.0-or-later
"""Devices passed through by the kernel's VFIO, without hardware: level 0 gives the
emulated host (kvm_host.py) a device behind an IOMMU, and level 1 binds it to vfio-pci.
"""
import os

from kvm_host import Job, in_host
from ttlib import SLOW, read_text

SLOT = 5
PLACE = f'0000:00:{SLOT:02x}.0'
PASSED_ON = ['-device', f'vfio-pci,host={PLACE},id=host']
# Level 0's IOMMU does not remap interrupts; init-nested allows for that.
IOMMU = ['-device', 'intel-iommu,intremap=off']
BIND = f'''d=/sys/bus/pci/devices/{PLACE}
echo vfio-pci > $d/driver_override
[ ! -e $d/driver ] || echo {PLACE} > $d/driver/unbind
echo {PLACE} > /sys/bus/pci/drivers_probe
'''
SMALL_VM = ' '.join([f'timeout {int(60 * SLOW)} qemu -L /usr/share/qemu -accel tcg -M pc',
                     '-m 16 -nodefaults -display none', *PASSED_ON])


def asked(name, options, *commands):
    """In level 1: what a VM that has the device says to these monitor commands."""
    lines = ' '.join(f"'{line}'" for line in (*commands, 'quit'))
    return (f"printf '%s\\n' {lines} | {SMALL_VM} -monitor stdio {options} "
            f'> /tmp/out/{name}.said 2>&1\n')


def answer(work, name):
    return read_text(os.path.join(work, f'{name}.said'))


def host_device(device, more=''):
    """What gives level 1 this device."""
    return ['-device', f'{device},addr={SLOT:x}.0{more}']


def job(name, args, accel='tcg', before='', **more):
    """The guest gets the device; @before: what is done before it is bound."""
    return Job(name, [*args, *PASSED_ON], before=before + BIND, accel=accel, **more)


def in_vfio_host(work, jobs, devices, **more):
    return in_host(work, jobs, machine='q35', more=[*IOMMU, *devices],
                   kernel='intel_iommu=on iommu=nopt', **more)
