/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of the translation of typed conditions: types (tt-lower-types.c), the text of
 * values (tt-lower-text.c), operators with two operands (tt-lower-op.c), and what the grammar
 * builds of them (tt-lower-build.c).
 */
#ifndef TT_LOWER_INT_H
#define TT_LOWER_INT_H

#include "tt-cond-int.h"
#include "tt-lower.h"

#include <glib.h>

/* How strongly the outermost operator of a text binds; binary ones: tt_cond_strength. */
enum { LEVEL_CHOICE = 0, LEVEL_SUM = 9, LEVEL_UNARY = 11 };

typedef struct LowerVal {
    bool is_lvalue;             /* what follows is its address */
    bool is_code, has_no_type;  /* an lvalue that is only good for & */
    bool is_per_cpu;            /* and so is this, and what its address leads to */
    TtCondType type;
    const char *text;           /* of 64 bits if it is an address; NULL: @add is all */
    int level;                  /* of @text */
    uint64_t add;               /* behind an address; or all of a constant */
    unsigned first_bit, bits;   /* a bit-field's; bits 0: it is none */
    const char *name, *lost;    /* for messages; or NULL */
} LowerVal;

typedef struct Lower {
    TtCondLexer l;
    const TtTypes *types;
    GStringChunk *texts;
    size_t n_bytes;             /* of all texts: bounded */
    GArray *values;             /* of LowerVal: a TtCondValue is an index */
} Lower;

/* A text that lives as long as @p. */
const char *tt_lower_text(Lower *p, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

/* ---- tt-lower-types.c ---- */
/* Sets what @t is, and, of pointers and arrays, *@to, what it leads to. */
void tt_lower_describe(const Lower *p, TtCondType t, TtTypeInfo *info, TtCondType *to);
/* @type with one more star. */
bool tt_lower_point(Lower *p, TtCondType type, TtCondType *out);
/* How large is it? Complains, and returns 0, if nobody knows. void and functions: 1. */
uint64_t tt_lower_size(Lower *p, TtCondType t);
/* A name of a type is at the token: it is read. False: none, or it was complained. */
bool tt_lower_type(Lower *p, TtCondType *type);
/* Is the word at the token one that C keeps for types? */
bool tt_lower_begins_type(const Lower *p);
/* The member called @name of the lvalue @v, which becomes it. */
bool tt_lower_member(Lower *p, LowerVal *v, const char *name, size_t len);

/* ---- tt-lower-text.c ---- */
/* As an operand of an operator that binds like @level. */
const char *tt_lower_operand(Lower *p, const LowerVal *v, int level);
/* The address of the lvalue. */
LowerVal tt_lower_address(Lower *p, const LowerVal *v);
/* Its value: of memory, a read; of an array or a function, its address. */
LowerVal tt_lower_value(Lower *p, LowerVal v);
/* Of a reference of C++: what it leads to. */
LowerVal tt_lower_follow(Lower *p, LowerVal v);
/* The read of all bytes that the lvalue lies in. */
const char *tt_lower_memory(Lower *p, LowerVal v);
LowerVal tt_lower_cast(Lower *p, LowerVal v, TtCondType type);
/* Pointer @a, @sign * @index elements further. */
LowerVal tt_lower_index(Lower *p, LowerVal a, LowerVal index, int sign);
LowerVal tt_lower_const(TtCondType type, uint64_t value);
LowerVal tt_lower_of_text(TtCondType type, const char *text, int level);
bool tt_lower_is_pointer(const Lower *p, const LowerVal *v);

/* ---- tt-lower-op.c: of values, not lvalues ---- */
TtCondType tt_lower_promoted(Lower *p, const LowerVal *v);
LowerVal tt_lower_combine(Lower *p, int op, LowerVal a, LowerVal b);
LowerVal tt_lower_choose(Lower *p, LowerVal test, LowerVal a, LowerVal b);

static inline TtCondType tt_lower_basic(unsigned bytes, bool is_signed)
{
    return (TtCondType) { .bytes = bytes, .is_signed = is_signed };
}

static inline TtCondType tt_lower_int(void)
{
    return tt_lower_basic(4, true);
}

#endif
