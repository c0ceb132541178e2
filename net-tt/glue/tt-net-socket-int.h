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
/* A host that is gone is noticed within half a minute, unless bytes are on their way to it.
 * Nothing on a Unix socket. */
void tt_net_socket_keep_alive(int fd);
/* Do bytes wait for it, or were sent again and again, and its host has said nothing for so
 * long that it is gone? TCP goes on for a quarter of an hour then. A peer that does not read
 * is not silent: its host is there, and Linux answers (from 6.6 on always). */
bool tt_net_socket_is_silent(int fd);
/* Has the peer closed its end? Bytes of it may wait all the same. */
bool tt_net_socket_has_hung_up(int fd);

#endif
