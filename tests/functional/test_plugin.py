# SPDX-License-Identifier: GPL-2.0-or-later
"""tt run-plugin: a plugin sees the instructions of its part of the run, and no others."""

import json
import os
import re
import subprocess

from guests import guest_args
from ttlib import BUILD, check, equal, limit, one_sentence, qemu_binary, record, tt

QEMU = f'{BUILD}/qemu'


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
        run = record(work, guest_args(work, guest, args), name=guest,
                     options=',checkpoint-interval=0.02').dir
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
    run = record(work, guest_args(work, 'dmacode', 'rounds=5000'),
                 options=',checkpoint-interval=0.02').dir
    total = about(run, work, 'count')[0]['instructions']
    for what in ('functions', 'coverage'):
        text = about(run, work, what)[1]
        many, same = about(run, work, what, '-j', '2')
        check(many['processes'] > 1, 'one process')
        equal(same, text, what)
        equal(counted(text), total, what)


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
            (variant('new', '99', ''), [], 'API version 99'),
            (variant('exits', 'QEMU_PLUGIN_VERSION', 'exit(0)'), [], 'ended QEMU'),
            (variant('crashes', 'QEMU_PLUGIN_VERSION', 'abort()'), [], 'signal 6'),
            ('count', ['--from', str(end)], 'before --from'),
            ('count', ['--to', str(end + 1)], 'before --to')):
        done = plugin(run, what, *args, rc=1)
        one_sentence(done.stderr, what)
        check(says in done.stderr and not done.stdout, f'{what}: {done.stderr}')
    done = plugin(run, 'count', '--from', '5', '--to', '5', rc=2)
    check('above --from' in done.stderr, done.stderr)
