/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt mcp: the run is looked at once, so that a mistake is said here; then node serves,
 * with what scripts/build put beside this program (replay-engine/tool/mcp and the SDK).
 */
#include "tt-tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define SERVER  "tt-mcp/server.mjs"
#define SDK     "tt-mcp/node_modules/@modelcontextprotocol/sdk/package.json"

/* The directory of @program that has the server, or the one of the file that it is a link
 * to; NULL. */
static char *find_server(const char *program)
{
    g_autofree char *called = g_find_program_in_path(program);
    g_autofree char *real = g_file_read_link("/proc/self/exe", NULL);
    const char *const programs[] = { called, real };

    for (unsigned i = 0; i < G_N_ELEMENTS(programs); i++) {
        g_autofree char *dir = programs[i] ? g_path_get_dirname(programs[i]) : NULL;
        g_autofree char *sdk = dir ? g_build_filename(dir, SDK, NULL) : NULL;
        g_autofree char *server = dir ? g_build_filename(dir, SERVER, NULL) : NULL;

        if (dir && g_file_test(sdk, G_FILE_TEST_EXISTS) &&
            g_file_test(server, G_FILE_TEST_EXISTS)) {
            return tool_whole_path(server);
        }
    }
    tool_complain("the library for MCP is missing beside this program (tt-mcp): "
                  "scripts/build fetches it with npm; install npm, and run scripts/build "
                  "again");
    return NULL;
}

/* Can it be replayed? Else said why not. */
static bool is_fit(const char *run)
{
    TtManifest m;
    TtLogReader *r = tool_open_run(run, &m);
    bool is = false;

    if (!r) {
        return false;
    }
    is = tool_is_replayable(run, &m, r);
    tt_manifest_cleanup(&m);
    tt_log_reader_free(r);
    return is;
}

static bool has_symbols(const char *path)
{
    ToolSymbols *s = NULL;
    bool has = tool_symbols_load(path, &s) == TOOL_FINE;

    tool_symbols_free(s);
    return has;
}

static bool add(GPtrArray *args, const char *name, char *value)
{
    g_ptr_array_add(args, g_strdup(name));
    g_ptr_array_add(args, value);
    return value;
}

static bool add_options(const ToolArgs *a, uint64_t offset, GPtrArray *args)
{
    const char *symbols = tool_value(a, "--symbols"), *gdb = tool_value(a, "--gdb");

    if (!add(args, "--qemu", tool_find_qemu(a)) ||
        !add(args, "--tt", tool_find_beside(a->program, "tt")) ||
        !add(args, "--gdb", g_strdup(gdb ?: "gdb"))) {
        return false;
    }
    return !symbols || (has_symbols(symbols) &&
                        add(args, "--symbols", tool_whole_path(symbols)) &&
                        add(args, "--offset", g_strdup_printf("%" PRIu64, offset)));
}

static int serve(const ToolArgs *a, uint64_t offset, char *server)
{
    g_autoptr(GPtrArray) args = g_ptr_array_new_with_free_func(g_free);

    g_ptr_array_add(args, g_strdup("node"));
    g_ptr_array_add(args, server);
    if (!add_options(a, offset, args) ||
        !add(args, "--run", tool_whole_path(a->operand[0]))) {
        return TOOL_PROBLEM;
    }
    g_ptr_array_add(args, NULL);
    execvp("node", (char **)args->pdata);
    return errno == ENOENT ?
        tool_complain("node is not installed: tt mcp needs it (apt-get install nodejs)") :
        tool_complain("cannot run node: %s", g_strerror(errno));
}

int tool_mcp(const ToolArgs *a)
{
    uint64_t offset;
    char *server;

    if (!tool_number_option(a, "--offset", 0, &offset)) {
        return TOOL_USAGE;
    }
    if (tool_has(a, "--offset") && !tool_has(a, "--symbols")) {
        return tool_usage(a->command, "--offset needs --symbols: it is added to their "
                          "addresses");
    }
    if (!is_fit(a->operand[0])) {
        return TOOL_PROBLEM;
    }
    server = find_server(a->program);
    return server ? serve(a, offset, server) : TOOL_PROBLEM;
}
