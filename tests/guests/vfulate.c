/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "vfulate": resets the machine while an `edu` device has DMA to do and four MSI
 * vectors, and looks after the reset whether anything of it still comes.
 *
 * The device (edu-late of the tests' server) does its DMA when it is reset, or no longer
 * bus master. What it writes then is there at once, and never over what the guest writes
 * there later. With master=1 it is not reset, but is no bus master for a while. With
 * lost=1 it is lost, and may do nothing more. With slow=1 it has three seconds for its DMA,
 * and nobody asks it anything meanwhile.
 */
#include "dev.h"

const char guest_name[] = "vfulate";

enum { ID = 0, FACTORIAL = 8, SRC = 0x80, DST = 0x88, COUNT = 0x90, COMMAND = 0x98,
       BUFFER = 0x40000, RUN = 1, TO_RAM = 2, WORDS = 1024, EDU = 0x11e81234,
       COMMAND_REGISTER = 4, MASTER = 6, MSI = 0x40, MSI_ON = 0x210000, MINE = 0x5a5a1234 };

/* Kept over the reset: nothing else writes here. */
static volatile u32 *const boots = (u32 *)(48 << 20);
static volatile u32 *const target = (u32 *)(33 << 20);
static volatile u32 *regs;
static volatile u32 interrupts;

static void on_edu(struct rt_frame *f)
{
    rt_fold_frame(f);
    interrupts++;
    fold(regs[ID]);
}

static u32 find(void)
{
    for (u32 devfn = 0; devfn < 256; devfn++) {
        if (pci_read(devfn, 0) == EDU) {
            return devfn;
        }
    }
    rt_fail("there is no edu", 0);
}

static void mark_target(void)
{
    for (u32 i = 0; i < WORDS; i++) {
        target[i] = MINE + i;
    }
}

static u32 others(void)
{
    u32 n = 0;

    for (u32 i = 0; i < WORDS; i++) {
        n += target[i] != MINE + i;
    }
    return n;
}

static void wait_ticks(u32 n)
{
    for (u32 end = rt_ticks + n; rt_ticks < end;) {
        hlt();
    }
}

static void begin_dma(void)
{
    regs[SRC / 4] = BUFFER;
    regs[DST / 4] = (u32)target;
    regs[COUNT / 4] = WORDS * 4;
    regs[COMMAND / 4] = RUN | TO_RAM;
}

static void reset_machine(u32 devfn)
{
    *boots = MINE;
    cli();
    pci_write(devfn, MSI + 4, 0xfee00000);
    pci_write(devfn, MSI + 12, 0x40);
    pci_write(devfn, MSI, MSI_ON | 5);
    mark_target();
    begin_dma();
    put_char('\n');
    outb(0xcf9, 2);
    outb(0xcf9, 6);
    for (;;) {
        hlt();
    }
}

static void say_others(u32 came)
{
    fold(regs[ID]);
    wait_ticks(50);
    say("came", came);
    say("others", others());
}

static void stop_master(u32 devfn)
{
    u32 command = pci_read(devfn, COMMAND_REGISTER), came;

    mark_target();
    begin_dma();
    pci_write(devfn, COMMAND_REGISTER, command & ~4u);
    came = others();
    mark_target();
    pci_write(devfn, COMMAND_REGISTER, command);
    say_others(came);
}

static void lose(u32 devfn)
{
    u32 irq = pci_read(devfn, 0x3c) & 15, before;

    rt_on(32 + irq, on_edu, GATE_INTR);
    rt_unmask(irq);
    mark_target();
    begin_dma();
    regs[FACTORIAL / 4] = 1;            /* it lies */
    say("id", regs[ID]);
    before = interrupts;
    wait_ticks(500);
    say("interrupts", interrupts - before);
    say("others", others());
}

void main(void)
{
    u32 devfn = find(), lost = option("lost", 0), was_reset = *boots == MINE, came = 0;

    if (was_reset) {                    /* what came with the reset is there */
        came = others();
        mark_target();
    }
    pci_write(devfn, COMMAND_REGISTER, pci_read(devfn, COMMAND_REGISTER) | MASTER);
    regs = (u32 *)(pci_read(devfn, 0x10) & ~15u);
    rt_timer(1000);
    if (lost) {
        lose(devfn);
    } else if (option("slow", 0)) {
        begin_dma();
        wait_ticks(3000);
        say("id", regs[ID]);
    } else if (option("master", 0)) {
        stop_master(devfn);
    } else if (!was_reset) {
        reset_machine(devfn);
    } else {
        say_others(came);
    }
}
