# SPDX-License-Identifier: GPL-2.0-or-later
"""Breakpoints and watchpoints of one process in the guest.

scripts/tt-gdb.py sources this file, and what is defined there is known here.
The stub says whose turn it is: $tt_root, $tt_pid, $tt_name, $tt_name2
(docs/reference/gdb.rst). We tell it how the guest's kernel keeps its tasks: from
the symbols, or from the type information (BTF) that Linux has in its own memory.
"""
# pylint: disable=undefined-variable
import re
import struct

import gdb

NAME_BYTES = 16                 # of the kernel's, with the 0 at the end


# ---- the layout of the guest's kernel ----

class Btf:
    """The type information of a Linux kernel, as bytes."""

    HEAD = struct.Struct('<HBBI4I')
    TYPE = struct.Struct('<3I')
    INT, ARRAY, STRUCT, UNION, VAR, DATASEC = 1, 3, 4, 5, 14, 15
    # Bytes after the head of a type: fixed, and for each of its parts.
    MORE = {INT: (4, 0), ARRAY: (12, 0), STRUCT: (0, 12), UNION: (0, 12),
            6: (0, 8), 13: (0, 8), VAR: (4, 0), DATASEC: (0, 12),
            17: (4, 0), 19: (0, 12)}
    MAGIC = bytes.fromhex('9feb0100 18000000 00000000')
    ASKED = {(STRUCT, 'task_struct'), (STRUCT, 'pcpu_hot'),
             (VAR, 'current_task'), (VAR, 'pcpu_hot'),
             (DATASEC, '.data..percpu')}

    def __init__(self, data):
        (_, _, _, head, types, types_len, strings,
         strings_len) = self.HEAD.unpack_from(data)
        self.types = data[head + types:head + types + types_len]
        self.strings = data[head + strings:head + strings + strings_len]
        self.at = [0]           # of each type
        self.known = {}         # (kind, name) -> number
        self._walk()

    @classmethod
    def size(cls, head):
        fields = cls.HEAD.unpack_from(head)
        return fields[3] + max(fields[4] + fields[5], fields[6] + fields[7])

    def name(self, offset):
        end = self.strings.index(b'\0', offset)
        return self.strings[offset:end].decode(errors='replace')

    def _walk(self):
        """A kernel has a hundred thousand types: look at no name twice."""
        asked = {self.strings.find(b'\0%b\0' % name.encode()) + 1: name
                 for _, name in self.ASKED}
        unpack, length, at = self.TYPE.unpack_from, len(self.types), 0
        while at + 12 <= length:
            offset, info, _ = unpack(self.types, at)
            kind = info >> 24 & 31
            if offset in asked and (kind, asked[offset]) in self.ASKED:
                self.known.setdefault((kind, asked[offset]), len(self.at))
            self.at.append(at)
            at += 12
            if kind in self.MORE:
                fixed, each = self.MORE[kind]
                at += fixed + each * (info & 0xffff)

    def _parts(self, number):
        at = self.at[number]
        _, info, _ = self.TYPE.unpack_from(self.types, at)
        for i in range(info & 0xffff):
            yield self.TYPE.unpack_from(self.types,
                                        at + self.TYPE.size * (i + 1))

    def _kind(self, number):
        return self.TYPE.unpack_from(self.types, self.at[number])[1] >> 24 & 31

    def member(self, number, wanted):
        """Offset of a member, also in a struct without a name; or None."""
        flagged = self.TYPE.unpack_from(self.types, self.at[number])[1] >> 31
        for name, kind, bits in self._parts(number):
            offset = (bits & 0xffffff if flagged else bits) // 8
            if name and self.name(name) == wanted:
                return offset
            if not name and self._kind(kind) in (self.STRUCT, self.UNION):
                inner = self.member(kind, wanted)
                if inner is not None:
                    return offset + inner
        return None

    def member_of(self, struct_name, wanted):
        number = self.known.get((self.STRUCT, struct_name))
        return number and self.member(number, wanted)

    def per_cpu(self, wanted):
        """Where a variable of each CPU is, from the first; or None."""
        section = self.known.get((self.DATASEC, '.data..percpu'))
        number = self.known.get((self.VAR, wanted))
        for kind, offset, _ in self._parts(section) if section else ():
            if kind == number:
                return offset
        return None


IMAGE_BYTES = 128 << 20         # a kernel's is smaller
BLOCK = 1 << 16


def image_blocks():
    """(address, bytes) of what is mapped of the kernel's image; between code
    and data there are holes."""
    base = kernel_base()
    for at in range(base, min(base + IMAGE_BYTES, KERNEL.stop), BLOCK):
        try:
            yield at, read_bytes(at, BLOCK)
        except gdb.MemoryError:
            pass


def btf_in_memory():
    rest, next_at = b'', 0
    for at, block in image_blocks():
        if at != next_at:
            rest = b''
        found = (rest + block).find(Btf.MAGIC)
        if found >= 0:
            start = at - len(rest) + found
            return Btf(read_bytes(start, Btf.size(read_bytes(start, 64))))
        rest, next_at = block[-len(Btf.MAGIC):], at + BLOCK
    return None


def layout_of_btf():
    btf = btf_in_memory()
    if not btf:
        return None
    current = btf.per_cpu('current_task')
    if current is None:                         # Linux 6.2 to 6.14
        outer = btf.per_cpu('pcpu_hot')
        inner = btf.member_of('pcpu_hot', 'current_task')
        current = None if None in (outer, inner) else outer + inner
    layout = (current, btf.member_of('task_struct', 'tgid'),
              btf.member_of('task_struct', 'comm'))
    return None if None in layout else layout


def layout_of_symbols():
    try:
        here = int(current_task_address()) - \
            int(gdb.parse_and_eval('(unsigned long)&__per_cpu_start'))
        task = gdb.lookup_type('struct task_struct')
        bits = {f.name: f.bitpos for f in task.fields()}
        return here, bits['tgid'] // 8, bits['comm'] // 8
    except (gdb.error, gdb.GdbError, KeyError):
        return None


def layout_elsewhere():
    """The kernel is not mapped everywhere: at the end of the run it is, most
    likely."""
    origin = when()[0]
    go('end')
    try:
        return layout_of_btf()
    finally:
        go(origin)


def find_layout():
    """Tells the stub, unless somebody has."""
    if packet('qtt.linux:') != 'none':
        return
    layout = layout_of_symbols()
    try:
        layout = layout or layout_of_btf()
    except gdb.GdbError:
        layout = layout_elsewhere()
    if not layout:
        raise gdb.GdbError('tt: this kernel has no type information (BTF) that '
                           'says where its tasks are: load its symbols with "tt '
                           'symbols", or give the process as root=ADDRESS, the '
                           'value of $tt_root while it runs')
    packet('qtt.linux:' + ','.join(f'{n & (1 << 64) - 1:x}' for n in layout))
    gdb.execute('maintenance flush register-cache', to_string=True)


def register(name):
    return int(gdb.parse_and_eval(f'${name}'))


# ---- who ----

class Who:
    """A process, by number, by name, or by the root of its page tables."""

    def __init__(self, text):
        kind, _, value = text.rpartition('=')
        if not kind and text == 'this':
            when()                      # is there a target?
            kind, value = 'root', str(register('tt_root'))
        elif not kind:
            kind = 'pid' if text.isdigit() else 'name'
        if kind not in ('pid', 'name', 'root') or not value:
            raise gdb.GdbError(f"tt: '{text}' is not a process: give a number, a "
                               'name, pid=N, name=NAME, root=ADDRESS or this')
        self.kind = kind
        if kind == 'name':
            raw = value.encode()[:NAME_BYTES - 1].ljust(NAME_BYTES, b'\0')
            self.values = struct.unpack('<2Q', raw)
        else:
            self.values = (number(value, 'process number' if kind == 'pid'
                                  else 'root of page tables'), 0)
        if kind != 'root':
            find_layout()

    def condition(self):
        first, second = self.values
        if self.kind == 'name':
            return f'$tt_name == {first:#x} && $tt_name2 == {second:#x}'
        return f'$tt_{self.kind} == {first:#x}'

    def packet_part(self):
        letter = {'pid': 'p', 'name': 'n', 'root': 'r'}[self.kind]
        return f'{ord(letter):x},{self.values[0]:x},{self.values[1]:x}'


def split_who(arg, usage):
    who, _, rest = arg.strip().partition(' ')
    if not who or not rest.strip():
        raise gdb.GdbError(usage)
    return Who(who), rest.strip()


# ---- breakpoints ----

def only_here(b):
    """Other members of a group may have a process of that name, too."""
    num = gdb.selected_inferior().num
    places = getattr(b, 'locations', ())            # of gdb 13
    elsewhere = [p for p in places if p.thread_groups and num not in p.thread_groups]
    if len(elsewhere) < len(places):
        for place in elsewhere:
            place.enabled = False


class BreakIn(TtCommand):
    """Set a breakpoint for only one process of the guest.

tt break-in WHO LOCATION [if CONDITION]
WHO is a process's number, its name in the kernel (up to 15 letters), pid=N,
name=NAME, root=ADDRESS (the value of $tt_root while it runs), or "this", the
process that runs now. One that is given by number or name need not exist yet.
Threads belong to their process.
gdb is not even told when other processes reach LOCATION."""

    name, category, gdb_command = 'break-in', gdb.COMMAND_BREAKPOINTS, 'break'
    complete_with = gdb.COMPLETE_LOCATION

    def invoke(self, arg, from_tty):
        who, rest = split_who(arg, f'tt {self.name} takes a process and a '
                              'location, as in: tt break-in init vfs_write')
        location, word, condition = re.match(
            r'(.*?)(?:\s+(if)\b\s*(.*))?$', rest, re.S).groups()
        if word and not condition:
            raise gdb.GdbError('tt: a condition is missing after "if"')
        whole = who.condition() + (f' && ({condition})' if word else '')
        before = set(gdb.breakpoints() or ())
        gdb.execute(f'{self.gdb_command} {location_of(location)} if {whole}', from_tty)
        for b in set(gdb.breakpoints() or ()) - before:
            only_here(b)


class TbreakIn(BreakIn):
    """Set a temporary breakpoint for only one process of the guest.

See "help tt break-in"."""

    name, gdb_command = 'tbreak-in', 'tbreak'


# ---- watchpoints ----

class ProcessWatch(gdb.Breakpoint):
    """A watchpoint whose accesses count in one process only.

    To gdb it counts each access: its comparison of values would mix those of
    several processes. The stub leaves out the other processes, and the reads."""

    def __init__(self, who, expression, address, size, access):
        self.who, self.address, self.size = who, address, size
        self.only_writes = access == gdb.WP_WRITE
        super().__init__(expression, type=gdb.BP_WATCHPOINT,
                         wp_class=gdb.WP_READ if access == gdb.WP_READ
                         else gdb.WP_ACCESS)

    def stop(self):
        return bool(gdb.parse_and_eval(self.who.condition()))

    def filter(self):
        return f'qtt.only:{self.address:x},{self.size:x},' \
               f'{self.only_writes:x},{self.who.packet_part()}'


watches = []


def filters_of(num, gone):
    """{(address, size): those who watch it in that inferior; None: everybody}. @gone is
    being deleted, and gdb still lists it."""
    places = {}
    for b in gdb.breakpoints() or ():
        if b is gone or b.type not in WATCHPOINTS or home_of(b) != num:
            continue
        if b in watches:
            place, owner = (b.address, b.size), b
        else:
            try:
                value = gdb.parse_and_eval(b.expression)
                place, owner = (int(value.address), value.type.sizeof), None
            except (gdb.error, TypeError):
                continue
        places.setdefault(place, []).append(owner)
    return places


def send_filters(num=None, gone=None):
    """Each stub gets those of its inferior. Another watchpoint of the same bytes may want
    to know of everybody: then there is a stop for each access, and ours look themselves."""
    num = num or gdb.selected_inferior().num
    watches[:] = [w for w in watches if w.is_valid() and w is not gone]
    if not any(i.num == num and i.pid for i in gdb.inferiors()):
        return
    with selection_kept():
        select(num)
        packet('qtt.only:')
        for owners in filters_of(num, gone).values():
            if all(owners):
                for owner in owners:
                    packet(owner.filter())


def send_again(b, gone=None):
    """Not connected: the stub has forgotten them."""
    if b.type in WATCHPOINTS and (b in watches or
                                  any(home_of(w) == home_of(b) for w in watches)):
        try:
            send_filters(home_of(b), gone)
        except gdb.GdbError:
            pass


def on_breakpoints_changed(b):
    if b not in watches:
        send_again(b)


def on_breakpoint_deleted(b):
    send_again(b, gone=b)


gdb.events.breakpoint_created.connect(on_breakpoints_changed)
gdb.events.breakpoint_deleted.connect(on_breakpoint_deleted)


class WatchIn(TtCommand):
    """Set a watchpoint for only one process of the guest.

tt watch-in WHO [-r|-a] EXPRESSION
Stops at each write to the memory that EXPRESSION denotes now, even one that does
not change it; with -r, at each read; with -a, at both. WHO is as for
"tt break-in". gdb is not even told of accesses by other processes."""

    name, category = 'watch-in', gdb.COMMAND_BREAKPOINTS
    complete_with = gdb.COMPLETE_EXPRESSION

    def invoke(self, arg, from_tty):
        who, rest = split_who(arg, 'tt watch-in takes a process and an '
                              'expression, as in: tt watch-in init *(int *)0x404010')
        access = gdb.WP_WRITE
        for option, meaning in (('-r', gdb.WP_READ), ('-a', gdb.WP_ACCESS)):
            if rest.startswith(f'{option} '):
                access, rest = meaning, rest[3:].strip()
        expression, address, size = denoted(rest)
        watch = ProcessWatch(who, expression, address, size, access)
        if watch.type not in WATCHPOINTS:
            watch.delete()
            raise gdb.GdbError('tt: gdb cannot set a hardware watchpoint of '
                               f'{size} bytes: choose a smaller part')
        watches.append(watch)
        send_filters()


for command in (BreakIn, TbreakIn, WatchIn):
    command()
