#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""CPU time of recording and replaying against the same binary without -tt.

Runs each work of the Linux guest (scripts/guest) in turn: off, record, replay,
off, record, replay ...; prints the median CPU seconds (user + system, of the
whole process), the median of the ratios within each round, so that a machine
whose speed drifts does not favour one side, and the ratio of the least seconds of
all rounds: what other tenants of the host do can only add.

  tests/bench/bench-cost.py [-n ROUNDS] [--plain OTHER-QEMU] [WORK...]

--plain compares `off` with an unpatched build of the same source as well.
"""
import argparse
import functools
import http.server
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORKS = {'boot': 'none', 'sha': 'sha', 'procs': 'procs', 'disk': 'vda',
         'net': 'net'}
LIMIT_SECONDS = 300


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def serve(directory):
    handler = functools.partial(Quiet, directory=directory)
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def cpu_seconds(argv, want):
    """Runs argv; returns user + system seconds. Fails on another status."""
    proc = subprocess.Popen(argv, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    timer = threading.Timer(LIMIT_SECONDS, proc.kill)
    timer.start()
    err = proc.stderr.read()
    _, status, usage = os.wait4(proc.pid, 0)
    timer.cancel()
    proc.returncode = os.waitstatus_to_exitcode(status)
    if proc.returncode != 0 or want not in err:
        sys.exit(f"{' '.join(argv)}\nended with {proc.returncode}: "
                 f"{err.decode(errors='replace')[-400:]}")
    return usage.ru_utime + usage.ru_stime


class Bench:
    def __init__(self, args, tmp):
        self.args = args
        self.tmp = tmp
        self.disk = os.path.join(tmp, 'disk.img')
        self.run = os.path.join(tmp, 'run')
        with open(os.path.join(tmp, 'blob'), 'wb') as f:
            f.write(os.urandom(20_000_000))
        self.url = f'http://10.0.2.2:{serve(tmp)}/blob'

    def guest(self, qemu, work, extra):
        with open(self.disk, 'wb') as f:
            f.truncate(256 << 20)
        return [qemu, '-M', 'pc', '-accel', 'tcg,thread=single', '-m', '256',
                '-nodefaults', '-display', 'none', '-no-reboot', '-kernel',
                f'{TOP}/build/guest/vmlinuz', '-initrd',
                f'{TOP}/build/guest/initrd.img', '-append',
                f'console=ttyS0 panic=-1 t={WORKS[work]} u={self.url}',
                '-serial', 'null', '-drive',
                f'file={self.disk},if=virtio,format=raw', '-netdev',
                'user,id=n', '-device', 'virtio-net-pci,netdev=n,romfile=',
                *extra]

    def round(self, work):
        qemu = self.args.qemu
        shutil.rmtree(self.run, ignore_errors=True)
        out = {'off': cpu_seconds(self.guest(qemu, work, []), b'')}
        out['record'] = cpu_seconds(
            self.guest(qemu, work, ['-tt', f'record,dir={self.run}']),
            b'recorded')
        out['replay'] = cpu_seconds(
            [qemu, '-tt', f'replay,dir={self.run},at-end=exit', '-serial',
             'null'], b'replay exact')
        if self.args.plain:
            out['plain'] = cpu_seconds(
                self.guest(self.args.plain, work, self.args.plain_args.split()),
                b'')
        return out

    def work(self, work):
        rounds = [self.round(work) for _ in range(self.args.rounds)]

        def seconds(kind):
            return statistics.median(r[kind] for r in rounds)

        def ratio(kind, base):
            ratios = sorted(r[kind] / r[base] for r in rounds)
            least = min(r[kind] for r in rounds) / min(r[base] for r in rounds)
            return (f'{statistics.median(ratios):5.2f} '
                    f'({ratios[0]:.2f}-{ratios[-1]:.2f}) {least:5.2f}')

        line = (f"{work:6} {seconds('off'):8.2f} {seconds('record'):8.2f} "
                f"{seconds('replay'):8.2f}   {ratio('record', 'off')}  "
                f"{ratio('replay', 'off')}")
        if self.args.plain:
            line += f"  {ratio('off', 'plain')}"
        print(line, flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('-n', '--rounds', type=int, default=5)
    p.add_argument('--qemu', default=f'{TOP}/build/qemu-system-x86_64')
    p.add_argument('--plain', help='an unpatched build to compare `off` with')
    p.add_argument('--plain-args', default='', help='more arguments for it')
    p.add_argument('works', nargs='*', metavar='WORK',
                   help=f"of {', '.join(WORKS)}")
    args = p.parse_args()
    print(f"{args.rounds} rounds; CPU seconds are medians; ratios: median "
          "(least-most) of rounds, then the ratio of the least seconds")
    print("work        off   record   replay   record/off              "
          "replay/off" + ("              off/plain" if args.plain else ""))
    with tempfile.TemporaryDirectory(prefix='tt-bench-') as tmp:
        bench = Bench(args, tmp)
        for work in args.works or WORKS:
            if work not in WORKS:
                sys.exit(f"there is no work '{work}'")
            bench.work(work)


if __name__ == '__main__':
    main()
