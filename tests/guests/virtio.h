/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A modern virtio-pci device and its first queue, without interrupts. BARs are below
 * 4 GiB, as SeaBIOS places them here. One device for a guest.
 */
#ifndef VIRTIO_H
#define VIRTIO_H

#include "dev.h"

enum { VIRTIO_QUEUE = 8, VIRTIO_NEXT = 1, VIRTIO_WRITES = 2, VIRTIO_CAP_VENDOR = 9,
       VIRTIO_CAP_COMMON = 1, VIRTIO_CAP_NOTIFY = 2, VIRTIO_CAPS = 5,
       VIRTIO_NO_INTERRUPT = 1, VIRTIO_STATUS = 20, VIRTIO_SETTLED = 11,
       VIRTIO_RUNS = 15 };

struct virtio_desc {
    u32 addr, addr_high, len;
    u16 flags, next;
};

static struct virtio_desc virtio_descs[VIRTIO_QUEUE] ALIGNED(16);
static volatile struct {
    u16 flags, idx, ring[VIRTIO_QUEUE];
} virtio_avail ALIGNED(16);
static volatile struct {
    u16 flags, idx;
    u32 ring[VIRTIO_QUEUE * 2];
} virtio_used ALIGNED(16);

static volatile u8 *virtio_common;
static u32 virtio_notify_base, virtio_multiplier;
static volatile u16 *virtio_notify;

/* Where the structures of the device at @devfn are; it becomes bus master. */
static inline void virtio_find(u32 devfn)
{
    u32 cap = pci_read(devfn, 0x34) & 0xfc, caps[VIRTIO_CAPS] = { 0 };

    pci_write(devfn, 4, pci_read(devfn, 4) | 6);
    while (cap) {
        u32 head = pci_read(devfn, cap);
        u32 type = head >> 24;

        if ((head & 0xff) == VIRTIO_CAP_VENDOR && type < VIRTIO_CAPS) {
            u32 bar = pci_read(devfn, cap + 4) & 7;

            caps[type] = (pci_read(devfn, 0x10 + 4 * bar) & ~15u) +
                pci_read(devfn, cap + 8);
            if (type == VIRTIO_CAP_NOTIFY) {
                virtio_multiplier = pci_read(devfn, cap + 16);
            }
        }
        cap = head >> 8 & 0xfc;
    }
    if (!caps[VIRTIO_CAP_COMMON] || !caps[VIRTIO_CAP_NOTIFY]) {
        rt_fail("no structures", devfn);
    }
    virtio_common = (u8 *)caps[VIRTIO_CAP_COMMON];
    virtio_notify_base = caps[VIRTIO_CAP_NOTIFY];
}

static inline void virtio_set64(u32 offset, volatile void *to)
{
    volatile u32 *field = (u32 *)(virtio_common + offset);

    field[0] = (u32)to;
    field[1] = 0;
}

/* Resets the device and starts it, with version 1 and the features @low. */
static inline void virtio_start(u32 low)
{
    volatile u8 *common = virtio_common;

    common[VIRTIO_STATUS] = 0;
    while (common[VIRTIO_STATUS]) {
    }
    virtio_avail.idx = virtio_used.idx = 0;
    virtio_avail.flags = VIRTIO_NO_INTERRUPT;
    common[VIRTIO_STATUS] = 1;
    common[VIRTIO_STATUS] = 3;
    *(volatile u32 *)(common + 8) = 0;
    *(volatile u32 *)(common + 12) = low;
    *(volatile u32 *)(common + 8) = 1;
    *(volatile u32 *)(common + 12) = 1;         /* version 1 */
    common[VIRTIO_STATUS] = VIRTIO_SETTLED;
    *(volatile u16 *)(common + 22) = 0;
    *(volatile u16 *)(common + 24) = VIRTIO_QUEUE;
    virtio_set64(32, virtio_descs);
    virtio_set64(40, &virtio_avail);
    virtio_set64(48, &virtio_used);
    virtio_notify = (u16 *)(virtio_notify_base +
                            *(volatile u16 *)(common + 30) * virtio_multiplier);
    *(volatile u16 *)(common + 28) = 1;
    common[VIRTIO_STATUS] = VIRTIO_RUNS;
}

/* Offers the chain of descriptor 0, @times times; virtio_used.idx will be the result. */
static inline u16 virtio_offer(u32 times)
{
    u16 next = virtio_avail.idx;

    while (times--) {
        virtio_avail.ring[next++ % VIRTIO_QUEUE] = 0;
    }
    BARRIER();
    virtio_avail.idx = next;
    BARRIER();
    *virtio_notify = 0;
    return next;
}

#endif
