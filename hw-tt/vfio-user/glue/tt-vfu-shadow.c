/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shadow memory of a vfio-user device. The server never gets guest RAM: what another
 * process writes there nobody can log. It gets memory of its own for each range, and
 * the bytes that differ are carried over at moments that a recording sees.
 *
 * Which pages the guest wrote, QEMU's dirty bitmap tells (that of migration, which a VM
 * with such a device cannot do). Which pages the server wrote nobody tells: those that
 * the shadow's file holds are compared; it has holes where nobody ever wrote.
 */
#include "qemu/osdep.h"
#include "hw-tt/vfio-user/glue/tt-vfu-shadow.h"
#include "hw-tt/vfio-user/tt-shadow.h"
#include "exec/ramblock.h"
#include "qapi/error.h"
#include "qemu/bitmap.h"
#include "qemu/memfd.h"
#include "qemu/timer.h"

typedef struct ShadowRange {
    uint64_t addr, size;
    MemoryRegion *mr;
    uint64_t at;                    /* in mr */
    bool can_write;
    int fd;
    uint8_t *shadow, *base;
    unsigned long *written;         /* pages, by the guest, since they went out */
    QLIST_ENTRY(ShadowRange) next;
    QLIST_ENTRY(ShadowRange) next_of_all;
} ShadowRange;

struct TtVfuShadows {
    AddressSpace *as;
    TtVfuChanged *changed;
    void *opaque;
    QLIST_HEAD(, ShadowRange) ranges;
    uint64_t n_pages, n_bytes, ns, n_calls;
};

/* The bitmap is cleared for all of a block, and for all devices at once. */
static QLIST_HEAD(, ShadowRange) all = QLIST_HEAD_INITIALIZER(all);
static unsigned n_users;

static uint64_t pages(const ShadowRange *r)
{
    return DIV_ROUND_UP(r->size, TT_SHADOW_PAGE);
}

static size_t bytes_of(const ShadowRange *r, uint64_t page)
{
    return MIN(TT_SHADOW_PAGE, r->size - page * TT_SHADOW_PAGE);
}

/* ---- from the guest ---- */

/* Most of guest RAM was not written: looked at by the piece. */
#define PIECE_PAGES 1024

static void collect_piece(ShadowRange *r, DirtyBitmapSnapshot *snap, uint64_t from,
                          uint64_t to)
{
    for (uint64_t page = from; page < to; page++) {
        if (memory_region_snapshot_get_dirty(r->mr, snap,
                                             r->at + page * TT_SHADOW_PAGE,
                                             bytes_of(r, page))) {
            set_bit(page, r->written);
        }
    }
}

/* What is dirty of @mr, for everybody who has ranges of it. */
static void collect(MemoryRegion *mr)
{
    DirtyBitmapSnapshot *snap = memory_region_snapshot_and_clear_dirty(
        mr, 0, mr->ram_block->used_length, DIRTY_MEMORY_MIGRATION);
    ShadowRange *r;

    QLIST_FOREACH(r, &all, next_of_all) {
        if (r->mr != mr) {
            continue;
        }
        for (uint64_t page = 0; page < pages(r); page += PIECE_PAGES) {
            uint64_t at = page * TT_SHADOW_PAGE;

            if (memory_region_snapshot_get_dirty(
                    mr, snap, r->at + at,
                    MIN(PIECE_PAGES * TT_SHADOW_PAGE, r->size - at))) {
                collect_piece(r, snap, page, MIN(page + PIECE_PAGES, pages(r)));
            }
        }
    }
    g_free(snap);
}

static void collect_all(TtVfuShadows *s)
{
    MemoryRegion *last = NULL;
    ShadowRange *r;

    QLIST_FOREACH(r, &s->ranges, next) {
        /* Ranges of one region stand together mostly; once more does no harm. */
        if (r->mr != last) {
            last = r->mr;
            collect(last);
        }
    }
}

void tt_vfu_shadows_out(TtVfuShadows *s)
{
    ShadowRange *r;

    collect_all(s);
    QLIST_FOREACH(r, &s->ranges, next) {
        const uint8_t *guest = memory_region_get_ram_ptr(r->mr) + r->at;
        uint64_t n = pages(r);

        for (uint64_t page = find_first_bit(r->written, n); page < n;
             page = find_next_bit(r->written, n, page + 1)) {
            uint64_t at = page * TT_SHADOW_PAGE;

            tt_shadow_out(guest + at, r->shadow + at, r->base + at, bytes_of(r, page));
        }
        bitmap_zero(r->written, n);
    }
}

/* ---- from the device ---- */

typedef struct Put {
    TtVfuShadows *s;
    uint64_t addr;
} Put;

/* Looked at first: notes shall tell of whole pages, not of runs of bytes. */
static bool differs(const ShadowRange *r, uint64_t at)
{
    return memcmp(r->shadow + at, r->base + at, bytes_of(r, at / TT_SHADOW_PAGE));
}

static void put(void *opaque, size_t at, const uint8_t *bytes, size_t n)
{
    Put *p = opaque;
    MemTxAttrs attrs = { .memory = 1 };

    address_space_write(p->s->as, p->addr + at, attrs, bytes, n);
}

static void range_in(TtVfuShadows *s, ShadowRange *r)
{
    off_t from = 0, to;

    while (from < r->size && (from = lseek(r->fd, from, SEEK_DATA)) >= 0) {
        to = lseek(r->fd, from, SEEK_HOLE);
        if (to < 0) {
            return;
        }
        from = QEMU_ALIGN_DOWN(from, TT_SHADOW_PAGE);
        for (; from < to && from < r->size; from += TT_SHADOW_PAGE) {
            Put p = { s, r->addr + from };

            s->n_pages++;
            if (differs(r, from)) {
                size_t n = bytes_of(r, from / TT_SHADOW_PAGE);

                s->changed(s->opaque, p.addr, n);
                s->n_bytes += tt_shadow_in(r->shadow + from, r->base + from, n, put,
                                           &p);
            }
        }
    }
}

void tt_vfu_shadows_in(TtVfuShadows *s)
{
    int64_t began = get_clock();
    ShadowRange *r;

    QLIST_FOREACH(r, &s->ranges, next) {
        if (r->can_write) {
            range_in(s, r);
        }
    }
    s->ns += get_clock() - began;
    s->n_calls++;
}

void tt_vfu_shadows_stats(const TtVfuShadows *s, uint64_t out[4])
{
    out[0] = s->n_pages;
    out[1] = s->n_bytes;
    out[2] = s->ns;
    out[3] = s->n_calls;
}

/* ---- ranges ---- */

static void *map_base(uint64_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

static void range_free(ShadowRange *r)
{
    if (r->shadow) {
        qemu_memfd_free(r->shadow, r->size, r->fd);
    }
    if (r->base) {
        munmap(r->base, r->size);
    }
    g_free(r->written);
    g_free(r);
}

int tt_vfu_shadows_add(TtVfuShadows *s, MemoryRegionSection *section, uint64_t size,
                       Error **errp)
{
    ShadowRange *r = g_new0(ShadowRange, 1);

    r->addr = section->offset_within_address_space;
    r->size = size;
    r->mr = section->mr;
    r->at = section->offset_within_region;
    r->can_write = !section->readonly;
    /* Sealed: a server that makes it shorter would end us. */
    r->shadow = qemu_memfd_alloc("tt-vfio-user", size,
                                 F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL, &r->fd,
                                 errp);
    r->base = r->shadow ? map_base(size) : NULL;
    if (!r->base) {
        if (r->shadow) {
            error_setg(errp, "no memory for a copy of %" PRIu64 " bytes", size);
        }
        range_free(r);
        return -1;
    }
    r->written = bitmap_new(pages(r));
    bitmap_set(r->written, 0, pages(r));
    QLIST_INSERT_HEAD(&s->ranges, r, next);
    QLIST_INSERT_HEAD(&all, r, next_of_all);
    return r->fd;
}

void tt_vfu_shadows_remove(TtVfuShadows *s, uint64_t addr)
{
    ShadowRange *r;

    QLIST_FOREACH(r, &s->ranges, next) {
        if (r->addr == addr) {
            QLIST_REMOVE(r, next);
            QLIST_REMOVE(r, next_of_all);
            range_free(r);
            return;
        }
    }
}

TtVfuShadows *tt_vfu_shadows_new(AddressSpace *as, TtVfuChanged *changed, void *opaque,
                                 Error **errp)
{
    TtVfuShadows *s;

    if (!n_users && !memory_global_dirty_log_start(GLOBAL_DIRTY_LIMIT, errp)) {
        return NULL;
    }
    n_users++;
    s = g_new0(TtVfuShadows, 1);
    s->as = as;
    s->changed = changed;
    s->opaque = opaque;
    return s;
}

void tt_vfu_shadows_free(TtVfuShadows *s)
{
    if (!s) {
        return;
    }
    while (!QLIST_EMPTY(&s->ranges)) {
        tt_vfu_shadows_remove(s, QLIST_FIRST(&s->ranges)->addr);
    }
    if (!--n_users) {
        memory_global_dirty_log_stop(GLOBAL_DIRTY_LIMIT);
    }
    g_free(s);
}
