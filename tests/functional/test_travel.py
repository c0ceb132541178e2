# SPDX-License-Identifier: GPL-2.0-or-later
"""Any position of a run can be reached, from anywhere, exactly."""

import os
import re
import signal

from guests import guest_args
from hmp import Hmp, hmp_args
from ttlib import (REPO, Gdb, QmpError, Vm, check, digest, digest_at, end_of,
                   equal, fail, goto, goto_exact, limit, read_bytes, record,
                   recorder, replayer, seed, stopped_replay, wait_until)

SMALL_TORTURE = 'rounds=1 percent=10'


def straight_digests(work, run, positions, name='straight'):
    """Digests at ascending positions of a process that only goes forward."""
    found = {}
    with stopped_replay(work, run, name) as vm:
        for position in sorted(set(positions)):
            found[position] = digest_at(vm, position)
        goto(vm, where='end')
        found['end'] = digest(vm)
    return found


def check_random_order(work, run, positions, wanted, name):
    with stopped_replay(work, run, name, timeout=120) as vm:
        for position in positions:
            equal(digest_at(vm, position), wanted[position],
                  f'{name}: digest at {position}')
        goto(vm, where='end')
        equal(digest(vm), wanted['end'], f'{name}: digest at the end')


def last_position(work, run):
    with stopped_replay(work, run, 'end') as vm:
        return end_of(vm)


@limit(180)
def test_hundred_positions(work):
    """100 random positions in random order, forwards and backwards: the
    digests equal those of a run straight through and of a second process."""
    run = record(work, guest_args(work, 'torture', SMALL_TORTURE))
    rng = seed()
    end = last_position(work, run)
    positions = [rng.randrange(end + 1) for _ in range(100)]
    wanted = straight_digests(work, run, positions)
    check_random_order(work, run, positions, wanted, 'random')
    rng.shuffle(positions)
    check_random_order(work, run, positions[:50], wanted, 'second')


def travel_test(name, append, count):
    def test(work):
        run = record(work, guest_args(work, name, append))
        rng = seed()
        end = last_position(work, run)
        positions = [rng.randrange(end + 1) for _ in range(count)]
        positions += [0, end, 1, end - 1]
        wanted = straight_digests(work, run, positions)
        check_random_order(work, run, positions, wanted, 'random')
    test.__doc__ = (f'{count} random positions of guest {name} are reached '
                    'exactly in random order.')
    return limit(90)(test)


for _name, _append in (('reset', None), ('mmiox', None), ('dmacode', None),
                       ('a20', None), ('smm', None), ('fp', 'rounds=1000'),
                       ('abits', None), ('hlt', 'rounds=40'),
                       ('apic', 'rounds=1500'), ('debug', 'rounds=20'),
                       ('codebits', 'rounds=20'), ('ins', 'rounds=10'),
                       ('selfdma', 'rounds=10'), ('ptmmio', None),
                       ('svm', 'rounds=2000'), ('npt', 'rounds=2000'),
                       ('edge64', 'rounds=60')):
    globals()[f'test_of_{_name}'] = travel_test(_name, _append, 16)


def place_with_breakpoints(vm):
    """A position shortly before the end at which the guest's debug
    registers are in use."""
    end = end_of(vm)
    for back in range(2000, 500000, 500):
        goto_exact(vm, end - back)
        dr7 = re.search(r'DR7=([0-9a-f]+)', vm.qmp.hmp('info registers'))
        if int(dr7.group(1), 16) & 0xff == 5:
            return end - back
    fail('the guest uses no debug registers')
    return 0


@limit(90)
def test_stops_at_guest_breakpoints(work):
    """Stops at every position around the guest's own breakpoints and
    watchpoints change nothing of what comes after."""
    run = record(work, guest_args(work, 'debug', 'rounds=4 parts=1'))
    with stopped_replay(work, run, 'one') as one, \
            stopped_replay(work, run, 'other') as other:
        first = place_with_breakpoints(one)
        for position in range(first, first + 400):
            goto_exact(one, position)
        here = digest(one)
        equal(here, digest_at(other, here[0]), 'digest after 400 stops')
        for vm in (one, other):
            goto(vm, where='end')
        equal(digest(one), digest(other), 'digest at the end')


def places_behind_traps(vm, first, count):
    """Positions that a movement to the one before ends at."""
    found = []
    while len(found) < count:
        first += 1
        place = goto(vm, position=first)['position']
        if place > first:
            found.append(place)
            first = place
    return found


@limit(90)
def test_back_from_a_trap(work):
    """By so many positions back does not stay where it is, though the position
    before is no resting place; nor does gdb's."""
    run = record(work, guest_args(work, 'debug', 'rounds=4 parts=1'))
    with replayer(work, run, ['-S', *Gdb.args(work, 'one')], 'one',
                  qmp=1) as one, stopped_replay(work, run, 'other') as other:
        gdb = Gdb(one)
        places = places_behind_traps(one, place_with_breakpoints(one), 3)
        for place in places:
            wanted = digest_at(other, place - 2)
            for delta in (-1, -2):
                equal(goto(one, position=place)['position'], place, 'there')
                equal(goto(one, delta=delta)['position'], place - 2,
                      f'{delta} from {place}')
                equal(digest(one), wanted, f'digest at {place - 2}')
            equal(goto(one, delta=1)['position'], place, 'forwards again')
            one.qmp.hmp('tt goto -1')
            equal(digest(one), wanted, f'tt goto -1 from {place}')
            gdb(f'source {REPO}/scripts/tt-gdb.py', f'tt goto {place}',
                'tt goto -1')
            equal(digest(one), wanted, f'gdb: tt goto -1 from {place}')


@limit(90)
def test_digests_of_the_recorder(work):
    """The recorder's own digests, taken while it was stopped, are found in
    the replay at the same positions; so are its marks."""
    args = guest_args(work, 'torture', 'rounds=100000 percent=60')
    taken = []
    with recorder(work, args, qmp=1) as vm:
        vm.wait_serial('start')
        while len(taken) < 6:
            vm.qmp.cmd('stop')
            taken.append(digest(vm))
            equal(vm.qmp.cmd('query-tt')['position'], taken[-1][0],
                  'position of the stopped recorder')
            vm.qmp.cmd('tt-mark', name=f'stop{len(taken)}')
            vm.qmp.cmd('cont')
            wait_until(lambda: vm.qmp.cmd('query-tt')['position']
                       > taken[-1][0] + 200000, 'progress of the recording')
        vm.qmp.send('quit')
        vm.wait(0)
    with stopped_replay(work, vm.run) as rep:
        for number, wanted in reversed(list(enumerate(taken, 1))):
            equal(digest_at(rep, wanted[0]), wanted,
                  f'digest {number} of the recorder')
        for number, wanted in enumerate(taken, 1):
            answer = goto(rep, mark=f'stop{number}')
            equal(answer['position'], wanted[0], f'mark stop{number}')


def test_every_position_of_a_stretch(work):
    """Neighbouring positions, reached one by one, backwards and by delta,
    are the same places; delta moves by as much as it says."""
    run = record(work, guest_args(work, 'exceptions', 'rounds=2'))
    with stopped_replay(work, run) as vm:
        middle = end_of(vm) * 2 // 3
        by_position = [digest_at(vm, middle + i) for i in range(25)]
        for i in reversed(range(25)):
            equal(digest_at(vm, middle + i), by_position[i], 'backwards')
        goto_exact(vm, middle)
        for i in range(1, 25):
            answer = goto(vm, delta=1)
            equal(answer, {'position': middle + i, 'reason': 'target'},
                  'answer to delta 1')
            equal(digest(vm), by_position[i], f'after {i} steps of delta 1')
        answer = goto(vm, delta=-20)
        equal(answer['position'], middle + 4, 'delta -20')
        equal(digest(vm), by_position[4], 'after delta -20')


def test_start_and_end(work):
    """Start and end have names, and going beyond them is an error that
    leaves the VM where it stands."""
    run = record(work, guest_args(work, 'cpuid', 'rounds=2'))
    with stopped_replay(work, run) as vm:
        state = vm.qmp.cmd('query-tt')
        equal((state['mode'], state['position'], state['start']),
              ('replay', 0, 0), 'a replay that was started with -S')
        start = digest(vm)
        end = state['end']
        check(end > 100000, f'the run ends at {end}')
        equal(goto(vm, where='end')['position'], end, 'tt-goto end')
        last = digest(vm)
        for arguments in ({'position': end + 1}, {'position': 1 << 62},
                          {'position': -1}, {'mark': 'nobody'},
                          {'where': 'nowhere'}, {},
                          {'position': 1, 'delta': 1}):
            message = vm.qmp.error('tt-goto', **arguments)
            check(len(message.split()) >= 3, f'bare message: {message}')
            equal(digest(vm), last, f'state after a refused {arguments}')
        equal(goto(vm, where='start')['position'], 0, 'tt-goto start')
        equal(digest(vm), start, 'digest at the start')
        goto_exact(vm, end)
        equal(digest(vm), last, 'digest at the end, reached by number')


def test_delta_beyond(work):
    """A delta beyond an end of the run stops there or is refused."""
    run = record(work, guest_args(work, 'cpuid', 'rounds=2'))
    with stopped_replay(work, run) as vm:
        end = end_of(vm)
        goto_exact(vm, end // 2)
        for delta, reason, place in ((end, 'end', end),
                                     (-2 * end, 'start', 0)):
            goto_exact(vm, end // 2)
            try:
                answer = vm.qmp.cmd('tt-goto', delta=delta)
            except QmpError as error:
                equal(vm.qmp.cmd('query-tt')['position'], end // 2,
                      f'position after a refused delta ({error})')
                continue
            equal(answer, {'position': place, 'reason': reason},
                  f'answer to delta {delta}')


def test_marks(work):
    """Marks made in a replay are kept with the run for later replays."""
    run = record(work, guest_args(work, 'cpuid', 'rounds=2'))
    with stopped_replay(work, run, 'first') as vm:
        goto_exact(vm, end_of(vm) // 3)
        wanted = digest(vm)
        equal(vm.qmp.cmd('tt-mark', name='here')['position'], wanted[0],
              'tt-mark')
        goto(vm, where='start')
    check(os.path.exists(os.path.join(run.dir, 'marks')),
          'the replay wrote no marks file')
    with stopped_replay(work, run, 'second') as vm:
        equal(goto(vm, mark='here')['position'], wanted[0], 'goto mark')
        equal(digest(vm), wanted, 'digest at the mark')
        vm.qmp.hmp('tt goto start')
        vm.qmp.hmp('tt goto @here')
        equal(digest(vm), wanted, 'digest at the mark, by the monitor')


def test_names_of_marks(work):
    """A mark may not look like a place that tt goto knows by itself."""
    run = record(work, guest_args(work, 'cpuid', 'rounds=1'))
    with stopped_replay(work, run) as vm:
        vm.qmp.cmd('tt-goto', where='start')
        for name in ('start', 'end', '12', '0x12', '', 'a b'):
            message = vm.qmp.error('tt-mark', name=name)
            check('is not a valid name for a mark' in message, f'{name}: {message}')
        vm.qmp.cmd('tt-mark', name='end-of-12')


def test_monitor_commands(work):
    """The monitor's forms move and tell as the QMP commands do."""
    run = record(work, guest_args(work, 'cpuid', 'rounds=2'))
    with stopped_replay(work, run) as vm:
        end = end_of(vm)
        place = end // 2
        for line, wanted in ((f'tt goto {place}', place),
                             ('tt goto +10', place + 10),
                             ('tt goto -20', place - 10),
                             ('tt goto start', 0), ('tt goto end', end),
                             ('tt mark m1', end), ('tt goto start', 0),
                             ('tt goto @m1', end)):
            vm.qmp.hmp(line)
            equal(vm.qmp.cmd('query-tt')['position'], wanted,
                  f'position after "{line}"')
        _, cpu, ram = digest(vm)
        text = vm.qmp.hmp('tt digest')
        check(cpu in text and ram in text,
              f'"tt digest" does not show the digest: {text}')
        text = vm.qmp.hmp('info tt')
        check(str(end) in text and 'replay' in text,
              f'"info tt" does not tell mode and position: {text}')
        text = vm.qmp.hmp(f'tt goto {end + 5}')
        check(text.strip() and vm.qmp.cmd('query-tt')['position'] == end,
              f'"tt goto" beyond the end says: {text}')
        text = vm.qmp.hmp('tt verify', timeout=60)
        check('diverg' not in text.lower() and text.strip(),
              f'"tt verify" of a good run says: {text}')


def test_cont_and_stop(work):
    """cont replays forward, stop stops, and the end stops with an event."""
    run = record(work, guest_args(work, 'torture', SMALL_TORTURE))
    with stopped_replay(work, run) as vm:
        end = end_of(vm)
        vm.qmp.cmd('cont')
        wait_until(lambda: vm.qmp.cmd('query-tt')['position'] > 1000,
                   'the replay moves after cont')
        vm.qmp.cmd('stop')
        first = vm.qmp.cmd('query-tt')['position']
        check(0 < first, 'stop went to the start')
        state = digest(vm)
        vm.qmp.events.clear()
        vm.qmp.cmd('cont')
        event = vm.qmp.event('TT_STOPPED', 30)
        equal(event, {'position': end, 'reason': 'end'}, 'TT_STOPPED')
        equal(vm.qmp.cmd('query-status')['status'], 'paused',
              'status at the end')
        check(not vm.qmp.cmd('query-tt')['diverged'], 'it says diverged')
        equal(vm.serial, run.serial, 'console of the whole replay')
        equal(digest_at(vm, first), state, 'digest where stop had stopped')
        vm.qmp.cmd('quit')
        vm.wait(0)


def test_goto_event(work):
    """tt-goto sends TT_STOPPED with the place and the reason."""
    run = record(work, guest_args(work, 'cpuid', 'rounds=2'))
    with stopped_replay(work, run) as vm:
        place = end_of(vm) // 2
        goto_exact(vm, place)
        equal(vm.qmp.event('TT_STOPPED'),
              {'position': place, 'reason': 'target'}, 'TT_STOPPED')


def ask_meanwhile(monitor):
    """query-tt out of band where QEMU allows that, else in band."""
    try:
        return monitor.answer(monitor.send('query-tt', oob=True), 2)
    except QmpError:
        return monitor.cmd('query-tt', 2)


def test_other_monitor_meanwhile(work):
    """While one monitor waits for tt-goto, another gets its answers."""
    run = record(work, guest_args(work, 'torture', 'rounds=4'))
    with stopped_replay(work, run, qmp=2) as vm:
        other = vm.connect(1)
        end = end_of(vm)
        digest(vm)                      # it is live
        number = vm.qmp.send('tt-goto', position=end - 5)
        wait_until(lambda: ask_meanwhile(other)['travelling'], 'it travels')
        equal(vm.qmp.answer(number, 60),
              {'position': end - 5, 'reason': 'target'}, 'tt-goto')


def test_monitor_interrupts(work):
    """tt interrupt in the monitor ends a movement that QMP began."""
    run = record(work, guest_args(work, 'torture', 'rounds=8'))
    path = os.path.join(work, 'hmp')
    with stopped_replay(work, run, args=hmp_args(path), qmp=2) as vm:
        other = vm.connect(1)
        end = end_of(vm)
        text = vm.qmp.hmp('tt interrupt')
        check('no movement' in text, f'without a movement: {text}')
        with Hmp(path) as hmp:
            number = vm.qmp.send('tt-goto', where='end')
            wait_until(lambda: ask_meanwhile(other)['travelling'],
                       'it travels')
            hmp.send('tt interrupt')
            answer = vm.qmp.answer(number, 60)
        equal(answer['reason'], 'interrupted', 'tt-goto')
        check(answer['position'] < end, f'{answer} of {end}')
        goto_exact(vm, end)


def test_monitor_interrupts_monitor(work):
    """While tt goto of one HMP monitor is under way, another one is served and
    interrupts it; and quit of that one ends QEMU at once."""
    run = record(work, guest_args(work, 'torture', 'rounds=15'))
    paths = [os.path.join(work, f'hmp{n}') for n in range(2)]
    args = []
    for n, path in enumerate(paths):
        args += ['-chardev', f'socket,id=m{n},path={path},server=on,wait=off',
                 '-mon', f'chardev=m{n}']
    with stopped_replay(work, run, args=args) as vm:
        end = end_of(vm)
        with Hmp(paths[0]) as first, Hmp(paths[1]) as second:
            first.send('tt goto end')
            wait_until(lambda: ask_meanwhile(vm.qmp)['travelling'],
                       'it travels')
            second.send('tt interrupt')
            first.read_until('(interrupted)')
            check(ask_meanwhile(vm.qmp)['position'] < end, 'it went to the end')
            first.send('tt goto end')
            wait_until(lambda: ask_meanwhile(vm.qmp)['travelling'],
                       'it travels again')
            second.send('quit')
            vm.wait(0)


@limit(60)
def test_told_to_end_with_a_movement(work):
    """A movement and SIGTERM that come at one time: QEMU ends."""
    run = record(work, guest_args(work, 'torture', 'rounds=2'))
    for number in range(4):
        with stopped_replay(work, run, f'rep{number}') as vm:
            goto(vm, where='end')
            vm.signal(signal.SIGSTOP)
            vm.qmp.send('tt-goto', delta=-1)
            vm.signal(signal.SIGTERM)
            vm.signal(signal.SIGCONT)
            vm.process.wait(30)


def test_digest_needs_a_stop(work):
    """query-tt-digest of a running VM is an error; without -tt as well."""
    args = guest_args(work, 'torture', 'rounds=100000')
    with recorder(work, args, qmp=1) as vm:
        vm.wait_serial('start')
        vm.qmp.error('query-tt-digest')
        equal(vm.qmp.cmd('query-tt')['mode'], 'record', 'mode')
        vm.qmp.cmd('quit')
        vm.wait(0)
    with Vm(work, args, name='plain', qmp=1) as vm:
        equal(vm.qmp.cmd('query-tt')['mode'], 'off', 'mode without -tt')
        vm.qmp.error('query-tt-digest')
        vm.qmp.error('tt-goto', position=10)
        vm.qmp.error('tt-mark', name='m')


def test_at_end(work):
    """at-end decides whether a replay stops or exits at the end."""
    run = record(work, guest_args(work, 'cpuid', 'rounds=2'))
    with replayer(work, run, name='stops', qmp=1) as vm:
        wait_until(lambda: vm.qmp.cmd('query-status')['status'] == 'paused',
                   'the replay stops at its end')
        equal(vm.qmp.cmd('query-tt')['position'], end_of(vm), 'position')
    with replayer(work, run, name='exits', options=',at-end=exit',
                  qmp=1) as vm:
        vm.wait(0)
    with replayer(work, run, name='plain') as vm:
        vm.wait(0)


@limit(90)
def test_dump(work):
    """QEMU's own dumps show the memory of a replay's position, and change nothing."""
    run = record(work, guest_args(work, 'torture', 'rounds=3 percent=10'))
    there, memory = os.path.join(work, 'core'), os.path.join(work, 'memory')
    with stopped_replay(work, run, 'rep') as vm:
        end = end_of(vm)
        seen = set()
        for place in (end, end // 2):
            wanted = digest_at(vm, place)
            for path in (there, memory):
                if os.path.exists(path):
                    os.unlink(path)
            vm.qmp.cmd('pmemsave', val=0, size=64 << 20, filename=memory)
            vm.qmp.cmd('dump-guest-memory', 60, paging=False,
                       protocol=f'file:{there}')
            ram = read_bytes(memory)
            equal(len(ram), 64 << 20, 'size of the memory')
            check(ram[:0xc0000] in read_bytes(there),
                  'the core file holds another memory')
            word = vm.qmp.hmp('xp /1xw 0x1000010').split()[-1]
            equal(int.from_bytes(ram[0x1000010:][:4], 'little'), int(word, 16),
                  'a word of the arena')
            seen.add(hash(ram))
            equal(digest(vm), wanted, 'digest behind the dumps')
        equal(len(seen), 2, 'memories of two positions')
        os.unlink(there)
        vm.qmp.cmd('dump-guest-memory', paging=False, detach=True,
                   protocol=f'file:{there}')
        for _ in range(2):      # while it lasts, and after it
            try:
                vm.qmp.cmd('tt-goto', 60, position=1000)
            except QmpError as why:
                check('is being dumped' in str(why), f'{why}')
            wait_until(lambda: vm.qmp.cmd('query-dump')['status'] == 'completed',
                       'the end of the dump')
            if digest(vm)[0] == 1000:
                break
        equal(digest(vm)[0], 1000, 'position')
        goto(vm, where='end')
        check(not vm.qmp.cmd('query-tt')['diverged'], 'it diverged')


def test_nowhere_to_go(work):
    """Where nothing is recorded tt goto says so, and the VM runs on."""
    with Vm(work, guest_args(work, 'torture', 'rounds=100000'), qmp=1) as vm:
        vm.wait_serial('\n')
        for text in (vm.qmp.error('tt-goto', position=5),
                     vm.qmp.hmp('tt goto 5')):
            check('no recording' in text, text)
        equal(vm.qmp.cmd('query-status')['status'], 'running', 'status')
        vm.qmp.send('quit')
        vm.wait(0)
