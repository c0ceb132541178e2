/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames between VMs: bytes, the two ends of a link, what a broken peer can do. */
#include "net-tt/tt-link.h"

#include <glib.h>

static const uint8_t key[20] = "a key of the group..";

static TtLink *end_of(const char *group, const uint8_t *k, uint8_t nonce)
{
    TtLinkOptions o = { .group = group, .key = k, .key_len = k ? sizeof(key) : 0 };

    memset(o.nonce, nonce, sizeof(o.nonce));
    return tt_link_new(&o);
}

/* What @from has for @to, in pieces of @step bytes, but for the byte at @flip. */
static TtStatus pass(TtLink *from, TtLink *to, size_t step, size_t flip, TtFrame *f,
                     TtDiag *diag)
{
    size_t len;
    const uint8_t *out = tt_link_out(from, &len);
    g_autofree uint8_t *bytes = g_memdup2(out, len);
    TtStatus st = TT_END;

    if (flip < len) {
        bytes[flip] ^= 1;
    }
    tt_link_sent(from, len);
    for (size_t at = 0; at < len && st == TT_END; at += step) {
        tt_link_put(to, bytes + at, MIN(step, len - at));
        st = tt_link_next(to, f, diag);
    }
    return st;
}

static void greet(TtLink *a, TtLink *b, size_t step)
{
    TtFrame f;

    g_assert_cmpint(pass(a, b, step, SIZE_MAX, &f, NULL), ==, TT_END);
    g_assert_cmpint(pass(b, a, step, SIZE_MAX, &f, NULL), ==, TT_END);
    g_assert_true(tt_link_is_open(a));
    g_assert_cmpint(pass(a, b, step, SIZE_MAX, &f, NULL), ==, TT_END);
    g_assert_true(tt_link_is_open(b));
}

static TtFrame frame_of(const uint8_t *data, uint32_t len, uint64_t seq)
{
    TtFrame f = { .run = "0123456789abcde", .is_recorded = true, .pos = 4711,
                  .seq = seq, .epoch = 3, .hash = data ? tt_frame_hash(data, len) : 0,
                  .data = data, .len = len };

    return f;
}

/* A stranger passes on what one port of a hub says to another port: that port must not
 * take it for a member's. */
static void test_roles(void)
{
    static const uint8_t secret[] = "secret", one[TT_NONCE_BYTES] = { 1 },
        other[TT_NONCE_BYTES] = { 2 };
    uint8_t of_hub[TT_MAC_BYTES], of_member[TT_MAC_BYTES];

    tt_frame_link_key(of_hub, secret, sizeof(secret), "g", one, other, true);
    tt_frame_link_key(of_member, secret, sizeof(secret), "g", one, other, false);
    g_assert_cmpint(memcmp(of_hub, of_member, TT_MAC_BYTES), !=, 0);
}

static void test_frames(void)
{
    static uint8_t data[TT_FRAME_BYTES_MAX];

    for (unsigned i = 0; i < 24; i++) {
        const uint8_t *k = i & 1 ? key : NULL;
        TtLink *a = end_of("g", k, 1), *b = end_of("g", k, 2);
        size_t step = (size_t[]) { 1, 7, 96, 160, 4096, 65536 }[i / 4];
        TtFrame f, got;
        TtDiag diag;

        greet(a, b, step);
        memset(data, i, 1500);
        f = frame_of(data, i & 2 ? 14 : 1500, 9);
        tt_link_send(a, &f);
        g_assert_cmpint(pass(a, b, step, SIZE_MAX, &got, &diag), ==, TT_OK);
        g_assert_cmpuint(got.pos, ==, 4711);
        g_assert_cmpuint(got.seq, ==, 9);
        g_assert_cmpuint(got.epoch, ==, 3);
        g_assert_cmpmem(got.data, got.len, data, f.len);
        g_assert_cmpint(tt_link_next(b, &got, &diag), ==, TT_END);
        f.is_recorded = false;
        f.pos = TT_FRAME_NO_POS;
        f.len = TT_FRAME_BYTES_MAX;
        f.hash = tt_frame_hash(data, f.len);
        tt_link_send(b, &f);
        g_assert_cmpint(pass(b, a, 65536, SIZE_MAX, &got, &diag), ==, TT_OK);
        g_assert_false(got.is_recorded);
        g_assert_cmpuint(got.len, ==, TT_FRAME_BYTES_MAX);
        tt_link_free(a);
        tt_link_free(b);
    }
}

/* One sentence, and the link is broken from then on. */
static void check_refused(TtLink *a, TtLink *b, const char *why)
{
    TtFrame f;
    TtDiag diag = { 0 };
    TtStatus st = pass(a, b, 4096, SIZE_MAX, &f, &diag);

    if (st == TT_END) {
        g_assert_cmpint(pass(b, a, 4096, SIZE_MAX, &f, &diag), <, 0);
    } else {
        g_assert_cmpint(st, <, 0);
        g_assert_cmpint(tt_link_next(b, &f, NULL), ==, st);
        tt_link_put(b, (const uint8_t *)"more", 4);
        g_assert_cmpint(tt_link_next(b, &f, NULL), ==, st);
    }
    g_assert_nonnull(strstr(diag.text, why));
    g_assert_false(tt_link_is_open(a) && tt_link_is_open(b));
    tt_link_free(a);
    tt_link_free(b);
}

static void test_strangers(void)
{
    uint8_t other[20] = "another key, no less";
    TtLink *a, *b;
    TtFrame f;

    check_refused(end_of("g", NULL, 1), end_of("h", NULL, 2), "belongs to the group");
    check_refused(end_of("g", key, 1), end_of("g", NULL, 2), "key");
    check_refused(end_of("g", key, 1), end_of("g", key, 1), "connected to itself");
    a = end_of("g", key, 1);
    b = end_of("g", other, 2);
    g_assert_cmpint(pass(a, b, 4096, SIZE_MAX, &f, NULL), ==, TT_END);
    check_refused(b, a, "another key");
}

/* Who is refused hears why, before the hello of this side or behind its READY; one whose key
 * is wrong does not hear anything else. */
static void test_refused(void)
{
    for (unsigned i = 0; i < 8; i++) {
        const uint8_t *k = i & 1 ? key : NULL;
        TtLink *a = end_of("g", k, 1), *b = end_of("g", k, 2);
        size_t step = i & 2 ? 1 : 4096;
        TtFrame f;
        TtDiag diag = { 0 };

        if (i & 4) {
            g_assert_cmpint(pass(b, a, step, SIZE_MAX, &f, NULL), ==, TT_END);
        }
        tt_link_refuse(a, i & 4 ? TT_REFUSED_HAS_PEER : TT_REFUSED_HAS_MEMBERS);
        g_assert_cmpint(pass(a, b, step, SIZE_MAX, &f, &diag), ==, TT_ERR_INVALID);
        g_assert_nonnull(strstr(diag.text, i & 4 ? "its peer already" : "(--members)"));
        g_assert_true(tt_link_is_refused(b) && !tt_link_is_refused(a));
        tt_link_free(a);
        tt_link_free(b);
    }
    g_assert_nonnull(strstr(tt_refusal_text(77), "takes no peer"));
}

/* What was overheard of one connection is worth nothing in the next. */
static void test_overheard(void)
{
    TtLink *a = end_of("g", key, 1), *b = end_of("g", key, 2), *c;
    uint8_t data[60] = { 0 };
    TtFrame f = frame_of(data, sizeof(data), 1), got;
    g_autofree uint8_t *said = NULL;
    size_t len;
    TtDiag diag;

    g_assert_cmpint(pass(a, b, 96, SIZE_MAX, &got, NULL), ==, TT_END);
    g_assert_cmpint(pass(b, a, 96, SIZE_MAX, &got, NULL), ==, TT_END);
    tt_link_send(a, &f);
    tt_link_out(a, &len);
    said = g_memdup2(tt_link_out(a, &len), len);
    g_assert_cmpint(pass(a, b, 4096, SIZE_MAX, &got, &diag), ==, TT_OK);

    tt_link_put(b, said + 96, len - 96);        /* again, in the same connection */
    g_assert_cmpint(tt_link_next(b, &got, &diag), ==, TT_ERR_FORMAT);
    g_assert_nonnull(strstr(diag.text, "is out of order"));

    c = end_of("g", key, 3);                    /* in one with a new nonce */
    tt_link_free(a);
    a = end_of("g", key, 1);
    g_assert_cmpint(pass(a, c, 96, SIZE_MAX, &got, NULL), ==, TT_END);
    tt_link_put(c, said, len);
    g_assert_cmpint(tt_link_next(c, &got, &diag), ==, TT_ERR_INVALID);
    tt_link_free(a);
    tt_link_free(b);
    tt_link_free(c);
}

/* Any changed byte is noticed; with a key nothing of it is believed. */
static void test_flips(void)
{
    uint8_t data[20] = "some bytes of data.";

    for (unsigned keyed = 0; keyed < 2; keyed++) {
        size_t len = TT_MESSAGE_HEAD_BYTES + (keyed ? TT_MAC_BYTES : 0) + sizeof(data);

        for (size_t at = 0; at < len; at++) {
            TtLink *a = end_of("g", keyed ? key : NULL, 1);
            TtLink *b = end_of("g", keyed ? key : NULL, 2);
            TtFrame f = frame_of(data, sizeof(data), 1), got;
            TtStatus st;

            greet(a, b, 4096);
            tt_link_send(a, &f);
            st = pass(a, b, 4096, at, &got, NULL);
            /* Epoch, run, position, sequence: only a key protects them. A length that
             * is more than what came waits. */
            g_assert_true(st < 0 || st == TT_END || (!keyed && at >= 12 && at < 48));
            g_assert_true(st != TT_END || (at >= 8 && at < 12));
            tt_link_free(a);
            tt_link_free(b);
        }
    }
}

/* A frame with a wrong hash is dropped, the next one is fine. */
static void test_dropped(void)
{
    TtLink *a = end_of("g", NULL, 1), *b = end_of("g", NULL, 2);
    uint8_t data[60] = { 0 };
    TtFrame f = frame_of(data, sizeof(data), 1), got;
    TtDiag diag;

    greet(a, b, 4096);
    tt_link_send(a, &f);
    g_assert_cmpint(pass(a, b, 4096, TT_MESSAGE_HEAD_BYTES + 3, &got, &diag), ==,
                    TT_ERR_MISMATCH);
    g_assert_nonnull(strstr(diag.text, "damaged"));
    f.seq = 2;
    tt_link_send(a, &f);
    g_assert_cmpint(pass(a, b, 4096, SIZE_MAX, &got, &diag), ==, TT_OK);
    g_assert_cmpuint(got.seq, ==, 2);
    tt_link_free(a);
    tt_link_free(b);
}

static void test_heard(void)
{
    g_autofree TtHeard *h = g_new0(TtHeard, 1);
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    TtFrame f = { .run = { 1 }, .seq = 50000 };
    uint64_t top = 50000;

    g_assert_true(tt_heard_is_new(h, &f));
    g_assert_false(tt_heard_is_new(h, &f));
    f.seq = 49999;
    g_assert_true(tt_heard_is_new(h, &f));
    f.seq = 50000 - TT_HEARD_WINDOW;
    g_assert_false(tt_heard_is_new(h, &f));
    g_hash_table_add(seen, GUINT_TO_POINTER(50000));
    g_hash_table_add(seen, GUINT_TO_POINTER(49999));
    for (unsigned i = 0; i < 500000; i++) {
        uint64_t low = top >= TT_HEARD_WINDOW ? top - TT_HEARD_WINDOW : 0;
        bool is_new;

        f.seq = low + g_test_rand_int_range(0, TT_HEARD_WINDOW + 3);
        if (!g_test_rand_int_range(0, 500)) {
            f.seq += g_test_rand_int_range(0, 3 * TT_HEARD_WINDOW);
        }
        is_new = f.seq + TT_HEARD_WINDOW > top &&
                 !g_hash_table_contains(seen, GUINT_TO_POINTER((guint)f.seq));
        g_assert_cmpint(tt_heard_is_new(h, &f), ==, is_new);
        g_hash_table_add(seen, GUINT_TO_POINTER((guint)f.seq));
        top = MAX(top, f.seq);
    }
    for (unsigned i = 0; i < 3 * TT_HEARD_RUNS; i++) {
        f.run[1] = i;
        f.run[2] = 9;
        g_assert_true(tt_heard_is_new(h, &f));
        g_assert_false(tt_heard_is_new(h, &f));
    }
}

/* Gaps of any length, however they lie in the words: what was in them is new, what was
 * before them is known. */
static void test_heard_gaps(void)
{
    static const uint64_t gaps[] = { 1, 63, 64, 65, 128, 1000, TT_HEARD_WINDOW - 1,
                                     TT_HEARD_WINDOW, 1ull << 40 };
    g_autofree TtHeard *h = g_new0(TtHeard, 1);
    TtFrame f = { .run = { 1 } };
    uint64_t last = 0;

    g_assert_true(tt_heard_is_new(h, &f));
    for (unsigned i = 0; i < 130 * G_N_ELEMENTS(gaps); i++) {
        uint64_t gap = gaps[i % G_N_ELEMENTS(gaps)] + i % 7;

        f.seq = last + 1 + gap;
        g_assert_true(tt_heard_is_new(h, &f));
        f.seq = last;
        g_assert_false(tt_heard_is_new(h, &f));
        last += 1 + gap;
        for (uint64_t n = 1; n <= gap && n < TT_HEARD_WINDOW; n += 1 + n / 3) {
            f.seq = last - n;
            g_assert_true(tt_heard_is_new(h, &f));
            g_assert_false(tt_heard_is_new(h, &f));
        }
    }
    f.seq = UINT64_MAX;
    g_assert_false(tt_heard_is_new(h, &f));
    f.seq = last;
    g_assert_false(tt_heard_is_new(h, &f));
}

/* The number above which there is none is no frame's. */
static void test_last_number(void)
{
    TtLink *a = end_of("g", NULL, 1), *b = end_of("g", NULL, 2);
    uint8_t data[60] = { 0 };
    TtFrame f = frame_of(data, sizeof(data), UINT64_MAX), got;
    TtDiag diag;

    greet(a, b, 4096);
    tt_link_send(a, &f);
    g_assert_cmpint(pass(a, b, 4096, SIZE_MAX, &got, &diag), ==, TT_ERR_FORMAT);
    g_assert_nonnull(strstr(diag.text, "a number that no frame can have"));
    tt_link_free(a);
    tt_link_free(b);
}

/* Whoever waits for READY first gets no frame by it, and all of them afterwards. */
static void test_meets(void)
{
    TtLink *a = end_of("g", key, 1), *b = end_of("g", key, 2);
    uint8_t data[60] = { 0 };
    TtFrame f = frame_of(data, sizeof(data), 7), got;
    const uint8_t *out;
    TtDiag diag;
    size_t len;

    g_assert_cmpint(tt_link_meet(b, &diag), ==, TT_END);
    g_assert_cmpint(pass(a, b, 4096, SIZE_MAX, &got, NULL), ==, TT_END);
    g_assert_cmpint(pass(b, a, 4096, SIZE_MAX, &got, NULL), ==, TT_END);
    g_assert_true(tt_link_is_open(a));
    tt_link_send(a, &f);
    out = tt_link_out(a, &len);
    for (size_t i = 0; i < len; i++) {
        tt_link_put(b, out + i, 1);
        g_assert_cmpint(tt_link_meet(b, &diag), ==,
                        i + 1 < TT_MESSAGE_HEAD_BYTES + TT_MAC_BYTES ? TT_END : TT_OK);
    }
    g_assert_true(tt_link_is_open(b));
    g_assert_cmpint(tt_link_next(b, &got, &diag), ==, TT_OK);
    g_assert_cmpuint(got.seq, ==, 7);
    g_assert_cmpint(tt_link_next(b, &got, &diag), ==, TT_END);
    tt_link_put(b, out, len);
    g_assert_cmpint(tt_link_meet(b, &diag), ==, TT_OK);
    g_assert_cmpint(tt_link_next(b, &got, &diag), ==, TT_ERR_FORMAT);
    g_assert_cmpint(tt_link_meet(b, &diag), ==, TT_ERR_FORMAT);
    tt_link_free(a);
    tt_link_free(b);
}

static void test_notes(void)
{
    TtFrame f = frame_of(NULL, 60, 8), got;
    uint8_t bytes[TT_FRAME_NOTE_MAX];
    uint32_t len;
    TtDiag diag;

    f.hash = 77;
    len = tt_frame_note_put(bytes, TT_FRAME_DELIVERED, &f);
    g_assert_cmpint(tt_frame_note_get(&got, TT_FRAME_DELIVERED, 8, 60, bytes, len,
                                      &diag), ==, TT_OK);
    g_assert_cmpmem(got.run, TT_RUN_BYTES, f.run, TT_RUN_BYTES);
    g_assert_cmpuint(got.pos, ==, f.pos);
    g_assert_cmpuint(got.hash, ==, 77);
    g_assert_cmpint(tt_frame_note_get(&got, TT_FRAME_SENT, 8, 60, bytes, len, &diag),
                    ==, TT_ERR_FORMAT);
    for (unsigned what = TT_FRAME_EPOCH; what < 7; what++) {
        g_assert_cmpint(tt_frame_note_get(&got, what, 8, 60, bytes, len, &diag), ==,
                        TT_ERR_FORMAT);
    }
    len = tt_frame_note_put(bytes, TT_FRAME_SENT, &f);
    g_assert_cmpint(tt_frame_note_get(&got, TT_FRAME_SENT, 8, 60, bytes, len, &diag),
                    ==, TT_OK);
    g_assert_cmpuint(got.epoch, ==, 3);
    g_assert_false(tt_group_name_is_fit(""));
    g_assert_false(tt_group_name_is_fit("a b"));
    g_assert_true(tt_group_name_is_fit("a-1.b_C"));
}

static void test_passed(void)
{
    TtFrame f = frame_of(NULL, 60, 8);
    TtFrame blank = { .seq = 8, .len = 60, .pos = f.pos }, got = blank;
    uint8_t bytes[TT_FRAME_IN_MAX];
    uint32_t len;

    f.hash = 77;
    len = tt_frame_in_put(bytes, &f);
    g_assert_cmpint(tt_frame_in_get(&got, bytes, len, NULL), ==, TT_OK);
    g_assert_cmpmem(got.run, TT_RUN_BYTES, f.run, TT_RUN_BYTES);
    g_assert_true(got.is_recorded && got.hash == 77 && got.epoch == f.epoch);
    for (uint32_t cut = 0; cut < len; cut++) {
        got = blank;
        g_assert_cmpint(tt_frame_in_get(&got, bytes, cut, NULL), ==, TT_ERR_FORMAT);
    }
    got = (TtFrame) { .len = 60, .pos = TT_FRAME_NO_POS };
    g_assert_cmpint(tt_frame_in_get(&got, bytes, len, NULL), ==, TT_OK);
    g_assert_false(got.is_recorded);
    got = (TtFrame) { .len = 60, .pos = TT_FRAME_NO_POS - 1 };
    g_assert_cmpint(tt_frame_in_get(&got, bytes, len, NULL), ==, TT_ERR_FORMAT);
    got = (TtFrame) { .len = TT_FRAME_BYTES_MIN - 1 };
    g_assert_cmpint(tt_frame_in_get(&got, bytes, len, NULL), ==, TT_ERR_FORMAT);
    f.epoch = UINT32_MAX;
    len = tt_frame_out_put(bytes, &f);
    g_assert_cmpuint(len, ==, TT_FRAME_OUT_MAX);
    got = blank;
    g_assert_cmpint(tt_frame_out_get(&got, bytes, len, NULL), ==, TT_OK);
    g_assert_true(got.hash == 77 && got.epoch == UINT32_MAX);
    bytes[len - 1] = 0x10;              /* an epoch of 2^32 */
    g_assert_cmpint(tt_frame_out_get(&got, bytes, len, NULL), ==, TT_ERR_FORMAT);
}

static TtStatus take(TtKept *k, unsigned what, uint64_t seq, uint32_t aux,
                     const uint8_t *data, uint32_t len)
{
    TtDiag diag;
    TtStatus st = tt_kept_take(k, what, seq, aux, data, len, &diag);

    g_assert_true(st != TT_ERR_FORMAT || strstr(diag.text, "damaged"));
    return st;
}

/* What was on its way at a checkpoint: all of it comes back, and damage is noticed. */
static void test_kept(void)
{
    static uint8_t note[TT_FRAME_KEPT_MAX];
    static TtKept k;
    uint8_t data[60] = "a frame";
    TtFrame f = frame_of(data, sizeof(data), 8), got;
    uint32_t n_rest, len = tt_frame_kept_put(note, &f, "net0", &n_rest);
    char long_name[TT_NETDEV_NAME_MAX + 2] = "";
    TtDiag diag;

    g_assert_cmpuint(n_rest, ==, 0);
    g_assert_cmpint(take(&k, TT_FRAME_KEPT, 8, 60, note, len), ==, TT_OK);
    g_assert_cmpstr(k.netdev, ==, "net0");
    g_assert_cmpmem(k.frame.data, k.frame.len, data, sizeof(data));
    g_assert_cmpmem(k.frame.run, TT_RUN_BYTES, f.run, TT_RUN_BYTES);
    g_assert_cmpuint(k.frame.pos, ==, f.pos);
    g_assert_cmpint(take(&k, TT_FRAME_REST, 8, 60, note, 1), ==, TT_END);
    for (uint32_t n = 0; n < len; n++) {
        g_assert_cmpint(take(&k, TT_FRAME_KEPT, 8, 60, note, n), ==, TT_ERR_FORMAT);
    }
    g_assert_cmpint(take(&k, TT_FRAME_KEPT, 8, 61, note, len), ==, TT_ERR_FORMAT);
    note[len - 1] ^= 1;
    g_assert_cmpint(take(&k, TT_FRAME_KEPT, 8, 60, note, len), ==, TT_ERR_FORMAT);
    note[len - 1] ^= 1;
    note[TT_FRAME_NOTE_MAX + 2] = 0;        /* a name that ends before its length */
    g_assert_cmpint(take(&k, TT_FRAME_KEPT, 8, 60, note, len), ==, TT_ERR_FORMAT);
    memset(long_name, 'x', sizeof(long_name) - 1);
    len = tt_frame_kept_put(note, &f, long_name, &n_rest);
    g_assert_cmpint(take(&k, TT_FRAME_KEPT, 8, 60, note, len), ==, TT_OK);
    g_assert_cmpstr(k.netdev, ==, "");
    g_assert_cmpint(tt_frame_note_get(&got, TT_FRAME_EPOCH, 5, 1, NULL, 0, &diag), ==,
                    TT_OK);
    g_assert_cmpuint(got.epoch, ==, 5);
    g_assert_cmpint(tt_frame_note_get(&got, TT_FRAME_EPOCH, TT_EPOCH_MAX + 1, 1, NULL, 0,
                                      &diag), ==, TT_ERR_FORMAT);
}

/* A frame of any length is kept, also one with too many bytes for one event. */
static void test_kept_long(void)
{
    static uint8_t note[TT_FRAME_KEPT_MAX], data[TT_FRAME_BYTES_MAX];
    static TtKept k;

    for (uint32_t i = 0; i < sizeof(data); i++) {
        data[i] = i * 7 >> 3;
    }
    for (uint32_t n = TT_FRAME_KEPT_MAX - 60; n <= TT_FRAME_BYTES_MAX; n++) {
        TtFrame f = frame_of(data, n, n);
        uint32_t n_rest, len = tt_frame_kept_put(note, &f, "net0", &n_rest);
        const uint8_t *rest = data + n - n_rest;

        g_assert_cmpuint(len, <=, TT_FRAME_KEPT_MAX);
        g_assert_cmpint(take(&k, TT_FRAME_KEPT, n, n, note, len), ==,
                        n_rest ? TT_END : TT_OK);
        if (n_rest) {
            g_assert_cmpint(take(&k, TT_FRAME_REST, n + 1, n, rest, n_rest), ==, TT_END);
            g_assert_cmpint(take(&k, TT_FRAME_REST, n, n - 1, rest, n_rest), ==,
                            TT_ERR_FORMAT);
            g_assert_cmpint(take(&k, TT_FRAME_REST, n, n, rest, n_rest - 1), ==,
                            TT_ERR_FORMAT);
            g_assert_cmpint(take(&k, TT_FRAME_REST, n, n, rest, n_rest), ==, TT_OK);
        }
        g_assert_cmpmem(k.frame.data, k.frame.len, data, n);
        n += n < TT_FRAME_KEPT_MAX + 60 ? 0 : 500;
    }
}

/* Checkpoints of the group are told between frames, and are none themselves. */
static void test_epochs(void)
{
    uint8_t data[60] = { 0 };

    for (unsigned keyed = 0; keyed < 2; keyed++) {
        TtLink *a = end_of("g", keyed ? key : NULL, 1);
        TtLink *b = end_of("g", keyed ? key : NULL, 2);
        TtFrame f = frame_of(data, sizeof(data), 1), got;
        TtDiag diag;

        greet(a, b, 4096);
        tt_link_send_epoch(a, 7);
        g_assert_cmpint(pass(a, b, 1, SIZE_MAX, &got, &diag), ==, TT_END);
        g_assert_cmpuint(tt_link_epoch(b), ==, 7);
        tt_link_send_epoch(a, 6);               /* is known already */
        tt_link_send(a, &f);
        tt_link_send_epoch(a, 8);
        g_assert_cmpint(pass(a, b, 4096, SIZE_MAX, &got, &diag), ==, TT_OK);
        g_assert_cmpuint(tt_link_epoch(b), ==, 7);
        g_assert_cmpint(tt_link_next(b, &got, &diag), ==, TT_END);
        g_assert_cmpuint(tt_link_epoch(b), ==, 8);
        f.epoch = TT_EPOCH_MAX + 1;
        tt_link_send(a, &f);
        g_assert_cmpint(pass(a, b, 4096, SIZE_MAX, &got, &diag), ==, TT_ERR_LIMIT);
        tt_link_free(a);
        tt_link_free(b);
    }
}

static TtLink *hub_of(const uint8_t *k, uint8_t nonce)
{
    TtLinkOptions o = { .group = "g", .key = k, .key_len = k ? sizeof(key) : 0,
                        .is_hub = true };

    memset(o.nonce, nonce, sizeof(o.nonce));
    return tt_link_new(&o);
}

/* A hub gets each checkpoint, in its turn. It lets members in only. */
static void test_hub(void)
{
    uint8_t data[60] = { 0 };

    for (unsigned keyed = 0; keyed < 2; keyed++) {
        TtLink *a = end_of("g", keyed ? key : NULL, 1), *h = hub_of(keyed ? key : NULL, 2);
        TtFrame f = frame_of(data, sizeof(data), 1), got;

        greet(a, h, 4096);
        tt_link_send_epoch(a, 1);
        tt_link_send_epoch(a, 2);
        tt_link_send(a, &f);
        g_assert_cmpint(pass(a, h, 4096, SIZE_MAX, &got, NULL), ==, TT_OK);
        g_assert_true(got.is_epoch && got.epoch == 1 && tt_link_epoch(h) == 1);
        g_assert_cmpint(tt_link_next(h, &got, NULL), ==, TT_OK);
        g_assert_true(got.is_epoch && got.epoch == 2);
        g_assert_cmpint(tt_link_next(h, &got, NULL), ==, TT_OK);
        g_assert_true(!got.is_epoch && got.seq == 1);
        tt_link_send(h, &f);
        g_assert_cmpint(pass(h, a, 4096, SIZE_MAX, &got, NULL), ==, TT_OK);
        g_assert_cmpuint(got.seq, ==, 1);
        tt_link_free(a);
        tt_link_free(h);
    }
    check_refused(hub_of(NULL, 1), hub_of(NULL, 2), "the peer is a hub, too");
}

/* READY comes first, and once. */
static void test_kinds(void)
{
    static const uint8_t kinds[] = { TT_MESSAGE_READY, TT_MESSAGE_EPOCH };

    for (unsigned first = 0; first < 2; first++) {
        TtLink *a = end_of("g", NULL, 1), *b = end_of("g", NULL, 2);
        TtMessage m = { .kind = kinds[first], .number = !first,
                        .frame = { .pos = TT_FRAME_NO_POS, .epoch = first } };
        uint8_t head[TT_MESSAGE_HEAD_BYTES];
        TtFrame got;
        TtDiag diag;

        if (!first) {
            greet(a, b, 4096);
        } else {
            g_assert_cmpint(pass(a, b, 4096, SIZE_MAX, &got, NULL), ==, TT_END);
        }
        tt_message_put(head, &m);
        tt_link_put(b, head, sizeof(head));
        g_assert_cmpint(tt_link_next(b, &got, &diag), ==, TT_ERR_FORMAT);
        g_assert_nonnull(strstr(diag.text, "is out of order"));
        tt_link_free(a);
        tt_link_free(b);
    }
}

/* Of more runs than are remembered, that is forgotten of which nothing came for longest. */
static void test_heard_runs(void)
{
    g_autofree TtHeard *h = g_new0(TtHeard, 1);
    TtFrame f = { .seq = 1 };

    for (unsigned i = 0; i < TT_HEARD_RUNS; i++) {
        f.run[0] = i;
        g_assert_true(tt_heard_is_new(h, &f));
    }
    f.run[0] = 0;
    g_assert_false(tt_heard_is_new(h, &f));         /* and run 0 is the last one now */
    f.run[0] = TT_HEARD_RUNS;
    g_assert_true(tt_heard_is_new(h, &f));          /* in the place of run 1 */
    for (unsigned i = 2; i <= TT_HEARD_RUNS; i++) {
        f.run[0] = i;
        g_assert_false(tt_heard_is_new(h, &f));
    }
    f.run[0] = 0;
    g_assert_false(tt_heard_is_new(h, &f));
    f.run[0] = 1;
    g_assert_true(tt_heard_is_new(h, &f));
}

/* With a right hash and wrong text: a member without a key may send it. */
static void test_bad_incident(void)
{
    uint8_t text[] = "\x05" "mark1 and words that say what";
    TtMessage m = { .kind = TT_MESSAGE_INCIDENT, .number = 1, .frame = {
        .is_recorded = true, .pos = 7, .data = text, .len = sizeof(text) - 1,
        .hash = tt_frame_hash(text, sizeof(text) - 1) } };
    TtLink *a = end_of("g", NULL, 1), *b = end_of("g", NULL, 2);
    uint8_t head[TT_MESSAGE_HEAD_BYTES];
    TtFrame got;
    TtDiag diag;

    greet(a, b, 4096);
    for (unsigned bad = 0; bad < 2; bad++) {
        text[0] = bad ? sizeof(text) : 5;           /* a mark that is longer than all */
        m.number = m.frame.seq = bad + 1;
        m.frame.hash = tt_frame_hash(text, m.frame.len);
        tt_message_put(head, &m);
        tt_link_put(b, head, sizeof(head));
        g_assert_cmpint(tt_link_next(b, &got, &diag), ==, TT_END);
        tt_link_put(b, text, m.frame.len);
        if (!bad) {
            g_assert_cmpint(tt_link_next(b, &got, &diag), ==, TT_OK);
        }
    }
    g_assert_cmpint(tt_link_next(b, &got, &diag), <, 0);
    g_assert_nonnull(strstr(diag.text, "incident"));
    tt_link_free(a);
    tt_link_free(b);
}

/* Incidents come in order with the frames; what is damaged is no incident. */
static void test_incidents(void)
{
    uint8_t data[60] = { 0 }, note[TT_INCIDENT_NOTE_MAX];
    TtIncident i = { .run = "0123456789abcde", .pos = 815, .number = 4, .mark = "panic-1",
                     .what = "words\33[2J" }, got_i;
    TtFrame f = frame_of(data, sizeof(data), 1), got;
    uint32_t len = tt_incident_note_put(note, &i);
    TtDiag diag;

    for (unsigned keyed = 0; keyed < 2; keyed++) {
        TtLink *a = end_of("g", keyed ? key : NULL, 1);
        TtLink *b = end_of("g", keyed ? key : NULL, 2);

        greet(a, b, 4096);
        tt_link_send(a, &f);
        tt_link_send_incident(a, &i);
        tt_link_send(a, &f);
        g_assert_cmpint(pass(a, b, 4096, SIZE_MAX, &got, &diag), ==, TT_OK);
        g_assert_false(got.is_incident);
        g_assert_cmpint(tt_link_next(b, &got, &diag), ==, TT_OK);
        g_assert_true(got.is_incident);
        g_assert_cmpint(tt_incident_get(&got_i, &got, &diag), ==, TT_OK);
        g_assert_cmpmem(got_i.run, TT_RUN_BYTES, i.run, TT_RUN_BYTES);
        g_assert_cmpuint(got_i.pos, ==, 815);
        g_assert_cmpuint(got_i.number, ==, 4);
        g_assert_cmpstr(got_i.mark, ==, "panic-1");
        g_assert_cmpstr(got_i.what, ==, "words?[2J");
        g_assert_cmpint(tt_link_next(b, &got, &diag), ==, TT_OK);
        g_assert_false(got.is_incident);
        tt_link_send_incident(a, &i);
        g_assert_cmpint(pass(a, b, 4096, TT_MESSAGE_HEAD_BYTES + (keyed ? TT_MAC_BYTES : 0) +
                             3, &got, &diag), ==, keyed ? TT_ERR_INVALID : TT_ERR_MISMATCH);
        tt_link_free(a);
        tt_link_free(b);
    }
    g_assert_cmpint(tt_incident_note_get(&got_i, 4, note, len, &diag), ==, TT_OK);
    g_assert_cmpstr(got_i.mark, ==, "panic-1");
    g_assert_cmpuint(got_i.pos, ==, 815);
    for (uint32_t n = 0; n < TT_RUN_BYTES + 8 + 1 + strlen(i.mark); n++) {
        g_assert_cmpint(tt_incident_note_get(&got_i, 4, note, n, &diag), ==,
                        TT_ERR_FORMAT);
    }
    note[TT_RUN_BYTES + 8 + 2] = '/';           /* no name for a mark */
    g_assert_cmpint(tt_incident_note_get(&got_i, 4, note, len, &diag), ==, TT_ERR_FORMAT);
}

/* As many as may be in any ten seconds, however fast they come, and no more. */
static void check_burst(unsigned max)
{
    TtBurst b = { 0 };
    int64_t first = 5000, half = 5000 + TT_BURST_MS / 2;

    for (unsigned i = 0; i < 30; i++) {
        g_assert_cmpint(tt_burst_is_over(&b, max, i ? half : first), ==, i >= max);
    }
    g_assert_true(tt_burst_is_over(&b, max, first + TT_BURST_MS));
    /* Only the first one is that long ago. */
    g_assert_false(tt_burst_is_over(&b, max, first + TT_BURST_MS + 1));
    g_assert_true(tt_burst_is_over(&b, max, first + TT_BURST_MS + 1));
    for (unsigned i = 0; i < 30; i++) {
        g_assert_cmpint(tt_burst_is_over(&b, max, half + TT_BURST_MS + 1), ==, i >= max - 1);
    }
}

static void test_burst(void)
{
    check_burst(TT_BURST_MAX);
    check_burst(TT_BURST_MAX / 2);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/link/passes-frames", test_frames);
    g_test_add_func("/tt/link/refuses-strangers", test_strangers);
    g_test_add_func("/tt/link/says-why-it-refuses", test_refused);
    g_test_add_func("/tt/link/forgets-what-was-overheard", test_overheard);
    g_test_add_func("/tt/link/notices-changed-bytes", test_flips);
    g_test_add_func("/tt/link/tells-hub-from-member", test_roles);
    g_test_add_func("/tt/link/drops-one-frame", test_dropped);
    g_test_add_func("/tt/link/knows-what-came-before", test_heard);
    g_test_add_func("/tt/link/knows-what-came-before-gaps", test_heard_gaps);
    g_test_add_func("/tt/link/refuses-the-last-number", test_last_number);
    g_test_add_func("/tt/link/meets-before-frames", test_meets);
    g_test_add_func("/tt/link/notes-frames-in-logs", test_notes);
    g_test_add_func("/tt/link/passed-frames-in-logs", test_passed);
    g_test_add_func("/tt/link/keeps-what-is-on-its-way", test_kept);
    g_test_add_func("/tt/link/keeps-long-frames", test_kept_long);
    g_test_add_func("/tt/link/tells-of-checkpoints", test_epochs);
    g_test_add_func("/tt/link/tells-of-incidents", test_incidents);
    g_test_add_func("/tt/link/lets-members-into-a-hub", test_hub);
    g_test_add_func("/tt/link/wants-ready-first-and-once", test_kinds);
    g_test_add_func("/tt/link/forgets-the-run-of-long-ago", test_heard_runs);
    g_test_add_func("/tt/link/refuses-bad-incidents", test_bad_incident);
    g_test_add_func("/tt/link/takes-no-flood-of-incidents", test_burst);
    return g_test_run();
}
