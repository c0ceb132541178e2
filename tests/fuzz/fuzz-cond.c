/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target of conditions: any text ends, with a condition or a complaint without
 * control characters; a condition has the same value twice, and reads only what has
 * the size of a number.
 */
#include "debug/tt-cond.h"
#include "debug/tt-edge.h"

#include <stdlib.h>
#include <glib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) do { if (!(x)) { abort(); } } while (0)

static bool read_reg(void *opaque, TtCondReg reg, uint64_t *value)
{
    CHECK(reg < TT_COND_N_REGS);
    *value = reg * 0x9e3779b97f4a7c15u;
    return reg != TT_COND_CR2;
}

static bool read_mem(void *opaque, uint64_t addr, uint8_t *bytes, unsigned len)
{
    CHECK(len == 1 || len == 2 || len == 4 || len == 8);
    memset(bytes, (int)(addr >> 3), len);
    return addr % 5 != 0;
}

static char *name(void *opaque, const char *chain, size_t *used, bool is_address,
                  TtDiag *why)
{
    CHECK(*used && *used <= strlen(chain));
    tt_fail(why, TT_ERR_INVALID, "there is no symbol '%.*s'", (int)MIN(*used, 60), chain);
    return *used % 3 ? g_strdup(is_address ? "0x1000UL" : "(*(u32 *)0x1000)") : NULL;
}

static void evaluate(const TtCond *c)
{
    const TtCondSource source = { NULL, read_reg, read_mem };
    uint64_t value = 1, again = 2;
    TtStatus s = tt_cond_eval(c, &source, &value);
    TtDiag diag = { 0 };
    size_t n;

    CHECK(s == TT_OK || (s == TT_ERR_INVALID && value == 0));
    CHECK(tt_cond_eval(c, &source, &again) == s && value == again);
    tt_cond_places(c, &n);
    CHECK((n > 0) == (tt_cond_kind(c) == TT_COND_AT_PLACES));
    CHECK(tt_cond_check(c, n % 8, 0, 1u << 30, &diag) == TT_OK ||
          diag.text[0]);
    tt_edge_rule(c, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup(size ? (const char *)data : "", size);
    g_autofree char *plain = NULL;
    TtDiag diag = { 0 };
    TtCond *c;
    TtStatus s = tt_cond_resolve(text, name, NULL, &plain, &diag);

    CHECK((s == TT_OK) == (plain != NULL));
    if (s == TT_OK) {
        s = tt_cond_parse(plain, &c, &diag);
        CHECK((s == TT_OK) == (c != NULL));
        if (c) {
            evaluate(c);
        }
        tt_cond_free(c);
    }
    CHECK(s == TT_OK || s == TT_ERR_FORMAT || s == TT_ERR_LIMIT || s == TT_ERR_INVALID);
    CHECK(s == TT_OK || (diag.status == s && diag.text[0] && !tt_has_control(diag.text)));
    return 0;
}
