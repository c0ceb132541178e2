/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the files of the network backend tt. Context: the BQL is held.
 */
#ifndef TT_NET_INT_H
#define TT_NET_INT_H

#include "tt-net-say-int.h"
#include "net-tt/tt-address.h"
#include "net-tt/tt-link.h"

/* ---- who sends: tt-net-note.c ---- */

/* Says in @f who sends it, and where, and writes that down if this is recorded. @f has
 * its data. */
void tt_net_note_sent(TtFrame *f);
/* @f is about to be given to the NIC. @is_noted: this run's log says so already. */
void tt_net_note_delivered(const TtFrame *f, bool is_noted);
/* @f was on its way to @netdev when the group made a checkpoint. */
void tt_net_note_kept(const TtFrame *f, const char *netdev);
/* One of @len bytes came without a trailer. @is_of_member: from the address of one. */
void tt_net_note_bare(uint32_t len, bool is_of_member);
void tt_net_note_epoch(uint32_t epoch, bool is_made);
void tt_net_note_incident(const TtIncident *i);
/* Did this process send it? */
bool tt_net_is_own(const TtFrame *f);
/* False: *errp says what a group may be called. */
bool tt_net_group_is_fit(const char *group, Error **errp);

/* A warning, once, if others can read the key. NULL is fine. */
void tt_net_key_loaded(const char *path);

/* ---- frame stores: tt-net-frames.c ---- */

/* @f was noted as sent by this run, and is not sent yet. */
void tt_net_frames_sent(const TtFrame *f);
/* The NIC gets @f now, and perhaps takes it later: @f stays until then, or moves. */
void tt_net_frames_arrives(const TtFrame *f);
void tt_net_frames_moved(const TtFrame *f, const TtFrame *to);
void tt_net_frames_taken(const TtFrame *f);     /* any frame */

/* ---- the connection: tt-net-conn.c ---- */

typedef struct TtNetConn TtNetConn;
typedef struct QIONetListener QIONetListener;

typedef struct TtNetConnOps {
    /* A frame came, or an incident. False: no more for now, until tt_net_conn_go_on. */
    bool (*frame)(void *opaque, const TtFrame *f);
    /* There is room to send again. */
    void (*writable)(void *opaque);
    /* The connection is open, or the peer has made a checkpoint of the group. */
    void (*epoch)(void *opaque);
    /* It listens with this, which stays the connection's. */
    void (*listens)(void *opaque, const QIONetListener *l);
    /* For `info network`. */
    void (*state)(void *opaque, const char *text);
} TtNetConnOps;

typedef struct TtNetConnOptions {
    TtNetSay *say;              /* the caller's */
    const char *group;
    TtAddress address;
    bool listens;
    uint8_t *key;               /* taken over; NULL: none */
    size_t key_len;
} TtNetConnOptions;

/* NULL: *errp says why. */
TtNetConn *tt_net_conn_new(const TtNetConnOptions *o, const TtNetConnOps *ops,
                           void *opaque, Error **errp);
void tt_net_conn_free(TtNetConn *c);
bool tt_net_conn_is_open(const TtNetConn *c);
/* Is there room for another frame? If not, writable is called later. */
bool tt_net_conn_has_room(TtNetConn *c);
/* Does so much wait already that a frame that has to be taken is lost? */
bool tt_net_conn_is_far_behind(const TtNetConn *c);
/* Does nobody take the connection, nor refuse it? True once, until it is open again. */
bool tt_net_conn_hangs(TtNetConn *c);
void tt_net_conn_send(TtNetConn *c, const TtFrame *f);
/* Tells the peer of a checkpoint of the group, if the connection is open. */
void tt_net_conn_send_epoch(TtNetConn *c, uint32_t epoch);
/* The same of an incident. */
void tt_net_conn_send_incident(TtNetConn *c, const TtIncident *i);
/* The latest of which the peer has told; 0: none. */
uint32_t tt_net_conn_epoch(const TtNetConn *c);
void tt_net_conn_go_on(TtNetConn *c);

#endif
