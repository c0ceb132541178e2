/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Cuts a run, or a part of it, at checkpoints, so that several processes can
 * re-execute it.
 *
 * A process that begins takes as long as for some 0.5 G positions (RAM comes from the
 * store), so parts shall be few; and none shall wait long for the last, so the last ones
 * shall be short. Three rounds of parts do both: each process takes one of each on average,
 * and who is slow takes fewer.
 */
#include "tt-tool-verify.h"

static const double rounds[] = { 0.6, 0.3, 0.1 };       /* of all, for all processes */

static void add_part(GPtrArray *parts, uint64_t from, uint64_t to)
{
    g_ptr_array_add(parts, tool_part_new(from, to));
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return MAX(a, b) - MIN(a, b);
}

/* Cuts at the checkpoints that are nearest to @wanted, ascending positions. */
static void cut_at(GPtrArray *parts, const char *run, const TtManifest *m,
                   const TtLogReader *r, uint64_t from, uint64_t to, const GArray *wanted)
{
    g_autofree TtCheckpointInfo *infos = NULL;
    uint64_t end = MIN(tool_totals(r).end_pos, to), start = 0;
    TtPageStore *ps = NULL;
    TtDiag diag;
    size_t n = 0;
    unsigned k = 0;

    if (wanted->len && tt_runstore_open(run, m, 0, &ps, &diag) == TT_OK) {
        n = tt_pagestore_count(ps);
        infos = g_new0(TtCheckpointInfo, n + 1);
        n = tt_pagestore_list(ps, infos, n);
        tool_start(ps, r, &start);
        from = MAX(from, start);
    }
    for (size_t i = 0; i < n && k < wanted->len; i++) {
        uint64_t want = g_array_index(wanted, uint64_t, k), pos = infos[i].pos;

        if (pos <= from || pos >= end || !tool_is_in_log(ps, &infos[i], r) ||
            (i + 1 < n && infos[i + 1].pos < end &&
             distance(infos[i + 1].pos, want) < distance(pos, want))) {
            continue;
        }
        add_part(parts, from, pos);
        from = pos;
        while (k < wanted->len && g_array_index(wanted, uint64_t, k) <= pos) {
            k++;
        }
        k += k < wanted->len && g_array_index(wanted, uint64_t, k) == want;
    }
    add_part(parts, from, to);
    tt_pagestore_free(ps);
}

static void add_wanted(GArray *wanted, uint64_t from, uint64_t length, double share)
{
    uint64_t at = from + length * share;

    g_array_append_val(wanted, at);
}

void tool_cut(GPtrArray *parts, const char *run, const TtManifest *m,
              const TtLogReader *r, uint64_t from, uint64_t to, uint64_t n_parts)
{
    g_autoptr(GArray) wanted = g_array_new(false, false, sizeof(uint64_t));
    uint64_t end = MIN(tool_totals(r).end_pos, to);

    for (uint64_t i = 1; i < n_parts; i++) {
        add_wanted(wanted, from, end - MIN(from, end), (double)i / n_parts);
    }
    cut_at(parts, run, m, r, from, to, wanted);
}

void tool_cut_for(GPtrArray *parts, const char *run, const TtManifest *m,
                  const TtLogReader *r, uint64_t from, uint64_t to, uint64_t jobs)
{
    g_autoptr(GArray) wanted = g_array_new(false, false, sizeof(uint64_t));
    uint64_t end = MIN(tool_totals(r).end_pos, to);
    double done = 0;

    for (unsigned i = 0; jobs > 1 && i < G_N_ELEMENTS(rounds); i++) {
        for (uint64_t k = 1; k <= jobs; k++) {
            add_wanted(wanted, from, end - MIN(from, end), done + rounds[i] * k / jobs);
        }
        done += rounds[i];
    }
    if (wanted->len) {
        g_array_set_size(wanted, wanted->len - 1);      /* the end */
    }
    cut_at(parts, run, m, r, from, to, wanted);
}
