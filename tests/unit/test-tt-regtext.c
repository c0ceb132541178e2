/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Registers of a text: each gets its name and its value, and what differs is found. */
#include "debug/tt-regtext.h"

#include <glib.h>

static const char text[] =
    "RAX=0000000000000001 RBX=0000000000000002\n"
    "R8 =00000000000000ff RIP=00200e5d RFL=00000246 [---Z-P-] CPL=3 HLT=0\n"
    "ES =0010 00000000 ffffffff 00cf9300 DPL=0 DS   [-WA]\n"
    "CS =0008 00000000 ffffffff 00cf9a00 DPL=0 CS32 [-R-]\n"
    "GDT=     00000000 0000ffff\n"
    "FSW=0000 [ST=5] FTW=00\n"
    "FPR0=0000000000000000 0000 FPR1=0000000000000001 4000\n"
    "no register here\n";

static void is(const TtRegs *r, const char *name, const char *value)
{
    g_assert_cmpstr(tt_regs_find(r, name), ==, value);
}

static void test_names_and_values(void)
{
    TtRegs *r = tt_regs_parse(text);

    is(r, "RAX", "0000000000000001");
    is(r, "RBX", "0000000000000002");
    is(r, "R8", "00000000000000ff");
    is(r, "RIP", "00200e5d");
    is(r, "RFL", "00000246 [---Z-P-]");
    is(r, "CPL", "3");
    is(r, "HLT", "0");
    is(r, "CS", "0008 00000000 ffffffff 00cf9a00");
    is(r, "ES.DPL", "0 DS   [-WA]");
    is(r, "CS.DPL", "0 CS32 [-R-]");
    is(r, "DPL", NULL);
    is(r, "GDT", "00000000 0000ffff");
    is(r, "FSW", "0000");
    is(r, "ST", "5");
    is(r, "FTW", "00");
    is(r, "FPR0", "0000000000000000 0000");
    is(r, "FPR1", "0000000000000001 4000");
    is(r, "here", NULL);
    g_assert_cmpuint(tt_regs_count(r), ==, 17);
    g_assert_cmpstr(tt_regs_at(r, 2)->name, ==, "R8");
    tt_regs_free(r);
}

static void test_nonsense(void)
{
    static const char *const texts[] = {
        "", "=", "==", "a=", "=b", " = = ", "a==b", "[=]", "\n\n=\n", "a=[", "a=]",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        TtRegs *r = tt_regs_parse(texts[i]);

        for (size_t k = 0; k < tt_regs_count(r); k++) {
            g_assert_true(*tt_regs_at(r, k)->name && *tt_regs_at(r, k)->value);
        }
        tt_regs_free(r);
    }
    tt_regs_free(NULL);
}

static void note(void *opaque, const char *name, const char *a, const char *b)
{
    g_string_append_printf(opaque, "%s %s %s;", name, a ? a : "-", b ? b : "-");
}

static void test_differences(void)
{
    TtRegs *a = tt_regs_parse("EAX=1 EBX=2 ES =3 DPL=0\nCS =4 DPL=3\n");
    TtRegs *b = tt_regs_parse("EAX=1 EBX=5 ES =3 DPL=0\nCS =4 DPL=2\nR9=7\n");
    GString *s = g_string_new(NULL);

    g_assert_cmpuint(tt_regs_compare(a, a, note, s), ==, 0);
    g_assert_cmpstr(s->str, ==, "");
    g_assert_cmpuint(tt_regs_compare(a, b, note, s), ==, 3);
    g_assert_cmpstr(s->str, ==, "EBX 2 5;CS.DPL 3 2;R9 - 7;");
    g_string_truncate(s, 0);
    g_assert_cmpuint(tt_regs_compare(b, a, note, s), ==, 3);
    g_assert_cmpstr(s->str, ==, "EBX 5 2;CS.DPL 2 3;R9 7 -;");
    g_string_free(s, true);
    tt_regs_free(a);
    tt_regs_free(b);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/regtext/names-and-values", test_names_and_values);
    g_test_add_func("/tt/regtext/nonsense-is-left-out", test_nonsense);
    g_test_add_func("/tt/regtext/finds-what-differs", test_differences);
    return g_test_run();
}
