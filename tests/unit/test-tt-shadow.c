/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A page in three copies: what each side wrote reaches the other, and nothing else. */
#include "hw-tt/vfio-user/tt-shadow.h"

#include <glib.h>

#define N TT_SHADOW_PAGE

typedef struct Page {
    uint8_t guest[N], shadow[N], base[N];
    size_t n_put, n_runs, last;
} Page;

static void put(void *opaque, size_t at, const uint8_t *bytes, size_t n)
{
    Page *p = opaque;

    g_assert_cmpuint(n, >, 0);
    g_assert_cmpuint(at + n, <=, N);
    g_assert_true(!p->n_runs || at > p->last);
    memcpy(p->guest + at, bytes, n);
    p->n_put += n;
    p->n_runs++;
    p->last = at + n - 1;
}

static size_t in(Page *p, size_t n)
{
    p->n_put = p->n_runs = 0;
    return tt_shadow_in(p->shadow, p->base, n, put, p);
}

static void test_in(void)
{
    g_autofree Page *p = g_new0(Page, 1);

    g_assert_cmpuint(in(p, N), ==, 0);
    p->shadow[0] = 1;
    p->shadow[63] = p->shadow[64] = 2;          /* a run over two pieces */
    p->shadow[N - 1] = 3;
    g_assert_cmpuint(in(p, N), ==, 4);
    g_assert_cmpuint(p->n_runs, ==, 3);
    g_assert_cmpuint(p->n_put, ==, 4);
    g_assert_cmpmem(p->guest, N, p->shadow, N);
    g_assert_cmpmem(p->base, N, p->shadow, N);
    g_assert_cmpuint(in(p, N), ==, 0);
    p->shadow[N - 1] = 4;
    g_assert_cmpuint(in(p, N - 1), ==, 0);      /* a page of fewer bytes */
    g_assert_cmpuint(in(p, N), ==, 1);
}

static void test_out(void)
{
    g_autofree Page *p = g_new0(Page, 1);

    p->guest[5] = 1;
    p->guest[4000] = 2;
    p->shadow[6] = 9;                           /* the device's, not seen yet */
    g_assert_cmpuint(tt_shadow_out(p->guest, p->shadow, p->base, N), ==, 2);
    g_assert_cmpuint(p->shadow[5], ==, 1);
    g_assert_cmpuint(p->shadow[4000], ==, 2);
    g_assert_cmpuint(p->shadow[6], ==, 9);
    g_assert_cmpuint(p->base[6], ==, 0);
    g_assert_cmpuint(tt_shadow_out(p->guest, p->shadow, p->base, N), ==, 0);
    g_assert_cmpuint(in(p, N), ==, 1);
    g_assert_cmpuint(p->guest[6], ==, 9);
}

/* Each byte has one writer: in the end all copies have what it wrote last. */
static void test_random(void)
{
    g_autofree Page *p = g_new0(Page, 1);
    g_autofree uint8_t *model = g_malloc0(N);

    for (unsigned round = 0; round < 3000; round++) {
        for (unsigned i = g_test_rand_int_range(0, 20); i; i--) {
            unsigned at = g_test_rand_int_range(0, N);
            uint8_t v = g_test_rand_int_range(0, 3);

            (at & 1 ? p->guest : p->shadow)[at] = model[at] = v;
        }
        if (g_test_rand_int_range(0, 2)) {
            in(p, N);
        } else {
            tt_shadow_out(p->guest, p->shadow, p->base, N);
        }
        if (!g_test_rand_int_range(0, 50)) {
            in(p, N);
            tt_shadow_out(p->guest, p->shadow, p->base, N);
            g_assert_cmpmem(p->guest, N, model, N);
            g_assert_cmpmem(p->shadow, N, model, N);
            g_assert_cmpmem(p->base, N, model, N);
        }
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/shadow/in", test_in);
    g_test_add_func("/shadow/out", test_out);
    g_test_add_func("/shadow/random", test_random);
    return g_test_run();
}
