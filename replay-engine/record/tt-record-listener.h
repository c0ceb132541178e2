/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Listeners of a recording: the checkpointer, the flight recorder, a branch, a trace.
 * Each registers its functions once, at start; they are called in the order of
 * registration. A function that is NULL is not called.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_RECORD_LISTENER_H
#define TT_RECORD_LISTENER_H

struct CPUState;

typedef struct TtRecordListener {
    /* The initial state is logged, the manifest is there; the vCPUs are out of
     * cpu_exec. False: the recording cannot begin, *errp. */
    bool (*started)(struct CPUState *cpu, Error **errp);
    /* A sync point was just logged; the vCPU is in cpu_exec. */
    void (*sync_point)(struct CPUState *cpu);
    /* The vCPU has left cpu_exec, between two instructions. */
    void (*turned)(struct CPUState *cpu);
    /* The vCPU wrote @byte to port 0x3f8 or 0x3fb, the first serial port. */
    void (*console)(uint32_t port, uint8_t byte);
    /* A segment of the log was handed to its writer. @is_tight: a window's log would
     * soon be longer than its limit. */
    void (*grew)(bool is_tight);
    /* The log cannot be written, now or any more: tell what went wrong besides. */
    void (*tell)(void);
    /* The last segment is in the log, and its writer's thread has ended. */
    void (*finishing)(void);
    /* It is over, nothing of it is open. */
    void (*ended)(void);
    /* It never began: its files are about to be removed. */
    void (*removing)(void);
    /* Writer's thread, without the BQL: the disk is full. Was space given back? */
    bool (*make_room)(void);
    /* Are checkpoints made by themselves, so that a window can move? */
    bool (*has_checkpoints)(void);
} TtRecordListener;

/* @l stays valid. Main thread, before the command line is read. */
void tt_record_listen(const TtRecordListener *l);

#endif
