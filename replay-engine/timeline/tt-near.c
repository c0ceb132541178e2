/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Near checkpoints: their places, and which of them goes first. See tt-near.h. */
#include "timeline/tt-near.h"

#include <assert.h>
#include <glib.h>

uint64_t tt_near_next(uint64_t pos, uint64_t target)
{
    uint64_t distance;

    if (pos >= target) {
        return 0;
    }
    distance = MIN((target - pos) / TT_NEAR_FACTOR, TT_NEAR_FIRST);
    return distance < TT_NEAR_LAST ? 0 : target - distance;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

size_t tt_near_worst(const uint64_t *at, size_t n, uint64_t now)
{
    size_t worst = 0;

    assert(n > 0);
    for (size_t i = 1; i < n; i++) {
        if (distance(at[i], now) > distance(at[worst], now)) {
            worst = i;
        }
    }
    return worst;
}
