/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "vfuedu": drives an `edu` device, by registers, DMA both ways and interrupts.
 *
 * It sends a page to the device and lets it write the page back elsewhere, and looks
 * at the end of the target all the time until the interrupt is there: DMA or
 * interrupts that a replay places elsewhere give other counts. Option: rounds=N (40).
 * touch=N writes to each page of N MiB before (0), for figures. poll=1: it looks at
 * memory only, with interrupts off.
 * With lost=1 it goes on until the device's registers read as all ones, and says so.
 */
#include "dev.h"

const char guest_name[] = "vfuedu";

enum { ID = 0, INVERT = 4, FACTORIAL = 8, STATUS = 0x20, PENDING = 0x24, ACK = 0x64,
       SRC = 0x80, DST = 0x88, COUNT = 0x90, COMMAND = 0x98, BUFFER = 0x40000 };
enum { RUN = 1, TO_RAM = 2, SIGNAL = 4, BYTES = 4096, EDU = 0x11e81234 };

static volatile u32 *regs;
static volatile u32 *const source = (u32 *)(32 << 20);
static volatile u32 *const target = (u32 *)(33 << 20);
static volatile u32 interrupts;

static u32 edu(u32 at)
{
    return regs[at / 4];
}

static void set_edu(u32 at, u32 v)
{
    regs[at / 4] = v;
}

static void on_edu(struct rt_frame *f)
{
    u32 pending = edu(PENDING);

    rt_fold_frame(f);
    fold(pending);
    set_edu(ACK, pending);
    interrupts += pending && pending != ~0u;
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

/* Counts looks until the device is ready: false when it is gone. */
static u32 transfer(u32 from, u32 to, u32 command)
{
    u32 looks = 0, seen_at = 0, before = target[BYTES / 4 - 1];

    interrupts = 0;
    set_edu(SRC, from);
    set_edu(DST, to);
    set_edu(COUNT, BYTES);
    set_edu(COMMAND, RUN | SIGNAL | command);
    while (!interrupts) {
        looks++;
        if (!seen_at && target[BYTES / 4 - 1] != before) {
            seen_at = looks;
        }
        if (!(looks & 0xfff) && edu(ID) == ~0u) {
            return 0;
        }
    }
    fold(looks);
    fold(seen_at);
    fold(edu(COMMAND));
    return 1;
}

/* One page there, its end seen in a register; one page back, its end seen in memory. */
static u32 polled_round(u32 r)
{
    for (u32 i = 0; i < BYTES / 4; i++) {
        source[i] = r + 1;
    }
    set_edu(SRC, (u32)source);
    set_edu(DST, BUFFER);
    set_edu(COUNT, BYTES);
    set_edu(COMMAND, RUN);
    while (edu(COMMAND) & RUN) {
    }
    set_edu(SRC, BUFFER);
    set_edu(DST, (u32)target);
    set_edu(COMMAND, RUN | TO_RAM);
    while (target[BYTES / 4 - 1] != r + 1) {
    }
    return 1;
}

static u32 one_round(u32 r)
{
    u32 seed = r;

    for (u32 i = 0; i < BYTES / 4; i++) {
        source[i] = prng(&seed);
    }
    if (!transfer((u32)source, BUFFER, 0) ||
        !transfer(BUFFER, (u32)target, TO_RAM)) {
        return 0;
    }
    for (u32 i = 0; i < BYTES / 4; i++) {
        if (target[i] != source[i]) {
            rt_fail("DMA brought something else at", i);
        }
        fold(target[i]);
    }
    set_edu(INVERT, r);
    if (edu(INVERT) != ~r && edu(ID) != ~0u) {
        rt_fail("the device is not alive", edu(INVERT));
    }
    set_edu(STATUS, 0x80);
    interrupts = 0;
    set_edu(FACTORIAL, 5);
    for (u32 looks = 1; !interrupts; looks++) {
        if (!(looks & 0xfff) && edu(ID) == ~0u) {
            return 0;
        }
    }
    fold(edu(FACTORIAL));
    set_edu(STATUS, 0);
    return 1;
}

void main(void)
{
    u32 rounds = option("rounds", 40), lost = option("lost", 0), devfn = find(), r, irq;
    u32 poll = option("poll", 0);

    pci_write(devfn, 4, pci_read(devfn, 4) | 6);
    regs = (u32 *)(pci_read(devfn, 0x10) & ~15u);
    say("id", edu(ID));
    for (u32 page = 0; page < option("touch", 0) * 256; page++) {
        *(volatile u32 *)((40u << 20) + page * PAGE) = page + 1;
    }
    irq = pci_read(devfn, 0x3c) & 15;
    rt_on(32 + irq, on_edu, GATE_INTR);
    if (!poll) {
        rt_unmask(irq);
        rt_timer(1000);
    }
    for (r = 0; r < rounds || lost; r++) {
        if (!(poll ? polled_round : one_round)(r)) {
            break;
        }
        if (lost && r == 3) {
            put_str("READY\n");
        }
    }
    if (r < rounds || lost) {
        put_str("the device is gone\n");
    }
    say("rounds", r);
}
