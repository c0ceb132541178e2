/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target of packed runs: any bytes; names that come out are those of a run,
 * data lie within the bytes given, and what is refused says why.
 */
#include "tt/pack.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) do { if (!(x)) { abort(); } } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TtDiag diag = { 0 };
    TtPackReader *r;
    TtPackMember m;
    TtStatus st = tt_pack_open(tt_io_mem_new(data, size), &r, &diag);
    unsigned n = 0;

    CHECK((st == TT_OK) == (r != NULL));
    while (st == TT_OK && (st = tt_pack_next(r, &m, &diag)) == TT_OK) {
        TtIo *to = tt_io_mem_new(NULL, 0);
        size_t len;

        CHECK(++n <= TT_PACK_MEMBERS_MAX && tt_pack_name_is_known(m.name));
        CHECK(m.offset <= size && m.bytes <= size - m.offset);
        st = tt_pack_copy(r, &m, to, &diag);
        tt_io_mem_data(to, &len);
        CHECK(len == m.bytes);
        tt_io_close(to);
    }
    CHECK(st == TT_END || (st < 0 && diag.status == st && diag.text[0]));
    tt_pack_reader_free(r);
    return 0;
}
