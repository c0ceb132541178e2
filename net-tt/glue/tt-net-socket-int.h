/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a netdev tt asks of its sockets. Context: any thread, no state.
 */
#ifndef TT_NET_SOCKET_INT_H
#define TT_NET_SOCKET_INT_H

#include "net-tt/tt-address.h"
#include "qapi/qapi-types-sockets.h"

/* As QEMU wants it; qapi_free_SocketAddress. */
SocketAddress *tt_net_socket_address(const TtAddress *a);
/* May a socket be made at @a? Not over a file of another kind, or over a socket at which
 * somebody listens: QEMU would remove either. */
bool tt_net_socket_is_free(const TtAddress *a, Error **errp);
/* Has the peer closed its end? Bytes of it may wait all the same. */
bool tt_net_socket_has_hung_up(int fd);

#endif
