/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt info: what was recorded.
 */
#include "tt-tool.h"

#include <inttypes.h>
#include <stdio.h>

/* The facts to print about the checkpoints. */
typedef struct Store {
    bool is_there;
    size_t n, n_full;
    uint64_t bytes;
    bool has_start;             /* a replay can begin, and here: */
    uint64_t start;
    TtDiag damage;              /* status TT_OK: none */
} Store;

static void look_at_store(const char *run, const TtManifest *m,
                          const TtLogReader *r, Store *s)
{
    g_autofree TtCheckpointInfo *infos = NULL;
    TtPageStoreStats stats;
    TtPageStore *ps;
    TtStatus st = tt_runstore_open(run, m, 0, &ps, &s->damage);

    s->is_there = st != TT_END;
    s->has_start = tool_start(NULL, r, &s->start);
    if (st != TT_OK) {
        s->damage.status = st == TT_END ? TT_OK : st;
        return;
    }
    s->damage.status = TT_OK;
    s->has_start = tool_start(ps, r, &s->start);
    s->n = tt_pagestore_count(ps);
    infos = g_new0(TtCheckpointInfo, s->n + 1);
    s->n = tt_pagestore_list(ps, infos, s->n);
    for (size_t i = 0; i < s->n; i++) {
        s->n_full += !!(infos[i].flags & TT_CHECKPOINT_FULL);
    }
    stats = tt_pagestore_stats(ps);
    s->bytes = stats.stored_bytes + stats.journal_bytes;
    for (unsigned i = 0; i < 2 && s->damage.status == TT_OK; i++) {
        const TtDiag *d = tt_pagestore_damage(ps, i);

        if (d) {
            s->damage = *d;
        }
    }
    if (stats.n_lost && s->damage.status == TT_OK) {
        tt_fail(&s->damage, TT_ERR_FORMAT, "pages: %" PRIu64 " page versions "
                "that the checkpoints need are lost", stats.n_lost);
    }
    tt_pagestore_free(ps);
}

/* ---- for people ---- */

static void make_manifest_harmless(TtManifest *m)
{
    char *const texts[] = { m->started, m->qemu_version, m->tt_version,
                            m->accel, m->host, m->command_line, m->cpu_type };

    for (unsigned i = 0; i < G_N_ELEMENTS(texts); i++) {
        tt_replace_controls(texts[i], '?');
    }
}

static void print_recorder(const TtManifest *m, const ToolTotals *t)
{
    printf("Recorded:   %s, about %.1f s\n", *m->started ? m->started
           : "(no date)", t->host_ns / 1e9);
    printf("By:         QEMU %s with TTVM %s, %s%s%s\n", m->qemu_version,
           m->tt_version, m->accel, *m->host ? ", on " : "", m->host);
    printf("Command:    %s\n", *m->command_line ? m->command_line
           : "(not known)");
    if (m->features & TT_FEATURE_SCRUBBED) {
        printf("Scrubbed:   what the guest read and wrote is not in it; it "
               "cannot be replayed\n");
    }
}

static uint64_t machine_bytes(const TtManifest *m)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < m->n_blocks; i++) {
        bytes += m->blocks[i].size_bytes;
    }
    return bytes;
}

static void print_machine(const TtManifest *m)
{
    printf("Machine:    %u vCPU%s (%s), %.1f MiB in %u blocks\n", m->n_cpus,
           m->n_cpus == 1 ? "" : "s", m->cpu_type,
           machine_bytes(m) / 1048576.0, m->n_blocks);
}

/* The log is closed, so that what is wrong with it stands behind its end. */
static bool is_closed(const TtLogReader *r)
{
    uint64_t n = tt_log_reader_n_segments(r);

    return n && tt_log_reader_info(r, tt_log_reader_end(r) - 1)->last;
}

static const char *how_ended(const TtLogReader *r)
{
    if (tt_log_reader_damage(r)) {
        return is_closed(r) ? "cleanly; bytes that are no part of it stand behind its end" :
            "damaged; it can be replayed up to there";
    }
    if (!tt_log_reader_is_torn(r)) {
        return "cleanly";
    }
    return tool_is_growing() ?
        "not yet: it is being recorded, and can be replayed up to there" :
        "cut off; it can be replayed up to there";
}

static void print_log(const TtLogReader *r, const ToolTotals *t,
                      const Store *s)
{
    g_autofree char *first = tool_number(s->start);
    g_autofree char *end = tool_number(t->end_pos);
    g_autofree char *events = tool_number(t->n_events);
    g_autofree char *segments = tool_count(t->n_segments, "segment");
    g_autofree char *all = tool_bytes(tt_log_reader_bytes(r));
    g_autofree char *payload = tool_bytes(t->pl_stored);

    if (!s->has_start) {
        printf("Positions:  a window up to %s, without a checkpoint from which a replay "
               "could start\n", end);
    } else {
        printf("Positions:  %s to %s%s\n", first, end,
               tt_log_reader_is_window(r) ? " (a window of the recording)" :
               "");
    }
    printf("Events:     %s in %s\n", events, segments);
    printf("Log:        %s, of which %s are payload\n", all, payload);
    printf("Ended:      %s\n", how_ended(r));
}

static void print_store(const Store *s)
{
    g_autofree char *n = tool_count(s->n, "checkpoint");
    g_autofree char *bytes = tool_bytes(s->bytes);

    if (s->is_there && (s->n || s->damage.status == TT_OK)) {
        printf("Stored:     %s, %s%s\n", n, bytes,
               s->damage.status == TT_OK ? "" : "; others are lost");
    } else if (s->is_there) {
        printf("Stored:     checkpoints that cannot be used: a replay makes its own\n");
    } else {
        printf("Stored:     no checkpoints: a replay makes its own\n");
    }
}

/* ---- for programs ---- */

static void json_field(const char *name, const char *text)
{
    printf(", \"%s\": ", name);
    tool_json_string(text);
}

static void json_damage(const char *name, const TtDiag *damage)
{
    if (damage) {
        json_field(name, damage->text);
    } else {
        printf(", \"%s\": null", name);
    }
}

static void print_json(const char *run, const TtLogReader *r,
                       const TtManifest *m, const ToolTotals *t,
                       const Store *s, const ToolReach *reach)
{
    tool_json_begin();
    printf("\"run\": ");
    tool_json_string(run);
    json_field("started", m->started);
    json_field("command", m->command_line);
    json_field("directory", m->directory);
    json_field("host", m->host);
    json_field("qemu", m->qemu_version);
    json_field("ttvm", m->tt_version);
    json_field("accel", m->accel);
    json_field("cpu", m->cpu_type);
    printf(", \"cpus\": %u, \"ram\": %" PRIu64, m->n_cpus, machine_bytes(m));
    printf(", \"start\": %" PRIu64 ", \"end\": %" PRIu64 ", \"events\": %"
           PRIu64 ", \"segments\": %" PRIu64 ", \"host_ns\": %" PRIu64
           ", \"bytes\": %" PRIu64 ", \"torn\": %s, \"recording\": %s"
           ", \"scrubbed\": %s, \"window\": %s",
           s->start, t->end_pos, t->n_events, t->n_segments, t->host_ns,
           tt_log_reader_bytes(r),
           tool_json_bool(tt_log_reader_is_torn(r)),
           tool_json_bool(tool_is_growing()),
           tool_json_bool(m->features & TT_FEATURE_SCRUBBED),
           tool_json_bool(tt_log_reader_is_window(r)));
    printf(", \"checkpoints\": %zu, \"checkpoint_bytes\": %" PRIu64,
           s->n, s->bytes);
    json_damage("damage", s->damage.status == TT_OK ? NULL : &s->damage);
    json_damage("log_damage", tt_log_reader_damage(r));
    tool_reach_json(reach);
    tool_json_tree(run, m);
    printf("}\n");
}

int tool_info(const ToolArgs *a)
{
    const char *run = a->operand[0];
    Store s = { 0 };
    TtManifest m;
    TtLogReader *r = tool_open_run(run, &m);
    g_autofree char *gap = NULL, *note = NULL;
    ToolReach *reach;
    ToolTotals t;
    int result;

    if (!r) {
        return TOOL_PROBLEM;
    }
    t = tool_totals(r);
    gap = tool_gap(run);
    if (gap) {
        tool_note(gap);
    }
    note = tool_frames_note(run, &m, r);
    if (note) {
        tool_note(note);
    }
    look_at_store(run, &m, r, &s);
    reach = tool_reach(run, &m, r);
    if (tool_has(a, "--json")) {
        print_json(run, r, &m, &t, &s, reach);
    } else {
        g_autofree char *name = g_strdup(run);

        tt_replace_controls(name, '?');
        make_manifest_harmless(&m);
        printf("Run:        %s\n", name);
        print_recorder(&m, &t);
        print_machine(&m);
        print_log(r, &t, &s);
        print_store(&s);
        tool_reach_print(reach);
        tool_print_tree(run, &m);
    }
    result = tool_log_status(r);
    if (!tool_reach_is_whole(reach)) {
        result = tool_reach_complain(reach);
    }
    tool_reach_free(reach);
    tt_manifest_cleanup(&m);
    tt_log_reader_free(r);
    return s.damage.status == TT_OK ? result :
        tool_complain("%s (the log is not affected: tt check has details)",
                      s.damage.text);
}
