/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Page set against a GHashTable, with keys that collide and many generations. */
#include "pages/tt-pageset.h"

#include <glib.h>

static void compare(TtPageSet *s, GHashTable *model, const uint64_t *keys,
                    unsigned n)
{
    g_assert_cmpuint(tt_pageset_count(s), ==, g_hash_table_size(model));
    for (unsigned i = 0; i < n; i++) {
        void *val = &val, *want;
        bool in = g_hash_table_lookup_extended(model, &keys[i], NULL, &want);

        g_assert_cmpint(tt_pageset_find(s, keys[i], &val), ==, in);
        g_assert_true(val == (in ? want : &val));
    }
}

static void test_model(void)
{
    enum { KEYS = 6000 };
    g_autofree uint64_t *keys = g_new(uint64_t, KEYS);
    TtPageSet *s = tt_pageset_new();
    GHashTable *model = g_hash_table_new(g_int64_hash, g_int64_equal);
    GRand *rand = g_rand_new_with_seed(20261122);

    for (unsigned i = 0; i < KEYS; i++) {
        keys[i] = (uint64_t)i << (i & 1 ? 12 : 36);     /* 0 is a key as well */
        if (i & 1) {
            keys[i] |= 3;
        }
    }
    for (unsigned step = 0; step < 400000; step++) {
        uint64_t *key = &keys[g_rand_int_range(rand, 0, step < 200000 ? 40 :
                                               KEYS)];
        bool in = g_hash_table_contains(model, key);
        unsigned what = g_rand_int_range(rand, 0, 1000);

        if (what == 0) {
            tt_pageset_clear(s);
            g_hash_table_remove_all(model);
        } else if (what < 300) {
            tt_pageset_drop(s, *key);
            g_hash_table_remove(model, key);
        } else if (!in) {
            void *val = what & 1 ? key : NULL;

            tt_pageset_put(s, *key, val);
            g_hash_table_insert(model, key, val);
        }
        if (step % 5003 == 0) {
            TtPageSet *old = s;

            s = tt_pageset_copy(old);
            tt_pageset_clear(old);
            tt_pageset_free(old);
            compare(s, model, keys, KEYS);
        }
    }
    compare(s, model, keys, KEYS);
    g_rand_free(rand);
    g_hash_table_unref(model);
    tt_pageset_free(s);
}

/* Put and drop of one key for ever: dead slots must be swept, not pile up. */
static void test_dead(void)
{
    TtPageSet *s = tt_pageset_new();
    void *val;

    for (unsigned i = 0; i < 100000; i++) {
        tt_pageset_put(s, 4096, s);
        g_assert_true(tt_pageset_find(s, 4096, &val) && val == s);
        tt_pageset_drop(s, 4096);
        g_assert_false(tt_pageset_find(s, 4096, &val));
    }
    g_assert_cmpuint(tt_pageset_count(s), ==, 0);
    tt_pageset_free(s);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/pageset/model", test_model);
    g_test_add_func("/pageset/dead", test_dead);
    return g_test_run();
}
