/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The connection to a vfio-user server: questions and their answers, one at a time, and
 * the server's requests meanwhile.
 *
 * Context, unless said otherwise: the BQL is held. A question waits for its answer with
 * the lock held, so a device's registers answer like those of an emulated one; it takes the
 * time that the server takes, and no longer than the deadline. Requests for DMA are served
 * without the BQL where that can be done: accel-tt/tt-poll.h. A lock of its own
 * keeps both apart; it is taken after the BQL.
 */
#ifndef TT_VFU_CONN_H
#define TT_VFU_CONN_H

#include "hw-tt/vfio-user/tt-vfu.h"

typedef struct TtVfuConn TtVfuConn;

typedef struct TtVfuConnOps {
    /* The server asks: answer by tt_vfu_conn_reply. */
    void (*serve)(void *opaque, const TtVfuHead *h, const uint8_t *payload,
                  size_t len);
    /*
     * Without the BQL, the connection's lock is held: can the request be served now? Of its
     * payload TT_VFU_DMA_BYTES are there. If so it is, by tt_vfu_conn_reply; what the guest
     * can see of it waits for settle, which is called before anything else is
     * done with the BQL.
     */
    bool (*can_early)(void *opaque, const TtVfuHead *h, const uint8_t *payload);
    void (*serve_early)(void *opaque, const TtVfuHead *h, const uint8_t *payload,
                        size_t len);
    void (*settle)(void *opaque);
    /* Interrupts that wait are to be delivered; it is settled. In the main loop, or in the
     * thread of a vCPU that has left guest code. */
    void (*deliver)(void *opaque);
    /* It is gone, or will be listened to no more. Called once, after the start. */
    void (*lost)(void *opaque, const char *why);
} TtVfuConnOps;

/* Connects and agrees on the version. NULL: *errp. */
TtVfuConn *tt_vfu_conn_open(const char *path, unsigned deadline_s,
                            const TtVfuConnOps *ops, void *opaque, Error **errp);
/* From now on a loss is told by ops->lost. */
void tt_vfu_conn_start(TtVfuConn *c);
/* Keeps requests from being served without the BQL. Any context; nests. */
void tt_vfu_conn_lock(TtVfuConn *c);
void tt_vfu_conn_unlock(TtVfuConn *c);
/* The main loop listens to the server, or does so no more: while the VM stands still,
 * nobody writes its memory. */
void tt_vfu_conn_listen(TtVfuConn *c, bool on);
void tt_vfu_conn_close(TtVfuConn *c);       /* NULL is fine */
bool tt_vfu_conn_is_lost(const TtVfuConn *c);   /* NULL: yes; so for tt_vfu_conn_ask */
/* Why; before tt_vfu_conn_start, where nobody is told. */
const char *tt_vfu_conn_why(const TtVfuConn *c);
/* What goes with one message at most. */
unsigned tt_vfu_conn_max_fds(const TtVfuConn *c);

/*
 * Asks, with @n_fds descriptors, and waits. Returns the length of the answer, which
 * has @least bytes at least; it is at *@answer until the next call. -ENODEV: the
 * server is lost; other negative errnos are what it refused with.
 */
int tt_vfu_conn_ask(TtVfuConn *c, uint16_t command, const void *payload, size_t len,
                    const int *fds, unsigned n_fds, size_t least,
                    const uint8_t **answer);
/* As tt_vfu_conn_ask, but waits for no answer. False: ask; the server is lost, or must
 * catch up first. */
bool tt_vfu_conn_post(TtVfuConn *c, uint16_t command, const void *payload, size_t len);
bool tt_vfu_conn_listens(const TtVfuConn *c);
/* Something waits for settle; interrupts wait, or do no more. Any context. */
void tt_vfu_conn_set_writes(TtVfuConn *c);
void tt_vfu_conn_set_irqs(TtVfuConn *c, bool has);
/* Does a vCPU see to what waits? Any context; the connection's lock is held. */
bool tt_vfu_conn_ask_vcpu(TtVfuConn *c);
/* Does what is left of requests that were answered (ops->settle). */
void tt_vfu_conn_settle(TtVfuConn *c);
/* Serves what the server has sent until now. */
void tt_vfu_conn_drain(TtVfuConn *c);
/* The server lied: it is lost. */
void tt_vfu_conn_lose(TtVfuConn *c, const char *fmt, ...) G_GNUC_PRINTF(2, 3);
/* Room for a reply's payload; then the reply to @h, of @len bytes there. */
uint8_t *tt_vfu_conn_room(TtVfuConn *c);
void tt_vfu_conn_reply(TtVfuConn *c, const TtVfuHead *h, uint32_t error, size_t len);

#endif
