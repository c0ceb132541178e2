#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that our sources keep to the floors of scripts/layers.toml.

    check-layering.py [--draw] [TOP-DIRECTORY]

Prints TAP. Looks at definitions and at where they are named, not at includes
alone: a file uses another one when its code names a function, a variable, a
type or a macro that the other defines; a declaration names it, too, but for those
in the hooks. What QEMU makes from a schema of ours belongs to its room. --draw prints
the floors as text instead; docs/explanation/architecture.rst shows the same.
"""
import fnmatch
import glob
import os
import re
import shutil
import subprocess
import sys

try:
    import tomllib
except ImportError:
    sys.exit('check-layering: needs Python 3.11 or newer (tomllib)')

INCLUDE = re.compile(r'^(\+?)\s*#\s*include\s*([<"])([^>"]+)[>"]')
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*', re.S)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
OURS = re.compile(r'^(?:tt|Tt|TT)(?:_|[A-Z])\w*$|^tt$|'
                  r'^(?:(?:(?:qmp_|qmp_marshal_)(?:query_)?|hmp_|qapi_event_send_)tt|'
                  r'qapi_free_Tt)\w*$')
SCHEMA = re.compile(r"'(command|event|struct|enum|union)': '([\w-]+)'")
DRAWING = '.. The floors, as scripts/check-layering.py --draw prints them.'
PAGE = 'docs/explanation/architecture.rst'
README = 'README.rst'
CIRCLE_MAX = 3


def blank(m):
    return ' ' + '\n' * m.group().count('\n')


class Source:
    """One of our files: what it includes, defines and names."""

    def __init__(self, path):
        self.path = path
        self.dir = os.path.dirname(path)
        with open(path, encoding='utf-8') as f:
            text = COMMENT.sub(blank, f.read())
        self.includes = [(n, m.group(2), m.group(3))
                         for n, line in enumerate(text.split('\n'), 1)
                         if (m := INCLUDE.match(line)) and not m.group(1)]
        self.code = STRING.sub(blank, text)
        self.defined = self.definitions()
        self.named = {w for w in re.findall(r'\w+', self.code)
                      if OURS.match(w)}
        self.declared = self.declarations()

    def definitions(self):
        names = set(re.findall(r'^\s*#\s*define\s+(\w+)', self.code, re.M))
        code = re.sub(r'^\s*#(?:\\\n|[^\n])*', '', self.code, flags=re.M)
        for body in re.findall(r'\benum\s*\w*\s*{([^}]*)}', code):
            names.update(re.findall(r'(?:^|,)\s*(\w+)', body))
        names.update(re.findall(r'}\s*(\w+)\s*;', code))
        names.update(re.findall(r'\btypedef\s+[^;{}]*?\(\s*\*\s*(\w+)\s*\)',
                                code))
        names.update(re.findall(r'\btypedef\s+[^;{}()]*?\b(\w+)\s*\(', code))
        if self.path.endswith('.h'):
            names.update(re.findall(r'\btypedef\s+[^;{}()]*?\b(\w+)\s*;',
                                    code))
        for head, end in top_level(code):
            m = re.search(r'\b(\w+)\s*\(', head)
            if end == '{' and m and not head.lstrip().startswith('static'):
                names.add(m.group(1))
            elif end == '{' and m and self.path.endswith('.h'):
                names.add(m.group(1))
            elif end in ';=' and not m and not re.match(
                    r'\s*(static|extern|typedef|struct|union|enum)\b', head):
                names.update(re.findall(r'(\w+)\s*(?:\[[^]]*\]\s*)*$', head))
        return {n for n in names if OURS.match(n) and not n.endswith('_H')}

    def declarations(self):
        """Functions and variables that a header declares."""
        if not self.path.endswith('.h'):
            return set()
        names = set()
        for head, end in top_level(re.sub(r'^\s*#(?:\\\n|[^\n])*', '', self.code,
                                          flags=re.M)):
            m = re.search(r'\b(\w+)\s*\(', head)
            if end == ';' and m and 'typedef' not in head:
                names.add(m.group(1))
            elif end == ';' and 'extern' in head:
                names.update(re.findall(r'(\w+)(?:\[[^]]*\])*\s*$', head))
        return names

    def only_declares(self, name):
        return name in self.declared and \
            len(re.findall(rf'\b{name}\b', self.code)) == 1

    def line_of(self, name):
        m = re.search(rf'\b{name}\b', self.code)
        return self.code.count('\n', 0, m.start()) + 1 if m else 0


def generated(schema):
    """The names in C that QEMU makes of a schema."""
    for kind, name in SCHEMA.findall(schema):
        c = name.replace('-', '_')
        if kind == 'command':
            yield from (f'qmp_{c}', f'qmp_marshal_{c}')
        elif kind == 'event':
            yield f'qapi_event_send_{c.lower()}'
        else:
            yield from (name, f'{name}List', f'qapi_free_{name}')


def top_level(code):
    """(text before it, mark) of each ';', '=' and '{' outside of braces."""
    depth = 0
    head = ''
    skip = False
    for ch in code:
        if ch == '{':
            if depth == 0 and not skip:
                yield head, ch
                head = ''
            depth += 1
        elif ch == '}':
            depth -= 1
        elif depth == 0:
            if ch == ';' or (ch == '=' and not skip):
                if not skip:
                    yield head, ch
                skip = ch == '='
                head = ''
            elif not skip:
                head += ch


class Rooms:
    """scripts/layers.toml, and our files by room."""

    def __init__(self, here):
        with open(os.path.join(here, 'layers.toml'), 'rb') as f:
            conf = tomllib.load(f)
        self.rooms = {r['name']: r for r in conf['room']}
        self.floors = conf['floors']
        self.core = conf['core']
        self.patches = conf['patches']
        self.sources = {}
        self.room_of = {}
        for name, room in self.rooms.items():
            for g in room['files']:
                for p in sorted(glob.glob(g)):
                    self.sources[p] = Source(p)
                    self.room_of[p] = name
        self.owner = {}
        for p, s in self.sources.items():
            for n in s.defined:
                self.owner.setdefault(n, p)
        # A definition in a .c file counts before a type of the same name.
        for p, s in self.sources.items():
            if p.endswith('.c'):
                for n in s.defined:
                    self.owner[n] = p
        self.add_schemas()

    def add_schemas(self):
        """What QEMU generates from a room's schemas is that room's."""
        for name, room in self.rooms.items():
            for p in sorted(q for g in room.get('schemas', ()) for q in glob.glob(g)):
                self.room_of[p] = name
                with open(p, encoding='utf-8') as f:
                    for n in generated(f.read()):
                        self.owner.setdefault(n, p)

    def below(self, name):
        """All rooms that @name may use."""
        seen, todo = set(), [name]
        while todo:
            for r in self.rooms[todo.pop()].get('uses', ()):
                if r not in seen:
                    seen.add(r)
                    todo.append(r)
        return seen

    def uses(self, path):
        """(name, file that defines it) of what @path names."""
        for n in sorted(self.sources[path].named):
            o = self.owner.get(n)
            if o and o != path and n not in self.sources[path].defined:
                yield n, o


def resolve(rooms, source, header):
    """The path of one of our headers; None: it is not ours."""
    for d in (source.dir, '.', 'include', 'replay-engine'):
        p = os.path.normpath(os.path.join(d, header))
        if p in rooms.sources:
            return p
    return None


def check_floors(rooms):
    """The `uses` of each room name rooms that come before it."""
    seen = set()
    for floor in rooms.floors:
        for name in floor:
            for u in rooms.rooms[name].get('uses', ()):
                if u not in seen:
                    yield f'{name} uses {u}, which is not below it'
        seen.update(floor)
    for name in rooms.rooms:
        if name not in seen:
            yield f'{name} is on no floor'


def check_uses(rooms, name):
    below = rooms.below(name) | {name}
    for path, source in rooms.sources.items():
        if rooms.room_of[path] != name:
            continue
        for n, owner in rooms.uses(path):
            there = rooms.room_of[owner]
            if there in below or (n in source.declared and
                                  rooms.rooms[name].get('declares_upper')):
                continue
            yield (f'{path}:{source.line_of(n)}: names {n} of {owner}: '
                   f'{name} may not use {there}')


def check_includes(rooms, name):
    below = rooms.below(name) | {name}
    room = rooms.rooms[name]
    for path, source in rooms.sources.items():
        if rooms.room_of[path] != name:
            continue
        for line, bracket, header in source.includes:
            at = f'{path}:{line}'
            target = resolve(rooms, source, header)
            if target is None:
                if bracket == '"' and re.match(r'(.*/)?tt-', header):
                    if not header.startswith('qapi/'):
                        yield f'{at}: there is no {header}'
                elif room.get('is_core') and bracket == '"':
                    yield f'{at}: a core includes no header of QEMU'
                continue
            there = rooms.room_of[target]
            if there not in below:
                yield f'{at}: {name} may not include {header} of {there}'
            elif there != name and is_private(rooms, target):
                yield f'{at}: {header} is private to {there}'


def is_private(rooms, path):
    room = rooms.rooms[rooms.room_of[path]]
    base = os.path.basename(path)
    if room.get('is_core') and 'public' in room:
        return base not in room['public']
    return base.endswith('-int.h')


def check_core(rooms, name):
    """What keeps a core pure: see `core` in layers.toml."""
    room = rooms.rooms[name]
    for path, source in rooms.sources.items():
        if rooms.room_of[path] != name:
            continue
        if not room.get('is_tool'):
            for line, bracket, header in source.includes:
                if bracket == '<' and header not in rooms.core['system']:
                    yield f'{path}:{line}: <{header}> is not for a core'
            for word in rooms.core['never']:
                m = re.search(word, source.code)
                if m:
                    line = source.code.count('\n', 0, m.start()) + 1
                    yield f'{path}:{line}: a core may not use {m.group()}'
        base = os.path.basename(path)
        if path.endswith('.h') and base in room.get('public', ()):
            wrong = check_alone(path)
            if wrong:
                yield wrong


def check_alone(path):
    """Does a header compile with nothing before it, and twice?"""
    cc = os.environ.get('CC', 'cc').split()
    if not shutil.which(cc[0]):
        return f'{path}: no compiler ({cc[0]}) to compile it alone'
    name = path.removeprefix('replay-engine/')
    done = subprocess.run(
        [*cc, '-std=gnu11', '-Wall', '-Werror', '-fsyntax-only', '-I',
         'replay-engine', '-x', 'c', '-'],
        input=f'#include "{name}"\n#include "{name}"\n',
        capture_output=True, text=True, timeout=60)
    if done.returncode == 0:
        return ''
    what = ' '.join(done.stderr.split())
    return f'{path}: does not compile alone: {what[:200]}'


def unit(path):
    """A .c file and its header are one."""
    return re.sub(r'(-int)?\.[ch]$', '', path)


def check_circles(rooms, name):
    """No circle of more than CIRCLE_MAX files in a room (Tarjan). A header may declare
    what several files define."""
    graph = {}
    for path, source in rooms.sources.items():
        if rooms.room_of[path] == name:
            to = graph.setdefault(unit(path), set())
            to.update(unit(o) for n, o in rooms.uses(path)
                      if rooms.room_of[o] == name and unit(o) != unit(path)
                      and not source.only_declares(n))
    index, low, stack, out = {}, {}, [], []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in sorted(graph.get(v, ())):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            part = []
            while True:
                part.append(stack.pop())
                if part[-1] == v:
                    break
            out.append(part)

    for v in sorted(graph):
        if v not in index:
            visit(v)
    for part in out:
        if len(part) > CIRCLE_MAX:
            yield (f'{name}: {len(part)} files use each other in a circle: ' +
                   ', '.join(sorted(map(os.path.basename, part))))


def check_patches(rooms):
    for path in sorted(glob.glob(rooms.patches['files'])):
        with open(path, encoding='utf-8') as f:
            for number, line in enumerate(f, 1):
                m = INCLUDE.match(line)
                if m and m.group(1) and m.group(3).startswith(('tt', 'tt-')) \
                        and m.group(3) not in rooms.patches['headers']:
                    yield f'{path}:{number}: a patch includes {m.group(3)}'


def check_strays(rooms):
    for top in sorted(glob.glob('*/')):
        if top in ('tests/', 'build/', 'scripts/') or \
                os.path.exists(top + 'meson-private'):
            continue
        for p in sorted(glob.glob(top + '**/*.[ch]', recursive=True)):
            if p not in rooms.sources:
                yield f'{p} belongs to no room: name it in scripts/layers.toml'


def check_drawing(rooms):
    with open(PAGE, encoding='utf-8') as f:
        text = f.read()
    at = text.find(DRAWING)
    if at < 0:
        yield f'{PAGE} lacks the line "{DRAWING}"'
        return
    want = '\n'.join(f'   {line}'.rstrip() for line in draw(rooms))
    if want not in text[at:]:
        yield (f'{PAGE} does not show these floors: put what --draw prints '
               'after "::", indented by three')


def check_readme(rooms):
    """The README lists all rooms, from the top floor down."""
    with open(README, encoding='utf-8') as f:
        text = f.read()
    last = 0
    for floor in reversed(rooms.floors):
        folders = [os.path.dirname(rooms.rooms[r]['files'][0]) for r in floor]
        found = [text.find(f'\n``{d}`` ') for d in folders]
        for folder, at in zip(folders, found):
            if at < 0:
                yield f'{README} does not list {folder}'
            elif at < last:
                yield f'{README} lists {folder} above a room of a higher floor'
        last = max(found + [last])


def draw(rooms):
    """The floors from the top down, one box each."""
    width = 72
    out = []
    for floor in reversed(rooms.floors):
        out.append('+' + '-' * width + '+')
        for name in floor:
            text = f' {name:<20} {rooms.rooms[name]["says"]}'
            out.append(f'|{text:<{width}}|')
            if len(text) > width:
                raise SystemExit(f'check-layering: "says" of {name} is '
                                 f'{len(text) - width} letters too long')
    out.append('+' + '-' * width + '+')
    return out


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    args = [a for a in sys.argv[1:] if a != '--draw']
    top = os.path.abspath(args[0] if args else os.path.join(here, '..'))
    os.chdir(top)
    rooms = Rooms(os.path.join(top, 'scripts'))
    if '--draw' in sys.argv:
        print('\n'.join(draw(rooms)))
        return
    checks = [('the floors of scripts/layers.toml', check_floors(rooms))]
    for name, room in rooms.rooms.items():
        wrong = [*check_uses(rooms, name), *check_includes(rooms, name),
                 *check_circles(rooms, name)]
        if room.get('is_core'):
            wrong += check_core(rooms, name)
        checks.append((f'{name} keeps to what is below it', wrong))
    checks += [
        ('patches to QEMU call hooks only', check_patches(rooms)),
        ('every source belongs to a room', check_strays(rooms)),
        ('the architecture page shows these floors', check_drawing(rooms)),
        ('README.rst lists the rooms in their order', check_readme(rooms)),
    ]
    failed = 0
    print(f'1..{len(checks)}')
    for number, (what, wrong) in enumerate(checks, 1):
        wrong = list(wrong)
        failed += bool(wrong)
        print(f'{"not ok" if wrong else "ok"} {number} {what}')
        for line in wrong:
            print(f'# {line}')
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
