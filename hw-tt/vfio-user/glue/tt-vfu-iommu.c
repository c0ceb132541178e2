/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shadow memory of a vfio-user device behind a virtual IOMMU: what the guest's driver
 * maps for the device has a shadow, nothing else.
 */
#include "qemu/osdep.h"
#include "tt-vfu-int.h"
#include "exec/address-spaces.h"
#include "exec/ramblock.h"
#include "qapi/error.h"
#include "qemu/units.h"
#include "system/system.h"

/* Sparse. Guests use addresses below 4 GiB as long as there are any. */
#define WINDOW_BYTES (UINT64_C(1) << 36)

typedef struct TtVfuIommu {
    TtVfu *device;
    IOMMUMemoryRegion *mr;
    uint64_t addr, offset;              /* of the window; from the region to the device */
    IOMMUNotifier notifier;
    QLIST_ENTRY(TtVfuIommu) next;
} TtVfuIommu;

uint64_t tt_vfu_iommu_bytes(const TtVfu *d)
{
    return d->shadows ? WINDOW_BYTES : TT_VFU_IOVA_BYTES;
}

bool tt_vfu_iommu_check(TtVfu *d, Error **errp)
{
    if (!d->shadows) {
        error_setg(errp, "without -tt, dma=shared does not work behind a virtual IOMMU: use "
                   "dma=messages");
        return false;
    }
    if (should_mlock(mlock_state) && !is_mlock_on_fault(mlock_state)) {
        error_setg(errp, "dma=shared behind a virtual IOMMU needs sparse memory: use "
                   "-overcommit mem-lock=on-fault, or dma=messages");
        return false;
    }
    return true;
}

static void map(TtVfu *d, IOMMUTLBEntry *e, uint64_t iova)
{
    TtShadowsRange range = { .addr = iova, .size = e->addr_mask + 1 };
    bool is_readonly;
    Error *err = NULL;
    void *host;

    if (e->target_as != &address_space_memory ||
        !memory_get_xlat_addr(e, &host, NULL, &is_readonly, NULL, &err)) {
        error_free(err);
        return;                         /* no RAM: the device cannot reach it */
    }
    range.mr = memory_region_from_host(host, &range.at);
    if (!range.mr || memory_region_is_ram_device(range.mr)) {
        return;
    }
    range.can_write = !is_readonly;
    if (!tt_shadows_map(d->shadows, &range) && !d->has_warned) {
        d->has_warned = true;
        tt_vfu_warn(d, "the guest gives it memory at %" PRIx64 "h, beyond the %u GiB that "
                    "dma=shared has behind a virtual IOMMU: it cannot reach that; use "
                    "dma=messages", iova, (unsigned)(WINDOW_BYTES / GiB));
    }
}

static void notify(IOMMUNotifier *n, IOMMUTLBEntry *e)
{
    TtVfuIommu *i = container_of(n, TtVfuIommu, notifier);
    uint64_t iova = e->iova + i->offset;
    TtVfu *d = i->device;

    RCU_READ_LOCK_GUARD();
    tt_shadows_unmap(d->shadows, iova, e->addr_mask + 1, tt_vfu_dma_is_master(d));
    if (e->perm & IOMMU_RW) {
        map(d, e, iova);
    }
}

bool tt_vfu_iommu_add(TtVfu *d, MemoryRegionSection *s, Error **errp)
{
    TtVfuIommu *i = g_new0(TtVfuIommu, 1);
    uint64_t from = s->offset_within_region;
    Int128 to = int128_sub(int128_add(int128_make64(from), s->size), int128_one());
    int index;

    i->device = d;
    i->mr = IOMMU_MEMORY_REGION(s->mr);
    i->addr = s->offset_within_address_space;
    i->offset = i->addr - from;
    index = memory_region_iommu_attrs_to_index(i->mr, MEMTXATTRS_UNSPECIFIED);
    iommu_notifier_init(&i->notifier, notify, IOMMU_NOTIFIER_IOTLB_EVENTS, from,
                        int128_get64(to), index);
    if (memory_region_register_iommu_notifier(s->mr, &i->notifier, errp)) {
        g_free(i);
        return false;
    }
    QLIST_INSERT_HEAD(&d->iommus, i, next);
    memory_region_iommu_replay(i->mr, &i->notifier);
    return true;
}

void tt_vfu_iommu_del(TtVfu *d, MemoryRegionSection *s)
{
    TtVfuIommu *i, *next;

    QLIST_FOREACH_SAFE(i, &d->iommus, next, next) {
        if (MEMORY_REGION(i->mr) == s->mr && i->addr == s->offset_within_address_space) {
            memory_region_unregister_iommu_notifier(s->mr, &i->notifier);
            QLIST_REMOVE(i, next);
            g_free(i);
        }
    }
}
