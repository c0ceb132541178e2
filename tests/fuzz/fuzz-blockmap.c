/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target of the block map: the bytes are operations, a model says what each must do
 * (see tests/sim/blockmap-model.h).
 */
#include "blockmap-model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    blockmap_model_run(data, size, NULL);
    return 0;
}
