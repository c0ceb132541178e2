/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What commands that can last do between one look of the main loop's and the next.
 */
#include "qemu/osdep.h"
#include "monitor-cmds/tt-task.h"
#include "checkpoint/tt-checkpointer.h"
#include "control/tt-attach.h"
#include "control/tt-mark.h"
#include "flight/tt-save.h"
#include "monitor-cmds/tt-monitor.h"
#include "monitor-cmds/tt-wait.h"
#include "session/tt-session.h"
#include "timeline/tt-timeline.h"
#include "travel/tt-travel.h"
#include "tt/hooks.h"
#include "qemu/main-loop.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qapi/qapi-events-tt.h"
#include "qapi/qapi-events-tt-checkpoint.h"
#include "system/runstate.h"
#include "system/cpus.h"

/* The vCPU's thread, or at once. */
static void arrived(void *opaque, uint64_t pos, int reason)
{
    TtTask *t = opaque;

    t->pos = pos;
    t->reason = reason;
    t->is_done = true;
    tt_wait_kick();
}

static void found(void *opaque, const TtFindHit *hit)
{
    TtTask *t = opaque;

    g_array_append_val(t->hits, *hit);
}

static void search_moves(void *opaque, const TtFindWay *way)
{
    TtTask *t = opaque;

    t->left_to_find = way->high > way->low ? way->high - way->low : 0;
    t->to_find = MAX(t->to_find, t->left_to_find);
}

static void searched(void *opaque, uint64_t pos, int reason, Error *err)
{
    TtTask *t = opaque;

    error_propagate(&t->err, err);
    arrived(t, pos, reason);
}

static bool begin_search(TtTask *t)
{
    static const TtFindListener listener = {
        .found = found, .moves = search_moves, .done = searched,
    };

    t->hits = g_array_new(false, false, sizeof(TtFindHit));
    t->find.returns = true;
    if (!tt_find_check(&t->find, &t->err)) {    /* before it stops anything */
        return false;
    }
    vm_stop(RUN_STATE_PAUSED);
    return tt_find_begin(&t->find, &listener, t, &t->err);
}

static void saved(void *opaque, const char *dir, const char *why)
{
    TtTask *t = opaque;

    if (why) {
        error_setg(&t->err, "%s", why);
    }
    t->is_done = true;
    tt_wait_kick();
}

/* The first state of a replay is not loaded yet. */
static bool is_early(void)
{
    return tt_replaying() && !tt_session.live;
}

/* A replay keeps the name of a checkpoint as a mark, in a run that may be read-only. */
static bool name_checkpoint(TtTask *t)
{
    uint64_t pos;

    if (t->name && !tt_mark_add(t->name, &pos, &t->err)) {
        error_prepend(&t->err, "no checkpoint was made, since its name is to be a mark (one "
                      "without a name can be made): ");
        return false;
    }
    return true;
}

static bool begin_pinning(TtTask *t)
{
    if (!tt_monitor_may_be_full(t->notes, &t->err) ||
        !tt_travel_is_possible(&t->err)) {
        return false;
    }
    vm_stop(RUN_STATE_PAUSED);
    return name_checkpoint(t) && tt_travel_pin(arrived, t, &t->err);
}

static bool begin_movement(TtTask *t)
{
    switch (t->kind) {
    case TT_TASK_GOTO:
        return tt_monitor_go(&t->g, arrived, t, &t->err);
    case TT_TASK_STRAIGHT:
        return tt_travel_run(t->straight_to, arrived, t, &t->err);
    case TT_TASK_FIND:
        return begin_search(t);
    default:
        return begin_pinning(t);
    }
}

static bool step_movement(TtTask *t)
{
    if (!t->has_begun) {
        if (is_early() || t->cancelled) {
            return t->cancelled;
        }
        t->has_begun = true;
        if (!begin_movement(t)) {
            t->is_done = true;
        }
    }
    if (t->cancelled && !t->is_done) {
        tt_travel_interrupt();
    }
    return t->is_done;
}

TtFoundPlaceList *tt_task_places(const TtTask *t)
{
    TtFoundPlaceList *list = NULL, **tail = &list;

    for (unsigned i = 0; t->hits && i < t->hits->len; i++) {
        const TtFindHit *hit = &g_array_index(t->hits, TtFindHit, i);
        TtFoundPlace *one = g_new0(TtFoundPlace, 1);

        *one = (TtFoundPlace) {
            .position = hit->pos, .pc = hit->pc, .cpu = hit->cpu, .value = hit->value,
        };
        QAPI_LIST_APPEND(tail, one);
    }
    return list;
}

bool tt_task_has_all(const TtTask *t)
{
    return t->hits && !t->err && t->reason == TT_STOP_TARGET && t->hits->len < t->find.limit;
}

static bool step_find(TtTask *t)
{
    if (!step_movement(t)) {
        return false;
    }
    if (!t->err && !t->cancelled && t->reason != TT_STOP_TARGET &&
        t->reason != TT_STOP_INTERRUPTED) {
        error_setg(&t->err, "the search ended at position %" PRIu64 ": %s", t->pos,
                   tt_stop_name(t->reason));
    }
    if (t->job_id && t->hits && (!t->err || t->hits->len)) {
        TtFoundPlaceList *places = tt_task_places(t);

        qapi_event_send_tt_found(t->job_id, places, tt_task_has_all(t));
        qapi_free_TtFoundPlaceList(places);
    }
    return true;
}

static bool step_checkpointer(TtTask *t)
{
    if (!t->has_begun) {
        t->has_begun = true;
        t->checkpointer = (TtCheckpointerTask) {
            .kind = t->kind == TT_TASK_ADD ? TT_CHECKPOINTER_ADD : TT_CHECKPOINTER_DELETE,
            .name = t->name, .full = t->notes, .id = t->id, .of_group = t->of_group,
        };
    }
    if (t->cancelled && !t->told_cancel) {
        t->told_cancel = t->checkpointer.cancelled = true;
    }
    if (!tt_checkpointer_step(&t->checkpointer)) {
        return false;
    }
    error_propagate(&t->err, t->checkpointer.err);
    return true;
}

static void tell_added(TtTask *t, uint32_t id)
{
    const char *notes = t->notes && t->notes->len ? t->notes->str : NULL;

    t->added = tt_monitor_checkpoint(id, &t->err);
    if (t->added) {
        qapi_event_send_tt_checkpoint_added(id, t->added->position, t->job_id,
                                            notes);
    }
}

static bool step_add(TtTask *t)
{
    if (!t->has_begun && t->of_group && !tt_monitor_may_be_of_group(t->name, &t->err)) {
        return true;
    }
    if (!t->has_begun) {
        t->is_recording = tt_recording();
        if ((t->full || t->of_group) && !t->notes) {
            t->notes = g_string_new(NULL);
        }
    }
    if (t->is_recording ? !step_checkpointer(t) : !step_movement(t)) {
        return false;
    }
    if (!t->err && !t->cancelled) {
        tell_added(t, t->is_recording ? t->checkpointer.id : tt_travel_pinned());
    } else if (t->notes && t->notes->len) {
        /* The disks have moved on all the same. */
        g_auto(GStrv) lines = g_strsplit(t->notes->str, "\n", -1);

        for (char **line = lines; *line && **line; line++) {
            info_report("tt: the checkpoint was not kept, but %s", *line);
        }
    }
    return true;
}

static bool step_delete(TtTask *t)
{
    if (!t->has_begun) {
        t->is_recording = tt_recording();
    }
    if (t->is_recording) {
        return step_checkpointer(t);
    }
    tt_travel_delete(t->id, &t->err);
    return true;
}

static bool step_save(TtTask *t)
{
    if (!t->has_begun) {
        t->has_begun = true;
        if (!tt_save_begin(t->name, false, saved, t, &t->err)) {
            t->is_done = true;
        } else if (!t->is_done) {
            t->dir = g_strdup(tt_save_dir());
        }
    }
    if (t->cancelled && !t->is_done && !t->told_cancel) {
        t->told_cancel = true;
        tt_save_cancel();
    }
    return t->is_done;
}

/* A slow disk first gets what it is at, while the VM runs. */
static bool step_record_stop(TtTask *t)
{
    if (tt_recording() && !qemu_shutdown_requested_get() &&
        tt_checkpointer_is_busy()) {
        return false;
    }
    tt_detach(&t->ended, &t->err);
    return true;
}

static bool step_undo(TtTask *t)
{
    if (!t->has_begun) {
        t->has_begun = true;
        t->undo.n = t->n_inputs;
    }
    t->undo.cancelled = t->cancelled;
    if (!tt_undo_step(&t->undo)) {
        return false;
    }
    error_propagate(&t->err, t->undo.err);
    return true;
}

bool tt_task_step(void *opaque)
{
    TtTask *t = opaque;

    switch (t->kind) {
    case TT_TASK_GOTO:
    case TT_TASK_STRAIGHT:
        return step_movement(t);
    case TT_TASK_FIND:
        return step_find(t);
    case TT_TASK_ADD:
        return step_add(t);
    case TT_TASK_DELETE:
        return step_delete(t);
    case TT_TASK_SAVE:
        return step_save(t);
    case TT_TASK_RECORD_STOP:
        return step_record_stop(t);
    case TT_TASK_UNDO:
        return step_undo(t);
    }
    g_assert_not_reached();
}

bool tt_task_moves(const TtTask *t)
{
    return t->has_begun && !t->is_done && !t->is_recording &&
        t->kind <= TT_TASK_ADD;
}

bool tt_task_waits(const TtTask *t)
{
    return t->checkpointer.is_waiting;
}

void tt_task_progress(const TtTask *t, uint64_t *done, uint64_t *total)
{
    if (t->kind == TT_TASK_FIND) {
        *total = t->to_find;
        *done = t->to_find - t->left_to_find;
    } else {
        tt_travel_progress(done, total);
    }
}

void tt_task_clear(TtTask *t)
{
    error_free(t->err);
    qapi_free_TtCheckpoint(t->added);
    if (t->notes) {
        g_string_free(t->notes, true);
    }
    if (t->hits) {
        g_array_free(t->hits, true);
    }
    g_free(t->dir);
}
