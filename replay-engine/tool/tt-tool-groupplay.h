/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt group live --exact: what its files know of each other. The script says what the member
 * did; it is carried out in tt-tool-groupplay.c.
 */
#ifndef TT_TOOL_GROUPPLAY_H
#define TT_TOOL_GROUPPLAY_H

#include "tt-tool-grouplink.h"
#include "net-tt/tt-link.h"

/* What the member did next: send a frame, or receive one. */
typedef struct Step {
    uint64_t pos;
    unsigned from;              /* member; or STEP_SEND */
    uint32_t frame;             /* index in what it sends */
} Step;

#define STEP_SEND UINT32_MAX

/* One of the others. */
typedef struct Sender {
    GroupFrames was, is;        /* what came from it then, and comes now */
    uint32_t needed, forgiven;  /* frames, for the next step */
    bool is_silent;             /* something did not come: nothing is awaited */
    bool has_been_silent;       /* that was said */
    GHashTable *known;          /* hashes of what had come */
    const char *run;            /* the branch, until its id is in is.uuid */
    bool stands_still;
} Sender;

struct GroupPlay {
    const Group *g;
    const GroupMember *m;
    unsigned index;
    uint32_t epoch;             /* the checkpoint */
    GroupMeeting *meeting;
    GroupLink *link;
    TtLogReader *reader;
    TtManifest manifest;
    uint64_t began_ns;          /* of the recording, at the checkpoint */
    GroupFrames mine;
    GHashTable *addresses;      /* MAC addresses that it has sent from */
    Sender *senders;            /* by member */
    GArray *steps;
    unsigned next;              /* step */
    uint64_t then_of, then_ns;  /* when what was at that position was; see then_ns() */
    TtHeard heard;
    bool is_running, has_said;
    uint64_t ran_ns, since_ns;  /* time that it ran, until it went on the last time */
    uint64_t late_ns;           /* behind the recording */
    uint64_t waits_ns;          /* since when it waits for a frame; 0: it does not */
    unsigned n_not_sent;
    size_t kept_bytes;
    guint timer;
};

/* What the member did from the checkpoint on, and what the others did to it; and where it
 * met them. False: said why. */
bool group_play_script(GroupPlay *p, const ToolArgs *a);
bool group_play_meet(GroupPlay *p);

#endif
