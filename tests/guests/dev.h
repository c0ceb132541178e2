/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Devices that more than one guest uses: fw_cfg, PCI configuration space and
 * the first IDE disk, by programmed I/O and by bus-master DMA.
 */
#ifndef DEV_H
#define DEV_H

#include "rt.h"

enum {
    FW_SELECT = 0x510, FW_DATA = 0x511, FW_DMA = 0x514, FW_DIR = 0x19,
    FW_DMA_READ = 2, FW_DMA_SKIP = 4, FW_DMA_SELECT = 8,
    FW_NAME_MAX = 56,
    IDE = 0x1f0, IDE_ALT = 0x3f6, IDE_SECTOR = 512,
    IDE_ERR = 1, IDE_DRQ = 8, IDE_BSY = 0x80,
    IDE_READ_PIO = 0x20, IDE_WRITE_PIO = 0x30, IDE_READ_DMA = 0xc8,
};

static inline u32 swap32(u32 v)
{
    return __builtin_bswap32(v);
}

/* fw_cfg */

struct fw_dma {
    u32 control, length;        /* big-endian, as is the address */
    u32 address_high, address_low;
};

static inline u32 fw_read_be(u32 bytes)
{
    u32 v = 0;
    while (bytes--) {
        v = v << 8 | inb(FW_DATA);
    }
    return v;
}

/* Selector of a named file; its size in *size. Fails the guest if absent. */
static inline u32 fw_find(const char *name, u32 *size)
{
    outw(FW_SELECT, FW_DIR);
    for (u32 left = fw_read_be(4); left; left--) {
        u32 same = 1, bytes = fw_read_be(4), select = fw_read_be(2);
        const char *want = name;

        fw_read_be(2);
        for (u32 i = 0; i < FW_NAME_MAX; i++) {
            char c = (char)inb(FW_DATA);
            same &= c == *want;
            want += *want ? 1 : 0;
        }
        if (same) {
            *size = bytes;
            return select;
        }
    }
    put_str(name);
    rt_fail("no such fw_cfg file", 0);
}

/* One DMA transfer from the selected or the given (select != 0) file. */
static inline void fw_dma_read(u32 select, void *to, u32 length)
{
    static volatile struct fw_dma op ALIGNED(16);
    u32 control = FW_DMA_READ;

    if (select) {
        control |= FW_DMA_SELECT | select << 16;
    }
    op.length = swap32(length);
    op.address_high = 0;
    op.address_low = swap32((u32)to);
    op.control = swap32(control);
    BARRIER();
    outl(FW_DMA, 0);
    outl(FW_DMA + 4, swap32((u32)&op));
    while (op.control) {
        if (op.control & swap32(1)) {
            rt_fail("fw_cfg DMA error", 0);
        }
    }
}

/* PCI */

static inline u32 pci_read(u32 devfn, u32 offset)
{
    outl(0xcf8, 0x80000000u | devfn << 8 | (offset & ~3u));
    return inl(0xcfc);
}

static inline void pci_write(u32 devfn, u32 offset, u32 v)
{
    outl(0xcf8, 0x80000000u | devfn << 8 | (offset & ~3u));
    outl(0xcfc, v);
}

/* IDE */

static inline void ide_wait(u32 mask, u32 wanted)
{
    u32 status;
    do {
        status = inb(IDE_ALT);
    } while ((status & (IDE_BSY | mask)) != wanted);
    if (status & IDE_ERR) {
        rt_fail("IDE error", status);
    }
}

static inline void ide_command(u32 lba, u32 sectors, u32 command)
{
    ide_wait(0, 0);
    outb(IDE + 6, 0xe0 | lba >> 24);
    outb(IDE + 2, sectors);
    outb(IDE + 3, lba);
    outb(IDE + 4, lba >> 8);
    outb(IDE + 5, lba >> 16);
    outb(IDE + 7, command);
}

/* Reads one sector with REP INSW, whatever the target is. */
static inline void ide_read_pio(u32 lba, void *to)
{
    u32 words = IDE_SECTOR / 2;

    ide_command(lba, 1, IDE_READ_PIO);
    ide_wait(IDE_DRQ, IDE_DRQ);
    __asm__ volatile("rep insw" : "+D"(to), "+c"(words) : "d"(IDE)
                     : "memory");
}

/* Writes one sector. */
static inline void ide_write_pio(u32 lba, const void *from)
{
    u32 words = IDE_SECTOR / 2;

    ide_command(lba, 1, IDE_WRITE_PIO);
    ide_wait(IDE_DRQ, IDE_DRQ);
    __asm__ volatile("rep outsw" : "+S"(from), "+c"(words) : "d"(IDE)
                     : "memory");
    ide_wait(0, 0);
}

/* Bus-master base of the PIIX3 IDE function (00:01.1), mastering enabled. */
static inline u32 ide_busmaster(void)
{
    enum { PIIX_IDE = 1 << 3 | 1 };
    u32 base;

    pci_write(PIIX_IDE, 4, pci_read(PIIX_IDE, 4) | 5);
    base = pci_read(PIIX_IDE, 0x20) & ~3u;
    if (base == 0 || base > 0xfff0) {
        rt_fail("no bus-master IDE", base);
    }
    return base;
}

#endif
