# SPDX-License-Identifier: GPL-2.0-or-later
"""Servers of vfio-user devices for tests."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

from ttlib import (HERE, MACHINE, SLOW, Vm, build_guest, check, check_exact, qemu_binary,
                   read_text, recorder, wait_until)


@contextlib.contextmanager
def served(work, name, argv, path):
    """A process that makes the socket @path; gives (process, socket)."""
    with open(os.path.join(work, f'{name}.err'), 'wb') as err:
        server = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=err, stderr=err,
                                  cwd=work)
    try:
        wait_until(lambda: os.path.exists(path) or server.poll() is not None,
                   'the server listens')
        check(server.poll() is None, 'the server has ended: ' +
              read_text(os.path.join(work, f'{name}.err')))
        yield server, path
    finally:
        server.kill()
        server.wait()


def vfio_server(work, device='edu', name='vfu', disk=None, args=()):
    """Our server, of one device."""
    path = os.path.join(work, f'{name}.sock')
    argv = [sys.executable, os.path.join(HERE, 'vfio_server.py'), '--socket', path,
            '--device', device, *args]
    return served(work, name, [*argv, '--disk', disk] if disk else argv, path)


def qemu_server(work, *args, name='vfu'):
    """A QEMU without a guest that serves its device of the id `served`."""
    path = os.path.join(work, f'{name}.sock')
    server = {'qom-type': 'x-vfio-user-server', 'id': 'server', 'device': 'served',
              'socket': {'type': 'unix', 'path': path}}
    return served(work, name, [
        qemu_binary(), '-machine', 'x-remote,vfio-user=on,auto-shutdown=on', '-accel',
        'tcg', '-nodefaults', '-display', 'none', *args, '-object', json.dumps(server)],
        path)


def vfio_device(path, more=''):
    return ['-device', f'vfio-user-pci,socket={path}{more}']


def edu_args(path, append='', more='', guest='vfuedu', machine=MACHINE):
    return [*machine, '-kernel', build_guest(guest), '-append', append,
            *vfio_device(path, more)]


def hostile(work, seed, patience=6):
    """A guest under a hostile server: QEMU ends as it should, and what was recorded
    replays exactly. Gives the sentence about the server, or None."""
    grace = 0 if seed % 5 == 0 else 40 + seed * 7 % 400
    name = f'hostile{seed}'
    with vfio_server(work, name=name,
                     args=['--lies', str(seed), '--grace', str(grace)]) as (_, path):
        recorded = seed % 3 == 0
        dma = 'shared' if seed % 6 == 3 else 'messages'
        args = edu_args(path, 'lost=1', f',timeout=1,dma={dma}')
        with (recorder(work, args, name=name) if recorded else
              Vm(work, args, name=name)) as vm:
            end = time.monotonic() + patience * SLOW
            while vm.process.poll() is None and time.monotonic() < end:
                time.sleep(0.02)
            if vm.process.poll() is None:
                vm.signal(signal.SIGTERM)       # lies that harm nobody
            status = vm.wait()
    said = [line for line in vm.stderr.splitlines() if 'vfio-user-pci' in line]
    check(status in (0, 1), f'seed {seed}: QEMU ended with {status}: {vm.stderr}')
    check(status == 0 or len(said) == 1, f'seed {seed}: QEMU refused: {vm.stderr}')
    lost = [line for line in said if 'unplugged' in line]
    check(len(lost) <= 1, f'seed {seed}: lost more than once: {vm.stderr}')
    if recorded and status == 0:
        check_exact(work, vm.run, name=f'{name}r', serial_wanted=vm.serial)
    return (said or [None])[-1]
