/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls of Slurm's programs, and what they answer.
 */
#include "tt-tool-slurm.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

bool tool_slurm_is_there(void)
{
    static const char *const programs[] = { "sbatch", "squeue", "scontrol", "scancel" };

    for (unsigned i = 0; i < G_N_ELEMENTS(programs); i++) {
        g_autofree char *path = g_find_program_in_path(programs[i]);

        if (!path) {
            tool_complain("there is no %s in PATH: install Slurm's programs (Debian's "
                          "slurm-client), or leave out --on", programs[i]);
            return false;
        }
    }
    return true;
}

/* Ctrl-C is for us, and not for a submission that is under way. */
static void own_group(void *opaque)
{
    setpgid(0, 0);
}

/* Variables that would have Slurm list or cancel something else. */
static char **environment(void)
{
    char **env = g_get_environ(), **to = env;

    for (char **from = env; *from; from++) {
        if (g_str_has_prefix(*from, "SQUEUE_") || g_str_has_prefix(*from, "SCANCEL_") ||
            g_str_has_prefix(*from, "SBATCH_WAIT=") ||
            g_str_has_prefix(*from, "SBATCH_REQUEUE=")) {
            g_free(*from);
        } else {
            *to++ = *from;
        }
    }
    *to = NULL;
    return env;
}

/* True: it ended with status 0. *@out and *@err: g_free in any case; @out may be NULL. */
static bool call(GPtrArray *args, char **out, char **err)
{
    g_auto(GStrv) env = environment();
    g_autoptr(GError) error = NULL;
    g_autofree char *none = NULL;
    int status;

    g_ptr_array_add(args, NULL);
    if (!g_spawn_sync(NULL, (char **)args->pdata, env, G_SPAWN_SEARCH_PATH, own_group,
                      NULL, out ?: &none, err, &status, &error)) {
        *err = g_strdup(error->message);
        return false;
    }
    return WIFEXITED(status) && !WEXITSTATUS(status);
}

static void add(GPtrArray *args, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

static void add(GPtrArray *args, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    g_ptr_array_add(args, g_strdup_vprintf(fmt, ap));
    va_end(ap);
}

static GPtrArray *command(const char *program)
{
    GPtrArray *args = g_ptr_array_new_with_free_func(g_free);

    add(args, "%s", program);
    return args;
}

/* The last line, without who says it. */
static char *last_line(const char *err)
{
    g_auto(GStrv) lines = g_strsplit(g_strchomp(g_strdup(err ?: "")), "\n", -1);
    unsigned n = g_strv_length(lines);
    const char *line = n ? lines[n - 1] : "";
    const char *text = strstr(line, "error: ");

    return g_strdup(text ? text + strlen("error: ") : *line ? line :
                    "it does not say why");
}

static void refused(const char *err)
{
    g_autofree char *why = last_line(err);

    if (strstr(why, "artition")) {
        tool_complain("Slurm has no such partition (%s): choose one that sinfo lists, "
                      "with --on slurm,partition=NAME", why);
    } else if (strstr(why, "contact slurm controller") || strstr(why, "onfiguration")) {
        tool_complain("Slurm's controller does not answer (%s): see whether sinfo works "
                      "here", why);
    } else {
        tool_complain("Slurm did not take the job array: %s", why);
    }
}

char *tool_slurm_submit(const GPtrArray *options, const char *name, const char *array,
                        const char *script, unsigned argument)
{
    g_autoptr(GPtrArray) args = command("sbatch");
    g_autofree char *out = NULL, *err = NULL;

    for (unsigned i = 0; i < options->len; i++) {
        add(args, "%s", (char *)options->pdata[i]);
    }
    add(args, "--parsable");
    add(args, "--no-requeue");          /* we do that ourselves */
    add(args, "--job-name=%s", name);
    add(args, "--array=%s", array);
    add(args, "--output=/dev/null");
    add(args, "%s", script);
    add(args, "%u", argument);
    if (!call(args, &out, &err) || !g_ascii_isdigit(*out)) {
        refused(err);
        return NULL;
    }
    return g_strndup(out, strspn(out, "0123456789"));
}

bool tool_slurm_list(const char *name, ToolSlurmListed *listed, void *opaque)
{
    g_autoptr(GPtrArray) args = command("squeue");
    g_autofree char *out = NULL, *err = NULL;
    g_auto(GStrv) lines = NULL;

    add(args, "--noheader");
    add(args, "--array");
    add(args, "--user=%s", g_get_user_name());
    add(args, "--name=%s", name);
    add(args, "--format=%%F %%K %%t %%r");
    if (!call(args, &out, &err)) {
        return false;
    }
    lines = g_strsplit(out, "\n", -1);
    for (char **l = lines; *l; l++) {
        g_auto(GStrv) words = g_strsplit(*l, " ", 4);

        if (g_strv_length(words) == 4 && g_ascii_isdigit(*words[1])) {
            listed(opaque, words[0], strtoul(words[1], NULL, 10), words[2],
                   g_strstrip(words[3]));
        }
    }
    return true;
}

/* What stands after @key, with a space before it, up to the next space; "". */
static char *value(const char *text, const char *key)
{
    const char *at = text ? strstr(text, key) : NULL;

    return at ? g_strndup(at + strlen(key), strcspn(at + strlen(key), " \n")) :
        g_strdup("");
}

void tool_slurm_ask(const char *job, unsigned index, ToolSlurmEnd *end)
{
    g_autoptr(GPtrArray) args = command("scontrol");
    g_autofree char *out = NULL, *err = NULL, *status = NULL;

    add(args, "--oneliner");
    add(args, "show");
    add(args, "job");
    add(args, "%s_%u", job, index);
    if (!call(args, &out, &err)) {
        g_clear_pointer(&out, g_free);
    }
    status = value(out, " ExitCode=");
    *end = (ToolSlurmEnd) {
        .state = value(out, " JobState="), .node = value(out, " NodeList="),
        .status = atoi(status),
    };
}

void tool_slurm_end_cleanup(ToolSlurmEnd *end)
{
    g_free(end->state);
    g_free(end->node);
}

void tool_slurm_cancel(const GPtrArray *tasks)
{
    g_autoptr(GPtrArray) args = command("scancel");
    g_autofree char *err = NULL;

    for (unsigned i = 0; i < tasks->len; i++) {
        add(args, "%s", (char *)tasks->pdata[i]);
    }
    call(args, NULL, &err);             /* it may have ended just now */
}

char *tool_slurm_cancel_all(const char *name)
{
    g_autoptr(GPtrArray) args = command("scancel");
    g_autofree char *err = NULL;

    add(args, "--user=%s", g_get_user_name());
    add(args, "--name=%s", name);
    return call(args, NULL, &err) ? NULL : last_line(err);
}
