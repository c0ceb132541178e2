#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks the #include lines of our sources against scripts/layers.toml.

    check-layering.py [TOP-DIRECTORY]

Prints TAP, one line a layer. Exit status 1 when a rule is broken, when a file
belongs to no layer, or when a header of the cores does not compile alone.
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
COMMENT = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
SOURCES = ['*/*.[ch]', '*/*/*.[ch]',
           'replay-engine/include/tt/*.h']
NO_LAYER = ('tests', 'build', 'scripts')


def includes(path):
    """(line number, bracket, header) of each; of a patch: what it adds."""
    is_patch = path.endswith('.patch')
    with open(path, encoding='utf-8', errors='replace') as f:
        for number, line in enumerate(f, 1):
            m = INCLUDE.match(line)
            if m and bool(m.group(1)) == is_patch:
                yield number, m.group(2), m.group(3)


def is_ours(header):
    return header.startswith(('tt/', 'tt-'))


def matches(name, globs):
    return any(fnmatch.fnmatch(name, g) for g in globs)


def ours_for(layer, path):
    allowed = list(layer['ours'])
    for pattern, more in layer.get('more', {}).items():
        if fnmatch.fnmatch(os.path.basename(path), pattern):
            allowed += more
    return allowed


def check_include(layer, path, bracket, header):
    """'' or what is wrong."""
    if is_ours(header):
        if matches(header, ours_for(layer, path)):
            return ''
        return f'"{header}" is not for this layer'
    if bracket == '"':
        return '' if layer['foreign'] else f'"{header}" is not ours'
    if 'system' in layer and header not in layer['system']:
        return f'<{header}> is not in the list'
    return ''


def check_words(layer, path):
    with open(path, encoding='utf-8') as f:
        code = COMMENT.sub(lambda m: '\n' * m.group().count('\n'), f.read())
    for word in layer.get('never', ()):
        m = re.search(word, code)
        if m:
            line = code.count('\n', 0, m.start()) + 1
            yield f'{path}:{line}: `{m.group()}` must not be used'


def check_layer(layer, paths):
    for path in paths:
        for number, bracket, header in includes(path):
            wrong = check_include(layer, path, bracket, header)
            if wrong:
                yield f'{path}:{number}: {wrong}'
        yield from check_words(layer, path)


def has_no_layer(path):
    top = path.split('/')[0]
    return top in NO_LAYER or os.path.exists(f'{top}/meson-private')


def check_alone(path, top):
    """Does a header compile with nothing before it, and twice?"""
    cc = os.environ.get('CC', 'cc').split()
    if not shutil.which(cc[0]):
        return f'{path}: no compiler ({cc[0]}) to compile it alone'
    inc = os.path.join(top, 'replay-engine/include')
    name = os.path.relpath(path, inc)
    done = subprocess.run(
        [*cc, '-std=gnu11', '-Wall', '-Werror', '-fsyntax-only', '-I', inc,
         '-x', 'c', '-'], input=f'#include "{name}"\n#include "{name}"\n',
        capture_output=True, text=True, timeout=60)
    if done.returncode == 0:
        return ''
    what = ' '.join(done.stderr.split())
    return f'{path}: does not compile alone: {what[:200]}'


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    top = os.path.abspath(sys.argv[1] if len(sys.argv) > 1
                          else os.path.join(here, '..'))
    with open(os.path.join(here, 'layers.toml'), 'rb') as f:
        layers = tomllib.load(f)['layer']
    os.chdir(top)
    seen = set()
    number = failed = 0
    print(f'1..{len(layers) + 1}')
    for layer in layers:
        paths = sorted(p for g in layer['files'] for p in glob.glob(g))
        seen.update(paths)
        wrong = list(check_layer(layer, paths))
        if layer.get('compile_alone'):
            wrong += filter(None, (check_alone(os.path.join(top, p), top)
                                   for p in paths))
        number += 1
        failed += bool(wrong)
        skip = '' if paths else ' # SKIP has no files yet'
        print(f'{"not ok" if wrong else "ok"} {number} {layer["name"]}{skip}')
        for line in wrong:
            print(f'# {line} ({layer["reason"]})')
    strays = sorted({p for g in SOURCES for p in glob.glob(g)
                     if not has_no_layer(p)} - seen)
    print(f'{"not ok" if strays else "ok"} {number + 1} '
          'every source belongs to a layer')
    for path in strays:
        print(f'# {path}: name it in scripts/layers.toml')
    sys.exit(1 if failed or strays else 0)


if __name__ == '__main__':
    main()
