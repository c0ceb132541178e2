/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A place as bytes: le64 pc, flags, 16 general and 20 system registers, a hash of the
 * FPU; le32 pages; then for each page le32 number and two le64 hashes, or, for all of
 * RAM, le64 its digest. */
#include "tt-landmark.h"
#include "io/tt-bytes.h"

#include <assert.h>

#define PAGE_BYTES 4096
/* Of an entry of 8 bytes, or of two of 4: then 8 bytes have them twice. In an entry of 8,
 * the upper ones are bits of an address beyond 128 GiB. */
#define ACCESSED_AND_DIRTY UINT64_C(0x6000000060)

TtLandmarkPage tt_landmark_page(const TtLandmark *p, uint32_t i)
{
    const uint8_t *at = p->pages + (size_t)TT_LANDMARK_PAGE * i;

    assert(p->n_pages != TT_LANDMARK_WHOLE_RAM && i < p->n_pages);
    return (TtLandmarkPage) {
        .page = tt_get_le32(at), .hash = tt_get_le64(at + 4),
        .table_hash = tt_get_le64(at + 12),
    };
}

static uint64_t table_hash(const void *bytes)
{
    uint64_t entries[PAGE_BYTES / 8];

    for (unsigned i = 0; i < PAGE_BYTES / 8; i++) {
        uint64_t e = tt_get_le64((const uint8_t *)bytes + 8 * i);

        tt_put_le64((uint8_t *)&entries[i], e & ~ACCESSED_AND_DIRTY);
    }
    return XXH3_64bits(entries, PAGE_BYTES);
}

void tt_landmark_hash(TtLandmarkPage *page, const void *bytes)
{
    page->hash = XXH3_64bits(bytes, PAGE_BYTES);
    page->table_hash = table_hash(bytes);
}

bool tt_landmark_page_is(const TtLandmarkPage *page, const void *bytes, bool is_table)
{
    return XXH3_64bits(bytes, PAGE_BYTES) == page->hash ||
        (is_table && table_hash(bytes) == page->table_hash);
}

void tt_landmark_put_head(const TtLandmark *p, uint8_t *out)
{
    tt_put_le64(out, p->pc);
    tt_put_le64(out + 8, p->flags);
    for (unsigned i = 0; i < TT_LANDMARK_REGS; i++) {
        tt_put_le64(out + 16 + 8 * i, p->regs[i]);
    }
    for (unsigned i = 0; i < TT_LANDMARK_SYSTEM; i++) {
        tt_put_le64(out + 16 + 8 * (TT_LANDMARK_REGS + i), p->system[i]);
    }
    tt_put_le64(out + TT_LANDMARK_HEAD - 12, p->fpu_hash);
    tt_put_le32(out + TT_LANDMARK_HEAD - 4, p->n_pages);
    if (p->n_pages == TT_LANDMARK_WHOLE_RAM) {
        tt_put_le64(out + TT_LANDMARK_HEAD, p->ram_digest);
    }
}

void tt_landmark_put_page(uint8_t *pages, uint32_t i, const TtLandmarkPage *page)
{
    uint8_t *at = pages + (size_t)TT_LANDMARK_PAGE * i;

    assert(i < TT_LANDMARK_PAGES_MAX);
    tt_put_le32(at, page->page);
    tt_put_le64(at + 4, page->hash);
    tt_put_le64(at + 12, page->table_hash);
}

size_t tt_landmark_bytes(uint32_t n_pages)
{
    return TT_LANDMARK_HEAD + (n_pages == TT_LANDMARK_WHOLE_RAM ? 8 :
                            (size_t)TT_LANDMARK_PAGE * n_pages);
}

bool tt_landmark_decode(TtLandmark *p, const uint8_t *data, size_t len)
{
    if (len < TT_LANDMARK_HEAD) {
        return false;
    }
    *p = (TtLandmark) {
        .pc = tt_get_le64(data),
        .flags = tt_get_le64(data + 8),
        .fpu_hash = tt_get_le64(data + TT_LANDMARK_HEAD - 12),
        .n_pages = tt_get_le32(data + TT_LANDMARK_HEAD - 4),
        .pages = data + TT_LANDMARK_HEAD,
    };
    for (unsigned i = 0; i < TT_LANDMARK_REGS; i++) {
        p->regs[i] = tt_get_le64(data + 16 + 8 * i);
    }
    for (unsigned i = 0; i < TT_LANDMARK_SYSTEM; i++) {
        p->system[i] = tt_get_le64(data + 16 + 8 * (TT_LANDMARK_REGS + i));
    }
    if (p->n_pages != TT_LANDMARK_WHOLE_RAM && p->n_pages > TT_LANDMARK_PAGES_MAX) {
        return false;
    }
    if (len != tt_landmark_bytes(p->n_pages)) {
        return false;
    }
    if (p->n_pages == TT_LANDMARK_WHOLE_RAM) {
        p->ram_digest = tt_get_le64(data + TT_LANDMARK_HEAD);
    }
    return true;
}
