/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target of landmarks, as a log of exits has them: any bytes; what counts as one is
 * put again as the same bytes, and its pages lie within them.
 */
#include "log/tt-landmark.h"

#include <stdlib.h>
#include <string.h>
#include <glib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) do { if (!(x)) { abort(); } } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree uint8_t *exact = g_memdup2(data, size);     /* its end is guarded */
    g_autofree uint8_t *again = g_malloc0(MAX(size, (size_t)TT_LANDMARK_BYTES_MAX));
    TtLandmark p;

    if (!tt_landmark_decode(&p, exact, size)) {
        return 0;
    }
    CHECK(p.n_pages == TT_LANDMARK_WHOLE_RAM || p.n_pages <= TT_LANDMARK_PAGES_MAX);
    CHECK(tt_landmark_bytes(p.n_pages) == size);
    tt_landmark_put_head(&p, again);
    for (uint32_t i = 0; p.n_pages != TT_LANDMARK_WHOLE_RAM && i < p.n_pages; i++) {
        TtLandmarkPage page = tt_landmark_page(&p, i);

        tt_landmark_put_page(again + TT_LANDMARK_HEAD, i, &page);
    }
    CHECK(!memcmp(again, exact, size));
    return 0;
}
