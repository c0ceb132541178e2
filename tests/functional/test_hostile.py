# SPDX-License-Identifier: GPL-2.0-or-later
"""Logs and checkpoints made up by hand, with right checksums: what each of them aims at
is QEMU's own code behind the replay. A replay of it ends with a sentence."""

import json
import os
import shutil
import struct
import subprocess

from guests import guest_args
from test_verify import has_digest
from ttlib import (BUILD, SLOW, Skip, check, digest_at, edit_manifest,
                   ends_behind_checkpoints, equal, goto,
                   limit, qemu_binary, record, recorder, run_tool, short,
                   stopped_replay, tool, tt, wait_until)

KINDS = {'pio-in': 1, 'pio-out': 2, 'mmio-ld': 3, 'mmio-st': 4, 'tsc': 5, 'msr-rd': 6,
         'msr-wr': 7, 'cr8-rd': 8, 'rand': 9, 'cpuid': 10, 'value': 11, 'hlt': 12,
         'tpr-wr': 13, 'intr': 16,
         'unhalt': 17, 'ram': 18, 'map': 19, 'cpu-flag': 20, 'cpu-state': 21,
         'block': 22, 'cpu-switch': 23, 'ram-fill': 24, 'landmark': 25, 'window': 26,
         'cpuid-table': 27, 'landmark-pages': 29, 'branches': 30, 'check': 32, 'digest': 33,
         'mark': 34, 'note': 35, 'finish': 36, 'screen': 37,
         'frame': 38, 'time': 39, 'frame-out': 40, 'frame-in': 41}
ROMD = 2
SMI = 3


def forger(name):
    path = os.path.join(BUILD, 'cores', 'tests', 'tool', name)
    if not os.path.exists(path):
        raise Skip('the cores are not built: scripts/test cores')
    return path


def event(pos, kind, nested=0, cpu=0, size=0, addr=0, val=0, aux=0, data=b''):
    return {'position': pos, 'kind': kind, 'nested': nested, 'cpu': cpu, 'size': size,
            'addr': addr, 'val': val, 'aux': aux, 'data': data.hex()}


def events_of(run):
    out, _ = run_tool(tool('tt'), 'log', run, '--json', '--data', timeout=60)
    events = [json.loads(line) for line in out.splitlines()]
    for e in events:
        e.update(nested=int(e['nested']), addr=int(e['addr'], 16),
                 val=int(e['val'], 16), data=e.get('data', ''))
    return events


def forge(run, place, events):
    """PLACE becomes the run with these events, and without its checkpoints."""
    os.mkdir(place)
    shutil.copy(os.path.join(run, 'manifest'), place)
    lines = (f"{e['position']} {KINDS[e['kind']]} {e['nested']} {e['cpu']} {e['size']} "
             f"{e['addr']} {e['val']} {e['aux']} {e['data'] or '-'}\n" for e in events)
    subprocess.run([forger('tt-forge'), f'{run}/log', f'{place}/log', '-'], check=True,
                   input=''.join(lines), text=True, timeout=60 * SLOW)
    return place


def ends(place, *words, how='at-end=exit'):
    """Its replay ends by itself, with a status of ours and one of the words."""
    done = subprocess.run([qemu_binary(), '-tt', f'replay,dir={place},{how}',
                           '-display', 'none'], stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=60 * SLOW, cwd='/')
    said = done.stderr.decode(errors='replace')
    check(done.returncode in (1, 3), f'{place}: status {done.returncode}: {short(said)}')
    check(any(w in said for w in words), f'{place}: {short(said)}')


def made(work, guest='dmacode', append='rounds=20', options='', extra=()):
    run = record(work, [*guest_args(work, guest, append), *extra], options=options)
    events = events_of(run.dir)
    same = forge(run.dir, os.path.join(work, 'same'), events)
    replayed = subprocess.run([qemu_binary(), '-tt', f'replay,dir={same},at-end=exit',
                               '-display', 'none'], stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=60 * SLOW)
    equal(replayed.returncode, 0, f'status of the copy ({replayed.stderr})')
    return run.dir, events


def first(events, kind):
    return next(i for i, e in enumerate(events) if e['kind'] == kind)


def initial_end(events):
    """Behind what the log has before the first instruction."""
    return next(i for i, e in enumerate(events) if not e['nested'] or e['position'])


@limit(60)
def test_cpu_states(work):
    """More machine-check banks than a vCPU has, which RDMSR goes by; parts that are
    loaded into what only KVM makes."""
    run, events = made(work)
    at = first(events, 'cpu-state')
    state = bytes.fromhex(events[at]['data'])
    banks = struct.pack('>Q', 0x100010a)
    equal(state.count(banks), 1, 'places of mcg_cap')
    nested = b'\x05\x10cpu/nested_state' + struct.pack('>I', 1)
    xen = b'\x05\x0dcpu/xen_vcpu' + struct.pack('>I', 1)
    for n, forged in enumerate((state.replace(banks, struct.pack('>Q', 0x100013f)),
                                state + nested, state + xen + bytes(32))):
        changed = [dict(e) for e in events]
        changed[at]['data'] = forged.hex()
        ends(forge(run, os.path.join(work, f'c{n}'), changed),
             "QEMU cannot load the run's CPU state")


@limit(60)
def test_vcpu_changed_in_an_instruction(work):
    """Another vCPU's turn, or another state of this one, before an input of the
    instruction that is being executed."""
    run, events = made(work, 'smp', 'rounds=20')
    state = events[first(events, 'cpu-state')]
    at = next(i for i, e in enumerate(events) if e['kind'] == 'pio-out' and i > 50)
    pos = events[at]['position']
    for n, e in enumerate((event(pos, 'cpu-switch', 1, addr=1),
                           {**state, 'position': pos, 'nested': 1})):
        ends(forge(run, os.path.join(work, f'n{n}'), events[:at] + [e] + events[at:]),
             'inside an instruction')


@limit(60)
def test_maps(work):
    """More pieces of memory than QEMU's table holds; one whose pages are halves of two;
    a ROM device where a vCPU's state is saved for an SMI."""
    run, events = made(work)
    at = initial_end(events)
    pieces = b''.join(struct.pack('<IIQQQ', 0, 0, i * 0x10000 + 0x800, 0x2000, 0)
                      for i in range(1000))
    ends(forge(run, os.path.join(work, 'many'), events[:at] +
               [event(0, 'map', 1, data=pieces)] + events[at:]), 'map in the log')
    askew = struct.pack('<IIQQQ', 0, 0, 0, 0x100000, 0x800)
    ends(forge(run, os.path.join(work, 'askew'), events[:at] +
               [event(0, 'map', 1, data=askew)] + events[at:]), 'map in the log')
    blocks = sum(e['kind'] == 'block' for e in events[:at])
    rom = [event(0, 'block', 1, addr=blocks, val=1 << 20, aux=ROMD, data=b'rom'),
           event(0, 'map', 1, addr=1,
                 data=struct.pack('<IIQQQ', blocks, ROMD, 0, 1 << 20, 0))]
    gap = next(i for i in range(at + 1, len(events)) if
               events[i]['position'] - events[i - 1]['position'] > 9)
    check(all(e['kind'] != 'map' for e in events[at:gap]), 'another map comes first')
    smi = event(events[gap - 1]['position'] + 5, 'intr', addr=SMI)
    ends(forge(run, os.path.join(work, 'smi'), events[:at] + rom + events[at:gap] +
               [smi] + events[gap:]), 'diverged')


@limit(60)
def test_pages_beyond_ram(work):
    """Checkpoints with more pages than their RAM blocks have, where a replay begins
    with one, and where it goes to one."""
    options = ',last=1s,checkpoint-interval=0.1'
    with recorder(work, guest_args(work, 'torture', 'rounds=100000000'), name='window',
                  qmp=1, options=options) as vm:
        wait_until(lambda: vm.qmp.cmd('query-tt')['start'] > 0, 'a window', 60)
        vm.qmp.send('quit')
        vm.wait(0)
        window = vm.run
    whole = record(work, guest_args(work, 'torture', 'rounds=2'), name='whole',
                   options=',checkpoint-interval=0.1').dir
    for run in (window, whole):
        place = f'{run}.small'
        shutil.copytree(run, place)
        os.unlink(os.path.join(place, 'checkpoints'))
        subprocess.run([forger('tt-forge-points'), run, f'{place}/checkpoints', 'small'],
                       check=True, timeout=60 * SLOW)
    ends(f'{window}.small', 'none of its checkpoints can be used')
    with stopped_replay(work, f'{whole}.small') as vm:
        end = vm.qmp.cmd('query-tt')['end']
        for position in (end, end // 2, 1, end):
            goto(vm, position=position)
        vm.qmp.send('quit')
        vm.wait(0)


@limit(60)
def test_checkpoints_of_no_vcpu(work):
    """Behind the first one, none of the recorder's checkpoints can be loaded: what is
    found out half-way must not leave RAM of another position behind, nor what was
    tried of the vCPU."""
    with recorder(work, guest_args(work, 'abits', 'rounds=1000000'), qmp=1,
                  options=',checkpoint-interval=0.02') as vm:
        wait_until(lambda: len(vm.qmp.cmd('query-tt-checkpoints')) > 3, 'checkpoints', 60)
        wait_until(lambda: ends_behind_checkpoints(vm, 5000), 'an end behind them')
        vm.qmp.send('quit')
        vm.wait(0)
    run = vm.run
    place = f'{run}.banks'
    shutil.copytree(run, place)
    os.unlink(os.path.join(place, 'checkpoints'))
    subprocess.run([forger('tt-forge-points'), run, f'{place}/checkpoints', 'banks'],
                   check=True, timeout=60 * SLOW)
    with stopped_replay(work, run, 'good') as good, \
            stopped_replay(work, place, 'bad') as bad:
        points = [p['position'] for p in
                  good.qmp.cmd('query-tt-checkpoints') if p['position']]
        check(len(points) > 1, f'{points} are behind the first')
        for position in (points[-1] - (1 << 21), points[-1] + 100, points[0] + 7,
                         points[-1] + 5000):
            equal(digest_at(bad, position), digest_at(good, position),
                  f'digest at {position}')
        for vm in good, bad:
            vm.qmp.send('quit')
            vm.wait(0)
    check('cannot be used' in bad.stderr, bad.stderr)
    done = tt('verify', place, '--qemu', qemu_binary(), rc=1)
    check('cannot be used' in done.stdout and 'diverged' not in done.stdout, done.stdout)


def shifted(run, place, shift):
    """PLACE becomes the run, but that positions are larger from its last checkpoint on;
    the position that this has then."""
    shutil.copytree(run, place)
    os.unlink(f'{place}/log')
    done = subprocess.run([forger('tt-forge-positions'), run, f'{place}/log',
                           f'{place}/checkpoints', str(shift)], check=True,
                          capture_output=True, text=True, timeout=60 * SLOW)
    return int(done.stdout)


def go_about(vm, at, work):
    """What a user does around position @at, which none of it may mind."""
    end = vm.qmp.cmd('query-tt')['end']
    for target in (at, at + 1000, end, at + 17, at):
        goto(vm, position=target)
    trace = os.path.join(work, f'{vm.name}.trace')
    for what in (f'trace start {trace}', f'goto {at + 500}', 'trace stop', 'mark far',
                 'checkpoint add', f'goto {at + 1}', 'goto far', 'checkpoint list',
                 'checkpoint add', 'verify', f'goto {at}'):
        vm.qmp.hmp(f'tt {what}')
    if os.path.exists(trace):
        tt('trace', trace, rc=None)


@limit(120)
def test_far_positions(work):
    """Positions that no guest reaches, after a checkpoint where one can go to."""
    with recorder(work, guest_args(work, 'abits', 'rounds=1000000'), qmp=1,
                  options=',checkpoint-interval=1000') as vm:
        vm.wait_serial('start')
        vm.qmp.cmd('stop')
        at = vm.qmp.cmd('query-tt-digest')['position']
        wait_until(lambda: has_digest(vm.run, at), 'a segment of the log begins there')
        check('kept' in vm.qmp.hmp('tt checkpoint add'), 'added')
        vm.qmp.cmd('cont')
        wait_until(lambda: vm.qmp.cmd('query-tt')['position'] > at + 10 ** 6, 'it goes on')
        vm.qmp.send('quit')
        vm.wait(0)
    for bit in 40, 59, 60, 61, 62, 63:
        place = os.path.join(work, f'far{bit}')
        at = shifted(vm.run, place, (1 << bit) - (1 << 40) * (bit == 63))
        for args in (('info', '--json'), ('check',), ('stats',), ('log',)):
            check(tt(args[0], place, *args[1:], rc=None).returncode in (0, 1), f'{args}')
        with stopped_replay(work, place, f'go{bit}') as rep:
            go_about(rep, at, work)
            rep.qmp.send('quit')
            rep.wait(0)
        for option in (f'verify={at}-', f'trace={work}/t{bit},trace-part={at}-{at + 99}'):
            done = subprocess.run([qemu_binary(), '-tt', f'replay,dir={place},{option}',
                                   '-display', 'none'], stdin=subprocess.DEVNULL,
                                  capture_output=True, timeout=60 * SLOW, cwd='/')
            check(done.returncode in (0, 1, 3), f'{bit}, {option}: {done}')


@limit(60)
def test_no_fences(work):
    """A manifest without fences: checkpoints are made at them."""
    run, _ = made(work)
    edit_manifest(run, lambda text: ''.join(
        'fence-interval=0\n' if line.startswith('fence-interval') else f'{line}\n'
        for line in text.splitlines()))
    with stopped_replay(work, run) as vm:
        goto(vm, position=5000)
        said = vm.qmp.hmp('tt checkpoint add')
        check('no sync points' in said, said)
        vm.qmp.send('quit')
        vm.wait(0)


@limit(60)
def test_screens(work):
    """The memory of a VGA card of a size that none has; pictures with more backing
    than a card takes."""
    run, events = made(work)
    at = initial_end(events)
    blocks = sum(e['kind'] == 'block' for e in events[:at])
    vram = event(0, 'block', 1, addr=blocks, val=3 << 20, data=b'vga.vram')
    place = forge(run, os.path.join(work, 'vga'), events[:at] + [vram] + events[at:])
    with stopped_replay(work, place) as vm:
        for _ in range(3):
            vm.qmp.cmd('screendump', filename=os.path.join(work, 'shot'))
        vm.qmp.send('quit')
        vm.wait(0)

    notes = []
    for picture in range(1, 9):
        notes.append(event(0, 'screen', addr=2, val=picture,
                           data=struct.pack('<III', 1, 1, 1)))
        entries = event(0, 'screen', addr=3, val=picture)
        entries['data'] = struct.pack('<IIQ', 0, 1, 0).hex() + f'*{1 << 12}'
        notes += [entries] * 1024
    place = forge(run, os.path.join(work, 'gpu'), events[:at] + notes + events[at:])
    with stopped_replay(work, place) as vm:
        goto(vm, position=5000)
        vm.qmp.cmd('screendump', filename=os.path.join(work, 'shot'))
        with open(f'/proc/{vm.process.pid}/status', encoding='ascii') as status:
            peak = next(int(line.split()[1]) for line in status if 'VmHWM' in line)
        vm.qmp.send('quit')
        vm.wait(0)
    check(peak < 300 << 10, f'{peak} KB of memory for 512 MB of backing')


@limit(120)
def test_work_at_one_position(work):
    """A log may ask for hours of work at one position: QEMU answers meanwhile, stops,
    moves and ends."""
    with recorder(work, guest_args(work, 'hlt', 'rounds=100000') + ['-m', '256'],
                  qmp=1) as vm:
        vm.wait_serial('\n')
        vm.qmp.cmd('stop')
        vm.qmp.cmd('query-tt-digest', 60)
        vm.qmp.cmd('cont')
        vm.qmp.cmd('stop')
        vm.qmp.send('quit')
        vm.wait(0)
    events = events_of(vm.run)
    at = next(i for i, e in enumerate(events) if e['kind'] == 'digest')
    where = events[at]['position']
    place = forge(vm.run, os.path.join(work, 'busy'),
                  events[:at] + [events[at]] * 100000 + events[at:])
    with stopped_replay(work, place, 'busy') as rep:
        rep.qmp.cmd('cont')
        wait_until(lambda: rep.qmp.cmd('query-tt')['digests'] > 2, 'the work begins')
        rep.qmp.cmd('stop')             # which needs the vCPU
        state = rep.qmp.cmd('query-tt')
        equal((state['position'], state['diverged']), (where, False), 'where it works')
        done = state['digests']
        check(done < 100000, 'the work was over: this test shows nothing')
        rep.qmp.cmd('cont')
        wait_until(lambda: rep.qmp.cmd('query-tt')['digests'] > done, 'it goes on')
        rep.qmp.cmd('stop')
        goto(rep, position=where - 100)
        equal(goto(rep, position=where), {'position': where, 'reason': 'target'},
              'back at the work')
        rep.qmp.cmd('cont')
        rep.qmp.send('quit')
        rep.wait(0)
    check('diverged' not in rep.stderr, rep.stderr)
