#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""CPU time of recording and replaying against the same binary without -tt, and
against upstream's recorder.

Runs each work of the Linux guest (scripts/guest) in turn: off, record, replay,
off, record, replay ...; prints the median CPU seconds (user + system, of the
whole process), the median of the ratios within each round, so that a machine
whose speed drifts does not favour one side, and the ratio of the least seconds of
all rounds: what other tenants of the host do can only add.

  tests/bench/bench-cost.py [-n ROUNDS] [--upstream] [--log]
                            [--smp N] [--plain OTHER-QEMU] [--fixed]
                            [--short-boot] [WORK...]

--fixed takes a guest that does next to nothing, with 256 MiB and 4 GiB, instead of the
works: what a recording and a replay cost however short they are, as the difference of
the least seconds.

--short-boot boots Linux to its first process, with no disk and no network, and powers
off: some two seconds of CPU. It prints the least seconds of the rounds; the status is 1
if the replay takes more than plain TCG.

--upstream adds -icount shift=auto,rr=record and rr=replay of the same binary, each
with a limit of time, since they may hang. --log prints what one recording of each
work logged, by kind. --smp gives the guest N vCPUs, which take turns in one
thread in all of them; QEMU's default beside it, a thread for each, is `multi`, and
what is compared with that is the time that passes. The work `make` (make -j4 of a C
program) needs scripts/guest --devices. --plain compares `off` with an unpatched build of
the same source as well.
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
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORKS = {'boot': 'none', 'sha': 'sha', 'procs': 'procs', 'sys': 'sys',
         'disk': 'vda', 'net': 'net', 'irq': 'irq', 'idle': 'idle'}
OWN_GUEST = {'make': ('own', 'guest-devices', 'compiler.img')}
LIMIT_SECONDS = 300
UPSTREAM_SECONDS = 60


class Took(float):
    """CPU seconds, and the time that passed."""
    elapsed = 0.0


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def serve(directory):
    handler = functools.partial(Quiet, directory=directory)
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def cpu_seconds(argv, want, limit=LIMIT_SECONDS):
    """Runs argv; returns what it Took. Fails on another status; without
    `want` a failure is None."""
    proc = subprocess.Popen(argv, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    began = time.monotonic()
    timer = threading.Timer(limit, proc.kill)
    timer.start()
    err = proc.stderr.read()
    _, status, usage = os.wait4(proc.pid, 0)
    timer.cancel()
    proc.returncode = os.waitstatus_to_exitcode(status)
    if want is None and proc.returncode != 0:
        return None
    if proc.returncode != 0 or (want or b'') not in err:
        sys.exit(f"{' '.join(argv)}\nended with {proc.returncode}: "
                 f"{err.decode(errors='replace')[-400:]}")
    took = Took(usage.ru_utime + usage.ru_stime)
    took.elapsed = time.monotonic() - began
    return took


class Bench:
    def __init__(self, args, tmp):
        self.args = args
        self.tmp = tmp
        self.disk = os.path.join(tmp, 'disk.img')
        self.run = os.path.join(tmp, 'run')
        self.serial = os.path.join(tmp, 'serial')
        with open(os.path.join(tmp, 'blob'), 'wb') as f:
            f.write(os.urandom(20_000_000))
        self.url = f'http://10.0.2.2:{serve(tmp)}/blob'

    def guest(self, qemu, work, extra, disk=('if=virtio',), thread='single'):
        what, where, initrd = OWN_GUEST.get(work) or (WORKS[work], 'guest',
                                                      'initrd.img')
        with open(self.disk, 'wb') as f:
            f.truncate(256 << 20)
        return [qemu, '-M', 'pc', '-accel', f'tcg,thread={thread}', '-m', '256',
                '-smp', str(self.args.smp),
                '-nodefaults', '-display', 'none', '-no-reboot', '-kernel',
                f'{TOP}/build/{where}/vmlinuz', '-initrd',
                f'{TOP}/build/{where}/{initrd}', '-append',
                f'console=ttyS0 panic=-1 t={what} u={self.url}',
                '-serial', f'file:{self.serial}', '-drive',
                f'file={self.disk},format=raw,{disk[0]}', *disk[1:], '-netdev',
                'user,id=n', '-device', 'virtio-net-pci,netdev=n,romfile=',
                *extra]

    def checked(self, work, seconds):
        """seconds, if the guest did its work."""
        with open(self.serial, 'rb') as f:
            text = f.read().decode(errors='replace')
        what = OWN_GUEST[work][0] if work in OWN_GUEST else WORKS[work]
        if seconds is not None and f'TT-DONE {what}' not in text and \
                what != 'none':
            sys.exit(f'the guest did not do its work {work}: {text[-400:]}')
        return seconds

    def upstream(self, work, mode):
        """As its manual wants it: every input behind a filter."""
        disk = ('if=none,id=plain', '-drive',
                'driver=blkreplay,if=none,image=plain,id=disk', '-device',
                'virtio-blk-pci,drive=disk')
        return cpu_seconds(
            self.guest(self.args.qemu, work, [
                '-object', 'filter-replay,id=replay,netdev=n', '-icount',
                f'shift=auto,rr={mode},rrfile={self.tmp}/rr'], disk),
            None, UPSTREAM_SECONDS)

    def round(self, work):
        qemu = self.args.qemu
        shutil.rmtree(self.run, ignore_errors=True)
        out = {'off': self.checked(
            work, cpu_seconds(self.guest(qemu, work, []), b''))}
        out['record'] = self.checked(work, cpu_seconds(
            self.guest(qemu, work, ['-tt', f'record,dir={self.run}']),
            b'recorded'))
        out['replay'] = cpu_seconds(
            [qemu, '-tt', f'replay,dir={self.run},at-end=exit', '-serial',
             'null'], b'replay exact')
        if self.args.smp > 1:
            out['multi'] = self.checked(work, cpu_seconds(
                self.guest(qemu, work, [], thread='multi'), b''))
        if self.args.upstream:
            out['rr-record'] = self.upstream(work, 'record')
            out['rr-replay'] = self.upstream(work, 'replay')
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
            if any(r[kind] is None for r in rounds):
                n = sum(r[kind] is None for r in rounds)
                return f'fails or hangs {n} of {len(rounds)} '
            ratios = sorted(r[kind] / r[base] for r in rounds)
            least = min(r[kind] for r in rounds) / min(r[base] for r in rounds)
            return (f'{statistics.median(ratios):5.2f} '
                    f'({ratios[0]:.2f}-{ratios[-1]:.2f}) {least:5.2f}')

        line = (f"{work:6} {seconds('off'):8.2f} {seconds('record'):8.2f} "
                f"{seconds('replay'):8.2f}   {ratio('record', 'off')}  "
                f"{ratio('replay', 'off')}")
        if self.args.smp > 1:
            each = sorted(r['record'].elapsed / r['multi'].elapsed
                          for r in rounds)
            line += (f'  {statistics.median(each):5.2f} '
                     f'({each[0]:.2f}-{each[-1]:.2f})')
        if self.args.upstream:
            line += (f"  {ratio('rr-record', 'off')}"
                     f"  {ratio('rr-replay', 'off')}")
        if self.args.plain:
            line += f"  {ratio('off', 'plain')}"
        print(line, flush=True)
        if self.args.log:
            tt = os.path.join(os.path.dirname(self.args.qemu), 'tt')
            print(subprocess.run([tt, 'stats', self.run], text=True,
                                 capture_output=True).stdout, flush=True)


def fixed(args):
    """Start and end of a recording and of a replay, least of the rounds."""
    sys.path.insert(0, os.path.join(TOP, 'tests', 'functional'))
    from guests import guest_args
    for megabytes in (256, 4096):
        least = {}
        with tempfile.TemporaryDirectory(prefix='tt-bench-') as tmp:
            guest = guest_args(tmp, 'cpuid')
            guest[guest.index('-m') + 1] = str(megabytes)
            argv = [args.qemu, '-accel', 'tcg,thread=single', *guest, '-serial',
                    'null']
            run = os.path.join(tmp, 'run')
            for _ in range(args.rounds):
                shutil.rmtree(run, ignore_errors=True)
                for kind, command, want in (
                        ('off', argv, b''),
                        ('record', [*argv, '-tt', f'record,dir={run}'], b'recorded'),
                        ('replay', [args.qemu, '-tt', f'replay,dir={run},at-end=exit',
                                    '-serial', 'null'], b'replay exact')):
                    took = cpu_seconds(command, want)
                    least[kind] = min(took, least.get(kind, took))
        print(f"{megabytes} MiB: off {least['off']:.3f} s, record "
              f"{least['record'] - least['off']:+.3f} s, replay "
              f"{least['replay'] - least['off']:+.3f} s", flush=True)


def short_boot(args):
    """A boot and nothing else, least of the rounds; True: the replay takes less."""
    least = {}
    with tempfile.TemporaryDirectory(prefix='tt-bench-') as tmp:
        run = os.path.join(tmp, 'run')
        argv = [args.qemu, '-M', 'pc', '-accel', 'tcg,thread=single', '-m', '256',
                '-nodefaults', '-display', 'none', '-no-reboot', '-kernel',
                f'{TOP}/build/guest/vmlinuz', '-initrd', f'{TOP}/build/guest/initrd.img',
                '-append', 'console=ttyS0 quiet panic=-1 t=none', '-serial', 'null']
        replay = [args.qemu, '-tt', f'replay,dir={run},at-end=exit', '-serial', 'null']
        for _ in range(args.rounds):
            shutil.rmtree(run, ignore_errors=True)
            for kind, command, want in (
                    ('off', argv, b''),
                    ('record', [*argv, '-tt', f'record,dir={run}'], b'recorded'),
                    ('replay', replay, b'replay exact')):
                took = cpu_seconds(command, want)
                least[kind] = min(took, least.get(kind, took))
    off = least['off']
    print(f"short boot, least of {args.rounds}: off {off:.3f} s, record "
          f"{least['record']:.3f} s ({least['record'] / off:.3f}), replay "
          f"{least['replay']:.3f} s ({least['replay'] / off:.3f})", flush=True)
    return least['replay'] <= off


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('-n', '--rounds', type=int, default=5)
    p.add_argument('--qemu', default=f'{TOP}/build/qemu-system-x86_64')
    p.add_argument('--upstream', action='store_true')
    p.add_argument('--log', action='store_true')
    p.add_argument('--smp', type=int, default=1, metavar='N')
    p.add_argument('--plain', help='an unpatched build to compare `off` with')
    p.add_argument('--plain-args', default='', help='more arguments for it')
    p.add_argument('--fixed', action='store_true')
    p.add_argument('--short-boot', action='store_true')
    p.add_argument('works', nargs='*', metavar='WORK',
                   help=f"of {', '.join([*WORKS, *OWN_GUEST])}")
    args = p.parse_args()
    if args.fixed:
        fixed(args)
        return
    if args.short_boot:
        sys.exit(not short_boot(args))
    print(f"{args.rounds} rounds; CPU seconds are medians; ratios: median "
          "(least-most) of rounds, then the ratio of the least seconds")
    print("work        off   record   replay   record/off              "
          "replay/off" +
          ("              time record/multi" if args.smp > 1 else "") +
          ("              rr=record/off           rr=replay/off"
           if args.upstream else "") +
          ("           off/plain" if args.plain else ""))
    with tempfile.TemporaryDirectory(prefix='tt-bench-') as tmp:
        bench = Bench(args, tmp)
        for work in args.works or WORKS:
            if work not in WORKS and work not in OWN_GUEST:
                sys.exit(f"there is no work '{work}'")
            bench.work(work)


if __name__ == '__main__':
    main()
