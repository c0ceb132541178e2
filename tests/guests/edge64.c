/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "edge64": what no guest does by design, and a processor survives. HLT with
 * the trap flag set while the gate of the trap is not present; an interrupt whose
 * stack comes from a task register that holds no task state (by VMLOAD); x87 and
 * FXSAVE across the end of the address space, across pages that are not neighbours in
 * RAM, and from RAM into a device's. What is stored is looked at. Options: rounds=N
 * (20), only=N (0: all): one of these five.
 */
#define RT64_OWN_TRAPS
#include "rt64.h"

const char guest_name[] = "edge64";

enum { DB = 1, TS = 10, NP = 11, GP = 13, TIMER = 0x20, CALL = 0x50, VECTORS = 256 };
enum { PAGE = 4096, TF = 0x100, IF = 0x200, EFER = 0xc0000080, SVME = 0x1000 };
enum { TR_ATTRIBUTES = 0x492, PRESENT = 0x80 };

static u64 sum = 1;
static volatile u64 seen[VECTORS];

static void fold(u64 v)
{
    sum = (sum ^ v) * 0x100000001b3ul;
}

/* ---- traps ---- */

struct frame {
    u64 ax, cx, dx, bx, bp, si, di, r8, r9, r10, r11;
    u64 vector, error, ip, cs, flags, sp, ss;
};

static struct gate {
    unsigned short low, selector;
    u8 stack, type;
    unsigned short middle;
    u32 high, zero;
} idt[VECTORS];

extern const u8 stubs[], stubs_end[];
__asm__(".macro stub vector, has_error\n\t"
        ".if !\\has_error\n\t"
        "push $0\n\t"
        ".endif\n\t"
        "push $\\vector\n\t"
        "jmp common\n\t"
        ".balign 16\n\t"
        ".endm\n\t"
        ".balign 16\n"
        "stubs:\n\t"
        "stub 1, 0\n\t"
        "stub 10, 1\n\t"
        "stub 11, 1\n\t"
        "stub 13, 1\n\t"
        "stub 0x20, 0\n\t"
        "stub 0x50, 0\n"
        "common:\n\t"
        "push %r11\n\tpush %r10\n\tpush %r9\n\tpush %r8\n\tpush %rdi\n\tpush %rsi\n\t"
        "push %rbp\n\tpush %rbx\n\tpush %rdx\n\tpush %rcx\n\tpush %rax\n\t"
        "mov %rsp, %rdi\n\t"
        "mov %rsp, %rbx\n\t"
        "and $-16, %rsp\n\t"
        "call on_trap\n\t"
        "mov %rbx, %rsp\n\t"
        "pop %rax\n\tpop %rcx\n\tpop %rdx\n\tpop %rbx\n\tpop %rbp\n\tpop %rsi\n\t"
        "pop %rdi\n\tpop %r8\n\tpop %r9\n\tpop %r10\n\tpop %r11\n\t"
        "add $16, %rsp\n\t"
        "iretq\n");

void on_trap(struct frame *f);
void on_trap(struct frame *f)
{
    seen[f->vector]++;
    fold(f->vector);
    fold(f->error);
    fold(f->ip);
    fold(f->flags);
    switch (f->vector) {
    case NP:                    /* the trap of HLT could not be delivered */
        f->flags &= ~(u64)TF;
        break;
    case TS:
        f->ip += 2;             /* INT n */
        break;
    case TIMER:
        outb(0x20, 0x20);
        break;
    case GP:
        put_str("unexpected fault at ");
        put_hex(f->ip);
        power_off();
    }
}

static void set_gate(u32 i, u32 vector, u8 stack)
{
    u64 stub = (u64)stubs + 16 * i;

    idt[vector] = (struct gate) { (unsigned short)stub, 8, stack, 0x8e,
                                  (unsigned short)(stub >> 16), 0, 0 };
}

static void set_traps(void)
{
    struct {
        unsigned short limit;
        void *base;
    } __attribute__((packed)) p = { sizeof(idt) - 1, idt };

    set_gate(0, DB, 0);
    set_gate(1, TS, 0);
    set_gate(2, NP, 0);
    set_gate(3, GP, 0);
    set_gate(4, TIMER, 0);
    set_gate(5, CALL, 1);
    idt[DB].type &= 0x7f;       /* not present */
    __asm__ volatile("lidt %0" :: "m"(p));
}

/* ---- the cases ---- */

static void set_timer(void)
{
    outb(0x20, 0x11), outb(0x21, TIMER), outb(0x21, 4), outb(0x21, 1);
    outb(0xa0, 0x11), outb(0xa1, 0x28), outb(0xa1, 2), outb(0xa1, 1);
    outb(0x21, 0xfe), outb(0xa1, 0xff);
    outb(0x43, 0x34), outb(0x40, 0xa9), outb(0x40, 4);      /* 1 kHz */
}

static void halt_and_trap(void)
{
    u64 before = seen[NP];

    __asm__ volatile("pushfq\n\t"
                     "orq %0, (%%rsp)\n\t"
                     "popfq\n\t"
                     "hlt\n\t"
                     "nop\n\t"
                     "cli" :: "i"(TF | IF) : "memory", "cc");
    fold(seen[NP] - before);
}

static u8 block[PAGE] __attribute__((aligned(PAGE)));

static void call_on_no_stack(void)
{
    u32 low, high;

    __asm__ volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(EFER));
    __asm__ volatile("wrmsr" :: "a"(low | SVME), "d"(high), "c"(EFER));
    block[TR_ATTRIBUTES] &= (u8)~PRESENT;
    __asm__ volatile("vmload" :: "a"(block) : "memory");
    __asm__ volatile("int %0" :: "i"(CALL) : "memory");
}

/*
 * The last page of the address space, and three in a row of its last 2 MiB. Of those the
 * first two are no neighbours in RAM, and the third is a device's that nobody has. After
 * each page of RAM lies another that nothing may be stored into.
 */
static u64 tables[3][512] __attribute__((aligned(PAGE)));
static struct {
    u8 bytes[PAGE], untouched[PAGE];
} pages[3] __attribute__((aligned(PAGE)));

enum { FIRST = 100, PAIR = -(512 - FIRST) * PAGE, HOLE = 0xd0000000 };

static void map(void)
{
    u64 *top;

    __asm__ volatile("mov %%cr3, %0" : "=r"(top));
    top[511] = (u64)tables[0] | 3;
    tables[0][511] = (u64)tables[1] | 3;
    tables[1][511] = (u64)tables[2] | 3;
    tables[2][511] = (u64)pages[2].bytes | 3;
    tables[2][FIRST] = (u64)pages[0].bytes | 3;
    tables[2][FIRST + 1] = (u64)pages[1].bytes | 3;
    tables[2][FIRST + 2] = (u64)HOLE | 3;
    for (u32 p = 0; p < 3; p++) {
        for (u32 i = 0; i < PAGE; i++) {
            pages[p].untouched[i] = 0xa5;
        }
    }
}

static void __attribute__((noreturn)) wrong(const char *what, u64 where)
{
    put_str("edge64: FAIL ");
    put_str(what);
    put_hex(where);
    power_off();
}

static void check_untouched(u64 where)
{
    for (u32 p = 0; p < 3; p++) {
        for (u32 i = 0; i < PAGE; i++) {
            if (pages[p].untouched[i] != 0xa5) {
                wrong("stored behind a page: ", where);
            }
        }
    }
}

static void save_across_the_end(u64 r)
{
    u8 *first = (u8 *)0;

    for (u32 i = 0; i < 256; i++) {
        first[i] = pages[2].bytes[PAGE - 256 + i] = (u8)(r + i);
    }
    __asm__ volatile("fninit\n\tfld1\n\tfldpi\n\t"
                     "fxsave64 -0x100\n\tfninit\n\tfxrstor64 -0x100" ::: "memory");
    for (u32 i = 0; i < 256; i++) {
        fold(first[i] + 256ul * pages[2].bytes[PAGE - 256 + i]);
    }
    check_untouched(0);
}

/* At each place where a part of it lies on either page. */
static void store_across(void)
{
    u8 pi[10];

    __asm__ volatile("fninit\n\tfldpi\n\tfstpt %0" : "=m"(pi));
    for (u64 n = 1; n < 10; n++) {
        u8 *to = (u8 *)(long)PAIR + PAGE - n, back[10];

        for (u32 i = 0; i < 16; i++) {
            pages[0].bytes[PAGE - 16 + i] = pages[1].bytes[i] = 0x5a;
        }
        __asm__ volatile("fldpi\n\tfstpt (%0)" :: "r"(to) : "memory");
        for (u32 i = 0; i < 10; i++) {
            u8 seen = i < n ? pages[0].bytes[PAGE - n + i] : pages[1].bytes[i - n];

            if (seen != pi[i] || to[i] != pi[i]) {
                wrong("stored elsewhere, bytes on the first page: ", n);
            }
        }
        __asm__ volatile("fldt (%1)\n\tfstpt %0" : "=m"(back) : "r"(to) : "memory");
        for (u32 i = 0; i < 10; i++) {
            if (back[i] != pi[i]) {
                wrong("loaded from elsewhere, bytes on the first page: ", n);
            }
        }
        check_untouched(n);
        fold(n);
    }
}

static void save_into_a_device(void)
{
    u8 *to = (u8 *)(long)PAIR + 2 * PAGE - 256;

    __asm__ volatile("fninit\n\tfldpi\n\tfxsave64 (%0)\n\t"
                     "fnsave 1(%0)\n\tfrstor 1(%0)" :: "r"(to) : "memory");
    for (u32 i = 0; i < 256; i++) {
        fold(to[i]);
    }
}

void start64(const u32 *multiboot)
{
    u64 rounds, only, cr4;

    take_options(multiboot);
    rounds = option("rounds", 20);
    only = option("only", 0);
    __asm__ volatile("mov %%cr4, %0" : "=r"(cr4));
    __asm__ volatile("mov %0, %%cr4" :: "r"(cr4 | 0x200));      /* OSFXSR */
    map();
    set_traps();
    set_timer();
    for (u64 r = 0; r < rounds; r++) {
        if (!only || only == 1) {
            halt_and_trap();
        }
        if (!only || only == 2) {
            call_on_no_stack();
        }
        if (!only || only == 3) {
            save_across_the_end(r);
        }
        if (!only || only == 4) {
            store_across();
        }
        if (!only || only == 5) {
            save_into_a_device();
        }
    }
    put_str("edge64: end traps=");
    put_hex(seen[NP]);
    put_str(" stacks=");
    put_hex(seen[TS]);
    put_str(" sum=");
    put_hex(sum);
    power_off();
}
