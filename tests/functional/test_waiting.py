# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands that last: the guest and other monitors go on meanwhile."""

import contextlib
import os
import re
import subprocess
import time

from guests import guest_args
from hmp import Hmp, hmp_args
from ttlib import (REPO, SLOW, Gdb, TestFailure, check, equal, limit, read_text, record,
                   recorder, replay, run_tool, stopped_replay, wait_until)

ENDLESS = 'rounds=100000000'


class Hold:
    """While it is on, no checkpoint can be written."""

    def __init__(self, work):
        self.path = os.path.join(work, 'hold')
        self.library = os.path.join(work, 'held_disk.so')
        run_tool('gcc', '-shared', '-fPIC', '-o', self.library,
                 os.path.join(REPO, 'tests/functional/held_disk.c'))

    def on(self):
        with open(self.path, 'w', encoding='ascii'):
            pass

    def off(self):
        os.unlink(self.path)


@contextlib.contextmanager
def held_recorder(work, options=',checkpoint-interval=1000', args=()):
    """A recorder of a guest that sleeps between timer interrupts, and its Hold."""
    hold = Hold(work)
    vm = recorder(work, [*guest_args(work, 'hlt', ENDLESS), *args],
                  options=options, qmp=1)
    os.environ.update(LD_PRELOAD=hold.library, TT_HOLD=hold.path)
    with vm:
        del os.environ['LD_PRELOAD'], os.environ['TT_HOLD']
        wait_until(lambda: info(vm)['live'] and checkpoints(vm), 'it is recorded')
        timers_go_on(vm)
        yield vm, hold


def info(vm):
    return vm.qmp.answer(vm.qmp.send('query-tt', oob=True))


def checkpoints(vm):
    return [c['id'] for c in vm.qmp.cmd('query-tt-checkpoints')]


def timers_go_on(vm):
    """The guest does nothing but wait for timer interrupts: each is an event."""
    before = info(vm)['events']
    wait_until(lambda: info(vm)['events'] > before + 50,
               "the guest's timers go on")


def job_ends(vm, name, error=None):
    """Waits for its end; what QEMU says of it then."""
    def find():
        return next(j for j in vm.qmp.cmd('query-jobs') if j['id'] == name)

    wait_until(lambda: find()['status'] == 'concluded', f'job {name} ends', 30)
    job = find()
    check(('error' in job) == (error is not None) and
          (error or '') in job.get('error', ''), f'{job}')
    vm.qmp.cmd('job-dismiss', id=name)
    return job


def ends_whole(work, vm):
    vm.qmp.send('quit')
    vm.wait(0)
    replay(work, vm.run)


@limit(100)
def test_hmp_adds(work):
    """While HMP adds a checkpoint and the disk stands still, the guest's timers go on
    and QMP is served; a job that adds another one waits for its turn."""
    path = os.path.join(work, 'hmp')
    with held_recorder(work, args=hmp_args(path)) as (vm, hold), Hmp(path) as hmp:
        hmp.read_prompt()
        hold.on()
        hmp.send('tt checkpoint add')
        timers_go_on(vm)
        vm.qmp.cmd('tt-checkpoint-add', job_id='second')
        timers_go_on(vm)
        equal([j['status'] for j in vm.qmp.cmd('query-jobs')], ['running'], 'the job')
        equal(len(checkpoints(vm)), 1, 'checkpoints while the disk stands still')
        hold.off()
        said = hmp.read_prompt()
        job_ends(vm, 'second')
        event = vm.qmp.event('TT_CHECKPOINT_ADDED')
        if 'job-id' not in event:
            event = vm.qmp.event('TT_CHECKPOINT_ADDED')
        equal(event['job-id'], 'second', 'of the job')
        check(re.search(r'\n *(\d+) +\d+ ', said), said)
        first = int(re.search(r'\n *(\d+) +\d+ ', said).group(1))
        check(first != event['id'] and {first, event['id']} < set(checkpoints(vm)),
              f'{first}, {event}')
        ends_whole(work, vm)


@limit(100)
def test_says_what_it_waits_for(work):
    """A checkpoint waits for another one that is being written, and HMP says so."""
    path = os.path.join(work, 'hmp')
    with held_recorder(work, args=hmp_args(path)) as (vm, hold), Hmp(path) as hmp:
        hmp.read_prompt()
        hold.on()
        vm.qmp.cmd('tt-checkpoint-add', job_id='first')
        hmp.send('tt checkpoint add')
        hmp.read_until('waiting: the checkpoint store is busy with another checkpoint')
        timers_go_on(vm)
        hold.off()
        said = hmp.read_prompt()
        job_ends(vm, 'first')
        check(re.search(r'\n *(\d+) +\d+ ', said) and 'waiting' not in said, said)
        equal(len(checkpoints(vm)), 3, 'checkpoints')
        ends_whole(work, vm)


def gave_up(text):
    return 'Timed out' in text or 'packet error' in text


@limit(100)
def test_gdb_waits(work):
    """gdb hears of a command that lasts as long as it lasts, and its patience is never at
    an end."""
    patience = 5 * SLOW                 # in its log it says when it is
    args = Gdb.args(work, 'rec')
    with held_recorder(work, args=args) as (vm, hold):
        hold.on()
        vm.qmp.cmd('tt-checkpoint-add', job_id='first')
        said = os.path.join(work, 'said')
        with open(said, 'w', encoding='ascii') as out, subprocess.Popen(
                [Gdb(vm).program, '-nx', '-batch', '-q', '-ex', 'set confirm off',
                 '-ex', 'set arch i386:x86-64',
                 '-ex', f'set remotetimeout {int(patience)}',
                 '-ex', f'target remote {Gdb(vm).ready()}', '-ex', 'set debug remote 1',
                 '-ex', 'monitor tt checkpoint add', '-ex', 'set debug remote 0',
                 '-ex', 'disconnect'],
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT) as process:
            try:
                wait_until(lambda: 'waiting: ' in read_text(said) or
                           process.poll() is not None, 'gdb has heard it', 30)
                begun = time.monotonic()
                wait_until(lambda: time.monotonic() > begun + patience + 2 and
                           read_text(said).count('waiting: ') >= 3 or
                           gave_up(read_text(said)) or process.poll() is not None,
                           'gdb has heard it three times, and for long', 30)
            except TestFailure:
                process.kill()
                raise
            finally:
                hold.off()
        text = read_text(said)
        equal(process.returncode, 0, text)
        check(text.count('waiting: ') >= 3 and not gave_up(text), text)
        check(re.search(r'\n *(\d+) +\d+ ', text), text)
        vm.qmp.cmd('cont')
        job_ends(vm, 'first')
        ends_whole(work, vm)


@limit(100)
def test_qmp_adds(work):
    """Without a job, too: out-of-band commands and HMP are answered."""
    path = os.path.join(work, 'hmp')
    with held_recorder(work, args=hmp_args(path)) as (vm, hold), Hmp(path) as hmp:
        hmp.read_prompt()
        hold.on()
        adding = vm.qmp.send('tt-checkpoint-add')
        timers_go_on(vm)
        hmp.send('info status')
        check('running' in hmp.read_prompt(), 'HMP is answered')
        timers_go_on(vm)
        hold.off()
        added = vm.qmp.answer(adding, 60)
        check(added['pinned'] and added['id'] in checkpoints(vm), f'{added}')
        deleting = vm.qmp.send('tt-checkpoint-delete', id=added['id'])
        vm.qmp.answer(deleting, 60)
        check(added['id'] not in checkpoints(vm), 'it is gone')
        ends_whole(work, vm)


@limit(100)
def test_job_is_cancelled(work):
    """A job that adds a checkpoint and is cancelled leaves none."""
    with held_recorder(work) as (vm, hold):
        before = checkpoints(vm)
        hold.on()
        vm.qmp.cmd('tt-checkpoint-add', job_id='a')
        timers_go_on(vm)
        check('already in use' in vm.qmp.error('tt-checkpoint-add', job_id='a'),
              'the same job again')
        vm.qmp.cmd('tt-checkpoint-add', job_id='b')
        vm.qmp.cmd('job-cancel', id='a')
        vm.qmp.cmd('job-cancel', id='b')
        hold.off()
        job_ends(vm, 'a', '')
        job_ends(vm, 'b', '')
        equal(checkpoints(vm), before, 'checkpoints')
        vm.qmp.cmd('tt-checkpoint-add', job_id='c')
        job_ends(vm, 'c')
        added = vm.qmp.event('TT_CHECKPOINT_ADDED')
        equal(added['job-id'], 'c', 'the only one that was added')
        vm.qmp.cmd('tt-checkpoint-delete', id=added['id'], job_id='d')
        job_ends(vm, 'd')
        equal(checkpoints(vm), before, 'checkpoints')
        check('no checkpoint 999' in vm.qmp.error('tt-checkpoint-delete', id=999,
                                                  job_id='e'), 'at once')
        equal(vm.qmp.cmd('query-jobs'), [], 'jobs')
        ends_whole(work, vm)


@limit(60)
def test_quit_during_a_job(work):
    """QEMU that is to end waits for the disk, and the run is whole."""
    with held_recorder(work) as (vm, hold):
        hold.on()
        vm.qmp.cmd('tt-checkpoint-add', job_id='a')
        timers_go_on(vm)
        vm.qmp.send('quit')
        hold.off()
        vm.wait(0)
    replay(work, vm.run)


@limit(60)
def test_goto_is_a_job(work):
    """A movement as a job: it ends where it was told to, and what is wrong with the
    place is said at once."""
    run = record(work, guest_args(work, 'hlt', 'rounds=30'))
    with stopped_replay(work, run) as vm:
        end = info(vm)['end']
        place = vm.qmp.cmd('tt-goto', position=end // 2, job_id='there')
        equal(place['reason'], 'none', 'of a movement that has begun')
        job = job_ends(vm, 'there')
        equal((job['type'], info(vm)['position']), ('tt-goto', end // 2), 'there')
        check('past the end' in vm.qmp.error('tt-goto', position=end + 1,
                                             job_id='x'), 'refused')
        equal(vm.qmp.cmd('query-jobs'), [], 'jobs')
        vm.qmp.cmd('tt-checkpoint-add', job_id='pin')
        job_ends(vm, 'pin')
        equal(vm.qmp.event('TT_CHECKPOINT_ADDED')['job-id'], 'pin', 'job')
        vm.qmp.send('quit')
        vm.wait(0)


@limit(60)
def test_save_is_a_job(work):
    """So is saving the window: its directory is told at once, and then it is whole."""
    with held_recorder(work, options=',last=60s,max-size=200M') as (vm, hold):
        dir_ = vm.qmp.cmd('tt-save', name='kept', job_id='s')['dir']
        job_ends(vm, 's')
        equal(vm.qmp.event('TT_SAVED')['dir'], dir_, 'directory')
        check(os.path.exists(os.path.join(dir_, 'manifest')), dir_)
        vm.qmp.send('quit')
        vm.wait(0)
    replay(work, dir_)


@limit(100)
def test_past_overtakes(work):
    """A checkpoint that waits for its turn is not made in the past that was entered
    meanwhile, and none is deleted there."""
    with held_recorder(work) as (vm, hold):
        hold.on()
        vm.qmp.cmd('tt-checkpoint-add', job_id='first')
        timers_go_on(vm)
        vm.qmp.cmd('tt-checkpoint-add', job_id='second')
        vm.qmp.cmd('tt-checkpoint-delete', job_id='third', id=checkpoints(vm)[0])
        timers_go_on(vm)
        check(not any(e['event'] == 'STOP' for e in vm.qmp.events), 'a stop before')
        going = vm.qmp.send('tt-goto', where='start')   # waits for the disk, too
        vm.qmp.event('STOP')            # by the movement, as nothing else stops it
        hold.off()
        vm.qmp.answer(going, 60)
        wait_until(lambda: {j['status'] for j in vm.qmp.cmd('query-jobs')} ==
                   {'concluded'}, 'the jobs end', 30)   # the first one either way
        job_ends(vm, 'second', 'the past of the recording is shown')
        job_ends(vm, 'third', 'the past of the recording is shown')
        vm.qmp.cmd('cont')              # in the past, and at its end in the present
        wait_until(lambda: info(vm)['mode'] == 'record', 'the present goes on', 60)
        timers_go_on(vm)
        ends_whole(work, vm)


@limit(120)
def test_vcpu_waits_for_a_disk(work):
    """While a vCPU waits for its flash memory to be written it turns QEMU's event loop,
    where no command may be carried out."""
    path = os.path.join(work, 'hmp')
    vm = recorder(work, [*guest_args(work, 'pflash', ENDLESS), *hmp_args(path)],
                  options=',checkpoint-interval=1000', qmp=1)
    with vm, Hmp(path) as hmp:
        wait_until(lambda: info(vm)['live'] and checkpoints(vm), 'it is recorded')
        hmp.read_prompt()
        for i in range(30):
            name = f'job{i}'
            vm.qmp.cmd('tt-checkpoint-add', job_id=name)
            hmp.send('tt checkpoint add')
            check(re.search(r'\n *(\d+) +\d+ ', hmp.read_prompt()), 'HMP adds one')
            job_ends(vm, name)
        equal(len(checkpoints(vm)), 61, 'checkpoints')
        ends_whole(work, vm)


@limit(120)
def test_panic_before_a_disk_write(work):
    """Nor is the mark of a panic made there: it has no place inside an instruction."""
    for i in range(5):
        run = record(work, guest_args(work, 'pflash', 'panics=1 rounds=20'), f'rec{i}',
                     options=',checkpoint-interval=1000')
        check('mark @panic-1' in run.vm.stderr, f'a mark: {run.vm.stderr}')
        replay(work, run)
