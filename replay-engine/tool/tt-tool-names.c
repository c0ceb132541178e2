/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of a program in an expression become addresses, with debug information types and
 * members, too: of `tt find` and `tt origin`.
 */
#include "tt-tool-find.h"
#include "tt-tool-types.h"

#include <inttypes.h>

typedef struct Names {
    const ToolSymbols *symbols; /* NULL: none */
    uint64_t offset;
    ToolTypes *types;           /* NULL: none */
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

/* A program that can lie anywhere lies nowhere yet. A module, an object file has only offsets
 * into its sections; where .text is, the user may know. */
static bool is_placed(const Names *f, const char *name, int len, TtDiag *why)
{
    if (tool_symbols_is_floating(f->symbols) && !f->offset) {
        fail(why, "'%.*s' has no address until its program is loaded: give the address of the "
             "program with --offset", MIN(len, 60), name);
        return false;
    }
    if (tool_symbols_is_relocatable(f->symbols) &&
        (!f->offset || !tool_symbols_is_text(f->symbols, name, len))) {
        fail(why, f->offset ? "'%.*s' is not in .text of its module: write its address" :
             "'%.*s' has no address until its module is loaded: give the address of its .text "
             "with --offset", MIN(len, 60), name);
        return false;
    }
    return true;
}

/* ---- without types ---- */

static bool is_word_of_types(const char *word, int len)
{
    static const char *const words[] = {
        "struct", "union", "enum", "class", "sizeof", "const", "volatile",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
        if (strlen(words[i]) == (size_t)len && !memcmp(words[i], word, len)) {
            return true;
        }
    }
    return false;
}

static char *address_of(void *opaque, const char *chain, size_t *used, bool is_address,
                        TtDiag *why)
{
    const Names *f = opaque;
    int len = *used;
    uint64_t addr;
    bool is_code;
    size_t n;

    if (is_word_of_types(chain, len)) {
        return fail(why, "'%.*s' needs debug information: give a file that has it "
                         "with --symbols", len, chain);
    }
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
    if (!is_placed(f, chain, len, why)) {
        return NULL;
    }
    if (!is_code && !is_address) {
        return fail(why, "the type of '%.*s' is not known, as the file has no debug info: "
                         "write *(u32 *)&%.*s", MIN(len, 40), chain, MIN(len, 40), chain);
    }
    return g_strdup_printf("0x%" PRIx64 "UL", addr + f->offset);
}

/* ---- with types ---- */

/* The program may be elsewhere than its file says, but not what counts from 0. False: where,
 * is not known. */
static bool move(const Names *f, const char *name, size_t len, TtNameInfo *info, TtDiag *why)
{
    info->value += tool_types_per_cpu(f->types, info) ? 0 : f->offset;
    return is_placed(f, name, len, why);
}

static bool take_local(const Names *f, const char *name, size_t len, TtNameInfo *info,
                       TtDiag *why)
{
    switch (why->text[0] ? TOOL_NAMED_WRONG :
            tool_types_local(f->types, name, len, info, why)) {
    case TOOL_NAMED_HERE:
        why->text[0] = 0;
        return info->kind == TT_NAME_NUMBER || move(f, name, len, info, why);
    case TOOL_NAMED_WRONG:
        return false;
    default:
        fail(why, "there is no symbol '%.*s'", (int)MIN(len, 60), name);
        return false;
    }
}

static bool take_symbol(const Names *f, const char *name, size_t len, TtNameInfo *info,
                        TtDiag *why)
{
    uint64_t addr = 0;
    bool is_code = false;
    size_t n = tool_symbols_address(f->symbols, name, len, &addr, &is_code);

    if (n > 1) {
        fail(why, "there are %zu symbols '%.*s': write the address of the one that you mean",
             n, (int)MIN(len, 60), name);
        return false;
    }
    if (!n) {
        return take_local(f, name, len, info, why);
    }
    info->kind = info->type ? TT_NAME_DATA : is_code ? TT_NAME_CODE : TT_NAME_ADDRESS;
    info->value = addr;
    info->lost = tool_types_lost(f->types);
    return move(f, name, len, info, why);
}

static bool name_of(void *opaque, const char *name, size_t len, TtNameInfo *info,
                    TtDiag *why)
{
    const Names *f = opaque;

    switch (tool_types_name(f->types, name, len, info, why)) {
    case TOOL_NAMED_HERE:
        return info->kind == TT_NAME_NUMBER || move(f, name, len, info, why);
    case TOOL_NAMED_WRONG:
        return false;
    default:
        return take_symbol(f, name, len, info, why);
    }
}

/* TtTypes gives back what it was made with; only name_of needs all of it. */
static void describe(void *opaque, TtTypeId type, TtTypeInfo *info)
{
    tool_types_describe(((Names *)opaque)->types, type, info);
}

static bool member(void *opaque, TtTypeId type, unsigned n, TtTypeMember *m)
{
    return tool_types_member(((Names *)opaque)->types, type, n, m);
}

static TtTypeId find(void *opaque, TtTypeTag tag, const char *name, size_t len, TtDiag *why)
{
    return tool_types_find(((Names *)opaque)->types, tag, name, len, why);
}

static TtStatus resolve(const char *text, const ToolSymbols *symbols, uint64_t offset,
                        bool is_place, char **out, TtDiag *diag)
{
    Names names = { symbols, offset };
    const TtTypes types = {
        .opaque = &names, .describe = describe, .member = member, .find = find,
        .name = name_of,
    };
    TtStatus s;

    if (symbols && tool_symbols_is_elf(symbols)) {
        names.types = tool_types_open(tool_symbols_path(symbols));
    }
    s = names.types && is_place ? tt_lower_place(text, &types, out, diag) :
        names.types ? tt_lower(text, &types, out, diag) :
        tt_cond_resolve(text, address_of, &names, out, diag);
    tool_types_free(names.types);
    return s;
}

TtStatus tool_resolve(const char *text, const ToolSymbols *symbols, uint64_t offset,
                      char **out, TtDiag *diag)
{
    return resolve(text, symbols, offset, false, out, diag);
}

TtStatus tool_resolve_place(const char *text, const ToolSymbols *symbols, uint64_t offset,
                            char **out, TtDiag *diag)
{
    return resolve(text, symbols, offset, true, out, diag);
}
