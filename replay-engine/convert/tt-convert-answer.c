/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Answers to the guest inside an instruction: taken from the log of exits, checked
 * against what the guest does, and written to the new log.
 *
 * KVM and TCG cut an access to a device in different pieces where it is not aligned:
 * bytes are matched, not pieces. What KVM answers without an exit (CPUID, CR8, the
 * time stamp counter) follows from events of the log.
 */
#include "qemu/osdep.h"
#include "tt-convert-parts-int.h"
#include "accel-tt/tt-position.h"
#include "io/tt-base.h"
#include "log/tt-sched.h"
#include "replay/tt-replay-exact.h"
#include "replay/tt-replay-log.h"
#include "session/tt-session.h"
#include "cpu.h"
#include "hw/core/cpu.h"
#include "qemu/bswap.h"

#define ENTRY_BYTES 28
#define APIC_TPR_AT 0x80

static struct {
    GByteArray *cpuid;              /* entries of TT_EV_CPUID_TABLE */
    uint64_t tpr, tsc;
    bool has_tsc;
    unsigned used;                  /* bytes of the access at the cursor */
} known;

/* ---- without an exit ---- */

bool tt_convert_learn(const TtEvent *ev)
{
    if (ev->kind == TT_EV_CPUID_TABLE) {
        tt_convert_set_cpuid((TtBytes) { ev->data, ev->len });
        return true;
    }
    if (ev->kind != TT_EV_CPU_FLAG) {
        return false;
    }
    switch (ev->addr) {
    case TT_FLAG_TPR:
        known.tpr = ev->val;
        return true;
    case TT_FLAG_TSC:
        known.tsc = ev->val;
        known.has_tsc = true;
        return true;
    case TT_FLAG_A20:
        return true;                /* KVM knows no A20 */
    }
    return false;
}

/* A reset or INIT clears the APIC's register, too. Nobody else puts the vCPU there. */
void tt_convert_learn_state(CPUState *cpu)
{
    const CPUX86State *env = cpu_env(cpu);

    if (env->eip == 0xfff0 && env->segs[R_CS].base == 0xffff0000 &&
        !(env->cr[0] & CR0_PE_MASK)) {
        known.tpr = 0;
    }
}

TtBytes tt_convert_cpuid(void)
{
    return known.cpuid ? (TtBytes) { known.cpuid->data, known.cpuid->len } :
        (TtBytes) { NULL, 0 };
}

void tt_convert_set_cpuid(TtBytes table)
{
    known.cpuid = known.cpuid ?: g_byte_array_new();
    g_byte_array_set_size(known.cpuid, 0);
    g_byte_array_append(known.cpuid, table.data, table.len - table.len % ENTRY_BYTES);
}

void tt_convert_known_save(TtConvertPoint *p)
{
    p->tpr = known.tpr;
    p->tsc = known.tsc;
    p->has_tsc = known.has_tsc;
}

void tt_convert_known_load(const TtConvertPoint *p)
{
    known.tpr = p->tpr;
    known.tsc = p->tsc;
    known.has_tsc = p->has_tsc;
}

static const uint8_t *find_cpuid(uint32_t leaf, uint32_t subleaf)
{
    for (unsigned at = 0; known.cpuid && at < known.cpuid->len; at += ENTRY_BYTES) {
        const uint8_t *e = known.cpuid->data + at;

        if (tt_get_le32(e) == leaf &&
            (!tt_get_le32(e + 8) || tt_get_le32(e + 4) == subleaf)) {
            return e;
        }
    }
    return NULL;
}

/* Subleaves that the topology does not have know its own number and the APIC's id. */
static void beyond_topology(uint8_t le[16], uint32_t leaf, uint32_t subleaf)
{
    const uint8_t *first = find_cpuid(leaf, 1);

    if (first) {
        tt_put_le32(le + 8, subleaf & 0xff);
        memcpy(le + 12, first + 12 + 12, 4);
    }
}

/* As KVM does: beyond the last basic leaf Intel's CPUs answer with that, AMD's with
 * zeros. */
static void answer_cpuid(TtEvent *ev)
{
    static const char intel[] = "GenuineIntel";
    static uint8_t le[16];
    uint32_t leaf = ev->addr, subleaf = ev->addr >> 32, answered = leaf;
    const uint8_t *e = find_cpuid(leaf, subleaf), *basic = find_cpuid(0, 0);

    if (!e && basic && !memcmp(basic + 16, intel, 4)) {
        uint32_t class = leaf & 0xffff0000u;
        const uint8_t *head = class ? find_cpuid(class, 0) : basic;

        if (!head || leaf > tt_get_le32(head + 12)) {
            answered = tt_get_le32(basic + 12);
            e = find_cpuid(answered, subleaf);
        }
    }
    memset(le, 0, sizeof(le));
    if (e) {
        memcpy(le, e + 12, sizeof(le));
    } else if (answered == 0xb || answered == 0x1f) {
        beyond_topology(le, answered, subleaf);
    }
    if (leaf == 1) {
        uint32_t edx = tt_get_le32(le + 12) & ~CPUID_APIC;

        tt_put_le32(le + 12, edx | (cpu_env(current_cpu)->features[FEAT_1_EDX] &
                                    CPUID_APIC));
    }
    ev->data = le;
    ev->len = sizeof(le);
}

static void answer_tsc(TtEvent *ev)
{
    if (!known.has_tsc) {
        tt_replay_report("the guest reads the time stamp counter, which KVM answered "
                         "without QEMU: the host of the recording could not freeze it");
        tt_convert_leave(current_cpu);
    }
    ev->val = known.tsc;
}

/* ---- with an exit ---- */

static bool is_access(unsigned kind)
{
    return kind == TT_EV_MMIO_LD || kind == TT_EV_MMIO_ST;
}

static unsigned length_of(const TtEvent *ev)
{
    return ev->size ?: ev->aux >> 16;
}

void tt_convert_report_other(const char *does, const TtEvent *want)
{
    g_autofree char *why = NULL;
    char text[160];

    if (!want) {
        tt_replay_report("the guest %s, but the log ends here", does);
        return;
    }
    tt_event_format(want, text, sizeof(text));
    if (want->kind == TT_EV_LANDMARK && tt_convert_is_hunting()) {
        why = tt_convert_hunt_text();
    }
    tt_replay_report("the guest %s, but '%s' was recorded%s%s", does, text, why ? ": " : "",
                     why ?: "");
}

static void G_NORETURN other(const TtEvent *seen, const TtEvent *want)
{
    char text[160];
    g_autofree char *does = NULL;

    tt_event_format(seen, text, sizeof(text));
    does = g_strdup_printf("does '%s'", text);
    tt_convert_report_other(does, want);
    tt_convert_leave(current_cpu);
}

/* The event at the cursor, of the kind that @ev asks for. */
static const TtEvent *expect(const TtEvent *ev)
{
    const TtEvent *want;

    tt_convert_apply_nested();
    want = tt_sched_peek(tt_replay_sched());
    if (!want || want->kind != ev->kind) {
        other(ev, want);
    }
    return want;
}

static uint64_t swap(uint64_t val, unsigned size)
{
    return size == 2 ? bswap16(val) : size == 4 ? bswap32(val) :
        size == 8 ? bswap64(val) : val;
}

/* Byte after byte: @ev may be a part of what was recorded, or several of them. */
static void answer_access(TtEvent *ev)
{
    bool is_load = ev->kind == TT_EV_MMIO_LD;
    uint8_t bytes[8], said[8];
    unsigned n = 0;

    tt_put_le64(bytes, is_load ? 0 : ev->val);
    ev->aux = 0;
    while (n < ev->size) {
        const TtEvent *want = expect(ev);

        if (want->addr + known.used != ev->addr + n || length_of(want) > 8 ||
            known.used >= length_of(want)) {
            other(ev, want);
        }
        tt_put_le64(said, want->val);
        if (is_load) {
            bytes[n] = said[known.used];
        } else if (bytes[n] != said[known.used]) {
            other(ev, want);
        }
        ev->aux |= want->aux & 0xffff;
        n++;
        if (++known.used == length_of(want)) {
            known.used = 0;
            tt_sched_pop(tt_replay_sched());
        }
    }
    if (is_load) {              /* TCG wants it in the order of its helper */
        tt_convert_note_load(ev->addr, bytes, ev->size);
        ev->val = swap(tt_get_le64(bytes), ev->size);
    }
}

/* The APIC's register and CR8 are one value. QEMU's APIC has each register 16 bytes long. */
static void learn_from_store(const TtEvent *ev)
{
    if (ev->kind == TT_EV_MMIO_ST && ev->size == 4 &&
        (ev->addr & ~UINT64_C(15)) == APIC_DEFAULT_ADDRESS + APIC_TPR_AT) {
        known.tpr = ev->val >> 4 & 15;
    }
}

static void answer_plain(TtEvent *ev)
{
    const TtEvent *want = expect(ev);

    if (want->addr != ev->addr || want->size != ev->size ||
        (ev->kind == TT_EV_PIO_OUT && want->val != ev->val)) {
        other(ev, want);
    }
    ev->val = want->val;
    ev->aux = want->aux;
    tt_sched_pop(tt_replay_sched());
}

void tt_convert_answer(TtEvent *ev)
{
    bool had_exit = true;

    ev->pos = tt_position();
    switch (ev->kind) {
    case TT_EV_CPUID:
        answer_cpuid(ev);
        had_exit = false;
        break;
    case TT_EV_TSC:
        answer_tsc(ev);
        had_exit = false;
        break;
    case TT_EV_CR8_RD:
        ev->val = known.tpr;
        had_exit = false;
        break;
    default:
        if (is_access(ev->kind)) {
            answer_access(ev);
            learn_from_store(ev);
        } else {
            answer_plain(ev);
        }
        break;
    }
    if (ev->kind == TT_EV_PIO_OUT || ev->kind == TT_EV_MMIO_ST) {
        tt_fold_output(ev);
    }
    tt_convert_put(ev);
    if (had_exit && !known.used) {
        tt_convert_answered();
    }
}

/* Only lowering it is an exit. */
void tt_convert_cr8_written(uint64_t val)
{
    TtEvent ev = { .kind = TT_EV_TPR_WR, .val = val };
    bool is_exit = val < known.tpr;

    known.tpr = val;
    if (is_exit) {
        expect(&ev);
        tt_sched_pop(tt_replay_sched());
        tt_convert_answered();
    }
}
