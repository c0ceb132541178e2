/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Moves: instructions of which each byte that they write is a byte that they read, and
 * those that look like one.
 */
#include "tt-flow-int.h"

#include <glib.h>
#include <string.h>

#ifdef TT_HAVE_CAPSTONE

#define NOTHING ((TtFlowPlace) { 0 })
enum { AX, CX, DX, BX };

TtFlowPlace tt_flow_cut(TtFlowPlace p, unsigned from, unsigned len)
{
    p.first += p.kind == TT_FLOW_AT_REG ? from : 0;
    p.addr += p.kind == TT_FLOW_AT_MEM ? from : 0;
    p.addr >>= p.kind == TT_FLOW_AT_CONST && from < 8 ? 8 * from : 0;
    p.len = len;
    return p;
}

void tt_flow_copy(TtFlowWork *w, TtFlowPlace to, TtFlowPlace from)
{
    unsigned len = to.len < from.len ? to.len : from.len;

    tt_flow_write(w, tt_flow_cut(to, 0, len),
                  from.kind == TT_FLOW_AT_CONST ? TT_FLOW_CONSTANT : TT_FLOW_COPY,
                  tt_flow_cut(from, 0, len));
}

static void fill(TtFlowWork *w, TtFlowPlace to, unsigned from, TtFlowHow how)
{
    if (to.len > from) {
        tt_flow_write(w, tt_flow_cut(to, from, to.len - from), how,
                      tt_flow_const(0, to.len - from));
    }
}

static void mov(TtFlowWork *w)
{
    TtFlowPlace to, from;
    bool from_known = tt_flow_operand(w, 1, &from);

    if (!tt_flow_operand(w, 0, &to)) {
        return;
    }
    if (!from_known) {                      /* a segment, a control register, mmx */
        tt_flow_write(w, to, TT_FLOW_UNKNOWN, NOTHING);
        return;
    }
    if (from.kind == TT_FLOW_AT_CONST) {      /* extended to what is written */
        from.len = to.len;
    }
    tt_flow_copy(w, to, from);
}

static void move_extending(TtFlowWork *w, TtFlowHow above)
{
    TtFlowPlace to, from;

    if (!tt_flow_operand(w, 0, &to) || !tt_flow_operand(w, 1, &from)) {
        return;
    }
    tt_flow_read(w, from);
    if (to.len <= from.len) {
        tt_flow_copy(w, to, from);
        return;
    }
    fill(w, to, from.len, above);
    tt_flow_write(w, tt_flow_cut(to, 0, from.len), TT_FLOW_COPY, from);
}

void tt_flow_move_scalar(TtFlowWork *w, unsigned len, bool keeps)
{
    TtFlowPlace to, from;

    if (!tt_flow_operand(w, 0, &to)) {
        return;
    }
    if (w->x86->op_count != 2 || !tt_flow_operand(w, 1, &from)) {
        tt_flow_write(w, to, TT_FLOW_UNKNOWN, NOTHING);
        return;
    }
    len = len > from.len ? from.len : len;
    if (to.kind == TT_FLOW_AT_REG && to.reg >= TT_FLOW_GENERAL &&
        !(keeps && from.kind == TT_FLOW_AT_REG)) {
        fill(w, to, len, TT_FLOW_CONSTANT);
    }
    tt_flow_write(w, tt_flow_cut(to, 0, len > to.len ? to.len : len), TT_FLOW_COPY,
                  tt_flow_cut(from, 0, len > to.len ? to.len : len));
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
    TtFlowPlace to;

    if (is_taken(w->x86->opcode[1] & 15, w->regs->flags)) {
        mov(w);
    } else if (tt_flow_operand(w, 0, &to) && to.len == 4 && w->regs->bits == 64) {
        fill(w, (TtFlowPlace) { .reg = to.reg, .len = 8 }, 4, TT_FLOW_CONSTANT);
    }
}

static void exchange(TtFlowWork *w, bool adds)
{
    TtFlowPlace a, b;

    if (tt_flow_operand(w, 0, &a) && tt_flow_operand(w, 1, &b)) {
        if (adds) {
            tt_flow_read(w, a);
            tt_flow_read(w, b);
            tt_flow_write(w, a, TT_FLOW_COMPUTED, NOTHING);
        } else {
            tt_flow_copy(w, a, b);
        }
        tt_flow_copy(w, b, a);
    }
}

static void compare_exchange(TtFlowWork *w)
{
    TtFlowPlace to, from, acc;

    if (tt_flow_operand(w, 0, &to) && tt_flow_operand(w, 1, &from)) {
        acc = tt_flow_general(0, to.len);
        tt_flow_read(w, to);
        tt_flow_read(w, from);
        tt_flow_read(w, acc);
        tt_flow_write(w, to, TT_FLOW_COMPUTED, NOTHING);
        tt_flow_copy(w, acc, to);       /* if both are equal, it is the same */
    }
}

static void compare_exchange_two(TtFlowWork *w)
{
    TtFlowPlace to;

    if (tt_flow_operand(w, 0, &to)) {
        unsigned half = w->insn->id == X86_INS_CMPXCHG8B ? 4 : 8;

        to.len = 2 * half;
        tt_flow_read(w, to);
        tt_flow_read(w, tt_flow_general(BX, half));
        tt_flow_read(w, tt_flow_general(CX, half));
        tt_flow_write(w, to, TT_FLOW_COMPUTED, NOTHING);
        tt_flow_copy(w, tt_flow_general(AX, half), tt_flow_cut(to, 0, half));
        tt_flow_copy(w, tt_flow_general(DX, half), tt_flow_cut(to, half, half));
    }
}

/* Vector registers in the area of FXSAVE and XSAVE: from byte 160 on. */
static void save_area(TtFlowWork *w, bool loads, bool is_plain)
{
    unsigned n = w->regs->bits == 64 ? 16 : 8;
    TtFlowPlace area;

    if (!tt_flow_operand(w, 0, &area) || area.kind != TT_FLOW_AT_MEM) {
        return;
    }
    area.len = is_plain ? 512 : 4096;
    for (unsigned i = 0; i < n; i++) {
        TtFlowPlace reg = { .reg = TT_FLOW_GENERAL + i, .len = is_plain ? 16 : 32 };

        if (!loads) {
            reg.len = 16;
            tt_flow_copy(w, tt_flow_cut(area, 160 + 16 * i, 16), reg);
        } else if (is_plain) {
            tt_flow_copy(w, reg, tt_flow_cut(area, 160 + 16 * i, 16));
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
    TtFlowPlace a, b, to;

    if (w->x86->op_count < 2 || !tt_flow_operand(w, last, &a) ||
        !tt_flow_operand(w, last - 1, &b) || a.kind != TT_FLOW_AT_REG ||
        memcmp(&a, &b, sizeof(a)) || !tt_flow_operand(w, 0, &to)) {
        return false;
    }
    tt_flow_write(w, to, TT_FLOW_CONSTANT, tt_flow_const(0, to.len));
    return true;
}

static void address(TtFlowWork *w)
{
    const x86_op_mem *mem = &w->x86->operands[1].mem;
    TtFlowPlace to, p;

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

bool tt_flow_is_vector(const TtFlowWork *w)
{
    TtFlowPlace p;

    for (unsigned i = 0; i < 2; i++) {
        if (tt_flow_operand(w, i, &p) && p.kind == TT_FLOW_AT_REG &&
            p.reg >= TT_FLOW_GENERAL) {
            return true;
        }
    }
    return false;
}

/* Of a vector register only @len bytes from @at on are written, from those from @from on of
 * the other operand. */
static void move_part(TtFlowWork *w, unsigned at, unsigned from_at, unsigned len)
{
    TtFlowPlace to, from;

    if (tt_flow_operand(w, 0, &to) && tt_flow_operand(w, 1, &from)) {
        if (to.kind == TT_FLOW_AT_MEM) {
            at = 0;
        }
        if (from.kind == TT_FLOW_AT_MEM ||
            (from.kind == TT_FLOW_AT_REG && from.reg < TT_FLOW_GENERAL)) {
            from_at = 0;
        }
        tt_flow_write(w, tt_flow_cut(to, at, len), TT_FLOW_COPY,
                      tt_flow_cut(from, from_at, len));
    }
}

/* PINSR and PEXTR: the third operand says which element. */
static void move_element(TtFlowWork *w, unsigned len, bool inserts)
{
    unsigned at = len * (w->x86->operands[2].imm & (16 / len - 1));
    TtFlowPlace to;

    move_part(w, inserts ? at : 0, inserts ? 0 : at, len);
    if (!inserts && tt_flow_operand(w, 0, &to) && to.kind == TT_FLOW_AT_REG) {
        if (len < 4) {
            fill(w, (TtFlowPlace) { .reg = to.reg, .len = w->regs->bits == 64 ? 8 : 4 }, len,
                 TT_FLOW_CONSTANT);
        }
    }
}

/* Scalar arithmetic and conversions write the lower @len bytes and leave the others; @reads:
 * these, too, are among what they work on. */
static void scalar(TtFlowWork *w, unsigned len, bool reads)
{
    TtFlowPlace to, from;

    if (tt_flow_operand(w, 0, &to) && tt_flow_operand(w, 1, &from)) {
        to = tt_flow_cut(to, 0, len);
        if (reads) {
            tt_flow_read(w, to);
        }
        if (from.kind == TT_FLOW_AT_REG && from.reg >= TT_FLOW_GENERAL) {
            from = tt_flow_cut(from, 0, w->insn->id == X86_INS_CVTSD2SS ? 8 :
                               w->insn->id == X86_INS_CVTSS2SD ? 4 : len);
        }
        tt_flow_read(w, from);
        tt_flow_write(w, to, TT_FLOW_COMPUTED, NOTHING);
    }
}

/* CMPSS and CMPSD, which have many names and ids: CMPLTSD... */
static bool compares(TtFlowWork *w)
{
    const char *name = w->insn->mnemonic;
    bool is_single = g_str_has_suffix(name, "ss");

    if (!g_str_has_prefix(name, "cmp") || !(is_single || g_str_has_suffix(name, "sd")) ||
        !tt_flow_is_vector(w)) {
        return false;
    }
    scalar(w, is_single ? 4 : 8, true);
    return true;
}

static bool parts_of_vectors(TtFlowWork *w)
{
    switch (w->insn->id) {
    case X86_INS_MOVHPS: case X86_INS_MOVHPD:
        move_part(w, 8, 8, 8);
        return true;
    case X86_INS_MOVLPS: case X86_INS_MOVLPD:
        move_part(w, 0, 0, 8);
        return true;
    case X86_INS_MOVLHPS:
        move_part(w, 8, 0, 8);
        return true;
    case X86_INS_MOVHLPS:
        move_part(w, 0, 8, 8);
        return true;
    case X86_INS_PINSRB: case X86_INS_PEXTRB:
        move_element(w, 1, w->insn->id == X86_INS_PINSRB);
        return true;
    case X86_INS_PINSRW: case X86_INS_PEXTRW:
        if (tt_flow_is_vector(w)) {         /* and not MMX */
            move_element(w, 2, w->insn->id == X86_INS_PINSRW);
        }
        return tt_flow_is_vector(w);
    case X86_INS_PINSRD: case X86_INS_PEXTRD: case X86_INS_EXTRACTPS:
        move_element(w, 4, w->insn->id == X86_INS_PINSRD);
        return true;
    case X86_INS_PINSRQ: case X86_INS_PEXTRQ:
        move_element(w, 8, w->insn->id == X86_INS_PINSRQ);
        return true;
    case X86_INS_ADDSS: case X86_INS_SUBSS: case X86_INS_MULSS: case X86_INS_DIVSS:
    case X86_INS_MINSS: case X86_INS_MAXSS:
        scalar(w, 4, true);
        return true;
    case X86_INS_SQRTSS: case X86_INS_RSQRTSS: case X86_INS_RCPSS: case X86_INS_ROUNDSS:
    case X86_INS_CVTSI2SS: case X86_INS_CVTSD2SS:
        scalar(w, 4, false);
        return true;
    case X86_INS_ADDSD: case X86_INS_SUBSD: case X86_INS_MULSD: case X86_INS_DIVSD:
    case X86_INS_MINSD: case X86_INS_MAXSD:
        scalar(w, 8, true);
        return true;
    case X86_INS_SQRTSD: case X86_INS_ROUNDSD: case X86_INS_CVTSI2SD:
    case X86_INS_CVTSS2SD:
        scalar(w, 8, false);
        return true;
    default:
        return compares(w);
    }
}

bool tt_flow_moves(TtFlowWork *w)
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
        tt_flow_move_scalar(w, 8, false);
        return true;
    case X86_INS_MOVD: case X86_INS_VMOVD:
        tt_flow_move_scalar(w, 4, false);
        return true;
    case X86_INS_MOVSS: case X86_INS_VMOVSS:
        tt_flow_move_scalar(w, 4, true);
        return true;
    case X86_INS_VMOVSD:
        tt_flow_move_scalar(w, 8, true);
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
    case X86_INS_CMPXCHG8B: case X86_INS_CMPXCHG16B:
        compare_exchange_two(w);
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
    case X86_INS_LEA:
        address(w);
        return true;
    case X86_INS_XOR: case X86_INS_SUB: case X86_INS_PXOR: case X86_INS_XORPS:
    case X86_INS_XORPD: case X86_INS_VPXOR: case X86_INS_VXORPS: case X86_INS_VXORPD:
        return is_zero(w);
    default:
        return parts_of_vectors(w);
    }
}

#endif
