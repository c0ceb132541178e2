/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "fp": x87 and SSE state under the timer.
 *
 * Interrupts must find and leave the floating-point state as it is:
 * exception flags, rounding, stack top, pointers, MXCSR. The whole FXSAVE
 * image is folded again and again. Options: rounds=N (6000); loops=N (40) on the
 * x87 stack in each.
 */
#include "rt.h"

const char guest_name[] = "fp";

enum { CR0_MP = 2, CR0_EM = 4, CR0_TS = 8, CR0_NE = 0x20,
       CR4_OSFXSR = 0x200, CR4_OSXMMEXCPT = 0x400 };

static u8 image[512] ALIGNED(16);
static u32 loops;

static void fold_image(void)
{
    __asm__ volatile("fxsave %0" : "=m"(image));
    for (u32 i = 0; i < sizeof image; i += 4) {
        fold(*(u32 *)(image + i));
    }
}

/* A series on the x87 stack, with a stack three deep. */
static void NOINLINE x87_part(u32 r)
{
    u32 n = loops + r % 7;
    u16 control = (u16)(0x007f | (r & 3) << 10 | (r & 4 ? 0x300 : 0x200));

    __asm__ volatile(
        "fninit\n\t"
        "fldcw %1\n\t"
        "fldpi\n\t"
        "fldl2e\n\t"
        "fld1\n\t"
        "1: fadd %%st(1), %%st\n\t"
        "fdivr %%st(2), %%st\n\t"
        "fsqrt\n\t"
        "fxch %%st(2)\n\t"
        "fmul %%st(1), %%st\n\t"
        "fxch %%st(2)\n\t"
        "dec %0\n\t"
        "jnz 1b\n\t"
        : "+r"(n) : "m"(control) : "cc", "memory");
}

static void NOINLINE sse_part(u32 r)
{
    u32 n = 40, mxcsr = 0x1f80 | (r & 3) << 13, seen;
    static const u32 start[4] = { 0x3f8ccccd, 0x00000003, 0x7f7fffff,
                                  0x40490fdb };

    __asm__ volatile(
        "ldmxcsr %3\n\t"
        "movups %4, %%xmm0\n\t"
        "movaps %%xmm0, %%xmm1\n\t"
        "1: mulps %%xmm1, %%xmm0\n\t"
        "addps %%xmm1, %%xmm0\n\t"
        "divps %%xmm0, %%xmm1\n\t"
        "sqrtps %%xmm1, %%xmm2\n\t"
        "cvtps2pd %%xmm2, %%xmm3\n\t"
        "cvttps2dq %%xmm0, %%xmm4\n\t"
        "paddd %%xmm4, %%xmm5\n\t"
        "dec %0\n\t"
        "jnz 1b\n\t"
        "stmxcsr %1\n\t"
        "ucomiss %%xmm1, %%xmm0\n\t"
        "pushf\n\t"
        "pop %2\n\t"
        : "+r"(n), "=m"(seen), "=r"(r) : "m"(mxcsr), "m"(start)
        : "cc", "memory");
    fold(seen);
    fold(r & RT_EFLAGS_SEEN);
}

void main(void)
{
    u32 rounds = option("rounds", 6000), cr4;

    loops = option("loops", 40);
    write_cr0((read_cr0() & ~(u32)(CR0_EM | CR0_TS)) | CR0_MP | CR0_NE);
    __asm__ volatile("mov %%cr4, %0" : "=r"(cr4));
    cr4 |= CR4_OSFXSR | CR4_OSXMMEXCPT;
    __asm__ volatile("mov %0, %%cr4" :: "r"(cr4));
    __asm__ volatile("pxor %xmm5, %xmm5");
    rt_timer(4000);
    for (u32 r = 0; r < rounds; r++) {
        x87_part(r);
        sse_part(r);
        fold_image();
    }
}
