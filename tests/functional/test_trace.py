# SPDX-License-Identifier: GPL-2.0-or-later
"""Branch traces: recording and replays of a run go the same way, whatever blocks
the translator makes; where a replay goes another way, the first wrong branch is
named."""

import json
import os
import re
import subprocess

from guests import guest_args
from test_robust import mount_small
from ttlib import (Vm, check, check_exact, end_of, equal, goto, goto_exact, limit,
                   one_sentence, qemu_binary, record, recorder, replay,
                   replayer, stopped_replay, tt, wait_until)

ONE_INSN = ['-accel', 'tcg,one-insn-per-tb=on']


def compare(first, second, rc=0):
    return json.loads(tt('compare-traces', '--json', first, second,
                         rc=rc).stdout)


def retrace(work, run, name, args=(), part='all', rc=0):
    """A trace that a replay of the run makes."""
    path = os.path.join(work, f'{name}.trace')
    with replayer(work, run, args, name,
                  f',trace={path},trace-part={part}') as vm:
        vm.wait(rc)
    return path


def recorded(work, name, append=None, options=''):
    path = os.path.join(work, 'rec.trace')
    return record(work, guest_args(work, name, append),
                  options=f',trace={path}{options}'), path


def same_way(work, name, append=None):
    run, trace = recorded(work, name, append)
    check_exact(work, run)              # tracing changes nothing
    for again, args in ('normal', []), ('one-insn', ONE_INSN):
        answer = compare(trace, retrace(work, run, again, args))
        check(answer['same'] and answer['branches_alike'] > 100,
              f'{name}, {again}: {answer}')
    return run, trace


def test_exceptions(work):
    """Faults inside of blocks, and what is after them."""
    same_way(work, 'exceptions')


def test_own_code_changed(work):
    """Blocks that are left in their middle, because they change themselves."""
    same_way(work, 'smc')


@limit(90)
def test_full_disk(work):
    """A trace that does not fit costs itself, and one sentence; not the recording."""
    place = mount_small(work, '8k')
    try:
        trace = os.path.join(place, 'trace')
        with recorder(work, guest_args(work, 'torture'),
                      options=f',trace={trace}') as vm:
            vm.wait()
        check('No space left' in vm.stderr, vm.stderr)
        os.unlink(trace)
        with replayer(work, vm.run, (), 'again', f',trace={trace}') as again:
            again.wait(1)
        check('No space left' in again.stderr, again.stderr)
        check_tool_tells(vm.run, place)
    finally:
        subprocess.run(['umount', place], check=True)
    check('replay exact' in replay(work, vm.run).stderr, 'the recording')


def check_tool_tells(run, place):
    """What tt trace says of a trace that has no room, or not enough; status 1."""
    trace = os.path.join(place, 'trace')
    said = tt('branches', trace, '--limit', '9', rc=1).stderr
    check('is incomplete' in said and said.count('\n') == 1, said)
    os.unlink(trace)
    for room in (True, False):
        if not room:
            with open(os.path.join(place, 'filler'), 'wb', buffering=0) as filler:
                filler.write(bytes(8192))
        said = tt('trace', run, trace, '--qemu', qemu_binary(), rc=1).stderr
        check(said.count('\n') == 1 and 'No space left' in said and
              ('what was written so far is kept' in said) == room and
              ('there is no trace: ' in said) != room, said)
        check(os.path.exists(trace) == room, f'the file, with room: {room}')
        if room:
            os.unlink(trace)


def test_torn(work):
    """A trace that was cut off is shown, and never taken for a whole one; its name
    drives no terminal."""
    run, trace = recorded(work, 'hlt', 'rounds=30')
    odd = os.path.join(work, 'a\x1b[31m')
    said = tt('trace', run.dir, odd, '--qemu', qemu_binary()).stderr
    check('traced positions' in said and '\x1b' not in said, repr(said))
    whole = tt('branches', trace, '--limit', '9').stdout
    with open(trace, 'rb') as file:
        text = file.read()
    for name, cut in ((trace + 'x', -1), (trace + '\x1b[31m', text.rindex(b'TTVMBRC'))):
        with open(name, 'wb') as out:
            out.write(text[:cut])
        done = tt('branches', name, '--limit', '9', rc=1)
        check('is incomplete' in done.stderr and '\x1b' not in done.stderr and
              whole.startswith(done.stdout), f'{done}')
    done = tt('compare-traces', trace, name, rc=1)
    check('is incomplete' in done.stderr and '\x1b' not in done.stderr, f'{done}')


def test_several_vcpus(work):
    """Each entry names its vCPU, and they take turns as recorded."""
    _, trace = same_way(work, 'smp', 'cpus=4 rounds=40')
    cpus = set(re.findall(r' cpu (\d) ', tt('branches', trace).stdout))
    equal(cpus, {'0', '1', '2', '3'}, 'vCPUs of the trace')


def test_torture(work):
    """Interrupts and DMA at any place; parts of the run are as the whole of it."""
    run, trace = same_way(work, 'torture', 'rounds=1 percent=10')
    end = int(re.search(r'recorded (\d+) positions', run.vm.stderr).group(1))
    part = retrace(work, run, 'part', part=f'{end // 3}-{end // 2}')
    answer = compare(part, trace)
    equal((answer['same'], answer['from'], answer['to']),
          (True, end // 3, end // 2), 'part of the run')
    shown = tt('branches', part, '--limit', '5').stdout.splitlines()
    equal(len(shown), 5, 'lines of tt branches')
    check(all(re.fullmatch(r' *\d+ cpu 0 pc 0x[0-9a-f]+', line)
              for line in shown), shown)
    made = os.path.join(work, 'tool.trace')
    tt('trace', run.dir, made, '--qemu', qemu_binary(), '--from',
       str(end // 3), '--to', str(end // 2))
    answer = compare(part, made)
    equal((answer['same'], answer['from'], answer['to']),
          (True, end // 3, end // 2), 'the trace that the tool had made')
    for args, wanted in ((['--from', '10', '--to', '5'], 'above --from'),
                         (['--limit', '0'], 'from 1')):
        said = tt('branches', part, *args, rc=2)
        check(wanted in said.stderr and not said.stdout, f'{args}: {said}')


@limit(60)
def test_a_missing_input(work):
    """A device's write that is not in the log: the first wrong branch is where the
    guest acts on it, before the replay itself notices."""
    for number in (100, 150, 1001, 4000):
        run, trace = recorded(work, 'dmacode', 'rounds=1500',
                              f',x-unlogged={number}')
        again = retrace(work, run, 'again', rc=None)
        os.rename(trace, trace + '.rec')
        answer = compare(trace + '.rec', again, rc=None)
        if not answer['same']:
            break
        os.unlink(again)
    check(not answer['same'], 'no hole made a difference')
    first, second = answer['first'][0], answer['second'][0]
    check(answer['before'], f'{answer}')
    check(first != second and
          answer['before'][-1]['position'] < min(first['position'],
                                                 second['position']), f'{answer}')
    symbols = os.path.join(work, 'symbols')
    with open(symbols, 'w', encoding='ascii') as out:
        out.write(f'{int(first["pc"], 16):016x} T where_it_went\n')
    text = tt('compare-traces', trace + '.rec', again, '--symbols', symbols,
              rc=3).stdout
    check('where_it_went+0x0' in text and 'The traces differ after' in text,
          text)


def test_by_command(work):
    """A trace between two commands, in a recording and in its replay; a movement
    back ends it."""
    made, again = (os.path.join(work, n) for n in ('a.trace', 'b.trace'))
    with recorder(work, guest_args(work, 'hlt', 'rounds=100000'), qmp=1,
                  timeout=60) as vm:
        vm.wait_serial('\n')
        vm.qmp.cmd('stop')
        at = vm.qmp.cmd('query-tt')['position']
        vm.qmp.cmd('tt-trace-start', file=made)
        vm.qmp.cmd('cont')
        wait_until(lambda: vm.qmp.cmd('query-tt')['position'] > at + 1000,
                   'the guest runs on')
        vm.qmp.cmd('stop')
        # The past is shown without tracing it again.
        here = vm.qmp.cmd('query-tt')['position']
        for delta in (-300, -200):
            place = goto(vm, delta=delta)['position']
            check(place == here + delta, f'{delta} from {here}: {place}')
            here = place
        check('present' in vm.qmp.error('tt-trace-stop'), 'its end, in the past')
        goto(vm, where='end')
        at = vm.qmp.cmd('query-tt')['position']
        vm.qmp.cmd('cont')
        wait_until(lambda: vm.qmp.cmd('query-tt')['position'] > at + 1000,
                   'the guest runs on after its past')
        vm.qmp.cmd('stop')
        answer = vm.qmp.cmd('tt-trace-stop')
        vm.qmp.send('quit')
        vm.wait(0)
    check(answer['branches'] > 0 and answer['from'] < answer['to'], answer)
    with stopped_replay(work, vm.run) as rep:
        goto_exact(rep, answer['from'])
        rep.qmp.cmd('tt-trace-start', file=again)
        check('already' in rep.qmp.error('tt-trace-start', file=again + '2'),
              'a second trace')
        goto_exact(rep, answer['to'])
        goto_exact(rep, answer['from'])         # which ends it
        check('no trace' in rep.qmp.error('tt-trace-stop'),
              'the trace has ended')
        check(end_of(rep) >= answer['to'], 'end')
    seen = compare(made, again)
    equal((seen['same'], seen['branches_alike']), (True, answer['branches']),
          'traces between two commands')


def test_of_no_positions(work):
    """A run in which nothing was executed has a trace: nothing."""
    run, path = os.path.join(work, 'none.run'), os.path.join(work, 'none.trace')
    with Vm(work, guest_args(work, 'hlt', 'rounds=100000'), name='plain',
            qmp=1) as vm:
        vm.wait_serial('\n')
        vm.qmp.cmd('stop')
        vm.qmp.cmd('tt-record-start', dir=run)
        equal(vm.qmp.cmd('tt-record-stop')['position'], 0, 'what was recorded')
    tt('trace', run, path, '--qemu', qemu_binary())
    check(not tt('branches', path).stdout, 'branches of it')
    seen = json.loads(tt('compare-traces', path, path, '--json').stdout)
    equal((seen['same'], seen['from'], seen['to']), (True, 0, 0), 'compared')


def test_odd_name(work):
    """A line break in a trace's name is no line break of a message."""
    path = os.path.join(work, 'a\nb.trace')
    shown = path.replace('\n', '?')
    with recorder(work, guest_args(work, 'hlt', 'rounds=100000'), qmp=1) as vm:
        vm.wait_serial('\n')
        for _ in range(2):
            said = vm.qmp.hmp(f'tt trace start {path}')
        check(f"to '{shown}'" in said, said)
        answer = vm.qmp.error('tt-trace-start', file=path)
        check(f"to '{shown}'" in answer, answer)
        check(f'bytes in {shown}\n' in vm.qmp.hmp('tt trace stop').replace('\r', ''),
              'the end of a trace')
        vm.qmp.send('quit')
        vm.wait(0)
    with replayer(work, vm.run, name='again', options=f',trace={path}') as vm:
        vm.wait(1)
        check(f"not '{shown}'" in one_sentence(vm, 'a file that exists'), vm.stderr)
    os.unlink(path)
    said = tt('trace', os.path.join(work, 'rec.run'), path, '--qemu', qemu_binary()).stderr
    check(said.endswith(f' bytes in {shown}\n') and said.count('\n') == 1, said)


def test_refusals(work):
    """What cannot be traced is refused in one sentence."""
    run = record(work, guest_args(work, 'hlt', 'rounds=3'))
    path = os.path.join(work, 'x.trace')
    for options, words in (
            (f',trace={path},trace-part=7-5', 'trace-part takes'),
            (',trace-part=5-7', 'with trace=FILE only'),
            (f',trace={path},verify=all', 'verify and trace exclude each other'),
            (f',trace={path},trace-part=99999999999-', 'the run ends at'),
            (f',trace={work}', 'exist')):
        with replayer(work, run, name='no', options=options) as vm:
            vm.wait(1)
        check(words in one_sentence(vm, options), vm.stderr)
    with open(path, 'w', encoding='ascii') as out:
        out.write('no trace')
    check('not a branch trace' in tt('branches', path, rc=1).stderr, 'tt branches')
    check('not a branch trace' in tt('compare-traces', path, path, rc=1).stderr,
          'tt compare-traces')
