/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Instructions that lie on two pages, see tt/hooks.h. TCG gives each a block of its
 * own, and knows the second page by a look-up of the TLB while it searches or
 * translates. Whether it does either before an interrupt is taken there depends on
 * what it remembers; the accessed bit and the TLB must not. So it is shown where
 * the page lies without a look-up, and the block makes the real one.
 */
#include "qemu/osdep.h"
#include "accel-tt/tcg/tt-fetch.h"
#include "tt/hooks.h"
#include "hw/core/cpu.h"
#include "cpu.h"
#include "exec/cpu-common.h"
#include "exec/cputlb.h"
#include "exec/exec-all.h"
#include "exec/helper-head.h.inc"
#include "exec/memory.h"
#include "exec/tb-flush.h"
#include "exec/translation-block.h"
#include "tcg/helper-info.h"
#include "tcg/tcg.h"
#include "tcg/tcg-op-common.h"
#include "tcg/tcg-temp-internal.h"

/* ---- where it lies ---- */

static bool is_entry_of(const CPUTLBEntry *e, vaddr page, void **host)
{
    if ((e->addr_code & (TARGET_PAGE_MASK | TLB_INVALID_MASK)) != page) {
        return false;
    }
    *host = e->addr_code & TLB_MMIO ? NULL :
        (void *)((uintptr_t)page + e->addend);
    return true;
}

static bool peek_tlb(CPUState *cpu, vaddr page, int mmu_idx, void **host)
{
    const CPUTLBDescFast *fast = &cpu->neg.tlb.f[mmu_idx];
    const CPUTLBDesc *d = &cpu->neg.tlb.d[mmu_idx];
    size_t i = (page >> TARGET_PAGE_BITS) & (fast->mask >> CPU_TLB_ENTRY_BITS);

    QEMU_BUILD_BUG_ON(TT_HOOK_TLB_INVALID != TLB_INVALID_MASK);
    if (is_entry_of(&fast->table[i], page, host)) {
        return true;
    }
    for (i = 0; i < CPU_VTLB_SIZE; i++) {
        if (is_entry_of(&d->vtable[i], page, host)) {
            return true;
        }
    }
    return false;
}

/* Whether code may run there is asked when it does. */
static bool peek_tables(CPUState *cpu, vaddr page, void **host)
{
    hwaddr xlat, len = TARGET_PAGE_SIZE;
    int prot = PAGE_READ | PAGE_EXEC;
    MemoryRegionSection *section;
    MemTxAttrs attrs;
    hwaddr at = cpu_get_phys_page_attrs_debug(cpu, page, &attrs);

    if (at == -1) {
        return false;
    }
    section = address_space_translate_for_iotlb(
        cpu, cpu_asidx_from_attrs(cpu, attrs), at, &xlat, &len, attrs, &prot);
    *host = memory_region_is_ram(section->mr) ||
        memory_region_is_romd(section->mr) ?
        (uint8_t *)memory_region_get_ram_ptr(section->mr) + xlat : NULL;
    return true;
}

bool tt_fetch_peek(CPUState *cpu, uint64_t page, void **host)
{
    page &= TARGET_PAGE_MASK;
    if (tt_omit & (TT_OMIT_FETCH | TT_OMIT_SECOND_FETCH)) {
        return false;
    }
    tt_no_insn_begun = !peek_tlb(cpu, page, cpu_mmu_index(cpu, true), host) &&
        !peek_tables(cpu, page, host);
    return !tt_no_insn_begun;           /* if it is, it will fault */
}

/* ---- the look-up ---- */

/* In @tb, before its instruction. When the page is not where the block was made
 * from (its entry was stale, or the tables have changed since), another block is
 * searched. */
static void second_fetch(CPUArchState *env, TranslationBlock *tb)
{
    CPUState *cpu = env_cpu(env);
    CPUTLBEntryFull *full;
    uint64_t cs_base;
    uint32_t flags;
    void *host;
    vaddr pc;

    if (tb_page_addr1(tb) == -1 || tt_omit & TT_OMIT_SECOND_FETCH) {
        return;                         /* it is on one page; or not in RAM */
    }
    cpu_get_tb_cpu_state(env, &pc, &cs_base, &flags);
    tt_no_insn_begun = true;
    probe_access_full(env, TARGET_PAGE_ALIGN(pc), 1, MMU_INST_FETCH,
                      cpu_mmu_index(cpu, true), false, &host, &full, GETPC());
    tt_no_insn_begun = false;
    if (!host ||
        qemu_ram_addr_from_host(tt_guard_host(host)) != tb_page_addr1(tb)) {
        tcg_flush_jmp_cache(cpu);
        cpu_restore_state(cpu, GETPC());
        cpu_loop_exit_noexc(cpu);
    }
}

void tt_fetch_gen_second(TranslationBlock *tb)
{
    static TCGHelperInfo info = {
        .func = second_fetch,
        .name = "tt_second_fetch",
        .typemask = dh_typemask(void, 0) | dh_typemask(env, 1) |
            dh_typemask(ptr, 2),
    };

    tcg_gen_call2(second_fetch, &info, NULL, tcgv_ptr_temp(tcg_env),
                  tcgv_ptr_temp(tcg_constant_ptr(tb)));
}
