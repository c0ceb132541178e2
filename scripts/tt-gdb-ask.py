# SPDX-License-Identifier: GPL-2.0-or-later
"""Questions about a whole run, and going back in one that is recorded; sourced by
scripts/tt-gdb.py. In an editor they are typed in its debug console.
"""
import os
import re
import shutil
import struct
import subprocess

import gdb

SIZES = (1, 2, 4, 8)


def state():
    """(what it does, the directory of the run), as "info tt" says."""
    said = gdb.execute('monitor info tt', to_string=True)
    found = re.match(r'tt: (\w+) (.+?)(?: \(it has [a-z ]+\))?\s*$', said, re.M)
    if not found:
        raise gdb.GdbError('tt: gdb is not connected to a recording or replay of TTVM: use '
                           '"target remote"')
    return found.groups()


def tool():
    """The program tt, of the build that this script belongs to, or of PATH."""
    built = os.path.join(FOLDER, '..', 'build', 'tt')
    program = built if os.access(built, os.X_OK) else shutil.which('tt')
    if not program:
        raise gdb.GdbError('tt: there is no program tt: run scripts/build, or add it to PATH')
    return os.path.normpath(program)


def check_registers():
    """Those that tt origin follows are of the vCPU whose turn it is, and not unwound."""
    turn = int(packet('qtt.turn'), 16)
    thread = gdb.selected_thread()
    if thread.ptid[1] != turn + 1:
        raise gdb.GdbError(f'tt: vCPU {turn} has the turn here: select its thread to follow '
                           'a register')
    if gdb.selected_frame().level() != 0:
        raise gdb.GdbError('tt: a register can be followed from frame 0 only, where it has '
                           'its value now: use "frame 0", or an expression in memory')


def place_of_value(text):
    """What tt origin takes: a register, or bytes of memory."""
    if re.fullmatch(r'\$\w+', text) and not text.startswith('$tt_'):
        check_registers()
        return text
    _, address, size = denoted(text)
    if size not in SIZES:
        raise gdb.GdbError(f'tt: {text} has {size} bytes, and 1, 2, 4 or 8 can be followed: '
                           'choose a part of it')
    return f'*(u{8 * size} *){address:#x}'


def functions_of(path):
    """(name, address) of the global functions that an ELF file has."""
    with open(path, 'rb') as file:
        head = file.read(64)
        if head[:4] != b'\x7fELF' or head[5] != 1:
            return
        wide = head[4] == 2
        of_section, of_symbol = ('<IIQQQQI', '<IBBHQ8x') if wide else ('<7I', '<II4xBBH')
        where, = struct.unpack_from('<Q' if wide else '<I', head, 40 if wide else 32)
        size, count = struct.unpack_from('<HH', head, 58 if wide else 46)
        file.seek(where)
        table = file.read(size * count)
        sections = [struct.unpack_from(of_section, table, size * i) for i in range(count)]
        for _, kind, _, _, where, size, link in sections:
            if kind not in (2, 11):     # no table of symbols
                continue
            file.seek(sections[link][4])
            names = file.read(sections[link][5])
            file.seek(where)
            for found in struct.iter_unpack(of_symbol, file.read(size)):
                name, info, _, index, value = found if wide else \
                    (found[0], *found[2:], found[1])
                if info == 0x12 and index and value:    # a global function, not elsewhere
                    yield names[name:names.index(b'\0', name)].decode('latin1'), value


def moved_by(path):
    """How far a program runs from where its file has it (KASLR, PIE), as gdb knows it."""
    seen = []
    try:
        for name, value in functions_of(path):
            if len(seen) == 5:
                break
            if re.fullmatch(r'[A-Za-z_]\w*', name):
                try:
                    here = int(gdb.parse_and_eval(f'(unsigned long)&{name}'))
                    seen.append((here - value) % 2**64)
                except gdb.error:
                    pass                # gdb has it not
    except (OSError, ValueError, IndexError, struct.error):
        pass                            # tt origin says what is wrong with it
    return max(set(seen), key=seen.count) if seen else 0    # one may be that of a library


# Words of the tool, and the letters of the monitor.
FIND_WITH = {'from': 'f', 'to': 't', 'limit': 'n'}
FIND_ALONE = {'changes': 'c', 'monotone': 'm', 'written': 'w', 'first': None}
FIND_LETTERS = {letter: word for word, letter in {**FIND_WITH, **FIND_ALONE}.items() if letter}


def position_of(text):
    """What the monitor's tt find takes, of what a user writes."""
    if text in ('start', 'end'):
        return text
    if text[0] != '@':
        return str(number(text))
    for item in reversed(list(whole_list('qtt.marks'))):    # the last one of a name
        pos, name = item.split('.', 1)
        if name == text[1:]:
            return str(int(pos, 16))
    raise gdb.GdbError(f"tt: there is no mark '{text[1:]}': \"tt marks\" lists them")


class Find(TtCommand):
    """List the positions at which a condition becomes true.

tt find CONDITION [--from POS] [--to POS] [--limit N] [--first] [--changes] [--monotone]
        [--written]
The options are those of the tool, the conditions are in docs/reference/find. POS is a
number, an expression of gdb without spaces, start, end or @MARK. -f, -t, -n, -c, -m and -w,
as in the monitor, stand before CONDITION. What stands behind -- is CONDITION. Afterwards the
VM is where it was."""

    name, category = 'find', gdb.COMMAND_DATA

    @staticmethod
    def option(word, is_begun):
        """(its long name, the value that is joined to it or None), or None: it belongs to the
        condition."""
        name, joined, value = word.partition('=')
        if re.fullmatch(r'--\S+', name):
            known = name[2:] in FIND_WITH or name[2:] in FIND_ALONE
            long = name[2:]
        elif re.fullmatch('-[A-Za-z]', word) or \
                not is_begun and re.match('-[A-Za-z]', word):
            name, joined, value = word, '', ''
            long = FIND_LETTERS.get(word[1:])
            known = bool(long)
        else:
            return None
        if not known:
            raise gdb.GdbError(f'tt: tt find takes no {name}: "help tt find" has the options')
        if is_begun and len(name) == 2:
            raise gdb.GdbError(f'tt: {name} stands before the condition: behind it, write '
                               f'--{long}')
        return long, value if joined else None

    @classmethod
    def split(cls, arg):
        """({long name: value or None}, condition)."""
        options, condition, rest = {}, [], arg.split()
        while rest:
            word = rest.pop(0)
            found = cls.option(word, bool(condition)) if word != '--' else None
            if word == '--':
                condition += rest
                break
            if not found:
                condition.append(word)
                continue
            name, value = found
            if name in options:
                raise gdb.GdbError(f'tt: --{name} can be given only once')
            if name in FIND_ALONE and value is not None:
                raise gdb.GdbError(f'tt: --{name} takes no value')
            if name in FIND_WITH and value is None and rest and not rest[0].startswith('--'):
                value = rest.pop(0)
            if name in FIND_WITH and not value:
                raise gdb.GdbError(f'tt: --{name} takes a value')
            options[name] = value
        return options, ' '.join(condition)

    @classmethod
    def translated(cls, arg):
        """As the monitor has it."""
        options, condition = cls.split(arg)
        if not condition:
            raise gdb.GdbError('tt find takes a condition, and --from POS, --to POS, '
                               '--limit N, --first, --changes, --monotone, --written')
        if 'limit' in options:
            options['limit'] = number(options['limit'], 'number')
        if options.pop('first', 0) is None:
            options['limit'] = 1
        words = []
        for name, value in options.items():
            words.append(f'-{FIND_WITH.get(name) or FIND_ALONE[name]}')
            if name in FIND_WITH:
                words.append(str(value) if name == 'limit' else position_of(value))
        return ' '.join([*words, condition])

    def invoke(self, arg, from_tty):
        gdb.execute(f'monitor tt find {self.translated(arg)}')


class Origin(TtCommand):
    """Say where a value came from: tt origin EXPR [--depth N] [--nodes N] [--within N]

EXPR is a register or something in memory. A replay of its own looks for the last write, for
what that was copied or computed from, and so on, up to an input of the machine. The VM stays
where it is."""

    name, category = 'origin', gdb.COMMAND_DATA
    complete_with = gdb.COMPLETE_EXPRESSION

    def invoke(self, arg, from_tty):
        options = re.findall(r'--(?:depth|nodes|within)[ =]\d+', arg)
        text = re.sub(r'\s*--(?:depth|nodes|within)[ =]\d+', '', arg).strip()
        if not text or text.startswith('--'):
            raise gdb.GdbError('tt origin takes a register or something in memory, and '
                               '--depth N, --nodes N, --within N')
        place, (_, run) = place_of_value(text), state()
        command = [tool(), 'origin', run, str(when()[0]), place, '--quiet']
        for option in options:
            command += re.split('[ =]', option)
        program = gdb.current_progspace().filename
        if program:
            command += ['--symbols', program, '--offset', str(moved_by(program))]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors='replace') as process:
            try:
                for line in process.stdout:
                    gdb.write(line.replace(place, text))
            except KeyboardInterrupt:
                process.terminate()
                raise


class Undo(TtCommand):
    """Undo the last inputs of a recording with undo=console: tt undo [N]

The VM is live again as it was before them."""

    name = 'undo'

    def invoke(self, arg, from_tty):
        gdb.execute(f'monitor tt {self.name} {arg}')
        forget()


class Redo(Undo):
    """Do again what was undone: tt redo [N]"""

    name = 'redo'


def forget():
    """gdb does not know that the VM is elsewhere."""
    gdb.execute('maintenance flush register-cache', to_string=True)
    try:
        gdb.execute('maintenance flush dcache', to_string=True)
    except gdb.error:
        pass                            # gdb 11 and older
    refresh_watchpoints()


for command in (Find, Origin, Undo, Redo):
    command()
