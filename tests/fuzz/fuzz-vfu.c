/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target of what a vfio-user server says: any bytes as message, and as the
 * configuration space of a device. What is accepted keeps its promises.
 */
#include "hw-tt/vfio-user/tt-vfu.h"

#include <stdlib.h>
#include <glib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) do { if (!(x)) { abort(); } } while (0)

static void one_message(const TtVfuHead *h, const uint8_t *p, size_t len)
{
    const uint8_t *got;
    const char *text;
    TtVfuDevice device;
    TtVfuRegion region;
    uint32_t count;
    TtVfuDma d;
    TtDiag diag;

    if (!tt_vfu_get_dma(&d, h, p, len, &diag)) {
        CHECK(d.count && d.count <= TT_VFU_DATA_MAX);
        CHECK(d.addr + (d.count - 1) >= d.addr);
        CHECK(!d.is_write || d.data + d.count == p + len);
    }
    if (!tt_vfu_get_version(p, len, &text, &diag)) {
        CHECK(strlen(text) < TT_VFU_TEXT_MAX);
    }
    if (!tt_vfu_get_device_info(&device, p, len, &diag)) {
        CHECK(device.n_regions >= TT_VFU_REGIONS);
    }
    tt_vfu_get_region_info(&region, 2, p, len, &diag);
    tt_vfu_get_irq_info(&count, 2, p, len, &diag);
    if (!tt_vfu_get_access(&got, 0, 0, 4, p, len, &diag)) {
        CHECK(got + 4 == p + len);
    }
    tt_vfu_check_reply(h, 1, 9, 16, &diag);
    CHECK(tt_vfu_command_name(h->command));
}

static void one_plan(const uint8_t *data, size_t size)
{
    TtVfuRegion regions[TT_VFU_REGIONS] = { 0 };
    uint32_t irqs[TT_VFU_IRQS];
    uint8_t config[TT_VFU_CONFIG_BYTES] = { 0 };
    TtVfuPlan p;

    for (unsigned i = 0; i < TT_VFU_REGIONS && size >= 8; i++, data += 8, size -= 8) {
        regions[i].size = tt_get_le64(data) >> (i * 8 % 64);
    }
    for (unsigned i = 0; i < TT_VFU_IRQS; i++) {
        irqs[i] = size > i ? data[i] * 16 : 1;
    }
    memcpy(config, data, size < sizeof(config) ? size : sizeof(config));
    if (tt_vfu_plan(&p, config, regions, irqs, NULL)) {
        return;
    }
    for (unsigned i = 0; i < TT_VFU_BARS; i++) {
        CHECK(!(p.bars[i].size & (p.bars[i].size - 1)));
        CHECK(!p.bars[i].size || p.bars[i].size >= regions[i].size);
    }
    if (p.msix.at) {
        CHECK(p.msix.n <= irqs[TT_VFU_MSIX] && p.msix.n <= 2048);
        CHECK(p.msix.table_at + 16ull * p.msix.n <= p.bars[p.msix.table_bar].size);
        CHECK(p.msix.pba_at < p.bars[p.msix.pba_bar].size);
    }
    CHECK(!p.msi.at || (p.msi.n && p.msi.n <= 32 && !(p.msi.n & (p.msi.n - 1))));
    for (unsigned i = 0; i < p.n_caps; i++) {
        CHECK(p.caps[i].at >= 0x40 && p.caps[i].at + p.caps[i].len <= 256);
        CHECK(p.caps[i].len > 2);
    }
}

static void some_ranges(const uint8_t *data, size_t size)
{
    static uint8_t bytes[256 * 17];
    TtVfuRanges r = { 0 };
    const uint8_t *host;

    for (; size >= 4; data += 4, size -= 4) {
        uint64_t addr = data[1] * 16ull, len = data[2];

        if (data[0] & 1) {
            bool fits = !tt_vfu_ranges_add(&r, addr, len, data[3] & 1, NULL);

            CHECK(!fits || tt_vfu_ranges_hold(&r, addr, len, data[3] & 1));
            if (fits) {
                tt_vfu_ranges_set_host(&r, addr, bytes + addr);
            }
        } else if (tt_vfu_ranges_remove(&r, addr, len)) {
            CHECK(!tt_vfu_ranges_hold(&r, addr, 1, false));
        }
        host = tt_vfu_ranges_host(&r, addr, len, data[3] & 2);
        CHECK(!host || (host == bytes + addr &&
                        tt_vfu_ranges_hold(&r, addr, len, data[3] & 2)));
        for (unsigned i = 1; i < r.n; i++) {
            CHECK(r.items[i - 1].addr + r.items[i - 1].size <= r.items[i].addr);
        }
    }
    tt_vfu_ranges_clear(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree uint8_t *exact = NULL;
    TtVfuHead h;
    TtDiag diag;

    if (size < TT_VFU_HEAD_BYTES) {
        return 0;
    }
    exact = g_memdup2(data + TT_VFU_HEAD_BYTES, size - TT_VFU_HEAD_BYTES);
    if (!tt_vfu_get_head(&h, data, &diag)) {
        CHECK(h.bytes >= TT_VFU_HEAD_BYTES && h.bytes <= TT_VFU_BYTES_MAX);
        one_message(&h, exact, size - TT_VFU_HEAD_BYTES);
    }
    one_plan(data, size);
    some_ranges(data, size);
    return 0;
}
