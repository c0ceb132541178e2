/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of this room. Context: the vCPU thread, BQL held. */
#ifndef TT_KVM_PARTS_INT_H
#define TT_KVM_PARTS_INT_H

#include "hw/core/cpu.h"
#include "accel-tt/tt-vcpu-backend.h"
#include "log/tt-landmark.h"

enum { TT_KVM_GO_ON = -1, TT_KVM_FAILED = -2 };

/* The exit in cpu->kvm_run is dealt with and logged. Returns TT_KVM_GO_ON, _FAILED,
 * or EXCP_* to leave with. Counts exits in *@exits. */
int tt_kvm_exit(CPUState *cpu, uint64_t *exits);

/* Registers of a vCPU that stands between two instructions. False: it does not, or
 * it stands where a replay could not stop. */
bool tt_kvm_place(CPUState *cpu, TtLandmark *place);

/* At a complete exit: is it between two instructions, or within a string instruction
 * with REP, where a replay cannot stop? @is_behind: it is that of an instruction, and
 * stands after it. UNKNOWN: KVM does not say. */
typedef enum { TT_KVM_BETWEEN, TT_KVM_WITHIN, TT_KVM_UNKNOWN } TtKvmBoundary;
TtKvmBoundary tt_kvm_boundary(CPUState *cpu, bool is_behind);

/* The vCPU stands before an instruction that KVM cannot emulate: it is executed, and
 * logged. Counts its exits in *@exits. False: it cannot be, and the user was told why. */
bool tt_kvm_once(CPUState *cpu, uint64_t *exits);

/* What CPUID answers goes into the log. */
void tt_kvm_log_cpuid(CPUState *cpu);
/* What KVM cannot emulate ends in QEMU, also where it is user code. */
void tt_kvm_leaves_to_emulate(bool on);

/* ---- a recording begins (tt-kvm-begin.c) ---- */
/* The vCPU is stopped: is nothing under way that no event could say? */
bool tt_kvm_can_begin(CPUState *cpu);
/* Why no recording can begin, or NULL. */
const char *tt_kvm_refusal(CPUState *cpu);
/* An interrupt that was handed to the kernel before, and not delivered, is logged. True:
 * there was one. */
bool tt_kvm_take_over(CPUState *cpu);
/* No interrupt is taken here, after STI or MOV SS. */
bool tt_kvm_has_shadow(CPUState *cpu);
void tt_kvm_log_tpr(CPUState *cpu);

/* ---- branches, where the host counts them exactly (tt-kvm-branches.c) ---- */
void tt_kvm_branches_begin(CPUState *cpu);
void tt_kvm_branches_end(void);
/* Why they are not counted, or NULL. */
const char *tt_kvm_branches_missing(void);
/* The vCPU is at an exact place. The second: so many since then. False: not known. */
void tt_kvm_branches_mark(void);
bool tt_kvm_branches_passed(uint64_t *n);

/* ---- its state, see tt-vcpu-backend.h (tt-kvm-state.c) ---- */
GByteArray *tt_kvm_save(CPUState *cpu);
bool tt_kvm_load(CPUState *cpu, const uint8_t *data, size_t len, Error **errp);
uint64_t tt_kvm_digest(CPUState *cpu);
uint64_t tt_kvm_fingerprint(CPUState *cpu);
/* The registers that QEMU has, in TCG's form and in KVM's again. The first returns
 * KVM's hidden flags, which the second takes. */
uint32_t tt_kvm_to_tcg(CPUState *cpu);
void tt_kvm_from_tcg(CPUState *cpu, uint32_t hflags);

/* ---- the time stamp counter (tt-kvm-tsc.c) ---- */
void tt_kvm_tsc_init(void);
/* It stands still where this host can do that, from here to the end of the recording. */
void tt_kvm_tsc_begin(CPUState *cpu);
void tt_kvm_tsc_end(CPUState *cpu);
/* The log says once more where it stands. */
void tt_kvm_tsc_log(void);
/* Others may have set it. */
void tt_kvm_tsc_forget(void);
bool tt_kvm_tsc_is_frozen(void);
/* What the guest would read now. */
uint64_t tt_kvm_tsc_read(CPUState *cpu);
/* Before guest code; @is_exact: the value may change here, if it is between two
 * instructions; @is_behind: as above; @is_within: an interrupt waits for the end of a
 * string instruction. False: KVM refuses, which was said. */
bool tt_kvm_tsc_enter(CPUState *cpu, bool is_exact, bool is_behind, bool is_within);

#endif
