# SPDX-License-Identifier: GPL-2.0-or-later
"""Recording under KVM without /dev/kvm: jobs for the emulated host (level 1), in which
Debian's kvm-amd runs their guests (level 2).

Level 0 is like hardware in what the manuals leave undefined, and its time is counted in
instructions: so a busy machine is not seen inside.
"""
import os
import re
import tarfile

from guests import nested_args, write
from ttlib import SLOW, Run, TestFailure, Vm, check

LEVEL0 = ['-accel', 'tcg,tt-like-hardware=on', '-icount', 'shift=1,sleep=off']
LEVEL0_PMU = ['-accel', 'tcg,tt-like-hardware=on,tt-pmu=on', *LEVEL0[2:]]
CPU = 'max,+svm,+npt,+tsc-scale'
# Registers and memory in loops, exceptions, interrupts by timer and disk, DMA into code
# and data, string instructions, ports and MMIO, HLT, self-modification, x87 and SSE.
GUESTS = ('exceptions', 'window', 'debug', 'hlt', 'smc', 'lines64', 'fp', 'dmacode', 'mmiox',
          'selfdma', 'btflags', 'undef', 'rdmsr', 'bigram', 'quiet')
PLACE = re.compile(r'/[^,=\s]+')
# in_parts OUT PARTS COMMAND...: an answer of the monitor ends with its next prompt. `last`
# is defined outside.
IN_PARTS = r"""
has_ended() { ! kill -0 $qemu 2> /dev/null; }
ask()
{
    asked=$((asked + 1))
    echo "$1" >&3
    until [ "$(grep -o '(qemu)' $out.log | wc -l)" -gt $asked ] || has_ended; do
        usleep 5000
    done
}
in_parts()
{
    out=$1 parts=$2 part=0 asked=0
    shift 2
    mkfifo $out.monitor
    "$@" -serial file:$out.serial -monitor stdio < $out.monitor > $out.log 2>&1 &
    qemu=$!
    exec 3<> $out.monitor
    until [ -s $out.serial ] || has_ended; do
        usleep 5000
    done
    while [ $part -lt $parts ]; do
        ask "tt record start $out.$part"
        usleep 50000
        part=$((part + 1))
        if [ $part -lt $parts ]; then
            ask "tt record stop"
            usleep 20000
        fi
    done
    last
    wait $qemu
    echo $? > $out.status
    exec 3>&-
    rm $out.monitor
}
"""


# moved OUT "ACCEL ACCEL..." COMMAND...: by the functions of IN_PARTS.
MOVED = r"""
moved()
{
    base=$1 accels=$2 part=0 result=0 last=$(echo $2 | wc -w) from=
    shift 2
    for accel in $accels; do
        out=$base.q$part asked=0
        mkfifo $out.monitor
        "$@" -accel $accel $from -chardev file,id=con,path=$base.serial,append=on \
            -serial chardev:con -monitor stdio -tt ready < $out.monitor > $out.log 2>&1 &
        qemu=$!
        exec 3<> $out.monitor
        until [ -s $base.serial ] || has_ended; do
            usleep 5000
        done
        until grep -q "VM status: running" $out.log || has_ended; do
            ask "info status"
        done
        ask "tt record start $base.$part"
        part=$((part + 1))
        if [ $part -lt $last ]; then
            usleep 60000
            ask "tt record stop"
            ask "migrate file:$base.state"
            ask "info migrate"
            echo quit >&3
            from="-incoming file:$base.state"
        fi
        wait $qemu || result=$?
        exec 3>&-
        rm $out.monitor
        cat $out.log >> $base.log
    done
    echo $result > $base.status
    rm $base.state
}
"""


class Job:
    """One recording: a QEMU command line with paths of this machine."""
    tt = None           # the whole -tt option, in place of one that records

    def __init__(self, name, args, options='', limit=60, before='', after='',
                 accel='kvm', parts=0, last=':', cpu=''):
        """parts: so many recordings, one after the other, by tt record start; the last
        one lasts to the guest's end, and `last` is shell code that is executed in it:
        `ask COMMAND` asks the monitor."""
        self.name, self.args, self.options = name, list(args), options
        self.parts, self.last = parts, last
        self.limit, self.before, self.after, self.accel = limit, before, after, accel
        while accel == 'kvm' and '-cpu' in self.args:   # KVM's is tt-v1
            at = self.args.index('-cpu')
            del self.args[at:at + 2]
        self.args += ['-cpu', f'tt-v1{cpu}'] if cpu else []


class Moved(Job):
    """A VM that moves from one accelerator to the next, by a migration into a file; each of
    its processes records a part, the last one to the guest's end."""

    def __init__(self, name, args, accels, limit=60, cpu=''):
        super().__init__(name, args, limit=limit)
        self.args += ['-cpu', 'tt-v1' + cpu, '-global', 'apic-common.vapic=off',
                      '-machine', 'vmport=off']
        self.accels, self.parts = accels, len(accels)


class Program(Job):
    """In place of a recording: a program of this machine, linked statically."""

    def __init__(self, name, path):
        super().__init__(name, [path])


def quoted(word):
    return "'" + word.replace("'", "'\\''") + "'"


def script_of(job, archive):
    """What level 1 does for it. The files that it names go into the archive."""
    def brought(match):
        path = match[0]
        if not os.path.isfile(path):
            return path
        inside = f'{job.name}.{os.path.basename(path)}'
        if inside not in archive.getnames():
            archive.add(path, inside)
        return f'/tmp/in/{inside}'

    words = ' '.join(quoted(PLACE.sub(brought, a)) for a in job.args)
    out = f'/tmp/out/{job.name}'
    if isinstance(job, Program):
        return (f'{{ dmesg; {words}; }} > {out}.log 2>&1\necho $? > {out}.status\n'
                f'true > {out}.serial\n')
    limit = int(job.limit * SLOW)
    qemu = f'timeout {limit} qemu -L /usr/share/qemu -accel {job.accel} {words} '
    if isinstance(job, Moved):
        return (f'moved {out} "{" ".join(job.accels)}" timeout {limit} qemu '
                f'-L /usr/share/qemu {words}\necho TT-JOB {job.name}\n')
    if job.parts:
        return (f'{job.before}\nlast()\n{{\n{job.last}\n}}\n'
                f'in_parts {out} {job.parts} {qemu}-tt ready\n'
                f'echo TT-JOB {job.name}\n{job.after}\n')
    tt = f'-tt record,dir={out}.run{job.options}' if job.tt is None else job.tt
    return (f'{job.before}\n{qemu}-serial file:{out}.serial {tt} '
            f'> {out}.log 2>&1 < /dev/null\n'
            f'echo $? > {out}.status; echo TT-JOB {job.name}\n{job.after}\n')


def in_host(work, jobs, timeout=200, memory='2048', machine='pc', more=(), kernel='',
            failed=None, level0=LEVEL0):
    """Does the jobs, in order, in one boot. {name: Run}; each ended with status 0, or is
    left out and gets a sentence in `failed`, if that is given."""
    todo, done = os.path.join(work, 'jobs.tar'), os.path.join(work, 'done.tar')
    with tarfile.open(todo, 'w') as archive:
        text = IN_PARTS + MOVED + ''.join(script_of(job, archive) for job in jobs)
        archive.add(write(os.path.join(work, 'run'), text.encode()), 'run')
    os.truncate(todo, (os.path.getsize(todo) + 511) & ~511)
    os.truncate(write(done, b''), 1 << 30)
    args = nested_args('', machine=machine, memory=memory) + list(more)
    args[args.index('-cpu') + 1] = CPU
    args[args.index('-append') + 1] += f' inner=job {kernel}'
    for name, path in (('todo', todo), ('done', done)):
        args += ['-drive', f'file={path},format=raw,if=none,id={name}',
                 '-device', f'virtio-blk-pci,drive={name}']
    with Vm(work, [*level0, *args], name='host', timeout=timeout) as vm:
        vm.wait(0)
        text = vm.serial.decode(errors='replace')
    check('TT-HOST-END 0' in text, f'the emulated host failed: {text[-600:]}')
    with tarfile.open(done) as archive:
        archive.extractall(work)
    os.remove(done)
    runs = {}
    for job in jobs:
        try:
            runs[job.name] = finished(work, job, vm)
        except (TestFailure, OSError) as why:
            if failed is None:
                raise
            failed[job.name] = str(why)
    return runs


def finished(work, job, vm):
    def content(kind):
        with open(os.path.join(work, f'{job.name}.{kind}'), 'rb') as f:
            return f.read()

    log = content('log').decode(errors='replace')
    check(content('status') == b'0\n', f'{job.name} under KVM: {log[-600:]}')
    run = Run(os.path.join(work, f'{job.name}.run'), content('serial'), vm)
    run.parts = [os.path.join(work, f'{job.name}.{part}') for part in range(job.parts)
                 if re.search(rf'^.*recorded [1-9]\d* positions, .*/{job.name}\.{part}\s',
                              log, re.M)]
    return run
