/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "btflags": the flags that BT, BTS, BTR and BTC leave undefined.
 *
 * A translator may give O, S, A and P another value when it knows statically
 * which instruction set the flags before, that is, depending on where a
 * block begins. Each test sets the flags by another kind of instruction and
 * reads all of them back with PUSHF. Option: rounds=N (1500).
 */
#include "rt.h"

const char guest_name[] = "btflags";

/* A flag-setting instruction, a bit test and a look at the flags. */
#define PROBE(set, bit) do { \
        u32 a_ = a, b_ = b, flags_; \
        __asm__ volatile(set "\n\t" bit "\n\t" "pushf\n\t" "pop %2" \
                         : "+r"(a_), "+r"(b_), "=r"(flags_) \
                         : "m"(memory) : "cc", "memory"); \
        fold(flags_ & RT_EFLAGS_SEEN); \
        fold(a_); \
    } while (0)

#define PROBE_BITS(set) do { \
        PROBE(set, "bt $3, %0"); \
        PROBE(set, "bts $9, %0"); \
        PROBE(set, "btr %1, %0"); \
        PROBE(set, "btc $31, %0"); \
        PROBE(set, "btw $5, %w0"); \
        PROBE(set, "btl %1, %3"); \
        PROBE(set, "jmp 1f\n1: bts $2, %0"); \
    } while (0)

static u32 memory[8];

static void NOINLINE probe_all(u32 a, u32 b)
{
    PROBE_BITS("add %1, %0");
    PROBE_BITS("addb $127, %b0");
    PROBE_BITS("sub %1, %0");
    PROBE_BITS("inc %0");
    PROBE_BITS("decw %w0");
    PROBE_BITS("and %1, %0");
    PROBE_BITS("xor %0, %0");
    PROBE_BITS("shl $3, %0");
    PROBE_BITS("sar $1, %0");
    PROBE_BITS("neg %0");
    PROBE_BITS("imul %1, %0");
    PROBE_BITS("stc\n\tadc $1, %0");
    PROBE_BITS("bsf %1, %0");
    PROBE_BITS("cmp %1, %0");
}

void main(void)
{
    u32 rounds = option("rounds", 1500), seed = 4711;

    rt_timer(4000);
    for (u32 r = 0; r < rounds; r++) {
        u32 a = prng(&seed), b = prng(&seed) & 31;

        memory[r & 7] = a;
        probe_all(a << (r & 7), b);
    }
}
