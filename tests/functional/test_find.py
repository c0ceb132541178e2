# SPDX-License-Identifier: GPL-2.0-or-later
"""tt find: the positions are those at which somebody who stands at each position sees
the condition become true."""

import json
import os
import re
import signal
import subprocess

from guests import guest_args
from test_gdb_lines import Packets, debugged, lines_run
from test_waiting import job_ends
from ttlib import (BUILD, SLOW, Gdb, check, digest, equal, goto, limit, one_sentence,
                   qemu_binary, record, replayer, run_tool, seed, stopped_replay, tool, tt,
                   wait_until)

SYMBOLS = f'{BUILD}/guests/lines64.debug'
SPAN = 100000
FEW = 50_000_000        # positions that are searched by single steps at most


def find(run, condition, *args, rc=0):
    answer = json.loads(tt('find', run.dir if hasattr(run, 'dir') else run, condition,
                           '--qemu', qemu_binary(), '--json', *args, rc=rc).stdout)
    equal(answer['complete'], rc == 0, f'{condition}: {answer}')
    return answer


def places(answer):
    return [hit['position'] for hit in answer['found']]


def values(answer):
    return [(hit['position'], int(hit['value'], 16)) for hit in answer['found']]


def in_lines(run, condition, *args):
    return find(run, condition, '--symbols', SYMBOLS, *args)


@limit(90)
def test_like_somebody_who_looks(work):
    """Each position of a part is visited, and registers and memory are read there."""
    run = lines_run(work)
    changes = values(in_lines(run, '*(u64 *)&counter', '--changes'))
    equal([v for _, v in changes], list(range(1, 11)), 'values of the counter')
    first, last = changes[0][0] - 20, changes[3][0] + 5
    at_leaf, three, before = [], [], None
    entry = in_lines(run, 'at leaf')['found'][0]['pc']
    address = re.search(r'\b0*([0-9a-f]+) \w counter$',
                        run_tool('nm', SYMBOLS)[0], re.M).group(1)
    with stopped_replay(work, run) as vm:
        for position in range(first, last + 1):
            goto(vm, position=position)
            regs = vm.qmp.hmp('info registers')
            rip = int(re.search(r'RIP=([0-9a-f]+)', regs).group(1), 16)
            rdi = int(re.search(r'RDI=([0-9a-f]+)', regs).group(1), 16)
            if rip == int(entry, 16):
                at_leaf.append((position, rdi))
            now = int(re.search(r': 0x([0-9a-f]+)',
                                vm.qmp.hmp(f'x/1gx 0x{address}')).group(1), 16)
            if now == 3 and before != 3:
                three.append(position)
            before = now
    part = ['--from', str(first), '--to', str(last)]
    equal(places(in_lines(run, '$rip == leaf', *part)), [p for p, _ in at_leaf], 'leaf')
    equal(values(in_lines(run, '$rdi + 1 at leaf', *part)),
          [(p, v + 1) for p, v in at_leaf], 'values at leaf')
    equal(places(in_lines(run, '*(u64 *)&counter == 3', *part)), three, 'three')
    equal(places(in_lines(run, '*(u64 *)&counter == 3 && !!$rsp', *part)), three,
          'three, by single steps')
    equal(places(in_lines(run, '*(u64 *)&counter >= 3', '--monotone')), three,
          'three, by bisection')


def agree(run, part, fast, slow, *how):
    """What is found by stops is what single steps see."""
    a, b = find(run, fast, *part, *how), find(run, slow, *part, *how)
    check(a['kind'] != 'registers' and b['kind'] == 'registers', f'{fast}: {a["kind"]}')
    if how:
        equal(values(a), values(b), f'{fast}, {part}')
    else:
        equal(places(a), places(b), f'{fast}, {part}')
    return len(a['found'])


def questions(run, chance, rounds):
    """Stacks are written by calls, interrupts and traps, and by devices."""
    end = json.loads(tt('info', run, '--json').stdout)['end']
    written = 0
    while rounds:
        start = chance.randrange(max(end - SPAN, 1))
        part = ['--from', str(start), '--to', str(start + SPAN), '--limit', '100000']
        steps = find(run, '$rsp', '--changes', *part)['found']
        if not steps:
            continue
        rounds -= 1
        step = chance.choice(steps)
        address = (int(step['value'], 16) - chance.choice([0, 4, 8, 16])) % 2**32
        size = chance.choice(['u8', 'u16', 'u32', 'u64'])
        memory, place = f'*({size} *){address:#x}', f'$rip == {step["pc"]}'
        pointer = f'*(u8 *)(0x1000 + (*(u16 *){address:#x} & 0xfff))'
        written += agree(run, part, memory, f'{memory} + 0 * $rax', '--changes')
        written += agree(run, part, f'{memory} & 4', f'{memory} & 4 && ($rax | 1)')
        written += agree(run, part, pointer, f'{pointer} + 0 * $rax', '--changes')
        agree(run, part, place, f'!!({place})')
        agree(run, part, f'{place} && $eax & 1', f'!!({place}) && $eax & 1')
    return written


@limit(200)
def test_like_single_steps(work):
    """With interrupts, traps, several vCPUs and DMA, at random places."""
    chance = seed()
    written = 0
    for guest in ('random', 'smp', 'selfdma'):
        run = record(work, guest_args(work, guest), name=guest).dir
        written += questions(run, chance, 3)
    check(written, 'no question of memory had an answer')


@limit(60)
def test_watch_where_an_interrupt_pushes(work):
    """A watchpoint that int N hits in its delivery neither repeats the instruction nor
    makes the replay diverge. The BIOS uses int."""
    run = record(work, guest_args(work, 'smp')).dir
    calls = find(run, '*(u8 *)$rip == 0xcd && !$ss', '--from', '5300000', '--to',
                 '5500000')['found']
    check(calls, 'the BIOS calls itself by int')
    start = calls[0]['position']
    part = ['--from', str(start - 1000), '--to', str(start + 20000)]
    stack = find(run, f'$rsp at {calls[0]["pc"]}', *part)['found']
    memory = f'*(u32 *){int(stack[0]["value"], 16) - 4:#x}'
    agree(run, part, memory, f'{memory} + 0 * $rax', '--changes')
    check(start + 1 in places(find(run, memory, '--changes', *part)),
          f'int at {start} wrote {memory}')


def last_of_interrupted(work, run):
    """Two processes, of which the later has found something: Ctrl-C then."""
    qemu, pids = os.path.join(work, 'qemu'), os.path.join(work, 'pids')
    with open(qemu, 'w', encoding='ascii') as f:
        f.write(f'#!/bin/sh\necho $$ >>{pids}\ncase "$2" in\n'
                '*-,find-condition=*)\n'
                f'while [ $(wc -l <{pids}) -lt 2 ]; do sleep 0.1; done\n'
                'echo "tt-find hit position=5 pc=0x1 cpu=0 value=0x1";;\n'
                'esac\nexec sleep 1000\n')
    os.chmod(qemu, 0o755)
    with subprocess.Popen([tool('tt'), 'find', run, '*(u32 *)0x1000', '--qemu', qemu,
                           '--json', '--last', '-j', '2'],
                          stdout=subprocess.PIPE, text=True) as p:
        children = f'/proc/{p.pid}/task/{p.pid}/children'
        wait_until(lambda: os.path.exists(pids) and
                   len(open(pids, encoding='ascii').read().split()) == 2, 'two processes')
        wait_until(lambda: len(open(children, encoding='ascii').read().split()) == 1,
                   'the earlier part is dropped')
        p.send_signal(signal.SIGINT)
        answer = json.loads(p.communicate(timeout=30 * SLOW)[0])
    equal((p.returncode, answer['complete'], places(answer)), (1, False, [5]),
          'the last one of a search that was interrupted')


@limit(150)
def test_parts_and_ends(work):
    """In several processes, first, last, limited, interrupted: the same positions."""
    for i, rounds in enumerate((5000, 10000, 20000)):   # a busy host makes few checkpoints
        run = record(work, guest_args(work, 'dmacode', f'rounds={rounds}'), name=f'run{i}',
                     options=',checkpoint-interval=0.02').dir
        info = json.loads(tt('info', run, '--json').stdout)
        if info['checkpoints'] >= 3:
            break
    end = info['end']
    steps, span = [], 20000
    while not steps:                    # it may be waiting for its disk there
        steps = find(run, '$rsp', '--changes', '--from', str(end // 2), '--to',
                     str(end // 2 + span))['found']
        span *= 4
    condition = f'at {steps[0]["pc"]}'
    whole = find(run, condition, '--limit', '1000000')
    equal(whole['processes'], 1, 'processes')
    for jobs in ('2', '3'):
        parts = find(run, condition, '--limit', '1000000', '-j', jobs)
        check(parts['processes'] > 1, f'{parts["processes"]} parts')
        equal(places(parts), places(whole), f'with -j {jobs}')
    there = places(whole)
    equal(places(find(run, condition, '--first')), there[:1], 'first')
    equal(places(find(run, condition, '--first', '-j', '2')), there[:1], 'first, -j 2')
    equal(places(find(run, condition, '--last')), there[-1:], 'last')
    equal(places(find(run, condition, '--last', '-j', '2')), there[-1:], 'last, -j 2')
    last_of_interrupted(work, run)
    few = find(run, condition, '--limit', '5', '-j', '2')
    equal((places(few), few['more']), (there[:5], True), 'five')
    memory = '*(u32 *)' + hex(int(steps[0]['value'], 16) & ~3)
    for how in ([], ['--changes']):
        one = find(run, memory, '--limit', '1000000', *how)
        two = find(run, memory, '--limit', '1000000', '-j', '2', *how)
        equal(values(two), values(one), f'{memory} {how}')
    moves = f'$rsp + $rdi {condition}'
    equal(values(find(run, moves, '--changes', '--limit', '1000000', '-j', '2')),
          values(find(run, moves, '--changes', '--limit', '1000000')), 'changes at')
    equal(find(run, '*(u32 *)0x1000 == 0x12345678', '-j', '2')['found'], [], 'nothing')


@limit(60)
def test_interrupted(work):
    """Ctrl-C ends it and its processes, and says that there may be more."""
    # By single steps, of so many: that lasts long enough for a slow host.
    run = record(work, guest_args(work, 'dmacode', 'rounds=10000')).dir
    with subprocess.Popen([tool('tt'), 'find', run, '$rsp == 1 && $cpu', '--to', str(FEW),
                           '--qemu', qemu_binary(), '--json'],
                          stdout=subprocess.PIPE, text=True) as p:
        children = f'/proc/{p.pid}/task/{p.pid}/children'
        wait_until(lambda: open(children, encoding='ascii').read().split(), 'QEMU')
        child = open(children, encoding='ascii').read().split()[0]
        os.kill(int(child), signal.SIGSTOP)     # it is not at its end before
        p.send_signal(signal.SIGINT)
        answer = json.loads(p.communicate(timeout=30 * SLOW)[0])
    equal((p.returncode, answer['complete']), (1, False), 'status')
    check('interrupted' in answer['problems'], f'{answer}')
    wait_until(lambda: not os.path.exists(f'/proc/{child}'), 'the end of QEMU')


@limit(60)
def test_in_a_replay(work):
    """The monitor's commands find the same, and the VM stands where it was."""
    run = lines_run(work)
    changes = values(in_lines(run, '*(u64 *)&counter', '--changes'))
    address = re.search(r'\b0*([0-9a-f]+) \w counter$',
                        run_tool('nm', SYMBOLS)[0], re.M).group(1)
    memory = f'*(u64 *)0x{address}'
    with stopped_replay(work, run) as vm:
        goto(vm, position=changes[2][0])
        there = digest(vm)
        answer = vm.qmp.cmd('tt-find', condition=memory, changes=True)
        equal([(p['position'], p['value']) for p in answer['places']], changes, 'QMP')
        equal((answer['complete'], digest(vm)), (True, there), 'state afterwards')
        answer = vm.qmp.cmd('tt-find', condition=memory, changes=True, limit=3)
        equal((len(answer['places']), answer['complete']), (3, False), 'limit')
        answer = vm.qmp.cmd('tt-find', condition=f'{memory} == 7', monotone=True)
        equal(answer['places'], [], 'not true at the end')
        said = vm.qmp.hmp(f'tt find -m {memory} >= 7')
        check(f'position {changes[6][0]} ' in said and '1 found' in said, said)
        said = vm.qmp.hmp(f'tt find -c -f {changes[1][0]} -t {changes[3][0]} {memory}')
        equal(re.findall(r'position (\d+)', said), [str(p) for p, _ in changes[2:4]],
              'HMP')
        for part, wanted in ((f'-f start -t {changes[0][0]}', changes[:1]),
                             (f'-f {changes[-2][0]} -t end', changes[-1:])):
            equal(re.findall(r'position (\d+)', vm.qmp.hmp(f'tt find {part} -c {memory}')),
                  [str(p) for p, _ in wanted], part)
        check('nothing to search' in vm.qmp.hmp(f'tt find -f end {memory}'), '-f end')
        equal(digest(vm), there, 'state afterwards')
        for wrong in ('', ' -n', ' -f ends $rax', ' -n end $rax', ' -n 0 $rax',
                      ' $rax +', ' -f 9999999999 $rax'):
            check(len(vm.qmp.hmp(f'tt find{wrong}').split()) > 4, f'tt find{wrong}')


def at_symbol(name):
    return re.search(rf'\b0*([0-9a-f]+) \w {name}$', run_tool('nm', SYMBOLS)[0],
                     re.M).group(1)


@limit(150)
def test_beside_a_gdb(work):
    """A gdb's own watchpoints of a process and conditions, at the same addresses, hide
    nothing from a search. One that leaves takes its stops out: then it is not complete."""
    run = lines_run(work)
    counter, leaf = at_symbol('counter'), at_symbol('leaf')
    changes = values(in_lines(run, '*(u64 *)&counter', '--changes'))
    calls = places(in_lines(run, 'at leaf'))
    vm, _ = debugged(work, run)
    with vm:
        gdb = Packets(vm.socket_path('gdb'))
        equal(gdb(f'qtt.only:{counter},8,1,{ord("p"):x},4d2,0'), 'OK', 'a filter')
        answer = vm.qmp.cmd('tt-find', condition=f'*(u64 *)0x{counter}', changes=True)
        equal([(p['position'], p['value']) for p in answer['places']], changes, 'filtered')
        equal(gdb(f'Z0,{leaf},1;X3,220027'), 'OK', 'a condition that never holds')
        answer = vm.qmp.cmd('tt-find', condition=f'at 0x{leaf}')
        equal([p['position'] for p in answer['places']], calls, 'at leaf')
        gdb(f'z0,{leaf},1')
        process = f'qtt.hits-in:{ord("p"):x},4d2,0'
        for how in ('refused', 'left'):
            equal(gdb(process), 'OK', 'a process')
            if how == 'refused':
                check(gdb('qtt.hits:x').startswith('E'), 'no search')
            else:
                gdb.close()
                gdb = Packets(vm.socket_path('gdb'))
            equal(gdb(f'qtt.hits:64,0,ffffffff,{leaf}'), 'OK', 'the next search')
            gdb('vCont;c')
            equal(gdb('qtt.found:0').count('.'), len(calls),
                  f'hits after a search in a process was {how}')
        gdb.close()
    run = record(work, guest_args(work, 'dmacode', 'rounds=300'), name='long')
    middle = json.loads(tt('info', run.dir, '--json').stdout)['end'] // 2
    step = find(run, '$rsp', '--changes', '--from', str(middle), '--first')['found'][0]
    memory = f'*(u32 *){int(step["value"], 16) & ~3:#x}'
    vm, _ = debugged(work, run, 'left')
    with vm:
        whole = vm.qmp.cmd('tt-find', 60, condition=memory, changes=True)['places']
        check(len(whole) > 2, f'{memory}: {whole}')
        gdb = Packets(vm.socket_path('gdb'))
        vm.qmp.cmd('tt-find', condition=memory, changes=True, job_id='f')
        wait_until(lambda: any(job['current-progress'] for job in vm.qmp.cmd('query-jobs')),
                   'the beginning of the search')
        gdb.send('D;1')
        wait_until(lambda: vm.qmp.cmd('query-jobs')[0]['status'] == 'concluded', 'the end', 60)
        said = vm.qmp.cmd('query-jobs')[0].get('error')
        if said:
            check('removed the search' in said, said)
        else:                           # gdb came too late
            equal(vm.qmp.event('TT_FOUND')['places'], whole, 'what is said to be all')
        gdb.close()


@limit(60)
def test_is_a_job(work):
    """As a job, an event has what the command itself would have found; what is wrong is
    said at once; one that is cancelled ends, and has not found all."""
    run = record(work, guest_args(work, 'dmacode', 'rounds=300'))
    with stopped_replay(work, run) as vm:
        there, end = digest(vm), vm.qmp.cmd('query-tt')['end']
        whole = vm.qmp.cmd('tt-find', condition='*(u32 *)0x1000', changes=True)
        nothing = vm.qmp.cmd('tt-find', condition='*(u32 *)0x1000', changes=True,
                             job_id='f')
        equal(nothing, {'places': [], 'complete': False}, 'answer of a job')
        job = job_ends(vm, 'f')
        equal((job['type'], job['current-progress']), ('tt-find', job['total-progress']),
              'the job')
        found = vm.qmp.event('TT_FOUND')
        equal((found.pop('job-id'), found, digest(vm)), ('f', whole, there), 'the event')
        for wrong in ('$rax +', 'nobody == 1'):
            check(vm.qmp.error('tt-find', condition=wrong, job_id='x'), wrong)
        equal(vm.qmp.cmd('query-jobs'), [], 'jobs')
        os.kill(vm.process.pid, signal.SIGSTOP)     # it gets both at once
        both = [vm.qmp.send('tt-find', **{'condition': '$rsp == 1 && $cpu', 'job-id': 'g',
                                          'to': min(end, FEW)}),
                vm.qmp.send('job-cancel', id='g')]
        os.kill(vm.process.pid, signal.SIGCONT)
        for number in both:
            vm.qmp.answer(number)
        job_ends(vm, 'g', '')
        equal(vm.qmp.event('TT_FOUND'), {'job-id': 'g', 'places': [], 'complete': False},
              'of one that was cancelled')
        goto(vm, position=0)
        vm.qmp.cmd('cont')
        check('operand' in vm.qmp.hmp('tt find ('), 'what is wrong')
        check(vm.qmp.cmd('query-status')['running'] or
              vm.qmp.cmd('query-tt')['position'] == end, 'what is wrong stopped the VM')


@limit(60)
def test_rip_is_linear(work):
    """$rip has the base of CS in it, which gdb's has not; an address at which gdb breaks is
    one of these."""
    run = lines_run(work)
    with replayer(work, run, ['-S', *Gdb.args(work, 'rep')]) as vm:
        text = Gdb(vm)('stepi', 'stepi', 'stepi', 'p/x $rip', 'p/x $cs', 'p $tt_position')
        rip, cs, pos = (int(n, 0) for n in re.findall(r'^\$\d = (\w+)$', text, re.M))
        check(cs and rip < 1 << 16, f'not in real mode: {text}')
    part = ['--from', str(pos), '--to', str(pos + 1), '--first']
    equal([places(find(run, f'$rip == {n:#x}', *part)) for n in (cs * 16 + rip, rip)],
          [[pos], []], 'with the base of CS, and without')


@limit(60)
def test_refused(work):
    """What makes no sense gets one sentence."""
    run = lines_run(work).dir
    for args, wanted in (
            (['counter == 1'], '--symbols'),
            (['nobody == 1', '--symbols', SYMBOLS], "no symbol 'nobody'"),
            (['$rax = 1'], '=='), (['$rax +'], 'operand'), (['1 == 1'], 'ever changes'),
            (['1 / 0'], 'divides by zero'), (['$rax % (2 - 2) == 1'], 'divides by zero'),
            (['-$rax == 1'], 'write -- before a CONDITION'), (['--rax'], 'has no option'),
            (['$rip == 1', '--changes'], 'at ADDRESS'),
            (['$rip == 1', '--monotone'], 'monotone'),
            (['*(u8 *)1', '--monotone', '-j', '2'], '-j'),
            (['*(u8 *)1', '--first', '--last'], 'exclude'),
            (['*(u8 *)1', '--from', '5', '--to', '5'], 'above'),
            (['*(u8 *)1', '--from', '99999999999'], 'not before the end of the run'),
            (['*(u8 *)1', '--from', '99999999999999999999'], '--from is too large'),
            (['*(u8 *)1', '--from', '@nowhere'], "no mark 'nowhere'"),
            (['*(u8 *)1', '--from', '-1'], "a number, start, end or @MARK, not '-1'"),
            (['*(u8 *)1', '--limit', '0'], '--limit'), (['*(u8 *)1', '-j', '0'], '-j'),
            (['*(u8 *)1', '--offset', '5'], '--symbols')):
        said = tt('find', run, *args, '--qemu', qemu_binary(), rc=2).stderr
        check(wanted in said.splitlines()[0], f'{args}: {said}')
    part = ['--to', '100000']
    minus = tt('find', *part, '--json', '--qemu', qemu_binary(), '--', run, '-$rax == -1')
    equal(places(json.loads(minus.stdout)), places(find(run, '$rax == 1', *part)),
          'a condition that begins with -')
    for options, wanted in (
            ('find=all', 'find-condition'), ('find-condition=1', 'find=all'),
            ('find=5-4,find-condition=$rax', 'FROM-TO'),
            ('find=all,find-condition=$foo', 'no register'),
            ('find=all,find-condition=$rax,verify=all', 'give only one'),
            ('find=all,find-condition=$rax,find-how=x', 'find-how')):
        said = run_tool(qemu_binary(), '-tt', f'replay,dir={run},{options}', rc=1)[1]
        check(wanted in one_sentence(said, options), f'{options}: {said}')


def check_torn(work):
    """The recorder was killed: a search says where it ended, and what is noted of the log
    comes at once, not when a long replay is over."""
    torn, qemu = os.path.join(work, 'torn.run'), os.path.join(work, 'waits')
    log = os.path.join(torn, 'log')
    # Long enough for several segments, of which the last one is cut.
    record(work, guest_args(work, 'dmacode', 'rounds=3000'), name='torn')
    os.truncate(log, os.path.getsize(log) - 100)
    info = json.loads(tt('info', torn, '--json').stdout)
    check(info['torn'] and info['end'], f'{info}')
    words = f'the search ended at position {info["end"]}, where the recording was cut off'
    for part, is_said in (([], True), (['--to', str(info['end'] + 1)], True),
                          (['--to', str(info['end'])], False), (['--to', '5'], False)):
        said = tt('find', torn, '$rip == 1', *part, '--qemu', qemu_binary()).stderr
        equal(words in said, is_said, f'{part}: {said}')
    answer = find(torn, '$rip == 1')
    equal((answer['from'], answer['to'], answer['torn']), (0, info['end'], True), 'the part')
    with open(qemu, 'w', encoding='ascii') as f:
        f.write('#!/bin/sh\nexec sleep 1000\n')
    os.chmod(qemu, 0o755)
    with subprocess.Popen([tool('tt'), 'syscalls', torn, '--qemu', qemu], text=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as p:
        said = p.stderr.readline()      # QEMU does not end
        p.terminate()
    check('cut off' in said, said)


@limit(60)
def test_marks_and_ends(work):
    """--from, --to and POS take marks; --to may be beyond the end, in each command."""
    run = lines_run(work).dir
    end = json.loads(tt('info', run, '--json').stdout)['end']
    with open(os.path.join(run, 'marks'), 'w', encoding='ascii') as f:
        f.write(f'1000 early\n{end - 1000} late\n')
    part = ['--from', '@early', '--to', '@late']
    for command, *args in (['find', '$rip == 1'], ['run-plugin', 'count'], ['syscalls']):
        tt(command, run, *args, *part, '--qemu', qemu_binary())
        for bounds, rc, why in (
                (['--from', '@late', '--to', str(end + 1)], 0, ''),
                (['--from', str(end)], 2, 'is not before the end of the run'),
                (['--from', '@late', '--to', '@early'], 2, 'above --from')):
            said = tt(command, run, *args, *bounds, '--qemu', qemu_binary(), rc=rc).stderr
            check(why in said, f'{command} {bounds}: {said}')
    said = json.loads(tt('run-plugin', run, 'count', *part, '--json', '--qemu',
                         qemu_binary()).stdout)
    equal((said['from'], said['to']), (1000, end - 1000), 'the part')
    for bounds in (['--from', '@late', '--to', 'end'], ['--from', 'start', '--to', '@late']):
        said = json.loads(tt('find', run, '$rip == 1', *bounds, '--json', '--qemu',
                             qemu_binary()).stdout)
        equal([said['from'], said['to']], [{'@late': end - 1000, 'start': 0, 'end': end}[b]
                                           for b in bounds[1::2]], f'{bounds}')
    for bounds, why in ((['--from', 'end'], 'is not before the end of the run'),
                        (['--to', 'start'], 'above --from'), (['--to', '+5'], "end or @MARK")):
        said = tt('find', run, '$rip == 1', *bounds, rc=2).stderr
        check(why in said.splitlines()[0], f'{bounds}: {said}')
    last = [json.loads(line) for line in
            tt('log', run, '--from', 'end', '--to', 'end', '--json').stdout.splitlines()]
    equal((last[-1]['kind'], {ev['position'] for ev in last}), ('finish', {end}), 'the end')
    for pos in '@late', 'start', 'end':
        tt('origin', run, pos, '$rax', '--qemu', qemu_binary())
    said = tt('origin', run, '-5', '$rax', rc=2).stderr
    check("POS takes a position: a number, start, end or @MARK, not '-5'" in said, said)
    for pos, where in ('start', 0), ('end', end):
        equal(json.loads(tt('time', run, pos, '--json').stdout)['position'], where, pos)
    equal(json.loads(tt('time', run, '@early', '--json').stdout)['position'], 1000, 'time')
    for command, *more in ['time'], ['origin', '$rax']:
        for pos, why in ((str(end + 1), 'outside the run'), ('@x', "no mark 'x'")):
            said = tt(command, run, pos, *more, rc=2).stderr
            check(why in one_sentence(said, command), said)
    check_torn(work)
