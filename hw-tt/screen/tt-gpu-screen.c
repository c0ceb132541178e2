/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The screen of a virtio-gpu, in a replay: the pictures that the notes of the log tell
 * of (tt-gpu.c), each with its pixels as they were handed over.
 *
 * The notes are carried out where the replay passes them, since the pixels are in RAM
 * there and maybe not later. A checkpoint keeps the pictures as notes, too, with the
 * pixels that are not in RAM. The notes may come from a damaged or hostile log: notes
 * that make no sense are skipped.
 *
 * Context: BQL, the vCPU outside guest code.
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-position.h"
#include "hw-tt/memory/tt-block.h"
#include "hw-tt/memory/tt-memory.h"
#include "hw-tt/screen/tt-gpu.h"
#include "hw-tt/screen/tt-screen.h"
#include "io/tt-base.h"
#include "log/tt-log.h"
#include "log/tt-sched.h"
#include "tt/hooks.h"
#include "ui/console.h"
#include "hw/virtio/virtio-gpu-pixman.h"

#define BACKING_BYTES   16
#define SIDE_MAX        16384u
#define BYTES_MAX       (256u << 20)    /* of all pictures, as the card's */
#define ENTRIES_MAX     (16u << 20)     /* bytes of them, of all pictures */
#define PICTURES_MAX    65536u
#define PIXEL           4u              /* bytes, in every format of the card's */

typedef struct Picture {
    uint32_t width, height, format;
    uint8_t *pixels;
    GByteArray *backing;                /* as in the note */
} Picture;

static struct {
    GHashTable *pictures;               /* number -> Picture */
    uint64_t bytes, entries;            /* of pixels, of backing */
    bool is_there, enabled;
    uint32_t shown;                     /* number; 0: none */
    uint32_t x, y, width, height;       /* of what is or was shown */
    TtCursor done;                      /* of the log, ahead of the replay */
    bool is_ahead;
} gpu;

static uint64_t bytes_of(const Picture *p)
{
    return (uint64_t)p->width * p->height * PIXEL;
}

static void free_picture(gpointer data)
{
    Picture *p = data;

    gpu.bytes -= bytes_of(p);
    gpu.entries -= p->backing->len;
    g_byte_array_unref(p->backing);
    g_free(p->pixels);
    g_free(p);
}

static void forget(void)
{
    if (!gpu.pictures) {
        gpu.pictures = g_hash_table_new_full(NULL, NULL, NULL, free_picture);
    }
    g_hash_table_remove_all(gpu.pictures);
    gpu.enabled = false;
    gpu.shown = 0;
}

static Picture *find(uint32_t id)
{
    return gpu.pictures ?
        g_hash_table_lookup(gpu.pictures, GUINT_TO_POINTER(id)) : NULL;
}

static void create(uint32_t id, const uint8_t *data)
{
    uint32_t width = tt_get_le32(data), height = tt_get_le32(data + 4);
    uint64_t bytes = (uint64_t)width * height * PIXEL;
    Picture *p;

    if (!id || !width || !height || width > SIDE_MAX || height > SIDE_MAX ||
        gpu.bytes + bytes > BYTES_MAX || find(id) ||
        g_hash_table_size(gpu.pictures) >= PICTURES_MAX ||
        !virtio_gpu_get_pixman_format(tt_get_le32(data + 8))) {
        return;
    }
    p = g_new0(Picture, 1);
    p->width = width;
    p->height = height;
    p->format = tt_get_le32(data + 8);
    p->pixels = g_malloc0(bytes);
    p->backing = g_byte_array_new();
    gpu.bytes += bytes;
    g_hash_table_insert(gpu.pictures, GUINT_TO_POINTER(id), p);
}

typedef struct Place {                  /* in the backing; it goes forward only */
    guint entry;                        /* of bytes */
    uint64_t begins;                    /* offset of what that one names */
} Place;

/* Copies what stands at @offset of the picture's RAM, as far as that is known. */
static void read_backing(const Picture *p, Place *at, uint64_t offset, uint8_t *to,
                         uint64_t len)
{
    while (len && offset >= at->begins && at->entry < p->backing->len) {
        const uint8_t *e = p->backing->data + at->entry;
        uint32_t block = tt_get_le32(e), n = tt_get_le32(e + 4);
        uint64_t from = tt_get_le64(e + 8), skip = offset - at->begins, bytes;
        const TtBlock *b;

        if (skip >= n) {
            at->begins += n;
            at->entry += BACKING_BYTES;
            continue;
        }
        bytes = MIN(n - skip, len);
        b = block < tt_memory_n_blocks() ? tt_memory_block(block) : NULL;
        if (b && from <= b->size_bytes && n <= b->size_bytes - from) {
            memcpy(to, b->host + from + skip, bytes);
        }
        to += bytes;
        len -= bytes;
        offset += bytes;
    }
}

static void take(Picture *p, const uint8_t *data)
{
    uint64_t x = tt_get_le32(data), y = tt_get_le32(data + 4);
    uint64_t width = tt_get_le32(data + 8), height = tt_get_le32(data + 12);
    uint64_t offset = tt_get_le64(data + 16), stride = p->width * PIXEL;
    Place at = { 0 };
    uint8_t *to;

    if (x + width > p->width || y + height > p->height) {
        return;
    }
    to = p->pixels + y * stride + x * PIXEL;
    if (!x && width == p->width) {
        read_backing(p, &at, offset, to, stride * height);
        return;
    }
    for (uint64_t row = 0; row < height; row++) {
        read_backing(p, &at, offset + row * stride, to + row * stride,
                     width * PIXEL);
    }
}

static void show(uint32_t id, const uint8_t *data)
{
    const Picture *p = find(id);
    uint64_t x = tt_get_le32(data), y = tt_get_le32(data + 4);
    uint64_t width = tt_get_le32(data + 8), height = tt_get_le32(data + 12);

    gpu.enabled = true;
    gpu.shown = 0;
    if (p && width && height && x + width <= p->width &&
        y + height <= p->height) {
        gpu.shown = id;
        gpu.x = x;
        gpu.y = y;
        gpu.width = width;
        gpu.height = height;
    }
}

static void destroy(uint32_t id)
{
    if (gpu.shown == id) {
        gpu.shown = 0;
    }
    g_hash_table_remove(gpu.pictures, GUINT_TO_POINTER(id));
}

static void add_backing(Picture *p, const uint8_t *data, uint32_t len)
{
    if (gpu.entries + len > ENTRIES_MAX || len % BACKING_BYTES) {
        return;
    }
    for (uint32_t at = 0; at < len; at += BACKING_BYTES) {
        if (tt_get_le32(data + at + 4)) {       /* only a forged one is empty */
            g_byte_array_append(p->backing, data + at, BACKING_BYTES);
            gpu.entries += BACKING_BYTES;
        }
    }
}

/* A note about a picture that is there. */
static void change(Picture *p, unsigned op, uint32_t aux, const uint8_t *data,
                   uint32_t len)
{
    if (op == TT_SCREEN_BACKING) {
        add_backing(p, data, len);
    } else if (op == TT_SCREEN_DETACH) {
        gpu.entries -= p->backing->len;
        g_byte_array_set_size(p->backing, 0);
    } else if (op == TT_SCREEN_TAKE && len == 24) {
        take(p, data);
    } else if (op == TT_SCREEN_BYTES && aux <= bytes_of(p) &&
               len <= bytes_of(p) - aux) {
        memcpy(p->pixels + aux, data, len);
    }
}

static void carry_out(unsigned op, uint32_t id, uint32_t aux,
                      const uint8_t *data, uint32_t len)
{
    Picture *p = find(id);

    gpu.is_there = true;
    if (!gpu.pictures || op == TT_SCREEN_RESET) {
        forget();
    }
    if (op == TT_SCREEN_CREATE && len == 12) {
        create(id, data);
    } else if (op == TT_SCREEN_SHOW && len == 24) {
        show(id, data);
    } else if (op == TT_SCREEN_DESTROY) {
        destroy(id);
    } else if (p) {
        change(p, op, aux, data, len);
    }
}

static void carry_out_event(const TtEvent *ev)
{
    carry_out(ev->addr, ev->val, ev->aux, ev->data, ev->len);
}

static bool is_before(TtCursor a, TtCursor b)
{
    return a.segment < b.segment ||
        (a.segment == b.segment && a.index < b.index);
}

void tt_gpu_passed(const TtEvent *ev)
{
    if (tt_past || (gpu.is_ahead &&
        is_before(tt_sched_tell(tt_screen_log()->sched()), gpu.done))) {
        return;
    }
    gpu.is_ahead = false;
    carry_out_event(ev);
}

/* The notes that stand here and were not passed yet: a movement ends before them. */
static void look_ahead(void)
{
    TtCursor at = tt_sched_tell(tt_screen_log()->sched());
    TtSegment *s;

    if (gpu.is_ahead && is_before(at, gpu.done)) {
        return;
    }
    if (at.segment >= tt_log_reader_end(tt_screen_log()->reader()) ||
        tt_log_reader_load(tt_screen_log()->reader(), at.segment, &s, NULL) != TT_OK) {
        return;
    }
    for (; at.index < s->n_events; at.index++) {
        const TtEvent *ev = &s->events[at.index];

        if (ev->pos > tt_now.pos || !TT_EV_IS_ANNOTATION(ev->kind)) {
            break;
        }
        if (ev->kind == TT_EV_SCREEN) {
            carry_out_event(ev);
            gpu.is_ahead = true;
            gpu.done = (TtCursor) { at.segment, at.index + 1 };
        }
    }
    tt_segment_unref(s);
}

/* ---- checkpoints ---- */

static void put_note(GByteArray *a, unsigned op, uint32_t id, uint32_t aux,
                     const void *data, uint32_t len)
{
    uint8_t head[16];

    tt_put_le32(head, op);
    tt_put_le32(head + 4, id);
    tt_put_le32(head + 8, aux);
    tt_put_le32(head + 12, len);
    g_byte_array_append(a, head, sizeof(head));
    g_byte_array_append(a, data, len);
}

static void put_rect(GByteArray *a, unsigned op, uint32_t id, uint32_t x,
                     uint32_t y, uint32_t width, uint32_t height)
{
    uint8_t data[24] = { 0 };

    tt_put_le32(data, x);
    tt_put_le32(data + 4, y);
    tt_put_le32(data + 8, width);
    tt_put_le32(data + 12, height);
    put_note(a, op, id, 0, data, sizeof(data));
}

static void save_picture(GByteArray *a, uint32_t id, const Picture *p)
{
    uint32_t stride = p->width * PIXEL;
    g_autofree uint8_t *row = g_malloc(stride);
    Place at = { 0 };
    uint8_t data[12];

    tt_put_le32(data, p->width);
    tt_put_le32(data + 4, p->height);
    tt_put_le32(data + 8, p->format);
    put_note(a, TT_SCREEN_CREATE, id, 0, data, sizeof(data));
    put_note(a, TT_SCREEN_BACKING, id, 0, p->backing->data, p->backing->len);
    put_rect(a, TT_SCREEN_TAKE, id, 0, 0, p->width, p->height);
    for (uint32_t y = 0; y < p->height; y++) {
        const uint8_t *pixels = p->pixels + (uint64_t)y * stride;

        memset(row, 0, stride);
        read_backing(p, &at, (uint64_t)y * stride, row, stride);
        if (memcmp(row, pixels, stride)) {
            put_note(a, TT_SCREEN_BYTES, id, y * stride, pixels, stride);
        }
    }
}

GByteArray *tt_gpu_save(void)
{
    GByteArray *a;
    GHashTableIter it;
    gpointer id, p;

    if (!gpu.enabled && (!gpu.pictures || !g_hash_table_size(gpu.pictures))) {
        return NULL;
    }
    a = g_byte_array_new();
    g_hash_table_iter_init(&it, gpu.pictures);
    while (g_hash_table_iter_next(&it, &id, &p)) {
        save_picture(a, GPOINTER_TO_UINT(id), p);
    }
    if (gpu.enabled) {
        put_rect(a, TT_SCREEN_SHOW, gpu.shown, gpu.x, gpu.y, gpu.width,
                 gpu.height);
    }
    return a;
}

void tt_gpu_restore(const GByteArray *saved)
{
    guint at = 0;

    gpu.is_ahead = false;
    gpu.width = gpu.height = 0;
    forget();
    while (saved && at < saved->len) {
        const uint8_t *head = saved->data + at;
        uint32_t len = tt_get_le32(head + 12);

        carry_out(tt_get_le32(head), tt_get_le32(head + 4),
                  tt_get_le32(head + 8), head + 16, len);
        at += 16 + len;
    }
}

/* ---- the console ---- */

bool tt_gpu_is_there(void)
{
    return gpu.is_there;
}

void tt_gpu_last_size(int *width, int *height)
{
    if (gpu.width) {
        *width = gpu.width;
        *height = gpu.height;
    }
}

bool tt_gpu_draw(QemuConsole *con)
{
    const Picture *p;
    DisplaySurface *to;
    pixman_image_t *copy;

    look_ahead();
    if (!gpu.enabled) {
        return false;
    }
    p = find(gpu.shown);
    if (!p) {
        if (!surface_is_placeholder(qemu_console_surface(con))) {
            dpy_gfx_replace_surface(con, NULL);     /* of the same size */
        }
        return true;
    }
    copy = pixman_image_create_bits(virtio_gpu_get_pixman_format(p->format),
                                    gpu.width, gpu.height, NULL, 0);
    if (!copy) {
        return false;
    }
    for (uint32_t y = 0; y < gpu.height; y++) {
        memcpy((uint8_t *)pixman_image_get_data(copy) +
               (uint64_t)y * pixman_image_get_stride(copy),
               p->pixels + ((uint64_t)(gpu.y + y) * p->width + gpu.x) * PIXEL,
               gpu.width * PIXEL);
    }
    to = qemu_create_displaysurface_pixman(copy);
    pixman_image_unref(copy);
    dpy_gfx_replace_surface(con, to);
    dpy_gfx_update_full(con);
    return true;
}
