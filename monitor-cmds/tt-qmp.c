/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QMP commands of -tt: they translate, the engine decides.
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-branch-trace.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "accel-tt/x86/tt-target.h"
#include "checkpoint/tt-cptake.h"
#include "control/tt-attach.h"
#include "control/tt-mark.h"
#include "control/tt-values.h"
#include "flight/tt-crash.h"
#include "flight/tt-incident.h"
#include "hw-tt/memory/tt-memory.h"
#include "hw-tt/screen/tt-screen.h"
#include "log/tt-log.h"
#include "monitor-cmds/tt-monitor.h"
#include "monitor-cmds/tt-task.h"
#include "monitor-cmds/tt-wait.h"
#include "net-tt/glue/tt-net-about.h"
#include "record/tt-record-options.h"
#include "record/tt-record-vcpus.h"
#include "record/tt-record.h"
#include "record/tt-write-stall.h"
#include "replay/tt-replay-exact.h"
#include "replay/tt-replay-log.h"
#include "session/tt-checkpoint.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "travel/tt-cptable.h"
#include "travel/tt-travel-ring.h"
#include "travel/tt-travel.h"
#include "tt/hooks.h"
#include "undo/tt-undo.h"
#include "qapi/error.h"
#include "qemu/coroutine.h"
#include "qapi/qapi-commands-tt.h"
#include "qapi/qapi-commands-tt-checkpoint.h"
#include "qapi/qapi-commands-tt-record.h"
#include "system/runstate.h"
#include "system/cpus.h"

static TtStore *store_to_qapi(const TtCheckpointerStats *st)
{
    TtStore *q = g_new0(TtStore, 1);

    q->taken = st->taken;
    q->bytes = st->bytes;
    q->last_pause_ns = st->pause_ns_last;
    q->last_pause_pages = st->pause_pages_last;
    q->longest_pause_ns = st->pause_ns_most;
    q->longest_pause_pages = st->pause_pages_most;
    return q;
}

TtInfo *qmp_query_tt(Error **errp)
{
    TtInfo *info = g_new0(TtInfo, 1);
    TtCheckpointerStats kept = tt_checkpointer_stats();

    info->mode = tt_recording() || tt_past ? TT_MODE_RECORD :
        tt_replaying() ? TT_MODE_REPLAY : TT_MODE_OFF;
    info->live = tt_session.live;
    info->dir = g_strdup(tt_session.dir);
    info->position = tt_session.gave_up ? tt_session.gave_up_at : tt_position();
    info->has_cpu = info->mode != TT_MODE_OFF && tt_vcpu();
    info->cpu = info->has_cpu ? tt_vcpu()->cpu_index : 0;
    info->start = tt_monitor_start_of_run();
    info->end = tt_replaying() ? tt_replay_end() : info->position;
    info->checkpoints = tt_recording() ? kept.count : tt_checkpoints_count();
    info->store = tt_recording() || tt_past ? store_to_qapi(&kept) : NULL;
    info->events = tt_session.events;
    info->bytes = tt_recording() || tt_past ? tt_record_bytes() : 0;
    info->past = tt_past;
    info->digests = tt_replaying() ? tt_replay_digests() : 0;
    info->diverged = tt_replayer.diverged && !tt_replayer.damaged;
    info->divergence = info->diverged ? g_strdup(tt_replayer.divergence) : NULL;
    info->trouble = tt_recording() ? g_strdup(tt_stall_why()) : NULL;
    info->damage = tt_replayer.damaged ? g_strdup(tt_replayer.divergence) : NULL;
    info->travelling = tt_travel_active();
    info->has_undos = info->has_redos = tt_recording() && tt_record_options.undo;
    tt_undo_counts(&info->undos, &info->redos);
    info->has_logged_steps = info->has_step_memory = tt_replaying();
    info->logged_steps = tt_travel_ring_steps();
    info->step_memory = tt_travel_ring_bytes;
    info->has_screen = tt_replaying() && !tt_past;
    info->screen = tt_screen_is_shown();
    return info;
}

static strList *digests_of_vcpus(void)
{
    strList *list = NULL, **tail = &list;

    for (unsigned i = 0; i < tt_vcpus_count(); i++) {
        uint64_t digest = tt_target_digest(tt_vcpus_at(i));

        QAPI_LIST_APPEND(tail, g_strdup_printf("%016" PRIx64, digest));
    }
    return list;
}

TtDigest *qmp_query_tt_digest(Error **errp)
{
    TtEvent ev = { .kind = TT_EV_DIGEST };
    TtDigest *d;

    tt_monitor_wait();
    if (!tt_is_live(errp)) {
        return NULL;
    }
    if (runstate_is_running() || tt_travel_active()) {
        error_setg(errp, "the VM is running: stop it first");
        return NULL;
    }
    if (tt_recording()) {
        tt_record_resync();
    }
    ev.addr = tt_vcpus_digest();
    ev.val = tt_memory_digest();
    if (tt_recording()) {
        tt_record_event(&ev);
        tt_record_release();
    }
    d = g_new0(TtDigest, 1);
    d->position = tt_position();
    d->cpu = g_strdup_printf("%016" PRIx64, ev.addr);
    d->vcpus = digests_of_vcpus();
    d->ram = g_strdup_printf("%016" PRIx64, ev.val);
    return d;
}

/* ---- movements ---- */

TtPlace *coroutine_fn qmp_tt_goto(bool has_position, int64_t position,
                                  bool has_delta, int64_t delta,
                                  bool has_where, TtWhere where,
                                  const char *mark, const char *job_id,
                                  Error **errp)
{
    TtTask t = {
        .kind = TT_TASK_GOTO, .job_id = job_id,
        .g = {
            .has_position = has_position, .position = position,
            .has_delta = has_delta, .delta = delta,
            .has_where = has_where, .where = where, .mark = mark,
        },
    };
    TtPlace *place;

    if (has_position && position < 0) {
        error_setg(errp, "position %" PRId64 " is invalid: positions count from "
                   "0 (use delta to go back)", position);
        return NULL;
    }
    if (!tt_task_run(&t, JOB_TYPE_TT_GOTO, errp)) {
        return NULL;
    }
    place = g_new0(TtPlace, 1);
    place->position = job_id ? tt_position() : t.pos;
    place->reason = tt_monitor_reason(t.reason);    /* of a job: none */
    return place;
}

void qmp_tt_interrupt(Error **errp)
{
    tt_travel_interrupt();
}

TtPlace *qmp_tt_mark(const char *name, Error **errp)
{
    TtPlace *place;
    uint64_t pos;

    if (!tt_mark_add(name, &pos, errp)) {
        return NULL;
    }
    place = g_new0(TtPlace, 1);
    place->position = pos;
    return place;
}

/* ---- checkpoints ---- */

TtCheckpointList *qmp_query_tt_checkpoints(Error **errp)
{
    g_autoptr(GArray) all = NULL;
    TtCheckpointList *list = NULL, **tail = &list;

    tt_monitor_wait();
    all = tt_monitor_checkpoints();
    for (unsigned i = 0; i < all->len; i++) {
        TtCheckpointDesc *c = &g_array_index(all, TtCheckpointDesc, i);

        QAPI_LIST_APPEND(tail, tt_monitor_checkpoint_to_qapi(c));
    }
    return list;
}

static TtCheckpointAdded *added_to_qapi(const TtCheckpoint *c, const GString *notes)
{
    TtCheckpointAdded *q = g_new0(TtCheckpointAdded, 1);

    if (!c) {                               /* a job adds it */
        return q;
    }
    q->has_id = q->has_position = q->has_pages = q->has_pinned = true;
    q->has_stored = q->has_full = true;
    q->id = c->id;
    q->position = c->position;
    q->pages = c->pages;
    q->pinned = c->pinned;
    q->stored = c->stored;
    q->has_time_ms = c->has_time_ms;
    q->time_ms = c->time_ms;
    q->has_bytes = c->has_bytes;
    q->bytes = c->bytes;
    q->full = c->full;
    q->notes = notes && notes->len ? g_strdup(notes->str) : NULL;
    return q;
}

TtCheckpointAdded *coroutine_fn
qmp_tt_checkpoint_add(const char *name, bool has_full, bool full, bool has_group,
                      bool group, const char *job_id, Error **errp)
{
    TtTask t = {
        .kind = TT_TASK_ADD, .name = name, .full = full, .of_group = group,
        .job_id = job_id,
    };
    TtCheckpointAdded *q = NULL;

    if (tt_task_run(&t, JOB_TYPE_TT_CHECKPOINT_ADD, errp)) {
        q = added_to_qapi(t.added, t.notes);
        q->has_group = t.added && group;
        q->group = t.checkpointer.epoch;
    }
    tt_task_clear(&t);
    return q;
}

void coroutine_fn qmp_tt_checkpoint_delete(uint32_t id, const char *job_id,
                                           Error **errp)
{
    TtTask t = { .kind = TT_TASK_DELETE, .id = id, .job_id = job_id };

    tt_task_run(&t, JOB_TYPE_TT_CHECKPOINT_DELETE, errp);
}

/* ---- the window of a flight recorder ---- */

TtRecording *coroutine_fn qmp_tt_save(const char *name, const char *job_id,
                                      Error **errp)
{
    TtTask t = { .kind = TT_TASK_SAVE, .name = name, .job_id = job_id };
    TtRecording *r = NULL;

    if (tt_task_run(&t, JOB_TYPE_TT_SAVE, errp)) {
        r = g_new0(TtRecording, 1);
        r->dir = g_steal_pointer(&t.dir);
    }
    tt_task_clear(&t);
    return r;
}

TtMarked *qmp_tt_incident(const char *what, Error **errp)
{
    g_autofree char *mark = NULL;
    bool has_no_window;
    TtMarked *m;
    uint64_t pos;

    if (!tt_incident_report(what, &mark, &pos, &has_no_window, errp)) {
        return NULL;
    }
    m = g_new0(TtMarked, 1);
    m->mark = g_steal_pointer(&mark);
    m->position = pos;
    m->has_window = has_no_window;
    return m;
}

/* ---- recording on demand ---- */

TtRecording *qmp_tt_record_start(const char *dir, bool has_max_size,
                                 uint64_t max_size, bool has_interval,
                                 double interval, bool has_on_error,
                                 TtOnError on_error, const char *last,
                                 bool has_save, bool save, const char *pattern,
                                 bool has_guard, bool guard, bool has_disk,
                                 TtDiskWrites disk, Error **errp)
{
    TtRecordOptions opt = {
        .dir = dir, .max_size_bytes = has_max_size ? max_size : 0,
        .checkpoint_interval_ms = TT_CHECKPOINT_INTERVAL_MS,
        .stop_on_error = !has_on_error || on_error == TT_ON_ERROR_STOP,
        .save_on_panic = !has_save || save, .panic_pattern = pattern,
        .guard = guard,
        .disks = !has_disk || disk == TT_DISK_WRITES_IMAGE ? TT_DISKS_IMAGE :
            disk == TT_DISK_WRITES_PRIVATE ? TT_DISKS_PRIVATE : TT_DISKS_COMMIT,
    };
    TtRecording *r;

    if (dir && !*dir) {
        error_setg(errp, "'dir' names no directory: give a path, or leave it out for one "
                   "with the date as its name");
        return NULL;
    }

    if (has_save && !last) {
        error_setg(errp, "%s", tt_save_on_panic_help);
        return NULL;
    }
    if (has_max_size && max_size > INT64_MAX) {
        error_setg(errp, "max-size takes a number of bytes below 8E");
        return NULL;
    }
    if (last && !tt_window_parse(last, &opt.window_ns, errp)) {
        return NULL;
    }
    if (has_interval &&
        !tt_interval_parse(interval, &opt.checkpoint_interval_ms)) {
        error_setg(errp, "%s, not %.10g", tt_interval_help, interval);
        return NULL;
    }
    if (!tt_attach(&opt, errp)) {
        return NULL;
    }
    r = g_new0(TtRecording, 1);
    r->dir = g_strdup(tt_session.dir);
    return r;
}

/* HMP's, too: it need not be a coroutine. */
TtRun *qmp_tt_record_stop(Error **errp)
{
    TtTask t = { .kind = TT_TASK_RECORD_STOP };
    TtRun *run;

    tt_wait(tt_task_step, &t);
    if (t.err) {
        error_propagate(errp, t.err);
        return NULL;
    }
    run = g_new0(TtRun, 1);
    run->dir = g_strdup(t.ended.dir);
    run->position = t.ended.pos;
    run->events = t.ended.events;
    run->bytes = t.ended.bytes;
    run->whole = t.ended.whole;
    return run;
}

/* ---- settings ---- */

void qmp_tt_set(uint64_t step_memory, Error **errp)
{
    tt_travel_ring_resize(step_memory, errp);
}

/* ---- undo and redo ---- */

static TtUndone *coroutine_fn move(JobType type, bool has_count, uint32_t count,
                                   const char *job_id, Error **errp)
{
    int64_t n = has_count ? count : 1;
    TtTask t = {
        .kind = TT_TASK_UNDO, .n_inputs = type == JOB_TYPE_TT_UNDO ? -n : n,
        .job_id = job_id,
    };
    TtUndone *u;

    if (has_count && !count) {
        error_setg(errp, "count is a number of inputs, at least 1");
        return NULL;
    }
    if (!tt_task_run(&t, type, errp)) {
        return NULL;
    }
    u = g_new0(TtUndone, 1);
    u->dir = g_strdup(tt_session.dir);
    tt_undo_counts(&u->undos, &u->redos);
    return u;
}

TtUndone *coroutine_fn qmp_tt_undo(bool has_count, uint32_t count, const char *job_id,
                                   Error **errp)
{
    return move(JOB_TYPE_TT_UNDO, has_count, count, job_id, errp);
}

TtUndone *coroutine_fn qmp_tt_redo(bool has_count, uint32_t count, const char *job_id,
                                   Error **errp)
{
    return move(JOB_TYPE_TT_REDO, has_count, count, job_id, errp);
}

/* ---- branch traces ---- */

void qmp_tt_trace_start(const char *file, Error **errp)
{
    g_autofree char *path = tt_path_absolute(file);

    tt_monitor_wait();
    if (!tt_is_live(errp)) {
        return;
    }
    if (tt_past) {
        error_setg(errp, "the past of a recording cannot be traced: " TT_RETURN_FIRST
                   ", or trace a replay");
        return;
    }
    if (tt_path_is_outside(path, errp)) {
        tt_trace_begin(path, 0, UINT64_MAX, errp);
    }
}

TtTrace *qmp_tt_trace_stop(Error **errp)
{
    TtTraced t;
    TtTrace *q;

    if (tt_past) {
        error_setg(errp, "the trace belongs to the present: " TT_RETURN_FIRST);
        return NULL;
    }
    if (!tt_trace_end(&t, errp)) {
        return NULL;
    }
    q = g_new0(TtTrace, 1);
    q->file = g_strdup(t.path);
    q->from = t.from;
    q->to = t.to;
    q->branches = t.branches;
    q->bytes = t.bytes;
    return q;
}

/* ---- the group ---- */

static void add_netdev(void *list, const TtNetAbout *about)
{
    TtNetdev *n = g_new0(TtNetdev, 1);

    n->id = g_strdup(about->id);
    n->group = g_strdup(about->group);
    n->address = g_strdup(about->address);
    n->listens = about->listens;
    n->state = g_strdup(about->state);
    QAPI_LIST_PREPEND(*(TtNetdevList **)list, n);
}

TtNetdevList *qmp_query_tt_netdevs(Error **errp)
{
    TtNetdevList *list = NULL;

    tt_net_each(add_netdev, &list);
    return list;
}
