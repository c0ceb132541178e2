# SPDX-License-Identifier: GPL-2.0-or-later
"""A run goes to another machine, whose CPU is another one, and comes from there.

The other machine is a Linux guest whose CPU is of 2008: our QEMU runs in it, where its
translator finds no AVX, no BMI and no FMA to use, and in a kernel that is not the
host's."""

import os
import re
import subprocess

from guests import GUESTS, build_guest, guest_args, own_args, write
from ttlib import Vm, check, equal, limit, qemu_binary, replay, run_tool

FIRMWARE = {'bios-256k.bin': '/usr/share/seabios', 'kvmvapic.bin': '/usr/share/qemu',
            'multiboot_dma.bin': '/usr/share/qemu', 'multiboot.bin': '/usr/share/qemu'}
# Recorded here and replayed there; recorded there and replayed here.
THERE = ('fp', 'exceptions', 'cpuid')
BACK = ('fp', 'exceptions')

SCRIPT = '''
grep -m1 'model name' /proc/cpuinfo
qemu='/own/lib/ld-linux-x86-64.so.2 --library-path /own/lib /own/qemu -L /own/share
    -display none -serial null'
for g in {there}; do
    $qemu -tt replay,dir=/own/run-$g,at-end=exit 2>&1
    echo "TT-THERE $g $?"
done
{records}
cd /tmp && tar cf /dev/vda {back} && sync && echo TT-DONE own
'''


def read(path):
    with open(path, 'rb') as f:
        return f.read()


def program_files(work):
    """Our QEMU, what it loads and its firmware."""
    small = os.path.join(work, 'qemu')
    run_tool('strip', '-o', small, os.path.realpath(qemu_binary()))
    files = {'own/qemu': read(small)}
    for path in re.findall(r'(/\S+) \(0x', run_tool('ldd', qemu_binary())[0]):
        files[f'own/lib/{os.path.basename(path)}'] = read(path)
    for name, folder in FIRMWARE.items():
        files[f'own/share/{name}'] = read(os.path.join(folder, name))
    return files


def recorded_files(work, guest):
    with Vm(work, [*guest_args(work, guest), '-tt',
                   f'record,dir={work}/{guest}.run']) as vm:
        vm.wait(0)
    return {f'own/run-{guest}/{name}': read(f'{work}/{guest}.run/{name}')
            for name in os.listdir(f'{work}/{guest}.run')}


@limit(420)
def test_another_cpu(work):
    """What was recorded here is exact on a CPU without AVX, and the other way round."""
    files = program_files(work)
    for guest in THERE:
        files.update(recorded_files(work, guest))
    for guest in BACK:
        files[f'own/{guest}.elf'] = read(build_guest(guest))
    records = [f'$qemu {" ".join(GUESTS[g].machine)} -kernel /own/{g}.elf -append '
               f'"{GUESTS[g].append} hz=200" -tt record,dir=/tmp/{g} 2>&1'
               for g in BACK]
    # At their own rate, ticks come faster there than a busy host lets them be served.
    files['own/run'] = SCRIPT.format(there=' '.join(THERE), back=' '.join(BACK),
                                     records='\n'.join(records)).encode()
    out = write(os.path.join(work, 'out.tar'), b'')
    os.truncate(out, 32 << 20)
    with Vm(work, [*own_args(work, files, memory='1024'), '-cpu', 'Nehalem',
                   '-drive', f'file={out},format=raw,if=virtio'],
            name='other', timeout=400) as vm:
        vm.wait(0)
        said = vm.serial.decode(errors='replace')
    check('Nehalem' in said, 'the other CPU')
    for guest in THERE:
        equal(re.findall(f'TT-THERE {guest} (\\d+)', said), ['0'], f'{guest} there')
    equal(said.count('replay exact'), len(THERE), 'exact there')
    check('TT-DONE own' in said, 'the other machine has written what it recorded')
    subprocess.run(['tar', 'xf', out, '-C', work], check=True)
    for guest in BACK:
        replay(work, os.path.join(work, guest))
