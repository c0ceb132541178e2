/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A replay's frames of other runs, out of their frame stores.
 */
#include "qemu/osdep.h"
#include "replay/tt-replay-frames.h"
#include "net-tt/tt-framestore.h"
#include "run/tt-runstore.h"
#include "session/tt-session.h"

static struct {
    char *dir;                  /* that of the stores */
    TtFrameStores *stores;
} fr;

/* The process may turn to another run: of a branch, or one that it records anew. */
static TtFrameStores *stores(void)
{
    g_autofree char *dir = tt_runstore_frames(&tt_session.manifest, tt_session.dir);

    if (g_strcmp0(fr.dir, dir)) {
        tt_framestores_free(fr.stores);
        g_free(fr.dir);
        fr.stores = tt_framestores_new(dir);
        fr.dir = g_steal_pointer(&dir);
    }
    return fr.stores;
}

TtStatus tt_replay_frames_fill(const TtEvent *ev, uint8_t *out, TtDiag *diag)
{
    TtFramePart p;
    TtStatus st = tt_framepart_get(&p, tt_event_bytes(ev), ev->data, ev->len, diag);

    if (st == TT_OK && !(tt_session.manifest.features & TT_FEATURE_FRAMES)) {
        st = tt_fail(diag, TT_ERR_FORMAT, "the log names a frame of another run, but the "
                     "manifest does not say where to find it");
    }
    return st == TT_OK ? tt_framestores_read(stores(), &p, tt_event_bytes(ev), out, diag) :
        st;
}
