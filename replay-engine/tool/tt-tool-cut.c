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

#define HALVINGS    6           /* of what is searched backwards */
#define PARTS_MAX   1000        /* Slurm takes 1001 tasks at once by default */

static const double rounds[] = { 0.6, 0.3, 0.1 };       /* of all, for all processes */

static void add_part(GPtrArray *parts, uint64_t from, uint64_t to)
{
    g_ptr_array_add(parts, tool_part_new(from, to));
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return MAX(a, b) - MIN(a, b);
}

static GArray *wanted_of(const GArray *shares, uint64_t from, uint64_t end)
{
    GArray *wanted = g_array_new(false, false, sizeof(uint64_t));

    for (unsigned i = 0; i < shares->len; i++) {
        uint64_t at = from + (end - MIN(from, end)) * g_array_index(shares, double, i);

        g_array_append_val(wanted, at);
    }
    return wanted;
}

/* Cuts at the checkpoints that are nearest to @shares of the whole, ascending. */
static void cut_at(GPtrArray *parts, const char *run, const TtManifest *m,
                   const TtLogReader *r, uint64_t from, uint64_t to, const GArray *shares)
{
    g_autofree TtCheckpointInfo *infos = NULL;
    g_autoptr(GArray) wanted = NULL;
    TtPageStore *ps = NULL;
    TtDiag diag;
    uint64_t end = MIN(tool_totals(r).end_pos, to);
    size_t n = 0;
    unsigned k = 0;

    if (shares->len && tt_runstore_open(run, m, 0, &ps, &diag) == TT_OK) {
        uint64_t start = 0;

        n = tt_pagestore_count(ps);
        infos = g_new0(TtCheckpointInfo, n + 1);
        n = tt_pagestore_list(ps, infos, n);
        tool_start(ps, r, &start);
        from = MAX(from, start);
    }
    wanted = wanted_of(shares, from, end);
    for (size_t i = 0; i < n && k < wanted->len; i++) {
        uint64_t want = g_array_index(wanted, uint64_t, k), pos = infos[i].pos;

        if (pos <= from || pos >= end ||
            (i + 1 < n && infos[i + 1].pos < end &&
             distance(infos[i + 1].pos, want) < distance(pos, want)) ||
            !tool_is_in_log(ps, &infos[i], r)) {
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

/* ---- where ---- */

static void add_share(GArray *shares, double share)
{
    g_array_append_val(shares, share);
}

void tool_cut(GPtrArray *parts, const char *run, const TtManifest *m,
              const TtLogReader *r, uint64_t from, uint64_t to, uint64_t n_parts)
{
    g_autoptr(GArray) shares = g_array_new(false, false, sizeof(double));

    for (uint64_t i = 1; i < n_parts; i++) {
        add_share(shares, (double)i / n_parts);
    }
    cut_at(parts, run, m, r, from, to, shares);
}

void tool_cut_back(GPtrArray *parts, const char *run, const TtManifest *m,
                   const TtLogReader *r, uint64_t from, uint64_t to, uint64_t jobs)
{
    g_autoptr(GArray) shares = g_array_new(false, false, sizeof(double));
    double left = 1;

    jobs = MIN(jobs, PARTS_MAX / HALVINGS);
    for (unsigned i = 0; i < HALVINGS; i++) {
        double share = i + 1 < HALVINGS ? left / 2 : left;

        for (uint64_t k = 1; k <= jobs; k++) {
            add_share(shares, 1 - left + share * k / jobs);
        }
        left -= share;
    }
    g_array_set_size(shares, shares->len - 1);          /* the end */
    cut_at(parts, run, m, r, from, to, shares);
}

void tool_cut_for(GPtrArray *parts, const char *run, const TtManifest *m,
                  const TtLogReader *r, uint64_t from, uint64_t to, uint64_t jobs)
{
    g_autoptr(GArray) shares = g_array_new(false, false, sizeof(double));
    double done = 0;

    for (unsigned i = 0; jobs > 1 && i < G_N_ELEMENTS(rounds); i++) {
        for (uint64_t k = 1; k <= jobs; k++) {
            add_share(shares, done + rounds[i] * k / jobs);
        }
        done += rounds[i];
    }
    if (shares->len) {
        g_array_set_size(shares, shares->len - 1);      /* the end */
    }
    cut_at(parts, run, m, r, from, to, shares);
}
