/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sockets of a netdev tt: see the header. */
#include "qemu/osdep.h"
#include "tt-net-socket-int.h"
#include "qapi/error.h"
#include <poll.h>

SocketAddress *tt_net_socket_address(const TtAddress *a)
{
    SocketAddress *s = g_new0(SocketAddress, 1);

    if (a->is_unix) {
        s->type = SOCKET_ADDRESS_TYPE_UNIX;
        s->u.q_unix.path = g_strdup(a->path);
    } else {
        s->type = SOCKET_ADDRESS_TYPE_INET;
        s->u.inet.host = g_strdup(a->host);
        s->u.inet.port = g_strdup(a->port);
    }
    return s;
}

static bool listen_unix(QIONetListener *listener, TtListen *l, const char *path, int backlog,
                        Error **errp)
{
    const char *why = tt_listen_unix(l, path, backlog);
    QIOChannelSocket *sioc;

    if (why) {
        error_setg(errp, "cannot listen at %s: %s", path, why);
        return false;
    }
    sioc = qio_channel_socket_new_fd(l->fd, errp);
    if (!sioc) {
        tt_listen_unix_end(l);
        close(l->fd);
        return false;
    }
    qio_net_listener_add(listener, sioc);
    object_unref(OBJECT(sioc));
    return true;
}

QIONetListener *tt_net_socket_listen(const TtAddress *a, TtListen *l, int backlog,
                                     Error **errp)
{
    QIONetListener *listener = qio_net_listener_new();
    g_autoptr(SocketAddress) where = tt_net_socket_address(a);

    if (a->is_unix ? !listen_unix(listener, l, a->path, backlog, errp) :
        qio_net_listener_open_sync(listener, where, backlog, errp) < 0) {
        object_unref(OBJECT(listener));
        return NULL;
    }
    return listener;
}

char *tt_net_socket_places(const QIONetListener *l)
{
    GString *text = g_string_new(NULL);

    for (size_t i = 0; i < l->nsioc; i++) {
        g_autoptr(SocketAddress) a = qio_channel_socket_get_local_address(l->sioc[i], NULL);

        if (a && a->type == SOCKET_ADDRESS_TYPE_INET) {
            const InetSocketAddress *inet = &a->u.inet;

            g_string_append_printf(text, strchr(inet->host, ':') ? "%s[%s]:%s" : "%s%s:%s",
                                   text->len ? " and " : "", inet->host, inet->port);
        }
    }
    return g_string_free(text, false);
}

bool tt_net_socket_has_hung_up(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLRDHUP };

    return poll(&p, 1, 0) == 1 && p.revents & (POLLRDHUP | POLLHUP | POLLERR);
}
