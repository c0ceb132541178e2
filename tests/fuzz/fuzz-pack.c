/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target of packed runs: any bytes, and the same with right checksums, so that
 * what is after those is reached; names that come out are those of a run, each once,
 * data lie within the bytes given, and what is refused says why.
 */
#include "run/tt-pack.h"
#include "io/tt-bytes.h"
#include "tt-pack-format.h"

#include <stdlib.h>
#include <glib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) do { if (!(x)) { abort(); } } while (0)

/* The checksums of the member at @h, of which @left bytes are there, are set right.
 * Returns its bytes; 0: it is the last. */
static size_t mend_member(uint8_t *h, size_t left, uint64_t seed, uint64_t seq)
{
    uint32_t name = tt_get_le32(h + MEMBER_NAME);
    uint64_t data = tt_get_le64(h + MEMBER_DATA);
    bool is_end = tt_get_le32(h + MEMBER_FLAGS) & MEMBER_END;

    memcpy(h, MEMBER_MAGIC, 8);
    tt_put_le32(h + MEMBER_LENGTH, MEMBER_BYTES);
    tt_put_le64(h + MEMBER_SEQ, seq);
    if (name <= left - MEMBER_BYTES) {
        tt_put_le64(h + MEMBER_NAME_SUM,
                    XXH3_64bits_withSeed(h + MEMBER_BYTES, name, seed));
    }
    tt_put_le64(h + MEMBER_SUM, tt_header_sum(h, MEMBER_BYTES, MEMBER_SUM, seed));
    left -= MEMBER_BYTES;
    if (is_end || name > left || left - name < 8 || data > left - name - 8) {
        return 0;
    }
    h += MEMBER_BYTES + name;
    tt_put_le64(h + data, XXH3_64bits_withSeed(h, data, seed));
    return MEMBER_BYTES + name + data + 8;
}

static void mend(uint8_t *bytes, size_t size)
{
    uint64_t seed = tt_get_le64(bytes + HEAD_UUID);
    size_t at = HEAD_BYTES, n;

    memcpy(bytes, HEAD_MAGIC, 8);
    tt_put_le32(bytes + HEAD_LENGTH, HEAD_BYTES);
    tt_put_le64(bytes + HEAD_SUM, tt_header_sum(bytes, HEAD_BYTES, HEAD_SUM, 0));
    for (uint64_t seq = 0; size - at >= MEMBER_BYTES; seq++) {
        n = mend_member(bytes + at, size - at, seed, seq);
        if (!n) {
            break;
        }
        at += n;
    }
}

/* Reads all of it, and adds each member to @to, which may be NULL. */
static TtStatus read_all(const uint8_t *data, size_t size, TtPackWriter *to,
                         TtDiag *diag)
{
    TtPackReader *r;
    TtPackMember m;
    TtStatus st = tt_pack_open(tt_io_mem_new(data, size), &r, diag);
    g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal,
                                                        g_free, NULL);

    CHECK((st == TT_OK) == (r != NULL));
    while (st == TT_OK && (st = tt_pack_next(r, &m, diag)) == TT_OK) {
        TtIo *io = tt_io_mem_new(NULL, 0);
        size_t len;

        CHECK(tt_pack_name_is_known(m.name));
        CHECK(g_hash_table_add(names, g_strdup(m.name)));
        CHECK(g_hash_table_size(names) <= TT_PACK_MEMBERS_MAX);
        CHECK(m.offset <= size && m.bytes <= size - m.offset);
        st = tt_pack_copy(r, &m, io, diag);
        tt_io_mem_data(io, &len);
        CHECK(len == m.bytes);
        if (to) {
            CHECK(tt_pack_add(to, m.name, io, len, NULL) == TT_OK);
        }
        tt_io_close(io);
    }
    CHECK(st == TT_END || (st < 0 && diag && diag->status == st && diag->text[0]));
    tt_pack_reader_free(r);
    return st;
}

/* A whole run can be packed again, and then has the same bytes, but for what newer
 * versions may add to headers. */
static void check_again(const uint8_t *data, size_t size)
{
    const uint8_t *first, *second;
    size_t n_first, n_second;
    TtIo *io[2] = { tt_io_mem_new(NULL, 0), tt_io_mem_new(NULL, 0) };
    TtPackWriter *w, *v;

    CHECK(tt_pack_create(io[0], data + HEAD_UUID, &w, NULL) == TT_OK);
    CHECK(read_all(data, size, w, NULL) == TT_END);
    CHECK(tt_pack_end(w, NULL) == TT_OK);
    first = tt_io_mem_data(io[0], &n_first);
    CHECK(n_first <= size);
    CHECK(tt_pack_create(io[1], data + HEAD_UUID, &v, NULL) == TT_OK);
    CHECK(read_all(first, n_first, v, NULL) == TT_END);
    CHECK(tt_pack_end(v, NULL) == TT_OK);
    second = tt_io_mem_data(io[1], &n_second);
    CHECK(n_first == n_second && !memcmp(first, second, n_first));
    tt_pack_writer_free(v);
    tt_pack_writer_free(w);
}

static void check_pack(const uint8_t *data, size_t size)
{
    TtDiag diag = { 0 };

    if (read_all(data, size, NULL, &diag) == TT_END) {
        check_again(data, size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_pack(data, size);
    if (size >= HEAD_BYTES) {
        g_autofree uint8_t *mended = g_memdup2(data, size);

        mend(mended, size);
        check_pack(mended, size);
    }
    return 0;
}
