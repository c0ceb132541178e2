/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Registers as QEMU prints them ("RAX=0000000000000001 R8 =... CS =0008 ..."), by
 * name: what differs between two such texts. The names are the text's; nothing here
 * knows a CPU.
 *
 * Context: any thread. Nothing blocks.
 */
#ifndef TT_REGTEXT_H
#define TT_REGTEXT_H

#include "io/tt-base.h"

typedef struct TtReg {
    char *name, *value;         /* never empty; blanks inside of a value are kept */
} TtReg;

typedef struct TtRegs TtRegs;

/* Never NULL. A word without '=' is left out. O(text) plus the square of the number of
 * registers, which is some hundred. */
TtRegs *tt_regs_parse(const char *text);
void tt_regs_free(TtRegs *r);           /* NULL: nothing */
size_t tt_regs_count(const TtRegs *r);
const TtReg *tt_regs_at(const TtRegs *r, size_t i);     /* in the text's order */
/* NULL: there is none of that name. O(registers). */
const char *tt_regs_find(const TtRegs *r, const char *name);
/*
 * tt_regs_compare: calls @differs for each register whose value is not the same in
 * both, in the order of @a, and then for those that only @b has; a value is NULL
 * where there is none. Returns their number.
 */
typedef void TtRegDiffers(void *opaque, const char *name, const char *a,
                          const char *b);
size_t tt_regs_compare(const TtRegs *a, const TtRegs *b, TtRegDiffers *differs,
                       void *opaque);

#endif
