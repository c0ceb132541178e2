/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Restores checkpoints of a replay: the VM becomes that of one of them, or another is
 * taken when this one turns out to be damaged.
 */
#include "qemu/osdep.h"
#include "travel/tt-cprestore.h"
#include "accel-tt/tt-branch-trace.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "hw-tt/memory/tt-memory.h"
#include "hw-tt/screen/tt-gpu.h"
#include "io/tt-base.h"
#include "log/tt-sched.h"
#include "pages/tt-page.h"
#include "pages/tt-pagestore.h"
#include "replay/tt-replay-exact.h"
#include "replay/tt-replay-log.h"
#include "run/tt-cpstate.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "timeline/tt-timeline.h"
#include "tt-cprestore-int.h"
#include "tt-cptable-int.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "qemu/error-report.h"

static struct {
    bool is_lost;                   /* a restore has begun and has not succeeded */
    uint64_t restored_at;           /* of the last one that has */
    bool restored_near;             /* and that was a near one */
} last;

/* For tests: memory is short in every other restore, from the first one on. */
static struct {
    uint64_t nth;                   /* allocation of the page store; 0: never */
    bool once;                      /* that one alone */
    bool was_short;                 /* in the restore before */
} short_memory;

/* The state of a stored checkpoint; TT_ERR_NOMEM, or *@why says what is wrong with
 * it. */
TtStatus tt_cprestore_load(TtRestorable *c, char **why)
{
    g_autofree void *blob = NULL;
    Error *err = NULL;
    TtCpState s;
    TtStatus status;
    TtDiag diag;
    size_t len;

    if (c->loaded) {
        return TT_OK;
    }
    status = tt_pagestore_blob(tt_cptable.pages, c->id, &blob, &len, &diag);
    if (status == TT_OK) {
        status = tt_cpstate_decode((TtBytes) { blob, len }, &s, &diag);
    }
    if (status != TT_OK) {
        *why = g_strdup(diag.text);
        return status;
    }
    if (!tt_memory_map_load(&c->map, &s, &err)) {
        *why = g_strdup(error_get_pretty(err));
        error_free(err);
        return TT_ERR_MISMATCH;
    }
    c->cursor = (TtCursor) { .segment = s.segment, .index = s.index };
    c->cpu_state = g_byte_array_new();
    g_byte_array_append(c->cpu_state, s.cpu.data, s.cpu.len);
    c->halted = s.halted;
    c->output_hash = s.output_hash;
    c->events = s.events;
    c->loaded = c->untried = true;
    return TT_OK;
}

/* The data of this checkpoint can be read. Can it be put, too? */
void tt_cprestore_put_nowhere(void *opaque, uint64_t page, const void *bytes)
{
    bool *is_beyond = opaque;

    *is_beyond |= page >= tt_memory_n_pages();
}

static void forget(TtRestorable *c)
{
    tt_timeline_remove(tt_cptable.timeline, c->id);
    g_hash_table_remove(tt_cptable.checkpoints, GUINT_TO_POINTER(c->id));
    tt_cptable_free(c);
}

/* Could a near one still be restored? */
static bool is_stale(const TtRestorable *c)
{
    return c->tlbs && c->map_changes != tt_memory_map_changes();
}

/* A checkpoint that cannot be used: the movement takes another one. Of the start
 * there is none. */
static TtRestored discard(TtRestorable *c, const char *why)
{
    if (c->id == tt_cptable.start) {
        error_report("tt: the start cannot be restored, the VM stays at position "
                     "%" PRIu64 ": %s: move 'pages' and 'checkpoints' out of "
                     "'%s', and replay it again without them", tt_now.pos, why,
                     tt_printable(tt_session.dir));
        return TT_RESTORE_NONE;
    }
    warn_report("tt: checkpoint %u cannot be used: %s", c->id, why);
    if (last.is_lost) {
        tt_timeline_lost(tt_cptable.timeline);
    }
    forget(c);
    return TT_RESTORE_ANOTHER;
}

/*
 * Can the vCPUs of @c be loaded? This is tried once for a checkpoint from a file, before
 * RAM is changed. The try empties the TLB, which belongs to the guest's history, so the
 * present state is lost unless it is that of @c: everything else was found right before.
 */
static bool can_be_loaded(TtRestorable *c, char **why)
{
    g_autoptr(GByteArray) now = NULL;
    bool halted = tt_vcpus_at(0)->halted;
    Error *err = NULL;

    if (!c->untried) {
        return true;
    }
    last.is_lost |= tt_now.pos != c->pos;
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
    bool did = tt_cptable_thin(keep);

    tt_cptable_mark_dirty(*dirty, *n);
    g_free(*dirty);
    *dirty = tt_memory_collect_dirty(n);
    return did;
}

/* Puts the pages that differ from @c; again, from the first one on, when thinning made
 * room for a try that lacked memory. *@any: one was put. */
static TtStatus put_pages(TtRestorable *c, uint64_t **dirty, size_t *n, TtPagePut put,
                          void *opaque, bool *any)
{
    TtStatus s;
    size_t n_put;

    do {
        n_put = 0;
        s = tt_pagestore_restore(tt_cptable.pages, c->id, tt_cptable.base, *dirty, *n,
                                 put, opaque, &n_put);
        *any |= n_put > 0;
    } while (s == TT_ERR_NOMEM && thin_again(c->id, dirty, n));
    return s;
}

/*
 * RAM becomes that of @c. A failure changes nothing, or leaves @is_lost: what comes
 * from files is read, and its hashes compared, before the first page is put.
 */
static TtStatus restore_ram(TtRestorable *c, char **why)
{
    g_autofree uint64_t *dirty = NULL;
    bool is_beyond = false, any = false;
    TtStatus s = TT_OK;
    size_t n;

    dirty = tt_memory_collect_dirty(&n);
    if (tt_cptable.has_files) {
        s = put_pages(c, &dirty, &n, tt_cprestore_put_nowhere, &is_beyond, &any);
        any = false;
    }
    if (is_beyond) {
        *why = g_strdup("it has pages where the VM has no RAM");
        s = TT_ERR_MISMATCH;
    }
    if (s == TT_OK && !can_be_loaded(c, why)) {
        s = TT_ERR_FORMAT;
    }
    if (s == TT_OK) {
        s = put_pages(c, &dirty, &n, tt_memory_put_page, NULL, &any);
        last.is_lost |= s != TT_OK && any;
    }
    if (s != TT_OK) {
        tt_cptable_mark_dirty(dirty, n);
    }
    return s;
}

static void begin_short_memory(void)
{
    short_memory.was_short = !short_memory.was_short;
    if (!short_memory.nth || !short_memory.was_short) {
        return;
    }
    if (short_memory.once) {
        tt_pagestore_fail_one_alloc(tt_cptable.pages, short_memory.nth);
    } else {
        tt_pagestore_fail_alloc(tt_cptable.pages, short_memory.nth);
    }
}

void tt_checkpoints_set_short_memory(uint64_t nth, bool once)
{
    short_memory.nth = nth;
    short_memory.once = once;
}

TtRestored tt_cprestore_try(CPUState *cpu, TtCheckpointId id)
{
    TtRestorable *c = tt_cptable_find(id);
    g_autofree uint64_t *dirty = NULL;
    g_autofree char *why = NULL;
    Error *err = NULL;
    TtDiag diag;
    TtStatus s;
    size_t n;

    if (!c) {                               /* it could not be used before */
        return TT_RESTORE_ANOTHER;
    }
    if (is_stale(c)) {
        if (!tt_cptable_drop(id)) {
            forget(c);
        }
        return TT_RESTORE_ANOTHER;
    }
    begin_short_memory();
    s = tt_cprestore_load(c, &why);
    if (s == TT_OK) {
        s = restore_ram(c, &why);
    }
    tt_pagestore_fail_alloc(tt_cptable.pages, 0);
    if (!tt_past && (s == TT_OK || last.is_lost)) {
        tt_trace_end_and_tell();        /* history jumps */
    }
    if (s == TT_ERR_NOMEM) {
        return TT_RESTORE_NOMEM;
    }
    if (s != TT_OK) {
        const TtDiag *said = tt_pagestore_read_error(tt_cptable.pages);

        return discard(c, why ?: said ? said->text : tt_status_name(s));
    }
    last.is_lost = true;
    tt_memory_map_restore(&c->map);
    tt_gpu_restore(c->screen);
    dirty = tt_memory_collect_dirty(&n);    /* what the restore itself wrote */
    tt_cptable.base = c->id;
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
    tt_session.finished = last.is_lost = false;
    last.restored_at = c->pos;
    last.restored_near = c->tlbs;
    tt_vcpus_do_work();                     /* a changed memory map */
    tt_vcpus_flush();
    if (c->tlbs) {
        tt_backend->load_tlbs(c->tlbs);
    }
    if (tt_sched_seek(tt_replay_sched(), c->cursor, &diag) != TT_OK) {
        tt_replay_damaged(&diag);
    }
    return TT_RESTORED;
}

/* The movement ends where it is, which is not anything of the run's any more. */
static void stay_lost(void)
{
    TtDiag diag;

    tt_fail(&diag, TT_ERR_FORMAT, "the state at this position was lost when a checkpoint "
            "could not be restored: go to another position");
    tt_replayer.diverged = false;            /* what was wrong with it is gone, too */
    tt_replay_damaged(&diag);
}

TtRestored tt_checkpoints_restore(CPUState *cpu, TtCheckpointId id)
{
    TtRestored how = tt_cprestore_try(cpu, id);

    if (last.is_lost && (how == TT_RESTORE_NONE || how == TT_RESTORE_NOMEM)) {
        stay_lost();
    }
    return how;
}

bool tt_checkpoints_is_lost(void)
{
    return last.is_lost;
}

bool tt_checkpoints_restored_near(void)
{
    return last.restored_near;
}

uint64_t tt_checkpoints_restored_at(void)
{
    return last.restored_at;
}

void tt_cprestore_begins_at(uint64_t pos)
{
    last.restored_at = pos;
}

void tt_cprestore_forget(void)
{
    memset(&last, 0, sizeof(last));
}
