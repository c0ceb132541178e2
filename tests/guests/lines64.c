/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A 64-bit guest made for a debugger: lines, calls, recursion, a variable that
 * changes rarely, and, with smash=1, a function that overwrites its own return
 * address. Built without optimisation, so that each line is code of its own.
 */
#include "rt64.h"

const char guest_name[] = "lines64";

volatile u64 counter, total, rare;

/* ---- the work ---- */

u64 leaf(u64 n);
u64 leaf(u64 n)
{
    counter++;
    return n * 3;
}

u64 middle(u64 n);
u64 middle(u64 n)
{
    u64 a = leaf(n);
    u64 b = leaf(a + 1);

    total += a + b;
    return a ^ b;
}

u64 fib(u64 n);
u64 fib(u64 n)
{
    if (n < 2) {
        return n;
    }
    return fib(n - 1) + fib(n - 2);
}

/* One bar of a loop that a conditional breakpoint meets very often. */
u64 spin(u64 i);
u64 spin(u64 i)
{
    u64 x = i;

    for (int k = 0; k < 12; k++) {
        x = x * 6364136223846793005ul + 1442695040888963407ul;
    }
    return x;
}

void copy(char *to, const char *from);
void __attribute__((noinline)) copy(char *to, const char *from)
{
    while (*from) {
        *to++ = *from++;
    }
}

void greet(const char *whom);
void __attribute__((noinline)) greet(const char *whom)
{
    char name[8];

    copy(name, whom);
    counter += (u64)name[0];
}

void start64(const u32 *multiboot)
{
    u64 sum = 0, rounds, spins;

    take_options(multiboot);
    set_traps();
    rounds = option("rounds", 5);
    spins = option("spins", 0);
    for (u64 i = 0; i < rounds; i++) {
        sum += middle(i);
        if (i == 2) {
            rare = sum;
        }
    }
    sum += fib(6);
    for (u64 i = 0; i < spins; i++) {
        sum += spin(i);
    }
    if (option("smash", 0)) {
        greet("Ada");
        greet("somebody whose name is longer than eight letters");
    }
    put_str("lines64: end sum=");
    put_hex(sum + total);
    power_off();
}
