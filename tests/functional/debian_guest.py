# SPDX-License-Identifier: GPL-2.0-or-later
"""The whole Debian of `scripts/guest-debian`: systemd, ssh, a shell by network."""

import os
import socket
import subprocess
import time

from ttlib import BUILD, check, fail

DEBIAN = os.path.join(BUILD, 'guest-debian')
SSH = ('-q', '-F', 'none', '-i', os.path.join(DEBIAN, 'key'), '-o',
       'StrictHostKeyChecking=no', '-o', 'UserKnownHostsFile=/dev/null', '-o',
       'BatchMode=yes', '-o', 'ConnectTimeout=60')


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def debian_args(port, memory=512, smp=2):
    """Its ssh is at this port of the host; what it writes is lost."""
    return ['-m', str(memory), '-smp', str(smp), '-nodefaults', '-display', 'none',
            '-no-reboot', '-kernel', f'{DEBIAN}/vmlinuz', '-initrd', f'{DEBIAN}/initrd.img',
            '-append', 'root=/dev/vda rw console=ttyS0 panic=-1', '-drive',
            f'file={DEBIAN}/disk.img,format=raw,if=virtio,snapshot=on', '-netdev',
            f'user,id=n0,hostfwd=tcp:127.0.0.1:{port}-:22', '-device',
            'virtio-net-pci,netdev=n0,romfile=']


def ssh(port, command, data=None, tries=1):
    """What the command says. With tries: also if the guest does not listen yet."""
    for left in reversed(range(tries)):
        try:
            done = subprocess.run(['ssh', *SSH, '-p', str(port), 'root@127.0.0.1', command],
                                  input=data, check=False, stdout=subprocess.PIPE,
                                  timeout=300)
        except subprocess.TimeoutExpired:
            fail(f'ssh {command[:60]}: no answer')
        if done.returncode == 0 or not left:
            break
        time.sleep(2)
    check(done.returncode == 0, f'ssh {command[:60]}: {done.stdout[-300:]}')
    return done.stdout
