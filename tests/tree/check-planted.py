#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Plants faults in copies of the tree: the checks of the tree must see them.

    check-planted.py TOP-DIRECTORY

Prints TAP. Each case changes a fresh copy of our sources and compares what
scripts/check-layering.py, or tests/checks/sizes, says before and after: it must
fail, and the right complaint must be new.
"""
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile

PARTS = ('accel-tt', 'block-tt', 'hw-tt', 'net-tt', 'include', 'replay-engine',
         'gdbstub-tt', 'monitor-cmds', 'scripts', 'tests/checks', 'docs/explanation')
PAGE = 'docs/explanation/architecture.rst'
SPDX = '/* SPDX-License-Identifier: GPL-2.0-or-later */\n'


def append(path, text):
    with open(path, 'a', encoding='utf-8') as f:
        f.write(text)


def change(path, old, new):
    with open(path, encoding='utf-8') as f:
        text = f.read()
    if old not in text:
        raise SystemExit(f'Bail out! {path} has no "{old}" to change')
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text.replace(old, new))


def a_function_of(room):
    """A function that a file of @room defines, by the check's own reading."""
    spec = importlib.util.spec_from_file_location(
        'layering', 'scripts/check-layering.py')
    layering = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(layering)
    rooms = layering.Rooms('scripts')
    for name, path in sorted(rooms.owner.items()):
        if rooms.room_of[path] == room and path.endswith('.c') and \
                re.search(rf'\b{name}\(', rooms.sources[path].code):
            return name
    raise SystemExit(f'Bail out! {room} defines no function')


def circle(n):
    """@n files of one room, each of which calls the next one."""
    for i in range(n):
        append(f'replay-engine/trace/tt-planted{i}.c',
               f'{SPDX}void tt_planted{i}(void)\n'
               f'{{\n    tt_planted{(i + 1) % n}();\n}}\n')


def upward_call():
    append('accel-tt/tt-vcpu.c' if os.path.exists('accel-tt/tt-vcpu.c')
           else 'accel-tt/tcg/tt-vcpu.c',
           f'\nvoid tt_planted(void)\n{{\n    {a_function_of("control")}();\n}}\n')


def upward_header():
    n = a_function_of('control')
    append('accel-tt/tt-token.h',
           f'\nvoid {n}(void);\nstatic inline void tt_planted(void)\n'
           f'{{\n    {n}();\n}}\n')


def upward_declaration():
    append('accel-tt/tt-token.h', f'\nvoid {a_function_of("control")}(void);\n')


def upward_hook():
    append('include/tt/hooks.h', f'\nvoid {a_function_of("control")}(void);\n')


def upward_event():
    append('accel-tt/tt-vcpu.c', '\nvoid tt_planted(void)\n'
           '{\n    qapi_event_send_tt_progress(0, 0);\n}\n')


def upward_command():
    append('accel-tt/tt-vcpu.c', '\nvoid tt_planted(void)\n'
           '{\n    qmp_tt_interrupt(NULL);\n}\n')


def call_of_neighbour():
    append('replay-engine/timeline/tt-touched.c',
           f'\nvoid tt_planted(void)\n{{\n    {a_function_of("pages")}();\n}}\n')


def upward_include():
    append('replay-engine/log/tt-ring.c', '#include "run/tt-manifest.h"\n')


def private_header():
    append('replay-engine/run/tt-runstore.c', '#include "pages/tt-pagemap.h"\n')


def core_with_qemu():
    append('replay-engine/log/tt-ring.c', '#include "qemu/osdep.h"\n')


def core_with_clock():
    append('replay-engine/log/tt-ring.c',
           '\nlong tt_planted(void)\n{\n    return g_get_real_time();\n}\n')


def stray():
    append('replay-engine/tt-stray.c', SPDX)


def deep_stray():
    os.makedirs('replay-engine/log/deep/er')
    append('replay-engine/log/deep/er/tt-stray.h', SPDX)


def room_not_listed():
    change('README.rst', '\n``replay-engine/travel`` ', '\n``replay-engine/trip`` ')


def room_too_high():
    change('README.rst', '\n``monitor-cmds`` ', '\n``replay-engine/io`` x\n``monitor-cmds`` ')


def changed_page():
    change(PAGE, '| startup ', '| begin   ')


def changed_floors():
    change('scripts/layers.toml', 'says = "core: branch traces, system calls"',
           'says = "core: traces"')


def long_file():
    append('replay-engine/trace/tt-planted.c', SPDX * 501)


def function_of(lines):
    append('replay-engine/trace/tt-planted.c', SPDX + 'void tt_planted(void)\n'
           '{\n' + '    ;\n' * (lines - 2) + '}\n')


def whole_file():
    append('replay-engine/trace/tt-planted.c', SPDX * 500)


LAYERING = 'scripts/check-layering.py'
SIZES = 'tests/checks/sizes'

# What is planted, how, which check sees it, and what is new in its answer; None:
# nothing, for that is allowed.
CASES = (
    ('a call of an upper floor', upward_call, LAYERING,
     r'tt-vcpu\.c:\d+: names tt_\w+ of .*: accel-tt\S* may not use control'),
    ('a header that calls an upper floor inline', upward_header, LAYERING,
     r'tt-token\.h:\d+: names tt_\w+ of .*: accel-tt may not use control'),
    ('a header that declares a function of an upper floor', upward_declaration,
     LAYERING, r'tt-token\.h:\d+: names tt_\w+ of .*: accel-tt may not use control'),
    ('a hook that an upper floor defines, which is allowed', upward_hook, LAYERING,
     None),
    ('an event of QMP from below', upward_event, LAYERING,
     r'tt-vcpu\.c:\d+: names qapi_event_send_tt_progress of .*: accel-tt may not'),
    ('a command of QMP that is called from below', upward_command, LAYERING,
     r'tt-vcpu\.c:\d+: names qmp_tt_interrupt of .*: accel-tt may not'),
    ('a call of a room of the same floor', call_of_neighbour, LAYERING,
     r'tt-touched\.c:\d+: names .*: timeline may not use pages'),
    ('an include of an upper floor', upward_include, LAYERING,
     r'tt-ring\.c:\d+: log may not include run/tt-manifest\.h of run'),
    ('a private header of another room', private_header, LAYERING,
     r'tt-runstore\.c:\d+: pages/tt-pagemap\.h is private to pages'),
    ('a core that includes QEMU', core_with_qemu, LAYERING,
     r'tt-ring\.c:\d+: a core includes no header of QEMU'),
    ('a core that looks at the clock', core_with_clock, LAYERING,
     r'tt-ring\.c:\d+: a core may not use g_get_real_time'),
    ('a circle of four files', lambda: circle(4), LAYERING,
     r'trace: 4 files use each other in a circle: tt-planted0, .*tt-planted3'),
    ('a circle of three files, which is allowed', lambda: circle(3), LAYERING,
     None),
    ('a file that belongs to no room', stray, LAYERING,
     r'replay-engine/tt-stray\.c belongs to no room'),
    ('a file that belongs to no room, in a folder of a room', deep_stray, LAYERING,
     r'replay-engine/log/deep/er/tt-stray\.h belongs to no room'),
    ('a room that the README does not list', room_not_listed, LAYERING,
     r'README\.rst does not list replay-engine/travel'),
    ('a README that lists a room above its floor', room_too_high, LAYERING,
     r'README\.rst lists replay-engine/io above a room of a higher floor'),
    ('a drawing that was changed', changed_page, LAYERING,
     r'architecture\.rst does not show these floors'),
    ('floors that the drawing does not show', changed_floors, LAYERING,
     r'architecture\.rst does not show these floors'),
    ('a file of 501 lines', long_file, SIZES, r'tt-planted\.c: 501 lines'),
    ('a file of 500 lines, which is allowed', whole_file, SIZES, None),
    ('a function of 81 lines', lambda: function_of(81), SIZES,
     r'tt-planted\.c:3: a function of 81 lines'),
    ('a function of 80 lines, which is allowed', lambda: function_of(80), SIZES,
     None),
)


def complaints(check):
    """The lines that name what is wrong here, and the exit status."""
    # CC: that the headers compile alone is not what is tested here.
    command = [sys.executable, check, '.'] if check == LAYERING else [check]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120,
                          env=os.environ | {'TT_TOP': os.getcwd(),
                                             'CC': 'true'},
                          check=False)
    lines = (done.stdout + done.stderr).splitlines()
    return {line for line in lines if line.startswith('# ') or
            line.startswith('too long: ')}, done.returncode


def fault(plant, check, wanted, before):
    """What is wrong with the check's answer; None: it is as it should be."""
    plant()
    after, status = complaints(check)
    new = after - before
    if wanted is None:
        return f'it complains: {sorted(new)}' if new else None
    if not any(re.search(wanted, line) for line in new):
        return f'it does not say "{wanted}" but {sorted(new)}'
    return None if status else 'it says so, and its exit status is 0'


def copy_tree(top, to):
    for part in PARTS:
        shutil.copytree(os.path.join(top, part), os.path.join(to, part),
                        ignore=shutil.ignore_patterns('__pycache__'))
    shutil.copy(os.path.join(top, 'README.rst'), to)


def main():
    top = os.path.abspath(sys.argv[1])
    failed = 0
    print(f'1..{len(CASES)}', flush=True)
    with tempfile.TemporaryDirectory(prefix='tt-planted-') as tmp:
        clean = os.path.join(tmp, 'clean')
        copy_tree(top, clean)
        os.chdir(clean)
        before = {check: complaints(check)[0] for check in (LAYERING, SIZES)}
        for number, (what, plant, check, wanted) in enumerate(CASES, 1):
            here = os.path.join(tmp, str(number))
            shutil.copytree(clean, here)
            os.chdir(here)
            wrong = fault(plant, check, wanted, before[check])
            failed += bool(wrong)
            print(f'{"not ok" if wrong else "ok"} {number} '
                  f'{os.path.basename(check)} sees {what}', flush=True)
            if wrong:
                print(f'# {wrong}')
            os.chdir(tmp)
            shutil.rmtree(here)
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
