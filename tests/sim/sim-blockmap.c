/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Random lives of disks with versions, against the model:
 *
 *   sim-blockmap [OPERATIONS [SEED [DISKS]]]
 *
 * Each disk gets its part of the operations, and a seed of its own.
 */
#include "blockmap-model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 0) : 60000;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    uint64_t disks = argc > 3 ? strtoull(argv[3], NULL, 0) : 4;
    BlockmapModelStats s = { 0 };

    for (uint64_t i = 0; i < disks; i++) {
        fprintf(stderr, "seed %" PRIu64 "\n", seed + i);
        blockmap_model_random(n / disks, seed + i, &s);
    }
    printf("%" PRIu64 " operations: %" PRIu64 " writes, %" PRIu64 " reads, %" PRIu64
           " versions, %" PRIu64 " gone to, %" PRIu64 " deleted; %" PRIu64
           " commits, %" PRIu64 " of them unordered, %" PRIu64 " failed, %" PRIu64
           " journals anew, %" PRIu64 " put off; %" PRIu64 " cuts; %" PRIu64
           " times each block damaged. No difference.\n", s.ops, s.writes,
           s.reads, s.versions, s.gotos, s.deletes, s.commits, s.unordered, s.failed,
           s.anew, s.stopped_early, s.cuts, s.damaged);
    return 0;
}
