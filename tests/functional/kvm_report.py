# SPDX-License-Identifier: GPL-2.0-or-later
"""Records bare-metal guests and Linux under KVM, replays each, and writes a report.

    scripts/kvm-report [--emulated [--boot N] [--branches]] [--rounds N] [--linux N]
                       [--out FILE]

On a host with VMX or SVM it says what positions are made of there, which guests replay
exactly, and how long Linux takes with and without -tt. With --emulated the recordings
are made in the emulated host (scripts/guest-nested), which needs no /dev/kvm. Status 0:
all were exact; 1: not all; 2: nothing could be tried.
"""
import argparse
import os
import platform
import re
import shutil
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from guests import guest_args, linux_files  # noqa: E402
from kvm_host import GUESTS, LEVEL0, LEVEL0_PMU, Job, in_host  # noqa: E402
from ttlib import BUILD, Run, TestFailure, Vm, check_exact, record  # noqa: E402

KVM = ['-accel', 'kvm']
LIMIT = 300


class Report:
    def __init__(self, path):
        self.file = open(path, 'w', encoding='utf-8')
        self.exact = self.failed = 0
        self.rows = {}

    def say(self, text):
        print(text, flush=True)
        self.file.write(f'{text}\n')
        self.file.flush()

    def result(self, name, why=None, more='', landmarks=0, candidates=0):
        self.failed += bool(why)
        self.exact += not why
        row = self.rows.setdefault(name, [0, 0, 0, 0])
        row[bool(why)] += 1
        row[2] += landmarks
        row[3] += candidates
        self.say(f'{name:<12} {"NOT EXACT: " + why if why else "exact"}{more}')

    def table(self):
        """What came of each guest in all rounds."""
        self.say(f'{"guest":<12} {"exact":>6} {"not":>4} {"landmarks":>10} '
                 f'{"candidates each":>16}')
        for name, (exact, failed, landmarks, candidates) in self.rows.items():
            self.say(f'{name:<12} {exact:>6} {failed:>4} {landmarks:>10} '
                     f'{candidates / max(landmarks, 1):>16.1f}')
        self.say(f'{self.exact} exact, {self.failed} not')


def first_match(path, pattern):
    try:
        with open(path, encoding='utf-8', errors='replace') as f:
            found = re.search(pattern, f.read(), re.M)
    except OSError:
        return 'not known'
    return found[1].strip() if found else 'not known'


def describe(report, args):
    report.say(f'date         {time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())}')
    report.say(f'kernel       {platform.release()} {platform.machine()}')
    report.say('CPU          ' + first_match('/proc/cpuinfo', r'^model name\s*: (.*)$'))
    report.say('microcode    ' + first_match('/proc/cpuinfo', r'^microcode\s*: (.*)$'))
    kvm = ('of the emulated host' + ', with counts of branches' * args.branches
           if args.emulated else ' '.join(
               sorted(m for m in os.listdir('/sys/module') if m.startswith('kvm'))))
    report.say(f'KVM          {kvm}')


def cut(why):
    return ' '.join(str(why).split())[:500]


def replayed(report, work, run, name, took='', twice=True):
    """The first replay converts; the second is one like any other."""
    try:
        vm = check_exact(work, run, name=f'{name}-rep', timeout=LIMIT)
        if twice:
            check_exact(work, run, name=f'{name}-again', timeout=LIMIT)
    except TestFailure as why:
        report.result(name, cut(why), took)
        return
    found = re.search(r'converted: (.*?(\d+) landmarks, ([\d.]+) candidates.*)', vm.stderr)
    if not found:
        report.result(name, 'it was not converted', took)
        return
    n = int(found[2])
    report.result(name, more=f'; {found[1]}{took}', landmarks=n,
                  candidates=n * float(found[3]))


def linux_args():
    kernel, initrd = linux_files()
    return ['-m', '256', '-nodefaults', '-display', 'none', '-no-reboot', '-kernel',
            kernel, '-initrd', initrd, '-append',
            'console=ttyS0 panic=-1 no_timer_check quiet t=sh,procs,rand n=200',
            '-netdev', 'user,id=net0', '-device', 'virtio-net-pci,netdev=net0,romfile=']


def seconds(start):
    return time.monotonic() - start


def on_host(report, work, name, args):
    """Recorded under this host's KVM; with the time that it takes unrecorded."""
    try:
        start = time.monotonic()
        with Vm(work, [*args, *KVM, '-cpu', 'host'], name=f'{name}-plain',
                timeout=LIMIT / 5) as vm:
            vm.wait(0)
        plain = seconds(start)
        start = time.monotonic()
        run = record(work, [*args, *KVM], name=name, timeout=LIMIT / 3)
    except TestFailure as why:
        report.result(name, f'not recorded: {cut(why)}')
        return
    if 'positions are' in run.vm.stderr and not hasattr(report, 'positions'):
        report.positions = re.search(r'positions are (.*)', run.vm.stderr)[1]
        report.say(f'positions    {report.positions}')
    took = seconds(start)
    replayed(report, work, run, name,
             f'; plain {plain:.2f} s, recorded {took:.2f} s, ratio {took / plain:.2f}')


def bare(work, name):
    job = Job(name, guest_args(work, name))
    return job.args


def names_of(guests, with_linux):
    return [*guests, *(['linux'] if with_linux else [])]


def all_args(work, names):
    return {n: linux_args() if n == 'linux' else bare(work, n) for n in names}


def on_this_host(report, names):
    with tempfile.TemporaryDirectory(prefix='tt-kvm-') as work:
        for name, args in all_args(work, names).items():
            on_host(report, work, name, args)


def in_emulated_host(report, level0, first, rounds):
    """One boot of it; rounds: for each, the guests. Only in the very first round each run
    is replayed a second time."""
    with tempfile.TemporaryDirectory(prefix='tt-kvm-') as work:
        jobs, failed = [], {}
        for number, names in enumerate(rounds, first):
            jobs += [Job(f'{n}.{number}', args, limit=LIMIT)
                     for n, args in all_args(work, names).items()]
        for name, run in in_host(work, jobs, timeout=600 * len(rounds), failed=failed,
                                 level0=level0).items():
            replayed(report, work, Run(run.dir, run.serial, run.vm), name.split('.')[0],
                     twice=first == 0)
            shutil.rmtree(run.dir)
        for name, why in failed.items():
            report.result(name.split('.')[0], f'not recorded: {cut(why)}')


def all_rounds(report, args):
    n = max(args.rounds, args.linux)
    rounds = [names_of(GUESTS if i < args.rounds else (), i < args.linux)
              for i in range(n)]
    step = args.boot if args.emulated else 1
    for first in range(0, n, step):
        last = min(first + step, n)
        report.say(f'-- round {first + 1}' + (f' to {last}' if last > first + 1 else ''))
        try:
            if args.emulated:
                in_emulated_host(report, LEVEL0_PMU if args.branches else LEVEL0, first,
                                 rounds[first:last])
            else:
                on_this_host(report, rounds[first])
        except TestFailure as why:
            report.result('the host', cut(why))


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('--emulated', action='store_true',
                   help='record in the emulated host, without /dev/kvm')
    p.add_argument('--rounds', type=int, default=3,
                   help='rounds with the bare-metal guests (default: 3)')
    p.add_argument('--linux', type=int, default=1,
                   help='rounds with Linux (default: 1)')
    p.add_argument('--boot', type=int, default=1, metavar='N',
                   help='with --emulated: rounds in one boot of the host (default: 1)')
    p.add_argument('--branches', action='store_true',
                   help='the emulated host has counters of branches')
    p.add_argument('--out', default=os.path.join(BUILD, 'kvm-report.txt'),
                   help='file for the report (default: build/kvm-report.txt)')
    args = p.parse_args()
    if args.branches and not args.emulated:
        p.error('--branches is for the emulated host: give --emulated, too')
    if not args.emulated and not os.access('/dev/kvm', os.R_OK | os.W_OK):
        print('kvm-report: this user cannot open /dev/kvm: load kvm-intel or kvm-amd, '
              'join the group kvm, or give --emulated', file=sys.stderr)
        return 2
    report = Report(args.out)
    describe(report, args)
    all_rounds(report, args)
    report.table()
    print(f'The report is {args.out}: please send it to us.')
    return report.failed != 0


if __name__ == '__main__':
    sys.exit(main())
