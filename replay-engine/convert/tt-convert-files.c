/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names of a run's files, and the process that converts it. */
#include "qemu/osdep.h"
#include "convert/tt-convert-files.h"
#include "convert/tt-convert.h"
#include "io/tt-base.h"
#include "log/tt-log.h"
#include "replay/tt-replay-log.h"
#include "run/tt-manifest.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>

char *tt_convert_path(const char *name)
{
    return g_build_filename(tt_session.dir, name, NULL);
}

static bool exists(const char *name)
{
    g_autofree char *path = tt_convert_path(name);

    return g_file_test(path, G_FILE_TEST_EXISTS);
}

static bool move(const char *from, const char *to, Error **errp)
{
    g_autofree char *a = tt_convert_path(from), *b = tt_convert_path(to);

    if (rename(a, b)) {
        error_setg_errno(errp, errno, "cannot rename '%s'", a);
        return false;
    }
    return true;
}

/* ---- who may ---- */

/* The log of exits itself is locked: it stays, under another name in the end. A file
 * system that cannot lock says nothing. */
bool tt_convert_lock(Error **errp)
{
    static int fd = -1;
    struct stat ours, there;
    g_autofree char *path = NULL;

    do {
        g_free(path);
        path = tt_convert_path(exists(TT_CONVERT_EXITS) ? TT_CONVERT_EXITS : "log");
        close(fd);
        fd = qemu_open_old(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
        if (fd < 0 || fstat(fd, &ours) || !S_ISREG(ours.st_mode)) {
            return true;            /* who reads it says why */
        }
        if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
            error_setg(errp, "another process is converting '%s': wait for it to "
                       "finish", tt_printable(tt_session.dir));
            return false;
        }
    } while (fstat(fd, &ours) == 0 && stat(path, &there) == 0 &&
             ours.st_ino != there.st_ino);      /* it got its new name meanwhile */
    return true;
}

bool tt_convert_is_possible(Error **errp)
{
    const char *name = tt_printable(tt_session.dir);

    if (!(tt_session.manifest.features & TT_FEATURE_EXITS)) {
        error_setg(errp, "the run '%s' needs no conversion", name);
    } else if (tt_convert_is_installing()) {
        error_setg(errp, "another process has converted '%s' and was ended before it was "
                   "done: replay it again", name);
    } else if (tt_replayer.growing) {
        error_setg(errp, "the run '%s' is being recorded under KVM: it can be replayed "
                   "when its recording has ended", name);
    } else if (tt_log_reader_is_window(tt_replay_reader())) {
        error_setg(errp, "the run '%s' was recorded under KVM, and the beginning of its "
                   "log is missing: it cannot be converted", name);
    }
    return !*errp;
}

bool tt_convert_is_installing(void)
{
    return exists(TT_CONVERT_EXITS);
}

bool tt_convert_install(Error **errp)
{
    g_autofree char *path = tt_convert_path("manifest");
    g_autofree char *point = tt_convert_path(TT_CONVERT_POINT);
    TtManifest m = { 0 };
    TtDiag diag;

    if ((!exists(TT_CONVERT_EXITS) && !move("log", TT_CONVERT_EXITS, errp)) ||
        (exists(TT_CONVERT_NEW) && !move(TT_CONVERT_NEW, "log", errp)) ||
        (exists(TT_CONVERT_PAGES) && !move(TT_CONVERT_PAGES, "pages", errp)) ||
        (exists(TT_CONVERT_CHECKPOINTS) &&
         !move(TT_CONVERT_CHECKPOINTS, "checkpoints", errp))) {
        return false;
    }
    unlink(point);
    if (tt_manifest_load(path, &m, &diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    m.features &= ~TT_FEATURE_EXITS;
    if (tt_manifest_save(&m, path, &diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
    }
    tt_manifest_cleanup(&m);
    return !*errp;
}

/* ---- what is not whole ---- */

static void discard(const char *name)
{
    g_autofree char *path = tt_convert_path(name);

    unlink(path);
}

void tt_convert_discard_points(void)
{
    discard(TT_CONVERT_POINT);          /* the one that says what the others are */
    discard(TT_CONVERT_POINT_PART);
    discard(TT_CONVERT_CHECKPOINTS);
    discard(TT_CONVERT_PAGES);
}

void tt_convert_discard_all(void)
{
    tt_convert_discard_points();
    discard(TT_CONVERT_NEW);
}

bool tt_convert_has_point(void)
{
    return exists(TT_CONVERT_POINT);
}

void tt_convert_discard_unfinished(bool is_wrong)
{
    if (is_wrong || !tt_convert_has_point()) {
        tt_convert_discard_all();
    }
}

/* ---- the process ---- */

static bool is_needed(void)
{
    g_autofree char *path = tt_convert_path("manifest");
    TtManifest m = { 0 };
    TtDiag diag;
    bool is_needed = tt_manifest_load(path, &m, &diag) == TT_OK &&
        m.features & TT_FEATURE_EXITS;

    tt_manifest_cleanup(&m);
    return is_needed;
}

static bool run_converter(bool again, Error **errp)
{
    g_auto(GStrv) words = g_strsplit(tt_session.dir, ",", -1);
    g_autofree char *escaped = g_strjoinv(",,", words);
    g_autofree char *option = g_strdup_printf("convert,dir=%s", escaped);
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    char *argv[] = { self, (char *)"-tt", option, (char *)"-display", (char *)"none",
                     (char *)"-serial", (char *)"null", (char *)"-monitor",
                     (char *)"none", NULL };
    int status;
    pid_t pid;

    pid = self ? fork() : -1;
    if (pid < 0) {
        error_setg(errp, "cannot start the process that converts the run: %s",
                   strerror(errno));
        return false;
    }
    if (!pid) {
        int null = open("/dev/null", O_RDWR);

        prctl(PR_SET_PDEATHSIG, SIGTERM);
        dup2(null, 0);
        dup2(null, 1);
        execv(self, argv);
        _exit(127);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (is_needed()) {          /* whatever the status: it may have been told to end */
        if (WIFEXITED(status) && WEXITSTATUS(status) == TT_CONVERT_AGAIN && !again) {
            return run_converter(true, errp);   /* there is nothing to go on from */
        }
        if (tt_convert_lock(NULL)) {
            tt_convert_discard_unfinished(false);
        }
        if (WIFSIGNALED(status)) {
            error_setg(errp, "the run was recorded under KVM, and the process that "
                       "converts it was killed by signal %d (%s): replay it again",
                       WTERMSIG(status), strsignal(WTERMSIG(status)));
        } else {
            error_setg(errp, "the run was recorded under KVM and could not be converted "
                       "for replay; the reason is above");
        }
        return false;
    }
    return true;
}

bool tt_convert_if_needed(Error **errp)
{
    if (!is_needed()) {
        return true;                /* or whoever opens it says what is wrong */
    }
    if (tt_convert_is_installing()) {
        return tt_convert_lock(errp) && (!is_needed() || tt_convert_install(errp));
    }
    error_printf("tt: %s was recorded under KVM: it is converted for replay, once\n",
                 tt_printable(tt_session.dir));
    return run_converter(false, errp);
}
