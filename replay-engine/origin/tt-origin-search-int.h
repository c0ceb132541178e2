/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The search for the last write.
 *
 * Context: the vCPU thread, BQL held.
 */
#ifndef TT_ORIGIN_SEARCH_INT_H
#define TT_ORIGIN_SEARCH_INT_H

#include "tt-origin-parts-int.h"

/* One at a time. @done is called later, or at once; found->err is its. */
void tt_origin_search(const TtOriginQuestion *q, uint64_t within,
                      void (*done)(const TtOriginFound *found));

#endif
