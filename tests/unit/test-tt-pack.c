/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A run as one file: what was packed comes out; whatever is cut, flipped or
 * foreign is refused; a writer that fails leaves nothing that passes for a pack.
 */
#include "run/tt-pack.h"

#include <glib.h>

static const uint8_t uuid[16] = "packs of a test";

static const struct {
    const char *name, *text;
} files[] = {
    { "manifest", "[run]\n" },
    { "parent/pages", "" },
    { "log", "events, events and more events" },
    { "marks", "12 here\n" },
};

/* In memory that outlives the writer. */
typedef struct KeepIo {
    TtIo io;
    GByteArray *bytes;
    uint64_t fails_at;          /* the nth append; 0: none */
} KeepIo;

static TtStatus keep_append(TtIo *io, const void *buf, size_t len,
                            TtDiag *diag)
{
    KeepIo *k = (KeepIo *)io;

    if (k->fails_at && !--k->fails_at) {
        g_byte_array_append(k->bytes, buf, len / 2);
        return tt_fail(diag, TT_ERR_NOSPACE, "the test's disk is full");
    }
    g_byte_array_append(k->bytes, buf, len);
    return TT_OK;
}

static TtStatus keep_sync(TtIo *io, TtDiag *diag)
{
    KeepIo *k = (KeepIo *)io;

    return k->fails_at && !--k->fails_at ?
        tt_fail(diag, TT_ERR_IO, "the test's disk is gone") : TT_OK;
}

static void keep_close(TtIo *io)
{
    g_free(io);
}

static const TtIoOps keep_ops = {
    .append = keep_append, .sync = keep_sync, .close = keep_close,
};

static TtStatus pack(GByteArray *to, uint64_t fails_at)
{
    KeepIo *k = g_new0(KeepIo, 1);
    TtPackWriter *w;
    TtStatus st;

    *k = (KeepIo) { { &keep_ops }, to, fails_at };
    st = tt_pack_create(&k->io, uuid, &w, NULL);
    for (unsigned i = 0; st == TT_OK && i < G_N_ELEMENTS(files); i++) {
        TtIo *from = tt_io_mem_new(files[i].text, strlen(files[i].text));

        st = tt_pack_add(w, files[i].name, from, strlen(files[i].text), NULL);
        tt_io_close(from);
    }
    if (st == TT_OK) {
        st = tt_pack_end(w, NULL);
    }
    tt_pack_writer_free(w);
    return st;
}

/* Reads all; how many members were right. */
static TtStatus unpack(const uint8_t *bytes, size_t len, unsigned *n)
{
    TtDiag diag = { 0 };
    TtPackReader *r;
    TtPackMember m;
    TtStatus st = tt_pack_open(tt_io_mem_new(bytes, len), &r, &diag);

    *n = 0;
    while (st == TT_OK && (st = tt_pack_next(r, &m, &diag)) == TT_OK) {
        TtIo *to = tt_io_mem_new(NULL, 0);
        const uint8_t *got;
        size_t got_len;

        st = tt_pack_copy(r, &m, to, &diag);
        if (st == TT_OK) {
            got = tt_io_mem_data(to, &got_len);
            g_assert_cmpstr(m.name, ==, files[*n].name);
            g_assert_cmpmem(got, got_len, files[*n].text,
                            strlen(files[*n].text));
            ++*n;
        }
        tt_io_close(to);
    }
    g_assert_true(st == TT_END || (diag.text[0] && st < 0));
    tt_pack_reader_free(r);
    return st;
}

static void test_what_went_in_comes_out(void)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    unsigned n;

    g_assert_cmpint(pack(bytes, 0), ==, TT_OK);
    g_assert_cmpint(unpack(bytes->data, bytes->len, &n), ==, TT_END);
    g_assert_cmpuint(n, ==, G_N_ELEMENTS(files));
}

static void test_every_cut_is_refused(void)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    unsigned n;

    pack(bytes, 0);
    for (size_t cut = 0; cut < bytes->len; cut++) {
        g_assert_cmpint(unpack(bytes->data, cut, &n), ==, TT_ERR_FORMAT);
    }
    g_byte_array_append(bytes, (const uint8_t *)"x", 1);
    g_assert_cmpint(unpack(bytes->data, bytes->len, &n), ==, TT_ERR_FORMAT);
}

static void test_every_flip_is_refused(void)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    unsigned n;

    pack(bytes, 0);
    for (size_t at = 0; at < bytes->len; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            bytes->data[at] ^= 1 << bit;
            g_assert_cmpint(unpack(bytes->data, bytes->len, &n), <, 0);
            bytes->data[at] ^= 1 << bit;
        }
    }
}

static void test_a_failed_writer_leaves_no_pack(void)
{
    unsigned nth = 1, n;
    TtStatus st;

    do {
        g_autoptr(GByteArray) bytes = g_byte_array_new();

        st = pack(bytes, nth++);
        if (st != TT_OK && st != TT_ERR_IO) {       /* the last sync is all */
            g_assert_cmpint(unpack(bytes->data, bytes->len, &n), <, 0);
        }
    } while (st != TT_OK);
    g_assert_cmpuint(nth, >, 2 * G_N_ELEMENTS(files));
}

static void test_knows_the_names_of_a_run(void)
{
    static const char *const good[] = {
        "manifest", "log", "pages", "checkpoints", "marks", "parent/log",
        "parent/parent/marks",
    };
    static const char *const bad[] = {
        "", "parent", "parent/", "/log", "../log", "parent/../log", "log/",
        "./log", "Log", "disks", "parent//log", "log\n",
    };
    GString *deep = g_string_new(NULL);

    for (unsigned i = 0; i < G_N_ELEMENTS(good); i++) {
        g_assert_true(tt_pack_name_is_known(good[i]));
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_false(tt_pack_name_is_known(bad[i]));
    }
    for (unsigned i = 0; i <= TT_PACK_DEPTH_MAX; i++) {
        g_string_append(deep, "parent/");
    }
    g_string_append(deep, "checkpoints");
    g_assert_false(tt_pack_name_is_known(deep->str));
    g_assert_true(tt_pack_name_is_known(deep->str + 7));
    g_string_free(deep, true);
}

static void test_a_file_that_shrank_is_told(void)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    KeepIo *k = g_new0(KeepIo, 1);
    TtIo *from = tt_io_mem_new("short", 5);
    TtPackWriter *w;
    TtDiag diag;

    *k = (KeepIo) { { &keep_ops }, bytes, 0 };
    g_assert_cmpint(tt_pack_create(&k->io, uuid, &w, NULL), ==, TT_OK);
    g_assert_cmpint(tt_pack_add(w, "log", from, 6, &diag), ==, TT_ERR_FORMAT);
    g_assert_nonnull(strstr(diag.text, "shorter"));
    tt_io_close(from);
    tt_pack_writer_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/pack/what-went-in-comes-out",
                    test_what_went_in_comes_out);
    g_test_add_func("/tt/pack/every-cut-is-refused", test_every_cut_is_refused);
    g_test_add_func("/tt/pack/every-flip-is-refused",
                    test_every_flip_is_refused);
    g_test_add_func("/tt/pack/a-failed-writer-leaves-no-pack",
                    test_a_failed_writer_leaves_no_pack);
    g_test_add_func("/tt/pack/knows-the-names-of-a-run",
                    test_knows_the_names_of_a_run);
    g_test_add_func("/tt/pack/a-file-that-shrank-is-told",
                    test_a_file_that_shrank_is_told);
    return g_test_run();
}
