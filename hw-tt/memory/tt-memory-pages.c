/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest memory as pages, for checkpoints: one number for each page of all blocks, and
 * which were written since the last one was taken (TTVM 3.3).
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-vcpus.h"
#include "hw-tt/memory/tt-block.h"
#include "hw-tt/memory/tt-memory.h"
#include "pages/tt-page.h"
#include "tt-memory-held-int.h"
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

/* A landmark has listed them, and no checkpoint since: a bit for each page. */
static struct {
    unsigned long *bits;
    uint64_t n;                 /* bits that there are */
    size_t n_set;
} listed;

void tt_walk_wrote_slow(void *entry)
{
    ram_addr_t at = qemu_ram_addr_from_host_nofail(tt_guard_host(entry));

    cpu_physical_memory_set_dirty_range(at, sizeof(uint32_t), DIRTY_CLIENTS_NOCODE);
}

/* The dirty pages of @b, appended to @out. */
static void find_dirty(const DirtyMemoryBlocks *map, const TtBlock *b, GArray *out)
{
    uint64_t start = memory_region_get_ram_addr(b->mr) / TT_PAGE_BYTES;
    uint64_t end = start + DIV_ROUND_UP(b->size_bytes, TT_PAGE_BYTES);

    for (uint64_t at = start; at < end; ) {
        uint64_t first = at - at % DIRTY_MEMORY_BLOCK_SIZE;
        uint64_t to = MIN(end - first, DIRTY_MEMORY_BLOCK_SIZE);
        uint64_t i = find_next_bit(map->blocks[at / DIRTY_MEMORY_BLOCK_SIZE], to,
                                   at - first);

        at = first + i;
        if (i < to) {
            uint64_t page = b->first_page + at++ - start;

            g_array_append_val(out, page);
        }
    }
}

/* Nobody else writes meanwhile: the BQL is the token. */
static void collect_block(TtBlock *b, GArray *out)
{
    guint before = out->len;
    uint64_t first, last;

    WITH_RCU_READ_LOCK_GUARD() {
        find_dirty(qatomic_rcu_read(&ram_list.dirty_memory[DIRTY_MEMORY_TT]), b, out);
    }
    if (out->len == before) {
        return;
    }
    first = g_array_index(out, uint64_t, before) - b->first_page;
    last = g_array_index(out, uint64_t, out->len - 1) - b->first_page;
    g_free(cpu_physical_memory_snapshot_and_clear_dirty(
               b->mr, first * TT_PAGE_BYTES, (last - first + 1) * TT_PAGE_BYTES,
               DIRTY_MEMORY_TT));
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
    size_t n = listed.n_set;

    RCU_READ_LOCK_GUARD();
    map = qatomic_rcu_read(&ram_list.dirty_memory[DIRTY_MEMORY_TT]);
    for (unsigned i = 0; i < tt_memory_n_made(); i++) {
        n += count_block(map, tt_memory_block(i));
    }
    return n;
}

static GArray *collect(void)
{
    GArray *out = g_array_new(false, false, sizeof(uint64_t));

    if (tt_backend->logs_writes_in_host) {
        memory_global_dirty_log_sync(false);
    }
    for (unsigned i = 0; i < tt_memory_n_made(); i++) {
        collect_block(tt_memory_block(i), out);
    }
    return out;
}

/* ---- two who collect ---- */

static void list(const GArray *pages)
{
    uint64_t n = tt_memory_n_pages();

    if (n > listed.n) {
        listed.bits = g_realloc(listed.bits, BITS_TO_LONGS(n) * sizeof(long));
        bitmap_clear(listed.bits, listed.n, n - listed.n);
        listed.n = n;
    }
    for (guint i = 0; i < pages->len; i++) {
        listed.n_set += !test_and_set_bit(g_array_index(pages, uint64_t, i),
                                          listed.bits);
    }
}

/* Moves them to @out, which is empty. */
static void take_listed(GArray *out)
{
    for (uint64_t i = find_first_bit(listed.bits, listed.n); i < listed.n;
         i = find_next_bit(listed.bits, listed.n, i + 1)) {
        g_array_append_val(out, i);
    }
    bitmap_clear(listed.bits, 0, listed.n);
    listed.n_set = 0;
}

uint64_t *tt_memory_list_dirty(size_t *n)
{
    GArray *out = collect();

    list(out);
    *n = out->len;
    return (uint64_t *)g_array_free(out, false);
}

uint64_t *tt_memory_collect_dirty(size_t *n)
{
    GArray *out = collect();

    if (listed.n_set) {
        list(out);
        g_array_set_size(out, 0);
        take_listed(out);
    }
    *n = out->len;
    return (uint64_t *)g_array_free(out, false);
}

static void mark_held(TtBlock *b)
{
    uint64_t n = DIV_ROUND_UP(b->size_bytes, TT_PAGE_BYTES);
    ram_addr_t start = memory_region_get_ram_addr(b->mr);
    TtHeld held;

    tt_held_begin(&held, b);
    for (uint64_t from = 0, to; from < n; from = to + 1) {
        for (to = from; to < n && tt_held_may(&held, to); to++) {
        }
        if (to > from) {
            cpu_physical_memory_set_dirty_range(start + from * TT_PAGE_BYTES,
                                                (to - from) * TT_PAGE_BYTES,
                                                1 << DIRTY_MEMORY_TT);
        }
    }
    tt_held_end(&held);
}

void tt_memory_held_dirty(void)
{
    size_t n;

    g_free(tt_memory_collect_dirty(&n));
    for (unsigned i = 0; i < tt_memory_n_blocks(); i++) {
        mark_held(tt_memory_block(i));
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
    TtHeld held;

    tt_held_begin(&held, b);
    for (i = 0; i < n_hashes; i++) {
        uint64_t at = i * TT_PAGE_BYTES;
        uint64_t n = MIN(TT_PAGE_BYTES, b->size_bytes - at);
        bool is_zero = n == TT_PAGE_BYTES &&
            (!tt_held_may(&held, i) || buffer_is_zero(b->host + at, n));

        hashes[i] = cpu_to_le64(is_zero ? zero :
                                XXH3_64bits(b->host + at, n));
    }
    tt_held_end(&held);
    return XXH3_64bits(hashes, n_hashes * sizeof(uint64_t));
}

/* Of all blocks that this run knows, by number: one that is not mapped now may be mapped
 * again. A branch does not know those that only its parent has seen, and numbers them anew,
 * so its first digest need not be that of its parent there. */
uint64_t tt_memory_digest(void)
{
    uint64_t h = 0;

    for (unsigned i = 0; i < tt_memory_n_blocks(); i++) {
        uint64_t v[2] = { h, block_digest(tt_memory_block(i)) };

        h = XXH3_64bits(v, sizeof(v));
    }
    return h;
}

uint64_t tt_memory_page_of(uint64_t ram_addr)
{
    uint64_t offset = 0;
    uint32_t index;

    WITH_RCU_READ_LOCK_GUARD() {
        index = tt_memory_locate(qemu_map_ram_ptr(NULL, ram_addr), &offset);
    }
    return index == UINT32_MAX ? UINT64_MAX :
        tt_memory_block(index)->first_page + offset / TT_PAGE_BYTES;
}
