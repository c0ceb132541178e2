/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What our packets share: their registration, answers, numbers in hex.
 */
#include "qemu/osdep.h"
#include "tt-gdb-packets-int.h"
#include "qapi/error.h"
#include "qemu/cutils.h"
#include "exec/gdbstub.h"
#include "gdbstub/commands.h"

void tt_gdb_put_error(Error *err)
{
    g_autofree char *text = g_strdup_printf("E.%s", error_get_pretty(err));

    gdb_put_packet(text);
    error_free(err);
}

void tt_gdb_add_queries(const GdbCmdParseEntry *queries, size_t n)
{
    g_autoptr(GPtrArray) table = g_ptr_array_new();

    for (size_t i = 0; i < n; i++) {
        g_ptr_array_add(table, (gpointer)&queries[i]);
    }
    gdb_extend_query_table(table);
}

unsigned tt_gdb_parse_list(const char *text, uint64_t *values, unsigned most)
{
    for (unsigned n = 0; n < most; text++) {
        if (qemu_strtou64(text, &text, 16, &values[n++])) {
            return 0;
        }
        if (*text != ',') {
            return *text ? 0 : n;
        }
    }
    return 0;
}
