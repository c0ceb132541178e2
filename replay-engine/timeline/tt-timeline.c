/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Timeline: the plan of a movement as a state machine.
 *
 *           tt_timeline_goto                  tt_timeline_reverse_continue
 *                 |                          tt_timeline_survey: survey()
 *                 |                                       |
 *                go()                               scan_older()  <---------+
 *      +----------+----------+                +-----------+                 |
 *      |          |          | nothing to     |           |                 |
 *      |          |          | search: go()   v           |                 |
 *      |          |          |<----------- SCAN_RESTORE   | VM stands at    |
 *      v          |          |                |           | the checkpoint  |
 *  GO_RESTORE     |          |                | scan()    |                 |
 *      |          |          |                v           |                 |
 *      | run()    |          |<------------- SCAN         |                 |
 *      v          v          |   a hit: go()  |           |                 |
 *    GO_RUN <-----+          |                +-----------+-----------------+
 *      |                     |                  no hit: the interval before
 *      | arrive()            |
 *      v                     v
 *    DONE <------------------+   stop(): diverged, interrupted or ended, from
 *                                every state, where the VM stands
 *
 * Each state hands out one kind of step; on_outcome[][] says what an outcome
 * does in each state, and may_follow[] which states may come after which. A
 * search scans interval after interval, newest first, and then goes: to the
 * last hit (pass 2), or to the start. Going there is the same as tt_timeline_
 * goto but for the reason it ends with.
 *
 * Invariants, cited below:
 * T1  Checkpoints are sorted by position; ids and positions are unique.
 * T2  The checkpoint that a RESTORE step names exists.
 * T3  While searching, everything after scan_to (and before limit) has been
 *     searched or may be skipped, and holds no hit.
 * T4  A movement changes state only in set_step.
 */
#include "tt-timeline-int.h"

typedef enum Outcome {
    OUTCOME_OK,                 /* the VM stands where the step wanted it */
    OUTCOME_END,                /* history ended at or before that */
    OUTCOME_DIVERGED,
    OUTCOME_INTERRUPTED,
    N_OUTCOMES,
} Outcome;

typedef void (*Handler)(TtTimeline *t);

/* ---- the state machine ---- */

#define BIT(state) (1u << (state))

static const uint8_t may_follow[N_STATES] = {
    [STATE_IDLE] = BIT(STATE_SCAN_RESTORE) | BIT(STATE_GO_RESTORE) |
                   BIT(STATE_GO_RUN) | BIT(STATE_DONE),
    /* itself: the checkpoint was removed, another one takes its place */
    [STATE_SCAN_RESTORE] = BIT(STATE_SCAN_RESTORE) | BIT(STATE_SCAN) |
                           BIT(STATE_GO_RESTORE) | BIT(STATE_DONE),
    [STATE_SCAN] = BIT(STATE_SCAN_RESTORE) | BIT(STATE_GO_RESTORE) |
                   BIT(STATE_GO_RUN) | BIT(STATE_DONE),
    [STATE_GO_RESTORE] = BIT(STATE_GO_RESTORE) | BIT(STATE_GO_RUN) |
                         BIT(STATE_DONE),
    [STATE_GO_RUN] = BIT(STATE_DONE),
    [STATE_DONE] = BIT(STATE_SCAN_RESTORE) | BIT(STATE_GO_RESTORE) |
                   BIT(STATE_GO_RUN) | BIT(STATE_DONE),
};

static const TtStepKind kind_of[N_STATES] = {
    [STATE_IDLE] = TT_STEP_DONE,
    [STATE_SCAN_RESTORE] = TT_STEP_RESTORE,
    [STATE_SCAN] = TT_STEP_SCAN,
    [STATE_GO_RESTORE] = TT_STEP_RESTORE,
    [STATE_GO_RUN] = TT_STEP_RUN,
    [STATE_DONE] = TT_STEP_DONE,
};

static void assert_state(const TtTimeline *t)
{
    g_assert(t->step.kind == kind_of[t->state]);
    if (t->step.kind == TT_STEP_RESTORE) {
        const Checkpoint *cp = tt_timeline_cp_find(t, t->step.pos);

        g_assert(cp && cp->pos == t->step.pos &&
                 cp->id == t->step.checkpoint);                 /* T2 */
    }
    if (t->state == STATE_SCAN) {
        g_assert(t->scan_from < t->scan_to && t->scan_to <= t->limit);
    }
}

/* The one setter (T4). */
static void set_step(TtTimeline *t, State state, TtCheckpointId checkpoint,
                     uint64_t pos, TtStopReason reason)
{
    g_assert(may_follow[t->state] & BIT(state));
    t->state = state;
    t->step = (TtStep) {
        .kind = kind_of[state],
        .checkpoint = checkpoint,
        .pos = pos,
        .reason = reason,
    };
    assert_state(t);
}

static void stop(TtTimeline *t, TtStopReason why)
{
    set_step(t, STATE_DONE, 0, t->standing, why);
}

static void run(TtTimeline *t)
{
    if (t->standing >= t->target) {
        stop(t, t->arrive);
    } else {
        set_step(t, STATE_GO_RUN, 0, t->target, TT_STOP_NONE);
    }
}

/*
 * Goes to @target, to end there with @arrive. A position before the first checkpoint
 * cannot be reached: such a movement ends at that checkpoint.
 */
static void go(TtTimeline *t, uint64_t target, TtStopReason arrive)
{
    const Checkpoint *cp = tt_timeline_cp_find(t, target);

    t->target = target;
    t->arrive = arrive;
    if (t->standing <= target && (!cp || cp->pos <= t->standing)) {
        run(t);
        return;
    }
    if (!cp) {
        if (!t->cps->len || tt_timeline_cp_at(t, 0)->pos >= t->standing) {
            stop(t, TT_STOP_START);
            return;
        }
        cp = tt_timeline_cp_at(t, 0);
        t->target = cp->pos;
        t->arrive = TT_STOP_START;
    }
    set_step(t, STATE_GO_RESTORE, cp->id, cp->pos, TT_STOP_NONE);
}

static bool may_hold(const TtTimeline *t, uint64_t from, uint64_t to)
{
    return !t->may_hit || t->may_hit(t->may_hit_opaque, from, to);
}

/* Where the interval ends that begins at the checkpoint at or before @pos. */
static uint64_t interval_end(const TtTimeline *t, uint64_t pos)
{
    size_t upper = tt_timeline_cp_upper(t, pos);

    return upper < t->cps->len
           ? MIN(tt_timeline_cp_at(t, upper)->pos, t->limit) : t->limit;
}

/* Takes up the oldest intervals in a row, from @from on, that may all hold a hit;
 * goes home when none is left. */
static void survey(TtTimeline *t, uint64_t from)
{
    const Checkpoint *cp;

    for (;; from = interval_end(t, from)) {
        cp = tt_timeline_cp_find(t, from);
        if (!cp || from >= t->limit) {
            go(t, t->home, TT_STOP_TARGET);
            return;
        }
        if (may_hold(t, cp->pos, interval_end(t, from))) {
            break;
        }
    }
    t->scan_from = cp->pos;
    do {
        t->scan_to = from = interval_end(t, from);
    } while (from < t->limit && may_hold(t, from, interval_end(t, from)));
    t->has_hit = false;
    set_step(t, STATE_SCAN_RESTORE, cp->id, cp->pos, TT_STOP_NONE);
}

/* Takes up the newest interval that ends at or before @to and may hold a hit;
 * goes to the start when none is left. */
static void scan_older(TtTimeline *t, uint64_t to)
{
    const Checkpoint *cp = NULL;

    for (; to > t->start; to = cp->pos) {
        cp = tt_timeline_cp_find(t, to - 1);
        if (!cp) {
            break;
        }
        if (may_hold(t, cp->pos, to)) {
            t->scan_from = cp->pos;
            t->scan_to = to;                                    /* T3 */
            t->has_hit = false;
            set_step(t, STATE_SCAN_RESTORE, cp->id, cp->pos, TT_STOP_NONE);
            return;
        }
    }
    go(t, t->start, TT_STOP_START);
}

/* ---- what outcomes do ---- */

static void on_scan_restored(TtTimeline *t)
{
    set_step(t, STATE_SCAN, 0, t->scan_to, TT_STOP_NONE);
}

static void on_scanned(TtTimeline *t)
{
    if (t->survey) {
        survey(t, t->scan_to);
    } else if (t->has_hit) {
        go(t, t->hit, TT_STOP_HIT);
    } else {
        scan_older(t, t->scan_from);
    }
}

/* A survey has enough, or the log ends before that. */
static void on_scan_ended(TtTimeline *t)
{
    if (t->survey) {
        go(t, t->home, TT_STOP_TARGET);
    } else {
        on_scanned(t);
    }
}

static void on_end(TtTimeline *t)
{
    stop(t, t->standing >= t->target ? t->arrive : TT_STOP_END);
}

static void on_diverged(TtTimeline *t)
{
    stop(t, TT_STOP_DIVERGED);
}

static void on_interrupted(TtTimeline *t)
{
    stop(t, TT_STOP_INTERRUPTED);
}

static const Handler on_outcome[N_STATES][N_OUTCOMES] = {
    /* The end may be reported with any position that is reached: a checkpoint
     * may lie there, and where a search began, too. */
    [STATE_SCAN_RESTORE] = {
        on_scan_restored, on_scan_restored, on_diverged, on_interrupted,
    },
    [STATE_SCAN] = { on_scanned, on_scan_ended, on_diverged, on_interrupted },
    [STATE_GO_RESTORE] = { run, run, on_diverged, on_interrupted },
    [STATE_GO_RUN] = { run, on_end, on_diverged, on_interrupted },
};

static Outcome outcome_of(TtStopReason why)
{
    switch (why) {
    case TT_STOP_NONE:
    case TT_STOP_TARGET:
        return OUTCOME_OK;
    case TT_STOP_END:
        return OUTCOME_END;
    case TT_STOP_DIVERGED:
    case TT_STOP_DAMAGED:
        return OUTCOME_DIVERGED;
    case TT_STOP_INTERRUPTED:
        return OUTCOME_INTERRUPTED;
    case TT_STOP_HIT:
    case TT_STOP_START:
        break;
    }
    g_assert_not_reached();
}

/* ---- movements ---- */

static void begin(TtTimeline *t, uint64_t now)
{
    g_assert(!tt_timeline_is_moving(t));
    t->standing = now;
    t->ran = 0;
    t->survey = false;
    t->far = MAX(t->far, now);
}

void tt_timeline_goto(TtTimeline *t, uint64_t now, uint64_t target)
{
    begin(t, now);
    go(t, target, TT_STOP_TARGET);
}

void tt_timeline_goto_lost(TtTimeline *t, uint64_t target)
{
    begin(t, t->far);
    tt_timeline_lost(t);
    go(t, target, TT_STOP_TARGET);
}

void tt_timeline_reverse_continue(TtTimeline *t, uint64_t now, uint64_t start)
{
    begin(t, now);
    t->limit = now;
    t->start = start;
    if (now <= start) {
        stop(t, TT_STOP_START);
    } else {
        scan_older(t, now);
    }
}

void tt_timeline_survey(TtTimeline *t, uint64_t now, uint64_t from,
                        uint64_t to)
{
    begin(t, now);
    t->survey = true;
    t->home = now;
    t->start = from;
    t->limit = to;
    survey(t, from);
}

void tt_timeline_set_filter(TtTimeline *t, TtMayHit may_hit, void *opaque)
{
    t->may_hit = may_hit;
    t->may_hit_opaque = opaque;
}

TtStep tt_timeline_step(TtTimeline *t)
{
    assert_state(t);
    return t->step;
}

void tt_timeline_hit(TtTimeline *t, uint64_t pos)
{
    if (t->state == STATE_SCAN && pos < t->limit && pos >= t->start &&
        pos >= (t->has_hit ? t->hit : t->scan_from)) {
        t->has_hit = true;
        t->hit = pos;
    }
}

bool tt_timeline_goes_back_to(const TtTimeline *t, uint64_t *target)
{
    *target = t->target;
    return t->state == STATE_GO_RESTORE && t->target < t->standing;
}

void tt_timeline_is_there(TtTimeline *t)
{
    g_assert(t->state == STATE_GO_RESTORE);
    t->standing = t->target;
    stop(t, t->arrive);
}

void tt_timeline_done(TtTimeline *t, uint64_t pos, TtStopReason why)
{
    Outcome outcome = outcome_of(why);

    if (!tt_timeline_is_moving(t)) {
        return;
    }
    assert_state(t);
    if (t->step.kind == TT_STEP_RESTORE) {
        g_assert(outcome > OUTCOME_END || pos == t->step.pos);
    } else {
        g_assert(outcome != OUTCOME_OK || pos >= t->step.pos);
        t->ran += pos > t->standing ? pos - t->standing : 0;
    }
    t->standing = pos;
    t->far = MAX(t->far, pos);
    on_outcome[t->state][outcome](t);
}

bool tt_timeline_is_moving(const TtTimeline *t)
{
    return t->state != STATE_IDLE && t->state != STATE_DONE;
}

void tt_timeline_progress(const TtTimeline *t, uint64_t *done,
                          uint64_t *total)
{
    uint64_t left = 0;

    switch (t->state) {
    case STATE_SCAN_RESTORE:
    case STATE_SCAN:
        left = (t->survey ? t->limit - t->scan_from :
                t->scan_to - MIN(t->scan_from, t->start));
        break;
    case STATE_GO_RESTORE:
        left = t->target - t->step.pos;
        break;
    case STATE_GO_RUN:
        left = t->target - t->standing;
        break;
    case STATE_IDLE:
    case STATE_DONE:
    case N_STATES:
        break;
    }
    *done = t->ran;
    *total = t->ran + left;
}

/* Replaces a RESTORE step whose checkpoint has gone (T2). */
static void plan_again(TtTimeline *t)
{
    if (t->state == STATE_SCAN_RESTORE && t->survey) {
        survey(t, t->scan_from);
    } else if (t->state == STATE_SCAN_RESTORE) {
        scan_older(t, t->scan_to);
    } else {
        go(t, t->target, t->arrive);
    }
}

void tt_timeline_remove(TtTimeline *t, TtCheckpointId id)
{
    const uint64_t *pos = g_hash_table_lookup(t->pos_of_id,
                                              GUINT_TO_POINTER(id));
    size_t index;

    g_assert(pos);
    index = tt_timeline_cp_upper(t, *pos) - 1;
    g_assert(tt_timeline_cp_at(t, index)->id == id);            /* T1 */
    g_array_remove_index(t->cps, index);
    g_hash_table_remove(t->pos_of_id, GUINT_TO_POINTER(id));
    if (t->step.kind == TT_STEP_RESTORE && t->step.checkpoint == id) {
        plan_again(t);
    }
}

void tt_timeline_lost(TtTimeline *t)
{
    t->standing = UINT64_MAX;           /* from there nothing is ahead */
}

/* ---- life ---- */

TtTimeline *tt_timeline_new(void)
{
    TtTimeline *t = g_new0(TtTimeline, 1);

    t->cps = g_array_new(false, false, sizeof(Checkpoint));
    t->pos_of_id = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    t->step.kind = TT_STEP_DONE;
    return t;
}

void tt_timeline_free(TtTimeline *t)
{
    if (!t) {
        return;
    }
    g_array_free(t->cps, true);
    g_hash_table_destroy(t->pos_of_id);
    g_free(t);
}
