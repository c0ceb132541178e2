/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page set: open addressing with linear probing. A slot belongs to the set when its
 * generation is the present one, so a new generation clears the set. A dropped key
 * leaves its slot dead: taken for the probing, but not found.
 *
 * I1: taken = slots of this generation, dead ones included.
 * I2: taken <= 3/4 of the slots, so that each probe ends.
 */
#include "pages/tt-pageset.h"

#include <assert.h>
#include <glib.h>

#define FIRST_SLOTS 1024u

typedef struct Slot {
    uint64_t key;
    void *val;
    uint32_t generation;        /* 0: never used */
    uint32_t dead;
} Slot;

struct TtPageSet {
    Slot *slot;
    uint64_t mask;              /* slots - 1; slots is a power of two */
    uint32_t generation;        /* from 1 */
    size_t taken, live;
};

TtPageSet *tt_pageset_new(void)
{
    TtPageSet *s = g_new0(TtPageSet, 1);

    s->slot = g_new0(Slot, FIRST_SLOTS);
    s->mask = FIRST_SLOTS - 1;
    s->generation = 1;
    return s;
}

void tt_pageset_free(TtPageSet *s)
{
    if (s) {
        g_free(s->slot);
        g_free(s);
    }
}

TtPageSet *tt_pageset_copy(const TtPageSet *s)
{
    TtPageSet *out = tt_pageset_new();

    for (uint64_t i = 0; s->live && i <= s->mask; i++) {
        const Slot *slot = &s->slot[i];

        if (slot->generation == s->generation && !slot->dead) {
            tt_pageset_put(out, slot->key, slot->val);
        }
    }
    return out;
}

size_t tt_pageset_bytes(const TtPageSet *s)
{
    return sizeof(*s) + (s->mask + 1) * sizeof(*s->slot);
}

/* The slot of @key, or the free one where it would go. */
static Slot *probe(const TtPageSet *s, uint64_t key)
{
    uint64_t i = (key * 0x9e3779b97f4a7c15u) >> 32;

    for (;; i++) {
        Slot *slot = &s->slot[i & s->mask];

        if (slot->generation != s->generation ||
            (slot->key == key && !slot->dead)) {
            return slot;
        }
    }
}

bool tt_pageset_find(const TtPageSet *s, uint64_t key, void **val)
{
    const Slot *slot = probe(s, key);

    if (slot->generation != s->generation) {
        return false;
    }
    *val = slot->val;
    return true;
}

static void grow(TtPageSet *s)
{
    Slot *old = s->slot;
    uint64_t slots = s->mask + 1;

    if (s->live > slots / 2) {
        s->mask = slots * 2 - 1;
    }
    s->slot = g_new0(Slot, s->mask + 1);
    s->taken = s->live;
    for (uint64_t i = 0; i < slots; i++) {
        if (old[i].generation == s->generation && !old[i].dead) {
            *probe(s, old[i].key) = old[i];
        }
    }
    g_free(old);
}

void tt_pageset_put(TtPageSet *s, uint64_t key, void *val)
{
    Slot *slot;

    if ((s->taken + 1) * 4 > (s->mask + 1) * 3) {       /* I2 */
        grow(s);
    }
    slot = probe(s, key);
    assert(slot->generation != s->generation);
    *slot = (Slot) { .key = key, .val = val, .generation = s->generation };
    s->taken++;
    s->live++;
}

void tt_pageset_drop(TtPageSet *s, uint64_t key)
{
    Slot *slot = probe(s, key);

    if (slot->generation == s->generation) {
        slot->dead = 1;
        s->live--;
    }
}

void tt_pageset_clear(TtPageSet *s)
{
    s->taken = s->live = 0;
    if (++s->generation == 0) {
        memset(s->slot, 0, (s->mask + 1) * sizeof(*s->slot));
        s->generation = 1;
    }
}

size_t tt_pageset_count(const TtPageSet *s)
{
    return s->live;
}
