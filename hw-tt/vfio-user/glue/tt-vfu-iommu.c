/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shadow memory of a vfio-user device behind a virtual IOMMU: what the guest's driver
 * maps for the device has a shadow, nothing else.
 */
#include "qemu/osdep.h"
#include "tt-vfu-int.h"
#include "exec/address-spaces.h"
#include "exec/ramblock.h"
#include "hw-tt/vfio-user/tt-shadow.h"
#include "qapi/error.h"
#include "qemu/units.h"
#include "system/system.h"

/* Sparse. Linux uses addresses below 4 GiB as long as there are any. */
#define WINDOW_BYTES (UINT64_C(1) << 36)

/* One for a region, which may be there in several parts: all of it must be listened to,
 * since an event may cross their edges. */
typedef struct TtVfuIommu {
    TtVfu *device;
    IOMMUMemoryRegion *mr;
    unsigned n_parts;
    uint64_t offset;                    /* from the region to the device's addresses */
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
    if (should_mlock(mlock_state)) {
        error_setg(errp, "dma=shared behind a virtual IOMMU needs memory that is not locked: "
                   "leave out -overcommit mem-lock, or use dma=messages");
        return false;
    }
    return true;
}

/* Of this device's addresses, the RAM that stands there, if it is nothing else. */
static bool ram_of(IOMMUTLBEntry *e, TtShadowsRange *range)
{
    bool is_readonly;
    void *host;

    if (e->target_as != &address_space_memory ||
        !memory_get_xlat_addr(e, &host, NULL, &is_readonly, NULL, NULL)) {
        return false;
    }
    range->mr = memory_region_from_host(host, &range->at);
    range->can_write = !is_readonly;
    return range->mr && !memory_region_is_ram_device(range->mr);
}

static void map(TtVfu *d, IOMMUTLBEntry *e, uint64_t iova)
{
    TtShadowsRange range = { .addr = iova, .size = e->addr_mask + 1 };

    if (tt_vfu_conn_is_lost(d->conn)) {
        return;
    }
    if (!range.size || (range.addr | range.size) & (TT_SHADOW_PAGE - 1) ||
        !ram_of(e, &range)) {
        tt_vfu_warn_once(d, TT_VFU_WARNED_NO_RAM, "the guest gives it memory at %" PRIx64
                         "h that is not, or not only, pages of RAM: it cannot reach that",
                         iova);
    } else if (!tt_shadows_map(d->shadows, &range, tt_vfu_dma_is_master(d))) {
        tt_vfu_warn_once(d, TT_VFU_WARNED_FAR, "the guest gives it memory at %" PRIx64 "h, "
                         "beyond the %u GiB that dma=shared has behind a virtual IOMMU: it "
                         "cannot reach that; use dma=messages", iova,
                         (unsigned)(WINDOW_BYTES / GiB));
    }
}

static void notify(IOMMUNotifier *n, IOMMUTLBEntry *e)
{
    TtVfuIommu *i = container_of(n, TtVfuIommu, notifier);
    uint64_t iova = e->iova + i->offset;
    TtVfu *d = i->device;

    RCU_READ_LOCK_GUARD();
    tt_shadows_unmap(d->shadows, iova, iova + MIN(e->addr_mask, UINT64_MAX - iova),
                     tt_vfu_dma_is_master(d));
    if (e->perm & IOMMU_RW) {
        map(d, e, iova);
    }
}

static TtVfuIommu *find(TtVfu *d, MemoryRegion *mr)
{
    TtVfuIommu *i;

    QLIST_FOREACH(i, &d->iommus, next) {
        if (MEMORY_REGION(i->mr) == mr) {
            return i;
        }
    }
    return NULL;
}

static TtVfuIommu *listen_to(TtVfu *d, MemoryRegionSection *s, Error **errp)
{
    TtVfuIommu *i = g_new0(TtVfuIommu, 1);

    i->device = d;
    i->mr = IOMMU_MEMORY_REGION(s->mr);
    i->offset = s->offset_within_address_space - s->offset_within_region;
    iommu_notifier_init(&i->notifier, notify, IOMMU_NOTIFIER_IOTLB_EVENTS, 0, UINT64_MAX,
                        memory_region_iommu_attrs_to_index(i->mr, MEMTXATTRS_UNSPECIFIED));
    if (memory_region_register_iommu_notifier(s->mr, &i->notifier, errp)) {
        g_free(i);
        return NULL;
    }
    QLIST_INSERT_HEAD(&d->iommus, i, next);
    return i;
}

bool tt_vfu_iommu_add(TtVfu *d, MemoryRegionSection *s, Error **errp)
{
    TtVfuIommu *i = find(d, s->mr) ?: listen_to(d, s, errp);

    if (i) {
        i->n_parts++;
        memory_region_iommu_replay(i->mr, &i->notifier);
    }
    return i;
}

void tt_vfu_iommu_del(TtVfu *d, MemoryRegionSection *s)
{
    TtVfuIommu *i = find(d, s->mr);

    if (i && !--i->n_parts) {
        memory_region_unregister_iommu_notifier(s->mr, &i->notifier);
        QLIST_REMOVE(i, next);
        g_free(i);
    }
}
