/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The connection of a netdev tt: it listens for one peer at a time, or connects, and
 * tries again each second when there is none. Peers come through the door (tt-door.h).
 * One that breaks the protocol, is of another group or is late with READY is left, with one
 * sentence.
 */
#include "qemu/osdep.h"
#include "tt-net-socket-int.h"
#include "tt-net-wire-int.h"
#include "tt-net-int.h"
#include "net-tt/tt-alive.h"
#include "net-tt/door/tt-door.h"
#include "io/channel-socket.h"
#include "qapi/error.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"

#define RETRY_MS        1000
#define BACKLOG         64
#define OUT_MAX         (256 * 1024)    /* bytes that wait to be sent */
#define FAR_BEHIND      (64 * OUT_MAX)
#define READS_AT_ONCE   8
#define HANG_MS         4000            /* an attempt to connect that nobody takes */

struct TtNetConn {
    TtNetConnOptions o;
    char *group;
    const TtNetConnOps *ops;
    void *opaque;
    QIONetListener *listener;
    TtListen place;                     /* of a Unix socket */
    QIOChannelSocket *connecting;       /* not NULL: on its way */
    int64_t connecting_ms;              /* since then; of the host's clock */
    TtDoor *door;
    QIOChannel *ioc;                    /* NULL: there is no peer */
    TtNetWire *wire;                    /* open as long as ioc is there */
    TtLink *link;                       /* open */
    guint read_tag, write_tag, gone_tag, retry_tag, silence_tag;
    bool is_stuck;                      /* the peer takes no more for now */
    bool is_blocked;                    /* the NIC takes no more for now */
    bool was_full;                      /* writable must be called */
    TtNetFailure failure;               /* to connect */
    uint32_t epoch;                     /* that the peer has said, and was told */
    QEMUBH *go_on;
};

static void arm_retry(TtNetConn *c);
static void watch(TtNetConn *c);

static void tell_state(TtNetConn *c)
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

static void lose(TtNetConn *c)
{
    bool was_full = c->was_full;

    leave(c);
    c->was_full = false;
    tell_state(c);
    arm_retry(c);
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
        lose(c);
    }
    return c->ioc;
}

static void stuck(void *opaque)
{
    TtNetConn *c = opaque;

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
    lose(c);
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
            lose(c);
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
    lose(c);
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

/* ---- peers come ---- */

static gboolean listen_for_it(gpointer opaque)
{
    TtNetConn *c = opaque;

    if (!tt_alive_is_silent(QIO_CHANNEL_SOCKET(c->ioc)->fd)) {
        return G_SOURCE_CONTINUE;
    }
    c->silence_tag = 0;
    lose(c);
    return G_SOURCE_REMOVE;
}

/* Is there no peer? One that has gone has said all that it had to say, and is left. */
static bool has_place(TtNetConn *c)
{
    if (c->ioc && tt_net_socket_has_hung_up(QIO_CHANNEL_SOCKET(c->ioc)->fd)) {
        while (c->ioc && !c->is_blocked) {
            g_clear_handle_id(&c->read_tag, g_source_remove);
            read_ready(c->ioc, G_IO_IN, c);
        }
        if (c->ioc) {
            lose(c);                        /* it listens, so nothing else begins */
        }
    }
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
    c->ioc = QIO_CHANNEL(sioc);
    c->link = link;
    tt_net_wire_open(c->wire, sioc->fd);
    c->silence_tag = g_timeout_add_seconds(TT_ALIVE_ASK_S, listen_for_it, c);
    tt_net_works(&c->failure, c->o.say);
    tell_state(c);
    c->ops->epoch(c->opaque);
    send_out(c);                        /* what the door had no room for */
    if (c->link && drain(c)) {
        watch(c);
    }
}

static void leaves(void *opaque, const char *why, bool is_refused)
{
    TtNetConn *c = opaque;

    if (why && c->o.listens) {
        tt_net_say(c->o.say, "a peer is turned away: %s", why);
    } else if (why ? tt_net_fails(&c->failure, c->o.say, why, true, is_refused) :
               c->failure.is_refused) {
        c->failure.is_refused &= why != NULL;       /* it has gone without a word */
        tell_state(c);
    }
    arm_retry(c);
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
            tell_state(c);
        }
        error_free(err);
        arm_retry(c);
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

static void arm_retry(TtNetConn *c)
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

TtNetConn *tt_net_conn_new(const TtNetConnOptions *o, const TtNetConnOps *ops,
                           void *opaque, Error **errp)
{
    TtNetConn *c = g_new0(TtNetConn, 1);

    c->o = *o;
    c->group = g_strdup(o->group);
    c->ops = ops;
    c->opaque = opaque;
    c->go_on = qemu_bh_new(go_on_bh, c);
    c->wire = tt_net_wire_new(stuck, c);
    c->door = tt_door_new(&(TtLinkOptions) {
        .group = c->group, .key = o->key, .key_len = o->key_len,
    }, &door_ops, c);
    if (o->listens && !listen_at(c, errp)) {
        tt_net_conn_free(c);
        return NULL;
    }
    if (!o->listens) {
        try_connect(c);
    }
    tell_state(c);
    return c;
}

void tt_net_conn_free(TtNetConn *c)
{
    leave(c);
    tt_net_wire_free(c->wire);
    g_clear_handle_id(&c->retry_tag, g_source_remove);
    tt_door_free(c->door);
    tt_listen_unix_end(&c->place);
    if (c->listener) {
        qio_net_listener_disconnect(c->listener);
        object_unref(OBJECT(c->listener));
    }
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
