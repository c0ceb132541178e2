/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Questions that wait, and lines for the tool.
 */
#include "qemu/osdep.h"
#include "tt-origin-queue-int.h"
#include "session/tt-events.h"
#include "qemu/timer.h"

#define TELL_MS         200
#define PENDING_MAX     100000

static GQueue pending = G_QUEUE_INIT;   /* of TtOriginQuestion; the next one first */
static unsigned n_after;                /* put since tt_origin_put_first */
static int64_t told_ms;

void tt_origin_say(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    tt_tell_tool("tt-origin", fmt, ap);
    va_end(ap);
}

void tt_origin_say_way(uint64_t pos)
{
    int64_t now = qemu_clock_get_ms(QEMU_CLOCK_REALTIME);

    if (now - told_ms >= TELL_MS) {
        told_ms = now;
        tt_origin_say("way position=%" PRIu64, pos);
    }
}

/* ---- questions ---- */

void tt_origin_put_first(void)
{
    n_after = 0;
}

void tt_origin_say_cut(const TtOriginQuestion *q)
{
    char place[48];

    tt_origin_say("cut parent=%u place=%s", q->parent,
                  tt_flow_place_text(&q->place.at, place, sizeof(place)));
}

void tt_origin_put(const TtOriginQuestion *q)
{
    if (g_queue_get_length(&pending) < PENDING_MAX) {
        g_queue_push_nth(&pending, g_memdup2(q, sizeof(*q)), n_after++);
    } else {
        tt_origin_say_cut(q);
    }
}

TtOriginQuestion *tt_origin_take(void)
{
    return g_queue_pop_head(&pending);
}

void tt_origin_drop(unsigned depth)
{
    for (GList *l = pending.head, *n; l; l = n) {
        TtOriginQuestion *q = l->data;

        n = l->next;
        if (q->depth >= depth) {
            tt_origin_say_cut(q);
            g_free(q);
            g_queue_delete_link(&pending, l);
        }
    }
}
