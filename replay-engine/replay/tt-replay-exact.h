/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether the replay is exact: digests, divergence, damage.
 *
 * Context: the vCPU thread, BQL held; the functions without side effects: BQL.
 */
#ifndef TT_REPLAY_EXACT_H
#define TT_REPLAY_EXACT_H

#include "io/tt-base.h"
#include "log/tt-log.h"

/* The replay cannot go on: it diverged; the log cannot be read. */
void tt_replay_report(const char *fmt, ...) G_GNUC_PRINTF(1, 2);
void tt_replay_damaged(const TtDiag *diag);
/* The same, where something outside the log is missing; says what can be reached without
 * it. */
void tt_replay_lacks(const TtDiag *diag);
/* Why it cannot go on, as a TtStopReason. */
int tt_replay_failure(void);
/* The release of QEMU that recorded it, for people; NULL: this one. To be freed. */
char *tt_replay_other_release(void);

uint64_t tt_replay_digests(void);       /* verified so far */
uint64_t tt_replay_last_equal(void);    /* position of the last digest that was
                                           as recorded, before this one; 0 */

/* ---- for the replayer ---- */

/* A CHECK or a DIGEST of the log, at its position. */
void tt_replay_check(const TtEvent *ev);
/* The log is read to its end: does it end in damage? Then that was reported. */
bool tt_replay_ends_in_damage(void);
void tt_replay_exact_reset(void);

#endif
