/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of this room. Context: the vCPU thread, BQL held. */
#ifndef TT_CONVERT_PARTS_INT_H
#define TT_CONVERT_PARTS_INT_H

#include "hw/core/cpu.h"
#include "log/tt-log.h"
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

/* ---- the new log (tt-convert-log.c) ---- */
/* @from: it goes on there; NULL: it begins. */
bool tt_convert_log_open(const TtConvertPoint *from, Error **errp);
/* Up to @p it is there and intact; what is behind that is cut off. */
bool tt_convert_log_is_whole(const TtConvertPoint *p);
bool tt_convert_log_has_pictures(void);
/* Not NULL: the log goes on from there, and what is put at first is not written, until
 * tt_convert_log_goes_on. */
const TtConvertPoint *tt_convert_log_point(void);
void tt_convert_log_goes_on(void);
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
/* The last segment; @is_clean: the run had a clean end. Then the files change
 * their names. False: *errp. */
bool tt_convert_log_finish(bool is_clean, Error **errp);

/* ---- looking for a place (tt-convert-landmark.c) ---- */
/* The vCPU stands in the place of @ev. */
bool tt_convert_is_here(CPUState *cpu, const TtEvent *ev);
/* Guest code ends there: EXCP_DEBUG. False: @ev is no place. */
bool tt_convert_hunt(CPUState *cpu, const TtEvent *ev);
void tt_convert_hunt_ends(CPUState *cpu);
bool tt_convert_is_hunting(void);
/* Which pages were page tables: a bitmap. */
TtBytes tt_convert_tables(void);
void tt_convert_set_tables(TtBytes bits);
/* Why none has fitted so far, for the report. */
char *tt_convert_hunt_text(void);
typedef struct TtConvertCounts {
    uint64_t places, candidates, same_registers;
} TtConvertCounts;
extern TtConvertCounts tt_convert_counts;

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
/* True: it is time for it. */
bool tt_convert_tell_progress(void);
void tt_convert_tell_done(void);

/* ---- the pass (tt-convert.c) ---- */
/* The log of exits says something else than what happens here. */
void G_NORETURN tt_convert_leave(CPUState *cpu);
/* Applies a nested event that stands at the cursor, and pops it. */
void tt_convert_apply_nested(void);
/* An answer was taken out of the log: what comes next? */
void tt_convert_answered(void);

#endif
