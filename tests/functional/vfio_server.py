#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A vfio-user server for tests: one device for one client, on a Unix socket.

  vfio_server.py --socket PATH --device edu
  vfio_server.py --socket PATH --device nvme --disk FILE

DMA goes by messages where the client gives no descriptors, and through shared memory
where it does. --lies SEED makes it hostile: it damages, repeats, drops and invents
messages at random. --picky: it answers what wants no answer, and looks at what it wrote.
"""

import argparse
import collections
import mmap
import os
import random
import select
import socket
import struct
import sys

from vfio_devices import DEVICES

(VERSION, DMA_MAP, DMA_UNMAP, DEVICE_INFO, REGION_INFO, IO_FDS, IRQ_INFO, SET_IRQS,
 REGION_READ, REGION_WRITE, DMA_READ, DMA_WRITE, RESET) = range(1, 14)
REPLY, NO_REPLY, ERROR = 1, 16, 32
HEAD = struct.Struct('<HHIII')
CONFIG = 7
EINVAL, ENOTSUP = 22, 95

Mapping = collections.namedtuple('Mapping', 'addr size memory')


class Gone(Exception):
    """The client has closed the connection."""


class Server:
    """Speaks the protocol; the device is told of accesses and asks for DMA."""

    def __init__(self, sock, device, lies=None, picky=False):
        self.sock = sock
        self.device = device
        self.lies = lies
        self.picky = picky
        self.mappings = []
        self.waiting = collections.deque()
        self.irqs = {}                  # (kind, vector): eventfd
        self.next_id = 0
        self.max_data = 1 << 20
        device.server = self

    # ---- bytes ----

    def receive(self):
        """One message: (id, command, flags, error, payload, descriptors)."""
        data, fds = b'', []
        while len(data) < HEAD.size:
            part, got, _, _ = socket.recv_fds(self.sock, HEAD.size - len(data), 16)
            if not part:
                raise Gone
            data += part
            fds += got
        number, command, size, flags, error = HEAD.unpack(data)
        payload = b''
        while len(payload) < size - HEAD.size:
            part, got, _, _ = socket.recv_fds(
                self.sock, size - HEAD.size - len(payload), 16)
            if not part:
                raise Gone
            payload += part
            fds += got
        return number, command, flags, error, payload, fds

    def send(self, number, command, flags, payload, error=0):
        message = HEAD.pack(number, command, HEAD.size + len(payload),
                            flags | (ERROR if error else 0), error) + payload
        if self.lies:
            message = self.lies.spoil(message)
        self.sock.sendall(message)

    # ---- DMA, for the device ----

    def find(self, addr, size):
        for m in self.mappings:
            if m.addr <= addr and addr + size <= m.addr + m.size:
                return m
        return None

    def ask(self, command, payload):
        number = self.next_id = (self.next_id + 1) & 0xffff
        self.send(number, command, 0, payload)
        while True:
            message = self.receive()
            if message[2] & 15 != REPLY:
                self.waiting.append(message)
            elif message[0] == number or self.lies:
                if message[3]:
                    raise OSError(message[3], f'DMA: {os.strerror(message[3])}')
                return message[4]

    def dma_read(self, addr, size):
        m = self.find(addr, size)
        if m and m.memory:
            at = addr - m.addr
            return bytes(m.memory[at:at + size])
        out = b''
        while size:
            n = min(size, self.max_data)
            out += self.ask(DMA_READ, struct.pack('<QQ', addr, n))[16:]
            addr, size = addr + n, size - n
        return out

    def dma_write(self, addr, data):
        m = self.find(addr, len(data))
        if m and m.memory:
            at = addr - m.addr
            m.memory[at:at + len(data)] = data
            return
        while data:
            part, data = data[:self.max_data], data[self.max_data:]
            self.ask(DMA_WRITE, struct.pack('<QQ', addr, len(part)) + part)
            if self.picky and self.dma_read(addr, len(part)) != part:
                sys.exit(f'{addr:x}h does not have what was written there')
            addr += len(part)

    def interrupt(self, kind, vector):
        fd = self.irqs.get((kind, vector))
        if fd is not None:
            os.eventfd_write(fd, 1)

    # ---- commands ----

    def map(self, payload, fds):
        _, _, offset, addr, size = struct.unpack('<IIQQQ', payload[:32])
        memory = mmap.mmap(fds[0], size, offset=offset) if fds else None
        for fd in fds:
            os.close(fd)
        self.mappings.append(Mapping(addr, size, memory))
        return payload[:32]

    def unmap(self, payload):
        _, _, addr, size = struct.unpack('<IIQQ', payload[:24])
        for m in list(self.mappings):
            if m.addr == addr and m.size == size:
                self.mappings.remove(m)
        return payload[:24]

    def region_info(self, payload):
        index = struct.unpack_from('<I', payload, 8)[0]
        size = 256 if index == CONFIG else self.device.bars.get(index, 0)
        return struct.pack('<IIIIQQ', 32, 3 if size else 0, index, 0, size, 0)

    def irq_info(self, payload):
        index = struct.unpack_from('<I', payload, 8)[0]
        return struct.pack('<IIII', 16, 1, index, self.device.irqs.get(index, 0))

    def set_irqs(self, payload, fds):
        _, flags, index, start, count = struct.unpack('<IIIII', payload[:20])
        if flags == 33:                 # trigger without data: all off, or now
            for key in [k for k in self.irqs if k[0] == index and not count]:
                os.close(self.irqs.pop(key))
        elif flags == 36:
            for i, fd in enumerate(fds):
                old = self.irqs.pop((index, start + i), None)
                if old is not None:
                    os.close(old)
                self.irqs[index, start + i] = fd
            self.device.armed(index, start + len(fds))
        elif flags == 17 and index == 0:
            self.device.unmasked()
        return b''

    def region_read(self, payload):
        offset, index, count = struct.unpack('<QII', payload[:16])
        if index == CONFIG:
            data = bytes(self.device.config[offset:offset + count])
        else:
            data = self.device.read(index, offset, count)
        return payload[:16] + data.ljust(count, b'\0')

    def region_write(self, payload):
        offset, index, count = struct.unpack('<QII', payload[:16])
        if index == CONFIG:
            self.device.config[offset:offset + count] = payload[16:16 + count]
            self.device.configured()
        else:
            self.device.write(index, offset, payload[16:16 + count])
        return payload[:16]

    def serve(self, number, command, flags, payload, fds):
        if command == VERSION:
            out = struct.pack('<HH', 0, 1) + (
                b'{"capabilities":{"max_msg_fds":8,"max_data_xfer_size":1048576}}\0')
        elif command == DMA_MAP:
            out = self.map(payload, fds)
        elif command == DMA_UNMAP:
            out = self.unmap(payload)
        elif command == DEVICE_INFO:
            out = struct.pack('<IIII', 16, 3, 9, 5)
        elif command == REGION_INFO:
            out = self.region_info(payload)
        elif command == IRQ_INFO:
            out = self.irq_info(payload)
        elif command == SET_IRQS:
            out = self.set_irqs(payload, fds)
        elif command == REGION_READ:
            out = self.region_read(payload)
        elif command == REGION_WRITE:
            out = self.region_write(payload)
        elif command == RESET:
            self.device.reset()
            out = b''
        else:
            self.send(number, command, REPLY, b'', ENOTSUP)
            return
        if self.picky or not flags & NO_REPLY:
            self.send(number, command, REPLY, out)

    def run(self):
        """Until the client goes: first its commands, then the device's own work."""
        while True:
            busy = self.device.has_work() or self.waiting
            ready = select.select([self.sock], [], [], 0 if busy else 0.5)[0]
            if self.waiting:
                message = self.waiting.popleft()
            elif ready:
                message = self.receive()
            else:
                message = None
            if message and message[2] & 15 != REPLY:
                number, command, flags, _, payload, fds = message
                self.serve(number, command, flags, payload, fds)
            elif self.device.has_work():
                self.device.work()
            if self.lies:
                self.lies.speak(self)


class Lies:
    """What a hostile server does to its messages; the same seed does the same."""

    def __init__(self, seed, grace):
        self.rng = random.Random(seed)
        self.grace = grace              # messages that stay as they are

    def spoil(self, message):
        self.grace -= 1
        if self.grace > 0 or self.rng.random() < 0.7:
            return message
        data = bytearray(message)
        kind = self.rng.randrange(6)
        if kind == 0:
            for _ in range(self.rng.randrange(1, 4)):
                data[self.rng.randrange(len(data))] = self.rng.randrange(256)
        elif kind == 1:
            at = self.rng.randrange(0, len(data) - 3, 4)
            value = self.rng.choice([0, 1, 15, 0x7fffffff, 0xffffffff, 4096])
            struct.pack_into('<I', data, at, value)
        elif kind == 2:
            return bytes(data[:self.rng.randrange(len(data))])
        elif kind == 3:
            return bytes(data) * 2
        elif kind == 4:
            return bytes(data) + self.rng.randbytes(self.rng.randrange(1, 40))
        else:
            n = self.rng.randrange(0, 64)
            data = data[:HEAD.size] + self.rng.randbytes(n)
            struct.pack_into('<I', data, 4, len(data))
        return bytes(data)

    def scribble(self, shared):
        """Bytes anywhere in the memory that the server was given."""
        for _ in range(self.rng.randrange(1, 20)):
            m = self.rng.choice(shared)
            data = self.rng.randbytes(self.rng.choice([1, 8, 100, 4096]))
            at = self.rng.randrange(m.size)
            m.memory[at:at + len(data)] = data[:m.size - at]

    def speak(self, server):
        """A request, or a write, that the device has no reason for."""
        if self.grace > 0 or self.rng.random() > 0.3:
            return
        shared = [m for m in server.mappings if m.memory]
        if shared and self.rng.random() < 0.2:
            self.scribble(shared)
            return
        command = self.rng.choice([DMA_READ, DMA_WRITE, 0, 3, 14, 99])
        addr = self.rng.choice([0, 0xa0000, 0xfee00000, 0xfebf0000, 1 << 40,
                                0xffffffffffffffff, self.rng.randrange(1 << 27)])
        size = self.rng.choice([0, 1, 4096, 1 << 20, (1 << 20) + 1, 1 << 63])
        data = self.rng.randbytes(min(size, 4096) if command == DMA_WRITE else 0)
        server.send(7, command, self.rng.choice([0, NO_REPLY]),
                    struct.pack('<QQ', addr, size) + data)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--socket', required=True)
    parser.add_argument('--device', choices=sorted(DEVICES), default='edu')
    parser.add_argument('--disk')
    parser.add_argument('--lies', type=int)
    parser.add_argument('--picky', action='store_true')
    parser.add_argument('--grace', type=int, default=0)
    parser.add_argument('--clients', type=int, default=1)
    args = parser.parse_args()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f'{args.socket}.new')
    listener.listen()
    os.rename(f'{args.socket}.new', args.socket)        # it is there once somebody listens
    for i in range(args.clients):
        sock = listener.accept()[0]
        lies = None if args.lies is None else Lies(args.lies + i, args.grace)
        device = DEVICES[args.device](args)
        try:
            Server(sock, device, lies, args.picky).run()
        except (Gone, ConnectionError):
            device.gone()
        except (OSError, struct.error, IndexError, ValueError) as error:
            if lies is None:
                raise
            print(f'{type(error).__name__}: {error}', file=sys.stderr)
        sock.close()
    return 0


if __name__ == '__main__':
    sys.exit(main())
