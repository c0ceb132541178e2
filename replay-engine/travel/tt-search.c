/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intervals that a search backwards leaves out, since no page with a stop of gdb's was
 * used in them (timeline/tt-touched.h).
 *
 * Why this is exact. gdb's stops are at virtual addresses, whatever they are mapped to.
 * Checkpoints stand at sync points, where every TLB is empty, and a restored VM's are
 * empty, too; so any use of a page in between, in whatever address space, brings it
 * into a TLB (tlb_set_page_full). A write goes through an entry that was made for
 * writing while the page was dirty already, or through the slow path of a clean page
 * (notdirty_write): both tell. A page of code is fetched through the TLB when control
 * enters it. So an address whose page nobody told of can have no hit there. RAM deltas
 * would not do: they name physical pages, and an address may have been mapped to others
 * then.
 */
#include "qemu/osdep.h"
#include "travel/tt-search.h"
#include "accel-tt/tt-position.h"
#include "replay/tt-replay-log.h"
#include "timeline/tt-touched.h"
#include "tt/hooks.h"
#include "hw/core/cpu.h"

#define STRETCHES_MAX 1024      /* 16 MiB */

static TtTouched *touched;

void tt_search_init(void)
{
    touched = tt_touched_new(STRETCHES_MAX);
}

void tt_search_close(void)
{
    tt_touched_free(touched);
    touched = NULL;
}

void tt_page_touched_slow(uint64_t addr, bool written)
{
    if (touched) {
        tt_touched_add(touched, addr >> 12, written);
    }
}

void tt_search_leave(void)
{
    if (!tt_replayer.diverged) {
        tt_touched_note(touched, tt_now.pos);
    }
    tt_touched_end(touched);
}

void tt_search_restored(void)
{
    tt_touched_begin(touched, tt_now.pos);
}

void tt_search_sync_point(void)
{
    tt_touched_sync_point(touched, tt_now.pos);
}

static bool breakpoint_may_hit(CPUState *cpu, uint64_t from, uint64_t to)
{
    CPUBreakpoint *bp;

    QTAILQ_FOREACH(bp, &cpu->breakpoints, entry) {
        if ((bp->flags & BP_GDB) &&
            tt_touched_may(touched, from, to, bp->pc >> 12, bp->pc >> 12,
                           false)) {
            return true;
        }
    }
    return false;
}

static bool watchpoint_may_hit(CPUState *cpu, uint64_t from, uint64_t to)
{
    CPUWatchpoint *wp;

    QTAILQ_FOREACH(wp, &cpu->watchpoints, entry) {
        uint64_t last = wp->vaddr + wp->len - 1;

        if ((wp->flags & BP_GDB) &&
            (last < wp->vaddr ||
             tt_touched_may(touched, from, to, wp->vaddr >> 12, last >> 12,
                            !(wp->flags & BP_MEM_READ)))) {
            return true;
        }
    }
    return false;
}

bool tt_search_may_hit(void *opaque, uint64_t from, uint64_t to)
{
    CPUState *cpu;

    if (tt_omit & TT_OMIT_SEARCH_SKIP) {
        return true;
    }
    tt_touched_note(touched, tt_now.pos);
    CPU_FOREACH(cpu) {
        if (breakpoint_may_hit(cpu, from, to) ||
            watchpoint_may_hit(cpu, from, to)) {
            return true;
        }
    }
    return false;
}
