/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page store: the parts of a node besides RAM, and statistics.
 */
#include "tt-pagestore-int.h"

size_t tt_pagestore_count(const TtPageStore *ps)
{
    return g_hash_table_size(ps->map.by_id);
}

static void node_info(const TtPageStore *ps, const TtNode *node,
                      TtCheckpointInfo *info)
{
    *info = (TtCheckpointInfo) {
        .id = node->id, .flags = node->flags, .pos = node->pos,
        .host_ns = node->host_ns, .n_pages = node->n,
        .blob_bytes = node->blob_bytes, .is_flushed = node->record_bytes != 0,
    };
    for (size_t i = 0; i < node->n; i++) {
        if (node->d[i].new != TT_VERSION_ZERO) {
            info->stored_bytes += tt_pagepool_place(ps->map.pool,
                                                    node->d[i].new).len;
        }
    }
}

size_t tt_pagestore_list(const TtPageStore *ps, TtCheckpointInfo *infos,
                         size_t n)
{
    size_t done = 0;

    for (size_t i = 0; i < ps->map.nodes->len && done < n; i++) {
        if (!node_at(&ps->map, i)->is_tombstone) {
            node_info(ps, node_at(&ps->map, i), &infos[done++]);
        }
    }
    return done;
}

bool tt_pagestore_info(const TtPageStore *ps, TtNodeId id,
                       TtCheckpointInfo *info)
{
    const TtNode *node = node_get(&ps->map, id);

    if (node) {
        node_info(ps, node, info);
    }
    return node != NULL;
}

void tt_pagestore_set_flags(TtPageStore *ps, TtNodeId id, uint32_t flags)
{
    TtNode *node = node_get(&ps->map, id);

    g_assert(node);
    if (node->flags != flags) {
        node->flags = flags;
        tt_storefile_note_flags(ps->file, node);
    }
}

TtStatus tt_pagestore_blob(TtPageStore *ps, TtNodeId id, void **bytes,
                           size_t *len, TtDiag *diag)
{
    const TtNode *node = node_get(&ps->map, id);

    g_assert(node);
    if (node->blob_bytes && !tt_pagemem_may(&ps->map.mem)) {
        *bytes = NULL;
        *len = 0;
        return tt_fail(diag, TT_ERR_NOMEM, "not enough memory for the state of a "
                       "checkpoint (%u bytes)", node->blob_bytes);
    }
    return tt_storefile_node_blob(ps->file, node, bytes, len, diag);
}

TtPageStoreStats tt_pagestore_stats(const TtPageStore *ps)
{
    TtPagePoolStats pool = tt_pagepool_stats(ps->map.pool);
    TtPageStoreStats st = {
        .n_versions = tt_pagepool_count(ps->map.pool),
        .cached_bytes = pool.cached_bytes, .pending_bytes = pool.pending_bytes,
        .n_shared = pool.n_shared, .n_loads = pool.n_loads,
        .n_evicted = pool.n_evicted,
    };

    st.packed_bytes = pool.packed_bytes;
    st.raw_bytes = st.n_versions * TT_PAGE_BYTES;
    tt_storefile_stats(ps->file, &st);
    return st;
}
