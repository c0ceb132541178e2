/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target of the log reader: any bytes; what is accepted keeps the rules,
 * and comes back the same when it is encoded once more.
 */
#include "fuzz-log-util.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) do { if (!(x)) { abort(); } } while (0)

static void check_same(const TtEvent *a, const TtEvent *b)
{
    CHECK(a->kind == b->kind && a->nested == b->nested && a->size == b->size &&
          a->cpu == b->cpu && a->aux == b->aux && a->pos == b->pos &&
          a->addr == b->addr && a->val == b->val && a->len == b->len);
    CHECK(a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

/* Touches every byte, and checks what a reader promises. */
static void check_events(const TtSegment *seg)
{
    uint64_t pos = seg->info.first_pos;
    unsigned sum = 0;
    char line[200];

    CHECK(seg->n_events == seg->info.n_events);
    for (uint32_t i = 0; i < seg->n_events; i++) {
        const TtEvent *ev = &seg->events[i];
        CHECK(ev->pos >= pos && ev->pos < TT_LOG_POS_MAX);
        CHECK(ev->len <= TT_LOG_DATA_MAX && ev->kind <= TT_EV_KIND_MAX);
        CHECK(TT_EV_IS_ANNOTATION(ev->kind) || tt_event_kind_name(ev->kind));
        for (uint32_t k = 0; k < ev->len; k++) {
            sum += ev->data[k];
        }
        sum += tt_event_format(ev, line, sizeof(line));
        pos = ev->pos + tt_event_step(ev);
    }
    CHECK(pos == seg->info.end_pos);
    CHECK(sum != 1);            /* so that nothing above is optimised away */
}

static void check_encoded_again(const TtSegment *seg)
{
    static TtSegBuf *sb;
    TtLogEncoder *e = tt_log_encoder_new();
    TtIo *io = tt_io_mem_new(NULL, 0);
    uint8_t uuid[16] = { 1 };
    TtLogWriter *w;
    TtLogReader *r;
    TtSegment *again;
    uint32_t n = 0;
    size_t len;

    if (!sb) {
        sb = tt_segbuf_new();
    }
    CHECK(tt_log_writer_new(io, uuid, &w, NULL) == TT_OK);
    tt_log_encoder_begin(e, sb, seg->info.first_pos, 0);
    while (n < seg->n_events && tt_log_encoder_fits(e, &seg->events[n])) {
        tt_log_encoder_put(e, &seg->events[n++]);
    }
    tt_log_encoder_end(e, true);
    CHECK(tt_log_writer_seal(w, sb, NULL) == TT_OK);
    const uint8_t *bytes = tt_io_mem_data(io, &len);
    CHECK(tt_log_reader_open(tt_io_mem_new(bytes, len), &r, NULL) == TT_OK);
    CHECK(tt_log_reader_load(r, 0, &again, NULL) == TT_OK);
    CHECK(again->n_events == n);
    for (uint32_t i = 0; i < n; i++) {
        check_same(&seg->events[i], &again->events[i]);
    }
    tt_segment_unref(again);
    tt_log_reader_free(r);
    tt_log_writer_free(w);
    tt_log_encoder_free(e);
}

static void read_log(const uint8_t *data, size_t size)
{
    TtDiag d = { 0 };
    TtLogReader *r;
    TtStatus status = tt_log_reader_open_part(tt_io_mem_new(data, size), &r,
                                              &d);

    if (status < 0) {
        CHECK(d.status == status && d.text[0]);
    }
    CHECK(r || status < 0);
    if (!r) {
        return;
    }
    CHECK((status < 0) == !!tt_log_reader_damage(r));
    CHECK((status == TT_END_TORN) == tt_log_reader_is_torn(r));
    for (uint64_t i = tt_log_reader_first(r); i < tt_log_reader_end(r); i++) {
        TtSegment *seg;
        status = tt_log_reader_load(r, i, &seg, &d);
        if (status == TT_OK) {
            check_events(seg);
            check_encoded_again(seg);
            tt_segment_unref(seg);
        } else {
            CHECK(d.status == status && d.text[0] && !seg);
        }
    }
    tt_log_reader_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree uint8_t *mended = fuzz_log_mend(data, size);

    read_log(data, size);
    read_log(mended, size);
    return 0;
}
