/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The frame store of one run: writer and reader.
 *
 * I1. The numbers of the frames ascend, over the whole file.
 * I2. `end` is where the next record begins, or will; all before it has been passed.
 * I3. marks ascend. Between one and the next there are fewer than MARK_EVERY records, and no
 *     damage but right before the next: what was passed is found without a search.
 */
#include "net-tt/tt-framestore.h"
#include "io/tt-bytes.h"

#include <glib.h>
#include <inttypes.h>

#define HEAD_MAGIC      "TTVMFRM\n"
#define RECORD_MAGIC    0x52465454u     /* "TTFR" */
#define MARK_EVERY      16
#define LOOK_BYTES      (64 * 1024)     /* at a time, behind damage */
/* Without a head: the rest is given up. Whoever damages a store, or makes a hole in it, may
 * not hold a VM for long. */
#define LOOK_MAX        (64 * 1024 * 1024)

enum { HEAD_LENGTH = 8, HEAD_FEATURES = 16, HEAD_RUN = 24, HEAD_SUM = 40 };
enum { RECORD_LEN = 4, RECORD_SEQ = 8, RECORD_HASH = 16, RECORD_SUM = 24 };

static_assert(HEAD_SUM + 8 == TT_FRAMESTORE_HEAD_BYTES, "head layout");
static_assert(RECORD_SUM + 8 == TT_FRAMESTORE_RECORD_BYTES, "record layout");

/* Nothing that a guest sends looks like a record: it does not know the run. */
static uint64_t seed_of(const uint8_t run[TT_RUN_BYTES])
{
    return tt_get_le64(run) ^ tt_get_le64(run + 8);
}

/* ---- writer ---- */

struct TtFrameWriter {
    TtIo *io;
    uint64_t seed;
    bool has_any;
    uint64_t last_seq;
    TtStatus failed;
    TtDiag why;
    uint8_t bytes[TT_FRAMESTORE_RECORD_BYTES + TT_FRAME_BYTES_MAX];
};

TtStatus tt_framewriter_new(TtIo *io, const uint8_t run[TT_RUN_BYTES], TtFrameWriter **out,
                            TtDiag *diag)
{
    uint8_t head[TT_FRAMESTORE_HEAD_BYTES] = { 0 };
    TtFrameWriter *w = g_new0(TtFrameWriter, 1);
    TtStatus st;

    w->io = io;
    w->seed = seed_of(run);
    memcpy(head, HEAD_MAGIC, 8);
    tt_put_le32(head + HEAD_LENGTH, sizeof(head));
    memcpy(head + HEAD_RUN, run, TT_RUN_BYTES);
    tt_put_le64(head + HEAD_SUM, tt_header_sum(head, sizeof(head), HEAD_SUM, 0));
    st = io->ops->append(io, head, sizeof(head), diag);
    if (st != TT_OK) {
        g_clear_pointer(&w, tt_framewriter_free);
    }
    *out = w;
    return st;
}

TtStatus tt_framewriter_put(TtFrameWriter *w, const TtFrame *f, TtDiag *diag)
{
    uint8_t *head = w->bytes;

    assert(!w->has_any || f->seq > w->last_seq);                        /* I1 */
    assert(f->len >= TT_FRAME_BYTES_MIN && f->len <= TT_FRAME_BYTES_MAX);
    if (w->failed == TT_OK) {
        tt_put_le32(head, RECORD_MAGIC);
        tt_put_le32(head + RECORD_LEN, f->len);
        tt_put_le64(head + RECORD_SEQ, f->seq);
        tt_put_le64(head + RECORD_HASH, f->hash);
        tt_put_le64(head + RECORD_SUM, tt_header_sum(head, TT_FRAMESTORE_RECORD_BYTES,
                                                     RECORD_SUM, w->seed));
        memcpy(head + TT_FRAMESTORE_RECORD_BYTES, f->data, f->len);
        w->failed = w->io->ops->append(w->io, head, TT_FRAMESTORE_RECORD_BYTES + f->len,
                                       &w->why);
        w->has_any = true;
        w->last_seq = f->seq;
    }
    if (w->failed != TT_OK && diag) {
        *diag = w->why;
    }
    return w->failed;
}

TtStatus tt_framewriter_sync(TtFrameWriter *w, TtDiag *diag)
{
    return w->io->ops->sync(w->io, diag);
}

void tt_framewriter_free(TtFrameWriter *w)
{
    if (w) {
        tt_io_close(w->io);
        g_free(w);
    }
}

/* ---- reader ---- */

/* A walk from record to record. */
typedef struct Walk {
    uint64_t end;                       /* I2 */
    bool has_any;
    uint64_t last_seq;                  /* of the last one that was passed */
} Walk;

struct TtFrameStore {
    TtIo *io;                           /* NULL: it rests */
    uint64_t seed;
    uint64_t size_bytes;                /* at least */
    Walk front;
    uint64_t looked;                    /* up to here no record begins behind front.end */
    uint64_t n_passed;                  /* records, by it */
    bool is_behind_damage;              /* the next that it passes is */
    GArray *marks;                      /* of TtFrameEntry */
    bool has_read;                      /* the frame last_read is in bytes */
    TtFrameEntry last_read;
    uint8_t *bytes;                     /* TT_FRAME_BYTES_MAX; NULL: not yet */
};

/* Is it the store of @run? */
static TtStatus check_head(TtIo *io, const uint8_t run[TT_RUN_BYTES], TtDiag *diag)
{
    uint8_t head[TT_FRAMESTORE_HEAD_BYTES];
    size_t got = 0;
    TtStatus st = io->ops->read_at(io, 0, head, sizeof(head), &got, diag);

    if (st != TT_OK) {
        return st;
    }
    if (got < sizeof(head) || memcmp(head, HEAD_MAGIC, 8) ||
        tt_get_le64(head + HEAD_SUM) != tt_header_sum(head, sizeof(head), HEAD_SUM, 0)) {
        return tt_fail(diag, TT_ERR_FORMAT, "it is not a frame store, or its head is "
                       "damaged");
    }
    if (tt_get_le32(head + HEAD_LENGTH) != sizeof(head) ||
        tt_get_le64(head + HEAD_FEATURES)) {
        return tt_fail(diag, TT_ERR_VERSION, "it is a frame store of a newer version");
    }
    return memcmp(head + HEAD_RUN, run, TT_RUN_BYTES) ?
        tt_fail(diag, TT_ERR_FORMAT, "it is the frame store of another run") : TT_OK;
}

TtStatus tt_framestore_open(TtIo *io, const uint8_t run[TT_RUN_BYTES], TtFrameStore **out,
                            TtDiag *diag)
{
    TtStatus st = check_head(io, run, diag);

    *out = NULL;
    if (st != TT_OK) {
        tt_io_close(io);
        return st;
    }
    *out = g_new0(TtFrameStore, 1);
    (*out)->io = io;
    (*out)->seed = seed_of(run);
    (*out)->front.end = TT_FRAMESTORE_HEAD_BYTES;
    (*out)->marks = g_array_new(false, false, sizeof(TtFrameEntry));
    return TT_OK;
}

void tt_framestore_rest(TtFrameStore *s)
{
    g_clear_pointer(&s->io, tt_io_close);
    g_clear_pointer(&s->bytes, g_free);
    s->has_read = false;
}

TtStatus tt_framestore_resume(TtFrameStore *s, TtIo *io, const uint8_t run[TT_RUN_BYTES],
                              TtDiag *diag)
{
    uint64_t size = 0;
    TtStatus st = check_head(io, run, diag);

    assert(!s->io);
    if (st == TT_OK) {
        st = io->ops->size(io, &size, diag);
    }
    if (st == TT_OK && size < s->front.end) {
        st = tt_fail(diag, TT_ERR_FORMAT, "it is shorter than it was");
    }
    if (st != TT_OK) {
        tt_io_close(io);
        return st;
    }
    s->io = io;
    s->size_bytes = size;
    return TT_OK;
}

bool tt_framestore_rests(const TtFrameStore *s)
{
    return !s->io;
}

void tt_framestore_free(TtFrameStore *s)
{
    if (s) {
        tt_framestore_rest(s);
        g_array_unref(s->marks);
        g_free(s);
    }
}

/* Is it the head of a record that can follow (I1)? */
static bool get_entry(const TtFrameStore *s, const Walk *w, uint8_t *head, uint64_t offset,
                      TtFrameEntry *e)
{
    *e = (TtFrameEntry) {
        .seq = tt_get_le64(head + RECORD_SEQ), .hash = tt_get_le64(head + RECORD_HASH),
        .len = tt_get_le32(head + RECORD_LEN),
        .offset_bytes = offset + TT_FRAMESTORE_RECORD_BYTES,
    };
    return tt_get_le32(head) == RECORD_MAGIC && e->len >= TT_FRAME_BYTES_MIN &&
        e->len <= TT_FRAME_BYTES_MAX && (!w->has_any || e->seq > w->last_seq) &&
        tt_get_le64(head + RECORD_SUM) == tt_header_sum(head, TT_FRAMESTORE_RECORD_BYTES,
                                                        RECORD_SUM, s->seed);
}

/* The front moves on to the next record after damage. TT_END: there is none, or not yet. */
static TtStatus look_behind(TtFrameStore *s, TtDiag *diag)
{
    const size_t head = TT_FRAMESTORE_RECORD_BYTES;
    Walk *w = &s->front;
    g_autofree uint8_t *bytes = g_malloc(LOOK_BYTES);
    TtFrameEntry e;

    s->looked = MAX(s->looked, w->end + 1);
    while (s->looked - w->end < LOOK_MAX) {
        size_t got = 0;
        TtStatus st = s->io->ops->read_at(s->io, s->looked, bytes, LOOK_BYTES, &got, diag);

        if (st != TT_OK || got < head) {
            return st == TT_OK ? TT_END : st;
        }
        for (size_t i = 0; i + head <= got; i++) {
            if (bytes[i] == (uint8_t)RECORD_MAGIC &&
                get_entry(s, w, bytes + i, s->looked + i, &e)) {
                w->end = s->looked + i;
                return TT_OK;
            }
        }
        s->looked += got - head + 1;
    }
    return tt_fail(diag, TT_ERR_FORMAT, "%d MB of the store are damaged, and what is behind "
                   "them is not looked for", LOOK_MAX >> 20);
}

/* All of it is there. TT_END: it was cut off, or is on its way. */
static TtStatus check_whole(TtFrameStore *s, const TtFrameEntry *e, TtDiag *diag)
{
    uint64_t end = e->offset_bytes + e->len;
    TtStatus st = end <= s->size_bytes ? TT_OK :
        s->io->ops->size(s->io, &s->size_bytes, diag);

    return st == TT_OK && end > s->size_bytes ? TT_END : st;
}

/* Past the next record, which is *@e. TT_END: there is none, or not yet; TT_ERR_FORMAT:
 * none begins here. */
static TtStatus pass(TtFrameStore *s, Walk *w, TtFrameEntry *e, TtDiag *diag)
{
    uint8_t head[TT_FRAMESTORE_RECORD_BYTES];
    size_t got;
    TtStatus st = s->io->ops->read_at(s->io, w->end, head, sizeof(head), &got, diag);

    if (st != TT_OK || got < sizeof(head)) {
        return st == TT_OK ? TT_END : st;
    }
    if (!get_entry(s, w, head, w->end, e)) {
        return TT_ERR_FORMAT;
    }
    st = check_whole(s, e, diag);
    if (st == TT_OK) {
        w->has_any = true;
        w->last_seq = e->seq;
        w->end = e->offset_bytes + e->len;
    }
    return st;
}

/* The same at the front, and behind damage. */
static TtStatus pass_front(TtFrameStore *s, TtFrameEntry *e, TtDiag *diag)
{
    uint64_t end = s->front.end;
    TtStatus st = pass(s, &s->front, e, diag);

    if (st == TT_ERR_FORMAT) {
        st = look_behind(s, diag);
        if (st == TT_OK) {
            st = pass(s, &s->front, e, diag);
        }
    }
    if (st == TT_OK) {
        uint64_t begin = e->offset_bytes - TT_FRAMESTORE_RECORD_BYTES;

        s->is_behind_damage |= begin != end;
        if (s->n_passed++ % MARK_EVERY == 0 || s->is_behind_damage) {
            g_array_append_val(s->marks, *e);                           /* I3 */
        }
        s->is_behind_damage = false;
    } else {
        s->is_behind_damage |= s->front.end != end;
    }
    return st;
}

static TtStatus lacks(TtDiag *diag)
{
    return tt_fail(diag, TT_ERR_FORMAT, "it is not there, though later ones are: the store "
                   "is damaged");
}

/* Among those that were passed: from the last mark that is not behind @seq. */
static TtStatus find_passed(TtFrameStore *s, uint64_t seq, TtFrameEntry *e, TtDiag *diag)
{
    guint low = 0, high = s->marks->len;
    Walk w = { .has_any = true };
    TtStatus st = TT_OK;

    while (high - low > 1) {
        guint mid = low + (high - low) / 2;

        *(g_array_index(s->marks, TtFrameEntry, mid).seq <= seq ? &low : &high) = mid;
    }
    *e = g_array_index(s->marks, TtFrameEntry, low);
    while (st == TT_OK && e->seq < seq) {
        w.end = e->offset_bytes + e->len;
        w.last_seq = e->seq;
        st = pass(s, &w, e, diag);
    }
    return st == TT_END || st == TT_ERR_FORMAT || (st == TT_OK && e->seq != seq) ?
        lacks(diag) : st;
}

TtStatus tt_framestore_find(TtFrameStore *s, uint64_t seq, TtFrameEntry *e, TtDiag *diag)
{
    TtStatus st = TT_OK;

    assert(s->io);
    if (s->front.has_any && seq <= s->front.last_seq) {
        return find_passed(s, seq, e, diag);
    }
    do {
        st = pass_front(s, e, diag);
    } while (st == TT_OK && e->seq < seq);
    return st == TT_END ? tt_fail(diag, TT_END, "the store ends before it") :
        st == TT_OK && e->seq != seq ? lacks(diag) : st;
}

TtStatus tt_framestore_read(TtFrameStore *s, uint64_t seq, uint64_t hash,
                            const uint8_t **data, uint32_t *len, TtDiag *diag)
{
    TtFrameEntry e = s->last_read;
    size_t got = 0;
    TtStatus st = TT_OK;

    if (!s->has_read || e.seq != seq) {
        s->has_read = false;
        s->bytes = s->bytes ?: g_malloc(TT_FRAME_BYTES_MAX);
        st = tt_framestore_find(s, seq, &e, diag);
        if (st == TT_OK) {
            st = s->io->ops->read_at(s->io, e.offset_bytes, s->bytes, e.len, &got, diag);
        }
        if (st == TT_OK && (got < e.len || tt_frame_hash(s->bytes, e.len) != e.hash)) {
            st = tt_fail(diag, TT_ERR_FORMAT, "its bytes are damaged");
        }
        s->has_read = st == TT_OK;
        s->last_read = e;
    }
    if (st == TT_OK && e.hash != hash) {
        st = tt_fail(diag, TT_ERR_FORMAT, "it is another frame than the one that was "
                     "received");
    }
    *data = s->bytes;
    *len = e.len;
    return st;
}
