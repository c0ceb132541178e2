/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What time it was at a position (XenTT, 4.5).
 *
 * The log has times (TT_EV_TIME) here and there, and each segment the time at which it
 * began. What lies between two of them is interpolated: so many instructions, so much
 * time. Where the vCPU halted there is one before and one after, so a halt is not spread
 * over instructions. Where the guest read its time stamp counter, that is a time, too: the
 * counter runs evenly between two. (Not where KVM had stopped it.)
 *
 * Context: any thread that may use the reader. Reads some segments, at most 64 each way.
 */
#ifndef TT_TIMEAT_H
#define TT_TIMEAT_H

#include "tt-log.h"

typedef struct TtMoment {
    bool is_there, has_tsc;
    uint64_t pos, host_ns, tsc;         /* host: since the run began */
} TtMoment;

typedef struct TtTimeAt {
    uint64_t pos, host_ns;
    bool has_tsc, has_read;
    uint64_t tsc;                       /* of the guest, at @pos */
    uint64_t read_at, read_tsc;         /* the guest's last look at it until then */
    double ns_per_instruction;          /* between the two; negative: not known */
    TtMoment earlier, later;            /* the last at or before @pos, the first after
                                           it */
} TtTimeAt;

/* @use_tsc_reads: the counter that the guest reads runs evenly (a recording under TCG).
 * @pos lies within the run. TT_ERR_*: a segment cannot be read. */
TtStatus tt_time_at(TtLogReader *r, uint64_t pos, bool use_tsc_reads, TtTimeAt *at,
                    TtDiag *diag);

#endif
