# SPDX-License-Identifier: GPL-2.0-or-later
"""Symbols and tasks of the Linux kernel in the guest.

scripts/tt-gdb.py sources this file, and what is defined there is known here.
"""
# pylint: disable=undefined-variable
import os
import re
import struct

import gdb

KERNEL = range(0xffffffff80000000, 0xffffffffc0000000)
NOTE = struct.pack('<3I4s', 4, 20, 3, b'GNU\0')


def kernel_base():
    """Where the kernel's image begins, in what is mapped now."""
    for address in range(KERNEL.start, KERNEL.stop, 2 << 20):
        try:
            read_bytes(address, 8)
        except gdb.MemoryError:
            continue
        return address
    raise gdb.GdbError('tt: no kernel is mapped here: go to a later position, '
                       'or to one where the kernel runs')


def build_ids_in_memory(base):
    """The kernel's and those of the libraries that it holds, as hex. (gdb 13's
    own search goes astray where memory ends.)"""
    rest = b''
    for at in range(base, KERNEL.stop, 1 << 16):
        try:
            rest += read_bytes(at, 1 << 16)
        except gdb.MemoryError:
            return
        for found in re.finditer(re.escape(NOTE) + b'(.{20})', rest, re.S):
            yield found.group(1).hex()
        rest = rest[-len(NOTE) - 19:]


def elf_sections(f):
    """(name, address, offset, size) of a 64-bit ELF file's sections."""
    f.seek(0)
    head = f.read(64)
    if head[:5] != b'\x7fELF\x02':
        return []
    table, = struct.unpack_from('<Q', head, 40)
    entry, count, names = struct.unpack_from('<3H', head, 58)
    f.seek(table)
    rows = [struct.unpack_from('<IIQQQQ', f.read(entry)) for _ in range(count)]
    f.seek(rows[names][4])
    text = f.read(rows[names][5])
    return [(text[r[0]:text.index(b'\0', r[0])].decode(), r[3], r[4], r[5])
            for r in rows]


def build_id_and_text(path):
    """Of a file with a kernel's symbols; (None, None) if it is none."""
    build_id, text = None, None
    with open(path, 'rb') as f:
        for name, address, offset, size in elf_sections(f):
            if name == '.text':
                text = address
            if name.startswith('.note') and size < 65536:
                f.seek(offset)
                data = f.read(size)
                at = data.find(NOTE)
                if at >= 0:
                    build_id = data[at + len(NOTE):at + len(NOTE) + 20].hex()
    return build_id, text


def symbol_files(build_id):
    """Files that may be the kernel's, the likeliest first."""
    folders = gdb.parameter('debug-file-directory').split(':')
    for folder in folders:
        yield os.path.join(folder, '.build-id', build_id[:2],
                           build_id[2:] + '.debug')
    for folder in folders:
        for sub in (folder, os.path.join(folder, 'boot')):
            if os.path.isdir(sub):
                for name in sorted(os.listdir(sub)):
                    if name.startswith('vmlinux'):
                        yield os.path.join(sub, name)


class Symbols(TtCommand):
    """Load the symbols of the Linux kernel in the guest.

Finds the kernel's build id in the guest's memory, and the file with its symbols
in the directories of "show debug-file-directory" (Debian's package
linux-image-VERSION-dbg puts it there). Loads them at the address to which KASLR
moved the kernel. That takes some seconds."""

    name, category = 'symbols', gdb.COMMAND_FILES

    def invoke(self, arg, from_tty):
        when()                          # is there a target?
        base = kernel_base()
        build_ids = []
        for build_id in build_ids_in_memory(base):
            build_ids.append(build_id)
            for path in symbol_files(build_id):
                if not os.path.isfile(path):
                    continue
                found, text = build_id_and_text(path)
                if found == build_id and text in KERNEL:
                    gdb.execute(f'symbol-file -o {base - text:#x} {path}')
                    gdb.write(f'{path}, moved by {base - text:#x}\n')
                    return
        raise gdb.GdbError('tt: there is no file with symbols for build id '
                           f'{" or ".join(build_ids) or "(none)"} in '
                           f'{gdb.parameter("debug-file-directory")}: install '
                           'the debug package of the guest\'s kernel, or "set '
                           'debug-file-directory"')


def need(name):
    try:
        return gdb.parse_and_eval(name)
    except gdb.error:
        raise gdb.GdbError('tt: the symbols of the guest\'s kernel are not '
                           'loaded: use "tt symbols" first') from None


def current_task_address():
    """Of the first CPU's pointer, before it was copied for each."""
    try:
        return int(gdb.parse_and_eval('(unsigned long)&current_task'))
    except gdb.error:               # from Linux 6.2 on
        return int(need('(unsigned long)&pcpu_hot.current_task'))


def current_task():
    """The task that the vCPU runs: a struct task_struct."""
    task = need('&init_task')
    for name in ('$gs_base', '$k_gs_base'):
        base = int(gdb.parse_and_eval(name)) & (1 << 64) - 1
        if base >= 1 << 63:
            break
    else:
        raise gdb.GdbError('tt: the kernel has not set up this vCPU yet: go to a '
                           'later position')
    offset = current_task_address() - \
        int(need('(unsigned long)&__per_cpu_start'))
    pointer = gdb.Value((base + offset) & (1 << 64) - 1)
    return pointer.cast(task.type.pointer()).dereference().dereference()


def name_of(task):
    return task['comm'].string(errors='replace')


class Current(TtCommand):
    """Show the task of the guest's kernel that runs at this position."""

    name, category = 'current', gdb.COMMAND_STATUS

    def invoke(self, arg, from_tty):
        when()
        task = current_task()
        gdb.write(f'pid {int(task["pid"])} {name_of(task)}  (struct '
                  f'task_struct *){int(task.address):#x}\n')


def tasks():
    """All processes: one struct task_struct per thread group."""
    task_type = need('&init_task').type.target()
    offset = next(f.bitpos // 8 for f in task_type.fields()
                  if f.name == 'tasks')
    head = gdb.parse_and_eval('&init_task').dereference()
    task, seen = head, set()
    while int(task.address) not in seen and len(seen) < 1 << 17:
        seen.add(int(task.address))
        yield task
        following = int(task['tasks']['next']) - offset
        task = gdb.Value(following).cast(task_type.pointer()).dereference()


class Ps(TtCommand):
    """List the processes of the guest's kernel at this position.

A star marks the one that runs."""

    name, category = 'ps', gdb.COMMAND_STATUS

    def invoke(self, arg, from_tty):
        when()
        running = int(current_task()['group_leader'])
        gdb.write('     pid    ppid  task                name\n')
        for task in tasks():
            star = '*' if int(task.address) == running else ' '
            gdb.write(f'{star}{int(task["pid"]):7} '
                      f'{int(task["real_parent"]["tgid"]):7}  '
                      f'{int(task.address):#x}  {name_of(task)}\n')


for command in (Symbols, Current, Ps):
    command()
