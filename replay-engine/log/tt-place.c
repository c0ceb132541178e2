/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A place as bytes: le64 pc, flags, 16 registers, two hashes; le32 pages; then for
 * each page le32 number and le64 hash, or, for all of RAM, le64 its digest. */
#include "tt-place.h"
#include "io/tt-bytes.h"

#include <assert.h>

void tt_place_page(const TtPlace *p, uint32_t i, uint32_t *page, uint64_t *hash)
{
    const uint8_t *at = p->pages + (size_t)TT_PLACE_PAGE * i;

    assert(p->n_pages != TT_PLACE_WHOLE_RAM && i < p->n_pages);
    *page = tt_get_le32(at);
    *hash = tt_get_le64(at + 4);
}

void tt_place_put_head(const TtPlace *p, uint8_t *out)
{
    tt_put_le64(out, p->pc);
    tt_put_le64(out + 8, p->flags);
    for (unsigned i = 0; i < TT_PLACE_REGS; i++) {
        tt_put_le64(out + 16 + 8 * i, p->regs[i]);
    }
    tt_put_le64(out + 16 + 8 * TT_PLACE_REGS, p->system_hash);
    tt_put_le64(out + 24 + 8 * TT_PLACE_REGS, p->fpu_hash);
    tt_put_le32(out + TT_PLACE_HEAD - 4, p->n_pages);
    if (p->n_pages == TT_PLACE_WHOLE_RAM) {
        tt_put_le64(out + TT_PLACE_HEAD, p->ram_digest);
    }
}

void tt_place_put_page(uint8_t *out, uint32_t i, uint32_t page, uint64_t hash)
{
    uint8_t *at = out + TT_PLACE_HEAD + (size_t)TT_PLACE_PAGE * i;

    assert(i < TT_PLACE_PAGES_MAX);
    tt_put_le32(at, page);
    tt_put_le64(at + 4, hash);
}

size_t tt_place_bytes(uint32_t n_pages)
{
    return TT_PLACE_HEAD + (n_pages == TT_PLACE_WHOLE_RAM ? 8 :
                            (size_t)TT_PLACE_PAGE * n_pages);
}

bool tt_place_decode(TtPlace *p, const uint8_t *data, size_t len)
{
    if (len < TT_PLACE_HEAD) {
        return false;
    }
    *p = (TtPlace) {
        .pc = tt_get_le64(data),
        .flags = tt_get_le64(data + 8),
        .system_hash = tt_get_le64(data + 16 + 8 * TT_PLACE_REGS),
        .fpu_hash = tt_get_le64(data + 24 + 8 * TT_PLACE_REGS),
        .n_pages = tt_get_le32(data + TT_PLACE_HEAD - 4),
        .pages = data + TT_PLACE_HEAD,
    };
    for (unsigned i = 0; i < TT_PLACE_REGS; i++) {
        p->regs[i] = tt_get_le64(data + 16 + 8 * i);
    }
    if (p->n_pages != TT_PLACE_WHOLE_RAM && p->n_pages > TT_PLACE_PAGES_MAX) {
        return false;
    }
    if (len != tt_place_bytes(p->n_pages)) {
        return false;
    }
    if (p->n_pages == TT_PLACE_WHOLE_RAM) {
        p->ram_digest = tt_get_le64(data + TT_PLACE_HEAD);
    }
    return true;
}
