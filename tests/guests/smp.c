/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "smp": CPUs that race with each other.
 *
 * They take locks, lose updates of a counter on purpose, change each other's
 * code, clear accessed bits that others set, send interrupts to each other, wait
 * for them in HLT, and are reset and started again. What each of them sees
 * depends on who ran when, down to the instruction, and is folded into sums.
 * Options: cpus=N (2), rounds=N (400), pause=0 spins without PAUSE.
 */
#include "rt.h"

const char guest_name[] = "smp";

enum { CPUS_MAX = 8, VECTOR_IPI = 40, COPY = 0x8000 };
enum { APIC_ID = 0x20, APIC_EOI = 0xb0, APIC_SVR = 0xf0, APIC_ICR = 0x300,
       APIC_ICR_HIGH = 0x310 };
enum { ICR_INIT = 0x4500, ICR_SIPI = 0x4600, ICR_FIXED = 0x4000,
       ICR_OTHERS = 0xc0000 };

extern u8 smp_begin[], smp_end[], smp_patch[];
u8 smp_stacks[CPUS_MAX][4096] ALIGNED(4096);
u32 smp_cr3;
struct {
    u16 limit;
    u32 base;
} __attribute__((packed)) smp_idt;
void smp_main(u32 cpu);

static volatile u32 n_cpus, rounds, with_pause;
static volatile u32 arrived, phase, lock_word, lost, kept, started;
static volatile u64 shared_sum = 0xcbf29ce484222325ull;
static volatile u64 sums[CPUS_MAX];
static volatile u32 ipis[CPUS_MAX], woken;
static volatile u32 shared_words[1024] ALIGNED(4096);

static volatile u32 *apic(u32 reg)
{
    return (volatile u32 *)(0xfee00000u + reg);
}

static u32 my_number(void)
{
    return *apic(APIC_ID) >> 24;
}

static void relax(void)
{
    if (with_pause) {
        __asm__ volatile("pause" ::: "memory");
    }
}

static void mix(volatile u64 *sum, u32 v)
{
    *sum = (*sum ^ v) * 0x100000001b3ull;
}

static u32 exchange_add(volatile u32 *p, u32 v)
{
    __asm__ volatile("lock xaddl %0, %1" : "+r"(v), "+m"(*p) :: "memory");
    return v;
}

static u32 spin_lock(void)
{
    u32 spins = 0, v;

    for (;;) {
        v = 1;
        __asm__ volatile("xchgl %0, %1" : "+r"(v), "+m"(lock_word) ::
                         "memory");
        if (!v) {
            return spins;
        }
        while (lock_word) {
            spins++;
            relax();
        }
    }
}

static void spin_unlock(void)
{
    BARRIER();
    lock_word = 0;
}

/* All come here before any goes on. Returns how long this one waited. */
static u32 barrier(void)
{
    u32 now = phase, waited = 0;

    if (exchange_add(&arrived, 1) == n_cpus - 1) {
        arrived = 0;
        phase = now + 1;
    } else {
        while (phase == now) {
            waited++;
            relax();
        }
    }
    return waited;
}

static void send(u32 cpu, u32 what)
{
    *apic(APIC_ICR_HIGH) = cpu << 24;
    *apic(APIC_ICR) = what;
}

static void on_ipi(struct rt_frame *f)
{
    u32 cpu = my_number();

    ipis[cpu]++;
    mix(&sums[cpu], f->eip);
    mix(&sums[cpu], f->eax ^ f->ecx ^ f->edx);
    *apic(APIC_EOI) = 0;
}

static void race(u32 cpu, u32 r)
{
    for (u32 i = 0; i < 50; i++) {
        u32 v = lost;                   /* updates get lost here */
        __asm__ volatile("" : "+r"(v));
        lost = v + 1;
        exchange_add(&kept, 1);
    }
    mix(&sums[cpu], spin_lock());
    mix(&shared_sum, cpu << 28 | r);
    mix(&shared_sum, lost);
    spin_unlock();
}

static void change_code(u32 cpu, u32 r)
{
    u32 v;

    if (r % n_cpus == cpu) {
        *(volatile u32 *)(smp_patch + 1) = r * 0x01010101u + cpu;
    }
    for (u32 i = 0; i < 20; i++) {
        __asm__ volatile("call *%1" : "=a"(v) : "r"(smp_patch) : "memory");
        mix(&sums[cpu], v);
    }
}

static void age_pages(u32 cpu, u32 r)
{
    volatile u32 *pte = rt_pte((u32)shared_words);

    if ((r + 1) % n_cpus == cpu) {
        *pte &= ~(u32)(PTE_A | PTE_D);  /* nobody's TLB is told */
    }
    mix(&sums[cpu], shared_words[r % 1024]);
    shared_words[(r + cpu) % 1024] = r;
    mix(&sums[cpu], *pte & (PTE_A | PTE_D));
    if (r % 7 == cpu) {
        invlpg((u32)shared_words);
    }
}

static void interrupt_others(u32 cpu, u32 r)
{
    if (r % n_cpus == cpu) {
        send(0, ICR_FIXED | ICR_OTHERS | VECTOR_IPI);
    }
    if (cpu && r % 5 == 0) {
        send((cpu + 1) % n_cpus, ICR_FIXED | VECTOR_IPI);
    }
}

/* The first CPU wakes the others out of HLT. */
static void sleep_and_wake(u32 cpu, u32 r)
{
    if (r % 16) {
        return;
    }
    if (cpu) {
        cli();
        while (woken != r + 1) {
            __asm__ volatile("sti; hlt; cli" ::: "memory");
        }
        sti();
    } else {
        woken = r + 1;
        send(0, ICR_FIXED | ICR_OTHERS | VECTOR_IPI);
    }
}

static void work(u32 cpu)
{
    for (u32 r = 0; r < rounds; r++) {
        mix(&sums[cpu], barrier());
        race(cpu, r);
        change_code(cpu, r);
        age_pages(cpu, r);
        interrupt_others(cpu, r);
        sleep_and_wake(cpu, r);
    }
    barrier();
}

void smp_main(u32 cpu)
{
    *apic(APIC_SVR) = 0x1ff;
    exchange_add(&started, 1);
    sti();
    barrier();
    work(cpu);
}

static void start_others(void)
{
    started = 0;
    for (u32 i = 1; i < n_cpus; i++) {
        send(i, ICR_INIT);
        send(i, ICR_SIPI | COPY >> 12);
    }
    while (started != n_cpus - 1) {
        relax();
    }
}

void main(void)
{
    n_cpus = option("cpus", 2);
    rounds = option("rounds", 400);
    with_pause = option("pause", 1);
    rt_paging();
    __asm__ volatile("mov %%cr3, %0" : "=r"(smp_cr3));
    __asm__ volatile("sidt %0" : "=m"(smp_idt));
    memcpy((void *)COPY, smp_begin, smp_end - smp_begin);
    rt_on(VECTOR_IPI, on_ipi, GATE_INTR);
    *apic(APIC_SVR) = 0x1ff;
    rt_timer(1000);
    for (u32 lives = 0; lives < 2; lives++) {
        start_others();
        barrier();
        work(0);
    }
    for (u32 i = 0; i < n_cpus; i++) {
        fold64(sums[i]);
        fold(ipis[i]);
    }
    fold64(shared_sum);
    say("lost", kept - lost);
    say("ipi", ipis[0]);
    if (kept != 2 * n_cpus * rounds * 50) {
        rt_fail("locked additions got lost", kept);
    }
}
