/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A run as one file: docs/reference/pack-format.rst is the authority; K-numbers
 * are its rules.
 *
 *   file     head | member 0 | member 1 | ... | end
 *   member   header | name | data | checksum of the data
 */
#include "run/tt-pack.h"
#include "io/tt-bytes.h"
#include "tt-pack-format.h"

#include <glib.h>
#include <inttypes.h>

#define CHUNK_BYTES         (1u << 20)

bool tt_pack_name_is_known(const char *name)
{
    static const char *const files[] = {
        "manifest", "log", "pages", "checkpoints", "marks",
    };
    unsigned depth = 0;

    while (!strncmp(name, "parent/", 7)) {
        name += 7;
        if (++depth > TT_PACK_DEPTH_MAX) {
            return false;
        }
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(files); i++) {
        if (!strcmp(name, files[i])) {
            return true;
        }
    }
    return false;
}

/* ---- copying ---- */

/* @to may be NULL. */
static TtStatus copy(TtIo *from, uint64_t offset, uint64_t bytes, TtIo *to,
                     uint64_t seed, uint64_t *sum, TtDiag *diag)
{
    XXH3_state_t *state = XXH3_createState();
    g_autofree uint8_t *buf = g_malloc(CHUNK_BYTES);
    TtStatus st = TT_OK;

    XXH3_64bits_reset_withSeed(state, seed);
    while (st == TT_OK && bytes) {
        size_t n = MIN(bytes, CHUNK_BYTES), got;

        st = from->ops->read_at(from, offset, buf, n, &got, diag);
        if (st == TT_OK && got < n) {
            st = tt_fail(diag, TT_ERR_FORMAT, "the file is shorter than it was "
                         "when it was opened");
        }
        if (st == TT_OK && to) {
            st = to->ops->append(to, buf, n, diag);
        }
        if (st == TT_OK) {
            XXH3_64bits_update(state, buf, n);
            offset += n;
            bytes -= n;
        }
    }
    *sum = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return st;
}

/* ---- writing ---- */

struct TtPackWriter {
    TtIo *io;
    uint64_t seed, seq;
    GHashTable *names;
};

TtStatus tt_pack_create(TtIo *io, const uint8_t uuid[16], TtPackWriter **out,
                        TtDiag *diag)
{
    uint8_t h[HEAD_BYTES] = { 0 };
    TtStatus st;

    memcpy(h, HEAD_MAGIC, 8);
    tt_put_le32(h + HEAD_LENGTH, sizeof(h));
    memcpy(h + HEAD_UUID, uuid, 16);
    tt_put_le64(h + HEAD_SUM, tt_header_sum(h, sizeof(h), HEAD_SUM, 0));
    st = io->ops->append(io, h, sizeof(h), diag);
    *out = NULL;
    if (st != TT_OK) {
        tt_io_close(io);
        return st;
    }
    *out = g_new0(TtPackWriter, 1);
    (*out)->io = io;
    (*out)->seed = tt_get_le64(uuid);
    (*out)->names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
                                          NULL);
    return TT_OK;
}

static TtStatus put_header(TtPackWriter *w, uint32_t flags, const char *name,
                           uint64_t bytes, TtDiag *diag)
{
    uint8_t h[MEMBER_BYTES + TT_PACK_NAME_MAX] = { 0 };
    size_t len = strlen(name);

    memcpy(h, MEMBER_MAGIC, 8);
    tt_put_le32(h + MEMBER_LENGTH, MEMBER_BYTES);
    tt_put_le32(h + MEMBER_FLAGS, flags);
    tt_put_le64(h + MEMBER_SEQ, w->seq++);
    tt_put_le64(h + MEMBER_DATA, bytes);
    tt_put_le32(h + MEMBER_NAME, len);
    tt_put_le64(h + MEMBER_NAME_SUM, XXH3_64bits_withSeed(name, len, w->seed));
    tt_put_le64(h + MEMBER_SUM, tt_header_sum(h, MEMBER_BYTES, MEMBER_SUM,
                                              w->seed));
    memcpy(h + MEMBER_BYTES, name, len);
    return w->io->ops->append(w->io, h, MEMBER_BYTES + len, diag);
}

TtStatus tt_pack_add(TtPackWriter *w, const char *name, TtIo *from,
                     uint64_t bytes, TtDiag *diag)
{
    uint8_t sum_bytes[8];
    uint64_t sum;
    TtStatus st;

    g_assert(tt_pack_name_is_known(name) &&
             g_hash_table_add(w->names, g_strdup(name)));
    st = put_header(w, 0, name, bytes, diag);
    if (st == TT_OK) {
        st = copy(from, 0, bytes, w->io, w->seed, &sum, diag);
    }
    if (st == TT_OK) {
        tt_put_le64(sum_bytes, sum);
        st = w->io->ops->append(w->io, sum_bytes, 8, diag);
    }
    return st;
}

TtStatus tt_pack_end(TtPackWriter *w, TtDiag *diag)
{
    TtStatus st = put_header(w, MEMBER_END, "", 0, diag);

    return st == TT_OK ? w->io->ops->sync(w->io, diag) : st;
}

void tt_pack_writer_free(TtPackWriter *w)
{
    if (w) {
        tt_io_close(w->io);
        g_hash_table_destroy(w->names);
        g_free(w);
    }
}

/* ---- reading ---- */

struct TtPackReader {
    TtIo *io;
    uint8_t uuid[16];
    uint64_t seed, size, at, seq;
    GHashTable *names;
    bool is_over;
};

static TtStatus bad(TtPackReader *r, const char *what, TtDiag *diag)
{
    tt_fail(diag, TT_ERR_FORMAT, "the pack %s, at byte %" PRIu64 ": get "
            "another copy of it", what, r->at);
    if (diag) {
        diag->offset = r->at;
    }
    return TT_ERR_FORMAT;
}

static TtStatus read_head(TtPackReader *r, TtDiag *diag)
{
    uint8_t h[HEAD_BYTES_MAX];
    uint32_t length;
    size_t got;
    TtStatus st = r->io->ops->size(r->io, &r->size, diag);

    if (st == TT_OK) {
        st = r->io->ops->read_at(r->io, 0, h, sizeof(h), &got, diag);
    }
    if (st != TT_OK) {
        return st;
    }
    if (got < HEAD_BYTES || memcmp(h, HEAD_MAGIC, 8)) {
        return tt_fail(diag, TT_ERR_FORMAT, "this is not a packed run (tt pack "
                       "makes them)");
    }
    length = tt_get_le32(h + HEAD_LENGTH);
    if (length < HEAD_BYTES || length > got ||
        tt_get_le64(h + HEAD_SUM) != tt_header_sum(h, length, HEAD_SUM, 0)) {
        return bad(r, "has a damaged head", diag);
    }
    if (tt_get_le64(h + HEAD_MUST_KNOW)) {
        return tt_fail(diag, TT_ERR_VERSION, "the pack was made by a newer "
                       "version (unknown features 0x%" PRIx64 "): use that version",
                       tt_get_le64(h + HEAD_MUST_KNOW));
    }
    memcpy(r->uuid, h + HEAD_UUID, 16);
    r->seed = tt_get_le64(r->uuid);
    r->at = length;
    return TT_OK;
}

TtStatus tt_pack_open(TtIo *io, TtPackReader **out, TtDiag *diag)
{
    TtPackReader *r = g_new0(TtPackReader, 1);
    TtStatus st;

    r->io = io;
    r->names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    st = read_head(r, diag);
    if (st != TT_OK) {
        tt_pack_reader_free(r);
        r = NULL;
    }
    *out = r;
    return st;
}

const uint8_t *tt_pack_uuid(const TtPackReader *r)
{
    return r->uuid;
}

/* The end mark: nothing is after it (K4). */
static TtStatus end(TtPackReader *r, uint64_t bytes, TtDiag *diag)
{
    if (r->at + bytes != r->size) {
        return bad(r, "goes on after its end", diag);
    }
    r->is_over = true;
    return TT_END;
}

/* The header at r->at into @h (K2). */
static TtStatus read_header(TtPackReader *r, uint8_t *h, size_t *got,
                            uint32_t *length, TtDiag *diag)
{
    TtStatus st = r->io->ops->read_at(r->io, r->at, h, MEMBER_BYTES_MAX +
                                      TT_PACK_NAME_MAX, got, diag);

    if (st != TT_OK) {
        return st;
    }
    if (*got < MEMBER_BYTES) {
        return bad(r, "was cut off", diag);
    }
    *length = tt_get_le32(h + MEMBER_LENGTH);
    if (memcmp(h, MEMBER_MAGIC, 8) || *length < MEMBER_BYTES ||
        *length > MIN(MEMBER_BYTES_MAX, *got) ||
        tt_get_le64(h + MEMBER_SUM) !=
        tt_header_sum(h, *length, MEMBER_SUM, r->seed) ||
        tt_get_le64(h + MEMBER_SEQ) != r->seq) {
        return bad(r, "is damaged", diag);
    }
    if (tt_get_le32(h + MEMBER_FLAGS) & MEMBER_MUST_KNOW) {
        return tt_fail(diag, TT_ERR_VERSION, "the pack was made by a newer "
                       "version: use that version");
    }
    return TT_OK;
}

/* A name that a run has, once (K3). */
static TtStatus read_name(TtPackReader *r, const uint8_t *h, size_t got,
                          uint32_t length, TtPackMember *m, TtDiag *diag)
{
    uint32_t len = tt_get_le32(h + MEMBER_NAME);

    if (len > TT_PACK_NAME_MAX) {
        return bad(r, "has a name that is too long", diag);
    }
    if (length + len > got) {
        return bad(r, "was cut off", diag);
    }
    if (XXH3_64bits_withSeed(h + length, len, r->seed) !=
        tt_get_le64(h + MEMBER_NAME_SUM)) {
        return bad(r, "is damaged", diag);
    }
    memcpy(m->name, h + length, len);
    m->name[len] = 0;
    if (strlen(m->name) != len || !tt_pack_name_is_known(m->name) ||
        !g_hash_table_add(r->names, g_strdup(m->name))) {
        return bad(r, "has a file that does not belong to a run, or a file twice", diag);
    }
    m->offset = r->at + length + len;
    return TT_OK;
}

TtStatus tt_pack_next(TtPackReader *r, TtPackMember *m, TtDiag *diag)
{
    uint8_t h[MEMBER_BYTES_MAX + TT_PACK_NAME_MAX];
    uint32_t length;
    size_t got;
    TtStatus st;

    if (r->is_over) {
        return TT_END;
    }
    st = read_header(r, h, &got, &length, diag);
    if (st != TT_OK) {
        return st;
    }
    if (tt_get_le32(h + MEMBER_FLAGS) & MEMBER_END) {
        return end(r, length, diag);
    }
    st = read_name(r, h, got, length, m, diag);
    if (st != TT_OK) {
        return st;
    }
    m->bytes = tt_get_le64(h + MEMBER_DATA);
    if (m->offset > r->size || r->size - m->offset < 8 ||
        m->bytes > r->size - m->offset - 8) {
        return bad(r, "was cut off", diag);
    }
    r->at = m->offset + m->bytes + 8;
    r->seq++;
    return TT_OK;
}

TtStatus tt_pack_copy(TtPackReader *r, const TtPackMember *m, TtIo *to,
                      TtDiag *diag)
{
    uint8_t stored[8];
    uint64_t sum;
    size_t got;
    TtStatus st = copy(r->io, m->offset, m->bytes, to, r->seed, &sum, diag);

    if (st == TT_OK) {
        st = r->io->ops->read_at(r->io, m->offset + m->bytes, stored, 8, &got,
                                 diag);
    }
    if (st == TT_OK && (got < 8 || tt_get_le64(stored) != sum)) {
        tt_fail(diag, TT_ERR_FORMAT, "the pack is damaged: the checksum of "
                "'%s' is wrong; get another copy of it", m->name);
        st = TT_ERR_FORMAT;
    }
    return st;
}

void tt_pack_reader_free(TtPackReader *r)
{
    if (r) {
        tt_io_close(r->io);
        g_hash_table_destroy(r->names);
        g_free(r);
    }
}
