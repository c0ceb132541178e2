/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target of the undo log: the bytes are a history of steps, of what each changes, and
 * of movements back. A list of all states says where each movement must lead, and the sizes
 * of the notes say which steps must be held.
 */
#include "timeline/tt-undoring.h"

#include <glib.h>
#include <string.h>

#define MEMORY 512
#define REGS 640
#define BLOCK 256               /* see tt_undoring_note_changes */
#define HEAD 16                 /* of a note, see tt-undoring.c */

enum { OF_MEMORY = 3, OF_REGS = 4, OF_NOTHING = 5 };

typedef struct State {
    uint8_t memory[MEMORY], regs[REGS];
} State;

typedef struct Step {
    uint64_t pos, at;           /* it begins there; the offset of its notes */
    State state;
} Step;

typedef struct Model {
    const uint8_t *in, *end;
    TtUndoRing *ring;
    uint64_t size, most_steps;
    State now;
    uint64_t before[REGS / 8];  /* the registers, as they were last noted */
    uint64_t pos, top, head;
    GArray *steps;              /* of Step: those that ended; the open one is beside it */
    guint first;                /* the oldest one that is held */
    Step open;
    bool is_open, is_lost;
} Model;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t take(Model *m)
{
    return m->in < m->end ? *m->in++ : 0;
}

static Step *step_at(Model *m, guint i)
{
    return i < m->steps->len ? &g_array_index(m->steps, Step, i) : &m->open;
}

static void forget(Model *m)
{
    g_array_set_size(m->steps, 0);
    m->first = 0;
    m->head = 0;
    m->top = UINT64_MAX;
    m->is_open = m->is_lost = false;
}

/* ---- filling ---- */

/* A note of @len bytes: what it pushes out. */
static void account(Model *m, size_t len)
{
    size_t cost = ((len + 7) & ~(size_t)7) + HEAD;

    while (!m->is_lost && m->head + cost - step_at(m, m->first)->at > m->size) {
        m->is_lost = m->first == m->steps->len;
        m->first += !m->is_lost;
    }
    m->head += m->is_lost ? 0 : cost;
}

static void note(Model *m, uint32_t kind, uint64_t place, const void *old, size_t len)
{
    tt_undoring_note(m->ring, kind, place, old, len);
    for (; len > TT_UNDORING_NOTE_MAX; len -= TT_UNDORING_NOTE_MAX) {
        account(m, TT_UNDORING_NOTE_MAX);
    }
    account(m, len);
}

static void store(Model *m)
{
    size_t at = take(m) * 2, len = 1 + take(m);

    len = MIN(len, MEMORY - at);
    note(m, OF_MEMORY, at, m->now.memory + at, len);
    memset(m->now.memory + at, take(m), len);
}

/* Many bytes that nothing depends on; put() knows them. */
static void store_many(Model *m)
{
    static uint8_t bytes[1 << 16];
    size_t len = 1 + (take(m) << 8 | take(m));
    uint64_t place = take(m);

    for (size_t i = 0; i < len; i++) {
        bytes[i] = place + i;
    }
    note(m, OF_NOTHING, place, bytes, len);
}

static void account_changes(Model *m)
{
    const uint8_t *before = (uint8_t *)m->before, *now = m->now.regs;

    for (size_t block = 0; block < REGS; block += BLOCK) {
        size_t from = block, to = MIN(block + BLOCK, REGS);

        while (from < to && !memcmp(before + from, now + from, 8)) {
            from += 8;
        }
        while (to > from && !memcmp(before + to - 8, now + to - 8, 8)) {
            to -= 8;
        }
        if (from < to) {
            account(m, to - from);
        }
    }
}

static void note_registers(Model *m)
{
    g_autofree void *now = g_memdup2(m->now.regs, REGS);

    account_changes(m);
    tt_undoring_note_changes(m->ring, OF_REGS, 0, m->before, now, REGS);
    g_assert_cmpmem(m->before, REGS, now, REGS);
}

static void begin(Model *m)
{
    tt_undoring_begin(m->ring, m->pos);
    if (m->pos != m->top) {
        forget(m);
    }
    m->first += m->steps->len - m->first == m->most_steps;
    m->open = (Step) { .pos = m->pos, .at = m->head, .state = m->now };
    m->is_open = true;
}

static void change(Model *m, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        uint8_t what = take(m);

        if (what < 100) {
            store(m);
        } else if (what < 110) {
            store_many(m);
        } else {
            m->now.regs[take(m) * 5 % REGS] = what;
        }
    }
}

static void end(Model *m, unsigned by)
{
    note_registers(m);
    m->pos += by;
    tt_undoring_end(m->ring, m->pos);
    if (m->is_lost) {
        forget(m);
    } else {
        g_array_append_val(m->steps, m->open);
    }
    m->is_open = false;
    m->top = m->pos;
}

/* ---- back ---- */

static void put(void *opaque, uint32_t kind, uint64_t place, const void *old, size_t len)
{
    Model *m = opaque;
    const uint8_t *bytes = old;

    switch (kind) {
    case OF_MEMORY:
        g_assert_cmpuint(place + len, <=, MEMORY);
        memcpy(m->now.memory + place, old, len);
        break;
    case OF_REGS:
        g_assert_cmpuint(place + len, <=, REGS);
        memcpy(m->now.regs + place, old, len);
        memcpy((uint8_t *)m->before + place, old, len);
        break;
    default:
        g_assert_cmpuint(kind, ==, OF_NOTHING);
        for (size_t i = 0; i < len; i++) {
            g_assert_cmpuint(bytes[i], ==, (uint8_t)(place + i));
        }
    }
}

/* To the beginning of one of the steps, if it is held. */
static void back(Model *m)
{
    guint n = m->steps->len, by = 1 + take(m), i = n - MIN(n, by);
    bool is_held = i < n && i >= m->first && !m->is_lost;
    Step *to = step_at(m, i);

    if (i == n) {
        return;
    }
    g_assert_true(tt_undoring_holds(m->ring, to->pos) == is_held);
    if (!is_held) {
        return;
    }
    if (m->is_open) {
        note_registers(m);              /* which may push it out */
    }
    if (i < m->first || m->is_lost) {
        return;
    }
    tt_undoring_back(m->ring, to->pos, put, m);
    g_assert_cmpmem(&m->now, sizeof(State), &to->state, sizeof(State));
    m->pos = m->top = to->pos;
    m->head = to->at;
    m->is_open = false;
    g_array_set_size(m->steps, i);
}

/* ---- a history ---- */

static void check(Model *m)
{
    guint n = m->steps->len;

    g_assert_true(tt_undoring_is_open(m->ring) == m->is_open);
    g_assert_cmpuint(tt_undoring_steps(m->ring), ==, n - m->first);
    g_assert_cmpuint(tt_undoring_bytes(m->ring), ==,
                     m->first < n ? m->head - step_at(m, m->first)->at : 0);
    g_assert_cmpuint(tt_undoring_bytes(m->ring), <=, m->size);
    g_assert_false(tt_undoring_holds(m->ring, m->pos));
    if (n) {
        guint i = m->first + take(m) % (n - m->first + 1);

        g_assert_true(!m->first || !tt_undoring_holds(m->ring, step_at(m, m->first - 1)->pos));
        g_assert_true(i >= n ||
                      tt_undoring_holds(m->ring, step_at(m, i)->pos) == !m->is_lost);
    }
}

static void act(Model *m, uint8_t what)
{
    if (what % 8 == 7) {
        tt_undoring_clear(m->ring);
        memcpy(m->before, m->now.regs, REGS);
        forget(m);
    } else if (what % 8 == 6 && !m->is_open) {
        m->pos += what;                 /* the next step does not follow */
    } else if (what % 8 >= 4) {
        back(m);
    } else {
        if (!m->is_open) {
            begin(m);
        }
        change(m, what / 8 % 4);
        if (what % 8) {
            end(m, 1 + what / 128);
        }
        for (unsigned i = what > 250 ? take(m) : 0; i; i--) {   /* many empty ones */
            begin(m);
            end(m, 1);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree Model *m = g_new0(Model, 1);
    size_t bytes;

    if (!size) {
        return 0;
    }
    *m = (Model) { .in = data, .end = data + size, .top = UINT64_MAX, .size = 16 << 10 };
    bytes = take(m) << 10;
    while (m->size * 2 <= bytes) {
        m->size *= 2;
    }
    m->most_steps = m->size / TT_UNDORING_STEP_MIN;
    m->ring = tt_undoring_new(bytes);
    m->steps = g_array_new(false, false, sizeof(Step));
    while (m->in < m->end && m->steps->len < 4096) {
        act(m, take(m));
        check(m);
    }
    tt_undoring_free(m->ring);
    g_array_unref(m->steps);
    return 0;
}
