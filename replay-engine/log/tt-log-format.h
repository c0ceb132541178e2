/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The log's bytes, shared by its writer and its reader and by nobody else.
 * docs/reference/log-format.rst is the authority; R-numbers are its rules.
 */
#ifndef TT_LOG_FORMAT_H
#define TT_LOG_FORMAT_H

#include "log/tt-log.h"
#include "io/tt-bytes.h"

/* ---- file head ---- */
#define TT_F_HEAD_MAGIC     "TTVMLOG\n"
#define TT_F_HEAD_BYTES     64
#define TT_F_HEAD_BYTES_MAX 4096
enum {
    TT_F_HEAD_LENGTH = 8,
    TT_F_HEAD_MUST_KNOW = 16,
    TT_F_HEAD_MAY_IGNORE = 24,
    TT_F_HEAD_CLEAR_ON_WRITE = 32,
    TT_F_HEAD_UUID = 40,
    TT_F_HEAD_SUM = 56,
    /* of a part: */
    TT_F_HEAD_FIRST_SEG = 64,
    TT_F_HEAD_FIRST_EVENT = 72,
    TT_F_HEAD_FIRST_POS = 80,
    TT_F_HEAD_PART_BYTES = 96,
};
#define TT_F_HEAD_PART      1ull        /* must-know: R11 */
#define TT_F_HEAD_KNOWN     TT_F_HEAD_PART

/* ---- segment header ---- */
#define TT_F_SEG_MAGIC      "TTVMSEG\n"
#define TT_F_SEG_BYTES      96
#define TT_F_SEG_BYTES_MAX  4096
enum {
    TT_F_SEG_LENGTH = 8,
    TT_F_SEG_FLAGS = 12,
    TT_F_SEG_SEQ = 16,
    TT_F_SEG_FIRST_EVENT = 24,
    TT_F_SEG_FIRST_POS = 32,
    TT_F_SEG_HOST_NS = 40,
    TT_F_SEG_N_EVENTS = 48,
    TT_F_SEG_EV_RAW = 52,
    TT_F_SEG_EV_STORED = 56,
    TT_F_SEG_PL_RAW = 60,
    TT_F_SEG_PL_STORED = 64,
    TT_F_SEG_END_POS = 72,
    TT_F_SEG_BODY_SUM = 80,
    TT_F_SEG_SUM = 88,
};
enum {
    TT_F_SEG_LAST = 1 << 0,
    TT_F_SEG_EV_ZSTD = 1 << 1,
    TT_F_SEG_PL_ZSTD = 1 << 2,
    TT_F_SEG_RAM_BY_LEN = 1 << 3,       /* R14 */
};
#define TT_F_SEG_FLAGS_KNOWN     0x000fu
#define TT_F_SEG_FLAGS_MUST_KNOW 0xffffu
#define TT_F_SEG_STORED_MAX \
    (TT_F_SEG_BYTES_MAX + TT_SEG_EVENTS_MAX + TT_SEG_PAYLOAD_MAX)

/* ---- event ---- */
#define TT_F_EV_KIND        0x3f
#define TT_F_EV_NESTED      0x40
#define TT_F_EV_SHORT       0x80
enum {
    TT_F_SHAPE_SIZE = 0x07,
    TT_F_SHAPE_CPU = 0x08,
    TT_F_SHAPE_AUX = 0x10,
    TT_F_SHAPE_ADDR = 0x20,
    TT_F_SHAPE_VAL = 0x40,
    TT_F_SHAPE_LEN = 0x80,
};
#define TT_F_EV_BYTES_MIN   2
/* Kind, position, shape, cpu, aux, addr, val (of a TSC event: nine and its low
 * byte), len, inline data. */
#define TT_F_EV_BYTES_MAX   (1 + 10 + 1 + 1 + 5 + 10 + 10 + 3 + \
                             TT_LOG_INLINE_MAX)

/* By how much the event bytes grow at most if an event whose bytes are elsewhere becomes a
 * ram event: from 2 bytes and its position to shape, cpu, addr, val and len; and what refers
 * to it: the next ram event by its addr, the next of its length by its val, and the next
 * event of the form of R13 by its val. */
#define TT_F_NAMED_GROWTH   ((1 + 1 + 10 + 10 + 3) + (10 + 10 + 10))

/* The base of the deltas of one kind; zero at the start of a segment (R4). */
typedef struct TtLogState {
    uint64_t addr;
    uint64_t base;              /* prediction of val */
    uint32_t aux;
    uint8_t size_code;
    uint8_t cpu;
} TtLogState;

/* Kinds that a replay cannot do without are all listed; see R9. */
static inline bool tt_log_kind_is_readable(unsigned kind)
{
    return kind >= TT_EV_ANNOTATION_MIN ||
           (kind >= TT_EV_PIO_IN && kind <= TT_EV_TPR_WR) ||
           (kind >= TT_EV_INTR && kind <= TT_EV_PAYLOAD);
}

/* A frame that passed: the next one has the next sequence number. */
static inline bool tt_log_is_frame(unsigned kind)
{
    return kind == TT_EV_FRAME_OUT || kind == TT_EV_FRAME_IN;
}

/* The expected val of the next event of its kind. */
static inline uint64_t tt_log_next_val(const TtEvent *ev)
{
    return ev->kind == TT_EV_RAM ? ev->val + ev->len :
           tt_event_is_named(ev->kind) ? ev->val + ev->aux :
           tt_log_is_frame(ev->kind) ? ev->val + 1 : ev->val;
}

static inline bool tt_log_val_is_signed(unsigned kind)
{
    return kind == TT_EV_RAM || tt_event_is_named(kind) || tt_log_is_frame(kind);
}

/*
 * A payload event of this size has no data in the log (R13): the last frame-in event of
 * the segment tells which frame it means, from its first byte on. Its data is then the
 * first TT_F_TOLD_BYTES of that event's data, its val as a varint, and 0. Its addr and val
 * are coded as if it were a ram event: it follows the frame's head, which is one.
 */
#define TT_F_TOLD_SIZE      2
#define TT_F_TOLD_BYTES     24
#define TT_F_TOLD_MAX       (TT_F_TOLD_BYTES + 10 + 1)

/* Where ram events ended (R14): a device writes things of one length side by side. */
#define TT_F_RAM_ENDS       32
typedef struct TtLogRamEnds {
    uint64_t of[TT_F_RAM_ENDS];         /* the last of about this length */
    uint64_t last;              /* and of any length: for R13 */
} TtLogRamEnds;

static inline uint64_t *tt_log_ram_end(TtLogRamEnds *ends, uint32_t len)
{
    return &ends->of[len < 16 ? len : 16 + (len >> 4 & 15)];
}

/* @in: data of the frame-in event with val @seq, TT_F_TOLD_BYTES or more. Returns the
 * length. */
uint32_t tt_log_told(uint8_t out[TT_F_TOLD_MAX], const uint8_t *in, uint64_t seq);

/* A split delta: the lowest eight bits apart, the others with their sign. */
static inline uint64_t tt_split_high(uint64_t delta)
{
    return tt_zigzag((uint64_t)((int64_t)delta >> 8));
}

static inline uint64_t tt_split_join(uint64_t high, uint8_t low)
{
    return tt_unzigzag(high) << 8 | low;
}

/* Seed of a log's segment checksums. */
uint64_t tt_log_seed(const uint8_t uuid[16]);

#endif
