/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "mmiofp": x87 and SSE instructions on device memory.
 *
 * A CPU executes them, and KVM cannot emulate them. User code loads a float; then the
 * kernel loads, stores, compares and calculates; across the borders of pages, of the
 * device and of a page that is missing; in the shadow of STI, with TF and RF set, and in
 * code that is changed. Needs a VGA device and an HPET. Options: nmis=N (0): wait for so
 * many NMIs first; rounds=N (20), 0: user code only; break=1: with a data breakpoint that
 * is never hit, 2: and the resume flag set in the first instruction of user code; time=N:
 * how long N loads take, in ticks of the HPET, and N that KVM can emulate.
 */
#include "ring3.h"

const char guest_name[] = "mmiofp";

enum { IOAPIC = 0xfec00000, HPET = 0xfed00000, HPET_COUNTER = 0xf0, VGA = 0xa0000,
       DEBUG = 1, UNDEFINED = 6, FAULT = 14, CALL = 4,
       CR0_MP = 2, CR0_EM = 4, CR0_TS = 8, CR0_NE = 0x20,
       CR4_OSFXSR = 0x200, CR4_OSXMMEXCPT = 0x400, EFLAGS_TF = 0x100 };

#define AT(a) (*(volatile u8 (*)[16])(a))

u32 kernel_esp, user_flags;
extern u8 back[], stepped[], user_code[];
static u8 seen[16] ALIGNED(16);
static volatile u32 faults, steps;

static void fold_seen(void)
{
    for (u32 i = 0; i < sizeof seen; i += 4) {
        fold(*(u32 *)(seen + i));
    }
}

/* ---- user code ---- */

static void on_undefined(struct rt_frame *f)
{
    say("undefined", f->eip);
    put_char('\n');
    f->eip += 2;                /* flds (%eax) */
}

/* From user code, with the float in %ebx: back into enter_user(). */
static void on_call(struct rt_frame *f)
{
    fold(f->ebx);
    f->eip = (u32)back;
    f->cs = KERNEL_CODE;
}

/* With the IOAPIC's address in %eax. */
__asm__(".text\n"
        "user_code:\n\t"
        "flds (%eax)\n\t"
        "sub $4, %esp\n\t"
        "fstps (%esp)\n\t"
        "pop %ebx\n\t"
        "int $4\n");

static void NOINLINE enter_user(void)
{
    __asm__ volatile(
        "push %%ebp\n\t"
        "mov %%esp, kernel_esp\n\t"
        "mov %0, %%eax\n\t"
        "mov %%eax, %%ds\n\t"
        "mov %%eax, %%es\n\t"
        "push %0\n\t"
        "push %1\n\t"
        "pushf\n\t"
        "mov user_flags, %%eax\n\t"
        "or %%eax, (%%esp)\n\t"
        "mov %5, %%eax\n\t"
        "push %2\n\t"
        "push %3\n\t"
        "iret\n\t"
        ".globl back\n"
        "back:\n\t"
        "mov kernel_esp, %%esp\n\t"
        "pop %%ebp\n\t"
        "mov %4, %%eax\n\t"
        "mov %%eax, %%ss\n\t"
        "mov %%eax, %%ds\n\t"
        "mov %%eax, %%es\n\t"
        :: "i"(USER_DATA | RING3), "i"(user_stack + sizeof user_stack),
        "i"(USER_CODE | RING3), "i"(user_code), "i"(KERNEL_DATA),
        "i"(IOAPIC)
        : "eax", "ebx", "ecx", "edx", "esi", "edi", "cc", "memory");
}

/* ---- loads, stores, arithmetic ---- */

static void x87_part(u32 a)
{
    u32 flags;

    __asm__ volatile("flds %1\n\t" "fildll %2\n\t" "fstpt %3\n\t" "fadds %1\n\t"
                     "fstpl %4\n\t" "fldt %3\n\t" "fstpt %0"
                     : "=m"(seen) : "m"(AT(IOAPIC + 0x10)),
                     "m"(AT(HPET + HPET_COUNTER)), "m"(AT(a)), "m"(AT(a + 16))
                     : "memory");
    fold_seen();
    __asm__ volatile("fld1\n\t" "fldpi\n\t" "fcomps %1\n\t" "fnstsw %%ax\n\t"
                     "fstps %1\n\t" "fistl %2" : "=a"(flags)
                     : "m"(AT(a + 32)), "m"(AT(a + 48)) : "memory");
    fold(flags & 0xffff);
    __asm__ volatile("fninit");
}

static void sse_part(u32 a)
{
    u32 flags, mxcsr;

    __asm__ volatile("movdqu %4, %%xmm0\n\t" "movq %5, %%xmm1\n\t"
                     "paddd %6, %%xmm0\n\t" "addps %6, %%xmm1\n\t"
                     "movaps %%xmm0, %7\n\t" "movss %8, %%xmm2\n\t"
                     "ucomiss %8, %%xmm0\n\t" "pushf\n\t" "pop %1\n\t"
                     "pxor %%xmm1, %%xmm0\n\t" "movdqa %%xmm0, %0\n\t" "stmxcsr %2\n\t"
                     "movups %%xmm1, %3"
                     : "=m"(seen), "=&r"(flags), "=m"(mxcsr), "=m"(AT(a + 4))
                     : "m"(AT(HPET + HPET_COUNTER)), "m"(AT(HPET + HPET_COUNTER)),
                     "m"(AT(a)), "m"(AT(a + 16)), "m"(AT(IOAPIC + 0x10))
                     : "memory", "cc");
    fold(flags & RT_EFLAGS_SEEN);
    fold(mxcsr);
    fold_seen();
}

/* ---- where pages end ---- */

static void on_fault(struct rt_frame *f)
{
    u32 va = read_cr2();

    faults++;
    fold(va);
    fold(f->err);
    fold(f->eflags & (RT_EFLAGS_SEEN | RT_EFLAGS_RF));
    *rt_pte(va) |= PTE_P;       /* the instruction begins again, with RF set */
}

static void border_part(u32 r)
{
    u32 next = VGA + PAGE + (r & 7) * PAGE;

    __asm__ volatile("movdqu %1, %%xmm3\n\t" "movdqu %%xmm3, %2\n\t"
                     "movdqu %2, %%xmm4\n\t" "paddb %%xmm4, %%xmm3\n\t"
                     "movdqu %%xmm3, %3\n\t" "movdqu %%xmm3, %0"
                     : "=m"(seen) : "m"(AT(next - 5)), "m"(AT(VGA - 8)),
                     "m"(AT(next - 13)) : "memory");
    fold_seen();
    /* Bytes are stored one by one: those before the missing page twice. */
    *rt_pte(next) &= ~(u32)PTE_P;
    invlpg(next);
    __asm__ volatile("pcmpeqb %%xmm4, %%xmm4\n\t" "maskmovdqu %%xmm4, %%xmm3"
                     :: "D"(next - 7) : "memory");
    *rt_pte(next) &= ~(u32)PTE_P;
    invlpg(next);
    __asm__ volatile("movdqu %1, %%xmm5\n\t" "movdqu %%xmm5, %0"
                     : "=m"(seen) : "m"(AT(next - 3)) : "memory");
    fold_seen();
    fold(*(volatile u32 *)next);
}

/* ---- what surrounds an instruction ---- */

static void on_debug(struct rt_frame *f)
{
    u32 dr6;

    steps++;
    __asm__ volatile("mov %%dr6, %0\n\t" "mov %1, %%dr6" : "=&r"(dr6) : "r"(0));
    fold(dr6);
    fold(f->eip - (u32)stepped);
    fold(f->eflags & (RT_EFLAGS_SEEN | RT_EFLAGS_RF));
    f->eflags &= ~(u32)EFLAGS_TF;
}

static void NOINLINE step_part(u32 a)
{
    __asm__ volatile("pushf\n\t" "orl %1, (%%esp)\n\t" "popf\n\t"
                     "movups %2, %%xmm6\n\t"
                     ".globl stepped\n" "stepped:\n\t" "movups %%xmm6, %0"
                     : "=m"(seen) : "i"(EFLAGS_TF), "m"(AT(a)) : "cc", "memory");
    fold_seen();
}

/* An interrupt that came meanwhile is taken after the store. */
static void shadow_part(u32 a, u32 r)
{
    cli();
    for (u32 i = 0; i < r % 16 * 16; i++) {
        inb(0x80);
    }
    __asm__ volatile("sti\n\t" "movdqu %%xmm3, %0" :: "m"(AT(a)) : "memory");
}

static void changed_part(u32 a, u32 r)
{
    static u8 code[16];

    code[0] = r & 1 ? 0xdd : 0xd9;      /* fldl, flds */
    code[2] = 0xdb;
    code[3] = 0x3a;                     /* fstpt (%edx) */
    code[4] = 0xc3;
    BARRIER();
    __asm__ volatile("call *%0" :: "r"(code), "a"(a), "d"(seen) : "memory");
    fold_seen();
}

static u32 ticks(void)
{
    return *(volatile u32 *)(HPET + HPET_COUNTER);
}

static void say_time(u32 loads)
{
    u32 begin = ticks(), middle;

    for (u32 i = 0; i < loads; i++) {
        __asm__ volatile("movd %0, %%xmm7" :: "m"(AT(IOAPIC + 0x10)));
    }
    middle = ticks();
    for (u32 i = 0; i < loads; i++) {
        fold(*(volatile u32 *)(IOAPIC + 0x10));
    }
    say("mmx", middle - begin);
    say("plain", ticks() - middle);
}

static void set_up(void)
{
    u32 cr4;

    write_cr0((read_cr0() & ~(u32)(CR0_EM | CR0_TS)) | CR0_MP | CR0_NE);
    __asm__ volatile("mov %%cr4, %0" : "=r"(cr4));
    cr4 |= CR4_OSFXSR | CR4_OSXMMEXCPT;
    __asm__ volatile("mov %0, %%cr4" :: "r"(cr4));
    __asm__ volatile("fninit");
    if (option("break", 0)) {
        __asm__ volatile("mov %0, %%dr0\n\t" "mov %1, %%dr7"
                         :: "r"(RT_ARENA), "r"(0x10001));
        user_flags = option("break", 0) > 1 ? RT_EFLAGS_RF : 0;
    }
}

void main(void)
{
    u32 wanted = option("nmis", 0), rounds = option("rounds", 20);

    put_str("ready\n");
    load_tables();
    rt_on(UNDEFINED, on_undefined, GATE_INTR);
    rt_on(CALL, on_call, GATE_INTR | RING3 << 5);
    while (rt_nmis < wanted) {
        inb(0x80);
    }
    set_up();
    enter_user();
    rt_paging();
    rt_on(FAULT, on_fault, GATE_TRAP);
    rt_on(DEBUG, on_debug, GATE_INTR);
    *(volatile u32 *)(HPET + 0x10) = 1;
    rt_timer(1000);
    for (u32 r = 0; r < rounds; r++) {
        u32 a = VGA + 0x100 + r % 64 * 64;

        x87_part(a);
        sse_part(a);
        border_part(r);
        step_part(a);
        shadow_part(a, r);
        changed_part(a, r);
    }
    if (option("time", 0)) {
        rt_timer_off();
        say_time(option("time", 0));
    }
    say("faults", faults);
    say("steps", steps);
    fold(faults + steps);
}
