/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by state and digest of an x86 vCPU. Context: the BQL is held.
 */
#ifndef TT_X86_INT_H
#define TT_X86_INT_H

#include "cpu.h"

/* State that the guest can read and vmstate does not keep, or not in every machine. */
static inline uint64_t tt_x86_pack_unkept(CPUX86State *env)
{
    return env->fpcs | (uint64_t)env->fpds << 16 |
        (uint64_t)(uint32_t)env->msr_smi_count << 32;
}

#endif
