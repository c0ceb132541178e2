/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * See blockmap-file.h. Writes since the last sync stand in a list, with what was there
 * before: after a cut all are undone, and what is kept is done again.
 */
#include "blockmap-file.h"

#include <glib.h>
#include <string.h>

typedef struct Pending {
    uint64_t offset;
    size_t len;
    uint8_t *was, *is;
} Pending;

typedef struct CutFile {
    TtIo io;
    uint8_t *bytes;
    uint64_t len, room, synced_len;
    GArray *pending;
} CutFile;

static CutFile *cut_file(TtIo *io)
{
    return (CutFile *)((char *)io - offsetof(CutFile, io));
}

static TtStatus file_size(TtIo *io, uint64_t *bytes, TtDiag *diag)
{
    *bytes = cut_file(io)->len;
    return TT_OK;
}

static TtStatus file_read_at(TtIo *io, uint64_t offset, void *buf, size_t len,
                             size_t *got, TtDiag *diag)
{
    CutFile *f = cut_file(io);

    *got = offset < f->len ? MIN(len, f->len - offset) : 0;
    if (*got) {
        memcpy(buf, f->bytes + offset, *got);
    }
    return TT_OK;
}

static void grow(CutFile *f, uint64_t len)
{
    if (len > f->room) {
        uint64_t room = MAX(len, f->room * 2);

        f->bytes = g_realloc(f->bytes, room);
        memset(f->bytes + f->room, 0, room - f->room);
        f->room = room;
    }
    f->len = MAX(f->len, len);
}

static TtStatus file_write_at(TtIo *io, uint64_t offset, const void *buf, size_t len,
                              TtDiag *diag)
{
    CutFile *f = cut_file(io);
    Pending p = { offset, len };

    if (len) {
        grow(f, offset + len);
        p.was = g_memdup2(f->bytes + offset, len);
        p.is = g_memdup2(buf, len);
        memcpy(f->bytes + offset, buf, len);
        g_array_append_val(f->pending, p);
    }
    return TT_OK;
}

static void forget(CutFile *f)
{
    for (guint i = 0; i < f->pending->len; i++) {
        g_free(g_array_index(f->pending, Pending, i).was);
        g_free(g_array_index(f->pending, Pending, i).is);
    }
    g_array_set_size(f->pending, 0);
}

static TtStatus file_sync(TtIo *io, TtDiag *diag)
{
    forget(cut_file(io));
    cut_file(io)->synced_len = cut_file(io)->len;
    return TT_OK;
}

static void file_close(TtIo *io)
{
    CutFile *f = cut_file(io);

    forget(f);
    g_array_unref(f->pending);
    g_free(f->bytes);
    g_free(f);
}

static const TtIoOps file_ops = {
    .size = file_size,
    .read_at = file_read_at,
    .write_at = file_write_at,
    .sync = file_sync,
    .close = file_close,
};

TtIo *cut_file_new(void)
{
    CutFile *f = g_new0(CutFile, 1);

    f->io.ops = &file_ops;
    f->pending = g_array_new(FALSE, FALSE, sizeof(Pending));
    return &f->io;
}

void cut_file_write_part(TtIo *io, uint64_t offset, const void *buf, size_t len,
                         size_t part)
{
    file_write_at(io, offset, buf, MIN(part, len), NULL);
}

void cut_file_punch(TtIo *io, uint64_t offset, uint64_t len)
{
    CutFile *f = cut_file(io);
    uint64_t end = MIN(offset + len, f->len);

    if (offset < end) {
        g_autofree uint8_t *zeros = g_malloc0(end - offset);

        file_write_at(io, offset, zeros, end - offset, NULL);
    }
}

void cut_file_power(TtIo *io, CutKeep keep, void *opaque)
{
    CutFile *f = cut_file(io);

    for (guint i = f->pending->len; i > 0; i--) {
        const Pending *p = &g_array_index(f->pending, Pending, i - 1);

        memcpy(f->bytes + p->offset, p->was, p->len);
    }
    f->len = f->synced_len;
    for (guint i = 0; i < f->pending->len; i++) {
        const Pending *p = &g_array_index(f->pending, Pending, i);
        size_t n = MIN(p->len, keep(opaque, p->len));

        memcpy(f->bytes + p->offset, p->is, n);
        f->len = MAX(f->len, n ? p->offset + n : 0);
    }
    f->synced_len = f->len;
    forget(f);
}
