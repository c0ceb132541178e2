/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What two lists of frames have in common: those that a VM sent when it was recorded, and
 * those that it sends when it goes on from a checkpoint (relaxed replay: Emulab's
 * distributed time travel).
 *
 * Frames are the same if length and hash are. Of each content, the first of one list is
 * the first of the other, and so on; where in the lists they stand does not matter, as a
 * network may deliver them in another order. What is left in both lists is taken in
 * pairs, in their order: these frames are different. What is left in one list only is
 * missing, or more than there was.
 *
 * Context: any thread, no state. Cost: O(n log n) for n frames, 16 bytes for each.
 */
#ifndef TT_FRAMEDIFF_H
#define TT_FRAMEDIFF_H

#include "io/tt-base.h"

typedef struct TtFrameSeen {
    uint64_t hash;
    uint32_t len;
} TtFrameSeen;

#define TT_FRAMEDIFF_NONE UINT32_MAX

/* Indices of the two lists: frames that are different. */
typedef struct TtFramePair {
    uint32_t was, is;           /* one of them may be TT_FRAMEDIFF_NONE */
} TtFramePair;

typedef struct TtFrameDiff {
    uint32_t same, changed, missing, more;      /* frames */
    TtFramePair *pairs;         /* all but those that are the same: changed, then missing
                                   or more; each in the order of the lists */
    uint32_t n_pairs;
} TtFrameDiff;

/* Fills *@d, which need not be initialized; tt_framediff_cleanup frees what it has. Fewer
 * than 2^32 - 1 frames each. */
void tt_framediff(TtFrameDiff *d, const TtFrameSeen *was, uint32_t n_was,
                  const TtFrameSeen *is, uint32_t n_is);
void tt_framediff_cleanup(TtFrameDiff *d);
/* The first byte that differs; the shorter length if one begins with the other. */
uint32_t tt_framediff_byte(const uint8_t *a, uint32_t a_len, const uint8_t *b,
                           uint32_t b_len);

#endif
