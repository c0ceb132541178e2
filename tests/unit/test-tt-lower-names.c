/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What names are in typed conditions besides C's plain variables: C++'s classes and
 * references, per-CPU variables, types that are not known; and places in memory.
 */
#include "tt-lower-table.h"

enum {
    VOID, INT, UCHAR, BOOL, INT_REF, BASE, OTHER_BASE, VIRTUAL, DERIVED, BOTH, SEVERAL,
    SEVERAL_P, PER_CPU_STRUCT, ARRAY, N_TYPES
};

static const TtTypeInfo infos[N_TYPES] = {
    [INT] = { TT_TYPE_NUMBER, 4, true, .name = "int" },
    [UCHAR] = { TT_TYPE_NUMBER, 1, .name = "char" },
    [BOOL] = { TT_TYPE_NUMBER, 1, .is_bool = true, .name = "bool" },
    [INT_REF] = { TT_TYPE_POINTER, 8, .is_reference = true, .to = INT },
    [BASE] = { TT_TYPE_MEMBERS, 8, .name = "struct base" },
    [OTHER_BASE] = { TT_TYPE_MEMBERS, 8, .name = "struct other" },
    [VIRTUAL] = { TT_TYPE_MEMBERS, 16, .name = "struct virtual" },
    [DERIVED] = { TT_TYPE_MEMBERS, 24, .name = "struct derived" },
    [BOTH] = { TT_TYPE_MEMBERS, 16, .name = "struct both" },
    [SEVERAL] = { TT_TYPE_MEMBERS, 0, .is_declared = true, .is_several = true,
                  .name = "struct several" },
    [SEVERAL_P] = { TT_TYPE_POINTER, 8, .to = SEVERAL },
    [PER_CPU_STRUCT] = { TT_TYPE_MEMBERS, 8, .name = "struct each" },
    [ARRAY] = { TT_TYPE_ARRAY, 16, .to = INT },
};

static const TableMember members[] = {
    { BASE, { "x", INT, 0 } }, { BASE, { "only", INT, 32 } },
    { OTHER_BASE, { "x", INT, 0 } }, { OTHER_BASE, { "alone", INT, 32 } },
    { VIRTUAL, { NULL, BASE, 0, .is_base = true, .has_no_place = true } },
    { VIRTUAL, { "v", INT, 64 } },
    { DERIVED, { NULL, BASE, 0, .is_base = true } }, { DERIVED, { "x", INT, 64 } },
    { DERIVED, { "ref", INT_REF, 128 } }, { DERIVED, { "bits", INT, 99, 7 } },
    { DERIVED, { "fixed", INT, 0, .has_no_place = true } },
    { BOTH, { NULL, BASE, 0, .is_base = true } },
    { BOTH, { NULL, OTHER_BASE, 64, .is_base = true } },
    { PER_CPU_STRUCT, { "n", INT, 32 } },
};

static const TableType known_types[] = {
    { TT_TAG_NAMED, "char", UCHAR }, { TT_TAG_NAMED, "flag_t", BOOL },
    { TT_TAG_NAMED, "Job::Inner", BASE },
};

static const TableName names[] = {
    { "derived", { TT_NAME_DATA, 0x1000, DERIVED } },
    { "virt", { TT_NAME_DATA, 0x1000, VIRTUAL } },
    { "both", { TT_NAME_DATA, 0x1000, BOTH } },
    { "ref", { TT_NAME_DATA, 0x2000, INT_REF } }, { "n", { TT_NAME_DATA, 0x3000, INT } },
    { "several", { TT_NAME_DATA, 0x1000, SEVERAL_P } },
    { "each", { TT_NAME_DATA, 8, INT, .is_per_cpu = true } },
    { "each_ref", { TT_NAME_DATA, 8, INT_REF, .is_per_cpu = true } },
    { "each_struct", { TT_NAME_DATA, 8, PER_CPU_STRUCT, .is_per_cpu = true } },
    { "each_array", { TT_NAME_DATA, 8, ARRAY, .is_per_cpu = true } },
    { "each_label", { TT_NAME_ADDRESS, 8, .is_per_cpu = true } },
    { "lost", { TT_NAME_ADDRESS, 8, .lost = "a.dwo" } },
    { "array", { TT_NAME_DATA, 0x4000, ARRAY } }, { "fun", { TT_NAME_CODE, 0x5000 } },
    { "Job::BUSY", { TT_NAME_NUMBER, 7 } }, { "::n", { TT_NAME_DATA, 0x6000, INT } },
};

static const Table table = {
    infos, N_TYPES, members, G_N_ELEMENTS(members), known_types, G_N_ELEMENTS(known_types),
    names, G_N_ELEMENTS(names),
};
static TtTypes types;

typedef TtStatus Lowered(const char *text, const TtTypes *t, char **out, TtDiag *diag);

typedef struct Case {
    const char *text, *wanted;
} Case;

static void becomes(Lowered *lowered, const Case *c, size_t n)
{
    for (; n; n--, c++) {
        g_autofree char *got = NULL;
        TtDiag diag = { 0 };

        if (lowered(c->text, &types, &got, &diag) != TT_OK) {
            g_error("%s: %s", c->text, diag.text);
        }
        g_assert_cmpstr(got, ==, c->wanted);
    }
}

static void is_refused(Lowered *lowered, const Case *c, size_t n)
{
    for (; n; n--, c++) {
        TtDiag diag = { 0 };
        char *out = (char *)1;

        g_assert_cmpint(lowered(c->text, &types, &out, &diag), ==, TT_ERR_FORMAT);
        g_assert_null(out);
        if (!strstr(diag.text, c->wanted)) {
            g_error("'%s': %s", c->text, diag.text);
        }
    }
}

static void test_classes(void)
{
    static const Case fine[] = {
        { "derived.x", "*(s32 *)0x1008UL" }, { "derived.only", "*(s32 *)0x1004UL" },
        { "both.alone", "*(s32 *)0x100cUL" }, { "virt.v", "*(s32 *)0x1008UL" },
        { "derived.ref", "*(s32 *)*(u64 *)0x1010UL" },
        { "ref + 1", "*(s32 *)*(u64 *)0x2000UL + 1" },
        { "&ref == &n", "*(u64 *)0x2000UL == 0x3000UL" },
        { "n + sizeof ref", "*(s32 *)0x3000UL + 0x4UL" },
        { "n == Job::BUSY", "*(s32 *)0x3000UL == 7" },
        { "n?Job::BUSY:::n", "*(s32 *)0x3000UL ? 7 : *(s32 *)0x6000UL" },
        { "((Job::Inner *)$rdi)->only", "*(s32 *)((u64)$rdi + 0x4UL)" },
    };
    static const Case wrong[] = {
        { "both.x", "several base classes" },
        { "virt.x", "no fixed place in 'struct virtual'" },
        { "derived.fixed", "no fixed place" }, { "several->x", "several types" },
        { "n + sizeof *several", "several types" }, { "n1::x", "no symbol 'n1::x'" },
        { "n:: + 1", "operator" }, { "::5", "operand" }, { "Job::BUSY::", "operator" },
        { "struct", "a type is no value" }, { "int", "a type is no value" },
    };

    becomes(tt_lower, fine, G_N_ELEMENTS(fine));
    is_refused(tt_lower, wrong, G_N_ELEMENTS(wrong));
}

static void test_of_each_cpu(void)
{
    static const Case fine[] = {
        { "*(int *)($gs_base + (u64)&each)", "*(s32 *)(u64)($gs_base + (u64)0x8UL)" },
        { "n + sizeof(each)", "*(s32 *)0x3000UL + 0x4UL" },
        { "(u64)&each_struct.n + $rax", "(u64)0xcUL + $rax" },
    };
    static const Case wrong[] = {
        { "each", "($gs_base + (u64)&each)" }, { "*&each", "($gs_base + (u64)&each)" },
        { "(&each)[1]", "$gs_base" }, { "each_struct.n", "$gs_base" },
        { "(&each_struct)->n", "$gs_base" }, { "each_array[n]", "$gs_base" },
        { "*(int *)&each_struct", "$gs_base" }, { "each_ref", "$gs_base" },
        { "each_label", "$gs_base" }, { "lost", "file 'a.dwo'" },
    };

    becomes(tt_lower, fine, G_N_ELEMENTS(fine));
    is_refused(tt_lower, wrong, G_N_ELEMENTS(wrong));
}

static void test_conversions(void)
{
    static const Case fine[] = {
        { "(flag_t)n", "(bool)*(s32 *)0x3000UL" }, { "(char)n", "(u8)*(s32 *)0x3000UL" },
        { "*(char *)$rax == 0xff", "*(u8 *)(u64)$rax == 255" },
        { "*(char **)$rax", "*(u64 *)(u64)$rax" },
        { "*(signed char *)$rax", "*(s8 *)(u64)$rax" },
        { "(char signed)n", "(s8)*(s32 *)0x3000UL" }, { "$rax at array", "$rax at 0x4000UL" },
    };

    becomes(tt_lower, fine, G_N_ELEMENTS(fine));
}

static void test_places(void)
{
    static const Case fine[] = {
        { "n", "*(s32 *)0x3000UL" }, { "derived.bits", "*(u16 *)0x100cUL" },
        { "*(u8 *)$rax", "*(u8 *)(u64)$rax" }, { "ref", "*(s32 *)*(u64 *)0x2000UL" },
        { "array[1]", "*(s32 *)0x4004UL" },
    };
    static const Case wrong[] = {
        { "n + 1", "'n + 1' is not a place" }, { "&array[1]", "'&array[1]' is not a place" },
        { "(u8)n", "not a place" }, { "fun", "not a place" }, { "array", "array" },
        { "derived", "one of its members" }, { "each", "$gs_base" },
        { "n at fun", "operator" },
        { "*fun", "*" },
    };

    becomes(tt_lower_place, fine, G_N_ELEMENTS(fine));
    is_refused(tt_lower_place, wrong, G_N_ELEMENTS(wrong));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    types = table_types(&table);
    g_test_add_func("/tt/lower-names/classes", test_classes);
    g_test_add_func("/tt/lower-names/of-each-cpu", test_of_each_cpu);
    g_test_add_func("/tt/lower-names/conversions", test_conversions);
    g_test_add_func("/tt/lower-names/places", test_places);
    return g_test_run();
}
