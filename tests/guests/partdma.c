/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "partdma": a disk writes a page of memory, then parts of it that the guest has
 * cleared, so that they are as before. Then one instruction has fw_cfg write two places that
 * stand side by side. Needs a disk on the first IDE channel whose words are never 0.
 */
#include "dev.h"

const char guest_name[] = "partdma";

enum { BM_COMMAND = 0, BM_STATUS = 2, BM_TABLE = 4, READY = 4 };

static volatile u32 *const target = (u32 *)(32 << 20);

/* @sectors of the disk, to where they stand in the page. */
static void read(u32 base, u32 first, u32 sectors)
{
    static struct {
        u32 address, bytes;
    } table ALIGNED(8);

    for (u32 i = first * IDE_SECTOR / 4; i < (first + sectors) * IDE_SECTOR / 4; i++) {
        target[i] = 0;
    }
    table.address = (u32)target + first * IDE_SECTOR;
    table.bytes = 0x80000000u | sectors * IDE_SECTOR;
    BARRIER();
    outl(base + BM_TABLE, (u32)&table);
    outb(base + BM_STATUS, 6);
    ide_command(first, sectors, IDE_READ_DMA);
    outb(base + BM_COMMAND, 9);
    while (!(inb(base + BM_STATUS) & READY)) {
    }
    outb(base + BM_COMMAND, 0);
    fold(inb(IDE + 7));
    fold(target[first * IDE_SECTOR / 4]);
}

/* fw_cfg's signature, and behind it the descriptor that asks for it: its first word is
 * written, too, when all is done. */
static volatile struct {
    u32 data, control, length, high, low;
} fw_cfg ALIGNED(8);

static void read_fw_cfg(void)
{
    fw_cfg.control = __builtin_bswap32(8 | 2);          /* select item 0, read it */
    fw_cfg.length = __builtin_bswap32(sizeof(fw_cfg.data));
    fw_cfg.low = __builtin_bswap32((u32)&fw_cfg.data);
    BARRIER();
    outl(0x518, __builtin_bswap32((u32)&fw_cfg.control));
    fold(fw_cfg.data);
    fold(fw_cfg.control);
}

void main(void)
{
    u32 base = ide_busmaster();

    read(base, 0, 8);
    read(base, 0, 4);
    read(base, 6, 2);
    read_fw_cfg();
}
