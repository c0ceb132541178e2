/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shelf: the store of a recording's checkpoints, RUN/pages and RUN/checkpoints,
 * and the thread that compares, compresses and writes (TTVM 3.3).
 *
 *   checkpointer: post a job --> busy --> thread: add, delete or move --> not busy
 *
 * The store is the thread's while a job is under way, or a window is saved, and the
 * poster's otherwise. What others want to know about it is copied out: the list in
 * tt-cplist.c, the counters one by one. The thread takes no lock of QEMU's.
 *
 * When the disk is full no more are made, and the files go, since the log needs
 * the space more; but if the user added checkpoints, those stay, and only the
 * others go. Either the thread meets the end itself, or the log's writer does and
 * asks; then the poster may be at the store, which is what `hands` is for.
 *
 * With a cap checkpoints are thinned before one is added: dense near the present,
 * sparse far away, and never those of the user or the first. When one has no room
 * all the same, the checkpoint store is *over*: the poster deletes it again, since only he
 * can say where RAM comes from then.
 */
#include "qemu/osdep.h"
#include "checkpoint/tt-cpstore.h"
#include "checkpoint/tt-cplist.h"
#include "flight/tt-save.h"
#include "io/tt-base.h"
#include "io/tt-io.h"
#include "pages/tt-pagestore.h"
#include "record/tt-flight.h"
#include "record/tt-rundir.h"
#include "run/tt-runstore.h"
#include "session/tt-checkpoint.h"
#include "session/tt-session.h"
#include "timeline/tt-timeline.h"
#include "qemu/thread.h"

#define CACHE_BYTES     (64u << 20)     /* stored pages kept for comparison */
#define BATCH_PAGES_MIN (8u << 10)      /* 32 MiB */
#define LISTED_BYTES    6               /* of a page in the journal, at most */
#define HOLES_BYTES     (256u << 20)    /* of the file, that do not matter */
#define POINTS_FEW      8               /* in a window */
#define BATCH_SHRINK    8               /* so many jobs that used a quarter */

typedef enum JobKind { JOB_ADD, JOB_DELETE, JOB_PREPARE, JOB_MOVE } JobKind;

static struct {
    TtPageStore *store;
    TtTimeline *timeline;           /* the thread's: for thinning */
    QemuThread thread;
    QemuSemaphore has_job, idle;
    QemuSemaphore has_room;         /* the log's writer waits for it */
    bool is_open, busy, quit;
    bool wants_room, gave_room;
    bool has_freed;                 /* a save that failed while room was wanted */
    bool has_shrunk;                /* the window, since somebody was told */
    uint32_t saves_begun, saves_done;   /* of tt-save.c, free-running */
    TtNodeId base;
    /* the job */
    JobKind kind;
    bool is_users;                  /* who asks what came of it */
    uint32_t posted, done;          /* free-running counts */
    uint64_t pos;
    bool has_batch;
    size_t n_pages;                 /* in the batch */
    TtCheckpointMeta meta;
    TtNodeId victim;
    size_t room_wanted;
    TtPageBatch *batch;
    unsigned n_small;               /* jobs in turn that used little of it */
    /* what came of it; set by the thread before it is done */
    bool failed;
    bool over;                      /* the newest one has no room */
    unsigned n_over;                /* so many in turn */
    bool told;                      /* of diag, by tt_cpstore_problem */
    TtDiag diag;
    struct {                        /* of the last job of the user's */
        TtStatus status;
        TtNodeId id;
        TtDiag diag;
    } result;
    uint64_t lately_bytes, lately_pages;    /* written, for how many */
    uint64_t count, bytes;
    uint64_t max_bytes;             /* of the files; 0: no cap */
} sh;

static QemuMutex hands;             /* on the store, in the thread or a poster */
static bool has_hands;

/* ---- what others may know: see tt-cplist.h, too ---- */

/* The new one is on disk, or will be. */
static void enter(TtNodeId id)
{
    TtCheckpointInfo info;

    if (tt_pagestore_info(sh.store, id, &info)) {
        tt_timeline_add(sh.timeline, id, info.pos,
                        info.flags & TT_CHECKPOINT_PINNED);
        tt_cplist_show(sh.store, id);
        tt_flight_enter(id);
    }
}

static void drop(TtNodeId id)
{
    tt_pagestore_delete(sh.store, id);
    tt_flight_forget(id);
    if (tt_cplist_remove(sh.store, id)) {
        tt_timeline_remove(sh.timeline, id);
    }
}

static void count(void)
{
    TtPageStoreStats st = { 0 };

    if (sh.store) {
        st = tt_pagestore_stats(sh.store);
    }
    qatomic_set(&sh.bytes, st.stored_bytes + st.journal_bytes);
    qatomic_set(&sh.count, sh.store ? tt_pagestore_count(sh.store) : 0);
}

/* ---- the thread ---- */

/* A flight recorder moves its window. The log before it goes when the disk has what
 * a replay of the rest needs. */
static TtStatus move_window(void)
{
    TtStatus s = TT_OK;
    bool any = false;
    TtNodeId id;

    while ((id = tt_flight_surplus())) {
        drop(id);
        any = true;
    }
    if (any) {
        s = tt_pagestore_flush(sh.store, &sh.diag);
    }
    if (s == TT_OK && tt_flight_has_spent() &&
        !tt_pagestore_stats(sh.store).is_behind) {
        s = tt_pagestore_sync(sh.store, &sh.diag);
        if (s == TT_OK) {
            tt_flight_drop_parts();
        }
    }
    if (s == TT_OK) {
        tt_pagestore_renew(sh.store, HOLES_BYTES);
    }
    return s;
}

/* The disk is full: of a window, what the newest checkpoint needs stays that is on
 * disk, whatever a flush could not write. */
static bool shrink_window(void)
{
    TtCheckpointInfo info;
    TtDiag unused;
    TtNodeId id, next;
    bool any = false;

    while ((id = tt_flight_oldest(&next)) &&
           tt_pagestore_info(sh.store, next, &info) && info.is_flushed) {
        drop(id);
        any = true;
    }
    if (tt_pagestore_sync(sh.store, &unused) == TT_OK) {
        any |= tt_flight_drop_parts();
    }
    if (any) {
        qatomic_set(&sh.has_shrunk, true);
    }
    return any && tt_pagestore_flush(sh.store, &unused) == TT_OK;
}

static void give_way(const char *why)
{
    g_autofree char *pages = g_build_filename(tt_session.dir, "pages", NULL);
    g_autofree char *points = g_build_filename(tt_session.dir, "checkpoints", NULL);

    tt_rundir_has_points(false);
    if (tt_rundir_is_ours()) {
        unlink(points);
        unlink(pages);
    }
    tt_pagestore_free(sh.store);
    sh.store = NULL;
    tt_cplist_clear();
    tt_fail(&sh.diag, TT_ERR_NOSPACE, "%s", why);
    qatomic_set(&sh.failed, true);
}

/* The log of a window is nothing without them. */
static bool may_give_way(void)
{
    return tt_flight_oldest_part() <= 1;
}

static bool has_pinned(void)
{
    g_autoptr(GArray) all = tt_cplist_list();
    bool any = false;

    for (unsigned i = 0; i < all->len; i++) {
        any |= g_array_index(all, TtCheckpointDesc, i).pinned;
    }
    return any;
}

/* All but the first, the user's, and the one that RAM comes from. */
static bool drop_automatic(void)
{
    size_t n = tt_pagestore_count(sh.store);
    g_autofree TtCheckpointInfo *infos = g_new0(TtCheckpointInfo, n + 1);
    bool any = false;

    n = tt_pagestore_list(sh.store, infos, n);
    for (size_t i = 1; i < n; i++) {
        if (!(infos[i].flags & TT_CHECKPOINT_PINNED) &&
            infos[i].id != sh.base) {
            drop(infos[i].id);
            any = true;
        }
    }
    return any;
}

/* The disk is full, and the user wants some of them. Was space given back? */
static bool keep_pinned(void)
{
    TtDiag unused;
    bool any = drop_automatic() &&
        tt_pagestore_flush(sh.store, &unused) == TT_OK;

    tt_fail(&sh.diag, TT_ERR_NOSPACE, "the disk is full; those that you added "
            "stay");
    qatomic_set(&sh.failed, true);
    return any;
}

/* Takes a while: not in a pause. */
static void make_batch(size_t n)
{
    if (!sh.batch || tt_pagebatch_room(sh.batch) < n) {
        tt_pagebatch_free(sh.batch);
        sh.batch = tt_pagebatch_new(MAX(n, BATCH_PAGES_MIN));
        sh.n_small = 0;
    }
}

static void empty_batch(void)
{
    size_t used = tt_pagebatch_count(sh.batch), cap;

    tt_pagebatch_clear(sh.batch);
    cap = tt_pagebatch_room(sh.batch);
    sh.n_small = cap > BATCH_PAGES_MIN && used < cap / 4 ? sh.n_small + 1 : 0;
    if (sh.n_small == BATCH_SHRINK) {
        tt_pagebatch_free(sh.batch);
        sh.batch = NULL;
        make_batch(cap / 2);
    }
}

static const char disk_is_full[] =
    "the disk is full, and what they took is given back to the log";

/* What the batch will take, by what others took lately; many a page that was
 * written is as it was, or as another. */
static uint64_t expected_bytes(void)
{
    uint64_t each = (sh.lately_bytes << 8) / MAX(sh.lately_pages, 1);

    return (tt_pagebatch_count(sh.batch) * (each + each / 2) >> 8) +
        tt_pagebatch_count(sh.batch) * LISTED_BYTES + sh.meta.blob_bytes;
}

static void note_growth(uint64_t before, size_t pages)
{
    uint64_t after = tt_pagestore_stats(sh.store).pages_file_bytes;

    sh.lately_bytes = sh.lately_bytes / 4 * 3 + after - MIN(before, after);
    sh.lately_pages = sh.lately_pages / 4 * 3 + pages;
}

/*
 * Which one is missed least; 0: none. A window wants them evenly spread, since it
 * begins with the oldest and that goes; when they are few, it rather gets shorter.
 */
static TtNodeId victim(void)
{
    TtNodeId id, next;

    if (!tt_flight_is_on()) {
        id = tt_timeline_thin(sh.timeline, sh.pos, 0);
    } else if (tt_pagestore_count(sh.store) > POINTS_FEW) {
        id = tt_timeline_thin(sh.timeline, sh.pos,
                              sh.pos - MIN(tt_flight_start(), sh.pos));
    } else {
        id = tt_flight_oldest(&next);
    }
    return id != sh.base ? id : 0;
}

static void make_space(uint64_t bytes)
{
    TtNodeId id;
    bool thinned = false;

    while (tt_pagestore_wants_thinning(sh.store, bytes) && (id = victim())) {
        drop(id);
        thinned = true;
    }
    if (!thinned || tt_pagestore_flush(sh.store, &sh.diag) == TT_OK) {
        tt_pagestore_make_room(sh.store, bytes, NULL);
    }
}

static TtStatus do_add(void)
{
    TtStatus s = TT_OK;

    if (sh.has_batch) {
        sh.n_pages = tt_pagebatch_count(sh.batch);
        make_space(expected_bytes());
        s = tt_pagestore_add_batch(sh.store, sh.pos, sh.base, sh.batch,
                                   &sh.meta, &sh.base);
        empty_batch();
    }
    g_free((void *)sh.meta.blob);
    if (s != TT_OK) {
        tt_fail(&sh.diag, s, "%s", tt_status_name(s));
        qatomic_set(&sh.failed, true);
    }
    return s;
}

/* The first one is not to be deleted. */
static void advise(void)
{
    g_autoptr(GArray) all = tt_cplist_list();

    if (sh.max_bytes && all->len > 1) {
        tt_fail(&sh.diag, TT_ERR_LIMIT, "max-size leaves no room for this "
                "checkpoint: delete others, or record with more");
    }
}

static TtStatus flush(void)
{
    uint64_t before = tt_pagestore_stats(sh.store).pages_file_bytes;
    TtStatus s = tt_pagestore_flush(sh.store, &sh.diag);
    bool first = tt_pagestore_count(sh.store) == 1;

    if (s == TT_ERR_NOSPACE && tt_flight_is_on() && shrink_window()) {
        s = TT_OK;                  /* with what was to be written */
    }
    if (s == TT_ERR_NOSPACE && may_give_way()) {
        if (has_pinned()) {
            keep_pinned();
        } else {
            give_way(disk_is_full);
        }
        return s;
    }
    if (s == TT_ERR_LIMIT && first && may_give_way()) {
        give_way("max-size is too small for any");
        return s;
    }
    qatomic_set(&sh.over, s == TT_ERR_LIMIT);
    if (s == TT_ERR_LIMIT) {
        advise();
        sh.n_over++;
    } else if (s < 0) {             /* it says so once, and tries again later */
        qatomic_set(&sh.told, false);
    }
    if (sh.kind == JOB_ADD && s != TT_ERR_LIMIT) {
        sh.n_over = 0;
        enter(sh.base);
        if (sh.has_batch) {
            note_growth(before, sh.n_pages);
        }
        if (s == TT_OK) {
            s = move_window();
        }
    }
    return s;
}

static TtStatus carry_out(void)
{
    TtStatus s = TT_OK;

    if (!sh.store) {                /* the log took it, just now */
        if (sh.kind == JOB_ADD) {
            g_free((void *)sh.meta.blob);
            if (sh.has_batch) {
                tt_pagebatch_clear(sh.batch);
            }
        }
        return TT_ERR_NOSPACE;
    }
    if (sh.kind == JOB_PREPARE) {
        make_batch(sh.room_wanted);
        return TT_OK;
    }
    if (sh.kind == JOB_MOVE) {
        return move_window();
    }
    if (sh.kind == JOB_ADD) {
        s = do_add();
        return s == TT_OK ? flush() : s;
    }
    drop(sh.victim);
    s = flush();
    if (s == TT_OK && sh.n_over) {  /* what was written in vain goes */
        tt_pagestore_make_room(sh.store, UINT32_MAX, NULL);
    }
    return s;
}

/* Others may post the next job before the user's has been asked about. */
static void note_result(TtStatus s)
{
    if (sh.is_users) {
        sh.result.status = s;
        sh.result.id = sh.base;
        sh.result.diag = sh.diag;
    }
}

static void do_job(void)
{
    note_result(carry_out());
    count();
    qatomic_store_release(&sh.done, sh.done + 1);
    qatomic_store_release(&sh.busy, false);
    qemu_sem_post(&sh.idle);
}

/* Not where a save that failed has just given back what it took. */
static void do_make_room(void)
{
    qemu_mutex_lock(&hands);
    sh.gave_room = sh.store || sh.has_freed;
    if (sh.has_freed) {
        sh.has_freed = false;       /* if that is too little, the next time */
    } else if (sh.store && tt_flight_is_on()) {
        sh.gave_room = shrink_window();
        count();
    } else if (sh.store && has_pinned()) {
        sh.gave_room = keep_pinned();
        count();
    } else if (sh.store) {
        give_way(disk_is_full);
        count();
    }
    qemu_mutex_unlock(&hands);
    qatomic_set(&sh.wants_room, false);
    qemu_sem_post(&sh.has_room);
}

bool tt_cpstore_is_saving(void)
{
    return qatomic_load_acquire(&sh.saves_done) != qatomic_read(&sh.saves_begun);
}

static void flush_behind(void)
{
    TtDiag unused;

    if (sh.store && tt_pagestore_stats(sh.store).is_behind) {
        tt_pagestore_flush(sh.store, &unused);
    }
}

static void do_save(void)
{
    bool ok;

    flush_behind();
    ok = tt_save_carry_out();       /* the next one may be asked for before it is back */
    sh.has_freed = !ok && qatomic_read(&sh.wants_room);
    qatomic_store_release(&sh.saves_done, sh.saves_done + 1);
    qemu_sem_post(&sh.idle);
}

void tt_cpstore_save(void)
{
    if (!qatomic_load_acquire(&sh.is_open)) {
        tt_save_carry_out();            /* no thread, no checkpoints */
        return;
    }
    qatomic_set(&sh.saves_begun, sh.saves_begun + 1);
    qemu_sem_post(&sh.has_job);
}

/* What is wanted first comes before a job that was posted later. */
static void *store_thread(void *opaque)
{
    while (!qatomic_read(&sh.quit) || tt_cpstore_is_saving()) {
        qemu_sem_wait(&sh.has_job);
        if (qatomic_read(&sh.wants_room)) {
            do_make_room();
        } else if (tt_cpstore_is_saving()) {
            do_save();
        } else if (qatomic_load_acquire(&sh.busy)) {
            do_job();
        }
    }
    return NULL;
}

bool tt_cpstore_make_room(void)
{
    if (!qatomic_load_acquire(&sh.is_open) || qatomic_read(&sh.failed)) {
        return false;
    }
    qatomic_set(&sh.wants_room, true);
    qemu_sem_post(&sh.has_job);
    qemu_sem_wait(&sh.has_room);
    return sh.gave_room;
}

/* ---- jobs ---- */

bool tt_cpstore_is_busy(void)
{
    return qatomic_load_acquire(&sh.busy) || tt_cpstore_is_saving();
}

void tt_cpstore_wait(void)
{
    while (tt_cpstore_is_busy()) {
        qemu_sem_timedwait(&sh.idle, 100);
    }
}

static uint32_t post(JobKind kind, bool is_users)
{
    assert(!tt_cpstore_is_busy());
    sh.kind = kind;
    sh.is_users = is_users;
    qatomic_set(&sh.busy, true);
    qemu_sem_post(&sh.has_job);
    return ++sh.posted;
}

TtPageBatch *tt_cpstore_batch(void)
{
    assert(!tt_cpstore_is_busy());
    return sh.batch;
}

size_t tt_cpstore_room(void)
{
    assert(!tt_cpstore_is_busy());
    return sh.batch ? tt_pagebatch_room(sh.batch) : 0;
}

uint32_t tt_cpstore_prepare(size_t n)
{
    sh.room_wanted = n;
    return post(JOB_PREPARE, false);
}

uint32_t tt_cpstore_move(void)
{
    return post(JOB_MOVE, false);
}

uint32_t tt_cpstore_add(uint64_t pos, bool has_batch,
                      const TtCheckpointMeta *meta)
{
    sh.pos = pos;
    sh.has_batch = has_batch;
    sh.meta = *meta;
    return post(JOB_ADD, meta->flags & TT_CHECKPOINT_PINNED);
}

uint32_t tt_cpstore_delete(TtNodeId id, bool is_users)
{
    sh.victim = id;
    return post(JOB_DELETE, is_users);
}

bool tt_cpstore_is_done(uint32_t job)
{
    return (int32_t)(qatomic_load_acquire(&sh.done) - job) >= 0;
}

TtStatus tt_cpstore_result(TtNodeId *id, TtDiag *diag)
{
    *id = sh.result.id;
    *diag = sh.result.diag;
    return sh.result.status;
}

unsigned tt_cpstore_is_over(void)
{
    return qatomic_read(&sh.over) ? sh.n_over : 0;
}

bool tt_cpstore_has_failed(const char **why)
{
    *why = sh.diag.text;
    return qatomic_read(&sh.failed);
}

const char *tt_cpstore_problem(void)
{
    bool is_new = sh.diag.status && !qatomic_read(&sh.told);

    qatomic_set(&sh.told, true);
    return is_new ? sh.diag.text : NULL;
}

bool tt_cpstore_has_shrunk(void)
{
    return qatomic_xchg(&sh.has_shrunk, false);
}

TtPageStore *tt_cpstore_take(void)
{
    assert(!tt_cpstore_is_busy());
    qemu_mutex_lock(&hands);
    return sh.store;
}

void tt_cpstore_release(void)
{
    qemu_mutex_unlock(&hands);
}

TtNodeId tt_cpstore_base(void)
{
    return sh.base;
}

void tt_cpstore_set_base(TtNodeId id)
{
    assert(!tt_cpstore_is_busy());
    sh.base = id;
}

uint64_t tt_cpstore_count(void)
{
    return qatomic_read(&sh.count);
}

uint64_t tt_cpstore_bytes(void)
{
    return qatomic_read(&sh.bytes);
}

/* ---- start and end ---- */

static TtIo *create(const char *name, TtDiag *diag)
{
    g_autofree char *path = g_build_filename(tt_session.dir, name, NULL);
    TtIo *io;

    return tt_io_posix_create(path, &io, diag) == TT_OK ? io : NULL;
}

static bool open_store(uint64_t max_bytes, TtDiag *diag)
{
    TtPageStoreOptions opt = {
        .cache_bytes = CACHE_BYTES, .max_bytes = max_bytes,
    };

    memcpy(opt.uuid, tt_session.manifest.uuid, sizeof(opt.uuid));
    opt.pages = create("pages", diag);
    opt.checkpoints = opt.pages ? create("checkpoints", diag) : NULL;
    if (!opt.checkpoints) {
        if (opt.pages) {
            tt_io_close(opt.pages);
        }
        return false;
    }
    tt_runstore_set_origin(&opt, &tt_session.manifest, tt_session.dir);
    return tt_pagestore_create(&opt, &sh.store, diag) == TT_OK;
}

void tt_cpstore_forget(void)
{
    assert(!sh.is_open);
    if (!has_hands) {
        qemu_mutex_init(&hands);
        has_hands = true;
    }
    tt_cplist_clear();
    memset(&sh, 0, sizeof(sh));
}

bool tt_cpstore_open(uint64_t max_bytes, TtDiag *diag)
{
    tt_cpstore_forget();
    if (!open_store(max_bytes, diag)) {
        return false;
    }
    sh.timeline = tt_timeline_new();
    sh.max_bytes = max_bytes;
    sh.lately_bytes = 512 << 10;    /* a first guess */
    sh.lately_pages = 1 << 10;
    qemu_sem_init(&sh.has_job, 0);
    qemu_sem_init(&sh.idle, 0);
    qemu_sem_init(&sh.has_room, 0);
    qemu_thread_create(&sh.thread, "tt-cpstore", store_thread, NULL,
                       QEMU_THREAD_JOINABLE);
    qatomic_store_release(&sh.is_open, true);
    return true;
}

bool tt_cpstore_is_open(void)
{
    return sh.is_open;
}

void tt_cpstore_close(void)
{
    if (!sh.is_open) {
        return;
    }
    tt_cpstore_wait();
    qatomic_set(&sh.quit, true);
    qemu_sem_post(&sh.has_job);
    qemu_thread_join(&sh.thread);
    flush_behind();
    tt_pagestore_free(sh.store);
    sh.store = NULL;
    tt_timeline_free(sh.timeline);
    sh.timeline = NULL;
    tt_pagebatch_free(sh.batch);
    sh.batch = NULL;
    qemu_sem_destroy(&sh.has_job);
    qemu_sem_destroy(&sh.idle);
    qemu_sem_destroy(&sh.has_room);
    sh.is_open = false;
}
