/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "cpueq64" as a program of this host: what the real CPU does with the same
 * operands. Arguments: as on the guest's command line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cpueq.h"

static const char *command_line = "";

static void put_str(const char *s)
{
    fputs(s, stdout);
}

static void put_hex(eq_u64 v)
{
    printf("%016lx", v);
}

static eq_u64 option(const char *name, eq_u64 def)
{
    size_t n = strlen(name);

    for (const char *p = strstr(command_line, name); p; p = strstr(p + 1, name)) {
        if ((p == command_line || p[-1] == ' ') && p[n] == '=') {
            return strtoul(p + n + 1, NULL, 10);
        }
    }
    return def;
}

#include "cpueq-main.h"

int main(int argc, char **argv)
{
    if (argc > 1) {
        command_line = argv[1];
    }
    eq_main();
    put_str("end\n");
    return 0;
}
