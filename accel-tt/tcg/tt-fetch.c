/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Instruction fetch by rule, see tt/hooks.h: the guest-visible effect of a fetch
 * (the accessed bit) happens when control enters a page for the first time since
 * that was flushed, whatever blocks TCG remembers.
 *
 * It suffices to look at block look-ups: direct jumps stay within a page, so
 * every way into another page passes tb_lookup or the top of cpu_exec's loop.
 * Flushes of the TLB end their block, so the next look-up follows at once.
 * (An instruction on two pages: tt-fetch-second.c.)
 *
 * The set of entered pages is apart from the TLB, which forgets pages by size
 * and chance: what TCG's jump cache still knows needs no question then.
 */
#include "qemu/osdep.h"
#include "accel-tt/tcg/tt-fetch.h"
#include "accel-tt/tcg/tt-tlb.h"
#include "accel-tt/tcg/tt-undo-tcg.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "pages/tt-pageset.h"
#include "session/tt-ops.h"
#include "tt/hooks.h"
#include "hw/core/cpu.h"
#include "cpu.h"
#include "exec/cpu-common.h"
#include "exec/cputlb.h"
#include "exec/exec-all.h"
#include "exec/tb-flush.h"
#include "exec/translation-block.h"

/* Hardly any guest enters more pages than this without a flush; the bound keeps the
 * memory of the set small. */
#define ENTERED_MAX (1u << 16)

#define NOTHING_FETCHED { .page = 1, .flags = ~0u }

TtFetched tt_fetched = NOTHING_FETCHED;
bool tt_no_insn_begun;

/* For each vCPU: pages that control has entered since they were flushed -> host
 * address; and the set of the one that runs. */
static TtPageSet *sets[TT_VCPUS_MAX];
static TtPageSet *entered;

void tt_fetch_start(void)
{
    for (unsigned i = 0; i < TT_VCPUS_MAX; i++) {
        sets[i] = tt_pageset_new();
    }
    entered = sets[0];
    tt_fetched = (TtFetched) NOTHING_FETCHED;
}

static void stop(void)
{
    for (unsigned i = 0; i < TT_VCPUS_MAX; i++) {
        tt_pageset_free(sets[i]);
        sets[i] = NULL;
    }
    entered = NULL;
}

void tt_fetch_mode_changed(void)
{
    stop();
    tt_tlbs_unknown();
    if (tt_on()) {
        tt_fetch_start();
    }
}

void tt_fetch_turn_to(CPUState *cpu)
{
    entered = sets[cpu->cpu_index];
    tt_fetched = (TtFetched) NOTHING_FETCHED;
}

/* The jump cache must not know a page that the set does not. */
static void forget_all(CPUState *cpu)
{
    tt_fetch_forget(cpu);
    tcg_flush_jmp_cache(cpu);
}

bool tt_fetch_known(CPUState *cpu, uint64_t pc)
{
    return (pc & TARGET_PAGE_MASK) == tt_fetched.page &&
        cpu_mmu_index(cpu, true) == tt_fetched.mmu_idx;
}

static uint64_t key_of(uint64_t page, int mmu_idx)
{
    return page | mmu_idx;
}

/*
 * A fetch that faults leads away from its position at once, but in a replay
 * one may want to stand there: why, as cpu_exec would say it, or -1. Where a
 * sync point is due nobody stands: the recorder had its own after the fault.
 */
static int reason_to_stay(CPUState *cpu, uint64_t pc)
{
    uint64_t pos = tt_position();

    if (!tt_replaying() || pos >= tt_now.sync_next) {
        return -1;
    }
    if (cpu->interrupt_request & CPU_INTERRUPT_DEBUG) {     /* a watchpoint */
        return EXCP_DEBUG;
    }
    if (pos >= MIN(tt_now.step_to, tt_ops->stop_at())) {
        return EXCP_INTERRUPT;
    }
    if (cpu_breakpoint_test(cpu, pc, BP_GDB) && tt_breakpoint_stops(cpu, pc)) {
        return EXCP_DEBUG;
    }
    return -1;
}

/* The look-up is that of the fetch: it always writes the same, and a VM that stays here
 * has made it already. */
static void stay_before_fault(CPUState *cpu, uint64_t pc, int mmu_idx)
{
    int why = reason_to_stay(cpu, pc);
    void *host;

    if (why < 0 ||
        !(probe_access_flags(cpu_env(cpu), pc, 0, MMU_INST_FETCH, mmu_idx,
                             true, &host, 0) & TLB_INVALID_MASK)) {
        return;
    }
    cpu->interrupt_request &= ~CPU_INTERRUPT_DEBUG;
    cpu->exception_index = why;
    cpu_loop_exit(cpu);
}

/* The real one, which sets the accessed bit: QEMU's own searches only look from
 * outside (tt_fetch_peek). The host address of the page; NULL: not RAM. */
static void *look_up(CPUState *cpu, uint64_t pc, int mmu_idx)
{
    uint64_t page = pc & TARGET_PAGE_MASK;
    CPUTLBEntryFull *full;
    void *host;

    probe_access_full(cpu_env(cpu), tt_fetch_names_page ? page : pc, 1, MMU_INST_FETCH,
                      mmu_idx, false, &host, &full, 0);
    if (!host || full->lg_page_size < TARGET_PAGE_BITS) {
        return NULL;
    }
    return tt_fetch_names_page ? host : (uint8_t *)host - (pc - page);
}

/* An event that stands in the log, or the first boundary for an interrupt that a
 * conversion waits for. */
static bool is_something_due(CPUState *cpu)
{
    return !(cpu->neg.icount_decr.u16.low + cpu->icount_extra) ||
        (cpu->interrupt_request & CPU_INTERRUPT_HARD &&
         x86_cpu_pending_interrupt(cpu, CPU_INTERRUPT_HARD));
}

bool tt_fetch_slow(CPUState *cpu, uint64_t pc, uint32_t flags)
{
    uint64_t page = pc & TARGET_PAGE_MASK;
    int mmu_idx = tt_fetched.mmu_idx;
    void *host = NULL;

    if (unlikely(tt_omit & TT_OMIT_FETCH)) {
        return true;
    }
    if (unlikely(tt_replays_kvm) && is_something_due(cpu)) {
        return false;   /* under KVM it came before a fault of the fetch */
    }
    if (flags != tt_fetched.flags) {                /* it follows from them */
        mmu_idx = cpu_mmu_index(cpu, true);
    }
    if (page != tt_fetched.page || mmu_idx != tt_fetched.mmu_idx) {
        if (!tt_pageset_find(entered, key_of(page, mmu_idx), &host)) {
            tt_fetched.page = 1;    /* also when the look-up faults */
            tt_page_touched(page, false);   /* a stop may be met before it */
            stay_before_fault(cpu, pc, mmu_idx);
            tt_no_insn_begun = true;
            host = look_up(cpu, pc, mmu_idx);
            tt_no_insn_begun = false;
            if (tt_pageset_count(entered) >= ENTERED_MAX) {
                forget_all(cpu);
            }
            tt_pageset_put(entered, key_of(page, mmu_idx), host);
            tt_undo_entered(cpu, key_of(page, mmu_idx));
        }
        tt_fetched.host = host;
        tt_fetched.page = page;
        tt_fetched.mmu_idx = mmu_idx;
    }
    tt_fetched.flags = flags;
    return true;
}

/* NULL: there is none, or the vCPU is one too many to be recorded. */
static TtPageSet *set_of(CPUState *cpu)
{
    return (unsigned)cpu->cpu_index < TT_VCPUS_MAX ? sets[cpu->cpu_index] :
        NULL;
}

static void tell_mapped_anew(CPUState *cpu)
{
    tt_undo_bar();
    if (unlikely(tt_ops->mapped_anew)) {
        tt_ops->mapped_anew(cpu);
    }
}

void tt_fetch_forget(CPUState *cpu)
{
    TtPageSet *set = set_of(cpu);

    tell_mapped_anew(cpu);
    tt_fetched.page = 1;
    if (set) {
        tt_pageset_clear(set);
    }
}

TtPageSet *tt_fetch_save(CPUState *cpu)
{
    return tt_pageset_copy(set_of(cpu));
}

void tt_fetch_load(CPUState *cpu, const TtPageSet *from)
{
    TtPageSet **set = &sets[cpu->cpu_index];
    bool runs = entered == *set;

    tt_pageset_free(*set);
    *set = tt_pageset_copy(from);
    entered = runs ? *set : entered;
    tt_fetched = (TtFetched) NOTHING_FETCHED;
}

void tt_fetch_drop(CPUState *cpu, uint64_t key)
{
    tt_pageset_drop(set_of(cpu), key);
}

void tt_fetch_forget_page(CPUState *cpu, uint64_t page)
{
    TtPageSet *set = set_of(cpu);
    int i;

    tell_mapped_anew(cpu);
    tt_fetched.page = 1;
    if (!set) {
        return;
    }
    for (i = 0; i < NB_MMU_MODES; i++) {
        CPUTLBDesc *d = &cpu->neg.tlb.d[i];

        if ((page & d->large_page_mask) == d->large_page_addr) {
            forget_all(cpu);        /* so does the TLB */
            return;
        }
        tt_pageset_drop(set, key_of(page, i));
    }
}

void tt_fetch_again(CPUState *cpu)
{
    vaddr pc;
    uint64_t cs_base;
    uint32_t flags;

    cpu_get_tb_cpu_state(cpu_env(cpu), &pc, &cs_base, &flags);
    tt_fetch(cpu, pc, flags);
}
