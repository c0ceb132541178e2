/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * When a replay takes checkpoints: at sync points. There the TLB is empty in the
 * recording as well, so that a restored VM, whose TLB is empty too, goes on exactly
 * (hazard 1). Those of the recorder stay as they are; what a replay adds lives in its
 * memory. Near ones, between sync points, are tt-cpnear.c's.
 */
#include "qemu/osdep.h"
#include "travel/tt-checkpoints.h"
#include "accel-tt/tt-position.h"
#include "hw-tt/memory/tt-memory.h"
#include "io/tt-base.h"
#include "log/tt-log.h"
#include "pages/tt-page.h"
#include "pages/tt-pagestore.h"
#include "replay/tt-replay-log.h"
#include "replay/tt-stop.h"
#include "run/tt-cpstate.h"
#include "timeline/tt-timeline.h"
#include "tt-cpadopt-int.h"
#include "tt-cprestore-int.h"
#include "tt-cptable-int.h"
#include "qemu/timer.h"
#include "hw/core/cpu.h"
#include "qemu/error-report.h"

/*
 * CPU time between checkpoints: what a short movement may re-execute. They may take a
 * tenth of the time in all; one that is expensive (many pages changed) is paid off by
 * and by, with more time between them only when too many were. No movement need
 * re-execute more than the longest time.
 */
#define TT_CHECKPOINT_NS        (100 * SCALE_MS)
#define TT_CHECKPOINT_NS_MAX    (1000 * SCALE_MS)
#define TT_CHECKPOINT_SHARE     10
#define TT_CHECKPOINT_DEBT_NS   (200 * SCALE_MS)

static struct {
    int64_t last_ns;                /* CPU time, of the newest checkpoint */
    int64_t debt_ns;                /* taken by checkpoints, beyond their share */
    bool rests;                     /* the time counts from the next sync point on */
    bool tried;                     /* ... in this movement, at tried_pos */
    uint64_t tried_pos;
} due;

/* ---- for verification ---- */

static bool was_read(TtCheckpointId id, TtStatus s)
{
    const TtDiag *said = tt_pagestore_read_error(tt_cptable.pages);

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
    s = tt_pagestore_restore(tt_cptable.pages, id, tt_cptable.base, dirty, n,
                             put, opaque, NULL);
    tt_cptable_mark_dirty(dirty, n);                   /* they still are */
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
    TtStatus s = tt_pagestore_read(tt_cptable.pages, id, 0, tt_memory_n_pages(),
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

void tt_checkpoints_close(void)
{
    tt_cptable_clear();
    tt_cprestore_forget();
    memset(&due, 0, sizeof(due));
}

TtTimeline *tt_checkpoints_init(CPUState *cpu)
{
    tt_cptable.timeline = tt_timeline_new();
    tt_cptable.checkpoints = g_hash_table_new(NULL, NULL);
    if (tt_log_reader_is_window(tt_replay_reader())) {
        tt_cpadopt_window(cpu);
    } else if (tt_at_end_exit || !tt_cpadopt_stored(cpu)) {
        tt_cptable.pages = tt_pagestore_new();
        if (!tt_at_end_exit) {
            tt_cptable_take(cpu, true);
            tt_cptable_make_room();
            tt_cptable.start = tt_cptable.base;
        }
    }
    tt_cprestore_begins_at(tt_now.pos);
    tt_checkpoints_rest();
    return tt_cptable.timeline;
}

void tt_checkpoints_rest(void)
{
    due.rests = true;
    due.tried = false;
}

/* Is it time, @ran_ns after the last one? */
static bool is_due(int64_t ran_ns)
{
    return ran_ns >= TT_CHECKPOINT_NS &&
        (ran_ns >= TT_CHECKPOINT_NS_MAX ||
         due.debt_ns - ran_ns / TT_CHECKPOINT_SHARE < TT_CHECKPOINT_DEBT_NS);
}

/*
 * Called at each turn that begins at a sync point. A new checkpoint may be given up at
 * once, for lack of memory. It is not taken again at the next turn: a thread that waits
 * for the token meanwhile would end that turn, too, before it has executed an
 * instruction.
 */
TtCheckpointId tt_checkpoints_sync_point(CPUState *cpu, bool wanted, bool pinned)
{
    int64_t now = cpu_ns(), ran;
    TtCheckpointId id;
    uint64_t at;

    if (due.rests) {
        due.rests = false;
        due.last_ns = now;
    }
    ran = now - due.last_ns;
    if (tt_at_end_exit || (!wanted && !is_due(ran))) {
        return 0;
    }
    id = tt_timeline_find(tt_cptable.timeline, tt_now.pos, &at);
    if (!id || at != tt_now.pos) {
        if (due.tried && due.tried_pos == tt_now.pos) {
            return 0;
        }
        due.tried = true;
        due.tried_pos = tt_now.pos;
        tt_cptable_take(cpu, pinned);
        tt_cptable_make_room();
        id = tt_timeline_find(tt_cptable.timeline, tt_now.pos, &at);
    }
    due.last_ns = cpu_ns();
    due.debt_ns = MAX(due.debt_ns - ran / TT_CHECKPOINT_SHARE, 0) +
        due.last_ns - now;
    return id && at == tt_now.pos ? id : 0;
}

uint64_t tt_checkpoints_unwritten_since(uint64_t ram_addr, uint64_t pos)
{
    uint64_t page = tt_memory_page_of(ram_addr);

    return page == UINT64_MAX ? pos :
        tt_pagestore_unwritten_since(tt_cptable.pages, page, pos);
}

static const TtRestorable *stored_after(uint64_t pos)
{
    const TtRestorable *c, *found = NULL;
    GHashTableIter it;

    g_hash_table_iter_init(&it, tt_cptable.checkpoints);
    while (g_hash_table_iter_next(&it, NULL, (void **)&c)) {
        if (c->stored && c->pos > pos && (!found || c->pos < found->pos)) {
            found = c;
        }
    }
    return found;
}

TtPagings *tt_checkpoints_paging_after(uint64_t pos, uint64_t *at)
{
    const TtRestorable *c = stored_after(pos);
    g_autofree void *blob = NULL;
    TtCpState s;
    size_t len;

    *at = c ? c->pos : pos;
    return c && tt_pagestore_blob(tt_cptable.pages, c->id, &blob, &len, NULL) == TT_OK &&
        tt_cpstate_decode((TtBytes) { blob, len }, &s, NULL) == TT_OK ?
        tt_pagings_decode(s.paging.data, s.paging.len) : NULL;
}
