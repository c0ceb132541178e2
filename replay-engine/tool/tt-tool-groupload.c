/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt group: reads from the logs of a group who sent and who got which frame, and makes the
 * index of their order.
 */
#include "tt-tool-group.h"
#include "log/tt-logparts.h"

#include <inttypes.h>
#include <sys/resource.h>

#define NOTES_MAX 20            /* thousands of runs may have been cut off */

static void member_free(gpointer opaque)
{
    GroupMember *m = opaque;

    g_free(m->name);
    g_free(m->run);
    g_free(m->directory);
    g_free(m->damage);
    g_free(m->frames);
    g_array_unref(m->sent);
    g_array_unref(m->got);
    g_array_unref(m->points);
    for (unsigned i = 0; i < m->incidents->len; i++) {
        g_free(g_array_index(m->incidents, GroupIncident, i).window);
    }
    g_array_unref(m->incidents);
    g_ptr_array_unref(m->windows);
    g_hash_table_unref(m->kept);
    g_free(m);
}

void group_free(Group *g)
{
    tt_causal_free(g->causal);
    g_ptr_array_unref(g->members);
    g_free(g->names);
    g_free(g->name);
    g_free(g);
}

/* ---- their logs ---- */

int group_find_uuid(const Group *g, const uint8_t *uuid)
{
    for (unsigned i = 0; i < g->members->len; i++) {
        if (!memcmp(group_at(g, i)->uuid, uuid, 16)) {
            return i;
        }
    }
    return -1;
}

/* A frame that belongs to some checkpoints of the group. */
static TtStatus add_kept(GroupMember *m, const TtEvent *ev, TtDiag *diag)
{
    const TtFrame *f = &m->keeping->frame;
    TtStatus st = tt_kept_take(m->keeping, ev->addr, ev->val, ev->aux, ev->data, ev->len,
                               diag);
    char run[2 * TT_RUN_BYTES + 1], *key;
    unsigned from;

    if (st) {
        return st == TT_END ? TT_OK : st;
    }
    tt_run_text(run, f->run);
    key = g_strdup_printf("%s %" PRIu64 " %s", run, f->seq, m->keeping->netdev);
    /* One that was noted before counts only for the checkpoints since. */
    from = GPOINTER_TO_UINT(g_hash_table_lookup(m->kept, key));
    for (unsigned i = m->points->len; i-- > from; ) {
        GroupPoint *q = &g_array_index(m->points, GroupPoint, i);

        if (q->epoch <= f->epoch) {
            break;
        }
        q->n_kept++;
    }
    g_hash_table_replace(m->kept, key, GUINT_TO_POINTER(m->points->len));
    return TT_OK;
}

static bool is_kept(uint64_t what)
{
    return what == TT_FRAME_KEPT || what == TT_FRAME_REST;
}

static void remember_mark(GroupMember *m, const TtEvent *ev)
{
    g_hash_table_replace(m->marks, g_strndup((const char *)ev->data, ev->len),
                         g_memdup2(&ev->pos, sizeof(ev->pos)));
}

/* Who has found it marks the place and then goes to one of its own for the note; for all
 * others these are one. */
static TtStatus add_incident(GroupMember *m, const TtEvent *ev, TtDiag *diag)
{
    GroupIncident i = { .pos = ev->pos, .mark_pos = ev->pos };
    TtStatus st = tt_incident_note_get(&i.what, ev->val, ev->data, ev->len, diag);
    const uint64_t *mark;

    if (!st) {
        m->may_filter |= ev->aux & TT_WAYS_FILTER;
        m->n_links = MAX(m->n_links, ev->aux & TT_WAYS_SEVERAL ? 2 : 0);
        mark = memcmp(i.what.run, m->uuid, TT_RUN_BYTES) ? NULL :
            g_hash_table_lookup(m->marks, i.what.mark);
        i.mark_pos = mark ? *mark : ev->pos;
        g_array_append_val(m->incidents, i);
    }
    return st;
}

/* One of TT_FRAME_*, if it is not damaged. */
static uint64_t what_of(const TtEvent *ev)
{
    return ev->kind == TT_EV_FRAME_OUT ? TT_FRAME_SENT :
        ev->kind == TT_EV_FRAME_IN ? TT_FRAME_DELIVERED : ev->addr;
}

static TtStatus get_frame(TtFrame *f, const TtEvent *ev, TtDiag *diag)
{
    *f = (TtFrame) { .seq = ev->val, .len = ev->aux, .pos = ev->addr };
    return ev->kind == TT_EV_FRAME_OUT ? tt_frame_out_get(f, ev->data, ev->len, diag) :
        ev->kind == TT_EV_FRAME_IN ? tt_frame_in_get(f, ev->data, ev->len, diag) :
        tt_frame_note_get(f, ev->addr, ev->val, ev->aux, ev->data, ev->len, diag);
}

static TtStatus add_frame(Group *g, GroupMember *m, const TtEvent *ev, TtDiag *diag)
{
    uint64_t what = what_of(ev);
    TtFrame f;
    TtStatus st = get_frame(&f, ev, diag);

    if (st) {
        return st;
    }
    if (what == TT_FRAME_EPOCH) {
        GroupPoint p = { .epoch = f.epoch, .is_made = ev->aux, .pos = ev->pos };
        uint32_t last = m->points->len ? g_array_index(m->points, GroupPoint,
                                                       m->points->len - 1).epoch : 0;

        if (f.epoch <= last) {
            return tt_fail(diag, TT_ERR_FORMAT, "the log has checkpoint %" PRIu32 " of the "
                           "group behind checkpoint %" PRIu32, f.epoch, last);
        }
        g_array_append_val(m->points, p);
    } else if (what == TT_FRAME_BARE) {
        m->outside++;
        m->bare += ev->val;
    } else if (what == TT_FRAME_SENT) {
        GroupSent s = { ev->pos, f.seq, f.hash, f.len, f.epoch };

        g_array_append_val(m->sent, s);
    } else {
        GroupGot got = { .pos = ev->pos, .seq = f.seq, .hash = f.hash, .len = f.len,
                         .epoch = f.epoch, .sent_at = f.pos, .from = GROUP_OUTSIDE,
                         .n_sent = m->sent->len };
        int from = f.is_recorded ? group_find_uuid(g, f.run) : -1;

        if (from >= 0) {
            const GroupMember *sender = group_at(g, from);

            /* The log of a flight recorder may have none of its sends at all. */
            got.from = from;
            got.is_early = !sender->is_kvm && f.pos < sender->first;
            if (f.pos == sender->first) {       /* right before its log begins, or in it */
                tt_causal_hides_early(g->causal, from, f.seq + 1);
            }
        } else {
            m->outside++;
        }
        g_array_append_val(m->got, got);
    }
    return TT_OK;
}

/* The events go into the index in the order of the log; so do the lists. */
static TtStatus index_frame(Group *g, unsigned i, const TtEvent *ev, TtDiag *diag)
{
    GroupMember *m = group_at(g, i);
    uint64_t what = what_of(ev);
    TtStatus st = what == TT_FRAME_INCIDENT ? add_incident(m, ev, diag) :
        is_kept(what) ? add_kept(m, ev, diag) : add_frame(g, m, ev, diag);
    const GroupGot *got;

    if (st || what == TT_FRAME_INCIDENT || what == TT_FRAME_EPOCH || what == TT_FRAME_BARE ||
        is_kept(what)) {
        return st;
    }
    if (what == TT_FRAME_SENT) {
        return tt_causal_sent(g->causal, i, ev->pos, ev->val, diag);
    }
    got = &g_array_index(m->got, GroupGot, m->got->len - 1);
    if (got->from == GROUP_OUTSIDE) {
        return TT_OK;
    }
    if (got->is_early) {
        tt_causal_early(g->causal, i, got->from, got->seq);
        return TT_OK;
    }
    return tt_causal_delivered(g->causal, i, ev->pos, got->from, got->seq, diag);
}

/* tt-save.c notes where a window ends; the recording itself goes on after that. */
static bool is_end_of_window(const GroupMember *m, const TtEvent *ev)
{
    static const char words[] = "a window ends here";

    return ev->kind == TT_EV_NOTE && ev->pos == m->end && ev->len >= strlen(words) &&
        !memcmp(ev->data, words, strlen(words));
}

static TtStatus read_log(Group *g, unsigned i, TtLogReader *r, TtDiag *diag)
{
    GroupMember *m = group_at(g, i);
    TtStatus st = TT_OK;

    m->keeping = g_new0(TtKept, 1);
    m->marks = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    for (uint64_t s = tt_log_reader_first(r); !st && s < tt_log_reader_end(r); s++) {
        TtSegment *seg = NULL;

        st = tt_log_reader_load(r, s, &seg, diag);
        for (uint32_t k = 0; !st && k < seg->n_events; k++) {
            m->is_saved |= is_end_of_window(m, &seg->events[k]);
            if (seg->events[k].kind == TT_EV_MARK) {
                remember_mark(m, &seg->events[k]);
            } else if (tt_event_is_frame(seg->events[k].kind)) {
                st = index_frame(g, i, &seg->events[k], diag);
            }
        }
        if (seg) {
            tt_segment_unref(seg);
        }
    }
    g_clear_pointer(&m->keeping, g_free);
    g_clear_pointer(&m->marks, g_hash_table_unref);
    return st;
}

/* Where a replay of the window can begin. */
static uint64_t start_of(const GroupMember *m, const TtManifest *manifest,
                         const TtLogReader *r)
{
    TtPageStore *ps = NULL;
    uint64_t start;
    bool is_known;

    if (tt_runstore_open(m->run, manifest, 0, &ps, NULL) != TT_OK) {
        return m->first;
    }
    is_known = tool_start(ps, r, &start);
    tt_pagestore_free(ps);
    return is_known ? start : m->first;
}

/* Those of a segment; @m has the lists. */
static TtStatus read_incidents(GroupMember *m, const TtSegment *seg, TtDiag *diag)
{
    TtStatus st = TT_OK;

    for (uint32_t k = 0; !st && k < seg->n_events; k++) {
        const TtEvent *ev = &seg->events[k];

        if (ev->kind == TT_EV_MARK) {
            remember_mark(m, ev);
        } else if (tt_event_is_frame(ev->kind) && what_of(ev) == TT_FRAME_INCIDENT) {
            st = add_incident(m, ev, diag);
        }
    }
    return st;
}

bool group_read_incidents(GroupMember *m, const char *dir, GArray *list, uint64_t *end)
{
    g_autofree char *about = g_strdup_printf("the window %s", dir);
    GArray *own = m->incidents;
    TtManifest manifest = { 0 };
    TtStatus st = TT_OK;
    TtLogReader *r;
    TtDiag diag;

    tool_set_subject(about);
    r = tool_open_run(dir, &manifest);
    tool_set_subject(NULL);
    if (!r) {
        return false;
    }
    tt_manifest_cleanup(&manifest);
    m->incidents = list;
    m->marks = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    for (uint64_t s = tt_log_reader_first(r); !st && s < tt_log_reader_end(r); s++) {
        TtSegment *seg = NULL;

        st = tt_log_reader_load(r, s, &seg, &diag) ?: read_incidents(m, seg, &diag);
        if (seg) {
            tt_segment_unref(seg);
        }
    }
    g_clear_pointer(&m->marks, g_hash_table_unref);
    m->incidents = own;
    *end = tool_totals(r).end_pos;
    tt_log_reader_free(r);
    if (st) {
        tool_complain("the window %s: %s", dir, diag.text);
    }
    return !st;
}

static bool open_member(Group *g, unsigned i, TtLogReader **r)
{
    GroupMember *m = group_at(g, i);
    g_autofree char *about = NULL;
    TtManifest manifest = { 0 };
    ToolTotals t;
    const char *why = NULL;

    about = g_strdup_printf("the run of %s, %s", m->name, m->run);
    tool_set_subject(about);
    *r = tool_open_run(m->run, &manifest);
    tool_set_subject(NULL);
    if (!*r) {
        return false;
    }
    if (manifest.features & TT_FEATURE_EXITS) {
        why = "was recorded under KVM and not replayed yet: replay it once, which "
              "converts it";
    } else if (manifest.features & TT_FEATURE_SCRUBBED) {
        why = "was scrubbed: what it sent and received is no longer in it";
    } else if (group_find_uuid(g, manifest.uuid) >= 0) {
        why = "is listed twice, or is a copy of another member";
    }
    t = tool_totals(*r);
    memcpy(m->uuid, manifest.uuid, 16);
    m->is_kvm = !g_strcmp0(manifest.accel, "kvm");
    if (manifest.features & TT_FEATURE_PARENT) {
        m->is_branch = true;
        memcpy(m->parent_uuid, manifest.parent_uuid, 16);
        m->parent_pos = manifest.parent_pos;
    }
    m->frames = tool_frames_dir(m->run, &manifest);
    group_note_ways(m, &manifest);
    m->is_live = tool_is_growing();
    m->is_whole = !tt_log_reader_is_torn(*r) && !tt_log_reader_damage(*r);
    m->first = t.first_pos;
    m->end = t.end_pos;
    m->is_window = tt_log_reader_is_window(*r);
    m->start = m->is_window ? start_of(m, &manifest, *r) : m->first;
    tt_manifest_cleanup(&manifest);
    if (why) {
        tool_complain("the run of %s, %s, %s", m->name, m->run, why);
    }
    return !why;
}

/* All logs are open at once, and that of a flight recorder has hundreds of files. */
static void allow_many_files(void)
{
    struct rlimit limit;

    if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);   /* else opening says what is wrong */
    }
}

static void note_end(const Group *g, unsigned i)
{
    const GroupMember *m = group_at(g, i);

    tt_causal_ends(g->causal, i, m->end);
    if (m->is_live) {
        tt_causal_goes_on(g->causal, i);
    } else if (m->is_saved || !m->is_whole) {
        tt_causal_lacks_end(g->causal, i);
    }
}

static bool read_members(Group *g)
{
    unsigned n = g->members->len;
    TtLogReader **readers = g_new0(TtLogReader *, n);
    bool is_fine = true;
    TtDiag diag;

    allow_many_files();
    /* All identities first: a frame may come from a run that is read later. */
    for (unsigned i = 0; is_fine && i < n; i++) {
        is_fine = open_member(g, i, &readers[i]);
    }
    group_find_frames(g);
    for (unsigned i = 0; is_fine && i < n; i++) {
        if (group_at(g, i)->is_window) {
            tt_causal_begins(g->causal, i, group_at(g, i)->start);
            if (group_at(g, i)->is_kvm) {
                tt_causal_hides_early(g->causal, i, UINT64_MAX);
            }
        }
    }
    for (unsigned i = 0; is_fine && i < n; i++) {
        is_fine = !read_log(g, i, readers[i], &diag);
        if (!is_fine) {
            tool_complain("the run of %s, %s: %s", group_at(g, i)->name,
                          group_at(g, i)->run, diag.text);
        }
        note_end(g, i);
    }
    for (unsigned i = 0; i < n; i++) {
        if (readers[i]) {
            tt_log_reader_free(readers[i]);
        }
    }
    g_free(readers);
    if (is_fine && tt_causal_seal(g->causal, &diag)) {
        tool_problem(&diag);
        is_fine = false;
    }
    if (is_fine) {
        group_note_points(g);
        group_note_incidents(g);
    }
    return is_fine;
}

/* Once for all. */
static void note_growing(const Group *g)
{
    GString *runs = g_string_new(NULL);
    unsigned n = 0;

    for (unsigned i = 0; i < g->members->len; i++) {
        const GroupMember *m = group_at(g, i);

        if (m->is_live && n++ < NOTES_MAX) {
            g_string_append_printf(runs, "%s%s", n > 1 ? ", " : "", m->run);
        }
    }
    if (n > NOTES_MAX) {
        g_string_append_printf(runs, " and %u more", n - NOTES_MAX);
    }
    if (n) {
        g_string_append_printf(runs, n == 1 ? ": the run is being recorded; this shows what "
                               "has been written so far" : ": these runs are being recorded; "
                               "this shows what has been written so far");
        tool_note(runs->str);
    }
    g_string_free(runs, true);
}

Group *group_load(const char *path)
{
    Group *g = g_new0(Group, 1);
    bool is_read;

    g->members = g_ptr_array_new_with_free_func(member_free);
    if (!group_find_members(g, path)) {
        group_free(g);
        return NULL;
    }
    g->causal = tt_causal_new(g->members->len);
    g->names = g_new(const char *, g->members->len);
    for (unsigned i = 0; i < g->members->len; i++) {
        g->names[i] = group_at(g, i)->name;
    }
    tt_causal_set_names(g->causal, g->names);
    tool_limit_torn(NOTES_MAX);
    is_read = read_members(g);
    tool_limit_torn(0);
    note_growing(g);
    if (!is_read) {
        group_free(g);
        return NULL;
    }
    return g;
}
