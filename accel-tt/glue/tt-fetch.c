/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Instruction fetch by rule, see tt/hooks.h: the guest-visible effect of a fetch
 * (the accessed bit, the place in the TLB) happens when control enters a page,
 * whatever blocks TCG remembers.
 *
 * It suffices to look at block look-ups: direct jumps stay within a page, so
 * every way into another page passes tb_lookup or the top of cpu_exec's loop.
 * Flushes of the TLB end their block, so the next look-up follows at once.
 */
#include "tt/engine.h"
#include "cpu.h"
#include "exec/cpu-common.h"
#include "exec/cputlb.h"
#include "exec/exec-all.h"
#include "exec/translation-block.h"

TtFetched tt_fetched = { .page = 1 };

bool tt_fetch_known(CPUState *cpu, uint64_t pc)
{
    return (pc & TARGET_PAGE_MASK) == tt_fetched.page &&
        cpu_mmu_index(cpu, true) == tt_fetched.mmu_idx;
}

void tt_fetch_slow(CPUState *cpu, uint64_t pc, uint32_t flags)
{
    uint64_t page = pc & TARGET_PAGE_MASK;
    int mmu_idx = cpu_mmu_index(cpu, true);

    if (tt_omit & TT_OMIT_FETCH) {
        return;
    }
    if (page != tt_fetched.page || mmu_idx != tt_fetched.mmu_idx) {
        tt_fetch_forget();          /* also when the look-up faults */
        tt_fetched.host = tt_fetch_host(cpu, page, mmu_idx);
        tt_fetched.page = page;
        tt_fetched.mmu_idx = mmu_idx;
    }
    tt_fetched.flags = flags;
}

void tt_fetch_again(CPUState *cpu)
{
    vaddr pc;
    uint64_t cs_base;
    uint32_t flags;

    cpu_get_tb_cpu_state(cpu_env(cpu), &pc, &cs_base, &flags);
    tt_fetch(cpu, pc, flags);
}
