/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Operands for the forms, and the hash over what comes out. Everything follows from the
 * form's name and the number of the case, so it is the same in the guest and on this
 * host, and any case can be made again.
 */
#pragma GCC optimize("O2")
#include "cpueq.h"

static eq_u64 seed;

static eq_u64 mix(eq_u64 z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ul;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebul;
    return z ^ (z >> 31);
}

static eq_u64 next(void)
{
    seed += 0x9e3779b97f4a7c15ul;
    return mix(seed);
}

static void fold(eq_u64 *h, eq_u64 v)
{
    *h = (*h ^ v) * 0x9e3779b97f4a7c15ul;
    *h ^= *h >> 29;
}

/* Numbers of all sizes, and those at which carries and signs change. */
static eq_u64 number(void)
{
    eq_u64 how = next(), v = next();
    eq_u32 bit = (how >> 8) & 63;

    switch (how & 15) {
    case 0: return v >> bit;
    case 1: return (eq_u64)((long)v >> bit);
    case 2: return 1ul << bit;
    case 3: return (1ul << bit) - 1;
    case 4: return ~(1ul << bit);
    case 5: return -(1ul << bit);
    case 6: return v & 7;
    case 7: return 0;
    case 8: return 0x8000000080008080ul;
    case 9: return 0x7fffffff7fff7f7ful;
    case 10: return v & 0xff00ff00ff00ff00ul;
    default: return v;
    }
}

/* Sign-extended dividend below what makes the quotient too large. */
static void division(struct eq_state *s, int kind)
{
    int is_signed = kind >= EQ_IDIV_8;
    int bits = 8 << (kind - (is_signed ? EQ_IDIV_8 : EQ_DIV_8));
    eq_u64 mask = bits == 64 ? ~0ul : (1ul << bits) - 1, high, low = s->rax & mask;

    s->rbx = (s->rbx & ~mask) | ((s->rbx & mask) ? s->rbx & mask : 3);
    if (is_signed) {
        long d = (long)(s->rbx << (64 - bits)) >> (64 - bits), limit;

        /* |high| < |divisor| / 2 is enough for any low half. */
        limit = (d < 0 ? -(d + 1) : d) / 2;
        high = limit > 0 ? s->rdx % (eq_u64)limit : 0;
        if (s->rcx & 1 && limit > 0) {
            high = -high - 1;
        } else if (limit == 0) {
            high = 0;
            low &= mask >> 2;
            s->rbx = (s->rbx & ~mask) | 5;
        }
        high &= mask;
    } else {
        high = s->rdx % (s->rbx & mask);
    }
    if (bits == 8) {
        s->rax = (s->rax & ~0xfffful) | high << 8 | low;
    } else {
        s->rdx = (s->rdx & ~mask) | high;
        s->rax = (s->rax & ~mask) | low;
    }
}

static void strings(struct eq_state *s)
{
    eq_u64 how = next();

    for (int i = 0; i < EQ_MEM / 8; i++) {
        eq_u64 v = next();

        /* Many equal elements, or comparisons end at once. */
        ((eq_u64 *)s->mem)[i] = how & 1 ? 0x0101010101010101ul * (v & 1) : v;
    }
    if (how & 2) {
        s->rax = 0x0101010101010101ul * (how >> 2 & 1);
    }
    s->rcx = (how >> 8) % 13;
    s->rsi = (eq_u64)s->mem + 104 + (how >> 16) % 49;
    s->rdi = (eq_u64)s->mem + 104 + (how >> 24) % 49;
    s->flags |= how >> 32 & 1 ? EQ_DF : 0;
}

static eq_u32 float_32(void)
{
    eq_u64 v = next();
    eq_u32 sign = (v >> 32 & 1) << 31;

    switch (v >> 40 & 31) {
    case 0: return sign;
    case 1: return sign | 0x7f800000;
    case 2: return sign | 0x7fc00000 | ((eq_u32)v & 0x3fffff);
    case 3: return sign | 0x7f800001 | ((eq_u32)v & 0x3fffff);
    case 4: return sign | ((eq_u32)v & 0x7fffff);
    case 5: return sign | 0x7f7fffff;
    case 6: case 7: case 8: return (eq_u32)v;
    default: return sign | ((112 + (v >> 48 & 31)) << 23) | ((eq_u32)v & 0x7fffff);
    }
}

static void floats(struct eq_state *s)
{
    eq_u64 how = next();

    for (int i = 0; i < 4; i++) {
        if (how >> i & 1) {
            ((eq_u64 *)s->xmm)[i] = number() ^ (next() & 0x800ful << 48);
        } else {
            ((eq_u32 *)s->xmm)[2 * i] = float_32();
            ((eq_u32 *)s->xmm)[2 * i + 1] = float_32();
        }
    }
    s->mxcsr = 0x1f80 | (how >> 16 & 3) << 13 | (how >> 18 & 7 ? 0 : 0x8040);
    s->rax &= 15;
    s->rdx &= 15;
}

static void extended(eq_u8 *to)
{
    eq_u64 v = next(), how = next(), mantissa = v | 1ul << 63;
    eq_u32 exponent = 0x3fff, sign = (how & 1) << 15;

    switch (how >> 1 & 31) {
    case 0: exponent = 0, mantissa = 0; break;
    case 1: exponent = 0x7fff, mantissa = 1ul << 63; break;
    case 2: exponent = 0x7fff, mantissa = v | 3ul << 62; break;
    case 3: exponent = 0x7fff, mantissa = (v & ~(3ul << 62)) | 1ul << 63 | 1; break;
    case 4: exponent = 0, mantissa = v >> (how >> 8 & 63); break;
    case 5: exponent = how >> 16 & 0x7fff, mantissa = v; break;
    case 6: exponent = how >> 16 & 0x7fff; break;
    case 7: case 8:
        exponent += how >> 16 & 63;
        mantissa = (v & (-1ul << (v & 63))) | 1ul << 63;
        break;
    case 9: mantissa = 1ul << 63; break;
    case 10: case 11: exponent += 63 - (how >> 16 & 127); break;
    default: exponent += 4 - (how >> 16 & 15); break;
    }
    *(eq_u64 *)to = mantissa;
    *(eq_u32 *)(to + 8) = exponent | sign;
}

static void x87(struct eq_state *s)
{
    eq_u64 how = next();

    *(eq_u32 *)s->fx = 0x037f;
    if (how & 1) {
        *(eq_u32 *)s->fx = 0x007f | (how >> 8 & 3) << 10 | 2 << 8;
        if ((how >> 16 & 3) == 0) {
            *(eq_u32 *)s->fx &= ~0x300u;        /* to 24 bits, or 53 */
            *(eq_u32 *)s->fx |= how >> 18 & 1 ? 0x200 : 0;
        } else {
            *(eq_u32 *)s->fx |= 0x300;
        }
    }
    *(eq_u32 *)s->fx |= (6u << 11 | (how >> 20 & 0x4700)) << 16;
    s->fx[4] = how >> 40 & 31 ? 0xc0 : how >> 48 & 0xff;
    *(eq_u32 *)(s->fx + 24) = 0x1f80;
    for (int i = 0; i < 8; i++) {
        eq_u8 *to = s->fx + 32 + 16 * i;

        *(eq_u64 *)to = *(eq_u64 *)(to + 8) = 0;
        if (i < 2) {
            extended(to);
        }
    }
}

static void make(struct eq_state *s, const struct eq_op *op)
{
    s->rax = number();
    s->rbx = number();
    s->rcx = number();
    s->rdx = number();
    s->rsi = s->rdi = 0;
    s->flags = 2 | (next() & EQ_FLAGS);
    s->mxcsr = 0x1f80;
    if (op->kind >= EQ_DIV_8 && op->kind <= EQ_IDIV_64) {
        division(s, op->kind);
    } else if (op->kind == EQ_STRINGS) {
        strings(s);
    } else if (op->kind == EQ_FLOATS) {
        floats(s);
    } else if (op->kind == EQ_X87_STACK) {
        x87(s);
    }
}

static void run(struct eq_state *s, const struct eq_op *op)
{
    switch (op->kind) {
    case EQ_CODE_32: eq_run_32(s, op->run); break;
    case EQ_X87_STACK: eq_run_x87(s, op->run); break;
    default: eq_run(s, op->run); break;
    }
}

/* What is compared; addresses as offsets, FXSAVE's without those of the instruction. */
static void fold_state(eq_u64 *h, struct eq_state *s, const struct eq_op *op)
{
    if (op->kind == EQ_STRINGS) {
        s->rsi -= (eq_u64)s->mem;
        s->rdi -= (eq_u64)s->mem;
        for (int i = 0; i < EQ_MEM / 8; i++) {
            fold(h, ((eq_u64 *)s->mem)[i]);
        }
    }
    s->flags &= EQ_FLAGS | EQ_DF;
    fold(h, s->rax);
    fold(h, s->rbx);
    fold(h, s->rcx);
    fold(h, s->rdx);
    fold(h, s->rsi);
    fold(h, s->rdi);
    fold(h, s->flags);
    if (op->kind == EQ_FLOATS) {
        fold(h, s->xmm[0][0]);
        fold(h, s->xmm[0][1]);
        fold(h, s->mxcsr);
    } else if (op->kind == EQ_X87_STACK) {
        fold(h, *(eq_u32 *)s->fx);
        fold(h, s->fx[4]);
        for (int i = 0; i < 8; i++) {
            fold(h, *(eq_u64 *)(s->fx + 32 + 16 * i));
            fold(h, *(unsigned short *)(s->fx + 40 + 16 * i));
        }
    }
}

eq_u64 eq_work(const struct eq_op *op, eq_u64 from, eq_u64 count, eq_detail *detail)
{
    static struct eq_state s, before;
    eq_u64 h = 1, name = op->class;

    for (const char *p = op->code; *p; p++) {
        name = mix(name ^ (eq_u8)*p);
    }
    for (eq_u64 n = from; n < from + count; n++) {
        seed = mix(name + n);
        make(&s, op);
        if (detail) {
            before = s;
        }
        run(&s, op);
        fold_state(&h, &s, op);
        if (detail) {
            detail(n, &before, &s);
        }
    }
    return h;
}
