/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The journal of an ext file system: what was committed counts, what was revoked or cut
 * off does not, in each of the layouts of its tags. */
#include "block-tt/tt-extjournal.h"

#include <glib.h>
#include <string.h>

#define BLOCK   1024u
#define BLOCKS  32u

enum { REVOKE = 1, BIT64 = 2, CSUM_V2 = 8, CSUM_V3 = 16 };

typedef struct Maker {
    uint8_t b[BLOCKS * BLOCK];
    uint32_t features, at, sequence;
} Maker;

static void put32(uint8_t *p, uint32_t v)
{
    v = GUINT32_TO_BE(v);
    memcpy(p, &v, 4);
}

static uint8_t *head(Maker *m, uint32_t n, uint32_t type, uint32_t sequence)
{
    uint8_t *p = m->b + n * BLOCK;

    memset(p, 0, BLOCK);
    put32(p, 0xc03b3998);
    put32(p + 4, type);
    put32(p + 8, sequence);
    return p;
}

static uint32_t next(Maker *m)
{
    uint32_t n = m->at;

    m->at = n + 1 < BLOCKS ? n + 1 : 1;
    return n;
}

static void begin(Maker *m, uint32_t features, uint32_t start)
{
    uint8_t *p;

    *m = (Maker) { .features = features, .at = start, .sequence = 7 };
    p = head(m, 0, 4, 0);
    put32(p + 12, BLOCK);
    put32(p + 16, BLOCKS);
    put32(p + 20, 1);
    put32(p + 24, 7);
    put32(p + 28, start);
    put32(p + 40, features);
}

/* A descriptor of @n blocks from @first on, and the blocks; the last one escaped. */
static void descriptor(Maker *m, uint64_t first, uint32_t n)
{
    uint8_t *p = head(m, next(m), 1, m->sequence) + 12;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t flags = (i ? 2 : 0) | (i + 1 == n ? 8 | 1 : 0);

        put32(p, first + i);
        if (m->features & CSUM_V3) {
            put32(p + 4, flags);
            put32(p + 8, first >> 32);
            p += 16;
        } else {
            p[6] = flags >> 8;
            p[7] = flags;
            p += 8;
            if (m->features & BIT64) {
                put32(p, first >> 32);
                p += 4;
            }
            p += m->features & CSUM_V2 ? 2 : 0;
        }
        p += i ? 0 : 16;
        next(m);
    }
}

static void commit(Maker *m)
{
    head(m, next(m), 2, m->sequence++);
}

static void revoke(Maker *m, uint64_t block)
{
    uint8_t *p = head(m, next(m), 5, m->sequence);

    if (m->features & BIT64) {
        put32(p + 12, 24);
        put32(p + 16, block >> 32);
        put32(p + 20, block);
    } else {
        put32(p + 12, 20);
        put32(p + 16, block);
    }
}

static TtExtJournal *read_it(const Maker *m, TtStatus want)
{
    TtIo *io = tt_io_mem_new(m->b, sizeof(m->b));
    TtExtJournal *j;
    TtDiag diag;

    g_assert_cmpint(tt_extjournal_open(io, BLOCK, &j, &diag), ==, want);
    g_assert_true(want == TT_OK || *diag.text);
    tt_io_close(io);
    return j;
}

static uint32_t place(const TtExtJournal *j, uint64_t block)
{
    uint32_t at = 0;
    bool is_escaped;

    return tt_extjournal_find(j, block, &at, &is_escaped) ? at : 0;
}

static const uint32_t layouts[] = {
    0, BIT64, CSUM_V2, CSUM_V2 | BIT64, CSUM_V3, CSUM_V3 | BIT64,
};

static void test_newest(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(layouts); i++) {
        uint64_t far = layouts[i] & BIT64 ? 5ull << 32 : 0;
        TtExtJournal *j;
        bool is_escaped;
        uint32_t at;
        Maker m;

        begin(&m, REVOKE | layouts[i], 1);
        descriptor(&m, far + 100, 3);           /* in 2, 3, 4 */
        commit(&m);
        descriptor(&m, far + 101, 1);           /* in 7 */
        revoke(&m, far + 102);
        commit(&m);
        descriptor(&m, far + 100, 1);           /* never committed */
        j = read_it(&m, TT_OK);
        g_assert_cmpuint(tt_extjournal_transactions(j), ==, 2);
        g_assert_cmpuint(tt_extjournal_blocks(j), ==, 2);
        g_assert_cmpuint(place(j, far + 100), ==, 2);
        g_assert_cmpuint(place(j, far + 101), ==, 7);
        g_assert_cmpuint(place(j, far + 102), ==, 0);
        g_assert_true(tt_extjournal_find(j, far + 100, &at, &is_escaped) && !is_escaped);
        g_assert_true(tt_extjournal_find(j, far + 101, &at, &is_escaped) && is_escaped);
        tt_extjournal_free(j);
    }
}

static void test_round(void)
{
    TtExtJournal *j;
    Maker m;

    begin(&m, 0, BLOCKS - 2);
    descriptor(&m, 50, 3);                      /* in 31, 1, 2 */
    commit(&m);
    j = read_it(&m, TT_OK);
    g_assert_cmpuint(place(j, 50), ==, 31);
    g_assert_cmpuint(place(j, 51), ==, 1);
    g_assert_cmpuint(place(j, 52), ==, 2);
    tt_extjournal_free(j);
}

static void test_old_rest(void)
{
    TtExtJournal *j;
    Maker m;

    begin(&m, 0, 1);
    descriptor(&m, 50, 1);
    commit(&m);
    m.sequence = 3;                             /* of an earlier time round */
    descriptor(&m, 60, 1);
    commit(&m);
    j = read_it(&m, TT_OK);
    g_assert_cmpuint(tt_extjournal_blocks(j), ==, 1);
    tt_extjournal_free(j);
    put32(m.b + 28, 0);                         /* nothing is to be recovered */
    j = read_it(&m, TT_OK);
    g_assert_cmpuint(tt_extjournal_blocks(j), ==, 0);
    tt_extjournal_free(j);
}

static void test_refused(void)
{
    Maker m;

    begin(&m, 64, 1);
    g_assert_null(read_it(&m, TT_ERR_VERSION));
    begin(&m, 0, BLOCKS);
    g_assert_null(read_it(&m, TT_ERR_FORMAT));
    begin(&m, 0, 1);
    put32(m.b + 12, 4096);
    g_assert_null(read_it(&m, TT_ERR_FORMAT));
    begin(&m, 0, 1);
    m.b[0] = 0;
    g_assert_null(read_it(&m, TT_ERR_FORMAT));
}

/* They are there if their head names the transaction that is not complete yet. */
static void test_fast(void)
{
    static const struct { uint32_t features, start, tid; bool is_there; } ways[] = {
        { 32, 1, 8, true }, { 32, 1, 7, false }, { 0, 1, 8, false }, { 32, 0, 7, false },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(ways); i++) {
        TtExtJournal *j;
        Maker m;
        uint8_t *p = m.b + (BLOCKS - 4) * BLOCK;

        begin(&m, ways[i].features, ways[i].start);
        put32(m.b + 84, 4);
        if (ways[i].start) {
            descriptor(&m, 100, 1);
            commit(&m);
        }
        memcpy(p, "\x09\0\x08\0\0\0\0\0\0\0\0\0", 12);
        p[8] = ways[i].tid;
        j = read_it(&m, TT_OK);
        g_assert_true(tt_extjournal_has_fast(j) == ways[i].is_there);
        tt_extjournal_free(j);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/extjournal/the-newest-committed-copy-counts", test_newest);
    g_test_add_func("/tt/extjournal/goes-round-at-its-end", test_round);
    g_test_add_func("/tt/extjournal/what-is-left-of-earlier-times-is-nothing",
                    test_old_rest);
    g_test_add_func("/tt/extjournal/refuses-what-it-does-not-know", test_refused);
    g_test_add_func("/tt/extjournal/fast-commits-are-noticed", test_fast);
    return g_test_run();
}
