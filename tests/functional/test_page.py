# SPDX-License-Identifier: GPL-2.0-or-later
"""tt page: the page draws in a real browser, a click says the command, and nothing that a
run says is more than text."""

import json
import os
import re
import shutil
import subprocess

from browser import Browser, find_browser
from guests import guest_args
from test_full import add_full
from test_screen import picture
from ttlib import (BUILD, Skip, check, edit_manifest, equal, goto_exact, limit, one_sentence,
                   qemu_binary, read_text, record, recorder, stopped_replay, tool, tt,
                   wait_until)

HOSTILE = '</script><script>document.body.dataset.owned=1</script><img src=x onerror=alert(1)>'
SIZE_MAX = 3 << 20
EVENTS = 10**6
CHECKSUM = 65521        # a prime


def page_of(work, run, *args, name='page', rc=0):
    if not os.path.exists(os.path.join(BUILD, 'tt-page', 'uPlot.iife.min.js')):
        raise Skip('the build could not fetch uPlot: it needs npm')
    path = os.path.join(work, f'{name}.html')
    done = tt('page', run, '-o', path, *args, rc=rc)
    return path, done


def middle(browser, chart):
    """Where a chart's drawing area is: left, top, width, height."""
    box = browser.value(f"""(() => {{
        const e = document.querySelector('#{chart} .u-over');
        e.scrollIntoView({{block: 'center'}});
        const r = e.getBoundingClientRect();
        return [r.left, r.top, r.width, r.height].join(' ');
    }})()""")
    return [float(n) for n in box.split()]


def command(browser):
    return browser.value("document.getElementById('text').textContent")


def ink(browser, chart):
    """How many pixels of a chart are coloured."""
    return browser.value(f"""(() => {{
        const c = document.querySelector('#{chart} canvas');
        const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        let n = 0;
        for (let i = 0; i < d.length; i += 4) {{
            n += d[i + 3] > 0 && Math.abs(d[i] - d[i + 2]) > 40;
        }}
        return n;
    }})()""")


def record_some(work):
    """A bare guest with a mark, a full checkpoint and a branch that has a bad name."""
    with recorder(work, guest_args(work, 'torture', 'rounds=30 percent=30'), 'page',
                  qmp=1) as vm:
        vm.wait_serial('ticks')
        vm.qmp.cmd('stop')              # it does not end before the host is ready
        place = vm.qmp.cmd('tt-mark', name='here')
        point = add_full(vm)
        vm.qmp.cmd('cont')
        vm.wait(0)
    return vm.run, place['position'], point


def spoil(run):
    """What a run of somebody else's may say."""
    edit_manifest(run, lambda text: re.sub(
        '(?m)^command-line=.*$', f'command-line={HOSTILE}', text))


@limit(120)
def test_page(work):
    """It draws, zooms, and says where a click leads; a hostile run stays text."""
    find_browser()
    run, mark, point = record_some(work)
    spoil(run)
    path, _ = page_of(work, run)
    text = read_text(path)
    check(HOSTILE not in text and '\\u003c/script' in text, 'markup of the run is in it')
    check(os.path.getsize(path) < SIZE_MAX, f'{os.path.getsize(path)} bytes')
    with Browser(work, f'file://{path}') as b:
        b.wait("document.body && document.body.dataset.ready === 'yes'")
        for chart in ('time', 'events', 'rates'):
            check(ink(b, chart) > 100, f'nothing is drawn in {chart}: {ink(b, chart)}')
        equal(b.value('document.body.dataset.owned'), None, 'a script of the run')
        equal(b.value("document.querySelectorAll('img').length"), 0, 'images')
        check(HOSTILE in b.value("document.getElementById('facts').textContent"),
              'the command line as text')
        clicks(b, run, mark, point)
        equal(b.errors, [], 'errors of the page')


def clicks_the_middle(b, named=()):
    """Returns the end of the run."""
    end = int(b.value("JSON.parse(document.getElementById('data').textContent).end"))
    left, top, width, height = middle(b, 'events')
    b.click(left + width / 2, top + height / 2)
    found = re.fullmatch(r'tt goto (\d+)', command(b))
    check(found, f'a click says {command(b)}')
    check(abs(int(found.group(1)) - end / 2) < end / 20 or
          int(found.group(1)) in named, f'{command(b)} of {end}')
    return end


def clicks(b, run, mark=None, point=None):
    """Of places that the page names: those of record_some, or none."""
    named = (mark, point['position']) if point else ()
    end = clicks_the_middle(b, named)
    if point:
        b.value("[...document.querySelectorAll('#marks tr')].pop().click()")
        equal(command(b), f'tt goto {mark}', 'a click on a mark')
        b.value("[...document.querySelectorAll('#checkpoints tr')]"
                ".find(r => r.textContent.includes('full')).click()")
        equal(command(b), f'tt branch {run} --at {point["id"]}', 'a click on a checkpoint')
    b.value("[...document.querySelectorAll('#console tr')].pop().click()")
    check(re.fullmatch(r'tt goto \d+', command(b)), command(b))
    left, top, width, height = middle(b, 'events')
    b.drag(left + width * 0.25, left + width * 0.5, top + height / 2)
    left, top, width, height = middle(b, 'rates')
    b.click(left + width - 8, top + height / 2)
    seen = int(command(b).split()[2])
    check(0.4 * end < seen < 0.6 * end or seen in named,
          f'zoomed to a quarter of {end}: the right edge is {seen}')


@limit(120)
def test_a_million_events(work):
    """A run of more than 10^6 events draws, zooms and is clicked like any other, and its page
    is no larger."""
    find_browser()
    run = record(work, guest_args(work, 'ports', f'reads={EVENTS + 1000}')).dir
    events = json.loads(tt('info', run, '--json').stdout)['events']
    check(events > EVENTS, f'only {events} events')
    path, _ = page_of(work, run)
    check(os.path.getsize(path) < SIZE_MAX, f'{os.path.getsize(path)} bytes')
    with Browser(work, f'file://{path}') as b:
        b.wait("document.body && document.body.dataset.ready === 'yes'")
        for chart in ('time', 'events', 'rates'):
            check(ink(b, chart) > 100, f'nothing is drawn in {chart}: {ink(b, chart)}')
        drawn = json.loads(b.value("""JSON.stringify(JSON.parse(
            document.getElementById('data').textContent).kinds.map(
            k => k.counts.reduce((a, n) => a + n)))"""))
        equal(sum(drawn), events, 'events in the chart')
        clicks(b, run)
        equal(b.errors, [], 'errors of the page')


def checksum(data):
    total = 0
    for value in data:
        total = (total * 31 + value) % CHECKSUM
    return total


SHOTS = f"""(async () => {{
    const all = [];
    for (const image of document.querySelectorAll('#shots img')) {{
        await image.decode();
        const c = document.createElement('canvas');
        c.width = image.naturalWidth;
        c.height = image.naturalHeight;
        const to = c.getContext('2d');
        to.drawImage(image, 0, 0);
        const data = to.getImageData(0, 0, c.width, c.height).data;
        let sum = 0;
        for (let i = 0; i < data.length; i += 4) {{
            for (let k = 0; k < 3; k++) {{
                sum = (sum * 31 + data[i + k]) % {CHECKSUM};
            }}
        }}
        all.push([image.alt.split(' ').pop(), c.width, c.height, sum]);
    }}
    document.body.dataset.shots = JSON.stringify(all);
}})()"""


def same_as_replay(work, run, shots):
    """Each picture is what screendump gives at its position."""
    with stopped_replay(work, run) as rep:
        for place, width, height, total in shots:
            goto_exact(rep, int(place))
            data = picture(rep, 'wanted.ppm')
            head = f'P6\n{width} {height}\n255\n'.encode()
            check(data.startswith(head), f'at {place}: {data[:20]} and not {head}')
            equal(total, checksum(data[len(head):]), f'the picture at {place}')


@limit(120)
def test_screenshots(work):
    """Pictures of the screen at a mark, at the end and between, each once; a click enlarges
    one and says how to go there."""
    find_browser()
    with recorder(work, guest_args(work, 'screen', 'rounds=5 turns=1000000'), qmp=1) as vm:
        vm.wait_serial('part')
        vm.qmp.cmd('stop')
        mark = vm.qmp.cmd('tt-mark', name='here')['position']
        parts = vm.serial.count(b'sum')
        vm.qmp.cmd('cont')
        wait_until(lambda: vm.serial.count(b'sum') > parts + 2, 'other pictures')
        vm.qmp.send('quit')
        vm.wait(0)
    run = vm.run
    path, _ = page_of(work, run, '--screenshots', '5', '--qemu', qemu_binary())
    with Browser(work, f'file://{path}') as b:
        b.wait("document.body && document.body.dataset.ready === 'yes'")
        b.value(SHOTS)
        b.wait("document.body.dataset.shots")
        shots = json.loads(b.value("document.body.dataset.shots"))
        end = json.loads(tt('info', run, '--json').stdout)['end']
        places = [int(shot[0]) for shot in shots]
        equal((len(places), places, places[-1]), (5, sorted(places), end), 'positions')
        check(mark in places, f'no picture at the mark, {mark}: {places}')
        check(len({tuple(shot[1:]) for shot in shots}) > 2, f'too few pictures: {shots}')
        same_as_replay(work, run, shots)
        enlarges(b, mark)
        equal(b.errors, [], 'errors of the page')
    _, done = page_of(work, record(work, guest_args(work, 'lines64'), name='blind').dir,
                      '--screenshots', '2', '--qemu', qemu_binary(), name='blind')
    check('no screen' in one_sentence(done.stderr, 'no screen'), done.stderr)
    with Browser(work, f'file://{os.path.join(work, "blind.html")}') as b:
        b.wait("document.body && document.body.dataset.ready === 'yes'")
        check('no screen' in b.value("document.getElementById('shots').textContent"), 'why')
        equal(b.value("document.querySelectorAll('img').length"), 0, 'images')
        clicks_the_middle(b)                # of a log of one segment


# Answers as QEMU does, until it is asked to go somewhere the second time.
FAKE = """#!/usr/bin/python3
import json, os, re, socket, sys
print('qemu-system-x86_64: warning: of no weight', file=sys.stderr, flush=True)
if 'REASON' == 'refused':
    sys.exit('qemu-system-x86_64: -tt replay: the cause')
sock = socket.socket(fileno=int(re.search(r'fd=(\\d+)', ' '.join(sys.argv))[1])).makefile('rw')
def put(what):
    print(json.dumps(what), file=sock, flush=True)
put({'QMP': {'version': {}, 'capabilities': []}})
n = 0
for line in sock:
    asked, answer = json.loads(line), {}
    if asked['execute'] == 'tt-goto':
        n += 1
        answer = {'position': n, 'reason': 'REASON' if n > 1 else 'target'}
    elif asked['execute'] == 'screendump':
        with open(asked['arguments']['filename'].replace('self', str(os.getpid())), 'wb') as f:
            f.write(b'P6\\n1 1\\n255\\nabc')
    put({'return': answer, **({'id': asked['id']} if 'id' in asked else {})})
"""


def screen_of(work, name):
    """How many pictures a page shows, and the text beside them."""
    with Browser(work, f'file://{os.path.join(work, name)}.html') as b:
        b.wait("document.body && document.body.dataset.ready === 'yes'")
        equal(b.errors, [], 'errors of the page')
        return (b.value("document.querySelectorAll('#shots img').length"),
                b.value("(document.querySelector('#shots p') || {}).textContent"))


@limit(120)
def test_pictures_missing(work):
    """A page that lacks pictures says from where on, and why: of a replay that is not exact,
    or does not get there; and QEMU's own words if it does not begin."""
    find_browser()
    run = record(work, guest_args(work, 'lines64')).dir
    qemu = os.path.join(work, 'fake-qemu')
    for reason, rc, why in (('diverged', 3, 'not exact'), ('interrupted', 1, 'not get there'),
                            ('damaged', 1, 'is damaged'), ('refused', 1, ': the cause')):
        with open(qemu, 'w', encoding='ascii') as f:
            f.write(FAKE.replace('REASON', reason))
        os.chmod(qemu, 0o755)
        _, done = page_of(work, run, '--screenshots', '3', '--qemu', qemu, name=reason, rc=rc)
        check(why in one_sentence(done.stderr, reason), done.stderr)
        if reason == 'refused':
            check(not os.path.exists(os.path.join(work, f'{reason}.html')), 'a page')
            continue
        pictures, text = screen_of(work, reason)
        equal(pictures, 1, f'{reason}: pictures')
        check(text and re.match(r'pictures from position \d+ on are missing: ', text) and
              why in text and text in done.stderr, f'{text} and {done.stderr}')


def spoil_segment(run, copy, part):
    """A copy of a run whose log is damaged after that part of its segments."""
    shutil.copytree(run, copy)
    with open(os.path.join(copy, 'log'), 'r+b') as f:
        starts = [m.start() for m in re.finditer(b'TTVMSEG\n', f.read())]
        check(len(starts) > 1, f'the log has {len(starts)} segments')
        f.seek(starts[int(len(starts) * part)] + 100)
        f.write(b'damage' * 10)


@limit(120)
def test_pictures_of_damage(work):
    """Of a log that is damaged in the middle, the page has the pictures before that; of one
    that is damaged at its beginning, none. Damage is no divergence."""
    find_browser()
    run = record(work, guest_args(work, 'screen', 'rounds=40')).dir
    for name, part, least in (('middle', 0.5, 2), ('beginning', 0, 0)):
        spoil_segment(run, f'{run}-{name}', part)
        _, plain = page_of(work, f'{run}-{name}', name=f'{name}-plain', rc=1)
        _, done = page_of(work, f'{run}-{name}', '--screenshots', '3', '--qemu', qemu_binary(),
                          name=name, rc=1)
        check('is damaged' in one_sentence(done.stderr, name), done.stderr)
        equal(done.stderr, plain.stderr, 'what is said')
        pictures, text = screen_of(work, name)
        check(pictures >= least and (least or not pictures), f'{name}: {pictures} pictures')
        check(text and 'on are missing: the log is damaged' in text, text)


def enlarges(b, mark):
    image = f"document.querySelector('#shots img[alt$=\" {mark}\"]')"
    small = b.value(f'{image}.getBoundingClientRect().width')
    b.value(f'{image}.click()')
    equal(command(b), f'tt goto {mark}', 'a click on a picture')
    large = b.value(f'{image}.getBoundingClientRect().width')
    equal((small, large), (182, 2 + b.value(f'{image}.naturalWidth')),
          'its width and that after a click, with the border')
    b.value(f'{image}.click()')
    equal(b.value(f'{image}.getBoundingClientRect().width'), small, 'another click')


@limit(60)
def test_without_library(work):
    """Without the chart library: one sentence. And what else is refused."""
    run, *_ = record_some(work)
    copy = os.path.join(work, 'tt')
    shutil.copy(os.path.realpath(tool('tt')), copy)
    done = subprocess.run([copy, 'page', run, '-o', os.path.join(work, 'x.html')],
                          capture_output=True, text=True, timeout=60)
    equal(done.returncode, 1, done.stderr)
    check('uPlot is missing' in done.stderr and 'npm' in done.stderr and
          done.stderr.count('\n') == 1, done.stderr)
    check(not os.path.exists(os.path.join(work, 'x.html')), 'a page without charts')
    check('-o is missing' in tt('page', run, rc=2).stderr, 'no -o')
    check('inside the run' in tt('page', run, '-o', f'{run}/x.html', rc=1).stderr, 'inside')
    for given, why in (('101', '100 pictures'), ('x', 'x')):
        check(why in tt('page', run, '-o', f'{run}y', '--screenshots', given, rc=2).stderr,
              given)
    said = tt('page', run, '-o', f'{run}y', '--screenshots', '1', '--qemu', '/bin/true',
              rc=1).stderr
    check('does not begin' in one_sentence(said, 'no QEMU'), said)
    check(not os.path.exists(f'{run}y'), 'a page without its pictures')
    for out, why in ((os.path.join(work, 'none', 'x.html'), 'there is no directory'),
                     (work, 'is not a regular file')):
        said = tt('page', run, '-o', out, '--force', '--screenshots', '1', '--qemu',
                  '/bin/true', rc=1).stderr
        check(why in one_sentence(said, out), said)
    path, _ = page_of(work, run)
    check('exists' in page_of(work, run, rc=1)[1].stderr, 'a file that is there')
    tt('page', run, '-o', path, '--force')
    piped = subprocess.run([tool('tt'), 'page', run, '-o', '-'], capture_output=True,
                           text=True, timeout=60, cwd=run)
    equal((piped.returncode, piped.stderr, os.path.exists(f'{run}/-')), (0, '', False), '-o -')
    check(piped.stdout == read_text(path), 'standard output is not the page')
    with open('/dev/full', 'w', encoding='ascii') as full:
        piped = subprocess.run([tool('tt'), 'page', run, '-o', '-'], stdout=full, text=True,
                               stderr=subprocess.PIPE, timeout=60)
    equal(piped.returncode, 1, 'a full disk')
    check('cannot write' in one_sentence(piped.stderr, 'full'), piped.stderr)
    check('no run' in tt('page', f'{run}x', '-o', f'{path}x', rc=1).stderr, 'no run')
    log = os.path.join(run, 'log')
    with open(log, 'r+b') as f:
        f.seek(os.path.getsize(log) // 2)
        f.write(b'damage' * 10)
    _, done = page_of(work, run, name='damaged', rc=1)
    check(len(done.stderr.splitlines()) == 1, done.stderr)
    check('"damage":""' not in read_text(os.path.join(work, 'damaged.html')), 'damage')
