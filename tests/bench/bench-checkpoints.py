#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the checkpoints of a recording cost: CPU time, pauses, disk.

Records the same work of the Linux guest (scripts/guest) with each interval in
turn, 0 (none) first, for as many rounds as asked. Prints for each interval the
median CPU seconds (user + system, of the whole process), the median of the
ratios to interval 0 within each round, so that a machine whose speed drifts does
not favour one side, and the ratio of the least seconds of all rounds; then how
long the VM stood, and what the store takes on disk against the zstd size of the
different pages in it, each compressed by itself and all in one stream.

  tests/bench/bench-checkpoints.py [-n ROUNDS] [--intervals S[,S...]]
                                   [--works W[,W...]] [--procs N] [-m MEGABYTES]

The pages are read from RUN/pages by a reader of its own, which follows
docs/reference/page-store-format.rst, and compressed with the system's libzstd.
"""
import argparse
import ctypes
import ctypes.util
import hashlib
import json
import os
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = 4096
LEVEL = 1                       # what the store uses


# ---- the store on disk ----

ZSTD = ctypes.CDLL(ctypes.util.find_library('zstd'))
for name in ('ZSTD_compress', 'ZSTD_decompress', 'ZSTD_compressBound'):
    getattr(ZSTD, name).restype = ctypes.c_size_t


def packed_size(data):
    bound = ZSTD.ZSTD_compressBound(ctypes.c_size_t(len(data)))
    out = ctypes.create_string_buffer(bound)
    return ZSTD.ZSTD_compress(out, ctypes.c_size_t(bound), data,
                              ctypes.c_size_t(len(data)), LEVEL)


def unpacked(frame):
    out = ctypes.create_string_buffer(PAGE)
    if ZSTD.ZSTD_decompress(out, ctypes.c_size_t(PAGE), frame,
                            ctypes.c_size_t(len(frame))) != PAGE:
        sys.exit('a page of the store cannot be decompressed')
    return out.raw


def pages_of(path):
    """The contents of all versions that were not given back."""
    with open(path, 'rb') as f:
        data = f.read()
    at, = struct.unpack_from('<I', data, 8)
    while at + 64 <= len(data) and data[at:at + 8] == b'TTVMGRP\n':
        length, flags, _, _, count, stored = struct.unpack_from(
            '<IIQQII', data, at + 8)
        entry = 26 if flags & 1 else 18
        table = data[at + length:at + length + count * entry]
        at += length + len(table)
        body, at = at, at + stored
        if not any(table):
            continue
        for i in range(count):
            size, = struct.unpack_from('<H', table, (i + 1) * entry - 2)
            if size:                # else it is inherited
                yield data[body:body + size] if size == PAGE else \
                    unpacked(data[body:body + size])
            body += size


def store_sizes(run):
    """Bytes on disk; of the different pages, by themselves and in one stream."""
    held = sum(os.stat(os.path.join(run, name)).st_blocks * 512
               for name in ('pages', 'checkpoints'))
    seen, alone, versions = {}, 0, 0
    for page in pages_of(os.path.join(run, 'pages')):
        versions += 1
        key = hashlib.sha256(page).digest()
        if key not in seen:
            seen[key] = page
            alone += min(packed_size(page), PAGE)
    return held, versions, len(seen), alone, packed_size(b''.join(seen.values()))


# ---- recording ----

class Monitor:
    def __init__(self, path, proc):
        self.sock = socket.socket(socket.AF_UNIX)
        while True:
            try:
                self.sock.connect(path)
                break
            except OSError:
                if proc.poll() is not None:
                    sys.exit('the recorder ended: '
                             f'{proc.stderr.read().decode()}')
                time.sleep(0.05)
        self.file = self.sock.makefile('rw')
        self.file.readline()
        self('qmp_capabilities')

    def __call__(self, command):
        self.file.write(json.dumps({'execute': command}) + '\n')
        self.file.flush()
        while True:
            answer = json.loads(self.file.readline())
            if 'event' not in answer:
                return answer['return']


class Bench:
    def __init__(self, args, tmp):
        self.args, self.tmp = args, tmp
        self.disk = os.path.join(tmp, 'disk.img')
        self.run = os.path.join(tmp, 'run')

    def argv(self, interval):
        works = f't={self.args.works} n={self.args.procs}'
        return [self.args.qemu, '-M', 'pc', '-accel', 'tcg', '-m',
                str(self.args.memory), '-nodefaults', '-display', 'none',
                '-no-reboot', '-no-shutdown', '-kernel',
                f'{TOP}/build/guest/vmlinuz', '-initrd',
                f'{TOP}/build/guest/initrd.img', '-append',
                f'console=ttyS0 panic=-1 {works}', '-serial', 'null',
                '-drive', f'file={self.disk},if=virtio,format=raw', '-qmp',
                f'unix:{self.tmp}/qmp,server=on,wait=off', '-tt',
                f'record,dir={self.run},checkpoint-interval={interval}']

    def record(self, interval):
        """CPU seconds, and what query-tt says at the end."""
        shutil.rmtree(self.run, ignore_errors=True)
        with open(self.disk, 'wb') as f:
            f.truncate(256 << 20)
        proc = subprocess.Popen(self.argv(interval), stderr=subprocess.PIPE,
                                stdin=subprocess.DEVNULL)
        qmp = Monitor(f'{self.tmp}/qmp', proc)
        over = {}
        while qmp('query-status')['status'] == 'running':
            store = qmp('query-tt')['store']
            spent = store['last-pause-ns'], store['last-pause-pages']
            over[spent] = spent[0] / 1e6 - 5 - spent[1] / 1e3
            time.sleep(1)
        info = qmp('query-tt')
        qmp.sock.sendall(b'{"execute": "quit"}\n')
        err = proc.stderr.read()
        _, status, usage = os.wait4(proc.pid, 0)
        proc.returncode = os.waitstatus_to_exitcode(status)
        if proc.returncode or b'tt: recorded' not in err:
            sys.exit(f'the recorder ended with {proc.returncode}: '
                     f'{err.decode(errors="replace")[-400:]}')
        store = info['store']
        spent = store['longest-pause-ns'], store['longest-pause-pages']
        over[spent] = spent[0] / 1e6 - 5 - spent[1] / 1e3
        worst = max(over, key=over.get)
        return {'cpu': usage.ru_utime + usage.ru_stime,
                'taken': store['taken'], 'worst': worst,
                'over': over[worst], 'longest': spent,
                'sizes': store_sizes(self.run) if interval else None}

    def rounds(self):
        intervals = self.args.intervals
        return [{i: self.record(i) for i in intervals}
                for _ in range(self.args.rounds)]


def cost_line(rounds, i):
    seconds = [r[i]['cpu'] for r in rounds]
    ratios = sorted(r[i]['cpu'] / r[0]['cpu'] for r in rounds)
    least = min(seconds) / min(r[0]['cpu'] for r in rounds)
    return (f'{i:8g} {statistics.median(seconds):9.2f}   '
            f'{statistics.median(ratios):6.3f} ({ratios[0]:.3f}-'
            f'{ratios[-1]:.3f}) {least:6.3f}')


def show_pauses(rounds, i):
    taken = sum(r[i]['taken'] for r in rounds)
    ns, pages = max(r[i]['longest'] for r in rounds)
    worst = max(rounds, key=lambda r: r[i]['over'])[i]
    print(f'{i:8g} {taken:6} {ns / 1e6:9.2f} ms {pages:8}   '
          f"{worst['worst'][0] / 1e6:9.2f} ms {worst['worst'][1]:8} "
          f"{'over' if worst['over'] > 0 else 'within'} "
          f"5 ms + 1 us a page by {abs(worst['over']):.2f} ms")


def show_sizes(rounds, i):
    held, versions, pages, alone, stream = max(r[i]['sizes'] for r in rounds)
    print(f'{i:8g} {held:12} {versions:9} {pages:9} {alone:12} {stream:12}  '
          f'{held / alone:5.3f} {held / stream:5.3f}')


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('-n', '--rounds', type=int, default=3)
    p.add_argument('-m', '--memory', type=int, default=512)
    p.add_argument('--qemu', default=f'{TOP}/build/qemu-system-x86_64')
    p.add_argument('--intervals', default='0,25,10,2',
                   type=lambda s: [float(i) for i in s.split(',')])
    p.add_argument('--works', default='procs,sha,vda,procs')
    p.add_argument('--procs', type=int, default=2000)
    args = p.parse_args()
    if args.intervals[0] != 0:
        sys.exit('the first interval must be 0: the others are compared to it')
    with tempfile.TemporaryDirectory(prefix='tt-bench-') as tmp:
        rounds = Bench(args, tmp).rounds()
    print(f'{args.rounds} rounds of {args.works}, n={args.procs}, '
          f'{args.memory} MiB')
    print('interval   CPU s      ratio to none (least-most), of least')
    for i in args.intervals:
        print(cost_line(rounds, i))
    print('\ninterval  taken   longest pause   pages   worst pause for its pages')
    for i in args.intervals[1:]:
        show_pauses(rounds, i)
    print('\ninterval  store bytes  versions     pages    each alone   '
          'one stream  ratios')
    for i in args.intervals[1:]:
        show_sizes(rounds, i)


if __name__ == '__main__':
    main()
