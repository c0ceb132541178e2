/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which memory has a shadow. */
#include "qemu/osdep.h"
#include "tt-shadows-int.h"
#include "exec/ramblock.h"
#include "qapi/error.h"
#include "qemu/bitmap.h"
#include "qemu/memfd.h"

static unsigned n_users;

static void *map_memory(uint64_t size, int flags)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
                   MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

bool tt_shadow_with_file(uint64_t size, uint8_t **shadow, uint8_t **base, int *fd,
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

void tt_shadow_memory_free(uint8_t *shadow, uint8_t *base, uint64_t size, int fd)
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
        tt_shadow_memory_free(r->shadow, r->base, r->is.size, r->fd);
    }
    if (r->written) {
        memory_region_unref(r->is.mr);
    }
    g_free(r->written);
    g_free(r);
}

void tt_shadow_range_insert(TtShadows *s, ShadowRange *r)
{
    uint64_t n = tt_shadow_pages(r->is.size);

    memory_region_ref(r->is.mr);
    r->written = bitmap_new(n);
    bitmap_set(r->written, 0, n);
    QLIST_INSERT_HEAD(&s->ranges, r, next);
    QLIST_INSERT_HEAD(&tt_shadows_all, r, next_of_all);
}

ShadowRange *tt_shadow_range_new(const TtShadowsRange *range)
{
    ShadowRange *r = g_new0(ShadowRange, 1);

    r->is = *range;
    r->fd = -1;
    return r;
}

int tt_shadows_add(TtShadows *s, const TtShadowsRange *range, Error **errp)
{
    ShadowRange *r = tt_shadow_range_new(range);

    if (!tt_shadow_with_file(r->is.size, &r->shadow, &r->base, &r->fd, errp)) {
        range_free(r);
        return -1;
    }
    tt_shadow_range_insert(s, r);
    return r->fd;
}

void *tt_shadows_add_here(TtShadows *s, const TtShadowsRange *range, Error **errp)
{
    ShadowRange *r = tt_shadow_range_new(range);

    r->shadow = map_memory(r->is.size, MAP_SHARED);
    r->base = r->shadow ? map_memory(r->is.size, MAP_PRIVATE) : NULL;
    if (!r->base) {
        error_setg(errp, "not enough memory for a copy of %" PRIu64 " bytes", r->is.size);
        range_free(r);
        return NULL;
    }
    tt_shadow_range_insert(s, r);
    tt_shadow_range_out(r);
    return r->shadow;
}

void tt_shadow_range_remove(TtShadows *s, ShadowRange *r, bool takes)
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
        if (!r->window && r->is.addr >= addr && r->is.addr - addr < size) {
            tt_shadow_range_remove(s, r, takes);
        }
    }
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
    ShadowWindow *w;

    if (s) {
        while (w = QLIST_FIRST(&s->windows), w) {
            tt_shadows_remove_window(s, w->addr, false);
        }
        tt_shadows_remove(s, 0, UINT64_MAX, false);
        g_free(s);
    }
}
