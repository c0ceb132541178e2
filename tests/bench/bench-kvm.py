#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What a recording under KVM consists of, by phase of a Linux guest: for each second of
the guest its exits, landmarks and bytes by kind; what the conversion costs against plain
TCG; and what the exits would cost on real hardware.

    bench-kvm.py [--exit-us N] [--landmark-us N] [--branches] [--keep DIR]

The guest is recorded in the emulated host (scripts/guest-nested), whose time is counted in
instructions. --exit-us: an exit to QEMU and back (default: 1, from published 2528 cycles
of one KVM_RUN on an AMD CPU); --landmark-us: a landmark (default: 20, an estimate: a kick,
four ioctls, the dirty log, and a hash of some pages). --branches: the emulated host has
performance counters, so each landmark has its count of branches.
"""
import argparse
import collections
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, '..', 'functional'))
from guests import linux_args, linux_disk, linux_net, write  # noqa: E402
from kvm_host import LEVEL0, LEVEL0_PMU, Job, in_host  # noqa: E402
from ttlib import Run, Vm, check_exact, tool  # noqa: E402

WORKS = {'sha': 'compute', 'vda': 'disk', 'net': 'network', 'idle': 'idle'}
PHASES = ('boot', *WORKS.values())
PORT, CONSOLE = 8000, 0x3f8
EXITS = ('pio-in', 'pio-out', 'mmio-ld', 'mmio-st', 'msr-rd', 'msr-wr', 'hlt', 'tpr-wr')
DOWNLOAD = 1 << 20


def job_of(work):
    payload = write(os.path.join(work, 'payload'), os.urandom(DOWNLOAD))
    args = linux_args(','.join(WORKS), 'quiet mitigations=off s=2 '
                      f'u=http://10.0.2.2:{PORT}/linux.payload')
    args += linux_disk(work, size=18 << 20) + linux_net()
    args += ['-fw_cfg', f'name=opt/tt/payload,file={payload}']
    return Job('linux', args, limit=1500, before=f'httpd -p {PORT} -h /tmp/in')


class Phase:
    def __init__(self):
        self.counts, self.data = collections.Counter(), collections.Counter()
        self.began = self.ended = None

    def add(self, ev):
        self.counts[ev['kind']] += 1
        self.data[ev['kind']] += ev['length']
        if ev['kind'] == 'time':
            self.ended = int(ev['addr'], 16)
            self.began = self.began if self.began is not None else self.ended

    def seconds(self):
        return ((self.ended or 0) - (self.began or 0)) / 1e9


def phases_of(run):
    """From what the guest prints: its events one after the other."""
    phases = {name: Phase() for name in PHASES}
    at, line = 'boot', ''
    with subprocess.Popen([tool('tt'), 'log', run, '--json'], stdout=subprocess.PIPE,
                          text=True) as p:
        for text in p.stdout:
            ev = json.loads(text)
            is_initial = ev['position'] == 0 and ev['nested']
            if not is_initial:
                phases[at].add(ev)
            if ev['kind'] != 'pio-out' or int(ev['addr'], 16) != CONSOLE:
                continue
            line = (line + chr(int(ev['val'], 16) & 127))[-200:]
            found = re.search(r'TT-(GUEST-READY|DONE (\w+)).*\n$', line)
            if found:
                line = ''
                at = next_phase(found[2])
                if not at:
                    break
    return phases


def next_phase(done):
    names = list(WORKS)
    i = names.index(done) + 1 if done else 0
    return WORKS[names[i]] if i < len(names) else None


def encoded(run):
    """Bytes of an event of each kind, without data, on average."""
    stats = json.loads(subprocess.run([tool('tt'), 'stats', run, '--json'], check=True,
                                      capture_output=True, text=True).stdout)
    return {name: k['bytes'] / max(k['events'], 1) for name, k in stats['kinds'].items()}


def print_table(phases, size, args):
    rows = ('seconds', 'exits/s', 'windows/s', 'interrupts/s', 'landmarks/s')
    table = {name: {} for name in rows}
    kinds = collections.Counter()
    for name, p in phases.items():
        s = max(p.seconds(), 1e-9)
        n = sum(p.counts[k] for k in EXITS)
        table['seconds'][name] = p.seconds()
        table['exits/s'][name] = n / s
        table['windows/s'][name] = p.counts['window'] / s
        table['interrupts/s'][name] = p.counts['intr'] / s
        table['landmarks/s'][name] = p.counts['landmark'] / s
        for k, count in p.counts.items():
            b = (count * size.get(k, 0) + p.data[k]) / s
            kinds[k] += b
            table.setdefault(f'{k} B/s', {})[name] = b
        cost = ((n + p.counts['window']) * args.exit_us +
                p.counts['landmark'] * args.landmark_us) / 1e6
        table.setdefault('cost, %', {})[name] = 100 * cost / s
    print(f'{"":<18}' + ''.join(f'{name:>12}' for name in phases))
    shown = [*rows, *[f'{k} B/s' for k, _ in kinds.most_common(9)], 'cost, %']
    for row in shown:
        form = '.2f' if row in ('seconds', 'cost, %') else ',.0f'
        print(f'{row:<18}' + ''.join(f'{table[row].get(n, 0):>12{form}}' for n in phases))
    print(f'cost: (exits + windows) x {args.exit_us} us + landmarks x {args.landmark_us} us')


def cpu_seconds(function):
    """And what it returns."""
    a = resource.getrusage(resource.RUSAGE_CHILDREN)
    value = function()
    b = resource.getrusage(resource.RUSAGE_CHILDREN)
    return b.ru_utime + b.ru_stime - a.ru_utime - a.ru_stime, value


def plain(work, job):
    """The same works under TCG, unrecorded; its web server is outside."""
    with subprocess.Popen([sys.executable, '-m', 'http.server', str(PORT), '--bind',
                           '127.0.0.1', '--directory', work],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as web:
        os.rename(os.path.join(work, 'payload'), os.path.join(work, 'linux.payload'))
        args = [a.replace(f'file={work}/payload', f'file={work}/linux.payload')
                for a in job.args]
        with Vm(work, [*args, '-cpu', 'tt-v1'], name='plain', timeout=900) as vm:
            vm.wait(0)
        web.terminate()


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('--exit-us', type=float, default=1)
    p.add_argument('--landmark-us', type=float, default=20)
    p.add_argument('--branches', action='store_true')
    p.add_argument('--keep', metavar='DIR', help='leave all there')
    args = p.parse_args()
    with tempfile.TemporaryDirectory(prefix='tt-bench-') as work:
        work = args.keep or work
        os.makedirs(work, exist_ok=True)
        job = job_of(work)
        run = in_host(work, [job], timeout=1500,
                      level0=LEVEL0_PMU if args.branches else LEVEL0)['linux']
        print_table(phases_of(run.dir), encoded(run.dir), args)
        again, bare = None, cpu_seconds(lambda: plain(work, job))[0]
        for jobs in 1, 2:
            path = f'{run.dir}-{jobs}'
            shutil.copytree(run.dir, path)
            of = Run(path, run.serial, None)
            took, vm = cpu_seconds(lambda: check_exact(
                work, of, name=f'first{jobs}', options=f',at-end=exit,convert-jobs={jobs}',
                timeout=900))
            print(re.search(r'converted: .*', vm.stderr)[0])
            again = again or cpu_seconds(lambda: check_exact(work, of, name='again',
                                                             timeout=900))[0]
            print(f'CPU seconds by {jobs} at a time: conversion {took - again:.1f} (with the '
                  f'replay behind it {took:.1f}), replay {again:.1f}, plain TCG {bare:.1f}: '
                  f'the conversion takes {(took - again) / bare:.2f} times as long as plain '
                  'TCG', flush=True)


if __name__ == '__main__':
    main()
