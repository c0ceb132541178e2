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
#include "virtio.h"

const char guest_name[] = "gpu";

enum { CARD = 0x10501af4, SLOTS = 32 * 8 };
enum { WIDTH = 320, HEIGHT = 200, BYTES = WIDTH * HEIGHT * 4, PIECE = 100000 };
enum { CREATE = 0x101, UNREF = 0x102, SHOW = 0x103, FLUSH = 0x104, TAKE = 0x105,
       ATTACH = 0x106, DETACH = 0x107, OK = 0x1100, BGRX = 2 };
enum { NEEDS_RESET = 0x40, MEGABYTE = 1 << 20, LARGEST = 62 << 20, HOLE = 0x60000000 };

static u32 command[16], answer[6];
static u8 memory[2][BYTES] ALIGNED(16);
static u32 seed = 5;

static u32 find_card(void)
{
    for (u32 slot = 0; slot < SLOTS; slot++) {
        if (pci_read(slot, 0) == CARD) {
            return slot;
        }
    }
    rt_fail("no virtio-gpu", 0);
}

/* The words of a command after its header are there. */
static void send(u32 type, u32 words)
{
    u16 next;

    command[0] = type;
    virtio_descs[0] = (struct virtio_desc) { (u32)command, 0, 24 + 4 * words,
                                             VIRTIO_NEXT, 1 };
    virtio_descs[1] = (struct virtio_desc) { (u32)answer, 0, 24, VIRTIO_WRITES, 0 };
    next = virtio_offer(1);
    while (virtio_used.idx != next) {
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
    u16 next;

    command[0] = FLUSH;
    virtio_descs[0] = (struct virtio_desc) { (u32)command, 0, 48, VIRTIO_NEXT, 1 };
    virtio_descs[1] = (struct virtio_desc) { (u32)answer, 0, 24,
                                             VIRTIO_NEXT | VIRTIO_WRITES, 2 };
    for (u16 i = 2; i < VIRTIO_QUEUE; i++) {
        u32 is_hole = how == 2 && i > 2;

        virtio_descs[i] = (struct virtio_desc) {
            is_hole ? HOLE : MEGABYTE, 0, how == 1 || is_hole ? LARGEST : 2 * PAGE,
            i + 1 < VIRTIO_QUEUE ? VIRTIO_NEXT | VIRTIO_WRITES : VIRTIO_WRITES, i + 1
        };
    }
    next = virtio_offer(1);
    while (virtio_used.idx != next && !(virtio_common[VIRTIO_STATUS] & NEEDS_RESET)) {
        hlt();
    }
    say("status", virtio_common[VIRTIO_STATUS]);
    put_char('\n');
}

void main(void)
{
    u32 rounds = option("rounds", 60);

    virtio_find(find_card());
    rt_timer(500);
    for (u32 half = 0; half < 2; half++) {
        virtio_start(0);
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
