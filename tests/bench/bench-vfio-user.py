#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What vfio-user costs, plain and recorded, by messages and by shadow memory: rounds
of the guest vfuedu (two pages of DMA and three interrupts each), bytes of the
log for a MB that the device writes, the same page by page for a driver that polls memory
with interrupts off, and looks at shadows by touched memory.

  tests/bench/bench-vfio-user.py [-n ROUNDS] [--times N]
  tests/bench/bench-vfio-user.py --nvme [--times N] [--seconds S] [--dma messages|shared]
                                                [--iommu]

--nvme: fio in the Linux guest, with Debian's own driver, on an NVMe disk of another
process (64 MiB): KiB/s and mean latency of each job, plain and recorded; the median of the
ratios of each round, and that of the medians."""

import argparse
import os
import re
import statistics
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'functional'))

from guests import linux_disk, own_args  # noqa: E402
from programs import MOUNT, program_disk  # noqa: E402
from ttlib import Vm, recorder  # noqa: E402
from vfu import edu_args, vfio_device, vfio_server  # noqa: E402

IOMMU = ['-device', 'intel-iommu,caching-mode=on,intremap=off']
# A round: one page to the device, one back.
DMA_BYTES = 4096

# fio's options; columns of its --minimal: KiB/s, and the mean latency in us.
FIO = '--ioengine={} --iodepth={} --rw={} --bs={}'
JOBS = {
    'write': (FIO.format('psync', 1, 'write', '128k'), 48, 81),
    'read': (FIO.format('psync', 1, 'read', '128k'), 7, 40),
    'blocks': (FIO.format('libaio', 16, 'randwrite', '4k'), 48, 81),
}


def one(work, rounds, dma, recorded, name, more=''):
    """Seconds from the first to the last round, bytes of the log, what shadows cost."""
    with vfio_server(work, name=name) as (_, path):
        args = edu_args(path, f'rounds={rounds} {more}', f',dma={dma},id=edu0')
        args += ['-m', '512', '-no-shutdown', '-object',
                 'memory-backend-memfd,id=ram,share=on,size=512M', '-machine',
                 'memory-backend=ram']
        with (recorder(work, args, name=name, qmp=1, timeout=600) if recorded else
              Vm(work, args, name=name, qmp=1, timeout=600)) as vm:
            vm.wait_serial(' id=', timeout=100)
            began = time.monotonic()
            vm.wait_serial(' rounds=', timeout=300)
            took = time.monotonic() - began
            shadow = [vm.qmp.cmd('qom-get', path='/machine/peripheral/edu0',
                                 property=f'x-shadow-{what}')
                      for what in ('pages', 'bytes', 'ns', 'calls')]
            vm.qmp.send('quit')
            vm.wait(0)
    log = os.path.getsize(os.path.join(vm.run, 'log')) if recorded else 0
    return took, log, shadow


def nvme_script(seconds):
    lines = ['#!/bin/busybox sh', MOUNT.replace('/dev/vdb', '/dev/vda')]
    for job, (options, rate, latency) in JOBS.items():
        lines.append(f'echo "TT-RATE {job} $(t fio --name=j --filename=/dev/nvme0n1 '
                     f'--direct=1 --size=48M --time_based --runtime={seconds} --randseed=7 '
                     f'--minimal {options} | cut -d ";" -f {rate},{latency} | tr ";" " ")"')
    return '\n'.join([*lines, 'echo "TT-DONE own"', '']).encode()


def nvme_once(place, tools, dma, recorded, seconds, iommu=False):
    """{job: (KiB/s, microseconds)}."""
    linux_disk(place)
    with vfio_server(place, 'nvme', disk=os.path.join(place, 'disk.img')) as (_, path):
        args = own_args(place, {'own/run': nvme_script(seconds)}, 'intel_iommu=on',
                        memory='384', machine='q35')
        args += IOMMU if iommu else []
        args += ['-object', 'memory-backend-memfd,id=ram,share=on,size=384M', '-machine',
                 'memory-backend=ram', *vfio_device(path, f',dma={dma}'), '-drive',
                 f'file={tools},format=raw,if=virtio,readonly=on']
        with (recorder if recorded else Vm)(place, args, name='nvme',
                                            timeout=120 + 10 * seconds) as vm:
            vm.wait()
    found = re.findall(r'^TT-RATE (\w+) (\d+) ([\d.]+)', vm.serial.decode('latin-1'), re.M)
    if {job for job, _, _ in found} != set(JOBS):
        sys.exit(f'the guest says {vm.serial[-400:]}')
    return {job: (int(rate), float(latency)) for job, rate, latency in found}


def nvme(args, work):
    tools = program_disk(f'{work}/tools.img', 'fio')
    for dma in [args.dma] if args.dma else ('messages', 'shared'):
        ratios = {job: [] for job in JOBS}
        seen = {job: [] for job in JOBS}
        for number in range(args.times):
            rounds = {}
            for recorded in (False, True)[::-1 if number % 2 else 1]:
                with tempfile.TemporaryDirectory(dir=work) as place:
                    rounds[recorded] = nvme_once(place, tools, dma, recorded, args.seconds,
                                                 args.iommu and recorded)
            for job, r in ratios.items():
                plain, recorded = rounds[False][job], rounds[True][job]
                r.append(recorded[0] / plain[0])
                seen[job].append((plain[0], recorded[0]))
                print(f'{dma:9} {job:7} plain {plain[0]:8} KiB/s {plain[1]:9.0f} us, '
                      f'recorded {recorded[0]:8} KiB/s {recorded[1]:9.0f} us, '
                      f'speed {r[-1]:.2f}', flush=True)
        for job, r in ratios.items():
            plain, recorded = (statistics.median(speeds) for speeds in zip(*seen[job]))
            print(f'{dma:9} {job:7} speed {statistics.median(r):.2f} ({min(r):.2f} to '
                  f'{max(r):.2f}), of the medians {recorded / plain:.2f}', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('-n', type=int, default=1000, help='rounds')
    parser.add_argument('--times', type=int, default=5)
    parser.add_argument('--nvme', action='store_true')
    parser.add_argument('--dma', choices=('messages', 'shared'), help='only this')
    parser.add_argument('--iommu', action='store_true',
                        help='recorded behind a virtual IOMMU')
    parser.add_argument('--seconds', type=int, default=8, help='of each job of fio')
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix='tt-vfu-') as work:
        if args.nvme:
            nvme(args, work)
            return 0
        for dma in ('messages', 'shared'):
            plain, recorded, logs = [], [], []
            for i in range(args.times):
                plain.append(one(work, args.n, dma, False, f'p{dma}{i}')[0])
                took, big, _ = one(work, args.n, dma, True, f'r{dma}{i}')
                recorded.append(took)
                logs.append(big - one(work, args.n // 10, dma, True, f's{dma}{i}')[1])
            bytes_written = (args.n - args.n // 10) * DMA_BYTES
            a, b = statistics.median(plain), statistics.median(recorded)
            print(f'{dma:9} {args.n} rounds: plain {a:.2f} s, recorded {b:.2f} s, '
                  f'speed {a / b:.2f}; log {statistics.median(logs) / bytes_written:.3f}'
                  ' MB a MB written by the device')
        for dma, more in (('messages', ''), ('shared', ''), ('shared', ',interval=1')):
            took = {recorded: one(work, args.n, dma + more, recorded,
                                  f'y{dma}{len(more)}{recorded}', 'poll=1')[0]
                    for recorded in (False, True)}
            print(f'polled    dma={dma}{more}: a round takes ' + ' and '.join(
                f'{t * 1e3 / args.n:.2f} ms {"recorded" if recorded else "plain"}'
                for recorded, t in took.items()))
        for touched in (0, 64, 256):
            _, _, (pages, _, ns, calls) = one(work, 60, 'shared', True, f't{touched}',
                                              f'touch={touched}')
            print(f'{touched:5} MiB touched: {pages // calls} pages a look, '
                  f'{ns / calls / 1e6:.3f} ms')
    return 0


if __name__ == '__main__':
    sys.exit(main())
