/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hooks of what TCG remembers: blocks, and entries of the TLB. Part of tt/hooks.h.
 * BQL held; the vCPU thread, but for a flush. The guest sees of it which entries of the TLB
 * survive, by accessed bits; the rest only saves time.
 */
#ifndef TT_HOOKS_TCG_H
#define TT_HOOKS_TCG_H

struct TranslationBlock;

/*
 * Blocks by the place of their code, in front of QEMU's hash table. Unlike the jump cache
 * it outlives a flush of the TLB. The code is where control was led last (tt_fetched).
 * find: the valid block with all of these, as the hash table has it; NULL: not known here.
 * note: the hash table has it.
 */
struct TranslationBlock *tt_block_find(uint64_t pc, uint64_t cs_base, uint32_t flags,
                                       uint32_t cflags);
void tt_block_note(uint64_t pc, struct TranslationBlock *tb);

/*
 * An entry that was pushed out of the TLB is found again whatever its flags say:
 * "not dirty" stands there as long as there are blocks of the page.
 * @cmp: its address, with flags (QEMU's TLB_INVALID_MASK among them).
 */
static inline bool tt_victim_hit(uint64_t cmp, uint64_t page)
{
    return tt_remedy(TT_OMIT_VICTIMS) &&
        (cmp & (TT_HOOK_TLB_INVALID | ~0xfffull)) == page;
}

/* The entry of @addr in the TLB of this mode is about to be filled, or swapped. */
void tt_tlb_fills(struct CPUState *cpu, int mmu_idx, uint64_t addr);

static inline void tt_tlb_changes(struct CPUState *cpu, int mmu_idx, uint64_t addr)
{
    if (tt_on()) {
        tt_tlb_fills(cpu, mmu_idx, addr);
    }
}

/* Flushes the TLB of this mode, whose lock is held: only the entries that were filled since
 * the last flush, since the table is large. @mask: that of the table before it was resized.
 * False: what was filled is not known, QEMU has to flush it. */
bool tt_tlb_flush(struct CPUState *cpu, int mmu_idx, uintptr_t mask);

#endif
