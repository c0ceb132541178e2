/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Conditions: numbers have the value that the C compiler gives the same text; memory
 * and registers are read as they should; what is wrong is said; where to look. */
#include "debug/tt-cond.h"

#include <glib.h>
#include <inttypes.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

/* ---- what it sees ---- */

static const uint8_t ram[32] = {
    0x78, 0x56, 0x34, 0x12, 0xff, 0xff, 0xff, 0xff,
    0x10, 0x10, 0, 0, 0, 0, 0, 0,               /* at 0x1008: a pointer, to 0x1010 */
    0x80, 0xfe, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
};

typedef struct World {
    unsigned n_reads;
} World;

static bool read_reg(void *opaque, TtCondReg reg, uint64_t *value)
{
    *value = reg == TT_COND_RAX ? 0xfedcba9876543210u : reg == TT_COND_RIP ? 0x401000 :
        reg == TT_COND_CPU ? 1 : reg == TT_COND_RBX ? 0x1008 : 0;
    return true;
}

static bool read_mem(void *opaque, uint64_t addr, uint8_t *bytes, unsigned len)
{
    World *w = opaque;

    w->n_reads++;
    if (addr < 0x1000 || addr + len > 0x1000 + sizeof(ram)) {
        return false;
    }
    memcpy(bytes, ram + (addr - 0x1000), len);
    return true;
}

static TtStatus eval(const char *text, uint64_t *value, unsigned *n_reads)
{
    World w = { 0 };
    const TtCondSource source = { &w, read_reg, read_mem };
    /* one that only has numbers is none: it is made one */
    g_autofree char *whole = g_strdup_printf("(%s) at 0", text);
    TtDiag diag;
    TtCond *c;
    TtStatus s = tt_cond_parse(whole, &c, &diag);

    if (s != TT_OK) {
        g_error("%s: %s", text, diag.text);
    }
    s = tt_cond_eval(c, &source, value);
    tt_cond_free(c);
    if (n_reads) {
        *n_reads = w.n_reads;
    }
    return s;
}

static void equals(const char *text, uint64_t want)
{
    uint64_t got;

    g_assert_cmpint(eval(text, &got, NULL), ==, TT_OK);
    if (got != want) {
        g_error("%s is 0x%" PRIx64 ", not 0x%" PRIx64, text, got, want);
    }
}

/* ---- numbers, as in C ---- */

#define C(expression) { #expression, (uint64_t)(expression) }

#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wbool-operation"
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wlogical-op"

static const struct {
    const char *text;
    uint64_t value;
} like_c[] = {
    C(1 + 2 * 3), C((1 + 2) * 3), C(10 - 3 - 2), C(100 / 7 / 2), C(100 % 7),
    C(-7 / 2), C(-7 % 3), C(7 / -2), C(1 << 4 | 1), C(1 | 2 ^ 3 & 5), C(~0), C(~0u),
    C(!5), C(!0), C(- -3), C(+3), C(-1 < 1u), C(-1 < 1), C(-1L < 1u), C(-1 > 0xffffffff),
    C(0x7fffffff + 0), C(0x80000000 >> 4), C(-16 >> 2), C(-16L >> 2), C(2147483648),
    C(0xffffffff == -1), C(0xffffffffffffffff == -1L), C(4294967295 == -1),
    C((u8)300), C((s8)200), C((u16)-1), C((s32)0x80000000), C((u64)(s8)-1),
    C((char)0xe4), C((unsigned char)0xe4), C((short)65535), C((unsigned short)65535),
    C((unsigned)-1), C((unsigned long)-1), C((long long)-1), C((unsigned int)-1),
    C((u8)1 - (u8)2), C((u8)255 + (u8)1), C((u32)0xffffffff + 1), C((u32)0 - 1 > 0),
    C((s64)-1 < (u64)1), C(0xffffffff + 1), C(0xffffffffL + 1), C(017), C(0x1fUL),
    C('a'), C('\n'), C('\x41'), C('\0'), C('a' == 97), C(1 ? 2 : 3), C(0 ? 2 : 1 ? 4 : 5),
    C(1 ? -1 : 1u), C(1 && 2), C(1 && 0), C(0 || 3), C(0 || 0), C(1 || 0 && 0),
    C(1 == 1 == 1), C(3 > 2 > 1), C(5 & 3 == 3), C((5 & 3) == 1), C(1 << 2 + 3),
    C(10 > 5 != 3 < 2), C((s16)(u8)0x80), C((s8)(u8)0x80), C(-5 % -3), C(~(u8)0),
    C(-(u8)1), C(!(u64)0x100000000), C((bool)1), C((bool)2), C((bool)0x100),
    C(2 - 3u > 0), C((s64)1 << 40),
    C((u64)-1 >> 60), C((u64)-1 / 3), C((s64)-9 / 2), C((u32)-9 / 2),
};

static void test_numbers(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(like_c); i++) {
        equals(like_c[i].text, like_c[i].value);
    }
    equals("(-9223372036854775807 - 1) / -1", 1ull << 63);      /* no trap */
    equals("(-9223372036854775807 - 1) % -1", 0);
    equals("1 << 64", 0);
    equals("-1 >> 64", -1);
    equals("1u << 32", 0);
}

/* ---- registers, memory ---- */

static void test_registers(void)
{
    equals("$rax", 0xfedcba9876543210u);
    equals("$rax < 0", 1);                      /* as gdb has it */
    equals("$eax", 0x76543210);
    equals("$ax", 0x3210);
    equals("$al", 0x10);
    equals("$ah", 0x32);
    equals("(u64)$rax >> 60", 0xf);
    equals("$rip == 0x401000", 1);
    equals("$pc == $rip", 1);
    equals("$cpu", 1);
}

static void test_memory(void)
{
    equals("*(u32 *)0x1000", 0x12345678);
    equals("*(u8 *)0x1000", 0x78);
    equals("*(s32 *)0x1004", -1);
    equals("*(int *)0x1004 == 0xffffffff", 1);
    equals("*(u32 *)0x1004 == 0xffffffff", 1);
    equals("*(long *)0x1004 < 0", 0);
    equals("**(u16 **)0x1008", 0xfe80);
    equals("*(s8 *)*(u64 *)$rbx", -128);
    equals("*(s16 *)(*(u64 *)$rbx)", (uint64_t)(s16)0xfe80);
    equals("((u8 *)0x1010)[3]", 2);
    equals("((u16 *)0x1010)[1]", 0x0201);
    equals("*((u16 *)0x1010 + 1)", 0x0201);
    equals("*(1 + (u16 *)0x1010)", 0x0201);
    equals("(u32 *)0x1010 - (u32 *)0x1000", 4);
    equals("(u64)((u32 *)0x1010 - 1)", 0x100c);
    equals("(u64)&((u32 *)0x1000)[2]", 0x1008);
    equals("(u64)((void *)0x1000 + 1)", 0x1001);
    equals("(*(u8 **)0x1008)[2]", 1);
    equals("*(char **)0x1008 == 0x1010", 1);
}

static void test_what_cannot_be_read(void)
{
    uint64_t value = 7;
    unsigned n;

    g_assert_cmpint(eval("*(u32 *)0x10", &value, NULL), ==, TT_ERR_INVALID);
    g_assert_cmpuint(value, ==, 0);
    g_assert_cmpint(eval("1 / (*(u8 *)0x1012 - 1)", &value, NULL), ==, TT_ERR_INVALID);
    g_assert_cmpint(eval("1 % ($rax - $rax)", &value, NULL), ==, TT_ERR_INVALID);
    equals("0 && *(u32 *)0x10", 0);
    equals("1 || *(u32 *)0x10", 1);
    equals("1 ? 5 : *(u32 *)0x10", 5);
    g_assert_cmpint(eval("0 && *(u32 *)0x1000", &value, &n), ==, TT_OK);
    g_assert_cmpuint(n, ==, 0);
}

/* ---- what is wrong ---- */

static void test_errors(void)
{
    static const struct {
        const char *text, *said;
    } wrong[] = {
        { "&&$rax", "operand" }, { "$rax == && 1", "operand" },
        { "", "operand" }, { "1 +", "operand" }, { "(1", "')'" }, { "1)", "operator" },
        { "$rax = 1", "==" }, { "$foo", "no register '$foo'" }, { "rax == 1", "rax" },
        { "*$rax", "type" }, { "*(void *)1", "type" }, { "(void)1", "void" },
        { "&1", "memory" }, { "1 2", "operator" }, { "$rax @ 1", "'@'" },
        { "0x", "hex" }, { "09", "not a number" }, { "12z", "not a number" },
        { "'ab'", "character" }, { "'", "character" }, { "99999999999999999999", "64 bits" },
        { "(u32 * *(1", "')'" }, { "-(u8 *)1", "pointer" }, { "(u8 *)1 * 2", "pointer" },
        { "(u8 *)1 + (u8 *)2", "pointers" }, { "1 - (u8 *)2", "pointers" },
        { "$rax->x", "member" }, { "$rax at $rbx", "never changes" },
        { "$rax at", "operand" }, { "1 == 1", "ever changes" }, { "$rax ? 1", "':'" },
        { "1 / 0", "divides by zero" }, { "$rax % (2 - 2) == 1", "divides by zero" },
        { "$rax && $rbx / (u8)256", "divides by zero" }, { "at 1 / 0", "divides by zero" },
        { "((u8 *)1)[1", "']'" }, { "(unsigned long char)1", "no such type" },
        { "$", "no register" }, { "\"a\"", "meaning" }, { "\xff", "meaning" },
        { "1ulul", "not a number" }, { "--$rax", "would change" },
        { "$rax++", "would change" }, { "1.5", "floating point" }, { "$rax(1)", "called" },
        { "(u8 *********)1", "stars" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        TtDiag diag = { 0 };
        TtCond *c = (TtCond *)1;

        g_assert_cmpint(tt_cond_parse(wrong[i].text, &c, &diag), <, 0);
        g_assert_null(c);
        if (!strstr(diag.text, wrong[i].said)) {
            g_error("'%s': %s", wrong[i].text, diag.text);
        }
        g_assert_false(tt_has_control(diag.text));
    }
}

static void test_limits(void)
{
    g_autoptr(GString) deep = g_string_new(NULL), wide = g_string_new("$rax");
    g_autoptr(GString) less = g_string_new("~"), longer = g_string_new("$rax == ");
    TtDiag diag;
    TtCond *c;

    for (unsigned i = 0; i < 2 * TT_COND_DEPTH_MAX; i++) {
        g_string_append_c(deep, '(');
        g_string_append_c(less, '~');
    }
    g_string_append(less, "$rax");
    for (unsigned i = 0; i < TT_COND_NODES_MAX; i++) {
        g_string_append(wide, "+1");
    }
    for (unsigned i = 0; i < TT_COND_TEXT_MAX; i++) {
        g_string_append_c(longer, '0');
    }
    g_assert_cmpint(tt_cond_parse(deep->str, &c, &diag), ==, TT_ERR_LIMIT);
    g_assert_cmpint(tt_cond_parse(less->str, &c, &diag), ==, TT_ERR_LIMIT);
    g_assert_cmpint(tt_cond_parse(wide->str, &c, &diag), ==, TT_ERR_LIMIT);
    g_assert_cmpint(tt_cond_parse(longer->str, &c, &diag), ==, TT_ERR_LIMIT);
}

/* ---- where to look ---- */

static void test_reads(void)
{
    static const struct { const char *text; bool is; } want[] = {
        { "*(u64 *)0x1000", true }, { "*(u8 *)($rsp + 8)", true },
        { "**(u32 **)0x1000", true }, { "*(u64 *)0x1000 + 8", false },
        { "*(u64 *)0x1000 at 0x2000", false }, { "-*(s32 *)0x1000", false },
        { "*(u64 *)0x1000 == 3", false }, { "$rax", false },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(want); i++) {
        TtCond *c;

        g_assert_cmpint(tt_cond_parse(want[i].text, &c, NULL), ==, TT_OK);
        if (tt_cond_is_read(c) != want[i].is) {
            g_error("%s", want[i].text);
        }
        tt_cond_free(c);
    }
}

/* The memory of a value; 0: there is none. */
static void test_places_in_memory(void)
{
    static const struct { const char *text; uint64_t addr; unsigned len; } want[] = {
        { "*(u64 *)0x1000", 0x1000, 8 }, { "*(u8 *)($rbx + 8)", 0x1010, 1 },
        { "**(u16 **)0x1008", 0x1010, 2 }, { "(s32)(*(u16 *)0x1000 << 3 >> 7)", 0x1000, 2 },
        { "*(u32 *)0x1000 & 4", 0x1000, 1 }, { "(u64)(u8)*(u32 *)0x1004", 0x1004, 1 },
        { "*(u32 *)0x1000 & 0x80100", 0x1001, 2 }, { "*(u32 *)0x1000 & 0", 0x1000, 4 },
        /* bit-fields, as tt-lower.h makes them */
        { "(u64)((u64)((u64)*(u64 *)0x1000 << 24) >> 24)", 0x1000, 5 },
        { "(u64)((u64)*(u64 *)0x1000 << 20 >> 60)", 0x1005, 1 },
        { "(s32)((s64)((u64)*(u16 *)0x1000 << 54) >> 57)", 0x1000, 2 },
        { "(s32)((s64)((u64)*(u16 *)0x1000 << 48) >> 56)", 0x1001, 1 },
        { "*(s32 *)0x1000 >> 40", 0x1003, 1 }, { "(u64)*(s8 *)0x1000 >> 60", 0x1000, 1 },
        { "(u8)(*(u64 *)0x1000 >> 16)", 0x1002, 1 }, { "*(s64 *)0x1000 >> 63", 0x1007, 1 },
        { "(_Bool)(*(u32 *)0x1000 & 0xff00)", 0x1001, 1 },
        { "(s64)*(s32 *)0x1000 << 16 >> 24 & 0xff", 0x1001, 1 },
        { "*(u32 *)0x1000 + 1", 0, 0 }, { "*(u32 *)0x1000 at 5", 0, 0 }, { "$rax", 0, 0 },
        { "**(u8 **)0x10", 0, 1 },
    };
    World world = { 0 };
    const TtCondSource source = { &world, read_reg, read_mem };

    for (size_t i = 0; i < G_N_ELEMENTS(want); i++) {
        uint64_t addr = 0;
        unsigned len;
        TtCond *c;

        g_assert_cmpint(tt_cond_parse(want[i].text, &c, NULL), ==, TT_OK);
        g_assert_cmpint(tt_cond_place(c, &source, &addr, &len) == TT_OK, ==,
                        want[i].addr != 0);
        g_assert_cmpuint(addr, ==, want[i].addr);
        g_assert_cmpuint(len, ==, want[i].len);
        tt_cond_free(c);
    }
}

/* The bytes of which a value depends, found by memory in which each bit in turn is the
 * other way. */
static bool read_bits(void *opaque, uint64_t addr, uint8_t *bytes, unsigned len)
{
    memcpy(bytes, opaque, len);
    return true;
}

static uint64_t depends_on(const TtCond *c)
{
    uint64_t all = (uint64_t)g_test_rand_int() << 32 | (uint32_t)g_test_rand_int();
    const TtCondSource source = { &all, read_reg, read_bits };
    uint64_t before, after, bits = 0;

    g_assert_cmpint(tt_cond_eval(c, &source, &before), ==, TT_OK);
    for (unsigned i = 0; i < 64; i++) {
        all ^= 1ull << i;
        g_assert_cmpint(tt_cond_eval(c, &source, &after), ==, TT_OK);
        bits |= after != before ? 1ull << i : 0;
        all ^= 1ull << i;
    }
    return bits;
}

static char *random_part(void)
{
    static const char *const types[] = {
        "u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64",
    };
    char *text = g_strdup_printf("*(%s *)0x1000", types[g_test_rand_int_range(0, 8)]);

    for (int n = g_test_rand_int_range(1, 6); n; n--) {
        g_autofree char *inner = text;
        int kind = g_test_rand_int_range(0, 4), by = g_test_rand_int_range(0, 66);

        text = kind == 0 ? g_strdup_printf("(%s)(%s)", types[by % 8], inner) :
            kind == 1 ?
            g_strdup_printf("(%s) & 0x%xULL", inner, 1u << by % 32 | 1u << by / 3) :
            g_strdup_printf("(%s) %s %d", inner, kind == 2 ? "<<" : ">>", by);
    }
    return text;
}

static void test_parts_of_memory(void)
{
    for (int i = 0; i < 20000; i++) {
        g_autofree char *text = random_part();
        uint64_t addr = 0, bits;
        TtCond *c;
        unsigned len;

        g_assert_cmpint(tt_cond_parse(text, &c, NULL), ==, TT_OK);
        bits = depends_on(c);
        if (bits) {
            uint64_t all = 0;
            const TtCondSource source = { &all, read_reg, read_bits };
            unsigned first = __builtin_ctzll(bits) / 8;

            g_assert_cmpint(tt_cond_place(c, &source, &addr, &len), ==, TT_OK);
            g_test_message("%s", text);
            g_assert_cmphex(addr, ==, 0x1000 + first);
            g_assert_cmpuint(len, ==, (63 - __builtin_clzll(bits)) / 8 - first + 1);
        }
        tt_cond_free(c);
    }
}

static void test_kinds(void)
{
    static const struct {
        const char *text;
        TtCondKind kind;
        unsigned n_places;
    } want[] = {
        { "$rip == 0x1000", TT_COND_AT_PLACES, 1 },
        { "0x1000 == $pc", TT_COND_AT_PLACES, 1 },
        { "$rip == 0x1000 && $rax == 3", TT_COND_AT_PLACES, 1 },
        { "$rax == 3 && *(u32 *)5 && (u64)$rip == 0x1000 + 8", TT_COND_AT_PLACES, 1 },
        { "$rip == 1 || $rip == 2 || $rip == 1", TT_COND_AT_PLACES, 2 },
        { "($rip == 1 || $rip == 2) && $rdi", TT_COND_AT_PLACES, 2 },
        { "$rip == 1 || $rax == 2", TT_COND_OF_REGISTERS, 0 },
        { "$eip == 1", TT_COND_OF_REGISTERS, 0 },
        { "$rip != 1", TT_COND_OF_REGISTERS, 0 },
        { "$rip == $rax", TT_COND_OF_REGISTERS, 0 },
        { "!($rip == 1)", TT_COND_OF_REGISTERS, 0 },
        { "*(u32 *)5 == 1", TT_COND_OF_MEMORY, 0 },
        { "*(u32 *)5 == 1 && $cpu == 1", TT_COND_OF_MEMORY, 0 },
        { "*(u32 *)5 == 1 && $cr3 == 1", TT_COND_OF_MEMORY, 0 },
        { "*(u32 *)5 == 1 && $cpl == 3", TT_COND_OF_REGISTERS, 0 },
        { "*(u32 *)5 == $rax", TT_COND_OF_REGISTERS, 0 },
        { "*(u32 *)$rax", TT_COND_OF_REGISTERS, 0 },
        { "$cpu == 1", TT_COND_OF_REGISTERS, 0 },
        { "$rax at 0x10", TT_COND_AT_PLACES, 1 },
        { "at 0x10", TT_COND_AT_PLACES, 1 },
        { "1 at 0x10 + 2 * 8", TT_COND_AT_PLACES, 1 },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(want); i++) {
        TtDiag diag;
        TtCond *c;
        size_t n;

        if (tt_cond_parse(want[i].text, &c, &diag) != TT_OK) {
            g_error("%s: %s", want[i].text, diag.text);
        }
        tt_cond_places(c, &n);
        if (tt_cond_kind(c) != want[i].kind || n != want[i].n_places) {
            g_error("%s: kind %d, %zu places", want[i].text, tt_cond_kind(c), n);
        }
        tt_cond_free(c);
    }
}

static void test_places_in_order(void)
{
    const uint64_t *p;
    TtCond *c;
    size_t n;

    g_assert_cmpint(tt_cond_parse("$rip == 9 || $rip == 3 || $rip == 9 || 5 == $rip", &c,
                                  NULL), ==, TT_OK);
    p = tt_cond_places(c, &n);
    g_assert_cmpuint(n, ==, 3);
    g_assert_cmpuint(p[0], ==, 3);
    g_assert_cmpuint(p[1], ==, 5);
    g_assert_cmpuint(p[2], ==, 9);
    tt_cond_free(c);
}

static TtStatus may(const char *text, unsigned how, uint64_t positions)
{
    TtDiag diag = { 0 };
    TtCond *c;
    TtStatus s;

    g_assert_cmpint(tt_cond_parse(text, &c, &diag), ==, TT_OK);
    s = tt_cond_check(c, how, 100, 100 + positions, &diag);
    g_assert_true(s == TT_OK || diag.text[0]);
    tt_cond_free(c);
    return s;
}

static void test_what_cannot_be_searched_for(void)
{
    static const char *const no_place[] = {
        "$rax", "*(u8 *)1 == 3", "*(u8 *)1 + 1", "*(u8 *)1 at 5", "!*(u8 *)1",
        "$rip == 1 && *(u8 *)1", "1 << *(u8 *)1", "*(u8 *)1 ? 1 : 2",
    };
    const uint64_t much = 1ull << 40;

    g_assert_cmpint(may("$rax == 1", 0, much), ==, TT_ERR_INVALID);
    g_assert_cmpint(may("$rax == 1", 0, TT_COND_STEPS_MAX), ==, TT_OK);
    g_assert_cmpint(may("$rax == 1", TT_COND_MONOTONE, much), ==, TT_OK);
    g_assert_cmpint(may("$rip == 1 && $rax == 1", 0, much), ==, TT_OK);
    g_assert_cmpint(may("$rip == 1", TT_COND_MONOTONE, 1), ==, TT_ERR_INVALID);
    g_assert_cmpint(may("$rip == 1", TT_COND_CHANGES, 1), ==, TT_ERR_INVALID);
    g_assert_cmpint(may("$rax at 1", TT_COND_CHANGES, much), ==, TT_OK);
    g_assert_cmpint(may("*(u8 *)1", TT_COND_CHANGES | TT_COND_MONOTONE, 1), ==,
                    TT_ERR_INVALID);
    g_assert_cmpint(may("*(u8 *)1", TT_COND_CHANGES, much), ==, TT_OK);
    g_assert_cmpint(may("*(u8 *)1", TT_COND_WRITTEN, much), ==, TT_OK);
    g_assert_cmpint(may("*(u8 *)$rax", TT_COND_WRITTEN, much), ==, TT_ERR_INVALID);
    g_assert_cmpint(may("*(u8 *)$rax", TT_COND_WRITTEN, TT_COND_STEPS_MAX), ==, TT_OK);
    for (size_t i = 0; i < G_N_ELEMENTS(no_place); i++) {
        g_assert_cmpint(may(no_place[i], TT_COND_WRITTEN, 1), ==, TT_ERR_INVALID);
    }
}

/* ---- names ---- */

static char *name(void *opaque, const char *chain, size_t *used, bool is_address,
                  TtDiag *why)
{
    if (!strncmp(chain, "counter", *used)) {
        return g_strdup(is_address ? "0x1000UL" : "(*(u32 *)0x1000UL)");
    }
    if (g_str_has_prefix(chain, "task->pid")) {
        *used = strlen("task->pid");
        return g_strdup("42");
    }
    g_snprintf(why->text, sizeof(why->text), "there is no symbol '%.*s'", (int)*used,
               chain);
    return NULL;
}

static void test_names(void)
{
    static const struct {
        const char *text, *plain;
    } want[] = {
        { "counter == 1", "(*(u32 *)0x1000UL) == 1" },
        { "*(u8*)&counter", "* ( u8 * ) 0x1000UL" },
        { "3 & counter", "3 & (*(u32 *)0x1000UL)" },
        { "(3) & counter", "( 3 ) & (*(u32 *)0x1000UL)" },
        { "$rax & &counter", "$rax & 0x1000UL" },
        { "task->pid==7", "42 == 7" }, { "1 at &counter", "1 at 0x1000UL" },
        { "at &counter", "at 0x1000UL" }, { "'c'", "'c'" },
    };
    g_autofree char *out = NULL;
    TtDiag diag;

    for (size_t i = 0; i < G_N_ELEMENTS(want); i++) {
        g_autofree char *plain = NULL;
        g_autofree char *got = NULL;

        g_assert_cmpint(tt_cond_resolve(want[i].text, name, NULL, &got, &diag), ==,
                        TT_OK);
        /* blanks do not count */
        plain = g_strjoinv("", g_strsplit(want[i].plain, " ", -1));
        out = g_strjoinv("", g_strsplit(got, " ", -1));
        g_assert_cmpstr(out, ==, plain);
        g_clear_pointer(&out, g_free);
    }
    g_assert_cmpint(tt_cond_resolve("counter + other", name, NULL, &out, &diag), ==,
                    TT_ERR_FORMAT);
    g_assert_nonnull(strstr(diag.text, "'other'"));
    g_assert_cmpint(tt_cond_resolve("counter==1&&  counter $", name, NULL, &out, &diag), ==,
                    TT_ERR_FORMAT);
    g_assert_nonnull(strstr(diag.text, "(at character 23)"));
    g_assert_null(out);
    g_assert_cmpint(tt_cond_resolve("counter==", name, NULL, &out, &diag), ==,
                    TT_ERR_FORMAT);
    g_assert_nonnull(strstr(diag.text, "(at character 10)"));
    g_assert_cmpint(tt_cond_resolve("counter + other", name, NULL, &out, &diag), ==,
                    TT_ERR_FORMAT);
    g_assert_nonnull(strstr(diag.text, "11"));
    g_assert_null(out);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/cond/numbers-are-those-of-c", test_numbers);
    g_test_add_func("/tt/cond/registers", test_registers);
    g_test_add_func("/tt/cond/memory", test_memory);
    g_test_add_func("/tt/cond/what-cannot-be-read", test_what_cannot_be_read);
    g_test_add_func("/tt/cond/says-what-is-wrong", test_errors);
    g_test_add_func("/tt/cond/limits", test_limits);
    g_test_add_func("/tt/cond/kinds", test_kinds);
    g_test_add_func("/tt/cond/what-is-one-read", test_reads);
    g_test_add_func("/tt/cond/places-in-order", test_places_in_order);
    g_test_add_func("/tt/cond/places-in-memory", test_places_in_memory);
    g_test_add_func("/tt/cond/parts-of-memory", test_parts_of_memory);
    g_test_add_func("/tt/cond/what-cannot-be-searched-for",
                    test_what_cannot_be_searched_for);
    g_test_add_func("/tt/cond/names", test_names);
    return g_test_run();
}
