/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "fpenv": state that the guest set long ago and only looks at.
 *
 * The selectors of the last x87 instruction and of its operand (FNSTENV), and the
 * status of a machine-check bank. Code that saves a vCPU without them, or changes them
 * without telling, is found. Option: rounds=N (100000).
 */
#include "rt.h"

const char guest_name[] = "fpenv";

enum { CR0_MP = 2, CR0_EM = 4, CR0_TS = 8, CR0_NE = 0x20,
       MSR_MC1_STATUS = 0x405, MSR_MC1_ADDR = 0x406 };

static u32 environment[7];

void main(void)
{
    u32 rounds = option("rounds", 100000);
    static const float one = 1.0f;

    write_cr0((read_cr0() & ~(CR0_EM | CR0_TS)) | CR0_MP | CR0_NE);
    rt_timer(1000);
    __asm__ volatile("fninit\n\tflds %0" :: "m"(one));
    for (u32 r = 0; r < rounds; r++) {
        __asm__ volatile("fnstenv %0" : "=m"(environment));
        for (u32 i = 0; i < 7; i++) {
            fold(environment[i]);
        }
        fold64(rdmsr(MSR_MC1_STATUS));
        fold64(rdmsr(MSR_MC1_ADDR));
    }
}
