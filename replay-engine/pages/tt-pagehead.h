/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The head of a file of the page store (P1 of
 * docs/reference/page-store-format.rst), and appending to one.
 *
 * Context: one thread at a time. Blocks only in TtIo. Private to the page
 * store. Files are borrowed. No allocation.
 */
#ifndef TT_PAGEHEAD_H
#define TT_PAGEHEAD_H

#include "io/tt-bytes.h"
#include "io/tt-io.h"

#define TT_F_PAGES_MAGIC        "TTVMPAG\n"
#define TT_F_CHECKPOINTS_MAGIC  "TTVMCKP\n"
#define TT_F_PHEAD_BYTES        64u
#define TT_F_PHEAD_BYTES_MAX    4096u
enum {
    TT_F_PHEAD_LENGTH = 8,
    TT_F_PHEAD_LAST_ID = 12,
    TT_F_PHEAD_MUST_KNOW = 16,
    TT_F_PHEAD_UUID = 40,
    TT_F_PHEAD_SUM = 56,
};

static inline uint64_t tt_page_seed(const uint8_t uuid[16])
{
    return tt_get_le64(uuid);
}

/* Writes a head to @io, which is empty. */
TtStatus tt_page_head_write(TtIo *io, const char *magic,
                            const uint8_t uuid[16], uint32_t last_id,
                            TtDiag *diag);
/* Checks a head (P1). @name: of the file, for sentences. */
TtStatus tt_page_head_read(TtIo *io, const char *name, const char *magic,
                           const uint8_t uuid[16], uint32_t *length,
                           uint32_t *last_id, TtDiag *diag);
/* Appends all or nothing: what a failure left is cut off. *@is_broken becomes
 * true when that fails, too: then nothing can be appended any more. */
TtStatus tt_page_append(TtIo *io, uint64_t end, const void *bytes, size_t len,
                        bool *is_broken, TtDiag *diag);

#endif
