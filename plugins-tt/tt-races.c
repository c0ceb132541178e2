/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A plugin for QEMU's TCG: races of the vCPUs, for `tt run-plugin RUN races`. It feeds the
 * race finder (race/tt-race.h) with what they do to memory, by physical addresses; with
 * interrupts between them; and, of functions that take and give locks (tt-races-locks.c),
 * with their calls. In the end, lines:
 *
 *   race TIMES ATOMIC-LATER ADDRESS LENGTH SIDE SIDE   the earlier side first, where a
 *                                       SIDE is VCPU r|w ADDRESS-OF-THE-CODE POSITION
 *   seen ACCESSES ATOMICS RACES NOT-KEPT FORGOTTEN-PAGES RESETS
 *
 * A position is that of the instruction, before it.
 */
#include "tt-races.h"
#include "tt/plugin.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

#define MEMORY_MIB      1024            /* for what is known of the guest's */
#define MEMORY_MIB_MAX  (1u << 20)
#define PAIRS_MAX       10000

/* What a callback is told of its instruction, in the bits of a pointer. */
#define PLACE_BITS      32
#define LEFT_BITS       16              /* instructions to the end of the block */

/* The local APIC, where all firmwares and systems leave it, and its registers. */
#define APIC            0xfee00000ull
#define APIC_ICR        (APIC + 0x300)
#define APIC_ICR_HIGH   (APIC + 0x310)
#define MSR_X2APIC_ICR  0x830

TtRace *races;
static struct {
    unsigned n_vcpus;
    uint64_t max_mib;
    bool has_flags;
} options = { .max_mib = MEMORY_MIB };
static GArray *places;                  /* uint64_t: addresses of code */
static GHashTable *place_of_address;    /* -> index + 1 */
static GMutex lock;                     /* of the last two */
static const uint64_t *interrupts;
static uint64_t interrupts_seen[TT_RACE_VCPUS_MAX];
static uint32_t icr_high[TT_RACE_VCPUS_MAX];

/* ---- what is executed ---- */

/* Before what it does next. */
void races_take_interrupts(unsigned vcpu)
{
    if (interrupts && interrupts[vcpu] != interrupts_seen[vcpu]) {
        interrupts_seen[vcpu] = interrupts[vcpu];
        tt_race_receive(races, vcpu);
    }
}

static void interrupt(unsigned vcpu, uint32_t low, uint32_t high, bool is_x2apic)
{
    tt_race_send(races, vcpu, tt_race_x86_targets(vcpu, options.n_vcpus, low, high,
                                                  is_x2apic));
}

static void write_device(unsigned vcpu, uint64_t addr, qemu_plugin_meminfo_t info)
{
    uint32_t value;

    if (addr != APIC_ICR && addr != APIC_ICR_HIGH) {
        return;
    }
    value = qemu_plugin_mem_get_value(info).data.u32;
    if (addr == APIC_ICR_HIGH) {
        icr_high[vcpu] = value;
    } else {
        interrupt(vcpu, value, icr_high[vcpu], false);
    }
}

static void access_part(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr,
                        unsigned size, uint64_t told)
{
    const struct qemu_plugin_hwaddr *at = qemu_plugin_get_hwaddr(info, vaddr);
    TtRaceAccess a = {
        .size = size, .vcpu = vcpu, .is_write = qemu_plugin_mem_is_store(info),
        .is_atomic = told >> (PLACE_BITS + LEFT_BITS),
        .place = told & ((1ull << PLACE_BITS) - 1),
    };

    if (!at) {
        return;
    }
    a.addr = qemu_plugin_hwaddr_phys_addr(at);
    if (qemu_plugin_hwaddr_is_io(at)) {
        if (a.is_write) {
            write_device(vcpu, a.addr, info);
        }
        return;
    }
    a.position = tt_position_behind_block() - (told >> PLACE_BITS & ((1u << LEFT_BITS) - 1));
    tt_race_access(races, &a);
}

static void accessed(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr,
                     void *told)
{
    unsigned size = 1u << qemu_plugin_mem_size_shift(info);
    unsigned here = MIN(size, TT_RACE_PAGE - vaddr % TT_RACE_PAGE);

    races_take_interrupts(vcpu);
    access_part(vcpu, info, vaddr, here, (uintptr_t)told);
    if (here < size) {                  /* the next page may be anywhere */
        access_part(vcpu, info, vaddr + here, size - here, (uintptr_t)told);
    }
}

static void write_msr(unsigned int vcpu, void *opaque)
{
    races_take_interrupts(vcpu);
    if ((uint32_t)races_register("rcx") == MSR_X2APIC_ICR) {
        interrupt(vcpu, races_register("rax"), races_register("rdx"), true);
    }
}

/* ---- what is translated ---- */

static uint64_t place_of(uint64_t addr)
{
    guint index = GPOINTER_TO_UINT(g_hash_table_lookup(place_of_address, &addr));

    if (!index) {
        g_array_append_val(places, addr);
        index = places->len;
        g_hash_table_insert(place_of_address, g_memdup2(&addr, sizeof(addr)),
                            GUINT_TO_POINTER(index));
    }
    return index - 1;
}

static void instruction(struct qemu_plugin_insn *insn, size_t left)
{
    static const uint8_t wrmsr[] = { 0x0f, 0x30 };
    uint8_t bytes[16];
    size_t len = qemu_plugin_insn_data(insn, bytes, sizeof(bytes));
    uint64_t addr = qemu_plugin_insn_vaddr(insn);
    uint64_t told = place_of(addr) | (uint64_t)left << PLACE_BITS;

    if (races_locks_instruction(insn, addr)) {
        return;                         /* how a lock works is not looked at */
    }
    told |= (uint64_t)tt_race_x86_is_atomic(bytes, len) << (PLACE_BITS + LEFT_BITS);
    qemu_plugin_register_vcpu_mem_cb(insn, accessed, QEMU_PLUGIN_CB_NO_REGS,
                                     QEMU_PLUGIN_MEM_RW, (void *)(uintptr_t)told);
    if (len == sizeof(wrmsr) && !memcmp(bytes, wrmsr, len)) {
        qemu_plugin_register_vcpu_insn_exec_cb(insn, write_msr, QEMU_PLUGIN_CB_R_REGS, NULL);
    }
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    size_t n = qemu_plugin_tb_n_insns(tb);

    g_mutex_lock(&lock);
    races_locks_block(tb);
    for (size_t i = 0; i < n; i++) {
        instruction(qemu_plugin_tb_get_insn(tb, i), n - i);
    }
    g_mutex_unlock(&lock);
}

/* ---- the result ---- */

static void put_side(GString *s, const TtRaceSide *side)
{
    g_string_append_printf(s, " %u %c 0x%" PRIx64 " %" PRIu64, side->vcpu,
                           side->is_write ? 'w' : 'r',
                           g_array_index(places, uint64_t, side->place), side->position);
}

static void at_exit(qemu_plugin_id_t id, void *opaque)
{
    g_autoptr(GString) s = g_string_new("tt-merge: list\n");
    TtRaceStats stats;

    for (size_t i = 0; i < tt_race_count(races); i++) {
        TtRacePair pair;

        tt_race_get(races, i, &pair);
        g_string_append_printf(s, "race %" PRIu64 " %d 0x%" PRIx64 " %" PRIu64, pair.times,
                               pair.is_atomic_later, pair.addr, pair.len);
        put_side(s, &pair.earlier);
        put_side(s, &pair.later);
        g_string_append_c(s, '\n');
    }
    tt_race_stats(races, &stats);
    g_string_append_printf(s, "seen %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
                           " %" PRIu64 "\ntt-merge: end\n", stats.accesses, stats.atomics,
                           stats.races, stats.not_kept, stats.forgotten_pages, stats.resets);
    qemu_plugin_outs(s->str);
}

/* ---- the plugin ---- */

static bool take_memory(const char *value)
{
    char *end;

    options.max_mib = g_ascii_strtoull(value, &end, 10);
    return g_ascii_isdigit(*value) && !*end && options.max_mib &&
        options.max_mib <= MEMORY_MIB_MAX;
}

/* False: said what is wrong. */
static bool take_option(const char *text)
{
    g_auto(GStrv) words = g_strsplit(text, "=", 2);
    const char *value = words[0] && words[1] ? words[1] : "";

    if (!g_strcmp0(words[0], "memory") && take_memory(value)) {
        return true;
    }
    if (!g_strcmp0(words[0], "flags") &&
        qemu_plugin_bool_parse(words[0], value, &options.has_flags)) {
        return true;
    }
    if (races_locks_option(words[0], value)) {
        return true;
    }
    g_printerr("races takes memory=MIB, flags=on or off, lock=ADDRESS, unlock=ADDRESS and "
               "argument=REGISTER, stack or none, not '%s'\n", text);
    return false;
}

static void start(void)
{
    const TtRaceLimits limits = {
        .n_vcpus = options.n_vcpus,
        .max_bytes = (size_t)options.max_mib << 20, .max_pairs = PAIRS_MAX,
        .has_flags = options.has_flags,
    };

    races = tt_race_new(&limits);
    interrupts = tt_interrupts_of_vcpus();
    if (interrupts) {
        memcpy(interrupts_seen, interrupts, sizeof(interrupts_seen));
    }
}

static void vcpu_began(qemu_plugin_id_t id, unsigned int vcpu)
{
    races_locks_begin();
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
                                           int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        if (!take_option(argv[i])) {
            return -1;
        }
    }
    /* Those that a replay has, which the machine's own number does not say. */
    options.n_vcpus = qemu_plugin_num_vcpus();
    if (!options.n_vcpus || options.n_vcpus > TT_RACE_VCPUS_MAX) {
        g_printerr("races is for replays, of %u vCPUs at most\n", TT_RACE_VCPUS_MAX);
        return -1;
    }
    places = g_array_new(false, false, sizeof(uint64_t));
    place_of_address = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    start();
    qemu_plugin_register_vcpu_init_cb(id, vcpu_began);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, at_exit, NULL);
    return 0;
}
