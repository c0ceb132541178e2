/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page batch: copies of dirty pages, staged while the VM stands.
 *
 * One block of memory, all of it touched when it is made: taken page by page
 * during a pause, new memory costs more than the copies (decision 0007).
 */
#include "pages/tt-pagestore.h"

#include <glib.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_BYTES  (2u << 20)

struct TtPageBatch {
    size_t n, cap;
    uint64_t *page;
    uint8_t *bytes;
};

TtPageBatch *tt_pagebatch_new(size_t cap)
{
    TtPageBatch *b;
    void *bytes = NULL;

    if (cap > TT_PAGES_MAX ||
        posix_memalign(&bytes, HUGE_BYTES, MAX(cap, 1) * TT_PAGE_BYTES)) {
        return NULL;
    }
#ifdef MADV_HUGEPAGE
    (void)madvise(bytes, MAX(cap, 1) * TT_PAGE_BYTES, MADV_HUGEPAGE);
#endif
    b = g_new0(TtPageBatch, 1);
    b->cap = cap;
    b->bytes = bytes;
    b->page = g_try_new(uint64_t, MAX(cap, 1));
    if (!b->page) {
        tt_pagebatch_free(b);
        return NULL;
    }
    memset(b->page, 0xff, cap * sizeof(*b->page));
    for (size_t i = 0; i < cap; i++) {
        b->bytes[i * TT_PAGE_BYTES] = 0xff;
    }
    return b;
}

void tt_pagebatch_free(TtPageBatch *b)
{
    if (b) {
        free(b->bytes);
        g_free(b->page);
        g_free(b);
    }
}

void tt_pagebatch_clear(TtPageBatch *b)
{
    b->n = 0;
}

bool tt_pagebatch_put(TtPageBatch *b, uint64_t page, const void *bytes)
{
    if (b->n == b->cap || (b->n && b->page[b->n - 1] >= page)) {
        return false;
    }
    memcpy(b->bytes + b->n * TT_PAGE_BYTES, bytes, TT_PAGE_BYTES);
    b->page[b->n++] = page;
    return true;
}

size_t tt_pagebatch_count(const TtPageBatch *b)
{
    return b->n;
}

size_t tt_pagebatch_room(const TtPageBatch *b)
{
    return b->cap - b->n;
}

const uint64_t *tt_pagebatch_pages(const TtPageBatch *b)
{
    return b->page;
}

typedef struct Reader {
    const TtPageBatch *b;
    size_t next;                /* pages are asked for in ascending order */
} Reader;

static const void *reader_fetch(void *opaque, uint64_t page)
{
    Reader *r = opaque;

    while (r->b->page[r->next] < page) {
        r->next++;
    }
    g_assert(r->next < r->b->n && r->b->page[r->next] == page);
    return r->b->bytes + r->next * TT_PAGE_BYTES;
}

TtStatus tt_pagestore_add_batch(TtPageStore *ps, uint64_t pos, TtNodeId base,
                                const TtPageBatch *b,
                                const TtCheckpointMeta *meta, TtNodeId *out)
{
    Reader r = { .b = b };

    return tt_pagestore_add_checkpoint(ps, pos, base, b->page, b->n,
                                       reader_fetch, &r, meta, out);
}
