/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shadow memory of a device whose code is not in this process. It never gets guest RAM,
 * where its writes could not be logged. It gets memory of its own for each range, and
 * the bytes that differ are copied at moments that a recording sees.
 *
 * QEMU's dirty bitmap tells which pages the guest wrote (that of migration, which a VM
 * with such a device cannot do). Nothing reports which pages the device wrote. For
 * another process they are among those that the shadow's file holds: it has holes where
 * nobody ever wrote. A device of this host has its pages pinned, and all are compared.
 */
#include "qemu/osdep.h"
#include "tt-shadows-int.h"
#include "exec/ramblock.h"
#include "qemu/bitmap.h"
#include "qemu/timer.h"
#include "tt/hooks.h"

TtShadowsAll tt_shadows_all = QLIST_HEAD_INITIALIZER(tt_shadows_all);

static uint64_t pages(const ShadowRange *r)
{
    return tt_shadow_pages(r->is.size);
}

static size_t bytes_of(const ShadowRange *r, uint64_t page)
{
    return MIN(TT_SHADOW_PAGE, r->is.size - page * TT_SHADOW_PAGE);
}

/* ---- from the guest ---- */

/* Most of guest RAM was not written: looked at by the piece. */
#define PIECE_PAGES 1024

static void collect_piece(ShadowRange *r, DirtyBitmapSnapshot *snap, uint64_t from,
                          uint64_t to)
{
    for (uint64_t page = from; page < to; page++) {
        if (memory_region_snapshot_get_dirty(r->is.mr, snap,
                                             r->is.at + page * TT_SHADOW_PAGE,
                                             bytes_of(r, page))) {
            set_bit(page, r->written);
        }
    }
}

/* The dirty pages of @mr, for all that have ranges of it. */
static void collect(MemoryRegion *mr)
{
    DirtyBitmapSnapshot *snap = memory_region_snapshot_and_clear_dirty(
        mr, 0, mr->ram_block->used_length, DIRTY_MEMORY_MIGRATION);
    ShadowRange *r;

    QLIST_FOREACH(r, &tt_shadows_all, next_of_all) {
        if (r->is.mr != mr) {
            continue;
        }
        for (uint64_t page = 0; page < pages(r); page += PIECE_PAGES) {
            uint64_t at = page * TT_SHADOW_PAGE;

            if (memory_region_snapshot_get_dirty(
                    mr, snap, r->is.at + at,
                    MIN(PIECE_PAGES * TT_SHADOW_PAGE, r->is.size - at))) {
                collect_piece(r, snap, page, MIN(page + PIECE_PAGES, pages(r)));
            }
        }
    }
    g_free(snap);
}

static bool is_among(MemoryRegion *const *some, size_t n, const MemoryRegion *mr)
{
    for (size_t i = 0; i < n; i++) {
        if (some[i] == mr) {
            return true;
        }
    }
    return false;
}

static void collect_all(TtShadows *s)
{
    MemoryRegion *done[8] = { NULL };   /* once more does no harm */
    unsigned n = 0;
    ShadowRange *r;

    QLIST_FOREACH(r, &s->ranges, next) {
        if (!is_among(done, ARRAY_SIZE(done), r->is.mr)) {
            done[n++ % ARRAY_SIZE(done)] = r->is.mr;
            collect(r->is.mr);
        }
    }
}

static uint8_t *guest_of(const ShadowRange *r)
{
    return (uint8_t *)memory_region_get_ram_ptr(r->is.mr) + r->is.at;
}

void tt_shadow_range_out(ShadowRange *r)
{
    const uint8_t *guest = guest_of(r);
    uint64_t n = pages(r);

    for (uint64_t page = find_first_bit(r->written, n); page < n;
         page = find_next_bit(r->written, n, page + 1)) {
        uint64_t at = page * TT_SHADOW_PAGE;

        tt_shadow_out(guest + at, r->shadow + at, r->base + at, bytes_of(r, page));
    }
    bitmap_zero(r->written, n);
}

void tt_shadows_out(TtShadows *s)
{
    ShadowRange *r;

    collect_all(s);
    QLIST_FOREACH(r, &s->ranges, next) {
        tt_shadow_range_out(r);
    }
}

/* ---- from the device ---- */

typedef struct Put {
    ShadowRange *r;
    uint64_t at;                    /* the page, in the range */
    size_t from, to;                /* what was put there and not yet told of */
} Put;

/* An event costs some 9 bytes; what lies between is as it was. */
#define GAP_BYTES 16

/* Looked at first: notes shall tell of whole pages, not of runs of bytes. */
static bool differs(const ShadowRange *r, uint64_t at)
{
    return memcmp(r->shadow + at, r->base + at, bytes_of(r, at / TT_SHADOW_PAGE));
}

/* As at the DMA of an emulated device: all that have translated or log these bytes are
 * told. */
static void told(Put *p)
{
    if (p->to > p->from) {
        tt_ram_changed(p->r->is.mr, p->r->is.at + p->at + p->from, p->to - p->from);
    }
}

static void put(void *opaque, size_t at, const uint8_t *bytes, size_t n)
{
    Put *p = opaque;

    memcpy(guest_of(p->r) + p->at + at, bytes, n);
    if (at > p->to + GAP_BYTES) {
        told(p);
        p->from = at;
    }
    p->to = at + n;
}

static void page_in(TtShadows *s, ShadowRange *r, uint64_t at)
{
    Put p = { .r = r, .at = at };

    s->n_pages++;
    if (differs(r, at)) {
        size_t n = bytes_of(r, at / TT_SHADOW_PAGE);

        if (s->changed) {
            s->changed(s->opaque, r->is.addr + at, n);
        }
        s->n_bytes += tt_shadow_in(r->shadow + at, r->base + at, n, put, &p);
        told(&p);
    }
}

/* From *@from on: the next part that may hold anything. False: there is none. */
static bool next_data(const ShadowRange *r, uint64_t *from, uint64_t *to)
{
    off_t data, hole;

    if (*from >= r->is.size) {
        return false;
    }
    if (r->fd < 0) {
        *to = r->is.size;
        return true;
    }
    data = lseek(r->fd, r->file_at + *from, SEEK_DATA);
    if (data < 0 || data >= r->file_at + r->is.size) {
        return false;
    }
    hole = lseek(r->fd, data, SEEK_HOLE);
    if (hole < 0) {
        return false;
    }
    *from = QEMU_ALIGN_DOWN(data - r->file_at, TT_SHADOW_PAGE);
    *to = MIN(hole - r->file_at, r->is.size);
    return true;
}

void tt_shadow_range_in(TtShadows *s, ShadowRange *r)
{
    uint64_t from = 0, to = 0;

    while (!s->is_lost && next_data(r, &from, &to)) {
        for (; from < to; from += TT_SHADOW_PAGE) {
            page_in(s, r, from);
        }
    }
}

void tt_shadows_in(TtShadows *s)
{
    int64_t began = get_clock();
    ShadowRange *r;

    QLIST_FOREACH(r, &s->ranges, next) {
        if (r->is.can_write) {
            tt_shadow_range_in(s, r);
        }
    }
    s->ns += get_clock() - began;
    s->n_calls++;
}

void tt_shadows_drop(TtShadows *s)
{
    ShadowRange *r;

    QLIST_FOREACH(r, &s->ranges, next) {
        uint64_t from = 0, to = 0;

        while (next_data(r, &from, &to)) {
            for (; from < to; from += TT_SHADOW_PAGE) {
                if (differs(r, from)) {
                    memcpy(r->shadow + from, r->base + from,
                           bytes_of(r, from / TT_SHADOW_PAGE));
                }
            }
        }
    }
}

void tt_shadows_lost(TtShadows *s)
{
    s->is_lost = true;
}

void tt_shadows_stats(const TtShadows *s, uint64_t out[TT_SHADOWS_STATS])
{
    out[0] = s->n_pages;
    out[1] = s->n_bytes;
    out[2] = s->ns;
    out[3] = s->n_calls;
}
