/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sockets of a netdev tt: see the header. */
#include "qemu/osdep.h"
#include "tt-net-socket-int.h"
#include "net-tt/tt-alive.h"
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

bool tt_net_socket_is_free(const TtAddress *a, Error **errp)
{
    struct stat st;

    if (!a->is_unix || lstat(a->path, &st)) {
        return true;
    }
    if (!S_ISSOCK(st.st_mode)) {
        error_setg(errp, "cannot listen at %s: it is not a socket: remove it, or give "
                         "another path", a->path);
    } else if (!tt_alive_is_left(a->path)) {
        error_setg(errp, "cannot listen at %s: somebody listens there already: give "
                         "another path", a->path);
    } else {
        return true;
    }
    return false;
}

bool tt_net_socket_has_hung_up(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLRDHUP };

    return poll(&p, 1, 0) == 1 && p.revents & (POLLRDHUP | POLLHUP | POLLERR);
}
