/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt group checkpoint: a running VM is asked for one of the whole group.
 */
#include "tt-tool-group.h"
#include "tt-tool-qmp.h"

#include <inttypes.h>
#include <stdio.h>

/* 0: it is not there. */
static uint64_t number_in(const char *answer, const char *key)
{
    const char *at = strstr(answer, key);

    return at ? g_ascii_strtoull(at + strlen(key), NULL, 10) : 0;
}

/* Does nobody hear of it? What a filter-tt sends, somebody may get; nobody knows. A QEMU that
 * cannot be asked has somebody. */
static bool is_alone(ToolQmp *q)
{
    g_autofree char *links = NULL, *objects = NULL, *why = NULL;

    return tool_qmp_do(q, "query-tt-netdevs", NULL, 60, &links, &why) &&
        tool_qmp_do(q, "qom-list", "{\"path\": \"/objects\"}", 60, &objects, &why) &&
        !strstr(links, "\"state\": \"connected\"") && !strstr(objects, "<filter-tt>");
}

int group_checkpoint(const ToolArgs *a)
{
    ToolQmp *q = tool_qmp_open(a->operand[1]);
    g_autofree char *answer = NULL, *why = NULL;
    int result = TOOL_PROBLEM;

    if (q && !tool_qmp_do(q, "tt-checkpoint-add", "{\"group\": true}", 300, &answer, &why)) {
        tool_complain("the VM at %s made no checkpoint: %s", a->operand[1], why);
    } else if (q) {
        printf("the VM at %s has its checkpoint @group-%" PRIu64 " at position %" PRIu64 ", "
               "and %s\n", a->operand[1], number_in(answer, "\"group\": "),
               number_in(answer, "\"position\": "), is_alone(q) ? "nobody is connected to "
               "it: a VM that connects later hears of it then" : "tells the others");
        result = TOOL_FINE;
    }
    tool_qmp_free(q);
    return result;
}
