/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target of trailers of frames: any bytes, or a right frame that was changed. What is
 * taken for right is within its limits, and comes out the same when it is put again.
 *
 * The first byte: bit 0: with a key; bit 1: the rest is a frame, which gets a trailer; then
 * the next three bytes are the place and the value of one byte that is changed.
 */
#include "net-tt/tt-trailer.h"

#include <glib.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) do { if (!(x)) { abort(); } } while (0)

static const uint8_t key[] = "sixteen and more bytes";

static TtStatus get(const TtTrailerGroup *g, const uint8_t *bytes, size_t len)
{
    uint8_t again[TT_TRAILER_BYTES];
    TtDiag diag = { 0 };
    TtMessage m;
    TtStatus st = tt_trailer_get(&m, g, bytes, len, &diag);
    const TtFrame *f = &m.frame;

    if (st < 0) {
        CHECK(*diag.text);
    } else if (st == TT_OK && m.kind == TT_MESSAGE_FRAME) {
        CHECK(f->data == bytes && f->len == len - TT_TRAILER_BYTES);
        CHECK(f->len >= TT_FRAME_BYTES_MIN && f->len <= TT_FRAME_BYTES_MAX);
        CHECK(f->hash == tt_frame_hash(f->data, f->len) && f->epoch <= TT_EPOCH_MAX);
        CHECK(f->is_recorded == (f->pos != TT_FRAME_NO_POS));
        tt_trailer_put(again, g, f);
        CHECK(!memcmp(again, bytes + f->len, TT_TRAILER_BYTES));
    } else if (st == TT_OK) {
        CHECK(m.kind == TT_MESSAGE_EPOCH && f->epoch <= TT_EPOCH_MAX && !f->len);
    } else {
        CHECK(st == TT_END);
    }
    return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree uint8_t *bytes = NULL;
    TtFrame f = { .pos = TT_FRAME_NO_POS };
    TtTrailerGroup g;
    size_t at;

    if (size < 4) {
        return 0;
    }
    tt_trailer_group_init(&g, "g", data[0] & 1 ? key : NULL, data[0] & 1 ? sizeof(key) : 0);
    f.data = data + 4;
    f.len = size - 4;
    if (!(data[0] & 2) || f.len < TT_FRAME_BYTES_MIN || f.len > TT_FRAME_BYTES_MAX) {
        bytes = g_memdup2(data + 1, size - 1);
        get(&g, bytes, size - 1);
        return 0;
    }
    f.hash = tt_frame_hash(f.data, f.len);
    bytes = g_malloc(f.len + TT_TRAILER_BYTES);
    memcpy(bytes, f.data, f.len);
    tt_trailer_put(bytes + f.len, &g, &f);
    at = (data[1] << 8 | data[2]) % (f.len + TT_TRAILER_BYTES);
    bytes[at] ^= data[3];
    CHECK((get(&g, bytes, f.len + TT_TRAILER_BYTES) == TT_OK) == !data[3]);
    return 0;
}
