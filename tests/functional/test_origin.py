# SPDX-License-Identifier: GPL-2.0-or-later
"""tt origin: where values came from. origins.py knows all writes of a run."""

import json
import os

from guests import guest_args
from origins import compare
from test_gdb import symbol
from ttlib import (BUILD, check, equal, limit, one_sentence, qemu_binary, record, run_tool,
                   seed, tt)


def origin(run, pos, place, *args, rc=0):
    done = tt('origin', run, str(pos), place, '--qemu', qemu_binary(), '--json', *args,
              rc=rc)
    return json.loads(done.stdout) if done.stdout else done


@limit(60)
def test_the_last_write(work):
    """Of registers and memory, at random positions of a random program."""
    run = record(work, guest_args(work, 'random', 'seed=10 blocks=30 modes=0')).dir
    kinds = compare(seed(), work, run, 60, part=50000)
    print(dict(kinds))
    check(kinds['store'] > 5 and kinds['change'] > 5, f'too few of a kind: {kinds}')


@limit(60)
def test_other_machines(work):
    """The same of four vCPUs, and of 64-bit code."""
    for guest, wide in (('smp', False), ('lines64', True)):
        run = record(work, guest_args(work, guest), name=guest).dir
        kinds = compare(seed(), work, run, 40, part=30000, wide=wide)
        print(guest, dict(kinds))
        check(kinds['store'] + kinds['change'] > 3, f'{guest}: too few: {kinds}')


def events(run, kind):
    return [json.loads(line) for line in
            tt('log', run, '--json', '--kind', kind).stdout.splitlines()]


def dma_events(run, start, end):
    """[(position before it, bytes)] of what devices wrote there."""
    return [(ev['position'] - ev['nested'], ev['length']) for ev in events(run, 'ram')
            if start <= int(ev['val'], 16) < end]


@limit(60)
def test_what_a_device_wrote(work):
    """Each word of a transfer by DMA comes from the event that has it in the log."""
    run = record(work, guest_args(work, 'selfdma', 'rounds=3')).dir
    end = json.loads(tt('info', run, '--json').stdout)['end']
    sides = [ev for ev in events(run, 'ram') if ev['length'] >= 512]
    for word in (0, 1, 8191, 8192, 20000, 32767):
        addr = (32 << 20) + 4 * word
        for pos in (end, end // 2):
            last = [ev for ev in sides if ev['position'] < pos and
                    int(ev['val'], 16) <= addr < int(ev['val'], 16) + ev['length']]
            node = origin(run, pos, f'*(u32 *)0x{addr:x}')['nodes'][0]
            if node['how'] in ('constant', 'fill'):
                continue                    # the guest has cleared it since
            if node['how'] == 'initial':
                check(not last, f'nothing before {pos}, but {last}')
                continue
            check(last, f'nothing in the log, but {node}')
            equal((node['how'], node['position']), ('device', last[-1]['position']),
                  f'word {word} at {pos}')
            equal(node['bytes'], last[-1]['length'], 'bytes of the event')


@limit(60)
def test_what_a_disk_wrote(work):
    """With disk-reads=store, the answer is the byte of the disk that has the value."""
    run = record(work, guest_args(work, 'selfdma', 'rounds=3'),
                 options=',disk-reads=store').dir
    end = json.loads(tt('info', run, '--json').stdout)['end']
    with open(os.path.join(work, 'selfdma.img'), 'rb') as f:
        image = f.read()
    seen = 0
    for word in (0, 1, 127, 128, 8191, 8192, 20000, 32767):
        for pos in (end, end * 2 // 3):
            node = origin(run, pos, f'*(u32 *)0x{(32 << 20) + 4 * word:x}')['nodes'][0]
            if node['how'] == 'disk':
                at = int(node['sector']) * 512 + int(node['byte'])
                equal(int(node['value'], 16), int.from_bytes(image[at:at + 4], 'little'),
                      f'{node}')
                seen += 1
    check(seen > 2, f'only {seen} words came from the disk')


@limit(60)
def test_what_the_cpu_stored(work):
    """VMRUN stores the host's state: by physical address, and then by the TLB, which must
    still be slow for that page."""
    args = guest_args(work, 'svm')
    names = run_tool('nm', args[args.index('-kernel') + 1])[0].splitlines()
    save = next(int(n.split()[0], 16) for n in names if n.endswith(' host_save')) + 0x400
    run = record(work, args).dir
    found = tt('find', run, f'*(u32 *)0x{save + 0x14:x}', '--changes', '--first',
               '--json', '--qemu', qemu_binary()).stdout
    first = json.loads(found)['found'][0]
    for offset in (0x68, 0x14):             # the base of the GDT; the limit of CS
        node = origin(run, first['position'], f'*(u32 *)0x{save + offset:x}', '--within',
                      '10000')['nodes'][0]
        equal((node['how'], node['position'], node['instruction']),
              ('cpu', first['position'] - 1, 'vmrun eax'), f'{node}')


@limit(60)
def test_what_trapped(work):
    """What an instruction wrote that hits a watchpoint of the guest's own is not called the
    delivery of the exception; also the first bytes of a string."""
    args = guest_args(work, 'debug', 'rounds=2 parts=33 quiet=1')
    names = {n.split()[2]: n.split()[0] for n in
             run_tool('nm', args[args.index('-kernel') + 1])[0].splitlines()
             if len(n.split()) == 3}
    run = record(work, args).dir
    end = json.loads(tt('info', run, '--json').stdout)['end']
    for place, word in ((f'*(u32 *)0x{names["watched"]}', 'add dword ptr [edx]'),
                        (f'*(u8 *)0x{names["strip"]}', 'stosb'),
                        (f'*(u8 *)(0x{names["strip"]} + 35)', 'stosb'),
                        (f'*(u8 *)(0x{names["strip"]} + 63)', 'stosb')):
        node = origin(run, end, place)['nodes'][0]
        check(node['how'] != 'exception' and word in node['instruction'], f'{place}: {node}')


@limit(60)
def test_follows_to_an_input(work):
    """What REP INSB read comes from a port; --symbols names places."""
    args = guest_args(work, 'ins')
    names = os.path.join(work, 'names')
    with open(names, 'w', encoding='ascii') as out:
        out.write(run_tool('nm', args[args.index('-kernel') + 1])[0])
    run = record(work, args).dir
    end = json.loads(tt('info', run, '--json').stdout)['end']
    with open(names, encoding='ascii') as f:
        base = next(int(line.split()[0], 16) for line in f if line.endswith(' target\n'))
    place = f'*(u8 *)0x{base + 4095:x}'
    answer = origin(run, end, place, '--symbols', names)
    node = answer['nodes'][0]
    equal((answer['complete'], node['how'], len(answer['nodes'])), (True, 'port', 1),
          f'{node}')
    check(node['port'] in ('0x511', '0x1f0') and '+0x' in node['symbol'], f'{node}')
    same = origin(run, end, '*(u8 *)&target', '--symbols', names)['nodes'][0]
    equal(same['place'], f'0x{base:x}:1', 'the place of a name')
    text = tt('origin', run, str(end), place, '--qemu', qemu_binary(), '--quiet').stdout
    check(f'read from port {node["port"]}' in text and f'{place} = ' in text, text)


@limit(60)
def test_what_a_device_left_alone(work):
    """Of a value that a device wrote in part, the other bytes are from before; or they are
    another write's that the same instruction asked for."""
    run = record(work, guest_args(work, 'partdma')).dir
    info = json.loads(tt('info', run, '--json').stdout)
    page, own = 32 << 20, symbol('partdma', 'fw_cfg')
    all_of, first, last = dma_events(run, page, page + 4096)
    data, control = dma_events(run, own, own + 8)
    equal(data[0], control[0], 'both are of one instruction')
    for at, size, early, late in ((page + 2044, 4, all_of, first),
                                  (page + 3068, 4, all_of, last), (own, 4, data, control)):
        nodes = origin(run, info['end'], f'*(u64 *){at:#x}')['nodes']
        equal([(n['how'], n['rest'], n['position'], n['bytes']) for n in nodes],
              [('device', False, *late), ('device', True, *early)], f'{at:#x}')
        rest = at if late is not first else at + size
        equal(nodes[1]['place'], f'{rest:#x}:{size}', 'the other bytes')


@limit(60)
def test_who_asked_the_device(work):
    """A device that an instruction asked: the instruction has its text. Two parts of one
    value, on two pages, have names of their own."""
    args = guest_args(work, 'random', 'seed=13 blocks=3 modes=0')
    run = record(work, args).dir
    # The firmware loads the kernel by DMA, which an OUT begins.
    ev = [e for e in events(run, 'ram') if e['nested'] and e['length'] >= 8192][-1]
    at = int(ev['val'], 16)
    node = origin(run, ev['position'] + 1, f'*(u32 *){at:#x}')['nodes'][0]
    equal((node['how'], node['position'], node['bytes']),
          ('device', ev['position'] - 1, ev['length']), f'{node}')
    check(node['instruction'].startswith('out '), f'{node}')
    border = (at + 4096) & ~4095
    place = f'*(u64 *){border - 4:#x}'
    text = tt('origin', run, str(ev['position'] + 1), place, '--qemu', qemu_binary(),
              '--quiet').stdout
    for part in border - 4, border:
        check(f'{place}, {part:#x}:4 = ' in text, text)
    check('\n    out ' in text, text)


@limit(60)
def test_copies_have_the_same_bytes(work):
    """What a copy was made of has its value, whatever the way; limits are kept."""
    run = record(work, guest_args(work, 'random', 'seed=11 blocks=3 modes=0')).dir
    end = json.loads(tt('info', run, '--json').stdout)['end']
    copies = 0
    for at in range(1, 9):
        answer = origin(run, end - 3000 * at, '$esp' if at % 4 == 0 else '$eax',
                        '--depth', '2', '--nodes', '15', '--within', '1000000')
        nodes = {n['id']: n for n in answer['nodes'] if 'id' in n}
        check(answer['complete'] and 0 < len(nodes) <= 15, f'{answer}')
        for n in answer['nodes']:
            parent = nodes.get(n['parent'])
            if not parent or 'value' not in n:
                continue
            check(n['position'] <= parent['position'], f'{n} after {parent}')
            if parent['how'] == 'copy' and not n['rest']:
                copies += 1
                check(n['value'][2:] in parent['value'], f'{n} is no part of {parent}')
    check(copies > 2, f'only {copies} copies')


@limit(60)
def test_refusals(work):
    """One sentence for what is no place, not mapped, or not in the run."""
    run = record(work, guest_args(work, 'random', 'seed=12 blocks=3 modes=0')).dir
    for pos, place, rc, why in ((5, '$rip', 2, "'$rip' is not a place"),
                                (5, '12', 2, "'12' is not a place"),
                                (5, '*(u32*)0x1000+8', 2, "'*(u32*)0x1000+8' is not"),
                                (5, '*(u32 *)0x1000 at 0x2000', 2, 'is not a place'),
                                (5, '*(u32*)0x1000 +', 2, 'at character 16'),
                                (5, '*8', 2, 'at character 1)'),
                                (5, '*(u32 *)&x', 2, 'symbol'),
                                ('x', '$rax', 2, 'a number'),
                                (10 ** 15, '$rax', 2, 'which goes from'),
                                (5, '$rax;5 $rbx', 2, "';'")):
        done = tt('origin', run, str(pos), place, '--qemu', qemu_binary(), rc=rc)
        check(why in one_sentence(done.stderr.split('usage:')[0], why), done.stderr)
    equal(origin(run, 3000, ' $rax ', '--symbols', f'{BUILD}/guests/lines64.debug')['nodes'],
          origin(run, 3000, '$rax')['nodes'], 'blanks around a register')
    unmapped = '*(u32 *)((u64)&counter + 0x7000000000)'
    said = tt('origin', run, '5', unmapped, '--symbols', f'{BUILD}/guests/lines64.debug',
              '--qemu', qemu_binary(), '--quiet', rc=1).stderr
    check(f"'{unmapped}' cannot be read there" in one_sentence(said, unmapped), said)
    far = origin(run, 3000, '*(u8 *)0x100000', '--within', '2')['nodes'][0]
    equal(far['how'], 'far', 'a write further back than --within')
