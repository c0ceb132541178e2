/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hooks for devices of the host that a guest drives (hw/vfio): such a device reaches
 * shadow memory, never guest RAM. Included by tt/hooks.h. Context: BQL.
 */
#ifndef TT_HOOKS_VFIO_H
#define TT_HOOKS_VFIO_H

#include <stdbool.h>
#include <stdint.h>

struct Error;
struct EventNotifier;
struct PCIDevice;
struct VFIOContainerBase;
struct VFIODevice;

/* Set with the first vfio-pci under -tt, and never cleared. */
extern bool tt_vfio_on;
bool tt_vfio_realize_slow(struct PCIDevice *pci, struct Error **errp);
void *tt_vfio_map_slow(struct VFIOContainerBase *c, uint64_t iova, uint64_t size,
                       void *host, bool readonly);
int tt_vfio_mapped_slow(struct VFIOContainerBase *c, uint64_t iova, uint64_t size,
                        int ret);
void tt_vfio_looks_slow(struct VFIODevice *d);
void tt_vfio_is_looked_at_slow(struct VFIODevice *d);
void tt_vfio_config_written_slow(struct VFIODevice *d, uint32_t addr, int len);
bool tt_vfio_holds_slow(struct VFIODevice *d, struct EventNotifier *e);

static inline bool tt_vfio_is_on(void)
{
    return __builtin_expect(tt_vfio_on, 0);
}

/* Before anything is asked of the host. False: it is refused, *errp says why. */
static inline bool tt_vfio_realize(struct PCIDevice *pci, struct Error **errp)
{
    return !(tt_on() || tt_vfio_is_on()) || tt_vfio_realize_slow(pci, errp);
}

/* The memory that the device gets instead of the @size bytes of guest memory at @host;
 * NULL: none can be had. */
static inline void *tt_vfio_map(struct VFIOContainerBase *c, uint64_t iova,
                                uint64_t size, void *host, bool readonly)
{
    return tt_vfio_is_on() ? tt_vfio_map_slow(c, iova, size, host, readonly) : host;
}

/* The host says 0, or why not, and -errno: returns that. */
static inline int tt_vfio_mapped(struct VFIOContainerBase *c, uint64_t iova,
                                 uint64_t size, int ret)
{
    return tt_vfio_is_on() && ret ? tt_vfio_mapped_slow(c, iova, size, ret) : ret;
}

/* The device reaches it no more (@ret is 0). Returns @ret. */
static inline int tt_vfio_unmapped(struct VFIOContainerBase *c, uint64_t iova,
                                   uint64_t size, int ret)
{
    return tt_vfio_is_on() && !ret ? tt_vfio_mapped_slow(c, iova, size, ret) : ret;
}

/* A register is about to be written: the device may look at memory. */
static inline void tt_vfio_looks(struct VFIODevice *d)
{
    if (tt_vfio_is_on()) {
        tt_vfio_looks_slow(d);
    }
}

/* A register was read: what the device wrote before is to be seen. */
static inline void tt_vfio_is_looked_at(struct VFIODevice *d)
{
    if (tt_vfio_is_on()) {
        tt_vfio_is_looked_at_slow(d);
    }
}

static inline void tt_vfio_config_written(struct VFIODevice *d, uint32_t addr, int len)
{
    if (tt_vfio_is_on()) {
        tt_vfio_config_written_slow(d, addr, len);
    }
}

/* The device signals: what it wrote before is to be seen. True: the VM stands still,
 * and @e will come again when it runs. */
static inline bool tt_vfio_holds(struct VFIODevice *d, struct EventNotifier *e)
{
    return tt_vfio_is_on() && tt_vfio_holds_slow(d, e);
}

#endif
