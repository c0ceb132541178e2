/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * One program under several names, all at the same addresses, at work at the same
 * time: for breakpoints and watchpoints of one process. `NAME COUNT` counts, and
 * says what came of it. Built without a C library.
 */
typedef unsigned long u64;

volatile u64 counted = 7;

static long call(long number, long a, long b, long c)
{
    long result;

    __asm__ volatile("syscall" : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory");
    return result;
}

u64 work(u64 n);
u64 __attribute__((noinline)) work(u64 n)
{
    counted += n;
    return counted;
}

/* One line in one write, since others write, too. */
static char line[128], *end = line;

static void put(const char *s)
{
    while (*s) {
        *end++ = *s++;
    }
}

static void put_number(u64 v)
{
    char text[24];
    char *p = text + sizeof(text);

    *--p = 0;
    do {
        *--p = (char)('0' + v % 10);
    } while (v /= 10);
    put(p);
}

void run(u64 *stack);
void __attribute__((noreturn)) run(u64 *stack)
{
    const char *name = (const char *)stack[1], *digits = (const char *)stack[2];
    u64 count = 0;

    while (*digits) {
        count = count * 10 + (u64)(*digits++ - '0');
    }
    for (u64 i = 1; i <= count; i++) {
        work(i);
        call(24, 0, 0, 0);              /* sched_yield: the next one's turn */
    }
    put("TT-TWIN ");
    put(name);
    put(" ");
    put_number(counted);
    put("\n");
    call(1, 1, (long)line, end - line);
    for (;;) {
        call(60, 0, 0, 0);
    }
}

__asm__(".globl _start\n_start: mov %rsp, %rdi\n call run\n");
