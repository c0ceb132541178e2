/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Windows: device addresses behind a virtual IOMMU, in which the guest's driver maps and
 * unmaps single pages.
 *
 * A server has one descriptor for a window. Servers know few ranges (libvfio-user: 16),
 * and so a mapping costs them nothing. A page of a window that is not mapped is a hole:
 * a server that touches it all the same finds zeros, and what it writes goes nowhere.
 */
#include "qemu/osdep.h"
#include "tt-shadows-int.h"
#include "qemu/cutils.h"
#include "qemu/madvise.h"

/* A larger range may have holes, which need not be looked at. */
#define SMALL_BYTES (16 * TT_SHADOW_PAGE)
/* At a time: of what a server may fill with anything. */
#define STRAY_STRETCHES 64
#define STRAY_BYTES (512 * TT_SHADOW_PAGE)

int tt_shadows_add_window(TtShadows *s, uint64_t addr, uint64_t size, Error **errp)
{
    ShadowWindow *w = g_new0(ShadowWindow, 1);

    w->addr = addr;
    w->size = size;
    w->fd = -1;
    if (!tt_shadow_with_file(size, &w->shadow, &w->base, &w->fd, errp)) {
        tt_shadow_memory_free(w->shadow, w->base, size, w->fd);
        g_free(w);
        return -1;
    }
    qemu_madvise(w->shadow, size, QEMU_MADV_DONTDUMP);  /* would fill its holes */
    QLIST_INSERT_HEAD(&s->windows, w, next);
    return w->fd;
}

static ShadowRange *first_range(ShadowWindow *w, uint64_t first, uint64_t last)
{
    IntervalTreeNode *n = interval_tree_iter_first(&w->ranges, first, last);

    return n ? container_of(n, ShadowRange, node) : NULL;
}

static void insert_node(ShadowRange *r)
{
    r->node.start = r->is.addr;
    r->node.last = r->is.addr + (r->is.size - 1);
    interval_tree_insert(&r->node, &r->window->ranges);
}

/* Nobody has these pages: they are zero on both sides. */
static void make_hole(ShadowWindow *w, uint64_t at, uint64_t size)
{
    if (fallocate(w->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, size)) {
        memset(w->shadow + at, 0, size);
    }
    if (madvise(w->base + at, size, MADV_DONTNEED)) {
        memset(w->base + at, 0, size);          /* it is locked */
    }
}

static void remove_range(TtShadows *s, ShadowRange *r, bool takes)
{
    uint64_t at = r->is.addr - r->window->addr, size = r->is.size;
    ShadowWindow *w = r->window;

    interval_tree_remove(&r->node, &w->ranges);
    s->mapped -= size;
    tt_shadow_range_remove(s, r, takes);
    make_hole(w, at, size);
}

/* The part of @r from @addr on becomes a range of its own. */
static void split(TtShadows *s, ShadowRange *r, uint64_t addr)
{
    ShadowRange *part = tt_shadow_range_new(&r->is);
    uint64_t size = addr - r->is.addr;

    part->is.addr = addr;
    part->is.at += size;
    part->is.size -= size;
    part->window = r->window;
    part->fd = r->fd;
    part->file_at = r->file_at + size;
    part->shadow = r->shadow + size;
    part->base = r->base + size;
    tt_shadow_range_insert(s, part);
    bitmap_copy_with_src_offset(part->written, r->written, size / TT_SHADOW_PAGE,
                                tt_shadow_pages(part->is.size));
    interval_tree_remove(&r->node, &r->window->ranges);
    r->is.size = size;
    insert_node(r);
    insert_node(part);
}

static void unmap(TtShadows *s, ShadowWindow *w, uint64_t first, uint64_t last,
                  bool takes)
{
    ShadowRange *r;

    while (r = first_range(w, first, last), r) {
        if (r->is.addr < first) {
            split(s, r, first);
            continue;
        }
        if (r->node.last > last) {
            split(s, r, last + 1);
        }
        remove_range(s, r, takes);
    }
}

void tt_shadows_unmap(TtShadows *s, uint64_t first, uint64_t last, bool takes)
{
    ShadowWindow *w;

    first = QEMU_ALIGN_DOWN(first, TT_SHADOW_PAGE);
    last |= TT_SHADOW_PAGE - 1;
    QLIST_FOREACH(w, &s->windows, next) {
        uint64_t from = MAX(first, w->addr), to = MIN(last, w->addr + (w->size - 1));

        if (from <= to) {
            unmap(s, w, from, to, takes);
        }
    }
}

void tt_shadows_remove_window(TtShadows *s, uint64_t addr, bool takes)
{
    ShadowWindow *w, *next;

    QLIST_FOREACH_SAFE(w, &s->windows, next, next) {
        if (w->addr == addr) {
            unmap(s, w, w->addr, w->addr + (w->size - 1), takes);
            QLIST_REMOVE(w, next);
            tt_shadow_memory_free(w->shadow, w->base, w->size, w->fd);
            g_free(w);
        }
    }
}

static ShadowWindow *window_of(TtShadows *s, uint64_t addr, uint64_t size)
{
    ShadowWindow *w;

    QLIST_FOREACH(w, &s->windows, next) {
        if (addr >= w->addr && size <= w->size && addr - w->addr <= w->size - size) {
            return w;
        }
    }
    return NULL;
}

/* What a server wrote there while nobody had it. */
static void clean(ShadowWindow *w, uint64_t at, uint64_t size)
{
    off_t data = lseek(w->fd, at, SEEK_DATA);

    if (data >= 0 && data < at + size) {
        make_hole(w, at, size);
    }
}

bool tt_shadows_map(TtShadows *s, const TtShadowsRange *range, bool shows)
{
    ShadowWindow *w = window_of(s, range->addr, range->size);
    ShadowRange *r;
    uint64_t at;

    g_assert(range->size && !((range->addr | range->size) & (TT_SHADOW_PAGE - 1)));
    if (!w) {
        return false;
    }
    g_assert(!first_range(w, range->addr, range->addr + (range->size - 1)));
    at = range->addr - w->addr;
    clean(w, at, range->size);
    r = tt_shadow_range_new(range);
    r->window = w;
    r->fd = range->size > SMALL_BYTES ? w->fd : -1;
    r->file_at = at;
    r->shadow = w->shadow + at;
    r->base = w->base + at;
    tt_shadow_range_insert(s, r);
    insert_node(r);
    s->mapped += range->size;
    if (shows) {
        tt_shadow_range_out(r);
    }
    return true;
}

uint64_t tt_shadows_mapped(const TtShadows *s)
{
    return s->mapped;
}

/* From @at to @end there is data in the file: what no range has of it goes. True: it was
 * not only zero, which huge pages and readers leave. */
static bool clean_between(ShadowWindow *w, uint64_t at, uint64_t end, unsigned *left,
                          uint64_t *where)
{
    bool found = false;

    while (at < end && *left) {
        ShadowRange *r = first_range(w, w->addr + at, w->addr + (end - 1));
        uint64_t to = r ? MAX(r->is.addr - w->addr, at) : end;

        if (to > at) {
            if (!buffer_is_zero(w->shadow + at, MIN(to - at, STRAY_BYTES))) {
                *where = w->addr + at;
                found = true;
            }
            make_hole(w, at, to - at);
            --*left;
        }
        at = r ? r->is.addr - w->addr + r->is.size : to;
    }
    return found;
}

bool tt_shadows_stray(TtShadows *s, uint64_t *addr)
{
    unsigned left = STRAY_STRETCHES;
    bool found = false;
    ShadowWindow *w;

    QLIST_FOREACH(w, &s->windows, next) {
        off_t at = 0, end;

        while (left && (at = lseek(w->fd, at, SEEK_DATA)) >= 0 &&
               (end = lseek(w->fd, at, SEEK_HOLE)) >= 0) {
            at = QEMU_ALIGN_DOWN(at, TT_SHADOW_PAGE);
            end = MIN(QEMU_ALIGN_UP(end, TT_SHADOW_PAGE), (off_t)w->size);
            found |= clean_between(w, at, end, &left, addr);
            at = end;
        }
    }
    return found;
}
