/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The checkpoints of a run, with what they share with those of its parents (P8 of
 * the page store's format): a parent is opened when its first page is asked for.
 */
#include "tt-tool.h"
#include "tt/cpstate.h"

#define DEPTH_MAX   32          /* of a chain of parents: a ring ends */

struct ToolStore {
    TtPageStore *ps;
    char *dir;
    const TtManifest *manifest; /* borrowed */
    unsigned depth;
    bool was_tried;             /* to open the parent */
    TtManifest parent_manifest;
    ToolStore *parent;
};

static TtStatus open_at(const char *run, const TtManifest *m, unsigned depth,
                        ToolStore **out, TtDiag *diag);

static TtStatus open_parent(ToolStore *s, TtDiag *diag)
{
    g_autofree char *dir = g_canonicalize_filename(s->manifest->parent_path,
                                                   s->dir);
    g_autofree char *path = g_build_filename(dir, "manifest", NULL);
    TtStatus st = tt_manifest_load(path, &s->parent_manifest, diag);

    if (st == TT_OK && memcmp(s->parent_manifest.uuid,
                              s->manifest->parent_uuid, 16)) {
        st = tt_fail(diag, TT_ERR_FORMAT, "'%s' is not the parent any more",
                     dir);
    }
    if (st == TT_OK) {
        st = open_at(dir, &s->parent_manifest, s->depth + 1, &s->parent, diag);
    }
    return st;
}

/* A TtPageLend. */
static TtStatus lend(void *opaque, const uint64_t hash[2], void *to,
                     TtDiag *diag)
{
    ToolStore *s = opaque;
    TtStatus st = TT_OK;

    if (!s->was_tried) {
        s->was_tried = true;
        st = open_parent(s, diag);
    }
    if (st < 0) {
        return st;
    }
    return s->parent ? tt_pagestore_find(s->parent->ps, hash, to, diag)
                     : TT_END;
}

static TtStatus open_at(const char *run, const TtManifest *m, unsigned depth,
                        ToolStore **out, TtDiag *diag)
{
    g_autofree char *pages = g_build_filename(run, "pages", NULL);
    g_autofree char *points = g_build_filename(run, "checkpoints", NULL);
    TtPageStoreOptions opt = { .read_only = true };
    bool is_branch = m->features & TT_FEATURE_PARENT && depth < DEPTH_MAX;
    TtStatus st;

    *out = NULL;
    if (!g_file_test(points, G_FILE_TEST_EXISTS) &&
        !g_file_test(pages, G_FILE_TEST_EXISTS)) {
        return TT_END;
    }
    memcpy(opt.uuid, m->uuid, sizeof(opt.uuid));
    st = tt_io_posix_open(pages, &opt.pages, diag);
    if (st != TT_OK) {
        return st;
    }
    st = tt_io_posix_open(points, &opt.checkpoints, diag);
    if (st != TT_OK) {
        tt_io_close(opt.pages);
        return st;
    }
    *out = g_new0(ToolStore, 1);
    (*out)->dir = g_canonicalize_filename(run, NULL);
    (*out)->manifest = m;
    (*out)->depth = depth;
    opt.lend = is_branch ? lend : NULL;
    opt.lend_opaque = *out;
    st = tt_pagestore_open(&opt, &(*out)->ps, diag);
    if (st != TT_OK) {
        tool_store_close(*out);
        *out = NULL;
    }
    return st;
}

TtStatus tool_store_open(const char *run, const TtManifest *m, ToolStore **out,
                         TtDiag *diag)
{
    return open_at(run, m, 0, out, diag);
}

TtPageStore *tool_store_pages(ToolStore *s)
{
    return s->ps;
}

void tool_store_close(ToolStore *s)
{
    if (s) {
        tt_pagestore_free(s->ps);
        tool_store_close(s->parent);
        tt_manifest_cleanup(&s->parent_manifest);
        g_free(s->dir);
        g_free(s);
    }
}

bool tool_is_in_log(TtPageStore *ps, const TtCheckpointInfo *info,
                    const TtLogReader *r)
{
    g_autofree void *blob = NULL;
    uint64_t end = tt_log_reader_end(r);
    TtCpState s;
    size_t len;

    return end > tt_log_reader_first(r) &&
        info->pos <= tt_log_reader_info(r, end - 1)->end_pos &&
        tt_pagestore_blob(ps, info->id, &blob, &len, NULL) == TT_OK &&
        tt_cpstate_decode((TtBytes) { blob, len }, &s, NULL) == TT_OK &&
        s.segment >= tt_log_reader_first(r) && s.segment < end;
}

bool tool_start(TtPageStore *ps, const TtLogReader *r, uint64_t *pos)
{
    size_t n = ps ? tt_pagestore_count(ps) : 0;
    g_autofree TtCheckpointInfo *infos = g_new0(TtCheckpointInfo, n + 1);

    *pos = 0;
    if (!tt_log_reader_is_window(r)) {
        return true;
    }
    n = ps ? tt_pagestore_list(ps, infos, n) : 0;
    for (size_t i = 0; i < n; i++) {
        if (tool_is_in_log(ps, &infos[i], r)) {
            *pos = infos[i].pos;
            return true;
        }
    }
    return false;
}
