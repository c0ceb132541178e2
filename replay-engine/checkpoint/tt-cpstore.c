/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The checkpoint store: a thread of its own that compares, compresses and writes the
 * checkpoints of a recording (TTVM 3.3), and what it is asked to do.
 *
 *   checkpointer: post a job --> busy --> thread: add, delete or move --> not busy
 *
 * The files (tt-cpfiles.c) are the thread's while a job is under way, or a window is
 * saved, and the poster's otherwise. What others want to know is copied out: the list
 * in tt-cplist.c, the counters one by one. The thread takes no lock of QEMU's.
 *
 * When the disk is full, either the thread meets the end itself, or the log's writer
 * does and asks; then the poster may be at the store, which is what `hands` is for.
 */
#include "qemu/osdep.h"
#include "checkpoint/tt-cpstore.h"
#include "checkpoint/tt-cpdisks.h"
#include "checkpoint/tt-cpfiles.h"
#include "hw-tt/state/tt-disks.h"
#include "io/tt-base.h"
#include "pages/tt-page.h"
#include "pages/tt-pagestore.h"
#include "qemu/thread.h"

#define BATCH_PAGES_MIN (8u << 10)      /* 32 MiB */
#define BATCH_SHRINK    8               /* so many jobs that used a quarter */
#define RESULTS         8               /* a task that waits for one may be waited for */

typedef enum JobKind { JOB_ADD, JOB_DELETE, JOB_PREPARE, JOB_MOVE } JobKind;

static struct {
    QemuThread thread;
    QemuSemaphore has_job, idle;
    QemuSemaphore has_room;         /* the log's writer waits for it */
    bool is_open, busy, quit;
    bool wants_room, gave_room;
    bool has_freed;                 /* a save that failed while room was wanted */
    uint32_t saves_begun, saves_done;   /* free-running */
    /* the job */
    JobKind kind;
    bool is_held;                   /* the disks of the checkpoint come first */
    TtDiag unkept;                  /* they failed */
    bool is_users;                  /* who asks for the result */
    uint32_t posted, done;          /* free-running counts */
    uint64_t pos;
    bool has_batch;
    TtCheckpointMeta meta;
    TtNodeId victim;
    size_t room_wanted;
    TtPageBatch *batch;
    unsigned n_small;               /* jobs in turn that used little of it */
    struct {                        /* of jobs of the user's, by number */
        uint32_t job;
        TtStatus status;
        TtNodeId id;
        TtDiag diag;
    } results[RESULTS];
} sh;

static TtCpstoreSave *save_window;

static QemuMutex hands;             /* on the store, in the thread or a poster */
static bool has_hands;

/* ---- the thread ---- */

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
    TtPageBatch *batch = sh.has_batch ? sh.batch : NULL;
    TtStatus s = tt_cpfiles_add(sh.pos, batch, &sh.meta);

    if (batch) {
        empty_batch();
    }
    if (s != TT_OK) {
        tt_cpdisks_not_stored(&sh.meta);
    }
    g_free((void *)sh.meta.blob);
    return s == TT_OK ? tt_cpfiles_flush(true) : s;
}

static TtStatus carry_out(void)
{
    if (!tt_cpfiles_store()) {      /* the log took it, just now */
        if (sh.kind == JOB_ADD) {
            tt_cpdisks_not_stored(&sh.meta);
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
        return tt_cpfiles_move();
    }
    if (sh.kind == JOB_DELETE && tt_cpdisks_has_branch(tt_cpfiles_store(), sh.victim)) {
        tt_fail(&sh.unkept, TT_ERR_INVALID, "checkpoint %" PRIu32 " is where a branch "
                "starts, and its replay needs it: delete the branch first", sh.victim);
        return TT_OK;
    }
    return sh.kind == JOB_ADD ? do_add() : tt_cpfiles_delete(sh.victim);
}

/* Others may post the next job before the user's has been asked about. */
static void note_result(TtStatus s)
{
    typeof(sh.results[0]) *r = &sh.results[(sh.done + 1) % RESULTS];

    if (sh.is_users) {
        bool is_unkept = s == TT_OK && sh.unkept.status;

        r->job = sh.done + 1;
        r->status = is_unkept ? sh.unkept.status : s;
        r->id = tt_cpfiles_base();
        r->diag = is_unkept ? sh.unkept : *tt_cpfiles_diag();
    }
    sh.unkept.status = TT_OK;
}

static void do_job(void)
{
    note_result(carry_out());
    tt_cpfiles_note();
    qatomic_store_release(&sh.done, sh.done + 1);
    qatomic_store_release(&sh.busy, false);
    qemu_sem_post(&sh.idle);
}

/* Not where a save that failed has just given back what it took. */
static void do_make_room(void)
{
    qemu_mutex_lock(&hands);
    sh.gave_room = sh.has_freed || tt_cpfiles_give_room();
    sh.has_freed = false;           /* if that is too little, the next time */
    qemu_mutex_unlock(&hands);
    qatomic_set(&sh.wants_room, false);
    qemu_sem_post(&sh.has_room);
}

bool tt_cpstore_is_saving(void)
{
    return qatomic_load_acquire(&sh.saves_done) != qatomic_read(&sh.saves_begun);
}

static void do_save(void)
{
    bool ok;

    tt_cpfiles_flush_behind();
    ok = save_window();       /* the next one may be asked for before it is back */
    sh.has_freed = !ok && qatomic_read(&sh.wants_room);
    qatomic_store_release(&sh.saves_done, sh.saves_done + 1);
    qemu_sem_post(&sh.idle);
}

void tt_cpstore_on_save(TtCpstoreSave *save)
{
    save_window = save;
}

void tt_cpstore_save(void)
{
    if (!qatomic_load_acquire(&sh.is_open)) {
        save_window();                  /* no thread, no checkpoints */
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
        } else if (qatomic_load_acquire(&sh.busy) && !qatomic_load_acquire(&sh.is_held)) {
            do_job();
        }
    }
    return NULL;
}

bool tt_cpstore_make_room(void)
{
    const char *unused;

    if (!qatomic_load_acquire(&sh.is_open) || tt_cpfiles_has_failed(&unused)) {
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
        if (qatomic_read(&sh.is_held)) {
            tt_disks_settle();
        }
        qemu_sem_timedwait(&sh.idle, 100);
    }
}

static uint32_t post(JobKind kind, bool is_users)
{
    assert(!tt_cpstore_is_busy());
    sh.kind = kind;
    sh.is_users = is_users;
    qatomic_set(&sh.busy, true);
    if (!sh.is_held) {
        qemu_sem_post(&sh.has_job);
    }
    return ++sh.posted;
}

void tt_cpstore_hold(void)
{
    assert(!tt_cpstore_is_busy());
    qatomic_set(&sh.is_held, true);
}

bool tt_cpstore_is_held(void)
{
    return qatomic_read(&sh.is_held);
}

void tt_cpstore_is_unkept(const char *problem)
{
    tt_fail(&sh.unkept, TT_ERR_IO, "no branch can start from this checkpoint: %s", problem);
}

void tt_cpstore_has_no_job(void)
{
    sh.unkept.status = TT_OK;
}

void tt_cpstore_let_go(const char *problem)
{
    if (!sh.is_held) {
        return;
    }
    if (problem) {
        sh.meta.flags &= ~TT_CHECKPOINT_FULL;
        tt_cpstore_is_unkept(problem);
    }
    qatomic_store_release(&sh.is_held, false);
    qemu_sem_post(&sh.has_job);
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
    return post(JOB_ADD, meta->flags & (TT_CHECKPOINT_PINNED | TT_CHECKPOINT_FULL) ||
                sh.unkept.status);
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

TtStatus tt_cpstore_result(uint32_t job, TtNodeId *id, TtDiag *diag)
{
    typeof(sh.results[0]) *r = &sh.results[job % RESULTS];

    *id = r->id;
    if (r->job != job) {
        return tt_fail(diag, TT_ERR_INVALID, "the recording has ended");
    }
    *diag = r->diag;
    return r->status;
}

TtPageStore *tt_cpstore_take(void)
{
    assert(!tt_cpstore_is_busy());
    qemu_mutex_lock(&hands);
    return tt_cpfiles_store();
}

void tt_cpstore_release(void)
{
    qemu_mutex_unlock(&hands);
}

void tt_cpstore_set_base(TtNodeId id)
{
    assert(!tt_cpstore_is_busy());
    tt_cpfiles_set_base(id);
}

/* ---- start and end ---- */

void tt_cpstore_forget(void)
{
    uint32_t n_jobs = sh.done;

    assert(!sh.is_open);
    if (!has_hands) {
        qemu_mutex_init(&hands);
        has_hands = true;
    }
    tt_cpfiles_forget();
    tt_cpdisks_forget();
    memset(&sh, 0, sizeof(sh));
    sh.posted = sh.done = n_jobs;   /* somebody may still wait */
}

bool tt_cpstore_open(uint64_t max_bytes, TtDiag *diag)
{
    tt_cpstore_forget();
    if (!tt_cpfiles_open(max_bytes, diag)) {
        return false;
    }
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
    tt_cpfiles_close();
    tt_pagebatch_free(sh.batch);
    sh.batch = NULL;
    qemu_sem_destroy(&sh.has_job);
    qemu_sem_destroy(&sh.idle);
    qemu_sem_destroy(&sh.has_room);
    sh.is_open = false;
}
