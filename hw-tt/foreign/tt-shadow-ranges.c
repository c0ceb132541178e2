/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which memory has a shadow: ranges that last, and windows of device addresses behind a
 * virtual IOMMU, in which the guest's driver maps and unmaps single pages.
 *
 * A server has one descriptor for a window. Servers know few ranges (libvfio-user: 16),
 * and so a mapping costs them nothing. A page of a window that is not mapped is a hole:
 * a server that touches it all the same finds zeros, and what it writes goes nowhere.
 */
#include "qemu/osdep.h"
#include "tt-shadows-int.h"
#include "exec/ramblock.h"
#include "qapi/error.h"
#include "qemu/bitmap.h"
#include "qemu/memfd.h"
#include "system/system.h"

static unsigned n_users;

static void *map_memory(uint64_t size, int flags)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
                   MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

/* A shadow with a file, and what both sides had last. */
static bool with_file(uint64_t size, uint8_t **shadow, uint8_t **base, int *fd,
                      Error **errp)
{
    /* Sealed: a server that makes it shorter would end us. */
    *shadow = qemu_memfd_alloc("tt-shadow", size,
                               F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL, fd, errp);
    *base = *shadow ? map_memory(size, MAP_PRIVATE) : NULL;
    if (*shadow && !*base) {
        error_setg(errp, "not enough memory for a copy of %" PRIu64 " bytes", size);
    }
    return *base;
}

static void memory_free(uint8_t *shadow, uint8_t *base, uint64_t size, int fd)
{
    if (shadow) {
        qemu_memfd_free(shadow, size, fd);
    }
    if (base) {
        munmap(base, size);
    }
}

static void range_free(ShadowRange *r)
{
    if (!r->window) {
        memory_free(r->shadow, r->base, r->is.size, r->fd);
    }
    if (r->written) {
        memory_region_unref(r->is.mr);
    }
    g_free(r->written);
    g_free(r);
}

/* All of it is to go out. */
static void range_insert(TtShadows *s, ShadowRange *r)
{
    uint64_t n = tt_shadow_pages(r->is.size);

    memory_region_ref(r->is.mr);
    r->written = bitmap_new(n);
    bitmap_set(r->written, 0, n);
    QLIST_INSERT_HEAD(&s->ranges, r, next);
    QLIST_INSERT_HEAD(&tt_shadows_all, r, next_of_all);
}

static ShadowRange *range_new(const TtShadowsRange *range)
{
    ShadowRange *r = g_new0(ShadowRange, 1);

    r->is = *range;
    r->fd = -1;
    return r;
}

int tt_shadows_add(TtShadows *s, const TtShadowsRange *range, Error **errp)
{
    ShadowRange *r = range_new(range);

    if (!with_file(r->is.size, &r->shadow, &r->base, &r->fd, errp)) {
        range_free(r);
        return -1;
    }
    range_insert(s, r);
    return r->fd;
}

void *tt_shadows_add_here(TtShadows *s, const TtShadowsRange *range, Error **errp)
{
    ShadowRange *r = range_new(range);

    r->shadow = map_memory(r->is.size, MAP_SHARED);
    r->base = r->shadow ? map_memory(r->is.size, MAP_PRIVATE) : NULL;
    if (!r->base) {
        error_setg(errp, "not enough memory for a copy of %" PRIu64 " bytes", r->is.size);
        range_free(r);
        return NULL;
    }
    range_insert(s, r);
    tt_shadow_range_out(r);
    return r->shadow;
}

static void remove_one(TtShadows *s, ShadowRange *r, bool takes)
{
    if (takes && r->is.can_write) {
        tt_shadow_range_in(s, r);
    }
    QLIST_REMOVE(r, next);
    QLIST_REMOVE(r, next_of_all);
    range_free(r);
}

void tt_shadows_remove(TtShadows *s, uint64_t addr, uint64_t size, bool takes)
{
    ShadowRange *r, *next;

    QLIST_FOREACH_SAFE(r, &s->ranges, next, next) {
        if (r->is.addr >= addr && r->is.addr - addr < size) {
            remove_one(s, r, takes);
        }
    }
}

/* ---- windows ---- */

static void window_free(ShadowWindow *w)
{
    memory_free(w->shadow, w->base, w->size, w->fd);
    g_free(w->mapped);
    g_free(w);
}

int tt_shadows_add_window(TtShadows *s, uint64_t addr, uint64_t size, Error **errp)
{
    ShadowWindow *w = g_new0(ShadowWindow, 1);

    w->addr = addr;
    w->size = size;
    w->fd = -1;
    if (!with_file(size, &w->shadow, &w->base, &w->fd, errp)) {
        window_free(w);
        return -1;
    }
    w->mapped = bitmap_new(tt_shadow_pages(size));
    QLIST_INSERT_HEAD(&s->windows, w, next);
    return w->fd;
}

void tt_shadows_remove_window(TtShadows *s, uint64_t addr, bool takes)
{
    ShadowWindow *w, *next;

    QLIST_FOREACH_SAFE(w, &s->windows, next, next) {
        if (w->addr == addr) {
            tt_shadows_remove(s, w->addr, w->size, takes);
            QLIST_REMOVE(w, next);
            window_free(w);
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

/* Nobody has these pages: they are zero on both sides. */
static void make_hole(ShadowWindow *w, uint64_t at, uint64_t size)
{
    /* Neither can fail there. */
    fallocate(w->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, size);
    madvise(w->base + at, size, MADV_DONTNEED);
}

bool tt_shadows_map(TtShadows *s, const TtShadowsRange *range)
{
    ShadowWindow *w = window_of(s, range->addr, range->size);
    ShadowRange *r;
    uint64_t at;

    if (!w) {
        return false;
    }
    at = range->addr - w->addr;
    r = range_new(range);
    r->window = w;
    r->shadow = w->shadow + at;
    r->base = w->base + at;
    bitmap_set(w->mapped, at / TT_SHADOW_PAGE, tt_shadow_pages(range->size));
    range_insert(s, r);
    tt_shadow_range_out(r);
    return true;
}

/* What the guest still maps of @old, which was [addr, addr + size). */
static void map_again(TtShadows *s, const TtShadowsRange *old, uint64_t from, uint64_t to)
{
    TtShadowsRange part = *old;

    if (from < to) {
        part.addr = from;
        part.at += from - old->addr;
        part.size = to - from;
        tt_shadows_map(s, &part);
    }
}

void tt_shadows_unmap(TtShadows *s, uint64_t addr, uint64_t size, bool takes)
{
    uint64_t end = addr + MIN(size, UINT64_MAX - addr);
    ShadowRange *r, *next;

    QLIST_FOREACH_SAFE(r, &s->ranges, next, next) {
        ShadowWindow *w = r->window;
        TtShadowsRange is = r->is;
        uint64_t at;

        if (!w || is.addr >= end || addr >= is.addr + is.size) {
            continue;
        }
        remove_one(s, r, takes);
        at = is.addr - w->addr;
        bitmap_clear(w->mapped, at / TT_SHADOW_PAGE, tt_shadow_pages(is.size));
        make_hole(w, at, is.size);
        map_again(s, &is, is.addr, addr);
        map_again(s, &is, end, is.addr + is.size);
    }
}

bool tt_shadows_stray(TtShadows *s, uint64_t *addr)
{
    ShadowWindow *w;

    QLIST_FOREACH(w, &s->windows, next) {
        off_t data = 0, hole;

        while (data = lseek(w->fd, data, SEEK_DATA), data >= 0) {
            uint64_t page = data / TT_SHADOW_PAGE, end, next;

            hole = lseek(w->fd, data, SEEK_HOLE);
            end = hole < 0 ? page : DIV_ROUND_UP(hole, TT_SHADOW_PAGE);
            next = find_next_zero_bit(w->mapped, end, page);
            if (next < end) {
                *addr = w->addr + next * TT_SHADOW_PAGE;
                make_hole(w, next * TT_SHADOW_PAGE, TT_SHADOW_PAGE);
                return true;
            }
            if (hole < 0) {
                break;
            }
            data = hole;
        }
    }
    return false;
}

bool tt_shadows_is_empty(const TtShadows *s)
{
    return QLIST_EMPTY(&s->ranges);
}

/* Whoever gives RAM back to the host and tells only QEMU is not heard here. */
bool tt_shadows_watch(Error **errp)
{
    if (!n_users && ram_block_uncoordinated_discard_disable(true)) {
        error_setg(errp, "a device that gives guest RAM back to the host does not go "
                   "together with one that has shadow memory");
        return false;
    }
    if (!n_users && !memory_global_dirty_log_start(GLOBAL_DIRTY_LIMIT, errp)) {
        ram_block_uncoordinated_discard_disable(false);
        return false;
    }
    n_users++;
    return true;
}

void tt_shadows_unwatch(void)
{
    if (!--n_users) {
        memory_global_dirty_log_stop(GLOBAL_DIRTY_LIMIT);
        ram_block_uncoordinated_discard_disable(false);
    }
}

TtShadows *tt_shadows_new(TtShadowsChanged *changed, void *opaque)
{
    TtShadows *s = g_new0(TtShadows, 1);

    s->changed = changed;
    s->opaque = opaque;
    return s;
}

void tt_shadows_free(TtShadows *s)
{
    ShadowWindow *w, *next;

    if (s) {
        tt_shadows_remove(s, 0, UINT64_MAX, false);
        QLIST_FOREACH_SAFE(w, &s->windows, next, next) {
            window_free(w);
        }
        g_free(s);
    }
}
