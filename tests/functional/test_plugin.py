# SPDX-License-Identifier: GPL-2.0-or-later
"""tt run-plugin: a plugin sees the instructions of its part of the run, and no others."""

import collections
import json
import os
import re
import shutil
import subprocess

from guests import guest_args, own_args
from ttlib import (BUILD, REPO, check, equal, limit, one_sentence, qemu_binary, record,
                   record_in_parts, run_tool, tt)

QEMU = f'{BUILD}/qemu'

# What the Linux guest does: some symbols of its kernel, and what comes behind; then the
# program.
JUMPS = b"""#!/bin/busybox sh
grep -A 1 -e __x86_indirect_thunk -e ' error_entry$' /proc/kallsyms | sed 's/^/TT-SYM /'
echo TT-BEGIN
/own/jumps
echo TT-DONE own
"""


def plugin(run, what, *args, rc=0):
    return tt('run-plugin', run, what, '--qemu', qemu_binary(), *args, rc=rc)


def counted(text):
    return sum(int(line.rsplit(' ', 1)[1]) for line in text.splitlines())


def about(run, work, what, *args):
    """What is said of the part, and what the plugin said."""
    out = os.path.join(work, 'out')
    answer = json.loads(plugin(run, what, '--json', '--out', out, *args).stdout)
    check(answer['exact'] and answer['complete'], f'{answer}')
    with open(out, encoding='ascii') as f:
        text = f.read()
    os.unlink(out)
    return answer, text


def positions(run):
    return json.loads(tt('info', run, '--json').stdout)['end']


@limit(90)
def test_counts_what_began(work):
    """In one process, in several, and in pieces that others chose: the same."""
    for guest, args in (('random', 'seed=10 blocks=300 modes=0'), ('smp', ''),
                        ('smc', '')):
        args = guest_args(work, guest, args)
        run = record_in_parts(work, args, guest) if guest == 'random' else \
            record(work, args, name=guest, options=',checkpoint-interval=0.02').dir
        whole, text = about(run, work, 'count')
        equal(counted(text), whole['instructions'], f'{guest}: instructions')
        equal(whole['instructions'] + whole['events'], positions(run), f'{guest}: all')
        both, same = about(run, work, 'count', '-j', '2')
        check(both['processes'] > 1 or guest != 'random', 'one process')
        equal((same, both['instructions']), (text, whole['instructions']), f'{guest}: -j 2')
        middle = str(positions(run) // 3 + 1)
        one, first = about(run, work, 'count', '--to', middle)
        other, second = about(run, work, 'count', '--from', middle)
        equal(one['to'], other['from'], f'{guest}: the middle')
        equal(counted(first) + counted(second), counted(text), f'{guest}: two halves')


@limit(60)
def test_merges_to_one_pass(work):
    """Places and functions of several processes are those of one."""
    run = record_in_parts(work, guest_args(work, 'dmacode', 'rounds=5000'))
    total = about(run, work, 'count')[0]['instructions']
    for what in ('functions', 'coverage'):
        text = about(run, work, what)[1]
        many, same = about(run, work, what, '-j', '2')
        check(many['processes'] > 1, 'one process')
        equal(same, text, what)
        equal(counted(text), total, what)
    # What no symbol covers is one line: programs have other addresses at each start.
    names = os.path.join(work, 'far')
    with open(names, 'w', encoding='ascii') as out:
        out.write('00007fff00000000 T far\n')
    text = about(run, work, 'functions', '--symbols', names)[1]
    equal(text, f'low;[unknown] {total}\n', 'without a symbol')


@limit(60)
def test_one_page_at_two_addresses(work):
    """What runs at each address counts there, although the code is the same page."""
    run = record(work, guest_args(work, 'twice'), options=',checkpoint-interval=0.001')
    at = [int(x, 16) for x in re.search(rb'first=(\w+) second=(\w+)', run.serial).groups()]
    for jobs in '1', '2':
        text = about(run.dir, work, 'coverage', '-j', jobs)[1]
        counts = {int(line.split('+')[0], 16): int(line.split()[-1])
                  for line in text.splitlines()}
        equal([counts.get(a) for a in at], [3000, 500], f'-j {jobs}: runs at each address')


def nm(work, elf):
    """A list of the symbols of a guest's file, for --symbols."""
    path = os.path.join(work, 'symbols')
    text = subprocess.run(['nm', elf], check=True, timeout=30, capture_output=True).stdout
    with open(path, 'wb') as out:
        out.write(text)
    return path


def folded(text):
    """{functions: count} of folded stacks, outermost function first."""
    return {tuple(key.split(';')[1:]): int(count) for key, count in
            (line.rsplit(' ', 1) for line in text.splitlines())}


def innermost(stacks):
    sums = collections.Counter()
    for stack, count in stacks.items():
        sums[stack[-1]] += count
    return dict(sums)


def began(run):
    """Where the first line of the console begins: code of the guest, not of the BIOS."""
    return str(json.loads(tt('console', run, '--json').stdout.splitlines()[0])['position'])


def fib_calls(n, depth=1):
    """(depth, does it call) of each call that fib(n) makes, itself included."""
    yield depth, n >= 2
    if n >= 2:
        yield from fib_calls(n - 1, depth + 1)
        yield from fib_calls(n - 2, depth + 1)


@limit(60)
def test_call_stacks(work):
    """Calls that are known have the right stacks, and each has as many instructions as it
    should."""
    args = guest_args(work, 'lines64', 'rounds=7')
    elf = args[args.index('-kernel') + 1]
    run = record(work, args).dir
    debug = elf.replace('.elf', '.debug')
    said, text = about(run, work, 'stacks', '--symbols', debug)
    stacks = folded(text)
    equal(sum(stacks.values()), said['instructions'], 'instructions')
    code = subprocess.run(['objdump', '-d', '--disassemble=leaf', debug], check=True,
                          timeout=30, capture_output=True, text=True).stdout
    length = len(re.findall('^ *[0-9a-f]+:', code, re.M))       # it has no jumps
    check(length > 3, f'leaf: {code}')
    equal(stacks['start64', 'middle', 'leaf'], 2 * 7 * length, 'leaf, called by middle')
    check(('leaf',) not in stacks and ('start64', 'leaf') not in stacks, f'{stacks}')
    calls = collections.Counter(fib_calls(6))
    inner = stacks['start64', 'fib']
    last = stacks['start64', *['fib'] * 6] // calls[6, False]
    for depth in range(1, 7):
        equal(stacks['start64', *['fib'] * depth],
              calls[depth, True] * inner + calls[depth, False] * last, f'fib {depth} deep')
    equal(sum(count for stack, count in stacks.items() if stack.count('fib') > 6), 0, 'deeper')
    names = nm(work, debug)
    with open(names, 'r+', encoding='ascii') as f:
        renamed = re.sub('(?m) leaf$', ' operator+;leaf', f.read())
        f.seek(0)
        f.write(renamed)
    other = folded(about(run, work, 'stacks', '--symbols', names)[1])
    equal(other.get(('start64', 'middle', 'operator+:leaf')), 2 * 7 * length,
          f'a name with a semicolon and a plus: {other}')
    svg = shutil.which('flamegraph.pl') or shutil.which('inferno-flamegraph')
    if svg:
        drawn = subprocess.run([svg], input=text, check=True, timeout=60,
                               capture_output=True, text=True).stdout
        check('<svg' in drawn and '<title>fib (' in drawn, drawn[:200])
    why = plugin(run, 'stacks', '-j', '2', rc=2).stderr.split('usage:')[0]
    check('in one process' in one_sentence(why, '-j'), why)
    why = plugin(run, 'stacks,x=1', rc=1).stderr
    check('no arguments' in why, why)


@limit(90)
def test_stacks_of_interrupts(work):
    """Faults and interrupts lie on top of what they interrupt, also of each other, and leave
    it as it was; and a function has as many instructions as without stacks."""
    for guest in 'exceptions', 'smp', 'torture':
        args = guest_args(work, guest)
        names = nm(work, args[args.index('-kernel') + 1])
        run = record(work, args, name=guest)
        part = ('--symbols', names, '--from', began(run.dir))
        stacks = folded(about(run.dir, work, 'stacks', *part)[1])
        functions = folded(about(run.dir, work, 'functions', *part)[1])
        equal(innermost(stacks), innermost(functions), f'{guest}: each function')
        mains = [stack for stack in stacks if 'main' in stack]
        check(len(mains) > 5, f'{guest}: {stacks}')
        for stack in mains:
            equal(stack[:stack.index('main') + 1].count('main'), stack.count('main'), stack)
            check('rt_stubs' not in stack[:stack.index('main')], f'{guest}: {stack}')
        if guest == 'exceptions':
            exceptions(run, stacks)


def exceptions(run, stacks):
    """Of that guest: each turn of its loop has two faults that skip two bytes and two that
    skip six; the timer interrupts them all, maybe at their first instruction."""
    loop = next(stack for stack in stacks if stack[-1] == 'exc_loop')
    turns = stacks[*loop, 'exc_skip2'] // (2 * 3)
    equal((stacks[*loop, 'exc_skip2'], stacks[*loop, 'exc_skip6_err']),
          (turns * 2 * 3, turns * 2 * 4), 'instructions of the handlers')
    for handler in 'exc_skip2', 'exc_skip6_err', 'exc_count':
        equal([stack for stack in stacks if handler in stack and
               stack[:len(loop) + 1] != (*loop, handler)], [], f'{handler}: elsewhere')
        check((*loop, handler, 'rt_stubs') in stacks, f'{handler}: never interrupted')
    ticks = int(re.search(rb'ticks=(\w+)', run.serial).group(1), 16)
    entries = sum(count for stack, count in stacks.items() if stack[-1] == 'rt_stubs')
    equal(entries, 3 * ticks, 'instructions at the entry of the timer')


def position_of(run, word):
    return next(line['position'] for line in map(json.loads, tt(
        'console', run, '--json').stdout.splitlines()) if word in line['text'])


@limit(240)
def test_stacks_of_linux(work):
    """In Linux interrupts, signals, longjmps and thunks leave the stacks right: a function has
    all its instructions below its callers."""
    program = os.path.join(work, 'jumps')
    run_tool('gcc', '-g', '-O1', '-static', '-no-pie', '-fcf-protection=none', '-o', program,
             f'{REPO}/tests/guest-linux/jumps.c')
    with open(program, 'rb') as f:
        files = {'own/run': JUMPS, 'own/jumps': f.read()}
    run = record(work, own_args(work, files, memory='128'), timeout=120)
    names = nm(work, program)
    symbols = re.findall(rb'TT-SYM ([0-9a-f]{16} \w [^\s\[]+)', run.serial)
    check(len(symbols) > 16, f'{symbols}')
    with open(names, 'ab') as f:
        f.write(b''.join(line + b'\n' for line in symbols))
    said, text = about(run.dir, work, 'stacks', '--symbols', names,
                       '--from', str(position_of(run.dir, 'TT-BEGIN')),
                       '--to', str(position_of(run.dir, 'TT-SIGNALS')))
    stacks = folded(text)
    equal(sum(stacks.values()), said['instructions'], 'instructions')
    signals = int(re.search(rb'TT-SIGNALS (\d+)', run.serial).group(1))
    check(signals > 2, f'{signals} signals')
    of_program(stacks, signals)
    of_kernel(text)


def of_program(stacks, signals):
    loops = {('plain_loop', 'leaf'), ('signal_loop', 'leaf'),
             ('call_loop', 'calls_kernel', 'leaf'), ('far_loop', 'has_large_frame', 'leaf')}
    leaf = collections.Counter()
    for stack, count in stacks.items():
        if stack[-1] == 'leaf':
            leaf[stack[stack.index('main') + 1:] if 'main' in stack else stack] += count
    equal(set(leaf), loops, 'who calls leaf')
    equal(len(set(leaf.values())), 1, f'instructions of leaf for each: {leaf}')
    for name in 'plain_loop', 'signal_loop':
        equal([stack for stack in stacks if stack[-1] == name and stack[-2:] !=
               ('main', name)], [], f'{name} elsewhere')
    ticks = [stack for stack in stacks if stack[-1].startswith('0xffff') and 'leaf' in stack]
    check(ticks, 'no interrupt on top of the program')
    quick = {stack: count for stack, count in stacks.items() if stack[-1] == 'quick'}
    check(all('signal_loop' in stack for stack in quick), f'{quick}')
    equal(sum(quick.values()) % signals, 0, f'instructions of {signals} signals: {quick}')


def of_kernel(text):
    """What a thunk goes to stands in its place; and what moves its own return address has
    returned."""
    total, below = 0, collections.Counter()
    for line in text.splitlines():
        stack, count = line.rsplit(' ', 1)
        if ';0xffff' in stack:
            total += int(count)
            for name in set(re.findall('(__x86_indirect_thunk|error_entry)[^;]*;', stack)):
                below[name] += int(count)
    check(all(count < total / 100 for count in below.values()),
          f'of {total} instructions in the kernel: {below}')
    check('error_entry' in text, 'no exception of the kernel')


@limit(60)
def test_stacks_of_smm(work):
    """System management mode lies on top of what it interrupts, and leaves it as it was."""
    args = guest_args(work, 'smm', 'rounds=5')
    run = record(work, args)
    names = nm(work, args[args.index('-kernel') + 1])
    text = about(run.dir, work, 'stacks', '--symbols', names, '--from', began(run.dir))[1]
    stacks = folded(text)
    inner = [stack for stack in stacks if stack[-1] == 'trigger']
    equal([stack[-2:] for stack in inner], [('main', 'trigger')], f'{text}')
    equal(stacks[inner[0]] % 5, 0, f'instructions of trigger: {text}')
    over = [stack for stack in stacks if stack[:len(inner[0])] == inner[0] != stack]
    check(over, f'nothing on top of trigger: {text}')


@limit(60)
def test_stacks_of_nested(work):
    """A guest of the guest lies on top of what entered it, and its end goes back there."""
    args = guest_args(work, 'svm', 'rounds=20')
    run = record(work, args)
    part = ('--symbols', nm(work, args[args.index('-kernel') + 1]), '--from', began(run.dir))
    stacks = folded(about(run.dir, work, 'stacks', *part)[1])
    equal(innermost(stacks), innermost(folded(about(run.dir, work, 'functions', *part)[1])),
          'each function')
    check(max(map(len, stacks)) < 20, f'{max(map(len, stacks))} deep')


def lines_of(tracefile):
    """{(file, line): count} of a tracefile of lcov."""
    lines, path = {}, None
    with open(tracefile, encoding='ascii') as f:
        for text in f:
            kind, _, rest = text.rstrip('\n').partition(':')
            if kind == 'SF':
                path = rest
            elif kind == 'DA':
                line, count = rest.split(',')
                lines[path, int(line)] = int(count)
    return lines


def check_relative_directory(work, run):
    """A program that was compiled in the directory ".": its files are below that of tt."""
    source, elf, out = (os.path.join(work, f'own{end}') for end in ('.c', '', '.info'))
    with open(source, 'w', encoding='ascii') as f:
        f.write('int main(void)\n{\n    return 0;\n}\n')
    subprocess.run(['gcc', '-g', f'-ffile-prefix-map={work}=.', '-o', elf, source], cwd=work,
                   check=True, timeout=60)
    plugin(run, 'coverage', '--symbols', elf, '--lcov', out)
    equal({path for path, _ in lines_of(out)}, {os.path.join(os.getcwd(), 'own.c')}, 'files')


@limit(60)
def test_lines_of_source(work):
    """Coverage by lines is what binutils makes of the same addresses."""
    args = guest_args(work, 'exceptions')
    elf = args[args.index('-kernel') + 1]
    run = record(work, args, options=',checkpoint-interval=0.02').dir
    places = [line.split('+')[0] for line in about(run, work, 'coverage')[1].splitlines()]
    out = os.path.join(work, 'info')
    done = plugin(run, 'coverage', '--symbols', elf, '--lcov', out, '-j', '2')
    check(not done.stdout, f'beside the file: {done.stdout[:200]}')
    lines = lines_of(out)
    said = subprocess.run(['addr2line', '-e', elf, *places], check=True, timeout=30,
                          capture_output=True, text=True).stdout.split('\n')
    wanted = {(os.path.normpath(name), int(line.split()[0])) for name, _, line in
              (text.rpartition(':') for text in said) if line and line[0] in '123456789'}
    hit = {(os.path.normpath(path), line) for (path, line), count in lines.items() if count}
    equal(wanted - hit, set(), 'lines that are not in the file')
    said = subprocess.run(['objdump', '--dwarf=decodedline', elf], check=True, timeout=30,
                          capture_output=True, text=True).stdout
    rows = re.findall(r'^(\S+) +(\d+) +0x([0-9a-f]+)', said, re.M)
    begun = {(name, int(line)) for name, line, addr in rows if f'0x{addr}' in places}
    equal({(f, n) for f, n in hit - wanted if (os.path.basename(f), n) not in begun}, set(),
          'lines that were not executed')
    check(any(not count for count in lines.values()), 'all was executed')
    check_relative_directory(work, run)
    for args, rc, why in ((['count', '--lcov', 'x'], 2, "the plugin 'coverage'"),
                          (['coverage', '--lcov', 'x'], 2, 'compiled with -g'),
                          (['coverage', '--lcov', out, '--symbols', elf], 1, 'exists'),
                          (['coverage', '--lcov', f'{run}/x', '--symbols', elf], 1, 'run'),
                          (['coverage', '--lcov', 'x', '--symbols', '/bin/true'], 1,
                           'no DWARF'),
                          (['coverage', '--lcov', 'x', '--out', 'x', '--symbols', elf], 2,
                           'one file')):
        said = plugin(run, *args, rc=rc).stderr.split('usage:')[0]
        check(why in one_sentence(said, why), said)


def code_ranges(elf):
    """Addresses of its code, [from, to), and of the function that powers off. How much of
    that is executed before the VM has stopped, the host decides."""
    def ask(*command):
        return subprocess.run(command, check=True, timeout=30, capture_output=True,
                              text=True).stdout

    size, start = re.search(r' \.text +(\w+) +(\w+)', ask('objdump', '-h', elf)).groups()
    off, length = re.search(r'(\w+) (\w+) [tT] (?:rt_)?power_off\n',
                            ask('nm', '-S', elf)).groups()
    return [range(int(at, 16), int(at, 16) + int(n, 16))
            for at, n in ((start, size), (off, length))]


def covered(text, elf):
    """{(address, length): count} of the guest's own code: the BIOS polls clocks."""
    code, end = code_ranges(elf)
    places = (re.fullmatch(r'(0x\w+)\+(\d+) (\d+)', line).groups()
              for line in text.splitlines() if not line.startswith('tt-merge'))
    return {(int(at, 16), int(n)): int(count) for at, n, count in places
            if int(at, 16) in code and int(at, 16) not in end}


def live_coverage(work, args):
    """What the same plugin says in a QEMU that neither records nor replays."""
    out = os.path.join(work, 'live')
    so = os.path.join(BUILD, 'tt-plugins', 'tt-coverage.so')
    subprocess.run([qemu_binary(), *args, '-accel', 'tcg', '-plugin', so, '-d', 'plugin',
                    '-D', out, '-serial', 'null'], check=True, timeout=60,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    with open(out, encoding='ascii') as f:
        text = f.read()
    os.unlink(out)
    check(text.endswith('tt-merge: end\n'), f'the live guest: {text[-100:]}')
    return text


@limit(90)
def test_coverage_like_live(work):
    """Of guests that do the same each time, the coverage of a recording is that of the
    plugin in a live guest: each instruction, as often, in one process and in two."""
    for guest, append in (('lines64', 'rounds=7 spins=200000'), ('twice', '')):
        args = guest_args(work, guest, append)
        elf = args[args.index('-kernel') + 1].replace('64.elf', '64.debug')
        live = covered(live_coverage(work, args), elf)
        check(len(live) > 100 and max(live.values()) > 20, f'{guest}: {len(live)} places')
        name = f'{guest}{len(live)}'
        run = record(work, args, name=name).dir if guest == 'twice' else \
            record_in_parts(work, args, name)
        for jobs in '1', '2':
            said, text = about(run, work, 'coverage', '-j', jobs)
            check(said['processes'] > 1 or jobs == '1' or guest == 'twice', 'one process')
            seen = covered(text, elf)
            differ = [(hex(place[0]), live.get(place), seen.get(place))
                      for place in sorted({*live, *seen})
                      if live.get(place) != seen.get(place)]
            equal(differ, [], f'{guest} {append}, -j {jobs}: (place, live, recorded)')


def build_plugin(work, source):
    path = os.path.join(work, os.path.basename(source)[:-2] + '.so')
    flags = subprocess.run(['pkg-config', '--cflags', 'glib-2.0'], check=True, text=True,
                           capture_output=True).stdout.split()
    subprocess.run(['cc', '-shared', '-fPIC', f'-I{QEMU}/include/qemu', *flags, '-o', path,
                    source], check=True, timeout=30)
    return path


@limit(60)
def test_a_full_disk(work):
    """What a plugin said is not taken for all if the disk was full."""
    run = record(work, guest_args(work, 'random')).dir
    source = os.path.join(work, 'half.c')
    with open(source, 'w', encoding='ascii') as f:
        f.write('''#include <stdlib.h>
#include <qemu-plugin.h>
QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;
static void cb(qemu_plugin_id_t id, void *p) { qemu_plugin_outs("tt-merge: sum\\na 1\\n"); }
QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
                                           int argc, char **argv)
{ qemu_plugin_register_atexit_cb(id, cb, NULL); return 0; }
''')
    out = os.path.join(work, 'out')
    done = plugin(run, build_plugin(work, source), '--out', out, rc=1)
    check('is not all there' in one_sentence(done.stderr, 'half'), done.stderr)
    check(not os.path.exists(out), 'half a result')


@limit(60)
def test_a_result_that_cannot_be_written(work):
    """Is not lost: a missing directory is noticed at once; if it goes during the replay,
    the result lies elsewhere."""
    args = guest_args(work, 'random')
    run, elf = record(work, args).dir, args[args.index('-kernel') + 1]
    wanted = about(run, work, 'coverage')[1]
    nowhere = os.path.join(work, 'no', 'x')
    for more in ['--out', nowhere], ['--symbols', elf, '--lcov', nowhere]:
        said = tt('run-plugin', run, 'coverage', *more, '--qemu', '/bin/false', rc=1).stderr
        check(f"cannot make '{nowhere}'" in one_sentence(said, nowhere), said)
    os.mkdir(os.path.dirname(nowhere))
    qemu = os.path.join(work, 'qemu')
    with open(qemu, 'w', encoding='ascii') as f:
        f.write(f'#!/bin/sh\nrmdir {work}/no\nexec {qemu_binary()} "$@"\n')
    os.chmod(qemu, 0o700)
    said = tt('run-plugin', run, 'coverage', '--out', nowhere, '--qemu', qemu, rc=1).stderr
    kept = re.search(r"No such file or directory; the result is in '(.*)'", said)
    check(kept, said)
    with open(kept.group(1), encoding='ascii') as f:
        equal(f.read(), wanted, 'the result')
    shutil.rmtree(os.path.dirname(kept.group(1)))


@limit(60)
def test_upstream_plugins(work):
    """Unmodified, from QEMU's source."""
    run = record(work, guest_args(work, 'random')).dir
    total = about(run, work, 'count')[0]['instructions']
    insn = build_plugin(work, f'{QEMU}/tests/tcg/plugins/insn.c')
    text = about(run, work, f'{insn},inline=true')[1]
    check(f'total insns: {total}' in text, f'{total}: {text}')
    hot = build_plugin(work, f'{QEMU}/contrib/plugins/hotblocks.c')
    check('ecount' in about(run, work, hot)[1], 'hotblocks')


@limit(60)
def test_errors(work):
    """One sentence for each thing that can be wrong."""
    run = record(work, guest_args(work, 'random')).dir
    end = positions(run)
    source = os.path.join(work, 'leaves.c')
    with open(source, 'w', encoding='ascii') as f:
        f.write('''#include <stdlib.h>
#include <qemu-plugin.h>
QEMU_PLUGIN_EXPORT int qemu_plugin_version = VERSION;
static void cb(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) { HOW; }
QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
                                           int argc, char **argv)
{ qemu_plugin_register_vcpu_tb_trans_cb(id, cb); return 0; }
''')

    def variant(name, version, how):
        path = os.path.join(work, name + '.c')
        with open(source, encoding='ascii') as f, open(path, 'w', encoding='ascii') as to:
            to.write(f.read().replace('VERSION;', version + ';').replace('HOW', how))
        return build_plugin(work, path)

    for what, args, says in (
            ('/no/such.so', [], 'there is no file'),
            ('/bin/true', [], 'is not a plugin'),
            ('nosuch', [], 'races, syscalls'), ('count,foo', [], "NAME=VALUE, not 'foo'"),
            ('count,foo=1', [], "tt: count takes memory=on or off, not 'foo=1'"),
            ('branches', [], 'tt: branches needs table='),
            (variant('new', '99', ''), [], 'API version 99'),
            (variant('exits', 'QEMU_PLUGIN_VERSION', 'exit(0)'), [], 'ended QEMU'),
            (variant('crashes', 'QEMU_PLUGIN_VERSION', 'abort()'), [], 'signal 6'),
            ('count', ['--from', str(end)], 'not before the end')):
        done = plugin(run, what, *args, rc=2 if args else 1)
        one_sentence(done.stderr, what)
        check(says in done.stderr and not done.stdout, f'{what}: {done.stderr}')
    done = plugin(run, 'count', '--from', '5', '--to', '5', rc=2)
    check('above --from' in done.stderr, done.stderr)
