/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checkpoints that the user asks for, and deletes: main thread, with the VM stopped.
 *
 * The TLB is emptied and the vCPU's state logged right after one, so that a replay
 * which comes by empties its own, too.
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "checkpoint/tt-checkpointer.h"
#include "checkpoint/tt-cpfiles.h"
#include "checkpoint/tt-cplist.h"
#include "checkpoint/tt-cpstore.h"
#include "checkpoint/tt-cptake.h"
#include "hw-tt/memory/tt-memory.h"
#include "hw-tt/state/tt-disks.h"
#include "hw-tt/state/tt-full.h"
#include "io/tt-base.h"
#include "net-tt/glue/tt-net-epoch.h"
#include "pages/tt-pagestore.h"
#include "record/tt-mark-log.h"
#include "record/tt-record-vcpus.h"
#include "record/tt-record.h"
#include "record/tt-rundir.h"
#include "run/tt-cpstate.h"
#include "run/tt-fullstate.h"
#include "run/tt-runstore.h"
#include "session/tt-checkpoint.h"
#include "session/tt-session.h"
#include "tt-checkpointer-int.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "qemu/timer.h"
#include "system/cpus.h"
#include "system/runstate.h"

/* system/runstate.c: gdb is to be told of a breakpoint. */
extern int debug_requested;

/* Nothing was kept so far: this is the first one. */
static bool begin_late(Error **errp)
{
    TtDiag diag;

    if (tt_cpstore_is_open()) {
        return true;
    }
    if (!tt_checkpointer_open_store(&diag)) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    tt_memory_held_dirty();
    return true;
}

/* While a task of the user's waits for the store, the recorder's own checkpoints do not
 * take it: it could wait forever on a slow disk. */
static void wait_for_store(TtCheckpointerTask *t, bool on)
{
    if (t->is_waiting != on) {
        t->is_waiting = on;
        tt_checkpointer_is_wanted(on ? 1 : -1);
    }
}

/* *@busy: ask again later. What goes on by itself waits for the present, and for a
 * window that is being saved; so does what all VMs of a group do. */
static bool may_act(const TtCheckpointerTask *t, bool *busy, Error **errp)
{
    const char *why;

    *busy = false;
    if ((t->is_undo && tt_past) ||
        ((t->is_undo || t->of_group) && tt_is_live(NULL) && tt_cpstore_is_saving())) {
        *busy = true;
        return false;
    }
    if (tt_past) {              /* it came while this waited for the store */
        error_setg(errp, "the past of the recording is shown: " TT_RETURN_FIRST);
        return false;
    }
    if (tt_backend->counts_exits) {
        error_setg(errp, "under KVM only the recording itself adds and deletes "
                   "checkpoints: end it, and replay the run");
        return false;
    }
    if (!tt_is_live(errp)) {
        return false;
    }
    if (tt_cpstore_is_saving()) {
        error_setg(errp, "a window is being saved, and meanwhile no checkpoint can be "
                   "added or deleted: try again when it is finished");
        return false;
    }
    if (!tt_checkpointer_is_reserved() && !tt_cpstore_is_busy() && tt_cpfiles_is_over()) {
        tt_checkpointer_drop_newest();
        if (!tt_cpstore_is_busy() && tt_cpfiles_is_over()) {
            error_setg(errp, "the checkpoint store is full, and there is not enough "
                       "memory to make room in it");
            return false;
        }
    }
    if (tt_checkpointer_is_reserved() || tt_cpstore_is_busy()) {
        *busy = true;
        return false;
    }
    if (tt_cpstore_is_open() && tt_cpfiles_has_failed(&why)) {
        error_setg(errp, "the recording goes on without checkpoints: %s", why);
        return false;
    }
    return true;
}

/* The VM is stopped. */
static bool add_here(CPUState *cpu, const char *name, TtFullWriter *full,
                     uint32_t flags, uint32_t *job, Error **errp)
{
    uint64_t pos;
    bool ok;

    if (!begin_late(errp)) {
        return false;
    }
    tt_record_resync();
    if (tt_session.live && tt_cpfiles_base() && tt_now.pos <= tt_cptake_pos()) {
        tt_record_renew();           /* there is one: make another place */
    }
    if (!tt_is_live(errp) || (name && !tt_mark_record(name, &pos, errp))) {
        return false;
    }
    flags |= full ? TT_CHECKPOINT_FULL : 0;
    ok = tt_checkpointer_take(cpu, flags, full ? tt_full_bytes(full) : (TtBytes) { 0 }, job);
    tt_record_renew();
    if (!ok) {
        error_setg(errp, "not enough memory to store the checkpoint");
    }
    return ok;
}

/* If it was not taken, nobody needs what its disks have pinned. */
static void end_full(TtFullWriter *w, bool is_taken)
{
    TtFullDesc d = { 0 };

    if (w && !is_taken && tt_fulldesc_find(tt_full_bytes(w), &d, NULL) == TT_OK) {
        tt_disks_unpin(&d);
    }
    tt_fulldesc_cleanup(&d);
    tt_full_writer_free(w);
}

/* The VM is stopped, and the checkpoint store is ours. Whatever can be refused is,
 * before anything of the disks is changed. */
static bool add_stopped(TtCheckpointerTask *t)
{
    TtFullWriter *w = NULL;
    g_autofree char *of_group = NULL;
    const char *name = t->name;
    bool ok;

    if (t->of_group) {
        t->epoch = MAX(t->epoch, tt_net_epoch() + 1);
        if (t->epoch > TT_EPOCH_MAX) {
            t->epoch = TT_EPOCH_MAX;
            error_setg(&t->err, "the group has reached its limit of checkpoints");
            return false;
        }
        name = of_group = g_strdup_printf(TT_CPGROUP_NAME, t->epoch);
    }
    if (!tt_is_live(&t->err) || (name && !tt_mark_check(name, &t->err))) {
        return false;
    }
    if (t->full) {
        w = tt_full_save(name, tt_rundir_check, t->full, &t->err);
        if (!w) {
            return false;
        }
    }
    ok = add_here(first_cpu, name, w, t->is_thinned ? 0 : TT_CHECKPOINT_PINNED,
                  &t->job, &t->err);
    end_full(w, ok);
    if (ok && t->of_group) {
        tt_net_epoch_begins(t->epoch, true);
    }
    return ok;
}

/* Nothing is flushed: a full checkpoint sees to its disks itself. */
static void stop_briefly(void)
{
    tt_stands_briefly = true;
    vm_stop(RUN_STATE_PAUSED);
    tt_stands_briefly = false;
}

/* Somebody may have asked meanwhile that the VM stops (a panic of the guest, an error of a
 * disk): then it does so now, and all are told. If a vCPU is at a breakpoint, it stays
 * there: the main loop is about to tell gdb. */
static void go_on(void)
{
    RunState wanted;
    bool shall_stop = qemu_vmstop_requested(&wanted);

    tt_stands_briefly = true;
    if (debug_requested) {
        vm_prepare_start(false);
    } else {
        vm_start();
    }
    tt_stands_briefly = false;
    if (shall_stop) {
        vm_stop(wanted);
    }
}

static void stood_since(int64_t began, bool is_taken)
{
    if (is_taken) {
        tt_cptake_stood(qemu_clock_get_ns(QEMU_CLOCK_REALTIME) - began);
    }
}

/* Nobody else posts a job from before the VM is stopped, which takes a while, until
 * the user's is posted: nor do the events that this logs urge one. A sync point that
 * was just being made may have been faster: then it is the turn of that. */
static bool add_now(TtCheckpointerTask *t)
{
    bool was_live = runstate_is_live(runstate_get()), ok;
    int64_t began = qemu_clock_get_ns(QEMU_CLOCK_REALTIME);

    tt_checkpointer_reserve(true);
    stop_briefly();
    t->is_late = tt_cpstore_is_busy() || tt_cpfiles_is_over();
    ok = !t->is_late && add_stopped(t);
    tt_checkpointer_reserve(false);
    if (was_live) {
        go_on();
        stood_since(began, ok);
    }
    return ok;
}

void tt_checkpointer_new_place(void)
{
    bool was_live = runstate_is_live(runstate_get());

    if (tt_backend->counts_exits || !tt_session.live) {
        return;
    }
    tt_checkpointer_reserve(true);
    stop_briefly();
    tt_record_resync();
    if (tt_session.live) {
        tt_record_renew();
    }
    tt_checkpointer_reserve(false);
    if (was_live) {
        go_on();
    }
}

bool tt_checkpointer_take_full(Error **errp)
{
    g_autoptr(GString) said = g_string_new(NULL);
    int64_t began = qemu_clock_get_ns(QEMU_CLOCK_REALTIME);
    TtFullWriter *w;
    bool ok;

    if (!tt_full_is_possible(errp)) {
        return false;
    }
    tt_checkpointer_reserve(true);
    stop_briefly();
    w = tt_full_save(NULL, tt_rundir_check, said, errp);
    ok = w && add_here(first_cpu, NULL, w, 0, &(uint32_t) { 0 }, errp);
    end_full(w, ok);
    tt_checkpointer_reserve(false);
    go_on();
    stood_since(began, ok);
    return ok;
}

/* A branch began there: its replay takes RAM from it. */
static bool is_needed(const TtCheckpointDesc *p, Error **errp)
{
    g_autofree char *branch =
        tt_runstore_branch_of(tt_session.dir, tt_session.manifest.uuid, p->id);

    if (branch) {
        error_setg(errp, "checkpoint %" PRIu32 " is where the branch '%s' starts, and "
                   "its replay needs it: delete the branch first", p->id,
                   branch);
    }
    return branch;
}

static bool delete_now(TtCheckpointerTask *t)
{
    g_autoptr(GArray) all = tt_cplist_list();
    const TtCheckpointDesc *points = (const TtCheckpointDesc *)all->data;
    uint64_t id = t->id;
    unsigned i;

    for (i = 0; i < all->len && points[i].id != id; i++) {
    }
    if (i == all->len) {
        error_setg(&t->err, "there is no checkpoint %" PRIu64 ": see 'tt checkpoint "
                   "list' (in QMP query-tt-checkpoints)", id);
    } else if (i == 0) {
        error_setg(&t->err, "checkpoint %" PRIu64 " is the first one and cannot "
                   "be deleted: the others hold only what changed since", id);
    } else if (is_needed(&points[i], &t->err)) {
        /* said */
    } else if (id == tt_cpfiles_base() && !tt_cptake_rebase(id, points[i - 1].id)) {
        error_setg(&t->err, "not enough memory to delete the newest checkpoint");
    } else {
        t->job = tt_cpstore_delete(id, true);
        return true;
    }
    return false;
}

/* It waits for its turn, and for room for what is dirty. */
static bool begin(TtCheckpointerTask *t)
{
    bool busy;

    if (t->cancelled) {
        wait_for_store(t, false);
        return true;
    }
    if (!may_act(t, &busy, &t->err)) {
        wait_for_store(t, busy);
        return !busy;
    }
    if (t->kind == TT_CHECKPOINTER_ADD && !t->has_room) {
        t->has_room = true;             /* or there cannot be */
        if (!tt_cptake_has_room(&t->job) && t->job) {
            wait_for_store(t, true);
            return false;               /* busy until it is made */
        }
    }
    if (t->kind == TT_CHECKPOINTER_ADD ? !add_now(t) : !delete_now(t)) {
        wait_for_store(t, t->is_late);
        return !t->is_late;
    }
    wait_for_store(t, false);
    t->is_posted = true;
    if (t->kind == TT_CHECKPOINTER_ADD && t->full && !t->is_thinned) {
        t->settled_at = tt_record_settle();     /* its name, and the note for the group */
    }
    return false;
}

/* One that was cancelled meanwhile goes again. */
static bool end(TtCheckpointerTask *t)
{
    TtDiag diag;
    uint32_t id;

    if (!tt_record_is_settled(t->settled_at) || !tt_cpstore_is_done(t->job)) {
        return false;
    }
    if (tt_cpstore_result(t->job, &id, &diag) != TT_OK) {
        error_setg(&t->err, "%s", diag.text);
        return true;
    }
    if (t->kind == TT_CHECKPOINTER_ADD) {
        t->id = id;
        if (t->cancelled) {
            t->kind = TT_CHECKPOINTER_DELETE;
            t->cancelled = t->is_posted = false;
            t->is_undo = true;
            return false;
        }
    }
    return true;
}

bool tt_checkpointer_step(TtCheckpointerTask *t)
{
    return t->is_posted ? end(t) : begin(t);
}

GArray *tt_checkpointer_list(void)
{
    return tt_cplist_list();
}
