/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Coverage by source lines: counts of instructions and the line table of a program
 * become a tracefile of lcov, which genhtml shows. elfutils' libdw reads the DWARF.
 */
#include "tt-tool-lcov.h"

#ifdef TT_HAVE_LIBDW
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct Count {
    uint64_t addr, n;
} Count;

typedef struct Source {
    GHashTable *lines;          /* number -> uint64_t *, how often it was executed */
} Source;

typedef struct Lcov {
    GArray *counts;             /* by address */
    GHashTable *sources;        /* path -> Source */
    char *directory;            /* of the compilation, absolute */
    uint64_t offset;
} Lcov;

static void source_free(void *opaque)
{
    Source *s = opaque;

    g_hash_table_destroy(s->lines);
    g_free(s);
}

static Source *source_of(Lcov *l, const char *name)
{
    g_autofree char *path = g_canonicalize_filename(name, l->directory);
    Source *s;

    tt_replace_controls(path, '?');
    s = g_hash_table_lookup(l->sources, path);

    if (!s) {
        s = g_new0(Source, 1);
        s->lines = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, g_free);
        g_hash_table_insert(l->sources, g_steal_pointer(&path), s);
    }
    return s;
}

/* ---- counts ---- */

static int compare_counts(const void *a, const void *b)
{
    const Count *x = a, *y = b;

    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Keys are "0xADDRESS+LENGTH". */
static GArray *counts_of(GHashTable *sums)
{
    GArray *all = g_array_new(false, false, sizeof(Count));
    GHashTableIter it;
    void *key, *value;

    g_hash_table_iter_init(&it, sums);
    while (g_hash_table_iter_next(&it, &key, &value)) {
        Count c = { g_ascii_strtoull(key, NULL, 16), *(uint64_t *)value };

        g_array_append_val(all, c);
    }
    g_array_sort(all, compare_counts);
    return all;
}

/* The most that one of the instructions from @begin to @end was executed. */
static uint64_t most_in(const Lcov *l, uint64_t begin, uint64_t end)
{
    unsigned low = 0, high = l->counts->len;
    uint64_t most = 0;

    while (low < high) {
        unsigned mid = low + (high - low) / 2;

        if (g_array_index(l->counts, Count, mid).addr < begin) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    for (; low < l->counts->len; low++) {
        const Count *c = &g_array_index(l->counts, Count, low);

        if (c->addr >= end) {
            break;
        }
        most = MAX(most, c->n);
    }
    return most;
}

/* ---- what the program says ---- */

static void add_line(Lcov *l, const char *name, int line, uint64_t n)
{
    Source *s = source_of(l, name);
    uint64_t *sum = g_hash_table_lookup(s->lines, GINT_TO_POINTER(line));

    if (!sum) {
        sum = g_new0(uint64_t, 1);
        g_hash_table_insert(s->lines, GINT_TO_POINTER(line), sum);
    }
    *sum = MAX(*sum, n);        /* a line may be cut into several ranges */
}

static void add_lines(Lcov *l, Dwarf_Lines *lines, size_t n)
{
    Dwarf_Addr ended = 0;               /* the sequence before */

    for (size_t i = 0; i + 1 < n; i++) {
        Dwarf_Line *row = dwarf_onesrcline(lines, i);
        Dwarf_Line *after = dwarf_onesrcline(lines, i + 1);
        Dwarf_Addr begin, end;
        bool is_end = true;
        const char *name = dwarf_linesrc(row, NULL, NULL);
        int line = 0;

        if (!dwarf_lineendsequence(row, &is_end) && is_end) {
            dwarf_lineaddr(row, &ended);
        }
        if (!name || is_end ||
            dwarf_lineno(row, &line) || line <= 0 || dwarf_lineaddr(row, &begin) ||
            dwarf_lineaddr(after, &end)) {
            continue;
        }
        /* Several lines may begin at one instruction: all of them but the last are empty.
         * So is one after the end of its sequence, before which it is sorted. */
        end = begin == ended ? begin + 1 : MAX(end, begin + 1);
        add_line(l, name, line, most_in(l, begin + l->offset, end + l->offset));
    }
}

static void add_unit(Lcov *l, Dwarf_Die *unit)
{
    Dwarf_Attribute attr;
    Dwarf_Lines *lines;
    const char *dir = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attr));
    size_t n;

    /* A build that is the same everywhere has "." there: that is where tt runs. */
    l->directory = g_canonicalize_filename(dir ? dir : "/", NULL);
    if (!dwarf_getsrclines(unit, &lines, &n)) {
        add_lines(l, lines, n);
    }
    g_clear_pointer(&l->directory, g_free);
}

/* False: there are no lines in it. */
static bool add_program(Lcov *l, Dwarf *dw)
{
    Dwarf_Off at = 0, next;
    size_t head;

    while (!dwarf_nextcu(dw, at, &next, &head, NULL, NULL, NULL)) {
        Dwarf_Die unit;

        if (dwarf_offdie(dw, at + head, &unit)) {
            add_unit(l, &unit);
        }
        at = next;
    }
    return g_hash_table_size(l->sources);
}

/* ---- the tracefile ---- */

static int compare_lines(const void *a, const void *b)
{
    return GPOINTER_TO_INT(a) - GPOINTER_TO_INT(b);
}

static void put_source(FILE *to, const char *path, const Source *s)
{
    GList *lines = g_list_sort(g_hash_table_get_keys(s->lines), compare_lines);
    unsigned n_hit = 0;

    fprintf(to, "TN:\nSF:%s\n", path);
    for (GList *k = lines; k; k = k->next) {
        uint64_t n = *(uint64_t *)g_hash_table_lookup(s->lines, k->data);

        fprintf(to, "DA:%d,%" PRIu64 "\n", GPOINTER_TO_INT(k->data), n);
        n_hit += n > 0;
    }
    fprintf(to, "LF:%u\nLH:%u\nend_of_record\n", g_hash_table_size(s->lines), n_hit);
    g_list_free(lines);
}

static void put_all(const Lcov *l, FILE *to)
{
    GList *paths = g_list_sort(g_hash_table_get_keys(l->sources), (GCompareFunc)strcmp);

    for (GList *k = paths; k; k = k->next) {
        put_source(to, k->data, g_hash_table_lookup(l->sources, k->data));
    }
    g_list_free(paths);
}

bool tool_lcov_is_built(void)
{
    return true;
}

bool tool_lcov_check(const char *program)
{
    int fd = open(program, O_RDONLY | O_CLOEXEC);
    Dwarf *dw = fd < 0 ? NULL : dwarf_begin(fd, DWARF_C_READ);

    if (fd < 0) {
        tool_complain("cannot open '%s': %s", program, g_strerror(errno));
    } else if (!dw) {
        tool_complain("'%s' has no DWARF debug information: --lcov needs --symbols with a "
                      "program that was compiled with -g", program);
    }
    dwarf_end(dw);
    if (fd >= 0) {
        close(fd);
    }
    return dw;
}

bool tool_lcov_put(FILE *to, const char *program, uint64_t offset, GHashTable *sums)
{
    int fd = open(program, O_RDONLY | O_CLOEXEC);
    Dwarf *dw = fd < 0 ? NULL : dwarf_begin(fd, DWARF_C_READ);
    Lcov l = {
        .counts = counts_of(sums), .offset = offset,
        .sources = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, source_free),
    };
    bool ok = dw && add_program(&l, dw);

    if (ok) {
        put_all(&l, to);
    } else {
        tool_complain("'%s' has no table of source lines, or has changed meanwhile",
                      program);
    }
    g_hash_table_destroy(l.sources);
    g_array_free(l.counts, true);
    dwarf_end(dw);
    if (fd >= 0) {
        close(fd);
    }
    return ok;
}

#else

bool tool_lcov_is_built(void)
{
    return false;
}

bool tool_lcov_check(const char *program)
{
    return false;
}

bool tool_lcov_put(FILE *to, const char *program, uint64_t offset, GHashTable *sums)
{
    return false;
}

#endif
