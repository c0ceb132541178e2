/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The directory that a window is saved into. It is made as NAME.saving and gets its
 * name at the end, so a directory with a final name is whole. It has a file
 * "unfinished" in it, which goes last, and its maker holds a lock on it: one that is
 * not locked was left by a process that was killed, and goes when the next window is
 * saved.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE             /* renameat2 */
#endif
#include "qemu/osdep.h"
#include "io/tt-base.h"
#include "log/tt-logparts.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "tt-save-int.h"
#include "qapi/error.h"

#include <sys/file.h>

#define UNFINISHED "unfinished" /* a file in it until then: it may be removed */
#define SAVING ".saving"        /* after the name, until it is whole */

void tt_savedir_sync(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
}

/* It gets its name. Somebody may have made another of that name meanwhile. */
TtStatus tt_savedir_name(const TtSaveDir *d, TtDiag *diag)
{
    g_autofree char *folder = g_path_get_dirname(d->to);
    g_autofree char *sign = g_build_filename(d->to, UNFINISHED, NULL);

    if (renameat2(AT_FDCWD, d->making, AT_FDCWD, d->to, RENAME_NOREPLACE) &&
        (errno != EINVAL || g_file_test(d->to, G_FILE_TEST_EXISTS) ||
         rename(d->making, d->to))) {
        return tt_save_fail(diag, "give the window the name", d->to);
    }
    unlink(sign);
    tt_savedir_sync(folder);
    return TT_OK;
}

/* The files that a save makes, beside the parts of the log. */
static const char *const made[] = {
    "manifest", "marks", "checkpoints", "pages", "disks", UNFINISHED, NULL,
};

/* Only that. */
static void remove_made(const char *dir)
{
    unsigned n;
    g_autofree uint32_t *part = NULL;

    for (unsigned i = 0; made[i]; i++) {
        g_autofree char *path = g_build_filename(dir, made[i], NULL);

        unlink(path);
    }
    while ((part = tt_logparts_list(dir, &n))) {
        bool any = false;

        for (unsigned i = 0; i < n; i++) {
            g_autofree char *path = tt_logparts_path(dir, part[i]);

            any |= unlink(path) == 0;
        }
        g_clear_pointer(&part, g_free);
        if (!any) {
            break;
        }
    }
    rmdir(dir);
}

void tt_savedir_discard(const TtSaveDir *d)
{
    remove_made(d->making);
}

void tt_savedir_close(TtSaveDir *d)
{
    close(d->lock);
}

void tt_savedir_free(TtSaveDir *d)
{
    g_clear_pointer(&d->making, g_free);
    g_clear_pointer(&d->to, g_free);
}

/* ---- making it ---- */

/* A lock on directory @path, which ends with this process; -1: another one has it,
 * or there is no such directory. @may_fail: where there are no locks, without. */
static int lock_directory(const char *path, bool may_fail)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) &&
        (!may_fail || errno == EWOULDBLOCK)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Was it being made, and has it nothing in it but what a save makes? */
static bool is_ours(const char *dir)
{
    g_autofree char *sign = g_build_filename(dir, UNFINISHED, NULL);
    GDir *d = g_dir_open(dir, 0, NULL);
    bool ours = d, is_empty = true;
    const char *name;

    while (d && (name = g_dir_read_name(d))) {
        ours &= g_strv_contains(made, name) || g_str_has_prefix(name, "log.");
        is_empty = false;
    }
    ours &= is_empty || g_file_test(sign, G_FILE_TEST_IS_REGULAR);
    if (d) {
        g_dir_close(d);
    }
    return ours;
}

/* A process that was killed while it saved into @making left it? Then it goes. */
static bool remove_leftover(const char *making)
{
    int fd = lock_directory(making, false);
    bool gone = false;

    if (fd >= 0 && is_ours(making)) {
        remove_made(making);
        gone = !g_file_test(making, G_FILE_TEST_EXISTS);
    }
    if (fd >= 0) {
        close(fd);
    }
    return gone;
}

/* Those of this run. */
void tt_savedir_remove_leftovers(void)
{
    g_autofree char *folder = g_path_get_dirname(tt_session.dir);
    g_autofree char *run = g_path_get_basename(tt_session.dir);
    g_autofree char *head = g_strconcat(run, "-", NULL);
    GDir *d = g_dir_open(folder, 0, NULL);
    const char *name;

    while (d && (name = g_dir_read_name(d))) {
        g_autofree char *path = g_build_filename(folder, name, NULL);

        if (g_str_has_prefix(name, head) && g_str_has_suffix(name, SAVING)) {
            remove_leftover(path);
        }
    }
    if (d) {
        g_dir_close(d);
    }
}

static bool put_sign(const char *making, int lock)
{
    g_autofree char *sign = g_build_filename(making, UNFINISHED, NULL);
    int fd = open(sign, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0) {
        int why = errno;

        close(lock);
        rmdir(making);
        errno = why;
        return false;
    }
    close(fd);
    return true;
}

/* Makes the directory that is to become @dir. False: errno. */
static bool begin_making(const char *dir, TtSaveDir *d)
{
    char *making = g_strconcat(dir, SAVING, NULL);
    struct stat st;

    if (lstat(dir, &st) == 0) {
        errno = EEXIST;
    } else if (mkdir(making, 0700) == 0 ||
               (errno == EEXIST && remove_leftover(making) &&
                mkdir(making, 0700) == 0)) {
        d->lock = lock_directory(making, true);
        if (d->lock >= 0 && put_sign(making, d->lock)) {
            d->making = making;
            return true;
        }
        errno = d->lock < 0 ? EBUSY : errno;
    } else if (g_file_test(making, G_FILE_TEST_EXISTS)) {
        errno = EEXIST;
    }
    g_free(making);
    return false;
}

/* A directory in a run would go, or be copied, with it. */
static bool is_in_run(const char *dir)
{
    g_autofree char *folder = g_path_get_dirname(dir);
    g_autofree char *real = realpath(folder, NULL);
    g_autofree char *run = realpath(tt_session.dir, NULL);
    size_t len = run ? strlen(run) : 0;

    return run && real && !strncmp(real, run, len) &&
        (!real[len] || real[len] == '/');
}

static bool is_fit(const char *name, const char *dir, Error **errp)
{
    g_autofree char *last = g_path_get_basename(name);

    if (tt_has_control(name)) {
        error_setg(errp, "the name contains a control character, such as a line "
                   "break: give another name");
    } else if (g_str_has_suffix(name, SAVING)) {
        error_setg(errp, "'%s' is reserved for a window that is still being "
                   "saved: give another name", name);
    } else if (!last[strspn(last, "./")]) {
        error_setg(errp, "'%s' cannot be the name of a new directory: give a "
                   "name that does not exist yet", name);
    } else if (is_in_run(dir)) {
        error_setg(errp, "'%s' is inside the recording's own directory: give a "
                   "path outside it", name);
    } else {
        return tt_path_is_outside(dir, errp);
    }
    return false;
}

bool tt_savedir_make(const char *name, bool may_number, TtSaveDir *d, char **mark,
                     Error **errp)
{
    for (unsigned n = 1; n < 100000; n++) {
        g_autofree char *fresh = g_strdup_printf("%s-%u", name ?: "save", n);
        const char *suffix = name && n == 1 ? name : fresh;
        g_autofree char *dir = strchr(suffix, '/') ?
            tt_path_absolute(suffix) :
            g_strdup_printf("%s-%s", tt_session.dir, suffix);

        if (!is_fit(suffix, dir, errp)) {
            return false;
        }
        if (begin_making(dir, d)) {
            *mark = strchr(suffix, '/') ? NULL : g_strdup(suffix);
            d->to = g_steal_pointer(&dir);
            return true;
        }
        if ((name && !may_number) || errno != EEXIST) {
            error_setg(errp, "cannot create the directory '%s' for the window (%s): %s",
                       tt_printable(dir), g_strerror(errno), errno == ENOENT ?
                       "create its parent directory first" : "give another name");
            return false;
        }
    }
    error_setg(errp, "there are too many saved windows beside '%s'",
               tt_printable(tt_session.dir));
    return false;
}
