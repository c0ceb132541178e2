/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recorder: takes the events of the hooks, encodes them into the open segment,
 * and has a thread of its own seal full segments into RUN/log (XenTT 3.4).
 *
 *   hooks (vCPU, or who holds the BQL)            writer thread
 *        | tt_record_event                             |
 *        v                                             v
 *   open segment --full, or old--> [ring: full] --> compress, append
 *        ^                                             |
 *        +-------------------- [ring: empty] <---------+
 *
 * The producer waits only when all segments are full; it never drops one. When
 * the disk refuses the VM is stopped until there is room (tt-stall.c), or, with
 * on-error=continue, the recording ends at the last sealed segment with one
 * sentence, and the VM goes on unrecorded. So it does when the cap is reached.
 *
 * A process may record several runs, one after another: see open, start, finish
 * and close in tt/engine.h.
 */
#include "tt/engine.h"
#include "tt-flight.h"
#include "tt-save.h"
#include "tt-shelf.h"
#include "tt-stall.h"
#include "tt/logparts.h"
#include "tt/ring.h"
#include "qemu/main-loop.h"
#include "qemu/error-report.h"
#include "qemu/timer.h"
#include "qemu/thread.h"
#include "qemu/guest-random.h"
#include "qemu/units.h"
#include "qemu/uuid.h"
#include "exec/cputlb.h"
#include "system/runstate.h"

#define TT_SEGMENTS     12
#define TT_SEAL_MS      200         /* a segment stays open no longer */
#define TT_SEAL_BYTES   (256u << 10)

/* A segment is the least that a tight window can be cut at. */
#define SEGMENTS_OF_WINDOW 16

#define NEW_RECORDER { .ratio = 256, .payload_max = TT_SEG_PAYLOAD_MAX }

static struct {
    TtLogEncoder *encoder;
    TtLogWriter *writer;
    TtSegBuf *open;
    TtRing *full, *empty;
    QemuSemaphore has_full, has_empty;
    QemuThread thread;
    QEMUTimer *seal_timer;
    uint64_t start_ns;
    uint64_t released_prints[TT_VCPUS_MAX]; /* when the token was given */
    bool made_dir, made_log;        /* they were not there before */
    bool has_dir;                   /* it is there now */
    bool released, initial, full_up;
    bool was_reset[TT_VCPUS_MAX];
    bool has_begun;
    bool whole;                     /* finished, and all of it written */
    uint64_t handed_bytes;          /* decoded, of all segments handed over */
    uint32_t payload_max;           /* bytes of payload that end a segment */
    uint64_t cut_before;            /* a part begins with this segment; 0: none */
    /* Set by the writer thread: */
    bool failed;
    TtDiag diag;
    uint64_t log_bytes;
    uint64_t sealed_bytes;          /* decoded */
    uint64_t lately_decoded, lately_stored;
    uint32_t ratio;                 /* stored to decoded, in 1/256, lately */
    bool is_unsynced;               /* the file has what the disk may not have */
    int64_t synced_ms;              /* host time of the last flush */
} rec = NEW_RECORDER;

/* ---- writer thread ---- */

/* An append failed; shall it be tried again? */
static bool make_room(void *opaque, const TtDiag *why)
{
    return (why->status == TT_ERR_NOSPACE && tt_keeper_make_room(NULL)) ||
        tt_stall_wait(why);
}

static TtIo *patient(TtIo *io)
{
    return tt_io_patient_new(io, make_room, NULL);
}

static uint32_t decoded_bytes(const TtSegBuf *sb)
{
    return sb->ev_len + sb->pl_len;
}

/* Old segments count less for the ratio: the first hold RAM, not events. */
static void count_sealed(const TtSegBuf *sb)
{
    uint64_t bytes = tt_log_writer_bytes(rec.writer);

    rec.lately_decoded = rec.lately_decoded / 4 * 3 + decoded_bytes(sb);
    rec.lately_stored = rec.lately_stored / 4 * 3 + bytes - rec.log_bytes;
    qatomic_set(&rec.log_bytes, bytes);
    qatomic_set(&rec.ratio, (rec.lately_stored << 8) /
                MAX(rec.lately_decoded, 1));
    qatomic_store_release(&rec.sealed_bytes,
                          rec.sealed_bytes + decoded_bytes(sb));
}

/* So that a power cut costs no more than the last seconds. */
static void sync_if_due(void)
{
    int64_t now = qemu_clock_get_ms(QEMU_CLOCK_REALTIME);

    if (!tt.sync_ms || !rec.is_unsynced || qatomic_read(&rec.failed) ||
        now - rec.synced_ms < tt.sync_ms) {
        return;
    }
    if (tt_log_writer_sync(rec.writer, &rec.diag) != TT_OK) {
        qatomic_set_mb(&rec.failed, true);
    }
    rec.is_unsynced = false;
    rec.synced_ms = qemu_clock_get_ms(QEMU_CLOCK_REALTIME);
}

static void wait_for_segment(void)
{
    if (rec.is_unsynced && tt.sync_ms) {
        qemu_sem_timedwait(&rec.has_full, tt.sync_ms);
    } else {
        qemu_sem_wait(&rec.has_full);
    }
}

/* The log goes on in the next part, if it is time. What cannot be made stays as it
 * is. */
static void begin_part(const TtSegBuf *sb)
{
    uint64_t before = tt_log_writer_bytes(rec.writer);
    TtLogPlace at;
    TtDiag unused;
    TtIo *io;

    if (!tt_flight_is_on() || sb->last || qatomic_read(&rec.failed) ||
        (qatomic_read(&rec.cut_before) != sb->seq + 1 &&
         !tt_flight_wants_part()) ||
        tt_flight_create_part(&io, &unused) != TT_OK) {
        return;
    }
    at = tt_log_writer_place(rec.writer);
    if (tt_log_writer_next_part(rec.writer, patient(io), &rec.diag) != TT_OK) {
        qatomic_set_mb(&rec.failed, true);
        return;
    }
    tt_flight_part_begun(&at);
    tt_flight_grew(tt_log_writer_bytes(rec.writer) - before, at);
}

static void *writer_thread(void *opaque)
{
    for (;;) {
        uint64_t before;
        TtSegBuf *sb;
        bool last;

        wait_for_segment();
        sync_if_due();
        sb = tt_ring_pop(rec.full);
        if (!sb) {
            continue;
        }
        last = sb->last;
        before = tt_log_writer_bytes(rec.writer);
        if (!qatomic_read(&rec.failed) &&
            tt_log_writer_seal(rec.writer, sb, &rec.diag) != TT_OK) {
            qatomic_set_mb(&rec.failed, true);
        }
        rec.is_unsynced = true;
        if (!qatomic_read(&rec.failed)) {
            tt_flight_grew(tt_log_writer_bytes(rec.writer) - before,
                           tt_log_writer_place(rec.writer));
        }
        begin_part(sb);
        count_sealed(sb);
        tt_ring_push(rec.empty, sb);
        qemu_sem_post(&rec.has_empty);
        if (last) {
            break;
        }
    }
    return NULL;
}

/* ---- segments ---- */

static uint64_t run_ns(void)
{
    return qemu_clock_get_ns(QEMU_CLOCK_REALTIME) - rec.start_ns;
}

static void open_segment(void)
{
    TtSegBuf *sb;

    while (!(sb = tt_ring_pop(rec.empty)) && !(sb = tt_stall_segment())) {
        qemu_sem_timedwait(&rec.has_empty, 50);
    }
    tt_log_encoder_begin(rec.encoder, sb, tt_position(), run_ns());
    rec.open = sb;
}

/* The log if it were closed now: what is not sealed yet is guessed. */
static uint64_t expected_bytes(void)
{
    uint64_t unsealed = rec.handed_bytes -
        qatomic_load_acquire(&rec.sealed_bytes) +
        (rec.open ? decoded_bytes(rec.open) : 0);

    return tt_record_bytes() + (unsealed * qatomic_read(&rec.ratio) >> 8);
}

/* While a window moves there is no end. */
static bool is_endless(void)
{
    return tt_flight_is_on() && tt_keeper_is_on();
}

bool tt_record_is_tight(void)
{
    return tt.max_size_bytes && is_endless() &&
        expected_bytes() + rec.payload_max > tt.max_size_bytes;
}

/*
 * A window's log goes on at its limit when its beginning is gone, and for that
 * there must be a checkpoint: no more is handed over while the disk is at the last
 * one, which else might be a whole log behind.
 */
static void make_way(void)
{
    if (tt_record_is_tight()) {
        tt_shelf_wait();
    }
    tt_keeper_urge();
}

static void hand_over(bool last)
{
    TtSegBuf *sb = tt_log_encoder_end(rec.encoder, last);

    rec.open = NULL;
    rec.handed_bytes += decoded_bytes(sb);
    tt_ring_push(rec.full, sb);
    qemu_sem_post(&rec.has_full);
    if (!last) {
        make_way();
    }
}

static void give_up(const char *why)
{
    tt.live = false;
    tt.gave_up_at = tt_position();
    tt_keeper_tell();
    warn_report("tt: the recording ends at position %" PRIu64 ", the VM goes "
                "on unrecorded: %s", tt_position(), why);
}

static bool has_trouble(void)
{
    if (tt.live && qatomic_read(&rec.failed)) {
        give_up(rec.diag.text);
    }
    return !tt.live;
}

/* Until what was handed over is in the file, or cannot be written. */
static void wait_sealed(void)
{
    while (!qatomic_read(&rec.failed) && !tt_stall_why() &&
           qatomic_load_acquire(&rec.sealed_bytes) != rec.handed_bytes) {
        g_usleep(200);
    }
}

bool tt_record_seal(Error **errp)
{
    if (rec.open->n_events) {
        hand_over(false);
        open_segment();
    }
    wait_sealed();
    if (tt_stall_why()) {
        error_setg(errp, "the recording cannot be written now: %s",
                   tt_stall_why());
        return false;
    }
    if (qatomic_read(&rec.failed)) {
        error_setg(errp, "%s", rec.diag.text);
        return false;
    }
    return true;
}

void tt_record_limit_segments(uint64_t log_bytes)
{
    if (log_bytes) {
        rec.payload_max = CLAMP(log_bytes / SEGMENTS_OF_WINDOW, 64 * KiB,
                                TT_SEG_PAYLOAD_MAX);
    }
}

bool tt_record_cut(uint64_t *seq, Error **errp)
{
    *seq = rec.open->seq + 1;
    assert(rec.open->n_events);
    qatomic_set(&rec.cut_before, *seq);
    return tt_record_seal(errp);
}

uint64_t tt_record_ns(void)
{
    return run_ns();
}

static void seal_tick(void *opaque)
{
    if (tt_stall_why()) {
        tt_keeper_tell();
        tt_stall_tell();
    } else if (!tt_past && tt.live && !has_trouble() && rec.open->n_events) {
        hand_over(false);
        open_segment();
    }
    timer_mod(rec.seal_timer,
              qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + TT_SEAL_MS);
}

/* ---- events ---- */

static void append(TtEvent *ev)
{
    if (unlikely(!tt_log_encoder_fits(rec.encoder, ev->len) ||
                 rec.open->ev_len >= TT_SEAL_BYTES ||
                 rec.open->pl_len >= rec.payload_max)) {
        hand_over(false);
        open_segment();
    }
    tt_log_encoder_put(rec.encoder, ev);
    tt.events += !TT_EV_IS_ANNOTATION(ev->kind);
}

/* Moves the position past an event that was put between two instructions. */
static void step_over(void)
{
    CPUState *cpu = tt_vcpu();

    if (tt_token_is_mine() && cpu->running) {
        tt_count_update(cpu);
        tt.pos++;
        tt_vcpu_arm(cpu);
    } else {
        tt.pos++;
    }
}

/* A writer that is behind makes it a bad guess: what is known is waited for. */
static bool reached_max_size(void)
{
    if (!tt.max_size_bytes || expected_bytes() < tt.max_size_bytes ||
        is_endless()) {
        return false;
    }
    wait_sealed();
    return expected_bytes() >= tt.max_size_bytes;
}

/* A hole for tests: what verification must find. */
static bool is_unlogged(const TtEvent *ev)
{
    return ev->kind == TT_EV_RAM && !rec.initial && --tt.unlogged == 0;
}

static void tell_guard(const TtEvent *ev)
{
    if (ev->kind == TT_EV_RAM || ev->kind == TT_EV_RAM_FILL) {
        tt_guard_logged(tt_memory_block(ev->addr)->ram_block, ev->val,
                        ev->kind == TT_EV_RAM ? ev->len :
                        tt_get_le64(ev->data));
    }
}

void tt_record_event(TtEvent *ev)
{
    assert(bql_locked());
    if (unlikely(!tt.live) || unlikely(tt.unlogged && is_unlogged(ev))) {
        return;
    }
    ev->pos = tt_position();
    ev->nested = rec.initial ||
        (TT_EV_IS_ASYNC(ev->kind) && tt.device_depth);
    append(ev);
    if (unlikely(tt_guard_is_on)) {
        tell_guard(ev);
    }
    if (tt_event_step(ev)) {
        step_over();
    }
    if (unlikely(!rec.full_up && reached_max_size())) {
        rec.full_up = true;         /* ended between two turns: a clean place */
        tt_token_kick();
    }
}

void tt_record_check(void)
{
    TtEvent ev = { .kind = TT_EV_CHECK, .addr = tt.output_hash };

    tt.check_next = UINT64_MAX;
    if (!has_trouble()) {
        ev.val = tt_vcpus_digest();
        tt_record_event(&ev);
        tt.check_next = (tt.pos / tt.check_interval + 1) * tt.check_interval;
    }
}

void tt_record_fence(CPUState *cpu)
{
    TtEvent ev = {
        .kind = TT_EV_CHECK,
        .addr = tt.output_hash,
        .val = tt_vcpus_digest(),
    };

    tt.fence_next = tt_next_fence(tt.pos);
    tt.check_next = (tt.pos / tt.check_interval + 1) * tt.check_interval;
    if (!(tt_omit & TT_OMIT_FIXED_TLB)) {
        tt_vcpus_flush();
    }
    if (!has_trouble()) {
        tt_record_event(&ev);
        tt_keeper_fence(cpu);
    }
    tt_fetch_again(cpu);            /* as a replay does that begins here */
}

void tt_record_place(uint64_t *segment, uint32_t *index)
{
    *segment = rec.open->seq;
    *index = rec.open->n_events;
}

/* ---- what others do to the vCPU ---- */

void tt_record_release(void)
{
    if (!rec.released) {
        for (unsigned i = 0; i < tt_vcpus_count(); i++) {
            rec.released_prints[i] = tt_target_fingerprint(tt_vcpus_at(i));
        }
        rec.released = true;
    }
}

static void log_state(CPUState *cpu)
{
    GByteArray *state = tt_target_save(cpu);
    TtEvent ev = {
        .kind = TT_EV_CPU_STATE, .cpu = cpu->cpu_index, .val = cpu->halted,
        .data = state->data, .len = state->len,
    };

    tt_record_event(&ev);
    g_byte_array_unref(state);
}

static void log_states(void)
{
    for (unsigned i = 0; i < tt_vcpus_count(); i++) {
        log_state(tt_vcpus_at(i));
    }
}

void tt_record_took_note(void)
{
    rec.released = false;
    memset(rec.was_reset, 0, sizeof(rec.was_reset));
    tt_record_release();
}

void tt_record_renew(void)
{
    tt_vcpus_flush();
    log_states();
    tt_record_took_note();
}

/* One vCPU was changed by others, or reset itself: its state is an input. */
static void resync_one(unsigned i)
{
    CPUState *cpu = tt_vcpus_at(i);
    bool changed = rec.was_reset[i];

    if (rec.released) {
        changed |= tt_target_fingerprint(cpu) != rec.released_prints[i];
    }
    rec.was_reset[i] = false;
    if (changed && !(tt_omit & TT_OMIT_CPU_RESET)) {
        log_state(cpu);
    }
}

void tt_record_resync(void)
{
    for (unsigned i = 0; i < tt_vcpus_count(); i++) {
        resync_one(i);
    }
    rec.released = false;
    if (rec.full_up) {
        rec.full_up = false;
        tt_record_finish(TT_FINISH_STOPPED);
        give_up(tt_flight_is_on() ? "the log has reached max-size, and without "
                "checkpoints the window cannot move" :
                "the log has reached max-size");
    }
}

void tt_record_reset(CPUState *cpu)
{
    if ((unsigned)cpu->cpu_index < TT_VCPUS_MAX) {
        rec.was_reset[cpu->cpu_index] = true;
    }
    if (tt_token_is_mine() && cpu->running) {
        cpu_exit(cpu);          /* INIT or SIPI, taken inside cpu_exec */
    }
}

/* ---- start and end ---- */

/* Holds it something that is not a run's? */
static bool is_foreign(const char *dir)
{
    GDir *d = g_dir_open(dir, 0, NULL);
    const char *name = NULL;

    while (d && (name = g_dir_read_name(d)) && g_str_equal(name, "lost+found")) {
    }
    if (d) {
        g_dir_close(d);
    }
    return name;
}

bool tt_record_directory(Error **errp)
{
    g_autofree char *stamp = NULL;
    g_autoptr(GDateTime) now = g_date_time_new_now_local();
    int n;

    if (rec.has_dir) {
        return true;
    }
    if (tt.dir) {
        g_autofree char *manifest = g_build_filename(tt.dir, "manifest", NULL);
        g_autofree char *log = tt_logparts_path(tt.dir, 0);

        if (mkdir(tt.dir, 0700) == 0) {
            rec.made_dir = rec.has_dir = true;
            return true;
        }
        if (errno != EEXIST || !g_file_test(tt.dir, G_FILE_TEST_IS_DIR)) {
            error_setg_errno(errp, errno == EEXIST ? ENOTDIR : errno,
                             "cannot make the run directory '%s': give another"
                             " with dir=", tt.dir);
            return false;
        }
        if (g_file_test(manifest, G_FILE_TEST_EXISTS) ||
            g_file_test(log, G_FILE_TEST_EXISTS)) {
            error_setg(errp, "'%s' holds a run already: give another dir= or "
                       "delete it", tt.dir);
            return false;
        }
        if (is_foreign(tt.dir)) {
            error_setg(errp, "'%s' holds other files: give a directory with "
                       "dir= that is empty, or that does not exist", tt.dir);
            return false;
        }
        rec.has_dir = true;
        return true;
    }
    stamp = g_date_time_format(now, "tt-run-%Y%m%d-%H%M%S");
    for (n = 0; n < 1000; n++) {
        g_autofree char *name = n ? g_strdup_printf("%s-%d", stamp, n) :
            g_strdup(stamp);

        if (mkdir(name, 0700) == 0) {
            g_autofree char *path = g_canonicalize_filename(name, NULL);

            tt.dir = g_intern_string(path);
            rec.made_dir = rec.has_dir = true;
            return true;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    error_setg_errno(errp, errno, "cannot make a run directory here: give one "
                     "with dir=");
    return false;
}

static bool make_segments(Error **errp)
{
    qemu_sem_init(&rec.has_full, 0);
    qemu_sem_init(&rec.has_empty, 0);
    rec.full = tt_ring_new(TT_SEGMENTS + TT_STALL_SEGMENTS);
    rec.empty = tt_ring_new(TT_SEGMENTS + TT_STALL_SEGMENTS);
    for (int i = 0; i < TT_SEGMENTS; i++) {
        TtSegBuf *sb = tt_segbuf_new();

        if (!sb) {
            error_setg(errp, "not enough memory for the log's buffers");
            return false;
        }
        tt_ring_push(rec.empty, sb);
    }
    rec.encoder = tt_log_encoder_new();
    return true;
}

/* One file, or the first part. */
static bool open_log(const TtLogPlace *start, TtDiag *diag)
{
    g_autofree char *path = tt_logparts_path(tt.dir, 0);
    TtStatus s;
    TtIo *io;

    tt_flight_begin();
    s = tt_flight_is_on() ? tt_flight_create_part(&io, diag) :
        tt_io_posix_create(path, &io, diag);
    rec.made_log = s == TT_OK;
    if (s == TT_OK && tt_flight_is_on()) {
        tt.manifest.features |= TT_FEATURE_WINDOW;
        s = tt_log_writer_new_part(patient(io), tt.manifest.uuid, start,
                                   &rec.writer, diag);
        tt_flight_part_begun(start);
        tt_flight_grew(s == TT_OK ? tt_log_writer_bytes(rec.writer) : 0, *start);
    } else if (s == TT_OK) {
        s = tt_log_writer_new(patient(io), tt.manifest.uuid, &rec.writer, diag);
    }
    return s == TT_OK;
}

bool tt_record_open(Error **errp)
{
    TtLogPlace start = { 0 };
    QemuUUID uuid;
    TtDiag diag;

    if (!tt_record_directory(errp) || !make_segments(errp)) {
        return false;
    }
    qemu_uuid_generate(&uuid);
    memcpy(tt.manifest.uuid, uuid.data, 16);
    if (!open_log(&start, &diag)) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    tt.manifest.rules = TT_MANIFEST_RULES;
    tt.manifest.tlb_entries = 1 << TT_HOOK_TLB_BITS;
    tt.manifest.fence_interval = TT_FENCE_INTERVAL;
    tt_watch_devices();
    return true;
}

static bool save_manifest(Error **errp)
{
    g_autofree char *path = g_build_filename(tt.dir, "manifest", NULL);
    TtManifest *m = &tt.manifest;
    TtDiag diag;

    tt_target_identity(first_cpu, m);
    m->n_cpus = tt_vcpus_count();
    m->n_blocks = tt_memory_n_blocks();
    m->blocks = g_new0(TtBlockInfo, m->n_blocks);
    for (unsigned i = 0; i < m->n_blocks; i++) {
        TtBlock *b = tt_memory_block(i);

        g_strlcpy(m->blocks[i].name, b->name, sizeof(m->blocks[i].name));
        m->blocks[i].size_bytes = m->blocks[i].max_bytes = b->size_bytes;
        m->blocks[i].flags = b->flags;
    }
    if (tt_manifest_save(m, path, &diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    return true;
}

static void remove_files(void);

static bool begin(Error **errp)
{
    TtEvent ready = { .kind = TT_EV_CHECK };

    tt_vcpus_turn_to(tt_vcpus_at(0));       /* every run begins with that one */
    rec.has_begun = true;
    rec.start_ns = qemu_clock_get_ns(QEMU_CLOCK_REALTIME);
    qemu_thread_create(&rec.thread, "tt-writer", writer_thread, NULL,
                       QEMU_THREAD_JOINABLE);
    open_segment();
    tt.live = true;
    tt.gave_up_at = 0;
    tt.fence_next = tt_next_fence(0);
    tt.check_interval = tt.check_interval ?: TT_CHECK_INTERVAL;
    tt.check_next = tt.check_interval;
    tt_inputs_start();
    rec.initial = true;
    if (!tt_guard_start(errp)) {
        return false;
    }
    tt_memory_record_start(first_cpu);
    log_states();
    rec.initial = false;
    memset(rec.was_reset, 0, sizeof(rec.was_reset));
    ready.val = tt_vcpus_digest();
    tt_record_event(&ready);
    if (!save_manifest(errp) || !tt_trace_record_start(errp)) {
        return false;
    }
    tt_branch_begun();
    if (!tt_keeper_start(first_cpu, errp)) {
        return false;
    }
    tt_gpu_note_all();
    tt_vcpus_flush();
    tt_record_release();        /* the vCPU's first turn looks what changed */
    tt_stall_arm();
    rec.seal_timer = timer_new_ms(QEMU_CLOCK_REALTIME, seal_tick, NULL);
    timer_mod(rec.seal_timer,
              qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + TT_SEAL_MS);
    return true;
}

/* Who started QEMU with it ends the process when it fails: nothing is closed then. */
bool tt_record_start(Error **errp)
{
    bool ok = begin(errp);

    if (!ok) {
        remove_files();
    }
    return ok;
}

/* No segment is open afterwards, and the writer thread has ended. */
static void stop_writer(void)
{
    TtDiag diag;

    tt.live = false;
    if (!rec.open) {
        return;
    }
    tt_stall_give_up();
    hand_over(true);
    qemu_thread_join(&rec.thread);      /* it may ask the keeper for room */
    tt_keeper_finish();
    tt_save_settle();
    if (!rec.failed && tt_log_writer_sync(rec.writer, &diag) != TT_OK) {
        rec.failed = true;
        rec.diag = diag;
    }
}

void tt_record_finish(unsigned why)
{
    TtEvent digest = { .kind = TT_EV_DIGEST };
    TtEvent end = { .kind = TT_EV_FINISH, .val = why };

    tt_trace_end_and_tell();
    tt_guard_stop();
    if (!tt.live || tt.finished) {
        return;
    }
    tt_record_resync();
    if (!tt.live) {
        return;                 /* max-size was reached just here */
    }
    tt.finished = true;
    digest.addr = tt_vcpus_digest();
    digest.val = tt_memory_digest();
    tt_record_event(&digest);
    tt_record_event(&end);
    stop_writer();
    rec.whole = !rec.failed;
    if (rec.failed) {
        warn_report("tt: the recording in %s is not whole: %s", tt.dir,
                    rec.diag.text);
    }
}

bool tt_record_is_whole(void)
{
    return rec.whole;
}

/* Of a run that never was, nothing is to be found. */
static void remove_files(void)
{
    if (rec.made_log) {
        g_autofree char *manifest = g_build_filename(tt.dir, "manifest", NULL);
        unsigned n;
        g_autofree uint32_t *part = tt_logparts_list(tt.dir, &n);

        unlink(manifest);
        if (!tt_flight_is_on()) {
            g_autofree char *log = tt_logparts_path(tt.dir, 0);

            unlink(log);
        }
        for (unsigned i = 0; i < n; i++) {
            g_autofree char *log = tt_logparts_path(tt.dir, part[i]);

            unlink(log);
        }
    }
    if (rec.made_dir) {
        rmdir(tt.dir);
    }
}

static void free_ring(TtRing *ring)
{
    TtSegBuf *sb;

    if (ring) {
        while ((sb = tt_ring_pop(ring))) {
            tt_segbuf_free(sb);
        }
        tt_ring_free(ring);
    }
}

void tt_record_close(void)
{
    bool was_run = rec.seal_timer;      /* it started, all of it */

    stop_writer();
    tt_stall_disarm();
    tt_memory_record_stop();
    if (rec.seal_timer) {
        timer_free(rec.seal_timer);
    }
    tt_log_writer_free(rec.writer);
    if (!was_run) {
        remove_files();
    }
    tt_log_encoder_free(rec.encoder);
    if (rec.full) {
        free_ring(rec.full);
        free_ring(rec.empty);
        qemu_sem_destroy(&rec.has_full);
        qemu_sem_destroy(&rec.has_empty);
    }
    rec = (typeof(rec)) NEW_RECORDER;
    tt_flight_end();
    tt_trouble_forget();
}

uint64_t tt_record_bytes(void)
{
    return tt_flight_is_on() ? tt_flight_log_bytes() :
        qatomic_read(&rec.log_bytes);
}

bool tt_record_has_begun(void)
{
    return rec.has_begun;
}
