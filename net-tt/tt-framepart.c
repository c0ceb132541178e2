/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parts of frames that a log names: their bytes in the log, and where they are in what a
 * device wrote.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE             /* memmem */
#endif
#include "net-tt/tt-framestore.h"
#include "io/tt-bytes.h"

#include <glib.h>

/* What is looked for: the first bytes of a frame are its addresses, type, and the lengths
 * and numbers of IP. */
#define NEEDLE_BYTES    32

uint32_t tt_framepart_put(uint8_t out[TT_FRAMEPART_BYTES_MAX], const TtFramePart *p)
{
    uint8_t *end = out + 8 + TT_RUN_BYTES;

    tt_put_le64(out, p->hash);
    memcpy(out + 8, p->run, TT_RUN_BYTES);
    end = tt_put_varint(end, p->seq);
    return tt_put_varint(end, p->at) - out;
}

TtStatus tt_framepart_get(TtFramePart *p, uint64_t bytes, const uint8_t *data, uint32_t len,
                          TtDiag *diag)
{
    const uint8_t *end = NULL, *at = NULL;
    uint64_t from = 0;

    if (len >= 8 + TT_RUN_BYTES) {
        p->hash = tt_get_le64(data);
        memcpy(p->run, data + 8, TT_RUN_BYTES);
        end = data + len;
        at = tt_get_varint(data + 8 + TT_RUN_BYTES, end, &p->seq);
        at = at ? tt_get_varint(at, end, &from) : NULL;
    }
    if (len < 8 + TT_RUN_BYTES || at != end || !bytes || bytes > TT_FRAME_BYTES_MAX ||
        from > TT_FRAME_BYTES_MAX - bytes) {
        return tt_fail(diag, TT_ERR_FORMAT, "the log names an impossible part of a frame");
    }
    p->at = from;
    return TT_OK;
}

static uint32_t equal_bytes(const uint8_t *a, const uint8_t *b, uint64_t max)
{
    uint64_t n = 0;

    while (n + 64 <= max && !memcmp(a + n, b + n, 64)) {
        n += 64;
    }
    while (n < max && a[n] == b[n]) {
        n++;
    }
    return n;
}

uint32_t tt_framepart_match(const uint8_t *written, uint64_t len, const uint8_t *frame,
                            uint32_t frame_len, uint32_t from, uint64_t *at)
{
    const uint8_t *found;
    uint32_t n;

    assert(from <= frame_len);
    if (len < TT_FRAMEPART_MIN || frame_len - from < TT_FRAMEPART_MIN) {
        return 0;
    }
    found = memmem(written, len, frame + from, NEEDLE_BYTES);
    if (!found) {
        return 0;
    }
    *at = found - written;
    n = equal_bytes(found, frame + from, MIN(len - *at, frame_len - from));
    return n >= TT_FRAMEPART_MIN ? n : 0;
}
