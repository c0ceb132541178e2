# SPDX-License-Identifier: GPL-2.0-or-later
"""The conversion of a run of KVM's: damaged and made-up logs of exits, and a conversion
that is broken off. The run is small and was recorded once (tests/golden/runs)."""

import contextlib
import fcntl
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import time

from test_hostile import event, events_of, first, forge, forger, initial_end
from ttlib import (REPO, SLOW, check, equal, fail, goto_exact, limit, qemu_binary, read_bytes,
                   run_tool, seed, short, stopped_replay, tool, tt, wait_until)

PACK = os.path.join(REPO, 'tests', 'golden', 'runs', 'kvm-exits.ttrun')
CONSOLE = b'.............................................................lhdmpldc\n'
LANDMARK_PC, LANDMARK_REGS, LANDMARK_SYSTEM = 0, 16, 16 + 16 * 8
LANDMARK_PAGES = 312
FOREVER = b'\xeb\xfe'                   # jmp to itself
# add dword [0x2000], 1; adc dword [0x2004], 0; jmp to the first
COUNTING = bytes.fromhex('668306002001668316042000ebf2')
START = 0xf0000                         # of the firmware
BUSY = 'another process is converting'


def fresh(work, name):
    """The run as it was recorded, and its log."""
    run = os.path.join(work, name)
    shutil.rmtree(run, ignore_errors=True)
    run_tool(tool('tt'), 'unpack', PACK, run)
    return run, read_bytes(f'{run}/log')


def command(run, more=''):
    return [qemu_binary(), '-tt', f'replay,dir={run},at-end=exit{more}', '-display', 'none',
            '-serial', 'stdio']


def replayed(run, before=None, more=''):
    done = subprocess.run(command(run, more), stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=60 * SLOW, preexec_fn=before)
    return done.returncode, done.stdout, done.stderr.decode(errors='replace')


def result(run):
    """What a conversion makes, but for times."""
    return run_tool(tool('tt'), 'log', run, '--json', '--data')[0]


def check_kept(run, log, what):
    """Nothing is lost: the log of exits is there, and no half of another."""
    names = os.listdir(run)
    check('log.new' not in names, f'{what}: log.new is left')
    check(read_bytes(f'{run}/{"exits" if "exits" in names else "log"}') == log,
          f'{what}: the log of exits has changed')


def check_whole(run, wanted, what):
    status, console, said = replayed(run)
    equal((status, console), (0, CONSOLE), f'{what}: {said}')
    equal(result(run), wanted, what)


def reference(work):
    run, log = fresh(work, 'whole')
    status, console, said = replayed(run)
    equal((status, console), (0, CONSOLE), said)
    check('converted: ' in said and 'replay exact' in said, said)
    check_kept(run, log, 'converted')
    return run, result(run)


@limit(60)
def test_golden(work):
    """A recording of KVM's is converted once, and a run like any other then."""
    raw = fresh(work, 'before')[0]
    before = json.loads(tt('info', raw, '--json').stdout)
    run, _ = reference(work)
    equal(tt('stats', run, '--exits', '--json').stdout, tt('stats', raw, '--json').stdout,
          'statistics of the exits')
    said = tt('stats', raw, '--exits', rc=1).stderr
    check('has no log of exits' in said, said)
    for command in (['find', raw, 'at 0x1000'], ['origin', raw, '1', '$rax']):
        said = tt(*command, '--qemu', qemu_binary(), rc=1).stderr
        check('replay it once' in said and said.count('\n') == 1, f'{command}: {said}')
    after = json.loads(tt('info', run, '--json').stdout)
    equal(after['host_ns'], before['host_ns'], 'how long it was recorded')
    status, console, said = replayed(run)
    equal((status, console), (0, CONSOLE), said)
    check('convert' not in said, f'it was converted again: {said}')
    with stopped_replay(work, run) as vm:
        end = vm.qmp.cmd('query-tt')['end']
        for at in (end // 2, 1000, end - 1):
            goto_exact(vm, at)


# ---- damage ----

def damage(rng, turn, run, log):
    """Raw damage, a cut, or other values with right checksums."""
    if turn % 3 == 0:
        bad = bytearray(log)
        for _ in range(rng.choice((1, 3, 40))):
            bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
    elif turn % 3 == 1:
        bad = log[:rng.randrange(len(log))]
    else:
        forged = f'{run}/forged'
        subprocess.run([forger('tt-forge'), f'{run}/log', forged,
                        str(rng.randrange(1 << 30)), rng.choice('139')], check=True,
                       stdout=subprocess.DEVNULL, timeout=60 * SLOW)
        bad = read_bytes(forged)
        os.unlink(forged)
    with open(f'{run}/log', 'wb') as out:
        out.write(bad)
    return bytes(bad)


def told_to_end(p, run, what):
    """A search that lasts says so every two seconds, and ends when it is told to."""
    def progress():
        return read_bytes(f'{run}.said').count(b'converting: ')

    told = progress()
    wait_until(lambda: progress() > told + 1 or not converter_of(p),
               f'{what}: progress; it said '
               f'{short(read_bytes(f"{run}.said").decode(errors="replace"), 600)}')
    child = converter_of(p)
    if child:                   # or it is converted, and the replay takes no longer
        os.kill(child, signal.SIGINT)
    return p.wait(60 * SLOW)


@limit(120)
def test_damaged_logs(work):
    """Bits, cuts and values at random: the conversion says what is wrong and ends, and
    the log that it was given is there afterwards. A made-up log may be that of a guest
    that computes for long: then it says how far it is, and ends when it is told to."""
    rng = seed()
    for turn in range(30):
        run, log = fresh(work, f'd{turn}')
        bad = damage(rng, turn, run, log)
        with started(run) as p:
            try:
                status = p.wait(10 * SLOW)
            except subprocess.TimeoutExpired:
                print(f'turn {turn} lasts')
                status = told_to_end(p, run, f'turn {turn}')
        said = read_bytes(f'{run}.said').decode(errors='replace')
        check(status in (0, 1, 3), f'turn {turn}: status {status}: {short(said)}')
        check(status == 0 or len(said.split()) > 4, f'turn {turn}: it says {said!r}')
        check('killed by signal' not in said, f'turn {turn}: {said!r}')
        check(all(line.isprintable() for line in said.splitlines()),
              f'turn {turn}: control characters: {said!r}')
        check_kept(run, bad, f'turn {turn}: {short(said)}')
        shutil.rmtree(run)


def rejected(work, run, name, events, *words):
    """Its conversion ends with one of the words, and changes nothing."""
    place = forge(run, os.path.join(work, name), events)
    log = read_bytes(f'{place}/log')
    status, _, said = replayed(place)
    check(status in (1, 3), f'{name}: status {status}: {short(said)}')
    check('killed by signal' not in said, f'{name}: {short(said, 600)}')
    check(any(w in said for w in words), f'{name}: {short(said, 600)}')
    check_kept(place, log, name)
    check('exits' not in os.listdir(place), f'{name}: it was converted')
    return said


def patched(data, at, new):
    return data[:at] + new + data[at + len(new):]


def with_landmark(events, number, change):
    """The landmark of that number, changed."""
    at = [i for i, e in enumerate(events) if e['kind'] == 'landmark'][number]
    data = change(bytes.fromhex(events[at]['data']))
    return events[:at] + [{**events[at], 'data': data.hex()}] + events[at + 1:]


@limit(120)
def test_landmarks_that_never_match(work):
    """Other registers, other RAM, more pages than there can be, an address that is never
    passed: the conversion stops at the next exit and says what differed."""
    run, _ = fresh(work, 'run')
    events = events_of(run)
    for name, number, change, word in (
            ('register', 20, lambda d: patched(d, LANDMARK_REGS + 24, b'\x77' * 8),
             'RBX'),
            ('system', 100, lambda d: patched(d, LANDMARK_SYSTEM + 8, b'\x77' * 8),
             'CR2'),
            ('page', 200, lambda d: patched(d, LANDMARK_PAGES + 8, b'\x77' * 16),
             'then page'),
            ('place', 50, lambda d: patched(d, LANDMARK_PC, b'\x77'), 'was passed'),
            ('count', 300, lambda d: patched(d, LANDMARK_PAGES, b'\xfe\xff\xff\xff'),
             'landmark is damaged'),
            ('short', 10, lambda d: d[:200], 'landmark is damaged')):
        rejected(work, run, name, with_landmark(events, number, change), word)


@limit(120)
def test_made_up_logs(work):
    """Events where none can be: a vCPU's state inside an instruction; another vCPU; a
    block that is too large; no beginning; an answer of no bytes."""
    run, _ = fresh(work, 'run')
    events = events_of(run)
    state = events[first(events, 'cpu-state')]
    out = next(i for i, e in enumerate(events) if e['kind'] == 'pio-out' and i > 100)
    pos = events[out]['position']
    begin = initial_end(events)
    for name, forged, *words in (
            ('state', events[:out] + [{**state, 'position': pos, 'nested': 1}] +
             events[out:], 'inside an instruction'),
            ('switch', events[:out] + [event(pos, 'cpu-switch', 1)] + events[out:],
             'inside an instruction'),
            ('vcpu', events[:begin] + [event(0, 'cpu-switch', 1, addr=7)] +
             events[begin:], 'there are only 1'),
            ('block', [event(0, 'block', 1, addr=3, val=1 << 62, data=b'x')] + events,
             'RAM block', 'block'),
            ('headless', events[begin:], 'diverged', 'the guest'),
            ('nothing', events[:out] + [event(pos, 'mmio-st', addr=0x1000)] +
             events[out:], "' was recorded")):
        rejected(work, run, name, forged, *words)


def at_start(events, instructions):
    """The events until the guest begins, with other code there; and a landmark that is
    there, and one elsewhere."""
    code, begin = first(events, 'ram'), initial_end(events)
    data = bytes.fromhex(events[code]['data'])
    pos = events[begin]['position']
    landmark = bytes.fromhex(events[first(events, 'landmark')]['data'])
    there = patched(landmark, LANDMARK_PC, struct.pack('<Q', START))
    changed = {**events[code], 'data': patched(data, 0, instructions).hex()}
    return [*events[:code], changed, *events[code + 1:begin], event(pos, 'check')], \
        event(pos, 'landmark', data=there), event(pos, 'landmark', data=landmark)


@limit(60)
def test_guest_without_end(work):
    """The guest is in a loop that nothing ends, and what was recorded next is another
    state there, one elsewhere, or something that it does not do: this is found out."""
    run, _ = fresh(work, 'run')
    forged, there, elsewhere = at_start(events_of(run), FOREVER)
    out = event(there['position'], 'pio-out', size=1, addr=0x20, val=0x11)
    for name, following in (('there', there), ('elsewhere', elsewhere), ('out', out)):
        said = rejected(work, run, name, forged + [following],
                        'the guest is in an endless loop')
        if name == 'elsewhere':     # what looks for a repetition is no candidate
            check('was passed 0 times' in said, said)


@limit(60)
def test_guest_that_counts(work):
    """A loop that counts in memory has no state twice: the search for what was recorded
    next lasts minutes. It says where it is, and nothing is lost when it is told to
    end."""
    run, _ = fresh(work, 'run')
    forged, there, _ = at_start(events_of(run), COUNTING)
    out = event(there['position'], 'pio-out', size=1, addr=0x20, val=0x11)
    for name, following, words in (('landmark', there, b'0xf0000 was passed'),
                                   ('out', out, b"positions without 'pio-out")):
        place = forge(run, os.path.join(work, name), forged + [following])
        log = read_bytes(f'{place}/log')
        with started(place) as p:
            wait_until(lambda at=f'{place}.said', said=words: said in read_bytes(at),
                       f'{name}: it says what it waits for')
            equal(told_to_end(p, place, name), 1, name)
        check_kept(place, log, name)
        check('exits' not in os.listdir(place), f'{name}: it was converted')


# ---- broken off ----

@contextlib.contextmanager
def started(run):
    """A replay in its own session, and what it has begun ends with it."""
    with open(f'{run}.said', 'wb') as said:
        p = subprocess.Popen(command(run), stdin=subprocess.DEVNULL, stderr=said,
                             stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        yield p
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(p.pid, signal.SIGCONT)
            os.killpg(p.pid, signal.SIGKILL)
        p.wait()


def converter_of(p):
    """The process that converts for it, once it is at work."""
    path = f'/proc/{p.pid}/task/{p.pid}/children'
    return int((read_bytes(path).split() or [0])[0])


def is_free(run):
    """Nobody converts it."""
    name = 'exits' if os.path.exists(f'{run}/exits') else 'log'
    with open(f'{run}/{name}', 'rb') as log:
        try:
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


# Of a process that is to be cut, at most, in seconds: less if it was done before.
PAUSES = (0.5, 0.1, 0.02, 0, 0, 0)


def send(p, how, whom):
    if whom == 'all':
        os.killpg(p.pid, how)
    elif whom == 'parent':
        p.send_signal(how)
    elif converter_of(p):
        os.kill(converter_of(p), how)


@limit(120)
def test_broken_off(work):
    """Killed, or told to end, at any moment, itself or its parent: the next replay begins
    it anew, and the result is the same."""
    rng = seed()
    _, wanted = reference(work)
    for turn in range(9):
        how = rng.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
        whom = ('parent', 'child', 'all')[turn % 3]
        what = f'turn {turn}, {how.name} to {whom}'
        for pause in PAUSES:
            run, log = fresh(work, f'b{turn}')
            with started(run) as p:
                wait_until(lambda path=run, q=p: os.path.exists(f'{path}/log.new') or
                           q.poll() is not None, 'a conversion')
                time.sleep(rng.random() * pause)
                with contextlib.suppress(ProcessLookupError):
                    send(p, how, whom)
                p.wait(60 * SLOW)
            wait_until(lambda path=run: is_free(path), f'{what}: it ends')
            if 'exits' not in os.listdir(run):
                break
        check('exits' not in os.listdir(run), f'{what}: it was done before')
        check(read_bytes(f'{run}/log') == log, f'{what}: the log of exits')
        check_whole(run, wanted, what)
        check_kept(run, log, what)
        shutil.rmtree(run)


def stands(pid):
    """It stands still, or is gone."""
    return read_bytes(f'/proc/{pid}/stat').rpartition(b')')[2].split()[:1] in ([b'T'], [])


@contextlib.contextmanager
def stopped_converter(work):
    """A run, its log, a replay of it, and the process that converts for it: this one stands
    still in the midst of that."""
    for _ in PAUSES:
        run, log = fresh(work, 'run')
        with started(run) as p:
            wait_until(lambda path=run, q=p: os.path.exists(f'{path}/log.new') or
                       q.poll() is not None, 'a conversion')
            child = converter_of(p)
            with contextlib.suppress(ProcessLookupError):
                if child:
                    os.kill(child, signal.SIGSTOP)
                    wait_until(lambda pid=child: stands(pid), 'it stands still')
            if child and os.path.exists(f'{run}/log.new'):
                yield run, log, p, child
                return
    fail('it was done before it was stopped')


@limit(60)
def test_told_to_end(work):
    """Told to end, the process leaves nothing of what it began, and a replay does not
    take the run for converted."""
    with stopped_converter(work) as (run, log, p, child):
        os.kill(child, signal.SIGINT)
        os.kill(child, signal.SIGCONT)
        equal(p.wait(60 * SLOW), 1, 'status')
    said = read_bytes(f'{run}.said').decode()
    check('could not be converted' in said or 'was killed by signal 2' in said, said)
    check_kept(run, log, 'told to end')
    check('exits' not in os.listdir(run), 'it was converted')


@limit(60)
def test_no_room(work):
    """The disk is full: this is said, nothing is left, and with room it goes."""
    _, wanted = reference(work)
    run, log = fresh(work, 'run')

    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    status, _, said = replayed(run, small_files)
    equal(status, 1, f'status: {said}')
    check('cannot be converted: ' in said and 'File too large' in said, said)
    check_kept(run, log, 'no room')
    check_whole(run, wanted, 'with room')


@limit(60)
def test_two_at_once(work):
    """While one process converts a run, another says so and leaves it alone; nor is a
    run converted that is being recorded."""
    _, wanted = reference(work)
    run, log = fresh(work, 'run')
    directory = os.open(run, os.O_RDONLY)
    fcntl.flock(directory, fcntl.LOCK_EX)
    status, _, said = replayed(run)
    equal(status, 1, said)
    check('is being recorded' in said, said)
    check_kept(run, log, 'growing')
    os.close(directory)
    with stopped_converter(work) as (run, log, p, child):
        status, _, said = replayed(run)
        equal(status, 1, said)
        check(BUSY in said, said)
        check(os.path.exists(f'{run}/log.new'), 'the file of the first is gone')
        os.kill(child, signal.SIGCONT)
        equal(p.wait(60 * SLOW), 0, 'status of the first')
    equal(result(run), wanted, 'the result')
    check_kept(run, log, 'two at once')
