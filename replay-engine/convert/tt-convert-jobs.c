/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A pass in parts: a process for some intervals between the recorder's checkpoints, several
 * at a time, and one that puts together what they made. Each has to translate the guest's
 * code anew, so it gets several intervals, if there are enough for all processes. A part
 * that is whole stays until then, so a pass that was broken off loses only those that were
 * under way.
 */
#include "qemu/osdep.h"
#include "convert/tt-convert.h"
#include "convert/tt-convert-files.h"
#include "tt-convert-part-int.h"
#include "io/tt-base.h"
#include "io/tt-io.h"
#include "log/tt-log.h"
#include "pages/tt-pagestore.h"
#include "run/tt-manifest.h"
#include "run/tt-runlock.h"
#include "run/tt-runstore.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/timer.h"
#include "qemu/units.h"
#include <sys/prctl.h>
#include <sys/wait.h>

#define JOBS_MAX 64
#define INTERVALS_MAX 4                 /* of a part */
#define RAM_MAX       (UINT64_C(1) << 60)
#define PROCESS_BYTES (300 * MiB)       /* of a process, besides RAM */

int64_t tt_convert_jobs;

typedef struct Job {
    pid_t pid;
    uint64_t from, to;
} Job;

static struct {
    Job jobs[JOBS_MAX];
    unsigned n;                     /* that run */
    uint64_t n_intervals, next;
    uint64_t each;                  /* intervals of a part */
    uint64_t n_done;
    int status;                     /* of the first that failed */
    bool has_failed;
} at;

/* Starts a process that converts @part, or the whole run: NULL. Its id, or -1. */
static pid_t spawn(const char *part)
{
    g_auto(GStrv) words = g_strsplit(tt_session.dir, ",", -1);
    g_autofree char *escaped = g_strjoinv(",,", words);
    bool has_counts = !(tt_omit & TT_OMIT_BRANCH_COUNTS);
    g_autofree char *option = g_strdup_printf("convert,dir=%s%s%s%s", escaped,
                                              part ? ",part=" : "", part ?: "",
                                              has_counts ? "" : ",x-omit=branch-counts");
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    char *argv[] = { self, (char *)"-tt", option, (char *)"-display", (char *)"none",
                     (char *)"-serial", (char *)"null", (char *)"-monitor",
                     (char *)"none", NULL };
    pid_t parent = getpid(), pid = self ? fork() : -1;

    if (!pid) {
        int null = open("/dev/null", O_RDWR);

        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent) {
            _exit(1);               /* it has ended already */
        }
        dup2(null, 0);
        dup2(null, 1);
        if (part) {
            tt_convert_lock_inherit();
        }
        execv(self, argv);
        _exit(127);
    }
    return pid;
}

/* Of the recorded machine: the log begins with its blocks. */
static uint64_t ram_bytes(TtLogReader *r)
{
    TtSegment *segment;
    uint64_t bytes = 0;
    TtDiag diag;

    if (tt_log_reader_load(r, 0, &segment, &diag) != TT_OK) {
        return 0;
    }
    for (uint32_t i = 0; i < segment->n_events; i++) {
        if (segment->events[i].kind == TT_EV_BLOCK) {
            bytes = MIN(bytes + MIN(segment->events[i].val, RAM_MAX), RAM_MAX);
        }
    }
    tt_segment_unref(segment);
    return bytes;
}

/* As many processes as memory has room for, with all of RAM in each. */
static unsigned jobs_that_fit(uint64_t ram, unsigned n)
{
    uint64_t each = ram + PROCESS_BYTES, free_kib;
    g_autofree char *info = NULL;
    const char *line;

    if (!g_file_get_contents("/proc/meminfo", &info, NULL, NULL) ||
        !(line = strstr(info, "MemAvailable:")) ||
        sscanf(line, "MemAvailable: %" PRIu64, &free_kib) != 1) {
        return n;
    }
    return MAX(1, MIN(n, free_kib * KiB / each));
}

/* How many checkpoints lie within the log of exits; 0: there is one part only. */
static uint64_t count_checkpoints(uint64_t *ram)
{
    g_autofree char *manifest = tt_convert_path("manifest");
    g_autofree char *log = tt_convert_path("log");
    g_autofree TtCheckpointInfo *infos = NULL;
    TtPageStore *store = NULL;
    TtLogReader *r = NULL;
    TtManifest m = { 0 };
    uint64_t end = 0;
    size_t n = 0;
    TtDiag diag;
    TtIo *io;

    if (tt_manifest_load(manifest, &m, &diag) == TT_OK &&
        tt_runstore_open(tt_session.dir, &m, MiB, &store, &diag) == TT_OK &&
        tt_io_posix_open(log, &io, &diag) == TT_OK) {
        tt_log_reader_open_part(io, &r, &diag);
    }
    *ram = 0;
    if (r && tt_log_reader_n_segments(r)) {
        *ram = ram_bytes(r);
        end = tt_log_reader_info(r, tt_log_reader_end(r) - 1)->end_pos;
        n = tt_pagestore_count(store);
        infos = g_new0(TtCheckpointInfo, n + 1);
        n = tt_pagestore_list(store, infos, n);
        n = n && !infos[0].pos ? n : 0;
    }
    while (n && infos[n - 1].pos > end) {
        n--;
    }
    tt_log_reader_free(r);
    tt_pagestore_free(store);
    tt_manifest_cleanup(&m);
    return MAX(n, 1) - 1;
}

/* ---- one part ---- */

/* Not what an earlier pass, or a longer part, has done already. */
static bool skip_done(void)
{
    TtConvertDone done;

    while (at.next < at.n_intervals &&
           tt_convert_part_load(tt_session.dir, at.next, &done)) {
        uint64_t to = MIN(done.part.to, at.n_intervals);

        at.n_done += to - at.next;
        at.next = to;
        tt_convert_done_cleanup(&done);
    }
    return at.next < at.n_intervals;
}

static bool is_part_done(uint64_t from)
{
    TtConvertDone done;
    bool is_done = tt_convert_part_load(tt_session.dir, from, &done);

    if (is_done) {
        tt_convert_done_cleanup(&done);
    }
    return is_done;
}

static void start_next(void)
{
    uint64_t to = at.next + 1, end = MIN(at.next + at.each, at.n_intervals);
    g_autofree char *part = NULL;
    pid_t pid;

    while (to < end && !is_part_done(to)) {
        to++;
    }
    part = g_strdup_printf("%" PRIu64 "-%" PRIu64, at.next, to);
    pid = spawn(part);
    if (pid < 0) {
        error_report("cannot start a process that converts the run: %s", strerror(errno));
        at.has_failed = true;
        return;
    }
    at.jobs[at.n++] = (Job) { pid, at.next, to };
    at.next = to;
}

static void ended(pid_t pid, int status)
{
    for (unsigned i = 0; i < at.n; i++) {
        Job job = at.jobs[i];

        if (job.pid != pid) {
            continue;
        }
        if (WIFEXITED(status) && !WEXITSTATUS(status) && !is_part_done(job.from)) {
            status = SIGTERM;       /* told to end, QEMU ends with 0 */
        }
        at.jobs[i] = at.jobs[--at.n];
        if (!WIFEXITED(status) || WEXITSTATUS(status)) {
            at.status = at.has_failed ? at.status : status;
            at.has_failed = true;
            return;
        }
        at.n_done += job.to - job.from;
        error_printf("tt: converting: %" PRIu64 " of %" PRIu64 " intervals\n", at.n_done,
                     at.n_intervals);
        return;
    }
}

static void run_parts(unsigned n_jobs)
{
    int status;
    pid_t pid;

    for (;;) {
        while (!at.has_failed && at.n < n_jobs && skip_done()) {
            start_next();
        }
        if (!at.n) {
            return;
        }
        pid = waitpid(-1, &status, 0);
        if (pid > 0) {
            ended(pid, status);
        } else if (errno != EINTR) {
            error_report("cannot wait for the processes that convert the run: %s",
                         strerror(errno));
            at.has_failed = true;
            return;
        }
    }
}

static int join(int64_t began_ms)
{
    g_autofree char *part = g_strdup_printf("join-%" PRId64, began_ms);
    pid_t pid = spawn(part);
    int status = -1;

    if (pid < 0) {
        error_report("cannot start the process that joins the parts: %s", strerror(errno));
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

/* Not told to end by somebody, nor for want of room: then it would end so again. */
static bool has_failed(int status)
{
    int by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

    return by ? by != SIGINT && by != SIGTERM && by != SIGHUP && by != SIGKILL :
        WIFEXITED(status) && WEXITSTATUS(status) &&
        WEXITSTATUS(status) != TT_CONVERT_NO_ROOM;
}

/* False: the recorder made no checkpoints, or a part failed: it has to be converted in
 * one. Otherwise *@status is that of the process that did not end well, or of the last one;
 * -1: none was started, and *errp may say why. */
static bool in_parts(int *status, Error **errp)
{
    int64_t began_ms = qemu_clock_get_ms(QEMU_CLOCK_REALTIME);
    uint64_t ram, n = count_checkpoints(&ram);
    unsigned n_jobs = tt_convert_jobs ?: jobs_that_fit(ram, g_get_num_processors());

    if (!n) {
        return false;
    }
    *status = -1;
    if (!tt_convert_lock(errp)) {
        return true;
    }
    for (unsigned tries = 0; tries < 2; tries++) {
        at = (typeof(at)) {
            .n_intervals = n + 1, .status = -1,
            .each = MIN(DIV_ROUND_UP(n + 1, n_jobs), INTERVALS_MAX),
        };
        run_parts(MIN(n_jobs, JOBS_MAX));
        *status = at.has_failed ? at.status : join(began_ms);
        if (at.has_failed || !WIFEXITED(*status) ||
            WEXITSTATUS(*status) != TT_CONVERT_AGAIN) {
            break;                  /* or a part was damaged, and is made again */
        }
    }
    if (has_failed(*status)) {
        error_printf("tt: the run cannot be converted in parts: converting it as a "
                     "whole\n");
        tt_convert_unlock();
        return false;
    }
    return true;
}

/* ---- the whole run ---- */

static bool is_needed(void)
{
    g_autofree char *path = tt_convert_path("manifest");

    return tt_manifest_has(path, TT_FEATURE_EXITS);
}

/* The status does not tell: QEMU ends with 0 when it was told to end. */
static bool is_converted(int status, Error **errp)
{
    if (is_needed()) {
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

static bool run_converter(bool again, Error **errp)
{
    int status = -1;
    pid_t pid;

    signal(SIGCHLD, SIG_DFL);       /* who ignores it cannot wait */
    if (!again && in_parts(&status, errp)) {
        return !*errp && is_converted(status, errp);
    }
    pid = spawn(NULL);
    if (pid < 0) {
        error_setg(errp, "cannot start the process that converts the run: %s",
                   strerror(errno));
        return false;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (is_needed() && WIFEXITED(status) && WEXITSTATUS(status) == TT_CONVERT_AGAIN &&
        !again) {
        return run_converter(true, errp);       /* there is nothing to go on from */
    }
    return is_converted(status, errp);
}

bool tt_convert_if_needed(Error **errp)
{
    if (!is_needed()) {
        return true;                /* or whoever opens it says what is wrong */
    }
    if (tt_convert_is_installing()) {
        return tt_convert_lock(errp) && (!is_needed() || tt_convert_install(errp));
    }
    if (tt_runlock_is_held(tt_session.dir)) {
        error_setg(errp, "the run '%s' is being recorded under KVM: it can be replayed when "
                   "its recording has ended", tt_printable(tt_session.dir));
        return false;
    }
    error_printf("tt: %s was recorded under KVM: converting it, once, so that it can be "
                 "replayed\n", tt_printable(tt_session.dir));
    return run_converter(false, errp);
}
