/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of a full checkpoint as bytes: docs/reference/checkpoint-state.rst.
 *
 *   head: magic, version | part header, name, bytes | part header, ...
 */
#include "run/tt-fullstate.h"

#include <assert.h>
#include <glib.h>
#include <zstd.h>

#define MAGIC       0x55465454u         /* "TTFU" */
#define VERSION     1u
#define HEAD_BYTES  8
#define PART_BYTES  24                  /* kind, name length, raw, stored */
#define ZSTD_LEVEL  1                   /* the VM stands meanwhile */

struct TtFullWriter {
    GByteArray *bytes;
};

TtFullWriter *tt_full_writer_new(void)
{
    TtFullWriter *w = g_new0(TtFullWriter, 1);
    uint8_t head[HEAD_BYTES];

    tt_put_le32(head, MAGIC);
    tt_put_le32(head + 4, VERSION);
    w->bytes = g_byte_array_new();
    g_byte_array_append(w->bytes, head, sizeof(head));
    return w;
}

void tt_full_writer_free(TtFullWriter *w)
{
    if (w) {
        g_byte_array_unref(w->bytes);
        g_free(w);
    }
}

TtBytes tt_full_bytes(const TtFullWriter *w)
{
    return (TtBytes) { w->bytes->data, w->bytes->len };
}

TtStatus tt_full_put(TtFullWriter *w, uint32_t kind, const char *name,
                     const void *bytes, size_t len, TtDiag *diag)
{
    size_t name_len = name ? strlen(name) : 0;
    size_t room = len <= TT_FULL_RAW_MAX ? ZSTD_compressBound(len) : 0;
    g_autofree uint8_t *packed = room ? g_try_malloc(room) : NULL;
    uint8_t head[PART_BYTES];
    size_t n;

    assert(name_len <= TT_FULL_NAME_MAX);
    if (!packed) {
        return room ? tt_fail(diag, TT_ERR_NOMEM, "not enough memory")
                    : tt_fail(diag, TT_ERR_LIMIT, "a part of %zu bytes is more "
                              "than a checkpoint can hold", len);
    }
    n = ZSTD_compress(packed, room, bytes, len, ZSTD_LEVEL);
    if (ZSTD_isError(n)) {
        return tt_fail(diag, TT_ERR_NOMEM, "not enough memory");
    }
    if (w->bytes->len + (uint64_t)PART_BYTES + name_len + n >
        TT_CPSTATE_FULL_MAX) {
        return tt_fail(diag, TT_ERR_LIMIT, "the device state takes more than %u "
                       "MiB, compressed: remove devices with much memory of "
                       "their own", TT_CPSTATE_FULL_MAX >> 20);
    }
    tt_put_le32(head, kind);
    tt_put_le32(head + 4, name_len);
    tt_put_le64(head + 8, len);
    tt_put_le64(head + 16, n);
    g_byte_array_append(w->bytes, head, sizeof(head));
    g_byte_array_append(w->bytes, (const uint8_t *)name, name_len);
    g_byte_array_append(w->bytes, packed, n);
    return TT_OK;
}

static TtStatus damaged(TtDiag *diag)
{
    return tt_fail(diag, TT_ERR_FORMAT, "the device state of the checkpoint is "
                   "damaged: use another full checkpoint");
}

static TtStatus check_head(TtBytes *rest, TtDiag *diag)
{
    if (rest->len < HEAD_BYTES || tt_get_le32(rest->data) != MAGIC) {
        return damaged(diag);
    }
    if (tt_get_le32(rest->data + 4) != VERSION) {
        return tt_fail(diag, TT_ERR_VERSION, "the full checkpoint was made by a "
                       "newer TTVM: use that version");
    }
    rest->data += HEAD_BYTES;
    rest->len -= HEAD_BYTES;
    return TT_OK;
}

TtStatus tt_full_next(TtBytes *rest, unsigned *n, TtFullPart *part,
                      TtDiag *diag)
{
    TtStatus s = *n ? TT_OK : check_head(rest, diag);
    const uint8_t *h = rest->data;
    uint32_t name_len, room;

    if (s != TT_OK) {
        return s;
    }
    if (!rest->len) {
        return TT_END;
    }
    if (rest->len < PART_BYTES || *n >= TT_FULL_PARTS_MAX) {
        return damaged(diag);
    }
    memset(part, 0, sizeof(*part));
    name_len = tt_get_le32(h + 4);
    room = rest->len - PART_BYTES;
    part->kind = tt_get_le32(h);
    part->raw_bytes = tt_get_le64(h + 8);
    if (name_len > TT_FULL_NAME_MAX || name_len > room ||
        tt_get_le64(h + 16) > room - name_len ||
        part->raw_bytes > TT_FULL_RAW_MAX ||
        memchr(h + PART_BYTES, 0, name_len)) {
        return damaged(diag);
    }
    memcpy(part->name, h + PART_BYTES, name_len);
    part->stored = (TtBytes) { h + PART_BYTES + name_len,
                               tt_get_le64(h + 16) };
    rest->data = part->stored.data + part->stored.len;
    rest->len = room - name_len - part->stored.len;
    ++*n;
    return TT_OK;
}

TtStatus tt_full_unpack(const TtFullPart *part, void *out, TtDiag *diag)
{
    unsigned long long size = ZSTD_getFrameContentSize(part->stored.data,
                                                       part->stored.len);

    if (size != part->raw_bytes ||
        ZSTD_decompress(out, part->raw_bytes, part->stored.data,
                        part->stored.len) != part->raw_bytes) {
        return damaged(diag);
    }
    return TT_OK;
}
