# SPDX-License-Identifier: GPL-2.0-or-later
"""tt page: the page draws in a real browser, a click says the command, and nothing that a
run says is more than text."""

import os
import re
import shutil
import subprocess

from browser import Browser, find_browser
from guests import guest_args
from test_full import add_full
from ttlib import (BUILD, Skip, check, edit_manifest, equal, limit, read_text, recorder,
                   tool, tt)

HOSTILE = '</script><script>document.body.dataset.owned=1</script><img src=x onerror=alert(1)>'
SIZE_MAX = 3 << 20


def page_of(work, run, name='page', rc=0):
    if not os.path.exists(os.path.join(BUILD, 'tt-page', 'uPlot.iife.min.js')):
        raise Skip('the build could not fetch uPlot: it needs npm')
    path = os.path.join(work, f'{name}.html')
    done = tt('page', run, '-o', path, rc=rc)
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
        place = vm.qmp.cmd('tt-mark', name='here')
        point = add_full(vm)
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


def clicks(b, run, mark, point):
    end = int(b.value("JSON.parse(document.getElementById('data').textContent).end"))
    left, top, width, height = middle(b, 'events')
    b.click(left + width / 2, top + height / 2)
    found = re.fullmatch(r'tt goto (\d+)', command(b))
    check(found, f'a click says {command(b)}')
    check(abs(int(found.group(1)) - end / 2) < end / 20 or
          int(found.group(1)) in (mark, point['position']), f'{command(b)} of {end}')
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
    check(0.4 * end < seen < 0.6 * end or seen in (mark, point['position']),
          f'zoomed to a quarter of {end}: the right edge is {seen}')


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
    path, _ = page_of(work, run)
    check('exists' in page_of(work, run, rc=1)[1].stderr, 'a file that is there')
    tt('page', run, '-o', path, '--force')
    check('no run' in tt('page', f'{run}x', '-o', f'{path}x', rc=1).stderr, 'no run')
    log = os.path.join(run, 'log')
    with open(log, 'r+b') as f:
        f.seek(os.path.getsize(log) // 2)
        f.write(b'damage' * 10)
    _, done = page_of(work, run, 'damaged', rc=1)
    check(len(done.stderr.splitlines()) == 1, done.stderr)
    check('"damage":""' not in read_text(os.path.join(work, 'damaged.html')), 'damage')
