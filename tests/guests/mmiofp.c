/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "mmiofp": user code loads an x87 value from device memory.
 *
 * A CPU does that, and KVM cannot emulate it. Option: nmis=N (0): wait for so many NMIs.
 */
#include "rt.h"

const char guest_name[] = "mmiofp";

enum { IOAPIC = 0xfec00000, UNDEFINED = 6, CALL = 4, USER_CODE = 0x18,
       USER_DATA = 0x20, TASK = 0x28, RING3 = 3, KERNEL_CODE = 8,
       KERNEL_DATA = 0x10 };

static u32 tss[26];
u32 kernel_esp;
extern u8 back[];
static u8 kernel_stack[4096] ALIGNED(16), user_stack[4096] ALIGNED(16);
static u64 gdt[6] = { 0, 0x00cf9a000000ffff, 0x00cf92000000ffff, 0x00cffa000000ffff,
                      0x00cff2000000ffff };

static void on_undefined(struct rt_frame *f)
{
    say("undefined", f->eip);
    put_char('\n');
    f->eip += 2;                /* flds (%eax) */
}

/* From user code, with the float in %ebx: back into main(). */
static void on_call(struct rt_frame *f)
{
    fold(f->ebx);
    f->eip = (u32)back;
    f->cs = KERNEL_CODE;
}

static void load_tables(void)
{
    struct { u16 limit; u32 base; } __attribute__((packed)) pointer = { sizeof gdt - 1, (u32)gdt };
    u64 base = (u32)tss;

    tss[1] = (u32)(kernel_stack + sizeof kernel_stack);
    tss[2] = KERNEL_DATA;
    gdt[5] = (sizeof tss - 1) | (base & 0xffffff) << 16 | 0x89ull << 40 |
        (base >> 24) << 56;
    __asm__ volatile("lgdt %0\n\t" "ltr %w1" :: "m"(pointer), "r"(TASK) : "memory");
}

static void user_code(void)
{
    __asm__ volatile(
        "flds (%0)\n\t"
        "sub $4, %%esp\n\t"
        "fstps (%%esp)\n\t"
        "pop %%ebx\n\t"
        "int %1" :: "a"(IOAPIC), "i"(CALL) : "ebx");
}

void main(void)
{
    u32 wanted = option("nmis", 0);

    put_str("ready\n");
    load_tables();
    rt_on(UNDEFINED, on_undefined, GATE_INTR);
    rt_on(CALL, on_call, GATE_INTR | RING3 << 5);
    while (rt_nmis < wanted) {
        inb(0x80);
    }
    __asm__ volatile("fninit");
    __asm__ volatile(
        "push %%ebp\n\t"
        "mov %%esp, kernel_esp\n\t"
        "mov %0, %%eax\n\t"
        "mov %%eax, %%ds\n\t"
        "mov %%eax, %%es\n\t"
        "push %0\n\t"
        "push %1\n\t"
        "pushf\n\t"
        "push %2\n\t"
        "push %3\n\t"
        "iret\n\t"
        ".globl back\n"
        "back:\n\t"
        "mov kernel_esp, %%esp\n\t"
        "pop %%ebp\n\t"
        :: "i"(USER_DATA | RING3), "i"(user_stack + sizeof user_stack),
        "i"(USER_CODE | RING3), "i"(user_code)
        : "eax", "ebx", "ecx", "edx", "esi", "edi", "cc", "memory");
}
