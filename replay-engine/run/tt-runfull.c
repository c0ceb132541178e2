/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which full checkpoint of a run is meant: by its number, its name, or a position.
 */
#include "run/tt-runfull.h"
#include "run/tt-cpstate.h"
#include "run/tt-fullstate.h"
#include "run/tt-marks.h"

#include <glib.h>
#include <inttypes.h>
#include <string.h>

typedef struct Points {
    const char *dir;
    TtPageStore *store;
    const TtCheckpointInfo *infos;
    size_t n;
} Points;

static bool is_full(const TtCheckpointInfo *info)
{
    return info->flags & TT_CHECKPOINT_FULL;
}

static bool has_name(const Points *p, uint32_t id, const char *name)
{
    g_autofree void *blob = NULL;
    bool found = false;
    TtFullDesc d;
    TtCpState s;
    size_t len;

    if (tt_pagestore_blob(p->store, id, &blob, &len, NULL) == TT_OK &&
        tt_cpstate_decode((TtBytes) { blob, len }, &s, NULL) == TT_OK &&
        tt_fulldesc_find(s.full, &d, NULL) == TT_OK) {
        found = !strcmp(d.name, name);
        tt_fulldesc_cleanup(&d);
    }
    return found;
}

/* Position of a mark of the run. */
static TtStatus find_mark(const Points *p, const char *name, uint64_t *pos, TtDiag *diag)
{
    TtMarkSearch w = { .name = name };
    TtStatus st = tt_marks_of_run(p->dir, tt_mark_search, &w, diag);

    if (st == TT_OK && !w.is_found) {
        st = tt_fail(diag, TT_ERR_INVALID, "there is no mark '%.60s' in the run '%.100s'",
                     name, p->dir);
    }
    *pos = w.pos;
    return st;
}

static bool parse_number(const char *text, uint64_t *number)
{
    char *end;

    *number = g_ascii_strtoull(text, &end, 10);     /* too large: UINT64_MAX, which none has */
    return g_ascii_isdigit(*text) && !*end;
}

/* *@pos: where that is; *@id: the checkpoint, if it is clear already; or 0. */
static TtStatus find_place(const Points *p, const char *at, uint64_t *pos, uint32_t *id,
                           TtDiag *diag)
{
    uint64_t number;

    *id = 0;
    if (!strcmp(at, "@")) {
        return tt_fail(diag, TT_ERR_INVALID, "at=@ needs the name of a full checkpoint or of "
                       "a mark after the @");
    }
    if (*at == '@') {
        for (size_t i = p->n; i-- > 0;) {           /* the last of a name counts */
            if (is_full(&p->infos[i]) && has_name(p, p->infos[i].id, at + 1)) {
                *id = p->infos[i].id;
                return TT_OK;
            }
        }
        return find_mark(p, at + 1, pos, diag);
    }
    if (!parse_number(at, &number)) {
        return tt_fail(diag, TT_ERR_INVALID, "at= takes the number of a checkpoint, or @ and "
                       "a name, not '%s'", at);
    }
    for (size_t i = 0; i < p->n; i++) {
        if (p->infos[i].id == number) {
            *pos = p->infos[i].pos;
            *id = is_full(&p->infos[i]) ? number : 0;
            return TT_OK;
        }
    }
    return tt_fail(diag, TT_ERR_INVALID, "the run '%.100s' has no checkpoint %" PRIu64 ": tt "
                   "info lists the full ones", p->dir, number);
}

TtStatus tt_runfull_find(const char *dir, TtPageStore *store, const char *at, uint32_t *id,
                         TtDiag *diag)
{
    size_t n = tt_pagestore_count(store);
    g_autofree TtCheckpointInfo *infos = g_new0(TtCheckpointInfo, n + 1);
    const Points p = { dir, store, infos, tt_pagestore_list(store, infos, n) };
    const TtCheckpointInfo *before = NULL;
    uint64_t pos = 0;
    TtStatus st = find_place(&p, at, &pos, id, diag);

    if (st != TT_OK || *id) {
        return st;
    }
    for (size_t i = 0; !*id && i < p.n; i++) {
        if (is_full(&infos[i]) && infos[i].pos <= pos) {
            before = &infos[i];
            *id = before->pos == pos ? before->id : 0;
        }
    }
    if (*id) {
        return TT_OK;
    }
    return before ?
        tt_fail(diag, TT_ERR_INVALID, "there is no full checkpoint at position %" PRIu64
                ", and a branch can start only from one: the nearest one before is at=%"
                PRIu32 ", position %" PRIu64, pos, before->id, before->pos) :
        tt_fail(diag, TT_ERR_INVALID, "there is no full checkpoint at or before position %"
                PRIu64 ", and a branch can start only from one: make them while recording, "
                "with 'tt checkpoint add -f' (in QMP tt-checkpoint-add with full=true)", pos);
}
