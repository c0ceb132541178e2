/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which pages of guest RAM the host has given memory to. The others were never
 * written, or given back: they are zero, and looking at them costs time and page
 * tables. A short boot in 4 GiB touches a tenth of them.
 *
 * The host's kernel tells it in /proc/self/pagemap, of private anonymous memory only:
 * behind other mappings there may be bytes that this process has not looked at yet.
 */
#include "qemu/osdep.h"
#include "hw-tt/memory/tt-block.h"
#include "pages/tt-page.h"
#include "tt-memory-held-int.h"
#include "tt/hooks.h"
#include "exec/memory.h"
#include "exec/cpu-common.h"
#include "exec/ramblock.h"

#define PRESENT (1ull << 63)
#define SWAPPED (1ull << 62)

/* Guarding a block leaves shared memory behind it. */
static bool is_private(const TtBlock *b)
{
    static bool guarded;
    RAMBlock *rb = b->ram_block;

    guarded |= tt_guard_is_on;
    return !guarded && rb && rb->fd < 0 && !(rb->flags & RAM_PREALLOC) &&
        !qemu_ram_is_shared(rb) &&
        qemu_real_host_page_size() == TT_PAGE_BYTES;
}

void tt_held_begin(TtHeld *h, const TtBlock *b)
{
    h->first_host_page = (uintptr_t)b->host / TT_PAGE_BYTES;
    h->n_pages = DIV_ROUND_UP(b->size_bytes, TT_PAGE_BYTES);
    h->from = h->to = 0;
    h->fd = is_private(b) ? qemu_open_old("/proc/self/pagemap", O_RDONLY) : -1;
}

void tt_held_end(TtHeld *h)
{
    if (h->fd >= 0) {
        close(h->fd);
    }
    h->fd = -1;
}

static bool read_on(TtHeld *h, uint64_t page)
{
    uint64_t n = MIN(ARRAY_SIZE(h->entries), h->n_pages - page);
    ssize_t got = pread(h->fd, h->entries, n * sizeof(h->entries[0]),
                        (h->first_host_page + page) * sizeof(h->entries[0]));

    if (got < (ssize_t)sizeof(h->entries[0])) {
        tt_held_end(h);                 /* all may hold something */
        return false;
    }
    h->from = page;
    h->to = page + got / sizeof(h->entries[0]);
    return true;
}

bool tt_held_may(TtHeld *h, uint64_t page)
{
    if (h->fd < 0 ||
        ((page < h->from || page >= h->to) && !read_on(h, page))) {
        return true;
    }
    return h->entries[page - h->from] & (PRESENT | SWAPPED);
}
