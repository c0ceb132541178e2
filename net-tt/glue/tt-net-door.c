/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The door of a netdev tt: see the header. What this side says up to READY fits into the
 * buffer of any socket, so nobody waits to write.
 */
#include "qemu/osdep.h"
#include "tt-net-door-int.h"
#include "net-tt/tt-alive.h"
#include <sys/random.h>

#define PATIENCE_MS     10000   /* until it has said READY */
/* A member needs a round trip to say READY. In that time no more strangers than this are let
 * in, as long as it takes less than some milliseconds; else the member tries again. */
#define GUESTS_MAX      64
#define READ_BYTES      4096

/* One who waits. */
typedef struct Guest {
    TtNetDoor *door;
    QIOChannel *ioc;
    TtLink *link;
    guint read_tag, patience_tag;
} Guest;

struct TtNetDoor {
    TtNetConnOptions o;
    const TtNetDoorOps *ops;
    void *opaque;
    GQueue guests;              /* of Guest, in the order in which they came */
};

/* Out of the door, without a word. */
static void remove_guest(Guest *g)
{
    g_queue_remove(&g->door->guests, g);
    if (g->read_tag) {
        g_source_remove(g->read_tag);
    }
    if (g->patience_tag) {
        g_source_remove(g->patience_tag);
    }
    if (g->ioc) {
        qio_channel_close(g->ioc, NULL);
        object_unref(OBJECT(g->ioc));
    }
    tt_link_free(g->link);
    g_free(g);
}

static void turn_away(Guest *g)
{
    TtNetDoor *d = g->door;

    remove_guest(g);
    d->ops->leaves(d->opaque);
}

static void let_in(Guest *g)
{
    TtNetDoor *d = g->door;
    QIOChannel *ioc = g_steal_pointer(&g->ioc);
    TtLink *link = g_steal_pointer(&g->link);

    remove_guest(g);
    d->ops->enters(d->opaque, ioc, link);
}

/* All that this side has to say. False: it cannot. */
static bool say_all(Guest *g)
{
    const uint8_t *out;
    size_t len;

    while (out = tt_link_out(g->link, &len), len) {
        ssize_t n = qio_channel_write(g->ioc, (const char *)out, len, NULL);

        if (n <= 0) {
            return false;
        }
        tt_link_sent(g->link, n);
    }
    return true;
}

static gboolean read_ready(QIOChannel *ioc, GIOCondition condition, gpointer opaque)
{
    Guest *g = opaque;
    uint8_t bytes[READ_BYTES];
    ssize_t n = qio_channel_read(ioc, (char *)bytes, sizeof(bytes), NULL);
    TtStatus st = TT_END;
    TtDiag diag;

    if (n == QIO_CHANNEL_ERR_BLOCK) {
        return G_SOURCE_CONTINUE;
    }
    if (n > 0) {
        tt_link_put(g->link, bytes, n);
        st = tt_link_meet(g->link, &diag);
        if (st < 0) {
            tt_net_say(g->door->o.say, "%s", diag.text);
        }
    }
    if (n > 0 && st >= 0 && say_all(g)) {
        if (st == TT_END) {
            return G_SOURCE_CONTINUE;
        }
        g->read_tag = 0;
        let_in(g);
    } else {
        g->read_tag = 0;
        turn_away(g);
    }
    return G_SOURCE_REMOVE;
}

static gboolean lose_patience(gpointer opaque)
{
    Guest *g = opaque;

    g->patience_tag = 0;
    tt_net_say(g->door->o.say, "the peer did not introduce itself within %d s: disconnected",
               PATIENCE_MS / 1000);
    turn_away(g);
    return G_SOURCE_REMOVE;
}

void tt_net_door_came(TtNetDoor *d, QIOChannelSocket *sioc)
{
    TtLinkOptions o = { .group = d->o.group, .key = d->o.key, .key_len = d->o.key_len };
    Guest *g;

    if (getrandom(o.nonce, sizeof(o.nonce), 0) != sizeof(o.nonce)) {
        tt_net_say(d->o.say, "cannot get random numbers for the connection: %s",
                   strerror(errno));
        d->ops->leaves(d->opaque);
        return;
    }
    if (d->guests.length == GUESTS_MAX) {
        tt_net_say(d->o.say, "a peer that has not introduced itself gives way to another");
        turn_away(g_queue_peek_head(&d->guests));
    }
    g = g_new0(Guest, 1);
    g->door = d;
    g->ioc = QIO_CHANNEL(sioc);
    object_ref(OBJECT(sioc));
    qio_channel_set_blocking(g->ioc, false, NULL);
    qio_channel_set_delay(g->ioc, false);
    tt_alive_keep(sioc->fd);
    g->link = tt_link_new(&o);
    g_queue_push_tail(&d->guests, g);
    if (!say_all(g)) {
        turn_away(g);
        return;
    }
    g->read_tag = qio_channel_add_watch(g->ioc, G_IO_IN, read_ready, g, NULL);
    g->patience_tag = g_timeout_add(PATIENCE_MS, lose_patience, g);
}

TtNetDoor *tt_net_door_new(const TtNetConnOptions *o, const TtNetDoorOps *ops, void *opaque)
{
    TtNetDoor *d = g_new0(TtNetDoor, 1);

    d->o = *o;
    d->ops = ops;
    d->opaque = opaque;
    return d;
}

void tt_net_door_free(TtNetDoor *d)
{
    if (d) {
        while (d->guests.length) {
            remove_guest(g_queue_peek_head(&d->guests));
        }
        g_free(d);
    }
}
