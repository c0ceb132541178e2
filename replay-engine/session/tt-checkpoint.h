/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A checkpoint, as it is shown to the user.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_CHECKPOINT_H
#define TT_CHECKPOINT_H

typedef struct TtCheckpointDesc {
    uint32_t id;
    uint64_t pos, pages;            /* pages: changed since the one before */
    bool pinned;                    /* made by the user: never thinned */
    bool full;                      /* a branch can start there */
    bool stored;                    /* the recorder made it; then also: */
    uint64_t host_ns;               /* host time since the run began */
    uint64_t bytes;                 /* on disk */
} TtCheckpointDesc;

#endif
