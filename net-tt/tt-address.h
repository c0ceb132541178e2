/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a member of a group listens or connects to: the path of a Unix socket, or
 * HOST:PORT. Traffic that leaves the host needs a key.
 *
 * Context: any thread, no state.
 */
#ifndef TT_ADDRESS_H
#define TT_ADDRESS_H

#include "io/tt-base.h"

#define TT_ADDRESS_PATH_MAX 107         /* what a Unix socket takes */
#define TT_ADDRESS_HOST_MAX 255

typedef struct TtAddress {
    bool is_unix;
    char path[TT_ADDRESS_PATH_MAX + 1];
    char host[TT_ADDRESS_HOST_MAX + 1];
    char port[6];
} TtAddress;

/*
 * "unix:PATH", or PATH with a "/" in it; "tcp:HOST:PORT", "HOST:PORT" (an IPv6 address in
 * []), ":PORT" of 127.0.0.1. TT_ERR_INVALID: none of these.
 */
TtStatus tt_address_parse(TtAddress *a, const char *text, TtDiag *diag);
/* Does all stay on this host? By what it says: a name is looked up nowhere. */
bool tt_address_is_local(const TtAddress *a);
/* TT_ERR_INVALID: it is not local, and there is no key. */
TtStatus tt_address_check(const TtAddress *a, bool has_key, TtDiag *diag);

#endif
