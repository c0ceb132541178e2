# SPDX-License-Identifier: GPL-2.0-or-later
"""A Debian kernel at work, recorded under KVM in the emulated host: one recording, from
which all is asked."""

import json
import os
import random
import re

from guests import linux_args, linux_disk, linux_net, write
from kvm_host import Job, in_host
from ttlib import (Gdb, check, check_exact, end_of, equal, goto_exact, limit, replayer,
                   run_tool, stopped_replay, tool)

DOWNLOAD = 256 << 10
PROCESSES = 200
SLEEPS = 200
WORKS = ('vda', 'sda', f'net pings=3 bytes={DOWNLOAD}', f'procs count={PROCESSES}',
         f'irq sleeps={SLEEPS}', 'rand')
FUNCTION = 'path_mount'
DISK = 18 << 20
PORT = 8000


def linux_job(work):
    """Disks by virtio and IDE, a download from the host by slirp, processes, timers."""
    payload = write(os.path.join(work, 'payload'), random.Random(1).randbytes(DOWNLOAD))
    ide = write(os.path.join(work, 'ide.img'), b'')
    os.truncate(ide, DISK)
    args = linux_args('vda,sda,net,procs,irq,rand',
                      f'quiet mitigations=off n={PROCESSES} i={SLEEPS} '
                      f'u=http://10.0.2.2:{PORT}/linux.payload syms={FUNCTION}')
    args += linux_disk(work, size=DISK) + linux_net()
    args += ['-drive', f'file={ide},format=raw,if=ide', '-fw_cfg',
             f'name=opt/tt/payload,file={payload}']
    return Job('linux', args, limit=200, options=',checkpoint-interval=10',
               before=f'httpd -p {PORT} -h /tmp/in')


def check_console(console):
    check('TT-FAIL' not in console, f'a work failed: {console[-800:]}')
    for what in WORKS:
        check(f'TT-DONE {what}' in console, f'"{what}" was not done: {console[-800:]}')
    check('TT-GUEST-END' in console, f'no end: {console[-300:]}')
    return int(re.search(rf'^TT-SYM ([0-9a-f]+) \S {FUNCTION}\b', console, re.M)[1], 16)


def converted(work, run):
    """The first replay converts: it finds each landmark, and what it says of RAM. Its
    log is the recorded one, but for positions."""
    recorded, pages = (events(run.dir, kind) for kind in ('landmark', 'landmark-pages'))
    vm = check_exact(work, run, name='first', timeout=200)
    found = re.search(r'converted: (.*)', vm.stderr)
    check(found, f'it was not converted: {vm.stderr[-800:]}')
    print(found[1])
    landmarks = int(re.search(r'(\d+) landmarks', found[1])[1])
    equal(landmarks, recorded, 'landmarks found, of those recorded')
    check(pages, 'no landmark has more than 3,000 pages')
    check(re.search(r'[1-9]\d* checkpoints compared', found[1]), 'no checkpoint')
    check(landmarks > 300, f'only {landmarks} landmarks')
    check('differs from the recorded RAM' not in vm.stderr,
          f'RAM at the end: {vm.stderr[-800:]}')
    equal(events(run.dir, 'landmark'), 0, 'landmarks in the converted log')
    return vm


def events(run, kind):
    out, _ = run_tool(tool('tt'), 'log', run, '--kind', kind, '--json', timeout=60)
    return sum(json.loads(line)['kind'] == kind for line in out.splitlines())


def gone_back(work, run, function):
    """gdb goes back from the end to a function of the kernel, twice; to who wrote the
    word of the stack at which it stands, and who did so before; and one instruction
    further."""
    with replayer(work, run, ['-S', *Gdb.args(work, 'gdb')], 'gdb', qmp=1) as vm:
        gdb = Gdb(vm)
        text = gdb('monitor tt goto end', 'maintenance flush register-cache',
                   f'hbreak *{function:#x}', 'reverse-continue', 'p/x $pc',
                   'monitor info tt', 'reverse-continue', 'p/x $pc', 'monitor info tt',
                   'delete', 'set $at = $rsp', 'watch *(unsigned long *)$at',
                   'reverse-continue', 'monitor info tt', 'reverse-continue',
                   'monitor info tt', 'reverse-stepi', 'monitor info tt', timeout=150)
    check(all(f'${n} = {function:#x}' in text for n in (1, 2)),
          f'reverse-continue: {text}')
    values = re.findall(r'^(?:Old|New) value = (\d+)', text, re.M)
    check(len(values) >= 4 and values[0] != values[1] == values[2] != values[3],
          f'what was written, going back: {values}, {text}')
    seen = [int(n) for n in re.findall(r'^position (\d+)', text, re.M)]
    check(len(seen) == 5 and seen == sorted(set(seen), reverse=True),
          f'positions, going back: {seen}, {text}')
    return seen


def travelled(work, run, seen):
    with stopped_replay(work, run, 'walk') as vm:
        end = end_of(vm)
        digests = {}
        for at in (end // 3, end - 1000, *seen[:2], end // 2):
            goto_exact(vm, at)
            digests[at] = vm.qmp.cmd('query-tt-digest', 60)
        for at in sorted(digests):
            goto_exact(vm, at)
            equal(vm.qmp.cmd('query-tt-digest', 60), digests[at], f'digest at {at}')


@limit(400)
def test_linux(work):
    """Disks by virtio and IDE, user networking, 200 processes, timers: recorded under
    KVM, it replays exactly, and gdb goes back in it."""
    run = in_host(work, [linux_job(work)], timeout=300)['linux']
    function = check_console(run.serial.decode(errors='replace'))
    converted(work, run)
    check_exact(work, run, name='second', timeout=100)
    travelled(work, run, gone_back(work, run, function))
