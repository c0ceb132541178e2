/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of `tt verify`, `tt find`, `tt trace` and `tt run-plugin`: tt-tool-cut.c cuts
 * the run, tt-tool-part.c has QEMU re-execute pieces of it (tt-tool-place.h: where),
 * tt-tool-finding.c takes apart, or puts into words, what that says. tt-tool-verify.c says
 * what came of all, tt-tool-again.c asks whether a second replay goes wrong in the same way.
 */
#ifndef TT_TOOL_VERIFY_H
#define TT_TOOL_VERIFY_H

#include "tt-tool.h"
#include "trace/tt-trace.h"

#include <signal.h>
#include <sys/types.h>

/* ---- findings ---- */
typedef struct ToolFinding ToolFinding;

ToolFinding *tool_finding_parse(const char *line);      /* never NULL */
void tool_finding_free(ToolFinding *f);
const char *tool_finding_kind(const ToolFinding *f);
const char *tool_finding_get(const ToolFinding *f, const char *key);    /* or NULL */
bool tool_finding_number(const ToolFinding *f, const char *key, uint64_t *n);
/* Do both say the same, whatever they say of @but? */
bool tool_finding_agrees(const ToolFinding *a, const ToolFinding *b,
                         const char *but);
/* A sentence; the caller frees it. @symbols may be NULL, also below. */
char *tool_finding_words(const ToolFinding *f, const ToolSymbols *symbols);
void tool_finding_json(const ToolFinding *f, const ToolSymbols *symbols);

/* ---- pieces of the run, to be verified, searched or traced ---- */
#define TOOL_JOBS_MAX   256
#define TOOL_TASKS_MAX  250     /* of a cluster: up to four times as many are an array there */
#define TOOL_TASKS_USUAL 16

typedef struct ToolPart {
    uint64_t from, to;          /* UINT64_MAX: the end of the run */
    const char *accel;          /* of QEMU; NULL: as it comes */
    const char *trace;          /* write a branch trace there, verify nothing */
    char *dir, *log;            /* QEMU's directory and log file; NULL: ours, none */
    bool is_running;            /* or waits for its turn in a queue */
    pid_t pid;                  /* of tt-tool-local.c, as the next */
    int fd;
    GString *line;              /* not whole yet */
    GPtrArray *found;           /* of ToolFinding, as they came */
    GString *other;             /* what else it printed */
    uint64_t n_intervals;       /* equal */
    uint64_t first_wrong, first_wrong_to;       /* UINT64_MAX: none */
    unsigned n_first;           /* the findings up to that one's end are about it */
    uint64_t n_damaged;         /* could not be replayed: the log is damaged */
    bool has_ended;             /* as it said, with the status that it named */
    bool is_whole;              /* nothing of it was left out */
    uint64_t at;                /* a search has come so far; 0: nothing was said yet */
    uint64_t left_out;          /* positions that it did not execute: nothing changed there */
    bool is_dropped;            /* nobody wants to know more of it */
    int signal;                 /* that ended QEMU; 0: none */
    int status;                 /* it ended with, if no signal did */
    int code;                   /* an exit status of ours */
    char *lost;                 /* it was given up: a sentence; NULL: no */
} ToolPart;

typedef struct ToolSearch {     /* of tt find, or tt origin */
    const char *origin, *origin_how;    /* for -tt replay,origin=; NULL: of tt find */
    const char *condition, *how;    /* for -tt replay,find=; how: NULL, or some of it */
    uint64_t limit;                 /* of hits in each part */
    /* A part has said something, but its end; true: @f is kept. It may drop parts. */
    bool (*said)(void *opaque, ToolPart *p, ToolFinding *f);
    void *opaque;
} ToolSearch;

typedef struct ToolSlurm ToolSlurm;         /* tt-tool-slurm.c */

typedef struct ToolReplays {    /* what they have in common */
    const char *run;
    const char *qemu;
    uint64_t jobs;
    GPtrArray *parts;           /* of ToolPart; tool_part_free */
    const ToolSearch *search;   /* NULL: they are verified, or traced, or ... */
    const char *plugin;         /* ... seen by that: a value for plugin-load=; NULL: no */
    const volatile sig_atomic_t *is_over;   /* NULL, or set by a signal: drop all */
    ToolSlurm *slurm;           /* where they are executed; NULL: on this host */
} ToolReplays;

/* -j and --on, with r->run. Returns an exit status, having said what is wrong. */
int tool_take_jobs(const ToolArgs *a, ToolReplays *r);
/* Ends what still runs; frees parts, qemu and slurm. */
void tool_replays_cleanup(ToolReplays *r);
ToolPart *tool_part_new(uint64_t from, uint64_t to);
void tool_part_free(ToolPart *p);
/* How QEMU ended, if not as it should; NULL. The caller frees it. */
char *tool_part_ending(const ToolPart *p);
/* What else QEMU wrote, a sentence for each line, into @all. @is_told: why the replay cannot
 * go on was said already. */
void tool_part_lines(const ToolPart *p, bool is_told, GPtrArray *all);
/* Why a search ended early: as it says itself, then as above, and how QEMU ended. */
void tool_part_troubles(const ToolPart *p, GPtrArray *all);
/* Runs all, some at a time, and calls @done for each when it has ended. False: an
 * error, and it was said. */
bool tool_parts_run(ToolReplays *r, void (*done)(void *opaque, ToolPart *p),
                    void *opaque);

/* --on @on. Returns an exit status; r->slurm is for tool_slurm_free, which cancels what
 * runs, and removes the directory. */
int tool_slurm_new(const ToolArgs *a, const char *on, ToolReplays *r);
/* Its directory stays: there is something in it that exists nowhere else. */
void tool_slurm_keep(ToolSlurm *s);
void tool_slurm_free(ToolSlurm *s);             /* NULL is fine */
/* A directory for what they write, which the nodes see, too. NULL: said why. */
const char *tool_slurm_dir(ToolSlurm *s);

/* From now on SIGINT, SIGTERM and SIGHUP only set what is returned, for @is_over. */
const volatile sig_atomic_t *tool_catch_signals(void);
/* Nothing more is wanted of it: it is ended, or not begun. */
void tool_part_drop(ToolPart *p);
/* Adds the parts of @from..@to, cut at checkpoints: tool_cut: into about @n_parts of like
 * cost; tool_cut_back: the shorter, the nearer to the end, for @jobs processes that take
 * the last ones first; tool_cut_for: so that @jobs processes are done with all of them as soon
 * as they can be.
 * Cost: reads the list of checkpoints. */
void tool_cut(GPtrArray *parts, const char *run, const TtManifest *m,
              const TtLogReader *r, uint64_t from, uint64_t to, uint64_t n_parts);
void tool_cut_back(GPtrArray *parts, const char *run, const TtManifest *m,
                   const TtLogReader *r, uint64_t from, uint64_t to, uint64_t jobs);
void tool_cut_for(GPtrArray *parts, const char *run, const TtManifest *m,
                  const TtLogReader *r, uint64_t from, uint64_t to, uint64_t jobs);

/* ---- again ---- */
typedef enum ToolAgain {
    AGAIN_NOT_TRIED,
    AGAIN_ALIKE,                /* what is wrong is in the recording */
    AGAIN_ELSEWHERE,            /* the replay itself is not deterministic ... */
    AGAIN_PARTED,               /* ... and control goes another way */
    AGAIN_FAILED,               /* it could not be told */
} ToolAgain;

typedef struct ToolSecond {
    ToolAgain how;
    TtBranch last;              /* PARTED: the last branch that is alike; */
    TtBranch first[2];          /* the ones after it, if there are any */
    unsigned n_last, n_first[2];
    char *first_words, *second_words;   /* ELSEWHERE, PARTED: what the two found,
                                   where it begins to differ; g_free */
} ToolSecond;

/* Replays the first wrong interval of @wrong once more, with one instruction in
 * each block. */
void tool_verify_again(const ToolReplays *all, const ToolPart *wrong,
                       const ToolSymbols *symbols, ToolSecond *s);
void tool_second_cleanup(ToolSecond *s);

#endif
