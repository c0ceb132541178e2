/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program whose functions are interrupted: by the timer, by a signal whose handler calls,
 * and by longjmps, after a system call and out of a function with a large frame. Each loop
 * calls leaf as often as the others.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#define NOINLINE __attribute__((noinline, noclone))

enum { TURNS = 1000, SYS_GETPID = 39 };

static volatile long sink;
static volatile int signals, turn;
static jmp_buf back;

NOINLINE void leaf(void)
{
    for (int i = 0; i < 3000; i++) {
        sink += i;
    }
}

NOINLINE void quick(void)
{
    signals++;
}

NOINLINE void handler(int number)
{
    quick();
    sink++;
}

NOINLINE void plain_loop(void)
{
    for (turn = 0; turn < TURNS; turn++) {
        leaf();
        for (int i = 0; i < 3000; i++) {
            sink += i;
        }
    }
}

NOINLINE void signal_loop(void)
{
    struct sigaction action = { .sa_handler = handler };
    struct itimerval often = { { 0, 2000 }, { 0, 2000 } }, never = { { 0, 0 }, { 0, 0 } };

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (turn = 0; turn < TURNS; turn++) {
        leaf();
        for (int i = 0; i < 3000; i++) {
            sink += i;
        }
    }
    setitimer(ITIMER_REAL, &never, NULL);
}

NOINLINE void jump(void)
{
    _longjmp(back, 1);
}

NOINLINE void calls_kernel(void)
{
    long result;

    leaf();
    __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_GETPID) : "rcx", "r11", "memory");
    sink += result;
    jump();
    sink++;
}

NOINLINE void call_loop(void)
{
    for (turn = 0; turn < TURNS; turn++) {
        if (!_setjmp(back)) {
            calls_kernel();
        }
    }
}

NOINLINE void has_large_frame(void)
{
    volatile char frame[100000];

    frame[5] = 1;
    leaf();
    jump();
    frame[6] = 2;
}

NOINLINE void far_loop(void)
{
    for (turn = 0; turn < TURNS; turn++) {
        if (!_setjmp(back)) {
            has_large_frame();
        }
    }
}

int main(void)
{
    plain_loop();
    signal_loop();
    call_loop();
    far_loop();
    printf("TT-SIGNALS %d\n", signals);
    return 0;
}
