/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Puts the parts of a pass together: events with their positions in the run, the hash of
 * the outputs over all of it, and a checkpoint where a part came to one of the recorder's.
 * RAM there is the recorded one, so its pages come from the recorder's store.
 */
#include "qemu/osdep.h"
#include "convert/tt-convert.h"
#include "convert/tt-convert-files.h"
#include "tt-convert-part-int.h"
#include "tt-convert-parts-int.h"
#include "accel-tt/tt-position.h"
#include "io/tt-io.h"
#include "log/tt-log.h"
#include "pages/tt-pagestore.h"
#include "run/tt-cpstate.h"
#include "session/tt-session.h"
#include "qapi/error.h"
#include "qemu/error-report.h"

static struct {
    TtLogEncoder *encoder;
    TtLogWriter *writer;
    TtSegBuf *open;
    TtPageStore *store;
    TtNodeId base;
    uint64_t start;                 /* of the part, in the run */
    uint64_t host_ns;               /* of the last segment */
    uint64_t index;                 /* of the last checkpoint */
    GArray *sync_starts;
    bool is_full;                   /* the disk */
    bool is_damaged;                /* a part: it was removed */
} jo;

static bool fail(Error **errp, const TtDiag *diag)
{
    jo.is_full = diag->status == TT_ERR_NOSPACE;
    error_setg(errp, "%s", diag->text);
    return false;
}

/* The next pass makes this part again, and no other. */
static bool remove_part(uint64_t from, const char *why, Error **errp)
{
    g_autofree char *name = tt_convert_part_name(from, true);
    g_autofree char *path = tt_convert_path(name);

    jo.is_damaged = true;
    unlink(path);
    error_setg(errp, "'%s' is damaged (%s): this interval is converted again", name, why);
    return false;
}

static bool cannot_read(uint64_t from, const TtDiag *diag, Error **errp)
{
    return diag->status == TT_ERR_FORMAT ? remove_part(from, diag->text, errp) :
        fail(errp, diag);
}

/* ---- a checkpoint ---- */

static TtStatus add(const TtConvertPassed *p, TtCpState *s, TtDiag *diag)
{
    TtCheckpointMeta meta = { .host_ns = jo.host_ns };
    g_autofree uint8_t *blob = NULL;
    TtPageBatch *batch = tt_convert_recorded_batch(p->index, !jo.base);
    TtStatus status;
    uint32_t len;

    if (!batch) {
        return tt_fail(diag, TT_ERR_IO, "one of the recorder's checkpoints cannot be "
                       "read");
    }
    s->segment = tt_log_writer_place(jo.writer).segment;
    s->index = 0;
    s->output_hash = tt_now.output_hash;
    s->events = tt_session.events;
    meta.blob = blob = tt_cpstate_encode(s, &len);
    meta.blob_bytes = len;
    status = tt_pagestore_add_batch(jo.store, jo.start + p->pos, jo.base, batch, &meta,
                                    &jo.base);
    tt_pagebatch_free(batch);
    return status != TT_OK ? tt_fail(diag, status, "a checkpoint cannot be stored: %s",
                                     tt_status_name(status)) :
        tt_pagestore_flush(jo.store, diag);
}

static bool add_checkpoint(const TtConvertPassed *p, Error **errp)
{
    uint64_t pos = jo.start + p->pos;
    TtCpState s;
    TtDiag diag;

    if (p->index != ++jo.index) {       /* each has only what changed since the one before */
        tt_fail(&diag, TT_ERR_FORMAT, "no part contains the recorder's checkpoint %"
                PRIu64, jo.index);
        return fail(errp, &diag);
    }
    if (tt_cpstate_decode(p->state, &s, &diag) != TT_OK || add(p, &s, &diag) != TT_OK) {
        return fail(errp, &diag);
    }
    g_array_append_val(jo.sync_starts, pos);
    return true;
}

/* ---- events ---- */

static void put(const TtEvent *from)
{
    TtEvent ev = *from;

    ev.pos += jo.start;
    if (ev.kind == TT_EV_PIO_OUT || ev.kind == TT_EV_MMIO_ST) {
        tt_fold_output(&ev);
    }
    if (ev.kind == TT_EV_CHECK) {
        ev.addr = tt_now.output_hash;
    }
    tt_log_encoder_put(jo.encoder, &ev);
    tt_session.events += !TT_EV_IS_ANNOTATION(ev.kind);
}

static bool seal(bool last, Error **errp)
{
    TtDiag diag;

    tt_log_encoder_end(jo.encoder, last);
    return tt_log_writer_seal(jo.writer, jo.open, &diag) == TT_OK || fail(errp, &diag);
}

/* A digest takes more bytes than in the part if its hash is a longer number now: a segment
 * that was full may become two. */
static bool put_segment(const TtSegment *segment, bool last, Error **errp)
{
    jo.host_ns = segment->info.host_ns;
    tt_log_encoder_begin(jo.encoder, jo.open, jo.start + segment->info.first_pos,
                         jo.host_ns);
    for (uint32_t i = 0; i < segment->n_events; i++) {
        const TtEvent *ev = &segment->events[i];

        if (!tt_log_encoder_fits(jo.encoder, ev)) {
            if (!seal(false, errp)) {
                return false;
            }
            tt_log_encoder_begin(jo.encoder, jo.open, jo.start + ev->pos, jo.host_ns);
        }
        put(ev);
    }
    return seal(last, errp);
}

static bool put_log(TtLogReader *r, const TtConvertDone *done, Error **errp)
{
    uint64_t n = tt_log_reader_n_segments(r);
    bool is_clean = done->part.to == TT_CONVERT_END && done->part.is_clean;
    TtSegment *segment;
    guint k = 0;
    TtDiag diag;
    bool ok = true;

    for (uint64_t i = 0; i <= n && ok; i++) {
        for (; ok && k < done->passed->len &&
             g_array_index(done->passed, TtConvertPassed, k).segment <= i; k++) {
            ok = add_checkpoint(&g_array_index(done->passed, TtConvertPassed, k), errp);
        }
        if (i == n || !ok) {
            break;
        }
        if (tt_log_reader_load(r, i, &segment, &diag) != TT_OK) {
            return cannot_read(done->part.from, &diag, errp);
        }
        if (segment->n_events || (is_clean && i == n - 1)) {
            ok = put_segment(segment, is_clean && i == n - 1, errp);
        }
        tt_segment_unref(segment);
    }
    return ok;
}

static bool put_part(const TtConvertDone *done, Error **errp)
{
    g_autofree char *name = tt_convert_part_name(done->part.from, false);
    g_autofree char *path = tt_convert_path(name);
    TtLogReader *r = NULL;
    TtDiag diag;
    TtIo *io;
    bool ok;

    if (tt_io_posix_open(path, &io, &diag) != TT_OK ||
        tt_log_reader_open(io, &r, &diag) < 0) {
        return cannot_read(done->part.from, &diag, errp);
    }
    ok = !tt_log_reader_is_torn(r) && tt_log_reader_bytes(r) == done->part.log_bytes ?
        put_log(r, done, errp) :
        remove_part(done->part.from, "it has another length", errp);
    tt_log_reader_free(r);
    jo.start += done->part.positions;
    tt_convert_counts.places += done->part.places;
    tt_convert_counts.candidates += done->part.candidates;
    tt_convert_counts.same_registers += done->part.same_registers;
    tt_convert_counts.compared += done->part.compared;
    return ok;
}

/* ---- all of it ---- */

static bool open_files(Error **errp)
{
    g_autofree char *path = tt_convert_path(TT_CONVERT_NEW);
    TtDiag diag;
    TtIo *io;

    tt_convert_discard_all();
    jo.store = tt_convert_new_store(&diag);
    if (!jo.store || tt_io_posix_create(path, &io, &diag) != TT_OK ||
        tt_log_writer_new(io, tt_session.manifest.uuid, &jo.writer, &diag) != TT_OK) {
        return fail(errp, &diag);
    }
    jo.encoder = tt_log_encoder_new();
    jo.open = tt_segbuf_new();
    jo.sync_starts = g_array_new(false, false, sizeof(uint64_t));
    if (!jo.open) {
        error_setg(errp, "not enough memory for the log's buffer");
        return false;
    }
    return true;
}

static bool put_parts(Error **errp)
{
    TtConvertDone done;
    uint64_t from = 0;
    bool ok = true;

    while (ok && from != TT_CONVERT_END) {
        if (!tt_convert_part_load(tt_session.dir, from, &done)) {
            jo.is_damaged = true;
            error_setg(errp, "the interval from checkpoint %" PRIu64 " on is missing: it is "
                       "converted again", from);
            return false;
        }
        ok = put_part(&done, errp);
        from = done.part.to;
        tt_convert_done_cleanup(&done);
    }
    return ok;
}

int tt_convert_join_status(void)
{
    return jo.is_full ? TT_CONVERT_NO_ROOM : jo.is_damaged ? TT_CONVERT_AGAIN : 1;
}

bool tt_convert_join(Error **errp)
{
    TtDiag diag;

    tt_now.output_hash = 0;
    tt_session.events = 0;
    if (!open_files(errp) || !put_parts(errp)) {
        return false;
    }
    if (tt_log_writer_sync(jo.writer, &diag) != TT_OK ||
        tt_pagestore_flush(jo.store, &diag) != TT_OK ||
        tt_pagestore_sync(jo.store, &diag) != TT_OK) {
        return fail(errp, &diag);
    }
    tt_log_writer_free(jo.writer);
    tt_pagestore_free(jo.store);
    tt_now.pos = jo.start;
    return tt_convert_install_parts((uint64_t *)jo.sync_starts->data,
                                    jo.sync_starts->len, errp);
}
