/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sockets of a netdev tt: see the header. */
#include "qemu/osdep.h"
#include "tt-net-socket-int.h"
#include "qapi/error.h"
#include <poll.h>
#include <sys/un.h>

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

/* Nobody listens there if a connection is refused. One whose queue is full says EAGAIN, and
 * is not waited for. */
static bool is_left(const char *path)
{
    struct sockaddr_un where = { .sun_family = AF_UNIX };
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool is;

    g_strlcpy(where.sun_path, path, sizeof(where.sun_path));
    is = probe >= 0 && connect(probe, (struct sockaddr *)&where, sizeof(where)) < 0 &&
        errno == ECONNREFUSED;
    if (probe >= 0) {
        close(probe);
    }
    return is;
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
    } else if (!is_left(a->path)) {
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
