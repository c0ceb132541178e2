/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "umip": user code may not read the system's registers (CR4.UMIP), and the masks of
 * the MTRRs are read.
 *
 * A recording that begins in it must know that, and have the masks as they are. Needs a CPU
 * with UMIP. Options: rounds=N (300), nmis=N (0): go on until so many NMIs came.
 */
#include "ring3.h"

const char guest_name[] = "umip";

enum { PROTECTION = 13, CALL = 4, CR4_UMIP = 1 << 11,
       REFUSED = 0x5eed, MTRR_MASK_0 = 0x201, MTRRS = 8 };

static u32 rounds, wanted, faults;
u32 umip_esp;
extern u8 umip_behind[], umip_back[];

static void on_fault(struct rt_frame *f)
{
    fold(f->err);
    fold64(rdmsr(MTRR_MASK_0 + 2 * (faults % MTRRS)));
    f->eax = REFUSED;
    f->eip = (u32)umip_behind;
    if (++faults >= rounds && rt_nmis >= wanted) {
        f->eip = (u32)umip_back;
        f->cs = KERNEL_CODE;
    }
}

static void on_call(struct rt_frame *f)
{
    rt_fail("user code reads CR0", f->eax);
}

static void user_code(void)
{
    __asm__ volatile("1: smsw %%eax\n\t"
                     ".globl umip_behind\n" "umip_behind:\n\t"
                     "cmp %0, %%eax\n\t"
                     "je 1b\n\t"
                     "int %1" :: "i"(REFUSED), "i"(CALL) : "eax", "cc");
}

static void run_user_code(void)
{
    __asm__ volatile(
        "push %%ebp\n\t"
        "mov %%esp, umip_esp\n\t"
        "mov %0, %%eax\n\t"
        "mov %%eax, %%ds\n\t"
        "mov %%eax, %%es\n\t"
        "push %0\n\t"
        "push %1\n\t"
        "pushf\n\t"
        "push %2\n\t"
        "push %3\n\t"
        "iret\n\t"
        ".globl umip_back\n"
        "umip_back:\n\t"
        "mov umip_esp, %%esp\n\t"
        "pop %%ebp\n\t"
        :: "i"(USER_DATA | RING3), "i"(user_stack + sizeof user_stack),
        "i"(USER_CODE | RING3), "i"(user_code)
        : "eax", "ebx", "ecx", "edx", "esi", "edi", "cc", "memory");
}

void main(void)
{
    u32 cr4;

    rounds = option("rounds", 300);
    wanted = option("nmis", 0);
    load_tables();
    rt_on(PROTECTION, on_fault, GATE_INTR);
    rt_on(CALL, on_call, GATE_INTR | RING3 << 5);
    __asm__ volatile("mov %%cr4, %0" : "=r"(cr4));
    __asm__ volatile("mov %0, %%cr4" :: "r"(cr4 | CR4_UMIP) : "memory");
    put_str("ready\n");
    rt_timer(500);
    run_user_code();
    rt_timer_off();
    fold(faults);
}
