/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The commands that search a replay: tt-find of QMP, "tt find" of HMP and gdb.
 */
#include "qemu/osdep.h"
#include "monitor-cmds/tt-task.h"
#include "find/tt-find.h"
#include "session/tt-session.h"
#include "timeline/tt-timeline.h"
#include "tt-hmp-task-int.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-tt.h"
#include "qemu/cutils.h"
#include "monitor/monitor.h"

#define LIMIT 1000

/* An answer that would not fit into memory is nobody's wish. */
static bool is_limit(uint64_t limit, Error **errp)
{
    if (limit < 1 || limit > 1000000) {
        error_setg(errp, "limit takes a number from 1 to 1000000");
        return false;
    }
    return true;
}

TtFoundPlaces *coroutine_fn qmp_tt_find(const char *condition, bool has_from,
                                        uint64_t from, bool has_to, uint64_t to,
                                        bool has_changes, bool changes,
                                        bool has_monotone, bool monotone,
                                        bool has_written, bool written,
                                        bool has_limit, uint64_t limit,
                                        const char *job_id, Error **errp)
{
    TtTask t = {
        .kind = TT_TASK_FIND, .job_id = job_id,
        .find = {
            .condition = condition, .from = has_from ? from : 0,
            .to = has_to ? to : UINT64_MAX, .limit = has_limit ? limit : LIMIT,
            .how = (has_changes && changes ? TT_COND_CHANGES : 0) |
                (has_monotone && monotone ? TT_COND_MONOTONE : 0) |
                (has_written && written ? TT_COND_WRITTEN : 0),
        },
    };
    TtFoundPlaces *all = NULL;

    if (is_limit(t.find.limit, errp) && tt_task_run(&t, JOB_TYPE_TT_FIND, errp)) {
        all = g_new0(TtFoundPlaces, 1);
        all->places = tt_task_places(&t);
        all->complete = tt_task_has_all(&t);
    }
    tt_task_clear(&t);
    return all;
}

/* ---- HMP: "[-c] [-m] [-w] [-f POS] [-t POS] [-n N] CONDITION" ---- */

static bool take_number(const char **text, uint64_t *n)
{
    *text += strspn(*text, " ");
    return g_ascii_isdigit(**text) && !qemu_strtou64(*text, text, 0, n) &&
        (!**text || **text == ' ');
}

static bool take_word(const char **text, const char *word)
{
    const char *end;

    if (!strstart(*text, word, &end) || (*end && *end != ' ')) {
        return false;
    }
    *text = end;
    return true;
}

static bool take_position(const char **text, uint64_t *pos)
{
    *text += strspn(*text, " ");
    if (take_word(text, "start")) {
        *pos = 0;
        return true;
    }
    if (take_word(text, "end")) {
        *pos = UINT64_MAX;
        return true;
    }
    return take_number(text, pos);
}

static bool take_option(const char **text, TtFindWant *w)
{
    char which = (*text)[1];

    *text += 2;
    switch (which) {
    case 'c':
        w->how |= TT_COND_CHANGES;
        return true;
    case 'm':
        w->how |= TT_COND_MONOTONE;
        return true;
    case 'w':
        w->how |= TT_COND_WRITTEN;
        return true;
    case 'f':
        return take_position(text, &w->from);
    case 't':
        return take_position(text, &w->to);
    default:
        return take_number(text, &w->limit);
    }
}

static bool parse(const char *text, TtFindWant *w, Error **errp)
{
    text += strspn(text, " ");
    while (text[0] == '-' && text[1] && strchr("cmwftn", text[1]) &&
           (text[2] == ' ' || !text[2])) {
        if (!take_option(&text, w)) {
            error_setg(errp, "tt find: -f and -t take a number, start or end, and -n "
                       "takes a number");
            return false;
        }
        text += strspn(text, " ");
    }
    w->condition = text;
    return is_limit(w->limit, errp);
}

/* Who wants one hit wants the first. */
static void say_hits(Monitor *mon, const TtTask *t, bool is_cut)
{
    for (unsigned i = 0; i < t->hits->len; i++) {
        const TtFindHit *hit = &g_array_index(t->hits, TtFindHit, i);

        monitor_printf(mon, "position %" PRIu64 " pc 0x%" PRIx64 " cpu %u value 0x%"
                       PRIx64 "\n", hit->pos, hit->pc, hit->cpu, hit->value);
    }
    monitor_printf(mon, "%u found%s\n", t->hits->len,
                   is_cut ? "; the search ended early" :
                   t->reason == TT_STOP_INTERRUPTED ? "; the search was interrupted" :
                   t->hits->len == t->find.limit && t->find.limit > 1 ?
                   "; there may be more: raise the limit" : "");
}

void tt_hmp_find(Monitor *mon, const char *arg, Error **errp)
{
    TtTask t = {
        .kind = TT_TASK_FIND, .find = { .to = UINT64_MAX, .limit = LIMIT },
    };

    if (!arg) {
        error_setg(errp, "tt find takes a condition: tt find [-c] [-m] [-w] [-f POS] "
                   "[-t POS] [-n N] CONDITION");
        return;
    }
    if (parse(arg, &t.find, errp)) {
        bool ok = tt_hmp_carry_out(mon, &t, errp);

        if (t.hits && (ok || t.hits->len)) {
            say_hits(mon, &t, !ok);
        }
    }
    tt_task_clear(&t);
}
