/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The connection of a netdev tt, to one peer at a time: tt-net-meet.c. One that breaks the
 * protocol, is of another group or is late with READY is left, with one sentence.
 */
#include "qemu/osdep.h"
#include "tt-net-conn-int.h"
#include "net-tt/tt-alive.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"

#define OUT_MAX         (256 * 1024)    /* bytes that wait to be sent */
#define FAR_BEHIND      (64 * OUT_MAX)
#define READS_AT_ONCE   8

static gboolean read_ready(QIOChannel *ioc, GIOCondition condition, gpointer opaque);
static void watch(TtNetConn *c);

void tt_net_conn_tell_state(TtNetConn *c)
{
    c->ops->state(c->opaque, tt_net_conn_is_open(c) ? "connected" :
                  c->o.listens ? "listening" :
                  c->failure.is_refused ? "refused" : "connecting");
}

/* The peer is gone, or is left. */
static void leave(TtNetConn *c)
{
    g_clear_handle_id(&c->read_tag, g_source_remove);
    g_clear_handle_id(&c->write_tag, g_source_remove);
    g_clear_handle_id(&c->gone_tag, g_source_remove);
    g_clear_handle_id(&c->silence_tag, g_source_remove);
    if (c->ioc) {
        tt_net_wire_flush(c->wire);
        tt_net_wire_close(c->wire);
        qio_channel_close(c->ioc, NULL);
        g_clear_pointer(&c->ioc, object_unref);
    }
    g_clear_pointer(&c->link, tt_link_free);
    c->is_blocked = c->is_stuck = false;
    c->epoch = 0;
}

void tt_net_conn_lose(TtNetConn *c)
{
    bool was_full = c->was_full;

    leave(c);
    c->was_full = false;
    tt_net_conn_tell_state(c);
    tt_net_meet_again(c);
    if (was_full) {
        c->ops->writable(c->opaque);    /* what waits is for nobody */
    }
}

/* ---- out ---- */

/* False: the peer is lost. */
static bool flush(TtNetConn *c)
{
    int ret = tt_net_wire_flush(c->wire);

    c->is_stuck = ret == -EAGAIN;
    if (ret && !c->is_stuck) {
        tt_net_conn_lose(c);
    }
    return c->ioc;
}

/* See tt-net-wire-int.h. */
static void look(void *opaque)
{
    TtNetConn *c = opaque;

    if (c->read_tag) {
        g_clear_handle_id(&c->read_tag, g_source_remove);
        read_ready(c->ioc, G_IO_IN, c);
    }
    if (c->ioc && !c->write_tag && flush(c)) {
        watch(c);
    }
}

static gboolean write_ready(QIOChannel *ioc, GIOCondition condition, gpointer opaque)
{
    TtNetConn *c = opaque;

    c->write_tag = 0;
    if (flush(c)) {
        watch(c);
        if (c->was_full && tt_net_conn_has_room(c)) {
            c->was_full = false;
            c->ops->writable(c->opaque);
        }
    }
    return G_SOURCE_REMOVE;
}

bool tt_net_conn_is_open(const TtNetConn *c)
{
    return c->link && tt_link_is_open(c->link);
}

bool tt_net_conn_has_room(TtNetConn *c)
{
    bool has = tt_net_wire_waiting(c->wire) < OUT_MAX;

    c->was_full |= !has;
    return has;
}

bool tt_net_conn_is_far_behind(const TtNetConn *c)
{
    return tt_net_wire_waiting(c->wire) >= FAR_BEHIND;
}

static void send_out(TtNetConn *c)
{
    size_t len = 0;
    const uint8_t *out = c->link ? tt_link_out(c->link, &len) : NULL;

    if (len) {
        bool is_sent = tt_net_wire_send(c->wire, out, len);

        tt_link_sent(c->link, len);
        if (!is_sent && !c->write_tag && flush(c)) {
            watch(c);
        }
    }
}

void tt_net_conn_send(TtNetConn *c, const TtFrame *f)
{
    tt_link_send(c->link, f);
    send_out(c);
}

void tt_net_conn_send_epoch(TtNetConn *c, uint32_t epoch)
{
    if (tt_net_conn_is_open(c)) {
        tt_link_send_epoch(c->link, epoch);
        send_out(c);
    }
}

void tt_net_conn_send_incident(TtNetConn *c, const TtIncident *i)
{
    if (tt_net_conn_is_open(c)) {
        tt_link_send_incident(c->link, i);
        send_out(c);
    }
}

uint32_t tt_net_conn_epoch(const TtNetConn *c)
{
    return c->link ? tt_link_epoch(c->link) : 0;
}

/* ---- in ---- */

/* False: the peer is lost. */
static bool tell_epoch(TtNetConn *c)
{
    if (c->epoch != tt_link_epoch(c->link)) {
        c->epoch = tt_link_epoch(c->link);
        c->ops->epoch(c->opaque);
    }
    return c->link;
}

/* Passes on what came. False: the peer is lost. */
static bool drain(TtNetConn *c)
{
    TtStatus st = TT_OK;
    TtFrame f;
    TtDiag diag;

    while (c->link && !c->is_blocked) {
        st = tt_link_next(c->link, &f, &diag);
        if (st == TT_OK) {
            c->is_blocked = !c->ops->frame(c->opaque, &f) && c->link;
        } else if (st == TT_ERR_MISMATCH) {
            tt_net_say(c->o.say, "a frame is dropped: %s", diag.text);
        } else {
            break;
        }
    }
    if (!c->link) {
        return false;               /* it was answered at once, and the answer failed */
    }
    if (st == TT_OK || st == TT_END) {
        return tell_epoch(c);
    }
    tt_net_say(c->o.say, "%s", diag.text);
    tt_net_conn_lose(c);
    return false;
}

static gboolean read_ready(QIOChannel *ioc, GIOCondition condition, gpointer opaque)
{
    ssize_t n = TT_NET_WIRE_MAX;
    TtNetConn *c = opaque;
    const uint8_t *bytes;

    for (unsigned i = 0; i < READS_AT_ONCE && n == TT_NET_WIRE_MAX && !c->is_blocked; i++) {
        n = tt_net_wire_read(c->wire, &bytes);
        if (n == -EAGAIN) {
            break;
        }
        if (n <= 0) {
            c->read_tag = 0;
            tt_net_conn_lose(c);
            return G_SOURCE_REMOVE;
        }
        tt_link_put(c->link, bytes, n);
        if (!drain(c)) {
            return G_SOURCE_REMOVE;
        }
    }
    if (c->is_blocked) {
        c->read_tag = 0;
    }
    watch(c);
    return c->read_tag ? G_SOURCE_CONTINUE : G_SOURCE_REMOVE;
}

/* The NIC takes no more, so nobody reads; that the peer goes is noticed all the same. */
static gboolean peer_gone(QIOChannel *ioc, GIOCondition condition, gpointer opaque)
{
    TtNetConn *c = opaque;

    c->gone_tag = 0;
    tt_net_conn_lose(c);
    return G_SOURCE_REMOVE;
}

/* The conditions to wait for. */
static void watch(TtNetConn *c)
{
    if (c->is_blocked && !c->gone_tag) {
        c->gone_tag = qio_channel_add_watch(c->ioc, G_IO_HUP | G_IO_ERR, peer_gone, c,
                                            NULL);
    }
    if (!c->read_tag && !c->is_blocked) {
        g_clear_handle_id(&c->gone_tag, g_source_remove);
        c->read_tag = qio_channel_add_watch(c->ioc, G_IO_IN, read_ready, c, NULL);
    }
    tt_net_wire_receive(c->wire, c->read_tag);
    if (!c->write_tag && c->is_stuck) {
        c->write_tag = qio_channel_add_watch(c->ioc, G_IO_OUT, write_ready, c, NULL);
    }
}

/* In the main loop: never inside a device call of the vCPU. */
static void go_on_bh(void *opaque)
{
    TtNetConn *c = opaque;

    if (c->ioc && c->is_blocked) {
        c->is_blocked = false;
        if (drain(c)) {
            watch(c);
        }
    }
}

void tt_net_conn_go_on(TtNetConn *c)
{
    qemu_bh_schedule(c->go_on);
}

/* ---- a peer comes, or has gone ---- */

static gboolean listen_for_it(gpointer opaque)
{
    TtNetConn *c = opaque;

    if (!tt_alive_is_silent(QIO_CHANNEL_SOCKET(c->ioc)->fd)) {
        return G_SOURCE_CONTINUE;
    }
    c->silence_tag = 0;
    tt_net_conn_lose(c);
    return G_SOURCE_REMOVE;
}

void tt_net_conn_begin(TtNetConn *c, QIOChannelSocket *sioc, TtLink *link)
{
    c->ioc = QIO_CHANNEL(sioc);
    c->link = link;
    tt_net_wire_open(c->wire, sioc->fd);
    c->silence_tag = g_timeout_add_seconds(TT_ALIVE_ASK_S, listen_for_it, c);
    tt_net_conn_tell_state(c);
    c->ops->epoch(c->opaque);
    send_out(c);                        /* what the door had no room for */
    if (c->link && drain(c)) {
        watch(c);
    }
}

void tt_net_conn_end(TtNetConn *c)
{
    if (c->ioc && tt_net_socket_has_hung_up(QIO_CHANNEL_SOCKET(c->ioc)->fd)) {
        while (c->ioc && !c->is_blocked) {
            g_clear_handle_id(&c->read_tag, g_source_remove);
            read_ready(c->ioc, G_IO_IN, c);
        }
        if (c->ioc) {
            tt_net_conn_lose(c);            /* it listens, so nothing else begins */
        }
    }
}

TtNetConn *tt_net_conn_new(const TtNetConnOptions *o, const TtNetConnOps *ops,
                           void *opaque, Error **errp)
{
    TtNetConn *c = g_new0(TtNetConn, 1);

    c->o = *o;
    c->group = g_strdup(o->group);
    c->ops = ops;
    c->opaque = opaque;
    c->go_on = qemu_bh_new(go_on_bh, c);
    c->wire = tt_net_wire_new(look, c);
    if (!tt_net_meet_begin(c, errp)) {
        tt_net_conn_free(c);
        return NULL;
    }
    tt_net_conn_tell_state(c);
    return c;
}

void tt_net_conn_free(TtNetConn *c)
{
    leave(c);
    tt_net_wire_free(c->wire);
    tt_net_meet_end(c);
    qemu_bh_delete(c->go_on);
    g_free(c->o.key);
    g_free(c->group);
    g_free(c->failure.peers_fault);
    if (c->connecting) {
        c->connecting = NULL;               /* connected() is yet to come */
    } else {
        g_free(c);
    }
}
