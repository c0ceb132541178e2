/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a netdev tt asks of its sockets. Context: any thread, no state.
 */
#ifndef TT_NET_SOCKET_INT_H
#define TT_NET_SOCKET_INT_H

#include "net-tt/tt-address.h"
#include "net-tt/tt-listen.h"
#include "io/net-listener.h"
#include "qapi/qapi-types-sockets.h"

/* As QEMU wants it; qapi_free_SocketAddress. */
SocketAddress *tt_net_socket_address(const TtAddress *a);
/* Listens at @a, with @l if that is the path of a Unix socket: QEMU would take the place of
 * any file there. NULL: *errp says why not. End @l before the listener goes. */
QIONetListener *tt_net_socket_listen(const TtAddress *a, TtListen *l, int backlog,
                                     Error **errp);
/* Where @l listens, with the ports that the kernel chose: "HOST:PORT", and if the name has
 * more numbers, all of them. Not for Unix sockets. g_free. */
char *tt_net_socket_places(const QIONetListener *l);
/* Has the peer closed its end? Bytes of it may wait all the same. */
bool tt_net_socket_has_hung_up(int fd);

#endif
