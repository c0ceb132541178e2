/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Memory that stays as it is for long, and then is seen to change: by other page tables, by a
 * store through another address, by an entry of a table, and by page tables at another
 * address. Between these the guest works on registers. For tt find, which leaves out what
 * cannot change a condition.
 */
#include "rt64.h"

const char guest_name[] = "still64";

#define SEEN    (512UL << 20)           /* virtual; its tables say what is there */
#define FIRST   0x1800000UL
#define SECOND  0x1a00000UL

static u64 other4[512] __attribute__((aligned(4096)));
static u64 other3[512] __attribute__((aligned(4096)));
static u64 other2[512] __attribute__((aligned(4096)));
static u64 moved2[512] __attribute__((aligned(4096)));
static u64 rounds;

static void say(const char *what)
{
    put_str(what);
    put_str("\n");
}

static void by_other_tables(void)
{
    u64 mine = get_cr3();

    set_cr3((u64)other4);
    work(1000);
    set_cr3(mine);
}

static void by_store(void)
{
    *(volatile u32 *)FIRST = 5;
    work(rounds);
    *(volatile u32 *)FIRST = 5;         /* the same again */
    work(rounds);
    *(volatile u32 *)FIRST = 0;
}

static void by_entry(u64 *m2)
{
    m2[SEEN >> 21] = SECOND | 0x83;
    __asm__ volatile("invlpg (%0)" :: "r"(SEEN) : "memory");
    work(1000);
    m2[SEEN >> 21] = FIRST | 0x83;
    __asm__ volatile("invlpg (%0)" :: "r"(SEEN) : "memory");
}

/* An entry above leads to other tables, which were written long before. */
static void by_table(u64 *m3)
{
    u64 was = m3[0];

    m3[0] = (u64)moved2 | 3;
    set_cr3(get_cr3());
    work(1000);
    m3[0] = was;
    set_cr3(get_cr3());
}

void start64(const u32 *multiboot)
{
    u64 *m4 = table_of(get_cr3()), *m3 = table_of(m4[0]), *m2 = table_of(m3[0]);

    take_options(multiboot);
    rounds = option("rounds", 1000);
    for (int i = 0; i < 512; i++) {
        other4[i] = m4[i];
        other3[i] = m3[i];
        other2[i] = moved2[i] = m2[i];
    }
    other4[0] = (u64)other3 | 3;
    other3[0] = (u64)other2 | 3;
    *(volatile u32 *)FIRST = 0;
    *(volatile u32 *)SECOND = 5;
    m2[SEEN >> 21] = FIRST | 0x83;
    other2[SEEN >> 21] = moved2[SEEN >> 21] = SECOND | 0x83;
    set_cr3(get_cr3());
    say("begin");
    work(rounds);
    by_other_tables();
    work(rounds);
    by_store();
    work(rounds);
    by_entry(m2);
    work(rounds);
    by_table(m3);
    work(rounds);
    put_str("still64: end");
    power_off();
}
