/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt group: the runs of a group, read once, and their causal order.
 */
#ifndef TT_TOOL_GROUP_H
#define TT_TOOL_GROUP_H

#include "tt-tool.h"
#include "net-tt/tt-causal.h"
#include "net-tt/tt-frame.h"

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

typedef struct GroupMember {
    char *name, *run;
    uint8_t uuid[16];
    bool is_kvm;                /* positions in frames are those before conversion */
    bool is_whole;              /* the log has its end */
    uint64_t first, end;        /* positions */
    uint64_t outside;           /* frames that came from runs that are not here */
    GArray *sent, *got;         /* of GroupSent, GroupGot, in the order of the log */
    GArray *points;             /* of GroupPoint, the same */
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

/* Sentences about what does not fit together; empty: all is well. */
GPtrArray *group_findings(const Group *g);

#endif
