/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Keeper: checkpoints of a recording, in RUN/pages and RUN/checkpoints. Every
 * checkpoint-interval seconds the VM stands for as long as it takes to copy the
 * pages that were written since the last one; a thread of its own compares,
 * compresses and stores them (TTVM 3.3).
 *
 *   fence, and it is time --> leave cpu_exec --> copy pages and state --> job
 *                                                                         |
 *                                               thread: add, flush <------+
 *
 * They stand at fences, as all checkpoints do (tt-points.c). One job is under way
 * at a time: a slow disk makes checkpoints rarer, not the VM slower. When storing
 * fails for good, the recording goes on without more of them; when the disk is
 * full they go, since the log needs the space.
 */
#include "tt/engine.h"
#include "tt/pagestore.h"
#include "qemu/main-loop.h"
#include "qemu/error-report.h"
#include "qemu/thread.h"
#include "qemu/timer.h"

/* Pages that can be copied aside; more, and those of the first checkpoint, are
 * added while the VM stands. */
#define BATCH_PAGES_MIN (8u << 10)      /* 32 MiB */
#define BATCH_PAGES_MAX (64u << 10)     /* 256 MiB */
#define CACHE_BYTES     (64u << 20)     /* stored pages kept for comparison */

static struct {
    TtPageStore *store;             /* the thread's while a job is under way */
    TtPageBatch *batch;
    TtNodeId base;                  /* RAM = node base + dirty pages */
    QemuThread thread;
    QemuSemaphore has_job, idle;
    bool on, has_thread, busy, quit;
    bool has_batch;                 /* of the job: else the node is added */
    uint64_t pos;                   /* of the job */
    TtCheckpointMeta meta;
    int64_t last_ms;                /* when the last one was taken */
    uint64_t wanted_pos;            /* leave cpu_exec here; 0: nowhere */
    uint64_t start_ns, count, pause_ns_most;
    bool failed, told;              /* by the thread, under the job */
    TtDiag diag;
} kp;

/* ---- the thread ---- */

/* The disk is full: the log needs the space more. */
static void give_way(void)
{
    g_autofree char *pages = g_build_filename(tt.dir, "pages", NULL);
    g_autofree char *points = g_build_filename(tt.dir, "checkpoints", NULL);

    unlink(points);
    unlink(pages);
    tt_pagestore_free(kp.store);
    kp.store = NULL;
    qatomic_set(&kp.count, 0);
    tt_fail(&kp.diag, TT_ERR_NOSPACE, "the disk is full, and what they took is "
            "given back to the log");
    qatomic_set(&kp.failed, true);
}

static void carry_out_job(void)
{
    TtStatus s = TT_OK;

    if (kp.has_batch) {
        s = tt_pagestore_add_batch(kp.store, kp.pos, kp.base, kp.batch,
                                   &kp.meta, &kp.base);
        tt_pagebatch_clear(kp.batch);
    }
    g_free((void *)kp.meta.blob);
    if (s != TT_OK) {
        tt_fail(&kp.diag, s, "%s", tt_status_name(s));
        qatomic_set(&kp.failed, true);
        return;
    }
    qatomic_inc(&kp.count);
    s = tt_pagestore_flush(kp.store, &kp.diag);
    if (s == TT_ERR_NOSPACE) {
        give_way();
    } else if (s < 0) {             /* it says so once, and tries again later */
        qatomic_set(&kp.told, false);
    }
}

/* Room for @n pages and half more, so that it soon stays as it is. */
static bool make_batch(size_t n)
{
    size_t want = MIN(MAX(n + n / 2, BATCH_PAGES_MIN), BATCH_PAGES_MAX);

    if (!kp.batch || tt_pagebatch_room(kp.batch) < n) {
        tt_pagebatch_free(kp.batch);
        kp.batch = tt_pagebatch_new(want);
    }
    return kp.batch && n <= tt_pagebatch_room(kp.batch);
}

static void *keeper_thread(void *opaque)
{
    for (;;) {
        qemu_sem_wait(&kp.has_job);
        if (qatomic_read(&kp.quit)) {
            break;
        }
        carry_out_job();
        qatomic_store_release(&kp.busy, false);
        qemu_sem_post(&kp.idle);
    }
    return NULL;
}

static bool is_busy(void)
{
    return qatomic_load_acquire(&kp.busy);
}

/* ---- taking one: vCPU thread ---- */

static const void *save_state(CPUState *cpu, size_t *len)
{
    GByteArray *regs = tt_target_save(cpu), *blocks = tt_memory_blocks_save();
    TtMapState map;
    TtCpState s = {
        .halted = cpu->halted, .output_hash = tt.output_hash,
        .events = tt.events,
        .blocks = { blocks->data, blocks->len },
        .cpu = { regs->data, regs->len },
    };
    uint32_t n;
    uint8_t *bytes;

    tt_record_place(&s.segment, &s.index);
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

/* Copies what is dirty aside, or adds it at once where that cannot be. */
static TtStatus collect(void)
{
    size_t n;
    g_autofree uint64_t *dirty = tt_memory_collect_dirty(&n);

    kp.has_batch = kp.base && make_batch(n);
    if (!kp.has_batch) {
        return tt_pagestore_add_checkpoint(kp.store, kp.pos, kp.base, dirty, n,
                                           tt_memory_page, NULL, &kp.meta,
                                           &kp.base);
    }
    for (size_t i = 0; i < n; i++) {
        tt_pagebatch_put(kp.batch, dirty[i], tt_memory_page(NULL, dirty[i]));
    }
    return TT_OK;
}

static void stop_keeping(const char *why)
{
    kp.on = false;
    warn_report("tt: the recording goes on without more checkpoints: %s", why);
}

static void take(CPUState *cpu)
{
    int64_t began = qemu_clock_get_ns(QEMU_CLOCK_REALTIME);
    size_t len;
    TtStatus s;

    kp.pos = tt.pos;
    kp.meta = (TtCheckpointMeta) { .host_ns = began - kp.start_ns };
    kp.meta.blob = save_state(cpu, &len);
    kp.meta.blob_bytes = len;
    s = collect();
    if (s != TT_OK) {
        g_free((void *)kp.meta.blob);
        stop_keeping(tt_status_name(s));
        return;
    }
    kp.last_ms = began / SCALE_MS;
    kp.pause_ns_most = MAX(kp.pause_ns_most,
                           qemu_clock_get_ns(QEMU_CLOCK_REALTIME) - began);
    qatomic_set(&kp.busy, true);
    qemu_sem_post(&kp.has_job);
}

/* Trouble is told from here, since the thread must not wait for the BQL. */
static bool is_in_trouble(void)
{
    if (qatomic_read(&kp.failed)) {
        stop_keeping(kp.diag.text);
        return true;
    }
    if (kp.diag.status && !kp.told) {
        kp.told = true;
        warn_report("tt: a checkpoint cannot be stored, the recording goes on "
                    "and tries again with the next: %s", kp.diag.text);
    }
    return false;
}

void tt_keeper_fence(CPUState *cpu)
{
    if (!kp.on || is_busy() ||
        qemu_clock_get_ms(QEMU_CLOCK_REALTIME) - kp.last_ms <
        (int64_t)tt.checkpoint_interval_ms) {
        return;
    }
    if (!is_in_trouble()) {
        kp.wanted_pos = tt.pos;
        cpu->exit_request = true;
    }
}

void tt_keeper_turn(CPUState *cpu)
{
    if (kp.wanted_pos) {
        if (kp.wanted_pos == tt.pos && kp.on && tt.live) {
            take(cpu);
        }
        kp.wanted_pos = 0;          /* an interrupt came first: next fence */
    }
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
    return tt_pagestore_create(&opt, &kp.store, diag) == TT_OK;
}

/* The first one is the initial state, like the log's own: all else builds on it. */
void tt_keeper_start(CPUState *cpu)
{
    TtDiag diag;

    memset(&kp, 0, sizeof(kp));
    if (!tt.checkpoint_interval_ms) {
        return;
    }
    if (!open_store(&diag)) {
        warn_report("tt: the recording makes no checkpoints: %s", diag.text);
        return;
    }
    qemu_sem_init(&kp.has_job, 0);
    qemu_sem_init(&kp.idle, 0);
    kp.start_ns = qemu_clock_get_ns(QEMU_CLOCK_REALTIME);
    kp.on = kp.has_thread = true;
    qemu_thread_create(&kp.thread, "tt-keeper", keeper_thread, NULL,
                       QEMU_THREAD_JOINABLE);
    tt_memory_all_dirty();
    take(cpu);
}

void tt_keeper_settle(void)
{
    while (is_busy()) {
        qemu_sem_timedwait(&kp.idle, 100);
    }
}

void tt_keeper_finish(void)
{
    if (!kp.has_thread) {
        return;
    }
    tt_keeper_settle();
    if (kp.on) {
        is_in_trouble();
    }
    kp.on = false;
    qatomic_set(&kp.quit, true);
    qemu_sem_post(&kp.has_job);
    qemu_thread_join(&kp.thread);
    tt_pagestore_free(kp.store);
    tt_pagebatch_free(kp.batch);
    qemu_sem_destroy(&kp.has_job);
    qemu_sem_destroy(&kp.idle);
    kp.store = NULL;
    kp.batch = NULL;
    kp.has_thread = false;
}

uint64_t tt_keeper_count(void)
{
    return qatomic_read(&kp.count);
}
