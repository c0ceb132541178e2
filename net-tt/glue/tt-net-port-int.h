/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A port: where frames of the group come to a NIC of this VM, by a netdev tt or by another
 * netdev with a filter-tt. All that they share: what may be delivered and when, what waits,
 * what is noted, checkpoints of the group.
 *
 * Context: the BQL is held; a NIC may send in a vCPU's thread.
 */
#ifndef TT_NET_PORT_INT_H
#define TT_NET_PORT_INT_H

#include "tt-net-int.h"
#include "tt-net-say-int.h"
#include "net/net.h"
#include "system/runstate.h"

typedef struct TtNetPort TtNetPort;

/* go_on and tell_incident may be NULL. */
typedef struct TtNetPortOps {
    /* The NIC gets these bytes. False: later, and then tt_net_port_taken is called. */
    bool (*to_nic)(TtNetPort *p, const uint8_t *data, uint32_t len);
    /* Frames may come again after tt_net_port_frame_came was false. */
    void (*go_on)(TtNetPort *p);
    /* Checkpoint @epoch of the group was made: others are to know. */
    void (*tell_epoch)(TtNetPort *p, uint32_t epoch);
    void (*tell_incident)(TtNetPort *p, const TtIncident *i);
} TtNetPortOps;

struct TtNetPort {
    const TtNetPortOps *ops;
    NetClientState *nc;         /* the netdev */
    TtNetSay say;
    unsigned held_max;          /* frames, and those of tt_net_deliver_first */
    bool is_filter;             /* the netdev is of another kind */
    TtHeard heard;
    GQueue held;                /* of TtFrame: cannot be passed on yet */
    TtFrame *queued;            /* nic_is_full: what the NIC has not taken yet */
    bool nic_is_full;
    bool is_noted;              /* the first of held is, in the log of run noted_in */
    uint8_t noted_in[TT_RUN_BYTES];
    QEMUBH *release;
    QEMUTimer *again;           /* the recording has not begun yet */
    VMChangeStateEntry *vm_state;
};

/* @p: zeros. @who: for sentences, taken over. @held_max: frames that wait, at most. */
void tt_net_port_init(TtNetPort *p, const TtNetPortOps *ops, NetClientState *nc, char *who,
                      unsigned held_max);
void tt_net_port_cleanup(TtNetPort *p);         /* nothing, if it is zeros */
/* The port of a netdev, or NULL. */
TtNetPort *tt_net_port_of(const NetClientState *nc);
/* A frame of another VM of the group came. It is delivered, waits, or is dropped. False: no
 * more for now, until go_on; who cannot wait may go on. */
bool tt_net_port_frame_came(TtNetPort *p, const TtFrame *f);
/* A NetPacketSent. */
void tt_net_port_taken(NetClientState *nc, ssize_t len);
/* Another VM has made checkpoint @epoch of the group, which may be known. */
void tt_net_port_epoch_came(uint32_t epoch);
/* No incident is pending any more. */
void tt_net_port_release_all(void);
/* By all ports that can. */
void tt_net_port_tell_incident(const TtIncident *i);
unsigned tt_net_port_ways(void);        /* TT_WAYS_*, of this process so far */

/* A VM that is recorded loses it: the user hears that, and so does who reads the log. */
void tt_net_note_gone(const TtNetPort *p);

#endif
