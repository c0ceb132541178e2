/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the files of the device vfio-user-pci. Context: the BQL is held.
 */
#ifndef TT_VFU_INT_H
#define TT_VFU_INT_H

#include "hw-tt/vfio-user/glue/tt-vfu-conn.h"
#include "hw-tt/foreign/tt-dialogue.h"
#include "hw-tt/foreign/tt-shadows.h"
#include "exec/memory.h"
#include "accel-tt/tt-poll.h"
#include "hw/pci/pci_device.h"
#include "qemu/event_notifier.h"
#include "qemu/rcu.h"
#include "qom/object.h"

#define TYPE_TT_VFU "vfio-user-pci"
OBJECT_DECLARE_SIMPLE_TYPE(TtVfu, TT_VFU)

typedef struct TtVfuBarArea {
    MemoryRegion mr;
    TtVfu *device;
    unsigned index;
} TtVfuBarArea;

typedef struct TtVfuVector {
    EventNotifier event;
    TtVfu *device;                      /* NULL: dropped; the connection's lock */
    TtVfuConn *conn;
    unsigned index;
    bool is_pending;                    /* signalled, and not delivered yet; atomic */
    TtPoll poll;
} TtVfuVector;

typedef struct TtVfuVectors {
    struct rcu_head rcu;
    unsigned n;
    TtVfuVector items[];
} TtVfuVectors;

struct TtVfu {
    PCIDevice pci;
    char *path;                         /* property socket */
    uint32_t deadline_s;                /* property timeout */
    uint32_t interval_ms;               /* property interval */
    char *dma;                          /* property dma: messages, shared */
    TtVfuConn *conn;
    TtVfuPlan plan;
    TtVfuRegion regions[TT_VFU_REGIONS];
    TtVfuBarArea bars[TT_VFU_BARS];
    bool is_passed_on[TT_VFU_CONFIG_BYTES]; /* bytes that the server answers */
    QEMUBH *unplug;
    VMChangeStateEntry *state_handler;

    int irq_kind;                       /* TT_VFU_IRQS: none */
    TtVfuVectors *vectors;              /* NULL: none */
    bool is_intx_up;

    MemoryListener listener;
    Notifier machine_done;
    bool is_listening;
    bool is_used;                       /* the driver wrote to it in this second */
    bool has_acted;                     /* it asked for memory, or signalled; atomic */
    unsigned silent_s;                  /* for how long it has not, after a write; */
#define TT_VFU_UNUSED UINT_MAX          /* there was no write */
    unsigned warned;                    /* TT_VFU_WARNED_...: said once each */
    TtVfuRanges ranges;                 /* changed with the connection's lock, too */
    GArray *early;                      /* tt-vfu-early.c; the connection's lock */
    GByteArray *early_bytes;
    TtShadows *shadows;              /* NULL: DMA by messages */
    QLIST_HEAD(, TtVfuIommu) iommus;    /* tt-vfu-iommu.c */
    bool is_direct;                     /* it has guest RAM itself: never recorded */
    QEMUTimer *timer;
    uint64_t stats[4];                  /* see tt_shadows_stats */

    TtDialogue dialogue;
};

/* One sentence about this device. */
void tt_vfu_warn(TtVfu *d, const char *fmt, ...) G_GNUC_PRINTF(2, 3);
enum {
    TT_VFU_WARNED_REFUSED = 1, TT_VFU_WARNED_MEMORY = 2, TT_VFU_WARNED_IOMMU = 4,
    TT_VFU_WARNED_NO_RAM = 8, TT_VFU_WARNED_FAR = 16, TT_VFU_WARNED_STRAY = 32,
};
/* The same, for each kind the first time only. */
void tt_vfu_warn_once(TtVfu *d, unsigned kind, const char *fmt, ...) G_GNUC_PRINTF(3, 4);

/* ---- interrupts ---- */
/* The guest's choice of INTx, MSI or MSI-X may have changed. */
void tt_vfu_irq_update(TtVfu *d);
/* The guest looked at the device: INTx goes down and may come again. */
void tt_vfu_irq_accessed(TtVfu *d);
void tt_vfu_irq_off(TtVfu *d);
/* What came is delivered: TtVfuConnOps; also when the VM runs again. */
void tt_vfu_irq_deliver(void *opaque);

/* ---- DMA ---- */
bool tt_vfu_dma_init(TtVfu *d, Error **errp);
void tt_vfu_dma_begin(TtVfu *d);
bool tt_vfu_dma_is_master(const TtVfu *d);
/* The device is about to look at guest memory; the guest at what the device wrote. */
void tt_vfu_dma_out(TtVfu *d);
void tt_vfu_dma_in(TtVfu *d);
/* It may be bus master from now on, or was until now: what it wrote as master comes in at
 * once, or it would come later, over what the guest has there then. @goes_on: it looks
 * again. */
void tt_vfu_dma_settle(TtVfu *d, bool was_master, bool goes_on);
/* The server still has its shadows: nothing of them comes in from now on. */
void tt_vfu_dma_lost(TtVfu *d);
void tt_vfu_dma_end(TtVfu *d);
/* A write that was answered already. The guest may have taken the memory away since. */
void tt_vfu_dma_write(TtVfu *d, const TtVfuDma *dma);
void tt_vfu_dma_serve(void *opaque, const TtVfuHead *h, const uint8_t *payload,
                      size_t len);

/* ---- shadow memory behind a virtual IOMMU ---- */
/* Any address may lead somewhere there; servers have a limit. */
#define TT_VFU_IOVA_BYTES (UINT64_C(1) << 42)
/* How much of the device's addresses the server is told of. */
uint64_t tt_vfu_iommu_bytes(const TtVfu *d);
/* False: it does not work there, *errp says why. */
bool tt_vfu_iommu_check(TtVfu *d, Error **errp);
/* What the guest maps in @s has a shadow, from now until _del(). False: *errp. */
bool tt_vfu_iommu_add(TtVfu *d, MemoryRegionSection *s, Error **errp);
void tt_vfu_iommu_del(TtVfu *d, MemoryRegionSection *s);

/* ---- DMA without the BQL: TtVfuConnOps ---- */
void tt_vfu_early_init(TtVfu *d);
void tt_vfu_early_end(TtVfu *d);
bool tt_vfu_early_can(void *opaque, const TtVfuHead *h, const uint8_t *payload);
void tt_vfu_early_serve(void *opaque, const TtVfuHead *h, const uint8_t *payload,
                        size_t len);
void tt_vfu_early_settle(void *opaque);

#endif
