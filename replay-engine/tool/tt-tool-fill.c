/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt pack of a run whose log names what was read from disks, or what other runs sent: in the
 * pack the log has it. Each event stays where it was, in the same segment, so checkpoints find
 * their places.
 */
#include "tt-tool-disk.h"
#include "net-tt/tt-framestore.h"

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

typedef struct Opened {
    TtDiskRef ref;              /* which version of which disk */
    ToolDisk disk;
    TtIo *io;
} Opened;

struct ToolFill {
    const ToolArgs *args;
    const char *run;
    const TtManifest *m;
    Opened now;                 /* reads come from one version after another */
    TtFrameStores *frames;      /* NULL: the log names none */
    uint8_t bytes[TT_LOG_DATA_MAX];
};

ToolFill *tool_fill_new(const ToolArgs *args, const char *run, const TtManifest *m)
{
    ToolFill *f = g_new0(ToolFill, 1);

    f->args = args;
    f->run = run;
    f->m = m;
    if (m->frames) {                    /* the features are those of the pack now */
        g_autofree char *dir = tt_runstore_frames(m, run);

        f->frames = tt_framestores_new(dir);
    }
    return f;
}

static void close_now(ToolFill *f)
{
    if (f->now.io) {
        tt_io_close(f->now.io);
        tool_disk_close(&f->now.disk);
    }
    f->now = (Opened) { .io = NULL };
}

void tool_fill_free(ToolFill *f)
{
    if (f) {
        close_now(f);
        tt_framestores_free(f->frames);
        g_free(f);
    }
}

static TtStatus open_version(ToolFill *f, const TtDiskRef *ref, TtDiag *diag)
{
    g_autofree char *path = g_build_filename(f->run, f->m->disks[ref->disk], NULL);
    ToolDiskAt at = { .id = ref->version };

    if (f->now.io && f->now.ref.disk == ref->disk && f->now.ref.version == ref->version) {
        return TT_OK;
    }
    close_now(f);
    if (tool_disk_open_path(path, &f->now.disk)) {
        f->now.io = tool_disk_read(f->args, &f->now.disk, &at);
        if (!f->now.io) {
            tool_disk_close(&f->now.disk);
        }
    }
    f->now.ref = *ref;
    return f->now.io ? TT_OK :
        tt_fail(diag, TT_ERR_IO, "what the guest read is on the disk '%s', version %" PRIu32
                ", which cannot be read", path, ref->version);
}

static TtStatus read_disk(ToolFill *f, const TtEvent *ev, TtDiag *diag)
{
    TtDiskRef ref;
    TtStatus st;
    size_t got;

    if (!tt_disk_ref_decode(ev, &ref) || !ref.version || ref.disk >= f->m->n_disks) {
        return tt_fail(diag, TT_ERR_FORMAT, "the log names an impossible place on a "
                                            "disk");
    }
    st = open_version(f, &ref, diag);
    if (st == TT_OK) {
        st = f->now.io->ops->read_at(f->now.io, ref.sector * 512, f->bytes, ev->aux, &got,
                                     diag);
    }
    if (st == TT_OK && (got != ev->aux || (uint32_t)XXH3_64bits(f->bytes, got) != ref.sum)) {
        st = tt_fail(diag, TT_ERR_FORMAT, "what the guest read from the disk '%s' "
                                          "(version %" PRIu32 ", sector %" PRIu64 ") is "
                                          "no longer there, since the image below it was "
                                          "changed: restore that "
                                          "image", f->m->disks[ref.disk], ref.version,
                     ref.sector);
    }
    return st;
}

static TtStatus read_frame(ToolFill *f, const TtEvent *ev, TtDiag *diag)
{
    TtFramePart p;
    TtStatus st = tt_framepart_get(&p, ev->aux, ev->data, ev->len, diag);

    if (st == TT_OK && (!f->frames || ev->aux > sizeof(f->bytes))) {
        st = tt_fail(diag, TT_ERR_FORMAT, "the log names an impossible part of a frame");
    }
    return st == TT_OK ? tt_framestores_read(f->frames, &p, ev->aux, f->bytes, diag) : st;
}

TtStatus tool_fill_event(ToolFill *f, TtEvent *ev, TtDiag *diag)
{
    TtStatus st = ev->kind == TT_EV_DISK ? read_disk(f, ev, diag) : read_frame(f, ev, diag);

    if (st == TT_OK) {
        ev->kind = TT_EV_RAM;
        ev->len = ev->aux;
        ev->aux = 0;
        ev->data = f->bytes;
    }
    return st;
}
