# SPDX-License-Identifier: GPL-2.0-or-later
"""What was recorded under KVM (in the emulated host) replays exactly under TCG, and is a
run like any other then. Linux: test_kvm_linux.py."""

import os
import re
import subprocess

from guests import guest_args, write
from kvm_host import IN_PARTS, Job, Moved, in_host
from ttlib import (BUILD, MACHINE, SLOW, Gdb, Vm, check, check_exact, end_of, equal,
                   goto_exact, limit, qemu_binary, read_text, replayer, replay, run_tool,
                   stopped_replay)

# Not among the guests: a disk's boot sector, which prints a letter.
BOOT_SECTOR = bytes.fromhex('baf803 b04b ee ba0406 b80020 ef f4')
# kvm_report.py has all guests.
EXACT = ('hlt', 'smc', 'lines64', 'fp', 'selfdma', 'btflags', 'debug', 'mmiox', 'window',
         'quiet', 'asked', 'enter64')
APPEND = {'asked': 'do=63'}
# Of enter64 with KVM on AMD: code of the kernel, of a user, and both with 32 bits. KVM
# executes SYSEXIT itself.
ENTERED = ('esp=0000000012345678 eip=0000000087654321 UUUXX UUUGG UUXX UUGG G\n')
# The time stamp counter may not go back, recorded or not. (It did where the vCPU runs on
# while another CPU stops QEMU's count; the emulated host does not show that.)
STOPS = '\n'.join(['ask stop', 'ask cont'] * 2 + ['ask "tt record stop"'] +
                  ['ask stop', 'ask cont'] * 4 + ['ask nmi'])
# Who looks at the registers of a vCPU that sleeps takes no interrupt from it.
LOOKS = '\n'.join(['ask "info registers"', 'usleep 3000'] * 12 + ['ask nmi'])
# Recorded in parts: {guest: (append, parts, what is done in the last one)}. Their
# rounds last several times as long as the parts before the last one, which lasts to their
# end. A tick of hlt is mostly on its way where one of its parts begins.
PARTS = {'fp': ('rounds=20000', 3, ':'), 'selfdma': ('rounds=120', 3, ':'),
         'hlt': ('hz=8000 rounds=100 nmis=1', 8, LOOKS),
         'quiet': ('rounds=1 nmis=1', 1, 'ask nmi'),
         'smap': ('nmis=1', 3, 'ask nmi'), 'umip': ('nmis=1', 3, 'ask nmi'),
         'tsc': ('p=0 m=1 nmis=1', 2, STOPS)}
CPUS = {'smap': ',+smap', 'umip': ',+umip'}
# {guest: (append, what its CPU has)}
MOVES = {'fp': ('rounds=8000 loops=1500', ''), 'smap': ('rounds=1000000', ',+smap'),
         'umip': ('rounds=100000', ',+umip')}
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
    check(len(run.parts) >= min(2, wanted),
          f'{name}: only {len(run.parts)} parts have positions')
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
    lasts = len(run.parts) == wanted and PARTS[name][2] != STOPS
    check(re.search(said + (b'$' if lasts else b''), run.serial, re.S),
          f'{name}: the parts print {consoles}, the guest printed {run.serial}')
    return seen


def check_ended(name, run):
    check(run.serial.count(f'{name}: end'.encode()) == 1 and run.serial.endswith(b'\n'),
          f'guest {name} did not end under KVM: {run.serial[-200:]}')


def check_entered(run):
    check(run.serial.count(ENTERED.encode()) == 3, f'not as on AMD: {run.serial[-300:]}')


@limit(200)
def test_guests(work):
    """Bare-metal guests, one after the other in one emulated host, and travel in one."""
    runs = in_host(work, [Job(name, guest_args(work, name, APPEND.get(name)))
                          for name in EXACT], timeout=180)
    landmarks = 0
    for name, run in runs.items():
        check_ended(name, run)
        landmarks += converted(work, run, f'{name}-rep')[1]
        check_exact(work, run, NO_CHAINS, f'{name}-again')
    check_entered(runs['enter64'])
    check(landmarks > 100, f'only {landmarks} landmarks')
    travelled(work, runs['fp'])
    print(f'{landmarks} landmarks in {len(runs)} guests')


def boot_args(work, more):
    """The firmware reads its boot sector from a virtio disk."""
    disk = write(os.path.join(work, 'boot.img'),
                 BOOT_SECTOR.ljust(510, b'\0') + b'\x55\xaa' + bytes(1 << 20))
    return [*MACHINE, '-drive', f'file={disk},format=raw,if=none,id=d', '-device',
            f'virtio-blk-pci,drive=d{more}']


@limit(200)
def test_inputs(work):
    """The task priority, which has two names; registers that KVM refuses by itself; INIT, also
    to a vCPU that is halted; and the doorbell of a device that was given ioeventfd=on: all is
    where a replay looks for it."""
    jobs = [Job('tpr64', guest_args(work, 'tpr64')),
            Job('inits', guest_args(work, 'inits')),
            Job('boot', boot_args(work, ',ioeventfd=on'))]
    runs = in_host(work, jobs, timeout=180)
    check(b'end tpr=0000000000000000 faults=0000000000000002' in runs['tpr64'].serial,
          f'the guest says {runs["tpr64"].serial[-200:]}')
    check(b'boots=00000002\ninits: end' in runs['inits'].serial, 'no INIT came')
    equal(runs['boot'].serial[-1:], b'K', 'what the boot sector prints')
    for name, run in runs.items():
        converted(work, run, f'{name}-rep')


def says_under_tcg(work, name, append, cpu):
    """What the guest prints where it stays where it is."""
    args = [*guest_args(work, name, append), '-cpu', 'tt-v1' + cpu]
    with Vm(work, [*args, '-accel', 'tcg'], name=f'{name}-plain', timeout=60) as vm:
        vm.wait(0)
        return vm.serial


def result_of(serial):
    """Of a guest: its sum. How many ticks it has in that time is another matter."""
    return serial.split(b'sum=')[-1]


def check_moved(work, name, run):
    """Each part replays exactly, on its accelerator, and the guest has come to its end
    with the result that it has elsewhere."""
    append, cpu = MOVES[name]
    check_ended(name, run)
    equal(result_of(run.serial), result_of(says_under_tcg(work, name, append, cpu)),
          f'the result of {name}, which moved')
    equal(len(run.parts), 3, 'parts of a VM that moved')
    said = b''
    for path in run.parts:
        part = os.path.basename(path)
        vm = replay(work, path, name=f'{part}-rep', timeout=120)
        check('replay exact' in vm.stderr, f'part {part}: {vm.stderr[-500:]}')
        equal('converted:' in vm.stderr, not part.endswith('.1'), f'{part} was converted')
        said += vm.serial
    check(said and run.serial.endswith(said), f'the parts print {said}')


def check_checkpoints(work, run):
    """The conversion finds the same RAM, and the run has them afterwards."""
    vm = check_exact(work, run, name='first', timeout=120)
    found = re.search(r'(\d+) checkpoints compared', vm.stderr)
    check(found and int(found[1]) >= 1, f'the conversion: {vm.stderr[-500:]}')
    tt = os.path.join(BUILD, 'tt')
    text, _ = run_tool(tt, 'check', run.dir)
    check(f'{found[1]} checkpoint' in text, text)
    run_tool(tt, 'verify', run.dir, '--qemu', qemu_binary(), timeout=60)
    check_exact(work, run, name='again')


@limit(360)
def test_checkpoints_and_moved(work):
    """Checkpoints of a recording under KVM. And VMs that move from KVM to TCG and back:
    with something on the x87 stack, with SMAP on, with a task register and user code."""
    # TCG by itself has no C1 of the x87: one that came from KVM would stay.
    tcg = 'tcg,tt-like-hardware=on'
    jobs = [Moved(name, guest_args(work, name, append), ('kvm', tcg, 'kvm'), cpu=cpu)
            for name, (append, cpu) in MOVES.items()]
    job = Job('kept', guest_args(work, 'fp', 'rounds=60000'),
              options=',checkpoint-interval=0.1')
    runs = in_host(work, [job, *jobs], timeout=200)
    check_ended('fp', runs['kept'])
    check_checkpoints(work, runs['kept'])
    for name in MOVES:
        check_moved(work, name, runs[name])


def recorded_in_parts(work, *names):
    """What check_parts says of each guest, and the runs."""
    jobs = [Job(name, guest_args(work, name, PARTS[name][0]), parts=PARTS[name][1],
                last=PARTS[name][2], cpu=CPUS.get(name, '')) for name in names]
    runs = in_host(work, jobs, timeout=180)
    seen = {}
    for name, run in runs.items():
        check_ended(name, run)
        seen[name] = check_parts(work, name, run, PARTS[name][1])
    print(f'(landmarks, begins with an interrupt) of parts: {seen}')
    return seen, runs


@limit(200)
def test_parts(work):
    """Recordings that begin and end in the midst of a guest's life."""
    seen, _ = recorded_in_parts(work, 'fp', 'selfdma')
    check(all(landmarks for landmarks, _ in seen['fp']), 'a part without landmarks')


@limit(200)
def test_interrupts(work):
    """The same with an interrupt on its way where they begin, and with a non-maskable
    interrupt from the monitor."""
    seen, runs = recorded_in_parts(work, 'hlt', 'quiet')
    check(any(first for _, first in seen['hlt']), 'no part begins with an interrupt')
    for name, run in runs.items():
        check(b'nmis=00000001' in run.serial, f'{name} got no NMI')
        text, _ = run_tool(os.path.join(BUILD, 'tt'), 'log', run.parts[-1])
        check('vector=0x2\n' in text, f'no NMI is in the last part of {name}')


@limit(200)
def test_state(work):
    """The same with SMAP on, with UMIP on, and with a time stamp counter that never goes
    back."""
    recorded_in_parts(work, 'smap', 'umip', 'tsc')


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
STUCK = """ask nmi
until grep -q 'cannot execute' $out.log || has_ended; do
    usleep 5000
done
ask quit"""
# The VM is reset, and its guest runs once more.
RESET = STUCK.replace('ask quit', '''ask system_reset
ask cont
until [ "$(grep -c start $out.serial)" -gt 1 ] || has_ended; do
    usleep 5000
done
ask quit''')
# Not with -tt record: the name of the job, and its -tt option.
UNRECORDED = {'plain': '', 'ready': '-tt ready'}
# What is refused when it starts, and a part of the sentence.
WRONG = {'-cpu qemu64': 'only CPU model tt-v1',
         '-cpu tt-v1,tsc-frequency=1000000000': 'leave out tsc-frequency',
         '-cpu tt-v1,+tsc-adjust': "feature 'tsc-adjust', which TCG has not",
         '-cpu tt-v1,pmu=on': "feature 'pmu', which KVM handles",
         '-machine kernel-irqchip=on': 'leave out kernel-irqchip',
         '-machine kernel-irqchip=split': 'leave out kernel-irqchip',
         '-overcommit cpu-pm=on': 'leave out -overcommit cpu-pm',
         '-accel kvm,dirty-ring-size=4096': 'leave out dirty-ring-size'}
START_WRONG = ''.join(f'timeout {int(20 * SLOW)} qemu -L /usr/share/qemu -nodefaults '
                      f'-display none -S {"" if "-accel" in options else "-accel kvm"} '
                      f'{options} -tt ready > /tmp/out/hlt.wrong{n} 2>&1 < /dev/null\n'
                      for n, options in enumerate(WRONG))


def check_lost(work, run):
    """Where it is stuck is no place: the recording ends there, and what the VM does after
    its reset is not in it."""
    log = read_text(os.path.join(work, 'lost.log'))
    check(re.search(r'the recording ends at position \d+, the VM goes on unrecorded: KVM '
                    'has stopped the vCPU where', log), f'it goes on: {log[-600:]}')
    equal(run.serial.count(b'mmiofp: start'), 2, 'starts of the guest')
    vm = replay(work, os.path.join(work, 'lost.0'), name='lost-rep')
    check('diverged' not in vm.stderr and b'mmiofp: start' not in vm.serial,
          f'the run goes on: {vm.stderr[-500:]}')


@limit(220)
def test_refusals(work):
    """gdb's breakpoints and steps are refused in a recording, and a recording while there
    are breakpoints; the VM goes on. Options that KVM cannot serve are refused, and so
    is an instruction that neither it nor TCG can execute: then the VM can be reset."""
    insert = [packet('Z0,300000,1'), packet('Z1,300000,1'), packet('Z2,300000,1')]
    where = packet('p10')       # RIP
    goes_on = f"printf '{packet('c')}' > /tmp/gdb.in"
    steps = [
        gdb_says(STOP, *insert, where, packet('vCont;s:p1.1'), packet('s'), where),
        goes_on,
        'ask "tt record stop"', 'ask stop', gdb_says(insert[0]),
        'ask "tt record start /tmp/out/no"', gdb_says(packet('z0,300000,1'), insert[1]),
        'ask "tt record start /tmp/out/no"', gdb_says(packet('z1,300000,1')), goes_on,
        'ask "tt record start /tmp/out/no last=30s"',
        'ask nmi']
    args = [*guest_args(work, 'hlt', 'rounds=100 nmis=1'), '-chardev',
            'pipe,id=gdb,path=/tmp/gdb', '-gdb', 'chardev:gdb']
    jobs = [Job('hlt', args, parts=1, before=GDB_PIPE + START_WRONG, last='\n'.join(steps)),
            Job('mmiofp', guest_args(work, 'mmiofp', 'nmis=1 break=1'), parts=1,
                last=STUCK),
            *(Job(name, [a for a in guest_args(work, 'mmiofp', f'nmis=1 break={how}')
                         if a != '-no-reboot'], parts=1, last=RESET)
              for name, how in (('again', 1), ('lost', 2)))]
    runs = in_host(work, jobs, timeout=180)
    run = runs['hlt']
    said = read_text(os.path.join(work, 'hlt.gdb'))
    places = re.findall(r'\$([0-9a-f]{16})#', said)
    check(len(places) == 2 and places[0] == places[1], f'a step moves the VM: {places}')
    said = said.replace(places[0], 'RIP')
    equal(re.findall(r'\$([^#]*)#', re.sub(r'T05[^#]*', 'T05', said)),
          ['T02thread:01;', 'E22', 'E22', 'E22', 'RIP', 'T05', 'T05', 'RIP',
           'T02thread:01;', 'OK', 'OK', 'OK', 'OK', 'W00'], 'what gdb got')
    log = read_text(os.path.join(work, 'hlt.log'))
    equal(log.count('gdb cannot set breakpoints or watchpoints'), 1, 'warnings')
    equal(log.count('Error: gdb has breakpoints or watchpoints in this VM'), 2, 'refusals')
    check('tt: KVM on this host cannot execute an instruction of the guest, while its '
          'debug registers are in use: record with -accel tcg'
          in read_text(os.path.join(work, 'mmiofp.log')), 'no word of the instruction')
    equal(log.count('Error: last= does not work under KVM yet'), 1, 'refusals')
    for n, (options, text) in enumerate(WRONG.items()):
        said = read_text(os.path.join(work, f'hlt.wrong{n}'))
        check('-tt ready: ' in said and text in said, f'{options}: {said}')
    check_ended('hlt', run)
    replay(work, run.parts[0])
    check('RAM at the end' not in replay(work, runs['mmiofp'].parts[0], name='stuck').stderr,
          'the run does not end where the VM did')
    vm = replay(work, runs['again'].parts[0], name='again-rep')
    check('replay exact' in vm.stderr and b'mmiofp: start' in vm.serial,
          f'a recording that goes on after a reset: {vm.stderr[-500:]}')
    check_lost(work, runs['lost'])


@limit(300)
def test_once(work):
    """What KVM cannot emulate: in a recording TCG executes it once, and all goes on, also
    in one that began while the VM ran. Where nothing is recorded it is as with upstream,
    which takes it for undefined."""
    jobs = [Job('watched', guest_args(work, 'enter64', 'break=1')),
            Job('mmiofp', guest_args(work, 'mmiofp')),
            Job('later', guest_args(work, 'mmiofp', 'nmis=1'), parts=1, last='ask nmi')]
    for name, tt in UNRECORDED.items():
        jobs.append(Job(name, guest_args(work, 'mmiofp', 'rounds=0')))
        jobs[-1].tt = tt
    runs = in_host(work, jobs, timeout=180)
    for name in UNRECORDED:
        check_ended('mmiofp', runs[name])
        check(b'undefined=' in runs[name].serial,
              f'-tt {name} is not like upstream: {runs[name].serial[-200:]}')
    check_entered(runs['watched'])
    converted(work, runs['watched'], 'watched-rep')
    run = runs['mmiofp']
    check_ended('mmiofp', run)
    check(b'undefined=' not in run.serial and b'faults=00000028 steps=00000014' in
          run.serial, f'not what a CPU does: {run.serial[-200:]}')
    converted(work, run, 'once')
    check_exact(work, run, NO_CHAINS, 'once-again')
    check_ended('mmiofp', runs['later'])
    check(b'undefined=' not in runs['later'].serial, f'{runs["later"].serial[-200:]}')
    replay(work, runs['later'].parts[0])


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
