/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The receiver of reports and questions of the vCPU and the devices: the recorder or
 * the replayer. Each registers its functions for its mode, once, before the first run;
 * functions that it leaves out are not called. So accel-tt and hw-tt know neither.
 *
 * Context: the BQL is held; "vCPU" is the thread that runs guest code. Cost: an
 * indirect call.
 */
#ifndef TT_OPS_H
#define TT_OPS_H

#include "log/tt-log.h"

struct CPUState;
struct TtLandmark;

typedef struct TtOps {
    /* ---- inputs ---- */
    /* Recording: @ev, with its position and nesting filled in, goes into the log. */
    void (*event)(TtEvent *ev);
    /* vCPU, inside an instruction that waits for the answer @ev: it is logged, or
     * replaced by what the log says. */
    void (*answer)(TtEvent *ev);
    /* vCPU, after it wrote to a port: for code that watches the console. */
    void (*port_written)(uint32_t port, uint32_t val, unsigned size);
    void (*was_reset)(struct CPUState *cpu);
    /* KVM: the vCPU was made to leave guest code, and stands where @place says; the
     * pages are still to be added. */
    void (*placed)(struct CPUState *cpu, struct TtLandmark *place);
    /* KVM: the vCPU stands where no event can say, and does not go on from there. */
    void (*lost)(void);
    /* TCG: the vCPU halts. True: here the halt ends. */
    bool (*unhalts)(struct CPUState *cpu);
    /* TCG: the first boundary at which it could take the interrupt that was asked
     * for (CPU_INTERRUPT_HARD). */
    void (*window_open)(struct CPUState *cpu);
    void (*cr8_written)(uint64_t val);
    /* TCG: an exception was delivered; the position is still its instruction's. */
    void (*excepted)(struct CPUState *cpu);
    /* TCG: addresses may lead elsewhere from the next instruction on: the TLB, or a page
     * of it, is flushed. */
    void (*mapped_anew)(struct CPUState *cpu);

    /* ---- turns of the vCPU, in this order ---- */
    /* The first turn is due, the VM is about to run for the first time. */
    void (*begin)(void);
    /* The token is about to be given away. */
    void (*releasing)(void);
    /* Outside guest code: applies what is due here. False: stand still, or let others
     * have the token before the next try. */
    bool (*prepare)(void);
    /* Run no further than this position. */
    uint64_t (*limit)(void);
    /* In the run loop, between two blocks, the budget has run out. True: the
     * program flow was changed. */
    bool (*boundary)(struct CPUState *cpu);
    /* Outside guest code again; @why is EXCP_*. True: dealt with, no stop to
     * report to gdb. */
    bool (*left)(struct CPUState *cpu, int why);

    /* ---- movements through history ---- */
    bool (*is_moving)(void);            /* the VM runs for one */
    bool (*is_blind)(void);             /* no stop of gdb's counts now */
    bool (*steps_over)(void);           /* the breakpoint here does not */
    uint64_t (*stop_at)(void);          /* it ends here; UINT64_MAX: nowhere */
    void (*abort)(void);                /* the one that stops the VM waits for it */
} TtOps;

/* Those of tt_mode; with TT_OFF one where nothing is set. */
extern const TtOps *tt_ops;

/* @ops stays valid. */
void tt_ops_register(int mode, const TtOps *ops);

static inline bool tt_is_moving(void)
{
    return tt_ops->is_moving && tt_ops->is_moving();
}

static inline void tt_log_event(TtEvent *ev)
{
    tt_ops->event(ev);
}

#endif
