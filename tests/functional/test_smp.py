# SPDX-License-Identifier: GPL-2.0-or-later
"""Several vCPUs take turns; who ran when is replayed exactly."""

import random
import re
import time

from guests import guest_args, linux_args, linux_disk, linux_net, own_args
from test_gdb_lines import Packets
from test_linux import READY, check_works
from test_past import check_run, present, visit
from ttlib import (Gdb, Vm, check, check_exact, digest, digest_at, end_of,
                   equal, goto, limit, record, recorder, replay, run_tool,
                   seed, stopped_replay, tool, wait_until, web_server)


def check_smp(serial, count):
    check(f'1 node, {count} CPUs'.encode() in serial,
          f'the guest did not bring up {count} CPUs')


def same_elsewhere(work, run, digests):
    """What a process that only goes forward has at these positions."""
    with stopped_replay(work, run, 'other', timeout=60) as straight:
        for place in sorted(digests):
            equal([*digest_at(straight, place)[1:]], digests[place],
                  f'digest at {place}')


def travel(work, run, count, rng):
    """Random positions in random order have the digests of a straight run."""
    wanted = {}
    with stopped_replay(work, run, 'straight', timeout=200) as rep:
        end = end_of(rep)
        positions = [rng.randrange(end + 1) for _ in range(count)]
        for position in sorted(positions):
            wanted[position] = digest_at(rep, position)
    with stopped_replay(work, run, 'random', timeout=200) as rep:
        for position in positions:
            equal(digest_at(rep, position), wanted[position],
                  f'digest at {position}')
        equal(len(rep.qmp.cmd('query-tt-digest')['vcpus']),
              len(rep.qmp.cmd('query-cpus-fast')), 'digests of vCPUs')


def linux_test(count, machine, works, extra=(), options=''):
    def test(work):
        args = linux_args(works, 'n=40', machine) + linux_disk(work)
        args += ['-smp', str(count), *extra]
        run = record(work, args, options=options, timeout=150)
        check_works(run.serial, *works.split(','))
        check_smp(run.serial, count)
        check_exact(work, run, name='first', timeout=150)
        travel(work, run, 12, seed())
    test.__doc__ = (f'Linux on {count} vCPUs of {machine} replays exactly, also '
                    'to random positions in random order.')
    return limit(240)(test)


test_two = linux_test(2, 'pc', 'vda,procs')
test_four_q35 = linux_test(4, 'q35', 'procs,rand', linux_net(),
                           ',checkpoint-interval=1')
test_eight = linux_test(8, 'pc', 'procs')


def chaos_test(count):
    def test(work):
        args = guest_args(work, 'smp', f'cpus={count} rounds=300')
        args[args.index('-smp') + 1] = str(count)
        run = record(work, args, options=',chaos=on')
        check(b'FAIL' not in run.serial, f'the guest says {run.serial}')
        lost = re.search(rb'lost=([0-9a-f]{8})', run.serial)
        check(lost and int(lost[1], 16), f'no update was lost: {run.serial}')
        check_exact(work, run, name='rep')
        check_exact(work, run, ['-accel', 'tcg,one-insn-per-tb=on'],
                    name='slow')
        travel(work, run, 40, seed())
    test.__doc__ = (f'{count} vCPUs that race, with chaos=on: updates get lost, '
                    'and every replay loses the same.')
    return limit(100)(test)


test_chaos_two = chaos_test(2)
test_chaos_eight = chaos_test(8)
test_chaos_linux = linux_test(4, 'pc', 'procs', (), ',chaos=on')


@limit(200)
def test_past(work):
    """The past of two vCPUs is visited while they are recorded; they go on, and
    the run is exact."""
    rng = seed()
    seen = {}
    args = linux_args('vda,procs,hold', 'n=60') + linux_disk(work)
    args += ['-smp', '2']
    with recorder(work, args, qmp=1, timeout=150,
                  options=',checkpoint-interval=1') as vm:
        vm.wait_serial(READY, 100)
        for _ in range(3):
            vm.qmp.cmd('stop')
            before = digest(vm)
            seen.update(visit(vm, rng, 2))
            after = present(vm)
            equal(after[1:], before[1:], 'the present after the past')
            seen[after[0]] = after
            vm.qmp.cmd('cont')
            time.sleep(rng.uniform(0.2, 0.6))
        vm.wait_serial('TT-HOLDS', 100)
        vm.qmp.send('quit')
        vm.wait(0)
    check_works(vm.serial, 'vda', 'procs')
    check_run(work, vm, seen)


@limit(120)
def test_attach(work):
    """A VM of two vCPUs with thread=single is recorded for a while, and goes
    on; with thread=multi that is refused with a hint."""
    args = linux_args('procs,hold', 'n=100') + ['-smp', '2']
    with Vm(work, [*args, '-accel', 'tcg,thread=single'], qmp=1,
            timeout=100) as vm:
        vm.wait_serial(READY, 100)
        run = f'{work}/run'
        vm.qmp.cmd('tt-record-start', 60, dir=run)
        time.sleep(0.5)
        answer = vm.qmp.cmd('tt-record-stop', 60)
        check(answer['whole'] and answer['position'] > 1000, f'{answer}')
        vm.wait_serial('TT-HOLDS', 100)
        vm.qmp.send('quit')
        vm.wait(0)
    check_works(vm.serial, 'procs')
    replay(work, run, name='rep', timeout=60)


@limit(120)
def test_attach_again(work):
    """Every recording begins with vCPU 0, whoever had the turn when the one before
    it ended."""
    runs = [f'{work}/run{n}' for n in range(6)]
    args = guest_args(work, 'smp', 'cpus=2 rounds=1000000000 pause=1')
    with Vm(work, [*args, '-smp', '2', '-accel', 'tcg,thread=single'], qmp=1,
            timeout=100) as vm:
        vm.wait_serial('start')
        for run in runs:
            vm.qmp.cmd('tt-record-start', 60, dir=run)
            time.sleep(0.1)
            vm.qmp.cmd('tt-record-stop', 60)
        vm.qmp.send('quit')
        vm.wait(0)
    for n, run in enumerate(runs):
        replay(work, run, name=f'rep{n}', timeout=60)


@limit(120)
def test_gdb(work):
    """gdb sees the vCPUs as threads, begins with the one whose turn it is, and
    one step of that is one position."""
    run = record(work, [*linux_args('rand', ''), '-smp', '2'], timeout=60)
    with stopped_replay(work, run, args=Gdb.args(work, 'rep'),
                        timeout=110) as rep:
        goto(rep, position=end_of(rep) // 2)
        text = Gdb(rep)('info threads', 'stepi', 'monitor info tt', 'stepi',
                        'reverse-stepi', 'monitor info tt',
                        'reverse-stepi', 'monitor info tt')
        equal(len(re.findall(r'Thread 1\.\d', text.split('rip')[0])) >= 2,
              True, f'gdb shows two threads: {text}')
        places = re.findall(r'position (\d+) of', text)
        start = end_of(rep) // 2
        equal([int(p) - start for p in places], [1, 1, 0], f'gdb: {text}')


class Turns:
    """Where a step of one vCPU leads, by the log: (first position, last) of each
    of its turns."""

    def __init__(self, run):
        text, _ = run_tool(tool('tt'), 'log', run.dir, timeout=60)
        self.of, begin, whose = {}, 0, 0
        for pos, cpu in re.findall(r'^ *(\d+) cpu-switch cpu=(0x\d+)', text,
                                   re.M):
            self.of.setdefault(whose, []).append((begin, int(pos)))
            begin, whose = int(pos) + 1, int(cpu, 16)
        self.of.setdefault(whose, []).append((begin, 1 << 62))

    def forward(self, cpu, pos):
        """An empty turn has nothing to step."""
        return min(max(pos, first) + 1 for first, last in self.of[cpu]
                   if first < last and pos < last)

    def backward(self, cpu, pos):
        return max(min(pos, last) - 1 for first, last in self.of[cpu]
                   if first < last and first < pos)


def walk_turn(gdb, rep, turns, cpu, last):
    """Steps of a vCPU over the end of its turn, there and back."""
    goto(rep, position=last - 2)
    here, seen, wanted = last - 2, [], []
    for packet, lead in [(f'vCont;s:p1.{cpu + 1};c:p1.-1',
                          turns.forward)] * 5 + [('bs', turns.backward)] * 6:
        reply = gdb(packet)
        check(reply.startswith(f'T05thread:p01.0{cpu + 1};'),
              f'{packet} from {here}: {reply}')
        here = lead(cpu, here)
        wanted.append(here)
        seen.append(rep.qmp.cmd('query-tt')['position'])
    equal(seen, wanted, f'steps of vCPU {cpu} from {last - 2}')


@limit(120)
def test_steps_of_one(work):
    """stepi and reverse-stepi stay with their vCPU, over the turns of the three
    others, which run meanwhile; digests are those of a straight replay."""
    rng, digests = seed(), {}
    run = record(work, guest_args(work, 'smp'), timeout=60)
    turns = Turns(run)
    with stopped_replay(work, run, args=Gdb.args(work, 'rep'),
                        timeout=100) as rep:
        rep.qmp.cmd('query-tt')
        gdb = Packets(rep.socket_path('gdb'))
        for _ in range(6):
            cpu = rng.randrange(4)
            full = [last for first, last in turns.of[cpu][50:-50]
                    if last - first > 5]
            walk_turn(gdb, rep, turns, cpu, rng.choice(full))
            position, *digests[position] = digest(rep)
    same_elsewhere(work, run, digests)


@limit(90)
def test_stops_of_others(work):
    """gdb's steps of a thread end in that thread, unless another vCPU meets a
    breakpoint meanwhile, in either direction."""
    run = record(work, guest_args(work, 'smp'), timeout=60)
    turns = Turns(run)
    first, last = next(turn for turn in turns.of[0][100:]
                       if turn[1] - turn[0] > 500)
    with stopped_replay(work, run, args=Gdb.args(work, 'rep'),
                        timeout=80) as rep:
        goto(rep, position=next(begin for begin, end in turns.of[1]
                                if begin > last and end - begin > 500) + 300)
        found = re.search(r'[ER]IP=([0-9a-f]+)', rep.qmp.hmp(
            'info registers -a').split('CPU#1')[1])
        shared = int(found.group(1), 16)
        goto(rep, position=last)
        look = ['thread', 'p/x $pc']
        text = Gdb(rep)('stepi', *look, 'reverse-stepi', 'reverse-stepi',
                        *look, 'stepi', f'hbreak *{shared:#x}', 'stepi', *look,
                        'delete', 'thread 1', 'stepi', *look,
                        f'hbreak *{shared:#x}', 'reverse-stepi',
                        'reverse-stepi', *look)
        check('SIGTRAP' not in text, f'a step ended elsewhere: {text}')
        threads = re.findall(r'Current thread is (\d)', text)
        check(threads[:2] == ['1', '1'] and threads[2] != '1' and
              threads[3] == '1' and threads[4] != '1',
              f'threads {threads}: {text}')
        equal(text.count(f'= {shared:#x}'), 2, f'breakpoints met in {text}')


@limit(120)
def test_steps_back_of_selected(work):
    """A step back is one of the thread that gdb has selected, whose turn it is or not, and
    as Hc names it or Hg; from anywhere in a turn."""
    rng, digests = seed(), {}
    run = record(work, guest_args(work, 'smp'), timeout=60)
    turns = Turns(run)
    with stopped_replay(work, run, args=Gdb.args(work, 'rep'),
                        timeout=100) as rep:
        gdb = Packets(rep.socket_path('gdb'))
        for n in range(12):
            cpu, whose = rng.randrange(4), rng.randrange(4)
            first, last = rng.choice([turn for turn in turns.of[whose][50:-50]
                                      if turn[1] - turn[0] > 5])
            goto(rep, position=rng.choice((first, first + 1, last - 1, last)))
            select = (f'Hgp1.{cpu + 1}', f'Hcp1.{cpu + 1}')[n % 2]
            gdb('Hcp1.0')
            for _ in range(3):
                here = rep.qmp.cmd('query-tt')['position']
                equal(gdb(select), 'OK', select)
                reply = gdb('bs')
                check(reply.startswith(f'T05thread:p01.0{cpu + 1};'),
                      f'a step back of vCPU {cpu} from {here}: {reply}')
                equal(rep.qmp.cmd('query-tt')['position'], turns.backward(cpu, here),
                      f'a step back of vCPU {cpu} from {here}')
            position, *digests[position] = digest(rep)
    same_elsewhere(work, run, digests)


@limit(120)
def test_gdb_steps_back_of_selected(work):
    """gdb's reverse-stepi is of its selected thread, with each kind of scheduler locking;
    a breakpoint at which another vCPU stands stops it."""
    run = record(work, guest_args(work, 'smp'), timeout=60)
    turns = Turns(run)
    whose = 0
    first, last = next(turn for turn in turns.of[whose][100:] if turn[1] - turn[0] > 500)
    here = first + 300
    wanted = turns.backward(2, here)
    with stopped_replay(work, run, args=Gdb.args(work, 'rep'), timeout=100) as rep:
        for mode in ('off', 'on', 'step', 'replay'):
            goto(rep, position=here)
            text = Gdb(rep)(f'set scheduler-locking {mode}', 'thread 3', 'info threads',
                            'reverse-stepi', 'thread', 'monitor info tt', 'stepi', 'thread',
                            'monitor info tt')
            check('SIGTRAP' not in text, f'{mode}: it ended elsewhere: {text}')
            equal(re.findall(r'Current thread is (\d)', text), ['3', '3'], f'{mode}: threads')
            equal([int(p) for p in re.findall(r'position (\d+) of', text)],
                  [wanted, wanted + 1], f'{mode}: positions')
        goto(rep, position=here - 1)
        before = int(re.search(r'[ER]IP=([0-9a-f]+)', rep.qmp.hmp(
            'info registers -a').split('CPU#0')[1])[1], 16)
        goto(rep, position=here)
        text = Gdb(rep)(f'hbreak *{before:#x}', 'thread 3', 'reverse-stepi', 'thread',
                        'monitor info tt')
        check('Thread 1 hit Breakpoint' in text and f'position {here - 1} of' in text,
              f'the breakpoint of another: {text}')


@limit(120)
def test_make(work):
    """Work that is spread over four vCPUs, with a download beside it."""
    payload = random.Random(1).randbytes(1 << 20)
    with web_server({'/file': payload}) as port:
        args = linux_args('procs,net,sh', f'n=30 '
                          f'u=http://10.0.2.2:{port}/file')
        run = record(work, [*args, *linux_net(), '-smp', '4'], timeout=100)
    check_works(run.serial, 'procs', f'net pings=3 bytes={1 << 20}', 'sh')
    check_exact(work, run, name='rep', timeout=100)


EJECTS = b'''#!/bin/busybox sh
for f in /sys/bus/acpi/devices/LNXCPU:*/eject; do
    [ -e "$f" ] && echo TT-EJECTS "$f" && echo 1 > "$f"
done
sleep 3
echo TT-DONE own
'''


@limit(100)
def test_ejected(work):
    """A guest that ejects its vCPUs: they stay, and so does the recording. (QEMU's vCPUs
    share a thread then, which waited for its own end: the process was aborted.)"""
    args = own_args(work, {'own/run': EJECTS})
    vm = record(work, [*args, '-smp', '2'], timeout=90)
    check(vm.serial.count(b'TT-EJECTS') == 1 and b'TT-DONE own' in vm.serial,
          f'the guest says {vm.serial[-300:]}')
    check_exact(work, vm)
