# SPDX-License-Identifier: GPL-2.0-or-later
"""Page guarding: a write to guest RAM that does not reach the log is found when it
is made, and who made it is named."""

import json
import os
import re

from guests import guest_args
from ttlib import (Gdb, Vm, check, check_exact, equal, goto, limit, record,
                   recorder, replay, run_tool, tool, wait_until)

SUM = (r'tt: guard: pages were written by something other than a vCPU (\d+) times; '
       r'(\d+) writes')


def told(vm):
    """How many pages were written, how many writes were not in the log."""
    found = re.search(SUM, vm.stderr)
    check(found, f'no sum of the guard: {vm.stderr}')
    return int(found.group(1)), int(found.group(2))


def all_logged(work, name, append=None, least=1):
    run = record(work, guest_args(work, name, append), name=name,
                 options=',guard=on')
    pages, wrong = told(run.vm)
    check(pages >= least and not wrong, run.vm.stderr)
    check_exact(work, run)


def test_dma(work):
    """What disks bring in is in the log; a guarded run replays."""
    all_logged(work, 'dmacode', 'rounds=60', 100)
    all_logged(work, 'selfdma', least=10)


def test_firmware(work):
    """Flash memory, SMM's save area, video memory: no false alarm."""
    for name in ('pflash', 'smm', 'screen'):
        all_logged(work, name)


def test_torture(work):
    """DMA and interrupts at any place."""
    all_logged(work, 'torture', 'rounds=1 percent=3', 100)


@limit(60)
def test_a_hole(work):
    """A device's write that is left out of the log is told: where, and who."""
    named = 0
    for number in (100, 150, 300, 450):
        run = record(work, guest_args(work, 'dmacode', 'rounds=150'),
                     name=f'hole{number}',
                     options=f',guard=on,x-unlogged={number}')
        pages, wrong = told(run.vm)
        check(pages > 100, f'{pages} pages')
        if not wrong:               # it wrote what was there already
            continue
        text = run.vm.stderr
        equal(wrong, 1, text)
        check(re.search(r'not in the log, at position \d+: RAM block pc.ram, '
                        r'offset 0x[0-9a-f]+, within \d+ bytes', text), text)
        line = next(line for line in text.splitlines() if 'written by' in line)
        check('flatview_write' in line or 'address_space_' in line, line)
        check('ide_' in line or 'bmdma' in line or 'dma_' in line, line)
        named += 1
        if named == 2:
            break
    check(named, 'no hole made a difference')


def ram_writes(work):
    """How many writes of devices the same guest has until it waits."""
    run = record(work, guest_args(work, 'hlt', 'rounds=1'), name='count')
    out, _ = run_tool(tool('tt'), 'log', run.dir, '--kind', 'ram', '--json')
    return sum(json.loads(line)['position'] > 0 for line in out.splitlines())


@limit(60)
def test_a_write_past_the_hooks(work):
    """Any write counts, whoever made it: a debugger's, left out of the log."""
    before = ram_writes(work)
    args = [*guest_args(work, 'hlt', 'rounds=1000000'), *Gdb.args(work, 'gap')]
    with recorder(work, args, 'gap',
                  f',guard=on,x-unlogged={before + 1}', qmp=1,
                  timeout=40) as vm:
        vm.wait_serial('\n')
        Gdb(vm)('set {int}0x3000000 = 0x12345678')
        vm.qmp.cmd('cont')
        vm.qmp.cmd('query-tt')
        vm.qmp.send('quit')
        vm.wait(0)
    pages, wrong = told(vm)
    check(pages > before and wrong == 1, vm.stderr)
    check('offset 0x3000000' in vm.stderr, vm.stderr)
    check('gdb' in vm.stderr.split('written by')[1].splitlines()[0], vm.stderr)


@limit(60)
def test_on_demand(work):
    """tt record start guards a recording that begins later, once in a process: what
    is logged is no finding, and what it records replays."""
    with Vm(work, [*guest_args(work, 'dmacode', 'rounds=100000000')], name='on',
            qmp=1, timeout=60) as vm:
        vm.wait_serial('\n')
        text = vm.qmp.hmp(f'tt record start {work}/a guard=on')
        check('recording into' in text, text)
        at = vm.qmp.cmd('query-tt')['events']
        wait_until(lambda: vm.qmp.cmd('query-tt')['events'] > at + 20000,
                   'it works', timeout=40)
        vm.qmp.cmd('tt-record-stop')
        pages, wrong = told(vm)
        check(pages and not wrong, vm.stderr)
        text = vm.qmp.error('tt-record-start', dir=f'{work}/b', guard=True)
        check('once in a process' in text, text)
        check(not os.path.exists(f'{work}/b'), 'a refused recording')
        vm.qmp.cmd('tt-record-start', dir=f'{work}/c', guard=False)
        at = vm.qmp.cmd('query-tt')['events']
        wait_until(lambda: vm.qmp.cmd('query-tt')['events'] > at + 1000,
                   'it works on')
        vm.qmp.cmd('tt-record-stop')
        vm.qmp.send('quit')
        vm.wait(0)
    for name in 'ac':
        replay(work, f'{work}/{name}', name=name)


@limit(60)
def test_the_past(work):
    """A guarded recording can show its past, and goes on being guarded."""
    with recorder(work, guest_args(work, 'torture', 'rounds=60 percent=20'),
                  options=',guard=on', qmp=1, timeout=50) as vm:
        vm.qmp.cmd('query-status')      # connected: it ends soon after this
        vm.wait_serial('ticks')
        goto(vm, where='start')
        goto(vm, delta=50000)
        goto(vm, where='end')
        vm.qmp.cmd('cont')
        vm.wait(0)                      # the guest ends by itself
    check(b'torture: end' in vm.serial, vm.serial)
    pages, wrong = told(vm)
    check(pages > 100 and not wrong, vm.stderr)
    check_exact(work, vm.run, serial_wanted=vm.serial)
