/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * When a condition becomes true, or its value changes: takes its values at positions,
 * and says which of them count. A value that cannot be read is not true, and a change
 * to or from it does not count.
 *
 * Context: any thread. Internal API.
 */
#ifndef TT_EDGE_H
#define TT_EDGE_H

#include "debug/tt-cond.h"

typedef enum TtEdgeRule {
    TT_EDGE_BECOMES_TRUE,   /* false at the position looked at before */
    TT_EDGE_TRUE_AT_PLACE,  /* between positions that are looked at it is false */
    TT_EDGE_EACH_TIME,      /* whenever it is true */
    TT_EDGE_CHANGES,        /* another value than the last that could be read */
} TtEdgeRule;

typedef struct TtEdge {
    TtEdgeRule rule;
    bool from_the_start;    /* true at the first position counts as well */
    /* private */
    bool has_last, was_true, has_value;
    uint64_t last_pos, last_value;
} TtEdge;

TtEdgeRule tt_edge_rule(const TtCond *c, bool changes);
/* Positions ascend; the same one again changes nothing. @s and @value: of
 * tt_cond_eval. */
bool tt_edge_take(TtEdge *e, uint64_t pos, TtStatus s, uint64_t value);
/* As long as all that it could take are such values, there is nothing to be found, and it
 * need not take them. It has taken one. */
bool tt_edge_is_still(const TtEdge *e, TtStatus s, uint64_t value);

#endif
