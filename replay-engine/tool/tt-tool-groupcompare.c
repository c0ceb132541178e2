/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt group compare: two groups whose members go back to the same state, such as a recorded
 * group and the one that went on from its checkpoint: what does each member send, and
 * where does that differ first?
 */
#include "tt-tool-group.h"

#include <inttypes.h>
#include <stdio.h>

/* The member of @g that @m went on from, and where; @m's namesake, which begins as it does.
 * NULL: there is none. */
static const GroupMember *counterpart(const Group *g, const GroupMember *m,
                                      uint64_t *from)
{
    for (unsigned i = 0; m->is_branch && i < g->members->len; i++) {
        const GroupMember *other = group_at(g, i);

        if (!memcmp(other->uuid, m->parent_uuid, 16)) {
            *from = m->parent_pos;
            return other;
        }
    }
    for (unsigned i = 0; i < g->members->len; i++) {
        const GroupMember *other = group_at(g, i);

        if (!strcmp(other->name, m->name) && other->is_branch == m->is_branch &&
            (!m->is_branch || (other->parent_pos == m->parent_pos &&
                               !memcmp(other->parent_uuid, m->parent_uuid, 16)))) {
            *from = 0;
            return other;
        }
    }
    return NULL;
}

/* Is @m a run of @g, or a copy of one? */
static bool is_itself(const Group *g, const GroupMember *m)
{
    for (unsigned i = 0; i < g->members->len; i++) {
        if (!memcmp(group_at(g, i)->uuid, m->uuid, 16)) {
            return true;
        }
    }
    return false;
}

/* What @m sent at @from and later. */
static void fill(GroupFrames *f, const GroupMember *m, uint64_t from)
{
    group_frames_init(f, m->frames, m->uuid);
    for (unsigned i = 0; i < m->sent->len; i++) {
        const GroupSent *s = &g_array_index(m->sent, GroupSent, i);

        if (s->pos >= from) {
            group_frames_add(f, s->seq, s->hash, s->len);
        }
    }
}

/* A member of the second group, and what it is compared with. */
typedef struct Pair {
    const GroupMember *was, *is;
    uint64_t from;              /* where @is begins in @was */
} Pair;

/* Returns whether it sends the same. */
static bool compare_member(const Pair *p, bool is_json)
{
    GroupFrames a, b;
    GroupDifference d;

    fill(&a, p->was, p->from);
    fill(&b, p->is, 0);
    group_difference(&d, &a, &b);
    if (is_json) {
        group_difference_json(&d, p->is->name);
    } else {
        group_difference_say(&d, p->is->name);
    }
    group_frames_cleanup(&a);
    group_frames_cleanup(&b);
    return !d.changed && !d.missing && !d.more;
}

/* What can be compared, in the order of @second; of Pair. NULL: said why not. */
static GArray *pairs_of(const ToolArgs *a, const Group *g, const Group *second)
{
    g_autoptr(GArray) all = g_array_new(false, false, sizeof(Pair));
    unsigned n_itself = 0;

    for (unsigned i = 0; i < second->members->len; i++) {
        Pair p = { .is = group_at(second, i) };

        if (is_itself(g, p.is)) {
            n_itself++;
            continue;
        }
        p.was = counterpart(g, p.is, &p.from);
        if (!p.was) {
            continue;                       /* a new one */
        }
        if (p.from && p.was->first > p.from) {
            tool_complain("the log of %s begins at %" PRIu64 ", and %s went on from %" PRIu64,
                          p.was->name, p.was->first, p.is->name, p.from);
            return NULL;
        }
        g_array_append_val(all, p);
    }
    if (n_itself == second->members->len) {
        tool_complain("'%s' has only runs of '%s', or copies of them, so there is nothing to "
                      "compare: give a group that went on from it (tt group live), or another "
                      "recording of the same machines", a->operand[2], a->operand[1]);
    } else if (!all->len) {
        tool_complain("no member of %s goes on from one of %s, or has its name and the same "
                      "beginning", second->name, g->name);
    }
    return all->len ? g_steal_pointer(&all) : NULL;
}

int group_compare(const ToolArgs *a, const Group *g)
{
    bool is_json = tool_has(a, "--json"), is_same = true;
    g_autoptr(Group) second = NULL;
    g_autoptr(GArray) pairs = NULL;

    if (!a->operand[2] || a->operand[3]) {
        return tool_usage(a->command, "tt group compare needs a second group");
    }
    second = group_load(a->operand[2]);
    pairs = second ? pairs_of(a, g, second) : NULL;
    if (!pairs) {
        return TOOL_PROBLEM;
    }
    if (is_json) {
        tool_json_begin();
        printf("\"members\": [");
    } else {
        group_difference_head("frames sent");
    }
    for (unsigned i = 0; i < pairs->len; i++) {
        if (is_json && i) {
            printf(", ");
        }
        is_same &= compare_member(&g_array_index(pairs, Pair, i), is_json);
    }
    if (is_json) {
        printf("], \"same\": %s}\n", tool_json_bool(is_same));
    }
    return TOOL_FINE;
}
