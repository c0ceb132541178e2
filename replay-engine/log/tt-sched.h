/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Event scheduler of a replay: a cursor over a log that answers "what is next" and "up
 * to which position may the vCPU run before something must be applied from outside". It
 * checks the replay against the recording, and describes the first difference; it
 * applies nothing itself.
 *
 * Context: the vCPU thread (or any single thread). tt_sched_peek is hot.
 * May block in TtIo when a segment is entered. (XenTT 3.2, 3.5)
 */
#ifndef TT_SCHED_H
#define TT_SCHED_H

#include "log/tt-log.h"

typedef struct TtSched TtSched;

/* A place in the log. Plain data: copy it freely, keep it in checkpoints. */
typedef struct TtCursor {
    uint64_t segment;
    uint32_t index;             /* event in the segment; may equal n_events */
} TtCursor;

/* @reader is borrowed and must outlive the scheduler. Starts at the first
 * event. Fails when the first segment cannot be read. */
TtStatus tt_sched_new(TtLogReader *reader, TtSched **out, TtDiag *diag);
void tt_sched_free(TtSched *s);

TtCursor tt_sched_tell(const TtSched *s);
/* TT_OK or the reader's failure, in which case the place is unchanged. */
TtStatus tt_sched_seek(TtSched *s, TtCursor c, TtDiag *diag);

/*
 * tt_sched_peek: the event at the cursor; NULL at the end of the log or when a
 * segment could not be read (tt_sched_status tells which). Valid until the
 * cursor moves twice. O(1).
 */
const TtEvent *tt_sched_peek(TtSched *s);
/* Moves on by one event. Asserts that there is one. */
void tt_sched_pop(TtSched *s);
/* TT_OK while events remain; TT_END / TT_END_TORN at the end; TT_ERR_*. */
TtStatus tt_sched_status(TtSched *s, TtDiag *diag);

/*
 * tt_sched_horizon: position of the first event at or after the cursor that is
 * not consumed inside an instruction: asynchronous, or an annotation (TT_EV_CHECK,
 * _DIGEST, _FINISH...), and not nested.
 * The vCPU may execute up to, and not beyond, it. When no such event is within
 * the next segment or so, a safe lower bound: it moves on as the replay does,
 * and lies beyond the event at the cursor wherever the log goes beyond it.
 * UINT64_MAX never, unless the log holds no further event at all. At a torn end
 * it is the last event's position: what came after it is not known.
 * A segment that cannot be read limits the horizon to where it starts; when
 * that leaves nothing to do, tt_sched_peek gives NULL from now on.
 * Amortised O(1) per event.
 */
uint64_t tt_sched_horizon(TtSched *s);

/*
 * tt_sched_match: does the synchronous event at the cursor fit what the replay
 * does now? Nested events and annotations (also of kinds not known to this
 * version) that stand before it are the caller's to apply and pop.
 * Compares kind, position, vCPU, addr, size and, for outputs (PIO_OUT,
 * MMIO_ST), val. TT_OK (not popped), TT_END/TT_END_TORN when the log is at its
 * end, or TT_ERR_MISMATCH with one sentence in @diag naming both sides.
 */
TtStatus tt_sched_match(TtSched *s, const TtEvent *seen, TtDiag *diag);

/* Up to @before and @after events around the cursor as text, one per line,
 * into a g_malloc'ed string (caller frees). For divergence reports. */
char *tt_sched_context(TtSched *s, unsigned before, unsigned after);

/* Position where the log ends: last event's pos plus its step. O(1): it stands
 * in the last segment's header. Always TT_OK. */
TtStatus tt_sched_end_pos(TtSched *s, uint64_t *pos, TtDiag *diag);

#endif
