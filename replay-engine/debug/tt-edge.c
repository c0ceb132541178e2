/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * When a condition becomes true, or its value changes.
 */
#include "debug/tt-edge.h"

TtEdgeRule tt_edge_rule(const TtCond *c, bool changes)
{
    return changes ? TT_EDGE_CHANGES : tt_cond_has_at(c) ? TT_EDGE_EACH_TIME :
        tt_cond_kind(c) == TT_COND_AT_PLACES ? TT_EDGE_TRUE_AT_PLACE :
        TT_EDGE_BECOMES_TRUE;
}

static bool counts(const TtEdge *e, uint64_t pos, bool is_true, bool has_value,
                   uint64_t value)
{
    switch (e->rule) {
    case TT_EDGE_EACH_TIME:
        return is_true;
    case TT_EDGE_CHANGES:
        return has_value && e->has_value && value != e->last_value;
    case TT_EDGE_TRUE_AT_PLACE:
        return is_true && (e->has_last ? !e->was_true || pos > e->last_pos + 1 :
                           e->from_the_start);
    default:
        return is_true && (e->has_last ? !e->was_true : e->from_the_start);
    }
}

bool tt_edge_take(TtEdge *e, uint64_t pos, TtStatus s, uint64_t value)
{
    bool has_value = s == TT_OK, found;

    if (e->has_last && pos <= e->last_pos) {
        return false;
    }
    found = counts(e, pos, has_value && value, has_value, value);
    e->has_last = true;
    e->last_pos = pos;
    e->was_true = has_value && value;
    if (has_value) {
        e->has_value = true;
        e->last_value = value;
    }
    return found;
}

bool tt_edge_is_still(const TtEdge *e, TtStatus s, uint64_t value)
{
    bool has_value = s == TT_OK;

    switch (e->rule) {
    case TT_EDGE_CHANGES:
        return !has_value || (e->has_value && value == e->last_value);
    case TT_EDGE_BECOMES_TRUE:
        return (has_value && value) == e->was_true;
    default:
        return false;
    }
}
