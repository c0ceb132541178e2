/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target of the page store's files: someone else's RUN/pages and
 * RUN/checkpoints are opened, read in full, and gone on with.
 *
 * Input: a byte of choices, the length of the first file (3 bytes), both files.
 * Choice 0: checksums are mended first, or no mutation would come far.
 */
#include "pages/tt-pagestore.h"
#include "io/tt-bytes.h"
#include "tt-pagefile.h"
#include "tt-pagestore-test.h"
#include "tt-pagejournal.h"

#include <glib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEND_SUMS = 1, READ_ONLY = 2, NO_CACHE = 4 };

#define RAM_PAGES   4096u

static const uint8_t uuid[16] = "page-store fuzz";

/* ---- mending ---- */

static uint32_t mend_head(uint8_t *p, size_t len, const char *magic)
{
    uint32_t n;

    if (len < TT_F_PHEAD_BYTES) {
        return len;
    }
    n = tt_get_le32(p + TT_F_PHEAD_LENGTH);
    n = n >= TT_F_PHEAD_BYTES && n <= MIN(len, TT_F_PHEAD_BYTES_MAX)
        ? n : TT_F_PHEAD_BYTES;
    memcpy(p, magic, 8);
    memcpy(p + TT_F_PHEAD_UUID, uuid, 16);
    tt_put_le64(p + TT_F_PHEAD_SUM, tt_header_sum(p, n, TT_F_PHEAD_SUM, 0));
    return n;
}

static void mend_pages(uint8_t *p, size_t len)
{
    uint64_t seed = tt_page_seed(uuid);
    size_t at = mend_head(p, len, TT_F_PAGES_MAGIC);

    while (at + TT_F_GROUP_BYTES <= len) {
        uint8_t *h = p + at;
        uint32_t n = tt_get_le32(h + TT_F_GROUP_LENGTH);
        uint32_t count = tt_get_le32(h + TT_F_GROUP_COUNT);
        uint64_t table = (uint64_t)count * (TT_F_ENTRY_BYTES + (8 &
                         -(tt_get_le32(h + TT_F_GROUP_FLAGS) & 1)));

        if (n < TT_F_GROUP_BYTES || n > TT_F_GROUP_BYTES_MAX ||
            n + table > len - at) {
            return;
        }
        tt_put_le64(h + TT_F_GROUP_TABLE_SUM,
                    XXH3_64bits_withSeed(h + n, table, seed));
        tt_put_le64(h + TT_F_GROUP_SUM, tt_header_sum(h, n, TT_F_GROUP_SUM,
                                                      seed));
        at += n + table + tt_get_le32(h + TT_F_GROUP_STORED);
    }
}

static void mend_journal(uint8_t *p, size_t len)
{
    uint64_t seed = tt_page_seed(uuid);
    size_t at = mend_head(p, len, TT_F_CHECKPOINTS_MAGIC);

    while (at + TT_F_REC_BYTES <= len) {
        uint8_t *h = p + at;
        uint32_t n = tt_get_le32(h + TT_F_REC_LENGTH);
        uint64_t list = tt_get_le32(h + TT_F_REC_LIST_BYTES);
        uint64_t blob = tt_get_le32(h + TT_F_REC_BLOB_BYTES);

        if (n < TT_F_REC_BYTES || n > TT_F_REC_BYTES_MAX ||
            n + list + blob > len - at) {
            return;
        }
        tt_put_le64(h + TT_F_REC_LIST_SUM,
                    XXH3_64bits_withSeed(h + n, list, seed));
        tt_put_le64(h + TT_F_REC_BLOB_SUM,
                    XXH3_64bits_withSeed(h + n + list, blob, seed));
        tt_put_le64(h + TT_F_REC_SUM, tt_header_sum(h, n, TT_F_REC_SUM, seed));
        at += n + list + blob;
    }
}

/* ---- using what was opened ---- */

static const void *fetch(void *opaque, uint64_t page)
{
    return opaque;
}

static void put(void *opaque, uint64_t page, const void *bytes)
{
    static volatile uint8_t sink;

    g_assert_cmpuint(page, <, RAM_PAGES);
    sink = bytes ? ((const uint8_t *)bytes)[TT_PAGE_BYTES - 1] : 0;
    (void)sink;
}

static void use(TtPageStore *ps)
{
    size_t n = tt_pagestore_count(ps);
    g_autofree TtCheckpointInfo *info = g_new(TtCheckpointInfo, n + 1);
    static uint8_t page[TT_PAGE_BYTES] = { 1, 2, 3 };
    static const uint64_t dirty[] = { 1, 7 };
    TtNodeId id;
    TtDiag diag;

    g_assert_cmpuint(tt_pagestore_list(ps, info, n), ==, n);
    for (size_t i = 0; i < n; i++) {
        void *blob;
        size_t len;

        (void)tt_pagestore_restore(ps, info[i].id, i ? info[i - 1].id : 0,
                                   NULL, 0, put, NULL, NULL);
        if (tt_pagestore_blob(ps, info[i].id, &blob, &len, &diag) == TT_OK) {
            g_assert_cmpuint(len, ==, info[i].blob_bytes);
        }
        g_free(blob);
    }
    if (n && info[n - 1].pos < UINT64_MAX) {
        TtStatus st = tt_pagestore_add(ps, info[n - 1].pos + 1,
                                       info[n - 1].id, dirty, 2, fetch, page,
                                       &id);

        g_assert(st == TT_OK || st == TT_ERR_LIMIT);
    }
    for (size_t i = 0; i < n; i += 2) {
        tt_pagestore_delete(ps, info[i].id);
    }
    tt_pagestore_check(ps);
    (void)tt_pagestore_flush(ps, &diag);
    tt_pagestore_check(ps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TtPageStoreOptions opt = { .max_pages = RAM_PAGES };
    g_autofree uint8_t *copy = NULL;
    TtPageStore *ps = NULL;
    TtDiag diag = { 0 };
    size_t split;

    if (size < 4) {
        return 0;
    }
    copy = g_memdup2(data, size);
    split = copy[1] | copy[2] << 8 | copy[3] << 16;
    split = MIN(split, size - 4);
    if (copy[0] & MEND_SUMS) {
        mend_pages(copy + 4, split);
        mend_journal(copy + 4 + split, size - 4 - split);
    }
    opt.pages = tt_io_mem_new(copy + 4, split);
    opt.checkpoints = tt_io_mem_new(copy + 4 + split, size - 4 - split);
    memcpy(opt.uuid, uuid, 16);
    opt.read_only = copy[0] & READ_ONLY;
    opt.cache_bytes = copy[0] & NO_CACHE ? 0 : UINT64_MAX;
    if (tt_pagestore_open(&opt, &ps, &diag) == TT_OK) {
        use(ps);
        tt_pagestore_free(ps);
    } else {
        g_assert_null(ps);
        g_assert_cmpint(diag.text[0], !=, 0);
    }
    return 0;
}
