/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command line of the `tt` tool, taken apart by the table of commands.
 *
 * Options may stand anywhere, also as --name=value. After `--` stand names only
 * (a run may be called --json), or what is for the program that the command
 * starts.
 */
#include "tt-tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* ---- help ---- */

static void print_usage(FILE *to, const ToolCommand *c, const char *head)
{
    fprintf(to, "%s tt %s", head, c->name);
    for (unsigned i = 0; c->operands[i]; i++) {
        fprintf(to, " %s", c->operands[i]);
    }
    for (const ToolOption *o = c->options; o->name; o++) {
        fprintf(to, " %s%s%s%s%s%s", o->is_needed ? "" : "[", o->name,
                o->value ? " " : "", o->value ? o->value : "",
                o->is_needed ? "" : "]", o->is_many ? "..." : "");
    }
    fprintf(to, "%s\n", c->takes_rest ? " [-- QEMU-OPTIONS...]" : "");
}

static void print_help(const ToolCommand *c)
{
    print_usage(stdout, c, "usage:");
    printf("\n%s\n\n", c->what);
    for (const ToolOption *o = c->options; o->name; o++) {
        g_autofree char *left = g_strconcat(o->name, o->value ? " " : "",
                                            o->value, NULL);

        printf("  %-18s %s\n", left, o->help);
    }
    printf("  %-18s %s\n", "--help", "show this help");
}

/* Built without QEMU it has nothing to do with one. */
static void print_version(void)
{
#ifdef TT_QEMU_VERSION
    printf("tt %s (QEMU %s)\n", TT_TTVM_VERSION, TT_QEMU_VERSION);
#else
    printf("tt %s\n", TT_TTVM_VERSION);
#endif
}

static const char general[] =
    "\nRUN is the directory of a recording. tt COMMAND --help explains a command;\ntt "
    "--version shows the version.\nExit status: 0: success; 1: something is wrong with "
    "the run, or it cannot be read;\n2: wrong usage; 3: a replay was not exact.\n";

static void print_all(FILE *to)
{
    for (const ToolCommand *c = tool_commands; c->name; c++) {
        print_usage(to, c, c == tool_commands ? "usage:" : "      ");
    }
    fputs(general, to);
}

int tool_usage(const ToolCommand *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    tool_say(fmt, ap);
    va_end(ap);
    if (c) {
        print_usage(stderr, c, "usage:");
    } else {
        print_all(stderr);
    }
    return TOOL_USAGE;
}

/* ---- taking apart ---- */

static const ToolCommand *find_command(const char *name)
{
    for (const ToolCommand *c = tool_commands; c->name; c++) {
        if (!strcmp(c->name, name)) {
            return c;
        }
    }
    return NULL;
}

/* The option that @arg names, alone or with "=value". */
static const ToolOption *find_option(const ToolCommand *c, const char *arg,
                                     const char **value)
{
    for (const ToolOption *o = c->options; o->name; o++) {
        size_t n = strlen(o->name);

        if (!strncmp(o->name, arg, n) && (!arg[n] || arg[n] == '=')) {
            *value = arg[n] ? arg + n + 1 : NULL;
            return o;
        }
        if (n == 2 && !strncmp(o->name, arg, n) && o->value) {  /* -j4 */
            *value = arg + n;
            return o;
        }
    }
    return NULL;
}

static unsigned count_operands(const ToolArgs *a)
{
    unsigned n = 0;

    while (a->command->operands[n] && a->operand[n]) {
        n++;
    }
    return n;
}

/* An expression may begin with a '-', and is taken for an option then. */
static int unknown_option(const ToolArgs *a, const char *arg)
{
    const ToolCommand *c = a->command;
    unsigned last = g_strv_length((char **)c->operands);
    const char *next = c->operands[count_operands(a)];

    if (g_ascii_isdigit(arg[1]) && !g_strcmp0(next, "POS")) {
        return tool_usage(c, "POS takes " TOOL_POSITION_IS ", not '%s'", arg);
    }
    if (arg[1] == '-' || !last || a->operand[last - 1] || c->takes_rest) {
        return tool_usage(c, "tt %s has no option %s", c->name, arg);
    }
    return tool_usage(c, "tt %s has no option %s: write -- before a %s that begins with '-'",
                      c->name, arg, next);
}

/* One option, and its value, which may be the next argument. */
static int take_option(ToolArgs *a, char ***args)
{
    const char *value = NULL;
    const ToolOption *o = find_option(a->command, **args, &value);

    if (!o) {
        return unknown_option(a, **args);
    }
    if (!o->value && value) {
        return tool_usage(a->command, "%s takes no value", o->name);
    }
    if (o->value && !value) {
        value = *++*args;
        if (!value) {
            return tool_usage(a->command, "%s is missing after %s", o->value,
                              o->name);
        }
    }
    if (!o->is_many && tool_has(a, o->name)) {
        return tool_usage(a->command, "%s can be given only once", o->name);
    }
    g_ptr_array_add(a->given, (void *)o->name);
    g_ptr_array_add(a->given, (void *)value);
    return TOOL_FINE;
}

static int take_operand(ToolArgs *a, const char *arg)
{
    unsigned i = count_operands(a);

    if (!a->command->operands[i]) {
        return tool_usage(a->command, "unexpected argument: %s", arg);
    }
    if (!*arg) {
        return tool_usage(a->command, "%s is empty", a->command->operands[i]);
    }
    a->operand[i] = arg;
    return TOOL_FINE;
}

static int take_all(ToolArgs *a, char **args)
{
    bool is_plain = false;      /* after -- */
    int wrong = TOOL_FINE;

    for (; *args && !wrong; args++) {
        if (is_plain || **args != '-' || !(*args)[1]) {
            wrong = take_operand(a, *args);
        } else if (!strcmp(*args, "--") && a->command->takes_rest) {
            a->rest = args + 1;
            break;
        } else if (!strcmp(*args, "--")) {
            is_plain = true;
        } else {
            wrong = take_option(a, &args);
        }
    }
    for (unsigned i = 0; !wrong && a->command->operands[i]; i++) {
        if (!a->operand[i] && *a->command->operands[i] != '[') {
            wrong = tool_usage(a->command, "%s is missing",
                               a->command->operands[i]);
        }
    }
    return wrong;
}

/* Somewhere before --, and not as a value: values of ours begin with no dash. */
static bool wants_help(char **args)
{
    for (; *args && strcmp(*args, "--"); args++) {
        if (!strcmp(*args, "--help") || !strcmp(*args, "-h")) {
            return true;
        }
    }
    return false;
}

int tool_args_parse(ToolArgs *a, const char *program, char **argv,
                    bool *is_over)
{
    const char *name = argv[0];
    int wrong;

    *is_over = true;
    *a = (ToolArgs) { .program = program, .given = g_ptr_array_new() };
    if (!name) {
        return tool_usage(NULL, "no command given");
    }
    if (!strcmp(name, "help") || !strcmp(name, "--help") ||
        !strcmp(name, "-h")) {
        a->command = argv[1] ? find_command(argv[1]) : NULL;
        if (argv[1] && !a->command) {
            return tool_usage(NULL, "unknown command: %s", argv[1]);
        }
        if (a->command) {
            print_help(a->command);
        } else {
            print_all(stdout);
        }
        return TOOL_FINE;
    }
    if (!strcmp(name, "--version")) {
        print_version();
        return TOOL_FINE;
    }
    a->command = find_command(name);
    if (!a->command) {
        return tool_usage(NULL, "unknown command: %s", name);
    }
    if (wants_help(argv + 1)) {
        print_help(a->command);
        return TOOL_FINE;
    }
    wrong = take_all(a, argv + 1);
    *is_over = wrong != TOOL_FINE;
    return wrong;
}

void tool_args_cleanup(ToolArgs *a)
{
    g_ptr_array_free(a->given, true);
}

/* ---- asking ---- */

const char *tool_next_value(const ToolArgs *a, const char *option, unsigned *n)
{
    while (*n < a->given->len) {
        const char *name = a->given->pdata[*n];
        const char *value = a->given->pdata[*n + 1];

        *n += 2;
        if (!strcmp(name, option)) {
            return value;
        }
    }
    return NULL;
}

const char *tool_value(const ToolArgs *a, const char *option)
{
    unsigned n = 0;

    return tool_next_value(a, option, &n);
}

bool tool_has(const ToolArgs *a, const char *option)
{
    for (unsigned i = 0; i < a->given->len; i += 2) {
        if (!strcmp(a->given->pdata[i], option)) {
            return true;
        }
    }
    return false;
}

/* Digits of a number that has more than 64 bits. */
static bool is_too_large(const char *text)
{
    bool is_hex = g_str_has_prefix(text, "0x");
    const char *digits = is_hex ? text + 2 : text;

    return *digits &&
        !digits[strspn(digits, is_hex ? "0123456789abcdefABCDEF" : "0123456789")];
}

bool tool_take_number(const ToolArgs *a, const char *what, const char *kind,
                      const char *text, uint64_t *n)
{
    if (tool_parse_number(text, n)) {
        return true;
    }
    if (is_too_large(text)) {
        tool_usage(a->command, "%s is too large: %.40s is more than %" PRIu64, what, text,
                   UINT64_MAX);
    } else {
        tool_usage(a->command, "%s takes %s, not '%s'", what, kind, text);
    }
    return false;
}

bool tool_number_option(const ToolArgs *a, const char *option,
                        uint64_t fallback, uint64_t *n)
{
    const char *text = tool_value(a, option);

    *n = fallback;
    return !text || tool_take_number(a, option, "a number", text, n);
}
