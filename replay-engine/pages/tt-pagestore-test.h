/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page store: what only tests and statistics ask.
 */
#ifndef TT_PAGESTORE_TEST_H
#define TT_PAGESTORE_TEST_H

#include "pages/tt-pagestore.h"

/* Asserts every invariant of the store. Expensive: O(memory). */
void tt_pagestore_check(TtPageStore *ps);
/* Different page contents held. */
uint64_t tt_pagestore_versions(const TtPageStore *ps);

#endif
