/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hosts that are gone: see the header. */
#include "net-tt/tt-alive.h"

#include <errno.h>
#include <glib.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define IDLE_S      10
#define EVERY_S     5
#define PROBES      4
#define SILENT_MS   40000       /* longer than the probes take */

void tt_alive_keep(int fd)
{
    const int on = 1, idle_s = IDLE_S, every_s = EVERY_S, probes = PROBES;

    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof(every_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

bool tt_alive_is_silent(int fd)
{
    struct tcp_info t;
    socklen_t len = sizeof(t);

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &t, &len) == 0 &&
        ((t.tcpi_unacked && t.tcpi_retransmits) || t.tcpi_probes > 1) &&
        MIN(t.tcpi_last_ack_recv, t.tcpi_last_data_recv) > SILENT_MS;
}

bool tt_alive_is_left(const char *path)
{
    struct sockaddr_un where = { .sun_family = AF_UNIX };
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool is_left;

    g_strlcpy(where.sun_path, path, sizeof(where.sun_path));
    is_left = probe >= 0 && connect(probe, (struct sockaddr *)&where, sizeof(where)) < 0 &&
        errno == ECONNREFUSED;
    if (probe >= 0) {
        close(probe);
    }
    return is_left;
}
