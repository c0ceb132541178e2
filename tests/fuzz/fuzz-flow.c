/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target of instructions: whatever the bytes are, what is said of them stays in its
 * bounds, is the same twice, and names no register that may_write leaves out.
 */
#include "debug/tt-flow.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) do { if (!(x)) { abort(); } } while (0)

static void check_place(const TtFlowPlace *p)
{
    CHECK(p->kind <= TT_FLOW_AT_CONST);
    CHECK(p->kind != TT_FLOW_AT_REG || p->reg < TT_FLOW_REGS);
    CHECK(p->kind != TT_FLOW_AT_REG ||
          p->first + p->len <= (p->reg < TT_FLOW_GENERAL ? 8 : 32));
    CHECK(p->len <= 8 * 0x10000);
}

static void check_one(TtFlowDecoder *d, const uint8_t *bytes, size_t n, unsigned bits,
                      uint8_t seed)
{
    TtFlowRegs regs = { .bits = bits, .flags = seed * 0x11, .pc = seed };
    TtFlow f, again;
    uint32_t mask;

    for (unsigned i = 0; i < TT_FLOW_GENERAL; i++) {
        regs.general[i] = (seed + i) * 0x9e3779b97f4a7c15u;
    }
    if (tt_flow_decode(d, bytes, n, &regs, &f) != TT_OK) {
        return;
    }
    CHECK(f.len && f.len <= TT_FLOW_BYTES_MAX && f.len <= n);
    CHECK(memchr(f.text, 0, sizeof(f.text)));
    mask = tt_flow_may_write(d, bytes, n, bits);
    for (unsigned i = 0; i < f.n_writes; i++) {
        const TtFlowWrite *w = &f.writes[i];

        check_place(&w->to);
        check_place(&w->from);
        CHECK(w->to.len && w->to.kind != TT_FLOW_AT_CONST);
        CHECK(w->how != TT_FLOW_COPY || w->to.len >= w->from.len);
        CHECK(w->how != TT_FLOW_COPY || w->from.len);
        CHECK(w->to.kind == TT_FLOW_AT_MEM || mask & 1u << w->to.reg);
    }
    for (unsigned i = 0; i < f.n_reads; i++) {
        check_place(&f.reads[i]);
    }
    CHECK(tt_flow_decode(d, bytes, n, &regs, &again) == TT_OK &&
          !memcmp(&f, &again, sizeof(f)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static TtFlowDecoder *d;

    d = d ?: tt_flow_new();
    if (d && size > 1) {
        check_one(d, data + 1, size - 1, 64, data[0]);
        check_one(d, data + 1, size - 1, 32, data[0]);
        check_one(d, data + 1, size - 1, 16, data[0]);
    }
    return 0;
}
