/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages of a conversion on stderr: how far it is, and what it did. */
#include "qemu/osdep.h"
#include "tt-convert-parts-int.h"
#include "accel-tt/tt-position.h"
#include "log/tt-sched.h"
#include "replay/tt-replay-log.h"
#include "session/tt-session.h"
#include "qemu/error-report.h"
#include "qemu/timer.h"

#define PROGRESS_MS 2000

static int64_t told_ms, began_ms;

void tt_convert_tell_start(void)
{
    began_ms = told_ms = qemu_clock_get_ms(QEMU_CLOCK_REALTIME);
}

void tt_convert_tell_progress(void)
{
    int64_t now = qemu_clock_get_ms(QEMU_CLOCK_REALTIME);
    uint64_t end = MAX(tt_replay_end(), 1);
    const TtEvent *ev;

    if (now - told_ms >= PROGRESS_MS) {
        ev = tt_sched_peek(tt_replay_sched());
        told_ms = now;
        error_printf("tt: converting: %.1f %%\n", 100.0 * (ev ? ev->pos : end) / end);
    }
}

void tt_convert_tell_done(void)
{
    double s = (qemu_clock_get_ms(QEMU_CLOCK_REALTIME) - began_ms) / 1000.0;
    const TtConvertCounts *c = &tt_convert_counts;

    error_printf("tt: converted: %" PRIu64 " positions, %" PRIu64 " events in %.1f s; "
                 "%" PRIu64 " landmarks, %.1f candidates each, %.1f with equal "
                 "registers\n", tt_now.pos, tt_session.events, s, c->places,
                 (double)c->candidates / MAX(c->places, 1),
                 (double)c->same_registers / MAX(c->places, 1));
}
