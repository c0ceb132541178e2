/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the two files of the connection of a netdev tt. Context: the BQL is held.
 */
#ifndef TT_NET_CONN_INT_H
#define TT_NET_CONN_INT_H

#include "tt-net-socket-int.h"
#include "tt-net-wire-int.h"
#include "tt-net-int.h"
#include "net-tt/door/tt-door.h"
#include "io/channel-socket.h"

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

/* ---- tt-net-conn.c ---- */

void tt_net_conn_tell_state(TtNetConn *c);
/* There is a peer now; both are taken over. */
void tt_net_conn_begin(TtNetConn *c, QIOChannelSocket *sioc, TtLink *link);
/* The peer is gone, or is left. */
void tt_net_conn_lose(TtNetConn *c);
/* A peer that has gone has said all that it had to say, and is left. */
void tt_net_conn_end(TtNetConn *c);

/* ---- how both meet: tt-net-meet.c ---- */

/* False: *errp says why. */
bool tt_net_meet_begin(TtNetConn *c, Error **errp);
void tt_net_meet_end(TtNetConn *c);
/* There is no peer: tries again. */
void tt_net_meet_again(TtNetConn *c);

#endif
