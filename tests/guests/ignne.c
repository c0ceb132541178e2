/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "ignne": x87 exceptions the old way, through IRQ 13 and port F0h.
 *
 * With CR0.NE clear an unmasked exception raises IRQ 13, and a write to port
 * F0h lets the CPU go on (IGNNE#): a device changes CPU state by a signal
 * that is neither memory nor interrupt. The guest ends while the signal is
 * set, so that the last digest shows it. Option: rounds=N (400).
 */
#include "rt.h"

const char guest_name[] = "ignne";

enum { CR0_MP = 2, CR0_EM = 4, CR0_TS = 8, CR0_NE = 0x20 };
enum { VECTOR_FERR = 45, PORT_IGNNE = 0xf0 };

static volatile u32 errors, keep_set;

static void on_ferr(struct rt_frame *f)
{
    struct {
        u32 control, status, tag, ip, cs, dp, ds;
    } env;

    errors++;
    rt_fold_frame(f);
    outb(PORT_IGNNE, 0);
    __asm__ volatile("fnstenv %0" : "=m"(env));
    fold(env.status);
    if (!keep_set) {
        /* Clears the exception, and IGNNE# with it. */
        env.status &= 0x7f00;
        __asm__ volatile("fldenv %0" :: "m"(env));
    } else {
        __asm__ volatile("fldcw %0" :: "m"(env));
    }
}

/* Divides by zero; the exception is signalled at the instruction after. */
static void NOINLINE divide_by_zero(u32 r)
{
    u32 one = r + 1, result;

    __asm__ volatile(
        "fildl %1\n\t"
        "fldz\n\t"
        "fdivrp\n\t"
        "fwait\n\t"
        "nop; nop; nop\n\t"
        "fstps %0\n\t" : "=m"(result) : "m"(one));
    fold(result);
}

void main(void)
{
    u32 rounds = option("rounds", 400);
    u16 control = 0x037b;       /* all masked but divide by zero */

    write_cr0((read_cr0() & ~(u32)(CR0_EM | CR0_TS | CR0_NE)) | CR0_MP);
    rt_on(VECTOR_FERR, on_ferr, GATE_INTR);
    rt_unmask(13);
    __asm__ volatile("fninit; fldcw %0" :: "m"(control));
    rt_timer(2000);
    for (u32 r = 0; r < rounds; r++) {
        u32 before = errors;

        divide_by_zero(r);
        if (errors == before) {
            rt_fail("no IRQ 13", r);
        }
    }
    keep_set = 1;
    divide_by_zero(rounds);
    divide_by_zero(rounds + 1);
    fold(errors);
    say("errors", errors);
}
