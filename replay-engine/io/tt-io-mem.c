/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TtIo in memory, and TtIo that fails on demand: for tests and fuzzers.
 */
#include "io/tt-io.h"

#include <assert.h>
#include <glib.h>

/* ---- memory ---- */

typedef struct MemIo {
    TtIo io;
    GByteArray *bytes;
} MemIo;

static MemIo *mem_io(TtIo *io)
{
    return (MemIo *)((char *)io - offsetof(MemIo, io));
}

static TtStatus mem_size(TtIo *io, uint64_t *bytes, TtDiag *diag)
{
    *bytes = mem_io(io)->bytes->len;
    return TT_OK;
}

static TtStatus mem_read_at(TtIo *io, uint64_t offset, void *buf, size_t len,
                            size_t *got, TtDiag *diag)
{
    GByteArray *b = mem_io(io)->bytes;

    *got = 0;
    if (offset < b->len) {
        *got = MIN(len, b->len - offset);
        memcpy(buf, b->data + offset, *got);
    }
    return TT_OK;
}

static TtStatus mem_append(TtIo *io, const void *buf, size_t len, TtDiag *diag)
{
    GByteArray *b = mem_io(io)->bytes;

    if (len > G_MAXINT32 - b->len) {
        return tt_fail(diag, TT_ERR_NOSPACE, "a file in memory is full");
    }
    g_byte_array_append(b, buf, len);
    return TT_OK;
}

static TtStatus mem_write_at(TtIo *io, uint64_t offset, const void *buf, size_t len,
                             TtDiag *diag)
{
    GByteArray *b = mem_io(io)->bytes;
    guint old = b->len;

    if (offset > G_MAXINT32 || len > G_MAXINT32 - offset) {
        return tt_fail(diag, TT_ERR_NOSPACE, "a file in memory is full");
    }
    if (offset + len > old) {
        g_byte_array_set_size(b, offset + len);
        memset(b->data + old, 0, b->len - old);
    }
    if (len) {
        memcpy(b->data + offset, buf, len);
    }
    return TT_OK;
}

static TtStatus mem_sync(TtIo *io, TtDiag *diag)
{
    return TT_OK;
}

static void mem_close(TtIo *io)
{
    MemIo *m = mem_io(io);

    g_byte_array_unref(m->bytes);
    g_free(m);
}

static TtStatus mem_truncate(TtIo *io, uint64_t bytes, TtDiag *diag)
{
    GByteArray *b = mem_io(io)->bytes;

    if (bytes > b->len) {
        return tt_fail(diag, TT_ERR_INVALID, "a file cannot be truncated to more bytes");
    }
    g_byte_array_set_size(b, bytes);
    return TT_OK;
}

static TtStatus mem_punch(TtIo *io, uint64_t offset, uint64_t len,
                          TtDiag *diag)
{
    GByteArray *b = mem_io(io)->bytes;

    if (len && offset < b->len) {
        memset(b->data + offset, 0, MIN(len, b->len - offset));
    }
    return TT_OK;
}

static TtStatus mem_replace_begin(TtIo *io, TtIo **fresh, TtDiag *diag)
{
    *fresh = tt_io_mem_new(NULL, 0);
    return TT_OK;
}

static TtStatus mem_replace_commit(TtIo *io, TtIo *fresh, TtDiag *diag)
{
    GByteArray *old = mem_io(io)->bytes;

    mem_io(io)->bytes = mem_io(fresh)->bytes;
    mem_io(fresh)->bytes = old;
    mem_close(fresh);
    return TT_OK;
}

static const TtIoOps mem_ops = {
    .size = mem_size,
    .read_at = mem_read_at,
    .append = mem_append,
    .write_at = mem_write_at,
    .sync = mem_sync,
    .close = mem_close,
    .truncate = mem_truncate,
    .punch = mem_punch,
    .replace_begin = mem_replace_begin,
    .replace_commit = mem_replace_commit,
};

TtIo *tt_io_mem_new(const void *bytes, size_t len)
{
    MemIo *m = g_new0(MemIo, 1);

    assert(len <= G_MAXINT32);
    m->io.ops = &mem_ops;
    m->bytes = g_byte_array_new();
    if (len) {
        g_byte_array_append(m->bytes, bytes, len);
    }
    return &m->io;
}

const uint8_t *tt_io_mem_data(TtIo *io, size_t *len)
{
    assert(io->ops == &mem_ops);
    *len = mem_io(io)->bytes->len;
    return mem_io(io)->bytes->data;
}

/* ---- failing on demand ---- */

typedef struct FaultIo {
    TtIo io;
    TtIo *base;
    uint64_t nth;               /* 0: never */
    uint64_t count;
    TtStatus status;
} FaultIo;

static FaultIo *fault_io(TtIo *io)
{
    return (FaultIo *)((char *)io - offsetof(FaultIo, io));
}

/* Counts one operation; true when it is the one to fail. */
static bool fault_is_due(FaultIo *f)
{
    return ++f->count == f->nth;
}

static TtStatus fault_fail(FaultIo *f, TtDiag *diag)
{
    return tt_fail(diag, f->status, "operation %" G_GUINT64_FORMAT
                   " failed because a test asked for it", f->count);
}

static TtStatus fault_size(TtIo *io, uint64_t *bytes, TtDiag *diag)
{
    FaultIo *f = fault_io(io);

    if (fault_is_due(f)) {
        return fault_fail(f, diag);
    }
    return f->base->ops->size(f->base, bytes, diag);
}

static TtStatus fault_read_at(TtIo *io, uint64_t offset, void *buf, size_t len,
                              size_t *got, TtDiag *diag)
{
    FaultIo *f = fault_io(io);

    if (fault_is_due(f)) {
        *got = 0;
        return fault_fail(f, diag);
    }
    return f->base->ops->read_at(f->base, offset, buf, len, got, diag);
}

static TtStatus fault_append(TtIo *io, const void *buf, size_t len,
                             TtDiag *diag)
{
    FaultIo *f = fault_io(io);

    if (fault_is_due(f)) {
        f->base->ops->append(f->base, buf, len / 2, NULL);
        return fault_fail(f, diag);
    }
    return f->base->ops->append(f->base, buf, len, diag);
}

static TtStatus fault_write_at(TtIo *io, uint64_t offset, const void *buf, size_t len,
                               TtDiag *diag)
{
    FaultIo *f = fault_io(io);

    if (fault_is_due(f)) {
        if (f->base->ops->write_at) {
            f->base->ops->write_at(f->base, offset, buf, len / 2, NULL);
        }
        return fault_fail(f, diag);
    }
    if (!f->base->ops->write_at) {
        return tt_fail(diag, TT_ERR_INVALID, "this file can only be appended to");
    }
    return f->base->ops->write_at(f->base, offset, buf, len, diag);
}

static TtStatus fault_sync(TtIo *io, TtDiag *diag)
{
    FaultIo *f = fault_io(io);

    if (fault_is_due(f)) {
        return fault_fail(f, diag);
    }
    return f->base->ops->sync(f->base, diag);
}

static void fault_close(TtIo *io)
{
    FaultIo *f = fault_io(io);

    tt_io_close(f->base);
    g_free(f);
}

static TtStatus fault_truncate(TtIo *io, uint64_t bytes, TtDiag *diag)
{
    FaultIo *f = fault_io(io);

    if (fault_is_due(f)) {
        return fault_fail(f, diag);
    }
    if (!f->base->ops->truncate) {
        return tt_fail(diag, TT_ERR_INVALID, "this file cannot be truncated");
    }
    return f->base->ops->truncate(f->base, bytes, diag);
}

static TtStatus fault_punch(TtIo *io, uint64_t offset, uint64_t len,
                            TtDiag *diag)
{
    FaultIo *f = fault_io(io);

    if (fault_is_due(f)) {
        return fault_fail(f, diag);
    }
    if (!f->base->ops->punch) {
        return tt_fail(diag, TT_ERR_INVALID, "this file cannot have holes");
    }
    return f->base->ops->punch(f->base, offset, len, diag);
}

/* Appends to the fresh object count, too: it is wrapped, and counts for @io
 * when it takes its place. */
static TtStatus fault_replace_begin(TtIo *io, TtIo **fresh, TtDiag *diag)
{
    FaultIo *f = fault_io(io);
    uint64_t left = f->nth > f->count + 1 ? f->nth - f->count - 1 : 0;
    TtIo *base;
    TtStatus st;

    if (fault_is_due(f)) {
        return fault_fail(f, diag);
    }
    if (!f->base->ops->replace_begin) {
        return tt_fail(diag, TT_ERR_INVALID, "this file cannot be replaced");
    }
    st = f->base->ops->replace_begin(f->base, &base, diag);
    if (st == TT_OK) {
        *fresh = tt_io_fault_new(base, left, f->status);
    }
    return st;
}

static TtStatus fault_replace_commit(TtIo *io, TtIo *fresh, TtDiag *diag)
{
    FaultIo *f = fault_io(io), *g = fault_io(fresh);
    TtIo *base = g->base;

    f->count += g->count;
    g_free(g);
    if (fault_is_due(f)) {
        tt_io_close(base);
        return fault_fail(f, diag);
    }
    return f->base->ops->replace_commit(f->base, base, diag);
}

static const TtIoOps fault_ops = {
    .size = fault_size,
    .read_at = fault_read_at,
    .append = fault_append,
    .write_at = fault_write_at,
    .sync = fault_sync,
    .close = fault_close,
    .truncate = fault_truncate,
    .punch = fault_punch,
    .replace_begin = fault_replace_begin,
    .replace_commit = fault_replace_commit,
};

TtIo *tt_io_fault_new(TtIo *base, uint64_t nth, TtStatus status)
{
    FaultIo *f = g_new0(FaultIo, 1);

    assert(status < 0);
    f->io.ops = &fault_ops;
    f->base = base;
    f->nth = nth;
    f->status = status;
    return &f->io;
}

uint64_t tt_io_fault_count(TtIo *io)
{
    assert(io->ops == &fault_ops);
    return fault_io(io)->count;
}
