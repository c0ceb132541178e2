/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt run-plugin RUN races: the addresses of functions that take and give locks, for the
 * plugin; and what it found (plugins-tt/tt-races.c says how its lines look), for people
 * and for programs.
 */
#include "tt-tool-plugin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define END         "tt-merge: end\n"
#define LENGTH_MAX  65536       /* of a function; a longer one is looked at from there on */

typedef struct Side {
    unsigned vcpu;
    char kind;                  /* r or w */
    uint64_t pc, position;
} Side;

typedef struct Race {
    uint64_t times, addr, len;
    int is_atomic_later;
    Side earlier, later;
} Race;

struct ToolRaces {
    GArray *all;                /* of Race */
    uint64_t accesses, atomics, found, not_kept, forgotten, resets;
};

/* ---- for the plugin ---- */

/* Linux's, as far as they are functions in a kernel of Debian. All of them also use atomic
 * instructions; these say which of its bytes are a lock. */
static const char *const linux_takes[] = {
    "_raw_spin_lock", "_raw_spin_lock_bh", "_raw_spin_lock_irq", "_raw_spin_lock_irqsave",
    "_raw_read_lock", "_raw_read_lock_bh", "_raw_read_lock_irq", "_raw_read_lock_irqsave",
    "_raw_write_lock", "_raw_write_lock_bh", "_raw_write_lock_irq",
    "_raw_write_lock_irqsave", "mutex_lock",
    "down", "down_read",
    "down_write", "rt_mutex_lock",
    "percpu_down_write", "wait_for_completion",
    "wait_for_completion_interruptible",
};
static const char *const linux_gives[] = {
    "_raw_spin_unlock", "_raw_spin_unlock_bh", "_raw_spin_unlock_irq",
    "_raw_spin_unlock_irqrestore", "_raw_read_unlock", "_raw_read_unlock_bh",
    "_raw_read_unlock_irq", "_raw_read_unlock_irqrestore", "_raw_write_unlock",
    "_raw_write_unlock_bh", "_raw_write_unlock_irq", "_raw_write_unlock_irqrestore",
    "mutex_unlock", "up", "up_read", "up_write", "downgrade_write", "rt_mutex_unlock",
    "percpu_up_write", "complete", "complete_all",
};

/* Other programs have functions of the same names that are something else. */
static bool is_linux(const ToolPlugin *p)
{
    const char *name = "start_kernel";
    uint64_t addr;
    bool is_code;

    return p->symbols && tool_symbols_address(p->symbols, name, strlen(name), &addr,
                                              &is_code) == 1;
}

static void add_known(const ToolPlugin *p, GString *load, const char *option,
                      const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t addr;
        bool is_code;

        if (tool_symbols_address(p->symbols, names[i], strlen(names[i]), &addr,
                                 &is_code) == 1 && is_code) {
            g_string_append_printf(load, ",%s=0x%" PRIx64, option, addr + p->offset);
        }
    }
}

/* Where the function ends that begins at @addr: where another name begins. */
static uint64_t end_of(const ToolSymbols *s, uint64_t addr)
{
    uint64_t len = 1;

    for (; len < LENGTH_MAX; len++) {
        g_autofree char *name = tool_symbols_find(s, addr + len);
        const char *plus = name ? strrchr(name, '+') : NULL;

        if (!plus || g_ascii_strtoull(plus + 1, NULL, 16) != len) {
            break;
        }
    }
    return addr + len;
}

/* "lock=NAME" becomes "lock=BEGIN-END". False: said why not. */
static bool add_named(const ToolPlugin *p, GString *load, const char *option,
                      const char *name)
{
    uint64_t addr;
    bool is_code;
    size_t n;

    if (!p->symbols) {
        tool_complain("%s=%s names a function: give --symbols, or its address", option,
                      name);
        return false;
    }
    n = tool_symbols_address(p->symbols, name, strlen(name), &addr, &is_code);
    if (n != 1 || !is_code) {
        tool_complain(n > 1 ? "the symbols have several functions '%s': give the address of "
                      "one" : "the symbols have no function '%s'", name);
        return false;
    }
    g_string_append_printf(load, ",%s=0x%" PRIx64 "-0x%" PRIx64, option, addr + p->offset,
                           end_of(p->symbols, addr) + p->offset);
    return true;
}

static bool is_name(const char *option, const char *value)
{
    return value && *value && !g_ascii_isdigit(*value) &&
        (!strcmp(option, "lock") || !strcmp(option, "unlock"));
}

bool tool_races_load(ToolPlugin *p)
{
    g_auto(GStrv) words = g_strsplit(p->load, ",", -1);
    GString *load = g_string_new(words[0]);
    bool ok = true;

    for (char **w = words + 1; ok && *w; w++) {
        g_auto(GStrv) halves = g_strsplit(*w, "=", 2);

        if (halves[0] && is_name(halves[0], halves[1])) {
            ok = add_named(p, load, halves[0], halves[1]);
        } else {
            g_string_append_printf(load, ",%s", *w);
        }
    }
    if (ok && is_linux(p)) {
        add_known(p, load, "linux-lock", linux_takes, G_N_ELEMENTS(linux_takes));
        add_known(p, load, "linux-unlock", linux_gives, G_N_ELEMENTS(linux_gives));
    }
    g_free(p->load);
    p->load = g_string_free(load, false);
    return ok;
}

/* ---- from the plugin ---- */

static bool take_line(ToolRaces *all, const char *line)
{
    Race r;
    Side *a = &r.earlier, *b = &r.later;

    if (sscanf(line, "race %" SCNu64 " %d %" SCNx64 " %" SCNu64 " %u %c %" SCNx64 " %" SCNu64
               " %u %c %" SCNx64 " %" SCNu64, &r.times, &r.is_atomic_later, &r.addr, &r.len,
               &a->vcpu, &a->kind, &a->pc, &a->position, &b->vcpu, &b->kind, &b->pc,
               &b->position) == 12) {
        g_array_append_val(all->all, r);
        return true;
    }
    return sscanf(line, "seen %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
                  " %" SCNu64, &all->accesses, &all->atomics, &all->found, &all->not_kept,
                  &all->forgotten, &all->resets) == 6;
}

ToolRaces *tool_races_read(const char *log)
{
    ToolRaces *all = g_new0(ToolRaces, 1);
    FILE *f = fopen(log, "r");
    char *line = NULL;
    size_t size = 0;
    bool ok = f && getline(&line, &size, f) > 0, has_end = false;   /* the head */

    all->all = g_array_new(false, false, sizeof(Race));
    while (ok && !has_end && getline(&line, &size, f) > 0) {
        has_end = !strcmp(line, END);
        ok = has_end || take_line(all, line);
    }
    free(line);
    if (f) {
        fclose(f);
    }
    if (!has_end) {
        tool_races_free(all);
        return NULL;
    }
    return all;
}

void tool_races_free(ToolRaces *all)
{
    if (all) {
        g_array_free(all->all, true);
        g_free(all);
    }
}

/* ---- for people ---- */

static void put_side(const ToolPlugin *p, FILE *to, const Side *s)
{
    g_autofree char *name = tool_symbols_find(p->symbols, s->pc - p->offset);

    fprintf(to, "CPU %u %s at position %" PRIu64 " (0x%" PRIx64 "%s%s)", s->vcpu,
            s->kind == 'w' ? "writes" : "reads", s->position, s->pc, name ? " " : "",
            name ? name : "");
}

void tool_races_put(const ToolPlugin *p, const ToolRaces *all, FILE *to)
{
    for (guint i = 0; i < all->all->len; i++) {
        const Race *r = &g_array_index(all->all, Race, i);

        fprintf(to, "0x%" PRIx64 "+%" PRIu64 ": ", r->addr, r->len);
        put_side(p, to, &r->earlier);
        fprintf(to, ", ");
        put_side(p, to, &r->later);
        fprintf(to, "; %" PRIu64 " time%s%s\n", r->times, r->times == 1 ? "" : "s",
                r->is_atomic_later ? "; later used by an atomic instruction" : "");
    }
    fprintf(to, "# %u pairs of places, %" PRIu64 " races; %" PRIu64 " accesses, %" PRIu64
            " atomic changes\n", all->all->len, all->found, all->accesses, all->atomics);
    if (all->not_kept) {
        fprintf(to, "# %" PRIu64 " races of more pairs are not shown\n", all->not_kept);
    }
    if (all->forgotten) {
        fprintf(to, "# not all can be found, and some may be none: accesses to %" PRIu64
                " pages were forgotten for want of memory (memory=MIB)\n", all->forgotten);
    }
    if (all->resets) {
        fprintf(to, "# not all can be found, and some may be none: all was forgotten %" PRIu64
                " time%s, after too many synchronisations or locks\n", all->resets,
                all->resets == 1 ? "" : "s");
    }
}

/* ---- for programs ---- */

static void json_side(const ToolPlugin *p, const char *name, const Side *s)
{
    g_autofree char *function = tool_symbols_find(p->symbols, s->pc - p->offset);

    printf("\"%s\": {\"vcpu\": %u, \"write\": %s, \"pc\": \"0x%" PRIx64 "\", \"position\": "
           "%" PRIu64 ", \"function\": ", name, s->vcpu, tool_json_bool(s->kind == 'w'),
           s->pc, s->position);
    if (function) {
        tool_json_string(function);
    } else {
        printf("null");
    }
    printf("}");
}

void tool_races_json(const ToolPlugin *p, const ToolRaces *all)
{
    printf(", \"races\": [");
    for (guint i = 0; i < all->all->len; i++) {
        const Race *r = &g_array_index(all->all, Race, i);

        printf("%s{\"address\": \"0x%" PRIx64 "\", \"length\": %" PRIu64 ", \"times\": %"
               PRIu64 ", \"atomic_later\": %s, ", i ? ", " : "", r->addr, r->len, r->times,
               tool_json_bool(r->is_atomic_later));
        json_side(p, "earlier", &r->earlier);
        printf(", ");
        json_side(p, "later", &r->later);
        printf("}");
    }
    printf("], \"found\": %" PRIu64 ", \"not_shown\": %" PRIu64 ", \"accesses\": %" PRIu64
           ", \"atomics\": %" PRIu64 ", \"forgotten_pages\": %" PRIu64 ", \"resets\": %"
           PRIu64, all->found, all->not_kept, all->accesses, all->atomics, all->forgotten,
           all->resets);
}
