/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt term: a VM on this terminal, recorded, with undo and redo as keys (URDB, section 3).
 * Of a run it is tt branch (tt-tool-branch.c); else QEMU with the given options.
 */
#include "tt-tool.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static bool is_option(const char *arg, const char *name)
{
    return *arg == '-' && !strcmp(arg + 1 + (arg[1] == '-'), name);
}

static const char *value_of(char **args, const char *name)
{
    const char *value = NULL;

    for (char **a = args; *a; a++) {
        if (is_option(*a, name)) {
            value = a[1] ?: "";
        }
    }
    return value;
}

static bool has(char **args, const char *name)
{
    return value_of(args, name);
}

/* Is a multiplexer on stdin: a port of the guest and a monitor, and so the keys? */
static bool has_term(char **args)
{
    for (char **a = args; *a; a++) {
        if (!strcmp(*a, "mon:stdio") ||
            (g_str_has_prefix(*a, "stdio,") && strstr(*a, ",mux=on"))) {
            return true;
        }
    }
    return false;
}

static int add_recording(const ToolArgs *a, GPtrArray *args)
{
    const char *to = tool_value(a, "--to"), *given = value_of(a->rest, "tt");
    g_autofree char *dir = NULL;

    if (given && (g_str_has_prefix(given, "replay") || !strstr(given, ",undo=console"))) {
        return tool_usage(a->command, "-tt %s has no undo: leave it out, or use -tt "
                          "record,undo=console", given);
    }
    if (to && !*to) {
        return tool_usage(a->command, "--to is empty: give the name of the new directory");
    }
    if (given && to) {
        return tool_usage(a->command, "--to and -tt both say where the recording goes: "
                          "leave one out");
    }
    if (given) {
        return TOOL_FINE;
    }
    if (to && (!tool_can_record_into(to) || !(dir = tool_option_value(to)))) {
        return TOOL_PROBLEM;
    }
    g_ptr_array_add(args, g_strdup("-tt"));
    g_ptr_array_add(args, g_strconcat("record,undo=console", dir ? ",dir=" : "", dir,
                                      NULL));
    return TOOL_FINE;
}

static int add_term(const ToolArgs *a, GPtrArray *args)
{
    if (has_term(a->rest)) {
        return TOOL_FINE;
    }
    if (has(a->rest, "serial") || has(a->rest, "daemonize")) {
        return tool_usage(a->command, "these options give the guest no terminal here: "
                          "leave -serial and -daemonize out, or use -serial mon:stdio");
    }
    if (!has(a->rest, "display") && !has(a->rest, "vnc") && !has(a->rest, "spice") &&
        !has(a->rest, "nographic")) {
        g_ptr_array_add(args, g_strdup("-display"));
        g_ptr_array_add(args, g_strdup("none"));
    }
    g_ptr_array_add(args, g_strdup("-serial"));
    g_ptr_array_add(args, g_strdup("mon:stdio"));
    return TOOL_FINE;
}

static int new_vm(const ToolArgs *a)
{
    g_autoptr(GPtrArray) args = g_ptr_array_new_with_free_func(g_free);
    int result;

    if (tool_has(a, "--at") || tool_has(a, "--without")) {
        return tool_usage(a->command, "--at and --without need a RUN");
    }
    if (!a->rest || !*a->rest) {
        return tool_usage(a->command, "give a RUN, or after -- the options of QEMU for "
                          "a new VM");
    }
    if (**a->rest != '-' && tool_has(a, "--qemu")) {
        return tool_usage(a->command, "--qemu and the program after -- both say what to "
                          "run: leave one out");
    }
    if (**a->rest == '-') {
        char *qemu = tool_find_qemu(a);

        if (!qemu) {
            return TOOL_PROBLEM;
        }
        g_ptr_array_add(args, qemu);
    }
    for (char **r = a->rest; *r; r++) {
        g_ptr_array_add(args, g_strdup(*r));
    }
    result = add_recording(a, args);
    result = result == TOOL_FINE ? add_term(a, args) : result;
    if (result != TOOL_FINE) {
        return result;
    }
    g_ptr_array_add(args, NULL);
    tool_print_command((char **)args->pdata);
    if (tool_has(a, "--print")) {
        return TOOL_FINE;
    }
    execvp(args->pdata[0], (char **)args->pdata);
    return tool_complain("cannot run '%s': %s", (char *)args->pdata[0],
                         g_strerror(errno));
}

int tool_term(const ToolArgs *a)
{
    return a->operand[0] ? tool_branch(a) : new_vm(a);
}
