/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The screen of a virtio-gpu, for a replay: the recorder's side.
 *
 * The card keeps pictures on the host's side: the guest hands it pieces of its RAM
 * with a command, which it copies at once. So each such command is noted in the log,
 * after it: the picture's size, the RAM that it is drawn in, which piece was taken,
 * what is shown. No pixel is logged for that: a replay that comes by takes it from
 * its own RAM, which is the same. Only where a replay may begin (at a checkpoint)
 * the pixels are that the guest has drawn but not handed over, or the other way
 * round.
 *
 * Only the card that has the first console is noted: the one of a screendump.
 *
 * Context: BQL, the vCPU outside guest code.
 */
#include "qemu/osdep.h"
#include "hw-tt/screen/tt-gpu.h"
#include "accel-tt/tt-position.h"
#include "hw-tt/memory/tt-memory.h"
#include "io/tt-base.h"
#include "log/tt-log.h"
#include "session/tt-ops.h"
#include "session/tt-session.h"
#include "tt/hooks.h"
#include "qemu/iov.h"
#include "qemu/main-loop.h"
#include "hw/virtio/virtio-gpu.h"
#include "hw/virtio/virtio-gpu-bswap.h"
#include "ui/console.h"

#define BACKING_BYTES   16      /* le32 block, le32 length, le64 offset */
#define BACKING_MAX     (TT_LOG_DATA_MAX / BACKING_BYTES)

typedef struct virtio_gpu_simple_resource Resource;

static bool noted;              /* something, since the card was reset */
static bool reset_owed;

static void note(unsigned op, uint32_t id, uint32_t aux, const void *data,
                 size_t len)
{
    TtEvent ev = {
        .kind = TT_EV_SCREEN, .addr = op, .val = id, .aux = aux,
        .data = data, .len = len,
    };

    if (reset_owed) {
        reset_owed = false;
        note(TT_SCREEN_RESET, 0, 0, NULL, 0);
    }
    tt_log_event(&ev);
    noted = op != TT_SCREEN_RESET;
}

static void note_rect(unsigned op, uint32_t id, uint32_t x, uint32_t y,
                      uint32_t width, uint32_t height, uint64_t offset)
{
    uint8_t data[24];

    tt_put_le32(data, x);
    tt_put_le32(data + 4, y);
    tt_put_le32(data + 8, width);
    tt_put_le32(data + 12, height);
    tt_put_le64(data + 16, offset);
    note(op, id, 0, data, sizeof(data));
}

static void note_create(const Resource *res)
{
    uint8_t data[12];

    tt_put_le32(data, res->width);
    tt_put_le32(data + 4, res->height);
    tt_put_le32(data + 8, res->format);
    note(TT_SCREEN_CREATE, res->resource_id, 0, data, sizeof(data));
}

static void note_backing(const Resource *res)
{
    g_autofree uint8_t *data = g_malloc(BACKING_MAX * BACKING_BYTES);
    unsigned n = 0;

    for (unsigned i = 0; i < res->iov_cnt; i++) {
        uint8_t *at = data + n * BACKING_BYTES;
        uint64_t offset = 0;

        tt_put_le32(at, tt_memory_locate(res->iov[i].iov_base, &offset));
        tt_put_le32(at + 4, res->iov[i].iov_len);
        tt_put_le64(at + 8, offset);
        if (++n == BACKING_MAX || i + 1 == res->iov_cnt) {
            note(TT_SCREEN_BACKING, res->resource_id, 0, data,
                 n * BACKING_BYTES);
            n = 0;
        }
    }
}

static void note_scanout(const VirtIOGPU *g)
{
    const struct virtio_gpu_scanout *s = &g->parent_obj.scanout[0];

    if (g->parent_obj.enable) {
        note_rect(TT_SCREEN_SHOW, s->resource_id, s->x, s->y, s->width,
                  s->height, 0);
    }
}

static bool is_first(const VirtIOGPU *g)
{
    QemuConsole *con = g->parent_obj.scanout[0].con;

    return con && qemu_console_get_index(con) == 0;
}

static const Resource *find_resource(VirtIOGPU *g, uint32_t id)
{
    const Resource *res;

    QTAILQ_FOREACH(res, &g->reslist, next) {
        if (res->resource_id == id) {
            return res->image ? res : NULL;
        }
    }
    return NULL;
}

/* Copies the command, as much as there is. */
static void get(const struct virtio_gpu_ctrl_command *cmd, void *to, size_t len)
{
    memset(to, 0, len);
    iov_to_buf(cmd->elem.out_sg, cmd->elem.out_num, 0, to, len);
}

static void note_transfer(VirtIOGPU *g,
                          const struct virtio_gpu_ctrl_command *cmd)
{
    struct virtio_gpu_transfer_to_host_2d t;

    get(cmd, &t, sizeof(t));
    virtio_gpu_t2d_bswap(&t);
    if (find_resource(g, t.resource_id)) {
        note_rect(TT_SCREEN_TAKE, t.resource_id, t.r.x, t.r.y, t.r.width,
                  t.r.height, t.offset);
    }
}

/* Of commands about a picture as a whole the number stands after the header. */
static uint32_t picture_of(const struct virtio_gpu_ctrl_command *cmd)
{
    struct {
        struct virtio_gpu_ctrl_hdr hdr;
        uint32_t id;
    } c;

    get(cmd, &c, sizeof(c));
    return le32_to_cpu(c.id);
}

static void note_command(VirtIOGPU *g,
                         const struct virtio_gpu_ctrl_command *cmd)
{
    uint32_t id = picture_of(cmd);
    const Resource *res = find_resource(g, id);

    switch (cmd->cmd_hdr.type) {
    case VIRTIO_GPU_CMD_RESOURCE_CREATE_2D:
        if (res) {
            note_create(res);
        }
        break;
    case VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING:
        if (res) {
            note_backing(res);
        }
        break;
    case VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING:
        note(TT_SCREEN_DETACH, id, 0, NULL, 0);
        break;
    case VIRTIO_GPU_CMD_RESOURCE_UNREF:
        note(TT_SCREEN_DESTROY, id, 0, NULL, 0);
        break;
    case VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D:
        note_transfer(g, cmd);
        break;
    case VIRTIO_GPU_CMD_SET_SCANOUT:
        note_scanout(g);
        break;
    }
}

/* While the past is shown a command is of the VM that waits, as its RAM is. */
void tt_gpu_command_slow(void *gpu, void *command)
{
    const struct virtio_gpu_ctrl_command *cmd = command;
    bool turned = tt_past;

    if (cmd->error || !is_first(gpu)) {
        return;
    }
    if (turned) {
        tt_world_swap();
    }
    if (tt_session.live && !tt_now.device_depth) {  /* else it is just being reset */
        note_command(gpu, cmd);
    }
    if (turned) {
        tt_world_swap();
    }
}

static void note_reset(void *opaque)
{
    if (reset_owed && tt_recording() && tt_session.live && !tt_now.device_depth) {
        reset_owed = false;
        note(TT_SCREEN_RESET, 0, 0, NULL, 0);
    }
}

/* Inside an instruction there is no place for a note. */
void tt_gpu_reset_slow(void *gpu)
{
    if (noted && is_first(gpu)) {
        reset_owed = true;
        aio_bh_schedule_oneshot(qemu_get_aio_context(), note_reset, NULL);
    }
}

/* ---- where a replay may begin ---- */

/* What differs between the picture and the RAM that it is drawn in. */
static void note_pixels(const Resource *res)
{
    uint8_t *image = (uint8_t *)pixman_image_get_data(res->image);
    size_t stride = pixman_image_get_stride(res->image);
    g_autofree uint8_t *row = g_malloc0(stride);

    if (res->iov_cnt) {
        note_rect(TT_SCREEN_TAKE, res->resource_id, 0, 0, res->width,
                  res->height, 0);
    }
    for (size_t at = 0; at < stride * res->height; at += stride) {
        size_t n = iov_to_buf(res->iov, res->iov_cnt, at, row, stride);

        memset(row + n, 0, stride - n);
        if (stride <= TT_LOG_DATA_MAX && memcmp(row, image + at, stride)) {
            note(TT_SCREEN_BYTES, res->resource_id, at, image + at, stride);
        }
    }
}

void tt_gpu_note_all(void)
{
    Object *obj = object_resolve_path_type("", TYPE_VIRTIO_GPU, NULL);
    VirtIOGPU *g = obj ? VIRTIO_GPU(obj) : NULL;
    const Resource *res;

    if (!g || !tt_session.live || !is_first(g)) {
        return;
    }
    note(TT_SCREEN_RESET, 0, 0, NULL, 0);
    if (!g->parent_obj.enable) {
        return;
    }
    QTAILQ_FOREACH(res, &g->reslist, next) {
        if (res->image) {
            note_create(res);
            note_backing(res);
            note_pixels(res);
        }
    }
    note_scanout(g);
}
