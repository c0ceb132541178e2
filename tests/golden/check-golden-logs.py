#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Both readers of the log, in C and in Python, say the same: about the golden
logs (and what the golden texts say), and about random logs.

    check-golden-logs.py DUMP-LOG-PROGRAM [FIRST-SEED]

Prints TAP.
"""
import importlib.util
import io
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, 'log-v1')
RANDOM_LOGS = 100

spec = importlib.util.spec_from_file_location(
    'tt_log_dump', os.path.join(HERE, '..', '..', 'scripts', 'tt-log-dump.py'))
dump = importlib.util.module_from_spec(spec)
spec.loader.exec_module(dump)


def first(program, path):
    """(status, output, first word of the complaint) of the C reader"""
    done = subprocess.run([program, path], capture_output=True, text=True,
                          timeout=60)
    return done.returncode, done.stdout, done.stderr.split(':')[0].strip()


def second(path):
    """The same of the Python reader."""
    out = io.StringIO()
    with open(path, 'rb') as f:
        data = f.read()
    try:
        dump.dump(dump.Log(data), out)
    except dump.Refused as e:
        return 1, out.getvalue(), e.args[0]
    return 0, out.getvalue(), ''


def both(program, path):
    return first(program, path), second(path)


def check_accepted(program, path):
    with open(path[:-4] + '.txt', encoding='ascii') as f:
        want = (0, f.read(), '')
    one, two = both(program, path)
    if one != want:
        return f'the C reader says {one}'
    return '' if two == want else f'the Python reader says {two}'


def check_rejected(program, path):
    want = os.path.basename(path).split('-')[0]
    for status, _, complaint in both(program, path):
        if (status, complaint) != (1, want):
            return f'status {status}, {complaint}'
    return ''


def check_random(program, seed):
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, 'log')
        subprocess.run([program, '--random', str(seed), path], check=True,
                       timeout=60)
        one, two = both(program, path)
    if one != two:
        return 'the readers differ'
    return '' if one[0] == 0 else f'refused: {one[2]}'


def cases(program, seed):
    for folder, check in (('accept', check_accepted),
                          ('reject', check_rejected)):
        path = os.path.join(GOLDEN, folder)
        for name in sorted(os.listdir(path)):
            if name.endswith('.log'):
                yield f'{folder}/{name}', check, os.path.join(path, name)
    for s in range(seed, seed + RANDOM_LOGS):
        yield f'random-log-of-seed-{s}', check_random, s


def main():
    program = sys.argv[1]
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    failed = number = 0
    for name, check, arg in cases(program, seed):
        number += 1
        wrong = check(program, arg)
        print(f'{"not ok" if wrong else "ok"} {number} {name}')
        if wrong:
            print(f'# {wrong[:500]}')
            failed += 1
    print(f'1..{number}')
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
