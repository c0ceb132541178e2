/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bytes to and from a peer. The main loop sends and receives them while it does not have
 * its lock (accel-tt/tt-poll.h), so no vCPU of a recording waits for the kernel.
 *
 * Context: the BQL is held.
 */
#ifndef TT_NET_WIRE_INT_H
#define TT_NET_WIRE_INT_H

typedef struct TtNetWire TtNetWire;

/* @look: in the main loop: what waits cannot be sent for now, or never; or something came.
 * Call tt_net_wire_read and tt_net_wire_flush. */
TtNetWire *tt_net_wire_new(void (*look)(void *opaque), void *opaque);
void tt_net_wire_free(TtNetWire *w);
/* @fd, a socket that does not block, stays the caller's, until tt_net_wire_close. */
void tt_net_wire_open(TtNetWire *w, int fd);
/* What waits is dropped. */
void tt_net_wire_close(TtNetWire *w);
/* The main loop may receive, or may not. */
void tt_net_wire_receive(TtNetWire *w, bool on);

#define TT_NET_WIRE_MAX 65536           /* TT_LINK_PUT_MAX at most */
/* What came: *@bytes, until the next call. 0: the peer has gone; -EAGAIN: nothing came; other
 * negative errnos. At most TT_NET_WIRE_MAX. */
ssize_t tt_net_wire_read(TtNetWire *w, const uint8_t **bytes);
/* Copies them. True: the main loop sends them before it sleeps. False: this is another thread,
 * or there are many: call tt_net_wire_flush. */
bool tt_net_wire_send(TtNetWire *w, const uint8_t *bytes, size_t len);
size_t tt_net_wire_waiting(TtNetWire *w);       /* bytes to be sent */
/* Sends now. 0: all is sent; -EAGAIN: not all can be; other negative errnos. */
int tt_net_wire_flush(TtNetWire *w);

#endif
