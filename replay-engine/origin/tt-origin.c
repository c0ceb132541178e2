/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * -tt replay,origin=...: questions are answered one after the other; each answer may put
 * new ones, which come first.
 *
 *   next --goto--> its position --parse--+
 *     ^                                  |
 *     +--- answer <--goto-- last write <-+-- search
 *
 * What comes of it goes to stdout, a line each, for `tt origin`:
 *
 *   tt-origin asked number=N position=P             nodes up to the next belong to it
 *   tt-origin node id=N parent=N rest=0|1 how=WORD place=... of=CPU value=0xV
 *             position=P cpu=N pc=0xA ... text=INSTRUCTION
 *   tt-origin leaf parent=N how=mmio|unmapped place=... physical=0xA
 *   tt-origin cut parent=N place=... text=...         not followed: a limit
 *   tt-origin way position=P                         how far it is
 *   tt-origin failed text=...
 *   tt-origin end code=N whole=0|1
 *
 * Context: the vCPU thread, from travel's callbacks; main thread for the option.
 */
#include "qemu/osdep.h"
#include "origin/tt-origin.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "replay/tt-replay-exact.h"
#include "replay/tt-replay-log.h"
#include "session/tt-events.h"
#include "session/tt-session.h"
#include "timeline/tt-timeline.h"
#include "travel/tt-travel.h"
#include "tt-origin-answer-int.h"
#include "tt-origin-ask-int.h"
#include "tt-origin-queue-int.h"
#include "tt-origin-search-int.h"
#include "qapi/error.h"
#include "qemu/cutils.h"
#include "system/runstate.h"
#include "system/system.h"

static struct {
    char **asked;               /* NULL: not asked for */
    unsigned next;              /* of them */
    uint64_t depth, nodes, within;
    TtOriginQuestion *q;        /* is being answered */
    TtOriginFound found;
    unsigned n_nodes, n_of_this;
} task;

/* Exit statuses of the tt tool: a replay that was not exact ends with 3. */
static void leave(int reason, Error *err)
{
    bool whole = reason == TT_STOP_TARGET && !err;
    int code = whole ? 0 : reason == TT_STOP_DIVERGED ? 3 : 1;

    if (err) {
        tt_origin_say("failed text=%s", error_get_pretty(err));
        error_free(err);
    } else if (!whole) {
        tt_origin_say("failed text=the search ended at position %" PRIu64 ": %s",
                      tt_now.pos, reason == TT_STOP_INTERRUPTED ? "interrupted" :
                      tt_replayer.divergence ?: tt_stop_name(reason));
    }
    tt_origin_say("end code=%d whole=%d", code, whole);
    qemu_system_shutdown_request_with_code(SHUTDOWN_CAUSE_HOST_QMP_QUIT, code);
}

static void next(void);

static void go(uint64_t pos, TtTravelDone *then)
{
    Error *err = NULL;

    if (!tt_travel_goto(pos, then, NULL, &err)) {
        leave(TT_STOP_NONE, err);
    }
}

/* ---- one question ---- */

static void search(void);

static void answered(void)
{
    bool is_over;

    tt_origin_put_first();
    if (!tt_origin_answer(task.q, &task.found, task.n_nodes + 1)) {
        task.q->before = task.found.pos;
        search();
        return;
    }
    task.n_nodes++;
    task.n_of_this++;
    is_over = task.n_of_this >= task.nodes;
    tt_origin_drop(is_over ? 0 : task.depth + 1);
    next();
}

static void at_write(void *opaque, uint64_t pos, int reason)
{
    if (reason != TT_STOP_TARGET) {
        leave(reason, NULL);
        return;
    }
    answered();
}

static void found(const TtOriginFound *f)
{
    task.found = *f;
    if (f->by == TT_ORIGIN_FAILED) {
        leave(f->reason, f->err);
    } else if (f->by == TT_ORIGIN_BY_NOBODY || f->by == TT_ORIGIN_TOO_FAR) {
        task.found.pos = tt_now.pos;
        answered();
    } else {
        go(f->pos, at_write);
    }
}

static void search(void)
{
    tt_origin_search(task.q, task.within, found);
}

/* ---- all of them ---- */

static void at_position(void *opaque, uint64_t pos, int reason)
{
    const char *text = strchr(task.asked[task.next - 1], ' ');
    TtOriginQuestion q = { .before = pos };
    TtFlowPlace place;
    Error *err = NULL;

    if (reason != TT_STOP_TARGET && reason != TT_STOP_END) {
        leave(reason, NULL);
        return;
    }
    if (!tt_origin_parse(text + 1, &place, &err)) {
        leave(TT_STOP_NONE, err);
        return;
    }
    tt_origin_say("asked number=%u position=%" PRIu64, task.next - 1, pos);
    task.n_of_this = 0;
    tt_origin_put_first();
    tt_origin_put_place(&place, tt_vcpu()->cpu_index, &q);
    next();
}

static void next(void)
{
    const char *text;
    uint64_t pos;

    g_free(task.q);
    task.q = tt_origin_take();
    if (task.q) {
        search();
        return;
    }
    text = task.asked[task.next];
    if (!text) {
        leave(TT_STOP_TARGET, NULL);
        return;
    }
    task.next++;
    pos = g_ascii_strtoull(text, NULL, 10);
    go(MIN(MAX(pos, tt_replay_first()), tt_replay_end()), at_position);
}

static void begin(void)
{
    Error *err = NULL;

    if (!tt_origin_decoder()) {
        error_setg(&err, "this QEMU was built without capstone, which origin needs to "
                   "decode instructions: install libcapstone-dev, and build it again");
        leave(TT_STOP_NONE, err);
        return;
    }
    next();
}

/* ---- the option ---- */

bool tt_origin_is_on(void)
{
    return task.asked;
}

static bool parse_word(const char *word, Error **errp)
{
    static const struct { const char *name; size_t at; } words[] = {
        { "depth=", offsetof(typeof(task), depth) },
        { "nodes=", offsetof(typeof(task), nodes) },
        { "within=", offsetof(typeof(task), within) },
    };

    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        const char *value;

        if (strstart(word, words[i].name, &value) &&
            !qemu_strtou64(value, NULL, 10, (uint64_t *)((char *)&task + words[i].at))) {
            return true;
        }
    }
    error_setg(errp, "origin-how takes depth=N, nodes=N or within=N, joined by ':', not "
               "'%s'", word);
    return false;
}

bool tt_origin_option(const char *questions, const char *how, Error **errp)
{
    static const TtTravelTask travel_task = { .begin = begin };
    g_auto(GStrv) words = g_strsplit(how ?: "", ":", -1);
    g_auto(GStrv) asked = g_strsplit(questions, ";", -1);

    task.depth = 3;
    task.nodes = 100;
    task.within = UINT64_MAX;
    for (char **w = words; *w; w++) {
        if (!parse_word(*w, errp)) {
            return false;
        }
    }
    for (char **a = asked; *a; a++) {
        const char *end;
        uint64_t pos;

        if (qemu_strtou64(*a, &end, 10, &pos) < 0 || *end != ' ' || !end[1]) {
            error_setg(errp, "origin takes 'POS EXPRESSION', with ';' between several, "
                       "not '%s'", *a);
            return false;
        }
    }
    task.asked = g_steal_pointer(&asked);
    tt_travel_set_task(&travel_task);
    return true;
}
