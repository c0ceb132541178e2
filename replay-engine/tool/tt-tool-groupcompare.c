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

/* Returns whether it sends the same. */
static bool compare_member(const GroupMember *was, uint64_t from, const GroupMember *is,
                           bool is_json)
{
    GroupFrames a, b;
    GroupDifference d;

    fill(&a, was, from);
    fill(&b, is, 0);
    group_difference(&d, &a, &b);
    if (is_json) {
        group_difference_json(&d, is->name);
    } else {
        group_difference_say(&d, is->name);
    }
    group_frames_cleanup(&a);
    group_frames_cleanup(&b);
    return !d.changed && !d.missing && !d.more;
}

int group_compare(const ToolArgs *a, const Group *g)
{
    bool is_json = tool_has(a, "--json"), is_same = true;
    g_autoptr(Group) second = NULL;
    unsigned n = 0;

    if (!a->operand[2] || a->operand[3]) {
        return tool_usage(a->command, "tt group compare needs a second group");
    }
    second = group_load(a->operand[2]);
    if (!second) {
        return TOOL_PROBLEM;
    }
    for (unsigned i = 0; i < second->members->len; i++) {
        const GroupMember *is = group_at(second, i), *was;
        uint64_t from;

        was = counterpart(g, is, &from);
        if (!was || !memcmp(was->uuid, is->uuid, 16)) {
            continue;                       /* a new one, or the same run */
        }
        if (from && was->first > from) {
            return tool_complain("the log of %s begins at %" PRIu64 ", and %s went on from "
                                 "%" PRIu64, was->name, was->first, is->name, from);
        }
        if (!n++ && is_json) {
            tool_json_begin();
            printf("\"members\": [");
        } else if (n == 1) {
            group_difference_head("frames sent");
        } else if (is_json) {
            printf(", ");
        }
        is_same &= compare_member(was, from, is, is_json);
    }
    if (!n) {
        return tool_complain("no member of %s goes on from one of %s, or has its name and "
                             "the same beginning", second->name, g->name);
    }
    if (is_json) {
        printf("], \"same\": %s}\n", tool_json_bool(is_same));
    }
    return TOOL_FINE;
}
