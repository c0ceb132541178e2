/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QMP commands of -tt: they translate, the engine decides.
 */
#include "qemu/osdep.h"
#include "accel-tt/tcg/tt-branch-trace.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "accel-tt/x86/tt-target.h"
#include "checkpoint/tt-checkpointer.h"
#include "checkpoint/tt-cptake.h"
#include "control/tt-attach.h"
#include "control/tt-mark.h"
#include "control/tt-values.h"
#include "flight/tt-crash.h"
#include "flight/tt-save.h"
#include "hw-tt/memory/tt-memory.h"
#include "log/tt-log.h"
#include "monitor-cmds/tt-monitor.h"
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
#include "travel/tt-travel.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "qemu/main-loop.h"
#include "qemu/coroutine.h"
#include "qapi/qapi-commands-tt.h"
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

typedef struct Waiter {
    Coroutine *co;
    TtGoto g;
    uint64_t pos;
    int reason;
    bool pin;                   /* make a checkpoint, go nowhere */
    const char *name;           /* of the position, or NULL */
    GString *full;              /* not NULL: a full one; notes for the user */
    uint32_t id;                /* of the checkpoint */
    bool done;
    Error *err;
} Waiter;

static void wake(void *opaque)
{
    Waiter *w = opaque;

    w->done = true;
    aio_co_wake(w->co);
}

static void arrived(void *opaque, uint64_t pos, int reason)
{
    Waiter *w = opaque;

    w->pos = pos;
    w->reason = reason;
    aio_bh_schedule_oneshot(qemu_get_aio_context(), wake, w);
}

static bool begin_pinning(Waiter *w)
{
    uint64_t pos;

    vm_stop(RUN_STATE_PAUSED);
    return (!w->name || tt_mark_add(w->name, &pos, &w->err)) &&
        tt_travel_pin(arrived, w, &w->err);
}

/* Stopping the VM is not for coroutines. */
static void set_out(void *opaque)
{
    Waiter *w = opaque;

    if (tt_replaying() && !tt_session.live) {   /* the first state is loaded yet */
        aio_bh_schedule_oneshot(qemu_get_aio_context(), set_out, w);
        return;
    }
    if (w->pin && tt_recording()) {
        tt_checkpointer_add(w->name, w->full, &w->id, &w->err);
        wake(w);
        return;
    }
    if (w->pin && (!tt_monitor_may_be_full(w->full, &w->err) ||
                   !tt_travel_is_possible(&w->err))) {
        wake(w);
        return;
    }
    if (w->pin ? !begin_pinning(w) :
        !tt_monitor_go(&w->g, arrived, w, &w->err)) {
        wake(w);
    }
}

static bool coroutine_fn carry_out(Waiter *w, Error **errp)
{
    aio_bh_schedule_oneshot(qemu_get_aio_context(), set_out, w);
    while (!w->done) {
        qemu_coroutine_yield();
    }
    error_propagate(errp, w->err);
    return !w->err;
}

TtPlace *coroutine_fn qmp_tt_goto(bool has_position, int64_t position,
                                  bool has_delta, int64_t delta,
                                  bool has_where, TtWhere where,
                                  const char *mark, Error **errp)
{
    Waiter w = {
        .co = qemu_coroutine_self(),
        .g = {
            .has_position = has_position, .position = position,
            .has_delta = has_delta, .delta = delta,
            .has_where = has_where, .where = where, .mark = mark,
        },
    };
    TtPlace *place;

    if (has_position && position < 0) {
        error_setg(errp, "position %" PRId64 " is before the start: positions "
                   "count from 0; delta goes backwards", position);
        return NULL;
    }
    if (!carry_out(&w, errp)) {
        return NULL;
    }
    place = g_new0(TtPlace, 1);
    place->position = w.pos;
    place->reason = tt_monitor_reason(w.reason);
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

TtCheckpoint *coroutine_fn qmp_tt_checkpoint_add(const char *name,
                                                 bool has_full, bool full,
                                                 Error **errp)
{
    g_autoptr(GString) notes = g_string_new(NULL);
    Waiter w = {
        .co = qemu_coroutine_self(), .pin = true, .name = name,
        .full = full ? notes : NULL,
    };
    TtCheckpoint *c;

    if (!carry_out(&w, errp)) {
        return NULL;
    }
    c = tt_monitor_checkpoint(tt_recording() ? w.id : tt_travel_pinned(),
                              errp);
    if (c && notes->len) {
        c->notes = g_strdup(notes->str);
    }
    return c;
}

void qmp_tt_checkpoint_delete(uint32_t id, Error **errp)
{
    if (tt_recording()) {
        tt_checkpointer_delete(id, errp);
    } else {
        tt_travel_delete(id, errp);
    }
}

/* ---- the window of a flight recorder ---- */

TtRecording *coroutine_fn qmp_tt_save(const char *name, Error **errp)
{
    TtSaveWaiter w = { .co = qemu_coroutine_self() };
    TtRecording *r = NULL;
    char *dir;

    if (!tt_save_begin(name, false, tt_monitor_saved, &w, errp)) {
        return NULL;
    }
    while (!w.done) {
        qemu_coroutine_yield();
    }
    dir = tt_monitor_save_result(&w, errp);
    if (dir) {
        r = g_new0(TtRecording, 1);
        r->dir = dir;
    }
    return r;
}

/* ---- recording on demand ---- */

TtRecording *qmp_tt_record_start(const char *dir, bool has_max_size,
                                 uint64_t max_size, bool has_interval,
                                 double interval, bool has_on_error,
                                 TtOnError on_error, const char *last,
                                 bool has_save, bool save, const char *pattern,
                                 bool has_guard, bool guard, Error **errp)
{
    TtRecordOptions opt = {
        .dir = dir, .max_size_bytes = has_max_size ? max_size : 0,
        .checkpoint_interval_ms = TT_CHECKPOINT_INTERVAL_MS,
        .stop_on_error = !has_on_error || on_error == TT_ON_ERROR_STOP,
        .save_on_panic = !has_save || save, .panic_pattern = pattern,
        .guard = guard,
    };
    TtRecording *r;

    if (has_save && !last) {
        error_setg(errp, "%s", tt_save_on_panic_help);
        return NULL;
    }
    if (has_max_size && max_size > INT64_MAX) {
        error_setg(errp, "max-size takes bytes, below 8E");
        return NULL;
    }
    if (last && !tt_window_parse(last, &opt.window_ns, errp)) {
        return NULL;
    }
    if (has_interval &&
        !tt_interval_parse(interval, &opt.checkpoint_interval_ms)) {
        error_setg(errp, "%s, not %g", tt_interval_help, interval);
        return NULL;
    }
    if (!tt_attach(&opt, errp)) {
        return NULL;
    }
    r = g_new0(TtRecording, 1);
    r->dir = g_strdup(tt_session.dir);
    return r;
}

TtRun *qmp_tt_record_stop(Error **errp)
{
    TtEnded ended;
    TtRun *run;

    if (!tt_detach(&ended, errp)) {
        return NULL;
    }
    run = g_new0(TtRun, 1);
    run->dir = g_strdup(ended.dir);
    run->position = ended.pos;
    run->events = ended.events;
    run->bytes = ended.bytes;
    run->whole = ended.whole;
    return run;
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
        error_setg(errp, "this is the past of a recording: trace a replay of "
                   "it, or the present");
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
        error_setg(errp, "this is the past of a recording, and its trace is of the "
                   "present: go to the end first");
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
