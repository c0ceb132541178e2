/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "mmiox": device memory accessed in awkward ways.
 *
 * Unaligned and page-crossing loads and stores to planar VGA memory, to the
 * HPET, the local APIC and the I/O APIC; moves from device memory to a page
 * that is missing, so that the instruction loads twice; exchanges and
 * read-modify-write. The HPET and the APIC timer count host time. Needs a
 * VGA device and an HPET. Option: rounds=N (150).
 */
#include "rt.h"

const char guest_name[] = "mmiox";

enum { VGA = 0xa0000, IOAPIC = 0xfec00000, HPET = 0xfed00000,
       LAPIC = 0xfee00000, HPET_COUNTER = 0xf0, LAPIC_COUNT = 0x390 };

#define REG8(a) (*(volatile u8 *)(a))
#define REG16(a) (*(volatile u16 *)(a))
#define REG32(a) (*(volatile u32 *)(a))
#define REG64(a) (*(volatile u64 *)(a))

static u8 target[2 * PAGE] ALIGNED(4096);
static volatile u32 faults;

static void on_fault(struct rt_frame *f)
{
    u32 va = read_cr2();

    faults++;
    fold(va);
    fold(f->ecx);
    fold(f->esi);
    *rt_pte(va) |= PTE_P;
}

/* Planar 64 KiB at 0xa0000: no chain 4, no odd/even, all four planes. */
static void vga_planar(void)
{
    static const u8 sequencer[][2] = { { 2, 15 }, { 4, 6 } };
    static const u8 graphics[][2] = { { 5, 0 }, { 6, 5 }, { 8, 255 } };

    for (u32 i = 0; i < sizeof sequencer / 2; i++) {
        outw(0x3c4, (u32)sequencer[i][1] << 8 | sequencer[i][0]);
    }
    for (u32 i = 0; i < sizeof graphics / 2; i++) {
        outw(0x3ce, (u32)graphics[i][1] << 8 | graphics[i][0]);
    }
}

static void vga_accesses(u32 r)
{
    u32 a = VGA + r * 37 % 0x8000;

    outw(0x3c4, (1u << (r & 3)) << 8 | 2);      /* one plane to write */
    outw(0x3ce, (r & 3) << 8 | 4);              /* the same to read */
    REG32(a + 1) = r * 0x01010101u;
    fold(REG32(a + 1));
    fold(REG32(a + 2));
    REG32(VGA + 0x0ffe) = r ^ 0x12345678u;      /* crosses a page */
    fold(REG32(VGA + 0x0ffd));
    fold(REG16(VGA + 0x0fff));
    __asm__ volatile("lock xaddl %0, %1" : "+r"(r), "+m"(REG32(VGA + 0x1ffe))
                     :: "cc");
    fold(r);
    __asm__ volatile("addl $77, %0" : "+m"(REG32(VGA + 0x2fff)) :: "cc");
    fold(REG32(VGA + 0x2fff));
}

static void timer_accesses(void)
{
    fold64(REG64(HPET));
    fold(REG32(HPET + HPET_COUNTER));
    fold(REG32(HPET + HPET_COUNTER + 4));
    fold(REG32(LAPIC + LAPIC_COUNT));
    fold(REG32(LAPIC + 0x30));
    REG32(IOAPIC) = 1;
    fold(REG32(IOAPIC + 0x10));
    fold(REG32(HPET + 0xffe));                  /* into the page after */
    fold(REG16(HPET + HPET_COUNTER + 1));
}

/* The load happens, the store faults, and all of it happens again. */
static void move_and_fault(u32 from, u32 bytes)
{
    void *s = (void *)from, *d = target + PAGE - bytes / 2;
    u32 n = bytes;

    *rt_pte((u32)target + PAGE) &= ~(u32)PTE_P;
    invlpg((u32)target + PAGE);
    if (bytes == 4) {
        __asm__ volatile("movsl" : "+S"(s), "+D"(d) :: "memory");
    } else {
        __asm__ volatile("rep movsb" : "+S"(s), "+D"(d), "+c"(n)
                         :: "memory");
    }
    for (u32 i = 0; i < bytes; i++) {
        fold(target[PAGE - bytes / 2 + i]);
    }
}

static void push_and_fault(void)
{
    u32 v, top = (u32)target + PAGE + 4;

    *rt_pte((u32)target + PAGE) &= ~(u32)PTE_P;
    invlpg((u32)target + PAGE);
    /* xchg with a missing page after a load from the device */
    __asm__ volatile("mov %2, %0\n\t" "xchg %0, (%1)"
                     : "=&r"(v) : "r"(top), "m"(REG32(LAPIC + LAPIC_COUNT))
                     : "memory");
    fold(v);
    fold(REG32(top));
}

void main(void)
{
    u32 rounds = option("rounds", 150);

    rt_paging();
    rt_on(14, on_fault, GATE_TRAP);
    vga_planar();
    REG32(HPET + 0x10) = 1;
    REG32(LAPIC + 0x3e0) = 11;
    REG32(LAPIC + 0x320) = 0x10020;             /* masked */
    REG32(LAPIC + 0x380) = 0xffffffffu;
    rt_timer(2000);
    for (u32 r = 0; r < rounds; r++) {
        vga_accesses(r);
        timer_accesses();
        move_and_fault(HPET + HPET_COUNTER, 4);
        move_and_fault(LAPIC + LAPIC_COUNT, 4);
        move_and_fault(VGA + 0x0ffc, 8);
        push_and_fault();
    }
    say("faults", faults);
    fold(faults);
}
