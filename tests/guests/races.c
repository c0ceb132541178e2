/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "races": two CPUs that share memory, in the right ways and in wrong ones.
 *
 * Each way has functions of its own, so that a race finder can say which one it means.
 * Option do=N, the sum of these (7):
 *   1  a counter under a lock that XCHG takes and a plain store gives back
 *   2  a message behind a flag that XCHG sets and plain loads wait for
 *   4  a message by an interrupt
 *   8  a counter without a lock: a bug
 *  16  a message behind a flag that only plain stores and loads use
 *  32  a counter under a lock without atomic instructions, of turn_lock and turn_unlock
 * rounds=N (100).
 */
#include "rt.h"

const char guest_name[] = "races";

enum { VECTOR_IPI = 40, COPY = 0x8000 };
enum { APIC_ID = 0x20, APIC_EOI = 0xb0, APIC_SVR = 0xf0, APIC_ICR = 0x300,
       APIC_ICR_HIGH = 0x310 };
enum { ICR_INIT = 0x4500, ICR_SIPI = 0x4600, ICR_FIXED = 0x4000,
       ICR_OTHERS = 0xc0000 };
enum { LOCK = 1, FLAG = 2, INTERRUPT = 4, BUG = 8, PLAIN_FLAG = 16, TURNS = 32 };

extern u8 smp_begin[], smp_end[];
u8 smp_stacks[2][4096] ALIGNED(4096);
u32 smp_cr3;
struct {
    u16 limit;
    u32 base;
} __attribute__((packed)) smp_idt;
void smp_main(u32 cpu);

/* Of each way, on a line of its own. */
static volatile u32 ways, rounds;
static volatile u32 lock_word ALIGNED(64), locked_counter ALIGNED(64);
static volatile u32 flag ALIGNED(64), message ALIGNED(64);
static volatile u32 letter ALIGNED(64), letters_read ALIGNED(64), read_last;
static volatile u32 planted ALIGNED(64);
static volatile u32 plain_flag ALIGNED(64), plain_message ALIGNED(64);
static volatile u32 wants[2] ALIGNED(64), turn, turn_counter ALIGNED(64);
static volatile u32 arrived ALIGNED(64), phase;

static volatile u32 *apic(u32 reg)
{
    return (volatile u32 *)(0xfee00000u + reg);
}

static u32 exchange(volatile u32 *p, u32 v)
{
    __asm__ volatile("xchgl %0, %1" : "+r"(v), "+m"(*p) :: "memory");
    return v;
}

static u32 exchange_add(volatile u32 *p, u32 v)
{
    __asm__ volatile("lock xaddl %0, %1" : "+r"(v), "+m"(*p) :: "memory");
    return v;
}

static void relax(void)
{
    __asm__ volatile("pause" ::: "memory");
}

/* Both come here before any goes on. Who waits only reads the phase: a write would also
 * order what it does before it waits for the next one. */
static void barrier(void)
{
    u32 now = phase;

    if (exchange_add(&arrived, 1) == 1) {
        exchange(&arrived, 0);
        exchange_add(&phase, 1);
    } else {
        while (phase == now) {
            relax();
        }
    }
}

NOINLINE static void count_locked(void)
{
    while (exchange(&lock_word, 1)) {
        while (lock_word) {
            relax();
        }
    }
    locked_counter++;
    BARRIER();
    lock_word = 0;
}

NOINLINE static void pass_message(u32 cpu, u32 r)
{
    if (cpu) {
        while (flag != r + 1) {
            relax();
        }
        if (message != r) {
            rt_fail("a wrong message", message);
        }
    } else {
        message = r;
        exchange(&flag, r + 1);
    }
}

/* In the handler, and in what waited for it. */
static void on_ipi(struct rt_frame *f)
{
    read_last = letter;
    exchange_add(&letters_read, 1);
    *apic(APIC_EOI) = 0;
    (void)f;
}

NOINLINE static void send_letter(u32 cpu, u32 r)
{
    if (!cpu) {
        letter = r;
        *apic(APIC_ICR) = ICR_FIXED | ICR_OTHERS | VECTOR_IPI;
        while (exchange_add(&letters_read, 0) != r + 1) {
            relax();
        }
        if (read_last != r) {
            rt_fail("a wrong letter", read_last);
        }
    }
}

NOINLINE static void count_planted(void)
{
    planted++;
}

NOINLINE static void pass_plainly(u32 cpu, u32 r)
{
    if (cpu) {
        while (plain_flag != r + 1) {
            relax();
        }
        if (plain_message != r) {
            rt_fail("a wrong plain message", plain_message);
        }
    } else {
        plain_message = r;
        BARRIER();
        plain_flag = r + 1;
    }
}

/* Peterson's: right as long as no CPU delays its stores, as none of a replay does. */
void turn_lock(u32 cpu);
NOINLINE void turn_lock(u32 cpu)
{
    wants[cpu] = 1;
    turn = !cpu;
    BARRIER();
    while (wants[!cpu] && turn != cpu) {
        relax();
    }
}

void turn_unlock(u32 cpu);
NOINLINE void turn_unlock(u32 cpu)
{
    BARRIER();
    wants[cpu] = 0;
}

NOINLINE static void count_in_turn(u32 cpu)
{
    turn_lock(cpu);
    turn_counter++;
    turn_unlock(cpu);
}

static void work(u32 cpu)
{
    for (u32 r = 0; r < rounds; r++) {
        barrier();
        if (ways & LOCK) {
            count_locked();
        }
        if (ways & FLAG) {
            pass_message(cpu, r);
        }
        if (ways & INTERRUPT) {
            send_letter(cpu, r);
        }
        if (ways & BUG) {
            count_planted();
        }
        if (ways & PLAIN_FLAG) {
            pass_plainly(cpu, r);
        }
        if (ways & TURNS) {
            count_in_turn(cpu);
        }
    }
    barrier();
}

void smp_main(u32 cpu)
{
    *apic(APIC_SVR) = 0x1ff;
    barrier();
    sti();
    work(cpu);
    cli();
}

static void start_other(void)
{
    *apic(APIC_ICR_HIGH) = 1 << 24;
    *apic(APIC_ICR) = ICR_INIT;
    *apic(APIC_ICR_HIGH) = 1 << 24;
    *apic(APIC_ICR) = ICR_SIPI | COPY >> 12;
}

void main(void)
{
    ways = option("do", LOCK | FLAG | INTERRUPT);
    rounds = option("rounds", 100);
    rt_paging();
    __asm__ volatile("mov %%cr3, %0" : "=r"(smp_cr3));
    __asm__ volatile("sidt %0" : "=m"(smp_idt));
    memcpy((void *)COPY, smp_begin, smp_end - smp_begin);
    rt_on(VECTOR_IPI, on_ipi, GATE_INTR);
    *apic(APIC_SVR) = 0x1ff;
    rt_timer(1000);
    start_other();
    barrier();
    work(0);
    fold(locked_counter);
    say("planted", planted);
    if (ways & LOCK && locked_counter != 2 * rounds) {
        rt_fail("a count under the lock got lost", locked_counter);
    }
    if (ways & TURNS && turn_counter != 2 * rounds) {
        rt_fail("a count in turn got lost", turn_counter);
    }
}
