/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Function names of an ELF file: those of this very test, and of damaged copies.
 */
#include "debug/tt-elfsyms.h"

#include <glib.h>

static uint8_t *self;
static gsize self_len;

static void test_self(void)
{
    TtElfSyms *s;
    unsigned found = 0;

    g_assert_cmpint(tt_elfsyms_load(self, self_len, &s, NULL), ==, TT_OK);
    g_assert_cmpuint(tt_elfsyms_count(s), >, 10);
    /* Its own functions, wherever they were linked to. */
    for (uint64_t addr = 0; addr < self_len + (1 << 16); addr += 4) {
        uint64_t offset;
        const char *name = tt_elfsyms_find(s, addr, &offset);

        found |= name && !strcmp(name, "tt_elfsyms_load") ? 1 : 0;
        found |= name && !strcmp(name, "test_self") ? 2 : 0;
        g_assert_true(!name || !tt_elfsyms_size(s, addr) ||
                      offset <= tt_elfsyms_size(s, addr));
        g_assert_true(!name || offset <= addr);
    }
    g_assert_cmpuint(found, ==, 3);
    g_assert_null(tt_elfsyms_find(s, UINT64_MAX, &(uint64_t) { 0 }));
    g_assert_cmpuint(tt_elfsyms_size(s, UINT64_MAX), ==, 0);
    tt_elfsyms_free(s);
}

/* Its code is where it begins, and where its functions are. */
static void test_image(void)
{
    g_autofree uint8_t *copy = g_memdup2(self, self_len);
    TtElfImage image;
    uint64_t addr;
    bool is_code;
    TtElfSyms *s;

    g_assert_true(tt_elfsyms_image(self, self_len, &image));
    g_assert_true(image.low <= image.entry && image.entry < image.high);
    g_assert_cmpint(tt_elfsyms_load(self, self_len, &s, NULL), ==, TT_OK);
    g_assert_cmpuint(tt_elfsyms_address(s, "test_self", 9, &addr, &is_code), ==, 1);
    g_assert_true(image.low <= addr && addr < image.high);
    g_assert_cmpuint(tt_elfsyms_size(s, addr), >, 0);
    tt_elfsyms_free(s);
    g_assert_cmpuint(tt_elfsyms_machine(self, self_len), ==, copy[18]);
    g_assert_cmpuint(tt_elfsyms_machine(self, 63), ==, 0);
    copy[16] = 3;                                           /* a program of this kind... */
    g_assert_cmpint(tt_elfsyms_load(copy, self_len, &s, NULL), ==, TT_OK);
    g_assert_cmpint(tt_elfsyms_is_floating(s), ==, image.low < 0x100000);
    tt_elfsyms_free(s);
    copy[16] = 2;                                           /* and one with fixed addresses */
    copy[18] = 183;
    g_assert_cmpuint(tt_elfsyms_machine(copy, self_len), ==, 183);
    g_assert_cmpint(tt_elfsyms_load(copy, self_len, &s, NULL), ==, TT_OK);
    g_assert_false(tt_elfsyms_is_floating(s));
    tt_elfsyms_free(s);
    g_assert_false(tt_elfsyms_image(self, 64, &image));     /* its table is not there */
    copy[56] = copy[57] = 0;                                /* no segments */
    g_assert_false(tt_elfsyms_image(copy, self_len, &image));
}

/* As an object file its addresses are offsets; those of functions, into .text. */
static void test_relocatable(void)
{
    g_autofree uint8_t *copy = g_memdup2(self, self_len);
    TtElfSyms *s;

    g_assert_cmpint(tt_elfsyms_load(self, self_len, &s, NULL), ==, TT_OK);
    g_assert_false(tt_elfsyms_is_relocatable(s));
    tt_elfsyms_free(s);
    copy[16] = 1;
    g_assert_cmpint(tt_elfsyms_load(copy, self_len, &s, NULL), ==, TT_OK);
    g_assert_true(tt_elfsyms_is_relocatable(s));
    g_assert_true(tt_elfsyms_is_text(s, "test_self", 9));
    g_assert_false(tt_elfsyms_is_text(s, "self_len", 8));
    g_assert_false(tt_elfsyms_is_text(s, "nobody", 6));
    tt_elfsyms_free(s);
}

static void test_others(void)
{
    static const uint8_t text[] = "ffffffff81000000 T _text\n padded, so that it "
        "is longer than a header";
    TtElfSyms *s;
    TtDiag diag = { 0 };

    g_assert_false(tt_elfsyms_is_elf(text, sizeof(text)));
    g_assert_cmpint(tt_elfsyms_load(text, sizeof(text), &s, &diag), ==,
                    TT_ERR_FORMAT);
    g_assert_true(!s && diag.text[0]);
    g_assert_cmpint(tt_elfsyms_load(self, 63, &s, NULL), ==, TT_ERR_FORMAT);
}

/* Whatever is changed: no crash, no byte outside (under a sanitizer). */
static void test_damage(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);
    g_autofree uint8_t *copy = g_malloc(self_len);
    uint64_t table = tt_get_le64(self + 40);

    for (unsigned round = 0; round < 300; round++) {
        gsize len = round % 3 ? self_len :
            (gsize)g_rand_int_range(rand, 64, self_len);
        TtElfSyms *s;

        memcpy(copy, self, len);
        for (unsigned i = 0; i < 3; i++) {
            copy[g_rand_int_range(rand, 4, 64)] ^= 1 << round % 8;
            if (table + 64 < len) {
                copy[table + g_rand_int_range(rand, 0, len - table)] ^=
                    1 << (round + i) % 8;
            }
        }
        tt_elfsyms_image(copy, len, &(TtElfImage) { 0 });
        if (tt_elfsyms_load(copy, len, &s, NULL) == TT_OK) {
            uint64_t offset;

            for (uint64_t addr = 0; addr < self_len; addr += 997) {
                const char *name = tt_elfsyms_find(s, addr, &offset);

                g_assert_true(!name || strlen(name) < 512);
            }
            tt_elfsyms_free(s);
        }
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_assert_true(g_file_get_contents("/proc/self/exe", (char **)&self,
                                      &self_len, NULL));
    g_test_add_func("/tt/elfsyms/names-functions", test_self);
    g_test_add_func("/tt/elfsyms/image", test_image);
    g_test_add_func("/tt/elfsyms/relocatable", test_relocatable);
    g_test_add_func("/tt/elfsyms/refuses-other-files", test_others);
    g_test_add_func("/tt/elfsyms/survives-damage", test_damage);
    return g_test_run();
}
