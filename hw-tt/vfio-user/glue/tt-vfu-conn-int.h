/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the files of the connection to a vfio-user server. Context: its lock is held,
 * unless it says otherwise.
 */
#ifndef TT_VFU_CONN_INT_H
#define TT_VFU_CONN_INT_H

#include "hw-tt/vfio-user/glue/tt-vfu-conn.h"
#include "accel-tt/tt-poll.h"
#include "qemu/rcu.h"
#include "qemu/thread.h"

struct TtVfuConn {
    struct rcu_head rcu;
    QemuRecMutex lock;                  /* of all below; what is_*, has_* and why say, who
                                         * has the BQL may read without it */
    int fd;
    bool is_lost, is_started, has_agreed, is_listened_to;
    bool is_broken;                     /* lost without the BQL: soon */
    /* What waits: writes, interrupts; a vCPU was asked to see to it. Atomic. */
    bool has_writes, has_irqs, has_asked;
    QEMUBH *look;
    unsigned n_refs;                    /* of who opened it, of a vCPU; atomic */
    uint16_t next_id;
    unsigned n_posted;                  /* since the last answer */
    uint64_t n_read;                    /* bytes, from the server */
    unsigned max_fds;
    int64_t patience_ms, deadline;      /* of what is going on now */
    const TtVfuConnOps *ops;
    void *opaque;
    char *why;
    uint8_t *in, *out;                  /* TT_VFU_BYTES_MAX each */
    uint8_t *early;                     /* in, where the BQL is not held */
    TtPoll poll;
};

static inline bool tt_vfu_conn_is_down(const TtVfuConn *c)
{
    return c->is_lost || c->is_broken;
}

/* What is read and written from now on has the deadline's time. */
void tt_vfu_conn_begin(TtVfuConn *c);
/* All @len bytes. False: the server is lost. */
bool tt_vfu_conn_read(TtVfuConn *c, uint8_t *to, size_t len);
/* The first @len bytes of c->out. */
bool tt_vfu_conn_write(TtVfuConn *c, size_t len, const int *fds, unsigned n_fds);

/* ---- tt-vfu-connect.c ---- */
/* A descriptor; -1: *errp says why. */
int tt_vfu_connect(const char *path, unsigned deadline_s, Error **errp);
/* On the version. False: *errp says why. */
bool tt_vfu_conn_agree(TtVfuConn *c, Error **errp);

#endif
