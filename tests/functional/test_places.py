# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a recorder puts its files: into its own run directory, wherever it was started,
and nowhere else, whatever happens to that directory meanwhile."""

import contextlib
import os
import signal

from guests import guest_args
from test_branch import refused
from test_full import add_full
from ttlib import (Qmp, Vm, check, equal, limit, one_sentence, read_text, record,
                   recorder, run_tool, tool, tt, wait_until)

ENDLESS = ('tsc', 'rounds=1000000000')


def disk(work, name='disk.img'):
    """An IDE disk, by a name that is relative to the work directory."""
    with open(os.path.join(work, name), 'wb') as out:
        out.truncate(1 << 20)
    return ['-drive', f'file={name},format=raw,if=ide']


def tree(path):
    return sorted(os.path.join(folder, name)
                  for folder, folders, files in os.walk(path)
                  for name in folders + files)


def refused_where_it_was(vm):
    for arguments in ({'full': True}, {}):
        said = vm.qmp.error('tt-checkpoint-add', **arguments)
        check('was deleted' in said, said)
    check('deleted or moved' in vm.qmp.error('tt-goto', position=1), 'tt-goto')


@limit(120)
def test_moved_run(work):
    """A recorder whose directory was moved puts no disk and no checkpoint into what has
    its name now, a plain directory or another recording, and shows no past of that."""
    args = guest_args(work, *ENDLESS)
    with recorder(work, [*args, *disk(work)], name='first', qmp=1, timeout=90,
                  options=',checkpoint-interval=0') as first:
        first.wait_serial('\n')
        os.rename(first.run, first.run + '.moved')
        os.mkdir(first.run)
        refused_where_it_was(first)
        equal(tree(first.run), [], 'what is in the new directory')
        with Vm(work, [*args, '-tt', f'record,dir={first.run}'], name='second',
                qmp=1) as second:
            second.wait_serial('\n')
            before = tree(first.run)
            refused_where_it_was(first)
            equal(tree(first.run), before, 'what is in the run of another')
            for vm in (first, second):
                vm.qmp.send('quit')
                vm.wait(0)
    for path in (first.run, first.run + '.moved'):
        run_tool(tool('tt'), 'check', path)


# A daemonized QEMU

def runs(pid):
    try:
        with open(f'/proc/{pid}/stat', encoding='ascii') as f:
            return f.read().rsplit(')', 1)[1].split()[0] != 'Z'
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def daemon(work, name, *args):
    """QMP of a QEMU that was started in WORK and has left it; it ends by quit."""
    paths = [os.path.join(work, f'{name}.{kind}') for kind in ('pid', 'qmp', 'serial')]
    with Vm(work, [*args, '-daemonize', '-pidfile', paths[0], '-qmp',
                   f'unix:{paths[1]},server=on,wait=off', '-serial',
                   f'file:{paths[2]}'], name=name, serial=False) as vm:
        vm.wait(0)
    pid = int(read_text(paths[0]))
    try:
        qmp = Qmp(paths[1])
        wait_until(lambda: read_text(paths[2]), 'what the guest says')
        yield qmp
        qmp.send('quit')
        wait_until(lambda: not runs(pid), f'the end of {name}')
    finally:
        if runs(pid):
            os.kill(pid, signal.SIGKILL)


@limit(120)
def test_daemonized(work):
    """A daemonized QEMU takes relative names from where it was started: of runs, traces,
    saved windows and disks, on its command line and in its monitor."""
    guest = guest_args(work, *ENDLESS)
    os.mkdir(os.path.join(work, 'sub'))
    at_root = sorted(os.listdir('/'))
    with daemon(work, 'first', *guest, *disk(work, 'sub/disk.img'), '-tt',
                'record,dir=sub/run,trace=sub/option.trace') as qmp:
        full = qmp.cmd('tt-checkpoint-add', 60, full=True)
        check(f'of \'{work}/sub/run/disks/' in full['notes'], f'{full}')
        qmp.cmd('tt-checkpoint-add', 60, full=True)
        qmp.cmd('tt-trace-stop')
        qmp.cmd('tt-trace-start', file='sub/qmp.trace')
        traced = qmp.cmd('tt-trace-stop')
        equal(traced['file'], f'{work}/sub/qmp.trace', 'the name of the trace')
    with daemon(work, 'second', *guest) as qmp:
        started = qmp.cmd('tt-record-start', 60, dir='sub/later', last='10')
        equal(started['dir'], f'{work}/sub/later', 'the run')
        equal(qmp.cmd('tt-save', 60, name='./sub/window')['dir'], f'{work}/sub/window',
              'the window')
        qmp.cmd('tt-record-stop', 60)
        fresh = qmp.cmd('tt-record-start', 60)['dir']
        equal(os.path.dirname(fresh), work, 'where a fresh directory is')
        qmp.cmd('tt-record-stop', 60)
    equal(sorted(os.listdir('/')), at_root, 'what is in the root directory')
    for path in ('sub/run', 'sub/later', 'sub/window', fresh):
        tt('check', os.path.join(work, path))
    for path in ('option', 'qmp'):
        tt('branches', os.path.join(work, f'sub/{path}.trace'), '--limit', '1')
    manifest = read_text(os.path.join(work, 'sub/later/manifest'))
    check(f'{work}\n' in manifest, f'the directory of the command: {manifest}')
    with Vm(work, [*guest, *disk(work, 'sub/disk.img'), '-tt',
                   f'branch,dir=sub/run,at={full["id"]},to=sub/branch,force=on'],
            name='branch', qmp=1) as vm:
        wait_until(lambda: vm.qmp.cmd('query-tt')['live'], 'the branch begins')
        vm.qmp.send('quit')
        vm.wait(0)


# Inside of a run

INSIDE = 'would be inside the run'


@limit(120)
def test_inside_of_a_run(work):
    """Nothing is put into the directory of a run, a finished one or one that is recorded:
    no run, no trace, no branch, no window."""
    guest = guest_args(work, *ENDLESS)
    done = record(work, guest_args(work, 'hlt', 'rounds=3'), name='done').dir
    os.symlink(done, os.path.join(work, 'link'))
    os.mkdir(os.path.join(done, 'sub'))
    with recorder(work, guest, name='live', qmp=1, options=',last=10') as live:
        live.wait_serial('\n')
        for vm, run in ((live, live.run), (None, done)):
            before = tree(done)
            for i, option in enumerate((
                    f'record,dir={run}/in', f'record,dir={work}/other,trace={run}/t',
                    f'replay,dir={done},trace={run}/t')):
                args = guest if option.startswith('record') else ['-display', 'none']
                with Vm(work, [*args, '-tt', option], name=f'no{i}') as no:
                    no.wait(1)
                check(INSIDE in one_sentence(no, option), no.stderr)
            equal(tree(done), before, 'what is in the finished run')
        for place in ('sub/in', 'marks'):
            said = live.qmp.error('tt-trace-start', file=f'{work}/link/{place}')
            check(INSIDE in said, said)
        check(INSIDE in live.qmp.error('tt-trace-start', file=f'{live.run}/t'), 'trace')
        check(INSIDE in live.qmp.error('tt-save', name=f'{done}/window'), 'window')
        live.qmp.cmd('tt-record-stop', 60)
        for directory in (f'{done}/in', f'{live.run}/in', f'{work}/link/sub/in'):
            said = live.qmp.error('tt-record-start', dir=directory)
            check(INSIDE in said, said)
        equal(tree(done), before, 'what is in the finished run')
        live.qmp.send('quit')
        live.wait(0)
    with Vm(work, [*guest, '-tt', 'record'], name='fresh', cwd=done) as fresh:
        fresh.wait(1)
    check(INSIDE in one_sentence(fresh, 'a fresh directory'), fresh.stderr)
    own = os.path.join(work, 'own')
    os.mkdir(own)
    with Vm(work, [*guest, '-tt', f'record,dir={own},trace={own}/t'], name='own-t') as vm:
        vm.wait(1)
    check(INSIDE in vm.stderr, vm.stderr)
    equal(os.listdir(own), [], 'what is left of a run that never was')
    with recorder(work, guest, name='parent', qmp=1) as parent:
        parent.wait_serial('\n')
        at = parent.qmp.cmd('tt-checkpoint-add', 60, full=True)['id']
        parent.qmp.send('quit')
        parent.wait(0)
    for to in (f'{done}/branch', f'{parent.run}/branch'):
        with Vm(work, [*guest, '-tt', f'branch,dir={parent.run},at={at},to={to}'],
                name='branch') as vm:
            vm.wait(1)
        check('would' in one_sentence(vm, to), vm.stderr)
        check(not os.path.exists(to), f'{to} was made')


# What is deleted meanwhile

@limit(150)
def test_deleted_files(work):
    """A recorder notices that its log, a part of it, pages or checkpoints were deleted or
    moved: one warning, and the recording is not whole; brought back in time, it is."""
    guest = guest_args(work, *ENDLESS)
    for name, options in (('log', ''), ('pages', ''), ('checkpoints', ''),
                          ('log.000001', ',last=60')):
        with recorder(work, guest, name=f'no-{name}', qmp=1, options=options) as vm:
            vm.wait_serial('\n')
            path = os.path.join(vm.run, name)
            os.rename(path, path + '.away')
            wait_until(lambda: f"'{name}' is no longer in the run directory" in vm.stderr,
                       'the warning')
            ended = vm.qmp.cmd('tt-record-stop', 60)
            equal(ended['whole'], False, f'whole without {name}')
            lines = [line for line in vm.stderr.splitlines() if 'warning' in line]
            equal(len(lines), 2, f'warnings ({vm.stderr})')
            check('is gone' in lines[1] or
                  f"is incomplete: '{name}' was deleted" in lines[1], lines[1])
    for name in ('log', 'pages'):
        with recorder(work, guest, name=f'{name}-back', qmp=1) as vm:
            vm.wait_serial('\n')
            path = os.path.join(vm.run, name)
            os.rename(path, path + '.away')
            wait_until(lambda: f"'{name}' is no longer in the run directory" in vm.stderr,
                       'the warning')
            os.rename(path + '.away', path)
            check(vm.qmp.cmd('tt-record-stop', 60)['whole'], f'{name} is back')
        tt('check', vm.run)
    with recorder(work, guest, name='quit', qmp=1) as vm:
        vm.wait_serial('\n')
        os.unlink(os.path.join(vm.run, 'log'))
        vm.qmp.send('quit')
        vm.wait(0)
    check('is gone: it was deleted' in vm.stderr and 'tt: recorded' not in vm.stderr,
          vm.stderr)


# Names on a terminal

def test_control_characters(work):
    """Control characters of names do not reach the terminal."""
    name = os.path.join(work, 'a\033[31m\007b\nc.run')
    shown = os.path.join(work, 'a?[31m?b?c.run')
    with Vm(work, [*guest_args(work, *ENDLESS), '-tt', f'record,dir={name},last=10'],
            name='rec', qmp=1) as vm:
        vm.wait_serial('\n')
        check(f'tt: record {shown}\n' in vm.qmp.hmp('info tt'), 'info tt')
        equal(vm.qmp.cmd('query-tt')['dir'], name, 'the name for programs')
        saved = vm.qmp.hmp('tt save', 60)
        check(f'saved in {shown}-save-1\n' in saved, saved)
        said = vm.qmp.error('tt-record-start', dir=f'{work}/x')
        check(f"'{shown}'" in said, said)
        said = vm.qmp.hmp('tt record stop', 60)
        check(f'bytes in {shown}\n' in said, said)
    check(all(line.isprintable() for line in vm.stderr.splitlines()), vm.stderr)
    check(f'recording into {shown}\n' in vm.stderr, vm.stderr)
    with Vm(work, [*guest_args(work, *ENDLESS), '-tt', f'record,dir={name}'],
            name='again') as vm:
        vm.wait(1)
    check(f"'{shown}' already contains a run" in one_sentence(vm, 'contains a run'),
          vm.stderr)


def test_control_characters_of_images(work):
    """Nor do those of disk images, whose names a full checkpoint has: a run may come from
    anybody."""
    name = 'a\033[31m\007.img'
    args = [*guest_args(work, *ENDLESS), *disk(work, name)]
    with recorder(work, args, qmp=1) as vm:
        vm.wait_serial('\n')
        point = add_full(vm)['id']
        vm.qmp.send('quit')
        vm.wait(0)
    check(all(line.isprintable() for line in vm.stderr.splitlines()), vm.stderr)
    image = os.path.join(work, name)
    with open(image, 'ab') as out:
        out.write(bytes(512))
    said = refused(work, args, vm.run, point)
    check("a?[31m?.img' has changed since" in said, said)
    os.remove(image)
    said = refused(work, args, vm.run, point, 'gone')
    check("a?[31m?.img': move it back" in said, said)
