/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copies one file of a run: holes stay holes, and the copy is on disk when the call
 * is back. Any thread; blocks on the disk.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE             /* copy_file_range, SEEK_DATA */
#endif
#include "qemu/osdep.h"
#include "io/tt-base.h"
#include "tt-save-int.h"
#include "qemu/atomic.h"

#define COPY_BYTES (1u << 20)

TtStatus tt_save_fail(TtDiag *diag, const char *what, const char *path)
{
    int err = errno;

    return tt_fail(diag, err == ENOSPC || err == EDQUOT ? TT_ERR_NOSPACE :
                   TT_ERR_IO, "cannot %s '%s': %s", what, path,
                   g_strerror(err));
}

static bool is_cancelled(const bool *cancelled)
{
    if (!qatomic_read(cancelled)) {
        return false;
    }
    errno = ECANCELED;
    return true;
}

/* One piece of data; holes are between them. */
static bool copy_range(int in, int out, off_t at, off_t end, const bool *cancelled)
{
    g_autofree char *buf = NULL;
    off_t to = at;

    while (at < end && !is_cancelled(cancelled)) {
        ssize_t n = copy_file_range(in, &at, out, &to, MIN(end - at, COPY_BYTES), 0);

        if (n <= 0) {
            break;
        }
    }
    if (at < end) {                     /* a file system that cannot */
        buf = g_malloc(COPY_BYTES);
    }
    while (at < end && !is_cancelled(cancelled)) {
        ssize_t n = pread(in, buf, MIN(end - at, COPY_BYTES), at);

        n = n > 0 ? pwrite(out, buf, n, at) : n;
        if (n <= 0) {
            errno = n ? errno : ENOSPC;
            return false;
        }
        at += n;                    /* what did not fit fails the next time */
    }
    return at >= end;
}

static bool copy_data(int in, int out, off_t size, const bool *cancelled)
{
    off_t at = 0;

    while (at < size) {
        off_t data = lseek(in, at, SEEK_DATA), hole;

        if (data < 0 && errno == ENXIO) {
            break;                      /* a hole up to the end */
        }
        hole = data < 0 ? size : lseek(in, data, SEEK_HOLE);
        if (!copy_range(in, out, MAX(data, at), hole < 0 ? size :
                        MIN(hole, size), cancelled)) {
            return false;
        }
        at = hole < 0 ? size : hole;
    }
    return ftruncate(out, size) == 0 && fsync(out) == 0;
}

/* As it is now; what has been given back stays holes. */
TtStatus tt_save_copy(const char *from, const char *to, const bool *cancelled,
                      TtDiag *diag)
{
    TtStatus s = TT_OK;
    struct stat st;
    int in = open(from, O_RDONLY | O_CLOEXEC), out;

    if (in < 0) {
        return tt_save_fail(diag, "open", from);
    }
    out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (out < 0) {
        s = tt_save_fail(diag, "create", to);
    } else if (fstat(in, &st) || !copy_data(in, out, st.st_size, cancelled)) {
        s = tt_save_fail(diag, "write to", to);
    }
    if (out >= 0) {
        close(out);
    }
    close(in);
    return s;
}
