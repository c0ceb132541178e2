/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks by the place of their code, see tt/hooks-tcg.h. A kernel that switches address
 * spaces often empties the jump cache each time, and QEMU's hash table is slow: a guest that
 * takes in a file by the network spends a tenth of its time there.
 *
 * A block that is found must be what the hash table would give. That has each valid block
 * once; the cflags of one that is not valid any more differ from all that are asked for, and
 * its memory is used again only after a flush of all blocks, which are counted. A place is
 * an address of the host, which is that of one byte of RAM until a piece of RAM comes or
 * goes; these are counted, too.
 */
#include "qemu/osdep.h"
#include "tt/hooks.h"
#include "hw/core/cpu.h"
#include "cpu.h"
#include "exec/exec-all.h"
#include "exec/ramlist.h"
#include "exec/translation-block.h"
#include "accel/tcg/tb-context.h"

#define BITS 14

typedef struct Known {
    uintptr_t host;             /* of its first instruction */
    TranslationBlock *tb;       /* NULL: none */
} Known;

static Known known[1 << BITS];
static unsigned flushes;        /* of all blocks, at which this was empty, */
static unsigned ram_version;    /* and the list of RAM */

static Known *at(uintptr_t host)
{
    return &known[host * 0x9e3779b97f4a7c15u >> (64 - BITS)];
}

static bool is_known(uint64_t pc)
{
    return (pc & TARGET_PAGE_MASK) == tt_fetched.page && tt_fetched.host;
}

static uintptr_t host_of(uint64_t pc)
{
    return (uintptr_t)tt_fetched.host + (pc & ~TARGET_PAGE_MASK);
}

TranslationBlock *tt_block_find(uint64_t pc, uint64_t cs_base, uint32_t flags,
                                uint32_t cflags)
{
    const Known *k = at(host_of(pc));
    TranslationBlock *tb = k->tb;

    if (tb && k->host == host_of(pc) && is_known(pc) &&
        tb_ctx.tb_flush_count == flushes && ram_list.version == ram_version &&
        tb->cs_base == cs_base && tb->flags == flags && tb_cflags(tb) == cflags &&
        (cflags & CF_PCREL || tb->pc == pc)) {
        return tb;
    }
    return NULL;
}

/* What lies on two pages depends on where the second one is. */
void tt_block_note(uint64_t pc, TranslationBlock *tb)
{
    if (tb_ctx.tb_flush_count != flushes || ram_list.version != ram_version) {
        memset(known, 0, sizeof(known));
        flushes = tb_ctx.tb_flush_count;
        ram_version = ram_list.version;
    }
    if (is_known(pc) && tb_page_addr1(tb) == -1) {
        *at(host_of(pc)) = (Known) { .host = host_of(pc), .tb = tb };
    }
}
