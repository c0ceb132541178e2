/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files in memory with a history: see pagefile-trace.h.
 */
#include "pagefile-trace.h"

typedef enum Kind { APPEND, TRUNCATE, PUNCH, REPLACE } Kind;

typedef struct Event {
    Kind kind;
    unsigned which;
    uint64_t offset, len;
    GBytes *bytes;
} Event;

typedef struct TraceIo {
    TtIo io;
    Trace *trace;               /* NULL: a fresh file, not in the history */
    unsigned which;
    GByteArray *bytes;
    Trace *fails_with;          /* of a fresh file: whose disk it is on */
} TraceIo;

static TraceIo *self(TtIo *io)
{
    return (TraceIo *)((char *)io - offsetof(TraceIo, io));
}

static void event_clear(gpointer p)
{
    Event *e = p;

    g_clear_pointer(&e->bytes, g_bytes_unref);
}

static void apply(GByteArray *b, const Event *e, size_t byte)
{
    gsize len = 0;
    const void *bytes = e->bytes ? g_bytes_get_data(e->bytes, &len) : NULL;

    switch (e->kind) {
    case APPEND:
        if (MIN(len, byte)) {
            g_byte_array_append(b, bytes, MIN(len, byte));
        }
        break;
    case TRUNCATE:
        g_assert_cmpuint(e->offset, <=, b->len);
        g_byte_array_set_size(b, e->offset);
        break;
    case PUNCH:
        g_assert_cmpuint(e->offset + e->len, <=, b->len);
        memset(b->data + e->offset, 0, e->len);
        break;
    case REPLACE:
        g_byte_array_set_size(b, 0);
        g_byte_array_append(b, bytes, len);
        break;
    }
}

static void happen(TraceIo *t, Event e)
{
    e.which = t->which;
    apply(t->bytes, &e, SIZE_MAX);
    if (t->trace) {
        g_array_append_val(t->trace->events, e);
    } else {
        event_clear(&e);
    }
}

static TtStatus io_size(TtIo *io, uint64_t *bytes, TtDiag *diag)
{
    *bytes = self(io)->bytes->len;
    return TT_OK;
}

static TtStatus io_read_at(TtIo *io, uint64_t offset, void *buf, size_t len,
                           size_t *got, TtDiag *diag)
{
    GByteArray *b = self(io)->bytes;

    *got = 0;
    if (offset < b->len) {
        *got = MIN(len, b->len - offset);
        memcpy(buf, b->data + offset, *got);
    }
    return TT_OK;
}

static TtStatus io_append(TtIo *io, const void *buf, size_t len, TtDiag *diag)
{
    TraceIo *t = self(io);
    bool is_full = t->fails_with->is_full;

    happen(t, (Event) { .kind = APPEND,
                        .bytes = g_bytes_new(buf, is_full ? len / 2 : len) });
    return is_full ? tt_fail(diag, TT_ERR_NOSPACE, "the test's disk is full")
                   : TT_OK;
}

static TtStatus io_sync(TtIo *io, TtDiag *diag)
{
    return TT_OK;
}

static TtStatus io_truncate(TtIo *io, uint64_t bytes, TtDiag *diag)
{
    happen(self(io), (Event) { .kind = TRUNCATE, .offset = bytes });
    self(io)->fails_with->n_truncated++;
    return TT_OK;
}

static TtStatus io_punch(TtIo *io, uint64_t offset, uint64_t len, TtDiag *diag)
{
    happen(self(io), (Event) { .kind = PUNCH, .offset = offset, .len = len });
    self(io)->fails_with->n_punched++;
    return TT_OK;
}

static void io_close(TtIo *io)
{
    g_byte_array_unref(self(io)->bytes);
    g_free(self(io));
}

static TtIo *io_new(Trace *disk, Trace *trace, unsigned which,
                    GByteArray *bytes);

static TtStatus io_replace_begin(TtIo *io, TtIo **fresh, TtDiag *diag)
{
    *fresh = io_new(self(io)->fails_with, NULL, 0, g_byte_array_new());
    return TT_OK;
}

static TtStatus io_replace_commit(TtIo *io, TtIo *fresh, TtDiag *diag)
{
    GByteArray *b = self(fresh)->bytes;

    happen(self(io), (Event) { .kind = REPLACE,
                               .bytes = g_bytes_new(b->data, b->len) });
    self(io)->fails_with->n_replaced++;
    io_close(fresh);
    return TT_OK;
}

static const TtIoOps ops = {
    .size = io_size,
    .read_at = io_read_at,
    .append = io_append,
    .sync = io_sync,
    .close = io_close,
    .truncate = io_truncate,
    .punch = io_punch,
    .replace_begin = io_replace_begin,
    .replace_commit = io_replace_commit,
};

static TtIo *io_new(Trace *disk, Trace *trace, unsigned which,
                    GByteArray *bytes)
{
    TraceIo *t = g_new0(TraceIo, 1);

    t->io.ops = &ops;
    t->trace = trace;
    t->which = which;
    t->bytes = bytes;
    t->fails_with = disk;
    return &t->io;
}

TtIo *trace_io(Trace *t, unsigned which)
{
    return io_new(t, t, which, g_byte_array_ref(t->file[which]));
}

size_t trace_event_bytes(const Trace *t, size_t i)
{
    const Event *e = &g_array_index(t->events, Event, i);

    return e->kind == APPEND ? g_bytes_get_size(e->bytes) : 0;
}

void trace_replay(const Trace *t, size_t event, size_t byte,
                  GByteArray *file[2])
{
    file[0] = g_byte_array_new();
    file[1] = g_byte_array_new();
    for (size_t i = 0; i < event && i < t->events->len; i++) {
        const Event *e = &g_array_index(t->events, Event, i);

        apply(file[e->which], e, SIZE_MAX);
    }
    if (event < t->events->len && byte) {
        const Event *e = &g_array_index(t->events, Event, event);

        apply(file[e->which], e, byte);
    }
}

Trace *trace_new(void)
{
    Trace *t = g_new0(Trace, 1);

    t->events = g_array_new(false, false, sizeof(Event));
    g_array_set_clear_func(t->events, event_clear);
    t->file[0] = g_byte_array_new();
    t->file[1] = g_byte_array_new();
    return t;
}

void trace_free(Trace *t)
{
    g_array_unref(t->events);
    g_byte_array_unref(t->file[0]);
    g_byte_array_unref(t->file[1]);
    g_free(t);
}
