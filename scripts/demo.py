#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The demonstration: one recorded boot, two replays, a few journeys.

Run by scripts/demo, which builds what it needs. Every claim it prints was
compared a line before; what does not hold ends it with exit status 1.
"""
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import textwrap
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, 'tests', 'functional'))
import ttlib  # noqa: E402
from ttlib import check, digest, equal, goto  # noqa: E402

BUILD = os.path.join(TOP, 'build')
DEMO = os.path.join(BUILD, 'demo')
RUN = os.path.join(DEMO, 'run')

WORKS = 'net,procs,vda,rand,sh'
DOWNLOAD_BYTES = 2 << 20
PROCESSES = 150
MEMORY_MB = 256
# The kernel function the demonstration goes back to, and its story.
SYMBOL = 'path_mount'

# Far above what two slow cores need: a step that hangs shall not hang us.
RECORD_SECONDS_MAX = 300
STEP_SECONDS_MAX = 200


class Step:
    """Prints what is being done, and the seconds that it took."""

    def __init__(self, title):
        self.title = title
        self.seconds = 0.0

    def __enter__(self):
        print(f'* {self.title}', flush=True)
        self.started = time.monotonic()
        return self

    def __exit__(self, kind, *unused):
        self.seconds = time.monotonic() - self.started
        if kind:
            print(f'  FAILED: {self.title}', flush=True)

    @staticmethod
    def note(text):
        print(f'    {text}', flush=True)


def grouped(number):
    return f'{number:,}'


def size(count):
    for unit in ('bytes', 'kB', 'MB'):
        if count < 1000:
            break
        count /= 1000
    else:
        unit = 'GB'
    return f'{count:.0f} bytes' if unit == 'bytes' else f'{count:.1f} {unit}'


def relative(path):
    return os.path.relpath(path, TOP)


# --- Recording ---------------------------------------------------------------

def machine(disk, url):
    """The recorded machine: an ordinary command line without -tt."""
    append = (f'console=ttyS0 panic=-1 t={WORKS} n={PROCESSES} u={url} '
              f'syms={SYMBOL}')
    guest = os.path.join(BUILD, 'guest')
    return ['-M', 'pc', '-m', str(MEMORY_MB), '-nodefaults',
            '-display', 'none', '-no-shutdown',
            '-drive', f'file={disk},if=virtio,format=raw',
            '-nic', 'user,model=virtio-net-pci',
            '-kernel', os.path.join(guest, 'vmlinuz'),
            '-initrd', os.path.join(guest, 'initrd.img'),
            '-append', append]


def watch_guest(vm):
    """Shows the guest's own lines as they come, until it has powered off."""
    shown = 0
    end = time.monotonic() + RECORD_SECONDS_MAX
    while True:
        status = vm.qmp.cmd('query-status')['status']
        lines = re.findall(r'^TT-(?:GUEST-READY|DONE|FAIL)[^\r\n]*\r?\n',
                           vm.serial.decode(errors='replace'), re.M)
        for line in lines[shown:]:
            Step.note(ttlib.short(line.strip(), 74))
        shown = len(lines)
        if status == 'shutdown':
            return
        check(status == 'running', f'the guest is {status}')
        check(time.monotonic() < end, 'the guest does not power off')
        time.sleep(0.2)


class Recorded:
    """What the recorder said: to be found again in each replay."""

    def __init__(self, vm, seconds):
        status = vm.qmp.cmd('query-tt')
        equal(status['mode'], 'record', 'mode of the recorder')
        self.last = digest(vm)
        self.cpu_seconds = vm.cpu_seconds()
        self.seconds = seconds
        self.serial = vm.serial
        text = self.serial.decode(errors='replace')
        check('TT-FAIL' not in text, 'a task of the guest failed')
        for work in WORKS.split(','):
            check(f'TT-DONE {work}' in text, f'the guest did not finish {work}')
        found = re.search(rf'^TT-SYM ([0-9a-f]+) \w {SYMBOL}\b', text, re.M)
        check(found, f'the guest does not know the address of {SYMBOL}')
        self.symbol = int(found.group(1), 16)


def record(work):
    disk = os.path.join(DEMO, 'disk.img')
    with open(disk, 'wb') as out:
        out.truncate(64 << 20)
    with ttlib.web_server({'/file': os.urandom(DOWNLOAD_BYTES)}) as port:
        args = machine(disk, f'http://10.0.2.2:{port}/file')
        args += ['-tt', f'record,dir={RUN}']
        started = time.monotonic()
        with ttlib.Vm(work, args, name='record', qmp=1,
                      timeout=RECORD_SECONDS_MAX) as vm:
            watch_guest(vm)
            recorded = Recorded(vm, time.monotonic() - started)
            vm.qmp.cmd('quit')
            vm.wait(0)
    # No replay shall find the disk again.
    os.unlink(disk)
    return recorded


def look_at_run():
    """What the tt tool says of the run, after checking the log's sums."""
    tool = ttlib.tool('tt')
    ttlib.run_tool(tool, 'check', RUN, timeout=STEP_SECONDS_MAX)
    text, _ = ttlib.run_tool(tool, 'stats', RUN, '--json',
                             timeout=STEP_SECONDS_MAX)
    return json.loads(text)


# --- Replaying ---------------------------------------------------------------

def to_the_end(vm, recorded):
    """Replays to the end; everything there is as it was recorded."""
    # Journeys leave such an event each; those are of the past.
    vm.qmp.events.clear()
    vm.qmp.cmd('cont')
    stop = vm.qmp.event('TT_STOPPED', STEP_SECONDS_MAX)
    status = vm.qmp.cmd('query-tt')
    check(stop['reason'] == 'end' and not status['diverged'],
          f'the replay stopped early ({stop["reason"]}): '
          f'{status.get("divergence", "no reason given")}')
    equal(status['position'], status['end'], 'position at the end')
    ttlib.same_console(vm.serial, recorded.serial, vm.name)
    goto_or_stay(vm, recorded.last[0])
    equal(digest(vm), recorded.last, "digest against the recorder's last")
    return status


def goto_or_stay(vm, position):
    if vm.qmp.cmd('query-tt')['position'] != position:
        visit(vm, position)


def visit(vm, position):
    """Goes there; returns the digest and the seconds of the journey."""
    started = time.monotonic()
    answer = goto(vm, STEP_SECONDS_MAX, position=position)
    seconds = time.monotonic() - started
    equal((answer['position'], answer['reason']), (position, 'target'),
          f'answer to tt-goto {position}')
    return digest(vm), seconds


class Journeys:
    """Visits positions in two processes and holds them against each other."""

    def __init__(self):
        self.digests = {}
        self.rows = []

    def go(self, vm, position):
        here = vm.qmp.cmd('query-tt')['position']
        seen, seconds = visit(vm, position)
        known = self.digests.setdefault(position, seen)
        equal(seen, known, f'digest at position {position}')
        way = 'forward' if position > here else 'back'
        self.rows.append((way, here, position, seconds, seen))
        Step.note(f'{way:7} to {grouped(position):>13} in {seconds:4.1f} s: '
                  f'cpu {seen[1]} ram {seen[2]}')


def replay_vm(work, name, *more):
    return ttlib.replayer(work, RUN, ['-S', *more], name, qmp=1,
                          timeout=4 * STEP_SECONDS_MAX)


def travel(vm, positions, journeys):
    with Step('Travel in it: a position has one digest, however it is reached'):
        for position in positions:
            journeys.go(vm, position)


def first_replay(work, recorded, positions, journeys):
    low, middle, high = positions
    with replay_vm(work, 'replay-1') as vm:
        with Step('Replay it: no disk, no network, no device'):
            to_the_end(vm, recorded)
            Step.note('the console and the last digest are the same as recorded')
        travel(vm, (low, middle, high), journeys)


def second_replay(work, recorded, positions, journeys):
    """Returns the seconds and CPU seconds of the replay, and what gdb found.
    """
    low, middle, high = positions
    with replay_vm(work, 'replay-2', *ttlib.Gdb.args(work, 'replay-2')) as vm:
        with Step('Replay it once more') as step:
            to_the_end(vm, recorded)
            cpu_seconds = vm.cpu_seconds()
            Step.note('the same console, the same last digest')
        travel(vm, (high, low, middle, high), journeys)
        return step.seconds, cpu_seconds, go_back_with_gdb(vm, recorded)


def go_back_with_gdb(vm, recorded):
    """Stock gdb at the end of the run: reverse-continue to the last mount."""
    end = vm.qmp.cmd('query-tt')['end']
    goto(vm, STEP_SECONDS_MAX, position=end)
    with Step(f'Ask stock gdb, at the end: when was {SYMBOL}() last called?'):
        text = ttlib.Gdb(vm, 'i386:x86-64')(
            f'break *{recorded.symbol:#x}', 'reverse-continue', 'p/x $pc',
            'x/s $rdi', 'x/s $rdx', 'info registers rsp',
            timeout=STEP_SECONDS_MAX)
        check(f'= {recorded.symbol:#x}' in text,
              f'gdb did not get to {SYMBOL}: {ttlib.short(text)}')
        strings = re.findall(r'^0x[0-9a-f]+:\s+"([^"]*)"', text, re.M)
        equal(strings, ['/dev/vda', 'ext4'],
              f'arguments of {SYMBOL} in the guest')
        position = vm.qmp.cmd('query-tt')['position']
        check(0 < position < end, f'gdb is at position {position}, outside the run')
        Step.note(f'at position {grouped(position)} of {grouped(end)}: '
                  f'{SYMBOL}("{strings[0]}", ..., "{strings[1]}")')
    return position


# --- The report --------------------------------------------------------------

def report(recorded, stats, replayed, journeys, mount):
    end = stats['end']
    with open(os.path.join(BUILD, 'guest', 'version'),
              encoding='utf-8') as f:
        kernel = f.read().strip()
    events, payload = (stats['events_stored_bytes'],
                       stats['payload_stored_bytes'])
    wall, cpu = replayed
    journey_seconds = [row[3] for row in journeys.rows]
    rows = [
        ('Recorded', f'Linux {kernel}, {MEMORY_MB} MB, {recorded.seconds:.1f}'
         f' s: boot, a download of {size(DOWNLOAD_BYTES)}, {PROCESSES} '
         'processes, a file system made, written and read back, shell work'),
        ('Positions', f'{grouped(end)}: each is one exact state of CPU and '
         f'RAM; the log has {grouped(stats["events"])} events'),
        ('Log', f'{size(stats["bytes"])}: {size(events)} of events (from '
         f'{size(stats["events_raw_bytes"])}), {size(payload)} of data that '
         'devices brought in (kernel, disk, network; from '
         f'{size(stats["payload_raw_bytes"])})'),
        ('Replayed', 'twice, exact to the last bit; the second time took '
         f'{wall:.1f} s and {cpu / recorded.cpu_seconds:.2f} of the CPU time '
         'of recording'),
        ('Travelled', f'{len(journeys.rows)} journeys to '
         f'{len(journeys.digests)} positions, {min(journey_seconds):.1f} to '
         f'{max(journey_seconds):.1f} s each; at each position both '
         'replays had the same digest'),
        ('gdb', f'went back from the end to the last mount, position '
         f'{grouped(mount)}'),
        ('The run', f'{relative(RUN)}'),
    ]
    print()
    for name, text in rows:
        print(textwrap.fill(text, 79, initial_indent=f'{name:<11}',
                            subsequent_indent=' ' * 11,
                            break_on_hyphens=False, break_long_words=False))
    print_next(recorded, mount)


def print_next(recorded, mount):
    run = relative(RUN)
    qemu = f'build/qemu-system-x86_64 -tt replay,dir={run}'
    print(f'''
What to type next, in {TOP}:
  Watch the boot once more, without its disk:
    {qemu}
  Travel by hand; try: tt goto {mount}   tt goto -1   info registers
    {qemu} -S -serial null -monitor stdio
  Debug it backwards, starting at the first call of {SYMBOL}():
    {qemu} -S -serial null \\
        -gdb tcp:127.0.0.1:1234 &
    gdb -ex 'set arch i386:x86-64' -ex 'target remote 127.0.0.1:1234' \\
        -ex 'break *{recorded.symbol:#x}' -ex continue -ex reverse-stepi
  See where the log's bytes go:
    build/tt stats {run}''')


def demonstrate(work):
    with Step('Record a Debian kernel: boot, network, processes, disk, shell'):
        recorded = record(work)
    with Step("Check the log's checksums and see where its bytes go"):
        stats = look_at_run()
    rng = random.Random(stats['end'])
    positions = [int(stats['end'] * (share + rng.random() / 20))
                 for share in (0.25, 0.5, 0.75)]
    journeys = Journeys()
    first_replay(work, recorded, positions, journeys)
    seconds, cpu_seconds, mount = second_replay(work, recorded, positions,
                                                journeys)
    report(recorded, stats, (seconds, cpu_seconds), journeys, mount)


def main():
    # Told to end, we end by an exception, which ends the QEMU of the moment.
    signal.signal(signal.SIGTERM, lambda *unused: sys.exit(1))
    shutil.rmtree(DEMO, ignore_errors=True)
    os.makedirs(DEMO)
    # Sockets must have short names, however deep this checkout lies.
    short = tempfile.mkdtemp(prefix='tt-demo-')
    work = os.path.join(short, 'w')
    os.symlink(DEMO, work)
    try:
        demonstrate(work)
        return 0
    except ttlib.TestFailure as error:
        print(f'demo: {error}', file=sys.stderr)
        print(f'demo: consoles, messages and commands of every step are in '
              f'{DEMO}', file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(short)


if __name__ == '__main__':
    sys.exit(main())
