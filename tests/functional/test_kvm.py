# SPDX-License-Identifier: GPL-2.0-or-later
"""What was recorded under KVM (in the emulated host) replays exactly under TCG, and is a
run like any other then."""

import json
import os
import re

from guests import guest_args, linux_files
from kvm_host import Job, in_host
from ttlib import (Gdb, check, check_exact, end_of, equal, goto_exact, limit, replayer,
                   run_tool, stopped_replay, tool)

# Registers and memory in loops, exceptions, interrupts by timer and disk, DMA into code
# and data, string instructions, ports and MMIO, HLT, self-modification, x87 and SSE.
GUESTS = ('exceptions', 'debug', 'hlt', 'smc', 'lines64', 'fp', 'dmacode', 'mmiox',
          'selfdma', 'btflags', 'undef', 'rdmsr', 'bigram')
NO_CHAINS = ['-d', 'nochain']   # each block is looked up


def converted(work, run, name):
    """The first replay converts; what it says of that."""
    vm = check_exact(work, run, name=name, timeout=120)
    found = re.search(r'converted: (\d+) positions, .*; (\d+) landmarks', vm.stderr)
    check(found, f'{name} was not converted: {vm.stderr[-500:]}')
    return int(found[1]), int(found[2])


@limit(300)
def test_guests(work):
    """Bare-metal guests, one after the other in one emulated host."""
    runs = in_host(work, [Job(name, guest_args(work, name)) for name in GUESTS],
                   timeout=240)
    landmarks = 0
    for name, run in runs.items():
        check(f'{name}: end'.encode() in run.serial,
              f'guest {name} did not end under KVM: {run.serial[-200:]}')
        landmarks += converted(work, run, f'{name}-rep')[1]
        check_exact(work, run, NO_CHAINS, f'{name}-again')
    check(landmarks > 100, f'only {landmarks} landmarks')
    print(f'{landmarks} landmarks in {len(runs)} guests')


def linux_job(works, extra=''):
    """Linux with a virtio disk and an IDE one, a network card, and a web server on the
    host that it runs on."""
    kernel, initrd = linux_files()
    before = ('truncate -s 64M /tmp/a.img /tmp/b.img; mkdir -p /tmp/www\n'
              'head -c 300000 /dev/urandom > /tmp/www/file\n'
              'httpd -p 127.0.0.1:8080 -h /tmp/www')
    return Job('linux', [
        '-m', '256', '-nodefaults', '-display', 'none', '-no-reboot', '-kernel', kernel,
        '-initrd', initrd, '-append', 'console=ttyS0 panic=-1 no_timer_check quiet '
        f't={works} u=http://10.0.2.2:8080/file {extra}',
        '-drive', 'file=/tmp/a.img,format=raw,if=none,id=disk0',
        '-device', 'virtio-blk-pci,drive=disk0',
        '-drive', 'file=/tmp/b.img,format=raw,if=ide',
        '-netdev', 'user,id=net0', '-device', 'virtio-net-pci,netdev=net0,romfile='],
        limit=250, before=before)


def watch_back(vm, end):
    """gdb goes back to who wrote a word of the kernel's last, and to the time before."""
    gdb = Gdb(vm)
    text = gdb(f'monitor tt goto {end}', 'set $sp = $rsp', 'watch *(long *)$sp',
               'reverse-continue', 'monitor info tt', 'reverse-stepi', 'monitor info tt')
    seen = [int(n) for n in re.findall(r'^position (\d+)', text, re.M)]
    check(len(seen) == 2 and 0 < seen[1] < seen[0] < end, f'watch, going back: {text}')
    return seen[0]


@limit(400)
def test_linux(work):
    """Linux with disks, network, processes and timers: exact, and travelled."""
    run = in_host(work, [linux_job('vda,sda,net,procs,idle', 'n=200 s=1')],
                  timeout=300)['linux']
    for words in (b'TT-DONE vda', b'TT-DONE sda', b'TT-DONE net pings=3 bytes=300000',
                  b'TT-DONE procs count=200', b'TT-DONE idle', b'TT-GUEST-END'):
        check(words in run.serial, f'no "{words}": {run.serial[-600:]}')
    end, landmarks = converted(work, run, 'rep')
    check(landmarks > 1000, f'only {landmarks} landmarks')
    check_exact(work, run, NO_CHAINS, 'again', timeout=120)
    with stopped_replay(work, run, 'walk') as vm:
        equal(end_of(vm), end, 'the end')
        for at in (end // 3, end // 2, end - 1000):
            goto_exact(vm, at)
    vm = replayer(work, run, ['-S', *Gdb.args(work, 'gdb')], 'gdb', qmp=1, timeout=120)
    with vm:
        watch_back(vm, end * 9 // 10)
    out, _ = run_tool(tool('tt'), 'stats', run.dir, '--json')
    print(json.loads(out).get('positions'), landmarks, os.path.getsize(f'{run.dir}/log'))
