/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The log's writer: encodes events into the open segment, and has a thread of its own
 * seal full segments into RUN/log (XenTT 3.4).
 *
 *   recorder (vCPU, or holder of the BQL)         writer thread
 *        | tt_writer_put                               |
 *        v                                             v
 *   open segment --full, or old--> [ring: full] --> compress, append
 *        ^                                             |
 *        +-------------------- [ring: empty] <---------+
 *
 * The producer waits only when all segments are full; it never drops one. While the
 * disk refuses to take more, it is lent extra segments (tt-write-stall.c).
 */
#include "qemu/osdep.h"
#include "record/tt-writer.h"
#include "accel-tt/tt-position.h"
#include "io/tt-base.h"
#include "io/tt-io.h"
#include "log/tt-log.h"
#include "log/tt-logparts.h"
#include "log/tt-ring.h"
#include "record/tt-flight.h"
#include "record/tt-record-options.h"
#include "record/tt-record.h"
#include "record/tt-rundir.h"
#include "record/tt-write-stall.h"
#include "run/tt-manifest.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "tt-record-tell-int.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "qemu/thread.h"
#include "qemu/timer.h"
#include "qemu/units.h"

#define TT_SEGMENTS     12

/* Of these, how many are for what the guest does, however often somebody settles. */
#define SETTLE_LEAVES   6

/* A segment is the least that a tight window can be cut at. */
#define SEGMENTS_OF_WINDOW 16

/* Of max-size: for the end of the log. */
#define FINISH_SHARE    64

#define NEW_WRITER { .ratio = 256, .payload_max = TT_SEG_PAYLOAD_MAX }

static struct {
    TtLogEncoder *encoder;
    TtLogWriter *writer;
    TtSegBuf *open;
    TtRing *full, *empty;
    QemuSemaphore has_full, has_empty;
    QemuThread thread;
    uint64_t start_ns;
    uint64_t handed_bytes;          /* decoded, of all segments handed over */
    uint32_t payload_max;           /* bytes of payload that end a segment */
    uint64_t cut_before;            /* a part begins with this segment; 0: none */
    /* Set by the writer thread: */
    bool failed;
    TtDiag diag;
    uint64_t log_bytes;
    uint64_t sealed_bytes;          /* decoded */
    uint64_t sealed_pos;            /* where what is in the file ends */
    uint64_t lately_decoded, lately_stored;
    uint32_t ratio;                 /* stored to decoded, in 1/256, lately */
    bool is_unsynced;               /* the file has what the disk may not have */
    int64_t synced_ms;              /* host time of the last flush */
} wr = NEW_WRITER;

/* ---- its thread ---- */

/* An append failed; shall it be tried again? */
static bool make_room(void *opaque, const TtDiag *why)
{
    return (why->status == TT_ERR_NOSPACE && tt_record_ask_room()) ||
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
    uint64_t bytes = tt_log_writer_bytes(wr.writer);

    wr.lately_decoded = wr.lately_decoded / 4 * 3 + decoded_bytes(sb);
    wr.lately_stored = wr.lately_stored / 4 * 3 + bytes - wr.log_bytes;
    qatomic_set(&wr.log_bytes, bytes);
    qatomic_set(&wr.ratio, (wr.lately_stored << 8) /
                MAX(wr.lately_decoded, 1));
    qatomic_store_release(&wr.sealed_bytes,
                          wr.sealed_bytes + decoded_bytes(sb));
}

/* So that a power cut costs no more than the last seconds. */
static void sync_if_due(void)
{
    int64_t now = qemu_clock_get_ms(QEMU_CLOCK_REALTIME);

    if (!tt_record_options.sync_ms || !wr.is_unsynced || qatomic_read(&wr.failed) ||
        now - wr.synced_ms < tt_record_options.sync_ms) {
        return;
    }
    if (tt_log_writer_sync(wr.writer, &wr.diag) != TT_OK) {
        qatomic_set_mb(&wr.failed, true);
    }
    wr.is_unsynced = false;
    wr.synced_ms = qemu_clock_get_ms(QEMU_CLOCK_REALTIME);
}

static void wait_for_segment(void)
{
    if (wr.is_unsynced && tt_record_options.sync_ms) {
        qemu_sem_timedwait(&wr.has_full, tt_record_options.sync_ms);
    } else {
        qemu_sem_wait(&wr.has_full);
    }
}

/* The log goes on in the next part, if it is time. If the next part cannot be made, the
 * old one goes on. */
static void begin_part(const TtSegBuf *sb)
{
    uint64_t before = tt_log_writer_bytes(wr.writer);
    TtLogPlace at;
    TtDiag unused;
    TtIo *io;

    if (!tt_flight_is_on() || sb->last || qatomic_read(&wr.failed) ||
        (qatomic_read(&wr.cut_before) != sb->seq + 1 &&
         !tt_flight_wants_part()) ||
        tt_flight_create_part(&io, &unused) != TT_OK) {
        return;
    }
    at = tt_log_writer_place(wr.writer);
    if (tt_log_writer_next_part(wr.writer, patient(io), &wr.diag) != TT_OK) {
        qatomic_set_mb(&wr.failed, true);
        return;
    }
    tt_flight_part_begun(&at);
    tt_flight_grew(tt_log_writer_bytes(wr.writer) - before, at);
}

static void *writer_thread(void *opaque)
{
    for (;;) {
        uint64_t before;
        TtSegBuf *sb;
        bool last;

        wait_for_segment();
        sync_if_due();
        sb = tt_ring_pop(wr.full);
        if (!sb) {
            continue;
        }
        last = sb->last;
        before = tt_log_writer_bytes(wr.writer);
        if (!qatomic_read(&wr.failed) &&
            tt_log_writer_seal(wr.writer, sb, &wr.diag) != TT_OK) {
            qatomic_set_mb(&wr.failed, true);
        }
        wr.is_unsynced = true;
        if (!qatomic_read(&wr.failed)) {
            qatomic_set(&wr.sealed_pos, sb->end_pos);
            tt_flight_grew(tt_log_writer_bytes(wr.writer) - before,
                           tt_log_writer_place(wr.writer));
        }
        begin_part(sb);
        count_sealed(sb);
        tt_ring_push(wr.empty, sb);
        qemu_sem_post(&wr.has_empty);
        if (last) {
            break;
        }
    }
    return NULL;
}

/* ---- segments ---- */

static uint64_t run_ns(void)
{
    return qemu_clock_get_ns(QEMU_CLOCK_REALTIME) - wr.start_ns;
}

static void open_segment(void)
{
    TtSegBuf *sb;

    while (!(sb = tt_ring_pop(wr.empty)) && !(sb = tt_stall_segment())) {
        qemu_sem_timedwait(&wr.has_empty, 50);
    }
    tt_log_encoder_begin(wr.encoder, sb, tt_position(), run_ns());
    wr.open = sb;
}

/* The log if it were closed now: what is not sealed yet is guessed. */
static uint64_t expected(void)
{
    uint64_t unsealed = wr.handed_bytes -
        qatomic_load_acquire(&wr.sealed_bytes) +
        (wr.open ? wr.open->pl_len + tt_log_encoder_bytes(wr.encoder) : 0);

    return tt_record_bytes() + (unsealed * qatomic_read(&wr.ratio) >> 8);
}

bool tt_record_is_tight(void)
{
    uint64_t max = tt_record_options.max_size_bytes;

    return max && tt_flight_is_on() && tt_record_ask_checkpoints() &&
        expected() + wr.payload_max > max;
}

/*
 * A window's log goes on at its limit when its beginning is gone, and for that
 * there must be a checkpoint: the checkpointer lets no more be handed over while the
 * disk is at the last one, which else might be a whole log behind.
 */
static void make_way(void)
{
    tt_record_tell_grew(tt_record_is_tight());
}

static void hand_over(bool last)
{
    TtSegBuf *sb = tt_log_encoder_end(wr.encoder, last);

    wr.open = NULL;
    wr.handed_bytes += decoded_bytes(sb);
    tt_ring_push(wr.full, sb);
    qemu_sem_post(&wr.has_full);
    if (!last) {
        make_way();
    }
}

void tt_writer_hand_over(void)
{
    if (wr.open->n_events) {
        hand_over(false);
        open_segment();
    }
}

void tt_writer_put(const TtEvent *ev)
{
    if (unlikely(!tt_log_encoder_fits(wr.encoder, ev) ||
                 wr.open->pl_len + wr.open->named_bytes >= wr.payload_max)) {
        hand_over(false);
        open_segment();
    }
    tt_log_encoder_put(wr.encoder, ev);
}

bool tt_writer_has_failed(const char **why)
{
    *why = wr.diag.text;
    return qatomic_read(&wr.failed);
}

/* Until what was handed over is in the file, or cannot be written. */
static void wait_for_writer(void)
{
    while (!qatomic_read(&wr.failed) && !tt_stall_why() &&
           qatomic_load_acquire(&wr.sealed_bytes) != wr.handed_bytes) {
        g_usleep(200);
    }
}

/* A guess can be far off while RAM is stored, or when the thread is behind. So the
 * log is sealed before the limit counts as reached. */
bool tt_writer_is_full(void)
{
    uint64_t max = tt_record_options.max_size_bytes;

    max -= max / FINISH_SHARE;
    if (!max || expected() < max || tt_stall_why() ||
        (tt_flight_is_on() && tt_record_ask_checkpoints())) {     /* it moves on */
        return false;
    }
    tt_writer_hand_over();
    wait_for_writer();
    return !tt_stall_why() && expected() >= max;
}

bool tt_record_seal(Error **errp)
{
    tt_writer_hand_over();
    wait_for_writer();
    if (tt_stall_why()) {
        error_setg(errp, "the recording cannot be written now: %s",
                   tt_stall_why());
        return false;
    }
    if (qatomic_read(&wr.failed)) {
        error_setg(errp, "%s", wr.diag.text);
        return false;
    }
    return true;
}

/* Segments are few, and whoever waits for one holds the BQL: not the last ones, and none
 * of those that are lent to a log that cannot be written. */
uint64_t tt_record_settle(void)
{
    if (!tt_past && tt_session.live && !tt_stall_why() &&
        tt_ring_used(wr.empty) > SETTLE_LEAVES) {
        tt_writer_hand_over();
    }
    return wr.handed_bytes;
}

bool tt_record_is_settled(uint64_t mark)
{
    return !tt_session.live || wr.handed_bytes < mark || qatomic_read(&wr.failed) ||
        tt_stall_why() || qatomic_load_acquire(&wr.sealed_bytes) >= mark;
}

void tt_record_limit_segments(uint64_t log_bytes)
{
    if (log_bytes) {
        wr.payload_max = CLAMP(log_bytes / SEGMENTS_OF_WINDOW, 64 * KiB,
                                TT_SEG_PAYLOAD_MAX);
    }
}

bool tt_record_cut(uint64_t *seq, Error **errp)
{
    *seq = wr.open->seq + 1;
    if (!wr.open->n_events) {           /* its note was the last that there was room for */
        error_setg(errp, "the recording has reached max-size and ends: what there is of it "
                   "is in '%s'", tt_printable(tt_session.dir));
        return false;
    }
    qatomic_set(&wr.cut_before, *seq);
    return tt_record_seal(errp);
}

uint64_t tt_record_end(void)
{
    return tt_session.gave_up ? tt_session.gave_up_at : qatomic_read(&wr.failed) ?
        qatomic_read(&wr.sealed_pos) : tt_position();
}

uint64_t tt_record_ns(void)
{
    return run_ns();
}

void tt_record_place(uint64_t *segment, uint32_t *index)
{
    *segment = wr.open->seq;
    *index = wr.open->n_events;
}

uint64_t tt_record_bytes(void)
{
    return tt_flight_is_on() ? tt_flight_log_bytes() :
        qatomic_read(&wr.log_bytes);
}

/* ---- start and end ---- */

static bool make_segments(Error **errp)
{
    qemu_sem_init(&wr.has_full, 0);
    qemu_sem_init(&wr.has_empty, 0);
    wr.full = tt_ring_new(TT_SEGMENTS + TT_STALL_SEGMENTS);
    wr.empty = tt_ring_new(TT_SEGMENTS + TT_STALL_SEGMENTS);
    for (int i = 0; i < TT_SEGMENTS; i++) {
        TtSegBuf *sb = tt_segbuf_new();

        if (!sb) {
            error_setg(errp, "not enough memory for the log's buffers");
            return false;
        }
        tt_ring_push(wr.empty, sb);
    }
    wr.encoder = tt_log_encoder_new();
    return true;
}

/* One file, or the first part. */
static TtStatus open_log(TtDiag *diag)
{
    TtLogPlace start = { 0 };
    g_autofree char *path = tt_logparts_path(tt_session.dir, 0);
    TtStatus s;
    TtIo *io;

    tt_flight_begin();
    s = tt_flight_is_on() ? tt_flight_create_part(&io, diag) :
        tt_io_posix_create(path, &io, diag);
    if (s != TT_OK) {
        return s;
    }
    tt_rundir_made_log();
    if (tt_flight_is_on()) {
        tt_session.manifest.features |= TT_FEATURE_WINDOW;
        s = tt_log_writer_new_part(patient(io), tt_session.manifest.uuid, &start,
                                   &wr.writer, diag);
        tt_flight_part_begun(&start);
        tt_flight_grew(s == TT_OK ? tt_log_writer_bytes(wr.writer) : 0, start);
    } else {
        s = tt_log_writer_new(patient(io), tt_session.manifest.uuid, &wr.writer, diag);
    }
    return s;
}

bool tt_writer_open(Error **errp)
{
    TtDiag diag;

    if (!make_segments(errp)) {
        return false;
    }
    if (open_log(&diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    return true;
}

void tt_writer_start(void)
{
    wr.start_ns = qemu_clock_get_ns(QEMU_CLOCK_REALTIME);
    qemu_thread_create(&wr.thread, "tt-writer", writer_thread, NULL,
                       QEMU_THREAD_JOINABLE);
    open_segment();
}

bool tt_writer_is_at_work(void)
{
    return wr.open;
}

void tt_writer_end(void)
{
    hand_over(true);
    qemu_thread_join(&wr.thread);
}

void tt_writer_sync(void)
{
    TtDiag diag;

    if (!wr.failed && tt_log_writer_sync(wr.writer, &diag) != TT_OK) {
        wr.failed = true;
        wr.diag = diag;
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

void tt_writer_close(void)
{
    tt_log_writer_free(wr.writer);
    tt_log_encoder_free(wr.encoder);
    if (wr.full) {
        free_ring(wr.full);
        free_ring(wr.empty);
        qemu_sem_destroy(&wr.has_full);
        qemu_sem_destroy(&wr.has_empty);
    }
    wr = (typeof(wr)) NEW_WRITER;
}
