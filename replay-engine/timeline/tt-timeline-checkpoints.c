/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Timeline: the checkpoints, by position, and which of them to give up first.
 */
#include "tt-timeline-int.h"

size_t tt_timeline_cp_upper(const TtTimeline *t, uint64_t pos)
{
    size_t lo = 0, hi = t->cps->len;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (tt_timeline_cp_at(t, mid)->pos <= pos) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

const Checkpoint *tt_timeline_cp_find(const TtTimeline *t, uint64_t pos)
{
    size_t upper = tt_timeline_cp_upper(t, pos);

    return upper ? tt_timeline_cp_at(t, upper - 1) : NULL;
}

TtStatus tt_timeline_add(TtTimeline *t, TtCheckpointId id, uint64_t pos,
                         bool pinned)
{
    size_t upper = tt_timeline_cp_upper(t, pos);
    Checkpoint cp = { .pos = pos, .id = id, .is_pinned = pinned };
    uint64_t *value;

    if (id == 0 || g_hash_table_contains(t->pos_of_id, GUINT_TO_POINTER(id)) ||
        (upper && tt_timeline_cp_at(t, upper - 1)->pos == pos)) {
        return TT_ERR_INVALID;
    }
    g_array_insert_val(t->cps, upper, cp);
    value = g_new(uint64_t, 1);
    *value = pos;
    g_hash_table_insert(t->pos_of_id, GUINT_TO_POINTER(id), value);
    t->far = MAX(t->far, pos);
    return TT_OK;
}

size_t tt_timeline_count(const TtTimeline *t)
{
    return t->cps->len;
}

TtCheckpointId tt_timeline_find(const TtTimeline *t, uint64_t pos,
                                uint64_t *at)
{
    const Checkpoint *cp = tt_timeline_cp_find(t, pos);

    if (!cp) {
        return 0;
    }
    if (at) {
        *at = cp->pos;
    }
    return cp->id;
}

TtCheckpointId tt_timeline_find_after(const TtTimeline *t, uint64_t pos,
                                      uint64_t *at)
{
    size_t upper = tt_timeline_cp_upper(t, pos);

    if (upper == t->cps->len) {
        return 0;
    }
    if (at) {
        *at = tt_timeline_cp_at(t, upper)->pos;
    }
    return tt_timeline_cp_at(t, upper)->id;
}

/*
 * Loss of checkpoint @index: @gap is the interval that its neighbours would
 * leave, that is, how far a movement there might have to run; @distance is how
 * far from @now that is, and @slack more. The quotient decides: intervals then
 * grow in proportion to their distance, so their number grows with its
 * logarithm; with a slack as long as history they are nearly the same.
 */
static void cp_loss(const TtTimeline *t, size_t index, uint64_t now,
                    uint64_t slack, uint64_t *gap, uint64_t *distance)
{
    uint64_t pos = tt_timeline_cp_at(t, index)->pos;
    uint64_t next = index + 1 < t->cps->len
                    ? tt_timeline_cp_at(t, index + 1)->pos
                    : MAX(t->far, MAX(now, pos));

    *gap = next - tt_timeline_cp_at(t, index - 1)->pos;
    *distance = MAX(pos > now ? pos - now : now - pos, 1);
    *distance += MIN(slack, UINT64_MAX - *distance);
}

TtCheckpointId tt_timeline_thin(const TtTimeline *t, uint64_t now,
                                uint64_t slack)
{
    uint64_t best_gap = 0, best_distance = 0;
    TtCheckpointId best = 0;

    for (size_t i = 1; i < t->cps->len; i++) {
        uint64_t gap, distance;
        unsigned __int128 mine, bests;

        if (tt_timeline_cp_at(t, i)->is_pinned) {
            continue;
        }
        cp_loss(t, i, now, slack, &gap, &distance);
        mine = (unsigned __int128)gap * best_distance;
        bests = (unsigned __int128)best_gap * distance;
        /* Of equal losses, the farther one; then the earlier one. */
        if (!best || mine < bests ||
            (mine == bests && distance > best_distance)) {
            best = tt_timeline_cp_at(t, i)->id;
            best_gap = gap;
            best_distance = distance;
        }
    }
    return best;
}
