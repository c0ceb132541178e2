/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "rdmsr": model-specific registers read in straight-line code.
 *
 * APIC base comes from a device, so its read is an input with a position.
 * The reads stand in the middle of arithmetic, where a block that does not
 * end at the read counts the instructions after it too early. MSR 0x10
 * (TSC) is read if that does not fault. Option: rounds=N (20000).
 */
#include "rt.h"

const char guest_name[] = "rdmsr";

enum { MSR_TSC = 0x10, MSR_APIC_BASE = 0x1b, MSR_MISC_ENABLE = 0x1a0 };

static volatile u32 faults;

static void on_general_protection(struct rt_frame *f)
{
    faults++;
    f->eip += 2;                /* past rdmsr */
}

static u32 NOINLINE straight_line(u32 x)
{
    u32 y = x * 9, low, high;

    __asm__ volatile(
        "lea 5(%0, %1, 2), %0\n\t"
        "rol $7, %1\n\t"
        "mov $0x1b, %%ecx\n\t"
        "rdmsr\n\t"
        "add %%eax, %0\n\t"
        "xor %0, %1\n\t"
        "rol $3, %0\n\t"
        "rdmsr\n\t"
        "sub %%eax, %1\n\t"
        "imul $33, %0, %0\n\t"
        "lea (%0, %1), %0\n\t"
        : "+b"(x), "+S"(y), "=&a"(low), "=&d"(high) :: "ecx", "cc");
    return x ^ y ^ low ^ high;
}

void main(void)
{
    u32 rounds = option("rounds", 20000), x = 1;

    rt_on(13, on_general_protection, GATE_INTR);
    rt_timer(4000);
    fold64(rdmsr(MSR_TSC));
    for (u32 r = 0; r < rounds; r++) {
        x = straight_line(x);
        fold(x);
        if (!faults) {
            fold64(rdmsr(MSR_TSC));
        }
    }
    fold64(rdmsr(MSR_MISC_ENABLE));
    fold64(rdmsr(MSR_APIC_BASE));
    say("faults", faults);
}
