/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target of the timeline: the bytes are a schedule of movements and of
 * what disturbs them; the toy VM and its straight run say how each must end
 * (see tests/sim/sim-travel.h).
 */
#include "sim-travel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    SimStats unused = { 0 };

    sim_travel_bytes(data, size, &unused);
    return 0;
}
