/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target of checkpoint states, full ones too: any bytes; what is accepted
 * lies within them, and a description that is accepted says the same again.
 */
#include "run/tt-fullstate.h"

#include <stdlib.h>
#include <glib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) do { if (!(x)) { abort(); } } while (0)

static void check_description(const char *text, size_t len)
{
    g_autofree char *again = NULL, *third = NULL;
    TtFullDesc d, e;
    TtDiag diag = { 0 };

    if (tt_fulldesc_parse(text, len, &d, &diag) != TT_OK) {
        CHECK(diag.text[0] && !d.disks && !d.name);
        return;
    }
    again = tt_fulldesc_text(&d);
    CHECK(tt_fulldesc_parse(again, strlen(again), &e, NULL) == TT_OK);
    third = tt_fulldesc_text(&e);
    CHECK(!strcmp(again, third));
    tt_fulldesc_cleanup(&d);
    tt_fulldesc_cleanup(&e);
}

static void check_parts(TtBytes full)
{
    TtBytes rest = full;
    TtDiag diag = { 0 };
    TtFullPart part;
    TtFullDesc d;
    unsigned n = 0;
    TtStatus s;

    while ((s = tt_full_next(&rest, &n, &part, &diag)) == TT_OK) {
        CHECK(part.stored.data >= full.data);
        CHECK(part.stored.data + part.stored.len <= full.data + full.len);
        if (part.raw_bytes <= 1 << 20) {
            g_autofree char *out = g_malloc(part.raw_bytes + 1);

            tt_full_unpack(&part, out, &diag);
        }
    }
    CHECK(s == TT_END || diag.text[0]);
    if (tt_fulldesc_find(full, &d, &diag) == TT_OK) {
        tt_fulldesc_cleanup(&d);
    }
}

static void check_blocks(TtBytes all)
{
    TtBytes rest = all;
    TtCpBlock b;

    while (tt_cpstate_next_block(&rest, &b)) {
        CHECK(b.name.data >= all.data);
        CHECK(b.name.data + b.name.len <= all.data + all.len);
        CHECK(rest.data == b.name.data + b.name.len);
    }
}

/* An accepted state says the same when it is written again. */
static void check_again(const TtCpState *s)
{
    TtCpState again;
    uint32_t len;
    g_autofree uint8_t *bytes = tt_cpstate_encode(s, &len);

    CHECK(tt_cpstate_decode((TtBytes) { bytes, len }, &again, NULL) == TT_OK);
    CHECK(again.segment == s->segment && again.index == s->index &&
          again.halted == s->halted && again.n_blocks == s->n_blocks &&
          again.events == s->events && again.cpu.len == s->cpu.len &&
          again.blocks.len == s->blocks.len && again.full.len == s->full.len);
    CHECK(!s->cpu.len || !memcmp(again.cpu.data, s->cpu.data, s->cpu.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TtBytes all = { data, size };
    TtCpState s;

    if (tt_cpstate_decode(all, &s, NULL) == TT_OK) {
        check_again(&s);
        check_blocks(s.blocks);
        if (s.full.len) {
            check_parts(s.full);
        }
    }
    check_blocks(all);
    check_parts(all);
    check_description((const char *)data, size);
    return 0;
}
