/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A simulated vCPU: see sim-vcpu.h. One instruction is one position.
 */
#include "sim-vcpu.h"
#include "log/tt-log.h"

#include <glib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define CODE_BYTES      256u
#define N_REGS          4u

/* All that save takes. */
typedef struct Visible {
    uint64_t reg[N_REGS];
    uint32_t pc, return_pc;
    uint32_t takes_interrupts;
    uint32_t unused;            /* no padding: it is hashed */
} Visible;

struct CPUState {
    Visible v;
    bool is_halted;
    /* One word of RAM as it was when it was read; a device's write misses it. */
    bool is_cached;
    uint32_t cached_at;
    uint64_t cached;
    uint8_t ram[SIM_RAM_BYTES];
    uint8_t code[CODE_BYTES];
    SimWorld world;
    uint64_t passed;            /* since the last arm or count */
    uint64_t left;              /* up to the stop */
    bool is_armed;
};

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t h = (a ^ b * 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull;

    return h ^ h >> 31;
}

/* ---- instructions ---- */

static uint64_t load_word(struct CPUState *cpu, uint32_t at)
{
    if (!cpu->is_cached || cpu->cached_at != at) {
        memcpy(&cpu->cached, cpu->ram + at, sizeof(cpu->cached));
        cpu->cached_at = at;
        cpu->is_cached = true;
    }
    return cpu->cached;
}

static void store_word(struct CPUState *cpu, uint32_t at, uint64_t value)
{
    memcpy(cpu->ram + at, &value, sizeof(value));
    if (cpu->cached_at == at) {
        cpu->cached = value;
    }
}

/* Few words, so that program and devices meet. */
static uint32_t address_of(uint64_t reg)
{
    return reg % 4 * sizeof(uint64_t);
}

static void one_instruction(struct CPUState *cpu)
{
    Visible *v = &cpu->v;
    uint8_t op = cpu->code[v->pc], next = cpu->code[(v->pc + 1) % CODE_BYTES];
    uint64_t *a = &v->reg[op >> 4 & 3], *b = &v->reg[op >> 6];

    v->pc = (v->pc + 1) % CODE_BYTES;
    switch (op & 15) {
    case 0 ... 3:
        *a = mix(*a + *b, v->pc);
        break;
    case 4 ... 6:
        *a ^= load_word(cpu, address_of(*b));
        break;
    case 7 ... 8:
        store_word(cpu, address_of(*b), *a);
        break;
    case 9:
        v->pc = *a & 1 ? next : v->pc;
        break;
    case 10:
        *a = cpu->world.in(cpu->world.opaque, next);
        break;
    case 11:
        cpu->world.out(cpu->world.opaque, next, *a);
        break;
    case 12:                            /* return from an interrupt */
        v->pc = v->return_pc;
        v->return_pc = next;
        v->takes_interrupts = true;
        break;
    case 13:
        v->takes_interrupts = *a >> 3 & 1;
        break;
    case 14:
        cpu->is_halted = v->takes_interrupts;
        break;
    default:
        *b += cpu->world.clock(cpu->world.opaque);
        break;
    }
}

/* ---- the interface ---- */

static void sim_arm(struct CPUState *cpu, uint64_t n)
{
    cpu->passed = 0;
    cpu->left = n;
    cpu->is_armed = true;
}

static uint64_t sim_passed(struct CPUState *cpu)
{
    return cpu->passed;
}

static uint64_t sim_count(struct CPUState *cpu)
{
    uint64_t n = cpu->passed;

    cpu->passed = 0;
    return n;
}

static void sim_disarm(struct CPUState *cpu)
{
    g_assert(cpu->passed == 0);         /* it was counted */
    cpu->is_armed = false;
}

static int sim_run(struct CPUState *cpu, const TtRunMode *how)
{
    g_assert(cpu->is_armed);
    while (cpu->left && !cpu->is_halted) {
        one_instruction(cpu);
        cpu->left--;
        cpu->passed++;
    }
    return cpu->is_halted ? SIM_EXCP_HALTED : SIM_EXCP_STOP;
}

static uint64_t sim_limit(void)
{
    return UINT64_MAX;
}

static void sim_prepare(void)
{
}

static GByteArray *sim_save(struct CPUState *cpu)
{
    return g_byte_array_append(g_byte_array_new(), (const uint8_t *)&cpu->v,
                               sizeof(cpu->v));
}

static bool sim_load(struct CPUState *cpu, const uint8_t *data, size_t len,
                     struct Error **errp)
{
    static struct Error wrong = { "the state has another length" };

    if (len != sizeof(cpu->v)) {
        *errp = &wrong;
        return false;
    }
    memcpy(&cpu->v, data, len);
    cpu->v.pc %= CODE_BYTES;
    cpu->v.return_pc %= CODE_BYTES;
    cpu->is_cached = false;
    return true;
}

static uint64_t sim_digest(struct CPUState *cpu)
{
    return XXH3_64bits(&cpu->v, sizeof(cpu->v));
}

static uint64_t sim_fingerprint(struct CPUState *cpu)
{
    return XXH3_64bits(cpu->ram, sizeof(cpu->ram));
}

static void sim_flush(struct CPUState *cpu)
{
    cpu->is_cached = false;
}

static void sim_turn_to(struct CPUState *cpu)
{
}

static bool sim_deliver(struct CPUState *cpu, uint64_t intr_class,
                        uint64_t vector)
{
    cpu->v.return_pc = cpu->v.pc;
    cpu->v.pc = vector % CODE_BYTES;
    cpu->v.takes_interrupts &= intr_class != TT_INTR_HARD;
    cpu->is_halted = false;
    return true;
}

static void sim_mode_changed(struct CPUState *cpu)
{
    cpu->is_cached = false;
}

const TtVcpuBackend sim_vcpu_backend = {
    .name = "sim",
    .arm = sim_arm,
    .passed = sim_passed,
    .count = sim_count,
    .disarm = sim_disarm,
    .run = sim_run,
    .limit = sim_limit,
    .prepare = sim_prepare,
    .save = sim_save,
    .load = sim_load,
    .digest = sim_digest,
    .fingerprint = sim_fingerprint,
    .flush = sim_flush,
    .turn_to = sim_turn_to,
    .deliver = sim_deliver,
    .mode_changed = sim_mode_changed,
};

/* ---- the machine ---- */

struct CPUState *sim_vcpu_new(uint32_t seed, const SimWorld *world)
{
    struct CPUState *cpu = g_new0(struct CPUState, 1);

    for (unsigned i = 0; i < CODE_BYTES; i++) {
        cpu->code[i] = mix(seed, i + 1) >> 24;
    }
    for (unsigned i = 0; i < N_REGS; i++) {
        cpu->v.reg[i] = mix(seed, ~i);
    }
    cpu->v.takes_interrupts = true;
    cpu->world = *world;
    return cpu;
}

void sim_vcpu_free(struct CPUState *cpu)
{
    g_free(cpu);
}

uint8_t *sim_vcpu_ram(struct CPUState *cpu)
{
    return cpu->ram;
}

bool sim_vcpu_takes_interrupts(const struct CPUState *cpu)
{
    return cpu->v.takes_interrupts;
}

bool sim_vcpu_halted(const struct CPUState *cpu)
{
    return cpu->is_halted;
}

void sim_vcpu_set_halted(struct CPUState *cpu, bool halted)
{
    cpu->is_halted = halted;
}
