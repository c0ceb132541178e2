/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "dmacode": code that devices write over while it is in use.
 *
 * One routine is called again and again, and between the calls its body
 * comes anew from a device: whole by fw_cfg DMA, one byte by fw_cfg DMA, by
 * IDE programmed I/O and by IDE bus-master DMA. A translation that outlives
 * such a write returns the old value. Needs the fw_cfg files opt/tt/code-a
 * and opt/tt/code-b (each "mov $imm32, %eax; ret", then "rol" variants, one
 * sector long) and the same two as sectors 0 and 1 of the first IDE disk.
 * Option: rounds=N (100).
 */
#include "dev.h"

const char guest_name[] = "dmacode";

enum { CODE_BYTES = IDE_SECTOR, IMMEDIATE_AT = 1 };
enum { BM_COMMAND = 0, BM_STATUS = 2, BM_TABLE = 4 };

static u8 code[PAGE] ALIGNED(4096);
static volatile u32 done;

static u32 NOINLINE call_code(void)
{
    u32 v = 0;

    for (u32 i = 0; i < 20; i++) {
        v = v * 31 + ((u32 (*)(void))code)();
    }
    return v;
}

static u32 find(const char *name)
{
    u32 size, select = fw_find(name, &size);

    if (size != CODE_BYTES) {
        rt_fail("wrong size of the code file", size);
    }
    return select;
}

/* One byte in the middle of the running routine, and nothing else. */
static void patch_byte(u32 select, u32 r)
{
    static u8 before[IMMEDIATE_AT + 4] ALIGNED(16);
    u32 skip = IMMEDIATE_AT + r % 4;

    fw_dma_read(select, before, skip);
    fw_dma_read(0, code + skip, 1);
}

static void read_busmaster(u32 base, u32 sector)
{
    static volatile u32 table[2] ALIGNED(16);

    table[0] = (u32)code;
    table[1] = 0x80000000u | CODE_BYTES;
    done = 0;
    outl(base + BM_TABLE, (u32)table);
    outb(base + BM_STATUS, 6);
    ide_command(sector, 1, IDE_READ_DMA);
    outb(base + BM_COMMAND, 9);
    while (inb(base + BM_STATUS) & 1) {
    }
    outb(base + BM_COMMAND, 0);
    fold(inb(IDE + 7));
}

void main(void)
{
    u32 rounds = option("rounds", 100), base = ide_busmaster();
    u32 file[2] = { find("opt/tt/code-a"), find("opt/tt/code-b") };

    rt_timer(1000);
    for (u32 r = 0; r < rounds; r++) {
        fw_dma_read(file[r & 1], code, CODE_BYTES);
        fold(call_code());
        patch_byte(file[~r & 1], r);
        fold(call_code());
        ide_read_pio(~r & 1, code);
        fold(call_code());
        read_busmaster(base, r & 1);
        fold(call_code());
    }
}
