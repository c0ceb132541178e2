/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ring of bytes, and beside it a ring of where each step begins. Offsets only grow;
 * a place in the ring is an offset modulo its size. See tt-undoring.h.
 */
#include "timeline/tt-undoring.h"

#include <assert.h>
#include <glib.h>
#include <string.h>

#define BYTES_MIN (16u << 10)
#define BLOCK 256               /* bytes that are compared at once */

typedef struct Head {           /* after its bytes, which are padded to 8 */
    uint64_t place;
    uint32_t kind, len;
} Head;

typedef struct Step {
    uint64_t pos;               /* it begins there */
    uint64_t at;                /* offset of its first note */
} Step;

struct TtUndoRing {
    uint8_t *data;
    Step *steps;
    size_t size, n_steps;       /* powers of two */
    uint64_t head;              /* offset of what comes next */
    uint64_t first, next;       /* steps, numbered; [next] is the open one */
    uint64_t top;               /* where the last one ended */
    bool is_open, is_lost;      /* lost: the open one is larger than the ring */
    uint8_t scratch[TT_UNDORING_NOTE_MAX];
};

static Step *step_at(const TtUndoRing *r, uint64_t number)
{
    return &r->steps[number & (r->n_steps - 1)];
}

static size_t padded(size_t len)
{
    return (len + 7) & ~(size_t)7;
}

static void put_bytes(TtUndoRing *r, uint64_t at, const void *from, size_t len)
{
    size_t begin = at & (r->size - 1), n = MIN(len, r->size - begin);

    memcpy(r->data + begin, from, n);
    memcpy(r->data, (const uint8_t *)from + n, len - n);
}

static void get_bytes(const TtUndoRing *r, uint64_t at, void *to, size_t len)
{
    size_t begin = at & (r->size - 1), n = MIN(len, r->size - begin);

    memcpy(to, r->data + begin, n);
    memcpy((uint8_t *)to + n, r->data, len - n);
}

TtUndoRing *tt_undoring_new(size_t bytes)
{
    TtUndoRing *r = g_new0(TtUndoRing, 1);

    r->size = BYTES_MIN;
    while (r->size <= bytes / 2) {
        r->size *= 2;
    }
    r->n_steps = r->size / TT_UNDORING_STEP_MIN;
    r->data = g_try_malloc(r->size);
    r->steps = g_try_new(Step, r->n_steps);
    if (!r->data || !r->steps) {
        tt_undoring_free(r);
        return NULL;
    }
    tt_undoring_clear(r);
    return r;
}

void tt_undoring_free(TtUndoRing *r)
{
    if (r) {
        g_free(r->data);
        g_free(r->steps);
        g_free(r);
    }
}

void tt_undoring_clear(TtUndoRing *r)
{
    r->head = r->first = r->next = 0;
    r->top = UINT64_MAX;
    r->is_open = r->is_lost = false;
}

bool tt_undoring_is_open(const TtUndoRing *r)
{
    return r->is_open;
}

size_t tt_undoring_steps(const TtUndoRing *r)
{
    return r->next - r->first;
}

size_t tt_undoring_bytes(const TtUndoRing *r)
{
    return r->first < r->next ? r->head - step_at(r, r->first)->at : 0;
}

/* ---- filling ---- */

void tt_undoring_begin(TtUndoRing *r, uint64_t pos)
{
    assert(!r->is_open);
    if (pos != r->top) {
        tt_undoring_clear(r);
    }
    if (r->next - r->first == r->n_steps) {
        r->first++;
    }
    *step_at(r, r->next) = (Step) { .pos = pos, .at = r->head };
    r->is_open = true;
}

/* False: the open step itself would have to go. */
static bool make_room(TtUndoRing *r, size_t len)
{
    while (r->first < r->next && r->head + len - step_at(r, r->first)->at > r->size) {
        r->first++;
    }
    return r->head + len - step_at(r, r->first)->at <= r->size;
}

void tt_undoring_note(TtUndoRing *r, uint32_t kind, uint64_t place, const void *old,
                      size_t len)
{
    Head h = { .place = place, .kind = kind, .len = len };

    assert(r->is_open && len);
    if (len > TT_UNDORING_NOTE_MAX) {
        tt_undoring_note(r, kind, place, old, TT_UNDORING_NOTE_MAX);
        tt_undoring_note(r, kind, place + TT_UNDORING_NOTE_MAX,
                         (const uint8_t *)old + TT_UNDORING_NOTE_MAX,
                         len - TT_UNDORING_NOTE_MAX);
        return;
    }
    if (r->is_lost || !make_room(r, padded(len) + sizeof(h))) {
        r->is_lost = true;
        return;
    }
    put_bytes(r, r->head, old, len);
    r->head += padded(len);
    put_bytes(r, r->head, &h, sizeof(h));
    r->head += sizeof(h);
}

/* Notes the words of a block from the first to the last that differ. */
static void note_block(TtUndoRing *r, uint32_t kind, uint64_t place, uint8_t *before,
                       const uint8_t *now, size_t len)
{
    size_t from = 0, to = len;

    while (!memcmp(before + from, now + from, 8)) {
        from += 8;
    }
    while (!memcmp(before + to - 8, now + to - 8, 8)) {
        to -= 8;
    }
    tt_undoring_note(r, kind, place + from, before + from, to - from);
    memcpy(before + from, now + from, to - from);
}

void tt_undoring_note_changes(TtUndoRing *r, uint32_t kind, uint64_t place, void *before,
                              const void *now, size_t len)
{
    assert(len % 8 == 0);
    for (size_t at = 0; at < len; at += BLOCK) {
        size_t n = MIN(len - at, BLOCK);

        if (memcmp((uint8_t *)before + at, (const uint8_t *)now + at, n)) {
            note_block(r, kind, place + at, (uint8_t *)before + at,
                       (const uint8_t *)now + at, n);
        }
    }
}

void tt_undoring_end(TtUndoRing *r, uint64_t pos)
{
    assert(r->is_open && pos > step_at(r, r->next)->pos);
    if (r->is_lost) {
        tt_undoring_clear(r);
    } else {
        r->is_open = false;
        r->next++;
    }
    r->top = pos;
}

/* ---- back ---- */

/* The number of the step that begins at @pos; @next: there is none. */
static uint64_t find(const TtUndoRing *r, uint64_t pos)
{
    uint64_t low = r->first, high = r->next;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if (step_at(r, middle)->pos < pos) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < r->next && step_at(r, low)->pos == pos ? low : r->next;
}

bool tt_undoring_holds(const TtUndoRing *r, uint64_t pos)
{
    return !r->is_lost && find(r, pos) < r->next;
}

void tt_undoring_back(TtUndoRing *r, uint64_t pos, TtUndoRingPut *put, void *opaque)
{
    uint64_t number = find(r, pos), to;

    assert(!r->is_lost && number < r->next);
    to = step_at(r, number)->at;
    while (r->head > to) {
        Head h;

        r->head -= sizeof(h);
        get_bytes(r, r->head, &h, sizeof(h));
        r->head -= padded(h.len);
        get_bytes(r, r->head, r->scratch, h.len);
        put(opaque, h.kind, h.place, r->scratch, h.len);
    }
    r->next = number;
    r->top = pos;
    r->is_open = false;
}
