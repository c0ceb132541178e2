/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Points: the checkpoints of a replay. RAM is in pages/tt-pagestore.h, which of them
 * serves a movement is timeline/tt-timeline.h's to say; this file takes them, restores
 * them, and thins them when they need too much memory.
 *
 * They are taken at sync points only: there the TLB is empty in the recording as
 * well, so that a restored VM, whose TLB is empty too, goes on exactly (hazard
 * 1). Those of the recorder are in the run directory and stay there as they
 * are; what a replay adds lives in its memory.
 */
#include "qemu/osdep.h"
#include "travel/tt-checkpoints.h"
#include "accel-tt/tcg/tt-branch-trace.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "checkpoint/tt-checkpoint.h"
#include "hw-tt/memory/tt-memory.h"
#include "hw-tt/screen/tt-gpu.h"
#include "io/tt-base.h"
#include "log/tt-log.h"
#include "log/tt-sched.h"
#include "pages/tt-pagestore.h"
#include "replay/tt-replay.h"
#include "replay/tt-stop.h"
#include "run/tt-cpstate.h"
#include "run/tt-runstore.h"
#include "session/tt-session.h"
#include "timeline/tt-timeline.h"
#include "travel/tt-travel.h"
#include "tt/hooks.h"
#include "verify/tt-verify.h"
#include "qapi/error.h"
#include "qemu/units.h"
#include "hw/core/cpu.h"
#include "qemu/error-report.h"
#include "qemu/timer.h"
#include "exec/cputlb.h"

uint64_t tt_checkpoints_bytes = GiB;

/*
 * CPU time between checkpoints: what a short movement may re-execute. They may
 * take a tenth of the time in all; one that is dear (many pages changed) is paid
 * off by and by, with more time between them only when too many were. No
 * movement need re-execute more than the longest time.
 */
#define TT_CHECKPOINT_NS        (100 * SCALE_MS)
#define TT_CHECKPOINT_NS_MAX    (1000 * SCALE_MS)
#define TT_CHECKPOINT_SHARE     10
#define TT_CHECKPOINT_DEBT_NS   (200 * SCALE_MS)
/* Parts of the memory for checkpoints: new pages that are not compressed yet, and
 * all uncompressed ones. A restore reads what differs twice. */
#define TT_CHECKPOINT_PLAIN 16
#define TT_CHECKPOINT_CACHE 4

typedef struct Checkpoint {
    uint64_t pos;
    TtNodeId id;                    /* in the page store and in the timeline */
    bool pinned;
    bool stored;                    /* by the recorder: never thinned */
    bool loaded;                    /* what follows is there */
    bool untried;                   /* nobody has loaded its vCPUs yet */
    TtCursor cursor;
    TtMapState map;
    GByteArray *cpu_state;
    GByteArray *screen;             /* NULL: the log has it, if there is one */
    int halted;
    uint64_t output_hash, events;
} Checkpoint;

static struct {
    TtTimeline *timeline;
    TtPageStore *pages;
    GHashTable *checkpoints;        /* TtCheckpointId -> Checkpoint */
    bool has_files;                 /* the store is the recorder's */
    uint64_t screen_bytes;          /* of all that are kept */
    TtNodeId start;                 /* with it history begins: it stays */
    TtNodeId base;                  /* RAM = node base + dirty pages */
    int64_t last_ns;                /* CPU time, of the newest checkpoint */
    int64_t debt_ns;                /* taken by checkpoints, beyond their share */
    bool rests;                     /* the time counts from the next sync point on */
    bool is_lost;                   /* a restore has begun and has not succeeded */
    uint64_t restored_at;           /* of the last one that has */
} pt;

static Checkpoint *find_checkpoint(TtCheckpointId id)
{
    return g_hash_table_lookup(pt.checkpoints, GUINT_TO_POINTER(id));
}

static void free_checkpoint(Checkpoint *c)
{
    if (c->loaded) {
        tt_memory_map_free(&c->map);
        g_byte_array_unref(c->cpu_state);
    }
    pt.screen_bytes -= c->screen ? c->screen->len : 0;
    g_clear_pointer(&c->screen, g_byte_array_unref);
    g_free(c);
}

/* RAM comes from @c: say that it comes from the checkpoint before. */
static bool rebase(Checkpoint *c)
{
    TtCheckpointId id = tt_timeline_find(pt.timeline, c->pos - 1, NULL);
    g_autofree uint64_t *pages = NULL;
    size_t n;

    pages = tt_pagestore_rebase(pt.pages, c->id, id, &n);
    if (!pages) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        tt_memory_mark_dirty(pages[i]);
    }
    pt.base = id;
    return true;
}

static bool drop(TtCheckpointId id)
{
    Checkpoint *c = find_checkpoint(id);

    assert(c && c->id != pt.start);
    if (c->id == pt.base && !rebase(c)) {
        return false;
    }
    tt_timeline_remove(pt.timeline, id);
    tt_pagestore_delete(pt.pages, c->id);
    g_hash_table_remove(pt.checkpoints, GUINT_TO_POINTER(id));
    free_checkpoint(c);
    return true;
}

/* Gives up the checkpoint that is missed least, but not @keep; false: none. */
static bool thin(TtNodeId keep)
{
    TtCheckpointId id = tt_timeline_thin(pt.timeline, tt_now.pos,
                                         tt_replay_end() / 2);
    Checkpoint *c = id ? find_checkpoint(id) : NULL;

    return c && c->id != keep && drop(id);
}

/* Memory that this replay's own checkpoints take. */
static uint64_t bytes_in_use(void)
{
    TtPageStoreStats st;

    if (!pt.has_files) {
        return tt_pagestore_bytes(pt.pages) + pt.screen_bytes;
    }
    st = tt_pagestore_stats(pt.pages);
    return st.pending_bytes + st.packed_bytes + pt.screen_bytes +
        tt_checkpoints_bytes / TT_CHECKPOINT_CACHE;
}

/* Most pages are kept compressed, which takes a third of the memory. */
static void make_room(void)
{
    tt_pagestore_pack(pt.pages, tt_checkpoints_bytes / TT_CHECKPOINT_PLAIN,
                      tt_checkpoints_bytes / TT_CHECKPOINT_CACHE);
    while (bytes_in_use() > tt_checkpoints_bytes) {
        if (!thin(0)) {
            break;
        }
    }
}

/* The state that is not RAM, as it is now. */
static void note_state(CPUState *cpu, Checkpoint *c)
{
    c->cursor = tt_sched_tell(tt_replay_sched());
    c->cpu_state = tt_vcpus_save();
    c->screen = tt_gpu_save();
    pt.screen_bytes += c->screen ? c->screen->len : 0;
    c->halted = cpu->halted;
    c->output_hash = tt_now.output_hash;
    c->events = tt_session.events;
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
    g_hash_table_insert(pt.checkpoints, GUINT_TO_POINTER(id), c);
    tt_timeline_add(pt.timeline, id, pos, pinned || stored);
    return c;
}

static void mark_dirty(const uint64_t *pages, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        tt_memory_mark_dirty(pages[i]);
    }
}

static void take_checkpoint(CPUState *cpu, bool pinned)
{
    g_autofree uint64_t *dirty = NULL;
    TtNodeId id;
    size_t n;

    dirty = tt_memory_collect_dirty(&n);
    if (tt_pagestore_add(pt.pages, tt_now.pos, pt.base, dirty, n, tt_memory_page,
                         NULL, &id) != TT_OK) {
        mark_dirty(dirty, n);       /* they still are */
        return;
    }
    pt.base = id;
    note_state(cpu, enter(id, tt_now.pos, pinned, false));
    make_room();
}

/* ---- those of the recorder ---- */

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
    if (tt_pagestore_blob(pt.pages, c->id, &blob, &len, &diag) != TT_OK ||
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
    c->loaded = c->untried = true;
    return true;
}

/* Is its place in the log there: sealed before the recorder was killed, and not
 * gone since? */
static bool is_within_log(const TtCheckpointInfo *info)
{
    g_autofree void *blob = NULL;
    TtCpState s;
    TtDiag diag;
    size_t len;

    return info->pos <= tt_replay_end() &&
        tt_pagestore_blob(pt.pages, info->id, &blob, &len, &diag) == TT_OK &&
        tt_cpstate_decode((TtBytes) { blob, len }, &s, &diag) == TT_OK &&
        s.segment >= tt_log_reader_first(tt_replay_reader()) &&
        s.segment < tt_log_reader_end(tt_replay_reader());
}

/* Behind it there are checkpoints that cannot be used any more. */
static void say_damage(void)
{
    const TtDiag *d = tt_pagestore_damage(pt.pages, 0);

    d = d ?: tt_pagestore_damage(pt.pages, 1);
    if (d) {
        warn_report("tt: some checkpoints of the run are lost, and the replay "
                    "makes its own: %s", d->text);
    }
}

/* What is written down for this checkpoint can be read. Can it be put, too? */
static void put_nowhere(void *opaque, uint64_t page, const void *bytes)
{
    bool *is_beyond = opaque;

    *is_beyond |= page >= tt_memory_n_pages();
}

/* Without the start nothing could be reached that lies behind: is all of its RAM
 * there? In the process that records, it has just been written. */
static bool is_start_whole(TtNodeId id, TtDiag *diag)
{
    bool is_beyond = false;
    const TtDiag *said;
    TtStatus s;

    if (tt_past) {
        return true;
    }
    s = tt_pagestore_read(pt.pages, id, 0, tt_memory_n_pages(), put_nowhere,
                          &is_beyond);
    if (s >= 0) {
        return true;
    }
    said = tt_pagestore_read_error(pt.pages);
    tt_fail(diag, s, "%s", said ? said->text : tt_status_name(s));
    return false;
}

static void forsake_store(void)
{
    tt_pagestore_free(pt.pages);
    pt.pages = NULL;
}

/* Takes the recorder's checkpoints over; one at the start is the state we are in. */
static bool adopt_stored(CPUState *cpu)
{
    g_autofree TtCheckpointInfo *infos = NULL;
    TtDiag diag;
    size_t n, all;
    TtStatus s = tt_runstore_open(tt_session.dir, &tt_session.manifest, tt_checkpoints_bytes /
                                  TT_CHECKPOINT_CACHE, &pt.pages, &diag);

    if (s != TT_OK) {
        if (s != TT_END) {
            warn_report("tt: the replay makes its own checkpoints: %s",
                        diag.text);
        }
        return false;
    }
    say_damage();
    n = tt_pagestore_count(pt.pages);
    infos = g_new0(TtCheckpointInfo, n + 1);
    n = tt_pagestore_list(pt.pages, infos, n);
    while ((n > 1 || (n && infos[0].pos)) &&
           !is_within_log(&infos[n - 1])) {
        n--;
    }
    if (!n) {                       /* killed before the first was stored */
        forsake_store();
        return false;
    }
    if (!infos[0].pos && !tt_verify_is_on() && !is_start_whole(infos[0].id, &diag)) {
        warn_report("tt: the replay makes its own checkpoints: %s", diag.text);
        forsake_store();
        return false;
    }
    pt.has_files = true;
    if (infos[0].pos) {             /* of the user's: the start is ours */
        take_checkpoint(cpu, true);
        pt.start = pt.base;
    } else {
        g_free(tt_memory_collect_dirty(&all));
        pt.base = pt.start = infos[0].id;
        note_state(cpu, enter(infos[0].id, 0, true, true));
    }
    for (size_t i = !infos[0].pos; i < n; i++) {
        enter(infos[i].id, infos[i].pos,
              infos[i].flags & TT_CHECKPOINT_PINNED, true);
    }
    return true;
}

/* A checkpoint that cannot be used: the movement takes another one. Of the start
 * there is none. */
static TtRestored discard(Checkpoint *c, const char *why)
{
    if (c->id == pt.start) {
        error_report("tt: the start cannot be restored, the VM stays at position "
                     "%" PRIu64 ": %s: take 'pages' and 'checkpoints' out of "
                     "'%s', and replay it anew without them", tt_now.pos, why,
                     tt_session.dir);
        return TT_RESTORE_NONE;
    }
    warn_report("tt: checkpoint %u cannot be used: %s", c->id, why);
    if (pt.is_lost) {
        tt_timeline_lost(pt.timeline);
    }
    tt_timeline_remove(pt.timeline, c->id);
    g_hash_table_remove(pt.checkpoints, GUINT_TO_POINTER(c->id));
    free_checkpoint(c);
    return TT_RESTORE_ANOTHER;
}

/*
 * Could its vCPUs be loaded? Once, of what comes from a file: when RAM is that of the
 * checkpoint it is too late. What stands here pays with its TLB, and that is of the
 * guest's history, but where a checkpoint stands: nothing may be wrong with this one but
 * what is tried.
 */
static bool can_be_loaded(Checkpoint *c, char **why)
{
    g_autoptr(GByteArray) now = NULL;
    bool halted = tt_vcpus_at(0)->halted;
    Error *err = NULL;

    if (!c->untried) {
        return true;
    }
    pt.is_lost |= tt_now.pos != c->pos;
    now = tt_vcpus_save();
    c->untried = !tt_vcpus_load(c->cpu_state->data, c->cpu_state->len, c->halted, &err);
    (void)tt_vcpus_load(now->data, now->len, halted, NULL);     /* it was there */
    if (err) {
        *why = g_strdup(error_get_pretty(err));
        error_free(err);
    }
    return !c->untried;
}

/* The base may go, and another takes its place: what differs from that is dirty, too. */
static bool thin_again(TtNodeId keep, uint64_t **dirty, size_t *n)
{
    bool did = thin(keep);

    mark_dirty(*dirty, *n);
    g_free(*dirty);
    *dirty = tt_memory_collect_dirty(n);
    return did;
}

/*
 * RAM becomes that of @c. A failure changes nothing, or leaves @pt.is_lost: what comes
 * from files is read, and its hashes compared, before the first page is put.
 */
static TtStatus restore_ram(Checkpoint *c, char **why)
{
    g_autofree uint64_t *dirty = NULL;
    bool is_beyond = false;
    TtStatus s = TT_OK;
    size_t n;

    dirty = tt_memory_collect_dirty(&n);
    if (pt.has_files) {
        s = tt_pagestore_restore(pt.pages, c->id, pt.base, dirty, n,
                                 put_nowhere, &is_beyond, NULL);
    }
    if (is_beyond) {
        *why = g_strdup("it has pages where the VM has no RAM");
        s = TT_ERR_MISMATCH;
    }
    if ((s == TT_OK || s == TT_ERR_NOMEM) && !can_be_loaded(c, why)) {
        s = TT_ERR_FORMAT;
    }
    if (s == TT_OK || s == TT_ERR_NOMEM) {
        do {
            s = tt_pagestore_restore(pt.pages, c->id, pt.base, dirty, n,
                                     tt_memory_put_page, NULL, NULL);
        } while (s == TT_ERR_NOMEM && thin_again(c->id, &dirty, &n));
        pt.is_lost |= s != TT_OK && s != TT_ERR_NOMEM;  /* read once, but not again */
    }
    if (s != TT_OK) {
        mark_dirty(dirty, n);
    }
    return s;
}

static TtRestored restore(CPUState *cpu, TtCheckpointId id)
{
    Checkpoint *c = find_checkpoint(id);
    g_autofree uint64_t *dirty = NULL;
    g_autofree char *why = NULL;
    Error *err = NULL;
    TtDiag diag;
    TtStatus s;
    size_t n;

    if (!c) {                               /* it could not be used before */
        return TT_RESTORE_ANOTHER;
    }
    if (!load_state(c, &why)) {
        return discard(c, why);
    }
    s = restore_ram(c, &why);
    if (!tt_past && (s == TT_OK || pt.is_lost)) {
        tt_trace_end_and_tell();        /* history jumps */
    }
    if (s == TT_ERR_NOMEM) {
        return TT_RESTORE_NOMEM;
    }
    if (s != TT_OK) {
        const TtDiag *said = tt_pagestore_read_error(pt.pages);

        return discard(c, why ?: said ? said->text : tt_status_name(s));
    }
    pt.is_lost = true;
    tt_memory_map_restore(&c->map);
    tt_gpu_restore(c->screen);
    dirty = tt_memory_collect_dirty(&n);    /* what the restore itself wrote */
    pt.base = c->id;
    if (!tt_vcpus_load(c->cpu_state->data, c->cpu_state->len, c->halted,
                       &err)) {
        TtRestored r = discard(c, error_get_pretty(err));

        error_free(err);
        return r;
    }
    tt_now.pos = c->pos;
    tt_now.sync_next = tt_next_sync_point(tt_now.pos);
    tt_now.output_hash = c->output_hash;
    tt_session.events = c->events;
    tt_replayer.diverged = tt_replayer.damaged = false;
    tt_session.finished = pt.is_lost = false;
    pt.restored_at = c->pos;
    tt_vcpus_do_work();                     /* a changed memory map */
    tt_vcpus_flush();
    if (tt_sched_seek(tt_replay_sched(), c->cursor, &diag) != TT_OK) {
        tt_replay_damaged(&diag);
    }
    return TT_RESTORED;
}

/* The movement ends where it is, which is not anything of the run's any more. */
static void stay_lost(void)
{
    TtDiag diag;

    tt_fail(&diag, TT_ERR_FORMAT, "the state here was given up for a checkpoint that "
            "could not be restored: go to another position");
    tt_replayer.diverged = false;            /* what was wrong with it is gone, too */
    tt_replay_damaged(&diag);
}

TtRestored tt_checkpoints_restore(CPUState *cpu, TtCheckpointId id)
{
    TtRestored how = restore(cpu, id);

    if (pt.is_lost && (how == TT_RESTORE_NONE || how == TT_RESTORE_NOMEM)) {
        stay_lost();
    }
    return how;
}

bool tt_checkpoints_is_lost(void)
{
    return pt.is_lost;
}

uint64_t tt_checkpoints_restored_at(void)
{
    return pt.restored_at;
}

/* ---- the log holds a window: there is nothing before its checkpoints ---- */

static void enter_window(void)
{
    size_t n = tt_pagestore_count(pt.pages);
    g_autofree TtCheckpointInfo *infos = g_new0(TtCheckpointInfo, n + 1);

    n = tt_pagestore_list(pt.pages, infos, n);
    for (size_t i = 0; i < n; i++) {
        if (is_within_log(&infos[i])) {
            enter(infos[i].id, infos[i].pos,
                  infos[i].flags & TT_CHECKPOINT_PINNED, true);
        }
    }
}

static TtCheckpointId first_point(void)
{
    uint64_t at;
    TtCheckpointId id = tt_timeline_find(pt.timeline, 0, &at);

    return id ?: tt_timeline_find_after(pt.timeline, 0, &at);
}

/* The blocks that @id needs are fresh, and zeros as where a restore begins. */
static void make_blocks(TtCheckpointId id)
{
    g_autofree char *why = NULL;
    size_t n;

    if (load_state(find_checkpoint(id), &why) && !pt.base) {
        g_free(tt_memory_collect_dirty(&n));
    }
}

/* The VM becomes that of the first checkpoint that can be used. */
static bool begin_in_window(CPUState *cpu, TtDiag *diag)
{
    TtCheckpointId id;
    TtStatus s = tt_runstore_open(tt_session.dir, &tt_session.manifest, tt_checkpoints_bytes /
                                  TT_CHECKPOINT_CACHE, &pt.pages, diag);

    if (s != TT_OK) {
        if (s == TT_END) {
            tt_fail(diag, TT_ERR_FORMAT, "it has none");
        }
        return false;
    }
    say_damage();
    pt.has_files = true;
    enter_window();
    while ((id = first_point())) {
        make_blocks(id);
        switch (restore(cpu, id)) {
        case TT_RESTORED:
            pt.start = id;
            return true;
        case TT_RESTORE_NOMEM:
            tt_fail(diag, TT_ERR_NOMEM, "there is not enough memory for the RAM "
                    "of the checkpoint it begins with");
            return false;
        default:
            break;                              /* the next one */
        }
    }
    tt_fail(diag, TT_ERR_FORMAT, "none of its checkpoints can be used");
    return false;
}

static void begin_with_window(CPUState *cpu)
{
    TtDiag why, diag;

    if (!begin_in_window(cpu, &why)) {
        tt_fail(&diag, TT_ERR_FORMAT, "the run holds a window of a recording, and "
                "a replay of that begins with a checkpoint: %s", why.text);
        if (!pt.pages) {
            pt.pages = tt_pagestore_new();
        }
        tt_replay_damaged(&diag);
    }
}

/* ---- for verification ---- */

static bool was_read(TtCheckpointId id, TtStatus s)
{
    const TtDiag *said = tt_pagestore_read_error(pt.pages);

    if (s != TT_OK) {
        warn_report("tt: checkpoint %u cannot be compared: %s", id,
                    said ? said->text : tt_status_name(s));
    }
    return s == TT_OK;
}

bool tt_checkpoints_compare(TtCheckpointId id, TtPagePut put, void *opaque)
{
    g_autofree uint64_t *dirty = NULL;
    TtStatus s;
    size_t n;

    dirty = tt_memory_collect_dirty(&n);
    s = tt_pagestore_restore(pt.pages, id, pt.base, dirty, n, put, opaque,
                             NULL);
    mark_dirty(dirty, n);                   /* they still are */
    return was_read(id, s);
}

typedef struct Zeros {              /* pages that are not put are zero */
    TtPagePut put;
    void *opaque;
    uint64_t next;
} Zeros;

static void put_between(void *opaque, uint64_t page, const void *bytes)
{
    Zeros *z = opaque;

    for (; z->next < page; z->next++) {
        z->put(z->opaque, z->next, NULL);
    }
    z->put(z->opaque, page, bytes);
    z->next = page + 1;
}

bool tt_checkpoints_compare_all(TtCheckpointId id, TtPagePut put, void *opaque)
{
    Zeros z = { .put = put, .opaque = opaque };
    TtStatus s = tt_pagestore_read(pt.pages, id, 0, tt_memory_n_pages(),
                                   put_between, &z);

    for (; s == TT_OK && z.next < tt_memory_n_pages(); z.next++) {
        put(opaque, z.next, NULL);
    }
    return was_read(id, s);
}

/* ---- for travel ---- */

/* Of this thread: other work on the host shall not make checkpoints rare. */
static int64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * NANOSECONDS_PER_SECOND + t.tv_nsec;
}

static void free_entry(gpointer key, gpointer value, gpointer opaque)
{
    free_checkpoint(value);
}

void tt_checkpoints_close(void)
{
    if (pt.timeline) {
        g_hash_table_foreach(pt.checkpoints, free_entry, NULL);
        g_hash_table_unref(pt.checkpoints);
        tt_timeline_free(pt.timeline);
        tt_pagestore_free(pt.pages);
    }
    pt = (typeof(pt)) { 0 };
}

TtTimeline *tt_checkpoints_init(CPUState *cpu)
{
    pt.timeline = tt_timeline_new();
    pt.checkpoints = g_hash_table_new(NULL, NULL);
    if (tt_log_reader_is_window(tt_replay_reader())) {
        begin_with_window(cpu);
    } else if (tt_at_end_exit || !adopt_stored(cpu)) {
        pt.pages = tt_pagestore_new();
        if (!tt_at_end_exit) {
            take_checkpoint(cpu, true);
            pt.start = pt.base;
        }
    }
    pt.restored_at = tt_now.pos;
    tt_checkpoints_rest();
    return pt.timeline;
}

void tt_checkpoints_rest(void)
{
    pt.rests = true;
}

/* Is it time, @ran_ns after the last one? */
static bool is_due(int64_t ran_ns)
{
    return ran_ns >= TT_CHECKPOINT_NS &&
        (ran_ns >= TT_CHECKPOINT_NS_MAX ||
         pt.debt_ns - ran_ns / TT_CHECKPOINT_SHARE < TT_CHECKPOINT_DEBT_NS);
}

TtCheckpointId tt_checkpoints_sync_point(CPUState *cpu, bool wanted, bool pinned)
{
    int64_t now = cpu_ns(), ran;
    TtCheckpointId id;
    uint64_t at;

    if (pt.rests) {
        pt.rests = false;
        pt.last_ns = now;
    }
    ran = now - pt.last_ns;
    if (tt_at_end_exit || (!wanted && !is_due(ran))) {
        return 0;
    }
    id = tt_timeline_find(pt.timeline, tt_now.pos, &at);
    if (!id || at != tt_now.pos) {
        take_checkpoint(cpu, pinned);
        id = tt_timeline_find(pt.timeline, tt_now.pos, &at);
    }
    pt.last_ns = cpu_ns();
    pt.debt_ns = MAX(pt.debt_ns - ran / TT_CHECKPOINT_SHARE, 0) +
        pt.last_ns - now;
    return id && at == tt_now.pos ? id : 0;
}

void tt_checkpoints_pin(TtCheckpointId id)
{
    Checkpoint *c = find_checkpoint(id);

    if (!c->pinned) {
        c->pinned = true;
        tt_timeline_remove(pt.timeline, c->id);
        tt_timeline_add(pt.timeline, c->id, c->pos, true);
    }
}

/* ---- for the user ---- */

unsigned tt_checkpoints_count(void)
{
    return pt.timeline ? tt_timeline_count(pt.timeline) : 0;
}

static int by_position(const void *a, const void *b)
{
    const TtCheckpointDesc *x = a, *y = b;

    return x->pos < y->pos ? -1 : x->pos > y->pos;
}

GArray *tt_checkpoints_list(void)
{
    GArray *list = g_array_new(false, false, sizeof(TtCheckpointDesc));
    GHashTableIter it;
    Checkpoint *c;

    if (!pt.checkpoints) {
        return list;
    }
    g_hash_table_iter_init(&it, pt.checkpoints);
    while (g_hash_table_iter_next(&it, NULL, (void **)&c)) {
        TtCheckpointInfo node = { 0 };
        TtCheckpointDesc info = {
            .id = c->id, .pos = c->pos, .pinned = c->pinned,
            .stored = c->stored,
        };

        tt_pagestore_info(pt.pages, c->id, &node);
        info.pages = node.n_pages;
        info.full = node.flags & TT_CHECKPOINT_FULL;
        info.host_ns = node.host_ns;
        info.bytes = node.stored_bytes + node.blob_bytes;
        g_array_append_val(list, info);
    }
    g_array_sort(list, by_position);
    return list;
}

bool tt_checkpoints_delete(uint64_t id, Error **errp)
{
    Checkpoint *c = id && id <= UINT32_MAX ? find_checkpoint(id) : NULL;

    if (!c) {
        error_setg(errp, "there is no checkpoint %" PRIu64 ": see 'tt "
                   "checkpoint list'", id);
    } else if (tt_past && c->stored) {
        error_setg(errp, "checkpoint %" PRIu64 " is the recording's: go to the "
                   "present first ('tt goto end'), and delete it there", id);
    } else if (c->id == pt.start) {
        error_setg(errp, "checkpoint %" PRIu64 " is the beginning of the run "
                   "and stays: nothing could be reached without it", id);
    } else if (!drop(id)) {
        error_setg(errp, "not enough memory to delete the checkpoint that the "
                   "VM comes from: delete another one first");
    } else {
        return true;
    }
    return false;
}
