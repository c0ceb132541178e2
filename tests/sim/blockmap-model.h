/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Block map against a flat array with versions.
 *
 * The driver does what a block driver does: it writes data where the map says, carries
 * plans out, gives freed space back. Its file remembers what was not synced: a cut of
 * power keeps any part of that, a kill all of it, and the write that was under way up to
 * any byte. Any step of a plan and any write of data may fail. The model has the
 * contents of each version and of the head by sectors, and all states that were asked
 * for since the last commit that ended well: what is found after a cut must be one of
 * these. Sectors that were written in place since then may be old or new; those of new
 * clusters that were written as a whole are undefined if a record that was not preceded
 * by a sync may name them (J3). After a commit that ended well, no damage of a single
 * block may lead to an older state without a word.
 *
 * Context: one thread. A difference aborts, with a sentence on stderr.
 */
#ifndef BLOCKMAP_MODEL_H
#define BLOCKMAP_MODEL_H

#include <stddef.h>
#include <stdint.h>

typedef struct BlockmapModelStats {
    uint64_t ops, writes, reads, versions, gotos, deletes, commits, failed, cuts,
             anew, stopped_early, unordered, damaged;
} BlockmapModelStats;

/* Operations from @data until it ends. @stats may be NULL. */
void blockmap_model_run(const uint8_t *data, size_t size, BlockmapModelStats *stats);
/* @n operations at random; @seed says which. */
void blockmap_model_random(uint64_t n, uint64_t seed, BlockmapModelStats *stats);

#endif
