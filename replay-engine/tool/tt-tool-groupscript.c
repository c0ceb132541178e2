/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt group live --exact: what the member sent, and what it received before it did, from
 * its log and its frame store.
 */
#include "tt-tool-groupplay.h"
#include "log/tt-timeat.h"

#include <inttypes.h>

static void add_address(GroupPlay *p, const uint8_t *bytes)
{
    uint64_t *address = g_new0(uint64_t, 1);

    memcpy(address, bytes + 6, 6);
    g_hash_table_add(p->addresses, address);
}

/* @given: by --frames. */
static void complain_missing(const GroupPlay *p, uint64_t seq, const char *dir, bool given,
                             const TtDiag *diag)
{
    g_autofree char *path = dir ? tt_framestores_path(dir, p->m->uuid) : NULL;

    if (given && !g_file_test(path, G_FILE_TEST_EXISTS)) {
        tool_complain("%s cannot do again what it did, its frame %" PRIu64 " is missing: "
                      "there is no '%s': give with --frames the directory that has this file",
                      p->m->name, seq, path);
    } else if (path && !g_file_test(path, G_FILE_TEST_EXISTS)) {
        tool_complain("%s cannot do again what it did, its frame %" PRIu64 " is missing: "
                      "there is no '%s': put it back, or say with --frames where the stores "
                      "are", p->m->name, seq, path);
    } else {
        tool_complain("%s cannot do again what it did, its frame %" PRIu64 " is missing%s%s: "
                      "%s%s", p->m->name, seq, path ? " in " : "", path ?: "", diag->text,
                      given ? "" : ", or say with --frames where the stores are");
    }
}

/* All that it sent from the checkpoint on is in its store, in @dir. */
static bool add_sends(GroupPlay *p, const char *dir, bool given)
{
    for (unsigned i = 0; i < p->m->sent->len; i++) {
        const GroupSent *s = &g_array_index(p->m->sent, GroupSent, i);
        GroupFrame x = { .seq = s->seq, .hash = s->hash, .len = s->len };
        g_autofree uint8_t *bytes = NULL;
        TtDiag diag;

        if (s->epoch < p->epoch) {
            continue;
        }
        bytes = group_frames_bytes(&p->mine, &x, &diag);
        if (!bytes) {
            complain_missing(p, s->seq, dir, given, &diag);
            return false;
        }
        add_address(p, bytes);
        group_frames_add(&p->mine, s->seq, s->hash, s->len);
    }
    return true;
}

/* Does the live sender send it again? Not what was on its way at the checkpoint, nor what
 * comes from outside. */
static bool is_awaited(const GroupPlay *p, const GroupGot *got, uint64_t from)
{
    return got->pos >= from && got->from != GROUP_OUTSIDE && !got->is_early &&
        got->epoch >= p->epoch;
}

static void add_steps(GroupPlay *p, uint64_t from)
{
    unsigned k = 0, n = 0;

    for (unsigned i = 0; i <= p->m->sent->len; i++) {
        const GroupSent *sent = &g_array_index(p->m->sent, GroupSent, i);

        for (; k < p->m->got->len; k++) {
            const GroupGot *got = &g_array_index(p->m->got, GroupGot, k);
            Step step = { .pos = got->pos, .from = got->from };

            if (got->n_sent > i) {
                break;
            }
            if (is_awaited(p, got, from)) {
                Sender *s = &p->senders[got->from];

                g_array_append_val(p->steps, step);
                group_frames_add(&s->was, got->seq, got->hash, got->len);
                g_hash_table_add(s->known, g_memdup2(&got->hash, sizeof(got->hash)));
            }
        }
        if (i < p->m->sent->len && sent->epoch >= p->epoch) {
            Step step = { .pos = sent->pos, .from = STEP_SEND, .frame = n++ };

            g_array_append_val(p->steps, step);
        }
    }
}

bool group_play_script(GroupPlay *p, const ToolArgs *a)
{
    const char *given = tool_value(a, "--frames"), *dir = given ?: p->m->frames;
    uint64_t from = group_point(p->m, p->epoch)->pos;
    TtTimeAt at;
    TtDiag diag;

    group_frames_init(&p->mine, dir, p->m->uuid);
    p->senders = g_new0(Sender, p->g->members->len);
    for (unsigned i = 0; i < p->g->members->len; i++) {
        const GroupMember *other = group_at(p->g, i);
        Sender *s = &p->senders[i];

        group_frames_init(&s->was, given ?: other->frames, other->uuid);
        group_frames_init(&s->is, NULL, (const uint8_t[16]) { 0 });
        s->stands_still = true;
        s->known = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    }
    p->reader = tool_open_run(p->m->run, &p->manifest);
    if (!p->reader) {
        return false;
    }
    if (tt_time_at(p->reader, MIN(from, p->m->end), false, &at, &diag)) {
        tool_problem(&diag);
        return false;
    }
    p->began_ns = at.host_ns;
    if (!add_sends(p, dir, given)) {
        return false;
    }
    add_steps(p, from);
    return true;
}

/* Where it met the others: in one place. */
bool group_play_meet(GroupPlay *p)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(group_meeting_free);

    if (!group_meetings(p->m, all)) {
        return false;
    }
    if (all->len != 1) {
        tool_complain("%s has %u netdevs of this kind in its recorded options: --exact takes "
                      "a member with one", p->m->name, all->len);
        return false;
    }
    p->meeting = g_ptr_array_steal_index(all, 0);
    return true;
}
