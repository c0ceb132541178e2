/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checkpointer: decides when the checkpoints of a recording are taken. Every
 * checkpoint-interval seconds, and when the user asks (tt-checkpointer-user.c), the VM
 * stands for as long as it takes to copy the pages that were written since the last one;
 * the checkpoint store (tt-cpstore.c), a thread of its own, stores them.
 *
 *   sync point, and it is time --> leave cpu_exec --+
 *   KVM: it is time, a place for a landmark --------+--> copy pages and state --> store
 *   the user asks --> VM stopped -------------------+
 *
 * Those on time stand at sync points, as those of a replay do, or at landmarks. One job
 * is under way at a time: a slow disk makes checkpoints rarer, not the VM slower. When
 * storing fails for good, the recording goes on without more of them.
 */
#include "qemu/osdep.h"
#include "checkpoint/tt-checkpointer.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-token.h"
#include "accel-tt/tt-vcpus.h"
#include "checkpoint/tt-cpdisks.h"
#include "checkpoint/tt-cpfiles.h"
#include "checkpoint/tt-cplist.h"
#include "checkpoint/tt-cpstore.h"
#include "checkpoint/tt-cptake.h"
#include "hw-tt/memory/tt-memory.h"
#include "hw-tt/state/tt-disks.h"
#include "io/tt-base.h"
#include "pages/tt-page.h"
#include "record/tt-flight.h"
#include "record/tt-record-listener.h"
#include "record/tt-record-options.h"
#include "record/tt-record-vcpus.h"
#include "record/tt-record.h"
#include "record/tt-rundir.h"
#include "run/tt-cpstate.h"
#include "session/tt-checkpoint.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "tt-checkpointer-int.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "qemu/main-loop.h"
#include "qemu/error-report.h"
#include "qemu/timer.h"
#include "system/cpus.h"
#include "system/runstate.h"

/*
 * The part of max-size that checkpoints may take. The log is what a recording
 * consists of, the checkpoints only save time; but without any of them the
 * longest recordings would be the slowest to go about in.
 */
#define SHARE_OF_SIZE   3
#define SHARE_OF_WINDOW 2       /* no window without them */
/* So many in a window, or more. */
#define POINTS_OF_WINDOW 8

/* So many in turn that found no room: there will be none. */
#define OVER_MAX        3

/* So many causes are told, until one is full again. */
#define TOLD_MAX        4

static struct {
    bool on, told;
    uint64_t wanted_pos;            /* leave cpu_exec here; 0: nowhere */
    bool urgent;                    /* take one wherever it is left */
    bool full;                      /* those on time are full ones */
    bool full_comes;                /* one is about to be taken */
    bool full_failed;               /* the next one is none, then they are again */
    bool keeps_full;                /* one on time waits for its disks */
    GPtrArray *told_full;           /* why those since the last full one were none */
    bool reserved;                  /* for the user's, just now: others wait */
    uint64_t share;                 /* of max-size */
} kp;

static void stop_keeping(const char *why)
{
    kp.on = false;
    if (!kp.told) {
        kp.told = true;
        warn_report("tt: the recording goes on without further checkpoints%s: %s",
                    tt_flight_is_on() ? ", and its window no longer moves" : "", why);
    }
}

bool tt_checkpointer_take(CPUState *cpu, uint32_t flags, TtBytes full, uint32_t *job)
{
    TtStatus s = tt_cptake(cpu, flags, full, job);

    if (s != TT_OK) {
        stop_keeping(tt_status_name(s));
    }
    return s == TT_OK;
}

void tt_checkpointer_reserve(bool on)
{
    qatomic_set(&kp.reserved, on);
}

bool tt_checkpointer_is_reserved(void)
{
    return qatomic_read(&kp.reserved);
}

/* Tasks of the user's that wait for the store. BQL; they outlive a recording. */
static int n_wanted;

void tt_checkpointer_is_wanted(int change)
{
    n_wanted += change;
}

static bool is_the_users(void)
{
    return n_wanted || tt_checkpointer_is_reserved();
}

void tt_checkpointer_drop_newest(void)
{
    g_autoptr(GArray) all = tt_cplist_list();
    TtNodeId newest = tt_cpfiles_base();
    unsigned n_over = tt_cpfiles_is_over();

    if (all->len &&
        tt_cptake_rebase(newest, g_array_index(all, TtCheckpointDesc, all->len - 1).id)) {
        tt_cpstore_delete(newest, false);
    }
    if (n_over >= OVER_MAX) {
        const char *why;

        tt_cpfiles_has_failed(&why);
        stop_keeping(why);
    }
}

/* What is left of max-size is for the log. */
static void limit_window(void)
{
    if (tt_flight_is_on()) {
        tt_flight_limit_log(tt_record_options.max_size_bytes);
        tt_record_limit_segments(tt_record_options.max_size_bytes);
    }
}

bool tt_checkpointer_open_store(TtDiag *diag)
{
    uint64_t share = DIV_ROUND_UP(tt_record_options.max_size_bytes, tt_flight_is_on() ?
                                  SHARE_OF_WINDOW : SHARE_OF_SIZE);

    if (share && tt_record_bytes() + share > tt_record_options.max_size_bytes) {
        tt_fail(diag, TT_ERR_NOSPACE, "max-size leaves no room for checkpoints, because "
                "the log takes most of it: record with a larger max-size");
        return false;
    }
    if (!tt_rundir_is_ours()) {
        tt_fail(diag, TT_ERR_IO, "'%s' was deleted or moved",
                tt_printable(tt_session.dir));
        return false;
    }
    if (!tt_cpstore_open(share, diag)) {
        return false;
    }
    tt_rundir_has_points(true);
    kp.share = share;
    tt_record_options.max_size_bytes -= share;     /* the rest is for the log */
    limit_window();
    return true;
}

static void give_share_back(void)
{
    if (!tt_cpfiles_count()) {
        tt_record_options.max_size_bytes += kp.share;
        limit_window();
        kp.share = 0;
    }
}

/* Trouble is told from here, since the thread must not wait for the BQL. */
static bool is_in_trouble(void)
{
    const char *why;

    if (tt_cpfiles_has_failed(&why)) {
        stop_keeping(why);
        give_share_back();
        return true;
    }
    why = tt_cpfiles_problem();
    if (why) {
        warn_report("tt: a checkpoint could not be stored; the recording goes on and "
                    "tries again with the next one: %s", why);
    }
    if (tt_cpfiles_has_shrunk()) {
        warn_report("tt: the disk is full: the window was made shorter and begins at "
                    "position %" PRIu64, tt_flight_start());
    }
    if (tt_cpfiles_is_over()) {
        tt_checkpointer_drop_newest();
        return true;
    }
    return false;
}

static bool is_due(void)
{
    int64_t interval = tt_record_options.checkpoint_interval_ms;

    if (tt_record_options.window_ns) {
        interval = MIN(interval, tt_record_options.window_ns / SCALE_MS / POINTS_OF_WINDOW);
    }
    return qemu_clock_get_ms(QEMU_CLOCK_REALTIME) - tt_cptake_ms() >= interval ||
        tt_flight_wants_point();
}

static bool is_on(void)
{
    return kp.on;
}

/* A cause that stays, or comes again before there was a full one, is told once; and no more
 * than a few. */
static void no_full(const char *why)
{
    kp.told_full = kp.told_full ?: g_ptr_array_new_with_free_func(g_free);
    if (kp.told_full->len < TOLD_MAX &&
        !g_ptr_array_find_with_equal_func(kp.told_full, why, g_str_equal, NULL)) {
        warn_report("tt: no branch can start from checkpoints that are made while this "
                    "lasts: %s", why);
        g_ptr_array_add(kp.told_full, g_strdup(why));
    }
}

static void forget_told(void)
{
    if (kp.told_full) {
        g_ptr_array_free(g_steal_pointer(&kp.told_full), true);
    }
}

/* One on time has its disks, or not. */
static void full_is_kept(const char *problem)
{
    if (!kp.keeps_full) {
        return;
    }
    kp.keeps_full = false;
    if (problem) {
        no_full(problem);
    } else {
        forget_told();
    }
}

/* Main thread: here the devices can be stopped. Meanwhile the user may have done so. */
static void take_full(void *opaque)
{
    Error *err = NULL;

    kp.full_comes = false;
    if (!kp.on || is_the_users() || !tt_session.live || tt_past || !runstate_is_running() ||
        tt_cpstore_is_busy() || is_in_trouble()) {
        return;                     /* a later sync point */
    }
    kp.keeps_full = true;
    if (!tt_checkpointer_take_full(&err)) {
        kp.keeps_full = false;
        kp.full_failed = true;
        no_full(error_get_pretty(err));
        error_free(err);
    } else if (!tt_disks_are_pending()) {
        full_is_kept(tt_disks_problem());
    }
}

static void disks_are_kept(const char *problem)
{
    full_is_kept(problem);
    if (tt_cpdisks_is_over()) {
        warn_report("tt: what full checkpoints keep of the disks is more than the share of "
                    "max-size for checkpoints: it is kept for those that you asked for, "
                    "for branches, and for the newest %d", TT_CPDISKS_STAY);
    }
    tt_cpdisks_collect();           /* and counts: the store asks for it */
    tt_cpstore_let_go(problem);
}

static void sync_point(CPUState *cpu)
{
    uint32_t job;

    if (!kp.on || is_the_users() || tt_cpstore_is_busy() || is_in_trouble() ||
        !is_due()) {
        return;
    }
    if (!tt_cptake_has_room(&job) && job) {
        return;                     /* a later sync point */
    }
    if (kp.full && !kp.full_failed) {
        if (!kp.full_comes) {
            /* Not in that of the disks, which runs in a command that waits for them. */
            aio_bh_schedule_oneshot(iohandler_get_aio_context(), take_full, NULL);
        }
        kp.full_comes = true;
        return;
    }
    kp.wanted_pos = tt_now.pos;
    cpu->exit_request = true;
}

static void tell(void)
{
    if (tt_cpstore_is_open() && !tt_cpstore_is_busy()) {
        is_in_trouble();
    }
}

/*
 * A guest whose devices bring in much between two sync points would fill the window's
 * limit before there is a checkpoint with which it can move.
 */
static void urge(void)
{
    uint32_t job;

    if (!kp.on || kp.urgent || is_the_users() ||
        !(tt_flight_wants_point() || tt_record_is_tight()) ||
        tt_cpstore_is_busy() || is_in_trouble() || (!tt_cptake_has_room(&job) && job)) {
        return;
    }
    kp.urgent = true;
    tt_token_kick();
}

/* A checkpoint moves the window when it is stored, and the log up to it, too. */
static void make_way(void)
{
    Error *unused = NULL;

    if (!tt_record_seal(&unused)) {
        error_free(unused);             /* and is said elsewhere */
        return;
    }
    tt_cpstore_wait();
    if (!is_in_trouble()) {
        tt_cpstore_move();
        tt_cpstore_wait();
    }
    kp.urgent = false;
}

/* As where the user asks, but the VM runs: we are its thread. */
static void take_urgently(CPUState *cpu)
{
    kp.urgent = false;
    if (kp.on && !kp.reserved && tt_session.live && tt_now.pos > tt_cptake_pos() &&
        !tt_cpstore_is_busy() &&
        tt_checkpointer_take(cpu, 0, (TtBytes) { 0 }, &(uint32_t) { 0 })) {
        tt_record_renew();
        if (tt_record_is_tight()) {
            make_way();
        }
    }
}

/* Under KVM: a replay finds a landmark again, and begins with what follows it. */
static void take_at_landmark(CPUState *cpu)
{
    uint32_t job;

    if (!kp.on || !tt_session.live || !is_due() || is_the_users() ||
        tt_cpstore_is_busy() || is_in_trouble() || (!tt_cptake_has_room(&job) && job) ||
        !tt_backend->place(cpu)) {
        return;
    }
    tt_checkpointer_take(cpu, 0, (TtBytes) { 0 }, &job);
    tt_record_renew();
    tt_backend->renew(cpu);
}

static void turned(CPUState *cpu)
{
    if (tt_backend->counts_exits) {
        take_at_landmark(cpu);
        return;
    }
    if (kp.urgent) {
        take_urgently(cpu);
        return;
    }
    if (kp.wanted_pos) {
        if (kp.wanted_pos == tt_now.pos && kp.on && !kp.reserved && tt_session.live &&
            !tt_cpstore_is_busy()) {
            tt_checkpointer_take(cpu, 0, (TtBytes) { 0 }, &(uint32_t) { 0 });
            kp.full_failed = false;
        }
        kp.wanted_pos = 0;          /* an interrupt came first, or tt save: next sync point */
    }
}

/* ---- start and end ---- */

/* A window begins at a checkpoint: if there is no room for the first one there never
 * is a window. Better said now than when the log is full. */
static bool has_first(Error **errp)
{
    const char *why;

    if (!tt_flight_is_on() || !kp.share) {
        return true;
    }
    tt_cpstore_wait();
    if (!tt_cpfiles_has_failed(&why)) {
        return true;
    }
    kp.told = true;                 /* here, and in these words */
    error_setg(errp, "max-size is too small for a window (last=): its first checkpoint, "
               "with all of RAM, does not fit into the %" PRIu64 " bytes for "
               "checkpoints, which are half of max-size: give a larger max-size",
               kp.share);
    return false;
}

/* The first one is the initial state, like the log's own: all else builds on it. */
static bool start(CPUState *cpu, Error **errp)
{
    TtDiag diag;

    forget_told();
    memset(&kp, 0, sizeof(kp));
    tt_cpstore_forget();
    tt_cptake_begin();
    if (!tt_record_options.checkpoint_interval_ms) {
        return true;
    }
    if (!tt_checkpointer_open_store(&diag)) {
        if (tt_flight_is_on()) {
            error_setg(errp, "a window (last=) begins at a checkpoint, and none can be "
                       "made: %s", diag.text);
            return false;
        }
        warn_report("tt: the recording makes no checkpoints: %s", diag.text);
        return true;
    }
    kp.on = true;
    kp.full = tt_record_options.full;
    tt_memory_held_dirty();
    return !tt_checkpointer_take(cpu, 0, (TtBytes) { 0 }, &(uint32_t) { 0 }) ||
        has_first(errp);
}

bool tt_checkpointer_is_busy(void)
{
    return tt_cpstore_is_open() && tt_cpstore_is_busy();
}

void tt_checkpointer_settle(void)
{
    tt_cpstore_wait();
}

static void finish(void)
{
    if (!tt_cpstore_is_open()) {
        return;
    }
    tt_checkpointer_settle();
    is_in_trouble();
    kp.on = false;
    tt_cpstore_close();
    tt_disks_settle();
    tt_cpdisks_collect();
}

/* A log that is near its limit waits for the last one, which may let it begin later. Not
 * if that one waits for its disks: to wait for these runs devices, and this is in the
 * middle of an event. The limit is passed for so long. */
static void log_grew(bool is_tight)
{
    if (is_tight && !tt_cpstore_is_held()) {
        tt_cpstore_wait();
    }
    urge();
}

void tt_checkpointer_init(void)
{
    static const TtRecordListener listener = {
        .started = start, .sync_point = sync_point, .turned = turned,
        .grew = log_grew, .tell = tell, .finishing = finish,
        .make_room = tt_cpstore_make_room, .has_checkpoints = is_on,
    };

    tt_record_listen(&listener);
    tt_disks_on_kept(disks_are_kept);
}
