/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unit tests of the window: against a simple model, a recording of any pace keeps at
 * least the time it is to keep, not much more, and never a part too few.
 */
#include "log/tt-window.h"

#include <glib.h>

#define SECOND 1000000000ull
#define KIB 1024ull
#define MIB (1024 * KIB)
#define STEP_MS 300

/* What a recorder does, and what it must still have. */
typedef struct Sim {
    TtWindow *w;
    TtWindowLimits limits;
    GRand *rand;
    uint64_t now, seq, pos;
    uint32_t next_id, next_part;
    GArray *parts;              /* { number, seq, bytes } */
    GArray *points;             /* TtWindowPoint */
    uint64_t bytes;
} Sim;

typedef struct SimPart {
    uint32_t number;
    uint64_t seq, bytes;
} SimPart;

static SimPart *part(Sim *s, unsigned i)
{
    return &g_array_index(s->parts, SimPart, i);
}

static TtWindowPoint *point(Sim *s, unsigned i)
{
    return &g_array_index(s->points, TtWindowPoint, i);
}

static void begin_part(Sim *s)
{
    SimPart p = { ++s->next_part, s->seq, 0 };

    tt_window_begin_part(s->w, p.number, p.seq);
    g_array_append_val(s->parts, p);
}

static void seal(Sim *s, uint64_t bytes)
{
    s->seq++;
    s->pos += 1000;
    tt_window_grow(s->w, bytes, s->seq);
    part(s, s->parts->len - 1)->bytes += bytes;
    s->bytes += bytes;
    if (tt_window_wants_part(s->w)) {
        begin_part(s);
    }
}

/* All that may go goes; what is left holds the oldest point. */
static void trim(Sim *s)
{
    uint32_t id;

    while ((id = tt_window_surplus(s->w, s->now))) {
        g_assert_cmpuint(s->points->len, >, 1);
        g_assert_cmpuint(point(s, 1)->seq, <, s->seq);  /* sealed */
        g_assert_cmpuint(point(s, 1)->id, ==, tt_window_second(s->w));
        g_assert_cmpuint(id, ==, point(s, 0)->id);
        tt_window_remove(s->w, id);
        g_array_remove_index(s->points, 0);
    }
    while ((id = tt_window_spent_part(s->w))) {
        g_assert_cmpuint(id, ==, part(s, 0)->number);
        g_assert_cmpuint(part(s, 1)->seq, <=, point(s, 0)->seq);
        s->bytes -= part(s, 0)->bytes;
        tt_window_drop_part(s->w);
        g_array_remove_index(s->parts, 0);
    }
}

static void add_point(Sim *s)
{
    TtWindowPoint p = { ++s->next_id, s->pos, s->now, s->seq };

    tt_window_add(s->w, &p);
    g_array_append_val(s->points, p);
}

static void check(Sim *s, uint64_t pace)
{
    TtWindowPoint first;

    g_assert_cmpuint(tt_window_n_parts(s->w), ==, s->parts->len);
    g_assert_cmpuint(tt_window_n_points(s->w), ==, s->points->len);
    g_assert_cmpuint(tt_window_log_bytes(s->w), ==, s->bytes);
    g_assert_cmpuint(tt_window_oldest_part(s->w), ==, part(s, 0)->number);
    g_assert_true(tt_window_first(s->w, &first));
    g_assert_cmpuint(first.id, ==, point(s, 0)->id);
    g_assert_cmpuint(part(s, 0)->seq, <=, first.seq);
    if (!s->limits.log_bytes) {
        /* as long as it is to be, and by one checkpoint's pace longer at most */
        g_assert_true(s->now < s->limits.ns ||
                      first.ns <= s->now - s->limits.ns || first.id == 1);
        g_assert_cmpuint(s->now - first.ns, <=,
                         s->limits.ns + 2 * (pace + STEP_MS * SECOND / 1000));
    }
}

static void run(uint32_t seed, uint64_t ns, uint64_t log_bytes,
                unsigned n_steps)
{
    Sim s = {
        .limits = { .ns = ns, .log_bytes = log_bytes },
        .rand = g_rand_new_with_seed(seed),
        .parts = g_array_new(false, false, sizeof(SimPart)),
        .points = g_array_new(false, false, sizeof(TtWindowPoint)),
    };
    uint64_t pace = ns / 8, last = 0, most = 0;

    s.w = tt_window_new(&s.limits);
    begin_part(&s);
    add_point(&s);
    for (unsigned i = 0; i < n_steps; i++) {
        s.now += g_rand_int_range(s.rand, 1, STEP_MS) * (SECOND / 1000);
        seal(&s, g_rand_int_range(s.rand, 100, i / 1000 % 2 ? 200000 : 5000));
        if (s.now - last >= pace || tt_window_wants_point(s.w)) {
            last = s.now;
            add_point(&s);
            g_assert_false(tt_window_wants_point(s.w));
            trim(&s);
            check(&s, pace);
            most = MAX(most, s.bytes);
        }
        if (g_rand_int_range(s.rand, 0, 200) == 0 && s.points->len > 2) {
            unsigned k = g_rand_int_range(s.rand, 1, s.points->len - 1);

            if (s.limits.log_bytes) {           /* thinned */
                tt_window_remove(s.w, point(&s, k)->id);
                g_array_remove_index(s.points, k);
            }
        }
    }
    if (log_bytes) {
        g_assert_cmpuint(most, <, log_bytes);
    }
    g_assert_cmpuint(s.parts->len, <, 400);
    tt_window_free(s.w);
    g_array_unref(s.parts);
    g_array_unref(s.points);
    g_rand_free(s.rand);
}

static void test_by_time(void)
{
    for (uint32_t seed = 0; seed < 12; seed++) {
        run(seed, (1 + seed * 20) * SECOND, 0, 20000);
    }
}

static void test_by_size(void)
{
    for (uint32_t seed = 0; seed < 12; seed++) {
        run(seed, 100000 * SECOND, (4 + seed) * MIB, 20000);
    }
}

/* A limit in the middle of the numbers: what a day of recording comes to. */
static void test_numbers_may_be_large(void)
{
    const TtWindowLimits limits = { .ns = SECOND };
    TtWindow *w = tt_window_new(&limits);
    TtWindowPoint p = { 1, INT64_MAX - 10, UINT64_MAX - 2 * SECOND,
                        1ull << 60 };

    g_assert_cmpuint(tt_window_oldest_part(w), ==, 0);
    g_assert_false(tt_window_wants_part(w));
    g_assert_false(tt_window_first(w, &p));
    tt_window_begin_part(w, UINT32_MAX - 1, (1ull << 60) - 5);
    tt_window_grow(w, MIB, 1ull << 60);
    tt_window_begin_part(w, UINT32_MAX, 1ull << 60);
    g_assert_cmpuint(tt_window_spent_part(w), ==, 0);   /* no point yet */
    tt_window_add(w, &p);
    g_assert_cmpuint(tt_window_spent_part(w), ==, 0);   /* nor is it sealed */
    tt_window_grow(w, 0, (1ull << 60) + 1);
    g_assert_cmpuint(tt_window_spent_part(w), ==, UINT32_MAX - 1);
    p = (TtWindowPoint) { 2, INT64_MAX - 1, UINT64_MAX - SECOND,
                          (1ull << 60) + 1 };
    tt_window_add(w, &p);
    g_assert_cmpuint(tt_window_surplus(w, UINT64_MAX), ==, 0);  /* not sealed */
    g_assert_cmpuint(tt_window_second(w), ==, 0);
    tt_window_grow(w, MIB, (1ull << 60) + 2);
    g_assert_cmpuint(tt_window_second(w), ==, 2);
    g_assert_cmpuint(tt_window_surplus(w, UINT64_MAX - 1), ==, 0);
    g_assert_cmpuint(tt_window_surplus(w, UINT64_MAX), ==, 1);
    g_assert_cmpuint(tt_window_surplus(w, 0), ==, 0);   /* a clock set back */
    tt_window_remove(w, 77);
    g_assert_cmpuint(tt_window_n_points(w), ==, 2);
    tt_window_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/window/by-time", test_by_time);
    g_test_add_func("/tt/window/by-size", test_by_size);
    g_test_add_func("/tt/window/numbers-may-be-large",
                    test_numbers_may_be_large);
    return g_test_run();
}
