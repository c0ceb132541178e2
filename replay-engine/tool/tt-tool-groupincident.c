/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt group incidents: what went wrong in a member, where all members stood then, and
 * whether that is a consistent cut.
 */
#include "tt-tool-group.h"

#include <inttypes.h>
#include <stdio.h>

/* NULL: its log, and the windows that were saved beside it, do not have it. */
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

static bool is_gone(const GroupMember *m, const GroupIncident *n)
{
    return n->is_gone || n->mark_pos < m->start;
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

/* Where all stood that have it; UINT64_MAX: not known. g_free. */
static uint64_t *places_of(const Group *g, const TtIncident *of)
{
    uint64_t *at = g_new(uint64_t, g->members->len);

    for (unsigned i = 0; i < g->members->len; i++) {
        const GroupIncident *n = note_of(group_at(g, i), of);

        at[i] = n ? n->pos : UINT64_MAX;
    }
    return at;
}

unsigned group_check_incidents(const Group *g, GPtrArray *list)
{
    g_autoptr(GArray) all = incidents_of(g);
    unsigned n_open = 0;
    TtDiag diag;

    for (unsigned i = 0; i < all->len; i++) {
        const TtIncident *of = &g_array_index(all, TtIncident, i);
        g_autofree uint64_t *at = places_of(g, of);

        if (group_is_cut(g, at, &diag)) {
            continue;
        }
        if (group_may_be_cut(g, at, &diag)) {
            n_open++;
        } else {
            group_find(list, "the positions of incident @%s are not consistent: %s",
                       of->mark, diag.text);
        }
    }
    return n_open;
}

/* Does each frame that a member sent after its mark come behind the incident? Not by a filter,
 * through which none goes. Nor if a member has several links, and so perhaps two ways to
 * another one: an incident may be missing from one of them, which was not connected or had too
 * many. */
static bool is_in_order(const Group *g)
{
    for (unsigned i = 0; i < g->members->len; i++) {
        const GroupMember *m = group_at(g, i);

        if (m->may_filter || m->n_links > 1) {
            return false;
        }
    }
    return true;
}

void group_note_incidents(const Group *g)
{
    unsigned n = is_in_order(g) ? g->members->len : 0;

    for (unsigned i = 0; i < n; i++) {
        const GArray *here = group_at(g, i)->incidents;
        const TtIncident *of = here->len ? &g_array_index(here, GroupIncident, 0).what : NULL;
        bool is_new = of;

        for (unsigned k = 0; is_new && k < i; k++) {
            const GArray *there = group_at(g, k)->incidents;
            const TtIncident *other =
                there->len ? &g_array_index(there, GroupIncident, 0).what : NULL;

            is_new = !other || other->number != of->number ||
                memcmp(other->run, of->run, TT_RUN_BYTES);
        }
        if (is_new) {
            g_autofree uint64_t *at = places_of(g, of);

            group_note_cut(g, at);
        }
    }
}

enum { IN_WINDOW, PERHAPS_PAST, PAST, AFTER_LOG };

/* Is it before the window of member @i? Of its own incident each other member's note tells
 * where it was, but under KVM by positions of before the conversion. */
static int where_is(const Group *g, const TtIncident *of, unsigned i)
{
    const GroupMember *m = group_at(g, i);
    const GroupIncident *n = note_of(m, of);
    bool is_known = finder_of(g, of) == m && !m->is_kvm;
    g_autofree uint64_t *at = places_of(g, of);

    if (n) {
        return is_gone(m, n) ? PAST : IN_WINDOW;
    }
    if (is_known && (of->pos < m->start || of->pos >= m->end)) {
        return of->pos < m->start ? PAST : AFTER_LOG;
    }
    return tt_causal_begins_before(g->causal, i, at) ? IN_WINDOW : PERHAPS_PAST;
}

/* A list of those of which it is @where. */
static void print_where_json(const Group *g, const TtIncident *of, const char *name, int where)
{
    bool is_first = true;

    printf(", \"%s\": [", name);
    for (unsigned i = 0; i < g->members->len; i++) {
        if (where_is(g, of, i) == where) {
            printf("%s", is_first ? "" : ", ");
            tool_json_string(group_at(g, i)->name);
            is_first = false;
        }
    }
    printf("]");
}

/* {MEMBER: its directory}, of those that have saved a window with it. */
static void print_windows_json(const Group *g, const TtIncident *of)
{
    bool is_first = true;

    printf(", \"windows\": {");
    for (unsigned i = 0; i < g->members->len; i++) {
        const GroupIncident *n = note_of(group_at(g, i), of);

        if (n && n->window) {
            printf("%s", is_first ? "" : ", ");
            tool_json_string(group_at(g, i)->name);
            printf(": ");
            tool_json_string(n->window);
            is_first = false;
        }
    }
    printf("}");
    print_where_json(g, of, "past", PAST);
    print_where_json(g, of, "perhaps_past", PERHAPS_PAST);
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
            printf(": %" PRIu64, n->mark_pos);
            is_first = false;
        }
    }
    printf("}");
    print_windows_json(g, of);
    printf("}");
}

static void print_text(const Group *g, const TtIncident *of)
{
    static const char *const absent[] = {
        [IN_WINDOW] = "has not heard of it", [PAST] = "no longer in its window",
        [PERHAPS_PAST] = "has not heard of it, or no longer in its window",
        [AFTER_LOG] = "its log ends before it",
    };
    const GroupMember *finder = finder_of(g, of);

    printf("@%s of %s%s%s\n", of->mark, finder ? finder->name : "a run that is not here",
           *of->what ? ": " : "", of->what);
    for (unsigned i = 0; i < g->members->len; i++) {
        const GroupMember *m = group_at(g, i);
        const GroupIncident *n = note_of(m, of);

        if (n) {
            printf("  %-*s %20" PRIu64 "%s%s%s\n", tool_width(m->name, 18), m->name,
                   n->mark_pos, is_gone(m, n) ? "  no longer in its window" : "",
                   n->window ? is_gone(m, n) ? "; saved in " : "  saved in " : "",
                   n->window ?: "");
        } else {
            printf("  %-*s %20s  %s\n", tool_width(m->name, 18), m->name, "-",
                   absent[where_is(g, of, i)]);
        }
    }
}

int group_incidents(const ToolArgs *a, const Group *g)
{
    g_autoptr(GArray) all = NULL;
    bool is_json = tool_has(a, "--json"), ok = group_load_windows(g);

    all = incidents_of(g);
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
    return ok ? TOOL_FINE : TOOL_PROBLEM;
}
