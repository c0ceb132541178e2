# SPDX-License-Identifier: GPL-2.0-or-later
"""One random recording from a seed: a guest, a machine, what the host does to it.

It is replayed, in the shape of blocks that it was recorded in or in another, and
travelled: straight through some positions, then to them in random order. Console
and digests must be equal.
"""
import os
import signal
import time

from guests import GUESTS, guest_args, linux_args, linux_disk, write
from ttlib import (MACHINE, TestFailure, build_guest, check, check_exact, digest,
                   digest_at, end_of, equal, goto, recorder, run_to_end, stopped_replay,
                   wait_until)

# What a replay is given beside the run.
SHAPES = ([], [], ['-accel', 'tcg,one-insn-per-tb=on'],
          ['-accel', 'tcg,tb-size=1'])
CPUS = ('qemu64', 'max', 'Haswell-noTSX', 'EPYC', 'Nehalem', 'core2duo')
NMI, KEY, STOP, FREEZE, POINT, DIGEST = 'nmi key stop freeze point digest'.split()


class Plan:
    def __init__(self, what, args, end, actions=(), limit=90):
        self.what, self.args, self.end = what, args, end
        self.actions, self.limit = actions, limit
        self.is_linux = limit > 100

    def shape(self, rng):
        """Linux takes minutes in the slow ones."""
        return [] if self.is_linux else rng.choice(SHAPES)


def machine(rng, cpu, **more):
    args = list(MACHINE)
    for name, value in {'-cpu': cpu, **more}.items():
        args[args.index(name) + 1] = value
    if rng.random() < 0.2:
        args += ['-device', 'VGA']
    return args


def random_disk(work, rng):
    path = write(os.path.join(work, 'random.img'), rng.randbytes(1 << 20))
    return ['-drive', f'file={path},format=raw,if=ide,index=0,'
            f'aio={rng.choice(["threads", "native"])},cache=none']


def random_guest(work, rng, number):
    """Guest "random"; NMIs only where all modes can take them."""
    modes, dma = rng.random() < 0.5, rng.random() < 0.4
    kind = 'pc' if dma else rng.choice(['pc', 'q35'])
    options = (f'seed={number} blocks={rng.choice([20, 40, 80])} '
               f'hz={rng.choice([500, 1000, 2000, 4000])} dma={int(dma)} '
               f'modes={int(modes)} smi={int(rng.random() < 0.3)}')
    cpu = rng.choice(CPUS)
    args = [*machine(rng, cpu, **{'-M': kind}), '-kernel',
            build_guest('random'), '-append', options]
    actions = [KEY, STOP, FREEZE, POINT, DIGEST] + [NMI] * (not modes) * 3
    return Plan(f'{kind} {cpu} {options}',
                args + (random_disk(work, rng) if dma else []), 'random: end',
                [rng.choice(actions) for _ in range(rng.randrange(5))])


def many_cpus(work, rng, number):
    cpus = rng.randrange(2, 9)
    options = (f'cpus={cpus} rounds={rng.randrange(50, 250)} '
               f'pause={int(rng.random() < 0.8)}')
    if options.endswith('pause=0'):
        options = f'cpus={cpus} rounds=8 pause=0'
    args = [*machine(rng, rng.choice(CPUS)), '-smp', str(cpus), '-kernel',
            build_guest('smp'), '-append', options]
    return Plan(f'smp {options}', args, 'smp: end',
                [rng.choice([KEY, STOP, POINT, DIGEST])
                 for _ in range(rng.randrange(4))])


def other_guest(work, rng, number):
    name = rng.choice(sorted(set(GUESTS) - {'smp', 'races', 'reset', 'lines64', 'types64',
                                            'alias64'}))
    return Plan(f'{name}', guest_args(work, name), f'{name}: end',
                [rng.choice([STOP, POINT, DIGEST, FREEZE])
                 for _ in range(rng.randrange(3))])


def linux(work, rng, number):
    works = rng.sample(['vda', 'procs', 'rand', 'idle', 'rand'],
                       rng.randrange(1, 4))
    kind, cpus = rng.choice(['pc', 'q35']), rng.choice([1, 1, 2, 4])
    args = linux_args(','.join(works), f'n={rng.randrange(5, 60)} s=1', kind)
    args[args.index('-cpu') + 1] = cpu = rng.choice(CPUS)
    args += ['-smp', str(cpus), *linux_disk(work)]
    if rng.random() < 0.5:
        args += ['-device', rng.choice(['VGA', 'virtio-vga', 'qemu-xhci',
                                        'e1000', 'nec-usb-xhci'])]
    return Plan(f'linux {kind} {cpu} smp={cpus} {",".join(works)}', args,
                'TT-GUEST-END', [rng.choice([KEY, STOP, FREEZE, POINT, DIGEST])
                                 for _ in range(rng.randrange(4))], 300)


def plan_of(work, rng, number, kinds):
    """Of ten seeds one is Linux, one has several vCPUs, one is another guest."""
    made = {0: 'linux', 3: 'smp', 7: 'other'}.get(number % 10, 'random')
    made = made if made in kinds else 'random'
    return {'linux': linux, 'smp': many_cpus, 'other': other_guest,
            'random': random_guest}[made](work, rng, number)


# ---- recording ----

def act(vm, what):
    if what == NMI:
        vm.qmp.cmd('inject-nmi')
    elif what == KEY:
        vm.qmp.cmd('send-key', keys=[{'type': 'qcode', 'data': 'a'}])
    elif what == POINT:
        vm.qmp.cmd('tt-checkpoint-add')
    elif what == FREEZE:
        vm.signal(signal.SIGSTOP)
        time.sleep(0.05)
        vm.signal(signal.SIGCONT)
    else:
        vm.qmp.cmd('stop')
        seen = digest(vm) if what == DIGEST else None
        vm.qmp.cmd('cont')
        return seen
    return None


def disturb(vm, rng, plan):
    """What the host does; the VM may end at any time. Digests that were seen."""
    seen = []
    try:
        wait_until(lambda: vm.qmp.cmd('query-tt')['live'], 'the recording')
        if NMI in plan.actions:
            vm.wait_serial('start')     # the firmware has no handler
        for what in plan.actions:
            time.sleep(rng.random() * (1 if plan.is_linux else 0.15))
            seen.append(act(vm, what))
    except (TestFailure, OSError) as why:
        for _ in range(100):
            if vm.process.poll() is not None:
                break
            time.sleep(0.1)         # it is about to end
        check(vm.process.poll() is not None, f'the monitor broke: {why}')
    return [s for s in seen if s]


def record_plan(work, rng, plan):
    options = ',checkpoint-interval=' + rng.choice(['0', '0.1', '25'])
    if '-smp' in plan.args and rng.random() < 0.3:
        options += ',chaos=on'
    args = plan.args + plan.shape(rng)
    with recorder(work, args, options=options, qmp=1, timeout=plan.limit) as vm:
        seen = disturb(vm, rng, plan)
        vm.wait(0)
    text = vm.serial.decode(errors='replace')
    check(plan.end in text and 'FAIL' not in text,
          f'the guest did not end well: {text[-300:]}')
    return vm, seen


# ---- replaying ----

def visit(work, rng, run, seen, count, plan):
    """Returns the digest at the end."""
    shape = plan.shape(rng)
    wanted = {}
    with stopped_replay(work, run, 'visits', shape, timeout=plan.limit,
                        options=',checkpoint-memory=64M') as rep:
        end = end_of(rep)
        places = {rng.randrange(end + 1) for _ in range(count)}
        for place in sorted(places | {s[0] for s in seen}):
            wanted[place] = digest_at(rep, place, plan.limit)
        for value in seen:
            equal(wanted[value[0]], value, 'digest of the recorder')
        goto(rep, plan.limit, where='end')
        check(not rep.qmp.cmd('query-tt')['diverged'], 'it diverged')
        last = digest(rep)
        order = sorted(places)
        rng.shuffle(order)
        for place in order:
            for behind in rng.sample((0, 1, 300, 5000, 100_000, 1 << 24), 2):
                goto(rep, plan.limit, position=min(place + behind, end))
                equal(digest_at(rep, place, plan.limit), wanted[place],
                      f'digest at {place}, from {behind} behind it')
        run_to_end(rep, plan.limit)
        equal(digest(rep), last, 'digest at the end')
    return end


def torture(work, rng, number, kinds, positions=3):
    """Returns a line that says what was exact; raises TestFailure."""
    plan = plan_of(work, rng, number, kinds)
    began = time.monotonic()
    try:
        vm, seen = record_plan(work, rng, plan)
        check_exact(work, vm.run, plan.shape(rng), timeout=plan.limit,
                    serial_wanted=vm.serial)
        end = visit(work, rng, vm.run, seen, positions, plan)
    except TestFailure as why:
        raise TestFailure(f'{plan.what}: {why}') from None
    return (f'{plan.what} [{" ".join(plan.actions)}] {end} positions, '
            f'{time.monotonic() - began:.1f} s')
