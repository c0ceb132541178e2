# SPDX-License-Identifier: GPL-2.0-or-later
"""tt verify, find and run-plugin --on slurm: the answers are those of -j, also when tasks
are lost; nothing is left on the cluster, nor beside the run."""

import json
import os
import pty
import re
import signal
import subprocess

from guests import guest_args
from slurm import cluster
from ttlib import (check, equal, limit, one_sentence, qemu_binary,
                   record_in_parts, tool, tt, wait_until)

HELD = 100              # seconds, should nobody end it


def a_run(work):
    """In a directory of its own, in which nothing else may be left."""
    where = os.path.join(work, 'shared')
    os.mkdir(where)
    record_in_parts(work, guest_args(work, 'dmacode', 'rounds=12000'), 'made', 4, 0.01)
    run = os.path.join(where, 'rec.run')
    os.rename(os.path.join(work, 'made.run'), run)
    return run


def command(*args, qemu=None):
    return [tool('tt'), *args, '--qemu', qemu or qemu_binary()]


def on(c, *args, rc=0, **kw):
    done = subprocess.run(command(*args, '--on', 'slurm', **kw), env=c.env, text=True,
                          capture_output=True, timeout=300)
    equal(done.returncode, rc, f'tt {args}: {done.stdout}{done.stderr}')
    return done


def place(run, start):
    """An address that is executed near there."""
    span, steps = 20000, []
    while not steps:                    # it may be waiting for its disk there
        part = ['--from', str(start), '--to', str(start + span), '--json']
        steps = json.loads(tt(*command('find', run, '$rsp', '--changes', *part)[1:])
                           .stdout)['found']
        span *= 4
    return steps[0]['pc']


def is_clean(run):
    equal(os.listdir(os.path.dirname(run)), ['rec.run'], 'beside the run')


def holding(work, end):
    """A QEMU whose first part says all but its last line, once, and then does not end."""
    path = os.path.join(work, f'qemu-{end}')
    with open(path, 'w', encoding='ascii') as f:
        f.write(f'''#!/bin/sh
case "$*" in
*=0-*)
    if mkdir {path}.held 2> /dev/null; then
        {qemu_binary()} "$@" | sed '$d'
        echo $$ > {path}.new
        mv {path}.new {path}.held/pid
        exec sleep {HELD}
    fi ;;
esac
exec {qemu_binary()} "$@"
''')
    os.chmod(path, 0o755)
    return path


def held_pid(qemu):
    path = f'{qemu}.held/pid'
    wait_until(lambda: os.path.exists(path), 'a task that does not end', 60)
    with open(path, encoding='ascii') as f:
        return int(f.read())


@limit(60)
def test_same_answers(work):
    """As one process, as two, and as tasks of a cluster: the same answer."""
    run = a_run(work)
    two = ['-j', '2', '--json']
    with cluster(work) as c:
        one = json.loads(tt(*command('verify', run)[1:], '--json').stdout)
        here = json.loads(tt(*command('verify', run, *two)[1:]).stdout)
        there = json.loads(on(c, 'verify', run, *two).stdout)
        check(one['intervals'] >= 4 and here['processes'] > 2, f'{one}')
        equal(there, here, 'verify on slurm')
        equal(dict(there, processes=1), one, 'verify on slurm and as one')
        condition = f'at {place(run, one["end"] // 2)}'
        ask = ['find', run, condition, '--limit', '100000', *two]
        here = json.loads(tt(*command(*ask)[1:]).stdout)
        equal(json.loads(on(c, *ask).stdout), here, 'find on slurm')
        first = json.loads(on(c, *ask, '--first').stdout)['found']
        equal(first, here['found'][:1], 'the first on slurm')
        ask = ['run-plugin', run, 'count']
        equal(on(c, *ask, '-j', '2').stdout, tt(*command(*ask)[1:]).stdout, 'count')
        equal(c.jobs(), [], 'tasks that are left')
    is_clean(run)


def verify_held(c, run, qemu, **kw):
    return subprocess.Popen(command('verify', run, '-j', '2', '--on', 'slurm', '--json',
                                    qemu=qemu), env=c.env, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)


@limit(60)
def test_lost_tasks(work):
    """A task whose QEMU is killed, or that is cancelled, is submitted again; what it had
    said counts no more. Three times, and it is given up."""
    run = a_run(work)
    wanted = json.loads(tt(*command('verify', run, '-j', '2', '--json')[1:]).stdout)
    with cluster(work) as c:
        # Slurm ends the task's shell and its QEMU together: either may be first.
        for end, says in (('kill', 'signal 9'), ('scancel', 'CANCELLED|signal 15')):
            qemu = holding(work, end)
            with verify_held(c, run, qemu) as p:
                pid = held_pid(qemu)
                if end == 'kill':
                    os.kill(pid, signal.SIGKILL)
                else:
                    c.ask('scancel', next(j for j in c.jobs() if j.endswith('_0')))
                out, err = p.communicate(timeout=120)
            equal((p.returncode, json.loads(out)), (0, wanted), f'after {end}: {err}')
            check(re.search(says, err) and 'submitted again' in err, f'{end}: {err}')
        dying = os.path.join(work, 'dying')
        with open(dying, 'w', encoding='ascii') as f:
            f.write('#!/bin/sh\nkill -9 $$\n')
        os.chmod(dying, 0o755)
        done = on(c, 'verify', run, '-j', '1', qemu=dying, rc=1)
        equal(done.stderr.count('submitted again'), 2, done.stderr)
        check('third time' in done.stdout and 'signal 9' in done.stdout, done.stdout)
    is_clean(run)


def read_all(fd):
    text = b''
    try:
        while chunk := os.read(fd, 4096):
            text += chunk
    except OSError:         # the other end is closed
        pass
    return text.decode()


@limit(60)
def test_interrupted(work):
    """Interrupted, it cancels its tasks and removes what it made; a terminal shows how far
    it is."""
    run = a_run(work)
    with cluster(work) as c:
        for sig in (signal.SIGINT, signal.SIGTERM):
            qemu = holding(work, sig.name)
            with verify_held(c, run, qemu) as p:
                pid = held_pid(qemu)
                p.send_signal(sig)
                out, err = p.communicate(timeout=60)
            equal(p.returncode, 1, f'{sig.name}: {out}{err}')
            check('interrupted' in json.loads(out)['error'], out)
            wait_until(lambda: not c.jobs(), 'the end of all tasks', 40)
            wait_until(lambda: not os.path.exists(f'/proc/{pid}'), 'the end of its process')
            is_clean(run)
        ours, theirs = pty.openpty()
        subprocess.run(command('verify', run, '-j', '2', '--on', 'slurm'), env=c.env,
                       stdout=subprocess.DEVNULL, stderr=theirs, timeout=120, check=True)
        os.close(theirs)
        check('tasks have ended' in read_all(ours), 'no progress is shown')
        os.close(ours)


def unseen(c, run, work, *options):
    """What it says if the directory is gone before its tasks begin."""
    where = os.path.dirname(run)
    c.ask('scontrol', 'update', f'NodeName={c.host}', 'State=DRAIN', 'Reason=test')
    with subprocess.Popen([*command('verify', run), '-j', '1', '--on',
                           ','.join(['slurm', *options])], env=c.env, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        wait_until(c.jobs, 'tasks that wait')
        os.rename(where, where + '.gone')
        c.ask('scontrol', 'update', f'NodeName={c.host}', 'State=RESUME')
        _, err = p.communicate(timeout=60)
    os.rename(where + '.gone', where)
    equal(p.returncode, 1, err)
    return one_sentence(err, 'not seen')


@limit(60)
def test_refused(work):
    """What cannot be done is said in one sentence, which says how it can."""
    run = a_run(work)
    for args, wanted in ((['--on', 'pbs'], 'slurm'), (['--on', 'slurm,wrap=ls'], 'wrap'),
                         (['--on', 'slurm,scratch='], 'scratch= has no value'),
                         (['--on', 'slurm', '-j', '251'], '250')):
        said = tt(*command('verify', run, *args)[1:], rc=2).stderr
        check(wanted in said.splitlines()[0], f'{args}: {said}')
    nowhere = subprocess.run(command('verify', run, '--on', 'slurm'), text=True,
                             env=dict(os.environ, PATH=work), capture_output=True,
                             timeout=60)
    check('no sbatch in PATH' in one_sentence(nowhere.stderr, 'no sbatch'), nowhere.stderr)
    with cluster(work) as c:
        lost = subprocess.run(command('verify', run, '--on', 'slurm'), text=True,
                              env=dict(c.env, SLURM_CONF=os.devnull),
                              capture_output=True, timeout=60).stderr
        check('does not answer' in lost.splitlines()[-1], lost)
        said = subprocess.run(command('verify', run, '--on', 'slurm,partition=none'),
                              text=True, env=c.env, capture_output=True, timeout=60).stderr
        check('no such partition' in one_sentence(said, 'partition'), said)
        is_clean(run)
        said = unseen(c, run, work)
        check(f'{c.host} does not see' in said and 'scratch=' in said, said)
        for name in os.listdir(os.path.dirname(run)):   # it was away when it was to be removed
            check(name == 'rec.run' or name.startswith('tt-slurm-'), name)
        said = unseen(c, run, work, f'scratch={work}')
        check(f"{c.host} does not see '{run}" in said, said)
        equal([n for n in os.listdir(work) if n.startswith('tt-slurm-')], [], 'left')
