# SPDX-License-Identifier: GPL-2.0-or-later
"""What was recorded under KVM (in the emulated host) replays exactly under TCG, and is a
run like any other then. Linux: test_kvm_linux.py."""

import os
import re
import subprocess

from guests import guest_args
from kvm_host import IN_PARTS, Job, in_host
from ttlib import (BUILD, Gdb, check, check_exact, end_of, equal, goto_exact, limit,
                   read_text, replayer, replay, run_tool, stopped_replay)

# kvm_report.py has all guests.
EXACT = ('hlt', 'smc', 'lines64', 'fp', 'selfdma', 'btflags', 'debug', 'mmiox', 'window',
         'quiet')
# Recorded in parts: {guest: (append, parts, what is done in the last one)}. Their
# rounds last several times as long as the parts before the last one, which lasts to their
# end. A tick of hlt is mostly on its way where one of its parts begins.
PARTS = {'fp': ('rounds=20000', 3, ':'), 'selfdma': ('rounds=120', 3, ':'),
         'hlt': ('hz=8000 rounds=100 nmis=1', 8, 'ask nmi'),
         'quiet': ('rounds=1 nmis=1', 1, 'ask nmi')}
NO_CHAINS = ['-d', 'nochain']   # each block is looked up


def converted(work, run, name):
    """The first replay converts; what it says of that."""
    return figures(check_exact(work, run, name=name, timeout=120), name)


def figures(vm, name):
    """Of a conversion: positions and landmarks."""
    found = re.search(r'converted: (\d+) positions, .*; (\d+) landmarks', vm.stderr)
    check(found, f'{name} was not converted: {vm.stderr[-500:]}')
    return int(found[1]), int(found[2])


def watch_back(vm, end):
    """gdb goes back to who wrote a word of the stack last, and to the time before."""
    gdb = Gdb(vm)
    text = gdb(f'monitor tt goto {end}', 'set $at = $rsp', 'watch *(int *)$at',
               'reverse-continue', 'monitor info tt', 'reverse-stepi', 'monitor info tt')
    seen = [int(n) for n in re.findall(r'^position (\d+)', text, re.M)]
    check(len(seen) == 2 and 0 < seen[1] < seen[0] < end, f'watch, going back: {text}')
    return seen[0]


def travelled(work, run):
    with stopped_replay(work, run, 'walk') as vm:
        end = end_of(vm)
        for at in (end // 3, end // 2, end - 1000):
            goto_exact(vm, at)
    with replayer(work, run, ['-S', *Gdb.args(work, 'gdb')], 'gdb', qmp=1) as vm:
        watch_back(vm, end * 9 // 10)


def begins_with_interrupt(path):
    text, _ = run_tool(os.path.join(BUILD, 'tt'), 'log', path, '--kind', 'intr',
                       '--limit', '1')
    return text.split()[:1] == ['0']


def check_parts(work, name, run, wanted):
    """Recordings that began, and ended, in the midst of the guest's life. Of each: its
    landmarks, and whether it begins with an interrupt that was on its way."""
    if len(run.parts) < wanted:
        print(f'{name}: it ended early, {len(run.parts)} parts of {wanted}')
    check(len(run.parts) >= min(2, wanted), f'{name}: only {len(run.parts)} parts have positions')
    check(run.serial.startswith(f'{name}: start\n'.encode()),
          f'{name}: the console begins with {run.serial[:100]}')
    seen, consoles = [], []
    for path in run.parts:
        part = os.path.basename(path)
        vm = replay(work, path, name=f'{part}-rep', timeout=120)
        check('replay exact' in vm.stderr and 'diverged' not in vm.stderr,
              f'the replay of part {part}: {vm.stderr[-500:]}')
        positions, landmarks = figures(vm, part)
        check(positions > 0, f'part {part} has no positions')
        seen.append((landmarks, begins_with_interrupt(path)))
        consoles.append(vm.serial)
    said = b'.*'.join(re.escape(c) for c in consoles)
    check(re.search(said + (b'$' if len(run.parts) == wanted else b''), run.serial, re.S),
          f'{name}: the parts print {consoles}, the guest printed {run.serial}')
    return seen


def check_ended(name, run):
    check(run.serial.count(f'{name}: end'.encode()) == 1 and run.serial.endswith(b'\n'),
          f'guest {name} did not end under KVM: {run.serial[-200:]}')


@limit(300)
def test_guests(work):
    """Bare-metal guests, one after the other in one emulated host, and travel in one."""
    runs = in_host(work, [Job(name, guest_args(work, name)) for name in EXACT],
                   timeout=240)
    landmarks = 0
    for name, run in runs.items():
        check_ended(name, run)
        landmarks += converted(work, run, f'{name}-rep')[1]
        check_exact(work, run, NO_CHAINS, f'{name}-again')
    check(landmarks > 100, f'only {landmarks} landmarks')
    travelled(work, runs['fp'])
    print(f'{landmarks} landmarks in {len(runs)} guests')


@limit(200)
def test_parts(work):
    """Recordings that begin and end in the midst of a guest's life, also with an
    interrupt on its way, and with a non-maskable interrupt from the monitor."""
    jobs = [Job(name, guest_args(work, name, append), parts=parts, last=last)
            for name, (append, parts, last) in PARTS.items()]
    runs = in_host(work, jobs, timeout=150)
    seen = {}
    for name, run in runs.items():
        check_ended(name, run)
        seen[name] = check_parts(work, name, run, PARTS[name][1])
    print(f'(landmarks, begins with an interrupt) of parts: {seen}')
    check(all(landmarks for landmarks, _ in seen['fp']), 'a part without landmarks')
    check(any(first for _, first in seen['hlt']), 'no part begins with an interrupt')
    for name in ('hlt', 'quiet'):
        check(b'nmis=00000001' in runs[name].serial, f'{name} got no NMI')
        text, _ = run_tool(os.path.join(BUILD, 'tt'), 'log', runs[name].parts[-1])
        check('vector=0x2\n' in text, f'no NMI is in the last part of {name}')


def packet(text):
    """A packet of gdb's for the shell's printf; the acknowledgement of the answer before
    comes first."""
    return f'+${text}#{sum(text.encode()) & 255:02x}'


def gdb_says(*packets):
    """Shell code: they are sent through a pipe, and each answer is waited for."""
    return '\n'.join(f"say_gdb '{p}'" for p in packets)


GDB_PIPE = """
mkfifo /tmp/gdb.in /tmp/gdb.out
cat /tmp/gdb.out > /tmp/out/hlt.gdb &
say_gdb()
{
    had=$(grep -o '#' /tmp/out/hlt.gdb | wc -l)
    printf "$1" > /tmp/gdb.in
    until [ "$(grep -o '#' /tmp/out/hlt.gdb | wc -l)" -gt "$had" ] || has_ended; do
        usleep 5000
    done
}
"""
STOP = r'\003'


def test_breakpoints(work):
    """gdb's breakpoints and steps are refused in a recording, and a recording while there
    are breakpoints; the VM goes on."""
    insert = [packet('Z0,300000,1'), packet('Z1,300000,1'), packet('Z2,300000,1')]
    goes_on = f"printf '{packet('c')}' > /tmp/gdb.in"
    steps = [
        gdb_says(STOP, *insert, packet('vCont;s:p1.1')), goes_on,
        'ask "tt record stop"', 'ask stop', gdb_says(insert[0]),
        'ask "tt record start /tmp/out/no"', gdb_says(packet('z0,300000,1'), insert[1]),
        'ask "tt record start /tmp/out/no"', gdb_says(packet('z1,300000,1')), goes_on,
        'ask nmi']
    args = [*guest_args(work, 'hlt', 'rounds=100 nmis=1'), '-chardev',
            'pipe,id=gdb,path=/tmp/gdb', '-gdb', 'chardev:gdb']
    run = in_host(work, [Job('hlt', args, parts=1, before=GDB_PIPE,
                             last='\n'.join(steps))], timeout=60)['hlt']
    said = read_text(os.path.join(work, 'hlt.gdb'))
    equal(re.findall(r'\$([^#]*)#', re.sub(r'T05[^#]*', 'T05', said)),
          ['T02thread:01;', 'E22', 'E22', 'E22', 'T05', 'T02thread:01;', 'OK', 'OK', 'OK',
           'OK', 'W00'], 'what gdb got')
    log = read_text(os.path.join(work, 'hlt.log'))
    equal(log.count('no breakpoints, watchpoints and steps of gdb'), 1, 'warnings')
    equal(log.count('Error: gdb has breakpoints or watchpoints in this VM'), 2, 'refusals')
    check_ended('hlt', run)
    replay(work, run.parts[0])


def test_part_script(work):
    """Of the job in parts: it ends when QEMU does, and leaves SIGPIPE as it was."""
    out = os.path.join(work, 'job')
    script = ('usleep() { :; }\n' + IN_PARTS +
              f'last() {{ :; }}\nin_parts {out} 3 sh -c "exit 7"\n'
              'sh -c \'kill -PIPE $$; echo survived\'\n')
    done = subprocess.run(['sh', '-c', script], capture_output=True, text=True, timeout=30)
    equal(read_text(f'{out}.status'), '7\n', 'the status of QEMU')
    check('survived' not in done.stdout, 'SIGPIPE is ignored after the job')
    check(not os.path.exists(f'{out}.monitor'), 'the pipe of the monitor is still there')
