/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Instructions whose operands do not say what is copied where: the stack, strings,
 * inputs. Moves: tt-flow-moves.c.
 */
#include "tt-flow-int.h"

#include <string.h>

#ifdef TT_HAVE_CAPSTONE

#define NOTHING ((TtFlowPlace) { 0 })
enum { AX, CX, DX, BX, SP, BP, SI, DI };

static uint64_t masked(const TtFlowWork *w, unsigned reg, unsigned bytes)
{
    uint64_t v = w->regs->general[reg];

    return bytes < 8 ? v & ((UINT64_C(1) << 8 * bytes) - 1) : v;
}

/* As wide as addresses are here; of strings and of the stack. */
static unsigned address_bytes(const TtFlowWork *w)
{
    return w->x86->addr_size ?: w->regs->bits / 8;
}

static TtFlowPlace memory_at(const TtFlowWork *w, unsigned reg, unsigned seg,
                             unsigned bytes, int64_t more, unsigned len)
{
    uint64_t at = masked(w, reg, 8) + more;

    at = bytes < 8 ? at & ((UINT64_C(1) << 8 * bytes) - 1) : at;
    at += w->regs->bits == 64 && seg < 4 ? 0 : w->regs->bases[seg];
    return (TtFlowPlace) { .kind = TT_FLOW_AT_MEM, .len = len,
                       .addr = w->regs->bits == 64 ? at : at & UINT32_MAX };
}

static void computed(TtFlowWork *w, unsigned reg, unsigned bytes)
{
    TtFlowPlace p = tt_flow_general(reg, bytes);

    tt_flow_read(w, p);
    tt_flow_write(w, p, TT_FLOW_COMPUTED, NOTHING);
}

/* ---- the stack ---- */

static void push(TtFlowWork *w, TtFlowHow how, const TtFlowPlace *from, unsigned len)
{
    unsigned bytes = w->regs->bits / 8;
    TtFlowPlace at = memory_at(w, SP, 2, bytes, -(int64_t)len, len);

    if (how == TT_FLOW_COPY) {
        tt_flow_copy(w, at, *from);
    } else {
        tt_flow_write(w, at, how, from ? *from : NOTHING);
    }
    computed(w, SP, bytes);
}

static unsigned pushed_bytes(const TtFlowWork *w)
{
    bool is_short = w->x86->prefix[2];      /* 0x66 */

    return w->regs->bits == 64 ? (is_short ? 2 : 8) :
        (w->regs->bits == 32) != is_short ? 4 : 2;
}

static void push_operand(TtFlowWork *w)
{
    TtFlowPlace from;

    if (!tt_flow_operand(w, 0, &from)) {
        push(w, TT_FLOW_UNKNOWN, NULL, pushed_bytes(w));
    } else {
        if (from.kind == TT_FLOW_AT_CONST) {
            from.len = pushed_bytes(w);
        }
        push(w, from.kind == TT_FLOW_AT_CONST ? TT_FLOW_CONSTANT : TT_FLOW_COPY, &from,
             from.len);
    }
}

static void pop_operand(TtFlowWork *w)
{
    unsigned bytes = w->regs->bits / 8;
    TtFlowPlace to;

    if (!tt_flow_operand(w, 0, &to)) {
        computed(w, SP, bytes);             /* a segment register */
        return;
    }
    if (to.kind == TT_FLOW_AT_MEM && (w->x86->operands[0].mem.base == X86_REG_RSP ||
                                      w->x86->operands[0].mem.base == X86_REG_ESP)) {
        to.addr += to.len;                  /* its address is that after the pop */
    }
    if (to.kind != TT_FLOW_AT_REG || to.reg != SP) {
        computed(w, SP, bytes);
    }
    tt_flow_copy(w, to, memory_at(w, SP, 2, bytes, 0, to.len));
}

static void call(TtFlowWork *w)
{
    TtFlowPlace back = tt_flow_const(w->regs->pc + w->insn->size, pushed_bytes(w));

    push(w, TT_FLOW_CONSTANT, &back, back.len);
}

/* CS, and below it the address. */
static void far_call(TtFlowWork *w)
{
    unsigned len = w->x86->rex & 8 ? 8 : (w->regs->bits == 16) != !!w->x86->prefix[2] ? 2 : 4;
    TtFlowPlace back = tt_flow_const(w->regs->pc + w->insn->size, len);
    TtFlowPlace target;

    if (tt_flow_operand(w, 0, &target) && target.kind == TT_FLOW_AT_MEM) {
        tt_flow_read(w, target);
    }
    push(w, TT_FLOW_UNKNOWN, NULL, len);
    tt_flow_write(w, memory_at(w, SP, 2, w->regs->bits / 8, -2 * (int64_t)len, len),
                  TT_FLOW_CONSTANT, back);
}

static void leave(TtFlowWork *w)
{
    unsigned bytes = w->regs->bits / 8;

    tt_flow_read(w, tt_flow_general(BP, bytes));
    tt_flow_write(w, tt_flow_general(SP, bytes), TT_FLOW_COMPUTED, NOTHING);
    tt_flow_copy(w, tt_flow_general(BP, bytes), memory_at(w, BP, 2, bytes, 0, bytes));
}

static void enter(TtFlowWork *w)
{
    unsigned bytes = w->regs->bits / 8;
    unsigned level = w->x86->op_count > 1 ? w->x86->operands[1].imm & 31 : 0;
    TtFlowPlace frame = tt_flow_general(BP, bytes);

    push(w, TT_FLOW_COPY, &frame, bytes);
    if (level) {                            /* the pointers of the outer frames */
        unsigned len = bytes * level;

        tt_flow_write(w, memory_at(w, SP, 2, bytes, -(int64_t)(bytes + len), len),
                      TT_FLOW_UNKNOWN, NOTHING);
    }
    tt_flow_write(w, frame, TT_FLOW_COMPUTED, NOTHING);
}

static void push_all(TtFlowWork *w)
{
    unsigned bytes = pushed_bytes(w);

    for (unsigned i = 0; i < 8; i++) {
        int64_t down = -(int64_t)(bytes * (i + 1));

        tt_flow_copy(w, memory_at(w, SP, 2, w->regs->bits / 8, down, bytes),
                     tt_flow_general(i, bytes));
    }
    computed(w, SP, w->regs->bits / 8);
}

static void pop_all(TtFlowWork *w)
{
    unsigned bytes = pushed_bytes(w);

    for (unsigned i = 0; i < 8; i++) {
        if (7 - i != SP) {
            tt_flow_copy(w, tt_flow_general(7 - i, bytes),
                         memory_at(w, SP, 2, w->regs->bits / 8, bytes * i, bytes));
        }
    }
    computed(w, SP, w->regs->bits / 8);
}

/* ---- strings ---- */

/* capstone forgets REPNE where it means REP. */
static bool is_repeated(const TtFlowWork *w)
{
    for (unsigned i = 0; i < w->insn->size; i++) {
        uint8_t b = w->insn->bytes[i];

        if (b == 0xf2 || b == 0xf3) {
            return true;
        }
        if (!b || (!strchr("\x66\x67\xf0\x2e\x36\x3e\x26\x64\x65", b) &&
                   (w->regs->bits != 64 || (b & 0xf0) != 0x40))) {
            break;
        }
    }
    return false;
}

static unsigned segment_of_source(const TtFlowWork *w)
{
    switch (w->x86->prefix[1]) {
    case X86_PREFIX_ES: return 0;
    case X86_PREFIX_CS: return 1;
    case X86_PREFIX_SS: return 2;
    case X86_PREFIX_FS: return 4;
    case X86_PREFIX_GS: return 5;
    default: return 3;
    }
}

static unsigned string_bytes(const TtFlowWork *w)
{
    bool is_short = w->x86->prefix[2];      /* 0x66 */

    return !(w->x86->opcode[0] & 1) ? 1 : w->x86->rex & 8 ? 8 :
        (w->regs->bits == 16) != is_short ? 2 : 4;
}

/* After at least one, QEMU leaves a repeated one where the lower 16 bits of the count are 1
 * and others are not 0. */
static unsigned repetitions(const TtFlowWork *w, unsigned address)
{
    uint64_t count = is_repeated(w) ? masked(w, CX, address) : 1;

    return count <= 0x10001 ? count : (count - 1) & 0xffff ?: 0x10000;
}

/* All that @times elements from @p on are, up or down. */
static TtFlowPlace all_of(const TtFlowWork *w, TtFlowPlace p, unsigned times)
{
    if (times && w->regs->flags & 0x400) {
        p.addr -= (uint64_t)p.len * (times - 1);
    }
    p.len *= times;
    return p;
}

static void move_string(TtFlowWork *w, TtFlowPlace target, TtFlowPlace source, unsigned n)
{
    uint64_t ahead = target.addr - source.addr;
    bool is_down = w->regs->flags & 0x400;

    if (target.len > n && ahead && (is_down ? -ahead : ahead) < target.len) {
        /* It reads what it wrote: the first bytes, again and again. */
        source.len = ahead;
        if (is_down || ahead < n) {
            source.len = n;
            source.addr += is_down ? target.len - n : 0;
            tt_flow_read(w, source);
            tt_flow_write(w, target, TT_FLOW_COMPUTED, NOTHING);
            return;
        }
    }
    tt_flow_write(w, target, TT_FLOW_COPY, source);
}

static void string(TtFlowWork *w, char what)
{
    unsigned a = address_bytes(w), n = string_bytes(w), times = repetitions(w, a);
    TtFlowPlace last = memory_at(w, SI, segment_of_source(w), a, 0, n);
    TtFlowPlace source = all_of(w, last, times);
    TtFlowPlace target = all_of(w, memory_at(w, DI, 0, a, 0, n), times);

    w->out->repeats = is_repeated(w);
    if (w->out->repeats) {
        if (!masked(w, CX, a)) {
            return;
        }
        computed(w, CX, a);
    }
    if (strchr("mlco", what)) {
        computed(w, SI, a);
    }
    if (strchr("msxci", what)) {
        computed(w, DI, a);
    }
    if (what == 'm') {
        move_string(w, target, source, n);
    } else if (what == 's') {
        tt_flow_write(w, target, TT_FLOW_COPY, tt_flow_general(AX, n));
    } else if (what == 'l') {
        last.addr = w->regs->flags & 0x400 ? source.addr : source.addr + source.len - n;
        tt_flow_copy(w, tt_flow_general(AX, n), last);
    } else if (what == 'i') {
        tt_flow_write(w, target, TT_FLOW_PORT, tt_flow_const(masked(w, DX, 2), 2));
    }
}

/* ---- inputs ---- */

static void port_in(TtFlowWork *w)
{
    TtFlowPlace to, port;

    if (tt_flow_operand(w, 0, &to) && tt_flow_operand(w, 1, &port)) {
        tt_flow_write(w, to, TT_FLOW_PORT,
                      tt_flow_const(port.kind == TT_FLOW_AT_CONST ? port.addr & 0xff :
                                    masked(w, DX, 2), 2));
    }
}

static void inputs(TtFlowWork *w, TtFlowHow how, const char *regs)
{
    for (; *regs; regs++) {
        static const char order[] = "acdb";

        tt_flow_write(w, tt_flow_general(strchr(order, *regs) - order, 4), how, NOTHING);
    }
}

static void input_operand(TtFlowWork *w, TtFlowHow how)
{
    TtFlowPlace to;

    if (tt_flow_operand(w, 0, &to)) {
        tt_flow_write(w, to, how, NOTHING);
    }
}

/* ---- others ---- */

static void extend(TtFlowWork *w, unsigned bytes)
{
    tt_flow_read(w, tt_flow_general(AX, bytes));
    tt_flow_write(w, tt_flow_general(DX, bytes), TT_FLOW_COMPUTED, NOTHING);
}

/* MASKMOVQ and its kin: those bytes whose mask says so. */
static void store_masked(TtFlowWork *w)
{
    TtFlowPlace from;
    unsigned len = w->insn->id == X86_INS_MASKMOVQ ? 8 : 16;

    for (unsigned i = 0; i < 2; i++) {
        if (tt_flow_operand(w, i, &from)) {
            tt_flow_read(w, from);
        }
    }
    tt_flow_write(w, memory_at(w, DI, segment_of_source(w), address_bytes(w), 0, len),
                  TT_FLOW_COMPUTED, NOTHING);
}

static void look_up(TtFlowWork *w)
{
    unsigned a = address_bytes(w);

    tt_flow_copy(w, tt_flow_general(AX, 1),
         memory_at(w, BX, segment_of_source(w), a, masked(w, AX, 1), 1));
}

/* ---- the table ---- */

static bool strings(TtFlowWork *w)
{
    switch (w->insn->id) {
    case X86_INS_MOVSD:
        if (tt_flow_is_vector(w)) {
            tt_flow_move_scalar(w, 8, true);
            return true;
        }
        /* fall through */
    case X86_INS_MOVSB: case X86_INS_MOVSW: case X86_INS_MOVSQ:
        string(w, 'm');
        return true;
    case X86_INS_STOSB: case X86_INS_STOSW: case X86_INS_STOSD: case X86_INS_STOSQ:
        string(w, 's');
        return true;
    case X86_INS_LODSB: case X86_INS_LODSW: case X86_INS_LODSD: case X86_INS_LODSQ:
        string(w, 'l');
        return true;
    case X86_INS_SCASB: case X86_INS_SCASW: case X86_INS_SCASD: case X86_INS_SCASQ:
        string(w, 'x');
        return true;
    case X86_INS_CMPSD:
        if (tt_flow_is_vector(w)) {
            return false;
        }
        /* fall through */
    case X86_INS_CMPSB: case X86_INS_CMPSW: case X86_INS_CMPSQ:
        string(w, 'c');
        return true;
    case X86_INS_INSB: case X86_INS_INSW: case X86_INS_INSD:
        string(w, 'i');
        return true;
    case X86_INS_OUTSB: case X86_INS_OUTSW: case X86_INS_OUTSD:
        string(w, 'o');
        return true;
    default:
        return false;
    }
}

static bool stack(TtFlowWork *w)
{
    switch (w->insn->id) {
    case X86_INS_PUSH:
        push_operand(w);
        return true;
    case X86_INS_PUSHF: case X86_INS_PUSHFD: case X86_INS_PUSHFQ:
        push(w, TT_FLOW_COMPUTED, NULL, pushed_bytes(w));
        return true;
    case X86_INS_POP:
        pop_operand(w);
        return true;
    case X86_INS_CALL:
        call(w);
        return true;
    case X86_INS_LCALL:
        far_call(w);
        return true;
    case X86_INS_RET: case X86_INS_POPF: case X86_INS_POPFD: case X86_INS_POPFQ:
        computed(w, SP, w->regs->bits / 8);
        return true;
    case X86_INS_ENTER:
        enter(w);
        return true;
    case X86_INS_PUSHAW: case X86_INS_PUSHAL:
        push_all(w);
        return true;
    case X86_INS_POPAW: case X86_INS_POPAL:
        pop_all(w);
        return true;
    case X86_INS_LEAVE:
        leave(w);
        return true;
    default:
        return false;
    }
}

static bool others(TtFlowWork *w)
{
    switch (w->insn->id) {
    case X86_INS_IN:
        port_in(w);
        return true;
    case X86_INS_CWD: case X86_INS_CDQ: case X86_INS_CQO:
        extend(w, w->insn->id == X86_INS_CQO ? 8 : w->insn->id == X86_INS_CDQ ? 4 : 2);
        return true;
    case X86_INS_MASKMOVQ: case X86_INS_MASKMOVDQU: case X86_INS_VMASKMOVDQU:
        store_masked(w);
        return true;
    case X86_INS_XLATB:
        look_up(w);
        return true;
    case X86_INS_RDTSC: case X86_INS_RDPMC:
        inputs(w, TT_FLOW_TSC, "ad");
        return true;
    case X86_INS_RDTSCP:
        inputs(w, TT_FLOW_TSC, "adc");
        return true;
    case X86_INS_RDMSR: case X86_INS_XGETBV:
        inputs(w, TT_FLOW_MSR, "ad");
        return true;
    case X86_INS_CPUID:
        inputs(w, TT_FLOW_CPUID, "abcd");
        return true;
    case X86_INS_RDRAND: case X86_INS_RDSEED:
        input_operand(w, TT_FLOW_RANDOM);
        return true;
    case X86_INS_SYSCALL:
        tt_flow_write(w, tt_flow_general(CX, 8), TT_FLOW_CONSTANT,
                      tt_flow_const(w->regs->pc + w->insn->size, 8));
        tt_flow_write(w, tt_flow_general(11, 8), TT_FLOW_COMPUTED, NOTHING);
        return true;
    default:
        return false;
    }
}

bool tt_flow_special(TtFlowWork *w)
{
    return tt_flow_moves(w) || strings(w) || stack(w) || others(w);
}

#endif
