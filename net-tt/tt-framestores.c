/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The frame stores of a group: which one has a frame that a log names, and what is said
 * when none does.
 */
#include "net-tt/tt-framestore.h"

#include <errno.h>
#include <glib.h>
#include <inttypes.h>

#define OPEN_MAX 64             /* runs: those whose frames a receiver tells apart */

typedef struct Opened {
    uint8_t run[TT_RUN_BYTES];
    TtFrameStore *store;        /* NULL: why */
    TtDiag why;
} Opened;

struct TtFrameStores {
    char *dir;
    unsigned n, next;           /* entries; the one that is replaced when all are taken */
    Opened opened[OPEN_MAX];
};

TtFrameStores *tt_framestores_new(const char *dir)
{
    TtFrameStores *all = g_new0(TtFrameStores, 1);

    all->dir = g_strdup(dir);
    return all;
}

void tt_framestores_free(TtFrameStores *all)
{
    if (all) {
        for (unsigned i = 0; i < all->n; i++) {
            tt_framestore_free(all->opened[i].store);
        }
        g_free(all->dir);
        g_free(all);
    }
}

/* As in the run's manifest: g_free. */
static char *uuid_of(const uint8_t run[TT_RUN_BYTES])
{
    char t[2 * TT_RUN_BYTES + 1];

    tt_run_text(t, run);
    return g_strdup_printf("%.8s-%.4s-%.4s-%.4s-%s", t, t + 8, t + 12, t + 16, t + 20);
}

char *tt_framestores_path(const char *dir, const uint8_t run[TT_RUN_BYTES])
{
    g_autofree char *uuid = uuid_of(run), *name = g_strconcat(uuid, TT_FRAMESTORE_SUFFIX,
                                                              NULL);

    return g_build_filename(dir, name, NULL);
}

static void open_it(const TtFrameStores *all, Opened *o)
{
    g_autofree char *path = tt_framestores_path(all->dir, o->run);
    TtIo *io;

    if (tt_io_posix_open(path, &io, &o->why) == TT_OK) {
        tt_framestore_open(io, o->run, &o->store, &o->why);
    }
}

static Opened *opened_of(TtFrameStores *all, const uint8_t run[TT_RUN_BYTES])
{
    Opened *o;

    for (unsigned i = 0; i < all->n; i++) {
        if (!memcmp(all->opened[i].run, run, TT_RUN_BYTES)) {
            return &all->opened[i];
        }
    }
    o = &all->opened[all->next];
    all->n = MAX(all->n, all->next + 1);
    all->next = (all->next + 1) % OPEN_MAX;
    tt_framestore_free(o->store);
    *o = (Opened) { .store = NULL };
    memcpy(o->run, run, TT_RUN_BYTES);
    open_it(all, o);
    return o;
}

bool tt_framestores_have(TtFrameStores *all, const TtFrame *f)
{
    TtFrameStore *s = opened_of(all, f->run)->store;
    TtFrameEntry e;

    return s && tt_framestore_find(s, f->seq, &e, NULL) == TT_OK && e.hash == f->hash &&
        e.len == f->len;
}

/* The sentence: which frame, where it should be, why it cannot be had. */
static TtStatus say(const TtFrameStores *all, const TtFramePart *p, TtStatus st,
                    const TtDiag *why, TtDiag *diag)
{
    g_autofree char *run = uuid_of(p->run), *name = g_path_get_basename(all->dir);

    if (st == TT_ERR_IO && why->os_errno == ENOENT) {
        return tt_fail(diag, TT_ERR_IO, "what arrives here is frame %" PRIu64 " of run %s, "
                       "whose frame store is missing in '%.40s': put it back", p->seq, run,
                       name);
    }
    return tt_fail(diag, st == TT_END ? TT_ERR_FORMAT : st, "what arrives here is frame %"
                   PRIu64 " of run %s, and the frame store in '%.40s' does not have it: "
                   "%.70s", p->seq, run, name, why->text);
}

TtStatus tt_framestores_read(TtFrameStores *all, const TtFramePart *p, uint64_t bytes,
                             uint8_t *out, TtDiag *diag)
{
    Opened *o = opened_of(all, p->run);
    const uint8_t *data;
    uint32_t len;
    TtStatus st;
    TtDiag why;

    if (!o->store) {
        open_it(all, o);                /* it may have been put back */
    }
    why = o->why;
    st = o->store ? tt_framestore_read(o->store, p->seq, p->hash, &data, &len, &why) :
        why.status;

    if (st == TT_OK && (len < p->at || len - p->at < bytes)) {
        st = tt_fail(&why, TT_ERR_FORMAT, "it is shorter than the one that was received");
    }
    if (st != TT_OK) {
        return say(all, p, st, &why, diag);
    }
    memcpy(out, data + p->at, bytes);
    return TT_OK;
}
