/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The functions that an accelerator has to provide so that its vCPUs can be recorded or
 * replayed: to stop a vCPU at a position, to say where it is, to take and put its
 * state, and to deliver an input. accel-tt/tcg and accel-tt/kvm are two, tests/sim has
 * one of a toy VM.
 * Nothing above this interface knows which accelerator is at work, but startup, which
 * installs it (scripts/layers.toml), and control, which says what cannot be recorded.
 *
 * Positions count what passed in guest code (XenTT 4.1); a backend counts, and
 * accel-tt/tt-vcpu.c adds up. Asynchronous events are added there, too.
 *
 * Context: the vCPU thread, which holds the BQL, unless said otherwise. @cpu is a
 * vCPU of the backend's. No function fails but those that return bool.
 */
#ifndef TT_VCPU_BACKEND_H
#define TT_VCPU_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct CPUState;
struct Error;
struct _GByteArray;

typedef struct TtTlbs TtTlbs;   /* a backend's own copies of TLBs */

/*
 * An undo log of single steps (timeline/tt-undoring.h): what changes of vCPUs, other than
 * RAM. Outside guest code.
 */
typedef struct TtUndoRing TtUndoRing;
enum { TT_OLD_RAM, TT_OLD_REGISTERS, TT_OLD_TLB, TT_OLD_FETCHED };      /* kinds of notes */

typedef struct TtVcpuUndo {
    /* From here on changes are noted in @ring, while a step is open there, and each store
     * of guest code to RAM is told (tt_logs_stores is set before, and until end). @anew: they
     * were told all the time, but what cannot be undone is behind. */
    void (*begin)(TtUndoRing *ring, bool anew);
    /* A step was made and is still open: notes what it has changed. False: that cannot be
     * undone by notes. */
    bool (*passed)(void);
    /* Puts a note back that is not of RAM, then, after the last one, what follows. */
    void (*put)(uint32_t kind, uint64_t place, const void *old, size_t len);
    void (*restored)(void);
} TtVcpuUndo;

/* How guest code is run. */
typedef struct TtRunMode {
    bool is_blind;              /* no stop of gdb's may end it */
    bool passes_breakpoints;    /* gdb's breakpoints do not */
} TtRunMode;

typedef struct TtVcpuBackend {
    const char *name;           /* as in -accel NAME */
    /* Positions are exits and events, not instructions: the run is converted before
     * it is replayed (decision 0019), and can only be recorded here. */
    bool counts_exits;

    /* ---- a stop at a position, and where the vCPU is ---- */
    /* Guest code ends @n positions from here at the latest, exactly there if nothing
     * else ends it before. Outside guest code, or in it in the vCPU thread. */
    void (*arm)(struct CPUState *cpu, uint64_t n);
    /* Positions passed since the last arm or count. Any thread that holds the BQL. */
    uint64_t (*passed)(struct CPUState *cpu);
    /* The same, and counts from here on. */
    uint64_t (*count)(struct CPUState *cpu);
    /* Outside guest code, after count: no stop is armed. */
    void (*disarm)(struct CPUState *cpu);
    /* Guest code, up to the stop or to an event that ends it: EXCP_*. */
    int (*run)(struct CPUState *cpu, const TtRunMode *how);
    /* The position at which the backend wants a turn to end; UINT64_MAX: none. */
    uint64_t (*limit)(void);
    /* Before a turn: the backend does what is due at this position. */
    void (*prepare)(void);

    /* ---- state, outside guest code ---- */
    /* All that the guest can see of it but the halted flag, as bytes; the caller
     * unrefs them. @load: false, *errp: they do not fit; the vCPU's state is
     * undefined then. */
    struct _GByteArray *(*save)(struct CPUState *cpu);
    bool (*load)(struct CPUState *cpu, const uint8_t *data, size_t len,
                 struct Error **errp);
    /* Equal states have equal digests; @fingerprint covers what others than the
     * vCPU itself can change. Some microseconds. */
    uint64_t (*digest)(struct CPUState *cpu);
    uint64_t (*fingerprint)(struct CPUState *cpu);
    /* A sync point: caches whose contents the guest can see are emptied. */
    void (*flush)(struct CPUState *cpu);
    /* @cpu runs from now on; it was another one until now. */
    void (*turn_to)(struct CPUState *cpu);

    /* ---- inputs ---- */
    /* An interrupt of the class TT_INTR_* is taken here: in guest code, between two
     * instructions; it may leave by longjmp as the recorded delivery did. True: the
     * program flow was changed. */
    bool (*deliver)(struct CPUState *cpu, uint64_t intr_class, uint64_t vector);

    /* ---- the token ---- */
    /* Leaving guest code at any moment is expensive: a thread that wants the token
     * first waits so many microseconds for an exit, and then kicks. 0: it may leave at
     * once. */
    unsigned hold_us;
    void (*kick)(struct CPUState *cpu);     /* with hold_us; any thread */

    /* ---- life ---- */
    /* The vCPU is stopped: can a recording begin here? False: let it run a moment. NULL:
     * it can anywhere. */
    bool (*can_begin)(struct CPUState *cpu);
    /* Why no recording can begin now, a sentence; NULL: it can. May be NULL itself. */
    const char *(*refusal)(struct CPUState *cpu);
    /* A recording begins: what else a replay must know of the vCPU is logged. May be
     * NULL. */
    void (*begin)(struct CPUState *cpu);
    /* With counts_exits: the vCPU stands outside guest code, and a landmark says where.
     * False: none can. */
    bool (*place)(struct CPUState *cpu);
    /* Its state was logged anew: so is what else a replay must know that begins here. */
    void (*renew)(struct CPUState *cpu);
    /* The mode (TT_OFF, ...) has changed, the vCPU is stopped: nothing that was made
     * for the mode before is used again. */
    void (*mode_changed)(struct CPUState *cpu);

    /* ---- what a backend that only records may leave NULL ---- */
    /* Ends a turn from inside an instruction; does not return. */
    void (*leave)(struct CPUState *cpu) __attribute__((noreturn));
    /* How many instructions have begun in this process: those that were executed, and
     * those that faulted. A plugin's call at each instruction counts the same. And how
     * many exceptions, traps too, were delivered in it. */
    uint64_t (*begun)(void);
    uint64_t (*excepted)(void);

    /* ---- what any backend may leave NULL ---- */
    /* After a sync point: the vCPU asks anew for the code where it stands, which the
     * guest can see. */
    void (*fetch_again)(struct CPUState *cpu);
    /* Copies of all vCPUs' TLBs, for checkpoints where these are not empty (near ones);
     * NULL: there are none. No work is queued for a vCPU. Save: never NULL, some 0.1 ms.
     * Load: everything else of the state is that of the copy, and the memory map has
     * not changed since: tt_memory_map_changes says the same as then. Free: NULL is
     * nothing to do. Bytes: host memory. */
    TtTlbs *(*save_tlbs)(void);
    void (*load_tlbs)(const TtTlbs *tlbs);
    void (*free_tlbs)(TtTlbs *tlbs);
    size_t (*bytes_of_tlbs)(const TtTlbs *tlbs);
    /* NULL: no step can be undone but by a checkpoint. */
    const TtVcpuUndo *undo;
    /* From now on every vCPU tells a branch trace where control goes elsewhere, or does
     * not (accel-tt/tt-branch-trace.h). Between two turns. NULL: it cannot. */
    void (*report_branches)(bool on);
    /* The host kernel keeps the list of pages that guest code wrote to, of RAM that was
     * mapped while it was to be logged. */
    bool logs_writes_in_host;
} TtVcpuBackend;

#endif
