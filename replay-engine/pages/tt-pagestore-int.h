/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Insides of the page store, for its own files. The model and the invariants
 * S1 to S6 are at the head of tt-pagestore.c.
 */
#ifndef TT_PAGESTORE_INT_H
#define TT_PAGESTORE_INT_H

#include "pages/tt-pagestore.h"
#include "tt-pagenode.h"
#include "tt-storefile.h"

struct TtPageStore {
    TtPageMap map;
    TtStoreFile *file;          /* NULL: in memory only */
};

#endif
