/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Instructions whose operands do not say what is copied where: moves, the stack,
 * strings, inputs.
 */
#include "tt-flow-int.h"

#include <string.h>

#ifdef TT_HAVE_CAPSTONE

#define NOTHING ((TtPlace) { 0 })
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

static TtPlace memory_at(const TtFlowWork *w, unsigned reg, unsigned seg, unsigned bytes,
                         int64_t more, unsigned len)
{
    uint64_t at = masked(w, reg, 8) + more;

    at = bytes < 8 ? at & ((UINT64_C(1) << 8 * bytes) - 1) : at;
    at += w->regs->bits == 64 && seg < 4 ? 0 : w->regs->bases[seg];
    return (TtPlace) { .kind = TT_PLACE_MEM, .len = len,
                       .addr = w->regs->bits == 64 ? at : at & UINT32_MAX };
}

static void computed(TtFlowWork *w, unsigned reg, unsigned bytes)
{
    TtPlace p = tt_flow_general(reg, bytes);

    tt_flow_read(w, p);
    tt_flow_write(w, p, TT_FLOW_COMPUTED, NOTHING);
}

/* ---- moves ---- */

static TtPlace cut(TtPlace p, unsigned from, unsigned len)
{
    p.first += p.kind == TT_PLACE_REG ? from : 0;
    p.addr += p.kind == TT_PLACE_MEM ? from : 0;
    p.addr >>= p.kind == TT_PLACE_CONST && from < 8 ? 8 * from : 0;
    p.len = len;
    return p;
}

/* @from, or as much of it as fits, to the lower bytes of @to. */
static void copy(TtFlowWork *w, TtPlace to, TtPlace from)
{
    unsigned len = to.len < from.len ? to.len : from.len;

    tt_flow_write(w, cut(to, 0, len),
                  from.kind == TT_PLACE_CONST ? TT_FLOW_CONSTANT : TT_FLOW_COPY,
                  cut(from, 0, len));
}

static void fill(TtFlowWork *w, TtPlace to, unsigned from, TtFlowHow how)
{
    if (to.len > from) {
        tt_flow_write(w, cut(to, from, to.len - from), how,
                      tt_flow_const(0, to.len - from));
    }
}

static void mov(TtFlowWork *w)
{
    TtPlace to, from;
    bool from_known = tt_flow_operand(w, 1, &from);

    if (!tt_flow_operand(w, 0, &to)) {
        return;
    }
    if (!from_known) {                      /* a segment, a control register, mmx */
        tt_flow_write(w, to, TT_FLOW_UNKNOWN, NOTHING);
        return;
    }
    if (from.kind == TT_PLACE_CONST) {      /* extended to what is written */
        from.len = to.len;
    }
    copy(w, to, from);
}

static void move_extending(TtFlowWork *w, TtFlowHow above)
{
    TtPlace to, from;

    if (!tt_flow_operand(w, 0, &to) || !tt_flow_operand(w, 1, &from)) {
        return;
    }
    tt_flow_read(w, from);
    if (to.len <= from.len) {
        copy(w, to, from);
        return;
    }
    fill(w, to, from.len, above);
    tt_flow_write(w, cut(to, 0, from.len), TT_FLOW_COPY, from);
}

/* The lower @len bytes of a vector register; zeros above them where it is loaded. */
static void move_scalar(TtFlowWork *w, unsigned len, bool keeps)
{
    TtPlace to, from;

    if (!tt_flow_operand(w, 0, &to)) {
        return;
    }
    if (w->x86->op_count != 2 || !tt_flow_operand(w, 1, &from)) {
        tt_flow_write(w, to, TT_FLOW_UNKNOWN, NOTHING);
        return;
    }
    len = len > from.len ? from.len : len;
    if (to.kind == TT_PLACE_REG && to.reg >= TT_FLOW_GENERAL &&
        !(keeps && from.kind == TT_PLACE_REG)) {
        fill(w, to, len, TT_FLOW_CONSTANT);
    }
    tt_flow_write(w, cut(to, 0, len > to.len ? to.len : len), TT_FLOW_COPY,
                  cut(from, 0, len > to.len ? to.len : len));
}

static bool is_taken(unsigned cc, uint64_t flags)
{
    bool c = flags & 1, p = flags & 4, z = flags & 0x40, s = flags & 0x80;
    bool o = flags & 0x800, is;

    switch (cc >> 1) {
    case 0: is = o; break;
    case 1: is = c; break;
    case 2: is = z; break;
    case 3: is = c || z; break;
    case 4: is = s; break;
    case 5: is = p; break;
    case 6: is = s != o; break;
    default: is = z || s != o; break;
    }
    return is != (cc & 1);
}

static void move_if(TtFlowWork *w)
{
    TtPlace to;

    if (is_taken(w->x86->opcode[1] & 15, w->regs->flags)) {
        mov(w);
    } else if (tt_flow_operand(w, 0, &to) && to.len == 4 && w->regs->bits == 64) {
        fill(w, (TtPlace) { .reg = to.reg, .len = 8 }, 4, TT_FLOW_CONSTANT);
    }
}

static void exchange(TtFlowWork *w, bool adds)
{
    TtPlace a, b;

    if (tt_flow_operand(w, 0, &a) && tt_flow_operand(w, 1, &b)) {
        if (adds) {
            tt_flow_read(w, a);
            tt_flow_read(w, b);
            tt_flow_write(w, a, TT_FLOW_COMPUTED, NOTHING);
        } else {
            copy(w, a, b);
        }
        copy(w, b, a);
    }
}

static void compare_exchange(TtFlowWork *w)
{
    TtPlace to, from, acc;

    if (tt_flow_operand(w, 0, &to) && tt_flow_operand(w, 1, &from)) {
        acc = tt_flow_general(AX, to.len);
        tt_flow_read(w, to);
        tt_flow_read(w, from);
        tt_flow_read(w, acc);
        tt_flow_write(w, to, TT_FLOW_COMPUTED, NOTHING);
        copy(w, acc, to);       /* if both are equal, it is the same */
    }
}

/* ---- the stack ---- */

static void push(TtFlowWork *w, TtFlowHow how, const TtPlace *from, unsigned len)
{
    unsigned bytes = w->regs->bits / 8;
    TtPlace at = memory_at(w, SP, 2, bytes, -(int64_t)len, len);

    if (how == TT_FLOW_COPY) {
        copy(w, at, *from);
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
    TtPlace from;

    if (!tt_flow_operand(w, 0, &from)) {
        push(w, TT_FLOW_UNKNOWN, NULL, pushed_bytes(w));
    } else {
        if (from.kind == TT_PLACE_CONST) {
            from.len = pushed_bytes(w);
        }
        push(w, from.kind == TT_PLACE_CONST ? TT_FLOW_CONSTANT : TT_FLOW_COPY, &from,
             from.len);
    }
}

static void pop_operand(TtFlowWork *w)
{
    unsigned bytes = w->regs->bits / 8;
    TtPlace to;

    if (!tt_flow_operand(w, 0, &to)) {
        computed(w, SP, bytes);             /* a segment register */
        return;
    }
    if (to.kind == TT_PLACE_MEM && w->x86->operands[0].mem.base == X86_REG_RSP) {
        to.addr += to.len;                  /* its address is that after the pop */
    }
    if (to.kind != TT_PLACE_REG || to.reg != SP) {
        computed(w, SP, bytes);
    }
    copy(w, to, memory_at(w, SP, 2, bytes, 0, to.len));
}

static void call(TtFlowWork *w)
{
    TtPlace back = tt_flow_const(w->regs->pc + w->insn->size, pushed_bytes(w));

    push(w, TT_FLOW_CONSTANT, &back, back.len);
}

static void leave(TtFlowWork *w)
{
    unsigned bytes = w->regs->bits / 8;

    tt_flow_read(w, tt_flow_general(BP, bytes));
    tt_flow_write(w, tt_flow_general(SP, bytes), TT_FLOW_COMPUTED, NOTHING);
    copy(w, tt_flow_general(BP, bytes), memory_at(w, BP, 2, bytes, 0, bytes));
}

static void enter(TtFlowWork *w)
{
    unsigned bytes = w->regs->bits / 8;
    TtPlace frame = tt_flow_general(BP, bytes);

    push(w, TT_FLOW_COPY, &frame, bytes);
    tt_flow_write(w, frame, TT_FLOW_COMPUTED, NOTHING);
}

static void push_all(TtFlowWork *w)
{
    unsigned bytes = pushed_bytes(w);

    for (unsigned i = 0; i < 8; i++) {
        copy(w, memory_at(w, SP, 2, w->regs->bits / 8, -(int64_t)(bytes * (i + 1)), bytes),
             tt_flow_general(i, bytes));
    }
    computed(w, SP, w->regs->bits / 8);
}

/* ---- strings ---- */

static bool is_repeated(const TtFlowWork *w)
{
    return w->x86->prefix[0] == X86_PREFIX_REP || w->x86->prefix[0] == X86_PREFIX_REPNE;
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

static void string(TtFlowWork *w, char what)
{
    unsigned a = address_bytes(w), n = string_bytes(w);
    TtPlace source = memory_at(w, SI, segment_of_source(w), a, 0, n);
    TtPlace target = memory_at(w, DI, 0, a, 0, n);

    if (is_repeated(w)) {
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
        copy(w, target, source);
    } else if (what == 's') {
        copy(w, target, tt_flow_general(AX, n));
    } else if (what == 'l') {
        copy(w, tt_flow_general(AX, n), source);
    } else if (what == 'i') {
        tt_flow_write(w, target, TT_FLOW_PORT, tt_flow_const(masked(w, DX, 2), 2));
    }
}

/* ---- inputs ---- */

static void port_in(TtFlowWork *w)
{
    TtPlace to, port;

    if (tt_flow_operand(w, 0, &to) && tt_flow_operand(w, 1, &port)) {
        tt_flow_write(w, to, TT_FLOW_PORT,
                      tt_flow_const(port.kind == TT_PLACE_CONST ? port.addr & 0xff :
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
    TtPlace to;

    if (tt_flow_operand(w, 0, &to)) {
        tt_flow_write(w, to, how, NOTHING);
    }
}

/* ---- others ---- */

/* Vector registers in the area of FXSAVE and XSAVE: from byte 160 on. */
static void save_area(TtFlowWork *w, bool loads, bool is_plain)
{
    unsigned n = w->regs->bits == 64 ? 16 : 8;
    TtPlace area;

    if (!tt_flow_operand(w, 0, &area) || area.kind != TT_PLACE_MEM) {
        return;
    }
    area.len = is_plain ? 512 : 4096;
    for (unsigned i = 0; i < n; i++) {
        TtPlace reg = { .reg = TT_FLOW_GENERAL + i, .len = is_plain ? 16 : 32 };

        if (!loads) {
            reg.len = 16;
            copy(w, cut(area, 160 + 16 * i, 16), reg);
        } else if (is_plain) {
            copy(w, reg, cut(area, 160 + 16 * i, 16));
        } else {
            tt_flow_write(w, reg, TT_FLOW_UNKNOWN, NOTHING);
        }
    }
    if (!loads) {
        tt_flow_write(w, area, TT_FLOW_UNKNOWN, NOTHING);
    }
}

/* True: both operands are one register, and the result is 0. */
static bool is_zero(TtFlowWork *w)
{
    unsigned last = w->x86->op_count - 1;
    TtPlace a, b, to;

    if (w->x86->op_count < 2 || !tt_flow_operand(w, last, &a) ||
        !tt_flow_operand(w, last - 1, &b) || a.kind != TT_PLACE_REG ||
        memcmp(&a, &b, sizeof(a)) || !tt_flow_operand(w, 0, &to)) {
        return false;
    }
    tt_flow_write(w, to, TT_FLOW_CONSTANT, tt_flow_const(0, to.len));
    return true;
}

static void address(TtFlowWork *w)
{
    const x86_op_mem *mem = &w->x86->operands[1].mem;
    TtPlace to, p;

    if (tt_flow_operand(w, 0, &to)) {
        if (tt_flow_reg(mem->base, &p)) {
            tt_flow_read(w, p);
        }
        if (tt_flow_reg(mem->index, &p)) {
            tt_flow_read(w, p);
        }
        tt_flow_write(w, to, TT_FLOW_COMPUTED, NOTHING);
    }
}

static void extend(TtFlowWork *w, unsigned bytes)
{
    tt_flow_read(w, tt_flow_general(AX, bytes));
    tt_flow_write(w, tt_flow_general(DX, bytes), TT_FLOW_COMPUTED, NOTHING);
}

static void look_up(TtFlowWork *w)
{
    unsigned a = address_bytes(w);

    copy(w, tt_flow_general(AX, 1),
         memory_at(w, BX, segment_of_source(w), a, masked(w, AX, 1), 1));
}

static void compare_exchange_two(TtFlowWork *w)
{
    TtPlace to;

    if (tt_flow_operand(w, 0, &to)) {
        unsigned half = w->insn->id == X86_INS_CMPXCHG8B ? 4 : 8;

        to.len = 2 * half;
        tt_flow_read(w, to);
        tt_flow_read(w, tt_flow_general(BX, half));
        tt_flow_read(w, tt_flow_general(CX, half));
        tt_flow_write(w, to, TT_FLOW_COMPUTED, NOTHING);
        copy(w, tt_flow_general(AX, half), cut(to, 0, half));
        copy(w, tt_flow_general(DX, half), cut(to, half, half));
    }
}

/* ---- the table ---- */

static bool is_vector_move(const TtFlowWork *w)
{
    TtPlace p;

    for (unsigned i = 0; i < 2; i++) {
        if (tt_flow_operand(w, i, &p) && p.kind == TT_PLACE_REG &&
            p.reg >= TT_FLOW_GENERAL) {
            return true;
        }
    }
    return false;
}

static bool moves(TtFlowWork *w)
{
    switch (w->insn->id) {
    case X86_INS_MOV: case X86_INS_MOVABS: case X86_INS_MOVAPS: case X86_INS_MOVAPD:
    case X86_INS_MOVUPS: case X86_INS_MOVUPD: case X86_INS_MOVDQA: case X86_INS_MOVDQU:
    case X86_INS_LDDQU: case X86_INS_MOVNTDQ: case X86_INS_MOVNTDQA:
    case X86_INS_MOVNTPS: case X86_INS_MOVNTPD: case X86_INS_MOVNTI:
    case X86_INS_VMOVAPS: case X86_INS_VMOVAPD: case X86_INS_VMOVUPS:
    case X86_INS_VMOVUPD: case X86_INS_VMOVDQA: case X86_INS_VMOVDQU:
    case X86_INS_VMOVNTDQ: case X86_INS_VMOVNTPS: case X86_INS_VMOVNTPD:
    case X86_INS_VMOVNTDQA: case X86_INS_VLDDQU:
        mov(w);
        return true;
    case X86_INS_MOVZX:
        move_extending(w, TT_FLOW_CONSTANT);
        return true;
    case X86_INS_MOVSX: case X86_INS_MOVSXD:
        move_extending(w, TT_FLOW_COMPUTED);
        return true;
    case X86_INS_MOVQ: case X86_INS_VMOVQ:
        move_scalar(w, 8, false);
        return true;
    case X86_INS_MOVD: case X86_INS_VMOVD:
        move_scalar(w, 4, false);
        return true;
    case X86_INS_MOVSS: case X86_INS_VMOVSS:
        move_scalar(w, 4, true);
        return true;
    case X86_INS_VMOVSD:
        move_scalar(w, 8, true);
        return true;
    case X86_INS_CMOVA: case X86_INS_CMOVAE: case X86_INS_CMOVB: case X86_INS_CMOVBE:
    case X86_INS_CMOVE: case X86_INS_CMOVG: case X86_INS_CMOVGE: case X86_INS_CMOVL:
    case X86_INS_CMOVLE: case X86_INS_CMOVNE: case X86_INS_CMOVNO: case X86_INS_CMOVNP:
    case X86_INS_CMOVNS: case X86_INS_CMOVO: case X86_INS_CMOVP: case X86_INS_CMOVS:
        move_if(w);
        return true;
    case X86_INS_XCHG:
        exchange(w, false);
        return true;
    case X86_INS_XADD:
        exchange(w, true);
        return true;
    case X86_INS_CMPXCHG:
        compare_exchange(w);
        return true;
    case X86_INS_LEA:
        address(w);
        return true;
    case X86_INS_XOR: case X86_INS_SUB: case X86_INS_PXOR: case X86_INS_XORPS:
    case X86_INS_XORPD: case X86_INS_VPXOR: case X86_INS_VXORPS: case X86_INS_VXORPD:
        return is_zero(w);
    default:
        return false;
    }
}

static bool strings(TtFlowWork *w)
{
    switch (w->insn->id) {
    case X86_INS_MOVSD:
        if (is_vector_move(w)) {
            move_scalar(w, 8, true);
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
        if (is_vector_move(w)) {
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
    case X86_INS_RET: case X86_INS_POPF: case X86_INS_POPFD: case X86_INS_POPFQ:
        computed(w, SP, w->regs->bits / 8);
        return true;
    case X86_INS_ENTER:
        enter(w);
        return true;
    case X86_INS_PUSHAW: case X86_INS_PUSHAL:
        push_all(w);
        return true;
    case X86_INS_LEAVE:
        leave(w);
        return true;
    case X86_INS_FXSAVE: case X86_INS_FXSAVE64:
        save_area(w, false, true);
        return true;
    case X86_INS_FXRSTOR: case X86_INS_FXRSTOR64:
        save_area(w, true, true);
        return true;
    case X86_INS_XSAVE: case X86_INS_XSAVE64: case X86_INS_XSAVEOPT:
    case X86_INS_XSAVEOPT64: case X86_INS_XSAVEC: case X86_INS_XSAVEC64:
        save_area(w, false, false);
        return true;
    case X86_INS_XRSTOR: case X86_INS_XRSTOR64:
        save_area(w, true, false);
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
    case X86_INS_XLATB:
        look_up(w);
        return true;
    case X86_INS_CMPXCHG8B: case X86_INS_CMPXCHG16B:
        compare_exchange_two(w);
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
    return moves(w) || strings(w) || stack(w) || others(w);
}

#endif
