#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints the log of a run: a second reader, written from
docs/reference/log-format.rst alone, so that it can find the first one wrong.

    tt-log-dump.py RUN-or-LOG

Needs the zstd and xxHash shared libraries, through ctypes. The output is for
machines; `tt log` prints for people. Exit status 1 and one sentence on stderr
that starts with "format:", "version:" or "limit:" when the log is refused.
"""
import ctypes
import ctypes.util
import os
import re
import struct
import sys

HEAD_MAGIC = b'TTVMLOG\n'
SEG_MAGIC = b'TTVMSEG\n'
EVENTS_MAX = 524288
PAYLOAD_MAX = 4194304
DATA_MAX = 65536
INLINE_MAX = 16
SEGMENT_MAX = 4096 + EVENTS_MAX + PAYLOAD_MAX
POS_MAX = 2 ** 63 - 1
NUMBER_MAX = 2 ** 63 - 1
M64 = 2 ** 64 - 1
KIND_TSC, KIND_RAM, KIND_DISK, KIND_PAYLOAD = 5, 18, 28, 31
KIND_FRAME_OUT, KIND_FRAME_IN = 40, 41
NAMED = (KIND_DISK, KIND_PAYLOAD)
PASSED = (KIND_FRAME_OUT, KIND_FRAME_IN)
NEEDED = set(range(1, 14)) | set(range(16, 32))
SIZES = (0, 1, 2, 4, 8)


class Refused(Exception):
    """The log is not read further; args: class of reason, sentence."""


def library(name, soname):
    found = ctypes.util.find_library(name) or soname
    try:
        return ctypes.CDLL(found)
    except OSError:
        sys.exit(f'tt-log-dump: needs {soname}, which is not installed')


XXH = library('xxhash', 'libxxhash.so.0')
XXH.XXH3_64bits_withSeed.restype = ctypes.c_uint64
XXH.XXH3_64bits_withSeed.argtypes = (ctypes.c_char_p, ctypes.c_size_t,
                                     ctypes.c_uint64)
ZSTD = library('zstd', 'libzstd.so.1')
ZSTD.ZSTD_decompress.restype = ctypes.c_size_t


def checksum(data, seed=0):
    return XXH.XXH3_64bits_withSeed(bytes(data), len(data), seed)


def unpack(data, length):
    """One zstd frame of exactly @length bytes."""
    out = ctypes.create_string_buffer(max(length, 1))
    got = ZSTD.ZSTD_decompress(out, ctypes.c_size_t(length), bytes(data),
                               ctypes.c_size_t(len(data)))
    if got != length:
        raise Refused('format', 'a segment does not decompress')
    return out.raw[:length]


def without(data, at):
    return data[:at] + bytes(8) + data[at + 8:]


class Cursor:
    """Event bytes, and the payload that they use up."""

    def __init__(self, data, payload):
        self.data, self.at, self.end = data, 0, len(data)
        self.payload, self.used = payload, 0

    def byte(self):
        if self.at >= self.end:
            raise Refused('format', 'an event is cut short')
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        value = 0
        for index in range(10):
            b = self.byte()
            value |= (b & 0x7f) << 7 * index
            if value > M64:
                break
            if b < 0x80:
                return value
        raise Refused('format', 'a number is above 2^64 - 1')

    def bounded(self, maximum):
        value = self.varint()
        if value > maximum:
            raise Refused('limit', 'a number is above its limit')
        return value

    def signed(self, base):
        v = self.varint()
        return (base + (-(v + 1) // 2 if v & 1 else v // 2)) & M64

    def split(self, base):
        v = self.varint()
        if self.at >= self.end:
            raise Refused('format', 'an event is cut short')
        self.end -= 1
        high = -(v + 1) // 2 if v & 1 else v // 2
        return (base + (high << 8) + self.data[self.end]) & M64

    def take(self, length):
        if length == 0:
            raise Refused('format', 'data is announced but empty')
        if length <= INLINE_MAX:
            data = self.data[self.at:min(self.at + length, self.end)]
            self.at += length
        else:
            data = self.payload[self.used:self.used + length]
            self.used += length
        if len(data) != length:
            raise Refused('format', 'data is cut short')
        return data


class State:
    """What the next event of a kind refers to."""

    def __init__(self):
        self.size = self.cpu = self.aux = self.addr = self.base = 0
        self.ends, self.last_end = {}, 0        # of ram events


def fields(cursor, kind, state, ram, by_length):
    """An event that is not short: shape and fields."""
    shape = cursor.byte()
    if shape & 7 >= len(SIZES):
        raise Refused('format', 'an impossible access size')
    if kind == KIND_PAYLOAD and shape & 7 not in (0, 2):
        raise Refused('version', f'unknown kind {kind} with a size')
    if kind == KIND_PAYLOAD and shape & 7:
        state.addr, state.base = ram.addr, ram.last_end
    cpu = cursor.byte() if shape & 0x08 else 0
    aux = cursor.bounded(2 ** 32 - 1) if shape & 0x10 else 0
    addr = cursor.signed(state.addr) if shape & 0x20 else state.addr
    if kind == KIND_RAM and by_length:
        state.base = 0
    val = state.base
    if shape & 0x40:
        val = (cursor.split(state.base) if kind == KIND_TSC else
               cursor.signed(state.base) if kind in (KIND_RAM, *NAMED, *PASSED) else
               cursor.varint())
    data = b''
    if shape & 0x80:
        data = cursor.take(cursor.bounded(DATA_MAX))
    return SIZES[shape & 7], cpu, aux, addr, val, data


def length_class(length):
    return length if length < 16 else 16 + (length >> 4) % 16


def varint(value):
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes([*out, value])


def told(data, last_in):
    """R13: the data of a payload event that has none in the log."""
    if data or not last_in or len(last_in[1]) < 24:
        raise Refused('format', 'nothing tells which frame an event means')
    return last_in[1][:24] + varint(last_in[0]) + bytes(1)


def events(seg, raw, payload):
    """Yields (kind, nested, size, cpu, aux, pos, addr, val, data)."""
    cursor = Cursor(raw, payload)
    states = {}
    last_in = None
    pos = seg['first_pos']
    for _ in range(seg['n_events']):
        head = cursor.byte()
        kind, nested = head & 0x3f, head >> 6 & 1
        if kind < 32 and kind not in NEEDED:
            raise Refused('version', f'unknown kind {kind}')
        state = states.setdefault(kind, State())
        ram = states.setdefault(KIND_RAM, State())
        here = pos + cursor.varint()
        if here >= POS_MAX:
            raise Refused('limit', 'a position is above the limit')
        if head & 0x80:
            if kind == KIND_PAYLOAD and state.size:
                state.addr, state.base = ram.addr, ram.last_end
            if kind == KIND_RAM and seg['flags'] & 8:
                state.base = 0
            size, cpu, aux, addr = (state.size, state.cpu, state.aux,
                                    state.addr)
            val, data = state.base, b''
            if kind == KIND_TSC:
                val = cursor.split(state.base)
        else:
            size, cpu, aux, addr, val, data = fields(cursor, kind, state, ram,
                                                     seg['flags'] & 8)
        if kind == KIND_RAM and seg['flags'] & 8:       # R14
            val = (val + ram.ends.get(length_class(len(data)), 0)) & M64
        state.size, state.cpu, state.aux, state.addr = size, cpu, aux, addr
        state.base = (val + (len(data) if kind == KIND_RAM else
                             aux if kind in NAMED else kind in PASSED)) & M64
        if kind == KIND_PAYLOAD and size:
            data = told(data, last_in)
            ram.addr = state.addr
            ram.base = ram.last_end = state.base
            size = 0
        if kind == KIND_RAM:
            ram.ends[length_class(len(data))] = ram.last_end = state.base
        if kind == KIND_FRAME_IN:
            last_in = val, data
        yield kind, nested, size, cpu, aux, here, addr, val, data
        pos = here + (1 if 16 <= kind < 32 and not nested else 0)
    if (cursor.at, cursor.used, pos) != (cursor.end, len(payload),
                                         seg['end_pos']):
        raise Refused('format', 'header and contents of a segment disagree')


class Log:
    """The parts of a log; raises Refused."""

    def __init__(self, data):
        self.data = data
        self.first = (0, 0, 0)      # segment, event, position
        self.is_part = False
        self.at = self.read_head()
        self.segments = []
        self.torn = None
        while self.at < len(data) and self.torn is None:
            if self.is_part and data[self.at:self.at + 8] == HEAD_MAGIC:
                self.read_part()
            else:
                self.read_segment()
        if self.torn is None and not (self.segments and
                                      self.segments[-1]['last']):
            self.torn = 'not closed'

    def read_head(self):
        data = self.data
        if len(data) < 64:
            raise Refused('format', 'the file ends inside its head')
        if data[:8] != HEAD_MAGIC:
            raise Refused('format', 'this is not a log')
        length, = struct.unpack_from('<I', data, 8)
        if not 64 <= length <= 4096 or length > len(data):
            raise Refused('format', 'the length of the head is wrong')
        self.check_head(data[:length])
        self.uuid = data[40:56]
        self.seed, = struct.unpack_from('<Q', self.uuid)
        if data[16] & 1:
            self.is_part = True
            self.first = self.begin_of(data[:length])
        return length

    def check_head(self, head):
        must_know, = struct.unpack_from('<Q', head, 16)
        stored, = struct.unpack_from('<Q', head, 56)
        if stored != checksum(without(head, 56)):
            raise Refused('format', 'the checksum of the head is wrong')
        if must_know & ~1:
            raise Refused('version', f'unknown features {must_know:#x}')

    def begin_of(self, head):
        if len(head) < 96:
            raise Refused('format', 'the head of a part is too short')
        first = struct.unpack_from('<3Q', head, 64)
        if max(first) > NUMBER_MAX:
            raise Refused('limit', 'a part begins above a limit')
        return first

    def expected(self):
        """What the next segment begins with."""
        if not self.segments:
            return self.first
        before = self.segments[-1]
        return (before['seq'] + 1, before['first_event'] + before['n_events'],
                before['end_pos'])

    def read_part(self):
        left = len(self.data) - self.at
        length = 0
        if left >= 96:
            length, = struct.unpack_from('<I', self.data, self.at + 8)
        if not 96 <= length <= min(4096, left):
            self.judge_tail()
            return
        head = self.data[self.at:self.at + length]
        self.check_head(head)
        if not head[16] & 1:
            raise Refused('format', 'another log begins inside this one')
        if (head[40:56] != self.uuid or
                self.begin_of(head) != self.expected()):
            raise Refused('format', 'a part is missing or belongs to another run')
        self.at += length

    def whole_header(self, at):
        """Length of the header at @at, 0 when there is no right one."""
        if len(self.data) - at < 96 or self.data[at:at + 8] != SEG_MAGIC:
            return 0
        length, = struct.unpack_from('<I', self.data, at + 8)
        header = self.data[at:at + length]
        if not 96 <= length <= 4096 or len(header) != length:
            return 0
        stored, = struct.unpack_from('<Q', header, 88)
        return length if stored == checksum(without(header, 88),
                                            self.seed) else 0

    def judge_tail(self):
        left = len(self.data) - self.at
        if left < 96:
            self.torn = 'inside a header'
        elif left <= SEGMENT_MAX and not any(self.data[self.at:]):
            self.torn = 'zeros'
        else:
            raise Refused('format', 'the header of a segment is damaged')

    def check(self, seg):
        if seg['flags'] & 0xfff0:
            raise Refused('version', f'unknown flags {seg["flags"]:#x}')
        if (len(self.segments) >= 2 ** 26 or seg['ev_raw'] > EVENTS_MAX or
                seg['pl_raw'] > PAYLOAD_MAX or
                2 * seg['n_events'] > seg['ev_raw'] or
                seg['end_pos'] > POS_MAX):
            raise Refused('limit', 'a segment is above a limit')
        seq, event, pos = self.expected()
        if (seg['seq'], seg['first_event']) != (seq, event):
            raise Refused('format', 'a segment is missing or out of order')
        if not pos <= seg['first_pos'] <= seg['end_pos']:
            raise Refused('format', 'positions run backwards')
        for name, bit in (('ev', 2), ('pl', 4)):
            raw, stored = seg[name + '_raw'], seg[name + '_stored']
            if stored >= raw if seg['flags'] & bit else stored != raw:
                raise Refused('format', 'stored and decoded lengths disagree')

    def read_segment(self):
        length = self.whole_header(self.at)
        if not length:
            self.judge_tail()
            return
        names = ('length flags seq first_event first_pos host_ns n_events '
                 'ev_raw ev_stored pl_raw pl_stored zero end_pos body_sum')
        seg = dict(zip(names.split(), struct.unpack_from(
            '<II4Q5II2Q', self.data, self.at + 8)))
        seg['last'] = seg['flags'] & 1
        self.check(seg)
        start = self.at + length
        end = start + seg['ev_stored'] + seg['pl_stored']
        seg['body'] = self.data[start:end]
        if end > len(self.data):
            self.torn = 'inside a segment'
        elif end < len(self.data) and seg['last']:
            raise Refused('format', 'bytes after the end of the log')
        else:
            self.segments.append(seg)
            self.at = end

    def events(self, seg):
        body = seg['body']
        if checksum(body, self.seed) != seg['body_sum']:
            raise Refused('format', 'the checksum of a segment is wrong')
        raw, payload = body[:seg['ev_stored']], body[seg['ev_stored']:]
        if seg['flags'] & 2:
            raw = unpack(raw, seg['ev_raw'])
        if seg['flags'] & 4:
            payload = unpack(payload, seg['pl_raw'])
        return events(seg, raw, payload)


def dump(log, out):
    out.write(f'log uuid={log.uuid.hex()}\n')
    for seg in log.segments:
        out.write('segment {seq} first_event={first_event} '
                  'first_pos={first_pos} end_pos={end_pos} host_ns={host_ns} '
                  'events={n_events} last={last}\n'.format(**seg))
        # Whole segments only: a wrong one prints none of its events.
        lines = ['event {} nested={} size={} cpu={} aux={} pos={} addr={} '
                 'val={} data={}\n'.format(*e[:-1], e[-1].hex() or '-')
                 for e in log.events(seg)]
        out.write(''.join(lines))
    out.write('end {}\n'.format('torn' if log.torn else 'clean'))


def files_of(path):
    """The log of a run may be parts: those up to the newest, without a gap."""
    if not os.path.isdir(path):
        return [path]
    parts = sorted(int(name[4:]) for name in os.listdir(path)
                   if re.fullmatch(r'log\.(\d{6}|[1-9]\d{6,9})', name))
    while len(parts) > 1 and parts[-1] - parts[0] >= len(parts):
        del parts[0]
    whole = os.path.join(path, 'log')
    if os.path.exists(whole) or not parts:
        return [whole]
    return [os.path.join(path, f'log.{n:06}') for n in parts]


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith('-'):
        sys.exit(__doc__)
    path = sys.argv[1]
    try:
        data = b''
        for file in files_of(path):
            path = file
            with open(path, 'rb') as f:
                data += f.read()
        dump(Log(data), sys.stdout)
    except OSError as e:
        sys.exit(f'tt-log-dump: cannot read {path}: {e.strerror}')
    except Refused as e:
        sys.stdout.flush()
        sys.exit(f'{e.args[0]}: {e.args[1]}')


if __name__ == '__main__':
    main()
