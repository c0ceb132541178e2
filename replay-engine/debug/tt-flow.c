/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Instructions of which capstone's lists say enough: operands that are read and
 * written, registers that are so without being named. The others: tt-flow-kinds.c.
 */
#include "tt-flow-int.h"

#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#ifdef TT_HAVE_CAPSTONE

struct TtFlowDecoder {
    csh handle[3];              /* of 16, 32, 64 bits */
    cs_insn *insn[3];
};

/* ---- places ---- */

typedef struct Known { bool is; TtFlowPlace place; } Known;

static Known known[X86_REG_ENDING];

static void note_name(csh h, unsigned id)
{
    const char *name = cs_reg_name(h, id);
    TtFlowPlace place;

    if (name && tt_flow_place_named(name, &place)) {
        known[id] = (Known) { true, place };
    }
}

bool tt_flow_reg(unsigned id, TtFlowPlace *p)
{
    if (id >= X86_REG_ENDING || !known[id].is) {
        return false;
    }
    *p = known[id].place;
    return true;
}

TtFlowPlace tt_flow_general(unsigned reg, unsigned len)
{
    return (TtFlowPlace) { .kind = TT_FLOW_AT_REG, .reg = reg, .len = len };
}

TtFlowPlace tt_flow_const(uint64_t value, unsigned len)
{
    return (TtFlowPlace) { .kind = TT_FLOW_AT_CONST, .addr = value, .len = len };
}

static uint64_t part_of(const TtFlowWork *w, unsigned id)
{
    TtFlowPlace p;
    uint64_t v;

    if (id == X86_REG_RIP || id == X86_REG_EIP || id == X86_REG_IP) {
        return w->regs->pc + w->insn->size;
    }
    if (!tt_flow_reg(id, &p) || p.reg >= TT_FLOW_GENERAL) {
        return 0;
    }
    v = w->regs->general[p.reg] >> 8 * p.first;
    return p.len < 8 ? v & ((UINT64_C(1) << 8 * p.len) - 1) : v;
}

static uint64_t segment_base(const TtFlowWork *w, const x86_op_mem *mem)
{
    static const unsigned ids[] = { X86_REG_ES, X86_REG_CS, X86_REG_SS, X86_REG_DS,
                                    X86_REG_FS, X86_REG_GS };
    unsigned seg = 3;
    TtFlowPlace p;

    if (tt_flow_reg(mem->base, &p) && (p.reg == 4 || p.reg == 5)) {
        seg = 2;
    }
    for (unsigned i = 0; i < 6; i++) {
        seg = mem->segment == ids[i] ? i : seg;
    }
    return w->regs->bits == 64 && seg < 4 ? 0 : w->regs->bases[seg];
}

TtFlowPlace tt_flow_mem(const TtFlowWork *w, const x86_op_mem *mem, unsigned len)
{
    uint64_t at = part_of(w, mem->base) + part_of(w, mem->index) * mem->scale + mem->disp;
    unsigned bytes = w->x86->addr_size;

    if (bytes && bytes < 8) {
        at &= (UINT64_C(1) << 8 * bytes) - 1;
    }
    at += segment_base(w, mem);
    if (w->regs->bits != 64) {
        at &= UINT32_MAX;
    }
    return (TtFlowPlace) { .kind = TT_FLOW_AT_MEM, .addr = at, .len = len };
}

/* BT and its kin with the bit's number in a register: that counts from the operand on,
 * signed, and the operand's size at this distance is accessed. */
static int64_t bit_distance(const TtFlowWork *w)
{
    const cs_x86_op *bit = &w->x86->operands[1];
    unsigned id = w->insn->id, bits = bit->size * 8;
    bool is = id == X86_INS_BT || id == X86_INS_BTS || id == X86_INS_BTR ||
        id == X86_INS_BTC;
    uint64_t number;

    if (!is || w->x86->op_count < 2 || bit->type != X86_OP_REG || !bits || bits > 64) {
        return 0;
    }
    number = part_of(w, bit->reg) << (64 - bits);
    return ((int64_t)number >> (64 - bits)) >> 3 & -(int64_t)bit->size;
}

bool tt_flow_operand(const TtFlowWork *w, unsigned n, TtFlowPlace *p)
{
    const cs_x86_op *op = &w->x86->operands[n];
    x86_op_mem mem;

    if (n >= w->x86->op_count) {
        return false;
    }
    switch (op->type) {
    case X86_OP_REG:
        return tt_flow_reg(op->reg, p);
    case X86_OP_MEM:
        mem = op->mem;
        mem.disp += n == 0 ? bit_distance(w) : 0;
        *p = tt_flow_mem(w, &mem, op->size);
        return true;
    case X86_OP_IMM:
        *p = tt_flow_const(op->imm, op->size);
        return true;
    default:
        return false;
    }
}

/* ---- what it reads and writes ---- */

void tt_flow_read(TtFlowWork *w, TtFlowPlace p)
{
    TtFlow *f = w->out;

    for (unsigned i = 0; i < f->n_reads; i++) {
        if (!memcmp(&f->reads[i], &p, sizeof(p))) {
            return;
        }
    }
    if (f->n_reads < TT_FLOW_PLACES_MAX) {
        f->reads[f->n_reads++] = p;
    }
}

static void write_one(TtFlowWork *w, TtFlowPlace to, TtFlowHow how, TtFlowPlace from)
{
    TtFlow *f = w->out;

    if (f->n_writes < TT_FLOW_PLACES_MAX && to.len) {
        f->writes[f->n_writes++] = (TtFlowWrite) { to, from, how };
    }
}

void tt_flow_write(TtFlowWork *w, TtFlowPlace to, TtFlowHow how, TtFlowPlace from)
{
    unsigned end = to.first + to.len, all = end;
    TtFlowPlace above = to;

    write_one(w, to, how, from);
    if (to.kind != TT_FLOW_AT_REG) {
        return;
    }
    if (to.reg < TT_FLOW_GENERAL && w->regs->bits == 64 && end == 4) {
        all = 8;
    } else if (to.reg >= TT_FLOW_GENERAL && w->insn->mnemonic[0] == 'v') {
        all = 32;
    }
    above.first = end;
    above.len = all - end;
    write_one(w, above, TT_FLOW_CONSTANT, tt_flow_const(0, above.len));
}

static bool has_written(const TtFlowWork *w, const TtFlowPlace *p)
{
    for (unsigned i = 0; i < w->out->n_writes; i++) {
        if (tt_flow_place_meets(&w->out->writes[i].to, p)) {
            return true;
        }
    }
    return false;
}

/* Instructions whose first operand, in memory, is only read. */
static bool reads_first(unsigned id)
{
    switch (id) {
    case X86_INS_BT: case X86_INS_CALL: case X86_INS_CMP: case X86_INS_TEST:
    case X86_INS_DIV: case X86_INS_IDIV: case X86_INS_MUL: case X86_INS_IMUL:
    case X86_INS_JMP: case X86_INS_LCALL: case X86_INS_LJMP: case X86_INS_PUSH:
    case X86_INS_NOP: case X86_INS_CLFLUSH: case X86_INS_CLFLUSHOPT: case X86_INS_CLWB:
    case X86_INS_PREFETCHNTA: case X86_INS_PREFETCHT0: case X86_INS_PREFETCHT1:
    case X86_INS_PREFETCHT2: case X86_INS_PREFETCH: case X86_INS_PREFETCHW:
    case X86_INS_FADD: case X86_INS_FBLD: case X86_INS_FCOM: case X86_INS_FCOMP:
    case X86_INS_FDIV: case X86_INS_FDIVR: case X86_INS_FIADD: case X86_INS_FICOM:
    case X86_INS_FICOMP: case X86_INS_FIDIV: case X86_INS_FIDIVR: case X86_INS_FILD:
    case X86_INS_FIMUL: case X86_INS_FISUB: case X86_INS_FISUBR: case X86_INS_FLD:
    case X86_INS_FLDCW: case X86_INS_FLDENV: case X86_INS_FMUL: case X86_INS_FRSTOR:
    case X86_INS_FSUB: case X86_INS_FSUBR: case X86_INS_FXRSTOR: case X86_INS_FXRSTOR64:
    case X86_INS_LDMXCSR: case X86_INS_VLDMXCSR: case X86_INS_XRSTOR:
    case X86_INS_XRSTOR64: case X86_INS_XRSTORS: case X86_INS_XRSTORS64:
    case X86_INS_LGDT: case X86_INS_LIDT: case X86_INS_LLDT: case X86_INS_LMSW:
    case X86_INS_LTR: case X86_INS_INVLPG: case X86_INS_VERR: case X86_INS_VERW:
    case X86_INS_VMPTRLD: case X86_INS_VMCLEAR: case X86_INS_VMXON:
        return true;
    default:
        return false;
    }
}

/* capstone often says that a first operand in memory is read which is written (ROR, SETA,
 * FSTP), and sometimes that one is written which is read (TEST, FRSTOR). */
static unsigned access_of(const TtFlowWork *w, unsigned n)
{
    const cs_x86_op *op = &w->x86->operands[n];

    if (n || op->type != X86_OP_MEM) {
        return op->access;
    }
    if (reads_first(w->insn->id)) {
        return CS_AC_READ;
    }
    switch (w->insn->id) {
    case X86_INS_ROL: case X86_INS_ROR: case X86_INS_RCL: case X86_INS_RCR:
    case X86_INS_ARPL:
        return CS_AC_READ | CS_AC_WRITE;
    default:
        return op->access & CS_AC_WRITE ? op->access : CS_AC_WRITE;
    }
}

/* The state of the FPU, of which capstone has the size only at times. */
static unsigned bytes_of(const TtFlowWork *w, const TtFlowPlace *p)
{
    bool is_short = (w->regs->bits == 16) != !!w->x86->prefix[2];       /* 0x66 */
    unsigned environment = is_short ? 14 : 28;

    switch (w->insn->id) {
    case X86_INS_FNSTSW:
        return p->kind == TT_FLOW_AT_MEM ? 2 : p->len;
    case X86_INS_FNSTENV: case X86_INS_FLDENV:
        return environment;
    case X86_INS_FNSAVE: case X86_INS_FRSTOR:
        return environment + 80;
    default:
        return p->len;
    }
}

static void explicit_ones(TtFlowWork *w)
{
    for (unsigned i = 0; i < w->x86->op_count; i++) {
        const cs_x86_op *op = &w->x86->operands[i];
        unsigned access = access_of(w, i);
        TtFlowPlace p;

        if (!tt_flow_operand(w, i, &p)) {
            continue;
        }
        p.len = bytes_of(w, &p);
        if (op->type == X86_OP_IMM || access & CS_AC_READ) {
            tt_flow_read(w, p);
        }
        if (op->type != X86_OP_IMM && access & CS_AC_WRITE) {
            tt_flow_write(w, p, TT_FLOW_COMPUTED, (TtFlowPlace) { 0 });
        }
    }
}

static void implicit_ones(TtFlowWork *w)
{
    const cs_detail *d = w->insn->detail;
    TtFlowPlace p;

    for (unsigned i = 0; i < d->regs_read_count; i++) {
        if (tt_flow_reg(d->regs_read[i], &p) && !(p.reg == 4 && d->regs_read_count > 1)) {
            tt_flow_read(w, p);
        }
    }
    for (unsigned i = 0; i < d->regs_write_count; i++) {
        if (tt_flow_reg(d->regs_write[i], &p) && !has_written(w, &p)) {
            tt_flow_write(w, p, TT_FLOW_COMPUTED, (TtFlowPlace) { 0 });
        }
    }
}

static bool begin(TtFlowDecoder *d, const uint8_t *bytes, size_t n, unsigned bits,
                  uint64_t pc, TtFlowWork *w)
{
    unsigned i = bits == 64 ? 2 : bits == 32 ? 1 : 0;
    size_t left = MIN(n, TT_FLOW_BYTES_MAX);

    w->handle = d->handle[i];
    w->insn = d->insn[i];
    if (!cs_disasm_iter(w->handle, &bytes, &left, &pc, d->insn[i])) {
        return false;
    }
    w->x86 = &w->insn->detail->x86;
    return true;
}

TtStatus tt_flow_decode(TtFlowDecoder *d, const uint8_t *bytes, size_t n,
                        const TtFlowRegs *regs, TtFlow *out)
{
    TtFlowWork w = { .regs = regs, .out = out };

    memset(out, 0, sizeof(*out));
    if (!begin(d, bytes, n, regs->bits, regs->pc, &w)) {
        return TT_ERR_FORMAT;
    }
    out->len = w.insn->size;
    g_strlcpy(out->text, w.insn->mnemonic, sizeof(out->text));
    g_strlcat(out->text, *w.insn->op_str ? " " : "", sizeof(out->text));
    g_strlcat(out->text, w.insn->op_str, sizeof(out->text));
    if (!tt_flow_special(&w)) {
        explicit_ones(&w);
        implicit_ones(&w);
    }
    return TT_OK;
}

uint32_t tt_flow_may_write(TtFlowDecoder *d, const uint8_t *bytes, size_t n,
                           unsigned bits)
{
    TtFlowRegs regs = { .bits = bits };
    TtFlow f;
    uint32_t mask = 0;

    /* With a count of 1, and flags for each outcome of a condition. */
    for (unsigned i = 0; i < TT_FLOW_GENERAL; i++) {
        regs.general[i] = 1;
    }
    for (unsigned pass = 0; pass < 4; pass++) {
        static const uint64_t flags[] = { 0x002, 0x0c7, 0x882, 0x005 };

        regs.flags = flags[pass];
        if (tt_flow_decode(d, bytes, n, &regs, &f) != TT_OK) {
            return UINT32_MAX;
        }
        for (unsigned i = 0; i < f.n_writes; i++) {
            mask |= f.writes[i].to.kind == TT_FLOW_AT_REG ? 1u << f.writes[i].to.reg : 0;
        }
    }
    return mask;
}

/* ---- the decoder ---- */

TtFlowDecoder *tt_flow_new(void)
{
    static const cs_mode modes[] = { CS_MODE_16, CS_MODE_32, CS_MODE_64 };
    TtFlowDecoder *d = g_new0(TtFlowDecoder, 1);

    for (unsigned i = 0; i < 3; i++) {
        if (cs_open(CS_ARCH_X86, modes[i], &d->handle[i]) != CS_ERR_OK ||
            cs_option(d->handle[i], CS_OPT_DETAIL, CS_OPT_ON) != CS_ERR_OK) {
            tt_flow_free(d);
            return NULL;
        }
        d->insn[i] = cs_malloc(d->handle[i]);
    }
    for (unsigned id = 1; id < X86_REG_ENDING; id++) {
        note_name(d->handle[2], id);
    }
    return d;
}

void tt_flow_free(TtFlowDecoder *d)
{
    for (unsigned i = 0; d && i < 3; i++) {
        if (d->insn[i]) {
            cs_free(d->insn[i], 1);
        }
        if (d->handle[i]) {
            cs_close(&d->handle[i]);
        }
    }
    g_free(d);
}

#else

TtFlowDecoder *tt_flow_new(void)
{
    return NULL;
}

void tt_flow_free(TtFlowDecoder *d)
{
}

TtStatus tt_flow_decode(TtFlowDecoder *d, const uint8_t *bytes, size_t n,
                        const TtFlowRegs *regs, TtFlow *out)
{
    return TT_ERR_FORMAT;
}

uint32_t tt_flow_may_write(TtFlowDecoder *d, const uint8_t *bytes, size_t n,
                           unsigned bits)
{
    return UINT32_MAX;
}

#endif
