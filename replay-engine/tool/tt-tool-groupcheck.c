/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tt group check: what does not fit together in the runs of a group. */
#include "tt-tool-group.h"

#include <inttypes.h>
#include <stdio.h>

#define FINDINGS_MAX 20

void group_find(GPtrArray *list, const char *fmt, ...)
{
    va_list ap;

    if (list->len < FINDINGS_MAX) {
        va_start(ap, fmt);
        g_ptr_array_add(list, g_strdup_vprintf(fmt, ap));
        va_end(ap);
    } else if (list->len == FINDINGS_MAX) {
        g_ptr_array_add(list, g_strdup("and more like this"));
    }
}

static void check_got(const Group *g, const GroupMember *m, const GroupGot *got,
                      GPtrArray *list)
{
    const GroupMember *from = group_at(g, got->from);
    const GroupSent *s;
    uint64_t first;

    if (!from->sent->len &&
        (from->is_live || from->is_saved ||
         (from->is_window && (from->is_kvm || got->sent_at == from->first)))) {
        return;             /* in flight; sent after its window was saved, or before it */
    }
    if (!from->sent->len && from->is_whole) {
        group_find(list, "%s received frame %" PRIu64 " of %s at position %" PRIu64 ", but "
                   "that run has sent nothing", m->name, got->seq, from->name, got->pos);
        return;
    }
    first = from->sent->len ? g_array_index(from->sent, GroupSent, 0).seq : 0;
    if (got->seq < first) {
        return;                             /* sent before its recording began */
    }
    if (got->seq - first >= from->sent->len && (from->is_saved || from->is_live)) {
        return;                 /* sent after its window was saved; or in flight */
    }
    if (got->seq - first >= from->sent->len) {
        group_find(list, "%s received frame %" PRIu64 " of %s at position %" PRIu64 ", which "
             "is lost: the log of %s ends before it was sent", m->name, got->seq, from->name,
             got->pos, from->name);
        return;
    }
    s = &g_array_index(from->sent, GroupSent, got->seq - first);
    if (s->hash != got->hash || s->len != got->len) {
        group_find(list, "frame %" PRIu64 " of %s is not what %s received at position %" PRIu64
             ": its hash or its length differs", got->seq, from->name, m->name, got->pos);
    } else if (!from->is_kvm && s->pos != got->sent_at) {
        group_find(list, "frame %" PRIu64 " of %s says that it was sent at position %" PRIu64
             ", but the log of %s says %" PRIu64, got->seq, from->name, got->sent_at,
             from->name, s->pos);
    }
}

/* A position at which a frame was sent, and after that one was got that follows from it: who
 * got the one and sent the other cannot stand between the two. It takes a device that sends
 * while the vCPUs are halted. (The other way round is harmless: a NIC may get a frame and
 * write nothing.) */
static void check_ties(const Group *g, unsigned member, GPtrArray *list)
{
    const GroupMember *m = group_at(g, member);
    uint64_t done = UINT64_MAX, at;
    unsigned other;

    for (unsigned i = 0; i < m->got->len && list->len <= FINDINGS_MAX; i++) {
        const GroupGot *got = &g_array_index(m->got, GroupGot, i);

        if (got->pos == done || got->from == GROUP_OUTSIDE || !got->n_sent ||
            g_array_index(m->sent, GroupSent, got->n_sent - 1).pos != got->pos) {
            continue;
        }
        done = got->pos;
        if (tt_causal_ties(g->causal, member, got->pos, &other, &at)) {
            group_find(list, "%s sent a frame and got an answer to it at one position, %"
                 PRIu64 ", since its vCPUs were halted: no cut has %s at position %" PRIu64,
                 m->name, got->pos, group_at(g, other)->name, at);
        }
    }
}

/* Something between the members has cut the trailers off. */
static void check_bare(const GroupMember *m, GPtrArray *list)
{
    g_autofree char *frames = tool_count(m->bare, "frame");

    if (m->bare) {
        group_find(list, "%s received %s without a trailer from the MAC address of a member: "
             "its filter-tt was taken away, or something between them cuts frames, and cuts "
             "of the group know nothing of these", m->name, frames);
    }
}

/* Sentences about what does not fit together; empty: all is well. @n_open: checkpoints and
 * incidents of which that cannot be told yet. */
static GPtrArray *findings(const Group *g, unsigned *n_open)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(g_free);

    for (unsigned i = 0; i < g->members->len; i++) {
        const GroupMember *m = group_at(g, i);

        for (unsigned k = 0; k < m->got->len; k++) {
            const GroupGot *got = &g_array_index(m->got, GroupGot, k);

            if (got->from != GROUP_OUTSIDE && !got->is_early) {
                check_got(g, m, got, list);
            }
        }
        check_ties(g, i, list);
        check_bare(m, list);
    }
    *n_open = group_check_points(g, list);
    *n_open += group_check_incidents(g, list);
    return list;
}

/* Names, of those that are still recorded. */
static GPtrArray *live_members(const Group *g)
{
    GPtrArray *names = g_ptr_array_new();

    for (unsigned i = 0; i < g->members->len; i++) {
        if (group_at(g, i)->is_live) {
            g_ptr_array_add(names, group_at(g, i)->name);
        }
    }
    return names;
}

/* Those that no frame, and no word of an incident, has brought together with another one. */
static GPtrArray *strangers(const Group *g)
{
    g_autofree bool *has_met = g_new0(bool, g->members->len);
    GPtrArray *names = g_ptr_array_new();

    for (unsigned i = 0; i < g->members->len; i++) {
        const GroupMember *m = group_at(g, i);

        for (unsigned k = 0; k < m->got->len; k++) {
            unsigned from = g_array_index(m->got, GroupGot, k).from;

            if (from != GROUP_OUTSIDE && from != i) {
                has_met[i] = has_met[from] = true;
            }
        }
        for (unsigned k = 0; k < m->incidents->len; k++) {
            int from = group_find_uuid(g, g_array_index(m->incidents, GroupIncident,
                                                        k).what.run);

            if (from >= 0 && (unsigned)from != i) {
                has_met[i] = has_met[from] = true;
            }
        }
    }
    for (unsigned i = 0; i < g->members->len && g->members->len > 1; i++) {
        if (!has_met[i]) {
            g_ptr_array_add(names, group_at(g, i)->name);
        }
    }
    return names;
}

static void print_names(const char *what, const GPtrArray *names, const char *end)
{
    printf("%s", what);
    for (unsigned i = 0; i < names->len; i++) {
        printf("%s%s", i ? ", " : "", (const char *)names->pdata[i]);
    }
    printf("%s\n", end);
}

/* There is nothing against it that they are a group. Whether anything is for it is said. */
static void print_verdict(const Group *g, bool is_live, const GPtrArray *strange)
{
    g_autofree char *frames = tool_count(tt_causal_totals(g->causal).deliveries, "frame"),
                    *members = tool_count(g->members->len, "member");

    if (strange->len == g->members->len) {
        printf("nothing shows%s that the members of %s were in one group, and nothing speaks "
               "against it: they are strangers, no frame of one came to another\n",
               is_live ? " so far" : "", g->name);
        return;
    }
    printf("the runs of %s fit together%s: %s of %s\n", g->name, is_live ? " so far" : "",
           frames, members);
    if (strange->len) {
        print_names("strangers, as no frame went between them and others: ", strange, "");
    }
}

static void print_live(const Group *g, const GPtrArray *live)
{
    g_autofree char *flight = g_strdup_printf("; frames in flight: %" PRIu64,
                                              tt_causal_totals(g->causal).pending);

    print_names("still recorded: ", live, flight);
}

int group_check(const ToolArgs *a, const Group *g)
{
    unsigned n_open;
    g_autoptr(GPtrArray) list = findings(g, &n_open), live = live_members(g);
    g_autoptr(GPtrArray) strange = strangers(g);
    TtCausalTotals t = tt_causal_totals(g->causal);
    int result = list->len ? TOOL_PROBLEM : TOOL_FINE;

    if (tool_has(a, "--json")) {
        tool_json_begin();
        printf("\"fine\": %s", tool_json_bool(!list->len));
        tool_json_list("findings", list);
        tool_json_list("strangers", strange);
        tool_json_list("recording", live);
        printf(", \"in_flight\": %" PRIu64 ", \"unknown\": %" PRIu64 ", \"undecided\": %u}\n",
               t.pending, t.unknown, n_open);
        return result;
    }
    for (unsigned i = 0; i < list->len; i++) {
        tool_complain("%s", (const char *)list->pdata[i]);
    }
    if (!list->len) {
        print_verdict(g, live->len, strange);
    }
    if (live->len) {
        print_live(g, live);
    }
    if (n_open) {
        printf("checkpoints and incidents that cannot be checked%s%s: %u\n",
               t.pending ? " before those have arrived" : "",
               !t.unknown ? "" : t.pending ? ", or since windows do not tell enough" :
               ", since windows do not tell enough", n_open);
    }
    return result;
}
