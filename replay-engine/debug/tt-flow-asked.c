/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The place that a user asks about: a register or memory. `tt origin` looks before a replay
 * begins, and that replay when it is there.
 */
#include "debug/tt-flow-place.h"

#include <string.h>

TtStatus tt_flow_place_asked(const char *text, const char *typed, TtFlowPlace *reg,
                             TtCond **memory, TtDiag *diag)
{
    *memory = NULL;
    if (*text == '$' && tt_flow_place_parse(text + 1, reg)) {
        return TT_OK;
    }
    if (*text == '*' && tt_cond_parse(text, memory, diag) != TT_OK) {
        return TT_ERR_FORMAT;
    }
    if (*memory && tt_cond_is_read(*memory)) {
        return TT_OK;
    }
    tt_cond_free(*memory);
    *memory = NULL;
    return tt_fail(diag, TT_ERR_FORMAT, "'%.80s' is not a place: write a general or vector "
                   "register, such as $rax, or memory, such as *(u64 *)0x1000", typed);
}
