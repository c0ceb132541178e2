# SPDX-License-Identifier: GPL-2.0-or-later
"""tt run-plugin RUN races: accesses of two vCPUs that nothing orders, and no others."""

import json
import os
import re
import subprocess

from guests import guest_args
from test_plugin import plugin
from ttlib import check, equal, goto_exact, limit, one_sentence, record, stopped_replay

LOCK, FLAG, INTERRUPT, BUG, PLAIN_FLAG, TURNS = 1, 2, 4, 8, 16, 32


def recorded(work, ways, rounds=60):
    """The run, and a list of the guest's symbols."""
    args = guest_args(work, 'races', f'do={ways} rounds={rounds}')
    run = record(work, args, name=f'run{ways}', options=',chaos=on').dir
    said = subprocess.run(['nm', args[args.index('-kernel') + 1]], check=True, timeout=30,
                          capture_output=True, text=True).stdout
    symbols = os.path.join(work, f'symbols{ways}')
    with open(symbols, 'w', encoding='ascii') as f:
        f.write(said)
    return run, symbols


def found(run, symbols, options=''):
    return json.loads(plugin(run, 'races' + options, '--json', '--symbols', symbols).stdout)


def functions(answer):
    """{functions of a pair: how many pairs}."""
    pairs = {}
    for race in answer['races']:
        names = {race[side]['function'].split('+')[0] for side in ('earlier', 'later')}
        key = '/'.join(sorted(names))
        pairs[key] = pairs.get(key, 0) + 1
    return pairs


@limit(60)
def test_ordered(work):
    """Locks, messages behind an atomic flag, interrupts and the start of a CPU order what
    two CPUs do: no race is reported."""
    answer = found(*recorded(work, LOCK | FLAG | INTERRUPT))
    equal(answer['races'], [], 'races')
    check(answer['exact'] and answer['accesses'] > 10000 and answer['atomics'] > 300,
          f'{answer}')
    equal((answer['forgotten_pages'], answer['resets']), (0, 0), 'forgotten')


@limit(60)
def test_planted(work):
    """A counter without a lock, among ordered ones: both instructions, at positions where
    they stand, the same each time."""
    run, symbols = recorded(work, LOCK | FLAG | INTERRUPT | BUG)
    answer = found(run, symbols)
    equal(set(functions(answer)), {'count_planted'}, 'functions')
    load, store = sorted({race[side]['pc'] for race in answer['races']
                          for side in ('earlier', 'later')}, key=lambda pc: int(pc, 16))
    kinds = {(side['pc'], side['write']) for race in answer['races']
             for side in (race['earlier'], race['later'])}
    equal(kinds, {(load, False), (store, True)}, 'who reads and who writes')
    address, = {(race['address'], race['length']) for race in answer['races']}
    with open(symbols, encoding='ascii') as f:
        where, = re.findall(r'^(\S+) . planted$', f.read(), re.M)
    equal((int(address[0], 16), address[1]), (int(where, 16), 4), 'what it is about')
    sides = {(side['position'], side['vcpu']): side['pc'] for race in answer['races']
             for side in (race['earlier'], race['later'])}
    with stopped_replay(work, run) as vm:
        for (position, vcpu), pc in sorted(sides.items()):
            goto_exact(vm, position)
            registers = vm.qmp.hmp('info registers -a').split('CPU#')[vcpu + 1]
            equal(int(re.search(r'[ER]IP=([0-9a-f]+)', registers)[1], 16), int(pc, 16),
                  f'at position {position}')
    text = plugin(run, 'races', '--symbols', symbols).stdout
    equal(plugin(run, 'races', '--symbols', symbols).stdout, text, 'again')
    equal(len(text.splitlines()), len(answer['races']) + 1, f'lines of {text}')
    check(re.search(r'^0x[0-9a-f]+\+4: CPU [01] writes at position \d+ \(0x[0-9a-f]+ '
                    r'count_planted\+0x[0-9a-f]+\), CPU [01] (reads|writes) at .*; \d+ time',
                    text, re.M), text)


@limit(60)
def test_a_part(work):
    """From the middle of a run on, locks that were taken before it are locks as well."""
    run, symbols = recorded(work, LOCK | BUG)
    said = plugin(run, 'races,memory=1', '--symbols', symbols).stdout
    check('pages were forgotten' in said and ' time' not in said.split('forgotten')[-1],
          f'with little memory: {said}')
    whole = found(run, symbols)
    middle = whole['races'][-1]['later']['position']
    for step in range(5):
        part = json.loads(plugin(run, 'races', '--json', '--symbols', symbols, '--from',
                                 str(middle + 37 * step)).stdout)
        real = {name for race in part['races'] if not race['atomic_later'] for name in
                (race[side]['function'].split('+')[0] for side in ('earlier', 'later'))}
        check(real <= {'count_planted'} and part['accesses'] < whole['accesses'], f'{real}')


@limit(60)
def test_plain_flag(work):
    """A message behind a flag of plain stores is a race; with flags=on only the flag is."""
    run, symbols = recorded(work, PLAIN_FLAG)
    answer = found(run, symbols)
    equal(set(functions(answer)), {'pass_plainly'}, 'functions')
    addresses = {race['address'] for race in answer['races']}
    equal(len(addresses), 2, 'the flag, and the message')
    answer = found(run, symbols, ',flags=on')
    equal(len({race['address'] for race in answer['races']}), 1, 'the flag alone')
    check(addresses > {race['address'] for race in answer['races']}, f'{answer}')


@limit(60)
def test_named_locks(work):
    """Functions that take and give a lock, by name: what they guard is no race, and how
    they work is not looked at."""
    run, symbols = recorded(work, TURNS)
    without = functions(found(run, symbols))
    check({'count_in_turn', 'turn_lock'} <= set(without), f'{without}')
    names = ',lock=turn_lock,unlock=turn_unlock,argument=none'
    equal(functions(found(run, symbols, names)), {}, 'with names')
    with open(symbols, encoding='ascii') as f:
        begin = {name: f'0x{addr}' for addr, name in
                 re.findall(r'^(\S+) . (turn_\w+)$', f.read(), re.M)}
    by_address = f',lock={begin["turn_lock"]},unlock={begin["turn_unlock"]},argument=none'
    check('count_in_turn' not in functions(found(run, symbols, by_address)), 'by address')


@limit(60)
def test_errors(work):
    """One sentence for what cannot be done."""
    run, symbols = recorded(work, LOCK)
    for what, args, rc, says in (
            ('races', ['-j', '2'], 2, 'leave out -j'),
            ('races,lock=turn_lock', [], 1, 'give --symbols'),
            ('races,lock=no_such', ['--symbols', symbols], 1, "no function 'no_such'"),
            ('races,lock=lock_word', ['--symbols', symbols], 1, "no function 'lock_word'"),
            ('races,memory=0', [], 1, "not 'memory=0'"),
            ('races,lock=0x12x', [], 1, "not 'lock=0x12x'")):
        done = plugin(run, what, *args, rc=rc)
        check(says in done.stderr and not done.stdout, f'{what}: {done.stderr}')
        if rc == 1:
            one_sentence(done.stderr.splitlines()[0], what)
