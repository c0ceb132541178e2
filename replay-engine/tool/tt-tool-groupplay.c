/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt group live --exact: one member does what it did, and the others go on for real in
 * that surrounding (relaxed replay: Emulab's distributed time travel).
 *
 * No device works in a replay, so it is not a replay that sends the frames again, but this
 * program: their bytes are in the member's frame store, their order and that of what it
 * received meanwhile is in its log, and so is the time. A frame is sent when the member
 * has received as many frames of each other one as it had received before it, and not
 * earlier, from the beginning, than then. For what does not come it waits for
 * PATIENCE_NS, and then for nothing of that member until it sends again. While a member
 * stands still (in gdb, say), so does time here.
 */
#include "tt-tool-groupplay.h"
#include "log/tt-timeat.h"

#include <inttypes.h>
#include <stdio.h>

#define PATIENCE_NS     UINT64_C(3000000000)
#define CONNECT_SECONDS 30
#define KEEP_BYTES_MAX  (64u << 20)     /* of frames that nobody had sent */

static void advance(GroupPlay *p);

/* ---- its time ---- */

static uint64_t now_ns(const GroupPlay *p)
{
    return p->ran_ns + (p->is_running ?
                        (uint64_t)g_get_monotonic_time() * 1000 - p->since_ns : 0);
}

static gboolean time_passed(gpointer opaque)
{
    GroupPlay *p = opaque;

    p->timer = 0;
    advance(p);
    return G_SOURCE_REMOVE;
}

static void wake_in(GroupPlay *p, uint64_t ns)
{
    if (p->timer) {
        g_source_remove(p->timer);
    }
    p->timer = g_timeout_add(MIN(ns / 1000000 + 1, 60000), time_passed, p);
}

void group_play_runs(GroupPlay *p, unsigned member, bool runs)
{
    bool is_running = true;

    p->senders[member].stands_still = !runs;
    for (unsigned i = 0; i < p->g->members->len; i++) {
        is_running &= i == p->index || !p->senders[i].stands_still;
    }
    if (p->is_running != is_running) {
        p->ran_ns = now_ns(p);
        p->since_ns = (uint64_t)g_get_monotonic_time() * 1000;
        p->is_running = is_running;
        advance(p);
    }
}

/* When was that, from the checkpoint on? It is looked up once, and asked for whenever a
 * frame comes. */
static uint64_t then_ns(GroupPlay *p, uint64_t pos)
{
    TtTimeAt at;

    if (p->then_of != pos) {
        p->then_of = pos;
        p->then_ns = tt_time_at(p->reader, pos, false, &at, NULL) == TT_OK &&
            at.host_ns > p->began_ns ? at.host_ns - p->began_ns : 0;
    }
    return p->then_ns;
}

/* ---- out ---- */

static bool is_behind(const Sender *s)
{
    return s->needed > s->is.list->len + s->forgiven;
}

static bool has_come(const GroupPlay *p)
{
    for (unsigned i = 0; i < p->g->members->len; i++) {
        if (is_behind(&p->senders[i]) && !p->senders[i].is_silent) {
            return false;
        }
    }
    return true;
}

static void forgive(GroupPlay *p)
{
    for (unsigned i = 0; i < p->g->members->len; i++) {
        Sender *s = &p->senders[i];

        if (!is_behind(s) || s->is_silent) {
            continue;
        }
        s->is_silent = true;
        if (!s->has_been_silent) {
            s->has_been_silent = true;
            printf("%s has not sent what it had sent by then: after %u s it is not waited "
                   "for until it sends again\n", group_at(p->g, i)->name,
                   (unsigned)(PATIENCE_NS / 1000000000));
            fflush(stdout);
        }
    }
}

/* It is heard of again; what it owes is not awaited any more. */
static void forget(Sender *s)
{
    if (s->is_silent) {
        s->is_silent = false;
        s->forgiven = is_behind(s) ? s->needed - s->is.list->len : s->forgiven;
    }
}

static void send_it(GroupPlay *p, const Step *step)
{
    const GroupFrame *x = &g_array_index(p->mine.list, GroupFrame, step->frame);
    TtDiag diag;
    g_autofree uint8_t *bytes = group_frames_bytes(&p->mine, x, &diag);
    TtFrame f = { .is_recorded = true, .pos = step->pos, .seq = x->seq, .hash = x->hash,
                  .epoch = group_link_epoch(p->link), .data = bytes, .len = x->len };

    memcpy(f.run, p->m->uuid, sizeof(f.run));
    if (!bytes) {
        tool_problem(&diag);
    }
    p->n_not_sent += !bytes || !group_link_send(p->link, &f);
}

/* Is it time for the next frame? False: the timer is set, or a frame must come. */
static bool is_due(GroupPlay *p, const Step *step)
{
    uint64_t now = now_ns(p), then = then_ns(p, step->pos);

    if (now < then + p->late_ns) {
        wake_in(p, then + p->late_ns - now);
        return false;
    }
    if (!has_come(p)) {
        p->waits_ns = p->waits_ns ?: now;
        if (now - p->waits_ns < PATIENCE_NS) {
            wake_in(p, PATIENCE_NS - (now - p->waits_ns));
            return false;
        }
        forgive(p);
    }
    if (p->waits_ns) {
        p->waits_ns = 0;
        p->late_ns = now - then;        /* what lies between two frames stays the same */
    }
    return true;
}

/* All that can be done now. */
static void advance(GroupPlay *p)
{
    while (p->is_running && p->next < p->steps->len) {
        const Step *step = &g_array_index(p->steps, Step, p->next);

        if (step->from != STEP_SEND) {
            p->senders[step->from].needed++;
        } else if (is_due(p, step)) {
            send_it(p, step);
        } else {
            return;
        }
        p->next++;
    }
    if (p->is_running && !p->has_said) {
        g_autofree char *frames = tool_count(p->mine.list->len, "frame");

        p->has_said = true;
        printf("%s has sent all that it had sent: %s\n", p->m->name, frames);
        fflush(stdout);
    }
}

/* ---- in ---- */

/* A hub that does not know yet where somebody is tells everybody. Who has sent nothing has
 * no address that is known here. */
static bool is_for_it(const GroupPlay *p, const TtFrame *f)
{
    uint64_t to = 0;

    memcpy(&to, f->data, 6);
    return f->data[0] & 1 || !g_hash_table_size(p->addresses) ||
        g_hash_table_contains(p->addresses, &to);
}

/* A branch has its id once it runs, before it sends anything. */
static void learn(Sender *s)
{
    g_autofree char *path = g_build_filename(s->run, "manifest", NULL);
    TtManifest m;

    if (tt_manifest_load(path, &m, NULL) == TT_OK) {
        memcpy(s->is.uuid, m.uuid, sizeof(s->is.uuid));
        s->run = NULL;
        tt_manifest_cleanup(&m);
    }
}

static Sender *sender_of(const GroupPlay *p, const TtFrame *f)
{
    for (unsigned i = 0; i < p->g->members->len; i++) {
        Sender *s = &p->senders[i];

        if (s->run) {
            learn(s);
        }
        if (!memcmp(s->is.uuid, f->run, TT_RUN_BYTES)) {
            return s;
        }
    }
    return NULL;
}

static void frame_came(void *opaque, const TtFrame *f)
{
    GroupPlay *p = opaque;
    Sender *s = sender_of(p, f);
    bool is_known;
    GroupFrame *x;

    if (!tt_heard_is_new(&p->heard, f) || !s) {
        return;
    }
    is_known = g_hash_table_contains(s->known, &f->hash);
    if (!is_known && !is_for_it(p, f)) {
        return;
    }
    group_frames_add(&s->is, f->seq, f->hash, f->len);
    x = &g_array_index(s->is.list, GroupFrame, s->is.list->len - 1);
    if (p->kept_bytes + f->len <= KEEP_BYTES_MAX) {
        x->bytes = g_memdup2(f->data, f->len);
        p->kept_bytes += f->len;
    }
    forget(s);
    advance(p);
}

void group_play_branch(GroupPlay *p, unsigned member, const char *run)
{
    p->senders[member].run = run;
}

/* ---- it is made ---- */

GroupPlay *group_play_new(const ToolArgs *a, const Group *g, uint32_t epoch, int *result)
{
    const char *name = tool_value(a, "--exact");
    GroupPlay *p;
    unsigned i = 0;

    *result = TOOL_FINE;
    if (!name) {
        return NULL;
    }
    while (i < g->members->len && strcmp(group_at(g, i)->name, name)) {
        i++;
    }
    if (i == g->members->len || g->members->len == 1) {
        *result = i ? tool_complain("%s has no member '%s': tt group info lists them",
                                    g->name, name) :
            tool_complain("%s has no other member that could go on", g->name);
        return NULL;
    }
    p = g_new0(GroupPlay, 1);
    *p = (GroupPlay) {
        .g = g, .m = group_at(g, i), .index = i, .epoch = epoch,
        .steps = g_array_new(false, false, sizeof(Step)),
        .addresses = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL),
    };
    if (!group_play_meet(p) || !group_play_script(p, a)) {
        group_play_free(p);
        *result = TOOL_PROBLEM;
        return NULL;
    }
    return p;
}

void group_play_free(GroupPlay *p)
{
    if (!p) {
        return;
    }
    if (p->timer) {
        g_source_remove(p->timer);
    }
    group_link_free(p->link);
    for (unsigned i = 0; p->senders && i < p->g->members->len; i++) {
        group_frames_cleanup(&p->senders[i].was);
        group_frames_cleanup(&p->senders[i].is);
        g_hash_table_unref(p->senders[i].known);
    }
    g_free(p->senders);
    group_frames_cleanup(&p->mine);
    if (p->reader) {
        tt_log_reader_free(p->reader);
        tt_manifest_cleanup(&p->manifest);
    }
    if (p->meeting) {
        group_meeting_free(p->meeting);
    }
    g_array_unref(p->steps);
    g_hash_table_unref(p->addresses);
    g_free(p);
}

const Group *group_play_group(const GroupPlay *p)
{
    return p->g;
}

unsigned group_play_member(const GroupPlay *p)
{
    return p->index;
}

/* ---- it begins, and ends ---- */

static gboolean wake(gpointer is_over)
{
    *(bool *)is_over = true;
    return G_SOURCE_CONTINUE;
}

bool group_play_open(GroupPlay *p)
{
    p->link = group_link_new(p->meeting, frame_came, p);
    return p->link;
}

bool group_play_wait(GroupPlay *p, const volatile sig_atomic_t *is_told)
{
    bool is_over = false;
    guint tag = g_timeout_add_seconds(CONNECT_SECONDS, wake, &is_over);

    while (!group_link_is_open(p->link) && !is_over && !*is_told) {
        g_main_context_iteration(NULL, true);
    }
    g_source_remove(tag);
    if (is_over) {
        tool_complain("there is no link to %s, in the place of %s, after %d s",
                      p->meeting->address, p->m->name, CONNECT_SECONDS);
    }
    return !is_over && !*is_told;
}

void group_play_say(const GroupPlay *p)
{
    g_autofree char *what = g_strdup_printf("to %s", p->m->name);

    if (p->n_not_sent) {
        g_autofree char *frames = tool_count(p->n_not_sent, "frame");

        tool_complain("%s of %s found nobody who took %s", frames, p->m->name,
                      p->n_not_sent == 1 ? "it" : "them");
    }
    if (!p->has_said) {
        printf("%s has done %u of %u steps\n", p->m->name, p->next, p->steps->len);
    }
    group_difference_head(what);
    for (unsigned i = 0; i < p->g->members->len; i++) {
        GroupDifference d;

        if (i != p->index) {
            group_difference(&d, &p->senders[i].was, &p->senders[i].is);
            group_difference_say(&d, group_at(p->g, i)->name);
        }
    }
}
