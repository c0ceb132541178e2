/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "tscratio": a hypervisor that scales its guest's time stamp counter (AMD's
 * TSC ratio MSR) and adds an offset.
 *
 * The inner guest reads the counter in three ways. The hypervisor reads its own before
 * and after that, and works out what lies between. A small ratio leaves one value or
 * two. Needs tsc-scale. Option: rounds=N (2000).
 */
#include "rt.h"

const char guest_name[] = "tscratio";

enum { MSR_EFER = 0xc0000080, EFER_SVME = 1 << 12, MSR_HSAVE = 0xc0010117,
       MSR_TSC = 0x10, MSR_RATIO = 0xc0000104, LEAF_SVM = 0x8000000a,
       HAS_RATIO = 1 << 4, RATIO_BITS = 40 };
enum { EXIT_INTR = 0x60, EXIT_NMI = 0x61, EXIT_VMMCALL = 0x81 };

/* Offsets in the control block. */
enum { INTERCEPT_1 = 0x0c, INTERCEPT_2 = 0x10, TSC_OFFSET = 0x50, ASID = 0x58,
       INT_CTL = 0x60, EXIT_CODE = 0x70, ES = 0x400, CS = 0x410, SS = 0x420,
       DS = 0x430, GDTR = 0x460, IDTR = 0x480, EFER = 0x4d0, CR4 = 0x548,
       CR3 = 0x550, CR0 = 0x558, DR7 = 0x560, DR6 = 0x568, RFLAGS = 0x570,
       RIP = 0x578, RSP = 0x5d8 };
enum { ON_INTR = 1, ON_NMI = 2, ON_VMRUN = 1, ON_VMMCALL = 2, MASKS_INTR = 1 << 24 };

static u8 block[PAGE] ALIGNED(PAGE), host_save[PAGE] ALIGNED(PAGE);
static u32 inner_stack[256];
static u32 refused;
volatile u64 seen[3];

extern u8 inner[];
__asm__("inner:\n\t"
        "rdtsc\n\t"
        "mov %eax, seen\n\t"
        "mov %edx, seen+4\n\t"
        "rdtscp\n\t"
        "mov %eax, seen+8\n\t"
        "mov %edx, seen+12\n\t"
        "mov $0x10, %ecx\n\t"
        "rdmsr\n\t"
        "mov %eax, seen+16\n\t"
        "mov %edx, seen+20\n\t"
        "vmmcall\n\t"
        "jmp inner\n");

static volatile u32 *at(u32 offset)
{
    return (volatile u32 *)(block + offset);
}

static void wrmsr(u32 msr, u64 v)
{
    __asm__ volatile("wrmsr" :: "c"(msr), "a"((u32)v), "d"((u32)(v >> 32))
                     : "memory");
}

static void general_protection(struct rt_frame *f)
{
    refused++;
    f->eip += 2;
}

static void segment(u32 offset, u32 selector, u32 attributes, u32 base, u32 limit)
{
    *at(offset) = selector | attributes << 16;
    *at(offset + 4) = limit;
    *at(offset + 8) = base;
}

static void table(u32 offset, const u8 *pointer)
{
    segment(offset, 0, 0, *(const u32 *)(pointer + 2), *(const u16 *)pointer);
}

static void make(void)
{
    u8 gdt[6], idt[6];
    u32 cs, ds, cr4;

    __asm__ volatile("sgdt %0" : "=m"(gdt));
    __asm__ volatile("sidt %0" : "=m"(idt));
    __asm__ volatile("mov %%cs, %0" : "=r"(cs));
    __asm__ volatile("mov %%ds, %0" : "=r"(ds));
    __asm__ volatile("mov %%cr4, %0" : "=r"(cr4));
    segment(CS, cs & 0xffff, 0xc9b, 0, 0xffffffff);
    segment(DS, ds & 0xffff, 0xc93, 0, 0xffffffff);
    segment(ES, ds & 0xffff, 0xc93, 0, 0xffffffff);
    segment(SS, ds & 0xffff, 0xc93, 0, 0xffffffff);
    table(GDTR, gdt);
    table(IDTR, idt);
    *at(INTERCEPT_1) = ON_INTR | ON_NMI;
    *at(INTERCEPT_2) = ON_VMRUN | ON_VMMCALL;
    *at(ASID) = 1;
    *at(INT_CTL) = MASKS_INTR;
    *at(EFER) = EFER_SVME;
    *at(CR0) = read_cr0();
    *at(CR4) = cr4;
    *at(DR6) = 0xffff0ff0;
    *at(DR7) = 0x400;
    *at(RFLAGS) = 2;
    *at(RIP) = (u32)inner;
    *at(RSP) = (u32)(inner_stack + 256);
}

/* VMRUN does not switch ECX and EDX: an interrupt may come while the guest needs them. */
static void run(void)
{
    u32 code, ecx = 0, edx = 0;

    do {
        __asm__ volatile("clgi\n\t"
                         "vmrun\n\t"
                         "stgi\n\t"
                         "nop\n\t"
                         : "+c"(ecx), "+d"(edx)
                         : "a"(block) : "ebx", "memory", "cc");
        code = *at(EXIT_CODE);
    } while (code == EXIT_INTR || code == EXIT_NMI);
    if (code != EXIT_VMMCALL) {
        rt_fail("the inner guest ended", code);
    }
    *at(RIP) += 3;
}

/* The middle 64 bits of a product of 128. */
static u64 scaled(u64 tsc, u64 ratio)
{
    u64 high = tsc >> 32, low = (u32)tsc;

    return ((high * (ratio >> 32)) << 32) + high * (u32)ratio +
        low * (ratio >> 32) + ((low * (u32)ratio) >> 32);
}

static void check(u64 ratio, u64 offset)
{
    u64 from, to;

    wrmsr(MSR_RATIO, ratio);
    if (rdmsr(MSR_RATIO) != ratio) {
        rt_fail("the ratio reads back as", (u32)rdmsr(MSR_RATIO));
    }
    *at(TSC_OFFSET) = (u32)offset;
    *at(TSC_OFFSET + 4) = (u32)(offset >> 32);
    from = rdtsc();
    run();
    to = rdmsr(MSR_TSC);
    if (to < from) {
        rt_fail("the hypervisor's own counter is scaled", (u32)ratio);
    }
    from = scaled(from, ratio);
    to = scaled(to, ratio);
    for (u32 i = 0; i < 3; i++) {
        u64 v = seen[i] - offset;

        if (v < from || v > to) {
            rt_fail("the counter is wrong, read in way", i);
        }
        from = v;
        fold64(seen[i]);
    }
}

static u64 any(u32 *state, u32 bits)
{
    u64 v = (u64)prng(state) << 40 ^ (u64)prng(state) << 20 ^ prng(state);

    return v >> (64 - bits);
}

void main(void)
{
    u32 rounds = option("rounds", 2000), state = 1, eax = LEAF_SVM, ebx, ecx = 0, edx;

    __asm__ volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    if (!(edx & HAS_RATIO)) {
        rt_fail("there is no TSC ratio MSR, but", edx);
    }
    if (rdmsr(MSR_RATIO) != 1ull << 32) {
        rt_fail("after a reset the ratio is", (u32)rdmsr(MSR_RATIO));
    }
    rt_on(13, general_protection, GATE_INTR);
    wrmsr(MSR_RATIO, 1ull << RATIO_BITS);
    if (refused != 1) {
        rt_fail("a reserved bit can be set", refused);
    }
    wrmsr(MSR_EFER, rdmsr(MSR_EFER) | EFER_SVME);
    wrmsr(MSR_HSAVE, (u32)host_save);
    make();
    rt_timer(1000);
    check(1ull << 32, 0);
    for (u32 r = 0; r < rounds; r++) {
        u32 bits = 10 + prng(&state) % 30;

        check(any(&state, bits), any(&state, 20 + prng(&state) % 44));
    }
    say("refused", refused);
}
