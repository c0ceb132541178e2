/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Cuts a run, or a part of it, at checkpoints, so that several processes can
 * re-execute it.
 *
 * A process that begins takes as long as for some 0.5 G positions (RAM comes from the
 * store), so parts shall be few; and none shall wait long for the last, so the last ones
 * shall be short. Three rounds of parts do both: each process takes one of each on average,
 * and who is slow takes fewer. How long a part will take is guessed from how long it took
 * when it was recorded (timeline/tt-cut.h).
 */
#include "tt-tool-verify.h"
#include "timeline/tt-cut.h"

#define HALVINGS    6           /* of what is searched backwards */
#define PARTS_MAX   1000        /* Slurm takes 1001 tasks at once by default */

static const double rounds[] = { 0.6, 0.3, 0.1 };       /* of all, for all processes */

static void add_part(GPtrArray *parts, uint64_t from, uint64_t to)
{
    g_ptr_array_add(parts, tool_part_new(from, to));
}

/* All checkpoints, and the end, whose cost is to be known, too. */
static GArray *points_of(TtPageStore *ps, const TtLogReader *r, GArray *ids)
{
    GArray *points = g_array_new(false, true, sizeof(TtCutPoint));
    size_t n = tt_pagestore_count(ps);
    g_autofree TtCheckpointInfo *infos = g_new0(TtCheckpointInfo, n + 1);
    ToolTotals t = tool_totals(r);
    TtCutPoint end = { .pos = t.end_pos, .host_ns = t.began_ns + t.host_ns };

    n = tt_pagestore_list(ps, infos, n);
    for (size_t i = 0; i < n && infos[i].pos < end.pos; i++) {
        TtCutPoint p = { .pos = infos[i].pos, .host_ns = infos[i].host_ns };

        g_array_append_val(points, p);
        g_array_append_val(ids, infos[i]);
    }
    g_array_append_val(points, end);
    tt_cut_weigh((TtCutPoint *)points->data, points->len);
    return points;
}

/* Drops those of the @n @chosen points at which no replay can begin. */
static bool drop_unfit(GArray *points, GArray *infos, const size_t *chosen, size_t n,
                       TtPageStore *ps, const TtLogReader *r)
{
    bool any = false;

    while (n-- > 0) {
        if (!tool_is_in_log(ps, &g_array_index(infos, TtCheckpointInfo, chosen[n]), r)) {
            g_array_remove_index(points, chosen[n]);
            g_array_remove_index(infos, chosen[n]);
            any = true;
        }
    }
    return any;
}

static uint64_t cut_store(GPtrArray *parts, TtPageStore *ps, const TtLogReader *r,
                          uint64_t from, uint64_t end, const GArray *shares)
{
    g_autoptr(GArray) infos = g_array_new(false, false, sizeof(TtCheckpointInfo));
    g_autoptr(GArray) points = points_of(ps, r, infos);
    g_autofree size_t *chosen = g_new(size_t, shares->len + 1);
    size_t n;

    do {
        n = tt_cut_choose((const TtCutPoint *)points->data, points->len, from, end,
                          (const double *)shares->data, shares->len, chosen);
    } while (drop_unfit(points, infos, chosen, n, ps, r));
    for (size_t i = 0; i < n; i++) {
        uint64_t pos = g_array_index(points, TtCutPoint, chosen[i]).pos;

        if (pos > from) {               /* there may be two at one position */
            add_part(parts, from, pos);
            from = pos;
        }
    }
    return from;
}

/* Cuts at the checkpoints that are nearest to @shares of what the whole costs, ascending. */
static void cut_at(GPtrArray *parts, const char *run, const TtManifest *m,
                   const TtLogReader *r, uint64_t from, uint64_t to, const GArray *shares)
{
    TtPageStore *ps = NULL;
    TtDiag diag;
    uint64_t end = MIN(tool_totals(r).end_pos, to), start = 0;

    if (shares->len && tt_runstore_open(run, m, 0, &ps, &diag) == TT_OK) {
        tool_start(ps, r, &start);
        from = cut_store(parts, ps, r, MAX(from, start), end, shares);
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
