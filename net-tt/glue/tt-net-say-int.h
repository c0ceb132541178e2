/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sentences about what others send. Context: the BQL is held.
 */
#ifndef TT_NET_SAY_INT_H
#define TT_NET_SAY_INT_H

#include "net-tt/tt-said.h"

#include <glib.h>
#include <stdbool.h>

typedef struct TtNetSay {
    char *who;                  /* "netdev tt net0"; the caller's */
    TtSaid kinds[TT_SAID_KINDS];
} TtNetSay;

/* That there is no connection. */
typedef struct TtNetFailure {
    bool is_said;
    bool is_refused;            /* by a peer that takes none */
    char *peers_fault;          /* why a peer was left; NULL: there was none */
} TtNetFailure;

/* One sentence, but not too many of those with one format. */
void tt_net_say(TtNetSay *s, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

/* There is no connection, since @why. Said once; again if there was a peer (@is_peers) and now
 * is none, or the other way round, or it has another fault. True: it was said. */
bool tt_net_fails(TtNetFailure *f, const TtNetSay *s, const char *why, bool is_peers,
                  bool is_refused);
/* There is one. */
void tt_net_works(TtNetFailure *f, const TtNetSay *s);

#endif
