# SPDX-License-Identifier: GPL-2.0-or-later
"""The devices of vfio_server.py: `edu`, as QEMU's is, and an NVMe disk that a stock
driver takes for one."""

import collections
import struct
import sys
import time

INTX, MSI, MSIX = range(3)


class Device:
    """What both share: configuration space and INTx."""

    bars, irqs = {}, {}

    def __init__(self):
        self.config = bytearray(256)
        self.level = False
        self.server = None

    def header(self, vendor, device, class_code, bar0, caps=0):
        struct.pack_into('<HHHHI', self.config, 0, vendor, device, 0,
                         0x10 if caps else 0, class_code << 8)
        struct.pack_into('<I', self.config, 0x10, bar0)
        struct.pack_into('<HH', self.config, 0x2c, vendor, device)
        self.config[0x34] = caps
        self.config[0x3d] = 1

    def set_level(self, level):
        rises = level and not self.level
        self.level = level
        if rises:
            self.server.interrupt(INTX, 0)

    def unmasked(self):
        if self.level:
            self.server.interrupt(INTX, 0)

    def has_work(self):
        return False

    def work(self):
        pass

    def reset(self):
        self.level = False

    def armed(self, kind, count):
        """The client takes interrupts from so many vectors."""

    def configured(self):
        """The configuration space was written."""

    def gone(self):
        """The client has closed the connection."""


class Edu(Device):
    """QEMU's educational device: a factorial, DMA through 4 KiB of its own."""

    bars = {0: 1 << 20}
    irqs = {INTX: 1, MSI: 1}
    BUFFER, BYTES = 0x40000, 4096

    def __init__(self, _args):
        super().__init__()
        self.header(0x1234, 0x11e8, 0x00ff00, 0, 0x40)
        struct.pack_into('<BBH', self.config, 0x40, 5, 0, 0x80)
        self.reset()

    def reset(self):
        super().reset()
        self.regs = collections.Counter()
        self.buffer = bytearray(self.BYTES)
        self.todo = collections.deque()
        self.status = self.pending = 0
        self.factorial = 0

    def has_work(self):
        return bool(self.todo)

    def raise_irq(self, bits):
        self.pending |= bits
        self.server.interrupt(MSI, 0)
        self.set_level(True)

    def read(self, _bar, offset, count):
        value = {0: 0x010000ed, 4: ~self.regs[4], 8: self.factorial,
                 0x20: self.status | (1 if 'fact' in self.todo else 0),
                 0x24: self.pending,
                 0x98: self.regs[0x98]}.get(offset, self.regs[offset])
        return (value & ((1 << 8 * count) - 1)).to_bytes(count, 'little')

    def write(self, _bar, offset, data):
        value = int.from_bytes(data, 'little')
        if offset == 0x20:
            self.status = value & 0x80
        elif offset == 8:
            self.regs[8] = value
            self.todo.append('fact')
        elif offset == 0x60:
            self.raise_irq(value)
        elif offset == 0x64:
            self.pending &= ~value
            if not self.pending:
                self.set_level(False)
        else:
            self.regs[offset] = value
            if offset == 0x98 and value & 1:
                self.todo.append('dma')

    def work(self):
        if self.todo[0] == 'fact':
            self.factorial = 1
            for i in range(1, self.regs[8] + 1):
                self.factorial = self.factorial * i & 0xffffffff
            self.todo.popleft()
            if self.status & 0x80:
                self.raise_irq(1)
            return
        src, dst, size, command = (self.regs[i] for i in (0x80, 0x88, 0x90, 0x98))
        if command & 2:
            at = src - self.BUFFER
            self.server.dma_write(dst, bytes(self.buffer[at:at + size]))
        else:
            at = dst - self.BUFFER
            self.buffer[at:at + size] = self.server.dma_read(src, size)
        self.regs[0x98] &= ~1
        self.todo.popleft()
        if command & 4:
            self.raise_irq(0x100)


class EduLate(Edu):
    """Does its DMA when it is reset or no longer bus master, and signals the last of four
    vectors when it has them. A write of a number for its factorial is a lie: after it,
    nothing that the device does may reach the guest, and it does all that it can."""

    irqs = {INTX: 1, MSI: 4}

    def __init__(self, args):
        super().__init__(args)
        struct.pack_into('<BBH', self.config, 0x40, 5, 0, 0x84)
        self.lied = False

    def finish(self):
        if self.server and self.todo:
            super().work()

    def configured(self):
        if not self.config[4] & 4:
            self.finish()

    def reset(self):
        self.finish()
        super().reset()
        self.buffer = bytearray(b'\xa5' * self.BYTES)

    def has_work(self):
        return False

    def armed(self, kind, count):
        if kind == MSI and count == self.irqs[MSI]:
            self.server.interrupt(MSI, count - 1)

    def write(self, bar, offset, data):
        if offset == 8:
            self.lied = True
            self.server.send(0x7777, 99, 1, b'')
        super().write(bar, offset, data)

    def gone(self):
        for _ in range(200 if self.lied else 0):
            if self.server.find(self.regs[0x88], self.BYTES).memory:
                self.server.dma_write(self.regs[0x88], bytes(self.buffer))
            self.server.interrupt(INTX, 0)
            time.sleep(0.01)


class EduSlow(Edu):
    """Sends requests in halves, and takes its time in each of them."""

    def work(self):
        data = bytes(8)
        request = struct.pack('<HHIIIQQ', 7, 12, 32 + len(data), 16, 0, 1 << 20,
                              len(data)) + data
        self.server.sock.sendall(request[:20])
        for _ in range(20):
            time.sleep(0.4)
            self.server.sock.sendall(request[20:] + request[:20])
        self.server.sock.sendall(request[20:])
        super().work()


class EduBold(Edu):
    """DMA that is refused is done, and has read zeros."""

    def work(self):
        try:
            super().work()
        except OSError:
            if not self.regs[0x98] & 2:
                self.buffer = bytearray(self.BYTES)
            self.regs[0x98] &= ~1
            self.todo.popleft()


Queue = collections.namedtuple('Queue', 'addr size vector cq')

PAGE, BLOCK = 4096, 512
CAP = 1 << 37 | 20 << 24 | 1 << 16 | 1023
MSIX_TABLE, MSIX_PBA, VECTORS = 0x2000, 0x3000, 5
(CC, CSTS, AQA, ASQ, ACQ) = (0x14, 0x1c, 0x24, 0x28, 0x30)


class Nvme(Device):
    """A controller with one name space; its commands are done one by one."""

    bars = {0: 1 << 14}
    irqs = {INTX: 1, MSIX: VECTORS}

    def __init__(self, args):
        super().__init__()
        self.header(0x1b36, 0x0010, 0x010802, 4, 0x40)
        struct.pack_into('<BBHII', self.config, 0x40, 17, 0, VECTORS - 1, MSIX_TABLE,
                         MSIX_PBA)
        self.disk = open(args.disk, 'r+b')
        self.disk.seek(0, 2)
        self.blocks = self.disk.tell() // BLOCK
        self.reset()

    def reset(self):
        super().reset()
        self.regs = bytearray(0x1000)
        struct.pack_into('<QI', self.regs, 0, CAP, 0x10400)
        self.sqs, self.cqs = {}, {}
        self.heads, self.tails, self.cq_tails = {}, {}, {}
        self.phases = {}

    def reg(self, at, fmt='<I'):
        return struct.unpack_from(fmt, self.regs, at)[0]

    def read(self, _bar, offset, count):
        return bytes(self.regs[offset:offset + count])

    def write(self, _bar, offset, data):
        if offset >= 0x1000:
            queue, kind = divmod((offset - 0x1000) // 4, 2)
            if kind == 0:
                self.tails[queue] = int.from_bytes(data, 'little')
            else:
                self.set_level(False)
            return
        self.regs[offset:offset + len(data)] = data
        if offset == CC:
            self.configure()

    def configure(self):
        cc = self.reg(CC)
        status = 1 if cc & 1 else 0
        if cc & 0xc000:
            status |= 8                 # shutdown complete
        struct.pack_into('<I', self.regs, CSTS, status)
        if not cc & 1:
            self.sqs.clear()
            self.cqs.clear()
        elif 0 not in self.sqs:
            aqa = self.reg(AQA)
            self.add_cq(0, self.reg(ACQ, '<Q'), (aqa >> 16 & 0xfff) + 1, 0)
            self.add_sq(0, self.reg(ASQ, '<Q'), (aqa & 0xfff) + 1, 0)

    def add_cq(self, number, addr, size, vector):
        self.cqs[number] = Queue(addr, size, vector, number)
        self.cq_tails[number], self.phases[number] = 0, 1

    def add_sq(self, number, addr, size, cq):
        self.sqs[number] = Queue(addr, size, 0, cq)
        self.heads[number] = self.tails[number] = 0

    def has_work(self):
        return any(self.heads[q] != self.tails[q] for q in self.sqs)

    def work(self):
        for number in list(self.sqs):
            if self.heads[number] != self.tails[number]:
                self.one(number)
                return

    def one(self, number):
        sq = self.sqs[number]
        entry = self.server.dma_read(sq.addr + 64 * self.heads[number], 64)
        self.heads[number] = (self.heads[number] + 1) % sq.size
        cid = struct.unpack_from('<H', entry, 2)[0]
        command = struct.unpack_from('<BBHIQQQQIIIIII', entry)
        answer = self.admin(command) if number == 0 else self.transfer(command)
        if answer is not None:
            self.complete(number, sq.cq, cid, *answer)

    def complete(self, sq, number, cid, result, status):
        cq, tail = self.cqs.get(number), self.cq_tails.get(number)
        if cq is None:
            return
        self.server.dma_write(cq.addr + 16 * tail, struct.pack(
            '<IIHHHH', result, 0, self.heads.get(sq, 0), sq, cid,
            status << 1 | self.phases[number]))
        self.cq_tails[number] = (tail + 1) % cq.size
        if not self.cq_tails[number]:
            self.phases[number] ^= 1
        self.server.interrupt(MSIX, cq.vector)
        self.set_level(True)

    def pages(self, prp1, prp2, size):
        """(address, length) of the parts of a transfer."""
        n = min(size, PAGE - prp1 % PAGE)
        yield prp1, n
        size -= n
        if 0 < size <= PAGE:
            yield prp2, size
            return
        at, entries = prp2, []
        while size > 0:
            if not entries:
                here = (PAGE - at % PAGE) // 8
                want = min(here, (size + PAGE - 1) // PAGE)
                entries = list(struct.unpack(f'<{want}Q',
                                             self.server.dma_read(at, 8 * want)))
                if want == here and size > want * PAGE:
                    at = entries.pop()
            yield entries.pop(0), min(size, PAGE)
            size -= PAGE

    def transfer(self, command):
        opcode, prp1, prp2 = command[0], command[6], command[7]
        lba, count = command[8] | command[9] << 32, (command[10] & 0xffff) + 1
        if opcode == 0:
            self.disk.flush()
            return 0, 0
        if opcode not in (1, 2):
            return 0, 1
        if lba + count > self.blocks:
            return 0, 0x80
        self.disk.seek(lba * BLOCK)
        for addr, size in self.pages(prp1, prp2, count * BLOCK):
            if opcode == 1:
                self.disk.write(self.server.dma_read(addr, size))
            else:
                self.server.dma_write(addr, self.disk.read(size))
        return 0, 0

    def identify(self, cns):
        out = bytearray(4096)
        if cns == 0:
            struct.pack_into('<QQQ', out, 0, self.blocks, self.blocks, self.blocks)
            out[128 + 2] = 9
        elif cns == 1:
            struct.pack_into('<HH20s40s8s', out, 0, 0x1b36, 0x1af4,
                             b'1'.ljust(20), b'vfio-user test disk'.ljust(40),
                             b'1'.ljust(8))
            out[77] = 5
            struct.pack_into('<HI', out, 78, 1, 0x10400)
            out[111], out[512], out[513], out[525] = 1, 0x66, 0x44, 1
            struct.pack_into('<I', out, 516, 1)
            out[768:800] = b'nqn.2026-01.test:vfio-user'.ljust(32, b'\0')
        elif cns == 2:
            struct.pack_into('<I', out, 0, 1)
        elif cns == 3:
            out[0:4] = b'\x02\x10\0\0'
            out[4:20] = b'vfio-user-test-0'
        else:
            return None
        return bytes(out)

    def admin(self, command):
        """(result, status), or None: no answer yet."""
        opcode, nsid, prp1 = command[0], command[3], command[6]
        cdw10, cdw11 = command[8], command[9]
        number, size = cdw10 & 0xffff, (cdw10 >> 16) + 1
        if opcode == 6:
            out = self.identify(cdw10 & 255)
            if out is None or (cdw10 & 255 in (0, 3) and nsid != 1):
                return 0, 2
            for addr, part in self.pages(prp1, command[7], len(out)):
                self.server.dma_write(addr, out[:part])
                out = out[part:]
            return 0, 0
        if opcode == 5:
            self.add_cq(number, prp1, size, cdw11 >> 16)
        elif opcode == 1:
            self.add_sq(number, prp1, size, cdw11 >> 16)
        elif opcode == 0:
            self.sqs.pop(number, None)
        elif opcode == 4:
            self.cqs.pop(number, None)
        elif opcode == 0xc:
            return None
        elif opcode in (9, 0xa):
            queues = (VECTORS - 2) | (VECTORS - 2) << 16
            return (queues if cdw10 & 255 == 7 else 0), 0
        elif opcode == 2:
            n = ((cdw10 >> 16 & 0xfff) + 1) * 4
            for addr, part in self.pages(prp1, command[7], n):
                self.server.dma_write(addr, bytes(part))
        else:
            return 0, 1
        return 0, 0


class NvmeStray(Nvme):
    """Touches memory that nobody gave it, in so far as it has any: with each command
    addresses that no driver uses, and when it is turned on those that Linux will use."""

    PLACES = (0x7fff0000, 0x300000000)

    def window(self, addr):
        m = self.server.find(addr, PAGE)
        return m if m and m.memory and m.size > 1 << 32 else None

    def configure(self):
        below = min(self.reg(ASQ, '<Q'), self.reg(ACQ, '<Q'))
        if self.reg(CC) & 1 and 0 not in self.sqs and self.window(below):
            for page in range(1, 1024):
                self.server.dma_write(below - page * PAGE, b'\x5a' * PAGE)
            print('wrote into holes', file=sys.stderr, flush=True)
        super().configure()

    def one(self, number):
        for addr in self.PLACES:
            m = self.server.find(addr, PAGE)
            if m and m.memory:
                self.server.dma_write(addr, b'\x5a' * PAGE)
        super().one(number)


DEVICES = {'edu': Edu, 'edu-bold': EduBold, 'edu-late': EduLate, 'edu-slow': EduSlow,
           'nvme': Nvme, 'nvme-stray': NvmeStray}
