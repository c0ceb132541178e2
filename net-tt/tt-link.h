/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One end of a link between two members of a group, or of a member and a hub: bytes in,
 * frames out, and the other way round. It has no socket: the owner of the socket passes
 * on received bytes, and sends those that tt_link_out holds.
 *
 * Each side begins with a hello. When both have the other's, each says READY; then
 * frames follow. With a key of the group each message is authenticated, with a key of
 * its own for each connection and direction, so overheard messages are worth nothing
 * later. Nothing is encrypted. Who takes no peer says why in the place of READY, one of a few
 * numbers; before both have the other's hello that is not authenticated.
 *
 *   new -> (hello came) -> (READY came) open -> broken: by any error but a dropped
 *   frame; the connection must be closed then, and a new link made for the next.
 *
 * Context: one thread at a time. Memory: some 300 KiB at most, besides what the
 * caller lets grow in tt_link_out. Bytes of the peer are never trusted.
 */
#ifndef TT_LINK_H
#define TT_LINK_H

#include "tt-frame.h"

typedef struct TtLink TtLink;

typedef struct TtLinkOptions {
    const char *group;          /* tt_group_name_is_fit */
    const uint8_t *key;         /* of the group; NULL: no authentication */
    size_t key_len;
    bool is_hub;                /* and tt_link_next returns checkpoints, too */
    uint8_t nonce[TT_NONCE_BYTES];      /* never used before */
} TtLinkOptions;

/* The options are not used afterwards. The hello is in tt_link_out. */
TtLink *tt_link_new(const TtLinkOptions *o);
void tt_link_free(TtLink *l);
/* Frames can be sent: both sides are ready. */
bool tt_link_is_open(const TtLink *l);

/* Bytes that came: at most TT_LINK_PUT_MAX, and only when tt_link_next has said
 * TT_END. */
#define TT_LINK_PUT_MAX 65536
void tt_link_put(TtLink *l, const uint8_t *bytes, size_t len);
/*
 * tt_link_next: the next frame of what came, or incident (is_incident), in the order in
 * which the peer sent them; for a hub, also checkpoint @f->epoch of the group (is_epoch)
 * Returns TT_OK: *@f, whose data is valid until the next call; TT_END: more bytes are
 * needed; TT_ERR_MISMATCH: this frame is dropped, @diag says why, and the link
 * goes on. Anything else: the link is broken, and repeats it.
 */
TtStatus tt_link_next(TtLink *l, TtFrame *f, TtDiag *diag);

/*
 * tt_link_meet: what came up to the READY of the peer, and no frame
 * Returns TT_OK: the link is open, and tt_link_next goes on from there; else as
 * tt_link_next, which does this, too, when nobody did.
 */
TtStatus tt_link_meet(TtLink *l, TtDiag *diag);

/* Appends @f, whose hash is right, to what is to be sent; the link is open. */
void tt_link_send(TtLink *l, const TtFrame *f);
/* Appends that checkpoint @epoch of the group was made; the link is open. */
void tt_link_send_epoch(TtLink *l, uint32_t epoch);
/* Appends an incident; the link is open. */
void tt_link_send_incident(TtLink *l, const TtIncident *i);
/* Appends that this side takes no peer, and why; then the connection is to be closed. Nothing
 * else is sent by this link. The peer's tt_link_next says why, with TT_ERR_INVALID. */
void tt_link_refuse(TtLink *l, TtRefusal why);
/* Has the peer said that? */
bool tt_link_is_refused(const TtLink *l);
/* A sentence for people, also for a number that a newer version may say. */
const char *tt_refusal_text(uint64_t why);
/* The highest that the peer has said, in this way; 0: none. */
uint32_t tt_link_epoch(const TtLink *l);
/* The bytes to be sent; the sender takes them out with tt_link_sent. */
const uint8_t *tt_link_out(const TtLink *l, size_t *len);
void tt_link_sent(TtLink *l, size_t len);

/*
 * The key of a group: the bytes of a regular file, without a newline at its end. TT_ERR_IO;
 * TT_ERR_INVALID: it is no regular file, or all bytes are the same; TT_ERR_LIMIT: too short or
 * too long. Reads no more than a key may have, and waits for nobody. g_free.
 */
TtStatus tt_group_key_load(const char *path, uint8_t **key, size_t *len, TtDiag *diag);

/* Can everybody on this host read or write the file? Then it is worth a warning. */
bool tt_group_key_is_public(const char *path);

/* ---- frames that came before ---- */

/*
 * The sequences heard of each run: a frame that comes a second time is known, as long
 * as it is among the last TT_HEARD_WINDOW sequences of one of the last TT_HEARD_RUNS
 * runs.
 */
#define TT_HEARD_WINDOW 16384       /* of all links of a VM together */
#define TT_HEARD_RUNS   64

typedef struct TtHeardRun {
    uint8_t run[TT_RUN_BYTES];
    uint64_t next;              /* above the highest sequence */
    uint64_t used;              /* when it was last heard of */
    uint64_t bits[TT_HEARD_WINDOW / 64];
} TtHeardRun;

typedef struct TtHeard {
    uint64_t clock;
    unsigned n;
    TtHeardRun runs[TT_HEARD_RUNS];
} TtHeard;                      /* begins as zeros */

/* False: it came before, or is too old to tell. O(TT_HEARD_RUNS), and O(TT_HEARD_WINDOW) bits
 * behind a gap. */
bool tt_heard_is_new(TtHeard *h, const TtFrame *f);

/* ---- how many incidents are taken ---- */

/* Each costs every member a pause, a mark and perhaps a window on disk. */
#define TT_BURST_MAX    10          /* in any ... */
#define TT_BURST_MS     10000

typedef struct TtBurst {
    unsigned n, next;               /* of those, and the oldest, if there are as many */
    int64_t at_ms[TT_BURST_MAX];
} TtBurst;                          /* begins as zeros */

/* One more came: is it more than @max (TT_BURST_MAX at most) in the last TT_BURST_MS? Those
 * that are do not count. */
bool tt_burst_is_over(TtBurst *b, unsigned max, int64_t now_ms);

#endif
