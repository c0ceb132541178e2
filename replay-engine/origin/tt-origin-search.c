/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The last write to a place before a position: stretches of the run are replayed, newest
 * first, each 16 times as long as the one after it.
 *
 *   --goto--> low --scan--> high --+--> found
 *                ^                 |
 *                +--- further back-+--- a short stretch around a write, step by step
 *
 * Stretches of which the checkpoints say that the page was not written are left out.
 *
 * In RAM each write to the bytes is heard of (hw-tt/memory/tt-memory-watch.h), with a
 * position that is exact but for the length of a block; so a stretch with one is
 * replayed once more around it, an instruction at a time. Nobody hears of writes to a
 * register: its stretches are stepped through. Instructions are decoded, once for each
 * address, and a register that changed although the decoder names none is believed.
 */
#include "qemu/osdep.h"
#include "tt-origin-search-int.h"
#include "tt-origin-ask-int.h"
#include "tt-origin-queue-int.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "accel-tt/x86/tt-x86-regs.h"
#include "hw-tt/memory/tt-memory-watch.h"
#include "log/tt-sched.h"
#include "replay/tt-replay-log.h"
#include "session/tt-session.h"
#include "timeline/tt-timeline.h"
#include "travel/tt-checkpoints.h"
#include "travel/tt-travel.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "exec/cpu-common.h"
#include "exec/target_page.h"

#define FIRST_OF_RAM    4096
#define FIRST_OF_REG    256
#define LONGEST         (UINT64_C(1) << 28)
#define LONGEST_OF_REG  (UINT64_C(1) << 22)
#define BLOCK           1024        /* positions: more than any block has */
#define KNOWN_MAX       65536

typedef struct Known {
    uint8_t bytes[TT_FLOW_BYTES_MAX];
    unsigned bits;
    uint32_t mask;
} Known;

static struct {
    const TtOriginQuestion *q;
    void (*done)(const TtOriginFound *found);
    uint64_t first;             /* no further back */
    bool is_bound;              /* it is the bound, and no beginning */
    uint64_t low, high;         /* the stretch; before @low all is left */
    uint64_t length;
    bool steps;                 /* each position is looked at */
    uint64_t back_to;           /* where the stretch began, if it is looked at again */
    uint64_t written_by;        /* RAM, not stepping: a write was before that; 0: none */
    TtOriginFound found;
    bool has_found;
    /* stepping: the position before */
    uint64_t pos, begun, excepted;
    unsigned cpu;
    uint8_t value[TT_ORIGIN_BYTES_MAX];
    TtFlowRegs regs;
    uint8_t bytes[TT_FLOW_BYTES_MAX];
    size_t n_bytes;
    bool is_written;
    TtOriginFound device;       /* who wrote last, if by_device, by this event */
    const TtEvent *event;
    bool by_device;
} s;

static GHashTable *known;       /* address -> Known */

static bool is_ram(void)
{
    return s.q->place.at.kind == TT_FLOW_AT_MEM;
}

static void end(TtOriginBy by, int reason)
{
    s.found.by = by;
    s.found.reason = reason;
    s.done(&s.found);
}

/* ---- RAM is written ---- */

/* Those of the place, a bit each. */
static uint64_t bytes_of(uint64_t ram_addr, uint64_t len)
{
    uint64_t bytes = 0;

    for (unsigned b = 0; b < s.q->place.at.len; b++) {
        uint64_t at = s.q->place.ram + b;

        bytes |= at >= ram_addr && at - ram_addr < len ? UINT64_C(1) << b : 0;
    }
    return bytes;
}

static void written(uint64_t ram_addr, uint64_t len, bool by_device)
{
    const TtEvent *ev = by_device ? tt_sched_peek(tt_replay_sched()) : NULL;

    s.written_by = tt_position() + 1;
    s.is_written = true;
    s.by_device = by_device;
    if (ev) {
        s.device.event = *ev;
        s.device.has_disk = ev->kind == TT_EV_DISK &&
            tt_disk_ref_decode(ev, &s.device.disk);
        s.device.event.data = NULL;
    }
    s.device.bytes = (ev == s.event ? s.device.bytes : 0) | bytes_of(ram_addr, len);
    s.event = ev;
}

/* ---- step by step ---- */

/* Which registers may the instruction here write? */
static uint32_t mask_here(void)
{
    Known *k = g_hash_table_lookup(known, &s.regs.pc);

    if (k && k->bits == s.regs.bits && !memcmp(k->bytes, s.bytes, sizeof(s.bytes))) {
        return k->mask;
    }
    if (!k) {
        uint64_t *pc = g_new(uint64_t, 1);

        *pc = s.regs.pc;
        k = g_new0(Known, 1);
        if (g_hash_table_size(known) >= KNOWN_MAX) {
            g_hash_table_remove_all(known);
        }
        g_hash_table_insert(known, pc, k);
    }
    memcpy(k->bytes, s.bytes, sizeof(k->bytes));
    k->bits = s.regs.bits;
    k->mask = tt_flow_may_write(tt_origin_decoder(), s.bytes, s.n_bytes, s.regs.bits);
    return k->mask;
}

static bool decoder_says_written(void)
{
    TtFlow f;

    if (!(mask_here() & 1u << s.q->place.at.reg) ||
        tt_flow_decode(tt_origin_decoder(), s.bytes, s.n_bytes, &s.regs, &f) != TT_OK) {
        return false;
    }
    for (unsigned i = 0; i < f.n_writes; i++) {
        if (tt_flow_place_meets(&f.writes[i].to, &s.q->place.at)) {
            return true;
        }
    }
    return false;
}

static bool is_changed(void)
{
    uint8_t now[TT_ORIGIN_BYTES_MAX];

    return tt_origin_read(&s.q->place, now) &&
        memcmp(now, s.value, s.q->place.at.len) != 0;
}

/* A fault pushes the address of its instruction, perhaps below an error code; a trap that
 * of the next one. */
static bool is_fault(const TtFlowRegs *now)
{
    unsigned bytes = now->bits / 8;
    uint64_t stack = now->general[4] + (now->bits == 64 ? 0 : now->bases[2]);
    uint64_t mask = UINT64_MAX >> (64 - now->bits);

    for (unsigned i = 0; i < 2; i++) {
        uint8_t slot[8] = { 0 };

        if (!cpu_memory_rw_debug(tt_vcpus_at(s.cpu), stack + i * bytes, slot, bytes,
                                 false) &&
            tt_get_le64(slot) == (s.regs.pc & mask)) {
            return true;
        }
    }
    return false;
}

/* From s.pos to @pos, where we are. */
static void look_at_step(uint64_t pos)
{
    bool began = tt_backend->begun() != s.begun;
    bool excepted = tt_backend->excepted() != s.excepted;
    TtOriginBy by = !began ? TT_ORIGIN_BY_EVENT : excepted ? TT_ORIGIN_BY_EXCEPTION :
        TT_ORIGIN_BY_INSN;
    bool is = is_ram() ? s.is_written :
        is_changed() || (by == TT_ORIGIN_BY_INSN && s.cpu == s.q->place.cpu &&
                         decoder_says_written());

    if (!is) {
        return;
    }
    s.has_found = true;
    s.found = (TtOriginFound) { .by = by, .pos = s.pos, .to = pos };
    if (by == TT_ORIGIN_BY_EXCEPTION) {
        TtFlowRegs now;

        tt_target_flow_regs(tt_vcpus_at(s.cpu), &now);
        s.found.is_fault = is_fault(&now);
        s.found.count = now.general[1];
    }
    if (is_ram() && s.by_device) {
        s.found = s.device;
        s.found.by = TT_ORIGIN_BY_DEVICE;
        s.found.pos = s.pos;
        s.found.to = pos;
        s.found.in_insn = began;
    }
}

static size_t fetch(CPUState *cpu)
{
    uint64_t pc = cpu->cc->get_pc(cpu);
    size_t n = TT_FLOW_BYTES_MAX;

    memset(s.bytes, 0, sizeof(s.bytes));
    if (cpu_memory_rw_debug(cpu, pc, s.bytes, n, false) != 0) {
        n = -(pc | TARGET_PAGE_MASK);       /* the next page is not there */
        if (n > TT_FLOW_BYTES_MAX || cpu_memory_rw_debug(cpu, pc, s.bytes, n, false)) {
            n = 0;
        }
    }
    return n;
}

static void note_step(uint64_t pos)
{
    CPUState *cpu = tt_vcpu();

    s.pos = pos;
    s.begun = tt_backend->begun();
    s.excepted = tt_backend->excepted();
    s.cpu = cpu->cpu_index;
    s.is_written = s.by_device = false;
    s.event = NULL;
    s.device.bytes = 0;
    tt_target_flow_regs(cpu, &s.regs);
    if (!is_ram()) {
        tt_origin_read(&s.q->place, s.value);
        if (s.cpu == s.q->place.cpu) {
            s.n_bytes = fetch(cpu);
        }
    }
}

static bool visit(void *opaque, uint64_t pos, bool is_hit)
{
    tt_origin_say_way(pos);
    if (s.steps) {
        if (s.pos != UINT64_MAX) {
            look_at_step(pos);
        }
        note_step(pos);
    }
    return true;
}

/* ---- stretches ---- */

static void stretch(void);

static void further_back(void)
{
    if (s.back_to != UINT64_MAX) {          /* a stretch around a write had none */
        s.low = s.back_to;
        s.back_to = UINT64_MAX;
    } else {
        s.high = s.low;
        s.length = MIN(s.length * 16, is_ram() ? LONGEST : LONGEST_OF_REG);
    }
    stretch();
}

static void scanned(void *opaque, uint64_t pos, int reason)
{
    tt_memory_unwatch();
    if (reason != TT_STOP_TARGET && reason != TT_STOP_END) {
        end(TT_ORIGIN_FAILED, reason);
    } else if (s.has_found) {
        end(s.found.by, TT_STOP_TARGET);
    } else if (!s.steps && s.written_by) {
        uint64_t high = MIN(s.high, s.written_by);

        s.back_to = s.low;
        s.low = MAX(s.low, high > BLOCK ? high - BLOCK : 0);
        s.high = high;
        stretch();
    } else {
        if (s.back_to != UINT64_MAX) {
            s.high = s.low;
        }
        further_back();
    }
}

static void at_low(void *opaque, uint64_t pos, int reason)
{
    Error *err = NULL;

    if (reason != TT_STOP_TARGET) {
        end(TT_ORIGIN_FAILED, reason);
        return;
    }
    s.pos = UINT64_MAX;
    s.has_found = s.is_written = false;
    s.written_by = 0;
    if (is_ram()) {
        tt_memory_watch(s.q->place.ram, s.q->place.at.len, written);
    }
    if (pos >= s.high) {                    /* there is no place between */
        scanned(NULL, pos, TT_STOP_TARGET);
    } else if (!tt_travel_scan(s.high, s.steps, visit, scanned, NULL, &err)) {
        tt_memory_unwatch();
        s.found.err = err;
        end(TT_ORIGIN_FAILED, TT_STOP_NONE);
    }
}

/* The end of the stretch moves back to where the page was written last, by the checkpoints'
 * lists. What happened where a checkpoint stands may be before it: that is looked at. */
static void leave_out(void)
{
    uint64_t since = tt_checkpoints_unwritten_since(s.q->place.ram, s.high);

    if (since + 1 < s.high) {
        uint64_t begin = tt_replay_first(), to = MAX(since + 1, begin);

        /* The bound counts what is looked at. */
        s.first = s.first - begin > s.high - to ? s.first - (s.high - to) : begin;
        s.is_bound &= s.first > begin;
        s.high = to;
    }
}

/* From s.low, or as far back as its length says, to s.high. */
static void stretch(void)
{
    Error *err = NULL;
    bool is_again = s.back_to != UINT64_MAX;

    if (is_ram() && !is_again) {
        leave_out();
    }
    if (s.high <= s.first) {
        end(s.is_bound ? TT_ORIGIN_TOO_FAR : TT_ORIGIN_BY_NOBODY, TT_STOP_TARGET);
        return;
    }
    if (!is_again) {
        s.low = s.high - MIN(s.length, s.high - s.first);
    }
    s.steps = is_again || !is_ram() || s.high - s.low <= FIRST_OF_RAM;
    if (!tt_travel_goto(s.low, at_low, NULL, &err)) {
        s.found.err = err;
        end(TT_ORIGIN_FAILED, TT_STOP_NONE);
    }
}

void tt_origin_search(const TtOriginQuestion *q, uint64_t within,
                      void (*done)(const TtOriginFound *found))
{
    uint64_t first = tt_replay_first();

    known = known ?: g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    s.q = q;
    s.done = done;
    s.is_bound = q->before > first && within < q->before - first;
    s.first = s.is_bound ? q->before - within : first;
    s.high = q->before;
    s.length = is_ram() ? FIRST_OF_RAM : FIRST_OF_REG;
    s.back_to = UINT64_MAX;
    s.found = (TtOriginFound) { 0 };
    stretch();
}
