/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The socket of a vfio-user server: sends and receives whole messages.
 */
#include "qemu/osdep.h"
#include "hw-tt/vfio-user/glue/tt-vfu-conn-int.h"
#include "qapi/error.h"
#include "qemu/main-loop.h"
#include "qemu/sockets.h"
#include "qemu/timer.h"
#include <poll.h>
#include <sys/ioctl.h>

/* A server that talks without end shall not keep the main loop. */
#define MESSAGES_AT_ONCE 64
/* Then one waits for its answer: a server that does not keep up is noticed. */
#define POSTED_MAX 16

void tt_vfu_conn_lock(TtVfuConn *c)
{
    if (c) {
        qemu_rec_mutex_lock(&c->lock);
    }
}

void tt_vfu_conn_unlock(TtVfuConn *c)
{
    if (c) {
        qemu_rec_mutex_unlock(&c->lock);
    }
}

/* NULL: a vCPU had found a register when its device was unplugged. */
bool tt_vfu_conn_is_lost(const TtVfuConn *c)
{
    return !c || c->is_lost;
}

const char *tt_vfu_conn_why(const TtVfuConn *c)
{
    return c->why ? c->why : "the server is gone";
}

unsigned tt_vfu_conn_max_fds(const TtVfuConn *c)
{
    return c->max_fds;
}

static void stop_listening(TtVfuConn *c)
{
    if (c->is_listened_to) {
        c->is_listened_to = false;
        tt_poll_remove(&c->poll);
        qemu_set_fd_handler(c->fd, NULL, NULL, NULL);
    }
}

/* BQL. */
static void say_loss(TtVfuConn *c)
{
    if (c->is_broken && !c->is_lost) {
        c->is_lost = true;
        stop_listening(c);
        close(c->fd);
        c->fd = -1;
        if (c->is_started) {
            c->ops->lost(c->opaque, c->why);
        }
    }
}

void tt_vfu_conn_lose(TtVfuConn *c, const char *fmt, ...)
{
    va_list args;

    tt_vfu_conn_lock(c);
    if (!tt_vfu_conn_is_down(c)) {
        va_start(args, fmt);
        c->why = g_strdup_vprintf(fmt, args);
        va_end(args);
    }
    c->is_broken = true;
    if (bql_locked()) {
        say_loss(c);
    }
    tt_vfu_conn_unlock(c);
}

/* ---- messages ---- */

static bool read_message(TtVfuConn *c, TtVfuHead *h, uint8_t *in)
{
    TtDiag diag;

    if (!tt_vfu_conn_read(c, in, TT_VFU_HEAD_BYTES)) {
        return false;
    }
    if (tt_vfu_get_head(h, in, &diag)) {
        tt_vfu_conn_lose(c, "%s", diag.text);
        return false;
    }
    return tt_vfu_conn_read(c, in + TT_VFU_HEAD_BYTES, h->bytes - TT_VFU_HEAD_BYTES);
}

/* Before a version is agreed on there is nobody to ask. */
static void serve(TtVfuConn *c, const TtVfuHead *h)
{
    if (!c->has_agreed) {
        tt_vfu_conn_lose(c, "the server sends a request before it answers to the version");
        return;
    }
    c->ops->serve(c->opaque, h, c->in + TT_VFU_HEAD_BYTES,
                  h->bytes - TT_VFU_HEAD_BYTES);
}

uint8_t *tt_vfu_conn_room(TtVfuConn *c)
{
    return c->out + TT_VFU_HEAD_BYTES;
}

void tt_vfu_conn_reply(TtVfuConn *c, const TtVfuHead *h, uint32_t error, size_t len)
{
    TtVfuHead reply = {
        .id = h->id, .command = h->command, .is_reply = true, .error = error,
        .bytes = TT_VFU_HEAD_BYTES + len,
    };

    if (!h->wants_no_reply && !tt_vfu_conn_is_down(c)) {
        tt_vfu_put_head(c->out, &reply);
        tt_vfu_conn_write(c, reply.bytes, NULL, 0);
    }
}

/* With the BQL, before anything else: what was left to be done with it. False: the server is
 * lost. */
static bool enter(TtVfuConn *c)
{
    say_loss(c);
    if (c->has_agreed) {
        qatomic_set(&c->has_writes, false);
        c->ops->settle(c->opaque);
    }
    return !c->is_lost;
}

/* False: the server is lost. */
static bool send_request(TtVfuConn *c, TtVfuHead *h, const void *payload, const int *fds,
                         unsigned n_fds)
{
    h->id = c->next_id++;
    tt_vfu_put_head(c->out, h);
    if (h->bytes > TT_VFU_HEAD_BYTES) {
        memcpy(c->out + TT_VFU_HEAD_BYTES, payload, h->bytes - TT_VFU_HEAD_BYTES);
    }
    tt_vfu_conn_begin(c);
    return tt_vfu_conn_write(c, h->bytes, fds, n_fds);
}

/* An answer that we did not want, from a server that answers all the same. */
static bool is_of_posted(TtVfuConn *c, const TtVfuHead *h)
{
    if (h->is_reply && h->command == TT_VFU_REGION_WRITE && c->n_posted) {
        c->n_posted--;
        return true;
    }
    return false;
}

/* As tt_vfu_conn_ask; the lock is held. */
static int ask(TtVfuConn *c, TtVfuHead *h, const void *payload, const int *fds,
               unsigned n_fds, size_t least, const uint8_t **answer)
{
    TtVfuHead got;
    TtDiag diag;

    if (!enter(c) || !send_request(c, h, payload, fds, n_fds)) {
        return -ENODEV;
    }
    while (read_message(c, &got, c->in) &&
           (!got.is_reply || (got.id != h->id && is_of_posted(c, &got)))) {
        if (!got.is_reply) {
            serve(c, &got);
        }
        if (!c->is_lost && qemu_clock_get_ms(QEMU_CLOCK_REALTIME) > c->deadline) {
            tt_vfu_conn_lose(c, "the server sends requests without end and does not "
                             "answer");
        }
        if (c->is_lost) {
            return -ENODEV;
        }
    }
    if (!c->is_lost && tt_vfu_check_reply(&got, h->id, h->command, least, &diag)) {
        tt_vfu_conn_lose(c, "%s", diag.text);
    }
    if (c->is_lost) {
        return -ENODEV;
    }
    c->n_posted = 0;
    if (got.error) {
        /* ENODEV means a lost server to our callers, so the server cannot use it. */
        return got.error == ENODEV ? -EIO : -(int)got.error;
    }
    if (answer) {
        *answer = c->in + TT_VFU_HEAD_BYTES;
    }
    return got.bytes - TT_VFU_HEAD_BYTES;
}

int tt_vfu_conn_ask(TtVfuConn *c, uint16_t command, const void *payload, size_t len,
                    const int *fds, unsigned n_fds, size_t least,
                    const uint8_t **answer)
{
    TtVfuHead h = { .command = command, .bytes = TT_VFU_HEAD_BYTES + len };
    int ret = -ENODEV;

    if (c) {
        tt_vfu_conn_lock(c);
        ret = ask(c, &h, payload, fds, n_fds, least, answer);
        tt_vfu_conn_unlock(c);
    }
    return ret;
}

bool tt_vfu_conn_post(TtVfuConn *c, uint16_t command, const void *payload, size_t len)
{
    TtVfuHead h = {
        .command = command, .bytes = TT_VFU_HEAD_BYTES + len, .wants_no_reply = true,
    };
    bool ok;

    if (tt_vfu_conn_is_lost(c)) {
        return false;
    }
    tt_vfu_conn_lock(c);
    ok = c->n_posted < POSTED_MAX && enter(c);
    if (ok) {
        c->n_posted++;
        send_request(c, &h, payload, NULL, 0);
    }
    tt_vfu_conn_unlock(c);
    return ok;
}

/* False: nothing waits, or the server is lost. */
static bool serve_one(TtVfuConn *c)
{
    struct pollfd p = { .fd = c->fd, .events = POLLIN };
    TtVfuHead h;

    if (c->is_lost || poll(&p, 1, 0) <= 0 || !read_message(c, &h, c->in)) {
        return false;
    }
    if (is_of_posted(c, &h)) {
        return true;
    }
    if (h.is_reply) {
        tt_vfu_conn_lose(c, "the server answered %s, which was not requested",
                         tt_vfu_command_name(h.command));
        return false;
    }
    serve(c, &h);
    return true;
}

static void readable(void *opaque)
{
    TtVfuConn *c = opaque;

    tt_vfu_conn_lock(c);
    if (enter(c)) {
        tt_vfu_conn_begin(c);           /* of all: the BQL is held */
        for (int i = 0; i < MESSAGES_AT_ONCE && serve_one(c); i++) {
        }
    }
    tt_vfu_conn_unlock(c);
}

bool tt_vfu_conn_listens(const TtVfuConn *c)
{
    return c->is_listened_to;
}

void tt_vfu_conn_settle(TtVfuConn *c)
{
    if (!tt_vfu_conn_is_lost(c)) {
        tt_vfu_conn_lock(c);
        enter(c);
        tt_vfu_conn_unlock(c);
    }
}

/* What comes meanwhile was sent later. */
void tt_vfu_conn_drain(TtVfuConn *c)
{
    uint64_t end;
    int waiting = 0;

    if (tt_vfu_conn_is_lost(c)) {
        return;
    }
    tt_vfu_conn_lock(c);
    if (enter(c) && !ioctl(c->fd, FIONREAD, &waiting)) {
        tt_vfu_conn_begin(c);
        end = c->n_read + waiting;
        while (c->n_read < end && serve_one(c)) {
        }
    }
    tt_vfu_conn_unlock(c);
}

static void free_conn(TtVfuConn *c)
{
    qemu_bh_delete(c->look);
    qemu_rec_mutex_destroy(&c->lock);
    g_free(c->why);
    g_free(c->in);
    g_free(c->out);
    g_free(c->early);
    g_free(c);
}

static void put_conn(TtVfuConn *c)
{
    if (qatomic_fetch_dec(&c->n_refs) == 1) {
        call_rcu(c, free_conn, rcu);    /* the main loop may be about to look at it */
    }
}

/* ---- without the BQL ---- */

/* A request for DMA that is served at once. False: it, or what is there instead, is left to
 * who has the BQL. */
static bool serve_early(TtVfuConn *c, TtVfuHead *h)
{
    uint8_t seen[TT_VFU_HEAD_BYTES + TT_VFU_DMA_BYTES];
    ssize_t n = recv(c->fd, seen, sizeof(seen), MSG_PEEK | MSG_DONTWAIT);

    if (n != sizeof(seen) || tt_vfu_get_head(h, seen, NULL) || h->is_reply ||
        !c->ops->can_early(c->opaque, h, seen + TT_VFU_HEAD_BYTES)) {
        return false;
    }
    if (read_message(c, h, c->early)) {
        c->ops->serve_early(c->opaque, h, c->early + TT_VFU_HEAD_BYTES,
                            h->bytes - TT_VFU_HEAD_BYTES);
    }
    return !c->is_broken;
}

static void before(void *opaque)
{
    TtVfuConn *c = opaque;
    bool is_asked = qatomic_read(&c->has_asked) && tt_poll_is_vcpu_asked();

    if (qatomic_read(&c->is_broken) ||
        (!is_asked && (qatomic_read(&c->has_writes) || qatomic_read(&c->has_irqs)))) {
        qemu_bh_schedule(c->look);      /* no handler was called */
    }
}

/* BQL. While the VM stands nothing is delivered. */
static void look(void *opaque)
{
    TtVfuConn *c = opaque;

    if (c->is_listened_to) {
        tt_vfu_conn_settle(c);
    }
    if (c->is_listened_to) {
        c->ops->deliver(c->opaque);
    }
}

static void in_vcpu(void *opaque)
{
    TtVfuConn *c = opaque;

    qatomic_set(&c->has_asked, false);
    look(c);
    put_conn(c);
}

bool tt_vfu_conn_ask_vcpu(TtVfuConn *c)
{
    if (!qatomic_xchg(&c->has_asked, true)) {
        qatomic_inc(&c->n_refs);
        if (!tt_poll_ask_vcpu(in_vcpu, c)) {
            qatomic_dec(&c->n_refs);    /* not the last: it is open */
            qatomic_set(&c->has_asked, false);
            return false;
        }
    }
    return tt_poll_is_vcpu_asked();
}

void tt_vfu_conn_set_writes(TtVfuConn *c)
{
    qatomic_set(&c->has_writes, true);
}

void tt_vfu_conn_set_irqs(TtVfuConn *c, bool has)
{
    qatomic_set(&c->has_irqs, has);
}

static bool poll_early(void *opaque)
{
    TtVfuConn *c = opaque;
    bool is_all = false;
    struct pollfd p;
    TtVfuHead h;

    tt_vfu_conn_lock(c);
    if (c->is_listened_to && !tt_vfu_conn_is_down(c)) {
        tt_vfu_conn_begin(c);
        for (int i = 0; i < MESSAGES_AT_ONCE && serve_early(c, &h); i++) {
        }
        p = (struct pollfd) { .fd = c->fd, .events = POLLIN };
        is_all = !tt_vfu_conn_is_down(c) && poll(&p, 1, 0) <= 0 &&
            (!c->has_writes || tt_vfu_conn_ask_vcpu(c));
    }
    tt_vfu_conn_unlock(c);
    return is_all;
}

/* ---- beginning and end ---- */

TtVfuConn *tt_vfu_conn_open(const char *path, unsigned deadline_s,
                            const TtVfuConnOps *ops, void *opaque, Error **errp)
{
    int fd = tt_vfu_connect(path, deadline_s, errp);
    TtVfuConn *c;

    if (fd < 0) {
        return NULL;
    }
    qemu_socket_set_nonblock(fd);
    c = g_new0(TtVfuConn, 1);
    qemu_rec_mutex_init(&c->lock);
    c->fd = fd;
    c->poll = (TtPoll) { .fd = fd, .before = before, .ready = poll_early,
                         .opaque = c };
    c->patience_ms = deadline_s * 1000;
    c->ops = ops;
    c->opaque = opaque;
    c->in = g_malloc(TT_VFU_BYTES_MAX);
    c->out = g_malloc(TT_VFU_BYTES_MAX);
    c->early = g_malloc(TT_VFU_BYTES_MAX);
    c->n_refs = 1;
    c->look = qemu_bh_new(look, c);
    if (!tt_vfu_conn_agree(c, errp)) {
        tt_vfu_conn_close(c);
        return NULL;
    }
    return c;
}

void tt_vfu_conn_start(TtVfuConn *c)
{
    c->is_started = true;
    if (c->is_lost) {
        c->ops->lost(c->opaque, c->why);
    }
}

void tt_vfu_conn_listen(TtVfuConn *c, bool on)
{
    tt_vfu_conn_lock(c);
    if (!on) {
        enter(c);
        stop_listening(c);
    } else if (enter(c) && !c->is_listened_to) {
        c->is_listened_to = true;
        qemu_set_fd_handler(c->fd, readable, NULL, c);
        tt_poll_add(&c->poll);
    }
    tt_vfu_conn_unlock(c);
}

void tt_vfu_conn_close(TtVfuConn *c)
{
    if (!c) {
        return;
    }
    c->is_started = false;
    tt_vfu_conn_lose(c, "closed");
    put_conn(c);
}
