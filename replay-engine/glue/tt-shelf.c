/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shelf: the store of a recording's checkpoints, RUN/pages and RUN/checkpoints,
 * and the thread that compares, compresses and writes (TTVM 3.3).
 *
 *   keeper: post a job --> busy --> thread: add or delete, flush --> not busy
 *
 * The store is the thread's while a job is under way and the poster's otherwise.
 * What others want to know about it is copied out: `points` under a lock, the
 * counters one by one. The thread takes no lock of QEMU's.
 *
 * When the disk is full the files go, since the log needs the space more. Either
 * the thread meets the end itself, or the log's writer does and asks; then the
 * poster may be at the store, which is what `hands` is for.
 */
#include "tt-shelf.h"
#include "qemu/thread.h"

#define CACHE_BYTES     (64u << 20)     /* stored pages kept for comparison */
#define BATCH_PAGES_MIN (8u << 10)      /* 32 MiB */
#define BATCH_SHRINK    8               /* so many jobs that used a quarter */

typedef enum JobKind { JOB_ADD, JOB_DELETE, JOB_PREPARE } JobKind;

static struct {
    TtPageStore *store;
    QemuThread thread;
    QemuSemaphore has_job, idle;
    QemuSemaphore has_room;         /* the log's writer waits for it */
    bool is_open, busy, quit;
    bool wants_room;
    TtNodeId base;
    /* the job */
    JobKind kind;
    uint32_t posted, done;          /* free-running counts */
    uint64_t pos;
    bool has_batch;
    TtCheckpointMeta meta;
    TtNodeId victim;
    size_t room_wanted;
    TtPageBatch *batch;
    unsigned n_small;               /* jobs in turn that used little of it */
    /* what came of it; set by the thread before it is done */
    bool failed;
    bool told;                      /* of diag, by tt_shelf_trouble */
    TtDiag diag;
    struct {                        /* of the last job of the user's */
        TtStatus status;
        TtNodeId id;
        TtDiag diag;
    } result;
    uint64_t count, bytes;
    GArray *points;                 /* of TtPoint, by position */
} sh;

static QemuMutex points_lock;
static QemuMutex hands;             /* on the store, in the thread or a poster */
static bool has_lock;

/* ---- what others may know ---- */

static int by_position(const void *a, const void *b)
{
    const TtPoint *x = a, *y = b;

    return x->pos < y->pos ? -1 : x->pos > y->pos;
}

static TtPoint *find_point(TtNodeId id, unsigned *index)
{
    for (unsigned i = 0; i < sh.points->len; i++) {
        TtPoint *p = &g_array_index(sh.points, TtPoint, i);

        if (p->id == id) {
            *index = i;
            return p;
        }
    }
    return NULL;
}

/* Tells of @id as it is now. */
static void show(TtNodeId id)
{
    TtCheckpointInfo info;
    TtPoint *p, new;
    unsigned i;

    if (!tt_pagestore_info(sh.store, id, &info)) {
        return;
    }
    new = (TtPoint) {
        .id = id, .pos = info.pos, .pages = info.n_pages, .stored = true,
        .pinned = info.flags & TT_CHECKPOINT_PINNED,
        .full = info.flags & TT_CHECKPOINT_FULL,
        .host_ns = info.host_ns,
        .bytes = info.stored_bytes + info.blob_bytes,
    };
    qemu_mutex_lock(&points_lock);
    p = find_point(id, &i);
    if (p) {
        *p = new;
    } else {
        g_array_append_val(sh.points, new);
        g_array_sort(sh.points, by_position);
    }
    qemu_mutex_unlock(&points_lock);
}

/* Takes @id off the list; its pages go to the one behind it. */
static void unshow(TtNodeId id)
{
    TtNodeId next = 0;
    unsigned i;

    qemu_mutex_lock(&points_lock);
    if (find_point(id, &i)) {
        g_array_remove_index(sh.points, i);
        if (i < sh.points->len) {
            next = g_array_index(sh.points, TtPoint, i).id;
        }
    }
    qemu_mutex_unlock(&points_lock);
    if (next) {
        show(next);
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

/* The disk is full: the log needs the space more. */
static void give_way(void)
{
    g_autofree char *pages = g_build_filename(tt.dir, "pages", NULL);
    g_autofree char *points = g_build_filename(tt.dir, "checkpoints", NULL);

    unlink(points);
    unlink(pages);
    tt_pagestore_free(sh.store);
    sh.store = NULL;
    qemu_mutex_lock(&points_lock);
    g_array_set_size(sh.points, 0);
    qemu_mutex_unlock(&points_lock);
    tt_fail(&sh.diag, TT_ERR_NOSPACE, "the disk is full, and what they took is "
            "given back to the log");
    qatomic_set(&sh.failed, true);
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

static TtStatus do_add(void)
{
    TtStatus s = TT_OK;

    if (sh.has_batch) {
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
    if (sh.kind == JOB_DELETE) {
        tt_pagestore_delete(sh.store, sh.victim);
        unshow(sh.victim);
    } else {
        s = do_add();
    }
    if (s != TT_OK) {
        return s;
    }
    s = tt_pagestore_flush(sh.store, &sh.diag);
    if (s == TT_ERR_NOSPACE) {
        give_way();
    } else {
        if (s < 0) {                /* it says so once, and tries again later */
            qatomic_set(&sh.told, false);
        }
        if (sh.kind == JOB_ADD) {
            show(sh.base);
        }
    }
    return s;
}

/* Others may post the next job before the user's has been asked about. */
static void note_result(TtStatus s)
{
    if (sh.kind == JOB_DELETE ||
        (sh.kind == JOB_ADD && sh.meta.flags & TT_CHECKPOINT_PINNED)) {
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

static void do_make_room(void)
{
    qemu_mutex_lock(&hands);
    if (sh.store) {
        give_way();
        count();
    }
    qemu_mutex_unlock(&hands);
    qatomic_set(&sh.wants_room, false);
    qemu_sem_post(&sh.has_room);
}

static void *shelf_thread(void *opaque)
{
    while (!qatomic_read(&sh.quit)) {
        qemu_sem_wait(&sh.has_job);
        if (qatomic_read(&sh.wants_room)) {
            do_make_room();
        } else if (qatomic_load_acquire(&sh.busy)) {
            do_job();
        }
    }
    return NULL;
}

bool tt_shelf_make_room(void)
{
    if (!qatomic_load_acquire(&sh.is_open) || qatomic_read(&sh.failed)) {
        return false;
    }
    qatomic_set(&sh.wants_room, true);
    qemu_sem_post(&sh.has_job);
    qemu_sem_wait(&sh.has_room);
    return true;
}

/* ---- jobs ---- */

bool tt_shelf_is_busy(void)
{
    return qatomic_load_acquire(&sh.busy);
}

void tt_shelf_wait(void)
{
    while (tt_shelf_is_busy()) {
        qemu_sem_timedwait(&sh.idle, 100);
    }
}

static uint32_t post(JobKind kind)
{
    assert(!tt_shelf_is_busy());
    sh.kind = kind;
    qatomic_set(&sh.busy, true);
    qemu_sem_post(&sh.has_job);
    return ++sh.posted;
}

TtPageBatch *tt_shelf_batch(void)
{
    assert(!tt_shelf_is_busy());
    return sh.batch;
}

size_t tt_shelf_room(void)
{
    assert(!tt_shelf_is_busy());
    return sh.batch ? tt_pagebatch_room(sh.batch) : 0;
}

uint32_t tt_shelf_prepare(size_t n)
{
    sh.room_wanted = n;
    return post(JOB_PREPARE);
}

uint32_t tt_shelf_add(uint64_t pos, bool has_batch,
                      const TtCheckpointMeta *meta)
{
    sh.pos = pos;
    sh.has_batch = has_batch;
    sh.meta = *meta;
    return post(JOB_ADD);
}

uint32_t tt_shelf_delete(TtNodeId id)
{
    sh.victim = id;
    return post(JOB_DELETE);
}

bool tt_shelf_is_done(uint32_t job)
{
    return (int32_t)(qatomic_load_acquire(&sh.done) - job) >= 0;
}

TtStatus tt_shelf_result(TtNodeId *id, TtDiag *diag)
{
    *id = sh.result.id;
    *diag = sh.result.diag;
    return sh.result.status;
}

bool tt_shelf_has_failed(const char **why)
{
    *why = sh.diag.text;
    return qatomic_read(&sh.failed);
}

const char *tt_shelf_trouble(void)
{
    bool is_new = sh.diag.status && !qatomic_read(&sh.told);

    qatomic_set(&sh.told, true);
    return is_new ? sh.diag.text : NULL;
}

TtPageStore *tt_shelf_take(void)
{
    assert(!tt_shelf_is_busy());
    qemu_mutex_lock(&hands);
    return sh.store;
}

void tt_shelf_release(void)
{
    qemu_mutex_unlock(&hands);
}

TtNodeId tt_shelf_base(void)
{
    return sh.base;
}

void tt_shelf_set_base(TtNodeId id)
{
    assert(!tt_shelf_is_busy());
    sh.base = id;
}

GArray *tt_shelf_list(void)
{
    GArray *list = g_array_new(false, false, sizeof(TtPoint));

    if (sh.points) {
        qemu_mutex_lock(&points_lock);
        g_array_append_vals(list, sh.points->data, sh.points->len);
        qemu_mutex_unlock(&points_lock);
    }
    return list;
}

uint64_t tt_shelf_count(void)
{
    return qatomic_read(&sh.count);
}

uint64_t tt_shelf_bytes(void)
{
    return qatomic_read(&sh.bytes);
}

/* ---- start and end ---- */

static TtIo *create(const char *name, TtDiag *diag)
{
    g_autofree char *path = g_build_filename(tt.dir, name, NULL);
    TtIo *io;

    return tt_io_posix_create(path, &io, diag) == TT_OK ? io : NULL;
}

static bool open_store(TtDiag *diag)
{
    TtPageStoreOptions opt = { .cache_bytes = CACHE_BYTES };

    memcpy(opt.uuid, tt.manifest.uuid, sizeof(opt.uuid));
    opt.pages = create("pages", diag);
    opt.checkpoints = opt.pages ? create("checkpoints", diag) : NULL;
    if (!opt.checkpoints) {
        if (opt.pages) {
            tt_io_close(opt.pages);
        }
        return false;
    }
    return tt_pagestore_create(&opt, &sh.store, diag) == TT_OK;
}

void tt_shelf_forget(void)
{
    assert(!sh.is_open);
    if (!has_lock) {
        qemu_mutex_init(&points_lock);
        qemu_mutex_init(&hands);
        has_lock = true;
    }
    if (sh.points) {
        g_array_unref(sh.points);
    }
    memset(&sh, 0, sizeof(sh));
    sh.points = g_array_new(false, false, sizeof(TtPoint));
}

bool tt_shelf_open(TtDiag *diag)
{
    tt_shelf_forget();
    if (!open_store(diag)) {
        return false;
    }
    qemu_sem_init(&sh.has_job, 0);
    qemu_sem_init(&sh.idle, 0);
    qemu_sem_init(&sh.has_room, 0);
    qemu_thread_create(&sh.thread, "tt-keeper", shelf_thread, NULL,
                       QEMU_THREAD_JOINABLE);
    qatomic_store_release(&sh.is_open, true);
    return true;
}

bool tt_shelf_is_open(void)
{
    return sh.is_open;
}

void tt_shelf_close(void)
{
    if (!sh.is_open) {
        return;
    }
    tt_shelf_wait();
    qatomic_set(&sh.quit, true);
    qemu_sem_post(&sh.has_job);
    qemu_thread_join(&sh.thread);
    tt_pagestore_free(sh.store);
    sh.store = NULL;
    tt_pagebatch_free(sh.batch);
    sh.batch = NULL;
    qemu_sem_destroy(&sh.has_job);
    qemu_sem_destroy(&sh.idle);
    qemu_sem_destroy(&sh.has_room);
    sh.is_open = false;
}
