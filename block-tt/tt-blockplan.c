/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The plan of a commit's writes. Usually: sync the data where J3 asks for it, one record
 * after the last one, sync. Where that does not fit, a new segment with the record (J5),
 * and a link to it. Now and then the whole journal is written anew (J4): when it has
 * grown by as much as it had when it was made, and by 1 MiB at least, so the work is paid
 * for by what was written. If it fails before the disk names what is new, it is put off until
 * the journal has grown by as much again, and the commit is a record.
 *
 * A plan may fail or be cut anywhere. A record that is not whole ends the journal. The
 * next commit writes to the same place, more at most. But once a new file head may be on
 * the disk, or a link to a new segment, the old journal must not grow any more: then the
 * next commit makes one anew, too, in the same copy of the head.
 *
 * A record that cannot be read and a record that was never written whole look the same.
 * So what has reached the disk is said in a second place, in another block of 4096 bytes,
 * once the sync is over: a mark after a record or a link (J6), the other copy of the file
 * head (H1). Nobody waits for these writes, and no sync is spent on them; but one damaged
 * block never gives an older state without a word. Where the file has not been written
 * like that, the first commit makes its journal anew.
 */
#include "block-tt/tt-blockmap-int.h"
#include "io/tt-bytes.h"

#define SEGMENT_BYTES   (64u << 10)     /* at least */
/* Kept at the end of a segment: for the link to the next one, and its mark. */
#define SEGMENT_ROOM    (TT_F_BLOCK_ALIGN + TT_F_BLOCK_MARK_ALIGN)

static uint64_t padded(uint64_t len)
{
    return (len + TT_F_BLOCK_ALIGN - 1) / TT_F_BLOCK_ALIGN * TT_F_BLOCK_ALIGN;
}

uint64_t tt_block_first_seed(const uint8_t *uuid, uint64_t generation)
{
    return tt_get_le64(uuid) + generation;
}

void tt_block_head_put(uint8_t *b, const TtBlockMap *bm, uint64_t generation,
                       TtHostRun first)
{
    size_t name = bm->backing ? strlen(bm->backing) : 0;
    size_t format = bm->backing_format ? strlen(bm->backing_format) : 0;

    assert(name <= TT_BLOCKMAP_BACKING_MAX && format <= TT_BLOCKMAP_FORMAT_MAX);
    memset(b, 0, TT_F_BLOCK_HEAD_BYTES);
    memcpy(b, TT_BLOCKMAP_MAGIC, TT_BLOCKMAP_MAGIC_BYTES);
    tt_put_le32(b + 8, TT_F_BLOCK_HEAD_BYTES);
    tt_put_le32(b + 12, bm->table.cluster_bits);
    memcpy(b + 40, bm->uuid, 16);
    tt_put_le64(b + 64, bm->table.size_bytes);
    tt_put_le64(b + 72, generation);
    tt_put_le64(b + 80, first.host);
    tt_put_le32(b + 88, first.n);
    tt_put_le32(b + 92, bm->last_id);
    tt_put_le32(b + 96, name);
    tt_put_le32(b + 100, format);
    if (name) {
        memcpy(b + 104, bm->backing, name);
    }
    if (format) {
        memcpy(b + 104 + name, bm->backing_format, format);
    }
    tt_put_le64(b + 56, tt_header_sum(b, TT_F_BLOCK_HEAD_BYTES, 56, 0));
}

/* A record of @ops after @j, which moves on; zeros follow, up to @least bytes in all.
 * g_free; NULL: no memory. */
static uint8_t *make_record(TtBlockJournal *j, const uint8_t *ops, size_t ops_len,
                            size_t least, size_t *len)
{
    uint64_t used = TT_F_BLOCK_RECORD_HEAD + (uint64_t)ops_len;
    uint8_t *b = g_try_malloc0(MAX(padded(used), least));

    if (!b) {
        return NULL;
    }
    memcpy(b, "TTJR", 4);
    tt_put_le32(b + 4, used);
    tt_put_le32(b + 8, j->generation);
    tt_put_le32(b + 12, j->number);
    if (ops_len) {
        memcpy(b + TT_F_BLOCK_RECORD_HEAD, ops, ops_len);
    }
    tt_put_le64(b + 16, tt_header_sum(b, used, 16, j->seed));
    j->seed = tt_get_le64(b + 16);
    j->number++;
    j->at += padded(used);
    j->bytes += padded(used);
    *len = MAX(padded(used), least);
    return b;
}

/* J6: what says at @b that all records before @number have reached the disk. */
static void put_mark(uint8_t *b, uint64_t generation, uint32_t number)
{
    memset(b, 0, TT_F_BLOCK_ALIGN);
    memcpy(b, "TTJR", 4);
    tt_put_le32(b + 8, generation);
    tt_put_le32(b + 12, number);
}

/* Where the mark of what ends at byte @end of its segment stands. */
static uint64_t mark_at(uint64_t end)
{
    return (end + TT_F_BLOCK_MARK_ALIGN - 1) / TT_F_BLOCK_MARK_ALIGN *
           TT_F_BLOCK_MARK_ALIGN;
}

/* A segment with its first record, and the mark of that: it is written at once, since
 * nothing refers to it before it has reached the disk. */
static uint8_t *make_segment(TtBlockJournal *j, const uint8_t *ops, size_t ops_len,
                             size_t bytes, size_t *len)
{
    uint8_t *b = make_record(j, ops, ops_len, bytes, len);

    if (b) {
        assert(mark_at(j->at) + TT_F_BLOCK_ALIGN <= bytes);
        put_mark(b + mark_at(j->at), j->generation, j->number);
    }
    return b;
}

uint8_t *tt_block_first_segment(const uint8_t *uuid, uint64_t generation, size_t *len)
{
    TtBlockJournal j = { .generation = generation, .number = 1,
                         .seed = tt_block_first_seed(uuid, generation) };

    return make_segment(&j, NULL, 0, mark_at(TT_F_BLOCK_ALIGN) + TT_F_BLOCK_ALIGN, len);
}

static void add_step(TtBlockPlan *plan, TtBlockStepKind kind, uint64_t offset,
                     const uint8_t *data, size_t len)
{
    assert(plan->n < TT_BLOCK_STEPS_MAX);
    plan->step[plan->n++] = (TtBlockStep) { kind, offset, data, len };
}

static void add_sync(TtBlockPlan *plan)
{
    add_step(plan, TT_BLOCK_SYNC, 0, NULL, 0);
}

/* The mark of what ends at byte @end of @seg, when all steps are done. */
static void add_mark(TtBlockMap *bm, TtBlockPlan *plan, TtHostRun seg, uint64_t end)
{
    TtBlockCommit *c = &bm->commit;
    uint64_t at = mark_at(end);

    assert(at + TT_F_BLOCK_ALIGN <= tt_host_offset(bm, seg.n));
    put_mark(c->mark, c->after.generation, c->after.number);
    plan->after = (TtBlockStep) { TT_BLOCK_WRITE, tt_host_offset(bm, seg.host) + at,
                                  c->mark, sizeof(c->mark) };
}

static TtStatus no_memory(TtDiag *diag)
{
    return tt_fail(diag, TT_ERR_NOMEM, "not enough memory for a record of the disk's "
                   "journal");
}

/* A segment for @len bytes of records at least, and a link. */
static TtStatus take_segment(TtBlockMap *bm, uint64_t len, uint64_t wish, TtHostRun *run,
                             TtDiag *diag)
{
    uint64_t want = MAX(MAX(len, wish), SEGMENT_BYTES - SEGMENT_ROOM) + SEGMENT_ROOM;

    if (len + SEGMENT_ROOM > TT_F_BLOCK_SEGMENT_MAX) {
        return tt_fail(diag, TT_ERR_LIMIT, "the disk's journal is too long: delete "
                       "versions");
    }
    want = MIN(want, TT_F_BLOCK_SEGMENT_MAX);
    return tt_alloc_take(&bm->alloc, ((want - 1) >> bm->table.cluster_bits) + 1, true,
                         run, diag);
}

static TtHostRun last_segment(const TtBlockMap *bm)
{
    GArray *s = bm->journal.segments;

    return g_array_index(s, TtHostRun, s->len - 1);
}

/* ---- a record after the last one ---- */

static TtStatus plan_link(TtBlockMap *bm, TtHostRun seg, uint64_t at_offset,
                          TtBlockPlan *plan, TtDiag *diag)
{
    TtBlockCommit *c = &bm->commit;
    uint64_t end = bm->journal.at + TT_F_BLOCK_ALIGN;
    GByteArray *ops = g_byte_array_new();
    size_t link_len = 0, len = 0;

    tt_ops_next(ops, c->fresh);
    c->link = make_record(&c->after, ops->data, ops->len, 0, &link_len);
    g_byte_array_unref(ops);
    assert(!c->link || link_len == TT_F_BLOCK_ALIGN);
    c->after.at = 0;
    if (c->link) {
        c->bytes = make_segment(&c->after, bm->ops->data, c->ops_len,
                                tt_host_offset(bm, c->fresh.n), &len);
    }
    if (!c->bytes) {
        return no_memory(diag);
    }
    /* J5: nothing that was data there before may be read as a record. */
    add_step(plan, TT_BLOCK_WRITE, tt_host_offset(bm, c->fresh.host), c->bytes, len);
    add_sync(plan);
    c->named_at = plan->n;
    add_step(plan, TT_BLOCK_WRITE, at_offset, c->link, link_len);
    add_mark(bm, plan, seg, end);
    return TT_OK;
}

static TtStatus plan_record(TtBlockMap *bm, TtBlockPlan *plan, TtDiag *diag)
{
    TtBlockCommit *c = &bm->commit;
    TtHostRun seg = last_segment(bm);
    uint64_t len = padded(TT_F_BLOCK_RECORD_HEAD + (uint64_t)bm->ops->len);
    uint64_t at = tt_host_offset(bm, seg.host) + bm->journal.at;
    size_t got = 0;
    TtStatus st;

    c->ops_len = bm->ops->len;
    c->after = bm->journal;
    if (bm->journal.at + len + SEGMENT_ROOM > tt_host_offset(bm, seg.n)) {
        st = take_segment(bm, len, bm->journal.bytes / 4, &c->fresh, diag);
        return st == TT_OK ? plan_link(bm, seg, at, plan, diag) : st;
    }
    c->bytes = make_record(&c->after, bm->ops->data, c->ops_len, 0, &got);
    if (!c->bytes) {
        return no_memory(diag);
    }
    add_step(plan, TT_BLOCK_WRITE, at, c->bytes, got);
    add_mark(bm, plan, seg, c->after.at);
    return TT_OK;
}

/* ---- the journal anew ---- */

/* The copy that it goes to must not be the only one that is good (H1). */
static uint64_t next_generation(const TtBlockMap *bm)
{
    return bm->journal.generation + (bm->journal.is_in_other_copy ? 2 : 1);
}

static TtStatus plan_anew(TtBlockMap *bm, TtBlockPlan *plan, TtDiag *diag)
{
    TtBlockCommit *c = &bm->commit;
    GByteArray *state = g_byte_array_new();
    size_t len = 0;
    TtStatus st;

    c->is_anew = true;
    c->ops_len = bm->ops->len;
    tt_ops_state(state, bm);
    c->after = (TtBlockJournal) { .generation = next_generation(bm),
                                  .number = 1, .is_marked = true };
    c->after.seed = tt_block_first_seed(bm->uuid, c->after.generation);
    st = take_segment(bm, padded(TT_F_BLOCK_RECORD_HEAD + (uint64_t)state->len),
                      (uint64_t)state->len + state->len / 4, &c->fresh, diag);
    if (st == TT_OK) {
        c->bytes = make_segment(&c->after, state->data, state->len,
                                tt_host_offset(bm, c->fresh.n), &len);    /* J5 */
        c->head = g_try_malloc(TT_F_BLOCK_HEAD_BYTES);
        st = c->bytes && c->head ? TT_OK : no_memory(diag);
    }
    g_byte_array_unref(state);
    if (st != TT_OK) {
        return st;
    }
    c->after.anew_bytes = c->after.bytes;
    tt_block_head_put(c->head, bm, c->after.generation, c->fresh);
    add_step(plan, TT_BLOCK_WRITE, tt_host_offset(bm, c->fresh.host), c->bytes, len);
    add_sync(plan);
    c->named_at = plan->n;
    add_step(plan, TT_BLOCK_WRITE, (c->after.generation & 1) * TT_F_BLOCK_HEAD_BYTES,
             c->head, TT_F_BLOCK_HEAD_BYTES);
    plan->after = (TtBlockStep) { TT_BLOCK_WRITE, (~c->after.generation & 1) *
                                  TT_F_BLOCK_HEAD_BYTES, c->head,
                                  TT_F_BLOCK_HEAD_BYTES };
    return TT_OK;
}

/* Marks need room; and where the other copy of the head, or the marks, are not there,
 * what is written now would not be safe from a single damaged block. */
static bool is_unsafe(const TtBlockMap *bm)
{
    const TtBlockJournal *j = &bm->journal;

    return !j->is_marked || (uint64_t)j->at + SEGMENT_ROOM >
                            tt_host_offset(bm, last_segment(bm).n);
}

static bool is_long(const TtBlockMap *bm)
{
    const TtBlockJournal *j = &bm->journal;

    return j->bytes - j->anew_bytes > MAX(bm->anew_bytes, j->anew_bytes);
}

void tt_blockmap_set_anew_bytes(TtBlockMap *bm, uint32_t bytes)
{
    bm->anew_bytes = bytes;
}

/* ---- begin and end ---- */

static void clear_commit(TtBlockMap *bm)
{
    TtBlockCommit *c = &bm->commit;

    g_free(c->bytes);
    g_free(c->link);
    g_free(c->head);
    memset(c, 0, sizeof(*c));
}

bool tt_blockmap_is_dirty(const TtBlockMap *bm)
{
    return bm->dirty->len || bm->ops->len || bm->journal.must_be_anew;
}

/* J3: must the data be on the disk before the record is written? Operations that wait
 * are versions, or a commit's that failed. A journal anew has a sync of its own before
 * its file head. */
static bool is_data_first(const TtBlockMap *bm, bool is_anew)
{
    return !is_anew && (bm->has_fill || bm->ops->len || !bm->dirty->len);
}

/* The host may have no room for it: the journal grows on for a while, as before. */
static void put_off_anew(TtBlockMap *bm)
{
    bm->journal.anew_bytes = bm->journal.bytes;
}

/* No step has been carried out that makes the disk name what the commit began. */
static void give_up(TtBlockMap *bm)
{
    TtBlockCommit *c = &bm->commit;

    if (c->fresh.n) {
        tt_alloc_untake(&bm->alloc, c->fresh.host, c->fresh.n);
    }
    if (c->is_early) {
        put_off_anew(bm);
    }
    clear_commit(bm);
}

static TtStatus plan_it(TtBlockMap *bm, TtBlockPlan *plan, bool is_needed, TtDiag *diag)
{
    TtBlockCommit *c = &bm->commit;
    bool is_anew = is_needed || is_long(bm);
    TtStatus st = TT_OK;

    memset(plan, 0, sizeof(*plan));
    if (bm->needs_bytes) {
        add_step(plan, TT_BLOCK_GROW, bm->needs_bytes, NULL, 0);
    }
    if (is_data_first(bm, is_anew)) {
        add_sync(plan);
    }
    tt_ops_dirty(bm);
    c->is_early = is_anew && !is_needed;
    if (is_anew) {
        st = plan_anew(bm, plan, diag);
    } else if (bm->ops->len) {
        st = plan_record(bm, plan, diag);
    }
    if (st != TT_OK) {
        give_up(bm);
    }
    return st;
}

TtStatus tt_blockmap_commit_begin(TtBlockMap *bm, TtBlockPlan *plan, TtDiag *diag)
{
    TtBlockCommit *c = &bm->commit;
    bool is_needed = bm->journal.must_be_anew ||
                     (tt_blockmap_is_dirty(bm) && is_unsafe(bm));
    bool is_early = !is_needed && is_long(bm);
    TtStatus st;

    assert(!c->runs && !bm->damage);
    st = plan_it(bm, plan, is_needed, diag);
    if (st != TT_OK && is_early) {
        st = plan_it(bm, plan, false, diag);
    }
    if (st != TT_OK) {
        return st;
    }
    c->has_record = c->bytes;
    if (c->has_record) {
        add_sync(plan);
    }
    c->runs = true;
    bm->has_fill = false;
    c->was_needed = bm->journal.must_be_anew;
    bm->journal.must_be_anew = false;   /* unless the head changes meanwhile */
    tt_alloc_commit_begin(&bm->alloc);
    return TT_OK;
}

static void end_well(TtBlockMap *bm)
{
    TtBlockCommit *c = &bm->commit;
    GArray *segments = bm->journal.segments;
    bool must_be_anew = bm->journal.must_be_anew;

    if (c->is_anew) {
        g_array_append_vals(bm->alloc.freed, segments->data, segments->len);
        g_array_set_size(segments, 0);
    }
    if (c->fresh.n) {
        g_array_append_val(segments, c->fresh);
        /* Only a sync makes it sure that the other copy of the head, or the mark of the
         * link, is there: without, allow_short_file trusts no record. */
        bm->has_fill = true;
    }
    bm->journal = c->after;
    bm->journal.segments = segments;
    bm->journal.must_be_anew = must_be_anew;
    g_byte_array_remove_range(bm->ops, 0, c->ops_len);
}

static void end_badly(TtBlockMap *bm)
{
    TtBlockCommit *c = &bm->commit;

    if (c->fresh.n) {
        /* A head or a link on the disk may name it, until the next head is there. */
        bm->journal.must_be_anew = true;
        tt_alloc_free_later(&bm->alloc, c->fresh.host, c->fresh.n);
    }
}

void tt_blockmap_commit_end(TtBlockMap *bm, bool ok)
{
    TtBlockCommit *c = &bm->commit;

    assert(c->runs);
    bm->needs_bytes = ok ? 0 : bm->needs_bytes;
    if (c->has_record) {
        (ok ? end_well : end_badly)(bm);
    }
    tt_alloc_commit_end(&bm->alloc, ok);
    clear_commit(bm);
}

bool tt_blockmap_commit_stop(TtBlockMap *bm, const TtBlockPlan *plan, unsigned step)
{
    TtBlockCommit *c = &bm->commit;
    /* A sync that fails must be said: a second one that succeeds proves nothing. */
    bool may_retry = c->is_early && plan->step[step].kind != TT_BLOCK_SYNC;

    assert(c->runs);
    if (!c->fresh.n || step >= c->named_at) {
        tt_blockmap_commit_end(bm, false);
        return false;
    }
    bm->journal.must_be_anew |= c->was_needed;
    tt_alloc_commit_end(&bm->alloc, false);
    give_up(bm);
    return may_retry;
}
