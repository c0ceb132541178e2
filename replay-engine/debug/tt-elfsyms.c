/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of an ELF file: section table -> .symtab (or .dynsym) -> names.
 */
#include "debug/tt-elfsyms.h"

#include <glib.h>
#include <stdlib.h>

#define EHDR_BYTES  64u
#define SHDR_BYTES  64u
#define PHDR_BYTES  56u
#define ET_REL      1u
#define ET_DYN      3u
#define PT_LOAD     1u
#define PF_X        1u
#define SYM_BYTES   24u
#define SHT_SYMTAB  2u
#define SHT_DYNSYM  11u
#define STT_NOTYPE  0u          /* a label of assembler code */
#define STT_OBJECT  1u
#define STT_FUNC    2u
#define STT_IFUNC   10u
#define NAME_MAX_   512u
#define FAR         (1u << 20)  /* after a symbol without size: no part of it */

typedef struct Sym {
    uint64_t addr, size;
    const char *name;
} Sym;

typedef struct Section {
    const uint8_t *data;
    uint64_t len;
    uint32_t name, type, link;
} Section;

struct TtElfSyms {
    Sym *syms;                  /* functions, by address */
    size_t n;
    Section table, names;       /* of all */
    bool is_relocatable, is_floating;
    unsigned text;              /* the section .text; 0: none */
};

bool tt_elfsyms_is_elf(const uint8_t *bytes, size_t len)
{
    return len >= EHDR_BYTES && !memcmp(bytes, "\177ELF", 4);
}

/* False: it lies outside of the file. */
static bool section_at(const uint8_t *bytes, size_t len, unsigned index,
                       Section *s)
{
    uint64_t table = tt_get_le64(bytes + 40), at, size;
    unsigned n = tt_get_le16(bytes + 60);
    const uint8_t *h;

    if (index >= n || table > len || (uint64_t)n * SHDR_BYTES > len - table) {
        return false;
    }
    h = bytes + table + (uint64_t)index * SHDR_BYTES;
    s->name = tt_get_le32(h);
    s->type = tt_get_le32(h + 4);
    s->link = tt_get_le32(h + 40);
    at = tt_get_le64(h + 24);
    size = tt_get_le64(h + 32);
    if (at > len || size > len - at) {
        return false;
    }
    s->data = bytes + at;
    s->len = size;
    return true;
}

/* Of several names for one place the last one counts: the same in each file that has them,
 * with a length if one has it, and one without underscores in front. */
static int by_place(const void *a, const void *b)
{
    const Sym *x = a, *y = b;

    if (x->addr != y->addr) {
        return x->addr < y->addr ? -1 : 1;
    }
    return x->size != y->size ? (x->size < y->size ? -1 : 1) : strcmp(x->name, y->name);
}

/* NULL: it is no name of a function. */
static const char *name_of(const uint8_t *sym, const Section *names)
{
    uint32_t at = tt_get_le32(sym);
    unsigned type = sym[4] & 15;
    size_t n;

    if ((type != STT_FUNC && type != STT_IFUNC && type != STT_NOTYPE) ||
        !tt_get_le16(sym + 6) || !tt_get_le64(sym + 8) || !at ||
        at >= names->len) {
        return NULL;
    }
    n = MIN(names->len - at, NAME_MAX_);
    return names->data[at] && memchr(names->data + at, 0, n) ?
        (const char *)names->data + at : NULL;
}

static TtStatus take(TtElfSyms *s, const Section *table, const Section *names,
                     TtDiag *diag)
{
    uint64_t n = table->len / SYM_BYTES;

    if (n > TT_ELFSYMS_MAX) {
        return tt_fail(diag, TT_ERR_LIMIT, "the file has too many symbols");
    }
    s->syms = g_try_new(Sym, n + 1);
    if (!s->syms) {
        return tt_fail(diag, TT_ERR_NOMEM, "not enough memory for the symbols");
    }
    for (uint64_t i = 0; i < n; i++) {
        const uint8_t *sym = table->data + i * SYM_BYTES;
        const char *name = name_of(sym, names);

        if (name) {
            s->syms[s->n++] = (Sym) { tt_get_le64(sym + 8),
                                      tt_get_le64(sym + 16), name };
        }
    }
    qsort(s->syms, s->n, sizeof(*s->syms), by_place);
    return TT_OK;
}

/* The number of .text; 0: there is none. */
static unsigned find_text(const uint8_t *bytes, size_t len)
{
    static const char text[] = ".text";
    Section names, one;

    if (!section_at(bytes, len, tt_get_le16(bytes + 62), &names)) {
        return 0;
    }
    for (unsigned i = 1; i < tt_get_le16(bytes + 60); i++) {
        if (section_at(bytes, len, i, &one) && one.name < names.len &&
            names.len - one.name >= sizeof(text) &&
            !memcmp(names.data + one.name, text, sizeof(text))) {
            return i;
        }
    }
    return 0;
}

/* The program headers, all of which are in the file; NULL: they are not. */
static const uint8_t *segments_of(const uint8_t *bytes, size_t len, unsigned *n)
{
    bool is_elf = tt_elfsyms_is_elf(bytes, len) && bytes[4] == 2 && bytes[5] == 1 &&
        tt_get_le16(bytes + 54) == PHDR_BYTES;
    uint64_t table = is_elf ? tt_get_le64(bytes + 32) : 0;

    *n = is_elf ? tt_get_le16(bytes + 56) : 0;
    return table > len || (uint64_t)*n * PHDR_BYTES > len - table ? NULL : bytes + table;
}

static bool has_segment_at_0(const uint8_t *bytes, size_t len)
{
    unsigned n;
    const uint8_t *h = segments_of(bytes, len, &n);

    for (; h && n; n--, h += PHDR_BYTES) {
        if (tt_get_le32(h) == PT_LOAD && !tt_get_le64(h + 16)) {
            return true;
        }
    }
    return false;
}

TtStatus tt_elfsyms_load(const uint8_t *bytes, size_t len, TtElfSyms **out,
                         TtDiag *diag)
{
    TtElfSyms *s;
    Section table = { 0 }, names;
    unsigned best = 0;
    TtStatus st = TT_OK;

    *out = NULL;
    if (!tt_elfsyms_is_elf(bytes, len) || bytes[4] != 2 || bytes[5] != 1 ||
        tt_get_le16(bytes + 58) != SHDR_BYTES) {
        return tt_fail(diag, TT_ERR_FORMAT, "this is not a 64-bit little-endian "
                       "ELF file");
    }
    for (unsigned i = 0; i < tt_get_le16(bytes + 60); i++) {
        Section one;

        if (section_at(bytes, len, i, &one) &&
            (one.type == SHT_SYMTAB || (one.type == SHT_DYNSYM && !best))) {
            best = i;
            table = one;
        }
    }
    s = g_new0(TtElfSyms, 1);
    s->is_relocatable = tt_get_le16(bytes + 16) == ET_REL;
    s->is_floating = tt_get_le16(bytes + 16) == ET_DYN && has_segment_at_0(bytes, len);
    s->text = find_text(bytes, len);
    if (best && section_at(bytes, len, table.link, &names)) {
        st = take(s, &table, &names, diag);
        s->table = table;
        s->names = names;
    }
    if (st != TT_OK) {
        tt_elfsyms_free(s);
        return st;
    }
    *out = s;
    return TT_OK;
}

bool tt_elfsyms_image(const uint8_t *bytes, size_t len, TtElfImage *image)
{
    unsigned n;
    const uint8_t *h = segments_of(bytes, len, &n);

    if (!h || !n) {
        return false;
    }
    *image = (TtElfImage) { tt_get_le64(bytes + 24), UINT64_MAX, 0 };
    for (; n; n--, h += PHDR_BYTES) {
        uint64_t at = tt_get_le64(h + 16), size = tt_get_le64(h + 40);

        if (tt_get_le32(h) == PT_LOAD && tt_get_le32(h + 4) & PF_X && size &&
            size <= UINT64_MAX - at) {
            image->low = MIN(image->low, at);
            image->high = MAX(image->high, at + size);
        }
    }
    return image->low < image->high;
}

size_t tt_elfsyms_count(const TtElfSyms *s)
{
    return s->n;
}

static const Sym *sym_at(const TtElfSyms *s, uint64_t addr)
{
    size_t low = 0, high = s->n;
    const Sym *found;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (s->syms[mid].addr <= addr) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    if (!low) {
        return NULL;
    }
    found = &s->syms[low - 1];
    return addr - found->addr <= (found->size ?: FAR) ? found : NULL;
}

const char *tt_elfsyms_find(const TtElfSyms *s, uint64_t addr,
                            uint64_t *offset)
{
    const Sym *found = sym_at(s, addr);

    *offset = found ? addr - found->addr : 0;
    return found ? found->name : NULL;
}

uint64_t tt_elfsyms_size(const TtElfSyms *s, uint64_t addr)
{
    const Sym *found = sym_at(s, addr);

    return found ? found->size : 0;
}

static bool is_called(const TtElfSyms *s, const uint8_t *sym, const char *name,
                      size_t len)
{
    uint32_t at = tt_get_le32(sym);

    return at < s->names.len && s->names.len - at > len &&
        !memcmp(s->names.data + at, name, len) && !s->names.data[at + len];
}

size_t tt_elfsyms_address(const TtElfSyms *s, const char *name, size_t len,
                          uint64_t *addr, bool *is_code)
{
    uint64_t all = s->table.len / SYM_BYTES;
    bool is_global = false;
    size_t n = 0;

    for (uint64_t i = 0; i < all; i++) {
        const uint8_t *sym = s->table.data + i * SYM_BYTES;
        unsigned type = sym[4] & 15;
        bool global = sym[4] >> 4 != 0;

        if (type > STT_FUNC && type != STT_IFUNC) {
            continue;                   /* a section, a file, thread-local data */
        }
        if (!tt_get_le16(sym + 6) || !is_called(s, sym, name, len) ||
            (is_global && !global) ||
            (n && global == is_global && *addr == tt_get_le64(sym + 8))) {
            continue;
        }
        n = global && !is_global ? 1 : n + 1;
        is_global = global;
        *addr = tt_get_le64(sym + 8);
        *is_code = type != STT_OBJECT;
    }
    return n;
}

bool tt_elfsyms_is_relocatable(const TtElfSyms *s)
{
    return s->is_relocatable;
}

bool tt_elfsyms_is_floating(const TtElfSyms *s)
{
    return s->is_floating;
}

unsigned tt_elfsyms_machine(const uint8_t *bytes, size_t len)
{
    return tt_elfsyms_is_elf(bytes, len) && bytes[5] == 1 ? tt_get_le16(bytes + 18) : 0;
}

bool tt_elfsyms_is_text(const TtElfSyms *s, const char *name, size_t len)
{
    uint64_t all = s->table.len / SYM_BYTES;

    for (uint64_t i = 0; i < all; i++) {
        const uint8_t *sym = s->table.data + i * SYM_BYTES;
        unsigned section = tt_get_le16(sym + 6);

        if (section && is_called(s, sym, name, len)) {
            return section == s->text;
        }
    }
    return false;
}

void tt_elfsyms_free(TtElfSyms *s)
{
    if (s) {
        g_free(s->syms);
        g_free(s);
    }
}
