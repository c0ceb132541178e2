# SPDX-License-Identifier: GPL-2.0-or-later
"""System calls of a recorded guest's programs, and two versions of a program compared."""

import json
import os
import re

from guests import own_args
from ttlib import (check, check_exact, equal, goto_exact, limit, one_sentence, qemu_binary,
                   read_bytes, record, run_tool, seed, stopped_replay, tt)

SOURCE = os.path.join(os.path.dirname(__file__), 'versions.c')
SCRIPT = b'''#!/bin/busybox sh
mkdir -p /tmp
/own/old /tmp/list
/own/new /tmp/list
/own/old /tmp/list
echo TT-DONE own
'''
WRITES = [('write', f'write(3, "line {i}\\n", 7) = 7') for i in range(5)]
NUMBERS = {'write': 1, 'openat': 257, 'unlink': 87, 'close': 3}


def recorded(work):
    files = {'own/run': SCRIPT}
    for name, more in (('old', []), ('new', ['-DNEW'])):
        path = os.path.join(work, name)
        run_tool('cc', '-O1', '-static', *more, '-o', path, SOURCE)
        files[f'own/{name}'] = read_bytes(path)
    return record(work, own_args(work, files), options=',checkpoint-interval=1',
                  timeout=100)


def asked(command, *args, rc=0):
    done = tt(command, *args, '--json', '--qemu', qemu_binary(), rc=rc)
    return json.loads(done.stdout)


def calls(run, *args):
    return asked('syscalls', run, *args)['calls']


def names(found):
    return [(re.match(r'\w+', c['text'])[0], c['text']) for c in found]


def check_places(work, run, found):
    """A replay that goes there stands at a SYSCALL with that number; one that goes to where
    it returned stands at a SYSRET or IRET with that result."""
    with stopped_replay(work, run) as vm:
        for call in found:
            for position, code, rax in ((call['position'], r'0x0f\s+0x05', call['number']),
                                        (call['returned'], r'0x48\s+0x(cf|0f)',
                                         call['result'] % 2**64)):
                goto_exact(vm, position)
                regs = vm.qmp.hmp('info registers')
                equal(int(re.search(r'RAX=(\w+)', regs)[1], 16), rax, f'RAX at {position}')
                pc = re.search(r'RIP=(\w+)', regs)[1]
                bytes_there = vm.qmp.hmp(f'x /2xb 0x{pc}')
                check(re.search(code, bytes_there), f'at {position}: {bytes_there}')


@limit(100)
def test_versions(work):
    """What each program did, in order, with its positions; where two versions differ, and
    that two runs of one do not. With several processes it is the same."""
    rng = seed()
    run = recorded(work)
    old = calls(run.dir, '--process', 'old')
    texts = names(old)
    equal([t for t in texts if t[0] == 'write'], WRITES, 'what old wrote')
    check(('openat', 'openat(-100, "/tmp/list", 66, 384) = 3') in texts, f'{texts}')
    equal(texts[-1], ('exit_group', 'exit_group(0)'), 'the end of old')
    check(all(c['process'] == '/own/old' for c in old), 'processes')
    check_places(work, run, rng.sample([c for c in old if 'result' in c], 4))
    everything = calls(run.dir)
    equal(calls(run.dir, '-j', '2'), everything, 'two processes')
    children = [c['process'] for c in everything if "the child's" in c['text']]
    equal(children, ['/own/old', '/own/new', '/own/old'], 'processes of the children')

    same = asked('compare', run.dir, run.dir, '--process', 'old', '--with', 'old#2')
    equal((same['same'], same['compared'][0]), (True, len(old)), 'old and old')
    answer = asked('compare', run.dir, run.dir, '--process', 'old', '--with', '/own/new',
                   '--all', '-j', '2', rc=3)
    first, second = answer['differences']
    equal(names(first['first']), [WRITES[3]], 'the old fourth line')
    equal(names(first['second']), [('write', 'write(3, "line 30\\n", 8) = 8')],
          'the new fourth line')
    equal((second['first'], names(second['second'])),
          ([], [('unlink', 'unlink("/tmp/list") = 0')]), 'what new does besides')
    equal(first['alike'][0], texts.index(WRITES[3]), 'calls that are alike')
    text = tt('compare', run.dir, run.dir, '--process', 'old', '--with', 'new', '--qemu',
              qemu_binary(), rc=3).stdout
    check('1 more difference' in text and 'unlink' not in text, text)
    check_values(work, run)
    check_refused(run)
    check_exact(work, run, name='again')


def check_values(work, run):
    """Lengths of what each writes, less 7, where it calls write: a value of 0 counts."""
    args = ['compare', run.dir, run.dir, '--process', 'old', '--symbols',
            os.path.join(work, 'old'), '--with', 'new', '--with-symbols',
            os.path.join(work, 'new')]
    answer = asked(*args, '--by', '$rdx - 7 at write', rc=3)
    (only,) = answer['differences']
    equal((answer['compared'], only['alike']), ([5, 5], [3, 3]), 'lengths')
    equal([[v['text'] for v in only[side]] for side in ('first', 'second')],
          [['0x0 (0)'], ['0x1 (1)']], 'the fourth length')
    done = tt(*args, '--by', '$rdx', '--qemu', qemu_binary(), rc=2)
    check("'EXPRESSION at POINT'" in one_sentence(done.stderr, 'no point'), done.stderr)


def check_refused(run):
    for args, words in ((['--process', 'nobody'], "no program named 'nobody' began"),
                        (['--process', 'old#9'], "only 2 programs named 'old' began")):
        done = tt('syscalls', run.dir, '--qemu', qemu_binary(), *args, rc=1)
        check(words in one_sentence(done.stderr, str(args)), done.stderr)
    done = tt('compare', run.dir, run.dir, rc=2)
    check('--process says which program' in done.stderr, done.stderr)
    done = tt('syscalls', run.dir, '--qemu', '/nowhere', rc=1)
    check('/nowhere' in one_sentence(done.stderr, 'qemu'), done.stderr)
