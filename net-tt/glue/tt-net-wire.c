/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The bytes of a connection: see the header. */
#include "qemu/osdep.h"
#include "tt-net-wire-int.h"
#include "accel-tt/tt-poll.h"
#include "qemu/lockable.h"
#include "qemu/main-loop.h"
#include "qemu/rcu.h"
#include "qemu/sockets.h"
#include "qemu/thread.h"

/* Bytes that the main loop sends at once when it sleeps; more are sent by who sends more. */
#define LATER_MAX 65536

static __thread bool is_main_loop;      /* this thread */

struct TtNetWire {
    struct rcu_head rcu;
    TtPoll poll;
    QemuMutex lock;             /* of all below; taken after the BQL */
    int fd;                     /* -1: closed */
    bool receives;
    bool is_stuck;              /* since the last flush: `look` is told, and sends */
    GByteArray *out;
    size_t sent;                /* of out */
    ssize_t n_in;               /* in `in`; 0: nothing */
    uint8_t in[TT_NET_WIRE_MAX];
    QEMUBH *look;
};

static int send_all(TtNetWire *w)
{
    while (w->sent < w->out->len) {
        ssize_t n = send(w->fd, w->out->data + w->sent, w->out->len - w->sent,
                         MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno != EINTR) {
            int ret = errno == EWOULDBLOCK ? -EAGAIN : -errno;

            if (w->sent > w->out->len / 2) {
                g_byte_array_remove_range(w->out, 0, w->sent);
                w->sent = 0;
            }
            return ret;
        }
        w->sent += MAX(n, 0);
    }
    g_byte_array_set_size(w->out, 0);
    w->sent = 0;
    return 0;
}

static void before(void *opaque)
{
    TtNetWire *w = opaque;

    is_main_loop = true;
    QEMU_LOCK_GUARD(&w->lock);
    if (w->fd >= 0 && w->out->len && !w->is_stuck && send_all(w)) {
        w->is_stuck = true;
        qemu_bh_schedule(w->look);
    }
    if (w->n_in) {
        qemu_bh_schedule(w->look);      /* the handler was not called */
    }
}

/* Whatever becomes of it, the handler looks, or `look` does. */
static bool ready(void *opaque)
{
    TtNetWire *w = opaque;

    QEMU_LOCK_GUARD(&w->lock);
    if (w->fd >= 0 && w->receives && !w->n_in) {
        w->n_in = MAX(recv(w->fd, w->in, sizeof(w->in), MSG_DONTWAIT), 0);
    }
    return false;
}

TtNetWire *tt_net_wire_new(void (*look)(void *opaque), void *opaque)
{
    TtNetWire *w = g_new0(TtNetWire, 1);

    w->fd = -1;
    w->out = g_byte_array_new();
    w->look = qemu_bh_new(look, opaque);
    qemu_mutex_init(&w->lock);
    w->poll = (TtPoll) { .fd = -1, .before = before, .ready = ready, .opaque = w };
    tt_poll_add(&w->poll);
    return w;
}

static void free_wire(TtNetWire *w)
{
    qemu_mutex_destroy(&w->lock);
    g_byte_array_unref(w->out);
    g_free(w);
}

void tt_net_wire_free(TtNetWire *w)
{
    tt_net_wire_close(w);
    tt_poll_remove(&w->poll);
    qemu_bh_delete(w->look);
    call_rcu(w, free_wire, rcu);
}

void tt_net_wire_open(TtNetWire *w, int fd)
{
    QEMU_LOCK_GUARD(&w->lock);
    w->fd = fd;
    qatomic_set(&w->poll.fd, fd);
}

void tt_net_wire_close(TtNetWire *w)
{
    QEMU_LOCK_GUARD(&w->lock);
    w->fd = -1;
    qatomic_set(&w->poll.fd, -1);
    w->receives = w->is_stuck = false;
    w->sent = w->n_in = 0;
    g_byte_array_set_size(w->out, 0);
    qemu_bh_cancel(w->look);
}

void tt_net_wire_receive(TtNetWire *w, bool on)
{
    QEMU_LOCK_GUARD(&w->lock);
    w->receives = on;
}

ssize_t tt_net_wire_read(TtNetWire *w, const uint8_t **bytes)
{
    ssize_t n;

    QEMU_LOCK_GUARD(&w->lock);
    *bytes = w->in;
    n = w->n_in ? w->n_in : recv(w->fd, w->in, sizeof(w->in), MSG_DONTWAIT);
    w->n_in = 0;
    return n >= 0 ? n : errno == EWOULDBLOCK || errno == EINTR ? -EAGAIN : -errno;
}

bool tt_net_wire_send(TtNetWire *w, const uint8_t *bytes, size_t len)
{
    QEMU_LOCK_GUARD(&w->lock);
    g_byte_array_append(w->out, bytes, len);
    return is_main_loop && w->out->len - w->sent < LATER_MAX;
}

size_t tt_net_wire_waiting(TtNetWire *w)
{
    QEMU_LOCK_GUARD(&w->lock);
    return w->out->len - w->sent;
}

int tt_net_wire_flush(TtNetWire *w)
{
    int ret;

    QEMU_LOCK_GUARD(&w->lock);
    ret = send_all(w);
    w->is_stuck = ret != 0;
    return ret;
}
