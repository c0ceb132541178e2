/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Replayer: feeds the log to the vCPU. No device, timer or file but RUN takes
 * part, and idle time is skipped.
 *
 * Synchronous events are consumed inside the instruction that asks
 * (tt_replay_sync); asynchronous ones between two instructions, at their exact
 * position: most of them outside cpu_exec (tt_replay_prepare), the acceptance of
 * an interrupt inside it, since its delivery may fault (tt_replay_boundary). The
 * vCPU's budget ends at the next of them (tt_replay_limit).
 *
 * What does not fit is a divergence: the VM stops there, with one sentence, and
 * stays inspectable; going back to an earlier position clears it. A log that
 * cannot be read on stops the VM in the same way, and is called by its name.
 */
#include "qemu/osdep.h"
#include "replay/tt-replay.h"
#include "accel-tt/tcg/tt-tcg.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpu.h"
#include "accel-tt/tt-vcpus.h"
#include "accel-tt/x86/tt-target.h"
#include "hw-tt/memory/tt-block.h"
#include "hw-tt/memory/tt-memory.h"
#include "hw-tt/screen/tt-gpu.h"
#include "hw-tt/state/tt-parent.h"
#include "io/tt-base.h"
#include "io/tt-io.h"
#include "log/tt-log.h"
#include "log/tt-logparts.h"
#include "log/tt-sched.h"
#include "monitor-cmds/tt-events.h"
#include "pages/tt-pagestore.h"
#include "replay/tt-stop.h"
#include "run/tt-manifest.h"
#include "run/tt-runlock.h"
#include "session/tt-session.h"
#include "timeline/tt-timeline.h"
#include "travel/tt-retrace.h"
#include "travel/tt-travel.h"
#include "tt/hooks.h"
#include "verify/tt-verify.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "qemu/main-loop.h"
#include "qemu/error-report.h"
#include "exec/cputlb.h"
#include "exec/cpu-common.h"
#include "system/runstate.h"
#include "system/system.h"
#include "system/cpus.h"
#include "chardev/char-fe.h"

TtReplayer tt_replayer;

#define STALL_MAX 100000        /* turns without progress: see tt_replay_left */

static struct {
    TtLogReader *reader;
    TtParent *parent;               /* until the first state is loaded */
    TtSched *sched;
    uint64_t first_pos, end_pos;    /* where the replay began, where it ends */
    uint64_t digests;
    uint64_t last_equal;            /* position */
    uint64_t stall_pos;
    uint64_t synced_pos;            /* the TLB is empty if we are still there */
    unsigned stalls;
} rep;

TtSched *tt_replay_sched(void)
{
    return rep.sched;
}

TtLogReader *tt_replay_reader(void)
{
    return rep.reader;
}

uint64_t tt_replay_end(void)
{
    return rep.end_pos;
}

uint64_t tt_replay_first(void)
{
    return rep.first_pos;
}

void tt_replay_set_end(uint64_t pos)
{
    rep.end_pos = pos;
    tt_replayer.torn = tt_replayer.growing = false;
}

void tt_replay_close(void)
{
    tt_parent_close(rep.parent);
    tt_sched_free(rep.sched);
    tt_log_reader_free(rep.reader);
    memset(&rep, 0, sizeof(rep));
}

uint64_t tt_replay_digests(void)
{
    return rep.digests;
}

uint64_t tt_replay_last_equal(void)
{
    return rep.last_equal <= tt_now.pos ? rep.last_equal : 0;
}

/* ---- divergence and damage ---- */

int tt_replay_failure(void)
{
    return tt_replayer.damaged ? TT_STOP_DAMAGED : TT_STOP_DIVERGED;
}

static void stop_in_trouble(char *why)
{
    g_free(tt_replayer.divergence);
    tt_replayer.divergence = why;
    if (tt_travel_active()) {
        tt_travel_ended(tt_replay_failure());
    } else if (!tt_verify_is_restoring()) {
        tt_stop_vm(tt_replay_failure());
    }
}

void tt_replay_damaged(const TtDiag *diag)
{
    if (tt_replayer.diverged) {
        return;
    }
    tt_replayer.diverged = tt_replayer.damaged = true;
    error_printf("tt: the replay cannot go on from position %" PRIu64 ": %s\n",
                 tt_position(), diag->text);
    stop_in_trouble(g_strdup(diag->text));
}

char *tt_replay_other_release(void)
{
    const char *by = tt_session.manifest.qemu_version;

    return g_strcmp0(by, QEMU_VERSION) ? g_strescape(by ?: "", NULL) : NULL;
}

void tt_replay_report(const char *fmt, ...)
{
    g_autofree char *context = tt_sched_context(rep.sched, 6, 4);
    g_autofree char *release = tt_replay_other_release();
    char *why;
    va_list ap;

    if (tt_replayer.diverged) {
        return;
    }
    tt_replayer.diverged = true;
    va_start(ap, fmt);
    why = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    error_printf("tt: diverged at position %" PRIu64 ": %s\n", tt_position(),
                 why);
    error_printf("tt: the log around it:\n%s", context);
    if (release) {
        error_printf("tt: QEMU %s recorded this run, and this is " QEMU_VERSION
                     ": releases mend instructions, so replay it with that one\n",
                     release);
    }
    tt_event_diverged(tt_position(), why);
    stop_in_trouble(why);
}

/* ---- applying ---- */

static bool has_vcpu(uint64_t index, Error **errp)
{
    if (index >= tt_vcpus_count()) {
        error_setg(errp, "the log speaks of vCPU %" PRIu64 ", and there are %u",
                   index, tt_vcpus_count());
        return false;
    }
    return true;
}

static bool apply(const TtEvent *ev)
{
    Error *err = NULL;
    bool is_applied;

    switch (ev->kind) {
    case TT_EV_BLOCK:
    case TT_EV_RAM:
    case TT_EV_RAM_FILL:
    case TT_EV_MAP:
        tt_memory_apply(ev, &err);
        break;
    case TT_EV_CPU_FLAG:
        if (has_vcpu(ev->cpu, &err)) {
            tt_target_set_flag(tt_vcpus_at(ev->cpu), ev->addr, ev->val);
        }
        break;
    case TT_EV_CPU_STATE:
        if (has_vcpu(ev->cpu, &err) &&
            tt_target_load(tt_vcpus_at(ev->cpu), ev->data, ev->len, &err)) {
            tt_vcpus_at(ev->cpu)->halted = !!ev->val;
        }
        break;
    case TT_EV_CPU_SWITCH:
        if (has_vcpu(ev->addr, &err)) {
            tt_travel_switches(tt_vcpu());
            tt_vcpus_turn_to(tt_vcpus_at(ev->addr));
            current_cpu = tt_vcpu();
        }
        break;
    default:
        error_setg(&err, "event '%s' cannot be applied here",
                   tt_event_kind_name(ev->kind) ?: "unknown");
        break;
    }
    if (err && ev->kind == TT_EV_BLOCK) {   /* memory is short, not another */
        TtDiag diag;

        tt_fail(&diag, TT_ERR_NOMEM, "%s", error_get_pretty(err));
        tt_replay_damaged(&diag);
    } else if (err) {
        tt_replay_report("%s", error_get_pretty(err));
    } else {
        tt_session.events++;
    }
    is_applied = !err;
    error_free(err);
    return is_applied;
}

/* A digest of the log says so. */
static void differs(const char *what, uint64_t seen, uint64_t want)
{
    g_autofree char *why = g_strdup_printf("%s the recorded one (digest "
                                           "%016" PRIx64 ", recorded %016"
                                           PRIx64 ")", what, seen, want);

    if (!tt_verify_goes_on(why)) {
        tt_replay_report("%s", why);
    }
}

static void check(const TtEvent *ev)
{
    uint64_t cpu_digest = tt_vcpus_digest();
    bool full = ev->kind == TT_EV_DIGEST;
    uint64_t want = full ? ev->addr : ev->val;
    uint64_t ram = full ? tt_memory_digest() : 0;

    rep.digests++;
    if (cpu_digest != want) {
        differs("the CPU state is not", cpu_digest, want);
    } else if (full && ram != ev->val) {
        differs("the memory is not", ram, ev->val);
    } else if (!full && ev->addr != tt_now.output_hash) {
        differs("what the guest wrote to its devices is not", tt_now.output_hash,
                ev->addr);
    } else {
        rep.last_equal = tt_now.pos;
    }
}

/* The log is at its end and the vCPU stands there. */
static void reached_end(void)
{
    if (!tt_session.finished) {
        tt_session.finished = true;
        if (tt_replayer.torn) {
            error_printf("tt: the log ends here, at position %" PRIu64
                         ": %s\n", tt_now.pos, tt_replayer.growing ?
                         "the run was still being recorded when this replay began" :
                         "the recorder was cut off");
        }
    }
    if (tt_travel_active()) {
        tt_travel_ended(TT_STOP_END);
    } else {
        tt_stop_vm(TT_STOP_END);
    }
}

/* Annotations at this position; @to_check: up to the first CHECK. False: the end of
 * the run. */
static bool do_annotations(bool to_check)
{
    const TtEvent *ev;
    bool was_check = false;

    while (!tt_replayer.diverged && (ev = tt_sched_peek(rep.sched)) &&
           TT_EV_IS_ANNOTATION(ev->kind) && ev->pos <= tt_now.pos &&
           !(to_check && was_check)) {
        if (ev->pos < tt_now.pos) {
            tt_replay_report("position %" PRIu64 " was passed", ev->pos);
            break;
        }
        if (ev->kind == TT_EV_FINISH) {
            return false;
        }
        if (ev->kind == TT_EV_CHECK || ev->kind == TT_EV_DIGEST) {
            check(ev);
        }
        if (ev->kind == TT_EV_SCREEN) {
            tt_gpu_passed(ev);
        }
        was_check = ev->kind == TT_EV_CHECK;
        if (!tt_replayer.diverged) {
            tt_sched_pop(rep.sched);
        }
    }
    return true;
}

static void fence(void)
{
    tt_now.sync_next = tt_next_sync_point(tt_now.pos);
    tt_vcpus_flush();
    rep.synced_pos = tt_now.pos;
}

/* What is left of the log is at its end: is that where the recording ended? */
static bool ends_in_damage(void)
{
    const TtDiag *damage = tt_log_reader_damage(rep.reader);

    if (damage) {
        tt_replay_damaged(damage);
    }
    return damage;
}

/*
 * Nothing is left of the log, or nothing of it can be read. Up to where the part
 * begins that cannot be read, no event is missing, unless the guest waits for one:
 * the place of the damage is the same, whatever the way to it.
 */
static bool at_end_of_log(bool waits)
{
    TtDiag diag;
    TtStatus s = tt_sched_status(rep.sched, &diag);

    if (s < 0) {
        if (!waits && tt_now.pos < tt_sched_horizon(rep.sched)) {
            return false;
        }
        tt_replay_damaged(&diag);
        return true;
    }
    if (tt_now.pos < rep.end_pos) {
        return false;
    }
    ends_in_damage();
    return true;
}

/* The event at the cursor, before guest code runs. True: go on with the next;
 * false: let the vCPU run. */
static bool do_due(const TtEvent *ev)
{
    if (TT_EV_IS_SYNC(ev->kind) || ev->nested) {
        if (ev->pos <= tt_now.pos) {
            tt_replay_report("the recorded %s did not happen (position %"
                             PRIu64 ")", tt_event_kind_name(ev->kind),
                             ev->pos);
            return true;
        }
        return false;
    }
    if (ev->pos > tt_now.pos) {
        return false;
    }
    if (ev->pos < tt_now.pos) {
        tt_replay_report("position %" PRIu64 " of a recorded %s was passed",
                         ev->pos, tt_event_kind_name(ev->kind));
        return true;
    }
    if (ev->kind == TT_EV_INTR || ev->kind == TT_EV_UNHALT) {
        return false;
    }
    if (apply(ev)) {
        bool is_switch = ev->kind == TT_EV_CPU_SWITCH;

        tt_sched_pop(rep.sched);
        tt_now.pos++;
        if (is_switch) {
            tt_vcpu_plan_step();
        }
    }
    return true;
}

bool tt_replay_prepare(void)
{
    const TtEvent *ev;

    while (!tt_replayer.diverged || tt_travel_active()) {
        if (tt_travel_is_pending()) {
            if (!tt_travel_advance(tt_vcpu())) {
                return false;
            }
            continue;
        }
        if (!do_annotations(false)) {
            reached_end();
            if (!tt_travel_active()) {
                return false;
            }
            continue;
        }
        if (tt_replayer.diverged) {
            continue;
        }
        if (tt_now.pos >= tt_now.step_to) {
            tt_vcpus_stop_for_gdb();
            return false;
        }
        if (tt_now.pos >= tt_now.sync_next) {
            fence();
        }
        if (tt_now.pos == rep.synced_pos) {
            tt_travel_sync_point(tt_vcpu());
        }
        ev = tt_sched_peek(rep.sched);
        if (!ev) {
            if (!at_end_of_log(false)) {
                return true;
            }
            if (tt_replayer.diverged) {
                continue;
            }
            reached_end();
            if (!tt_travel_active()) {
                return false;
            }
            continue;
        }
        if (!do_due(ev)) {
            return true;
        }
    }
    tt_stop_vm(tt_replay_failure());
    return false;
}

uint64_t tt_replay_limit(void)
{
    uint64_t end = MIN(tt_sched_horizon(rep.sched), rep.end_pos);

    return MIN(end, tt_travel_stop_at());
}

static bool is_due(const TtEvent *ev, TtEventKind kind)
{
    return ev && ev->kind == kind && !ev->nested && ev->pos == tt_now.pos &&
        tt_now.pos < tt_travel_stop_at() && tt_now.pos < tt_now.step_to &&
        tt_now.pos < tt_now.sync_next && !tt_replayer.diverged;
}

/*
 * The recorder did its check and its sync point right here, before a pending debug
 * interrupt of the guest's own could move the position on. So do we; then leave
 * cpu_exec, if the guest lets us, for a checkpoint. Whoever is to stand at a sync point
 * stands behind it, as checkpoints do: the fetch may set an accessed bit. So did
 * whoever asked the recorder for a digest here, or ended it: those follow the check
 * in the log, and their turn comes behind the fetch.
 */
static void sync_point_inside(CPUState *cpu)
{
    do_annotations(true);
    fence();
    tt_fetch_again(cpu);
    cpu->exit_request = true;
}

/* So did the recorder between two sync points, and so do we. */
static void check_inside(void)
{
    const TtEvent *ev = tt_sched_peek(rep.sched);

    if (ev && ev->kind == TT_EV_CHECK && ev->pos == tt_now.pos &&
        tt_now.pos <= tt_travel_stop_at() && tt_now.pos <= tt_now.step_to && !tt_replayer.diverged) {
        do_annotations(false);
    }
}

bool tt_replay_boundary(CPUState *cpu)
{
    const TtEvent *ev;
    uint64_t type, vector;

    if (tt_now.pos >= tt_now.sync_next && tt_now.pos <= tt_travel_stop_at() &&
        tt_now.pos <= tt_now.step_to && !tt_replayer.diverged) {
        sync_point_inside(cpu);
        return false;
    }
    check_inside();
    ev = tt_sched_peek(rep.sched);
    if (!is_due(ev, TT_EV_INTR)) {
        return false;
    }
    type = ev->addr;
    vector = ev->val;
    tt_sched_pop(rep.sched);
    tt_session.events++;
    tt_now.pos++;
    tt_vcpu_arm(cpu);
    if (!tt_target_deliver(cpu, type, vector)) {
        tt_replay_report("an interrupt of class %" PRIu64 " cannot be "
                         "delivered here", type);
    }
    cpu->exception_index = -1;
    return true;
}

bool tt_replay_unhalt(CPUState *cpu)
{
    if (!is_due(tt_sched_peek(rep.sched), TT_EV_UNHALT)) {
        return false;
    }
    tt_sched_pop(rep.sched);
    tt_session.events++;
    tt_now.pos++;
    tt_vcpu_arm(cpu);
    return true;
}

bool tt_replay_left(CPUState *cpu, int why)
{
    if (tt_replayer.diverged) {
        return true;
    }
    if (why == EXCP_DEBUG && tt_travel_active()) {
        tt_travel_hit(tt_now.pos, cpu->watchpoint_hit);
        cpu->watchpoint_hit = NULL;
        return true;
    }
    if (why == EXCP_HALTED && tt_now.pos < rep.end_pos &&
        tt_now.pos < tt_travel_stop_at() && tt_now.pos < tt_now.sync_next) {
        if (at_end_of_log(true)) {
            return true;        /* what ends the wait cannot be read */
        }
        tt_replay_report("the guest waits for an interrupt, which the log does "
                         "not have here");
        return true;
    }
    if (tt_now.pos != rep.stall_pos) {
        rep.stall_pos = tt_now.pos;
        rep.stalls = 0;
    } else if (++rep.stalls > STALL_MAX) {
        tt_replay_report("the guest makes no progress here");
        return true;
    }
    return false;
}

/* ---- synchronous events ---- */

static void G_NORETURN leave(void)
{
    tt_vcpu_leave(current_cpu);
}

/* Inside an instruction: a recorder changes a whole vCPU between two turns only. */
static bool may_be_nested(const TtEvent *ev)
{
    return ev->kind != TT_EV_CPU_STATE && ev->kind != TT_EV_CPU_SWITCH;
}

static void apply_nested(void)
{
    const TtEvent *ev;

    while ((ev = tt_sched_peek(rep.sched)) && ev->nested) {
        if (!may_be_nested(ev)) {
            tt_replay_report("the log has event '%s' inside of an instruction",
                             tt_event_kind_name(ev->kind));
            leave();
        }
        if (!apply(ev)) {
            leave();
        }
        tt_sched_pop(rep.sched);
    }
}

void tt_replay_sync(TtEvent *ev)
{
    const TtEvent *want;
    TtDiag diag;

    apply_nested();
    ev->pos = tt_position();
    switch (tt_sched_match(rep.sched, ev, &diag)) {
    case TT_OK:
        break;
    case TT_END:
    case TT_END_TORN:       /* cut inside an instruction with many inputs */
        rep.end_pos = MIN(rep.end_pos, tt_position());
        if (!ends_in_damage()) {
            reached_end();
        }
        leave();
    case TT_ERR_MISMATCH:
        tt_replay_report("%s", diag.text);
        leave();
    default:
        tt_replay_damaged(&diag);
        leave();
    }
    want = tt_sched_peek(rep.sched);
    ev->val = want->val;
    ev->aux = want->aux;
    ev->len = want->len;
    ev->data = want->data;
    if (ev->kind == TT_EV_PIO_OUT || ev->kind == TT_EV_MMIO_ST) {
        tt_fold_output(ev);
    }
    tt_sched_pop(rep.sched);
    tt_session.events++;
}

/* ---- the guest's serial console, from its writes to COM1 ---- */

void tt_replay_console(uint32_t port, uint32_t val, unsigned size)
{
    static CharBackend fe;
    static bool tried, connected;
    static uint8_t line_control;
    uint8_t byte = val;

    if (port == 0x3fb) {
        line_control = val;
    }
    if (port != 0x3f8 || (line_control & 0x80) || tt_travel_active() ||
        tt_past) {
        return;
    }
    if (!tried) {
        tried = true;
        connected = serial_hd(0) &&
            qemu_chr_fe_init(&fe, serial_hd(0), NULL);
    }
    if (connected) {
        qemu_chr_fe_write_all(&fe, &byte, 1);
    }
}

/* ---- start ---- */

static void warn_of_gap(void)
{
    uint32_t oldest, before, behind;

    if (tt_logparts_gap(tt_session.dir, &oldest, &before, &behind)) {
        g_autofree char *path = tt_logparts_path(tt_session.dir, behind - 1);

        warn_report("tt: '%s' is missing: the replay begins behind it", path);
    }
}

bool tt_replay_open(Error **errp)
{
    g_autofree char *manifest = g_build_filename(tt_session.dir, "manifest", NULL);
    TtStatus s;
    TtDiag diag;
    TtIo *io;

    if (tt_manifest_load(manifest, &tt_session.manifest, &diag) != TT_OK ||
        tt_manifest_check_rules(&tt_session.manifest, 1 << TT_HOOK_TLB_BITS,
                                &diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    tt_replayer.growing = tt_runlock_is_held(tt_session.dir);
    if (tt_logparts_open(tt_session.dir, &io, &diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    warn_of_gap();
    s = tt_log_reader_open_part(io, &rep.reader, &diag);
    if (s < 0 && !rep.reader) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    tt_replayer.torn = s == TT_END_TORN;
    if (memcmp(tt_log_reader_uuid(rep.reader), tt_session.manifest.uuid, 16)) {
        error_setg(errp, "manifest and log in '%s' belong to different runs",
                   tt_session.dir);
        return false;
    }
    if (tt_log_reader_n_segments(rep.reader) == 0) {
        error_setg(errp, "the run '%s' is empty: %s", tt_session.dir, tt_replayer.growing ?
                   "nothing is sealed yet, it is being recorded" :
                   "its recorder ended before anything was sealed");
        return false;
    }
    if (tt_sched_new(rep.reader, &rep.sched, &diag) != TT_OK ||
        tt_sched_end_pos(rep.sched, &rep.end_pos, &diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    if (tt_session.manifest.features & TT_FEATURE_PARENT) {
        rep.parent = tt_parent_of(&tt_session.manifest, tt_session.dir, errp);
        return rep.parent;
    }
    return true;
}

bool tt_replay_fill(TtBlock *b, Error **errp)
{
    TtStatus s = rep.parent ? tt_parent_fill(rep.parent, b->name, b->size_bytes,
                                             b->host) : TT_ERR_FORMAT;
    const TtDiag *said;
    TtDiag diag;

    if (s < 0) {
        said = rep.parent ? tt_pagestore_read_error(rep.parent->store) : NULL;
        tt_fail(&diag, s, "RAM of checkpoint %" PRIu32 " of the branch's parent "
                "'%s' cannot be read: %s", tt_session.manifest.parent_checkpoint,
                tt_session.manifest.parent_path, said ? said->text : tt_status_name(s));
        tt_replay_damaged(&diag);       /* the parent's store, not the replay */
        error_setg(errp, "%s", diag.text);
    }
    return s >= 0;
}

/* What the log holds before the first instruction. */
static void load_initial(void)
{
    const TtEvent *ev;

    while ((ev = tt_sched_peek(rep.sched)) && ev->nested && ev->pos == 0) {
        if (!apply(ev)) {
            break;
        }
        tt_sched_pop(rep.sched);
    }
}

void tt_replay_start(CPUState *cpu)
{
    tt_session.live = true;
    tt_now.pos = 0;
    tt_now.sync_next = tt_next_sync_point(0);
    tt_vcpus_turn_to(first_cpu);
    if (!tt_log_reader_is_window(rep.reader)) {     /* else tt-checkpoints.c does */
        load_initial();
    }
    tt_parent_close(rep.parent);
    rep.parent = NULL;
    tt_vcpus_do_work();
    tt_vcpus_flush();
    if (tt_log_reader_damage(rep.reader) && !tt_at_end_exit) {
        warn_report("tt: the run can be replayed up to where its log is "
                    "damaged: %s", tt_log_reader_damage(rep.reader)->text);
    }
    tt_travel_init(cpu);
    rep.first_pos = tt_now.pos;
    if (tt_verify_is_on()) {
        tt_verify_begin();
    } else if (tt_retrace_is_on()) {
        tt_retrace_begin();
    }
}

static void __attribute__((constructor)) swap_with_the_world(void)
{
    tt_world_register(&tt_replayer, NULL, sizeof(tt_replayer));
}
