/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "codebits": accessed bits of pages that are only executed.
 *
 * An emulator looks a code page up when it translates or searches a block,
 * not at every instruction. So after data on a page with the same place in
 * the TLB has pushed the code page's entry out, whether running code sets
 * its A bit again may depend on which blocks the emulator remembers. Many
 * code pages are run in changing order; their A bits are cleared without
 * flushing, pushed out or not, and read back. Before that each page is missing once:
 * the fault of the fetch must name the address, not only the page. Options:
 * rounds=N (60), dirty=N pages that are written now and then (0).
 */
#include "rt.h"

const char guest_name[] = "codebits";

enum { CODE_PAGES = 96, TLB_SPAN = 4096 * PAGE, BODY = 60 };

static u8 *code_of(u32 i)
{
    return RT_ARENA + i * PAGE + i * 40 % 3000;
}

/* Short instructions and, in odd pages, a jump into the middle. */
static void write_code(u32 i)
{
    static const u8 filler[] = { 0x40, 0xd1, 0xc0, 0x40, 0x40, 0xf8 };
    u8 *p = code_of(i);

    for (u32 k = 0; k < BODY; k++) {
        *p++ = filler[k % sizeof filler];
        if (k == BODY / 2 - 1 && (i & 1)) {
            *p++ = 0xeb;        /* jmp +0 */
            *p++ = 0;
        }
    }
    *p = 0xc3;
}

static u32 NOINLINE run_code(u32 i, u32 eax)
{
    __asm__ volatile("call *%1" : "+a"(eax) : "r"(code_of(i)) : "cc",
                     "memory");
    return eax;
}

static void push_out(u32 i)
{
    volatile u8 *data = RT_ARENA + i * PAGE + TLB_SPAN;

    *data += 1;
}

static void one_round(u32 *seed, u32 r)
{
    u32 set = 0, eax = r;

    for (u32 i = 0; i < CODE_PAGES; i++) {
        *rt_pte((u32)code_of(i)) &= ~(u32)PTE_A;
        if (prng(seed) & 1) {
            push_out(i);
        }
    }
    for (u32 k = 0; k < 3 * CODE_PAGES / 2; k++) {
        eax = run_code(prng(seed) % CODE_PAGES, eax);
    }
    for (u32 i = 0; i < CODE_PAGES; i++) {
        set = set * 31 + (*rt_pte((u32)code_of(i)) & PTE_A);
    }
    fold(set);
    fold(eax);
}

static volatile u32 missing;

static void on_fetch_fault(struct rt_frame *f)
{
    u32 cr2 = read_cr2();

    if (cr2 != missing || f->eip != missing) {
        say("CR2", cr2);
        rt_fail("a fetch must fault at", missing);
    }
    *rt_pte(cr2) |= PTE_P;
    missing = 0;
}

static void fetch_missing_pages(void)
{
    rt_on(14, on_fetch_fault, GATE_INTR);
    for (u32 i = 0; i < CODE_PAGES; i++) {
        missing = (u32)code_of(i);
        *rt_pte(missing) &= ~(u32)PTE_P;
        invlpg(missing);
        fold(run_code(i, i));
        if (missing) {
            rt_fail("no fault of a fetch at", missing);
        }
    }
}

void main(void)
{
    u32 rounds = option("rounds", 60), seed = 7;
    u32 dirty = option("dirty", 0);

    for (u32 i = 0; i < CODE_PAGES; i++) {
        write_code(i);
    }
    rt_paging();
    fetch_missing_pages();
    rt_timer(4000);
    for (u32 r = 0; r < rounds; r++) {
        if (r % 16 == 0) {
            for (u32 i = 0; i < dirty; i++) {
                RT_ARENA[(4096 + i) * PAGE] = (u8)r;
            }
        }
        for (u32 k = 0; k < 20; k++) {
            one_round(&seed, r);
        }
        if (r % 20 == 0) {
            flush_tlb();
            say64("sum", rt_sum);
            put_char('\n');
        }
    }
}
