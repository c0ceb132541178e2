/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which bytes of a disk an event means: its data. */
#include "tt-log-format.h"

uint32_t tt_disk_ref_encode(const TtDiskRef *ref, uint8_t *out)
{
    uint8_t *p = out;

    tt_put_le32(p, ref->sum);
    p = tt_put_varint(p + 4, ref->disk);
    p = tt_put_varint(p, ref->version);
    p = tt_put_varint(p, ref->sector);
    return p - out;
}

static bool get(const uint8_t **p, const uint8_t *end, uint64_t max, uint64_t *v)
{
    *v = 0;
    for (unsigned shift = 0; *p < end && shift < 63; shift += 7) {
        uint8_t b = *(*p)++;

        *v |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80) {
            return *v <= max;
        }
    }
    return false;
}

bool tt_disk_ref_decode(const TtEvent *ev, TtDiskRef *ref)
{
    const uint8_t *p = ev->data + 4, *end = ev->data + ev->len;
    uint64_t disk, version, sector;

    if (ev->len < 4 || !ev->aux || ev->aux > TT_LOG_DATA_MAX || ev->aux % 512 ||
        !get(&p, end, UINT32_MAX, &disk) || !get(&p, end, UINT32_MAX, &version) ||
        !get(&p, end, INT64_MAX / 1024, &sector) || p != end) {
        return false;
    }
    *ref = (TtDiskRef) {
        .disk = disk, .version = version, .sector = sector, .sum = tt_get_le32(ev->data),
    };
    return true;
}
