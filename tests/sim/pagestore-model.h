/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A page store against full copies: one interpreter of byte strings, fed by
 * random bytes in the unit test and by the fuzzer.
 *
 * Every operation's effect is predicted by a model that keeps a full copy of
 * the RAM for every node; a difference aborts the program.
 */
#ifndef TT_PAGESTORE_MODEL_H
#define TT_PAGESTORE_MODEL_H

#include <stddef.h>
#include <stdint.h>

typedef struct PagestoreModelStats {
    unsigned n_add, n_restore, n_delete, n_rebase, n_refused, n_nomem,
             n_pack;
} PagestoreModelStats;

/* Runs the operations that @bytes spell; adds up what happened in @stats (may
 * be NULL). */
void pagestore_model_run(const uint8_t *bytes, size_t len,
                         PagestoreModelStats *stats);

#endif
