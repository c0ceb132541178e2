/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Cuts a run, or a part of it, at checkpoints, so that several processes can
 * re-execute it.
 */
#include "tt-tool-verify.h"

static void add_part(GPtrArray *parts, uint64_t from, uint64_t to)
{
    g_ptr_array_add(parts, tool_part_new(from, to));
}

void tool_cut(GPtrArray *parts, const char *run, const TtManifest *m,
              const TtLogReader *r, uint64_t from, uint64_t to, uint64_t n_parts)
{
    uint64_t end = MIN(tool_totals(r).end_pos, to), step, start = 0;
    g_autofree TtCheckpointInfo *infos = NULL;
    TtPageStore *ps = NULL;
    TtDiag diag;
    size_t n = 0;

    if (n_parts > 1 && tt_runstore_open(run, m, 0, &ps, &diag) == TT_OK) {
        n = tt_pagestore_count(ps);
        infos = g_new0(TtCheckpointInfo, n + 1);
        n = tt_pagestore_list(ps, infos, n);
        tool_start(ps, r, &start);
        from = MAX(from, start);
    }
    step = (end - MIN(from, end)) / n_parts + 1;
    for (size_t i = 0; i < n; i++) {
        if (infos[i].pos > from && infos[i].pos - from >= step && infos[i].pos < end &&
            tool_is_in_log(ps, &infos[i], r)) {
            add_part(parts, from, infos[i].pos);
            from = infos[i].pos;
        }
    }
    add_part(parts, from, to);
    tt_pagestore_free(ps);
}
