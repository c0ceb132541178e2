/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Writes to memory through other addresses than those that one looks at: the first GiB
 * appears a second time above itself. In a window, other memory appears from time to time
 * and nothing is written. For tt find --written.
 */
#include "rt64.h"

const char guest_name[] = "alias64";

static u8 bytes[4 * 4096] __attribute__((aligned(4096)));
static volatile u32 *volatile pointer;
volatile u32 var = 5;
volatile u32 stage;
volatile u64 bits = 1;                  /* of 40 bits, and of others above them */
volatile u32 *window = (u32 *)(512UL << 20);

/* The same byte, 1 GiB above. */
static void *alias(volatile void *p)
{
    return (u8 *)p + (1UL << 30);
}

static void wait(void)
{
    for (volatile int i = 0; i < 20; i++) {
    }
}

static void next(void)
{
    wait();
    stage++;
}

/* In a block with others before and behind them. */
static void by_stores(void)
{
    volatile u32 *there = alias(&var);

    var = 5;
    next();
    *there = 5;
    wait();
    *there = 6;
    __asm__ volatile("movl $1, 4096(%0); movl $6, (%1); movl $2, 4096(%0); incl (%1);"
                     "movl $3, 4096(%0)" :: "r"(bytes), "r"(there) : "memory");
    next();
    *(volatile u8 *)there = 7;
    *((volatile u8 *)there + 3) = 0;
    *(volatile u64 *)((volatile u8 *)there - 4) = 7UL << 32 | *(&var - 1);
    next();
    outb(0x80, 1);
    var = 8;
}

static void by_strings(void)
{
    u8 *there = alias(bytes + 4096);
    void *to = there - 24;
    u64 n = 6;

    __asm__ volatile("rep stosq" : "+D"(to), "+c"(n) : "a"(0x0102030405060708UL)
                     : "memory");
    next();
    n = 40;
    to = there - 16;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(8UL) : "memory");
    next();
    *(volatile u64 *)(there - 4) = 9;
    next();
}

static void by_others(void)
{
    u8 *there = alias(bytes + 4096);
    u64 sp, old = 77;

    __asm__ volatile("mov %%cr4, %%rax; or $0x600, %%rax; mov %%rax, %%cr4;"
                     "pxor %%xmm0, %%xmm0; movups %%xmm0, -8(%0); fxsave (%0)"
                     :: "r"(there) : "rax", "memory");
    next();
    __asm__ volatile("lock cmpxchgl %k1, (%2); xchg %1, (%2)"
                     : "+a"(old) : "r"(88UL), "r"(there) : "memory");
    next();
    __asm__ volatile("mov %%rsp, %0; mov %1, %%rsp; push $0; pop %%rax; mov %0, %%rsp"
                     : "=&r"(sp) : "r"(there + 8) : "rax", "memory");
    next();
    pointer = (u32 *)bytes + 1;
    *pointer = 0;
    pointer = pointer;
    *(volatile u32 *)alias(pointer) = 0;
    pointer = (u32 *)bytes;
    next();
}

/* What a device's register has is moved into memory: that is read once only. */
static void from_a_device(u64 *m2)
{
    void *from = (void *)(600UL << 20), *to = alias(&var);

    m2[300] = 0xfec00000 | 0x83;
    set_cr3(get_cr3());
    __asm__ volatile("movsl; movsl; mov %2, %1; movsl" : "+S"(from), "+D"(to)
                     : "r"(&var) : "memory");
    next();
}

static void by_mapping(u64 *m2)
{
    *(volatile u32 *)0x1800000 = 1;
    *(volatile u32 *)0x1a00000 = 2;
    for (int i = 0; i < 5; i++) {
        m2[256] = (i & 1 ? 0x1a00000 : 0x1800000) | 0x83;
        set_cr3(get_cr3());
        wait();
        (void)*window;
        next();
    }
    *window = 1;
    *(volatile u32 *)0x1800000 = 1;
    *(volatile u32 *)0x1a00000 = 1;
    next();
}

static void by_neighbours(void)
{
    volatile u8 *there = (volatile u8 *)&bits;

    there[5] = 1;
    there[7] = 1;
    bits = 1;
    there[4] = 0;
    *(volatile u8 *)alias(there + 6) = 1;
    *(volatile u8 *)alias(there) = 1;
    next();
}

/* The MMU need not be told of a page that was missing. */
static void by_new_page(u64 *m2)
{
    volatile u64 *there = (u64 *)(602UL << 20);

    m2[301] = 0;
    set_cr3(get_cr3());
    next();
    m2[301] = 0x1c00000 | 0x83;
    *(volatile u8 *)there = 1;
    *((volatile u8 *)there + 6) = 1;
    *there = 2;
    next();
}

/* And as the kernel's memory while a program runs: it is away for some time. */
static void by_hidden_page(u64 *m2)
{
    volatile u64 *there = (u64 *)(604UL << 20);

    m2[302] = 0x1e00000 | 0x83;
    set_cr3(get_cr3());
    *there = 3;
    m2[302] = 0;
    set_cr3(get_cr3());
    *(volatile u64 *)0x1e00000 = 4;
    next();
    m2[302] = 0x1e00000 | 0x83;
    set_cr3(get_cr3());
    *there = 5;
    next();
}

void start64(const u32 *multiboot)
{
    u64 *m3 = table_of(table_of(get_cr3())[0]), *m2 = table_of(m3[0]);

    (void)multiboot;
    m3[1] = (u64)m2 | 3;
    set_cr3(get_cr3());
    next();
    by_stores();
    by_strings();
    by_others();
    from_a_device(m2);
    by_mapping(m2);
    by_neighbours();
    by_new_page(m2);
    by_hidden_page(m2);
    put_str("alias64: end ");
    put_hex(var);
    power_off();
}
