/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a plugin said (qemu_plugin_outs) in each part of a run. One whose first line is
 * "tt-merge: sum" prints lines of a key and a number after a space: the numbers of a
 * key are added up, so that the result is that of one pass. If its first line is
 * "tt-merge: list", the lines of all parts stand one after the other. The last line is
 * "tt-merge: end" in both: without it something is missing. An address in a key (0x...)
 * becomes a function, if there are symbols; in a call stack, which ends with ";@0x...", all
 * do. Where none is known, "low;0x..." and "kernel;0x..." become one line each: programs
 * have other addresses each time they run. What other plugins say stands in parts.
 */
#include "tt-tool-lcov.h"
#include "tt-tool-plugin.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUM "tt-merge: sum\n"
#define LIST "tt-merge: list\n"
#define END "tt-merge: end\n"
#define NOT_ALL "what the plugin said is not all there: is the disk of '%s' full? Set " \
                "TMPDIR to a directory with more room"

static bool begins_with(const char *log, const char *line)
{
    char head[sizeof(LIST)] = "";
    FILE *f = fopen(log, "r");
    bool is = f && fgets(head, sizeof(head), f) && !strcmp(head, line);

    if (f) {
        fclose(f);
    }
    return is;
}

/* With functions for addresses. */
static char *named(const ToolPlugin *p, const char *key)
{
    const char *at = strstr(key, "0x");
    char *end = NULL;
    uint64_t addr = at ? g_ascii_strtoull(at, &end, 16) : 0;
    g_autofree char *name = at ? tool_symbols_find(p->symbols, addr - p->offset) : NULL;
    char *plus = name ? g_strrstr(name, "+0x") : NULL;

    if (p->symbols && at > key && at[-1] == ';' && !name && !*end) {
        return g_strdup_printf("%.*s[unknown]", (int)(at - key), key);
    }
    if (!name || *end == '+') {     /* with a length it is a place, no function */
        return g_strdup(key);
    }
    if (plus) {
        *plus = '\0';
    }
    return g_strdup_printf("%.*s%s%s", (int)(at - key), key, name, end);
}

/* Of a call stack, each address is one; the last stands for a place in the innermost
 * function, or in one that it jumped to. */
static char *named_stack(const ToolPlugin *p, const char *key)
{
    g_auto(GStrv) frames = g_strsplit(key, ";", -1);
    unsigned n = g_strv_length(frames);
    g_autofree char *last = NULL;

    for (unsigned i = 0; i < n; i++) {
        char *name = g_strdelimit(named(p, frames[i]), ";", ':');

        g_free(frames[i]);
        frames[i] = name;
    }
    last = g_strdup(frames[n - 1] + 1);         /* without its @ */
    if (n > 2 && (g_str_has_prefix(last, "0x") || !strcmp(last, frames[n - 2]))) {
        g_clear_pointer(&frames[n - 1], g_free);
    } else {
        g_free(frames[n - 1]);
        frames[n - 1] = g_steal_pointer(&last);
    }
    return g_strjoinv(";", frames);
}

/* A list, without its head and end. False: not all of it is there. */
static bool put_list(FILE *to, const char *log)
{
    FILE *f = fopen(log, "r");
    char *line = NULL;
    size_t size = 0;
    bool ok = f && getline(&line, &size, f) > 0, has_end = false;

    while (ok && !has_end && getline(&line, &size, f) > 0) {
        has_end = !strcmp(line, END);
        if (!has_end) {
            fputs(line, to);
        }
    }
    free(line);
    if (f) {
        fclose(f);
    }
    return has_end;
}

/* False: not all of it is there. */
static bool add_up(const ToolPlugin *p, GHashTable *sums, const char *log)
{
    FILE *f = fopen(log, "r");
    char *line = NULL;
    size_t size = 0;
    bool ok = f && getline(&line, &size, f) > 0;    /* the head */
    bool has_end = false;

    while (ok && !has_end && getline(&line, &size, f) > 0) {
        char *space = strrchr(line, ' ');
        uint64_t *sum, n = space ? g_ascii_strtoull(space, NULL, 10) : 0;
        g_autofree char *key = NULL;

        has_end = !strcmp(line, END);
        if (!space || has_end) {
            continue;
        }
        *space = '\0';
        key = strstr(line, ";@0x") ? named_stack(p, line) : named(p, line);
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
    return has_end;
}

/* False: it could not be read. A plugin that said nothing has no file. */
static bool copy(FILE *to, const char *log)
{
    FILE *f = fopen(log, "r");
    char buf[1 << 16];
    bool ok = f || errno == ENOENT;
    size_t n;

    while (f && (n = fread(buf, 1, sizeof(buf), f)) > 0) {
        fwrite(buf, 1, n, to);
    }
    if (f) {
        ok = !ferror(f);
        fclose(f);
    }
    return ok;
}

/* NULL: not all of it is there. */
static GHashTable *sum_up(const ToolPlugin *p)
{
    GHashTable *sums = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    bool ok = true;

    for (unsigned i = 0; i < p->replays.parts->len; i++) {
        ok &= add_up(p, sums, ((ToolPart *)p->replays.parts->pdata[i])->log);
    }
    if (!ok) {
        g_hash_table_destroy(sums);
    }
    return ok ? sums : NULL;
}

static void put_sums(GHashTable *sums, FILE *to)
{
    GList *keys = g_list_sort(g_hash_table_get_keys(sums), (GCompareFunc)strcmp);

    for (GList *k = keys; k; k = k->next) {
        fprintf(to, "%s %" PRIu64 "\n", (char *)k->data,
                *(uint64_t *)g_hash_table_lookup(sums, k->data));
    }
    g_list_free(keys);
}

static bool put_parts(const ToolPlugin *p, FILE *to, bool are_lists)
{
    bool ok = true;

    for (unsigned i = 0; i < p->replays.parts->len; i++) {
        const ToolPart *part = p->replays.parts->pdata[i];

        if (are_lists) {
            ok &= put_list(to, part->log);
            continue;
        }
        if (p->replays.parts->len > 1) {
            fprintf(to, "%s# from position %" PRIu64 "\n", i ? "\n" : "", part->from);
        }
        fputs(part->other->str, to);
        ok &= copy(to, part->log);
    }
    return ok;
}

/* How many parts begin with that line. */
static unsigned count(const ToolPlugin *p, const char *line)
{
    unsigned n = 0;

    for (unsigned i = 0; i < p->replays.parts->len; i++) {
        n += begins_with(((ToolPart *)p->replays.parts->pdata[i])->log, line);
    }
    return n;
}

/* What the parts said, as it is put together. */
typedef struct Said {
    ToolPlugin *plugin;
    GHashTable *sums;           /* NULL: there are none */
    bool are_lists;
} Said;

/* A form of the result. False: said why there is none. */
typedef bool Put(const Said *s, FILE *to);

static bool put_lcov(const Said *s, FILE *to)
{
    return tool_lcov_put(to, tool_value(s->plugin->args, "--symbols"), s->plugin->offset,
                         s->sums);
}

static bool put_text(const Said *s, FILE *to)
{
    ToolPlugin *p = s->plugin;

    if (s->sums) {
        put_sums(s->sums, to);
    } else if (p->races) {
        tool_races_put(p, p->races, to);
    } else if (!put_parts(p, to, s->are_lists)) {
        tool_complain(NOT_ALL, p->scratch);
        return false;
    }
    return true;
}

/* True: it is there, all of it. *@told: said that there is no result. */
static bool write_file(const Said *s, const char *path, Put *put, bool *told)
{
    FILE *to = fopen(path, "wx");
    int error = 0;

    *told = false;
    if (!to) {
        return false;
    }
    errno = 0;
    *told = !put(s, to);
    if (fflush(to) || ferror(to)) {
        error = errno ?: ENOSPC;
    }
    if (fclose(to) && !error) {
        error = errno;
    }
    if (error || *told) {
        unlink(path);           /* half a result looks like a whole one */
    }
    errno = error;
    return !error && !*told;
}

/* A replay may have taken hours: the result goes beside what the parts said, then. False:
 * said why it is not in @path. */
static bool put_file(const Said *s, const char *path, Put *put)
{
    ToolPlugin *p = s->plugin;
    g_autofree char *spare = g_strdup_printf("%s/%s", p->scratch,
                                             put == put_lcov ? "lcov" : "out");
    bool told, is_told_again;
    const char *why;

    if (write_file(s, path, put, &told) || told) {
        return !told;
    }
    why = g_strerror(errno);
    p->is_kept = true;
    if (p->replays.slurm) {
        tool_slurm_keep(p->replays.slurm);
    }
    if (write_file(s, spare, put, &is_told_again)) {
        tool_complain("cannot write '%s': %s; the result is in '%s'", path, why, spare);
    } else {
        tool_complain("cannot write '%s': %s; what the plugin said in each part is in '%s'",
                      path, why, p->scratch);
    }
    return false;
}

bool tool_plugin_put(ToolPlugin *p)
{
    const char *out = tool_value(p->args, "--out");
    unsigned n_sums = count(p, SUM), n_lists = count(p, LIST);
    g_autoptr(GHashTable) sums = NULL;
    Said said;
    bool ok;

    if (n_lists && n_lists != p->replays.parts->len) {
        tool_complain(NOT_ALL, p->scratch);
        return false;
    }
    if (p->is_races) {
        p->races = tool_races_read(((ToolPart *)p->replays.parts->pdata[0])->log);
        if (!p->races) {
            tool_complain(NOT_ALL, p->scratch);
            return false;
        }
    }
    if (!n_lists && (n_sums || p->is_ours)) {
        sums = n_sums == p->replays.parts->len ? sum_up(p) : NULL;
        if (!sums) {
            tool_complain(NOT_ALL, p->scratch);
            return false;
        }
    }
    said = (Said) { p, sums, n_lists > 0 };
    ok = !p->lcov || put_file(&said, p->lcov, put_lcov);
    if (out) {
        ok &= put_file(&said, out, put_text);
    } else if (ok && !p->is_json && !p->lcov) {
        ok = put_text(&said, stdout);       /* whether it is all there main() sees */
    }
    return ok;
}
