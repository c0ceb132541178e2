/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Agent expressions: those that gdb 13 makes of C conditions have C's value;
 * each opcode by itself; errors end it with a status. */
#include "debug/tt-agent.h"

#include <glib.h>

#define RBP 0x10000u
#define COUNTER 0x215000u
#define TOTAL 0x215008u

/* What the expressions of a guest's functions see. */
typedef struct World {
    uint64_t rax, rip;
    uint64_t at_8, at_16, at_24;    /* locals below RBP */
    uint64_t counter, total;
    uint64_t pointed;               /* what at_8 and at_16 point to */
    unsigned reads;
} World;

static bool read_reg(void *opaque, unsigned number, uint64_t *value)
{
    const World *w = opaque;

    *value = number == 0 ? w->rax : number == 6 ? RBP : w->rip;
    return number == 0 || number == 6 || number == 16;
}

static const uint64_t *find(const World *w, uint64_t addr)
{
    switch (addr) {
    case RBP - 8:
        return &w->at_8;
    case RBP - 16:
        return &w->at_16;
    case RBP - 24:
        return &w->at_24;
    case COUNTER:
        return &w->counter;
    case TOTAL:
        return &w->total;
    case 0x777:
        return &w->pointed;
    }
    return NULL;
}

static bool read_mem(void *opaque, uint64_t addr, uint8_t *bytes, unsigned len)
{
    World *w = opaque;
    const uint64_t *v = find(w, addr);
    uint8_t all[8];

    w->reads++;
    if (!v) {
        return false;
    }
    tt_put_le64(all, *v);
    memcpy(bytes, all, len);
    return true;
}

static size_t from_hex(const char *hex, uint8_t *bytes)
{
    size_t n = strlen(hex) / 2;

    for (size_t i = 0; i < n; i++) {
        bytes[i] = g_ascii_xdigit_value(hex[2 * i]) << 4 |
                   g_ascii_xdigit_value(hex[2 * i + 1]);
    }
    return n;
}

static TtStatus run(const char *hex, World *w, uint64_t *value)
{
    const TtAgentSource source = { w, read_reg, read_mem };
    TtDiag diag = { 0 };
    uint8_t code[TT_AGENT_BYTES_MAX];
    size_t len = from_hex(hex, code);
    g_autofree uint8_t *exact = g_memdup2(code, len);   /* for sanitizers */
    TtStatus s = tt_agent_eval(exact, len, &source, value, &diag);

    if (s != TT_OK) {
        g_assert_cmpint(diag.status, ==, s);
        g_assert_cmpint(diag.text[0], !=, 0);
        g_assert_cmpuint(*value, ==, 0);
    }
    return s;
}

static uint64_t value_of(const char *hex, World w)
{
    uint64_t v = 0;

    g_assert_cmpint(run(hex, &w, &v), ==, TT_OK);
    return v;
}

/* ---- as gdb sends them ---- */

static void test_equal_local(void)
{
    const char *i_is = "26000622100222d81608021a2402faf0802a401327";

    g_assert_cmpuint(value_of(i_is, (World) { .at_24 = 50000000 }), ==, 1);
    g_assert_cmpuint(value_of(i_is, (World) { .at_24 = 49999999 }), ==, 0);
}

/* counter > 5 && n == 7 */
static void test_and(void)
{
    const char *hex = "24002150001a22052a402b1520001221002e26000622100222e8"
        "1608021a22072a401320002921002e2201210030220027";
    World w = { .counter = 5, .at_8 = 7 };
    uint64_t v;

    g_assert_cmpint(run(hex, &w, &v), ==, TT_OK);
    g_assert_cmpuint(v, ==, 0);
    g_assert_cmpuint(w.reads, ==, 1);       /* the second is not looked at */
    g_assert_cmpuint(value_of(hex, (World) { .counter = 6, .at_8 = 7 }), ==,
                     1);
    g_assert_cmpuint(value_of(hex, (World) { .counter = 6, .at_8 = 8 }), ==,
                     0);
}

/* from[0] == 115, a char */
static void test_pointer(void)
{
    const char *hex = "26000622100222e01608021a2200022a4017160822731327";

    g_assert_cmpuint(value_of(hex, (World) { .at_16 = 0x777,
                                             .pointed = 0xee73 }), ==, 1);
    g_assert_cmpuint(value_of(hex, (World) { .at_16 = 0x777,
                                             .pointed = 0x7300 }), ==, 0);
}

/* $rax % 7 == (long)counter / (long)total */
static void test_division(void)
{
    const char *hex = "2600001640220707164024002150001a164024002150081a1640"
        "0516401327";
    World w = { .rax = 20, .counter = -13, .total = -2 };
    uint64_t v;

    g_assert_cmpuint(value_of(hex, w), ==, 1);          /* 6 == 6 */
    w.rax = -20;
    g_assert_cmpuint(value_of(hex, w), ==, 0);          /* -6 */
    w.total = 0;
    g_assert_cmpint(run(hex, &w, &v), ==, TT_ERR_INVALID);
    w = (World) { .rax = 0, .counter = 1ull << 63, .total = -1 };
    g_assert_cmpuint(value_of(hex, w), ==, 0);          /* wraps */
}

/* *(short *)to << 3 >= -5 || !from */
static void test_or(void)
{
    const char *hex = "26000622100222e81608021a181610220309162022fb1608140e"
        "20003226000622100222e01608021a0e2000322200210034220127";
    World w = { .at_8 = 0x777, .at_16 = 1, .pointed = 0x12340000 };

    g_assert_cmpuint(value_of(hex, w), ==, 1);
    w.pointed = 0xffff;                                 /* -8 */
    g_assert_cmpuint(value_of(hex, w), ==, 0);
    w.at_16 = 0;
    g_assert_cmpuint(value_of(hex, w), ==, 1);
}

/* (int)i % 10 == 3 ? counter : ~i & 1 */
static void test_choice(void)
{
    const char *hex = "26000622100222d81608021a1620220a0716202203130e200023"
        "24002150001a21003726000622100222d81608021a122a4022012a400f27";

    g_assert_cmpuint(value_of(hex, (World) { .at_24 = 23, .counter = 99 }),
                     ==, 99);
    g_assert_cmpuint(value_of(hex, (World) { .at_24 = 22 }), ==, 1);
    g_assert_cmpuint(value_of(hex, (World) { .at_24 = 25 }), ==, 0);
}

/* -n < 3 && (n ^ 5) != (n | 2) && n * 2 - 1 > n >> 1, n unsigned long */
static void test_operators(void)
{
    const char *hex = "220026000622100222d81608021a2b2a402b032a4022032a4015"
        "20002021004f26000622100222d81608021a22052a401126000622100222d81608"
        "021a22022a4010130e20004a21004f2201210051220020005721009126000622"
        "100222d81608021a22022a40042a4022012a40032a4026000622100222d8160802"
        "1a22012a400b2a402b1520008c2100912201210093220027";

    for (uint64_t n = -9; n != 9; n++) {
        bool want = -n < 3 && (n ^ 5) != (n | 2) && n * 2 - 1 > n >> 1;

        g_assert_cmpuint(value_of(hex, (World) { .at_24 = n }), ==, want);
    }
}

/* (unsigned char)n / 2u == 3 && (char)n < -1 */
static void test_narrow(void)
{
    const char *hex = "26000622100222e81608021a2a0822022b2a202b062a2022032a"
        "201320002221004026000622100222e81608021a160822ff16081420003b210040"
        "2201210042220027";

    for (unsigned n = 0; n < 512; n++) {
        bool want = (uint8_t)n / 2u == 3 && (int8_t)n < -1;

        g_assert_cmpuint(value_of(hex, (World) { .at_8 = n }), ==, want);
    }
}

static void test_unreadable(void)
{
    World w = { 0 };
    uint64_t v;

    /* total / (n - 1) > 2 with n == 1; a wild address; no such register */
    w.at_8 = 1;
    g_assert_cmpint(run("24002150081a26000622100222e81608021a22012a40032a4006"
                        "2a4022022a402b1527", &w, &v), ==, TT_ERR_INVALID);
    g_assert_cmpint(run("25000000777777777719162022011327", &w, &v), ==,
                    TT_ERR_INVALID);
    g_assert_cmpint(run("26001127", &w, &v), ==, TT_ERR_INVALID);
}

/* $rip == leaf */
static void test_register(void)
{
    const char *hex = "2600102a40240020035f1327";

    g_assert_cmpuint(value_of(hex, (World) { .rip = 0x20035f }), ==, 1);
    g_assert_cmpuint(value_of(hex, (World) { .rip = 0x20036b }), ==, 0);
}

/* ---- opcode by opcode ---- */

static const struct {
    const char *hex;
    uint64_t value;
} cases[] = {
    { "2205220202" "27", 7 },
    { "2205220203" "27", 3 },
    { "2205220204" "27", 10 },
    { "25800000000000000022ff160805" "27", 1ull << 63 },
    { "22ff1608220206" "27", UINT64_MAX / 2 },
    { "22fb1608220307" "27", -2ull },
    { "220a220308" "27", 1 },
    { "2201223f09" "27", 1ull << 63 },
    { "2201224009" "27", 0 },
    { "22ff160822ff0a" "27", UINT64_MAX },
    { "22ff160822400b" "27", 0 },
    { "22ff1608223f0b" "27", 1 },
    { "22000e" "27", 1 },
    { "22050e" "27", 0 },
    { "220c220a0f" "27", 8 },
    { "220c220a10" "27", 14 },
    { "220c220a11" "27", 6 },
    { "220c12" "27", ~12ull },
    { "220c220c13" "27", 1 },
    { "22ff1608220114" "27", 1 },
    { "22ff1608220115" "27", 0 },
    { "22801608" "27", -128ull },
    { "2280" "1600" "27", 0x80 },
    { "2280" "16ff" "27", 0x80 },
    { "23ff012a08" "27", 1 },
    { "22001640" "27", 0 },
    { "23123427", 0x1234 },
    { "241234567827", 0x12345678 },
    { "25123456789abcdef027", 0x123456789abcdef0 },
    { "22072807" "27", 0 },                         /* dup */
    { "22072802" "27", 14 },
    { "2201220229" "27", 1 },                       /* pop */
    { "220122022b" "27", 1 },                       /* swap */
    { "220122022203320227", 1 },                    /* pick */
    { "22012202220333" "27", 2 },                   /* rot: 3 1 2 */
    { "2201220222033329" "27", 1 },
    { "220122022203332929" "27", 3 },
    { "2201200009220527ff220927", 9 },              /* if_goto */
    { "2200200009220527ff220927", 5 },
    { "210006220527220927", 9 },                    /* goto */
};

static void test_opcodes(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        World w = { 0 };
        uint64_t v;

        g_assert_cmpint(run(cases[i].hex, &w, &v), ==, TT_OK);
        g_assert_cmpuint(v, ==, cases[i].value);
    }
}

static void test_memory_sizes(void)
{
    World w = { .counter = 0x8877665544332211 };

    g_assert_cmpuint(value_of("2400215000" "17" "27", w), ==, 0x11);
    g_assert_cmpuint(value_of("2400215000" "18" "27", w), ==, 0x2211);
    g_assert_cmpuint(value_of("2400215000" "19" "27", w), ==, 0x44332211);
    g_assert_cmpuint(value_of("2400215000" "1a" "27", w), ==, w.counter);
}

/* ---- what is refused ---- */

static const struct {
    const char *hex;
    TtStatus status;
} bad[] = {
    { "", TT_ERR_FORMAT },                  /* no end */
    { "2201", TT_ERR_FORMAT },
    { "27", TT_ERR_FORMAT },                /* no value */
    { "220127", TT_OK },
    { "22", TT_ERR_FORMAT },                /* ends within an opcode */
    { "2300", TT_ERR_FORMAT },
    { "25000000000000", TT_ERR_FORMAT },
    { "0127", TT_ERR_FORMAT },              /* float */
    { "00", TT_ERR_FORMAT },
    { "ff", TT_ERR_FORMAT },
    { "22010227", TT_ERR_FORMAT },          /* add of one value */
    { "2927", TT_ERR_FORMAT },
    { "22013201" "27", TT_ERR_FORMAT },     /* pick below the stack */
    { "210063", TT_ERR_FORMAT },            /* jump after the end */
    { "210000", TT_ERR_LIMIT },             /* for ever */
    { "2201" "210000", TT_ERR_LIMIT },      /* for ever, and deeper */
    { "2c0001", TT_ERR_FORMAT },            /* trace state, tracing */
    { "220122010c27", TT_ERR_FORMAT },
    { "220122000527", TT_ERR_INVALID },
    { "220122000627", TT_ERR_INVALID },
    { "220122000727", TT_ERR_INVALID },
    { "220122000827", TT_ERR_INVALID },
};

static void test_bad(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        World w = { 0 };
        uint64_t v;

        g_assert_cmpint(run(bad[i].hex, &w, &v), ==, bad[i].status);
    }
}

static void test_long(void)
{
    uint8_t code[TT_AGENT_BYTES_MAX + 1] = { 0x22, 1, 0x27 };
    World w = { 0 };
    const TtAgentSource source = { &w, read_reg, read_mem };
    uint64_t v;

    g_assert_cmpint(tt_agent_eval(code, TT_AGENT_BYTES_MAX, &source, &v, NULL),
                    ==, TT_OK);
    g_assert_cmpint(tt_agent_eval(code, sizeof(code), &source, &v, NULL), ==,
                    TT_ERR_LIMIT);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/agent/gdb/equals-local", test_equal_local);
    g_test_add_func("/tt/agent/gdb/and", test_and);
    g_test_add_func("/tt/agent/gdb/or", test_or);
    g_test_add_func("/tt/agent/gdb/pointer", test_pointer);
    g_test_add_func("/tt/agent/gdb/division", test_division);
    g_test_add_func("/tt/agent/gdb/choice", test_choice);
    g_test_add_func("/tt/agent/gdb/operators", test_operators);
    g_test_add_func("/tt/agent/gdb/narrow-types", test_narrow);
    g_test_add_func("/tt/agent/gdb/register", test_register);
    g_test_add_func("/tt/agent/gdb/what-cannot-be-read", test_unreadable);
    g_test_add_func("/tt/agent/each-opcode", test_opcodes);
    g_test_add_func("/tt/agent/memory-of-each-size", test_memory_sizes);
    g_test_add_func("/tt/agent/refuses-bad-code", test_bad);
    g_test_add_func("/tt/agent/refuses-long-code", test_long);
    return g_test_run();
}
