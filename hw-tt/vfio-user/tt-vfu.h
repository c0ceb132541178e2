/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The vfio-user protocol, seen from the client: messages as bytes, and every check of a
 * server's messages. The server is another process and may lie: no length, offset or
 * number of its is used before it was checked here.
 *
 * All fields are little-endian, as on the machines that QEMU's own server runs on.
 *
 * Context: any thread; nothing here has state.
 */
#ifndef TT_VFU_H
#define TT_VFU_H

#include "io/tt-base.h"

enum {
    TT_VFU_VERSION = 1,
    TT_VFU_DMA_MAP = 2,
    TT_VFU_DMA_UNMAP = 3,
    TT_VFU_DEVICE_INFO = 4,
    TT_VFU_REGION_INFO = 5,
    TT_VFU_IRQ_INFO = 7,
    TT_VFU_SET_IRQS = 8,
    TT_VFU_REGION_READ = 9,
    TT_VFU_REGION_WRITE = 10,
    TT_VFU_DMA_READ = 11,           /* the server asks */
    TT_VFU_DMA_WRITE = 12,          /* the server asks */
    TT_VFU_RESET = 13,
};

#define TT_VFU_HEAD_BYTES   16
#define TT_VFU_DATA_MAX     (1u << 20)      /* of one access; what we announce */
#define TT_VFU_DATA_MIN     4096            /* a server that takes less is refused */
#define TT_VFU_BYTES_MAX    (TT_VFU_DATA_MAX + 4096)
#define TT_VFU_TEXT_MAX     4096            /* of the capabilities of a server */
#define TT_VFU_FDS_MAX      32              /* with one message */
#define TT_VFU_RANGES_MAX   1024

/* Regions of a PCI device, and its kinds of interrupts. */
enum { TT_VFU_BARS = 6, TT_VFU_ROM = 6, TT_VFU_CONFIG = 7, TT_VFU_REGIONS = 8 };
enum { TT_VFU_INTX, TT_VFU_MSI, TT_VFU_MSIX, TT_VFU_IRQS };
#define TT_VFU_CONFIG_BYTES 256

/* ---- messages ---- */
typedef struct TtVfuHead {
    uint16_t id, command;
    uint32_t bytes;                 /* with the header */
    bool is_reply;
    bool wants_no_reply;
    uint32_t error;                 /* errno of a reply; 0: none */
} TtVfuHead;

void tt_vfu_put_head(uint8_t *out, const TtVfuHead *h);
/* TT_ERR_FORMAT, TT_ERR_LIMIT: a stream that cannot be read on. */
TtStatus tt_vfu_get_head(TtVfuHead *h, const uint8_t *bytes, TtDiag *diag);
/* Is @h the reply to message @id, a @command? Its payload is @n bytes at least,
 * unless it is an error. */
TtStatus tt_vfu_check_reply(const TtVfuHead *h, uint16_t id, uint16_t command,
                            size_t n, TtDiag *diag);
/* Prose for a command, static. */
const char *tt_vfu_command_name(uint16_t command);

/* ---- version ---- */
/* The payload; returns its length, at most TT_VFU_TEXT_MAX. */
size_t tt_vfu_put_version(uint8_t *out);
/* What the server says: its text follows in @text, which ends with a NUL. */
TtStatus tt_vfu_get_version(const uint8_t *bytes, size_t len, const char **text,
                            TtDiag *diag);
/* What it takes. @fds, @data: what it said; -1: nothing, which means 1 and 1 MiB. */
TtStatus tt_vfu_check_limits(int64_t *fds, int64_t *data, TtDiag *diag);

/* ---- what there is ---- */
typedef struct TtVfuDevice {
    uint32_t n_regions, n_irqs;
} TtVfuDevice;

typedef struct TtVfuRegion {
    bool can_read, can_write;
    uint64_t size;                  /* 0: there is none */
} TtVfuRegion;

#define TT_VFU_DEVICE_BYTES 16
size_t tt_vfu_put_device_info(uint8_t *out);
TtStatus tt_vfu_get_device_info(TtVfuDevice *d, const uint8_t *bytes, size_t len,
                                TtDiag *diag);
#define TT_VFU_REGION_BYTES 32
size_t tt_vfu_put_region_info(uint8_t *out, uint32_t index);
TtStatus tt_vfu_get_region_info(TtVfuRegion *r, uint32_t index, const uint8_t *bytes,
                                size_t len, TtDiag *diag);
#define TT_VFU_IRQ_BYTES 16
size_t tt_vfu_put_irq_info(uint8_t *out, uint32_t index);
TtStatus tt_vfu_get_irq_info(uint32_t *count, uint32_t index, const uint8_t *bytes,
                             size_t len, TtDiag *diag);

/* ---- accesses ---- */
#define TT_VFU_ACCESS_BYTES 16
size_t tt_vfu_put_access(uint8_t *out, uint32_t region, uint64_t offset,
                         uint32_t count);
/* The reply to a read: @data, @count bytes, in @bytes. To a write: @data NULL. */
TtStatus tt_vfu_get_access(const uint8_t **data, uint32_t region, uint64_t offset,
                           uint32_t count, const uint8_t *bytes, size_t len,
                           TtDiag *diag);

/* ---- interrupts ---- */
enum {
    TT_VFU_IRQ_NO_DATA = 1, TT_VFU_IRQ_EVENTFD = 4,
    TT_VFU_IRQ_MASK = 8, TT_VFU_IRQ_UNMASK = 16, TT_VFU_IRQ_TRIGGER = 32,
};
#define TT_VFU_SET_IRQS_BYTES 20
size_t tt_vfu_put_set_irqs(uint8_t *out, uint32_t flags, uint32_t index,
                           uint32_t start, uint32_t count);

/* ---- DMA ---- */
#define TT_VFU_MAP_BYTES 32
size_t tt_vfu_put_dma_map(uint8_t *out, uint64_t addr, uint64_t size, uint64_t offset,
                          bool can_write);
#define TT_VFU_UNMAP_BYTES 24
size_t tt_vfu_put_dma_unmap(uint8_t *out, uint64_t addr, uint64_t size);

typedef struct TtVfuDma {
    bool is_write;
    uint64_t addr;
    uint32_t count;
    const uint8_t *data;            /* of a write: in the message */
} TtVfuDma;

#define TT_VFU_DMA_BYTES 16
/* A request of the server's. What is wrong with it is for its reply: EINVAL. */
TtStatus tt_vfu_get_dma(TtVfuDma *d, const TtVfuHead *h, const uint8_t *bytes,
                        size_t len, TtDiag *diag);
size_t tt_vfu_put_dma_reply(uint8_t *out, const TtVfuDma *d);

/* What the server was told of guest memory, by address; they do not overlap. */
typedef struct TtVfuRange {
    uint64_t addr, size;
    bool can_write;
    uint8_t *host;                  /* where its bytes are; NULL: not said */
} TtVfuRange;

typedef struct TtVfuRanges {
    TtVfuRange *items;              /* @n of them; tt_vfu_ranges_clear frees */
    unsigned n;
} TtVfuRanges;

/* TT_ERR_INVALID: empty, past the end, or over another; TT_ERR_LIMIT: too many. */
TtStatus tt_vfu_ranges_add(TtVfuRanges *r, uint64_t addr, uint64_t size,
                           bool can_write, TtDiag *diag);
/* False: there is no such range, exactly. */
bool tt_vfu_ranges_remove(TtVfuRanges *r, uint64_t addr, uint64_t size);
/* Do they cover all of it? Neighbours count as one. */
bool tt_vfu_ranges_hold(const TtVfuRanges *r, uint64_t addr, uint64_t size,
                        bool is_write);
/* There is a range that begins at @addr. @host: its bytes, as long as it is here. */
void tt_vfu_ranges_set_host(TtVfuRanges *r, uint64_t addr, uint8_t *host);
/* Where the bytes of all of it are; NULL: not in one range that says it and allows it. */
uint8_t *tt_vfu_ranges_host(const TtVfuRanges *r, uint64_t addr, uint64_t size,
                            bool is_write);
void tt_vfu_ranges_clear(TtVfuRanges *r);

/* ---- the device's configuration space ---- */
typedef struct TtVfuBar {
    uint64_t size;                  /* that the guest sees: a power of two; 0: none */
    bool is_io, is_64, is_prefetchable;
} TtVfuBar;

typedef struct TtVfuCap {
    uint8_t id, at, len;
} TtVfuCap;

#define TT_VFU_CAPS_MAX 48

/* What we make of it: which device the guest sees, and what is emulated here. */
typedef struct TtVfuPlan {
    uint8_t pin;                    /* 0: no INTx */
    TtVfuBar bars[TT_VFU_BARS];
    struct {
        uint8_t at;                 /* 0: none */
        uint32_t n;
        bool is_64, has_masks;
    } msi;
    struct {
        uint8_t at;                 /* 0: none */
        uint32_t n;
        uint8_t table_bar, pba_bar;
        uint32_t table_at, pba_at;
    } msix;
    TtVfuCap caps[TT_VFU_CAPS_MAX]; /* others that the guest may see */
    unsigned n_caps;
} TtVfuPlan;

/* @irqs: how many vectors the server has of each kind. */
TtStatus tt_vfu_plan(TtVfuPlan *p, const uint8_t *config,
                     const TtVfuRegion regions[TT_VFU_REGIONS],
                     const uint32_t irqs[TT_VFU_IRQS], TtDiag *diag);

#endif
