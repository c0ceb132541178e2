/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an undo log of single steps notes of TCG's vCPUs (timeline/tt-undoring.h).
 *
 * Registers are compared with a copy after each step. Entries of the TLB are noted before
 * they change, with their victims, and so is a code page that is entered: the guest sees
 * both by accessed bits (hazard 1). A flush has no end of entries, and is not undone.
 *
 * While the log is filled, each entry for writing leads the slow way (tt/hooks-watch.h), so
 * no note has one that does not.
 */
#include "qemu/osdep.h"
#include "accel-tt/tcg/tt-undo-tcg.h"
#include "accel-tt/tcg/tt-fetch.h"
#include "accel-tt/tcg/tt-tlb.h"
#include "accel-tt/tcg/tt-watch.h"
#include "accel-tt/tt-vcpus.h"
#include "accel-tt/x86/tt-x86-undo.h"
#include "timeline/tt-undoring.h"
#include "tt/hooks.h"
#include "hw/core/cpu.h"
#include "cpu.h"
#include "exec/cputlb.h"
#include "exec/exec-all.h"
#include "exec/tb-flush.h"

static struct {
    TtUndoRing *ring;
    CPUState *cpu;              /* whose registers are noted */
    CPUX86State *before;        /* as they were when the step began */
    uint32_t other_flags;
    bool is_barred;
    bool mapped;                /* notes of the TLB, or of code pages, were put back */
} undo;

static bool may_note(void)
{
    undo.is_barred |= !tt_undoring_is_open(undo.ring);
    return !undo.is_barred;
}

void tt_undo_bar(void)
{
    undo.is_barred = true;
}

void tt_undo_entered(CPUState *cpu, uint64_t key)
{
    uint8_t index = cpu->cpu_index;

    if (tt_stores_are_logged() && may_note()) {
        tt_undoring_note(undo.ring, TT_OLD_FETCHED, key, &index, sizeof(index));
    }
}

static void note_host(const void *at, size_t len)
{
    tt_undoring_note(undo.ring, TT_OLD_TLB, (uintptr_t)at, at, len);
}

void tt_undo_tlb_changes(CPUState *cpu, int mmu_idx, uint64_t addr)
{
    CPUTLBDesc *d = &cpu->neg.tlb.d[mmu_idx];
    CPUTLBDescFast *f = &cpu->neg.tlb.f[mmu_idx];
    size_t i = (addr >> TARGET_PAGE_BITS) & (f->mask >> CPU_TLB_ENTRY_BITS);

    undo.is_barred |= cpu != undo.cpu;
    if (may_note()) {
        note_host(d, offsetof(CPUTLBDesc, fulltlb));    /* the victims, and counters */
        note_host(&f->table[i], sizeof(f->table[i]));
        note_host(&d->fulltlb[i], sizeof(d->fulltlb[i]));
    }
}

/* An instruction of the FPU may write to the first vCPU (cpu_clear_ignne). */
static uint32_t other_flags(void)
{
    CPUState *first = tt_vcpus_at(0);

    return first == undo.cpu ? 0 : cpu_env(first)->hflags2;
}

static void begin(TtUndoRing *ring, bool anew)
{
    undo.before = undo.before ?: g_new0(CPUX86State, 1);
    undo.ring = ring;
    undo.cpu = tt_vcpu();
    undo.is_barred = false;
    undo.other_flags = other_flags();
    memcpy(undo.before, cpu_env(undo.cpu), sizeof(*undo.before));
    if (!anew) {
        tt_tlbs_ask();
    }
}

static bool passed(void)
{
    const uint8_t *now = (uint8_t *)cpu_env(undo.cpu);
    uint8_t *before = (uint8_t *)undo.before;
    const TtX86Part *parts;
    unsigned n;

    if (undo.is_barred || undo.cpu != tt_vcpu() || undo.other_flags != other_flags()) {
        return false;
    }
    parts = tt_x86_parts(&n);
    for (unsigned i = 0; i < n; i++) {
        if (!parts[i].is_fixed) {
            tt_undoring_note_changes(undo.ring, TT_OLD_REGISTERS, parts[i].at,
                                     before + parts[i].at, now + parts[i].at, parts[i].len);
        } else if (memcmp(before + parts[i].at, now + parts[i].at, parts[i].len)) {
            return false;
        }
    }
    return true;
}

static void put(uint32_t kind, uint64_t place, const void *old, size_t len)
{
    CPUTLB *tlb = &undo.cpu->neg.tlb;

    switch (kind) {
    case TT_OLD_REGISTERS:
        memcpy((uint8_t *)cpu_env(undo.cpu) + place, old, len);
        memcpy((uint8_t *)undo.before + place, old, len);
        break;
    case TT_OLD_TLB:
        qemu_spin_lock(&tlb->c.lock);
        memcpy((void *)(uintptr_t)place, old, len);
        qemu_spin_unlock(&tlb->c.lock);
        undo.mapped = true;
        break;
    case TT_OLD_FETCHED:
        tt_fetch_drop(tt_vcpus_at(*(const uint8_t *)old), place);
        undo.mapped = true;
        break;
    default:
        g_assert_not_reached();
    }
}

/* The jump cache must not know a page that the set does not; and what gdb watches now may
 * not have been watched when an entry was made. */
static void restored(void)
{
    if (undo.mapped) {
        tcg_flush_jmp_cache(undo.cpu);
        tt_watchpoints_unmarked(undo.cpu);
    }
    undo.mapped = false;
    tt_fetch_turn_to(undo.cpu);
    undo.cpu->cflags_next_tb = -1;
}

const TtVcpuUndo tt_tcg_undo = {
    .begin = begin, .passed = passed, .put = put, .restored = restored,
};
