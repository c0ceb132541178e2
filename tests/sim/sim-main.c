/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Simulation of time travel: thousands of movements of a toy VM.
 *
 *   sim-travel [SEED [RUNS]]
 *
 * Without arguments a fixed set of seeds. Every seed is printed before its run,
 * so that the last line before an abort says how to repeat it.
 */
#include "sim-travel.h"

#include <glib.h>
#include <stdio.h>
#include <stdlib.h>

#define MOVES_PER_RUN   250
#define HISTORY         1500

int main(int argc, char **argv)
{
    uint32_t seed = argc > 1 ? strtoul(argv[1], NULL, 0) : 1;
    unsigned n_runs = argc > 2 ? strtoul(argv[2], NULL, 0) : argc > 1 ? 1 : 40;
    SimStats st = { 0 };

    for (unsigned i = 0; i < n_runs; i++) {
        printf("seed %u\n", seed + i);
        fflush(stdout);
        sim_travel_seed(seed + i, MOVES_PER_RUN, HISTORY, &st);
    }
    printf("%u goto, %u reverse; ended: %u target, %u hit, %u start, %u end, "
           "%u interrupted, %u diverged\n"
           "checkpoints: %u added, %u removed, %u of them thinned; "
           "%u intervals skipped, %u times out of memory, "
           "%u restored half-way; "
           "%" G_GUINT64_FORMAT " positions executed\n",
           st.n_goto, st.n_reverse, st.n_target, st.n_hit, st.n_start,
           st.n_end, st.n_interrupted, st.n_diverged, st.n_added,
           st.n_removed, st.n_thinned, st.n_skipped, st.n_nomem,
           st.n_lost, st.n_positions);
    if (n_runs >= 20) {
        /* A simulation that stops meeting a case proves nothing about it. */
        g_assert(st.n_target && st.n_hit && st.n_start && st.n_end &&
                 st.n_interrupted && st.n_diverged && st.n_added &&
                 st.n_removed && st.n_thinned && st.n_skipped && st.n_nomem &&
                 st.n_lost);
    }
    return 0;
}
