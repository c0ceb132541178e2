/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sets the checksums of a mutated log right.
 */
#include "fuzz-log-util.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

static void mend_head(uint8_t *data, size_t size)
{
    uint32_t len = tt_get_le32(data + TT_F_HEAD_LENGTH);

    if (len >= TT_F_HEAD_BYTES && len <= size) {
        tt_put_le64(data + TT_F_HEAD_SUM,
                    tt_header_sum(data, len, TT_F_HEAD_SUM, 0));
    }
}

/* Returns where the next header should be. */
static size_t mend_segment(uint8_t *h, size_t left, uint64_t seed)
{
    uint32_t len = tt_get_le32(h + TT_F_SEG_LENGTH);
    uint64_t body = (uint64_t)tt_get_le32(h + TT_F_SEG_EV_STORED) +
                    tt_get_le32(h + TT_F_SEG_PL_STORED);

    if (len < TT_F_SEG_BYTES || len > left) {
        return 1;
    }
    if (body <= left - len) {
        tt_put_le64(h + TT_F_SEG_BODY_SUM,
                    XXH3_64bits_withSeed(h + len, body, seed));
    }
    tt_put_le64(h + TT_F_SEG_SUM, tt_header_sum(h, len, TT_F_SEG_SUM,
                                                    seed));
    return body <= left - len ? len + body : len;
}

uint8_t *fuzz_log_mend(const uint8_t *data, size_t size)
{
    uint8_t *copy = g_memdup2(data, size);
    size_t at = TT_F_HEAD_BYTES;
    uint64_t seed;

    if (size < TT_F_HEAD_BYTES) {
        return copy;
    }
    mend_head(copy, size);
    seed = tt_log_seed(copy + TT_F_HEAD_UUID);
    while (at + TT_F_SEG_BYTES <= size) {
        if (memcmp(copy + at, TT_F_HEAD_MAGIC, 8) == 0) {   /* of a part */
            mend_head(copy + at, size - at);
        }
        at += memcmp(copy + at, TT_F_SEG_MAGIC, 8) == 0
              ? mend_segment(copy + at, size - at, seed) : 1;
    }
    return copy;
}
