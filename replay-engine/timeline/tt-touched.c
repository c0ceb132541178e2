/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Touched pages: a list of stretches, sorted by where they begin, and the one
 * that is being run. Stretches may overlap: one may begin within another,
 * after a movement into its middle.
 *
 * Invariants
 * F1  A stretch's filters hold every page that was told of between its begin
 *     and its end; nothing is ever taken out.
 * F2  No two stretches of the list begin at the same position.
 */
#include "timeline/tt-touched.h"

#include <glib.h>

#define WORDS (TT_TOUCHED_BITS / 64)
#define PAGES_MAX 64            /* of a range; more: yes */
#define LENGTH_MAX (1ull << 40)

typedef struct Filter {
    uint64_t words[WORDS];
} Filter;

typedef struct Stretch {
    uint64_t from, to;
    Filter used, written;
} Stretch;

struct TtTouched {
    GPtrArray *list;            /* of Stretch, by from (F2) */
    unsigned max;
    uint64_t length;            /* a stretch ends after so many positions */
    bool running;
    Stretch now;                /* to: as last noted */
};

/* ---- filters ---- */

/* Two independent bits of a good mix of @page. */
static void bits_of(uint64_t page, uint32_t bits[2])
{
    uint64_t h = page * 0x9e3779b97f4a7c15u;

    h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
    h ^= h >> 29;
    bits[0] = h % TT_TOUCHED_BITS;
    bits[1] = (h >> 32) % TT_TOUCHED_BITS;
}

static void set(Filter *f, const uint32_t bits[2])
{
    for (unsigned i = 0; i < 2; i++) {
        f->words[bits[i] / 64] |= 1ull << bits[i] % 64;
    }
}

static bool has(const Filter *f, uint64_t page)
{
    uint32_t bits[2];

    bits_of(page, bits);
    return f->words[bits[0] / 64] >> bits[0] % 64 &
        f->words[bits[1] / 64] >> bits[1] % 64 & 1;
}

static void merge(Stretch *s, const Stretch *other)
{
    s->to = MAX(s->to, other->to);
    for (unsigned i = 0; i < WORDS; i++) {
        s->used.words[i] |= other->used.words[i];
        s->written.words[i] |= other->written.words[i];
    }
}

/* ---- the list ---- */

static Stretch *at(const TtTouched *t, guint i)
{
    return g_ptr_array_index(t->list, i);
}

/* How far from @from on everything is known. */
static uint64_t known_up_to(const TtTouched *t, uint64_t from)
{
    for (guint i = 0; i < t->list->len && at(t, i)->from <= from; i++) {
        from = MAX(from, at(t, i)->to);
    }
    return from;
}

/* Every second one goes into the one before it. A gap between them stays one:
 * they are merged only where they touch. */
static void thin(TtTouched *t)
{
    guint kept = 0;

    for (guint i = 0; i < t->list->len; i++) {
        Stretch *s = at(t, i), *before = kept ? at(t, kept - 1) : NULL;

        if (before && s->from <= before->to &&
            MAX(s->to, before->to) - before->from <= 2 * t->length) {
            merge(before, s);
            g_free(s);
        } else {
            g_ptr_array_index(t->list, kept++) = s;
        }
    }
    g_ptr_array_set_size(t->list, kept);
    if (t->length < LENGTH_MAX) {
        t->length *= 2;
    }
}

/* More than enough of them, and none that touch: the oldest are forgotten. */
static void make_room(TtTouched *t)
{
    if (t->list->len >= t->max) {
        thin(t);
    }
    if (t->list->len >= t->max) {
        g_free(at(t, 0));
        g_ptr_array_remove_index(t->list, 0);
    }
}

static void keep(TtTouched *t, const Stretch *s)
{
    guint i;

    if (known_up_to(t, s->from) >= s->to) {
        return;
    }
    make_room(t);
    for (i = 0; i < t->list->len && at(t, i)->from < s->from; i++) {
    }
    if (i < t->list->len && at(t, i)->from == s->from) {
        merge(at(t, i), s);
    } else {
        g_ptr_array_insert(t->list, i, g_memdup2(s, sizeof(*s)));
    }
}

/* ---- for the caller ---- */

TtTouched *tt_touched_new(unsigned max)
{
    TtTouched *t = g_new0(TtTouched, 1);

    g_assert(max > 0);
    t->list = g_ptr_array_new();
    t->max = max;
    t->length = TT_TOUCHED_LENGTH;
    return t;
}

void tt_touched_free(TtTouched *t)
{
    if (t) {
        g_ptr_array_foreach(t->list, (GFunc)(void (*)(void))g_free, NULL);
        g_ptr_array_free(t->list, TRUE);
        g_free(t);
    }
}

void tt_touched_begin(TtTouched *t, uint64_t pos)
{
    memset(&t->now, 0, sizeof(t->now));
    t->now.from = t->now.to = pos;
    t->running = true;
}

void tt_touched_end(TtTouched *t)
{
    t->running = false;
}

void tt_touched_add(TtTouched *t, uint64_t page, bool written)
{
    uint32_t bits[2];

    if (!t->running) {
        return;
    }
    bits_of(page, bits);
    set(&t->now.used, bits);
    if (written) {
        set(&t->now.written, bits);
    }
}

void tt_touched_note(TtTouched *t, uint64_t pos)
{
    if (t->running && pos > t->now.to) {
        t->now.to = pos;
        keep(t, &t->now);
    }
}

void tt_touched_sync_point(TtTouched *t, uint64_t pos)
{
    if (!t->running) {
        tt_touched_begin(t, pos);
    } else if (pos - t->now.from >= t->length) {
        tt_touched_note(t, pos);
        tt_touched_begin(t, pos);
    }
}

bool tt_touched_may(const TtTouched *t, uint64_t from, uint64_t to,
                    uint64_t first, uint64_t last, bool written)
{
    if (last - first >= PAGES_MAX || known_up_to(t, from) < to) {
        return true;
    }
    for (guint i = 0; i < t->list->len && at(t, i)->from < to; i++) {
        const Stretch *s = at(t, i);

        for (uint64_t n = 0; s->to > from && n <= last - first; n++) {
            if (has(written ? &s->written : &s->used, first + n)) {
                return true;
            }
        }
    }
    return false;
}
