/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of this room. Context: the vCPU thread, BQL held. */
#ifndef TT_CONVERT_PARTS_INT_H
#define TT_CONVERT_PARTS_INT_H

#include "hw/core/cpu.h"
#include "log/tt-log.h"
#include "log/tt-sched.h"
#include "pages/tt-pagestore.h"
#include "run/tt-cpstate.h"

/* ---- points to go on from (tt-convert-point.c) ---- */
/* All are numbers of 64 bits: they are written as they stand here. */
typedef struct TtConvertPoint {
    uint64_t log_bytes, place_segment, place_event, place_pos;     /* of the new log */
    uint64_t exits_segment, exits_index, exits_pos;
    uint64_t node;                  /* in the page store */
    uint64_t cpu_digest, ram_digest, output_hash, events, host_ns;
    uint64_t at_place, last_at, tpr, tsc, has_tsc;
    uint64_t places, candidates, same_registers;
    uint64_t branches;              /* since the last exact place */
} TtConvertPoint;

/* Before the new log is opened. NULL: there is none, and nothing is left of one. */
const TtConvertPoint *tt_convert_point_find(void);
/* The machine becomes that of the point found; what was known of CPUID there. Does not
 * return if it cannot. */
TtBytes tt_convert_point_restore(void);
bool tt_convert_point_is_due(int64_t interval_ms);
/* Out of guest code, at a sync point: the caller has filled in what is its own. */
void tt_convert_point_take(CPUState *cpu, TtConvertPoint *p, TtBytes cpuid);
/* The last one is in its files. */
bool tt_convert_points_close(Error **errp);
/* For files that only this version of the program reads. */
uint64_t tt_convert_sum(const uint8_t *bytes, size_t len);
/* All of a checkpoint here but RAM: g_free. */
uint8_t *tt_convert_state(CPUState *cpu, uint32_t *len);
/* An empty one for the new run; NULL: *diag. */
TtPageStore *tt_convert_new_store(TtDiag *diag);
/* RAM, map and vCPU become those of a checkpoint, where *@at is the place in the log. */
bool tt_convert_become(TtPageStore *store, uint32_t id, TtCursor *at, TtDiag *diag);

/* ---- the new log (tt-convert-log.c) ---- */
/* @from: it goes on there; NULL: it begins. */
bool tt_convert_log_open(const TtConvertPoint *from, Error **errp);
/* Up to @p it is there and intact; what is after that is cut off. */
bool tt_convert_log_is_whole(const TtConvertPoint *p);
bool tt_convert_log_has_pictures(void);
/* Not NULL: the log goes on from there, and what is put at first is not written, until
 * tt_convert_log_goes_on. */
const TtConvertPoint *tt_convert_log_point(void);
void tt_convert_log_goes_on(void);
/* Ends the open segment here: the number of the next one. */
uint64_t tt_convert_log_cut(void);
/* On disk up to here: says so in @p. */
void tt_convert_log_seal(TtConvertPoint *p);
/* With the position filled in. */
void tt_convert_put(TtEvent *ev);
void tt_convert_put_check(void);
/* The digest of this place; with a warning if RAM is not the @recorded one. */
void tt_convert_put_digest(const TtEvent *recorded);
/* The log of exits has no more: says so, here and in the new log, if the rest of it is
 * damaged. */
void tt_convert_put_damage(void);
void tt_convert_log_can_end(void);      /* exits, if it was not read to its end */
/* The last segment; @is_end: of the run, and @is_clean: it had a clean one. Then the
 * files change their names. False: *errp. */
bool tt_convert_log_finish(bool is_end, bool is_clean, Error **errp);

/* ---- looking for a place (tt-convert-landmark.c) ---- */
/* The vCPU stands in the place of @ev. */
bool tt_convert_is_here(CPUState *cpu, const TtEvent *ev);
/* Pages of the place that follows: TT_EV_LANDMARK_PAGES. False: @ev is damaged. */
bool tt_convert_more_pages(const TtEvent *ev);
/* A count of branches: the same. */
void tt_convert_more_branches(const TtEvent *ev);
/* One of these was there, and the place is still to come. */
bool tt_convert_has_more(void);
/* Where a later process goes on: at the first of these, or at the next event. */
TtCursor tt_convert_cursor(void);
/* It is looked for from here on. False: @ev is no place. */
bool tt_convert_hunt(CPUState *cpu, const TtEvent *ev);
/* Out of guest code while hunting: from the branch before the place on, guest code ends at
 * its address (EXCP_DEBUG). False: the branch after it has come. */
bool tt_convert_hunt_goes_on(CPUState *cpu);
/* The place is found, in guest code or where the vCPU stood already. */
void tt_convert_hunt_ends(CPUState *cpu);
bool tt_convert_is_hunting(void);
/* Which pages were page tables: a bitmap. */
TtBytes tt_convert_tables(void);
void tt_convert_set_tables(TtBytes bits);
bool tt_convert_is_table(uint64_t page);
/* Why none has fitted so far, for the report. */
char *tt_convert_hunt_text(void);
typedef struct TtConvertCounts {
    uint64_t places, candidates, same_registers;
    uint64_t compared;              /* checkpoints; in this process */
} TtConvertCounts;
extern TtConvertCounts tt_convert_counts;

/* ---- branches since the last exact place (tt-convert-branches.c) ---- */
/* This is one, or was: @passed since. */
void tt_convert_branches_restart(uint64_t passed);
uint64_t tt_convert_branches(void);
/* The place that follows comes after so many, and guest code ends there. */
void tt_convert_branches_want(uint64_t n);
void tt_convert_branches_hunt(CPUState *cpu);
void tt_convert_branches_end(CPUState *cpu);
typedef enum TtConvertNear {
    TT_CONVERT_BEFORE,              /* not that far */
    TT_CONVERT_HERE,                /* or nobody knows */
    TT_CONVERT_BEHIND,
} TtConvertNear;
TtConvertNear tt_convert_branches_near(void);
/* For the report; g_free. Empty without a count. */
char *tt_convert_branches_text(void);

/* ---- the recorder's checkpoints (tt-convert-recorded.c) ---- */
void tt_convert_recorded_open(void);
/* The number, from 1 on, of the one that was taken there, between two events of the exits;
 * 0: none. */
uint64_t tt_convert_recorded_find(uint64_t exits_pos);
/* The vCPU stands there: RAM is the recorded one, or becomes it. False: it differs, and
 * that was said. */
bool tt_convert_recorded_compare(uint64_t index);
/* The machine becomes that of one, and the log of exits goes on there. */
bool tt_convert_recorded_restore(uint64_t index, TtDiag *diag);
/* Its pages that may have changed since the one before it; @is_first: all that are not
 * zero. NULL: memory is short, or they cannot be read. */
TtPageBatch *tt_convert_recorded_batch(uint64_t index, bool is_first);

/* ---- events that are applied (tt-convert-apply.c) ---- */
/* And written, where the vCPU stands. False: it could not be, and that was said. */
bool tt_convert_apply(const TtEvent *ev);

/* ---- a guest that never comes to the next event (tt-convert-repeat.c) ---- */
/* Now and then, out of guest code. */
void tt_convert_repeat_tick(CPUState *cpu);
/* In guest code, where tt_hunting has it stop: the state is one that was there before. */
bool tt_convert_repeats(CPUState *cpu);

/* ---- what the guest asks for (tt-convert-answer.c) ---- */
void tt_convert_answer(TtEvent *ev);
/* Events of the log that change what is answered. True: @ev was one. */
bool tt_convert_learn(const TtEvent *ev);
/* The vCPU's state was replaced by the log's. */
void tt_convert_learn_state(CPUState *cpu);
void tt_convert_cr8_written(uint64_t val);
TtBytes tt_convert_cpuid(void);
void tt_convert_set_cpuid(TtBytes table);
void tt_convert_known_save(TtConvertPoint *p);
void tt_convert_known_load(const TtConvertPoint *p);
/* The guest @does something, and @want (NULL: nothing) was recorded. */
void tt_convert_report_other(const char *does, const TtEvent *want);

/* ---- half a store (tt-convert-half.c) ---- */
/* The instruction got @n bytes from a device. */
void tt_convert_note_load(uint64_t addr, const uint8_t *bytes, unsigned n);
/* An exception was delivered. */
void tt_convert_excepted(CPUState *cpu);
/* Bytes that KVM stored before it. NULL: none. */
const TtEvent *tt_convert_take_half(void);
bool tt_convert_owes_half(void);

/* ---- what is said on the way (tt-convert-tell.c) ---- */
void tt_convert_tell_start(void);
void tt_convert_tell_began(int64_t ms);     /* in another process */
/* True: it is time for it. @positions: since the last event. */
bool tt_convert_tell_progress(uint64_t positions);
void tt_convert_tell_done(void);

/* ---- the pass (tt-convert.c) ---- */
typedef struct TtConvertPass {
    bool at_place;
    bool stops_behind;          /* this instruction: the next event is no answer */
    bool wants_window;
    bool is_over;
    uint64_t last_at;           /* the last event's position */
    uint64_t point_at;          /* leave guest code here: a point to go on from */
    uint64_t checkpoint;        /* of the recorder's, which was taken here */
    /* ---- who begins the pass puts them here ---- */
    /* The recorder's checkpoint between two events of the exits; 0: none. */
    uint64_t (*find)(uint64_t exits_pos);
    /* tt_pass.checkpoint is here. False: RAM differs from it, which was said, or the
     * part ends. */
    bool (*passes)(CPUState *cpu);
    /* Out of guest code: a point from which a later process can go on. */
    void (*take_point)(CPUState *cpu);
} TtConvertPass;
extern TtConvertPass tt_pass;
/* The vCPU and the devices report to it. */
void tt_convert_register(void);
/* The event at the cursor was dealt with. */
void tt_convert_pop(void);
/* The part is whole. */
void tt_convert_end_part(void);
/* Writes it, with the digests of this place. */
void tt_convert_annotate(const TtEvent *ev);
/* The log of exits says something else than what happens here. */
void G_NORETURN tt_convert_leave(CPUState *cpu);
/* Applies a nested event that stands at the cursor, and pops it. */
void tt_convert_apply_nested(void);
/* An answer was taken out of the log: what comes next? */
void tt_convert_answered(void);

#endif
