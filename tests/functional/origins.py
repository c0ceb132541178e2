# SPDX-License-Identifier: GPL-2.0-or-later
"""Answers of `tt origin`, compared with a plugin that wrote down all writes of a run."""

import array
import bisect
import collections
import json
import os
import struct
import subprocess

from ttlib import BUILD, REPO, SLOW, check, equal, qemu_binary, tt

GENERAL = ('rax', 'rcx', 'rdx', 'rbx', 'rsp', 'rbp', 'rsi', 'rdi',
           'r8', 'r9', 'r10', 'r11', 'r12', 'r13', 'r14', 'r15')
SHORT = ('ax', 'cx', 'dx', 'bx', 'sp', 'bp', 'si', 'di')
TYPES = {1: 'u8', 2: 'u16', 4: 'u32', 8: 'u64'}
# Events that take a position of their own.
BETWEEN = ('intr', 'unhalt', 'ram', 'map', 'cpu-flag', 'cpu-state', 'block', 'cpu-switch',
           'ram-fill', 'disk')
# A block of TCG's serves all addresses at which its page is mapped; the plugin has the
# one for which it was translated.
PAGE_BITS = 4095
# By no instruction: the plugin does not hear of them.
OUTSIDE = ('exception', 'interrupt', 'event', 'device', 'disk', 'cpu')


def build_recorder(work):
    path = os.path.join(work, 'all_writes.so')
    flags = subprocess.run(['pkg-config', '--cflags', 'glib-2.0'], check=True, text=True,
                           capture_output=True).stdout.split()
    subprocess.run(['cc', '-shared', '-fPIC', f'-I{BUILD}/qemu/include/qemu', *flags,
                    '-o', path, os.path.join(REPO, 'tests/functional/all_writes.c')],
                   check=True, timeout=30 * SLOW)
    return path


class Registers:
    """Of one vCPU, before each of its instructions."""

    def __init__(self):
        self.insn = array.array('Q')            # which of all instructions it is
        self.values = [array.array('Q') for _ in GENERAL]
        self.changes = []

    def add(self, insn, values):
        self.insn.append(insn)
        for all_of, value in zip(self.values, values):
            all_of.append(value)

    def end(self):
        self.changes = [[i for i in range(len(values) - 1) if values[i] != values[i + 1]]
                        for values in self.values]

    def last_change(self, reg, first, size, n):
        """The last instruction before @n, one of this vCPU's, that changed it, or -1; its
        value there."""
        at = bisect.bisect_left(self.insn, n)
        mask, values, changes = (1 << 8 * size) - 1 << 8 * first, self.values[reg], \
            self.changes[reg]
        i = bisect.bisect_left(changes, at) - 1
        while i >= 0 and not (values[changes[i]] ^ values[changes[i] + 1]) & mask:
            i -= 1
        return self.insn[changes[i]] if i >= 0 else -1, (values[at] & mask) >> 8 * first


class Truth:
    """What each instruction of a part of a run had in registers, and where it wrote."""

    def __init__(self, work, run, begin):
        self.begin, self.pc, self.cpu = begin, array.array('Q'), bytearray()
        self.regs = collections.defaultdict(Registers)
        self.stores = collections.defaultdict(list)     # byte -> instructions
        self.crossing = set()
        out = os.path.join(work, 'all-writes')
        tt('run-plugin', run, f'{build_recorder(work)},out={out}', '--qemu',
           qemu_binary(), '--out', os.path.join(work, 'said'), '--quiet', '--from',
           str(begin))
        os.unlink(os.path.join(work, 'said'))
        with open(out, 'rb') as f:
            self.read(f.read())
        os.unlink(out)
        self.positions = self.place(run)
        for regs in self.regs.values():
            regs.end()

    def read(self, data):
        """Pages that were seen at another address than their own are left out."""
        at, moved = 0, set()
        while at < len(data):
            if data[at]:
                addr, size, virtual = struct.unpack_from('<QQQ', data, at + 8)
                if addr != virtual:
                    moved.update((addr >> 12, virtual >> 12))
                    if (addr & 4095) + size > 4096:     # nobody knows the second page
                        self.crossing.add(len(self.pc) - 1)
                        size = 4096 - (addr & 4095)
                for byte in range(addr, addr + size):
                    self.stores[byte].append(len(self.pc) - 1)
                at += 32
            else:
                entry = struct.unpack_from('<17Q', data, at + 8)
                self.regs[data[at + 4]].add(len(self.pc), entry[1:])
                self.cpu.append(data[at + 4])
                self.pc.append(entry[0])
                at += 144
        self.bytes = [byte for byte in sorted(self.stores) if byte >> 12 not in moved]

    def place(self, run):
        """Positions of the instructions: all that no event has."""
        events = set()
        for line in tt('log', run, '--json').stdout.splitlines():
            ev = json.loads(line)
            if ev['kind'] in BETWEEN and not ev['nested']:
                events.add(ev['position'])
        end = json.loads(tt('info', run, '--json').stdout)['end']
        free = [pos for pos in range(self.begin, end) if pos not in events]
        equal(len(free), len(self.pc), 'instructions')
        return free

    def last_store(self, addr, size, pos):
        """The last instruction before @pos that wrote one of these bytes, or -1."""
        n, last = bisect.bisect_left(self.positions, pos), -1
        for byte in range(addr, addr + size):
            all_of = self.stores.get(byte, ())
            i = bisect.bisect_left(all_of, n)
            last = max(last, all_of[i - 1] if i else -1)
        return last

    def last_change(self, reg, first, size, pos):
        """Of the vCPU whose turn it is at @pos: the last instruction before that changed
        it, or -1; its value there."""
        n = min(bisect.bisect_left(self.positions, pos), len(self.pc) - 1)
        return self.regs[self.cpu[n]].last_change(reg, first, size, n)


def replay(run, questions, how):
    """What is said of the questions, up to one that cannot be asked."""
    text = ';'.join(f'{pos} {place}' for pos, place in questions)
    done = subprocess.run(
        [qemu_binary(), '-tt', f'replay,dir={run},origin={text},origin-how={how}',
         '-nodefaults', '-display', 'none', '-serial', 'none', '-monitor', 'none'],
        capture_output=True, text=True, timeout=1500)
    is_unmapped = done.returncode == 1 and 'cannot be read there' in done.stdout
    equal(done.returncode, int(is_unmapped), f'origin: {done.stdout} {done.stderr}')
    answers, asked = {}, 0
    for line in done.stdout.splitlines():
        words = line.split(' text=')[0].split(' ')
        if words[:2] == ['tt-origin', 'asked']:
            asked += 1
        elif words[:2] == ['tt-origin', 'node']:
            answers.setdefault(asked - 1, dict(w.split('=', 1) for w in words[2:]))
    return [answers.get(i) for i in range(asked)] + ['unmapped'] * is_unmapped


def ask(run, questions, within, how='nodes=1:depth=0'):
    """The first node of each answer; 'unmapped' if the place is not there then."""
    answers = []
    while len(answers) < len(questions):
        answers += replay(run, questions[len(answers):], f'{how}:within={within}')
    return answers


def some_questions(rng, truth, count, wide=False):
    """Registers and memory that was written, at random positions."""
    bytes_of, questions = truth.bytes, []
    for _ in range(count):
        pos = truth.positions[rng.randrange(1, len(truth.positions))]
        if rng.random() < 0.5 or not bytes_of:
            reg, size = rng.randrange(16 if wide else 8), rng.choice((8, 4) if wide else
                                                                     (4, 4, 2))
            if size == 2 and SHORT[reg] == 'sp':
                size = 4                # $sp is all of it, as gdb's
            name = GENERAL[reg] if size == 8 else SHORT[reg] if size == 2 else \
                f'{GENERAL[reg]}d' if reg > 7 else f'e{SHORT[reg]}'
            questions.append((pos, f'${name}', ('reg', reg, 0, size)))
        else:
            size, addr = rng.choice((1, 2, 4, 8)), rng.choice(bytes_of)
            addr &= ~(size - 1)
            questions.append((pos, f'*({TYPES[size]} *)0x{addr:x}', ('mem', addr, size)))
    return sorted(questions)


def judge(truth, question, answer):
    """None, or what is wrong with the answer; and a word for the count."""
    pos, _, what = question
    if not answer or answer == 'unmapped':
        return None if answer else 'no answer', answer
    at, how = int(answer['position']), answer['how']
    n = bisect.bisect_left(truth.positions, at)
    is_old = at < truth.begin or how in ('initial', 'far')
    if how not in OUTSIDE and not is_old and (
            at >= pos or truth.positions[n] != at or
            (truth.pc[n] ^ int(answer['pc'], 16)) & PAGE_BITS or
            truth.cpu[n] != int(answer['cpu'])):
        return 'there is no such instruction', None
    if what[0] == 'reg' and not is_old and \
            int(answer['of']) != truth.cpu[bisect.bisect_left(truth.positions, pos)]:
        return 'that is the register of another vCPU', None
    if what[0] == 'mem':
        last = truth.last_store(*what[1:], pos)
    else:
        last, value = truth.last_change(*what[1:], pos)
        if int(answer['value'], 16) != value:
            return f'the value is {value:#x}', None
    last_at = truth.positions[last] if last >= 0 else -1
    if is_old:
        return (None, 'before') if last < 0 else (f'it is {last_at}', None)
    if how in OUTSIDE:
        return (None, how) if at >= last_at else (f'it is {last_at}', None)
    if what[0] == 'mem' and n in truth.crossing and n > last:
        return None, 'crossing'
    if n == last:
        return None, 'store' if what[0] == 'mem' else 'change'
    return (f'it is {last_at}', None) if what[0] == 'mem' or at < last_at else \
        (None, 'the same again')


def compare(rng, work, run, count, part=200000, batch=100, wide=False):
    """Asks @count questions about the last @part positions; returns how many of which
    kind. All must be right."""
    end = json.loads(tt('info', run, '--json').stdout)['end']
    truth = Truth(work, run, max(end - part, 1))
    kinds, wrong = collections.Counter(), []
    for begin in range(0, count, batch):
        asked = some_questions(rng, truth, min(batch, count - begin), wide)
        for q, a in zip(asked, ask(run, [(pos, text) for pos, text, _ in asked], part)):
            bad, kind = judge(truth, q, a)
            kinds[kind] += 1
            if bad:
                wrong.append(f'{q[0]} {q[1]}: {bad}; answered {a}')
    for text in wrong[:20]:
        print(text)
    check(not wrong, f'{len(wrong)} of {count} answers are wrong')
    return kinds
