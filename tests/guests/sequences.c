/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "sequences": stretches of X instructions, as table 2 of XenTT (VEE'16) has them:
 * "nop" of nothing else, "real" of simple ones. Before and behind each is a read of the time
 * stamp counter and an access to a device; both values are printed. Each stretch runs once
 * before it counts. Needs -cpu max. Option: rounds=N (3).
 */
#include "rt.h"

const char guest_name[] = "sequences";

/* Nobody is there: it is only an exit to the recorder. */
enum { PORT = 0x680, PAUSE = 3000000 };

#define NOPS ".rept 10\n\tnop\n\t.endr\n\t"
#define REALS \
    "push %%eax\n\t" "inc %%eax\n\t" "add %%eax, %%edx\n\t" "xor %%edx, %%eax\n\t" \
    "mov (%%esp), %%ebx\n\t" "lea 4(%%ebx, %%eax), %%eax\n\t" "mov %%eax, (%%esp)\n\t" \
    "shr $1, %%edx\n\t" "pop %%ebx\n\t" "sub %%ebx, %%edx\n\t"

/* @tens: of instructions; the two that count are not. */
static void NOINLINE nops(u32 tens)
{
    __asm__ volatile("1: " NOPS "dec %0\n\t" "jnz 1b" : "+r"(tens) :: "cc");
}

static void NOINLINE reals(u32 tens)
{
    u32 a = 1, d = 2;

    __asm__ volatile("1: " REALS "dec %0\n\t" "jnz 1b"
                     : "+r"(tens), "+a"(a), "+d"(d) :: "ebx", "cc", "memory");
    fold(a ^ d);
}

/* So long that the recorder notes the time again. */
static void pause(void)
{
    u64 from = rdtsc();

    while (rdtsc() - from < PAUSE) {
    }
}

static void measure(const char *name, void (*run)(u32), u32 n)
{
    u64 from, to;

    run(n / 10);
    pause();
    outb(PORT, 0);
    from = rdtsc();
    run(n / 10);
    to = rdtsc();
    outb(PORT, 0);
    pause();
    outb(PORT, 0);
    put_str(name);
    say("n", n);
    say64("from", from);
    say64("to", to);
    put_char('\n');
}

void main(void)
{
    for (u32 r = option("rounds", 3); r; r--) {
        for (u32 n = 10; n <= 100000000; n *= 10) {
            measure("nop", nops, n);
            measure("real", reals, n);
        }
    }
}
