#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tt tool promises, on runs made of the golden logs.

    check-tt-tool.py TT DUMP-LOG KILL-AT FORGE-POINTS

Prints TAP.
"""
import fcntl
import json
import os
import random
import resource
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ACCEPT = os.path.join(HERE, '..', 'golden', 'log-v1', 'accept')
REJECT = os.path.join(HERE, '..', 'golden', 'log-v1', 'reject')
TT, DUMP_LOG, KILL_AT, FORGE_POINTS = (os.path.abspath(x) for x in sys.argv[1:5])
BIG_LOG = 8             # seed of a random log with some thousand events
MANIFEST = '''[run]
features=0
rules=0x3d
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
    if status == 1 and '--json' not in args:
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


def random_run(work, manifest=MANIFEST):
    """A run of a random log, with the manifest's identity put right."""
    log = random_log(work, BIG_LOG)
    uuid = read(log)[40:56].hex()
    parts = [uuid[a:b] for a, b in ((0, 8), (8, 12), (12, 16), (16, 20),
                                    (20, 32))]
    return make_run(work, log, manifest.replace(
        '10111213-1415-1617-1819-1a1b1c1d1e1f', '-'.join(parts)))


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
                 '0 to 14', '3 in 3 segments', 'cleanly',
                 'no checkpoints: a replay makes its own'):
        check(text in out, f'{text!r} is not in {out}')
    for command in 'log', 'console':
        check(not tt(command, run, '--from', '14').stderr, f'{command} up to the end')
        done = tt(command, run, '--from', '15')
        check(not done.stdout and done.stderr == 'tt: note: --from 15 is behind the end of '
              'the run, position 14\n', f'{done}')


def test_info_sends_no_control_characters(work):
    evil = MANIFEST.replace('qemu-of-the-test', 'a\x1b[31m\\n\x07b\u009b1m')
    run = make_run(work, golden('three-segments'), evil)
    out = tt('info', run).stdout
    check('a?[31m??b??1m' in out and '\x1b' not in out and '\u009b' not in out,
          repr(out))
    out = tt('info', run, '--json').stdout
    check('a\\u001b[31m\\u000a\\u0007b\\u009b1m' in out and out.strip().isprintable() and
          json.loads(out), repr(out))


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
    got = tt('log', '--kind', 'tsc', '--kind=ram', run, '--limit',
             '7').stdout.splitlines()
    check(got == want[:7], 'limited')


def test_time_lies_between_two(work):
    """The nearest times at or before a position and after it, one of which may be the
    guest's look at its counter; around a halt there are two, and what lies before it does
    not get its time."""
    run = make_run(work, golden('times'))
    for pos, ns, tsc, earlier, later in (
            (100, 1000000, 5000, 100, 150), (125, 1275000, 5550, 100, 150),
            (150, 1550000, 6100, 150, 300), (225, 2275000, 7550, 150, 300),
            (300, 3000000, 9000, 300, 400),
            (399, 3990000, 9990, 300, 400), (400, 9000000, 15000, 400, 501),
            (451, 9504950, 15504, 400, 501)):
        got = json.loads(tt('time', run, str(pos), '--json').stdout)
        check((got['host_ns'], got['tsc'], got['earlier']['position'],
               got['later']['position']) == (ns, tsc, earlier, later), f'{pos}: {got}')
        check(('read' in got) == (pos >= 150), f'{got}')
    check(got['read'] == {'position': 150, 'tsc': 6100}, f'{got}')
    got = json.loads(tt('time', run, '501', '--json').stdout)
    check(got['later'] is None and got['host_ns'] == 10000000, f'{got}')
    text = tt('time', run, '350').stdout
    check('0.003500 s' in text and '10000.00 ns an instruction' in text, text)
    text = tt('time', run, '501').stdout
    check('or later' in text and 'the log has no later time' in text, text)
    check('outside the run' in tt('time', run, '502', status=2).stderr, 'no refusal')
    os.makedirs(os.path.join(work, 'old'))
    old = make_run(os.path.join(work, 'old'), golden('three-segments'))
    got = json.loads(tt('time', old, '9', '--json').stdout)
    check('tsc' not in got and got['host_ns'] == 692, f'{got}')


def test_stats_accounts_for_every_byte(work):
    for seed in (BIG_LOG, 5, 6):
        where = os.path.join(work, str(seed))
        os.makedirs(where)
        run = make_run(where, random_log(where, seed))
        s = json.loads(tt('stats', run, '--json').stdout)
        for args in (('stats', '--json', run), ('stats', '--json', '--', run)):
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


def test_check_says_what_it_proves(work):
    run = make_run(work, golden('three-segments'))
    out = tt('check', run).stdout
    check('intact' in out and 'Nothing was executed' in out, out)
    s = json.loads(tt('check', run, '--json').stdout)
    check(s['intact'] and s['segments'] == 3 and not s['problems'], f'{s}')


def test_a_torn_run_is_fine_and_said_to_be_torn(work):
    for name in ('torn-body-cut', 'torn-not-closed'):
        where = os.path.join(work, name)
        os.makedirs(where)
        run = make_run(where, golden(name))
        check('cut off' in tt('check', run).stdout, name)
        check('cut off' in tt('info', run).stderr, name)
        check(json.loads(tt('stats', run, '--json').stdout)['torn'], name)


def test_bytes_behind_the_end_are_not_a_cut(work):
    """tt info and tt check say the same of a run that ended well, in text and JSON."""
    run = make_run(work, golden('three-segments'))
    clean = json.loads(tt('info', run, '--json').stdout)
    check(clean['log_damage'] is None, f'{clean}')
    for garbage in (b'garbage', bytes(300), b'TTVMSEG', b'x' * 300):
        shutil.copy(golden('three-segments'), os.path.join(run, 'log'))
        with open(os.path.join(run, 'log'), 'ab') as file:
            file.write(garbage)
        said = {}
        for command in 'info', 'check':
            text = tt(command, run, status=1)
            check('bytes after the end of the log' in text.stderr, f'{command}: {text}')
            check('cut off' not in text.stderr + text.stdout, f'{command}: {text}')
            said[command] = json.loads(tt(command, run, '--json', status=1).stdout)
            check(not said[command]['torn'] and said[command]['end'] == clean['end'],
                  f'{command}: {said}')
        ended = [x for x in tt('info', run, status=1).stdout.splitlines() if 'Ended' in x]
        check('cleanly; bytes' in ended[0], f'{ended}')
        check(said['check']['problems'][0].startswith(said['info']['log_damage']) and
              not said['check']['intact'], f'{said}')


def test_a_run_without_a_segment_is_a_problem(work):
    run = make_run(work, golden('torn-head-only'))
    said = tt('check', run, status=1)
    check('nothing was recorded' in said.stderr and not said.stdout, f'{said}')
    s = json.loads(tt('check', run, '--json', status=1).stdout)
    check(not s['intact'] and len(s['problems']) == 1, f'{s}')


def test_damage_of_the_log_is_said_once(work):
    run = random_run(work)
    log = bytearray(read(run, 'log'))
    log[log.rindex(b'TTVMSEG\n') + 20] ^= 1
    with open(os.path.join(run, 'log'), 'wb') as file:
        file.write(log)
    said = tt('check', run, status=1).stderr
    check(said.count('log, byte') == 1 and 'log: log' not in said, said)


def test_every_damage_is_a_problem(work):
    for name in sorted(os.listdir(REJECT)):
        where = os.path.join(work, name)
        os.makedirs(where)
        run = make_run(where, os.path.join(REJECT, name))
        for command in ('check', 'stats', 'log'):
            tt(command, run, status=1)


def test_a_run_in_pieces_is_a_problem(work):
    log = golden('one-event')
    for name, run_log, manifest, says in (
            ('no-log', None, MANIFEST, 'log'),
            ('no-manifest', log, None, 'manifest'),
            ('empty-manifest', log, '\n', 'features'),
            ('other-run', log, MANIFEST.replace('1e1f', '1e20'), 'different'),
            ('newer', log, MANIFEST.replace('features=0', 'features=1048576'),
             'newer')):
        where = os.path.join(work, name)
        os.makedirs(where)
        run = make_run(where, run_log, manifest)
        check(says in tt('info', run, status=1).stderr, name)
        check(says in tt('check', run, status=1).stderr, name)
    tt('info', os.path.join(work, 'nowhere'), status=1)
    tt('info', log, status=1)           # a file is no run


def test_a_run_that_never_began_gets_one_sentence(work):
    run = make_run(work, golden('torn-head-only'), None)
    for command in ('info', 'check'):
        said = tt(command, run, status=1).stderr
        check('nothing was recorded' in said and said.count('\n') == 1, said)


def test_log_speaks_json(work):
    run = make_run(work, random_log(work, BIG_LOG))
    lines = tt('log', run).stdout.splitlines()
    events = [json.loads(x) for x in
              tt('log', run, '--json', '--data').stdout.splitlines()]
    check(len(lines) == len(events), f'{len(lines)}, {len(events)}')
    for line, e in zip(lines, events):
        check(line.split()[0] == str(e['position']), f'{line}: {e}')
        check(len(e.get('data', '')) == 2 * e['length'], f'{e}')
    ram = [e for e in events if e['kind'] == 'ram']
    check(len(ram) > 3 and all(int(e['val'], 16) >= 0 for e in ram), 'no RAM events')
    bare = json.loads(tt('log', run, '--json', '--kind', 'ram', '--limit',
                         '1').stdout)
    check('data' not in bare and bare['kind'] == 'ram', f'{bare}')


def test_wrong_usage_is_told_from_a_problem(work):
    run = make_run(work, golden('one-event'))
    for args in ((), ('info',), ('frob', run), ('info', run, 'x'),
                 ('log', run, '--from'), ('log', run, '--from', 'x'),
                 ('log', run, '--from', '-1'), ('log', run, '--kind', 'x'),
                 ('log', run, '--kind', '64'), ('log', run, '--frob', '1'),
                 ('stats', run, '--xml'), ('verify', run, '--all'),
                 ('log', run, '--data'), ('log', run, '--limit', '1',
                                          '--limit', '2'),
                 ('stats', '--from', '1', run), ('info', ''),
                 ('info', run, '--json=1'), ('--json', 'info', run),
                 ('time', run), ('time', run, 'x'),
                 ('verify', run, '-j', '0'), ('verify', run, '-j', 'x'),
                 ('pack', run), ('pack', run, 'f', '--scrub', '--with-host'),
                 ('unpack', run), ('branch', run), ('branch', '--at', '1'),
                 ('branch', run, '--at'), ('branch', run, '--at', '1', '-x'),
                 ('branch', run, '--at', '@')):
        done = tt(*args, status=2)
        check('usage:' in done.stderr and not done.stdout, str(args))
        check(done.stderr.startswith('tt: '), done.stderr)
    said = tt('stats', run, '--from', '1', status=2).stderr
    check('tt stats has no option --from' in said, said)


COMMANDS = ('info', 'log', 'stats', 'check', 'verify', 'find', 'origin', 'pack',
            'unpack', 'branch', 'trace', 'branches', 'compare-traces',
            'syscalls', 'compare', 'disk', 'page', 'group', 'hub', 'watch', 'run-plugin',
            'term', 'time', 'console', 'mcp')


def completed(work, *words):
    """What is offered for the last of the words."""
    line = ' '.join(shlex.quote(x) for x in ('tt', *words))
    return subprocess.run(
        ['bash', '-c', f'. "$0"; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _tt; '
         'echo "${COMPREPLY[@]}"', os.path.abspath(os.path.join(
             HERE, '..', '..', 'scripts', 'tt-completion.bash'))], check=True,
        text=True, cwd=work, capture_output=True, timeout=60).stdout.split()


def test_each_command_explains_itself(work):
    """Help, man page and completion name every command and every option."""
    top = os.path.join(HERE, '..', '..')
    with open(os.path.join(top, 'docs', 'man', 'tt.1')) as file:
        man = file.read().replace('\\-', '-')
    check(' tt branch RUN --at ID|@NAME [--to' in tt('--help').stdout, 'needed')
    check(tt('--version').stdout.startswith('tt 1'), 'version')
    out = tt('--help').stdout
    check(out == tt('help').stdout and 'Exit status' in out, out)
    for command in COMMANDS:
        check(f' tt {command} ' in out, f'{command} is not in the help')
        said = tt(command, '--help').stdout
        check(said == tt('help', command).stdout, f'help {command}')
        check(f'.B tt {command}\n' in man, f'{command} is not in the man page')
        options = [x.split()[0] for x in said.splitlines()
                   if x.startswith('  -')]
        offered = completed(work, command, '-')
        check(sorted(options) == sorted(offered), f'{command}: {options} in the '
              f'help, {offered} in the completion')
        for option in options:
            check(option == '--help' or f'{option}' in man,
                  f'{option} of {command} is not in the man page')


def test_help_is_completed_by_commands(work):
    os.makedirs(os.path.join(work, 'a-directory'))
    check(completed(work, 'help', '') == list(COMMANDS), completed(work, 'help', ''))
    check(completed(work, 'help', 'br') == ['branch', 'branches'], 'by letters')
    check(completed(work, 'help', 'info', '') == [], 'a second one')
    check(completed(work, '') == [*COMMANDS, 'help', '--version'], 'the first word')
    check(completed(work, 'info', '') == ['a-directory'], 'a run')


def test_a_run_may_have_any_name(work):
    for name in ('--json', '-x', 'a b', 'a,b=c', '\x1b[31m', '--', "it's"):
        make_run(os.path.join(work, 'x'), golden('three-segments'))
        os.rename(os.path.join(work, 'x', 'run'), os.path.join(work, name))
        for args in (('info', '--', name), ('check', '--json', '--', name),
                     ('log', os.path.join('.', name))):
            out = tt(*args, cwd=work).stdout
            check('\x1b' not in out, f'{args}: {out!r}')
        said = tt('info', '--', name + 'not', status=1, cwd=work).stderr
        check('\x1b' not in said, repr(said))


def read(*path):
    with open(os.path.join(*path), 'rb') as file:
        return file.read()


def test_a_pack_is_the_run_without_the_host(work):
    run = random_run(work, recorded('secret --options').replace(
        'accel=tcg', 'accel=tcg\nhost=my-machine'))
    with open(os.path.join(run, 'marks'), 'w', encoding='utf-8') as file:
        file.write('12 here\n')
    pack, back = os.path.join(work, 'p.ttrun'), os.path.join(work, 'back')
    tt('pack', run, pack)
    check(os.stat(pack).st_mode & 0o77 == 0, 'others may read the pack')
    for word in (b'secret', b'my-machine', b'/some where'):
        check(word not in read(pack), f'{word} is in the pack')
    tt('unpack', pack, back)
    check(os.stat(back).st_mode & 0o77 == 0, 'others may read the run')
    check(sorted(os.listdir(back)) == ['log', 'manifest', 'marks'],
          f'{os.listdir(back)}')
    for name in ('log', 'marks'):
        check(read(run, name) == read(back, name), name)
    s, b = (json.loads(tt('info', x, '--json').stdout) for x in (run, back))
    check(s['command'] == 'secret --options' and s['host'] == 'my-machine', f'{s}')
    check([b[k] for k in ('command', 'directory', 'host')] == [''] * 3, f'{b}')
    check(all(s[k] == b[k] for k in s if k not in
              ('run', 'command', 'directory', 'host')), f'{b} is not {s}')
    tt('check', back)
    tt('pack', run, pack, status=1)             # never over another file
    tt('unpack', pack, back, status=1)
    whole = os.path.join(work, 'whole.ttrun')
    tt('pack', run, whole, '--with-host')
    check(b'secret --options' in read(whole), 'the command is left out')


def test_a_scrubbed_pack_has_the_shape_only(work):
    run = random_run(work)
    pack, back = os.path.join(work, 'p.ttrun'), os.path.join(work, 'back')
    check('cannot be replayed' in tt('pack', run, pack, '--scrub').stdout, '?')
    tt('unpack', pack, back)
    tt('check', back)
    check(json.loads(tt('info', back, '--json').stdout)['scrubbed'], 'not said')
    said = tt('verify', back, '--qemu', '/bin/true', status=1).stderr
    check('scrubbed' in said and said.count('\n') == 1, said)
    before, after = (
        [json.loads(x) for x in
         tt('log', x, '--json', '--data').stdout.splitlines()]
        for x in (run, back))
    check(len(before) == len(after), 'events')
    for b, a in zip(before, after):
        for key in ('position', 'kind', 'nested', 'cpu', 'size', 'length'):
            check(a[key] == b[key], f'{key}: {a} of {b}')
        check(a['kind'] in ('block', 'ram-fill') or
              not a.get('data', '').strip('0'), f'data of {a}')
        check(a['kind'] in ('ram', 'intr', 'block', 'ram-fill', 'cpu-flag',
                            'cpu-state', 'finish') or a['val'] == '0x0', f'{a}')


def test_a_broken_pack_leaves_nothing(work):
    run = random_run(work)
    pack, back = os.path.join(work, 'p.ttrun'), os.path.join(work, 'back')
    tt('pack', run, pack)
    good = read(pack)
    for at in list(range(0, 400, 7)) + [len(good) // 2, len(good) - 3]:
        broken = bytearray(good)
        broken[at] ^= 16
        for bytes_ in (broken, good[:at], good[:-1] if at == 0 else good + b'x'):
            with open(pack, 'wb') as file:
                file.write(bytes_)
            tt('unpack', pack, back, status=1)
            check(not os.path.exists(back), f'byte {at} leaves something')
    with open(pack, 'wb') as file:
        file.write(good)
    said = tt('unpack', pack, os.path.join(work, 256 * 'x'), status=1).stderr
    check('cannot create' in said and 'too long' in said, said)     # not: cannot rename
    check(sorted(os.listdir(work)) == ['p.ttrun', 'random.log', 'run'],
          f'{os.listdir(work)}')


def test_a_pack_of_what_is_damaged_says_so(work):
    run = random_run(work)
    log = bytearray(read(run, 'log'))
    log[len(log) // 2] ^= 4
    with open(os.path.join(run, 'log'), 'wb') as file:
        file.write(log)
    with open(os.path.join(run, 'marks'), 'w', encoding='utf-8') as file:
        file.write('no mark\n')
    pack, back = os.path.join(work, 'p.ttrun'), os.path.join(work, 'back')
    wrong = json.loads(tt('check', run, '--json', status=1).stdout)['problems']
    check(len(wrong) > 2 and any('marks' in x for x in wrong), f'{wrong}')
    said = tt('pack', run, pack, status=1).stderr
    check(said == ''.join(f'tt: {x}; it is packed as it is\n' for x in wrong), said)
    tt('unpack', pack, back)
    for name in ('log', 'marks'):
        check(read(run, name) == read(back, name), name)
    os.unlink(pack)
    s = json.loads(tt('pack', run, pack, '--json', status=1).stdout)
    check(s['damaged'] == wrong, f'{s}')


def test_a_pack_says_what_it_leaves_out(work):
    """'marks' that is no file; and with checkpoints that cannot be read, what does
    without them."""
    run = random_run(work)
    pack, back = os.path.join(work, 'p.ttrun'), os.path.join(work, 'back')
    marks = os.path.join(run, 'marks')
    for make, gone in (os.mkdir, os.rmdir), (os.mkfifo, os.unlink):
        make(marks)
        said = tt('pack', run, pack, status=1).stderr
        check(said == f"tt: marks: '{marks}' is not a regular file; it is left out\n",
              said)
        tt('unpack', pack, back)
        check(sorted(os.listdir(back)) == ['log', 'manifest'], f'{os.listdir(back)}')
        shutil.rmtree(back)
        os.unlink(pack)
        s = json.loads(tt('pack', run, pack, '--json', status=1).stdout)
        check(len(s['damaged']) == 1 and marks in s['damaged'][0], f'{s}')
        os.unlink(pack)
        tt('pack', run, pack, '--scrub')
        os.unlink(pack)
        gone(marks)
    paths = [os.path.join(run, x) for x in ('pages', 'checkpoints')]
    for odd, other in (paths, paths[::-1]):
        for make, gone in (os.mkdir, os.rmdir), (os.mkfifo, os.unlink):
            make(odd)
            with open(other, 'wb'):
                pass
            said = tt('pack', run, pack, status=1).stderr
            check('cannot be packed' in said and '--no-checkpoints' in said and
                  said.count('\n') == 1 and not os.path.exists(pack), said)
            tt('pack', run, pack, '--no-checkpoints')
            os.unlink(pack)
            gone(odd)
            os.unlink(other)


def test_a_limit_on_files_leaves_nothing(work):
    run = random_run(work)
    pack, back = os.path.join(work, 'p.ttrun'), os.path.join(work, 'back')
    tt('pack', run, pack)
    size = os.path.getsize(os.path.join(run, 'log')) // 2
    before = sorted(os.listdir(work))

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    for args in (('pack', run, pack + '2'), ('unpack', pack, back),
                 ('pack', run, pack + '2', '--scrub')):
        said = tt(*args, status=1, preexec_fn=limited).stderr
        check('ulimit -f' in said and said.count('\n') == 1, said)
        check(sorted(os.listdir(work)) == before, f'{os.listdir(work)}')


def kill_at_random(rng, most, *args):
    with subprocess.Popen([TT, *args], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        time.sleep(rng.uniform(0, most))
        process.kill()


def seconds_of(*args):
    began = time.monotonic()
    tt(*args)
    return time.monotonic() - began


def test_a_killed_pack_leaves_all_or_nothing(work):
    """Also of unpack: never what looks like a run whose end was cut off."""
    rng = random.Random(7)
    run = random_run(work)
    other = os.path.join(work, 'p.ttrun.log')
    with open(other, 'w', encoding='utf-8') as file:
        file.write('my own')
    pack, back = os.path.join(work, 'p.ttrun'), os.path.join(work, 'back')
    half = back + '.unpacking'
    most = 2 * seconds_of('pack', run, pack)
    os.unlink(pack)
    whole = 0
    for number in range(60):
        kill_at_random(rng, most, 'pack', run, pack, *(['--scrub'] * (number % 2)))
        left = set(os.listdir(work)) - {'random.log', 'run', 'p.ttrun.log'}
        check(left <= {'p.ttrun'}, f'{left}')
        if left:
            tt('unpack', pack, back)
            shutil.rmtree(back)
            os.unlink(pack)
            whole += 1
    check(0 < whole < 60, f'{whole} of 60 were whole')
    tt('pack', run, pack, '--scrub')
    check(read(other) == b'my own', 'a file beside the pack was overwritten')
    os.unlink(pack)
    tt('pack', run, pack)
    most = 2 * seconds_of('unpack', pack, back)
    shutil.rmtree(back)
    for number in range(60):
        kill_at_random(rng, most, 'unpack', pack, back)
        if os.path.exists(back):
            check(read(run, 'log') == read(back, 'log'), 'half a run')
            shutil.rmtree(back)
        elif os.path.exists(half):
            said = tt('unpack', pack, back, status=1).stderr
            check('delete it' in said and half in said, said)
            shutil.rmtree(half)


def killed_at(number, *args):
    """Kills tt before the call of that number that changes something. True: it came to
    its end."""
    done = subprocess.run([TT, *args], capture_output=True, text=True, timeout=60,
                          env={**os.environ, 'LD_PRELOAD': KILL_AT,
                               'TT_KILL_AT': str(number)})
    check(done.returncode in (0, -9), f'{done}')
    return done.returncode == 0


def test_half_of_a_run_is_not_taken_for_one(work):
    """Wherever unpack is killed: DIR is whole or not there, and what it leaves says
    what it is, until it is whole, too."""
    said = subprocess.run([TT, '--version'], capture_output=True, text=True, timeout=60,
                          env={**os.environ, 'LD_PRELOAD': KILL_AT})
    if said.returncode:
        return 'nothing can be loaded before a sanitizer'
    run = random_run(work)
    pack, back = os.path.join(work, 'p.ttrun'), os.path.join(work, 'back')
    half = back + '.unpacking'
    tt('pack', run, pack, '--with-host')
    n_half, number = 0, 1
    while not killed_at(number, 'unpack', pack, back):
        check(not os.path.exists(back), f'{number}: half a run')
        if os.path.exists(os.path.join(half, 'manifest')):
            check(read(run, 'log') == read(half, 'log'), f'{number}: half a run')
            tt('check', half)
        elif os.path.exists(half):
            is_marked = os.path.exists(os.path.join(half, 'manifest.unpacking'))
            for command in 'info', 'check', 'log', 'stats':
                said = tt(command, half, status=1).stderr
                check(not is_marked or 'an incomplete run' in said, said)
                check(said.count('\n') == 1, said)
            n_half += is_marked
        shutil.rmtree(half, ignore_errors=True)
        number += 1
    check(n_half > 5, f'{n_half} half runs')
    check(sorted(os.listdir(back)) == ['log', 'manifest'], f'{os.listdir(back)}')
    return None


def test_a_run_that_grows_is_not_cut_off(work):
    run = random_run(work)
    os.truncate(os.path.join(run, 'log'), os.path.getsize(os.path.join(run, 'log')) - 9)
    holder = os.open(run, os.O_RDONLY)
    for is_held in (True, False):
        fcntl.flock(holder, fcntl.LOCK_EX if is_held else fcntl.LOCK_UN)
        for command in ('info', 'check', 'stats'):
            done = tt(command, run)
            said = done.stdout + done.stderr
            check(('cut off' in said) != is_held, said)
            got = json.loads(tt(command, run, '--json').stdout)
            check(got['torn'] and got['recording'] == is_held, f'{got}')
    os.close(holder)


def recorded(command, directory='/some where'):
    return MANIFEST.replace('command-line=qemu-of-the-test',
                            f'command-line={command}\ndirectory={directory}')


FULL_UUID = 'e174167d-59e4-46ee-aa40-3a1b0ac51676'      # of a run that was recorded
FULL, FULL_POS = '3', 23992063


def full_run(work, manifest):
    """A run with a full checkpoint, which is at mark x, too."""
    run = make_run(work, golden('one-event'),
                   manifest.replace('10111213-1415-1617-1819-1a1b1c1d1e1f', FULL_UUID))
    parts = os.path.join(tempfile.mkdtemp(dir=work), 'branch')
    tt('unpack', os.path.join(HERE, '..', 'golden', 'runs', 'rules-3d-branch.ttrun'), parts)
    parent = os.path.join(parts, 'parent')
    shutil.copy(os.path.join(parent, 'pages'), run)
    subprocess.run([FORGE_POINTS, parent, os.path.join(run, 'checkpoints'), 'full'],
                   check=True, timeout=60)
    with open(os.path.join(run, 'marks'), 'w', encoding='ascii') as f:
        f.write(f'{FULL_POS} x\n5 early\n')
    return run


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
    run = full_run(work, recorded(
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


def test_a_term_puts_one_port_on_the_terminal(work):
    def ports(options):
        run = full_run(tempfile.mkdtemp(dir=work), recorded(f'qemu {options} -tt record'))
        words = shlex.split(tt('term', run, '--at', FULL, '--to', '/x', '--print', '--qemu',
                               '/bin/true').stdout)
        check(words[words.index('-tt') + 1].endswith(',undo=console'), f'{words}')
        return [words[i + 1] for i, word in enumerate(words) if word == '-serial']

    for options, wanted in (('-m 64', ['mon:stdio']), ('-nographic', ['mon:stdio']),
                            ('-serial unix:/no/x', ['mon:stdio']),
                            ('-serial none -serial file:a', ['none', 'mon:stdio']),
                            ('-serial null -serial stdio', ['mon:stdio', 'null']),
                            ('-nodefaults -serial null', ['mon:stdio']),
                            ('-m 64 -tt record,undo=console', ['mon:stdio'])):
        seen = ports(options)
        check(seen == wanted, f'{options}: {seen}')
    for options, why in (('-nodefaults', 'no serial port'),
                         ('-serial none', 'no serial port'),
                         ('-chardev stdio,id=c -serial chardev:c', 'takes this terminal')):
        run = full_run(tempfile.mkdtemp(dir=work), recorded(f'qemu {options}'))
        said = tt('term', run, '--at', FULL, '--to', '/x', '--print', '--qemu', '/bin/true',
                  status=1).stderr
        check(why in said, said)


def test_a_printed_command_drives_no_terminal(work):
    odd = "-\x1b[31m'\\\\'1\x07\u0085\u009b"
    evil = recorded(f'qemu -append "{odd}" -name plain', '/some\x1bwhere')
    run = full_run(work, evil)
    out = tt('branch', run, '--at', FULL, '--to', '/x', '--print', '--qemu',
             '/bin/true').stdout
    check(out.strip().isprintable(), repr(out))
    args = out.split("'/bin/true' ")[1]
    words = subprocess.run(['bash', '-c', f"printf '%s\\0' {args}"], check=True,
                           capture_output=True, text=True, timeout=60).stdout
    words = words.split('\0')
    check(words[:4] == ['-append', odd.replace('\\\\', '\\'), '-name', 'plain'],
          f'{words}')


def test_an_option_that_was_not_recorded_cannot_be_left_out(work):
    run = full_run(work, recorded('qemu -m 64 -nodefaults'))
    args = ('branch', run, '--at', FULL, '--print', '--qemu', '/bin/true')
    for name in ('foo', '-smp', '64'):
        said = tt(*args, '--without', 'm', '--without', name, status=2).stderr
        check('has no option' in said, said)
    tt(*args, '--without', 'm', '--without', '--m')


def test_a_branch_takes_no_socket_that_is_in_use(work):
    path = os.path.join(work, 's')
    run = full_run(work, recorded('qemu -serial unix:s,server=on,wait=off', work))
    args = ('branch', run, '--at', FULL, '--print', '--qemu', '/bin/true')
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        said = tt(*args, status=1).stderr
        check('--without -serial' in said and said.count('\n') == 1, said)
    tt(*args)                               # nobody listens any more


def test_what_is_printed_could_be_run(work):
    """What QEMU would refuse of the new run is refused with --print, too."""
    run = full_run(work, recorded('qemu -m 64'))
    new, empty = os.path.join(work, 'new'), os.path.join(work, 'empty')
    os.mkdir(empty)
    for command in ('branch', run, '--at', FULL), ('term',):
        options = () if run in command else ('--', '-m', '64')
        for to, why in ((run, 'already contains a run'), (TT, 'is not a directory'),
                        (work, 'contains other files'),
                        (os.path.join(run, 'x'), 'inside the run')):
            said = tt(*command, '--to', to, '--print', '--qemu', '/bin/true', *options,
                      status=1).stderr
            check(why in said and said.count('\n') == 1, f'{to}: {said}')
        for to in (new, empty):
            tt(*command, '--to', to, '--print', '--qemu', '/bin/true', *options)
        said = tt(*command, '--to', new, '--print', '--qemu', '/bin/none', *options,
                  status=1).stderr
        check('is not an executable program' in said, said)
    for at, why in (('99', 'has no checkpoint 99'), ('@y', "no mark 'y'"),
                    ('@early', 'no full checkpoint at position 5'),
                    ('x', "not 'x'")):
        said = tt('branch', run, '--at', at, '--to', new, '--print', '--qemu', '/bin/true',
                  status=1).stderr
        check(why in said and said.count('\n') == 1, f'{at}: {said}')
    os.unlink(os.path.join(run, 'pages'))
    said = tt('branch', run, '--at', FULL, '--print', '--qemu', '/bin/true', status=1).stderr
    check('checkpoints are lost' in said and "pages' is missing" in said, said)


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


FAKE_QEMU = """#!/bin/sh
echo "tt-verify interval from=0 to=50 how=equal"
case "$2" in
*bad*) echo "tt: diverged at position 77: something"
    echo "tt-verify diverged position=77 pc=0xffff1234 after=60 text=a=b is wrong"
    echo "tt-verify register cpu=1 name=CS recorded=0008_00 replayed=none"
    echo "tt-verify a-new-word with=what"
    echo "tt-verify interval from=50 to=100 how=diverged"
    echo "tt-verify end code=3 whole=1"; exit 3 ;;
*gone*) echo "it crashed"; kill -9 $$ ;;
*) echo "tt-verify end code=0 whole=1" ;;
esac
"""


def test_verify_tells_what_qemu_says(work):
    qemu = os.path.join(work, 'qemu')
    with open(qemu, 'w', encoding='utf-8') as file:
        file.write(FAKE_QEMU)
    os.chmod(qemu, 0o755)
    symbols = os.path.join(work, 'System.map')
    with open(symbols, 'w', encoding='utf-8') as file:
        file.write('0000 A zero\nffff1200 T before\nffff1300 T behind\nrubbish\n')
    for name, status in (('good', 0), ('bad', 3), ('gone', 1)):
        os.makedirs(os.path.join(work, name))
        run = make_run(os.path.join(work, name), golden('three-segments'))
        args = (run, '--qemu', qemu, '--symbols', symbols)
        s = json.loads(subprocess.run([TT, 'verify', *args, '--json'],
                                      capture_output=True, timeout=60).stdout)
        check((s['exact'], s['complete']) == (name != 'bad', name != 'gone'),
              f'{s}')
        done = subprocess.run([TT, 'verify', *args], capture_output=True,
                              text=True, timeout=60)
        check(done.returncode == status, f'{done}')
        if name == 'good':
            check('replays exactly' in done.stdout, done.stdout)
            check(not tt('verify', *args, '--quiet').stdout, 'quiet')
        elif name == 'bad':
            check(s['first_wrong'] == [50, 100], f'{s}')
            for text in ('position 60, but not at 77', 'before+0x34',
                         'wrong between 50 and 100', 'is 50 to 100', ': a=b is wrong',
                         'vCPU 1, register CS: recorded 0008 00, replayed none',
                         'a-new-word', '| tt: diverged',
                         'replays agree with each other'):
                check(text in done.stdout, f'{text!r} is not in {done.stdout}')
            check(s['details'][0] == {
                'what': 'diverged', 'position': 77, 'pc': '0xffff1234', 'after': 60,
                'text': 'a=b is wrong', 'symbol': 'before+0x34'}, f'{s}')
            check(s['details'][2] == {'what': 'a-new-word', 'with': 'what'}, f'{s}')
            check(s['second'] == {'replay': 'alike'}, f'{s}')
            done = tt('verify', *args, '--once', status=3).stdout
            check('second replay' not in done and 'is 50 to 100' in done, done)
        else:
            check('killed by signal 9' in done.stdout and 'it crashed' in
                  done.stdout, done.stdout)
    tt('verify', run, '--qemu', qemu, '--symbols', qemu, status=1)
    tt('verify', run, '--qemu', os.path.join(work, 'nowhere'), status=1)


def program(work, text, name='qemu'):
    path = os.path.join(work, name)
    with open(path, 'w', encoding='utf-8') as file:
        file.write('#!/bin/sh\n' + text)
    os.chmod(path, 0o755)
    return path


def linked(work):
    """a/lnk/.. is b, which has the runs `run` and `leaf`, a branch of it; a has an
    other one."""
    for name in 'a', 'b':
        make_run(os.path.join(work, name), golden('one-event'))
    leaf = os.path.join(work, 'b', 'leaf')
    shutil.copytree(os.path.join(work, 'b', 'run'), leaf)
    with open(os.path.join(leaf, 'manifest'), 'a', encoding='utf-8') as out:
        out.write('[parent]\npath=../run\nuuid=10111213-1415-1617-1819-'
                  '1a1b1c1d1e1f\ncheckpoint=3\nposition=4567\n')
    with open(os.path.join(leaf, 'manifest')) as file:
        text = file.read().replace('features=0', 'features=1')
    with open(os.path.join(leaf, 'manifest'), 'w', encoding='utf-8') as out:
        out.write(text)
    os.mkdir(os.path.join(work, 'b', 'sub'))
    os.symlink('../b/sub', os.path.join(work, 'a', 'lnk'))
    return os.path.realpath(os.path.join(work, 'b'))


def test_a_name_leads_where_the_kernel_goes(work):
    """Behind a link, QEMU gets the run that was read, and the file that was meant."""
    b = linked(work)
    program(work, 'echo "at $2"; exit 1')
    for up in 'a/lnk/..', os.path.join(work, 'a', 'lnk', '..'):
        run, file = up + '/run', up + '/x,'
        for args, want in ((('verify', run), f'at replay,dir={b}/run,verify='),
                           (('trace', run, file),
                            f'at replay,dir={b}/run,trace={b}/x,,,trace-part=')):
            said = subprocess.run([TT, *args, '--qemu', 'a/lnk/../../qemu'], cwd=work,
                                  capture_output=True, text=True, timeout=60)
            check(want in said.stdout + said.stderr, f'{said}')
        leaf = json.loads(tt('info', up + '/leaf', '--json', cwd=work).stdout)
        check([(x['path'], x['found']) for x in leaf['parents']] ==
              [(f'{b}/run', True)], f'{leaf}')
        run = json.loads(tt('info', run, '--json', cwd=work).stdout)
        check([x['path'] for x in run['branches']] == [f'{b}/leaf'], f'{run}')
    # A link to a branch: its parent is beside the branch, or beside the link.
    os.symlink('b/leaf', os.path.join(work, 'here'))
    leaf = json.loads(tt('info', 'here', '--json', cwd=work).stdout)
    check([x['path'] for x in leaf['parents']] == [f'{b}/run'], f'{leaf}')
    os.rename(os.path.join(b, 'run'), os.path.join(work, 'run'))
    leaf = json.loads(tt('info', 'here', '--json', cwd=work).stdout)
    check([(x['path'], x['found']) for x in leaf['parents']] ==
          [(os.path.join(work, 'run'), True)], f'{leaf}')


def test_a_branch_goes_where_the_kernel_goes(work):
    b = linked(work)
    shutil.rmtree(os.path.join(b, 'run'))
    full_run(b, recorded('qemu -m 64'))
    program(b, 'exit 0')
    out = tt('branch', 'a/lnk/../run', '--at', FULL, '--to', 'a/lnk/../new/', '--print',
             '--qemu', 'a/lnk/../qemu', cwd=work).stdout
    check(shlex.split(out)[3:] == [f'{b}/qemu', '-m', '64', '-tt',
                                   f'branch,dir={b}/run,at={FULL},to={b}/new'], out)


def test_a_trace_is_written_where_it_can_be(work):
    """Not into a run, and not to the root from a directory that is gone."""
    run = make_run(work, golden('one-event'))
    qemu = program(work, 'touch "$0.was-run"')
    for file in (os.path.join(run, 'marks'), os.path.join(run, 'disks', '..', 'x')):
        os.makedirs(os.path.join(run, 'disks'), exist_ok=True)
        said = tt('trace', run, file, '--qemu', qemu, status=1).stderr
        check('inside the run' in said and said.count('\n') == 1, said)
    gone = os.path.join(work, 'gone')
    os.mkdir(gone)
    said = subprocess.run(f'cd {gone} && rmdir {gone} && exec {TT} trace {run} OUT '
                          f'--qemu {qemu}', shell=True, text=True, timeout=60,
                          capture_output=True)
    check(said.returncode == 1 and 'cannot resolve' in said.stderr and
          said.stderr.count('\n') == 1, f'{said}')
    check(not os.path.exists(qemu + '.was-run'), 'QEMU was run')
    tt('trace', run, os.path.join(work, 'x'), '--qemu', run + '/nowhere', status=1)


def test_what_cannot_be_answered_is_said_as_json(work):
    """Whatever a program asks with --json, it can read what comes."""
    log = golden('three-segments')
    for name, run_log, manifest in (('no-log', None, MANIFEST), ('nothing', None, None),
                                    ('no-manifest', log, None),
                                    ('other', log, '\n'), ('\x1b"', None, MANIFEST)):
        where = os.path.join(work, name)
        os.makedirs(where)
        run = make_run(where, run_log, manifest)
        new = os.path.join(where, 'new')
        for args in (('info', run), ('check', run), ('log', run), ('stats', run),
                     ('verify', run, '--qemu', '/bin/true'), ('pack', run, new),
                     ('unpack', os.path.join(run, 'log'), new),
                     ('compare-traces', os.path.join(run, 'log'), new)):
            if args[0] in ('log', 'stats') and run_log:
                continue                # which ask for no manifest
            done = tt(*args, '--json', status=1)
            said = json.loads(done.stdout)
            lines = [x.removeprefix('tt: ') for x in done.stderr.splitlines()]
            check(list(said) == ['error'] and
                  len(lines) == 1 + (args[0] == 'compare-traces') and
                  '; '.join(lines) == said['error'].replace('\x1b', '?'),
                  f'{args}: {done}')
    # Who was answered gets no second object, and who asked wrongly none.
    log = os.path.join(REJECT, sorted(os.listdir(REJECT))[0])
    run = make_run(os.path.join(work, 'damaged'), log)
    json.loads(tt('check', run, '--json', status=1).stdout)
    check(not tt('verify', run, '--json', '-j', '0', status=2).stdout, 'usage')


def test_all_that_is_wrong_is_said_as_json(work):
    """Two complaints on stderr are both in the object."""
    one, two = (os.path.join(work, name) for name in ('one', 'two'))
    with open(two, 'w', encoding='ascii') as out:
        out.write('no trace')
    done = tt('compare-traces', one, two, '--json', status=1)
    lines = [line.removeprefix('tt: ') for line in done.stderr.splitlines()]
    check(len(lines) == 2 and one in lines[0] and two in lines[1], f'{done}')
    check(json.loads(done.stdout) == {'error': '; '.join(lines)}, f'{done}')


def test_damage_is_told_without_control_characters(work):
    run = random_run(work)
    log = bytearray(read(run, 'log'))
    log[len(log) // 2] ^= 4
    with open(os.path.join(run, 'log'), 'wb') as file:
        file.write(log)
    odd = os.path.join(work, '\x1b[31m')
    os.rename(run, odd)
    done = subprocess.run([TT, 'verify', odd, '--qemu', program(work, 'exit 1')],
                          capture_output=True, text=True, timeout=60)
    check('tt check ' in done.stdout and '\x1b' not in done.stdout + done.stderr,
          f'{done}')


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


def test_nothing_is_put_into_a_run(work):
    run = random_run(work)
    said = tt('unpack', '/dev/zero', os.path.join(work, 'x'), status=1).stderr
    check(said.count('/dev/zero') == 1, said)
    os.makedirs(os.path.join(run, 'disks'))
    pack = os.path.join(work, 'p.ttrun')
    tt('pack', run, pack)
    before = sorted(os.listdir(run))
    for args in (('pack', run, os.path.join(run, 'in.ttrun')),
                 ('pack', run, os.path.join(run, 'disks', 'in.ttrun')),
                 ('pack', run, os.path.join(run, 'none', 'such', 'in.ttrun')),
                 ('unpack', pack, os.path.join(run, 'in')),
                 ('unpack', pack, os.path.join(run, 'none', 'in')),
                 ('unpack', pack, os.path.join(run, 'disks', '..', 'in'))):
        said = tt(*args, status=1).stderr
        check('inside the run' in said and said.count('\n') == 1, said)
    said = tt('pack', '.', 'in.ttrun', status=1, cwd=run).stderr
    check('inside the run' in said, said)
    check(sorted(os.listdir(run)) == before, f'{os.listdir(run)}')
    tt('unpack', 'p.ttrun', 'again', cwd=work)


def test_symbols_are_a_file_with_an_end(work):
    run = make_run(work, golden('three-segments'))
    fifo = os.path.join(work, 'fifo')
    os.mkfifo(fifo)
    for path in '/dev/zero', fifo, work:
        said = tt('branches', run, '--symbols', path, status=1).stderr
        check(f"'{path}' is not a regular file" in said and said.count('\n') == 1,
              said)
    endless = os.path.join(work, 'endless')
    with open(endless, 'wb') as out:
        out.truncate(300 << 20)
    said = tt('branches', run, '--symbols', endless, status=1).stderr
    check('is too large' in said, said)
    for path in '/proc/kallsyms', '/proc/version':      # without a size
        said = tt('branches', run, '--symbols', path, status=1).stderr
        check('is a directory' in said or 'has no symbols' in said, said)


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
