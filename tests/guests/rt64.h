/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What the 64-bit guests share: console, options, power. A guest sets command_line
 * from the multiboot information that start64() gets (boot64.S).
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

#endif
