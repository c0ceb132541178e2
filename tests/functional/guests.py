# SPDX-License-Identifier: GPL-2.0-or-later
"""The bare-metal guests and the machine that each of them needs."""

import collections
import contextlib
import fcntl
import gzip
import os
import struct

from ttlib import BUILD, MACHINE, REPO, build_guest, run_tool

# append: command line of the short form. machine: arguments in place of
# MACHINE. prepare: makes files in the work directory, returns arguments.
Guest = collections.namedtuple('Guest', 'append machine prepare')

SECTOR = 512


def guest(append='', machine=MACHINE, prepare=None):
    return Guest(append, machine, prepare)


def write(path, data):
    with open(path, 'wb') as out:
        out.write(data)
    return path


def ide_disk(path):
    return ['-drive', f'file={path},format=raw,if=ide,index=0']


def fw_cfg(name, path):
    return ['-fw_cfg', f'name=opt/tt/{name},file={path}']


def code_file(immediate):
    """mov $immediate, %eax; ret - a sector of it, filled with int3."""
    code = b'\xb8' + struct.pack('<I', immediate) + b'\xc3'
    return code.ljust(SECTOR, b'\xcc')


def prepare_dmacode(work):
    first, second = code_file(0x11223344), code_file(0x8899aabb)
    disk = write(os.path.join(work, 'code.img'),
                 (first + second).ljust(1 << 20, b'\0'))
    return [*fw_cfg('code-a', write(os.path.join(work, 'code-a'), first)),
            *fw_cfg('code-b', write(os.path.join(work, 'code-b'), second)),
            *ide_disk(disk)]


def prepare_ins(work):
    data = bytes((i * 7 + i // 256) & 255 for i in range(8192))
    disk = write(os.path.join(work, 'ins.img'), data.ljust(1 << 20, b'\0'))
    return [*fw_cfg('data', write(os.path.join(work, 'ins-data'), data)),
            *ide_disk(disk)]


def prepare_selfdma(work):
    words = [(i * 2654435761 | 1) & 0xffffffff for i in range(1 << 18)]
    disk = write(os.path.join(work, 'selfdma.img'),
                 struct.pack(f'<{len(words)}I', *words))
    return ide_disk(disk)


def prepare_diskwrite(work):
    return ide_disk(write(os.path.join(work, 'write.img'), bytes(range(256)) * 4096))


def prepare_pflash(work):
    with open('/usr/share/seabios/bios-256k.bin', 'rb') as bios:
        firmware = write(os.path.join(work, 'bios'), bios.read())
    flash = write(os.path.join(work, 'flash'), b'\xff' * (64 << 10))
    return ['-drive', f'if=pflash,format=raw,file={firmware}',
            '-drive', f'if=pflash,format=raw,file={flash}']


CPU_MAX = [a if a != 'qemu64' else 'max' for a in MACHINE]
CPU_RATIO = [a if a != 'qemu64' else 'max,+svm,+tsc-scale' for a in MACHINE]
REBOOT = [a for a in MACHINE if a != '-no-reboot']

GUESTS = {
    'torture': guest('rounds=1 percent=30'),
    'exceptions': guest(),
    'debug': guest(),
    'abits': guest(),
    'codebits': guest(),
    'window': guest(),
    'crossing': guest(),
    'victims': guest(),
    'btflags': guest(),
    'undef': guest(),
    'rdmsr': guest(),
    'ignne': guest(),
    'vmport': guest(),
    'a20': guest(),
    'dmacode': guest(prepare=prepare_dmacode),
    'ins': guest(prepare=prepare_ins),
    'pflash': guest(prepare=prepare_pflash),
    'mmiox': guest(machine=[*MACHINE, '-device', 'VGA']),
    'ptmmio': guest(machine=[*MACHINE, '-device', 'VGA']),
    'svm': guest(),
    'npt': guest(),
    'tscratio': guest(machine=CPU_RATIO),
    'edge64': guest(machine=CPU_MAX),
    'hlt': guest(),
    'mmiofp': guest(machine=[*MACHINE, '-device', 'VGA']),
    'ports': guest(),
    'quiet': guest(),
    'bigram': guest(),
    'reset': guest(machine=REBOOT),
    'panic': guest('how=5 rounds=3', machine=[*REBOOT, '-device', 'pvpanic',
                                              '-device', 'ib700']),
    'smm': guest(),
    'rdrand': guest(machine=CPU_MAX),
    'tsc': guest(machine=CPU_MAX),
    'sequences': guest(machine=CPU_MAX),
    'apic': guest(machine=CPU_MAX),
    'cpuid': guest(machine=CPU_MAX),
    'smap': guest(machine=CPU_MAX),
    'umip': guest(machine=CPU_MAX),
    'selfdma': guest(prepare=prepare_selfdma),
    'partdma': guest(prepare=prepare_selfdma),
    'diskwrite': guest('writes=20', prepare=prepare_diskwrite),
    'fp': guest(),
    'fpenv': guest(),
    'asked': guest(),
    'twice': guest(),
    'lines64': guest(),
    'types64': guest(),
    'alias64': guest(),
    'still64': guest(),
    'table64': guest(),
    'tpr64': guest(machine=REBOOT),
    'enter64': guest(),
    'inits': guest(machine=REBOOT),
    'smc': guest('rounds=100'),
    'random': guest('seed=10 blocks=30 modes=0'),
    'screen': guest(machine=[*MACHINE, '-device', 'VGA']),
    'gpu': guest(machine=[*MACHINE, '-device', 'virtio-vga,romfile=']),
    'blits': guest(machine=[*MACHINE, '-device', 'ati-vga,romfile=']),
    'races': guest('do=63 rounds=50', machine=[*MACHINE, '-smp', '2']),
    'smp': guest('cpus=4 rounds=200', machine=[*MACHINE, '-smp', '4']),
}


def guest_args(work, name, append=None):
    """The QEMU arguments of a guest; append replaces its short form."""
    entry = GUESTS[name]
    args = [*entry.machine, '-kernel', build_guest(name), '-append',
            entry.append if append is None else append]
    if entry.prepare:
        args += entry.prepare(work)
    return args


# The Linux guest of scripts/guest

def linux_files():
    """Kernel and initrd; made on first use (needs Debian's packages)."""
    run_tool(os.path.join(REPO, 'scripts', 'guest'), timeout=300)
    return (os.path.join(BUILD, 'guest', 'vmlinuz'),
            os.path.join(BUILD, 'guest', 'initrd.img'))


def linux_args(works, extra='', machine='pc', memory='256'):
    """A Debian kernel that does the named works and powers off. It does not ask
    whether the timer ticks: on a busy host that takes too long, and it panics."""
    kernel, initrd = linux_files()
    return ['-M', machine, '-cpu', 'qemu64', '-m', memory, '-nodefaults',
            '-display', 'none', '-no-reboot', '-kernel', kernel, '-initrd',
            initrd, '-append', 'console=ttyS0 panic=-1 no_timer_check '
            f't={works} {extra}']


def nested_args(works, extra='', machine='pc', memory='768'):
    """A Debian host that boots the Linux guest under its KVM (scripts/guest-nested)."""
    run_tool(os.path.join(REPO, 'scripts', 'guest-nested'), timeout=300)
    made = os.path.join(BUILD, 'guest-nested')
    return ['-M', machine, '-cpu', 'max,+svm,+npt', '-m', memory, '-nodefaults',
            '-display', 'none', '-no-reboot', '-kernel', os.path.join(made, 'vmlinuz'),
            '-initrd', os.path.join(made, 'initrd.img'), '-append',
            'console=ttyS0 panic=-1 no_timer_check mitigations=off quiet '
            f'kernel=quiet,,no_timer_check t={works} {extra}']


def archive(files):
    """A cpio archive (newc) of executable files: {path: bytes}."""
    out = bytearray()

    def add(name, mode, data=b''):
        fields = (0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        out.extend(b'070701' + b''.join(b'%08x' % n for n in fields) +
                   name.encode() + b'\0')
        out.extend(b'\0' * (-len(out) % 4) + data)
        out.extend(b'\0' * (-len(out) % 4))

    for folder in sorted({os.path.dirname(name) for name in files} - {''}):
        add(folder, 0o040755)
    for name, data in files.items():
        add(name, 0o100755, data)
    add('TRAILER!!!', 0)
    return bytes(out)


def own_args(work, files, extra='', memory='256', machine='pc'):
    """The Linux guest with more files, of which it runs /own/run."""
    args = linux_args('own', extra, machine, memory)
    at = args.index('-initrd') + 1
    with open(args[at], 'rb') as initrd:
        args[at] = write(os.path.join(work, 'initrd.img'), initrd.read() +
                         gzip.compress(archive(files)))
    return args


def linux_disk(work, name='disk.img', size=64 << 20):
    """A virtio disk whose first blocks hold a pattern."""
    path = write(os.path.join(work, name), bytes(range(256)) * 16384)
    os.truncate(path, size)
    return ['-drive', f'file={path},format=raw,if=none,id=disk0',
            '-device', 'virtio-blk-pci,drive=disk0']


@contextlib.contextmanager
def loop(path):
    """A FIFO, as the character device `pipe` of a serial line that sends back what it gets.
    It has room for more than is sent: a write that waits would stop QEMU."""
    os.mkfifo(path)
    held = os.open(path, os.O_RDWR)
    try:
        fcntl.fcntl(held, fcntl.F_SETPIPE_SZ, 1 << 20)
        yield path
    finally:
        os.close(held)
        os.remove(path)


def linux_net():
    return ['-netdev', 'user,id=net0', '-device',
            'virtio-net-pci,netdev=net0,romfile=']
