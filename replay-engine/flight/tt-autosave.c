/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * When something went wrong (tt-crash.c, tt-incident.c), a flight recorder saves its window
 * a moment later, when the guest has printed its last messages. What goes wrong again and
 * again is saved once per length of the window, and a few times in all: the disk is not
 * ours to fill.
 */
#include "qemu/osdep.h"
#include "flight/tt-autosave.h"
#include "flight/tt-save.h"
#include "record/tt-flight.h"
#include "record/tt-record-listener.h"
#include "record/tt-record-options.h"
#include "session/tt-session.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/timer.h"

#define SETTLE_MS   1500        /* the rest of the guest's last words */
#define AGAIN_MS    200
#define SAVES_MAX   10

static struct {
    unsigned n;
    int64_t last_ns, before_ns; /* VM's clock: of this one, of the one before */
    char name[24];              /* of the mark that is to be saved */
    QEMUTimer *timer;
} au;

static void save(void *opaque)
{
    Error *err = NULL;

    if (tt_past || tt_save_is_busy()) {             /* later */
        timer_mod(au.timer, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + AGAIN_MS);
        return;
    }
    if (!tt_recording() || !tt_session.live || !tt_flight_is_on()) {
        return;                 /* the run itself is what is left */
    }
    if (!tt_save_begin(au.name, true, NULL, NULL, &err)) {
        warn_report("tt: the window was not saved: %s", error_get_pretty(err));
        error_free(err);
        au.n--;                 /* the next sign gets its chance */
        au.last_ns = au.before_ns;
    }
}

bool tt_autosave_plan(const char *mark)
{
    int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);

    if (!tt_flight_is_on() || (au.timer && timer_pending(au.timer))) {
        return true;                    /* the run has it, or the window that is planned */
    }
    if (!tt_record_options.save_on_panic) {
        return false;
    }
    if (au.n && au.n <= SAVES_MAX &&
        now - au.last_ns < (int64_t)tt_record_options.window_ns) {
        warn_report("tt: no window is saved for @%s: that for @%s was planned less than a "
                    "window's length ago; use 'tt save' (in QMP tt-save) for another", mark,
                    au.name);
        return false;
    }
    if (au.n >= SAVES_MAX) {
        if (au.n++ == SAVES_MAX) {
            warn_report("tt: %u windows have been saved automatically, and no more will "
                        "be: use 'tt save' (in QMP tt-save) for another", SAVES_MAX);
        }
        return false;
    }
    au.n++;
    au.before_ns = au.last_ns;
    au.last_ns = now;
    g_strlcpy(au.name, mark, sizeof(au.name));
    if (!au.timer) {
        au.timer = timer_new_ms(QEMU_CLOCK_REALTIME, save, NULL);
    }
    timer_mod(au.timer, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + SETTLE_MS);
    return true;
}

static void forget(void)
{
    if (au.timer) {
        timer_free(au.timer);
    }
    memset(&au, 0, sizeof(au));
}

void tt_autosave_init(void)
{
    static const TtRecordListener listener = { .ended = forget };

    tt_record_listen(&listener);
}
