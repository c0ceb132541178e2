/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The end of a file of the page store: cut off, or damaged.
 *
 * Parts are written one after the other, each with one append. A writer that is killed
 * leaves a prefix of one; a machine that loses its power may leave zeros in place of
 * bytes that were not written yet. Everything else is damage: bytes that no writer put
 * there, or parts that can no longer be reached after them.
 */
#include "tt-pagetail.h"
#include "io/tt-bytes.h"

#include <glib.h>
#include <inttypes.h>

#define ZEROS_BYTES_MAX (2u << 20)  /* so far zeros are looked at */
#define CHUNK_BYTES     65536u
#define HEADER_BYTES_MAX 4096u

static TtStatus are_zeros(TtIo *io, uint64_t at, uint64_t len, bool *yes,
                          TtDiag *diag)
{
    g_autofree uint8_t *buf = g_malloc(CHUNK_BYTES);
    TtStatus st = TT_OK;

    *yes = true;
    len = MIN(len, ZEROS_BYTES_MAX);
    while (*yes && len && st == TT_OK) {
        size_t n = MIN(len, CHUNK_BYTES), got;

        st = io->ops->read_at(io, at, buf, n, &got, diag);
        for (size_t i = 0; st == TT_OK && i < got; i++) {
            *yes &= !buf[i];
        }
        if (st != TT_OK || got < n) {
            break;
        }
        at += n;
        len -= n;
    }
    return st;
}

/* Is there a right header in @h? *@bytes: of the part that it begins. */
static bool is_header(const TtPageTail *how, uint8_t *h, size_t got,
                      uint64_t *bytes)
{
    uint32_t length = tt_get_le32(h + how->length_at);

    if (memcmp(h, how->magic, 8) || length < how->header_bytes ||
        length > MIN(how->header_bytes_max, got) ||
        tt_get_le64(h + how->sum_at) !=
        tt_header_sum(h, length, how->sum_at, how->seed)) {
        return false;
    }
    *bytes = how->part_bytes(h);
    return true;
}

TtStatus tt_page_tail(TtIo *io, uint64_t end, uint64_t size,
                      const TtPageTail *how, TtDiag *diag)
{
    uint8_t h[HEADER_BYTES_MAX];
    uint64_t left = size > end ? size - end : 0, part;
    bool is_zero;
    size_t got;
    TtStatus st;

    g_assert(how->header_bytes_max <= sizeof(h));
    if (left < how->header_bytes) {
        return TT_OK;
    }
    st = io->ops->read_at(io, end, h, how->header_bytes_max, &got, diag);
    if (st != TT_OK || got < how->header_bytes) {
        return st;
    }
    if (is_header(how, h, got, &part)) {
        if (part > left) {
            return TT_OK;               /* a prefix of one */
        }
    } else {
        st = are_zeros(io, end, left, &is_zero, diag);
        if (st != TT_OK || is_zero) {
            return st;
        }
    }
    tt_fail(diag, TT_ERR_FORMAT, "%s: damaged at byte %" PRIu64 "; the %" PRIu64
            " bytes from there on are lost", how->name, end, left);
    if (diag) {
        diag->offset = end;
    }
    return TT_ERR_FORMAT;
}
