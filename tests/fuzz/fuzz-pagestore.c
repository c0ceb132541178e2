/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target of the page store: the bytes are operations, a model with full
 * copies says what each must do (see tests/sim/pagestore-model.h).
 */
#include "pagestore-model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pagestore_model_run(data, size, NULL);
    return 0;
}
