#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How long a guest under KVM stands when a recording of it begins or ends, and when it moves
to TCG or back.

    bench-kvm-switch.py

In the emulated host, by its clock. `tt record start` and `tt record stop`: from the command
to the monitor's next prompt, by a clock of 10 ms, which is more than the guest stands. Moves:
what `info migrate` calls downtime.
"""
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, '..', 'functional'))
from guests import guest_args  # noqa: E402
from kvm_host import Job, Moved, in_host  # noqa: E402
from ttlib import read_text  # noqa: E402

# In place of that of kvm_host: says when it asked, and when the answer had come.
ASK = r"""
now() { cut -d ' ' -f 1 /proc/uptime; }
ask()
{
    asked=$((asked + 1))
    from=$(now)
    echo "$1" >&3
    until [ "$(grep -o '(qemu)' $out.log | wc -l)" -gt $asked ] || has_ended; do
        usleep 500
    done
    echo "TT-TOOK $from $(now) $1"
}
"""
RESULT = re.compile(r'TT-TOOK ([0-9.]+) ([0-9.]+) tt record (start|stop)')


def show(what, values):
    values.sort()
    print(f'{what:<18} {len(values):>3} times: {values[len(values) // 2]:.0f} ms in the '
          f'middle, {values[0]:.0f} to {values[-1]:.0f}', flush=True)


def main():
    with tempfile.TemporaryDirectory(prefix='tt-bench-') as work:
        moves = Moved('moved', guest_args(work, 'fp', 'rounds=8000 loops=1500'),
                      ('kvm', 'tcg', 'kvm', 'tcg'))
        in_host(work, [moves, Job('parts', guest_args(work, 'fp', 'rounds=20000'), parts=8,
                                  before=ASK)], timeout=300)
        took = {}
        for a, b, what in RESULT.findall(read_text(os.path.join(work, 'host.serial'))):
            took.setdefault(f'tt record {what}', []).append(1000 * (float(b) - float(a)))
        took['a move'] = [float(ms) for ms in re.findall(
            r'^downtime: (\d+) ms', read_text(os.path.join(work, 'moved.log')), re.M)]
        for what, values in took.items():
            show(what, values)


if __name__ == '__main__':
    main()
