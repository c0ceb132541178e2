/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Typed conditions have the values that the compiler of this test gives them: the types,
 * variables and bytes are its own. The table of types is written by hand.
 */
#include "debug/tt-cond.h"
#include "tt-lower-table.h"

#include <inttypes.h>
#include <stddef.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int64_t s64;

enum color { RED = -1, GREEN = 5 };
typedef enum color Color;

typedef struct List {
    struct List *next, *prev;
} List;

struct inner {
    u16 a;
    s8 b[3];
};

struct thing {
    u32 first : 3;
    int second : 7;
    u64 third : 40;
    union {
        u32 word;
        u8 bytes[4];
    };
    struct {
        List list;
        struct inner in[2][3];
    };
    Color color;
    struct thing *self;
    double real;
    u8 at;
    u32 wide : 32;
    u32 half : 31;
};

static struct thing table[4], *current_thing = &table[1];
static int panic_timeout = -7;
static u64 big;
static void *raw = table;

/* ---- the table of types ---- */

enum {
    VOID, INT, CHAR8, U8, U16, U32, U64, COLOR, DOUBLE, LIST, LIST_P, INNER, THING, THING_P,
    S8_3, BYTES, IN_3, IN_2_3, UNNAMED, UNNAMED_UNION, TABLE, FUNCTION, FUNCTION_P, OPAQUE,
    OPAQUE_P, CYCLE, VOID_P, UNKNOWN_ARRAY, N_TYPES
};

static const TtTypeInfo infos[N_TYPES] = {
    [INT] = { TT_TYPE_NUMBER, 4, true, .name = "int" },
    [CHAR8] = { TT_TYPE_NUMBER, 1, true, .name = "signed char" },
    [U8] = { TT_TYPE_NUMBER, 1 }, [U16] = { TT_TYPE_NUMBER, 2 },
    [U32] = { TT_TYPE_NUMBER, 4 }, [U64] = { TT_TYPE_NUMBER, 8 },
    [COLOR] = { TT_TYPE_NUMBER, 4, true, .name = "enum color" },
    [DOUBLE] = { TT_TYPE_OTHER, 8, .name = "double" },
    [LIST] = { TT_TYPE_MEMBERS, sizeof(List), .name = "struct List" },
    [LIST_P] = { TT_TYPE_POINTER, 8, .to = LIST },
    [INNER] = { TT_TYPE_MEMBERS, sizeof(struct inner), .name = "struct inner" },
    [THING] = { TT_TYPE_MEMBERS, sizeof(struct thing), .name = "struct thing" },
    [THING_P] = { TT_TYPE_POINTER, 8, .to = THING },
    [S8_3] = { TT_TYPE_ARRAY, 3, .to = CHAR8 },
    [BYTES] = { TT_TYPE_ARRAY, 4, .to = U8 },
    [IN_3] = { TT_TYPE_ARRAY, 3 * sizeof(struct inner), .to = INNER },
    [IN_2_3] = { TT_TYPE_ARRAY, 6 * sizeof(struct inner), .to = IN_3 },
    [UNNAMED] = { TT_TYPE_MEMBERS, sizeof(List) + 6 * sizeof(struct inner) },
    [UNNAMED_UNION] = { TT_TYPE_MEMBERS, 4 },
    [TABLE] = { TT_TYPE_ARRAY, sizeof(table), .to = THING },
    [FUNCTION] = { TT_TYPE_FUNCTION, 0, .name = "int (void)" },
    [FUNCTION_P] = { TT_TYPE_POINTER, 8, .to = FUNCTION },
    [OPAQUE] = { TT_TYPE_MEMBERS, 0, .is_declared = true, .name = "struct op\033aque" },
    [OPAQUE_P] = { TT_TYPE_POINTER, 8, .to = OPAQUE },
    [CYCLE] = { TT_TYPE_MEMBERS, 8, .name = "struct cycle" },
    [VOID_P] = { TT_TYPE_POINTER, 8 },
    [UNKNOWN_ARRAY] = { TT_TYPE_ARRAY, 0, .to = INT },
};

#define AT(member) (8 * offsetof(struct thing, member))
static const TableMember members[] = {
    { THING, { "first", U32, 0, 3 } }, { THING, { "second", INT, 3, 7 } },
    { THING, { "third", U64, 10, 40 } }, { THING, { NULL, UNNAMED_UNION, AT(word) } },
    { THING, { NULL, UNNAMED, AT(list) } }, { THING, { "color", COLOR, AT(color) } },
    { THING, { "self", THING_P, AT(self) } }, { THING, { "real", DOUBLE, AT(real) } },
    { THING, { "at", U8, AT(at) } }, { THING, { "wide", U32, AT(at) + 32, 32 } },
    { THING, { "half", U32, AT(at) + 64, 31 } },
    { UNNAMED_UNION, { "word", U32, 0 } }, { UNNAMED_UNION, { "bytes", BYTES, 0 } },
    { UNNAMED, { "list", LIST, 0 } }, { UNNAMED, { "in", IN_2_3, 8 * sizeof(List) } },
    { LIST, { "next", LIST_P, 0 } }, { LIST, { "prev", LIST_P, 64 } },
    { INNER, { "a", U16, 0 } }, { INNER, { "b", S8_3, 16 } },
    { CYCLE, { NULL, CYCLE, 0 } }, { CYCLE, { NULL, CYCLE, 8 } },
};

static const TableType known_types[] = {
    { TT_TAG_STRUCT, "thing", THING }, { TT_TAG_STRUCT, "List", LIST },
    { TT_TAG_NAMED, "List", LIST }, { TT_TAG_STRUCT, "inner", INNER },
    { TT_TAG_ENUM, "color", COLOR }, { TT_TAG_NAMED, "Color", COLOR },
    { TT_TAG_NAMED, "double", DOUBLE }, { TT_TAG_STRUCT, "opaque", OPAQUE },
    { TT_TAG_UNION, "cycle", CYCLE },
};

static const TableName names[] = {
    { "table", { TT_NAME_DATA, (uintptr_t)table, TABLE } },
    { "current_thing", { TT_NAME_DATA, (uintptr_t)&current_thing, THING_P } },
    { "panic_timeout", { TT_NAME_DATA, (uintptr_t)&panic_timeout, INT } },
    { "big", { TT_NAME_DATA, (uintptr_t)&big, U64 } },
    { "raw", { TT_NAME_DATA, (uintptr_t)&raw, VOID_P } },
    { "code", { TT_NAME_CODE, 0x401000, 0 } }, { "label", { TT_NAME_ADDRESS, 0x1000, 0 } },
    { "RED", { TT_NAME_NUMBER, (uint64_t)RED, COLOR } },
    { "GREEN", { TT_NAME_NUMBER, GREEN, COLOR } },
    { "HUGE", { TT_NAME_NUMBER, 1ull << 63, U64 } },
    { "hidden", { TT_NAME_DATA, 0x1000, OPAQUE_P } },
    { "many", { TT_NAME_DATA, 0x1000, UNKNOWN_ARRAY } },
    { "cycle", { TT_NAME_DATA, 0x1000, CYCLE } },
};

static const Table table_of_types = {
    infos, N_TYPES, members, G_N_ELEMENTS(members), known_types, G_N_ELEMENTS(known_types),
    names, G_N_ELEMENTS(names), "twice",
};
static TtTypes types;

/* ---- values ---- */

static bool read_reg(void *opaque, TtCondReg reg, uint64_t *value)
{
    *value = reg == TT_COND_RDI ? (uintptr_t)&table[2] : reg == TT_COND_RIP ? 0x401000 :
        reg == TT_COND_RAX ? (uint64_t)-2 : 0;
    return true;
}

static bool lies_in(uint64_t addr, unsigned len, const void *object, size_t size)
{
    return addr >= (uintptr_t)object && addr + len <= (uintptr_t)object + size;
}

static bool read_mem(void *opaque, uint64_t addr, uint8_t *bytes, unsigned len)
{
    bool known = lies_in(addr, len, table, sizeof(table)) ||
        lies_in(addr, len, &current_thing, 8) || lies_in(addr, len, &panic_timeout, 4) ||
        lies_in(addr, len, &big, 8) || lies_in(addr, len, &raw, 8);

    if (known) {
        memcpy(bytes, (void *)(uintptr_t)addr, len);
    }
    return known;
}

static char *plain(const char *text)
{
    char *out;
    TtDiag diag = { 0 };

    if (tt_lower(text, &types, &out, &diag) != TT_OK) {
        g_error("%s: %s", text, diag.text);
    }
    return out;
}

static void equals(const char *text, uint64_t wanted)
{
    const TtCondSource source = { NULL, read_reg, read_mem };
    /* a constant alone is refused, so there is a register beside it */
    g_autofree char *whole = g_strdup_printf("(%s) + 0 * !$rbx", text);
    g_autofree char *lowered = plain(whole);
    uint64_t value;
    TtDiag diag;
    TtCond *c;

    if (tt_cond_parse(lowered, &c, &diag) != TT_OK) {
        g_error("%s, %s: %s", text, lowered, diag.text);
    }
    if (tt_cond_eval(c, &source, &value) != TT_OK) {
        g_error("%s, %s: it cannot be read", text, lowered);
    }
    if (value != wanted) {
        g_error("%s, %s: %" PRIx64 ", not %" PRIx64, text, lowered, value, wanted);
    }
    tt_cond_free(c);
}

static void fill(void)
{
    for (size_t i = 0; i < sizeof(table); i++) {
        ((u8 *)table)[i] = i * 37 + 11;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(table); i++) {
        table[i].self = &table[(i + 1) % 4];
        table[i].list = (List) { &table[(i + 1) % 4].list, &table[(i + 3) % 4].list };
        table[i].color = i % 2 ? RED : GREEN;
    }
    table[1].first = 5;
    table[1].second = -3;
    table[1].third = 0x8123456789;
    table[1].wide = 0xfedcba98;
    big = 0xfedcba9876543210;
}

/* The pointers in them are those of this process. */
#define C(x) { #x, (uint64_t)(x) }

static void test_like_the_compiler(void)
{
    const struct { const char *text; uint64_t value; } like_c[] = {
        C(panic_timeout), C(panic_timeout > 3), C(panic_timeout < 0), C(panic_timeout + 1u),
        C(-panic_timeout), C(~panic_timeout), C(!panic_timeout), C(panic_timeout >> 1),
        C(panic_timeout == -7 ? 1 : 2), C(big), C(big > 5), C((s64)big < 0), C((int)big),
        C((u8)big), C((big & 0xff) | 1), C(big == 0 || (panic_timeout && big)),
        C(*&panic_timeout), C((u64)&panic_timeout), C(*(u8 *)&big), C(((u16 *)&big)[1]),
        C(current_thing->first), C(current_thing->second), C(current_thing->third),
        C(current_thing->first - 6), C(current_thing->second * 2),
        C(current_thing->third >> 4), C(current_thing->second < 0),
        C(current_thing->first < -1), C(current_thing->wide > -1),
        C(current_thing->half), C(current_thing->half < -1),
        C(current_thing->wide), C(table[1].wide + 1), C(table[1].second),
        C(current_thing->word), C(current_thing->bytes[2]), C(current_thing->at),
        C(current_thing->in[1][2].a), C(current_thing->in[1][2].b[1]),
        C((*current_thing).in[0][1].b[2] < 0), C(current_thing->color),
        C(current_thing->color == RED), C(table[0].color == GREEN), C(RED), C(RED < 0),
        C(current_thing->self->self->self->word), C(current_thing->self == &table[2]),
        C(current_thing->list.next == &table[2].list),
        C(current_thing->list.next->next->next->prev == &table[3].list),
        C((u64)(current_thing + 2)), C((u64)(current_thing - 1)), C((u64)(2 + current_thing)),
        C(current_thing - table), C(&table[3] - current_thing), C(current_thing > table),
        C((u64)&current_thing->in), C((u64)&current_thing->in[1]),
        C((u64)(current_thing->in + 1)), C((u64)*(current_thing->in + 1)),
        C((u64)(&current_thing->in + 1)), C((u64)&current_thing[1].list),
        C((u64)&table[panic_timeout + 9]), C(table[panic_timeout + 9].word),
        C(table[(u8)(panic_timeout + 9)].word), C((u64)(table + 1 + (panic_timeout + 7))),
        C((u64)(table + 3 - (panic_timeout + 8))), C((u64)(&table[3] - 2)),
        C(*(u32 *)((u64)current_thing + 4)), C(((struct thing *)raw)->self->word),
        C(((struct thing *)raw + 1)->word), C((u64)((u8 *)raw + 3)), C((u64)(raw + 3)),
        C(sizeof(struct thing)), C(sizeof(Color)), C(sizeof table), C(sizeof table[0].in[1]),
        C(sizeof(struct thing *)), C(sizeof(int)), C(sizeof current_thing->list.next),
        C(sizeof(table) / sizeof(table[0])), C(sizeof(struct inner) * 2 + 1),
        C(!current_thing), C(current_thing && raw), C((u64)(raw ? &table[1] : 0)),
        C((u64)(panic_timeout ? current_thing : table)), C((Color)3), C((enum color)-1),
        C((const struct thing *)raw == table), C(*(List **)&table[1].list == &table[2].list),
        C((u64)((List *)&table[1].list)->next), C(1 ? -1 : 1u), C(017), C('a'), C(3 - 4),
        C(0xffffffff + 1), C((u64)2 - 3 > 0), C(5 - 3 - 1), C(5 - (3 - 1)),
        C(100 / 10 / 2), C((1 ? 2 : 3) + 4), C((u64)table[1].self & 7), C(10 % 4),
    };

    for (size_t i = 0; i < G_N_ELEMENTS(like_c); i++) {
        equals(like_c[i].text, like_c[i].value);
    }
}

static void test_registers_and_code(void)
{
    equals("((struct thing *)$rdi)->word", table[2].word);
    equals("((struct thing *)$rdi)[-1].word", table[1].word);
    equals("((struct thing *)$rdi - 1)->second", (u64)-3);
    equals("(struct thing *)$rdi == &table[2]", 1);
    equals("$rip == code", 1);
    equals("$rip == code + 4", 0);
    equals("&code", 0x401000);
    equals("$rax < 0", 1);
    equals("table[$rax + 3].word", table[1].word);
    equals("&label", 0x1000);
    equals("1 << 2 + 3", 32);
    equals("big & 0xff | 1 && 3", 1);
    equals("HUGE", 1ull << 63);
    equals("1 == 1 || *(u8 *)&label == 1 ? 5 : 6 || $rbx", 5);
}

static void test_text(void)
{
    static const struct { const char *text, *plain; } want[] = {
        { "$rip == code && $rdi == 3", "$rip == 0x401000UL && $rdi == 3" },
        { "$rdi at code", "$rdi at 0x401000UL" }, { "at code + 4", "at 0x401000UL + 4" },
        { "*(u32 *)&label", "*(u32 *)0x1000UL" },
        { "((struct inner *)4096)->a", "*(u16 *)0x1000UL" },
        { "- -$rax", "- -$rax" }, { "-(-1 + $rax)", "-(-1 + $rax)" },
        { "+ + -+ +!!$rax", "+ +-+ +!!$rax" },
        { "$rax + 1 + 2 == 3 && $rbx && $rcx", "$rax + 1 + 2 == 3 && $rbx && $rcx" },
        { "((List *)$rdi)->prev->prev", "*(u64 *)(*(u64 *)((u64)$rdi + 0x8UL) + 0x8UL)" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(want); i++) {
        g_autofree char *got = plain(want[i].text);

        g_assert_cmpstr(got, ==, want[i].plain);
    }
}

/* A bit-field is read within its struct, so that nothing else is watched. */
static void test_bits_in_their_place(void)
{
    g_autofree char *a = plain("((struct thing *)0)->second");
    g_autofree char *b = plain("((struct thing *)0)->wide");

    g_assert_nonnull(strstr(a, "*(u16 *)0x0UL"));
    g_assert_nonnull(strstr(b, "*(u32 *)"));
}

/* ---- what is wrong ---- */

static void test_errors(void)
{
    static const struct { const char *text, *said; } wrong[] = {
        { "", "operand" }, { "1 +", "operand" }, { "(1", "')'" }, { "1)", "operator" },
        { "nobody == 1", "no symbol 'nobody'" }, { "label == 1", "*(u32 *)&label" },
        { "table[0]", "one of its members" }, { "table", "one of its elements" },
        { "table[0].nobody", "'struct thing' has no member 'nobody'" },
        { "table[0]->word", "write ." }, { "current_thing.word", "write ->" },
        { "$rdi->word", "struct NAME" }, { "panic_timeout.x", "struct" },
        { "code.x", "struct" }, { "label.x", "struct" }, { "hidden->x", "not known" },
        { "hidden + 1", "size" }, { "*hidden", "one of its members" },
        { "(struct nobody *)1", "no 'struct nobody'" },
        { "(struct *)1", "name of the struct" }, { "table[0].real", "double" },
        { "(double)1", "double" }, { "(struct thing)1", "cast" },
        { "(void)1", "void" }, { "*raw", "type" }, { "*panic_timeout", "type" },
        { "panic_timeout[1]", "type" }, { "&table[1].first", "bit-field" },
        { "sizeof table[1].first", "bit-field" }, { "sizeof many", "size" },
        { "sizeof(struct opaque)", "size" }, { "&1", "memory" }, { "&(1 + 1)", "memory" },
        { "current_thing * 2", "pointer" }, { "-current_thing", "pointer" },
        { "current_thing + current_thing", "pointers" }, { "1 - current_thing", "pointers" },
        { "current_thing - &panic_timeout", "pointers" }, { "$rax ? 1", "':'" },
        { "((u8 *)1)[1", "']'" }, { "table[0].", "member" }, { "$foo", "no register" },
        { "cycle.x", "no member" }, { "at", "operand" }, { "$rax at", "operand" },
        { "(u8 *********)1", "stars" }, { "sizeof", "operand" }, { "1 2", "operator" },
        { "panic_timeout = 1", "==" }, { "&&panic_timeout", "operand" },
        { "(const)1", "type is missing" }, { "sizeof(label)", "not known" },
        { "(struct twice *)1", "several types" }, { "(twice *)1", "several types" },
        { "sizeof(twice)", "several types" }, { "code(1)", "called" },
        { "--big", "would change" },
        { "1 + (code(1, 2))", "called" }, { "(u8 *)code (1)", "called" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        TtDiag diag = { 0 };
        char *out = (char *)1;

        g_assert_cmpint(tt_lower(wrong[i].text, &types, &out, &diag), ==, TT_ERR_FORMAT);
        g_assert_null(out);
        if (!strstr(diag.text, wrong[i].said)) {
            g_error("'%s': %s", wrong[i].text, diag.text);
        }
        g_assert_false(tt_has_control(diag.text));
    }
}

/* The operand or the operator that a complaint is about, not what follows it. */
static void test_position(void)
{
    static const struct { const char *text; unsigned at; } wrong[] = {
        { "1 + nobody * 2", 5 }, { "$rax && current_thing * 2 == 1", 23 },
        { "1 + -current_thing", 5 }, { "$rax + (double)1", 8 }, { "1 + table[0].nobody", 14 },
        { "1 + *panic_timeout + 1", 5 }, { "$rax ? 1 + table : hidden + 1", 27 },
        { "1 + sizeof many + 1", 5 }, { "1 + panic_timeout[1] + 1", 18 }, { "1 + ) ", 5 },
        { "$rax at  table[0]", 10 }, { "  table", 3 }, { "1 2", 3 }, { "(1 + 2 ", 8 },
        { "$rax ? table[0] : 1", 6 }, { "1 + (u8 *1", 10 },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autofree char *said = g_strdup_printf("(at character %u)", wrong[i].at);
        TtDiag diag = { 0 };
        char *out;

        g_assert_cmpint(tt_lower(wrong[i].text, &types, &out, &diag), ==, TT_ERR_FORMAT);
        if (!strstr(diag.text, said)) {
            g_error("'%s': %s, not %u", wrong[i].text, diag.text, wrong[i].at);
        }
    }
}

static GString *repeated(const char *what, unsigned n, const char *end)
{
    GString *s = g_string_new(NULL);

    while (n--) {
        g_string_append(s, what);
    }
    return g_string_append(s, end);
}

static void test_limits(void)
{
    g_autoptr(GString) deep = repeated("(", 200, "1");
    g_autoptr(GString) less = repeated("~", 200, "$rax");
    g_autoptr(GString) longer = repeated("table[0].self->self->self->self == 0 || ", 100, "1");
    g_autoptr(GString) wide = repeated("$rax+", 700, "1");
    g_autoptr(GString) named = repeated("big+", 1000, "1");
    g_autoptr(GString) sizes = repeated("sizeof ", 200, "big");
    const GString *all[] = { deep, less, longer, named, sizes };
    char *out;
    TtDiag diag;

    for (size_t i = 0; i < G_N_ELEMENTS(all); i++) {
        g_assert_cmpint(tt_lower(all[i]->str, &types, &out, &diag), ==, TT_ERR_LIMIT);
        g_assert_null(out);
    }
    /* as long as without types: brackets are put only where they are needed */
    g_string_truncate(wide, 5 * 150);
    g_string_append(wide, "1");
    g_assert_cmpint(tt_lower(wide->str, &types, &out, &diag), ==, TT_OK);
    g_assert_cmpuint(strlen(out), <, 2 * wide->len);
    g_free(out);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    types = table_types(&table_of_types);
    fill();
    g_test_add_func("/tt/lower/like-the-compiler", test_like_the_compiler);
    g_test_add_func("/tt/lower/registers-and-code", test_registers_and_code);
    g_test_add_func("/tt/lower/text", test_text);
    g_test_add_func("/tt/lower/bits-in-their-place", test_bits_in_their_place);
    g_test_add_func("/tt/lower/says-what-is-wrong", test_errors);
    g_test_add_func("/tt/lower/says-where-it-is", test_position);
    g_test_add_func("/tt/lower/limits", test_limits);
    return g_test_run();
}
