/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Landmarks as bytes: what was put is read, and what is no landmark is refused. */
#include "log/tt-landmark.h"

#include <glib.h>
#include <string.h>

#define PAGES 3

static size_t make(uint8_t *out, uint32_t n_pages)
{
    TtLandmark l = {
        .pc = 0xffffffff81000123, .flags = 0x246, .fpu_hash = 7, .n_pages = n_pages,
        .ram_digest = 99,
    };

    for (unsigned i = 0; i < TT_LANDMARK_REGS; i++) {
        l.regs[i] = i * 0x0101010101010101;
    }
    for (unsigned i = 0; i < TT_LANDMARK_SYSTEM; i++) {
        l.system[i] = ~(uint64_t)i;
    }
    tt_landmark_put_head(&l, out);
    for (uint32_t i = 0; n_pages != TT_LANDMARK_WHOLE_RAM && i < n_pages; i++) {
        TtLandmarkPage p = { .page = 10 + i, .hash = 100 + i, .table_hash = 200 + i };

        tt_landmark_put_page(out + TT_LANDMARK_HEAD, i, &p);
    }
    return tt_landmark_bytes(n_pages);
}

static void test_round_trip(void)
{
    uint8_t bytes[TT_LANDMARK_HEAD + PAGES * TT_LANDMARK_PAGE];
    size_t len = make(bytes, PAGES);
    TtLandmark l;

    g_assert_cmpuint(len, ==, sizeof(bytes));
    g_assert_true(tt_landmark_decode(&l, bytes, len));
    g_assert_cmphex(l.pc, ==, 0xffffffff81000123);
    g_assert_cmphex(l.flags, ==, 0x246);
    g_assert_cmphex(l.regs[15], ==, 0x0f0f0f0f0f0f0f0f);
    g_assert_cmphex(l.system[19], ==, ~(uint64_t)19);
    g_assert_cmphex(l.fpu_hash, ==, 7);
    g_assert_cmpuint(l.n_pages, ==, PAGES);
    g_assert_cmpuint(tt_landmark_page(&l, 2).page, ==, 12);
    g_assert_cmpuint(tt_landmark_page(&l, 2).hash, ==, 102);
    g_assert_cmpuint(tt_landmark_page(&l, 2).table_hash, ==, 202);
}

static void test_whole_ram(void)
{
    uint8_t bytes[TT_LANDMARK_HEAD + 8];
    size_t len = make(bytes, TT_LANDMARK_WHOLE_RAM);
    TtLandmark l;

    g_assert_cmpuint(len, ==, sizeof(bytes));
    g_assert_true(tt_landmark_decode(&l, bytes, len));
    g_assert_cmpuint(l.ram_digest, ==, 99);
}

/* Bytes that are cut, too long, or say another number of pages than there are. */
static void test_refuses(void)
{
    uint8_t bytes[TT_LANDMARK_HEAD + PAGES * TT_LANDMARK_PAGE + 1];
    size_t len = make(bytes, PAGES);
    TtLandmark l;

    for (size_t n = 0; n <= len + 1; n++) {
        g_assert_cmpint(tt_landmark_decode(&l, bytes, n), ==, n == len);
    }
    memset(bytes + TT_LANDMARK_HEAD - 4, 0xfe, 4);
    g_assert_false(tt_landmark_decode(&l, bytes, len));
}

/* Accessed and dirty bits make no difference to the second hash, others do. */
static void test_table_hash(void)
{
    uint8_t page[4096] = { 0x07 };
    TtLandmarkPage a, b, c;

    tt_landmark_hash(&a, page);
    page[0] |= 0x60;
    page[4] |= 0x60;
    tt_landmark_hash(&b, page);
    page[0] |= 0x80;
    tt_landmark_hash(&c, page);
    g_assert_cmphex(a.hash, !=, b.hash);
    g_assert_cmphex(a.table_hash, ==, b.table_hash);
    g_assert_cmphex(b.table_hash, !=, c.table_hash);
    g_assert_true(tt_landmark_page_is(&c, page, false));
    g_assert_false(tt_landmark_page_is(&b, page, true));
    page[0] &= ~0x80;
    g_assert_true(tt_landmark_page_is(&a, page, true));
    g_assert_false(tt_landmark_page_is(&a, page, false));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/landmark/round-trip", test_round_trip);
    g_test_add_func("/tt/landmark/whole-ram", test_whole_ram);
    g_test_add_func("/tt/landmark/refuses-other-bytes", test_refuses);
    g_test_add_func("/tt/landmark/table-hash", test_table_hash);
    return g_test_run();
}
