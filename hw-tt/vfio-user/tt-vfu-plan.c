/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From a device's configuration space to the device that the guest sees: its BARs, its
 * interrupts, and those capabilities that can be passed on.
 */
#include "hw-tt/vfio-user/tt-vfu.h"

#include <assert.h>
#include <inttypes.h>

enum {
    HEADER_TYPE = 0x0e, STATUS = 0x06, HAS_LIST = 0x10, FIRST_BAR = 0x10, LIST = 0x34,
    PIN = 0x3d, CAPS_BEGIN = 0x40,
    BAR_IO = 1, BAR_64 = 4, BAR_PREFETCH = 8,
    CAP_PM = 1, CAP_MSI = 5, CAP_VENDOR = 9, CAP_MSIX = 17,
    PM_BYTES = 8, MSI_BYTES_MIN = 10, MSIX_BYTES = 12,
};
#define BAR_BYTES_MAX (UINT64_C(1) << 40)
#define IO_BYTES_MAX 0x10000

static uint64_t power_of_two(uint64_t at_least)
{
    uint64_t size = 16;

    while (size < at_least) {
        size <<= 1;
    }
    return size;
}

static TtStatus plan_bars(TtVfuPlan *p, const uint8_t *config,
                          const TtVfuRegion *regions, TtDiag *diag)
{
    for (unsigned i = 0; i < TT_VFU_BARS; i++) {
        uint32_t reg = tt_get_le32(config + FIRST_BAR + 4 * i);
        uint64_t size = regions[i].size;
        TtVfuBar *b = &p->bars[i];

        if (!size) {
            continue;
        }
        b->is_io = reg & BAR_IO;
        if (size > (b->is_io ? IO_BYTES_MAX : BAR_BYTES_MAX)) {
            return tt_fail(diag, TT_ERR_LIMIT, "BAR %u of the device has %" PRIu64
                           " bytes: at most %" PRIu64 " are possible", i, size,
                           (uint64_t)(b->is_io ? IO_BYTES_MAX : BAR_BYTES_MAX));
        }
        b->size = power_of_two(size);
        b->is_64 = !b->is_io && (reg & BAR_64);
        b->is_prefetchable = !b->is_io && (reg & BAR_PREFETCH);
        if (!b->is_64 && !b->is_io && b->size > UINT64_C(1) << 31) {
            return tt_fail(diag, TT_ERR_LIMIT, "BAR %u of the device has %" PRIu64
                           " bytes, too many for a BAR of 32 bits", i, size);
        }
        if (b->is_64 && (i + 1 == TT_VFU_BARS || regions[i + 1].size)) {
            return tt_fail(diag, TT_ERR_FORMAT, "BAR %u of the device has 64 bits, and "
                           "the next BAR is not free for the upper half", i);
        }
        i += b->is_64;
    }
    return TT_OK;
}

static bool is_inside(const TtVfuPlan *p, unsigned bar, uint64_t at, uint64_t n)
{
    return bar < TT_VFU_BARS && !p->bars[bar].is_io && at <= p->bars[bar].size &&
        n <= p->bars[bar].size - at;
}

static bool overlap(uint64_t a, uint64_t a_len, uint64_t b, uint64_t b_len)
{
    return a < b + b_len && b < a + a_len;
}

static TtStatus plan_msix(TtVfuPlan *p, const uint8_t *cap, uint8_t at, uint32_t irqs,
                          TtDiag *diag)
{
    uint32_t table = tt_get_le32(cap + 4), pba = tt_get_le32(cap + 8);
    uint32_t n = (tt_get_le16(cap + 2) & 0x7ff) + 1;
    uint64_t table_bytes = 16ull * n, pba_bytes = (n + 63) / 64 * 8;

    if (p->msix.at || !irqs) {
        return TT_OK;
    }
    if (irqs < n) {
        return tt_fail(diag, TT_ERR_FORMAT, "the device's MSI-X table has %" PRIu32
                       " vectors, but the server offers %" PRIu32, n, irqs);
    }
    p->msix.at = at;
    p->msix.n = n;
    p->msix.table_bar = table & 7;
    p->msix.table_at = table & ~7u;
    p->msix.pba_bar = pba & 7;
    p->msix.pba_at = pba & ~7u;
    if (!is_inside(p, table & 7, table & ~7u, table_bytes) ||
        !is_inside(p, pba & 7, pba & ~7u, pba_bytes) ||
        ((table & 7) == (pba & 7) &&
         overlap(table & ~7u, table_bytes, pba & ~7u, pba_bytes))) {
        return tt_fail(diag, TT_ERR_FORMAT, "the device's MSI-X tables do not lie in "
                       "its BARs");
    }
    return TT_OK;
}

static void plan_msi(TtVfuPlan *p, const uint8_t *cap, uint8_t at, uint32_t irqs)
{
    uint16_t control = tt_get_le16(cap + 2);
    unsigned log2 = control >> 1 & 7;
    uint32_t n;

    if (p->msi.at || !irqs || log2 > 5) {
        return;
    }
    n = 1u << log2;
    while (n > irqs) {
        n >>= 1;
    }
    p->msi.at = at;
    p->msi.n = n;
    p->msi.is_64 = control & 0x80;
    p->msi.has_masks = control & 0x100;
}

static unsigned cap_bytes(const uint8_t *cap)
{
    uint16_t control = tt_get_le16(cap + 2);

    switch (cap[0]) {
    case CAP_PM:
        return PM_BYTES;
    case CAP_MSI:
        return MSI_BYTES_MIN + (control & 0x80 ? 4 : 0) + (control & 0x100 ? 10 : 0);
    case CAP_VENDOR:
        return cap[2] < 3 ? 3 : cap[2];
    case CAP_MSIX:
        return MSIX_BYTES;
    default:
        return 0;               /* PCI Express and others: the guest sees none */
    }
}

TtStatus tt_vfu_plan(TtVfuPlan *p, const uint8_t *config,
                     const TtVfuRegion regions[TT_VFU_REGIONS],
                     const uint32_t irqs[TT_VFU_IRQS], TtDiag *diag)
{
    bool taken[TT_VFU_CONFIG_BYTES] = { false };
    uint8_t at = config[LIST] & ~3;
    TtStatus st;

    *p = (TtVfuPlan) { 0 };
    if (config[HEADER_TYPE] & 0x7f || tt_get_le16(config) == 0xffff) {
        return tt_fail(diag, TT_ERR_FORMAT, "the server's device is not one that can be "
                       "plugged in: its header is of type %u, its vendor %04xh",
                       config[HEADER_TYPE] & 0x7f, tt_get_le16(config));
    }
    st = plan_bars(p, config, regions, diag);
    if (st) {
        return st;
    }
    p->pin = irqs[TT_VFU_INTX] && config[PIN] && config[PIN] <= 4 ? config[PIN] : 0;
    if (!(tt_get_le16(config + STATUS) & HAS_LIST)) {
        at = 0;
    }
    for (unsigned i = 0; at && i < TT_VFU_CAPS_MAX; i++) {
        /* Four bytes there always are: @at is a multiple of four. */
        unsigned len = cap_bytes(config + at), room = TT_VFU_CONFIG_BYTES - at;

        if (at < CAPS_BEGIN || len > room) {
            return tt_fail(diag, TT_ERR_FORMAT, "the device's list of capabilities "
                           "leads to offset %02xh, where none can be", at);
        }
        for (unsigned b = at; b < at + (len ? len : 2); b++) {
            if (taken[b]) {
                return tt_fail(diag, TT_ERR_FORMAT, "the device's capabilities overlap "
                               "at %02xh", b);
            }
            taken[b] = true;
        }
        if (config[at] == CAP_MSIX) {
            st = plan_msix(p, config + at, at, irqs[TT_VFU_MSIX], diag);
        } else if (config[at] == CAP_MSI) {
            plan_msi(p, config + at, at, irqs[TT_VFU_MSI]);
        } else if (len) {
            p->caps[p->n_caps++] = (TtVfuCap) { config[at], at, len };
        }
        if (st) {
            return st;
        }
        at = config[at + 1] & ~3;
    }
    return TT_OK;
}
