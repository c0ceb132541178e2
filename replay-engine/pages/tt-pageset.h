/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page set: which keys were put since the set was last cleared, each with a
 * pointer. Exact (nothing is evicted, unlike a cache), and clearing it is O(1),
 * since guests do that thousands of times a second. Used for the code pages that
 * were entered since the TLB was flushed.
 *
 * Context: one thread at a time. No I/O. Memory: 24 bytes for each slot, at most
 * three quarters of them used; grows by doubling, never shrinks.
 * Cost: O(1) expected for each call.
 */
#ifndef TT_PAGESET_H
#define TT_PAGESET_H

#include "io/tt-base.h"

typedef struct TtPageSet TtPageSet;

TtPageSet *tt_pageset_new(void);
void tt_pageset_free(TtPageSet *s);
/* Another set with the same keys. O(slots). */
TtPageSet *tt_pageset_copy(const TtPageSet *s);
/* Host memory of it. */
size_t tt_pageset_bytes(const TtPageSet *s);
/* False: @key is not in the set; *@val is left alone then. */
bool tt_pageset_find(const TtPageSet *s, uint64_t key, void **val);
/* @key must not be in the set. @val may be NULL; it is not owned. */
void tt_pageset_put(TtPageSet *s, uint64_t key, void *val);
/* Does nothing when @key is not in the set. */
void tt_pageset_drop(TtPageSet *s, uint64_t key);
void tt_pageset_clear(TtPageSet *s);
size_t tt_pageset_count(const TtPageSet *s);

#endif
