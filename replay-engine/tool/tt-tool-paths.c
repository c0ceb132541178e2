/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the commands of the `tt` tool share: paths, and programs beside it.
 */
#include "tt-tool.h"

#include <errno.h>
#include <glib/gstdio.h>

char *tool_whole_path(const char *path)
{
    char *whole = tt_io_posix_absolute(path);

    if (!whole) {
        tool_complain("cannot resolve the path '%s': %s",
                      path, g_strerror(errno));
    }
    return whole;
}

static char *find_beside(const char *program, const char *name)
{
    g_autofree char *tool = g_find_program_in_path(program);
    g_autofree char *real = g_file_read_link("/proc/self/exe", NULL);
    const char *const beside[] = { tool, real };

    for (unsigned i = 0; i < G_N_ELEMENTS(beside); i++) {
        g_autofree char *dir = beside[i] ? g_path_get_dirname(beside[i]) : NULL;
        g_autofree char *path = dir ?
            g_build_filename(dir, name, NULL) : NULL;

        if (path && g_file_test(path, G_FILE_TEST_IS_EXECUTABLE)) {
            return tool_whole_path(path);
        }
    }
    return NULL;
}

char *tool_find_beside(const char *program, const char *name)
{
    char *path = find_beside(program, name);

    if (!path) {
        tool_complain("there is no %s next to this program: scripts/build and "
                      "scripts/install put it there", name);
    }
    return path;
}

static char *find_qemu(const char *program)
{
    char *path = find_beside(program, "qemu-system-x86_64");

    if (!path) {
        tool_complain("there is no qemu-system-x86_64 next to this program: give its "
                      "path with --qemu");
    }
    return path;
}

char *tool_find_qemu(const ToolArgs *a)
{
    const char *given = tool_value(a, "--qemu");
    char *path = given ? tool_whole_path(given) : find_qemu(a->program);

    if (path && !g_file_test(path, G_FILE_TEST_IS_EXECUTABLE)) {
        tool_complain("'%s' is not an executable program", path);
        g_clear_pointer(&path, g_free);
    }
    return path;
}

bool tool_is_fit(const char *path)
{
    g_autofree char *run = tt_runstore_enclosing(path);

    if (run) {
        tool_complain("'%s' would be inside the run '%s': give a path outside it",
                      path, run);
    }
    return !run;
}

char *tool_escaped(const char *text)
{
    g_auto(GStrv) pieces = g_strsplit(text, ",", -1);

    return g_strjoinv(",,", pieces);
}

char *tool_option_value(const char *path)
{
    g_autofree char *whole = tool_whole_path(path);

    return whole ? tool_escaped(whole) : NULL;
}

char *tool_option_key(const char *option, const char *key)
{
    const char *p = option;
    char *value = NULL;

    if (*option == '{') {
        g_autoptr(GVariant) all = g_variant_parse(G_VARIANT_TYPE("a{ss}"), option, NULL,
                                                  NULL, NULL);

        if (all) {
            g_variant_lookup(all, key, "s", &value);
        }
        return value;
    }
    while (*p) {
        GString *word = g_string_new(NULL);

        for (; *p && (*p != ',' || p[1] == ','); p++) {
            g_string_append_c(word, *p);
            p += *p == ',';
        }
        p += *p == ',';
        if (g_str_has_prefix(word->str, key) && word->str[strlen(key)] == '=') {
            g_free(value);                      /* the last one counts */
            value = g_strdup(word->str + strlen(key) + 1);
        }
        g_string_free(word, true);
    }
    return value;
}

unsigned tool_remove_directory(const char *path)
{
    GDir *d = g_dir_open(path, 0, NULL);
    const char *name;
    unsigned n = 0;

    while (d && (name = g_dir_read_name(d))) {
        g_autofree char *file = g_build_filename(path, name, NULL);

        n++;
        if (g_file_test(file, G_FILE_TEST_IS_DIR) &&
            !g_file_test(file, G_FILE_TEST_IS_SYMLINK)) {
            tool_remove_directory(file);
        } else {
            g_unlink(file);
        }
    }
    if (d) {
        g_dir_close(d);
    }
    g_rmdir(path);
    return n;
}
