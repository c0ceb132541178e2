/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the last write was: the VM stands before it. A line says so, and each source of
 * it becomes a question.
 */
#include "qemu/osdep.h"
#include "tt-origin-answer-int.h"
#include "tt-origin-ask-int.h"
#include "tt-origin-queue-int.h"
#include "accel-tt/tt-vcpus.h"
#include "accel-tt/x86/tt-x86-regs.h"
#include "hw-tt/memory/tt-memory.h"
#include "log/tt-sched.h"
#include "replay/tt-replay-log.h"
#include "hw/core/cpu.h"
#include "exec/cpu-common.h"
#include "exec/memory.h"
#include "exec/target_page.h"

#define NO_WRITE 255

typedef struct Answer {
    const TtOriginQuestion *q;
    const TtOriginFound *found;
    unsigned id;
    CPUState *cpu;
    TtFlow flow;
    uint8_t by[TT_ORIGIN_BYTES_MAX];        /* byte of the place -> write, or NO_WRITE */
    unsigned at[TT_ORIGIN_BYTES_MAX];       /* byte of that write */
} Answer;

/* ---- which bytes ---- */

/* Byte @n of write @w is byte @b of the place. */
static void map_memory(Answer *a, unsigned w)
{
    const TtFlowPlace *to = &a->flow.writes[w].to, *at = &a->q->place.at;
    unsigned done = 0;

    while (done < to->len) {
        uint64_t ram = 0, physical;
        unsigned len = TARGET_PAGE_SIZE - ((to->addr + done) & ~TARGET_PAGE_MASK);
        bool is = tt_origin_ram(a->cpu->cpu_index, to->addr + done, &ram, &len,
                                &physical);

        len = MIN(len, to->len - done);
        for (unsigned b = 0; is && b < at->len; b++) {
            uint64_t n = a->q->place.ram + b - ram;

            if (n < len && (a->flow.writes[w].how != TT_FLOW_UNKNOWN ||
                            a->by[b] == NO_WRITE)) {
                a->by[b] = w;
                a->at[b] = done + n;
            }
        }
        done += len;
    }
}

static void map_register(Answer *a, unsigned w)
{
    const TtFlowPlace *to = &a->flow.writes[w].to, *at = &a->q->place.at;

    for (unsigned b = 0; b < at->len && to->reg == at->reg; b++) {
        unsigned n = at->first + b - to->first;

        if (n < to->len) {
            a->by[b] = w;
            a->at[b] = n;
        }
    }
}

/* What it wrote, as far as it came. */
static void decode(Answer *a)
{
    TtFlowRegs regs;
    uint8_t bytes[TT_FLOW_BYTES_MAX];
    uint64_t pc = a->cpu->cc->get_pc(a->cpu);
    size_t n = sizeof(bytes);
    TtStatus status;

    tt_target_flow_regs(a->cpu, &regs);
    while (n && cpu_memory_rw_debug(a->cpu, pc, bytes, n, false)) {
        n--;
    }
    status = tt_flow_decode(tt_origin_decoder(), bytes, n, &regs, &a->flow);
    if (status == TT_OK && a->found->by == TT_ORIGIN_BY_EXCEPTION && a->flow.repeats) {
        regs.general[1] -= a->found->count;     /* so often */
        status = tt_flow_decode(tt_origin_decoder(), bytes, n, &regs, &a->flow);
    } else if (a->found->is_fault) {
        a->flow.n_writes = 0;
    }
    if (status != TT_OK) {
        a->flow.n_writes = 0;
        g_strlcpy(a->flow.text, "(unknown instruction)", sizeof(a->flow.text));
    }
}

/* False: the instruction writes nothing of the place. */
static bool map_bytes(Answer *a)
{
    bool any = false;

    memset(a->by, NO_WRITE, sizeof(a->by));
    decode(a);
    for (unsigned w = 0; w < a->flow.n_writes; w++) {
        bool is_memory = a->flow.writes[w].to.kind == TT_FLOW_AT_MEM;

        if (is_memory != (a->q->place.at.kind == TT_FLOW_AT_MEM)) {
            continue;
        }
        if (is_memory) {
            map_memory(a, w);
        } else if (a->q->place.cpu == a->cpu->cpu_index) {
            map_register(a, w);
        }
    }
    for (unsigned b = 0; b < a->q->place.at.len; b++) {
        any |= a->by[b] != NO_WRITE;
    }
    return any;
}

/* ---- what is said ---- */

static void say(const Answer *a, const char *how, const char *more)
{
    const TtOriginPlace *p = &a->q->place;
    g_autofree char *place = NULL;
    GString *value = g_string_new("0x");
    char buf[48];

    tt_flow_place_text(&p->at, buf, sizeof(buf));
    place = p->at.kind == TT_FLOW_AT_MEM ? g_strdup_printf("%s:%u", buf, p->at.len) :
        g_strdup(buf);
    for (unsigned i = p->at.len; i--; ) {
        g_string_append_printf(value, "%02x", a->q->value[i]);
    }
    tt_origin_say("node id=%u parent=%u rest=%d how=%s place=%s of=%u value=%s "
                  "position=%" PRIu64 " cpu=%u pc=0x%" PRIx64 "%s text=%s", a->id,
                  a->q->parent, a->q->is_rest, how, place, p->cpu, value->str,
                  a->found->pos, a->cpu->cpu_index, a->cpu->cc->get_pc(a->cpu), more,
                  a->flow.text);
    g_string_free(value, true);
}

static const char *word_of(TtFlowHow how)
{
    static const char *const words[] = {
        [TT_FLOW_COPY] = "copy", [TT_FLOW_COMPUTED] = "computed",
        [TT_FLOW_CONSTANT] = "constant", [TT_FLOW_PORT] = "port", [TT_FLOW_TSC] = "tsc",
        [TT_FLOW_RANDOM] = "random", [TT_FLOW_CPUID] = "cpuid", [TT_FLOW_MSR] = "msr",
        [TT_FLOW_UNKNOWN] = "unknown",
    };

    return words[how];
}

/* Zeros above what is copied are not what somebody asks for. */
static const TtFlowWrite *main_write(const Answer *a)
{
    const TtFlowWrite *best = NULL;

    for (unsigned b = 0; b < a->q->place.at.len; b++) {
        const TtFlowWrite *w = a->by[b] == NO_WRITE ? NULL : &a->flow.writes[a->by[b]];

        if (w && (!best || (best->how == TT_FLOW_CONSTANT && w->how != best->how))) {
            best = w;
        }
    }
    return best;
}

static TtOriginQuestion child(const Answer *a)
{
    return (TtOriginQuestion) {
        .before = a->found->pos, .parent = a->id, .depth = a->q->depth,
    };
}

/* Bytes @b on, of which there are @n, are as they were before. */
static void ask_rest(const Answer *a, unsigned b, unsigned n, uint64_t before)
{
    TtOriginQuestion q = *a->q;

    q.before = before;
    q.is_rest = true;
    q.parent = a->id;
    q.place.at.first += q.place.at.kind == TT_FLOW_AT_REG ? b : 0;
    q.place.at.addr += b;
    q.place.ram += b;
    q.place.at.len = n;
    memcpy(q.value, a->q->value + b, n);
    tt_origin_put(&q);
}

/* Bytes @b on, of which there are @n, come from the same write. */
static void ask_run(const Answer *a, unsigned b, unsigned n)
{
    TtOriginQuestion q = child(a);
    const TtFlowWrite *w;
    TtFlowPlace from;

    if (a->by[b] == NO_WRITE) {
        ask_rest(a, b, n, a->found->pos);
        return;
    }
    w = &a->flow.writes[a->by[b]];
    if (w->how == TT_FLOW_COPY && w->from.len < w->to.len) {
        if (!b || a->by[b - 1] != a->by[b]) {
            from = w->from;
            from.len = MIN(from.len, TT_ORIGIN_BYTES_MAX);
            tt_origin_put_place(&from, a->cpu->cpu_index, &q);
        }
    } else if (w->how == TT_FLOW_COPY) {
        from = w->from;
        from.first += from.kind == TT_FLOW_AT_REG ? a->at[b] : 0;
        from.addr += a->at[b];
        from.len = n;
        tt_origin_put_place(&from, a->cpu->cpu_index, &q);
    }
}

static bool is_computed(const Answer *a)
{
    for (unsigned b = 0; b < a->q->place.at.len; b++) {
        if (a->by[b] != NO_WRITE && a->flow.writes[a->by[b]].how == TT_FLOW_COMPUTED) {
            return true;
        }
    }
    return false;
}

static void ask_sources(const Answer *a)
{
    unsigned len = a->q->place.at.len, n;

    if (is_computed(a)) {
        TtOriginQuestion q = child(a);

        q.depth++;
        for (unsigned i = 0; i < a->flow.n_reads; i++) {
            if (a->flow.reads[i].kind != TT_FLOW_AT_CONST) {
                tt_origin_put_place(&a->flow.reads[i], a->cpu->cpu_index, &q);
            }
        }
    }
    for (unsigned b = 0; b < len; b += n) {
        for (n = 1; b + n < len && a->by[b + n] == a->by[b] &&
             (a->by[b] == NO_WRITE || a->at[b + n] == a->at[b] + n); n++) {
        }
        ask_run(a, b, n);
    }
}

/* ---- by whom ---- */

/* What it writes beside an instruction's own writes: the state that VMRUN saves, and bits
 * of page tables (accessed, dirty) and descriptors (accessed, busy). */
static bool is_by_cpu(const Answer *a, const uint8_t *before)
{
    uint8_t changed = 0;

    for (unsigned b = 0; b < a->q->place.at.len; b++) {
        changed |= before[b] ^ a->q->value[b];
    }
    return !strncmp(a->flow.text, "vmrun", strlen("vmrun")) || !(changed & ~0x63);
}

static void say_write(Answer *a)
{
    const TtFlowWrite *w = main_write(a);
    char more[64] = "";

    if (w->how == TT_FLOW_PORT) {
        snprintf(more, sizeof(more), " port=0x%" PRIx64, w->from.addr);
    }
    say(a, w->how == TT_FLOW_COPY && w->from.len < w->to.len ? "fill" : word_of(w->how),
        more);
    ask_sources(a);
}

static bool by_instruction(Answer *a)
{
    if (!map_bytes(a)) {
        uint8_t before[TT_ORIGIN_BYTES_MAX];
        bool is_memory = a->q->place.at.kind == TT_FLOW_AT_MEM &&
            tt_origin_read(&a->q->place, before);

        /* Also a walk of page tables, which looks whether it could write there. */
        if (is_memory && !memcmp(before, a->q->value, a->q->place.at.len)) {
            return false;
        }
        say(a, is_memory && is_by_cpu(a, before) ? "cpu" : "unknown", "");
        return true;
    }
    say_write(a);
    return true;
}

/* Or what its instruction wrote: all, and it trapped; or a part of a repeated one. */
static void by_exception(Answer *a)
{
    if (map_bytes(a)) {
        say_write(a);
    } else {
        a->flow.text[0] = 0;
        say(a, "exception", "");
    }
}

/* What its last write left alone. Another one may have the same position. */
static void ask_beside_device(const Answer *a)
{
    unsigned len = a->q->place.at.len, n;

    for (unsigned b = 0; b < len; b += n) {
        bool is_its = a->found->bytes >> b & 1;

        for (n = 1; b + n < len && (a->found->bytes >> (b + n) & 1) == is_its; n++) {
        }
        if (!is_its) {
            ask_rest(a, b, n, a->found->to);
        }
    }
}

static void by_device(Answer *a)
{
    const TtOriginFound *f = a->found;
    g_autofree char *more = NULL;

    if (f->in_insn) {           /* the text of the one that asked the device */
        decode(a);
    }
    if (f->has_disk) {
        const TtBlock *b = tt_memory_block(f->event.addr);
        uint64_t at = a->q->place.ram - memory_region_get_ram_addr(b->mr) - f->event.val;

        /* Of a value that begins before the event, its first byte. */
        at = at < f->event.aux ? at : 0;
        more = g_strdup_printf(" disk=%u version=%u sector=%" PRIu64 " byte=%" PRIu64
                               " bytes=%u inside=%d", f->disk.disk, f->disk.version,
                               f->disk.sector + at / 512, at % 512, f->event.aux,
                               f->in_insn);
    } else {
        more = g_strdup_printf(" bytes=%" PRIu32 " inside=%d", tt_event_bytes(&f->event),
                               f->in_insn);
    }
    say(a, f->has_disk ? "disk" : "device", more);
    ask_beside_device(a);
}

/* What changes the VM here may stand behind annotations, which do not. */
static bool is_interrupt(const Answer *a, uint64_t *vector)
{
    TtSched *sched = tt_replay_sched();
    TtCursor here = tt_sched_tell(sched);
    const TtEvent *ev = tt_sched_peek(sched);
    bool is, moved = false;

    while (ev && TT_EV_IS_ANNOTATION(ev->kind) && ev->pos <= a->found->pos) {
        tt_sched_pop(sched);
        ev = tt_sched_peek(sched);
        moved = true;
    }
    is = ev && ev->kind == TT_EV_INTR;
    *vector = is ? ev->val : 0;
    if (moved) {
        tt_sched_seek(sched, here, NULL);
    }
    return is;
}

static void by_event(Answer *a)
{
    g_autofree char *more = NULL;
    uint64_t vector;

    if (is_interrupt(a, &vector)) {
        more = g_strdup_printf(" vector=%" PRIu64, vector);
    }
    say(a, more ? "interrupt" : "event", more ?: "");
}

bool tt_origin_answer(const TtOriginQuestion *q, const TtOriginFound *found, unsigned id)
{
    Answer a = { .q = q, .found = found, .id = id, .cpu = tt_vcpu() };

    switch (found->by) {
    case TT_ORIGIN_BY_INSN:
        return by_instruction(&a);
    case TT_ORIGIN_BY_DEVICE:
        by_device(&a);
        break;
    case TT_ORIGIN_BY_EVENT:
        by_event(&a);
        break;
    case TT_ORIGIN_BY_EXCEPTION:
        by_exception(&a);
        break;
    case TT_ORIGIN_BY_NOBODY:
        say(&a, "initial", "");
        break;
    default:
        say(&a, "far", "");
        break;
    }
    return true;
}
