/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --on slurm, for its own files. tt-tool-slurm.c submits tasks and waits for them,
 * tt-tool-slurmtask.c sees to a single one, tt-tool-slurmcall.c asks Slurm, through its
 * programs sbatch, squeue, scontrol and scancel. No accounting database is needed.
 */
#ifndef TT_TOOL_SLURM_H
#define TT_TOOL_SLURM_H

#include "tt-tool-place.h"

/* Exit status of a task that does not see our directory. */
#define TOOL_SLURM_BLIND 78

#define TOOL_SLURM_TRIES    3   /* of each task */
#define TOOL_SLURM_MISSED   2   /* answers without it, after which a task is lost */

typedef struct ToolSlurmTask {
    ToolPart *part;
    unsigned index, submission;
    unsigned tries;
    char *job;                  /* its array; NULL: is to be submitted */
    long read;                  /* bytes of what it said */
    bool is_listed, is_waiting; /* by the controller, when it was asked last */
    unsigned n_missed;
} ToolSlurmTask;

struct ToolSlurm {
    char *beside;               /* the directory in which ours is made */
    char *dir, *name, *script;  /* NULL: not made yet; name: of the jobs */
    GPtrArray *options;         /* for sbatch */
    GPtrArray *tasks;
    unsigned n_submissions;
    bool is_quiet, shows_progress, is_kept, has_cancelled, is_silent;
    int64_t began_us, asked_us;
    char *reason;               /* why a task waits */
};

/* ---- tt-tool-slurmtask.c ---- */

/* What the task shall run, as a file. False: said why. */
bool tool_slurm_put_command(const ToolSlurm *s, const ToolReplays *r,
                            const ToolSlurmTask *t);
/* What has come from it. It may have ended, or be lost, which is seen to. False: nothing
 * can be done for any of them, and it was said why. */
bool tool_slurm_look(const ToolReplays *r, ToolSlurmTask *t, ToolDone *done,
                     void *opaque);
/* False: said why. */
bool tool_slurm_put(const char *path, const char *text);
void tool_slurm_hide_progress(const ToolSlurm *s);

/* ---- tt-tool-slurmcall.c ---- */

/* False: a program of Slurm's is missing, and it was said. */
bool tool_slurm_is_there(void);
/* Submits @script with one argument as the tasks @array of a job array, after @options of
 * sbatch. Returns its number, g_free; NULL: said why. */
char *tool_slurm_submit(const GPtrArray *options, const char *name, const char *array,
                        const char *script, unsigned argument);
/* Tasks of jobs of that name that are not over. False: there was no answer. */
typedef void ToolSlurmListed(void *opaque, const char *job, unsigned index,
                             const char *state, const char *reason);
bool tool_slurm_list(const char *name, ToolSlurmListed *listed, void *opaque);

typedef struct ToolSlurmEnd {
    char *state;                /* such as CANCELLED; "": Slurm knows nothing of it */
    char *node;                 /* or "" */
    int status;                 /* of the script */
} ToolSlurmEnd;

void tool_slurm_ask(const char *job, unsigned index, ToolSlurmEnd *end);
void tool_slurm_end_cleanup(ToolSlurmEnd *end);
/* @tasks: 12_3 and so on; char *. */
void tool_slurm_cancel(const GPtrArray *tasks);
/* All jobs of that name. Returns why not, g_free; NULL: it was done. */
char *tool_slurm_cancel_all(const char *name);

#endif
