/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Stores to pages whose virtual address is the physical one of a page table that is walked
 * just before: to the table itself, and to another page. A walk must not take them for such
 * as are written without a word, or they are in no checkpoint.
 */
#include "rt64.h"

const char guest_name[] = "table64";

#define SEEN    (512UL << 20)           /* the first table leads there */
#define SEEN2   (514UL << 20)           /* the second one */
#define SECOND  0x1c00000UL             /* the second table; virtual: another page */
#define OTHER   0x1e00000UL

static u64 first[512] __attribute__((aligned(4096)));
static u64 over[512] __attribute__((aligned(4096)));

/* What is at @to is read, then comes a walk, then a store. */
static void store(volatile u64 *to, u64 seen, u64 value)
{
    set_cr3(get_cr3());
    (void)*to;
    (void)*(volatile u64 *)seen;
    *to = value;
}

void start64(const u32 *multiboot)
{
    u64 *m4 = table_of(get_cr3()), *m3 = table_of(m4[0]), *m2 = table_of(m3[0]);
    volatile u64 *second = (u64 *)SECOND;
    u64 rounds, n;

    take_options(multiboot);
    rounds = option("rounds", 1000);
    n = option("n", 2);
    for (u64 i = 0; i < 512; i++) {
        first[i] = second[i] = (0x1800000UL + i * 4096) | 0x63;
        over[i] = (OTHER + i * 4096) | 0x63;
    }
    m2[SEEN >> 21] = (u64)first | 0x23;
    m2[SEEN2 >> 21] = SECOND | 0x23;
    m2[SECOND >> 21] = (u64)over | 0x23;
    set_cr3(get_cr3());
    for (u64 i = 1; i <= n; i++) {
        work(rounds);
        store(&first[300], SEEN, i << 12);
        store(second + 1, SEEN2, i << 12);
        work(rounds);
        put_hex(first[300] + second[1]);
        put_str("\n");
    }
    put_str("table64: end");
    power_off();
}
