/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds where a condition becomes true: a scan, or a bisection, made of travel's
 * movements.
 *
 *   scan:     --goto--> from --scan, looking at each stop--> to --+--> back, or done
 *             (of memory: part by part, and --goto--> over those that stay as they are)
 *   bisect:   --goto--> a place, look --+-- until one is left ----+
 *                         ^             |
 *                         +-------------+
 *
 * A bisection first looks at from, then at the last checkpoint, which is cheaper than
 * the end. Each goto leaves a checkpoint at the last sync point before its target
 * (tt-travel.c), so that the next one, into either half, executes half as much.
 */
#include "qemu/osdep.h"
#include "find/tt-find.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "debug/tt-edge.h"
#include "replay/tt-replay-log.h"
#include "session/tt-checkpoint.h"
#include "session/tt-session.h"
#include "timeline/tt-bisect.h"
#include "timeline/tt-timeline.h"
#include "travel/tt-cptable.h"
#include "travel/tt-travel.h"
#include "tt-find-int.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"

static struct {
    bool active;
    TtFindWant want;            /* without its text */
    TtCond *cond;
    const TtFindListener *listener;
    void *opaque;
    TtEdge edge;
    uint64_t n_found;
    uint64_t left_out;          /* positions that were not executed */
    uint64_t home;              /* where the VM stood */
    /* a bisection */
    TtBisect bisect;
    GArray *points;             /* of uint64_t: checkpoints in the part */
    uint64_t wanted;            /* looked at, or on the way to it */
    TtFindHit high;             /* what was there */
    uint64_t ended;             /* it ended there, and goes home */
    int reason;
    Error *err;
} find;

/* ---- what is found ---- */

static TtFindHit here(uint64_t pos, uint64_t value)
{
    CPUState *cpu = tt_vcpu();

    return (TtFindHit) { pos, cpu->cc->get_pc(cpu), value, cpu->cpu_index };
}

static void found(const TtFindHit *hit)
{
    find.n_found++;
    find.listener->found(find.opaque, hit);
}

static void tell_way(uint64_t low, uint64_t high)
{
    const TtFindWay way = { low, high };

    if (find.listener->moves) {
        find.listener->moves(find.opaque, &way);
    }
}

/* ---- the end ---- */

static void end(void)
{
    tt_cond_free(find.cond);
    if (find.points) {
        g_array_free(find.points, true);
    }
    find.cond = NULL;
    find.points = NULL;
    find.active = false;
    find.listener->done(find.opaque, find.ended, find.reason, g_steal_pointer(&find.err));
}

static void at_home(void *opaque, uint64_t pos, int reason)
{
    if (find.reason == TT_STOP_TARGET && reason != TT_STOP_TARGET) {
        find.ended = pos;
        find.reason = reason;
    }
    end();
}

static void finish(int reason, Error *err)
{
    find.ended = tt_now.pos;
    find.reason = reason;
    find.err = err;
    if (!find.want.returns || reason == TT_STOP_INTERRUPTED ||
        tt_now.pos == find.home ||
        !tt_travel_goto(find.home, at_home, NULL, find.err ? NULL : &find.err)) {
        end();
    }
}

/* A movement was posted, or cannot be. */
static void post(bool ok, Error *err)
{
    if (!ok) {
        finish(TT_STOP_NONE, err);
    }
}

/* ---- a scan ---- */

/* Has what the condition is the value of been written? */
static bool visit_written(uint64_t pos)
{
    uint64_t value;
    TtStatus s = tt_find_look(find.cond, &value);
    bool is = tt_find_is_written(find.cond, pos, s, value);

    tt_find_follow();
    if (is) {
        const TtFindHit hit = here(pos, value);

        found(&hit);
    }
    return find.n_found < find.want.limit;
}

static bool visit(void *opaque, uint64_t pos, bool is_hit)
{
    bool is_place = tt_cond_kind(find.cond) == TT_COND_AT_PLACES;
    uint64_t value = 0;
    TtStatus s = TT_OK;

    tell_way(pos, find.want.to);
    if (find.want.how & TT_COND_WRITTEN) {
        return visit_written(pos);
    }
    if (is_place && (!tt_find_is_at_place(find.cond) ||
                     (tt_cond_has_at(find.cond) && !is_hit))) {
        if (tt_cond_has_at(find.cond)) {
            return true;
        }
    } else {
        s = tt_find_look(find.cond, &value);
        tt_find_follow();
    }
    if (tt_edge_take(&find.edge, pos, s, value)) {
        const TtFindHit hit = here(pos, value);

        found(&hit);
    }
    return find.n_found < find.want.limit;
}

/* All stops are out. @reason: why. */
static void end_scan(int reason)
{
    const char *inexact = tt_find_written_end();
    Error *err = NULL;

    if (inexact) {
        error_setg(&err, "%s", inexact);
    }
    if (!tt_find_clear_stops() && !err) {
        error_setg(&err, "a gdb that connected or disconnected removed the search's "
                   "breakpoints or watchpoints: search again");
    }
    finish(reason == TT_STOP_END ? TT_STOP_TARGET : reason, err);
}

static void go_on(uint64_t pos);

static void scanned(void *opaque, uint64_t pos, int reason)
{
    if (reason == TT_STOP_TARGET && pos < find.want.to && find.n_found < find.want.limit) {
        go_on(pos);
    } else {
        end_scan(reason);
    }
}

static void at_quiet_end(void *opaque, uint64_t pos, int reason)
{
    if (reason != TT_STOP_TARGET) {
        end_scan(reason);
    } else {
        tt_find_set_stops(find.cond);
        go_on(pos);
    }
}

/* Nothing is there up to @until: it is not executed. */
static bool leave_out(uint64_t pos, uint64_t until, Error **errp)
{
    if (!tt_find_clear_stops()) {
        end_scan(TT_STOP_TARGET);
        return true;
    }
    tt_find_written_pause();
    find.left_out += until - pos;
    tell_way(until, find.want.to);
    return tt_travel_goto(until, at_quiet_end, NULL, errp);
}

static void go_on(uint64_t pos)
{
    uint64_t until = pos, end = find.want.to;
    Error *err = NULL;
    bool ok;

    if (tt_cond_kind(find.cond) == TT_COND_OF_MEMORY && pos < end) {
        if (!visit(NULL, pos, false)) {
            end_scan(TT_STOP_TARGET);
            return;
        }
        until = tt_find_quiet_until(find.cond, &find.edge, find.want.how & TT_COND_WRITTEN,
                                    pos, find.want.to, &end);
    }
    ok = until > pos ? leave_out(pos, until, &err) :
        tt_travel_scan(end, tt_cond_kind(find.cond) == TT_COND_OF_REGISTERS, visit, scanned,
                       NULL, &err);
    if (!ok) {
        tt_find_clear_stops();
        tt_find_written_end();
        finish(TT_STOP_NONE, err);
    }
}

static void at_from(void *opaque, uint64_t pos, int reason)
{
    if (reason != TT_STOP_TARGET) {
        finish(reason, NULL);
        return;
    }
    tt_find_set_stops(find.cond);
    tt_find_written_begin();
    go_on(pos);
}

uint64_t tt_find_left_out(void)
{
    return find.left_out;
}

/* ---- a bisection ---- */

static bool is_true_here(TtFindHit *hit)
{
    uint64_t value;
    bool is_true = tt_find_look(find.cond, &value) == TT_OK && value;

    *hit = here(tt_now.pos, value);
    return is_true;
}

static void look_at(uint64_t pos, TtTravelDone *then)
{
    Error *err = NULL;
    bool ok;

    find.wanted = pos;
    ok = tt_travel_goto(pos, then, NULL, &err);
    post(ok, err);
}

static void halved(void *opaque, uint64_t pos, int reason);

static void halve(void)
{
    uint64_t next;

    tell_way(find.bisect.low, find.bisect.high);
    if (tt_bisect_next(&find.bisect, &next)) {
        look_at(next, halved);
    } else {
        found(&find.high);
        finish(TT_STOP_TARGET, NULL);
    }
}

static void halved(void *opaque, uint64_t pos, int reason)
{
    TtFindHit hit;
    bool is_true;

    if (reason != TT_STOP_TARGET) {
        finish(reason, NULL);
        return;
    }
    is_true = is_true_here(&hit);
    if (is_true && pos < find.bisect.high) {
        find.high = hit;
    }
    tt_bisect_take(&find.bisect, find.wanted, pos, is_true);
    halve();
}

/* Between @low, where it is false, and here, where it is true. */
static void begin_halving(uint64_t low, const TtFindHit *hit)
{
    find.high = *hit;
    tt_bisect_begin(&find.bisect, low, hit->pos, (const uint64_t *)find.points->data,
                    find.points->len);
    halve();
}

static void looked_at_end(void *opaque, uint64_t pos, int reason)
{
    uint64_t low = find.want.from;
    TtFindHit hit;

    if (reason != TT_STOP_TARGET && reason != TT_STOP_END) {
        finish(reason, NULL);
    } else if (!is_true_here(&hit) || pos <= low) {
        finish(TT_STOP_TARGET, NULL);
    } else {
        /* that checkpoint was looked at, if there is one */
        if (find.points->len) {
            low = MAX(low, g_array_index(find.points, uint64_t, find.points->len - 1));
        }
        begin_halving(low, &hit);
    }
}

static void looked_at_last_point(void *opaque, uint64_t pos, int reason)
{
    TtFindHit hit;

    if (reason != TT_STOP_TARGET) {
        finish(reason, NULL);
    } else if (is_true_here(&hit)) {
        begin_halving(find.want.from, &hit);
    } else {
        look_at(find.want.to, looked_at_end);
    }
}

static void looked_at_from(void *opaque, uint64_t pos, int reason)
{
    TtFindHit hit;

    if (reason != TT_STOP_TARGET) {
        finish(reason, NULL);
    } else if (is_true_here(&hit)) {
        if (!find.want.is_later_part) {
            found(&hit);
        }
        finish(TT_STOP_TARGET, NULL);
    } else {
        find.want.from = pos;           /* there it is false */
        while (find.points->len &&
               g_array_index(find.points, uint64_t, 0) <= pos) {
            g_array_remove_index(find.points, 0);
        }
        if (find.points->len) {
            look_at(g_array_index(find.points, uint64_t, find.points->len - 1),
                    looked_at_last_point);
        } else {
            look_at(find.want.to, looked_at_end);
        }
    }
}

static void note_points(void)
{
    g_autoptr(GArray) all = tt_checkpoints_list();

    find.points = g_array_new(false, false, sizeof(uint64_t));
    for (unsigned i = 0; i < all->len; i++) {
        uint64_t pos = g_array_index(all, TtCheckpointDesc, i).pos;

        if (pos > find.want.from && pos < find.want.to) {
            g_array_append_val(find.points, pos);
        }
    }
}

/* ---- the start ---- */

static bool is_part(TtFindWant *w, Error **errp)
{
    uint64_t first = tt_replay_first(), last = tt_replay_end();

    w->from = MAX(w->from, first);
    w->to = MIN(w->to, last);
    if (w->from > w->to || (w->from == w->to && first != last)) {
        error_setg(errp, "nothing to search: give a part with its beginning before its "
                   "end, within positions %" PRIu64 " to %" PRIu64, first, last);
        return false;
    }
    return true;
}

static bool understand(const TtFindWant *want, TtFindWant *w, TtCond **cond,
                       Error **errp)
{
    TtDiag diag;

    *w = *want;
    if (tt_cond_parse(want->condition, cond, &diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    if (!is_part(w, errp)) {
        return false;
    }
    if (tt_cond_check(*cond, w->how, w->from, w->to, &diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    return true;
}

static bool may_begin(const TtFindWant *want, TtFindWant *w, TtCond **cond, Error **errp)
{
    if (find.active) {
        error_setg(errp, "another search is under way: " TT_WAIT_OR_INTERRUPT);
        return false;
    }
    return tt_travel_is_possible(errp) && understand(want, w, cond, errp);
}

bool tt_find_check(const TtFindWant *want, Error **errp)
{
    TtCond *cond = NULL;
    TtFindWant w;
    bool ok = may_begin(want, &w, &cond, errp);

    tt_cond_free(cond);
    return ok;
}

bool tt_find_begin(const TtFindWant *want, const TtFindListener *listener,
                   void *opaque, Error **errp)
{
    TtCond *cond = NULL;
    TtFindWant w;
    bool ok, is_monotone;

    if (!may_begin(want, &w, &cond, errp)) {
        tt_cond_free(cond);
        return false;
    }
    is_monotone = w.how & TT_COND_MONOTONE;
    ok = tt_travel_goto(w.from, is_monotone ? looked_at_from : at_from, NULL, errp);
    if (!ok) {
        tt_cond_free(cond);
        return false;
    }
    w.condition = NULL;
    find.active = true;
    find.want = w;
    find.cond = cond;
    find.listener = listener;
    find.opaque = opaque;
    find.n_found = find.left_out = 0;
    find.home = tt_now.pos;
    find.edge = (TtEdge) {
        .rule = tt_edge_rule(cond, w.how & TT_COND_CHANGES),
        .from_the_start = !w.is_later_part,
    };
    if (is_monotone) {
        note_points();
    }
    return true;
}
