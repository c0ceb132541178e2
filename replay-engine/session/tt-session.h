/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The session of this process: its run directory, its manifest, where it stands and how
 * it stopped.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_SESSION_H
#define TT_SESSION_H

#include "run/tt-manifest.h"

/* Positions between two flushes of the TLB, in the recording and in every
 * replay (hazard 1). 2^23 is some 10 ms of guest work; a flush costs
 * some 50 us of refills (2026-11). */
#define TT_SYNC_INTERVAL (1ull << 23)

typedef struct TtSession {
    const char *dir;            /* the run directory; interned: stays valid */
    TtManifest manifest;
    bool live;                  /* events are recorded or replayed now */
    bool has_begun;             /* the recording has, and perhaps ended */
    bool gave_up;               /* the recording ended by itself, here: */
    uint64_t gave_up_at;
    bool finished;              /* the end of the run has been dealt with */
    uint64_t events;            /* recorded, or replayed so far */
    int last_stop;              /* TtStopReason of the last stop */
} TtSession;

extern TtSession tt_session;

/* Changes tt_mode, and with it to whom the vCPU and the devices report
 * (tt-ops.h). BQL, the vCPU is outside guest code. */
void tt_set_mode(int mode);

/*
 * Two worlds: while the past is shown, the present stands aside. Every room that
 * has state of a world registers it once, at start; @other is what the other
 * world begins with (NULL: zeros). tt_world_swap exchanges all of them and the
 * mode; tt_world_begin makes the one that is aside new.
 */
void tt_world_register(void *state, const void *other, size_t size_bytes);
void tt_world_swap(void);
void tt_world_begin(void);
typedef void TtWorldSwapped(void);
void tt_world_notify(TtWorldSwapped *swapped);  /* after each swap */

bool tt_block_migration(Error **errp);
void tt_unblock_migration(void);

void tt_set_dir(const char *dir);               /* NULL or "": none given */

/* Is there a position to mark or to look at now? False: *errp says why not. */
bool tt_is_live(Error **errp);

const char *tt_stop_name(int reason);

/* Ends of messages: in one wording, right for both monitors. */
#define TT_RETURN_FIRST "return to the present first ('tt goto end', in QMP tt-goto " \
    "with where=end)"
#define TT_WAIT_OR_INTERRUPT "wait for it to end, or use 'tt interrupt' (in QMP " \
    "tt-interrupt)"

#endif
