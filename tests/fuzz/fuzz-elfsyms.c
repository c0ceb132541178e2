/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target of ELF symbol tables: any bytes; names lie within them.
 */
#include "debug/tt-elfsyms.h"

#include <stdlib.h>
#include <glib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree uint8_t *exact = g_memdup2(data, size);
    TtElfSyms *s;
    TtElfImage image;
    TtDiag diag = { 0 };

    if (tt_elfsyms_image(exact, size, &image) && image.low >= image.high) {
        abort();
    }
    if (tt_elfsyms_load(exact, size, &s, &diag) != TT_OK) {
        if (s || !diag.text[0]) {
            abort();
        }
        return 0;
    }
    for (size_t i = 0; i + 8 <= size; i += 8) {
        uint64_t offset;
        const char *name = tt_elfsyms_find(s, tt_get_le64(exact + i), &offset);

        if (name && ((const uint8_t *)name < exact ||
                     (const uint8_t *)name + strlen(name) >= exact + size)) {
            abort();
        }
    }
    tt_elfsyms_is_text(s, "a", 1);
    tt_elfsyms_free(s);
    return 0;
}
