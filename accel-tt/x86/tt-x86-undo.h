/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of an x86 vCPU's registers that guest code can change, for an undo log.
 * Pure data.
 */
#ifndef TT_X86_UNDO_H
#define TT_X86_UNDO_H

#include <stdbool.h>
#include <stddef.h>

typedef struct TtX86Part {
    size_t at, len;             /* in CPUX86State, multiples of 8 */
    bool is_fixed;              /* more than bytes depends on them: breakpoints of the
                                   guest's own, what the CPU can do */
} TtX86Part;

const TtX86Part *tt_x86_parts(unsigned *n);

#endif
