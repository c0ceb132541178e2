/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names for addresses, from a list of "ADDRESS TYPE NAME" lines, as nm and
 * /proc/kallsyms print, or from the symbol table of an ELF file (vmlinux).
 */
#include "tt-tool-types.h"
#include "debug/tt-elfsyms.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_MAX (256u << 20)   /* of a list; Linux has 10 MiB of names */
#define HEX "0123456789abcdefABCDEF"
#define FAR (1u << 20)          /* an address that far after a name is no part
                                   of it */

typedef struct Symbol {
    uint64_t addr;
    char type;                  /* as nm prints it */
    char *name;
} Symbol;

struct ToolSymbols {
    char *path;
    GArray *all;                /* of Symbol, by address */
    GMappedFile *file;          /* and that of the ELF file, or NULL */
    TtElfSyms *elf;
};

static int by_address(const void *a, const void *b)
{
    const Symbol *x = a, *y = b;

    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void symbol_clear(void *s)
{
    g_free(((Symbol *)s)->name);
}

/* Behind @at and the spaces that follow it; or, if it ends there, @at. */
static const char *next_word(const char *at, size_t len)
{
    size_t spaces = strspn(at + len, " \t");

    return spaces ? at + len + spaces : at;
}

/*
 * "ADDRESS TYPE NAME", with a size behind the address (nm -S), or the module behind the name
 * and a tab (kallsyms). Names of C++ have spaces, if they are written as C++ has them
 * (nm -C).
 */
static void take_line(GArray *all, const char *line)
{
    size_t digits = strspn(line, HEX);
    const char *type = next_word(line, digits), *name;
    size_t size = strspn(type, HEX);
    Symbol s;

    if (size > 1) {
        type = next_word(type, size);
    }
    name = next_word(type, 1);
    s.addr = g_ascii_strtoull(line, NULL, 16);
    if (!digits || type == line || name == type || !*name || !s.addr) {
        return;
    }
    s.type = *type;
    s.name = g_strchomp(g_strndup(name, strcspn(name, "\t")));
    tt_replace_controls(s.name, '?');
    g_array_append_val(all, s);
}

static int take_lines(ToolSymbols *s, const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    for (char **l = lines; *l; l++) {
        take_line(s->all, *l);
    }
    g_array_sort(s->all, by_address);
    return s->all->len;
}

static int take_elf(ToolSymbols *s, const char *path)
{
    TtDiag diag;

    tt_elfsyms_free(s->elf);
    if (tt_elfsyms_load((const uint8_t *)g_mapped_file_get_contents(s->file),
                        g_mapped_file_get_length(s->file), &s->elf,
                        &diag) != TT_OK) {
        tool_complain("'%s': %s", path, diag.text);
        return -1;
    }
    if (tt_elfsyms_machine((const uint8_t *)g_mapped_file_get_contents(s->file),
                           g_mapped_file_get_length(s->file)) != TT_ELFSYMS_X86_64) {
        tool_complain("'%s' is for another architecture than the guest, which is x86-64",
                      path);
        return -1;
    }
    return tt_elfsyms_count(s->elf) > 0;
}

/* A regular file (of /proc, too), or said what is wrong and -1. */
static int open_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;

    if (fd < 0) {
        tool_complain("cannot open '%s': %s", path, g_strerror(errno));
    } else if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        tool_complain("'%s' is not a regular file, so it has no symbols", path);
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Up to its end: what is in /proc has no size. NULL: said what is wrong. */
static char *read_text(int fd, const char *path)
{
    GString *text = g_string_new(NULL);
    char buf[1 << 16];
    ssize_t n;

    while ((n = read(fd, buf, sizeof(buf))) > 0 || (n < 0 && errno == EINTR)) {
        g_string_append_len(text, buf, MAX(n, 0));
        if (text->len > TEXT_MAX) {
            tool_complain("'%s' is too large for a list of symbols: %u MiB at "
                          "most", path, TEXT_MAX >> 20);
            return g_string_free(text, true);
        }
    }
    if (n < 0) {
        tool_complain("cannot read '%s': %s", path, g_strerror(errno));
        return g_string_free(text, true);
    }
    return g_string_free(text, false);
}

static int take_file(ToolSymbols *s, int fd, const char *path)
{
    g_autofree char *text = NULL;

    s->file = g_mapped_file_new_from_fd(fd, false, NULL);
    if (s->file && tt_elfsyms_is_elf(
            (const uint8_t *)g_mapped_file_get_contents(s->file),
            g_mapped_file_get_length(s->file))) {
        return take_elf(s, path);
    }
    text = read_text(fd, path);
    return text ? take_lines(s, text) : -1;
}

/* It has no functions: those of the file that has what was stripped off it. Types alone are
 * of use as well. Returns how many, or -1. */
static int take_separate(ToolSymbols *s, const char *path)
{
    g_autofree char *other = NULL;
    int n = tool_types_are_there(path, &other);
    GMappedFile *file = other ? g_mapped_file_new(other, false, NULL) : NULL;

    if (file) {
        g_mapped_file_unref(s->file);
        s->file = file;
        n = take_elf(s, other) < 0 ? -1 : n;
    }
    return n;
}

int tool_symbols_load(const char *path, ToolSymbols **out)
{
    ToolSymbols *s = *out = g_new0(ToolSymbols, 1);
    int fd = open_file(path), n;

    s->path = g_strdup(path);
    s->all = g_array_new(false, false, sizeof(Symbol));
    g_array_set_clear_func(s->all, symbol_clear);
    if (fd < 0) {
        return TOOL_PROBLEM;
    }
    n = take_file(s, fd, path);
    close(fd);
    if (!n && s->elf) {
        n = take_separate(s, path);
    }
    return n > 0 ? TOOL_FINE : n < 0 ? TOOL_PROBLEM :
        tool_complain("'%s' has no symbols: give a vmlinux, or the output of nm or "
                      "/proc/kallsyms", path);
}

void tool_symbols_free(ToolSymbols *s)
{
    if (s) {
        g_free(s->path);
        g_array_free(s->all, true);
        tt_elfsyms_free(s->elf);
        if (s->file) {
            g_mapped_file_unref(s->file);
        }
        g_free(s);
    }
}

const char *tool_symbols_path(const ToolSymbols *s)
{
    return s->path;
}

bool tool_symbols_is_elf(const ToolSymbols *s)
{
    return s->elf;
}

static char *elf_symbol_at(const ToolSymbols *s, uint64_t addr)
{
    uint64_t offset;
    const char *name = tt_elfsyms_find(s->elf, addr, &offset);
    char *text = name ? g_strdup_printf("%s+0x%" PRIx64, name, offset) : NULL;

    if (text) {
        tt_replace_controls(text, '?');
    }
    return text;
}

char *tool_symbols_find(const ToolSymbols *s, uint64_t addr)
{
    unsigned low = 0, high = s ? s->all->len : 0;
    const Symbol *found;

    if (s && s->elf) {
        return elf_symbol_at(s, addr);
    }
    while (low < high) {
        unsigned mid = low + (high - low) / 2;

        if (g_array_index(s->all, Symbol, mid).addr <= addr) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    if (!low) {
        return NULL;
    }
    found = &g_array_index(s->all, Symbol, low - 1);
    return addr - found->addr < FAR ?
        g_strdup_printf("%s+0x%" PRIx64, found->name, addr - found->addr) :
        NULL;
}

/* One of C++ also without its parameters. */
static bool is_called(const Symbol *s, const char *name, size_t len)
{
    return !strncmp(s->name, name, len) &&
        (!s->name[len] || (s->name[len] == '(' && !strstr(s->name + len, " [clone ")));
}

size_t tool_symbols_address(const ToolSymbols *s, const char *name, size_t len,
                            uint64_t *addr, bool *is_code)
{
    size_t n = 0;

    if (s->elf) {
        return tt_elfsyms_address(s->elf, name, len, addr, is_code);
    }
    for (unsigned i = 0; i < s->all->len; i++) {
        const Symbol *one = &g_array_index(s->all, Symbol, i);

        if (is_called(one, name, len) && (!n || *addr != one->addr)) {
            n++;
            *addr = one->addr;
            *is_code = strchr("tTwW", one->type) != NULL;
        }
    }
    return n;
}

bool tool_symbols_is_relocatable(const ToolSymbols *s)
{
    return s->elf && tt_elfsyms_is_relocatable(s->elf);
}

bool tool_symbols_is_floating(const ToolSymbols *s)
{
    return s->elf && tt_elfsyms_is_floating(s->elf);
}

bool tool_symbols_is_text(const ToolSymbols *s, const char *name, size_t len)
{
    return s->elf && tt_elfsyms_is_text(s->elf, name, len);
}

char *tool_symbols_add(const ToolSymbols *s, const char *text)
{
    const char *at = strstr(text, "pc 0x");
    uint64_t addr = at ? g_ascii_strtoull(at + 3, NULL, 16) : 0;
    g_autofree char *name = at ? tool_symbols_find(s, addr) : NULL;
    size_t head;

    if (!name) {
        return g_strdup(text);
    }
    head = at + 5 + strspn(at + 5, "0123456789abcdef") - text;
    return g_strdup_printf("%.*s (%s)%s", (int)head, text, name, text + head);
}
