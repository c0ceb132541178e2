/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * DMA of a vfio-user device: the guest memory that the server is told of, and that it
 * may therefore ask for.
 */
#include "hw-tt/vfio-user/tt-vfu.h"

#include <assert.h>
#include <inttypes.h>

#include <glib.h>

enum { MAY_READ = 1, MAY_WRITE = 2 };

size_t tt_vfu_put_dma_map(uint8_t *out, uint64_t addr, uint64_t size, uint64_t offset,
                          bool can_write)
{
    tt_put_le32(out, TT_VFU_MAP_BYTES);
    tt_put_le32(out + 4, MAY_READ | (can_write ? MAY_WRITE : 0));
    tt_put_le64(out + 8, offset);
    tt_put_le64(out + 16, addr);
    tt_put_le64(out + 24, size);
    return TT_VFU_MAP_BYTES;
}

size_t tt_vfu_put_dma_unmap(uint8_t *out, uint64_t addr, uint64_t size)
{
    tt_put_le32(out, TT_VFU_UNMAP_BYTES);
    tt_put_le32(out + 4, 0);
    tt_put_le64(out + 8, addr);
    tt_put_le64(out + 16, size);
    return TT_VFU_UNMAP_BYTES;
}

TtStatus tt_vfu_get_dma(TtVfuDma *d, const TtVfuHead *h, const uint8_t *bytes,
                        size_t len, TtDiag *diag)
{
    uint64_t count;

    *d = (TtVfuDma) { .is_write = h->command == TT_VFU_DMA_WRITE };
    if (len < TT_VFU_DMA_BYTES) {
        return tt_fail(diag, TT_ERR_FORMAT, "the server's %s has only %zu bytes",
                       tt_vfu_command_name(h->command), len);
    }
    d->addr = tt_get_le64(bytes);
    count = tt_get_le64(bytes + 8);
    if (!count || count > TT_VFU_DATA_MAX || count - 1 > UINT64_MAX - d->addr ||
        len != TT_VFU_DMA_BYTES + (d->is_write ? count : 0)) {
        return tt_fail(diag, TT_ERR_FORMAT, "the server's %s of %" PRIu64 " bytes at %"
                       PRIx64 "h has a wrong length", tt_vfu_command_name(h->command),
                       count, d->addr);
    }
    d->count = count;
    d->data = d->is_write ? bytes + TT_VFU_DMA_BYTES : NULL;
    return TT_OK;
}

size_t tt_vfu_put_dma_reply(uint8_t *out, const TtVfuDma *d)
{
    tt_put_le64(out, d->addr);
    tt_put_le64(out + 8, d->count);
    return TT_VFU_DMA_BYTES;
}

/* ---- ranges ---- */

/* The first that ends after @addr; @r->n: none does. */
static unsigned first_behind(const TtVfuRanges *r, uint64_t addr)
{
    unsigned from = 0, to = r->n;

    while (from < to) {
        unsigned mid = (from + to) / 2;
        const TtVfuRange *i = &r->items[mid];

        if (i->addr + (i->size - 1) < addr) {
            from = mid + 1;
        } else {
            to = mid;
        }
    }
    return from;
}

TtStatus tt_vfu_ranges_add(TtVfuRanges *r, uint64_t addr, uint64_t size,
                           bool can_write, TtDiag *diag)
{
    unsigned at = first_behind(r, addr);

    if (!size || size - 1 > UINT64_MAX - addr ||
        (at < r->n && r->items[at].addr <= addr + (size - 1))) {
        return tt_fail(diag, TT_ERR_INVALID, "%" PRIu64 " bytes of guest memory at %"
                       PRIx64 "h cannot be mapped for the device", size, addr);
    }
    if (r->n == TT_VFU_RANGES_MAX) {
        return tt_fail(diag, TT_ERR_LIMIT, "more than %u ranges of guest memory cannot "
                       "be mapped for the device", TT_VFU_RANGES_MAX);
    }
    r->items = g_renew(TtVfuRange, r->items, r->n + 1);
    memmove(r->items + at + 1, r->items + at, (r->n - at) * sizeof(r->items[0]));
    r->items[at] = (TtVfuRange) { .addr = addr, .size = size, .can_write = can_write };
    r->n++;
    return TT_OK;
}

bool tt_vfu_ranges_remove(TtVfuRanges *r, uint64_t addr, uint64_t size)
{
    unsigned at = first_behind(r, addr);

    if (at == r->n || r->items[at].addr != addr || r->items[at].size != size) {
        return false;
    }
    r->n--;
    memmove(r->items + at, r->items + at + 1, (r->n - at) * sizeof(r->items[0]));
    return true;
}

bool tt_vfu_ranges_hold(const TtVfuRanges *r, uint64_t addr, uint64_t size,
                        bool is_write)
{
    uint64_t last = addr + (size - 1);

    if (!size || size - 1 > UINT64_MAX - addr) {
        return false;
    }
    for (unsigned at = first_behind(r, addr); at < r->n; at++) {
        const TtVfuRange *i = &r->items[at];

        if (i->addr > addr || (is_write && !i->can_write)) {
            return false;
        }
        if (i->addr + (i->size - 1) >= last) {
            return true;
        }
        addr = i->addr + i->size;
    }
    return false;
}

void tt_vfu_ranges_set_host(TtVfuRanges *r, uint64_t addr, uint8_t *host)
{
    unsigned at = first_behind(r, addr);

    assert(at < r->n && r->items[at].addr == addr);
    r->items[at].host = host;
}

uint8_t *tt_vfu_ranges_host(const TtVfuRanges *r, uint64_t addr, uint64_t size,
                            bool is_write)
{
    unsigned at = first_behind(r, addr);
    const TtVfuRange *i = &r->items[at];

    if (!size || at == r->n || i->addr > addr || size > i->size ||
        addr - i->addr > i->size - size || !i->host || (is_write && !i->can_write)) {
        return NULL;
    }
    return i->host + (addr - i->addr);
}

void tt_vfu_ranges_clear(TtVfuRanges *r)
{
    g_free(r->items);
    *r = (TtVfuRanges) { 0 };
}
