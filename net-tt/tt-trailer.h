/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The trailer of a frame: who sent it and where, as bytes behind its own, so that it goes
 * through any network between the VMs of a group. For whoever does not know trailers it is
 * padding behind the packet. Format: docs/reference/group-format.rst.
 *
 * Context: any thread, no state. Cost: O(bytes of the frame), which are hashed; with a key
 * once more, by SHA-256. Stability: wire format, through the document.
 */
#ifndef TT_TRAILER_H
#define TT_TRAILER_H

#include "tt-frame.h"

#define TT_TRAILER_BYTES    104
/* An Ethernet frame that tells of a checkpoint: a type for local experiments. */
#define TT_TRAILER_ETHERTYPE    0x88b5

/* The group whose trailers are written and understood. */
typedef struct TtTrailerGroup {
    uint64_t name;              /* hashed */
    bool has_key;
    uint8_t key[TT_MAC_BYTES];  /* for trailers only */
} TtTrailerGroup;

/* @group: tt_group_name_is_fit. @key: that of the group; NULL: none. Both are copied. */
void tt_trailer_group_init(TtTrailerGroup *g, const char *group, const uint8_t *key,
                           size_t key_len);
/* The trailer of @f, which has its bytes and their hash. */
void tt_trailer_put(uint8_t out[TT_TRAILER_BYTES], const TtTrailerGroup *g,
                    const TtFrame *f);
/* The trailer of a frame that says only that checkpoint @epoch of the group was made. */
void tt_trailer_put_epoch(uint8_t out[TT_TRAILER_BYTES], const TtTrailerGroup *g,
                          uint32_t epoch);
/*
 * tt_trailer_get: what the trailer at the end of @bytes says
 * @m: on TT_OK a TT_MESSAGE_FRAME, whose data is in @bytes, or a TT_MESSAGE_EPOCH
 * Returns TT_OK; TT_END: there is no trailer; TT_ERR_INVALID: of another group or key;
 * TT_ERR_FORMAT, TT_ERR_LIMIT, TT_ERR_MISMATCH: damaged. Any bytes may come.
 */
TtStatus tt_trailer_get(TtMessage *m, const TtTrailerGroup *g, const uint8_t *bytes,
                        size_t len, TtDiag *diag);

#endif
