/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Partitions of a disk. A GPT (UEFI specification, chapter 5) counts when the checksum
 * of its head is right: the one at the second sector, else the one at the last; sectors
 * of 512 or 4096 bytes. An MBR counts when each of its four entries could be one.
 */
#include "block-tt/tt-diskparts.h"
#include "io/tt-bytes.h"

#include <glib.h>

#define SECTOR          512
#define MBR_ENTRY       446
#define GPT_HEAD        92      /* bytes that the checksum of a head is over, at least */
#define GPT_ENTRY_MIN   128
#define GPT_ENTRY_MAX   4096

typedef struct Table {
    TtIo *disk;
    uint64_t bytes;
    TtDiskPart *part;
    unsigned n;
} Table;

static TtStatus read_all(const Table *t, uint64_t at, void *buf, size_t len,
                         bool *is_there, TtDiag *diag)
{
    size_t got = 0;
    TtStatus st;

    *is_there = false;
    if (at > t->bytes || len > t->bytes - at) {
        return TT_OK;
    }
    st = t->disk->ops->read_at(t->disk, at, buf, len, &got, diag);
    *is_there = st == TT_OK && got == len;
    return st;
}

static void add(Table *t, uint32_t number, uint64_t start, uint64_t len)
{
    if (t->n < TT_DISKPARTS_MAX && start && len && start < t->bytes &&
        len <= t->bytes - start) {
        t->part[t->n++] = (TtDiskPart) { number, start, len };
    }
}

/* ---- GPT ---- */

static uint32_t crc32_of(const uint8_t *p, size_t len)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < len; i++) {
        crc ^= p[i];
        for (unsigned bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
        }
    }
    return ~crc;
}

static bool is_gpt_head(uint8_t *head, size_t bytes)
{
    uint32_t len = tt_get_le32(head + 12), sum = tt_get_le32(head + 16);
    bool is_right;

    if (memcmp(head, "EFI PART", 8) != 0 || len < GPT_HEAD || len > bytes) {
        return false;
    }
    tt_put_le32(head + 16, 0);
    is_right = crc32_of(head, len) == sum;
    tt_put_le32(head + 16, sum);
    return is_right;
}

static TtStatus read_gpt_entries(Table *t, const uint8_t *head, uint32_t sector,
                                 TtDiag *diag)
{
    uint64_t at = tt_get_le64(head + 72);
    uint32_t n = MIN(tt_get_le32(head + 80), TT_DISKPARTS_MAX);
    uint32_t len = tt_get_le32(head + 84);
    uint8_t entry[GPT_ENTRY_MIN], none[16] = { 0 };
    bool is_there = true;

    if (len < GPT_ENTRY_MIN || len > GPT_ENTRY_MAX || at > t->bytes / sector) {
        return TT_OK;
    }
    for (uint32_t i = 0; i < n && is_there; i++) {
        TtStatus st = read_all(t, at * sector + (uint64_t)i * len, entry, sizeof(entry),
                               &is_there, diag);
        uint64_t first, last;

        if (st != TT_OK) {
            return st;
        }
        first = is_there ? tt_get_le64(entry + 32) : 0;
        last = is_there ? tt_get_le64(entry + 40) : 0;
        if (is_there && memcmp(entry, none, sizeof(none)) != 0 && first <= last &&
            last < t->bytes / sector) {
            add(t, i + 1, first * sector, (last - first + 1) * sector);
        }
    }
    return TT_OK;
}

static TtStatus read_gpt(Table *t, bool *is_gpt, TtDiag *diag)
{
    static const uint32_t sectors[] = { 512, 4096 };
    uint8_t head[SECTOR];

    *is_gpt = false;
    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(sectors); i++) {
        uint32_t sector = sectors[i / 2];
        uint64_t last = t->bytes / sector;
        TtStatus st;

        if (last < 2) {
            continue;
        }
        st = read_all(t, (i % 2 ? last - 1 : 1) * sector, head, sizeof(head), is_gpt,
                      diag);
        if (st != TT_OK) {
            return st;
        }
        *is_gpt = *is_gpt && is_gpt_head(head, sizeof(head));
        if (*is_gpt) {
            return read_gpt_entries(t, head, sector, diag);
        }
    }
    return TT_OK;
}

/* ---- MBR ---- */

static bool is_mbr(const uint8_t *s)
{
    bool has_some = false;

    for (unsigned i = 0; i < 4; i++) {
        const uint8_t *e = s + MBR_ENTRY + 16 * i;

        if (e[0] & 0x7f) {
            return false;
        }
        has_some |= e[4] && tt_get_le32(e + 12);
    }
    return has_some && s[510] == 0x55 && s[511] == 0xaa;
}

static bool is_extended(uint8_t type)
{
    return type == 0x05 || type == 0x0f || type == 0x85;
}

/* A chain of sectors: in each a partition, counted from that sector, and the next one,
 * counted from the first. */
static TtStatus read_logical(Table *t, uint64_t first, TtDiag *diag)
{
    uint64_t at = first;
    uint8_t s[SECTOR];

    for (uint32_t number = 5; number < 5 + TT_DISKPARTS_MAX; number++) {
        bool is_there;
        TtStatus st = read_all(t, at * SECTOR, s, sizeof(s), &is_there, diag);
        const uint8_t *e = s + MBR_ENTRY;

        if (st != TT_OK || !is_there || s[510] != 0x55 || s[511] != 0xaa) {
            return st;
        }
        if (e[4]) {
            add(t, number, (at + tt_get_le32(e + 8)) * SECTOR,
                (uint64_t)tt_get_le32(e + 12) * SECTOR);
        }
        if (!is_extended(e[16 + 4]) || first + tt_get_le32(e + 16 + 8) <= at) {
            return TT_OK;
        }
        at = first + tt_get_le32(e + 16 + 8);
    }
    return TT_OK;
}

TtStatus tt_diskparts_read(TtIo *disk, TtDiskPart *part, unsigned *n, TtDiag *diag)
{
    Table t = { .disk = disk, .part = part };
    uint8_t s[SECTOR];
    bool is_there;
    TtStatus st = disk->ops->size(disk, &t.bytes, diag);

    *n = 0;
    if (st == TT_OK) {
        st = read_gpt(&t, &is_there, diag);
    }
    if (st == TT_OK && !is_there) {
        st = read_all(&t, 0, s, sizeof(s), &is_there, diag);
        for (unsigned i = 0; st == TT_OK && is_there && is_mbr(s) && i < 4; i++) {
            const uint8_t *e = s + MBR_ENTRY + 16 * i;
            uint64_t start = tt_get_le32(e + 8);

            if (is_extended(e[4])) {
                st = read_logical(&t, start, diag);
            } else if (e[4]) {
                add(&t, i + 1, start * SECTOR, (uint64_t)tt_get_le32(e + 12) * SECTOR);
            }
        }
    }
    *n = st == TT_OK ? t.n : 0;
    return st;
}
