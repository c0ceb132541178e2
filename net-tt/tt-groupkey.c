/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The key of a group, from a file that may be anything: see tt-link.h. */
#include "net-tt/tt-link.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <sys/stat.h>
#include <unistd.h>

#define BYTES_MAX (TT_GROUP_KEY_MAX + 2)        /* a newline, and one that is too many */

/* The number of bytes, at most @max; -1: errno. */
static ssize_t read_all(int fd, uint8_t *bytes, size_t max)
{
    size_t n = 0;

    while (n < max) {
        ssize_t k = read(fd, bytes + n, max - n);

        if (k < 0 && errno != EINTR) {
            return -1;
        }
        if (k == 0) {
            break;
        }
        n += MAX(k, 0);
    }
    return n;
}

static TtStatus check_bytes(const uint8_t *bytes, size_t *n, const char *path, TtDiag *diag)
{
    static const char advice[] = "'head -c 32 /dev/urandom | base64' makes a good one";
    bool is_cut = *n == BYTES_MAX;

    *n -= *n && bytes[*n - 1] == '\n';
    if (is_cut || *n > TT_GROUP_KEY_MAX) {
        return tt_fail(diag, TT_ERR_LIMIT, "a key must have %d to %d bytes, and %.100s has "
                       "more: %s", TT_GROUP_KEY_MIN, TT_GROUP_KEY_MAX, path, advice);
    }
    if (*n < TT_GROUP_KEY_MIN) {
        return tt_fail(diag, TT_ERR_LIMIT, "a key must have %d to %d bytes, and %.100s has "
                       "%zu: %s", TT_GROUP_KEY_MIN, TT_GROUP_KEY_MAX, path, *n, advice);
    }
    if (!memcmp(bytes, bytes + 1, *n - 1)) {
        return tt_fail(diag, TT_ERR_INVALID, "the key in %.100s is no key, since all of its "
                       "bytes are the same: %s", path, advice);
    }
    return TT_OK;
}

bool tt_group_key_is_public(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && st.st_mode & (S_IROTH | S_IWOTH);
}

TtStatus tt_group_key_load(const char *path, uint8_t **key, size_t *len, TtDiag *diag)
{
    /* A FIFO would be waited for. */
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    uint8_t bytes[BYTES_MAX];
    struct stat st = { 0 };
    ssize_t got = fd >= 0 && fstat(fd, &st) == 0 ? 0 : -1;
    TtStatus result;
    size_t n;

    if (got == 0 && S_ISREG(st.st_mode)) {
        got = read_all(fd, bytes, sizeof(bytes));
    }
    if (got < 0) {
        result = tt_fail(diag, TT_ERR_IO, "the key of the group cannot be read from %.100s: "
                         "%s", path, g_strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        result = tt_fail(diag, TT_ERR_INVALID, "the key of the group cannot be read from "
                         "%.100s: it is not a regular file: write the key into one", path);
    } else {
        n = got;
        result = check_bytes(bytes, &n, path, diag);
        if (!result) {
            *key = g_memdup2(bytes, n);
            *len = n;
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    explicit_bzero(bytes, sizeof(bytes));
    return result;
}
