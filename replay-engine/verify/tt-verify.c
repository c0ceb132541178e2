/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * -tt replay,verify=...: re-executes the intervals between stored checkpoints and
 * compares what comes of each with the checkpoint at its end: RAM page by page,
 * vCPUs, memory map, outputs. Each interval begins with the stored state, so a
 * wrong one does not spoil those behind it, and several processes can share a run
 * (`tt verify -j`).
 *
 *   start --goto--> at the checkpoint --run--> at the next --compare, restore--+
 *                         ^                                                    |
 *                         +----------------------------------------------------+
 *
 * A digest that differs on the way does not end the interval, since the checkpoint
 * behind it has what the recording had: both sides are named there. Where a page or
 * a register differs, positions in between are visited, halving the distance, for
 * the instruction that wrote what should not be there.
 *
 * What was found goes to stdout, a line each, for programs: docs/reference/
 * options-and-commands.rst. Context: the vCPU thread, from travel's callbacks.
 */
#include "qemu/osdep.h"
#include "verify/tt-verify.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "checkpoint/tt-checkpoint.h"
#include "hw-tt/memory/tt-memory.h"
#include "replay/tt-replay.h"
#include "session/tt-session.h"
#include "timeline/tt-timeline.h"
#include "travel/tt-checkpoints.h"
#include "travel/tt-retrace.h"
#include "travel/tt-search.h"
#include "travel/tt-travel.h"
#include "tt-verify-int.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "qemu/error-report.h"
#include "system/runstate.h"
#include "system/system.h"

#define PAGES_SHOWN 8           /* that differ, of one interval */

typedef enum Search { NO_SEARCH, OF_PAGE, OF_REGISTER } Search;

static struct {
    bool on;
    uint64_t from, to;          /* positions; to UINT64_MAX: the end */
    GArray *points;             /* of TtCheckpointDesc: stored, in this part of the run */
    unsigned next;              /* with it the present interval ends */
    uint64_t began;
    bool is_wrong, is_unusable; /* any so far */
    bool is_restoring;
    /* the present interval */
    const char *how;            /* it ended */
    bool differed;              /* a digest did, on the way */
    uint64_t last_equal;        /* position of the last that did not */
    uint64_t n_pages;
    TtDiffering pages[PAGES_SHOWN];
    TtVerifyReg reg;            /* a register that differs at its end */
    /* the search for a write: not at low, at high */
    Search search;
    uint64_t low, high;
} vf;

#define say tt_verify_say

/* ---- the option ---- */

bool tt_verify_option(const char *text)
{
    vf.on = true;
    return tt_part_parse(text, &vf.from, &vf.to);
}

bool tt_verify_is_on(void)
{
    return vf.on;
}

bool tt_verify_is_restoring(void)
{
    return vf.is_restoring;
}

static void wrong(void)
{
    g_autofree char *release = tt_replay_other_release();

    if (release && !vf.is_wrong) {
        say("release replayed=" QEMU_VERSION " text=%s", release);
    }
    vf.is_wrong = true;
}

static const TtCheckpointDesc *next_point(void)
{
    return vf.next < vf.points->len ?
        &g_array_index(vf.points, TtCheckpointDesc, vf.next) : NULL;
}

static uint64_t last_equal(void)
{
    return MAX(tt_replay_last_equal(), vf.began);
}

/* ---- on the way ---- */

static void say_place(const char *how, uint64_t after, const char *why)
{
    CPUState *cpu = tt_vcpu();

    say("%s position=%" PRIu64 " pc=0x%" PRIx64 " after=%" PRIu64 " text=%s",
        how, tt_now.pos, (uint64_t)cpu->cc->get_pc(cpu), after, why);
    tt_verify_say_state();
    tt_verify_say_events();
}

/*
 * What the recording had is known at the checkpoint that ends the interval: the
 * replay goes on to there, as long as the events of the log fit.
 */
bool tt_verify_goes_on(const char *why)
{
    if (!vf.on || !vf.points || !next_point()) {
        return false;
    }
    if (!vf.differed && !vf.search) {
        vf.differed = true;
        vf.last_equal = last_equal();
        wrong();
        say_place(tt_stop_name(TT_STOP_DIVERGED), vf.last_equal, why);
    }
    return true;
}

/* ---- comparing ---- */

static void note_page(void *opaque, uint64_t page, const void *bytes)
{
    TtDiffering d;

    if (tt_verify_page_differs(page, bytes, &d)) {
        if (vf.n_pages < PAGES_SHOWN) {
            vf.pages[vf.n_pages] = d;
        }
        vf.n_pages++;
    }
}

typedef struct Seen {
    uint64_t digest, output_hash, events;
    TtMapState map;
    GPtrArray *registers;
} Seen;

static void look(Seen *s)
{
    s->digest = tt_vcpus_digest();
    s->output_hash = tt_now.output_hash;
    s->events = tt_session.events;
    s->registers = tt_verify_registers();
    tt_memory_map_save(&s->map);
}

static void seen_cleanup(Seen *s)
{
    g_ptr_array_unref(s->registers);
    tt_memory_map_free(&s->map);
}

static bool is_same_map(const TtMapState *a, const TtMapState *b)
{
    for (unsigned i = 0; i < ARRAY_SIZE(a->sections); i++) {
        const GByteArray *x = a->sections[i], *y = b->sections[i];

        if (!x != !y || (x && (x->len != y->len ||
                               memcmp(x->data, y->data, x->len)))) {
            return false;
        }
    }
    return a->n_blocks == b->n_blocks;
}

/* @replayed was where @recorded now is, as the checkpoint says. */
static bool compare_states(const Seen *replayed, const Seen *recorded)
{
    bool same = true;

    tt_verify_reg_cleanup(&vf.reg);
    if (replayed->digest != recorded->digest) {
        say("vcpu");
        tt_verify_compare_registers(replayed->registers, recorded->registers,
                                    &vf.reg);
        same = false;
    }
    if (replayed->output_hash != recorded->output_hash) {
        say("outputs");
        same = false;
    }
    if (replayed->events != recorded->events) {
        say("events recorded=%" PRIu64 " replayed=%" PRIu64, recorded->events,
            replayed->events);
        same = false;
    }
    if (!is_same_map(&replayed->map, &recorded->map)) {
        say("map");
        same = false;
    }
    return same;
}

/* Outside of a movement: a damaged log ends the interval, and does not stop the VM. */
static bool restore(const TtCheckpointDesc *p)
{
    TtRestored how;

    tt_search_leave();
    vf.is_restoring = true;
    how = tt_checkpoints_restore(tt_vcpu(), p->id);
    vf.is_restoring = false;
    if (how == TT_RESTORED) {
        tt_search_restored();
    } else if (how == TT_RESTORE_NOMEM) {
        warn_report("tt: there is not enough memory for checkpoint %u", p->id);
    }
    return how == TT_RESTORED;
}

/* The VM stands where @p does: is it as @p says? It is, afterwards. False: @p
 * cannot be used. */
static bool compare(const TtCheckpointDesc *p, bool *same)
{
    Seen replayed, recorded;

    vf.n_pages = 0;
    *same = true;
    if (!vf.differed) {
        vf.last_equal = last_equal();
    }
    if (!tt_checkpoints_compare(p->id, note_page, NULL)) {
        return false;
    }
    look(&replayed);
    if (!restore(p)) {
        seen_cleanup(&replayed);
        return false;
    }
    look(&recorded);
    *same = compare_states(&replayed, &recorded) && !vf.n_pages;
    seen_cleanup(&replayed);
    seen_cleanup(&recorded);
    return true;
}

/* ---- from interval to interval ---- */

static void next_interval(void);
static void skip_interval(void);
static void in_trouble(int reason);
static void reached(void *opaque, uint64_t pos, int reason);

static void leave(void)
{
    int code = vf.is_wrong ? 3 : vf.is_unusable ? 1 : 0;

    say("end code=%d whole=%d", code, !vf.is_unusable);
    qemu_system_shutdown_request_with_code(SHUTDOWN_CAUSE_HOST_QMP_QUIT, code);
}

static void post(bool ok, Error *err)
{
    if (!ok) {
        say("failed text=%s", error_get_pretty(err));
        error_free(err);
        vf.is_unusable = true;
        leave();
    }
}

/* Behind all that there is to say of it. */
static void say_interval(uint64_t to, const char *how)
{
    say("interval from=%" PRIu64 " to=%" PRIu64 " how=%s", vf.began, to, how);
}

static void run_on(void)
{
    const TtCheckpointDesc *p = next_point();
    Error *err = NULL;
    bool ok;

    ok = tt_travel_run(p ? p->pos : INT64_MAX, reached, NULL, &err);
    post(ok, err);
}

static void next_interval(void)
{
    bool was_last = !next_point();

    vf.differed = false;
    vf.next++;
    if (was_last || (!next_point() && vf.to != UINT64_MAX)) {
        leave();
    } else if (tt_replayer.diverged) {           /* the log behind it cannot be read */
        vf.began = tt_now.pos;
        in_trouble(tt_replay_failure());
    } else if (tt_checkpoints_is_lost()) {
        vf.began = tt_now.pos;
        skip_interval();
    } else {
        vf.began = tt_now.pos;
        run_on();
    }
}

/* ---- the write that should not be ---- */

static void visited(void *opaque, uint64_t pos, int reason);

static void visit(uint64_t pos)
{
    Error *err = NULL;
    bool ok = tt_travel_goto(pos, visited, NULL, &err);

    post(ok, err);
}

static void interrupted(uint64_t pos)
{
    const TtCheckpointDesc *p = next_point();

    say("interrupted position=%" PRIu64, pos);
    if (vf.differed) {
        say_interval(p ? p->pos : tt_replay_end(), tt_stop_name(TT_STOP_DIVERGED));
    }
    vf.is_unusable = true;
    leave();
}

static void go_on_behind(void);

static void back_to_the_end(void *opaque, uint64_t pos, int reason)
{
    if (reason == TT_STOP_TARGET) {
        next_interval();
    } else if (reason == TT_STOP_INTERRUPTED) {
        interrupted(pos);
    } else {
        go_on_behind();
    }
}

static void begin_search(Search what);

static void end_search(void)
{
    const TtCheckpointDesc *p = next_point();
    Error *err = NULL;

    if (vf.search == OF_PAGE && vf.reg.name && vf.last_equal < p->pos) {
        begin_search(OF_REGISTER);
        return;
    }
    vf.search = NO_SEARCH;
    say_interval(p->pos, vf.how);
    vf.differed = false;
    post(tt_travel_goto(p->pos, back_to_the_end, NULL, &err), err);
}

/* What is searched for is as the replay had it at the end of the interval. */
static bool is_there(void)
{
    const TtDiffering *d = &vf.pages[0];
    const uint8_t *now;

    if (vf.search == OF_REGISTER) {
        return tt_verify_reg_is(&vf.reg);
    }
    now = tt_memory_page(NULL, d->page);
    return !memcmp(now + d->offset, d->replayed, TT_VERIFY_BYTES);
}

static void say_unwritten(void)
{
    const TtCheckpointDesc *p = next_point();

    if (vf.search == OF_PAGE) {
        say("nowrite page=%" PRIu64, vf.pages[0].page);
    } else {
        say("kept cpu=%u name=%s from=%" PRIu64 " to=%" PRIu64, vf.reg.cpu,
            vf.reg.name, vf.low, p->pos);
    }
}

static void say_write(uint64_t pos)
{
    CPUState *cpu = tt_vcpu();
    uint64_t pc = cpu->cc->get_pc(cpu);

    if (vf.search == OF_PAGE) {
        say("write page=%" PRIu64 " position=%" PRIu64 " pc=0x%" PRIx64,
            vf.pages[0].page, pos, pc);
    } else {
        say("wrote cpu=%u name=%s position=%" PRIu64 " pc=0x%" PRIx64,
            vf.reg.cpu, vf.reg.name, pos, pc);
    }
    tt_verify_say_state();
    tt_verify_say_events();
}

/* It is not at low and is at high, which follows it or is the end. */
static void halve(uint64_t pos)
{
    if (is_there()) {
        vf.high = MAX(MIN(pos, vf.high), vf.low + 1);
    } else {
        vf.low = MIN(pos, vf.high - 1);
    }
}

static void visited(void *opaque, uint64_t pos, int reason)
{
    bool is_first = vf.high == UINT64_MAX;      /* visit, at the beginning */

    if (reason != TT_STOP_TARGET) {
        say("search position=%" PRIu64 " text=%s", pos, tt_stop_name(reason));
        end_search();
    } else if (is_first && is_there()) {
        say_unwritten();
        end_search();
    } else if (!is_first && vf.low + 1 == vf.high) {
        say_write(pos);
        end_search();
    } else {
        if (is_first) {
            vf.high = next_point()->pos;
        } else {
            halve(pos);
        }
        visit(vf.low + 1 == vf.high ? vf.low :
              vf.low + (vf.high - vf.low) / 2);
    }
}

static void begin_search(Search what)
{
    vf.search = what;
    vf.low = what == OF_PAGE ? vf.began : vf.last_equal;
    vf.high = UINT64_MAX;
    visit(vf.low);
}

/* ---- the end of an interval ---- */

static void say_unusable(const TtCheckpointDesc *p)
{
    say("unusable id=%u position=%" PRIu64, p->id, p->pos);
    vf.is_unusable = true;
}

static void say_pages(void)
{
    for (unsigned i = 0; i < MIN(vf.n_pages, PAGES_SHOWN); i++) {
        tt_verify_say_page(&vf.pages[i]);
    }
    if (vf.n_pages) {
        say("pages count=%" PRIu64, vf.n_pages);
    }
}

/* Nobody knows whether all is right here: the interval goes on to the next one. */
static void pass_by(const TtCheckpointDesc *p)
{
    bool is_last = vf.next + 1 == vf.points->len && vf.to != UINT64_MAX;

    say_unusable(p);
    if (is_last || tt_checkpoints_is_lost()) {
        say_interval(p->pos, tt_stop_name(vf.differed ? TT_STOP_DIVERGED :
                                          TT_STOP_DAMAGED));
        next_interval();
    } else {
        vf.next++;
        run_on();
    }
}

static void at_checkpoint(const TtCheckpointDesc *p)
{
    bool same;

    if (!compare(p, &same)) {
        pass_by(p);
        return;
    }
    say_pages();
    if (!same) {
        tt_verify_say_events();
        wrong();
    } else if (vf.differed) {
        say("again position=%" PRIu64, p->pos);
    }
    vf.how = vf.differed ? tt_stop_name(TT_STOP_DIVERGED) :
        same ? "equal" : "differs";
    if (vf.n_pages && vf.began < p->pos) {
        begin_search(OF_PAGE);
    } else if (!same && vf.reg.name && vf.last_equal < p->pos) {
        begin_search(OF_REGISTER);
    } else {
        say_interval(p->pos, vf.how);
        next_interval();
    }
}

/*
 * The VM becomes that of the next checkpoint from which the log can be read. False:
 * there is none. What lies before it is not verified.
 */
static bool begin_anew(void)
{
    const TtCheckpointDesc *p;

    while ((p = next_point())) {
        if (!restore(p)) {
            say_unusable(p);
        } else if (!tt_replayer.diverged) {
            return true;
        }
        vf.began = p->pos;
        vf.next++;
        p = next_point();
        if (p || vf.to == UINT64_MAX) {
            say_interval(p ? p->pos : tt_replay_end(),
                         tt_stop_name(TT_STOP_DAMAGED));
        }
        vf.is_unusable = true;
    }
    return false;
}

static void go_on_behind(void)
{
    if (begin_anew()) {
        next_interval();
    } else {
        leave();
    }
}

/* There is nothing to begin it with. */
static void skip_interval(void)
{
    const TtCheckpointDesc *p = next_point();

    say_interval(p ? p->pos : tt_replay_end(), tt_stop_name(TT_STOP_DAMAGED));
    vf.is_unusable = true;
    go_on_behind();
}

/* The replay of the interval went wrong on its way. */
static void in_trouble(int reason)
{
    const TtCheckpointDesc *p = next_point();
    const char *why = tt_replayer.divergence ?: "for no reason given";

    if (reason == TT_STOP_DAMAGED) {
        say("%s position=%" PRIu64 " text=%s", tt_stop_name(reason), tt_now.pos,
            why);
    } else {
        say_place(vf.differed ? "further" : tt_stop_name(reason), last_equal(),
                  why);
    }
    say_interval(p ? p->pos : tt_replay_end(),
                 tt_stop_name(vf.differed ? TT_STOP_DIVERGED : reason));
    if (reason == TT_STOP_DAMAGED) {
        vf.is_unusable = true;
    } else {
        wrong();
    }
    go_on_behind();
}

static void reached(void *opaque, uint64_t pos, int reason)
{
    const TtCheckpointDesc *p = next_point();

    if (reason == TT_STOP_DIVERGED || reason == TT_STOP_DAMAGED) {
        in_trouble(reason);
    } else if (reason == TT_STOP_INTERRUPTED) {
        interrupted(pos);
    } else if (p && pos == p->pos) {
        at_checkpoint(p);
    } else if (p) {
        say("missed id=%u position=%" PRIu64 " end=%" PRIu64, p->id, p->pos,
            pos);
        say_interval(p->pos, tt_stop_name(TT_STOP_DIVERGED));
        wrong();
        vf.is_unusable = true;
        leave();
    } else {
        say_interval(pos, vf.differed ? tt_stop_name(TT_STOP_DIVERGED) : "equal");
        next_interval();
    }
}

/* ---- start ---- */

/*
 * Is there a stored checkpoint at @pos, or the start of the run, or @or_end its end? Of
 * one that is being recorded the end moves. @before, @behind: the next that are.
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
    error_setg(errp, "verify takes the start and the end of the run, and positions "
               "of its stored checkpoints, not %" PRIu64 ": the next before it is %"
               PRIu64 ", behind it %" PRIu64, pos, before, behind);
    return false;
}

static bool is_part(GArray *all, Error **errp)
{
    if (!may_verify(all, vf.from, false, errp) ||
        (vf.to != UINT64_MAX && !may_verify(all, vf.to, true, errp))) {
        return false;
    }
    if (vf.to <= vf.from) {
        error_setg(errp, "the run begins at position %" PRIu64 ", behind what is to "
                   "be verified", vf.from);
    }
    return vf.to > vf.from;
}

/* Checkpoints of the part that is to be verified, in order. */
static void choose_points(GArray *all)
{
    vf.points = g_array_new(false, false, sizeof(TtCheckpointDesc));
    for (unsigned i = 0; i < all->len; i++) {
        TtCheckpointDesc *p = &g_array_index(all, TtCheckpointDesc, i);

        if (p->stored && p->pos >= vf.from && p->pos <= vf.to) {
            g_array_append_val(vf.points, *p);
        }
    }
}

/* The start is where it is, and another checkpoint was restored: if it was not, what
 * lies before it was re-executed, from the last one that could be. */
static void at_first(const TtCheckpointDesc *p)
{
    if (vf.began != p->pos) {
        pass_by(p);
        return;
    }
    if (!p->pos && !tt_checkpoints_compare_all(p->id, note_page, NULL)) {
        say_unusable(p);
    } else if (!p->pos && vf.n_pages) {
        say_pages();
        say_interval(0, "differs");
        wrong();
    }
    next_interval();
}

static void at_start(void *opaque, uint64_t pos, int reason)
{
    const TtCheckpointDesc *p = next_point();

    vf.began = tt_checkpoints_restored_at();
    if (reason == TT_STOP_INTERRUPTED) {
        interrupted(pos);
    } else if (reason != TT_STOP_TARGET) {
        in_trouble(reason);
    } else if (p && p->pos == pos) {
        at_first(p);
    } else {
        vf.began = pos;
        run_on();
    }
}

void tt_verify_begin(void)
{
    g_autoptr(GArray) all = tt_checkpoints_list();
    Error *err = NULL;
    bool ok;

    vf.from = MAX(vf.from, tt_replay_first());
    if (!is_part(all, &err)) {
        post(false, err);
        return;
    }
    if (vf.to >= tt_replay_end()) {
        vf.to = UINT64_MAX;             /* there need be no checkpoint */
    }
    choose_points(all);
    vf.began = tt_now.pos;
    ok = tt_travel_goto(vf.from, at_start, NULL, &err);
    post(ok, err);
}
