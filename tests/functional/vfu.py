# SPDX-License-Identifier: GPL-2.0-or-later
"""Servers of vfio-user devices for tests."""

import contextlib
import os
import subprocess
import sys

from ttlib import HERE, check, wait_until


@contextlib.contextmanager
def vfio_server(work, device='edu', name='vfu', disk=None, args=()):
    """A process that serves one device; gives (process, socket)."""
    path = os.path.join(work, f'{name}.sock')
    argv = [sys.executable, os.path.join(HERE, 'vfio_server.py'), '--socket', path,
            '--device', device, *args]
    argv += ['--disk', disk] if disk else []
    with open(os.path.join(work, f'{name}.err'), 'wb') as err:
        server = subprocess.Popen(argv, stderr=err, cwd=work)
    try:
        wait_until(lambda: os.path.exists(path) or server.poll() is not None,
                   'the server listens')
        check(server.poll() is None, 'the server has ended')
        yield server, path
    finally:
        server.kill()
        server.wait()


def vfio_device(path, more=''):
    return ['-device', f'vfio-user-pci,socket={path}{more}']
