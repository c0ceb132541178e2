/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Answers a question: what the last write was.
 *
 * Context: the vCPU thread, BQL held.
 */
#ifndef TT_ORIGIN_ANSWER_INT_H
#define TT_ORIGIN_ANSWER_INT_H

#include "tt-origin-parts-int.h"

/* The VM stands at @found->pos. False: nothing was written there after all: ask again,
 * before that. New questions are put with tt_origin_put. */
bool tt_origin_answer(const TtOriginQuestion *q, const TtOriginFound *found, unsigned id);

#endif
