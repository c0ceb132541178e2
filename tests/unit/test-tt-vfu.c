/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vfio-user: messages as bytes, ranges of memory, and the plan of a device. */
#include "hw-tt/vfio-user/tt-vfu.h"

#include <glib.h>

static void test_head(void)
{
    TtVfuHead h = { .id = 77, .command = TT_VFU_DMA_READ, .bytes = 32 }, got;
    uint8_t bytes[TT_VFU_HEAD_BYTES];
    TtDiag diag;

    tt_vfu_put_head(bytes, &h);
    g_assert_cmpint(tt_vfu_get_head(&got, bytes, &diag), ==, TT_OK);
    g_assert_cmpuint(got.id, ==, 77);
    g_assert_cmpuint(got.command, ==, TT_VFU_DMA_READ);
    g_assert_false(got.is_reply);

    h = (TtVfuHead) { .is_reply = true, .error = 22, .bytes = 16, .command = 2 };
    tt_vfu_put_head(bytes, &h);
    g_assert_cmpint(tt_vfu_get_head(&got, bytes, &diag), ==, TT_OK);
    g_assert_true(got.is_reply);
    g_assert_cmpuint(got.error, ==, 22);
    tt_put_le32(bytes + 12, 0x80000000);    /* no errno, an error all the same */
    g_assert_cmpint(tt_vfu_get_head(&got, bytes, &diag), ==, TT_OK);
    g_assert_cmpuint(got.error, ==, 5);

    tt_put_le32(bytes + 4, 15);
    g_assert_cmpint(tt_vfu_get_head(&got, bytes, &diag), ==, TT_ERR_FORMAT);
    tt_put_le32(bytes + 4, TT_VFU_BYTES_MAX + 1);
    g_assert_cmpint(tt_vfu_get_head(&got, bytes, &diag), ==, TT_ERR_LIMIT);
    tt_put_le32(bytes + 4, 16);
    tt_put_le32(bytes + 8, 2);
    g_assert_cmpint(tt_vfu_get_head(&got, bytes, &diag), ==, TT_ERR_FORMAT);
}

static void test_reply(void)
{
    TtVfuHead h = { .id = 3, .command = 9, .is_reply = true, .bytes = 16 + 20 };
    TtDiag diag;

    g_assert_cmpint(tt_vfu_check_reply(&h, 3, 9, 20, &diag), ==, TT_OK);
    g_assert_cmpint(tt_vfu_check_reply(&h, 3, 9, 21, &diag), ==, TT_ERR_FORMAT);
    g_assert_cmpint(tt_vfu_check_reply(&h, 4, 9, 0, &diag), ==, TT_ERR_FORMAT);
    g_assert_cmpint(tt_vfu_check_reply(&h, 3, 8, 0, &diag), ==, TT_ERR_FORMAT);
    h.error = 22;
    g_assert_cmpint(tt_vfu_check_reply(&h, 3, 9, 21, &diag), ==, TT_OK);
    h.is_reply = false;
    g_assert_cmpint(tt_vfu_check_reply(&h, 3, 9, 0, &diag), ==, TT_ERR_FORMAT);
}

static void test_version(void)
{
    uint8_t bytes[TT_VFU_TEXT_MAX];
    size_t len = tt_vfu_put_version(bytes);
    int64_t fds = -1, data = -1;
    const char *text;

    g_assert_cmpint(tt_vfu_get_version(bytes, len, &text, NULL), ==, TT_OK);
    g_assert_nonnull(strstr(text, "max_msg_fds"));
    g_assert_cmpint(tt_vfu_get_version(bytes, len - 1, &text, NULL), ==, TT_ERR_FORMAT);
    g_assert_cmpint(tt_vfu_get_version(bytes, 3, &text, NULL), ==, TT_ERR_FORMAT);
    g_assert_cmpint(tt_vfu_get_version(bytes, 4, &text, NULL), ==, TT_OK);
    g_assert_cmpstr(text, ==, "");
    bytes[0] = 1;
    g_assert_cmpint(tt_vfu_get_version(bytes, 4, &text, NULL), ==, TT_ERR_VERSION);

    g_assert_cmpint(tt_vfu_check_limits(&fds, &data, NULL), ==, TT_OK);
    g_assert_cmpint(fds, ==, 1);
    g_assert_cmpint(data, ==, TT_VFU_DATA_MAX);
    fds = data = INT64_MAX;
    g_assert_cmpint(tt_vfu_check_limits(&fds, &data, NULL), ==, TT_OK);
    g_assert_cmpint(fds, ==, TT_VFU_FDS_MAX);
    fds = 0;
    g_assert_cmpint(tt_vfu_check_limits(&fds, &data, NULL), ==, TT_ERR_FORMAT);
    fds = 1;
    data = -2;
    g_assert_cmpint(tt_vfu_check_limits(&fds, &data, NULL), ==, TT_ERR_FORMAT);
}

static void test_access(void)
{
    uint8_t bytes[32] = { 0 };
    const uint8_t *data;

    g_assert_cmpuint(tt_vfu_put_access(bytes, 2, 0x100, 4), ==, 16);
    bytes[16] = 9;
    g_assert_cmpint(tt_vfu_get_access(&data, 2, 0x100, 4, bytes, 20, NULL), ==, TT_OK);
    g_assert_cmpuint(data[0], ==, 9);
    g_assert_cmpint(tt_vfu_get_access(NULL, 2, 0x100, 4, bytes, 16, NULL), ==, TT_OK);
    g_assert_cmpint(tt_vfu_get_access(&data, 2, 0x100, 4, bytes, 19, NULL), ==,
                    TT_ERR_FORMAT);
    g_assert_cmpint(tt_vfu_get_access(&data, 2, 0x104, 4, bytes, 20, NULL), ==,
                    TT_ERR_FORMAT);
    g_assert_cmpint(tt_vfu_get_access(&data, 1, 0x100, 4, bytes, 20, NULL), ==,
                    TT_ERR_FORMAT);
}

static void test_dma(void)
{
    TtVfuHead h = { .command = TT_VFU_DMA_WRITE };
    uint8_t bytes[24] = { 0 };
    TtVfuDma d;

    tt_put_le64(bytes, 0x1000);
    tt_put_le64(bytes + 8, 8);
    g_assert_cmpint(tt_vfu_get_dma(&d, &h, bytes, 24, NULL), ==, TT_OK);
    g_assert_true(d.is_write && d.addr == 0x1000 && d.count == 8);
    g_assert_true(d.data == bytes + 16);
    g_assert_cmpint(tt_vfu_get_dma(&d, &h, bytes, 23, NULL), ==, TT_ERR_FORMAT);
    g_assert_cmpint(tt_vfu_get_dma(&d, &h, bytes, 15, NULL), ==, TT_ERR_FORMAT);
    h.command = TT_VFU_DMA_READ;
    g_assert_cmpint(tt_vfu_get_dma(&d, &h, bytes, 24, NULL), ==, TT_ERR_FORMAT);
    g_assert_cmpint(tt_vfu_get_dma(&d, &h, bytes, 16, NULL), ==, TT_OK);
    tt_put_le64(bytes, UINT64_MAX - 7);
    g_assert_cmpint(tt_vfu_get_dma(&d, &h, bytes, 16, NULL), ==, TT_OK);
    tt_put_le64(bytes, UINT64_MAX - 6);
    g_assert_cmpint(tt_vfu_get_dma(&d, &h, bytes, 16, NULL), ==, TT_ERR_FORMAT);
    tt_put_le64(bytes, 0);
    tt_put_le64(bytes + 8, 0);
    g_assert_cmpint(tt_vfu_get_dma(&d, &h, bytes, 16, NULL), ==, TT_ERR_FORMAT);
    tt_put_le64(bytes + 8, TT_VFU_DATA_MAX + 1);
    g_assert_cmpint(tt_vfu_get_dma(&d, &h, bytes, 16, NULL), ==, TT_ERR_FORMAT);
}

static void test_ranges(void)
{
    TtVfuRanges r = { 0 };
    static uint8_t bytes[4096];

    g_assert_cmpint(tt_vfu_ranges_add(&r, 0x2000, 0x1000, true, NULL), ==, TT_OK);
    g_assert_cmpint(tt_vfu_ranges_add(&r, 0x0000, 0x1000, true, NULL), ==, TT_OK);
    g_assert_cmpint(tt_vfu_ranges_add(&r, 0x3000, 0x1000, false, NULL), ==, TT_OK);
    g_assert_cmpint(tt_vfu_ranges_add(&r, 0x3fff, 1, true, NULL), ==, TT_ERR_INVALID);
    g_assert_cmpint(tt_vfu_ranges_add(&r, 0x1000, 0x1001, true, NULL), ==,
                    TT_ERR_INVALID);
    g_assert_cmpint(tt_vfu_ranges_add(&r, 5, 0, true, NULL), ==, TT_ERR_INVALID);
    g_assert_cmpint(tt_vfu_ranges_add(&r, UINT64_MAX, 2, true, NULL), ==,
                    TT_ERR_INVALID);
    g_assert_cmpint(tt_vfu_ranges_add(&r, UINT64_MAX - 4095, 4096, true, NULL), ==,
                    TT_OK);
    g_assert_true(tt_vfu_ranges_hold(&r, 0, 0x1000, true));
    g_assert_false(tt_vfu_ranges_hold(&r, 0, 0x1001, false));
    g_assert_true(tt_vfu_ranges_hold(&r, 0x2fff, 2, false));
    g_assert_false(tt_vfu_ranges_hold(&r, 0x2fff, 2, true));
    g_assert_true(tt_vfu_ranges_hold(&r, UINT64_MAX, 1, true));
    g_assert_false(tt_vfu_ranges_hold(&r, UINT64_MAX, 2, true));
    g_assert_false(tt_vfu_ranges_hold(&r, 0x5000, 1, false));
    g_assert_false(tt_vfu_ranges_hold(&r, 0, 0, false));
    tt_vfu_ranges_set_host(&r, 0x2000, bytes);
    tt_vfu_ranges_set_host(&r, 0x3000, bytes);
    g_assert_true(tt_vfu_ranges_host(&r, 0x2004, 0xffc, true) == bytes + 4);
    g_assert_null(tt_vfu_ranges_host(&r, 0x2004, 0xffd, false));
    g_assert_null(tt_vfu_ranges_host(&r, 0x1fff, 2, false));
    g_assert_null(tt_vfu_ranges_host(&r, 0x2000, 0, false));
    g_assert_null(tt_vfu_ranges_host(&r, 0x2000, UINT64_MAX, false));
    g_assert_null(tt_vfu_ranges_host(&r, 0x0, 1, false));
    g_assert_null(tt_vfu_ranges_host(&r, 0x4000, 1, false));
    g_assert_null(tt_vfu_ranges_host(&r, 0x3000, 1, true));
    g_assert_true(tt_vfu_ranges_host(&r, 0x3fff, 1, false) == bytes + 0xfff);
    g_assert_false(tt_vfu_ranges_remove(&r, 0x2000, 0xfff));
    g_assert_true(tt_vfu_ranges_remove(&r, 0x2000, 0x1000));
    g_assert_false(tt_vfu_ranges_hold(&r, 0x2000, 1, false));
    tt_vfu_ranges_clear(&r);
    for (unsigned i = 0; i < TT_VFU_RANGES_MAX; i++) {
        g_assert_cmpint(tt_vfu_ranges_add(&r, i * 2, 1, true, NULL), ==, TT_OK);
    }
    g_assert_cmpint(tt_vfu_ranges_add(&r, 99999, 1, true, NULL), ==, TT_ERR_LIMIT);
    tt_vfu_ranges_clear(&r);
}

static void make_config(uint8_t *c)
{
    memset(c, 0, TT_VFU_CONFIG_BYTES);
    tt_put_le32(c, 0x11e81234);
    tt_put_le16(c + 6, 0x10);
    tt_put_le32(c + 0x10, 4);
    c[0x34] = 0x40;
    c[0x3d] = 1;
    c[0x40] = 17;                       /* MSI-X: 5 vectors, both in BAR 0 */
    c[0x41] = 0x50;
    tt_put_le16(c + 0x42, 4);
    tt_put_le32(c + 0x44, 0x2000);
    tt_put_le32(c + 0x48, 0x3000);
    c[0x50] = 5;                        /* MSI: 8 of 64 bits, with masks */
    c[0x51] = 0x80;
    tt_put_le16(c + 0x52, 0x186);
    c[0x80] = 16;                       /* PCI Express: not passed on */
    c[0x81] = 0xa0;
    c[0xa0] = 1;                        /* power management */
}

static void test_plan(void)
{
    TtVfuRegion regions[TT_VFU_REGIONS] = { [0] = { true, true, 0x3100 } };
    uint32_t irqs[TT_VFU_IRQS] = { 1, 4, 5 };
    uint8_t c[TT_VFU_CONFIG_BYTES];
    TtVfuPlan p;

    make_config(c);
    g_assert_cmpint(tt_vfu_plan(&p, c, regions, irqs, NULL), ==, TT_OK);
    g_assert_cmpuint(p.bars[0].size, ==, 0x4000);
    g_assert_true(p.bars[0].is_64);
    g_assert_cmpuint(p.pin, ==, 1);
    g_assert_cmpuint(p.msix.at, ==, 0x40);
    g_assert_cmpuint(p.msix.n, ==, 5);
    g_assert_cmpuint(p.msi.at, ==, 0x50);
    g_assert_cmpuint(p.msi.n, ==, 4);   /* what the server has */
    g_assert_cmpuint(p.n_caps, ==, 1);
    g_assert_cmpuint(p.caps[0].at, ==, 0xa0);

    irqs[TT_VFU_MSIX] = 4;
    g_assert_cmpint(tt_vfu_plan(&p, c, regions, irqs, NULL), ==, TT_ERR_FORMAT);
    irqs[TT_VFU_MSIX] = 5;
    tt_put_le32(c + 0x44, 0x3ff0);
    g_assert_cmpint(tt_vfu_plan(&p, c, regions, irqs, NULL), ==, TT_ERR_FORMAT);
    tt_put_le32(c + 0x44, 0x3000);      /* over the other table */
    g_assert_cmpint(tt_vfu_plan(&p, c, regions, irqs, NULL), ==, TT_ERR_FORMAT);
    tt_put_le32(c + 0x44, 0x2001);      /* in a BAR that is not there */
    g_assert_cmpint(tt_vfu_plan(&p, c, regions, irqs, NULL), ==, TT_ERR_FORMAT);
    make_config(c);
    c[0x81] = 0x40;                     /* a list in a circle */
    g_assert_cmpint(tt_vfu_plan(&p, c, regions, irqs, NULL), ==, TT_ERR_FORMAT);
    c[0x81] = 0xfc;
    c[0xfc] = 17;                       /* past the end */
    g_assert_cmpint(tt_vfu_plan(&p, c, regions, irqs, NULL), ==, TT_ERR_FORMAT);
    make_config(c);
    c[0x0e] = 1;
    g_assert_cmpint(tt_vfu_plan(&p, c, regions, irqs, NULL), ==, TT_ERR_FORMAT);
    c[0x0e] = 0;
    regions[1].size = 1;                /* the upper half of BAR 0 */
    g_assert_cmpint(tt_vfu_plan(&p, c, regions, irqs, NULL), ==, TT_ERR_FORMAT);
    regions[1].size = 0;
    regions[0].size = UINT64_MAX;
    g_assert_cmpint(tt_vfu_plan(&p, c, regions, irqs, NULL), ==, TT_ERR_LIMIT);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/vfu/head", test_head);
    g_test_add_func("/vfu/reply", test_reply);
    g_test_add_func("/vfu/version", test_version);
    g_test_add_func("/vfu/access", test_access);
    g_test_add_func("/vfu/dma", test_dma);
    g_test_add_func("/vfu/ranges", test_ranges);
    g_test_add_func("/vfu/plan", test_plan);
    return g_test_run();
}
