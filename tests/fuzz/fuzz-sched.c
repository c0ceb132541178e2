/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target of the scheduler: any log under any order of calls, against a
 * flat list of its events.
 */
#include "fuzz-log-util.h"
#include "log/tt-sched.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) do { if (!(x)) { abort(); } } while (0)
#define STEPS_MAX 2000

/* Events up to the first segment that cannot be read. */
typedef struct Model {
    GArray *events;             /* TtEvent, data not kept */
    GArray *cursors;            /* TtCursor of each */
    bool damaged;
} Model;

static void model_fill(Model *m, TtLogReader *r)
{
    m->events = g_array_new(false, false, sizeof(TtEvent));
    m->cursors = g_array_new(false, false, sizeof(TtCursor));
    for (uint64_t s = tt_log_reader_first(r);
         s < tt_log_reader_end(r) && !m->damaged; s++) {
        TtSegment *seg;
        if (tt_log_reader_load(r, s, &seg, NULL) != TT_OK) {
            m->damaged = true;
            break;
        }
        for (uint32_t i = 0; i < seg->n_events; i++) {
            TtCursor c = { s, i };
            g_array_append_vals(m->events, &seg->events[i], 1);
            g_array_append_vals(m->cursors, &c, 1);
        }
        tt_segment_unref(seg);
    }
}

static bool is_stop(const TtEvent *ev)
{
    return !TT_EV_IS_SYNC(ev->kind) && !ev->nested;
}

static void check_horizon(const Model *m, uint32_t at, TtSched *s)
{
    uint64_t h = tt_sched_horizon(s), pos;
    uint32_t n = m->events->len, stop = at;

    if (at == n || !tt_sched_peek(s)) {
        CHECK(m->damaged || h == UINT64_MAX);
        return;
    }
    pos = g_array_index(m->events, TtEvent, at).pos;
    while (stop < n && !is_stop(&g_array_index(m->events, TtEvent, stop))) {
        stop++;
    }
    uint64_t limit = g_array_index(m->events, TtEvent, MIN(stop, n - 1)).pos;
    /* After the last readable event a damaged segment's start is the limit. */
    CHECK(h >= pos && (h <= limit || (m->damaged && stop == n)));
    CHECK(h > pos || limit == pos);
}

/* One call chosen by @op. Returns the event the cursor is at afterwards. */
static uint32_t step(const Model *m, uint32_t at, TtSched *s, unsigned op)
{
    const TtEvent *ev = tt_sched_peek(s);
    uint32_t n = m->events->len;

    /* A damaged segment may end it before its own first event. */
    CHECK((ev != NULL) == (at < n) || (!ev && m->damaged));
    CHECK((tt_sched_status(s, NULL) == TT_OK) == (ev != NULL));
    if (ev) {
        CHECK(ev->pos == g_array_index(m->events, TtEvent, at).pos);
        CHECK(ev->val == g_array_index(m->events, TtEvent, at).val);
    }
    if (op < 160 && ev) {
        CHECK(tt_sched_match(s, ev, NULL) == TT_OK);
        tt_sched_pop(s);
        return at + 1;
    }
    if (op < 230) {
        check_horizon(m, at, s);
        return at;
    }
    if (op < 235) {
        g_free(tt_sched_context(s, op % 4, op % 3));
        return at;
    }
    if (n) {
        at = op * 7919u % n;
        TtCursor c = g_array_index(m->cursors, TtCursor, at);
        CHECK(tt_sched_seek(s, c, NULL) == TT_OK);
    }
    return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree uint8_t *mended = fuzz_log_mend(data, size);
    TtLogReader *r;
    TtSched *s;
    Model m = { 0 };

    if (tt_log_reader_open(tt_io_mem_new(mended, size), &r, NULL) < 0) {
        return 0;
    }
    model_fill(&m, r);
    if (tt_sched_new(r, &s, NULL) == TT_OK) {
        uint32_t at = 0;
        for (size_t i = 0; i < MIN(size, STEPS_MAX); i++) {
            /* The file's own bytes serve as the order of calls. */
            at = step(&m, at, s, data[size - 1 - i] ^ (i & 0xff));
        }
        tt_sched_free(s);
    } else {
        CHECK(m.damaged && m.events->len == 0);
    }
    g_array_unref(m.events);
    g_array_unref(m.cursors);
    tt_log_reader_free(r);
    return 0;
}
