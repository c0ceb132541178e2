/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bisection of a part of history.
 */
#include "timeline/tt-bisect.h"

#include <glib.h>

void tt_bisect_begin(TtBisect *b, uint64_t low, uint64_t high, const uint64_t *points,
                     size_t n_points)
{
    g_assert(low < high);
    *b = (TtBisect) {
        .low = low, .top = high, .high = high, .points = points, .n_points = n_points,
    };
}

/* The index of the first checkpoint at @pos or later. */
static size_t first_from(const TtBisect *b, uint64_t pos)
{
    size_t low = 0, high = b->n_points;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (b->points[mid] < pos) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

bool tt_bisect_next(const TtBisect *b, uint64_t *pos)
{
    size_t first = first_from(b, b->low + 1), end = first_from(b, b->top);

    if (b->top - b->low <= 1) {
        return false;
    }
    *pos = first < end ? b->points[first + (end - first) / 2] :
        b->low + (b->top - b->low) / 2;
    return true;
}

void tt_bisect_take(TtBisect *b, uint64_t wanted, uint64_t pos, bool is_true)
{
    g_assert(wanted > b->low && wanted < b->top && pos >= wanted);
    if (pos >= b->high) {
        b->top = wanted;
    } else if (is_true) {
        b->high = pos;
        b->top = wanted;
    } else {
        b->low = pos;
    }
}
