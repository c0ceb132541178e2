/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What people are told about the checkpoints of a recording, copied out of
 * the store so that nobody waits for the thread that works on it.
 */
#include "qemu/osdep.h"
#include "checkpoint/tt-cplist.h"
#include "pages/tt-page.h"
#include "pages/tt-pagestore.h"
#include "session/tt-checkpoint.h"
#include "qemu/atomic.h"

static GMutex lock;
static GArray *points;              /* of TtCheckpointDesc, by position */

static int by_position(const void *a, const void *b)
{
    const TtCheckpointDesc *x = a, *y = b;

    return x->pos < y->pos ? -1 : x->pos > y->pos;
}

/* Its index, or -1. Under the lock. */
static int find(TtNodeId id)
{
    for (unsigned i = 0; points && i < points->len; i++) {
        if (g_array_index(points, TtCheckpointDesc, i).id == id) {
            return i;
        }
    }
    return -1;
}

void tt_cplist_show(TtPageStore *store, TtNodeId id)
{
    TtCheckpointInfo info;
    TtCheckpointDesc new;
    int i;

    if (!tt_pagestore_info(store, id, &info)) {
        return;
    }
    new = (TtCheckpointDesc) {
        .id = id, .pos = info.pos, .pages = info.n_pages, .stored = true,
        .pinned = info.flags & TT_CHECKPOINT_PINNED,
        .full = info.flags & TT_CHECKPOINT_FULL,
        .host_ns = info.host_ns,
        .bytes = info.stored_bytes + info.blob_bytes,
    };
    g_mutex_lock(&lock);
    points = points ?: g_array_new(false, false, sizeof(TtCheckpointDesc));
    i = find(id);
    if (i >= 0) {
        g_array_index(points, TtCheckpointDesc, i) = new;
    } else {
        g_array_append_val(points, new);
        g_array_sort(points, by_position);
    }
    g_mutex_unlock(&lock);
}

bool tt_cplist_remove(TtPageStore *store, TtNodeId id)
{
    TtNodeId next = 0;
    int i;

    g_mutex_lock(&lock);
    i = find(id);
    if (i >= 0) {
        g_array_remove_index(points, i);
        if (i < points->len) {
            next = g_array_index(points, TtCheckpointDesc, i).id;
        }
    }
    g_mutex_unlock(&lock);
    if (next) {
        tt_cplist_show(store, next);
    }
    return i >= 0;
}

void tt_cplist_clear(void)
{
    g_mutex_lock(&lock);
    if (points) {
        g_array_set_size(points, 0);
    }
    g_mutex_unlock(&lock);
}

GArray *tt_cplist_list(void)
{
    GArray *list = g_array_new(false, false, sizeof(TtCheckpointDesc));

    g_mutex_lock(&lock);
    if (points) {
        g_array_append_vals(list, points->data, points->len);
    }
    g_mutex_unlock(&lock);
    return list;
}

bool tt_cplist_has_pinned(void)
{
    g_autoptr(GArray) all = tt_cplist_list();
    bool any = false;

    for (unsigned i = 0; i < all->len; i++) {
        any |= g_array_index(all, TtCheckpointDesc, i).pinned;
    }
    return any;
}

static TtNodeId spared;         /* atomic */

void tt_cplist_spare(TtNodeId id)
{
    qatomic_set(&spared, id);
}

bool tt_cplist_is_spared(TtNodeId id)
{
    return id && id == qatomic_read(&spared);
}
