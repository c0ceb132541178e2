/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The way to a vfio-user server, and what both agree on.
 */
#include "qemu/osdep.h"
#include "hw-tt/vfio-user/glue/tt-vfu-conn-int.h"
#include "qapi/error.h"
#include "qemu/sockets.h"
#include "qobject/qdict.h"
#include "qobject/qjson.h"
#include "qobject/qnum.h"

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

static bool get_limits(const char *text, unsigned *max_fds, TtDiag *diag)
{
    QObject *said = *text ? qobject_from_json(text, NULL) : NULL;
    QDict *all = qobject_to(QDict, said);
    QDict *caps = all ? qobject_to(QDict, qdict_get(all, "capabilities")) : NULL;
    int64_t fds = limit(caps, "max_msg_fds");
    int64_t data = limit(caps, "max_data_xfer_size");
    TtStatus st;

    if (*text && !all) {
        st = tt_fail(diag, TT_ERR_FORMAT, "the server's capabilities are not JSON");
    } else {
        st = tt_vfu_check_limits(&fds, &data, diag);
    }
    *max_fds = st ? 0 : fds;
    qobject_unref(said);
    return !st;
}

/* As unix_connect, which waits for ever where others wait already. -1: *errp says why. */
int tt_vfu_connect(const char *path, unsigned deadline_s, Error **errp)
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

bool tt_vfu_conn_agree(TtVfuConn *c, Error **errp)
{
    g_autofree uint8_t *ours = g_malloc(TT_VFU_TEXT_MAX);
    size_t len = tt_vfu_put_version(ours);
    const uint8_t *answer = NULL;
    const char *text;
    int n = tt_vfu_conn_ask(c, TT_VFU_VERSION, ours, len, NULL, 0, 0, &answer);
    TtDiag diag = { 0 };

    if (n < 0) {
        error_setg(errp, "%s", n == -ENODEV ? tt_vfu_conn_why(c) :
                   "the server refuses this version of vfio-user, 0.1");
        return false;
    }
    if (tt_vfu_get_version(answer, n, &text, &diag) ||
        !get_limits(text, &c->max_fds, &diag)) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    c->has_agreed = true;
    return true;
}
