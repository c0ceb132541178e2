/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest memory of a vfio-user device: the ranges that the server is told of, and its
 * DMA, by messages or through shadow memory. Each write goes to guest RAM as that of an
 * emulated device does, so a recording logs it. The device reaches only RAM that the
 * guest lets it reach: bus mastering and a virtual IOMMU count.
 */
#include "qemu/osdep.h"
#include "tt-vfu-int.h"
#include "exec/address-spaces.h"
#include "exec/ramblock.h"
#include "hw/pci/pci.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "system/runstate.h"
#include "system/system.h"
#include "tt/hooks.h"

#define SILENT_S 5

static bool range_of(const TtVfu *d, MemoryRegionSection *s, uint64_t *addr,
                     uint64_t *size)
{
    Int128 max = int128_make64(tt_vfu_iommu_bytes(d));

    if (memory_region_is_iommu(s->mr)) {
        *addr = s->offset_within_address_space;
        *size = int128_get64(int128_min(s->size, max));
        return true;
    }
    if (!memory_region_is_ram(s->mr) || memory_region_is_ram_device(s->mr)) {
        return false;
    }
    *addr = s->offset_within_address_space;
    *size = int128_get64(s->size);
    return true;
}

/* The descriptor of what the server gets instead of messages, and where in it; -1:
 * none, *errp says why. */
static int descriptor(TtVfu *d, MemoryRegionSection *s, uint64_t size, uint64_t *at,
                      Error **errp)
{
    int fd;

    *at = 0;
    if (memory_region_is_iommu(s->mr)) {
        return tt_shadows_add_window(d->shadows, s->offset_within_address_space, size, errp);
    }
    if (d->shadows) {
        TtShadowsRange range = {
            .addr = s->offset_within_address_space, .size = size, .mr = s->mr,
            .at = s->offset_within_region, .can_write = !s->readonly,
        };

        fd = tt_shadows_add(d->shadows, &range, errp);
        tt_vfu_dma_out(d);              /* before the server has it */
        return fd;
    }
    fd = memory_region_get_fd(s->mr);
    if (fd < 0 || !qemu_ram_is_shared(s->mr->ram_block)) {
        error_setg(errp, "the server cannot access '%s': without -tt, dma=shared needs "
                   "guest RAM in a shared file (-object "
                   "memory-backend-memfd,id=m,share=on,size=... -machine "
                   "memory-backend=m)",
                   memory_region_name(s->mr));
        return -1;
    }
    *at = s->mr->ram_block->fd_offset + s->offset_within_region;
    return fd;
}

static TtStatus add_range(TtVfu *d, MemoryRegionSection *s, uint64_t addr, uint64_t size,
                          TtDiag *diag)
{
    TtStatus st;

    tt_vfu_conn_lock(d->conn);
    st = tt_vfu_ranges_add(&d->ranges, addr, size, !s->readonly, diag);
    if (!st && !d->shadows && !d->is_direct && !memory_region_is_iommu(s->mr)) {
        tt_vfu_ranges_set_host(&d->ranges, addr, (uint8_t *)memory_region_get_ram_ptr(s->mr) +
                               s->offset_within_region);
    }
    tt_vfu_conn_unlock(d->conn);
    return st;
}

static bool remove_range(TtVfu *d, uint64_t addr, uint64_t size)
{
    bool ok;

    tt_vfu_conn_lock(d->conn);
    ok = tt_vfu_ranges_remove(&d->ranges, addr, size);
    tt_vfu_conn_unlock(d->conn);
    return ok;
}

static void forget(TtVfu *d, MemoryRegionSection *s, uint64_t addr, uint64_t size,
                   bool takes)
{
    if (d->shadows && memory_region_is_iommu(s->mr)) {
        tt_shadows_remove_window(d->shadows, addr, takes);
    } else if (d->shadows) {
        tt_shadows_remove(d->shadows, addr, size, takes);
    }
}

static void region_add(MemoryListener *l, MemoryRegionSection *s)
{
    TtVfu *d = container_of(l, TtVfu, listener);
    bool is_shared = d->shadows || d->is_direct;
    uint8_t payload[TT_VFU_MAP_BYTES];
    uint64_t addr, size, at = 0;
    Error *err = NULL;
    int fd = -1, ret;
    TtDiag diag;

    if (!range_of(d, s, &addr, &size)) {
        return;
    }
    if (add_range(d, s, addr, size, &diag)) {
        tt_vfu_warn(d, "%s", diag.text);
        return;
    }
    if (is_shared) {
        fd = descriptor(d, s, size, &at, &err);
        if (fd < 0) {
            remove_range(d, addr, size);
            if (d->shadows) {
                tt_vfu_warn(d, "it has less memory than the guest, use dma=messages: %s",
                            error_get_pretty(err));
            } else if (!s->readonly) {  /* ROM has no file: the server does without */
                tt_vfu_warn_once(d, TT_VFU_WARNED_MEMORY, "%s", error_get_pretty(err));
            }
            error_free(err);
            return;
        }
    }
    tt_vfu_put_dma_map(payload, addr, size, at, !s->readonly);
    ret = tt_vfu_conn_ask(d->conn, TT_VFU_DMA_MAP, payload, sizeof(payload), &fd,
                          fd >= 0, 0, NULL);
    if (ret < 0) {
        remove_range(d, addr, size);
        forget(d, s, addr, size, false);
    } else if (d->shadows && memory_region_is_iommu(s->mr) &&
               !tt_vfu_iommu_add(d, s, &err)) {
        tt_vfu_warn_once(d, TT_VFU_WARNED_IOMMU, "its shared memory stays empty, since the "
                         "virtual IOMMU does not tell what it maps (use dma=messages): %s",
                         error_get_pretty(err));
        error_free(err);
    }
    if (ret < 0 && ret != -ENODEV) {
        tt_vfu_warn(d, "the server refuses guest memory of %" PRIu64 " bytes at %"
                    PRIx64 "h: %s", size, addr, strerror(-ret));
    }
}

static void region_del(MemoryListener *l, MemoryRegionSection *s)
{
    TtVfu *d = container_of(l, TtVfu, listener);
    uint8_t payload[TT_VFU_UNMAP_BYTES];
    uint64_t addr, size;
    bool was_there;

    if (!range_of(d, s, &addr, &size)) {
        return;
    }
    tt_vfu_conn_lock(d->conn);
    tt_vfu_conn_settle(d->conn);        /* what was answered is still allowed here */
    was_there = remove_range(d, addr, size);
    tt_vfu_conn_unlock(d->conn);
    if (was_there) {
        tt_vfu_put_dma_unmap(payload, addr, size);
        tt_vfu_conn_ask(d->conn, TT_VFU_DMA_UNMAP, payload, sizeof(payload), NULL, 0, 0,
                        NULL);
        tt_vfu_iommu_del(d, s);
        forget(d, s, addr, size, tt_vfu_dma_is_master(d));
    }
}

/* ---- shadow memory ---- */

bool tt_vfu_dma_is_master(const TtVfu *d)
{
    return d->shadows && !tt_vfu_conn_is_lost(d->conn) &&
        pci_get_word(d->pci.config + PCI_COMMAND) & PCI_COMMAND_MASTER;
}

void tt_vfu_dma_out(TtVfu *d)
{
    if (tt_vfu_dma_is_master(d)) {
        tt_shadows_out(d->shadows);
    }
}

void tt_vfu_dma_in(TtVfu *d)
{
    if (tt_vfu_dma_is_master(d)) {
        tt_shadows_in(d->shadows);
        tt_shadows_stats(d->shadows, d->stats);
    }
}

void tt_vfu_dma_lost(TtVfu *d)
{
    if (d->shadows) {
        tt_shadows_lost(d->shadows);
    }
}

/* What it wrote while the guest did not let it is dropped. */
void tt_vfu_dma_settle(TtVfu *d, bool was_master, bool goes_on)
{
    if (d->shadows && !tt_vfu_conn_is_lost(d->conn)) {
        (was_master ? tt_shadows_in : tt_shadows_drop)(d->shadows);
        if (goes_on) {
            tt_shadows_out(d->shadows);
        }
    }
}

static void say_stray(TtVfu *d)
{
    uint64_t addr;

    if (!(d->warned & TT_VFU_WARNED_IOMMU) && tt_shadows_stray(d->shadows, &addr)) {
        tt_vfu_warn_once(d, TT_VFU_WARNED_STRAY, "its DMA write at %" PRIx64 "h goes nowhere: "
                         "the guest did not give that memory to the device", addr);
    }
}

/* For memory that driver or device poll. No more than a tenth of the time. */
static void tick(void *opaque)
{
    TtVfu *d = opaque;
    int64_t wait = d->interval_ms * SCALE_MS, began = get_clock();

    if (!tt_vfu_conn_is_lost(d->conn)) {
        say_stray(d);
        tt_vfu_dma_in(d);
        tt_vfu_dma_out(d);
        timer_mod(d->timer, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) +
                  MAX(wait, 10 * (get_clock() - began)));
    }
}

/* A driver waits in vain for a device that was to be given shared memory. */
static void look_whether_silent(void *opaque)
{
    TtVfu *d = opaque;
    bool is_master = pci_get_word(d->pci.config + PCI_COMMAND) & PCI_COMMAND_MASTER;

    if (tt_vfu_conn_is_lost(d->conn) || qatomic_read(&d->has_acted)) {
        return;
    }
    if (d->is_used) {
        d->is_used = false;
        d->silent_s = 0;
    } else if (d->silent_s <= SILENT_S) {
        d->silent_s++;
    }
    if (is_master && d->silent_s == SILENT_S) {
        tt_vfu_warn(d, "if its driver waits for it in vain, the server wants shared memory, "
                    "as QEMU's own does: use dma=shared (it has neither asked for guest "
                    "memory nor sent an interrupt, for %d s)", SILENT_S);
        return;
    }
    timer_mod(d->timer, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) + NANOSECONDS_PER_SECOND);
}

static void changed(void *opaque, uint64_t addr, uint32_t n)
{
    TtVfu *d = opaque;

    tt_dialogue_dma(&d->dialogue, true, addr, n);
}

bool tt_vfu_dma_init(TtVfu *d, Error **errp)
{
    if (!d->dma || !strcmp(d->dma, "messages")) {
        return true;
    }
    if (strcmp(d->dma, "shared")) {
        error_setg(errp, "dma takes 'messages' or 'shared', not '%s'",
                   d->dma);
        return false;
    }
    if (tt_on()) {
        if (!tt_shadows_watch(errp)) {
            return false;
        }
        d->shadows = tt_shadows_new(changed, d);
    } else {
        d->is_direct = true;            /* vCPUs write while we compare */
    }
    return pci_device_iommu_address_space(&d->pci) == &address_space_memory ||
        tt_vfu_iommu_check(d, errp);
}

/* The address space of a device is known when all of the machine is there. */
static void machine_done(Notifier *n, void *unused)
{
    TtVfu *d = container_of(n, TtVfu, machine_done);

    if (pci_device_iommu_address_space(&d->pci) != d->listener.address_space) {
        error_report("%s '%s': the virtual IOMMU comes after it: give the IOMMU's -device "
                     "first", TYPE_TT_VFU, d->path);
        exit(1);
    }
}

void tt_vfu_dma_begin(TtVfu *d)
{
    d->listener = (MemoryListener) {
        .name = TYPE_TT_VFU, .region_add = region_add, .region_del = region_del,
    };
    d->is_listening = true;
    memory_listener_register(&d->listener, pci_device_iommu_address_space(&d->pci));
    d->machine_done.notify = machine_done;
    qemu_add_machine_init_done_notifier(&d->machine_done);
    if (!d->is_direct && (!d->shadows || d->interval_ms)) {
        d->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL,
                                d->shadows ? tick : look_whether_silent, d);
        timer_mod(d->timer, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) + SCALE_MS);
    }
}

void tt_vfu_dma_end(TtVfu *d)
{
    if (d->is_listening) {
        d->is_listening = false;
        qemu_remove_machine_init_done_notifier(&d->machine_done);
        memory_listener_unregister(&d->listener);
    }
    if (d->conn) {
        tt_vfu_conn_lock(d->conn);
        tt_vfu_ranges_clear(&d->ranges);
        tt_vfu_conn_unlock(d->conn);
    }
    timer_free(d->timer);
    d->timer = NULL;
    if (d->shadows) {
        tt_shadows_free(d->shadows);
        d->shadows = NULL;
        tt_shadows_unwatch();
    }
}

static MemTxResult access_ram(TtVfu *d, const TtVfuDma *dma, uint8_t *to)
{
    /* RAM only: a register of another device, or of this one, is no target. */
    MemTxAttrs attrs = { .memory = 1, .requester_id = pci_requester_id(&d->pci) };
    void *bytes = dma->is_write ? (void *)dma->data : to;

    if (!tt_vfu_ranges_hold(&d->ranges, dma->addr, dma->count, dma->is_write)) {
        return MEMTX_ERROR;
    }
    tt_dialogue_dma(&d->dialogue, dma->is_write, dma->addr, dma->count);
    return address_space_rw(pci_get_address_space(&d->pci), dma->addr, attrs, bytes,
                            dma->count, dma->is_write);
}

void tt_vfu_dma_write(TtVfu *d, const TtVfuDma *dma)
{
    access_ram(d, dma, NULL);
}

/* 0, or the errno of the reply. */
static uint32_t transfer(TtVfu *d, const TtVfuDma *dma, uint8_t *to)
{
    MemTxResult r = access_ram(d, dma, to);

    if (r != MEMTX_OK) {
        tt_vfu_warn_once(d, TT_VFU_WARNED_REFUSED, "its %s of %" PRIu32 " bytes at %" PRIx64
                         "h is refused: the guest did not give that memory to the device",
                         dma->is_write ? "DMA write" : "DMA read", dma->count, dma->addr);
    }
    return r == MEMTX_OK ? 0 : EFAULT;
}

void tt_vfu_dma_serve(void *opaque, const TtVfuHead *h, const uint8_t *payload,
                      size_t len)
{
    TtVfu *d = opaque;
    uint8_t *room = tt_vfu_conn_room(d->conn);
    uint32_t error;
    TtVfuDma dma;
    TtDiag diag;
    size_t n;

    if (h->command != TT_VFU_DMA_READ && h->command != TT_VFU_DMA_WRITE) {
        tt_vfu_conn_reply(d->conn, h, ENOTSUP, 0);
        return;
    }
    qatomic_set(&d->has_acted, true);
    if (tt_vfu_get_dma(&dma, h, payload, len, &diag)) {
        tt_vfu_conn_reply(d->conn, h, EINVAL, 0);
        return;
    }
    n = tt_vfu_put_dma_reply(room, &dma);
    error = transfer(d, &dma, room + n);
    n += dma.is_write ? 0 : dma.count;
    tt_vfu_conn_reply(d->conn, h, error, error ? 0 : n);
}
