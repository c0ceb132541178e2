/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages of the vfio-user protocol as bytes, and the checks of those that a server
 * sends.
 */
#include "hw-tt/vfio-user/tt-vfu.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

enum { IS_REPLY = 1, TYPE_MASK = 15, WANTS_NO_REPLY = 16, HAS_ERROR = 32 };
enum { MAJOR = 0, MINOR = 1 };

const char *tt_vfu_command_name(uint16_t command)
{
    static const char *const names[] = {
        [TT_VFU_VERSION] = "version",
        [TT_VFU_DMA_MAP] = "DMA map",
        [TT_VFU_DMA_UNMAP] = "DMA unmap",
        [TT_VFU_DEVICE_INFO] = "device info",
        [TT_VFU_REGION_INFO] = "region info",
        [TT_VFU_IRQ_INFO] = "interrupt info",
        [TT_VFU_SET_IRQS] = "set interrupts",
        [TT_VFU_REGION_READ] = "region read",
        [TT_VFU_REGION_WRITE] = "region write",
        [TT_VFU_DMA_READ] = "DMA read",
        [TT_VFU_DMA_WRITE] = "DMA write",
        [TT_VFU_RESET] = "reset",
    };
    bool known = command < sizeof(names) / sizeof(names[0]) && names[command];

    return known ? names[command] : "an unknown command";
}

void tt_vfu_put_head(uint8_t *out, const TtVfuHead *h)
{
    assert(h->bytes >= TT_VFU_HEAD_BYTES && h->bytes <= TT_VFU_BYTES_MAX);
    tt_put_le16(out, h->id);
    tt_put_le16(out + 2, h->command);
    tt_put_le32(out + 4, h->bytes);
    tt_put_le32(out + 8, (h->is_reply ? IS_REPLY : 0) |
                (h->wants_no_reply ? WANTS_NO_REPLY : 0) |
                (h->error ? HAS_ERROR : 0));
    tt_put_le32(out + 12, h->error);
}

TtStatus tt_vfu_get_head(TtVfuHead *h, const uint8_t *bytes, TtDiag *diag)
{
    uint32_t flags = tt_get_le32(bytes + 8), type = flags & TYPE_MASK;

    *h = (TtVfuHead) {
        .id = tt_get_le16(bytes), .command = tt_get_le16(bytes + 2),
        .bytes = tt_get_le32(bytes + 4), .is_reply = type == IS_REPLY,
        .wants_no_reply = flags & WANTS_NO_REPLY,
    };
    if (h->bytes < TT_VFU_HEAD_BYTES || type > IS_REPLY) {
        return tt_fail(diag, TT_ERR_FORMAT, "the server sent something that is not a "
                       "message of vfio-user (length %" PRIu32 ", type %" PRIu32 ")",
                       h->bytes, type);
    }
    if (h->bytes > TT_VFU_BYTES_MAX) {
        return tt_fail(diag, TT_ERR_LIMIT, "the server sent a message of %" PRIu32
                       " bytes: the limit is %u", h->bytes, TT_VFU_BYTES_MAX);
    }
    if (h->is_reply && (flags & HAS_ERROR)) {
        h->error = tt_get_le32(bytes + 12);
        /* An error without a number is an error all the same. */
        h->error = h->error && h->error < 4096 ? h->error : 5;
    }
    return TT_OK;
}

TtStatus tt_vfu_check_reply(const TtVfuHead *h, uint16_t id, uint16_t command,
                            size_t n, TtDiag *diag)
{
    if (!h->is_reply || h->id != id || h->command != command) {
        return tt_fail(diag, TT_ERR_FORMAT, "the server answered '%s' %u instead of "
                       "'%s' %u", tt_vfu_command_name(h->command), h->id,
                       tt_vfu_command_name(command), id);
    }
    if (!h->error && h->bytes - TT_VFU_HEAD_BYTES < n) {
        return tt_fail(diag, TT_ERR_FORMAT, "the server's answer to '%s' has %" PRIu32
                       " bytes instead of at least %zu", tt_vfu_command_name(command),
                       h->bytes - TT_VFU_HEAD_BYTES, n);
    }
    return TT_OK;
}

/* ---- version ---- */

size_t tt_vfu_put_version(uint8_t *out)
{
    int n;

    tt_put_le16(out, MAJOR);
    tt_put_le16(out + 2, MINOR);
    n = snprintf((char *)out + 4, TT_VFU_TEXT_MAX - 4,
                 "{\"capabilities\":{\"max_msg_fds\":%u,"
                 "\"max_data_xfer_size\":%u}}", TT_VFU_FDS_MAX, TT_VFU_DATA_MAX);
    return 4 + n + 1;
}

TtStatus tt_vfu_get_version(const uint8_t *bytes, size_t len, const char **text,
                            TtDiag *diag)
{
    *text = "";
    if (len < 4 || len > TT_VFU_TEXT_MAX) {
        return tt_fail(diag, TT_ERR_FORMAT, "the server's version message has a wrong "
                       "length, %zu bytes", len);
    }
    if (tt_get_le16(bytes) != MAJOR) {
        return tt_fail(diag, TT_ERR_VERSION, "the server speaks version %u.%u of "
                       "vfio-user: this client speaks %u.%u", tt_get_le16(bytes),
                       tt_get_le16(bytes + 2), MAJOR, MINOR);
    }
    if (len > 4) {
        if (bytes[len - 1]) {
            return tt_fail(diag, TT_ERR_FORMAT, "the server's capabilities do not end "
                           "with a NUL");
        }
        *text = (const char *)bytes + 4;
    }
    return TT_OK;
}

TtStatus tt_vfu_check_limits(int64_t *fds, int64_t *data, TtDiag *diag)
{
    *fds = *fds == -1 ? 1 : *fds;
    *data = *data == -1 ? TT_VFU_DATA_MAX : *data;
    if (*fds < 1) {
        return tt_fail(diag, TT_ERR_FORMAT, "the server accepts %" PRId64 " descriptors "
                       "in a message: interrupts need at least one", *fds);
    }
    if (*data < TT_VFU_DATA_MIN) {
        return tt_fail(diag, TT_ERR_FORMAT, "the server accepts %" PRId64 " bytes in a "
                       "message: at least %u are needed", *data, TT_VFU_DATA_MIN);
    }
    *fds = *fds < TT_VFU_FDS_MAX ? *fds : TT_VFU_FDS_MAX;
    *data = *data < TT_VFU_DATA_MAX ? *data : TT_VFU_DATA_MAX;
    return TT_OK;
}

/* ---- what there is ---- */

enum { DEVICE_IS_PCI = 2, REGION_READ = 1, REGION_WRITE = 2, IRQ_EVENTFD = 1 };

size_t tt_vfu_put_device_info(uint8_t *out)
{
    memset(out, 0, TT_VFU_DEVICE_BYTES);
    tt_put_le32(out, TT_VFU_DEVICE_BYTES);
    return TT_VFU_DEVICE_BYTES;
}

static TtStatus too_short(const char *what, size_t len, TtDiag *diag)
{
    return tt_fail(diag, TT_ERR_FORMAT, "the server's %s has only %zu bytes", what,
                   len);
}

TtStatus tt_vfu_get_device_info(TtVfuDevice *d, const uint8_t *bytes, size_t len,
                                TtDiag *diag)
{
    uint32_t flags;

    if (len < TT_VFU_DEVICE_BYTES) {
        return too_short("device info", len, diag);
    }
    flags = tt_get_le32(bytes + 4);
    d->n_regions = tt_get_le32(bytes + 8);
    d->n_irqs = tt_get_le32(bytes + 12);
    if (!(flags & DEVICE_IS_PCI)) {
        return tt_fail(diag, TT_ERR_FORMAT, "the server's device is not a PCI device");
    }
    if (d->n_regions < TT_VFU_REGIONS || d->n_irqs < TT_VFU_IRQS) {
        return tt_fail(diag, TT_ERR_FORMAT, "the server's device has %" PRIu32
                       " regions and %" PRIu32 " kinds of interrupts: a PCI device "
                       "has at least %u and %u", d->n_regions, d->n_irqs, TT_VFU_REGIONS,
                       TT_VFU_IRQS);
    }
    return TT_OK;
}

size_t tt_vfu_put_region_info(uint8_t *out, uint32_t index)
{
    memset(out, 0, TT_VFU_REGION_BYTES);
    tt_put_le32(out, TT_VFU_REGION_BYTES);
    tt_put_le32(out + 8, index);
    return TT_VFU_REGION_BYTES;
}

TtStatus tt_vfu_get_region_info(TtVfuRegion *r, uint32_t index, const uint8_t *bytes,
                                size_t len, TtDiag *diag)
{
    uint32_t flags;

    if (len < TT_VFU_REGION_BYTES) {
        return too_short("region info", len, diag);
    }
    if (tt_get_le32(bytes + 8) != index) {
        return tt_fail(diag, TT_ERR_FORMAT, "the server described region %" PRIu32
                       " when asked for region %" PRIu32, tt_get_le32(bytes + 8), index);
    }
    flags = tt_get_le32(bytes + 4);
    r->can_read = flags & REGION_READ;
    r->can_write = flags & REGION_WRITE;
    r->size = tt_get_le64(bytes + 16);
    return TT_OK;
}

size_t tt_vfu_put_irq_info(uint8_t *out, uint32_t index)
{
    memset(out, 0, TT_VFU_IRQ_BYTES);
    tt_put_le32(out, TT_VFU_IRQ_BYTES);
    tt_put_le32(out + 8, index);
    return TT_VFU_IRQ_BYTES;
}

TtStatus tt_vfu_get_irq_info(uint32_t *count, uint32_t index, const uint8_t *bytes,
                             size_t len, TtDiag *diag)
{
    if (len < TT_VFU_IRQ_BYTES) {
        return too_short("interrupt info", len, diag);
    }
    if (tt_get_le32(bytes + 8) != index) {
        return tt_fail(diag, TT_ERR_FORMAT, "the server described interrupts of kind %"
                       PRIu32 " when asked for kind %" PRIu32,
                       tt_get_le32(bytes + 8), index);
    }
    /* An interrupt that cannot come by an eventfd cannot come. */
    *count = tt_get_le32(bytes + 4) & IRQ_EVENTFD ? tt_get_le32(bytes + 12) : 0;
    return TT_OK;
}

/* ---- accesses and interrupts ---- */

size_t tt_vfu_put_access(uint8_t *out, uint32_t region, uint64_t offset,
                         uint32_t count)
{
    assert(count <= TT_VFU_DATA_MAX);
    tt_put_le64(out, offset);
    tt_put_le32(out + 8, region);
    tt_put_le32(out + 12, count);
    return TT_VFU_ACCESS_BYTES;
}

TtStatus tt_vfu_get_access(const uint8_t **data, uint32_t region, uint64_t offset,
                           uint32_t count, const uint8_t *bytes, size_t len,
                           TtDiag *diag)
{
    if (len < TT_VFU_ACCESS_BYTES || tt_get_le64(bytes) != offset ||
        tt_get_le32(bytes + 8) != region || tt_get_le32(bytes + 12) != count ||
        (data && len != TT_VFU_ACCESS_BYTES + (size_t)count)) {
        return tt_fail(diag, TT_ERR_FORMAT, "the server's answer does not fit the "
                       "access to %" PRIu32 " bytes at %" PRIx64 "h of region %" PRIu32,
                       count, offset, region);
    }
    if (data) {
        *data = bytes + TT_VFU_ACCESS_BYTES;
    }
    return TT_OK;
}

size_t tt_vfu_put_set_irqs(uint8_t *out, uint32_t flags, uint32_t index,
                           uint32_t start, uint32_t count)
{
    tt_put_le32(out, TT_VFU_SET_IRQS_BYTES);
    tt_put_le32(out + 4, flags);
    tt_put_le32(out + 8, index);
    tt_put_le32(out + 12, start);
    tt_put_le32(out + 16, count);
    return TT_VFU_SET_IRQS_BYTES;
}
