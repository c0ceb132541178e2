/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt disk: a version of a disk, as QEMU's own qemu-nbd serves it, whatever lies below it
 * (raw, qcow2, ...). We listen, and hand the socket on as systemd would (LISTEN_FDS), so
 * there is no moment when nobody listens. To read it ourselves we speak the oldest part
 * of the NBD protocol (its doc/proto.md): one export, simple replies.
 */
#include "tt-tool-disk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the server ---- */

char *tool_disk_options(const ToolDisk *d, const ToolDiskAt *at)
{
    g_autofree char *path = tool_option_value(d->path);

    if (!path || !tool_disk_has_image(d)) {
        return NULL;
    }
    if (at->is_now && tool_disk_is_written(d->path)) {
        tool_complain("a VM or a tool of QEMU's writes the disk '%s', so the disk as it is "
                      "now cannot be read: name a version of it, which can (tt disk list has "
                      "them), or wait until that has ended", d->path);
        return NULL;
    }
    if (at->is_now) {                   /* that it is damaged has been said */
        return g_strdup_printf("driver=tt,damaged=on,read-only=on,file.driver=file,"
                               "file.filename=%s", path);
    }
    /* A version never changes, so a VM may write the disk meanwhile. */
    return g_strdup_printf("driver=tt,version=%" PRIu32 ",read-only=on,force-share=on,"
                           "file.driver=file,file.filename=%s", at->id, path);
}

static void be_qemu_nbd(const char *program, const char *options, int listener,
                        bool keeps)
{
    const char *const argv[] = {
        program, "--read-only", "--shared=16", "--image-opts", options,
        keeps ? "--persistent" : NULL, NULL,
    };
    g_autofree char *self = g_strdup_printf("%d", (int)getpid());
    int null = open("/dev/null", O_RDONLY);

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    dup2(null, 0);
    dup2(2, 1);
    if (listener == 3) {
        fcntl(3, F_SETFD, 0);
    } else {
        dup2(listener, 3);
    }
    g_setenv("LISTEN_FDS", "1", true);
    g_setenv("LISTEN_PID", self, true);
    execv(program, (char **)argv);
    fprintf(stderr, "tt: cannot run '%s': %s\n", program, g_strerror(errno));
    _exit(127);
}

pid_t tool_disk_serve(const ToolArgs *a, const ToolDisk *d, const ToolDiskAt *at,
                      int listener, bool keeps)
{
    g_autofree char *options = tool_disk_options(d, at);
    g_autofree char *program = options ? tool_find_beside(a->program, "qemu-nbd") : NULL;
    pid_t pid;

    if (!program) {
        return -1;
    }
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        be_qemu_nbd(program, options, listener, keeps);
    }
    if (pid < 0) {
        tool_complain("cannot start a process: %s", g_strerror(errno));
    }
    return pid;
}

/* ---- the client ---- */

#define READ_MAX        (1u << 20)      /* of one request */

typedef struct NbdIo {
    TtIo io;
    int fd;
    pid_t server;
    uint64_t bytes, handle;
} NbdIo;

static void put_be32(uint8_t *p, uint32_t v)
{
    v = GUINT32_TO_BE(v);
    memcpy(p, &v, 4);
}

static void put_be64(uint8_t *p, uint64_t v)
{
    v = GUINT64_TO_BE(v);
    memcpy(p, &v, 8);
}

static uint64_t get_be(const uint8_t *p, unsigned bytes)
{
    uint64_t v = 0;

    while (bytes--) {
        v = v << 8 | *p++;
    }
    return v;
}

static bool send_all(int fd, const void *buf, size_t len)
{
    for (const char *p = buf; len;) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        p += n;
        len -= n;
    }
    return true;
}

static bool receive_all(int fd, void *buf, size_t len)
{
    for (char *p = buf; len;) {
        ssize_t n = recv(fd, p, len, 0);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        p += n;
        len -= n;
    }
    return true;
}

/* Asks for the export without a name. */
static bool greet(NbdIo *n)
{
    static const uint8_t hello[] = "NBDMAGICIHAVEOPT";
    uint8_t b[4 + 16], padding[124];
    uint16_t flags;

    if (!receive_all(n->fd, b, 18) || memcmp(b, hello, 16) != 0) {
        return false;
    }
    flags = get_be(b + 16, 2);
    put_be32(b, flags & 3);             /* new style; no zeros at the end */
    memcpy(b + 4, "IHAVEOPT", 8);
    put_be32(b + 12, 1);                /* NBD_OPT_EXPORT_NAME */
    put_be32(b + 16, 0);
    if (!send_all(n->fd, b, 20) || !receive_all(n->fd, b, 10)) {
        return false;
    }
    n->bytes = get_be(b, 8);
    return flags & 2 || receive_all(n->fd, padding, sizeof(padding));
}

static TtStatus nbd_size(TtIo *io, uint64_t *bytes, TtDiag *diag)
{
    *bytes = ((NbdIo *)io)->bytes;
    return TT_OK;
}

static bool request(NbdIo *n, uint16_t type, uint64_t offset, uint32_t len)
{
    uint8_t b[28] = { 0x25, 0x60, 0x95, 0x13, 0, 0, 0, type };

    put_be64(b + 8, ++n->handle);
    put_be64(b + 16, offset);
    put_be32(b + 24, len);
    return send_all(n->fd, b, sizeof(b));
}

static TtStatus nbd_read_at(TtIo *io, uint64_t offset, void *buf, size_t len,
                            size_t *got, TtDiag *diag)
{
    NbdIo *n = (NbdIo *)io;
    uint8_t b[16];

    *got = 0;
    len = offset < n->bytes ? MIN(len, n->bytes - offset) : 0;
    while (*got < len) {
        uint32_t part = MIN(len - *got, READ_MAX);

        if (!request(n, 0, offset + *got, part) || !receive_all(n->fd, b, 16) ||
            get_be(b, 4) != 0x67446698 || get_be(b + 8, 8) != n->handle) {
            return tt_fail(diag, TT_ERR_IO, "the connection to qemu-nbd is broken");
        }
        if (get_be(b + 4, 4)) {
            return tt_fail(diag, TT_ERR_IO, "the disk cannot be read at byte %" PRIu64 ": "
                           "%s", offset + *got, g_strerror(get_be(b + 4, 4)));
        }
        if (!receive_all(n->fd, (char *)buf + *got, part)) {
            return tt_fail(diag, TT_ERR_IO, "the connection to qemu-nbd is broken");
        }
        *got += part;
    }
    return TT_OK;
}

static void nbd_close(TtIo *io)
{
    NbdIo *n = (NbdIo *)io;
    int status;

    if (n->fd >= 0) {
        (void)request(n, 2, 0, 0);      /* goodbye */
        close(n->fd);
    }
    while (n->server > 0 && waitpid(n->server, &status, 0) < 0 && errno == EINTR) {
    }
    g_free(n);
}

static const TtIoOps nbd_ops = {
    .size = nbd_size, .read_at = nbd_read_at, .close = nbd_close,
};

/* A socket that nobody else reaches, and one that is connected to it. */
static bool make_sockets(int *listener, int *fd)
{
    g_autofree char *dir = g_dir_make_tmp("tt-disk-XXXXXX", NULL);
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    bool ok = false;

    *listener = *fd = -1;
    if (dir && g_snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/nbd", dir) <
               sizeof(addr.sun_path)) {
        *listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ok = *listener >= 0 && *fd >= 0 &&
            bind(*listener, (struct sockaddr *)&addr, sizeof(addr)) == 0 &&
            listen(*listener, 1) == 0 &&
            connect(*fd, (struct sockaddr *)&addr, sizeof(addr)) == 0;
        unlink(addr.sun_path);
    }
    if (!ok) {
        tool_complain("cannot make a socket for qemu-nbd in a temporary directory: %s",
                      g_strerror(errno));
    }
    if (dir) {
        rmdir(dir);
    }
    return ok;
}

TtIo *tool_disk_read(const ToolArgs *a, const ToolDisk *d, const ToolDiskAt *at)
{
    NbdIo *n = g_new0(NbdIo, 1);
    int listener;
    bool ok;

    n->io.ops = &nbd_ops;
    ok = make_sockets(&listener, &n->fd);
    if (ok) {
        n->server = tool_disk_serve(a, d, at, listener, false);
        ok = n->server > 0;
    }
    if (listener >= 0) {
        close(listener);
    }
    if (ok && !greet(n)) {
        ok = false;
        tool_complain("qemu-nbd cannot read %s of '%s'", at->words, d->path);
    }
    if (!ok) {
        nbd_close(&n->io);
        return NULL;
    }
    return &n->io;
}
