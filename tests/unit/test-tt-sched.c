/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unit tests of the event scheduler, against plain searches of the model.
 */
#include "tt-log-util.h"
#include "log/tt-sched.h"

typedef struct Fixture {
    LogModel *m;
    TtLogReader *reader;
    TtSched *s;
} Fixture;

static Fixture open_model(LogModel *m, bool closed)
{
    Fixture f = { .m = m };
    g_autoptr(GByteArray) bytes = log_model_write(m, closed);
    TtStatus status = tt_log_reader_open(tt_io_mem_new(bytes->data, bytes->len),
                                         &f.reader, NULL);

    g_assert_cmpint(status, >=, 0);
    g_assert_cmpint(tt_sched_new(f.reader, &f.s, NULL), ==, TT_OK);
    return f;
}

static void close_fixture(Fixture *f)
{
    tt_sched_free(f->s);
    tt_log_reader_free(f->reader);
    log_model_free(f->m);
}

static const TtEvent *model_at(const LogModel *m, uint32_t i)
{
    return &g_array_index(m->events, TtEvent, i);
}

/* Mostly synchronous and nested events, with stops in between, many at the
 * same position, in short and empty segments. */
static LogModel *sched_model(uint32_t seed)
{
    static const uint8_t kinds[] = { 1, 1, 2, 5, 5, 5, 18, 18, 16, 32, 35, 36 };
    LogModel *m = log_model_new(seed);
    unsigned rare = 1 + seed % 40;      /* how seldom a stop is */

    for (unsigned s = 0; s < 1 + seed % 12; s++) {
        unsigned n = g_rand_int_range(m->rand, 0, seed % 3 ? 20 : 4);
        for (unsigned i = 0; i < n; i++) {
            TtEvent ev = { .kind = kinds[g_rand_int_range(m->rand, 0, 12)] };
            if (g_rand_int_range(m->rand, 0, rare)) {
                ev.kind = MIN(ev.kind, TT_EV_RAM);
                ev.nested = ev.kind >= TT_EV_INTR;
            }
            ev.pos = m->pos + (g_rand_int_range(m->rand, 0, 1 + seed % 5)
                               ? 0 : g_rand_int_range(m->rand, 0, 9));
            log_model_add(m, &ev);
        }
        log_model_cut(m);
    }
    return m;
}

static bool model_is_stop(const TtEvent *ev)
{
    return ev->kind >= 16 && !ev->nested;
}

/* What the horizon must keep to with the cursor before event @i. */
static void check_horizon(const LogModel *m, uint32_t i, uint64_t horizon)
{
    uint32_t n = m->events->len, stop = i;

    if (i == n) {
        g_assert_cmpuint(horizon, ==, UINT64_MAX);
        return;
    }
    while (stop < n && !model_is_stop(model_at(m, stop))) {
        stop++;
    }
    /* Never beyond the stop; never stuck while there is something to do. */
    uint64_t limit = model_at(m, MIN(stop, n - 1))->pos;
    g_assert_cmpuint(horizon, <=, limit);
    g_assert_cmpuint(horizon, >=, model_at(m, i)->pos);
    if (limit > model_at(m, i)->pos) {
        g_assert_cmpuint(horizon, >, model_at(m, i)->pos);
    }
    if (i == stop) {
        g_assert_cmpuint(horizon, ==, limit);
    }
}

static void test_horizon_never_passes_a_stop_nor_gets_stuck(void)
{
    for (uint32_t seed = 0; seed < 400; seed++) {
        Fixture f = open_model(sched_model(seed), true);
        uint32_t n = f.m->events->len;

        for (uint32_t i = 0; i <= n; i++) {
            if (seed % 3 == 0 || i % 3 == 0) {
                check_horizon(f.m, i, tt_sched_horizon(f.s));
            }
            if (i < n) {
                log_util_assert_same(tt_sched_peek(f.s), model_at(f.m, i));
                g_assert_cmpint(tt_sched_status(f.s, NULL), ==, TT_OK);
                tt_sched_pop(f.s);
            }
        }
        g_assert_null(tt_sched_peek(f.s));
        g_assert_cmpint(tt_sched_status(f.s, NULL), ==, TT_END);
        close_fixture(&f);
    }
}

static void test_seek_returns_to_any_place_told(void)
{
    for (uint32_t seed = 0; seed < 100; seed++) {
        Fixture f = open_model(sched_model(seed), seed % 2);
        uint32_t n = f.m->events->len;
        g_autofree TtCursor *told = g_new(TtCursor, n + 1);

        for (uint32_t i = 0; i <= n; i++) {
            told[i] = tt_sched_tell(f.s);
            if (i < n) {
                tt_sched_pop(f.s);
            }
        }
        for (unsigned k = 0; k < 200; k++) {
            uint32_t i = g_rand_int_range(f.m->rand, 0, n + 1);
            g_assert_cmpint(tt_sched_seek(f.s, told[i], NULL), ==, TT_OK);
            check_horizon(f.m, i, tt_sched_horizon(f.s));
            for (unsigned step = 0; step < k % 7 && i < n; step++, i++) {
                log_util_assert_same(tt_sched_peek(f.s), model_at(f.m, i));
                tt_sched_pop(f.s);
                check_horizon(f.m, i + 1, tt_sched_horizon(f.s));
            }
        }
        close_fixture(&f);
    }
}

static void test_seek_to_nowhere_changes_nothing(void)
{
    Fixture f = open_model(sched_model(31), true);
    TtCursor here;
    TtDiag d;

    tt_sched_pop(f.s);
    here = tt_sched_tell(f.s);
    g_assert_cmpint(tt_sched_seek(f.s, (TtCursor) { 99, 0 }, &d),
                    ==, TT_ERR_INVALID);
    g_assert_cmpint(tt_sched_seek(f.s, (TtCursor) { 0, 9999 }, &d),
                    ==, TT_ERR_INVALID);
    g_assert_cmpuint(tt_sched_tell(f.s).segment, ==, here.segment);
    g_assert_cmpuint(tt_sched_tell(f.s).index, ==, here.index);
    log_util_assert_same(tt_sched_peek(f.s), model_at(f.m, 1));
    close_fixture(&f);
}

/* Events with more empty segments between them than a reader keeps. */
static LogModel *gappy_model(void)
{
    LogModel *m = log_model_new(0);

    for (unsigned i = 0; i < 10; i++) {
        TtEvent ev = { .kind = TT_EV_TSC, .pos = i, .val = i };
        log_model_add(m, &ev);
        for (unsigned k = 0; k < i; k++) {
            log_model_cut(m);
        }
    }
    log_model_cut(m);
    return m;
}

static void test_a_peeked_event_outlives_one_move(void)
{
    for (unsigned round = 0; round < 2; round++) {
        Fixture f = open_model(round ? gappy_model() : sched_model(31), true);
        uint32_t n = f.m->events->len;

        g_assert_cmpuint(n, >, 9);
        for (uint32_t i = 0; i < n; i++) {
            const TtEvent *ev = tt_sched_peek(f.s);
            tt_sched_pop(f.s);
            tt_sched_horizon(f.s);
            tt_sched_peek(f.s);
            log_util_assert_same(ev, model_at(f.m, i));
        }
        close_fixture(&f);
    }
}

/* A long log without stops: looking ahead must not read it all. */
static void test_horizon_looks_one_segment_ahead(void)
{
    LogModel *m = log_model_new(0);
    uint64_t reads_before;

    for (unsigned i = 0; i < 300; i++) {
        TtEvent ev = { .kind = TT_EV_TSC, .pos = 10 * i };
        log_model_add(m, &ev);
        if (i % 3 == 2) {
            log_model_cut(m);
        }
    }
    g_autoptr(GByteArray) bytes = log_model_write(m, true);
    TtIo *io = tt_io_fault_new(tt_io_mem_new(bytes->data, bytes->len), 0,
                               TT_ERR_IO);
    TtLogReader *reader;
    TtSched *s;
    g_assert_cmpint(tt_log_reader_open(io, &reader, NULL), ==, TT_OK);
    g_assert_cmpint(tt_sched_new(reader, &s, NULL), ==, TT_OK);
    reads_before = tt_io_fault_count(io);
    g_assert_cmpuint(tt_sched_horizon(s), ==, 50);  /* last of segment 1 */
    g_assert_cmpuint(tt_sched_horizon(s), ==, 50);
    g_assert_cmpuint(tt_io_fault_count(io), ==, reads_before + 1);
    for (unsigned i = 0; i < 300; i++) {
        g_assert_cmpuint(tt_sched_horizon(s), ==,
                         MIN(10 * (i / 3 * 3 + 5), 2990));
        tt_sched_pop(s);
    }
    /* Each segment was read once. */
    g_assert_cmpuint(tt_io_fault_count(io), ==, reads_before + 99);
    tt_sched_free(s);
    tt_log_reader_free(reader);
    log_model_free(m);
}

static LogModel *one_event(TtEvent ev)
{
    LogModel *m = log_model_new(0);

    log_model_add(m, &ev);
    log_model_cut(m);
    return m;
}

static void test_match_tells_what_differs(void)
{
    const TtEvent in = { .kind = TT_EV_PIO_IN, .pos = 100, .addr = 0x3f8,
                         .size = 1, .val = 7, .aux = 3 };
    TtEvent seen = { .kind = TT_EV_PIO_IN, .pos = 100, .addr = 0x3f8,
                     .size = 1 };
    Fixture f = open_model(one_event(in), true);
    TtDiag d;

    g_assert_cmpint(tt_sched_match(f.s, &seen, &d), ==, TT_OK);
    log_util_assert_same(tt_sched_peek(f.s), &in);      /* not popped */

    TtEvent other[] = { seen, seen, seen, seen, seen };
    other[0].kind = TT_EV_PIO_OUT;
    other[1].pos = 101;
    other[2].addr = 0x3f9;
    other[3].size = 2;
    other[4].cpu = 1;
    for (unsigned i = 0; i < G_N_ELEMENTS(other); i++) {
        g_assert_cmpint(tt_sched_match(f.s, &other[i], &d),
                        ==, TT_ERR_MISMATCH);
        g_assert_cmpuint(d.position, ==, other[i].pos);
        g_assert_nonnull(strstr(d.text, "recorded: 100 pio-in port=0x3f8"));
        g_assert_nonnull(strstr(d.text, "replayed: 1"));
    }
    tt_sched_pop(f.s);
    g_assert_cmpint(tt_sched_match(f.s, &seen, &d), ==, TT_END);
    close_fixture(&f);
}

static void test_match_compares_the_value_of_outputs_only(void)
{
    static const uint8_t kinds[] = { TT_EV_PIO_IN, TT_EV_PIO_OUT,
                                     TT_EV_MMIO_LD, TT_EV_MMIO_ST, TT_EV_TSC };

    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        bool out = kinds[i] == TT_EV_PIO_OUT || kinds[i] == TT_EV_MMIO_ST;
        TtEvent ev = { .kind = kinds[i], .pos = 5, .val = 1 };
        Fixture f = open_model(one_event(ev), false);
        ev.val = 2;
        g_assert_cmpint(tt_sched_match(f.s, &ev, NULL), ==,
                        out ? TT_ERR_MISMATCH : TT_OK);
        tt_sched_pop(f.s);
        g_assert_cmpint(tt_sched_match(f.s, &ev, NULL), ==, TT_END_TORN);
        close_fixture(&f);
    }
}

static void test_context_shows_the_neighbours(void)
{
    LogModel *m = log_model_new(0);

    for (unsigned i = 0; i < 12; i++) {
        TtEvent ev = { .kind = TT_EV_TSC, .pos = 1000 + i, .val = i };
        log_model_add(m, &ev);
        if (i % 3 == 2) {
            log_model_cut(m);
        }
    }
    Fixture f = open_model(m, true);
    for (unsigned at = 0; at <= 12; at++) {
        g_autofree char *text = tt_sched_context(f.s, 4, 2);
        g_auto(GStrv) lines = g_strsplit(text, "\n", 0);
        unsigned first = at > 4 ? at - 4 : 0, end = MIN(at + 3, 12);

        g_assert_cmpuint(g_strv_length(lines), ==, end - first + 1);
        for (unsigned i = first; i < end; i++) {
            g_autofree char *pos = g_strdup_printf(" %u tsc", 1000 + i);
            g_assert_nonnull(strstr(lines[i - first], pos));
            g_assert_cmpint(lines[i - first][0], ==, i == at ? '>' : ' ');
        }
        if (at < 12) {
            tt_sched_pop(f.s);
        }
    }
    close_fixture(&f);
}

static void test_the_end_is_known_at_the_start(void)
{
    TtEvent ev = { .kind = TT_EV_INTR, .pos = 41 };
    Fixture f = open_model(one_event(ev), true);
    uint64_t end;

    g_assert_cmpint(tt_sched_end_pos(f.s, &end, NULL), ==, TT_OK);
    g_assert_cmpuint(end, ==, 42);
    close_fixture(&f);

    f = open_model(log_model_new(0), false);
    g_assert_cmpint(tt_sched_end_pos(f.s, &end, NULL), ==, TT_OK);
    g_assert_cmpuint(end, ==, 0);
    g_assert_null(tt_sched_peek(f.s));
    g_assert_cmpuint(tt_sched_horizon(f.s), ==, UINT64_MAX);
    g_assert_cmpint(tt_sched_status(f.s, NULL), ==, TT_END_TORN);
    g_autofree char *text = tt_sched_context(f.s, 4, 4);
    g_assert_cmpstr(text, ==, "");
    close_fixture(&f);
}

/* Position of the stop at or after event @i. */
static uint64_t next_stop(const LogModel *m, uint32_t i)
{
    while (i < m->events->len && !model_is_stop(model_at(m, i))) {
        i++;
    }
    return i < m->events->len ? model_at(m, i)->pos : UINT64_MAX;
}

/* The log with segment @bad damaged: the cursor comes to just before it, or to
 * where only it could say how to go on. Returns 1 in that second case. */
static unsigned walk_to_damage(const LogModel *m, TtLogReader *r,
                               const TtSegInfo *bad)
{
    uint32_t i = 0;
    TtSched *s;
    TtDiag d;

    if (bad->seq == 0) {
        g_assert_cmpint(tt_sched_new(r, &s, &d), ==, TT_ERR_FORMAT);
        g_assert_null(s);
        return 0;
    }
    g_assert_cmpint(tt_sched_new(r, &s, &d), ==, TT_OK);
    while (tt_sched_peek(s)) {
        uint64_t horizon = tt_sched_horizon(s);
        g_assert_cmpuint(horizon, <=, bad->first_pos);
        if (!tt_sched_peek(s)) {
            break;
        }
        /* Something can be done: a stop is due, or there is room to run. */
        g_assert_true(horizon > model_at(m, i)->pos ||
                      horizon == next_stop(m, i));
        tt_sched_pop(s);
        i++;
    }
    if (i < bad->first_event) {
        g_assert_cmpuint(model_at(m, i)->pos, ==, bad->first_pos);
    } else {
        g_assert_cmpuint(i, ==, bad->first_event);
    }
    g_assert_cmpint(tt_sched_status(s, &d), ==, TT_ERR_FORMAT);
    g_assert_nonnull(strstr(d.text, "damaged"));
    g_assert_cmpuint(tt_sched_horizon(s), <=, bad->first_pos);
    tt_sched_free(s);
    return i < bad->first_event;
}

static void test_a_damaged_segment_stops_the_cursor_before_it(void)
{
    unsigned n_blocked = 0, n_tried = 0;

    for (uint32_t seed = 30; seed < 90; seed++) {
        LogModel *m = sched_model(seed);
        g_autoptr(GByteArray) bytes = log_model_write(m, true);
        TtLogReader *reader = log_util_open(bytes->data, bytes->len, TT_OK);
        uint64_t n = tt_log_reader_n_segments(reader);

        for (uint64_t bad = 0; bad + 1 < n; bad++) {
            const TtSegInfo *info = tt_log_reader_info(reader, bad);
            uint64_t at = info->offset_bytes + 96;
            if (info->ev_raw == 0) {
                continue;
            }
            bytes->data[at] ^= 1;
            TtLogReader *r = log_util_open(bytes->data, bytes->len, TT_OK);
            bytes->data[at] ^= 1;
            n_blocked += walk_to_damage(m, r, info);
            n_tried++;
            tt_log_reader_free(r);
        }
        tt_log_reader_free(reader);
        log_model_free(m);
    }
    g_assert_cmpuint(n_tried, >, 100);
    g_assert_cmpuint(n_blocked, >, 10);
    g_assert_cmpuint(n_tried - n_blocked, >, 10);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/sched/horizon-never-passes-a-stop-nor-gets-stuck",
                    test_horizon_never_passes_a_stop_nor_gets_stuck);
    g_test_add_func("/tt/sched/seek-returns-to-any-place-told",
                    test_seek_returns_to_any_place_told);
    g_test_add_func("/tt/sched/seek-to-nowhere-changes-nothing",
                    test_seek_to_nowhere_changes_nothing);
    g_test_add_func("/tt/sched/a-peeked-event-outlives-one-move",
                    test_a_peeked_event_outlives_one_move);
    g_test_add_func("/tt/sched/horizon-looks-one-segment-ahead",
                    test_horizon_looks_one_segment_ahead);
    g_test_add_func("/tt/sched/match-tells-what-differs",
                    test_match_tells_what_differs);
    g_test_add_func("/tt/sched/match-compares-the-value-of-outputs-only",
                    test_match_compares_the_value_of_outputs_only);
    g_test_add_func("/tt/sched/context-shows-the-neighbours",
                    test_context_shows_the_neighbours);
    g_test_add_func("/tt/sched/the-end-is-known-at-the-start",
                    test_the_end_is_known_at_the_start);
    g_test_add_func("/tt/sched/a-damaged-segment-stops-the-cursor-before-it",
                    test_a_damaged_segment_stops_the_cursor_before_it);
    return g_test_run();
}
