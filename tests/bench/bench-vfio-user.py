#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What vfio-user costs, plain and recorded, by messages and by shadow memory: rounds
of the guest vfuedu (two pages of DMA and three interrupts each), bytes of the
log for a MB that the device writes, and looks at shadows by touched memory.

  tests/bench/bench-vfio-user.py [-n ROUNDS] [--times N]"""

import argparse
import os
import statistics
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'functional'))

from ttlib import Vm, recorder  # noqa: E402
from vfu import edu_args, vfio_server  # noqa: E402

# A round: one page to the device, one back.
DMA_BYTES = 4096


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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('-n', type=int, default=1000, help='rounds')
    parser.add_argument('--times', type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix='tt-vfu-') as work:
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
        for touched in (0, 64, 256):
            _, _, (pages, _, ns, calls) = one(work, 60, 'shared', True, f't{touched}',
                                              f'touch={touched}')
            print(f'{touched:5} MiB touched: {pages // calls} pages a look, '
                  f'{ns / calls / 1e6:.3f} ms')
    return 0


if __name__ == '__main__':
    sys.exit(main())
