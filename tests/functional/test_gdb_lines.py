# SPDX-License-Identifier: GPL-2.0-or-later
"""gdb's commands for lines, calls and conditions, both ways; Ctrl-C; several
sessions. The guest is a 64-bit program with debug information."""

import os
import re
import socket
import time

from guests import guest_args
from ttlib import (BUILD, REPO, SLOW, Gdb, check, digest, digest_at, end_of, equal,
                   limit, read_text, record, replayer, run_tool, stopped_replay, wait_until)

WHERE = 'monitor info tt'


def lines_run(work, append='rounds=5'):
    return record(work, guest_args(work, 'lines64', append), timeout=60)


def debugged(work, run, name='rep', **kw):
    """A stopped replay; the second value runs commands with symbols."""
    vm = replayer(work, run, ['-S', *Gdb.args(work, name)], name, qmp=1, **kw)
    gdb = Gdb(vm)

    def session(*commands, **kwargs):
        return gdb(f'file {BUILD}/guests/lines64.debug', *commands, **kwargs)
    return vm, session


def positions(text):
    return [int(n) for n in re.findall(r'^position (\d+)', text, re.M)]


def is_end(text):
    """gdb was told that history ends; newer ones say it in other words."""
    return re.search('No more reverse-execution history|'
                     'Reached end of recorded history', text)


def source(text):
    """The source lines that gdb showed, without their numbers."""
    return [line.strip() for line in
            re.findall(r'^\d+\t(.*)$', text, re.M)]


@limit(90)
def test_lines_both_ways(work):
    """next, step, finish, until and advance, and the reverse of each."""
    run = lines_run(work)
    vm, gdb = debugged(work, run)
    with vm:
        text = gdb('break middle', 'continue', WHERE, 'next', 'next',
                   'step', 'finish', WHERE)
        equal(source(text), ['u64 a = leaf(n);', 'u64 b = leaf(a + 1);',
                             'total += a + b;', 'return a ^ b;',
                             'sum += middle(i);'], 'lines going forward')
        there = positions(text)
        text = gdb('reverse-step', 'reverse-step', 'reverse-next',
                   'tbreak middle', 'reverse-finish', WHERE, 'bt')
        equal(source(text)[:3], ['}', 'return a ^ b;', 'total += a + b;'],
              'lines going back')
        equal(positions(text), there[:1], 'reverse-finish to a breakpoint')
        text = gdb('reverse-finish', WHERE, 'x/i $pc')
        check('call' in text and positions(text)[0] < there[0],
              f'reverse-finish did not stop at the call: {text}')
        text = gdb('tbreak fib', 'continue', 'until', 'step',
                   'bt', 'up', 'p n')
        check('return fib(n - 1) + fib(n - 2);' in text, f'advance: {text}')
        check('fib (n=5)' in text and '$1 = 6' in text,
              f'step into a call: {text}')
        text = gdb('tbreak leaf if n == 7', 'reverse-continue', 'p n', 'bt',
                   'info breakpoints', 'reverse-next', 'reverse-next')
        check('$1 = 7' in text and 'Temporary breakpoint 1, leaf' in text and
              'No breakpoints' in text, f'tbreak going back: {text}')
        check('middle (n=2)' in text, f'out of a call, going back: {text}')


@limit(60)
def test_unit_of_a_step(work):
    """tt step and tt back go by the unit that is set."""
    run = lines_run(work)
    vm, gdb = debugged(work, run)
    with vm:
        script = f'source {REPO}/scripts/tt-gdb.py'
        text = gdb(script, 'break middle', 'continue', WHERE, 'tt step 3', WHERE,
                   'tt back 3', WHERE)
        at = positions(text)
        equal([at[1] - at[0], at[2] - at[0]], [3, 0], 'instructions')
        text = gdb(script, 'show tt-step-unit', 'set tt-step-unit call', 'show tt-step-unit',
                   'tt step 2', 'tt back', 'set tt-step-unit line', 'tt step')
        check('by one instruction' in text and 'by one call' in text, text)
        equal(source(text), ['total += a + b;', 'u64 b = leaf(a + 1);', 'counter++;'],
              'lines over calls, and into one')
        text += gdb(script, 'bt 1', 'set tt-step-unit function', 'tt step', 'tt back')
        check('leaf (' in text, f'a step into a call: {text}')
        check('Value returned is $1 = 3' in text and 'sum += middle(i);' in source(text),
              f'to the end and the beginning of a function: {text}')
        check('is not a number' in gdb(script, 'tt step x'), 'a wrong number')
        text = gdb(script, 'tbreak leaf', 'continue', 'set tt-step-unit function',
                   'break middle', 'tt step 9', 'bt 1')
        check(re.search('^#0 .*middle ', text, re.M), f'stopped at a breakpoint: {text}')
        text = gdb(script, 'tbreak leaf', 'continue', 'set tt-step-unit function', 'tt step 2')
        check(text.count('Value returned') == 2 and 'Python' not in text, f'twice: {text}')


@limit(90)
def test_conditions_both_ways(work):
    """Conditions of breakpoints and watchpoints count in both directions."""
    run = lines_run(work)
    vm, gdb = debugged(work, run)
    with vm:
        text = gdb('break leaf if n == 4', 'hbreak fib if n == 5',
                   *(['continue', 'p n', WHERE] * 3),
                   *(['reverse-continue', 'p n', WHERE] * 2), 'continue',
                   'continue', 'continue')
        equal(re.findall(r'^\$\d+ = (\d+)', text, re.M),
              ['4', '4', '5', '4', '4'], 'values at the stops')
        seen = positions(text)
        equal(seen[3:], seen[1::-1], 'positions going back')
        check(is_end(text), f'no end: {text}')
        text = gdb('watch total if total > 20', 'reverse-continue', WHERE,
                   'reverse-continue', WHERE)
        values = re.findall(r'(Old|New) value = (\d+)', text)
        equal(values, [('Old', '135'), ('New', '84'), ('Old', '84'),
                       ('New', '45')], 'values of the watchpoint')


def values(text):
    return [int(n) for n in re.findall(r'^\$\d+ = (\d+)', text, re.M)]


@limit(90)
def test_conditions_inside_qemu(work):
    """A hit whose condition is false is not even told to gdb, in both
    directions."""
    run = lines_run(work, 'rounds=5 spins=100000')
    vm, gdb = debugged(work, run, timeout=80)
    with vm:
        text = gdb('break spin if i % 50000 == 49999', 'set debug remote 1',
                   *(['continue', 'p i'] * 2), 'continue',
                   *(['reverse-continue', 'p i'] * 2), 'reverse-continue',
                   'set debug remote 0', 'info breakpoints', timeout=80)
        equal(values(text), [49999, 99999, 99999, 49999], 'values of i')
        stops = text.count('received: T')   # steps from a breakpoint included
        check(6 <= stops <= 12, f'gdb heard of {stops} stops')
        check('target evals' in text, f'who looks? {text[-300:]}')


@limit(90)
def test_conditions_in_a_short_loop(work):
    """The loop's body is one block that jumps to itself: each pass counts."""
    run = lines_run(work, 'rounds=1 spins=6')
    vm, gdb = debugged(work, run)
    source = read_text(os.path.join(REPO, 'tests', 'guests', 'lines64.c')).splitlines()
    line = next(n for n, text in enumerate(source, 1) if 'x = x *' in text)
    with vm:
        text = gdb(f'break {line} if k == 7 && i > 1', *(['continue', 'p i * 100 + k'] * 4),
                   *(['reverse-continue', 'p i * 100 + k'] * 3))
        equal(values(text), [207, 307, 407, 507, 407, 307, 207],
              f'passes where the condition holds: {text}')


@limit(90)
def test_conditions_at_one_place(work):
    """Several breakpoints of one place each count, as do changed conditions
    and those that cannot be evaluated."""
    run = lines_run(work, 'rounds=5 spins=50')
    vm, gdb = debugged(work, run)
    with vm:
        text = gdb('break spin if i == 5', 'break spin if i == 9',
                   'hbreak spin if i == 7', *(['continue', 'p i'] * 3),
                   'delete 2', 'monitor tt goto start',
                   'maint flush register-cache', 'continue', 'p i',
                   'continue', 'p i', 'break spin', 'continue', 'p i')
        equal(values(text), [5, 7, 9, 5, 7, 8], 'values of i')
        text = gdb('monitor tt goto start', 'maint flush register-cache',
                   'set breakpoint always-inserted on',
                   'break spin if i == 20', 'continue', 'p i',
                   'condition 1 i == 30', 'continue', 'p i', 'delete',
                   'continue')
        equal(values(text), [20, 30], 'values with a changed condition')
        check(is_end(text), f'a breakpoint is left: {text}')
        text = gdb('monitor tt goto start', 'maint flush register-cache',
                   'break spin if total / (i - 3) == 12345', 'continue',
                   'p i')
        check('Division by zero' in text, f'no error: {text}')
        equal(values(text), [3], 'where the condition fails')


@limit(90)
def test_position_register(work):
    """$tt_position is a register: right after each stop, in each frame."""
    run = lines_run(work)
    vm, gdb = debugged(work, run)
    with vm:
        show = ['p $tt_position', WHERE]
        text = gdb(*show, 'break leaf', 'continue', *show, 'up', *show,
                   'stepi', *show, 'reverse-continue', *show, 'continue',
                   'finish', *show, 'info registers tt_position',
                   'set $tt_position = 5', *show)
        equal(values(text), positions(text), '$tt_position')
        equal(values(text)[0], 0, '$tt_position at the start')
        check('history cannot be changed' in text, f'it was set: {text}')


@limit(60)
def test_writes_are_refused(work):
    """Each way to write says that history stays as it is, and changes
    nothing."""
    run = lines_run(work)
    vm, gdb = debugged(work, run)
    with vm:
        gdb('break middle', 'continue')
        before = digest(vm)
        for command in ('set $rax = ~$rax', 'jump power_off', 'return',
                        'call leaf(3)'):
            text = gdb(command, 'p/x 0x600d')
            check('history cannot be changed' in text or
                  'Cannot access memory' in text, f'{command}: {text}')
            check('0x600d' in text, f'{command} ended gdb: {text}')
        text = gdb('set var counter = 77', 'p counter')
        check('Cannot access memory' in text and '77' not in
              text.split('Cannot')[1], f'a write into memory: {text}')
        equal(digest(vm), before, 'state after refused writes')
        check('history cannot be changed' in vm.stderr,
              f'nobody said why memory cannot be written: {vm.stderr}')


@limit(90)
def test_detach_and_attach(work):
    """After detach the VM runs on; the next gdb goes wherever it likes."""
    run = lines_run(work)
    vm, gdb = debugged(work, run)
    with vm:
        first = gdb('break middle', 'continue', 'continue', WHERE, 'detach')
        wait_until(lambda: vm.qmp.cmd('query-tt')['position'] == end_of(vm),
                   'the end of the run')
        text = gdb('reverse-stepi', 'break middle',
                   *(['reverse-continue'] * 4), WHERE, 'reverse-continue',
                   WHERE)
        equal(positions(text)[0], positions(first)[0],
              'the second call, met from behind')
        check(positions(text)[1] < positions(text)[0], 'the first call')


# Packets, for what a batch gdb cannot do at a chosen moment

class Packets:
    """One connection to a gdbstub, without a gdb."""

    def __init__(self, path):
        wait_until(lambda: self._connect(path), 'the gdb socket')
        self.pending = b''
        self('qSupported:multiprocess+;swbreak+')
        self('?')

    def _connect(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60 * SLOW)
        try:
            self.sock.connect(path)
        except OSError:
            return False
        return True

    def send(self, packet, before=b''):
        data = packet.encode()
        self.sock.sendall(before + b'$%s#%02x' % (data, sum(data) & 255))

    def answer(self):
        while True:
            found = re.search(rb'\$([^#]*)#..', self.pending, re.S)
            if found:
                self.pending = self.pending[found.end():]
                self.sock.sendall(b'+')
                return found.group(1).decode('latin1')
            data = self.sock.recv(65536)
            check(data, 'the gdbstub closed the connection')
            self.pending += data

    def __call__(self, packet):
        self.send(packet)
        return self.answer()

    def interrupt(self):
        self.sock.sendall(b'\x03')

    def close(self):
        self.sock.close()


def address(name):
    """Of a symbol of lines64."""
    text, _ = run_tool('nm', f'{BUILD}/guests/lines64.debug')
    found = re.search(rf'^([0-9a-f]+) \w {name}$', text, re.M)
    check(found, f'no symbol {name}')
    return int(found.group(1), 16)


@limit(120)
def test_interrupt_anything(work):
    """Ctrl-C ends a search and a run at once, at a position whose state is
    that of a straight replay."""
    run = lines_run(work, 'rounds=5 spins=12000000')
    vm, _ = debugged(work, run, timeout=100)
    with vm:
        end = end_of(vm)
        vm.qmp.cmd('tt-goto', 60, position=end * 2 // 3)
        gdb = Packets(vm.socket_path('gdb'))
        # Beside what the loop uses of its stack: never hit, never skipped.
        unused = address('stack_top') - 3000
        equal(gdb(f'Z2,{unused:x},8'), 'OK', 'a watchpoint')
        gdb.send('bc')
        time.sleep(0.1)
        began = time.monotonic()
        gdb.interrupt()
        reply = gdb.answer()
        took = time.monotonic() - began
        searched = digest(vm)
        check(reply.startswith('T02') and 'replaylog' not in reply,
              f'the search answered {reply}')
        check(searched[0] > end // 6, f'it went on to {searched[0]}: the '
                                      f'interrupt took {took:.2f} s')
        gdb.send('vCont;c')
        wait_until(lambda: vm.qmp.cmd('query-tt')['position'] > searched[0], 'it runs')
        gdb.interrupt()
        reply = gdb.answer()
        ran = digest(vm)
        check(reply.startswith('T02') and ran[0] > searched[0],
              f'the run answered {reply} at {ran[0]}')
        with stopped_replay(work, run, 'other', timeout=100) as other:
            for seen in (searched, ran):
                equal(digest_at(other, seen[0]), seen, 'digest')


@limit(150)
def test_search_skips(work):
    """A search leaves out what cannot hold a hit: the last write of a variable,
    long ago, is found in a fraction of the time, and is the same one."""
    run = lines_run(work, 'rounds=5 spins=10000000')
    times, found = [], []
    for name, options in (('skips', ''), ('scans', ',x-omit=search-skip')):
        vm, _ = debugged(work, run, name, options=options, timeout=120)
        with vm:
            vm.qmp.cmd('tt-goto', 100, where='end')
            gdb = Packets(vm.socket_path('gdb'))
            gdb.sock.settimeout(100)
            for packet in ('Z2,{},8', 'Z4,{},8'):
                packet = packet.format(f'{address("rare"):x}')
                equal(gdb(packet), 'OK', packet)
                began = vm.cpu_seconds()
                reply = gdb('bc')
                times.append(vm.cpu_seconds() - began)
                found.append((reply, vm.qmp.cmd('query-tt')['position']))
                equal(gdb('z' + packet[1:]), 'OK', 'removing it')
                vm.qmp.cmd('tt-goto', 100, where='end')
    print([f'{t:.2f} s of CPU time' for t in times])
    equal(found[:2], found[2:], 'what was found')
    check('watch:' in found[0][0], f'found {found[0]}')
    check(sum(times[:2]) < sum(times[2:]), 'nothing was left out: it took as long')


@limit(60)
def test_smashed_stack(work):
    """From a wild jump back to who overwrote the return address, although the
    stack that a backtrace needs is gone."""
    run = lines_run(work, 'rounds=1 smash=1')
    check(b'trap at' in run.serial, f'no crash: {run.serial}')
    vm, gdb = debugged(work, run)
    with vm:
        text = gdb('hbreak *trap_stub', 'continue', 'reverse-stepi',
                   'p/x $pc', 'reverse-stepi', 'x/i $pc',
                   'watch -l *(unsigned long *)$rsp', 'reverse-continue',
                   'delete', 'bt', 'up', 'p whom')
        check(re.search(r'^\$1 = 0x(6\w|7\w|20){8}$', text, re.M),
              f'the wild jump goes to no letters: {text}')
        check(re.search(r'<greet\+\d+>:\s+ret', text), f'no return: {text}')
        tail = text.split('Hardware watchpoint')[-1]
        check(re.search(r'#0 .* copy \(to=.*\n#1 .* greet \(whom=', tail) and
              '*to++ = *from++;' in tail and 'somebody whose name' in tail,
              f'not found who wrote: {tail}')


@limit(60)
def test_interrupt_between_stops(work):
    """A Ctrl-C that comes while the VM stands, between two stops of which gdb
    tells its user nothing, is answered by the next resumption; an old one is
    not."""
    run = lines_run(work)
    vm, _ = debugged(work, run)
    with vm:
        gdb = Packets(vm.socket_path('gdb'))
        equal(gdb(f'Z0,{address("leaf"):x},1'), 'OK', 'a breakpoint')
        reply = gdb('vCont;c')
        check(reply.startswith('T05'), f'the breakpoint answered {reply}')
        here = vm.qmp.cmd('query-tt')['position']
        for resume in ('vCont;c', 'bc'):
            gdb.send(resume, before=b'\x03')    # together: nothing delays the second
            reply = gdb.answer()
            check(reply.startswith('T02'), f'{resume} answered {reply}')
            equal(vm.qmp.cmd('query-tt')['position'], here, 'position')
        for _ in range(20):             # it may come too late on a busy host
            gdb.interrupt()
            equal(gdb('qtt.goto:-5'), 'OK', 'a movement to come')
            reply = gdb('vCont;s')
            if reply.startswith('T02'):
                break
            vm.qmp.cmd('tt-goto', 60, position=here)
        check(reply.startswith('T02'), f'the movement answered {reply}')
        gdb.interrupt()
        gdb('qC')                       # its answer comes after the interrupt has been seen
        time.sleep(2)
        reply = gdb('vCont;s')
        check(reply.startswith('T05'), f'later it answered {reply}')
        equal(vm.qmp.cmd('query-tt')['position'], here + 1, 'a step')


@limit(60)
def test_gdb_that_died(work):
    """The breakpoints of a gdb that ended without a word are gone."""
    run = lines_run(work)
    vm, _ = debugged(work, run)
    with vm:
        gdb = Packets(vm.socket_path('gdb'))
        equal(gdb(f'Z0,{address("leaf"):x},1'), 'OK', 'a breakpoint')
        check(gdb('vCont;c').startswith('T05'), 'the breakpoint')
        gdb.close()
        gdb = Packets(vm.socket_path('gdb'))
        reply = gdb('vCont;c')
        check('replaylog:end' in reply, f'it stopped again: {reply}')
