#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tt tool promises, on runs made of the golden logs.

    check-tt-tool.py TT DUMP-LOG

Prints TAP.
"""
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ACCEPT = os.path.join(HERE, '..', 'golden', 'log-v1', 'accept')
REJECT = os.path.join(HERE, '..', 'golden', 'log-v1', 'reject')
TT, DUMP_LOG = sys.argv[1:3]
BIG_LOG = 8             # seed of a random log with some thousand events
MANIFEST = '''[run]
features=0
rules=0xf
tlb-entries=4096
uuid=10111213-1415-1617-1819-1a1b1c1d1e1f
accel=tcg
fence-interval=0
qemu-version=10.0.99
command-line=qemu-of-the-test
[cpu]
count=1
type=toy-cpu
words=
[blocks]
count=1
[block-0]
name=ram
size=1048576
max-size=1048576
flags=
'''


class Wrong(Exception):
    pass


def check(condition, what):
    if not condition:
        raise Wrong(what)


def tt(*args, status=0, **more):
    done = subprocess.run([TT, *args], capture_output=True, text=True,
                          timeout=60, **more)
    check(done.returncode == status, f'tt {" ".join(args)}: status '
          f'{done.returncode}, {done.stdout}{done.stderr}')
    if status == 1:
        lines = done.stderr.splitlines()
        check(lines and all(x.startswith('tt: ') for x in lines),
              f'complaint {done.stderr!r}')
    return done


def make_run(work, log, manifest=MANIFEST):
    path = os.path.join(work, 'run')
    os.makedirs(path)
    if log:
        shutil.copy(log, os.path.join(path, 'log'))
    if manifest:
        with open(os.path.join(path, 'manifest'), 'w', encoding='utf-8') as f:
            f.write(manifest)
    return path


def golden(name):
    return os.path.join(ACCEPT, name + '.log')


def random_log(work, seed):
    path = os.path.join(work, 'random.log')
    subprocess.run([DUMP_LOG, '--random', str(seed), path], check=True,
                   timeout=60)
    return path


def test_info_tells_what_was_recorded(work):
    run = make_run(work, golden('three-segments'))
    out = tt('info', run).stdout
    for text in ('qemu-of-the-test', 'QEMU 10.0.99', 'toy-cpu', '1.0 MiB',
                 '0 to 14', '3 in 3 segments', 'cleanly'):
        check(text in out, f'{text!r} is not in {out}')


def test_info_sends_no_control_characters(work):
    evil = MANIFEST.replace('qemu-of-the-test', 'a\x1b[31m\\n\x07b')
    run = make_run(work, golden('three-segments'), evil)
    out = tt('info', run).stdout
    check('a?[31m??b' in out and '\x1b' not in out, repr(out))


def test_log_prints_each_event_once(work):
    run = make_run(work, random_log(work, BIG_LOG))
    want = subprocess.run([DUMP_LOG, os.path.join(run, 'log')], check=True,
                          capture_output=True, text=True, timeout=60).stdout
    want = [x for x in want.splitlines() if x.startswith('event')]
    lines = tt('log', run).stdout.splitlines()
    check(len(want) == len(lines) > 500, f'{len(want)}, {len(lines)} events')
    for dumped, line in zip(want, lines):
        pos = dumped.split(' pos=')[1].split()[0]
        check(line.split()[0] == pos, f'{line} is not {dumped}')


def test_log_selects(work):
    run = make_run(work, random_log(work, BIG_LOG))
    lines = tt('log', run).stdout.splitlines()
    places = [int(x.split()[0]) for x in lines]
    for low, high in ((100, 400), (0, 1), (555, 555), (900, 10 ** 6)):
        # Bounds in the middle of the log, and where it has no event.
        a = places[min(low, len(places) - 1)]
        b = places[min(high, len(places) - 1)]
        want = [x for x, p in zip(lines, places) if a <= p < b]
        got = tt('log', run, '--from', hex(a), '--to', str(b)).stdout
        check(got.splitlines() == want, f'from {a} to {b}')
    want = [x for x in lines if x.split()[1] in ('tsc', 'ram')]
    check(len(want) > 20, 'the random log has too few events')
    got = tt('log', run, '--kind', 'tsc', '--kind', '18').stdout.splitlines()
    check(got == want, 'by kind')
    got = tt('--kind', 'tsc', 'log', '--kind', 'ram', run, '--limit',
             '7').stdout.splitlines()
    check(got == want[:7], 'limited')


def test_stats_accounts_for_every_byte(work):
    for seed in (BIG_LOG, 5, 6):
        where = os.path.join(work, str(seed))
        os.makedirs(where)
        run = make_run(where, random_log(where, seed))
        s = json.loads(tt('stats', run, '--json').stdout)
        for args in (('stats', '--json', run), ('--json', 'stats', run)):
            check(s == json.loads(tt(*args).stdout), f'order {args}')
        size = os.path.getsize(os.path.join(run, 'log'))
        check(s['bytes'] == size, f'{s["bytes"]} of {size} bytes')
        check(s['events_stored_bytes'] + s['payload_stored_bytes'] +
              s['header_bytes'] == size, 'the parts are not the whole')
        kinds = s['kinds'].values()
        for key, total in (('events', 'events'), ('bytes', 'events_raw_bytes'),
                           ('payload', 'payload_raw_bytes')):
            check(sum(k[key] for k in kinds) == s[total], f'sum of {key}')
        text = tt('stats', run).stdout
        check(f'{size:,}' in text, 'the table lacks the size')
        check(all(name in text for name in s['kinds']), 'a kind is missing')


def test_verify_says_what_it_proves(work):
    run = make_run(work, golden('three-segments'))
    out = tt('verify', run).stdout
    check('intact' in out and 'log only' in out, out)


def test_a_torn_run_is_fine_and_said_to_be_torn(work):
    for name in ('torn-body-cut', 'torn-not-closed', 'torn-head-only'):
        where = os.path.join(work, name)
        os.makedirs(where)
        run = make_run(where, golden(name))
        check('cut off' in tt('verify', run).stdout, name)
        check('cut off' in tt('info', run).stderr, name)
        check(json.loads(tt('stats', run, '--json').stdout)['torn'], name)


def test_every_damage_is_a_problem(work):
    for name in sorted(os.listdir(REJECT)):
        where = os.path.join(work, name)
        os.makedirs(where)
        run = make_run(where, os.path.join(REJECT, name))
        for command in ('verify', 'stats', 'log'):
            tt(command, run, status=1)


def test_a_run_in_pieces_is_a_problem(work):
    log = golden('one-event')
    for name, run_log, manifest, says in (
            ('no-log', None, MANIFEST, 'log'),
            ('no-manifest', log, None, 'manifest'),
            ('empty-manifest', log, '\n', 'features'),
            ('other-run', log, MANIFEST.replace('1e1f', '1e20'), 'different'),
            ('newer', log, MANIFEST.replace('features=0', 'features=8'),
             'newer')):
        where = os.path.join(work, name)
        os.makedirs(where)
        run = make_run(where, run_log, manifest)
        check(says in tt('info', run, status=1).stderr, name)
        check(says in tt('verify', run, status=1).stderr, name)
    tt('info', os.path.join(work, 'nowhere'), status=1)
    tt('info', log, status=1)           # a file is no run


def test_a_run_that_never_began_gets_one_sentence(work):
    run = make_run(work, golden('torn-head-only'), None)
    for command in ('info', 'verify'):
        said = tt(command, run, status=1).stderr
        check('nothing was recorded' in said and said.count('\n') == 1, said)


def test_wrong_usage_is_told_from_a_problem(work):
    run = make_run(work, golden('one-event'))
    for args in ((), ('info',), ('frob', run), ('info', run, 'x'),
                 ('log', run, '--from'), ('log', run, '--from', 'x'),
                 ('log', run, '--from', '-1'), ('log', run, '--kind', 'x'),
                 ('log', run, '--kind', '64'), ('log', run, '--frob', '1'),
                 ('stats', run, '--xml'), ('verify', run, '--all'),
                 ('log', run, '--json'), ('--from', '1', 'stats', run),
                 ('branch', run), ('branch', '--at', '1'),
                 ('branch', run, '--at'), ('branch', run, '--at', '1', '-x')):
        done = tt(*args, status=2)
        check('usage:' in done.stderr and not done.stdout, str(args))
    said = tt('log', run, '--json', status=2).stderr
    check('--json is an option of tt info and stats, not of: log' in said,
          said)
    check('usage:' in tt('--help').stdout, 'help')


def recorded(command, directory='/some where'):
    return MANIFEST.replace('command-line=qemu-of-the-test',
                            f'command-line={command}\ndirectory={directory}')


def printed_command(run, *args):
    """What tt branch --print would run: the directory and the arguments."""
    out = tt('branch', run, '--at', '@x', '--to', '/new,run', '--print', '--qemu',
             '/bin/true', *args).stdout
    words = shlex.split(out)
    check(words[0] == 'cd' and words[2] == '&&', out)
    return words[1], words[3:]


def test_a_branch_repeats_the_recorded_options(work):
    """But for those that would get in the way; values that look like options stay
    values."""
    run = make_run(work, golden('one-event'), recorded(
        "qemu -M pc -daemonize -s -S -append '-S  -qmp it''s' --gdb tcp::1 "
        '-qmp unix:/no/q,server=on -serial file:/a,b -chardev file,id=c,path=x '
        '-nodefaults -pidfile p -tt record,dir=a,,b,max-size=1G -m 64'))
    tt_value = f'branch,dir={run},at=@x,to=/new,,run,max-size=1G'
    where, words = printed_command(run, '--', '-S', '-m', '1 2')
    check(where == '/some where', where)
    check(words == [
        '/bin/true', '-M', 'pc', '-append', '-S  -qmp its', '-chardev',
        'file,id=tt-file0,path=/a,,b,append=on', '-serial', 'chardev:tt-file0',
        '-chardev', 'file,id=c,path=x,append=on', '-nodefaults', '-m', '64',
        '-tt', tt_value, '-S', '-m', '1 2'], f'{words}')
    _, words = printed_command(run, '--without', 'chardev', '--without',
                               '-serial')
    check(words == ['/bin/true', '-M', 'pc', '-append', '-S  -qmp its',
                    '-nodefaults', '-m', '64', '-tt', tt_value], f'{words}')


def test_a_branch_takes_no_socket_that_is_in_use(work):
    path = os.path.join(work, 's')
    run = make_run(work, golden('one-event'), recorded(
        'qemu -serial unix:s,server=on,wait=off', work))
    args = ('branch', run, '--at', '1', '--print', '--qemu', '/bin/true')
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        said = tt(*args, status=1).stderr
        check('--without -serial' in said and said.count('\n') == 1, said)
    tt(*args)                               # nobody listens any more


def test_an_old_run_cannot_be_repeated(work):
    run = make_run(work, golden('one-event'))
    said = tt('branch', run, '--at', '1', status=1).stderr
    check('older TTVM' in said and said.count('\n') == 1, said)


def test_the_tree_of_branches_is_shown(work):
    """Parents upwards, also one that is gone; branches beside the run and beside
    its parents."""
    def run_at(path, uuid, parent=None, parent_uuid='00'):
        text = MANIFEST.replace('1c1d1e1f', '1c1d1e' + uuid)
        if parent:
            text = text.replace('features=0', 'features=1') + (
                f'[parent]\npath={parent}\nuuid=10111213-1415-1617-1819-'
                f'1a1b1c1d1e{parent_uuid}\ncheckpoint=3\nposition=4567\n')
        path = os.path.join(work, path)
        os.makedirs(path)
        with open(os.path.join(path, 'manifest'), 'w') as out:
            out.write(text)
        shutil.copy(golden('one-event'), os.path.join(path, 'log'))
        return path

    top = run_at('top', '1f')
    middle = run_at('middle', '2f', '../top', '1f')
    leaf = run_at('other/leaf', '3f', middle, '2f')
    lost = run_at('lost', '4f', '../nothing', '5f')
    # The golden log is of one uuid only: the others are asked for as JSON of top.
    s = json.loads(tt('info', top, '--json').stdout)
    check(s['parents'] == [] and s['full'] == [], f'{s}')
    check(s['branches'] == [{'path': middle, 'checkpoint': 3,
                             'position': 4567}], f'{s}')
    check(f'Branches:   {middle}, from checkpoint 3, position 4,567' in
          tt('info', top).stdout, 'text')
    for path, uuid in ((leaf, '3f'), (lost, '4f')):
        manifest = os.path.join(path, 'manifest')
        with open(manifest) as file:
            text = file.read()
        with open(manifest, 'w') as file:
            file.write(text.replace(f'1c1d1e{uuid}\n', '1c1d1e1f\n', 1))
    s = json.loads(tt('info', leaf, '--json').stdout)
    check([(p['path'], p['found']) for p in s['parents']] ==
          [(middle, True), (top, True)], f'{s}')
    said = tt('info', lost).stdout
    check('nothing, checkpoint 3, position 4,567 (not found there)' in said,
          said)


def test_a_reader_that_leaves_is_no_error(work):
    run = make_run(work, random_log(work, BIG_LOG))
    done = subprocess.run(f'"{TT}" log "{run}" | head -n 1', shell=True,
                          capture_output=True, text=True, timeout=60)
    check(done.stdout.count('\n') == 1 and not done.stderr, done.stderr)


def test_output_that_cannot_be_written_is_a_problem(work):
    if not os.path.exists('/dev/full'):
        return 'needs /dev/full'
    run = make_run(work, golden('one-event'))
    with open('/dev/full', 'w', encoding='utf-8') as full:
        done = subprocess.run([TT, 'log', run], stdout=full, text=True,
                              stderr=subprocess.PIPE, timeout=60)
    check(done.returncode == 1 and 'cannot write' in done.stderr, done.stderr)
    return None


def main():
    tests = [(n, f) for n, f in globals().items() if n.startswith('test_')]
    failed = 0
    print(f'1..{len(tests)}')
    for number, (name, run) in enumerate(tests, 1):
        name = name[5:].replace('_', '-')
        try:
            with tempfile.TemporaryDirectory() as work:
                skip = run(work)
            print(f'ok {number} {name}' + (f' # SKIP {skip}' if skip else ''))
        except Wrong as e:
            failed += 1
            print(f'not ok {number} {name}')
            print('# ' + str(e).replace('\n', '\n# '))
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
