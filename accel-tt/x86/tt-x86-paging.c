/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which page tables the vCPUs use while the VM is recorded.
 */
#include "qemu/osdep.h"
#include "accel-tt/x86/tt-x86-paging.h"
#include "tt/hooks.h"
#include "cpu.h"

QEMU_BUILD_BUG_ON(MMU_PHYS_IDX != TT_HOOK_MMU_WALKS ||
                  MMU_NESTED_IDX != TT_HOOK_MMU_WALKS + 1);

static struct {
    TtPagings *used;            /* made once */
    TtPaging last;              /* the one that was added last */
    uint64_t n_smi;             /* system management interrupts, when it began */
} pg;

TtPaging tt_paging_of(CPUState *cpu)
{
    CPUX86State *env = cpu_env(cpu);
    uint64_t cr4 = env->cr[4];

    return (TtPaging) {
        .root = env->cr[3],
        .cpu = cpu->cpu_index,
        .mode = (env->cr[0] & CR0_PG_MASK ? TT_PAGING_ON : 0) |
            (cr4 & CR4_PAE_MASK ? TT_PAGING_PAE : 0) |
            (cr4 & CR4_PSE_MASK ? TT_PAGING_PSE : 0) |
            (cr4 & CR4_LA57_MASK ? TT_PAGING_LA57 : 0) |
            (env->hflags & HF_LMA_MASK ? TT_PAGING_LONG : 0) |
            (env->hflags & HF_SMM_MASK ? TT_PAGING_SMM : 0) |
            (~env->a20_mask ? TT_PAGING_A20_OFF : 0),
    };
}

static void add(CPUState *cpu)
{
    const TtPaging now = tt_paging_of(cpu);

    if (cpu_env(cpu)->hflags & HF_GUEST_MASK) {     /* it has tables below its tables */
        tt_pagings_lose(pg.used);
    }
    if (now.root == pg.last.root && now.cpu == pg.last.cpu && now.mode == pg.last.mode) {
        return;
    }
    pg.last = now;
    tt_pagings_add(pg.used, &now);
}

void tt_paging_used(void)
{
    if (pg.used && current_cpu) {
        add(current_cpu);
    }
}

/* They may come and go where no page comes into the TLB: in real mode it is not emptied. */
static uint64_t count_smi(void)
{
    uint64_t n = 0;
    CPUState *cpu;

    CPU_FOREACH(cpu) {
        n += cpu_env(cpu)->msr_smi_count;
    }
    return n;
}

static void add_all(void)
{
    CPUState *cpu;

    CPU_FOREACH(cpu) {
        add(cpu);
    }
}

void tt_paging_begin(uint64_t pos)
{
    pg.used = pg.used ?: tt_pagings_new();
    pg.last = (TtPaging) { .cpu = UINT32_MAX };
    pg.n_smi = count_smi();
    tt_pagings_begin(pg.used, pos);
    add_all();
}

uint8_t *tt_paging_encode(bool is_lost, uint32_t *len)
{
    add_all();
    if (is_lost || count_smi() != pg.n_smi) {
        tt_pagings_lose(pg.used);
    }
    return tt_pagings_encode(pg.used, len);
}
