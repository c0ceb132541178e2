/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Is a pack of a run that is being recorded whole? The recorder may have changed its
 * store while that was copied: given pages back, or put another file in its place.
 */
#include "tt-tool.h"
#include "run/tt-pack.h"

/* A member of the pack, to be read like a file. */
typedef struct Slice {
    TtIo io;
    TtIo *pack;
    uint64_t offset, bytes;
} Slice;

static Slice *slice(TtIo *io)
{
    return (Slice *)((char *)io - offsetof(Slice, io));
}

static TtStatus slice_size(TtIo *io, uint64_t *bytes, TtDiag *diag)
{
    *bytes = slice(io)->bytes;
    return TT_OK;
}

static TtStatus slice_read_at(TtIo *io, uint64_t offset, void *buf, size_t len,
                              size_t *got, TtDiag *diag)
{
    Slice *s = slice(io);

    *got = 0;
    if (offset >= s->bytes) {
        return TT_OK;
    }
    return s->pack->ops->read_at(s->pack, s->offset + offset, buf,
                                 MIN(len, s->bytes - offset), got, diag);
}

static void slice_close(TtIo *io)
{
    tt_io_close(slice(io)->pack);
    g_free(slice(io));
}

static const TtIoOps slice_ops = {
    .size = slice_size, .read_at = slice_read_at, .close = slice_close,
};

static TtStatus slice_new(TtIo *pack, const TtPackMember *m, TtIo **out,
                          TtDiag *diag)
{
    Slice *s = g_new0(Slice, 1);
    TtStatus st = tt_io_posix_dup(pack, &s->pack, diag);

    s->io.ops = &slice_ops;
    s->offset = m->offset;
    s->bytes = m->bytes;
    *out = &s->io;
    if (st != TT_OK) {
        g_free(s);
        *out = NULL;
    }
    return st;
}

typedef struct Parts {
    TtIo *log, *pages, *checkpoints;
} Parts;

/* The members of the run itself. */
static TtStatus find_parts(TtIo *pack, Parts *parts)
{
    const struct {
        const char *name;
        TtIo **io;
    } wanted[] = {
        { "log", &parts->log }, { "pages", &parts->pages },
        { "checkpoints", &parts->checkpoints },
    };
    TtPackReader *r;
    TtPackMember m;
    TtIo *io;
    TtStatus st = tt_io_posix_dup(pack, &io, NULL);

    if (st == TT_OK) {
        st = tt_pack_open(io, &r, NULL);
    }
    if (st != TT_OK) {
        return st;
    }
    while (st == TT_OK && (st = tt_pack_next(r, &m, NULL)) == TT_OK) {
        for (unsigned i = 0; i < G_N_ELEMENTS(wanted); i++) {
            if (!strcmp(m.name, wanted[i].name)) {
                st = slice_new(pack, &m, wanted[i].io, NULL);
            }
        }
    }
    tt_pack_reader_free(r);
    return st == TT_END ? TT_OK : st;
}

static void not_readable(void *opaque, TtNodeId id, uint64_t pos, uint64_t n_pages,
                         uint64_t first_page, const TtDiag *why)
{
    *(bool *)opaque = false;
}

/* All pages, and the place in the log where a window begins. */
static bool store_is_whole(TtPageStore *ps, TtIo *log)
{
    bool is_whole = !tt_pagestore_damage(ps, 0) && !tt_pagestore_damage(ps, 1);
    TtLogReader *r = NULL;
    uint64_t pos;

    if (is_whole) {
        tt_pagestore_verify(ps, not_readable, &is_whole);
    }
    is_whole &= tt_log_reader_open_part(log, &r, NULL) >= 0 &&
        tool_start(ps, r, &pos);
    tt_log_reader_free(r);
    return is_whole;
}

bool tool_pack_is_whole(TtIo *pack, const TtManifest *m, const char *run)
{
    TtPageStoreOptions opt = { .read_only = true };
    TtPageStore *ps = NULL;
    Parts parts = { 0 };
    bool is_whole;

    if (find_parts(pack, &parts) != TT_OK || !parts.log || !parts.pages ||
        !parts.checkpoints) {
        is_whole = parts.log && !parts.pages && !parts.checkpoints;
        tt_io_close(parts.log);
        tt_io_close(parts.pages);
        tt_io_close(parts.checkpoints);
        return is_whole;
    }
    memcpy(opt.uuid, m->uuid, sizeof(opt.uuid));
    opt.pages = parts.pages;
    opt.checkpoints = parts.checkpoints;
    tt_runstore_set_origin(&opt, m, run);
    if (tt_pagestore_open(&opt, &ps, NULL) != TT_OK) {
        tt_io_close(parts.log);
        return false;
    }
    is_whole = store_is_whole(ps, parts.log);
    tt_pagestore_free(ps);
    return is_whole;
}
