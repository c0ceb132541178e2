/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recording under KVM: the vCPU backend, and what has to be set up for it.
 *
 * Context: the BQL is held.
 */
#ifndef TT_KVM_H
#define TT_KVM_H

#include "hw/boards.h"
#include "log/tt-log.h"

/* Before the accelerator is made: what KVM would do without QEMU is turned off. */
void tt_kvm_configure(void);
/* KVM is there, no device and no vCPU is yet. False: *errp says what this host
 * lacks. */
bool tt_kvm_check(MachineState *ms, Error **errp);
/* From here on the vCPUs are KVM's. @mode_changed_of_tcg: for TCG's fetch, since TCG
 * executes what KVM cannot. */
void tt_kvm_init(void (*mode_changed_of_tcg)(void));
/* What positions are made of on this host, for people. */
const char *tt_kvm_positions(void);

#endif
