/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * See blockmap-damage.h. The bytes of the disk are not looked at, only where they lie:
 * the map has no checksums of them.
 */
#include "blockmap-damage.h"
#include "block-tt/tt-blockmap.h"

#include <glib.h>
#include <string.h>

typedef void Lookup(const void *from, uint64_t offset, uint64_t len, TtBlockRun *run);

static void in_head(const void *from, uint64_t offset, uint64_t len, TtBlockRun *run)
{
    tt_blockmap_lookup(from, offset, len, run);
}

static void in_view(const void *from, uint64_t offset, uint64_t len, TtBlockRun *run)
{
    tt_blockmap_view_lookup(from, offset, len, run);
}

static bool same_places(Lookup *lookup, const void *a, const void *b, uint64_t size)
{
    TtBlockRun x, y;

    for (uint64_t at = 0; at < size; at += x.len) {
        lookup(a, at, size - at, &x);
        lookup(b, at, size - at, &y);
        if (x.kind != y.kind || x.len != y.len || x.host_offset != y.host_offset) {
            return false;
        }
    }
    return true;
}

static bool same_version(TtBlockMap *a, TtBlockMap *b, uint32_t i, uint64_t size)
{
    TtVersionInfo x, y;
    TtBlockView *in_a, *in_b;
    bool same;

    if (!tt_blockmap_version_at(a, i, &x) || !tt_blockmap_version_at(b, i, &y) ||
        x.id != y.id || x.parent != y.parent || x.tag != y.tag || strcmp(x.name, y.name)) {
        return false;
    }
    in_a = tt_blockmap_view_open(a, x.id);
    in_b = tt_blockmap_view_open(b, x.id);
    same = same_places(in_view, in_a, in_b, size);
    tt_blockmap_view_close(a, in_a);
    tt_blockmap_view_close(b, in_b);
    return same;
}

static bool same_state(TtBlockMap *a, TtBlockMap *b)
{
    TtDiskInfo x, y;
    bool same;

    tt_blockmap_info(a, &x);
    tt_blockmap_info(b, &y);
    same = x.size_bytes == y.size_bytes && x.n_versions == y.n_versions &&
           x.parent == y.parent && !g_strcmp0(x.backing, y.backing) &&
           same_places(in_head, a, b, x.size_bytes);
    for (uint32_t i = 0; same && i < x.n_versions; i++) {
        same = same_version(a, b, i, x.size_bytes);
    }
    return same;
}

enum { ZEROS, ONES, INVERTED, ONE_BIT, N_WAYS };

static void damage(uint8_t *b, unsigned len, unsigned way)
{
    switch (way) {
    case ZEROS:
        memset(b, 0, len);
        break;
    case ONES:
        memset(b, 0xff, len);
        break;
    case INVERTED:
        for (unsigned i = 0; i < len; i++) {
            b[i] = ~b[i];
        }
        break;
    default:
        b[len / 40] ^= 1;       /* where a record or a head says something */
    }
}

/* Is what opens from @io the state of @whole, or damaged? */
static bool is_told(TtIo *io, TtBlockMap *whole)
{
    TtBlockMap *map;
    bool ok;

    if (tt_blockmap_open(io, &map, NULL) != TT_OK) {
        return true;
    }
    ok = tt_blockmap_damage(map) || same_state(whole, map);
    tt_blockmap_free(map);
    return ok;
}

const char *blockmap_damage_each(TtIo *file, unsigned unit, uint64_t *at)
{
    g_autofree uint8_t *was = g_malloc(unit), *is = g_malloc(unit);
    g_autofree uint8_t *bytes = NULL;
    TtBlockMap *whole = NULL;
    uint64_t size;
    size_t got;
    TtIo *copy;
    bool ok;

    file->ops->size(file, &size, NULL);
    bytes = g_malloc(size);
    file->ops->read_at(file, 0, bytes, size, &got, NULL);
    copy = tt_io_mem_new(bytes, size);
    *at = 0;
    ok = tt_blockmap_open(copy, &whole, NULL) == TT_OK && !tt_blockmap_damage(whole);
    for (uint64_t b = 0; ok && b < size; b += unit) {
        size_t len = MIN(unit, size - b);

        *at = b;
        memcpy(was, bytes + b, len);
        for (unsigned way = 0; ok && way < N_WAYS; way++) {
            memcpy(is, was, len);
            damage(is, len, way);
            copy->ops->write_at(copy, b, is, len, NULL);
            ok = memcmp(is, was, len) == 0 || is_told(copy, whole);
        }
        copy->ops->write_at(copy, b, was, len, NULL);
    }
    tt_blockmap_free(whole);
    tt_io_close(copy);
    return ok ? NULL : "a damaged block gives another state without a word";
}
