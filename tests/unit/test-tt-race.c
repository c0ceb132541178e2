/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The race finder: its rules one by one, and against happens-before by brute force. */
#include "plugins-tt/race/tt-race.h"

#include <glib.h>
#include <string.h>

#define BASE 0x12340000u

static TtRace *race_new(bool has_flags)
{
    const TtRaceLimits limits = {
        .n_vcpus = 4, .max_bytes = 64 << 20, .max_pairs = 100000, .has_flags = has_flags,
    };

    return tt_race_new(&limits);
}

/* Position and place of an access are how many there were. */
static void use(TtRace *r, unsigned vcpu, uint64_t addr, unsigned size, bool is_write)
{
    TtRaceStats stats;
    TtRaceAccess a = {
        .addr = BASE + addr, .size = size, .vcpu = vcpu, .is_write = is_write,
    };

    tt_race_stats(r, &stats);
    a.place = a.position = stats.accesses;
    tt_race_access(r, &a);
}

static void atomic(TtRace *r, unsigned vcpu, uint64_t addr, unsigned size)
{
    TtRaceAccess a = {
        .addr = BASE + addr, .size = size, .vcpu = vcpu, .is_atomic = true, .place = 7777,
    };

    tt_race_access(r, &a);
    a.is_write = true;
    tt_race_access(r, &a);
}

static size_t end(TtRace *r)
{
    size_t n = tt_race_count(r);

    tt_race_free(r);
    return n;
}

/* ---- rule by rule ---- */

static void test_nothing_orders(void)
{
    TtRace *r = race_new(false);
    TtRacePair pair;

    use(r, 0, 4, 4, true);
    use(r, 1, 6, 4, false);             /* two bytes of it */
    g_assert_cmpuint(tt_race_count(r), ==, 1);
    tt_race_get(r, 0, &pair);
    g_assert_cmphex(pair.addr, ==, BASE + 6);
    g_assert_cmpuint(pair.len, ==, 2);
    g_assert_cmpuint(pair.times, ==, 1);
    g_assert_cmpuint(pair.earlier.vcpu, ==, 0);
    g_assert_cmpuint(pair.earlier.place, ==, 0);
    g_assert_true(pair.earlier.is_write);
    g_assert_cmpuint(pair.later.vcpu, ==, 1);
    g_assert_cmpuint(pair.later.position, ==, 1);
    g_assert_false(pair.later.is_write || pair.is_atomic_later);
    use(r, 2, 8, 1, false);             /* nobody wrote there */
    use(r, 0, 4, 4, false);             /* its own */
    g_assert_cmpuint(end(r), ==, 1);
}

static void test_across_cells(void)
{
    TtRace *r = race_new(false);
    TtRacePair pair;

    use(r, 0, 4, 16, true);
    use(r, 1, 0, 32, true);
    tt_race_get(r, 0, &pair);
    g_assert_cmphex(pair.addr, ==, BASE + 4);
    g_assert_cmpuint(pair.len, ==, 16);
    g_assert_cmpuint(pair.times, ==, 1);
    g_assert_cmpuint(end(r), ==, 1);
}

static void test_a_spin_lock(void)
{
    TtRace *r = race_new(false);

    for (unsigned i = 0; i < 12; i++) {
        unsigned vcpu = i % 3;

        atomic(r, vcpu, 64, 4);         /* taken; another spins on it */
        use(r, (vcpu + 1) % 3, 64, 4, false);
        use(r, vcpu, 0, 8, false);
        use(r, vcpu, 0, 8, true);
        use(r, vcpu, 64, 1, true);      /* given back, by its first byte */
    }
    g_assert_cmpuint(tt_race_count(r), ==, 0);
    use(r, 3, 0, 4, false);             /* without the lock */
    g_assert_cmpuint(end(r), ==, 1);
}

/* A part of a run may begin while a lock is held. */
static void test_a_lock_that_was_held(void)
{
    TtRace *r = race_new(false);

    use(r, 0, 0, 8, true);
    use(r, 0, 64, 4, true);             /* unlocks */
    atomic(r, 1, 64, 4);
    use(r, 1, 0, 8, true);
    g_assert_cmpuint(end(r), ==, 0);
}

static void test_beside_a_lock(void)
{
    TtRace *r = race_new(false);

    atomic(r, 0, 0, 4);
    use(r, 0, 4, 4, true);
    use(r, 1, 4, 4, true);
    g_assert_cmpuint(end(r), ==, 1);
}

static void test_a_flag(void)
{
    for (unsigned has_flags = 0; has_flags < 2; has_flags++) {
        TtRace *r = race_new(has_flags);

        use(r, 0, 0, 8, true);
        use(r, 0, 64, 1, true);         /* the flag */
        use(r, 1, 64, 1, false);
        use(r, 1, 0, 8, false);
        g_assert_cmpuint(tt_race_count(r), ==, has_flags ? 1 : 2);
        use(r, 1, 0, 8, true);
        use(r, 1, 64, 1, true);
        use(r, 2, 64, 1, false);
        use(r, 2, 0, 8, false);
        g_assert_cmpuint(end(r), ==, has_flags ? 1 : 6);
    }
}

static void test_atomic_later(void)
{
    TtRace *r = race_new(false);
    TtRacePair pair;

    use(r, 0, 0, 4, true);
    use(r, 1, 0, 4, false);
    use(r, 0, 32, 4, true);
    use(r, 1, 32, 4, false);
    use(r, 0, 64, 16, true);
    use(r, 1, 64, 16, false);
    atomic(r, 2, 2, 2);
    atomic(r, 2, 72, 4);                /* in the second cell of the last one */
    g_assert_cmpuint(tt_race_count(r), ==, 3);
    tt_race_get(r, 0, &pair);
    g_assert_true(pair.is_atomic_later);
    tt_race_get(r, 1, &pair);
    g_assert_false(pair.is_atomic_later);
    tt_race_get(r, 2, &pair);
    g_assert_true(pair.is_atomic_later);
    tt_race_free(r);
}

static void test_named_locks(void)
{
    TtRace *r = race_new(false);

    for (unsigned i = 0; i < 6; i++) {
        unsigned vcpu = i % 2;

        tt_race_acquire(r, vcpu, 5);
        use(r, vcpu, 0, 8, true);
        tt_race_release(r, vcpu, 5);
    }
    g_assert_cmpuint(tt_race_count(r), ==, 0);
    tt_race_acquire(r, 2, 6);           /* another lock */
    use(r, 2, 0, 8, true);
    g_assert_cmpuint(end(r), ==, 1);
}

static void test_interrupts(void)
{
    TtRace *r = race_new(false);

    use(r, 0, 0, 8, true);
    tt_race_send(r, 0, 1 << 1 | 1 << 2);
    tt_race_receive(r, 1);
    use(r, 1, 0, 8, false);
    tt_race_receive(r, 3);              /* it was not for this one */
    g_assert_cmpuint(tt_race_count(r), ==, 0);
    use(r, 3, 0, 8, false);
    use(r, 0, 8, 8, true);              /* after it was sent */
    tt_race_receive(r, 2);
    g_assert_cmpuint(tt_race_count(r), ==, 1);
    use(r, 2, 8, 8, false);
    g_assert_cmpuint(end(r), ==, 2);
}

/* ---- limits ---- */

static void test_memory_is_bounded(void)
{
    const TtRaceLimits limits = {
        .n_vcpus = 2, .max_bytes = TT_RACE_BYTES_MIN, .max_pairs = 10,
    };
    TtRace *r = tt_race_new(&limits);
    TtRaceStats stats;

    use(r, 0, 0, 4, true);
    for (uint64_t addr = TT_RACE_PAGE; addr < 32 << 20; addr += 512) {
        use(r, 0, addr, 8, true);
    }
    use(r, 1, 0, 4, true);              /* the other side is forgotten */
    tt_race_stats(r, &stats);
    g_assert_cmpuint(stats.peak_bytes, <=, limits.max_bytes);
    g_assert_cmpuint(stats.forgotten_pages, >, 0);
    g_assert_cmpuint(tt_race_count(r), ==, 0);
    for (unsigned i = 0; i < 30; i++) {
        use(r, i % 2, 0, 4, true);
    }
    tt_race_stats(r, &stats);
    g_assert_cmpuint(stats.races, ==, 30);
    g_assert_cmpuint(stats.not_kept, ==, 20);
    g_assert_cmpuint(end(r), ==, 10);
}

/* A lock orders what it did also when its page was forgotten meanwhile. */
static void test_a_lock_is_forgotten(void)
{
    const TtRaceLimits limits = {
        .n_vcpus = 2, .max_bytes = TT_RACE_BYTES_MIN, .max_pairs = 10,
    };
    const uint64_t lock = TT_RACE_PAGE, others = 2 * TT_RACE_PAGE;
    TtRace *r = tt_race_new(&limits);

    atomic(r, 0, lock, 4);
    use(r, 0, 0, 4, true);
    use(r, 0, lock, 4, true);           /* given back */
    for (uint64_t at = 0; at < 8 << 20; at += TT_RACE_PAGE) {
        use(r, 0, others + at, 8, true);
        use(r, 0, 0, 4, false);         /* this page stays known */
    }
    atomic(r, 1, lock, 4);
    use(r, 1, 0, 4, false);
    g_assert_cmpuint(tt_race_count(r), ==, 0);
    use(r, 1, 0, 4, true);              /* vCPU 0 read it after that */
    g_assert_cmpuint(end(r), ==, 1);
}

/* An access is looked at as a whole before any of its bytes orders others. */
static void test_a_wide_flag(void)
{
    TtRace *r = race_new(true);
    TtRacePair pair;

    use(r, 0, 0, 4, true);
    use(r, 0, 4, 4, true);
    use(r, 1, 0, 8, false);
    g_assert_cmpuint(tt_race_count(r), ==, 2);
    tt_race_get(r, 1, &pair);
    g_assert_cmpuint(pair.addr, ==, BASE + 4);
    g_assert_cmpuint(end(r), ==, 2);
}

static void test_clocks_end(void)
{
    const TtRaceLimits limits = {
        .n_vcpus = 2, .max_bytes = TT_RACE_BYTES_MIN, .max_pairs = 10, .max_clock = 100,
    };
    TtRace *r = tt_race_new(&limits);
    TtRaceStats stats;

    for (unsigned i = 0; i < 1000; i++) {
        atomic(r, 0, 64, 4);
        atomic(r, 1, 64, 4);
    }
    use(r, 0, 0, 4, true);
    use(r, 1, 0, 4, true);
    tt_race_stats(r, &stats);
    g_assert_cmpuint(stats.resets, >, 8);
    g_assert_cmpuint(stats.atomics, ==, 2000);
    g_assert_cmpuint(end(r), ==, 1);
}

/* ---- x86 ---- */

static void test_atomic_instructions(void)
{
    static const struct {
        uint8_t len, bytes[8];
        bool is;
    } all[] = {
        { 5, { 0xf0, 0x0f, 0xb1, 0x17, 0x90 }, true },  /* lock cmpxchg %edx,(%rdi) */
        { 4, { 0x66, 0xf0, 0xff, 0x07 }, true },        /* lock incw (%rdi) */
        { 6, { 0xf0, 0x48, 0x0f, 0xb1, 0x17, 0 }, true },
        { 2, { 0x87, 0x07 }, true },                    /* xchg %eax,(%rdi) */
        { 3, { 0x48, 0x87, 0x07 }, true },
        { 3, { 0x65, 0x86, 0x06 }, true },
        { 2, { 0x87, 0xc7 }, false },                   /* xchg %eax,%edi */
        { 3, { 0x49, 0x87, 0xc7 }, false },
        { 1, { 0x40 }, false },                         /* inc %eax */
        { 1, { 0x87 }, false },
        { 1, { 0xf0 }, true },
        { 4, { 0x0f, 0xb1, 0xf0, 0x90 }, false },
        { 2, { 0x89, 0x07 }, false },
        { 0, { 0 }, false },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(all); i++) {
        g_assert_cmpint(tt_race_x86_is_atomic(all[i].bytes, all[i].len), ==, all[i].is);
    }
}

static void test_targets(void)
{
    g_assert_cmphex(tt_race_x86_targets(1, 4, 0xc4028, 0, false), ==, 0xd);
    g_assert_cmphex(tt_race_x86_targets(1, 4, 0x84028, 0, false), ==, 0xf);
    g_assert_cmphex(tt_race_x86_targets(1, 4, 0x44028, 0, false), ==, 0x2);
    g_assert_cmphex(tt_race_x86_targets(1, 4, 0x4028, 3u << 24, false), ==, 0x8);
    g_assert_cmphex(tt_race_x86_targets(1, 4, 0x4028, 0xffu << 24, false), ==, 0xf);
    g_assert_cmphex(tt_race_x86_targets(1, 4, 0x4828, 5u << 24, false), ==, 0x5);
    g_assert_cmphex(tt_race_x86_targets(1, 4, 0x4028, 3, true), ==, 0x8);
    g_assert_cmphex(tt_race_x86_targets(1, 4, 0x4028, 0xffffffff, true), ==, 0xf);
    g_assert_cmphex(tt_race_x86_targets(1, 4, 0x4828, 6, true), ==, 0x6);
    g_assert_cmphex(tt_race_x86_targets(1, 4, 0x4828, 0x10001, true), ==, 0xd);
    g_assert_cmphex(tt_race_x86_targets(1, 4, 0x4028, 9u << 24, false), ==, 0xd);
    g_assert_cmphex(tt_race_x86_targets(7, 8, 0xc4028, 0, false), ==, 0x7f);
}

/* ---- against brute force ---- */

/*
 * What happens before what, as sets of events: no clocks. An event's set has all that
 * come before it. Each byte is by itself.
 */
#define EVENTS  400
#define BYTES   24
#define VCPUS   4
#define LOCKS   2

typedef struct Set {
    uint64_t bits[(EVENTS + 63) / 64];
} Set;

typedef struct Byte {
    bool is_sync;
    int written;                /* the write of a synchronisation, or -1 */
    int writer;                 /* who wrote it last before it was one, or -1 */
    GArray *uses;               /* of Use, while it is none */
} Byte;

typedef struct Use {
    int event;
    unsigned vcpu;
    bool is_write;
} Use;

typedef struct Model {
    Set before[EVENTS];
    int last[VCPUS];            /* the last event of each vCPU, or -1 */
    Set locks[LOCKS], mail[VCPUS];
    Byte bytes[BYTES];
    bool races[BYTES];          /* there is one */
    bool found[BYTES];          /* the race finder says so */
    unsigned n_wrong;
} Model;

static void set_add(Set *s, int event)
{
    s->bits[event / 64] |= 1ull << event % 64;
}

static bool set_has(const Set *s, int event)
{
    return s->bits[event / 64] >> event % 64 & 1;
}

static void set_join(Set *to, const Set *from)
{
    for (size_t i = 0; i < G_N_ELEMENTS(to->bits); i++) {
        to->bits[i] |= from->bits[i];
    }
}

/* @event comes after @other, and all before that. */
static void follows(Model *m, int event, int other)
{
    if (other >= 0) {
        set_join(&m->before[event], &m->before[other]);
        set_add(&m->before[event], other);
    }
}

static void model_access(Model *m, int event, const TtRaceAccess *a)
{
    for (unsigned i = a->addr - BASE; i < a->addr - BASE + a->size; i++) {
        Byte *b = &m->bytes[i];

        if (a->is_atomic && !b->is_sync) {
            b->is_sync = true;
            if (b->writer >= 0 && b->writer != a->vcpu) {
                follows(m, event, m->last[b->writer]);
                b->written = m->last[b->writer];
            }
        }
        if (b->is_sync && !a->is_write) {
            follows(m, event, b->written);
        }
    }
    for (unsigned i = a->addr - BASE; i < a->addr - BASE + a->size; i++) {
        Byte *b = &m->bytes[i];
        Use use_now = { event, a->vcpu, a->is_write };

        if (b->is_sync) {
            b->written = a->is_write ? event : b->written;
            continue;
        }
        for (guint k = 0; k < b->uses->len; k++) {
            Use *u = &g_array_index(b->uses, Use, k);

            m->races[i] |= u->vcpu != a->vcpu && (u->is_write || a->is_write) &&
                !set_has(&m->before[event], u->event);
        }
        g_array_append_val(b->uses, use_now);
        b->writer = a->is_write ? a->vcpu : b->writer;
    }
}

static void observe(void *opaque, uint64_t addr, uint64_t len, const TtRaceSide *earlier,
                    const TtRaceSide *later)
{
    Model *m = opaque;

    /* The model has seen this access already. */
    m->n_wrong += set_has(&m->before[later->place], earlier->place) ||
        !(earlier->is_write || later->is_write) || earlier->vcpu == later->vcpu;
    for (uint64_t i = addr - BASE; i < addr - BASE + len; i++) {
        m->n_wrong += !m->races[i];
        m->found[i] = true;
    }
}

/* Few bytes and few threads, so that much of it meets. Mostly ordered: what is not is
 * soon found, and then there is little left to see. */
static void happen(Model *m, TtRace *r, int event, GRand *rand, unsigned percent)
{
    static const unsigned sizes[] = { 1, 2, 4, 8, 16 };
    unsigned vcpu = g_rand_int_range(rand, 0, VCPUS), kind = g_rand_int_range(rand, 0, 100);
    unsigned lock = g_rand_int_range(rand, 0, LOCKS);
    unsigned to = g_rand_int_range(rand, 0, VCPUS);
    TtRaceAccess a = { .vcpu = vcpu, .place = event, .position = event };

    follows(m, event, m->last[vcpu]);
    if (kind < percent / 4) {
        set_join(&m->locks[lock], &m->before[event]);
        set_add(&m->locks[lock], event);
        tt_race_release(r, vcpu, lock);
    } else if (kind < percent / 2) {
        set_join(&m->before[event], &m->locks[lock]);
        tt_race_acquire(r, vcpu, lock);
    } else if (kind < percent * 3 / 4) {
        set_join(&m->mail[to], &m->before[event]);
        set_add(&m->mail[to], event);
        tt_race_send(r, vcpu, 1u << to);
    } else if (kind < percent) {
        set_join(&m->before[event], &m->mail[vcpu]);
        tt_race_receive(r, vcpu);
    } else {
        a.size = sizes[g_rand_int_range(rand, 0, G_N_ELEMENTS(sizes))];
        a.addr = BASE + g_rand_int_range(rand, 0, BYTES - a.size + 1);
        a.is_write = g_rand_int_range(rand, 0, 3) == 0;
        a.is_atomic = kind < percent + (100 - percent) / 20;
        model_access(m, event, &a);
        tt_race_access(r, &a);
    }
    m->last[vcpu] = event;
}

static void run_model(uint32_t seed)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    Model *m = g_new0(Model, 1);
    TtRace *r = race_new(false);
    int n = g_rand_int_range(rand, 2, EVENTS);
    unsigned percent = g_rand_int_range(rand, 0, 97);

    for (unsigned i = 0; i < VCPUS; i++) {
        m->last[i] = -1;
    }
    for (unsigned i = 0; i < BYTES; i++) {
        m->bytes[i] = (Byte) { false, -1, -1, g_array_new(false, false, sizeof(Use)) };
    }
    tt_race_observe(r, observe, m);
    for (int i = 0; i < n; i++) {
        happen(m, r, i, rand, percent);
    }
    g_assert_cmpuint(m->n_wrong, ==, 0);
    g_assert_cmpmem(m->found, sizeof(m->found), m->races, sizeof(m->races));
    for (unsigned i = 0; i < BYTES; i++) {
        g_array_free(m->bytes[i].uses, true);
    }
    tt_race_free(r);
    g_free(m);
}

static void test_as_by_brute_force(void)
{
    uint32_t seed = g_test_rand_int();

    for (uint32_t i = 0; i < 4000; i++) {
        g_test_message("seed %u", seed + i);
        run_model(seed + i);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/race/nothing-orders", test_nothing_orders);
    g_test_add_func("/tt/race/across-cells", test_across_cells);
    g_test_add_func("/tt/race/a-spin-lock", test_a_spin_lock);
    g_test_add_func("/tt/race/a-lock-that-was-held", test_a_lock_that_was_held);
    g_test_add_func("/tt/race/beside-a-lock", test_beside_a_lock);
    g_test_add_func("/tt/race/a-flag", test_a_flag);
    g_test_add_func("/tt/race/atomic-later", test_atomic_later);
    g_test_add_func("/tt/race/named-locks", test_named_locks);
    g_test_add_func("/tt/race/interrupts", test_interrupts);
    g_test_add_func("/tt/race/memory-is-bounded", test_memory_is_bounded);
    g_test_add_func("/tt/race/a-lock-is-forgotten", test_a_lock_is_forgotten);
    g_test_add_func("/tt/race/a-wide-flag", test_a_wide_flag);
    g_test_add_func("/tt/race/clocks-end", test_clocks_end);
    g_test_add_func("/tt/race/atomic-instructions", test_atomic_instructions);
    g_test_add_func("/tt/race/targets", test_targets);
    g_test_add_func("/tt/race/as-by-brute-force", test_as_by_brute_force);
    return g_test_run();
}
