/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * DMA by messages that is served while a vCPU runs: a read is answered from RAM, a write is
 * answered at once and done when a vCPU leaves guest code, or the main loop has the lock, or
 * before whatever else is done with the device, as on a bus where writes are posted. So the
 * server waits for no vCPU, and a recording does not give the token away for it: its
 * vCPU does the writes, and takes the interrupts (accel-tt/tt-poll.h).
 *
 * Only for ranges of plain RAM: an address behind a virtual IOMMU is looked up, and its faults
 * are reported to the guest, with the BQL.
 */
#include "qemu/osdep.h"
#include "tt-vfu-int.h"
#include "tt/hooks.h"

/* Of what waits: bytes, and requests. */
#define BYTES_MAX   (2 * TT_VFU_DATA_MAX)
#define WAITING_MAX 256

typedef struct Waiting {
    uint64_t addr;
    uint32_t count;
    bool is_write;              /* its bytes are in `early_bytes`; a read is to be noted */
} Waiting;

static bool overlaps(const Waiting *w, const TtVfuDma *dma)
{
    return w->is_write && w->addr < dma->addr + dma->count &&
        dma->addr < w->addr + w->count;
}

/* A device sees what it wrote before. */
static bool is_of_waiting(const TtVfu *d, const TtVfuDma *dma)
{
    for (guint i = 0; i < d->early->len; i++) {
        if (overlaps(&g_array_index(d->early, Waiting, i), dma)) {
            return true;
        }
    }
    return false;
}

void tt_vfu_early_init(TtVfu *d)
{
    d->early = g_array_new(false, false, sizeof(Waiting));
    d->early_bytes = g_byte_array_new();
}

void tt_vfu_early_end(TtVfu *d)
{
    if (d->early) {
        g_array_unref(d->early);
        g_byte_array_unref(d->early_bytes);
        d->early = NULL;
    }
}

bool tt_vfu_early_can(void *opaque, const TtVfuHead *h, const uint8_t *payload)
{
    TtVfu *d = opaque;
    bool is_write = h->command == TT_VFU_DMA_WRITE;
    TtVfuDma dma;

    if ((h->command != TT_VFU_DMA_READ && !is_write) ||
        !qatomic_read(&d->pci.bus_master_enable_region.enabled)) {
        return false;
    }
    dma = (TtVfuDma) { .addr = tt_get_le64(payload) };
    if (tt_get_le64(payload + 8) > TT_VFU_DATA_MAX ||
        h->bytes != TT_VFU_HEAD_BYTES + TT_VFU_DMA_BYTES +
        (is_write ? tt_get_le64(payload + 8) : 0)) {
        return false;
    }
    dma.count = tt_get_le64(payload + 8);
    return d->early->len < WAITING_MAX &&
        tt_vfu_ranges_host(&d->ranges, dma.addr, dma.count, is_write) &&
        (is_write ? d->early_bytes->len + dma.count <= BYTES_MAX :
         !is_of_waiting(d, &dma));
}

void tt_vfu_early_serve(void *opaque, const TtVfuHead *h, const uint8_t *payload,
                        size_t len)
{
    TtVfu *d = opaque;
    uint8_t *room = tt_vfu_conn_room(d->conn);
    TtVfuDma dma;
    Waiting w;
    size_t n;

    qatomic_set(&d->has_acted, true);
    if (tt_vfu_get_dma(&dma, h, payload, len, NULL)) {
        tt_vfu_conn_reply(d->conn, h, EINVAL, 0);
        return;
    }
    n = tt_vfu_put_dma_reply(room, &dma);
    w = (Waiting) { .addr = dma.addr, .count = dma.count, .is_write = dma.is_write };
    if (dma.is_write) {
        g_byte_array_append(d->early_bytes, dma.data, dma.count);
        tt_vfu_conn_set_writes(d->conn);
    } else {
        memcpy(room + n, tt_vfu_ranges_host(&d->ranges, dma.addr, dma.count, false),
               dma.count);
        n += dma.count;
    }
    if (dma.is_write || tt_recording()) {
        g_array_append_val(d->early, w);
    }
    tt_vfu_conn_reply(d->conn, h, 0, n);
}

void tt_vfu_early_settle(void *opaque)
{
    TtVfu *d = opaque;
    const uint8_t *data = d->early_bytes->data;

    for (guint i = 0; i < d->early->len; i++) {
        const Waiting *w = &g_array_index(d->early, Waiting, i);
        TtVfuDma dma = {
            .is_write = w->is_write, .addr = w->addr, .count = w->count, .data = data,
        };

        if (w->is_write) {
            tt_vfu_dma_write(d, &dma);
            data += w->count;
        } else {
            tt_dialogue_dma(&d->dialogue, false, w->addr, w->count);
        }
    }
    g_array_set_size(d->early, 0);
    g_byte_array_set_size(d->early_bytes, 0);
}
