/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The log of a run: all inputs from the outside world to the replayed system, in order.
 * Format: docs/reference/log-format.rst.
 *
 * Model: events are encoded by the producer straight into the buffers of the
 * open segment (no allocation, no I/O); a full segment is handed to a writer
 * thread, which seals it: compresses, checksums, appends. Each segment decodes
 * on its own (all delta state starts at zero). A reader decodes a whole segment
 * into an array of TtEvent. (XenTT 3.4: the logging pipeline; TTVM 3.2: what to
 * log.)
 *
 * Context: TtLogEncoder: one producer at a time (glue: BQL held). TtLogWriter:
 * the writer thread. TtLogReader: one thread per reader.
 * Stability: on-disk format through the document; this API is internal.
 */
#ifndef TT_LOG_H
#define TT_LOG_H

#include "io/tt-base.h"
#include "io/tt-io.h"

/*
 * Event kinds. Numbers are the format: never reused, never renumbered.
 * Kinds 1..15 are synchronous: consumed inside the instruction that asks.
 * Kinds 16..31 are asynchronous: applied between two instructions, at an exact
 * position, and each moves the position on by one (unless nested).
 * Kinds 32..63 are annotations: never needed to replay, never move it.
 */
typedef enum TtEventKind {
    TT_EV_PIO_IN = 1,       /* addr=port size val aux=MemTxResult */
    TT_EV_PIO_OUT = 2,      /* the same; checked, not fed */
    TT_EV_MMIO_LD = 3,      /* addr=guest-physical size val aux=MemTxResult */
    TT_EV_MMIO_ST = 4,
    TT_EV_TSC = 5,          /* val */
    TT_EV_MSR_RD = 6,       /* addr=index val aux=status */
    TT_EV_MSR_WR = 7,       /* addr=index val=what came back aux=status */
    TT_EV_CR8_RD = 8,       /* val */
    TT_EV_RAND = 9,         /* size val aux=carry flag */
    TT_EV_CPUID = 10,       /* addr=leaf | subleaf << 32,
                               data=eax ebx ecx edx */
    TT_EV_VALUE = 11,       /* addr=site number val: any other host value */
    TT_EV_HLT = 12,         /* exits only: the vCPU has come to HLT; val=1: it
                               was shut down by a triple fault */
    TT_EV_TPR_WR = 13,      /* exits only: val=CR8, lowered by the guest */

    TT_EV_INTR = 16,        /* addr=interrupt class (TT_INTR_*) val=vector */
    TT_EV_UNHALT = 17,
    TT_EV_RAM = 18,         /* addr=block index val=offset data=bytes */
    TT_EV_MAP = 19,         /* addr=address space index data=sections */
    TT_EV_CPU_FLAG = 20,    /* addr=TT_FLAG_* val */
    TT_EV_CPU_STATE = 21,   /* val=halted data=vCPU state blob */
    TT_EV_BLOCK = 22,       /* addr=block index val=bytes aux=flags data=name */
    TT_EV_CPU_SWITCH = 23,  /* reserved: addr=vCPU that runs next */
    TT_EV_RAM_FILL = 24,    /* addr=block index val=offset aux=byte
                               data=le64 length: a discarded range */
    TT_EV_LANDMARK = 25,       /* exits only: the vCPU was made to leave guest code
                               here; data=a place, see tt-landmark.h */
    TT_EV_WINDOW = 26,      /* exits only: at the next boundary at which the
                               vCPU can take an interrupt */
    TT_EV_CPUID_TABLE = 27, /* exits only: data=what CPUID answers */

    TT_EV_DISK = 28,        /* addr=block index val=offset aux=bytes that a
                               disk has, data=which, see TtDiskRef */

    TT_EV_LANDMARK_PAGES = 29, /* exits only: data=written pages, see tt-landmark.h:
                               more of those of the place that follows */
    TT_EV_BRANCHES = 30,    /* exits only: val=conditional branches from the last exact
                               place to the place that follows */
    TT_EV_PAYLOAD = 31,     /* addr=block index val=offset aux=bytes that a frame has
                               data=which, see net-tt/tt-framestore.h */

    TT_EV_CHECK = 32,       /* addr=output hash val=cpu digest */
    TT_EV_DIGEST = 33,      /* addr=cpu digest val=ram digest */
    TT_EV_MARK = 34,        /* data=name */
    TT_EV_NOTE = 35,        /* data=UTF-8 text for people */
    TT_EV_FINISH = 36,      /* val=TT_FINISH_*: a clean end of the run */
    TT_EV_SCREEN = 37,      /* addr=TT_SCREEN_* val=picture aux data: below */
    TT_EV_FRAME = 38,       /* addr=TT_FRAME_* val=sequence aux=bytes of the frame
                               data=see net-tt/tt-frame.h */
    TT_EV_TIME = 39,        /* addr=host ns since the run began val=the guest's time
                               stamp counter then */
    TT_EV_FRAME_OUT = 40,   /* was sent: val=sequence aux=bytes of the frame
                               data=see net-tt/tt-frame.h */
    TT_EV_FRAME_IN = 41,    /* was delivered: addr=position of its sender, val, aux and
                               data as before */
    TT_EV_KIND_MAX = 63,
} TtEventKind;

#define TT_EV_ANNOTATION_MIN      32
#define TT_EV_IS_SYNC(kind)       ((kind) < 16)
#define TT_EV_IS_ASYNC(kind) \
    ((kind) >= 16 && (kind) < TT_EV_ANNOTATION_MIN)
#define TT_EV_IS_ANNOTATION(kind) ((kind) >= TT_EV_ANNOTATION_MIN)

enum { TT_INTR_HARD = 1, TT_INTR_NMI = 2, TT_INTR_SMI = 3, TT_INTR_INIT = 4,
       TT_INTR_SIPI = 5, TT_INTR_MCE = 6, TT_INTR_VIRQ = 7,
       TT_INTR_INTERCEPTED = 0x80 /* or'ed: it became an exit to the
                                     guest's own hypervisor (SVM) */ };
enum { TT_FLAG_A20 = 1, TT_FLAG_IGNNE = 2, TT_FLAG_APIC_FEATURE = 3,
       TT_FLAG_TPR = 4 /* exits only: what CR8 reads */,
       TT_FLAG_TSC = 5 /* exits only: what RDTSC reads from here on */,
       TT_FLAG_REGISTER = 16 /* plus the number of a general register */ };
enum { TT_FINISH_QUIT = 1, TT_FINISH_STOPPED = 2 };
/* A change of a virtio-gpu to its pictures; data as in docs/reference/log-format. */
enum { TT_SCREEN_RESET = 1, TT_SCREEN_CREATE = 2, TT_SCREEN_BACKING = 3,
       TT_SCREEN_DETACH = 4, TT_SCREEN_DESTROY = 5, TT_SCREEN_TAKE = 6,
       TT_SCREEN_BYTES = 7, TT_SCREEN_SHOW = 8 };

typedef struct TtEvent {
    uint8_t kind;           /* TtEventKind */
    bool nested;            /* happened inside a device call of the vCPU: it
                               belongs to the synchronous event that follows
                               and does not move the position */
    uint8_t size;           /* access size in bytes: 0, 1, 2, 4, 8 */
    uint8_t cpu;            /* vCPU index; 0 for now */
    uint32_t aux;
    uint64_t pos;           /* position at which it happened; see design */
    uint64_t addr;
    uint64_t val;
    uint32_t len;           /* bytes at @data; 0 for most kinds */
    const uint8_t *data;    /* encoder: the caller's; reader: the segment's */
} TtEvent;

/* How far the position moves when this event is applied: 1 or 0. */
static inline unsigned tt_event_step(const TtEvent *ev)
{
    return TT_EV_IS_ASYNC(ev->kind) && !ev->nested;
}

/* The log names the bytes, and does not have them: a disk has, or a frame. */
static inline bool tt_event_is_named(unsigned kind)
{
    return kind == TT_EV_DISK || kind == TT_EV_PAYLOAD;
}

/* A note of a frame. */
static inline bool tt_event_is_frame(unsigned kind)
{
    return kind == TT_EV_FRAME || kind == TT_EV_FRAME_OUT || kind == TT_EV_FRAME_IN;
}

/* Bytes that stand at @data, or elsewhere. */
static inline uint32_t tt_event_bytes(const TtEvent *ev)
{
    return tt_event_is_named(ev->kind) ? ev->aux : ev->len;
}

#define TT_LOG_DATA_MAX        (64u << 10)  /* bytes of one event's data */
#define TT_LOG_INLINE_MAX      16u          /* up to here data is not payload */
#define TT_SEG_EVENTS_MAX      (512u << 10) /* event bytes of one segment */
#define TT_SEG_PAYLOAD_MAX     (4u << 20)   /* payload bytes of one segment */
#define TT_LOG_POS_MAX         INT64_MAX    /* a position */
#define TT_LOG_SEGMENTS_MAX    (1u << 26)   /* in one log, and in one part */
#define TT_LOG_NUMBER_MAX      INT64_MAX    /* of a segment, of an event */

/*
 * Where a log begins, or goes on. A log is one file from segment 0 on, or parts:
 * files one after another, the first of which may begin anywhere (a window that
 * moves, log/tt-window.h).
 */
typedef struct TtLogPlace {
    uint64_t segment;           /* number of the next one */
    uint64_t event;             /* ordinal of its first event */
    uint64_t pos;               /* it does not begin before this */
} TtLogPlace;

/* One segment on its way from the encoder to the writer. */
typedef struct TtSegBuf {
    uint64_t seq;               /* 0, 1, 2 ... */
    uint64_t first_event;       /* ordinal of its first event */
    uint64_t first_pos;         /* position at its start */
    uint64_t end_pos;           /* last event's position + step, or first_pos */
    uint64_t host_ns;           /* host time at its start, since run start */
    uint32_t n_events;
    uint32_t ev_len, pl_len;    /* bytes used in the two buffers */
    uint32_t named_bytes;       /* that are elsewhere: they would fit in here, too */
    bool last;                  /* the log was closed cleanly */
    bool is_ram_by_len;         /* R14 */
    uint64_t kind_count[TT_EV_KIND_MAX + 1];
    uint64_t kind_bytes[TT_EV_KIND_MAX + 1];    /* encoded, without payload */
    uint64_t kind_payload[TT_EV_KIND_MAX + 1];
    uint8_t *ev;                /* TT_SEG_EVENTS_MAX */
    uint8_t *pl;                /* TT_SEG_PAYLOAD_MAX */
} TtSegBuf;

TtSegBuf *tt_segbuf_new(void);          /* NULL when memory is short */
void tt_segbuf_free(TtSegBuf *sb);

/* ---- encoder: the producer's side ---- */
typedef struct TtLogEncoder TtLogEncoder;

TtLogEncoder *tt_log_encoder_new(void);
TtLogEncoder *tt_log_encoder_new_at(const TtLogPlace *at);
void tt_log_encoder_free(TtLogEncoder *e);

/*
 * tt_log_encoder_begin: start segment @sb (reset; the encoder borrows it until
 * tt_log_encoder_end). @pos: position now; @host_ns: see TtSegBuf.
 */
void tt_log_encoder_begin(TtLogEncoder *e, TtSegBuf *sb, uint64_t pos,
                          uint64_t host_ns);
/* Before the first event of a segment: it is coded as one of which @is_ram_by_len is so. A
 * copy of a segment that was full fits only if it is coded alike. */
void tt_log_encoder_code_alike(TtLogEncoder *e, bool is_ram_by_len);
/* True when @ev still fits in the open segment, also if those of its events whose bytes
 * are elsewhere had them here, as `tt pack` makes them. An empty segment takes any event
 * (tt_event_bytes <= TT_LOG_DATA_MAX). O(1). */
bool tt_log_encoder_fits(const TtLogEncoder *e, const TtEvent *ev);
/* Event bytes in the open segment. */
uint32_t tt_log_encoder_bytes(const TtLogEncoder *e);
/*
 * Appends; the caller asked tt_log_encoder_fits. Asserts: a kind that is listed
 * above or an annotation, an access size of 0, 1, 2, 4 or 8, and a position
 * that is not below that of the event before plus its step, across segments
 * too. @ev and its data are not used afterwards.
 * O(len), no allocation: 8 to 23 ns (bench-log). Hot: called a million times
 * per guest second.
 */
void tt_log_encoder_put(TtLogEncoder *e, const TtEvent *ev);
/* Ends the open segment and returns it, the caller's again; its counters are
 * final. May move up to 512 KiB in memory (20 us). An empty one is fine. */
TtSegBuf *tt_log_encoder_end(TtLogEncoder *e, bool last);

/* ---- what a disk has ---- */

/* Bytes of a disk with versions: they never change while the version is there. */
typedef struct TtDiskRef {
    uint32_t disk;              /* number in the manifest */
    uint32_t version;
    uint64_t sector;            /* of 512 bytes: the first */
    uint32_t sum;               /* lower half of the XXH3-64 of the bytes */
} TtDiskRef;

#define TT_DISK_REF_BYTES_MAX  24
uint32_t tt_disk_ref_encode(const TtDiskRef *ref, uint8_t *out);
/* False: the event is damaged. */
bool tt_disk_ref_decode(const TtEvent *ev, TtDiskRef *ref);

/* ---- writer: the sealing side ---- */
typedef struct TtLogWriter TtLogWriter;

/* Writes the file head to an empty file. @io is owned from here on, also on
 * failure. Returns TT_OK or what @io failed with, or TT_ERR_NOMEM. */
TtStatus tt_log_writer_new(TtIo *io, const uint8_t uuid[16],
                           TtLogWriter **out, TtDiag *diag);
/* @io has a log without an end: what is after its first @bytes is cut off, and it goes on
 * at @at. */
TtStatus tt_log_writer_go_on(TtIo *io, const uint8_t uuid[16], const TtLogPlace *at,
                             uint64_t bytes, TtLogWriter **out, TtDiag *diag);
/* The same for a part that begins at @at. */
TtStatus tt_log_writer_new_part(TtIo *io, const uint8_t uuid[16],
                                const TtLogPlace *at, TtLogWriter **out,
                                TtDiag *diag);
/* Flushes the part to disk and goes on in @io, an empty file, which it owns from
 * here on. A failure poisons the writer. */
TtStatus tt_log_writer_next_part(TtLogWriter *w, TtIo *io, TtDiag *diag);
/* Where the next segment will stand. */
TtLogPlace tt_log_writer_place(const TtLogWriter *w);
/*
 * A part that begins at @at and ends the log there: it has a finish event with
 * TT_FINISH_* @how, and nothing else. @io as for tt_log_writer_new.
 */
TtStatus tt_log_write_end(TtIo *io, const uint8_t uuid[16],
                          const TtLogPlace *at, uint64_t host_ns, unsigned how,
                          TtDiag *diag);
/*
 * Compresses and appends. Asserts that segments come in order and that none
 * follows the last one. TT_ERR_LIMIT: it would be one more than TT_LOG_SEGMENTS_MAX.
 * After a failure the writer is poisoned: it repeats the
 * first failure and writes nothing more; the file ends in a torn tail.
 * Cost: 30 to 55 ns an event, 0.4 ms a MiB of payload that does not compress,
 * 1.5 ms of payload that does (bench-log), and two appends.
 */
TtStatus tt_log_writer_seal(TtLogWriter *w, const TtSegBuf *sb, TtDiag *diag);
TtStatus tt_log_writer_sync(TtLogWriter *w, TtDiag *diag);
uint64_t tt_log_writer_bytes(const TtLogWriter *w);     /* of all parts so far */
void tt_log_writer_free(TtLogWriter *w);

/* ---- reader ---- */
typedef struct TtLogReader TtLogReader;

typedef struct TtSegInfo {
    uint64_t offset_bytes;      /* of the header in the file */
    uint64_t seq, first_event, first_pos, end_pos, host_ns;
    uint32_t n_events, ev_raw, ev_stored, pl_raw, pl_stored;
    bool last;
    bool is_ram_by_len;         /* R14 */
} TtSegInfo;

/* A decoded segment. Immutable; freed when the last reference goes. */
typedef struct TtSegment {
    TtSegInfo info;
    uint32_t n_events;
    TtEvent *events;            /* data pointers lead into this segment */
    /* private to the reader below */
    uint32_t refs;
    uint8_t *bytes;             /* payload, then the decoded event bytes */
    uint8_t *told;              /* data that R13 makes, or NULL */
} TtSegment;

/*
 * tt_log_reader_open: scan the segment headers of @io (owned, also on failure)
 * Returns TT_OK; TT_END_TORN as a success with a cut tail (@diag says where:
 * segments before the cut are all there; rules R6 to R8 of the format);
 * TT_ERR_FORMAT, _VERSION, _LIMIT, _IO, _NOMEM, and then *@out is NULL.
 * Cost: one small read per segment, and the last segment's checksum.
 */
TtStatus tt_log_reader_open(TtIo *io, TtLogReader **out, TtDiag *diag);
/*
 * tt_log_reader_open_part: the same, but when the headers are damaged after at
 * least one segment, *@out is a reader of what lies before
 * Then it returns TT_ERR_FORMAT or TT_ERR_LIMIT all the same, and
 * tt_log_reader_damage says what @diag does: never take the end for the end.
 */
TtStatus tt_log_reader_open_part(TtIo *io, TtLogReader **out, TtDiag *diag);
/* NULL: the log goes on to its end, or to where it was cut off. */
const TtDiag *tt_log_reader_damage(const TtLogReader *r);
void tt_log_reader_free(TtLogReader *r);
const uint8_t *tt_log_reader_uuid(const TtLogReader *r);
bool tt_log_reader_is_torn(const TtLogReader *r);
/* Size of the file when it was opened, torn tail included. */
uint64_t tt_log_reader_bytes(const TtLogReader *r);
uint64_t tt_log_reader_n_segments(const TtLogReader *r);
/* Segments are named by their numbers: @first up to, not including, @end. */
uint64_t tt_log_reader_first(const TtLogReader *r);
uint64_t tt_log_reader_end(const TtLogReader *r);
/* The beginning of the run is not in the log: a replay begins at a checkpoint. */
bool tt_log_reader_is_window(const TtLogReader *r);
const TtSegInfo *tt_log_reader_info(const TtLogReader *r, uint64_t seq);
/* The last segment with first_pos <= @pos, the first when there is none.
 * Events at @pos itself may lie in segments before it, too. O(log n). */
uint64_t tt_log_reader_find(const TtLogReader *r, uint64_t pos);
/*
 * tt_log_reader_load: decode segment number @seq, check all its checksums
 * The result has one reference for the caller. A few recent segments are kept
 * by the reader, so asking again is cheap.
 * Annotations of kinds that this version does not know are among the events;
 * step over them.
 * Returns TT_OK; TT_ERR_FORMAT for damage, _VERSION for an event that a newer
 * version is needed for, _LIMIT, _IO, _NOMEM, _INVALID for a @seq out of
 * range. The reader stays usable. Cost: some 25 ns an event, 16 MiB of memory
 * at most.
 */
TtStatus tt_log_reader_load(TtLogReader *r, uint64_t seq, TtSegment **out,
                            TtDiag *diag);
TtSegment *tt_segment_ref(TtSegment *s);
void tt_segment_unref(TtSegment *s);

/* Static name of a kind ("pio-in"), "kind-N" style names are not made up:
 * unknown kinds give NULL. */
const char *tt_event_kind_name(unsigned kind);
/* One line for people, without newline; returns what snprintf would. */
int tt_event_format(const TtEvent *ev, char *buf, size_t size);

#endif
