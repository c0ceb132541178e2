/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What there is to say about the netdevs tt. Context: the BQL is held.
 */
#ifndef TT_NET_ABOUT_H
#define TT_NET_ABOUT_H

#include <stdbool.h>

typedef struct TtNetAbout {
    const char *id, *group;
    const char *address;        /* with the port that it has in place of 0 */
    const char *state;          /* "listening", "connecting", "refused" (it tries
                                   again) or "connected" */
    bool listens;
} TtNetAbout;

/* Each of them; what @about points to is valid during the call. */
void tt_net_each(void (*each)(void *opaque, const TtNetAbout *about), void *opaque);

#endif
