/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "enter64": SYSENTER and SYSEXIT in all kinds of code that long mode has, with
 * prefixes, the registers that they use, and a value that CR8 does not take. Which of it
 * faults depends on the CPU's vendor. Prints a letter for each try: E, X: it was executed;
 * U, G: #UD, #GP; -: it did nothing. Options: rounds=N (3); break=1: with a data breakpoint
 * that is never hit.
 */
#include "rt64.h"

const char guest_name[] = "enter64";

enum { KERNEL = 0x08, KERNEL_DATA = 0x10, USER32 = 0x1b, USER_DATA = 0x23, USER = 0x2b,
       KERNEL32 = 0x38, TASK = 0x40, RING3 = 3, GATE = 0x8e00, GATE_OF_USER = 0xee00,
       UNDEFINED = 6, PROTECTION = 13, DONE = 0x80, WRITABLE_OF_USER = 7,
       SYSENTER_CS = 0x174, SYSENTER_ESP = 0x175, SYSENTER_EIP = 0x176 };

static u64 gdt[10] __attribute__((aligned(16))) = {
    0, 0x00af9a000000ffff, 0x00cf92000000ffff, 0x00cffa000000ffff, 0x00cff2000000ffff,
    0x00affa000000ffff, 0x00cff2000000ffff, 0x00cf9a000000ffff,
};
static struct {
    unsigned short low, selector, type, middle;
    u32 high, zero;
} idt[256];
static u32 tss[26];
static u8 trap_stack[4096] __attribute__((aligned(16)));
u8 user_stack[4096] __attribute__((aligned(16)));
static u64 sum = 1;

static void fold(u64 v)
{
    sum = (sum ^ v) * 0x100000001b3ul;
}

/* ---- one try ---- */

/* All ways lead to come_back, in kernel code with any stack, with AL the letter. */
extern const u8 on_undefined[], on_protection[], on_done[], on_entry[];
void go(u64 code, u64 selector, u64 stack_selector);
u64 kernel_rsp, letter, frame[6];
__asm__(
    ".text\n"
    "go:\n\t"
    "push %rbx\n\t" "push %rbp\n\t" "push %r12\n\t" "push %r13\n\t" "push %r14\n\t"
    "push %r15\n\t"
    "mov %rsp, kernel_rsp\n\t"
    "push %rdx\n\t"
    "push $user_stack + 4096\n\t"
    "push $2\n\t"
    "push %rsi\n\t"
    "push %rdi\n\t"
    "mov $user_stack + 2048, %ecx\n\t"  /* SYSEXIT's */
    "mov $exited, %edx\n\t"
    "mov $16, %eax\n\t"
    "iretq\n"
    "on_undefined:\n\t"
    "mov $'U', %al\n\t" "jmp fault\n"
    "on_protection:\n\t"
    "add $8, %rsp\n\t"
    "mov $'G', %al\n"
    "fault:\n\t"
    "pop frame\n\t" "pop frame + 8\n\t" "pop frame + 16\n\t"
    "jmp come_back\n"
    "on_done:\n\t"
    "pop frame\n\t" "pop frame + 8\n\t" "pop frame + 16\n\t"
    "jmp come_back\n"
    "on_entry:\n\t"
    "mov $'E', %al\n"
    "come_back:\n\t"
    "mov %al, letter\n\t"
    "mov kernel_rsp, %rsp\n\t"
    "mov $0x10, %eax\n\t"
    "mov %eax, %ss\n\t" "mov %eax, %ds\n\t" "mov %eax, %es\n\t"
    "pop %r15\n\t" "pop %r14\n\t" "pop %r13\n\t" "pop %r12\n\t" "pop %rbp\n\t"
    "pop %rbx\n\t"
    "ret\n"
    "exited:\n\t"
    "mov $'X', %al\n\t" "int $0x80\n");

/* Each is followed by what all kinds of code have in common. */
#define END "\n\t" "mov $'-', %al\n\t" "int $0x80\n"
extern const u8 enter[], enter_data[], enter_wide[], leave[], leave_rep[], write_cr8[];
__asm__(
    ".text\n"
    "enter:\n\t" ".byte 0x0f, 0x34" END
    "enter_data:\n\t" ".byte 0x66, 0x67, 0x2e, 0xf3, 0x0f, 0x34" END
    "enter_wide:\n\t" ".byte 0x48, 0x0f, 0x34" END
    "leave:\n\t" ".byte 0x0f, 0x35" END
    "leave_rep:\n\t" ".byte 0xf3, 0x66, 0x0f, 0x35" END
    "write_cr8:\n\t" "mov %rax, %cr8" END);

/* AL is 16 where nothing else came to pass: no letter. */
static void try(const u8 *code, u64 selector, u64 stack_selector)
{
    char text[2] = { 0, 0 };

    frame[0] = frame[1] = frame[2] = 0;
    go((u64)code, selector, stack_selector);
    fold(letter);
    fold(frame[0] ? frame[0] - (u64)code : 1);
    fold(frame[1]);
    fold(frame[2]);
    text[0] = (char)letter;
    put_str(text);
}

static void try_all(u64 selector, u64 stack_selector, u64 is_wide)
{
    try(enter, selector, stack_selector);
    try(enter_data, selector, stack_selector);
    if (is_wide) {
        try(enter_wide, selector, stack_selector);
    }
    try(leave, selector, stack_selector);
    try(leave_rep, selector, stack_selector);
    put_str(" ");
}

/* ---- registers ---- */

static u64 rdmsr(u32 msr)
{
    u32 low, high;

    __asm__ volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(msr));
    return low | (u64)high << 32;
}

static void wrmsr(u32 msr, u64 v)
{
    __asm__ volatile("wrmsr" :: "c"(msr), "a"((u32)v), "d"((u32)(v >> 32)));
}

static void try_msrs(void)
{
    wrmsr(SYSENTER_ESP, 0xffff888012345678);
    wrmsr(SYSENTER_EIP, 0xffffffff87654321);
    put_str("esp=");
    put_hex(rdmsr(SYSENTER_ESP));
    put_str(" eip=");
    put_hex(rdmsr(SYSENTER_EIP));
    put_str(" ");
    fold(rdmsr(SYSENTER_ESP));
    fold(rdmsr(SYSENTER_EIP));
}

/* ---- set-up ---- */

static void set_gate(unsigned vector, const u8 *to, unsigned short type)
{
    idt[vector].low = (unsigned short)(u64)to;
    idt[vector].middle = (unsigned short)((u64)to >> 16);
    idt[vector].selector = KERNEL;
    idt[vector].type = type;
}

/* All of the map is user code's, too. */
static void open_map(void)
{
    u64 cr3, *map;

    __asm__ volatile("mov %%cr3, %0" : "=r"(cr3));
    map = (u64 *)cr3;
    map[0] |= WRITABLE_OF_USER;
    map = (u64 *)(map[0] & ~0xffful);
    map[0] |= WRITABLE_OF_USER;
    map = (u64 *)(map[0] & ~0xffful);
    for (int i = 0; i < 512; i++) {
        map[i] |= WRITABLE_OF_USER;
    }
    __asm__ volatile("mov %0, %%cr3" :: "r"(cr3) : "memory");
}

static void set_up(void)
{
    struct {
        unsigned short limit;
        void *base;
    } __attribute__((packed)) p = { sizeof(gdt) - 1, gdt }, q = { sizeof(idt) - 1, idt };
    u64 at = (u64)tss, stack = (u64)(trap_stack + sizeof(trap_stack));

    tss[1] = (u32)stack;
    gdt[8] = (sizeof(tss) - 1) | (at & 0xffffff) << 16 | 0x89ul << 40 | (at >> 24) << 56;
    set_gate(UNDEFINED, on_undefined, GATE);
    set_gate(PROTECTION, on_protection, GATE);
    set_gate(DONE, on_done, GATE_OF_USER);
    __asm__ volatile("lgdt %0\n\t" "lidt %1\n\t" "ltr %w2"
                     :: "m"(p), "m"(q), "r"(TASK) : "memory");
    open_map();
    wrmsr(SYSENTER_CS, KERNEL);
}

void start64(const u32 *multiboot)
{
    u64 rounds;

    take_options(multiboot);
    rounds = option("rounds", 3);
    set_up();
    if (option("break", 0)) {
        __asm__ volatile("mov %0, %%dr0\n\t" "mov %1, %%dr7"
                         :: "r"(0x1000000ul), "r"(0x10001ul));
    }
    for (u64 r = 0; r < rounds; r++) {
        put_str("enter64: ");
        try_msrs();
        wrmsr(SYSENTER_ESP, (u64)(trap_stack + sizeof(trap_stack)));
        wrmsr(SYSENTER_EIP, (u64)on_entry);
        try_all(KERNEL, KERNEL_DATA, 1);
        try_all(USER, USER_DATA, 1);
        try_all(KERNEL32, KERNEL_DATA, 0);
        try_all(USER32, USER_DATA, 0);
        try(write_cr8, KERNEL, KERNEL_DATA);
        put_str("\n");
    }
    put_str("enter64: end sum=");
    put_hex(sum);
    power_off();
}
