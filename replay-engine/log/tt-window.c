/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The window of a flight recorder.
 *
 * I1: parts have ascending numbers without a gap, and ascending first segments.
 * I2: points ascend by position and by segment.
 * I3: while there is a point, the part that holds the oldest one's segment, and all
 *     after it, are there: only spent parts are dropped. That segment was sealed
 *     before any older point was called surplus.
 */
#include "log/tt-window.h"

#include <assert.h>
#include <glib.h>

/*
 * A part is a 32nd of the log, so that little is kept that is not needed: with
 * parts of like length the log is some 3 % longer than its window; and their
 * number stays small however long it gets (32 for each e-fold of its size).
 */
#define PART_SHARE      32
#define PART_BYTES_MIN  (64u << 10)
#define PART_BYTES_LEAST (16u << 10)    /* under a tight limit */

/* Of the limit of the log: when it is longer, the window gives way ... */
#define FULL_SHARE(limit) ((limit) / 4 * 3)
/* ... and a point is wanted after so much of it. */
#define POINT_SHARE     8

typedef struct Part {
    uint32_t number;
    uint64_t seq, bytes;
} Part;

struct TtWindow {
    TtWindowLimits limits;
    GArray *parts;              /* Part */
    GArray *points;             /* TtWindowPoint */
    uint64_t bytes;             /* of all parts */
    uint64_t end_seq;           /* segments before it are whole in them */
    uint64_t since_point;       /* written since the newest point came */
};

TtWindow *tt_window_new(const TtWindowLimits *limits)
{
    TtWindow *w = g_new0(TtWindow, 1);

    w->limits = *limits;
    w->parts = g_array_new(false, false, sizeof(Part));
    w->points = g_array_new(false, false, sizeof(TtWindowPoint));
    return w;
}

void tt_window_free(TtWindow *w)
{
    if (w) {
        g_array_unref(w->parts);
        g_array_unref(w->points);
        g_free(w);
    }
}

void tt_window_set_limits(TtWindow *w, const TtWindowLimits *limits)
{
    w->limits = *limits;
}

/* ---- the log ---- */

static Part *part_at(const TtWindow *w, unsigned i)
{
    return &g_array_index(w->parts, Part, i);
}

void tt_window_begin_part(TtWindow *w, uint32_t number, uint64_t seq)
{
    Part p = { .number = number, .seq = seq };

    assert(number);
    if (w->parts->len) {                                    /* I1 */
        const Part *last = part_at(w, w->parts->len - 1);

        assert(number == last->number + 1 && seq >= last->seq);
    }
    g_array_append_val(w->parts, p);
}

void tt_window_grow(TtWindow *w, uint64_t bytes, uint64_t end_seq)
{
    assert(w->parts->len && end_seq >= w->end_seq);
    w->end_seq = end_seq;
    part_at(w, w->parts->len - 1)->bytes += bytes;
    w->bytes += bytes;
    w->since_point += bytes;
}

bool tt_window_wants_part(const TtWindow *w)
{
    uint64_t least = PART_BYTES_MIN;

    if (!w->parts->len) {
        return false;
    }
    if (w->limits.log_bytes) {
        least = CLAMP(w->limits.log_bytes / PART_SHARE, PART_BYTES_LEAST,
                      PART_BYTES_MIN);
    }
    return part_at(w, w->parts->len - 1)->bytes >=
        MAX(least, w->bytes / PART_SHARE);
}

uint64_t tt_window_log_bytes(const TtWindow *w)
{
    return w->bytes;
}

unsigned tt_window_n_parts(const TtWindow *w)
{
    return w->parts->len;
}

uint32_t tt_window_oldest_part(const TtWindow *w)
{
    return w->parts->len ? part_at(w, 0)->number : 0;
}

/* A recorder that is killed leaves no more of the log than that. */
static bool is_in_log(const TtWindow *w, const TtWindowPoint *p)
{
    return p->seq < w->end_seq;
}

uint32_t tt_window_spent_part(const TtWindow *w)
{
    TtWindowPoint first;

    if (w->parts->len < 2 || !tt_window_first(w, &first) ||
        !is_in_log(w, &first) || part_at(w, 1)->seq > first.seq) {
        return 0;
    }
    return part_at(w, 0)->number;
}

void tt_window_drop_part(TtWindow *w)
{
    assert(tt_window_spent_part(w));                        /* I3 */
    w->bytes -= part_at(w, 0)->bytes;
    g_array_remove_index(w->parts, 0);
}

/* ---- points ---- */

static const TtWindowPoint *point_at(const TtWindow *w, unsigned i)
{
    return &g_array_index(w->points, TtWindowPoint, i);
}

void tt_window_add(TtWindow *w, const TtWindowPoint *p)
{
    assert(p->id);
    if (w->points->len) {                                   /* I2 */
        const TtWindowPoint *last = point_at(w, w->points->len - 1);

        assert(p->pos > last->pos && p->seq >= last->seq);
    }
    g_array_append_vals(w->points, p, 1);
    w->since_point = 0;
}

void tt_window_remove(TtWindow *w, uint32_t id)
{
    for (unsigned i = 0; i < w->points->len; i++) {
        if (point_at(w, i)->id == id) {
            g_array_remove_index(w->points, i);
            return;
        }
    }
}

size_t tt_window_n_points(const TtWindow *w)
{
    return w->points->len;
}

bool tt_window_first(const TtWindow *w, TtWindowPoint *p)
{
    if (w->points->len) {
        *p = *point_at(w, 0);
    }
    return w->points->len;
}

uint32_t tt_window_second(const TtWindow *w)
{
    return w->points->len > 1 && is_in_log(w, point_at(w, 1)) ?
        point_at(w, 1)->id : 0;
}

/* Bytes of the parts that a window needs which begins at segment @seq. */
static uint64_t bytes_from(const TtWindow *w, uint64_t seq)
{
    uint64_t bytes = w->bytes;

    for (unsigned i = 0; i + 1 < w->parts->len &&
         part_at(w, i + 1)->seq <= seq; i++) {
        bytes -= part_at(w, i)->bytes;
    }
    return bytes;
}

uint32_t tt_window_surplus(const TtWindow *w, uint64_t now_ns)
{
    uint64_t limit = w->limits.log_bytes;
    const TtWindowPoint *first, *next;

    if (!tt_window_second(w)) {
        return 0;
    }
    first = point_at(w, 0);
    next = point_at(w, 1);
    if (now_ns >= next->ns && now_ns - next->ns >= w->limits.ns) {
        return first->id;
    }
    return limit && bytes_from(w, first->seq) > FULL_SHARE(limit) ? first->id
        : 0;
}

bool tt_window_wants_point(const TtWindow *w)
{
    return w->limits.log_bytes &&
        w->since_point > w->limits.log_bytes / POINT_SHARE;
}
