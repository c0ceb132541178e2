/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RUN/pages: heads, and reading all tables when the file is opened.
 */
#include "tt-pagefile-int.h"
#include "io/tt-bytes.h"
#include "tt-pagetail.h"

#include <inttypes.h>

/* ---- groups ---- */

/* A group as its header and table say. */
typedef struct Scanned {
    uint32_t header_bytes, flags, count, stored;
    uint32_t entry_bytes;
    uint64_t first;
    const uint8_t *table;
    uint8_t buf[TT_F_GROUP_BYTES_MAX + TT_F_TABLE_BYTES_MAX];
} Scanned;

/*
 * Reads header and table of the group at @pf->end. TT_END_TORN: there is none
 * (P3). Errors are those of reading.
 */
static TtStatus scan_header(TtPageFile *pf, uint64_t size, Scanned *s,
                            TtDiag *diag)
{
    uint8_t *h = s->buf;
    uint64_t left = size - pf->end;
    size_t got;
    TtStatus st = pf->io->ops->read_at(pf->io, pf->end, h, sizeof(s->buf),
                                       &got, diag);

    if (st != TT_OK) {
        return st;
    }
    if (got < TT_F_GROUP_BYTES || memcmp(h, TT_F_GROUP_MAGIC, 8)) {
        return TT_END_TORN;
    }
    s->header_bytes = tt_get_le32(h + TT_F_GROUP_LENGTH);
    if (s->header_bytes < TT_F_GROUP_BYTES ||
        s->header_bytes > MIN(TT_F_GROUP_BYTES_MAX, got) ||
        tt_get_le64(h + TT_F_GROUP_SUM) !=
        tt_header_sum(h, s->header_bytes, TT_F_GROUP_SUM, pf->seed)) {
        return TT_END_TORN;
    }
    s->flags = tt_get_le32(h + TT_F_GROUP_FLAGS);
    s->first = tt_get_le64(h + TT_F_GROUP_FIRST);
    s->count = tt_get_le32(h + TT_F_GROUP_COUNT);
    s->stored = tt_get_le32(h + TT_F_GROUP_STORED);
    if (s->flags & TT_F_GROUP_MUST_KNOW &
        ~(TT_F_GROUP_COPIES | TT_F_GROUP_INHERITED)) {
        return tt_fail(diag, TT_ERR_VERSION, "pages: the group at byte %"
                       PRIu64 " was made by a newer version: use that version",
                       pf->end);
    }
    s->entry_bytes = TT_F_ENTRY_BYTES +
                     (s->flags & TT_F_GROUP_COPIES ? 8 : 0);
    s->table = h + s->header_bytes;
    if (tt_get_le64(h + TT_F_GROUP_SEQ) != pf->n_groups ||
        s->first != pf->n_versions + 1 ||
        s->count < 1 || s->count > TT_F_GROUP_PAGES_MAX ||
        s->count > TT_F_VERSIONS_MAX - pf->n_versions ||
        s->stored > s->count * TT_PAGE_BYTES ||
        s->header_bytes + s->count * s->entry_bytes + s->stored > left) {
        return TT_END_TORN;                                     /* P2 */
    }
    return TT_OK;
}

static bool is_zero(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i]) {
            return false;
        }
    }
    return true;
}

/* Is the table whole, and does it add up? */
static bool table_is_good(const TtPageFile *pf, const Scanned *s)
{
    uint64_t sum = 0, last = 0;

    if (XXH3_64bits_withSeed(s->table, s->count * s->entry_bytes, pf->seed) !=
        tt_get_le64(s->buf + TT_F_GROUP_TABLE_SUM)) {
        return false;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        const uint8_t *e = s->table + i * s->entry_bytes;
        uint16_t len;

        if (s->flags & TT_F_GROUP_COPIES) {
            uint64_t id = tt_get_le64(e);

            if (id <= last || id >= s->first) {
                return false;
            }
            last = id;
            e += 8;
        }
        len = tt_get_le16(e + 16);
        if ((!len && !(s->flags & TT_F_GROUP_INHERITED)) ||
            len > TT_PAGE_BYTES) {
            return false;
        }
        sum += len;
    }
    return sum == s->stored;
}

/* Room for the entries of versions up to @n; what is new is gone. */
static TtStatus entries_grow(TtPageFile *pf, uint64_t n, TtDiag *diag)
{
    uint64_t cap = MAX(MAX(pf->cap_entries * 2, n), 4096);
    uint64_t have = pf->n_versions - pf->n_before;
    TtPageEntry *bigger;

    if (n > pf->cap_entries) {
        bigger = g_try_renew(TtPageEntry, pf->entry, cap);
        if (!bigger) {
            return tt_fail(diag, TT_ERR_NOMEM, "not enough memory for a list of %"
                           PRIu64 " page versions", n);
        }
        pf->entry = bigger;
        pf->cap_entries = cap;
    }
    if (n > have) {
        memset(pf->entry + have, 0, (n - have) * sizeof(*pf->entry));
    }
    return TT_OK;
}

/* Of a number that was given out; without one so far it is gone. */
static TtPageEntry *entry_of(TtPageFile *pf, uint64_t id)
{
    TtPageEntry *e;

    if (id > pf->n_before) {
        return &pf->entry[id - pf->n_before - 1];
    }
    if (!pf->before) {
        pf->before = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    }
    e = g_hash_table_lookup(pf->before, GUINT_TO_POINTER(id));
    if (!e) {
        e = g_new0(TtPageEntry, 1);
        g_hash_table_insert(pf->before, GUINT_TO_POINTER(id), e);
    }
    return e;
}

static void take_entries(TtPageFile *pf, const Scanned *s, uint64_t data_at)
{
    uint64_t table_end = data_at - 1;           /* where what is inherited lies */

    for (uint32_t i = 0; i < s->count; i++) {
        const uint8_t *e = s->table + i * s->entry_bytes;
        uint64_t id = s->first + i;
        TtPageEntry *entry;

        if (s->flags & TT_F_GROUP_COPIES) {
            id = tt_get_le64(e);                                /* P6 */
            e += 8;
        }
        entry = entry_of(pf, id);
        entry->hash[0] = tt_get_le64(e);
        entry->hash[1] = tt_get_le64(e + 8);
        entry->len = tt_get_le16(e + 16);
        entry->offset = entry->len ? data_at : table_end;
        data_at += entry->len;
    }
}

static TtStatus scan_group(TtPageFile *pf, uint64_t size, Scanned *s,
                           TtDiag *diag)
{
    TtPageGroup g = { .offset = pf->end };
    uint32_t n_new;
    TtStatus st = scan_header(pf, size, s, diag);

    if (st != TT_OK) {
        return st;
    }
    n_new = s->flags & TT_F_GROUP_COPIES ? 0 : s->count;
    st = entries_grow(pf, pf->n_versions - pf->n_before + n_new, diag);
    if (st != TT_OK) {
        return st;
    }
    g.header_bytes = s->header_bytes;
    g.data_at = s->header_bytes + s->count * s->entry_bytes;
    if (table_is_good(pf, s)) {
        g.stored = s->stored;
        pf->stored_bytes += s->stored;
        pf->n_garbage++;                        /* until it is used */
        take_entries(pf, s, pf->end + g.data_at);
    } else {
        g.is_gone = true;                                       /* P4 */
        if (!is_zero(s->table, s->count * s->entry_bytes) &&
            !pf->n_damaged++) {
            tt_fail(&pf->table_damage, TT_ERR_FORMAT, "pages: the table of the "
                    "group at byte %" PRIu64 " is damaged", g.offset);
            pf->table_damage.offset = g.offset;
        }
    }
    g_array_append_val(pf->groups, g);
    pf->n_versions += n_new;
    pf->n_groups++;
    pf->end += g.data_at + s->stored;
    return TT_OK;
}

static uint64_t group_bytes(const uint8_t *h)
{
    uint64_t entry = TT_F_ENTRY_BYTES +
        (tt_get_le32(h + TT_F_GROUP_FLAGS) & TT_F_GROUP_COPIES ? 8 : 0);

    return tt_get_le32(h + TT_F_GROUP_LENGTH) +
        tt_get_le32(h + TT_F_GROUP_COUNT) * entry +
        tt_get_le32(h + TT_F_GROUP_STORED);
}

/* Was the writer cut off, or is this damage? */
static TtStatus judge_tail(TtPageFile *pf, uint64_t size, TtDiag *diag)
{
    const TtPageTail how = {
        .name = "pages", .magic = TT_F_GROUP_MAGIC,
        .header_bytes = TT_F_GROUP_BYTES,
        .header_bytes_max = TT_F_GROUP_BYTES_MAX,
        .length_at = TT_F_GROUP_LENGTH, .sum_at = TT_F_GROUP_SUM,
        .seed = pf->seed, .part_bytes = group_bytes,
    };
    TtStatus st = tt_page_tail(pf->io, pf->end, size, &how, &pf->damage);

    if (st == TT_ERR_FORMAT) {
        return TT_OK;
    }
    if (st != TT_OK && diag) {
        *diag = pf->damage;
    }
    pf->damage.status = TT_OK;
    return st;
}

const TtDiag *tt_pagefile_damage(const TtPageFile *pf)
{
    return pf->damage.status != TT_OK ? &pf->damage :
        pf->table_damage.status != TT_OK ? &pf->table_damage : NULL;
}

/* The tail after the last whole group (P3). */
static TtStatus cut_tail(TtPageFile *pf, uint64_t size, bool is_writable,
                         TtDiag *diag)
{
    TtStatus st = judge_tail(pf, size, diag);

    if (st != TT_OK) {
        return st;
    }
    pf->torn_bytes = size - pf->end;
    if (!pf->torn_bytes || !is_writable) {
        return TT_OK;
    }
    if (pf->torn_bytes > TT_F_TAIL_BYTES_MAX) {
        return tt_fail(diag, TT_ERR_FORMAT, "pages: damaged at byte %" PRIu64
                       ", with %" PRIu64 " bytes after that: the file can be read "
                       "up to there, but not written", pf->end, pf->torn_bytes);
    }
    if (!pf->io->ops->truncate) {
        return tt_fail(diag, TT_ERR_INVALID, "pages: the file cannot be truncated "
                       "where its writer was killed");
    }
    return pf->io->ops->truncate(pf->io, pf->end, diag);
}

TtStatus tt_pagefile_open(TtIo *io, const uint8_t uuid[16], bool is_writable,
                          TtPageFile **out, TtDiag *diag)
{
    uint32_t length, n_before;
    uint64_t size;
    TtPageFile *pf;
    Scanned *s;
    TtStatus st = tt_page_head_read(io, "pages", TT_F_PAGES_MAGIC, uuid,
                                    &length, &n_before, diag);

    *out = NULL;
    if (st == TT_OK && n_before > TT_F_VERSIONS_MAX) {
        st = tt_fail(diag, TT_ERR_FORMAT, "pages: the head names a version "
                     "that is too high");
    }
    if (st == TT_OK) {
        st = io->ops->size(io, &size, diag);
    }
    if (st != TT_OK) {
        return st;
    }
    pf = tt_pagefile_new(io, uuid);
    pf->end = length;
    pf->n_versions = pf->n_before = n_before;
    s = g_new(Scanned, 1);
    size = MAX(size, pf->end);
    do {
        st = pf->end < size ? scan_group(pf, size, s, diag) : TT_END;
    } while (st == TT_OK);
    g_free(s);
    if (st > 0) {
        st = cut_tail(pf, size, is_writable, diag);
    }
    if (st != TT_OK) {
        tt_pagefile_free(pf);
        return st;
    }
    *out = pf;
    return TT_OK;
}

uint32_t *tt_pagefile_find(TtPageFile *pf, uint64_t id, TtPlace *place)
{
    TtPageEntry *e;

    if (id < 1 || id > pf->n_versions) {
        return NULL;
    }
    e = entry_of(pf, id);
    /* A version that is gone has no hash: make one that no two share. */
    *place = (TtPlace) { id, e->offset, e->len, { e->hash[0], e->hash[1] } };
    if (!e->offset) {
        place->hash[0] = id * 0x9e3779b97f4a7c15u;
        place->hash[1] = id;
    }
    return &e->mark;
}
