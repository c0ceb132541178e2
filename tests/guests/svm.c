/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "svm": a hypervisor with a guest of its own (AMD's SVM).
 *
 * The inner guest computes and calls its hypervisor; timer interrupts end its
 * turn at whatever instruction it stands. The hypervisor folds where that was.
 * Most of the time is spent inside. Options: rounds=N (300), loops=N (2000),
 * every=N (0: never): prints the sum so often.
 */
#include "rt.h"

const char guest_name[] = "svm";

enum { MSR_EFER = 0xc0000080, EFER_SVME = 1 << 12, MSR_HSAVE = 0xc0010117 };
enum { EXIT_INTR = 0x60, EXIT_NMI = 0x61, EXIT_CPUID = 0x72, EXIT_VMMCALL = 0x81 };

/* Offsets in the control block. */
enum { INTERCEPT_1 = 0x0c, INTERCEPT_2 = 0x10, ASID = 0x58, INT_CTL = 0x60,
       EXIT_CODE = 0x70, ES = 0x400, CS = 0x410, SS = 0x420, DS = 0x430,
       GDTR = 0x460, IDTR = 0x480, EFER = 0x4d0, CR4 = 0x548, CR3 = 0x550,
       CR0 = 0x558, DR7 = 0x560, DR6 = 0x568, RFLAGS = 0x570, RIP = 0x578,
       RSP = 0x5d8, RAX = 0x5f8 };
enum { ON_INTR = 1, ON_NMI = 2, ON_CPUID = 1 << 18, ON_VMRUN = 1, ON_VMMCALL = 2,
       MASKS_INTR = 1 << 24 };

static u8 block[PAGE] ALIGNED(PAGE), host_save[PAGE] ALIGNED(PAGE);
static u32 inner_stack[256];
volatile u32 inner_sum;

extern u8 inner[];
__asm__("inner:\n\t"
        "imul $1103515245, %ebx, %ebx\n\t"
        "add $12345, %ebx\n\t"
        "push %ebx\n\t"
        "xor %ebx, inner_sum\n\t"
        "pop %edx\n\t"
        "test $0xff, %cl\n\t"
        "jnz 1f\n\t"
        "xor %eax, %eax\n\t"
        "cpuid\n\t"                             /* ends its turn */
        "1: dec %ecx\n\t"
        "jnz inner\n\t"
        "vmmcall\n\t"
        "jmp inner\n");

static volatile u32 *at(u32 offset)
{
    return (volatile u32 *)(block + offset);
}

static void segment(u32 offset, u32 selector, u32 attributes, u32 base, u32 limit)
{
    *at(offset) = selector | attributes << 16;
    *at(offset + 4) = limit;
    *at(offset + 8) = base;
}

static void table(u32 offset, const u8 *pointer)
{
    segment(offset, 0, 0, *(u32 *)(pointer + 2), *(unsigned short *)pointer);
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
    *at(INTERCEPT_1) = ON_INTR | ON_NMI | ON_CPUID;
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

static void enter(u32 *ebx, u32 *ecx)
{
    __asm__ volatile("clgi\n\t"
                     "vmrun\n\t"
                     "stgi\n\t"
                     "nop\n\t"
                     : "+b"(*ebx), "+c"(*ecx)
                     : "a"(block) : "edx", "memory", "cc");
}

void main(void)
{
    u32 rounds = option("rounds", 300), loops = option("loops", 2000);
    u32 every = option("every", 0), ebx = 1, ecx = loops, turns = 0, code;

    __asm__ volatile("wrmsr" :: "c"(MSR_EFER), "a"((u32)rdmsr(MSR_EFER) | EFER_SVME),
                     "d"(0));
    __asm__ volatile("wrmsr" :: "c"(MSR_HSAVE), "a"(host_save), "d"(0));
    make();
    rt_timer(1000);
    for (u32 r = 0; r < rounds; turns++) {
        enter(&ebx, &ecx);
        code = *at(EXIT_CODE);
        fold(code);
        fold(*at(RIP));
        fold(ebx + ecx);
        if (code == EXIT_CPUID) {
            *at(RIP) += 2;
            *at(RAX) = r;
        } else if (code == EXIT_VMMCALL) {
            *at(RIP) += 3;
            ecx = loops;
            r++;
            if (every && r % every == 0) {
                say("sum", (u32)rt_sum);
            }
        } else if (code != EXIT_INTR && code != EXIT_NMI) {
            rt_fail("the inner guest ended", code);
        }
    }
    fold(inner_sum);
    say("turns", turns);
}
