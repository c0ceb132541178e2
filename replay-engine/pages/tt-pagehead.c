/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The head with which both files of the page store begin, and appending to either.
 */
#include "tt-pagehead.h"
#include "io/tt-bytes.h"

#include <inttypes.h>
#include <string.h>

TtStatus tt_page_head_write(TtIo *io, const char *magic,
                            const uint8_t uuid[16], uint32_t last_id,
                            TtDiag *diag)
{
    uint8_t h[TT_F_PHEAD_BYTES] = { 0 };

    memcpy(h, magic, 8);
    tt_put_le32(h + TT_F_PHEAD_LENGTH, sizeof(h));
    tt_put_le32(h + TT_F_PHEAD_LAST_ID, last_id);
    memcpy(h + TT_F_PHEAD_UUID, uuid, 16);
    tt_put_le64(h + TT_F_PHEAD_SUM,
                tt_header_sum(h, sizeof(h), TT_F_PHEAD_SUM, 0));
    return io->ops->append(io, h, sizeof(h), diag);
}

TtStatus tt_page_head_read(TtIo *io, const char *name, const char *magic,
                           const uint8_t uuid[16], uint32_t *length,
                           uint32_t *last_id, TtDiag *diag)
{
    uint8_t h[TT_F_PHEAD_BYTES_MAX];
    size_t got;
    TtStatus st = io->ops->read_at(io, 0, h, sizeof(h), &got, diag);

    if (st != TT_OK) {
        return st;
    }
    if (got < TT_F_PHEAD_BYTES || memcmp(h, magic, 8)) {
        return tt_fail(diag, TT_ERR_FORMAT, "%s: this is not a file of a run", name);
    }
    *length = tt_get_le32(h + TT_F_PHEAD_LENGTH);
    if (*length < TT_F_PHEAD_BYTES || *length > got ||
        tt_get_le64(h + TT_F_PHEAD_SUM) !=
        tt_header_sum(h, *length, TT_F_PHEAD_SUM, 0)) {
        return tt_fail(diag, TT_ERR_FORMAT, "%s: the head of this file is "
                       "damaged", name);
    }
    if (tt_get_le64(h + TT_F_PHEAD_MUST_KNOW)) {
        return tt_fail(diag, TT_ERR_VERSION, "%s: made by a newer version (unknown "
                       "features 0x%" PRIx64 "): use that version", name,
                       tt_get_le64(h + TT_F_PHEAD_MUST_KNOW));
    }
    if (memcmp(h + TT_F_PHEAD_UUID, uuid, 16)) {
        return tt_fail(diag, TT_ERR_FORMAT, "%s: this file belongs to another "
                       "run", name);
    }
    *last_id = tt_get_le32(h + TT_F_PHEAD_LAST_ID);
    return TT_OK;
}

TtStatus tt_page_append(TtIo *io, uint64_t end, const void *bytes, size_t len,
                        bool *is_broken, TtDiag *diag)
{
    TtStatus st = io->ops->append(io, bytes, len, diag);

    if (st != TT_OK && (!io->ops->truncate ||
                        io->ops->truncate(io, end, NULL) != TT_OK)) {
        *is_broken = true;
    }
    return st;
}
