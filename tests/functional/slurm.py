# SPDX-License-Identifier: GPL-2.0-or-later
"""A cluster of one node, Debian's Slurm and munge, in a directory of its own: it has its
own configuration, key, sockets and ports, listens on loopback only, needs neither systemd
nor cgroups nor a database, and leaves nothing behind. Its programs find it by SLURM_CONF.
"""

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import time

from ttlib import Skip, fail, wait_until

SECONDS_MAX = 600       # what is still there then ends by itself
CPUS = 2
PROGRAMS = ('munged', 'slurmctld', 'slurmd', 'sbatch', 'squeue', 'scontrol', 'scancel')

CONF = '''\
ClusterName=tt
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={dir}/munge.socket
CredType=cred/munge
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
PlugStackConfig={dir}/plugstack.conf
MailProg=/bin/true
ReturnToService=2
KillWait=1
SlurmctldTimeout=30
SlurmdTimeout=30
SchedulerParameters=batch_sched_delay=0,sched_min_interval=100000
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=work Nodes={host} Default=YES MaxTime=10 State=UP
'''


def find(program):
    path = shutil.which(program, path=os.environ['PATH'] + ':/usr/sbin:/sbin')
    if not path:
        raise Skip(f'there is no {program}: install slurm-wlm and munge')
    return path


def free_ports(n):
    held = [socket.create_server(('127.0.0.1', 0)) for _ in range(n)]
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


class Cluster:
    """Its daemons; env is for programs that shall find it."""

    def __init__(self, directory):
        self.programs = {p: find(p) for p in PROGRAMS}
        self.dir = directory
        self.host = socket.gethostname().split('.')[0]
        self.daemons = []
        for name in ('', 'state', 'spool'):
            os.makedirs(os.path.join(self.dir, name), mode=0o755)
        self.conf = os.path.join(self.dir, 'slurm.conf')
        self.env = dict(os.environ, SLURM_CONF=self.conf)
        self._write()

    def _write(self):
        with open(self.conf, 'w', encoding='ascii') as out:
            out.write(CONF.format(host=self.host, dir=self.dir, user=getpass.getuser(),
                                  ports=free_ports(2), cpus=CPUS))
        with open(os.path.join(self.dir, 'plugstack.conf'), 'w', encoding='ascii'):
            pass
        key = os.open(os.path.join(self.dir, 'munge.key'), os.O_WRONLY | os.O_CREAT, 0o400)
        with open(key, 'wb') as out:
            out.write(os.urandom(128))

    def start(self, program, *args):
        log = open(os.path.join(self.dir, f'{program}.out'), 'ab')
        with log:
            process = subprocess.Popen(
                ['timeout', '--foreground', '-k', '5', str(SECONDS_MAX),
                 self.programs[program], *args],
                env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.daemons.append(process)
        return process

    def path(self, name):
        return os.path.join(self.dir, name)

    def begin(self):
        self.start('munged', '--foreground', '--force', '--num-threads=2',
                   f'--key-file={self.path("munge.key")}',
                   f'--socket={self.path("munge.socket")}',
                   f'--pid-file={self.path("munged.pid")}',
                   f'--log-file={self.path("munged.log")}',
                   f'--seed-file={self.path("munged.seed")}')
        wait_until(lambda: os.path.exists(self.path('munge.socket')), 'munge')
        self.start('slurmctld', '-D', '-f', self.conf)
        self.start('slurmd', '-D', '-f', self.conf)
        wait_until(self._is_idle, f'a node that is ready, see {self.dir}/*.out', 40)

    def _is_idle(self):
        for d in self.daemons:
            if d.poll() is not None:
                fail(f'{d.args[5]} ended with {d.returncode}, see {self.dir}/*.out')
        return 'State=IDLE' in self.ask('scontrol', 'show', 'node', self.host)

    def ask(self, program, *args):
        """What it prints; nothing if it fails."""
        done = subprocess.run([self.programs[program], *args], env=self.env, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        return done.stdout if done.returncode == 0 else ''

    def jobs(self):
        """Tasks that have not ended: their ids, as 12_3."""
        return self.ask('squeue', '-h', '-r', '-o', '%F_%K').split()

    def own_processes(self):
        """All that was started for it, tasks and their helpers too."""
        mark = f'SLURM_CONF={self.conf}'.encode()
        for pid in filter(str.isdigit, os.listdir('/proc')):
            with contextlib.suppress(OSError):
                with open(f'/proc/{pid}/environ', 'rb') as f:
                    if mark in f.read().split(b'\0') and int(pid) != os.getpid():
                        yield int(pid)

    def end(self):
        if self.jobs():
            self.ask('scancel', '--user', getpass.getuser())
            limit = time.monotonic() + 10
            while self.jobs() and time.monotonic() < limit:
                time.sleep(0.1)
        for process in reversed(self.daemons):
            process.terminate()
        for process in reversed(self.daemons):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
        for pid in list(self.own_processes()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self.daemons:
            process.wait(10)


@contextlib.contextmanager
def cluster(work):
    c = Cluster(os.path.join(work, 'slurm'))
    try:
        c.begin()
        yield c
    finally:
        c.end()
