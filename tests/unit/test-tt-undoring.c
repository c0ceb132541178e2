/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ring of undo entries against copies of the whole state at every position. */
#include "timeline/tt-undoring.h"

#include <glib.h>
#include <string.h>

#define MEMORY 8192
#define REGS 640
#define POSITIONS 6000

enum { OF_MEMORY = 7, OF_REGS = 9 };

typedef struct State {
    uint8_t memory[MEMORY];
    uint64_t regs[REGS / 8];
} State;

typedef struct Model {
    TtUndoRing *ring;
    State now;
    uint64_t before[REGS / 8];
    uint64_t pos;
    GArray *copies;             /* of State: [i] at positions[i] */
    GArray *positions;
    uint64_t last_bad;          /* no position before it can be in the ring */
} Model;

static void put(void *opaque, uint32_t kind, uint64_t place, const void *old, size_t len)
{
    Model *m = opaque;

    if (kind == OF_MEMORY) {
        g_assert_cmpuint(place + len, <=, MEMORY);
        memcpy(m->now.memory + place, old, len);
    } else {
        g_assert_cmpuint(kind, ==, OF_REGS);
        g_assert_cmpuint(place + len, <=, REGS);
        memcpy((uint8_t *)m->now.regs + place, old, len);
        memcpy((uint8_t *)m->before + place, old, len);
    }
}

static void store(Model *m, GRand *rng, size_t len)
{
    size_t at = g_rand_int_range(rng, 0, MEMORY - len + 1);

    tt_undoring_note(m->ring, OF_MEMORY, at, m->now.memory + at, len);
    for (size_t i = 0; i < len; i++) {
        m->now.memory[at + i] = g_rand_int(rng);
    }
}

static void keep(Model *m)
{
    g_array_append_val(m->copies, m->now);
    g_array_append_val(m->positions, m->pos);
}

static void step(Model *m, GRand *rng)
{
    unsigned n = g_rand_int_range(rng, 0, 4);

    tt_undoring_begin(m->ring, m->pos);
    for (unsigned i = 0; i < n; i++) {
        store(m, rng, 1 << g_rand_int_range(rng, 0, 6));
    }
    if (!g_rand_int_range(rng, 0, 200)) {
        store(m, rng, g_rand_int_range(rng, 1, MEMORY));
    }
    for (unsigned i = g_rand_int_range(rng, 0, 6); i; i--) {
        m->now.regs[g_rand_int_range(rng, 0, REGS / 8)] = g_rand_int(rng);
    }
    tt_undoring_note_changes(m->ring, OF_REGS, 0, m->before, m->now.regs, REGS);
    m->pos += g_rand_int_range(rng, 1, 8) == 1 ? 2 : 1;
    tt_undoring_end(m->ring, m->pos);
    keep(m);
}

/* To one of the positions before; the ring says whether it has it. */
static void back(Model *m, GRand *rng, unsigned far)
{
    unsigned last = m->positions->len - 1, by = g_rand_int_range(rng, 1, far + 1);
    unsigned i = last - MIN(last, by);
    uint64_t pos = g_array_index(m->positions, uint64_t, i);

    if (i == last || !tt_undoring_holds(m->ring, pos)) {
        return;
    }
    g_assert_cmpuint(pos, >=, m->last_bad);
    g_assert_false(tt_undoring_holds(m->ring, m->pos));
    if (g_rand_boolean(rng)) {          /* also out of an open step */
        tt_undoring_begin(m->ring, m->pos);
        store(m, rng, 16);
    }
    tt_undoring_back(m->ring, pos, put, m);
    m->pos = pos;
    g_array_set_size(m->copies, i + 1);
    g_array_set_size(m->positions, i + 1);
    g_assert_cmpmem(&m->now, sizeof(State), &g_array_index(m->copies, State, i),
                    sizeof(State));
    g_assert_cmpmem(m->before, REGS, m->now.regs, REGS);
}

/* What a barrier does. */
static void bar(Model *m, GRand *rng)
{
    tt_undoring_clear(m->ring);
    m->now.memory[g_rand_int_range(rng, 0, MEMORY)]++;
    m->last_bad = m->pos;
    g_array_index(m->copies, State, m->copies->len - 1) = m->now;
    g_assert_cmpuint(tt_undoring_steps(m->ring), ==, 0);
    g_assert_cmpuint(tt_undoring_bytes(m->ring), ==, 0);
}

static void random_history(unsigned seed, size_t bytes)
{
    GRand *rng = g_rand_new_with_seed(seed);
    Model m = {
        .ring = tt_undoring_new(bytes), .pos = 1000,
        .copies = g_array_new(false, false, sizeof(State)),
        .positions = g_array_new(false, false, sizeof(uint64_t)),
    };
    size_t most = 0;

    keep(&m);
    for (unsigned i = 0; i < POSITIONS; i++) {
        unsigned what = g_rand_int_range(rng, 0, 100);

        if (what < 80) {
            step(&m, rng);
        } else if (what < 99) {
            back(&m, rng, what < 90 ? 3 : 400);
        } else if (!g_rand_int_range(rng, 0, 5)) {
            bar(&m, rng);
        }
        g_assert_cmpuint(tt_undoring_bytes(m.ring), <=, bytes);
        most = MAX(most, tt_undoring_steps(m.ring));
        if (m.copies->len > 900) {
            g_array_remove_range(m.copies, 0, 300);
            g_array_remove_range(m.positions, 0, 300);
        }
    }
    g_assert_cmpuint(most, >, 20);
    tt_undoring_free(m.ring);
    g_array_unref(m.copies);
    g_array_unref(m.positions);
    g_rand_free(rng);
}

static void test_random(void)
{
    for (unsigned seed = 1; seed <= 12; seed++) {
        random_history(seed, 16384u << (seed % 4));
    }
}

/* Old steps go, the newest stay, and the ring says which. */
static void test_wraps(void)
{
    TtUndoRing *r = tt_undoring_new(1 << 14);
    uint8_t old[256] = { 0 };
    uint64_t oldest = 0;

    for (uint64_t pos = 0; pos < 5000; pos++) {
        tt_undoring_begin(r, pos);
        tt_undoring_note(r, 0, 0, old, 1 + pos % sizeof(old));
        tt_undoring_end(r, pos + 1);
    }
    while (!tt_undoring_holds(r, oldest)) {
        oldest++;
    }
    g_assert_cmpuint(5000 - oldest, ==, tt_undoring_steps(r));
    g_assert_cmpuint(tt_undoring_steps(r), >, (1 << 14) / 280);
    g_assert_cmpuint(tt_undoring_bytes(r), <=, 1 << 14);
    for (uint64_t pos = oldest; pos < 5000; pos++) {
        g_assert_true(tt_undoring_holds(r, pos));
    }
    g_assert_false(tt_undoring_holds(r, 5000));
    tt_undoring_free(r);
}

static void no_put(void *opaque, uint32_t kind, uint64_t place, const void *old, size_t len)
{
    ++*(unsigned *)opaque;
}

/* Steps without a note are steps; so many that the list of them wraps. */
static void test_empty_steps(void)
{
    TtUndoRing *r = tt_undoring_new(0);
    unsigned n = 0;

    for (uint64_t pos = 0; pos < 1000; pos++) {
        tt_undoring_begin(r, pos);
        tt_undoring_end(r, pos + 1);
    }
    g_assert_cmpuint(tt_undoring_steps(r), ==, (16 << 10) / TT_UNDORING_STEP_MIN);
    g_assert_true(tt_undoring_holds(r, 800));
    tt_undoring_back(r, 800, no_put, &n);
    g_assert_cmpuint(n, ==, 0);
    g_assert_false(tt_undoring_holds(r, 800));
    g_assert_true(tt_undoring_holds(r, 799));
    tt_undoring_free(r);
}

/* One that is larger than the ring takes all with it, and the next are held. */
static void test_too_large(void)
{
    TtUndoRing *r = tt_undoring_new(1 << 14);
    static uint8_t old[1 << 15];

    tt_undoring_begin(r, 1);
    tt_undoring_end(r, 2);
    tt_undoring_begin(r, 2);
    tt_undoring_note(r, 0, 0, old, sizeof(old));
    g_assert_false(tt_undoring_holds(r, 1));
    tt_undoring_end(r, 3);
    g_assert_false(tt_undoring_holds(r, 1));
    g_assert_false(tt_undoring_holds(r, 2));
    tt_undoring_begin(r, 3);
    tt_undoring_note(r, 0, 0, old, 5000);           /* two notes */
    tt_undoring_end(r, 4);
    g_assert_true(tt_undoring_holds(r, 3));
    tt_undoring_free(r);
}

/* A step that does not begin where the last one ended: what was before is no more. */
static void test_gap(void)
{
    TtUndoRing *r = tt_undoring_new(1 << 14);

    tt_undoring_begin(r, 1);
    tt_undoring_end(r, 2);
    tt_undoring_begin(r, 3);
    g_assert_false(tt_undoring_holds(r, 1));
    tt_undoring_end(r, 4);
    g_assert_true(tt_undoring_holds(r, 3));
    g_assert_cmpuint(tt_undoring_steps(r), ==, 1);
    tt_undoring_free(r);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/undoring/leads-to-each-state-it-holds", test_random);
    g_test_add_func("/tt/undoring/oldest-steps-go", test_wraps);
    g_test_add_func("/tt/undoring/steps-may-be-empty", test_empty_steps);
    g_test_add_func("/tt/undoring/too-large-a-step-is-not-held", test_too_large);
    g_test_add_func("/tt/undoring/a-gap-forgets", test_gap);
    return g_test_run();
}
