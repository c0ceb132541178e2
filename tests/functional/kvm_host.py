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
from ttlib import Run, Vm, check

LEVEL0 = ['-accel', 'tcg,tt-like-hardware=on', '-icount', 'shift=1,sleep=off']
CPU = 'max,+svm,+npt,+tsc-scale'
# Registers and memory in loops, exceptions, interrupts by timer and disk, DMA into code
# and data, string instructions, ports and MMIO, HLT, self-modification, x87 and SSE.
GUESTS = ('exceptions', 'window', 'debug', 'hlt', 'smc', 'lines64', 'fp', 'dmacode', 'mmiox',
          'selfdma', 'btflags', 'undef', 'rdmsr', 'bigram')
PLACE = re.compile(r'/[^,=\s]+')


class Job:
    """One recording: a QEMU command line with paths of this machine."""

    def __init__(self, name, args, options='', limit=60, before='', after='',
                 accel='kvm', parts=0):
        """parts: so many recordings, one after the other, by tt record start."""
        self.name, self.args, self.options = name, list(args), options
        self.parts = parts
        self.limit, self.before, self.after, self.accel = limit, before, after, accel
        while accel == 'kvm' and '-cpu' in self.args:   # KVM's is tt-v1
            at = self.args.index('-cpu')
            del self.args[at:at + 2]


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
    if job.parts:
        return (f'{job.before}\n{{ {in_parts(out, job.parts)}; }} | '
                f'timeout {job.limit} qemu -L /usr/share/qemu -accel {job.accel} '
                f'{words} -serial file:{out}.serial -tt ready -monitor stdio '
                f'> {out}.log 2>&1\n'
                f'echo $? > {out}.status; echo TT-JOB {job.name}\n{job.after}\n')
    return (f'{job.before}\ntimeout {job.limit} qemu -L /usr/share/qemu -accel {job.accel} '
            f'{words} '
            f'-serial file:{out}.serial -tt record,dir={out}.run{job.options} '
            f'> {out}.log 2>&1 < /dev/null\n'
            f'echo $? > {out}.status; echo TT-JOB {job.name}\n{job.after}\n')


def in_parts(out, parts):
    """The monitor's commands: the last recording lasts to the end of the guest."""
    text = []
    for part in range(parts):
        text += ['sleep 0.1', f'echo tt record start {out}.{part}', 'sleep 0.15']
        if part < parts - 1:
            text.append('echo tt record stop')
    return '; '.join([*text, 'sleep 20'])


def in_host(work, jobs, timeout=200, memory='2048', machine='pc', more=(), kernel=''):
    """Does the jobs, in order, in one boot. {name: Run}; each ended with status 0."""
    todo, done = os.path.join(work, 'jobs.tar'), os.path.join(work, 'done.tar')
    with tarfile.open(todo, 'w') as archive:
        text = ''.join(script_of(job, archive) for job in jobs)
        archive.add(write(os.path.join(work, 'run'), text.encode()), 'run')
    os.truncate(todo, (os.path.getsize(todo) + 511) & ~511)
    os.truncate(write(done, b''), 1 << 30)
    args = nested_args('', machine=machine, memory=memory) + list(more)
    args[args.index('-cpu') + 1] = CPU
    args[args.index('-append') + 1] += f' inner=job {kernel}'
    for name, path in (('todo', todo), ('done', done)):
        args += ['-drive', f'file={path},format=raw,if=none,id={name}',
                 '-device', f'virtio-blk-pci,drive={name}']
    with Vm(work, [*LEVEL0, *args], name='host', timeout=timeout) as vm:
        vm.wait(0)
        text = vm.serial.decode(errors='replace')
    check('TT-HOST-END 0' in text, f'the emulated host failed: {text[-600:]}')
    with tarfile.open(done) as archive:
        archive.extractall(work)
    os.remove(done)
    return {job.name: finished(work, job, vm) for job in jobs}


def finished(work, job, vm):
    def content(kind):
        with open(os.path.join(work, f'{job.name}.{kind}'), 'rb') as f:
            return f.read()

    log = content('log').decode(errors='replace')
    check(content('status') == b'0\n', f'{job.name} under KVM: {log[-600:]}')
    return Run(os.path.join(work, f'{job.name}.run'), content('serial'), vm)
