/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the checkpoints of the user need of the periodic ones.
 *
 * Context: the BQL is held, and the checkpoint store is not busy.
 */
#ifndef TT_CHECKPOINTER_INT_H
#define TT_CHECKPOINTER_INT_H

#include "io/tt-base.h"
#include "run/tt-cpstate.h"

/* With its share of max-size; that of the log gets smaller. */
bool tt_checkpointer_open_store(TtDiag *diag);
/* As tt_cptake. False: storing failed, and the checkpointer is off. */
bool tt_checkpointer_take(CPUState *cpu, uint32_t flags, TtBytes full, uint32_t *job);
/* Main thread: stops the VM, takes a full one that nobody asked for, and lets the VM go
 * on. False: there can be none, *errp, and nothing was taken. */
bool tt_checkpointer_take_full(Error **errp);
/* It has no room under max-size. */
void tt_checkpointer_drop_newest(void);
/* The checkpoint store is for the user's, just now: others wait, and what is logged
 * urges none. */
void tt_checkpointer_reserve(bool on);
bool tt_checkpointer_is_reserved(void);
/* A task of the user's waits for the store (+1), or no more (-1): until then the
 * recorder's own checkpoints leave it alone. */
void tt_checkpointer_is_wanted(int change);

#endif
