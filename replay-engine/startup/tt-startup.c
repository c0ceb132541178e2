/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The start and the end of the engine: connects its rooms, checks the machine when it is
 * made, and finishes the recording.
 */
#include "qemu/osdep.h"
#include "startup/tt-startup.h"
#include "accel-tt/kvm/tt-kvm.h"
#include "accel-tt/tcg/tt-fetch.h"
#include "accel-tt/tcg/tt-tcg.h"
#include "accel-tt/tt-vcpu-backend.h"
#include "accel-tt/tt-vcpus.h"
#include "accel-tt/x86/tt-cpu-model.h"
#include "branch/tt-branch.h"
#include "checkpoint/tt-checkpointer.h"
#include "control/tt-recordable.h"
#include "flight/tt-autosave.h"
#include "flight/tt-crash.h"
#include "flight/tt-incident.h"
#include "flight/tt-save.h"
#include "gdbstub-tt/tt-gdb-rcmd.h"
#include "gdbstub-tt/tt-gdb.h"
#include "hw-tt/memory/tt-memory.h"
#include "hw-tt/state/tt-disks.h"
#include "io/tt-base.h"
#include "log/tt-log.h"
#include "monitor-cmds/tt-hmp.h"
#include "monitor-cmds/tt-monitor.h"
#include "record/tt-record-listener.h"
#include "net-tt/glue/tt-net-frames.h"
#include "record/tt-record-options.h"
#include "record/tt-record.h"
#include "record/tt-rundir.h"
#include "replay/tt-replay.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "travel/tt-past.h"
#include "travel/tt-retrace.h"
#include "travel/tt-travel.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "qemu/main-loop.h"
#include "qemu/error-report.h"
#include "qemu/module.h"
#include "hw/boards.h"
#include "hw/core/cpu.h"
#include "system/kvm.h"
#include "system/system.h"
#include "system/tcg.h"

/* A later recording of this process may have no stores. */
static bool begin_frames(CPUState *cpu, Error **errp)
{
    tt_net_frames_begin(tt_record_options.frames != NULL);
    return true;
}

/* Connects rooms where one must be told by, or must ask, a room that it does not know.
 * All of it is here, so that the order does not depend on the linker. */
static void init_rooms(void)
{
    static const TtRecordListener disks = { .removing = tt_disks_discard_stores };
    static const TtRecordListener frames = {
        .started = begin_frames, .finishing = tt_net_frames_end,
    };

    tt_tcg_init();
    tt_memory_init();
    tt_record_init();
    tt_record_listen(&disks);
    tt_record_listen(&frames);
    tt_retrace_init();
    tt_branch_init();
    tt_checkpointer_init();
    tt_cpgroup_init();
    tt_save_init();
    tt_autosave_init();
    tt_crash_init();
    tt_incident_init();
    tt_replay_init();
    tt_travel_init();
    tt_past_init(tt_checkpointer_settle);
    tt_monitor_init();
    tt_hmp_init(tt_gdb_gave_up);
}

opts_init(init_rooms);

void tt_refuse(const char *fmt, ...)
{
    Location none;
    char *text;
    va_list ap;

    va_start(ap, fmt);
    text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    loc_push_none(&none);               /* the option as it was typed */
    error_report("%s", tt_replace_controls(text, '?'));
    exit(1);
}

const char *tt_option_name(void)
{
    return !tt_on() ? "-tt ready" : tt_is_branch() ? "-tt branch" : "-tt record";
}

void tt_check_cpu(const char *type)
{
    if (kvm_enabled() && g_strcmp0(type, TT_CPU_MODEL_TYPE)) {
        tt_refuse("%s: under KVM only CPU model " TT_CPU_MODEL " can be recorded: leave "
                  "out -cpu", tt_option_name());
    }
}

static void check_cpu_model(void)
{
    const char *bad = tt_cpu_model_unrecordable(first_cpu);

    if (bad) {
        tt_refuse("%s: the CPU has feature '%s', which KVM handles without QEMU, so it "
                  "cannot be recorded: leave out -cpu, or use -cpu " TT_CPU_MODEL,
                  tt_option_name(), bad);
    }
    bad = tt_cpu_model_unreplayable(first_cpu);
    if (bad) {
        tt_refuse("%s: the CPU has feature '%s', which TCG has not, so it cannot be "
                  "replayed: leave it out of -cpu", tt_option_name(), bad);
    }
    if (tt_cpu_model_has_tsc_frequency(first_cpu)) {
        tt_refuse("%s: under KVM the time stamp counter has the host's frequency: leave "
                  "out tsc-frequency", tt_option_name());
    }
}

/* The guest's writes go to the run from the start. */
static void make_stores(void)
{
    g_autoptr(GString) said = g_string_new(NULL);
    Error *err = NULL;

    if (tt_record_options.disks == TT_DISKS_IMAGE || tt_is_branch()) {
        return;
    }
    if (!tt_disks_make_stores(NULL, tt_rundir_check, said, &err)) {
        tt_record_close();
        error_append_hint(&err, "With disk=image the guest writes to your images "
                                "instead.\n");
        error_reportf_err(err, "-tt record: ");
        exit(1);
    }
    error_printf("%s", said->str);
    if (said->len && tt_record_options.disks == TT_DISKS_COMMIT) {
        tt_disks_commit_at_end();
        error_printf("tt: what the guest writes goes into your images when QEMU exits; "
                     "if it is killed, use 'tt disk commit %s'\n",
                     tt_printable(tt_session.dir));
    }
}

static bool has_failed;         /* what was promised for the end */

int tt_exit_status(int status)
{
    return status ? status : has_failed;
}

static void commit_disks(void)
{
    Error *err = NULL;

    if (!tt_disks_are_committed_at_end()) {
        return;
    }
    has_failed = !tt_disks_commit(&err);
    if (has_failed) {
        error_reportf_err(err, "tt: ");
    } else {
        error_printf("tt: what the guest wrote is in your images%s\n",
                     tt_disks_some_left() ? ", except for disks that were unplugged" : "");
    }
}

static void machine_ready(Notifier *n, void *opaque)
{
    g_autofree char *why = tt_unrecordable_device();
    Error *err = NULL;

    if (why) {
        tt_refuse("%s: %s", tt_option_name(), why);
    }
    if (kvm_enabled()) {
        check_cpu_model();
    }
    if (!tt_on()) {
        return;
    }
    g_free(tt_session.manifest.accel);
    tt_session.manifest.accel = g_strdup(tt_backend->name);
    if (!tt_record_open(&err)) {
        tt_record_close();
        error_reportf_err(err, "%s: ", tt_option_name());
        exit(1);
    }
    tt_watch_devices();
    if (!tt_is_branch()) {          /* that has much to check before */
        error_printf("tt: recording into %s\n", tt_printable(tt_session.dir));
        make_stores();
    }
}

static void use_kvm(MachineState *ms)
{
    TtRecordOptions *opt = &tt_record_options;
    const char *why = tt_on() ? tt_kvm_unrecordable(opt) : NULL;
    Error *err = NULL;

    if (why) {
        tt_refuse("-tt record: %s", why);
    }
    if (!tt_kvm_check(ms, &err)) {
        tt_refuse("%s: %s", tt_option_name(), error_get_pretty(err));
    }
    tt_kvm_init(tt_fetch_mode_changed);
}

void tt_check_machine(MachineState *ms)
{
    static Notifier ready = { .notify = machine_ready };
    const char *why = tt_unrecordable_machine(ms);

    if (why) {
        tt_refuse("%s", why);
    }
    if (kvm_enabled()) {
        use_kvm(ms);
    } else if (tt_on() && qemu_tcg_mttcg_enabled()) {
        tt_refuse("-tt runs all vCPUs in one thread: leave out thread=multi");
    }
    if (tt_pmu_is_on) {
        tt_refuse("%s: performance counters cannot be recorded: leave out tt-pmu",
                  tt_option_name());
    }
    if (tt_replaying()) {
        tt_tcg_take_threads();
    }
    if (tt_on()) {
        tt_block_migration(&error_fatal);
        tt_gdb_start();
    }
    if (!tt_replaying()) {
        qemu_add_machine_init_done_notifier(&ready);
    }
}

bool tt_refuses(const char *what, Error **errp)
{
    if (tt_on()) {
        error_setg(errp, "%s is not possible with -tt: the VM would leave its %s "
                         "history", what,
                   tt_recording() ? "recorded" : "replayed");
    }
    return tt_on();
}

/* ---- the end ---- */

void tt_finish(void)
{
    if (!tt_on()) {
        commit_disks();             /* the recording was stopped before */
        return;
    }
    tt_travel_end();
    if (tt_past) {
        tt_past_leave();
    }
    if (tt_recording() && !tt_session.has_begun) {
        tt_record_close();
        error_printf("tt: nothing was recorded: the VM never ran\n");
    } else if (tt_recording()) {
        bool whole = tt_session.live;

        tt_crash_settle();
        tt_record_finish(TT_FINISH_QUIT);
        if (whole && !tt_record_is_gone()) {
            error_printf("tt: recorded %" PRIu64 " positions, %" PRIu64
                         " events, %" PRIu64 " bytes in %s\n", tt_record_end(),
                         tt_session.events, tt_record_bytes(), tt_printable(tt_session.dir));
        }
    }
    commit_disks();
}
