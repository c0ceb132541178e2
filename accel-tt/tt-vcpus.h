/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All vCPUs of the VM together: who runs, their state and digest.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_VCPUS_H
#define TT_VCPUS_H

#include "accel-tt/tt-vcpu-backend.h"

#define TT_VCPUS_MAX 8

/* The accelerator's. Set once, before any vCPU runs. */
extern const TtVcpuBackend *tt_backend;

void tt_vcpus_find(void);               /* all of them exist */
unsigned tt_vcpus_count(void);
bool tt_vcpu_has_duties(CPUState *cpu); /* to stop, or work is queued */
CPUState *tt_vcpus_at(unsigned index);
CPUState *tt_vcpu(void);                /* who runs, or NULL before that */
void tt_vcpus_turn_to(CPUState *cpu);   /* outside cpu_exec */
uint64_t tt_vcpus_digest(void);
void tt_vcpus_flush(void);              /* the TLBs */
void tt_vcpus_stop_for_gdb(void);       /* all stand; the one that runs is at the stop */
void tt_vcpus_do_work(void);            /* what is queued: vCPU thread */
/* @halted: of one vCPU; the state of several has those flags in it. */
GByteArray *tt_vcpus_save(void);
bool tt_vcpus_load(const uint8_t *data, size_t len, bool halted, Error **errp);

/* Turns what devices hang on to the vCPUs (interrupt requests, APIC) to that of the
 * other world, the past or the present; called twice it does nothing. */
void tt_vcpus_swap_links(void);
void tt_vcpus_forget_links(void);       /* a new past has none */

#endif
