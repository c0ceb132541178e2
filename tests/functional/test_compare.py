# SPDX-License-Identifier: GPL-2.0-or-later
"""System calls of a recorded guest's programs, and two versions of a program compared."""

import json
import os
import re

from guests import own_args
from test_past import Terminal
from ttlib import (check, equal, goto_exact, limit, one_sentence, qemu_binary, read_bytes,
                   replay, Run, run_tool, seed, stopped_replay, tt, Vm)

SOURCE = os.path.join(os.path.dirname(__file__), 'versions.c')
SCRIPT = b'''#!/bin/busybox sh
mkdir -p /tmp
echo TT-READY
read line < /dev/console
/own/old /tmp/list
/own/new /tmp/list
/own/old /tmp/list
/own/pie-old /tmp/list
/own/pie-new /tmp/list
echo TT-DONE own
read line < /dev/console
'''
WRITES = [('write', f'write(3, "line {i}\\n", 7) = 7') for i in range(5)]
NUMBERS = {'write': 1, 'openat': 257, 'unlink': 87, 'close': 3}


def recorded(work):
    files = {'own/run': SCRIPT}
    for name, more in (('old', ['-static']), ('new', ['-static', '-DNEW']),
                       ('pie-old', ['-static-pie']), ('pie-new', ['-static-pie', '-DNEW'])):
        path = os.path.join(work, name)
        run_tool('cc', '-O1', '-fno-builtin', *more, '-o', path, SOURCE)
        files[f'own/{name}'] = read_bytes(path)
    path = os.path.join(work, 'tty')
    args = [*own_args(work, files), '-serial', f'unix:{path},server=on,wait=off']
    with Vm(work, args, qmp=1, serial=False, timeout=100) as vm:
        tty = Terminal(path)
        tty.expect(b'TT-READY')
        run = os.path.join(work, 'rec.run')
        vm.qmp.cmd('tt-record-start', 60, dir=run, checkpoint_interval=1)
        before = len(tty.text)
        tty.socket.sendall(b'go\n')
        tty.expect(b'TT-DONE')
        vm.qmp.cmd('tt-record-stop', 60)
    return Run(run, tty.text[before:], vm)


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
    equal(children, ['/own/old', '/own/new', '/own/old', '/own/pie-old', '/own/pie-new'],
          'processes of the children')

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
    check_branches(work, run, old)
    check_refused(run)
    check('replay exact' in replay(work, run, name='again').stderr, 'it is exact')


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
    check("'EXPRESSION at POINT'" in done.stderr, done.stderr)


def image_of(path):
    """Where its code is: the lowest and the highest address."""
    found = [(int(at, 16), int(size, 16)) for at, size in re.findall(
        r'LOAD\s+0x\w+\s+0x(\w+)\s+0x\w+\s+0x\w+\s+0x(\w+)\s+R E',
        run_tool('readelf', '-lW', path)[0])]
    return min(at for at, _ in found), max(at + size for at, size in found)


def check_branches(work, run, old):
    """The jumps that the plugin shows are those of a branch trace of the same part, but
    for a few that the kernel interrupts. Two executions of one program are the same, also
    at other addresses; an old and a new one part where they write something else."""
    path = os.path.join(work, 'old')
    low, high = image_of(path)
    begin = old[0]['position'] - 1000
    end = next(c['position'] for c in old if 'clone' in c['text'] or 'fork' in c['text'])
    said = tt('run-plugin', run.dir, f'branches,table={old[0]["table"]:x},low={low:x},'
              f'high={high:x}', '--from', str(begin), '--to', str(end), '--quiet', '--qemu',
              qemu_binary()).stdout
    jumps = {(int(at) + 1, int(to, 16)) for at, to in
             re.findall(r'^jump (\d+) \w+ (\w+)$', said, re.M)}
    trace = os.path.join(work, 'trace')
    tt('trace', run.dir, trace, '--from', str(begin), '--to', str(end), '--qemu',
       qemu_binary())
    wanted, before = set(), 0
    for at, pc in re.findall(r'^\s*([\d,]+)\s.*?0x(\w+)', tt('branches', trace).stdout, re.M):
        pc = int(pc, 16)
        if low <= pc < high and low <= before < high:
            wanted.add((int(at.replace(',', '')), pc))
        before = pc
    check(len(wanted) > 500, f'{len(wanted)} jumps in the trace')
    equal(wanted - jumps, set(), 'jumps that the plugin does not show')
    check(len(jumps - wanted) < len(wanted) // 20, f'{len(jumps - wanted)} of {len(jumps)}')

    def branches(name, other, *more, rc=0):
        names = [os.path.join(work, n.split('#')[0]) for n in (name, other)]
        return asked('compare', run.dir, run.dir, '--process', name, '--with', other, '--by',
                     'branches', '--symbols', names[0], '--with-symbols', names[1], *more,
                     rc=rc)
    same = branches('old', 'old#2')
    check(same['same'] and same['compared'][0] > 500, f'{same}')
    for kind in '', 'pie-':
        answer = branches(kind + 'old', kind + 'new', '--all', rc=3)
        texts = [' '.join(j['text'] for side in ('first', 'second') for j in d[side])
                 for d in answer['differences']]
        check(any('unlink' in t for t in texts[1:]) and 'unlink' not in texts[0], f'{texts}')
    done = tt('compare', run.dir, run.dir, '--process', 'old', '--by', 'branches', '--qemu',
              qemu_binary(), rc=2)
    check('--by branches needs --symbols' in done.stderr, done.stderr)
    done = tt('compare', run.dir, run.dir, '--process', 'old#2', '--by', 'branches',
              '--symbols', os.path.join(work, 'pie-old'), '--qemu', qemu_binary(), rc=1)
    check('did not begin where' in one_sentence(done.stderr, 'another file'), done.stderr)


def check_refused(run):
    for args, words in ((['--process', 'nobody'], "no program named 'nobody' began"),
                        (['--process', 'old#9'], "only 2 programs named 'old' began")):
        done = tt('syscalls', run.dir, '--qemu', qemu_binary(), *args, rc=1)
        check(words in one_sentence(done.stderr, str(args)), done.stderr)
    for args, words in (([], '--process says which program'),
                        (['--process', ''], "#1 on, not ''"),
                        (['--process', 'old#0'], "#1 on, not 'old#0'"),
                        (['--process', 'old', '--with', '#1'], "#1 on, not '#1'"),
                        (['--process', 'old', '--by', ''], "'EXPRESSION at POINT'"),
                        (['--process', 'old', '--by', '$rdx at nowhere'],
                         "in '$rdx at nowhere', 'nowhere' is a symbol"),
                        (['--process', 'old', '--by', '$rdx + at 1'], 'at character 8')):
        done = tt('compare', run.dir, run.dir, *args, '--qemu', '/bin/false', rc=2)
        check(words in done.stderr, f'{args}: {done.stderr}')
    done = tt('compare', run.dir, '/no/run', '--process', 'old', '--qemu', '/bin/false', rc=1)
    check("no run '/no/run'" in one_sentence(done.stderr, 'no run'), done.stderr)
    done = tt('syscalls', run.dir, '--limit', '0', '--qemu', '/bin/false', rc=2)
    check('a number from 1 on' in done.stderr, done.stderr)
    done = tt('syscalls', run.dir, '--qemu', '/nowhere', rc=1)
    check('/nowhere' in one_sentence(done.stderr, 'qemu'), done.stderr)
