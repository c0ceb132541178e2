/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Comparison of a page's copies: most pages are equal, so whole pages are compared
 * first, then pieces, then bytes.
 */
#include "hw-tt/vfio-user/tt-shadow.h"

#include <assert.h>

#define PIECE 64

/* Where the first difference after @at is; @n: there is none. */
static size_t next_difference(const uint8_t *a, const uint8_t *b, size_t at, size_t n)
{
    while (at < n) {
        size_t piece = n - at < PIECE ? n - at : PIECE;

        if (memcmp(a + at, b + at, piece)) {
            while (a[at] == b[at]) {
                at++;
            }
            return at;
        }
        at += piece;
    }
    return n;
}

size_t tt_shadow_in(const uint8_t *shadow, uint8_t *base, size_t n, TtShadowPut *put,
                    void *opaque)
{
    uint8_t now[TT_SHADOW_PAGE];
    size_t changed = 0, at = 0;

    assert(n <= TT_SHADOW_PAGE);
    if (!memcmp(shadow, base, n)) {
        return 0;
    }
    memcpy(now, shadow, n);
    while ((at = next_difference(now, base, at, n)) < n) {
        size_t end = at + 1;

        while (end < n && now[end] != base[end]) {
            end++;
        }
        memcpy(base + at, now + at, end - at);
        put(opaque, at, now + at, end - at);
        changed += end - at;
        at = end;
    }
    return changed;
}

size_t tt_shadow_out(const uint8_t *guest, uint8_t *shadow, uint8_t *base, size_t n)
{
    size_t changed = 0, at = 0;

    while ((at = next_difference(guest, base, at, n)) < n) {
        while (at < n) {
            uint8_t now = guest[at];        /* may change any time, without -tt */

            if (now == base[at]) {
                break;
            }
            shadow[at] = base[at] = now;
            changed++;
            at++;
        }
    }
    return changed;
}
