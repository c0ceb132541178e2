/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Registers of a text: NAME=VALUE, several on a line.
 *
 *   RIP=0000fff0 RFL=00000002 [-------] CPL=0      a value goes on to the next name
 *   R8 =0000...  GDT=     00000000 0000ffff        blanks on either side of '='
 *   FSW=0000 [ST=0] FTW=00                         brackets around a register
 *   ES =0010 0000 DPL=0 DS                         a part of what begins the line
 *   CS =0008 0000 DPL=0 CS64                       ("CS.DPL")
 */
#include "debug/tt-regtext.h"

#include <glib.h>

struct TtRegs {
    GArray *all;                /* of TtReg */
};

static void reg_clear(void *opaque)
{
    TtReg *r = opaque;

    g_free(r->name);
    g_free(r->value);
}

/* Where the name before @equals begins, not before @line; @equals: it has none. */
static const char *name_before(const char *line, const char *equals)
{
    const char *end = equals, *at;

    while (end > line && end[-1] == ' ') {
        end--;
    }
    for (at = end; at > line && g_ascii_isalnum(at[-1]); at--) {
    }
    return at < end ? at : equals;
}

static char *clean(const char *from, const char *to)
{
    char *value = g_strstrip(g_strndup(from, to - from));
    size_t len = strlen(value);

    if (len && (value[len - 1] == '[' ||
                (value[len - 1] == ']' && !strchr(value, '[')))) {
        value[len - 1] = 0;
    }
    return g_strchomp(value);
}

/* @heads: the name that each one's line begins with. */
static void take_line(GArray *all, GPtrArray *heads, const char *line)
{
    const char *equals = strchr(line, '=');
    unsigned first = all->len;

    while (equals) {
        const char *next = strchr(equals + 1, '=');
        const char *name = name_before(line, equals);
        const char *end = next ? name_before(equals + 1, next) :
            equals + strlen(equals);
        TtReg r = {
            .name = g_strchomp(g_strndup(name, equals - name)),
            .value = clean(equals + 1, end),
        };

        if (*r.name && *r.value) {
            g_array_append_val(all, r);
            g_ptr_array_add(heads, g_strdup(
                g_array_index(all, TtReg, first).name));
        } else {
            reg_clear(&r);
        }
        line = equals + 1;
        equals = next;
    }
}

static bool is_twice(const GPtrArray *names, unsigned i)
{
    for (unsigned k = 0; k < names->len; k++) {
        if (k != i && !strcmp(names->pdata[k], names->pdata[i])) {
            return true;
        }
    }
    return false;
}

/* A name that there is more than once is a part of what its line begins with. */
static void tell_apart(GArray *all, const GPtrArray *heads)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);

    for (unsigned i = 0; i < all->len; i++) {
        g_ptr_array_add(names, g_strdup(g_array_index(all, TtReg, i).name));
    }
    for (unsigned i = 0; i < all->len; i++) {
        TtReg *r = &g_array_index(all, TtReg, i);
        char *whole;

        if (is_twice(names, i) && strcmp(r->name, heads->pdata[i])) {
            whole = g_strdup_printf("%s.%s", (char *)heads->pdata[i], r->name);
            g_free(r->name);
            r->name = whole;
        }
    }
}

TtRegs *tt_regs_parse(const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autoptr(GPtrArray) heads = g_ptr_array_new_with_free_func(g_free);
    TtRegs *r = g_new0(TtRegs, 1);

    r->all = g_array_new(false, false, sizeof(TtReg));
    g_array_set_clear_func(r->all, reg_clear);
    for (char **l = lines; *l; l++) {
        take_line(r->all, heads, *l);
    }
    tell_apart(r->all, heads);
    return r;
}

void tt_regs_free(TtRegs *r)
{
    if (r) {
        g_array_free(r->all, true);
        g_free(r);
    }
}

size_t tt_regs_count(const TtRegs *r)
{
    return r->all->len;
}

const TtReg *tt_regs_at(const TtRegs *r, size_t i)
{
    return &g_array_index(r->all, TtReg, i);
}

const char *tt_regs_find(const TtRegs *r, const char *name)
{
    for (size_t i = 0; i < r->all->len; i++) {
        if (!strcmp(tt_regs_at(r, i)->name, name)) {
            return tt_regs_at(r, i)->value;
        }
    }
    return NULL;
}

size_t tt_regs_compare(const TtRegs *a, const TtRegs *b, TtRegDiffers *differs,
                       void *opaque)
{
    size_t n = 0;

    for (size_t i = 0; i < tt_regs_count(a); i++) {
        const TtReg *r = tt_regs_at(a, i);
        const char *other = tt_regs_find(b, r->name);

        if (!other || strcmp(r->value, other)) {
            differs(opaque, r->name, r->value, other);
            n++;
        }
    }
    for (size_t i = 0; i < tt_regs_count(b); i++) {
        const TtReg *r = tt_regs_at(b, i);

        if (!tt_regs_find(a, r->name)) {
            differs(opaque, r->name, NULL, r->value);
            n++;
        }
    }
    return n;
}
