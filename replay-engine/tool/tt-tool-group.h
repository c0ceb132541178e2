/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt group: the runs of a group, read once, and their causal order.
 */
#ifndef TT_TOOL_GROUP_H
#define TT_TOOL_GROUP_H

#include "tt-tool.h"
#include "tt-tool-qmp.h"
#include "net-tt/tt-causal.h"
#include "net-tt/tt-frame.h"
#include "net-tt/tt-framediff.h"
#include "net-tt/tt-framestore.h"

#include <signal.h>
#include <sys/types.h>

typedef struct GroupSent {
    uint64_t pos, seq, hash;
    uint32_t len, epoch;
} GroupSent;

typedef struct GroupGot {
    uint64_t pos, seq, hash, sent_at;
    uint32_t len, epoch;
    unsigned from;              /* member; or GROUP_OUTSIDE */
    bool is_early;              /* sent before the log of its member begins */
    uint32_t n_sent;            /* that its member had sent before */
} GroupGot;

#define GROUP_OUTSIDE UINT32_MAX

/* A checkpoint of the group, in one run. */
typedef struct GroupPoint {
    uint32_t epoch;
    bool is_made;               /* or this run is without it */
    bool is_lost;               /* its files do not have it; see group_look_for_points */
    uint64_t pos;               /* right after it: of the cut; see group_point_pos */
    unsigned n_kept;            /* frames that were on their way */
} GroupPoint;

/* An incident of the group, as one run has noted it. */
typedef struct GroupIncident {
    TtIncident what;
    uint64_t pos;               /* where this run stood: of the cut */
    uint64_t mark_pos;          /* of its mark */
    bool is_gone;               /* the log of the run has it no longer */
    char *window;               /* the first that was saved with it; NULL: none */
} GroupIncident;

typedef struct GroupMember {
    char *name, *run;
    uint8_t uuid[16];
    bool is_kvm;                /* positions in frames are those before conversion */
    bool is_whole;              /* the log has its end */
    bool is_live;               /* it was still being recorded when its log was opened */
    bool is_saved;              /* a window: its log ends where it was saved, and the others
                                 * may go on */
    bool is_branch;             /* it went on from parent_pos of that run */
    uint8_t parent_uuid[16];
    uint64_t parent_pos;
    bool may_filter;            /* it has a filter-tt, or that is not known */
    unsigned n_links;           /* how many -netdev tt it has */
    char *directory;            /* in which its QEMU was started; "": not known */
    bool keeps_frames;          /* by its options: frames= */
    char *frames;               /* directory of the frame stores; NULL: none */
    uint64_t first, end;        /* positions of the log */
    bool is_window;             /* it has only the last part of the recording */
    uint64_t start;             /* from here on it can be replayed */
    GPtrArray *windows;         /* directories of the windows that were saved beside it */
    uint64_t outside;           /* frames that came from runs that are not here, or from
                                 * nobody, and ... */
    uint64_t bare;              /* ... of these, without a trailer from a member's address */
    GArray *sent, *got;         /* of GroupSent, GroupGot, in the order of the log */
    GArray *points;             /* of GroupPoint, the same; their numbers go up */
    char *damage;               /* why some of these are lost; NULL: that is not known */
    GArray *incidents;          /* of GroupIncident, the same */
    GHashTable *kept;           /* run, sequence, netdev -> points before its note */
    TtKept *keeping;            /* while the log is read, as is the next: */
    GHashTable *marks;          /* name -> uint64_t, its last position */
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
/* Its part: gives @g a name and the members, with their names and runs, by name. False: said
 * why. */
bool group_find_members(Group *g, const char *path);
/* Of the window in @dir, which belongs to @m: appends its incidents to @list. False: said
 * why. */
bool group_read_incidents(GroupMember *m, const char *dir, GArray *list, uint64_t *end);
/* Also what the windows that were saved beside the runs have: those that cannot be read are
 * named, and do not count; then false. */
bool group_load_windows(const Group *g);
/* Can it be the name of a run that goes on? UTF-8 without control characters, in one
 * directory. */
bool group_is_name(const char *name);
/* The member with this run; -1: none. */
int group_find_uuid(const Group *g, const uint8_t *uuid);
static inline GroupMember *group_at(const Group *g, unsigned i)
{
    return g_ptr_array_index(g->members, i);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC(Group, group_free)

/* Makes one of the whole group, by the QMP socket of a member: tt group checkpoint. */
int group_checkpoint(const ToolArgs *a);
/* The checkpoints of the group: tt group checkpoints. */
int group_checkpoints(const ToolArgs *a, const Group *g);
/* One more sentence for @list; of very many only the first. */
void group_find(GPtrArray *list, const char *fmt, ...) G_GNUC_PRINTF(2, 3);
/* Sentences about those that are no consistent cut. How many of them cannot be told yet,
 * since frames are in flight. */
unsigned group_check_points(const Group *g, GPtrArray *list);
/* Tells the index what windows begin before, by checkpoints in them. Only those that are the
 * first in a log: two members rarely have an earlier one in common. */
void group_note_points(const Group *g);
/* Their numbers, ascending, of uint32_t. */
GArray *group_epochs(const Group *g);
/* is_lost of all points, and damage: of members that are still recorded that is not known.
 * Cost: reads the checkpoints of all runs that have any. */
void group_look_for_points(const Group *g);
/* NULL: the run is without it. */
const GroupPoint *group_point(const GroupMember *m, uint32_t epoch);
/* The position that the run, its mark and QMP say it has. */
uint64_t group_point_pos(const GroupPoint *made);
/*
 * Are these positions, one for each member, a consistent cut? UINT64_MAX: not known; then
 * there is to be one with the others. False: @diag says what shows that it is none.
 */
bool group_is_cut(const Group *g, const uint64_t *at, TtDiag *diag);
/* May they be one, for all that is known of frames that are in flight, or that a window may
 * have had? False: they are none. */
bool group_may_be_cut(const Group *g, const uint64_t *at, TtDiag *diag);
/* The one to go on from: that of --at, or the last one that all members have. TOOL_FINE, or
 * what the program ends with. */
int group_choose(const ToolArgs *a, const Group *g, uint32_t *epoch);
/* Is a checkpoint of the group a consistent cut? */
bool group_is_moment(const Group *g, uint32_t epoch, TtDiag *diag);

/* What went wrong in the group: tt group incidents. */
int group_incidents(const ToolArgs *a, const Group *g);
/* Sentences about those whose positions are no consistent cut; the same. */
unsigned group_check_incidents(const Group *g, GPtrArray *list);
/* As group_note_points; nothing, if a frame may come by another way than an incident. */
void group_note_incidents(const Group *g);
/* Of the cut @at (UINT64_MAX: not known), which is consistent as far as the logs show. */
void group_note_cut(const Group *g, const uint64_t *at);

/* The whole group goes on for real from one of them: tt group live. */
int group_live(const ToolArgs *a, const Group *g);
/* Where the branches keep what they send, in their directory: never among what others keep. */
#define GROUP_FRAMES    "frames"
#define GROUP_HUB_OUT   "hub.out"       /* what the hub says, there */
#define GROUP_LIST      "group"         /* of the runs, there, with --exact */

/* No member is still being recorded; and the names of all can be those of their branches.
 * @exact: is none; NULL: all have one. TOOL_FINE, or what the program ends with. */
int group_check_ended(const Group *g);
int group_check_names(const ToolArgs *a, const Group *g, const GroupMember *exact,
                      bool has_hub);

/* Starts a program whose output goes to @out, and which inherits @keep (-1: nothing);
 * -1: said why. */
pid_t group_start(char **argv, int out, int keep);
/* A branch of @m from checkpoint @epoch of the group into @run: tt branch, which becomes QEMU,
 * with the user's options. @fd: of its QMP, and it stands still; -1: the command is only
 * printed. g_strfreev. */
char **group_branch(const ToolArgs *a, const GroupMember *m, uint32_t epoch, const char *run,
                    int fd);
/* And was waited for: @status as of waitpid, 0 if that is not known. Does not wait. */
bool group_has_ended(pid_t pid, int *status);
/* The same, but waits until then. */
bool group_ends(pid_t pid, int64_t until_us, int *status);
/* It was told to end: waits for that, and kills it if it has not ended by then. */
void group_wait(pid_t pid, int64_t until_us);
/* QEMU's -S is among the options for the members. */
bool group_begins_stopped(const ToolArgs *a);
char *group_program(const ToolArgs *a); /* this one's path, as it was called; g_free */
/* What a program said last in the file @path; g_free. */
char *group_last_line(const char *path);

/* The new directory in which a group goes on. Until all is well there is a file in it, which
 * this process and its members have locked; of one that nobody has, the command was killed. */
typedef struct GroupPlace {
    const char *dir;            /* the caller's, as are these: whole paths of what is made */
    const GPtrArray *runs, *files;      /* in it */
    const char *frames;         /* whole path of the directory of the frame stores, that need
                                 * not be in it; NULL: it is GROUP_FRAMES */
    bool had_frames;            /* which the user had made */
    const volatile sig_atomic_t *is_told;       /* to end; NULL: never */
    int lock;                   /* -1: it is not made */
} GroupPlace;

/* Makes it; what a command that was killed has left there is taken away first, and that is
 * said. False: said why. */
bool group_place_make(GroupPlace *p);
/* The group goes on: what is there stays. Nothing, if it is not made. */
void group_place_keep(GroupPlace *p);
/* Takes it away with all that was made in it, unless one has recorded something. What stays is
 * said, or if @is_quiet only what cannot be deleted, or may be empty. */
bool group_place_drop(GroupPlace *p, bool is_quiet);     /* false: it stays */

/* Where one -netdev tt of a member meets others, by its recorded option. */
typedef struct GroupMeeting {
    char *group, *address, *key_file;       /* key_file: NULL: none */
    bool listens;
} GroupMeeting;

void group_meeting_free(gpointer meeting);
/* Adds those of @member. False: said why. */
bool group_meetings(const GroupMember *member, GPtrArray *all);
/* Takes @text over: of a Unix socket, with a whole path, seen from @dir. NULL stays it. */
char *group_whole_address(char *text, const char *dir);

/* directory, keeps_frames, may_filter and n_links of @m, by its recorded options. */
void group_note_ways(GroupMember *m, const TtManifest *manifest);

/* The place that an address means. */
typedef struct GroupWhere GroupWhere;

/* Never NULL; group_where_free. */
GroupWhere *group_where_new(const GroupMeeting *m);
void group_where_free(gpointer where);
/* Does whoever listens at @w listen everywhere at @other? This and the next look the names of
 * hosts up when they must, once for each place, which may take seconds. */
bool group_where_has(GroupWhere *w, GroupWhere *other);
/* Does a member that listens on this host get who connects to @connects? */
bool group_where_meets(GroupWhere *listens, GroupWhere *connects);

/* The hub of a group that goes on. */
typedef struct GroupHub {
    char **argv;                /* NULL: there is none to start */
    GPtrArray *served;          /* addresses of those who connect to it, one for each */
    pid_t pid;                  /* 0: it does not run */
    char *out;                  /* what it says */
    guint watch_tag;
    bool has_failed;            /* which was said */
} GroupHub;

/* Is there somebody where the members connect to, or shall a hub be started (--hub)?
 * TOOL_FINE, or what the program ends with. */
int group_hub_plan(GroupHub *h, const ToolArgs *a, const Group *g);
/* Its output goes to @path. False: said why. */
bool group_hub_start(GroupHub *h, const char *path);
/* Is @m, which is asked by @qmp, connected to it wherever it is to be? True, too: there is no
 * hub. */
bool group_hub_has(const GroupHub *h, const GroupMember *m, ToolQmp *qmp);
/* Before that. False: it has ended, said why. True, too: there is no hub. */
bool group_hub_is_there(GroupHub *h);
/* While a main loop runs: says if the hub ends before its time. @h stays where it is. */
void group_hub_watch(GroupHub *h);
/* All members have left: it ends by itself, and what it says at its end counts, too. */
void group_hub_wait(GroupHub *h);
void group_hub_end(GroupHub *h);

/* ---- what a VM sends again ---- */

typedef struct GroupFrame {
    uint64_t seq, hash;
    uint32_t len;
    uint8_t *bytes;             /* owned; NULL: they are in the store, if anywhere */
} GroupFrame;

/* Frames of one sender, in order. */
typedef struct GroupFrames {
    uint8_t uuid[16];
    GArray *list;               /* of GroupFrame */
    TtFrameStores *stores;      /* NULL: there are none */
} GroupFrames;

/* A run that stands alone (payload=both) names no directory, and one that was moved may name
 * the wrong one: if its store is not there, frames is where another member has its own. */
void group_find_frames(Group *g);
/* @dir: of the frame stores; NULL: none. */
void group_frames_init(GroupFrames *f, const char *dir, const uint8_t uuid[16]);
void group_frames_cleanup(GroupFrames *f);
void group_frames_add(GroupFrames *f, uint64_t seq, uint64_t hash, uint32_t len);
/* Its bytes, g_free; NULL: @diag. */
uint8_t *group_frames_bytes(const GroupFrames *f, const GroupFrame *x, TtDiag *diag);

typedef struct GroupDifference {
    unsigned same, changed, missing, more;      /* frames */
    const GroupFrame *was, *is; /* the first that differ; both NULL: none */
    int64_t byte;               /* the first that differs in them; -1: not known, why */
    int was_byte, is_byte;      /* -1: the frame ends before it */
    TtDiag why;
} GroupDifference;

/* Points into @was and @is. */
void group_difference(GroupDifference *d, const GroupFrames *was, const GroupFrames *is);
/* A line for each member, below that of group_difference_head. */
void group_difference_head(const char *what);
void group_difference_say(const GroupDifference *d, const char *name);
void group_difference_json(const GroupDifference *d, const char *name);
/* Two groups: tt group compare. */
int group_compare(const ToolArgs *a, const Group *g);

/* ---- one member as it was: tt group live --exact ---- */

/* In the place of a member: sends what its run has sent, at the same times, and takes what
 * the others send it. All on the default main context. */
typedef struct GroupPlay GroupPlay;

/* For the group's checkpoint @epoch. NULL: said why, or (*@result is TOOL_FINE) --exact is
 * not given. */
GroupPlay *group_play_new(const ToolArgs *a, const Group *g, uint32_t epoch, int *result);
void group_play_free(GroupPlay *p);         /* NULL is fine */
const Group *group_play_group(const GroupPlay *p);
unsigned group_play_member(const GroupPlay *p);
/* Before the others begin; and when they are there: waits for a link. False: said why, or
 * a signal has set @is_told. */
bool group_play_open(GroupPlay *p);
bool group_play_wait(GroupPlay *p, const volatile sig_atomic_t *is_told);
/* @member's branch is the run @run, which stays the caller's. */
void group_play_branch(GroupPlay *p, unsigned member, const char *run);
/* Does @member go on, or stand still? Then so does the time here. At first all do. */
void group_play_runs(GroupPlay *p, unsigned member, bool runs);
/* What @member says by @qmp from now on, which is taken over: if it stops since it cannot
 * write, that is said; @play (NULL: none) is told whether it goes on. @name stays the
 * caller's. */
typedef struct GroupWatch GroupWatch;
GroupWatch *group_watch_new(const char *name, ToolQmp *qmp, GroupPlay *play, unsigned member);
void group_watch_free(GroupWatch *w);       /* NULL is fine */
/* A list of the runs, of the member's and of the branches (by member), which is a group
 * again. False: said why. */
bool group_play_list(const GroupPlay *p, const char *path, const char *const *runs);
/* What became of it, and how what it got differs from what it had got. */
void group_play_say(const GroupPlay *p);

/* Do the runs fit together: tt group check. */
int group_check(const ToolArgs *a, const Group *g);

#endif
