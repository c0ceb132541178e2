/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For the program that this is preloaded into: faults of disks, each while there is a
 * file of its name in the folder $TT_FAULTS.
 *
 *   no-file-NAME   a file NAME cannot be made: there is no space
 *   no-lock-NAME   a file NAME cannot be locked: there are too many locks
 *   no-holes       no file can give space back
 *   full           there is no space for what is written to a file *.tt
 *   slow           ... and that takes 0.3 s
 *   slow-sync      a flush takes 1 s more, and its end is noted as "synced NAME"
 *   no-sync-NAME   a flush of the file NAME fails
 *   not-cached     nothing can be read without waiting
 *
 * The file "calls" there says, in their order, what was flushed ("sync NAME"), what was to
 * give space back ("hole NAME") and to be read without waiting ("try NAME"). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int is_on(const char *fault, const char *name)
{
    const char *folder = getenv("TT_FAULTS");
    char path[4096];

    snprintf(path, sizeof(path), "%s/%s%s", folder ? folder : "", fault, name);
    return folder && access(path, F_OK) == 0;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* "": it has none. */
static const char *name_of(int fd, char *path, size_t room)
{
    char link[32];
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, room - 1);
    path[n > 0 ? n : 0] = 0;
    return last_part(path);
}

static void note(const char *what, int fd)
{
    const char *folder = getenv("TT_FAULTS");
    char path[4096], line[4200];
    const char *name = name_of(fd, path, sizeof(path));
    int to, n = snprintf(line, sizeof(line), "%s %s\n", what, name);

    if (!folder) {
        return;
    }
    snprintf(path, sizeof(path), "%s/calls", folder);
    to = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                 0600);
    if (to >= 0 && syscall(SYS_write, to, line, n) != n) {
        abort();
    }
    close(to);
}

int fdatasync(int fd)
{
    int ret = syscall(SYS_fdatasync, fd);
    char path[4096];

    note("sync", fd);
    if (is_on("no-sync-", name_of(fd, path, sizeof(path)))) {
        errno = EIO;
        return -1;
    }
    if (is_on("slow-sync", "")) {
        usleep(1000 * 1000);
        note("synced", fd);
    }
    return ret;
}

int fsync(int fd)
{
    int ret = syscall(SYS_fsync, fd);

    note("sync", fd);
    return ret;
}

int fallocate64(int fd, int mode, off64_t offset, off64_t len)
{
    note("hole", fd);
    if (is_on("no-holes", "")) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return syscall(SYS_fallocate, fd, mode, offset, len);
}

ssize_t preadv64v2(int fd, const struct iovec *iov, int n, off64_t offset, int flags)
{
    note("try", fd);
    if (is_on("not-cached", "")) {
        errno = EAGAIN;
        return -1;
    }
    return syscall(SYS_preadv2, fd, iov, n, offset, 0, flags);
}

ssize_t pwrite64(int fd, const void *buf, size_t len, off64_t offset)
{
    char path[4096];
    const char *name = name_of(fd, path, sizeof(path));
    size_t n = strlen(name);

    if (n > 3 && !strcmp(name + n - 3, ".tt") && is_on("full", "")) {
        if (is_on("slow", "")) {
            usleep(300 * 1000);
        }
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_pwrite64, fd, buf, len, offset);
}

static int open_it(const char *path, int flags, mode_t mode)
{
    if (flags & O_CREAT && is_on("no-file-", last_part(path))) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    mode_t mode = 0;
    va_list ap;

    if (flags & O_CREAT) {
        va_start(ap, flags);
        mode = va_arg(ap, mode_t);
        va_end(ap);
    }
    return open_it(path, flags, mode);
}

int fcntl64(int fd, int command, ...)
{
    char path[4096];
    va_list ap;
    long arg;

    va_start(ap, command);
    arg = va_arg(ap, long);
    va_end(ap);
    if (command == F_OFD_SETLK && ((struct flock *)arg)->l_type != F_UNLCK &&
        is_on("no-lock-", name_of(fd, path, sizeof(path)))) {
        errno = ENOLCK;
        return -1;
    }
    return syscall(SYS_fcntl, fd, command, arg);
}
