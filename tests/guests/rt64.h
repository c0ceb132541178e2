/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What the 64-bit guests share: console, options, power, and how they begin and end.
 * boot64.S calls a guest's start64(), and on_trap() at a trap that set_traps(), or the guest
 * itself, has led there. A guest with traps of its own defines RT64_OWN_TRAPS.
 */
#ifndef RT64_H
#define RT64_H

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long u64;

static const char *command_line = "";

static inline void outb(u32 port, u32 v)
{
    __asm__ volatile("outb %b0, %w1" :: "a"(v), "Nd"(port) : "memory");
}

static inline void put_str(const char *s)
{
    while (*s) {
        outb(0x3f8, (u8)*s++);
    }
}

static inline void put_hex(u64 v)
{
    for (int shift = 60; shift >= 0; shift -= 4) {
        outb(0x3f8, "0123456789abcdef"[(v >> shift) & 15]);
    }
}

static inline u64 option(const char *name, u64 def)
{
    for (const char *p = command_line; *p; p++) {
        const char *a = p, *b = name;
        u64 v = 0;

        while (*b && *a == *b) {
            a++;
            b++;
        }
        if (!*b && *a == '=') {
            for (a++; *a >= '0' && *a <= '9'; a++) {
                v = v * 10 + (u64)(*a - '0');
            }
            return v;
        }
    }
    return def;
}

static inline void __attribute__((noreturn)) power_off(void)
{
    put_str("\n");
    __asm__ volatile("outw %w0, %w1" :: "a"(0x2000), "Nd"(0x604) : "memory");
    for (;;) {
        __asm__ volatile("cli; hlt");
    }
}

/* ---- page tables ---- */

static inline u64 get_cr3(void)
{
    u64 v;

    __asm__ volatile("mov %%cr3, %0" : "=r"(v));
    return v;
}

static inline void set_cr3(u64 v)
{
    __asm__ volatile("mov %0, %%cr3" :: "r"(v) : "memory");
}

/* That an entry leads to. */
static inline u64 *table_of(u64 entry)
{
    return (u64 *)(entry & ~0xfffUL);
}

/* On registers only. */
static inline void work(u64 n)
{
    __asm__ volatile("1: dec %0; jnz 1b" : "+r"(n));
}

void start64(const u32 *multiboot);     /* the guest's */

/* Multiboot's command line: those of option(). */
static inline void take_options(const u32 *multiboot)
{
    if (multiboot[0] & 4) {
        command_line = (const char *)(u64)multiboot[4];
    }
}

#ifndef RT64_OWN_TRAPS

/* Ends the guest. An error code may lie before the address. */
void on_trap(u64 *stack);
void __attribute__((noinline)) on_trap(u64 *stack)
{
    put_str("trap at ");
    put_hex(stack[stack[1] == 8 ? 0 : 1]);
    power_off();
}

/* All of them. */
static inline void set_traps(void)
{
    extern void trap_stub(void);        /* boot64.S */
    static struct {
        unsigned short low, selector, type, middle;
        u32 high, zero;
    } idt[256];
    struct {
        unsigned short limit;
        void *base;
    } __attribute__((packed)) p = { sizeof(idt) - 1, idt };
    u64 stub = (u64)trap_stub;

    for (int i = 0; i < 256; i++) {
        idt[i].low = (unsigned short)stub;
        idt[i].selector = 8;
        idt[i].type = 0x8e00;
        idt[i].middle = (unsigned short)(stub >> 16);
    }
    __asm__ volatile("lidt %0" :: "m"(p));
}

#endif

#endif
