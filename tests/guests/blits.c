/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "blits": has a card with a 2D engine, an ATI Rage 128, fill and copy rectangles of
 * its video memory, and write words there by its registers; then reads the memory. QEMU
 * writes it by a pointer each time. Needs the device ati-vga. Options: rounds=N (40).
 */
#include "dev.h"

const char guest_name[] = "blits";

enum { CARD = 0x50461002, SLOTS = 32 * 8, WIDTH = 640, HEIGHT = 480, AT = 2 << 20,
       BYTES = WIDTH * HEIGHT * 4 };
enum { MM_INDEX = 0, MM_DATA = 4, DST_OFFSET = 0x1404, DST_PITCH = 0x1408, DST_Y_X = 0x1438,
       DST_HEIGHT_WIDTH = 0x143c, SRC_Y_X = 0x1434, MASTER = 0x146c, COLOUR = 0x147c,
       SRC_OFFSET = 0x15ac, SRC_PITCH = 0x15b0, DIRECTION = 0x16c0 };
enum { OWN_PLACES = 3, BITS_32 = 6 << 8, COPY = 0xcc << 16, FILL = 0xf0 << 16 };

static u32 seed = 3;
static volatile u8 *registers;

static u32 find_card(void)
{
    for (u32 slot = 0; slot < SLOTS; slot++) {
        if (pci_read(slot, 0) == CARD) {
            return slot;
        }
    }
    rt_fail("no Rage 128", 0);
}

static void set(u32 at, u32 value)
{
    *(volatile u32 *)(registers + at) = value;
}

static u32 place(void)
{
    return (prng(&seed) % (HEIGHT / 2)) << 16 | prng(&seed) % (WIDTH / 2);
}

/* Its size is what begins it. */
static void blit(u32 how, u32 direction)
{
    set(MASTER, how | BITS_32 | OWN_PLACES);
    set(DIRECTION, direction);
    set(SRC_Y_X, place());
    set(DST_Y_X, place());
    set(DST_HEIGHT_WIDTH, place() + 0x10001);
}

void main(void)
{
    u32 rounds = option("rounds", 40), card = find_card();
    volatile u32 *memory = (u32 *)((pci_read(card, 0x10) & ~15u) + AT);

    pci_write(card, 4, pci_read(card, 4) | 3);
    registers = (u8 *)(pci_read(card, 0x18) & ~15u);
    rt_timer(500);
    set(DST_OFFSET, AT);
    set(DST_PITCH, WIDTH / 8);
    set(SRC_OFFSET, AT);
    set(SRC_PITCH, WIDTH / 8);
    for (u32 r = 0; r < rounds; r++) {
        set(COLOUR, prng(&seed) ^ rt_ticks);
        blit(FILL, 3);
        blit(COPY, r & 3);
        set(MM_INDEX, 1u << 31 | (AT + prng(&seed) % (BYTES / 4) * 4));
        set(MM_DATA, rt_ticks);
        hlt();
        fold(rt_ticks);
    }
    for (u32 i = 0; i < BYTES / 4; i++) {
        fold(memory[i]);
    }
    say64("sum", rt_sum);
    put_char('\n');
}
