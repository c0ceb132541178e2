/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page store: what a node is besides RAM, and statistics.
 */
#include "tt-pagestore-int.h"

size_t tt_pagestore_count(const TtPageStore *ps)
{
    return g_hash_table_size(ps->by_id);
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
            info->stored_bytes += tt_pagepool_place(ps->pool,
                                                    node->d[i].new).len;
        }
    }
}

size_t tt_pagestore_list(const TtPageStore *ps, TtCheckpointInfo *infos,
                         size_t n)
{
    size_t done = 0;

    for (size_t i = 0; i < ps->nodes->len && done < n; i++) {
        if (!node_at(ps, i)->is_tombstone) {
            node_info(ps, node_at(ps, i), &infos[done++]);
        }
    }
    return done;
}

bool tt_pagestore_info(const TtPageStore *ps, TtNodeId id,
                       TtCheckpointInfo *info)
{
    const TtNode *node = node_get(ps, id);

    if (node) {
        node_info(ps, node, info);
    }
    return node != NULL;
}

void tt_pagestore_set_flags(TtPageStore *ps, TtNodeId id, uint32_t flags)
{
    TtNode *node = node_get(ps, id);

    g_assert(node);
    if (node->flags != flags) {
        node->flags = flags;
        tt_storefile_note_flags(ps, node);
    }
}

TtStatus tt_pagestore_blob(TtPageStore *ps, TtNodeId id, void **bytes,
                           size_t *len, TtDiag *diag)
{
    const TtNode *node = node_get(ps, id);
    TtStatus st = TT_OK;

    g_assert(node);
    *bytes = NULL;
    *len = 0;
    if (!node->blob_bytes) {
        return TT_OK;
    }
    *bytes = g_try_malloc(node->blob_bytes);
    if (!*bytes) {
        return tt_fail(diag, TT_ERR_NOMEM, "no memory for the state of a "
                       "checkpoint (%u bytes)", node->blob_bytes);
    }
    if (node->blob) {
        memcpy(*bytes, node->blob->bytes, node->blob_bytes);
    } else {
        st = tt_storefile_read_blob(ps, node, *bytes, diag);
    }
    if (st == TT_OK) {
        *len = node->blob_bytes;
    } else {
        g_free(*bytes);
        *bytes = NULL;
    }
    return st;
}

TtPageStoreStats tt_pagestore_stats(const TtPageStore *ps)
{
    TtPagePoolStats pool = tt_pagepool_stats(ps->pool);
    TtPageStoreStats st = {
        .n_versions = tt_pagepool_count(ps->pool),
        .cached_bytes = pool.cached_bytes, .pending_bytes = pool.pending_bytes,
        .n_shared = pool.n_shared, .n_loads = pool.n_loads,
        .n_evicted = pool.n_evicted,
    };

    st.packed_bytes = pool.packed_bytes;
    st.raw_bytes = st.n_versions * TT_PAGE_BYTES;
    tt_storefile_stats(ps, &st);
    return st;
}
