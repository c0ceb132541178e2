/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an instruction writes, and from what: a table of instructions.
 */
#include "debug/tt-flow.h"

#include <glib.h>
#include <inttypes.h>
#include <string.h>

static TtFlowDecoder *decoder;

typedef struct Case {
    unsigned bits;
    const char *bytes, *says;
} Case;

static const char *const hows[] = {
    "", "computed ", "constant ", "port ", "tsc ", "random ", "cpuid ", "msr ", "unknown ",
};

static void add_place(GString *s, const TtFlowPlace *p)
{
    char buf[48];

    if (p->kind == TT_FLOW_AT_CONST) {
        g_string_append_printf(s, "%" PRIx64, p->addr);
    } else if (p->kind == TT_FLOW_AT_MEM) {
        g_string_append_printf(s, "[%" PRIx64 ":%u]", p->addr, p->len);
    } else {
        g_string_append(s, tt_flow_place_text(p, buf, sizeof(buf)));
    }
}

/* "TO=HOW FROM; ... < READ, READ" */
static char *describe(const TtFlow *f)
{
    GString *s = g_string_new(NULL);

    for (unsigned i = 0; i < f->n_writes; i++) {
        const TtFlowWrite *w = &f->writes[i];

        g_string_append(s, i ? "; " : "");
        add_place(s, &w->to);
        g_string_append_printf(s, "=%s", hows[w->how]);
        if (w->how == TT_FLOW_COPY || w->how == TT_FLOW_CONSTANT || w->how == TT_FLOW_PORT) {
            add_place(s, &w->from);
        }
    }
    for (unsigned i = 0; i < f->n_reads; i++) {
        g_string_append(s, i ? "," : " <");
        g_string_append(s, " ");
        add_place(s, &f->reads[i]);
    }
    return g_string_free(s, false);
}

static size_t parse_hex(const char *text, uint8_t *out)
{
    size_t n = 0;

    for (; *text && n < TT_FLOW_BYTES_MAX; text += 2 + (text[2] == ' ')) {
        out[n++] = g_ascii_xdigit_value(text[0]) << 4 | g_ascii_xdigit_value(text[1]);
    }
    return n;
}

/* rax 1000, rcx 1001 ... r15 100f, at 4000; of flags only ZF. */
static TtFlowRegs some_regs(unsigned bits)
{
    TtFlowRegs r = { .bits = bits, .pc = 0x4000, .flags = 0x42 };

    for (unsigned i = 0; i < TT_FLOW_GENERAL; i++) {
        r.general[i] = 0x1000 + i;
    }
    r.bases[4] = 0x700000;
    return r;
}

static void check_all(const Case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        TtFlowRegs regs = some_regs(cases[i].bits);
        uint8_t bytes[TT_FLOW_BYTES_MAX];
        size_t len = parse_hex(cases[i].bytes, bytes);
        g_autofree char *says = NULL;
        TtFlow f;

        g_assert_cmpint(tt_flow_decode(decoder, bytes, len, &regs, &f), ==, TT_OK);
        g_assert_cmpuint(f.len, ==, len);
        says = describe(&f);
        g_test_message("%s: %s", f.text, says);
        g_assert_cmpstr(says, ==, cases[i].says);
        for (unsigned k = 0; k < f.n_writes; k++) {
            const TtFlowPlace *to = &f.writes[k].to;

            g_assert_true(to->kind == TT_FLOW_AT_MEM ||
                          tt_flow_may_write(decoder, bytes, len, cases[i].bits) &
                          1u << to->reg);
        }
    }
}

static void test_moves(void)
{
    static const Case cases[] = {
#include "flow-moves.inc"
    };

    check_all(cases, G_N_ELEMENTS(cases));
}

static void test_others(void)
{
    static const Case cases[] = {
#include "flow-others.inc"
    };

    check_all(cases, G_N_ELEMENTS(cases));
}

static void test_nothing_is_written(void)
{
    TtFlowRegs regs = some_regs(64);
    TtFlow f;

    regs.general[1] = 0;                    /* rep movsb with count 0 */
    g_assert_cmpint(tt_flow_decode(decoder, (const uint8_t *)"\xf3\xa4", 2, &regs, &f),
                    ==, TT_OK);
    g_assert_cmpuint(f.n_writes, ==, 0);
    /* cmovne %rbx,%rax, not taken */
    g_assert_cmpint(tt_flow_decode(decoder, (const uint8_t *)"\x48\x0f\x45\xc3", 4, &regs,
                                   &f), ==, TT_OK);
    g_assert_cmpuint(f.n_writes, ==, 0);
    g_assert_cmpuint(tt_flow_may_write(decoder, (const uint8_t *)"\x48\x0f\x45\xc3", 4, 64),
                     ==, 1);
    g_assert_cmpint(tt_flow_decode(decoder, (const uint8_t *)"\x48", 1, &regs, &f), ==,
                    TT_ERR_FORMAT);
}

/* Bits before the operand. */
static void test_bit_numbers_are_signed(void)
{
    static const struct { uint64_t number, at; } want[] = {
        { 31, 0x1007 }, { 32, 0x100b }, { 0xffffffff, 0x1003 }, { 0xffffffe0, 0x1003 },
        { 0xffffffdf, 0xfff }, { 0x80000000, 0x1007 - 0x10000000 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(want); i++) {
        TtFlowRegs regs = some_regs(64);
        TtFlow f;

        regs.general[0] = want[i].number;       /* bts %eax,(%rdi) */
        g_assert_cmpint(tt_flow_decode(decoder, (const uint8_t *)"\x0f\xab\x07", 3, &regs,
                                       &f), ==, TT_OK);
        g_assert_cmpuint(f.n_writes, ==, 1);
        g_assert_cmphex(f.writes[0].to.addr, ==, want[i].at);
    }
}

/* As QEMU does it: the count that it leaves is 1 more than a multiple of 65536. */
static void test_long_repetitions(void)
{
    static const uint64_t counts[][2] = {       /* count, and how many it does at once */
        { 1, 1 }, { 0xffff, 0xffff }, { 0x10000, 0x10000 }, { 0x10001, 0x10001 },
        { 0x10002, 1 }, { 0x20000, 0xffff }, { 0x20001, 0x10000 }, { 0x20002, 1 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(counts); i++) {
        TtFlowRegs regs = some_regs(64);
        TtFlow f;

        regs.general[1] = counts[i][0];
        g_assert_cmpint(tt_flow_decode(decoder, (const uint8_t *)"\xf3\xaa", 2, &regs, &f),
                        ==, TT_OK);             /* rep stosb */
        g_assert_cmpuint(f.n_writes, ==, 3);    /* rcx, rdi, memory */
        g_assert_cmpuint(f.writes[2].to.len, ==, counts[i][1]);
    }
}

static void test_places_meet(void)
{
    TtFlowPlace ah = { .reg = 0, .first = 1, .len = 1 }, al = { .reg = 0, .len = 1 };
    TtFlowPlace ax = { .reg = 0, .len = 2 }, m = { TT_FLOW_AT_MEM, .addr = 0x10, .len = 8 };
    TtFlowPlace n = { TT_FLOW_AT_MEM, .addr = 0x17, .len = 1 };
    TtFlowPlace none = { TT_FLOW_AT_CONST, .len = 8 };

    g_assert_false(tt_flow_place_meets(&ah, &al));
    g_assert_true(tt_flow_place_meets(&ah, &ax));
    g_assert_true(tt_flow_place_meets(&m, &n));
    g_assert_true(tt_flow_place_meets(&n, &m));
    n.addr = 0x18;
    g_assert_false(tt_flow_place_meets(&m, &n));
    g_assert_false(tt_flow_place_meets(&none, &none));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    decoder = tt_flow_new();
    g_test_add_func("/tt/flow/places-meet", test_places_meet);
    if (decoder) {
        g_test_add_func("/tt/flow/moves", test_moves);
        g_test_add_func("/tt/flow/others", test_others);
        g_test_add_func("/tt/flow/nothing-is-written", test_nothing_is_written);
        g_test_add_func("/tt/flow/bit-numbers-are-signed", test_bit_numbers_are_signed);
        g_test_add_func("/tt/flow/long-repetitions", test_long_repetitions);
    }
    return g_test_run();
}
