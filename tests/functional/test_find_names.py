# SPDX-License-Identifier: GPL-2.0-or-later
"""What names and types of programs become in a condition: programs that gcc compiles here,
and in place of QEMU a script that writes down what it is asked to search."""

import os
import re
import shutil
import socket

from test_find_types import types_run
from ttlib import Skip, check, equal, limit, run_tool, tt

SCRIPT = '''#!/bin/sh
for a in "$@"; do
    case "$a" in *find-condition=*) printf '%s\\n' "$a" > "$0.asked" ;; esac
done
exit 1
'''


class Programs:
    """Programs in the work directory, and what expressions become with them."""

    def __init__(self, work):
        self.work, self.run = work, types_run(work).dir
        self.qemu = os.path.join(work, 'qemu')
        with open(self.qemu, 'w', encoding='ascii') as f:
            f.write(SCRIPT)
        os.chmod(self.qemu, 0o755)

    def path(self, name):
        return os.path.join(self.work, name)

    def make(self, name, sources, *options, compiler='gcc'):
        """A program of source texts by file name."""
        for file, text in sources.items():
            with open(self.path(file), 'w', encoding='ascii') as f:
                f.write(text)
        parts = [self.path(file) for file in sources if not file.endswith('.ld')]
        run_tool(compiler, '-g', '-O0', '-no-pie', '-w', *options, '-o', self.path(name),
                 *parts, timeout=60)
        return self.path(name)

    def asked(self, program, expression, *args):
        """The condition that QEMU is asked for, or the first line of the complaint."""
        asked = f'{self.qemu}.asked'
        if os.path.exists(asked):
            os.unlink(asked)
        said = tt('find', self.run, expression, '--symbols', program, '--qemu', self.qemu,
                  '--from', '1', '--to', '2', *args, rc=None).stderr
        if not os.path.exists(asked):
            return said.splitlines()[0]
        with open(asked, encoding='ascii') as f:
            return re.search(r'find-condition=(.*),find-how', f.read()).group(1).strip()

    def becomes(self, program, wanted, *args):
        """Each expression becomes the text, with addresses for {NAME}; or, if that has no
        '*' or digit at its beginning, is refused with it."""
        addresses = {name: f'0x{int(address, 16):x}UL' for address, name in re.findall(
            r'^(\w+) \w (\w+)$', run_tool('nm', program)[0], re.M)}
        for expression, text in wanted:
            got = self.asked(program, expression, *args)
            if text.startswith('?'):
                check(text[1:] in got, f'{expression}: {got}')
            else:
                equal(got, text.format(**addresses), expression)


@limit(90)
def test_conversions(work):
    """Enumerators of C are int, char has the sign that it was compiled with, a _Bool is 0 or
    1, and sizes have 64 bits."""
    p = Programs(work)
    source = '''
typedef _Bool flag_t;
enum pos { LOW, HIGH = 5 } pos; enum wide { ONE = 1, WIDE = 0xffffffff } wide;
int delta = -7; char c; flag_t flag;
struct big { char c[3UL << 30]; int after; } *big;
struct huge { char c[(1UL << 32) + 8]; int after; } *huge;
int main(void) { return delta < HIGH; }
'''
    program = p.make('conv', {'conv.c': source})
    p.becomes(program, (
        ('delta < HIGH', '*(s32 *){delta} < 5'),
        ('delta < pos', '*(s32 *){delta} < *(u32 *){pos}'),
        ('delta < LOW - HIGH', '*(s32 *){delta} < 0 - 5'),
        ('delta < ONE', '*(s32 *){delta} < 1'),
        ('delta < WIDE', '*(s32 *){delta} < (u32)0xffffffff'),
        ('*(char *)$rdi < 0', '*(s8 *)(u64)$rdi < 0'),
        ('(flag_t)delta', '(bool)*(s32 *){delta}'),
        ('(flag_t)delta == flag', '(bool)*(s32 *){delta} == *(u8 *){flag}'),
        ('big[1].after', '*(s32 *)(*(u64 *){big} + 0x180000004UL)'),
        ('delta + sizeof(struct huge)', '*(s32 *){delta} + 0x10000000cUL'),
        ('delta + sizeof(struct big)', '*(s32 *){delta} + 0xc0000004UL'),
        ('struct big', '?a type is no value')))
    program = p.make('conv2', {'conv.c': source}, '-funsigned-char')
    p.becomes(program, (('c == 0xff', '*(u8 *){c} == 255'),
                        ('*(char *)$rdi == 0xff', '*(u8 *)(u64)$rdi == 255'),
                        ('(char)delta', '(u8)*(s32 *){delta}'),
                        ('(signed char)delta', '(s8)*(s32 *){delta}')))


@limit(90)
def test_one_of_several(work):
    """Types of one name that differ are refused, unless it is clear which one is meant; the
    same one in many files is one."""
    p = Programs(work)
    common = '''
struct part { int n; union { long l; struct { char a, b; }; }; struct part *next; int f : 3; };
typedef struct part part_t; typedef unsigned long count_t; static count_t count;
struct opaque;
'''
    program = p.make('several', {
        'a.c': common + 'typedef int same_t; same_t neg = -7; typedef int foo; foo bar = 3;'
                        'struct opaque *op; struct turned { int a, b; } turned;'
                        'struct part part; enum mixed { M = 1 } mixed; int n;'
                        'int main(void) { return neg; }',
        'b.c': common + 'typedef unsigned long same_t; same_t other; long foo = 7;'
                        'struct opaque { long pad; int x; } known;'
                        'struct turned { int b, a; } turned2; struct part part2;'
                        'enum mixed2 { M = 2 } mixed2;',
        'c.c': common + 'struct opaque { int x; } known2; part_t part3;'})
    p.becomes(program, (
        ('op->x', "?the members of 'struct opaque' are not known: there are several"),
        ('neg + sizeof(*op)', "?size of 'struct opaque' is not known: there are several"),
        ('known.x', '*(s32 *)0x%xUL' % (self_address(program, 'known') + 8)),
        ('known2.x', '*(s32 *){known2}'),
        ('((struct opaque *)$rdi)->x', "?several types 'struct opaque'"),
        ('(same_t)neg', "?several types 'same_t'"),
        ('((struct turned *)$rdi)->a', "?several types 'struct turned'"),
        ('turned.a', '*(s32 *){turned}'), ('M == 1', '?several constants'),
        ('((struct part *)$rdi)->f',
         '(s32)((s64)((u64)*(u8 *)((u64)$rdi + 0x18UL) << 61) >> 61)'),
        ('((part_t *)$rdi)->n', '*(s32 *)(u64)$rdi'), ('(count_t)neg', '(u64)*(s32 *){neg}'),
        ('(foo) - bar', "?'foo' is a variable"), ('(foo) == 7', "?'foo' is a variable"),
        ('foo == 7', '*(s64 *){foo} == 7'),
        ('(*&foo) - bar', '*(s64 *){foo} - *(s32 *){bar}')))


def self_address(program, name):
    return int(re.search(rf'^(\w+) \w {name}$', run_tool('nm', program)[0], re.M).group(1), 16)


@limit(90)
def test_variables(work):
    """Names of assembler have C's types; what the linker left out is not there; a function's
    static variables are; types of a section of their own."""
    p = Programs(work)
    program = p.make('asm', {
        's.s': '.data\n.globl asmvar\nasmvar: .long 5\n.globl asmtab\nasmtab: .quad 1, 2\n'
               '.section .note.GNU-stack,"",@progbits\n',
        'as.c': 'extern int asmvar; extern struct q { long a, b; } asmtab; int n;'
                'int main(void) { return asmvar + asmtab.b + n; }'})
    p.becomes(program, (
        ('asmvar + n', '*(s32 *){asmvar} + *(s32 *){n}'), ('n + sizeof(asmvar)',
                                                           '*(s32 *){n} + 0x4UL'),
        ('asmtab.a', '*(s64 *){asmtab}')))
    program = p.make('gone', {
        'g1.c': 'static int dead = 4; int deadglobal = 5; static int two = 1; int alive = 3;'
                'int unused(void) { return dead + deadglobal + two; } int other(void);'
                'int fun(int a) { static int counter; int both = a; return counter += both; }'
                'int main(void) { static int inner = 2; return alive + other() + inner++; }',
        'g2.c': 'static int two = 2; int fun(int);'
                'int alive2(void) { static int both, twice; return both++ + twice++; }'
                'int alive3(void) { static int twice; return twice++; }'
                'int other(void) { return two++ + fun(1) + alive2() + alive3(); }'},
                     '-ffunction-sections', '-fdata-sections', '-Wl,--gc-sections')
    statics = {name.split('.')[0]: f'*(s32 *)0x{int(at, 16):x}UL' for at, name in re.findall(
        r'^(\w+) \w ([a-z]+\.\d+)$', run_tool('nm', program)[0], re.M)}
    p.becomes(program, (
        ('dead', "?'dead' was optimized away"), ('deadglobal', "?was optimized away"),
        ('two', '*(s32 *){two}'), ('alive', '*(s32 *){alive}'),
        ('counter', statics['counter']), ('inner', statics['inner']),
        ('both', statics['both']), ('twice', "?several variables 'twice'"),
        ('a', "?'a' is a parameter of fun()")))
    program = p.make('units', {
        'u.c': 'struct { unsigned a : 5; int c : 4; } bits;'
               'struct s { int n; struct { int in; } x; } s, *sp = &s;'
               'int main(void) { return bits.c + sp->x.in; }'}, '-fdebug-types-section')
    p.becomes(program, (
        ('bits.c', '(s32)((s64)((u64)*(u16 *){bits} << 55) >> 60)'),
        ('sp->x.in', '*(s32 *)(*(u64 *){sp} + 0x4UL)'),
        ('((struct s *)$rdi)->n', '*(s32 *)(u64)$rdi')))


PER_CPU = '''
SECTIONS { . = 0xffffffff81000000; .text : { *(.text*) } .data : { *(.data) *(.bss) }
.data..percpu 0x0 : { *(.data..percpu) } /DISCARD/ : { *(.eh_frame) *(.note*) *(.comment) } }
'''


@limit(60)
def test_of_each_cpu(work):
    """A per-CPU variable of a kernel has no address of its own, and what counts from 0 does
    not move with the kernel."""
    p = Programs(work)
    program = p.make('kernel', {
        'k.c': '#define P __attribute__((section(".data..percpu")))\n'
               'P int cpu_number = 4; P struct t { int pid; } *current_task; P int list[3];'
               'int glob = 1; int _start(void) { return cpu_number + glob; }',
        'k.ld': PER_CPU}, '-nostdlib', '-static', '-fno-pic', '-mcmodel=kernel', '-Wl,-T,' +
                     p.path('k.ld'))
    at = {name: self_address(program, name) for name in ('current_task', 'cpu_number', 'glob')}
    wanted = '?write *(TYPE *)($gs_base + (u64)&'
    p.becomes(program, (
        ('current_task->pid', wanted + 'current_task)'), ('cpu_number', wanted + 'cpu_number'),
        ('*&cpu_number', wanted), ('list[1]', wanted), ('(&cpu_number)[1]', wanted),
        ('(*(struct t **)($gs_base + (u64)&current_task))->pid',
         f'*(s32 *)*(u64 *)(u64)($gs_base + (u64)0x{at["current_task"]:x}UL)'),
        ('$rax + sizeof(cpu_number)', '$rax + 0x4UL'),
        ('glob', f'*(s32 *)0x{at["glob"] + 0x1000000:x}UL')), '--offset', '0x1000000')


@limit(60)
def test_of_a_module(work):
    """What has no address yet has none; --offset says where .text is."""
    p = Programs(work)
    for options in ((), ('-g0',)):
        program = p.make('module.o', {
            'm.c': '__attribute__((section(".data..percpu"))) int each[99] = { 1 };'
                   'int data = 1; int first(void) { return 1; } int fun(void) { return data; }'
                   '__attribute__((section(".init.text"))) int init(void) { return 2; }'},
                         '-c', *options)
        at = self_address(program, 'fun')
        check(at, 'fun is not the first one')
        p.becomes(program, (('at fun', '?no address until its module is loaded'),
                            ('$rip == fun', '?no address until its module is loaded')))
        p.becomes(program, (('at fun', f'at 0x{at + 0xffffffffc0000000:x}UL'),
                            ('at init', '?not in .text')), '--offset', '0xffffffffc0000000')


CPLUS = '''
struct B { int pad; int x; virtual ~B() {} };
struct D : B { int y; int x; };
struct V : virtual B { int v; };
struct W : V { int w; };
struct L { int both; }; struct R { int both, alone; }; struct LR : L, R { int own; } lr;
D d; D *dp = &d; W w; W *wp = &w; int i = 4; int &r = i; D &dr = d;
namespace n1 { int inside; struct S { int a; }; S s; }
typedef signed char small; enum E : small { NEG = -1 } e = NEG;
enum class G : const small { X = -2 } g = G::X;
enum wide : unsigned long { ONE = 1 } wide; enum plain { LOW, HIGH = 5 } plain;
struct St { static int sm; int a; } st; int St::sm = 2;
class K { public: int z; } k;
int main() { w.x = 1; wp->v = 2; return dp->x + r + dr.y + n1::inside + lr.own; }
'''


@limit(90)
def test_of_cplus(work):
    """Members hide those of base classes, references are followed, and what only the program
    knows is refused."""
    if not shutil.which('g++'):
        raise Skip('needs g++')
    p = Programs(work)
    program = p.make('cplus', {
        'c.cc': CPLUS, 'c2.cc': 'class Two { public: int z; } two1;',
        'c3.cc': 'class Two { public: long pad; int z; }; static Two two2; int f() { return '
                 'two2.z; }'}, compiler='g++')
    at = {name: self_address(program, name) for name in ('d', 'lr')}
    p.becomes(program, (
        ('d.x', f'*(s32 *)0x{at["d"] + 20:x}UL'), ('d.pad', f'*(s32 *)0x{at["d"] + 8:x}UL'),
        ('d.y', f'*(s32 *)0x{at["d"] + 16:x}UL'), ('w.x', "?'x' has no fixed place"),
        ('wp->w', '*(s32 *)(*(u64 *){wp} + 0xcUL)'), ('lr.both', '?several base classes'),
        ('lr.alone', f'*(s32 *)0x{at["lr"] + 8:x}UL'),
        ('r == 4', '*(s32 *)*(u64 *){r} == 4'), ('dr.y', '*(s32 *)(*(u64 *){dr} + 0x10UL)'),
        ('&r == &i', '*(u64 *){r} == {i}'), ('i + sizeof(r)', '*(s32 *){i} + 0x4UL'),
        ('e < 0', '*(s8 *){e} < 0'), ('g < 0', '*(s8 *){g} < 0'),
        ('i < HIGH', '*(s32 *){i} < 5'), ('i < ONE', '*(s32 *){i} < 0x1UL'),
        ('st.sm', "?'sm' has no fixed place"), ('((K *)$rdi)->z', '*(s32 *)(u64)$rdi'),
        ('((S *)$rdi)->a', '*(s32 *)(u64)$rdi'),
        ('i + St::sm', '*(s32 *){i} + *(s32 *)0x%xUL' % self_address(program, '_ZN2St2smE')),
        ('((Two *)$rdi)->z', "?several types 'Two'")))


SCOPES = '''
struct Job {
    enum State { IDLE = 3, BUSY = 7 }; enum class Mode : short { FAST = -2, SLOW };
    struct Inner { int a, b; }; struct Out;
    static const int LIMIT = 99; static int count; State state; Mode mode; Inner in;
    int run(int x); static int twice(int x); static int twice(long x); };
int Job::count = 5; int Job::run(int x) { return x + count; }
int Job::twice(int x) { return 2 * x; } int Job::twice(long x) { return 3 * x; }
struct Job::Out { enum Deep { DEEP = 44 } deep; int z; };
struct Other { enum State { IDLE = 30 } state; struct Inner { long pad; int a; } in; };
namespace n1 { enum E { ONE = 21 }; int var = 9;
    namespace n2 { enum E { ONE = 11 }; int var = 4;
        struct C { struct D { enum Color { RED = 13 } color; }; }; } }
namespace { struct Anon { enum Secret { HIDDEN = 77 } secret; } anon; }
int var = 1; Job job; Other other; n1::n2::C::D d; Job::Out out; n1::E e1; n1::n2::E e2;
int main() { return job.run(3) + Job::twice(2) + Job::twice(2L) + Job::LIMIT + anon.secret; }
'''


@limit(90)
def test_scopes_of_cplus(work):
    """What lies in classes, namespaces and enumerations is named as C++ does, in every form of
    DWARF; outer scopes may be left out, if it is clear."""
    if not shutil.which('g++'):
        raise Skip('needs g++')
    p = Programs(work)
    for options in ((), ('-gdwarf-4',), ('-fdebug-types-section',), ('-gsplit-dwarf',)):
        program = p.make('scopes', {'scopes.cc': SCOPES}, *options, compiler='g++')
        symbols = {name: f'0x{self_address(program, name):x}UL' for name in (
            '_ZN3Job5countE', '_ZN3Job3runEi', '_ZN2n13varE', '_ZN2n12n23varE', 'var', 'job')}
        var, count = f'*(s32 *){symbols["var"]}', f'*(s32 *){symbols["_ZN3Job5countE"]}'
        p.becomes(program, (
            ('job.state == Job::IDLE', f'*(u32 *){symbols["job"]} == 3'),
            ('::var + Job::State::BUSY', f'{var} + 7'), ('::var + BUSY', f'{var} + 7'),
            ('::var + IDLE', '?several constants'), ('::var + Other::IDLE', f'{var} + 30'),
            ('::var + Job::Mode::FAST', f'{var} + (s32)0xfffffffffffffffe'),
            ('::var + Job::FAST', "?no symbol 'Job::FAST'"),
            ('::var + Job::Out::DEEP', f'{var} + 44'),
            ('::var + Out::Deep::DEEP', f'{var} + 44'),
            ('::var + n1::n2::C::D::RED', f'{var} + 13'), ('::var + D::RED', f'{var} + 13'),
            ('::var + n1::ONE', f'{var} + 21'), ('::var + n2::ONE', f'{var} + 11'),
            ('::var + n1::n2::E::ONE', f'{var} + 11'), ('::var + ONE', '?several constants'),
            ('::var + Anon::HIDDEN', f'{var} + 77'), ('::var + Job::LIMIT', f'{var} + 99'),
            ('::var + D', "?no symbol 'D'"), ('::D::RED', "?no symbol '::D::RED'"),
            ('Job::count', count), ('count', count), ('n1::Job::count', '?no symbol'),
            ('n1::var', f'*(s32 *){symbols["_ZN2n13varE"]}'),
            ('n1::n2::var', f'*(s32 *){symbols["_ZN2n12n23varE"]}'),
            ('at Job::run', f'at {symbols["_ZN3Job3runEi"]}'),
            ('at Job::twice', '?several functions'),
            ('((Job::Inner *)$rdi)->b', '*(s32 *)((u64)$rdi + 0x4UL)'),
            ('((struct Other::Inner *)$rdi)->a', '*(s32 *)((u64)$rdi + 0x8UL)'),
            ('((Job::Out *)$rdi)->z', '*(s32 *)((u64)$rdi + 0x4UL)'),
            ('((Inner *)$rdi)->a', "?Inner'"),
            ('(Job::Nobody *)$rdi', "?no symbol 'Job::Nobody'"),
            ('$rax + sizeof(Job::Inner)', '$rax + 0x8UL')))


def listener():
    server = socket.socket()
    server.bind(('127.0.0.1', 0))
    server.listen()
    server.setblocking(False)
    return server


@limit(60)
def test_asks_no_server(work):
    """Debug information that is missing is not asked for on the network, though gdb would;
    of a file that is missing the name is said."""
    p = Programs(work)
    program = p.make('bare', {'n.c': 'int n; int main(void) { return n; }'}, '-Wl,--build-id')
    run_tool('strip', program)
    with listener() as server:
        os.environ['DEBUGINFOD_URLS'] = f'http://127.0.0.1:{server.getsockname()[1]}/'
        os.environ['DEBUGINFOD_CACHE_PATH'] = p.path('cache')
        try:
            check('has no symbols' in p.asked(program, 'n == 1'), 'it has no symbols')
        finally:
            del os.environ['DEBUGINFOD_URLS'], os.environ['DEBUGINFOD_CACHE_PATH']
        try:
            server.accept()
            check(False, 'it connected')
        except BlockingIOError:
            pass
    program = p.make('split', {'n.c': 'int n; int main(void) { return n; }'}, '-gsplit-dwarf')
    p.becomes(program, (('n', '*(s32 *){n}'),))
    for name in os.listdir(work):
        if name.endswith('.dwo'):
            os.unlink(p.path(name))
    p.becomes(program, (('n', "?.dwo' that has it is missing"),
                        ('*(u32 *)&n', '*(u32 *){n}')))


def debug_info(abbreviations, entries):
    """A program without code whose debug information has these entries, as assembler. An
    abbreviation is a code, a tag, whether it has children, attributes and forms."""
    table = ''.join(f'.uleb128 {code}, {tag}\n.byte {has_children}\n' +
                    ''.join(f'.uleb128 {x}\n' for x in attributes) + '.byte 0, 0\n'
                    for code, tag, has_children, *attributes in abbreviations)
    return f'''.section .debug_abbrev,"",@progbits
{table}.byte 0
.section .debug_info,"",@progbits
start: .long end - begin
begin: .short 4
.long 0
.byte 8
.uleb128 1
.asciz "x"
{entries}end:
.text
.globl _start
_start: ret
.section .note.GNU-stack,"",@progbits
'''


def many_members(n, n_others):
    """A struct of N members without a name, each of a struct that has none itself, but so many
    functions."""
    return debug_info(((1, 0x11, 1, 3, 8), (2, 0x13, 1, 3, 8, 0xb, 0xb),
                       (3, 0xd, 0, 0x49, 0x13), (4, 0x13, 1, 0xb, 0xb), (5, 0x2e, 0)),
                      f'''inner: .uleb128 4
.byte 0
.rept {n_others}
.uleb128 5
.endr
.byte 0
.uleb128 2
.asciz "many"
.byte 8
.rept {n}
.uleb128 3
.long inner - start
.endr
.byte 0, 0
''')


@limit(60)
def test_many_members(work):
    """The steps of a search for a member grow with the members, not with their square, and
    end after some seconds."""
    p = Programs(work)
    for n in (0, 400000):
        program = p.make('many', {'m.s': many_members(90000, n)}, '-nostdlib', '-static')
        p.becomes(program, (('((struct many *)$rdi)->x', "?'struct many' has no member 'x'"),))


@limit(60)
def test_not_of_this_guest(work):
    """A program that can lie anywhere needs --offset, and one of another architecture is
    refused; an enumerator that is large has no sign."""
    p = Programs(work)
    source = ('enum all { ALL = 0xffffffffffffffff } all; int n; int f(void) { return n; }'
              'int main(void) { static int inner = 3; return f() + inner++; }')
    for options in ((), ('-g0',)):
        program = p.make('anywhere', {'any.c': source}, '-pie', '-fPIE', *options)
        at = self_address(program, 'f')
        p.becomes(program, (('at f', '?no address until its program is loaded'),
                            ('*(int *)&n', '?no address until its program is loaded'),
                            ('$rax == 1', '$rax == 1')))
        p.becomes(program, (('at f', f'at 0x{at + 0x555555554000:x}UL'),), '--offset',
                  '0x555555554000')
    program = p.make('fixed', {'fix.c': source})
    p.becomes(program, (('all == ALL', '*(u64 *){all} == 0xffffffffffffffffUL'),
                        ('ALL - n > 0', '0xffffffffffffffffUL - *(s32 *){n} > 0'),
                        ('n + 1.5', '?floating point cannot be used'),
                        ('++n', '?would change something'), ('f(1)', '?cannot be called')))
    with open(program, 'r+b') as f:
        f.seek(18)
        f.write(bytes((183, 0)))
    p.becomes(program, (('n == 1', '?another architecture'),))


def overlapping(n, tag):
    """Entries each of which is the first one inside of the one before it, and also the one
    that is said to follow that."""
    entries = ''.join(f'd{i}: .uleb128 2\n.long d{i + 1} - start\n' for i in range(n))
    return debug_info(((1, 0x11, 1, 3, 8, 0x13, 0xb), (2, tag, 1, 1, 0x13)),
                      f'.byte 0x21\n{entries}d{n}: .fill {n + 2}, 1, 0\n')


@limit(60)
def test_overlapping_entries(work):
    """A walk through damaged debug information does not meet entries again and again: of
    80 in each other there would be more than 10**16 ways."""
    p = Programs(work)
    for tag in (0x39, 0x13, 0xb, 0x2e):     # namespaces, structs, blocks, functions
        program = p.make('overlap', {'o.s': overlapping(80, tag)}, '-nostdlib', '-static')
        p.becomes(program, (('nobody == 1', "?no symbol 'nobody'"),
                            ('n::nobody == 1', "?no symbol 'n::nobody'"),
                            ('(n::nobody *)$rdi', "?no symbol 'n::nobody'")))
