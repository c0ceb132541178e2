# SPDX-License-Identifier: GPL-2.0-or-later
"""What a cell of the matrix is, and how the usual ones are made.

The texts {work} and {guests} stand for the directory of the cell and for
build/guest-devices, {debian} and {mini} for build/guest-debian and the file of the
mini kernel, {port} for a port of the host's.
"""
import os

# name     of the cell.                    what     one line for --list.
# args     of QEMU, beside machine, cpu, memory and kernel.
# works    what the guest does: see tests/guest-linux/devices.
# modules  which modules it loads.         append   to its command line.
# boot     the Linux guest, entered by PVH or as a bzimage; '' none (see args).
# guest    whose kernel and initrd: devices, or of i386, newer (scripts/guest).
# mini     the mini kernel of QEMU's that it boots: its output is compared.
# files    (name, bytes) made before.      copies   (name, of what) likewise.
# peers    (frames, echo or swtpm, socket) that listen for it.
# steps    (console text, ((command, arguments), ...)): what the host does.
# shows    texts the console must hold.    reboots  leave -no-reboot out.
# options  of -tt record.
# pictures the screen is looked at now and then: a replay must show the same;
#          'graphics': of the graphics mode only.
# refused  a word of the refusal.          lacks    why it cannot run here.
# absent   what QEMU says, since this build does not have it.
# barred   likewise, since the device is not for such machines or hosts.
# has      devices that the machine has by itself, and that this cell is for.


class Cell:
    defaults = {
        'args': (), 'works': '', 'modules': '', 'append': '', 'machine': 'pc',
        'cpu': 'qemu64', 'memory': '256', 'boot': 'pvh', 'guest': 'devices',
        'mini': '', 'files': (),
        'copies': (), 'peers': (), 'steps': (), 'shows': (), 'reboots': False,
        'pictures': False, 'options': '',
        'refused': '', 'absent': '', 'barred': '', 'has': '',
        'limit': 240, 'lacks': lambda: '',
    }

    def __init__(self, name, what, **fields):
        self.name, self.what = name, what
        unknown = set(fields) - set(self.defaults)
        if unknown:
            raise TypeError(f'{name}: {unknown}')
        for key, value in {**self.defaults, **fields}.items():
            setattr(self, key, value)


MIB = 1 << 20
DISK = (('d.img', 64 * MIB),)
SMALL = (('d.img', 8 * MIB),)


def drive(options='', name='d.img'):
    return ('-drive', f'file={{work}}/{name},format=raw,if=none,id=d0'
            + options)


def disk(name, what, device, dev, modules, works='disk:', files=DISK,
         options='', **more):
    args = (*drive(options), *more.pop('before', ()), '-device', device)
    return Cell(name, what, args=args, works=f'{works}{dev}',
                modules=modules, files=files, **more)


def nic(name, model, modules, backend='user,id=n0', **more):
    return Cell(name, f'{model} with -netdev {backend.split(",")[0]}',
                args=('-netdev', backend, '-device', f'{model},netdev=n0'),
                works='ping:eth0', modules=modules, **more)


STREAM = 'stream,id=n0,server=off,addr.type=unix,addr.path={work}/net.sock'
FRAMES = (('frames', 'net.sock'),)


def keys(text='TT-WAIT input'):
    return ((text, (('keys', 'a b'),)),)


def display(name, what, device, modules='', works='fb', **more):
    return Cell(name, what, args=('-device', device), works=works,
                modules=modules, **{'pictures': True, **more})


def no_node(*nodes):
    lack = [n for n in nodes if not os.path.exists(n)]
    return f'this host has no {lack[0]}' if lack else ''
