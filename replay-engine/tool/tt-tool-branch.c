/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt branch: starts QEMU as it was started for the recording, but from a full
 * checkpoint of it (-tt branch), and as a recording of its own.
 *
 * The recorded options make the machine, so all of them are kept, but those
 * that have nothing to do with it and would get in the way of the VM that was
 * recorded, should that still run: monitors, gdb, -daemonize, -pidfile. What
 * prints into a file goes on at its end.
 *
 * tt term RUN is the same, with undo and the first serial port on this terminal.
 */
#include "tt-tool-qmp.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

typedef struct Without {
    char *name;                 /* of an option, one dash */
    bool is_used;
} Without;

typedef struct Branch {
    const ToolArgs *given;
    const char *run, *at, *to;
    char *stores;               /* directory of the frame stores; NULL: there are none */
    GArray *without;            /* of Without */
    char **extra;               /* NULL-terminated */
    bool is_print;
    bool is_term;               /* tt term: undo, and this terminal */
    bool has_term;              /* a serial port is on it */
    bool has_no_port;           /* that QEMU would make by itself */
    bool has_undo;
    GPtrArray *args;            /* the new command */
    unsigned n_files;
} Branch;

/* ---- what is given ---- */

static int parse(Branch *b, const ToolArgs *a)
{
    const char *name;
    unsigned n = 0;

    b->run = a->operand[0];
    b->at = tool_value(a, "--at");
    b->to = tool_value(a, "--to");
    b->is_print = tool_has(a, "--print");
    b->is_term = !strcmp(a->command->name, "term");
    b->extra = a->rest;
    while ((name = tool_next_value(a, "--without", &n))) {
        Without w = { g_strconcat("-", name + strspn(name, "-"), NULL) };

        g_array_append_val(b->without, w);
    }
    if (b->to && !*b->to) {
        return tool_usage(a->command, "--to is empty: give the name of the new "
                                      "directory");
    }
    if (!b->at || !*b->at) {
        return tool_usage(a->command, "--at is missing: give a full checkpoint of the "
                                      "run, by number or @NAME");
    }
    if (!strcmp(b->at, "@")) {
        return tool_usage(a->command, "--at @ needs the name of a checkpoint or "
                          "of a mark after the @");
    }
    return TOOL_FINE;
}

/* ---- the recorded options ---- */

static bool is_one_of(const char *name, const char *const *list)
{
    return g_strv_contains(list, name);
}

/* Those of QEMU 10.0 that take no value. */
static bool takes_value(const char *name)
{
    static const char *const flags[] = {
        "-help", "-h", "-version", "-mem-prealloc", "-snapshot", "-usb",
        "-nographic", "-full-screen", "-win2k-hack", "-no-fd-bootchk",
        "-preconfig", "-S", "-s", "-enable-kvm", "-xen-attach",
        "-xen-domid-restrict", "-no-reboot", "-no-shutdown", "-daemonize",
        "-only-migratable", "-nodefaults", "-semihosting", "-old-param",
        "-no-user-config", "-enable-sync-profile", "-perfmap", "-jitdump", NULL,
    };

    return *name == '-' && !is_one_of(name, flags);
}

static bool is_dropped(const Branch *b, const char *name)
{
    static const char *const dropped[] = {
        "-tt", "-S", "-s", "-gdb", "-qmp", "-qmp-pretty", "-monitor",
        "-pidfile", "-daemonize", NULL,
    };
    bool is_unwanted = false;

    for (unsigned i = 0; i < b->without->len; i++) {
        Without *w = &g_array_index(b->without, Without, i);

        if (!strcmp(name, w->name)) {
            w->is_used = is_unwanted = true;
        }
    }
    return is_unwanted || is_one_of(name, dropped);
}

static void add(Branch *b, const char *arg)
{
    g_ptr_array_add(b->args, g_strdup(arg));
}

/* A console that goes to a file keeps what is there. */
static void add_file_console(Branch *b, const char *name, const char *path)
{
    g_autofree char *chardev = g_strdup_printf("file,id=tt-file%u,path=%s,"
                                               "append=on", b->n_files, path);
    g_autofree char *value = g_strdup_printf("chardev:tt-file%u", b->n_files++);

    add(b, "-chardev");
    add(b, chardev);
    add(b, name);
    add(b, value);
}

/* tt term: the first serial port is on the terminal that it was called in, and no other
 * one is. NULL: as it was recorded. */
static const char *port_of(Branch *b, const char *value)
{
    if (!b->is_term || !strcmp(value, "none") ||
        (b->has_term && strcmp(value, "stdio") && strcmp(value, "mon:stdio"))) {
        return NULL;
    }
    if (b->has_term) {
        return "null";
    }
    b->has_term = true;
    return "mon:stdio";
}

static void add_option(Branch *b, const char *name, const char *value)
{
    const char *port = strcmp(name, "-serial") ? NULL : port_of(b, value);

    if (port) {
        add(b, name);
        add(b, port);
        return;
    }
    if ((!strcmp(name, "-serial") || !strcmp(name, "-parallel") ||
         !strcmp(name, "-debugcon")) && g_str_has_prefix(value, "file:")) {
        g_autofree char *path = tool_escaped(value + 5);

        add_file_console(b, name, path);
        return;
    }
    add(b, name);
    if (!strcmp(name, "-chardev") && g_str_has_prefix(value, "file,") &&
        !strstr(value, "append=")) {
        g_autofree char *more = g_strconcat(value, ",append=on", NULL);

        add(b, more);
    } else {
        add(b, value);
    }
}

/* Does somebody serve the socket at @path? */
static bool is_served(const char *path)
{
    int fd = tool_unix_connect(path);

    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0;
}

/* QEMU would take the socket of a VM that runs away from it. */
static int check_socket(const char *name, const char *value, const char *dir)
{
    const char *at = strstr(value, "unix:");
    g_autofree char *path = NULL, *full = NULL;

    if (!strstr(value, "server")) {
        return 0;
    }
    at = at ? at + 5 : strstr(value, "path=") ? strstr(value, "path=") + 5 :
        NULL;
    if (!at) {
        return 0;
    }
    path = g_strndup(at, strcspn(at, ","));
    full = g_path_is_absolute(path) ? g_strdup(path) :
        g_build_filename(dir, path, NULL);
    return is_served(full) ?
        tool_complain("the recorded option %s '%s' names a socket that is in "
                "use, perhaps by the recorded VM: end that VM, or use --without "
                "%s and give another option after --", name, value, name)
        : 0;
}

/* What the recorded -tt says besides where, and is kept. */
static bool is_kept(const Branch *b, const char *option)
{
    static const char *const always[] = {
        "max-size=", "on-error=", "undo=", "undo-pause=", "frames=", "payload=",
        "checkpoint-interval=", "full=", "sync=", "disk-reads=",
    };
    static const char *const flight[] = { "last=", "save-on-panic=", "panic-pattern=" };

    for (size_t i = 0; i < G_N_ELEMENTS(always); i++) {
        if (g_str_has_prefix(option, always[i])) {
            return true;
        }
    }
    for (size_t i = 0; i < G_N_ELEMENTS(flight) && !b->is_term; i++) {
        if (g_str_has_prefix(option, flight[i])) {
            return true;
        }
    }
    return false;
}

static void keep_limits(Branch *b, GString *tt, const char *recorded)
{
    g_auto(GStrv) parts = g_strsplit(recorded, ",", -1);

    for (char **p = parts; *p; p++) {
        while (p[1] && !*p[1] && p[2]) {        /* a comma that is doubled */
            char *whole = g_strconcat(*p, ",,", p[2], NULL);

            g_free(*p);
            g_free(p[1]);
            g_free(p[2]);
            *p = whole;
            memmove(p + 1, p + 3, (g_strv_length(p + 3) + 1) * sizeof(*p));
        }
        if (g_str_has_prefix(*p, "frames=") && b->stores) {
            g_autofree char *stores = tool_escaped(b->stores);

            g_string_append_printf(tt, ",frames=%s", stores);
        } else if (is_kept(b, *p)) {
            g_string_append_printf(tt, ",%s", *p);
            b->has_undo |= !strcmp(*p, "undo=console");
        }
    }
}

static int translate(Branch *b, char **recorded, const char *dir, GString *tt)
{
    for (char **r = recorded + 1; *r; r++) {
        const char *name = g_str_has_prefix(*r, "--") ? *r + 1 : *r;
        const char *value = takes_value(name) ? *++r : NULL;
        int result;

        if (takes_value(name) && !value) {
            break;
        }
        if (!strcmp(name, "-nodefaults") ||
            (!strcmp(name, "-serial") && !is_dropped(b, name))) {
            b->has_no_port = true;
        }
        if (!strcmp(name, "-tt")) {
            keep_limits(b, tt, value);
        }
        if (is_dropped(b, name)) {
            continue;
        }
        if (!value) {
            add(b, name);
            continue;
        }
        if (b->is_term && !strcmp(name, "-chardev") && g_str_has_prefix(value, "stdio,")) {
            return tool_complain("the recorded option -chardev '%s' takes this terminal, "
                                 "where the first serial port is to be: use tt branch, or "
                                 "leave it out with --without, as all that names it", value);
        }
        result = check_socket(name, value, dir);
        if (result) {
            return result;
        }
        add_option(b, name, value);
    }
    return 0;
}

/* ---- the new command ---- */

static char *fresh_directory(void)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_local();
    g_autofree char *stamp = g_date_time_format(now, "tt-run-%Y%m%d-%H%M%S");

    for (unsigned n = 0;; n++) {
        g_autofree char *name = n ? g_strdup_printf("%s-%u", stamp, n)
                                  : g_strdup(stamp);

        if (!g_file_test(name, G_FILE_TEST_EXISTS)) {
            return g_strdup(name);
        }
    }
}

/* NULL: said why. */
static GString *tt_value(const Branch *b)
{
    g_autofree char *to = b->to ? g_strdup(b->to) : fresh_directory();
    g_autofree char *run_value = tool_option_value(b->run);
    g_autofree char *to_value = run_value ? tool_option_value(to) : NULL;
    g_autofree char *at_value = tool_escaped(b->at);
    GString *tt;

    if (!to_value) {
        return NULL;
    }
    tt = g_string_new(NULL);
    g_string_printf(tt, "branch,dir=%s,at=%s,to=%s", run_value, at_value,
                    to_value);
    return tt;
}

/* For a shell; a run may come from anybody, so nothing of it drives the terminal. */
static char *quote(const char *text)
{
    GString *s = g_string_new("$'");
    bool is_odd = false;
    unsigned n;

    for (const char *p = text; *p; p += MAX(n, 1)) {
        n = tt_control_bytes(p);
        for (unsigned i = 0; i < n; i++) {
            g_string_append_printf(s, "\\%03o", (uint8_t)p[i]);
        }
        if (!n) {
            g_string_append_printf(s, "%s%c", *p == '\'' || *p == '\\' ? "\\" : "",
                                   *p);
        }
        is_odd |= n > 0;
    }
    g_string_append_c(s, '\'');
    if (!is_odd) {
        g_string_free(s, true);
        return g_shell_quote(text);
    }
    return g_string_free(s, false);
}

void tool_print_command(char **args)
{
    for (char **a = args; *a; a++) {
        g_autofree char *arg = quote(*a);

        printf("%s%s", a > args ? " " : "", arg);
    }
    printf("\n");
    fflush(stdout);
}

static int run(Branch *b, const char *dir)
{
    g_autofree char *quoted = quote(dir);

    printf("cd %s && ", quoted);
    g_ptr_array_add(b->args, NULL);
    tool_print_command((char **)b->args->pdata);
    if (b->is_print) {
        return TOOL_FINE;
    }
    if (chdir(dir)) {
        return tool_complain("cannot change to '%s', where the recording was "
                       "started: %s; create it again, since the options may name "
                       "files there",
                       dir, g_strerror(errno));
    }
    execv(b->args->pdata[0], (char **)b->args->pdata);
    return tool_complain("cannot run '%s': %s", (char *)b->args->pdata[0],
                   g_strerror(errno));
}

static int end_term(Branch *b, GString *tt)
{
    if (!b->is_term) {
        return TOOL_FINE;
    }
    if (!b->has_term && b->has_no_port) {
        return tool_complain("the recorded VM has no serial port that could be in this "
                             "terminal: use tt branch");
    }
    if (!b->has_term) {
        add(b, "-serial");
        add(b, "mon:stdio");
    }
    if (!b->has_undo) {
        g_string_append(tt, ",undo=console");
    }
    return TOOL_FINE;
}

static int make_command(Branch *b, const TtManifest *m)
{
    g_autoptr(GString) tt = tt_value(b);
    g_autofree char *qemu = NULL;
    g_auto(GStrv) recorded = NULL;
    int result;

    if (!tt) {
        return TOOL_PROBLEM;
    }
    if (!*m->host && !*m->directory && !*m->command_line) {
        return tool_complain("the run '%s' was packed without --with-host, so no branch can "
                             "start from it: ask for a pack made with it", b->run);
    }
    if (!*m->directory ||
        !g_shell_parse_argv(m->command_line, NULL, &recorded, NULL)) {
        return tool_complain("the run does not contain the arguments that it was "
                       "recorded with (it is from an older TTVM, or an argument "
                       "is not UTF-8): start QEMU yourself with the same options "
                       "and -tt %s", tt->str);
    }
    qemu = tool_find_qemu(b->given);
    if (!qemu || (b->to && !tool_can_record_into(b->to)) ||
        !tool_has_full(b->run, m, b->at)) {
        return TOOL_PROBLEM;
    }
    add(b, qemu);
    result = tool_choose_frames(b->given, b->run, m, &b->stores) ?:
        translate(b, recorded, m->directory, tt);
    if (result) {
        return result;
    }
    for (unsigned i = 0; i < b->without->len; i++) {
        const Without *w = &g_array_index(b->without, Without, i);

        if (!w->is_used) {
            tool_complain("--without: the recording has no option %s",
                          w->name);
            return TOOL_USAGE;
        }
    }
    result = end_term(b, tt);
    if (result) {
        return result;
    }
    add(b, "-tt");
    add(b, tt->str);
    for (char **e = b->extra; e && *e; e++) {
        add(b, *e);
    }
    return run(b, m->directory);
}

static void without_clear(void *w)
{
    g_free(((Without *)w)->name);
}

int tool_branch(const ToolArgs *a)
{
    Branch b = {
        .given = a,
        .without = g_array_new(false, false, sizeof(Without)),
        .args = g_ptr_array_new_with_free_func(g_free),
    };
    g_autofree char *path = NULL;
    TtManifest m;
    TtDiag diag;
    int result = parse(&b, a);

    g_array_set_clear_func(b.without, without_clear);
    if (result == TOOL_FINE) {
        path = g_build_filename(b.run, "manifest", NULL);
        if (tt_manifest_load(path, &m, &diag) != TT_OK) {
            result = tool_problem(&diag);
        } else {
            result = make_command(&b, &m);
            tt_manifest_cleanup(&m);
        }
    }
    g_free(b.stores);
    g_array_free(b.without, true);
    g_ptr_array_free(b.args, true);
    return result;
}
