/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RAM of our own for a block of the run: in a replay, and where its device is gone.
 */
#include "qemu/osdep.h"
#include "hw-tt/memory/tt-block.h"
#include "run/tt-manifest.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "exec/memory.h"
#include "exec/cpu-common.h"
#include "exec/ramblock.h"
#include "qemu/rcu.h"
#include "qom/object.h"

/* Of a ROM device: what a device made of an access is in the log. Only an access that
 * is not in it comes here, which no recorder makes. */
static uint64_t inert_read(void *opaque, hwaddr addr, unsigned size)
{
    return 0;
}

static void inert_write(void *opaque, hwaddr addr, uint64_t val, unsigned size)
{
}

static const MemoryRegionOps inert_ops = {
    .read = inert_read,
    .write = inert_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
};

bool tt_block_create(TtBlock *b, Error **errp)
{
    MemoryRegion *mr = g_new0(MemoryRegion, 1);
    bool ok;

    if (b->flags & TT_BLOCK_ROMD) {
        ok = memory_region_init_rom_device_nomigrate(mr, NULL, &inert_ops,
                                                     NULL, b->name,
                                                     b->size_bytes, errp);
    } else {
        ok = memory_region_init_ram_nomigrate(mr, NULL, b->name,
                                              b->size_bytes, errp);
    }
    if (!ok) {
        g_free(mr);
        return false;
    }
    b->mr = mr;
    b->ram_block = mr->ram_block;
    b->host = memory_region_get_ram_ptr(mr);
    return true;
}

typedef struct OldRegion {
    struct rcu_head rcu;
    MemoryRegion *mr;
} OldRegion;

static void free_region(OldRegion *old)
{
    object_unparent(OBJECT(old->mr));
    g_free(old->mr);
    g_free(old);
}

/* The memory goes when the views of it have gone, which RCU was given before. */
void tt_block_destroy(TtBlock *b)
{
    OldRegion *old = g_new0(OldRegion, 1);

    tt_ram_changed(b->mr, 0, b->size_bytes);    /* its translations */
    old->mr = b->mr;
    call_rcu(old, free_region, rcu);
}
