/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Incidents, see tt-incident.h. This VM's: a mark incident-N, and the group is told. Another
 * VM's: a mark peer-N, before anything is delivered that was sent after it. Each is at a
 * position of its own, so that the cut through all of them parts what was before from what
 * came after.
 *
 *   message --> main loop, later: new place, mark, note --> frames go on
 *
 * While the past is shown the present waits, and so does what was heard.
 */
#include "qemu/osdep.h"
#include "flight/tt-incident.h"
#include "flight/tt-autosave.h"
#include "accel-tt/tt-position.h"
#include "checkpoint/tt-checkpointer.h"
#include "net-tt/glue/tt-net-epoch.h"
#include "net-tt/glue/tt-net-incident.h"
#include "record/tt-mark-log.h"
#include "record/tt-record-listener.h"
#include "record/tt-record.h"
#include "session/tt-events.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "block/aio.h"

#define AGAIN_MS 200
#define SETTLE_MS 1000          /* then the disk is too slow to be waited for */

static struct {
    GQueue heard;               /* of TtIncident: others', not marked yet */
    QEMUTimer *again;
    unsigned n_own, n_peers;    /* marks of this recording */
} inc;

/* ---- this VM's ---- */

void tt_incident_tell_group(const char *mark, const char *what)
{
    TtIncident i = { 0 };

    if (!tt_net_is_there()) {
        return;
    }
    tt_checkpointer_new_place();
    if (tt_session.live) {
        i.pos = tt_position();
        g_strlcpy(i.mark, mark, sizeof(i.mark));
        g_strlcpy(i.what, what ?: "", sizeof(i.what));
        tt_net_incident_tell(&i);
    }
}

/* Whoever is told of an incident finds it in the file. */
static void settle(void)
{
    int64_t until_us = g_get_monotonic_time() + SETTLE_MS * 1000;
    uint64_t mark = tt_record_settle();

    while (!tt_record_is_settled(mark) && g_get_monotonic_time() < until_us) {
        g_usleep(200);
    }
}

bool tt_incident_report(const char *what, char **mark, uint64_t *pos, bool *has_no_window,
                        Error **errp)
{
    g_autofree char *name = NULL;

    if (tt_past) {
        error_setg(errp, "the past of the recording is shown: " TT_RETURN_FIRST);
        return false;
    }
    if (!tt_is_live(errp)) {
        return false;
    }
    if (!tt_recording() || !tt_session.has_begun) {
        error_setg(errp, "an incident is marked in a recording, and this VM is not "
                   "recorded");
        return false;
    }
    name = g_strdup_printf("incident-%u", ++inc.n_own);
    if (!tt_mark_record(name, pos, errp)) {
        return false;
    }
    tt_tell_incident(*pos, name, what ?: "");
    *has_no_window = !tt_autosave_plan(name);
    tt_incident_tell_group(name, what);
    settle();
    *mark = g_steal_pointer(&name);
    return true;
}

/* ---- others' ---- */

static bool mark_heard(const TtIncident *i)
{
    g_autofree char *name = NULL, *words = NULL;
    Error *err = NULL;
    uint64_t pos;

    if (!tt_recording()) {
        return false;
    }
    tt_checkpointer_new_place();
    if (!tt_session.live) {
        return false;
    }
    name = g_strdup_printf("peer-%u", ++inc.n_peers);
    if (!tt_mark_record(name, &pos, &err)) {
        warn_report_err(err);
        return false;
    }
    words = g_strdup_printf("in another VM of the group, @%s%s%s", i->mark, *i->what ?
                            ": " : "", i->what);
    warn_report("tt: %s: mark @%s, position %" PRIu64, words, name, pos);
    tt_tell_incident(pos, name, words);
    tt_autosave_plan(name);
    return true;
}

static void take_heard(void *opaque)
{
    TtIncident *i;

    while (!tt_past && (i = g_queue_pop_head(&inc.heard))) {
        tt_net_incident_is_done(mark_heard(i) ? i : NULL);
        g_free(i);
    }
    if (!g_queue_is_empty(&inc.heard)) {
        timer_mod(inc.again, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + AGAIN_MS);
    }
}

/* Not here: this may be inside of a link, and the VM is to be stopped. */
static void heard(const TtIncident *i)
{
    if (!inc.again) {                   /* there are no clocks yet at init */
        inc.again = timer_new_ms(QEMU_CLOCK_REALTIME, take_heard, NULL);
    }
    g_queue_push_tail(&inc.heard, g_memdup2(i, sizeof(*i)));
    aio_bh_schedule_oneshot(iohandler_get_aio_context(), take_heard, NULL);
}

static void forget(void)
{
    inc.n_own = inc.n_peers = 0;
}

void tt_incident_init(void)
{
    static const TtRecordListener listener = { .ended = forget };

    g_queue_init(&inc.heard);
    tt_record_listen(&listener);
    tt_net_incident_init(heard);
}
