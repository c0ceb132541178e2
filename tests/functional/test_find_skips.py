# SPDX-License-Identifier: GPL-2.0-or-later
"""tt find does not execute what cannot change a condition of memory, and misses nothing."""

import json
import os
import re

from guests import guest_args
from test_find import find, places, values
from test_find_written import end_of_run
from ttlib import BUILD, check, equal, limit, qemu_binary, record, run_tool, tt

SEEN = '*(u32 *)0x20000000'
ROUNDS = 60_000_000         # of two instructions: some checkpoints at every place of work


def without(work):
    """A QEMU that executes all."""
    path = os.path.join(work, 'all')
    with open(path, 'w', encoding='ascii') as out:
        out.write('#!/bin/sh\nfor a; do\n  shift\n  case $a in\n'
                  '  replay,*) a=$a,x-omit=search-skip ;;\n  esac\n  set -- "$@" "$a"\n'
                  f'done\nexec {qemu_binary()} "$@"\n')
    os.chmod(path, 0o755)
    return path


def still_run(work, rounds=ROUNDS, options=',checkpoint-interval=0.02'):
    run = record(work, guest_args(work, 'still64', f'rounds={rounds}'), timeout=90,
                 options=options)
    check(b'still64: end' in run.serial, run.serial)
    return run


def both(work, run, condition, *args):
    """With and without; and what was left out."""
    fast = find(run, condition, *args)
    slow = json.loads(tt('find', run.dir, condition, '--qemu', without(work), '--json',
                         *args).stdout)
    equal((slow['complete'], slow['left_out']), (True, 0), 'all is executed')
    equal(fast['found'], slow['found'], f'{condition} {args}')
    return fast


@limit(150)
def test_finds_all_the_same(work):
    """What other page tables, another address, an entry and a table make of a value that
    nobody writes is found; most of the run is not executed."""
    run = still_run(work)
    end = end_of_run(run.dir)
    for args, n in (([], 4), (['--changes'], 8), (['--last'], 1), (['-j', '2'], 4)):
        condition = SEEN if '--changes' in args else f'{SEEN} == 5'
        answer = both(work, run, condition, *args)
        equal(len(answer['found']), n, f'{condition} {args}: {answer}')
        # --last ends with the last part
        check(answer['left_out'] > (end // 20 if '--last' in args else end // 3),
              f'{args}: {answer["left_out"]} of {end}')
    written = both(work, run, SEEN, '--written')
    equal([v for _, v in values(written)], [5, 5, 0], 'stores, one of the same value')
    check(written['left_out'] > end // 3, f'{written["left_out"]} of {end}')
    first = both(work, run, f'{SEEN} == 5', '--first')
    equal(len(first['found']), 1, 'the first')
    # one that is true all the time but for moments; one of other page tables only
    both(work, run, f'{SEEN} == 0')
    tables = places(find(run, f'{SEEN} == 5', '--first'))[0]
    cr3 = int(find(run, '$cr3', '--from', str(tables), '--to', str(tables + 1))
              ['found'][0]['value'], 16)
    equal(len(both(work, run, f'$cr3 == {cr3:#x} && {SEEN} == 5')['found']), 1,
          'with these tables')
    never = both(work, run, f'$cr3 == 0x123000 && {SEEN} == 5')
    equal(never['found'], [], 'tables that were never used')
    check(never['left_out'] > end // 3, f'{never["left_out"]} of {end}')


@limit(60)
def test_of_what_is_not_known(work):
    """A part that begins in the middle; what is written all the time; a run without
    checkpoints."""
    run = still_run(work)
    middle = end_of_run(run.dir) // 2
    both(work, run, f'{SEEN} == 5', '--from', str(middle))
    both(work, run, SEEN, '--changes', '--from', str(middle), '--to', str(middle * 3 // 2))
    short = still_run(work, 1000, ',checkpoint-interval=0')
    check(both(work, short, SEEN, '--changes')['found'], 'without checkpoints')


@limit(90)
def test_tables_at_their_own_address(work):
    """What is written where a page table is, or where one seems to be, is in checkpoints:
    found, and read by replays that begin with one."""
    n = 8
    run = record(work, guest_args(work, 'table64', f'rounds={ROUNDS // 4} n={n}'), timeout=90,
                 options=',checkpoint-interval=0.02')
    check(b'table64: end' in run.serial, run.serial)
    symbols = run_tool('nm', f'{BUILD}/guests/table64.elf')[0]
    first = int(re.search(r'^0*([0-9a-f]+) \w first$', symbols, re.M).group(1), 16)
    wanted = [i << 12 for i in range(1, n + 1)]
    for address in first + 8 * 300, 0x1c00008:
        changes = both(work, run, f'*(u64 *){address:#x}', '--changes', '--limit', '10000')
        equal([v for _, v in values(changes)][-n:], wanted, 'values')
        for pos, _ in values(changes)[-n:]:     # from the checkpoints behind it
            find(run, f'*(u64 *){address:#x} == 5', '--from', str(pos + ROUNDS // 3),
                 '--to', str(min(pos + ROUNDS, end_of_run(run.dir))))
