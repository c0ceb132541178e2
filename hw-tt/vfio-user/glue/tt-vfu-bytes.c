/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bytes to and from a vfio-user server, with a deadline. Descriptors are sent only; those
 * that a server sends are dropped unread.
 */
#include "qemu/osdep.h"
#include "hw-tt/vfio-user/glue/tt-vfu-conn-int.h"
#include "qemu/timer.h"
#include <poll.h>

void tt_vfu_conn_begin(TtVfuConn *c)
{
    c->deadline = qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + c->patience_ms;
}

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
    return !tt_vfu_conn_is_down(c);
}

bool tt_vfu_conn_read(TtVfuConn *c, uint8_t *to, size_t len)
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

bool tt_vfu_conn_write(TtVfuConn *c, size_t len, const int *fds, unsigned n_fds)
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
