/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lock-free ring of pointers, one producer and one consumer: full segments go from the
 * vCPU to the writer thread in one ring, empty ones come back in another. It never
 * blocks; a caller that finds it full or empty must wait by itself. (XenTT 3.4)
 *
 * Context: push by one thread at a time, pop by one thread at a time.
 * Cost: O(1), no allocation after new.
 */
#ifndef TT_RING_H
#define TT_RING_H

#include "io/tt-base.h"

typedef struct TtRing TtRing;

TtRing *tt_ring_new(unsigned capacity);     /* 1 .. 4096 */
void tt_ring_free(TtRing *r);               /* does not free what it holds */
bool tt_ring_push(TtRing *r, void *p);      /* false: full. @p not NULL */
void *tt_ring_pop(TtRing *r);               /* NULL: empty */
unsigned tt_ring_used(const TtRing *r);     /* a snapshot */

#endif
