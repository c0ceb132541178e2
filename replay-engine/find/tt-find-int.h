/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The places that a search looks at, and the stops that bring it there.
 *
 * Context: the vCPU thread, BQL held.
 */
#ifndef TT_FIND_INT_H
#define TT_FIND_INT_H

#include "debug/tt-cond.h"
#include "debug/tt-edge.h"

/* The value of the condition here. Also remembers which memory was read for it. */
TtStatus tt_find_look(const TtCond *c, uint64_t *value);
bool tt_find_is_at_place(const TtCond *c);
/* Breakpoints where it can become true; watchpoints on what the last look read. */
void tt_find_set_stops(const TtCond *c);
void tt_find_follow(void);              /* the last look read something else? */
/* The memory that the condition is the value of, @addr and @len bytes of it. */
bool tt_find_place(const TtCond *c, uint64_t *addr, unsigned *len);
/* False: somebody has taken some out meanwhile. */
bool tt_find_clear_stops(void);

/* ---- tt-find-written.c: the memory that a condition is the value of ---- */
void tt_find_written_begin(void);
void tt_find_written_pause(void);       /* the VM is moved, and nothing counts */
/* At @pos, after tt_find_look said @s and @value: has it been written since the last call?
 * Not by what came before the first one. */
bool tt_find_is_written(const TtCond *c, uint64_t pos, TtStatus s, uint64_t value);
/* NULL, or why some writes are missing or were noticed late. */
const char *tt_find_written_end(void);

/* ---- tt-find-quiet.c: parts that need not be executed ---- */
/*
 * The VM stands at @from, and @e has taken what is here. Up to where, at most @to, can
 * there be no hit (@of_writes: nor a write)? @from: not known. *@next: then this is a
 * place to ask again, or @to. Blocks on the run's files.
 */
uint64_t tt_find_quiet_until(const TtCond *c, const TtEdge *e, bool of_writes,
                             uint64_t from, uint64_t to, uint64_t *next);

#endif
