/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Trailers of frames: what was put is got; nothing that was changed, or is of another group
 * or key, is taken for right; other bytes have none. */
#include "net-tt/tt-trailer.h"

#include <glib.h>

static const uint8_t key[20] = "a key of the group..", other_key[20] = "another key of it...";

static TtTrailerGroup group_of(const char *name, const uint8_t *k)
{
    TtTrailerGroup g;

    tt_trailer_group_init(&g, name, k, k ? sizeof(key) : 0);
    return g;
}

/* A frame of @len bytes with its trailer. */
static uint8_t *frame_of(const TtTrailerGroup *g, uint32_t len, TtFrame *f)
{
    uint8_t *bytes = g_malloc(len + TT_TRAILER_BYTES);

    for (uint32_t i = 0; i < len; i++) {
        bytes[i] = i * 31 + (i >> 8);
    }
    *f = (TtFrame) { .run = "0123456789abcde", .is_recorded = len % 2, .pos = len % 2 ?
                     4711 : TT_FRAME_NO_POS, .seq = len, .epoch = 3, .data = bytes,
                     .len = len, .hash = tt_frame_hash(bytes, len) };
    tt_trailer_put(bytes + len, g, f);
    return bytes;
}

static void test_frames(void)
{
    static const uint32_t lens[] = { 14, 42, 59, 60, 61, 1514, TT_FRAME_BYTES_MAX };

    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(lens); i++) {
        TtTrailerGroup g = group_of("g", i & 1 ? key : NULL);
        TtFrame f;
        g_autofree uint8_t *bytes = frame_of(&g, lens[i / 2], &f);
        TtMessage m;

        g_assert_cmpint(tt_trailer_get(&m, &g, bytes, f.len + TT_TRAILER_BYTES, NULL), ==,
                        TT_OK);
        g_assert_cmpint(m.kind, ==, TT_MESSAGE_FRAME);
        g_assert_true(m.frame.data == bytes && m.frame.len == f.len);
        g_assert_cmpmem(m.frame.run, TT_RUN_BYTES, f.run, TT_RUN_BYTES);
        g_assert_true(m.frame.is_recorded == f.is_recorded && m.frame.pos == f.pos);
        g_assert_true(m.frame.seq == f.seq && m.frame.epoch == f.epoch &&
                      m.frame.hash == f.hash);
    }
}

static void test_epoch(void)
{
    for (unsigned i = 0; i < 2; i++) {
        TtTrailerGroup g = group_of("g", i ? key : NULL);
        uint8_t bytes[60 + TT_TRAILER_BYTES] = { 0xff };
        TtMessage m;

        tt_trailer_put_epoch(bytes + 60, &g, TT_EPOCH_MAX);
        g_assert_cmpint(tt_trailer_get(&m, &g, bytes, sizeof(bytes), NULL), ==, TT_OK);
        g_assert_cmpint(m.kind, ==, TT_MESSAGE_EPOCH);
        g_assert_cmpint(m.frame.epoch, ==, TT_EPOCH_MAX);
        g_assert_true(!m.frame.len && !m.frame.data);
    }
}

/* Any bit changed: never taken for right; without its magics it is a frame of others. */
static void test_changed(void)
{
    for (unsigned i = 0; i < 2; i++) {
        TtTrailerGroup g = group_of("g", i ? key : NULL);
        TtFrame f;
        g_autofree uint8_t *bytes = frame_of(&g, 61, &f);
        uint32_t len = f.len + TT_TRAILER_BYTES;

        for (uint32_t bit = 0; bit < len * 8; bit++) {
            uint32_t at = bit / 8;
            bool in_magic = at >= len - 8 || (at >= f.len && at < f.len + 4);
            TtDiag diag = { 0 };
            TtMessage m;
            TtStatus st;

            bytes[at] ^= 1 << bit % 8;
            st = tt_trailer_get(&m, &g, bytes, len, &diag);
            g_assert_true(in_magic ? st == TT_END : st < 0 && *diag.text);
            bytes[at] ^= 1 << bit % 8;
        }
    }
}

/* One byte too few or too many, at either end. */
static void test_moved(void)
{
    TtTrailerGroup g = group_of("g", NULL);
    TtFrame f;
    g_autofree uint8_t *bytes = frame_of(&g, 61, &f);
    uint32_t len = f.len + TT_TRAILER_BYTES;
    g_autofree uint8_t *more = g_malloc0(len + 1);
    TtMessage m;

    g_assert_cmpint(tt_trailer_get(&m, &g, bytes, len - 1, NULL), ==, TT_END);
    g_assert_cmpint(tt_trailer_get(&m, &g, bytes + 1, len - 1, NULL), ==, TT_ERR_FORMAT);
    memcpy(more, bytes, len);
    g_assert_cmpint(tt_trailer_get(&m, &g, more, len + 1, NULL), ==, TT_END);
    memcpy(more + 1, bytes, len);
    g_assert_cmpint(tt_trailer_get(&m, &g, more, len + 1, NULL), ==, TT_ERR_FORMAT);
    for (uint32_t n = 0; n < TT_TRAILER_BYTES + TT_FRAME_BYTES_MIN; n++) {
        g_autofree uint8_t *end = g_memdup2(bytes + len - n, n);

        g_assert_cmpint(tt_trailer_get(&m, &g, end, n, NULL), ==, TT_END);
    }
}

static void get_by(const TtTrailerGroup *to, const TtTrailerGroup *from, const char *why)
{
    TtFrame f;
    g_autofree uint8_t *bytes = frame_of(from, 60, &f);
    TtDiag diag;
    TtMessage m;

    g_assert_cmpint(tt_trailer_get(&m, to, bytes, f.len + TT_TRAILER_BYTES, &diag), ==,
                    TT_ERR_INVALID);
    g_assert_nonnull(strstr(diag.text, why));
}

static void test_others(void)
{
    TtTrailerGroup a = group_of("g", NULL), b = group_of("h", NULL),
        keyed = group_of("g", key), otherwise = group_of("g", other_key);

    get_by(&a, &b, "another group");
    get_by(&b, &keyed, "another group");
    get_by(&a, &keyed, "a key and this side has none");
    get_by(&keyed, &a, "no key and this side has one");
    get_by(&keyed, &otherwise, "authentication is wrong");
}

/* Bytes of a guest that look like a trailer stay its own: only the last one is taken off. */
static void test_nested(void)
{
    TtTrailerGroup g = group_of("g", key);
    TtFrame f, outer;
    g_autofree uint8_t *inner = frame_of(&g, 60, &f);
    uint32_t len = f.len + TT_TRAILER_BYTES;
    g_autofree uint8_t *bytes = g_malloc(len + TT_TRAILER_BYTES);
    TtMessage m;

    memcpy(bytes, inner, len);
    outer = f;
    outer.data = bytes;
    outer.len = len;
    outer.hash = tt_frame_hash(bytes, len);
    tt_trailer_put(bytes + len, &g, &outer);
    g_assert_cmpint(tt_trailer_get(&m, &g, bytes, len + TT_TRAILER_BYTES, NULL), ==, TT_OK);
    g_assert_cmpmem(m.frame.data, m.frame.len, inner, len);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/trailer/frames-come-back", test_frames);
    g_test_add_func("/tt/trailer/a-checkpoint-comes-back", test_epoch);
    g_test_add_func("/tt/trailer/no-changed-bit-is-taken", test_changed);
    g_test_add_func("/tt/trailer/it-is-the-end-of-its-frame", test_moved);
    g_test_add_func("/tt/trailer/other-groups-and-keys-are-told", test_others);
    g_test_add_func("/tt/trailer/data-that-looks-like-one-stays", test_nested);
    return g_test_run();
}
