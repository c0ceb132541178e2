/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gdb's watchpoints, out of the way while a movement passes them blindly.
 *
 * Context: vCPU thread, outside cpu_exec.
 */
#include "tt/engine.h"
#include "exec/cputlb.h"
#include "exec/exec-all.h"

static QTAILQ_HEAD(, CPUWatchpoint) hidden = QTAILQ_HEAD_INITIALIZER(hidden);
static bool hid_some[TT_VCPUS_MAX]; /* its TLB has entries made without them */

/*
 * Takes gdb's watchpoints off the vCPU while guest code runs blindly: a huge one
 * would stop or slow each access. Nobody else sees the list meanwhile, the turn
 * holds the token. Old entries of the TLB that know of them are only slow.
 */
void tt_watchpoints_hide(CPUState *cpu)
{
    CPUWatchpoint *wp, *next;

    QTAILQ_FOREACH_SAFE(wp, &cpu->watchpoints, entry, next) {
        if (wp->flags & BP_GDB) {
            QTAILQ_REMOVE(&cpu->watchpoints, wp, entry);
            QTAILQ_INSERT_HEAD(&hidden, wp, entry);
            hid_some[cpu->cpu_index] = true;
        }
    }
}

void tt_watchpoints_restore(CPUState *cpu)
{
    CPUWatchpoint *wp;

    while ((wp = QTAILQ_FIRST(&hidden))) {
        QTAILQ_REMOVE(&hidden, wp, entry);
        QTAILQ_INSERT_HEAD(&cpu->watchpoints, wp, entry);
    }
}

/* They count from now on: as cpu_watchpoint_insert, which made them known. */
void tt_watchpoints_arm(CPUState *cpu)
{
    CPUWatchpoint *wp;

    if (!hid_some[cpu->cpu_index]) {
        return;
    }
    hid_some[cpu->cpu_index] = false;
    QTAILQ_FOREACH(wp, &cpu->watchpoints, entry) {
        if (!(wp->flags & BP_GDB)) {
            continue;
        }
        if (-(wp->vaddr | TARGET_PAGE_MASK) >= wp->len) {
            tlb_flush_page(cpu, wp->vaddr);
        } else {
            tlb_flush(cpu);
        }
    }
}
