/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sentences about what others send. Context: the BQL is held.
 */
#ifndef TT_NET_SAY_INT_H
#define TT_NET_SAY_INT_H

#include <glib.h>

typedef struct TtNetSay {
    char *who;                  /* "netdev tt net0"; the caller's */
    int64_t said_ms;
    unsigned unsaid;
} TtNetSay;

/* One sentence, but not too many of them. */
void tt_net_say(TtNetSay *s, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

#endif
