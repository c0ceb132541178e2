/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "asked": what KVM answers or refuses by itself, without an exit to QEMU:
 * hypercalls of both vendors, from the kernel and from user code; values that
 * model-specific and control registers do not take; and performance counters. Options:
 * do=MASK (31; 32, too: CR0, which TCG by itself would let the guest break), first=N (0),
 * last=N (1000): of the values.
 */
#include "ring3.h"

const char guest_name[] = "asked";

enum { UNDEFINED = 6, PROTECTION = 13, CALL = 4, FAULTED = 0xfa017,
       PAT = 0x277, EFER = 0xc0000080, LSTAR = 0xc0000082, TSC_AUX = 0xc0000103,
       FS_BASE = 0xc0000100, MTRR_CAP = 0xfe, MTRR_BASE_0 = 0x200, MTRR_MASK_0 = 0x201,
       MTRR_FIXED = 0x250, MTRR_TYPE = 0x2ff, SYSENTER_CS = 0x174, LIMITS = 0x2000 };

#define CR0_PE  1u
#define CR0_NW  (1u << 29)
#define CR0_CD  (1u << 30)
#define CR0_PG  (1u << 31)

static u32 faults;
u32 asked_esp;
extern u8 asked_back[];

/* All that fault here have EDI say where they go on. */
static void on_fault(struct rt_frame *f)
{
    faults++;
    fold(f->vec);
    fold(f->err);
    f->eax = FAULTED;
    f->eip = f->edi;
}

static void on_call(struct rt_frame *f)
{
    f->eip = (u32)asked_back;
    f->cs = KERNEL_CODE;
}

static u32 NOINLINE vmmcall(u32 nr, u32 a1)
{
    __asm__ volatile("mov $1f, %%edi\n\t" ".byte 0x0f, 0x01, 0xd9\n" "1:"
                     : "+a"(nr) : "b"(0), "c"(a1), "d"(0) : "esi", "edi", "memory");
    return nr;
}

static u32 NOINLINE vmcall(u32 nr, u32 a1)
{
    __asm__ volatile("mov $1f, %%edi\n\t" ".byte 0x0f, 0x01, 0xc1\n" "1:"
                     : "+a"(nr) : "b"(0), "c"(a1), "d"(0) : "esi", "edi", "memory");
    return nr;
}

static void NOINLINE wr(u32 msr, u32 low, u32 high)
{
    __asm__ volatile("mov $1f, %%edi\n\t" "wrmsr\n" "1:"
                     : "+a"(low) : "c"(msr), "d"(high) : "edi", "memory");
    fold(low == FAULTED);
}

static void NOINLINE rd(u32 msr)
{
    u32 low, high;

    __asm__ volatile("xor %%edx, %%edx\n\t" "mov $1f, %%edi\n\t" "rdmsr\n" "1:"
                     : "=a"(low), "=&d"(high) : "c"(msr) : "edi", "memory");
    fold(low);
    fold(high);
}

static void NOINLINE count(u32 index)
{
    u32 low;

    __asm__ volatile("mov $1f, %%edi\n\t" "rdpmc\n" "1:"
                     : "=a"(low) : "c"(index) : "edx", "edi", "memory");
    fold(low == FAULTED);
}

static const struct {
    u32 msr, low, high;
} values[] = {
    { PAT, 0x00070401, 0x00070406 }, { PAT, 0x00070402, 0x00070406 },
    { PAT, 0x00070403, 0x00070406 }, { PAT, 0x00070408, 0x00070406 },
    { MTRR_BASE_0, 0x40000006, 0 }, { MTRR_BASE_0, 0x40000002, 0 },
    { MTRR_BASE_0, 0x40000100, 0 }, { MTRR_BASE_0, 0x40000000, 0xff000000 },
    { MTRR_MASK_0, 0, 0 }, { MTRR_MASK_0, 0x40000400, 0 },
    { MTRR_FIXED, 0x06060604, 0x06060606 }, { MTRR_FIXED, 0x06060603, 0x06060606 },
    { MTRR_TYPE, 0x06, 0 }, { MTRR_TYPE, 0x02, 0 }, { MTRR_TYPE, 0x106, 0 },
    { MTRR_CAP, 0x508, 0 }, { TSC_AUX, 5, 0 }, { SYSENTER_CS, 8, 0 },
    { LSTAR, 0x1234, 0xffff8000 }, { LSTAR, 0, 0x40000000 },
    { FS_BASE, 0, 0x12345678 },
};

/* Each value, by number: is it taken, and what is there then? */
static void try_msrs(u32 first, u32 last)
{
    u64 efer = rdmsr(EFER);

    for (u32 i = first; i <= last && i < sizeof values / sizeof *values; i++) {
        u64 was = 0;

        if (values[i].msr != TSC_AUX) {
            was = rdmsr(values[i].msr);
        }
        wr(values[i].msr, values[i].low, values[i].high);
        rd(values[i].msr);
        wr(values[i].msr, (u32)was, (u32)(was >> 32));
    }
    for (u32 bit = 1; bit < 16 && last >= 100 + bit; bit++) {
        if (1u << bit != LIMITS) {      /* KVM takes it, not every CPU does */
            wr(EFER, (u32)efer ^ 1u << bit, 0);
            rd(EFER);
            wr(EFER, (u32)efer, 0);
        }
    }
}

static void NOINLINE wr_cr0(u32 value)
{
    __asm__ volatile("mov $1f, %%edi\n\t" "mov %0, %%cr0\n" "1:"
                     : "+a"(value) :: "edi", "memory");
    fold(value == FAULTED);
}

static void NOINLINE wr_cr4(u32 value)
{
    __asm__ volatile("mov $1f, %%edi\n\t" "mov %0, %%cr4\n" "1:"
                     : "+a"(value) :: "edi", "memory");
    fold(value == FAULTED);
}

static u32 rd_cr4(void)
{
    u32 value;

    __asm__ volatile("mov %%cr4, %0" : "=r"(value));
    return value;
}

static void try_cr4(void)
{
    u32 cr4 = rd_cr4();

    for (u32 bit = 0; bit < 32; bit++) {
        wr_cr4(cr4 ^ 1u << bit);
        fold(rd_cr4());
        wr_cr4(cr4);
    }
}

/* Paging without protection, write-through without the caches off. */
static void try_cr0(void)
{
    u32 cr0;

    __asm__ volatile("mov %%cr0, %0" : "=r"(cr0));
    wr_cr0((cr0 & ~CR0_PE) | CR0_PG);
    wr_cr0((cr0 & ~CR0_CD) | CR0_NW);
    wr_cr0(cr0 | CR0_CD | CR0_NW);
    wr_cr0(cr0);
}

static void try_calls(void)
{
    for (u32 nr = 0; nr < 16; nr++) {
        fold(vmmcall(nr, 7));
        fold(vmcall(nr, 7));
    }
}

static void user_code(void)
{
    try_calls();
    count(0);
    __asm__ volatile("int %0" :: "i"(CALL));
}

static void NOINLINE run_user_code(void)
{
    __asm__ volatile(
        "push %%ebp\n\t"
        "mov %%esp, asked_esp\n\t"
        "mov %0, %%eax\n\t"
        "mov %%eax, %%ds\n\t"
        "mov %%eax, %%es\n\t"
        "push %0\n\t"
        "push %1\n\t"
        "pushf\n\t"
        "push %2\n\t"
        "push %3\n\t"
        "iret\n\t"
        ".globl asked_back\n"
        "asked_back:\n\t"
        "mov asked_esp, %%esp\n\t"
        "mov %4, %%eax\n\t"
        "mov %%eax, %%ds\n\t"
        "mov %%eax, %%es\n\t"
        "pop %%ebp\n\t"
        :: "i"(USER_DATA | RING3), "i"(user_stack + sizeof user_stack),
        "i"(USER_CODE | RING3), "i"(user_code), "i"(KERNEL_DATA)
        : "eax", "ebx", "ecx", "edx", "esi", "edi", "cc", "memory");
}

void main(void)
{
    u32 todo = option("do", 31);

    load_tables();
    rt_on(UNDEFINED, on_fault, GATE_INTR);
    rt_on(PROTECTION, on_fault, GATE_INTR);
    rt_on(CALL, on_call, GATE_INTR | RING3 << 5);
    if (todo & 1) {
        try_calls();
    }
    if (todo & 2) {
        try_msrs(option("first", 0), option("last", 1000));
    }
    if (todo & 4) {
        count(0xc0010000);      /* some of KVM's versions read 0 from counter 0 */
    }
    if (todo & 8) {
        run_user_code();
    }
    if (todo & 16) {
        try_cr4();
    }
    if (todo & 32) {
        try_cr0();
    }
    say("faults", faults);
    fold(faults);
}
