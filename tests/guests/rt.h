/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Runtime of the bare-metal guests: console, traps, timer, paging, checksum.
 *
 * A guest is one main() that does its work, folds all it observed into the
 * checksum with fold() and returns; the runtime prints the sums and powers
 * off. Two sums are kept: one for the main line and one for the timer
 * interrupt, which folds the whole interrupted register frame. So a replay
 * that takes one interrupt one instruction early or late prints other
 * numbers. Nothing here may depend on the host; everything may depend on
 * timing, since a replay must reproduce that too.
 */
#ifndef RT_H
#define RT_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

/* What a trap stub leaves on the stack; vec is the vector number. */
struct rt_frame {
    u32 edi, esi, ebp, esp, ebx, edx, ecx, eax;
    u32 vec, err, eip, cs, eflags;
};
typedef void rt_handler(struct rt_frame *f);

enum { GATE_INTR = 0x8e, GATE_TRAP = 0x8f };
enum { PAGE = 4096, PTE_P = 1, PTE_W = 2, PTE_A = 0x20, PTE_D = 0x40 };

/* EFLAGS bits that software sees: by PUSHF, and RF in an interrupt's frame. */
#define RT_EFLAGS_SEEN 0x00000ed5u
#define RT_EFLAGS_RF 0x00010000u

#define ALIGNED(n) __attribute__((aligned(n)))
#define NOINLINE __attribute__((noinline))
#define BARRIER() __asm__ volatile("" ::: "memory")

static inline void outb(u32 port, u32 v)
{
    __asm__ volatile("outb %b0, %w1" :: "a"(v), "Nd"(port) : "memory");
}

static inline void outw(u32 port, u32 v)
{
    __asm__ volatile("outw %w0, %w1" :: "a"(v), "Nd"(port) : "memory");
}

static inline void outl(u32 port, u32 v)
{
    __asm__ volatile("outl %0, %w1" :: "a"(v), "Nd"(port) : "memory");
}

static inline u32 inb(u32 port)
{
    u32 v = 0;
    __asm__ volatile("inb %w1, %b0" : "+a"(v) : "Nd"(port) : "memory");
    return v;
}

static inline u32 inw(u32 port)
{
    u32 v = 0;
    __asm__ volatile("inw %w1, %w0" : "+a"(v) : "Nd"(port) : "memory");
    return v;
}

static inline u32 inl(u32 port)
{
    u32 v;
    __asm__ volatile("inl %w1, %0" : "=a"(v) : "Nd"(port) : "memory");
    return v;
}

static inline void sti(void) { __asm__ volatile("sti" ::: "memory"); }
static inline void cli(void) { __asm__ volatile("cli" ::: "memory"); }
static inline void hlt(void) { __asm__ volatile("hlt" ::: "memory"); }

static inline u32 read_cr2(void)
{
    u32 v;
    __asm__ volatile("mov %%cr2, %0" : "=r"(v));
    return v;
}

static inline u32 read_cr0(void)
{
    u32 v;
    __asm__ volatile("mov %%cr0, %0" : "=r"(v));
    return v;
}

static inline void write_cr0(u32 v)
{
    __asm__ volatile("mov %0, %%cr0" :: "r"(v) : "memory");
}

static inline void flush_tlb(void)
{
    u32 v;
    __asm__ volatile("mov %%cr3, %0; mov %0, %%cr3" : "=r"(v) :: "memory");
}

static inline void invlpg(u32 va)
{
    __asm__ volatile("invlpg (%0)" :: "r"(va) : "memory");
}

static inline u64 rdmsr(u32 msr)
{
    u32 lo, hi;
    __asm__ volatile("rdmsr" : "=a"(lo), "=d"(hi) : "c"(msr));
    return (u64)hi << 32 | lo;
}

static inline u64 rdtsc(void)
{
    u32 lo, hi;
    __asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
    return (u64)hi << 32 | lo;
}

/* A fixed pseudo-random sequence, so that work is the same on every run. */
static inline u32 prng(u32 *state)
{
    *state = *state * 1103515245u + 12345u;
    return *state >> 8;
}

/* Written by each guest. */
extern const char guest_name[];
void main(void);

/* Console (COM1). say() prints " name=hex" on the current line. */
void put_char(char c);
void put_str(const char *s);
void put_hex(u32 v);
void say(const char *name, u32 v);
void say64(const char *name, u64 v);

/* Value of "name=N" (decimal) on the multiboot command line, or def. */
u32 option(const char *name, u32 def);

/* The main line's checksum. */
extern volatile u64 rt_sum;
static inline void fold(u32 v)
{
    rt_sum = (rt_sum ^ v) * 0x100000001b3ull;
}

static inline void fold64(u64 v)
{
    fold((u32)v);
    fold((u32)(v >> 32));
}

/*
 * Timer: rt_timer(hz) starts the PIT on IRQ 0 (option hz=N is another rate for
 * all guests) and turns interrupts on. NMIs
 * come from outside at any time; they are counted and folded, too.
 */
extern volatile u32 rt_ticks, rt_nmis;
extern volatile u64 rt_irq_sum;
void rt_timer(u32 hz);
void rt_timer_off(void);
void rt_fold_frame(const struct rt_frame *f);

/* Traps. rt_on() sets handler and gate; an IRQ's handler need not send EOI. */
void rt_on(u32 vec, rt_handler *h, u32 gate);
void rt_gate(u32 vec, void *entry, u32 gate);
void rt_unmask(u32 irq);

/*
 * Paging: identity map of the first 64 MiB in 4 KiB pages, and of the 4 MiB
 * with the APICs and the HPET. rt_pte() gives the entry of a low address.
 */
enum { RT_MAPPED = 64 << 20 };
void rt_paging(void);
volatile u32 *rt_pte(u32 va);

/* A window of RAM that no guest image reaches: 16 MiB to 64 MiB. */
#define RT_ARENA ((u8 *)(16u << 20))

void rt_power_off(void) __attribute__((noreturn));
void rt_fail(const char *why, u32 v) __attribute__((noreturn));

void *memcpy(void *d, const void *s, u32 n);
void *memset(void *d, int c, u32 n);

#endif
