/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checkpointer: takes the checkpoints of a recording. Every checkpoint-interval
 * seconds, and when the user asks, the VM stands for as long as it takes to copy
 * the pages that were written since the last one; the checkpoint store (tt-cpstore.c), a
 * thread of its own, stores them.
 *
 *   sync point, and it is time --> leave cpu_exec --+
 *                                              +--> copy pages and state --> checkpoint store
 *   the user asks --> VM stopped --------------+
 *
 * Those on time stand at sync points, as those of a replay do (tt-checkpoints.c). Where the
 * user asks the TLB is emptied and the vCPU's state logged right behind the
 * checkpoint, so that a replay which comes by empties its own, too. One job is
 * under way at a time: a slow disk makes checkpoints rarer, not the VM slower.
 * When storing fails for good, the recording goes on without more of them.
 */
#include "qemu/osdep.h"
#include "checkpoint/tt-checkpointer.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-token.h"
#include "accel-tt/tt-vcpus.h"
#include "checkpoint/tt-cplist.h"
#include "checkpoint/tt-cpstore.h"
#include "control/tt-mark.h"
#include "hw-tt/memory/tt-memory.h"
#include "hw-tt/screen/tt-gpu.h"
#include "hw-tt/state/tt-full.h"
#include "io/tt-base.h"
#include "pages/tt-pagestore.h"
#include "record/tt-flight.h"
#include "record/tt-record-options.h"
#include "record/tt-record.h"
#include "record/tt-rundir.h"
#include "run/tt-cpstate.h"
#include "run/tt-fullstate.h"
#include "run/tt-runstore.h"
#include "session/tt-checkpoint.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "qemu/main-loop.h"
#include "qemu/error-report.h"
#include "qemu/timer.h"
#include "system/cpus.h"
#include "system/runstate.h"

/* Pages that can be copied aside; more, and those of the first checkpoint, are
 * added while the VM stands. New memory for 30000 pages took 200 ms of CPU time
 * (2026-11), so it is never made in a pause. */
#define BATCH_PAGES_MAX (256u << 10)    /* 1 GiB */

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

static struct {
    bool on, told;
    uint64_t pos;                   /* of the last one */
    int64_t last_ms;                /* when it was taken */
    uint64_t wanted_pos;            /* leave cpu_exec here; 0: nowhere */
    bool urgent;                    /* take one wherever it is left */
    bool adding;                    /* the user's, just now: what is logged urges none */
    size_t prepared_for;            /* pages, since the last one was taken */
    uint64_t share;                 /* of max-size */
    int64_t start_ns;
    TtCheckpointerStats stats;            /* written with the BQL, read without */
} kp;

/* ---- taking one ---- */

/* @full: what makes it a full one, or nothing. */
static const void *save_state(CPUState *cpu, TtBytes full, size_t *len)
{
    GByteArray *regs = tt_vcpus_save(), *blocks = tt_memory_blocks_save();
    TtMapState map;
    TtCpState s = {
        .halted = cpu->halted, .output_hash = tt_now.output_hash,
        .events = tt_session.events,
        .blocks = { blocks->data, blocks->len },
        .cpu = { regs->data, regs->len },
        .full = full,
    };
    uint32_t n;
    uint8_t *bytes;

    tt_record_place(&s.segment, &s.index);
    tt_flight_taking(s.segment);
    tt_memory_map_save(&map);
    s.n_blocks = map.n_blocks;
    for (unsigned i = 0; i < TT_CPSTATE_SPACES; i++) {
        if (map.sections[i]) {
            s.map[i] = (TtBytes) { map.sections[i]->data,
                                   map.sections[i]->len };
        }
    }
    bytes = tt_cpstate_encode(&s, &n);
    tt_memory_map_free(&map);
    g_byte_array_unref(regs);
    g_byte_array_unref(blocks);
    *len = n;
    return bytes;
}

/*
 * Is there room for what is dirty now? If not, it is being made, with half more,
 * since the VM may run meanwhile; or there cannot be: then *@job is 0.
 */
static bool has_room(uint32_t *job)
{
    size_t n = tt_memory_count_dirty();

    *job = 0;
    if (!tt_cpstore_base() || n <= tt_cpstore_room()) {
        return true;
    }
    if (n <= BATCH_PAGES_MAX && n > kp.prepared_for) {
        kp.prepared_for = MIN(n + n / 2, BATCH_PAGES_MAX);
        *job = tt_cpstore_prepare(kp.prepared_for);
    }
    return false;
}

/* Copies what is dirty aside, or adds it at once where that cannot be. */
static TtStatus collect(const TtCheckpointMeta *meta, bool *has_batch,
                        size_t *n)
{
    g_autofree uint64_t *dirty = tt_memory_collect_dirty(n);
    TtNodeId base = tt_cpstore_base();
    TtStatus s;

    *has_batch = base && tt_cpstore_batch() && *n <= tt_cpstore_room();
    if (!*has_batch) {
        TtPageStore *store = tt_cpstore_take();

        s = !store ? TT_ERR_NOSPACE :
            tt_pagestore_add_checkpoint(store, tt_now.pos, base, dirty, *n,
                                        tt_memory_page, NULL, meta, &base);
        tt_cpstore_release();
        if (s == TT_OK) {
            tt_cpstore_set_base(base);
        }
        return s;
    }
    for (size_t i = 0; i < *n; i++) {
        tt_pagebatch_put(tt_cpstore_batch(), dirty[i],
                         tt_memory_page(NULL, dirty[i]));
    }
    return TT_OK;
}

static void stop_keeping(const char *why)
{
    kp.on = false;
    if (!kp.told) {
        kp.told = true;
        warn_report("tt: the recording goes on without more checkpoints%s: %s",
                    tt_flight_is_on() ? ", and its window does not move any "
                    "more" : "", why);
    }
}

static void note_pause(int64_t ns, size_t pages)
{
    TtCheckpointerStats *st = &kp.stats;

    qatomic_set(&st->pause_ns_last, ns);
    qatomic_set(&st->pause_pages_last, pages);
    if (ns > st->pause_ns_most) {
        qatomic_set(&st->pause_ns_most, ns);
        qatomic_set(&st->pause_pages_most, pages);
    }
}

/* False: storing failed, and the checkpointer is off. *@job: see tt-cpstore.h. */
static bool take(CPUState *cpu, uint32_t flags, TtBytes full, uint32_t *job)
{
    int64_t began = qemu_clock_get_ns(QEMU_CLOCK_REALTIME);
    TtCheckpointMeta meta = {
        .flags = flags, .host_ns = began - kp.start_ns,
    };
    bool has_batch;
    size_t n;
    TtStatus s;

    meta.blob = save_state(cpu, full, &meta.blob_bytes);
    s = collect(&meta, &has_batch, &n);
    if (s != TT_OK) {
        g_free((void *)meta.blob);
        stop_keeping(tt_status_name(s));
        return false;
    }
    kp.pos = tt_now.pos;
    kp.prepared_for = 0;
    kp.last_ms = began / SCALE_MS;
    *job = tt_cpstore_add(tt_now.pos, has_batch, &meta);
    tt_gpu_note_all();              /* whoever begins there reads it first */
    if (kp.stats.taken) {
        note_pause(qemu_clock_get_ns(QEMU_CLOCK_REALTIME) - began, n);
    }
    qatomic_set(&kp.stats.taken, kp.stats.taken + 1);
    return true;
}

/* RAM comes from @from: say that it comes from @to, which is before it. */
static bool rebase(TtNodeId from, TtNodeId to)
{
    TtPageStore *store = tt_cpstore_take();
    g_autofree uint64_t *pages = NULL;
    size_t n;

    if (store) {
        pages = tt_pagestore_rebase(store, from, to, &n);
    }
    tt_cpstore_release();
    for (size_t k = 0; pages && k < n; k++) {
        tt_memory_mark_dirty(pages[k]);
    }
    if (pages) {
        tt_cpstore_set_base(to);
    }
    return pages;
}

/* It has no room under max-size. */
static void drop_newest(void)
{
    g_autoptr(GArray) all = tt_cplist_list();
    TtNodeId newest = tt_cpstore_base();
    unsigned n_over = tt_cpstore_is_over();

    if (all->len &&
        rebase(newest, g_array_index(all, TtCheckpointDesc, all->len - 1).id)) {
        tt_cpstore_delete(newest, false);
    }
    if (n_over >= OVER_MAX) {
        const char *why;

        tt_cpstore_has_failed(&why);
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

static bool open_store(TtDiag *diag)
{
    uint64_t share = DIV_ROUND_UP(tt_record_options.max_size_bytes, tt_flight_is_on() ?
                                  SHARE_OF_WINDOW : SHARE_OF_SIZE);

    if (share && tt_record_bytes() + share > tt_record_options.max_size_bytes) {
        tt_fail(diag, TT_ERR_NOSPACE, "max-size leaves no room for checkpoints: "
                "the log has most of it");
        return false;
    }
    if (!tt_rundir_is_ours()) {
        tt_fail(diag, TT_ERR_IO, "'%s' was deleted, or moved away",
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
    if (!tt_cpstore_count()) {
        tt_record_options.max_size_bytes += kp.share;
        limit_window();
        kp.share = 0;
    }
}

/* Trouble is told from here, since the thread must not wait for the BQL. */
static bool is_in_trouble(void)
{
    const char *why;

    if (tt_cpstore_has_failed(&why)) {
        stop_keeping(why);
        give_share_back();
        return true;
    }
    why = tt_cpstore_problem();
    if (why) {
        warn_report("tt: a checkpoint cannot be stored, the recording goes on "
                    "and tries again with the next: %s", why);
    }
    if (tt_cpstore_has_shrunk()) {
        warn_report("tt: the disk is full: the window was made shorter and begins at "
                    "position %" PRIu64, tt_flight_start());
    }
    if (tt_cpstore_is_over()) {
        drop_newest();
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
    return qemu_clock_get_ms(QEMU_CLOCK_REALTIME) - kp.last_ms >= interval ||
        tt_flight_wants_point();
}

bool tt_checkpointer_is_on(void)
{
    return kp.on;
}

void tt_checkpointer_sync_point(CPUState *cpu)
{
    uint32_t job;

    if (!kp.on || tt_cpstore_is_busy() || is_in_trouble() || !is_due()) {
        return;
    }
    if (!has_room(&job) && job) {
        return;                     /* a later sync point */
    }
    kp.wanted_pos = tt_now.pos;
    cpu->exit_request = true;
}

void tt_checkpointer_tell(void)
{
    if (tt_cpstore_is_open() && !tt_cpstore_is_busy()) {
        is_in_trouble();
    }
}

/*
 * A guest whose devices bring in much between two sync points would fill the window's
 * limit before there is a checkpoint with which it can move.
 */
void tt_checkpointer_urge(void)
{
    uint32_t job;

    if (!kp.on || kp.urgent || kp.adding ||
        !(tt_flight_wants_point() || tt_record_is_tight()) ||
        tt_cpstore_is_busy() || is_in_trouble() || (!has_room(&job) && job)) {
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
    if (kp.on && tt_session.live && tt_now.pos > kp.pos && !tt_cpstore_is_busy() &&
        take(cpu, 0, (TtBytes) { 0 }, &(uint32_t) { 0 })) {
        tt_record_renew();
        if (tt_record_is_tight()) {
            make_way();
        }
    }
}

void tt_checkpointer_turn(CPUState *cpu)
{
    if (kp.urgent) {
        take_urgently(cpu);
        return;
    }
    if (kp.wanted_pos) {
        if (kp.wanted_pos == tt_now.pos && kp.on && tt_session.live && !tt_cpstore_is_busy()) {
            take(cpu, 0, (TtBytes) { 0 }, &(uint32_t) { 0 });
        }
        kp.wanted_pos = 0;          /* an interrupt came first, or tt save: next sync point */
    }
}

/* ---- when the user asks ---- */

/* Nothing was kept so far: this is the first one. */
static bool begin_late(Error **errp)
{
    TtDiag diag;

    if (tt_cpstore_is_open()) {
        return true;
    }
    if (!open_store(&diag)) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    tt_memory_all_dirty();
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
    if (tt_cpstore_is_over()) {
        drop_newest();
        tt_cpstore_wait();
    }
    if (tt_cpstore_is_open() && tt_cpstore_has_failed(&why)) {
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
    if (tt_session.live && tt_cpstore_base() && tt_now.pos <= kp.pos) {
        tt_record_renew();           /* there is one: make another place */
    }
    if (!tt_is_live(errp) || (name && !tt_mark_add(name, &pos, errp))) {
        return false;
    }
    ok = take(cpu, flags, full ? tt_full_bytes(full) : (TtBytes) { 0 }, job);
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
        w = tt_full_save(name, full, errp);
        if (!w) {
            return false;
        }
    }
    kp.adding = true;
    ok = add_here(first_cpu, name, w, job, errp);
    kp.adding = false;
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
    if (!has_room(&job) && job) {
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
    } else if (id == tt_cpstore_base() && !rebase(id, points[i - 1].id)) {
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
    if (!tt_cpstore_has_failed(&why)) {
        return true;
    }
    error_setg(errp, "max-size is too small for a window (last): its first "
               "checkpoint, with all that is in RAM now, does not fit into the %"
               PRIu64 " bytes, half of it, that are for checkpoints: give more",
               kp.share);
    return false;
}

/* The first one is the initial state, like the log's own: all else builds on it. */
bool tt_checkpointer_start(CPUState *cpu, Error **errp)
{
    TtDiag diag;

    memset(&kp, 0, sizeof(kp));
    tt_cpstore_forget();
    kp.start_ns = qemu_clock_get_ns(QEMU_CLOCK_REALTIME);
    if (!tt_record_options.checkpoint_interval_ms) {
        return true;
    }
    if (!open_store(&diag)) {
        if (tt_flight_is_on()) {
            error_setg(errp, "a window (last) begins at a checkpoint, and there can "
                       "be none: %s", diag.text);
            return false;
        }
        warn_report("tt: the recording makes no checkpoints: %s", diag.text);
        return true;
    }
    kp.on = true;
    tt_memory_all_dirty();
    return !take(cpu, 0, (TtBytes) { 0 }, &(uint32_t) { 0 }) ||
        has_first(errp);
}

void tt_checkpointer_settle(void)
{
    tt_cpstore_wait();
}

void tt_checkpointer_finish(void)
{
    if (!tt_cpstore_is_open()) {
        return;
    }
    tt_checkpointer_settle();
    is_in_trouble();
    kp.on = false;
    tt_cpstore_close();
}

bool tt_checkpointer_make_room(void *opaque)
{
    return tt_cpstore_make_room();
}

TtCheckpointerStats tt_checkpointer_stats(void)
{
    TtCheckpointerStats *st = &kp.stats;

    return (TtCheckpointerStats) {
        .count = tt_cpstore_count(),
        .bytes = tt_cpstore_bytes(),
        .taken = qatomic_read(&st->taken),
        .pause_ns_last = qatomic_read(&st->pause_ns_last),
        .pause_pages_last = qatomic_read(&st->pause_pages_last),
        .pause_ns_most = qatomic_read(&st->pause_ns_most),
        .pause_pages_most = qatomic_read(&st->pause_pages_most),
    };
}
