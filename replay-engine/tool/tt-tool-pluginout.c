/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a plugin said (qemu_plugin_outs) in each part of a run. One whose first line is
 * "tt-merge: sum" prints lines of a key and a number behind a space: the numbers of a
 * key are added up, so that the result is that of one pass. Addresses in keys (0x...)
 * become functions, if there are symbols. What other plugins say stands in parts.
 */
#include "tt-tool-plugin.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUM "tt-merge: sum\n"

static bool is_sum(const char *log)
{
    char head[sizeof(SUM)] = "";
    FILE *f = fopen(log, "r");
    bool is = f && fgets(head, sizeof(head), f) && !strcmp(head, SUM);

    if (f) {
        fclose(f);
    }
    return is;
}

/* With functions for addresses. */
static char *named(const ToolPlugin *p, const char *key)
{
    const char *at = strstr(key, "0x");
    char *end;
    uint64_t addr = at ? g_ascii_strtoull(at, &end, 16) : 0;
    g_autofree char *name = at ? tool_symbols_find(p->symbols, addr - p->offset) : NULL;

    if (!name) {
        return g_strdup(key);
    }
    name[strcspn(name, "+")] = '\0';
    return g_strdup_printf("%.*s%s%s", (int)(at - key), key, name, end);
}

static void add_up(const ToolPlugin *p, GHashTable *sums, const char *log)
{
    FILE *f = fopen(log, "r");
    char *line = NULL;
    size_t size = 0;
    bool ok = f && getline(&line, &size, f) > 0;    /* the head */

    while (ok && getline(&line, &size, f) > 0) {
        char *space = strrchr(line, ' ');
        uint64_t *sum, n = space ? g_ascii_strtoull(space, NULL, 10) : 0;
        g_autofree char *key = NULL;

        if (!space) {
            continue;
        }
        *space = '\0';
        key = named(p, line);
        sum = g_hash_table_lookup(sums, key);
        if (!sum) {
            sum = g_new0(uint64_t, 1);
            g_hash_table_insert(sums, g_steal_pointer(&key), sum);
        }
        *sum += n;
    }
    free(line);
    if (f) {
        fclose(f);
    }
}

static void copy(FILE *to, const char *log)
{
    FILE *f = fopen(log, "r");
    char buf[1 << 16];
    size_t n;

    while (f && (n = fread(buf, 1, sizeof(buf), f)) > 0) {
        fwrite(buf, 1, n, to);
    }
    if (f) {
        fclose(f);
    }
}

static void put_sums(const ToolPlugin *p, FILE *to)
{
    g_autoptr(GHashTable) sums = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
                                                       g_free);
    GList *keys;

    for (unsigned i = 0; i < p->replays.parts->len; i++) {
        add_up(p, sums, ((ToolPart *)p->replays.parts->pdata[i])->log);
    }
    keys = g_list_sort(g_hash_table_get_keys(sums), (GCompareFunc)strcmp);
    for (GList *k = keys; k; k = k->next) {
        fprintf(to, "%s %" PRIu64 "\n", (char *)k->data,
                *(uint64_t *)g_hash_table_lookup(sums, k->data));
    }
    g_list_free(keys);
}

static void put_parts(const ToolPlugin *p, FILE *to)
{
    for (unsigned i = 0; i < p->replays.parts->len; i++) {
        const ToolPart *part = p->replays.parts->pdata[i];

        if (p->replays.parts->len > 1) {
            fprintf(to, "%s# from position %" PRIu64 "\n", i ? "\n" : "", part->from);
        }
        fputs(part->other->str, to);
        copy(to, part->log);
    }
}

bool tool_plugin_put(ToolPlugin *p)
{
    const char *out = tool_value(p->args, "--out");
    FILE *to = out ? fopen(out, "wx") : stdout;
    bool sums = true, ok;

    if (!to) {
        tool_complain("cannot make '%s': %s", out, g_strerror(errno));
        return false;
    }
    for (unsigned i = 0; i < p->replays.parts->len; i++) {
        sums &= is_sum(((ToolPart *)p->replays.parts->pdata[i])->log);
    }
    if (sums) {
        put_sums(p, to);
    } else {
        put_parts(p, to);
    }
    ok = !ferror(to);
    if (out) {
        ok &= !fclose(to);
    }
    if (!ok && out) {
        tool_complain("cannot write '%s': %s", out, g_strerror(errno));
    }
    return ok || !out;          /* of stdout main() knows */
}
