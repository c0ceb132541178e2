/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The past, in the process that records. Two worlds share the vCPU: the present,
 * which is the VM that is recorded, and the past, which is a replay of its run in
 * guest RAM of its own. One of them is shown: `tt`, tt_mode, the blocks of
 * tt-memory.c and the vCPU's state are its own, the other's are kept aside.
 *
 *            enter: VM stopped, TLB emptied, log sealed
 *   PRESENT ------------------------------------------> PAST, at the start
 *   RECORD  <------------------------------------------ REPLAY, anywhere
 *            leave: `tt goto end`, or cont at the end
 *
 *   I1  The RAM of the present is never written here, and no device is told
 *       anything: coming back needs the vCPU's state only, and that is logged
 *       when the past is entered, at the position where the present stands.
 *   I2  Devices that act meanwhile (a packet, a key) find the present: what they
 *       write is logged there (tt_world_swap), what they ask of the vCPU waits
 *       (tt_vcpus_swap_links).
 *   I3  QEMU's clocks and its handlers of the VM's state see a VM that stands,
 *       whatever runs in the past.
 *
 * Context: main thread, BQL held, unless said otherwise.
 */
#include "qemu/osdep.h"
#include "travel/tt-past.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpu.h"
#include "accel-tt/tt-vcpus.h"
#include "hw-tt/memory/tt-memory.h"
#include "record/tt-record-vcpus.h"
#include "record/tt-record.h"
#include "record/tt-rundir.h"
#include "replay/tt-replay-log.h"
#include "replay/tt-replay.h"
#include "run/tt-manifest.h"
#include "session/tt-events.h"
#include "session/tt-session.h"
#include "travel/tt-travel.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "qemu/main-loop.h"
#include "qemu/units.h"
#include "exec/cputlb.h"
#include "system/cpus.h"
#include "system/runstate.h"

static struct {
    GByteArray *cpus;           /* the vCPUs of the present */
    int halted;
    uint64_t stands_at;         /* the present; its TLB is empty */
    uint64_t stood_at;          /* before that, in the same state */
    uint8_t stands_in[16];      /* UUID of the run */
    VMChangeStateHandler *debugger;
    RunState was;               /* of the VM, when it was left */
    void (*settle)(void);
} past;

/* ---- the way there: vCPU thread ---- */

/* From the second time on, the present may not have moved: nothing to log. */
static void make_stand(void)
{
    if (past.stands_at != tt_now.pos ||
        memcmp(past.stands_in, tt_session.manifest.uuid, sizeof(past.stands_in))) {
        past.stood_at = tt_now.pos;
        tt_record_renew();
    }
    past.stands_at = tt_now.pos;
    memcpy(past.stands_in, tt_session.manifest.uuid, sizeof(past.stands_in));
}

static void set_aside(void)
{
    const char *dir;

    past.cpus = tt_vcpus_save();
    past.halted = first_cpu->halted;
    dir = tt_session.dir;
    tt_world_begin();
    tt_vcpus_forget_links();
    tt_world_swap();
    tt_session.dir = dir;
    tt_past = true;
}

static void bring_back(void)
{
    tt_replay_close();
    tt_memory_leave_past();
    tt_manifest_cleanup(&tt_session.manifest);
    g_free(tt_replayer.divergence);
    tt_world_swap();
    tt_past = false;
    tt_vcpus_load(past.cpus->data, past.cpus->len, past.halted, &error_abort);
    g_byte_array_unref(past.cpus);
    tt_vcpus_do_work();                     /* the memory map */
    tt_vcpus_flush();
    tt_record_took_note();
}

static void enter(CPUState *cpu, run_on_cpu_data data)
{
    Error **errp = data.host_ptr;

    make_stand();
    if (!tt_record_seal(errp)) {
        return;
    }
    past.settle();
    set_aside();
    if (!tt_replay_open(errp)) {
        bring_back();
        return;
    }
    tt_replay_set_end(past.stands_at);
    tt_vcpus_swap_links();
    tt_replay_start(cpu);
    tt_vcpus_swap_links();
    if (tt_replayer.diverged) {
        error_setg(errp, "the start of the run cannot be shown: %s",
                   tt_replayer.divergence);
        tt_travel_close();
        bring_back();
    }
}

static void leave(CPUState *cpu, run_on_cpu_data data)
{
    tt_travel_close();
    bring_back();
}

/* ---- in and out ---- */

void tt_past_init(void (*settle)(void))
{
    past.settle = settle;
}

uint64_t tt_past_stand(void)
{
    return past.stood_at;
}

bool tt_past_enter(Error **errp)
{
    Error *err = NULL;

    assert(tt_recording() && !runstate_is_running());
    if (!tt_is_live(errp) || !tt_rundir_check(errp)) {
        return false;
    }
    if (tt_backend->counts_exits) {
        error_setg(errp, "a recording under KVM cannot show its past: end it and replay "
                   "the run");
        return false;
    }
    if (qemu_reset_requested_get()) {       /* it is the present's */
        error_setg(errp, "the machine is about to be reset: go back after the reset");
        return false;
    }
    if (!tt_vcpu_is_ours()) {
        error_setg(errp, "there is no past yet: the VM has not run since the "
                   "recording began");
        return false;
    }
    run_on_cpu(tt_vcpu(), enter, RUN_ON_CPU_HOST_PTR(&err));
    if (err) {
        error_propagate(errp, err);
        return false;
    }
    past.was = runstate_get();
    if (runstate_needs_reset()) {       /* a VM that is off has a past, too */
        runstate_set(RUN_STATE_PAUSED);
    }
    tt_tell_refuse_input(true);
    return true;
}

static bool is_off(void)
{
    return past.was == RUN_STATE_SHUTDOWN ||
        past.was == RUN_STATE_INTERNAL_ERROR;
}

void tt_past_leave(void)
{
    assert(tt_past && !tt_travel_active());
    tt_tell_refuse_input(false);
    if (is_off() && (runstate_check(RUN_STATE_PAUSED) ||
                     runstate_check(RUN_STATE_DEBUG))) {
        runstate_set(RUN_STATE_RUNNING);        /* the way there that QEMU has */
        runstate_set(past.was);
    }
    run_on_cpu(tt_vcpu(), leave, RUN_ON_CPU_NULL);
}

/* ---- QEMU's state of the VM ---- */

void tt_past_vm_starts(void)
{
    if (!is_off() && !tt_travel_active() && tt_now.pos >= tt_replay_end() &&
        !tt_replayer.diverged) {
        tt_past_leave();
    }
}

void tt_past_debugger(void *handler)
{
    past.debugger = handler;
}

void tt_past_notify(bool running, int state)
{
    if (!running) {
        tt_travel_abort();
    }
    if (past.debugger) {
        past.debugger(NULL, running, state);
    }
}
