/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt hub: frames on their way, until they are due.
 */
#include "tt-tool-hub.h"

#define WAITING_MAX     (256u << 20)    /* bytes */

uint64_t hub_now_ns(void)
{
    return (uint64_t)g_get_monotonic_time() * 1000;
}

static gint by_time(gconstpointer a, gconstpointer b, gpointer unused)
{
    const HubFrame *x = a, *y = b;

    return x->at_ns != y->at_ns ? (x->at_ns < y->at_ns ? -1 : 1) :
           x->serial < y->serial ? -1 : x->serial > y->serial;
}

/* The one timer goes off when the first of those that wait is due. */
static void arm_timer(Hub *h)
{
    HubFrame *f;
    gint64 due_us = -1;

    if (!g_sequence_is_empty(h->waiting)) {
        f = g_sequence_get(g_sequence_get_begin_iter(h->waiting));
        due_us = (f->at_ns + 999) / 1000;
    }
    g_source_set_ready_time(h->timer, due_us);
}

/* Of memory, about, while it waits. */
static size_t bytes_of(const HubFrame *f)
{
    return sizeof(*f) + f->frame.len + 64;
}

static gboolean time_passed(gpointer opaque)
{
    Hub *h = opaque;
    uint64_t now = hub_now_ns();

    while (!g_sequence_is_empty(h->waiting)) {
        GSequenceIter *first = g_sequence_get_begin_iter(h->waiting);
        HubFrame *f = g_sequence_get(first);

        if (f->at_ns > now) {
            break;
        }
        hub_send(h, f);
        h->waiting_bytes -= bytes_of(f);
        g_sequence_remove(first);
    }
    arm_timer(h);
    return G_SOURCE_CONTINUE;
}

static gboolean timer_dispatch(GSource *source, GSourceFunc func, gpointer opaque)
{
    return func(opaque);
}

void hub_wait_for(Hub *h, const HubFrame *f)
{
    size_t len = f->frame.len;
    HubFrame *w;

    if (h->waiting_bytes + bytes_of(f) > WAITING_MAX) {
        hub_settle(h, f, HUB_FULL);
        hub_say(h, "more than %u MB of frames are queued: frames are lost",
                WAITING_MAX >> 20);
        return;
    }
    w = g_malloc(sizeof(*w) + len);
    *w = *f;
    memcpy(w->data, f->frame.data, len);
    w->frame.data = w->data;
    w->serial = h->serial++;
    h->waiting_bytes += bytes_of(w);
    if (g_sequence_iter_is_begin(g_sequence_insert_sorted(h->waiting, w, by_time, NULL))) {
        arm_timer(h);
    }
}

static GSourceFuncs timer_funcs = { .dispatch = timer_dispatch };

void hub_wait_init(Hub *h)
{
    h->waiting = g_sequence_new(g_free);
    h->timer = g_source_new(&timer_funcs, sizeof(GSource));
    g_source_set_callback(h->timer, time_passed, h, NULL);
    g_source_attach(h->timer, NULL);
}

static void forget(gpointer frame, gpointer hub)
{
    hub_settle(hub, frame, HUB_PEER_GONE);
}

void hub_wait_end(Hub *h)
{
    g_source_destroy(h->timer);
    g_source_unref(h->timer);
    g_sequence_foreach(h->waiting, forget, h);
    g_sequence_free(h->waiting);
}
