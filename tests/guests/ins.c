/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "ins": string input that meets page boundaries and page faults.
 *
 * REP INSB from fw_cfg, REP INSW and REP INSL from the IDE data port go to
 * targets whose next page is missing; words and longs also straddle the
 * boundary. No element may be read twice or lost. Needs the fw_cfg file
 * opt/tt/data (a counting pattern of 8192 bytes: byte i is i * 7 + i / 256)
 * and the same bytes at the start of the first IDE disk. Option:
 * rounds=N (40).
 */
#include "dev.h"

const char guest_name[] = "ins";

enum { PAGES = 4, DATA_BYTES = 8192 };

static u8 target[PAGES * PAGE] ALIGNED(4096);
static volatile u32 faults;

static u8 pattern(u32 i)
{
    return (u8)(i * 7 + i / 256);
}

static void on_fault(struct rt_frame *f)
{
    u32 va = read_cr2();

    faults++;
    fold(va);
    fold(f->ecx);
    fold(f->edi);
    fold(f->err);
    *rt_pte(va) |= PTE_P;
}

static void unmap_from(u32 first)
{
    for (u32 i = first; i < PAGES; i++) {
        u32 va = (u32)target + i * PAGE;

        *rt_pte(va) &= ~(u32)PTE_P;
        invlpg(va);
    }
}

static void check_pattern(const u8 *p, u32 from, u32 bytes)
{
    for (u32 i = 0; i < bytes; i++) {
        if (p[i] != pattern(from + i)) {
            rt_fail("wrong byte at", i);
        }
    }
    fold(bytes);
}

static void bytes_from_fw_cfg(u32 select, u32 skew)
{
    u8 *to = target + PAGE - 64 - skew;
    void *d = to;
    u32 n = PAGE + 128;

    unmap_from(1);
    outw(FW_SELECT, select);
    __asm__ volatile("rep insb" : "+D"(d), "+c"(n) : "d"(FW_DATA) : "memory");
    check_pattern(to, 0, PAGE + 128);
}

static void sector_from_ide(u32 sector, u32 skew, u32 wide)
{
    u8 *to = target + PAGE - skew;
    void *d = to;
    u32 n = IDE_SECTOR / (wide ? 4 : 2);

    ide_command(sector, 1, IDE_READ_PIO);
    ide_wait(IDE_DRQ, IDE_DRQ);
    unmap_from(1);
    if (wide) {
        __asm__ volatile("rep insl" : "+D"(d), "+c"(n) : "d"(IDE) : "memory");
    } else {
        __asm__ volatile("rep insw" : "+D"(d), "+c"(n) : "d"(IDE) : "memory");
    }
    check_pattern(to, sector * IDE_SECTOR, IDE_SECTOR);
}

void main(void)
{
    u32 rounds = option("rounds", 40), size, seed = 5;
    u32 select = fw_find("opt/tt/data", &size);

    if (size != DATA_BYTES) {
        rt_fail("wrong size of opt/tt/data", size);
    }
    rt_paging();
    rt_on(14, on_fault, GATE_TRAP);
    rt_timer(2000);
    for (u32 r = 0; r < rounds; r++) {
        u32 sector = r % (DATA_BYTES / IDE_SECTOR);

        bytes_from_fw_cfg(select, r);
        sector_from_ide(sector, 1 + prng(&seed) % 500, 0);
        sector_from_ide(sector, 1 + prng(&seed) % 500, 1);
    }
    say("faults", faults);
    fold(faults);
}
