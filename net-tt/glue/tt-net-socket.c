/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sockets of a netdev tt: see the header. */
#include "qemu/osdep.h"
#include "tt-net-socket-int.h"
#include "qemu/sockets.h"
#include <poll.h>

#define SILENT_MS 40000         /* longer than the probes take */

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

/* As the hub does: hub_keep_alive. */
void tt_net_socket_keep_alive(int fd)
{
    const int on = 1, idle_s = 10, every_s = 5, probes = 4;

    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof(every_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

bool tt_net_socket_is_silent(int fd)
{
    struct tcp_info t;
    socklen_t len = sizeof(t);

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &t, &len) == 0 &&
        ((t.tcpi_unacked && t.tcpi_retransmits) || t.tcpi_probes > 1) &&
        MIN(t.tcpi_last_ack_recv, t.tcpi_last_data_recv) > SILENT_MS;
}

bool tt_net_socket_has_hung_up(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLRDHUP };

    return poll(&p, 1, 0) == 1 && p.revents & (POLLRDHUP | POLLHUP | POLLERR);
}
