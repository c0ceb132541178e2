/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Travel: checkpoints of a replay, and movements between positions. The plan is
 * tt/timeline.h's, RAM is in tt/pagestore.h; this file carries out the steps in
 * the vCPU thread, between two turns of it.
 *
 * Checkpoints are taken at fences only: there the TLB is empty in the recording
 * as well, so that a restored VM, whose TLB is empty too, goes on exactly
 * (hazard 1). Those of the recorder are in the run directory and stay there as
 * they are; what a replay adds lives in its memory.
 */
#include "tt/engine.h"
#include "tt/pagestore.h"
#include "tt/timeline.h"
#include "qemu/main-loop.h"
#include "qemu/error-report.h"
#include "qemu/timer.h"
#include "exec/cputlb.h"
#include "system/runstate.h"
#include "system/system.h"

/* Replay time between checkpoints: what a short movement may re-execute. Where
 * they are dear (many pages change), they may take a twentieth of the time. */
#define TT_CHECKPOINT_MS 100
#define TT_CHECKPOINT_SHARE 20

/* A movement that lasts longer says how far it is, so often. */
#define TT_PROGRESS_AFTER_MS 1000
#define TT_PROGRESS_EVERY_MS 250

typedef struct Checkpoint {
    uint64_t pos;
    TtNodeId id;                    /* in the page store and in the timeline */
    bool pinned;
    bool stored;                    /* by the recorder: never thinned */
    bool loaded;                    /* what follows is there */
    TtCursor cursor;
    TtMapState map;
    GByteArray *cpu_state;
    int halted;
    uint64_t output_hash, events;
} Checkpoint;

typedef struct Found {          /* the last hit of a search */
    uint64_t pos;
    bool is_watch;
    vaddr addr, len;
    int flags;
} Found;

static struct {
    TtTimeline *timeline;
    TtPageStore *pages;
    GHashTable *checkpoints;        /* TtCheckpointId -> Checkpoint */
    bool has_files;                 /* the store is the recorder's */
    TtNodeId base;                  /* RAM = node base + dirty pages */
    int64_t last_ms, last_cost_ms;  /* of the newest checkpoint */
    int64_t began_ms, told_ms;
    uint64_t pin_at;                /* take a pinned one from here on; 0: none */
    TtCheckpointId pinned_id;       /* what came of it */
    bool pinning;
    bool active, interrupted, blind;
    bool stepping_over;             /* a hit: one position, stops off */
    bool pending;                   /* the next step has not been taken */
    bool straight;                  /* no plan: run to `origin`, skip nothing */
    bool reverse_step;
    int ended;                      /* why the last run could not go on */
    uint64_t origin, back;          /* of a reverse step */
    uint64_t stop_at;
    uint64_t run_from;              /* where the present run began */
    uint64_t hit_pos;               /* of the stop that is stepped over */
    Found found;
    TtTravelDone *done;
    void *opaque;
} tr = { .stop_at = UINT64_MAX };

bool tt_travel_active(void)
{
    return tr.active;
}

bool tt_travel_is_blind(void)
{
    return tr.active && tr.blind;
}

bool tt_travel_steps_over(void)
{
    return tr.active && tr.stepping_over;
}

uint64_t tt_travel_stop_at(void)
{
    /*
     * The same bound for the whole turn: an interrupt or an exception right
     * after the hit must not let the turn go on with the stops off.
     */
    return tr.stepping_over ? MIN(tr.stop_at, tr.hit_pos + 1) : tr.stop_at;
}

unsigned tt_travel_checkpoints(void)
{
    return tr.timeline ? tt_timeline_count(tr.timeline) : 0;
}

/* ---- checkpoints ---- */

static Checkpoint *find_checkpoint(TtCheckpointId id)
{
    return g_hash_table_lookup(tr.checkpoints, GUINT_TO_POINTER(id));
}

static void free_checkpoint(Checkpoint *c)
{
    if (c->loaded) {
        tt_memory_map_free(&c->map);
        g_byte_array_unref(c->cpu_state);
    }
    g_free(c);
}

/* RAM comes from @c: say that it comes from the checkpoint before. */
static bool rebase(Checkpoint *c)
{
    TtCheckpointId id = tt_timeline_find(tr.timeline, c->pos - 1, NULL);
    g_autofree uint64_t *pages = NULL;
    size_t n;

    pages = tt_pagestore_rebase(tr.pages, c->id, id, &n);
    if (!pages) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        tt_memory_mark_dirty(pages[i]);
    }
    tr.base = id;
    return true;
}

/* Not the first one. False: memory is short. */
static bool drop_checkpoint(TtCheckpointId id)
{
    Checkpoint *c = find_checkpoint(id);

    assert(c && c->pos);
    if (c->id == tr.base && !rebase(c)) {
        return false;
    }
    tt_timeline_remove(tr.timeline, id);
    tt_pagestore_delete(tr.pages, c->id);
    g_hash_table_remove(tr.checkpoints, GUINT_TO_POINTER(id));
    free_checkpoint(c);
    return true;
}

/* Gives up the checkpoint that is missed least, but not @keep; false: none. */
static bool thin(TtNodeId keep)
{
    TtCheckpointId id = tt_timeline_thin(tr.timeline, tt.pos);
    Checkpoint *c = id ? find_checkpoint(id) : NULL;

    return c && c->id != keep && drop_checkpoint(id);
}

/* Memory that this replay's own checkpoints take. */
static uint64_t bytes_in_use(void)
{
    return tr.has_files ? tt_pagestore_stats(tr.pages).pending_bytes :
        tt_pagestore_bytes(tr.pages);
}

static void make_room(void)
{
    while (bytes_in_use() > tt.checkpoint_bytes) {
        if (!thin(0)) {
            break;
        }
    }
}

/* The state that is not RAM, as it is now. */
static void note_state(CPUState *cpu, Checkpoint *c)
{
    c->cursor = tt_sched_tell(tt_replay_sched());
    c->cpu_state = tt_target_save(cpu);
    c->halted = cpu->halted;
    c->output_hash = tt.output_hash;
    c->events = tt.events;
    tt_memory_map_save(&c->map);
    c->loaded = true;
}

static Checkpoint *enter(TtNodeId id, uint64_t pos, bool pinned, bool stored)
{
    Checkpoint *c = g_new0(Checkpoint, 1);

    c->id = id;
    c->pos = pos;
    c->pinned = pinned;
    c->stored = stored;
    g_hash_table_insert(tr.checkpoints, GUINT_TO_POINTER(id), c);
    tt_timeline_add(tr.timeline, id, pos, pinned || stored);
    return c;
}

static void take_checkpoint(CPUState *cpu, bool pinned)
{
    g_autofree uint64_t *dirty = NULL;
    TtNodeId id;
    size_t n;

    dirty = tt_memory_collect_dirty(&n);
    if (tt_pagestore_add(tr.pages, tt.pos, tr.base, dirty, n, tt_memory_page,
                         NULL, &id) != TT_OK) {
        for (size_t i = 0; i < n; i++) {    /* they are still dirty */
            tt_memory_mark_dirty(dirty[i]);
        }
        return;
    }
    tr.base = id;
    note_state(cpu, enter(id, tt.pos, pinned, false));
    make_room();
}

/* ---- checkpoints of the recorder ---- */

/* The state of a stored checkpoint; false: *@why says what is wrong with it. */
static bool load_state(Checkpoint *c, char **why)
{
    g_autofree void *blob = NULL;
    Error *err = NULL;
    TtCpState s;
    TtDiag diag;
    size_t len;

    if (c->loaded) {
        return true;
    }
    if (tt_pagestore_blob(tr.pages, c->id, &blob, &len, &diag) != TT_OK ||
        tt_cpstate_decode((TtBytes) { blob, len }, &s, &diag) != TT_OK) {
        *why = g_strdup(diag.text);
        return false;
    }
    if (!tt_memory_map_load(&c->map, &s, &err)) {
        *why = g_strdup(error_get_pretty(err));
        error_free(err);
        return false;
    }
    c->cursor = (TtCursor) { .segment = s.segment, .index = s.index };
    c->cpu_state = g_byte_array_new();
    g_byte_array_append(c->cpu_state, s.cpu.data, s.cpu.len);
    c->halted = s.halted;
    c->output_hash = s.output_hash;
    c->events = s.events;
    c->loaded = true;
    return true;
}

/* Was its place in the log sealed, before the recorder was killed? */
static bool is_within_log(const TtCheckpointInfo *info)
{
    g_autofree void *blob = NULL;
    TtCpState s;
    TtDiag diag;
    size_t len;

    return info->pos <= tt_replay_end() &&
        tt_pagestore_blob(tr.pages, info->id, &blob, &len, &diag) == TT_OK &&
        tt_cpstate_decode((TtBytes) { blob, len }, &s, &diag) == TT_OK &&
        s.segment < tt_log_reader_n_segments(tt_replay_reader());
}

static TtPageStore *open_store(TtDiag *diag)
{
    g_autofree char *pages = g_build_filename(tt.dir, "pages", NULL);
    g_autofree char *points = g_build_filename(tt.dir, "checkpoints", NULL);
    TtPageStoreOptions opt = {
        .cache_bytes = tt.checkpoint_bytes / 4, .read_only = true,
    };
    TtPageStore *store;

    memcpy(opt.uuid, tt.manifest.uuid, sizeof(opt.uuid));
    if (tt_io_posix_open(pages, &opt.pages, diag) != TT_OK) {
        return NULL;
    }
    if (tt_io_posix_open(points, &opt.checkpoints, diag) != TT_OK) {
        tt_io_close(opt.pages);
        return NULL;
    }
    return tt_pagestore_open(&opt, &store, diag) == TT_OK ? store : NULL;
}

/* Takes the recorder's checkpoints over; the first is the state we are in. */
static bool adopt_stored(CPUState *cpu)
{
    g_autofree char *path = g_build_filename(tt.dir, "checkpoints", NULL);
    g_autofree TtCheckpointInfo *infos = NULL;
    TtDiag diag;
    size_t n, all;

    if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
        return false;
    }
    tr.pages = open_store(&diag);
    if (!tr.pages) {
        warn_report("tt: the replay makes its own checkpoints: %s", diag.text);
        return false;
    }
    n = tt_pagestore_count(tr.pages);
    infos = g_new0(TtCheckpointInfo, n + 1);
    n = tt_pagestore_list(tr.pages, infos, n);
    while (n > 1 && !is_within_log(&infos[n - 1])) {
        n--;
    }
    if (!n || infos[0].pos) {       /* killed before the first was stored */
        tt_pagestore_free(tr.pages);
        return false;
    }
    g_free(tt_memory_collect_dirty(&all));
    tr.has_files = true;
    tr.base = infos[0].id;
    note_state(cpu, enter(infos[0].id, 0, true, true));
    for (size_t i = 1; i < n; i++) {
        enter(infos[i].id, infos[i].pos,
              infos[i].flags & TT_CHECKPOINT_PINNED, true);
    }
    return true;
}

/* A checkpoint that cannot be used: the movement takes another one. */
static void discard(Checkpoint *c, const char *why)
{
    warn_report("tt: checkpoint %u cannot be used: %s", c->id, why);
    if (c->pos) {
        tt_timeline_remove(tr.timeline, c->id);
        g_hash_table_remove(tr.checkpoints, GUINT_TO_POINTER(c->id));
        free_checkpoint(c);
    } else {
        tt_replay_report("the start cannot be restored: %s", why);
    }
}

static void put_nowhere(void *opaque, uint64_t page, const void *bytes)
{
}

/*
 * RAM becomes that of @c. A failure changes nothing: what comes from files is
 * read, and its hashes compared, before the first page is put.
 */
static TtStatus restore_ram(Checkpoint *c)
{
    g_autofree uint64_t *dirty = NULL;
    TtStatus s = TT_OK;
    size_t n;

    dirty = tt_memory_collect_dirty(&n);
    if (tr.has_files) {
        s = tt_pagestore_restore(tr.pages, c->id, tr.base, dirty, n,
                                 put_nowhere, NULL, NULL);
    }
    if (s == TT_OK || s == TT_ERR_NOMEM) {
        do {
            s = tt_pagestore_restore(tr.pages, c->id, tr.base, dirty, n,
                                     tt_memory_put_page, NULL, NULL);
        } while (s == TT_ERR_NOMEM && thin(c->id));
        if (s != TT_OK && s != TT_ERR_NOMEM) {
            tt_replay_report("the RAM of checkpoint %u could be read once, but "
                             "not again: go to another position", c->id);
        }
    }
    for (size_t i = 0; s != TT_OK && i < n; i++) {
        tt_memory_mark_dirty(dirty[i]);
    }
    return s;
}

/* False: memory is short, and nothing was changed. Damage of the store: the
 * checkpoint is out of the timeline, ask that again. */
static bool restore_checkpoint(CPUState *cpu, TtCheckpointId id, bool *restored)
{
    Checkpoint *c = find_checkpoint(id);
    g_autofree uint64_t *dirty = NULL;
    g_autofree char *why = NULL;
    Error *err = NULL;
    TtDiag diag;
    TtStatus s;
    size_t n;

    *restored = false;
    if (!load_state(c, &why)) {
        discard(c, why);
        return true;
    }
    s = restore_ram(c);
    if (s == TT_ERR_NOMEM) {
        return false;
    }
    if (s != TT_OK) {
        const TtDiag *said = tt_pagestore_read_error(tr.pages);

        discard(c, said ? said->text : tt_status_name(s));
        return true;
    }
    tt_memory_map_restore(cpu, &c->map);
    dirty = tt_memory_collect_dirty(&n);    /* what the restore itself wrote */
    tr.base = c->id;
    if (!tt_target_load(cpu, c->cpu_state->data, c->cpu_state->len, &err)) {
        discard(c, error_get_pretty(err));
        error_free(err);
        return true;
    }
    cpu->halted = c->halted;
    tt.pos = c->pos;
    tt.fence_next = tt_next_fence(tt.pos);
    tt.output_hash = c->output_hash;
    tt.events = c->events;
    tt.diverged = tt.damaged = false;
    tt.finished = false;
    process_queued_cpu_work(cpu);           /* a changed memory map */
    tlb_flush(cpu);
    if (tt_sched_seek(tt_replay_sched(), c->cursor, &diag) != TT_OK) {
        tt_replay_damaged(&diag);
    }
    *restored = true;
    return true;
}

static void finish(const TtStep *step);

static void vm_changed(void *opaque, bool running, RunState state)
{
    if (!running) {
        tt_travel_abort();          /* gdb's user lost patience */
    }
}

static int64_t now_ms(void)
{
    return qemu_clock_get_ms(QEMU_CLOCK_REALTIME);
}

void tt_travel_init(CPUState *cpu)
{
    qemu_add_vm_change_state_handler(vm_changed, NULL);
    tr.timeline = tt_timeline_new();
    tr.checkpoints = g_hash_table_new(NULL, NULL);
    if (tt.at_end_exit || !adopt_stored(cpu)) {
        tr.pages = tt_pagestore_new();
        if (!tt.at_end_exit) {
            take_checkpoint(cpu, true);
        }
    }
    tr.last_ms = now_ms();
}

static void tell_progress(int64_t now)
{
    uint64_t done, total;

    if (tr.active && now - tr.began_ms >= TT_PROGRESS_AFTER_MS &&
        now - tr.told_ms >= TT_PROGRESS_EVERY_MS) {
        tr.told_ms = now;
        tt_travel_progress(&done, &total);
        tt_event_progress(done, total);
    }
}

static void pin(Checkpoint *c)
{
    if (!c->pinned) {
        c->pinned = true;
        tt_timeline_remove(tr.timeline, c->id);
        tt_timeline_add(tr.timeline, c->id, c->pos, true);
    }
    tr.pinned_id = c->id;
    tr.pin_at = 0;
}

void tt_travel_fence(CPUState *cpu)
{
    bool wanted = tr.active && tr.pin_at && tt.pos >= tr.pin_at;
    int64_t now = now_ms();
    TtCheckpointId id;
    uint64_t at;

    tell_progress(now);
    if (tt.at_end_exit ||
        (!wanted && now - tr.last_ms < MAX(TT_CHECKPOINT_MS,
                                TT_CHECKPOINT_SHARE * tr.last_cost_ms))) {
        return;
    }
    id = tt_timeline_find(tr.timeline, tt.pos, &at);
    if (!id || at != tt.pos) {
        take_checkpoint(cpu, wanted);
        tr.last_cost_ms = now_ms() - now;
        id = tt_timeline_find(tr.timeline, tt.pos, &at);
    }
    if (wanted && id && at == tt.pos) {
        pin(find_checkpoint(id));
    }
    tr.last_ms = now_ms();
}

/* ---- movements ---- */

static void begin(TtTravelDone *done, void *opaque)
{
    tr.active = true;
    tr.straight = false;
    tr.blind = true;
    tr.interrupted = false;
    tr.stop_at = 0;
    tr.pending = true;
    tr.ended = TT_STOP_NONE;
    tr.stepping_over = false;
    tr.done = done;
    tr.opaque = opaque;
    tr.last_ms = tr.began_ms = tr.told_ms = now_ms();
    tt_vcpu_wake();
}

bool tt_travel_is_possible(Error **errp)
{
    if (!tt_replaying()) {
        error_setg(errp, "there is no past to go to: this is no replay");
    } else if (tt.at_end_exit) {
        error_setg(errp, "this replay keeps no checkpoints: start it with "
                   "at-end=stop");
    } else if (!tr.timeline) {
        error_setg(errp, "the replay has not begun yet");
    } else {
        return true;
    }
    return false;
}

static bool may_begin(Error **errp)
{
    if (!tt_travel_is_possible(errp)) {
        return false;
    }
    if (tr.active) {
        error_setg(errp, "another movement is under way");
        return false;
    }
    tr.pin_at = 0;
    tr.pinning = false;
    return true;
}

bool tt_travel_goto(uint64_t target, TtTravelDone *done, void *opaque,
                    Error **errp)
{
    if (!may_begin(errp)) {
        return false;
    }
    if (tt.diverged && target >= tt.pos) {
        error_setg(errp, "the %s here: only positions before %" PRIu64
                   " can be reached", tt.damaged ? "log is damaged" :
                   "replay diverged", tt.pos);
        return false;
    }
    tr.reverse_step = false;
    tt_timeline_goto(tr.timeline, tt.pos, target);
    begin(done, opaque);
    return true;
}

bool tt_travel_run(uint64_t target, TtTravelDone *done, void *opaque,
                   Error **errp)
{
    if (!may_begin(errp)) {
        return false;
    }
    begin(done, opaque);
    tr.straight = true;
    tr.reverse_step = false;
    tr.origin = target;
    tr.run_from = tt.pos;
    return true;
}

bool tt_travel_reverse(bool step, TtTravelDone *done, void *opaque,
                       Error **errp)
{
    if (!may_begin(errp)) {
        return false;
    }
    tr.reverse_step = step;
    tr.origin = tt.pos;
    tr.found = (Found) { .pos = UINT64_MAX };
    tr.back = 1;
    if (!step) {
        tt_timeline_reverse_continue(tr.timeline, tt.pos, 0);
    } else {
        tt_timeline_goto(tr.timeline, tt.pos, tt.pos ? tt.pos - 1 : 0);
    }
    begin(done, opaque);
    return true;
}

/*
 * A pinned checkpoint for the present position: checkpoints stand at fences, so
 * it is the one of the last fence. If there is none, go back and take it while
 * passing.
 */
bool tt_travel_pin(TtTravelDone *done, void *opaque, Error **errp)
{
    uint64_t step = tt.manifest.fence_interval;
    uint64_t at = 0, fence = tt.pos / step * step;
    TtCheckpointId id;

    if (!may_begin(errp)) {
        return false;
    }
    id = tt_timeline_find(tr.timeline, tt.pos, &at);
    if (!id || (at < fence && tt.diverged)) {
        error_setg(errp, "no checkpoint can be made where a replay diverged");
        return false;
    }
    tr.pinned_id = 0;
    tr.origin = tt.pos;
    tr.reverse_step = false;
    if (at >= fence) {
        pin(find_checkpoint(id));
        tt_timeline_goto(tr.timeline, tt.pos, tt.pos);
    } else {
        tr.pin_at = fence;
        tr.pinning = true;
        tt_timeline_goto(tr.timeline, tt.pos, at);
    }
    begin(done, opaque);
    return true;
}

TtCheckpointId tt_travel_pinned(void)
{
    return tr.pinned_id;
}

static int by_position(const void *a, const void *b)
{
    const TtTravelPoint *x = a, *y = b;

    return x->pos < y->pos ? -1 : x->pos > y->pos;
}

GArray *tt_travel_list(void)
{
    GArray *list = g_array_new(false, false, sizeof(TtTravelPoint));
    GHashTableIter it;
    Checkpoint *c;

    if (!tr.checkpoints) {
        return list;
    }
    g_hash_table_iter_init(&it, tr.checkpoints);
    while (g_hash_table_iter_next(&it, NULL, (void **)&c)) {
        TtTravelPoint info = {
            .id = c->id, .pos = c->pos, .pinned = c->pinned,
            .stored = c->stored,
            .pages = tt_pagestore_node_pages(tr.pages, c->id),
        };

        g_array_append_val(list, info);
    }
    g_array_sort(list, by_position);
    return list;
}

bool tt_travel_delete(uint64_t id, Error **errp)
{
    Checkpoint *c;

    if (!tt_travel_is_possible(errp)) {
        return false;
    }
    if (tr.active) {
        error_setg(errp, "a movement is under way: wait for its end");
        return false;
    }
    c = id && id <= UINT32_MAX ? find_checkpoint(id) : NULL;
    if (!c) {
        error_setg(errp, "there is no checkpoint %" PRIu64 ": see 'tt "
                   "checkpoint list'", id);
    } else if (!c->pos) {
        error_setg(errp, "checkpoint %" PRIu64 " is the beginning of the run "
                   "and stays: nothing could be reached without it", id);
    } else if (!drop_checkpoint(id)) {
        error_setg(errp, "not enough memory to delete the checkpoint that the "
                   "VM comes from: delete another one first");
    } else {
        return true;
    }
    return false;
}

/* The VM is being stopped from outside: what moves stands still here. */
void tt_travel_abort(void)
{
    TtStep step = { .kind = TT_STEP_DONE, .reason = TT_STOP_INTERRUPTED };

    if (!tr.active) {
        return;
    }
    if (!tr.straight) {
        tt_timeline_done(tr.timeline, tt.pos, TT_STOP_INTERRUPTED);
    }
    tr.reverse_step = false;
    finish(&step);
}

void tt_travel_progress(uint64_t *done, uint64_t *total)
{
    *done = *total = 0;
    if (tr.active && tr.straight) {
        *total = tr.origin;
        *done = tt.pos - tr.run_from;
    } else if (tr.active) {
        tt_timeline_progress(tr.timeline, done, total);
        *done += tt.pos > tr.run_from ? tt.pos - tr.run_from : 0;
    }
    *done = MIN(*done, *total);
}

void tt_travel_interrupt(void)
{
    if (tr.active) {
        qatomic_set(&tr.interrupted, true);
        qatomic_set(&tr.pending, true);
        tt_token_kick();
    }
}

/* The search ends where an access comes next: say which watchpoint it was. */
static void name_watchpoint(void)
{
    CPUState *cpu = tt_vcpu();
    CPUWatchpoint *wp;

    if (!tr.found.is_watch || tr.found.pos != tt.pos) {
        return;
    }
    QTAILQ_FOREACH(wp, &cpu->watchpoints, entry) {
        if ((wp->flags & BP_GDB) && wp->vaddr == tr.found.addr &&
            wp->len == tr.found.len &&
            (wp->flags & BP_MEM_ACCESS) == tr.found.flags) {
            cpu->watchpoint_hit = wp;
            return;
        }
    }
}

static void finish(const TtStep *step)
{
    TtStopReason reason = step->reason;

    if (reason == TT_STOP_HIT) {
        name_watchpoint();
    }

    if (tr.reverse_step && tr.origin == 0) {
        reason = TT_STOP_START;
    }
    if (reason == TT_STOP_DIVERGED) {
        reason = tt_replay_trouble();
    }
    tr.active = false;
    tr.stop_at = UINT64_MAX;
    tr.stepping_over = false;
    tt_event_stopped(tt.pos, reason);
    tr.done(tr.opaque, tt.pos, reason);
    if (runstate_is_running() && !tt_vcpu()->stopped) {
        qemu_system_vmstop_request_prepare();   /* somebody said cont */
        qemu_system_vmstop_request(RUN_STATE_PAUSED);
        tt_vcpu()->stop = true;
    }
}

/*
 * A few positions are no resting place (a trap is delivered together with its
 * instruction), so one position back may lead to where we came from.
 */
static bool step_back_further(const TtStep *step)
{
    if (!tr.reverse_step || step->reason != TT_STOP_TARGET ||
        tt.pos < tr.origin || tr.origin <= tr.back) {
        return false;
    }
    tr.back++;
    tt_timeline_goto(tr.timeline, tt.pos, tr.origin - tr.back);
    return true;
}

/* A pinned checkpoint is to be taken on the way back to where we came from. */
static bool return_pinning(const TtStep *step)
{
    if (!tr.pinning || step->reason != TT_STOP_TARGET) {
        return false;
    }
    tr.pinning = false;
    tt_timeline_goto(tr.timeline, tt.pos, tr.origin);
    return true;
}

static bool take_step(CPUState *cpu, const TtStep *step)
{
    bool restored;

    switch (step->kind) {
    case TT_STEP_RESTORE:
        if (restore_checkpoint(cpu, step->checkpoint, &restored)) {
            if (restored) {
                tt_timeline_done(tr.timeline, tt.pos, TT_STOP_NONE);
            }
        } else {
            error_report("tt: not enough memory to go back: the VM stays at "
                         "position %" PRIu64, tt.pos);
            tt_timeline_done(tr.timeline, tt.pos, TT_STOP_INTERRUPTED);
        }
        return true;
    case TT_STEP_RUN:
    case TT_STEP_SCAN:
        if (tt.pos >= step->pos) {      /* beyond: that was no resting place */
            tt_timeline_done(tr.timeline, step->pos, TT_STOP_NONE);
            return true;
        }
        tr.blind = step->kind == TT_STEP_RUN;
        tr.stop_at = step->pos;
        tr.run_from = tt.pos;
        return false;
    default:
        g_assert_not_reached();
    }
}

bool tt_travel_is_pending(void)
{
    if (tr.stepping_over && tt.pos > tr.hit_pos) {
        tr.stepping_over = false;
    }
    return tr.active && (tr.pending || tt.pos >= tt_travel_stop_at());
}

/* A straight run: on to its end, or there. */
static bool advance_straight(void)
{
    TtStep step = { .kind = TT_STEP_DONE, .reason = TT_STOP_TARGET };

    if (tr.interrupted) {
        step.reason = TT_STOP_INTERRUPTED;
    } else if (tr.ended) {
        step.reason = tr.ended;
    } else if (tt.pos < tr.origin) {
        tr.stop_at = tr.origin;
        return true;
    }
    finish(&step);
    return false;
}

bool tt_travel_advance(CPUState *cpu)
{
    tr.pending = false;
    if (tr.straight) {
        return advance_straight();
    }
    if (tr.interrupted) {
        tr.interrupted = false;
        tt_timeline_done(tr.timeline, tt.pos, TT_STOP_INTERRUPTED);
    }
    for (;;) {
        TtStep step = tt_timeline_step(tr.timeline);

        if (step.kind == TT_STEP_DONE) {
            if (step_back_further(&step) || return_pinning(&step)) {
                continue;
            }
            finish(&step);
            return false;
        }
        if (!take_step(cpu, &step)) {
            return true;
        }
    }
}

/*
 * Going forward a watchpoint stops behind the access. Going back it must stop
 * before it, where the old value still stands: gdb compares the two.
 */
void tt_travel_hit(uint64_t pos, CPUWatchpoint *wp)
{
    uint64_t at = wp && pos ? pos - 1 : pos;

    if (!tr.blind) {
        tt_timeline_hit(tr.timeline, at);
        if (at < tr.origin) {
            tr.found = (Found) {
                .pos = at, .is_watch = wp != NULL,
                .addr = wp ? wp->vaddr : 0, .len = wp ? wp->len : 0,
                .flags = wp ? wp->flags & BP_MEM_ACCESS : 0,
            };
        }
    }
    tr.hit_pos = pos;               /* not again at this position */
    tr.stepping_over = true;
}

void tt_travel_ended(int reason)
{
    if (!tr.straight) {
        tt_timeline_done(tr.timeline, tt.pos, reason);
    }
    tr.ended = reason;
    tr.pending = true;
}
