# SPDX-License-Identifier: GPL-2.0-or-later
"""A device of the host is driven through the kernel's VFIO (in the emulated host), is
recorded, and is replayed where there is neither device nor VFIO. More devices, and
Linux: vfio-report, by hand."""

from ttlib import MACHINE, build_guest, check, check_exact, limit, tt
from vfio_host import answer, asked, host_device, in_vfio_host, job

# It looks at a page at 33 MiB; each sync compares all of RAM.
SMALL = ['-m', '36']
NEVER = '-tt record,dir=/tmp/never'


def edu_job(name='edu', rounds=8, **more):
    return job(name, [*MACHINE, *SMALL, '-kernel', build_guest('vfuedu'),
                      '-append', f'rounds={rounds}'], **more)


def check_edu(work, run, rounds, times):
    check(f'rounds={rounds:08x}'.encode() in run.serial,
          f'the guest says {run.serial[-200:]}')
    for i in range(times):
        check_exact(work, run, name=f'rep{i}')


def check_dialogue(run):
    """It begins with the driver, and all kinds of it are there."""
    text = ' '.join(tt('log', run.dir, '--device', 'host').stdout.split())
    where = [text.find(words) for words in
             ('driver reads bar 0 +0 4 -> 10000ed', 'driver writes bar 0 +98 4 <- 5',
              'interrupt INTx 0', 'device writes 2100000 size 1000')]
    check(-1 not in where and where == sorted(where), f'{where}: {text[:3000]}')


def check_refusals(work):
    for name, words in (('unbound', "Could not open '/dev/vfio/"),
                        ('late', 'plugged in without -tt writes guest memory'),
                        ('full', 'the state of this machine cannot be saved')):
        said = answer(work, name)
        check(words in said, f'{name}: {said}')


@limit(300)
def test_edu(work):
    """A bare-metal guest drives the device: registers, DMA both ways, interrupts. What
    cannot be done is refused."""
    before = asked('unbound', NEVER)
    after = (asked('late', '', 'tt record start /tmp/never') +
             asked('full', NEVER, 'tt checkpoint add -f full'))
    run = in_vfio_host(work, [edu_job(before=before, after=after)],
                       host_device('edu'), timeout=240)['edu']
    check_edu(work, run, 8, 3)
    check_dialogue(run)
    check_refusals(work)
