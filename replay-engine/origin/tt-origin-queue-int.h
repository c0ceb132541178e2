/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Questions that wait; lines for the tool.
 *
 * Context: the vCPU thread, BQL held.
 */
#ifndef TT_ORIGIN_QUEUE_INT_H
#define TT_ORIGIN_QUEUE_INT_H

#include "tt-origin-parts-int.h"

void tt_origin_put_first(void);         /* those that follow come before all others, */
void tt_origin_put(const TtOriginQuestion *q);  /* in the order in which they are put */
TtOriginQuestion *tt_origin_take(void);         /* g_free; NULL: there is none */
void tt_origin_drop(unsigned depth);    /* those of this depth and more; says so */
void tt_origin_say_cut(const TtOriginQuestion *q);  /* it is not asked */

/* A line for the tool. */
void tt_origin_say(const char *fmt, ...) G_GNUC_PRINTF(1, 2);
void tt_origin_say_way(uint64_t pos);

#endif
