/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records and replays a simulated vCPU with the real log, through the interface
 * that accelerators implement and nothing else (accel-tt/tt-vcpu-backend.h).
 *
 * Random programs meet interrupts, writes of a device and checks at random
 * positions; their replay, in turns of other lengths, must end in the same state.
 * A backend with a fault must be found out.
 */
#include "sim-vcpu.h"
#include "tt-log-util.h"
#include "log/tt-sched.h"

#include <string.h>

#define PROGRAMS        300u
#define POSITIONS       3000u   /* of a recording */

/* The end of a run, or a place in it. */
typedef struct State {
    GByteArray *cpu;
    uint8_t ram[SIM_RAM_BYTES];
    bool is_halted;
    uint64_t pos;
    TtCursor cursor;            /* of a replay */
} State;

static void state_cleanup(State *s)
{
    if (s->cpu) {
        g_byte_array_unref(s->cpu);
    }
}

static State state_take(const TtVcpuBackend *be, struct CPUState *cpu,
                        uint64_t pos)
{
    State s = { .cpu = be->save(cpu), .pos = pos,
                .is_halted = sim_vcpu_halted(cpu) };

    memcpy(s.ram, sim_vcpu_ram(cpu), sizeof(s.ram));
    return s;
}

static bool state_is_equal(const State *a, const State *b)
{
    return a->pos == b->pos && a->is_halted == b->is_halted &&
           a->cpu->len == b->cpu->len &&
           !memcmp(a->cpu->data, b->cpu->data, a->cpu->len) &&
           !memcmp(a->ram, b->ram, sizeof(a->ram));
}

/* One turn of at most @n positions. */
static uint64_t turn(const TtVcpuBackend *be, struct CPUState *cpu, uint64_t n)
{
    const TtRunMode how = { .is_blind = true };
    uint64_t passed;

    be->prepare();
    be->arm(cpu, MIN(n, be->limit()));
    be->run(cpu, &how);
    passed = be->count(cpu);
    be->disarm(cpu);
    return passed;
}

/* ---- recording ---- */

typedef struct Recorder {
    const TtVcpuBackend *be;
    struct CPUState *cpu;
    LogModel *log;
    uint64_t pos;               /* of the last count */
} Recorder;

static uint64_t note(Recorder *r, TtEvent ev)
{
    ev.pos = r->pos + r->be->passed(r->cpu);
    log_model_add(r->log, &ev);
    return ev.val;
}

static uint64_t random_value(Recorder *r)
{
    return (uint64_t)g_rand_int(r->log->rand) << 32 | g_rand_int(r->log->rand);
}

static uint64_t record_in(void *opaque, uint16_t port)
{
    return note(opaque, (TtEvent) { .kind = TT_EV_PIO_IN, .addr = port,
                                    .size = 8, .val = random_value(opaque) });
}

static void record_out(void *opaque, uint16_t port, uint64_t value)
{
    note(opaque, (TtEvent) { .kind = TT_EV_PIO_OUT, .addr = port, .size = 8,
                             .val = value });
}

static uint64_t record_clock(void *opaque)
{
    return note(opaque, (TtEvent) { .kind = TT_EV_TSC,
                                    .val = random_value(opaque) });
}

static void record_interrupt(Recorder *r, uint64_t intr_class)
{
    uint64_t vector = g_rand_int_range(r->log->rand, 0, 256);

    note(r, (TtEvent) { .kind = TT_EV_INTR, .addr = intr_class,
                        .val = vector });
    r->be->deliver(r->cpu, intr_class, vector);
    r->pos++;
}

/* A device writes where the program reads. */
static void record_dma(Recorder *r)
{
    unsigned offset = g_rand_int_range(r->log->rand, 0, 32);
    uint64_t word = random_value(r);
    uint8_t *bytes = g_memdup2(&word, sizeof(word));

    g_ptr_array_add(r->log->data, bytes);
    note(r, (TtEvent) { .kind = TT_EV_RAM, .val = offset, .data = bytes,
                        .len = sizeof(word) });
    memcpy(sim_vcpu_ram(r->cpu) + offset, bytes, sizeof(word));
    r->pos++;
}

/* A sync point: a check, and the caches emptied. */
static void record_check(Recorder *r)
{
    r->be->flush(r->cpu);
    note(r, (TtEvent) { .kind = TT_EV_CHECK, .addr = r->be->fingerprint(r->cpu),
                        .val = r->be->digest(r->cpu) });
}

/* What comes from outside between two turns. */
static void record_outside(Recorder *r)
{
    if (sim_vcpu_halted(r->cpu)) {
        record_interrupt(r, TT_INTR_HARD);
        return;
    }
    switch (g_rand_int_range(r->log->rand, 0, 6)) {
    case 0:
        record_interrupt(r, TT_INTR_NMI);
        break;
    case 1:
        if (sim_vcpu_takes_interrupts(r->cpu)) {
            record_interrupt(r, TT_INTR_HARD);
        }
        break;
    case 2:
        record_dma(r);
        break;
    case 3:
        record_check(r);
        break;
    case 4:
        log_model_cut(r->log);          /* the segment is full */
        break;
    default:
        break;
    }
}

/* The log of a program's run; *@end is how it ends. */
static LogModel *record(const TtVcpuBackend *be, uint32_t seed, State *end)
{
    Recorder r = { .be = be, .log = log_model_new(seed) };
    const SimWorld world = { record_in, record_out, record_clock, &r };

    r.cpu = sim_vcpu_new(seed, &world);
    while (r.pos < POSITIONS) {
        r.pos += turn(be, r.cpu, g_rand_int_range(r.log->rand, 1, 60));
        record_outside(&r);
    }
    record_check(&r);
    note(&r, (TtEvent) { .kind = TT_EV_FINISH, .val = TT_FINISH_QUIT });
    log_model_cut(r.log);
    *end = state_take(be, r.cpu, r.pos);
    sim_vcpu_free(r.cpu);
    return r.log;
}

/* ---- replaying ---- */

typedef struct Replayer {
    const TtVcpuBackend *be;
    struct CPUState *cpu;
    TtLogReader *reader;
    TtSched *sched;
    GRand *rand;
    uint64_t pos;
    bool diverged, finished;
    State middle;               /* taken at some check, if wanted */
    unsigned n_checks;
} Replayer;

/* The value of the synchronous event that is due. */
static uint64_t feed(Replayer *r, TtEvent seen)
{
    uint64_t val = 0;

    seen.pos = r->pos + r->be->passed(r->cpu);
    if (!r->diverged &&
        tt_sched_match(r->sched, &seen, NULL) == TT_OK) {
        val = tt_sched_peek(r->sched)->val;
        tt_sched_pop(r->sched);
    } else {
        r->diverged = true;
    }
    return val;
}

static uint64_t replay_in(void *opaque, uint16_t port)
{
    return feed(opaque, (TtEvent) { .kind = TT_EV_PIO_IN, .addr = port,
                                    .size = 8 });
}

static void replay_out(void *opaque, uint16_t port, uint64_t value)
{
    feed(opaque, (TtEvent) { .kind = TT_EV_PIO_OUT, .addr = port, .size = 8,
                             .val = value });
}

static uint64_t replay_clock(void *opaque)
{
    return feed(opaque, (TtEvent) { .kind = TT_EV_TSC });
}

static void apply(Replayer *r, const TtEvent *ev)
{
    switch (ev->kind) {
    case TT_EV_INTR:
        r->be->deliver(r->cpu, ev->addr, ev->val);
        break;
    case TT_EV_RAM:
        memcpy(sim_vcpu_ram(r->cpu) + ev->val, ev->data, ev->len);
        break;
    case TT_EV_CHECK:
        r->be->flush(r->cpu);
        r->diverged |= ev->addr != r->be->fingerprint(r->cpu) ||
                       ev->val != r->be->digest(r->cpu);
        break;
    case TT_EV_FINISH:
        r->finished = true;
        break;
    default:                            /* inside an instruction, that is */
        r->diverged = true;
        break;
    }
    r->pos += tt_event_step(ev);
}

/* All that comes from outside at this position. */
static void apply_due(Replayer *r)
{
    const TtEvent *ev;

    while (!r->diverged && (ev = tt_sched_peek(r->sched)) &&
           !TT_EV_IS_SYNC(ev->kind) && ev->pos <= r->pos) {
        bool is_check = ev->kind == TT_EV_CHECK;

        if (ev->pos < r->pos) {
            r->diverged = true;         /* the vCPU ran past it */
            return;
        }
        apply(r, ev);
        tt_sched_pop(r->sched);
        if (is_check && ++r->n_checks == 5 && !r->middle.cpu) {
            r->middle = state_take(r->be, r->cpu, r->pos);
            r->middle.cursor = tt_sched_tell(r->sched);
        }
    }
}

/* To the end of the log, in turns of any length. False: it diverged. */
static bool replay_on(Replayer *r)
{
    apply_due(r);
    while (!r->diverged && !r->finished) {
        uint64_t horizon = tt_sched_horizon(r->sched), n, passed;

        if (horizon <= r->pos) {
            return false;               /* an instruction did not ask for it */
        }
        n = g_rand_int_range(r->rand, 1, 200);
        n = MIN(n, horizon - r->pos);
        passed = turn(r->be, r->cpu, n);
        r->pos += passed;
        apply_due(r);
        if (!passed && sim_vcpu_halted(r->cpu)) {
            return false;               /* nothing wakes it */
        }
    }
    return !r->diverged;
}

static void replayer_open(Replayer *r, const TtVcpuBackend *be, uint32_t seed,
                          const LogModel *log)
{
    const SimWorld world = { replay_in, replay_out, replay_clock, r };
    g_autoptr(GByteArray) bytes = log_model_write(log, true);

    *r = (Replayer) { .be = be, .rand = g_rand_new_with_seed(~seed) };
    r->reader = log_util_open(bytes->data, bytes->len, TT_OK);
    g_assert_cmpint(tt_sched_new(r->reader, &r->sched, NULL), ==, TT_OK);
    r->cpu = sim_vcpu_new(seed, &world);
}

static void replayer_close(Replayer *r)
{
    sim_vcpu_free(r->cpu);
    tt_sched_free(r->sched);
    tt_log_reader_free(r->reader);
    state_cleanup(&r->middle);
    g_rand_free(r->rand);
}

/* Back to @s, whose cursor is known. */
static bool replayer_go_back(Replayer *r, const State *s)
{
    struct Error *err = NULL;

    if (!r->be->load(r->cpu, s->cpu->data, s->cpu->len, &err)) {
        return false;
    }
    memcpy(sim_vcpu_ram(r->cpu), s->ram, sizeof(s->ram));
    sim_vcpu_set_halted(r->cpu, s->is_halted);
    g_assert_cmpint(tt_sched_seek(r->sched, s->cursor, NULL), ==, TT_OK);
    r->pos = s->pos;
    r->finished = false;
    return true;
}

/* Records with one backend and replays with another, twice from the middle on if
 * @again. True: exact. */
static bool is_exact(const TtVcpuBackend *recorder,
                     const TtVcpuBackend *replayer, uint32_t seed, bool again)
{
    State end;
    LogModel *log = record(recorder, seed, &end);
    bool exact;
    Replayer r;

    replayer_open(&r, replayer, seed, log);
    exact = replay_on(&r);
    for (unsigned i = 0; exact && i < 1 + again; i++) {
        State here = state_take(&sim_vcpu_backend, r.cpu, r.pos);

        exact = state_is_equal(&here, &end);
        state_cleanup(&here);
        if (exact && again && !i && r.middle.cpu) {
            exact = replayer_go_back(&r, &r.middle) && replay_on(&r);
        }
    }
    replayer_close(&r);
    state_cleanup(&end);
    log_model_free(log);
    return exact;
}

/* ---- tests ---- */

static void test_replay_ends_in_the_same_state(void)
{
    for (uint32_t seed = 0; seed < PROGRAMS; seed++) {
        if (!is_exact(&sim_vcpu_backend, &sim_vcpu_backend, seed, false)) {
            g_error("the replay of program %u is not exact", seed);
        }
    }
}

static void test_replay_goes_on_from_a_state_taken_at_a_check(void)
{
    for (uint32_t seed = PROGRAMS; seed < 2 * PROGRAMS; seed++) {
        if (!is_exact(&sim_vcpu_backend, &sim_vcpu_backend, seed, true)) {
            g_error("the replay of program %u is not exact", seed);
        }
    }
}

/* How many of the programs find a fault of the replaying backend out. */
static unsigned found_out(const TtVcpuBackend *faulty)
{
    unsigned n = 0;

    for (uint32_t seed = 0; seed < 50; seed++) {
        n += !is_exact(&sim_vcpu_backend, faulty, seed, true);
    }
    return n;
}

static void arm_late(struct CPUState *cpu, uint64_t n)
{
    sim_vcpu_backend.arm(cpu, n + 1);
}

static void test_stops_one_late_are_found_out(void)
{
    TtVcpuBackend faulty = sim_vcpu_backend;

    faulty.arm = arm_late;
    g_assert_cmpuint(found_out(&faulty), >=, 40);
}

static uint64_t count_short(struct CPUState *cpu)
{
    uint64_t n = sim_vcpu_backend.count(cpu);

    return n > 20 ? n - 1 : n;
}

static void test_wrong_positions_are_found_out(void)
{
    TtVcpuBackend faulty = sim_vcpu_backend;

    faulty.count = count_short;
    g_assert_cmpuint(found_out(&faulty), >=, 40);
}

static GByteArray *save_less(struct CPUState *cpu)
{
    GByteArray *state = sim_vcpu_backend.save(cpu);

    memset(state->data, 0, sizeof(uint64_t));   /* a register */
    return state;
}

static void test_state_that_is_not_taken_is_found_out(void)
{
    TtVcpuBackend faulty = sim_vcpu_backend;

    faulty.save = save_less;
    g_assert_cmpuint(found_out(&faulty), >=, 40);
}

static void flush_nothing(struct CPUState *cpu)
{
}

static void test_caches_that_are_not_flushed_are_found_out(void)
{
    TtVcpuBackend faulty = sim_vcpu_backend;

    faulty.flush = flush_nothing;
    g_assert_cmpuint(found_out(&faulty), >=, 3);
}

static bool deliver_nothing(struct CPUState *cpu, uint64_t intr_class,
                            uint64_t vector)
{
    return false;
}

static void test_interrupts_that_are_not_delivered_are_found_out(void)
{
    TtVcpuBackend faulty = sim_vcpu_backend;

    faulty.deliver = deliver_nothing;
    g_assert_cmpuint(found_out(&faulty), >=, 40);
}

static void test_state_of_another_length_is_refused(void)
{
    const SimWorld world = { 0 };
    struct CPUState *cpu = sim_vcpu_new(1, &world);
    g_autoptr(GByteArray) state = sim_vcpu_backend.save(cpu);
    struct Error *err = NULL;

    g_assert_false(sim_vcpu_backend.load(cpu, state->data, state->len - 1,
                                         &err));
    g_assert_nonnull(err);
    sim_vcpu_free(cpu);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/vcpu-backend/replay-ends-in-the-same-state",
                    test_replay_ends_in_the_same_state);
    g_test_add_func("/tt/vcpu-backend/replay-goes-on-from-a-state-at-a-check",
                    test_replay_goes_on_from_a_state_taken_at_a_check);
    g_test_add_func("/tt/vcpu-backend/stops-one-late-are-found-out",
                    test_stops_one_late_are_found_out);
    g_test_add_func("/tt/vcpu-backend/wrong-positions-are-found-out",
                    test_wrong_positions_are_found_out);
    g_test_add_func("/tt/vcpu-backend/state-not-taken-is-found-out",
                    test_state_that_is_not_taken_is_found_out);
    g_test_add_func("/tt/vcpu-backend/caches-not-flushed-are-found-out",
                    test_caches_that_are_not_flushed_are_found_out);
    g_test_add_func("/tt/vcpu-backend/interrupts-not-delivered-are-found-out",
                    test_interrupts_that_are_not_delivered_are_found_out);
    g_test_add_func("/tt/vcpu-backend/state-of-another-length-is-refused",
                    test_state_of_another_length_is_refused);
    return g_test_run();
}
