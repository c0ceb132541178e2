#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Throughput of a disk with versions, against the same image as qcow2.

  tests/bench/bench-disk.py [-n ROUNDS] [--seconds S] [--interval S] [--jobs J[,J...]]
  tests/bench/bench-disk.py --curve [-n ROUNDS] [--versions N]
  tests/bench/bench-disk.py --guest-curve [-n ROUNDS] [--versions N] [--seconds S]
  tests/bench/bench-disk.py --clusters [-n ROUNDS]
  tests/bench/bench-disk.py --cold [-n ROUNDS]

The first form: fio and dd in the Linux guest (fio of this Debian), under the recorder,
on one qcow2 image, with a checkpoint each 10 s: written directly (disk=image), and with a
disk with versions on top of it, each checkpoint a full one that pins a version
(disk=private,full=on). Prints KiB/s of each job and the median of the ratios; and what
a busy machine does not hide as much: milliseconds of CPU time of the whole process for
each MiB, and MiB written to files for each. The rate is the guest's: it knows what it
wrote until the time was over. Before each recording the page cache is filled with a file
of the size of memory, as on a machine that has been up for some time: a disk with versions
writes to new places, whose pages the kernel then takes from old files. In a VM whose host
takes free memory back (or whose kernel is told to free it: DAMON), memory that was free
costs a fault of the host's for each page, ten times as much as the copy.

--curve: QEMU's own `qemu-img bench` on one disk of 1 GiB, random writes and reads of
4 KiB, after 0, 1, 10, 100... versions, of each of which a random 4 MiB was written, and
the same of a qcow2 image without any. Prints MiB/s, the median of the rounds.

--guest-curve: fio in the Linux guest, under -tt record,disk=private, after 0, 1, 10, 100...
full checkpoints, all kept; before each one the guest writes 64 KiB somewhere. Prints KiB/s
of each job, the median of the rounds, and that divided by what it was without checkpoints;
how long a checkpoint took from the command to its answer, and what RUN/disks takes.

--clusters: the same disk with clusters of several sizes, directly after a version was
made: random writes of 4 KiB, each of which has to copy a cluster, random reads, then
sequential writes of 64 KiB after another version. --cold: reads of what is not in the
page cache, with 8 requests at a time: tt divided by qcow2, of pairs.
"""
import argparse
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f'{TOP}/tests/functional')
from guests import own_args                                 # noqa: E402
from many_branches import used                              # noqa: E402
from programs import MOUNT, program_disk                    # noqa: E402
from test_branch import Console, console                    # noqa: E402
from ttlib import recorder                                  # noqa: E402

FIO = '--ioengine={} --iodepth={} --rw={} --bs={}'
JOBS = {
    'write-seq': FIO.format('psync', 1, 'write', '128k'),
    'write-random': FIO.format('psync', 1, 'randwrite', '4k'),
    'write-random-async': FIO.format('libaio', 16, 'randwrite', '4k'),
    'write-seq-async': FIO.format('libaio', 16, 'write', '128k'),
    'write-random-sync': FIO.format('psync', 1, 'randwrite', '4k') + ' --fsync=8',
    'write-seq-sync': FIO.format('psync', 1, 'write', '64k') + ' --fsync=8',
    'read-seq': FIO.format('psync', 1, 'read', '128k'),
    'read-seq-async': FIO.format('libaio', 16, 'read', '128k'),
    'read-random': FIO.format('psync', 1, 'randread', '4k'),
    'read-random-async': FIO.format('libaio', 16, 'randread', '4k'),
    'dd': '',
}
STOPS = [0, 1, 10, 100, 300, 1000]      # versions
MODES = {'qcow2': 'disk=image', 'tt': 'disk=private,full=on',
         'tt-unpinned': 'disk=private'}


def fio(job, seconds, size='400M'):
    """A line of shell that says how fast the job was."""
    return (f'echo "TT-RATE {job} $(t fio --name=j --filename=/dev/vda --direct=1 '
            f'--size={size} --time_based --runtime={seconds} --randseed=7 --minimal '
            f'{JOBS[job]} | cut -d ";" -f {7 if "read" in job else 48})"')


def script(jobs, seconds):
    lines = ['#!/bin/busybox sh', MOUNT]
    for job in jobs:
        if job == 'dd':
            lines.append('a=$(cut -d " " -f 1 /proc/uptime | tr -d .); dd if=/dev/zero '
                         'of=/dev/vda bs=1M count=192 conv=fsync 2> /dev/null; '
                         'b=$(cut -d " " -f 1 /proc/uptime | tr -d .); '
                         'echo "TT-RATE dd $((192 * 1024 * 100 / (b - a)))"')
            continue
        lines.append(fio(job, seconds))
    return '\n'.join([*lines, 'echo "TT-DONE own"', '']).encode()


def costs(pid):
    """CPU seconds, and bytes written to files, of the process so far."""
    with open(f'/proc/{pid}/stat', encoding='ascii') as f:
        ticks = f.read().rsplit(')', 1)[1].split()[11:13]
    with open(f'/proc/{pid}/io', encoding='ascii') as f:
        written = re.search(r'wchar: (\d+)', f.read())[1]
    return sum(map(int, ticks)) / os.sysconf('SC_CLK_TCK'), int(written)


def watch(qemu, serial, timeout):
    """[(words of a line TT-RATE, costs since the line before)]."""
    found, last, end = [], (0, 0), time.monotonic() + timeout
    now = last
    while qemu.poll() is None:
        try:
            now = costs(qemu.pid)
        except (OSError, IndexError):
            pass
        lines = []
        if os.path.exists(serial):
            with open(serial, encoding='utf-8', errors='replace') as f:
                lines = [line.split() for line in f if line.startswith('TT-') and
                         line.endswith('\n')]
        for words in lines[len(found):]:
            found.append((words, (now[0] - last[0], now[1] - last[1])))
            last = now
        if time.monotonic() > end:
            qemu.kill()
        time.sleep(0.05)
    if qemu.returncode:
        sys.exit(f'QEMU ended with {qemu.returncode}')
    return [f for f in found if f[0][0] == 'TT-RATE' and len(f[0]) == 3]


def guest_image(work):
    """512 MiB, of which 400 were written."""
    image = f'{work}/image.qcow2'
    subprocess.run([f'{TOP}/build/qemu-img', 'create', '-q', '-f', 'qcow2', image, '512M'],
                   check=True)
    subprocess.run([f'{TOP}/build/qemu-img', 'bench', '-q', '-f', 'qcow2', '-w', '-c', '400',
                    '-s', '1M', image], check=True, stdout=subprocess.DEVNULL)
    return image


def one(work, mode, args, tools):
    """What the jobs did: {job: (KiB/s, CPU ms a MiB, MiB written to files a MiB)}."""
    image = guest_image(work)
    jobs = args.jobs.split(',')
    own = own_args(work, {'own/run': script(jobs, args.seconds)}, memory='384')
    command = [args.qemu, *own, '-serial', f'file:{work}/serial',
               '-drive', f'file={image},format=qcow2,if=virtio,cache=writeback',
               '-drive', f'file={tools},format=raw,if=virtio,readonly=on',
               '-tt', f'record,dir={work}/run,checkpoint-interval={args.interval},'
               f'{MODES[mode]}']
    with subprocess.Popen(command, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL) as qemu:
        found = watch(qemu, f'{work}/serial', 60 + 10 * len(jobs) * (args.seconds + 10))
    result = {}
    for (_, job, rate), (cpu, written) in found:
        mib = 192 if job == 'dd' else max(int(rate) * args.seconds / 1024, 1)
        result[job] = int(rate), cpu * 1000 / mib, written / (1 << 20) / mib
    return result


def free_bytes(path):
    with open('/proc/meminfo', encoding='ascii') as f:
        memory = int(re.search(r'MemFree: +(\d+)', f.read())[1]) << 10
    stat = os.statvfs(path)
    return min(memory, stat.f_bavail * stat.f_frsize // 2)


def fill_page_cache(path):
    """Until there is little free memory: see above."""
    with open(path, 'ab+') as f:
        f.seek(0)
        while free_bytes(path) > 320 << 20 and f.read(64 << 20):
            pass
        while free_bytes(path) > 320 << 20:
            f.write(bytes(64 << 20))
        os.fsync(f.fileno())


def in_guest(args, work):
    tools = program_disk(f'{work}/tools.img', 'fio')
    ratios, rates = {}, {}
    for number in range(args.rounds):
        found = {}
        for mode in ('qcow2', args.mode)[::-1 if number % 2 else 1]:
            if not args.no_fill:
                fill_page_cache(f'{work}/full')
            with tempfile.TemporaryDirectory(dir=work) as place:
                found[mode] = one(place, mode, args, tools)
        for job in args.jobs.split(','):
            a, b = found['qcow2'].get(job), found[args.mode].get(job)
            if a and b:
                ratios.setdefault(job, []).append(b[0] / a[0])
                rates.setdefault(job, []).append((a, b))
                print(f'round {number + 1} {job:20} qcow2 {a[0]:8} tt {b[0]:8} KiB/s '
                      f'{b[0] / a[0]:.3f}; CPU {a[1]:6.2f} {b[1]:6.2f} ms/MiB; written '
                      f'{a[2]:.2f} {b[2]:.2f}', flush=True)
    for job, r in ratios.items():
        cpu = least(rates[job], 0) / least(rates[job], 1)
        print(f'{job:20} ratio {statistics.median(r):.3f} ({min(r):.3f} to {max(r):.3f}), '
              f'by CPU time {cpu:.3f}')


def least(rounds, which):
    """CPU ms a MiB in the round with the least of them: others were disturbed more."""
    return min(r[which][1] for r in rounds)


# ---- as the number of full checkpoints grows ----

CURVE_JOBS = 'write-random,write-random-sync,write-seq,read-random'


def curve_script(jobs, seconds):
    """Does what the host types: all jobs, or a write somewhere."""
    lines = ['#!/bin/busybox sh', MOUNT, 'echo TT-READY', 'while read -r what where; do',
             'if [ "$what" = jobs ]; then', *(fio(job, seconds, '256M') for job in jobs),
             'else dd if=/dev/urandom of=/dev/vda bs=64k count=1 seek=$where conv=notrunc '
             'oflag=direct 2> /dev/null; fi; echo TT-READY; done', '']
    return '\n'.join(lines).encode()


def add_points(vm, con, count, rng):
    """So many full checkpoints, a write before each; seconds of the median one."""
    seconds = []
    for _ in range(count):
        con.type(f'write {rng.randrange(4096)}')
        con.wait('TT-READY')
        began = time.monotonic()
        vm.qmp.cmd('tt-checkpoint-add', timeout=60, full=True)
        seconds.append(time.monotonic() - began)
    return statistics.median(seconds) if seconds else 0


def stage(con, args, made, first):
    """The jobs' rates now. @first: what they were at first, filled in if empty."""
    rates = {}
    for _ in range(args.rounds):
        con.type('jobs')
        said = con.wait('TT-READY', 60 + len(args.jobs.split(',')) * (args.seconds + 20))
        for job, rate in re.findall(rb'TT-RATE (\S+) (\d+)', said):
            rates.setdefault(job.decode(), []).append(int(rate))
    for job, found in rates.items():
        median = statistics.median(found)
        base = first.setdefault(job, median)
        print(f'{made:5} full checkpoints: {job:18} {median:8.0f} KiB/s ({min(found)} to '
              f'{max(found)}), {median / max(base, 1):.3f} of the first', flush=True)


def guest_curve(args, work):
    tools = program_disk(f'{work}/tools.img', 'fio')
    image, rng, first = guest_image(work), random.Random(1), {}
    if not args.no_fill:
        fill_page_cache(f'{work}/full')
    own = own_args(work, {'own/run': curve_script(args.jobs.split(','), args.seconds)},
                   memory='384')
    vm = recorder(work, [*own, '-drive', f'file={image},format=qcow2,if=virtio,'
                         'cache=writeback', '-drive',
                         f'file={tools},format=raw,if=virtio,readonly=on'],
                  options=',disk=private,checkpoint-interval=3600', qmp=1, serial=False,
                  timeout=3600)
    path = console(vm)
    with vm:
        con, made = Console(path), 0
        con.wait('TT-READY')
        for stop in [s for s in STOPS if s <= args.versions]:
            took = add_points(vm, con, stop - made, rng)
            made = stop
            if made:
                print(f'{made:5} full checkpoints: the median of the last took '
                      f'{took * 1000:.1f} ms')
            stage(con, args, made, first)
            print(f'{made:5} full checkpoints: RUN/disks takes '
                  f'{used(vm.run + "/disks") >> 20} MiB')
        vm.qmp.send('quit')
        vm.wait(0)


# ---- without a guest ----

def bench(image, fmt, how, count):
    """MiB/s of 4 KiB requests that jump about in 1 GiB."""
    began = time.monotonic()
    subprocess.run([f'{TOP}/build/qemu-img', 'bench', '-q', '-f', fmt, *how, '-t',
                    'writeback', '-c', str(count), '-d', '8', '-s', '4096', '-S',
                    str(4096 * 25013), image], check=True, stdout=subprocess.DEVNULL)
    return count * 4096 / (time.monotonic() - began) / (1 << 20)


def rates_of(image, fmt, args):
    for how in (['-w', '--flush-interval', '1024'], []):
        yield statistics.median(bench(image, fmt, how, 20000) for _ in range(args.rounds))


def make_version(image, name, rng):
    subprocess.run([f'{TOP}/build/qemu-img', 'bench', '-q', '-f', 'tt', '-w', '-c', '64', '-s',
                    '65536', '-o', str(rng.randrange(1008) << 20), image], check=True,
                   stdout=subprocess.DEVNULL)
    subprocess.run([f'{TOP}/build/qemu-img', 'snapshot', '-c', name, image], check=True)


def curve(args, work):
    rng = random.Random(1)
    for fmt in ('qcow2', 'tt'):
        image = f'{work}/disk.{fmt}'
        subprocess.run([f'{TOP}/build/qemu-img', 'create', '-q', '-f', fmt, image, '1G'],
                       check=True)
        subprocess.run([f'{TOP}/build/qemu-img', 'bench', '-q', '-f', fmt, '-w', '-c', '1024',
                        '-s', '1M', image], check=True, stdout=subprocess.DEVNULL)
        made, stops = 0, STOPS if fmt == 'tt' else [0]
        for stop in [s for s in stops if s <= args.versions]:
            while made < stop:
                made += 1
                make_version(image, f'v{made}', rng)
            write, read = rates_of(image, fmt, args)
            print(f'{fmt:5} {made:5} versions: write {write:6.0f} MiB/s, read {read:6.0f} '
                  'MiB/s', flush=True)


def filled(work, fmt, *options):
    image = f'{work}/disk{"".join(options)}.{fmt}'
    subprocess.run([f'{TOP}/build/qemu-img', 'create', '-q', '-f', fmt, *options, image,
                    '1G'], check=True)
    subprocess.run([f'{TOP}/build/qemu-img', 'bench', '-q', '-f', fmt, '-w', '-c', '1024',
                    '-s', '1M', image], check=True, stdout=subprocess.DEVNULL)
    return image


def timed(image, fmt, *how):
    began = time.monotonic()
    subprocess.run([f'{TOP}/build/qemu-img', 'bench', '-q', '-f', fmt, '-t', 'writeback',
                    *how, image], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


RANDOM_4K = ['-s', '4096', '-S', str(4096 * 25013), '-d', '8']
CLUSTERS = ('4k', '16k', '32k', '64k', '256k', '2M')


def clusters(args, work):
    images = {c: filled(work, 'tt', '-o', f'cluster_size={c}') for c in CLUSTERS}
    found = {}
    for number in range(args.rounds):
        for size in CLUSTERS[::-1 if number % 2 else 1]:
            image = images[size]
            snapshot = [f'{TOP}/build/qemu-img', 'snapshot', image]
            subprocess.run([*snapshot, '-c', 'a'], check=True)
            row = [4000 / 256 / timed(image, 'tt', '-w', '--flush-interval', '1000', '-c',
                                      '4000', *RANDOM_4K),
                   20000 / 256 / timed(image, 'tt', '-c', '20000', *RANDOM_4K)]
            subprocess.run([*snapshot, '-c', 'b'], check=True)
            row.append(256 / timed(image, 'tt', '-w', '--flush-interval', '1000', '-c',
                                   '4096', '-s', '65536', '-d', '8'))
            for name in 'ab':
                subprocess.run([*snapshot, '-d', name], check=True)
            found.setdefault(size, []).append(row)
    for size, rows in found.items():
        write, read, sequential = (
            f'{statistics.median(c):.0f} ({min(c):.0f} to {max(c):.0f})' for c in zip(*rows))
        print(f'clusters of {size:5} random write {write}, read {read}, sequential write '
              f'{sequential} MiB/s')


def forget(path):
    """Out of the page cache with it."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def cold(args, work):
    images = {fmt: filled(work, fmt) for fmt in ('qcow2', 'tt')}
    for name, how in (('random 4 KiB', ['-c', '8000', *RANDOM_4K]),
                      ('sequential 64 KiB', ['-c', '8192', '-s', '65536', '-d', '8'])):
        ratios = []
        for number in range(args.rounds):
            seconds = {}
            for fmt in ('qcow2', 'tt')[::-1 if number % 2 else 1]:
                forget(images[fmt])
                seconds[fmt] = timed(images[fmt], fmt, *how)
            ratios.append(seconds['qcow2'] / seconds['tt'])
        print(f'cold, {name}: {statistics.median(ratios):.2f} ({min(ratios):.2f} to '
              f'{max(ratios):.2f})')


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('-n', '--rounds', type=int, default=3)
    p.add_argument('--seconds', type=int, help='of each job (12, or 4 for --guest-curve)')
    p.add_argument('--interval', type=int, default=10)
    p.add_argument('--jobs')
    p.add_argument('--mode', default='tt', choices=list(MODES)[1:],
                   help='tt-unpinned: checkpoints pin nothing')
    p.add_argument('--no-fill', action='store_true', help='leave the page cache as it is')
    p.add_argument('--curve', action='store_true')
    p.add_argument('--guest-curve', action='store_true')
    p.add_argument('--clusters', action='store_true')
    p.add_argument('--cold', action='store_true')
    p.add_argument('--versions', type=int, default=1000)
    p.add_argument('--qemu', default=f'{TOP}/build/qemu-system-x86_64')
    args = p.parse_args()
    args.seconds = args.seconds or (4 if args.guest_curve else 12)
    args.jobs = args.jobs or (CURVE_JOBS if args.guest_curve else ','.join(JOBS))
    with tempfile.TemporaryDirectory(prefix='tt-bench-disk-') as work:
        (curve if args.curve else guest_curve if args.guest_curve else
         clusters if args.clusters else cold if args.cold else in_guest)(args, work)


if __name__ == '__main__':
    main()
