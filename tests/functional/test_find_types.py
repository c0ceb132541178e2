# SPDX-License-Identifier: GPL-2.0-or-later
"""tt find and tt origin with types of a program: an expression has the value that gdb
prints for it, whatever form the debug information has."""

import json
import os
import re
import shutil

from guests import guest_args, linux_args
from test_find import find, places, values
from test_gdb_script import debug_directory
from ttlib import (BUILD, REPO, Gdb, check, equal, goto, limit, qemu_binary, record, replayer,
                   run_tool, seed, tt)

SYMBOLS = f'{BUILD}/guests/types64.debug'
TYPED = ['panic_timeout', 'current_thing->first', 'current_thing->second',
         'current_thing->third', 'current_thing->word', 'current_thing->bytes[2]',
         'table[1].in[1][2].b[1]', 'table[2].in[0][2].a', 'current_thing->color',
         'current_thing->color == RED', 'current_thing->flag', '&current_thing->in[1]',
         'current_thing->list.next', '((struct thing *)current_thing->self)->second',
         'current_thing - table', 'current_thing->name[0]', 'table[stamp & 3].word',
         '(current_thing + 1)->self', 'current_thing->second * 2 < -2',
         'sizeof(struct thing) + stamp', '(char)current_thing->word']


def types_run(work, append='rounds=6'):
    return record(work, guest_args(work, 'types64', append), timeout=60)


def typed(run, expression, *args, symbols=SYMBOLS, rc=0):
    return find(run, expression, '--symbols', symbols, *args, rc=rc)


def printed_by_gdb(work, run, positions):
    """What gdb prints for all of TYPED at these positions, as numbers of 64 bits."""
    wanted = {}
    vm = replayer(work, run, ['-S', *Gdb.args(work, 'rep')], 'rep', qmp=1)
    with vm:
        for position in positions:
            goto(vm, position=position)
            said = Gdb(vm)(f'file {SYMBOLS}',
                           *[f'printf "at %d: %ld\\n", {i}, (long)({text})'
                             for i, text in enumerate(TYPED)])
            for i, value in re.findall(r'at (\d+): (-?\d+)', said):
                wanted[position, int(i)] = int(value) % 2**64
    equal(len(wanted), len(TYPED) * len(positions), 'values of gdb')
    return wanted


@limit(120)
def test_values_of_gdb(work):
    """At places of the guest's loop each expression has gdb's value."""
    run = types_run(work)
    loop = places(typed(run.dir, 'at step'))
    equal(len(loop), 6, 'rounds')
    wanted = printed_by_gdb(work, run, loop[1::2])
    for i, text in enumerate(TYPED):
        got = dict(values(typed(run.dir, f'{text} at step')))
        for position in loop[1::2]:
            equal(got.get(position, 0), wanted[position, i], f'{text} at {position}')


def origin(run, position, place, *args, rc=0):
    return tt('origin', run, position, place, '--symbols', SYMBOLS, '--qemu', qemu_binary(),
              *args, rc=rc)


@limit(60)
def test_searches(work):
    """Changes, places and edges of typed expressions are those of plain memory."""
    run = types_run(work).dir
    address = re.search(r'^0*([0-9a-f]+) \w panic_timeout$', run_tool('nm', SYMBOLS)[0],
                        re.M).group(1)
    for expression, plain in (('panic_timeout', f'*(s32 *)0x{address}'),
                              ('panic_timeout == -3', f'*(s32 *)0x{address} == -3'),
                              ('*&panic_timeout', f'*(int *)0x{address}')):
        how = [] if '==' in expression else ['--changes']
        got = values(typed(run, expression, *how))
        check(got, f'{expression}: nothing')
        equal(got, values(find(run, plain, *how)), expression)
    equal(values(typed(run, '(&panic_timeout)[-4]', '--changes', '--offset', '16')),
          values(typed(run, 'panic_timeout', '--changes')), 'of a program that moved')
    changes = values(typed(run, 'current_thing->second', '--changes'))
    equal([v for _, v in changes if v][:3], [2**64 - 1, 2**64 - 2, 2**64 - 3],
          'values of a bit-field')
    equal(places(typed(run, '$rip == step && panic_timeout == -5')),
          places(typed(run, 'at step'))[2:3], 'place and value')
    end = json.loads(tt('info', run, '--json').stdout)['end']
    for place, value in (('current_thing->word', 0x050505f5), ('current_thing->second', None)):
        node = origin(run, str(end), place, '--json')
        node = json.loads(node.stdout)['nodes'][0]
        check(node['symbol'].startswith('step+') and value in (None, int(node['value'], 16)),
              f'origin: {node}')
    for place in ('panic_timeout + 1', '&table[1]', '(u8)panic_timeout'):
        said = origin(run, str(end), place, rc=2).stderr
        check(f"'{place}' is not a place" in said, said)


def variants(work):
    """Other files that have the same debug information."""
    source = shutil.copy(SYMBOLS, os.path.join(work, 'here'))
    for flags in ('-gdwarf-4', '-fdebug-types-section', '-gsplit-dwarf'):
        out = os.path.join(work, flags)
        run_tool('env', f'CC=gcc {flags}', os.path.join(REPO, 'tests/guests/build'), '-o', out,
                 'types64', timeout=60)
        yield os.path.join(out, 'types64.debug')
    packed = os.path.join(work, 'packed')
    run_tool('objcopy', '--compress-debug-sections', source, packed)
    yield packed
    run_tool('objcopy', '--only-keep-debug', source, os.path.join(work, 'apart.debug'))
    apart = os.path.join(work, 'apart')
    run_tool('objcopy', '--strip-all', f'--add-gnu-debuglink={work}/apart.debug', source,
             apart)
    yield apart


@limit(90)
def test_forms_of_debug_information(work):
    """DWARF 4, units of types, compressed sections, and files of its own say the same."""
    run = types_run(work).dir
    questions = ['current_thing->third', 'table[1].in[1][2].b[1]', 'current_thing->second']
    wanted = [values(typed(run, text, '--changes')) for text in questions]
    check(all(wanted), f'nothing changes: {wanted}')
    for path in variants(work):
        for text, changes in zip(questions, wanted):
            equal(values(typed(run, text, '--changes', symbols=path)), changes,
                  f'{text}, {path}')


@limit(60)
def test_refused(work):
    """What has no address, no type or no member gets a sentence that says so."""
    run = types_run(work).dir
    bare, listed = os.path.join(work, 'bare'), os.path.join(work, 'listed')
    run_tool('objcopy', '--strip-debug', SYMBOLS, bare)
    with open(listed, 'w', encoding='ascii') as f:
        f.write(run_tool('nm', SYMBOLS)[0])
    for symbols, expression, wanted in (
            (SYMBOLS, 'local->word == 1', "'local' is a local variable of step()"),
            (SYMBOLS, 'i == 1', "'i' is a"), (SYMBOLS, 'multiboot', 'parameter of start64()'),
            (SYMBOLS, 'current_thing->nobody', "'struct thing' has no member 'nobody'"),
            (SYMBOLS, 'nowhere->x', "'struct hidden' are not known"),
            (SYMBOLS, 'table[1]', 'one of its members'), (SYMBOLS, 'nobody', 'no symbol'),
            (SYMBOLS, '(struct nobody *)$rdi', "no 'struct nobody'"),
            (bare, 'panic_timeout == 1', 'has no debug info: write *(u32 *)&panic_timeout'),
            (bare, '((struct thing *)$rdi)->word', "'struct' needs debug info"),
            (listed, 'panic_timeout == 1', 'has no debug info: write *(u32 *)&panic_timeout')):
        said = tt('find', run, expression, '--symbols', symbols, '--qemu', qemu_binary(),
                  rc=2).stderr
        check(wanted in said.splitlines()[0], f'{expression}: {said}')
    for symbols in (bare, listed):
        equal(places(typed(run, '*(s32 *)&panic_timeout == -3', symbols=symbols)),
              places(typed(run, 'panic_timeout == -3')), symbols)


@limit(60)
def test_lists_of_symbols(work):
    """A list may have what nm prints with -C or -S, and modules; a name of C++ is found
    without its parameters, unless it is overloaded."""
    run = types_run(work).dir
    lines = run_tool('nm', '-S', SYMBOLS)[0]
    address, size = re.search(r'^(\w+) (\w+) \w step$', lines, re.M).groups()
    name, other = 'ns::step(unsigned long, char)', f'{int(address, 16) + 1:016x}'
    wanted = places(typed(run, 'at step'))
    for line in (f'{address} t {name}', f'{address} {size} t {name}', f'{address} T {name}\r',
                 f'{address} t {name}\t[module]', f'{address}\tt\t{name}'):
        listed = os.path.join(work, 'listed')
        with open(listed, 'w', encoding='ascii') as f:
            f.write(f'{line}\n{other} t {name} [clone .cold]\n                 U undefined\n'
                    f'{other} T two(int)\n7{other[1:]} T two(long)\n')
        done = typed(run, 'at ns::step', symbols=listed)
        equal(places(done), wanted, line)
        equal({hit['symbol'] for hit in done['found']}, {f'{name}+0x0'}, line)
        for expression, said in (('at two', "are 2 symbols 'two'"), ('at step', 'no symbol'),
                                 ('at ns::step(1)', 'functions cannot be called'),
                                 ('at undefined', 'no symbol')):
            text = tt('find', run, expression, '--symbols', listed, '--qemu', qemu_binary(),
                      rc=2).stderr
            check(said in text, f'{expression}: {text}')


@limit(240)
def test_of_a_kernel(work):
    """Debian's kernel: what exits has the name that its task_struct has; what is written is
    what changes; a module has types."""
    folder = debug_directory()
    with open(f'{BUILD}/guest/version', encoding='ascii') as f:
        version = f.read().strip()
    kernel = f'{folder}/vmlinux-{version}'
    run = record(work, linux_args('procs,rand', 'n=5 nokaslr'), timeout=60).dir
    task = '(*(struct task_struct **)($gs_base + (u64)&current_task))'
    names = [v.to_bytes(8, 'little').split(b'\0')[0].decode('ascii') for _, v in
             values(typed(run, f'*(u64 *){task}->comm at do_exit', symbols=kernel))]
    check(len(names) >= 5 and {'init', 'poweroff'} & {*names}, f'{names}')
    pids = [v for _, v in values(typed(run, f'{task}->pid at do_exit', symbols=kernel))]
    equal(len(pids), len(names), 'pids')
    check(len({*pids}) > 4 and all(0 < pid < 1000 for pid in pids), f'{pids}')
    changes = values(typed(run, 'nr_threads', '--changes', symbols=kernel))
    check(len(changes) > 10, f'{changes}')
    equal(values(typed(run, 'nr_threads', '--written', symbols=kernel))[-len(changes):],
          changes, 'writes of a counter')
    module = f'{folder}/lib/modules/{version}/kernel/drivers/net/virtio_net.ko'
    equal(places(typed(run, '((struct virtnet_info *)0)->max_queue_pairs at 0x10',
                       symbols=module)), [], 'never executed')


def damaged(chance, data):
    """Cut off, or with other bytes where types are described."""
    data = bytearray(data)
    if chance.random() < 0.1:
        return data[:chance.randrange(64, len(data))]
    sections = re.findall(r'\.debug_(?:info|abbrev|str)\s+PROGBITS\s+\w+ (\w+) (\w+)',
                          run_tool('readelf', '-SW', SYMBOLS)[0])
    for _ in range(chance.choice((1, 2, 8))):
        at, size = (int(n, 16) for n in chance.choice(sections[:2] * 4 + sections))
        data[at + chance.randrange(size)] = chance.choice((0, 1, 0x7f, 0x80, 0xff,
                                                           chance.randrange(256)))
    return data


@limit(90)
def test_damaged_debug_information(work):
    """However it is damaged, the tool ends with a sentence."""
    run, chance = types_run(work).dir, seed()
    path = os.path.join(work, 'damaged')
    with open(SYMBOLS, 'rb') as f:
        whole = f.read()
    for _ in range(60):
        with open(path, 'wb') as f:
            f.write(damaged(chance, whole))
        text = chance.choice(TYPED)
        done = tt('find', run, text, '--symbols', path, '--from', '99999999999', '--qemu',
                  qemu_binary(), rc=None)
        # the beginning of the search is refused, if nothing was before
        check(done.returncode in (1, 2) and len(done.stderr.split()) > 3,
              f'{text}: {done.returncode} {done.stderr}')
