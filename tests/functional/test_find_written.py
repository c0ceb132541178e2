# SPDX-License-Identifier: GPL-2.0-or-later
"""tt find --written: each write to a place in memory, also with the value that it has."""

import collections
import json
import re

from guests import guest_args
from origins import Truth
from test_find import SPAN, find, places, values
from test_find_types import SYMBOLS, typed, types_run
from ttlib import (BUILD, Gdb, check, equal, goto, limit, qemu_binary, record, replayer,
                   run_tool, seed, stopped_replay, tt)

MANY = ['--limit', '1000000']
PART = 60000


def end_of_run(run):
    return json.loads(tt('info', run, '--json').stdout)['end']


def covering(run, kind, addr, size):
    """Positions behind events of the log that write the bytes. In an instruction, that of an
    event is behind it already."""
    for line in tt('log', run, '--json', '--kind', kind).stdout.splitlines():
        ev = json.loads(line)
        at = int(ev['val'], 16)
        if at < addr + size and addr < at + ev['length']:
            yield ev['position'] + (not ev['nested'])


def symbol(name, program=f'{BUILD}/guests/dmacode.elf'):
    return re.search(rf'^0*([0-9a-f]+) \w {re.escape(name)}$', run_tool('nm', program)[0],
                     re.M).group(1)


@limit(60)
def test_of_a_program(work):
    """A variable that is always written with its value, one that is written twice with one
    value, a bit-field, and one through a pointer that moves."""
    run = types_run(work).dir
    written = ['--written', '--from', str(places(typed(run, 'at step'))[0])]
    equal(len(places(typed(run, 'same', '--changes'))), 0, 'changes of what stays')
    equal([v for _, v in values(typed(run, 'same', *written))], [0] * 6, 'same')
    equal([v for _, v in values(typed(run, 'stamp', *written))],
          [v for i in range(6) for v in (i, i)], 'stamp')
    hits = typed(run, 'stamp', *written)['found']
    check(all(hit['symbol'].startswith('step+') for hit in hits), f'{hits}')
    # first, second and third share what is written for each of them
    bits = [v for _, v in values(typed(run, 'table[1].second', *written))]
    check(2**64 - 1 in bits and 2**64 - 5 in bits and len(bits) > 3, f'bit-field: {bits}')
    moving = values(typed(run, 'current_thing->word', *written))
    equal([v for _, v in moving], [i * 0x01010101 + 0xf0 for i in range(6)], 'by pointer')
    said = tt('find', run, 'stamp', *written, '--symbols', SYMBOLS, '--qemu',
              qemu_binary()).stdout
    check(len(re.findall(r'value 0x5$', said, re.M)) == 2, said)


@limit(60)
def test_addresses_of_firmware(work):
    """What is no address of 32 bits leads to nothing in firmware, which has no others; one
    with copies of its sign above it does."""
    run = types_run(work).dir
    for how in ([], ['--changes'], ['--written']):
        equal(places(find(run, '*(u32 *)(1UL << 63)', *how)), [], f'{how}')
    first = values(find(run, '*(u64 *)0xfffffff0UL', '--to', '1000'))
    check(first, 'the first instruction is not there')
    equal(values(find(run, '*(u64 *)-16', '--to', '1000')), first, 'with a sign')


def agree(run, part, address, size):
    """By stops, and by single steps."""
    fast = find(run, f'*({size} *){address:#x}', '--written', *part, *MANY)
    slow = find(run, f'*({size} *)({address:#x} + 0 * $rax)', '--written', *part, *MANY)
    equal((fast['kind'], slow['kind']), ('memory', 'registers'), 'kinds')
    equal(values(fast), values(slow), f'{size} {address:#x}, {part}')
    return fast


@limit(200)
def test_like_single_steps(work):
    """With interrupts, traps, several vCPUs and DMA, at random places."""
    chance, written, same = seed(), 0, 0
    for guest in ('random', 'smp', 'selfdma'):
        run = record(work, guest_args(work, guest), name=guest).dir
        end, rounds = end_of_run(run), 4
        while rounds:
            start = chance.randrange(max(end - SPAN, 1))
            part = ['--from', str(start), '--to', str(start + SPAN)]
            steps = find(run, '$rsp', '--changes', *part, *MANY)['found']
            if not steps:
                continue
            rounds -= 1
            step = chance.choice(steps)
            address = (int(step['value'], 16) - chance.choice([0, 2, 4, 8, 16])) % 2**32
            size = chance.choice(['u8', 'u16', 'u32', 'u64'])
            hits = values(agree(run, part, address, size))
            changes = find(run, f'*({size} *){address:#x}', '--changes', *part, *MANY)
            check(set(places(changes)) <= {p for p, _ in hits}, 'a change is a write')
            written += len(hits)
            same += len(hits) - len(changes['found'])
    check(written and same, f'{written} writes, {same} without a change')


@limit(120)
def test_all_that_a_plugin_sees(work):
    """A plugin's list of all stores has the same; what it cannot see, a device has
    written, the delivery of an interrupt or a load of a segment."""
    chance, seen = seed(), 0
    for guest, append in (('random', 'seed=10 blocks=30 modes=0'), ('lines64', None)):
        run = record(work, guest_args(work, guest, append), name=guest).dir
        truth = Truth(work, run, max(end_of_run(run) - PART, 1))
        begin = ['--from', str(truth.positions[0])]
        for _ in range(8):
            size = chance.choice((1, 2, 4, 8))
            addr = max(chance.sample(truth.bytes, 5), key=lambda b: len(truth.stores[b]))
            addr &= ~(size - 1)
            stores = {truth.positions[n] + 1 for byte in range(addr, addr + size)
                      for n in truth.stores.get(byte, ())}
            got, mmu_writes = writes(run, f'*(u{8 * size} *)', addr, begin)
            check(stores <= got, f'{addr:#x}: missing {sorted(stores - got)[:5]}')
            rest = set() if mmu_writes else \
                got - stores - {*covering(run, 'ram', addr, size)}
            rest = {p - 1 for p in rest} & set(truth.positions)
            rest = {p for p in rest if not is_odd(run, truth, p)}
            equal(rest, set(), f'{addr:#x}: written by no store')
            seen += len(stores)
    check(seen > 50, f'{seen} stores')


def writes(run, pointer, addr, begin):
    """All of them, and whether the MMU writes there too, which sets bits in page tables: then
    a search by stops says that it may not have all, and single steps do."""
    args = ['--qemu', qemu_binary(), '--json', '--written', *begin, *MANY]
    done = tt('find', run, f'{pointer}{addr:#x}', *args, rc=None)
    mmu_writes = done.returncode == 1 and 'set bits of a page table' in done.stdout
    if mmu_writes:
        done = tt('find', run, f'{pointer}({addr:#x} + 0 * $rax)', *args, rc=None)
    equal(done.returncode, 0, done.stderr)
    return set(places(json.loads(done.stdout))), mmu_writes


def is_odd(run, truth, position):
    """Is the instruction after this one's not the next in memory? It may have trapped, and
    the delivery has written. Or does it load a segment, and marked that as used?"""
    n = truth.positions.index(position)
    if n + 1 >= len(truth.pc) or not 0 < truth.pc[n + 1] - truth.pc[n] < 16:
        return True
    code = find(run, '*(u16 *)$rip', '--from', str(position), '--to', str(position + 1))
    return code['found'][0]['value'][-2:] in ('8e', '07', '17', '1f') or \
        code['found'][0]['value'] == '0xf'      # LTR


@limit(60)
def test_by_a_device(work):
    """Each transfer of a disk over a word is one write, also of what was there already."""
    run = record(work, guest_args(work, 'selfdma', 'rounds=3')).dir
    for word in (0, 8191, 32767):
        addr = (32 << 20) + 4 * word
        hits = places(find(run, f'*(u32 *){addr:#x}', '--written', *MANY))
        events = [*covering(run, 'ram', addr, 4)]
        check(len(events) >= 3, f'{events}')
        for position in events:
            check(position in hits, f'{addr:#x}: event before {position}, but {hits}')
    run = record(work, guest_args(work, 'dmacode', 'rounds=50'), name='dmacode').dir
    addr = int(symbol('before.1'), 16)
    hits = places(find(run, f'*(u8 *){addr:#x}', '--written', *MANY))
    events = {*covering(run, 'ram', addr, 1)}
    check(len(events) > 50 and events == {p for p in hits if p in events}, f'{events} {hits}')
    changes = find(run, f'*(u8 *){addr:#x}', '--changes', *MANY)['found']
    check(len(changes) < len(events), f'all of {len(events)} writes are changes')


@limit(60)
def test_part_of_a_page(work):
    """A device that writes some sectors of a page, which are on a disk of the run, does not
    write the others."""
    run = record(work, guest_args(work, 'partdma'), options=',disk-reads=store').dir
    named = tt('log', run, '--json', '--kind', 'disk').stdout.splitlines()
    equal([int(json.loads(line)['aux']) for line in named], [4096, 2048, 1024], f'{named}')
    for offset, writes in ((0, 2), (2044, 2), (2048, 1), (3072, 2), (4092, 2)):
        hits = find(run, f'*(u32 *){(32 << 20) + offset:#x}', '--written', *MANY)['found']
        equal([hit['value'] for hit in hits if hit['value'] != '0x0'], [hits[-1]['value']] *
              writes, f'byte {offset}')


@limit(60)
def test_over_two_pages(work):
    """A place that lies in two pages hears of a device that writes to either."""
    run = record(work, guest_args(work, 'selfdma', 'rounds=3')).dir
    for middle in ((32 << 20) + 4096 - 4, (32 << 20) - 4, (32 << 20) + 131072 - 4):
        hits = places(find(run, f'*(u64 *){middle:#x}', '--written', *MANY))
        events = {*covering(run, 'ram', middle, 8)}
        check(events and events <= set(hits), f'{middle:#x}: {events}, {hits}')
    # the first byte of code is written anew, and stays as it is
    run = record(work, guest_args(work, 'dmacode', 'rounds=50'), name='dmacode').dir
    before = int(symbol('code'), 16) - 1
    events = {*covering(run, 'ram', before, 2)}
    hits = places(find(run, f'*(u16 *){before:#x}', '--written', *MANY))
    changes = find(run, f'*(u16 *){before:#x}', '--changes', *MANY)['found']
    check(events <= set(hits) and len(changes) < len(events) // 2, f'{events}, {hits}')


ALIAS = f'{BUILD}/guests/alias64.elf'
NAMES = ('var', 'bytes', 'bits', 'pointer', 'by_stores', 'by_mapping', 'by_neighbours')


def alias_run(work):
    """A run, and the part of it in which it writes; and the address of a name."""
    run = record(work, guest_args(work, 'alias64'), timeout=60)
    check(b'alias64: end' in run.serial, run.serial)
    at = {name: int(symbol(name, ALIAS), 16) for name in NAMES}
    begins = places(find(run, f'at {at["by_stores"]:#x}'))
    equal(len(begins), 1, 'calls')
    return run, ['--from', str(begins[0]), '--to', str(end_of_run(run.dir))], at


@limit(120)
def test_through_other_addresses(work):
    """A store by another mapping of the page, in the middle of a block, by an instruction
    of many bytes or of a string, or moved from a device's register."""
    run, part, at = alias_run(work)
    hits = [v for _, v in values(agree(run, part, at['var'], 'u32'))]
    equal((hits[:9], len(hits)), ([5, 5, 6, 6, 7, 7, 7, 7, 8], 11), 'var, registers last')
    equal(len(values(agree(run, part, at['var'], 'u8'))), 10, 'its first byte')
    equal(len(values(agree(run, part, at['var'] + 2, 'u8'))), 9, 'its third byte')
    edge = at['bytes'] + 4096
    for address, size, least in ((edge, 'u32', 10), (edge - 4, 'u64', 11), (edge + 4, 'u8', 3),
                                 (edge - 1, 'u8', 4), (edge + 400, 'u64', 1),
                                 (at['pointer'], 'u64', 3)):
        fast = agree(run, part, address, size)
        check(len(fast['found']) >= least, f'{size} {address - edge}: {fast}')
    by_pointer = f'**(u32 **){at["pointer"]:#x}'
    fast = find(run, by_pointer, '--written', *part)
    slow = find(run, f'*(*(u32 **){at["pointer"]:#x} + 0 * $rax)', '--written', *part)
    equal(values(fast), values(slow), 'by pointer')


@limit(60)
def test_mapping_is_no_write(work):
    """Where another page appears, nothing is written; and the place can be one of some
    page tables only."""
    run, part, at = alias_run(work)
    hits = agree(run, part, 512 << 20, 'u32')['found']
    inside, = places(find(run, f'at {at["by_mapping"]:#x}'))
    check(hits[0]['position'] > inside, f'{hits}')
    equal([hit['value'] for hit in hits], ['0x1', '0x1'], 'two stores')
    cr3 = int(find(run, '$cr3', '--from', part[1], '--to', str(int(part[1]) + 1))
              ['found'][0]['value'], 16)
    there = f'{at["var"]:#x} : 1UL << 63'
    equal(values(find(run, f'*(u32 *)($cr3 == {cr3:#x} ? {there})', '--written', *part)),
          values(find(run, f'*(u32 *){at["var"]:#x}', '--written', *part)), 'these tables')
    equal(find(run, f'*(u32 *)($cr3 == 5 ? {there})', '--written', *part)['found'], [],
          'other tables')


@limit(60)
def test_bits_of_the_mmu(work):
    """What the MMU sets in a page table is late, and the answer says so; single steps find
    it where it happens."""
    run, part, at = alias_run(work)
    entry = int(symbol('map2', ALIAS), 16) + 8 * 256
    fast = find(run, f'*(u64 *){entry:#x}', '--written', *part, rc=1)
    check('MMU' in ' '.join(fast['problems']), f'{fast["problems"]}')
    slow = values(find(run, f'*(u64 *)({entry:#x} + 0 * $rax)', '--written', *part))
    stores = [v for _, v in slow if not v & 0x20]
    marked = [v for _, v in slow if v & 0x20]
    equal((len(stores), len(marked)), (5, 6), f'stores, and accessed or dirty: {slow}')
    equal([x for x in values(fast) if not x[1] & 0x20], [x for x in slow if not x[1] & 0x20],
          'the stores are exact')


@limit(60)
def test_hidden_page(work):
    """A write while the address leads nowhere is no hit, and the answer says so."""
    run, part, _ = alias_run(work)
    for size, more in (('u64', ''), ('u8', ''), ('u64', ' + 0 * $rax')):
        hidden = find(run, f'*({size} *)({604 << 20:#x}{more})', '--written', *part, rc=1)
        equal([v for _, v in values(hidden)], [3, 5], 'what it was seen to get')
        check('did not have' in ' '.join(hidden['problems']), f'{hidden["problems"]}')


@limit(60)
def test_bits_only(work):
    """Of a bit-field, writes to bytes that it has no bits in are none."""
    run, part, at = alias_run(work)
    begins = places(find(run, f'at {at["by_neighbours"]:#x}'))[0]
    part[1] = str(begins)
    word = f'(u64)*(u64 *){at["bits"]:#x}'
    equal([v for _, v in values(find(run, f'{word} << 24 >> 24', '--written', *part))],
          [1, 1, 1], '40 bits: the whole, byte 4 and byte 0')
    equal([v for _, v in values(find(run, f'{word} >> 40', '--written', *part))],
          [1, 1 << 16 | 1, 0, 1 << 8], 'the rest: bytes 5, 7, the whole, 6')
    equal(len(values(find(run, word, '--written', *part))), 6, 'all of them')
    # in a page that is new
    equal([v for _, v in values(find(run, f'*(u64 *){602 << 20:#x} << 24 >> 24', '--written',
                                     *part))], [1, 2], 'byte 0, and the whole')
    fast, slow = (find(run, f'*(u64 *)({602 << 20:#x}{more}) & 0xffffffffff', '--written',
                       *part) for more in ('', ' + 0 * $rax'))
    equal(values(fast), values(slow), 'in a new page')


@limit(60)
def test_device_counts_once(work):
    """A device's write is one hit, also if what leads to the place is written later: here
    the guest's stack, in the part of it that is used most."""
    run = record(work, guest_args(work, 'selfdma', 'rounds=3')).dir
    addr = 32 << 20
    events = [*covering(run, 'ram', addr, 4)]
    check(len(events) >= 3, f'{events}')
    around = [max(min(events) - SPAN, 1), min(max(events) + 3000, end_of_run(run))]
    part = [x for pair in zip(('--from', '--to'), map(str, around)) for x in pair]
    near = ['--from', str(min(events) - 3000), '--to', str(min(events) + 3000)]
    stack = collections.Counter(
        v & ~7 for _, v in values(find(run, '$rsp', '--changes', *near, *MANY))
        if v > 2 << 20)
    plain = find(run, f'*(u32 *){addr:#x}', '--written', *part, *MANY)
    check(len(plain['found']) >= 3, f'{plain}')
    for pointer, _ in stack.most_common(3):
        moved = find(run, f'*(u32 *)({addr:#x} + 0 * *(u64 *){pointer:#x})', '--written',
                     *part, *MANY)
        equal((plain['kind'], moved['kind']), ('memory', 'memory'), 'kinds')
        equal(values(moved), values(plain), f'by {pointer:#x}')


@limit(120)
def test_beside_gdb(work):
    """A watchpoint of gdb's that stops for reads of the same bytes adds no hit."""
    run, part, at = alias_run(work)
    text = f'*(u64 *){at["pointer"]:#x}'
    wanted = places(find(run, text, '--written', *part))
    vm = replayer(work, run, ['-S', *Gdb.args(work, 'rep')], 'rep', qmp=1)
    with vm:
        goto(vm, position=int(part[1]))
        said = Gdb(vm)('set breakpoint always-inserted on',
                       f'awatch *(unsigned long *){at["pointer"]:#x}',
                       f'monitor tt find -w -f {part[1]} -t {part[3]} {text}')
    equal([int(p) for p in re.findall(r'position (\d+)', said)], wanted, said)


@limit(120)
def test_in_parts(work):
    """Several processes find the same; first, last and a limit are of it."""
    for i, rounds in enumerate((2000, 5000, 20000)):    # a busy host makes few checkpoints
        run = record(work, guest_args(work, 'dmacode', f'rounds={rounds}'), name=f'run{i}',
                     options=',checkpoint-interval=0.02').dir
        if json.loads(tt('info', run, '--json').stdout)['checkpoints'] >= 3:
            break
    memory = f'*(u32 *)0x{symbol("done")}'
    whole = values(find(run, memory, '--written', *MANY))
    check(len(whole) > 1000, f'{memory}: {len(whole)}')
    equal(find(run, memory, '--changes')['found'], [], 'it is always written with 0')
    for jobs in ('2', '3'):
        parts = find(run, memory, '--written', *MANY, '-j', jobs)
        check(parts['processes'] > 1, f'{parts["processes"]} parts')
        equal(values(parts), whole, f'-j {jobs}')
    equal(values(find(run, memory, '--written', '--first', '-j', '2')), whole[:1], 'first')
    equal(values(find(run, memory, '--written', '--last', '-j', '2')), whole[-1:], 'last')
    few = find(run, memory, '--written', '--limit', '5')
    equal((values(few), few['more']), (whole[:5], True), 'five')


@limit(60)
def test_in_a_replay(work):
    """QMP and the monitor find the same; what has no place is refused."""
    run = types_run(work)
    wanted = values(typed(run.dir, 'stamp', '--written'))
    address = symbol('stamp', SYMBOLS)
    with stopped_replay(work, run) as vm:
        goto(vm, position=wanted[3][0])
        answer = vm.qmp.cmd('tt-find', condition=f'*(u32 *)0x{address}', written=True)
        equal([(p['position'], p['value']) for p in answer['places']], wanted, 'QMP')
        said = vm.qmp.hmp(f'tt find -w -f {wanted[3][0]} *(u32 *)0x{address}')
        equal(re.findall(r'position (\d+)', said), [str(p) for p, _ in wanted[4:]], 'HMP')
        for wrong, how in (('$rax', {}), (f'*(u32 *)0x{address} == 3', {}),
                           (f'*(u32 *)0x{address}', {'changes': True})):
            check(vm.qmp.error('tt-find', condition=wrong, written=True, **how), wrong)
    for args, wanted in ((['$rax', '--written'], "'written' needs one place"),
                         (['*(u8 *)5 == 1', '--written'], 'without a comparison'),
                         (['*(u8 *)5', '--written', '--changes'], 'exclude each other'),
                         (['*(u8 *)5', '--written', '--monotone'], 'exclude each other'),
                         (['*(u8 *)5 at 7', '--written'], "'at'")):
        said = tt('find', run.dir, *args, '--qemu', qemu_binary(), rc=2).stderr
        check(wanted in said.splitlines()[0], f'{args}: {said}')
