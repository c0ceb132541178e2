/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recorder: takes the events of the hooks, gives them their positions and hands them to
 * the log's writer (tt-writer.c). tt-record-vcpus.c notices changes of the vCPUs by
 * others; tt-record-listener.c tells the listeners of a recording.
 *
 * When the disk refuses, the VM is stopped until there is room (tt-write-stall.c), or,
 * with on-error=continue, the recording ends at the last sealed segment with one
 * sentence, and the VM goes on unrecorded. So it does when the cap is reached.
 *
 * A process may record several runs, one after another: see open, start, finish
 * and close in tt-record.h.
 */
#include "qemu/osdep.h"
#include "record/tt-record.h"
#include "accel-tt/tt-branch-trace.h"
#include "accel-tt/tt-inputs.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-schedule.h"
#include "accel-tt/tt-token.h"
#include "accel-tt/tt-vcpu.h"
#include "accel-tt/tt-vcpus.h"
#include "accel-tt/x86/tt-target.h"
#include "hw-tt/memory/tt-block.h"
#include "hw-tt/memory/tt-guard.h"
#include "hw-tt/memory/tt-memory.h"
#include "hw-tt/screen/tt-gpu.h"
#include "hw-tt/state/tt-disk-refs.h"
#include "log/tt-log.h"
#include "record/tt-flight.h"
#include "record/tt-record-options.h"
#include "record/tt-record-time.h"
#include "record/tt-record-landmark.h"
#include "record/tt-record-vcpus.h"
#include "record/tt-rundir.h"
#include "record/tt-write-stall.h"
#include "record/tt-writer.h"
#include "run/tt-manifest.h"
#include "session/tt-ops.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "tt-record-frames-int.h"
#include "tt-record-tell-int.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "qemu/main-loop.h"
#include "qemu/error-report.h"
#include "qemu/timer.h"
#include "qemu/thread.h"
#include "qemu/guest-random.h"
#include "qemu/units.h"
#include "qemu/uuid.h"
#include "exec/cputlb.h"
#include "system/runstate.h"

#define TT_SEAL_MS      200         /* a segment stays open no longer */

static struct {
    QEMUTimer *seal_timer;
    bool initial, full_up;
    bool whole;                     /* finished, and all of it written */
    bool gone;                      /* finished, and its files are not there */
} rec;

void tt_record_give_up(const char *why)
{
    tt_session.live = false;
    tt_rundir_release();
    tt_session.gave_up_at = tt_record_end();
    tt_session.gave_up = true;
    tt_record_tell_trouble();
    warn_report("tt: the recording ends at position %" PRIu64 ", the VM goes "
                "on unrecorded: %s", tt_session.gave_up_at, why);
}

static bool has_trouble(void)
{
    const char *why;

    if (tt_session.live && tt_writer_has_failed(&why)) {
        tt_record_give_up(why);
    }
    return !tt_session.live;
}

static void seal_tick(void *opaque)
{
    if (!tt_session.gave_up) {
        tt_rundir_watch();
    }
    if (tt_stall_why()) {
        tt_record_tell_trouble();
        tt_stall_tell();
    } else if (!tt_past && tt_session.live && !has_trouble()) {
        tt_writer_hand_over();
    }
    timer_mod(rec.seal_timer,
              qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + TT_SEAL_MS);
}

/* ---- events ---- */

/* Moves the position past an event that was put between two instructions. */
static void step_over(void)
{
    CPUState *cpu = tt_vcpu();

    if (tt_token_is_mine() && cpu->running) {
        tt_vcpu_count(cpu);
        tt_now.pos++;
        tt_vcpu_arm(cpu);
    } else {
        tt_now.pos++;
    }
}

/* A hole for tests: what verification must find. */
static bool is_unlogged(const TtEvent *ev)
{
    return ev->kind == TT_EV_RAM && !rec.initial && --tt_record_options.unlogged == 0;
}

static void tell_guard(const TtEvent *ev)
{
    if (ev->kind == TT_EV_RAM || ev->kind == TT_EV_RAM_FILL ||
        tt_event_is_named(ev->kind)) {
        tt_guard_logged(tt_memory_block(ev->addr)->ram_block, ev->val,
                        ev->kind == TT_EV_RAM_FILL ? tt_get_le64(ev->data) :
                        tt_event_bytes(ev));
    }
}

void tt_record_event(TtEvent *ev)
{
    assert(bql_locked());
    if (unlikely(!tt_session.live) || unlikely(rec.initial && rec.full_up) ||
        unlikely(tt_record_options.unlogged && is_unlogged(ev))) {
        return;
    }
    tt_record_time_before(ev, tt_record_event);
    ev->pos = tt_position();
    ev->nested = rec.initial || (ev->kind == TT_EV_TIME && ev->nested) ||
        ((TT_EV_IS_ASYNC(ev->kind) || ev->kind == TT_EV_NOTE ||
          tt_event_is_frame(ev->kind)) && tt_now.device_depth);
    tt_writer_put(ev);
    tt_session.events += !TT_EV_IS_ANNOTATION(ev->kind);
    if (unlikely(tt_guard_is_on)) {
        tell_guard(ev);
    }
    if (tt_event_step(ev)) {
        step_over();
    }
    if (unlikely(tt_record_options.max_size_bytes && !rec.full_up &&
                 tt_writer_is_full())) {
        rec.full_up = true;         /* ended between two turns: a clean place */
        tt_token_kick();
    }
}

static uint64_t next_check(void)
{
    uint64_t step = tt_record_options.check_interval;

    return (tt_now.pos / step + 1) * step;
}

/* A digest; the vCPU is in cpu_exec. */
static void check(void)
{
    TtEvent ev = { .kind = TT_EV_CHECK, .addr = tt_now.output_hash };

    tt_now.check_next = UINT64_MAX;
    if (!has_trouble()) {
        ev.val = tt_vcpus_digest();
        tt_record_event(&ev);
        tt_now.check_next = next_check();
    }
}

static void sync_point(CPUState *cpu)
{
    TtEvent ev = {
        .kind = TT_EV_CHECK,
        .addr = tt_now.output_hash,
        .val = tt_vcpus_digest(),
    };

    tt_now.sync_next = tt_next_sync_point(tt_now.pos);
    tt_now.check_next = next_check();
    if (!(tt_omit & TT_OMIT_FIXED_TLB)) {
        tt_vcpus_flush();
    }
    if (!has_trouble()) {
        tt_record_event(&ev);
        tt_record_tell_sync_point(cpu);
    }
    tt_vcpu_fetch_again(cpu);       /* as a replay does that begins here */
}

void tt_record_resync(void)
{
    tt_record_vcpus_resync();
    if (rec.full_up) {
        rec.full_up = false;
        tt_record_finish(TT_FINISH_STOPPED);
        tt_record_give_up(tt_flight_is_on() ? "the log has reached max-size, and without "
                          "checkpoints the window cannot move" :
                          "the log has reached max-size");
    }
}

/* ---- start and end ---- */

bool tt_record_open(Error **errp)
{
    QemuUUID uuid;

    if (!tt_record_frames_check(errp) || !tt_record_directory(errp)) {
        return false;
    }
    qemu_uuid_generate(&uuid);
    memcpy(tt_session.manifest.uuid, uuid.data, 16);
    if (!tt_writer_open(errp)) {
        return false;
    }
    tt_session.manifest.rules = TT_MANIFEST_RULES |
        (tt_like_hardware ? TT_RULE_LIKE_HARDWARE : 0);
    if (tt_backend->counts_exits) {
        tt_session.manifest.rules |= TT_RULE_KVM;
        tt_session.manifest.features |= TT_FEATURE_EXITS;
    }
    tt_record_frames_note(&tt_session.manifest);
    tt_session.manifest.tlb_entries = 1 << TT_HOOK_TLB_BITS;
    tt_session.manifest.sync_interval = TT_SYNC_INTERVAL;
    return true;
}

bool tt_record_announce(Error **errp)
{
    g_autofree char *path = g_build_filename(tt_session.dir, "manifest", NULL);
    TtManifest *m = &tt_session.manifest;
    TtDiag diag;

    if (!tt_rundir_check(errp)) {
        return false;
    }
    tt_target_identity(first_cpu, m);
    m->n_cpus = tt_vcpus_count();
    m->n_blocks = tt_memory_n_blocks();
    m->blocks = g_new0(TtBlockInfo, m->n_blocks);
    for (unsigned i = 0; i < m->n_blocks; i++) {
        TtBlock *b = tt_memory_block(i);

        g_strlcpy(m->blocks[i].name, b->name, sizeof(m->blocks[i].name));
        m->blocks[i].size_bytes = m->blocks[i].max_bytes = b->size_bytes;
        m->blocks[i].flags = b->flags;
    }
    if (tt_manifest_save(m, path, &diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    return true;
}

/* Where positions are exits there are none: they are made when it is converted. */
static void set_first_digests(void)
{
    bool has_any = !tt_backend->counts_exits;

    tt_record_options.check_interval =
        tt_record_options.check_interval ?: TT_CHECK_INTERVAL;
    tt_now.sync_next = has_any ? tt_next_sync_point(0) : UINT64_MAX;
    tt_now.check_next = has_any ? tt_record_options.check_interval : UINT64_MAX;
}

/* A run begins with all that is in RAM: when that does not fit there is none. */
static bool initial_fits(Error **errp)
{
    if (tt_record_options.max_size_bytes && !tt_record_seal(errp)) {
        return false;
    }
    if (rec.full_up || tt_writer_is_full()) {
        error_setg(errp, "max-size is too small: the log begins with all of RAM, which "
                   "alone is larger: give a larger max-size");
        return false;
    }
    return true;
}

static bool begin(Error **errp)
{
    TtEvent ready = { .kind = TT_EV_CHECK };

    if (tt_record_options.names_reads &&
        !tt_disk_refs_begin(&tt_session.manifest, errp)) {
        return false;
    }
    tt_vcpus_turn_to(tt_vcpus_at(0));       /* every run begins with that one */
    tt_schedule_start();
    tt_session.has_begun = true;
    tt_writer_start();
    tt_session.live = true;
    tt_session.gave_up = false;
    set_first_digests();
    tt_record_time_start();
    tt_inputs_start();
    rec.initial = true;
    if (!tt_guard_start(errp)) {
        return false;
    }
    tt_memory_record_start(first_cpu);
    tt_record_vcpus_begin();
    if (tt_backend->begin) {
        tt_backend->begin(first_cpu);
    }
    rec.initial = false;
    ready.val = tt_vcpus_digest();
    tt_record_event(&ready);
    if (!initial_fits(errp) || !tt_record_announce(errp) ||
        !tt_record_tell_started(first_cpu, errp)) {
        return false;
    }
    tt_gpu_note_all();
    tt_vcpus_flush();
    tt_record_release();        /* the vCPU's first turn looks what changed */
    tt_stall_arm();
    rec.seal_timer = timer_new_ms(QEMU_CLOCK_REALTIME, seal_tick, NULL);
    timer_mod(rec.seal_timer,
              qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + TT_SEAL_MS);
    return true;
}

/* With -tt record on the command line the process ends when this fails: nothing is
 * closed then. */
bool tt_record_start(Error **errp)
{
    bool ok = begin(errp);

    if (!ok) {
        tt_rundir_remove();
    }
    return ok;
}

/* No segment is open afterwards, and the writer thread has ended. */
static void stop_writer(void)
{
    tt_session.live = false;
    tt_disk_refs_end();
    if (tt_writer_is_at_work()) {
        tt_stall_give_up();
        tt_writer_end();                /* it may ask a listener for room */
        tt_record_tell_finishing();
        tt_writer_sync();
        tt_rundir_release();
    }
}

void tt_record_finish(unsigned why)
{
    TtEvent digest = { .kind = TT_EV_DIGEST };
    TtEvent end = { .kind = TT_EV_FINISH, .val = why };
    g_autofree char *lost = NULL;
    const char *trouble;

    tt_trace_end_and_tell();
    tt_guard_stop();
    if (!tt_session.live || tt_session.finished) {
        return;
    }
    tt_record_resync();
    if (!tt_session.live) {
        return;                 /* max-size was reached just here */
    }
    tt_session.finished = true;
    digest.addr = tt_vcpus_digest();
    digest.val = tt_memory_digest();
    tt_record_event(&digest);
    tt_record_event(&end);
    stop_writer();
    rec.gone = !tt_rundir_is_there();
    if (rec.gone) {
        warn_report("tt: the recording in %s is gone: it was deleted or moved "
                    "while it was being made", tt_printable(tt_session.dir));
    }
    lost = tt_rundir_lost();
    rec.whole = !tt_writer_has_failed(&trouble) && !rec.gone && !lost;
    if (lost && !rec.gone) {
        warn_report("tt: the recording in %s is incomplete: '%s' was deleted or "
                    "moved while it was being made",
                    tt_printable(tt_session.dir), lost);
    } else if (!rec.whole && !rec.gone) {
        warn_report("tt: the recording in %s is incomplete: %s",
                    tt_printable(tt_session.dir), trouble);
    }
}

bool tt_record_is_gone(void)
{
    return rec.gone;
}

bool tt_record_is_whole(void)
{
    return rec.whole;
}

void tt_record_close(void)
{
    bool was_run = rec.seal_timer;      /* it started, all of it */

    stop_writer();
    tt_stall_disarm();
    tt_memory_record_stop();
    if (rec.seal_timer) {
        timer_free(rec.seal_timer);
    }
    tt_writer_close();
    if (!was_run) {
        tt_rundir_remove();
    }
    tt_rundir_forget();
    rec = (typeof(rec)) { 0 };
    tt_record_vcpus_forget();
    tt_session.has_begun = false;
    tt_flight_end();
    tt_record_tell_ended();
}

/* ---- what the vCPU and the devices call ---- */

/* With -tt record, QEMU is of no use without the recording. */
static void begin_with_the_vm(void)
{
    Error *err = NULL;

    if (!tt_record_start(&err)) {
        error_reportf_err(err, "-tt record: ");
        exit(1);
    }
}

static void releasing(void)
{
    if (tt_session.live) {
        tt_record_release();
    }
}

static bool prepare(void)
{
    if (tt_session.live) {
        tt_record_resync();
    }
    return true;
}

static uint64_t limit(void)
{
    return tt_now.check_next;
}

static bool boundary(CPUState *cpu)
{
    if (tt_now.pos >= tt_now.sync_next) {
        sync_point(cpu);
        tt_vcpu_arm(cpu);
    } else if (tt_now.pos >= tt_now.check_next) {
        check();
        tt_vcpu_arm(cpu);
    }
    return false;
}

static bool left(CPUState *cpu, int why)
{
    if (why == EXCP_HLT && tt_session.live) {
        tt_record_time(tt_record_event);
    }
    tt_record_tell_turned(cpu);
    return false;
}

static void port_written(uint32_t port, uint32_t val, unsigned size)
{
    tt_record_tell_console(port, val);
}

void tt_record_init(void)
{
    static const TtOps ops = {
        .event = tt_record_event, .answer = tt_record_event, .releasing = releasing,
        .port_written = port_written, .placed = tt_record_landmark, .left = left,
        .was_reset = tt_record_vcpus_was_reset, .begin = begin_with_the_vm,
        .prepare = prepare, .limit = limit, .boundary = boundary, .lost = tt_record_lost,
    };

    tt_ops_register(TT_RECORD, &ops);
}
