/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A task of Slurm: what it is to run, and what it left. Task I of submission S has the
 * files
 *
 *   I.S.command  what it runs (a piece of shell)
 *   I.S.said     what QEMU prints
 *   I.S.end      "ended STATUS", or "lacks NODE PATH": it appears at the end, and whole
 *
 * A task that Slurm does not list any more and that has no end is lost, and is submitted
 * again, as is one whose QEMU was killed: what it had said is forgotten.
 */
#include "tt-tool-slurm.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- what it is to run ---- */

bool tool_slurm_put(const char *path, const char *text)
{
    g_autoptr(GError) err = NULL;

    if (!g_file_set_contents(path, text, -1, &err)) {
        tool_complain("%s", err->message);
    }
    return !err;
}

static char *file_of(const ToolSlurm *s, const ToolSlurmTask *t, const char *what)
{
    return g_strdup_printf("%s/%u.%u.%s", s->dir, t->index, t->submission, what);
}

static void add_quoted(GString *text, const char *word)
{
    g_autofree char *quoted = g_shell_quote(word);

    g_string_append_printf(text, " %s", quoted);
}

bool tool_slurm_put_command(const ToolSlurm *s, const ToolReplays *r,
                            const ToolSlurmTask *t)
{
    g_auto(GStrv) argv = tool_part_command(r, t->part);
    g_autofree char *file = file_of(s, t, "command");
    g_autofree char *run = tool_whole_path(r->run);
    g_autoptr(GString) text = g_string_new("for file in");

    if (!argv || !run) {
        return false;
    }
    add_quoted(text, run);
    add_quoted(text, r->qemu);
    g_string_append(text, "; do\n    [ -e \"$file\" ] || tell lacks \"$SLURMD_NODENAME\" "
                    "\"$file\"\ndone\n");
    if (t->part->dir) {
        g_string_append(text, "cd");
        add_quoted(text, t->part->dir);
        g_string_append(text, " || tell lacks \"$SLURMD_NODENAME\"");
        add_quoted(text, t->part->dir);
        g_string_append_c(text, '\n');
    }
    for (char **a = argv; *a; a++) {
        add_quoted(text, *a);
    }
    g_string_append(text, " < /dev/null > \"$me.said\" 2>&1\ntell ended $?\n");
    return tool_slurm_put(file, text->str);
}

/* ---- what a task left ---- */

/* It will be executed again, unless that was done often enough. */
static void lose(const ToolReplays *r, ToolSlurmTask *t, const char *how, ToolDone *done,
                 void *opaque)
{
    g_autoptr(GPtrArray) id = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *text = NULL;
    ToolPart *p = t->part;

    g_ptr_array_add(id, g_strdup_printf("%s_%u", t->job, t->index));
    tool_slurm_cancel(id);              /* what might be left of it */
    text = g_strdup_printf("Slurm's task %s, from position %" PRIu64 " on, was lost: %s",
                           (char *)id->pdata[0], p->from, how);
    tool_part_reset(p);
    if (t->tries == TOOL_SLURM_TRIES) {
        p->lost = g_strdup_printf("%s, for the third time", text);
        tool_part_finish(r, p, 0, TOOL_PROBLEM);
        done(opaque, p);
        return;
    }
    if (!r->slurm->is_quiet) {
        g_autofree char *note = g_strconcat(text, "; it is submitted again", NULL);

        tool_slurm_hide_progress(r->slurm);
        tool_note(note);
    }
    if (p->log) {
        char *log = g_strconcat(p->log, "+", NULL);

        g_free(p->log);
        p->log = log;
    }
    g_clear_pointer(&t->job, g_free);
}

static void read_said(const ToolSlurm *s, const ToolReplays *r, ToolSlurmTask *t)
{
    g_autofree char *file = file_of(s, t, "said");
    FILE *f = fopen(file, "r");
    char buf[1 << 16];
    size_t n;

    if (f && !fseek(f, t->read, SEEK_SET)) {
        while ((n = fread(buf, 1, sizeof(buf), f)) > 0) {
            tool_part_take(r, t->part, buf, n);
            t->read += n;
        }
    }
    if (f) {
        fclose(f);
    }
}

/* It is over, and Slurm knows how. False: all are, and it was said why. */
static bool take_from_slurm(const ToolReplays *r, ToolSlurmTask *t, ToolDone *done,
                            void *opaque, bool *is_ours)
{
    static const char *const by_itself[] = { "COMPLETED", "FAILED", "" };
    g_autofree char *how = NULL;
    ToolSlurmEnd e;
    bool ok = true;

    tool_slurm_ask(t->job, t->index, &e);
    for (unsigned i = 0; *is_ours && i < G_N_ELEMENTS(by_itself); i++) {
        if (!strcmp(e.state, by_itself[i])) {
            tool_slurm_end_cleanup(&e);
            return true;
        }
    }
    *is_ours = false;
    if (e.status == TOOL_SLURM_BLIND) {
        tool_complain("the node %s does not see '%s': put the run into a directory that "
                      "all nodes have at the same path, or name one with --on "
                      "slurm,scratch=DIR", e.node, r->slurm->dir);
        ok = false;
    } else if (!strcmp(e.state, "TIMEOUT")) {
        tool_complain("a task ran into its time limit on the node %s: raise it with --on "
                      "slurm,time=MINUTES, or have more and shorter tasks, with -j",
                      e.node);
        ok = false;
    } else {
        how = g_strdup_printf("%s%s%s", *e.state ? e.state : "Slurm knows it no more",
                              *e.node ? " on the node " : "", e.node);
        lose(r, t, how, done, opaque);
    }
    tool_slurm_end_cleanup(&e);
    return ok;
}

/* False: an error, and it was said. */
static bool take_end(const ToolReplays *r, ToolSlurmTask *t, const char *end,
                     ToolDone *done, void *opaque)
{
    g_auto(GStrv) words = g_strsplit(end, " ", 3);
    int status = words[0] && words[1] ? atoi(words[1]) : TOOL_PROBLEM;
    bool is_ours = true;

    if (words[0] && !strcmp(words[0], "lacks") && words[1] && words[2]) {
        tool_complain("the node %s does not see '%s': put it into a directory that all "
                      "nodes have at the same path", words[1], g_strchomp(words[2]));
        return false;
    }
    if (status > 128) {                 /* the shell's way */
        g_autofree char *how = g_strdup_printf("QEMU was killed by signal %d (%s)",
                                               status - 128, g_strsignal(status - 128));

        lose(r, t, how, done, opaque);
        return true;
    }
    if (status != TOOL_FINE && status != TOOL_DIVERGED) {
        /* By itself, or because Slurm asked it to? */
        if (t->n_missed < 1) {
            return true;
        }
        if (!take_from_slurm(r, t, done, opaque, &is_ours)) {
            return false;
        }
    }
    if (is_ours) {
        tool_part_finish(r, t->part, 0, status);
        done(opaque, t->part);
    }
    return true;
}

bool tool_slurm_look(const ToolReplays *r, ToolSlurmTask *t, ToolDone *done, void *opaque)
{
    const ToolSlurm *s = r->slurm;
    g_autofree char *file = file_of(s, t, "end");
    g_autofree char *end = NULL;
    bool is_ours = false;
    GDir *d;

    if (t->n_missed >= TOOL_SLURM_MISSED && (d = g_dir_open(s->dir, 0, NULL))) {
        g_dir_close(d);                 /* NFS looks again then */
    }
    g_file_get_contents(file, &end, NULL, NULL);
    read_said(s, r, t);                 /* all of it, if there is an end */
    return end ? take_end(r, t, end, done, opaque) : t->n_missed < TOOL_SLURM_MISSED ||
        take_from_slurm(r, t, done, opaque, &is_ours);
}
