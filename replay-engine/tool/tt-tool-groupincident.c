/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt group incidents: what went wrong in a member, where all members stood then, and
 * whether that is a consistent cut.
 */
#include "tt-tool-group.h"

#include <inttypes.h>
#include <stdio.h>

/* NULL: this run has not heard of it. */
static const GroupIncident *note_of(const GroupMember *m, const TtIncident *of)
{
    for (unsigned i = 0; i < m->incidents->len; i++) {
        const GroupIncident *n = &g_array_index(m->incidents, GroupIncident, i);

        if (n->what.number == of->number && !memcmp(n->what.run, of->run, TT_RUN_BYTES)) {
            return n;
        }
    }
    return NULL;
}

static const GroupMember *finder_of(const Group *g, const TtIncident *of)
{
    for (unsigned i = 0; i < g->members->len; i++) {
        if (!memcmp(group_at(g, i)->uuid, of->run, TT_RUN_BYTES)) {
            return group_at(g, i);
        }
    }
    return NULL;
}

/* Each once, by the members' names and then in the order of their logs; of TtIncident. */
static GArray *incidents_of(const Group *g)
{
    GArray *all = g_array_new(false, false, sizeof(TtIncident));

    for (unsigned i = 0; i < g->members->len; i++) {
        const GArray *here = group_at(g, i)->incidents;

        for (unsigned k = 0; k < here->len; k++) {
            const TtIncident *of = &g_array_index(here, GroupIncident, k).what;
            bool is_new = true;

            for (unsigned j = 0; is_new && j < i; j++) {
                is_new = !note_of(group_at(g, j), of);
            }
            if (is_new) {
                g_array_append_val(all, *of);
            }
        }
    }
    return all;
}

static bool is_cut(const Group *g, const TtIncident *of, TtDiag *diag)
{
    g_autofree uint64_t *at = g_new(uint64_t, g->members->len);

    for (unsigned i = 0; i < g->members->len; i++) {
        const GroupIncident *n = note_of(group_at(g, i), of);

        at[i] = n ? n->pos : UINT64_MAX;
    }
    return group_is_cut(g, at, diag);
}

unsigned group_check_incidents(const Group *g, GPtrArray *list)
{
    g_autoptr(GArray) all = incidents_of(g);
    bool may_wait = tt_causal_totals(g->causal).pending;
    unsigned n_open = 0;
    TtDiag diag;

    for (unsigned i = 0; i < all->len; i++) {
        const TtIncident *of = &g_array_index(all, TtIncident, i);

        if (is_cut(g, of, &diag)) {
            continue;
        }
        if (may_wait) {
            n_open++;
        } else {
            group_find(list, "the positions of incident @%s are not consistent: %s",
                       of->mark, diag.text);
        }
    }
    return n_open;
}

static void print_json(const Group *g, const TtIncident *of)
{
    const GroupMember *finder = finder_of(g, of);
    char run[2 * TT_RUN_BYTES + 1];
    bool is_first = true;

    tt_run_text(run, of->run);
    printf("{\"mark\": ");
    tool_json_string(of->mark);
    printf(", \"what\": ");
    tool_json_string(of->what);
    printf(", \"run\": \"%s\", \"found_by\": ", run);
    if (finder) {
        tool_json_string(finder->name);
    } else {
        printf("null");
    }
    printf(", \"members\": {");
    for (unsigned i = 0; i < g->members->len; i++) {
        const GroupMember *m = group_at(g, i);
        const GroupIncident *n = note_of(m, of);

        if (n) {
            printf("%s", is_first ? "" : ", ");
            tool_json_string(m->name);
            printf(": %" PRIu64, n->pos);
            is_first = false;
        }
    }
    printf("}}");
}

static void print_text(const Group *g, const TtIncident *of)
{
    const GroupMember *finder = finder_of(g, of);

    printf("@%s of %s%s%s\n", of->mark, finder ? finder->name : "a run that is not here",
           *of->what ? ": " : "", of->what);
    for (unsigned i = 0; i < g->members->len; i++) {
        const GroupMember *m = group_at(g, i);
        const GroupIncident *n = note_of(m, of);

        if (n) {
            printf("  %-*s %20" PRIu64 "\n", group_width(m->name, 18), m->name, n->pos);
        } else {
            printf("  %-*s %20s  has not heard of it\n", group_width(m->name, 18), m->name,
                   "-");
        }
    }
}

int group_incidents(const ToolArgs *a, const Group *g)
{
    g_autoptr(GArray) all = incidents_of(g);
    bool is_json = tool_has(a, "--json");

    if (is_json) {
        tool_json_begin();
        printf("\"incidents\": [");
    }
    for (unsigned i = 0; i < all->len; i++) {
        if (is_json) {
            printf("%s", i ? ", " : "");
        }
        (is_json ? print_json : print_text)(g, &g_array_index(all, TtIncident, i));
    }
    if (is_json) {
        puts("]}");
    } else if (!all->len) {
        printf("%s has none\n", g->name);
    }
    return TOOL_FINE;
}
