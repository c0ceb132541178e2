/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TtIo that asks its owner what to do before a failed write is reported.
 */
#include "io/tt-io.h"

#include <glib.h>

typedef struct PatientIo {
    TtIo io;
    TtIo *base;
    TtIoMakeRoom make_room;
    void *opaque;
} PatientIo;

static PatientIo *patient_io(TtIo *io)
{
    return (PatientIo *)((char *)io - offsetof(PatientIo, io));
}

static TtStatus patient_size(TtIo *io, uint64_t *bytes, TtDiag *diag)
{
    TtIo *base = patient_io(io)->base;

    return base->ops->size(base, bytes, diag);
}

static TtStatus patient_read_at(TtIo *io, uint64_t offset, void *buf,
                                size_t len, size_t *got, TtDiag *diag)
{
    TtIo *base = patient_io(io)->base;

    return base->ops->read_at(base, offset, buf, len, got, diag);
}

/* The remains of a failed try are cut off before the next, or there is no next. */
static TtStatus patient_append(TtIo *io, const void *buf, size_t len,
                               TtDiag *diag)
{
    PatientIo *p = patient_io(io);
    TtIo *base = p->base;
    TtDiag why = { 0 };
    uint64_t end;
    TtStatus s = base->ops->size(base, &end, diag);

    if (s != TT_OK) {
        return s;
    }
    while ((s = base->ops->append(base, buf, len, &why)) < 0) {
        why.status = s;
        if (!base->ops->truncate || !p->make_room(p->opaque, &why) ||
            base->ops->truncate(base, end, NULL) != TT_OK) {
            break;
        }
    }
    if (s < 0 && diag) {
        *diag = why;
    }
    return s;
}

static TtStatus patient_sync(TtIo *io, TtDiag *diag)
{
    TtIo *base = patient_io(io)->base;

    return base->ops->sync(base, diag);
}

static void patient_close(TtIo *io)
{
    PatientIo *p = patient_io(io);

    tt_io_close(p->base);
    g_free(p);
}

static const TtIoOps patient_ops = {
    .size = patient_size,
    .read_at = patient_read_at,
    .append = patient_append,
    .sync = patient_sync,
    .close = patient_close,
};

TtIo *tt_io_patient_new(TtIo *base, TtIoMakeRoom make_room, void *opaque)
{
    PatientIo *p = g_new0(PatientIo, 1);

    p->io.ops = &patient_ops;
    p->base = base;
    p->make_room = make_room;
    p->opaque = opaque;
    return &p->io;
}
