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
    char *path;
    bool is_whole;                  /* it stays */
} out;

static void begin_segment(uint64_t pos)
{
    tt_log_encoder_begin(out.encoder, out.open, pos,
                         qemu_clock_get_ns(QEMU_CLOCK_REALTIME));
}

static void seal(bool last)
{
    TtDiag diag;

    tt_log_encoder_end(out.encoder, last);
    if (tt_log_writer_seal(out.writer, out.open, &diag) != TT_OK) {
        error_report("tt: the run cannot be converted: %s", diag.text);
        exit(1);
    }
}

/* However this process ends, but by SIGKILL: what it could not finish is begun anew by
 * the next one, and its room on the disk is free until then. */
static void remove_unfinished(void)
{
    if (!out.is_whole) {
        unlink(out.path);
    }
}

bool tt_convert_log_open(Error **errp)
{
    char *path = out.path = tt_convert_path(TT_CONVERT_NEW);
    TtDiag diag;
    TtIo *io;

    unlink(path);
    atexit(remove_unfinished);
    if (tt_io_posix_create(path, &io, &diag) != TT_OK ||
        tt_log_writer_new(io, tt_session.manifest.uuid, &out.writer, &diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    out.encoder = tt_log_encoder_new();
    out.open = tt_segbuf_new();
    if (!out.open) {
        error_setg(errp, "not enough memory for the log's buffer");
        return false;
    }
    begin_segment(0);
    return true;
}

void tt_convert_put(TtEvent *ev)
{
    if (!tt_log_encoder_fits(out.encoder, ev->len)) {
        seal(false);
        begin_segment(ev->pos);
    }
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

bool tt_convert_log_finish(bool is_clean, Error **errp)
{
    TtDiag diag;

    seal(is_clean);
    if (tt_log_writer_sync(out.writer, &diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    tt_log_writer_free(out.writer);
    out.is_whole = true;
    return tt_convert_install(errp);
}
