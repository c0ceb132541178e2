/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state of a vCPU under KVM and under TCG. QEMU fills the same struct under either,
 * with some differences: of the x87 registers KVM's is in the order of the stack, TCG's in
 * that of the registers; only TCG keeps bits of CR4 among its hidden flags; and of the
 * task register TCG keeps the descriptor as LTR found it, not busy.
 *
 * A VM that migrates between the two (Koju's native mode and VM mode, section 3) is
 * converted where it arrives, if it left a process with -tt.
 *
 * Context: the BQL is held; the registers are QEMU's (synchronized).
 */
#ifndef TT_X86_MOVE_H
#define TT_X86_MOVE_H

#include "cpu.h"

/* ST(i) goes to register (@by + i) % 8: with fpstt from KVM's form to TCG's, with -fpstt
 * back. */
void tt_x86_turn_x87(CPUX86State *env, unsigned by);
/* What TCG's form has for these. @shadow: STI or MOV SS was the last instruction. */
uint32_t tt_x86_hidden_flags(const CPUX86State *env, bool shadow);
uint32_t tt_x86_task_flags(const CPUX86State *env);

#endif
