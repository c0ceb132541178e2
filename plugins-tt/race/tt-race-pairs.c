/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The races that were found: one entry for two places of the code. */
#include "plugins-tt/race/tt-race-int.h"

typedef struct Pair {
    TtRacePair pair;
    uint64_t access;            /* the last one that was counted */
    bool is_open;               /* its first access may add bytes */
} Pair;

static uint64_t key_of(uint32_t a, uint32_t b)
{
    return (uint64_t)MIN(a, b) << 32 | MAX(a, b);
}

void tt_race_pairs_init(Pairs *p, unsigned max)
{
    *p = (Pairs) { .max = max };
    p->by_places = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    p->all = g_array_new(false, true, sizeof(Pair));
}

void tt_race_pairs_cleanup(Pairs *p)
{
    g_hash_table_destroy(p->by_places);
    g_array_free(p->all, true);
}

/* One access may race at several bytes, or with several readers. True: the first access of
 * the pair has more bytes now. */
static bool again(Pairs *p, Pair *pair, uint64_t access, uint64_t addr, uint64_t len)
{
    if (pair->access != access) {
        pair->access = access;
        pair->is_open = false;
        pair->pair.times++;
        p->races++;
    } else if (pair->is_open && addr == pair->pair.addr + pair->pair.len) {
        pair->pair.len += len;
        return true;
    }
    return false;
}

bool tt_race_pairs_add(Pairs *p, uint64_t access, uint64_t addr, uint64_t len,
                       const TtRaceSide *earlier, const TtRaceSide *later)
{
    uint64_t key = key_of(earlier->place, later->place);
    guint index = GPOINTER_TO_UINT(g_hash_table_lookup(p->by_places, &key));
    Pair pair = {
        .pair = { .addr = addr, .len = len, .earlier = *earlier, .later = *later,
                  .times = 1 },
        .access = access, .is_open = true,
    };

    if (index) {
        return again(p, &g_array_index(p->all, Pair, index - 1), access, addr, len);
    }
    if (p->all->len == p->max) {
        p->races += p->left_out != access;      /* which may race at several bytes */
        p->not_kept += p->left_out != access;
        p->left_out = access;
        return false;
    }
    p->races++;
    g_array_append_val(p->all, pair);
    g_hash_table_insert(p->by_places, g_memdup2(&key, sizeof(key)),
                        GUINT_TO_POINTER(p->all->len));
    return true;
}

void tt_race_pairs_note(Pairs *p, uint64_t addr, uint64_t len)
{
    for (guint i = 0; i < p->all->len; i++) {
        TtRacePair *pair = &g_array_index(p->all, Pair, i).pair;

        if (addr < pair->addr + pair->len && pair->addr < addr + len) {
            pair->is_atomic_later = true;
        }
    }
}

const TtRacePair *tt_race_pairs_at(const Pairs *p, size_t i)
{
    return &g_array_index(p->all, Pair, i).pair;
}
