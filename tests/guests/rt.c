/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Runtime of the bare-metal guests; what each part promises is in rt.h.
 */
#include "rt.h"

enum {
    COM1 = 0x3f8, PIC1 = 0x20, PIC2 = 0xa0, PIT = 0x40,
    PM_CONTROL = 0x604, PM_SLEEP_S5 = 0x2000,
    VECTORS = 48, IRQ_BASE = 32,
    MB_MAGIC = 0x2badb002, MB_HAS_CMDLINE = 4,
};

volatile u64 rt_sum = 0xcbf29ce484222325ull;
volatile u64 rt_irq_sum = 0xcbf29ce484222325ull;
volatile u32 rt_ticks, rt_nmis;

extern u8 rt_stubs[];
static rt_handler *handlers[VECTORS];
static const char *command_line = "";
static u32 line_is_open, rf_matters;
static u32 page_dir[1024] ALIGNED(4096);
static u32 page_tables[RT_MAPPED >> 22][1024] ALIGNED(4096);
static u32 page_table_high[1024] ALIGNED(4096);
static struct {
    u16 low, selector;
    u8 zero, type;
    u16 high;
} __attribute__((packed)) idt[VECTORS];

void *memcpy(void *d, const void *s, u32 n)
{
    void *r = d;
    __asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) :: "memory");
    return r;
}

void *memset(void *d, int c, u32 n)
{
    void *r = d;
    __asm__ volatile("rep stosb" : "+D"(d), "+c"(n) : "a"(c) : "memory");
    return r;
}

void put_char(char c)
{
    while (!(inb(COM1 + 5) & 0x20)) {
    }
    outb(COM1, (u8)c);
    line_is_open = c != '\n';
}

/* The runtime's own lines begin on a line of their own. */
static void put_line_start(void)
{
    if (line_is_open) {
        put_char('\n');
    }
    put_str(guest_name);
}

void put_str(const char *s)
{
    while (*s) {
        put_char(*s++);
    }
}

void put_hex(u32 v)
{
    for (int shift = 28; shift >= 0; shift -= 4) {
        put_char("0123456789abcdef"[(v >> shift) & 15]);
    }
}

void say(const char *name, u32 v)
{
    put_char(' ');
    put_str(name);
    put_char('=');
    put_hex(v);
}

void say64(const char *name, u64 v)
{
    say(name, (u32)(v >> 32));
    put_hex((u32)v);
}

u32 option(const char *name, u32 def)
{
    for (const char *p = command_line; *p; p++) {
        const char *a = p, *b = name;
        if (p != command_line && p[-1] != ' ') {
            continue;
        }
        while (*b && *a == *b) {
            a++;
            b++;
        }
        if (!*b && *a == '=') {
            u32 v = 0;
            for (a++; *a >= '0' && *a <= '9'; a++) {
                v = v * 10 + (u32)(*a - '0');
            }
            return v;
        }
    }
    return def;
}

void rt_power_off(void)
{
    cli();
    outw(PM_CONTROL, PM_SLEEP_S5);
    for (;;) {
        hlt();
    }
}

void rt_fail(const char *why, u32 v)
{
    cli();
    put_line_start();
    put_str(": FAIL ");
    put_str(why);
    say("value", v);
    put_char('\n');
    rt_power_off();
}

void rt_gate(u32 vec, void *entry, u32 gate)
{
    u32 a = (u32)entry;

    idt[vec].low = (u16)a;
    idt[vec].high = (u16)(a >> 16);
    idt[vec].selector = 8;
    idt[vec].type = (u8)gate;
}

void rt_on(u32 vec, rt_handler *h, u32 gate)
{
    handlers[vec] = h;
    rt_gate(vec, rt_stubs + vec * 16, gate);
}

static void irq_mix(u32 v)
{
    rt_irq_sum = (rt_irq_sum ^ v) * 0x100000001b3ull;
}

/* The frame's own esp slot is a fixed offset from its address: left out. */
void rt_fold_frame(const struct rt_frame *f)
{
    irq_mix(f->vec);
    irq_mix(f->eip);
    irq_mix(f->eflags & (RT_EFLAGS_SEEN | RT_EFLAGS_RF));
    irq_mix(f->eax);
    irq_mix(f->ebx);
    irq_mix(f->ecx);
    irq_mix(f->edx);
    irq_mix(f->esi);
    irq_mix(f->edi);
    irq_mix(f->ebp);
    irq_mix((u32)f);
}

/* Called by the stubs in boot.S. */
void rt_trap(struct rt_frame *f);
void rt_trap(struct rt_frame *f)
{
    if (!handlers[f->vec] && (f->vec == IRQ_BASE + 7 || f->vec == IRQ_BASE + 15)) {
        /* Spurious: a device that is gone lowered its line before the PIC was asked. */
        if (f->vec == IRQ_BASE + 15) {
            outb(PIC1, 0x20);
        }
        return;
    }
    if (!handlers[f->vec]) {
        put_str(" trap");
        say("vec", f->vec);
        say("err", f->err);
        say("eip", f->eip);
        say("cr2", read_cr2());
        rt_fail("unexpected trap", f->vec);
    }
    handlers[f->vec](f);
    if (f->vec >= IRQ_BASE + 8) {
        outb(PIC2, 0x20);
    }
    if (f->vec >= IRQ_BASE) {
        outb(PIC1, 0x20);
    }
}

/* Only a fault, or an interrupt within a repeated string instruction, shows RF. */
static void check_rf(const struct rt_frame *f)
{
    u8 code = *(const u8 *)f->eip;

    if (f->eflags & RT_EFLAGS_RF && code != 0xf2 && code != 0xf3) {
        rt_fail("an interrupt's frame has RF set at", f->eip);
    }
}

static void on_timer(struct rt_frame *f)
{
    if (!rt_ticks++) {
        rf_matters = option("rf", 0);
    }
    if (rf_matters) {
        check_rf(f);
    }
    rt_fold_frame(f);
}

static void on_nmi(struct rt_frame *f)
{
    rt_nmis++;
    rt_fold_frame(f);
}

void rt_unmask(u32 irq)
{
    if (irq >= 8) {
        outb(PIC2 + 1, inb(PIC2 + 1) & ~(1u << (irq - 8)));
        irq = 2;
    }
    outb(PIC1 + 1, inb(PIC1 + 1) & ~(1u << irq));
}

void rt_timer(u32 hz)
{
    u32 divisor = 1193182 / option("hz", hz);

    outb(PIT + 3, 0x34);
    outb(PIT, divisor);
    outb(PIT, divisor >> 8);
    rt_on(IRQ_BASE, on_timer, GATE_INTR);
    rt_unmask(0);
    sti();
}

void rt_timer_off(void)
{
    cli();
    outb(PIC1 + 1, inb(PIC1 + 1) | 1);
    outb(PIT + 3, 0x30);
}

volatile u32 *rt_pte(u32 va)
{
    return &page_tables[va >> 22][(va >> 12) & 1023];
}

void rt_paging(void)
{
    for (u32 i = 0; i < RT_MAPPED >> 22; i++) {
        page_dir[i] = (u32)page_tables[i] | PTE_P | PTE_W;
        for (u32 j = 0; j < 1024; j++) {
            page_tables[i][j] = i << 22 | j << 12 | PTE_P | PTE_W;
        }
    }
    page_dir[0x3fb] = (u32)page_table_high | PTE_P | PTE_W;
    for (u32 j = 0; j < 1024; j++) {
        page_table_high[j] = 0xfec00000u | j << 12 | PTE_P | PTE_W | 0x18;
    }
    __asm__ volatile("mov %0, %%cr3" :: "r"(page_dir) : "memory");
    write_cr0(read_cr0() | 0x80000000u);
}

static void pic_init(void)
{
    outb(PIC1, 0x11);
    outb(PIC1 + 1, IRQ_BASE);
    outb(PIC1 + 1, 4);
    outb(PIC1 + 1, 1);
    outb(PIC2, 0x11);
    outb(PIC2 + 1, IRQ_BASE + 8);
    outb(PIC2 + 1, 2);
    outb(PIC2 + 1, 1);
    outb(PIC1 + 1, 0xff);
    outb(PIC2 + 1, 0xff);
}

/* Called once by boot.S. */
void rt_start(u32 magic, const u32 *info);
void rt_start(u32 magic, const u32 *info)
{
    struct {
        u16 limit;
        u32 base;
    } __attribute__((packed)) idt_pointer = { sizeof idt - 1, (u32)idt };

    if (magic == MB_MAGIC && (info[0] & MB_HAS_CMDLINE)) {
        command_line = (const char *)info[4];
    }
    for (u32 i = 0; i < VECTORS; i++) {
        rt_gate(i, rt_stubs + i * 16, GATE_INTR);
    }
    __asm__ volatile("lidt %0" :: "m"(idt_pointer));
    rt_on(2, on_nmi, GATE_INTR);
    pic_init();
    put_str(guest_name);
    put_str(": start\n");
    main();
    rt_timer_off();
    put_line_start();
    put_str(": end");
    say("ticks", rt_ticks);
    say("nmis", rt_nmis);
    say64("irqs", rt_irq_sum);
    say64("sum", rt_sum);
    put_char('\n');
    rt_power_off();
}
