/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TtIo on a regular file.
 *
 * A full disk (or quota, or file size limit) is told apart from other failures as
 * TT_ERR_NOSPACE: the user can free space. A file is replaced by writing PATH.new
 * beside it, flushing that, and renaming it.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE             /* fallocate */
#endif
#include "io/tt-io.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <glib.h>

/* Linux moves at most 0x7ffff000 bytes in one call; stay well below. */
#define CHUNK_BYTES_MAX (1u << 30)

typedef struct PosixIo {
    TtIo io;
    int fd;
    char *path;                 /* for sentences */
    bool is_fresh;              /* goes when it is closed */
    bool is_unnamed;            /* not in @path's directory yet */
    int lost;                   /* errno of a flush that failed, or 0 */
} PosixIo;

static PosixIo *posix_io(TtIo *io)
{
    return (PosixIo *)((char *)io - offsetof(PosixIo, io));
}

static TtStatus fail_errno(TtDiag *diag, const char *what, const char *path,
                           uint64_t offset)
{
    int err = errno;
    bool full = err == ENOSPC || err == EDQUOT || err == EFBIG;
    TtStatus status = tt_fail(diag, full ? TT_ERR_NOSPACE : TT_ERR_IO,
                              "cannot %s '%s': %s%s", what, path,
                              g_strerror(err), err == EFBIG ? " (file size "
                              "limit, see ulimit -f)" : "");
    if (diag) {
        diag->os_errno = err;
        diag->offset = offset;
    }
    return status;
}

static TtStatus posix_size(TtIo *io, uint64_t *bytes, TtDiag *diag)
{
    PosixIo *p = posix_io(io);
    struct stat st;

    if (fstat(p->fd, &st) < 0) {
        return fail_errno(diag, "examine", p->path, 0);
    }
    *bytes = st.st_size;
    return TT_OK;
}

static TtStatus posix_read_at(TtIo *io, uint64_t offset, void *buf, size_t len,
                              size_t *got, TtDiag *diag)
{
    PosixIo *p = posix_io(io);
    size_t done = 0;

    *got = 0;
    if (offset > INT64_MAX || len > INT64_MAX - offset) {
        return tt_fail(diag, TT_ERR_INVALID,
                       "cannot read '%s' beyond what a file may hold", p->path);
    }
    while (done < len) {
        ssize_t n = pread(p->fd, (char *)buf + done,
                          MIN(len - done, CHUNK_BYTES_MAX), offset + done);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return fail_errno(diag, "read", p->path, offset + done);
        }
        if (n == 0) {
            break;
        }
        done += n;
    }
    *got = done;
    return TT_OK;
}

static TtStatus posix_append(TtIo *io, const void *buf, size_t len,
                             TtDiag *diag)
{
    PosixIo *p = posix_io(io);
    size_t done = 0;

    while (done < len) {
        ssize_t n = write(p->fd, (const char *)buf + done,
                          MIN(len - done, CHUNK_BYTES_MAX));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            if (n == 0) {
                errno = ENOSPC;
            }
            return fail_errno(diag, "write to", p->path, 0);
        }
        done += n;
    }
    return TT_OK;
}

static TtStatus posix_sync(TtIo *io, TtDiag *diag)
{
    PosixIo *p = posix_io(io);

    /* After a failure Linux counts what was not written as clean, and the next flush would
     * pass for a good one. */
    if (!p->lost && fdatasync(p->fd) < 0) {
        p->lost = errno;
    }
    if (p->lost) {
        errno = p->lost;
        return fail_errno(diag, "flush to disk", p->path, 0);
    }
    return TT_OK;
}

static void posix_close(TtIo *io)
{
    PosixIo *p = posix_io(io);

    if (p->is_fresh) {
        unlink(p->path);
    }
    close(p->fd);
    g_free(p->path);
    g_free(p);
}

static TtStatus posix_truncate(TtIo *io, uint64_t bytes, TtDiag *diag)
{
    PosixIo *p = posix_io(io);

    if (bytes > INT64_MAX || ftruncate(p->fd, bytes) < 0) {
        return fail_errno(diag, "cut", p->path, bytes);
    }
    return TT_OK;
}

static TtStatus posix_punch(TtIo *io, uint64_t offset, uint64_t len,
                            TtDiag *diag)
{
#ifdef FALLOC_FL_PUNCH_HOLE
    PosixIo *p = posix_io(io);

    if (len == 0) {
        return TT_OK;
    }
    if (offset > INT64_MAX || len > INT64_MAX - offset) {
        return tt_fail(diag, TT_ERR_INVALID,
                       "cannot free space in '%s' beyond what a file may hold",
                       p->path);
    }
    if (!fallocate(p->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset,
                   len)) {
        return TT_OK;
    }
    if (errno != EOPNOTSUPP && errno != ENOSYS) {
        return fail_errno(diag, "free a part of", p->path, offset);
    }
#endif
    return tt_fail(diag, TT_ERR_INVALID,
                   "this file system cannot free a part of a file");
}

static TtStatus posix_replace_begin(TtIo *io, TtIo **fresh, TtDiag *diag);
static TtStatus posix_replace_commit(TtIo *io, TtIo *fresh, TtDiag *diag);

static const TtIoOps posix_ops = {
    .size = posix_size,
    .read_at = posix_read_at,
    .append = posix_append,
    .sync = posix_sync,
    .close = posix_close,
    .truncate = posix_truncate,
    .punch = posix_punch,
    .replace_begin = posix_replace_begin,
    .replace_commit = posix_replace_commit,
};

static TtIo *posix_new(int fd, const char *path)
{
    PosixIo *p = g_new0(PosixIo, 1);

    p->io.ops = &posix_ops;
    p->fd = fd;
    p->path = g_strdup(path);
    return &p->io;
}

/* Somebody may have moved the file's directory away, and made another. */
static TtStatus check_place(PosixIo *p, TtDiag *diag)
{
    struct stat ours, there;

    return fstat(p->fd, &ours) || stat(p->path, &there) ||
        ours.st_ino != there.st_ino || ours.st_dev != there.st_dev ?
        tt_fail(diag, TT_ERR_IO, "'%s' is no longer the file being written: it "
                "was deleted or moved", p->path) : TT_OK;
}

static TtStatus posix_replace_begin(TtIo *io, TtIo **fresh, TtDiag *diag)
{
    g_autofree char *path = g_strconcat(posix_io(io)->path, ".new", NULL);
    TtStatus st = check_place(posix_io(io), diag);
    int fd;

    *fresh = NULL;
    if (st != TT_OK) {
        return st;
    }
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC |
              O_NOFOLLOW, 0600);
    if (fd < 0) {
        return fail_errno(diag, "create", path, 0);
    }
    *fresh = posix_new(fd, path);
    posix_io(*fresh)->is_fresh = true;
    return TT_OK;
}

/* The rename itself must not be lost, or an old file would name what is gone
 * since. It has happened by now: a failure here is none of the caller's. */
void tt_io_posix_sync_directory_of(const char *path)
{
    g_autofree char *dir = g_path_get_dirname(path);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
}

static TtStatus posix_replace_commit(TtIo *io, TtIo *fresh, TtDiag *diag)
{
    PosixIo *p = posix_io(io), *f = posix_io(fresh);
    TtStatus st = posix_sync(fresh, diag);

    if (st == TT_OK) {
        st = check_place(p, diag);
    }
    if (st == TT_OK && rename(f->path, p->path) < 0) {
        st = fail_errno(diag, "rename", f->path, 0);
    }
    if (st == TT_OK) {
        int fd = p->fd;

        p->fd = f->fd;
        p->lost = 0;
        f->fd = fd;
        f->is_fresh = false;
        tt_io_posix_sync_directory_of(p->path);
    }
    posix_close(fresh);
    return st;
}

static TtStatus open_existing(const char *path, int mode, TtIo **out,
                              TtDiag *diag)
{
    struct stat st;
    /* O_NONBLOCK: a FIFO in the place of the file must not hang us. */
    int fd = open(path, mode | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    *out = NULL;
    if (fd < 0) {
        return fail_errno(diag, "open", path, 0);
    }
    if (fstat(fd, &st) < 0) {
        TtStatus status = fail_errno(diag, "examine", path, 0);
        close(fd);
        return status;
    }
    if (!S_ISREG(st.st_mode)) {
        close(fd);
        return tt_fail(diag, TT_ERR_IO, "'%s' is %s, not a regular file", path,
                       S_ISDIR(st.st_mode) ? "a directory" : "a special file");
    }
    *out = posix_new(fd, path);
    return TT_OK;
}

TtStatus tt_io_posix_open(const char *path, TtIo **out, TtDiag *diag)
{
    return open_existing(path, O_RDONLY, out, diag);
}

TtStatus tt_io_posix_open_append(const char *path, TtIo **out, TtDiag *diag)
{
    return open_existing(path, O_RDWR | O_APPEND | O_NOFOLLOW, out, diag);
}

TtStatus tt_io_posix_create(const char *path, TtIo **out, TtDiag *diag)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);

    *out = NULL;
    if (fd < 0) {
        return fail_errno(diag, "create", path, 0);
    }
    *out = posix_new(fd, path);
    return TT_OK;
}

/* It gets its name by way of /proc: without privileges there is no other. */
static char *link_of(int fd)
{
    return g_strdup_printf("/proc/self/fd/%d", fd);
}

TtStatus tt_io_posix_create_unnamed(const char *path, TtIo **out, TtDiag *diag)
{
    g_autofree char *dir = g_path_get_dirname(path);
    int fd = open(dir, O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
    g_autofree char *link = link_of(fd);
    TtStatus status;
    struct stat st;

    *out = NULL;
    if (fd >= 0 && lstat(link, &st) == 0) {
        int there = lstat(path, &st) == 0 ? EEXIST : errno;

        if (there != ENOENT) {          /* or no name that it can have */
            close(fd);
            errno = there;
            return fail_errno(diag, "create", path, 0);
        }
        *out = posix_new(fd, path);
        posix_io(*out)->is_unnamed = true;
        return TT_OK;
    }
    if (fd >= 0) {
        close(fd);
    }
    status = tt_io_posix_create(path, out, diag);
    if (status == TT_OK) {
        posix_io(*out)->is_fresh = true;
    }
    return status;
}

TtStatus tt_io_posix_name(TtIo *unnamed, TtDiag *diag)
{
    PosixIo *p = posix_io(unnamed);

    if (p->is_unnamed) {
        g_autofree char *link = link_of(p->fd);

        if (linkat(AT_FDCWD, link, AT_FDCWD, p->path, AT_SYMLINK_FOLLOW) < 0) {
            return fail_errno(diag, "create", p->path, 0);
        }
    }
    p->is_unnamed = p->is_fresh = false;
    tt_io_posix_sync_directory_of(p->path);
    return TT_OK;
}

TtStatus tt_io_posix_dup(TtIo *io, TtIo **out, TtDiag *diag)
{
    PosixIo *p = posix_io(io);
    int fd = fcntl(p->fd, F_DUPFD_CLOEXEC, 0);

    *out = NULL;
    if (fd < 0) {
        return fail_errno(diag, "open", p->path, 0);
    }
    *out = posix_new(fd, p->path);
    return TT_OK;
}

static char *real(const char *path)
{
    char *found = realpath(path, NULL), *copy = g_strdup(found);

    free(found);
    return copy;
}

/* What stands after the last ".." of @path, which is a name of its own; NULL: there is
 * none. */
static const char *behind_last_up(const char *path)
{
    const char *behind = NULL;

    for (const char *at = path; (at = strstr(at, "..")); at++) {
        if ((at == path || at[-1] == '/') && (!at[2] || at[2] == '/')) {
            behind = at + 2;
        }
    }
    return behind;
}

/* Up to the last ".." only the kernel knows where a path leads; after it there are
 * plain names, which need not exist. */
char *tt_io_posix_absolute(const char *path)
{
    g_autofree char *here = g_path_is_absolute(path) ? NULL : getcwd(NULL, 0);
    const char *behind = behind_last_up(path);
    g_autofree char *up = NULL, *above = NULL;

    if (!here && !g_path_is_absolute(path)) {
        return NULL;
    }
    if (!behind) {
        return g_canonicalize_filename(path, here);
    }
    up = g_strndup(path, behind - path);
    above = real(up);
    return above ? g_canonicalize_filename(behind + strspn(behind, "/"), above) : NULL;
}
