/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The search for the wrong write.
 *
 * Context: the vCPU thread, BQL held, from travel's callbacks.
 */
#ifndef TT_VERIFY_SEARCH_INT_H
#define TT_VERIFY_SEARCH_INT_H

#include "tt-verify-int.h"

/* For the first page, or the register, of tt_verify.found; the interval ends with
 * it. */
void tt_verify_search(TtVerifySearch what);

#endif
