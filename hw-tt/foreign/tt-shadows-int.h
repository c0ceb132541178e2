/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the files of shadow memory. Context: the BQL is held.
 */
#ifndef TT_SHADOWS_INT_H
#define TT_SHADOWS_INT_H

#include "hw-tt/foreign/tt-shadows.h"
#include "hw-tt/vfio-user/tt-shadow.h"
#include "qemu/bitmap.h"
#include "qemu/interval-tree.h"
#include "qemu/queue.h"

/* Device addresses that one descriptor stands for: ranges lie in it. */
typedef struct ShadowWindow {
    uint64_t addr, size;
    int fd;
    uint8_t *shadow, *base;
    IntervalTreeRoot ranges;        /* by device addresses */
    QLIST_ENTRY(ShadowWindow) next;
} ShadowWindow;

typedef struct ShadowRange {
    TtShadowsRange is;
    ShadowWindow *window;           /* NULL: shadow and base are its own */
    IntervalTreeNode node;          /* in the window */
    int fd;                         /* its file, where it begins there; -1: all in use */
    uint64_t file_at;
    uint8_t *shadow, *base;
    unsigned long *written;         /* pages, by the guest, since they went out */
    QLIST_ENTRY(ShadowRange) next;
    QLIST_ENTRY(ShadowRange) next_of_all;
} ShadowRange;

struct TtShadows {
    TtShadowsChanged *changed;
    void *opaque;
    bool is_lost;                   /* its device is */
    QLIST_HEAD(, ShadowRange) ranges;
    QLIST_HEAD(, ShadowWindow) windows;
    uint64_t mapped;                /* bytes, in all windows */
    uint64_t n_pages, n_bytes, ns, n_calls;
};

/* The bitmap of what the guest wrote is cleared for all of a block, and for all devices
 * at once. */
typedef QLIST_HEAD(TtShadowsAll, ShadowRange) TtShadowsAll;
extern TtShadowsAll tt_shadows_all;

static inline uint64_t tt_shadow_pages(uint64_t size)
{
    return DIV_ROUND_UP(size, TT_SHADOW_PAGE);
}

/* A shadow with a file, and what both sides had last. False: *@errp; free them all the
 * same. */
bool tt_shadow_with_file(uint64_t size, uint8_t **shadow, uint8_t **base, int *fd,
                         Error **errp);
void tt_shadow_memory_free(uint8_t *shadow, uint8_t *base, uint64_t size, int fd);
ShadowRange *tt_shadow_range_new(const TtShadowsRange *range);
/* All of it is to go out. */
void tt_shadow_range_insert(TtShadows *s, ShadowRange *r);
/* @takes: what the device wrote there last comes in before. */
void tt_shadow_range_remove(TtShadows *s, ShadowRange *r, bool takes);
void tt_shadow_range_out(ShadowRange *r);
void tt_shadow_range_in(TtShadows *s, ShadowRange *r);

#endif
