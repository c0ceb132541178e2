/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gdb: the reverse packets (bs, bc), the ends of history, Ctrl-C, and the
 * answer to a write into history. The stop itself is reported by gdbstub, as
 * for any breakpoint.
 */
#include "qemu/osdep.h"
#include "gdbstub-tt/tt-gdb.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "gdbstub-tt/tt-gdb-rcmd.h"
#include "replay/tt-replay-log.h"
#include "session/tt-ops.h"
#include "session/tt-session.h"
#include "timeline/tt-timeline.h"
#include "travel/tt-past.h"
#include "travel/tt-travel.h"
#include "tt-gdb-cond-int.h"
#include "tt-gdb-hits-int.h"
#include "tt-gdb-job-int.h"
#include "tt-gdb-process-int.h"
#include "tt-gdb-query-int.h"
#include "tt-gdb-watch-int.h"
#include "tt/hooks-gdb.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/timer.h"
#include "exec/gdbstub.h"
#include "gdbstub/commands.h"
#include "system/cpus.h"
#include "system/runstate.h"
#include "system/system.h"

static const char refusal[] =
    "E.this is a replay, and its history cannot be changed: to go on differently, branch "
    "from a full checkpoint (tt branch RUN --at ID)";
static const char refusal_in_past[] =
    "E.this is the past of a recording, which cannot be changed: return to the present "
    "first ('monitor tt goto end'), or branch from a full checkpoint (tt branch RUN --at "
    "ID)";

/*
 * Where gdb looks at each hit itself (a condition that only gdb can evaluate)
 * the VM stands half of the time, and a Ctrl-C then comes when there is
 * nothing to stop. gdb, which saw the VM run, does not repeat it. So the next
 * resumption answers it, unless the user took the time to ask for that one.
 */
#define LATE_BREAK_MS 200

static bool wanted;
static int64_t break_ms = INT64_MIN / 2;

bool tt_gdb_wanted(void)
{
    return wanted;
}

bool tt_gdb_note(const char *device, Error **errp)
{
    wanted = true;
    return true;
}

/* Registers may have their old values in the end, but the TLB is empty then: the recorder
 * logs the vCPUs whatever it sees. */
static void note_registers(void)
{
    for (unsigned i = 0; tt_session.live && i < tt_vcpus_count(); i++) {
        tt_ops->was_reset(tt_vcpus_at(i));
    }
}

/* gdb shows the sentence when it was a register, but not when it was memory. */
bool tt_gdb_refuses_write(bool memory)
{
    const char *text = tt_past ? refusal_in_past : refusal;

    if (!tt_replaying()) {
        if (!memory) {
            note_registers();
        }
        return false;
    }
    if (memory) {
        warn_report_once("tt: gdb asked to write memory: %s", text + 2);
    }
    gdb_put_packet(text);
    return true;
}

/* ---- Ctrl-C ---- */

static void late_break(void)
{
    if (!runstate_is_running()) {
        break_ms = qemu_clock_get_ms(QEMU_CLOCK_REALTIME);
    }
}

bool tt_gdb_takes(uint8_t byte, bool is_idle)
{
    if (tt_gdb_rcmd_takes(byte)) {
        return true;
    }
    if (is_idle && byte == 0x03) {
        late_break();
    }
    return false;
}

/* A Ctrl-C came just before this resumption: it is answered, nothing moves. */
static bool answered_break(void)
{
    int64_t ago = qemu_clock_get_ms(QEMU_CLOCK_REALTIME) - break_ms;

    break_ms = INT64_MIN / 2;
    if (ago > LATE_BREAK_MS) {
        return false;
    }
    vm_start();
    vm_stop(RUN_STATE_PAUSED);
    return true;
}

/* ---- movements ---- */

/* Somebody else moved the VM: gdb looks at a watchpoint first. Nothing runs. */
static bool answered_watch(bool step)
{
    return tt_replaying() && tt_gdb_watch_answers(step);
}

static bool has_step(const char *actions)
{
    for (unsigned i = 0; i < tt_vcpus_count(); i++) {
        if (actions[i] == 's') {
            return true;
        }
    }
    return false;
}

/* gdbstub forgets the step of a vCPU when another one met the stop. */
static void forget_steps(void)
{
    for (unsigned i = 0; i < tt_vcpus_count(); i++) {
        cpu_single_step(tt_vcpus_at(i), 0);
    }
}

/* The user thought better of it. */
static bool is_broken_off(void)
{
    if (!answered_break()) {
        return false;
    }
    tt_gdb_break_job();
    tt_gdb_hits_forget();
    return true;
}

/* gdb has seen the VM run; nothing has moved. */
static bool answered_step(bool step)
{
    if (!step || !tt_gdb_cannot_stop_at_places()) {
        return false;
    }
    if (runstate_needs_reset()) {
        return false;               /* gdb hears that it cannot run */
    }
    vm_start();
    vm_stop(RUN_STATE_DEBUG);
    return true;
}

bool tt_gdb_resume(const char *actions)
{
    forget_steps();
    if (is_broken_off() || answered_step(has_step(actions))) {
        return true;
    }
    if (tt_replaying() && tt_gdb_run_job()) {
        return true;
    }
    return answered_watch(has_step(actions));
}

bool tt_gdb_resume_plain(CPUState *stepping, bool has_pc)
{
    g_autofree char *actions = g_strnfill(tt_vcpus_count(), 'c');

    if (has_pc && tt_gdb_refuses_write(false)) {
        return true;
    }
    if (stepping) {
        actions[stepping->cpu_index] = 's';
    }
    return tt_gdb_resume(actions);
}

static void arrived(void *opaque, uint64_t pos, int reason)
{
    tt_session.last_stop = reason;
    tt_gdb_note_end(reason);
    tt_vcpus_stop_for_gdb();
}

static CPUState *stepper;       /* NULL: no step */
static uint64_t reverse_from;

/* There it stands where history, on the way back, begins. */
static void arrived_behind(void *opaque, uint64_t pos, int reason)
{
    arrived(opaque, pos, reason == TT_STOP_TARGET ? TT_STOP_START : reason);
}

/* A part of the log that cannot be read is where a way back ends: as near to it as the
 * VM can stand. */
static void reversed(void *opaque, uint64_t pos, int reason)
{
    uint64_t behind;

    if (reason != TT_STOP_DAMAGED) {
        arrived(opaque, pos, reason);
    } else if (!tt_travel_next_point(&behind) || behind > reverse_from ||
               !tt_travel_goto(behind, arrived_behind, NULL, NULL)) {
        arrived(opaque, pos, TT_STOP_START);
    }
}

/* Backwards from the present of a recording: first to its like in the past. */
static void reverse_from_end(void *opaque, uint64_t pos, int reason)
{
    if ((reason != TT_STOP_TARGET && reason != TT_STOP_END) ||
        !tt_travel_reverse(stepper, reversed, NULL, NULL)) {
        arrived(opaque, pos, reason);
    }
}

/*
 * A step back has no thread of its own, as vCont's have: it is of the one that Hc names,
 * and where that names none, as gdb does unless it locks the scheduler, of the one that gdb
 * reads registers of. That is the one its user has selected.
 */
static uint32_t resumed;        /* 0: any */

void tt_gdb_selects(bool is_one, uint32_t tid)
{
    resumed = is_one ? tid : 0;
}

static CPUState *who_steps(CPUState *selected)
{
    return resumed && resumed <= tt_vcpus_count() ? tt_vcpus_at(resumed - 1) : selected;
}

bool tt_gdb_reverse(bool step, CPUState *selected)
{
    bool begun;

    if (is_broken_off() || answered_watch(step)) {
        return true;
    }
    stepper = step ? who_steps(selected) : NULL;
    if (step) {
        tt_gdb_watch_before(stepper);
    }
    reverse_from = tt_position();
    begun = tt_recording() ? tt_past_enter(NULL) &&
        tt_travel_goto(step ? tt_past_stand() : tt_replay_end(),
                       reverse_from_end, NULL, NULL) :
        tt_travel_reverse(stepper, reversed, NULL, NULL);
    if (begun) {
        vm_start();
    }
    return begun;
}

const char *tt_gdb_stop_suffix(const char *reply)
{
    bool may_name = tt_replaying() && g_str_has_prefix(reply, "T05") &&
        !strstr(reply, "watch:");
    int reason = tt_session.last_stop;

    tt_session.last_stop = TT_STOP_NONE;
    switch (reason) {
    case TT_STOP_START:
        tt_gdb_watch_at_stop(false);
        return "replaylog:begin;";
    case TT_STOP_END:
    case TT_STOP_DAMAGED:               /* nothing that can be read follows */
        tt_gdb_watch_at_stop(false);
        return "replaylog:end;";
    default:
        return tt_gdb_watch_at_stop(may_name);
    }
}

void tt_gdb_attached(void)
{
    if (tt_vcpu()) {
        gdb_set_stop_cpu(tt_vcpu());        /* gdb begins with its thread */
    }
    resumed = 0;
    tt_gdb_watch_attached();
    tt_gdb_process_attached();
    tt_gdb_hits_forget();
}

/* ---- start ---- */

static void machine_ready(Notifier *n, void *opaque)
{
    tt_gdb_init_queries();
    tt_gdb_init_hits();
    tt_gdb_init_conditions();
    tt_gdb_init_watch();
    tt_gdb_init_process();
}

void tt_gdb_start(void)
{
    static Notifier ready = { .notify = machine_ready };

    qemu_add_machine_init_done_notifier(&ready);
}
