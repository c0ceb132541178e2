/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "random": a random program, made from a seed while it runs.
 *
 * Blocks of random instructions (random-emit.c) change themselves, fault, step,
 * wait, ask devices, play with page tables; the timer interrupts them, a disk
 * writes beside them, CPU modes change between them. All that they see is folded
 * into the sums. Which program it is depends on the seed alone, what it does on
 * every moment of the outside too.
 *
 * Options: seed=N (1), blocks=N (60), hz=N of the timer (2000), dma=1 with a disk
 * of 1 MiB on the first IDE channel, smi=1, modes=0 without other CPU modes (an
 * NMI would find no handler there).
 */
#include "dev.h"
#include "random-emit.h"

const char guest_name[] = "random";

enum { BM_COMMAND = 0, BM_STATUS = 2, BM_TABLE = 4, VECTOR_IDE = 46 };
enum { TRAP_DE = 0, TRAP_DB = 1, TRAP_NM = 7, TRAP_PF = 14, VECTOR_SOFT = 45 };
enum { EFLAGS_TF = 0x100, EFLAGS_RF = 0x10000, PTE_G = 0x100 };

/* random.S */
void random_call(u32 *regs, const void *code);
void random_real(u32 turns);
void random_long(u32 turns);
extern u8 random_low[], random_low_end[];
extern u32 random_seen[8];

u64 random_pml4[512] ALIGNED(4096);
static u64 level3[512] ALIGNED(4096), level2[512] ALIGNED(4096);
static u32 regs[9], steps_left, faults, steps, dma_base, dma_busy;

/* ---- faults ---- */

/* Where in the code it stands, whichever address it runs at. */
static u32 code_offset(u32 eip)
{
    u32 offset = eip - (u32)block_code;

    return offset < CODE_BYTES ? offset : eip - CODE_ALIAS;
}

static u32 is_data(u32 va)
{
    return va - DATA < DATA_BYTES || va - DATA_ALIAS < DATA_BYTES;
}

static void go_behind(struct rt_frame *f)
{
    u32 offset = code_offset(f->eip);

    if (offset >= CODE_BYTES) {
        say("eip", f->eip);
        rt_fail("a fault outside the block", f->vec);
    }
    f->eip += block_next[offset] - offset;
}

static void on_fault(struct rt_frame *f)
{
    u32 cr2 = f->vec == TRAP_PF ? read_cr2() : 0;

    faults++;
    fold(f->vec << 24 | code_offset(f->eip));
    fold(f->err);
    fold(cr2);
    fold(f->ecx);
    fold(f->eflags & RT_EFLAGS_SEEN);
    if (f->vec == TRAP_PF && is_data(cr2)) {
        *rt_pte(cr2) |= PTE_P | PTE_W;
    } else if (f->vec == TRAP_NM) {
        __asm__ volatile("clts");
    } else {
        go_behind(f);
    }
}

/* Software interrupts: the frame is after the instruction already. */
static void on_soft(struct rt_frame *f)
{
    faults++;
    fold(f->vec << 24 | code_offset(f->eip));
}

static void on_debug(struct rt_frame *f)
{
    u32 dr6;

    __asm__ volatile("mov %%dr6, %0" : "=r"(dr6));
    fold(dr6);
    fold(f->eip);
    __asm__ volatile("mov %0, %%dr6" :: "r"(0));
    steps++;
    f->eflags |= EFLAGS_RF;
    if (f->eflags & EFLAGS_TF) {
        if (!steps_left) {
            steps_left = 1 + (f->eip ^ f->eax) % 40;
        }
        if (!--steps_left) {
            f->eflags &= ~(u32)EFLAGS_TF;
        }
    }
}

static void on_ide(struct rt_frame *f)
{
    rt_fold_frame(f);
    dma_busy = 0;
}

/* ---- the world of the blocks ---- */

static void map_windows(void)
{
    for (u32 i = 0; i < CODE_PAGES; i++) {
        *rt_pte(CODE_ALIAS + i * PAGE) = *rt_pte((u32)block_code + i * PAGE);
    }
    for (u32 i = 0; i < DATA_PAGES; i++) {
        *rt_pte(DATA + i * PAGE) |= PTE_P | PTE_W;
        *rt_pte(DATA_ALIAS + i * PAGE) = *rt_pte(DATA + i * PAGE);
    }
    flush_tlb();
}

/* Two pages of the second window change places; the TLB is not always told. */
static void swap_pages(void)
{
    u32 a = DATA_ALIAS + dice(DATA_PAGES) * PAGE;
    u32 b = DATA_ALIAS + dice(DATA_PAGES) * PAGE;
    u32 pte = *rt_pte(a);

    *rt_pte(a) = *rt_pte(b);
    *rt_pte(b) = pte;
    if (one_in(2)) {
        invlpg(a);
        invlpg(b);
    }
}

static void fold_pages(void)
{
    u32 sum = 0;

    for (u32 i = 0; i < DATA_PAGES; i++) {
        sum = sum * 31 + *rt_pte(DATA + i * PAGE);
        sum = sum * 31 + *rt_pte(DATA_ALIAS + i * PAGE);
        if (one_in(6)) {
            *rt_pte(DATA + i * PAGE) &= ~(u32)(PTE_A | PTE_D);
        }
        if (one_in(30)) {
            *rt_pte(DATA_ALIAS + i * PAGE) ^= one_in(2) ? PTE_P : PTE_W;
        }
    }
    fold(sum);
    if (one_in(5)) {
        flush_tlb();
    }
}

static void fold_data(void)
{
    volatile u32 *data = (u32 *)DATA;

    for (u32 i = 0; i < 40; i++) {
        fold(data[dice(DATA_BYTES / 4)]);
    }
}

static void set_debug(void)
{
    u32 code = (u32)block_code + dice(CODE_BYTES), data = DATA + dice(DATA_BYTES);
    u32 control = one_in(3) ? 0x00d10705u : one_in(2) ? 0x00d00700u : 0x700u;

    __asm__ volatile("mov %0, %%dr0" :: "r"(code));
    __asm__ volatile("mov %0, %%dr1" :: "r"(data & ~3u));
    __asm__ volatile("mov %0, %%dr7" :: "r"(control));
}

static void start_dma(void)
{
    static struct {
        u32 address, bytes;
    } table ALIGNED(8);
    u32 sectors = 1 + dice(32);
    u32 to = one_in(4) ? (u32)block_code + dice(4) * PAGE :
        DATA + dice(DATA_PAGES - 4) * PAGE;

    if (!dma_base || dma_busy) {
        return;
    }
    if (to < DATA) {
        sectors = 1;                /* code again: the next block writes it anew */
        to = (u32)block_code + CODE_BYTES - PAGE;
    }
    table.address = to;
    table.bytes = sectors * IDE_SECTOR | 0x80000000u;
    dma_busy = 1;
    BARRIER();
    outl(dma_base + BM_TABLE, (u32)&table);
    outb(dma_base + BM_COMMAND, 0);
    outb(dma_base + BM_STATUS, 6);
    ide_command(dice(2000), sectors, IDE_READ_DMA);
    outb(dma_base + BM_COMMAND, 9);
}

static void end_dma(void)
{
    while (*(volatile u32 *)&dma_busy) {
        __asm__ volatile("pause");
    }
    if (dma_base) {
        outb(dma_base + BM_COMMAND, 0);
        fold(inb(dma_base + BM_STATUS));
        fold(inb(IDE + 7));
    }
}

static void other_modes(void)
{
    if (one_in(2)) {
        random_real(1 + dice(200));
    } else {
        random_long(1 + dice(200));
    }
    for (u32 i = 0; i < 8; i++) {
        fold(random_seen[i]);
    }
}

static void run_block(void)
{
    u8 *entry = emit_block(dice(3 * PAGE), 20 + dice(150));

    for (u32 i = 0; i < 7; i++) {
        regs[i] = dice32();
    }
    block_turns = 1 + dice(one_in(4) ? 60 : 12);
    start_dma();
    if (one_in(4)) {
        entry += CODE_ALIAS - (u32)block_code;
    }
    random_call(regs, entry);
    for (u32 i = 0; i < 8; i++) {
        fold(regs[i]);
    }
    end_dma();
}

static void set_up(void)
{
    for (u32 v = 0; v < 20; v++) {
        if (v != 2 && v != 8) {
            rt_on(v, on_fault, GATE_TRAP);
        }
    }
    rt_on(3, on_soft, GATE_TRAP);
    rt_on(4, on_soft, GATE_TRAP);
    rt_on(VECTOR_SOFT, on_soft, GATE_TRAP);
    rt_on(TRAP_DB, on_debug, GATE_INTR);
    rt_paging();
    write_cr0((read_cr0() | 0x10020) & ~4u);            /* WP, NE, no EM */
    __asm__ volatile("mov %%cr4, %%eax; or $0x688, %%eax; mov %%eax, %%cr4"
                     ::: "eax");                /* DE, PGE, OSFXSR, OSXMMEXCPT */
    __asm__ volatile("fninit");
    map_windows();
    memcpy((void *)0x6000, random_low, random_low_end - random_low);
    random_pml4[0] = (u32)level3 | PTE_P | PTE_W;
    level3[0] = (u32)level2 | PTE_P | PTE_W;
    for (u32 i = 0; i < 32; i++) {
        level2[i] = (u64)i << 21 | 0x80 | PTE_P | PTE_W;
    }
}

void main(void)
{
    u32 blocks = option("blocks", 60), modes = option("modes", 1);
    u32 smi = option("smi", 0);

    dice_state = option("seed", 1) * 2654435761u + 1;
    set_up();
    if (option("dma", 0)) {
        dma_base = ide_busmaster();
        rt_on(VECTOR_IDE, on_ide, GATE_INTR);
        rt_unmask(14);
    }
    rt_timer(option("hz", 2000));
    for (u32 b = 0; b < blocks; b++) {
        if (one_in(3)) {
            set_debug();
        }
        run_block();
        __asm__ volatile("mov %0, %%dr7" :: "r"(0x400));
        fold_pages();
        fold_data();
        if (one_in(3)) {
            swap_pages();
        }
        if (modes && one_in(4)) {
            other_modes();
        }
        if (smi && one_in(6)) {
            outb(0xb2, 0);
        }
        if (one_in(6)) {
            write_cr0(read_cr0() | 8);          /* the FPU faults next */
        }
        if (b % 16 == 15) {
            say64("sum", rt_sum);
            put_char('\n');
        }
    }
    __asm__ volatile("clts");
    say("faults", faults);
    say("steps", steps);
}
