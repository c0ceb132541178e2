/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hosts that are gone: see the header. */
#include "net-tt/tt-alive.h"

#include <glib.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

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
