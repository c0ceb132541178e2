/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opening an image: the file head, then the journal from its first segment on, whose
 * operations are carried out as they were the first time.
 */
#include "block-tt/tt-blockmap-int.h"
#include "io/tt-bytes.h"

#define HEADS_BYTES     (2 * TT_F_BLOCK_HEAD_BYTES)
#define UNSYNCED_MAX    (1u << 22)      /* clusters at the end of a file, of one record */

#define TRIES           3               /* to read a file that somebody writes */

static TtBlockMap *map_new(void)
{
    TtBlockMap *bm = g_new0(TtBlockMap, 1);

    bm->anew_bytes = TT_BLOCK_ANEW_BYTES;
    tt_alloc_init(&bm->alloc);
    bm->changed = g_array_new(FALSE, FALSE, sizeof(TtHeadChange));
    bm->dirty = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    bm->ops = g_byte_array_new();
    bm->versions = g_ptr_array_new();
    bm->journal.segments = g_array_new(FALSE, FALSE, sizeof(TtHostRun));
    return bm;
}

void tt_blockmap_free(TtBlockMap *bm)
{
    if (!bm) {
        return;
    }
    assert(!bm->commit.runs);
    for (guint i = 0; i < bm->versions->len; i++) {
        tt_version_free(bm->versions->pdata[i]);
    }
    g_ptr_array_unref(bm->versions);
    g_array_unref(bm->changed);
    g_array_unref(bm->dirty);
    g_byte_array_unref(bm->ops);
    g_array_unref(bm->journal.segments);
    tt_alloc_cleanup(&bm->alloc);
    tt_table_cleanup(&bm->table);
    g_free(bm->backing);
    g_free(bm->backing_format);
    g_free(bm->damage);
    g_free(bm);
}

const char *tt_blockmap_damage(const TtBlockMap *bm)
{
    return bm->damage;
}

/* ---- the file head ---- */

static TtStatus read_all(TtIo *io, uint64_t offset, uint8_t *buf, size_t len,
                         TtDiag *diag)
{
    size_t got;
    TtStatus st = io->ops->read_at(io, offset, buf, len, &got, diag);

    if (st == TT_OK) {
        memset(buf + got, 0, len - got);
    }
    return st;
}

static TtStatus check_head(uint8_t *b, TtDiag *diag)
{
    if (memcmp(b, TT_BLOCKMAP_MAGIC, TT_BLOCKMAP_MAGIC_BYTES) != 0) {
        return tt_fail(diag, TT_ERR_FORMAT, "this file is not a disk with versions "
                       "(qemu-img create -f tt makes them)");
    }
    if (tt_get_le32(b + 8) != TT_F_BLOCK_HEAD_BYTES ||
        tt_get_le64(b + 56) != tt_header_sum(b, TT_F_BLOCK_HEAD_BYTES, 56, 0)) {
        return tt_fail(diag, TT_ERR_FORMAT, "the header of the disk's file is damaged: "
                       "restore the file from a copy");
    }
    if (tt_get_le64(b + 16)) {
        return tt_fail(diag, TT_ERR_VERSION, "the disk was made by a newer version: use "
                       "that version");
    }
    return TT_OK;
}

typedef struct HeadChoice {
    const uint8_t *bytes;               /* of the copy that counts */
    bool is_alone;                      /* the other one is damaged */
    bool is_twice;                      /* both are the same */
    bool is_in_other_copy;              /* not where its generation belongs */
} HeadChoice;

/* H1; both copies are in @b. */
static TtStatus choose_head(uint8_t *b, HeadChoice *choice, TtDiag *diag)
{
    uint8_t *copy[2] = { b, b + TT_F_BLOCK_HEAD_BYTES };
    TtDiag d[2];
    TtStatus st[2] = { check_head(copy[0], &d[0]), check_head(copy[1], &d[1]) };
    uint64_t g0 = tt_get_le64(copy[0] + 72), g1 = tt_get_le64(copy[1] + 72);
    unsigned i = g0 == g1 ? g0 & 1 : g1 > g0;

    if (st[0] != TT_OK && st[1] != TT_OK) {
        /* The one that says more: a file of ours has a magic. */
        i = memcmp(copy[0], TT_BLOCKMAP_MAGIC, TT_BLOCKMAP_MAGIC_BYTES) != 0 &&
            memcmp(copy[1], TT_BLOCKMAP_MAGIC, TT_BLOCKMAP_MAGIC_BYTES) == 0;
        if (diag) {
            *diag = d[i];
        }
        return st[i];
    }
    i = st[i] == TT_OK ? i : !i;
    choice->bytes = copy[i];
    choice->is_alone = st[!i] != TT_OK;
    choice->is_twice = memcmp(copy[0], copy[1], TT_F_BLOCK_HEAD_BYTES) == 0;
    choice->is_in_other_copy = i != (tt_get_le64(copy[i] + 72) & 1);
    return TT_OK;
}

static void G_GNUC_PRINTF(2, 3) add_damage(TtBlockMap *bm, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (!bm->damage) {
        bm->damage = g_strdup_vprintf(format, args);
    }
    va_end(args);
}

/* J5: a segment that is named has a record. So a head that names one without has been
 * left behind by a newer head that is lost, or the segment is damaged. Only that of an image
 * of an older version, of generation 1, has none at first. */
static void look_for_lost_start(TtBlockMap *bm, const HeadChoice *head)
{
    if (bm->journal.generation == 1 || bm->journal.number > 1) {
        return;
    }
    add_damage(bm, head->is_alone ?
               "the header of the disk's file is damaged, and what its other copy names is "
               "not there any more: restore the file from a copy" :
               "the journal of the disk is damaged at its beginning: restore the file from "
               "a copy");
}

static TtStatus take_head(TtBlockMap *bm, const HeadChoice *head, TtHostRun *first,
                          TtDiag *diag)
{
    const uint8_t *b = head->bytes;
    uint64_t size = tt_get_le64(b + 64), host = tt_get_le64(b + 80);
    uint32_t bits = tt_get_le32(b + 12), name = tt_get_le32(b + 96);
    uint32_t format = tt_get_le32(b + 100);
    TtStatus st = tt_block_check_size(size, bits, diag);

    if (st != TT_OK) {
        return st;
    }
    if (name > TT_BLOCKMAP_BACKING_MAX || format > TT_BLOCKMAP_FORMAT_MAX ||
        memchr(b + 104, 0, name + format) || host > TT_BLOCKMAP_HOSTS_MAX) {
        return tt_fail(diag, TT_ERR_FORMAT, "the header of the disk's file has "
                       "impossible values: restore the file from a copy");
    }
    if (!tt_table_init(&bm->table, size, bits)) {
        return tt_fail(diag, TT_ERR_NOMEM, "not enough memory for the disk's table");
    }
    memcpy(bm->uuid, b + 40, sizeof(bm->uuid));
    bm->backing = name ? g_strndup((const char *)b + 104, name) : NULL;
    bm->backing_format = format ? g_strndup((const char *)b + 104 + name, format) : NULL;
    bm->journal.generation = tt_get_le64(b + 72);
    bm->journal.number = 1;
    bm->journal.seed = tt_block_first_seed(bm->uuid, bm->journal.generation);
    bm->journal.is_marked = head->is_twice && bm->journal.generation > 1;
    bm->journal.is_in_other_copy = head->is_in_other_copy;
    *first = (TtHostRun) { host, tt_get_le32(b + 88) };
    return TT_OK;
}

/* ---- the journal ---- */

/* Is there a valid record at @at? Its length and its checksum. (J1) */
static bool is_record(const TtBlockMap *bm, uint8_t *b, uint64_t at, uint64_t size)
{
    const TtBlockJournal *j = &bm->journal;
    uint64_t len;

    if (at + TT_F_BLOCK_RECORD_HEAD > size || memcmp(b + at, "TTJR", 4) != 0) {
        return false;
    }
    len = tt_get_le32(b + at + 4);
    return len >= TT_F_BLOCK_RECORD_HEAD && len <= size - at &&
           tt_get_le32(b + at + 8) == (uint32_t)j->generation &&
           tt_get_le32(b + at + 12) == j->number &&
           tt_get_le64(b + at + 16) == tt_header_sum(b + at, len, 16, j->seed);
}

/* Is there, after the block at @at, a record of this journal or a mark (J6) that has a
 * higher number than the next one? The block at @at may have a header that was being
 * written, of which some bytes are older: it does not count. */
static bool goes_on(const TtBlockMap *bm, const uint8_t *b, uint64_t at, uint64_t size)
{
    for (at += TT_F_BLOCK_ALIGN; at + TT_F_BLOCK_RECORD_HEAD <= size;
         at += TT_F_BLOCK_ALIGN) {
        if (memcmp(b + at, "TTJR", 4) == 0 &&
            tt_get_le32(b + at + 8) == (uint32_t)bm->journal.generation &&
            tt_get_le32(b + at + 12) > bm->journal.number) {
            return true;
        }
    }
    return false;
}

/* J2 */
static void look_for_damage(TtBlockMap *bm, const uint8_t *b, uint64_t at, uint64_t size)
{
    bool is_linked = at == 0 && bm->journal.number > 1;         /* J5 */

    if (is_linked || goes_on(bm, b, at, size)) {
        add_damage(bm, "the journal of the disk is damaged after record "
                   "%" G_GUINT32_FORMAT ": what was written later is lost; save each "
                   "version with tt disk export", bm->journal.number - 1);
    }
}

/* J3: a cut of power left the last record there without all of its data, and the file
 * without the end of that, which is undefined: zeros, as in a file that is long enough. The
 * next commit makes it so before it writes a record. */
static void allow_short_file(TtBlockMap *bm, uint64_t needs)
{
    uint64_t hosts = ((needs - 1) >> bm->table.cluster_bits) + 1;

    if (!needs || bm->names_lost || hosts > bm->alloc.lost_from + UNSYNCED_MAX ||
        !tt_alloc_reserve(&bm->alloc, hosts)) {
        return;
    }
    bm->table.file_bytes = bm->needs_bytes = needs;
    bm->alloc.lost_from = MAX(bm->alloc.lost_from, hosts);
    bm->has_fill = true;                /* that commit begins with a sync */
}

/* Carries out the records of @seg, in @b. @next: the segment after it. */
static TtStatus load_records(TtBlockMap *bm, uint8_t *b, uint64_t size, TtHostRun *next,
                             TtDiag *diag)
{
    TtBlockJournal *j = &bm->journal;
    uint64_t at = 0;

    next->n = 0;
    while (!next->n && is_record(bm, b, at, size)) {
        uint64_t len = tt_get_le32(b + at + 4), ops_len = len - TT_F_BLOCK_RECORD_HEAD;
        const uint8_t *ops = b + at + TT_F_BLOCK_RECORD_HEAD;
        TtStatus st;

        if (j->is_marked && !goes_on(bm, b, at, size)) {
            allow_short_file(bm, tt_ops_map_needs(bm, ops, ops_len));
        }
        st = tt_ops_apply(bm, ops, ops_len, next, diag);
        if (st != TT_OK) {
            return st;
        }
        j->seed = tt_get_le64(b + at + 16);
        len = (len + TT_F_BLOCK_ALIGN - 1) / TT_F_BLOCK_ALIGN * TT_F_BLOCK_ALIGN;
        at += len;
        j->bytes += len;
        j->anew_bytes = j->number == 1 ? len : j->anew_bytes;
        j->number++;
    }
    j->at = at;         /* after @size, if the file ends in the last one's padding */
    if (!next->n) {
        look_for_damage(bm, b, j->at, size);
    } else if (!goes_on(bm, b, at - TT_F_BLOCK_ALIGN, size)) {
        j->is_marked = false;           /* the mark of the link was never written */
    }
    return TT_OK;
}

/* Older versions made images whose first segment, behind the head, was not there yet. */
static bool may_be_missing(const TtBlockMap *bm, const TtHostRun *seg)
{
    return bm->journal.generation == 1 &&
           seg->host == tt_head_hosts(bm->table.cluster_bits);
}

/* @is_short: the file does not have all of it (J7). */
static TtStatus load_segment(TtBlockMap *bm, TtIo *io, uint64_t file, TtHostRun *seg,
                             bool *is_short, TtDiag *diag)
{
    uint64_t size = tt_host_offset(bm, seg->n), at = tt_host_offset(bm, seg->host);
    TtHostRun next = { 0, 0 };
    uint8_t *b;
    TtStatus st;

    if (!seg->n || size > TT_F_BLOCK_SEGMENT_MAX) {
        return tt_fail(diag, TT_ERR_FORMAT, "the journal of the disk is damaged: a "
                       "segment has no valid length");
    }
    *is_short |= file < at + size && !may_be_missing(bm, seg);
    size = file > at ? MIN(size, file - at) : 0;
    bm->loaded_bytes += size;
    if (bm->loaded_bytes > file) {
        return tt_fail(diag, TT_ERR_FORMAT, "the journal of the disk is damaged: its "
                       "segments overlap");
    }
    b = g_try_malloc(size + 1);
    if (!b) {
        return tt_fail(diag, TT_ERR_NOMEM, "not enough memory to read the disk's "
                       "journal");
    }
    st = read_all(io, at, b, size, diag);
    if (st == TT_OK) {
        g_array_append_val(bm->journal.segments, *seg);
        st = load_records(bm, b, size, &next, diag);
    }
    g_free(b);
    *seg = next;
    return st;
}

/* The segments must not lie where data lies, or twice in one place. */
static TtStatus claim_segments(TtBlockMap *bm, TtDiag *diag)
{
    GArray *s = bm->journal.segments;

    for (guint i = 0; i < s->len; i++) {
        const TtHostRun *r = &g_array_index(s, TtHostRun, i);

        if (bm->is_cut) {
            return TT_OK;       /* it may lie anywhere, and nobody will write */
        }
        if (!tt_alloc_reserve(&bm->alloc, (uint64_t)r->host + r->n)) {
            return tt_fail(diag, TT_ERR_NOMEM, "not enough memory for the disk's "
                           "clusters");
        }
        if (!tt_alloc_claim(&bm->alloc, r->host, r->n)) {
            return tt_fail(diag, TT_ERR_FORMAT, "the journal of the disk is damaged: it "
                           "overlaps data");
        }
    }
    return TT_OK;
}

/* @copies: gets both copies of the file head. */
static TtStatus load(TtBlockMap *bm, TtIo *io, uint8_t *copies, TtDiag *diag)
{
    HeadChoice head = { 0 };
    TtHostRun seg;
    uint64_t file = 0, hosts;
    bool is_short = false;
    TtStatus st = read_all(io, 0, copies, HEADS_BYTES, diag);

    st = st == TT_OK ? choose_head(copies, &head, diag) : st;
    st = st == TT_OK ? take_head(bm, &head, &seg, diag) : st;
    st = st == TT_OK ? io->ops->size(io, &file, diag) : st;
    if (st != TT_OK) {
        return st;
    }
    hosts = (file >> bm->table.cluster_bits) + 1;
    hosts = MAX(hosts, tt_head_hosts(bm->table.cluster_bits));
    if (hosts > TT_BLOCKMAP_HOSTS_MAX || !tt_alloc_reserve(&bm->alloc, hosts)) {
        return tt_fail(diag, TT_ERR_LIMIT, "the disk's file is too long");
    }
    bm->table.file_bytes = file;
    bm->alloc.lost_from = hosts;
    tt_alloc_claim(&bm->alloc, 0, tt_head_hosts(bm->table.cluster_bits));
    bm->is_loading = true;
    do {
        st = load_segment(bm, io, file, &seg, &is_short, diag);
    } while (st == TT_OK && seg.n);
    bm->is_loading = false;
    if (st != TT_OK) {
        return st;
    }
    look_for_lost_start(bm, &head);
    tt_cut_find(bm, is_short);
    st = claim_segments(bm, diag);
    bm->last_id = MAX(bm->last_id, tt_get_le32(head.bytes + 92));
    /* All of it is on the disk. */
    tt_alloc_commit_begin(&bm->alloc);
    tt_alloc_let_go(&bm->alloc);
    tt_alloc_trim(&bm->alloc);
    return st;
}

/* Nothing is lost if somebody was making the file longer while it was read. */
static bool has_grown(const TtBlockMap *bm, TtIo *io)
{
    uint64_t now;

    return bm->is_cut && io->ops->size(io, &now, NULL) == TT_OK &&
           now > bm->table.file_bytes;
}

/* Somebody made the journal anew while it was read: what was read may have been written
 * over, or given back. */
static bool is_another_head(TtIo *io, const uint8_t *copies)
{
    uint8_t now[HEADS_BYTES];

    return read_all(io, 0, now, sizeof(now), NULL) == TT_OK &&
           memcmp(now, copies, sizeof(now)) != 0;
}

TtStatus tt_blockmap_open(TtIo *io, TtBlockMap **out, TtDiag *diag)
{
    uint8_t copies[HEADS_BYTES] = { 0 };
    TtBlockMap *bm = map_new();
    TtStatus st = load(bm, io, copies, diag);

    for (unsigned i = 0; i < TRIES && (is_another_head(io, copies) ||
                                       (st == TT_OK && has_grown(bm, io))); i++) {
        tt_blockmap_free(bm);
        bm = map_new();
        st = load(bm, io, copies, diag);
    }
    *out = st == TT_OK ? bm : NULL;
    if (st != TT_OK) {
        tt_blockmap_free(bm);
    }
    return st;
}
