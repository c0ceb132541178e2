/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt group checkpoints: the checkpoints of the whole group, and whether each of them is one
 * moment.
 */
#include "tt-tool-group.h"

#include <inttypes.h>
#include <stdio.h>

static gint by_epoch(gconstpointer a, gconstpointer b)
{
    uint32_t x = ((const GroupPoint *)a)->epoch, y = ((const GroupPoint *)b)->epoch;

    return x < y ? -1 : x > y;
}

const GroupPoint *group_point(const GroupMember *m, uint32_t epoch)
{
    const GroupPoint key = { .epoch = epoch }, *p;
    guint i;

    if (!g_array_binary_search(m->points, &key, by_epoch, &i)) {
        return NULL;
    }
    p = &g_array_index(m->points, GroupPoint, i);
    return p->is_made ? p : NULL;
}

/* Behind a checkpoint the recorder logs the state of the vCPUs, which is one position, and
 * then notes it. Frames that were sent at the checkpoint's own position belong to it, so the
 * cut is behind it; nothing else happens between the two. */
uint64_t group_point_pos(const GroupPoint *made)
{
    return made->pos ? made->pos - 1 : 0;
}

/* Where all stood that have it; UINT64_MAX: not known. g_free. */
static uint64_t *places_of(const Group *g, uint32_t epoch)
{
    uint64_t *at = g_new(uint64_t, g->members->len);

    for (unsigned i = 0; i < g->members->len; i++) {
        const GroupPoint *p = group_point(group_at(g, i), epoch);

        at[i] = p ? p->pos : UINT64_MAX;
    }
    return at;
}

enum { IN_WINDOW, PERHAPS_PAST, PAST };

/* Is it before the window of member @i? Numbers go up, those in frames too. */
static int is_past(const Group *g, unsigned i, uint32_t epoch)
{
    const GroupMember *m = group_at(g, i);
    const GroupPoint *p = group_point(m, epoch);
    g_autofree uint64_t *at = places_of(g, epoch);

    if (p || !m->is_window) {
        return p && group_point_pos(p) < m->start ? PAST : IN_WINDOW;
    }
    if (m->points->len) {
        return g_array_index(m->points, GroupPoint, 0).epoch > epoch ? PAST : IN_WINDOW;
    }
    return m->sent->len && g_array_index(m->sent, GroupSent, 0).epoch >= epoch ? PAST :
        tt_causal_begins_before(g->causal, i, at) ? IN_WINDOW : PERHAPS_PAST;
}

static bool is_any(const Group *g, uint32_t epoch)
{
    for (unsigned i = 0; i < g->members->len; i++) {
        if (group_point(group_at(g, i), epoch)) {
            return true;
        }
    }
    return false;
}

static gint by_number(gconstpointer a, gconstpointer b)
{
    return *(const uint32_t *)a < *(const uint32_t *)b ? -1 :
           *(const uint32_t *)a > *(const uint32_t *)b;
}

GArray *group_epochs(const Group *g)
{
    GArray *all = g_array_new(false, false, sizeof(uint32_t));
    unsigned n = 0;

    for (unsigned i = 0; i < g->members->len; i++) {
        const GArray *points = group_at(g, i)->points;

        for (unsigned k = 0; k < points->len; k++) {
            g_array_append_val(all, g_array_index(points, GroupPoint, k).epoch);
        }
    }
    g_array_sort(all, by_number);
    for (unsigned i = 0; i < all->len; i++) {
        uint32_t e = g_array_index(all, uint32_t, i);

        if (!n || g_array_index(all, uint32_t, n - 1) != e) {
            g_array_index(all, uint32_t, n++) = e;
        }
    }
    g_array_set_size(all, n);
    return all;
}

bool group_is_cut(const Group *g, const uint64_t *at, TtDiag *diag)
{
    return tt_causal_check_places(g->causal, at, false, diag) == TT_OK;
}

bool group_may_be_cut(const Group *g, const uint64_t *at, TtDiag *diag)
{
    return tt_causal_check_places(g->causal, at, true, diag) == TT_OK;
}

bool group_is_moment(const Group *g, uint32_t epoch, TtDiag *diag)
{
    g_autofree uint64_t *at = places_of(g, epoch);

    return group_is_cut(g, at, diag);
}

unsigned group_check_points(const Group *g, GPtrArray *list)
{
    g_autoptr(GArray) all = group_epochs(g);
    unsigned n_open = 0;
    TtDiag diag;

    for (unsigned i = 0; i < all->len; i++) {
        uint32_t e = g_array_index(all, uint32_t, i);
        g_autofree uint64_t *at = places_of(g, e);

        if (group_is_cut(g, at, &diag)) {
            continue;
        }
        if (group_may_be_cut(g, at, &diag)) {
            n_open++;
        } else {
            group_find(list, "checkpoint %" PRIu32 " of the group is not consistent: %s", e,
                       diag.text);
        }
    }
    return n_open;
}

void group_note_cut(const Group *g, const uint64_t *at)
{
    TtDiag diag;

    if (!group_is_cut(g, at, &diag)) {
        return;
    }
    for (unsigned i = 0; i < g->members->len; i++) {
        if (at[i] != UINT64_MAX) {
            tt_causal_was_at(g->causal, i, at);
        }
    }
}

/* The first that @m made; 0: none. */
static uint32_t first_made(const GroupMember *m)
{
    for (unsigned i = 0; i < m->points->len; i++) {
        const GroupPoint *p = &g_array_index(m->points, GroupPoint, i);

        if (p->is_made) {
            return p->epoch;
        }
    }
    return 0;
}

/* In a group that goes on the numbers may be those of old ones, so they prove nothing: a
 * member that is repeated has its own (tt group live --exact). */
static bool has_branch(const Group *g)
{
    for (unsigned i = 0; i < g->members->len; i++) {
        if (group_at(g, i)->is_branch) {
            return true;
        }
    }
    return false;
}

void group_note_points(const Group *g)
{
    g_autoptr(GHashTable) done = g_hash_table_new(NULL, NULL);

    for (unsigned i = 0; !has_branch(g) && i < g->members->len; i++) {
        uint32_t epoch = first_made(group_at(g, i));

        if (epoch && g_hash_table_add(done, GUINT_TO_POINTER(epoch))) {
            g_autofree uint64_t *at = places_of(g, epoch);

            group_note_cut(g, at);
        }
    }
}

static void print_json(const Group *g, uint32_t epoch)
{
    bool is_first = true;

    printf("{\"number\": %" PRIu32 ", \"members\": {", epoch);
    for (unsigned i = 0; i < g->members->len; i++) {
        const GroupMember *m = group_at(g, i);
        const GroupPoint *p = group_point(m, epoch);

        if (p) {
            printf("%s", is_first ? "" : ", ");
            tool_json_string(m->name);
            printf(": {\"position\": %" PRIu64 ", \"kept\": %u}",
                   group_point_pos(p), p->n_kept);
            is_first = false;
        }
    }
    printf("}, \"lost\": [");
    is_first = true;
    for (unsigned i = 0; i < g->members->len; i++) {
        const GroupMember *m = group_at(g, i);
        const GroupPoint *p = group_point(m, epoch);

        if (p && p->is_lost && is_past(g, i, epoch) != PAST) {
            printf("%s", is_first ? "" : ", ");
            tool_json_string(m->name);
            is_first = false;
        }
    }
    printf("]}");
}

static void print_text(const Group *g, uint32_t epoch)
{
    static const char *const absent[] = {
        [IN_WINDOW] = "is without it", [PAST] = "no longer in its window",
        [PERHAPS_PAST] = "perhaps no longer in its window",
    };

    printf("checkpoint %" PRIu32 ", @group-%" PRIu32 "\n", epoch, epoch);
    for (unsigned i = 0; i < g->members->len; i++) {
        const GroupMember *m = group_at(g, i);
        const GroupPoint *p = group_point(m, epoch);

        if (p) {
            g_autofree char *frames = tool_count(p->n_kept, "frame");

            printf("  %-*s %20" PRIu64 "  %s on %s way%s\n", tool_width(m->name, 18), m->name,
                   group_point_pos(p), frames, p->n_kept == 1 ? "its" : "their",
                   is_past(g, i, epoch) ? "; no longer in its window" :
                   p->is_lost ? "; its files no longer have it" : "");
        } else {
            printf("  %-*s %20s  %s\n", tool_width(m->name, 18), m->name, "-",
                   absent[is_past(g, i, epoch)]);
        }
    }
}

int group_checkpoints(const ToolArgs *a, const Group *g)
{
    g_autoptr(GArray) all = group_epochs(g);

    group_look_for_points(g);
    for (unsigned i = 0; i < g->members->len; i++) {
        if (group_at(g, i)->damage) {
            g_autofree char *text = g_strdup_printf("the checkpoints of %s are damaged: %s",
                                                    group_at(g, i)->name,
                                                    group_at(g, i)->damage);

            tool_note(text);
        }
    }
    if (tool_has(a, "--json")) {
        tool_json_begin();
        printf("\"checkpoints\": [");
        for (unsigned i = 0; i < all->len; i++) {
            printf("%s", i ? ", " : "");
            print_json(g, g_array_index(all, uint32_t, i));
        }
        puts("]}");
        return TOOL_FINE;
    }
    for (unsigned i = 0; i < all->len; i++) {
        print_text(g, g_array_index(all, uint32_t, i));
    }
    if (!all->len) {
        printf("%s has none: 'tt checkpoint add -g' in a member's monitor makes one\n",
               g->name);
    }
    return TOOL_FINE;
}

/* ---- for tt group live ---- */

static bool is_of_all(const Group *g, uint32_t epoch, bool is_strict)
{
    for (unsigned i = 0; i < g->members->len; i++) {
        const GroupPoint *p = group_point(group_at(g, i), epoch);

        if (!p || (is_strict && p->is_lost) || is_past(g, i, epoch) == PAST) {
            return false;
        }
    }
    return true;
}

/* The last one that all members have; or had, and then it is said who has lost it. */
static int choose_last(const Group *g, uint32_t *epoch)
{
    g_autoptr(GArray) all = group_epochs(g);

    for (unsigned lax = 0; lax < 2; lax++) {
        for (unsigned i = all->len; i-- > 0; ) {
            *epoch = g_array_index(all, uint32_t, i);
            if (is_of_all(g, *epoch, !lax)) {
                return TOOL_FINE;
            }
        }
    }
    return tool_complain(all->len ? "%s has no checkpoint that all members have: tt "
                         "group checkpoints shows who is without" :
                         "%s has no checkpoint of the group: 'tt checkpoint add -g' in a "
                         "member's monitor makes one", g->name);
}

int group_choose(const ToolArgs *a, const Group *g, uint32_t *epoch)
{
    const char *at = tool_value(a, "--at");
    uint64_t n;
    TtDiag diag;

    group_look_for_points(g);
    if (!at) {
        int result = choose_last(g, epoch);

        if (result) {
            return result;
        }
    } else if (!tool_parse_number(at + (g_str_has_prefix(at, "@group-") ? 7 : 0), &n) ||
               !n || n > TT_EPOCH_MAX) {
        return tool_usage(a->command, "--at takes a checkpoint of the group, such as "
                                         "@group-1, not '%s'", at);
    } else {
        *epoch = n;
    }
    if (!is_any(g, *epoch)) {
        return tool_complain("no member of %s has a checkpoint @group-%" PRIu32 ": choose "
                             "another (tt group checkpoints lists them)", g->name, *epoch);
    }
    for (unsigned i = 0; i < g->members->len; i++) {
        const GroupMember *m = group_at(g, i);
        int past = is_past(g, i, *epoch);

        if (past == PAST) {
            return tool_complain("the window of %s begins after its checkpoint @group-%" PRIu32
                                 ", at position %" PRIu64 ": choose a later one (tt group "
                                 "checkpoints lists them)", m->name, *epoch, m->start);
        }
        if (past == PERHAPS_PAST) {
            return tool_complain("the window of %s does not have checkpoint @group-%" PRIu32
                                 ", and perhaps begins after it: choose a later one (tt "
                                 "group checkpoints lists them)", m->name, *epoch);
        }
        if (!group_point(m, *epoch)) {
            return tool_complain("%s has no checkpoint @group-%" PRIu32 ": choose "
                                 "another (tt group checkpoints lists them), or give a list "
                                 "of runs without that member", m->name, *epoch);
        }
        if (group_point(m, *epoch)->is_lost) {
            return tool_complain("%s has lost its checkpoint @group-%" PRIu32 " (%s): choose "
                                 "another (tt group checkpoints lists them)%s%s", m->name,
                                 *epoch, m->damage ?: "its files no longer have it",
                                 m->damage ? ", or see what tt check says of " : "",
                                 m->damage ? m->run : "");
        }
    }
    return group_is_moment(g, *epoch, &diag) ? TOOL_FINE :
        tool_complain("checkpoint @group-%" PRIu32 " is not consistent: %s", *epoch,
                      diag.text);
}
