/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a netdev tt meets its peer: it listens for one at a time, or connects, and tries
 * again each second when there is none. Peers come through the door (tt-door.h).
 */
#include "qemu/osdep.h"
#include "tt-net-conn-int.h"
#include "qapi/error.h"
#include "qemu/timer.h"

#define RETRY_MS        1000
#define BACKLOG         64
#define HANG_MS         4000            /* an attempt to connect that nobody takes */

/* Is there no peer? One that has gone has said all that it had to say, and is left. */
static bool has_place(TtNetConn *c)
{
    tt_net_conn_end(c);
    return !c->ioc;
}

/* Takes them over. */
static void refuse(TtNetConn *c, int fd, TtLink *link)
{
    tt_door_refuse(c->door, fd, link, TT_REFUSED_HAS_PEER);
    tt_net_say(c->o.say, "another peer is refused: a netdev has only one peer; use tt "
               "hub to connect more");
}

static void enters(void *opaque, int fd, TtLink *link)
{
    TtNetConn *c = opaque;
    QIOChannelSocket *sioc = has_place(c) ? qio_channel_socket_new_fd(fd, NULL) : NULL;

    if (!sioc) {
        refuse(c, fd, link);
        return;
    }
    tt_net_works(&c->failure, c->o.say);
    tt_net_conn_begin(c, sioc, link);
}

static void leaves(void *opaque, const char *why, bool is_refused)
{
    TtNetConn *c = opaque;

    if (why && c->o.listens) {
        tt_net_say(c->o.say, "a peer is turned away: %s", why);
    } else if (why ? tt_net_fails(&c->failure, c->o.say, why, true, is_refused) :
               c->failure.is_refused) {
        c->failure.is_refused &= why != NULL;       /* it has gone without a word */
        tt_net_conn_tell_state(c);
    }
    tt_net_meet_again(c);
}

/* The socket stays open for the door, which knows no channels. */
static void to_door(TtNetConn *c, const QIOChannelSocket *sioc)
{
    int fd = fcntl(sioc->fd, F_DUPFD_CLOEXEC, 0);

    if (fd < 0) {
        leaves(c, strerror(errno), false);
    } else if (has_place(c)) {
        tt_door_came(c->door, fd);
    } else {
        refuse(c, fd, NULL);
    }
}

static void peer_came(QIONetListener *listener, QIOChannelSocket *sioc, gpointer opaque)
{
    to_door(opaque, sioc);
}

static void connected(QIOTask *task, gpointer opaque)
{
    TtNetConn *c = opaque;
    g_autoptr(QIOChannelSocket) sioc = QIO_CHANNEL_SOCKET(qio_task_get_source(task));
    Error *err = NULL;

    if (c->connecting != sioc) {            /* the netdev is gone: see free */
        g_free(c);
        return;
    }
    c->connecting = NULL;
    if (qio_task_propagate_error(task, &err)) {
        if (tt_net_fails(&c->failure, c->o.say, error_get_pretty(err), false, false)) {
            tt_net_conn_tell_state(c);
        }
        error_free(err);
        tt_net_meet_again(c);
        return;
    }
    to_door(c, sioc);
}

static gboolean try_connect(gpointer opaque)
{
    TtNetConn *c = opaque;
    g_autoptr(SocketAddress) a = tt_net_socket_address(&c->o.address);

    c->retry_tag = 0;
    c->connecting = qio_channel_socket_new();
    c->connecting_ms = qemu_clock_get_ms(QEMU_CLOCK_REALTIME);
    qio_channel_socket_connect_async(c->connecting, a, connected, c, NULL, NULL);
    return G_SOURCE_REMOVE;
}

bool tt_net_conn_hangs(TtNetConn *c)
{
    bool it_hangs = c->connecting && !c->failure.is_said &&
        qemu_clock_get_ms(QEMU_CLOCK_REALTIME) - c->connecting_ms >= HANG_MS;

    c->failure.is_said |= it_hangs;
    return it_hangs;
}

void tt_net_meet_again(TtNetConn *c)
{
    if (!c->o.listens && !c->retry_tag) {
        c->retry_tag = g_timeout_add(RETRY_MS, try_connect, c);
    }
}

static bool listen_at(TtNetConn *c, Error **errp)
{
    c->listener = tt_net_socket_listen(&c->o.address, &c->place, BACKLOG, errp);
    if (!c->listener) {
        return false;
    }
    qio_net_listener_set_client_func(c->listener, peer_came, c, NULL);
    c->ops->listens(c->opaque, c->listener);
    return true;
}

static const TtDoorOps door_ops = { .enters = enters, .leaves = leaves };

bool tt_net_meet_begin(TtNetConn *c, Error **errp)
{
    c->door = tt_door_new(&(TtLinkOptions) {
        .group = c->group, .key = c->o.key, .key_len = c->o.key_len,
    }, &door_ops, c);
    if (c->o.listens) {
        return listen_at(c, errp);
    }
    try_connect(c);
    return true;
}

void tt_net_meet_end(TtNetConn *c)
{
    g_clear_handle_id(&c->retry_tag, g_source_remove);
    tt_door_free(c->door);
    tt_listen_unix_end(&c->place);
    if (c->listener) {
        qio_net_listener_disconnect(c->listener);
        object_unref(OBJECT(c->listener));
    }
}
