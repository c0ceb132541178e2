# SPDX-License-Identifier: GPL-2.0-or-later
"""The process that records shows its past, and returns to the present."""

import os
import random
import re
import socket
import time

from guests import guest_args, linux_args, linux_disk, linux_net
from test_linux import READY, check_works
from ttlib import (Gdb, QmpError, check, digest, digest_at, equal, fail, goto,
                   limit, one_sentence, recorder, replay, same_console, seed,
                   stopped_replay, wait_until, web_server)

ENDLESS = 'rounds=100000 percent=10'
LONG = 20_000_000       # positions
THREADS = {'one': [], 'single': ['-accel', 'tcg,thread=single']}


def where(vm):
    return vm.qmp.cmd('query-tt')


def present(vm):
    """Returns to it; the digest it has."""
    answer = vm.qmp.cmd('tt-goto', 60, where='end')
    equal(answer['reason'], 'end', 'reason of tt-goto end')
    status = where(vm)
    check(not status['past'], f'still in the past: {status}')
    return digest(vm)


def visit(vm, rng, count):
    """Random positions of the past, twice each; their digests."""
    end = where(vm)['end']
    positions = [rng.randrange(end) for _ in range(count)]
    seen = {}
    for position in positions + positions[::-1]:
        found = digest_at(vm, position)
        equal(found, seen.setdefault(position, found), 'digest of a position '
              'that was seen before')
        status = where(vm)
        check(status['past'] and status['mode'] == 'record',
              f'query-tt in the past: {status}')
    return seen


def goes_on(vm, text=b'sum='):
    shown = vm.serial.count(text)
    vm.qmp.cmd('cont')
    wait_until(lambda: vm.serial.count(text) > shown + 1, 'the guest goes on')


def check_run(work, vm, seen, name='straight'):
    """All digests are those of a replay of the whole run."""
    with stopped_replay(work, vm.run, name, timeout=120) as rep:
        for position in sorted(seen):
            equal(digest_at(rep, position), seen[position],
                  f'digest at {position}')
        goto(rep, where='end')
    end = replay(work, vm.run, name=f'{name}-exit', timeout=120)
    same_console(end.serial, vm.serial, name)


def visits(work, args, rounds, options='', name='rec'):
    rng = seed()
    seen = {}
    with recorder(work, args, name, options, qmp=1, timeout=170) as vm:
        vm.wait_serial('sum=')
        for _ in range(rounds):
            vm.qmp.cmd('stop')
            before = digest(vm)
            seen.update(visit(vm, rng, 4))
            after = present(vm)
            equal(after[1:], before[1:], 'the present after the past')
            seen[after[0]] = after
            goes_on(vm)
            time.sleep(rng.uniform(0, 0.5))
        check('no mark' in vm.qmp.error('tt-goto', mark='nowhere'), 'a mark that is not')
        check(vm.qmp.cmd('query-status')['running'], 'what is refused stops nothing')
        vm.qmp.send('quit')
        vm.wait(0)
    check(b'FAIL' not in vm.serial, f'the guest failed: {vm.serial[-200:]}')
    check_run(work, vm, seen, f'{name}-straight')


@limit(200)
def test_torture(work):
    """A guest of hazards is recorded; five times its past is visited at random
    positions and recording goes on; every digest is the final run's."""
    visits(work, guest_args(work, 'torture', 'rounds=100000 percent=30'), 5)


@limit(200)
def test_single_thread(work):
    """The same with thread=single, without and with dense checkpoints."""
    args = guest_args(work, 'torture', 'rounds=100000 percent=30')
    visits(work, args + THREADS['single'], 2, ',checkpoint-interval=0', 'none')
    visits(work, args + THREADS['single'], 2, ',checkpoint-interval=0.2', 'dense')


@limit(100)
def test_svm(work):
    """While a guest of the guest has the vCPU."""
    visits(work, guest_args(work, 'svm', 'rounds=100000000 every=20'), 2,
           ',checkpoint-interval=0.1')


@limit(100)
def test_npt(work):
    """The same with nested paging and interrupts that its hypervisor gives it: what
    a checkpoint leaves out of the vCPU, or changes in it, shows in digests."""
    visits(work, guest_args(work, 'npt', 'rounds=100000000 every=20'), 2,
           ',checkpoint-interval=0.1')


@limit(240)
def test_linux(work):
    """A Debian kernel at work on disk and network is taken into its past five
    times and goes on; the run is exact, and the guest noticed nothing."""
    rng = seed()
    payload = random.Random(1).randbytes(2 << 20)
    seen = {}
    with web_server({'/file': payload}) as port:
        args = linux_args('vda,net,procs,net,vda,hold',
                          f'n=30 u=http://10.0.2.2:{port}/file')
        args += linux_disk(work) + linux_net()
        with recorder(work, args, qmp=1, timeout=200,
                      options=',checkpoint-interval=1') as vm:
            vm.wait_serial(READY)
            for _ in range(5):
                vm.qmp.cmd('stop')
                before = digest(vm)
                seen.update(visit(vm, rng, 2))
                after = present(vm)
                equal(after[1:], before[1:], 'the present after the past')
                seen[after[0]] = after
                vm.qmp.cmd('cont')
                time.sleep(rng.uniform(0.3, 1))
            vm.wait_serial('TT-HOLDS', 120)
            vm.qmp.send('quit')
            vm.wait(0)
    check_works(vm.serial, 'vda', f'net pings=3 bytes={2 << 20}', 'procs')
    check_run(work, vm, seen)


@limit(60)
def test_cont(work):
    """cont in the past runs forward to the present and stands there; the next
    one goes on recording. A stop on the way stands in the past."""
    args = guest_args(work, 'torture', ENDLESS)
    with recorder(work, args, qmp=1) as vm:
        # Enough of a past to be met in its middle.
        wait_until(lambda: vm.serial.count(b'sum=') > 20, 'it works')
        goto(vm, delta=-1000000)
        vm.qmp.cmd('cont')
        vm.qmp.event('STOP')
        wait_until(lambda: vm.qmp.cmd('query-status')['status'] == 'paused',
                   'the replay stands at the end')
        status = where(vm)
        check(status['past'] and status['position'] == status['end'],
              f'after cont: {status}')
        last = digest(vm)
        equal(present(vm), last, 'the end of the past is the present')
        goto(vm, where='start')
        vm.qmp.cmd('cont')
        wait_until(lambda: where(vm)['position'], 'the past runs')
        vm.qmp.cmd('stop')
        status = where(vm)
        check(status['past'] and 0 < status['position'] < status['end'],
              f'after stop: {status}')
        goto(vm, position=status['end'])
        goes_on(vm)             # the end of the past: the present goes on
        vm.qmp.send('quit')
        vm.wait(0)
    check_run(work, vm, {last[0]: last})


@limit(60)
def test_gdb(work):
    """gdb on a recording that runs: reverse-stepi and reverse-continue lead
    into the past, continue comes back, and the recording goes on."""
    args = guest_args(work, 'torture', ENDLESS)
    with recorder(work, [*args, *Gdb.args(work, 'rec')], qmp=1) as vm:
        vm.wait_serial('sum=')
        gdb = Gdb(vm)
        text = gdb('reverse-stepi', 'monitor info tt', 'reverse-stepi',
                   'monitor info tt', 'stepi', 'set $rax = ~$rax',
                   'monitor tt goto 1000', 'continue', 'monitor info tt',
                   'monitor tt goto end', 'monitor info tt')
        check(text.count('this is the past') >= 3, f'gdb says: {text}')
        seen = [(int(a), int(b)) for a, b in
                re.findall(r'position (\d+) of (\d+)', text)]
        # The last one is of the vCPU's state, which the visit has noted.
        check(seen[0] == (seen[0][1] - 2, seen[0][1]) and
              seen[1] == (seen[0][0] - 1, seen[0][1]), f'steps: {text}')
        check('this is the past of a recording, which cannot be changed' in text,
              f'a write into the past: {text}')
        check('No more reverse-execution history' in text or
              'end of' in text.lower() or 'history' in text.lower(),
              f'gdb says: {text}')
        status = where(vm)
        check(not status['past'], f'after goto end: {status}')
        goes_on(vm)
        vm.qmp.send('quit')
        vm.wait(0)
    check_run(work, vm, {})


@limit(60)
def test_refusals(work):
    """What would be an input of the guest, or what looks at the present's
    memory, is refused in the past, and works again in the present."""
    args = guest_args(work, 'torture', ENDLESS)
    with recorder(work, args, qmp=1) as vm:
        vm.wait_serial('sum=')
        vm.qmp.error('tt-goto', position=1 << 60)
        check(not where(vm)['past'], 'a bad goto leads into the past')
        goto(vm, delta=-5000)
        for command in ('system_reset', 'inject-nmi'):
            said = vm.qmp.error(command)
            check('which takes no input' in said and 'in QMP tt-goto' in said, said)
            said = vm.qmp.hmp(command.replace('inject-', ''))
            check('which takes no input' in said and "'tt goto end'" in said, said)
        said = vm.qmp.hmp(f'pmemsave 0 16 "{work}/dump"')
        check('would dump the present' in said and "'tt goto end'" in said, said)
        check('history' in vm.qmp.hmp('loadvm x'), 'loadvm in the past')
        vm.qmp.error('tt-record-start')
        stored = [p for p in vm.qmp.cmd('query-tt-checkpoints')
                  if p['stored']]
        vm.qmp.error('tt-checkpoint-delete', id=stored[0]['id'])
        present(vm)
        vm.qmp.cmd('inject-nmi')
        goes_on(vm)
        goto(vm, delta=-100)
        vm.qmp.send('quit')                 # in the past
        vm.wait(0)
    replay(work, vm.run, name='rep')


@limit(60)
def test_verify(work):
    """tt verify verifies the run so far in the past; in the present it says where it
    works."""
    with recorder(work, guest_args(work, 'torture', 'rounds=100000'), qmp=1) as vm:
        vm.wait_serial('sum=')
        said = vm.qmp.hmp('tt verify')
        check('in the past of a recording' in said and "'tt goto start'" in said, said)
        vm.qmp.hmp('tt goto start', timeout=60)
        said = vm.qmp.hmp('tt verify', timeout=100)
        check('exact up to position' in said, said)
        vm.qmp.send('quit')
        vm.wait(0)


@limit(60)
def test_stop_recording_in_the_past(work):
    """tt-record-stop in the past returns to the present, which goes on
    unrecorded; a second recording has a past of its own."""
    args = guest_args(work, 'torture', ENDLESS)
    with recorder(work, args, qmp=1) as vm:
        vm.wait_serial('sum=')
        goto(vm, where='start')
        answer = vm.qmp.cmd('tt-record-stop', 60)
        check(answer['whole'], f'the recording is not whole: {answer}')
        vm.qmp.cmd('cont')
        time.sleep(0.2)
        vm.qmp.cmd('tt-record-start', 60, dir=f'{vm.run}2')
        vm.qmp.cmd('cont')
        goes_on(vm)
        seen = visit(vm, seed(), 5)
        present(vm)
        goes_on(vm)
        vm.qmp.send('quit')
        vm.wait(0)
    replay(work, vm.run, name='first')
    with stopped_replay(work, f'{vm.run}2', 'second') as rep:
        for position in sorted(seen):
            equal(digest_at(rep, position), seen[position],
                  f'digest at {position}')


@limit(60)
def test_stop_recording_in_a_movement(work):
    """While the past is gone about in, the recording is not stopped."""
    with recorder(work, guest_args(work, 'torture', ENDLESS), qmp=1) as vm:
        wait_until(lambda: where(vm)['position'] > LONG, 'a past that is long enough', 50)
        # The first is answered when the movement has begun, and the second is carried
        # out then, whatever this process does: so much is executed before its end.
        there = {'position': where(vm)['position'] - 1000, 'job-id': 'going'}
        going, stopping = vm.qmp.sends(('tt-goto', there), 'tt-record-stop')
        vm.qmp.answer(going, 60)
        try:
            said = vm.qmp.answer(stopping, 60)
        except QmpError as error:
            said = str(error)
        check('a movement in the past of the recording' in said, said)
        wait_until(lambda: vm.qmp.cmd('query-jobs')[0]['status'] == 'concluded',
                   'the movement ends', 60)
        vm.qmp.cmd('job-dismiss', id='going')
        present(vm)
        goes_on(vm)
        vm.qmp.send('quit')
        vm.wait(0)
    replay(work, vm.run)


@limit(60)
def test_marks(work):
    """Marks made while recording can be gone to, from the present and from
    the past."""
    args = guest_args(work, 'torture', ENDLESS)
    with recorder(work, args, qmp=1) as vm:
        vm.wait_serial('sum=')
        vm.qmp.cmd('stop')
        first = vm.qmp.cmd('tt-mark', name='here')
        vm.qmp.cmd('cont')
        time.sleep(0.3)
        for _ in range(2):
            equal(goto(vm, mark='here')['position'], first['position'],
                  'position of the mark')
        present(vm)


class Terminal:
    """The guest's serial console on a socket."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        wait_until(lambda: self.socket.connect_ex(path) == 0, 'the console')
        self.socket.settimeout(1)
        self.text = b''

    def expect(self, wanted, timeout=60):
        def shown():
            try:
                got = self.socket.recv(1 << 16)
                check(got, f'QEMU closed the console; it said {self.text[-200:]!r}')
                self.text += got
            except socket.timeout:
                pass
            return wanted in self.text
        wait_until(shown, f'the guest says {wanted!r}', timeout)


@limit(120)
def test_typing(work):
    """Keys that are typed while the past is shown, and runs, reach the guest in
    the present; the run is exact."""
    path = os.path.join(work, 'tty')
    args = linux_args('shell', '') + linux_net()
    args += ['-serial', f'unix:{path},server=on,wait=off']
    with recorder(work, args, qmp=1, serial=False, timeout=110) as vm:
        tty = Terminal(path)
        tty.expect(READY.encode())
        tty.socket.sendall(b'echo one-$((6*7))\n')
        tty.expect(b'one-42')
        for name in (b'two', b'three'):
            goto(vm, delta=-20000000)
            vm.qmp.cmd('cont')
            tty.socket.sendall(b'echo ' + name + b'-$((6*7))\n')
            time.sleep(0.5)
            present(vm)
            vm.qmp.cmd('cont')
            tty.expect(name + b'-42')
        vm.qmp.send('quit')
        vm.wait(0)
    rep = replay(work, vm.run, name='rep', timeout=100)
    check(b'three-42' in rep.serial, f'the replay says {rep.serial[-300:]}')


@limit(60)
def test_powered_off(work):
    """A VM that is off has a past: gdb goes back from there, cont runs to its
    end and stands; in the present it is off as before."""
    args = [a for a in guest_args(work, 'torture', 'rounds=1 percent=10')
            if a != '-no-reboot']
    with recorder(work, [*args, '-no-shutdown', *Gdb.args(work, 'rec')],
                  qmp=1) as vm:
        wait_until(lambda: vm.qmp.cmd('query-status')['status'] == 'shutdown',
                   'the guest is off', 50)
        text = Gdb(vm)('reverse-stepi', 'monitor info tt', 'reverse-stepi')
        check('this is the past' in text, f'gdb says: {text}')
        vm.qmp.cmd('cont')
        wait_until(lambda: where(vm)['position'] == where(vm)['end'],
                   'the past is at its end')
        vm.qmp.cmd('cont')
        wait_until(lambda: vm.qmp.cmd('query-status')['status'] == 'paused',
                   'it stands there')
        check(where(vm)['past'], 'cont led out of the past')
        present(vm)
        equal(vm.qmp.cmd('query-status')['status'], 'shutdown', 'status')
        vm.qmp.error('cont')
        vm.qmp.send('quit')
        vm.wait(0)
    replay(work, vm.run, name='rep')
