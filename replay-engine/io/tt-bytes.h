/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the formats, below their tables: varints, zig-zag numbers, and the checksum
 * of a header that contains it.
 *
 * Context: any thread; nothing here has state. Private to the cores.
 */
#ifndef TT_BYTES_H
#define TT_BYTES_H

#include "io/tt-base.h"

#include <assert.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define TT_VARINT_MAX   10

static inline uint64_t tt_zigzag(uint64_t delta)
{
    return delta << 1 ^ -(delta >> 63);
}

static inline uint64_t tt_unzigzag(uint64_t v)
{
    return v >> 1 ^ -(v & 1);
}

/* The caller has made sure that there is room for ten bytes. */
static inline uint8_t *tt_put_varint(uint8_t *p, uint64_t v)
{
    while (v >= 0x80) {
        *p++ = v | 0x80;
        v >>= 7;
    }
    *p++ = v;
    return p;
}

/* NULL when it goes beyond @end, or above 64 bits. */
static inline const uint8_t *tt_get_varint(const uint8_t *p,
                                           const uint8_t *end, uint64_t *v)
{
    *v = 0;
    for (unsigned shift = 0; p < end && shift < 64; shift += 7) {
        uint64_t bits = *p & 0x7f;

        if (bits << shift >> shift != bits) {
            return NULL;
        }
        *v |= bits << shift;
        if (!(*p++ & 0x80)) {
            return p;
        }
    }
    return NULL;
}

/* Checksum of a head or header of @len bytes whose field at @at counts as 0;
 * @bytes is changed and restored. */
static inline uint64_t tt_header_sum(uint8_t *bytes, size_t len, size_t at,
                                     uint64_t seed)
{
    uint64_t kept = tt_get_le64(bytes + at), sum;

    assert(at + 8 <= len);
    tt_put_le64(bytes + at, 0);
    sum = XXH3_64bits_withSeed(bytes, len, seed);
    tt_put_le64(bytes + at, kept);
    return sum;
}

#endif
