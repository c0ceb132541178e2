/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of this room share: places, questions, and what the last write was.
 *
 * Context: the vCPU thread, BQL held.
 */
#ifndef TT_ORIGIN_PARTS_INT_H
#define TT_ORIGIN_PARTS_INT_H

#include "debug/tt-flow.h"
#include "log/tt-log.h"

#define TT_ORIGIN_BYTES_MAX 64

/* Bytes of a register of a vCPU, or of RAM, within one page. */
typedef struct TtOriginPlace {
    TtFlowPlace at;                 /* MEM: the address by which it was named */
    unsigned cpu;
    uint64_t ram;               /* MEM: ram_addr_t */
} TtOriginPlace;

typedef struct TtOriginQuestion {
    TtOriginPlace place;
    uint64_t before;            /* a position: the last write before it */
    uint8_t value[TT_ORIGIN_BYTES_MAX];     /* there */
    unsigned parent, depth;     /* 0: it was asked by the user */
    bool is_rest;               /* the bytes that @parent's instruction did not write */
} TtOriginQuestion;

/* ---- the last write ---- */
typedef enum TtOriginBy {
    TT_ORIGIN_BY_INSN,
    TT_ORIGIN_BY_DEVICE,        /* RAM: a recorded device, @event */
    TT_ORIGIN_BY_EVENT,         /* an event between two instructions: an interrupt... */
    TT_ORIGIN_BY_EXCEPTION,     /* an instruction, or the delivery of an exception in or
                                 * after it */
    TT_ORIGIN_BY_NOBODY,        /* since the beginning of the run */
    TT_ORIGIN_TOO_FAR,          /* not within the bound */
    TT_ORIGIN_FAILED,           /* the movement ended: @reason, or @err */
} TtOriginBy;

typedef struct TtOriginFound {
    TtOriginBy by;
    uint64_t pos;               /* the state before it */
    uint64_t to;                /* ... and behind it */
    bool in_insn;               /* DEVICE: an instruction asked for it */
    uint64_t bytes;             /* DEVICE: which of the place's it wrote, a bit each */
    TtEvent event;              /* DEVICE: without data; */
    TtDiskRef disk;             /* of TT_EV_DISK */
    bool has_disk;
    bool is_fault;              /* EXCEPTION: the instruction was not completed; */
    uint64_t count;             /* RCX then: what is left of a repeated one */
    int reason;                 /* a TtStopReason */
    Error *err;                 /* FAILED: why it could not move, or NULL */
} TtOriginFound;

#endif
