/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt group: the runs of a group, read once, and their causal order.
 */
#ifndef TT_TOOL_GROUP_H
#define TT_TOOL_GROUP_H

#include "tt-tool.h"
#include "net-tt/tt-causal.h"
#include "net-tt/tt-frame.h"

#include <sys/types.h>

typedef struct GroupSent {
    uint64_t pos, seq, hash;
    uint32_t len;
} GroupSent;

typedef struct GroupGot {
    uint64_t pos, seq, hash, sent_at;
    uint32_t len;
    unsigned from;              /* member; or GROUP_OUTSIDE */
    bool is_early;              /* sent before the log of its member begins */
    uint32_t n_sent;            /* that its member had sent before */
} GroupGot;

#define GROUP_OUTSIDE UINT32_MAX

/* A checkpoint of the group, in one run. */
typedef struct GroupPoint {
    uint32_t epoch;
    bool is_made;               /* or this run is without it */
    uint64_t pos;               /* right after it */
    unsigned n_kept;            /* frames that were on their way */
} GroupPoint;

/* An incident of the group, as one run has noted it. */
typedef struct GroupIncident {
    TtIncident what;
    uint64_t pos;               /* where this run stood */
} GroupIncident;

typedef struct GroupMember {
    char *name, *run;
    uint8_t uuid[16];
    bool is_kvm;                /* positions in frames are those before conversion */
    bool is_whole;              /* the log has its end */
    bool is_saved;              /* a window: its log ends where it was saved, and the others
                                 * may go on */
    uint64_t first, end;        /* positions */
    uint64_t outside;           /* frames that came from runs that are not here */
    GArray *sent, *got;         /* of GroupSent, GroupGot, in the order of the log */
    GArray *points;             /* of GroupPoint, the same */
    GArray *incidents;          /* of GroupIncident, the same */
    GHashTable *kept;           /* run and sequence -> points that were before its note */
} GroupMember;

typedef struct Group {
    char *name;
    GPtrArray *members;         /* of GroupMember, by name */
    const char **names;
    TtCausal *causal;
} Group;

/* @path: a directory with runs in it, or a file that names them. NULL: said why. */
Group *group_load(const char *path);
void group_free(Group *g);
static inline GroupMember *group_at(const Group *g, unsigned i)
{
    return g_ptr_array_index(g->members, i);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC(Group, group_free)

/* The checkpoints of the group: tt group checkpoints. */
int group_checkpoints(const ToolArgs *a, const Group *g);
/* Sentences about those that are no consistent cut. */
void group_check_points(const Group *g, GPtrArray *list);
/* Their numbers, ascending, of uint32_t. */
GArray *group_epochs(const Group *g);
/* NULL: the run is without it. */
const GroupPoint *group_point(const GroupMember *m, uint32_t epoch);
/* False: @diag says which frame shows that it is none. */
bool group_is_moment(const Group *g, uint32_t epoch, TtDiag *diag);

/* What went wrong in the group: tt group incidents. */
int group_incidents(const ToolArgs *a, const Group *g);
/* Sentences about those whose positions are no consistent cut. */
void group_check_incidents(const Group *g, GPtrArray *list);

/* The whole group goes on for real from one of them: tt group live. */
int group_live(const ToolArgs *a, const Group *g);
/* Starts a program whose output goes to @out, and which inherits @keep (-1: nothing);
 * -1: said why. */
pid_t group_start(char **argv, int out, int keep);
bool group_has_ended(pid_t pid);        /* and was waited for */
char *group_program(const ToolArgs *a); /* this one's path, as it was called; g_free */
/* What a program said last in the file @path; g_free. */
char *group_last_line(const char *path);

/* The hub of a group that goes on. */
typedef struct GroupHub {
    char **argv;                /* NULL: there is none to start */
    pid_t pid;
} GroupHub;

/* Is there somebody where the members connect to, or shall a hub be started (--hub)?
 * TOOL_FINE, or what the program ends with. */
int group_hub_plan(GroupHub *h, const ToolArgs *a, const Group *g);
/* Its output goes to @path. False: said why. */
bool group_hub_start(GroupHub *h, const char *path);
void group_hub_end(GroupHub *h);

/* Sentences about what does not fit together; empty: all is well. */
GPtrArray *group_findings(const Group *g);

#endif
