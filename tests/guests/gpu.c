/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "gpu": draws on a virtio-gpu.
 *
 * Two pictures take turns on the screen, each in RAM of two pieces in the wrong
 * order. The guest draws all the time and hands rectangles over now and then, so
 * that the screen is seldom what stands in RAM; halfway it resets the card and
 * begins anew. Needs the device virtio-vga or virtio-gpu-pci. Options: rounds=N
 * (60); greedy=1: at the end it offers the card more memory than the VM has, many times
 * the same; greedy=2: some memory, and many times addresses where nothing is.
 */
#include "dev.h"

const char guest_name[] = "gpu";

enum { CARD = 0x10501af4, SLOTS = 32 * 8, CAP_VENDOR = 9, CAP_COMMON = 1,
       CAP_NOTIFY = 2, QUEUE = 8 };
enum { WIDTH = 320, HEIGHT = 200, BYTES = WIDTH * HEIGHT * 4, PIECE = 100000 };
enum { CREATE = 0x101, UNREF = 0x102, SHOW = 0x103, FLUSH = 0x104, TAKE = 0x105,
       ATTACH = 0x106, DETACH = 0x107, OK = 0x1100, BGRX = 2 };
enum { NEEDS_RESET = 0x40, MEGABYTE = 1 << 20, LARGEST = 62 << 20, HOLE = 0x60000000 };

struct desc {
    u32 addr, addr_high, len;
    u16 flags, next;
};

static struct desc descs[QUEUE] ALIGNED(16);
static volatile struct {
    u16 flags, idx, ring[QUEUE];
} avail ALIGNED(16);
static volatile struct {
    u16 flags, idx;
    u32 ring[QUEUE * 2];
} used ALIGNED(16);

static u32 command[16], answer[6];
static u8 memory[2][BYTES] ALIGNED(16);
static u32 seed = 5, bars[6], caps[5], multiplier;
static volatile u16 *notify;

static u32 find_card(void)
{
    for (u32 slot = 0; slot < SLOTS; slot++) {
        if (pci_read(slot, 0) == CARD) {
            return slot;
        }
    }
    rt_fail("no virtio-gpu", 0);
}

/* Where the structures of the card are. */
static void find_parts(u32 card)
{
    u32 cap = pci_read(card, 0x34) & 0xfc;

    pci_write(card, 4, pci_read(card, 4) | 6);
    for (u32 i = 0; i < 6; i++) {
        bars[i] = pci_read(card, 0x10 + 4 * i) & ~15u;
    }
    while (cap) {
        u32 head = pci_read(card, cap);
        u32 type = head >> 24;

        if ((head & 0xff) == CAP_VENDOR && type < 5) {
            caps[type] = bars[pci_read(card, cap + 4) & 7] +
                pci_read(card, cap + 8);
            if (type == CAP_NOTIFY) {
                multiplier = pci_read(card, cap + 16);
            }
        }
        cap = head >> 8 & 0xfc;
    }
    if (!caps[CAP_COMMON] || !caps[CAP_NOTIFY]) {
        rt_fail("no structures", 0);
    }
}

static void set64(u32 offset, volatile void *to)
{
    volatile u32 *common = (u32 *)(caps[CAP_COMMON] + offset);

    common[0] = (u32)to;
    common[1] = 0;
}

static void start_card(void)
{
    volatile u8 *common = (u8 *)caps[CAP_COMMON];

    common[20] = 0;
    while (common[20]) {
    }
    avail.idx = used.idx = 0;
    common[20] = 1;
    common[20] = 3;
    *(volatile u32 *)(common + 8) = 1;
    *(volatile u32 *)(common + 12) = 1;         /* version 1 */
    common[20] = 11;
    *(volatile u16 *)(common + 22) = 0;
    *(volatile u16 *)(common + 24) = QUEUE;
    set64(32, descs);
    set64(40, &avail);
    set64(48, &used);
    notify = (u16 *)(caps[CAP_NOTIFY] +
                     *(volatile u16 *)(common + 30) * multiplier);
    *(volatile u16 *)(common + 28) = 1;
    common[20] = 15;
}

/* The words of a command after its header are there. */
static void send(u32 type, u32 words)
{
    u16 next = avail.idx + 1;

    command[0] = type;
    descs[0] = (struct desc) { (u32)command, 0, 24 + 4 * words, 1, 1 };
    descs[1] = (struct desc) { (u32)answer, 0, 24, 2, 0 };
    avail.ring[avail.idx % QUEUE] = 0;
    BARRIER();
    avail.idx = next;
    BARRIER();
    *notify = 0;
    while (used.idx != next) {
        hlt();
    }
    if (answer[0] != OK) {
        rt_fail("the card refuses", type << 16 | answer[0]);
    }
}

static void rect(u32 x, u32 y, u32 width, u32 height)
{
    command[6] = x;
    command[7] = y;
    command[8] = width;
    command[9] = height;
}

static void make_picture(u32 id)
{
    command[6] = id;
    command[7] = BGRX;
    command[8] = WIDTH;
    command[9] = HEIGHT;
    send(CREATE, 4);
    command[6] = id;
    command[7] = 2;
    command[8] = (u32)memory[id - 1] + PIECE;
    command[9] = 0;
    command[10] = BYTES - PIECE;
    command[11] = 0;
    command[12] = (u32)memory[id - 1];
    command[13] = 0;
    command[14] = PIECE;
    command[15] = 0;
    send(ATTACH, 10);
}

static void show(u32 id)
{
    u32 x = prng(&seed) % 20;

    rect(x, 10, WIDTH - 20, HEIGHT - 20);
    command[10] = 0;
    command[11] = id;
    send(SHOW, 6);
}

static void hand_over(u32 id)
{
    u32 x = prng(&seed) % 2 ? prng(&seed) % WIDTH : 0;
    u32 y = prng(&seed) % HEIGHT;

    rect(x, y, WIDTH - x, HEIGHT - y);
    command[10] = (y * WIDTH + x) * 4;
    command[11] = 0;
    command[12] = id;
    command[13] = 0;
    send(TAKE, 8);
    rect(0, 0, WIDTH, HEIGHT);
    command[10] = id;
    command[11] = 0;
    send(FLUSH, 6);
}

static void draw(u32 id)
{
    volatile u32 *pixels = (u32 *)memory[id - 1];

    for (u32 i = prng(&seed) % 8000, n = 0; n < 8000; n++, i++) {
        pixels[i] = prng(&seed) << 8 ^ prng(&seed);
    }
}

/* The card's answer has room in the first piece. */
static void be_greedy(u32 how)
{
    volatile u8 *common = (u8 *)caps[CAP_COMMON];
    u16 next = avail.idx + 1;

    command[0] = FLUSH;
    descs[0] = (struct desc) { (u32)command, 0, 48, 1, 1 };
    descs[1] = (struct desc) { (u32)answer, 0, 24, 3, 2 };
    for (u16 i = 2; i < QUEUE; i++) {
        u32 is_hole = how == 2 && i > 2;

        descs[i] = (struct desc) { is_hole ? HOLE : MEGABYTE, 0,
                                   how == 1 || is_hole ? LARGEST : 2 * PAGE,
                                   i + 1 < QUEUE ? 3 : 2, i + 1 };
    }
    avail.ring[avail.idx % QUEUE] = 0;
    BARRIER();
    avail.idx = next;
    BARRIER();
    *notify = 0;
    while (used.idx != next && !(common[20] & NEEDS_RESET)) {
        hlt();
    }
    say("status", common[20]);
    put_char('\n');
}

void main(void)
{
    u32 rounds = option("rounds", 60);

    find_parts(find_card());
    rt_timer(500);
    for (u32 half = 0; half < 2; half++) {
        start_card();
        make_picture(1);
        make_picture(2);
        for (u32 r = 0; r < rounds; r++) {
            draw(r % 2 + 1);
            if (r % 3 == 0) {
                hand_over(prng(&seed) % 2 + 1);
            }
            if (r % 7 == 2) {
                show(prng(&seed) % 2 + 1);
            }
            hlt();
            fold(rt_ticks);
        }
        say("half", half);
        say64("sum", rt_sum);
        put_char('\n');
    }
    if (option("greedy", 0)) {
        be_greedy(option("greedy", 0));
    }
}
