/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RUN/pages: writing groups. A group is a draft in memory until it is committed
 * with one append. Invariants F1 to F3: see tt-pagefile.c.
 */
#include "tt-pagefile-int.h"
#include "io/tt-bytes.h"

#define ZSTD_LEVEL      1       /* decision 0007 */

TtStatus tt_pagefile_begin(TtPageFile *pf, bool is_copies, TtDiag *diag)
{
    if (!pf->draft) {
        pf->draft = g_try_new(TtPageDraft, 1);
        if (!pf->draft) {
            return tt_fail(diag, TT_ERR_NOMEM,
                           "not enough memory to write page versions");
        }
    }
    pf->draft->n = 0;
    pf->draft->n_bytes = 0;
    pf->draft->is_copies = is_copies;
    pf->draft->has_inherited = false;
    return TT_OK;
}

static void draft_add(TtPageDraft *d, uint64_t id, const uint64_t hash[2],
                      size_t len)
{
    unsigned i = d->n++;

    d->id[i] = id;
    d->hash[i][0] = hash[0];
    d->hash[i][1] = hash[1];
    d->at[i] = d->n_bytes;
    d->len[i] = len;
    d->n_bytes += len;
    d->has_inherited |= len == 0;
}

/* Has the origin this very page? @room: for a page. */
static bool can_be_inherited(TtPageFile *pf, const void *page,
                        const uint64_t hash[2], void *room)
{
    return pf->origin &&
        pf->origin(pf->origin_opaque, hash, room, NULL) == TT_OK &&
        !memcmp(room, page, TT_PAGE_BYTES);
}

void tt_pagefile_put(TtPageFile *pf, const void *page, const uint64_t hash[2])
{
    TtPageDraft *d = pf->draft;
    uint8_t *to = d->data + d->n_bytes;
    size_t len;

    g_assert(!d->is_copies && d->n < TT_F_GROUP_PAGES_MAX);
    if (can_be_inherited(pf, page, hash, to)) {
        draft_add(d, pf->n_versions + 1 + d->n, hash, 0);
        return;
    }
    /* One byte less than a page: what does not get smaller fails. */
    len = ZSTD_compressCCtx(pf->cctx, to, TT_PAGE_BYTES - 1, page,
                            TT_PAGE_BYTES, ZSTD_LEVEL);
    if (ZSTD_isError(len)) {
        memcpy(to, page, TT_PAGE_BYTES);
        len = TT_PAGE_BYTES;
    }
    draft_add(d, pf->n_versions + 1 + d->n, hash, len);
}

TtStatus tt_pagefile_take_copy(TtPageFile *pf, TtPageFile *source,
                               const TtPlace *from, TtDiag *diag)
{
    TtPageDraft *d = pf->draft;
    const uint8_t *stored = NULL;
    TtStatus st = from->len ? tt_pagefile_read_stored(source, from, &stored,
                                                      diag)
                            : TT_OK;

    g_assert(d->is_copies && d->n < TT_F_GROUP_PAGES_MAX);
    g_assert(!d->n || d->id[d->n - 1] < from->id);
    if (st == TT_OK) {
        if (from->len) {
            memcpy(d->data + d->n_bytes, stored, from->len);
        }
        draft_add(d, from->id, from->hash, from->len);
    }
    return st;
}

TtStatus tt_pagefile_put_copy(TtPageFile *pf, const TtPlace *from,
                              TtDiag *diag)
{
    return tt_pagefile_take_copy(pf, pf, from, diag);
}

unsigned tt_pagefile_count(const TtPageFile *pf)
{
    return pf->draft->n;
}

/* Fills the front, which ends where the data begins. Returns its start. */
static uint8_t *draft_front(TtPageFile *pf, size_t *len)
{
    TtPageDraft *d = pf->draft;
    size_t entry = TT_F_ENTRY_BYTES + (d->is_copies ? 8 : 0);
    uint8_t *table = d->front + sizeof(d->front) - entry * d->n, *p = table;
    uint8_t *h = table - TT_F_GROUP_BYTES;

    for (unsigned i = 0; i < d->n; i++) {
        if (d->is_copies) {
            tt_put_le64(p, d->id[i]);
            p += 8;
        }
        tt_put_le64(p, d->hash[i][0]);
        tt_put_le64(p + 8, d->hash[i][1]);
        tt_put_le16(p + 16, d->len[i]);
        p += TT_F_ENTRY_BYTES;
    }
    memset(h, 0, TT_F_GROUP_BYTES);
    memcpy(h, TT_F_GROUP_MAGIC, 8);
    tt_put_le32(h + TT_F_GROUP_LENGTH, TT_F_GROUP_BYTES);
    tt_put_le32(h + TT_F_GROUP_FLAGS,
                (d->is_copies ? TT_F_GROUP_COPIES : 0) |
                (d->has_inherited ? TT_F_GROUP_INHERITED : 0));
    tt_put_le64(h + TT_F_GROUP_SEQ, pf->n_groups);
    tt_put_le64(h + TT_F_GROUP_FIRST, pf->n_versions + 1);
    tt_put_le32(h + TT_F_GROUP_COUNT, d->n);
    tt_put_le32(h + TT_F_GROUP_STORED, d->n_bytes);
    tt_put_le64(h + TT_F_GROUP_TABLE_SUM,
                XXH3_64bits_withSeed(table, p - table, pf->seed));
    tt_put_le64(h + TT_F_GROUP_SUM, tt_header_sum(h, TT_F_GROUP_BYTES,
                                                  TT_F_GROUP_SUM, pf->seed));
    *len = p - h;
    return h;
}

TtStatus tt_pagefile_commit(TtPageFile *pf, TtDiag *diag)
{
    TtPageDraft *d = pf->draft;
    TtPageGroup g = { .offset = pf->end, .header_bytes = TT_F_GROUP_BYTES };
    size_t front_bytes;
    uint8_t *front;
    TtStatus st;

    static_assert(offsetof(TtPageDraft, data) == offsetof(TtPageDraft, front) +
                  sizeof(((TtPageDraft *)0)->front), "front touches data");
    g_assert(d->n > 0);
    if (pf->is_broken) {
        return tt_fail(diag, TT_ERR_IO, "pages: an earlier failure left the "
                       "file in an unknown state");
    }
    if (!d->is_copies && d->n > TT_F_VERSIONS_MAX - pf->n_versions) {
        return tt_fail(diag, TT_ERR_LIMIT, "pages: the file has reached its "
                       "limit of page versions: end this recording and start "
                       "another one");
    }
    front = draft_front(pf, &front_bytes);
    if (pf->max_bytes && pf->end + tt_pagefile_live_bytes(pf) +
                         2 * (front_bytes + d->n_bytes) > pf->max_bytes) {
        return tt_fail(diag, TT_ERR_LIMIT, "max-size leaves no room for this "
                       "checkpoint: record with a larger max-size");
    }
    pf->window_bytes = 0;
    st = tt_page_append(pf->io, pf->end, front, front_bytes + d->n_bytes,
                        &pf->is_broken, diag);
    if (st != TT_OK) {
        return st;
    }
    g.data_at = front_bytes;
    g.stored = g.live_bytes = d->n_bytes;
    g.n_live = d->n;
    g_array_append_val(pf->groups, g);
    d->data_at = g.offset + front_bytes;
    pf->end += front_bytes + d->n_bytes;                        /* F3 */
    pf->n_groups++;
    pf->n_versions += d->is_copies ? 0 : d->n;
    pf->stored_bytes += d->n_bytes;
    pf->live_bytes += d->n_bytes;
    for (unsigned i = 0; i < d->n; i++) {
        pf->n_inherited += d->len[i] == 0;
    }
    return TT_OK;
}

TtPlace tt_pagefile_placed(const TtPageFile *pf, unsigned index)
{
    const TtPageDraft *d = pf->draft;

    return (TtPlace) { d->id[index],
                       d->len[index] ? d->data_at + d->at[index]
                                     : d->data_at - 1,          /* F2 */
                       d->len[index],
                       { d->hash[index][0], d->hash[index][1] } };
}
