/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target of the reader of disks with versions: the bytes are the operations of a
 * journal, or (first byte odd) the whole file after a right head. A file that opens
 * must add up, must be able to go anywhere, and must be the same after its journal was
 * written.
 */
#include "block-tt/tt-blockmap.h"
#include "io/tt-bytes.h"

#include <glib.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BITS            12
#define DISK_BYTES      (3000ull << BITS)
#define FILE_BYTES      (200u << BITS)
#define JOURNAL_AT      (2u << BITS)

/* The first record of a new image, another one. */
static void put_record(TtIo *io, const uint8_t *ops, size_t len)
{
    uint8_t *b = g_malloc0(24 + len);

    memcpy(b, "TTJR", 4);
    tt_put_le32(b + 4, 24 + len);
    tt_put_le32(b + 8, 2);
    tt_put_le32(b + 12, 1);
    if (len) {
        memcpy(b + 24, ops, len);
    }
    tt_put_le64(b + 16, tt_header_sum(b, 24 + len, 16, 2));
    io->ops->write_at(io, JOURNAL_AT, b, 24 + len, NULL);
    g_free(b);
}

static void expect(bool what)
{
    if (!what) {
        abort();
    }
}

static void adds_up(const TtBlockMap *bm, bool one_owner)
{
    TtBlockCheck check;

    expect(tt_blockmap_check(bm, &check, NULL) == TT_OK);
    /* A hostile journal may name a host cluster twice: that is found, and harmless. */
    expect(!check.errors || (!one_owner && strstr(check.text, "used by two")));
}

static void use(TtBlockMap *bm, TtIo *io)
{
    TtVersionInfo info;
    TtDiskInfo before, after;
    TtBlockWrite w;
    TtStatus st;
    TtBlockMap *again;

    for (uint32_t i = 0; tt_blockmap_version_at(bm, i, &info); i += 3) {
        TtBlockView *view = tt_blockmap_view_open(bm, info.id);
        TtBlockRun run;

        tt_blockmap_view_lookup(view, 0, DISK_BYTES, &run);
        tt_blockmap_view_close(bm, view);
        expect(tt_blockmap_goto(bm, info.id, NULL) == TT_OK);
    }
    if (tt_blockmap_version_at(bm, 0, &info)) {
        expect(tt_blockmap_version_delete(bm, info.id, NULL) == TT_OK);
    }
    if (tt_blockmap_damage(bm)) {
        adds_up(bm, false);
        return;
    }
    expect(tt_blockmap_write_begin(bm, 5000, 70000, &w, NULL) == TT_OK);
    io->ops->write_at(io, w.host_offset, &w, sizeof(w), NULL);
    tt_blockmap_write_end(bm, &w, true);
    adds_up(bm, false);
    tt_blockmap_set_anew_bytes(bm, 0);
    st = tt_blockmap_commit(bm, io, NULL);
    if (st == TT_ERR_NOSPACE) {         /* it names more than a file in memory can have */
        return;
    }
    expect(st == TT_OK);
    expect(tt_blockmap_commit(bm, io, NULL) == TT_OK);
    tt_blockmap_info(bm, &before);
    expect(tt_blockmap_open(io, &again, NULL) == TT_OK);
    tt_blockmap_info(again, &after);
    expect(before.n_versions == after.n_versions && before.parent == after.parent &&
           before.head_clusters == after.head_clusters);
    tt_blockmap_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TtBlockSpec spec = { .size_bytes = DISK_BYTES, .cluster_bits = BITS };
    TtIo *io = tt_io_mem_new(NULL, 0);
    TtBlockMap *bm;
    TtDiag diag;

    expect(tt_blockmap_format_io(&spec, io, NULL) == TT_OK);
    io->ops->write_at(io, FILE_BYTES - 1, "", 1, NULL);
    if (size && data[0] & 1) {
        io->ops->write_at(io, data[0] & 2 ? 0 : JOURNAL_AT, data + 1, size - 1, NULL);
    } else if (size) {
        put_record(io, data + 1, size - 1);
    }
    if (tt_blockmap_open(io, &bm, &diag) == TT_OK) {
        adds_up(bm, false);
        use(bm, io);
        tt_blockmap_free(bm);
    } else {
        expect(diag.text[0] != '\0');
    }
    tt_io_close(io);
    return 0;
}
