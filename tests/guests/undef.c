/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "undef": results and flags that the manuals leave undefined.
 *
 * Shifts and rotates by counts of zero, one, many and the operand size,
 * double shifts, multiplications, divisions, bit scans of zero, decimal
 * adjustments, logic's A flag: each after instructions that set the flags
 * in different ways, and read back by PUSHF, LAHF, SETcc and CMOVcc. The
 * values may be any, but the same in every shape of a block. Option:
 * rounds=N (60).
 */
#include "rt.h"

const char guest_name[] = "undef";

#define RUN(set, insn, look) do { \
        u32 a_ = a, b_ = b, c_ = c, d_ = 0x1234, f_ = 0; \
        __asm__ volatile(set "\n\t" insn "\n\t" look \
                         : "+a"(a_), "+b"(b_), "+c"(c_), "+d"(d_), \
                           "+S"(f_) :: "cc", "memory"); \
        fold(a_); \
        fold(b_); \
        fold(d_); \
        fold(f_ & RT_EFLAGS_SEEN); \
    } while (0)

#define PUSHF "pushf\n\tpop %%esi"
#define LAHF "mov $0, %%eax\n\tlahf\n\tmov %%eax, %%esi"
#define CONDITIONS "seto %%dl\n\tsets %%dh\n\tcmovp %%ebx, %%esi\n\t" \
        "cmovle %%ecx, %%esi\n\tpushf\n\tpop %%eax\n\tand $0x8d5, %%eax"
#define BRANCH "jmp 1f\n1: jo 2f\n\tjnp 2f\n\tinc %%edx\n2: " PUSHF

#define LOOKS(set, insn) do { \
        RUN(set, insn, PUSHF); \
        RUN(set, insn, LAHF); \
        RUN(set, insn, CONDITIONS); \
        RUN(set, insn, BRANCH); \
    } while (0)

#define SETTERS(insn) do { \
        LOOKS("add %%ebx, %%eax", insn); \
        LOOKS("subw %%bx, %%ax", insn); \
        LOOKS("incb %%al", insn); \
        LOOKS("and %%ebx, %%eax", insn); \
        LOOKS("stc\n\tsbb %%ebx, %%eax", insn); \
        LOOKS("shl $1, %%ebx", insn); \
        LOOKS("imul %%ebx, %%ebx", insn); \
        LOOKS("sahf", insn); \
    } while (0)

static void NOINLINE shifts(u32 a, u32 b, u32 c)
{
    SETTERS("shl %%cl, %%eax");
    SETTERS("shrw %%cl, %%ax");
    SETTERS("sarb %%cl, %%al");
    SETTERS("rol %%cl, %%eax");
    SETTERS("rorw %%cl, %%ax");
    SETTERS("rclb %%cl, %%al");
    SETTERS("rcr %%cl, %%eax");
}

static void NOINLINE more_shifts(u32 a, u32 b, u32 c)
{
    SETTERS("shld %%cl, %%ebx, %%eax");
    SETTERS("shrdw %%cl, %%bx, %%ax");
    SETTERS("shld $3, %%ebx, %%eax");
    SETTERS("rol $1, %%eax");
    SETTERS("rcl $1, %%eax");
    SETTERS("sar $9, %%eax");
    SETTERS("shl $0, %%eax");
    SETTERS("rcrw $17, %%ax");
    LOOKS("shl $4, %%eax", "rcr $23, %%eax");   /* more than the carry is lost */
    LOOKS("shl $9, %%ebx", "rcl $5, %%eax");
    LOOKS("shlw $7, %%ax", "rcr $3, %%eax");
}

static void NOINLINE arithmetic(u32 a, u32 b, u32 c)
{
    SETTERS("mul %%bl");
    SETTERS("imulw %%bx, %%ax");
    SETTERS("imul $77, %%ebx, %%eax");
    SETTERS("mul %%ebx");
    SETTERS("xor %%edx, %%edx\n\tor $1, %%ebx\n\tdiv %%ebx");
    SETTERS("bsf %%ebx, %%eax");
    SETTERS("bsr %%ecx, %%eax");
    SETTERS("xor %%ebx, %%ebx\n\tbsf %%ebx, %%eax");
    SETTERS("or %%ebx, %%eax");
    SETTERS("neg %%eax\n\tcmc");
}

static void NOINLINE decimal(u32 a, u32 b, u32 c)
{
    SETTERS("daa");
    SETTERS("das");
    SETTERS("aaa");
    SETTERS("aas");
    SETTERS("aam");
    SETTERS("aad");
    SETTERS("cmpxchg %%ebx, %%edx");
    SETTERS("xadd %%ebx, %%eax");
}

void main(void)
{
    static const u8 counts[] = { 0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33 };
    u32 rounds = option("rounds", 60), seed = 3;

    if (!option("quiet", 0)) {
        rt_timer(4000);
    }
    for (u32 r = 0; r < rounds; r++) {
        u32 a = prng(&seed) << (r % 9), b = prng(&seed);
        u32 c = counts[r % sizeof counts];

        shifts(a, b, c);
        more_shifts(a, b, c);
        arithmetic(a, b, c);
        decimal(a, b, c);
    }
}
