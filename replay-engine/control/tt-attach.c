/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recording of a VM that runs already: `tt record start` and `stop`, any number of
 * times (Koju 3.1: attach and detach).
 *
 * The mode changes while the VM is stopped. Then
 *   I1  the vCPU is outside cpu_exec, so no hook is half way through, and its
 *       position is exact from the first moment;
 *   I2  block devices are drained: no host thread is still filling a guest
 *       buffer that was mapped before DMA was bounced. A buffer that is mapped and
 *       still waits is written with the token held, and its end is logged
 *       (docs/decisions/0008).
 *
 *   OFF --tt_attach--> RECORD --tt_detach--> OFF --tt_attach--> ...
 *
 * The new run begins with all that the guest sees: RAM, map, vCPU. The vCPU
 * thread comes to tt_vcpu_loop, or leaves it, by itself when the VM goes on.
 */
#include "qemu/osdep.h"
#include "control/tt-attach.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-schedule.h"
#include "accel-tt/tt-token.h"
#include "accel-tt/tt-vcpu.h"
#include "accel-tt/tt-vcpu-backend.h"
#include "accel-tt/tt-vcpus.h"
#include "branch/tt-branch.h"
#include "control/tt-describe.h"
#include "control/tt-recordable.h"
#include "control/tt-values.h"
#include "flight/tt-crash.h"
#include "hw-tt/memory/tt-guard.h"
#include "hw-tt/state/tt-disks.h"
#include "log/tt-log.h"
#include "record/tt-record-options.h"
#include "record/tt-record.h"
#include "record/tt-rundir.h"
#include "run/tt-manifest.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "travel/tt-past.h"
#include "travel/tt-travel.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "migration/blocker.h"
#include "system/cpus.h"
#include "system/kvm.h"
#include "system/runstate.h"

static void set_mode(int mode)
{
    assert(bql_locked());
    tt_set_mode(mode);
    if (mode == TT_RECORD) {
        tt_token_start();
    } else {
        tt_token_stop();
    }
    tt_vcpu_mode_changed();
}

/* Nothing is left of the run; the next one finds what a new process has. */
static void forget_run(void)
{
    tt_record_close();
    tt_manifest_cleanup(&tt_session.manifest);
    tt_session = (TtSession) { 0 };
    tt_position_reset();
    tt_record_options = (TtRecordOptions) { 0 };
    tt_schedule_chaos = false;
    tt_unblock_migration();
}

/* Its mappings stay when a recording ends, and there is one set of them. */
static bool may_guard(const TtRecordOptions *opt, Error **errp)
{
    if (opt->guard && tt_guard_is_on) {
        error_setg(errp, "guard=on works only once in a process, and an earlier "
                   "recording used it: restart QEMU");
        return false;
    }
    return true;
}

/* The store between disk and image goes into the image when QEMU ends, or it does not:
 * the same for all recordings of a process. */
static bool may_redirect(const TtRecordOptions *opt, Error **errp)
{
    if (opt->disks == TT_DISKS_PRIVATE && tt_disks_are_committed_at_end()) {
        error_setg(errp, "an earlier recording of this VM used disk=commit, so "
                   "everything is written to its images when QEMU ends: disk=private is "
                   "no longer possible");
        return false;
    }
    return true;
}

bool tt_redirect_disks(DeviceState *dev, Error **errp)
{
    g_autoptr(GString) said = g_string_new(NULL);
    bool ok = tt_record_options.disks == TT_DISKS_IMAGE ||
        tt_disks_make_stores(dev, tt_rundir_check, said, errp);

    if (ok && said->len && tt_record_options.disks == TT_DISKS_COMMIT) {
        tt_disks_commit_at_end();
    }
    error_printf("%s", said->str);
    return ok;
}

#define BEGIN_TRIES 1000

/* The VM is stopped at a place where a recording can begin (can_begin); nobody is told
 * when it runs on for a moment to come to one. */
static bool stop_where_it_can_begin(Error **errp)
{
    bool was_live = runstate_is_live(runstate_get());

    tt_vcpus_find();
    for (unsigned n = 0; tt_backend->can_begin && n < BEGIN_TRIES; n++) {
        pause_all_vcpus();
        if (tt_backend->can_begin(first_cpu)) {
            break;
        }
        if (!was_live || n == BEGIN_TRIES - 1) {
            resume_all_vcpus();
            error_setg(errp, "the vCPU is in the middle of an exception: let the VM run, "
                       "and try again");
            return false;
        }
        resume_all_vcpus();
        bql_unlock();
        g_usleep(200);
        bql_lock();
    }
    vm_stop(RUN_STATE_PAUSED);                          /* I1, I2 */
    return true;
}

static bool is_possible(TtRecordOptions *opt, Error **errp)
{
    const char *why = kvm_enabled() ? tt_kvm_unrecordable(opt) : NULL;

    if (!why && tt_backend->refusal) {
        why = tt_backend->refusal(first_cpu);
    }

    if (why) {
        error_setg(errp, "%s", why);
    }
    return !why;
}

bool tt_attach(const TtRecordOptions *wanted, Error **errp)
{
    TtRecordOptions options = *wanted, *opt = &options;
    bool was_live, ok;

    if (tt_on()) {
        error_setg(errp, tt_replaying() && !tt_past ?
                   "this is a replay: it cannot be recorded" :
                   "already recording into '%s': stop that recording first "
                   "('tt record stop', in QMP tt-record-stop)",
                   tt_printable(tt_session.dir));
        return false;
    }
    if (!tt_can_record(errp) || !is_possible(opt, errp) || !may_guard(opt, errp) ||
        !may_redirect(opt, errp) ||
        !tt_window_fits(opt->window_ns, opt->checkpoint_interval_ms, errp) ||
        !tt_crash_set_pattern(opt->panic_pattern ?: tt_panic_pattern_default,
                                errp) ||
        !tt_block_migration(errp)) {
        return false;
    }
    tt_describe_recording();
    tt_set_dir(opt->dir);
    tt_record_options = *opt;
    tt_record_options.dir_option = "";        /* the monitor's, not of -tt */
    if (!tt_record_open(errp)) {
        forget_run();
        return false;
    }
    tt_watch_devices();
    tt_iothreads_fold = true;           /* those that come later */
    was_live = runstate_is_live(runstate_get());
    if (!stop_where_it_can_begin(errp)) {
        forget_run();
        return false;
    }
    set_mode(TT_RECORD);
    tt_guard_option(opt->guard);
    tt_vcpus_find();
    ok = tt_record_start(errp);
    if (ok && !tt_redirect_disks(NULL, errp)) {
        tt_record_finish(TT_FINISH_STOPPED);
        ok = false;
    }
    if (!ok) {
        tt_guard_stop();
        set_mode(TT_OFF);
        forget_run();
    }
    if (was_live) {
        vm_start();
    }
    return ok;
}

bool tt_detach(TtEnded *ended, Error **errp)
{
    bool was_live = runstate_is_live(runstate_get());
    bool ok = true;

    if (tt_past && tt_travel_active()) {
        error_setg(errp, "a movement in the past of the recording is under way: "
                   TT_WAIT_OR_INTERRUPT);
        return false;
    }
    if (tt_past) {
        vm_stop(RUN_STATE_PAUSED);
        tt_past_leave();
        was_live = false;
    }
    if (!tt_recording()) {
        error_setg(errp, "there is no recording to stop");
        return false;
    }
    vm_stop(RUN_STATE_PAUSED);
    if (!tt_session.has_begun) {          /* -tt record -S, not run yet */
        tt_vcpus_find();
        ok = tt_record_start(errp);
    }
    if (ok) {
        tt_crash_settle();
        tt_record_finish(TT_FINISH_STOPPED);
        *ended = (TtEnded) {
            .dir = tt_session.dir, .pos = tt_record_end(), .events = tt_session.events,
            .bytes = tt_record_bytes(), .whole = tt_record_is_whole(),
        };
    }
    set_mode(TT_OFF);
    forget_run();
    if (was_live) {
        vm_start();
    }
    return ok;
}

/* ---- from a recording into a branch of it ---- */

/* A directory for the run, and what its manifest says. */
static bool open_branch(const TtRecordOptions *opt, bool is_alone, Error **errp)
{
    if (!tt_block_migration(errp)) {
        return false;
    }
    tt_describe_recording();
    tt_set_dir(opt->dir);
    tt_record_options = *opt;
    if (!is_alone) {
        tt_branch_note_parent();
    }
    return tt_record_open(errp);
}

/* @has_changed: the VM is no more what it was. */
static bool begin_branch(const TtRecordOptions *opt, bool is_alone, bool *has_changed,
                         Error **errp)
{
    *has_changed = false;
    if (!open_branch(opt, is_alone, errp) || !tt_branch_load(has_changed, errp)) {
        return false;
    }
    if (is_alone) {
        tt_branch_drop();           /* nothing is as in a parent: all is logged */
    }
    set_mode(TT_RECORD);
    tt_vcpus_find();
    return tt_record_start(errp);
}

/* The state is of two moments: 'cont' is refused until the VM is reset. The way there is
 * by RUNNING, of which nobody is told. */
static void forbid_to_run(void)
{
    if (!runstate_needs_reset()) {
        runstate_set(RUN_STATE_RUNNING);
        runstate_set(RUN_STATE_INTERNAL_ERROR);
    }
}

static void say_what_now(const char *dir, bool has_changed, Error **errp)
{
    if (has_changed) {
        forbid_to_run();
        error_prepend(errp, "the VM could not go back, and cannot go on before a reset; "
                      "its recording in '%s' is complete, and 'tt branch' can go on from "
                      "a full checkpoint of it: ", tt_printable(dir));
    } else {
        error_prepend(errp, "the VM could not go back; its recording in '%s' has ended, "
                      "and 'cont' lets it go on unrecorded: ", tt_printable(dir));
    }
}

/* It has come to an end, which is undone. */
static bool is_over(void)
{
    return runstate_needs_reset() || runstate_check(RUN_STATE_GUEST_PANICKED);
}

bool tt_attach_branch(const TtRecordOptions *opt, const char *parent, uint32_t id,
                      bool is_alone, Error **errp)
{
    ERRP_GUARD();
    bool was_live = runstate_is_live(runstate_get()), is_chaos = tt_schedule_chaos;
    const char *dir = tt_session.dir;
    bool has_changed;

    if (!tt_rundir_can_make(opt->dir, errp) || !tt_branch_choose(parent, id, errp)) {
        return false;                   /* the present recording goes on */
    }
    vm_stop(RUN_STATE_PAUSED);                          /* I1, I2 */
    tt_crash_settle();
    tt_record_finish(TT_FINISH_STOPPED);
    set_mode(TT_OFF);
    forget_run();
    tt_schedule_chaos = is_chaos;
    if (!begin_branch(opt, is_alone, &has_changed, errp)) {
        if (tt_mode == TT_RECORD) {
            set_mode(TT_OFF);
        }
        forget_run();
        tt_branch_drop();
        say_what_now(dir, has_changed, errp);
        return false;
    }
    if (is_over()) {
        runstate_set(RUN_STATE_PRELAUNCH);
        was_live = true;
    }
    if (was_live) {
        vm_start();
    }
    return true;
}
