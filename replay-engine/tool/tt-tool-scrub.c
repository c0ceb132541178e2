/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt pack: the log anew, event by event, in the same segments.
 *
 * With --scrub only its shape is kept: which event, where, at which address, how
 * large. Values and data are zeros. Such a run cannot be replayed and says so.
 * Without, what the log only names, since a disk or another run has it, is put in
 * (tt-tool-fill.c).
 */
#include "tt-tool.h"

#include <string.h>

static bool keeps_val(const TtEvent *ev)
{
    switch (ev->kind) {
    case TT_EV_CPU_FLAG:        /* not what a register or a counter gets */
        return ev->addr <= TT_FLAG_APIC_FEATURE;
    case TT_EV_INTR:
    case TT_EV_RAM:             /* where, not what */
    case TT_EV_DISK:
    case TT_EV_PAYLOAD:
    case TT_EV_CPU_STATE:       /* halted */
    case TT_EV_BLOCK:
    case TT_EV_RAM_FILL:
    case TT_EV_FINISH:
        return true;
    default:
        return false;
    }
}

static void scrub_event(TtEvent *ev, const uint8_t *zeros)
{
    if (!keeps_val(ev)) {
        ev->val = 0;
    }
    if (ev->kind == TT_EV_CHECK || ev->kind == TT_EV_DIGEST || ev->kind == TT_EV_FRAME_IN) {
        ev->addr = 0;                   /* a hash confirms a guess; a place in another run */
    }
    if (ev->kind == TT_EV_RAM_FILL) {
        ev->aux = 0;
    } else if (ev->kind != TT_EV_BLOCK) {
        ev->data = zeros;
    }
}

typedef struct Scrubber {
    TtLogEncoder *encoder;
    TtLogWriter *writer;
    TtSegBuf *sb;
    uint8_t *zeros;
    ToolFill *fill;                     /* NULL: scrub */
} Scrubber;

static TtStatus edit(Scrubber *s, TtEvent *ev, TtDiag *diag)
{
    if (!s->fill) {
        scrub_event(ev, s->zeros);
        return TT_OK;
    }
    return tt_event_is_named(ev->kind) ? tool_fill_event(s->fill, ev, diag) : TT_OK;
}

static void begin(Scrubber *s, const TtSegment *seg, uint64_t pos)
{
    tt_log_encoder_begin(s->encoder, s->sb, pos, seg->info.host_ns);
    tt_log_encoder_code_alike(s->encoder, seg->info.is_ram_by_len);
}

static TtStatus scrub_segment(Scrubber *s, const TtSegment *seg, TtDiag *diag)
{
    TtStatus st = TT_OK;

    begin(s, seg, seg->info.first_pos);
    for (uint32_t i = 0; st == TT_OK && i < seg->n_events; i++) {
        TtEvent ev = seg->events[i];

        st = edit(s, &ev, diag);
        if (st != TT_OK) {
            break;
        }
        if (!tt_log_encoder_fits(s->encoder, &ev)) {
            st = tt_log_writer_seal(s->writer,
                                    tt_log_encoder_end(s->encoder, false),
                                    diag);
            begin(s, seg, ev.pos);
        }
        tt_log_encoder_put(s->encoder, &ev);
    }
    tt_log_encoder_end(s->encoder, seg->info.last);
    return st == TT_OK ? tt_log_writer_seal(s->writer, s->sb, diag) : st;
}

static TtStatus scrub_all(Scrubber *s, TtLogReader *r, TtDiag *diag)
{
    TtStatus st = TT_OK;

    for (uint64_t i = tt_log_reader_first(r);
         st == TT_OK && i < tt_log_reader_end(r); i++) {
        TtSegment *seg;

        st = tt_log_reader_load(r, i, &seg, diag);
        if (st == TT_OK) {
            st = scrub_segment(s, seg, diag);
            tt_segment_unref(seg);
        }
    }
    return st;
}

/* Where the log begins. */
static TtLogPlace place_of(const TtLogReader *r)
{
    TtLogPlace at = { .segment = tt_log_reader_first(r) };

    if (tt_log_reader_n_segments(r)) {
        const TtSegInfo *i = tt_log_reader_info(r, at.segment);

        at.event = i->first_event;
        at.pos = tt_log_reader_is_window(r) ? i->first_pos : 0;
    }
    return at;
}

TtStatus tool_edit_log(TtLogReader *r, const char *path, ToolFill *fill, TtIo **out,
                       TtDiag *diag)
{
    TtLogPlace at = place_of(r);
    Scrubber s = { .fill = fill, .sb = tt_segbuf_new(), .encoder = tt_log_encoder_new_at(&at),
                   .zeros = g_malloc0(TT_LOG_DATA_MAX) };
    TtIo *io;
    TtStatus st;

    *out = NULL;
    st = !s.sb ? tt_fail(diag, TT_ERR_NOMEM, "not enough memory") :
        tt_io_posix_create_unnamed(path, &io, diag);
    if (st == TT_OK) {
        st = tt_io_posix_dup(io, out, diag);
        if (st != TT_OK) {
            tt_io_close(io);
        }
    }
    if (st == TT_OK) {
        st = tt_log_reader_is_window(r) ?
            tt_log_writer_new_part(io, tt_log_reader_uuid(r), &at, &s.writer,
                                   diag) :
            tt_log_writer_new(io, tt_log_reader_uuid(r), &s.writer, diag);
    }
    if (st == TT_OK) {
        st = scrub_all(&s, r, diag);
        tt_log_writer_free(s.writer);
    }
    tt_log_encoder_free(s.encoder);
    tt_segbuf_free(s.sb);
    g_free(s.zeros);
    return st;
}
