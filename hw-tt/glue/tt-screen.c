/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The screen of a replay: a console that shows what a standard VGA card would,
 * at whatever position the replay stands.
 *
 * No device runs in a replay. The card's memory is one of the recorded RAM blocks
 * and is exact at each position; its registers are what the guest wrote to them
 * before, which is in the log. So the registers of a VGA card of our own are fed
 * from the log, up to where the replay stands (from the start again when it has
 * gone back), the memory is copied, and QEMU's code draws. The card has no port,
 * no memory that the guest sees and no influence on the replay.
 *
 * Registers are at fixed ports, and for PCI cards also behind the third base
 * address of the device 1234:1111, which is found by its configuration space.
 *
 * The position of a port or memory access is that behind its instruction, so what
 * has the position where the replay stands has happened.
 *
 * Context: BQL, so the vCPU stands between two instructions.
 */
#include "tt/engine.h"
#include "hw/display/vga_int.h"
#include "qemu/units.h"
#include "ui/console.h"

#define VBE_INDEX   0x1ce
#define VBE_DATA    0x1d0
#define CONFIG_ADDR 0xcf8
#define CONFIG_DATA 0xcfc
#define CARD_ID     0x11111234
#define CARD_BAR    0x18            /* of its registers */
#define MMIO_VGA    0x400           /* ports from 3c0h on */
#define MMIO_VBE    0x500           /* VBE registers, two bytes each */

static struct {
    QemuConsole *con;
    VGACommonState *vga;            /* NULL: no card was seen yet */
    unsigned block;                 /* its memory */
    uint64_t segment;               /* of the log: what is fed next */
    uint32_t event;
    uint64_t pos;                   /* all events up to there were fed */
    uint32_t config, slot;          /* last configuration address; the card's */
    uint64_t bar;                   /* 0: not known */
} screen;

/* ---- registers ---- */

static bool is_vga_port(uint64_t port)
{
    return port == 0x3b4 || port == 0x3b5 || port == 0x3ba ||
        (port >= 0x3c0 && port < 0x3d0) || port == 0x3d4 || port == 0x3d5 ||
        port == 0x3da;
}

static void feed_vga(uint64_t port, uint64_t val, unsigned size, bool write)
{
    for (unsigned i = 0; i < size; i++) {
        if (!is_vga_port(port + i)) {
            continue;
        }
        if (write) {
            vga_ioport_write(screen.vga, port + i, (val >> 8 * i) & 0xff);
        } else {
            vga_ioport_read(screen.vga, port + i);  /* some have effects */
        }
    }
}

static void feed_config(const TtEvent *ev)
{
    uint32_t reg = screen.config + (ev->addr - CONFIG_DATA);

    if (ev->kind == TT_EV_PIO_IN) {
        if (!(screen.config & 0xff) && ev->addr == CONFIG_DATA &&
            (ev->val == CARD_ID ||
             (ev->size == 2 && ev->val == (CARD_ID & 0xffff)))) {
            screen.slot = screen.config;
        }
    } else if (screen.slot && reg == (screen.slot | CARD_BAR) &&
               ev->size == 4 && (uint32_t)ev->val != UINT32_MAX) {
        screen.bar = ev->val & ~0xfull;
    }
}

static void feed_port(const TtEvent *ev)
{
    bool write = ev->kind == TT_EV_PIO_OUT;

    if (ev->addr == CONFIG_ADDR && write) {
        screen.config = ev->val;
    } else if (ev->addr >= CONFIG_DATA && ev->addr < CONFIG_DATA + 4) {
        feed_config(ev);
    } else if (write && ev->addr == VBE_INDEX && ev->size == 2) {
        vbe_ioport_write_index(screen.vga, 0, ev->val);
    } else if (write && ev->size == 2 &&
               (ev->addr == VBE_DATA || ev->addr == VBE_INDEX + 1)) {
        vbe_ioport_write_data(screen.vga, 0, ev->val);
    } else {
        feed_vga(ev->addr, ev->val, ev->size, write);
    }
}

static void feed_mmio(const TtEvent *ev)
{
    uint64_t at = ev->addr - screen.bar;
    bool write = ev->kind == TT_EV_MMIO_ST;

    if (!screen.bar || at < MMIO_VGA) {
        return;
    }
    if (at < MMIO_VGA + 0x20) {
        feed_vga(at - MMIO_VGA + 0x3c0, ev->val, ev->size, write);
    } else if (write && at >= MMIO_VBE &&
               at < MMIO_VBE + 2 * VBE_DISPI_INDEX_NB) {
        vbe_ioport_write_index(screen.vga, 0, (at - MMIO_VBE) / 2);
        vbe_ioport_write_data(screen.vga, 0, ev->val);
    }
}

static void feed(const TtEvent *ev)
{
    switch (ev->kind) {
    case TT_EV_PIO_IN:
    case TT_EV_PIO_OUT:
        feed_port(ev);
        break;
    case TT_EV_MMIO_LD:
    case TT_EV_MMIO_ST:
        feed_mmio(ev);
        break;
    }
}

/* ---- the log ---- */

/* False: the events of @s from screen.event on are not due yet, not all. */
static bool feed_segment(const TtSegment *s, uint64_t pos)
{
    for (; screen.event < s->n_events; screen.event++) {
        const TtEvent *ev = &s->events[screen.event];

        if (ev->pos > pos) {
            return false;
        }
        feed(ev);
    }
    return true;
}

static void feed_until(uint64_t pos)
{
    TtLogReader *r = tt_replay_reader();
    bool all = true;

    while (all && screen.segment < tt_log_reader_end(r)) {
        TtSegment *s;

        if (tt_log_reader_load(r, screen.segment, &s, NULL) != TT_OK) {
            break;
        }
        all = feed_segment(s, pos);
        tt_segment_unref(s);
        if (all) {
            screen.segment++;
            screen.event = 0;
        }
    }
    screen.pos = pos;
}

static void start_anew(void)
{
    screen.segment = tt_log_reader_first(tt_replay_reader());
    screen.event = screen.pos = 0;
    screen.config = screen.slot = screen.bar = 0;
    vga_common_reset(screen.vga);
}

/* ---- the card ---- */

static bool find_memory(void)
{
    unsigned n = tt_memory_n_blocks();

    if (screen.block < n && screen.vga) {
        return true;            /* blocks keep their numbers */
    }
    for (screen.block = 0; screen.block < n; screen.block++) {
        if (g_str_has_suffix(tt_memory_block(screen.block)->name,
                             "vga.vram")) {
            return true;
        }
    }
    return false;
}

static bool make_card(void)
{
    uint64_t size;
    VGACommonState *vga;

    if (!find_memory()) {
        return false;
    }
    if (screen.vga) {
        return true;
    }
    size = tt_memory_block(screen.block)->size_bytes;
    vga = g_new0(VGACommonState, 1);
    vga->vram_size_mb = size / MiB;
    if (size != ROUND_UP(size, MiB) || !vga_common_init(vga, NULL, NULL) ||
        vga->vram_size != size) {
        g_free(vga);
        return false;
    }
    vga->con = screen.con;
    screen.vga = vga;
    start_anew();
    return true;
}

static void update(void *opaque)
{
    const TtBlock *b;

    if (!tt.live || !make_card()) {
        return;
    }
    b = tt_memory_block(screen.block);
    if (tt.pos < screen.pos) {
        start_anew();
    }
    feed_until(tt.pos);
    memcpy(screen.vga->vram_ptr, b->host, b->size_bytes);
    screen.vga->cursor_visible_phase = true;    /* else by the host's clock */
    screen.vga->cursor_blink_time = INT64_MAX;
    screen.vga->hw_ops->invalidate(screen.vga);
    screen.vga->hw_ops->gfx_update(screen.vga);
}

static const GraphicHwOps ops = { .gfx_update = update };

void tt_screen_start(void)
{
    screen.con = graphic_console_init(NULL, 0, &ops, NULL);
}
