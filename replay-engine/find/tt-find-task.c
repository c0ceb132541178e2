/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * -tt replay,find=...: a search as the task of a replay. Hits go to stdout, a line
 * each, for `tt find`, which has several of these work on parts of a run:
 *
 *   tt-find hit position=P pc=0xA cpu=N value=0xV
 *   tt-find way low=P high=P           how far it is, a few times a second
 *   tt-find failed text=...
 *   tt-find end code=N whole=0|1 left-out=POSITIONS
 */
#include "qemu/osdep.h"
#include "find/tt-find.h"
#include "accel-tt/tt-position.h"
#include "debug/tt-cond.h"
#include "io/tt-base.h"
#include "replay/tt-replay-log.h"
#include "session/tt-events.h"
#include "session/tt-session.h"
#include "timeline/tt-timeline.h"
#include "travel/tt-retrace.h"
#include "travel/tt-travel.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "qemu/cutils.h"
#include "qemu/timer.h"
#include "system/runstate.h"
#include "system/system.h"

#define TELL_MS 200

static struct {
    TtFindWant want;
    char *condition;            /* NULL: not asked for */
    int64_t told_ms;
} task;

static void say(const char *fmt, ...)
    G_GNUC_PRINTF(1, 2);

static void say(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    tt_tell_tool("tt-find", fmt, ap);
    va_end(ap);
}

/* Exit statuses of the tt tool: a replay that was not exact ends with 3. */
static void leave(uint64_t pos, int reason, Error *err)
{
    bool whole = reason == TT_STOP_TARGET && !err;
    int code = whole ? 0 : reason == TT_STOP_DIVERGED ? 3 : 1;

    if (err) {
        say("failed text=%s", error_get_pretty(err));
        error_free(err);
    } else if (!whole) {
        say("failed text=the search ended at position %" PRIu64 ": %s", pos,
            reason == TT_STOP_INTERRUPTED ? "interrupted" :
            tt_replayer.divergence ?: tt_stop_name(reason));
    }
    say("end code=%d whole=%d left-out=%" PRIu64, code, whole, tt_find_left_out());
    qemu_system_shutdown_request_with_code(SHUTDOWN_CAUSE_HOST_QMP_QUIT, code);
}

static void found(void *opaque, const TtFindHit *hit)
{
    say("hit position=%" PRIu64 " pc=0x%" PRIx64 " cpu=%u value=0x%" PRIx64, hit->pos,
        hit->pc, hit->cpu, hit->value);
}

static void moves(void *opaque, const TtFindWay *way)
{
    int64_t now = qemu_clock_get_ms(QEMU_CLOCK_REALTIME);

    if (now - task.told_ms >= TELL_MS) {
        task.told_ms = now;
        say("way low=%" PRIu64 " high=%" PRIu64, way->low, way->high);
    }
}

static void done(void *opaque, uint64_t pos, int reason, Error *err)
{
    leave(pos, reason, err);
}

static void begin(void)
{
    static const TtFindListener listener = {
        .found = found, .moves = moves, .done = done,
    };
    Error *err = NULL;

    if (!tt_find_begin(&task.want, &listener, NULL, &err)) {
        leave(tt_now.pos, TT_STOP_NONE, err);
    }
}

/* ---- the option ---- */

bool tt_find_is_on(void)
{
    return task.condition;
}

static bool parse_word(const char *word, Error **errp)
{
    const char *limit;

    if (!strcmp(word, "changes")) {
        task.want.how |= TT_COND_CHANGES;
    } else if (!strcmp(word, "monotone")) {
        task.want.how |= TT_COND_MONOTONE;
    } else if (!strcmp(word, "written")) {
        task.want.how |= TT_COND_WRITTEN;
    } else if (!strcmp(word, "later-part")) {
        task.want.is_later_part = true;
    } else if (!strstart(word, "limit=", &limit) ||
               qemu_strtou64(limit, NULL, 10, &task.want.limit) || !task.want.limit) {
        error_setg(errp, "find-how takes changes, monotone, written, later-part or "
                   "limit=N, joined by ':', not '%s'", word);
        return false;
    }
    return true;
}

bool tt_find_option(const char *part, const char *condition, const char *how,
                    Error **errp)
{
    static const TtTravelTask travel_task = { .begin = begin };
    g_auto(GStrv) words = g_strsplit(how ?: "", ":", -1);
    TtCond *cond;
    TtDiag diag;

    task.want.limit = UINT64_MAX;
    if (!condition) {
        error_setg(errp, "find needs a condition: add find-condition=EXPRESSION");
        return false;
    }
    if (!tt_part_parse(part, &task.want.from, &task.want.to)) {
        error_setg(errp, "find takes 'all' or two positions, FROM-TO, not '%s'", part);
        return false;
    }
    for (char **w = words; *w; w++) {
        if (!parse_word(*w, errp)) {
            return false;
        }
    }
    if (tt_cond_parse(condition, &cond, &diag) != TT_OK) {
        error_setg(errp, "find-condition: %s", diag.text);
        return false;
    }
    tt_cond_free(cond);
    task.condition = g_strdup(condition);
    task.want.condition = task.condition;
    tt_travel_set_task(&travel_task);
    return true;
}
