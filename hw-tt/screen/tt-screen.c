/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The screen of a replay: a console that shows what a standard VGA card, a
 * bochs-display or a virtio-gpu (tt-gpu-screen.c) would, at whatever position the
 * replay stands.
 *
 * No device runs in a replay. The card's memory is one of the recorded RAM blocks
 * and is exact at each position; its registers are what the guest wrote to them
 * before, which is in the log. So the registers of a VGA card of our own are fed
 * from the log, up to where the replay stands (from the start again when it has
 * gone back), the memory is copied, and QEMU's code draws. The card has no port,
 * no memory that the guest sees and no influence on the replay.
 *
 * Registers are at fixed ports, and for PCI cards also at the third base
 * address, which is found by the card's configuration space: by its ports, or by
 * the memory that q35's host bridge was told to show it in.
 *
 * The position of a port or memory access is that after its instruction, so what
 * has the position where the replay stands has happened.
 *
 * Context: BQL, so the vCPU stands between two instructions.
 */
#include "qemu/osdep.h"
#include "hw-tt/screen/tt-screen.h"
#include "accel-tt/tt-position.h"
#include "hw-tt/memory/tt-block.h"
#include "hw-tt/memory/tt-memory.h"
#include "hw-tt/screen/tt-gpu.h"
#include "io/tt-base.h"
#include "log/tt-log.h"
#include "session/tt-session.h"
#include "hw/display/vga_int.h"
#include "hw/display/bochs-vbe.h"
#include "qemu/units.h"
#include "ui/console.h"
#include "qemu/units.h"
#include "qemu/error-report.h"
#include <sys/resource.h>

#define TT_PICTURE_BYTES_MAX (256 * MiB)

#define VBE_INDEX   0x1ce
#define VBE_DATA    0x1d0
#define CONFIG_ADDR 0xcf8
#define CONFIG_DATA 0xcfc
#define CONFIG_ON   0x80000000u
#define STD_VGA     0x11111234      /* bochs-display, too */
#define VIRTIO_VGA  0x10501af4
#define CARD_BAR    0x18            /* of its registers */
#define CARD_BAR_HI 0x1c
#define Q35         0x29c08086
#define Q35_ECAM    0x60            /* base of the memory of configuration */
#define Q35_ECAM_HI 0x64
#define VRAM_MAX    (512 * MiB)     /* of QEMU's card; a power of two */
#define MMIO_VGA    0x400           /* ports from 3c0h on */
#define MMIO_VBE    0x500           /* VBE registers, two bytes each */
#define MMIO_ORDER  0x604           /* of bytes */
#define BIG_ENDIAN_FB 0xbebebebe

enum { DREW_VGA = 1, DREW_OTHER, DREW_TEXT };

static struct {
    QemuConsole *con;
    VGACommonState *vga;            /* NULL: no such card was seen yet */
    bool has_no_vga;                /* QEMU's code could not make one */
    bool has_block;
    bool is_bochs;                  /* the block is of a bochs-display */
    unsigned block;                 /* its memory */
    uint64_t segment;               /* of the log: what is fed next */
    uint32_t event;
    uint64_t pos;                   /* all events up to there were fed */
    uint32_t config;                /* last configuration address */
    uint32_t card, slot;            /* the card: what it is (0: not known), where */
    uint32_t vendor_slot;           /* where its vendor was read last */
    bool is_q35;
    uint64_t ecam;                  /* 0: not known */
    uint64_t bar;                   /* 0: not known */
    uint16_t vbe[VBE_DISPI_INDEX_NB];
    bool is_big_endian;
    int drew;                       /* DREW_*: which one did last */
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

/* @slot: bus, device and function as in bits 8 to 23 of the address port. */
static void feed_identity(uint32_t slot, uint32_t reg, const TtEvent *ev)
{
    uint32_t id = ev->val;

    if (ev->kind == TT_EV_MMIO_LD) {        /* its first byte is the highest */
        id = ev->size == 4 ? bswap32(id) : bswap16(id);
    }
    if (ev->size == 2 && reg == 0) {
        screen.vendor_slot = slot;
        id = (uint16_t)id == (uint16_t)STD_VGA ? STD_VGA : 0;
    } else if (ev->size == 2 && reg == 2 && slot == screen.vendor_slot) {
        id = id << 16 == (VIRTIO_VGA & 0xffff0000) ? VIRTIO_VGA :
            id << 16 == (Q35 & 0xffff0000) ? Q35 : 0;
    } else if (ev->size != 4 || reg) {
        return;
    }
    if (slot == 0 && id == Q35) {
        screen.is_q35 = true;
    } else if (!screen.card && (id == STD_VGA || id == VIRTIO_VGA)) {
        screen.card = id;
        screen.slot = slot;
    }
}

static void set_half(uint64_t *addr, bool high, uint32_t val)
{
    *addr = high ? deposit64(*addr, 32, 32, val) : deposit64(*addr, 0, 32, val);
}

static void feed_config(uint32_t slot, uint32_t reg, const TtEvent *ev)
{
    uint32_t val = ev->val;

    if (ev->kind == TT_EV_PIO_IN || ev->kind == TT_EV_MMIO_LD) {
        feed_identity(slot, reg, ev);
    } else if (ev->size != 4 || val == UINT32_MAX) {
        return;
    } else if (screen.card && slot == screen.slot && reg == CARD_BAR) {
        set_half(&screen.bar, false, val & ~0xfu);
    } else if (screen.card == VIRTIO_VGA && slot == screen.slot &&
               reg == CARD_BAR_HI) {
        set_half(&screen.bar, true, val);
    } else if (screen.is_q35 && !slot && reg == Q35_ECAM) {
        set_half(&screen.ecam, false, val & 1 ? val & 0xfc000000 : 0);
    } else if (screen.is_q35 && !slot && reg == Q35_ECAM_HI) {
        set_half(&screen.ecam, true, val);
    }
}

static void feed_port(const TtEvent *ev)
{
    bool write = ev->kind == TT_EV_PIO_OUT;

    if (ev->addr == CONFIG_ADDR && write) {
        screen.config = ev->val;
    } else if (ev->addr >= CONFIG_DATA && ev->addr < CONFIG_DATA + 4) {
        if (screen.config & CONFIG_ON) {
            feed_config(screen.config & 0xffff00, (screen.config & 0xfc) +
                        (ev->addr & 3), ev);
        }
    } else if (!screen.vga) {
        return;
    } else if (write && ev->addr == VBE_INDEX && ev->size == 2) {
        vbe_ioport_write_index(screen.vga, 0, ev->val);
    } else if (write && ev->size == 2 &&
               (ev->addr == VBE_DATA || ev->addr == VBE_INDEX + 1)) {
        vbe_ioport_write_data(screen.vga, 0, ev->val);
    } else {
        feed_vga(ev->addr, ev->val, ev->size, write);
    }
}

/* Registers at the card's base address. */
static void feed_card(uint64_t at, const TtEvent *ev, bool write)
{
    unsigned index = (at - MMIO_VBE) / 2;

    if (at < MMIO_VBE) {
        if (screen.vga && at < MMIO_VGA + 0x20) {
            feed_vga(at - MMIO_VGA + 0x3c0, ev->val, ev->size, write);
        }
    } else if (write && index < VBE_DISPI_INDEX_NB) {
        screen.vbe[index] = ev->val;
        if (screen.vga) {
            vbe_ioport_write_index(screen.vga, 0, index);
            vbe_ioport_write_data(screen.vga, 0, ev->val);
        }
    } else if (write && at == MMIO_ORDER && ev->size == 4) {
        screen.is_big_endian = ev->val == BIG_ENDIAN_FB;
    }
}

static void feed_mmio(const TtEvent *ev)
{
    uint64_t in_ecam = ev->addr - screen.ecam;
    uint64_t at = ev->addr - screen.bar;

    if ((uint32_t)screen.ecam && in_ecam < 256 * MiB) {
        feed_config(in_ecam >> 12 << 8, in_ecam & 0xfff, ev);
    } else if ((uint32_t)screen.bar && at >= MMIO_VGA && at < 4 * KiB) {
        feed_card(at, ev, ev->kind == TT_EV_MMIO_ST);
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
    TtLogReader *r = tt_screen_log()->reader();
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
    screen.segment = tt_log_reader_first(tt_screen_log()->reader());
    screen.event = screen.pos = 0;
    screen.config = screen.card = screen.slot = screen.vendor_slot = 0;
    screen.ecam = screen.bar = 0;
    screen.is_q35 = screen.is_big_endian = false;
    memset(screen.vbe, 0, sizeof(screen.vbe));
    if (screen.vga) {
        vga_common_reset(screen.vga);
    }
}

/* ---- the card ---- */

/* Blocks keep their numbers. */
static bool find_memory(void)
{
    unsigned n = tt_memory_n_blocks();

    for (unsigned i = 0; i < n && !screen.has_block; i++) {
        const char *name = tt_memory_block(i)->name;

        screen.is_bochs = g_str_has_suffix(name, "bochs-display-vram");
        screen.has_block = screen.is_bochs || g_str_has_suffix(name, "vga.vram");
        screen.block = i;
    }
    return screen.has_block && screen.block < n;
}

static bool make_vga(void)
{
    uint64_t size = tt_memory_block(screen.block)->size_bytes;
    VGACommonState *vga;

    if (screen.vga || screen.has_no_vga || !is_power_of_2(size) || size < MiB ||
        size > VRAM_MAX) {
        return screen.vga;
    }
    vga = g_new0(VGACommonState, 1);
    vga->vram_size_mb = size / MiB;
    if (!vga_common_init(vga, NULL, NULL)) {
        screen.has_no_vga = true;
        return false;
    }
    assert(vga->vram_size == size);
    vga->con = screen.con;
    screen.vga = vga;
    start_anew();
    return true;
}

/* As a console begins; that of a virtio-gpu was reset by then. */
static void draw_text(void)
{
    bool is_gpu = tt_gpu_is_there();
    int width = 640, height = 480;

    if (is_gpu) {
        tt_gpu_last_size(&width, &height);
    }
    dpy_gfx_replace_surface(screen.con, qemu_create_placeholder_surface(
        width, height, is_gpu ? "Display output is not active." :
        "Guest has not initialized the display (yet)."));
}

/* VGA's code takes the console's picture for its own when it has the size, and
 * leaves it alone before a mode is set. */
static void draw_vga(void)
{
    const TtBlock *b = tt_memory_block(screen.block);
    VGACommonState *vga = screen.vga;

    if (screen.drew != DREW_VGA) {
        screen.drew = DREW_VGA;
        draw_text();
        vga->last_width = vga->last_height = 0;
        vga->last_scr_width = vga->last_scr_height = 0;
        vga->last_line_offset = 0;
    }
    memcpy(vga->vram_ptr, b->host, b->size_bytes);
    vga->cursor_visible_phase = true;       /* else by the host's clock */
    vga->cursor_blink_time = INT64_MAX;
    vga->hw_ops->invalidate(vga);
    vga->hw_ops->gfx_update(vga);
}

/* What bochs-display.c shows, in its registers' words; false: no mode is on. */
static bool draw_bochs(void)
{
    const TtBlock *b = tt_memory_block(screen.block);
    const uint16_t *vbe = screen.vbe;
    uint64_t width = vbe[VBE_DISPI_INDEX_XRES];
    uint64_t height = vbe[VBE_DISPI_INDEX_YRES];
    unsigned bytes = vbe[VBE_DISPI_INDEX_BPP] == 16 ? 2 : 4;
    uint64_t stride = MAX(vbe[VBE_DISPI_INDEX_VIRT_WIDTH], width) * bytes;
    uint64_t offset = vbe[VBE_DISPI_INDEX_X_OFFSET] * bytes +
        vbe[VBE_DISPI_INDEX_Y_OFFSET] * stride;
    pixman_format_code_t format = bytes == 2 ? PIXMAN_r5g6b5 :
        screen.is_big_endian ? PIXMAN_BE_x8r8g8b8 : PIXMAN_LE_x8r8g8b8;
    pixman_image_t *copy;

    if (!(vbe[VBE_DISPI_INDEX_ENABLE] & VBE_DISPI_ENABLED) || width < 64 ||
        height < 64 || offset + stride * height > b->size_bytes ||
        (bytes == 4 && vbe[VBE_DISPI_INDEX_BPP] != 32) || b->size_bytes > VRAM_MAX) {
        return false;
    }
    copy = pixman_image_create_bits(format, width, height, NULL, 0);
    if (!copy) {
        return false;
    }
    for (uint64_t y = 0; y < height; y++) {
        memcpy((uint8_t *)pixman_image_get_data(copy) +
               y * pixman_image_get_stride(copy),
               b->host + offset + y * stride, width * bytes);
    }
    dpy_gfx_replace_surface(screen.con,
                            qemu_create_displaysurface_pixman(copy));
    pixman_image_unref(copy);
    dpy_gfx_update_full(screen.con);
    return true;
}

static void update(void *opaque)
{
    bool has_card;

    if (!tt_session.live) {
        return;
    }
    if (tt_gpu_draw(screen.con)) {
        screen.drew = DREW_OTHER;
        return;
    }
    has_card = find_memory() && (screen.is_bochs || make_vga());
    if (tt_now.pos < screen.pos) {
        start_anew();
        screen.drew = 0;
    }
    if (has_card) {
        feed_until(tt_now.pos);
    }
    if (has_card && !screen.is_bochs) {
        draw_vga();
    } else if (has_card && draw_bochs()) {
        screen.drew = DREW_OTHER;
    } else if (screen.drew != DREW_TEXT) {
        screen.drew = DREW_TEXT;
        draw_text();
    }
}

bool tt_screen_is_shown(void)
{
    int drew = qatomic_read(&screen.drew);

    return drew == DREW_VGA || drew == DREW_OTHER;
}

static const GraphicHwOps ops = { .gfx_update = update };

void tt_screen_start(void)
{
    screen.con = graphic_console_init(NULL, 0, &ops, NULL);
}

/* QEMU has a picture in a file of its own, and aborts when that cannot be so large. */
bool tt_screen_is_possible(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_FSIZE, &files) || files.rlim_cur >= TT_PICTURE_BYTES_MAX) {
        return true;
    }
    warn_report("tt: the guest's screen is not shown: files of this process are limited "
                "to %" PRIu64 " bytes, and a picture may need %" PRIu64 ": raise the "
                "limit (ulimit -f)", (uint64_t)files.rlim_cur, TT_PICTURE_BYTES_MAX);
    return false;
}

static const TtScreenLog *log_of_replay;

void tt_screen_set_log(const TtScreenLog *log)
{
    log_of_replay = log;
}

const TtScreenLog *tt_screen_log(void)
{
    return log_of_replay;
}
