/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The socket of a vfio-user server: sends and receives whole messages, with a
 * deadline. Descriptors are sent only; those that a server sends are dropped unread.
 */
#include "qemu/osdep.h"
#include "hw-tt/vfio-user/glue/tt-vfu-conn.h"
#include "qapi/error.h"
#include "qemu/main-loop.h"
#include "qemu/sockets.h"
#include "qemu/timer.h"
#include "qobject/qdict.h"
#include "qobject/qjson.h"
#include "qobject/qnum.h"
#include <poll.h>
#include <sys/ioctl.h>

/* A server that talks without end shall not keep the main loop. */
#define MESSAGES_AT_ONCE 64

struct TtVfuConn {
    int fd;
    bool is_lost, is_started, has_agreed;
    uint16_t next_id;
    uint64_t n_read;                    /* bytes, from the server */
    unsigned max_fds;
    int64_t patience_ms, deadline;      /* of what is going on now */
    const TtVfuConnOps *ops;
    void *opaque;
    char *why;
    uint8_t *in, *out;                  /* TT_VFU_BYTES_MAX each */
};

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

void tt_vfu_conn_lose(TtVfuConn *c, const char *fmt, ...)
{
    va_list args;

    if (c->is_lost) {
        return;
    }
    c->is_lost = true;
    va_start(args, fmt);
    c->why = g_strdup_vprintf(fmt, args);
    va_end(args);
    qemu_set_fd_handler(c->fd, NULL, NULL, NULL);
    close(c->fd);
    c->fd = -1;
    if (c->is_started) {
        c->ops->lost(c->opaque, c->why);
    }
}

/* ---- bytes ---- */

static void begin(TtVfuConn *c)
{
    c->deadline = qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + c->patience_ms;
}

/* False: the server is lost. */
static bool wait_for(TtVfuConn *c, short what)
{
    struct pollfd p = { .fd = c->fd, .events = what };
    int64_t left = c->deadline - qemu_clock_get_ms(QEMU_CLOCK_REALTIME);
    int ret = left > 0 ? poll(&p, 1, left) : 0;

    if (!ret) {
        tt_vfu_conn_lose(c, "the server has not answered for %u s",
                         (unsigned)(c->patience_ms / 1000));
    } else if (ret < 0 && errno != EINTR) {
        tt_vfu_conn_lose(c, "the server's socket cannot be polled: %s", strerror(errno));
    }
    return !c->is_lost;
}

static bool read_all(TtVfuConn *c, uint8_t *to, size_t len)
{
    while (len) {
        ssize_t n = read(c->fd, to, len);

        if (n > 0) {
            to += n;
            len -= n;
            c->n_read += n;
        } else if (!n) {
            tt_vfu_conn_lose(c, "the server has closed the connection");
            return false;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (!wait_for(c, POLLIN)) {
                return false;
            }
        } else if (errno != EINTR) {
            tt_vfu_conn_lose(c, "the server cannot be read from: %s", strerror(errno));
            return false;
        }
    }
    return true;
}

static ssize_t send_part(TtVfuConn *c, const uint8_t *from, size_t len,
                         const int *fds, unsigned n_fds)
{
    union {
        char bytes[CMSG_SPACE(TT_VFU_FDS_MAX * sizeof(int))];
        struct cmsghdr align;
    } control = { 0 };
    struct iovec iov = { (void *)from, len };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

    if (n_fds) {
        struct cmsghdr *cm;

        m.msg_control = control.bytes;
        m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        cm = CMSG_FIRSTHDR(&m);
        cm->cmsg_level = SOL_SOCKET;
        cm->cmsg_type = SCM_RIGHTS;
        cm->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(cm), fds, n_fds * sizeof(int));
    }
    return sendmsg(c->fd, &m, MSG_NOSIGNAL);
}

static bool write_all(TtVfuConn *c, size_t len, const int *fds, unsigned n_fds)
{
    const uint8_t *from = c->out;

    while (len) {
        ssize_t n = send_part(c, from, len, fds, n_fds);

        if (n > 0) {
            from += n;
            len -= n;
            n_fds = 0;
        } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            if (!wait_for(c, POLLOUT)) {
                return false;
            }
        } else if (n < 0 && errno != EINTR) {
            tt_vfu_conn_lose(c, "the server cannot be written to: %s",
                             strerror(errno));
            return false;
        }
    }
    return true;
}

/* ---- messages ---- */

static bool read_message(TtVfuConn *c, TtVfuHead *h)
{
    TtDiag diag;

    if (!read_all(c, c->in, TT_VFU_HEAD_BYTES)) {
        return false;
    }
    if (tt_vfu_get_head(h, c->in, &diag)) {
        tt_vfu_conn_lose(c, "%s", diag.text);
        return false;
    }
    return read_all(c, c->in + TT_VFU_HEAD_BYTES, h->bytes - TT_VFU_HEAD_BYTES);
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

    if (!h->wants_no_reply && !c->is_lost) {
        tt_vfu_put_head(c->out, &reply);
        write_all(c, reply.bytes, NULL, 0);
    }
}

int tt_vfu_conn_ask(TtVfuConn *c, uint16_t command, const void *payload, size_t len,
                    const int *fds, unsigned n_fds, size_t least,
                    const uint8_t **answer)
{
    TtVfuHead h = { .command = command, .bytes = TT_VFU_HEAD_BYTES + len }, got;
    TtDiag diag;

    if (tt_vfu_conn_is_lost(c)) {
        return -ENODEV;
    }
    h.id = c->next_id++;
    tt_vfu_put_head(c->out, &h);
    if (len) {
        memcpy(c->out + TT_VFU_HEAD_BYTES, payload, len);
    }
    begin(c);
    if (!write_all(c, h.bytes, fds, n_fds)) {
        return -ENODEV;
    }
    while (read_message(c, &got) && !got.is_reply) {
        serve(c, &got);
        if (!c->is_lost && qemu_clock_get_ms(QEMU_CLOCK_REALTIME) > c->deadline) {
            tt_vfu_conn_lose(c, "the server sends requests without end and does not "
                             "answer");
        }
        if (c->is_lost) {
            return -ENODEV;
        }
    }
    if (!c->is_lost && tt_vfu_check_reply(&got, h.id, command, least, &diag)) {
        tt_vfu_conn_lose(c, "%s", diag.text);
    }
    if (c->is_lost) {
        return -ENODEV;
    }
    if (got.error) {
        /* ENODEV means a lost server to our callers, so the server cannot use it. */
        return got.error == ENODEV ? -EIO : -(int)got.error;
    }
    if (answer) {
        *answer = c->in + TT_VFU_HEAD_BYTES;
    }
    return got.bytes - TT_VFU_HEAD_BYTES;
}

/* False: nothing waits, or the server is lost. */
static bool serve_one(TtVfuConn *c)
{
    struct pollfd p = { .fd = c->fd, .events = POLLIN };
    TtVfuHead h;

    if (c->is_lost || poll(&p, 1, 0) <= 0 || !read_message(c, &h)) {
        return false;
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

    begin(c);                           /* of all: the BQL is held */
    for (int i = 0; i < MESSAGES_AT_ONCE && serve_one(c); i++) {
    }
}

/* What comes meanwhile was sent later. */
void tt_vfu_conn_drain(TtVfuConn *c)
{
    uint64_t end;
    int waiting = 0;

    begin(c);
    if (!c->is_lost && !ioctl(c->fd, FIONREAD, &waiting)) {
        end = c->n_read + waiting;
        while (c->n_read < end && serve_one(c)) {
        }
    }
}

/* ---- beginning and end ---- */

/* -1: it is not said; -2: it is not a number. */
static int64_t limit(QDict *caps, const char *name)
{
    QObject *o = caps ? qdict_get(caps, name) : NULL;
    QNum *n = qobject_to(QNum, o);
    int64_t v;

    if (!o) {
        return -1;
    }
    return n && qnum_get_try_int(n, &v) && v >= 0 ? v : -2;
}

static bool agree(TtVfuConn *c, Error **errp)
{
    g_autofree uint8_t *ours = g_malloc(TT_VFU_TEXT_MAX);
    size_t len = tt_vfu_put_version(ours);
    const uint8_t *answer = NULL;
    const char *text;
    int n = tt_vfu_conn_ask(c, TT_VFU_VERSION, ours, len, NULL, 0, 0, &answer);
    int64_t fds, data;
    QObject *said = NULL;
    QDict *caps;
    TtDiag diag = { 0 };
    bool ok;

    if (n < 0) {
        error_setg(errp, "%s", n == -ENODEV ? tt_vfu_conn_why(c) :
                   "the server refuses this version of vfio-user, 0.1");
        return false;
    }
    ok = !tt_vfu_get_version(answer, n, &text, &diag);
    if (ok && *text) {
        said = qobject_from_json(text, NULL);
        ok = qobject_to(QDict, said);
        if (!ok) {
            tt_fail(&diag, TT_ERR_FORMAT, "the server's capabilities are not JSON");
        }
    }
    if (ok) {
        caps = said ? qobject_to(QDict, qdict_get(qobject_to(QDict, said),
                                                  "capabilities")) : NULL;
        fds = limit(caps, "max_msg_fds");
        data = limit(caps, "max_data_xfer_size");
        ok = !tt_vfu_check_limits(&fds, &data, &diag);
        c->max_fds = ok ? fds : 0;
        c->has_agreed = ok;
    }
    qobject_unref(said);
    if (!ok) {
        error_setg(errp, "%s", diag.text);
    }
    return ok;
}

/* As unix_connect, which waits for ever where others wait already. -1: *errp says why. */
static int connect_to(const char *path, unsigned deadline_s, Error **errp)
{
    const struct timeval patience = { .tv_sec = deadline_s };
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    int fd, ret;

    if (strlen(path) >= sizeof(to.sun_path)) {
        error_setg(errp, "the path of the server's socket is too long: '%s'", path);
        return -1;
    }
    strcpy(to.sun_path, path);
    fd = qemu_socket(AF_UNIX, SOCK_STREAM, 0);
    ret = fd < 0 ? -1 : setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience,
                                   sizeof(patience));
    if (!ret) {
        ret = RETRY_ON_EINTR(connect(fd, (struct sockaddr *)&to, sizeof(to)));
    }
    if (ret) {
        if (errno == EAGAIN) {
            error_setg(errp, "the server at '%s' has not answered for %u s", path,
                       deadline_s);
        } else {
            error_setg_errno(errp, errno, "Failed to connect to '%s'", path);
        }
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    return fd;
}

TtVfuConn *tt_vfu_conn_open(const char *path, unsigned deadline_s,
                            const TtVfuConnOps *ops, void *opaque, Error **errp)
{
    int fd = connect_to(path, deadline_s, errp);
    TtVfuConn *c;

    if (fd < 0) {
        return NULL;
    }
    qemu_socket_set_nonblock(fd);
    c = g_new0(TtVfuConn, 1);
    c->fd = fd;
    c->patience_ms = deadline_s * 1000;
    c->ops = ops;
    c->opaque = opaque;
    c->in = g_malloc(TT_VFU_BYTES_MAX);
    c->out = g_malloc(TT_VFU_BYTES_MAX);
    if (!agree(c, errp)) {
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
    if (!c->is_lost) {
        qemu_set_fd_handler(c->fd, on ? readable : NULL, NULL, c);
    }
}

void tt_vfu_conn_close(TtVfuConn *c)
{
    if (!c) {
        return;
    }
    c->is_started = false;
    tt_vfu_conn_lose(c, "closed");
    g_free(c->why);
    g_free(c->in);
    g_free(c->out);
    g_free(c);
}
