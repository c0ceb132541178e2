/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages of a conversion on stderr: how far it is, and what it did. */
#include "qemu/osdep.h"
#include "tt-convert-part-int.h"
#include "tt-convert-parts-int.h"
#include "accel-tt/tt-position.h"
#include "log/tt-sched.h"
#include "replay/tt-replay-log.h"
#include "session/tt-session.h"
#include "qemu/error-report.h"
#include "qemu/timer.h"

#define PROGRESS_MS 2000

static int64_t told_ms, began_ms;
static uint64_t told_at;            /* position in the log of exits */

/* The main thread takes the token for it, so a vCPU that searches for long leaves guest
 * code, too, and tells. */
static void tick(void *opaque)
{
    timer_mod(opaque, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + PROGRESS_MS);
}

void tt_convert_tell_began(int64_t ms)
{
    began_ms = ms;
}

void tt_convert_tell_start(void)
{
    QEMUTimer *timer = g_new0(QEMUTimer, 1);

    timer_init_ms(timer, QEMU_CLOCK_REALTIME, tick, timer);
    tick(timer);
    began_ms = told_ms = qemu_clock_get_ms(QEMU_CLOCK_REALTIME);
}

/* Why nothing of the log has been reached for a while. */
static char *what_lasts(const TtEvent *ev, uint64_t positions)
{
    g_autofree char *hunt = tt_convert_is_hunting() ? tt_convert_hunt_text() : NULL;

    if (hunt) {
        return g_strdup_printf(", looking for a landmark: %s", hunt);
    }
    return ev ? g_strdup_printf(", %" PRIu64 " positions without '%s', which was recorded "
                                "next", positions, tt_event_kind_name(ev->kind)) : NULL;
}

bool tt_convert_tell_progress(uint64_t positions)
{
    int64_t now = qemu_clock_get_ms(QEMU_CLOCK_REALTIME);
    uint64_t end = MAX(tt_replay_end(), 1);
    g_autofree char *text = NULL;
    const TtEvent *ev;
    uint64_t at;

    if (now - told_ms < PROGRESS_MS) {
        return false;
    }
    ev = tt_sched_peek(tt_replay_sched());
    at = ev ? ev->pos : end;
    if (at == told_at) {
        text = what_lasts(ev, positions);
    }
    told_ms = now;
    told_at = at;
    if (text || !tt_convert_part_is_on()) {     /* a part's parent reports progress */
        error_printf("tt: converting: %.1f %%%s\n", 100.0 * at / end, text ?: "");
    }
    return true;
}

void tt_convert_tell_done(void)
{
    double s = (qemu_clock_get_ms(QEMU_CLOCK_REALTIME) - began_ms) / 1000.0;
    const TtConvertCounts *c = &tt_convert_counts;

    error_printf("tt: converted: %" PRIu64 " positions, %" PRIu64 " events in %.1f s; "
                 "%" PRIu64 " landmarks, %.1f candidates each, %.1f with equal "
                 "registers; %" PRIu64 " checkpoints compared\n", tt_now.pos,
                 tt_session.events, s, c->places,
                 (double)c->candidates / MAX(c->places, 1),
                 (double)c->same_registers / MAX(c->places, 1), c->compared);
}
