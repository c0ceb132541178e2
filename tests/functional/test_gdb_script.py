# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/tt-gdb.py: the tt commands in gdb."""

import os
import re

from guests import linux_args
from test_gdb_lines import debugged, lines_run, positions
from ttlib import (BUILD, REPO, Gdb, Skip, check, digest, digest_at, end_of, equal, limit,
                   one_sentence, qemu_binary, record, replayer, stopped_replay, tt)

SCRIPT = f'source {REPO}/scripts/tt-gdb.py'
WHERE = 'monitor info tt'


def listed(text):
    """Positions in what "tt hits" printed."""
    return [int(n) for n in re.findall(r'^ *\d+ +(\d+)$', text, re.M)]


@limit(90)
def test_goto_and_marks(work):
    """tt goto leaves nothing of the place before in gdb's caches."""
    run = lines_run(work)
    vm, gdb = debugged(work, run)
    with vm:
        look = ['p/x $pc', 'p $tt_position', 'p counter', 'p total']
        text = gdb(SCRIPT, 'break leaf', 'continue', 'continue', 'tt mark one',
                   *look, 'tt goto end', *look, 'tt goto @one', *look,
                   'tt goto -10', 'tt when', 'tt goto +10', *look,
                   'tt marks', 'tt goto start', 'tt when',
                   'tt goto @nowhere', 'tt goto 12x', 'tt goto',
                   'tt goto $tt_position - 5', 'tt goto --5', 'tt goto 3.7',
                   'tt goto @x#y}', 'tt when')
        seen = re.findall(r'^\$\d+ = (\w+)', text, re.M)
        one, end = seen[:4], seen[4:8]
        equal(end[1:], [str(end_of(vm)), '10', '135'], 'at the end')
        equal(seen[8:12], one, 'at the mark again')
        equal(seen[12:16], one, 'and again')
        check(f'position {int(one[1]) - 10} of' in text, f'tt goto -10: {text}')
        check(re.search(rf'^\* +{one[1]} @one$', text, re.M),
              f'tt marks: {text}')
        check(f'position 0 of {end_of(vm)}' in text, f'tt when: {text}')
        for sentence in ("no mark 'nowhere'", "'12x' is not a position",
                         'tt goto takes', 'before the start of the run',
                         'not a whole number', "'x#y}' cannot be the name of"):
            check(sentence in text, f'no sentence "{sentence}": {text}')
        check('Traceback' not in text and 'Python Exception' not in text,
              f'an error of the script: {text}')


@limit(60)
def test_goto_outside(work):
    """tt goto refuses what is not in the run with the monitor's sentences, and stays."""
    run = lines_run(work)
    vm, gdb = debugged(work, run)
    with vm:
        end = end_of(vm)
        for place, sentence in (
                (end + 1, f'position {end + 1} is past the end of the run, which is position '
                          f'{end}'),
                (1 << 62, 'is past the end of the run'), (f'+{end}', 'is past the end'),
                (f'+{1 << 64}', 'is not a position'), (f'+{(1 << 63) - 1}', 'past the end'),
                ('-11', 'cannot go back that far: there are only 10 positions before')):
            for said in (gdb(SCRIPT, 'tt goto 10', f'tt goto {place}', WHERE),
                         vm.qmp.hmp(f'tt goto {place}')):
                check(sentence in said, f'{place}: {said}')
                equal(vm.qmp.cmd('query-tt')['position'], 10, f'position after {place}')
        equal(positions(gdb(SCRIPT, f'tt goto {end}')), [end], 'the end by number')


@limit(90)
def test_hits(work):
    """tt hits finds what continue stops at, and comes back."""
    run = lines_run(work)
    vm, gdb = debugged(work, run)
    with vm:
        stops = positions(gdb('break leaf', *(['continue', WHERE] * 10)))
        vm.qmp.cmd('tt-goto', 60, position=stops[4] + 1)
        before = digest(vm)
        text = gdb(SCRIPT, 'tt hits leaf', WHERE)
        equal(listed(text), stops, 'hits')
        check('10 hits of leaf' in text, text)
        equal(digest(vm), before, 'state after the search')
        text = gdb(SCRIPT, 'break leaf if n == 7', 'tt hits leaf --limit 3')
        equal(listed(text), stops[:3], 'three hits')
        text = gdb(SCRIPT, f'tt hits leaf --from {stops[2]} --to {stops[7]}')
        equal(listed(text), stops[2:7], 'hits of a span')
        text = gdb(SCRIPT, *(word for stop in (stops[2], stops[5]) for word in
                             (f'tt goto {stop}', 'tt mark twice')),
                   'tt hits leaf --from @twice', f'tt goto {stops[4] + 1}')
        equal(listed(text), stops[5:], 'from the last mark of a name')
        text = gdb(SCRIPT, 'tt hits power_off', 'tt hits nowhere', 'tt hits',
                   'tt hits rt_none')
        check('1 hit of power_off' in text, text)
        check("does not know the location 'nowhere'" in text and 'takes a location' in text,
              f'refusals: {text}')
        text = gdb(SCRIPT, 'tt hits leaf --limit abc', 'tt hits leaf --limit -1',
                   'tt hits leaf --from x', f'tt hits leaf --to {stops[2]}+1',
                   'tt hits leaf --from start --to end', 'tt hits leaf --from @z',
                   'tt break-in pid=a leaf',
                   'tt break-in pid=-1 leaf', 'tt break-in root=zz leaf')
        equal(listed(text), stops[:3] + stops, 'expressions, start and end')
        equal(text.count(' is not a '), 6, f'refusals in {text}')
        check("tt: there is no mark 'z'" in text, text)
        check('Python' not in text, f'an error of the script: {text}')
        equal(digest(vm), before, 'state after all searches')
        text = gdb(SCRIPT, 'tt hits 0x7',
                   'python leaf = int(gdb.parse_and_eval("(long)leaf"))',
                   'python gdb.execute("tt hits %#x" % leaf)',
                   'python gdb.execute("tt break-in this %#x" % leaf)', 'info breakpoints')
        check('0 hits of *0x7' in text and ' in leaf at ' in text, f'no star: {text}')
        equal(len(listed(text)), 10, 'hits of an address')


@limit(90)
def test_ask(work):
    """tt find and tt origin, of a symbol, a register and bytes; the VM stays where it is."""
    run = lines_run(work)
    vm, gdb = debugged(work, run)
    with vm:
        text = gdb(SCRIPT, 'break leaf', *['continue'] * 3, 'tt when',
                   'python gdb.execute("tt find *(u64 *)%#x == 2" % '
                   'int(gdb.parse_and_eval("&counter")))', 'tt origin counter',
                   'tt origin $rip', 'tt origin counter --depth 1 --nodes=1', 'tt when')
        check('1 found' in text, f'tt find: {text}')
        program = f'{BUILD}/guests/lines64.debug'
        moved = gdb(SCRIPT, 'tt when', f'symbol-file {program} -o 0x40', 'tt origin $rsp')
        where = re.search(r'^position (\d+) of', moved, re.M).group(1)
        said = tt('origin', run.dir, where, '$rsp', '--symbols', program, '--offset', '0x40',
                  '--qemu', qemu_binary(), '--quiet').stdout
        check(said.splitlines()[1] in moved, f'moved: {moved}, and not {said}')
        check(text.count('= 0x0000000000000002') >= 2 and 'lines64.c:' in text,
              f'tt origin counter: {text}')
        equal(text.count('\ncounter = 0x'), 2, f'the place as it was typed: {text}')
        here = re.findall(r'^position (\d+) of', text, re.M)
        equal(here[0], here[-1], 'the place before and after')
        text = gdb(SCRIPT, 'tt find', 'tt origin', 'tt origin --depth 2', 'tt origin nobody',
                   'tt origin *(char (*)[3])&counter', 'tt undo')
        for sentence in ('tt find takes a condition', 'tt origin takes a register',
                         'No symbol "nobody"', 'has 3 bytes', 'undo is not enabled'):
            check(sentence in text, f'no sentence "{sentence}": {text}')
        check('Traceback' not in text, text)


@limit(90)
def test_find_has_the_words_of_the_tool(work):
    """tt find takes the options of the tool, and those of the monitor."""
    run = lines_run(work)
    vm, gdb = debugged(work, run)
    with vm:
        address = int(re.search(r'= (\d+)', gdb('p (long)&counter')).group(1))
        place = f'*(u64 *){address:#x}'

        def found(*options):
            text = gdb(SCRIPT, *(f'tt find {words}' for words in options))
            check('Python' not in text, text)
            return [int(n) for n in re.findall(r'^position (\d+) pc', text, re.M)]
        places = found(f'--changes {place}')
        equal(len(places), 10, 'changes of counter')
        vm.qmp.cmd('tt-goto', 60, position=places[3])
        vm.qmp.hmp('tt mark there')
        part = f'{places[1] + 1} --to={places[4]}'
        for words, wanted in (
                (f'{place} --changes --limit 2', places[:2]), (f'{place} --first', places[:1]),
                (f'--first --limit 5 --changes {place}', places[:1]),
                (f'--limit 5 --first -c {place}', places[:1]),
                (f'-c --first -n 5 {place}', places[:1]),
                (f'-f @there -- {place} == 5', places[4:5]),
                (f'--from {part} --changes {place}', places[2:5]),
                (f'{place} --from {part} --written', places[2:5]),
                (f'--changes {place} --from @there --to end', places[4:]),
                (f'{place} >= 5 --monotone --from $tt_position-1', places[4:5]),
                (f'-c -f start -t {places[1]} {place}', places[:2])):
            equal(found(words), wanted, words)
        text = gdb(SCRIPT, f'tt find --last {place}', f'tt find --from {place} == 1 --to',
                   f'tt find --from @nobody {place}', f'tt find --from -5 {place}',
                   f'tt find --limit x {place}', 'tt find --first')
        for sentence in ('takes no --last', 'is not a position', "no mark 'nobody'",
                         "'-5' is not a position", "'x' is not a number",
                         'tt find takes a condition'):
            check(sentence in text, f'no sentence "{sentence}": {text}')
        for words, sentence in (
                ('--from 1 --from 2 $rip == 1', '--from can be given only once'),
                ('-f 1 $rip == 1 --from=2', '--from can be given only once'),
                ('--Limit 5 $rip == 1', 'takes no --Limit:'),
                ('-j 2 $rip == 1', 'takes no -j:'), ('-n5 $rip == 1', 'takes no -n5:'),
                ('--changes=yes $rax', '--changes takes no value'),
                ('$rip == 5 -f 3', '-f stands before the condition: behind it, write --from'),
                ('$rip == 5 -j 3', 'takes no -j:'), ('--to= $rip == 1', '--to takes a value')):
            text = gdb(SCRIPT, 'echo SAID\\n', f'tt find {words}')
            said = text.split('SAID')[1].split('[Inferior')[0]
            check(sentence in one_sentence(said, words), f'{words}: {said}')
        for words, count in (
                (f'--changes {place} --limit 2',
                 '2 found; there may be more: raise the limit'),
                (f'--changes {place} --limit 1', '1 found'),
                (f'--changes {place} --first --limit 3', '1 found')):
            check(f'{count}\n' in gdb(SCRIPT, f'tt find {words}'), f'{words}: {count}')


@limit(120)
def test_many_hits(work):
    """A hundred thousand hits are counted inside QEMU, in seconds."""
    run = lines_run(work, 'rounds=2 spins=100000')
    vm, gdb = debugged(work, run, timeout=100)
    with vm:
        text = gdb(SCRIPT, 'tt hits spin --limit 200000', timeout=90)
        check('100000 hits of spin' in text, text[-300:])
        seen = listed(text)
        equal(len(seen), 100000, 'hits')
        equal(seen, sorted(set(seen)), 'ascending positions')


@limit(90)
def test_last_change(work):
    """tt last-change names position, instruction and line of the last write,
    the user's breakpoints notwithstanding."""
    run = lines_run(work)
    vm, gdb = debugged(work, run)
    with vm:
        text = gdb(SCRIPT, 'break middle', 'tt goto end',
                   'tt last-change rare', 'info breakpoints', 'p $tt_position',
                   'stepi', 'p rare', 'tt last-change counter',
                   'tt goto end', 'tt last-change *(char *)&total')
        check(re.search(r'rare was changed at position (\d+)', text), text)
        check(re.search(r'by 0x\w+ start64\+\d+ at \S*lines64.c:\d+', text) and
              'from 0x0 to 0x25' in text, f'not the write: {text}')
        check(re.search(r'rare = sum;', text), f'not the line: {text}')
        check(re.search(r'^1 +breakpoint +keep y', text, re.M),
              f'the breakpoint was not enabled again: {text}')
        check('$2 = 37' in text, f'the step after it does not write: {text}')
        check('from 0x5 to 0x6' in text, f'counter: {text}')
        check('from 0x54 to 0x87' in text, f'a byte of total: {text}')
        text = gdb(SCRIPT, 'tt goto @x', 'tt goto 5000', 'tt last-change rare',
                   'tt when', 'tt last-change $rax', 'tt last-change none',
                   'tt last-change *(int *)0x7fff00000000',
                   'tt last-change *(char (*)[0])0x200000')
        check('address 0x7fff00000000 is not mapped here' in text and
              'has no size' in text and 'Python' not in text, text)
        check('no instruction has changed rare before position 5000' in text
              and 'position 5000 of' in text, f'no change: {text}')
        check('$rax is not in memory' in text and 'No symbol "none"' in text,
              f'refusals: {text}')


@limit(60)
def test_sourced_by_another_script(work):
    """A script in Python that sources ours gets all of its commands."""
    vm = replayer(work, lines_run(work), ['-S', *Gdb.args(work, 'rep')], 'rep')
    path = os.path.join(work, 'mine.py')
    with open(path, 'w', encoding='ascii') as f:
        f.write(f'import gdb\ngdb.execute("{SCRIPT}")\n')
    with vm:
        text = Gdb(vm)(f'source {path}', 'tt when', 'help tt break-in')
        check('position 0 of' in text and 'one process of the guest' in text,
              text)


@limit(60)
def test_without_a_replay(work):
    """In a VM that is none, and without any, the commands say so."""
    vm = replayer(work, lines_run(work), ['-S', *Gdb.args(work, 'rep')], 'rep')
    with vm:
        gdb = Gdb(vm)
        text = gdb('disconnect', SCRIPT, 'tt when', 'tt goto end', 'tt hits x')
        check(text.count('tt: ') >= 2 and 'Traceback' not in text, text)


@limit(60)
def test_one_sentence(work):
    """What gdb itself refuses is one sentence of ours, too."""
    vm = replayer(work, lines_run(work), ['-S', *Gdb.args(work, 'rep')], 'rep')
    commands = ('tt step', 'tt back', 'tt undo', 'tt redo', 'tt mark x', 'tt info',
                'tt find $rax', 'tt origin $rax', 'tt break-in this *5',
                'tt watch-in this *(int *)5', 'show tt-step-memory', 'tt ps', 'tt current',
                'tt symbols')
    with vm:
        gdb = Gdb(vm)
        for unit, command in (('line', 'tt step'), ('line', 'tt back'), ('call', 'tt back'),
                              ('function', 'tt back')):
            text = gdb(SCRIPT, f'set tt-step-unit {unit}', 'echo SAID\\n', command)
            said = one_sentence(text.split('SAID')[1].split('[Inferior')[0], command)
            check('symbol-file' in said and unit in said, said)
        for command in commands:        # each in a gdb of its own: the first to find out
            not_connected(gdb(SCRIPT, 'disconnect', 'echo SAID\\n', command, 'echo ENDS\\n'))
        text = gdb(SCRIPT, 'disconnect', 'tt hits *nobody')
        check('tt: No symbol "nobody" in' in text or 'tt: No symbol table' in text, text)
    for command in ('tt step', 'tt undo', 'tt goto 5'):
        with vm:
            kill = f'python exec({KILL.format(vm.process.pid)!r})'
            not_connected(Gdb(vm)(SCRIPT, kill, 'echo SAID\\n', command, 'echo ENDS\\n'))


# The process is a zombie then: its sockets are closed.
KILL = '''
import os, time
os.kill({0}, 9)
for _ in range(3000):
    with open('/proc/{0}/stat') as f:
        if f.read().rsplit(')', 1)[1].split()[0] == 'Z':
            break
    time.sleep(.01)
'''


def not_connected(text):
    said = text.split('SAID')[1].split('ENDS')[0]
    check('gdb is not connected to a' in one_sentence(said, text), text)



# Linux

def debug_directory():
    """Where the symbols of the test guest's kernel are, or a skip."""
    with open(f'{BUILD}/guest/version', encoding='ascii') as f:
        version = f.read().strip()
    for folder in (os.environ.get('TT_KERNEL_DEBUG', ''), '/usr/lib/debug'):
        if os.path.exists(f'{folder}/vmlinux-{version}'):
            return folder
    raise Skip(f'needs linux-image-{version}-dbg: install it, or unpack it and '
               'set TT_KERNEL_DEBUG to its usr/lib/debug')


def linux_session(work, works='rand', extra=''):
    run = record(work, linux_args(works, extra), timeout=60)
    vm = replayer(work, run, ['-S', *Gdb.args(work, 'rep')], qmp=1,
                  timeout=150)
    return run, vm, Gdb(vm)


@limit(90)
def test_symbols_missing(work):
    """Without the kernel's symbols the commands say what to do."""
    _, vm, gdb = linux_session(work)
    with vm:
        text = gdb(SCRIPT, 'tt symbols', 'tt ps', 'tt goto end',
                   f'set debug-file-directory {work}', 'tt symbols',
                   'tt current', timeout=80)
        check('no kernel is mapped here' in text, f'at the start: {text}')
        check(re.search('no file with symbols for build id [0-9a-f]{40} ',
                        text), f'at the end: {text}')
        equal(text.count('use "tt symbols" first'), 2, f'hints in {text}')


@limit(240)
def test_kernel_symbols(work):
    """The symbols of a Debian kernel that KASLR has moved; tasks; the last
    change of a kernel variable."""
    folder = debug_directory()
    run, vm, gdb = linux_session(work, 'procs,rand', 'n=10')
    with vm:
        text = gdb(SCRIPT, f'set debug-file-directory {folder}',
                   'tt goto end', 'tt symbols', 'tt current', 'tt ps',
                   'tt hits do_exit', 'tt last-change jiffies_64', 'bt 2',
                   'tt goto end', 'tbreak run_init_process',
                   'reverse-continue', 'tt current', 'p $tt_position',
                   timeout=200)
        check('pid 1 ' in text.split('Temporary breakpoint')[-1],
              f'who runs init? {text[-400:]}')
        check(re.search(r'^\*.* poweroff$', text, re.M) and
              re.search(r'^ +1 +0 .* init$', text, re.M), f'tt ps: {text}')
        exits = re.search(r'^(\d+) hits of do_exit', text, re.M)
        check(exits and int(exits.group(1)) >= 10, f'exits: {text}')
        check(re.search(r'jiffies_64 was changed at position \d+\n'
                        r' +by 0x\w+ \w+\+\d+ at kernel/time/', text),
              f'last change of jiffies_64: {text}')
        place = int(re.search(r'^\$1 = (\d+)', text, re.M).group(1))
        with stopped_replay(work, run, 'other', timeout=100) as other:
            equal(digest_at(other, place), digest(vm), 'digest after it all')
