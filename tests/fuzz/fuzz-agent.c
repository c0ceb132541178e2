/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target of agent expressions: any bytes end, with a value or a status,
 * within the bytes given, and mean the same twice.
 */
#include "debug/tt-agent.h"

#include <stdlib.h>
#include <glib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) do { if (!(x)) { abort(); } } while (0)

static bool read_reg(void *opaque, unsigned number, uint64_t *value)
{
    *value = number * 0x9e3779b97f4a7c15u;
    return number < 50;
}

static bool read_mem(void *opaque, uint64_t addr, uint8_t *bytes, unsigned len)
{
    CHECK(len == 1 || len == 2 || len == 4 || len == 8);
    memset(bytes, (int)(addr >> 3), len);
    return addr % 5 != 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const TtAgentSource source = { NULL, read_reg, read_mem };
    g_autofree uint8_t *exact = g_memdup2(data, size);
    TtDiag diag = { 0 };
    uint64_t value = 1, again = 2;
    TtStatus s = tt_agent_eval(exact, size, &source, &value, &diag);

    CHECK(s == TT_OK || s == TT_ERR_FORMAT || s == TT_ERR_LIMIT ||
          s == TT_ERR_INVALID);
    CHECK(s == TT_OK || (value == 0 && diag.status == s && diag.text[0]));
    CHECK(tt_agent_eval(exact, size, &source, &again, NULL) == s);
    CHECK(value == again);
    return 0;
}
