/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "selfdma": watches its own memory while a disk writes to it.
 *
 * A bus-master read fills many pages. The guest looks at the last and the
 * first word of the target all the time and counts its looks until each of
 * them changes and until the device says that it is ready: data that become
 * visible at no recorded moment give other counts. Needs a disk of at least
 * 128 KiB on the first IDE channel, whose words are never 0. Option:
 * rounds=N (60).
 */
#include "dev.h"

const char guest_name[] = "selfdma";

enum { BM_COMMAND = 0, BM_STATUS = 2, BM_TABLE = 4, VECTOR_IDE = 46 };
enum { SECTORS = 256, BYTES = SECTORS * IDE_SECTOR, PIECE = 32768,
       PIECES = BYTES / PIECE };

static volatile u32 *const target = (u32 *)(32 << 20);
static volatile u32 interrupts;

static void on_ide(struct rt_frame *f)
{
    interrupts++;
    rt_fold_frame(f);
    fold(target[0]);
    fold(target[BYTES / 4 - 1]);
}

static void start(u32 base)
{
    static struct {
        u32 address, bytes;
    } table[PIECES] ALIGNED(4096);

    for (u32 i = 0; i < PIECES; i++) {
        table[i].address = (u32)target + i * PIECE;
        table[i].bytes = PIECE | (i == PIECES - 1 ? 0x80000000u : 0);
    }
    BARRIER();
    outl(base + BM_TABLE, (u32)table);
    outb(base + BM_STATUS, 6);
    ide_command(0, SECTORS & 255, IDE_READ_DMA);
    outb(base + BM_COMMAND, 9);
}

/* Counts looks until the word at changes or the disk interrupts. */
static void NOINLINE watch(u32 base)
{
    u32 looks = 0, first_at = 0, middle_at = 0, last_at = 0;

    while (!interrupts) {
        looks++;
        if (!last_at && target[BYTES / 4 - 1]) {
            last_at = looks;
        }
        if (!middle_at && target[BYTES / 8]) {
            middle_at = looks;
        }
        if (!first_at && target[0]) {
            first_at = looks;
        }
    }
    fold(first_at);
    fold(middle_at);
    fold(last_at);
    fold(looks);
    fold(inb(base + BM_STATUS));
    outb(base + BM_COMMAND, 0);
    fold(inb(IDE + 7));
}

void main(void)
{
    u32 rounds = option("rounds", 60), base = ide_busmaster();

    rt_on(VECTOR_IDE, on_ide, GATE_INTR);
    rt_unmask(14);
    rt_timer(1000);
    for (u32 r = 0; r < rounds; r++) {
        memset((void *)target, 0, BYTES);
        interrupts = 0;
        start(base);
        watch(base);
        for (u32 i = 0; i < BYTES / 4; i += 61) {
            fold(target[i]);
        }
    }
}
