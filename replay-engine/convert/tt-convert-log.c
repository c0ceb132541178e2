/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The log that a conversion writes, and how it takes the place of the log of exits. A
 * file is complete before its name is changed; after a kill in between, the next try
 * finds what is left to do:
 *
 *   log, log.new              the pass is made again
 *   exits, log.new            log.new becomes log
 *   exits, log                the manifest loses the bit that asks for the pass
 */
#include "qemu/osdep.h"
#include "tt-convert-parts-int.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "convert/tt-convert-files.h"
#include "tt-convert-part-int.h"
#include "hw-tt/memory/tt-memory.h"
#include "io/tt-io.h"
#include "log/tt-log.h"
#include "log/tt-sched.h"
#include "replay/tt-replay-log.h"
#include "session/tt-session.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/timer.h"

static struct {
    TtLogEncoder *encoder;
    TtLogWriter *writer;
    TtSegBuf *open;
    const TtConvertPoint *from;     /* it goes on from there */
    uint64_t exits;                 /* segment of the exits that it is made of */
    bool has_events;                /* the open segment */
    bool is_muted, has_pictures;
    bool is_whole;                  /* it stays */
} out;

/* The host's time of the recording: that of the exits. */
static uint64_t host_ns(void)
{
    const TtLogReader *r = tt_replay_reader();
    const TtSegInfo *info;

    out.exits = tt_sched_tell(tt_replay_sched()).segment;
    info = out.exits < tt_log_reader_n_segments(r) ? tt_log_reader_info(r, out.exits) :
        NULL;
    return info ? info->host_ns : out.open->host_ns;
}

static void begin_segment(uint64_t pos)
{
    out.has_events = false;
    tt_log_encoder_begin(out.encoder, out.open, pos, host_ns());
}

/* The points made so far stay. */
static void G_NORETURN cannot_write(TtStatus s, const TtDiag *diag)
{
    if (s == TT_ERR_NOSPACE && tt_convert_part_is_on()) {
        error_report("tt: the conversion of the run stops here: %s; make room and replay "
                     "it again: intervals that are done are kept", diag->text);
    } else if (s == TT_ERR_NOSPACE && tt_convert_has_point()) {
        error_report("tt: the conversion of the run stops here: %s; make room and replay "
                     "it again: that continues from the last point", diag->text);
    } else {
        error_report("tt: the run cannot be converted: %s", diag->text);
    }
    exit(s == TT_ERR_NOSPACE ? TT_CONVERT_NO_ROOM : 1);
}

static void seal(bool last)
{
    TtDiag diag;
    TtStatus s;

    tt_log_encoder_end(out.encoder, last);
    s = tt_log_writer_seal(out.writer, out.open, &diag);
    if (s != TT_OK) {
        cannot_write(s, &diag);
    }
}

static char *new_path(void)
{
    g_autofree char *name = tt_convert_part_is_on() ?
        tt_convert_part_name(tt_convert_part_from(), false) : g_strdup(TT_CONVERT_NEW);

    return tt_convert_path(name);
}

/* However this process ends, but by SIGKILL: what it could not finish is begun anew by
 * the next one, and its room on the disk is free until then. */
static void remove_unfinished(void)
{
    g_autofree char *path = new_path();

    if (!out.is_whole && tt_convert_part_is_on()) {
        unlink(path);
    } else if (!out.is_whole) {
        tt_convert_discard_unfinished(tt_replayer.diverged);
    }
}

static TtStatus begin(TtDiag *diag)
{
    g_autofree char *path = new_path();
    TtStatus s;
    TtIo *io;

    if (tt_convert_part_is_on()) {
        unlink(path);               /* of one that was killed */
    }
    s = tt_io_posix_create(path, &io, diag);
    out.encoder = tt_log_encoder_new();
    return s != TT_OK ? s :
        tt_log_writer_new(io, tt_session.manifest.uuid, &out.writer, diag);
}

static TtStatus go_on(const TtConvertPoint *p, TtDiag *diag)
{
    g_autofree char *path = tt_convert_path(TT_CONVERT_NEW);
    TtLogPlace at = { p->place_segment, p->place_event, p->place_pos };
    TtIo *io;
    TtStatus s = tt_io_posix_open_append(path, &io, diag);

    out.encoder = tt_log_encoder_new_at(&at);
    return s != TT_OK ? s : tt_log_writer_go_on(io, tt_session.manifest.uuid, &at,
                                                p->log_bytes, &out.writer, diag);
}

static bool is_readable(TtLogReader *r, const TtConvertPoint *p)
{
    TtSegment *segment;
    TtDiag diag;
    bool ok = !memcmp(tt_log_reader_uuid(r), tt_session.manifest.uuid, 16) &&
        tt_log_reader_bytes(r) == p->log_bytes &&
        tt_log_reader_n_segments(r) == p->place_segment;

    for (uint64_t i = 0; ok && i < p->place_segment; i++) {
        ok = tt_log_reader_load(r, i, &segment, &diag) == TT_OK;
        if (ok) {
            ok = i + 1 < p->place_segment || segment->info.first_event +
                segment->info.n_events == p->place_event;
            tt_segment_unref(segment);
        }
    }
    return ok;
}

/* What was written after the point goes. The directory may be a hostile one: nothing but
 * a file of its own is cut. */
static bool cut(const char *path, uint64_t bytes)
{
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    bool ok = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        st.st_nlink == 1 && st.st_size >= bytes && ftruncate(fd, bytes) == 0;

    if (fd >= 0) {
        close(fd);
    }
    return ok;
}

bool tt_convert_log_is_whole(const TtConvertPoint *p)
{
    g_autofree char *path = tt_convert_path(TT_CONVERT_NEW);
    TtLogReader *r = NULL;
    TtDiag diag;
    TtIo *io;
    bool ok;

    if (!cut(path, p->log_bytes) || tt_io_posix_open(path, &io, &diag) != TT_OK) {
        return false;
    }
    ok = tt_log_reader_open(io, &r, &diag) >= 0 && is_readable(r, p);
    tt_log_reader_free(r);
    return ok;
}

bool tt_convert_log_has_pictures(void)
{
    return out.has_pictures;
}

const TtConvertPoint *tt_convert_log_point(void)
{
    return out.from;
}

void tt_convert_log_goes_on(void)
{
    out.is_muted = false;
}

uint64_t tt_convert_log_cut(void)
{
    seal(false);
    begin_segment(tt_now.pos);
    return tt_log_writer_place(out.writer).segment;
}

void tt_convert_log_seal(TtConvertPoint *p)
{
    TtLogPlace at;
    TtDiag diag;
    TtStatus s;

    p->host_ns = out.open->host_ns;
    seal(false);
    s = tt_log_writer_sync(out.writer, &diag);
    if (s != TT_OK) {
        cannot_write(s, &diag);
    }
    at = tt_log_writer_place(out.writer);
    p->log_bytes = tt_log_writer_bytes(out.writer);
    p->place_segment = at.segment;
    p->place_event = at.event;
    p->place_pos = tt_now.pos;
    begin_segment(tt_now.pos);
}

bool tt_convert_log_open(const TtConvertPoint *from, Error **errp)
{
    TtDiag diag;
    TtStatus s;

    out.from = from;
    atexit(remove_unfinished);
    s = out.from ? go_on(out.from, &diag) : begin(&diag);
    if (s == TT_ERR_NOSPACE) {
        cannot_write(s, &diag);
    }
    if (s != TT_OK) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    out.is_muted = out.from || tt_convert_part_from();
    out.open = tt_segbuf_new();
    if (!out.open) {
        error_setg(errp, "not enough memory for the log's buffer");
        return false;
    }
    begin_segment(out.from ? out.from->place_pos : 0);
    return true;
}

void tt_convert_put(TtEvent *ev)
{
    if (out.is_muted) {
        return;
    }
    out.has_pictures |= ev->kind == TT_EV_SCREEN;
    if (tt_sched_tell(tt_replay_sched()).segment != out.exits && !out.has_events) {
        out.open->host_ns = host_ns();
    } else if (tt_sched_tell(tt_replay_sched()).segment != out.exits ||
               !tt_log_encoder_fits(out.encoder, ev)) {
        seal(false);
        begin_segment(ev->pos);
    }
    out.has_events = true;
    tt_log_encoder_put(out.encoder, ev);
    tt_session.events += !TT_EV_IS_ANNOTATION(ev->kind);
}

void tt_convert_put_check(void)
{
    TtEvent ev = {
        .kind = TT_EV_CHECK, .pos = tt_now.pos, .addr = tt_now.output_hash,
        .val = tt_vcpus_digest(),
    };

    tt_convert_put(&ev);
}

void tt_convert_put_digest(const TtEvent *recorded)
{
    TtEvent ev = {
        .kind = TT_EV_DIGEST, .pos = tt_now.pos, .addr = tt_vcpus_digest(),
        .val = tt_memory_digest(),
    };

    if (ev.val != recorded->val) {
        warn_report("tt: RAM at the end of the run differs from the recorded RAM "
                    "(accessed and dirty bits of page tables may differ)");
    }
    tt_convert_put(&ev);
}

/* What cannot be read now may be readable another time: then the run does not end here,
 * and the next conversion goes on from the last point. */
void tt_convert_log_can_end(void)
{
    TtDiag diag;
    TtStatus s = tt_sched_status(tt_replay_sched(), &diag);

    if (s == TT_ERR_IO || s == TT_ERR_NOMEM) {
        error_report("tt: the log of exits cannot be read: %s", diag.text);
        exit(1);
    }
}

void tt_convert_put_damage(void)
{
    const TtDiag *said = tt_log_reader_damage(tt_replay_reader());
    TtEvent ev = { .kind = TT_EV_NOTE, .pos = tt_now.pos };
    g_autofree char *text = NULL;
    TtDiag diag;

    if (!said && tt_sched_status(tt_replay_sched(), &diag) < 0) {
        said = &diag;
    }
    if (said) {
        warn_report("tt: the log of exits is damaged, and the run ends there: %s",
                    said->text);
        text = g_strdup_printf("the log of exits is damaged here: %s", said->text);
        ev.data = (uint8_t *)text;
        ev.len = strlen(text);
        tt_convert_put(&ev);
    }
}

bool tt_convert_log_finish(bool is_end, bool is_clean, Error **errp)
{
    uint64_t bytes;
    TtDiag diag;

    seal(is_clean || tt_convert_part_is_on());  /* or it would look cut off */
    if (tt_log_writer_sync(out.writer, &diag) != TT_OK) {
        cannot_write(diag.status, &diag);
    }
    bytes = tt_log_writer_bytes(out.writer);
    tt_log_writer_free(out.writer);
    out.is_whole = true;
    if (!tt_convert_part_is_on()) {
        return tt_convert_install_parts(NULL, 0, errp);
    }
    if (!tt_convert_part_finish(bytes, is_end, is_clean, &diag)) {
        cannot_write(diag.status, &diag);
    }
    return true;
}
