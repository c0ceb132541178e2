/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest memory as pages, for checkpoints: one number for each page of all blocks, and
 * which were written since the last one was taken (TTVM 3.3).
 */
#include "qemu/osdep.h"
#include "hw-tt/memory/tt-block.h"
#include "hw-tt/memory/tt-memory.h"
#include "pages/tt-page.h"
#include "tt-memory-int.h"
#include "tt/hooks.h"
#include "exec/memory.h"
#include "qemu/bitmap.h"
#include "qemu/rcu.h"
#include "exec/ramblock.h"
#include "exec/ram_addr.h"
#include "qemu/cutils.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

static void collect_block(TtBlock *b, GArray *out)
{
    DirtyBitmapSnapshot *snap;
    uint64_t at, len = ROUND_UP(b->size_bytes, TT_PAGE_BYTES);

    snap = cpu_physical_memory_snapshot_and_clear_dirty(b->mr, 0, len,
                                                        DIRTY_MEMORY_TT);
    for (at = 0; at < len; at += TT_PAGE_BYTES) {
        ram_addr_t ra = memory_region_get_ram_addr(b->mr) + at;

        if (cpu_physical_memory_snapshot_get_dirty(snap, ra, TT_PAGE_BYTES)) {
            uint64_t page = b->first_page + at / TT_PAGE_BYTES;

            g_array_append_val(out, page);
        }
    }
    g_free(snap);
}

static size_t count_block(const DirtyMemoryBlocks *map, const TtBlock *b)
{
    ram_addr_t start = memory_region_get_ram_addr(b->mr);
    uint64_t at = start / TT_PAGE_BYTES, n = 0;
    uint64_t end = at + DIV_ROUND_UP(b->size_bytes, TT_PAGE_BYTES);

    while (at < end) {
        uint64_t from = at % DIRTY_MEMORY_BLOCK_SIZE;
        uint64_t len = MIN(end - at, DIRTY_MEMORY_BLOCK_SIZE - from);

        n += bitmap_count_one_with_offset(
            map->blocks[at / DIRTY_MEMORY_BLOCK_SIZE], from, len);
        at += len;
    }
    return n;
}

size_t tt_memory_count_dirty(void)
{
    const DirtyMemoryBlocks *map;
    size_t n = 0;

    RCU_READ_LOCK_GUARD();
    map = qatomic_rcu_read(&ram_list.dirty_memory[DIRTY_MEMORY_TT]);
    for (unsigned i = 0; i < tt_memory_n_made(); i++) {
        n += count_block(map, tt_memory_block(i));
    }
    return n;
}

uint64_t *tt_memory_collect_dirty(size_t *n)
{
    GArray *out = g_array_new(false, false, sizeof(uint64_t));

    for (unsigned i = 0; i < tt_memory_n_made(); i++) {
        collect_block(tt_memory_block(i), out);
    }
    *n = out->len;
    return (uint64_t *)g_array_free(out, false);
}

void tt_memory_all_dirty(void)
{
    for (unsigned i = 0; i < tt_memory_n_blocks(); i++) {
        TtBlock *b = tt_memory_block(i);

        cpu_physical_memory_set_dirty_range(memory_region_get_ram_addr(b->mr),
                                            ROUND_UP(b->size_bytes,
                                                     TT_PAGE_BYTES),
                                            1 << DIRTY_MEMORY_TT);
    }
}

static TtBlock *block_of(uint64_t page)
{
    static unsigned last;
    unsigned n = tt_memory_n_made();

    for (unsigned i = 0; i < n; i++, last++) {
        TtBlock *b = tt_memory_block(last %= n);    /* of another recording */

        if (page - b->first_page < DIV_ROUND_UP(b->size_bytes,
                                                TT_PAGE_BYTES)) {
            return b;
        }
    }
    g_assert_not_reached();
}

void tt_memory_mark_dirty(uint64_t page)
{
    TtBlock *b;
    ram_addr_t ra;

    if (page >= tt_memory_n_pages()) {
        return;                 /* a checkpoint says so, of a damaged run */
    }
    b = block_of(page);
    ra = memory_region_get_ram_addr(b->mr) + (page - b->first_page) * TT_PAGE_BYTES;
    cpu_physical_memory_set_dirty_range(ra, TT_PAGE_BYTES,
                                        1 << DIRTY_MEMORY_TT);
}

const void *tt_memory_page(void *opaque, uint64_t page)
{
    TtBlock *b = block_of(page);

    /* QEMU allocates blocks in whole pages, so the last one is whole too. */
    return b->host + (page - b->first_page) * TT_PAGE_BYTES;
}

void tt_memory_put_page(void *opaque, uint64_t page, const void *bytes)
{
    TtBlock *b = block_of(page);
    uint64_t at = (page - b->first_page) * TT_PAGE_BYTES;

    if (bytes) {
        memcpy(b->host + at, bytes, TT_PAGE_BYTES);
    } else {
        memset(b->host + at, 0, TT_PAGE_BYTES);
    }
    tt_ram_changed(b->mr, at, TT_PAGE_BYTES);
}

/* ---- digest ---- */

/* Hash over the hashes of the pages, so that later versions can keep them. */
static uint64_t block_digest(const TtBlock *b)
{
    static const uint8_t zeros[TT_PAGE_BYTES];
    uint64_t zero = XXH3_64bits(zeros, sizeof(zeros));
    uint64_t i, n_hashes = DIV_ROUND_UP(b->size_bytes, TT_PAGE_BYTES);
    g_autofree uint64_t *hashes = g_new(uint64_t, n_hashes);

    for (i = 0; i < n_hashes; i++) {
        uint64_t at = i * TT_PAGE_BYTES;
        uint64_t n = MIN(TT_PAGE_BYTES, b->size_bytes - at);
        bool is_zero = n == TT_PAGE_BYTES && buffer_is_zero(b->host + at, n);

        hashes[i] = cpu_to_le64(is_zero ? zero :
                                XXH3_64bits(b->host + at, n));
    }
    return XXH3_64bits(hashes, n_hashes * sizeof(uint64_t));
}

uint64_t tt_memory_digest(void)
{
    uint64_t h = 0;

    for (unsigned i = 0; i < tt_memory_n_blocks(); i++) {
        uint64_t v[2] = { h, block_digest(tt_memory_block(i)) };

        h = XXH3_64bits(v, sizeof(v));
    }
    return h;
}
