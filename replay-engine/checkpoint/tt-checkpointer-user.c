/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checkpoints that the user asks for, and deletes: main thread, with the VM stopped.
 *
 * The TLB is emptied and the vCPU's state logged right behind one, so that a replay
 * which comes by empties its own, too.
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-position.h"
#include "checkpoint/tt-checkpointer.h"
#include "checkpoint/tt-cpfiles.h"
#include "checkpoint/tt-cplist.h"
#include "checkpoint/tt-cpstore.h"
#include "checkpoint/tt-cptake.h"
#include "hw-tt/memory/tt-memory.h"
#include "hw-tt/state/tt-full.h"
#include "io/tt-base.h"
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
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "qemu/main-loop.h"
#include "system/cpus.h"
#include "system/runstate.h"

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

static bool may_act(Error **errp)
{
    const char *why;

    if (!tt_is_live(errp)) {
        return false;
    }
    if (tt_cpstore_is_saving()) {
        error_setg(errp, "a window is being saved, and checkpoints stay as they are "
                   "until then: wait for its end");
        return false;
    }
    tt_cpstore_wait();
    if (tt_cpfiles_is_over()) {
        tt_checkpointer_drop_newest();
        tt_cpstore_wait();
    }
    if (tt_cpstore_is_open() && tt_cpfiles_has_failed(&why)) {
        error_setg(errp, "the recording goes on without checkpoints: %s", why);
        return false;
    }
    return true;
}

/* The VM is stopped. */
static bool add_here(CPUState *cpu, const char *name, TtFullWriter *full,
                     uint32_t *job, Error **errp)
{
    uint32_t flags = TT_CHECKPOINT_PINNED | (full ? TT_CHECKPOINT_FULL : 0);
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
    ok = tt_checkpointer_take(cpu, flags, full ? tt_full_bytes(full) : (TtBytes) { 0 }, job);
    tt_record_renew();
    if (!ok) {
        error_setg(errp, "the checkpoint cannot be stored: memory is short");
    }
    return ok;
}

static void wait_for(uint32_t job)
{
    while (!tt_cpstore_is_done(job)) {
        bql_unlock();
        g_usleep(1000);
        bql_lock();
    }
}

static bool is_stored(uint32_t job, uint32_t *id, Error **errp)
{
    TtDiag diag;

    wait_for(job);
    if (tt_cpstore_result(id, &diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    return true;
}

/* Whatever can be refused is, before anything of the disks is changed. */
static bool add_stopped(const char *name, GString *full, uint32_t *job,
                        Error **errp)
{
    TtFullWriter *w = NULL;
    bool ok;

    if (!may_act(errp) || (name && !tt_mark_check(name, errp))) {
        return false;
    }
    if (full) {
        w = tt_full_save(name, tt_rundir_check, full, errp);
        if (!w) {
            return false;
        }
    }
    tt_checkpointer_hold(true);
    ok = add_here(first_cpu, name, w, job, errp);
    tt_checkpointer_hold(false);
    tt_full_writer_free(w);
    return ok;
}

bool tt_checkpointer_add(const char *name, GString *full, uint32_t *id, Error **errp)
{
    bool was_live, ok;
    uint32_t job;

    if (!may_act(errp)) {
        return false;
    }
    if (!tt_cptake_has_room(&job) && job) {
        wait_for(job);
    }
    if (!tt_is_live(errp)) {
        return false;
    }
    was_live = runstate_is_live(runstate_get());
    vm_stop(RUN_STATE_PAUSED);
    ok = add_stopped(name, full, &job, errp);
    if (was_live) {
        vm_start();
    }
    return ok && is_stored(job, id, errp);
}

/* A branch began there: its replay takes RAM from it. */
static bool is_needed(const TtCheckpointDesc *p, Error **errp)
{
    g_autofree char *branch = p->full ?
        tt_runstore_branch_of(tt_session.dir, tt_session.manifest.uuid, p->id) : NULL;

    if (branch) {
        error_setg(errp, "checkpoint %" PRIu32 " is where the branch '%s' began, "
                   "and a replay of that needs it: delete the branch first", p->id,
                   branch);
    }
    return branch;
}

bool tt_checkpointer_delete(uint64_t id, Error **errp)
{
    g_autoptr(GArray) all = NULL;
    const TtCheckpointDesc *points;
    uint32_t unused;
    unsigned i;

    if (!may_act(errp)) {
        return false;
    }
    all = tt_cplist_list();
    points = (const TtCheckpointDesc *)all->data;
    for (i = 0; i < all->len && points[i].id != id; i++) {
    }
    if (i == all->len) {
        error_setg(errp, "there is no checkpoint %" PRIu64 ": see 'tt "
                   "checkpoint list'", id);
    } else if (i == 0) {
        error_setg(errp, "checkpoint %" PRIu64 " is the first one and stays: "
                   "the others say only what changed since", id);
    } else if (is_needed(&points[i], errp)) {
        /* said */
    } else if (id == tt_cpfiles_base() && !tt_cptake_rebase(id, points[i - 1].id)) {
        error_setg(errp, "not enough memory to delete the newest checkpoint");
    } else {
        return is_stored(tt_cpstore_delete(id, true), &unused, errp);
    }
    return false;
}

GArray *tt_checkpointer_list(void)
{
    return tt_cplist_list();
}
