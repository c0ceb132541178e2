# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands of gdb for a replay of TTVM: (gdb) source scripts/tt-gdb.py

Needs a gdb with Python; 12 or later does best. docs/reference/gdb.rst has them
all, "help tt" in gdb a short list.
"""
import functools
import os
import re
import sys

import gdb

# Not __file__: that is another script's when one of those sources this.
FOLDER = os.path.dirname(os.path.abspath(sys._getframe().f_code.co_filename))


# ---- asking the stub ----

def send(text):
    try:
        return gdb.selected_inferior().connection.send_packet(text).decode()
    except (AttributeError, TypeError):         # gdb 11 and older; or no target
        said = gdb.execute(f'maintenance packet {text}', to_string=True)
        found = re.search(r'received: "(.*)"', said, re.S)
        return found.group(1) if found else ''


NOT_CONNECTED = 'tt: gdb is not connected to a recording or replay of TTVM: use ' \
    '"target remote"'
# What gdb says when there is no target, or none any more.
LOST = r'connection closed|connection reset|communication error|broken pipe|' \
    r'no registers|not being run|supported by this target|does not support this command|' \
    r'without a process|' \
    r'no thread|live selected thread|cannot access memory'
met = set()                             # numbers of the inferiors that have answered


def packet(text):
    """Sends a packet and returns its answer."""
    try:
        answer = send(text)
    except gdb.error:
        answer = ''
    if answer.startswith('E.'):
        raise gdb.GdbError(f'tt: {answer[2:]}')
    if answer == '':
        raise gdb.GdbError(NOT_CONNECTED)
    met.add(gdb.selected_inferior().num)
    return answer


def when():
    """(position, end of the run, how the last movement ended)."""
    pos, end, how = packet('qtt.when').split(',')
    return int(pos, 16), int(end, 16), how


def whole_list(query):
    """Fetches a list in as many packets as it takes."""
    items = []
    while True:
        answer = packet(f'{query}:{len(items):x}')
        items += [x for x in answer[1:].split(',') if x]
        if answer[0] == 'l':
            return items


# ---- moving ----

class Forward:
    """gdb's own direction is forward inside; stops say nothing."""

    def __enter__(self):
        self.before = gdb.parameter('exec-direction') \
            if self._is_known() else 'forward'
        if self.before == 'reverse':
            gdb.execute('set exec-direction forward')

    def __exit__(self, *unused):
        if self.before == 'reverse':
            gdb.execute('set exec-direction reverse')

    @staticmethod
    def _is_known():
        try:
            gdb.parameter('exec-direction')
        except RuntimeError:
            return False
        return True


HITS_MAX = 1000000                          # as in the stub
WATCHPOINTS = (gdb.BP_HARDWARE_WATCHPOINT, gdb.BP_READ_WATCHPOINT,
               gdb.BP_ACCESS_WATCHPOINT)


homes = {}                              # number of a watchpoint -> of its inferior


def home_of(watch):
    """The number of the inferior whose memory is watched."""
    return homes.get(watch.number, gdb.selected_inferior().num)


def note_home(b):
    if b.type in WATCHPOINTS:
        homes[b.number] = gdb.selected_inferior().num


gdb.events.breakpoint_created.connect(note_home)


def refresh_watchpoints():
    """Their old values are those of where we came from. Those of other inferiors are not
    touched: gdb would look for what they watch in this one."""
    here = gdb.selected_inferior().num
    for b in gdb.breakpoints() or ():
        if b.enabled and b.type in WATCHPOINTS and home_of(b) == here:
            b.enabled = False
            b.enabled = True


def errand(text):
    """What the packet asks for is done by the next resumption: so gdb forgets
    all that it knows of the place it leaves, and its Ctrl-C works."""
    packet(text)
    with Forward():
        gdb.execute('stepi', to_string=True)
    pos, end, how = when()
    if how == 'interrupted':
        raise gdb.GdbError(f'tt: interrupted at position {pos}')
    if how in ('diverged', 'damaged'):
        gdb.write(f'tt: the replay is {how} here: see "monitor info tt"\n')
    refresh_watchpoints()
    return pos, end


def go(place):
    return errand(f'qtt.goto:{place}')


# ---- the commands ----

class Tt(gdb.Command):
    """Time travel in a replay of TTVM."""

    def __init__(self):
        super().__init__('tt', gdb.COMMAND_RUNNING, prefix=True)


def one_sentence(invoke):
    """gdb prints its own errors in a command of Python's as two lines with their class."""
    @functools.wraps(invoke)
    def wrapped(self, arg, from_tty):
        try:
            invoke(self, arg, from_tty)
        except gdb.error as error:
            said = f'tt: {" ".join(str(error).split())}'
            lost = not gdb.selected_inferior().pid and re.search(LOST, said, re.I)
            raise gdb.GdbError(NOT_CONNECTED if lost else said) from None
    return wrapped


class TtCommand(gdb.Command):
    """Base: registers itself as "tt NAME"; its errors are one sentence."""

    prefix, name, category = 'tt ', '', gdb.COMMAND_RUNNING
    complete_with = gdb.COMPLETE_NONE

    def __init_subclass__(cls):
        if 'invoke' in vars(cls):
            cls.invoke = one_sentence(cls.invoke)

    def __init__(self):
        super().__init__(self.prefix + self.name, self.category, self.complete_with)


def number(text, what='position'):
    try:
        value = gdb.parse_and_eval(text)
        if value.type.strip_typedefs().code == gdb.TYPE_CODE_FLT:
            raise ValueError('it is not a whole number')
        value = int(value)
    except (gdb.error, ValueError, OverflowError) as error:
        raise gdb.GdbError(f"tt: '{text}' is not a {what}: {error}") from None
    if not 0 <= value < 1 << 63:
        why = 'it is before the start of the run' \
            if what == 'position' else 'it is out of range'
        raise gdb.GdbError(f"tt: '{text}' is not a {what}: {why}")
    return value


def place_of(text):
    """What the stub takes, of what a user writes."""
    if text[0] == '@':
        if not re.fullmatch(r'@[\w.-]+', text, re.ASCII):
            raise gdb.GdbError(f"tt: '{text[1:]}' cannot be the name of a mark: "
                               'names have only letters, digits, "-", "_" and "."')
        return text
    if re.fullmatch(r'[+-]?\d+|[+-]?0x[0-9a-f]+|start|end', text):
        return text
    return str(number(text))


class Goto(TtCommand):
    """Go to a position: tt goto POS|+N|-N|start|end|@MARK"""

    name = 'goto'

    def invoke(self, arg, from_tty):
        if not arg.strip():
            raise gdb.GdbError('tt goto takes a position, +N, -N, start, end '
                               'or @MARK')
        gdb.write(f'position {go(place_of(arg.strip()))[0]}\n')


class When(TtCommand):
    """Show the position of the VM in the run."""

    name = 'when'

    def invoke(self, arg, from_tty):
        pos, end, _ = when()
        gdb.write(f'position {pos} of {end}\n')


class Mark(TtCommand):
    """Name this position: tt mark NAME"""

    name = 'mark'

    def invoke(self, arg, from_tty):
        gdb.execute(f'monitor tt mark {arg}')


class Marks(TtCommand):
    """List the marks of the run, by position."""

    name = 'marks'

    def invoke(self, arg, from_tty):
        marks = dict(reversed(item.split('.', 1))
                     for item in whole_list('qtt.marks'))
        here = when()[0]
        for name, pos in sorted(marks.items(), key=lambda m: int(m[1], 16)):
            place = int(pos, 16)
            gdb.write(f'{"*" if place == here else " "} {place:>20} @{name}\n')
        if not marks:
            gdb.write('this run has no marks: "tt mark NAME" adds one\n')


class Info(TtCommand):
    """Show what is recorded or replayed, as "info tt" does in QEMU's monitor."""

    name = 'info'

    def invoke(self, arg, from_tty):
        gdb.execute('monitor info tt')


# ---- tt last-change ----

def describe(pc):
    """SYMBOL+OFFSET at FILE:LINE, as far as it is known."""
    text = gdb.execute(f'info symbol {pc:#x}', to_string=True).strip()
    name = '' if text.startswith('No symbol') else text.split(' in section')[0]
    name = name.replace(' + ', '+')
    try:
        line = gdb.find_pc_line(pc)
    except gdb.error:
        line = None
    if line and line.symtab and line.line:
        name += f' at {line.symtab.filename}:{line.line}'
    return name.strip() or '(no symbol)'


def read_bytes(address, size):
    return bytes(gdb.selected_inferior().read_memory(address, size))


def denoted(text):
    """(expression without names, address, size) of what is in memory."""
    try:
        value = gdb.parse_and_eval(text)
    except gdb.error as error:
        raise gdb.GdbError(f'tt: {error}') from None
    if value.address is None:
        raise gdb.GdbError(f'tt: {text} is not in memory, and only memory can be '
                           'watched')
    address, size = int(value.address), value.type.sizeof
    if not size:
        raise gdb.GdbError(f'tt: {text} has no size: give it a type, as in '
                           f'*(int *){address:#x}')
    return f'*({value.type.unqualified()} *) {address:#x}', address, size


def as_text(data):
    value = int.from_bytes(data, 'little')
    return f'{value:#x}' if len(data) <= 8 else data.hex(' ')


class Quiet:
    """All breakpoints of the user are out of the way inside."""

    def __enter__(self):
        here = gdb.selected_inferior().num
        # gdb would look here for what one of another inferior watches.
        self.disabled = [b for b in gdb.breakpoints() or () if b.enabled and
                         (b.type not in WATCHPOINTS or home_of(b) == here)]
        for b in self.disabled:
            b.enabled = False

    def __exit__(self, *unused):
        for b in self.disabled:
            if b.is_valid():
                b.enabled = True


def back_to_change(address, size):
    """reverse-continue to the last change of these bytes; False: there is
    none."""
    kinds = {1: 'unsigned char', 2: 'unsigned short', 4: 'unsigned int',
             8: 'unsigned long long'}
    what = kinds.get(size, f'unsigned char [{size}]')
    what = what.replace(' [', ' (*)[') if size not in kinds else f'{what} *'
    watch = gdb.Breakpoint(f'*({what}){address:#x}', type=gdb.BP_WATCHPOINT,
                           internal=True)
    watch.silent = True
    try:
        if watch.type not in WATCHPOINTS:
            raise gdb.GdbError('tt: gdb cannot set a hardware watchpoint of '
                               f'{size} bytes: choose a smaller part')
        with Forward():
            gdb.execute('reverse-continue', to_string=True)
        return watch.hit_count > 0
    finally:
        watch.delete()


class LastChange(TtCommand):
    """Go back to the last change of what an expression denotes.

tt last-change EXPR: EXPR is something in memory, such as a variable, a field
or *(int *)ADDRESS. The VM then stands before the instruction that changed it.
It does not find writes by devices."""

    name, complete_with = 'last-change', gdb.COMPLETE_EXPRESSION

    def invoke(self, arg, from_tty):
        _, address, size = denoted(arg)
        origin = when()[0]
        try:
            after = read_bytes(address, size)
        except gdb.MemoryError:
            raise gdb.GdbError(f'tt: address {address:#x} is not mapped here: go '
                               'to a position where it is') from None
        with Quiet():
            found = back_to_change(address, size)
        pos, _, how = when()
        if not found and how == 'interrupted':
            raise gdb.GdbError(f'tt: interrupted at position {pos}: the search '
                               f'began at position {origin}')
        if not found:
            go(origin)
            where = f'between positions {pos} and' if pos else 'before position'
            raise gdb.GdbError(f'tt: no instruction has changed {arg} {where} '
                               f'{origin}')
        refresh_watchpoints()
        pc = int(gdb.selected_frame().pc())
        gdb.write(f'{arg} was changed at position {pos}\n'
                  f'  by {pc:#x} {describe(pc)}\n'
                  f'  from {as_text(read_bytes(address, size))} '
                  f'to {as_text(after)}\n')
        gdb.execute('frame')


# ---- tt hits ----

def location_of(text):
    """What gdb takes, of what a user writes: an address needs no star."""
    return f'*{text}' if re.fullmatch('0x[0-9a-f]+', text, re.I) else text


def addresses_of(location):
    """Where a breakpoint on it would stand."""
    b = gdb.Breakpoint(location, internal=True)
    try:
        if b.pending:
            raise gdb.GdbError(f"tt: gdb does not know the location '{location}'")
        if hasattr(b, 'locations'):
            here = gdb.selected_inferior().num
            return sorted({place.address for place in b.locations
                           if not place.thread_groups or here in place.thread_groups})
    finally:
        b.delete()
    return sorted({sal.pc for sal in gdb.decode_line(location)[1] or ()})


class Hits(TtCommand):
    """List the positions at which the run reaches a location.

tt hits LOCATION [--limit N] [--from POS] [--to POS] [--in WHO]
LOCATION is as for "break", or an address (0x401031 is *0x401031), WHO as for
"tt break-in", POS as for "tt goto" but without + and -. Lists the first N hits
(default: 1000); "tt goto" goes to one of them. Afterwards the VM is where it was."""

    name, complete_with = 'hits', gdb.COMPLETE_LOCATION

    @staticmethod
    def parse(arg):
        numbers = {'limit': 1000, 'from': 0, 'to': (1 << 64) - 1}

        def take(found):
            name, text = found.groups()
            known = {'start': 0, 'end': (1 << 64) - 1}
            place = str(number(text, 'number')) if name == 'limit' else position_of(text)
            numbers[name] = known[place] if place in known else int(place)
            return ''
        rest, _, who = re.sub(r'\s*--(limit|from|to)[ =](\S+)', take,
                              arg).partition('--in ')
        location = location_of(rest.strip())
        if not location or location.startswith('--'):
            raise gdb.GdbError('tt hits takes a location, as "break" does, and '
                               '--limit N, --from POS, --to POS, --in WHO')
        return location, numbers, who.strip()

    def invoke(self, arg, from_tty):
        location, numbers, who = self.parse(arg)
        who = Who(who) if who else None
        places = addresses_of(location)
        if len(places) > 16:
            raise gdb.GdbError(f'tt: {location} has {len(places)} addresses, but '
                               'only 16 can be searched at once')
        wanted = [numbers['limit'], numbers['from'], numbers['to'], *places]
        if who:
            packet(f'qtt.hits-in:{who.packet_part()}')
        errand('qtt.hits:' + ','.join(f'{n:x}' for n in wanted))
        found = [[int(n, 16) for n in item.split('.')]
                 for item in whole_list('qtt.found')]
        for number, (pos, pc) in enumerate(found, 1):
            where = f'  {pc:#x} {describe(pc)}' if len(places) > 1 else ''
            gdb.write(f'{number:6} {pos:20}{where}\n')
        more = ' (there may be more: raise --limit)' \
            if len(found) == min(numbers['limit'], HITS_MAX) else ''
        gdb.write(f'{len(found)} hit{"" if len(found) == 1 else "s"} of '
                  f'{location}{more}\n')


Tt()
for command in (Goto, When, Mark, Marks, Info, LastChange, Hits):
    command()


def source(name):
    gdb.execute(f'source {os.path.join(FOLDER, name)}')


source('tt-gdb-step.py')
source('tt-gdb-ask.py')
source('tt-gdb-linux.py')
source('tt-gdb-process.py')
source('tt-gdb-frames.py')
source('tt-gdb-group.py')
if 'gdb.dap.server' in sys.modules:             # gdb -i=dap
    source('tt-gdb-dap.py')
