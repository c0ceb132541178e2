/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "apic": the local APIC as model-specific registers and as CR8.
 *
 * In x2APIC mode the timer's count, the task priority and the request bits
 * are read by RDMSR, and CR8 is the same device's register: inputs without
 * any port or memory access. The APIC's own timer and interrupts that the
 * CPU sends to itself come besides the PIT. Needs -cpu max. Option:
 * rounds=N (6000).
 */
#include "rt.h"

const char guest_name[] = "apic";

enum { MSR_APIC_BASE = 0x1b, X2APIC_ENABLE = 0xc00, X2_TPR = 0x808,
       X2_EOI = 0x80b, X2_IRR1 = 0x821, X2_TIMER = 0x832, X2_INITIAL = 0x838,
       X2_COUNT = 0x839, X2_DIVIDE = 0x83e, X2_SELF_IPI = 0x83f };
enum { VECTOR_TIMER = 46, VECTOR_SELF = 47, PERIODIC = 0x20000 };

static volatile u32 timer_ticks, self_ipis;

static inline void wrmsr(u32 msr, u64 v)
{
    __asm__ volatile("wrmsr" :: "c"(msr), "a"((u32)v), "d"((u32)(v >> 32))
                     : "memory");
}

/* "lock mov %cr0": the way to CR8 outside long mode, where the CPU has it. */
static inline u32 read_cr8(void)
{
    u32 v;
    __asm__ volatile(".byte 0xf0, 0x0f, 0x20, 0xc0" : "=a"(v));
    return v;
}

static inline void write_cr8(u32 v)
{
    __asm__ volatile(".byte 0xf0, 0x0f, 0x22, 0xc0" :: "a"(v) : "memory");
}

static void on_apic_timer(struct rt_frame *f)
{
    timer_ticks++;
    rt_fold_frame(f);
    wrmsr(X2_EOI, 0);
}

static void on_self_ipi(struct rt_frame *f)
{
    self_ipis++;
    rt_fold_frame(f);
    wrmsr(X2_EOI, 0);
}

/* The priority holds back the interrupt until CR8 falls again. */
static void priorities(u32 r)
{
    write_cr8(r & 15);
    fold(read_cr8());
    fold64(rdmsr(X2_TPR));
    wrmsr(X2_SELF_IPI, VECTOR_SELF);
    fold64(rdmsr(X2_IRR1));
    fold(self_ipis);
    write_cr8(0);
    fold(self_ipis);
}

static u32 NOINLINE count_in_straight_line(u32 x)
{
    __asm__ volatile(
        "lea 3(%0, %0, 4), %0\n\t"
        "mov $0x839, %%ecx\n\t"
        "rdmsr\n\t"
        "add %%eax, %0\n\t"
        "rol $5, %0\n\t"
        "rdmsr\n\t"
        "xor %%eax, %0\n\t"
        : "+b"(x) :: "eax", "ecx", "edx", "cc");
    return x;
}

void main(void)
{
    u32 rounds = option("rounds", 6000);

    rt_on(VECTOR_TIMER, on_apic_timer, GATE_INTR);
    rt_on(VECTOR_SELF, on_self_ipi, GATE_INTR);
    wrmsr(MSR_APIC_BASE, rdmsr(MSR_APIC_BASE) | X2APIC_ENABLE);
    wrmsr(X2_DIVIDE, 11);
    wrmsr(X2_TIMER, PERIODIC | VECTOR_TIMER);
    wrmsr(X2_INITIAL, 300000);
    rt_timer(1000);
    /* A busy host may be late with its first tick. */
    for (u32 r = 0; r < rounds || (!timer_ticks && r < 1000 * rounds); r++) {
        priorities(r);
        fold(count_in_straight_line(r));
    }
    wrmsr(X2_TIMER, 0x10000);
    fold64(rdmsr(MSR_APIC_BASE));
    say("timer", timer_ticks);
    say("self", self_ipis);
    if (!self_ipis || !timer_ticks) {
        rt_fail("an APIC interrupt never came", self_ipis);
    }
}
