/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "torture": everything that is hard to place exactly, at 4 kHz.
 *
 * Each round runs four parts under the fast timer: faults through trap gates
 * (so that an interrupt can come between a fault and the first instruction
 * of its handler), self-modifying code, string instructions that fault in
 * the middle, and accessed bits cleared without flushing the TLB. Options:
 * rounds=N (8), percent=N of the work of a round (100).
 */
#include "rt.h"

const char guest_name[] = "torture";

enum { STRING_PAGES = 16 };

/* torture.S: fast handlers and the code that they serve */
extern u8 torture_pf[], torture_ud[], torture_bp[];
extern volatile u32 torture_npf, torture_nud, torture_nbp;
void torture_faults(u32 times);
u32 torture_smc(u32 times);

static u32 percent;
static u8 source[STRING_PAGES * PAGE] ALIGNED(4096);
static u8 target[STRING_PAGES * PAGE] ALIGNED(4096);

static u32 part_of(u32 work)
{
    return work * percent / 100;
}

static void faults(void)
{
    rt_gate(14, torture_pf, GATE_TRAP);
    torture_faults(part_of(60000));
    fold(torture_npf);
    fold(torture_nud);
    fold(torture_nbp);
    say("faults", torture_npf + torture_nud + torture_nbp);
}

/* Maps the missing page; ecx says how far the string instruction came. */
static void on_string_fault(struct rt_frame *f)
{
    u32 va = read_cr2();

    fold(va);
    fold(f->ecx);
    fold(f->err);
    fold(f->eip);
    *rt_pte(va) |= PTE_P;
}

static void unmap(u8 *p, u32 *seed)
{
    u32 va = (u32)p + prng(seed) % STRING_PAGES * PAGE;

    *rt_pte(va) &= ~(u32)PTE_P;
    invlpg(va);
}

static void strings(u32 *seed)
{
    rt_on(14, on_string_fault, GATE_TRAP);
    for (u32 k = part_of(300); k; k--) {
        u32 skew = prng(seed) % 64, n = sizeof target - 64, last = 0;
        void *d = target + skew, *s = source + 63 - skew;

        unmap(target, seed);
        unmap(source, seed);
        __asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) :: "memory");
        unmap(target, seed);
        d = target;
        n = sizeof target / 2;
        __asm__ volatile("rep stosb" : "+D"(d), "+c"(n) : "a"(k) : "memory");
        unmap(target, seed);
        s = target;
        n = sizeof target;
        __asm__ volatile("rep lodsb" : "+S"(s), "+c"(n), "+a"(last)
                         :: "memory");
        fold(last);
        fold(target[prng(seed) % sizeof target]);
        source[prng(seed) % sizeof source]++;
    }
}

/*
 * Which entries are set again depends on what the TLB still holds, so on its
 * size and on every flush: a reload of CR3 in some turns is where QEMU would
 * resize it by host time.
 */
static void accessed_bits(u32 *seed)
{
    volatile u8 *window = RT_ARENA;
    u32 count = 0;

    for (u32 k = part_of(150); k; k--) {
        u32 pages = 64u << (k % 5);

        if (k % 8 == 0) {
            flush_tlb();
        }
        for (u32 i = 0; i < pages; i++) {
            *rt_pte((u32)RT_ARENA + i * PAGE) &= ~(u32)(PTE_A | PTE_D);
        }
        for (u32 i = 0; i < 3000; i++) {
            window[prng(seed) % pages * PAGE]++;
        }
        for (u32 i = 0; i < pages; i++) {
            u32 pte = *rt_pte((u32)RT_ARENA + i * PAGE);
            count += (pte & PTE_A) ? 1 : 0;
            count += (pte & PTE_D) ? 65536 : 0;
        }
        fold(count);
    }
    say("aged", count);
}

void main(void)
{
    u32 rounds = option("rounds", 8), seed = 12345;

    percent = option("percent", 100);
    rt_paging();
    rt_gate(6, torture_ud, GATE_TRAP);
    rt_gate(3, torture_bp, GATE_TRAP);
    rt_timer(4000);
    for (u32 r = 0; r < rounds; r++) {
        u32 code;
        faults();
        code = torture_smc(part_of(30000));
        fold(code);
        say("smc", code);
        strings(&seed);
        accessed_bits(&seed);
        say("ticks", rt_ticks);
        say64("irqs", rt_irq_sum);
        say64("sum", rt_sum);
        put_char('\n');
    }
    for (u32 k = 0; k < 50; k++) {
        hlt();
    }
}
