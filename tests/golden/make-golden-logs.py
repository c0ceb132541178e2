#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the golden logs, byte by byte from docs/reference/log-format.rst: a
writer that shares nothing with the one in C.

    make-golden-logs.py DIR

Writes what is not there yet. A golden file is never made anew: what it shows
must stay true of every later reader.
"""
import ctypes
import importlib.util
import io
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
spec = importlib.util.spec_from_file_location(
    'tt_log_dump', os.path.join(HERE, '..', '..', 'scripts', 'tt-log-dump.py'))
dump = importlib.util.module_from_spec(spec)
spec.loader.exec_module(dump)

UUID = bytes(range(0x10, 0x20))
SEED, = struct.unpack('<Q', UUID[:8])


def zstd(data):
    lib = dump.ZSTD
    lib.ZSTD_compress.restype = ctypes.c_size_t
    room = len(data) + 1024
    out = ctypes.create_string_buffer(room)
    n = lib.ZSTD_compress(out, ctypes.c_size_t(room), data,
                          ctypes.c_size_t(len(data)), 3)
    return out.raw[:n]


def head(must_know=0, may_ignore=0, length=64, magic=b'TTVMLOG\n', flip=0):
    h = magic + struct.pack('<II3Q', length, 0, must_know, may_ignore, 0)
    h += UUID + bytes(8)
    h += b'\xee' * (length - 64) if 64 < length <= 4096 else b''
    total = dump.checksum(h) ^ flip
    return h[:56] + struct.pack('<Q', total) + h[64:]


def part(seq=0, event=0, pos=0, must_know=1, length=96, uuid=UUID, flip=0):
    h = b'TTVMLOG\n' + struct.pack('<II3Q', length, 0, must_know, 0, 0)
    h += uuid + bytes(8) + struct.pack('<4Q', seq, event, pos, 0)
    h += b'\xee' * (length - 96)
    total = dump.checksum(h[:length]) ^ flip
    return (h[:56] + struct.pack('<Q', total) + h[64:])[:length]


class Events:
    """Event bytes, and the low bytes of TSC events among them."""

    def __init__(self, front, low=b''):
        self.front, self.low = front, low

    def __add__(self, other):
        return Events(self.front + other.front, self.low + other.low)

    def __mul__(self, times):
        return Events(self.front * times, self.low * times)

    def bytes(self):
        return self.front + self.low[::-1]


class Writer:
    """Segments that follow each other rightly, unless told otherwise."""

    def __init__(self, seq=0, first_event=0, pos=0):
        self.seq, self.first_event, self.pos = seq, first_event, pos

    def part(self, **more):
        return part(self.seq, self.first_event, self.pos, **more)

    def segment(self, ev=b'', n=0, end=None, pl=b'', flags=0, pack='',
                length=96, **wrong):
        """@wrong: header fields to lie about."""
        end = self.pos if end is None else end
        ev = ev.bytes() if isinstance(ev, Events) else ev
        f = dict(length=length, flags=flags, seq=self.seq,
                 first_event=self.first_event, first_pos=self.pos,
                 host_ns=self.seq * 1000, n_events=n, ev_raw=len(ev),
                 ev_stored=0, pl_raw=len(pl), pl_stored=0, zero=0,
                 end_pos=end, body_sum=0)
        if 'e' in pack:
            ev = zstd(ev)
            f['flags'] |= 2
        if 'p' in pack:
            pl = zstd(pl)
            f['flags'] |= 4
        f['ev_stored'], f['pl_stored'] = len(ev), len(pl)
        f['body_sum'] = dump.checksum(ev + pl, SEED)
        f.update(wrong)
        h = b'TTVMSEG\n' + struct.pack('<II4Q5II2Q', *f.values()) + bytes(8)
        h += b'\xdd' * (length - 96)
        total = dump.checksum(h, SEED)
        self.seq += 1
        self.first_event += n
        self.pos = end
        return h[:88] + struct.pack('<Q', total) + h[96:] + ev + pl


def varint(v):
    out = b''
    while v >= 0x80:
        out += bytes([v & 0x7f | 0x80])
        v >>= 7
    return out + bytes([v])


def signed(v):
    return varint(v << 1 if v >= 0 else (-v << 1) - 1)


def event(kind, delta=0, size=0, cpu=None, aux=None, addr=None, val=None,
          data=None, nested=0):
    """@addr is the difference; @val is as coded. Returns event bytes."""
    shape = {0: 0, 1: 1, 2: 2, 4: 3, 8: 4}[size]
    out = low = b''
    if cpu is not None:
        shape |= 0x08
        out += bytes([cpu])
    if aux is not None:
        shape |= 0x10
        out += varint(aux)
    if addr is not None:
        shape |= 0x20
        out += signed(addr)
    if val is not None:
        shape |= 0x40
        if kind == 5:
            out += signed(val >> 8)
            low = bytes([val & 255])
        else:
            out += signed(val) if kind in (18, 28, 31, 40, 41) else varint(val)
    if data is not None:
        shape |= 0x80
        out += varint(len(data))
        if len(data) <= 16:
            out += data
    return Events(bytes([kind | nested << 6]) + varint(delta) +
                  bytes([shape]) + out, low)


def short(kind, delta=0, tsc=None, nested=0):
    out = bytes([kind | nested << 6 | 0x80]) + varint(delta)
    if tsc is None:
        return Events(out)
    return Events(out + signed(tsc >> 8), bytes([tsc & 255]))


def one(ev, **more):
    """A closed log of one segment with one event."""
    more.setdefault('end', 0)
    return head() + Writer().segment(ev, 1, flags=1, **more)


def every_kind():
    out, n, pos = Events(b''), 0, 0
    for kind in sorted(dump.NEEDED) + [32, 33, 34, 35, 36, 60]:
        for nested in (0, 1):
            for is_short in (False, True):
                if is_short:
                    out += short(kind, 0, 1 if kind == 5 else None, nested)
                else:
                    out += event(kind, 3, size=4 * (kind != 31), cpu=nested,
                                 aux=2 ** 32 - 1, addr=-7, val=2 ** 63 - 1,
                                 data=bytes([kind] * 16), nested=nested)
                    pos += 3
                pos += 16 <= kind < 32 and not nested
                n += 1
    return head() + Writer().segment(out, n, end=pos, flags=1)


def accepted():
    w = Writer()
    yield 'empty-but-closed', head() + w.segment(flags=1)
    yield 'one-event', one(event(1, 5, size=1, addr=0x3fd, val=0x60), end=5)
    yield 'every-kind-long-and-short', every_kind()
    w = Writer()
    yield 'three-segments', (
        head() + w.segment(event(5, 9, val=10 ** 12) + short(5, 4, -3),
                           2, end=13) +
        w.segment() + w.segment(event(16, 0, addr=1, val=0x20), 1, end=14,
                                flags=1))
    # Each segment starts from nothing: the same bytes mean the same.
    w = Writer()
    ev = event(3, 1, size=4, addr=0xfee00000, val=7)
    yield 'deltas-start-anew', (
        head() + w.segment(ev + short(3), 2, end=1) +
        w.segment(ev + short(3), 2, end=2, flags=1))
    w = Writer()
    big = bytes(range(256))
    yield 'compressed', head() + w.segment(
        event(18, 1, addr=2, val=4096, data=big) * 20, 20, end=40, pl=big * 20,
        flags=1, pack='ep')
    # RAM that goes on where it ended: no val, and short when it is empty.
    yield 'disk-goes-on', one(
        event(28, 0, aux=4096, val=4096, data=b'abcd\x00\x01\x08') +
        event(28, 0, aux=65536, val=512, data=b'efgh\x02\x03\x10') +
        event(28, 0, aux=512, data=b'ijkl\x00\x01\x00'), n_events=3, end=3)
    yield 'payload-goes-on', one(
        event(31, 0, aux=1448, val=4096, data=b'hash....run-of-16-bytes-\x07\x00') +
        event(31, 0, aux=66, val=16, data=b'hash....run-of-16-bytes-\x08\x42'),
        pl=b'hash....run-of-16-bytes-\x07\x00hash....run-of-16-bytes-\x08\x42',
        n_events=2, end=2)
    yield 'landmark-pages', one(event(29, 0, data=b'p' * 40), pl=b'p' * 40, end=1)
    yield 'branches', one(event(30, 0, val=2 ** 40), end=1)
    yield 'ram-goes-on', one(
        event(18, 0, val=4096, data=b'x' * 16) + event(18, data=b'y' * 17) +
        short(18) + event(18, val=-33, data=b'z'), pl=b'y' * 17,
        n_events=4, end=4)
    yield 'numbers-wrap', one(
        event(3, 0, addr=-1, val=2 ** 64 - 1) + event(3, 0, addr=2) +
        event(5, 0, val=-1) + event(5, 0, val=2) +
        event(18, 0, val=-1, data=b'ab', nested=1) + event(18, 0, nested=1),
        n_events=6)
    yield 'data-of-16-and-17-bytes', one(
        event(34, data=b'm' * 16) + event(35, data=b'n' * 17), pl=b'n' * 17,
        n_events=2)
    yield 'screen-notes', one(
        event(37, addr=1) +
        event(37, addr=1, val=1, data=struct.pack('<3I', 2, 1, 2)) +
        event(37, addr=1, val=1, data=struct.pack('<2IQ', 0, 8, 4096)) +
        event(37, addr=3, val=1, data=struct.pack('<4IQ', 0, 0, 2, 1, 0)) +
        event(37, addr=1, val=1, aux=4, data=b'rgbx') +
        event(37, addr=1, val=1, data=struct.pack('<4IQ', 0, 0, 2, 1, 0)),
        pl=2 * struct.pack('<4IQ', 0, 0, 2, 1, 0), n_events=6)
    yield 'frame-notes', one(
        event(38, 5, addr=1, val=7, aux=60, data=struct.pack('<QI', 77, 3)) +
        event(38, 0, addr=1, val=9, aux=98,
              data=struct.pack('<QI16sQ', 78, 3, b'r' * 16, 4711)),
        pl=struct.pack('<QI16sQ', 78, 3, b'r' * 16, 4711), n_events=2, end=5)
    told = bytes(range(30))
    yield 'frames-that-passed', one(
        event(40, 5, val=7, aux=60, data=b'hash....\x00') +
        event(40, 0, aux=1514, data=b'hash....\x00') +
        event(41, 0, addr=4711, val=300, aux=1514, data=told) +
        event(31, 0, aux=1514, val=4096, size=2) +
        event(18, 0, addr=5, val=8192, data=b'head') +
        event(41, 0, addr=10, aux=66, data=told[::-1]) +
        event(31, 0, aux=64, size=2) + short(31) + event(18, data=b'tail') +
        event(31, 0, aux=2, data=b'its own data'),
        pl=told + told[::-1], n_events=10, end=11)
    yield 'ram-by-length', head() + Writer().segment(
        event(18, 0, addr=1, val=4096, data=b'head of 12 b') +
        event(18, 0, val=512, data=b'2b') + event(18, 0, val=100, data=b'b' * 40) +
        event(18, 0, val=-2, data=b'2b') + event(18, 0, data=b'head of 12 b') +
        event(18, 0, val=8, data=b'c' * 296) + event(18, 0) + short(18) +
        event(41, 0, aux=66, data=b'h' * 24) + event(31, 0, aux=66, size=2) +
        event(18, 0, data=b'2b'),
        11, flags=9, end=10, pl=b'b' * 40 + b'c' * 296 + b'h' * 24)
    # Nested in an access, and around a halt at 400.
    yield 'times', one(
        event(39, 100, addr=10 ** 6, val=5000, nested=1) + event(1, 0, size=1) +
        event(5, 50, val=6100) + event(39, 150, addr=2 * 10 ** 6, val=9000, nested=1) +
        event(2, 0, size=1) + event(39, 100, addr=10 ** 6, val=10000) +
        event(39, 0, addr=5 * 10 ** 6, val=15000) + event(17) +
        event(39, 100, addr=10 ** 6, val=16000, nested=1) + event(1, 0, size=1),
        n_events=10, end=501)
    yield 'unknown-annotation', one(
        event(63, 7, size=8, addr=1, val=2, data=b'from the future') +
        event(1, 0, size=1), n_events=2, end=7)
    yield 'longer-head-and-header', (
        head(length=80, may_ignore=1 << 40) +
        Writer().segment(event(1), 1, flags=1 | 1 << 20, length=120))
    # A varint may be longer than it needs to be.
    yield 'padded-numbers', one(b'\x02\x80\x80\x00\x40\x85\x80\x80\x00')
    # The low bytes lie after all events, the first one last.
    yield 'tsc-low-bytes', one(
        event(5, 0, val=0x12345) + event(1) + short(5, 0, 0x101) +
        short(5, 0, -1) + short(5, 0, 2 ** 63) + event(5, 0, size=8),
        n_events=6)
    yield 'highest-position', one(event(1, 2 ** 63 - 2), end=2 ** 63 - 2)


FAR = (2 ** 53, 2 ** 63 - 5, 2 ** 62)


def accepted_parts():
    """A window of a log, and parts one behind another."""
    ev = event(1, 5, size=1)
    w = Writer(7, 100, 1000)
    yield 'part-from-7-on', w.part() + w.segment(ev, 1, end=1005, flags=1)
    w = Writer()
    yield 'part-from-0-on', w.part() + w.segment(ev, 1, end=5, flags=1)
    w = Writer(*FAR)
    yield 'parts-far-away', (
        w.part() + w.segment(ev, 1, end=FAR[2] + 5) +
        w.part(length=4096) + w.segment() + w.segment() + w.part() +
        w.segment(flags=1))
    w = Writer(3, 3, 3)
    yield 'parts-without-segments', (
        w.part() + w.part() + w.segment(ev, 1, end=8) + w.part() + w.part() +
        w.segment(flags=1))


def torn_parts():
    ev = event(1, 5, size=1)
    w = Writer(7, 100, 1000)
    good = w.part() + w.segment(ev, 1, end=1005)
    yield 'part-head-only', part(7, 100, 1000)
    yield 'part-behind-is-empty', good + w.part()
    yield 'part-behind-is-cut', good + w.part()[:95]


def rejected_parts():
    ev = event(1, 5, size=1)
    w = Writer(7, 100, 1000)
    good = w.part() + w.segment(ev, 1, end=1005)
    rest = w.segment(flags=1)
    for name, wrong in (('seq', (9, 101, 1005)), ('event', (8, 100, 1005)),
                        ('position', (8, 101, 1004)),
                        ('twice', (7, 100, 1000))):
        yield f'format-part-{name}', good + part(*wrong) + rest
    yield 'format-part-of-another-log', \
        good + part(8, 101, 1005, uuid=bytes(16)) + rest
    yield 'format-part-checksum', good + part(8, 101, 1005, flip=1) + rest
    yield 'format-part-too-short', part(length=95) + Writer().segment(flags=1)
    yield 'format-part-inside-a-log', \
        head() + Writer().segment() + part(1, 0, 0) + Writer(1).segment()
    yield 'format-log-inside-a-part', good + head() + rest
    yield 'format-part-after-the-end', good + rest + part(9, 101, 1005)
    yield 'version-part-must-know', \
        good + part(8, 101, 1005, must_know=3) + rest
    yield 'limit-part-seq', part(seq=2 ** 63)
    yield 'limit-part-event', part(event=2 ** 63)
    yield 'limit-part-position', part(pos=2 ** 63)


def torn():
    w = Writer()
    good = head() + w.segment(event(1, 5, size=1), 1, end=5)
    next_one = w.segment(event(2, 5, size=2, addr=3), 1, end=10, flags=1)
    yield 'head-only', head()
    yield 'not-closed', good
    yield 'header-cut', good + next_one[:95]
    yield 'body-cut', good + next_one[:-1]
    yield 'zeros-behind', good + bytes(4096)


def damaged_tails():
    """As torn, but a killed or powerless recorder leaves no such thing."""
    w = Writer()
    good = head() + w.segment(event(1, 5, size=1), 1, end=5)
    next_one = w.segment(event(2, 5, size=2, addr=3), 1, end=10, flags=1)
    yield 'format-last-body-damaged', good + next_one[:-1] + b'\x55'
    yield 'format-last-header-damaged', good + b'?' + next_one[1:]
    yield 'format-rubbish-behind', good + bytes(range(256)) * 3
    yield 'format-zeros-and-one-behind', good + bytes(4095) + b'\1'
    yield 'format-segment-of-another-log', good + next_one[:88] + struct.pack(
        '<Q', dump.checksum(dump.without(next_one[:96], 88), 1)) + \
        next_one[96:]


def wrong_segments():
    """Segments whose header has a right checksum and wrong numbers."""
    ev = event(1, 5, size=1).bytes()
    cases = {
        'format-seq-gap': dict(seq=2),
        'format-event-gap': dict(first_event=9),
        'format-position-backwards': dict(first_pos=3, end_pos=5),
        'format-end-before-start': dict(end_pos=4),
        'format-stored-shorter': dict(ev_stored=len(ev) - 1),
        'format-raw-payload-length': dict(pl_raw=1),
        'format-frame-not-smaller': dict(flags=2),
        'limit-events-bytes': dict(ev_raw=524289, ev_stored=524289),
        'limit-payload-bytes': dict(pl_raw=4194305, pl_stored=4194305),
        'limit-events-in-bytes': dict(n_events=len(ev) // 2 + 1),
        'limit-position': dict(first_pos=5, end_pos=2 ** 63),
        'version-must-know-flag': dict(flags=1 << 9),
    }
    for name, wrong in cases.items():
        w = Writer()
        first = w.segment(ev, 1, end=5)
        yield name, head() + first + w.segment(ev, 1, end=10, **wrong) + \
            w.segment(flags=1)


def overlapping_segments():
    """Each one is right for itself."""
    w = Writer()
    ev = event(1, 5, size=1)
    first = w.segment(ev, 1, end=5)
    w.pos = 4
    yield 'format-position-overlap', head() + first + w.segment(
        ev, 1, end=9, flags=1)


def wrong_events():
    yield 'version-kind-0', one(event(0))
    yield 'version-kind-31-with-a-size', one(event(31, size=1), end=1)
    yield 'format-payload-told-by-nothing', one(event(31, size=2), end=1)
    yield 'format-payload-told-by-too-little', one(
        event(41, data=b'i' * 23) + event(31, size=2), pl=b'i' * 23, n_events=2, end=1)
    yield 'format-payload-told-with-data', one(
        event(41, data=b'i' * 24) + event(31, size=2, data=b'data'), pl=b'i' * 24,
        n_events=2, end=1)
    for kind in (14, 15):
        yield f'version-kind-{kind}', one(event(kind), end=int(kind > 15))
    yield 'format-access-size', one(b'\x01\x00\x05')
    yield 'format-event-cut', one(b'\x01\x00')
    yield 'format-event-cut-in-number', one(b'\x01\x80')
    yield 'format-event-cut-at-cpu', one(b'\x01\x00\x08')
    yield 'format-end-position', one(event(1), end_pos=1)
    yield 'format-low-byte-missing', one(b'\x85\x00\x00')
    yield 'format-low-byte-left', one(short(5, 0, 7) + Events(b'', b'?'))
    yield 'format-event-missing', one(event(1, aux=7), n_events=2)
    yield 'format-number-of-65-bits', one(
        b'\x02\x00\x40' + b'\xff' * 9 + b'\x02')
    yield 'format-number-of-11-bytes', one(
        b'\x02\x00\x40' + b'\x80' * 10 + b'\x00')
    yield 'format-data-empty', one(b'\x22\x00\x80\x00')
    yield 'format-data-cut', one(b'\x22\x00\x80\x05abcd')
    yield 'format-data-cut-before-another-event', one(
        b'\x22\x00\x80\x05abcd', n_events=2)
    yield 'format-payload-cut-before-another-event', one(
        event(34, data=b'x' * 40) + event(34, data=b'x' * 40), pl=b'x' * 39,
        n_events=2)
    yield 'format-payload-cut', one(event(34, data=b'x' * 40), pl=b'x' * 39)
    yield 'format-payload-left', one(event(34, data=b'x' * 40), pl=b'x' * 41)
    yield 'format-events-left', one(event(1) * 2)
    yield 'limit-aux', one(event(1, aux=2 ** 32))
    yield 'limit-data', one(b'\x22\x00\x80' + varint(65537), pl=b'x' * 65537,
                            pack='p')
    yield 'limit-position-in-event', one(event(1, 2 ** 63 - 1),
                                         end=2 ** 63 - 1)
    yield 'limit-position-wraps', one(event(1, 5) + event(1, 2 ** 64 - 1),
                                      n_events=2, end=4)


def rejected():
    good = Writer().segment(flags=1)
    yield 'format-empty-file', b''
    yield 'format-head-cut', head()[:63]
    yield 'format-magic', head(magic=b'TTVMLOG\r') + good
    yield 'format-head-checksum', head(flip=1) + good
    yield 'format-head-too-short', head(length=63) + good
    yield 'format-head-too-long', head(length=4097) + good
    yield 'version-must-know-feature', head(must_know=1 << 63) + good
    yield 'format-bytes-after-the-end', head() + good + b'\0'
    yield 'format-segment-after-the-end', head() + good + good
    w = Writer()
    first = w.segment(event(1, 5, size=1), 1, end=5)
    last = w.segment(flags=1)
    yield 'format-sealed-body-damaged', head() + first[:-1] + b'?' + last
    yield 'format-sealed-header-damaged', head() + b'?' + first[1:] + last
    yield 'format-sealed-header-checksum', \
        head() + first[:88] + bytes(8) + first[96:] + last
    w = Writer()
    frame = zstd(b'\x81\x00' * 64)
    yield 'format-frame-of-other-length', head() + w.segment(
        frame, 64, flags=3, ev_raw=130)
    yield 'format-frame-damaged', head() + Writer().segment(
        b'\x81\x00' * 20, 64, flags=3, ev_raw=128)
    yield from wrong_segments()
    yield from overlapping_segments()
    yield from damaged_tails()
    yield from wrong_events()
    yield from rejected_parts()


def write(path, data):
    if not os.path.exists(path):
        with open(path, 'xb') as f:
            f.write(data)


def text_of(data):
    out = io.StringIO()
    dump.dump(dump.Log(data), out)
    return out.getvalue().encode()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    accept = os.path.join(sys.argv[1], 'accept')
    reject = os.path.join(sys.argv[1], 'reject')
    os.makedirs(accept, exist_ok=True)
    os.makedirs(reject, exist_ok=True)
    for name, data in (list(accepted()) + list(accepted_parts()) +
                       [('torn-' + n, d)
                        for n, d in list(torn()) + list(torn_parts())]):
        write(os.path.join(accept, name + '.log'), data)
        write(os.path.join(accept, name + '.txt'), text_of(data))
    for name, data in rejected():
        write(os.path.join(reject, name + '.log'), data)


if __name__ == '__main__':
    main()
