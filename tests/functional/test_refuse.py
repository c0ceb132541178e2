# SPDX-License-Identifier: GPL-2.0-or-later
"""What cannot be recorded is refused in one sentence, with status 1."""

import os

from guests import guest_args
from ttlib import (Skip, Vm, check, equal, one_sentence, record, recorder,
                   short, stopped_replay)

BLANK = 1 << 20


def refused(work, name, args, *words):
    """Starts QEMU, which must end with status 1 and say one of words."""
    with Vm(work, args, name=name, timeout=10) as vm:
        vm.wait(1)
        line = one_sentence(vm, name)
        check(any(word in line for word in words),
              f'{name}: the message names none of {words}: {line}')


def record_option(work, name):
    return ['-tt', f'record,dir={work}/{name}.run']


def refuse_test(name, promise, *words, add=()):
    def test(work):
        args = guest_args(work, 'cpuid', 'rounds=1')
        refused(work, name, [*args, *add, *record_option(work, name)],
                *words)
        check(not os.path.exists(f'{work}/{name}.run/log'),
              'a refused recording left a log behind')
    test.__doc__ = promise
    return test


def test_no_parent(work):
    """Only the run's own directory is made. One that is missing above it is named."""
    parent = f'{work}/group'
    args = guest_args(work, 'cpuid', 'rounds=1')
    refused(work, 'parent', [*args, '-tt', f'record,dir={parent}/x'],
            f"there is no directory '{parent}'; create that first")
    check(not os.path.exists(parent), 'it was made')
    refused(work, 'frames', [*args, '-tt', f'record,dir={work}/x,frames={parent}/frames'],
            'create first the one that it is to be in')


test_smp = refuse_test(
    'smp', 'More than eight vCPUs are refused.', 'smp', 'vCPU', 'CPU',
    add=['-smp', '9'])
test_kvm = refuse_test(
    'kvm', 'A CPU that KVM cannot record, or no KVM, is refused.', 'tt-v1', 'KVM',
    add=['-accel', 'kvm'])
test_kvm_machine = refuse_test(
    'kvm-machine', 'A choice of accelerators is refused.', 'kvm',
    add=['-machine', 'accel=kvm:tcg'])
test_enable_kvm = refuse_test(
    'enable-kvm', 'So it is when KVM has its old name.', 'tt-v1', 'KVM',
    add=['-enable-kvm'])
test_multi_threaded = refuse_test(
    'mttcg', 'Multi-threaded TCG is refused.', 'thread',
    add=['-accel', 'tcg,thread=multi'])
test_pmu = refuse_test(
    'pmu', 'Performance counters are for hosts that are not recorded.', 'tt-pmu',
    add=['-accel', 'tcg,tt-pmu=on'])
test_icount_rr = refuse_test(
    'rr', 'Upstream\'s record/replay beside ours is refused.', 'icount',
    'rr', add=['-icount', 'shift=auto,rr=record,rrfile=rr.bin'])
test_icount = refuse_test(
    'icount', 'Instruction counting as a clock is refused.', 'icount',
    add=['-icount', 'shift=auto'])
test_incoming = refuse_test(
    'incoming', 'An incoming migration is refused.', 'incoming',
    'migration', add=['-incoming', 'defer'])
test_ivshmem = refuse_test(
    'ivshmem', 'Memory that other processes write is refused.', 'ivshmem',
    'shared', add=['-object', 'memory-backend-memfd,id=mem,size=1M,share=on',
                   '-device', 'ivshmem-plain,memdev=mem'])
test_pmem = refuse_test(
    'pmem', 'virtio-pmem, which maps a file for the guest, is refused.',
    'pmem', add=['-object', 'memory-backend-ram,id=mem,size=4M',
                 '-m', '64M,maxmem=1G,slots=2', '-device',
                 'virtio-pmem-pci,memdev=mem'])
test_vmware_vga = refuse_test(
    'vmware-vga', 'A display that writes its memory by pointer is refused.',
    'vmware-svga', add=['-device', 'vmware-svga'])
test_erst = refuse_test(
    'erst', 'ACPI ERST, which writes its memory by pointer, is refused.',
    'acpi-erst', add=[
        '-object', 'memory-backend-ram,id=m,size=64K', '-device',
        'acpi-erst,memdev=m'])
test_pmr = refuse_test(
    'pmr', 'A persistent memory region of NVMe is refused.', 'pmrdev', add=[
        '-object', 'memory-backend-ram,id=m,size=64K,share=on', '-device',
        'nvme,serial=1,pmrdev=m'])
test_loadvm = refuse_test(
    'loadvm', '-loadvm while recording is refused.', 'loadvm', 'snapshot',
    add=['-loadvm', 'x'])


def test_vhost(work):
    """vhost, which writes guest memory past QEMU, is not built, or refused."""
    if not os.access('/dev/net/tun', os.R_OK | os.W_OK):
        raise Skip('there is no usable /dev/net/tun')
    has = os.access('/dev/vhost-net', os.R_OK | os.W_OK)
    tap = 'tap,id=n0,script=no,downscript=no,vhost=on' + (
        '' if has else ',vhostfd=0')    # standard input, which is no vhost
    with Vm(work, [*guest_args(work, 'cpuid', 'rounds=1'), '-netdev', tap,
                   '-device', 'virtio-net-pci,netdev=n0,romfile=',
                   *record_option(work, 'vhost')], name='vhost',
            timeout=10) as vm:
        vm.wait(1)
        if 'vhost-net support is not compiled in' not in vm.stderr:
            if not has:
                raise Skip('there is no usable /dev/vhost-net')
            check('vhost' in one_sentence(vm, 'vhost'), vm.stderr)


def test_shared_memory(work):
    """RAM shared with another process is refused, or recorded exactly."""
    args = guest_args(work, 'cpuid', 'rounds=1')
    with Vm(work, [*args, '-object', 'memory-backend-file,id=m,size=64M,'
                   f'share=on,mem-path={work}/ram', '-machine',
                   'memory-backend=m', *record_option(work, 'shm')],
            name='shm', timeout=20) as vm:
        if vm.wait() != 0:
            one_sentence(vm, 'shared memory')


def option_test(promise, option, *words, guest=True):
    def test(work):
        args = guest_args(work, 'cpuid', 'rounds=1') if guest else []
        options = option if isinstance(option, list) else [option]
        for value in options:
            args += ['-tt', value.replace('WORK', work)]
        refused(work, 'option', [*args, '-display', 'none'], *words)
    test.__doc__ = promise
    return test


test_replay_without_dir = option_test(
    'A replay must be told its run.', 'replay', 'dir', guest=False)
test_replay_of_nothing = option_test(
    'A replay of a directory that is not there says so.',
    'replay,dir=WORK/none', 'none', guest=False)
test_replay_of_empty = option_test(
    'A replay of a directory that holds no run says so.',
    'replay,dir=WORK', 'manifest', 'run', guest=False)
test_both_modes = option_test(
    'Recording and replaying at once is refused.',
    ['record,dir=WORK/a', 'replay,dir=WORK/b'], 'record', 'replay', 'tt')
test_unknown_mode = option_test(
    'An unknown mode is refused and the known ones named.', 'rewind',
    'record')
test_unknown_option = option_test(
    'An unknown option is refused by name.',
    'record,dir=WORK/a,colour=red', 'colour')
test_bad_at_end = option_test(
    'An unknown at-end is refused.', 'replay,dir=WORK,at-end=fly', 'at-end')
test_empty_option = option_test(
    'An empty -tt is refused.', '', 'record')


def test_bad_size(work):
    """A size that is none is refused (QEMU's own parser adds a hint)."""
    args = guest_args(work, 'cpuid', 'rounds=1')
    with Vm(work, [*args, '-tt', f'record,dir={work}/a,max-size=much'],
            name='size', timeout=10) as vm:
        vm.wait(1)
        check('max-size' in vm.stderr, f'it says: {vm.stderr}')


def test_bad_numbers(work):
    """Values that make no sense for how often something happens."""
    args = guest_args(work, 'cpuid', 'rounds=1')
    for option in ('sync=-1', 'sync=x', 'sync=1e9', 'check-interval=999',
                   'check-interval=0'):
        refused(work, 'no', [*args, '-tt', f'record,dir={work}/r,{option}'],
                option.split('=')[0])
        check(not os.path.exists(f'{work}/r'), f'{option} left a run')
    for option in ('check-interval=999', 'check-interval=18446744073709551615'):
        refused(work, 'no', [*args, '-tt', f'record,dir={work}/r,{option}'],
                'takes a number of positions from 1000 to ')


def test_options_of_replay(work):
    """A replay needs no machine options; a second VM in it is refused."""
    run = record(work, guest_args(work, 'cpuid', 'rounds=1'))
    for name, extra, words in (
            ('smp', ['-smp', '2'], ['leave out -smp']),
            ('bios', ['-bios', 'x'], ['leave out -bios']),
            ('machine', ['-M', 'q35'], ['leave out -machine']),
            ('usb', ['-M', 'usb=on'], ['leave out -usb (or usb= of -machine)']),
            ('smm', ['-M', 'smm=off'], ['leave out -machine smm=']),
            ('memory', ['-m', '1G'], ['leave out -m']),
            ('cdrom', ['-cdrom', '/dev/null'], ['-cdrom']),
            ('kvm', ['-accel', 'kvm'], ['kvm', 'KVM', 'tcg', 'accel']),
            ('icount', ['-icount', 'shift=1'], ['icount']),
            ('loadvm', ['-loadvm', 'x'], ['loadvm', 'snapshot'])):
        refused(work, name, ['-tt', f'replay,dir={run.dir}', '-display',
                             'none', *extra], *words)


def test_monitor_commands(work):
    """Migration and snapshots of a VM that records are refused, and the
    recording goes on."""
    disk = os.path.join(work, 'd.img')
    with open(disk, 'wb') as out:
        out.truncate(BLANK)
    args = guest_args(work, 'torture', 'rounds=100000')
    args += ['-drive', f'file={disk},format=raw,if=none,id=d0',
             '-device', 'virtio-blk-pci,drive=d0']
    with recorder(work, args, qmp=1) as vm:
        vm.wait_serial('start')
        message = vm.qmp.error('migrate', uri=f'file:{work}/migration')
        check(len(message.split()) > 4, f'bare message: {message}')
        for line in ('savevm one', 'loadvm one'):
            text = vm.qmp.hmp(line)
            check(text.startswith('Error'), f'{line}: {short(text)}')
        for device in ({'driver': 'vmware-svga'},
                       {'driver': 'nvme', 'serial': '1', 'pmrdev': 'm'}):
            message = vm.qmp.error('device_add', **device)
            check('cannot be recorded' in message, f'{device}: {message}')
        vm.qmp.cmd('quit')
        vm.wait(0)
    with Vm(work, ['-tt', f'replay,dir={vm.run},at-end=exit', '-display',
                   'none'], name='rep', timeout=60) as rep:
        rep.wait(0)


def test_input_in_a_replay(work):
    """A replay refuses what would be an input, and stays exact."""
    run = record(work, guest_args(work, 'cpuid', 'rounds=1'))
    with stopped_replay(work, run) as vm:
        for command, arguments in (
                ('system_reset', {}), ('system_powerdown', {}),
                ('inject-nmi', {}), ('device_add', {'driver': 'edu'}),
                ('send-key', {'keys': [{'type': 'qcode', 'data': 'a'}]})):
            message = vm.qmp.error(command, **arguments)
            check('a replay takes no input' in message, message)
        for line in ('system_reset', 'system_powerdown', 'nmi', 'sendkey a',
                     'mouse_move 1 1', 'o /b 0x80 1'):
            text = vm.qmp.hmp(line)
            check('a replay takes no input' in text, f'{line}: {text}')
        vm.qmp.cmd('cont')
        equal(vm.qmp.event('TT_STOPPED', 30)['reason'], 'end', 'stop')
        check(not vm.qmp.cmd('query-tt')['diverged'], 'it diverged')


def test_no_mode(work):
    """An option without a mode is refused, and what was not given is not quoted."""
    with Vm(work, ['-display', 'none', '-tt', 'dir=x'], serial=False) as vm:
        vm.wait(1)
    line = one_sentence(vm, 'no mode')
    check("'ready' first" in line and 'not' not in line, line)


def test_order_of_replay(work):
    """Where there is no run, that is said, and not what is wrong besides."""
    for name, add in (('memory', ['-m', '1G']), ('machine', ['-M', 'q35,smm=off']),
                      ('device', ['-device', 'e1000'])):
        refused(work, name, ['-tt', f'replay,dir={work}/none.run', *add],
                'there is no file')


test_ready_with_more = option_test(
    'A VM that is ready to be recorded takes no option of a recording.',
    'ready,max-size=1M', 'ready')


def test_ready_says_so(work):
    """What a recording refuses, -tt ready refuses in its own name. (With KVM:
    kvm/refusals.)"""
    args = guest_args(work, 'cpuid', 'rounds=1')
    refused(work, 'icount', [*args, '-icount', 'shift=auto', '-tt', 'ready'],
            '-tt ready and -icount')
    refused(work, 'erst', [*args, '-object', 'memory-backend-ram,id=m,size=64K', '-device',
                           'acpi-erst,memdev=m', '-tt', 'ready'], '-tt ready')
