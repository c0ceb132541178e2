/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "tpr64": the task priority, which is one value behind CR8 and behind a register of
 * the local APIC. It is written through each and read through the other one, and a reset
 * clears it. It is no model-specific register here. Runs without -no-reboot. Option:
 * rounds=N (40).
 */
#include "rt64.h"

const char guest_name[] = "tpr64";

enum { APIC = 0xfee00000, TPR = 0x80, CMOS_INDEX = 0x70, CMOS_DATA = 0x71, MARK_AT = 0x6e,
       MARK = 0xa7, LARGE_UNCACHED = 0x9b };

static u64 apic_map[512] __attribute__((aligned(4096)));
static u64 sum = 1;

static void fold(u64 v)
{
    sum = (sum ^ v) * 0x100000001b3ul;
}

static u64 read_cr8(void)
{
    u64 v;

    __asm__ volatile("mov %%cr8, %0" : "=r"(v));
    return v;
}

static void write_cr8(u64 v)
{
    __asm__ volatile("mov %0, %%cr8" :: "r"(v) : "memory");
}

static volatile u32 *tpr(void)
{
    return (volatile u32 *)(u64)(APIC + TPR);
}

static void map_apic(void)
{
    u64 cr3, *map3;

    __asm__ volatile("mov %%cr3, %0" : "=r"(cr3));
    map3 = (u64 *)(*(u64 *)cr3 & ~0xffful);
    apic_map[APIC >> 21 & 511] = APIC | LARGE_UNCACHED;
    map3[3] = (u64)apic_map | 3;
    __asm__ volatile("mov %0, %%cr3" :: "r"(cr3) : "memory");
}

/* Steps over RDMSR and WRMSR. */
extern const u8 on_fault[];
static volatile u32 faults;
__asm__("on_fault:\n\t"
        "addq $2, 8(%rsp)\n\t"
        "incl faults\n\t"
        "addq $8, %rsp\n\t"
        "iretq\n");

static void try_x2apic(void)
{
    static struct {
        unsigned short low, selector, type, middle;
        u32 high, zero;
    } idt[14];
    struct {
        unsigned short limit;
        void *base;
    } __attribute__((packed)) p = { sizeof(idt) - 1, idt };
    u64 stub = (u64)on_fault;

    idt[13].low = (unsigned short)stub;
    idt[13].middle = (unsigned short)(stub >> 16);
    idt[13].selector = 8;
    idt[13].type = 0x8e00;
    __asm__ volatile("lidt %0" :: "m"(p));
    __asm__ volatile("rdmsr" :: "c"(0x808) : "eax", "edx");
    __asm__ volatile("wrmsr" :: "c"(0x808), "a"(0x20), "d"(0));
}

static u32 was_here(void)
{
    u8 v;

    outb(CMOS_INDEX, MARK_AT);
    __asm__ volatile("inb %w1, %b0" : "=a"(v) : "Nd"(CMOS_DATA));
    outb(CMOS_INDEX, MARK_AT);
    outb(CMOS_DATA, MARK);
    return v == MARK;
}

void start64(const u32 *multiboot)
{
    u64 rounds, after_reset = read_cr8();

    take_options(multiboot);
    rounds = option("rounds", 40);
    map_apic();
    try_x2apic();
    for (u64 r = 0; r < rounds; r++) {
        *tpr() = (u32)(r & 15) << 4 | (r & 3);
        fold(read_cr8());
        write_cr8(r * 7 & 15);
        fold(*tpr());
        fold(read_cr8());
        *tpr() = 0xf0;
        write_cr8(3);
    }
    put_str("tpr64: ");
    if (!was_here()) {
        put_str("reset\n");
        write_cr8(5);
        outb(0xcf9, 2);
        outb(0xcf9, 6);
        for (;;) {
            __asm__ volatile("cli; hlt");
        }
    }
    put_str("end tpr=");
    put_hex(after_reset);
    put_str(" faults=");
    put_hex(faults);
    put_str(" sum=");
    put_hex(sum);
    power_off();
}
