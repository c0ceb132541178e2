/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "screen": draws on a standard VGA card, in text and in two graphics modes.
 *
 * Text with colours, a moved cursor and a scrolled start address; then pixels in
 * 320x200 with 256 colours of its own palette, set by VGA ports; then true colours
 * in a mode set by the registers at the card's base address. Needs the device
 * VGA. Options: rounds=N (40) in each mode, turns=N (1) through the last two.
 */
#include "dev.h"

const char guest_name[] = "screen";

enum { CARD = 0x11111234, SLOTS = 32 * 8, TEXT = 0xb8000, WIDTH = 640,
       HEIGHT = 480 };
enum { VBE_WIDTH = 1, VBE_HEIGHT = 2, VBE_BITS = 3, VBE_ENABLE = 4,
       VBE_ON = 0x41 };

static u32 seed = 7;

static u32 find_card(void)
{
    for (u32 slot = 0; slot < SLOTS; slot++) {
        if (pci_read(slot, 0) == CARD) {
            return slot;
        }
    }
    rt_fail("no VGA card", 0);
}

static void cursor_to(u32 place)
{
    outw(0x3d4, 0x0e | (place & 0xff00));
    outw(0x3d4, 0x0f | place << 8);
}

static void write_text(u32 r)
{
    volatile u16 *text = (u16 *)TEXT;

    for (u32 i = 0; i < 300; i++) {
        text[prng(&seed) % 4000] = (u16)prng(&seed);
    }
    cursor_to(prng(&seed) % 2000);
    outw(0x3d4, 0x0d | (r % 8 * 80) << 8);
}

static void set_palette(void)
{
    outb(0x3c8, 0);
    for (u32 i = 0; i < 768; i++) {
        outb(0x3c9, prng(&seed) & 63);
    }
}

static void vbe(u32 index, u32 value)
{
    outw(0x1ce, index);
    outw(0x1cf, value);
}

static void use_ports(void)
{
    vbe(VBE_ENABLE, 0);
    vbe(VBE_WIDTH, 320);
    vbe(VBE_HEIGHT, 200);
    vbe(VBE_BITS, 8);
    vbe(VBE_ENABLE, VBE_ON);
    set_palette();
}

static void use_registers(volatile u16 *registers)
{
    registers[VBE_ENABLE] = 0;
    registers[VBE_WIDTH] = WIDTH;
    registers[VBE_HEIGHT] = HEIGHT;
    registers[VBE_BITS] = 32;
    registers[VBE_ENABLE] = VBE_ON;
}

static void draw(u32 memory, u32 bytes)
{
    volatile u32 *pixels = (u32 *)memory;
    u32 from = prng(&seed) % (bytes / 8);

    for (u32 i = 0; i < bytes / 64; i++) {
        pixels[from + i] = prng(&seed) << 8 ^ prng(&seed);
    }
}

void main(void)
{
    u32 rounds = option("rounds", 40), turns = option("turns", 1);
    u32 card = find_card();
    u32 memory = pci_read(card, 0x10) & ~15u;
    volatile u16 *registers;

    registers = (u16 *)((pci_read(card, 0x18) & ~15u) + 0x500);
    rt_timer(500);
    for (u32 part = 0; part <= 2 * turns; part++) {
        if (part % 2) {
            use_ports();
        } else if (part) {
            use_registers(registers);
        }
        for (u32 r = 0; r < rounds; r++) {
            if (part == 0) {
                write_text(r);
            } else {
                draw(memory, part % 2 ? 64000 : WIDTH * HEIGHT * 4);
            }
            hlt();
            hlt();
            fold(rt_ticks);
        }
        say("part", part);
        say64("sum", rt_sum);
        put_char('\n');
    }
}
