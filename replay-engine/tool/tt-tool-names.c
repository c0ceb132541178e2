/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of a program in an expression become addresses: of `tt find` and `tt origin`.
 */
#include "tt-tool-find.h"

#include <inttypes.h>

typedef struct Names {
    const ToolSymbols *symbols; /* NULL: none */
    uint64_t offset;
} Names;

static char *fail(TtDiag *why, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

static char *fail(TtDiag *why, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    g_vsnprintf(why->text, sizeof(why->text), fmt, ap);
    va_end(ap);
    return NULL;
}

static char *address_of(void *opaque, const char *chain, size_t *used, bool is_address,
                        TtDiag *why)
{
    const Names *f = opaque;
    int len = *used;
    uint64_t addr;
    bool is_code;
    size_t n;

    if (!f->symbols) {
        return fail(why, "'%.*s' is a symbol of a program: give the file that defines it "
                         "with --symbols", len, chain);
    }
    n = tool_symbols_address(f->symbols, chain, len, &addr, &is_code);
    if (!n) {
        return fail(why, "there is no symbol '%.*s'", len, chain);
    }
    if (n > 1) {
        return fail(why, "there are %zu symbols '%.*s': write the address of the one "
                    "that you mean", n, len, chain);
    }
    if (!is_code && !is_address) {
        return fail(why, "the type of '%.*s' is not known: write *(u32 *)&%.*s, or "
                         "another type that fits", len, chain, len, chain);
    }
    return g_strdup_printf("0x%" PRIx64 "UL", addr + f->offset);
}

TtStatus tool_resolve(const char *text, const ToolSymbols *symbols, uint64_t offset,
                      char **out, TtDiag *diag)
{
    Names names = { symbols, offset };

    return tt_cond_resolve(text, address_of, &names, out, diag);
}
