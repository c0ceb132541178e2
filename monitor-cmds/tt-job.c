/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tasks as background jobs of QEMU's (qapi/job.json). A job is what a client
 * cancels, dismisses and asks for its progress; the work is the task's.
 *
 * A job is not paused: it looks at no pause point, and only its end is delayed.
 */
#include "qemu/osdep.h"
#include "monitor-cmds/tt-task.h"
#include "monitor-cmds/tt-wait.h"
#include "travel/tt-travel.h"
#include "qemu/job.h"
#include "qemu/main-loop.h"
#include "block/aio.h"
#include "qapi/error.h"
#include "qemu/error-report.h"

typedef struct TtJob {
    Job common;
    TtTask task;
    char *name, *mark, *condition;
    bool has_ended;
    uint64_t done;              /* of the progress, as told */
} TtJob;

static TtJob *to_tt(Job *job)
{
    return container_of(job, TtJob, common);
}

static void tell_progress(TtJob *j)
{
    uint64_t done, total;

    if (!tt_task_moves(&j->task)) {
        return;
    }
    tt_task_progress(&j->task, &done, &total);
    if (done > j->done) {
        job_progress_update(&j->common, done - j->done);
        j->done = done;
    }
    job_progress_set_remaining(&j->common, total - MIN(done, total));
}

static bool step(void *opaque)
{
    TtJob *j = opaque;

    if (!j->has_ended) {
        j->task.cancelled |= job_is_cancelled(&j->common);
        j->has_ended = tt_task_step(&j->task);
        tell_progress(j);
    }
    return j->has_ended;
}

static int coroutine_fn run(Job *job, Error **errp)
{
    TtJob *j = to_tt(job);

    if (!j->done) {
        job_progress_set_remaining(job, 1);
    }
    tt_wait(step, j);
    job_progress_set_remaining(job, 0);
    if (!j->done) {
        job_progress_update(job, 1);
    }
    if (j->task.err && job_is_cancelled(job) && j->task.kind == TT_TASK_ADD) {
        warn_reportf_err(g_steal_pointer(&j->task.err), "tt: job '%s' was cancelled, "
                         "but its checkpoint could not be deleted: ", job->id);
    }
    if (j->task.err) {
        error_propagate(errp, g_steal_pointer(&j->task.err));
        return -EIO;
    }
    return 0;                           /* or -ECANCELED, says job.c */
}

static void clear(Job *job)
{
    TtJob *j = to_tt(job);

    tt_task_clear(&j->task);
    g_free(j->name);
    g_free(j->mark);
    g_free(j->condition);
}

#define DRIVER(type) \
    [type] = { .instance_size = sizeof(TtJob), .job_type = type, .run = run, \
               .free = clear }

static const JobDriver drivers[] = {
    DRIVER(JOB_TYPE_TT_GOTO),
    DRIVER(JOB_TYPE_TT_CHECKPOINT_ADD),
    DRIVER(JOB_TYPE_TT_CHECKPOINT_DELETE),
    DRIVER(JOB_TYPE_TT_SAVE),
    DRIVER(JOB_TYPE_TT_FIND),
    DRIVER(JOB_TYPE_TT_UNDO),
    DRIVER(JOB_TYPE_TT_REDO),
};

/* Only the first step. */
static bool first_step(void *opaque)
{
    step(opaque);
    return true;
}

static bool run_as_job(TtTask *t, JobType type, Error **errp)
{
    TtJob *j = job_create(t->job_id, &drivers[type], NULL,
                          qemu_get_aio_context(), JOB_MANUAL_DISMISS, NULL,
                          NULL, errp);

    if (!j) {
        return false;
    }
    j->task = *t;
    j->task.job_id = j->common.id;
    j->task.name = j->name = g_strdup(t->name);
    j->task.g.mark = j->mark = g_strdup(t->g.mark);
    j->task.find.condition = j->condition = g_strdup(t->find.condition);
    tt_wait(first_step, j);             /* says what can be refused */
    if (j->has_ended && j->task.err) {
        error_propagate(errp, g_steal_pointer(&j->task.err));
        job_early_fail(&j->common);
        return false;
    }
    t->dir = g_strdup(j->task.dir);
    job_start(&j->common);
    return true;
}

bool tt_task_run(TtTask *t, JobType type, Error **errp)
{
    bool ok;

    if (t->job_id) {
        return run_as_job(t, type, errp);
    }
    tt_wait(tt_task_step, t);
    ok = !t->err;
    error_propagate(errp, g_steal_pointer(&t->err));
    return ok;
}
