/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A Unix socket that listens for members of a group, at a path that nobody else uses: of a
 * netdev, of a hub and of tt group live --exact. A socket whose owner is gone makes room.
 * However many begin at one path at the same time, one of them gets it: each holds a lock of
 * the directory (flock) from its first look until it listens, and again when it ends.
 *
 * Context: any thread. Takes some microseconds, and TT_LISTEN_WAIT_MS if somebody else holds
 * the lock.
 */
#ifndef TT_LISTEN_H
#define TT_LISTEN_H

#include <stdint.h>

#define TT_LISTEN_WAIT_MS 2000

typedef struct TtListen {
    int fd;                     /* the owner's to close, after tt_listen_unix_end */
    char *path;                 /* NULL: it does not listen */
    uint64_t dev, ino;          /* of the socket at the path */
} TtListen;

/* @l becomes a socket that listens; it does not block. NULL; or why not, which is valid
 * forever, and then there is nothing to end. */
const char *tt_listen_unix(TtListen *l, const char *path, int backlog);
/* Removes the socket from its path, unless another one is there by now. Zeros are fine. */
void tt_listen_unix_end(TtListen *l);

#endif
