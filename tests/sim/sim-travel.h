/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Travels of the toy VM under the timeline, with the page store as its
 * checkpoints, compared with a straight run. Schedules come from a seed (the
 * simulation) or from bytes (the fuzzer).
 */
#ifndef TT_SIM_TRAVEL_H
#define TT_SIM_TRAVEL_H

#include <stddef.h>
#include <stdint.h>

typedef struct SimStats {
    unsigned n_goto, n_reverse;
    unsigned n_target, n_hit, n_start, n_end, n_interrupted, n_diverged;
    unsigned n_added, n_removed, n_thinned, n_skipped, n_nomem,
             n_lost;
    uint64_t n_positions;       /* executed */
} SimStats;

/* @n_moves movements over a history of @end positions. Aborts on a mistake. */
void sim_travel_seed(uint32_t seed, unsigned n_moves, uint64_t end,
                     SimStats *stats);
/* What @bytes spell; short histories. */
void sim_travel_bytes(const uint8_t *bytes, size_t len, SimStats *stats);

#endif
