/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * -tt replay,verify=...: re-executes the intervals between stored checkpoints and
 * compares what comes of each with the checkpoint at its end: RAM page by page,
 * vCPUs, memory map, outputs. Each interval begins with the stored state, so a
 * wrong one does not spoil those after it, and several processes can share a run
 * (`tt verify -j`).
 *
 *   start --goto--> at the checkpoint --run--> at the next --compare, restore--+
 *                         ^                                                    |
 *                         +----------------------------------------------------+
 *
 * A digest that differs on the way does not end the interval, since the checkpoint
 * after it has what the recording had: both sides are named there. Where a page or
 * a register differs, positions in between are visited, halving the distance, for
 * the instruction that wrote what should not be there.
 *
 * Findings go to stdout, a line each, for programs: docs/reference/verify.rst.
 * Context: the vCPU thread, from travel's callbacks.
 */
#include "qemu/osdep.h"
#include "verify/tt-verify.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "replay/tt-replay-exact.h"
#include "replay/tt-replay-log.h"
#include "session/tt-checkpoint.h"
#include "session/tt-session.h"
#include "timeline/tt-timeline.h"
#include "travel/tt-checkpoints.h"
#include "travel/tt-cpadopt.h"
#include "travel/tt-cprestore.h"
#include "travel/tt-cptable.h"
#include "travel/tt-retrace.h"
#include "travel/tt-travel.h"
#include "tt-verify-compare-int.h"
#include "tt-verify-int.h"
#include "tt-verify-say-int.h"
#include "tt-verify-search-int.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "qemu/error-report.h"
#include "system/runstate.h"
#include "system/system.h"

TtVerify tt_verify;

bool tt_verify_is_on(void)
{
    return tt_verify.on;
}

static void wrong(void)
{
    g_autofree char *release = tt_replay_other_release();

    if (release && !tt_verify.is_wrong) {
        tt_verify_say("release replayed=" QEMU_VERSION " text=%s", release);
    }
    tt_verify.is_wrong = true;
}

const TtCheckpointDesc *tt_verify_next_point(void)
{
    return tt_verify.next < tt_verify.points->len ?
        &g_array_index(tt_verify.points, TtCheckpointDesc, tt_verify.next) : NULL;
}

static uint64_t last_equal(void)
{
    return MAX(tt_replay_last_equal(), tt_verify.began);
}

/* ---- on the way ---- */

static void say_place(const char *how, uint64_t after, const char *why)
{
    CPUState *cpu = tt_vcpu();

    tt_verify_say("%s position=%" PRIu64 " pc=0x%" PRIx64 " after=%" PRIu64 " text=%s",
                  how, tt_now.pos, (uint64_t)cpu->cc->get_pc(cpu), after, why);
    tt_verify_say_state();
    tt_verify_say_events();
}

/*
 * The recorded state is known at the checkpoint that ends the interval: the replay goes
 * on to there, as long as the events of the log fit.
 */
static bool goes_on(const char *why)
{
    if (!tt_verify.on || !tt_verify.points || !tt_verify_next_point()) {
        return false;
    }
    if (!tt_verify.differed && !tt_verify.search) {
        tt_verify.differed = true;
        tt_verify.last_equal = last_equal();
        wrong();
        say_place(tt_stop_name(TT_STOP_DIVERGED), tt_verify.last_equal, why);
    }
    return true;
}

/* ---- from interval to interval ---- */

static void skip_interval(void);
static void in_trouble(int reason);
static void reached(void *opaque, uint64_t pos, int reason);

static void leave(void)
{
    int code = tt_verify.is_wrong ? 3 : tt_verify.is_unusable ? 1 : 0;

    tt_verify_say("end code=%d whole=%d", code, !tt_verify.is_unusable);
    qemu_system_shutdown_request_with_code(SHUTDOWN_CAUSE_HOST_QMP_QUIT, code);
}

void tt_verify_post(bool ok, Error *err)
{
    if (!ok) {
        tt_verify_say("failed text=%s", error_get_pretty(err));
        error_free(err);
        tt_verify.is_unusable = true;
        leave();
    }
}

/* After all that there is to say of it. */
void tt_verify_say_interval(uint64_t to, const char *how)
{
    tt_verify_say("interval from=%" PRIu64 " to=%" PRIu64 " how=%s",
                  tt_verify.began, to, how);
}

static void run_on(void)
{
    const TtCheckpointDesc *p = tt_verify_next_point();
    Error *err = NULL;
    bool ok;

    ok = tt_travel_run(p ? p->pos : INT64_MAX, reached, NULL, &err);
    tt_verify_post(ok, err);
}

void tt_verify_next_interval(void)
{
    bool was_last = !tt_verify_next_point();

    tt_verify.differed = false;
    tt_verify.next++;
    if (was_last || (!tt_verify_next_point() && tt_verify.to != UINT64_MAX)) {
        leave();
    } else if (tt_replayer.diverged) {           /* the log after it cannot be read */
        tt_verify.began = tt_now.pos;
        in_trouble(tt_replay_failure());
    } else if (tt_checkpoints_is_lost()) {
        tt_verify.began = tt_now.pos;
        skip_interval();
    } else {
        tt_verify.began = tt_now.pos;
        run_on();
    }
}

void tt_verify_interrupted(uint64_t pos)
{
    const TtCheckpointDesc *p = tt_verify_next_point();

    tt_verify_say("interrupted position=%" PRIu64, pos);
    if (tt_verify.differed) {
        tt_verify_say_interval(p ? p->pos : tt_replay_end(), tt_stop_name(TT_STOP_DIVERGED));
    }
    tt_verify.is_unusable = true;
    leave();
}

/* ---- the end of an interval ---- */

static void say_unusable(const TtCheckpointDesc *p)
{
    tt_verify_say("unusable id=%u position=%" PRIu64, p->id, p->pos);
    tt_verify.is_unusable = true;
}

static void say_pages(void)
{
    for (unsigned i = 0; i < MIN(tt_verify.found.n_pages, TT_VERIFY_PAGES); i++) {
        tt_verify_say_page(&tt_verify.found.pages[i]);
    }
    if (tt_verify.found.n_pages) {
        tt_verify_say("pages count=%" PRIu64, tt_verify.found.n_pages);
    }
}

/* Nobody knows whether all is right here: the interval goes on to the next one. */
static void pass_by(const TtCheckpointDesc *p)
{
    bool is_last = tt_verify.next + 1 == tt_verify.points->len &&
        tt_verify.to != UINT64_MAX;

    say_unusable(p);
    if (is_last || tt_checkpoints_is_lost()) {
        tt_verify_say_interval(p->pos, tt_stop_name(tt_verify.differed ?
                                                    TT_STOP_DIVERGED :
                                                    TT_STOP_DAMAGED));
        tt_verify_next_interval();
    } else {
        tt_verify.next++;
        run_on();
    }
}

static void at_checkpoint(const TtCheckpointDesc *p)
{
    bool same;

    if (!tt_verify.differed) {
        tt_verify.last_equal = last_equal();
    }
    if (!tt_verify_compare(p, &tt_verify.found, &same)) {
        pass_by(p);
        return;
    }
    say_pages();
    if (!same) {
        tt_verify_say_events();
        wrong();
    } else if (tt_verify.differed) {
        tt_verify_say("again position=%" PRIu64, p->pos);
    }
    tt_verify.how = tt_verify.differed ? tt_stop_name(TT_STOP_DIVERGED) :
        same ? "equal" : "differs";
    if (tt_verify.found.n_pages && tt_verify.began < p->pos) {
        tt_verify_search(TT_VERIFY_OF_PAGE);
    } else if (!same && tt_verify.found.reg.name && tt_verify.last_equal < p->pos) {
        tt_verify_search(TT_VERIFY_OF_REGISTER);
    } else {
        tt_verify_say_interval(p->pos, tt_verify.how);
        tt_verify_next_interval();
    }
}

/*
 * The VM becomes that of the next checkpoint from which the log can be read. False:
 * there is none. The part before it is not verified.
 */
static bool begin_anew(void)
{
    const TtCheckpointDesc *p;

    while ((p = tt_verify_next_point())) {
        if (!tt_verify_restore(p)) {
            say_unusable(p);
        } else if (!tt_replayer.diverged) {
            return true;
        }
        tt_verify.began = p->pos;
        tt_verify.next++;
        p = tt_verify_next_point();
        if (p || tt_verify.to == UINT64_MAX) {
            tt_verify_say_interval(p ? p->pos : tt_replay_end(),
                                   tt_stop_name(TT_STOP_DAMAGED));
        }
        tt_verify.is_unusable = true;
    }
    return false;
}

void tt_verify_go_on_behind(void)
{
    if (begin_anew()) {
        tt_verify_next_interval();
    } else {
        leave();
    }
}

/* There is nothing to begin it with. */
static void skip_interval(void)
{
    const TtCheckpointDesc *p = tt_verify_next_point();

    tt_verify_say_interval(p ? p->pos : tt_replay_end(), tt_stop_name(TT_STOP_DAMAGED));
    tt_verify.is_unusable = true;
    tt_verify_go_on_behind();
}

/* The replay of the interval went wrong on its way. */
static void in_trouble(int reason)
{
    const TtCheckpointDesc *p = tt_verify_next_point();
    const char *why = tt_replayer.divergence ?: "for no reason given";

    if (reason == TT_STOP_DAMAGED) {
        tt_verify_say("%s position=%" PRIu64 " text=%s", tt_stop_name(reason), tt_now.pos,
                      why);
    } else {
        say_place(tt_verify.differed ? "further" : tt_stop_name(reason), last_equal(),
                  why);
    }
    tt_verify_say_interval(p ? p->pos : tt_replay_end(),
                           tt_stop_name(tt_verify.differed ? TT_STOP_DIVERGED : reason));
    if (reason == TT_STOP_DAMAGED) {
        tt_verify.is_unusable = true;
    } else {
        wrong();
    }
    tt_verify_go_on_behind();
}

static void reached(void *opaque, uint64_t pos, int reason)
{
    const TtCheckpointDesc *p = tt_verify_next_point();

    if (reason == TT_STOP_DIVERGED || reason == TT_STOP_DAMAGED) {
        in_trouble(reason);
    } else if (reason == TT_STOP_INTERRUPTED) {
        tt_verify_interrupted(pos);
    } else if (p && pos == p->pos) {
        at_checkpoint(p);
    } else if (p) {
        tt_verify_say("missed id=%u position=%" PRIu64 " end=%" PRIu64, p->id, p->pos,
                      pos);
        tt_verify_say_interval(p->pos, tt_stop_name(TT_STOP_DIVERGED));
        wrong();
        tt_verify.is_unusable = true;
        leave();
    } else {
        tt_verify_say_interval(pos, tt_verify.differed ?
                               tt_stop_name(TT_STOP_DIVERGED) : "equal");
        tt_verify_next_interval();
    }
}

/* ---- start ---- */

/*
 * Is there a stored checkpoint at @pos, or the start of the run, or @or_end its end? Of
 * one that is being recorded the end moves. @before, @behind: the nearest ones on either
 * side.
 */
static bool is_at_point(GArray *all, uint64_t pos, bool or_end, uint64_t *before,
                        uint64_t *behind)
{
    *before = tt_replay_first();
    *behind = tt_replay_end();
    for (unsigned i = 0; i < all->len; i++) {
        const TtCheckpointDesc *p = &g_array_index(all, TtCheckpointDesc, i);

        if (p->stored && p->pos <= pos) {
            *before = MAX(*before, p->pos);
        } else if (p->stored) {
            *behind = MIN(*behind, p->pos);
        }
    }
    return *before == pos ||
        (or_end && (*behind == pos || (tt_replayer.growing && pos < *behind)));
}

/* Between checkpoints there is nothing to compare with. */
static bool may_verify(GArray *all, uint64_t pos, bool or_end, Error **errp)
{
    uint64_t before, behind;

    if (is_at_point(all, pos, or_end, &before, &behind)) {
        return true;
    }
    error_setg(errp, "verify takes the start or end of the run, or the position "
               "of a stored checkpoint, not %" PRIu64 ": the nearest one before "
               "is %" PRIu64 ", the nearest one after is %" PRIu64,
               pos, before, behind);
    return false;
}

static bool is_part(GArray *all, Error **errp)
{
    if (!may_verify(all, tt_verify.from, false, errp) ||
        (tt_verify.to != UINT64_MAX && !may_verify(all, tt_verify.to, true, errp))) {
        return false;
    }
    if (tt_verify.to <= tt_verify.from) {
        error_setg(errp, "the run begins at position %" PRIu64 ", after the part "
                   "to be verified", tt_verify.from);
    }
    return tt_verify.to > tt_verify.from;
}

/* Checkpoints of the part that is to be verified, in order. */
static void choose_points(GArray *all)
{
    tt_verify.points = g_array_new(false, false, sizeof(TtCheckpointDesc));
    for (unsigned i = 0; i < all->len; i++) {
        TtCheckpointDesc *p = &g_array_index(all, TtCheckpointDesc, i);

        if (p->stored && p->pos >= tt_verify.from && p->pos <= tt_verify.to) {
            g_array_append_val(tt_verify.points, *p);
        }
    }
}

/* The start is where it is, and another checkpoint was restored: if it was not, what
 * lies before it was re-executed, from the last one that could be. */
static void at_first(const TtCheckpointDesc *p)
{
    if (tt_verify.began != p->pos) {
        pass_by(p);
        return;
    }
    if (!p->pos && !tt_checkpoints_compare_all(p->id, tt_verify_note_page,
                                               &tt_verify.found)) {
        say_unusable(p);
    } else if (!p->pos && tt_verify.found.n_pages) {
        say_pages();
        tt_verify_say_interval(0, "differs");
        wrong();
    }
    tt_verify_next_interval();
}

static void at_start(void *opaque, uint64_t pos, int reason)
{
    const TtCheckpointDesc *p = tt_verify_next_point();

    tt_verify.began = tt_checkpoints_restored_at();
    if (reason == TT_STOP_INTERRUPTED) {
        tt_verify_interrupted(pos);
    } else if (reason != TT_STOP_TARGET) {
        in_trouble(reason);
    } else if (p && p->pos == pos) {
        at_first(p);
    } else {
        tt_verify.began = pos;
        run_on();
    }
}

static void begin(void)
{
    g_autoptr(GArray) all = tt_checkpoints_list();
    Error *err = NULL;
    bool ok;

    tt_verify.from = MAX(tt_verify.from, tt_replay_first());
    if (!is_part(all, &err)) {
        tt_verify_post(false, err);
        return;
    }
    if (tt_verify.to >= tt_replay_end()) {
        tt_verify.to = UINT64_MAX;             /* there need be no checkpoint */
    }
    choose_points(all);
    tt_verify.began = tt_now.pos;
    ok = tt_travel_goto(tt_verify.from, at_start, NULL, &err);
    tt_verify_post(ok, err);
}

/* ---- the option ---- */

bool tt_verify_option(const char *text)
{
    static const TtTravelTask task = {
        .begin = begin, .goes_on = goes_on,
        .is_restoring = tt_verify_is_restoring,
    };

    tt_travel_set_task(&task);
    tt_checkpoints_start_is_verified = true;
    tt_verify.on = true;
    return tt_part_parse(text, &tt_verify.from, &tt_verify.to);
}
