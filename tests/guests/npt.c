/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "npt": a hypervisor as KVM is one (AMD's SVM): nested paging, and interrupts
 * that it gives to its own guest.
 *
 * The inner guest's memory is scattered by the nested tables and appears page by page.
 * Timer interrupts end its turn; the hypervisor then injects one into it, opens a
 * window for one (VINTR), leaves it to the CPU (V_IRQ), or works on with GIF clear. The
 * inner guest counts how often its handler ran: as often as it was asked to, never
 * within itself. Options: rounds=N (300), loops=N (2000),
 * every=N (0: never): prints the sum so often.
 */
#include "rt.h"

const char guest_name[] = "npt";

enum { MSR_EFER = 0xc0000080, EFER_SVME = 1 << 12, MSR_HSAVE = 0xc0010117 };
enum { EXIT_INTR = 0x60, EXIT_NMI = 0x61, EXIT_VINTR = 0x64, EXIT_VMMCALL = 0x81,
       EXIT_NPF = 0x400 };

/* Offsets in the control block. */
enum { INTERCEPT_1 = 0x0c, INTERCEPT_2 = 0x10, ASID = 0x58, TLB_CONTROL = 0x5c,
       INT_CTL = 0x60, INT_VECTOR = 0x64, INT_STATE = 0x68, EXIT_CODE = 0x70,
       EXIT_INFO_2 = 0x80, EXIT_INT_INFO = 0x88, NESTED = 0x90, EVENT_INJ = 0xa8,
       NESTED_CR3 = 0xb0, ES = 0x400, CS = 0x410, SS = 0x420, DS = 0x430,
       GDTR = 0x460, IDTR = 0x480, EFER = 0x4d0, CR3 = 0x550, CR0 = 0x558,
       DR7 = 0x560, DR6 = 0x568, RFLAGS = 0x570, RIP = 0x578, RSP = 0x5d8 };
enum { ON_INTR = 1, ON_NMI = 2, ON_VINTR = 1 << 4, ON_VMRUN = 1, ON_VMMCALL = 2 };
enum { V_IRQ = 1 << 8, V_IGNORE_TPR = 1 << 20, MASKS_INTR = 1 << 24 };
enum { VECTOR = 0x40, INJECT = 1u << 31 | VECTOR, IF = 0x200, PTE_U = 4,
       PTE_LARGE = 0x80 };

/* The inner guest's memory, as it sees it itself. */
enum { CODE = 0x1000, GDT = 0x4000, IDT = 0x5000, DATA = 0x6000, STACK = 0x7000,
       DIR = 0x10000, TABLE = 0x11000, TOUCHED = 0x20000, TOUCHED_PAGES = 256 };
enum { DEPTH = DATA + 4, WITHIN = DATA + 8, RUNS = DATA + 12 };

static u8 block[PAGE] ALIGNED(PAGE), host_save[PAGE] ALIGNED(PAGE);
static u64 host_pointers[4] ALIGNED(32), nested_pointers[4] ALIGNED(32);
static u64 host_dir[512] ALIGNED(PAGE), nested_dir[512] ALIGNED(PAGE);
static u64 nested_table[1024] ALIGNED(PAGE);
static u32 asked, intr_exits, faults, again;

/* At CODE; an instruction lies on its first and its second page. */
extern u8 inner[], inner_handler[], inner_end[];
__asm__("inner:\n\t"
        "imul $1103515245, %ebx, %ebx\n\t"
        "add $12345, %ebx\n\t"
        "mov %ebx, %eax\n\t"
        "shr $4, %eax\n\t"
        "and $0xff000, %eax\n\t"
        "add %ebx, 0x20000(%eax)\n\t"
        "test $0xf00, %ebx\n\t"
        "jnz 2f\n\t"
        "cli\n\t"
        "mov $50, %edx\n\t"
        "1: dec %edx\n\t"
        "jnz 1b\n\t"
        "sti\n\t"
        "2: call inner_crossing\n\t"
        "dec %ecx\n\t"
        "jnz inner\n\t"
        "vmmcall\n\t"
        "jmp inner\n\t"
        ".org inner + 0xffd\n"
        "inner_crossing:\n\t"
        "addl $0x1020304, 0x6010\n\t"
        "ret\n"
        "inner_handler:\n\t"
        "push %eax\n\t"
        "incl 0x6004\n\t"
        "cmpl $1, 0x6004\n\t"
        "je 3f\n\t"
        "incl 0x6008\n"
        "3: incl 0x600c\n\t"
        "mov $300, %eax\n"
        "4: add %eax, 0x6014\n\t"
        "dec %eax\n\t"
        "jnz 4b\n\t"
        "decl 0x6004\n\t"
        "pop %eax\n\t"
        "iret\n"
        "inner_end:\n");

static volatile u32 *at(u32 offset)
{
    return (volatile u32 *)(block + offset);
}

/* Where a word of the inner guest's is: its pages are not in order. */
static volatile u32 *word(u32 address)
{
    u32 page = (address / PAGE) ^ 5;

    return (volatile u32 *)((u8 *)RT_ARENA + page * PAGE + address % PAGE);
}

static void show(u32 address)
{
    nested_table[address / PAGE] = ((u32)word(address) & ~(PAGE - 1u)) |
        PTE_P | PTE_W | PTE_U;
}

static void fill_memory(void)
{
    u32 handler = CODE + (u32)(inner_handler - inner);

    for (u32 i = 0; i < (u32)(inner_end - inner); i += 4) {
        *word(CODE + i) = *(u32 *)(inner + i);
    }
    *word(GDT + 8) = 0x0000ffff;
    *word(GDT + 12) = 0x00cf9b00;
    *word(GDT + 16) = 0x0000ffff;
    *word(GDT + 20) = 0x00cf9300;
    *word(IDT + 8 * VECTOR) = 8 << 16 | (handler & 0xffff);
    *word(IDT + 8 * VECTOR + 4) = (handler & 0xffff0000) | GATE_INTR << 8;
    *word(DIR) = TABLE | PTE_P | PTE_W;
    for (u32 i = 0; i < 1024; i++) {
        *word(TABLE + 4 * i) = i * PAGE | PTE_P | PTE_W;
    }
    nested_pointers[0] = (u32)nested_dir | PTE_P;
    nested_dir[0] = (u32)nested_table | PTE_P | PTE_W | PTE_U;
    nested_dir[1] = (u32)(nested_table + 512) | PTE_P | PTE_W | PTE_U;
}

/* Nested tables have the format of the hypervisor's own, and QEMU's TCG knows none of
 * 32 bits: so with PAE, in pages of 2 MB. */
static void paging(void)
{
    host_pointers[0] = (u32)host_dir | PTE_P;
    for (u32 i = 0; i < 512; i++) {
        host_dir[i] = (u64)i << 21 | PTE_P | PTE_W | PTE_LARGE;
    }
    __asm__ volatile("mov %%cr4, %%eax\n\t"
                     "or $0x20, %%eax\n\t"
                     "mov %%eax, %%cr4\n\t"
                     "mov %0, %%cr3" :: "r"(host_pointers) : "eax", "memory");
    write_cr0(read_cr0() | 1u << 31);
}

static void segment(u32 offset, u32 selector, u32 attributes, u32 base, u32 limit)
{
    *at(offset) = selector | attributes << 16;
    *at(offset + 4) = limit;
    *at(offset + 8) = base;
}

static void fill_block(void)
{
    segment(CS, 8, 0xc9b, 0, 0xffffffff);
    segment(DS, 16, 0xc93, 0, 0xffffffff);
    segment(ES, 16, 0xc93, 0, 0xffffffff);
    segment(SS, 16, 0xc93, 0, 0xffffffff);
    segment(GDTR, 0, 0, GDT, 23);
    segment(IDTR, 0, 0, IDT, 8 * VECTOR + 7);
    *at(INTERCEPT_1) = ON_INTR | ON_NMI;
    *at(INTERCEPT_2) = ON_VMRUN | ON_VMMCALL;
    *at(ASID) = 1;
    *at(INT_CTL) = MASKS_INTR | 3;              /* and a priority, which is kept */
    *at(NESTED) = 1;
    *at(NESTED_CR3) = (u32)nested_pointers;
    *at(EFER) = EFER_SVME;
    *at(CR0) = read_cr0();
    *at(CR3) = DIR;
    *at(DR6) = 0xffff0ff0;
    *at(DR7) = 0x400;
    *at(RFLAGS) = 2 | IF;
    *at(RIP) = CODE;
    *at(RSP) = STACK + PAGE;
}

static void enter(u32 *ebx, u32 *ecx, u32 *edx)
{
    __asm__ volatile("clgi\n\t"
                     "vmrun\n\t"
                     : "+b"(*ebx), "+c"(*ecx), "+d"(*edx)
                     : "a"(block) : "memory", "cc");
}

/* Every other time the way to its handler lies on a page that it has no longer. */
static void inject(void)
{
    *at(EVENT_INJ) = INJECT;
    if (++asked % 2) {
        nested_table[STACK / PAGE] = 0;
        *at(TLB_CONTROL) = 1;
    }
}

static void give_interrupt(void)
{
    volatile u32 work = 3000;

    if (*at(INT_CTL) & V_IRQ) {
        return;                                 /* it has not taken the last one */
    }
    switch (intr_exits++ % 4) {
    case 0:
    case 1:
        if ((*at(RFLAGS) & IF) && !*at(INT_STATE)) {
            inject();
            break;
        }
        *at(INTERCEPT_1) |= ON_VINTR;
        *at(INT_CTL) |= V_IRQ | V_IGNORE_TPR;
        break;
    case 2:
        *at(INT_VECTOR) = VECTOR;
        *at(INT_CTL) |= V_IRQ | V_IGNORE_TPR;
        asked++;
        break;
    default:
        while (work) {
            work--;
        }
    }
}

static void window_is_open(void)
{
    *at(INTERCEPT_1) &= ~(u32)ON_VINTR;
    *at(INT_CTL) &= ~(u32)V_IRQ;
    inject();
}

static void check_inner(void)
{
    u32 waiting = *at(INT_CTL) & V_IRQ && !(*at(INTERCEPT_1) & ON_VINTR);

    if (*word(WITHIN)) {
        rt_fail("an interrupt came where they are disabled", *word(WITHIN));
    }
    if (*word(RUNS) + waiting != asked) {
        rt_fail("interrupts given and taken differ by",
                *word(RUNS) + waiting - asked);
    }
}

/* With GIF clear. False: it has ended a round. */
static u32 handle_exit(void)
{
    u32 undelivered = *at(EXIT_INT_INFO);

    *at(TLB_CONTROL) = 0;
    if (undelivered >> 31) {
        *at(EVENT_INJ) = undelivered;
        again++;
    }
    switch (*at(EXIT_CODE)) {
    case EXIT_NPF:
        faults++;
        show(*at(EXIT_INFO_2));
        break;
    case EXIT_VINTR:
        window_is_open();
        break;
    case EXIT_VMMCALL:
        *at(RIP) += 3;
        check_inner();
        return 0;
    case EXIT_INTR:
        if (!(undelivered >> 31)) {
            give_interrupt();
        }
        break;
    case EXIT_NMI:
        break;
    default:
        rt_fail("the inner guest ended", *at(EXIT_CODE));
    }
    return 1;
}

void main(void)
{
    u32 rounds = option("rounds", 300), loops = option("loops", 2000);
    u32 every = option("every", 0), ebx = 1, ecx = loops, edx = 0;

    paging();
    __asm__ volatile("wrmsr" :: "c"(MSR_EFER), "a"((u32)rdmsr(MSR_EFER) | EFER_SVME),
                     "d"(0));
    __asm__ volatile("wrmsr" :: "c"(MSR_HSAVE), "a"(host_save), "d"(0));
    fill_memory();
    fill_block();
    rt_timer(1000);
    for (u32 r = 0; r < rounds;) {
        enter(&ebx, &ecx, &edx);
        fold(*at(EXIT_CODE));
        fold(*at(RIP));
        fold(ebx + ecx + edx);
        if (!handle_exit()) {
            fold((u32)nested_table[(TOUCHED / PAGE) + r % TOUCHED_PAGES]);
            nested_table[(TOUCHED / PAGE) + r % TOUCHED_PAGES] = 0;
            ecx = loops;
            r++;
            if (every && r % every == 0) {
                say("sum", (u32)rt_sum);
            }
        }
        __asm__ volatile("stgi\n\tnop" ::: "memory");
    }
    say("asked", asked);
    say("faults", faults);
    say("again", again);
}
