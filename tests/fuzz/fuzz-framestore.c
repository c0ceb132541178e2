/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target of frame stores: any bytes, or a store that was changed. What is read has
 * the hash that was asked for; what was found once is found again; a walk over all ends.
 * And of parts of frames: as data of an event, and in what a device wrote.
 *
 * The first byte: bit 0: the bytes follow a right head; bit 1: they are changes (offset,
 * byte) of a right store.
 */
#include "net-tt/tt-framestore.h"

#include <glib.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) do { if (!(x)) { abort(); } } while (0)
#define SEQ_STEP 3

static const uint8_t run[TT_RUN_BYTES] = "the run of a VM";

static uint8_t *right_store(unsigned n, size_t *len)
{
    TtIo *io = tt_io_mem_new(NULL, 0);
    uint8_t bytes[200], *copy;
    TtFrameWriter *w;

    CHECK(tt_framewriter_new(io, run, &w, NULL) == TT_OK);
    for (unsigned i = 0; i < n; i++) {
        TtFrame f = { .data = bytes, .len = TT_FRAME_BYTES_MIN + i * 37 % 180,
                      .seq = i * SEQ_STEP };

        memset(bytes, i, sizeof(bytes));
        f.hash = tt_frame_hash(f.data, f.len);
        CHECK(tt_framewriter_put(w, &f, NULL) == TT_OK);
    }
    copy = (uint8_t *)tt_io_mem_data(io, len);
    copy = g_memdup2(copy, *len);
    tt_framewriter_free(w);
    return copy;
}

static void look(TtFrameStore *s)
{
    TtFrameEntry found[64], e;
    unsigned n = 0;
    TtDiag diag;

    for (uint64_t seq = 0; seq < 64 * SEQ_STEP; seq++) {
        TtStatus st = tt_framestore_find(s, seq, &e, &diag);

        CHECK(st == TT_OK || st == TT_END || st == TT_ERR_FORMAT);
        if (st == TT_OK) {
            CHECK(e.seq == seq && e.len >= TT_FRAME_BYTES_MIN);
            found[n++ % G_N_ELEMENTS(found)] = e;
        } else {
            CHECK(*diag.text);
        }
    }
    for (unsigned i = 0; i < MIN(n, G_N_ELEMENTS(found)); i++) {
        const uint8_t *bytes;
        uint32_t len;

        CHECK(tt_framestore_find(s, found[i].seq, &e, NULL) == TT_OK);
        CHECK(e.hash == found[i].hash && e.offset_bytes == found[i].offset_bytes);
        if (tt_framestore_read(s, e.seq, e.hash, &bytes, &len, NULL) == TT_OK) {
            CHECK(len == e.len && tt_frame_hash(bytes, len) == e.hash);
        }
        CHECK(tt_framestore_read(s, e.seq, e.hash + 1, &bytes, &len, &diag) < 0);
    }
    CHECK(tt_framestore_find(s, UINT64_MAX, &e, &diag) != TT_OK || e.seq == UINT64_MAX);
}

static void part(const uint8_t *data, size_t size)
{
    uint8_t again[TT_FRAMEPART_BYTES_MAX];
    TtFramePart p, q;

    if (tt_framepart_get(&p, 64, data, size, NULL) == TT_OK) {
        uint32_t len = tt_framepart_put(again, &p);

        CHECK(len <= size);             /* numbers may be padded */
        CHECK(tt_framepart_get(&q, 64, again, len, NULL) == TT_OK);
        CHECK(q.seq == p.seq && q.at == p.at && q.hash == p.hash);
    }
}

/* The input's first half was sent, the second was written. */
static void match(const uint8_t *data, size_t size)
{
    size_t half = size / 2;
    uint64_t at = UINT64_MAX;
    uint32_t from = half ? data[0] % half : 0;
    uint32_t n = tt_framepart_match(data + half, size - half, data, half, from, &at);

    if (n) {
        CHECK(n >= TT_FRAMEPART_MIN && from + n <= half && at + n <= size - half);
        CHECK(!memcmp(data + half + at, data + from, n));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree uint8_t *bytes = NULL;
    TtFrameStore *s;
    size_t len = 0;

    if (!size) {
        return 0;
    }
    part(data + 1, size - 1);
    match(data + 1, size - 1);
    if (data[0] & 2) {
        bytes = right_store(40, &len);
        for (size_t i = 1; i + 3 <= size; i += 3) {
            bytes[(data[i] | data[i + 1] << 8) % len] = data[i + 2];
        }
    } else {
        g_autofree uint8_t *head = right_store(0, &len);

        len = data[0] & 1 ? len : 0;
        bytes = g_malloc(len + size);
        memcpy(bytes, head, len);
        memcpy(bytes + len, data + 1, size - 1);
        len += size - 1;
    }
    if (tt_framestore_open(tt_io_mem_new(bytes, len), run, &s, NULL) == TT_OK) {
        look(s);
        tt_framestore_free(s);
    }
    return 0;
}
